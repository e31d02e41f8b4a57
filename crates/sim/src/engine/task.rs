//! What the simulator knows about a task.

use anysched_core::{CpuId, Span, TaskId, TaskParams, Time};
use anysched_workload::Op;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum State {
    /// The number is not in use.
    #[default]
    Free,
    Blocked,
    Ready,
    Running,
}

/// What the run of a task is, or will be when it next has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Doing {
    /// Its own work.
    #[default]
    Own,
    /// It spins until a lock is handed to it.
    Spins,
    /// What the kernel does to start it, and then its own work.
    Starts,
    /// What the kernel does to create another.
    Creates,
    /// What the kernel does behind a wake-up, until the waker is in its program again.
    Returns,
    /// What the kernel does to end it.
    Exits,
}

/// One live task. Kept small: a closed batch holds a million. What every wake-up, dispatch and
/// block reads comes first and fills a cache line: with many tasks each line costs a miss.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub(super) struct Task {
    /// Work left of the current run, in ns of the fastest CPU.
    pub(super) left: Span,
    /// Since when it has been ready, or blocked.
    pub(super) since: Time,
    /// Work done so far.
    pub(super) service: Span,
    pub(super) state: State,
    pub(super) nice: i8,
    /// The CPU it last ran on.
    pub(super) cpu: u16,
    pub(super) has_run: bool,
    /// It was woken and has not run since.
    pub(super) woken: bool,
    /// What its run is.
    pub(super) doing: Doing,
    /// It is a CPU of a virtual machine.
    pub(super) vcpu: bool,
    /// Time blocked so far.
    pub(super) blocked: Span,
    /// The operation to do next time it is on a CPU, if it was asked for ahead of time.
    pub(super) pending: Option<Box<Op>>,
    /// Its current job, for tasks that have jobs.
    pub(super) job: Job,
    pub(super) serial: u64,
    pub(super) arrival: Time,
    pub(super) first_run: Time,
    /// Its parameters where they are not the defaults.
    pub(super) params: Option<Box<TaskParams>>,
}

/// A piece of work with a release time and perhaps a deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// `NEVER`: there is none.
    pub(super) release: Time,
    /// `NEVER`: it has none.
    pub(super) deadline: Time,
}

impl Default for Job {
    fn default() -> Job {
        Job { release: Time::NEVER, deadline: Time::NEVER }
    }
}

impl Task {
    pub(super) fn last_cpu(&self) -> CpuId {
        CpuId(self.cpu)
    }
}

/// All tasks by number; numbers of exited tasks are reused, the last one first.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    slots: Vec<Task>,
    free: Vec<TaskId>,
    created: u64,
}

impl Tasks {
    /// Assigns a number to a new task, which is blocked and arrived at `now`.
    pub(super) fn create(&mut self, now: Time) -> TaskId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Task::default());
            TaskId(self.slots.len() as u32 - 1)
        });
        self.slots[id.index()] = Task {
            state: State::Blocked,
            serial: self.created,
            arrival: now,
            first_run: Time::NEVER,
            since: now,
            ..Task::default()
        };
        self.created += 1;
        id
    }

    /// The number that [`Tasks::create`] will use next, if it is a reused one, and the CPU that its
    /// last holder left.
    pub(super) fn next_reused(&self) -> Option<(TaskId, CpuId)> {
        let id = *self.free.last()?;
        Some((id, self[id].last_cpu()))
    }

    pub(super) fn release(&mut self, id: TaskId) {
        self.slots[id.index()].state = State::Free;
        self.free.push(id);
    }

    pub(super) fn is_live(&self, id: TaskId) -> bool {
        self.slots.get(id.index()).is_some_and(|task| task.state != State::Free)
    }

    pub(super) fn live(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        let ids = (0..).map(TaskId);
        ids.zip(&self.slots).filter(|(_, task)| task.state != State::Free)
    }
}

impl std::ops::Index<TaskId> for Tasks {
    type Output = Task;
    #[inline]
    fn index(&self, id: TaskId) -> &Task {
        &self.slots[id.index()]
    }
}

impl std::ops::IndexMut<TaskId> for Tasks {
    #[inline]
    fn index_mut(&mut self, id: TaskId) -> &mut Task {
        &mut self.slots[id.index()]
    }
}
