//! What a policy did in an interval, as text.

use crate::output::short_time;
use anysched_core::Span;
use anysched_host::{RunningTask, Sample, SampledCpu, SampledLog};
use anysched_lab::output::align;
use std::fmt::Write;

/// Heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The text of a sample, whose first line begins with `title`.
pub fn table(title: &str, sample: &Sample) -> String {
    let Sample { elapsed, cpus, calls, called, longest, heap, log, waited, tally, .. } = sample;
    let mut text = format!("{title} {}\n\n{}", time(*elapsed), of_cpus(sample, cpus));
    let _ = write!(text, "\ncalls {}/s", rate(*calls, sample.interval));
    if *calls > 0 {
        let mean = short_time(called.0 as f64 / *calls as f64);
        let _ = write!(text, ", {mean} each, {} at most", time(*longest));
    }
    if let Some((used, size)) = heap {
        let _ = write!(text, "; heap {} of {}", bytes(*used), bytes(*size));
    }
    if let Some(SampledLog { used, size, lost }) = log {
        let _ = write!(text, "; log {} of {}, {lost} lost", bytes(*used), bytes(*size));
    }
    text.push('\n');
    text.push_str(&latencies(waited, sample.interval));
    if !tally.is_empty() {
        let all: Vec<String> =
            tally.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = writeln!(text, "{}", all.join(", "));
    }
    text
}

/// A line for each CPU, and one for all.
fn of_cpus(sample: &Sample, cpus: &[SampledCpu]) -> String {
    let head = ["CPU", "runs", "queued", "dispatches/s", "preemptions/s", "migrations/s"];
    let rates = |all: [u64; 3]| all.map(|count| rate(count, sample.interval));
    let mut lines = vec![head.map(String::from)];
    let (mut queued, mut counts) = (0, [0; 3]);
    for cpu in cpus {
        let all = [cpu.dispatches, cpu.preemptions, cpu.migrations];
        let [dispatches, preemptions, migrations] = rates(all);
        let runs = cpu.runs.as_ref().map_or("-".into(), task);
        let (number, waiting) = (cpu.number.to_string(), cpu.queued.to_string());
        lines.push([number, runs, waiting, dispatches, preemptions, migrations]);
        queued += cpu.queued;
        counts.iter_mut().zip(all).for_each(|(sum, count)| *sum += count);
    }
    if cpus.len() > 1 {
        let [dispatches, preemptions, migrations] = rates(counts);
        let all = "all".to_string();
        lines.push([all, "".into(), queued.to_string(), dispatches, preemptions, migrations]);
    }
    align::rows(&lines, 2)
}

/// `17 cc1 (4711)`.
fn task(task: &RunningTask) -> String {
    match &task.thread {
        Some((pid, name)) => format!("{} {name} ({pid})", task.number),
        None => task.number.to_string(),
    }
}

/// How long woken tasks waited: percentiles, and a bar for each power of two.
fn latencies(waited: &[(Span, u64)], interval: Span) -> String {
    let count: u64 = waited.iter().map(|(_, count)| count).sum();
    let mut text = format!("wake-ups {}/s", rate(count, interval));
    if let Some([p50, p90, p99, max]) = percentiles(waited) {
        let [p50, p90, p99, max] = [p50, p90, p99, max].map(time);
        let _ = write!(text, ", latency p50 {p50}, p90 {p90}, p99 {p99}, max {max}");
    }
    text.push('\n');
    if let (Some((least, _)), Some((most, _))) = (waited.first(), waited.last()) {
        let power = |span: Span| span.0.max(1).ilog2();
        let mut bars = vec![0; (power(*most) - power(*least) + 1) as usize];
        for (span, count) in waited {
            bars[(power(*span) - power(*least)) as usize] += count;
        }
        let highest = bars.iter().copied().max().unwrap_or(0).max(1);
        let bar = |count: &u64| match count {
            0 => ' ',
            count => BARS[(u128::from(*count) * 7 / u128::from(highest)) as usize],
        };
        let edge = |power: u32| short_time((1_u64 << power.min(63)) as f64);
        let bars: String = bars.iter().map(bar).collect();
        let (low, high) = (edge(power(*least)), edge(power(*most) + 1));
        let _ = writeln!(text, "{low} {bars} {high}");
    }
    text
}

/// The medians, 90th and 99th percentiles and the maximum of a histogram, each to the lower end of
/// its bucket; `None`: it is empty.
pub fn percentiles(histogram: &[(Span, u64)]) -> Option<[Span; 4]> {
    let all: u64 = histogram.iter().map(|(_, count)| count).sum();
    let at = |percent: u64| {
        let wanted = (u128::from(all) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let found = histogram.iter().find(|(_, count)| {
            seen += u128::from(*count);
            seen >= wanted
        });
        found.map(|(span, _)| *span)
    };
    Some([at(50)?, at(90)?, at(99)?, at(100)?])
}

fn time(span: Span) -> String {
    short_time(span.0 as f64)
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e9
}

/// How often a second.
fn rate(count: u64, interval: Span) -> String {
    format!("{:.0}", count as f64 / seconds(interval.max(Span(1))))
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_by_hand() {
        let thread = Some((4711, "cc1".into()));
        let sample = Sample {
            elapsed: Span::from_ms(12_000),
            interval: Span::from_ms(500),
            cpus: vec![
                SampledCpu {
                    number: 0,
                    runs: Some(RunningTask { number: 17, thread }),
                    queued: 2,
                    dispatches: 617,
                    preemptions: 6,
                    migrations: 1,
                    wakeups: 10,
                },
                SampledCpu { number: 1, dispatches: 3, ..SampledCpu::default() },
            ],
            calls: 2000,
            called: Span(654_000),
            longest: Span(7100),
            heap: Some((1_258_291, 16 << 20)),
            log: Some(SampledLog { used: 3072, size: 64 << 20, lost: 0 }),
            waited: vec![(Span(960), 6), (Span(1024), 2), (Span(4096), 2)],
            tally: vec![("boosts".into(), 3)],
        };
        let expected = "\
fair after 12s

CPU  runs           queued  dispatches/s  preemptions/s  migrations/s
0    17 cc1 (4711)       2          1234             12             2
1    -                   0             6              0             0
all                      2          1240             12             2

calls 4000/s, 327ns each, 7.1us at most; heap 1.2 MiB of 16.0 MiB; log 3.0 KiB of 64.0 MiB, 0 lost
wake-ups 20/s, latency p50 960ns, p90 4.096us, p99 4.096us, max 4.096us
512ns █▃ ▃ 8.192us
boosts 3
";
        assert_eq!(table("fair after", &sample), expected);
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        let text = table("fair after", &Sample::default());
        assert!(text.ends_with("\ncalls 0/s\nwake-ups 0/s\n"), "{text}");
        assert_eq!(percentiles(&[]), None);
    }

    #[test]
    fn percentiles_are_of_all_samples() {
        let spans = [(Span(1), 50), (Span(2), 40), (Span(3), 9), (Span(4), 1)];
        assert_eq!(percentiles(&spans), Some([Span(1), Span(2), Span(3), Span(4)]));
        assert_eq!(percentiles(&[(Span(5), 1)]), Some([Span(5); 4]));
    }
}
