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
//! - A vCPU whose budget has run out kicks too when it is put back, to no effect but that equals
//!   change places, and at the first end of a period that comes while it waits, even if it has had
//!   a new budget since.
//! - Two things that Xen does with extra time cause avoidable deadline misses. A vCPU that waits at
//!   a level above 0 kicks no CPU when its new period puts it ahead of running ones. And new
//!   periods begin in the order of a list, into which a vCPU that wakes or begins a period goes
//!   before the first that it precedes by (level, deadline) at that moment; vCPUs whose level rises
//!   stay where they are. So one that is due waits for all before it, whatever their deadlines, and
//!   may itself hold up others. `renewals = "prompt"` does neither.
//! - A vCPU whose affinity changes, or whose CPU goes out of use, leaves its place as one that
//!   falls asleep (a running one at the next pick of its CPU) and wakes at once on the first CPU
//!   that it may use, from its own upwards and wrapping around.
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
//! - `extratime` is one setting for all vCPUs.
//! - When a CPU that was kicked goes out of use before it picks, others are kicked for the vCPUs
//!   that wait. In Xen those wait for the next pick of any CPU.
//! - Levels end at 2^32 − 1, as since 4.22; before, they started again at 0.
//! - A budget above its period is cut to it; Xen refuses it.
//!
//! Weights, nice levels and domains are ignored. A yield only ends the turn: the same vCPU goes on
//! unless another one has the same deadline.
//! Where budgets do not fit, vCPUs starve: periods go on without those that never come first.
//! Not work-conserving: those without budget wait, and the CPU that was kicked for one vCPU may
//! run another that came after it while a second CPU is idle.
//! Cost: O(log n), and O(CPUs) for each that becomes ready; a pick looks past those that may not
//! run there.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuSet, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Links, List, Summary, Tree};
use anysched_core::registry::{First, Native, Policy};
use anysched_core::time::{Span, Time};
use anysched_core::{
    Arrival, Canon, Cx, Machine, Off, PerTask, Pick, Scheduler, canon_fields, canonical, choice,
    params,
};

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
    /// All vCPUs that are ready or run, in the order in which their periods end.
    periods: Forest<(), Latest>,
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
    /// Its budget has run out since the timer last looked at it.
    ran_out: bool,
    /// It must leave its CPU and wake again.
    moving: bool,
}

/// Level and deadline, of several vCPUs the last in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Latest(u32, Time);

impl Summary for Latest {
    const NEEDED: bool = true;

    fn merge(self, other: Latest) -> Latest {
        self.max(other)
    }
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
    const ORDER: &'static [First] = &[First::Least("level"), First::Least("deadline_ns")];
    const NATIVE: &'static [Native] = &[Native { host: "xen", scheduler: Some("stock-rtds") }];
    const STARVES: bool = true;

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
            ran_out: false,
            moving: false,
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
        if known.left > Span::ZERO {
            return;
        }
        if !self.params.extratime {
            known.ran_out = true;
            return;
        }
        known.level = known.level.saturating_add(1);
        known.left = known.budget;
        let place = self.place_in_periods(task);
        self.periods.set_own(task, place);
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

    /// By what the ends of periods are compared.
    fn place_in_periods(&self, task: TaskId) -> Latest {
        let known = self.task(task);
        match self.params.renewals {
            Renewals::Xen => Latest(known.level, known.deadline),
            Renewals::Prompt => Latest(0, known.deadline),
        }
    }

    fn expect_end(&mut self, task: TaskId) {
        let own = self.place_in_periods(task);
        let next = self.periods.first_that(&self.ends, |latest| latest > own);
        self.periods.insert_before(&mut self.ends, next, task, own);
    }

    fn poke(&mut self, cx: &mut Cx<'_>, cpu: usize) {
        let on = &mut self.cpus[cpu];
        if on.online {
            on.tickled = true;
            cx.kick(CpuId(cpu as u16));
        }
    }

    /// All CPUs, from `first` upwards and wrapping around.
    #[inline]
    fn ring(&self, first: CpuId) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (first.index(), self.cpus.len());
        (first..first + count).map(move |place| if place < count { place } else { place - count })
    }

    /// Kicks the best CPU for `task`, if there is one.
    fn tickle(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let known = self.task(task);
        let mut last = None;
        for cpu in self.ring(known.cpu) {
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
        if self.task(task).moving {
            self.rest(task);
            self.relocate(task);
            return self.wake(cx, task);
        }
        self.insert(task);
        self.tickle(cx, task);
    }

    /// `task` becomes ready.
    fn wake(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let known = &mut self.tasks[task];
        if cx.now >= known.deadline {
            known.renew(cx.now);
        }
        self.expect_end(task);
        self.put_back(cx, task);
    }

    /// Gives `task` a CPU that it may use, its own if it can.
    fn relocate(&mut self, task: TaskId) {
        let known = self.task(task);
        let usable =
            |&cpu: &usize| self.cpus[cpu].online && known.affinity.contains(CpuId(cpu as u16));
        if let Some(cpu) = self.ring(known.cpu).find(usable) {
            self.tasks[task].cpu = CpuId(cpu as u16);
        }
    }

    /// Has `task` leave its place and wake again on a CPU that it may use.
    fn replace(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let Task { place, cpu, .. } = *self.task(task);
        match place {
            Place::OnCpu => {
                self.tasks[task].moving = true;
                cx.kick(cpu);
                return;
            }
            Place::Waiting => self.waiting.remove(&mut self.queue, task),
            Place::Depleted => {}
            Place::Blocked => return self.relocate(task),
        }
        self.rest(task);
        self.relocate(task);
        self.wake(cx, task);
    }

    /// `task`, which is on no queue and no CPU, is no longer ready.
    fn rest(&mut self, task: TaskId) {
        let known = &mut self.tasks[task];
        (known.place, known.moving) = (Place::Blocked, false);
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
        let own = own.filter(|&own| self.task(own).left > Span::ZERO && !self.task(own).moving);
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
        self.relocate(task);
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let Task { affinity, period, budget, .. } = self.read(params);
        let known = &mut self.tasks[task];
        (known.period, known.budget) = (period, budget);
        if core::mem::replace(&mut known.affinity, affinity) != params.affinity {
            self.replace(cx, task);
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
        let aside = on.current.filter(|_| on.is_aside);
        for task in (0..self.tasks.len() as u32).map(TaskId) {
            if self.task(task).cpu == cpu {
                self.replace(cx, task);
            }
        }
        if let Some(aside) = aside {
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
        self.wake(cx, task);
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
        self.ends.first().map(|task| self.task(task).deadline)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        let mut renewed = List::default();
        while let Some(task) = self.ends.first() {
            if self.task(task).deadline > cx.now {
                break;
            }
            self.periods.remove(&mut self.ends, task);
            let prompt = self.params.renewals == Renewals::Prompt;
            let known = &mut self.tasks[task];
            known.ran_out |= prompt && known.place == Place::Waiting && known.level > 0;
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
            let Task { place, .. } = *self.task(task);
            match self.queue.first().filter(|_| place == Place::OnCpu) {
                Some(first) => {
                    if self.task(first).urgency() < self.task(task).urgency() {
                        self.tickle(cx, first);
                    }
                }
                None => {
                    let ran_out = core::mem::take(&mut self.tasks[task].ran_out);
                    if ran_out && place == Place::Waiting {
                        self.tickle(cx, task);
                    }
                }
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

    fn canon(&self, to: &mut Canon) {
        // Periods of new tasks are counted from time 0.
        to.word(to.now().0);
        canon_fields!(
            self,
            to,
            Rtds {
                params: fixed,
                tasks,
                cpus,
                waiting: fixed,
                queue: of(waiting),
                periods: fixed,
                ends: of(periods),
                renewed: fixed,
                arrivals: fixed
            }
        );
    }
}

canonical!(Cpu { online, tickled, current, is_aside });
canonical!(Place: u64);

impl Canonical for Task {
    fn canon(&self, _: &(), to: &mut Canon) {
        if self.place == Place::OnCpu {
            self.charged.canon(&(), to);
        }
        canon_fields!(
            self,
            to,
            Task {
                affinity,
                period,
                budget,
                left,
                deadline,
                level,
                place,
                cpu,
                charged: fixed,
                ran_out,
                moving,
            }
        );
    }
}
