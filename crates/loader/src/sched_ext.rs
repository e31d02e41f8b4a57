//! sched_ext, the kernel's scheduling class for BPF programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where BPF programs are pinned, so that they outlive the program that registers them.
const PINS: &str = "sys/fs/bpf/anysched";

/// For how long the kernel may take to change over.
const PATIENCE: Duration = Duration::from_secs(5);

/// sched_ext of a running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedExt {
    root: PathBuf,
    bpftool: PathBuf,
}

impl SchedExt {
    /// That of this kernel; `bpftool` registers programs.
    pub fn new(bpftool: impl Into<PathBuf>) -> SchedExt {
        SchedExt::under(Path::new("/"), bpftool)
    }

    /// As [`SchedExt::new`], with the kernel's files below `root`.
    pub fn under(root: &Path, bpftool: impl Into<PathBuf>) -> SchedExt {
        SchedExt { root: root.into(), bpftool: bpftool.into() }
    }

    /// `enabled` while a program schedules, `disabled` while none does, other words in between;
    /// `None`: this kernel does not have sched_ext.
    pub fn state(&self) -> Option<String> {
        self.read("state")
    }

    /// The name of the program that schedules.
    pub fn program(&self) -> Option<String> {
        self.read("root/ops")
    }

    fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join("sys/kernel/sched_ext").join(name)).ok()?;
        Some(text.trim().into())
    }

    /// Registers the program in `object` and waits until it schedules.
    ///
    /// Errors: what the kernel says against it.
    pub fn register(&self, object: &Path) -> Result<(), String> {
        let pins = self.root.join(PINS);
        fs::create_dir_all(&pins).map_err(|error| format!("{}: {error}", pins.display()))?;
        let registered = self.run(object, &pins).and_then(|()| self.await_state("enabled"));
        if registered.is_err() {
            // What has failed is pinned all the same.
            let _ = self.unpin();
        }
        registered
    }

    /// Takes out what was registered, and waits until the kernel's own scheduler is back.
    ///
    /// Errors: the kernel does not do it.
    pub fn unregister(&self) -> Result<(), String> {
        self.unpin()?;
        self.await_end()
    }

    /// Waits until the kernel's own scheduler is back.
    ///
    /// Errors: it is not, after a while.
    pub fn await_end(&self) -> Result<(), String> {
        self.await_state("disabled")
    }

    fn run(&self, object: &Path, pins: &Path) -> Result<(), String> {
        let mut bpftool = Command::new(&self.bpftool);
        let output = bpftool.args(["struct_ops", "register"]).arg(object).arg(pins).output();
        let output = output.map_err(|error| format!("{}: {error}", self.bpftool.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Err(format!("{}: bpftool: {}\n{}", object.display(), output.status, said.trim()))
    }

    fn unpin(&self) -> Result<(), String> {
        let pins = self.root.join(PINS);
        let Ok(entries) = fs::read_dir(&pins) else { return Ok(()) };
        for pin in entries.flatten() {
            let removed = fs::remove_file(pin.path());
            removed.map_err(|error| format!("{}: {error}", pin.path().display()))?;
        }
        fs::remove_dir(&pins).map_err(|error| format!("{}: {error}", pins.display()))
    }

    fn await_state(&self, wanted: &str) -> Result<(), String> {
        let start = Instant::now();
        loop {
            match self.state() {
                Some(state) if state == wanted => return Ok(()),
                Some(state) if start.elapsed() >= PATIENCE => {
                    return Err(format!("sched_ext is {state} after {PATIENCE:?}, not {wanted}"));
                }
                Some(_) => sleep(Duration::from_millis(1)),
                None => return Err("this kernel does not have sched_ext".into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a kernel whose scheduler is `ops`, if it is enabled.
    fn kernel(state: &str) -> (tempfile::TempDir, SchedExt) {
        let root = tempfile::tempdir().unwrap();
        let files = root.path().join("sys/kernel/sched_ext");
        fs::create_dir_all(files.join("root")).unwrap();
        fs::write(files.join("state"), format!("{state}\n")).unwrap();
        fs::write(files.join("root/ops"), "anysched\n").unwrap();
        let kernel = SchedExt::under(root.path(), "false");
        (root, kernel)
    }

    #[test]
    fn what_is_pinned_is_removed() {
        let (root, kernel) = kernel("disabled");
        assert_eq!(kernel.program().as_deref(), Some("anysched"));
        kernel.unregister().unwrap();
        let pins = root.path().join(PINS);
        fs::create_dir_all(&pins).unwrap();
        fs::write(pins.join("anysched"), "").unwrap();
        kernel.unregister().unwrap();
        assert!(!pins.exists());
    }

    #[test]
    fn a_program_that_is_refused_leaves_no_pin() {
        let (root, kernel) = kernel("disabled");
        let error = kernel.register(Path::new("/a.bpf.o")).unwrap_err();
        assert!(error.starts_with("/a.bpf.o: bpftool: exit status: 1"), "{error}");
        assert!(!root.path().join(PINS).exists());
    }

    #[test]
    fn a_kernel_without_it_says_so() {
        let root = tempfile::tempdir().unwrap();
        let kernel = SchedExt::under(root.path(), "true");
        assert_eq!(kernel.state(), None);
        let error = kernel.unregister().unwrap_err();
        assert_eq!(error, "this kernel does not have sched_ext");
    }
}
