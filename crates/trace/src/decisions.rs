//! Reconstructs the events of a run from its log of decisions: the calls to a kernel's policy and
//! its answers (see [`anysched_core::recorder`]) hold all that a [`Sink`] needs.

use alloc::string::String;
use alloc::vec::Vec;

use anysched_core::recorder::{Call, LogError, LogReader, Record};
use anysched_core::{CpuId, Enqueue, Off, TaskId, Time};

use crate::{Counter, Event, Kind, Sink, TaskInfo};

/// Reports to `sink` what happened in the run recorded in `log`, and returns when it ended. `name`
/// names a task, given how many were attached before it.
///
/// Not in a log: where a task came from when it moves to a CPU without ever having been picked
/// before, and a nice value whose weight is not in the table of weights; such a task counts as nice
/// 0.
///
/// Errors: the log cannot be read; `sink` has received what precedes the fault.
pub fn tell<S: Sink>(
    log: &[u8],
    name: impl FnMut(u64) -> Option<String>,
    sink: S,
) -> Result<(Time, S), LogError> {
    let reader = LogReader::new(log)?;
    let cpus = reader.header().machine.cpus();
    let mut teller = Teller {
        sink,
        name,
        now: Time::ZERO,
        cpus: (0..cpus).map(|_| OnCpu::default()).collect(),
        tasks: Vec::new(),
        attached: 0,
        ready: 0,
        running: 0,
    };
    for record in reader {
        teller.take(&record?);
    }
    teller.settle_all();
    Ok((teller.now, teller.sink))
}

struct Teller<S, F> {
    sink: S,
    name: F,
    now: Time,
    cpus: Vec<OnCpu>,
    tasks: Vec<Option<Known>>,
    attached: u64,
    ready: u64,
    running: u64,
}

/// What a CPU is doing.
#[derive(Clone, Copy, Debug, Default)]
struct OnCpu {
    runs: Option<TaskId>,
    /// What stopped running, as long as it is open what follows.
    left: Option<(TaskId, Off)>,
}

/// An attached task.
#[derive(Clone, Copy, Debug)]
struct Known {
    serial: u64,
    nice: i8,
    /// It has been ready before.
    is_told: bool,
    last_cpu: Option<CpuId>,
}

impl<S: Sink, F: FnMut(u64) -> Option<String>> Teller<S, F> {
    fn emit(&mut self, kind: Kind) {
        self.sink.event(&Event { time: self.now, kind });
    }

    fn take(&mut self, record: &Record) {
        if record.now > self.now {
            self.settle_all();
            self.now = record.now;
        }
        match record.call {
            Call::Attach { task, ref params } => {
                if self.tasks.len() <= task.index() {
                    self.tasks.resize(task.index() + 1, None);
                }
                let nice = (-20..20i8)
                    .find(|&nice| anysched_core::params::weight_of_nice(nice) == params.weight);
                let (serial, nice) = (self.attached, nice.unwrap_or(0));
                let known = Known { serial, nice, is_told: false, last_cpu: None };
                self.tasks[task.index()] = Some(known);
                self.attached += 1;
            }
            Call::Enqueue { task, arrival } => {
                self.settle(task);
                self.make_ready(task, arrival.why, arrival.from);
            }
            Call::Dequeue { .. } => {
                self.ready = self.ready.saturating_sub(1);
            }
            Call::PutPrev { cpu, task, why, .. } => {
                let on = &mut self.cpus[cpu.index()];
                (on.runs, on.left) = (None, Some((task, why)));
                self.running = self.running.saturating_sub(1);
                self.ready += u64::from(why.runnable());
            }
            Call::PickNext { cpu } => {
                let pick = record.answer.as_ref().and_then(|answer| answer.pick);
                let next = pick.map(|pick| pick.task);
                if let Some(task) = next.filter(|&task| !self.left(cpu.index(), task)) {
                    self.settle(task);
                }
                self.switch(cpu, next);
            }
            _ => {}
        }
        if let Some(answer) = &record.answer {
            for cpu in answer.kicks.iter() {
                self.emit(Kind::Kick { cpu });
            }
        }
    }

    fn make_ready(&mut self, task: TaskId, why: Enqueue, from: Option<CpuId>) {
        // What has just left its CPU may have woken others as its last deed.
        let on = from.and_then(|cpu| self.cpus.get(cpu.index()));
        let by = on.and_then(|on| on.runs.or(on.left.map(|(left, _)| left)));
        let Some(known) = self.tasks.get_mut(task.index()).and_then(Option::as_mut) else {
            return;
        };
        let is_told = core::mem::replace(&mut known.is_told, true);
        let Known { serial, nice, .. } = *known;
        self.ready += 1;
        if !is_told {
            let name = (self.name)(serial);
            self.sink.task(&TaskInfo { task, serial, name: name.as_deref(), nice });
            self.emit(Kind::Attach { task, by });
        } else if !matches!(why, Enqueue::Resumed { .. }) {
            self.emit(Kind::Wake { task, by, cpu: from });
        }
        self.sample();
    }

    fn switch(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let on = &mut self.cpus[cpu.index()];
        let prev = on.left.take();
        on.runs = next;
        if prev.is_none() && next.is_none() {
            return;
        }
        if let Some(task) = next {
            self.running += 1;
            self.ready = self.ready.saturating_sub(1);
            let known = self.tasks.get_mut(task.index()).and_then(Option::as_mut);
            let from = known.and_then(|known| known.last_cpu.replace(cpu));
            if let Some(from) = from.filter(|&from| from != cpu) {
                self.emit(Kind::Migrate { task, from, to: cpu });
            }
        }
        self.emit(Kind::Switch { cpu, prev, next });
        self.sample();
    }

    /// `task` does something else: if it has just left a CPU, that one is idle first.
    fn settle(&mut self, task: TaskId) {
        if let Some(cpu) = (0..self.cpus.len()).find(|&cpu| self.left(cpu, task)) {
            self.switch(CpuId(cpu as u16), None);
        }
    }

    /// Whether `task` has just left this CPU.
    fn left(&self, cpu: usize, task: TaskId) -> bool {
        self.cpus[cpu].left.is_some_and(|(left, _)| left == task)
    }

    /// Time goes on: CPUs that have not picked since are idle.
    fn settle_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].left.is_some() {
                self.switch(CpuId(cpu as u16), None);
            }
        }
    }

    fn sample(&mut self) {
        self.emit(Kind::Sample { counter: Counter::Ready, value: self.ready });
        self.emit(Kind::Sample { counter: Counter::Busy, value: self.running });
    }
}
