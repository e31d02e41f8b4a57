//! Virtually fair, for responsive virtual machines: earliest virtual deadline first over all CPUs,
//! where a vCPU that has woken asks for as long as it usually runs, and one that computes for as
//! long as the measured cost of a switch allows.
//!
//! The project's own. Its ideas come from start-time fair queueing (Goyal, Guo and Vin 1996),
//! virtual deadlines (Stoica and Abdel-Wahab 1995), the credit of Credit2's sleepers and the
//! estimation of a burst from previous ones (textbook). A task is a vCPU.
//!
//! - Virtual time: a vCPU that runs for d ns gains d · 256 · a / W, where W is the weight of its
//!   domain and a how many of that domain's vCPUs were ready or running when it was picked. The
//!   clock is the latest virtual time at which any vCPU was picked.
//! - Request: CPU time that a vCPU asks for at once. Woken: twice its usual burst (a quarter of
//!   each new burst, three quarters of the previous mean), from `min_request` to the slice. When
//!   that is used up, or the vCPU yields, it counts as computing and asks for the slice: `latency`
//!   · CPUs / vCPUs that are ready or running, at most `latency`; at least `min_slice` and
//!   `switch_budget` times the cost of a switch.
//! - Cost of a switch: a moving mean (one eighth) of the time on a CPU, after each change of vCPU,
//!   that the host did not count as CPU time.
//! - Order key: the deadline, virtual time + what is left of the request, behind equals; on entry
//!   no earlier than `lag` before the clock. One that yields goes behind all. All CPUs share one
//!   queue, so shares hold across all of them.
//! - Kicks: an idle CPU, the nearest with an idle core to where the vCPU last ran, else the
//!   nearest. Else the CPU whose vCPU is due latest, and later than the woken one, with a
//!   preference of `resist` for its own; not one whose vCPU has been there for less than `guard` or
//!   two switches, and not a woken vCPU that needs at most twice as long as this one asks for. If
//!   only the guard is in the way, it is tried again when that ends.
//! - Cap: every `cap_period` a domain's pool gains its share, and never holds more. With the pool
//!   empty, its vCPUs are parked; what was overrun is a debt.
//!
//! Work-conserving but for caps. Cost: O(log n) and O(CPUs) to wake; a pick looks past those that
//! may not run there.

mod domain;
mod kick;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::cmp::Ordering;

use self::domain::{Domain, Rate};
use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuMask, CpuSet, DomainId, TaskId};
use anysched_core::params::{DomainParams, ParamError, TaskParams};
use anysched_core::queue::{Forest, Links, Tree};
use anysched_core::registry::Policy;
use anysched_core::time::{Span, Time, VTime};
use anysched_core::{
    Arrival, Canon, Cx, Enqueue, Machine, Off, PerTask, Pick, Scheduler, canon_fields, canonical,
    params,
};

/// A measured switch counts as no more than this.
const MAX_SWITCH: Span = Span::from_ms(1);

params! {
    /// Parameters of `vfair`.
    pub struct VfairParams {
        /// Time within which all computing vCPUs should have a turn; 100us to 1s.
        latency: Span = Span::from_ms(4),
        /// Least slice of a computing vCPU; 10us to latency.
        min_slice: Span = Span::from_us(500),
        /// The slice is at least this many times the measured cost of a switch.
        switch_budget: u32 = 128,
        /// Least request of a woken vCPU; 10us to latency.
        min_request: Span = Span::from_us(200),
        /// How far before the clock a deadline may lie, in virtual time; at most 1s.
        lag: Span = Span::from_ms(10),
        /// How long a vCPU keeps its CPU before a woken one may take it; at most 100ms.
        guard: Span = Span::from_us(100),
        /// How much later another CPU's vCPU must be due to be preempted instead; at most 1s.
        resist: Span = Span::from_us(200),
        /// Time between two replenishments of a capped domain; 500us to 1h.
        cap_period: Span = Span::from_ms(10),
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Vfair {
    params: VfairParams,
    machine: Machine,
    tasks: PerTask<Task>,
    domains: Vec<Domain>,
    cpus: Vec<Cpu>,
    /// Waiting vCPUs, by deadline.
    waiting: Tree,
    queued: Forest<Key>,
    parked: Links,
    arrivals: u64,
    clock: VTime,
    switch_cost: Span,
    /// In use, without a vCPU and not kicked since they went idle.
    idle: CpuMask,
    /// How many CPUs without a vCPU have been kicked and have not picked since.
    coming: usize,
    online: usize,
    running: usize,
    /// How many vCPUs may not run everywhere.
    restricted: usize,
    /// When a CPU may be taken for a waiting vCPU that the guard held back.
    retry: Time,
    next_refill: Time,
}

#[derive(Clone, Debug)]
struct Cpu {
    online: bool,
    /// Kicked, and has not picked since.
    told: bool,
    /// It was idle when it was kicked.
    coming: bool,
    current: Option<TaskId>,
    /// The vCPU that ran last.
    last: Option<TaskId>,
    picked: Time,
    /// CPU time since then.
    ran: Span,
    /// Whether another vCPU ran before.
    switched: bool,
    rate: Rate,
}

#[derive(Clone, Debug)]
struct Task {
    affinity: CpuSet,
    domain: DomainId,
    vtime: VTime,
    /// What is left of the request.
    left: Span,
    /// It has woken and has not used up its request.
    fresh: bool,
    /// CPU time since it woke.
    burst: Span,
    /// The mean of its bursts.
    usual: Span,
    /// It has yielded and not been picked since.
    yielded: bool,
    cpu: CpuId,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Blocked,
    Waiting,
    /// Ready, but its domain has used up its cap.
    Parked,
    Running,
}

/// A deadline, and the number of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Key {
    due: VTime,
    arrival: u64,
}

impl Ord for Key {
    /// A total order among ready vCPUs, whose deadlines lie within 2^63 of each other.
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        self.due.minus(other.due).cmp(&0).then(self.arrival.cmp(&other.arrival))
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Policy for Vfair {
    type Params = VfairParams;
    const SOURCE: &'static str =
        "this project; Goyal, Guo and Vin 1996; Stoica and Abdel-Wahab 1995";

    fn build(machine: &Machine, _: usize, params: &VfairParams) -> Result<Self, ParamError> {
        check(params)?;
        let cpu = Cpu {
            online: true,
            told: false,
            coming: false,
            current: None,
            last: None,
            picked: Time::ZERO,
            ran: Span::ZERO,
            switched: false,
            rate: Rate::default(),
        };
        Ok(Vfair {
            params: params.clone(),
            machine: machine.clone(),
            tasks: PerTask::new(),
            domains: Vec::new(),
            cpus: alloc::vec![cpu; machine.cpus()],
            waiting: Tree::default(),
            queued: Forest::default(),
            parked: Links::default(),
            arrivals: 0,
            clock: VTime::default(),
            switch_cost: Span::ZERO,
            idle: CpuMask::first(machine.cpus()),
            coming: 0,
            online: machine.cpus(),
            running: 0,
            restricted: 0,
            retry: Time::NEVER,
            next_refill: Time::NEVER,
        })
    }
}

fn check(params: &VfairParams) -> Result<(), ParamError> {
    let invalid = |name, why| Err(ParamError::Invalid { name, why });
    let requests = Span::from_us(10)..=params.latency;
    if !(Span::from_us(100)..=Span::from_s(1)).contains(&params.latency) {
        return invalid("latency", "must be from 100us to 1s");
    }
    if !requests.contains(&params.min_slice) {
        return invalid("min_slice", "must be from 10us to latency");
    }
    if !requests.contains(&params.min_request) {
        return invalid("min_request", "must be from 10us to latency");
    }
    if params.switch_budget > 10_000 {
        return invalid("switch_budget", "must be at most 10000");
    }
    if params.lag > Span::from_s(1) {
        return invalid("lag", "must be at most 1s");
    }
    if params.guard > Span::from_ms(100) {
        return invalid("guard", "must be at most 100ms");
    }
    if params.resist > Span::from_s(1) {
        return invalid("resist", "must be at most 1s");
    }
    if !(Span::from_us(500)..=Span::from_s(3600)).contains(&params.cap_period) {
        return invalid("cap_period", "must be from 500us to 1h");
    }
    Ok(())
}

impl Vfair {
    fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    /// The slice of a computing vCPU, counting one that neither waits nor runs.
    fn slice(&self) -> Span {
        let rivals = (self.waiting.len() + self.running + 1) as u64;
        let turn = self.params.latency.scaled(self.online as u64, rivals).min(self.params.latency);
        let cost = self.switch_cost.scaled(u64::from(self.params.switch_budget), 1);
        turn.max(self.params.min_slice).max(cost)
    }

    /// `task`, which has woken, asks for what it usually uses.
    fn ask_fresh(&mut self, task: TaskId) {
        let most = self.slice();
        let least = self.params.min_request.min(most);
        let known = &mut self.tasks[task];
        known.fresh = true;
        known.burst = Span::ZERO;
        known.left = known.usual.scaled(2, 1).clamp(least, most);
    }

    /// `task` has used up its request and goes on.
    fn ask_again(&mut self, task: TaskId) {
        let slice = self.slice();
        let known = &mut self.tasks[task];
        (known.fresh, known.left) = (false, slice);
    }

    fn learn(&mut self, task: TaskId) {
        let known = &mut self.tasks[task];
        known.usual = Span(known.usual.0 - known.usual.0 / 4 + known.burst.0 / 4);
    }

    /// Charges `ran` on `cpu` to `task`, which runs there.
    fn charge(&mut self, cpu: CpuId, task: TaskId, ran: Span) {
        let on = &mut self.cpus[cpu.index()];
        on.ran += ran;
        let known = &mut self.tasks[task];
        known.vtime = known.vtime.plus(on.rate.virtual_time(ran));
        known.left = known.left.saturating_sub(ran);
        known.burst += ran;
        let domain = known.domain;
        self.spend(domain, ran);
    }

    /// When `task` is due, at the current rate of its domain.
    fn due(&self, task: TaskId) -> VTime {
        let known = self.task(task);
        known.vtime.plus(self.rate(known.domain).virtual_time(known.left))
    }

    /// Queues or parks `task`, which is ready. Returns whether it may run.
    fn insert(&mut self, task: TaskId) -> bool {
        if self.is_exhausted(self.task(task).domain) {
            self.park(task);
            return false;
        }
        let asked = self.rate(self.task(task).domain).virtual_time(self.task(task).left);
        let known = &mut self.tasks[task];
        let earliest = self.clock.plus(-(self.params.lag.0 as i64));
        known.vtime = known.vtime.max(earliest.plus(-asked));
        known.place = Place::Waiting;
        let mut due = known.vtime.plus(asked);
        if let Some(last) = self.waiting.last().filter(|_| known.yielded) {
            due = due.max(self.queued.key(last).due);
        }
        self.arrivals += 1;
        self.queued.insert(&mut self.waiting, task, Key { due, arrival: self.arrivals }, ());
        true
    }

    /// Takes the vCPU that `cpu` runs off it.
    fn clear(&mut self, cpu: CpuId) {
        let on = &mut self.cpus[cpu.index()];
        on.last = on.current.take();
        self.running -= 1;
    }

    /// Learns what the switch to the vCPU that leaves `cpu` cost.
    fn measure(&mut self, cpu: CpuId, now: Time) {
        let on = &self.cpus[cpu.index()];
        if on.switched {
            let cost = now.since(on.picked).saturating_sub(on.ran).min(MAX_SWITCH);
            let mean = self.switch_cost.0;
            self.switch_cost = if mean == 0 { cost } else { Span(mean - mean / 8 + cost.0 / 8) };
        }
    }

    /// The vCPU that `cpu` runs next, which leaves the queue.
    fn take(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<TaskId> {
        let mut at = self.waiting.first();
        while let Some(task) = at {
            at = self.queued.next(task);
            cx.work.scanned += 1;
            let known = self.task(task);
            if self.is_exhausted(known.domain) {
                self.queued.remove(&mut self.waiting, task);
                self.park(task);
            } else if known.affinity.contains(cpu) {
                self.queued.remove(&mut self.waiting, task);
                return Some(task);
            }
        }
        None
    }

    fn begin(&mut self, cpu: CpuId, task: TaskId, now: Time) -> Pick {
        let rate = self.rate(self.task(task).domain);
        let known = &mut self.tasks[task];
        known.place = Place::Running;
        known.yielded = false;
        known.cpu = cpu;
        self.clock = self.clock.max(known.vtime);
        let slice = known.left.max(self.params.guard).max(Span(1));
        let domain = known.domain;
        let on = &mut self.cpus[cpu.index()];
        on.switched = on.last != Some(task);
        (on.current, on.picked, on.ran, on.rate) = (Some(task), now, Span::ZERO, rate);
        self.running += 1;
        Pick { task, slice: self.within_cap(domain, slice) }
    }

    fn touched(&self, cx: &mut Cx<'_>) {
        cx.work.queue = 0;
        cx.work.queued = self.waiting.len() as u32;
    }
}

impl Scheduler for Vfair {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.queued.attach(task);
        self.parked.attach(task);
        let new = Task {
            affinity: params.affinity.clone(),
            domain: params.domain,
            vtime: self.clock,
            left: Span::ZERO,
            fresh: true,
            burst: Span::ZERO,
            usual: Span::ZERO,
            yielded: false,
            cpu: CpuId((task.index() % self.cpus.len()) as u16),
            place: Place::Blocked,
        };
        self.tasks.set(task, new);
        self.restricted += usize::from(!params.affinity.is_all());
        self.make_domain(params.domain);
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.restricted -= usize::from(!self.task(task).affinity.is_all());
        for on in &mut self.cpus {
            on.last = on.last.filter(|&last| last != task);
        }
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        if self.task(task).domain != params.domain {
            self.change_domain(cx, task, params.domain);
        }
        let known = &mut self.tasks[task];
        if known.affinity == params.affinity {
            return;
        }
        let old = core::mem::replace(&mut known.affinity, params.affinity.clone());
        self.restricted -= usize::from(!old.is_all());
        self.restricted += usize::from(!params.affinity.is_all());
        let Task { place, cpu, .. } = *self.task(task);
        match place {
            Place::Running if !params.affinity.contains(cpu) => self.tell(cx, cpu),
            Place::Waiting => self.announce(cx, task),
            _ => {}
        }
    }

    fn set_domain(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        self.make_domain(domain);
        self.set_share(cx, domain, params);
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        let on = &mut self.cpus[cpu.index()];
        if online == on.online {
            return;
        }
        on.online = online;
        if online {
            self.online += 1;
            if self.cpus[cpu.index()].current.is_none() {
                self.idle.insert(cpu);
            }
        } else {
            self.online -= 1;
            self.idle.remove(cpu);
            self.cpus[cpu.index()].told = false;
            self.arrived(cpu);
        }
        self.serve_idle(cx);
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.activate(self.task(task).domain, 1);
        match arrival.why {
            Enqueue::Resumed { .. } if self.task(task).left > Span::ZERO => {}
            _ => self.ask_fresh(task),
        }
        if self.insert(task) {
            self.announce(cx, task);
        }
        self.touched(cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        match self.task(task).place {
            Place::Waiting => self.queued.remove(&mut self.waiting, task),
            Place::Parked => self.unlist(task),
            Place::Running | Place::Blocked => {}
        }
        self.tasks[task].place = Place::Blocked;
        self.activate(self.task(task).domain, -1);
        self.touched(cx);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        self.cpus[cpu.index()].told = false;
        self.arrived(cpu);
        if !self.cpus[cpu.index()].online {
            return None;
        }
        let pick = match self.take(cx, cpu) {
            Some(task) => {
                self.idle.remove(cpu);
                Some(self.begin(cpu, task, cx.now))
            }
            None => {
                self.idle.insert(cpu);
                None
            }
        };
        self.serve_idle(cx);
        self.touched(cx);
        pick
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.charge(cpu, task, ran);
        self.measure(cpu, cx.now);
        self.clear(cpu);
        if why.runnable() {
            if why == Off::Yielded || self.task(task).left == Span::ZERO {
                self.ask_again(task);
            }
            self.tasks[task].yielded = why == Off::Yielded;
            if self.insert(task) {
                self.stay_or_go(cx, cpu, task);
            }
            if why == Off::NotRun {
                // It is unknown whether the host tries again by itself.
                self.tell(cx, cpu);
            }
        } else {
            self.learn(task);
            self.tasks[task].place = Place::Blocked;
            self.activate(self.task(task).domain, -1);
        }
        self.touched(cx);
    }

    fn tick(&mut self, _: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        self.charge(cpu, task, ran);
    }

    fn next_timer(&self) -> Option<Time> {
        let next = self.retry.min(self.next_refill);
        (next != Time::NEVER).then_some(next)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.next_refill <= cx.now {
            self.refill(cx);
        }
        if self.retry <= cx.now {
            self.retry = Time::NEVER;
            self.preempt_again(cx);
        }
        self.touched(cx);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let known = self.task(task);
        sink("behind_ns", self.clock.minus(known.vtime));
        sink("request_ns", known.left.0 as i64);
        sink("usual_burst_ns", known.usual.0 as i64);
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("switch_cost_ns", self.switch_cost.0);
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Vfair {
                params: fixed,
                machine: fixed,
                tasks,
                domains: of(parked),
                cpus,
                waiting: of(queued),
                queued: fixed,
                parked: fixed,
                arrivals: fixed,
                clock,
                switch_cost,
                idle,
                coming,
                online,
                running,
                restricted: fixed,
                retry,
                next_refill
            }
        );
        self.queued.iter(&self.waiting).for_each(|task| self.queued.key(task).due.canon(&(), to));
    }
}

canonical!(Task { affinity, domain, vtime, left, fresh, burst, usual, yielded, cpu, place });
canonical!(Place: u64);

impl Canonical for Cpu {
    fn canon(&self, _: &(), to: &mut Canon) {
        let Cpu { online, told, coming, current, last, picked, ran, switched, rate } = self;
        [*online, *told, *coming].canon(&(), to);
        [*current, *last].canon(&(), to);
        // The rest is about the task that runs.
        if current.is_some() {
            picked.canon(&(), to);
            ran.canon(&(), to);
            switched.canon(&(), to);
            rate.canon(&(), to);
        }
    }
}
