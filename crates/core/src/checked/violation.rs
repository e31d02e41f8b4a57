//! What can go wrong between a host and a policy.

use core::fmt;

use crate::ids::{CpuId, TaskId};
use crate::time::{Span, Time};

/// A breach of the contract. `Display` describes it in one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The number of the call in which it was noticed, from 1.
    pub call: u64,
    /// The time of that call; if it went back in time, the time before.
    pub now: Time,
    /// Who broke which rule.
    pub fault: Fault,
}

/// Who broke the contract, and how. `Display` describes it in one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The host made a call that it must not make.
    Host(HostFault),
    /// The policy gave an answer that it must not give, or failed to give one that it must.
    Policy(PolicyFault),
}

/// Where a task is in the contract's diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The policy does not know it.
    Detached,
    /// Attached, neither ready nor running.
    Blocked,
    /// Waits for a CPU.
    Ready,
    /// Runs on this CPU.
    Running(CpuId),
}

/// What a host did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variant's text names its fields")]
pub enum HostFault {
    /// A call's time is earlier than the one before it.
    TimeWentBack { to: Time },
    /// The machine has no such CPU.
    NoSuchCpu { cpu: CpuId, cpus: usize },
    /// A new task's number is far above the number of tasks so far; policies use it as an array
    /// index.
    NotDense { task: TaskId, attached: u64 },
    /// The call requires the task to be in another state.
    WrongState { call: &'static str, task: TaskId, state: TaskState, needed: TaskState },
    /// `pick_next` for a CPU whose task was not put back.
    StillRuns { cpu: CpuId, task: TaskId },
    /// `ran` is longer than the time since the task was picked or last charged.
    RanTooLong { cpu: CpuId, task: TaskId, ran: Span, passed: Span },
    /// No CPU in use remains that the task may run on.
    NoCpuLeft { task: TaskId },
    /// `set_param` with a parameter or a value that the policy refuses: `check_param` says why.
    ParamRefused,
    /// A ready task has waited too long, and this CPU, which was kicked or left without a task, has
    /// not picked since.
    KickLost { cpu: CpuId, asked: Time, task: TaskId },
}

/// What a policy did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variant's text names its fields")]
pub enum PolicyFault {
    /// It picked a task for `cpu` that is already running on `on`.
    DoubleRun { task: TaskId, cpu: CpuId, on: CpuId },
    /// It picked a task that is blocked or detached.
    NotReady { task: TaskId, cpu: CpuId, state: TaskState },
    /// It picked a task for a CPU that the task may not run on.
    NotAllowed { task: TaskId, cpu: CpuId },
    /// It picked a task for a CPU that is out of use.
    Offline { task: TaskId, cpu: CpuId },
    /// It picked a task with a slice of zero.
    ZeroSlice { task: TaskId, cpu: CpuId },
    /// It left a CPU idle that could have run a ready task.
    IdleBesideReady { cpu: CpuId, task: TaskId, since: Time },
    /// It kicked no CPU for a ready task that `idle` could run, and the CPUs about to pick cannot
    /// run it or are needed for others.
    NoKick { task: TaskId, idle: CpuId },
    /// It did not kick `cpu`, whose task is no longer allowed there.
    NotMoved { task: TaskId, cpu: CpuId },
    /// A task has been ready for longer than allowed although `idle` had nothing else to run.
    Lost { task: TaskId, since: Time, idle: CpuId },
    /// A task has been ready for longer than allowed while its CPUs ran others.
    Starved { task: TaskId, since: Time },
    /// It picked the task that had just yielded ahead of `other`, which was already waiting.
    YielderFirst { task: TaskId, cpu: CpuId, other: TaskId },
    /// It kicked a CPU that the machine does not have.
    KickedNoSuchCpu { cpu: CpuId, cpus: usize },
    /// Its timer is due again at once however often it runs: hosts would make no progress.
    TimerStuck { due: Time, runs: u32 },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} at {}: {}", self.call, at(self.now), self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Host(fault) => write!(f, "the host {fault}"),
            Fault::Policy(fault) => write!(f, "the policy {fault}"),
        }
    }
}

impl core::error::Error for Violation {}

fn at(time: Time) -> Span {
    Span(time.0)
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskState::Detached => f.write_str("detached"),
            TaskState::Blocked => f.write_str("blocked"),
            TaskState::Ready => f.write_str("ready"),
            TaskState::Running(cpu) => write!(f, "running on CPU {}", cpu.0),
        }
    }
}

impl fmt::Display for HostFault {
    /// Continues a sentence that began with "the host".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            HostFault::TimeWentBack { to } => write!(f, "went back in time, to {}", at(to)),
            HostFault::NoSuchCpu { cpu, cpus } => {
                write!(f, "named CPU {}, but there are only {cpus}", cpu.0)
            }
            HostFault::NotDense { task, attached } => write!(
                f,
                "attached task {} as the {}th: tasks must be numbered densely from 0",
                task.0,
                attached + 1
            ),
            HostFault::WrongState { call, task, state, needed } => {
                write!(f, "called {call} for task {}, which is {state}, not {needed}", task.0)
            }
            HostFault::StillRuns { cpu, task } => {
                write!(f, "called pick_next for CPU {}, which still runs task {}", cpu.0, task.0)
            }
            HostFault::RanTooLong { cpu, task, ran, passed } => write!(
                f,
                "says that task {} ran for {ran} on CPU {}, but only {passed} have passed",
                task.0, cpu.0
            ),
            HostFault::NoCpuLeft { task } => {
                write!(f, "left task {} no CPU in use that it may run on", task.0)
            }
            HostFault::ParamRefused => {
                f.write_str("called set_param with what the policy refuses in check_param")
            }
            HostFault::KickLost { cpu, asked, task } => write!(
                f,
                "has not picked on CPU {}, which was to pick at {}, while task {} waits",
                cpu.0,
                at(asked),
                task.0
            ),
        }
    }
}

impl fmt::Display for PolicyFault {
    /// Continues a sentence that began with "the policy".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PolicyFault::DoubleRun { task, cpu, on } => write!(
                f,
                "picked task {} for CPU {}, but it runs on CPU {} already",
                task.0, cpu.0, on.0
            ),
            PolicyFault::NotReady { task, cpu, state } => {
                write!(f, "picked task {} for CPU {}, but it is {state}", task.0, cpu.0)
            }
            PolicyFault::NotAllowed { task, cpu } => {
                write!(f, "picked task {} for CPU {}, which it may not run on", task.0, cpu.0)
            }
            PolicyFault::Offline { task, cpu } => {
                write!(f, "picked task {} for CPU {}, which is out of use", task.0, cpu.0)
            }
            PolicyFault::ZeroSlice { task, cpu } => {
                write!(f, "picked task {} for CPU {} with a slice of zero", task.0, cpu.0)
            }
            PolicyFault::IdleBesideReady { cpu, task, since } => write!(
                f,
                "left CPU {} idle beside task {}, which is allowed there and ready since {}",
                cpu.0,
                task.0,
                at(since)
            ),
            PolicyFault::NoKick { task, idle } => write!(
                f,
                "kicked no CPU for task {}, which CPU {}, idle, could run",
                task.0, idle.0
            ),
            PolicyFault::NotMoved { task, cpu } => write!(
                f,
                "did not kick CPU {}, whose task {} may not run there any more",
                cpu.0, task.0
            ),
            PolicyFault::Lost { task, since, idle } => write!(
                f,
                "has lost task {}: it is ready since {} and CPU {} had nothing else to run",
                task.0,
                at(since),
                idle.0
            ),
            PolicyFault::Starved { task, since } => {
                write!(f, "lets task {} starve: it is ready since {}", task.0, at(since))
            }
            PolicyFault::YielderFirst { task, cpu, other } => write!(
                f,
                "picked task {} for CPU {} right after it yielded, before task {}, which waited",
                task.0, cpu.0, other.0
            ),
            PolicyFault::KickedNoSuchCpu { cpu, cpus } => {
                write!(f, "kicked CPU {}, but there are only {cpus}", cpu.0)
            }
            PolicyFault::TimerStuck { due, runs } => write!(
                f,
                "wants its timer at {}, which is not ahead, after {runs} runs in a row",
                at(due)
            ),
        }
    }
}
