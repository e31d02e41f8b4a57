//! The adapter for several CPUs: axtask's schedulers, one for each CPU, on one side, and one policy
//! for all of them on the other. What is made of axtask's calls is up to [`anysched_axtask`], which
//! all of them pass on under one lock.
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
use anysched_axtask::{Adapter, Current, Stopped};
use anysched_core::params::weight_of_nice;
use anysched_core::{CpuId, Machine, Scheduler, Span, TaskId, Time};
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
    adapter: Adapter<Box<dyn Scheduler>>,
    /// By the policy's number of a task: its address while it is ready (an owned `Arc`) or running
    /// (which the kernel holds), otherwise null.
    tasks: Vec<*const ()>,
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
        Shared { adapter: Adapter::new(build(boot, &machine), &machine), tasks: Vec::new() }
    }

    /// Has CPUs pick that the policy wants to, on the CPU `here`.
    fn pass_kicks_on(&mut self, here: CpuId) {
        let in_interrupt = Clock::of(here.index()).is_in_interrupt();
        while let Some(cpu) = self.adapter.take_kick(here, in_interrupt) {
            clock::interrupt(cpu.index());
        }
    }
}

/// Does something with the policy, on behalf of the CPU that calls this. Interrupts are off.
fn with<R>(act: impl FnOnce(&mut Shared, CpuId) -> R) -> R {
    let here = CpuId(this_cpu_id() as u16);
    let mut locked = SHARED.lock();
    let shared = locked.get_or_insert_with(Shared::new);
    shared.adapter.enter(Time(clock::now()), here);
    let done = act(shared, here);
    shared.pass_kicks_on(here);
    done
}

/// Must be called at the end of every interrupt.
pub fn interrupt_ends() {
    with(|shared, here| {
        let clock = Clock::of(here.index());
        clock.leave_interrupt();
        if shared.adapter.halts_in_vain(here) {
            // It came between the last look and the halt, or ended the halt.
            clock.rearm(shared.adapter.now().0 + HALT_RACE);
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

    /// The number by which the policy knows `task`, which it gets if it has none yet.
    fn acquaint(shared: &mut Shared, here: CpuId, task: &PolicyTask<T, S>) -> TaskId {
        if let Some(id) = task.id_on(HOME as u32) {
            return id;
        }
        let id = shared.adapter.attach(here, &task.params());
        if shared.tasks.len() <= id.index() {
            shared.tasks.push(core::ptr::null());
        }
        task.move_to(HOME as u32, id);
        id
    }

    /// The task `id` has run for so long, because of the policy.
    fn charge(shared: &Shared, (id, ran): (TaskId, Span)) {
        // SAFETY: it is not null, and the kernel drops its hold on the task it runs only when it
        // has switched to the next.
        unsafe { &*shared.tasks[id.index()].cast::<PolicyTask<T, S>>() }.ran(ran.0);
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
            let in_interrupt = Clock::of(here.index()).is_in_interrupt();
            let burst = task.work_left();
            shared.tasks[id.index()] = Arc::into_raw(task).cast();
            shared.adapter.ready(here, id, in_interrupt, burst);
        });
    }

    /// What this CPU ran has stopped, put back or to wait: tells the policy, if it picked it.
    fn stop(shared: &mut Shared, cpu: CpuId) -> Stopped {
        let task = shared.adapter.running(cpu).map(|id| shared.tasks[id.index()]);
        // SAFETY: as for the charge.
        let leaves = |task: *const ()| unsafe { &*task.cast::<PolicyTask<T, S>>() }.is_leaving();
        let stopped = shared.adapter.stop(cpu, task.is_some_and(leaves));
        if let Some(ran) = stopped.ran {
            Self::charge(shared, ran);
            if !stopped.stays() {
                shared.tasks[ran.0.index()] = core::ptr::null();
            }
        }
        stopped
    }

    /// The policy has nothing for this CPU.
    fn rest(&mut self, shared: &mut Shared, here: CpuId) -> Option<Arc<PolicyTask<T, S>>> {
        let gc = self.gc.take(shared.adapter.now().0);
        self.runs_gc = gc.is_some();
        let other = gc.or_else(|| self.idler.take());
        shared.adapter.rest(here, other.is_none());
        self.clock.rearm(shared.adapter.due(here).0.min(self.gc.due().unwrap_or(u64::MAX)));
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
            if !shared.adapter.take(id) {
                return None;
            }
            let ready = mem::replace(&mut shared.tasks[id.index()], core::ptr::null());
            // SAFETY: of a task that is ready it came from `Arc::into_raw`, and it is taken out.
            Some(unsafe { Arc::from_raw(ready.cast()) })
        })
    }

    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        self.runs_gc = false;
        with(|shared, here| {
            let stopped = Self::stop(shared, here);
            let adapter = &mut shared.adapter;
            let mailbox = Mailbox::of(HOME);
            mailbox.answer(adapter.policy());
            for (name, value) in mailbox.orders() {
                match adapter.policy().check_param(&name, &value) {
                    Ok(()) => adapter.call(|policy, cx| policy.set_param(cx, &name, &value)),
                    Err(why) => mailbox.refuse(format!("policy {}: {why}", boot().policy)),
                }
            }
            mailbox.collect().into_iter().for_each(|id| adapter.detach(id));
            adapter.look(here);
            let overdue = self.gc.take_overdue(adapter.now().0);
            self.runs_gc = overdue.is_some();
            let picked = adapter.pick(here, stopped, overdue.is_none());
            if picked.interrupts {
                // As soon as the CPU has switched.
                clock::interrupt(here.index());
            }
            if overdue.is_some() {
                return overdue;
            }
            let Some(pick) = picked.pick else { return self.rest(shared, here) };
            let task = shared.tasks[pick.task.index()];
            // SAFETY: it is a ready task's, and came from `Arc::into_raw`. Now that it runs it is
            // the kernel's.
            let task = unsafe { Arc::from_raw(task.cast::<PolicyTask<T, S>>()) };
            task.is_picked();
            if picked.switches {
                self.clock.count_switch();
            }
            self.clock.rearm(shared.adapter.due(here).0);
            Some(task)
        })
    }

    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        // axtask calls this for a yield, a preemption and a wake-up alike. Only its own CPU can
        // have run what it puts back: a task is woken when it has left its CPU.
        let is_put = with(|shared, here| {
            if here.index() != self.cpu {
                return false;
            }
            let known = prev.id_on(HOME as u32);
            if known.is_some_and(|id| shared.adapter.put(here, id, preempt)) {
                return true;
            }
            if !Self::is_first(&prev, self.gc_task) {
                return false;
            }
            let id = Self::acquaint(shared, here, &prev);
            shared.tasks[id.index()] = Arc::as_ptr(&prev).cast();
            shared.adapter.put_first(here, id);
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
            let current = match current.id_on(HOME as u32) {
                Some(id) => Current::Task(id),
                None if Self::is_first(current, self.gc_task) => Current::First,
                None => Current::Other,
            };
            let ticked = shared.adapter.tick(here, current);
            if let Some(ran) = ticked.ran {
                Self::charge(shared, ran);
            }
            let adapter = &shared.adapter;
            let due = if ticked.resched { adapter.next_tick(here) } else { adapter.due(here) };
            self.clock.rearm(due.0);
            ticked.resched
        })
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        if !(-20..=19).contains(&prio) {
            return false;
        }
        let params = task.set_weight(weight_of_nice(prio as i8));
        if let Some(id) = task.id_on(HOME as u32) {
            with(|shared, _| shared.adapter.update(id, &params));
        }
        true
    }
}
