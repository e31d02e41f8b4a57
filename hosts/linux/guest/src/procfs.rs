//! Files of the kernel, read.

/// CPU time of a task in nanoseconds, from the text of its `schedstat`: CPU time, time waited,
/// picks.
pub fn cpu_time(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// How often a task was picked, from the text of its `schedstat`.
pub fn dispatches(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(2)?.parse().ok()
}

/// The state of a task, from the text of its `stat`: `R` if it is running or ready.
pub fn state(stat: &str) -> Option<char> {
    // Its name, in brackets, may be anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Context switches of all CPUs, from the text of `/proc/stat`.
pub fn switches(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()
}

/// Tasks that have been created since the machine booted, from the text of `/proc/stat`.
pub fn forks(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("processes "))?.trim().parse().ok()
}

/// What sched_ext says in a record of the kernel's log: numbers, a semicolon and the text; lines
/// that begin with a space say where it comes from.
pub fn sched_ext_says(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (_, text) = record.split_once(';')?;
    let said = text.lines().next()?.strip_prefix("sched_ext: ")?;
    Some(said.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_kernel() {
        assert_eq!(dispatches("52347061 1204733 317\n"), Some(317));
        assert_eq!(dispatches("52347061 1204733\n"), None);
        assert_eq!((cpu_time("52347061 1204733 317\n"), cpu_time("")), (Some(52_347_061), None));
        assert_eq!((state("7 (a) S (b)) R 1 7"), state("")), (Some('R'), None));
        let stat =
            "cpu  1 0 2 3 0 0 0 0 0 0\nintr 9 0\nctxt 30817\nbtime 1767225600\nprocesses 81\n";
        assert_eq!((forks(stat), forks("ctxt 1\n")), (Some(81), None));
        assert_eq!((switches(stat), switches("btime 1\n")), (Some(30_817), None));
    }

    #[test]
    fn records_of_the_log() {
        let record = b"3,412,4080943,-;sched_ext: tiny: asked to die\n SUBSYSTEM=x\n";
        assert_eq!(sched_ext_says(record).as_deref(), Some("tiny: asked to die"));
        for other in [&b"6,1,2,-;smpboot: sched_ext: 4"[..], b"sched_ext: x", b""] {
            assert_eq!(sched_ext_says(other), None);
        }
    }

    #[test]
    fn files_of_this_kernel() {
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert!(switches(&read("/proc/stat")).unwrap() > 0);
    }
}
