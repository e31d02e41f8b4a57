//! OSv: the task with the least exponentially decayed use of its CPU runs; each CPU has a
//! runqueue of its own, new tasks stay with their creator, and a busy CPU gives one task away
//! every 100 ms.
//!
//! Source: cloudius-systems/osv v0.57.0, `core/sched.cc` and `include/osv/sched.hh`. It is what
//! the M-RSF paper (Dong, Yang and Li 2024) compares with and calls MQMS; what that paper says of
//! it is `mqms-loose`.
//! Order key: R, behind equals. A CPU's clock t advances with time, idle or not; a task of priority
//! p that runs from a to b gains p (e^(b/τ) − e^(a/τ)), so that use weighs e^(−age/τ) relative to
//! new use. p = 1024 / weight: half of it means twice the share.
//! A running task counts as if its clock were `thyst` behind, which keeps it running, and a task
//! that takes the CPU from one that could go on pays `penalty` (the CPU's clock advances by it).
//! The CPU decides again when the running task's R is about to pass that of the first waiting task,
//! with 1 % on top.
//! A task that becomes ready goes to the CPU it last ran on, which takes it in at its next
//! reschedule: at once if it is idle, if the waker runs there, or if no task waits there.
//!
//! Deviations, all because a policy here has no threads or interrupts of its own:
//! - The balancer takes no time and its arrival ends no head start (in OSv it is a thread that
//!   preempts for some µs every 100 ms). Its periods begin together, lowest CPU first.
//! - A task woken by timers and devices counts as woken on its own CPU, where OSv runs its timers.
//! - R is a number of 64 bits with a wide exponent, so nothing is ever renormalised; OSv's has 24
//!   bits and forgets tasks that slept through two renormalisations (87 τ or more).
//! - Time on the CPU that a task did not get ages R but is not charged.
//! - A timer that would be due at once ends the slice after 1 ns; OSv sets none and relies on the
//!   balancer's interrupt.
//! - Affinity may be any set. Tasks of a CPU that goes away, or that may not run where they should,
//!   move to the allowed CPU with the smallest queue, the lowest of equals.
//!
//! Not work-conserving: an idle CPU never pulls. OSv's size of a queue includes the waiting idle
//! thread and the one that its balancer displaces, so a lone task moves to an idle CPU at every
//! period.
//! Cost: O(log n); balancing looks past tasks that may not move.

mod balance;
pub(crate) mod decay;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use self::decay::{Decay, Real, TAU};
use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuSet, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::{First, Policy};
use anysched_core::time::{Span, Time};
use anysched_core::{
    Arrival, Canon, Cx, Enqueue, Machine, Off, PerTask, Pick, Scheduler, canon_fields, canonical,
    choice, params,
};

choice! {
    /// Where a task starts.
    pub enum StartPlace {
        /// On the CPU of its creator, as in OSv.
        Creator = "creator",
        /// On all CPUs in turn.
        Spread = "spread",
    }
}

params! {
    /// Parameters of `osv`.
    pub struct OsvParams {
        /// Time in which use of the CPU loses all but 1/e of its weight; 1us to 1h.
        tau: Span = Span::from_ms(200),
        /// Head start of the running task; equals take turns of twice that.
        thyst: Span = Span::from_ms(5),
        /// Charge for taking the CPU from a task that could go on; below thyst.
        penalty: Span = Span::from_us(10),
        /// Interval at which each CPU looks for one that has less to do; 0 never looks.
        lb_period: Span = Span::from_ms(100),
        /// The most tasks that a CPU gives away at a time; 1 in OSv.
        lb_batch: u32 = 1,
        /// Where a task starts. It wakes where it last ran.
        start_place: StartPlace = StartPlace::Creator,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Osv {
    params: OsvParams,
    decay: Decay,
    /// Ready tasks by R, in the scale of their CPU.
    queued: Forest<Real>,
    /// Tasks that their CPU has not taken in yet, by the CPU that sent them.
    sent: Forest<u16>,
    cpus: Vec<Cpu>,
    tasks: PerTask<Task>,
    /// Where the next task to be spread starts.
    next_start: usize,
    next_balance: Time,
    /// When the balancers last ran.
    balanced: Time,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Cpu {
    online: bool,
    /// ns, without the head start of the running task; as of when it last rescheduled.
    clock: i64,
    queue: Tree,
    incoming: Tree,
    /// Tasks that are sent here as soon as they are off their CPU.
    expected: usize,
    current: Current,
    /// Why the current task has been taken off, until the next pick.
    put: Option<Off>,
    rescheduled: Time,
    /// CPU time since then that was reported.
    ran: Span,
}

#[derive(Clone, Debug)]
enum Current {
    Idle,
    /// The task that ran has left; the next one is about to be picked.
    Left,
    Task(Stint),
}

/// A task's time on a CPU, from one switch to the next.
#[derive(Clone, Debug)]
struct Stint {
    task: TaskId,
    began: Time,
    /// All CPU time that was reported.
    ran: Span,
    /// p e^(clock/τ) where R was last charged.
    base: Real,
    /// R of the waiting task that its slice is for, or less; none if the slice has no end.
    rival: Option<Real>,
    /// The balancer gives the task to this CPU as soon as it is off its present one.
    leaves_for: Option<CpuId>,
}

#[derive(Clone, Debug)]
struct Task {
    affinity: CpuSet,
    p: Real,
    /// R, in the scale of `cpu`; that of a running task as of its stint's base.
    r: Real,
    cpu: CpuId,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Away,
    Incoming,
    Queued,
    /// Running, or put aside until the next pick.
    OnCpu,
}

impl Task {
    fn new(params: &TaskParams) -> Task {
        Task {
            affinity: params.affinity.clone(),
            p: Real::ratio(anysched_core::params::NICE_0_WEIGHT, params.weight.max(1)),
            r: Real::ZERO,
            cpu: CpuId(0),
            place: Place::Away,
        }
    }
}

impl Policy for Osv {
    type Params = OsvParams;
    const SOURCE: &'static str = "OSv v0.57.0 core/sched.cc";
    const ORDER: &'static [First] = &[First::Least("decayed_runtime_ns")];

    fn is_work_conserving(_: &OsvParams) -> bool {
        false
    }

    fn build(_: &Machine, queues: usize, params: &OsvParams) -> Result<Osv, ParamError> {
        if !TAU.contains(&params.tau) {
            return Err(ParamError::Invalid { name: "tau", why: "must be from 1us to 1h" });
        }
        if params.thyst > *TAU.end() {
            return Err(ParamError::Invalid { name: "thyst", why: "must be at most 1h" });
        }
        if params.penalty >= params.thyst {
            // OSv would set no timer for a task whose head start the penalty has used up.
            return Err(ParamError::Invalid { name: "penalty", why: "must be below thyst" });
        }
        if params.lb_batch == 0 {
            return Err(ParamError::Invalid { name: "lb_batch", why: "must be above 0" });
        }
        let cpu = Cpu {
            online: true,
            clock: 0,
            queue: Tree::default(),
            incoming: Tree::default(),
            expected: 0,
            current: Current::Idle,
            put: None,
            rescheduled: Time::ZERO,
            ran: Span::ZERO,
        };
        Ok(Osv {
            decay: Decay::new(params.tau),
            next_balance: Time::ZERO + params.lb_period,
            balanced: Time::ZERO,
            params: params.clone(),
            queued: Forest::default(),
            sent: Forest::default(),
            cpus: alloc::vec![cpu; queues],
            tasks: PerTask::new(),
            next_start: 0,
        })
    }
}

impl Cpu {
    fn advance(&mut self, span: Span) {
        self.clock = self.clock.saturating_add_unsigned(span.0);
    }

    /// The clock at `now`, as far as it is known before the CPU time since is reported.
    fn clock_at(&self, now: Time) -> i64 {
        self.clock.saturating_add_unsigned(now.since(self.rescheduled).0)
    }

    /// Whether a pick is coming without a kick.
    fn is_choosing(&self) -> bool {
        self.put.is_some() || matches!(self.current, Current::Left)
    }

    fn stint(&self) -> Option<&Stint> {
        match &self.current {
            Current::Task(stint) => Some(stint),
            _ => None,
        }
    }

    /// The task that it runs.
    fn running(&self) -> Option<&Stint> {
        self.stint().filter(|_| self.put.is_none())
    }

    /// The size of its queue as OSv sees it: that of a busy CPU includes the idle thread, and an
    /// idle one takes newcomers in at once.
    fn size(&self) -> usize {
        match self.running() {
            Some(_) => self.queue.len() + 1,
            None => {
                let aside = usize::from(self.put.is_some());
                self.queue.len() + self.incoming.len() + self.expected + aside
            }
        }
    }
}

impl Osv {
    fn thyst(&self) -> i64 {
        self.params.thyst.0 as i64
    }

    fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].online && self.tasks[task].affinity.contains(cpu)
    }

    /// Advances the clock of `cpu` by what has passed since it last rescheduled.
    fn settle(&mut self, cpu: usize, now: Time) {
        let penalty = self.params.penalty;
        let on = &mut self.cpus[cpu];
        let passed = now.since(on.rescheduled);
        on.advance(match on.current {
            // OSv treats a clock that stands still as one that is too coarse.
            _ if passed == Span::ZERO => penalty,
            Current::Task(_) => on.ran,
            _ => passed,
        });
        on.ran = Span::ZERO;
        on.rescheduled = now;
    }

    /// R of the current task of `cpu` when the clock is `clock`.
    fn r_at(&self, stint: &Stint, clock: i64) -> Real {
        let Task { p, r, .. } = self.tasks[stint.task];
        r.plus(p.times(self.decay.growth(clock)).minus(stint.base))
    }

    /// Takes the current task of `cpu`, which has been settled, off for good; it is then on no
    /// queue.
    fn end_stint(&mut self, cpu: usize, now: Time) -> Option<Stint> {
        let on = &mut self.cpus[cpu];
        on.put = None;
        let Current::Task(stint) = core::mem::replace(&mut on.current, Current::Left) else {
            return None;
        };
        let r = self.r_at(&stint, self.cpus[cpu].clock);
        self.tasks[stint.task].r = r;
        self.tasks[stint.task].place = Place::Away;
        self.cpus[cpu].advance(now.since(stint.began).saturating_sub(stint.ran));
        Some(stint)
    }

    fn take_in(&mut self, cpu: usize) {
        while let Some(task) = self.sent.pop_first(&mut self.cpus[cpu].incoming) {
            self.queue(cpu, task);
        }
    }

    fn queue(&mut self, cpu: usize, task: TaskId) {
        let known = &mut self.tasks[task];
        known.place = Place::Queued;
        self.queued.insert(&mut self.cpus[cpu].queue, task, known.r, ());
    }

    /// Removes `task` from wherever it waits.
    fn take_out(&mut self, task: TaskId, now: Time) {
        let known = &mut self.tasks[task];
        let cpu = known.cpu.index();
        match core::mem::replace(&mut known.place, Place::Away) {
            Place::Queued => self.queued.remove(&mut self.cpus[cpu].queue, task),
            Place::Incoming => self.sent.remove(&mut self.cpus[cpu].incoming, task),
            Place::OnCpu => {
                self.settle(cpu, now);
                self.end_stint(cpu, now);
            }
            Place::Away => {}
        }
    }

    /// Hands `task` to its CPU and makes sure that the CPU takes it in when it would in OSv.
    fn send(&mut self, cx: &mut Cx<'_>, task: TaskId, from: CpuId) {
        let known = &mut self.tasks[task];
        known.place = Place::Incoming;
        let (to, on) = (known.cpu, &mut self.cpus[known.cpu.index()]);
        self.sent.insert(&mut on.incoming, task, from.0, ());
        let waits = on.running().is_some() && from != to && !on.queue.is_empty();
        if !waits && !on.is_choosing() {
            cx.kick(to);
        }
        self.touched(cx, to);
    }

    fn touched(&self, cx: &mut Cx<'_>, cpu: CpuId) {
        let on = &self.cpus[cpu.index()];
        cx.work.queue = cpu.0;
        cx.work.queued = (on.queue.len() + on.incoming.len()) as u32;
    }

    /// Whether the current task of `cpu` is still ahead of `first`.
    fn is_ahead(&self, cpu: usize, first: TaskId) -> bool {
        let on = &self.cpus[cpu];
        let Some(stint) = on.stint() else { return false };
        let Task { p, r, .. } = self.tasks[stint.task];
        let charged = r.plus(p.times(self.decay.growth(on.clock - self.thyst())));
        charged < self.queued.key(first).plus(stint.base)
    }

    /// How long the current task of `cpu` will stay ahead of all that wait there.
    fn time_ahead(&self, cpu: usize) -> Span {
        let on = &self.cpus[cpu];
        let (Some(stint), Some(first)) = (on.stint(), on.queue.first()) else { return Span::MAX };
        let Task { p, r, .. } = self.tasks[stint.task];
        let until = self.queued.key(first).plus(stint.base).minus(r).over(p);
        if until == Real::ZERO {
            return Span(1);
        }
        self.decay.time_until(until, on.clock - self.thyst()).max(Span(1))
    }

    /// The current task of `cpu`, for as long as it stays ahead.
    fn goes_on(&mut self, cpu: usize) -> Option<Pick> {
        let slice = self.time_ahead(cpu);
        let on = &mut self.cpus[cpu];
        let rival = on.queue.first().map(|first| self.queued.key(first));
        let Current::Task(stint) = &mut on.current else { return None };
        stint.rival = rival;
        Some(Pick { task: stint.task, slice })
    }

    /// Switches `cpu` to `task`, which is on no queue.
    fn begin(&mut self, cpu: usize, task: TaskId, now: Time, pays: bool) {
        let known = &mut self.tasks[task];
        known.place = Place::OnCpu;
        let on = &mut self.cpus[cpu];
        let base = known.p.times(self.decay.growth(on.clock));
        let ran = Span::ZERO;
        let stint = Stint { task, began: now, ran, base, rival: None, leaves_for: None };
        on.current = Current::Task(stint);
        if pays {
            on.advance(self.params.penalty);
        }
        on.rescheduled = now;
        on.ran = Span::ZERO;
    }

    /// What OSv does when the running task could go on; `why` it was taken off.
    fn repick(&mut self, cpu: usize, now: Time, why: Off) -> Option<Pick> {
        let first = self.cpus[cpu].queue.first();
        let yields = why == Off::Yielded;
        if !(why == Off::NotRun || yields && first.is_none()) {
            self.settle(cpu, now);
        }
        let goes_on = match first {
            None => true,
            Some(first) => !yields && self.is_ahead(cpu, first),
        };
        if goes_on {
            self.cpus[cpu].put = None;
            return self.goes_on(cpu);
        }
        let old = self.end_stint(cpu, now)?.task;
        if !yields {
            self.queue(cpu, old);
        }
        let next = self.queued.pop_first(&mut self.cpus[cpu].queue)?;
        if yields {
            self.queue(cpu, old);
        }
        self.begin(cpu, next, now, true);
        if !yields {
            return self.goes_on(cpu);
        }
        if let Current::Task(stint) = &mut self.cpus[cpu].current {
            stint.rival = Some(Real::ZERO);
        }
        Some(Pick { task: next, slice: self.params.thyst })
    }

    /// What OSv does when the task that ran has left, or none ran.
    fn pick(&mut self, cpu: usize, now: Time) -> Option<Pick> {
        let on = &mut self.cpus[cpu];
        if matches!(on.current, Current::Left) {
            on.advance(now.since(on.rescheduled));
            on.rescheduled = now;
            on.current = Current::Idle;
        } else if !on.queue.is_empty() {
            self.settle(cpu, now);
        }
        let next = self.queued.pop_first(&mut self.cpus[cpu].queue)?;
        self.begin(cpu, next, now, false);
        self.goes_on(cpu)
    }

    /// Where `task` becomes ready, if it may run there.
    fn wanted_cpu(&mut self, task: TaskId, arrival: &Arrival) -> CpuId {
        match (arrival.why, self.params.start_place) {
            (Enqueue::New, StartPlace::Creator) => arrival.from.unwrap_or(CpuId(0)),
            (Enqueue::New, StartPlace::Spread) => {
                let count = self.cpus.len();
                let turns = (self.next_start..).take(count).map(|turn| turn % count);
                let cpu = turns.map(|cpu| CpuId(cpu as u16)).find(|&cpu| self.may_run(task, cpu));
                let cpu = cpu.unwrap_or(CpuId(0));
                self.next_start = (cpu.index() + 1) % count;
                cpu
            }
            _ => self.tasks[task].cpu,
        }
    }
}

impl Scheduler for Osv {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.queued.attach(task);
        self.sent.attach(task);
        self.tasks.grow(task, |_| Task::new(&TaskParams::default()));
        self.tasks[task] = Task::new(params);
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let Task { affinity, p, .. } = Task::new(params);
        let Task { cpu, place, p: old_p, .. } = self.tasks[task];
        if place == Place::OnCpu && p != old_p {
            self.reprice(cpu.index(), p);
        }
        self.tasks[task].affinity = affinity;
        self.tasks[task].p = p;
        if self.may_run(task, cpu) {
            return;
        }
        let on = &self.cpus[cpu.index()];
        match place {
            Place::Away => {}
            Place::OnCpu if on.put.is_none() => {
                if on.online {
                    cx.kick(cpu);
                }
            }
            _ => {
                self.take_out(task, cx.now);
                self.rehome(cx, task);
            }
        }
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        let on = &mut self.cpus[cpu.index()];
        on.online = online;
        if online {
            if matches!(on.current, Current::Left) {
                on.current = Current::Idle;
            }
            return;
        }
        loop {
            let on = &self.cpus[cpu.index()];
            let aside = on.stint().filter(|_| on.put.is_some()).map(|stint| stint.task);
            let stranded = on.queue.first().or(on.incoming.first()).or(aside);
            let Some(task) = stranded else { break };
            self.take_out(task, cx.now);
            self.rehome(cx, task);
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let cpu = self.wanted_cpu(task, &arrival);
        if arrival.why == Enqueue::New {
            self.tasks[task].cpu = cpu;
        }
        if !self.may_run(task, cpu) {
            return self.rehome(cx, task);
        }
        if matches!(arrival.why, Enqueue::Resumed { .. }) {
            // It never really left the queue.
            self.queue(cpu.index(), task);
            // What runs there may have been given its slice while this task was out.
            let on = &self.cpus[cpu.index()];
            let r = self.tasks[task].r;
            let counted = on.stint().and_then(|stint| stint.rival).is_some_and(|rival| rival <= r);
            if !counted && !on.is_choosing() {
                cx.kick(cpu);
            }
            return self.touched(cx, cpu);
        }
        self.send(cx, task, arrival.from.unwrap_or(cpu));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.take_out(task, cx.now);
        self.touched(cx, self.tasks[task].cpu);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let index = cpu.index();
        if !self.cpus[index].online {
            return None;
        }
        self.take_in(index);
        let pick = match self.cpus[index].put {
            Some(why) => self.repick(index, cx.now, why),
            None => self.pick(index, cx.now),
        };
        self.touched(cx, cpu);
        pick
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.tick(cx, cpu, task, ran);
        let index = cpu.index();
        let leaves_for = self.expect_no_more(index);
        let leaves_for = leaves_for.filter(|&to| why.runnable() && self.may_run(task, to));
        if why.runnable() && leaves_for.is_none() && self.may_run(task, cpu) {
            self.cpus[index].put = Some(why);
        } else {
            self.settle(index, cx.now);
            self.end_stint(index, cx.now);
            match leaves_for {
                Some(to) => self.hand_over(cx, task, to),
                None if why.runnable() => self.rehome(cx, task),
                None => {}
            }
        }
        if self.cpus[index].online {
            cx.kick_if_undone(cpu, why);
        }
    }

    fn tick(&mut self, _: &mut Cx<'_>, cpu: CpuId, _: TaskId, ran: Span) {
        let on = &mut self.cpus[cpu.index()];
        on.ran += ran;
        if let Current::Task(stint) = &mut on.current {
            stint.ran += ran;
        }
    }

    fn next_timer(&self) -> Option<Time> {
        let balances = self.params.lb_period > Span::ZERO && self.cpus.len() > 1;
        balances.then_some(self.next_balance)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.balance(cx);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let known = &self.tasks[task];
        let on = &self.cpus[known.cpu.index()];
        let running = on.stint().filter(|stint| stint.task == task);
        let r = running.map_or(known.r, |stint| self.r_at(stint, on.clock));
        let decayed = self.decay.in_time(r.over(self.decay.growth(on.clock)));
        sink("runqueue", i64::from(known.cpu.0));
        sink("decayed_runtime_ns", i64::try_from(decayed).unwrap_or(i64::MAX));
    }

    fn canon(&self, to: &mut Canon) {
        // Use decays with the time, and is rounded on the way.
        to.word(to.now().0);
        canon_fields!(
            self,
            to,
            Osv {
                params: fixed,
                decay: fixed,
                queued: fixed,
                sent: fixed,
                cpus: fixed,
                tasks,
                next_start,
                next_balance,
                balanced
            }
        );
        for cpu in &self.cpus {
            cpu.canon(&self.queued, &self.sent, to);
            let queued = self.queued.iter(&cpu.queue);
            queued.for_each(|task| self.queued.key(task).canon(&(), to));
            let incoming = self.sent.iter(&cpu.incoming);
            incoming.for_each(|task| self.sent.key(task).canon(&(), to));
        }
    }
}

impl Osv {
    /// The current task of `cpu` goes on with another priority; all time before is charged at the
    /// old one.
    fn reprice(&mut self, cpu: usize, p: Real) {
        let Some(stint) = self.cpus[cpu].stint() else { return };
        let (task, r) = (stint.task, self.r_at(stint, self.cpus[cpu].clock));
        self.tasks[task].r = r;
        let on = &mut self.cpus[cpu];
        if let Current::Task(stint) = &mut on.current {
            stint.base = p.times(self.decay.growth(on.clock));
        }
    }
}

canonical!(Stint { task, began, ran, base, rival, leaves_for });
canonical!(Task { affinity, p, r, cpu, place });
canonical!(Place: u64);

impl Cpu {
    fn canon(&self, queued: &Forest<Real>, sent: &Forest<u16>, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Cpu {
                online,
                clock,
                queue: of(queued),
                incoming: of(sent),
                expected,
                current,
                put,
                rescheduled,
                ran,
            }
        );
    }
}

impl Canonical for Current {
    fn canon(&self, _: &(), to: &mut Canon) {
        match self {
            Current::Idle => to.word(0),
            Current::Left => to.word(1),
            Current::Task(stint) => {
                to.word(2);
                stint.canon(&(), to);
            }
        }
    }
}
