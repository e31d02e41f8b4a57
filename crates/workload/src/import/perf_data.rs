//! Recordings by perf, `perf.data`, of the tracepoints `sched:*`.
//!
//! Samples carry the event as the kernel stored it, and the file carries the descriptions of the
//! events' fields, in the format of trace-cmd. The format is that of perf's documentation
//! (`perf.data-file-format.txt`). What was recorded into a pipe (`perf record -o -`) has records
//! for what a file says at its beginning and its end. The format is read here and not by a library:
//! the one that there is panics on damaged files.

use super::ftrace::binary::{Endian, Formats};
use super::ftrace::{Recorder, Recording, Replaying, times};
use super::input::unpacked;
use super::{ImportError, Imported, Importer, Input, ReadError, ReadTimes, Window, trace_dat};
use crate::kinds::{FileName, keys};
use ruzstd::decoding::StreamingDecoder;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

keys! {
    /// The keys of a load that is a recording by perf.
    pub struct PerfData {
        ..replaying: Replaying;
        /// The recording.
        file: FileName = needed, eg "perf.data";
    }
}

impl Importer for PerfData {
    const FORMAT: &'static str = "perf-data";
    const ENDINGS: &'static [&'static str] = &[".data"];
    const TIMES: Option<ReadTimes> = Some(|input, _| times(read(input, Window::default())?));

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP")
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(self.replaying.load(&read(input, self.replaying.window())?))
    }
}

const THIS: &str = "a recording with the scheduler's events: `perf record -a -e sched:sched_switch \
                    -e sched:sched_waking -e sched:sched_wakeup_new -e sched:sched_process_fork \
                    -e sched:sched_process_exit`";

/// Reads the part of a recording that is in `window`.
///
/// Errors: it is none, it is cut, or there is no `sched_switch`.
pub fn read(input: &mut dyn Input, window: Window) -> Result<Recording, ImportError> {
    let mut file = BufReader::with_capacity(1 << 16, unpacked(input)?);
    let header = Header::read(&mut file)?;
    if !header.formats.has_switches() {
        return Err(ImportError::whole(format!(
            "there is no sched_switch event; this has to be {THIS}"
        )));
    }
    // Each CPU has a buffer of its own, which perf writes in turns.
    let mut recorder = Recorder::new(window, false);
    recorder.cpus(header.cpus);
    let endian = header.endian;
    file.seek(SeekFrom::Start(header.data.at))?;
    let mut records = Records { input: file, endian, at: header.data.at, left: header.data.size };
    while let Some((kind, body)) = records.next()? {
        if !matches!(kind, COMPRESSED | COMPRESSED_2) {
            header.take(records.at, kind, &body, &mut recorder)?;
            records.skip_behind(kind, &body)?;
            continue;
        }
        // From here on, what matters is compressed, in one piece over many records.
        let at = records.at;
        let others = Vec::new();
        let mut payloads = Payloads { records, body: Vec::new(), done: 0, others, is_over: false };
        payloads.begin(kind, body);
        let decoder = StreamingDecoder::new(&mut payloads);
        let decoder = decoder.map_err(|error| ImportError::byte(at, error))?;
        let mut unpacked = Records { input: decoder, endian, at, left: u64::MAX };
        // The piece has no end of its own.
        while let Ok(Some((kind, body))) = unpacked.next() {
            header.take(at, kind, &body, &mut recorder)?;
        }
        drop(unpacked);
        if payloads.records.left > 0 {
            let what =
                "what is compressed here cannot be unpacked; write a text with `perf script`";
            return Err(ImportError::byte(payloads.records.at, what));
        }
        for (kind, body) in payloads.others {
            header.take(at, kind, &body, &mut recorder)?;
        }
        break;
    }
    recorder.finish(THIS)
}

/// Kinds of records.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const COMPRESSED: u32 = 81;
const COMPRESSED_2: u32 = 83;
/// Of what is recorded into a pipe: what else has a place at the beginning or end of the file.
const PIPED_ATTRIBUTE: u32 = 64;
const PIPED_TRACING_DATA: u32 = 66;
const PIPED_FEATURE: u32 = 80;
/// With so many bytes behind it, which are not counted as its own.
const TRACE_OF_PROCESSOR: u32 = 71;

/// What a file says before its records.
struct Header {
    endian: Endian,
    data: Section,
    attributes: Vec<Attribute>,
    /// Which attributes the samples with an identifier have.
    by_id: BTreeMap<u64, usize>,
    formats: Formats,
    cpus: u32,
}

/// A part of the file.
#[derive(Clone, Copy)]
struct Section {
    at: u64,
    size: u64,
}

/// What samples of an event contain.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Attribute {
    sample: u64,
    read: u64,
}

/// Descriptions are some MiB at most.
const MOST: u64 = 1 << 28;
const MOST_ATTRIBUTES: u64 = 1 << 16;

fn section(input: &mut impl Input, section: Section) -> Result<Vec<u8>, ImportError> {
    let Section { at, size } = section;
    if size > MOST {
        return Err(ImportError::byte(at, format!("{size} bytes of description are too many")));
    }
    let mut bytes = Vec::new();
    input.seek(SeekFrom::Start(at))?;
    input.take(size).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < size {
        return Err(ImportError::byte(at, format!("the file ends within the next {size} bytes")));
    }
    Ok(bytes)
}

impl Header {
    fn read(file: &mut impl Input) -> Result<Header, ImportError> {
        let start = section(file, Section { at: 0, size: 16 })?;
        let endian = match &start[..8] {
            b"PERFILE2" => Endian::Little,
            b"2ELIFREP" => Endian::Big,
            _ => {
                return Err(ImportError::byte(
                    0,
                    "this is no perf.data, which begins with PERFILE2",
                ));
            }
        };
        let mut header = Header {
            endian,
            data: Section { at: endian.number(&start[8..]), size: 0 },
            attributes: Vec::new(),
            by_id: BTreeMap::new(),
            formats: Formats::new(endian),
            cpus: 0,
        };
        if header.data.at == PIPED_HEADER {
            return header.read_piped(file);
        }
        let head = section(file, Section { at: 0, size: HEADER })?;
        let number = |at: usize| endian.number(&head[at..at + 8]);
        let part = |at: usize| Section { at: number(at), size: number(at + 8) };
        header.data = part(40);
        header.attributes(file, number(16), part(24))?;
        // Behind the data, the place of each feature that the file has, in order.
        let mut place = header.data.at.saturating_add(header.data.size);
        for feature in 0..256 {
            if number(72 + feature / 64 * 8) >> (feature % 64) & 1 == 0 {
                continue;
            }
            let entry = section(file, Section { at: place, size: 16 })?;
            let entry =
                Section { at: endian.number(&entry[..8]), size: endian.number(&entry[8..]) };
            match feature {
                TRACING_DATA => trace_dat::describe(&section(file, entry)?, &mut header.formats)?,
                CPUS => header.count_cpus(&section(file, entry)?),
                _ => {}
            }
            place = place.saturating_add(16);
        }
        Ok(header)
    }

    /// Reads what was recorded into a pipe up to its first event: records have what is otherwise
    /// at the beginning and the end of the file.
    fn read_piped(mut self, file: &mut impl Input) -> Result<Header, ImportError> {
        let end = file.seek(SeekFrom::End(0))?;
        let begin = file.seek(SeekFrom::Start(self.data.at))?;
        let mut records =
            Records { input: file, endian: self.endian, at: begin, left: end - begin };
        loop {
            let at = records.at;
            let Some((kind, body)) = records.next()? else { break };
            match kind {
                SAMPLE | COMPRESSED | COMPRESSED_2 => {
                    self.data = Section { at, size: end - at };
                    break;
                }
                PIPED_ATTRIBUTE => {
                    let size = self.endian.number(body.get(4..8).unwrap_or_default()) as usize;
                    if size < 64 || body.len() < size {
                        let what = "the description of an event makes no sense";
                        return Err(ImportError::byte(at, what));
                    }
                    let (attribute, ids) = body.split_at(size);
                    self.describe(attribute, ids);
                }
                PIPED_TRACING_DATA => {
                    let size = records.behind(kind, &body);
                    let described = records.bytes(size)?;
                    trace_dat::describe(&described, &mut self.formats)?;
                }
                PIPED_FEATURE => {
                    let (feature, content) = body.split_at(body.len().min(8));
                    if self.endian.number(feature) == CPUS as u64 {
                        self.count_cpus(content);
                    }
                }
                _ => records.skip_behind(kind, &body)?,
            }
        }
        if self.attributes.is_empty() {
            return Err(ImportError::byte(begin, "the file describes no events"));
        }
        Ok(self)
    }

    fn count_cpus(&mut self, content: &[u8]) {
        self.cpus = self.endian.number(content.get(4..8).unwrap_or_default()) as u32;
    }

    /// Adds an event, of which samples have these identifiers.
    fn describe(&mut self, attribute: &[u8], ids: &[u8]) {
        let number = |at: usize| self.endian.number(&attribute[at..at + 8]);
        for id in ids.chunks_exact(8) {
            self.by_id.insert(self.endian.number(id), self.attributes.len());
        }
        self.attributes.push(Attribute { sample: number(24), read: number(32) });
    }

    fn attributes(
        &mut self,
        file: &mut impl Input,
        size: u64,
        place: Section,
    ) -> Result<(), ImportError> {
        let at = place.at;
        if !(64..=MOST_ATTRIBUTES).contains(&size) || place.size / size > MOST_ATTRIBUTES {
            return Err(ImportError::byte(at, "the descriptions of its events make no sense"));
        }
        let attributes = section(file, place)?;
        for attribute in attributes.chunks_exact(size as usize) {
            let number = |at: usize| self.endian.number(&attribute[at..at + 8]);
            let end = attribute.len();
            let ids = section(file, Section { at: number(end - 16), size: number(end - 8) })?;
            self.describe(attribute, &ids);
        }
        if self.attributes.is_empty() {
            return Err(ImportError::byte(at, "the file describes no events"));
        }
        Ok(())
    }

    /// What samples of the event that `body` is of contain; `None`: it is not known.
    fn attribute(&self, body: &[u8]) -> Option<Attribute> {
        let first = self.attributes[0];
        if self.attributes.iter().all(|attribute| *attribute == first) {
            return Some(first);
        }
        let id = self.endian.number(body.get(..8)?);
        self.by_id.get(&id).map(|&index| self.attributes[index])
    }

    /// Gives `recorder` what a record at `at` says.
    fn take(
        &self,
        at: u64,
        kind: u32,
        body: &[u8],
        recorder: &mut Recorder,
    ) -> Result<(), ImportError> {
        let cut = || ImportError::byte(at, "the record before this one is cut");
        let number = |at: usize| body.get(at..at + 8).map(|bytes| self.endian.number(bytes));
        match kind {
            LOST => recorder.lost(number(8)),
            LOST_SAMPLES => recorder.lost(number(0)),
            SAMPLE => {
                let attribute = self.attribute(body).ok_or_else(|| {
                    ImportError::byte(at, "the sample before this one is of an unknown event")
                })?;
                let sample = Fields { body, at: 0, endian: self.endian }.sample(attribute);
                let sample = sample.ok_or_else(cut)?;
                let Some(raw) = sample.raw else { return Ok(()) };
                let (Some(time), Some(cpu)) = (sample.time, sample.cpu) else {
                    let what = "the sample before this one has no time or no CPU; record with \
                                `perf record -a -T`";
                    return Err(ImportError::byte(at, what));
                };
                let taken = self.formats.take(raw, cpu as u32, time, recorder);
                taken.map_err(|what| ImportError::byte(at, what))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The size of what begins a file, one into a pipe, and the numbers of features.
const HEADER: u64 = 104;
const PIPED_HEADER: u64 = 16;
const TRACING_DATA: usize = 1;
const CPUS: usize = 7;

/// What is used of a sample.
struct Sample<'a> {
    time: Option<u64>,
    cpu: Option<u64>,
    raw: Option<&'a [u8]>,
}

/// The fields of a record, one after another.
struct Fields<'a> {
    body: &'a [u8],
    at: usize,
    endian: Endian,
}

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let bytes = self.body.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u64> {
        Some(self.endian.number(self.bytes(8)?))
    }

    /// Fields are there or not, in this order; `None`: the record is cut.
    fn sample(mut self, Attribute { sample, read }: Attribute) -> Option<Sample<'a>> {
        let has = |bit: u32| sample >> bit & 1 != 0;
        let mut found = Sample { time: None, cpu: None, raw: None };
        // Its identifier, the instruction, the task.
        for bit in [16, 0, 1] {
            if has(bit) {
                self.number()?;
            }
        }
        if has(2) {
            found.time = Some(self.number()?);
        }
        // The address, the event's number, the stream's.
        for bit in [3, 6, 9] {
            if has(bit) {
                self.number()?;
            }
        }
        if has(7) {
            found.cpu = Some(self.endian.number(self.bytes(4)?));
            self.bytes(4)?;
        }
        if has(8) {
            self.number()?;
        }
        if has(4) {
            // Values of counters: of one, or of a group.
            let times = u64::from((read & 3).count_ones());
            let each = 1 + u64::from((read & 0x14).count_ones());
            let words = match read & 8 {
                0 => times + each,
                _ => times.checked_add(self.number()?.checked_mul(each)?)?,
            };
            self.bytes(words.checked_mul(8)?)?;
        }
        if has(5) {
            let calls = self.number()?;
            self.bytes(calls.checked_mul(8)?)?;
        }
        if has(10) {
            let length = self.endian.number(self.bytes(4)?);
            found.raw = Some(self.bytes(length)?);
        }
        Some(found)
    }
}

/// Records one after another.
struct Records<R> {
    input: R,
    endian: Endian,
    /// Where they are in the file.
    at: u64,
    /// How many bytes are left.
    left: u64,
}

impl<R: Read> Records<R> {
    /// How many bytes follow a record besides those that it counts.
    fn behind(&self, kind: u32, body: &[u8]) -> u64 {
        let number = |length: usize| self.endian.number(body.get(..length).unwrap_or_default());
        match kind {
            PIPED_TRACING_DATA => number(4).next_multiple_of(8),
            TRACE_OF_PROCESSOR => number(8),
            _ => 0,
        }
    }

    fn skip_behind(&mut self, kind: u32, body: &[u8]) -> Result<(), ImportError> {
        let size = self.require(self.behind(kind, body))?;
        io::copy(&mut self.input.by_ref().take(size), &mut io::sink())?;
        (self.at, self.left) = (self.at.saturating_add(size), self.left - size);
        Ok(())
    }

    /// The next bytes, which are no record.
    fn bytes(&mut self, size: u64) -> Result<Vec<u8>, ImportError> {
        let size = self.require(size)?;
        let mut bytes = Vec::new();
        self.input.by_ref().take(size).read_to_end(&mut bytes)?;
        (self.at, self.left) = (self.at.saturating_add(size), self.left - size);
        Ok(bytes)
    }

    /// Errors: fewer than `size` bytes are left.
    fn require(&self, size: u64) -> Result<u64, ImportError> {
        if size > self.left {
            let what = format!("the file ends within the next {size} bytes");
            return Err(ImportError::byte(self.at, what));
        }
        Ok(size)
    }

    /// The next record: its kind, and what is in it.
    fn next(&mut self) -> Result<Option<(u32, Vec<u8>)>, ImportError> {
        if self.left == 0 {
            return Ok(None);
        }
        let at = self.at;
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                ImportError::byte(at, "the file ends within this record")
            }
            _ => ImportError::byte(at, format!("cannot be read: {error}")),
        };
        let mut head = [0; 8];
        self.input.read_exact(&mut head).map_err(cut)?;
        let kind = self.endian.number(&head[..4]) as u32;
        let size = self.endian.number(&head[6..]);
        let Some(length) = size.checked_sub(8).filter(|_| size <= self.left) else {
            return Err(ImportError::byte(at, format!("no record has {size} bytes here")));
        };
        let mut body = vec![0; length as usize];
        self.input.read_exact(&mut body).map_err(cut)?;
        (self.at, self.left) = (at.saturating_add(size), self.left - size);
        Ok(Some((kind, body)))
    }
}

/// What compressed records contain, as one stream.
struct Payloads<R> {
    records: Records<R>,
    /// The payload that is being read, and how much of it is done.
    body: Vec<u8>,
    done: usize,
    /// Records between them that are not compressed.
    others: Vec<(u32, Vec<u8>)>,
    /// The last block has been added.
    is_over: bool,
}

/// Of zstd: an empty block, and a checksum, which is not checked.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R> Payloads<R> {
    fn begin(&mut self, kind: u32, mut body: Vec<u8>) {
        if kind == COMPRESSED_2 {
            // Before it is its length: it is filled up to whole words.
            let length = body.get(..8).map_or(0, |length| self.records.endian.number(length));
            body.drain(..body.len().min(8));
            body.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
        (self.body, self.done) = (body, 0);
    }
}

impl<R: Read> Read for Payloads<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.done == self.body.len() {
            match self.records.next().map_err(io::Error::other)? {
                // perf leaves out the last block, an empty one, for which the decoder waits.
                None if !self.is_over => {
                    self.is_over = true;
                    (self.body, self.done) = (LAST_BLOCK.to_vec(), 0);
                }
                None => return Ok(0),
                Some((kind @ (COMPRESSED | COMPRESSED_2), body)) => self.begin(kind, body),
                Some((kind @ (LOST | LOST_SAMPLES | SAMPLE), body)) => {
                    self.others.push((kind, body));
                }
                Some(_) => {}
            }
        }
        let length = buffer.len().min(self.body.len() - self.done);
        buffer[..length].copy_from_slice(&self.body[self.done..self.done + length]);
        self.done += length;
        Ok(length)
    }
}
