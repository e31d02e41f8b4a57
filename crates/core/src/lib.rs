//! CPU scheduling policies, written once, for simulators, unikernels, kernels and hypervisors.
//!
//! A *host* (a simulator, a kernel) drives a policy through [`Scheduler`]: it reports what happened
//! to which task and asks which task a CPU should run next. The policy decides and maintains the
//! queues; it uses no clock, lock, file or float. Time is passed in.
//!
//! Most policies are an ordering rule, a [`RunQueue`], and get the rest (which queue a CPU serves,
//! placement, pulling, balancing) from [`Smp`]. The policies themselves are in the crate
//! `anysched-policies`, with a list of them.
//!
//! # The contract
//!
//! ```text
//! Detached --attach--> Blocked --enqueue--> Ready --pick_next--> Running
//! Running --put_prev(runnable)--> Ready       Running --put_prev(Blocked | Exited)--> Blocked
//! Ready --dequeue--> Blocked --detach--> Detached
//! ```
//!
//! 1. The host serialises calls; one instance's CPUs are the lock domain. `now` never decreases.
//! 2. `ran` is CPU time since the last tick or pick as the host measured it; it may be less than
//!    the time that passed.
//! 3. After every call, each ready task that an idle CPU could run has a CPU of its own that is
//!    about to pick and may run it: one that has been kicked, or one between `put_prev` and
//!    `pick_next`. Policies that are not [work-conserving](registry::Nature) owe that only to tasks
//!    that they do not hold back, for example from CPUs with other runqueues.
//! 4. A kick may be late or merged, never lost; an extra pick is harmless.
//! 5. `pick_next` returns a ready task that is allowed on that CPU, and a slice above zero.
//!    [`Off::NotRun`] undoes a pick that the host could not start.
//! 6. Ties are broken by (key, arrival number). No hash iteration, no float, no unseeded
//!    randomness.
//! 7. Wake-up preemption is up to the policy: it knows what each CPU runs and kicks the victim.
//! 8. Load balancing has no method of its own: pulling happens in `pick_next`, pushing in
//!    `enqueue` and `timer`, forced moves in `update`, `set_param` and `set_online`.
//! 9. A host whose tasks stay on their old stack for a moment calls `put_prev`, `pick_next` and, if
//!    another task was picked, `dequeue(prev)`, then `enqueue(prev, Resumed)` once it is saved.
//! 10. A task that yields goes behind the other ready tasks unless the policy defines otherwise.
//!
//! [`Checked`] enforces this around any policy.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod affinities;
pub mod call;
pub mod canon;
pub mod checked;
pub mod ewma;
pub mod exp2;
pub mod ids;
pub mod machine;
pub mod neighbours;
pub mod noise;
pub mod observed;
pub mod params;
pub mod per_task;
mod policy;
pub mod promise;
pub mod queue;
pub mod random;
pub mod recorder;
pub mod registry;
pub mod scaling;
pub mod smp;
pub mod time;
pub mod tuning;
pub mod uni;

use alloc::boxed::Box;

pub use affinities::Affinities;
pub use canon::Canon;
pub use checked::Checked;
pub use ewma::Ewma;
pub use ids::{CpuId, CpuMask, CpuSet, DomainId, MAX_CPUS, TaskId};
pub use machine::Machine;
pub use observed::{Observed, Observer};
pub use params::{DomainParams, ParamError, Params, TaskParams};
pub use per_task::PerTask;
pub use recorder::Recorder;
pub use scaling::Scaling;
pub use smp::{RunQueue, Smp};
pub use time::{Span, Time, VTime};
pub use uni::Uni;

/// What a call gets besides its arguments: the time, and the means to kick CPUs.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The time of the call.
    pub now: Time,
    /// What the call touched, for hosts that charge for it.
    pub work: Work,
    kicks: &'a mut CpuMask,
}

/// How much work a call did, in units that a cost model can price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Work {
    /// The runqueue it locked; hosts that model contention serialise the calls to each queue.
    pub queue: u16,
    /// Tasks queued there afterwards.
    pub queued: u32,
    /// Tasks examined one by one, beyond the cost of an ordered structure.
    pub scanned: u32,
}

impl<'a> Cx<'a> {
    /// The context of a call at `now`; kicks are added to `kicks`.
    #[inline]
    pub fn new(now: Time, kicks: &'a mut CpuMask) -> Cx<'a> {
        Cx { now, work: Work::default(), kicks }
    }

    /// Whether a kick of any CPU is pending.
    #[inline]
    pub fn kicked(&self) -> bool {
        !self.kicks.is_empty()
    }

    /// Asks the host to run `put_prev` (if it runs a task) and `pick_next` on `cpu` soon.
    #[inline]
    pub fn kick(&mut self, cpu: CpuId) {
        self.kicks.insert(cpu);
    }

    /// A task that stays ready has left `cpu` as `why`: kicks `cpu` if that undid a pick, since it
    /// is not known whether the host tries again by itself.
    #[inline]
    pub fn kick_if_undone(&mut self, cpu: CpuId, why: Off) {
        if why == Off::NotRun {
            self.kick(cpu);
        }
    }
}

/// Why and how a task becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Why.
    pub why: Enqueue,
    /// The CPU whose task made it ready (its creator or waker); `None` for timers and devices.
    pub from: Option<CpuId>,
    /// CPU time it will use before it blocks or exits, if the host knows (simulators do, kernels do
    /// not). Only clairvoyant policies read it.
    pub burst: Option<Span>,
    /// The absolute deadline of the job that it starts, if it has one.
    pub deadline: Option<Time>,
}

impl Arrival {
    /// An arrival with only its reason known.
    pub fn because(why: Enqueue) -> Arrival {
        Arrival { why, from: None, burst: None, deadline: None }
    }
}

/// Why a task becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// It has just been created.
    New,
    /// It was blocked.
    Wakeup {
        /// The CPU it last ran on.
        prev: CpuId,
        /// The waker announced that it will block at once.
        sync: bool,
    },
    /// The host removed it only for a moment (rule 9 of the contract).
    Resumed {
        /// The CPU it last ran on.
        prev: CpuId,
    },
}

/// Why a task stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// Its slice ended.
    Expired,
    /// The policy kicked this CPU.
    Preempted,
    /// It gave up the CPU but stays ready.
    Yielded,
    /// The host could not start it; the pick is undone.
    NotRun,
    /// It waits for something.
    Blocked,
    /// It has ended.
    Exited,
}

impl Off {
    /// Whether the task stays ready.
    #[inline]
    pub fn runnable(self) -> bool {
        !matches!(self, Off::Blocked | Off::Exited)
    }
}

/// What a CPU runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The task.
    pub task: TaskId,
    /// CPU time after which the host takes it off again as [`Off::Expired`];
    /// [`Span::MAX`] is no limit, zero never occurs.
    pub slice: Span,
}

/// An `Option<Pick>` that fits in two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortPick(Pick);

impl From<Option<Pick>> for ShortPick {
    #[inline]
    fn from(pick: Option<Pick>) -> ShortPick {
        // A real slice is never zero.
        ShortPick(pick.unwrap_or(Pick { task: TaskId(u32::MAX), slice: Span::ZERO }))
    }
}

impl From<ShortPick> for Option<Pick> {
    #[inline]
    fn from(ShortPick(pick): ShortPick) -> Option<Pick> {
        (pick.slice > Span::ZERO).then_some(pick)
    }
}

/// A scheduling policy as hosts drive it. The [crate documentation](crate) has the contract.
pub trait Scheduler {
    /// Registers `task`. Control plane: may allocate.
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams);

    /// Forgets `task`, which is neither ready nor running. Its number may be reused.
    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId);

    /// Changes the parameters of `task`, in any state. Control plane: may allocate.
    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams);

    /// Sets the parameters of a domain. Control plane: may allocate.
    fn set_domain(&mut self, _cx: &mut Cx<'_>, _domain: DomainId, _params: &DomainParams) {}

    /// Whether [`Scheduler::set_param`] may change the parameter `name` of this policy to `text`
    /// now; both are as for [`registry::PolicyInfo::build`].
    ///
    /// Errors: the parameter cannot be changed while the policy runs, or not to that.
    fn check_param(&self, name: &str, _text: &str) -> Result<(), ParamError> {
        Err(ParamError::Fixed { name: name.into(), changeable: &[] })
    }

    /// Changes a parameter of the policy while it runs, which [`Scheduler::check_param`] has
    /// allowed; otherwise nothing happens. Tasks stay in the states that they are in. Control
    /// plane: may allocate.
    fn set_param(&mut self, _cx: &mut Cx<'_>, _name: &str, _text: &str) {}

    /// Takes `cpu` into or out of use; all are in use at first. When a CPU goes, the policy moves
    /// the tasks waiting on it; the host then takes off the running one, as [`Off::Preempted`].
    /// Before that, the host widens the affinity of tasks that would be left without an allowed
    /// CPU.
    fn set_online(&mut self, _cx: &mut Cx<'_>, _cpu: CpuId, _online: bool) {}

    /// `task`, which was blocked, becomes ready.
    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival);

    /// `task`, which was ready, stops being ready.
    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId);

    /// Picks the next task for `cpu`, which runs none; `None` leaves it idle until a kick.
    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick>;

    /// `task` stops running on `cpu`.
    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off);

    /// `task` yields `cpu`, which picks at once: combines [`Scheduler::put_prev`] with
    /// [`Off::Yielded`] and [`Scheduler::pick_next`] in one call, for hosts that count
    /// instructions.
    #[inline]
    fn yield_and_pick(
        &mut self,
        cx: &mut Cx<'_>,
        cpu: CpuId,
        task: TaskId,
        ran: Span,
    ) -> ShortPick {
        self.put_prev(cx, cpu, task, ran, Off::Yielded);
        self.pick_next(cx, cpu).into()
    }

    /// The host's periodic tick while `task` runs on `cpu`.
    fn tick(&mut self, _cx: &mut Cx<'_>, _cpu: CpuId, _task: TaskId, _ran: Span) {}

    /// The tick period that defines this policy, if one does; hosts that can, tick at this period.
    fn tick_period(&self) -> Option<Span> {
        None
    }

    /// Whether [`Scheduler::timer`] is ever due; if not, hosts need not ask when.
    fn has_timers(&self) -> bool {
        true
    }

    /// When [`Scheduler::timer`] is due; hosts ask again after each call.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Does what was due.
    fn timer(&mut self, _cx: &mut Cx<'_>) {}

    /// Names and values of the policy's state for `task`, for traces and tests.
    fn probe(&self, _task: TaskId, _sink: &mut dyn FnMut(&'static str, i64)) {}

    /// Names and values of the policy's own counters, for measurements: each name is a column
    /// `policy.NAME` of results. Per-CPU counters share one name and come in CPU order. Names
    /// depend on neither the machine nor the settings; those of times end with `_ns`, and none with
    /// `_cv`.
    fn tally(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}

    /// Names and values of parameters for a later run of the same program, learned from this run so
    /// far. Control plane: may allocate. See [`registry::PolicyInfo::rehearsal`].
    fn learned(&self, _sink: &mut dyn FnMut(&'static str, &str)) {}

    /// Records all that further decisions depend on, for searches that merge states: policies in
    /// states recorded alike answer alike whatever happens. Control plane: may allocate.
    fn canon(&self, to: &mut Canon) {
        to.unknown();
    }
}

macro_rules! forward {
    ($type:ty) => {
        impl<S: Scheduler + ?Sized> Scheduler for $type {
            fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
                (**self).attach(cx, task, params)
            }
            #[inline]
            fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
                (**self).detach(cx, task)
            }
            #[inline]
            fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
                (**self).update(cx, task, params)
            }
            fn set_domain(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
                (**self).set_domain(cx, domain, params)
            }
            fn check_param(&self, name: &str, text: &str) -> Result<(), ParamError> {
                (**self).check_param(name, text)
            }
            fn set_param(&mut self, cx: &mut Cx<'_>, name: &str, text: &str) {
                (**self).set_param(cx, name, text)
            }
            fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
                (**self).set_online(cx, cpu, online)
            }
            #[inline]
            fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
                (**self).enqueue(cx, task, arrival)
            }
            #[inline]
            fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
                (**self).dequeue(cx, task)
            }
            #[inline]
            fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
                (**self).pick_next(cx, cpu)
            }
            #[inline]
            fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
                (**self).put_prev(cx, cpu, task, ran, why)
            }
            #[inline]
            fn yield_and_pick(
                &mut self,
                cx: &mut Cx<'_>,
                cpu: CpuId,
                task: TaskId,
                ran: Span,
            ) -> ShortPick {
                (**self).yield_and_pick(cx, cpu, task, ran)
            }
            #[inline]
            fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
                (**self).tick(cx, cpu, task, ran)
            }
            #[inline]
            fn tick_period(&self) -> Option<Span> {
                (**self).tick_period()
            }
            fn has_timers(&self) -> bool {
                (**self).has_timers()
            }
            #[inline]
            fn next_timer(&self) -> Option<Time> {
                (**self).next_timer()
            }
            #[inline]
            fn timer(&mut self, cx: &mut Cx<'_>) {
                (**self).timer(cx)
            }
            #[inline]
            fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
                (**self).probe(task, sink)
            }
            fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
                (**self).tally(sink)
            }
            fn learned(&self, sink: &mut dyn FnMut(&'static str, &str)) {
                (**self).learned(sink)
            }
            fn canon(&self, to: &mut Canon) {
                (**self).canon(to)
            }
        }
    };
}

forward!(Box<S>);
forward!(&mut S);
