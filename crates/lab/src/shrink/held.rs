//! The contract of policies, held against what is observed of a run.

use anysched_core::call::Call;
use anysched_core::checked::{OnViolation, Rules, Violation};
use anysched_core::recorder::Answer;
use anysched_core::{
    Arrival, Checked, CpuId, CpuMask, Cx, DomainId, DomainParams, Machine, Observer, Off,
    ParamError, Pick, Scheduler, Span, TaskId, TaskParams, Time,
};
use std::cell::RefCell;
use std::rc::Rc;

/// Answers what the policy has answered to the call that is being repeated.
pub(crate) struct Echo(pub(crate) Rc<RefCell<Answer>>);

impl Echo {
    fn kick(&self, cx: &mut Cx<'_>) {
        self.0.borrow().kicks.iter().for_each(|cpu| cx.kick(cpu));
    }
}

impl Scheduler for Echo {
    fn attach(&mut self, cx: &mut Cx<'_>, _: TaskId, _: &TaskParams) {
        self.kick(cx);
    }
    fn detach(&mut self, cx: &mut Cx<'_>, _: TaskId) {
        self.kick(cx);
    }
    fn update(&mut self, cx: &mut Cx<'_>, _: TaskId, _: &TaskParams) {
        self.kick(cx);
    }
    fn set_domain(&mut self, cx: &mut Cx<'_>, _: DomainId, _: &DomainParams) {
        self.kick(cx);
    }
    fn check_param(&self, _: &str, _: &str) -> Result<(), ParamError> {
        Ok(())
    }
    fn set_param(&mut self, cx: &mut Cx<'_>, _: &str, _: &str) {
        self.kick(cx);
    }
    fn set_online(&mut self, cx: &mut Cx<'_>, _: CpuId, _: bool) {
        self.kick(cx);
    }
    fn enqueue(&mut self, cx: &mut Cx<'_>, _: TaskId, _: Arrival) {
        self.kick(cx);
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>, _: TaskId) {
        self.kick(cx);
    }
    fn pick_next(&mut self, cx: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        self.kick(cx);
        self.0.borrow().pick
    }
    fn put_prev(&mut self, cx: &mut Cx<'_>, _: CpuId, _: TaskId, _: Span, _: Off) {
        self.kick(cx);
    }
    fn tick(&mut self, cx: &mut Cx<'_>, _: CpuId, _: TaskId, _: Span) {
        self.kick(cx);
    }
    fn next_timer(&self) -> Option<Time> {
        self.0.borrow().next_timer
    }
    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.kick(cx);
    }
}

/// So many picks of nothing at one moment are a policy that kicks CPUs for ever: a host does not
/// come to its next moment.
const ENDLESS: u32 = 100_000;

/// Notices that a run stands still.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    now: Time,
    idle: u32,
}

impl Pace {
    fn stands_still(&mut self, now: Time, call: &Call<'_>, pick: Option<Pick>) -> bool {
        if now != self.now {
            *self = Pace { now, idle: 0 };
        }
        if matches!(call, Call::PickNext { .. }) && pick.is_none() {
            self.idle += 1;
        }
        self.idle >= ENDLESS
    }
}

impl Observer for Pace {
    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        _: &CpuMask,
        _: &dyn Scheduler,
    ) {
        if self.stands_still(now, call, pick) {
            std::panic::resume_unwind(Box::new(Broken));
        }
    }
}

/// Watches a run until the contract is broken, and keeps its calls.
pub(crate) struct Held {
    checked: Checked<Echo>,
    answer: Rc<RefCell<Answer>>,
    /// The calls so far, that in which it was broken last; only if they are wanted.
    pub(crate) calls: Vec<(Time, Call<'static>)>,
    keeps: bool,
    /// How it was broken.
    pub(crate) broken: Option<Violation>,
    pace: Pace,
    /// When the run stood still, if it did.
    pub(crate) stood_still: Option<Time>,
}

/// What ends a run in which the contract has been broken, as a panic that shows nothing: a host
/// cannot go on from there, and may not come to its next beat.
pub(crate) struct Broken;

impl Held {
    /// For a policy on `machine` that has had no call yet.
    pub(crate) fn new(machine: &Machine, work_conserving: bool, keeps: bool) -> Held {
        let answer = Answer { pick: None, kicks: CpuMask::EMPTY, next_timer: None };
        let answer = Rc::new(RefCell::new(answer));
        let rules =
            Rules { work_conserving, on_violation: OnViolation::Collect, ..Rules::default() };
        let checked = Checked::new(Echo(Rc::clone(&answer)), machine, rules);
        Held {
            checked,
            answer,
            calls: Vec::new(),
            keeps,
            broken: None,
            pace: Pace::default(),
            stood_still: None,
        }
    }
}

impl Observer for Held {
    fn before(&mut self, now: Time, call: &Call<'_>, _: &dyn Scheduler) {
        if self.keeps {
            self.calls.push((now, call.clone().into_owned()));
        }
    }

    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        kicks: &CpuMask,
        policy: &dyn Scheduler,
    ) {
        let next_timer = policy.next_timer();
        *self.answer.borrow_mut() = Answer { pick, kicks: kicks.clone(), next_timer };
        let mut again = CpuMask::EMPTY;
        call.make(&mut self.checked, &mut Cx::new(now, &mut again));
        if let Some(&violation) = self.checked.violations().first() {
            self.broken = Some(violation);
        } else if self.pace.stands_still(now, call, pick) {
            self.stood_still = Some(now);
        }
        if self.broken.is_some() || self.stood_still.is_some() {
            std::panic::resume_unwind(Box::new(Broken));
        }
    }
}
