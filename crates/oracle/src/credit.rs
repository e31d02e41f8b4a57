//! Xen's Credit for identical PCPUs that are always in use: lists that are searched, credits as
//! what was given less what was used.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, DomainId, DomainParams, Enqueue, Off, Pick, Scheduler, Span,
    TaskId, TaskParams, Time,
};

const MS: u64 = 1_000_000;
/// How many domains there are.
pub const DOMAINS: usize = 4;

/// As Xen numbers priorities.
const BOOST: i64 = 0;
const UNDER: i64 = -1;
const OVER: i64 = -2;

#[derive(Clone, Default)]
struct Vcpu {
    affinity: CpuSet,
    preferred: CpuSet,
    domain: usize,
    home: usize,
    pri: i64,
    /// Credits given, and CPU time in ns of which every 100,000 take one.
    given: i64,
    used: i64,
    boosted: u64,
    ready: bool,
    parked: bool,
    yielded: bool,
    migrating: bool,
    red: bool,
}

impl Vcpu {
    fn credit(&self) -> i64 {
        self.given - self.used / 100_000
    }
}

#[derive(Clone, Default)]
struct Pcpu {
    queue: Vec<usize>,
    idle: bool,
    /// What runs there or has been put aside, and why.
    current: Option<usize>,
    put: Option<Off>,
    ran: u64,
    is_phase: bool,
    next_tick: u64,
    sorted: u64,
    last_tickled: usize,
    slice: Option<u64>,
}

/// See the [module documentation](self). Counts vCPUs that became ready boosted, over and parked.
pub struct Credit {
    ratelimit: u64,
    limit_yields: bool,
    tickle_one: bool,
    improved: bool,
    boosts: bool,
    vcpus: Vec<Vcpu>,
    pcpus: Vec<Pcpu>,
    weights: [i64; DOMAINS],
    caps: [i64; DOMAINS],
    newest: [Option<usize>; DOMAINS],
    /// Domains with their active vCPUs, the newest first.
    active: Vec<(usize, Vec<usize>)>,
    balance: i64,
    accountings: u64,
    next_account: u64,
    boosted: u64,
    over: u64,
    parked: u64,
}

fn up(amount: i64, by: i64) -> i64 {
    (amount + by - 1).div_euclid(by)
}

impl Credit {
    /// On this many PCPUs, with this ratelimit in ns; `improved` sets `boost_balance` and
    /// `dyn_slice`.
    pub fn new(
        cpus: usize,
        (ratelimit, limit_yields): (u64, bool),
        tickle_one: bool,
        improved: bool,
    ) -> Credit {
        let pcpu = Pcpu { idle: true, ..Pcpu::default() };
        Credit {
            ratelimit,
            limit_yields,
            tickle_one,
            improved,
            vcpus: Vec::new(),
            pcpus: vec![pcpu; cpus],
            weights: [256; DOMAINS],
            caps: [0; DOMAINS],
            newest: [None; DOMAINS],
            boosts: true,
            active: Vec::new(),
            balance: 0,
            accountings: 0,
            next_account: 30 * MS,
            boosted: 0,
            over: 0,
            parked: 0,
        }
    }

    /// Without `boost`.
    pub fn without_boost(self) -> Credit {
        Credit { boosts: false, ..self }
    }

    fn cycle(&self, after: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let count = self.pcpus.len();
        (1..=count).map(|step| (after + step) % count).find(|&cpu| fits(cpu))
    }

    fn weight(&self) -> i64 {
        self.active.iter().map(|(domain, all)| self.weights[*domain] * all.len() as i64).sum()
    }

    fn may(&self, task: usize, cpu: usize) -> bool {
        self.vcpus[task].affinity.contains(CpuId(cpu as u16))
    }

    /// The PCPUs to be tried, one list after the other: those that it prefers, if that matters, and
    /// all that are allowed.
    fn steps(&self, task: usize) -> Vec<Vec<usize>> {
        let all = 0..self.pcpus.len();
        let allowed: Vec<usize> = all.clone().filter(|&cpu| self.may(task, cpu)).collect();
        let likes = |cpu: usize| self.vcpus[task].preferred.contains(CpuId(cpu as u16));
        let soft: Vec<usize> = allowed.iter().copied().filter(|&cpu| likes(cpu)).collect();
        if soft.is_empty() || soft == allowed || all.clone().all(likes) {
            return vec![allowed];
        }
        vec![soft, allowed]
    }

    fn queued_on(&self, task: usize) -> Option<usize> {
        self.pcpus.iter().position(|pcpu| pcpu.queue.contains(&task))
    }

    fn insert(&mut self, task: usize, ahead: bool) {
        let vcpu = &mut self.vcpus[task];
        vcpu.red = true;
        let (home, pri, yielded) = (vcpu.home, vcpu.pri, vcpu.yielded);
        let queue = &self.pcpus[home].queue;
        let behind = |&other: &usize| {
            let other = self.vcpus[other].pri;
            other < pri || ahead && other == pri
        };
        let mut at = queue.iter().position(behind).unwrap_or(queue.len());
        at += usize::from(yielded && at < queue.len());
        self.pcpus[home].queue.insert(at, task);
    }

    fn tickle(&mut self, cx: &mut Cx<'_>, new: usize, by: usize) {
        let home = self.vcpus[new].home;
        let kick = |cx: &mut Cx<'_>, cpu: usize| cx.kick(CpuId(cpu as u16));
        if self.pcpus[home].idle {
            return kick(cx, home);
        }
        let idle: Vec<usize> = (0..self.pcpus.len()).filter(|&cpu| self.pcpus[cpu].idle).collect();
        let steps = self
            .steps(new)
            .into_iter()
            .map(|cpus| cpus.into_iter().filter(|cpu| idle.contains(cpu)).collect::<Vec<usize>>());
        let fit = steps.into_iter().find(|fit| !fit.is_empty()).unwrap_or_default();
        let current = self.pcpus[home].current;
        let loser = current.filter(|&current| self.vcpus[current].pri < self.vcpus[new].pri);
        if !fit.is_empty() && !self.tickle_one {
            fit.iter().for_each(|&cpu| kick(cx, cpu));
        } else if !fit.is_empty() {
            let next = self.cycle(self.pcpus[by].last_tickled, |cpu| fit.contains(&cpu)).unwrap();
            self.pcpus[by].last_tickled = next;
            kick(cx, next);
        } else if let Some(loser) = loser {
            self.vcpus[loser].migrating |= !idle.is_empty();
            kick(cx, home);
        }
    }

    fn make_ready(&mut self, cx: &mut Cx<'_>, task: usize, by: usize) {
        self.vcpus[task].ready = true;
        if !self.vcpus[task].parked {
            self.insert(task, false);
            self.tickle(cx, task, by);
        }
    }

    fn wake(&mut self, cx: &mut Cx<'_>, task: usize, by: usize) {
        let vcpu = &mut self.vcpus[task];
        vcpu.boosted = 0;
        if self.boosts && vcpu.pri == UNDER && !vcpu.parked {
            vcpu.pri = BOOST;
        }
        if self.improved && !self.vcpus[task].parked && self.vcpus[task].pri == BOOST {
            self.spread(task);
        }
        self.make_ready(cx, task, by);
    }

    fn spread(&mut self, task: usize) {
        let home = self.vcpus[task].home;
        let boosts = |task: &usize| self.vcpus[*task].pri == BOOST;
        if !self.pcpus[home].current.iter().any(boosts) {
            return;
        }
        let free =
            |cpu| self.may(task, cpu) && self.pcpus[cpu].idle && self.pcpus[cpu].queue.is_empty();
        let fewest = (0..self.pcpus.len()).filter(|&cpu| self.may(task, cpu)).min_by_key(|&cpu| {
            let pcpu = &self.pcpus[cpu];
            (
                pcpu.queue.iter().chain(&pcpu.current).filter(|task| boosts(task)).count(),
                cpu != home,
            )
        });
        self.vcpus[task].home = self.cycle(home, free).or(fewest).unwrap();
    }

    /// Where all PCPUs are alike, only one that is busy or not in the list is left.
    fn place(&self, task: usize) -> usize {
        let home = self.vcpus[task].home;
        let mut last = home;
        for cpus in self.steps(task) {
            let stays = cpus.contains(&home);
            let idle = |cpu: usize| {
                self.pcpus[cpu].idle || stays && cpu == home && self.pcpus[cpu].queue.is_empty()
            };
            last = if stays { home } else { self.cycle(home, |cpu| cpus.contains(&cpu)).unwrap() };
            if idle(last) {
                return last;
            }
            if let Some(other) = self.cycle(last, |cpu| cpus.contains(&cpu) && idle(cpu)) {
                return other;
            }
        }
        last
    }

    fn relocate(&mut self, task: usize) {
        self.vcpus[task].home = self.place(task);
    }

    fn charge(&mut self, cpu: usize, task: usize, ran: u64) {
        self.pcpus[cpu].ran += ran;
        self.vcpus[task].used += ran as i64;
        if self.vcpus[task].pri == BOOST {
            self.vcpus[task].boosted += ran;
        }
    }

    fn sort(&mut self, cpu: usize) {
        if self.pcpus[cpu].sorted < self.accountings {
            self.pcpus[cpu].sorted = self.accountings;
            let vcpus = &self.vcpus;
            self.pcpus[cpu].queue.sort_by_key(|&task| vcpus[task].pri == OVER);
        }
    }

    fn account(&mut self, cx: &mut Cx<'_>) {
        let whole = self.weight();
        let owed = (-self.balance).max(0);
        let (mut left, mut pool) = (whole, 300 * self.pcpus.len() as i64 + owed);
        let mut wanted = false;
        self.balance = 0;
        for (domain, vcpus) in self.active.clone() {
            let count = vcpus.len() as i64;
            let weight = self.weights[domain] * count;
            left -= weight;
            let mut most = 300 * count + up(owed * weight, whole);
            let cap = (self.caps[domain] > 0).then_some(up(self.caps[domain] * 300, 100));
            most = most.min(cap.unwrap_or(most));
            let mut fair = up(pool * weight, whole);
            if fair < most {
                wanted = true;
            } else {
                if left > 0 {
                    pool += up((fair - most) * whole, left);
                }
                if wanted {
                    let at = self.active.iter().position(|one| one.0 == domain).unwrap();
                    let one = self.active.remove(at);
                    self.active.insert(0, one);
                }
                fair = most;
            }
            for task in vcpus {
                self.pay(cx, task, up(fair, count), cap.map(|cap| up(cap, count)));
            }
        }
        self.accountings += 1;
        for cpu in 0..self.pcpus.len() {
            if self.pcpus[cpu].idle {
                self.sort(cpu);
            }
        }
    }

    fn pay(&mut self, cx: &mut Cx<'_>, task: usize, fair: i64, cap: Option<i64>) {
        let vcpu = &mut self.vcpus[task];
        vcpu.given += fair;
        let credit = vcpu.credit();
        if credit < 0 {
            vcpu.pri = OVER;
            if cap.is_some_and(|cap| credit < -cap) && !vcpu.parked {
                vcpu.parked = true;
                self.park(cx, task);
            }
            let vcpu = &mut self.vcpus[task];
            vcpu.given += (-300 - credit).max(0);
        } else {
            vcpu.pri = UNDER;
            if core::mem::take(&mut vcpu.parked) && vcpu.ready && !self.is_on_cpu(task) {
                self.make_ready(cx, task, 0);
            }
            if credit > 300 {
                self.stop(task);
                self.vcpus[task].given -= credit - credit / 2;
            }
        }
        self.balance += self.vcpus[task].credit();
    }

    fn is_on_cpu(&self, task: usize) -> bool {
        self.pcpus.iter().any(|pcpu| pcpu.current == Some(task))
    }

    fn park(&mut self, cx: &mut Cx<'_>, task: usize) {
        if let Some(cpu) = self.pcpus.iter().position(|pcpu| pcpu.current == Some(task))
            && self.pcpus[cpu].put.is_none()
        {
            return cx.kick(CpuId(cpu as u16));
        }
        self.take_out(task);
    }

    fn take_out(&mut self, task: usize) {
        for pcpu in &mut self.pcpus {
            pcpu.queue.retain(|&other| other != task);
            pcpu.current = pcpu.current.filter(|&current| current != task);
        }
        let vcpu = &mut self.vcpus[task];
        vcpu.yielded = false;
        if core::mem::take(&mut vcpu.migrating) {
            self.relocate(task);
        }
    }

    fn stop(&mut self, task: usize) {
        self.active.iter_mut().for_each(|one| one.1.retain(|&other| other != task));
        self.active.retain(|one| !one.1.is_empty());
    }

    fn is_active(&self, task: usize) -> bool {
        self.active.iter().any(|one| one.1.contains(&task))
    }

    fn earn(&mut self, task: usize, now: u64) {
        if self.active.is_empty() && self.next_account <= now {
            self.balance = 0;
            self.next_account = (now / (30 * MS) + 1) * 30 * MS;
        }
        let domain = self.vcpus[task].domain;
        match self.active.iter_mut().find(|one| one.0 == domain) {
            Some(one) => one.1.insert(0, task),
            None => self.active.insert(0, (domain, vec![task])),
        }
    }

    fn steal(&mut self, cpu: usize, pri: i64) -> Option<usize> {
        let peers = (0..self.pcpus.len()).filter(|&peer| peer != cpu && !self.pcpus[peer].idle);
        let above = peers.flat_map(|peer| {
            self.pcpus[peer].queue.iter().take_while(|&&task| self.vcpus[task].pri > pri)
        });
        let above: Vec<usize> = above.copied().collect();
        let likes = |&&task: &&usize| {
            let steps = self.steps(task);
            steps.len() == 2 && steps[0].contains(&cpu)
        };
        let liked = above.iter().find(likes);
        let stolen = *liked.or_else(|| above.iter().find(|&&task| self.may(task, cpu)))?;
        self.pcpus.iter_mut().for_each(|pcpu| pcpu.queue.retain(|&task| task != stolen));
        self.vcpus[stolen].home = cpu;
        Some(stolen)
    }

    fn slice(&mut self, cpu: usize, task: usize, phase_over: bool) -> u64 {
        let pcpu = &mut self.pcpus[cpu];
        pcpu.is_phase = false;
        let pri = self.vcpus[task].pri;
        if !self.improved || pri == OVER || phase_over {
            return 30 * MS;
        }
        if pri == BOOST {
            pcpu.is_phase = true;
            return (2 * MS).saturating_sub(self.vcpus[task].boosted).max(1);
        }
        if core::mem::take(&mut self.vcpus[task].red) || pcpu.slice.is_none() {
            let queue = pcpu.queue.clone();
            let length = 1 + queue.iter().filter(|&&task| self.vcpus[task].pri == UNDER).count();
            queue.iter().for_each(|&task| self.vcpus[task].red = false);
            pcpu.slice = Some(if length < 4 { 60 * MS } else { 30 * MS });
        }
        pcpu.slice.unwrap()
    }
}

impl Scheduler for Credit {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let domain = usize::from(params.domain.0);
        let allowed = |cpu: usize| params.affinity.contains(CpuId(cpu as u16));
        let count = |cpu: usize| self.vcpus.iter().filter(|vcpu| vcpu.home == cpu).count();
        let fewest =
            (0..self.pcpus.len()).rev().filter(|&cpu| allowed(cpu)).min_by_key(|&cpu| count(cpu));
        let home = match self.newest[domain] {
            Some(newest) => self.cycle(newest, allowed),
            None => fewest,
        };
        self.newest[domain] = home;
        self.vcpus.resize(self.vcpus.len().max(task.index() + 1), Vcpu::default());
        let (affinity, home) = (params.affinity.clone(), home.unwrap());
        let preferred = params.preferred.clone();
        self.vcpus[task.index()] =
            Vcpu { affinity, preferred, domain, home, pri: UNDER, ..Vcpu::default() };
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let task = task.index();
        let vcpu = &mut self.vcpus[task];
        if (&vcpu.affinity, &vcpu.preferred) == (&params.affinity, &params.preferred) {
            return;
        }
        vcpu.affinity = params.affinity.clone();
        vcpu.preferred = params.preferred.clone();
        let home = self.vcpus[task].home;
        if self.is_on_cpu(task) {
            self.vcpus[task].migrating = true;
            cx.kick(CpuId(home as u16));
        } else if self.queued_on(task).is_some() {
            // One that yielded and was moved before being queued again keeps its mark.
            let yielded = self.vcpus[task].yielded;
            self.take_out(task);
            self.vcpus[task].yielded = yielded;
            self.relocate(task);
            self.wake(cx, task, home);
        } else {
            self.relocate(task);
        }
    }

    fn set_domain(&mut self, _: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        self.weights[usize::from(domain.0)] = params.weight.into();
        self.caps[usize::from(domain.0)] = params.cap_percent.into();
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let task = task.index();
        if arrival.why == Enqueue::New {
            self.relocate(task);
        }
        let by = arrival.from.map_or(self.vcpus[task].home, CpuId::index);
        match arrival.why {
            Enqueue::Wakeup { .. } => self.wake(cx, task, by),
            _ => self.make_ready(cx, task, by),
        }
        self.boosted += u64::from(self.vcpus[task].pri == BOOST);
        self.over += u64::from(self.vcpus[task].pri == OVER);
        self.parked += u64::from(self.vcpus[task].parked);
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.vcpus[task.index()].ready = false;
        self.take_out(task.index());
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let by = cpu.index();
        if self.pcpus[by].idle && self.pcpus[by].next_tick <= cx.now.0 {
            self.pcpus[by].next_tick = (cx.now.0 / (10 * MS) + 1) * 10 * MS;
        }
        let old = self.pcpus[by].current.take();
        let why = self.pcpus[by].put.take();
        let (mut moves, mut phase_over) = (None, false);
        if let Some(old) = old {
            let pcpu = &mut self.pcpus[by];
            let vcpu = &mut self.vcpus[old];
            if vcpu.migrating {
                moves = Some(old);
            } else if pcpu.ran < self.ratelimit
                && why != Some(Off::NotRun)
                && (self.limit_yields || !vcpu.yielded)
            {
                pcpu.current = Some(old);
                pcpu.is_phase = false;
                let slice = Span(self.ratelimit - pcpu.ran);
                return Some(Pick { task: TaskId(old as u32), slice });
            } else {
                let ended = pcpu.is_phase && why == Some(Off::Expired) && vcpu.pri >= UNDER;
                let used_up = vcpu.pri == BOOST && vcpu.boosted >= 2 * MS;
                phase_over = self.improved && (ended || used_up);
                vcpu.pri = if phase_over { UNDER } else { vcpu.pri };
                self.insert(old, phase_over || why == Some(Off::NotRun));
                self.vcpus[old].yielded = false;
            }
        }
        let head = self.pcpus[by].queue.first().copied();
        let pri = head.map_or(-64, |head| self.vcpus[head].pri);
        let stolen = if pri <= OVER { self.steal(by, pri) } else { None };
        if stolen.is_none() && head.is_some() {
            self.pcpus[by].queue.remove(0);
        }
        let next = stolen.or(head);
        let pcpu = &mut self.pcpus[by];
        pcpu.idle = next.is_none();
        pcpu.current = next;
        if next != old || moves.is_some() {
            pcpu.ran = 0;
        }
        let pick = next.map(|next| {
            let slice = Span(self.slice(by, next, phase_over && old == Some(next)));
            Pick { task: TaskId(next as u32), slice }
        });
        if let Some(task) = moves {
            self.vcpus[task].migrating = false;
            self.relocate(task);
            self.wake(cx, task, by);
        }
        pick
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        let (on, task) = (cpu.index(), task.index());
        self.charge(on, task, ran.0);
        let vcpu = &mut self.vcpus[task];
        vcpu.ready = why.runnable();
        if why.runnable() && !vcpu.parked {
            vcpu.yielded |= why == Off::Yielded;
            self.pcpus[on].put = Some(why);
            if why == Off::NotRun {
                cx.kick(cpu);
            }
        } else {
            self.take_out(task);
        }
    }

    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        let (on, task) = (cpu.index(), task.index());
        self.charge(on, task, ran.0);
        if cx.now.0 < self.pcpus[on].next_tick {
            return;
        }
        self.pcpus[on].next_tick = (cx.now.0 / (10 * MS) + 1) * 10 * MS;
        if self.vcpus[task].pri == BOOST && !self.improved {
            self.vcpus[task].pri = UNDER;
        }
        if !self.is_active(task) {
            self.earn(task, cx.now.0);
        } else if self.place(task) != on {
            self.vcpus[task].migrating = true;
            cx.kick(cpu);
        }
        self.sort(on);
    }

    fn next_timer(&self) -> Option<Time> {
        (!self.active.is_empty()).then_some(Time(self.next_account))
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.next_timer().is_some_and(|due| due <= cx.now) {
            self.next_account = (cx.now.0 / (30 * MS) + 1) * 30 * MS;
            self.account(cx);
        }
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let vcpu = &self.vcpus[task.index()];
        sink("runqueue", vcpu.home as i64);
        sink("credit", vcpu.credit());
        sink("uncharged_ns", vcpu.used % 100_000);
        sink("pri", vcpu.pri);
        sink("active", i64::from(self.is_active(task.index())));
        sink("parked", i64::from(vcpu.parked));
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("boosted", self.boosted);
        sink("over", self.over);
        sink("parked", self.parked);
    }
}

impl Oracle for Credit {}
