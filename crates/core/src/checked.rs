//! Enforces the [contract](crate) between hosts and policies from outside: [`Checked`] wraps any
//! policy, tracks every call independently and reports violations by either side.
//!
//! | rule of the contract | a breach is |
//! |---|---|
//! | the diagram; 1: `now` never decreases; 2: `ran` | a [`HostFault`] |
//! | 3: idle CPUs are kicked for ready tasks | [`NoKick`], [`IdleBesideReady`] (see below) ¹ |
//! | nothing stays ready where all is idle and nothing is due | [`Lost`] |
//! | 4: kicks are not lost | [`HostFault::KickLost`] ² |
//! | 5: picks are ready, allowed, with a slice | [`DoubleRun`], [`NotReady`], [`NotAllowed`], … |
//! | 8: forced moves in `update` | [`NotMoved`] |
//! | 10: yielding | [`YielderFirst`] ³ |
//! | every ready task runs eventually | [`Lost`], [`Starved`] ² |
//! | timers are in the future, kicked CPUs exist | [`TimerStuck`], [`KickedNoSuchCpu`] |
//!
//! ¹ if [`Rules::work_conserving`]; ² after [`Rules::max_wait`]; ³ if [`Rules::yielders_wait`]
//!
//! Rule 3 is checked by its purpose. A CPU that runs nothing is either *about to pick* (it was
//! kicked, or `put_prev` was its last call) or *idle*. After every call, each ready task that an
//! idle CPU could run must have a CPU of its own that is about to pick and could run it, so that no
//! CPU stays idle while a ready task waits. Two arrivals thus need two kicks; a task put back by a
//! CPU that may run it needs none; and a CPU that picks a different task than the one it was kicked
//! for has to pass the kick on.
//!
//! Rules 6 and 7 concern how a policy decides and cannot be checked in a single run; the recorder
//! and its replay show whether decisions repeat. Of rule 8, pulling and pushing are covered by rule
//! 3.
//!
//! Cost: O(1) a call while no CPU is idle or no task is ready; otherwise up to O(ready tasks ·
//! CPUs²); O(tasks) when a CPU goes out of use. Nothing is allocated on the data plane until a
//! violation is found.
//!
//! [`NoKick`]: PolicyFault::NoKick
//! [`IdleBesideReady`]: PolicyFault::IdleBesideReady
//! [`DoubleRun`]: PolicyFault::DoubleRun
//! [`NotReady`]: PolicyFault::NotReady
//! [`NotAllowed`]: PolicyFault::NotAllowed
//! [`NotMoved`]: PolicyFault::NotMoved
//! [`YielderFirst`]: PolicyFault::YielderFirst
//! [`Lost`]: PolicyFault::Lost
//! [`Starved`]: PolicyFault::Starved
//! [`TimerStuck`]: PolicyFault::TimerStuck
//! [`KickedNoSuchCpu`]: PolicyFault::KickedNoSuchCpu

mod belief;
mod violation;

use alloc::vec::Vec;

pub(crate) use belief::Belief;
use belief::Overdue;
pub use violation::{Fault, HostFault, PolicyFault, TaskState, Violation};

use crate::call::Call;
use crate::ids::{CpuId, CpuMask, TaskId};
use crate::machine::Machine;
use crate::scheduler_by_call;
use crate::time::{Span, Time};
use crate::{Cx, Pick, Scheduler};

/// What [`Checked`] demands beyond the contract's diagram, and how it handles a violation.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether no CPU may idle while a ready task could run there. Policies with caps or budgets
    /// are not work-conserving, nor are runqueues that do not pull from each other.
    pub work_conserving: bool,
    /// The longest that a task may be ready without running; `None` is no limit.
    pub max_wait: Option<Span>,
    /// Whether a task that yields may be picked again on its CPU only after the tasks that were
    /// already ready and may run there. Holds for one runqueue without priorities.
    pub yielders_wait: bool,
    /// What happens on a violation.
    pub on_violation: OnViolation,
}

impl Default for Rules {
    /// Work-conserving, unlimited waits, and a panic on the first violation.
    fn default() -> Rules {
        Rules {
            work_conserving: true,
            max_wait: None,
            yielders_wait: false,
            on_violation: OnViolation::Panic,
        }
    }
}

/// What happens on a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnViolation {
    /// Panics with the violation as its message; for tests.
    Panic,
    /// Keeps it for [`Checked::violations`], and continues as well as possible: a call that the
    /// host must not make is not passed on (except that one that goes back in time is made at the
    /// latest time so far); picking a task that is not ready leaves the CPU idle. Later violations
    /// may be consequences, so trust the first.
    Collect,
}

/// How many violations are kept; further ones are only counted.
const KEPT: usize = 64;

/// A policy whose exchanges with its host are checked. See the [module documentation](self).
#[derive(Debug)]
pub struct Checked<S> {
    policy: S,
    rules: Rules,
    belief: Belief,
    calls: u64,
    /// The earliest time at which a wait can exceed the limit.
    next_overdue: Time,
    /// How many times in a row the timer was due again at once after it ran.
    timer_runs: u32,
    /// A ready task waits while a CPU is idle; reported only when this begins.
    unserved: bool,
    violations: Vec<Violation>,
    found: u64,
}

impl<S: Scheduler> Checked<S> {
    /// `policy`, which was built for `machine` and has had no call yet, under `rules`.
    pub fn new(policy: S, machine: &Machine, rules: Rules) -> Checked<S> {
        Checked {
            policy,
            rules,
            belief: Belief::new(machine),
            calls: 0,
            next_overdue: Time::ZERO,
            timer_runs: 0,
            unserved: false,
            violations: Vec::new(),
            found: 0,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &S {
        &self.policy
    }

    /// The policy, unwrapped.
    pub fn into_policy(self) -> S {
        self.policy
    }

    /// The violations so far, at most the first 64 since they were last taken.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Takes the violations so far.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        core::mem::take(&mut self.violations)
    }

    /// How many violations there have been, kept or not.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// The state of `task`, according to the calls.
    pub fn state(&self, task: TaskId) -> TaskState {
        self.belief.state(task)
    }

    /// Checks the waits as of `now`. Every call does that too; this is for the end of a run, when
    /// no further call would notice a lost task.
    pub fn check_waits(&mut self, now: Time) {
        self.belief.now = now.max(self.belief.now);
        let Some(most) = self.rules.max_wait else { return };
        if self.belief.now <= self.next_overdue {
            return;
        }
        let mut overdue = Vec::new();
        self.next_overdue = self.belief.overdue(most, |fault| overdue.push(fault));
        for fault in overdue {
            self.report(match fault {
                Overdue::Host(fault) => Fault::Host(fault),
                Overdue::Policy(fault) => Fault::Policy(fault),
            });
        }
    }

    #[cold]
    fn report(&mut self, fault: Fault) {
        let violation = Violation { call: self.calls, now: self.belief.now, fault };
        if self.rules.on_violation == OnViolation::Panic {
            panic!("{violation}");
        }
        self.found += 1;
        if self.violations.len() < KEPT {
            self.violations.push(violation);
        }
    }

    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        self.calls += 1;
        let mut allowed = self.belief.check(cx.now, &call);
        let mut now = cx.now;
        if let Err(fault @ HostFault::TimeWentBack { .. }) = allowed {
            self.report(Fault::Host(fault));
            now = self.belief.now;
            allowed = self.belief.check(now, &call);
        }
        if let Call::SetParam { name, text } = &call
            && self.policy.check_param(name, text).is_err()
        {
            allowed = Err(HostFault::ParamRefused);
        }
        self.check_waits(now);
        if let Err(fault) = allowed {
            self.report(Fault::Host(fault));
            return None;
        }
        let mut kicks = CpuMask::EMPTY;
        let mut inner = Cx { now, work: cx.work, kicks: &mut kicks };
        let pick = call.make(&mut self.policy, &mut inner);
        cx.work = inner.work;
        self.belief.apply(now, &call);
        self.pass_on(cx, &kicks);
        let pick = match call {
            Call::PickNext { cpu } => self.check_pick(cpu, pick),
            _ => None,
        };
        self.check_served(&call);
        self.expect_overdue(&call);
        match call {
            Call::Timer => self.check_timer(),
            Call::Update { task, .. } => {
                if let Some(cpu) = self.belief.runs_forbidden(task) {
                    self.report(Fault::Policy(PolicyFault::NotMoved { task, cpu }));
                }
            }
            _ => {}
        }
        pick
    }

    /// Plans when the wait of a task that has just become ready would exceed the limit.
    fn expect_overdue(&mut self, call: &Call<'_>) {
        let readies = match call {
            Call::Enqueue { .. } => true,
            Call::PutPrev { why, .. } => why.runnable(),
            _ => false,
        };
        if let Some(most) = self.rules.max_wait.filter(|_| readies) {
            self.next_overdue = self.next_overdue.min(self.belief.now + most);
        }
    }

    /// Passes the kicks of a call to the host and records them.
    fn pass_on(&mut self, cx: &mut Cx<'_>, kicks: &CpuMask) {
        let cpus = self.belief.cpus();
        for cpu in kicks.iter().filter(|cpu| cpu.index() >= cpus) {
            self.report(Fault::Policy(PolicyFault::KickedNoSuchCpu { cpu, cpus }));
        }
        for cpu in kicks.iter().filter(|cpu| cpu.index() < cpus) {
            cx.kick(cpu);
            self.belief.kick(cpu);
        }
    }

    /// Checks that every ready task that an idle CPU could run has a CPU of its own that is about
    /// to pick. Reports only the transition.
    fn check_served(&mut self, call: &Call<'_>) {
        if !self.rules.work_conserving {
            return self.check_drained();
        }
        let unserved = self.belief.unserved();
        let before = core::mem::replace(&mut self.unserved, unserved.is_some());
        let Some((task, idle)) = unserved.filter(|_| !before) else { return };
        let since = self.belief.since(task);
        self.report(Fault::Policy(match *call {
            Call::PickNext { cpu } if self.belief.left_idle(cpu, task) => {
                PolicyFault::IdleBesideReady { cpu, task, since }
            }
            _ => PolicyFault::NoKick { task, idle },
        }));
    }

    /// Checks that no task is ready while all CPUs are idle and no timer is set: nothing would ever
    /// happen to it. Whatever a policy holds back, it has to come back to. Reports only the
    /// transition.
    fn check_drained(&mut self) {
        let stuck = self.belief.stuck().filter(|_| self.policy.next_timer().is_none());
        let before = core::mem::replace(&mut self.unserved, stuck.is_some());
        if let Some((task, idle)) = stuck.filter(|_| !before) {
            let since = self.belief.since(task);
            self.report(Fault::Policy(PolicyFault::Lost { task, since, idle }));
        }
    }

    /// Checks the answer to `pick_next` and returns what the host gets.
    fn check_pick(&mut self, cpu: CpuId, pick: Option<Pick>) -> Option<Pick> {
        let Some(mut pick) = pick else {
            self.belief.rest(cpu);
            return None;
        };
        if let Err(fault) = self.belief.check_pick(cpu, pick) {
            self.report(Fault::Policy(fault));
            match fault {
                PolicyFault::NotAllowed { .. } => {}
                PolicyFault::ZeroSlice { .. } => pick.slice = Span(1),
                _ => {
                    self.belief.rest(cpu);
                    return None;
                }
            }
        }
        self.check_yielder(cpu, pick.task);
        self.belief.run(cpu, pick.task);
        Some(pick)
    }

    fn check_yielder(&mut self, cpu: CpuId, task: TaskId) {
        if !self.rules.yielders_wait || self.belief.yielded(cpu) != Some(task) {
            return;
        }
        let before = self.belief.first_ready_for(cpu);
        if let Some(other) = before.filter(|&other| other != task) {
            self.report(Fault::Policy(PolicyFault::YielderFirst { task, cpu, other }));
        }
    }

    /// A host runs the timer until it is due in the future. A policy may do its work in portions,
    /// but not forever.
    fn check_timer(&mut self) {
        match self.policy.next_timer().filter(|&due| due <= self.belief.now) {
            None => self.timer_runs = 0,
            Some(due) => {
                self.timer_runs += 1;
                if self.timer_runs as usize == 64 + 4 * self.belief.cpus() {
                    let runs = core::mem::take(&mut self.timer_runs);
                    self.report(Fault::Policy(PolicyFault::TimerStuck { due, runs }));
                }
            }
        }
    }
}

scheduler_by_call!([S: Scheduler] Checked<S>);
