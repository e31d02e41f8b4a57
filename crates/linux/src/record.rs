//! A recording of this machine's scheduler, by the kernel's tracefs.
//!
//! It has an instance of its own, so that nothing of what users trace changes. Text is read while
//! it grows; the file gets its name and a header when it is whole.

use crate::attach::Machine;
use crate::during::{GoingOn, Signals};
use anysched_core::Span;
use anysched_host::{End, Recorded, Recording};
use anysched_loader::tracefs;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where tracefs is mounted.
const PLACES: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// What the importer of recordings reads.
const EVENTS: [&str; 7] = [
    "sched_migrate_task",
    "sched_process_exit",
    "sched_process_fork",
    "sched_switch",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_waking",
];

/// One clock of all CPUs, in seconds with a fraction.
const CLOCK: &str = "mono";

/// The format, as importers call it.
const FORMAT: &str = "ftrace";

/// An instance's name begins with it and ends with the number of the process.
const PREFIX: &str = "anysched-";

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 18;

/// What reading a pipe without waiting takes.
const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Records what `order` says.
///
/// Errors: what is missing, and what to do about it; events were lost.
pub fn record(order: &Recording<'_>) -> Result<Recorded, String> {
    let machine = Machine::here();
    machine.require_root(&format!("record -o {}", order.output.display()))?;
    let directory = directory(machine.root())?;
    remove_stale(&directory, machine.root());
    let signals = Signals::notice()?;
    let text = Temporary::create(order.output)?;
    let instance = Instance::make(&directory, order.buffer)?;
    let (mut text, elapsed, end) = recorded(&instance, order, &signals, text)?;
    let lost = instance.lost()?;
    drop(instance);
    let events = text.events;
    let header = header(&machine, lost);
    if lost == 0 || order.lossy {
        text.name(order.output, &header)?;
        return Ok(Recorded { format: FORMAT, events, lost, elapsed, end });
    }
    let partial = order.output.with_added_extension("partial");
    text.name(&partial, &header)?;
    Err(format!(
        "{lost} events found no room and are missing: take a larger --buffer than {} KiB, or \
         --lossy; what there is of them is in {}",
        order.buffer >> 10,
        partial.display()
    ))
}

/// Has the instance record, and takes all of it.
fn recorded(
    instance: &Instance,
    order: &Recording<'_>,
    signals: &Signals,
    mut text: Temporary,
) -> Result<(Temporary, Span, End), String> {
    let mut pipe = instance.pipe()?;
    instance.write("tracing_on", "1")?;
    let start = Instant::now();
    let mut going_on = GoingOn::begin(order.during, signals)?;
    let mut bytes = vec![0; CHUNK];
    let far = start + FAR;
    let mut take = || drain(&mut pipe, &mut bytes, &mut text).err();
    let end = loop {
        match going_on.wait(far, &mut take) {
            Some(Ok(end)) => break end,
            Some(Err(why)) => return Err(why),
            None => {}
        }
    };
    instance.write("tracing_on", "0")?;
    let elapsed = Span(start.elapsed().as_nanos() as u64);
    drain(&mut pipe, &mut bytes, &mut text)?;
    Ok((text, elapsed, end))
}

const FAR: Duration = Duration::from_secs(1 << 30);

/// Takes what has been recorded so far.
fn drain(pipe: &mut File, bytes: &mut [u8], text: &mut Temporary) -> Result<(), String> {
    loop {
        match pipe.read(bytes) {
            Ok(0) => return Ok(()),
            Ok(length) => text.write(&bytes[..length])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("the trace cannot be read: {error}")),
        }
    }
}

/// What the recording begins with. The importer reads the number of CPUs.
fn header(machine: &Machine, lost: u64) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let whole = match lost {
        0 => "no event is missing".to_string(),
        lost => format!("{lost} events are missing"),
    };
    let kernel = machine.kernel();
    format!(
        "# tracer: nop\n#\n# anysched record: Linux {kernel}, clock {CLOCK}, {whole}\n\
         #   #P:{cpus}\n"
    )
}

/// The directory of tracefs.
///
/// Errors: it is not mounted.
fn directory(root: &Path) -> Result<PathBuf, String> {
    let mut places = PLACES.iter().map(|place| root.join(place));
    let found = places.find(|place| place.join("events/sched").is_dir());
    found.ok_or_else(|| {
        "tracefs is not mounted, or the kernel has no events of the scheduler: `sudo mount -t \
         tracefs tracefs /sys/kernel/tracing`"
            .into()
    })
}

/// Removes instances of processes that were killed before they could.
fn remove_stale(tracefs: &Path, root: &Path) {
    for entry in fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        if process.is_some_and(|number| !root.join(format!("proc/{number}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// An instance of tracefs, removed when this is dropped.
struct Instance(PathBuf);

impl Instance {
    /// Makes one that records nothing yet, with so many bytes for all CPUs.
    fn make(tracefs: &Path, buffer: u64) -> Result<Instance, String> {
        let path = tracefs.join("instances").join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let instance = Instance(path);
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", CLOCK)?;
        let each = (buffer >> 10) / instance.cpus()?.len().max(1) as u64;
        instance.write("buffer_size_kb", &each.max(1).to_string())?;
        for event in EVENTS {
            instance.write(&format!("events/sched/{event}/enable"), "1")?;
        }
        Ok(instance)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(file);
        fs::write(&path, text).map_err(|error| format!("{}: {text}: {error}", path.display()))
    }

    /// The text of events as they come; each is read once.
    fn pipe(&self) -> Result<File, String> {
        let path = self.0.join("trace_pipe");
        let opened = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(&path);
        opened.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The directories of its CPUs.
    fn cpus(&self) -> Result<Vec<PathBuf>, String> {
        let path = self.0.join("per_cpu");
        let entries =
            fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(entries.flatten().map(|entry| entry.path()).collect())
    }

    /// Events that found no room, or were overwritten before they were read.
    fn lost(&self) -> Result<u64, String> {
        let mut lost = 0;
        for cpu in self.cpus()? {
            let path = cpu.join("stats");
            let text = fs::read_to_string(&path);
            lost += tracefs::lost(&text.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        Ok(lost)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The text under another name; removed when this is dropped before it has its own.
struct Temporary {
    path: PathBuf,
    out: Option<Out>,
    is_compressed: bool,
    events: u64,
}

enum Out {
    Plain(BufWriter<File>),
    Compressed(GzEncoder<BufWriter<File>>),
}

impl Temporary {
    fn create(output: &Path) -> Result<Temporary, String> {
        let path = output.with_added_extension("new");
        let is_compressed = output.extension().is_some_and(|ending| ending == "gz");
        let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Temporary { path, out: Some(Out::of(file, is_compressed)), is_compressed, events: 0 })
    }

    fn fault(&self, error: io::Error) -> String {
        format!("{}: {error}", self.path.display())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.events += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let written = match &mut self.out {
            Some(out) => out.write_all(bytes),
            None => Ok(()),
        };
        written.map_err(|error| self.fault(error))
    }

    /// Puts it after `header` in the file `output`.
    fn name(&mut self, output: &Path, header: &str) -> Result<(), String> {
        let named = self.out.take().map_or(Ok(()), Out::end).and_then(|()| {
            let whole = output.with_added_extension("whole");
            let mut head = Out::of(File::create(&whole)?, self.is_compressed);
            head.write_all(header.as_bytes())?;
            head.end()?;
            // What is compressed in parts is read as one.
            let mut all = OpenOptions::new().append(true).open(&whole)?;
            io::copy(&mut File::open(&self.path)?, &mut all)?;
            fs::rename(&whole, output)
        });
        named.map_err(|error| format!("{}: {error}", output.display()))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Out {
    fn of(file: File, is_compressed: bool) -> Out {
        let file = BufWriter::new(file);
        match is_compressed {
            true => Out::Compressed(GzEncoder::new(file, Compression::fast())),
            false => Out::Plain(file),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Out::Plain(file) => file.write_all(bytes),
            Out::Compressed(file) => file.write_all(bytes),
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Out::Plain(mut file) => file.flush(),
            Out::Compressed(file) => file.finish()?.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_workload::import::ftrace;

    const LINES: &str = "          <idle>-0       [000] d..2. 10.000001: sched_switch: \
                         prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                         next_comm=cc1 next_pid=42 next_prio=120\n             cc1-42      [000] \
                         d..2. 10.002001: sched_switch: prev_comm=cc1 prev_pid=42 prev_prio=120 \
                         prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";

    fn written(name: &str) -> (tempfile::TempDir, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let mut text = Temporary::create(&path).unwrap();
        text.write(LINES.as_bytes()).unwrap();
        assert_eq!(text.events, 2);
        text.name(&path, &header(&Machine::here(), 0)).unwrap();
        drop(text);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        (directory, bytes)
    }

    #[test]
    fn importers_read_what_is_written() {
        for name in ["a.txt", "a.txt.gz"] {
            let (_directory, bytes) = written(name);
            assert_eq!(bytes.starts_with(&[0x1f, 0x8b]), name.ends_with(".gz"));
            let recording = ftrace::Recording::read(bytes.as_slice()).unwrap();
            assert_eq!(recording.switches(), 2, "{name}");
        }
        let (_directory, bytes) = written("a.txt");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("clock mono, no event is missing\n#"), "{text}");
    }

    #[test]
    fn what_is_lost_is_said() {
        assert!(header(&Machine::here(), 10).contains(", 10 events are missing\n"));
    }

    #[test]
    fn tracefs_is_found_or_said_how_to_mount() {
        let root = tempfile::tempdir().unwrap();
        let error = directory(root.path()).unwrap_err();
        assert!(error.ends_with("`sudo mount -t tracefs tracefs /sys/kernel/tracing`"), "{error}");
        for place in ["sys/kernel/debug/tracing", "sys/kernel/tracing"] {
            let place = root.path().join(place);
            fs::create_dir_all(place.join("events/sched")).unwrap();
            assert_eq!(directory(root.path()).unwrap(), place);
        }
    }

    #[test]
    fn instances_of_processes_that_are_gone_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let instances = root.path().join("instances");
        for name in ["anysched-1", "anysched-2", "users"] {
            fs::create_dir_all(instances.join(name)).unwrap();
        }
        fs::create_dir_all(root.path().join("proc/2")).unwrap();
        remove_stale(root.path(), root.path());
        let names = fs::read_dir(&instances).unwrap().flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["anysched-2", "users"]);
    }
}
