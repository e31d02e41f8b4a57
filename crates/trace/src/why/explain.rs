//! Looks at what was decided during a wait.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use anysched_core::call::Call;
use anysched_core::registry::First;
use anysched_core::{CpuId, CpuMask, CpuSet, Observer, Off, Pick, Scheduler, Span, TaskId, Time};

use super::{Choice, Ran, Reason, Start, Values, Wait, Why, reason};
use crate::follow::{Change, Doing, Follow, Who};
use crate::{Event, Sink, TaskInfo};

/// How many choices are kept.
const MOST: usize = 256;

/// Watches the same run as a [`Finder`](super::Finder), whose wait it explains.
#[derive(Debug)]
pub struct Explainer {
    follow: Follow,
    order: &'static [First],
    why: Why,
    /// The task, while it waits.
    task: Option<TaskId>,
    affinity: CpuSet,
    is_over: bool,
    /// What the policy says just before a pick of all that wait: of which of these tasks, from
    /// where to where in `values`.
    ready: Vec<(TaskId, usize, usize)>,
    values: Values,
    /// By CPU and serial; `None` stands for an idle CPU.
    ran: BTreeMap<(CpuId, Option<u64>), Ran>,
    /// What left each CPU last, when, and why.
    left: BTreeMap<CpuId, (Time, Who, Off)>,
    now: Time,
}

/// What a policy says of its state for a task.
pub(crate) fn probe(policy: &dyn Scheduler, task: TaskId) -> Values {
    let mut values = Values::new();
    policy.probe(task, &mut |name, value| values.push((name, value)));
    values
}

impl Explainer {
    /// Explains `wait` under a policy with this name and order, on a machine with `cpus` CPUs.
    pub fn new(policy: &str, order: &'static [First], cpus: usize, wait: Wait) -> Explainer {
        let until = wait.to.unwrap_or(wait.from);
        Explainer {
            follow: Follow::of(cpus),
            order,
            why: Why {
                policy: String::from(policy),
                wait,
                until,
                cpu: None,
                start: Vec::new(),
                values: Values::new(),
                values_at_end: Values::new(),
                ran: Vec::new(),
                choices: Vec::new(),
                more_choices: 0,
                left: None,
            },
            task: None,
            affinity: CpuSet::All,
            is_over: false,
            ready: Vec::new(),
            values: Values::new(),
            ran: BTreeMap::new(),
            left: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    /// Whether what follows in the run does not matter.
    pub fn is_done(&self) -> bool {
        self.is_over
    }

    /// The run is over: the explanation.
    pub fn finish(mut self) -> Why {
        if !self.is_over {
            self.why.until = self.now;
            self.end();
        }
        self.why.ran = self.ran.into_values().collect();
        self.why.ran.sort_by_key(|ran| (ran.cpu, core::cmp::Reverse(ran.time)));
        self.why
    }

    /// The task has become ready; the policy has answered.
    fn begin(&mut self, task: TaskId, kicks: &CpuMask, policy: &dyn Scheduler) {
        self.task = Some(task);
        self.affinity = self.follow.task(task).map_or(CpuSet::All, |task| task.affinity.clone());
        self.why.values = probe(policy, task);
        let mut start = Vec::new();
        for (cpu, on) in self.follow.cpus().filter(|(cpu, _)| self.affinity.contains(*cpu)) {
            let ran = on.runs.filter(|&other| other != task);
            let ran = ran.map(|id| (self.follow.who(id), on.since, probe(policy, id)));
            start.push(Start { cpu, ran, kicked: kicks.contains(cpu) });
        }
        self.why.start = start;
    }

    /// A CPU is done with what it has run, or been without, since then.
    fn account(&mut self, cpu: CpuId, who: Option<Who>, since: Time, ended: Option<Off>) {
        if !self.affinity.contains(cpu) {
            return;
        }
        let time = self.now.since(since.max(self.why.wait.from));
        if time == Span::ZERO {
            return;
        }
        let key = (cpu, who.as_ref().map(|who| who.serial));
        let ran = self.ran.entry(key).or_insert(Ran {
            cpu,
            who,
            time: Span::ZERO,
            turns: 0,
            ended: None,
        });
        ran.time += time;
        ran.turns += 1;
        ran.ended = ended;
    }

    /// The wait, or the run, is over.
    fn end(&mut self) {
        let on: Vec<_> = self.follow.cpus().collect();
        for (cpu, on) in on {
            let who = on.runs.filter(|&id| Some(id) != self.task);
            if who.is_none() && on.runs.is_some() {
                continue;
            }
            let who = who.map(|id| self.follow.who(id));
            self.account(cpu, who, on.since, None);
        }
        self.is_over = true;
    }

    /// Asks the policy for its state for all that wait, before it picks for `cpu`.
    fn look(&mut self, policy: &dyn Scheduler) {
        self.ready.clear();
        self.values.clear();
        let all = self.why.choices.len() < MOST;
        for (id, task) in self.follow.tasks() {
            if matches!(task.doing, Doing::Waits(_)) && (all || Some(id) == self.task) {
                let from = self.values.len();
                policy.probe(id, &mut |name, value| self.values.push((name, value)));
                self.ready.push((id, from, self.values.len()));
            }
        }
    }

    fn looked(&self, task: TaskId) -> Values {
        let found = self.ready.iter().find(|(id, ..)| *id == task);
        found.map_or_else(Values::new, |&(_, from, to)| self.values[from..to].to_vec())
    }

    /// `cpu` has picked another task, or nothing.
    fn choose(&mut self, cpu: CpuId, pick: Option<Pick>, since: Time) {
        if self.why.choices.len() == MOST {
            self.why.more_choices += 1;
            return;
        }
        let Some(task) = self.task else { return };
        let own = self.looked(task);
        let values = pick.map_or_else(Values::new, |pick| self.looked(pick.task));
        let reason = match pick {
            Some(_) => reason(self.order, (&values, since), (&own, self.why.wait.from)),
            None => Reason::Unknown,
        };
        self.why.choices.push(Choice {
            at: self.now,
            cpu,
            who: pick.map(|pick| self.follow.who(pick.task)),
            slice: pick.map_or(Span::ZERO, |pick| pick.slice),
            since,
            values,
            own,
            reason,
        });
    }

    /// Whether this task begins the wait now.
    fn begins(&self, task: TaskId) -> bool {
        let Wait { who, from, .. } = &self.why.wait;
        let is_new = |known: &crate::follow::Task| {
            matches!(known.doing, Doing::Waits(on) if on.since == *from) && known.who == *who
        };
        self.task.is_none() && self.now == *from && self.follow.task(task).is_some_and(is_new)
    }
}

impl Observer for Explainer {
    fn before(&mut self, now: Time, call: &Call<'_>, policy: &dyn Scheduler) {
        self.now = now;
        if let Call::PickNext { cpu } = *call
            && !self.is_over
            && self.task.is_some()
            && self.affinity.contains(cpu)
        {
            self.look(policy);
        }
    }

    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        kicks: &CpuMask,
        policy: &dyn Scheduler,
    ) {
        let before = match *call {
            Call::PickNext { cpu } => Some(self.follow.on(cpu)),
            _ => None,
        };
        let change = self.follow.take(now, call, pick);
        if self.is_over {
            return;
        }
        match change {
            Change::Ready(task) if self.begins(task) => self.begin(task, kicks, policy),
            Change::Left(_, task, ..) if self.begins(task) => self.begin(task, kicks, policy),
            _ if self.task.is_none() => {}
            Change::Left(cpu, task, since, off) => {
                let who = self.follow.who(task);
                self.account(cpu, Some(who.clone()), since, Some(off));
                self.left.insert(cpu, (now, who, off));
            }
            Change::Picked(cpu, task, waited, _) => {
                if let Some(on) = before {
                    self.account(cpu, None, on.since, None);
                }
                if Some(task) != self.task {
                    if self.affinity.contains(cpu) {
                        self.choose(cpu, pick, waited.since);
                    }
                    return;
                }
                if self.why.wait.to.is_some_and(|to| now < to) {
                    // Picked and put back at once: another wait that begins at the same instant.
                    self.restart();
                    return;
                }
                self.why.cpu = Some(cpu);
                self.why.values_at_end = self.looked(task);
                let left = self.left.remove(&cpu).filter(|(when, ..)| *when == now);
                self.why.left = left.map(|(_, who, off)| (who, off));
                self.why.until = now;
                self.end();
            }
            Change::Idle(cpu) if self.affinity.contains(cpu) => {
                let was = before.map_or(now, |on| on.since);
                if was == now {
                    self.choose(cpu, None, now);
                }
            }
            _ => {}
        }
    }
}

impl Explainer {
    /// What seemed to be the wait was not.
    fn restart(&mut self) {
        self.task = None;
        self.ran.clear();
        self.why.choices.clear();
        self.why.more_choices = 0;
        self.left.clear();
    }
}

impl Sink for Explainer {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.follow.describe(info);
    }
    fn event(&mut self, _: &Event) {}
    fn end(&mut self, time: Time) {
        self.now = self.now.max(time);
    }
}
