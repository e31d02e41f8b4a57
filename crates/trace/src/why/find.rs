//! Finds the wait that is asked for.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_core::call::Call;
use anysched_core::{CpuId, CpuMask, Observer, Pick, Scheduler, Span, TaskId, Time};

use super::Wait;
use crate::follow::{Change, Doing, Follow, Task, Waiting, Who};
use crate::{Event, Sink, TaskInfo};

/// How many names an error lists.
const NAMED: usize = 12;

/// Looks for what a task did at a moment. Its memory depends on how many tasks there are at a time.
#[derive(Debug)]
pub struct Finder {
    follow: Follow,
    wanted: String,
    at: Time,
    /// The first tasks, for an error.
    names: Vec<String>,
    tasks: u64,
    /// The last wait of each task that is wanted, by serial.
    last: BTreeMap<u64, Option<Wait>>,
    /// Of those that are gone, the one that ended last, and when.
    ended: Option<(Who, Time, Option<Wait>)>,
    /// What has been found out about the moment, once it has passed.
    chosen: Option<Chosen>,
    /// The moment has passed.
    is_past: bool,
    now: Time,
}

#[derive(Debug)]
struct Chosen {
    who: Who,
    did: Did,
    until: Option<Time>,
    before: Option<Wait>,
    after: Option<Wait>,
    /// How many others had the name then.
    others: u64,
    is_over: bool,
}

/// What a task did at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// It waited.
    Waited,
    /// It ran there, since then.
    Ran(CpuId, Time),
    /// It was blocked since then.
    Blocked(Time),
    /// It came only then.
    NotYet(Time),
    /// It had ended then.
    Ended(Time),
}

/// What there is to say of a moment.
#[derive(Clone, Debug)]
pub enum Found {
    /// The task waited; so many others that wanted name had the same name.
    Wait(Wait, u64),
    /// It did not.
    Missed(Missed),
    /// There is no such task; these are the first of so many.
    Unknown(Vec<String>, u64),
}

/// A moment at which a task did not wait.
#[derive(Clone, Debug)]
pub struct Missed {
    /// The task.
    pub who: Who,
    /// What it did.
    pub did: Did,
    /// Until when.
    pub until: Option<Time>,
    /// Its last wait before.
    pub before: Option<Wait>,
    /// Its first wait after.
    pub after: Option<Wait>,
}

impl Finder {
    /// Looks for what the task with this name, or this serial, does at `at`.
    pub fn new(wanted: &str, at: Time) -> Finder {
        Finder {
            follow: Follow::default(),
            wanted: wanted.to_string(),
            at,
            names: Vec::new(),
            tasks: 0,
            last: BTreeMap::new(),
            ended: None,
            chosen: None,
            is_past: false,
            now: Time::ZERO,
        }
    }

    /// Whether what follows in the run does not matter.
    pub fn is_done(&self) -> bool {
        match &self.chosen {
            Some(chosen) => chosen.is_over,
            None => self.is_past && self.ended.is_some(),
        }
    }

    fn is_wanted(&self, who: &Who) -> bool {
        who.name == self.wanted || who.serial.to_string() == self.wanted
    }

    /// The run is over: what has been found.
    pub fn finish(mut self) -> Found {
        if !self.is_past {
            self.choose();
        }
        let Some(chosen) = self.chosen else {
            return match self.ended {
                Some((who, at, before)) => {
                    let did = Did::Ended(at);
                    Found::Missed(Missed { who, did, until: None, before, after: None })
                }
                None => Found::Unknown(self.names, self.tasks),
            };
        };
        let Chosen { who, did, until, before, mut after, others, is_over } = chosen;
        if did == Did::Waited {
            // Kept there since it began.
            if let Some(wait) = after {
                return Found::Wait(wait, others);
            }
        }
        if !is_over && after.is_none() {
            after = self.follow.tasks().find(|(_, task)| task.who == who).and_then(|(_, task)| {
                match task.doing {
                    Doing::Waits(on) if on.since > self.at => {
                        Some(Wait { who: who.clone(), from: on.since, why: on.why, to: None })
                    }
                    _ => None,
                }
            });
        }
        Found::Missed(Missed { who, did, until, before, after })
    }

    /// The moment is over: who is meant, and what it did.
    fn choose(&mut self) {
        let rank = |task: &Task| match task.doing {
            Doing::Waits(_) | Doing::Aside(_) => 0,
            Doing::Runs { .. } => 1,
            Doing::Away { .. } => 2,
        };
        let tasks = self.follow.tasks().map(|(_, task)| task);
        let wanted: Vec<&Task> = tasks.filter(|task| self.is_wanted(&task.who)).collect();
        let Some(task) = wanted.iter().min_by_key(|task| (rank(task), task.who.serial)) else {
            return;
        };
        let who = task.who.clone();
        let (did, after) = match task.doing {
            Doing::Waits(on) | Doing::Aside(on) => {
                let wait = Wait { who: who.clone(), from: on.since, why: on.why, to: None };
                (Did::Waited, Some(wait))
            }
            Doing::Runs { cpu, since, .. } => (Did::Ran(cpu, since), None),
            Doing::Away { since } => (Did::Blocked(since), None),
        };
        let before = self.last.get(&who.serial).cloned().flatten();
        let others = wanted.len() as u64 - 1;
        let is_over = false;
        self.chosen = Some(Chosen { who, did, until: None, before, after, others, is_over });
    }

    /// A task whose state has changed; `ended`: the wait that is over.
    fn note(&mut self, task: TaskId, ended: Option<Wait>) {
        let Some(known) = self.follow.task(task) else { return };
        let now = self.now;
        match &mut self.chosen {
            None => {
                if let Some(wait) = ended
                    && self.last.contains_key(&known.who.serial)
                {
                    self.last.insert(known.who.serial, Some(wait));
                }
            }
            Some(chosen) if chosen.who == known.who && !chosen.is_over => match ended {
                Some(wait) if chosen.did == Did::Waited => {
                    chosen.after = Some(wait);
                    chosen.is_over = true;
                }
                Some(wait) if wait.from > self.at => {
                    chosen.after = Some(wait);
                    chosen.until.get_or_insert(now);
                    chosen.is_over = true;
                }
                _ => {
                    if chosen.did != Did::Waited {
                        chosen.until.get_or_insert(now);
                    }
                }
            },
            Some(_) => {}
        }
    }

    fn gone(&mut self, task: Task) {
        let now = self.now;
        if let Some(chosen) = self.chosen.as_mut().filter(|chosen| chosen.who == task.who) {
            chosen.until.get_or_insert(now);
            chosen.is_over = true;
        } else if let Some(last) = self.last.remove(&task.who.serial)
            && self.chosen.is_none()
        {
            self.ended = Some((task.who, now, last));
        }
    }
}

impl Observer for Finder {
    fn before(&mut self, now: Time, _: &Call<'_>, _: &dyn Scheduler) {
        self.now = now;
        if now > self.at && !self.is_past {
            self.is_past = true;
            self.choose();
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
        match self.follow.take(now, call, pick) {
            Change::Attached(task) => {
                let who = self.follow.who(task);
                self.tasks += 1;
                if self.names.len() < NAMED && !self.names.contains(&who.name) {
                    self.names.push(who.name.clone());
                }
                if self.is_wanted(&who) {
                    self.last.insert(who.serial, None);
                    if self.is_past && self.chosen.is_none() && self.ended.is_none() {
                        self.choose();
                        if let Some(chosen) = &mut self.chosen {
                            chosen.did = Did::NotYet(now);
                            chosen.until = Some(now);
                        }
                    }
                }
            }
            Change::Picked(_, task, waited, _) if waited.since < now => {
                let who = self.follow.who(task);
                let wait = Wait { who, from: waited.since, why: waited.why, to: Some(now) };
                self.note(task, Some(wait));
            }
            Change::Picked(_, task, ..) | Change::Left(_, task, ..) | Change::Ready(task) => {
                self.note(task, None);
            }
            Change::Gone(task) => self.gone(task),
            Change::Idle(_) | Change::Withdrawn(_) | Change::Nothing => {}
        }
    }
}

impl Sink for Finder {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.follow.describe(info);
        // A virtual CPU is attached before it is described.
        if let Some(task) = self.follow.task(info.task)
            && self.is_wanted(&task.who)
        {
            self.last.entry(task.who.serial).or_insert(None);
        }
    }
    fn event(&mut self, _: &Event) {}
    fn end(&mut self, time: Time) {
        self.now = self.now.max(time);
    }
}

/// Looks for the longest wait of a run.
#[derive(Debug)]
pub struct Longest {
    follow: Follow,
    /// Only of tasks with this name, or serial.
    wanted: Option<String>,
    names: Vec<String>,
    tasks: u64,
    /// Whether there has been one.
    is_known: bool,
    best: Option<Wait>,
    now: Time,
}

impl Longest {
    /// Looks for the longest wait of the task with this name or serial, or of all.
    pub fn new(wanted: Option<&str>) -> Longest {
        Longest {
            follow: Follow::default(),
            wanted: wanted.map(ToString::to_string),
            names: Vec::new(),
            tasks: 0,
            is_known: false,
            best: None,
            now: Time::ZERO,
        }
    }

    /// The run is over: the wait, or `None` if no such task ever waited.
    ///
    /// Errors: there is no such task; the names of the first of so many.
    pub fn finish(mut self) -> Result<Option<Wait>, (Vec<String>, u64)> {
        let open: Vec<(Who, Waiting)> = self
            .follow
            .tasks()
            .filter_map(|(_, task)| match task.doing {
                Doing::Waits(on) | Doing::Aside(on) => Some((task.who.clone(), on)),
                _ => None,
            })
            .collect();
        for (who, on) in open {
            self.consider(who, on, None);
        }
        if self.is_known { Ok(self.best) } else { Err((self.names, self.tasks)) }
    }

    fn is_wanted(&self, who: &Who) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        who.name == *wanted || who.serial.to_string() == *wanted
    }

    fn consider(&mut self, who: Who, on: Waiting, to: Option<Time>) {
        let length = |wait: &Wait| wait.length(self.now);
        let wait = Wait { who, from: on.since, why: on.why, to };
        let is_longer = self.best.as_ref().is_none_or(|best| length(&wait) > length(best));
        if is_longer && length(&wait) > Span::ZERO && self.is_wanted(&wait.who) {
            self.best = Some(wait);
        }
    }
}

impl Observer for Longest {
    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        _: &CpuMask,
        _: &dyn Scheduler,
    ) {
        self.now = now;
        match self.follow.take(now, call, pick) {
            Change::Attached(task) => {
                let who = self.follow.who(task);
                self.tasks += 1;
                self.is_known |= self.is_wanted(&who);
                if self.names.len() < NAMED && !self.names.contains(&who.name) {
                    self.names.push(who.name);
                }
            }
            // Names are looked up only of waits that may be it.
            Change::Picked(_, task, on, _)
                if self.best.as_ref().is_none_or(|best| now.since(on.since) > best.length(now)) =>
            {
                self.consider(self.follow.who(task), on, Some(now));
            }
            _ => {}
        }
    }
}

impl Sink for Longest {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.follow.describe(info);
    }
    fn event(&mut self, _: &Event) {}
    fn end(&mut self, time: Time) {
        self.now = self.now.max(time);
    }
}
