//! Ordering rules behind a pointer.
//!
//! What happens on every pick is compiled for each rule by itself. Placement, pulling, balancing
//! and changes of tasks and CPUs are many times as much code and ask the rule little: they are
//! compiled once, for [`Smp`] with a [`Rule`] of any kind in it.

use super::{At, Entry, Removal, RunQueue, Running, Smp, Whereabouts};
use crate::ids::{CpuId, TaskId};
use crate::params::TaskParams;

/// What that code asks a [`RunQueue`], under the same names; constants are methods here.
pub trait Rule: 'static {
    /// See [`RunQueue::PREEMPTS`].
    fn may_preempt(&self) -> bool;

    /// See [`RunQueue::HAS_ROLES`].
    fn has_roles(&self) -> bool;

    /// See [`RunQueue::serves`].
    fn serves(&self, cpu: CpuId, task: TaskId) -> bool;

    /// See [`RunQueue::has_opened`].
    fn has_opened(&mut self) -> bool;

    /// See [`RunQueue::set_online`].
    fn set_online(&mut self, cpu: CpuId, online: bool);

    /// See [`RunQueue::detach`].
    fn detach(&mut self, task: TaskId);

    /// See [`RunQueue::update`].
    fn update(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId, params: &TaskParams);

    /// See [`RunQueue::requeue`].
    fn requeue(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId);

    /// See [`RunQueue::push`].
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry);

    /// See [`RunQueue::remove`].
    fn remove(&mut self, at: &At<'_>, task: TaskId, why: Removal);

    /// See [`RunQueue::take_dropped`].
    fn take_dropped(&mut self) -> Option<TaskId>;

    /// See [`RunQueue::DELAYS`].
    fn delays(&self) -> bool;

    /// See [`RunQueue::is_owed`].
    fn is_owed(&self, queue: usize, task: TaskId) -> bool;

    /// See [`RunQueue::preempts`].
    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64>;

    /// See [`RunQueue::RECONSIDERS`].
    fn reconsiders_waiting(&self) -> bool;

    /// See [`RunQueue::reconsiders`].
    fn reconsiders(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> bool;

    /// See [`RunQueue::wants_pick`].
    fn wants_pick(&self, cpu: CpuId) -> bool;

    /// See [`RunQueue::len`].
    fn len(&self, queue: usize) -> usize;

    /// See [`RunQueue::load`].
    fn load(&self, queue: usize) -> u64;

    /// See [`RunQueue::weight`].
    fn weight(&self, task: TaskId) -> u64;

    /// See [`RunQueue::LOAD_COUNTS_RUNNING`].
    fn load_counts_running(&self) -> bool;

    /// See [`RunQueue::spare`].
    fn spare(&self, at: &At<'_>, fits: &dyn Fn(TaskId) -> bool) -> Option<TaskId>;

    /// See [`RunQueue::is_buddy`].
    fn is_buddy(&self, queue: usize, task: TaskId) -> bool;

    /// See [`RunQueue::is_cold`].
    fn is_cold(&self, task: TaskId) -> bool;
}

/// A [`Rule`] known by its type or behind a pointer, which code that is compiled for both can take
/// for one behind a pointer.
pub trait Erase: Rule {
    /// The same scheduler, for code that is compiled once.
    fn erase(smp: &mut Smp<Self>) -> &mut Smp<dyn Rule>;
}

impl<Q: RunQueue> Erase for Q {
    #[inline(always)]
    fn erase(smp: &mut Smp<Q>) -> &mut Smp<dyn Rule> {
        smp
    }
}

impl Erase for dyn Rule {
    #[inline(always)]
    fn erase(smp: &mut Smp<dyn Rule>) -> &mut Smp<dyn Rule> {
        smp
    }
}

impl<Q: RunQueue> Rule for Q {
    #[inline(always)]
    fn may_preempt(&self) -> bool {
        Q::PREEMPTS
    }

    #[inline(always)]
    fn has_roles(&self) -> bool {
        Q::HAS_ROLES
    }

    #[inline(always)]
    fn serves(&self, cpu: CpuId, task: TaskId) -> bool {
        RunQueue::serves(self, cpu, task)
    }

    #[inline(always)]
    fn has_opened(&mut self) -> bool {
        RunQueue::has_opened(self)
    }

    fn set_online(&mut self, cpu: CpuId, online: bool) {
        RunQueue::set_online(self, cpu, online);
    }

    fn detach(&mut self, task: TaskId) {
        RunQueue::detach(self, task);
    }

    fn update(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId, params: &TaskParams) {
        RunQueue::update(self, at, is, task, params);
    }

    fn requeue(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId) {
        RunQueue::requeue(self, at, is, task);
    }

    #[inline(always)]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        RunQueue::push(self, at, task, entry);
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, why: Removal) {
        RunQueue::remove(self, at, task, why);
    }

    #[inline(always)]
    fn take_dropped(&mut self) -> Option<TaskId> {
        RunQueue::take_dropped(self)
    }

    #[inline(always)]
    fn delays(&self) -> bool {
        Q::DELAYS
    }

    fn is_owed(&self, queue: usize, task: TaskId) -> bool {
        RunQueue::is_owed(self, queue, task)
    }

    #[inline(always)]
    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        RunQueue::preempts(self, at, task, running)
    }

    fn reconsiders_waiting(&self) -> bool {
        Q::RECONSIDERS
    }

    fn reconsiders(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> bool {
        RunQueue::reconsiders(self, at, task, running)
    }

    #[inline(always)]
    fn wants_pick(&self, cpu: CpuId) -> bool {
        RunQueue::wants_pick(self, cpu)
    }

    #[inline(always)]
    fn len(&self, queue: usize) -> usize {
        RunQueue::len(self, queue)
    }

    fn load(&self, queue: usize) -> u64 {
        RunQueue::load(self, queue)
    }

    fn weight(&self, task: TaskId) -> u64 {
        RunQueue::weight(self, task)
    }

    fn load_counts_running(&self) -> bool {
        Q::LOAD_COUNTS_RUNNING
    }

    fn spare(&self, at: &At<'_>, fits: &dyn Fn(TaskId) -> bool) -> Option<TaskId> {
        RunQueue::spare(self, at, fits)
    }

    fn is_buddy(&self, queue: usize, task: TaskId) -> bool {
        RunQueue::is_buddy(self, queue, task)
    }

    fn is_cold(&self, task: TaskId) -> bool {
        RunQueue::is_cold(self, task)
    }
}
