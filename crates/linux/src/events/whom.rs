//! Whom a log means: which of the kernel's tasks each of its tasks is.
//!
//! A log does not say. But a pick is followed by a switch of that CPU to the task that was picked,
//! and not often by others before the policy takes it back; so who runs most often meanwhile, and
//! last, is that task. What became of each pick is found out with that knowledge, and so shows
//! where it is wrong.

use super::kernel::{Kernel, What};
use anysched_core::recorder::{Call, LogReader, Record};
use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_trace::policy::{Made, about};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Who the tasks of a log are, and what became of its picks.
pub(super) struct Whom {
    /// By the number of the attach, the kernel's task.
    tasks: Vec<Option<TaskId>>,
    /// The attach of each of the log's tasks, as far as the log has been read.
    attached: Attached,
    /// By the number of the record of a pick.
    made: HashMap<u64, Made>,
}

/// Which attach a task's number belongs to: numbers are used again.
#[derive(Default)]
struct Attached {
    by_number: Vec<usize>,
    count: usize,
}

impl Attached {
    fn read(&mut self, record: &Record) {
        if let Call::Attach { task, .. } = record.call {
            if self.by_number.len() <= task.index() {
                self.by_number.resize(task.index() + 1, usize::MAX);
            }
            self.by_number[task.index()] = self.count;
            self.count += 1;
        }
    }

    fn of(&self, task: TaskId) -> Option<usize> {
        self.by_number.get(task.index()).copied().filter(|attach| *attach != usize::MAX)
    }
}

/// What concerns a CPU, in time order.
enum Step {
    /// The policy gives it this task.
    Pick { record: u64, attach: usize },
    /// The policy has nothing for it.
    Nothing,
    /// The policy takes the task back, because it could not be run or for another reason.
    Put { not_run: bool },
    /// It switches to this ordinary task, to a real-time task, or becomes idle.
    Switch(Next),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Task(TaskId),
    RealTime,
    Idle,
}

impl Whom {
    /// Finds out.
    ///
    /// Errors: the log cannot be read.
    pub fn find(log: &[u8], kernel: &Kernel<'_>) -> Result<Whom, String> {
        let mut votes = Votes::default();
        walk(log, kernel, |cpu, _, step| votes.take(cpu, step))?;
        let tasks = votes.elected();
        let mut fates = Fates { tasks, cpus: Vec::new(), made: HashMap::new() };
        walk(log, kernel, |cpu, time, step| fates.take(cpu, time, step))?;
        let Fates { tasks, made, .. } = fates;
        Ok(Whom { tasks, attached: Attached::default(), made })
    }

    /// Whom the log's next record is about, and what came of the pick if it is one.
    pub fn of(&mut self, record: &Record) -> (Option<TaskId>, Option<Made>) {
        self.attached.read(record);
        let task = about(record);
        let attach = task.and_then(|task| self.attached.of(task));
        let task = attach.and_then(|attach| self.tasks.get(attach).copied().flatten());
        let pick = record.answer.as_ref().and_then(|answer| answer.pick);
        let made = pick.map(|_| self.made.get(&record.number).copied().unwrap_or(Made::Unknown));
        (task, made)
    }
}

/// Hands on all steps in time order. At the same time, the policy's come first.
fn walk(
    log: &[u8],
    kernel: &Kernel<'_>,
    mut take: impl FnMut(CpuId, Time, Step),
) -> Result<(), String> {
    let mut attached = Attached::default();
    let mut happened = kernel.happened.iter().filter_map(|event| match event.what {
        What::Switch { next, .. } => {
            let next = match next {
                None => Next::Idle,
                Some(task) if kernel.tasks[task.index()].is_real_time => Next::RealTime,
                Some(task) => Next::Task(task),
            };
            Some((event.cpu, event.time, next))
        }
        _ => None,
    });
    let mut next = happened.next();
    for record in LogReader::new(log).map_err(|error| error.to_string())? {
        let record = record.map_err(|error| error.to_string())?;
        while let Some((cpu, time, to)) = next.filter(|(_, time, _)| *time < record.now) {
            take(cpu, time, Step::Switch(to));
            next = happened.next();
        }
        attached.read(&record);
        match record.call {
            Call::PickNext { cpu } => {
                let pick = record.answer.as_ref().and_then(|answer| answer.pick);
                let attach = pick.and_then(|pick| attached.of(pick.task));
                let step = attach
                    .map_or(Step::Nothing, |attach| Step::Pick { record: record.number, attach });
                take(cpu, record.now, step);
            }
            Call::PutPrev { cpu, why, .. } => {
                take(cpu, record.now, Step::Put { not_run: why == Off::NotRun });
            }
            _ => {}
        }
    }
    for (cpu, time, to) in next.into_iter().chain(happened) {
        take(cpu, time, Step::Switch(to));
    }
    Ok(())
}

/// Who ran while a task was the policy's choice.
#[derive(Default)]
struct Votes {
    /// By attach, after how many picks of it each task has run; twice if it was the last to.
    of: Vec<BTreeMap<TaskId, u64>>,
    /// By CPU, the attach that it was given, and who has run since.
    given: Vec<Option<(usize, Vec<TaskId>)>>,
}

impl Votes {
    fn take(&mut self, cpu: CpuId, step: Step) {
        if self.given.len() <= cpu.index() {
            self.given.resize(cpu.index() + 1, None);
        }
        let given = &mut self.given[cpu.index()];
        match step {
            Step::Switch(Next::Task(task)) => {
                if let Some((attach, seen)) = given {
                    if !seen.contains(&task) {
                        vote(&mut self.of, *attach, task);
                    }
                    seen.retain(|other| *other != task);
                    seen.push(task);
                }
            }
            Step::Switch(_) => {}
            Step::Pick { .. } | Step::Nothing | Step::Put { .. } => {
                // What is taken back is what ran last.
                if let Some((attach, seen)) = given.take()
                    && let Some(last) = seen.last()
                {
                    vote(&mut self.of, attach, *last);
                }
                if let Step::Pick { attach, .. } = step {
                    *given = Some((attach, Vec::new()));
                }
            }
        }
    }

    /// Each attach's task, and nobody's twice: who ran most often. Of those who ran as often, first
    /// who ran least for others: some run without being asked for.
    fn elected(self) -> Vec<Option<TaskId>> {
        let mut all: HashMap<TaskId, u64> = HashMap::new();
        let mut pairs = Vec::new();
        for (attach, votes) in self.of.iter().enumerate() {
            for (&task, &votes) in votes {
                *all.entry(task).or_default() += votes;
                pairs.push((attach, task, votes));
            }
        }
        pairs.sort_by_key(|(attach, task, votes)| {
            (std::cmp::Reverse(*votes), all[task], *attach, *task)
        });
        let mut elected = vec![None; self.of.len()];
        let mut taken = HashSet::new();
        for (attach, task, _) in pairs {
            if elected[attach].is_none() && !taken.contains(&task) {
                elected[attach] = Some(task);
                taken.insert(task);
            }
        }
        elected
    }
}

fn vote(of: &mut Vec<BTreeMap<TaskId, u64>>, attach: usize, task: TaskId) {
    if of.len() <= attach {
        of.resize(attach + 1, BTreeMap::new());
    }
    *of[attach].entry(task).or_default() += 1;
}

/// What becomes of picks.
struct Fates {
    /// By attach.
    tasks: Vec<Option<TaskId>>,
    cpus: Vec<Fate>,
    made: HashMap<u64, Made>,
}

#[derive(Clone, Copy, Default)]
struct Fate {
    /// What the CPU runs.
    runs: Option<Next>,
    /// The pick whose fate is open.
    open: Option<Open>,
}

#[derive(Clone, Copy)]
struct Open {
    record: u64,
    since: Time,
    task: Option<TaskId>,
    /// The CPU has switched since, but to others.
    has_switched: bool,
}

impl Fates {
    fn take(&mut self, cpu: CpuId, time: Time, step: Step) {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, Fate::default());
        }
        let fate = &mut self.cpus[cpu.index()];
        match step {
            Step::Switch(next) => {
                fate.runs = Some(next);
                if let Some(open) = &mut fate.open {
                    if open.task.map(Next::Task) == Some(next) {
                        let after = time.since(open.since);
                        self.made.entry(open.record).or_insert(Made::Switched(after));
                        fate.open = None;
                    } else {
                        open.has_switched = true;
                    }
                }
            }
            Step::Put { not_run } => close(fate, not_run, &mut self.made),
            Step::Nothing => close(fate, false, &mut self.made),
            Step::Pick { record, attach } => {
                close(fate, false, &mut self.made);
                let task = self.tasks.get(attach).copied().flatten();
                if task.is_some() && fate.runs == task.map(Next::Task) {
                    // What runs later has to be put back before.
                    self.made.insert(record, Made::WentOn);
                }
                fate.open = Some(Open { record, since: time, task, has_switched: false });
            }
        }
    }
}

/// The policy goes on before the CPU has switched to what it was given.
fn close(fate: &mut Fate, not_run: bool, made: &mut HashMap<u64, Made>) {
    if let Some(open) = fate.open.take() {
        let outcome = match (not_run, open.has_switched) {
            (true, _) => {
                made.insert(open.record, Made::NotRun);
                return;
            }
            (false, true) => Made::Overtaken,
            (false, false) => Made::TakenBack,
        };
        made.entry(open.record).or_insert(outcome);
    }
}
