//! The adapter for one CPU: axtask's scheduler on one side, a policy on the other. That for several
//! is in `shared`.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use anysched_arceos_qemu::boot;
use anysched_core::params::weight_of_nice;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Pick, Scheduler, Span, TaskId, Time,
};

use crate::clock::{self, Clock};
use crate::gc::Gc;
use crate::mailbox::{self, Mailbox};
use crate::policy::build;
use crate::task::PolicyTask;
use crate::{BaseScheduler, MAX_CPUS};

/// The CPU of the policy's machine, which has one.
const CPU: CpuId = CpuId(0);

/// A task, by its address while something else is known to hold it.
type TaskPointer<T, const S: usize> = *const PolicyTask<T, S>;

/// The scheduler of one CPU. See the [crate documentation](crate).
///
/// The path of a yield, `put_prev_task` and `pick_next_task`, is kept short: it is one call of the
/// policy and one reading of the clock, and everything rarely needed is behind one flag.
pub struct PolicyScheduler<T, const S: usize = 0> {
    policy: Box<dyn Scheduler>,
    has_timers: bool,
    running: Running<T, S>,
    /// What runs was put back for this reason: the policy learns of it with the pick that follows.
    put: Option<Off>,
    /// The next pick has more to check than usual: an interrupt has come, `gc` has become ready, or
    /// the CPU was idle.
    is_unusual: bool,
    /// What the policy asks for during a call; handled before the call ends.
    kicks: CpuMask,
    clock: Clock,
    mailbox: &'static Mailbox,
    /// By the policy's number of a task: its address while it is ready (an owned `Arc`) or running
    /// (which the kernel holds), otherwise null.
    tasks: Vec<TaskPointer<T, S>>,
    /// Numbers of tasks that no longer exist.
    free: Vec<TaskId>,
    /// The CPU's number in the kernel.
    cpu: usize,
    is_idle: bool,
    gc: Gc<T, S>,
    /// The kernel's `gc` task, which is the first one that is added.
    gc_task: TaskPointer<T, S>,
    /// The policy wants this CPU to pick.
    resched: bool,
    /// The slice of the running task has ended; the task is still here only because the kernel
    /// could not be preempted.
    expired: bool,
    /// The period of the tick; 0: no tick.
    tick: u64,
    next_tick: u64,
}

/// What runs because the policy picked it. All times in nanoseconds since boot.
struct Running<T, const S: usize> {
    /// The kernel holds the task it runs. Null: nothing runs, or nothing that the policy picked.
    task: TaskPointer<T, S>,
    /// Its number, or that of the last one that ran.
    id: TaskId,
    /// When the policy was last told of its CPU time.
    since: u64,
    slice_end: u64,
}

impl<T, const S: usize> Running<T, S> {
    #[inline]
    fn is(&self, task: &Arc<PolicyTask<T, S>>) -> bool {
        core::ptr::eq(self.task, Arc::as_ptr(task))
    }

    #[inline]
    fn is_nothing(&self) -> bool {
        self.task.is_null()
    }

    /// The task has run until `now`. Returns for how long.
    #[inline]
    fn charge(&self, now: u64) -> Span {
        let ran = now - self.since;
        // SAFETY: it is not null, and the kernel drops its hold on the task it runs only when it
        // has switched to the next.
        unsafe { &*self.task }.ran(ran);
        Span(ran)
    }
}

// SAFETY: the tasks that are pointed at are shared between CPUs by the kernel itself, and the
// scheduler is only used under the lock of its runqueue.
unsafe impl<T, const S: usize> Send for PolicyScheduler<T, S> {}

impl<T, const S: usize> PolicyScheduler<T, S> {
    /// The scheduler of the CPU that calls this.
    pub fn new() -> Self {
        let boot = boot();
        let cpu = axplat::percpu::this_cpu_id();
        assert!(cpu < MAX_CPUS, "the image is for at most {MAX_CPUS} CPUs");
        let tick = boot.tick.map(Span);
        let machine = match Machine::flat(1) {
            Ok(machine) => machine.with_tick(tick),
            Err(error) => panic!("{error}"),
        };
        let policy = build(boot, &machine);
        PolicyScheduler {
            tick: policy.tick_period().or(machine.tick()).map_or(0, |tick| tick.0),
            has_timers: policy.has_timers(),
            policy,
            running: Running {
                task: core::ptr::null(),
                id: TaskId(u32::MAX),
                since: 0,
                slice_end: u64::MAX,
            },
            put: None,
            is_unusual: false,
            kicks: CpuMask::EMPTY,
            clock: Clock::of(cpu),
            mailbox: Mailbox::of(cpu),
            tasks: Vec::new(),
            free: Vec::new(),
            cpu,
            is_idle: false,
            gc: Gc::new(),
            gc_task: core::ptr::null(),
            resched: false,
            expired: false,
            next_tick: u64::MAX,
        }
    }

    /// What the kernel's log says at boot.
    pub fn scheduler_name() -> String {
        format!("anysched {}", boot().policy)
    }

    #[inline]
    fn call<R>(&mut self, now: u64, call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>) -> R) -> R {
        call(&mut *self.policy, &mut Cx::new(Time(now), &mut self.kicks))
    }

    /// Has the CPU pick if the policy asked for it during the last call.
    fn heed_kicks(&mut self, now: u64) {
        if self.kicks.is_empty() {
            return;
        }
        self.kicks.remove(CPU);
        self.resched = true;
        if !self.is_here() {
            clock::interrupt(self.cpu);
        } else if self.is_idle {
            self.clock.wake_idle(now);
        } else if !self.clock.is_in_interrupt() {
            clock::interrupt(self.cpu);
        }
    }

    /// Whether the calling CPU is the one that this schedules.
    fn is_here(&self) -> bool {
        axplat::percpu::this_cpu_id() == self.cpu
    }

    /// The number by which the policy knows `task`, which it gets if it has none yet, and whether
    /// it is new to all policies.
    fn acquaint(&mut self, now: u64, task: &PolicyTask<T, S>) -> (TaskId, bool) {
        if let Some(id) = task.id_on(self.cpu as u32) {
            return (id, false);
        }
        let id = self.free.pop().unwrap_or(TaskId(self.tasks.len() as u32));
        if self.tasks.len() <= id.index() {
            self.tasks.push(core::ptr::null());
        }
        let before = task.move_to(self.cpu as u32, id);
        if let Some((home, id)) = before {
            mailbox::departed(home, id);
        }
        let params = task.params();
        self.call(now, |policy, cx| policy.attach(cx, id, &params));
        (id, before.is_none())
    }

    /// `task` has become ready.
    fn enqueue(&mut self, task: Arc<PolicyTask<T, S>>) {
        let now = clock::now();
        if Arc::as_ptr(&task) == self.gc_task {
            self.is_unusual = true;
            return self.gc.enqueue(task, now, false);
        }
        let (id, is_new) = self.acquaint(now, &task);
        let by_task = !self.running.is_nothing() && self.is_here() && !self.clock.is_in_interrupt();
        let arrival = Arrival {
            why: if is_new { Enqueue::New } else { Enqueue::Wakeup { prev: CPU, sync: false } },
            from: by_task.then_some(CPU),
            burst: task.work_left(),
            deadline: None,
        };
        self.tasks[id.index()] = Arc::into_raw(task);
        self.call(now, |policy, cx| policy.enqueue(cx, id, arrival));
        self.heed_kicks(now);
    }

    /// `task`, which did not run, has become ready.
    #[cold]
    #[inline(never)]
    fn wake(&mut self, task: Arc<PolicyTask<T, S>>) {
        let runs_gc = self.running.is_nothing() && !self.is_idle;
        if Arc::as_ptr(&task) == self.gc_task && runs_gc {
            self.is_unusual = true;
            return self.gc.enqueue(task, clock::now(), true);
        }
        self.enqueue(task);
    }

    /// What ran was not put back and does not go on: it waits for something, or ends.
    fn retire(&mut self, now: u64) {
        if self.running.is_nothing() {
            return;
        }
        let ran = self.running.charge(now);
        let Running { task, id, .. } = self.running;
        self.running.task = core::ptr::null();
        self.tasks[id.index()] = core::ptr::null();
        // SAFETY: as for the charge.
        let is_leaving = unsafe { &*task }.is_leaving();
        let why = if is_leaving { Off::Exited } else { Off::Blocked };
        self.call(now, |policy, cx| policy.put_prev(cx, CPU, id, ran, why));
    }

    /// What ran has stopped, because of `put` or to wait, and there is more to do than a pick.
    /// Returns `gc` if that has waited too long.
    #[cold]
    #[inline(never)]
    fn look_around(&mut self, now: u64, put: Option<Off>) -> Option<Arc<PolicyTask<T, S>>> {
        match put {
            None => self.retire(now),
            Some(why) => {
                let (id, ran) = (self.running.id, self.running.charge(now));
                self.running.task = core::ptr::null();
                self.call(now, |policy, cx| policy.put_prev(cx, CPU, id, ran, why));
            }
        }
        self.resched = false;
        self.expired = false;
        self.mailbox.answer(&*self.policy);
        for (name, value) in self.mailbox.orders() {
            match self.policy.check_param(&name, &value) {
                Ok(()) => self.call(now, |policy, cx| policy.set_param(cx, &name, &value)),
                Err(why) => self.mailbox.refuse(format!("policy {}: {why}", boot().policy)),
            }
        }
        for id in self.mailbox.collect() {
            self.call(now, |policy, cx| policy.detach(cx, id));
            self.free.push(id);
        }
        if core::mem::replace(&mut self.is_idle, false) {
            // If an interrupt ended the idling, axtask did not call `task_tick`.
            self.clock.leave_interrupt();
            self.next_tick = self.tick_after(now);
            self.clock.rearm(self.next_tick);
        }
        let overdue = self.gc.take_overdue(now);
        // If `gc` goes on waiting, the next interrupt is soon enough to look again.
        self.is_unusual = false;
        self.run_timers(now);
        overdue
    }

    /// The first tick after `now`.
    fn tick_after(&self, now: u64) -> u64 {
        now.checked_div(self.tick).map_or(u64::MAX, |ticks| (ticks + 1) * self.tick)
    }

    #[inline]
    fn run_timers(&mut self, now: u64) {
        while self.policy.next_timer().is_some_and(|due| due.0 <= now) {
            self.call(now, |policy, cx| policy.timer(cx));
        }
    }

    /// When the policy's timer is due.
    #[inline]
    fn timer(&self) -> u64 {
        if !self.has_timers {
            return u64::MAX;
        }
        self.policy.next_timer().map_or(u64::MAX, |due| due.0)
    }

    /// When the CPU has to be interrupted at the latest.
    fn due(&self) -> u64 {
        let timer = self.timer();
        let task = match self.running.is_nothing() {
            true => u64::MAX,
            false => self.running.slice_end.min(self.next_tick),
        };
        let gc = self.gc.due().filter(|_| self.is_idle).unwrap_or(u64::MAX);
        timer.min(task).min(gc)
    }

    /// The policy has nothing to run.
    #[cold]
    fn rest(&mut self, now: u64) -> Option<Arc<PolicyTask<T, S>>> {
        self.running.task = core::ptr::null();
        let gc = self.gc.take(now);
        self.is_idle = gc.is_none();
        self.is_unusual = true;
        self.clock.rearm(self.due());
        gc
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
        let id = task.id_on(self.cpu as u32)?;
        let ready = &mut self.tasks[id.index()];
        if ready.is_null() || self.running.is(task) {
            return None;
        }
        // SAFETY: of a task that is ready it came from `Arc::into_raw`, and it is taken out.
        let removed = unsafe { Arc::from_raw(core::mem::replace(ready, core::ptr::null())) };
        let now = clock::now();
        self.call(now, |policy, cx| policy.dequeue(cx, id));
        self.heed_kicks(now);
        Some(removed)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        let now = clock::now();
        let pick = match self.put.take() {
            Some(Off::Yielded) if !self.is_unusual => {
                let (id, ran) = (self.running.id, self.running.charge(now));
                self.call(now, |policy, cx| policy.yield_and_pick(cx, CPU, id, ran))
            }
            put => {
                if let Some(gc) = self.look_around(now, put) {
                    return Some(gc);
                }
                self.call(now, |policy, cx| policy.pick_next(cx, CPU)).into()
            }
        };
        // All calls since the last pick asked for what has just been done.
        if !self.kicks.is_empty() {
            self.kicks.remove(CPU);
        }
        let Some(Pick { task: id, slice }) = pick.into() else { return self.rest(now) };
        let task = self.tasks[id.index()];
        assert!(!task.is_null(), "the policy picked a task that is not ready");
        // SAFETY: as nothing runs, it is a ready task's, and came from `Arc::into_raw`. Now that it
        // runs it is the kernel's.
        let picked = unsafe { Arc::from_raw(task) };
        picked.is_picked();
        if id != self.running.id {
            self.clock.count_switch();
        }
        let slice_end = now.saturating_add(slice.0);
        self.running = Running { task, id, since: now, slice_end };
        let due = self.timer().min(slice_end);
        if self.clock.fires_after(due) {
            self.clock.rearm(due.min(self.next_tick));
        }
        Some(picked)
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        // axtask calls this for a yield, a preemption and a wake-up alike.
        if !self.running.is(&prev) {
            return self.wake(prev);
        }
        self.put = Some(match (preempt, self.expired) {
            (false, _) => Off::Yielded,
            (true, false) => Off::Preempted,
            (true, true) => Off::Expired,
        });
        // The pick that follows takes this hold over.
        let _ = Arc::into_raw(prev);
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        let now = clock::now();
        self.clock.leave_interrupt();
        self.is_unusual = true;
        let mut resched = core::mem::take(&mut self.resched);
        if self.running.is(current) {
            if now >= self.running.slice_end {
                self.expired = true;
                resched = true;
            }
            if now >= self.next_tick {
                let (id, ran) = (self.running.id, self.running.charge(now));
                self.running.since = now;
                self.call(now, |policy, cx| policy.tick(cx, CPU, id, ran));
            }
        } else {
            // Not the policy's task: it must not keep the policy's tasks waiting.
            resched = true;
        }
        self.next_tick = self.tick_after(now);
        self.run_timers(now);
        if !self.kicks.is_empty() {
            self.kicks.remove(CPU);
            resched = true;
        }
        self.clock.rearm(if resched { self.next_tick } else { self.due() });
        resched
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        if !(-20..=19).contains(&prio) {
            return false;
        }
        let params = task.set_weight(weight_of_nice(prio as i8));
        if let Some(id) = task.id_on(self.cpu as u32) {
            let now = clock::now();
            self.call(now, |policy, cx| policy.update(cx, id, &params));
            self.heed_kicks(now);
        }
        true
    }
}
