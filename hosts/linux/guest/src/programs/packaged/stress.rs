//! Programs that do as much as they can: hackbench of rt-tests, stress-ng, sysbench.

use super::Values;
use super::decimal::{behind, scaled};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// The value of this name, if there is one.
fn one(name: &str, number: Option<u64>) -> Option<(String, u64)> {
    number.map(|number| (name.to_string(), number))
}

/// hackbench's time.
pub fn hackbench(output: &str, _: &[String]) -> Values {
    let time = output.lines().find_map(|line| behind(line, "Time:", SECOND));
    one("time_ns", time).into_iter().collect()
}

/// Bogo operations of each of stress-ng's stressors, and of one a second of real time.
pub fn stress_ng(output: &str, _: &[String]) -> Values {
    let mut values = Values::new();
    for line in output.lines() {
        let Some((_, metrics)) = line.split_once("metrc: [") else { continue };
        let words: Vec<&str> = metrics.split_whitespace().skip(1).collect();
        // Stressor, operations, seconds: real, user's, kernel's; operations a second, real and not.
        let [stressor, operations, _, _, _, rate, _, ..] = words[..] else { continue };
        let stressor = stressor.replace('-', "_");
        values.extend(one(&format!("{stressor}_bogo_ops"), scaled(operations, 1)));
        values.extend(one(&format!("{stressor}_bogo_ops_per_second"), scaled(rate, 1)));
    }
    values
}

/// sysbench's events, and their latency.
pub fn sysbench(output: &str, _: &[String]) -> Values {
    let figures = [
        ("events", "total number of events:", 1),
        ("total_time_ns", "total time:", SECOND),
        ("latency_min_ns", "min:", MILLISECOND),
        ("latency_mean_ns", "avg:", MILLISECOND),
        ("latency_p95_ns", "95th percentile:", MILLISECOND),
        ("latency_max_ns", "max:", MILLISECOND),
    ];
    let find = |(name, beginning, unit): (&str, &str, u64)| {
        let find = |line: &str| behind(line.trim_end_matches('s'), beginning, unit);
        one(name, output.lines().find_map(find))
    };
    figures.into_iter().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(values: &Values) -> Vec<(&str, u64)> {
        values.iter().map(|(name, number)| (name.as_str(), *number)).collect()
    }

    /// As hackbench of rt-tests 2.10 prints it.
    #[test]
    fn hackbench_has_a_time() {
        let output = "Running in process mode with 2 groups using 10 file descriptors each\n\
                      Each sender will pass 50 messages of 100 bytes\nTime: 0.105\n";
        assert_eq!(pairs(&hackbench(output, &[])), [("time_ns", 105_000_000)]);
    }

    /// As stress-ng 0.22 prints it.
    #[test]
    fn stressors_have_operations() {
        let output = include_str!("samples/stress-ng.txt");
        let expected = [
            ("cpu_bogo_ops", 1021),
            ("cpu_bogo_ops_per_second", 1013),
            ("sem_sysv_bogo_ops", 20),
            ("sem_sysv_bogo_ops_per_second", 20),
        ];
        assert_eq!(pairs(&stress_ng(output, &[])), expected);
    }

    /// As sysbench 1.0.20 prints it.
    #[test]
    fn sysbench_has_events_and_latencies() {
        let output = "
CPU speed:
    events per second:  2459.95

General statistics:
    total time:                          1.0078s
    total number of events:              2481

Latency (ms):
         min:                                    0.24
         avg:                                    0.81
         max:                                   68.30
         95th percentile:                        8.28
         sum:                                 2001.31
";
        let expected = [
            ("events", 2481),
            ("total_time_ns", 1_007_800_000),
            ("latency_min_ns", 240_000),
            ("latency_mean_ns", 810_000),
            ("latency_p95_ns", 8_280_000),
            ("latency_max_ns", 68_300_000),
        ];
        assert_eq!(pairs(&sysbench(output, &[])), expected);
    }
}
