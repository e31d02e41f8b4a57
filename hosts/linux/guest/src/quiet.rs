//! Waiting until the kernel has finished booting.
//!
//! It starts `/init` while threads of its own still compute, such as those that test its ciphers,
//! for seconds. Whatever was measured beside them would be theirs too.

use std::fs;
use std::time::{Duration, Instant};

use crate::procfs;

/// For how long it has to be quiet.
const SPAN: Duration = Duration::from_millis(50);

/// CPU time in nanoseconds that others may use in this span: a hundredth of it.
const NEGLIGIBLE: u64 = 500_000;

/// After so long, and before the next tick, nothing is left to do of what this process asked for.
const SETTLED: Duration = Duration::from_millis(2);

/// After this, the program starts all the same.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until other tasks leave the CPUs alone.
pub fn wait() {
    let start = Instant::now();
    let mut before = used_by_others();
    while start.elapsed() < PATIENCE {
        std::thread::sleep(SPAN);
        let after = used_by_others();
        // Less than before: a task that had used time has ended, and may have used more.
        if (before..=before + NEGLIGIBLE).contains(&after) {
            return;
        }
        before = after;
    }
}

/// Computes until all other CPUs have gone idle: while this one stops the machine, they would go on
/// for as long as it takes this computer.
pub fn settle() {
    let start = Instant::now();
    while start.elapsed() < SETTLED {}
}

/// CPU time that all processes but this one have used, in nanoseconds.
fn used_by_others() -> u64 {
    let own = std::process::id();
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let names = processes.flatten().map(|process| process.file_name());
    // Names that are no numbers are of other things.
    let numbers = names.filter_map(|name| name.to_str()?.parse().ok());
    let others = numbers.filter(|number: &u32| *number != own);
    let schedstat = |number: u32| fs::read_to_string(format!("/proc/{number}/schedstat")).ok();
    others.filter_map(schedstat).filter_map(|text| procfs::cpu_time(&text)).sum()
}
