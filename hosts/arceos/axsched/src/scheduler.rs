//! The adapter for one CPU: axtask's scheduler on one side, a policy on the other. What is made of
//! axtask's calls is up to [`OneCpu`]. That for several is in `shared`.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use anysched_arceos_qemu::boot;
use anysched_axtask::{Heeded, OneCpu};
use anysched_core::params::weight_of_nice;
use anysched_core::{Machine, Scheduler, Span, TaskId, Time};

use crate::clock::{self, Clock};
use crate::gc::Gc;
use crate::mailbox::{HOME, Mailbox};
use crate::policy::build;
use crate::task::PolicyTask;
use crate::{BaseScheduler, MAX_CPUS};

/// A task, by its address while something else is known to hold it.
type TaskPointer<T, const S: usize> = *const PolicyTask<T, S>;

/// The scheduler of the only CPU. See the [crate documentation](crate).
///
/// The path of a yield, `put_prev_task` and `pick_next_task`, is kept short: it is one call of the
/// policy and one reading of the clock.
pub struct PolicyScheduler<T, const S: usize = 0> {
    adapter: OneCpu<Box<dyn Scheduler>>,
    clock: Clock,
    mailbox: &'static Mailbox,
    /// By the policy's number of a task: its address while it is ready (an owned `Arc`) or running
    /// (which the kernel holds), otherwise null.
    tasks: Vec<TaskPointer<T, S>>,
    /// That of the task that runs because of the policy, or null.
    running: TaskPointer<T, S>,
    /// The CPU's number in the kernel.
    cpu: usize,
    gc: Gc<T, S>,
    /// The kernel's `gc` task, which is the first one that is added.
    gc_task: TaskPointer<T, S>,
}

// SAFETY: the tasks that are pointed at are shared between CPUs by the kernel itself, and the
// scheduler is only used under the lock of its runqueue.
unsafe impl<T, const S: usize> Send for PolicyScheduler<T, S> {}

/// The time.
#[inline]
fn now() -> Time {
    Time(clock::now())
}

impl<T, const S: usize> PolicyScheduler<T, S> {
    /// The scheduler of the CPU that calls this.
    pub fn new() -> Self {
        let boot = boot();
        let cpu = axplat::percpu::this_cpu_id();
        assert!(cpu < MAX_CPUS, "the image is for at most {MAX_CPUS} CPUs");
        let machine = match Machine::flat(1) {
            Ok(machine) => machine.with_tick(boot.tick.map(Span)),
            Err(error) => panic!("{error}"),
        };
        PolicyScheduler {
            adapter: OneCpu::new(build(boot, &machine), &machine),
            clock: Clock::of(cpu),
            mailbox: Mailbox::of(HOME),
            tasks: Vec::new(),
            running: core::ptr::null(),
            cpu,
            gc: Gc::new(),
            gc_task: core::ptr::null(),
        }
    }

    /// What the kernel's log says at boot.
    pub fn scheduler_name() -> String {
        format!("anysched {}", boot().policy)
    }

    /// Has the CPU pick if the policy asked for it during the last call.
    fn heed_kicks(&mut self, now: Time) {
        match self.adapter.heed_kicks(self.clock.is_in_interrupt()) {
            Heeded::Nothing => {}
            Heeded::Interrupts => clock::interrupt(self.cpu),
            Heeded::Wakes => self.clock.wake_idle(now.0),
        }
    }

    /// The number by which the policy knows `task`, which it gets if it has none yet, and whether
    /// it is new.
    fn acquaint(&mut self, now: Time, task: &PolicyTask<T, S>) -> (TaskId, bool) {
        if let Some(id) = task.id_on(HOME as u32) {
            return (id, false);
        }
        let id = self.adapter.attach(now, &task.params());
        if self.tasks.len() <= id.index() {
            self.tasks.push(core::ptr::null());
        }
        task.move_to(HOME as u32, id);
        (id, true)
    }

    /// `task` has become ready.
    fn enqueue(&mut self, task: Arc<PolicyTask<T, S>>) {
        let now = now();
        if Arc::as_ptr(&task) == self.gc_task {
            self.adapter.notice();
            return self.gc.enqueue(task, now.0, false);
        }
        let (id, is_new) = self.acquaint(now, &task);
        let (in_interrupt, burst) = (self.clock.is_in_interrupt(), task.work_left());
        self.tasks[id.index()] = Arc::into_raw(task);
        self.adapter.ready(now, id, is_new, in_interrupt, burst);
        self.heed_kicks(now);
    }

    /// `task`, which did not run, has become ready.
    #[cold]
    #[inline(never)]
    fn wake(&mut self, task: Arc<PolicyTask<T, S>>) {
        let runs_gc = self.running.is_null() && !self.adapter.is_idle();
        if Arc::as_ptr(&task) == self.gc_task && runs_gc {
            self.adapter.notice();
            return self.gc.enqueue(task, clock::now(), true);
        }
        self.enqueue(task);
    }

    /// The running task has run for so long.
    #[inline]
    fn charge(&self, ran: Span) {
        // SAFETY: it is not null while the policy's task runs, and the kernel drops its hold on the
        // task it runs only when it has switched to the next.
        unsafe { &*self.running }.ran(ran.0);
    }

    /// What ran has stopped, put back or to wait, and there is more to do than a pick. Returns `gc`
    /// if that has waited too long.
    #[cold]
    #[inline(never)]
    fn look_around(&mut self, now: Time) -> Option<Arc<PolicyTask<T, S>>> {
        // SAFETY: as for the charge.
        let exits = !self.running.is_null() && unsafe { &*self.running }.is_leaving();
        let stopped = self.adapter.stop(now, exits);
        if let Some((id, ran)) = stopped.ran {
            self.charge(ran);
            self.running = core::ptr::null();
            if !stopped.stays() {
                self.tasks[id.index()] = core::ptr::null();
            }
        }
        self.mailbox.answer(&**self.adapter.policy());
        for (name, value) in self.mailbox.orders() {
            match self.adapter.policy().check_param(&name, &value) {
                Ok(()) => self.adapter.call(now, |policy, cx| policy.set_param(cx, &name, &value)),
                Err(why) => self.mailbox.refuse(format!("policy {}: {why}", boot().policy)),
            }
        }
        self.mailbox.collect().into_iter().for_each(|id| self.adapter.detach(now, id));
        if self.adapter.look(now) {
            self.clock.leave_idle();
            self.clock.rearm(self.adapter.next_tick().0);
        }
        // If `gc` goes on waiting, the next interrupt is soon enough to look again.
        self.gc.take_overdue(now.0)
    }

    /// The policy has nothing to run.
    #[cold]
    fn rest(&mut self, now: Time) -> Option<Arc<PolicyTask<T, S>>> {
        self.running = core::ptr::null();
        let gc = self.gc.take(now.0);
        self.adapter.rest(gc.is_none());
        self.clock.rearm(self.due());
        gc
    }

    /// When the CPU has to be interrupted at the latest.
    fn due(&self) -> u64 {
        let gc = self.gc.due().filter(|_| self.adapter.is_idle()).unwrap_or(u64::MAX);
        self.adapter.due().0.min(gc)
    }
}

impl<T, const S: usize> Default for PolicyScheduler<T, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const S: usize> BaseScheduler for PolicyScheduler<T, S> {
    type SchedItem = Arc<PolicyTask<T, S>>;

    fn init(&mut self) {}

    fn add_task(&mut self, task: Self::SchedItem) {
        if self.gc_task.is_null() {
            self.gc_task = Arc::as_ptr(&task);
        }
        self.enqueue(task);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        let id = task.id_on(HOME as u32)?;
        let ready = &mut self.tasks[id.index()];
        if ready.is_null() || *ready == self.running {
            return None;
        }
        // SAFETY: of a task that is ready it came from `Arc::into_raw`, and it is taken out.
        let removed = unsafe { Arc::from_raw(core::mem::replace(ready, core::ptr::null())) };
        let now = now();
        self.adapter.take(now, id);
        self.heed_kicks(now);
        Some(removed)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        let now = now();
        let picked = match self.adapter.yield_and_pick(now) {
            Some((ran, picked)) => {
                self.charge(ran);
                picked
            }
            None => {
                if let Some(gc) = self.look_around(now) {
                    return Some(gc);
                }
                self.adapter.pick(now)
            }
        };
        let Some(pick) = picked.pick else { return self.rest(now) };
        let task = self.tasks[pick.task.index()];
        assert!(!task.is_null(), "the policy picked a task that is not ready");
        // SAFETY: as nothing runs, it is a ready task's, and came from `Arc::into_raw`. Now that it
        // runs it is the kernel's.
        let task = unsafe { Arc::from_raw(task) };
        task.is_picked();
        self.running = Arc::as_ptr(&task);
        if picked.switches {
            self.clock.count_switch();
        }
        if self.clock.fires_after(self.adapter.due_by_pick().0) {
            self.clock.rearm(self.adapter.due().0);
        }
        Some(task)
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        // axtask calls this for a yield, a preemption and a wake-up alike.
        if self.running != Arc::as_ptr(&prev) {
            return self.wake(prev);
        }
        self.adapter.put(preempt);
        // The pick that follows takes this hold over.
        let _ = Arc::into_raw(prev);
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        let now = now();
        self.clock.leave_interrupt();
        let ticked = self.adapter.tick(now, self.running == Arc::as_ptr(current));
        if let Some((_, ran)) = ticked.ran {
            self.charge(ran);
        }
        self.clock.rearm(if ticked.resched { self.adapter.next_tick().0 } else { self.due() });
        ticked.resched
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        if !(-20..=19).contains(&prio) {
            return false;
        }
        let params = task.set_weight(weight_of_nice(prio as i8));
        if let Some(id) = task.id_on(HOME as u32) {
            let now = now();
            self.adapter.update(now, id, &params);
            self.heed_kicks(now);
        }
        true
    }
}
