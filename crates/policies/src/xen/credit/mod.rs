//! Xen's Credit: domains earn credits by weight and burn them by running; vCPUs with credits run
//! before those without, and one that wakes with credits runs before both.
//!
//! A task is a vCPU and `TaskParams::domain` its domain, whose weight and cap come from
//! `set_domain`; `TaskParams::weight` (nice) is ignored.
//! Source: Xen 4.4.2, `xen/common/sched_credit.c`, `schedule.c`, and `domctl.c` for where a vCPU
//! starts. With `boost_balance` and `dyn_slice` it is the improved Credit of She and Zhang (2017).
//! Order key: (BOOST, UNDER, OVER), behind equals. Each PCPU has a runqueue.
//! Credits: 10 per ms of CPU time, charged at ticks and when a vCPU leaves its CPU. Every full 100
//! µs of a vCPU's CPU time costs a credit; the rest is carried over. Shares of a domain and of its
//! vCPUs are rounded up to whole credits, and so are caps; half of an odd credit is rounded towards
//! zero.
//!
//! Deviations from 4.4.2:
//! - The CPU time that the host measures is charged, not the time that passed.
//! - Xen leaves the rest of a credit in the vCPU's start time and also counts it as residual, so it
//!   charges a credit up to 100 µs early; in the long run it is the same.
//! - A vCPU that is kept because of the ratelimit is kept for the rest of it, as since Xen 4.8;
//!   before, for as long again.
//! - A vCPU that is unparked is not boosted, as the source intends and as it is since 4.13; 4.4
//!   clears the mark one statement too early.
//! - A new vCPU is UNDER; in Xen it is created asleep, and its first wake boosts it.
//! - Sums have 128 bits; in Xen they overflow with large weights.
//! - Locks are always free, so stealing skips no busy PCPU.
//! - The PCPUs that a vCPU prefers are those of `TaskParams::preferred`, its soft affinity, as
//!   since 4.5: 4.4 has the same rule for the nodes of a domain (node affinity). `boost_balance`
//!   does not look at them.
//!
//! Soft affinity counts for a vCPU if some PCPU in use and some allowed one are not preferred, and
//! some allowed one is. For it, each of these is done first for the allowed PCPUs that are
//! preferred: a wake-up kicks one of them that idles, it is placed on one of them, and a PCPU among
//! them steals it before anything else. Only if that fails, all that are allowed count.
//!
//! Not work-conserving: capped vCPUs are parked, a wake-up kicks one idle PCPU, which may find
//! something else to take, and a PCPU that goes idle is offered nothing afterwards.
//! Cost: O(n) for n vCPUs on a runqueue; stealing and placing O(PCPUs); accounting O(active vCPUs)
//! once per `tslice`, and none while no vCPU is active.

mod accounting;
mod place;
mod runqueue;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuMask, CpuSet, DomainId, TaskId};
use anysched_core::params::{DEFAULT_DOMAIN_WEIGHT, DomainParams, ParamError, TaskParams};
use anysched_core::queue::{Links, List};
use anysched_core::registry::{First, Policy};
use anysched_core::time::{Span, Time};
use anysched_core::{
    Arrival, Canon, Cx, Enqueue, Machine, Off, PerTask, Pick, Scheduler, canon_fields, canonical,
    params,
};

params! {
    /// Parameters of `credit`.
    pub struct CreditParams {
        /// Slice of a vCPU and period of the accounting; whole milliseconds, 1ms to 1s.
        tslice: Span = Span::from_ms(30),
        /// Minimum time that a vCPU runs once picked; 0 for none, else 100us to 500ms.
        ratelimit: Span = Span::from_ms(1),
        /// Whether ratelimit also keeps a vCPU that yields, as before Xen 4.8.
        limit_yields: bool = true,
        /// A vCPU that ran within this time is not stolen.
        migration_delay: Span = Span::ZERO,
        /// Whether a wake-up kicks one idle PCPU instead of all.
        tickle_one: bool = true,
        /// Whether a vCPU that wakes goes before those that compute; Credit was without at first.
        boost: bool = true,
        /// Whether a woken vCPU that finds another one boosted on its PCPU goes to a better one.
        boost_balance: bool = false,
        /// Whether BOOST ends after boost_phase and slices are longer while few vCPUs wait.
        dyn_slice: bool = false,
        /// With dyn_slice: the number of UNDER vCPUs from which slices are short.
        avg_length: u32 = 4,
        /// With dyn_slice: time in BOOST; at least ratelimit.
        boost_phase: Span = Span::from_ms(2),
        /// With dyn_slice: slice in UNDER while there are fewer than avg_length.
        long_slice: Span = Span::from_ms(60),
        /// With dyn_slice: slice in UNDER otherwise, and after BOOST.
        short_slice: Span = Span::from_ms(30),
        /// With dyn_slice: whether the vCPU that gets the slice counts too.
        qlen_includes_selected: bool = true,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Credit {
    params: CreditParams,
    machine: Machine,
    /// Time between two ticks of a PCPU.
    tick: Span,
    /// Credits of a PCPU per `tslice`.
    per_slice: i64,
    vcpus: PerTask<Vcpu>,
    pcpus: Vec<Pcpu>,
    domains: Vec<Domain>,
    /// Of the runqueues.
    queues: Links,
    /// Of the active vCPUs of each domain.
    active: Links,
    /// Of the domains, by number, that have active vCPUs.
    domain_links: Links,
    earning: List,
    online: CpuMask,
    /// PCPUs in use that found nothing to run when they last looked.
    idlers: CpuMask,
    /// Of all active vCPUs, each with the weight of its domain.
    weight: u64,
    /// Sum of the credits of the active vCPUs after the last accounting.
    balance: i64,
    /// How many vCPUs prefer some PCPUs.
    choosy: u32,
    /// How many accountings there were; runqueues are sorted anew after each.
    epoch: u64,
    next_account: Time,
}

/// A physical CPU.
#[derive(Clone, Debug)]
struct Pcpu {
    queue: List,
    /// How many vCPUs have it as their processor.
    homes: u32,
    /// BOOST vCPUs in the queue.
    boosted: u32,
    current: Current,
    next_tick: Time,
    /// The epoch for which its queue has been sorted.
    sorted: u64,
    /// The idle PCPU that a wake-up from here kicked last.
    last_tickled: CpuId,
    /// Where the search for an idle PCPU near this one continues.
    idle_bias: CpuId,
    /// With `dyn_slice`: the slice that was computed here last.
    slice: Option<Span>,
    /// CPU time of BOOST vCPUs.
    boost_time: Span,
}

#[derive(Clone, Debug)]
enum Current {
    Idle,
    /// The vCPU that ran has left; the next one is about to be picked.
    Left,
    Vcpu(Stint),
}

/// A vCPU on its PCPU.
#[derive(Clone, Debug)]
struct Stint {
    task: TaskId,
    /// CPU time since another one ran here.
    ran: Span,
    /// With `dyn_slice`: its slice is what is left of its time in BOOST.
    is_phase: bool,
    /// Why it has been taken off, until the next pick.
    put: Option<Off>,
}

/// Priority of a vCPU, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pri {
    /// Of a PCPU that runs nothing.
    Idle,
    /// Has used up its credits.
    Over,
    /// Has credits.
    Under,
    /// Has credits and has just woken.
    Boost,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Detached,
    Blocked,
    Queued,
    /// Running, or put aside until the next pick.
    OnCpu,
    /// Ready, but its domain has used up its cap.
    Parked,
}

#[derive(Clone, Debug)]
struct Vcpu {
    affinity: CpuSet,
    preferred: CpuSet,
    domain: DomainId,
    /// The PCPU that it runs on or will wake on; online and allowed unless it runs.
    processor: CpuId,
    place: Place,
    pri: Pri,
    credit: i64,
    /// CPU time that does not make a full credit yet.
    rest: Span,
    /// CPU time in BOOST since it woke.
    boosted: Span,
    last_ran: Option<Time>,
    /// Earns credits.
    active: bool,
    /// May not run until it has credits.
    parked: bool,
    /// Has yielded since it was last queued.
    yielded: bool,
    /// Is placed anew as soon as it is off its PCPU.
    migrating: bool,
    /// With `dyn_slice`: has arrived since a slice was last computed.
    red: bool,
}

#[derive(Clone, Debug)]
struct Domain {
    /// 1 to 65535.
    weight: u64,
    /// Percent of one PCPU; 0: no cap.
    cap: u64,
    active: List,
    /// Where its newest vCPU started.
    newest: Option<CpuId>,
}

impl Default for Domain {
    fn default() -> Domain {
        let weight = DEFAULT_DOMAIN_WEIGHT.into();
        Domain { weight, cap: 0, active: List::default(), newest: None }
    }
}

impl Vcpu {
    const DETACHED: Vcpu = Vcpu {
        affinity: CpuSet::All,
        preferred: CpuSet::All,
        domain: DomainId(0),
        processor: CpuId(0),
        place: Place::Detached,
        pri: Pri::Under,
        credit: 0,
        rest: Span::ZERO,
        boosted: Span::ZERO,
        last_ran: None,
        active: false,
        parked: false,
        yielded: false,
        migrating: false,
        red: false,
    };
}

impl Pcpu {
    fn stint(&self) -> Option<&Stint> {
        match &self.current {
            Current::Vcpu(stint) => Some(stint),
            _ => None,
        }
    }
}

fn check(params: &CreditParams) -> Result<(), ParamError> {
    let invalid = |name, why| Err(ParamError::Invalid { name, why });
    let range = Span::from_ms(1)..=Span::from_s(1);
    if !range.contains(&params.tslice) || !params.tslice.0.is_multiple_of(1_000_000) {
        return invalid("tslice", "must be whole milliseconds, 1ms to 1s");
    }
    let range = Span::from_us(100)..=Span::from_ms(500);
    if params.ratelimit != Span::ZERO && !range.contains(&params.ratelimit) {
        return invalid("ratelimit", "must be 0, or 100us to 500ms");
    }
    if params.ratelimit > params.tslice {
        return invalid("ratelimit", "must be at most tslice");
    }
    if params.boost_balance && !params.boost {
        return invalid("boost_balance", "must be false without `boost`");
    }
    if params.boost_phase == Span::ZERO {
        return invalid("boost_phase", "must be above 0");
    }
    if params.dyn_slice && params.boost_phase < params.ratelimit {
        return invalid("boost_phase", "must be at least ratelimit");
    }
    if params.long_slice == Span::ZERO {
        return invalid("long_slice", "must be above 0");
    }
    if params.short_slice == Span::ZERO {
        return invalid("short_slice", "must be above 0");
    }
    Ok(())
}

impl Policy for Credit {
    type Params = CreditParams;
    const SOURCE: &'static str = "Xen 4.4.2 sched_credit.c; She and Zhang 2017";
    const ORDER: &'static [First] = &[First::Most("pri"), First::Longest];

    fn is_work_conserving(_: &CreditParams) -> bool {
        false
    }

    fn build(machine: &Machine, queues: usize, params: &CreditParams) -> Result<Self, ParamError> {
        check(params)?;
        let pcpu = Pcpu {
            queue: List::default(),
            homes: 0,
            boosted: 0,
            current: Current::Idle,
            next_tick: Time::ZERO,
            sorted: 0,
            last_tickled: CpuId(0),
            idle_bias: CpuId(queues as u16 - 1),
            slice: None,
            boost_time: Span::ZERO,
        };
        let slice_ms = params.tslice.0 / 1_000_000;
        let ticks = if slice_ms < 3 { 1 } else { 3 };
        Ok(Credit {
            params: params.clone(),
            machine: machine.clone(),
            tick: Span::from_us(slice_ms * 1_000 / ticks),
            per_slice: 10 * slice_ms as i64,
            vcpus: PerTask::new(),
            pcpus: alloc::vec![pcpu; queues],
            domains: Vec::new(),
            queues: Links::default(),
            active: Links::default(),
            domain_links: Links::default(),
            earning: List::default(),
            online: CpuMask::first(queues),
            idlers: CpuMask::first(queues),
            weight: 0,
            balance: 0,
            choosy: 0,
            epoch: 0,
            next_account: Time::ZERO + params.tslice,
        })
    }
}

/// The first multiple of `period` after `now`.
fn next_multiple(now: Time, period: Span) -> Time {
    Time((now.0 / period.0).saturating_add(1).saturating_mul(period.0))
}

impl Credit {
    fn pri(&self, task: TaskId) -> Pri {
        self.vcpus[task].pri
    }

    fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        self.online.contains(cpu) && self.vcpus[task].affinity.contains(cpu)
    }

    /// Whether it matters which PCPUs `task` prefers (Xen's `has_soft_affinity`).
    fn is_choosy(&self, task: TaskId) -> bool {
        let Vcpu { affinity, preferred, .. } = &self.vcpus[task];
        if preferred.is_all() {
            return false;
        }
        let allowed = || self.machine.cpu_ids().filter(|cpu| affinity.contains(*cpu));
        self.online.iter().any(|cpu| !preferred.contains(cpu))
            && allowed().any(|cpu| !preferred.contains(cpu))
            && allowed().any(|cpu| preferred.contains(cpu))
    }

    /// Whether `task` may run on `cpu` and prefers to.
    fn prefers(&self, task: TaskId, cpu: CpuId) -> bool {
        let Vcpu { affinity, preferred, .. } = &self.vcpus[task];
        affinity.contains(cpu) && preferred.contains(cpu)
    }

    fn touched(&self, cx: &mut Cx<'_>, cpu: CpuId) {
        cx.work.queue = cpu.0;
        cx.work.queued = self.pcpus[cpu.index()].queue.len() as u32;
    }

    fn know_domain(&mut self, domain: DomainId) -> &mut Domain {
        let index = usize::from(domain.0);
        if self.domains.len() <= index {
            self.domains.resize(index + 1, Domain::default());
            self.domain_links.attach(TaskId(u32::from(domain.0)));
        }
        &mut self.domains[index]
    }

    /// The vCPU on `cpu` has run for `ran`.
    fn charge(&mut self, cpu: CpuId, task: TaskId, ran: Span) {
        if let Current::Vcpu(stint) = &mut self.pcpus[cpu.index()].current {
            stint.ran += ran;
        }
        let vcpu = &mut self.vcpus[task];
        if vcpu.pri == Pri::Boost {
            vcpu.boosted += ran;
            self.pcpus[cpu.index()].boost_time += ran;
        }
        vcpu.burn(ran);
    }

    /// Whether the vCPU just put aside goes on because it has not run for long.
    fn is_limited(&self, stint: &Stint) -> bool {
        !self.vcpus[stint.task].migrating
            && stint.put != Some(Off::NotRun)
            && (self.params.limit_yields || !self.vcpus[stint.task].yielded)
            && stint.ran < self.params.ratelimit
    }

    /// Queues the vCPU of `stint`, which has been put aside on `cpu`. Returns whether its time in
    /// BOOST is over.
    fn put_back(&mut self, stint: &Stint) -> bool {
        let Stint { task, is_phase, put, .. } = *stint;
        let vcpu = &mut self.vcpus[task];
        let phase_over = self.params.dyn_slice
            && (is_phase && put == Some(Off::Expired) && vcpu.pri >= Pri::Under
                || vcpu.pri == Pri::Boost && vcpu.boosted >= self.params.boost_phase);
        if phase_over {
            vcpu.pri = Pri::Under;
        }
        self.insert(task, phase_over || put == Some(Off::NotRun));
        self.vcpus[task].yielded = false;
        phase_over
    }

    /// `cpu` runs `task` from now on, which is on no queue. `goes_on`: what `task` did there just
    /// before, and whether its time in BOOST is over.
    fn start(&mut self, cpu: CpuId, task: TaskId, goes_on: Option<(&Stint, bool)>) -> Pick {
        let vcpu = &mut self.vcpus[task];
        vcpu.place = Place::OnCpu;
        let mut is_phase = false;
        let slice = match vcpu.pri {
            _ if !self.params.dyn_slice => self.params.tslice,
            Pri::Boost => {
                is_phase = true;
                self.params.boost_phase.saturating_sub(vcpu.boosted).max(Span(1))
            }
            Pri::Under if goes_on.is_some_and(|(_, phase_over)| phase_over) => {
                self.params.short_slice
            }
            Pri::Under => self.slice_in_under(cpu, task),
            Pri::Over | Pri::Idle => self.params.tslice,
        };
        let ran = goes_on.map_or(Span::ZERO, |(stint, _)| stint.ran);
        let stint = Stint { task, ran, is_phase, put: None };
        self.pcpus[cpu.index()].current = Current::Vcpu(stint);
        Pick { task, slice }
    }

    /// The slice of `task`, which `cpu` has taken; computed anew if vCPUs have come since the last
    /// time.
    fn slice_in_under(&mut self, cpu: CpuId, task: TaskId) -> Span {
        let is_red = core::mem::replace(&mut self.vcpus[task].red, false);
        let pcpu = &mut self.pcpus[cpu.index()];
        if let Some(slice) = pcpu.slice.filter(|_| !is_red) {
            return slice;
        }
        let mut length = u32::from(self.params.qlen_includes_selected);
        for queued in self.queues.iter(&pcpu.queue) {
            let vcpu = &mut self.vcpus[queued];
            vcpu.red = false;
            length += u32::from(vcpu.pri == Pri::Under);
        }
        let few = length < self.params.avg_length;
        let slice = if few { self.params.long_slice } else { self.params.short_slice };
        pcpu.slice = Some(slice);
        slice
    }
}

impl Scheduler for Credit {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.queues.attach(task);
        self.active.attach(task);
        self.vcpus.grow(task, |_| Vcpu::DETACHED);
        let processor = self.first_processor(params);
        self.know_domain(params.domain).newest = Some(processor);
        self.vcpus[task] = Vcpu {
            affinity: params.affinity.clone(),
            preferred: params.preferred.clone(),
            domain: params.domain,
            processor,
            place: Place::Blocked,
            ..Vcpu::DETACHED
        };
        self.pcpus[processor.index()].homes += 1;
        self.choosy += u32::from(!params.preferred.is_all());
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.deactivate(task);
        self.pcpus[self.vcpus[task].processor.index()].homes -= 1;
        self.vcpus[task].place = Place::Detached;
        self.choosy -= u32::from(!self.vcpus[task].preferred.is_all());
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.know_domain(params.domain);
        if self.vcpus[task].domain != params.domain {
            let was_active = self.vcpus[task].active;
            self.deactivate(task);
            self.vcpus[task].domain = params.domain;
            if was_active {
                self.activate(task, cx.now);
            }
        }
        let vcpu = &mut self.vcpus[task];
        if vcpu.affinity != params.affinity || vcpu.preferred != params.preferred {
            self.choosy += u32::from(!params.preferred.is_all());
            self.choosy -= u32::from(!vcpu.preferred.is_all());
            vcpu.affinity = params.affinity.clone();
            vcpu.preferred = params.preferred.clone();
            self.place_anew(cx, task);
        }
    }

    fn set_domain(&mut self, _: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        const MOST: u32 = u16::MAX as u32;
        let known = self.know_domain(domain);
        let (old, active) = (known.weight, known.active.len() as u64);
        known.cap = u64::from(params.cap_percent.min(MOST));
        if params.weight != 0 {
            known.weight = u64::from(params.weight.min(MOST));
        }
        let new = known.weight;
        self.weight = self.weight - old * active + new * active;
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        if self.online.contains(cpu) == online {
            return;
        }
        if online {
            self.online.insert(cpu);
            self.idlers.insert(cpu);
            self.pcpus[cpu.index()].sorted = self.epoch;
            cx.kick(cpu);
        } else {
            self.online.remove(cpu);
            self.idlers.remove(cpu);
            self.evacuate(cx, cpu);
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        if arrival.why == Enqueue::New {
            self.relocate(task);
        }
        let by = arrival.from.unwrap_or(self.vcpus[task].processor);
        match arrival.why {
            Enqueue::Wakeup { .. } => self.wake(cx, task, by),
            Enqueue::New | Enqueue::Resumed { .. } => self.make_ready(cx, task, by),
        }
        self.touched(cx, self.vcpus[task].processor);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.touched(cx, self.vcpus[task].processor);
        self.take_out(task);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        if !self.online.contains(cpu) {
            return None;
        }
        let pcpu = &mut self.pcpus[cpu.index()];
        let before = core::mem::replace(&mut pcpu.current, Current::Left);
        if matches!(before, Current::Idle) && pcpu.next_tick <= cx.now {
            pcpu.next_tick = next_multiple(cx.now, self.tick);
        }
        let (mut moves, mut put_back) = (None, None);
        if let Current::Vcpu(stint) = before {
            if self.is_limited(&stint) {
                let slice = self.params.ratelimit - stint.ran;
                let task = stint.task;
                let stint = Stint { is_phase: false, put: None, ..stint };
                self.pcpus[cpu.index()].current = Current::Vcpu(stint);
                return Some(Pick { task, slice });
            }
            if self.vcpus[stint.task].migrating {
                self.vcpus[stint.task].place = Place::Blocked;
                moves = Some(stint.task);
            } else {
                let phase_over = self.put_back(&stint);
                put_back = Some((stint, phase_over));
            }
        }
        let next = self.choose(cx, cpu);
        let pick = match next {
            Some(task) => {
                let same = put_back.as_ref().filter(|(stint, _)| stint.task == task);
                self.idlers.remove(cpu);
                Some(self.start(cpu, task, same.map(|(stint, over)| (stint, *over))))
            }
            None => {
                self.idlers.insert(cpu);
                self.pcpus[cpu.index()].current = Current::Idle;
                None
            }
        };
        // Xen places a vCPU anew once it is off its PCPU, which then runs the next one.
        if let Some(task) = moves {
            self.migrate(cx, task, cpu);
        }
        self.touched(cx, cpu);
        pick
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.charge(cpu, task, ran);
        let is_online = self.online.contains(cpu);
        let gone = if is_online { Current::Left } else { Current::Idle };
        let pcpu = &mut self.pcpus[cpu.index()];
        let vcpu = &mut self.vcpus[task];
        vcpu.last_ran = Some(cx.now);
        vcpu.yielded |= why == Off::Yielded;
        if why.runnable() && is_online && !vcpu.parked {
            if let Current::Vcpu(stint) = &mut pcpu.current {
                stint.put = Some(why);
            }
            cx.kick_if_undone(cpu, why);
            return;
        }
        pcpu.current = gone;
        vcpu.place = if why.runnable() { Place::Parked } else { Place::Blocked };
        vcpu.yielded = false;
        if !is_online || vcpu.migrating {
            if why.runnable() && !vcpu.parked {
                self.migrate(cx, task, cpu);
            } else {
                vcpu.migrating = false;
                self.relocate(task);
            }
        }
    }

    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        self.charge(cpu, task, ran);
        let pcpu = &mut self.pcpus[cpu.index()];
        if cx.now < pcpu.next_tick {
            return;
        }
        pcpu.next_tick = next_multiple(cx.now, self.tick);
        let vcpu = &mut self.vcpus[task];
        if vcpu.pri == Pri::Boost && !self.params.dyn_slice {
            vcpu.pri = Pri::Under;
        }
        if !vcpu.active {
            self.activate(task, cx.now);
        } else if self.pick_cpu(task).0 != cpu {
            self.vcpus[task].migrating = true;
            cx.kick(cpu);
        }
        self.sort(cpu);
    }

    fn tick_period(&self) -> Option<Span> {
        Some(self.tick)
    }

    fn next_timer(&self) -> Option<Time> {
        (self.weight > 0).then_some(self.next_account)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.next_timer().is_some_and(|due| due <= cx.now) {
            self.next_account = next_multiple(cx.now, self.params.tslice);
            self.account(cx);
        }
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let vcpu = &self.vcpus[task];
        sink("runqueue", i64::from(vcpu.processor.0));
        sink("credit", vcpu.credit);
        sink("uncharged_ns", vcpu.rest.0 as i64);
        // As Xen numbers them.
        sink("pri", vcpu.pri as i64 - Pri::Boost as i64);
        sink("active", i64::from(vcpu.active));
        sink("parked", i64::from(vcpu.parked));
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.pcpus.iter().for_each(|pcpu| sink("boost_ns", pcpu.boost_time.0));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Credit {
                params: fixed,
                machine: fixed,
                tick: fixed,
                per_slice: fixed,
                vcpus,
                pcpus: of(queues),
                domains: of(active),
                queues: fixed,
                active: fixed,
                domain_links: fixed,
                earning: of(domain_links),
                online,
                idlers,
                weight,
                balance,
                choosy: fixed,
                epoch: order,
                next_account
            }
        );
    }
}

canonical!(Pcpu, links: Links {
    queue: of(links),
    homes,
    boosted,
    current,
    next_tick,
    sorted: order,
    last_tickled,
    idle_bias,
    slice,
    boost_time,
});
canonical!(Stint { task, ran, is_phase, put });
canonical!(Pri: u64);
canonical!(Place: u64);
canonical!(Vcpu {
    affinity,
    preferred,
    domain,
    processor,
    place,
    pri,
    credit,
    rest,
    boosted,
    last_ran,
    active,
    parked,
    yielded,
    migrating,
    red,
});
canonical!(Domain, links: Links { weight, cap, active: of(links), newest });

impl Canonical for Current {
    fn canon(&self, _: &(), to: &mut Canon) {
        match self {
            Current::Idle => to.word(0),
            Current::Left => to.word(1),
            Current::Vcpu(stint) => {
                to.word(2);
                stint.canon(&(), to);
            }
        }
    }
}
