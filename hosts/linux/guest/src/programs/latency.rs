//! How soon a task runs that wakes at absolute times, beside processes that never stop computing,
//! and how evenly these share the CPU.
//!
//! Arguments: `spinners`, how many processes compute; `period_ns`, the time between two wake-ups;
//! `work_ns`, for how long the woken task computes; `duration_ns` in all.
//!
//! Values: `wakeup_…_ns` from the time at which the task was to wake until it runs;
//! `spinner_cpu_…_ns`, CPU time of the spinners until the last wake-up, and its coefficient of
//! variation in millionths.

use std::hint::black_box;

use anysched_programs::{Burner, Kernel, Summary, argument};

use crate::kernel::Linux;
use crate::machine::refuse;
use crate::process::Process;
use crate::report::value;
use crate::statistics::variation_millionths;

/// Periods before the first wake-up, for the spinners to begin.
const LEAD: u64 = 5;

/// Runs the program.
pub fn latency() {
    let [spinners, period, work, duration] = [
        ("spinners", 8),
        ("period_ns", 4_000_000),
        ("work_ns", 100_000),
        ("duration_ns", 2_000_000_000),
    ]
    .map(|(name, default)| argument::<Linux>(name, default));
    if period == 0 || duration <= LEAD * period {
        refuse(format_args!(
            "`duration_ns` = {duration}: more than {LEAD} periods of {period} ns are wanted"
        ));
    }
    let burner = Burner::calibrated::<Linux>();
    let spinners: Vec<Process> = (0..spinners).map(|_| Process::start(spin)).collect();
    let delays = delays(&burner, period, work, duration);
    let used: Vec<u64> = spinners.iter().map(Process::cpu_time).collect();
    spinners.into_iter().for_each(Process::kill);
    report(delays, used);
}

/// Computes for ever.
pub fn spin() {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns + 1);
    }
}

/// How late each wake-up was, in nanoseconds.
fn delays(burner: &Burner, period: u64, work: u64, duration: u64) -> Vec<u64> {
    let start = Linux::now();
    let mut next = start + LEAD * period;
    let mut delays = Vec::with_capacity((duration / period) as usize);
    while next < start + duration {
        Linux::sleep_until(next);
        delays.push(Linux::now().saturating_sub(next));
        burner.burn(work);
        let now = Linux::now();
        next += period;
        // Wake-ups that were missed do not count as late: the next is a period away.
        if next < now {
            next = now + period;
        }
    }
    delays
}

fn report(delays: Vec<u64>, used: Vec<u64>) {
    if let Some(delays) = Summary::of(delays) {
        for percent in [50, 90, 99] {
            value(&format!("wakeup_p{percent}_ns"), delays.percentile(percent));
        }
        value("wakeup_max_ns", delays.max());
        value("wakeup_mean_ns", delays.mean());
        value("wakeup_count", delays.count());
    }
    if let Some(used) = Summary::of(used) {
        value("spinner_cpu_min_ns", used.min());
        value("spinner_cpu_max_ns", used.max());
        value("spinner_cpu_mean_ns", used.mean());
        value("spinner_cpu_cv_millionths", variation_millionths(&used));
    }
}
