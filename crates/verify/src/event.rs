//! What may happen between a host and a policy.

use core::fmt;

use anysched_core::{CpuId, Off, Span, TaskId, Time};

/// One thing that a host may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are the arguments of calls")]
pub enum Event {
    /// A new task is attached and becomes ready.
    Arrive { task: TaskId, from: Option<CpuId> },
    /// A blocked task becomes ready.
    Wake { task: TaskId, from: Option<CpuId>, sync: bool },
    /// A ready task is taken out for a moment (rule 9 of the contract).
    Take { task: TaskId },
    /// It is put back.
    Resume { task: TaskId },
    /// The task of a CPU stops running; the CPU picks in the same moment, or later.
    Leave { cpu: CpuId, why: Off, picks: bool },
    /// A CPU that was kicked, or whose task was put back, picks.
    Pick { cpu: CpuId },
    /// The host's tick.
    Tick { cpu: CpuId },
    /// The policy's timer is due.
    Timer,
    /// Nothing happens for some time.
    Pass { step: Step },
    /// The weight and the priority of a task change, there or back.
    Nice { task: TaskId },
    /// A task may run on one CPU only, or on all.
    Bind { task: TaskId, to: Option<CpuId> },
    /// A CPU comes into use or goes out of it.
    Online { cpu: CpuId, online: bool },
}

/// How much time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// [`SHORT`], or less if something is due before.
    Short,
    /// Until something is due; [`LONG`] if nothing is.
    Long,
}

/// Shorter than slices and caches usually last.
pub const SHORT: Span = Span::from_us(300);

/// Longer than that.
pub const LONG: Span = Span::from_ms(40);

impl Step {
    /// Those that lead from `now` to different times.
    pub(crate) fn distinct(now: Time, due: Option<Time>) -> impl Iterator<Item = Step> {
        let is_same = Step::Short.end(now, due) == Step::Long.end(now, due);
        [Step::Short].into_iter().chain((!is_same).then_some(Step::Long))
    }

    /// What the time is afterwards, if `due` is when the next thing is due.
    pub fn end(self, now: Time, due: Option<Time>) -> Time {
        let due = due.filter(|&due| due > now);
        match self {
            Step::Short => due.unwrap_or(Time::NEVER).min(now + SHORT),
            Step::Long => due.unwrap_or(now + LONG),
        }
    }
}

impl fmt::Display for Step {
    /// The step in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Short => "a short time passes",
            Step::Long => "time passes until something is due",
        })
    }
}

impl fmt::Display for Event {
    /// The event in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by =
            |from: Option<CpuId>| from.map_or(String::new(), |cpu| format!(" by CPU {}", cpu.0));
        match *self {
            Event::Arrive { task, from } => write!(f, "task {} arrives{}", task.0, by(from)),
            Event::Wake { task, from, sync } => {
                let how = if sync { ", which will block" } else { "" };
                write!(f, "task {} is woken{}{how}", task.0, by(from))
            }
            Event::Take { task } => write!(f, "task {} is taken out for a moment", task.0),
            Event::Resume { task } => write!(f, "task {} is put back", task.0),
            Event::Leave { cpu, why, picks } => {
                let then = if picks { ", which picks" } else { "" };
                write!(f, "{} on CPU {}{then}", left(why), cpu.0)
            }
            Event::Pick { cpu } => write!(f, "CPU {} picks", cpu.0),
            Event::Tick { cpu } => write!(f, "a tick on CPU {}", cpu.0),
            Event::Timer => f.write_str("the policy's timer"),
            Event::Pass { step } => step.fmt(f),
            Event::Nice { task } => write!(f, "the weight of task {} changes", task.0),
            Event::Bind { task, to: Some(cpu) } => {
                write!(f, "task {} is bound to CPU {}", task.0, cpu.0)
            }
            Event::Bind { task, to: None } => write!(f, "task {} may run anywhere", task.0),
            Event::Online { cpu, online: true } => write!(f, "CPU {} comes into use", cpu.0),
            Event::Online { cpu, online: false } => write!(f, "CPU {} goes out of use", cpu.0),
        }
    }
}

fn left(why: Off) -> &'static str {
    match why {
        Off::Expired => "the slice ends",
        Off::Preempted => "the task is preempted",
        Off::Yielded => "the task yields",
        Off::NotRun => "the task cannot be started",
        Off::Blocked => "the task blocks",
        Off::Exited => "the task exits",
    }
}
