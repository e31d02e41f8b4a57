//! The same rules written down naively, for PCPUs that are all alike and always in use: lists that
//! are searched, credits as what was given less what was used. The policy must do the same.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::policy;
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, Machine, Off, Pick,
    Scheduler, Span, TaskId, TaskParams, Time,
};

const MS: u64 = 1_000_000;
const CPUS: usize = 3;
const DOMAINS: usize = 4;

/// As Xen numbers priorities.
const BOOST: i64 = 0;
const UNDER: i64 = -1;
const OVER: i64 = -2;

#[derive(Clone, Default)]
struct Vcpu {
    affinity: CpuSet,
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
    /// Who runs there or has been put aside, and why that.
    current: Option<usize>,
    put: Option<Off>,
    ran: u64,
    is_phase: bool,
    next_tick: u64,
    sorted: u64,
    last_tickled: usize,
    slice: Option<u64>,
}

struct Naive {
    ratelimit: u64,
    tickle_one: bool,
    improved: bool,
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
}

fn up(amount: i64, by: i64) -> i64 {
    (amount + by - 1).div_euclid(by)
}

fn cycle(after: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    (1..=CPUS).map(|step| (after + step) % CPUS).find(|&cpu| fits(cpu))
}

impl Naive {
    fn new(ratelimit: u64, tickle_one: bool, improved: bool) -> Naive {
        let pcpu = Pcpu { idle: true, ..Pcpu::default() };
        Naive {
            ratelimit,
            tickle_one,
            improved,
            vcpus: Vec::new(),
            pcpus: alloc::vec![pcpu; CPUS],
            weights: [256; DOMAINS],
            caps: [0; DOMAINS],
            newest: [None; DOMAINS],
            active: Vec::new(),
            balance: 0,
            accountings: 0,
            next_account: 30 * MS,
        }
    }

    fn weight(&self) -> i64 {
        self.active.iter().map(|(domain, all)| self.weights[*domain] * all.len() as i64).sum()
    }

    fn may(&self, task: usize, cpu: usize) -> bool {
        self.vcpus[task].affinity.contains(CpuId(cpu as u16))
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
        let idle: Vec<usize> = (0..CPUS).filter(|&cpu| self.pcpus[cpu].idle).collect();
        let fit: Vec<usize> = idle.iter().copied().filter(|&cpu| self.may(new, cpu)).collect();
        let current = self.pcpus[home].current;
        let loser = current.filter(|&current| self.vcpus[current].pri < self.vcpus[new].pri);
        if !fit.is_empty() && !self.tickle_one {
            fit.iter().for_each(|&cpu| kick(cx, cpu));
        } else if !fit.is_empty() {
            let next = cycle(self.pcpus[by].last_tickled, |cpu| fit.contains(&cpu)).unwrap();
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
        if vcpu.pri == UNDER && !vcpu.parked {
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
        let fewest = (0..CPUS).filter(|&cpu| self.may(task, cpu)).min_by_key(|&cpu| {
            let pcpu = &self.pcpus[cpu];
            (
                pcpu.queue.iter().chain(&pcpu.current).filter(|task| boosts(task)).count(),
                cpu != home,
            )
        });
        self.vcpus[task].home = cycle(home, free).or(fewest).unwrap();
    }

    /// Where all PCPUs are alike, only a busy or forbidden one is left.
    fn place(&self, task: usize) -> usize {
        let home = self.vcpus[task].home;
        let stays = self.may(task, home);
        let idle = |cpu: usize| {
            self.pcpus[cpu].idle || stays && cpu == home && self.pcpus[cpu].queue.is_empty()
        };
        let first = if stays { home } else { cycle(home, |cpu| self.may(task, cpu)).unwrap() };
        if idle(first) {
            return first;
        }
        cycle(first, |cpu| self.may(task, cpu) && idle(cpu)).unwrap_or(first)
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
        let (mut left, mut pool) = (whole, 300 * CPUS as i64 + owed);
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
        for cpu in 0..CPUS {
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
            None => self.active.insert(0, (domain, alloc::vec![task])),
        }
    }

    fn steal(&mut self, cpu: usize, pri: i64) -> Option<usize> {
        let peers = (0..CPUS).filter(|&peer| peer != cpu && !self.pcpus[peer].idle);
        let above = peers.flat_map(|peer| {
            self.pcpus[peer].queue.iter().take_while(|&&task| self.vcpus[task].pri > pri)
        });
        let stolen = above.copied().find(|&task| self.may(task, cpu))?;
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

impl Scheduler for Naive {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let domain = usize::from(params.domain.0);
        let allowed = |cpu: usize| params.affinity.contains(CpuId(cpu as u16));
        let count = |cpu: usize| self.vcpus.iter().filter(|vcpu| vcpu.home == cpu).count();
        let fewest = (0..CPUS).rev().filter(|&cpu| allowed(cpu)).min_by_key(|&cpu| count(cpu));
        let home = match self.newest[domain] {
            Some(newest) => cycle(newest, allowed),
            None => fewest,
        };
        self.newest[domain] = home;
        self.vcpus.resize(self.vcpus.len().max(task.index() + 1), Vcpu::default());
        let (affinity, home) = (params.affinity.clone(), home.unwrap());
        self.vcpus[task.index()] = Vcpu { affinity, domain, home, pri: UNDER, ..Vcpu::default() };
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let task = task.index();
        if self.vcpus[task].affinity == params.affinity {
            return;
        }
        self.vcpus[task].affinity = params.affinity.clone();
        let home = self.vcpus[task].home;
        if self.is_on_cpu(task) {
            self.vcpus[task].migrating = true;
            cx.kick(CpuId(home as u16));
        } else if self.queued_on(task).is_some() {
            self.take_out(task);
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
            } else if pcpu.ran < self.ratelimit && why != Some(Off::NotRun) {
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
}

/// A host of the policy and of the model, which must answer alike and then be in the same state.
struct Both {
    real: Box<dyn Scheduler>,
    naive: Naive,
    now: Time,
    kicks: CpuMask,
    rng: u64,
    /// Per PCPU: its task, since when that has not been charged, and what is left of its slice.
    runs: [Option<(usize, Time, Span)>; CPUS],
    states: Vec<State>,
    /// What the policy was seen to do.
    seen: Seen,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Asleep,
    Ready,
    Runs,
}

#[derive(Debug, Default)]
struct Seen {
    picks: u32,
    boosted: u32,
    over: u32,
    parked: u32,
    moved: u32,
}

impl Both {
    fn new(seed: u64, settings: &[(&str, &str)], naive: Naive, tasks: usize) -> Both {
        let machine = Machine::flat(CPUS).unwrap();
        let mut both = Both {
            real: (policy("credit").unwrap().build)(&machine, settings).unwrap(),
            naive,
            now: Time::ZERO,
            kicks: CpuMask::EMPTY,
            rng: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            runs: [None; CPUS],
            states: Vec::new(),
            seen: Seen::default(),
        };
        for domain in 0..DOMAINS as u16 {
            let weight = 1 + both.below(600) as u32;
            let cap_percent = if both.below(2) == 0 { 0 } else { 5 + both.below(150) as u32 };
            let params = DomainParams { weight, cap_percent };
            both.call(|policy, cx| policy.set_domain(cx, DomainId(domain), &params));
        }
        for task in 0..tasks {
            let params = both.params(task);
            both.call(|policy, cx| policy.attach(cx, TaskId(task as u32), &params));
            both.states.push(State::Asleep);
            both.ready(task, Enqueue::New);
        }
        both
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        (self.rng >> 16) % bound
    }

    fn params(&mut self, task: usize) -> TaskParams {
        let affinity = match self.below(3) {
            0 => CpuSet::Few(1 + self.below(7)),
            _ => CpuSet::All,
        };
        let domain = DomainId((task % DOMAINS) as u16);
        TaskParams { affinity, domain, ..TaskParams::default() }
    }

    fn call<R: PartialEq + core::fmt::Debug>(
        &mut self,
        call: impl Fn(&mut dyn Scheduler, &mut Cx<'_>) -> R,
    ) -> R {
        let (mut kicks, mut naive_kicks) = (CpuMask::EMPTY, CpuMask::EMPTY);
        let answer = call(&mut *self.real, &mut Cx::new(self.now, &mut kicks));
        let naive = call(&mut self.naive, &mut Cx::new(self.now, &mut naive_kicks));
        assert_eq!((&answer, &kicks), (&naive, &naive_kicks), "at {:?}", self.now);
        assert_eq!(self.real.next_timer(), self.naive.next_timer());
        for task in 0..self.states.len() {
            let state = |policy: &dyn Scheduler| {
                let mut values = Vec::new();
                policy.probe(TaskId(task as u32), &mut |name, value| values.push((name, value)));
                values
            };
            assert_eq!(state(&*self.real), state(&self.naive), "task {task} at {:?}", self.now);
        }
        kicks.iter().for_each(|cpu| self.kicks.insert(cpu));
        answer
    }

    fn ready(&mut self, task: usize, why: Enqueue) {
        let from = self.below(2 * CPUS as u64) as u16;
        let from = (usize::from(from) < CPUS).then_some(CpuId(from));
        let arrival = Arrival { from, ..Arrival::because(why) };
        self.call(|policy, cx| policy.enqueue(cx, TaskId(task as u32), arrival));
        self.states[task] = State::Ready;
        self.seen.boosted += u32::from(self.naive.vcpus[task].pri == BOOST);
        self.seen.over += u32::from(self.naive.vcpus[task].pri == OVER);
        self.seen.parked += u32::from(self.naive.vcpus[task].parked);
    }

    fn put(&mut self, cpu: usize, why: Off) {
        let Some((task, since, _)) = self.runs[cpu].take() else { return };
        let ran = self.now - since;
        let (on, id) = (CpuId(cpu as u16), TaskId(task as u32));
        self.states[task] = if why.runnable() { State::Ready } else { State::Asleep };
        self.call(|policy, cx| policy.put_prev(cx, on, id, ran, why));
    }

    fn pick(&mut self, cpu: usize) {
        self.kicks.remove(CpuId(cpu as u16));
        let picked = self.call(|policy, cx| policy.pick_next(cx, CpuId(cpu as u16)));
        let Some(Pick { task, slice }) = picked else { return };
        self.seen.picks += 1;
        self.states[task.index()] = State::Runs;
        self.runs[cpu] = Some((task.index(), self.now, slice));
        if self.below(50) == 0 {
            self.put(cpu, Off::NotRun);
            self.pick(cpu);
        }
    }

    fn step(&mut self) {
        let tick = Time((self.now.0 / (10 * MS) + 1) * 10 * MS);
        let ends = self.runs.iter().flatten().map(|(_, since, left)| *since + *left);
        let timer = self.naive.next_timer();
        let next = ends.chain(timer).fold(tick, Time::min);
        let next = next.min(self.now + Span(self.below(3 * MS)));
        self.now = next.max(self.now);
        if timer == Some(self.now) {
            self.call(|policy, cx| policy.timer(cx));
        }
        for cpu in 0..CPUS {
            let Some((task, since, left)) = self.runs[cpu] else { continue };
            let ran = self.now - since;
            if self.now == tick {
                let (on, id) = (CpuId(cpu as u16), TaskId(task as u32));
                self.runs[cpu] = Some((task, self.now, left - ran));
                self.call(|policy, cx| policy.tick(cx, on, id, ran));
            }
            if ran == left {
                self.put(cpu, Off::Expired);
                self.pick(cpu);
            }
        }
        self.disturb();
        for cpu in 0..CPUS {
            if self.kicks.contains(CpuId(cpu as u16)) && self.below(4) != 0 {
                self.put(cpu, Off::Preempted);
                self.pick(cpu);
            }
        }
    }

    fn disturb(&mut self) {
        let task = self.below(self.states.len() as u64) as usize;
        let cpu = self.below(CPUS as u64) as usize;
        let id = TaskId(task as u32);
        match (self.below(12), self.states[task]) {
            (0..4, State::Asleep) => {
                self.ready(task, Enqueue::Wakeup { prev: CpuId(0), sync: false });
            }
            (4, State::Ready) => {
                self.call(|policy, cx| policy.dequeue(cx, id));
                self.ready(task, Enqueue::Resumed { prev: CpuId(0) });
            }
            (5, State::Ready) => {
                self.states[task] = State::Asleep;
                self.call(|policy, cx| policy.dequeue(cx, id));
            }
            (6, _) => {
                let params = self.params(task);
                self.call(|policy, cx| policy.update(cx, id, &params));
                self.seen.moved += 1;
            }
            (7 | 8, _) => {
                self.put(cpu, Off::Blocked);
                // Sometimes something happens before the next pick.
                if self.below(2) == 0 && self.states[task] == State::Asleep {
                    self.ready(task, Enqueue::Wakeup { prev: CpuId(0), sync: false });
                }
                self.pick(cpu);
            }
            (9, _) if self.runs[cpu].is_some() => {
                self.put(cpu, Off::Yielded);
                if self.below(2) == 0 && self.states[task] == State::Asleep {
                    self.ready(task, Enqueue::Wakeup { prev: CpuId(0), sync: false });
                }
                self.pick(cpu);
            }
            _ => {}
        }
    }
}

fn compare(ratelimit: &str, tickle_one: &str, improved: &str) {
    let settings = [
        ("ratelimit", ratelimit),
        ("tickle_one", tickle_one),
        ("boost_balance", improved),
        ("dyn_slice", improved),
    ];
    let limit = Span::parse(ratelimit).unwrap().0;
    let mut seen = Seen::default();
    for seed in 1..9 {
        let naive = Naive::new(limit, tickle_one == "true", improved == "true");
        let mut both = Both::new(seed, &settings, naive, 3 + 2 * seed as usize);
        (0..6_000).for_each(|_| both.step());
        seen.picks += both.seen.picks;
        seen.boosted += both.seen.boosted;
        seen.over += both.seen.over;
        seen.parked += both.seen.parked;
        seen.moved += both.seen.moved;
    }
    let Seen { picks, boosted, over, parked, moved } = seen;
    assert!([picks, boosted, over, parked, moved].into_iter().min() > Some(100), "{seen:?}");
}

#[test]
fn the_policy_does_what_the_naive_one_does() {
    compare("1ms", "true", "false");
    compare("0", "false", "false");
}

#[test]
fn the_improved_policy_does_what_the_naive_one_does() {
    compare("1ms", "true", "true");
    compare("0", "false", "true");
}
