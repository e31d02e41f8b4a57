//! What was measured, of what a kernel has said.

use crate::Outcome as Said;
use anysched_core::Span;
use anysched_host::Outcome;
use anysched_measure::{Amount, Metrics, TaskProgress, Total};
use anysched_workload::Measured;

/// What a kernel has said, as what it measured.
pub fn measured(said: Said) -> Outcome {
    let metrics = metrics(&said);
    let Said { values, learned, logs, .. } = said;
    Outcome { metrics, learned, logs, values }
}

/// What the program and the kernel have printed. CPU time is known of a run if it is of all tasks.
fn metrics(said: &Said) -> Metrics {
    let mut metrics = Metrics {
        tasks: Total::of(said.tasks.len() as u64),
        completed: Total::of(said.tasks.len() as u64),
        dispatches: sum(said.tasks.iter().map(|task| task.dispatches)),
        busy: sum(said.tasks.iter().map(|task| task.service)),
        context_switches: said.value("switches").map_or_else(Total::default, Total::of),
        ..Metrics::default()
    };
    for task in &said.tasks {
        let turnaround = task.finish.since(task.arrival);
        metrics.turnaround.record(turnaround.0);
        metrics.response_time.record(task.first.since(task.arrival).0);
        if let Some(service) = task.service.filter(|_| metrics.busy.get().is_some()) {
            let waited = turnaround.saturating_sub(service).saturating_sub(task.slept);
            metrics.waiting_time.record(waited.0);
            if service > Span::ZERO {
                metrics.slowdown.record(turnaround.scaled(1_000_000, service.0).0);
            }
        }
        let left = task.finish.since(task.first);
        metrics.benchmark.leave_time.record(left.0);
        let groups = u32::try_from(task.groups).unwrap_or(u32::MAX);
        metrics.benchmark.tasks.push(TaskProgress {
            finished: Some(turnaround),
            left: Some(left),
            counted: Some((groups, task.service.unwrap_or_default())),
        });
        let first = metrics.first_arrival.map_or(task.arrival, |first| first.min(task.arrival));
        metrics.first_arrival = Some(first);
        metrics.last_completion = metrics.last_completion.max(task.finish);
    }
    for (name, number) in &said.samples {
        match name.as_str() {
            "wakeup_latency_ns" => metrics.wakeup_latency.record(*number),
            "round_trip_ns" => metrics.round_trip.record(*number),
            "job_response_time_ns" => metrics.job_response_time.record(*number),
            // Those of benchmarks.
            _ => {}
        }
    }
    of_benchmark(said).for_each(|measured| metrics.benchmark.record(measured));
    metrics
}

/// What a program that is a benchmark says of itself.
fn of_benchmark(said: &Said) -> impl Iterator<Item = Measured> {
    let sample = |(name, number): &(String, u64)| {
        let span = Span(*number);
        Some(match name.as_str() {
            "latency_ns" => Measured::Latency { thread: 0, latency: span },
            "wakeup_ns" => Measured::Wakeup(span),
            _ => return None,
        })
    };
    let count = |name: &str| said.value(name).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let pair = |[one, other]: [&str; 2]| count(one).zip(count(other));
    let deadlines = pair(["deadlines_met", "deadlines_missed"]);
    let work = pair(["work_done", "work_missed"]);
    let deadlines = deadlines.map(|(met, missed)| Measured::Deadlines { met, missed });
    let work = work.map(|(done, missed)| Measured::Work { done, missed });
    said.samples.iter().filter_map(sample).chain(deadlines).chain(work)
}

/// The sum of what all tasks have told; not measured if one has not, or there are none.
fn sum<T: Amount>(parts: impl Iterator<Item = Option<T>>) -> Total<T> {
    let mut sum = None;
    for part in parts {
        let Some(part) = part else { return Total::default() };
        *sum.get_or_insert_with(T::default) += part;
    }
    sum.map_or_else(Total::default, Total::of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskOutcome;
    use anysched_core::Time;

    /// The names of the metrics of a run of two tasks, from 0 to 9 and to 7 ns.
    fn measured(services: [Option<u64>; 2], values: &[(&str, u64)]) -> Vec<String> {
        let task = |(service, finish): (Option<u64>, u64)| TaskOutcome {
            finish: Time(finish),
            service: service.map(Span),
            dispatches: service,
            ..TaskOutcome::default()
        };
        let said = Said {
            tasks: services.into_iter().zip([9, 7]).map(task).collect(),
            values: values.iter().map(|&(name, value)| (name.to_string(), value)).collect(),
            ..Said::default()
        };
        metrics(&said).measured().iter().map(|(metric, _)| metric.to_string()).collect()
    }

    #[test]
    fn only_what_a_kernel_tells_is_measured() {
        let always = ["turnaround_ns", "response_time_ns", "makespan_ns", "tasks", "completed"];
        let of_service = ["waiting_time_ns", "slowdown", "busy_ns", "dispatches"];
        let never = ["utilisation", "preemptions", "migrations", "overhead_ns", "unfinished"];
        for (services, is_known) in
            [([Some(3), Some(4)], true), ([Some(3), None], false), ([None; 2], false)]
        {
            let names = measured(services, &[]);
            let has = |name: &&str| names.iter().any(|known| known == name);
            assert!(always.iter().all(has), "{names:?}");
            assert!(of_service.iter().all(|name| has(name) == is_known), "{names:?}");
            assert!(!never.iter().any(has) && !has(&"context_switches"), "{names:?}");
        }
        let names = measured([Some(3), Some(4)], &[("switches", 0)]);
        assert!(names.contains(&"context_switches".to_string()), "said to be 0");
    }

    #[test]
    fn what_tasks_of_a_script_measure_is_that_of_any_task() {
        let samples = [("wakeup_latency_ns", 4), ("wakeup_latency_ns", 8), ("other", 1)];
        let samples = samples.map(|(name, number)| (name.to_string(), number)).to_vec();
        let metrics = metrics(&Said { samples, ..Said::default() });
        assert_eq!((metrics.wakeup_latency.mean(), metrics.wakeup_latency.count()), (6.0, 2));
        assert_eq!(metrics.job_response_time.count(), 0);
        assert_eq!(metrics.benchmark.wakeup.count(), 0);
    }

    #[test]
    fn a_benchmark_says_what_it_measures() {
        let owned = |(name, number): (&str, u64)| (name.to_string(), number);
        let samples = [("latency_ns", 4), ("latency_ns", 8), ("wakeup_ns", 3), ("other", 1)];
        let values = [("work_done", 3), ("work_missed", 1), ("deadlines_met", 1)];
        let said = Said {
            samples: samples.map(owned).to_vec(),
            values: values.map(owned).to_vec(),
            ..Said::default()
        };
        let benchmark = metrics(&said).benchmark;
        assert_eq!((benchmark.latency.mean(), benchmark.latency.count()), (6.0, 2));
        assert_eq!((benchmark.wakeup.max(), benchmark.wakeup.count()), (Some(3), 1));
        assert_eq!(benchmark.desired_cpu_percent(), Some(75.0));
        assert_eq!(benchmark.deadlines_met_percent(), None, "half of it was not said");
    }
}
