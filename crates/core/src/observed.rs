//! Watches a policy while it works: a listener is told each call before and after it is made, and
//! may ask the policy for its state.

use crate::call::Call;
use crate::ids::CpuMask;
use crate::scheduler_by_call;
use crate::time::Time;
use crate::{Cx, Pick, Scheduler};

/// Is told of the calls of a policy.
pub trait Observer {
    /// `policy` is about to be called.
    fn before(&mut self, now: Time, call: &Call<'_>, policy: &dyn Scheduler) {
        let _ = (now, call, policy);
    }

    /// `policy` has answered: with a pick, if that was asked for, and by kicking CPUs.
    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        kicks: &CpuMask,
        policy: &dyn Scheduler,
    );
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn before(&mut self, now: Time, call: &Call<'_>, policy: &dyn Scheduler) {
        (**self).before(now, call, policy);
    }
    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        kicks: &CpuMask,
        policy: &dyn Scheduler,
    ) {
        (**self).after(now, call, pick, kicks, policy);
    }
}

/// Wraps a policy and tells an [`Observer`] of its calls. Decides nothing, allocates nothing.
#[derive(Debug)]
pub struct Observed<S, O> {
    policy: S,
    observer: O,
}

impl<S: Scheduler, O: Observer> Observed<S, O> {
    /// Watches `policy`, which has not been called yet.
    pub fn new(policy: S, observer: O) -> Observed<S, O> {
        Observed { policy, observer }
    }

    #[inline]
    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        self.observer.before(cx.now, &call, &self.policy);
        let mut kicks = CpuMask::EMPTY;
        let mut inner = Cx { now: cx.now, work: cx.work, kicks: &mut kicks };
        let pick = call.make(&mut self.policy, &mut inner);
        cx.work = inner.work;
        kicks.iter().for_each(|cpu| cx.kick(cpu));
        self.observer.after(cx.now, &call, pick, &kicks, &self.policy);
        pick
    }
}

scheduler_by_call!([S: Scheduler, O: Observer] Observed<S, O>);
