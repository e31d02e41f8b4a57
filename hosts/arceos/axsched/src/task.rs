//! What is kept with each of axtask's tasks.

use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use anysched_core::{Span, TaskId, TaskParams};
use kspin::SpinNoIrq;

use crate::{MAX_CPUS, mailbox};

/// What an application says about a task that the kernel cannot know.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// Its parameters.
    pub params: TaskParams,
    /// CPU time that it uses before it may block, for policies that need to know.
    pub work: Option<Span>,
    /// No task of the policy: it runs while its CPU has nothing else to do.
    #[cfg(feature = "smp")]
    pub idles: bool,
}

/// What was declared for the next task that each CPU creates.
static NEXT: [SpinNoIrq<Option<Declared>>; MAX_CPUS] = [const { SpinNoIrq::new(None) }; MAX_CPUS];

/// Declares what the next task that this CPU creates is like. Preemption must be off from here
/// until the task has been created.
pub fn declare_next(declared: Declared) {
    *NEXT[axplat::percpu::this_cpu_id()].lock() = Some(declared);
}

/// Not known to any policy.
const NOWHERE: u32 = u32::MAX;

/// A task of axtask, with what its policy knows it by.
///
/// All fields that change are written under the lock of the task's runqueue; they are atomics
/// because tasks are shared.
#[derive(Debug)]
pub struct PolicyTask<T, const S: usize = 0> {
    inner: T,
    /// The CPU whose policy knows the task.
    home: AtomicU32,
    /// Its number there.
    id: AtomicU32,
    leaving: AtomicBool,
    #[cfg(feature = "smp")]
    idles: bool,
    declared: SpinNoIrq<Declared>,
    service: AtomicU64,
    dispatches: AtomicU32,
}

impl<T, const S: usize> PolicyTask<T, S> {
    /// Wraps a task, with what was declared for it.
    pub fn new(inner: T) -> Self {
        let declared = NEXT[axplat::percpu::this_cpu_id()].lock().take().unwrap_or_default();
        PolicyTask {
            inner,
            home: AtomicU32::new(NOWHERE),
            id: AtomicU32::new(NOWHERE),
            leaving: AtomicBool::new(false),
            #[cfg(feature = "smp")]
            idles: declared.idles,
            declared: SpinNoIrq::new(declared),
            service: AtomicU64::new(0),
            dispatches: AtomicU32::new(0),
        }
    }

    /// The task of axtask.
    pub const fn inner(&self) -> &T {
        &self.inner
    }

    /// CPU time it has used up to when it last stopped, in nanoseconds.
    pub fn service(&self) -> u64 {
        self.service.load(Relaxed)
    }

    /// How often it has been picked.
    pub fn dispatches(&self) -> u32 {
        self.dispatches.load(Relaxed)
    }

    /// The number by which the policy of its CPU knows it, if one does.
    pub fn known_as(&self) -> Option<TaskId> {
        let id = self.id.load(Relaxed);
        (id != NOWHERE).then_some(TaskId(id))
    }

    /// Says that the task, which is blocked, uses so much CPU time before it may block again.
    pub fn expects(&self, burst: Span) {
        self.declared.lock().work = Some(Span(self.service().saturating_add(burst.0)));
    }

    /// Notes that the task will end as soon as it stops, which axtask does not report.
    pub fn leaves(&self) {
        self.leaving.store(true, Relaxed);
    }

    #[cfg(feature = "smp")]
    pub(crate) fn idles(&self) -> bool {
        self.idles
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    #[inline]
    pub(crate) fn id_on(&self, cpu: u32) -> Option<TaskId> {
        let id = self.id.load(Relaxed);
        (id != NOWHERE && self.home.load(Relaxed) == cpu).then_some(TaskId(id))
    }

    /// Where it was known before.
    pub(crate) fn move_to(&self, cpu: u32, id: TaskId) -> Option<(u32, TaskId)> {
        let id = self.id.swap(id.0, Relaxed);
        let home = self.home.swap(cpu, Relaxed);
        (id != NOWHERE).then_some((home, TaskId(id)))
    }

    #[inline]
    pub(crate) fn ran(&self, span: u64) {
        // Only the CPU that runs the task writes, so this needs no locked addition.
        self.service.store(self.service.load(Relaxed) + span, Relaxed);
    }

    #[inline]
    pub(crate) fn is_picked(&self) {
        self.dispatches.store(self.dispatches.load(Relaxed) + 1, Relaxed);
    }

    pub(crate) fn params(&self) -> TaskParams {
        self.declared.lock().params.clone()
    }

    pub(crate) fn set_weight(&self, weight: u32) -> TaskParams {
        let mut declared = self.declared.lock();
        declared.params.weight = weight;
        declared.params.clone()
    }

    /// What is left of the work that was declared.
    pub(crate) fn work_left(&self) -> Option<Span> {
        let work = self.declared.lock().work?;
        Some(work.saturating_sub(Span(self.service())))
    }
}

impl<T, const S: usize> Deref for PolicyTask<T, S> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T, const S: usize> Drop for PolicyTask<T, S> {
    fn drop(&mut self) {
        if let Some(id) = self.known_as() {
            mailbox::departed(*self.home.get_mut(), id);
        }
    }
}
