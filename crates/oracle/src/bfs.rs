//! BFS as its source computes it: one plain list, loops over all CPUs, ranks as sums of bits, and
//! deadlines of tasks that stick elsewhere shifted left, 300 s after boot.
//!
//! A CPU must pick as soon as its task has left. It deviates where the policy does: a kicked CPU is
//! idle no more and counts as running what it was kicked for; if it takes another task, its place
//! is filled.

use crate::Oracle;
use anysched_core::params::NICE_WEIGHTS;
use anysched_core::{
    Arrival, CpuId, Cx, Enqueue, Machine, Off, Pick, Scheduler, Span, TaskId, TaskParams,
};

/// How many tasks there are.
pub const TASKS: usize = 10;
/// When the first call comes, in ns since boot.
pub const BOOT: u64 = 300_000_000_000;
const SLICE: u64 = 6_000_000;
const RESCHED: u64 = 100_000;
const TICK: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Asleep,
    Queued,
    Running,
}

#[derive(Clone)]
struct Task {
    state: State,
    nice: i8,
    deadline: u64,
    slice: u64,
    cpu: usize,
    sticky: bool,
    /// One bit per CPU.
    allowed: u16,
}

#[derive(Clone, Default)]
struct Cpu {
    current: Option<usize>,
    since: u64,
    /// The deadline of the task that it runs or was kicked for.
    deadline: u64,
    idle: bool,
    need_resched: bool,
    sticky_task: Option<usize>,
    last_tick: u64,
    dither: bool,
    /// The task that it has put back, until it picks, unless another CPU was kicked for that.
    left: Option<usize>,
}

/// Parameters of `bfs`; `share` is `fork`, `tick` one of 1 ms.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named as the parameters")]
pub struct Options {
    pub sticky: bool,
    pub scaling: bool,
    pub share: bool,
    pub dither: bool,
    pub tick: bool,
}

/// See the [module documentation](self).
pub struct Bfs {
    machine: Machine,
    options: Options,
    now: u64,
    list: Vec<usize>,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// The task for which each kicked CPU that runs nothing was kicked.
    kicked_for: Vec<(usize, usize)>,
    kicks: Vec<bool>,
}

/// How far ahead the deadline of a task of this nice value lies: 1 slice for −20, a tenth more with
/// each.
fn difference(nice: i8) -> u64 {
    (-20..nice).fold(128, |ratio, _| ratio * 11 / 10) * SLICE / 128
}

impl Bfs {
    /// On `machine`.
    pub fn new(machine: &Machine, options: Options) -> Bfs {
        let gone = Task {
            state: State::New,
            nice: 0,
            deadline: 0,
            slice: 0,
            cpu: 0,
            sticky: false,
            allowed: u16::MAX,
        };
        let idle = Cpu { idle: true, ..Cpu::default() };
        Bfs {
            machine: machine.clone(),
            options,
            now: BOOT,
            list: Vec::new(),
            tasks: vec![gone; TASKS],
            cpus: vec![idle; machine.cpus()],
            kicked_for: Vec::new(),
            kicks: vec![false; machine.cpus()],
        }
    }

    /// 0 the same, 1 a sibling, 2 behind the same cache, 3 in the same node, 4 elsewhere.
    fn locality(&self, a: usize, b: usize) -> u32 {
        let (one, other) = (self.machine.cpu(CpuId(a as u16)), self.machine.cpu(CpuId(b as u16)));
        match () {
            () if a == b => 0,
            () if one.core == other.core => 1,
            () if one.llc == other.llc => 2,
            () if one.node == other.node => 3,
            () => 4,
        }
    }

    fn allowed(&self, task: usize, cpu: usize) -> bool {
        self.tasks[task].allowed >> cpu & 1 == 1
    }

    fn expired(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        task.slice = SLICE;
        task.deadline = self.now + difference(task.nice);
    }

    fn ranking(&self, near: usize, cpu: usize) -> u32 {
        let idle = |same: &dyn Fn(usize) -> bool| {
            (0..self.cpus.len()).all(|other| !same(other) || self.cpus[other].idle)
        };
        let mut ranking = match self.locality(near, cpu) {
            0 => return 0,
            1 => 1,
            2 => 2,
            3 => 8,
            _ => 32,
        };
        if !idle(&|other| self.locality(cpu, other) <= 2) {
            ranking += 4;
        }
        if !idle(&|other| self.locality(cpu, other) <= 1) {
            ranking += 16;
        }
        ranking
    }

    /// Whether an idle CPU could be kicked for `task`.
    fn kick_best_idle(&mut self, task: usize, near: usize) -> bool {
        if self.options.scaling && self.tasks[task].sticky {
            // No other CPU would take it.
            let own = self.tasks[task].cpu;
            if !self.cpus[own].idle || !self.allowed(task, own) {
                return false;
            }
        }
        let suitable = |&cpu: &usize| self.cpus[cpu].idle && self.allowed(task, cpu);
        let best =
            (0..self.cpus.len()).filter(suitable).min_by_key(|&cpu| (self.ranking(near, cpu), cpu));
        let Some(cpu) = best else { return false };
        self.resched(cpu, Some(task));
        true
    }

    fn resched(&mut self, cpu: usize, task: Option<usize>) {
        self.kicks[cpu] = true;
        let on = &mut self.cpus[cpu];
        (on.need_resched, on.idle) = (true, false);
        let Some(task) = task else { return };
        on.deadline = self.tasks[task].deadline;
        if on.current.is_none() && self.kicked_for.iter().all(|entry| entry.1 != cpu) {
            self.kicked_for.retain(|entry| entry.0 != task);
            self.kicked_for.push((task, cpu));
        }
    }

    fn try_preempt(&mut self, task: usize) {
        self.tasks[task].sticky = false;
        if !self.kick_best_idle(task, self.tasks[task].cpu) {
            self.preempt_latest(task);
        }
    }

    fn preempt_latest(&mut self, task: usize) {
        let mut latest: Option<usize> = None;
        for cpu in (0..self.cpus.len()).filter(|&cpu| self.allowed(task, cpu)) {
            if latest.is_none_or(|late| self.cpus[cpu].deadline > self.cpus[late].deadline) {
                latest = Some(cpu);
            }
        }
        let Some(cpu) = latest else { return };
        if self.tasks[task].deadline < self.cpus[cpu].deadline {
            self.resched(cpu, Some(task));
        }
    }

    fn enqueue_task(&mut self, task: usize) {
        self.tasks[task].state = State::Queued;
        self.kicked_for.retain(|entry| entry.0 != task);
        self.list.push(task);
    }

    fn wake(&mut self, task: usize, sync: bool) {
        self.enqueue_task(task);
        if sync {
            self.kick_best_idle(task, self.tasks[task].cpu);
        } else {
            self.try_preempt(task);
        }
    }

    fn create(&mut self, task: usize, from: Option<usize>) {
        let near = from.unwrap_or(0);
        self.tasks[task].cpu = near;
        let parent = from.and_then(|cpu| self.cpus[cpu].current);
        match parent {
            Some(parent) if self.options.share && self.tasks[parent].slice >= 2 * RESCHED => {
                self.tasks[parent].slice /= 2;
                let Task { slice, deadline, .. } = self.tasks[parent];
                (self.tasks[task].slice, self.tasks[task].deadline) = (slice, deadline);
            }
            Some(parent) if self.options.share => {
                self.tasks[parent].slice = 0;
                self.expired(task);
            }
            _ => self.expired(task),
        }
        self.enqueue_task(task);
        if parent.is_none() {
            self.try_preempt(task);
        } else if !self.kick_best_idle(task, near) {
            self.resched(near, None);
        }
    }

    /// Whether a CPU that may run `task` was kicked for it.
    fn is_awaited(&self, task: usize) -> bool {
        let mut kicked = self.kicked_for.iter().filter(|entry| entry.0 == task);
        kicked.any(|entry| self.allowed(task, entry.1))
    }

    fn set_nice(&mut self, task: usize, nice: i8) {
        let old = std::mem::replace(&mut self.tasks[task].nice, nice);
        if nice == old {
            return;
        }
        if let State::Running = self.tasks[task].state {
            // The CPU has the deadline now, and writes it back.
            if nice > old {
                self.resched(self.tasks[task].cpu, None);
            }
            return;
        }
        self.tasks[task].sticky &= nice > old;
        self.tasks[task].deadline += difference(nice);
        self.tasks[task].deadline -= difference(old);
        if let State::Queued = self.tasks[task].state {
            self.list.retain(|&other| other != task);
            self.list.push(task);
            if !self.is_awaited(task)
                && !self.kick_best_idle(task, self.tasks[task].cpu)
                && nice < old
            {
                self.preempt_latest(task);
            }
        }
    }

    fn set_allowed(&mut self, task: usize, allowed: u16) {
        if std::mem::replace(&mut self.tasks[task].allowed, allowed) == allowed {
            return;
        }
        self.tasks[task].sticky = false;
        let cpu = self.tasks[task].cpu;
        match self.tasks[task].state {
            State::Running if !self.allowed(task, cpu) => self.resched(cpu, None),
            State::Queued if !self.is_awaited(task) => self.try_preempt(task),
            _ => {}
        }
    }

    fn charge(&mut self, cpu: usize) {
        let (now, on) = (self.now, &mut self.cpus[cpu]);
        let Some(task) = on.current else { return };
        let ran = now - std::mem::replace(&mut on.since, now);
        self.tasks[task].slice = self.tasks[task].slice.saturating_sub(ran);
    }

    fn tick_on(&mut self, cpu: usize) {
        self.charge(cpu);
        self.cpus[cpu].last_tick = self.now;
        let Some(task) = self.cpus[cpu].current else { return };
        if self.options.dither && self.cpus[cpu].dither {
            if self.tasks[task].slice > TICK / 2 {
                return;
            }
            self.tasks[task].slice = 0;
        } else if self.tasks[task].slice >= RESCHED {
            return;
        }
        self.resched(cpu, None);
    }

    fn swap_sticky(&mut self, cpu: usize, task: usize) {
        if let Some(old) = self.cpus[cpu].sticky_task
            && old != task
            && self.tasks[old].sticky
        {
            self.tasks[old].sticky = false;
            if let State::Queued = self.tasks[old].state {
                self.kick_best_idle(old, cpu);
            }
        }
        self.tasks[task].sticky = true;
        self.cpus[cpu].sticky_task = Some(task);
    }

    fn earliest(&self, cpu: usize) -> Option<usize> {
        let mut best = (u64::MAX, None);
        for &task in self.list.iter().filter(|&&task| self.allowed(task, cpu)) {
            let Task { deadline, sticky, cpu: last, .. } = self.tasks[task];
            let away = sticky && last != cpu;
            if away && self.options.scaling {
                continue;
            }
            let deadline = if away { deadline << self.locality(cpu, last) } else { deadline };
            if deadline < best.0 {
                best = (deadline, Some(task));
            }
        }
        best.1
    }

    /// Takes off what `cpu` runs, which is in `state` from then on.
    fn take_off(&mut self, cpu: usize, state: State) {
        self.charge(cpu);
        let told = std::mem::take(&mut self.cpus[cpu].need_resched);
        let Some(prev) = self.cpus[cpu].current.take() else { return };
        if self.tasks[prev].slice < RESCHED {
            self.expired(prev);
        }
        self.tasks[prev].state = state;
        if state != State::Queued {
            return;
        }
        let stays = self.allowed(prev, cpu);
        if stays && self.options.sticky && !self.list.is_empty() {
            self.swap_sticky(cpu, prev);
        }
        self.enqueue_task(prev);
        if told || !stays {
            self.kick_best_idle(prev, cpu);
        } else {
            self.cpus[cpu].left = Some(prev);
        }
    }

    /// What `cpu` runs next.
    fn pick(&mut self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].need_resched = false;
        let left = self.cpus[cpu].left.take();
        let next = self.earliest(cpu);
        self.fill_place(cpu, next, left);
        let on = &mut self.cpus[cpu];
        on.idle = next.is_none();
        (on.current, on.since, on.deadline) = (next, self.now, 0);
        let next = next?;
        on.dither = self.now - on.last_tick <= TICK / 2;
        on.deadline = self.tasks[next].deadline;
        self.list.retain(|&task| task != next);
        let task = &mut self.tasks[next];
        (task.state, task.cpu, task.sticky) = (State::Running, cpu, false);
        Some(next)
    }

    /// `cpu` takes `next`. What it was kicked for, or has put back (`left`), may still wait: then
    /// the CPU that was kicked for `next` serves it, else an idle one.
    fn fill_place(&mut self, cpu: usize, next: Option<usize>, left: Option<usize>) {
        let was_for = self.kicked_for.iter().find(|entry| entry.1 == cpu).map(|entry| entry.0);
        let other = self.kicked_for.iter().find(|entry| Some(entry.0) == next && entry.1 != cpu);
        let other = other.map(|entry| entry.1);
        self.kicked_for.retain(|entry| entry.1 != cpu && Some(entry.0) != next);
        let Some(waits) = left.or(was_for).filter(|&task| Some(task) != next) else { return };
        match other.filter(|&other| self.allowed(waits, other)) {
            Some(other) => self.kicked_for.push((waits, other)),
            None => {
                self.kick_best_idle(waits, self.tasks[waits].cpu);
            }
        }
    }
}

/// The nice value of this weight.
fn nice(weight: u32) -> i8 {
    NICE_WEIGHTS.iter().position(|&other| other == weight).unwrap() as i8 - 20
}

fn allowed(params: &TaskParams) -> u16 {
    (0..16).map(|cpu| u16::from(params.affinity.contains(CpuId(cpu))) << cpu).sum()
}

impl Bfs {
    /// Follows a call at the time of `cx`, and makes the kicks that it causes.
    fn at<R>(&mut self, cx: &mut Cx<'_>, call: impl FnOnce(&mut Bfs) -> R) -> R {
        self.now = cx.now.0;
        let answer = call(self);
        for (cpu, kicked) in self.kicks.iter_mut().enumerate() {
            if std::mem::take(kicked) {
                cx.kick(CpuId(cpu as u16));
            }
        }
        answer
    }
}

impl Scheduler for Bfs {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let task = &mut self.tasks[task.index()];
        (task.state, task.nice, task.allowed) = (State::New, nice(params.weight), allowed(params));
        (task.slice, task.deadline, task.cpu, task.sticky) = (0, 0, 0, false);
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.tasks[task.index()].state = State::New;
        for on in &mut self.cpus {
            on.sticky_task = on.sticky_task.filter(|&other| other != task.index());
        }
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.at(cx, |bfs| {
            bfs.set_nice(task.index(), nice(params.weight));
            bfs.set_allowed(task.index(), allowed(params));
        });
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.at(cx, |bfs| match arrival.why {
            Enqueue::Wakeup { sync, .. } => bfs.wake(task.index(), sync),
            _ => bfs.create(task.index(), arrival.from.map(CpuId::index)),
        });
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let next = self.at(cx, |bfs| bfs.pick(cpu.index()))?;
        let slice = if self.options.tick { Span::MAX } else { Span(self.tasks[next].slice) };
        Some(Pick { task: TaskId(next as u32), slice })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, _: TaskId, _: Span, why: Off) {
        let state = if why.runnable() { State::Queued } else { State::Asleep };
        self.at(cx, |bfs| bfs.take_off(cpu.index(), state));
    }

    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, _: TaskId, _: Span) {
        self.at(cx, |bfs| bfs.tick_on(cpu.index()));
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        sink("deadline_ns", self.tasks[task.index()].deadline as i64);
        sink("slice_left_ns", self.tasks[task.index()].slice as i64);
    }
}

impl Oracle for Bfs {
    const TIMERS: bool = false;
}
