//! What a policy was asked and answered, beside what the kernel made of it.

use anysched_core::recorder::{Call, Record};
use anysched_core::{CpuId, Enqueue, Span, TaskId, Time};
use core::fmt;

/// A call of a policy, with its answer, in a run whose events a kernel has recorded itself.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// The call. Its tasks have the policy's numbers, and not the sink's.
    pub record: &'a Record,
    /// The task that was picked, or else that the call is about, if that is known.
    pub task: Option<Actor<'a>>,
    /// The CPU that the call is about, or else that it came from, as far as that is known.
    pub cpu: CpuId,
    /// What that CPU ran; `None`: it was idle.
    pub current: Option<Actor<'a>>,
    /// What came of a pick.
    pub made: Option<Made>,
}

/// A task of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// Its number in the sink.
    pub id: TaskId,
    /// Its name.
    pub comm: &'a str,
    /// The kernel's number.
    pub pid: u32,
}

/// What a kernel made of a pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Made {
    /// The CPU switched to the task, this long after the call.
    Switched(Span),
    /// The CPU was running the task, and went on.
    WentOn,
    /// The CPU ran something else, such as a real-time task, until the policy was asked again.
    Overtaken,
    /// The policy was told that the task could not be run.
    NotRun,
    /// The policy took the task back, or was asked again, before the CPU had switched.
    TakenBack,
    /// Nothing before the recording ended.
    Unknown,
}

impl Made {
    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            Made::Switched(_) => "switched to",
            Made::WentOn => "went on",
            Made::Overtaken => "overtaken",
            Made::NotRun => "not run",
            Made::TakenBack => "taken back",
            Made::Unknown => "unknown",
        }
    }
}

impl Decision<'_> {
    /// When the call was made.
    pub fn time(&self) -> Time {
        self.record.now
    }
}

/// The call, the task by its name, and the answer: `pick_next CPU 0: task 3 (cc1-42), slice 6ms,
/// switched to after 2us`.
impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { call, answer, .. } = self.record;
        write!(f, "{call}")?;
        let pick = answer.as_ref().and_then(|answer| answer.pick);
        match (call, pick) {
            (Call::PickNext { .. }, None) => f.write_str(": nothing")?,
            (_, Some(pick)) => write!(f, ": task {}", pick.task.0)?,
            _ => {}
        }
        if let Some(Actor { comm, pid, .. }) = self.task {
            write!(f, " ({comm}-{pid})")?;
        }
        match pick {
            Some(pick) if pick.slice != Span::MAX => write!(f, ", slice {}", pick.slice)?,
            Some(_) => f.write_str(", no slice")?,
            None => {}
        }
        match self.made {
            Some(Made::Switched(after)) => write!(f, ", switched to after {after}")?,
            Some(made) => write!(f, ", {}", made.words())?,
            None => {}
        }
        for cpu in answer.iter().flat_map(|answer| answer.kicks.iter()) {
            write!(f, ", kicks CPU {}", cpu.0)?;
        }
        match answer {
            Some(_) => Ok(()),
            None => f.write_str(", no answer"),
        }
    }
}

/// The CPU that a call is about, or came from; the first if it says none.
pub fn place(call: &Call<'_>) -> CpuId {
    use Enqueue::{New, Resumed, Wakeup};
    call.cpu().unwrap_or(match *call {
        Call::Enqueue { arrival, .. } => arrival.from.unwrap_or(match arrival.why {
            Wakeup { prev, .. } | Resumed { prev } => prev,
            New => CpuId(0),
        }),
        _ => CpuId(0),
    })
}

/// The task that was picked, or else that the call is about, by the policy's number.
pub fn about(record: &Record) -> Option<TaskId> {
    let pick = record.answer.as_ref().and_then(|answer| answer.pick);
    pick.map(|pick| pick.task).or(record.call.task())
}
