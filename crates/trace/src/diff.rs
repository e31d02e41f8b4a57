//! Where two schedules of the same load part, and what comes of it.
//!
//! [`Steps`] tells what changes on the CPUs, instant by instant, so that two runs can be compared
//! as they go. Up to the first step that differs, tasks and CPUs have done the same in both.
//! [`Aftermath`] watches one of the runs again: what the policy said at that moment, and what
//! became of the tasks that were there.

mod words;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use anysched_core::call::Call;
use anysched_core::{CpuId, CpuMask, Observer, Off, Pick, Scheduler, TaskId, Time};

use crate::follow::{Change, Doing, Follow, OnCpu, Who};
use crate::why::Values;
use crate::{Event, Sink, TaskInfo};

pub use words::{Diff, Side};

/// What has changed on the CPUs in an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub time: Time,
    /// By CPU, the serial of the task that it runs now; `None`: none. Only CPUs that run another
    /// than before.
    pub runs: Vec<(CpuId, Option<u64>)>,
}

/// Tells the steps of a run.
#[derive(Debug)]
pub struct Steps<F> {
    follow: Follow,
    now: Time,
    /// Per CPU, what it ran before this instant.
    before: BTreeMap<CpuId, Option<u64>>,
    /// CPUs that have picked or been left in this instant.
    touched: CpuMask,
    take: F,
}

impl<F: FnMut(Step)> Steps<F> {
    /// Gives each step to `take`.
    pub fn new(take: F) -> Steps<F> {
        Steps {
            follow: Follow::default(),
            now: Time::ZERO,
            before: BTreeMap::new(),
            touched: CpuMask::EMPTY,
            take,
        }
    }

    /// The run is over.
    pub fn finish(mut self) {
        self.close();
    }

    /// The instant is over.
    fn close(&mut self) {
        let mut runs = Vec::new();
        for cpu in self.touched.iter() {
            let on = self.follow.on(cpu).runs.map(|task| self.follow.who(task).serial);
            if self.before.insert(cpu, on).flatten() != on {
                runs.push((cpu, on));
            }
        }
        self.touched.clear();
        if !runs.is_empty() {
            (self.take)(Step { time: self.now, runs });
        }
    }
}

impl<F: FnMut(Step)> Observer for Steps<F> {
    fn before(&mut self, now: Time, _: &Call<'_>, _: &dyn Scheduler) {
        if now > self.now {
            self.close();
            self.now = now;
        }
    }

    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        _: &CpuMask,
        _: &dyn Scheduler,
    ) {
        let change = self.follow.take(now, call, pick);
        if let Change::Picked(cpu, ..) | Change::Left(cpu, ..) | Change::Idle(cpu) = change {
            self.touched.insert(cpu);
        }
    }
}

impl<F> Sink for Steps<F> {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.follow.describe(info);
    }
    fn event(&mut self, _: &Event) {}
}

/// The moment at which two schedules part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// When.
    pub time: Time,
    /// On which CPU, the first one if there are several.
    pub cpu: CpuId,
    /// How many steps were the same before.
    pub alike: u64,
}

/// Where the first step that differs is; a schedule that has ended has `None`.
pub fn parting(alike: u64, steps: [Option<&Step>; 2]) -> Option<Parting> {
    let time = steps.iter().flatten().map(|step| step.time).min()?;
    let at = |step: Option<&Step>| -> Vec<(CpuId, Option<u64>)> {
        step.filter(|step| step.time == time).map_or_else(Vec::new, |step| step.runs.clone())
    };
    let [a, b] = steps.map(at);
    let on = |runs: &[(CpuId, Option<u64>)], cpu| {
        runs.iter().find(|(other, _)| *other == cpu).map(|(_, runs)| *runs)
    };
    let cpus = a.iter().chain(&b).map(|(cpu, _)| *cpu);
    let cpu = cpus.filter(|&cpu| on(&a, cpu) != on(&b, cpu)).min()?;
    Some(Parting { time, cpu, alike })
}

/// What there is of one of the schedules at the parting, and afterwards.
#[derive(Clone, Debug, Default)]
pub struct After {
    /// Per CPU what it ran just before, and since when.
    pub cpus: Vec<(CpuId, Option<Who>, Time)>,
    /// The tasks that waited or ran then, by serial.
    pub tasks: BTreeMap<u64, Then>,
    /// What the CPU at which they part runs then.
    pub runs: Option<Who>,
}

/// A task at the parting, and afterwards.
#[derive(Clone, Debug)]
pub struct Then {
    /// Who.
    pub who: Who,
    /// Since when it waited; `None`: it ran.
    pub waits: Option<Time>,
    /// What the policy said of it.
    pub values: Values,
    /// When it was next picked; `None`: never.
    pub picked: Option<Time>,
    /// When it next blocked or ended, and which; `None`: never.
    pub done: Option<(Time, Off)>,
}

/// Watches a run that parts from another.
#[derive(Debug)]
pub struct Aftermath {
    follow: Follow,
    parting: Parting,
    after: After,
    /// The state at the parting has been taken.
    is_taken: bool,
    /// The instant of the parting is over.
    is_past: bool,
    /// Of tasks that are watched, the number.
    open: BTreeMap<TaskId, u64>,
}

impl Aftermath {
    /// Watches what there is at `parting` and afterwards, on a machine with `cpus` CPUs.
    pub fn new(cpus: usize, parting: Parting) -> Aftermath {
        Aftermath {
            follow: Follow::of(cpus),
            parting,
            after: After::default(),
            is_taken: false,
            is_past: false,
            open: BTreeMap::new(),
        }
    }

    /// The run is over.
    pub fn finish(mut self) -> After {
        self.pass();
        self.after
    }

    /// Whether what follows in the run does not matter.
    pub fn is_done(&self) -> bool {
        self.is_past && self.open.is_empty()
    }

    fn look(&mut self, policy: &dyn Scheduler) {
        self.is_taken = true;
        for (cpu, OnCpu { runs, since }) in self.follow.cpus() {
            let who = runs.map(|task| self.follow.who(task));
            self.after.cpus.push((cpu, who, since));
        }
        for (id, task) in self.follow.tasks() {
            let waits = match task.doing {
                Doing::Waits(on) | Doing::Aside(on) => Some(on.since),
                Doing::Runs { .. } => None,
                Doing::Away { .. } => continue,
            };
            let values = crate::why::probe(policy, id);
            let who = task.who.clone();
            self.open.insert(id, who.serial);
            let then = Then { who, waits, values, picked: None, done: None };
            self.after.tasks.insert(then.who.serial, then);
        }
    }

    fn pass(&mut self) {
        if !self.is_past {
            self.is_past = true;
            let runs = self.follow.on(self.parting.cpu).runs;
            self.after.runs = runs.map(|task| self.follow.who(task));
        }
    }
}

impl Observer for Aftermath {
    fn before(&mut self, now: Time, call: &Call<'_>, policy: &dyn Scheduler) {
        let Parting { time, cpu, .. } = self.parting;
        let picks = matches!(*call, Call::PickNext { cpu: on } if on == cpu);
        if !self.is_taken && (now > time || now == time && picks) {
            self.look(policy);
        }
        if now > time && self.is_taken {
            self.pass();
        }
    }

    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        _: &CpuMask,
        _: &dyn Scheduler,
    ) {
        let change = self.follow.take(now, call, pick);
        if !self.is_taken {
            return;
        }
        match change {
            Change::Picked(_, task, ..) => {
                let then = self.open.get(&task).and_then(|serial| self.after.tasks.get_mut(serial));
                if let Some(then) = then {
                    then.picked.get_or_insert(now);
                }
            }
            Change::Left(_, task, _, why) if !why.runnable() => {
                if let Some(then) =
                    self.open.remove(&task).and_then(|serial| self.after.tasks.get_mut(&serial))
                {
                    then.done = Some((now, why));
                }
            }
            _ => {}
        }
    }
}

impl Sink for Aftermath {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.follow.describe(info);
    }
    fn event(&mut self, _: &Event) {}
}
