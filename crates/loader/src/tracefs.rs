//! What the kernel's tracefs counts.

/// Events of a CPU that found no room, or were overwritten before they were read, from the text of
/// its `stats`.
pub fn lost(stats: &str) -> u64 {
    let number = |line: &str| -> Option<u64> {
        let (key, value) = line.split_once(':')?;
        let counts = matches!(key, "overrun" | "commit overrun" | "dropped events");
        counts.then(|| value.trim().parse().ok())?
    };
    stats.lines().filter_map(number).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_lost_is_counted() {
        let stats = "entries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 100\noldest event ts:  1.2\n\
                     now ts: 3.4\ndropped events: 2\nread events: 9\n";
        assert_eq!(super::lost(stats), 10);
    }
}
