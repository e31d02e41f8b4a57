//! cyclictest of rt-tests: how late threads wake up. It prints whole microseconds, or nanoseconds
//! if its arguments say so.
//!
//! With `-h` or `-H` it prints a line for each latency, with how often each thread had it, and a
//! line each for all the least, mean and greatest latencies, and for how many were beyond. Without,
//! it prints a line for each thread.

use super::Values;

/// Whether a line is one of a histogram.
pub fn is_histogram(line: &str) -> bool {
    counted(line).is_some()
}

/// A latency, and how many threads had it how often in all.
fn counted(line: &str) -> Option<(u64, u64)> {
    if !line.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().ok());
    let latency = numbers.next()??;
    let counts: Option<Vec<u64>> = numbers.collect();
    let counts = counts.filter(|counts| !counts.is_empty())?;
    Some((latency, counts.iter().sum()))
}

/// The numbers behind a beginning.
fn listed(line: &str, beginning: &str) -> Option<Vec<u64>> {
    line.strip_prefix(beginning)?.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// The number behind a word in the line of a thread.
fn after(line: &str, word: &str) -> Option<u64> {
    line.split_once(word)?.1.split_whitespace().next()?.parse().ok()
}

/// What one line says of threads: least, mean, greatest, and how many.
#[derive(Default)]
struct Threads {
    least: Vec<u64>,
    means: Vec<u64>,
    greatest: Vec<u64>,
    counts: Vec<u64>,
    beyond: u64,
}

impl Threads {
    fn read(&mut self, line: &str) {
        let numbers = |beginning| listed(line, beginning);
        if let Some(least) = numbers("# Min Latencies:") {
            self.least = least;
        } else if let Some(means) = numbers("# Avg Latencies:") {
            self.means = means;
        } else if let Some(greatest) = numbers("# Max Latencies:") {
            self.greatest = greatest;
        } else if let Some(beyond) = numbers("# Histogram Overflows:") {
            self.beyond = beyond.iter().sum();
        } else if line.starts_with("T:") {
            let thread = [" C:", " Min:", " Avg:", " Max:"].map(|word| after(line, word));
            if let [Some(count), Some(least), Some(mean), Some(greatest)] = thread {
                self.counts.push(count);
                self.least.push(least);
                self.means.push(mean);
                self.greatest.push(greatest);
            }
        }
    }
}

/// What it has measured, over all threads.
pub fn values(output: &str, arguments: &[String]) -> Values {
    let is_exact = arguments.iter().any(|word| word == "-N" || word == "--nsecs");
    let unit = if is_exact { 1 } else { 1000 };
    let mut threads = Threads::default();
    let mut histogram = Vec::new();
    for line in output.lines() {
        match counted(line) {
            Some(counted) => histogram.push(counted),
            None => threads.read(line),
        }
    }
    let within: u64 = histogram.iter().map(|(_, count)| count).sum();
    let count = within + threads.beyond + threads.counts.iter().sum::<u64>();
    let mut values = Values::new();
    let mut say = |name: &str, number: u64| values.push((name.to_string(), number));
    let (Some(least), Some(greatest)) = (threads.least.iter().min(), threads.greatest.iter().max())
    else {
        return values;
    };
    say("wakeup_min_ns", least * unit);
    // Threads may have woken up at different intervals, but of a histogram only the sum is exact.
    let sum: u64 = histogram.iter().map(|(latency, count)| latency * count).sum();
    let of_threads = threads.means.iter().zip(&threads.counts).map(|(mean, count)| mean * count);
    let mean = match (threads.beyond, within) {
        (0, 1..) => (sum * unit).checked_div(within),
        (_, 0) => (of_threads.sum::<u64>() * unit).checked_div(count),
        _ => None,
    };
    if let Some(mean) = mean {
        say("wakeup_mean_ns", mean);
    }
    say("wakeup_max_ns", greatest * unit);
    for percent in [50, 90, 99] {
        let place = (count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = histogram.iter().find(|(_, count)| {
            seen += count;
            seen >= place
        });
        if let Some((latency, _)) = found {
            say(&format!("wakeup_p{percent}_ns"), latency * unit);
        }
    }
    say("wakeup_count", count);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> String {
        let values = values(output, &[]);
        let words = values.iter().map(|(name, number)| format!("{name} {number}"));
        words.collect::<Vec<_>>().join(", ")
    }

    /// As cyclictest 2.10 prints it.
    const HISTOGRAM: &str = "\
# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000000
000001 000002\t000006
000002 000001\t000000
000003 000000\t000001
# Total: 000000003 000000007
# Min Latencies: 00001 00001
# Avg Latencies: 00001 00001
# Max Latencies: 00002 00003
# Histogram Overflows: 00000 00000
# Histogram Overflow at cycle number:
# Thread 0:
# Thread 1:
";

    #[test]
    fn a_histogram_has_percentiles() {
        assert_eq!(
            shown(HISTOGRAM),
            "wakeup_min_ns 1000, wakeup_mean_ns 1300, wakeup_max_ns 3000, wakeup_p50_ns 1000, \
             wakeup_p90_ns 2000, wakeup_p99_ns 3000, wakeup_count 10"
        );
    }

    /// What is beyond the histogram has no percentile and leaves no mean.
    #[test]
    fn beyond_the_histogram_nothing_is_known() {
        let output = HISTOGRAM.replace("Overflows: 00000", "Overflows: 00010");
        let output = output.replace("00002 00003\n", "00002 90000\n");
        assert_eq!(
            shown(&output),
            "wakeup_min_ns 1000, wakeup_max_ns 90000000, wakeup_p50_ns 3000, wakeup_count 20"
        );
    }

    #[test]
    fn threads_have_a_line_each() {
        let output = "\
T: 0 (  512) P: 0 I:1000 C:    300 Min:      2 Act:    4 Avg:    4 Max:      20
T: 1 (  513) P: 0 I:1500 C:    100 Min:      1 Act:    9 Avg:    8 Max:      10
";
        assert_eq!(
            shown(output),
            "wakeup_min_ns 1000, wakeup_mean_ns 5000, wakeup_max_ns 20000, wakeup_count 400"
        );
    }

    #[test]
    fn nanoseconds_are_asked_for() {
        let output = "T: 0 (  9) P: 0 I:1000 C:      1 Min:    215 Act:  4 Avg:  230 Max:  260\n";
        let values = values(output, &["-l".into(), "1".into(), "-N".into()]);
        assert_eq!(values[0], ("wakeup_min_ns".to_string(), 215));
    }

    #[test]
    fn lines_of_a_histogram_are_not_for_people() {
        assert!(is_histogram("000001 000002\t000006"));
        assert!(!is_histogram("# Total: 000000003"));
        assert!(!is_histogram("T: 0 (  512) P: 0"));
    }
}
