//! Xen's SEDF: each vCPU is guaranteed a slice of CPU time in each period and runs by earliest
//! deadline while it has some of it left; what is left of the CPU is handed out as extra time.
//!
//! Source: Xen 4.2.1 `xen/common/sched_sedf.c` (S. Diestelhorst 2004), placement also as in 4.4.2.
//! A task is a vCPU: `TaskParams::period` is its period, `TaskParams::budget` its slice.
//! Order key: end of the period, behind equals. A vCPU is in its CPU's *runqueue* from the start of
//! its period until the slice is used up, then in the *wait queue* until the next one starts. Only
//! when the runqueue is empty is extra time given (`extra`), 500 us at a time and never within 500
//! us of the start of a period. No vCPU runs before its period merely because the CPU is idle.
//! A deadline that a scan of the runqueue finds past is missed: the vCPU gets a fresh slice in its
//! current period, and what it has lost is lost.
//!
//! Waking up: before the period starts (it blocked in extra time) the vCPU keeps waiting. Within
//! the period (*short* block) it forfeits the rest of its slice and gets that much priority for
//! extra time. After the period (*long* block) a new period starts at once.
//!
//! `dm-xen`, `d-edf` and `sedf-dm` differ only in the order of the runqueue: see [`Order`].
//!
//! Deviations:
//! - A vCPU is charged the CPU time that the host measured; Xen charges the time that passed.
//! - Xen gives a new vCPU no slice and lets the toolstack set one while it runs. Here the slice is
//!   known when it first wakes; `start` says what that means.
//! - A vCPU whose slice or period is changed is sorted in again. In Xen its place is stale.
//! - Shares by weight follow every change of vCPUs and domains; Xen computes them when the
//!   toolstack sets parameters.
//! - Scores do not overflow at 32 bits.
//! - `latency` shortens periods as Xen did until 3.x; 4.2 reads it and doubles shortened periods
//!   back, but shortens none.
//!
//! Not work-conserving by definition. No CPU takes another's vCPUs.
//! Cost: O(log n); a scan that finds misses goes on to the next vCPU.

pub mod d_edf;
pub mod dm_xen;
mod extra;
mod order;
mod params;
pub mod sedf_dm;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

pub use self::order::{DmKey, Edf, Order};
pub use self::params::{Joint, Placement, SedfParams, Start, Weights};

use self::extra::{EXTRA_QUANTUM, Level};
use self::params::{MAX_PERIOD, MIN_PERIOD, MIN_SLICE, WEIGHT_PERIOD};
use self::params::{WEIGHT_SAFETY, check};
use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuSet, DomainId, TaskId};
use anysched_core::params::{DEFAULT_DOMAIN_WEIGHT, DomainParams, ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::Policy;
use anysched_core::time::{Span, Time};
use anysched_core::{
    Arrival, Canon, Cx, Enqueue, Machine, Off, Pick, Scheduler, canon_fields, canonical,
};

/// SEDF, or a relative of it in which `O` orders runqueues. See the [module documentation](self).
/// Instants are in ns as `i64`, because periods may start before the origin.
#[derive(Debug)]
pub struct Sedf<O = Edf> {
    params: SedfParams,
    dm_key: DmKey,
    /// Runqueues by key of the order, wait queues by start of the period.
    guaranteed: Forest<i64>,
    extra: [Forest<i64>; 2],
    cpus: Vec<Pcpu<O>>,
    tasks: Vec<Vcpu>,
    domains: Vec<Domain>,
    /// Scans of runqueues so far.
    scans: u64,
    /// The earliest of the CPUs' `due`.
    due: Time,
}

/// A CPU.
#[derive(Clone, Debug)]
struct Pcpu<O> {
    online: bool,
    /// Its task has been taken off and it has not picked yet.
    choosing: bool,
    /// The timer has kicked it and it has not picked yet.
    kicked: bool,
    current: Option<Current>,
    /// When the slice of the current task ends, at the latest.
    expires: i64,
    runq: Tree,
    waitq: Tree,
    extraq: [Tree; 2],
    /// What has been subtracted from all scores of L1 since it was last empty.
    subtracted: i64,
    /// When a period starts that nothing else would make it notice.
    due: Time,
    order: O,
    switches: u32,
    misses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    task: TaskId,
    /// The queue for extra time that it was taken from; `None`: it runs on its slice.
    extra: Option<Level>,
}

/// A task as this policy knows it.
#[derive(Clone, Debug)]
struct Vcpu {
    attached: bool,
    affinity: CpuSet,
    domain: DomainId,
    /// How many vCPUs of its domain came before it.
    number: usize,
    cpu: CpuId,
    place: Place,
    /// What it is entitled to, unless a long block has shortened that.
    full: Budget,
    now: Budget,
    relative_deadline: i64,
    /// It has no slice of its own.
    by_weight: bool,
    extraweight: u32,
    /// End of its period; `None` until it first wakes.
    deadline: Option<i64>,
    used: i64,
    has_blocked: bool,
    /// A short block cost it time for which it has not been compensated.
    wants_penalty: bool,
    scores: [i64; 2],
    in_extraq: [bool; 2],
    /// The last scan that found its deadline missed.
    late_in_scan: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    period: i64,
    slice: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Away,
    /// In the runqueue; it may be running.
    Run,
    /// In the wait queue; it may be running in extra time.
    Wait,
}

#[derive(Clone, Debug)]
struct Domain {
    weight: u32,
    /// How many vCPUs it has had.
    vcpus: usize,
}

const NEW_DOMAIN: Domain = Domain { weight: DEFAULT_DOMAIN_WEIGHT, vcpus: 0 };

const NEW_VCPU: Vcpu = Vcpu {
    attached: false,
    affinity: CpuSet::All,
    domain: DomainId(0),
    number: 0,
    cpu: CpuId(0),
    place: Place::Away,
    full: Budget { period: WEIGHT_PERIOD, slice: 0 },
    now: Budget { period: WEIGHT_PERIOD, slice: 0 },
    relative_deadline: 0,
    by_weight: false,
    extraweight: 1,
    deadline: None,
    used: 0,
    has_blocked: false,
    wants_penalty: false,
    scores: [0; 2],
    in_extraq: [false; 2],
    late_in_scan: 0,
};

/// Time as a number that can be compared with starts of periods.
fn ns(time: Time) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

fn span(span: Span) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

impl Vcpu {
    fn deadline(&self) -> i64 {
        self.deadline.unwrap_or(0)
    }

    /// When its period starts.
    fn begin(&self) -> i64 {
        self.deadline().saturating_sub(self.now.period)
    }

    /// Lets `periods` pass without it.
    fn postpone(&mut self, periods: i64) {
        let by = self.now.period.saturating_mul(periods);
        self.deadline = Some(self.deadline().saturating_add(by));
    }

    fn left(&self) -> i64 {
        self.now.slice - self.used
    }
}

impl<O> Pcpu<O> {
    fn new(order: O) -> Pcpu<O> {
        Pcpu {
            online: true,
            choosing: false,
            kicked: false,
            current: None,
            expires: 0,
            runq: Tree::default(),
            waitq: Tree::default(),
            extraq: [Tree::default(); 2],
            subtracted: 0,
            due: Time::NEVER,
            order,
            switches: 0,
            misses: 0,
        }
    }
}

impl Policy for Sedf {
    type Params = SedfParams;
    const SOURCE: &'static str = "Xen 4.2.1 and 4.4.2 xen/common/sched_sedf.c";

    fn is_work_conserving(_: &Self::Params) -> bool {
        false
    }

    /// Of as many slices as do not fit on a CPU, one may miss each of its deadlines, and what it
    /// loses is lost. Without slices, there is no time that is extra where some period
    /// starts within each 500 us: periods as long as Xen's have room for 200 vCPUs.
    fn starves(params: &Self::Params) -> bool {
        let usual = SedfParams::default();
        let is_short = params.period < usual.period || params.latency != usual.latency;
        params.slice > Span::ZERO || is_short
    }

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        Sedf::with_order(queues, params, DmKey::Deadline, Edf)
    }
}

impl<O: Order> Sedf<O> {
    /// A policy for as many CPUs as `queues`, each of which begins with `order`.
    pub(super) fn with_order(
        queues: usize,
        params: &SedfParams,
        dm_key: DmKey,
        order: O,
    ) -> Result<Self, ParamError> {
        check(params)?;
        Ok(Sedf {
            params: params.clone(),
            dm_key,
            guaranteed: Forest::default(),
            extra: [Forest::default(), Forest::default()],
            cpus: alloc::vec![Pcpu::new(order); queues],
            tasks: Vec::new(),
            domains: Vec::new(),
            scans: 0,
            due: Time::NEVER,
        })
    }

    fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].online && self.tasks[task.index()].affinity.contains(cpu)
    }

    /// The CPU for `task`, as in Xen's `pick_cpu`; its present one if there is none.
    fn place(&self, task: TaskId) -> CpuId {
        let allowed =
            || (0..self.cpus.len() as u16).map(CpuId).filter(|&cpu| self.may_run(task, cpu));
        let from = match self.params.placement {
            Placement::First => 0,
            Placement::Spread => self.tasks[task.index()].number % allowed().count().max(1),
        };
        let after = allowed().find(|cpu| cpu.index() >= from);
        after.or(allowed().next()).unwrap_or(self.tasks[task.index()].cpu)
    }

    /// The key by which the runqueue of its CPU orders `task`.
    fn key(&self, task: TaskId) -> i64 {
        let vcpu = &self.tasks[task.index()];
        if !self.cpus[vcpu.cpu.index()].order.is_dm() {
            return vcpu.deadline();
        }
        match self.dm_key {
            DmKey::Slice => vcpu.now.slice,
            DmKey::Period => vcpu.now.period,
            DmKey::Deadline => vcpu.relative_deadline,
        }
    }

    fn push_run(&mut self, task: TaskId) {
        let key = self.key(task);
        let vcpu = &mut self.tasks[task.index()];
        vcpu.place = Place::Run;
        self.guaranteed.insert(&mut self.cpus[vcpu.cpu.index()].runq, task, key, ());
    }

    fn push_wait(&mut self, task: TaskId) {
        let vcpu = &mut self.tasks[task.index()];
        vcpu.place = Place::Wait;
        self.guaranteed.insert(&mut self.cpus[vcpu.cpu.index()].waitq, task, vcpu.begin(), ());
    }

    /// Queues `task` in the runqueue or the wait queue, depending on whether its period has
    /// started.
    fn push(&mut self, task: TaskId, now: i64) {
        match self.tasks[task.index()].begin() > now {
            true => self.push_wait(task),
            false => self.push_run(task),
        }
    }

    /// Takes `task` out of the runqueue or the wait queue.
    fn unqueue(&mut self, task: TaskId) {
        let vcpu = &mut self.tasks[task.index()];
        let on = &mut self.cpus[vcpu.cpu.index()];
        match core::mem::replace(&mut vcpu.place, Place::Away) {
            Place::Run => self.guaranteed.remove(&mut on.runq, task),
            Place::Wait => self.guaranteed.remove(&mut on.waitq, task),
            Place::Away => {}
        }
    }

    /// Takes `task` out of all queues.
    fn remove(&mut self, task: TaskId) {
        self.unqueue(task);
        self.leave_extra(task, Level::Penalty);
        self.leave_extra(task, Level::Utilisation);
    }

    /// `task`, which is in no queue, becomes able to run.
    fn wake(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let now = ns(cx.now);
        if self.tasks[task.index()].deadline.is_none() {
            self.begin_first(task, now);
        } else {
            self.unblock(task, now);
        }
        if self.params.extra {
            self.join_extra(task, Level::Utilisation, 0);
        }
        self.push(task, now);
        if self.takes_over(task) {
            cx.kick(self.tasks[task.index()].cpu);
        }
    }

    fn begin_first(&mut self, task: TaskId, now: i64) {
        let vcpu = &mut self.tasks[task.index()];
        let Budget { period, slice } = vcpu.now;
        vcpu.deadline = Some(now.saturating_add(match self.params.start {
            _ if slice == 0 => period,
            Start::Slice => slice,
            Start::Wait => slice.saturating_add(period),
            Start::Period => period,
        }));
    }

    /// The three cases of waking up.
    fn unblock(&mut self, task: TaskId, now: i64) {
        let vcpu = &mut self.tasks[task.index()];
        if now < vcpu.begin() {
            if vcpu.wants_penalty {
                self.join_extra(task, Level::Penalty, 0);
            }
        } else if now < vcpu.deadline() {
            vcpu.postpone(1);
            let penalty = vcpu.left().max(0);
            vcpu.used = 0;
            if vcpu.has_blocked && penalty > 0 {
                vcpu.scores[Level::Penalty as usize] = (vcpu.now.period << 10) / penalty;
                vcpu.wants_penalty = true;
                self.join_extra(task, Level::Penalty, 0);
            }
        } else {
            let latency = span(self.params.latency);
            if (1..vcpu.full.period).contains(&latency) {
                let slice = Span(vcpu.full.slice as u64);
                let slice = slice.scaled(latency as u64, vcpu.full.period as u64);
                vcpu.now = Budget { period: latency, slice: span(slice) };
            }
            vcpu.deadline = Some(now.saturating_add(vcpu.now.period));
            vcpu.used = 0;
        }
    }

    /// Whether the CPU of `task`, which has just woken up, must decide again.
    fn takes_over(&self, task: TaskId) -> bool {
        let vcpu = &self.tasks[task.index()];
        let on = &self.cpus[vcpu.cpu.index()];
        let Some(current) = on.current else { return !on.choosing };
        if vcpu.begin() < on.expires {
            return true;
        }
        let score = |vcpu: &Vcpu| vcpu.scores[Level::Penalty as usize];
        match current.extra {
            None => false,
            Some(Level::Penalty) => {
                vcpu.wants_penalty && score(vcpu) < score(&self.tasks[current.task.index()])
            }
            Some(Level::Utilisation) => vcpu.wants_penalty,
        }
    }

    /// `task` stops running on its slice, after `ran` more of it.
    fn end_guaranteed(&mut self, task: TaskId, now: i64, ran: i64, runnable: bool) {
        let vcpu = &mut self.tasks[task.index()];
        vcpu.used = vcpu.used.saturating_add(ran);
        let whole = vcpu.left() <= 0;
        if runnable && !whole {
            return;
        }
        let order = &mut self.cpus[vcpu.cpu.index()].order;
        order.done(vcpu.deadline() >= now, whole);
        if whole {
            vcpu.used -= vcpu.now.slice;
            vcpu.grow();
            vcpu.postpone(1);
        }
        if runnable {
            self.unqueue(task);
            self.push_wait(task);
        } else {
            self.remove(task);
        }
    }

    /// Moves vCPUs that are in the wrong place in the queues of `cpu`. Returns how many it looked
    /// at.
    fn update_queues(&mut self, cpu: usize, now: i64) -> u32 {
        while let Some(first) = self.cpus[cpu].waitq.first() {
            if self.tasks[first.index()].begin() > now {
                break;
            }
            self.unqueue(first);
            self.push_run(first);
        }
        let mut scanned = 0;
        self.scans += 1;
        let mut at = self.cpus[cpu].runq.first();
        while let Some(task) = at {
            scanned += 1;
            at = self.guaranteed.next(task);
            let vcpu = &mut self.tasks[task.index()];
            if vcpu.now.slice == 0 {
                let behind = now.saturating_sub(vcpu.deadline()).max(0) as u64;
                vcpu.postpone(1 + behind.div_ceil(vcpu.now.period as u64) as i64);
                self.unqueue(task);
                self.push_wait(task);
                continue;
            }
            let missed = vcpu.deadline() < now || vcpu.left() < 0;
            let on = &mut self.cpus[cpu];
            // A late vCPU that has been sorted in further back is not seen again.
            if vcpu.late_in_scan != self.scans {
                on.order.saw(missed);
            }
            if missed {
                on.misses += 1;
                vcpu.late_in_scan = self.scans;
                vcpu.skip(now);
                self.unqueue(task);
                self.push(task, now);
            } else if !on.order.scans_all() {
                break;
            }
        }
        scanned
    }

    /// Reorders the runqueue of `cpu`, keeping equals in order. Returns how many it has.
    fn sort(&mut self, cpu: usize) -> u32 {
        let mut old = core::mem::take(&mut self.cpus[cpu].runq);
        let all = old.len() as u32;
        while let Some(task) = self.guaranteed.pop_first(&mut old) {
            self.push_run(task);
        }
        all
    }

    /// What `cpu` runs next, for how long, and the queue for extra time that it comes from.
    fn choose(&self, cpu: usize, now: i64) -> (Option<Current>, i64) {
        let on = &self.cpus[cpu];
        let waits = on.waitq.first().map(|task| self.tasks[task.index()].begin() - now);
        if let Some(task) = on.runq.first() {
            let left = self.tasks[task.index()].left().max(1);
            // A vCPU whose period starts now is noticed by the timer, at once.
            let until = waits.filter(|&until| until > 0).unwrap_or(left);
            return (Some(Current { task, extra: None }), left.min(until));
        }
        let Some(until) = waits.filter(|&until| until >= EXTRA_QUANTUM) else {
            return (None, 0);
        };
        let extra = |level: Level| {
            let task = on.extraq[level as usize].first()?;
            Some(Current { task, extra: Some(level) })
        };
        let current = extra(Level::Penalty).or_else(|| extra(Level::Utilisation));
        (current, EXTRA_QUANTUM.min(until))
    }

    /// `cpu` may have to notice a different start of a period.
    fn watch(&mut self, cpu: usize) {
        let on = &mut self.cpus[cpu];
        let begin = match on.waitq.first() {
            Some(task) if on.online && !on.choosing && !on.kicked => {
                Time(self.tasks[task.index()].begin().max(0) as u64)
            }
            _ => Time::NEVER,
        };
        let before = core::mem::replace(&mut on.due, begin);
        if begin <= self.due {
            self.due = begin;
        } else if before == self.due {
            self.due = self.cpus.iter().map(|on| on.due).min().unwrap_or(Time::NEVER);
        }
    }

    fn touched(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        self.watch(cpu.index());
        let on = &self.cpus[cpu.index()];
        cx.work.queue = cpu.0;
        cx.work.queued = (on.runq.len() + on.waitq.len()) as u32;
    }

    /// Takes `task`, which is ready and does not run, to a CPU where it may run.
    fn rehome(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let old = self.tasks[task.index()].cpu;
        self.remove(task);
        self.tasks[task.index()].cpu = self.place(task);
        self.wake(cx, task);
        self.watch(old.index());
        self.touched(cx, self.tasks[task.index()].cpu);
    }

    /// Makes sure that `task` is where it may run, or will be when it is taken off.
    fn settle(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let Vcpu { cpu, place, .. } = self.tasks[task.index()];
        if self.may_run(task, cpu) {
            return;
        }
        let runs = self.cpus[cpu.index()].current.is_some_and(|current| current.task == task);
        match place {
            // If its CPU goes away, the host takes it off.
            _ if runs => cx.kick(cpu),
            Place::Away => self.tasks[task.index()].cpu = self.place(task),
            _ => self.rehome(cx, task),
        }
    }
}

impl Vcpu {
    /// After a shortened period, doubles it until it has its full length again.
    fn grow(&mut self) {
        if self.now.period >= self.full.period {
            return;
        }
        let twice = Budget { period: 2 * self.now.period, slice: 2 * self.now.slice };
        let over = twice.period > self.full.period || twice.slice > self.full.slice;
        self.now = if over { self.full } else { twice };
    }

    /// After a missed deadline: a fresh slice, to be used up before the next deadline that is not
    /// past.
    fn skip(&mut self, now: i64) {
        let next = self.deadline().saturating_add(self.now.period);
        let behind = now.saturating_sub(next).max(0) as u64;
        self.postpone(1 + behind.div_ceil(self.now.period as u64) as i64);
        self.used = 0;
    }
}

/// Parameters of vCPUs and domains.
impl<O: Order> Sedf<O> {
    fn read(&mut self, task: TaskId, params: &TaskParams) {
        let shared = &self.params;
        let period = params.period.unwrap_or(shared.period);
        let period = period.clamp(MIN_PERIOD, MAX_PERIOD);
        let slice = match params.budget.unwrap_or(shared.slice) {
            Span::ZERO if shared.extra => Span::ZERO,
            slice => slice.clamp(MIN_SLICE, period),
        };
        let relative = params.relative_deadline.or(params.period).unwrap_or(shared.period);
        let vcpu = &mut self.tasks[task.index()];
        vcpu.affinity = params.affinity.clone();
        vcpu.relative_deadline = span(relative);
        vcpu.by_weight = params.budget.is_none() && shared.weights != Weights::Off;
        if !vcpu.by_weight {
            vcpu.grant(Budget { period: span(period), slice: span(slice) });
            vcpu.extraweight = match shared.extraweight {
                0 => u32::from(slice == Span::ZERO),
                weight => weight,
            };
        }
    }

    fn domain(&mut self, domain: DomainId) -> &mut Domain {
        let index = usize::from(domain.0);
        if self.domains.len() <= index {
            self.domains.resize(index + 1, NEW_DOMAIN);
        }
        &mut self.domains[index]
    }

    /// Recomputes what vCPUs without a slice of their own get.
    fn weigh(&mut self) {
        if self.params.weights == Weights::Off {
            return;
        }
        let mut weights = alloc::vec![0u64; self.cpus.len()];
        let mut taken = alloc::vec![0i64; self.cpus.len()];
        for vcpu in self.tasks.iter().filter(|vcpu| vcpu.attached) {
            let cpu = vcpu.cpu.index();
            if vcpu.by_weight {
                weights[cpu] += u64::from(self.domains[usize::from(vcpu.domain.0)].weight);
            } else {
                taken[cpu] += WEIGHT_PERIOD * vcpu.full.slice / vcpu.full.period;
            }
        }
        for task in 0..self.tasks.len() {
            let vcpu = &mut self.tasks[task];
            if !vcpu.attached || !vcpu.by_weight {
                continue;
            }
            let cpu = vcpu.cpu.index();
            let weight = self.domains[usize::from(vcpu.domain.0)].weight;
            let mut slice = 0;
            if self.params.weights == Weights::Slices {
                vcpu.extraweight = 1;
                let free = Span((WEIGHT_PERIOD - WEIGHT_SAFETY - taken[cpu]).max(0) as u64);
                slice = span(free.scaled(u64::from(weight), weights[cpu]).max(MIN_SLICE));
            } else {
                vcpu.extraweight = weight;
            }
            vcpu.grant(Budget { period: WEIGHT_PERIOD, slice });
            self.requeue(TaskId(task as u32));
        }
    }

    /// Moves `task` within its queue if its key has changed.
    fn requeue(&mut self, task: TaskId) {
        let vcpu = &self.tasks[task.index()];
        let (key, cpu) = match vcpu.place {
            Place::Away => return,
            Place::Run => (self.key(task), vcpu.cpu),
            Place::Wait => (vcpu.begin(), vcpu.cpu),
        };
        if self.guaranteed.key(task) == key {
            return;
        }
        let waits = vcpu.place == Place::Wait;
        self.unqueue(task);
        if waits {
            self.push_wait(task)
        } else {
            self.push_run(task)
        }
        self.watch(cpu.index());
    }
}

impl Vcpu {
    fn grant(&mut self, budget: Budget) {
        if self.full != budget {
            (self.full, self.now) = (budget, budget);
        }
    }
}

impl<O: Order> Scheduler for Sedf<O> {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.guaranteed.attach(task);
        self.extra.iter_mut().for_each(|extra| extra.attach(task));
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, NEW_VCPU);
        }
        let domain = self.domain(params.domain);
        let number = domain.vcpus;
        domain.vcpus += 1;
        self.tasks[task.index()] =
            Vcpu { attached: true, domain: params.domain, number, ..NEW_VCPU };
        self.read(task, params);
        self.tasks[task.index()].cpu = self.place(task);
        self.weigh();
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.tasks[task.index()].attached = false;
        self.weigh();
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.domain(params.domain);
        self.tasks[task.index()].domain = params.domain;
        self.read(task, params);
        self.settle(cx, task);
        self.requeue(task);
        self.weigh();
    }

    fn set_domain(&mut self, _: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        self.domain(domain).weight = params.weight.max(1);
        self.weigh();
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        let on = &mut self.cpus[cpu.index()];
        on.online = online;
        (on.choosing, on.kicked) = (false, false);
        if online {
            if !on.runq.is_empty() || !on.waitq.is_empty() {
                cx.kick(cpu);
            }
        } else {
            for task in 0..self.tasks.len() {
                if self.tasks[task].attached && self.tasks[task].cpu == cpu {
                    self.settle(cx, TaskId(task as u32));
                }
            }
            self.weigh();
        }
        self.watch(cpu.index());
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let cpu = self.tasks[task.index()].cpu;
        let resumes = matches!(arrival.why, Enqueue::Resumed { .. });
        if resumes && self.tasks[task.index()].deadline.is_some() {
            // It never really left its queues.
            if self.tasks[task.index()].wants_penalty {
                self.join_extra(task, Level::Penalty, 0);
            }
            if self.params.extra {
                self.join_extra(task, Level::Utilisation, 0);
            }
            self.push(task, ns(cx.now));
            if self.takes_over(task) {
                cx.kick(cpu);
            }
        } else {
            self.wake(cx, task);
        }
        self.touched(cx, cpu);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.remove(task);
        self.touched(cx, self.tasks[task.index()].cpu);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let (index, now) = (cpu.index(), ns(cx.now));
        let on = &mut self.cpus[index];
        (on.choosing, on.kicked) = (false, false);
        if !on.online {
            return None;
        }
        cx.work.scanned = self.update_queues(index, now);
        if self.cpus[index].order.decide() {
            self.cpus[index].switches += 1;
            cx.work.scanned += self.sort(index);
        }
        let (current, slice) = self.choose(index, now);
        let on = &mut self.cpus[index];
        on.current = current;
        on.expires = now.saturating_add(slice);
        self.touched(cx, cpu);
        current.map(|Current { task, .. }| Pick { task, slice: Span(slice as u64) })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        let on = &mut self.cpus[cpu.index()];
        let extra = on.current.take().and_then(|current| current.extra);
        on.choosing = on.online;
        let stays = self.may_run(task, cpu);
        let moves = why.runnable() && !stays;
        let runnable = why.runnable() && stays;
        if why != Off::NotRun || moves {
            if !runnable {
                self.tasks[task.index()].has_blocked = true;
            }
            match extra {
                Some(level) => self.end_extra(task, level, runnable),
                None => self.end_guaranteed(task, ns(cx.now), span(ran), runnable),
            }
        }
        if why == Off::NotRun && self.cpus[cpu.index()].online {
            // It is unknown whether the host tries again by itself.
            cx.kick(cpu);
        }
        if moves {
            self.rehome(cx, task);
        } else if !stays {
            self.tasks[task.index()].cpu = self.place(task);
        }
        self.touched(cx, cpu);
    }

    fn tick(&mut self, _: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        let by_right = |current: Current| current.extra.is_none();
        if self.cpus[cpu.index()].current.is_some_and(by_right) {
            let used = &mut self.tasks[task.index()].used;
            *used = used.saturating_add(span(ran));
        }
    }

    fn next_timer(&self) -> Option<Time> {
        (self.due != Time::NEVER).then_some(self.due)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].due <= cx.now {
                self.cpus[cpu].kicked = true;
                cx.kick(CpuId(cpu as u16));
                self.watch(cpu);
            }
        }
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let vcpu = &self.tasks[task.index()];
        let on = &self.cpus[vcpu.cpu.index()];
        sink("runqueue", i64::from(vcpu.cpu.0));
        sink("deadline_ns", vcpu.deadline());
        sink("period_ns", vcpu.now.period);
        sink("slice_ns", vcpu.now.slice);
        sink("used_ns", vcpu.used);
        sink("penalty_score", self.score(task, Level::Penalty));
        sink("utilisation_score", self.score(task, Level::Utilisation));
        sink("dm", i64::from(on.order.is_dm()));
        sink("switches", i64::from(on.switches));
        sink("misses", i64::try_from(on.misses).unwrap_or(i64::MAX));
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        for on in &self.cpus {
            sink("switches", u64::from(on.switches));
            sink("misses", on.misses);
        }
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Sedf {
                params: fixed,
                dm_key: fixed,
                guaranteed: fixed,
                extra: fixed,
                cpus: fixed,
                tasks,
                domains,
                scans: order,
                due
            }
        );
        for on in &self.cpus {
            on.canon(&self.guaranteed, &self.extra, to);
        }
    }
}

/// A time by its distance from now.
fn canon_ns(time: i64, to: &mut Canon) {
    let now = ns(to.now());
    to.word(if time == i64::MAX { u64::MAX } else { time.wrapping_sub(now) as u64 });
}

impl<O: Order> Pcpu<O> {
    fn canon(&self, tree: &Forest<i64>, extra: &[Forest<i64>; 2], to: &mut Canon) {
        canon_ns(self.expires, to);
        for (queue, scores) in self.extraq.iter().zip(extra) {
            queue.canon(scores, to);
        }
        let l1 = Level::Utilisation as usize;
        for task in extra[l1].iter(&self.extraq[l1]) {
            (extra[l1].key(task) - self.subtracted).canon(&(), to);
        }
        self.order.canon(to);
        canon_fields!(
            self,
            to,
            Pcpu {
                online,
                choosing,
                kicked,
                current,
                expires: fixed,
                runq: of(tree),
                waitq: of(tree),
                extraq: fixed,
                subtracted: fixed,
                due,
                order: fixed,
                switches: fixed,
                misses: fixed,
            }
        );
    }
}

canonical!(Current { task, extra });
canonical!(Budget { period, slice });
canonical!(Place: u64);
canonical!(Domain { weight, vcpus });

impl Canonical for Vcpu {
    fn canon(&self, _: &(), to: &mut Canon) {
        self.deadline.is_some().canon(&(), to);
        canon_ns(self.deadline.unwrap_or(i64::MAX), to);
        canon_fields!(
            self,
            to,
            Vcpu {
                attached,
                affinity,
                domain,
                number,
                cpu,
                place,
                full,
                now,
                relative_deadline,
                by_weight,
                extraweight,
                deadline: fixed,
                used,
                has_blocked,
                wants_penalty,
                scores,
                in_extraq,
                late_in_scan: order,
            }
        );
    }
}
