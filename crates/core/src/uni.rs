//! Turns an ordering rule into a scheduler for one CPU.
//!
//! What [`Smp`](crate::Smp) does for many CPUs, without placement, pulling or balancing: the right
//! size for a unikernel and for hosts that give each CPU its own scheduler. The registry builds it
//! for machines with one CPU.

use crate::canon::{Canon, Canonical};
use crate::ids::{CpuId, TaskId};
use crate::machine::Machine;
use crate::params::{ParamError, TaskParams};
use crate::per_task::PerTask;
use crate::smp::{At, Entry, NOBODY, Removal, RunQueue, Running, State, Why, due};
use crate::time::{Span, Time};
use crate::{Arrival, Cx, Off, Pick, Scheduler, ShortPick};

/// A [`Scheduler`] for one CPU from the rule `Q`.
#[derive(Debug)]
pub struct Uni<Q> {
    rule: Q,
    running: [Running; 1],
    online: bool,
    /// States of tasks that are not running. A running task keeps its earlier state here, so that a
    /// pick or a yield need not write it.
    states: PerTask<State>,
}

/// `At` borrows only what a rule may see, so that the rule itself can be borrowed at the same time.
macro_rules! at {
    ($self:ident, $cx:ident) => {
        At { now: $cx.now, queue: 0, running: &$self.running }
    };
}

impl<Q: RunQueue> Uni<Q> {
    /// The scheduler of `machine`'s only CPU.
    ///
    /// Errors: an unusable parameter.
    pub fn new(machine: &Machine, params: &Q::Params) -> Result<Uni<Q>, ParamError> {
        let nobody = Running { task: NOBODY, cpu: CpuId(0), told: false, since: Time::ZERO };
        Ok(Uni {
            rule: Q::build(machine, 1, params)?,
            running: [nobody],
            online: true,
            states: PerTask::new(),
        })
    }

    /// The rule, for tests and probes.
    pub fn rule(&self) -> &Q {
        &self.rule
    }

    /// Nothing is running, and the CPU has not been kicked since.
    #[inline]
    fn is_idle(&self) -> bool {
        self.running[0].task == NOBODY && !self.running[0].told && self.online
    }

    #[inline]
    fn touched(&self, cx: &mut Cx<'_>) {
        cx.work.queued = self.rule.len(0) as u32;
    }

    // Always inlined: the caller that both puts and picks then looks things up only once.
    #[inline(always)]
    fn put(&mut self, cx: &mut Cx<'_>, task: TaskId, ran: Span, why: Off) {
        self.rule.settle(&at!(self, cx), task, ran, why);
        self.running[0].task = NOBODY;
        if why.runnable() {
            self.rule.push(&at!(self, cx), task, &Entry::because(Why::Put(why)));
        } else {
            let delayed = self.rule.leave(&at!(self, cx), task, why);
            self.states[task] = if delayed { State::Delayed } else { State::Blocked };
        }
    }

    #[inline(always)]
    fn pick(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        self.running[0].told = false;
        let task = if self.online { self.rule.pop(&at!(self, cx), cpu, |_| true) } else { None };
        self.touched(cx);
        let task = task?;
        self.running[0].task = task.0;
        self.running[0].since = cx.now;
        let slice = self.rule.slice(&at!(self, cx), task);
        Some(Pick { task, slice })
    }

    /// Kicks the CPU if the rule wants it to pick ([`RunQueue::wants_pick`]).
    fn answer_wish(&mut self, cx: &mut Cx<'_>) {
        let Running { task, told, cpu, .. } = self.running[0];
        if task != NOBODY && !told && self.rule.wants_pick(cpu) {
            self.tell(cx);
        }
    }

    #[inline]
    fn tell(&mut self, cx: &mut Cx<'_>) {
        self.running[0].told = true;
        cx.kick(CpuId(0));
    }
}

impl<Q: RunQueue> Scheduler for Uni<Q> {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.states.set(task, State::Blocked);
        self.rule.attach(task, params);
    }

    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if self.states[task] == State::Delayed {
            self.rule.remove(&at!(self, cx), task, Removal::Dequeue);
            self.states[task] = State::Blocked;
            self.answer_wish(cx);
        }
        self.rule.detach(task);
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let runs = self.running[0].task() == Some(task);
        let state = if runs { State::Running } else { self.states[task] };
        self.rule.update(&at!(self, cx), state.whereabouts(), task, params);
        let asks = matches!(state, State::Ready | State::Running)
            && self.running[0].task != NOBODY
            && !self.running[0].told;
        if asks && self.rule.reconsiders(&at!(self, cx), task, &self.running[0]) {
            self.tell(cx);
        }
        self.answer_wish(cx);
    }

    fn check_param(&self, name: &str, text: &str) -> Result<(), ParamError> {
        self.rule.check_param(name, text)
    }

    fn set_param(&mut self, _: &mut Cx<'_>, name: &str, text: &str) {
        self.rule.set_param(name, text);
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, _: CpuId, online: bool) {
        self.online = online;
        if online {
            self.tell(cx);
        }
    }

    #[inline]
    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let entry = Entry::of(&arrival, arrival.from.and_then(|_| self.running[0].task()));
        self.states[task] = State::Ready;
        let at = at!(self, cx);
        self.rule.push(&at, task, &entry);
        let preempts = Q::PREEMPTS
            && !self.running[0].told
            && self.running[0].task != NOBODY
            && self.rule.preempts(&at, task, &self.running[0]).is_some();
        self.touched(cx);
        if self.is_idle() || preempts {
            self.tell(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.rule.remove(&at!(self, cx), task, Removal::Dequeue);
        self.states[task] = State::Blocked;
        self.touched(cx);
        self.answer_wish(cx);
    }

    #[inline]
    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        self.pick(cx, cpu)
    }

    #[inline]
    fn put_prev(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, ran: Span, why: Off) {
        self.put(cx, task, ran, why);
        self.touched(cx);
    }

    fn yield_and_pick(
        &mut self,
        cx: &mut Cx<'_>,
        cpu: CpuId,
        task: TaskId,
        ran: Span,
    ) -> ShortPick {
        self.put(cx, task, ran, Off::Yielded);
        self.pick(cx, cpu).into()
    }

    #[inline]
    fn tick(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, ran: Span) {
        self.rule.charge(&at!(self, cx), task, ran);
        self.running[0].since = cx.now;
        if self.rule.tick(&at!(self, cx), task) && !self.running[0].told {
            self.tell(cx);
        }
    }

    fn tick_period(&self) -> Option<Span> {
        self.rule.tick_period()
    }

    fn has_timers(&self) -> bool {
        Q::HAS_TIMERS
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        due(&self.rule)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if due(&self.rule).is_some_and(|due| due <= cx.now) {
            self.rule.timer(cx.now);
        }
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        self.rule.probe_in(0, task, sink);
    }

    fn learned(&self, sink: &mut dyn FnMut(&'static str, &str)) {
        self.rule.learned(sink);
    }

    fn canon(&self, to: &mut Canon) {
        let Uni { rule, running, online, states } = self;
        rule.canon(to);
        running.canon(&(), to);
        online.canon(&(), to);
        states.canon(&(), to);
    }
}
