//! The kernel's own events: who did what.

use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_workload::import::ftrace::line::{self, Fields, Head, Line, Named};
use anysched_workload::import::ftrace::{Context, State};
use std::borrow::Cow;
use std::collections::HashMap;

/// Below are real-time tasks.
const FIRST_ORDINARY: i32 = 100;

/// The priority of niceness 0.
const NORMAL: i32 = 120;

/// What a kernel has recorded.
pub(super) struct Kernel<'a> {
    /// In time order.
    pub happened: Vec<Happened<'a>>,
    /// By number: every task is there once, also if another had its pid before.
    pub tasks: Vec<Task>,
    /// CPUs that recorded.
    pub cpus: usize,
}

/// An event.
pub(super) struct Happened<'a> {
    pub time: Time,
    pub cpu: CpuId,
    /// As the kernel prints it.
    pub line: &'a str,
    pub what: What,
}

/// What it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// `None` is the idle task.
    Switch {
        prev: Option<(TaskId, Off)>,
        next: Option<TaskId>,
    },
    /// `by`: the task that did it, if none of the interrupts.
    Waking {
        task: TaskId,
        by: Option<TaskId>,
    },
    Wakeup {
        task: TaskId,
        by: Option<TaskId>,
    },
    Other,
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub pid: u32,
    /// The last name that it had.
    pub comm: String,
    /// Both.
    pub name: String,
    pub nice: i8,
    /// Its class is above the policy's.
    pub is_real_time: bool,
    pub was: Was,
}

/// What a task did before the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Was {
    Blocked,
    Ready,
    Running(CpuId),
}

impl<'a> Kernel<'a> {
    /// Reads what each CPU has recorded, a line an event.
    ///
    /// Errors: a line is not understood.
    pub fn read(texts: &'a [Cow<'a, str>]) -> Result<Kernel<'a>, String> {
        let mut lines = Vec::new();
        for (cpu, text) in texts.iter().enumerate() {
            for (number, line) in text.lines().enumerate() {
                let fault = |why: &str| {
                    format!("the kernel's events of CPU {cpu}, line {}: {why}: {line}", number + 1)
                };
                let time = line::time(line).ok_or_else(|| fault("there is no time"))?;
                let parsed = line::parse(line).map_err(|why| fault(&why))?;
                lines.push((Time(time), CpuId(cpu as u16), line, parsed));
            }
        }
        lines.sort_by_key(|(time, cpu, ..)| (*time, *cpu));
        let mut people = People::default();
        let happened = lines.into_iter().map(|(time, cpu, line, parsed)| {
            let what = match parsed {
                Line::Event(head, fields) => people.take(&head, cpu, &fields),
                _ => What::Other,
            };
            Happened { time, cpu, line, what }
        });
        let happened = happened.collect();
        for task in &mut people.tasks {
            task.name = format!("{}-{}", task.comm, task.pid);
        }
        Ok(Kernel { happened, tasks: people.tasks, cpus: texts.len() })
    }
}

/// Who has which pid.
#[derive(Default)]
struct People {
    tasks: Vec<Task>,
    live: HashMap<u32, TaskId>,
}

impl People {
    /// The task with this pid; if it has not been heard of, it `was` this before.
    fn number(&mut self, pid: u32, was: Was) -> Option<TaskId> {
        let next = TaskId(self.tasks.len() as u32);
        if pid == 0 {
            return None;
        }
        let id = *self.live.entry(pid).or_insert(next);
        if id == next {
            let (comm, name) = ("?".into(), String::new());
            self.tasks.push(Task { pid, comm, name, nice: 0, is_real_time: false, was });
        }
        Some(id)
    }

    fn named(&mut self, named: &Named<'_>, was: Was) -> Option<TaskId> {
        let id = self.number(named.pid, was)?;
        let task = &mut self.tasks[id.index()];
        task.comm.replace_range(.., named.comm);
        task.is_real_time = named.prio < FIRST_ORDINARY;
        if !task.is_real_time {
            task.nice = (named.prio - NORMAL).clamp(-20, 19) as i8;
        }
        Some(id)
    }

    fn take(&mut self, head: &Head<'_>, cpu: CpuId, fields: &Fields<'_>) -> What {
        let by = match head.context {
            Context::Task => self.number(head.pid, Was::Running(cpu)),
            _ => None,
        };
        match fields {
            Fields::Switch { prev, state, next } => {
                let off = match state {
                    State::Ready => Off::Preempted,
                    State::Blocked | State::EndedOrParked => Off::Blocked,
                    State::Ended => Off::Exited,
                };
                let left = self.named(prev, Was::Running(cpu)).map(|task| (task, off));
                if off == Off::Exited {
                    self.live.remove(&prev.pid);
                }
                What::Switch { prev: left, next: self.named(next, Was::Ready) }
            }
            Fields::Waking(named) => match self.named(named, Was::Blocked) {
                Some(task) => What::Waking { task, by },
                None => What::Other,
            },
            Fields::Wakeup(named) | Fields::WakeupNew(named) => {
                match self.named(named, Was::Blocked) {
                    Some(task) => What::Wakeup { task, by },
                    None => What::Other,
                }
            }
            Fields::Fork { child } => {
                // Whoever had this number before is gone.
                self.live.remove(child);
                What::Other
            }
            Fields::Exit { .. } | Fields::Migrate { .. } => What::Other,
        }
    }
}
