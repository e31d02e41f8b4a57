//! A small file of each format, made by hand or by code.

use super::{IMPORTERS, Imported, ImporterInfo};
use crate::kinds::{Given, Table};
use flate2::{Compression, write::ZlibEncoder};
use std::io::{Cursor, Write};
use std::path::Path;

/// Of each format, its name and a file.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("tasks", text("# two\narrival_ns,service_ns\n0,5\n7,5\n")),
        (
            "csv",
            text(
                "start_time,duration,end_time,job_name,instances\n1000,500,1500,a,1\n\
                 12000,1000,13000,b,2\n30000,1000,31000,c,1\n90000,1000,91000,d,1\n",
            ),
        ),
        ("ftrace", FTRACE.into()),
        ("trace-dat", trace_dat_6()),
        ("perf-data", perf_data()),
        ("perfetto", perfetto(false)),
        ("systrace", systrace()),
        ("rt-app", text("{\"tasks\": {\"a\": {\"run\": 5}}}")),
        (
            "simso",
            text(
                "<simulation cycles_per_ms=\"1000000\" duration=\"100000000\">\n<tasks>\n\
                 <task id=\"1\" name=\"a\" period=\"10\" WCET=\"1\" deadline=\"10\"/>\n</tasks>\n\
                 </simulation>\n",
            ),
        ),
        (
            "swf",
            text(
                "; MaxProcs: 4\n1 0 5 60 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1\n\
                 2 20 5 60 1 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1\n",
            ),
        ),
        (
            "model",
            text("{\"anysched-model\":1,\"scripts\":[{\"ops\":[]}],\"tasks\":[{\"script\":0}]}"),
        ),
    ]
}

/// Every importer answers to files that are cut or damaged, and what it accepts holds together.
#[test]
fn damaged_files_do_no_harm() {
    let mut samples = all();
    samples.extend(["none", "zstd", "zlib"].map(|packing| ("trace-dat", trace_dat_7(packing))));
    samples.push(("perfetto", perfetto(true)));
    samples.push(("perf-data", perf_data_compressed()));
    samples.push(("perf-data", perf_data_piped()));
    for (format, sample) in &samples {
        let importer = ImporterInfo::of(format).unwrap();
        let read = |file: &[u8]| {
            let options = Usage(importer);
            let read = (importer.read)(&mut Cursor::new(file), "x", &options);
            if let Ok(Imported::Model(model)) = &read {
                let _ = model.validate();
            }
            read.is_ok()
        };
        assert!(read(sample), "{format}");
        let step = sample.len().div_ceil(400);
        for length in (0..sample.len()).step_by(step) {
            read(&sample[..length]);
        }
        // A byte at a time, each way that upsets lengths and signs.
        let step = sample.len().div_ceil(1500);
        for at in (0..sample.len()).step_by(step) {
            for other in [0x00, 0x7f, 0xff, sample[at] ^ 1] {
                let mut damaged = sample.clone();
                damaged[at] = other;
                read(&damaged);
            }
        }
    }
}

/// The seeds of the fuzz target `imports` are these files, each behind the number of its format.
#[test]
fn seeds_of_the_fuzzer_are_these_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/imports");
    let mut seeds = all();
    seeds.push(("trace-dat-7", trace_dat_7("zstd")));
    seeds.push(("perfetto-batch", perfetto(true)));
    seeds.push(("perf-data-compressed", perf_data_compressed()));
    seeds.push(("perf-data-piped", perf_data_piped()));
    for (name, file) in seeds {
        let is_it = |format: &ImporterInfo| name.starts_with(format.name);
        let number = IMPORTERS.iter().position(is_it).unwrap();
        let seed = [&[number as u8][..], &file].concat();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(folder.join(name), &seed).unwrap();
        }
        let kept = std::fs::read(folder.join(name)).unwrap_or_default();
        assert!(kept == seed, "fuzz/corpus/imports/{name} is not current: run with BLESS=1");
    }
}

/// The options that a format cannot do without, with their examples.
pub(crate) struct Usage(pub(crate) &'static ImporterInfo);

impl Table for Usage {
    fn keys(&self) -> Vec<&str> {
        let words = self.0.usage.split_ascii_whitespace();
        ["file"].into_iter().chain(words.filter_map(|word| word.strip_prefix("--"))).collect()
    }

    fn get(&self, key: &str) -> Option<Given<'_>> {
        let is_given = self.keys().contains(&key);
        let option = self.0.options().find(|option| is_given && option.name == key)?;
        Some(option.takes.literal(option.example))
    }
}

/// The same recording in all formats: b runs, wakes a, and a runs instead and blocks.
pub(crate) const FTRACE: &str = "\
# tracer: nop
 a-7 [000] d..2.  1.000000: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> \
next_comm=b next_pid=8 next_prio=110
 b-8 [000] d..2. 12.500000: sched_waking: comm=a pid=7 prio=120 target_cpu=000
 b-8 [000] d..2. 12.500001: sched_switch: prev_comm=b prev_pid=8 prev_prio=110 prev_state=R+ ==> \
next_comm=a next_pid=7 next_prio=120
 a-7 [000] d..2. 31.000000: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> \
next_comm=b next_pid=8 next_prio=110
 b-8 [000] d..2. 31.700000: sched_switch: prev_comm=b prev_pid=8 prev_prio=110 prev_state=X ==> \
next_comm=swapper/0 next_pid=0 next_prio=120
";

type Name = (&'static str, u32, u32);
const A: Name = ("a", 7, 120);
const B: Name = ("b", 8, 110);
const IDLE: Name = ("swapper/0", 0, 120);

enum Event {
    Switch(Name, u64, Name),
    Waking(Name),
}

/// Those of [`FTRACE`], with the task that runs.
const EVENTS: [(u64, Name, Event); 5] = [
    (1_000_000_000, A, Event::Switch(A, 1, B)),
    (12_500_000_000, B, Event::Waking(A)),
    (12_500_001_000, B, Event::Switch(B, 0x100, A)),
    (31_000_000_000, A, Event::Switch(A, 1, B)),
    (31_700_000_000, B, Event::Switch(B, 0x10, IDLE)),
];

const SWITCH: u16 = 316;
const WAKING: u16 = 318;

const SWITCH_FORMAT: &str = "\
name: sched_switch
ID: 316
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: \"prev_state=%s\", __print_flags(REC->prev_state, \"|\", { 0x0001, \"S\" }, \
{ 0x0002, \"D\" }, { 0x0010, \"X\" }, { 0x0020, \"Z\" }, \
{ 0x0040, \"P\" }, { 0x0080, \"I\" })
";

const WAKING_FORMAT: &str = "\
name: sched_waking
ID: 318
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;

print fmt: \"comm=%s\"
";

const OTHER_FORMAT: &str = "name: sys_enter\nID: 20\nformat:\n";

/// An event as the kernel stores it.
fn raw((_, current, event): &(u64, Name, Event)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let common = |kind: u16, bytes: &mut Vec<u8>| {
        bytes.extend(kind.to_le_bytes());
        // Interrupts off, preemption depth 2.
        bytes.extend([1, 2]);
        bytes.extend(current.1.to_le_bytes());
    };
    let task = |(comm, pid, prio): &Name, bytes: &mut Vec<u8>| {
        let mut name = [0; 16];
        name[..comm.len()].copy_from_slice(comm.as_bytes());
        bytes.extend(name);
        bytes.extend(pid.to_le_bytes());
        bytes.extend(prio.to_le_bytes());
    };
    match event {
        Event::Switch(prev, state, next) => {
            common(SWITCH, &mut bytes);
            task(prev, &mut bytes);
            bytes.extend(state.to_le_bytes());
            task(next, &mut bytes);
        }
        Event::Waking(woken) => {
            common(WAKING, &mut bytes);
            task(woken, &mut bytes);
            bytes.extend(0u32.to_le_bytes());
        }
    }
    bytes
}

const PAGE: usize = 4096;

/// A page of the ring buffer with `events`.
fn page(events: &[(u64, Name, Event)]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut now = events[0].0;
    let word = |kind: u32, delta: u64| (kind | (delta as u32) << 5).to_le_bytes();
    for event in events {
        let delta = event.0 - now;
        let (high, low) = (delta >> 27, delta & ((1 << 27) - 1));
        if high > 0 {
            data.extend(word(30, low));
            data.extend((high as u32).to_le_bytes());
        }
        let raw = raw(event);
        data.extend(word(raw.len() as u32 / 4, if high > 0 { 0 } else { low }));
        data.extend(raw);
        now = event.0;
    }
    // An event that is not used, in the long form, and padding.
    data.extend(word(0, 1));
    data.extend(12u32.to_le_bytes());
    data.extend([20, 0, 0, 0, 8, 0, 0, 0]);
    data.extend(word(29, 0));
    let mut page = events[0].0.to_le_bytes().to_vec();
    // Events were lost before this page; how many is not stored.
    page.extend((data.len() as u64 | 1 << 31).to_le_bytes());
    page.extend(data);
    page.resize(PAGE, 0);
    page
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn sized(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn head(version: &str) -> Vec<u8> {
    let mut file = b"\x17\x08\x44tracing".to_vec();
    text(&mut file, version);
    file.extend([0, 8]);
    file.extend((PAGE as u32).to_le_bytes());
    file
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                           \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                           \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

fn header_info() -> Vec<u8> {
    let mut info = Vec::new();
    text(&mut info, "header_page");
    sized(&mut info, HEADER_PAGE);
    text(&mut info, "header_event");
    sized(&mut info, "# compressed entry header\n");
    info
}

fn event_formats() -> Vec<u8> {
    let mut formats = 2u32.to_le_bytes().to_vec();
    text(&mut formats, "raw_syscalls");
    formats.extend(1u32.to_le_bytes());
    sized(&mut formats, OTHER_FORMAT);
    text(&mut formats, "sched");
    formats.extend(2u32.to_le_bytes());
    sized(&mut formats, SWITCH_FORMAT);
    sized(&mut formats, WAKING_FORMAT);
    formats
}

/// Descriptions, as perf has them too.
fn descriptions(version: &str) -> Vec<u8> {
    let mut file = head(version);
    file.extend(header_info());
    file.extend(0u32.to_le_bytes());
    file.extend(event_formats());
    // Functions, texts, names of processes.
    file.extend(3u32.to_le_bytes());
    file.extend(b"abc");
    file.extend(0u32.to_le_bytes());
    file
}

/// `trace.dat` of version 6 with two CPUs, of which the second has nothing.
pub(crate) fn trace_dat_6() -> Vec<u8> {
    let mut file = descriptions("6");
    sized(&mut file, "7 a\n");
    file.extend(2u32.to_le_bytes());
    file.extend(b"options  \0");
    file.extend(4u16.to_le_bytes());
    file.extend(14u32.to_le_bytes());
    file.extend(b"local [mono] x");
    file.extend(0u16.to_le_bytes());
    file.extend(b"flyrecord\0");
    let data = (file.len() + 4 * 8).next_multiple_of(PAGE);
    for (at, size) in [(data, 2 * PAGE), (data + 2 * PAGE, 0)] {
        file.extend((at as u64).to_le_bytes());
        file.extend((size as u64).to_le_bytes());
    }
    file.resize(data, 0);
    file.extend(page(&EVENTS[..2]));
    file.extend(page(&EVENTS[2..]));
    file
}

fn compressed(name: &str, bytes: &[u8]) -> Vec<u8> {
    let packed = match name {
        "zstd" => {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(bytes, level)
        }
        _ => {
            let mut zip = ZlibEncoder::new(Vec::new(), Compression::fast());
            zip.write_all(bytes).unwrap();
            zip.finish().unwrap()
        }
    };
    let mut all = (packed.len() as u32).to_le_bytes().to_vec();
    all.extend((bytes.len() as u32).to_le_bytes());
    all.extend(packed);
    all
}

/// `trace.dat` of version 7, compressed by `packing` unless that is `none`.
pub(crate) fn trace_dat_7(packing: &str) -> Vec<u8> {
    let is_packed = packing != "none";
    let section = |file: &mut Vec<u8>, id: u16, data: &[u8]| {
        let at = file.len() as u64;
        let data = if is_packed { compressed(packing, data) } else { data.to_vec() };
        file.extend(id.to_le_bytes());
        file.extend(u16::from(is_packed).to_le_bytes());
        file.extend(0u32.to_le_bytes());
        file.extend((data.len() as u64).to_le_bytes());
        file.extend(data);
        at
    };
    let mut file = head("7");
    text(&mut file, packing);
    text(&mut file, "1.5");
    let options_at = file.len();
    file.extend(0u64.to_le_bytes());
    let info = section(&mut file, 16, &header_info());
    let formats = section(&mut file, 18, &event_formats());
    // The pages of the only CPU, number 3, behind the header of their section.
    let buffer = file.len() as u64;
    file.extend(3u16.to_le_bytes());
    file.extend(u16::from(is_packed).to_le_bytes());
    file.extend([0; 12]);
    let data = file.len() as u64;
    let pages = [page(&EVENTS[..2]), page(&EVENTS[2..])];
    if is_packed {
        file.extend(2u32.to_le_bytes());
        pages.iter().for_each(|page| file.extend(compressed(packing, page)));
    } else {
        pages.iter().for_each(|page| file.extend(page));
    }
    let size = file.len() as u64 - data;
    let mut options = Vec::new();
    let option = |options: &mut Vec<u8>, id: u16, data: &[u8]| {
        options.extend(id.to_le_bytes());
        options.extend((data.len() as u32).to_le_bytes());
        options.extend(data);
    };
    let mut place = buffer.to_le_bytes().to_vec();
    text(&mut place, "");
    text(&mut place, "mono");
    place.extend((PAGE as u32).to_le_bytes());
    place.extend(1u32.to_le_bytes());
    place.extend(0u32.to_le_bytes());
    place.extend(data.to_le_bytes());
    place.extend(size.to_le_bytes());
    option(&mut options, 16, &info.to_le_bytes());
    option(&mut options, 18, &formats.to_le_bytes());
    option(&mut options, 8, &2u32.to_le_bytes());
    option(&mut options, 3, &place);
    option(&mut options, 0, &0u64.to_le_bytes());
    let at = section(&mut file, 0, &options);
    file[options_at..options_at + 8].copy_from_slice(&at.to_le_bytes());
    file
}

/// `perf.data` with two tracepoints.
pub(crate) fn perf_data() -> Vec<u8> {
    perf_data_of(|records| records)
}

/// The same with compressed records, as perf writes them: a stream of zstd without a last block, in
/// two records.
pub(crate) fn perf_data_compressed() -> Vec<u8> {
    perf_data_of(|records| {
        let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
        for block in records.chunks(500) {
            stream.extend(&(block.len() as u32 * 8).to_le_bytes()[..3]);
            stream.extend(block);
        }
        let (first, second) = stream.split_at(300);
        let mut all = Vec::new();
        for (kind, payload) in [(81u32, first), (83, second)] {
            let mut body = Vec::new();
            if kind == 83 {
                body.extend((payload.len() as u64).to_le_bytes());
            }
            body.extend(payload);
            if kind == 83 {
                body.resize(body.len().next_multiple_of(8), 0);
            }
            all.extend(kind.to_le_bytes());
            all.extend(0u16.to_le_bytes());
            all.extend((body.len() as u16 + 8).to_le_bytes());
            all.extend(body);
            // Lost between the two.
            all.extend([2, 0, 0, 0, 0, 0, 24, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        }
        all
    })
}

/// The same as it comes out of a pipe.
pub(crate) fn perf_data_piped() -> Vec<u8> {
    let mut file = b"PERFILE2".to_vec();
    file.extend(16u64.to_le_bytes());
    let record = |file: &mut Vec<u8>, kind: u32, body: &[u8]| {
        file.extend(kind.to_le_bytes());
        file.extend(0u16.to_le_bytes());
        file.extend((body.len() as u16 + 8).to_le_bytes());
        file.extend(body);
    };
    for (kind, id) in KINDS {
        let mut body = attribute(kind);
        body.extend(id.to_le_bytes());
        record(&mut file, 64, &body);
    }
    // The release of the kernel, and how many CPUs there are and are used.
    record(&mut file, 80, &[[4, 0, 0, 0, 0, 0, 0, 0], *b"\x04\0\0\x006.1\0"].concat());
    record(&mut file, 80, &[7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0]);
    let mut described = descriptions("0.6");
    described.extend(0u64.to_le_bytes());
    described.resize(described.len().next_multiple_of(8), 0);
    record(&mut file, 66, &[(described.len() as u32).to_le_bytes(), [0; 4]].concat());
    file.extend(described);
    // What a processor traced of itself, and the end of a round.
    let mut traced = 3u64.to_le_bytes().to_vec();
    traced.resize(40, 0);
    record(&mut file, 71, &traced);
    file.extend([9, 0, 0]);
    record(&mut file, 68, &[]);
    file.extend(samples());
    file
}

/// The tracepoints, and which identifier their samples have.
const KINDS: [(u16, u64); 2] = [(SWITCH, 100), (WAKING, 101)];

/// What samples of a tracepoint have: the identifier, ip, tid, time, CPU, period, raw.
fn attribute(kind: u16) -> Vec<u8> {
    const SIZE: u32 = 112;
    const SAMPLE: u64 = 1 << 16 | 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 10;
    let mut attribute = 2u32.to_le_bytes().to_vec();
    attribute.extend(SIZE.to_le_bytes());
    for value in [u64::from(kind), 1, SAMPLE, 4, 1 << 18] {
        attribute.extend(value.to_le_bytes());
    }
    attribute.resize(SIZE as usize, 0);
    attribute
}

/// The records of all events.
fn samples() -> Vec<u8> {
    let mut data = Vec::new();
    for event in &EVENTS {
        let raw = raw(event);
        let id = if matches!(event.2, Event::Switch(..)) { 100u64 } else { 101 };
        let mut sample = id.to_le_bytes().to_vec();
        sample.extend(0u64.to_le_bytes());
        sample.extend(event.1.1.to_le_bytes());
        sample.extend(event.1.1.to_le_bytes());
        sample.extend(event.0.to_le_bytes());
        sample.extend(0u64.to_le_bytes());
        sample.extend(1u64.to_le_bytes());
        // The length and the data fill whole words of 8 bytes together.
        let length = (raw.len() + 4).next_multiple_of(8) - 4;
        sample.extend((length as u32).to_le_bytes());
        sample.extend(&raw);
        sample.resize(sample.len() + length - raw.len(), 0);
        data.extend(9u32.to_le_bytes());
        data.extend(0u16.to_le_bytes());
        data.extend((sample.len() as u16 + 8).to_le_bytes());
        data.extend(sample);
    }
    data
}

/// With its records changed.
fn perf_data_of(changed: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    const HEADER: u64 = 104;
    const ATTR: u64 = 112;
    let ids_at = HEADER + KINDS.len() as u64 * (ATTR + 16);
    let (mut attrs, mut ids) = (Vec::new(), Vec::new());
    for (number, (kind, id)) in KINDS.into_iter().enumerate() {
        attrs.extend(attribute(kind));
        attrs.extend((ids_at + 8 * number as u64).to_le_bytes());
        attrs.extend(8u64.to_le_bytes());
        ids.extend(id.to_le_bytes());
    }
    let data = changed(samples());
    let data_at = ids_at + ids.len() as u64;
    let mut described = descriptions("0.6");
    described.extend(0u64.to_le_bytes());
    let mut file = b"PERFILE2".to_vec();
    for value in [HEADER, ATTR + 16, HEADER, attrs.len() as u64, data_at, data.len() as u64, 0, 0] {
        file.extend(value.to_le_bytes());
    }
    // Of the features, only the descriptions.
    file.extend(2u64.to_le_bytes());
    file.extend([0; 24]);
    file.extend(attrs);
    file.extend(ids);
    file.extend(data);
    let described_at = file.len() as u64 + 16;
    file.extend(described_at.to_le_bytes());
    file.extend((described.len() as u64).to_le_bytes());
    file.extend(described);
    file
}

fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn number(field: u64, value: u64, bytes: &mut Vec<u8>) {
    varint(field << 3, bytes);
    varint(value, bytes);
}

fn message(field: u64, value: &[u8], bytes: &mut Vec<u8>) {
    varint(field << 3 | 2, bytes);
    varint(value.len() as u64, bytes);
    bytes.extend(value);
}

/// A trace of Perfetto, an event each or `compact`.
pub(crate) fn perfetto(compact: bool) -> Vec<u8> {
    let mut bundle = Vec::new();
    number(1, 0, &mut bundle);
    if compact {
        let mut sched = Vec::new();
        for name in ["a", "b", "swapper/0"] {
            message(5, name.as_bytes(), &mut sched);
        }
        let index =
            |name: &Name| ["a", "b", "swapper/0"].iter().position(|n| *n == name.0).unwrap();
        let mut columns = vec![Vec::new(); 13];
        let (mut switched, mut woken) = (0, 0);
        for (time, _, event) in &EVENTS {
            match event {
                Event::Switch(_, state, next) => {
                    varint(time - switched, &mut columns[1]);
                    switched = *time;
                    varint(*state, &mut columns[2]);
                    varint(next.1.into(), &mut columns[3]);
                    varint(next.2.into(), &mut columns[4]);
                    varint(index(next) as u64, &mut columns[6]);
                }
                Event::Waking(task) => {
                    varint(time - woken, &mut columns[7]);
                    woken = *time;
                    varint(task.1.into(), &mut columns[8]);
                    varint(0, &mut columns[9]);
                    varint(task.2.into(), &mut columns[10]);
                    varint(index(task) as u64, &mut columns[11]);
                    varint(1, &mut columns[12]);
                }
            }
        }
        for (field, column) in columns.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
            message(field as u64, column, &mut sched);
        }
        message(4, &sched, &mut bundle);
    } else {
        for (time, current, event) in &EVENTS {
            let mut out = Vec::new();
            number(1, *time, &mut out);
            number(2, current.1.into(), &mut out);
            number(5, 1, &mut out);
            let mut fields = Vec::new();
            let task = |first: u64, task: &Name, fields: &mut Vec<u8>| {
                message(first, task.0.as_bytes(), fields);
                number(first + 1, task.1.into(), fields);
                number(first + 2, task.2.into(), fields);
            };
            match event {
                Event::Switch(prev, state, next) => {
                    task(1, prev, &mut fields);
                    number(4, *state, &mut fields);
                    task(5, next, &mut fields);
                    message(4, &fields, &mut out);
                }
                Event::Waking(woken) => {
                    task(1, woken, &mut fields);
                    message(20, &fields, &mut out);
                }
            }
            message(2, &out, &mut bundle);
        }
    }
    let mut packet = Vec::new();
    message(1, &bundle, &mut packet);
    let mut file = Vec::new();
    message(1, &packet, &mut file);
    // Another packet, and one more packed in it.
    let mut inner = Vec::new();
    message(1, &[0x40, 7], &mut inner);
    let mut zip = ZlibEncoder::new(Vec::new(), Compression::fast());
    zip.write_all(&inner).unwrap();
    let mut packet = Vec::new();
    message(50, &zip.finish().unwrap(), &mut packet);
    message(1, &packet, &mut file);
    file
}

fn systrace() -> Vec<u8> {
    let text = FTRACE.replace('\n', "\\n");
    format!("{{\"traceEvents\":[],\"systemTraceEvents\":\"{text}\"}}").into_bytes()
}

#[test]
fn the_page_about_imports_lists_all_formats() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/imports.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut rows = page.lines().skip_while(|line| *line != "|---|---|---|").skip(1);
    for format in IMPORTERS {
        let endings: Vec<String> = format.endings.iter().map(|name| format!("`{name}`")).collect();
        let row = format!("| `{}` | {} | {} |", format.name, format.summary, endings.join(", "));
        assert_eq!(rows.next(), Some(row.as_str()));
    }
}
