//! Which metrics exist, by name, and what a run has shown of each.

use crate::benchmark::{BENCHMARK_METRICS, TASK_METRICS};
use crate::metrics::{METRICS, Metrics};
use crate::summary::Summary;
use crate::table::{Kind, Measured, MetricInfo};
use std::collections::BTreeMap;
use std::fmt;

/// What policies count of themselves; `NAME` is what [`anysched_core::Scheduler::tally`] calls it.
/// A name that ends with `_ns` denotes a time.
pub static TALLY_METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "policy.NAME",
        unit: "1",
        what: "What the policy counted under NAME, over all CPUs.",
        kind: Kind::Total,
    },
    MetricInfo {
        name: "policy.NAME_cv",
        unit: "1",
        what: "Coefficient of variation over CPUs of what the policy counted under NAME, where it \
               counts it for each.",
        kind: Kind::Derived,
    },
];

/// What tallies of policies begin with.
const POLICY: &str = "policy.";

/// All metrics, in the order of columns.
pub fn metric_infos() -> impl Iterator<Item = &'static MetricInfo> {
    [METRICS, BENCHMARK_METRICS, TASK_METRICS, TALLY_METRICS].into_iter().flatten()
}

/// A metric. They are ordered as columns are: what every run is judged by, what benchmarks
/// measure, what policies count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric(Id);

/// Positions are those in the lists of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Id {
    General(usize),
    Benchmark(usize),
    Task { metric: usize, task: usize },
    Tally { name: &'static str, variation: bool },
}

impl Metric {
    /// What every run is judged by: [`METRICS`].
    pub fn general() -> impl Iterator<Item = Metric> {
        (0..METRICS.len()).map(|position| Metric(Id::General(position)))
    }

    /// The sum of what policies count as `name`.
    pub fn tally(name: &'static str) -> Metric {
        Metric(Id::Tally { name, variation: false })
    }

    /// The coefficient of variation over CPUs of what policies count as `name`.
    pub fn tally_cv(name: &'static str) -> Metric {
        Metric(Id::Tally { name, variation: true })
    }

    /// The metric of this name, if policies count what `tallies` lists.
    pub fn named(name: &str, tallies: &[&'static str]) -> Option<Metric> {
        let position = |list: &[MetricInfo]| list.iter().position(|info| info.name == name);
        if let Some(position) = position(METRICS) {
            return Some(Metric(Id::General(position)));
        }
        if let Some(position) = position(BENCHMARK_METRICS) {
            return Some(Metric(Id::Benchmark(position)));
        }
        if name.starts_with(POLICY) {
            let known =
                tallies.iter().flat_map(|name| [Metric::tally(name), Metric::tally_cv(name)]);
            return known.into_iter().find(|metric| metric.to_string() == name);
        }
        let of_task = |(metric, info): (usize, &MetricInfo)| {
            let (before, after) = info.name.split_once('N')?;
            let task = name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()?;
            Some(Metric(Id::Task { metric, task })).filter(|metric| metric.to_string() == name)
        };
        TASK_METRICS.iter().enumerate().find_map(of_task)
    }

    fn info(self) -> &'static MetricInfo {
        match self.0 {
            Id::General(position) => &METRICS[position],
            Id::Benchmark(position) => &BENCHMARK_METRICS[position],
            Id::Task { metric, .. } => &TASK_METRICS[metric],
            Id::Tally { variation, .. } => &TALLY_METRICS[usize::from(variation)],
        }
    }

    /// Whether a run has many values of it.
    pub fn is_distribution(self) -> bool {
        self.info().kind == Kind::Distribution
    }

    /// Whether every run has it, not only those of some benchmarks or policies.
    pub fn is_general(self) -> bool {
        matches!(self.0, Id::General(_))
    }

    /// What it is, in a sentence.
    pub fn what(self) -> &'static str {
        self.info().what
    }

    /// Its unit, as [`MetricInfo::unit`].
    pub fn unit(self) -> &'static str {
        match self.0 {
            Id::Tally { name, variation: false } if name.ends_with("_ns") => "ns",
            _ => self.info().unit,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Id::General(_) | Id::Benchmark(_) => f.write_str(self.info().name),
            Id::Task { task, .. } => {
                let (before, after) = self.info().name.split_once('N').unwrap_or_default();
                write!(f, "{before}{task}{after}")
            }
            Id::Tally { name, variation } => {
                write!(f, "{POLICY}{name}{}", if variation { "_cv" } else { "" })
            }
        }
    }
}

impl Metrics {
    /// All that was measured, in the order of [`Metric`].
    pub fn measured(&self) -> Vec<(Metric, Measured<'_>)> {
        let known = |id: fn(usize) -> Id| {
            move |(position, measured)| Some((Metric(id(position)), measured?))
        };
        let mut all: Vec<_> =
            self.table().into_iter().enumerate().filter_map(known(Id::General)).collect();
        let benchmark = self.benchmark.table().into_iter().enumerate();
        all.extend(benchmark.filter_map(known(Id::Benchmark)));
        for metric in 0..TASK_METRICS.len() {
            let of_task =
                |(task, value)| (Metric(Id::Task { metric, task }), Measured::Number(value));
            all.extend(self.benchmark.of_tasks(metric).map(of_task));
        }
        all.extend(self.tallies().map(|(metric, value)| (metric, Measured::Number(value))));
        all
    }

    /// What the policy has counted.
    fn tallies(&self) -> impl Iterator<Item = (Metric, f64)> {
        let mut tallies = BTreeMap::<&'static str, Summary>::new();
        for (name, count) in &self.policy {
            tallies.entry(name).or_default().record(*count);
        }
        tallies.into_iter().flat_map(|(name, each)| {
            let variation = Some(each.sd() / each.mean());
            let variation = variation.filter(|cv| each.count() > 1 && cv.is_finite());
            let sum = (Metric::tally(name), each.sum() as f64);
            [Some(sum), variation.map(|cv| (Metric::tally_cv(name), cv))].into_iter().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Benchmark;
    use anysched_core::{Span, Time};
    use anysched_workload::Measured as Said;
    use anysched_workload::rng::Rng;

    #[test]
    fn every_metric_says_what_it_is() {
        let infos: Vec<&MetricInfo> = metric_infos().collect();
        for (number, info) in infos.iter().enumerate() {
            let MetricInfo { name, unit, what, .. } = info;
            assert!(what.ends_with('.') && what.len() > 10, "{name}: {what}");
            assert!(what.chars().next().is_some_and(char::is_uppercase), "{name}: {what}");
            assert!(infos[..number].iter().all(|other| other.name != *name), "{name} twice");
            let by_name = match () {
                () if name.ends_with("_ns") => "ns",
                () if name.ends_with("_percent") => "%",
                () if name.ends_with("_per_s") => "/s",
                () => "1",
            };
            assert_eq!(*unit, by_name, "{name}");
        }
    }

    #[test]
    fn names_lead_back_to_their_metrics() {
        let tallies = ["boost_ns", "switches"];
        let names = metric_infos().map(|info| info.name);
        for name in names.filter(|name| !name.contains('N')) {
            assert_eq!(Metric::named(name, &[]).unwrap().to_string(), name);
        }
        for name in ["finish_0_ns", "leave_12_ns", "groups_300", "policy.switches"] {
            assert_eq!(Metric::named(name, &tallies).unwrap().to_string(), name);
        }
        let unit = |name| Metric::named(name, &tallies).map(Metric::unit);
        assert_eq!(unit("policy.boost_ns"), Some("ns"));
        assert_eq!(unit("policy.boost_ns_cv"), Some("1"));
        for name in ["", "finish__ns", "finish_01_ns", "finish_+1_ns", "finish_N_ns", "policy.x"] {
            assert_eq!(Metric::named(name, &tallies), None, "{name}");
        }
    }

    #[test]
    fn nothing_is_measured_unless_it_is_said() {
        assert!(Metrics::default().measured().is_empty());
        let names: Vec<String> =
            Metrics::from_zero().measured().iter().map(|(metric, _)| metric.to_string()).collect();
        assert!(names.contains(&"migrations".to_string()));
        // Nothing has arrived, no job is known, no CPU was in use.
        for absent in ["makespan_ns", "deadline_miss_ratio", "utilisation", "throughput_per_s"] {
            assert!(!names.contains(&absent.to_string()), "{absent}");
        }
    }

    #[test]
    fn what_is_derived_needs_all_that_it_is_derived_from() {
        let mut metrics = Metrics { busy: crate::Total::of(Span(3)), ..Metrics::default() };
        let value = |metrics: &Metrics, name| {
            let metric = Metric::named(name, &[]).unwrap();
            let measured = metrics.measured();
            measured.iter().find(|(known, _)| *known == metric).map(|(_, value)| match value {
                Measured::Number(number) => *number,
                Measured::Distribution(..) => panic!("{name} is a distribution"),
            })
        };
        assert_eq!((value(&metrics, "busy_ns"), value(&metrics, "utilisation")), (Some(3.0), None));
        metrics.overhead = crate::Total::of(Span(1));
        metrics.idle = crate::Total::of(Span(2));
        assert_eq!(value(&metrics, "utilisation"), None, "time may have been stolen");
        metrics.stolen = crate::Total::of(Span::ZERO);
        assert_eq!(value(&metrics, "utilisation"), Some(0.5));
    }

    #[test]
    fn tallies_are_summed_and_compared_over_cpus() {
        let policy = vec![("waits", 1), ("boost_ns", 2), ("boost_ns", 4), ("zero", 0), ("zero", 0)];
        let mut metrics = Metrics { policy, ..Metrics::default() };
        let shown = |metrics: &Metrics| -> Vec<String> {
            let show = |(metric, value): (Metric, f64)| format!("{metric} {value:.3}");
            metrics.tallies().map(show).collect()
        };
        let expected = [
            "policy.boost_ns 6.000",
            "policy.boost_ns_cv 0.471",
            "policy.waits 1.000",
            "policy.zero 0.000",
        ];
        assert_eq!(shown(&metrics), expected);
        metrics.merge(&Metrics { policy: vec![("waits", 3)], ..Metrics::default() });
        assert_eq!(shown(&metrics)[2..4], ["policy.waits 4.000", "policy.waits_cv 0.707"]);
    }

    /// One of everything that a benchmark may report; tasks are those from `first` on.
    fn say(benchmark: &mut Benchmark, first: u16, draw: &mut impl FnMut() -> u64) {
        for thread in 0..3 {
            let n = draw() as u32;
            benchmark.record(Said::Latency { thread, latency: Span(draw()) });
            benchmark.record(Said::Deadlines { met: n, missed: n / 3 });
            benchmark.record(Said::Work { done: n, missed: n / 7 });
            benchmark.record(Said::Elapsed(Span(draw())));
            benchmark.record(Said::Rate(draw()));
            let thread = first + thread;
            benchmark.record(Said::Finished { thread, time: Span(draw()) });
            benchmark.record(Said::Left { thread, time: Span(draw()) });
            benchmark.record(Said::Groups { thread, groups: n, work: Span(draw()) });
        }
    }

    /// For every metric of the tables: what two machines did counts as if one machine had done
    /// both.
    #[test]
    fn merging_is_recording_all_in_one() {
        let mut random = Rng::from_seed(7);
        let mut draw = || random.below(1_000_000);
        let [mut left, mut right, mut both] = [(); 3].map(|()| Metrics::from_zero());
        for (half, first_task) in [(&mut left, 0), (&mut right, 3)] {
            for _ in 0..100 {
                let drawn: Vec<u64> = (0..200).map(|_| draw()).collect();
                for metrics in [&mut *half, &mut both] {
                    let mut numbers = drawn.iter().copied();
                    let mut next = || numbers.next().unwrap();
                    metrics.record_each(&mut next);
                    metrics.benchmark.record_each(&mut next);
                    say(&mut metrics.benchmark, first_task, &mut next);
                    metrics.policy.push(("switches", next()));
                    let at = Time(next());
                    let earlier = metrics.first_arrival.is_none_or(|first| at < first);
                    metrics.first_arrival = if earlier { Some(at) } else { metrics.first_arrival };
                    metrics.last_completion = metrics.last_completion.max(at + Span(next()));
                }
            }
        }
        left.merge(&right);
        let (merged, all) = (left.measured(), both.measured());
        let (tables, tallies) = (METRICS.len() + BENCHMARK_METRICS.len(), TALLY_METRICS.len());
        assert_eq!(all.len(), tables + 6 * TASK_METRICS.len() + tallies, "there is data for all");
        assert_eq!(merged.len(), all.len());
        for ((metric, found), (other, expected)) in merged.iter().zip(&all) {
            assert_eq!(metric, other);
            match (found, expected) {
                (Measured::Number(found), Measured::Number(expected)) => {
                    assert!((found / expected - 1.0).abs() < 1e-9, "{metric}: {found} {expected}");
                }
                (Measured::Distribution(found, _), Measured::Distribution(expected, _)) => {
                    let of = |summary: &Summary| {
                        (summary.count(), summary.sum(), summary.min(), summary.max())
                    };
                    assert_eq!(of(found), of(expected), "{metric}");
                    assert_eq!(found.percentiles([50.0, 99.0]), expected.percentiles([50.0, 99.0]));
                }
                _ => panic!("{metric} is a number in one and a distribution in the other"),
            }
        }
    }
}
