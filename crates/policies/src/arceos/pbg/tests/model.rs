//! A naive scheduler with the same rules: at every pick it looks at all planned tasks, as the
//! source does, and compares their times anew. Both are given the same random calls.

use super::super::*;
use crate::drive::Drive;
use alloc::format;
use alloc::string::String;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Is {
    Ready,
    Stays(usize),
    Waiting,
    Away,
    Gone,
}

struct Job {
    time: u64,
    dispatches: u64,
    left: u64,
    behind: u64,
    is: Is,
}

struct Naive {
    order: Order,
    on_yield: OnYield,
    fallback: Fallback,
    jobs: Vec<Job>,
    waiting: Vec<usize>,
    yielded: Vec<Option<usize>>,
    yields: u64,
}

impl Naive {
    fn precedes(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.jobs[a], &self.jobs[b]);
        let wide = |time: u64, dispatches: u64| u128::from(time) * u128::from(dispatches);
        let shorter = match self.order {
            Order::TotalTime => x.time.cmp(&y.time),
            Order::MeanTime => wide(x.time, y.dispatches).cmp(&wide(y.time, x.dispatches)),
        };
        x.behind.cmp(&y.behind).then(shorter).then(a.cmp(&b)).is_lt()
    }

    fn first(&self, but: Option<usize>) -> Option<usize> {
        let mut first = None;
        for job in (0..self.jobs.len()).filter(|&job| Some(job) != but) {
            if self.jobs[job].is == Is::Ready && first.is_none_or(|best| self.precedes(job, best)) {
                first = Some(job);
            }
        }
        first
    }

    fn pick(&mut self, cpu: usize) -> Option<usize> {
        let yielded = self.yielded[cpu].take();
        let kept = yielded.filter(|&job| self.jobs[job].is == Is::Stays(cpu));
        let others = |model: &Naive| {
            let cpus = 0..model.yielded.len();
            let stays = |cpu| model.jobs.iter().position(|job| job.is == Is::Stays(cpu));
            cpus.filter(|&other| other != cpu).find_map(stays)
        };
        let job = kept
            .or_else(|| self.first(yielded.filter(|_| self.on_yield == OnYield::Next)))
            .or_else(|| self.first(None))
            .or_else(|| match self.fallback {
                Fallback::Fifo => self.waiting.first().copied(),
                Fallback::Lifo => self.waiting.last().copied(),
            })
            .or_else(|| others(self))?;
        self.waiting.retain(|&other| other != job);
        self.jobs[job].is = Is::Away;
        Some(job)
    }

    fn ready(&mut self, job: usize, undone: bool) {
        let first = undone && self.fallback == Fallback::Fifo;
        if self.jobs[job].left > 0 {
            self.jobs[job].is = Is::Ready;
            return;
        }
        self.jobs[job].is = Is::Waiting;
        self.waiting.insert(if first { 0 } else { self.waiting.len() }, job);
    }

    fn put(&mut self, cpu: usize, job: usize, why: Off) {
        if matches!(why, Off::Yielded | Off::Blocked | Off::Exited) {
            self.jobs[job].left = self.jobs[job].left.saturating_sub(1);
        }
        match why {
            Off::Blocked => self.jobs[job].is = Is::Away,
            Off::Exited => self.jobs[job].is = Is::Gone,
            Off::Yielded if self.jobs[job].left > 0 => {
                self.jobs[job].is = Is::Ready;
                match self.on_yield {
                    OnYield::Stay => self.jobs[job].is = Is::Stays(cpu),
                    OnYield::Next => {}
                    OnYield::Last => {
                        self.yields += 1;
                        self.jobs[job].behind = self.yields;
                        return;
                    }
                }
                self.yielded[cpu] = Some(job);
            }
            _ => self.ready(job, why == Off::NotRun),
        }
    }
}

fn play(cpus: usize, choices: [&str; 3], seed: u64) {
    let mut state = seed;
    let mut below = |bound: u64| noise::split_mix(&mut state) % bound;
    let [order, on_yield, fallback] = choices;
    let mut text = String::new();
    let mut records = Vec::new();
    for number in 0..12u64 {
        // Few different times, so that some are equal; some tasks are not in the profile.
        let (time, dispatches) = (below(6), below(7));
        let known = below(5) > 0;
        records.push(if known { (time, dispatches) } else { (0, 0) });
        if known {
            text += &format!("{number}={time}ns/{dispatches} ");
        }
    }
    let mut drive = Drive::<Pbg>::new(
        &format!("{cpus}"),
        &[("profile", &text), ("order", order), ("on_yield", on_yield), ("fallback", fallback)],
    );
    let mut model = Naive {
        order: Order::parse(order).unwrap(),
        on_yield: OnYield::parse(on_yield).unwrap(),
        fallback: Fallback::parse(fallback).unwrap(),
        jobs: Vec::new(),
        waiting: Vec::new(),
        yielded: alloc::vec![None; cpus],
        yields: 0,
    };
    let mut runs: Vec<Option<usize>> = alloc::vec![None; cpus];
    for step in 0..400 {
        let place = format!("seed {seed}, {choices:?}, {cpus} CPUs, step {step}");
        let cpu = below(cpus as u64) as usize;
        match below(8) {
            0 if model.jobs.len() < records.len() => {
                let (time, dispatches) = records[model.jobs.len()];
                let job = model.jobs.len();
                let left = dispatches;
                model.jobs.push(Job { time, dispatches, left, behind: 0, is: Is::Away });
                model.ready(job, false);
                drive.create(job as u32, None);
            }
            1 => {
                let away =
                    |(n, job): &(usize, &Job)| job.is == Is::Away && !runs.contains(&Some(*n));
                let blocked: Vec<usize> =
                    model.jobs.iter().enumerate().filter(away).map(|(job, _)| job).collect();
                if !blocked.is_empty() {
                    let job = blocked[below(blocked.len() as u64) as usize];
                    model.jobs[job].behind = 0;
                    model.ready(job, false);
                    drive.wake(job as u32, None);
                }
            }
            2 => {
                let ready =
                    model.jobs.iter().position(|job| matches!(job.is, Is::Ready | Is::Waiting));
                if let Some(job) = ready {
                    model.waiting.retain(|&other| other != job);
                    model.ready(job, false);
                    drive.take_out_and_resume(job as u32);
                }
            }
            _ => match runs[cpu].take() {
                None => {
                    let pick = drive.pick(cpu as u16).map(|(task, _)| task as usize);
                    assert_eq!(pick, model.pick(cpu), "{place}");
                    runs[cpu] = pick;
                }
                Some(job) => {
                    let reasons =
                        [Off::Yielded, Off::Yielded, Off::Yielded, Off::Blocked, Off::Preempted];
                    let why = match below(12) {
                        0 => Off::Exited,
                        1 => Off::NotRun,
                        n => reasons[n as usize % reasons.len()],
                    };
                    model.put(cpu, job, why);
                    drive.put(cpu as u16, job as u32, Span(1), why);
                }
            },
        }
        for (job, expected) in model.jobs.iter().enumerate() {
            assert_eq!(drive.probe(job as u32, "dispatches_left") as u64, expected.left, "{place}");
        }
    }
}

#[test]
fn picks_are_those_of_the_naive_scheduler() {
    for seed in 0..60 {
        for order in ["total_time", "mean_time"] {
            for on_yield in ["stay", "next", "last"] {
                for fallback in ["fifo", "lifo"] {
                    for cpus in [1, 3] {
                        play(cpus, [order, on_yield, fallback], seed);
                    }
                }
            }
        }
    }
}
