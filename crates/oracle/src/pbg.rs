//! PBG as its source implements it: every pick looks at all planned tasks and compares their times
//! anew.

use std::cmp::Ordering;

use crate::Oracle;
use anysched_core::{Arrival, CpuId, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams};

/// What tasks are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Time in all.
    TotalTime,
    /// Time per dispatch.
    MeanTime,
}

/// What happens to a planned task that yields and has dispatches left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnYield {
    /// It goes on.
    Stay,
    /// The best of the others is next.
    Next,
    /// It goes behind all.
    Last,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Is {
    Ready,
    Stays(usize),
    Waiting,
    Away,
    Gone,
}

#[derive(Clone)]
struct Job {
    /// Its number by creation.
    number: usize,
    time: u64,
    dispatches: u64,
    left: u64,
    behind: u64,
    is: Is,
}

/// See the [module documentation](self).
pub struct Pbg {
    order: Order,
    on_yield: OnYield,
    lifo: bool,
    /// For each task by creation, its time and how many dispatches it has; none if it is unknown.
    records: Vec<(u64, u64)>,
    created: usize,
    jobs: Vec<Job>,
    waiting: Vec<usize>,
    yielded: Vec<Option<usize>>,
    yields: u64,
}

impl Pbg {
    /// On `cpus` CPUs, with this profile; `lifo` is the fallback.
    pub fn new(
        cpus: usize,
        order: Order,
        on_yield: OnYield,
        lifo: bool,
        records: Vec<(u64, u64)>,
    ) -> Pbg {
        Pbg {
            order,
            on_yield,
            lifo,
            records,
            created: 0,
            jobs: Vec::new(),
            waiting: Vec::new(),
            yielded: vec![None; cpus],
            yields: 0,
        }
    }

    fn precedes(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.jobs[a], &self.jobs[b]);
        let wide = |time: u64, dispatches: u64| u128::from(time) * u128::from(dispatches);
        let shorter = match self.order {
            Order::TotalTime => x.time.cmp(&y.time),
            Order::MeanTime => wide(x.time, y.dispatches).cmp(&wide(y.time, x.dispatches)),
        };
        let order = x.behind.cmp(&y.behind).then(shorter).then(x.number.cmp(&y.number));
        order == Ordering::Less
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
        let others = |pbg: &Pbg| {
            let cpus = 0..pbg.yielded.len();
            let stays = |cpu| pbg.jobs.iter().position(|job| job.is == Is::Stays(cpu));
            cpus.filter(|&other| other != cpu).find_map(stays)
        };
        let job = kept
            .or_else(|| self.first(yielded.filter(|_| self.on_yield == OnYield::Next)))
            .or_else(|| self.first(None))
            .or_else(|| match self.lifo {
                false => self.waiting.first().copied(),
                true => self.waiting.last().copied(),
            })
            .or_else(|| others(self))?;
        self.waiting.retain(|&other| other != job);
        self.jobs[job].is = Is::Away;
        Some(job)
    }

    fn ready(&mut self, job: usize, undone: bool) {
        let first = undone && !self.lifo;
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

impl Scheduler for Pbg {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, _: &TaskParams) {
        let (time, left) = self.records.get(self.created).copied().unwrap_or_default();
        let job =
            Job { number: self.created, time, dispatches: left, left, behind: 0, is: Is::Away };
        self.created += 1;
        self.jobs
            .resize(self.jobs.len().max(task.index() + 1), Job { is: Is::Gone, ..job.clone() });
        self.jobs[task.index()] = job;
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.jobs[task.index()].is = Is::Gone;
    }

    fn update(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}

    fn enqueue(&mut self, _: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        if !matches!(arrival.why, Enqueue::Resumed { .. }) {
            self.jobs[task.index()].behind = 0;
        }
        self.ready(task.index(), false);
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.waiting.retain(|&other| other != task.index());
        self.jobs[task.index()].is = Is::Away;
    }

    fn pick_next(&mut self, _: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let job = self.pick(cpu.index())?;
        Some(Pick { task: TaskId(job as u32), slice: Span::MAX })
    }

    fn put_prev(&mut self, _: &mut Cx<'_>, cpu: CpuId, task: TaskId, _: Span, why: Off) {
        self.put(cpu.index(), task.index(), why);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        sink("dispatches_left", self.jobs[task.index()].left as i64);
    }
}

impl Oracle for Pbg {
    const KICKS: bool = false;
}
