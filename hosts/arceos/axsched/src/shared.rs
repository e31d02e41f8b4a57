//! The adapter for several CPUs: axtask's schedulers, one for each CPU, on one side, and one policy
//! for all of them on the other.
//!
//! axtask puts a task that is started or woken on a CPU's runqueue in turn, and takes from the
//! runqueue of a CPU what that CPU is to run. Which runqueue a task is on makes no difference here:
//! all of them pass what they are told on to the policy, under one lock, and a CPU is given what
//! the policy picks for it, wherever axtask put it.
//!
//! One thing axtask relies on is that a task which stops but stays ready is on the runqueue of the
//! CPU that it leaves: nothing tells another CPU when its stack is free. So such a task is hidden
//! from the policy, by rule 9 of its contract, until its CPU has gone on: it interrupts itself, and
//! can only be interrupted once it has switched. Tasks that are woken need no such care, since
//! axtask itself waits until they have left their CPU.
//!
//! Where instructions are counted, CPUs take turns on one clock, and a CPU that halts would leave
//! its turns to the others: those would become faster. So there CPUs with nothing to do run a task
//! that [idles](crate::Declared::idles).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use anysched_arceos_qemu::boot;
use anysched_core::params::weight_of_nice;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Scheduler, Span, TaskId, Time,
};
use axplat::percpu::this_cpu_id;
use kspin::SpinRaw;

use crate::clock::{self, Clock, HALT_RACE};
use crate::gc::Gc;
use crate::mailbox::{HOME, Mailbox};
use crate::policy::build;
use crate::task::PolicyTask;
use crate::{BaseScheduler, MAX_CPUS};

/// The policy and what it decides about. Always locked with interrupts off; whoever holds it may
/// take the locks of the log, the mailbox and the alarms, and no other.
static SHARED: SpinRaw<Option<Shared>> = SpinRaw::new(None);

struct Shared {
    policy: Box<dyn Scheduler>,
    has_timers: bool,
    /// What the policy has asked for since it was last passed on.
    kicks: CpuMask,
    /// The period of the tick; 0: no tick.
    tick: u64,
    /// The time of the last call, in nanoseconds since boot.
    now: u64,
    /// By the policy's number of a task.
    tasks: Vec<Known>,
    /// Numbers of tasks that no longer exist.
    free: Vec<TaskId>,
    cpus: Vec<OnCpu>,
}

/// A task that the policy knows.
struct Known {
    /// Its address while it is ready (an owned `Arc`) or running (which the kernel holds),
    /// otherwise null.
    task: *const (),
    /// The CPU it last ran on.
    last: CpuId,
    /// It has never been ready.
    is_new: bool,
}

/// What a CPU does. All times in nanoseconds since boot.
struct OnCpu {
    /// What runs because the policy picked it. Null: nothing does.
    task: *const (),
    /// Its number, or that of the last one that ran.
    id: TaskId,
    /// When the policy was last told of its CPU time.
    since: u64,
    slice_end: u64,
    next_tick: u64,
    /// What runs was put back for this reason: the policy learns of it with the pick that follows.
    put: Option<Off>,
    /// Ready, but the CPU may still be on its stack.
    leaves: Option<TaskId>,
    /// The CPU halts, or is about to.
    is_idle: bool,
    /// The policy wants the CPU to pick.
    resched: bool,
    /// The slice of the running task has ended.
    expired: bool,
}

impl OnCpu {
    fn new() -> OnCpu {
        OnCpu {
            task: core::ptr::null(),
            id: TaskId(u32::MAX),
            since: 0,
            slice_end: u64::MAX,
            next_tick: u64::MAX,
            put: None,
            leaves: None,
            is_idle: false,
            resched: false,
            expired: false,
        }
    }

    fn runs(&self, task: *const ()) -> bool {
        !task.is_null() && self.task == task
    }
}

// SAFETY: the tasks that are pointed at are shared between CPUs by the kernel itself.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Shared {
        let boot = boot();
        let cpus = axplat::power::cpu_num();
        assert!(cpus <= MAX_CPUS, "the image is for at most {MAX_CPUS} CPUs");
        let machine = match Machine::flat(cpus) {
            Ok(machine) => machine.with_tick(boot.tick.map(Span)),
            Err(error) => panic!("{error}"),
        };
        let policy = build(boot, &machine);
        Shared {
            tick: policy.tick_period().or(machine.tick()).map_or(0, |tick| tick.0),
            has_timers: policy.has_timers(),
            policy,
            kicks: CpuMask::EMPTY,
            now: 0,
            tasks: Vec::new(),
            free: Vec::new(),
            cpus: (0..cpus).map(|_| OnCpu::new()).collect(),
        }
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>) -> R) -> R {
        call(&mut *self.policy, &mut Cx::new(Time(self.now), &mut self.kicks))
    }

    /// A CPU calls, so it has left the stack of what it ran before.
    fn has_left(&mut self, cpu: usize) {
        if let Some(id) = self.cpus[cpu].leaves.take() {
            let known = &mut self.tasks[id.index()];
            let is_new = mem::replace(&mut known.is_new, false);
            let why = if is_new { Enqueue::New } else { Enqueue::Resumed { prev: known.last } };
            self.call(|policy, cx| policy.enqueue(cx, id, Arrival::because(why)));
        }
    }

    /// Has CPUs pick that the policy wants to, on the CPU `here`.
    fn pass_kicks_on(&mut self, here: usize) {
        while let Some(cpu) = self.kicks.take_lowest() {
            let cpu = cpu.index();
            let is_told = mem::replace(&mut self.cpus[cpu].resched, true);
            // The end of an interrupt looks by itself.
            if !is_told && (cpu != here || !Clock::of(here).is_in_interrupt()) {
                clock::interrupt(cpu);
            }
        }
    }

    /// The first tick after now.
    fn tick_after(&self) -> u64 {
        self.now.checked_div(self.tick).map_or(u64::MAX, |ticks| (ticks + 1) * self.tick)
    }

    fn run_timers(&mut self) {
        while self.policy.next_timer().is_some_and(|due| due.0 <= self.now) {
            self.call(|policy, cx| policy.timer(cx));
        }
    }

    /// When a CPU has to be interrupted at the latest for the policy or its task.
    fn due(&self, cpu: usize) -> u64 {
        let on = &self.cpus[cpu];
        let timer = if self.has_timers { self.policy.next_timer() } else { None };
        let task = if on.task.is_null() { u64::MAX } else { on.slice_end.min(on.next_tick) };
        timer.map_or(u64::MAX, |due| due.0).min(task)
    }
}

/// Does something with the policy, on behalf of the CPU that calls this. Interrupts are off.
fn with<R>(act: impl FnOnce(&mut Shared, usize) -> R) -> R {
    let here = this_cpu_id();
    let mut locked = SHARED.lock();
    let shared = locked.get_or_insert_with(Shared::new);
    // Another CPU may have been ahead.
    shared.now = shared.now.max(clock::now());
    shared.has_left(here);
    let done = act(shared, here);
    shared.pass_kicks_on(here);
    done
}

/// Must be called at the end of every interrupt.
pub fn interrupt_ends() {
    with(|shared, here| {
        let (clock, on) = (Clock::of(here), &shared.cpus[here]);
        clock.leave_interrupt();
        if on.is_idle && on.resched {
            // It came between the last look and the halt, or ended the halt.
            clock.rearm(shared.now + HALT_RACE);
        }
    });
}

/// The scheduler of one CPU. See the [module's documentation](self).
pub struct PolicyScheduler<T, const S: usize = 0> {
    /// The CPU's number in the kernel.
    cpu: usize,
    clock: Clock,
    gc: Gc<T, S>,
    /// The kernel's `gc` task of this CPU, which is the first one that is added.
    gc_task: *const PolicyTask<T, S>,
    /// The CPU runs it.
    runs_gc: bool,
    /// What runs here if there is nothing else, while it does not.
    idler: Option<Arc<PolicyTask<T, S>>>,
}

// SAFETY: `gc_task` is only compared.
unsafe impl<T, const S: usize> Send for PolicyScheduler<T, S> {}

impl<T, const S: usize> PolicyScheduler<T, S> {
    /// The scheduler of the CPU that calls this.
    pub fn new() -> Self {
        let cpu = this_cpu_id();
        PolicyScheduler {
            cpu,
            clock: Clock::of(cpu),
            gc: Gc::new(),
            gc_task: core::ptr::null(),
            runs_gc: false,
            idler: None,
        }
    }

    /// What the kernel's log says at boot.
    pub fn scheduler_name() -> String {
        format!("anysched {}", boot().policy)
    }

    /// The task that runs on `cpu` because of the policy has run until now. Returns for how long.
    fn charge(shared: &mut Shared, cpu: usize) -> Span {
        let (now, on) = (shared.now, &mut shared.cpus[cpu]);
        let ran = now - mem::replace(&mut on.since, now);
        // SAFETY: it is not null, and the kernel drops its hold on the task it runs only when it
        // has switched to the next.
        unsafe { &*on.task.cast::<PolicyTask<T, S>>() }.ran(ran);
        Span(ran)
    }

    /// The number by which the policy knows `task`, which it gets if it has none yet.
    fn acquaint(shared: &mut Shared, here: usize, task: &PolicyTask<T, S>) -> TaskId {
        if let Some(id) = task.id_on(HOME as u32) {
            return id;
        }
        let id = shared.free.pop().unwrap_or(TaskId(shared.tasks.len() as u32));
        let known = Known { task: core::ptr::null(), last: CpuId(here as u16), is_new: true };
        match shared.tasks.get_mut(id.index()) {
            Some(place) => *place = known,
            None => shared.tasks.push(known),
        }
        task.move_to(HOME as u32, id);
        let params = task.params();
        shared.call(|policy, cx| policy.attach(cx, id, &params));
        id
    }

    /// Whether `task` is the kernel's first one, which has run since before there was a policy. It
    /// is not preempted before it first stops: the policy might put it on a CPU that has not
    /// started yet.
    fn is_first(task: &Arc<PolicyTask<T, S>>, gc: *const PolicyTask<T, S>) -> bool {
        task.known_as().is_none() && !task.idles() && Arc::as_ptr(task) != gc
    }

    /// `task`, which did not run because of the policy, has become ready.
    fn enqueue(&mut self, task: Arc<PolicyTask<T, S>>) {
        if Arc::as_ptr(&task) == self.gc_task {
            let again = mem::replace(&mut self.runs_gc, false);
            return self.gc.enqueue(task, clock::now(), again);
        }
        if task.idles() {
            self.idler = Some(task);
            return;
        }
        with(|shared, here| {
            let id = Self::acquaint(shared, here, &task);
            let is_in_interrupt = Clock::of(here).is_in_interrupt();
            let by_task = !shared.cpus[here].task.is_null() && !is_in_interrupt;
            let known = &mut shared.tasks[id.index()];
            let why = match mem::replace(&mut known.is_new, false) {
                true => Enqueue::New,
                false => Enqueue::Wakeup { prev: known.last, sync: false },
            };
            let (from, burst) = (by_task.then_some(CpuId(here as u16)), task.work_left());
            let arrival = Arrival { why, from, burst, deadline: None };
            known.task = Arc::into_raw(task).cast();
            shared.call(|policy, cx| policy.enqueue(cx, id, arrival));
        });
    }

    /// What this CPU ran has stopped, put back or to wait: tells the policy, if it picked it.
    /// Returns its number if it stays ready.
    fn stop(&mut self, shared: &mut Shared) -> Option<TaskId> {
        let cpu = self.cpu;
        let put = shared.cpus[cpu].put.take();
        let (task, id) = (shared.cpus[cpu].task, shared.cpus[cpu].id);
        if task.is_null() {
            return put.map(|_| id);
        }
        let ran = Self::charge(shared, cpu);
        shared.cpus[cpu].task = core::ptr::null();
        let why = put.unwrap_or_else(|| {
            shared.tasks[id.index()].task = core::ptr::null();
            // SAFETY: as for the charge.
            let is_leaving = unsafe { &*task.cast::<PolicyTask<T, S>>() }.is_leaving();
            if is_leaving { Off::Exited } else { Off::Blocked }
        });
        shared.call(|policy, cx| policy.put_prev(cx, CpuId(cpu as u16), id, ran, why));
        put.map(|_| id)
    }

    /// The policy has nothing for this CPU.
    fn rest(&mut self, shared: &mut Shared) -> Option<Arc<PolicyTask<T, S>>> {
        let gc = self.gc.take(shared.now);
        self.runs_gc = gc.is_some();
        let other = gc.or_else(|| self.idler.take());
        shared.cpus[self.cpu].is_idle = other.is_none();
        self.clock.rearm(shared.due(self.cpu).min(self.gc.due().unwrap_or(u64::MAX)));
        other
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
        let is_idler = task.idles();
        self.enqueue(task);
        if is_idler {
            // It may halt.
            clock::interrupt(self.cpu);
        }
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        let id = task.id_on(HOME as u32)?;
        with(|shared, _| {
            let address = Arc::as_ptr(task).cast();
            let is_out = |on: &OnCpu| on.runs(address) || on.leaves == Some(id);
            if shared.tasks[id.index()].task.is_null() || shared.cpus.iter().any(is_out) {
                return None;
            }
            let ready = mem::replace(&mut shared.tasks[id.index()].task, core::ptr::null());
            shared.call(|policy, cx| policy.dequeue(cx, id));
            // SAFETY: of a task that is ready it came from `Arc::into_raw`, and it is taken out.
            Some(unsafe { Arc::from_raw(ready.cast()) })
        })
    }

    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        let cpu = CpuId(self.cpu as u16);
        self.runs_gc = false;
        with(|shared, here| {
            let stays = self.stop(shared);
            let on = &mut shared.cpus[here];
            (on.resched, on.expired) = (false, false);
            let mailbox = Mailbox::of(HOME);
            mailbox.answer(&*shared.policy);
            for (name, value) in mailbox.orders() {
                match shared.policy.check_param(&name, &value) {
                    Ok(()) => shared.call(|policy, cx| policy.set_param(cx, &name, &value)),
                    Err(why) => mailbox.refuse(format!("policy {}: {why}", boot().policy)),
                }
            }
            for id in mailbox.collect() {
                shared.call(|policy, cx| policy.detach(cx, id));
                shared.free.push(id);
            }
            if mem::replace(&mut shared.cpus[here].is_idle, false) {
                shared.cpus[here].next_tick = shared.tick_after();
            }
            shared.run_timers();
            let overdue = self.gc.take_overdue(shared.now);
            self.runs_gc = overdue.is_some();
            let pick = match &overdue {
                Some(_) => None,
                None => shared.call(|policy, cx| policy.pick_next(cx, cpu)),
            };
            // All calls since the last pick asked for what has just been done.
            shared.kicks.remove(cpu);
            if let Some(id) = stays.filter(|id| pick.is_none_or(|pick| pick.task != *id)) {
                if !shared.tasks[id.index()].is_new {
                    shared.call(|policy, cx| policy.dequeue(cx, id));
                }
                shared.cpus[here].leaves = Some(id);
                // As soon as the CPU has switched.
                clock::interrupt(here);
            }
            if overdue.is_some() {
                return overdue;
            }
            let Some(pick) = pick else { return self.rest(shared) };
            let known = &mut shared.tasks[pick.task.index()];
            known.last = cpu;
            let task = known.task;
            assert!(!task.is_null(), "the policy picked a task that is not ready");
            // SAFETY: it is a ready task's, and came from `Arc::into_raw`. Now that it runs it is
            // the kernel's.
            let picked = unsafe { Arc::from_raw(task.cast::<PolicyTask<T, S>>()) };
            picked.is_picked();
            let on = &mut shared.cpus[here];
            if pick.task != on.id {
                self.clock.count_switch();
            }
            (on.task, on.id, on.since) = (task, pick.task, shared.now);
            on.slice_end = shared.now.saturating_add(pick.slice.0);
            self.clock.rearm(shared.due(here));
            Some(picked)
        })
    }

    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        // axtask calls this for a yield, a preemption and a wake-up alike. Only its own CPU can
        // have run what it puts back: a task is woken when it has left its CPU.
        let is_put = with(|shared, here| {
            let address = Arc::as_ptr(&prev).cast();
            if here != self.cpu {
                return false;
            }
            if shared.cpus[here].runs(address) {
                let on = &mut shared.cpus[here];
                on.put = Some(match (preempt, on.expired) {
                    (false, _) => Off::Yielded,
                    (true, false) => Off::Preempted,
                    (true, true) => Off::Expired,
                });
                return true;
            }
            if !Self::is_first(&prev, self.gc_task) {
                return false;
            }
            let id = Self::acquaint(shared, here, &prev);
            shared.tasks[id.index()].task = address;
            (shared.cpus[here].put, shared.cpus[here].id) = (Some(Off::Yielded), id);
            true
        });
        if !is_put {
            return self.enqueue(prev);
        }
        // The pick that follows takes this hold over.
        let _ = Arc::into_raw(prev);
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        with(|shared, here| {
            let cpu = CpuId(here as u16);
            let (now, on) = (shared.now, &mut shared.cpus[here]);
            let mut resched = mem::take(&mut on.resched);
            if on.runs(Arc::as_ptr(current).cast()) {
                let id = on.id;
                if now >= on.slice_end {
                    on.expired = true;
                    resched = true;
                }
                if now >= on.next_tick {
                    let ran = Self::charge(shared, here);
                    shared.call(|policy, cx| policy.tick(cx, cpu, id, ran));
                }
            } else if !Self::is_first(current, self.gc_task) {
                // Not the policy's task: it must not keep the policy's tasks waiting.
                resched = true;
            }
            shared.cpus[here].next_tick = shared.tick_after();
            shared.run_timers();
            if shared.kicks.contains(cpu) {
                shared.kicks.remove(cpu);
                resched = true;
            }
            let next_tick = shared.cpus[here].next_tick;
            self.clock.rearm(if resched { next_tick } else { shared.due(here) });
            resched
        })
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        if !(-20..=19).contains(&prio) {
            return false;
        }
        let params = task.set_weight(weight_of_nice(prio as i8));
        if let Some(id) = task.id_on(HOME as u32) {
            with(|shared, _| shared.call(|policy, cx| policy.update(cx, id, &params)));
        }
        true
    }
}
