//! What a policy did in an interval, as a line of JSON.

use super::table::percentiles;
use anysched_host::{Attachment, End, Sample, SampledCpu, SampledLog};
use serde_json::{Value, json};

/// An object on a line. That of the whole time says why it has ended.
pub fn sample(policy: &str, sample: &Sample, end: Option<End>) -> String {
    let Sample { elapsed, interval, cpus, calls, called, longest, heap, log, waited, tally } =
        sample;
    let quantiles = percentiles(waited).map(
        |[p50, p90, p99, max]| json!({ "p50": p50.0, "p90": p90.0, "p99": p99.0, "max": max.0 }),
    );
    let tally: serde_json::Map<String, Value> =
        tally.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
    let mut object = json!({
        "policy": policy,
        "elapsed_ns": elapsed.0,
        "interval_ns": interval.0,
        "cpus": cpus.iter().map(cpu).collect::<Vec<_>>(),
        "calls": calls,
        "called_ns": called.0,
        "longest_call_ns": longest.0,
        "heap": heap.map(|(used, size)| json!({ "used": used, "size": size })),
        "log": log.map(|SampledLog { used, size, lost }| {
            json!({ "used": used, "size": size, "lost": lost })
        }),
        "wakeup_latency_ns": quantiles,
        "wakeup_latencies": waited.iter().map(|(ns, n)| json!([ns.0, n])).collect::<Vec<_>>(),
        "tally": tally,
    });
    if let Some(end) = end {
        object["end"] = match end {
            End::Time => json!("time"),
            End::Command(code) => json!({ "command": code }),
            End::Signal(number) => json!({ "signal": number }),
            End::Elsewhere => json!("elsewhere"),
        };
    }
    format!("{object}\n")
}

fn cpu(cpu: &SampledCpu) -> Value {
    let SampledCpu { number, runs, queued, dispatches, preemptions, migrations, wakeups } = cpu;
    let thread = runs.as_ref().and_then(|runs| runs.thread.as_ref());
    json!({
        "cpu": number,
        "task": runs.as_ref().map(|runs| runs.number),
        "pid": thread.map(|(pid, _)| pid),
        "name": thread.map(|(_, name)| name),
        "queued": queued,
        "dispatches": dispatches,
        "preemptions": preemptions,
        "migrations": migrations,
        "wakeups": wakeups,
    })
}

/// Who schedules; `null`: the kernel's own scheduler.
pub fn attachment(found: Option<&Attachment>) -> String {
    let object = found.map(|Attachment { policy, program, notes }| {
        json!({ "policy": policy, "program": program, "notes": notes })
    });
    format!("{:#}\n", Value::from(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Span;
    use anysched_host::RunningTask;

    #[test]
    fn an_interval_is_a_line() {
        let runs = Some(RunningTask { number: 3, thread: Some((42, "a\"b".into())) });
        let measured = Sample {
            elapsed: Span(5),
            interval: Span(2),
            cpus: vec![SampledCpu { number: 1, runs, dispatches: 4, ..SampledCpu::default() }],
            calls: 7,
            waited: vec![(Span(960), 2)],
            ..Sample::default()
        };
        let line = sample("fair", &measured, None);
        assert_eq!(line.lines().count(), 1);
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["cpus"][0]["name"], "a\"b");
        assert_eq!(read["cpus"][0]["dispatches"], 4);
        assert_eq!(read["wakeup_latency_ns"]["p99"], 960);
        assert_eq!(read["wakeup_latencies"], json!([[960, 2]]));
        assert_eq!(
            (&read["heap"], &read["log"], read.get("end")),
            (&Value::Null, &Value::Null, None)
        );
        let last: Value =
            serde_json::from_str(&sample("fair", &measured, Some(End::Command(3)))).unwrap();
        assert_eq!(last["end"], json!({ "command": 3 }));
    }

    #[test]
    fn nobody_is_null() {
        assert_eq!(attachment(None), "null\n");
        let found = Attachment { policy: None, program: "lavd".into(), notes: Vec::new() };
        let read: Value = serde_json::from_str(&attachment(Some(&found))).unwrap();
        assert_eq!(read["program"], "lavd");
    }
}
