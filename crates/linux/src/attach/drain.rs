//! The log of decisions, written to a file while it grows.

use anysched_core::recorder;
use anysched_loader::LOG;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

/// How long to wait when there was nothing.
const PAUSE: Duration = Duration::from_millis(2);

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// A thread that writes the log.
pub struct Drain {
    path: PathBuf,
    temporary: PathBuf,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Drain {
    /// Begins to write the log to `path`, under another name until it is whole.
    ///
    /// Errors: the log cannot be read, or the file not be written.
    pub fn begin(path: &Path) -> Result<Drain, String> {
        let log = File::open(LOG).map_err(|error| format!("{LOG}: {error}"))?;
        Drain::of(log, path)
    }

    fn of(mut log: impl Read + Send + 'static, path: &Path) -> Result<Drain, String> {
        let temporary = partial(path);
        let file = File::create(&temporary);
        let file = file.map_err(|error| format!("{}: {error}", temporary.display()))?;
        let ended = Arc::new(AtomicBool::new(false));
        let asked = ended.clone();
        let thread = std::thread::spawn(move || copy(&mut log, file, &asked));
        Ok(Drain { path: path.into(), temporary, ended, thread })
    }

    /// Writes what is left; nothing is added to the log any more, and `lost` records found no room.
    /// Returns how many bytes there are.
    ///
    /// Errors: something was lost, or the file cannot be written; what there is keeps its other
    /// name.
    pub fn end(self, lost: u64) -> Result<u64, String> {
        self.ended.store(true, Ordering::Release);
        let written = match self.thread.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        written.map_err(|error| format!("{}: {error}", self.temporary.display()))?;
        keep(&self.temporary, &self.path, lost)
    }
}

/// Gives a log in `partial` its name, `path`, if no record was lost. Returns how many bytes it has.
///
/// Errors: `lost` records found no room, which is noted at its end, or it cannot be renamed.
pub fn keep(partial: &Path, path: &Path, lost: u64) -> Result<u64, String> {
    let fault = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    if lost > 0 {
        let mut mark = Vec::new();
        recorder::lost(&mut mark, lost);
        let file = OpenOptions::new().append(true).open(partial);
        file.and_then(|mut file| file.write_all(&mark)).map_err(|error| fault(partial, error))?;
        return Err(format!(
            "{lost} records found no room in the log's buffer, and the log ends before them; what \
             there is of it is in {}",
            partial.display()
        ));
    }
    let bytes = fs::metadata(partial).map_err(|error| fault(partial, error))?.len();
    fs::rename(partial, path).map_err(|error| fault(path, error))?;
    Ok(bytes)
}

fn copy(log: &mut impl Read, file: File, ended: &AtomicBool) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    let mut bytes = vec![0; CHUNK];
    loop {
        // Before reading: what comes between would be missed.
        let is_last = ended.load(Ordering::Acquire);
        let length = log.read(&mut bytes)?;
        file.write_all(&bytes[..length])?;
        match (length, is_last) {
            (0, true) => return file.flush(),
            (0, false) => sleep(PAUSE),
            _ => {}
        }
    }
}

/// The name of a log that is to be called `path` as long as it is not whole.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("log")).to_os_string();
    name.push(".partial");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::recorder::{Recorder, replay};
    use anysched_core::{CpuMask, Cx, Machine, Scheduler, Time};
    use anysched_policies::policy;

    #[test]
    fn a_log_has_its_name_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        let drain = Drain::of(&b"decisions"[..], &path).unwrap();
        assert_eq!(drain.end(0), Ok(9));
        assert_eq!(fs::read(&path).unwrap(), b"decisions");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_with_losses_keeps_the_other_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        let error = Drain::of(&b"decisions"[..], &path).unwrap().end(3).unwrap_err();
        assert!(error.starts_with("3 records") && error.ends_with("a.log.partial"), "{error}");
        assert!(!path.exists());
        let partial = fs::read(directory.path().join("a.log.partial")).unwrap();
        assert!(partial.starts_with(b"decisions"), "{partial:?}");
    }

    /// What there is of a log says itself that there is no more.
    #[test]
    fn one_with_losses_is_no_whole_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        let machine = Machine::flat(1).unwrap();
        let rr = || (policy("rr").unwrap().build)(&machine, &[]).unwrap();
        let mut recorded = Recorder::new(rr(), &machine, "rr", &[], Vec::new());
        recorded.timer(&mut Cx::new(Time(1), &mut CpuMask::EMPTY.clone()));
        let log = recorded.into_parts().1;
        let whole = Drain::of(io::Cursor::new(log), &path).unwrap().end(3).unwrap_err();
        assert!(whole.starts_with("3 records"), "{whole}");
        let log = fs::read(partial(&path)).unwrap();
        let error = replay(&log, &mut *rr()).unwrap_err().to_string();
        assert!(error.contains("not whole: 3 records that follow found no room"), "{error}");
    }
}
