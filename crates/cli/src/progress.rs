//! How far runs are: a bar on a terminal for anything over a second, elsewhere a line now and then
//! for anything that takes minutes.

use anysched_host::Host;
use anysched_lab::{Journal, Progress, RunOptions, available_jobs};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls `run` with options that make `jobs` runs on `host` at a time (one per hardware thread if
/// that is `None`) until `cancel` is true, but for those in
/// `journal`, and shows progress in a bar.
pub fn with_bar<T>(
    host: &dyn Host,
    jobs: Option<u16>,
    cancel: &AtomicBool,
    journal: Option<&Journal>,
    run: impl FnOnce(&RunOptions<'_>) -> T,
) -> T {
    let shown = Shown::new();
    let result = run(&RunOptions {
        host,
        jobs: jobs.map_or_else(available_jobs, usize::from),
        cancel,
        journal,
        progress: &|progress| shown.update(progress),
    });
    shown.finish();
    result
}

/// Progress of runs that are made elsewhere and come back.
pub struct Counted {
    shown: Shown,
    total: usize,
    /// How many were back from the first.
    before: usize,
}

impl Counted {
    /// Of `total` runs, with so many that are done already.
    pub fn new(total: usize, before: usize) -> Counted {
        Counted { shown: Shown::new(), total, before }
    }

    /// Shows that so many are done.
    pub fn update(&self, done: usize) {
        let (back, rest) = (done - self.before, self.total.saturating_sub(done));
        let left =
            (back > 0).then(|| self.shown.started.elapsed().mul_f64(rest as f64 / back as f64));
        let (total, progress) = (self.total, done as f64);
        let (policy, group) = ("on the cluster", "");
        self.shown.update(&Progress { done, total, progress, left, policy, group });
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shown.finish();
    }
}

/// How far a search is whose end nobody knows: a line on a terminal, anew every second.
pub struct Searching {
    on_terminal: bool,
    began: Instant,
    last: Cell<Duration>,
}

impl Searching {
    /// It begins now.
    pub fn new() -> Searching {
        let on_terminal = std::io::stderr().is_terminal();
        Searching { on_terminal, began: Instant::now(), last: Cell::default() }
    }

    /// Shows what `far` says, and since when it has been going on.
    pub fn update(&self, far: impl FnOnce() -> String) {
        let passed = self.began.elapsed();
        if self.on_terminal && passed > self.last.get() + Duration::from_secs(1) {
            self.last.set(passed);
            eprint!("\r{}, {} s\x1b[K", far(), passed.as_secs());
        }
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        if self.last.get() > Duration::ZERO {
            eprint!("\r\x1b[K");
        }
    }
}

/// What is shown of progress, and where.
struct Shown {
    started: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    on_terminal: bool,
    /// There once it has taken more than [`PATIENCE`], on a terminal.
    bar: Option<ProgressBar>,
    /// When a line is printed next, elsewhere.
    next_line: Duration,
    /// What was last known.
    left: Option<(Duration, Instant)>,
}

/// After so long there is a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// After so long there is a line, after twice as long the next one, and so on.
const FIRST_LINE: Duration = Duration::from_secs(10);

/// Less than this is not worth a line.
const SOON: Duration = Duration::from_secs(30);

/// Parts of a run in a bar.
const PARTS: f64 = 100.0;

impl Shown {
    fn new() -> Shown {
        let on_terminal = std::io::stderr().is_terminal();
        let inner = Inner { on_terminal, bar: None, next_line: FIRST_LINE, left: None };
        Shown { started: Instant::now(), inner: Mutex::new(inner) }
    }

    /// Shows how far it is.
    fn update(&self, progress: &Progress<'_>) {
        let elapsed = self.started.elapsed();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = progress.left {
            inner.left = Some((left, Instant::now()));
        }
        if !inner.on_terminal {
            if let Some(line) = inner.line(progress, elapsed) {
                eprintln!("anysched: {line}");
            }
            return;
        }
        if elapsed < PATIENCE {
            return;
        }
        let message = message(progress, inner.left());
        let bar = inner.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr();
            let length = (progress.total as f64 * PARTS) as u64;
            let bar = ProgressBar::with_draw_target(Some(length), target);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {wide_msg}") {
                bar.set_style(style);
            }
            bar.with_elapsed(elapsed)
        });
        bar.set_message(message);
        bar.set_position((progress.progress * PARTS) as u64);
    }

    /// Removes the bar.
    fn finish(&self) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = &inner.bar {
            bar.finish_and_clear();
        }
    }
}

impl Inner {
    /// What is to be said where there is no terminal, if it is time to.
    fn line(&mut self, progress: &Progress<'_>, elapsed: Duration) -> Option<String> {
        let left = self.left();
        if elapsed < self.next_line || left.is_some_and(|left| left < SOON) {
            return None;
        }
        self.next_line = elapsed * 2;
        Some(line(progress, elapsed, left))
    }

    /// How long the rest takes, by what was last known.
    fn left(&self) -> Option<Duration> {
        self.left.map(|(left, since)| left.saturating_sub(since.elapsed()))
    }
}

/// `12 of 60 runs, about 3 min left: eevdf, scenario = synthetic mix`
fn message(progress: &Progress<'_>, left: Option<Duration>) -> String {
    let left = left.map_or(String::new(), |left| format!(", about {} left", in_words(left)));
    format!("{} of {} runs{left}: {}", progress.done, progress.total, about(progress))
}

/// The same for those who read it later.
fn line(progress: &Progress<'_>, elapsed: Duration, left: Option<Duration>) -> String {
    let elapsed = in_words(elapsed);
    let left = match left {
        Some(left) => format!("about {} left", in_words(left)),
        None => "no telling yet how long the rest takes".to_string(),
    };
    let share = progress.progress / progress.total.max(1) as f64 * 100.0;
    format!(
        "{} of {} runs after {elapsed} ({share:.2} %), {left} (now: {}); Ctrl-C ends it",
        progress.done,
        progress.total,
        about(progress)
    )
}

/// Which run it is about.
fn about(progress: &Progress<'_>) -> String {
    match progress.group {
        "" => progress.policy.to_string(),
        group => format!("{}, {group}", progress.policy),
    }
}

/// A time as one says it: `40 s`, `12 min`, `3.5 h`, `41 days`.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        ..315_576_000.0 => format!("{:.0} days", seconds / 86_400.0),
        _ => format!("{:.0} years", seconds / 31_557_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(group: &str) -> Progress<'_> {
        Progress { done: 3, total: 20, progress: 3.25, left: None, policy: "eevdf", group }
    }

    #[test]
    fn progress_in_words() {
        let minutes = Some(Duration::from_secs(200));
        assert_eq!(message(&progress(""), minutes), "3 of 20 runs, about 3 min left: eevdf");
        assert_eq!(message(&progress(""), None), "3 of 20 runs: eevdf");
        let elapsed = Duration::from_secs(10);
        assert_eq!(
            line(&progress("machine.cpus = 2"), elapsed, minutes),
            "3 of 20 runs after 10 s (16.25 %), about 3 min left (now: eevdf, machine.cpus = 2); \
             Ctrl-C ends it"
        );
        assert!(line(&progress(""), elapsed, None).contains("no telling yet"));
    }

    #[test]
    fn lines_come_ever_more_seldom_and_not_for_what_is_over_soon() {
        let left = Some((Duration::from_secs(3600), Instant::now()));
        let mut inner = Inner { on_terminal: false, bar: None, next_line: FIRST_LINE, left };
        let mut at = |seconds| inner.line(&progress(""), Duration::from_secs(seconds)).is_some();
        let said: Vec<u64> = (0..100).filter(|seconds| at(*seconds)).collect();
        assert_eq!(said, [10, 20, 40, 80]);
        inner.left = Some((Duration::from_secs(20), Instant::now()));
        assert_eq!(inner.line(&progress(""), Duration::from_secs(1000)), None);
    }

    #[test]
    fn times_in_words() {
        for (seconds, words) in [
            (0, "0 s"),
            (99, "99 s"),
            (150, "2 min"),
            (7200, "2.0 h"),
            (4 * 86_400, "4 days"),
            (1 << 40, "34841 years"),
        ] {
            assert_eq!(in_words(Duration::from_secs(seconds)), words);
        }
        assert!(in_words(Duration::MAX).ends_with(" years"));
    }
}
