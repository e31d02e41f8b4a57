//! What calling a policy takes, however many CPUs there are.

use anysched_core::canon::Canon;
use anysched_core::{CpuMask, Cx, Machine, Off, Scheduler, Span, Time, canon_fields};

/// A policy, and what it has asked for.
pub(crate) struct Driver<P> {
    pub(crate) policy: P,
    has_timers: bool,
    /// CPUs that it wants to pick, and that have not been told.
    pub(crate) kicks: CpuMask,
    tick: Option<Span>,
}

impl<P: Scheduler> Driver<P> {
    /// `policy`, which was built for `machine` and has not been called.
    pub(crate) fn new(policy: P, machine: &Machine) -> Driver<P> {
        let tick = policy.tick_period().or(machine.tick());
        Driver {
            has_timers: policy.has_timers(),
            policy,
            kicks: CpuMask::EMPTY,
            tick: tick.filter(|tick| *tick > Span::ZERO),
        }
    }

    #[inline]
    pub(crate) fn call<R>(&mut self, now: Time, call: impl FnOnce(&mut P, &mut Cx<'_>) -> R) -> R {
        call(&mut self.policy, &mut Cx::new(now, &mut self.kicks))
    }

    /// The first tick after now.
    pub(crate) fn tick_after(&self, now: Time) -> Time {
        self.tick.map_or(Time::NEVER, |tick| Time((now.0 / tick.0 + 1) * tick.0))
    }

    /// Runs the timers that are due.
    pub(crate) fn run_timers(&mut self, now: Time) {
        while self.policy.next_timer().is_some_and(|due| due <= now) {
            self.call(now, |policy, cx| policy.timer(cx));
        }
    }

    /// When the next timer is due.
    #[inline]
    pub(crate) fn timer(&self) -> Time {
        let timer = if self.has_timers { self.policy.next_timer() } else { None };
        timer.unwrap_or(Time::NEVER)
    }

    /// Records its state.
    pub(crate) fn canon(&self, to: &mut Canon) {
        canon_fields!(self, to, Driver { policy: fixed, has_timers: fixed, kicks, tick: fixed });
        if let Some(tick) = self.tick {
            to.phase(tick);
        }
        self.policy.canon(to);
    }
}

/// Why a task is put back that yields, or else is `preempted`, perhaps as its slice has `expired`.
#[inline]
pub(crate) fn put_because(preempted: bool, expired: bool) -> Off {
    match (preempted, expired) {
        (false, _) => Off::Yielded,
        (true, false) => Off::Preempted,
        (true, true) => Off::Expired,
    }
}
