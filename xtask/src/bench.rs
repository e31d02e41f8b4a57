//! Benchmarks, and the page that shows their results.

use crate::run::{Failed, cargo, root};

/// Runs the benchmarks and writes docs/performance.md from what they measured.
pub fn bench(args: &[&str]) -> Result<(), Failed> {
    let _ = root();
    let mut command = vec!["bench", "--workspace", "--"];
    command.extend(args);
    cargo(&command)
}
