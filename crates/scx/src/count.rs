//! What an [`Adapter`](crate::Adapter) counts, for status lines and results.

/// Numbers of events on a CPU since the policy was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Picks that gave a CPU a task.
    pub dispatches: u64,
    /// Of these, picks of the task that the CPU ran.
    pub kept: u64,
    /// Picks that found nothing.
    pub idle: u64,
    /// Running tasks that a kick took off.
    pub preemptions: u64,
    /// Picks of a task that ran on another CPU last.
    pub migrations: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Kicks that the policy asked for.
    pub kicks: u64,
    /// Picks that came to nothing: the kernel had taken the task elsewhere.
    pub undone: u64,
    /// Times a task ran without having been picked: migration disabled, or bound to its CPU.
    pub unasked: u64,
}

/// How long woken tasks were ready before they were picked: a histogram whose buckets are an eighth
/// of a power of two wide.
#[derive(Clone, Debug)]
pub struct Latencies {
    buckets: [u32; Latencies::BUCKETS],
}

impl Latencies {
    /// How many buckets there are.
    pub const BUCKETS: usize = 38 * 8;

    /// None yet.
    pub const fn new() -> Latencies {
        Latencies { buckets: [0; Latencies::BUCKETS] }
    }

    /// Counts a latency in nanoseconds.
    pub fn record(&mut self, latency: u64) {
        let bucket = &mut self.buckets[Latencies::bucket(latency)];
        *bucket = bucket.saturating_add(1);
    }

    /// The bucket of a latency in nanoseconds.
    fn bucket(latency: u64) -> usize {
        if latency < 8 {
            return latency as usize;
        }
        let power = latency.ilog2() as usize;
        let eighth = (latency >> (power - 3)) as usize & 7;
        (((power - 2) << 3) + eighth).min(Latencies::BUCKETS - 1)
    }

    /// The lowest latency of a bucket, in nanoseconds.
    pub const fn floor(bucket: usize) -> u64 {
        if bucket < 8 {
            return bucket as u64;
        }
        (8 + (bucket as u64 & 7)) << ((bucket >> 3) - 1)
    }

    /// The buckets with something in them: the lowest latency of each in nanoseconds, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (Latencies::floor(bucket), *count))
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn buckets_are_an_eighth_of_a_power_of_two() {
        for latency in (0..5000).chain([1 << 20, (1 << 30) + 12_345, (1 << 38) - 1]) {
            let bucket = Latencies::bucket(latency);
            let (low, high) = (Latencies::floor(bucket), Latencies::floor(bucket + 1));
            assert!(low <= latency && latency < high, "{latency}: {low} {high}");
            assert!(high - low <= (low / 8).max(1), "{latency}: {low} {high}");
        }
        assert_eq!(Latencies::bucket(u64::MAX), Latencies::BUCKETS - 1);
        let mut all = Latencies::new();
        for latency in [0, 9, 1000, 1001, u64::MAX] {
            all.record(latency);
        }
        let found: Vec<(u64, u32)> = all.iter().collect();
        assert_eq!(found[..3], [(0, 1), (9, 1), (960, 2)]);
        assert_eq!(found.len(), 4);
    }
}
