//! The adapter: axtask's scheduler on one side, a policy on the other.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use anysched_arceos_qemu::{Boot, boot};
use anysched_core::params::weight_of_nice;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Recorder, Scheduler, Span, TaskId, Time,
    registry,
};

use crate::clock::{self, Clock};
use crate::gc::Gc;
use crate::log::CpuLog;
use crate::mailbox::{self, Mailbox};
use crate::task::PolicyTask;
use crate::timed::Timed;
use crate::{BaseScheduler, MAX_CPUS};

/// The CPU of the policy's machine, which has one.
const CPU: CpuId = CpuId(0);

/// A task, by its address while somebody else is known to hold it.
type TaskPointer<T, const S: usize> = *const PolicyTask<T, S>;

/// The scheduler of one CPU. See the [crate documentation](crate).
///
/// What a yield goes through, `put_prev_task` and `pick_next_task`, is kept short: it reads the
/// clock once, and whatever is rarely needed waits behind one flag.
pub struct PolicyScheduler<T, const S: usize = 0> {
    policy: Box<dyn Scheduler>,
    /// What runs because the policy picked it.
    running: Option<Running<T, S>>,
    /// `put_prev_task` was the last call, at this time: the pick that follows is part of it.
    put_at: Option<u64>,
    /// The next pick has more to look at than usual: an interrupt has come, `gc` has become ready,
    /// or the CPU was idle.
    is_unusual: bool,
    /// What the policy asks for during a call; seen to before the call's end.
    kicks: CpuMask,
    clock: Clock,
    mailbox: &'static Mailbox,
    /// By the policy's number of a task: its address (an owned `Arc`) while it is ready, or null.
    ready: Vec<TaskPointer<T, S>>,
    /// Numbers of tasks that are no more.
    free: Vec<TaskId>,
    /// The CPU, by the kernel's count.
    cpu: usize,
    is_idle: bool,
    gc: Gc<T, S>,
    /// The kernel's `gc` task, which is the first one that is added.
    gc_task: TaskPointer<T, S>,
    /// The policy wants this CPU to pick.
    resched: bool,
    /// The slice of what runs has ended; it is only still here because the kernel could not be
    /// preempted.
    expired: bool,
    /// The period of the tick; 0: there is none.
    tick: u64,
    next_tick: u64,
    /// What ran last.
    last: TaskId,
}

/// What runs because the policy picked it. All times in nanoseconds since boot.
struct Running<T, const S: usize> {
    /// The kernel holds the task it runs.
    task: TaskPointer<T, S>,
    id: TaskId,
    /// When the policy was last told of its CPU time.
    since: u64,
    slice_end: u64,
}

// SAFETY: the tasks that are pointed at are shared between CPUs by the kernel itself, and the
// scheduler is only used under the lock of its runqueue.
unsafe impl<T, const S: usize> Send for PolicyScheduler<T, S> {}

/// The policy that the host asked for.
///
/// Panics if there is none of that name or a parameter is wrong; `anysched boot` checks both before
/// it boots.
fn build(boot: &Boot, machine: &Machine, cpu: usize) -> Box<dyn Scheduler> {
    let settings: Vec<(&str, &str)> =
        boot.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let Some(info) = registry::policy(&boot.policy) else {
        panic!("there is no policy \"{}\"", boot.policy);
    };
    let policy = match (info.build)(machine, &settings) {
        Ok(policy) => policy,
        Err(error) => panic!("policy {}: {error}", boot.policy),
    };
    let policy = if boot.timed { Box::new(Timed::new(policy)) } else { policy };
    if !boot.record {
        return policy;
    }
    Box::new(Recorder::new(policy, machine, &boot.policy, &settings, CpuLog { cpu }))
}

impl<T, const S: usize> PolicyScheduler<T, S> {
    /// The scheduler of the CPU that calls this.
    pub fn new() -> Self {
        let boot = boot();
        let cpu = axplat::percpu::this_cpu_id();
        assert!(cpu < MAX_CPUS, "the image is for at most {MAX_CPUS} CPUs");
        let tick = (boot.tick > 0).then_some(Span(boot.tick));
        let machine = match Machine::flat(1) {
            Ok(machine) => machine.with_tick(tick),
            Err(error) => panic!("{error}"),
        };
        let policy = build(boot, &machine, cpu);
        PolicyScheduler {
            tick: policy.tick_period().or(machine.tick()).map_or(0, |tick| tick.0),
            policy,
            running: None,
            put_at: None,
            is_unusual: false,
            kicks: CpuMask::EMPTY,
            clock: Clock::of(cpu),
            mailbox: Mailbox::of(cpu),
            ready: Vec::new(),
            free: Vec::new(),
            cpu,
            is_idle: false,
            gc: Gc::new(),
            gc_task: core::ptr::null(),
            resched: false,
            expired: false,
            next_tick: u64::MAX,
            last: TaskId(u32::MAX),
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

    /// Whether the CPU that calls is the one that this schedules.
    fn is_here(&self) -> bool {
        axplat::percpu::this_cpu_id() == self.cpu
    }

    /// The number by which the policy knows `task`, which it gets if it has none yet, and whether
    /// it is new to all policies.
    fn acquaint(&mut self, now: u64, task: &PolicyTask<T, S>) -> (TaskId, bool) {
        if let Some(id) = task.id_on(self.cpu as u32) {
            return (id, false);
        }
        let id = self.free.pop().unwrap_or(TaskId(self.ready.len() as u32));
        if self.ready.len() <= id.index() {
            self.ready.push(core::ptr::null());
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
        let by_task = self.running.is_some() && self.is_here() && !self.clock.is_in_interrupt();
        let arrival = Arrival {
            why: if is_new { Enqueue::New } else { Enqueue::Wakeup { prev: CPU, sync: false } },
            from: by_task.then_some(CPU),
            burst: task.work_left(),
            deadline: None,
        };
        self.ready[id.index()] = Arc::into_raw(task);
        self.call(now, |policy, cx| policy.enqueue(cx, id, arrival));
        self.heed_kicks(now);
    }

    /// Takes a task that is ready.
    #[inline]
    fn take_ready(&mut self, id: TaskId) -> Option<Arc<PolicyTask<T, S>>> {
        let task = core::mem::replace(&mut self.ready[id.index()], core::ptr::null());
        // SAFETY: what is not null came from `Arc::into_raw`, and has just been taken out.
        (!task.is_null()).then(|| unsafe { Arc::from_raw(task) })
    }

    /// What ran has neither been put back nor is it going on: it waits for something, or ends.
    fn retire(&mut self, now: u64) {
        let Some(running) = self.running.take() else { return };
        // SAFETY: the kernel drops its hold on the task it runs when it has switched to the next.
        let task = unsafe { &*running.task };
        let ran = now - running.since;
        task.ran(ran);
        let why = if task.is_leaving() { Off::Exited } else { Off::Blocked };
        let id = running.id;
        self.call(now, |policy, cx| policy.put_prev(cx, CPU, id, Span(ran), why));
    }

    /// Sees to what a pick seldom has to see to. Returns `gc` if that has waited too long.
    #[cold]
    #[inline(never)]
    fn look_around(&mut self, now: u64) -> Option<Arc<PolicyTask<T, S>>> {
        self.resched = false;
        self.expired = false;
        self.mailbox.answer(&*self.policy);
        for id in self.mailbox.collect() {
            self.call(now, |policy, cx| policy.detach(cx, id));
            self.free.push(id);
        }
        if core::mem::replace(&mut self.is_idle, false) {
            // If an interrupt ended the idling, axtask did not call `task_tick`.
            self.clock.leave_interrupt();
            self.clock.disarm();
            self.next_tick = self.tick_after(now);
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

    /// When the CPU has to be interrupted at the latest.
    fn due(&self) -> u64 {
        let timer = self.policy.next_timer().map_or(u64::MAX, |due| due.0);
        let task = self.running.as_ref();
        let task = task.map_or(u64::MAX, |running| running.slice_end.min(self.next_tick));
        let gc = self.gc.due().filter(|_| self.is_idle).unwrap_or(u64::MAX);
        timer.min(task).min(gc)
    }

    /// The policy has nothing to run.
    #[cold]
    fn rest(&mut self, now: u64) -> Option<Arc<PolicyTask<T, S>>> {
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
        let removed = self.take_ready(id)?;
        let now = clock::now();
        self.call(now, |policy, cx| policy.dequeue(cx, id));
        self.heed_kicks(now);
        Some(removed)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        let now = match self.put_at.take() {
            Some(now) => now,
            None => {
                let now = clock::now();
                self.retire(now);
                self.is_unusual = true;
                now
            }
        };
        if self.is_unusual
            && let Some(gc) = self.look_around(now)
        {
            return Some(gc);
        }
        let Some(pick) = self.call(now, |policy, cx| policy.pick_next(cx, CPU)) else {
            return self.rest(now);
        };
        // All calls since the last pick have asked for what has just been done.
        if !self.kicks.is_empty() {
            self.kicks.remove(CPU);
        }
        let Some(task) = self.take_ready(pick.task) else {
            panic!("picked task {}, which is not ready", pick.task.0)
        };
        task.is_picked();
        if pick.task != self.last {
            self.last = pick.task;
            self.clock.count_switch();
        }
        let slice_end = now.saturating_add(pick.slice.0);
        self.running =
            Some(Running { task: Arc::as_ptr(&task), id: pick.task, since: now, slice_end });
        let timer = self.policy.next_timer().map_or(u64::MAX, |due| due.0);
        self.clock.arm_by(timer.min(slice_end).min(self.next_tick));
        Some(task)
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        // axtask calls this for a yield, a preemption and a wake-up alike.
        let task = Arc::as_ptr(&prev);
        let Some(running) = self.running.take_if(|running| core::ptr::eq(running.task, task))
        else {
            if task == self.gc_task && self.running.is_none() && !self.is_idle {
                self.is_unusual = true;
                return self.gc.enqueue(prev, clock::now(), true);
            }
            return self.enqueue(prev);
        };
        let now = clock::now();
        let why = match (preempt, self.expired) {
            (false, _) => Off::Yielded,
            (true, false) => Off::Preempted,
            (true, true) => Off::Expired,
        };
        let ran = now - running.since;
        prev.ran(ran);
        let id = running.id;
        self.ready[id.index()] = Arc::into_raw(prev);
        self.put_at = Some(now);
        self.call(now, |policy, cx| policy.put_prev(cx, CPU, id, Span(ran), why));
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        let now = clock::now();
        self.clock.leave_interrupt();
        self.is_unusual = true;
        let mut resched = core::mem::take(&mut self.resched);
        let task = Arc::as_ptr(current);
        let running = self.running.as_mut().filter(|running| core::ptr::eq(running.task, task));
        if let Some(running) = running {
            if now >= running.slice_end {
                self.expired = true;
                resched = true;
            }
            if now >= self.next_tick {
                let (id, ran) = (running.id, now - running.since);
                running.since = now;
                current.ran(ran);
                self.call(now, |policy, cx| policy.tick(cx, CPU, id, Span(ran)));
            }
        } else {
            // Not the policy's task: it must not keep those waiting.
            resched = true;
        }
        self.next_tick = self.tick_after(now);
        self.run_timers(now);
        if !self.kicks.is_empty() {
            self.kicks.remove(CPU);
            resched = true;
        }
        self.clock.rearm(if resched { u64::MAX } else { self.due() });
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
