//! rt-app: the tasks of a JSON file, which each write a log.
//!
//! A line of a log is a round of a task's events; its columns are named in the line above. Of tasks
//! with a timer, `c_period` is its period, `wu_lat` how late the task woke up at its last one, and
//! `slack` how long before the next it was done: all in microseconds.

use std::fs;
use std::io;
use std::path::Path;

use super::{DIRECTORY, Values, distribution};

/// The file, from the host.
pub const FILE: &str = "/etc/anysched/rt-app.json";

/// What runs if the host gives none: a task with a timer beside three that compute. Its
/// `calibration` is what a round of rt-app's loop takes where instructions are counted, in
/// nanoseconds; finding out takes rt-app seconds.
const USUAL: &str = include_str!("rt-app.json");

const MICROSECOND: u64 = 1000;

/// Writes the usual file, unless the host has given one.
pub fn prepare() -> io::Result<()> {
    if Path::new(FILE).exists() { Ok(()) } else { fs::write(FILE, USUAL) }
}

/// What it has measured.
pub fn values(_: &str, _: &[String]) -> Values {
    // A file may name another place for logs.
    let directories = [DIRECTORY, "/tmp", "/"];
    let logs = directories.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let mut paths: Vec<_> = logs.flatten().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    paths.sort();
    let logs: Vec<String> = paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    of_logs(&logs)
}

fn of_logs(logs: &[String]) -> Values {
    let mut wakeups = Vec::new();
    let (mut jobs, mut late) = (0, 0);
    for log in logs {
        let Some(head) = log.lines().find(|line| line.starts_with("#idx")) else { continue };
        let names: Vec<&str> = head.split_whitespace().collect();
        for line in log.lines().filter(|line| !line.starts_with('#')) {
            let numbers: Vec<&str> = line.split_whitespace().collect();
            let number = |name: &str| -> Option<i64> {
                let column = names.iter().position(|known| *known == name)?;
                numbers.get(column)?.parse().ok()
            };
            if number("c_period").is_none_or(|period| period == 0) {
                continue;
            }
            let late_by = number("wu_lat").and_then(|latency| u64::try_from(latency).ok());
            wakeups.extend(late_by.map(|latency| latency * MICROSECOND));
            jobs += 1;
            late += u64::from(number("slack").is_some_and(|slack| slack < 0));
        }
    }
    if jobs == 0 {
        return Values::new();
    }
    let mut values = distribution("wakeup", wakeups);
    values.extend([("jobs".to_string(), jobs), ("late_jobs".to_string(), late)]);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As rt-app 2.0 writes them.
    #[test]
    fn rounds_of_tasks_with_timers_are_jobs() {
        let burner = include_str!("samples/rt-app-burner.log");
        let periodic = include_str!("samples/rt-app-periodic.log");
        let values = of_logs(&[burner.into(), periodic.into()]);
        let values: Vec<_> = values.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        let expected = [
            ("wakeup_mean_ns", 1_257_666),
            ("wakeup_max_ns", 3_707_000),
            ("wakeup_p50_ns", 66_000),
            ("wakeup_p90_ns", 3_707_000),
            ("wakeup_p99_ns", 3_707_000),
            ("wakeup_count", 3),
            ("jobs", 3),
            ("late_jobs", 1),
        ];
        assert_eq!(values, expected);
    }
}
