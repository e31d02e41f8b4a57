//! How long something about the running machine goes on: a time, a command, until a signal.

use anysched_host::{During, End};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often it is looked whether this is over.
const LOOK: Duration = Duration::from_millis(10);

/// For how long a command that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Signals that end what goes on.
const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// What the kernel says of this process.
const STATUS: &str = "/proc/self/status";

/// Notices signals. From here on, none of them ends this process.
#[derive(Clone, Debug)]
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Notices those that come from here on.
    ///
    /// Errors: the kernel refuses.
    pub fn notice() -> Result<Signals, String> {
        let number = Arc::new(AtomicUsize::new(0));
        let status = std::fs::read_to_string(STATUS).unwrap_or_default();
        for signal in SIGNALS {
            // `nohup` has the end of a terminal ignored, and means it.
            if signal == SIGHUP && ignores(&status, signal) {
                continue;
            }
            register_usize(signal, number.clone(), signal as usize)
                .map_err(|error| format!("signal {signal} cannot be handled: {error}"))?;
        }
        Ok(Signals(number))
    }

    /// The number of the last signal, if one came.
    pub fn seen(&self) -> Option<u8> {
        let number = self.0.load(Ordering::Relaxed);
        (number != 0).then_some(number as u8)
    }
}

/// What goes on. A command that still runs when this is dropped is ended.
pub struct GoingOn {
    signals: Signals,
    until: Option<Instant>,
    command: Option<Child>,
}

impl GoingOn {
    /// Begins.
    ///
    /// Errors: the command cannot be started.
    pub fn begin(during: During<'_>, signals: &Signals) -> Result<GoingOn, String> {
        let mut all = GoingOn { signals: signals.clone(), until: None, command: None };
        match during {
            During::Interrupt => {}
            During::Span(span) => {
                all.until = Instant::now().checked_add(Duration::from_nanos(span.0));
            }
            During::Command(words) => {
                let [program, arguments @ ..] = words else { return Err("no command".into()) };
                let child = Command::new(program).args(arguments).spawn();
                let child = child.map_err(|error| format!("{}: {error}", program.display()))?;
                all.command = Some(child);
            }
        }
        Ok(all)
    }

    /// Whether a command runs.
    pub fn has_command(&self) -> bool {
        self.command.is_some()
    }

    /// Why it is over, if it is.
    pub fn over(&mut self) -> Option<End> {
        if let Some(status) = self.command.as_mut().and_then(|child| child.try_wait().ok()?) {
            self.command = None;
            return Some(End::Command(code(status)));
        }
        if let Some(signal) = self.signals.seen() {
            return Some(End::Signal(signal));
        }
        self.until.is_some_and(|until| Instant::now() >= until).then_some(End::Time)
    }

    /// Waits for its end, but no longer than until `next`, and calls `meanwhile` every few
    /// milliseconds until that returns something.
    pub fn wait<T>(
        &mut self,
        next: Instant,
        mut meanwhile: impl FnMut() -> Option<T>,
    ) -> Option<Result<End, T>> {
        loop {
            if let Some(found) = meanwhile() {
                return Some(Err(found));
            }
            if let Some(end) = self.over() {
                return Some(Ok(end));
            }
            let now = Instant::now();
            let next = self.until.map_or(next, |until| until.min(next));
            if now >= next {
                return None;
            }
            sleep(LOOK.min(next - now));
        }
    }

    /// Waits for the end of the command, if there is one, or a signal.
    pub fn finish(&mut self) {
        while self.command.is_some() && self.over().is_none() {
            sleep(LOOK);
        }
    }
}

impl Drop for GoingOn {
    fn drop(&mut self) {
        let Some(child) = &mut self.command else { return };
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            sleep(LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Whether the process of this status ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.unwrap_or(0) >> (signal - 1) & 1 != 0
}

/// A signal's number counts from 128, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| code.try_into().ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Span;
    use std::ffi::OsString;

    fn end(during: During<'_>) -> End {
        let signals = Signals(Arc::default());
        let mut going_on = GoingOn::begin(during, &signals).unwrap();
        let far = Instant::now() + Duration::from_secs(60);
        going_on.wait(far, || None::<()>).unwrap().unwrap()
    }

    #[test]
    fn a_commands_end_is_its_code() {
        for (line, code) in [("exit 7", 7), ("kill -9 $$", 137)] {
            let words = ["sh", "-c", line].map(OsString::from);
            assert_eq!(end(During::Command(&words)), End::Command(code));
        }
        let none = ["/nonesuch".into()];
        let begun = GoingOn::begin(During::Command(&none), &Signals(Arc::default()));
        assert!(begun.err().unwrap().starts_with("/nonesuch: "));
    }

    #[test]
    fn what_nohup_ignores_is_known() {
        let status = "SigCgt:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        let ignored = [SIGHUP, SIGINT, SIGTERM, 13].map(|signal| ignores(status, signal));
        assert_eq!(ignored, [true, false, false, true]);
    }

    #[test]
    fn a_time_ends_by_itself() {
        let start = Instant::now();
        assert_eq!(end(During::Span(Span::from_ms(30))), End::Time);
        assert!(start.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn a_signal_ends_a_command_that_would_go_on() {
        let signals = Signals(Arc::default());
        let words = ["sleep", "600"].map(OsString::from);
        let mut going_on = GoingOn::begin(During::Command(&words), &signals).unwrap();
        assert_eq!(going_on.wait(Instant::now(), || None::<()>), None);
        assert_eq!(going_on.wait(Instant::now(), || Some(1)), Some(Err(1)));
        signals.0.store(15, Ordering::Relaxed);
        assert_eq!(going_on.over(), Some(End::Signal(15)));
        let start = Instant::now();
        drop(going_on);
        assert!(start.elapsed() < PATIENCE);
    }
}
