//! A progress bar for anything over a second, on a terminal.

use anysched_host::Host;
use anysched_lab::{Journal, Progress, RunOptions, available_jobs};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
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
    let bar = Bar::new();
    let result = run(&RunOptions {
        host,
        jobs: jobs.map_or_else(available_jobs, usize::from),
        cancel,
        journal,
        progress: &|progress| bar.update(progress),
    });
    bar.finish();
    result
}

/// Shown after one second; never when standard error is not a terminal.
struct Bar {
    started: Instant,
    bar: OnceLock<ProgressBar>,
    shown: bool,
}

const PATIENCE: Duration = Duration::from_secs(1);

impl Bar {
    fn new() -> Bar {
        let shown = std::io::stderr().is_terminal();
        Bar { started: Instant::now(), bar: OnceLock::new(), shown }
    }

    /// Updates the bar after a run.
    fn update(&self, progress: &Progress<'_>) {
        if !self.shown || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(Some(progress.total as u64), target);
            let style = "{bar:30} {pos} of {len} runs, {eta} left  {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar.with_elapsed(self.started.elapsed())
        });
        bar.set_message(format!("{} {}", progress.policy, progress.group));
        bar.set_position(progress.done as u64);
    }

    /// Removes the bar.
    fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
