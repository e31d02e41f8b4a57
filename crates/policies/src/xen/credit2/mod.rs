//! Xen Credit2: the vCPU with the most credit runs. Credit burns with CPU time, the slower the
//! greater the domain's weight, and when none has any left, all vCPUs of the runqueue get 10 ms
//! more.
//!
//! Source: Xen 4.20.4 `xen/common/sched/credit2.c` (the default scheduler since 4.12), and what
//! `core.c` beside it does to a vCPU that moves. A task is a vCPU, a runqueue (RQ) is shared by
//! the CPUs of a socket. Times are ns; a name in capitals is a constant of the source.
//!
//! - Order key: −credit, behind equals. Credit starts at CREDIT_INIT and never falls below
//!   CREDIT_MIN; d ns on a CPU burn d · W / w, where w is the domain's weight (DEFAULT_WEIGHT) and
//!   W the greatest among all vCPUs of the RQ. The remainder of the division is carried over.
//! - A CPU picks the first of the RQ that may run there, unless its own has at least as much
//!   credit. A vCPU is passed over if another CPU was kicked for it and has not picked yet, or if
//!   it last ran on another CPU and is not `migrate_resist` ahead of the running one. Until
//!   `ratelimit` after it was switched to, a vCPU that can go on does so. Neither that nor its
//!   credit protects one that yields: the first of the RQ runs, resistance apart.
//! - Then, if neither the pick nor the first of the RQ has credit above 0: reset, and balance.
//!   Reset: the credit of all vCPUs of the RQ, waiting or not, rises by CREDIT_INIT (by twice that
//!   if the pick is at CREDIT_MIN), to CREDIT_INIT + CARRYOVER_MAX at most. A pick from another CPU
//!   gains MIGRATE_COMPENSATION.
//! - Slice: until its credit is that of the first of the RQ (or of the one it displaces, whichever
//!   is more), if that is above 0, otherwise until it is 0; at most the budget; at least MIN_TIMER
//!   and the rest of `ratelimit`; at most MAX_TIMER.
//! - Kicks, when a vCPU enters the RQ: an idle CPU of an idle core (with `smt_power_savings`, of a
//!   busy one), else an idle CPU not kicked yet; its own first, then upwards. Else its own CPU if
//!   it has more credit than what runs there; else the one where it gains the most beyond
//!   `migrate_resist`. A vCPU that has run for less than `ratelimit` − TICKLE_TOLERANCE is left
//!   alone.
//! - Load of an RQ (vCPUs ready or running) and of a vCPU (0 or 1): after δ at load l, the average
//!   moves by (l − average) · δ/window, windows of 2^`load_window_shift` ns, time in units of 2^10
//!   ns, fixed point with `load_precision_shift` bits. A new vCPU counts one half. For decisions,
//!   an RQ also keeps a copy to which vCPUs that come and go are added at once.
//! - Place of a new vCPU, or one that may not stay: the RQ with the least load without it, and
//!   there the next CPU in turn. A woken one stays with its RQ.
//! - Balance: with the RQ whose load differs the most, if it differs by 2^`balance_under`, or by
//!   2^`balance_over` when the more loaded one has no CPU to spare: push one, pull one or swap two,
//!   whichever leaves the least difference. Running ones are taken off their CPU to be moved.
//! - Cap, in percent of a CPU for a whole domain: every `cap_period` its pool gains that share of
//!   it, and never holds more. To run, a vCPU takes an equal part for each vCPU of the domain, at
//!   least MIN_TIMER, or all there is; what it does not use goes back, what it overruns is a debt
//!   of the pool. With the pool empty it is parked until there is something.
//!
//! | constant | value |
//! |---|---|
//! | DEFAULT_WEIGHT | 256 |
//! | CREDIT_INIT, MAX_TIMER | 10 ms |
//! | CREDIT_MIN | −10 ms |
//! | MIN_TIMER, CARRYOVER_MAX | 500 us |
//! | MIGRATE_COMPENSATION, TICKLE_TOLERANCE | 50 us |
//! | credit of an idle CPU | CREDIT_MIN − 1 ns |
//!
//! Deviations:
//! - A CPU charges what the host says was used; when other CPUs look at it in between, the clock
//!   decides. (Xen: always the clock.)
//! - A kicked CPU that may no longer run the vCPU does not keep others from it. In Xen it does
//!   until it picks, and then nobody looks again.
//! - An idle CPU does not resist. In Xen it does when credit is below −9.5 ms, and since each CPU
//!   may leave the vCPU to the other, both could stay idle beside it.
//! - A CPU whose vCPU has blocked counts as idle until it picks; in Xen that is one step.
//! - Caps follow the number of vCPUs and also hold for those that come later. A cap above 100 % per
//!   vCPU is an error in Xen. A vCPU that blocks with its budget overrun is not parked.
//! - Left out: core scheduling, and contended locks.
//!
//! Soft affinity (`TaskParams::preferred`) counts for a vCPU if some CPU in use and some allowed
//! one are not preferred, and some allowed one is. Then its place is the RQ with the least load
//! among those with a preferred CPU, and one of these; a kick goes to a preferred idle CPU if there
//! is one, and only then to any; and a CPU that it does not prefer lets it go as soon as one of its
//! RQ that it does idles and has not been kicked. Of busy CPUs that it may displace, those that it
//! prefers and those that their own vCPU does not prefer have a lead of CREDIT_INIT each, and its
//! own comes first only if preferred. Balance and picks do not look at it.
//!
//! Kept although it looks unintended: whether there is a CPU to spare is judged by this RQ and the
//! last one of all, not the one compared with; 17 CPUs make three RQs, of 8, 8 and 1; a place that
//! is preferred counts as the last choice of the RQ with the least load of all.
//! Nice levels are ignored: weights are those of domains.
//!
//! Not work-conserving: a CPU never looks into another RQ, parked vCPUs wait, and a vCPU that was
//! passed over for a kicked CPU waits for that CPU's next pick.
//! Cost: O(log n) and O(CPUs of the RQ) to enter an RQ, O(vCPUs of the RQ) to reset, their product
//! for two RQs to balance.

mod budget;
mod layout;
mod load;
#[cfg(test)]
mod tests;
mod tickle;

use alloc::vec::Vec;

use self::budget::Domain;
use self::layout::Runqueues;
use self::load::{Load, Loads, Shift};
use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuSet, DomainId, TaskId};
use anysched_core::params::{DEFAULT_DOMAIN_WEIGHT, DomainParams, ParamError, TaskParams};
use anysched_core::queue::{Forest, Links, List, Tree};
use anysched_core::registry::{First, Native, Policy};
use anysched_core::time::{Span, Time};
use anysched_core::{
    Arrival, Canon, Cx, Machine, Off, PerTask, Pick, Scheduler, canon_fields, canonical, params,
};

const MS: i64 = 1_000_000;
const CREDIT_INIT: i64 = 10 * MS;
const CREDIT_MIN: i64 = -CREDIT_INIT;
const IDLE_CREDIT: i64 = CREDIT_MIN - 1;
const MIN_TIMER: Span = Span::from_us(500);
const MAX_TIMER: Span = Span(CREDIT_INIT as u64);
const CREDIT_MAX: i64 = CREDIT_INIT + MIN_TIMER.0 as i64;
const MIGRATE_COMPENSATION: i64 = 50_000;

params! {
    /// Parameters of `credit2`.
    pub struct Credit2Params {
        /// Which CPUs share a runqueue.
        runqueue: Runqueues = Runqueues::Socket,
        /// The most CPUs that share a runqueue; siblings always stay together.
        max_cpus_runqueue: u32 = 16,
        /// How long a vCPU runs before another may take its CPU; 0 or 100us to 500ms.
        ratelimit: Span = Span::from_ms(1),
        /// Lead in credit that a vCPU needs over the running one of a CPU it did not last run on.
        migrate_resist: Span = Span::from_us(500),
        /// Time between two replenishments of a capped domain; 500us to 1h.
        cap_period: Span = Span::from_ms(10),
        /// Binary logarithm of the window of load averages in ns; 11 to 40.
        load_window_shift: u32 = 30,
        /// Fractional bits of load averages; 4 to 20.
        load_precision_shift: u32 = 18,
        /// Binary logarithm of the load difference that is balanced while CPUs are to spare; −4 to
        /// 20.
        balance_under: Shift = Shift(0),
        /// The same when no CPU is to spare.
        balance_over: Shift = Shift(-3),
        /// Whether woken vCPUs prefer cores that are already busy.
        smt_power_savings: bool = false,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Credit2 {
    params: Credit2Params,
    machine: Machine,
    loads: Loads,
    tasks: PerTask<Task>,
    domains: Vec<Domain>,
    queues: Vec<Runqueue>,
    cpus: Vec<Cpu>,
    /// Waiting vCPUs by (−credit, arrival number).
    waiting: Forest<(i64, u64)>,
    members: Links,
    parked: Links,
    arrivals: u64,
    /// The earliest replenishment of any domain.
    next_replenishment: Time,
}

#[derive(Clone, Debug)]
struct Cpu {
    queue: usize,
    online: bool,
    /// It has been kicked and has not picked since.
    tickled: bool,
    idle: bool,
    current: Option<TaskId>,
    /// Why the current vCPU was taken off, until the next pick.
    put: Option<Off>,
}

/// The CPUs that share a queue, and the vCPUs that belong to it.
#[derive(Clone, Debug)]
struct Runqueue {
    /// In use, ascending. Without any, this is not a runqueue.
    cpus: Vec<CpuId>,
    waiting: Tree,
    /// All vCPUs, in order of arrival.
    members: List,
    max_weight: u32,
    load: Load,
    /// The average, with the expected effect of moves.
    expected: i64,
    /// How many vCPUs are ready or running.
    active: u32,
    /// The CPU that a vCPU was last placed on.
    pick_bias: CpuId,
    /// How many CPUs are idle.
    idle: u32,
}

#[derive(Clone, Debug)]
struct Task {
    affinity: CpuSet,
    preferred: CpuSet,
    domain: DomainId,
    weight: u32,
    /// The remainder of the last division by the weight.
    residual: u64,
    credit: i64,
    /// If the domain has a cap: what may be run before asking again; below 0, a debt.
    budget: Option<i64>,
    place: Place,
    queue: usize,
    cpu: CpuId,
    moving: Moving,
    /// The CPU that was kicked for it.
    tickled: Option<CpuId>,
    /// The last pick brought it from another CPU.
    compensated: bool,
    /// When it was switched to.
    entered: Time,
    /// Up to when it has been charged.
    charged: Time,
    /// What was charged by the clock and has not been reported yet.
    ahead: Span,
    load: Load,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Blocked,
    Waiting,
    /// Ready, but its domain has used up its cap.
    Parked,
    /// Running, or taken off until the next pick.
    OnCpu,
}

/// Whether a vCPU must leave its CPU at that CPU's next pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moving {
    No,
    Anywhere,
    To(usize),
}

impl Policy for Credit2 {
    type Params = Credit2Params;
    const SOURCE: &'static str = "Xen 4.20.4 xen/common/sched/credit2.c";
    const ORDER: &'static [First] = &[First::Most("credit_ns")];
    const NATIVE: &'static [Native] = &[Native { host: "xen", scheduler: Some("stock-credit2") }];

    fn is_work_conserving(_: &Credit2Params) -> bool {
        false
    }

    fn build(machine: &Machine, _: usize, params: &Credit2Params) -> Result<Self, ParamError> {
        check(params)?;
        let empty = Runqueue::new();
        let cpu =
            Cpu { queue: 0, online: false, tickled: false, idle: false, current: None, put: None };
        let mut credit2 = Credit2 {
            loads: Loads::new(params),
            params: params.clone(),
            machine: machine.clone(),
            tasks: PerTask::new(),
            domains: Vec::new(),
            queues: alloc::vec![empty; machine.cpus()],
            cpus: alloc::vec![cpu; machine.cpus()],
            waiting: Forest::default(),
            members: Links::default(),
            parked: Links::default(),
            arrivals: 0,
            next_replenishment: Time::NEVER,
        };
        for cpu in machine.cpu_ids() {
            credit2.add_cpu(cpu, machine.cpus(), Time::ZERO);
        }
        Ok(credit2)
    }
}

fn check(params: &Credit2Params) -> Result<(), ParamError> {
    let invalid = |name, why| Err(ParamError::Invalid { name, why });
    let ratelimits = Span::from_us(100)..=Span::from_ms(500);
    if params.max_cpus_runqueue == 0 {
        return invalid("max_cpus_runqueue", "must be above 0");
    }
    if params.ratelimit != Span::ZERO && !ratelimits.contains(&params.ratelimit) {
        return invalid("ratelimit", "must be 0 or from 100us to 500ms");
    }
    if params.migrate_resist > Span::from_s(1) {
        return invalid("migrate_resist", "must be at most 1s");
    }
    if !(MIN_TIMER..=Span::from_s(3600)).contains(&params.cap_period) {
        return invalid("cap_period", "must be from 500us to 1h");
    }
    if !(11..=40).contains(&params.load_window_shift) {
        return invalid("load_window_shift", "must be from 11 to 40");
    }
    if !(4..=20).contains(&params.load_precision_shift) {
        return invalid("load_precision_shift", "must be from 4 to 20");
    }
    let shifts = [("balance_under", params.balance_under), ("balance_over", params.balance_over)];
    for (name, shift) in shifts {
        if !(-4..=20).contains(&shift.0) {
            return invalid(name, "must be from -4 to 20");
        }
    }
    Ok(())
}

impl Task {
    /// Whether it may run on `cpu` and prefers to.
    fn prefers(&self, cpu: CpuId) -> bool {
        self.affinity.contains(cpu) && self.preferred.contains(cpu)
    }

    fn new(params: &TaskParams) -> Task {
        Task {
            affinity: params.affinity.clone(),
            preferred: params.preferred.clone(),
            domain: params.domain,
            weight: DEFAULT_DOMAIN_WEIGHT,
            residual: 0,
            credit: CREDIT_INIT,
            budget: None,
            place: Place::Blocked,
            queue: usize::MAX,
            cpu: CpuId(0),
            moving: Moving::No,
            tickled: None,
            compensated: false,
            entered: Time::ZERO,
            charged: Time::ZERO,
            ahead: Span::ZERO,
            load: Load::default(),
        }
    }
}

impl Credit2 {
    fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    /// Whether it matters which CPUs a vCPU prefers (Xen's `has_soft_affinity`).
    fn is_choosy(&self, Task { affinity, preferred, .. }: &Task) -> bool {
        if preferred.is_all() {
            return false;
        }
        let allowed = || self.machine.cpu_ids().filter(|cpu| affinity.contains(*cpu));
        let online = |cpu: &CpuId| self.cpus[cpu.index()].online;
        self.machine.cpu_ids().filter(online).any(|cpu| !preferred.contains(cpu))
            && allowed().any(|cpu| !preferred.contains(cpu))
            && allowed().any(|cpu| preferred.contains(cpu))
    }

    /// Whether `task`, which `cpu` runs, had better run on another CPU of its runqueue that idles.
    fn would_rather_move(&self, cpu: CpuId, task: TaskId) -> bool {
        let known = self.task(task);
        !known.prefers(cpu)
            && self.is_choosy(known)
            && self.queues[known.queue]
                .cpus
                .iter()
                .any(|&other| known.prefers(other) && self.is_free(other))
    }

    /// Burns the credit, and the budget, of `ran` on a CPU.
    fn charge(&mut self, task: TaskId, ran: Span) {
        let known = &mut self.tasks[task];
        let max_weight = u64::from(self.queues[known.queue].max_weight);
        let product = ran.0.checked_mul(max_weight).and_then(|n| n.checked_add(known.residual));
        // What does not fit exceeds all credit, whatever the weight.
        let (burned, residual) = product.map_or((u64::MAX, 0), |product| {
            let weight = u64::from(known.weight);
            (product / weight, product % weight)
        });
        known.residual = residual;
        known.credit = known.credit.saturating_sub_unsigned(burned).max(CREDIT_MIN);
        known.budget = known.budget.map(|budget| budget.saturating_sub_unsigned(ran.0));
    }

    /// Charges a vCPU that runs on some CPU, by the clock.
    fn charge_running(&mut self, task: TaskId, now: Time) {
        let known = &mut self.tasks[task];
        let ran = now.since(known.charged);
        known.charged = now;
        known.ahead += ran;
        self.charge(task, ran);
    }

    /// Charges what the host says `task` has run since it last said so.
    fn report(&mut self, task: TaskId, ran: Span, now: Time) {
        let known = &mut self.tasks[task];
        let rest = ran.saturating_sub(known.ahead);
        known.charged = now;
        known.ahead = Span::ZERO;
        self.charge(task, rest);
    }

    /// The vCPU that runs on `cpu` and has not been taken off.
    fn running(&self, cpu: CpuId) -> Option<TaskId> {
        let on = &self.cpus[cpu.index()];
        on.current.filter(|_| on.put.is_none())
    }

    fn set_idle(&mut self, cpu: CpuId, idle: bool) {
        let on = &mut self.cpus[cpu.index()];
        if core::mem::replace(&mut on.idle, idle) != idle {
            let count = &mut self.queues[on.queue].idle;
            *count = if idle { *count + 1 } else { *count - 1 };
        }
    }

    /// Adds `task` to the queue of its runqueue.
    fn insert(&mut self, task: TaskId) {
        let known = &mut self.tasks[task];
        known.place = Place::Waiting;
        let key = (-known.credit, self.arrivals);
        self.arrivals += 1;
        self.waiting.insert(&mut self.queues[known.queue].waiting, task, key, ());
    }

    fn remove(&mut self, task: TaskId) {
        let queue = &mut self.queues[self.tasks[task].queue];
        self.waiting.remove(&mut queue.waiting, task);
    }

    /// `task`, which is not queued, is ready in its runqueue.
    fn wake(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.change_load(task, 1, cx.now);
        self.insert(task);
        self.tickle(cx, task);
    }

    /// The first waiting vCPU that `cpu` should run rather than `own`, or else `own`.
    fn candidate(
        &mut self,
        cx: &mut Cx<'_>,
        cpu: CpuId,
        own: Option<TaskId>,
        yields: bool,
    ) -> Option<TaskId> {
        let credit = own.map_or(IDLE_CREDIT, |own| self.task(own).credit);
        let resist = own.map_or(IDLE_CREDIT, |_| credit + self.params.migrate_resist.0 as i64);
        let mut next = self.queues[self.cpus[cpu.index()].queue].waiting.first();
        while let Some(task) = next {
            next = self.waiting.next(task);
            cx.work.scanned += 1;
            let known = self.task(task);
            if !yields && known.credit <= credit {
                break;
            }
            let awaited = known.tickled.is_some_and(|by| by != cpu && self.awaits(by, known));
            let resisted = known.cpu != cpu && known.credit < resist;
            let fits = known.affinity.contains(cpu) && !awaited && !resisted;
            // Asking for budget takes it, so this check comes last.
            if fits && self.has_budget(task, cx.now) {
                return Some(task);
            }
        }
        own
    }

    /// Whether `cpu`, which was kicked for `task`, has not picked since and could still run it.
    fn awaits(&self, cpu: CpuId, task: &Task) -> bool {
        let on = &self.cpus[cpu.index()];
        on.tickled && on.queue == task.queue && task.affinity.contains(cpu)
    }

    /// Whether `task`, which has been taken off `cpu`, is ready and may go on or wait there.
    fn may_stay(&self, cpu: CpuId, task: TaskId) -> bool {
        let known = self.task(task);
        known.place == Place::OnCpu && known.cpu == cpu && !self.must_move(task)
    }

    /// Whether `task` may not remain where it is.
    fn must_move(&self, task: TaskId) -> bool {
        let known = self.task(task);
        let on = &self.cpus[known.cpu.index()];
        let belongs = on.online && on.queue == known.queue;
        known.moving != Moving::No || !belongs || !known.affinity.contains(known.cpu)
    }

    /// `cpu` loses its current vCPU.
    fn clear(&mut self, cpu: CpuId) {
        let on = &mut self.cpus[cpu.index()];
        (on.current, on.put) = (None, None);
        if on.online {
            self.set_idle(cpu, true);
        }
    }

    fn is_protected(&self, task: TaskId, now: Time) -> bool {
        now.since(self.task(task).entered) < self.params.ratelimit
    }

    /// Gives more credit to all if neither `next` nor any waiting vCPU has some.
    fn end_epoch(&mut self, cx: &mut Cx<'_>, cpu: CpuId, next: TaskId) {
        let queue = self.cpus[cpu.index()].queue;
        let first = self.queues[queue].waiting.first().map(|first| self.task(first).credit);
        if first.max(Some(self.task(next).credit)) > Some(0) {
            return;
        }
        let below = self.task(next).credit == CREDIT_MIN;
        self.reset(cx, queue, if below { 2 * CREDIT_INIT } else { CREDIT_INIT });
        self.balance(cx, queue);
    }

    fn reset(&mut self, cx: &mut Cx<'_>, queue: usize, by: i64) {
        let mut next = self.queues[queue].members.front();
        while let Some(task) = next {
            next = self.members.next(task);
            let cpu = self.task(task).cpu;
            if self.running(cpu) == Some(task) {
                self.charge_running(task, cx.now);
                if self.task(task).budget.is_some_and(|budget| budget <= 0) {
                    self.poke(cx, cpu);
                }
            }
            let known = &mut self.tasks[task];
            known.credit = (known.credit + by).min(CREDIT_MAX);
        }
        // The order stays, but those that have reached the maximum are equal from here on.
        let mut old = core::mem::take(&mut self.queues[queue].waiting);
        while let Some(task) = self.waiting.pop_first(&mut old) {
            self.insert(task);
        }
    }

    fn slice(&self, task: TaskId, displaced: Option<TaskId>, now: Time) -> Span {
        let known = self.task(task);
        let queue = &self.queues[known.queue];
        let protected = (known.entered + self.params.ratelimit).since(now);
        let first = queue.waiting.first().map_or(0, |first| self.task(first).credit);
        let rival = displaced.map_or(0, |other| self.task(other).credit).max(first).max(0);
        let ahead = Span((known.credit - rival).max(0) as u64);
        let mut time = ahead.scaled(u64::from(known.weight), u64::from(queue.max_weight));
        if let Some(budget) = known.budget {
            time = time.min(Span(budget.max(0) as u64));
        }
        let least = protected.max(MIN_TIMER);
        if time < least { least } else { time.min(MAX_TIMER) }
    }

    /// `task`, which was the current vCPU of `cpu`, has left it, and is ready or blocked.
    fn leave(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ready: bool) {
        let refilled = self.give_back(task);
        let goes_on = ready && self.task(task).place == Place::OnCpu;
        if goes_on && self.may_stay(cpu, task) {
            self.insert(task);
            self.tickle(cx, task);
        } else {
            self.change_load(task, -1, cx.now);
            let known = &mut self.tasks[task];
            if known.place == Place::OnCpu {
                known.place = Place::Blocked;
            }
        }
        if refilled {
            self.unpark_all(cx, self.task(task).domain);
        }
        if self.must_move(task) {
            self.relocate(task);
            if goes_on {
                self.wake(cx, task);
            }
        }
    }

    /// `next`, which is current on `cpu` or waits, is about to run there.
    fn prepare(&mut self, cx: &mut Cx<'_>, cpu: CpuId, next: TaskId) {
        if self.cpus[cpu.index()].current == Some(next) {
            self.change_load(next, 0, cx.now);
        } else {
            self.remove(next);
            self.tasks[next].place = Place::OnCpu;
        }
        self.set_idle(cpu, false);
        self.end_epoch(cx, cpu, next);
        let known = &mut self.tasks[next];
        known.charged = cx.now;
        known.ahead = Span::ZERO;
        known.tickled = None;
        known.compensated = known.cpu != cpu;
        if known.compensated {
            known.credit += MIGRATE_COMPENSATION;
            known.cpu = cpu;
        }
    }

    fn touched(&self, cx: &mut Cx<'_>, queue: usize) {
        cx.work.queue = queue as u16;
        cx.work.queued = self.queues[queue].waiting.len() as u32;
    }

    /// Places anew a vCPU that may no longer be where it is, or whose affinity has changed.
    fn replace(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let Task { place, cpu, .. } = *self.task(task);
        match place {
            Place::OnCpu => {
                self.tasks[task].moving = Moving::Anywhere;
                self.poke(cx, cpu);
            }
            Place::Waiting => {
                self.remove(task);
                self.change_load(task, -1, cx.now);
                self.relocate(task);
                self.wake(cx, task);
            }
            Place::Blocked | Place::Parked => self.relocate(task),
        }
    }
}

impl Scheduler for Credit2 {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.waiting.attach(task);
        self.members.attach(task);
        self.parked.attach(task);
        self.tasks.grow(task, |_| Task::new(&TaskParams::default()));
        let mut known = Task::new(params);
        known.load = self.loads.of_new_task(cx.now);
        self.tasks[task] = known;
        self.enter_domain(task);
        let cpu = self.choose_cpu(task).unwrap_or(CpuId(0));
        self.tasks[task].cpu = cpu;
        self.join(task, self.cpus[cpu.index()].queue);
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.quit(task);
        self.leave_domain(task);
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        if self.task(task).domain != params.domain {
            self.change_domain(cx, task, params.domain);
        }
        let known = &mut self.tasks[task];
        if known.affinity != params.affinity || known.preferred != params.preferred {
            known.affinity = params.affinity.clone();
            known.preferred = params.preferred.clone();
            self.replace(cx, task);
        }
    }

    fn set_domain(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        self.set_weight(domain, params.weight);
        self.set_cap(cx, domain, params.cap_percent);
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        if online == self.cpus[cpu.index()].online {
            return;
        }
        if online {
            let count = self.cpus.iter().filter(|on| on.online).count() + 1;
            self.add_cpu(cpu, count, cx.now);
            if !self.queues[self.cpus[cpu.index()].queue].waiting.is_empty() {
                self.poke(cx, cpu);
            }
        } else {
            self.remove_cpu(cx, cpu);
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, _: Arrival) {
        self.wake(cx, task);
        self.touched(cx, self.task(task).queue);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let Task { place, cpu, queue, .. } = *self.task(task);
        match place {
            Place::Waiting => {
                self.remove(task);
                self.change_load(task, -1, cx.now);
            }
            Place::Parked => self.unlist(task),
            Place::OnCpu => {
                self.clear(cpu);
                self.leave(cx, cpu, task, false);
            }
            Place::Blocked => {}
        }
        self.tasks[task].place = Place::Blocked;
        self.touched(cx, queue);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let on = &mut self.cpus[cpu.index()];
        if !on.online {
            return None;
        }
        on.tickled = false;
        let (queue, current, yields) = (on.queue, on.current, on.put == Some(Off::Yielded));
        if let Some(current) = current {
            self.has_budget(current, cx.now);
        }
        let own = current.filter(|&current| self.may_stay(cpu, current));
        let next = match own.filter(|&own| !yields && self.is_protected(own, cx.now)) {
            Some(own) => Some(own),
            None => {
                let stays = own.filter(|&own| !self.would_rather_move(cpu, own));
                self.candidate(cx, cpu, stays, yields)
            }
        };
        match next {
            Some(next) => self.prepare(cx, cpu, next),
            None => {
                self.set_idle(cpu, true);
                self.decay(queue, cx.now);
            }
        }
        let displaced = current.filter(|_| current != next);
        let on = &mut self.cpus[cpu.index()];
        (on.current, on.put) = (next, None);
        let pick = next.map(|next| {
            if displaced.is_some() || current.is_none() {
                self.tasks[next].entered = cx.now;
            }
            let slice = self.slice(next, own.filter(|&own| own != next), cx.now);
            Pick { task: next, slice }
        });
        if let Some(displaced) = displaced {
            self.leave(cx, cpu, displaced, true);
        }
        self.touched(cx, queue);
        pick
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.report(task, ran, cx.now);
        let on = &mut self.cpus[cpu.index()];
        if on.online && why.runnable() && why != Off::NotRun {
            on.put = Some(why);
            return;
        }
        let known = &mut self.tasks[task];
        if why == Off::NotRun && known.compensated {
            // Otherwise a host that fails to start it on either of two CPUs would keep adding
            // credit.
            known.credit = (known.credit - MIGRATE_COMPENSATION).max(CREDIT_MIN);
        }
        self.clear(cpu);
        self.leave(cx, cpu, task, why.runnable());
    }

    fn tick(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, ran: Span) {
        self.report(task, ran, cx.now);
    }

    fn next_timer(&self) -> Option<Time> {
        (self.next_replenishment != Time::NEVER).then_some(self.next_replenishment)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.replenish(cx);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let known = self.task(task);
        sink("runqueue", known.queue as i64);
        sink("credit_ns", known.credit);
        if let Some(budget) = known.budget {
            sink("budget_ns", budget);
        }
        sink("load_percent", (known.load.average * 100) >> self.params.load_precision_shift);
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Credit2 {
                params: fixed,
                machine: fixed,
                loads: fixed,
                tasks,
                domains: of(parked),
                queues: fixed,
                cpus,
                waiting: fixed,
                members: fixed,
                parked: fixed,
                arrivals: fixed,
                next_replenishment
            }
        );
        for queue in &self.queues {
            queue.canon(&self.waiting, &self.members, to);
        }
    }
}

canonical!(Cpu { queue, online, tickled, idle, current, put });
canonical!(Place: u64);

impl Runqueue {
    fn canon(&self, tree: &Forest<(i64, u64)>, links: &Links, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Runqueue {
                cpus,
                waiting: of(tree),
                members: of(links),
                max_weight,
                load,
                expected,
                active,
                pick_bias,
                idle,
            }
        );
    }
}

impl Canonical for Moving {
    fn canon(&self, _: &(), to: &mut Canon) {
        match *self {
            Moving::No => to.word(0),
            Moving::Anywhere => to.word(1),
            Moving::To(queue) => to.word(2 + queue as u64),
        }
    }
}

impl Canonical for Task {
    fn canon(&self, _: &(), to: &mut Canon) {
        if self.place == Place::OnCpu {
            [self.entered, self.charged].canon(&(), to);
            self.ahead.canon(&(), to);
        }
        canon_fields!(
            self,
            to,
            Task {
                affinity,
                preferred,
                domain,
                weight,
                residual,
                credit,
                budget,
                place,
                queue,
                cpu,
                moving,
                tickled,
                compensated,
                entered: fixed,
                charged: fixed,
                ahead: fixed,
                load,
            }
        );
    }
}
