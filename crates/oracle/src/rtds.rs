//! RTDS as Xen has it: vectors that are searched from the front, and the clock.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, Off, Pick, Scheduler, Span, TaskId, TaskParams, Time,
};

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Asleep,
    Queued,
    /// On a CPU, or taken off until that CPU picks.
    Current,
}

#[derive(Clone)]
struct Vcpu {
    period: u64,
    budget: u64,
    left: u64,
    deadline: u64,
    level: u32,
    /// Since when it has not been charged.
    since: u64,
    place: Place,
    cpu: usize,
    affinity: CpuSet,
    ran_out: bool,
    /// It has to leave its CPU and wake anew.
    leaves: bool,
}

#[derive(Clone, Default)]
struct Cpu {
    offline: bool,
    tickled: bool,
    current: Option<usize>,
    /// Its vCPU has been taken off.
    undecided: bool,
}

/// See the [module documentation](self).
pub struct Rtds {
    extratime: bool,
    prompt: bool,
    vcpus: Vec<Option<Vcpu>>,
    cpus: Vec<Cpu>,
    /// Those that wait with budget, in order.
    runq: Vec<usize>,
    /// All that are not asleep, in the order in which they are replenished.
    replq: Vec<usize>,
    kicks: Vec<usize>,
    now: u64,
    /// How often a vCPU was replenished after another with a later deadline.
    held_up: u64,
    levels: u64,
    tickled_busy: u64,
}

impl Rtds {
    /// On `cpus` CPUs, with these settings of `rtds`.
    pub fn new(cpus: usize, extratime: bool, prompt: bool) -> Rtds {
        Rtds {
            extratime,
            prompt,
            vcpus: Vec::new(),
            cpus: vec![Cpu::default(); cpus],
            runq: Vec::new(),
            replq: Vec::new(),
            kicks: Vec::new(),
            now: 0,
            held_up: 0,
            levels: 0,
            tickled_busy: 0,
        }
    }

    fn v(&self, vcpu: usize) -> &Vcpu {
        self.vcpus[vcpu].as_ref().unwrap()
    }

    fn v_mut(&mut self, vcpu: usize) -> &mut Vcpu {
        self.vcpus[vcpu].as_mut().unwrap()
    }

    fn precedes(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.v(a), self.v(b));
        a.level < b.level || a.level == b.level && a.deadline < b.deadline
    }

    fn is_due_before(&self, a: usize, b: usize) -> bool {
        if self.prompt { self.v(a).deadline < self.v(b).deadline } else { self.precedes(a, b) }
    }

    fn usable(&self, vcpu: usize, cpu: usize) -> bool {
        !self.cpus[cpu].offline && self.v(vcpu).affinity.contains(CpuId(cpu as u16))
    }

    /// All CPUs, beginning with this one.
    fn from(&self, cpu: usize) -> Vec<usize> {
        (0..self.cpus.len()).map(|nth| (cpu + nth) % self.cpus.len()).collect()
    }

    fn replenish(&mut self, vcpu: usize) {
        let now = self.now;
        let v = self.v_mut(vcpu);
        while v.deadline <= now {
            v.deadline += v.period;
        }
        (v.left, v.level, v.since) = (v.budget, 0, now);
    }

    fn burn(&mut self, vcpu: usize) {
        let (now, extratime) = (self.now, self.extratime);
        let v = self.v_mut(vcpu);
        v.left = v.left.saturating_sub(now - v.since);
        v.since = now;
        if v.left > 0 {
            return;
        }
        if extratime {
            (v.level, v.left) = (v.level + 1, v.budget);
            self.levels += 1;
        } else {
            v.ran_out = true;
        }
    }

    fn insert_runq(&mut self, vcpu: usize) {
        self.v_mut(vcpu).place = Place::Queued;
        if self.v(vcpu).left > 0 {
            let place = self.runq.iter().position(|&other| self.precedes(vcpu, other));
            self.runq.insert(place.unwrap_or(self.runq.len()), vcpu);
        }
    }

    fn insert_replq(&mut self, vcpu: usize) {
        let place = self.replq.iter().position(|&other| self.is_due_before(vcpu, other));
        self.replq.insert(place.unwrap_or(self.replq.len()), vcpu);
    }

    fn raise(&mut self, cpu: usize) {
        self.cpus[cpu].tickled = true;
        self.kicks.push(cpu);
    }

    fn tickle(&mut self, vcpu: usize) {
        let candidates: Vec<usize> = self
            .from(self.v(vcpu).cpu)
            .into_iter()
            .filter(|&cpu| self.usable(vcpu, cpu) && !self.cpus[cpu].tickled)
            .collect();
        let mut last: Option<usize> = None;
        for cpu in candidates {
            let Some(current) = self.cpus[cpu].current else { return self.raise(cpu) };
            if last.is_none_or(|last| self.precedes(last, current)) {
                last = Some(current);
            }
        }
        if let Some(last) = last.filter(|&last| self.precedes(vcpu, last)) {
            self.tickled_busy += 1;
            self.raise(self.v(last).cpu);
        }
    }

    fn sleep(&mut self, vcpu: usize) {
        self.runq.retain(|&other| other != vcpu);
        self.replq.retain(|&other| other != vcpu);
        let v = self.v_mut(vcpu);
        (v.place, v.leaves) = (Place::Asleep, false);
    }

    fn wake(&mut self, vcpu: usize) {
        if self.v(vcpu).deadline <= self.now {
            self.replenish(vcpu);
        }
        self.insert_replq(vcpu);
        self.insert_runq(vcpu);
        self.tickle(vcpu);
    }

    /// `vcpu`, which is on no CPU any more, waits or has to go elsewhere.
    fn put_back(&mut self, vcpu: usize) {
        if self.v(vcpu).leaves {
            self.migrate(vcpu);
        } else {
            self.insert_runq(vcpu);
            self.tickle(vcpu);
        }
    }

    /// Sends away `vcpu`, which is not on a CPU.
    fn migrate(&mut self, vcpu: usize) {
        let was_asleep = self.v(vcpu).place == Place::Asleep;
        self.sleep(vcpu);
        let mut cpus = self.from(self.v(vcpu).cpu).into_iter();
        if let Some(cpu) = cpus.find(|&cpu| self.usable(vcpu, cpu)) {
            self.v_mut(vcpu).cpu = cpu;
        }
        if !was_asleep {
            self.wake(vcpu);
        }
    }

    fn change_place(&mut self, vcpu: usize) {
        if self.v(vcpu).place == Place::Current {
            self.v_mut(vcpu).leaves = true;
            self.kicks.push(self.v(vcpu).cpu);
        } else {
            self.migrate(vcpu);
        }
    }

    fn choose(&mut self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].tickled = false;
        self.cpus[cpu].undecided = false;
        let old = self.cpus[cpu].current;
        let first = self.runq.iter().copied().find(|&vcpu| self.usable(vcpu, cpu));
        let own =
            old.filter(|&own| self.v(own).left > 0 && !self.v(own).leaves && self.usable(own, cpu));
        let next = match (own, first) {
            (Some(own), Some(first)) if self.precedes(own, first) => Some(own),
            (own, first) => first.or(own),
        };
        self.cpus[cpu].current = next;
        if let Some(next) = next {
            self.runq.retain(|&vcpu| vcpu != next);
            let now = self.now;
            let v = self.v_mut(next);
            (v.place, v.cpu, v.since) = (Place::Current, cpu, now);
        }
        if let Some(old) = old.filter(|_| old != next) {
            self.put_back(old);
        }
        next
    }

    fn replenish_all(&mut self) {
        let mut done = Vec::new();
        while let Some(&vcpu) = self.replq.first() {
            if self.v(vcpu).deadline > self.now {
                break;
            }
            self.held_up += u64::from(self.v(vcpu).deadline < self.now);
            self.replq.remove(0);
            let waits = self.v(vcpu).place == Place::Queued;
            if self.prompt && waits && self.v(vcpu).level > 0 {
                self.v_mut(vcpu).ran_out = true;
            }
            self.replenish(vcpu);
            if waits {
                self.runq.retain(|&other| other != vcpu);
                self.insert_runq(vcpu);
            }
            done.insert(0, vcpu);
        }
        for vcpu in done {
            let runs = self.v(vcpu).place == Place::Current;
            if let Some(first) = self.runq.first().copied().filter(|_| runs) {
                if self.precedes(first, vcpu) {
                    self.tickle(first);
                }
            } else {
                let ran_out = std::mem::take(&mut self.v_mut(vcpu).ran_out);
                if ran_out && !runs {
                    self.tickle(vcpu);
                }
            }
            self.insert_replq(vcpu);
        }
    }

    fn plug(&mut self, cpu: usize, online: bool) {
        let was_tickled = std::mem::take(&mut self.cpus[cpu].tickled);
        self.cpus[cpu].offline = !online;
        if online {
            if !self.runq.is_empty() {
                self.raise(cpu);
            }
            return;
        }
        for vcpu in 0..self.vcpus.len() {
            if self.vcpus[vcpu].as_ref().is_some_and(|v| v.cpu == cpu) {
                self.change_place(vcpu);
            }
        }
        if std::mem::take(&mut self.cpus[cpu].undecided)
            && let Some(current) = self.cpus[cpu].current.take()
        {
            self.put_back(current);
        }
        for vcpu in if was_tickled { self.runq.clone() } else { Vec::new() } {
            self.tickle(vcpu);
        }
    }

    fn describe(&mut self, vcpu: usize, params: &TaskParams) {
        let (period, budget) = (params.period.unwrap().0, params.budget.unwrap().0);
        let v = self.v_mut(vcpu);
        (v.period, v.budget) = (period, budget);
    }

    /// Follows a call at the time of `cx`, and makes the kicks that it causes.
    fn at<R>(&mut self, cx: &mut Cx<'_>, call: impl FnOnce(&mut Rtds) -> R) -> R {
        self.now = cx.now.0;
        let answer = call(self);
        for cpu in self.kicks.drain(..) {
            cx.kick(CpuId(cpu as u16));
        }
        cx.work.queued = self.runq.len() as u32;
        answer
    }
}

impl Scheduler for Rtds {
    /// `params` must have a period and a budget.
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let vcpu = task.index();
        self.vcpus.resize(self.vcpus.len().max(vcpu + 1), None);
        self.vcpus[vcpu] = Some(Vcpu {
            period: 0,
            budget: 0,
            left: 0,
            deadline: 0,
            level: 0,
            since: 0,
            place: Place::Asleep,
            cpu: 0,
            affinity: params.affinity.clone(),
            ran_out: false,
            leaves: false,
        });
        self.describe(vcpu, params);
        self.at(cx, |rtds| {
            rtds.replenish(vcpu);
            rtds.migrate(vcpu);
        });
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.vcpus[task.index()] = None;
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.describe(task.index(), params);
        let affinity = &mut self.v_mut(task.index()).affinity;
        if *affinity != params.affinity {
            *affinity = params.affinity.clone();
            self.at(cx, |rtds| rtds.change_place(task.index()));
        }
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.at(cx, |rtds| rtds.plug(cpu.index(), online));
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, _: Arrival) {
        self.at(cx, |rtds| rtds.wake(task.index()));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.at(cx, |rtds| {
            for on in rtds.cpus.iter_mut().filter(|on| on.current == Some(task.index())) {
                (on.current, on.undecided) = (None, false);
            }
            rtds.sleep(task.index());
        });
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let next = self.at(cx, |rtds| rtds.choose(cpu.index()))?;
        Some(Pick { task: TaskId(next as u32), slice: Span(self.v(next).left) })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, _: Span, why: Off) {
        self.at(cx, |rtds| {
            rtds.burn(task.index());
            let on = &mut rtds.cpus[cpu.index()];
            if why.runnable() && why != Off::NotRun && !on.offline {
                on.undecided = true;
                return;
            }
            on.current = None;
            if why.runnable() {
                rtds.put_back(task.index());
            } else {
                rtds.sleep(task.index());
            }
        });
    }

    fn next_timer(&self) -> Option<Time> {
        self.replq.first().map(|&vcpu| Time(self.v(vcpu).deadline))
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.at(cx, Rtds::replenish_all);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let v = self.v(task.index());
        sink("budget_ns", v.left as i64);
        sink("deadline_ns", v.deadline as i64);
        sink("level", i64::from(v.level));
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("held up", self.held_up);
        sink("levels", self.levels);
        sink("tickled busy", self.tickled_busy);
    }
}

impl Oracle for Rtds {
    const QUEUED: bool = true;
}
