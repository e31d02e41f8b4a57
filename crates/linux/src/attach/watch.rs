//! What the module says of itself, and what that makes of an interval.

use anysched_core::Span;
use anysched_host::{RunningTask, Sample, SampledCpu, SampledLog};
use anysched_wire::WireError;
use anysched_wire::status::{self, COUNTERS, Cpu, Line, Runs};
use std::collections::BTreeMap;

/// A status, by what it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The policy that decides, or did.
    pub policy: Option<String>,
    /// What ended it.
    pub dead: Option<String>,
    heap: Option<(u64, u64)>,
    log: Option<SampledLog>,
    calls: (u64, u64, u64),
    cpus: BTreeMap<u16, Cpu>,
    runs: BTreeMap<u16, Runs>,
    waited: BTreeMap<u64, u64>,
    tally: Vec<(String, u64)>,
}

impl Status {
    /// Reads a text of the module.
    ///
    /// Errors: it is of another version, or meaningless.
    pub fn read(text: &str) -> Result<Status, WireError> {
        let mut all = Status::default();
        for line in status::read(text.as_bytes())? {
            match line {
                Line::Idle | Line::Learned(..) => {}
                Line::Policy(name) => all.policy = Some(name),
                Line::Dead(why) => all.dead = Some(why),
                Line::Heap(used, size) => all.heap = Some((used, size)),
                Line::Log(used, size, lost) => all.log = Some(SampledLog { used, size, lost }),
                Line::Calls(calls, ns, longest) => all.calls = (calls, ns, longest),
                Line::Cpu(cpu) => drop(all.cpus.insert(cpu.number, cpu)),
                Line::Runs(runs) => drop(all.runs.insert(runs.cpu, runs)),
                Line::Waited(ns, count) => drop(all.waited.insert(ns, count)),
                Line::Tally(name, count) => all.tally.push((name, count)),
            }
        }
        Ok(all)
    }

    /// The buffer of its log, if it has one.
    pub fn log(&self) -> Option<SampledLog> {
        self.log
    }

    /// What happened between an earlier status and this one.
    pub fn since(&self, before: &Status, elapsed: Span, interval: Span) -> Sample {
        let waited = self.waited.iter().filter_map(|(ns, count)| {
            let earlier = before.waited.get(ns).copied().unwrap_or(0);
            let more = count.saturating_sub(earlier);
            (more > 0).then_some((Span(*ns), more))
        });
        Sample {
            elapsed,
            interval,
            cpus: self.cpus.values().map(|cpu| self.cpu(cpu, before)).collect(),
            calls: self.calls.0.saturating_sub(before.calls.0),
            called: Span(self.calls.1.saturating_sub(before.calls.1)),
            longest: Span(self.calls.2),
            heap: self.heap,
            log: self.log,
            waited: waited.collect(),
            tally: self.tally.clone(),
        }
    }

    fn cpu(&self, cpu: &Cpu, before: &Status) -> SampledCpu {
        let earlier = before.cpus.get(&cpu.number).map_or([0; COUNTERS.len()], |cpu| cpu.counts);
        let count = |key| {
            let place = COUNTERS.iter().position(|known| *known == key);
            place.map_or(0, |place| cpu.counts[place].saturating_sub(earlier[place]))
        };
        // The kernel's word is of one moment; the policy's of another.
        let runs = match self.runs.get(&cpu.number) {
            Some(Runs { task, pid, name, .. }) => {
                Some(RunningTask { number: *task, thread: Some((*pid, name.clone())) })
            }
            None => cpu.task.map(|number| RunningTask { number, thread: None }),
        };
        SampledCpu {
            number: cpu.number,
            runs,
            queued: cpu.queued,
            dispatches: count("dispatches"),
            preemptions: count("preemptions"),
            migrations: count("migrations"),
            wakeups: count("wakeups"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "anysched-status 1\npolicy a\ncalls 100 9000 700\ncpu 0 - 0 dispatches=10 \
                          kept=0 idle=0 preemptions=1 migrations=0 wakeups=5 kicks=0 undone=0 \
                          unasked=0\nwaited 960 5\n";
    const AFTER: &str = "anysched-status 1\ncalls 300 29000 800\nlog 5 100 0\nruns 1 7 42 a b\n\
                         policy a\nheap 10 20\ncpu 0 3 2 dispatches=25 kept=1 idle=0 preemptions=4 \
                         migrations=2 wakeups=9 kicks=0 undone=0 unasked=0\ncpu 1 - 0 dispatches=1 \
                         kept=0 idle=0 preemptions=0 migrations=0 wakeups=0 kicks=0 undone=0 \
                         unasked=0\nwaited 960 5\nwaited 1024 2\ntally boosts 3\n";

    #[test]
    fn an_interval_is_the_difference_of_two_statuses() {
        let [before, after] = [BEFORE, AFTER].map(|text| Status::read(text).unwrap());
        let sample = after.since(&before, Span::from_ms(5), Span::from_ms(1));
        let expected = Sample {
            elapsed: Span::from_ms(5),
            interval: Span::from_ms(1),
            cpus: vec![
                SampledCpu {
                    number: 0,
                    runs: Some(RunningTask { number: 3, thread: None }),
                    queued: 2,
                    dispatches: 15,
                    preemptions: 3,
                    migrations: 2,
                    wakeups: 4,
                },
                SampledCpu {
                    number: 1,
                    runs: Some(RunningTask { number: 7, thread: Some((42, "a b".into())) }),
                    dispatches: 1,
                    ..SampledCpu::default()
                },
            ],
            calls: 200,
            called: Span(20_000),
            longest: Span(800),
            heap: Some((10, 20)),
            log: Some(SampledLog { used: 5, size: 100, lost: 0 }),
            waited: vec![(Span(1024), 2)],
            tally: vec![("boosts".into(), 3)],
        };
        assert_eq!(sample, expected);
    }

    #[test]
    fn what_ended_it_is_read() {
        let status = Status::read("anysched-status 1\ndead a: b\nidle\n").unwrap();
        assert_eq!((status.dead.as_deref(), status.policy), (Some("a: b"), None));
        assert!(Status::read("anysched-status 2\n").is_err());
    }
}
