//! Xen RTDS: each vCPU has a budget of CPU time in each period; of those with budget left, the ones
//! whose periods end first run, on all CPUs from one runqueue.
//!
//! Source: Xen 4.20.4 `xen/common/sched/rt.c` (deferrable servers under global earliest deadline
//! first). A task is a vCPU with the period and the budget of its `TaskParams`, or the policy's.
//!
//! - Order key: (level, deadline), behind equals. The deadline is the end of the current period;
//!   periods count from the origin of time, whenever the vCPU arrived.
//! - Running uses up the budget, to the ns. Sleeping does not: a vCPU that wakes in the same period
//!   has what it had left. At its deadline a ready vCPU, running or not, begins a new period at
//!   level 0 with its full budget; a sleeping one does when it wakes.
//! - Without budget a vCPU waits for its deadline. With `extratime` it gets its budget anew at
//!   once, one level further back: behind all that have used up fewer.
//! - A CPU picks the first that may run there, unless its own precedes it; equals displace it.
//! - Slice: the budget that is left.
//! - Kicks, for a vCPU that becomes ready, is put back, or gets a budget after having none: the
//!   first allowed CPU that is idle and has not been kicked, from its own upwards and wrapping
//!   around. Else, of the others, the one whose vCPU is last in order, if the new one precedes it.
//!   When a running vCPU begins a period and the first that waits then precedes it, that one kicks.
//! - Two things that Xen does with extra time cause avoidable deadline misses. A vCPU that waits at
//!   a level above 0 kicks no CPU when its new period puts it ahead of running ones. And the ends
//!   of periods are events in order of (level, deadline) as of when the vCPU woke or began its
//!   period, so one that woke at a level above 0 begins its next period only after all that were at
//!   level 0 then. `renewals = "prompt"` does neither.
//!
//! | constant | value |
//! |---|---|
//! | period, budget by default | 10 ms, 4 ms |
//! | least period and budget | 10 us |
//! | `extratime` by default | on |
//!
//! Deviations:
//! - Budget is charged as the host measures it, but never for more than the time since the period
//!   began. (Xen: by the clock.)
//! - A vCPU without budget kicks no CPU. In Xen it does when it is put back, with no effect but
//!   that equals change places.
//! - A running vCPU whose affinity changes goes on if it may. `extratime` is one setting for all
//!   vCPUs.
//! - Levels end at 2^32 − 1, as since 4.22; before, they started again at 0.
//! - A budget above its period is cut to it; Xen refuses it.
//!
//! Weights, nice levels and domains are ignored. A yield only ends the turn: the same vCPU goes on
//! unless another one has the same deadline.
//! Not work-conserving: those without budget wait, and the CPU that was kicked for one vCPU may
//! run another that came after it while a second CPU is idle.
//! Cost: O(log n), and O(CPUs) for each that becomes ready; a pick looks past those that may not
//! run there.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, CpuSet, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Links, List, Tree};
use anysched_core::registry::Policy;
use anysched_core::time::{Span, Time};
use anysched_core::{Arrival, Cx, Machine, Off, PerTask, Pick, Scheduler, choice, params};

/// The least period and budget.
const LEAST: Span = Span::from_us(10);

params! {
    /// Parameters of `rtds`.
    pub struct RtdsParams {
        /// Period of vCPUs without one of their own; at least 10us.
        period: Span = Span::from_ms(10),
        /// Budget of vCPUs without one of their own; at least 10us and at most the period.
        budget: Span = Span::from_ms(4),
        /// Whether vCPUs without budget run when none with budget does.
        extratime: bool = true,
        /// Whether extra time delays new periods, as in Xen.
        renewals: Renewals = Renewals::Xen,
    }
}

choice! {
    /// When vCPUs that have used extra time get their budgets.
    pub enum Renewals {
        /// After those that have not, and without preempting any.
        Xen = "xen",
        /// At their deadlines.
        Prompt = "prompt",
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Rtds {
    params: RtdsParams,
    tasks: PerTask<Task>,
    cpus: Vec<Cpu>,
    /// Waiting vCPUs with budget, by (level, deadline, arrival number).
    waiting: Forest<(u32, Time, u64)>,
    queue: Tree,
    /// All vCPUs that are ready or run, by (level or 0, deadline, arrival number).
    periods: Forest<(u32, Time, u64)>,
    ends: Tree,
    /// Those whose periods have just ended, while the timer runs.
    renewed: Links,
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Cpu {
    online: bool,
    /// It has been kicked and has not picked since.
    tickled: bool,
    current: Option<TaskId>,
    /// The current vCPU was taken off and the next pick has not come yet.
    is_aside: bool,
}

#[derive(Clone, Debug)]
struct Task {
    affinity: CpuSet,
    period: Span,
    budget: Span,
    /// What is left of the budget of this period, or of this level.
    left: Span,
    deadline: Time,
    level: u32,
    place: Place,
    cpu: CpuId,
    /// Up to when it has been charged.
    charged: Time,
    /// It may precede others now that the timer has given it a new budget.
    refilled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Blocked,
    Waiting,
    /// Ready, without budget.
    Depleted,
    /// Running, or taken off until the next pick.
    OnCpu,
}

impl Policy for Rtds {
    type Params = RtdsParams;
    const SOURCE: &'static str = "Xen 4.20.4 xen/common/sched/rt.c";

    fn is_work_conserving(_: &RtdsParams) -> bool {
        false
    }

    fn build(machine: &Machine, _: usize, params: &RtdsParams) -> Result<Rtds, ParamError> {
        if params.period < LEAST || params.period == Span::MAX {
            return Err(ParamError::Invalid { name: "period", why: "must be at least 10us" });
        }
        if !(LEAST..=params.period).contains(&params.budget) {
            let why = "must be from 10us to the period";
            return Err(ParamError::Invalid { name: "budget", why });
        }
        let cpu = Cpu { online: true, tickled: false, current: None, is_aside: false };
        Ok(Rtds {
            params: params.clone(),
            tasks: PerTask::new(),
            cpus: alloc::vec![cpu; machine.cpus()],
            waiting: Forest::default(),
            queue: Tree::default(),
            periods: Forest::default(),
            ends: Tree::default(),
            renewed: Links::default(),
            arrivals: 0,
        })
    }
}

impl Task {
    /// Smaller is more urgent.
    fn urgency(&self) -> (u32, Time) {
        (self.level, self.deadline)
    }

    /// Begins the period that contains `now`, which is not before the deadline.
    fn renew(&mut self, now: Time) {
        let ended = now.since(self.deadline).0 / self.period.0;
        self.deadline += Span(ended * self.period.0);
        self.deadline += self.period;
        self.left = self.budget;
        self.level = 0;
        self.charged = now;
    }
}

impl Rtds {
    fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    fn read(&self, params: &TaskParams) -> Task {
        let period = params.period.unwrap_or(self.params.period).max(LEAST);
        let budget = params.budget.unwrap_or(self.params.budget).clamp(LEAST, period);
        Task {
            affinity: params.affinity.clone(),
            period,
            budget,
            left: budget,
            deadline: Time::ZERO,
            level: 0,
            place: Place::Blocked,
            cpu: CpuId(0),
            charged: Time::ZERO,
            refilled: false,
        }
    }

    fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Uses up the budget of `task`, which has run for `ran` since it was last charged.
    fn charge(&mut self, task: TaskId, ran: Span, now: Time) {
        let known = &mut self.tasks[task];
        let used = ran.min(now.since(known.charged));
        known.charged = now;
        known.left = known.left.saturating_sub(used);
        if known.left == Span::ZERO && self.params.extratime {
            known.level = known.level.saturating_add(1);
            known.left = known.budget;
        }
    }

    /// Queues `task`, or sets it aside until its deadline.
    fn insert(&mut self, task: TaskId) {
        let arrival = self.arrival();
        let known = &mut self.tasks[task];
        if known.left == Span::ZERO {
            known.place = Place::Depleted;
            return;
        }
        known.place = Place::Waiting;
        let key = (known.level, known.deadline, arrival);
        self.waiting.insert(&mut self.queue, task, key, ());
    }

    fn expect_end(&mut self, task: TaskId) {
        let level = match self.params.renewals {
            Renewals::Xen => self.task(task).level,
            Renewals::Prompt => 0,
        };
        let key = (level, self.task(task).deadline, self.arrival());
        self.periods.insert(&mut self.ends, task, key, ());
    }

    fn poke(&mut self, cx: &mut Cx<'_>, cpu: usize) {
        let on = &mut self.cpus[cpu];
        if on.online {
            on.tickled = true;
            cx.kick(CpuId(cpu as u16));
        }
    }

    /// Kicks the best CPU for `task`, if it waits and there is one.
    fn tickle(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let known = self.task(task);
        if known.place != Place::Waiting {
            return;
        }
        let (own, count) = (known.cpu.index(), self.cpus.len());
        let mut last = None;
        for cpu in (own..count).chain(0..own) {
            let on = &self.cpus[cpu];
            if !on.online || on.tickled || !known.affinity.contains(CpuId(cpu as u16)) {
                continue;
            }
            let Some(current) = on.current else { return self.poke(cx, cpu) };
            let urgency = self.task(current).urgency();
            if last.is_none_or(|(most, _)| urgency > most) {
                last = Some((urgency, cpu));
            }
        }
        if let Some((_, cpu)) = last.filter(|&(urgency, _)| urgency > known.urgency()) {
            self.poke(cx, cpu);
        }
    }

    /// `task`, which has left its CPU, waits.
    fn put_back(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.insert(task);
        self.tickle(cx, task);
    }

    /// `task`, which is on no queue and no CPU, is no longer ready.
    fn rest(&mut self, task: TaskId) {
        self.tasks[task].place = Place::Blocked;
        self.periods.remove(&mut self.ends, task);
    }

    fn clear(&mut self, cpu: CpuId) {
        let on = &mut self.cpus[cpu.index()];
        (on.current, on.is_aside) = (None, false);
    }

    fn touched(&self, cx: &mut Cx<'_>) {
        cx.work.queued = self.queue.len() as u32;
    }

    /// The vCPU that `cpu` runs next, which is still where it was, and whether `cpu` has it
    /// already.
    fn choose(&self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<TaskId> {
        let usable = |&task: &TaskId| self.task(task).affinity.contains(cpu);
        let mut waiting = self.waiting.iter(&self.queue).inspect(|_| cx.work.scanned += 1);
        let first = waiting.find(usable);
        let own = self.cpus[cpu.index()].current.filter(usable);
        let own = own.filter(|&own| self.task(own).left > Span::ZERO);
        match (own, first) {
            (Some(own), Some(first)) => {
                let stays = self.task(own).urgency() < self.task(first).urgency();
                Some(if stays { own } else { first })
            }
            _ => own.or(first),
        }
    }
}

impl Scheduler for Rtds {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.waiting.attach(task);
        self.periods.attach(task);
        self.renewed.attach(task);
        let mut known = self.read(params);
        self.tasks.grow(task, |_| known.clone());
        known.renew(cx.now);
        self.tasks[task] = known;
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let Task { affinity, period, budget, .. } = self.read(params);
        let known = &mut self.tasks[task];
        (known.period, known.budget) = (period, budget);
        if core::mem::replace(&mut known.affinity, affinity) == params.affinity {
            return;
        }
        let Task { place, cpu, .. } = *known;
        match place {
            Place::Waiting => {
                self.waiting.remove(&mut self.queue, task);
                self.put_back(cx, task);
            }
            Place::OnCpu if !params.affinity.contains(cpu) => self.poke(cx, cpu.index()),
            _ => {}
        }
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        let on = &mut self.cpus[cpu.index()];
        let was_tickled = core::mem::replace(&mut on.tickled, false);
        on.online = online;
        if online {
            if !self.queue.is_empty() {
                self.poke(cx, cpu.index());
            }
            return;
        }
        if let Some(aside) = on.current.filter(|_| on.is_aside) {
            self.clear(cpu);
            self.put_back(cx, aside);
        }
        // Another vCPU counted on this CPU.
        let mut next = self.queue.first().filter(|_| was_tickled);
        while let Some(task) = next {
            next = self.waiting.next(task);
            self.tickle(cx, task);
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, _: Arrival) {
        let known = &mut self.tasks[task];
        if cx.now >= known.deadline {
            known.renew(cx.now);
        }
        self.expect_end(task);
        self.put_back(cx, task);
        self.touched(cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        match self.task(task).place {
            Place::Waiting => self.waiting.remove(&mut self.queue, task),
            Place::OnCpu => self.clear(self.task(task).cpu),
            Place::Depleted | Place::Blocked => {}
        }
        self.rest(task);
        self.touched(cx);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let on = &mut self.cpus[cpu.index()];
        if !on.online {
            return None;
        }
        on.tickled = false;
        let next = self.choose(cx, cpu);
        let on = &mut self.cpus[cpu.index()];
        let old = core::mem::replace(&mut on.current, next);
        on.is_aside = false;
        if let Some(next) = next {
            if old != Some(next) {
                self.waiting.remove(&mut self.queue, next);
            }
            let known = &mut self.tasks[next];
            (known.place, known.cpu, known.charged) = (Place::OnCpu, cpu, cx.now);
        }
        if let Some(old) = old.filter(|_| old != next) {
            self.put_back(cx, old);
        }
        self.touched(cx);
        next.map(|task| Pick { task, slice: self.task(task).left })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.charge(task, ran, cx.now);
        let on = &mut self.cpus[cpu.index()];
        if on.online && why.runnable() && why != Off::NotRun {
            on.is_aside = true;
            return;
        }
        self.clear(cpu);
        if why.runnable() {
            self.put_back(cx, task);
        } else {
            self.rest(task);
        }
    }

    fn tick(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, ran: Span) {
        self.charge(task, ran, cx.now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.ends.first().map(|task| self.periods.key(task).1)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        let mut renewed = List::default();
        while let Some(task) = self.ends.first() {
            if self.periods.key(task).1 > cx.now {
                break;
            }
            self.periods.remove(&mut self.ends, task);
            let prompt = self.params.renewals == Renewals::Prompt;
            let known = &mut self.tasks[task];
            known.refilled = known.place == Place::Depleted || prompt && known.level > 0;
            known.renew(cx.now);
            match known.place {
                Place::Waiting => {
                    self.waiting.remove(&mut self.queue, task);
                    self.insert(task);
                }
                Place::Depleted => self.insert(task),
                Place::OnCpu | Place::Blocked => {}
            }
            self.renewed.push_front(&mut renewed, task);
        }
        while let Some(task) = self.renewed.pop_front(&mut renewed) {
            let known = self.task(task);
            let first = self.queue.first().filter(|_| known.place == Place::OnCpu);
            if let Some(first) = first.filter(|&first| self.task(first).urgency() < known.urgency())
            {
                self.tickle(cx, first);
            } else if known.refilled {
                self.tickle(cx, task);
            }
            self.expect_end(task);
        }
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let known = self.task(task);
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        sink("budget_ns", whole(known.left.0));
        sink("deadline_ns", whole(known.deadline.0));
        sink("level", i64::from(known.level));
    }
}
