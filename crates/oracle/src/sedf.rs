//! The SEDF family as Xen implements it, with plain lists that are walked: vCPUs, queues, one CPU,
//! one function that decides. The CPU must pick as soon as a turn has ended, and answer at once.
//!
//! Several CPUs are as many of these, beside each other.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams,
    Time,
};

const US: i64 = 1_000;

/// The four policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// By deadline.
    Sedf,
    /// By slice.
    DmXen,
    /// By deadline until two misses in a row, then by slice until ten deadlines are met.
    DEdf,
    /// By deadline or by slice, decided for each window of deadlines.
    SedfDm,
}

#[derive(Clone, Copy, Default)]
struct Vcpu {
    period: i64,
    slice: i64,
    deadline: i64,
    started: bool,
    used: i64,
    blocked_before: bool,
    wants_l0: bool,
    score: [i64; 2],
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Running {
    Idle,
    Right(usize),
    Extra(usize, usize),
}

/// See the [module documentation](self).
pub struct Sedf {
    kind: Kind,
    aware: bool,
    dm: bool,
    misses: u32,
    seen: u32,
    mets: u32,
    window: u32,
    switches: u64,
    vcpus: Vec<Vcpu>,
    run: Vec<usize>,
    wait: Vec<usize>,
    extra: [Vec<usize>; 2],
    running: Running,
    expires: i64,
    /// Nothing has been picked since a turn ended, or since the timer.
    undecided: bool,
}

impl Sedf {
    /// One of the family: `aware` says whether vCPUs get extra time, `window` after how many
    /// deadlines `sedf-dm` judges.
    pub fn new(kind: Kind, aware: bool, window: u32) -> Sedf {
        Sedf {
            kind,
            aware,
            dm: kind == Kind::DmXen,
            misses: 0,
            seen: 0,
            mets: 0,
            window,
            switches: 0,
            vcpus: Vec::new(),
            run: Vec::new(),
            wait: Vec::new(),
            extra: [Vec::new(), Vec::new()],
            running: Running::Idle,
            expires: 0,
            undecided: false,
        }
    }

    fn begin(&self, v: usize) -> i64 {
        self.vcpus[v].deadline - self.vcpus[v].period
    }

    fn run_key(&self, v: usize) -> i64 {
        if self.dm { self.vcpus[v].slice } else { self.vcpus[v].deadline }
    }

    fn add_run(&mut self, v: usize) {
        let at = self.run.iter().position(|&other| self.run_key(v) < self.run_key(other));
        self.run.insert(at.unwrap_or(self.run.len()), v);
    }

    fn add_wait(&mut self, v: usize) {
        let at = self.wait.iter().position(|&other| self.begin(v) < self.begin(other));
        self.wait.insert(at.unwrap_or(self.wait.len()), v);
    }

    fn add_by_begin(&mut self, v: usize, now: i64) {
        if self.begin(v) > now { self.add_wait(v) } else { self.add_run(v) }
    }

    fn add_extra(&mut self, v: usize, level: usize, subtract: i64) {
        for &other in &self.extra[level] {
            self.vcpus[other].score[level] -= subtract;
        }
        let score = |v: usize| self.vcpus[v].score[level];
        let at = self.extra[level].iter().position(|&other| score(v) < score(other));
        let at = at.unwrap_or(self.extra[level].len());
        self.extra[level].insert(at, v);
    }

    fn drop_all(&mut self, v: usize) {
        self.run.retain(|&other| other != v);
        self.wait.retain(|&other| other != v);
        self.extra.iter_mut().for_each(|queue| queue.retain(|&other| other != v));
    }

    /// Returns whether the CPU decides anew.
    fn wake(&mut self, v: usize, now: i64) -> bool {
        let Vcpu { period, slice, deadline, used, blocked_before, .. } = self.vcpus[v];
        let vcpu = &mut self.vcpus[v];
        if !vcpu.started {
            vcpu.started = true;
            vcpu.deadline = now + if slice == 0 { period } else { slice };
        } else if now < deadline - period {
            if vcpu.wants_l0 {
                self.add_extra(v, 0, 0);
            }
        } else if now < deadline {
            vcpu.deadline += period;
            vcpu.used = 0;
            if blocked_before && slice - used > 0 {
                vcpu.score[0] = period * 1024 / (slice - used);
                vcpu.wants_l0 = true;
                self.add_extra(v, 0, 0);
            }
        } else {
            vcpu.deadline = now + period;
            vcpu.used = 0;
        }
        if self.aware {
            self.add_extra(v, 1, 0);
        }
        self.add_by_begin(v, now);
        self.takes_over(v)
    }

    /// As if it had never left its queues.
    fn resume(&mut self, v: usize, now: i64) -> bool {
        if self.vcpus[v].wants_l0 {
            self.add_extra(v, 0, 0);
        }
        if self.aware {
            self.add_extra(v, 1, 0);
        }
        self.add_by_begin(v, now);
        self.takes_over(v)
    }

    /// Whether the CPU decides anew because of a vCPU that is ready.
    fn takes_over(&self, v: usize) -> bool {
        if self.running == Running::Idle || self.begin(v) < self.expires {
            return true;
        }
        match self.running {
            Running::Extra(other, 0) => {
                self.vcpus[v].wants_l0 && self.vcpus[v].score[0] < self.vcpus[other].score[0]
            }
            Running::Extra(..) => self.vcpus[v].wants_l0,
            _ => false,
        }
    }

    fn stop(&mut self, now: i64, ran: i64, runnable: bool) {
        match self.running {
            Running::Idle => {}
            Running::Right(v) => {
                let vcpu = &mut self.vcpus[v];
                vcpu.blocked_before |= !runnable;
                vcpu.used += ran;
                if vcpu.used < vcpu.slice && runnable {
                    return;
                }
                self.run.retain(|&other| other != v);
                if vcpu.used >= vcpu.slice {
                    vcpu.used -= vcpu.slice;
                    if vcpu.deadline >= now {
                        self.mets += 1;
                        if self.kind == Kind::DEdf {
                            self.misses = 0;
                        }
                    }
                    vcpu.deadline += vcpu.period;
                }
                if runnable { self.add_wait(v) } else { self.drop_all(v) }
            }
            Running::Extra(v, level) => {
                self.extra[level].retain(|&other| other != v);
                let vcpu = &mut self.vcpus[v];
                vcpu.blocked_before |= !runnable;
                vcpu.used = 0;
                let old = vcpu.score[level];
                if level == 0 {
                    vcpu.wants_l0 = false;
                } else {
                    vcpu.score[1] =
                        if vcpu.slice == 0 { 1 << 17 } else { vcpu.period * 1024 / vcpu.slice };
                }
                if !runnable {
                    self.drop_all(v);
                } else if level == 1 && self.aware {
                    self.add_extra(v, 1, old);
                }
            }
        }
    }

    fn update_queues(&mut self, now: i64) {
        while let Some(&v) = self.wait.first().filter(|&&v| self.begin(v) <= now) {
            self.wait.remove(0);
            self.add_run(v);
        }
        let mut late = Vec::new();
        let mut next = self.run.first().copied();
        while let Some(v) = next {
            let at = self.run.iter().position(|&other| other == v).unwrap();
            next = self.run.get(at + 1).copied();
            let vcpu = &mut self.vcpus[v];
            if vcpu.slice == 0 {
                vcpu.deadline += vcpu.period;
                while vcpu.deadline - vcpu.period < now {
                    vcpu.deadline += vcpu.period;
                }
                self.run.remove(at);
                self.add_wait(v);
                continue;
            }
            self.seen += u32::from(!late.contains(&v));
            if vcpu.deadline < now || vcpu.used > vcpu.slice {
                self.misses += 1;
                late.push(v);
                if self.kind == Kind::DEdf {
                    self.mets = 0;
                }
                vcpu.deadline += vcpu.period;
                while vcpu.deadline < now {
                    vcpu.deadline += vcpu.period;
                }
                vcpu.used = 0;
                self.run.remove(at);
                self.add_by_begin(v, now);
            } else if !self.dm && self.kind != Kind::SedfDm {
                break;
            }
        }
    }

    fn switch(&mut self) {
        let switches = match self.kind {
            Kind::Sedf | Kind::DmXen => false,
            Kind::DEdf if self.dm => self.mets >= 10,
            Kind::DEdf => self.misses >= 2,
            Kind::SedfDm if self.seen < self.window => false,
            Kind::SedfDm if self.dm => self.misses == 0,
            Kind::SedfDm => self.misses > self.seen / 16,
        };
        if switches {
            let dm = !self.dm;
            self.dm = dm;
            self.switches += 1;
            match self.kind {
                Kind::DEdf if dm => self.misses = 0,
                Kind::DEdf => self.mets = 0,
                _ => {}
            }
            let old = std::mem::take(&mut self.run);
            old.into_iter().for_each(|v| self.add_run(v));
        }
        if self.kind == Kind::SedfDm && self.seen >= self.window {
            (self.seen, self.misses) = (0, 0);
        }
    }

    fn choose(&mut self, now: i64) -> Option<(usize, i64)> {
        self.update_queues(now);
        self.switch();
        let begin = self.wait.first().map_or(i64::MAX, |&v| self.begin(v));
        let (running, time) = match self.run.first() {
            Some(&v) => {
                let left = self.vcpus[v].slice - self.vcpus[v].used;
                // Xen's timer would expire at once.
                let until = if begin > now { begin - now } else { i64::MAX };
                (Running::Right(v), left.max(1).min(until))
            }
            None if begin != i64::MAX && begin - now >= 500 * US => {
                let first = |level: usize| Some((*self.extra[level].first()?, level));
                match first(0).or(first(1)) {
                    Some((v, level)) => (Running::Extra(v, level), 500 * US),
                    None => (Running::Idle, 0),
                }
            }
            None => (Running::Idle, 0),
        };
        self.running = running;
        self.expires = now + time;
        match running {
            Running::Right(v) | Running::Extra(v, _) => Some((v, time)),
            Running::Idle => None,
        }
    }
}

fn ns(time: Time) -> i64 {
    time.0 as i64
}

impl Scheduler for Sedf {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.vcpus.resize(self.vcpus.len().max(task.index() + 1), Vcpu::default());
        let ns = |span: Option<Span>| span.map_or(0, |span| span.0 as i64);
        let (period, slice) = (ns(params.period), ns(params.budget));
        self.vcpus[task.index()] = Vcpu { period, slice, ..Vcpu::default() };
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let (v, now) = (task.index(), ns(cx.now));
        let resumes = matches!(arrival.why, Enqueue::Resumed { .. }) && self.vcpus[v].started;
        if if resumes { self.resume(v, now) } else { self.wake(v, now) } {
            cx.kick(CpuId(0));
        }
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.drop_all(task.index());
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        self.undecided = false;
        let (v, time) = self.choose(ns(cx.now))?;
        Some(Pick { task: TaskId(v as u32), slice: Span(time as u64) })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, _: CpuId, _: TaskId, ran: Span, why: Off) {
        self.undecided = true;
        self.stop(ns(cx.now), ran.0 as i64, why.runnable());
    }

    /// When a period begins: slices end then by themselves, but an idle CPU has to be told.
    fn next_timer(&self) -> Option<Time> {
        let first = self.wait.first().filter(|_| !self.undecided)?;
        Some(Time(self.begin(*first).max(0) as u64))
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.undecided = true;
        cx.kick(CpuId(0));
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let vcpu = &self.vcpus[task.index()];
        sink("period_ns", vcpu.period);
        sink("slice_ns", vcpu.slice);
        sink("used_ns", vcpu.used);
        sink("dm", i64::from(self.dm));
        if vcpu.started {
            sink("deadline_ns", vcpu.deadline);
        }
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("switches", self.switches);
    }
}

impl Oracle for Sedf {}

/// CPUs that do not know each other.
pub struct Cpus {
    spread: bool,
    cpus: Vec<Sedf>,
    offline: Vec<bool>,
    vcpus: Vec<Place>,
    /// How many vCPUs there have been.
    count: usize,
    /// vCPUs that were ready on a CPU that they may not use any more.
    moves: u64,
}

/// Where a vCPU is.
#[derive(Clone, Default)]
struct Place {
    number: usize,
    affinity: CpuSet,
    cpu: usize,
    ready: bool,
}

impl Cpus {
    /// This many CPUs, each as `make` makes it; `spread` is Xen 4.4's placement.
    pub fn new(cpus: usize, spread: bool, make: impl Fn() -> Sedf) -> Cpus {
        let offline = vec![false; cpus];
        let cpus = (0..cpus).map(|_| make()).collect();
        Cpus { spread, cpus, offline, vcpus: Vec::new(), count: 0, moves: 0 }
    }

    /// Makes a call to `cpu`, which thinks that it is CPU 0.
    fn on<R>(
        &mut self,
        cpu: usize,
        cx: &mut Cx<'_>,
        call: impl FnOnce(&mut Sedf, &mut Cx<'_>) -> R,
    ) -> R {
        let mut kicks = CpuMask::EMPTY;
        let answer = call(&mut self.cpus[cpu], &mut Cx::new(cx.now, &mut kicks));
        if !kicks.is_empty() {
            cx.kick(CpuId(cpu as u16));
        }
        answer
    }

    fn may(&self, vcpu: usize, cpu: usize) -> bool {
        !self.offline[cpu] && self.vcpus[vcpu].affinity.contains(CpuId(cpu as u16))
    }

    /// Takes `vcpu` off a CPU that it may not use.
    fn settle(&mut self, vcpu: usize, cx: &mut Cx<'_>) {
        let cpu = self.vcpus[vcpu].cpu;
        if self.may(vcpu, cpu) {
            return;
        }
        if !self.vcpus[vcpu].ready {
            self.go_elsewhere(vcpu);
        } else if self.runs(vcpu) {
            cx.kick(CpuId(cpu as u16));
        } else {
            self.cpus[cpu].drop_all(vcpu);
            self.go_and_wake(vcpu, cx);
        }
    }

    /// When a period begins on `cpu`.
    fn due(&self, cpu: usize) -> Option<Time> {
        self.cpus[cpu].next_timer().filter(|_| !self.offline[cpu])
    }

    fn choose_cpu(&self, vcpu: usize) -> usize {
        let allowed: Vec<usize> = (0..self.cpus.len()).filter(|&cpu| self.may(vcpu, cpu)).collect();
        let from = if self.spread { self.vcpus[vcpu].number % allowed.len() } else { 0 };
        *allowed.iter().find(|&&cpu| cpu >= from).unwrap_or(&allowed[0])
    }

    /// Takes `vcpu`, which is in no queue, to another CPU.
    fn go_elsewhere(&mut self, vcpu: usize) {
        let (from, to) = (self.vcpus[vcpu].cpu, self.choose_cpu(vcpu));
        let what = self.cpus[from].vcpus[vcpu];
        let known = &mut self.cpus[to].vcpus;
        known.resize(known.len().max(vcpu + 1), Vcpu::default());
        known[vcpu] = what;
        self.vcpus[vcpu].cpu = to;
    }

    fn go_and_wake(&mut self, vcpu: usize, cx: &mut Cx<'_>) {
        self.moves += 1;
        self.go_elsewhere(vcpu);
        if self.on(self.vcpus[vcpu].cpu, cx, |sedf, cx| sedf.wake(vcpu, ns(cx.now))) {
            cx.kick(CpuId(self.vcpus[vcpu].cpu as u16));
        }
    }

    fn runs(&self, vcpu: usize) -> bool {
        match self.cpus[self.vcpus[vcpu].cpu].running {
            Running::Idle => false,
            Running::Right(other) | Running::Extra(other, _) => other == vcpu,
        }
    }
}

impl Scheduler for Cpus {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let vcpu = task.index();
        self.vcpus.resize(self.vcpus.len().max(vcpu + 1), Place::default());
        let affinity = params.affinity.clone();
        self.vcpus[vcpu] = Place { number: self.count, affinity, ..Place::default() };
        self.count += 1;
        let cpu = self.choose_cpu(vcpu);
        self.vcpus[vcpu].cpu = cpu;
        self.on(cpu, cx, |sedf, cx| sedf.attach(cx, task, params));
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let vcpu = task.index();
        self.vcpus[vcpu].affinity = params.affinity.clone();
        self.settle(vcpu, cx);
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.offline[cpu.index()] = !online;
        self.cpus[cpu.index()].undecided = false;
        for vcpu in 0..self.vcpus.len() {
            if self.vcpus[vcpu].cpu == cpu.index() {
                self.settle(vcpu, cx);
            }
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.vcpus[task.index()].ready = true;
        let cpu = self.vcpus[task.index()].cpu;
        self.on(cpu, cx, |sedf, cx| sedf.enqueue(cx, task, arrival));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.vcpus[task.index()].ready = false;
        self.on(self.vcpus[task.index()].cpu, cx, |sedf, cx| sedf.dequeue(cx, task));
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        self.on(cpu.index(), cx, |sedf, cx| sedf.pick_next(cx, CpuId(0)))
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        let (cpu, vcpu) = (cpu.index(), task.index());
        self.vcpus[vcpu].ready = why.runnable();
        let stays = self.may(vcpu, cpu);
        let why_here = if stays { why } else { Off::Blocked };
        self.on(cpu, cx, |sedf, cx| sedf.put_prev(cx, CpuId(0), task, ran, why_here));
        if self.offline[cpu] {
            (self.cpus[cpu].running, self.cpus[cpu].undecided) = (Running::Idle, false);
        }
        if !stays && why.runnable() {
            self.go_and_wake(vcpu, cx);
        } else if !stays {
            self.go_elsewhere(vcpu);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        (0..self.cpus.len()).filter_map(|cpu| self.due(cpu)).min()
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        for cpu in 0..self.cpus.len() {
            if self.due(cpu).is_some_and(|due| due <= cx.now) {
                self.on(cpu, cx, |sedf, cx| sedf.timer(cx));
            }
        }
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let cpu = self.vcpus[task.index()].cpu;
        sink("runqueue", cpu as i64);
        self.cpus[cpu].probe(task, sink);
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("moves", self.moves);
        self.cpus.iter().for_each(|sedf| sedf.tally(sink));
    }
}

impl Oracle for Cpus {}
