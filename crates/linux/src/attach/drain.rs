//! The log of decisions, written to a file while it grows.

use anysched_loader::LOG;
use std::ffi::OsStr;
use std::fs::{self, File};
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
    thread: JoinHandle<io::Result<u64>>,
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
        let temporary = with_ending(path, ".partial");
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
        let name = self.temporary.display();
        let bytes = written.map_err(|error| format!("{name}: {error}"))?;
        if lost > 0 {
            return Err(format!(
                "{lost} records found no room in the log's buffer, and the log ends before them; \
                 what there is of it is in {name}"
            ));
        }
        let renamed = fs::rename(&self.temporary, &self.path);
        renamed.map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(bytes)
    }
}

fn copy(log: &mut impl Read, file: File, ended: &AtomicBool) -> io::Result<u64> {
    let mut file = BufWriter::new(file);
    let mut bytes = vec![0; CHUNK];
    let mut all = 0;
    loop {
        // Before reading: what comes between would be missed.
        let is_last = ended.load(Ordering::Acquire);
        let length = log.read(&mut bytes)?;
        file.write_all(&bytes[..length])?;
        all += length as u64;
        match (length, is_last) {
            (0, true) => return file.flush().map(|()| all),
            (0, false) => sleep(PAUSE),
            _ => {}
        }
    }
}

/// `path` with more at its end.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("log")).to_os_string();
    name.push(ending);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(fs::read(directory.path().join("a.log.partial")).unwrap(), b"decisions");
    }
}
