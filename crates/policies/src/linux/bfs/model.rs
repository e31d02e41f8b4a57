//! BFS as its source computes it: one plain list, loops over all CPUs, ranks as sums of bits, and
//! deadlines of tasks that stick elsewhere shifted left, 300 s after boot. Random sequences of
//! calls must be answered alike by the policy, and the same CPUs be kicked.
//!
//! It deviates where the policy does: a kicked CPU is idle no more and counts as running what it
//! was kicked for; if it takes another task, its place is filled.

use alloc::vec::Vec;
use proptest::prelude::*;

use super::OneQueue;
use crate::linux::virtual_deadline::RATIOS;
use crate::linux::virtual_deadline::rig::Rig;
use anysched_core::{CpuId, CpuSet, Machine, Off, Span, TaskId, TaskParams, Time};

const TASKS: usize = 10;
const BOOT: u64 = 300_000_000_000;
const SLICE: u64 = 6_000_000;
const RESCHED: u64 = 100_000;
const TICK: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq)]
enum State {
    Gone,
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
    /// Of what it runs or was kicked for.
    deadline: u64,
    idle: bool,
    need_resched: bool,
    sticky_task: Option<usize>,
    last_tick: u64,
    dither: bool,
}

#[derive(Clone, Copy, Debug)]
struct Options {
    sticky: bool,
    scaling: bool,
    share: bool,
    dither: bool,
    tick: bool,
}

struct Model {
    machine: Machine,
    options: Options,
    now: u64,
    list: Vec<usize>,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// Which task each kicked CPU that runs nothing was kicked for.
    kicked_for: Vec<(usize, usize)>,
    kicks: Vec<bool>,
}

fn difference(nice: i8) -> u64 {
    u64::from(RATIOS[(nice + 20) as usize]) * SLICE / 128
}

impl Model {
    fn new(machine: &Machine, options: Options) -> Model {
        let gone = Task {
            state: State::Gone,
            nice: 0,
            deadline: 0,
            slice: 0,
            cpu: 0,
            sticky: false,
            allowed: u16::MAX,
        };
        let idle = Cpu { idle: true, ..Cpu::default() };
        Model {
            machine: machine.clone(),
            options,
            now: BOOT,
            list: Vec::new(),
            tasks: alloc::vec![gone; TASKS],
            cpus: alloc::vec![idle; machine.cpus()],
            kicked_for: Vec::new(),
            kicks: alloc::vec![false; machine.cpus()],
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
            // Any other CPU would not take it.
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

    fn enqueue(&mut self, task: usize) {
        self.tasks[task].state = State::Queued;
        self.kicked_for.retain(|entry| entry.0 != task);
        self.list.push(task);
    }

    fn wake(&mut self, task: usize, sync: bool) {
        self.enqueue(task);
        if sync {
            self.kick_best_idle(task, self.tasks[task].cpu);
        } else {
            self.try_preempt(task);
        }
    }

    fn create(&mut self, task: usize, nice: i8, from: Option<usize>) {
        let near = from.unwrap_or(0);
        (self.tasks[task].nice, self.tasks[task].cpu) = (nice, near);
        (self.tasks[task].allowed, self.tasks[task].sticky) = (u16::MAX, false);
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
        self.enqueue(task);
        if parent.is_none() {
            self.try_preempt(task);
        } else if !self.kick_best_idle(task, near) {
            self.resched(near, None);
        }
    }

    /// Whether a CPU was kicked for `task` that may run it.
    fn is_awaited(&self, task: usize) -> bool {
        let mut kicked = self.kicked_for.iter().filter(|entry| entry.0 == task);
        kicked.any(|entry| self.allowed(task, entry.1))
    }

    fn set_nice(&mut self, task: usize, nice: i8) {
        let old = core::mem::replace(&mut self.tasks[task].nice, nice);
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
        if core::mem::replace(&mut self.tasks[task].allowed, allowed) == allowed {
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
        let ran = now - core::mem::replace(&mut on.since, now);
        self.tasks[task].slice = self.tasks[task].slice.saturating_sub(ran);
    }

    fn tick(&mut self, cpu: usize) {
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

    /// Takes off what `cpu` runs, which then is in `state`, and picks.
    fn schedule(&mut self, cpu: usize, state: State) -> Option<usize> {
        self.charge(cpu);
        self.kicks[cpu] = false;
        let told = core::mem::take(&mut self.cpus[cpu].need_resched);
        let mut left = None;
        if let Some(prev) = self.cpus[cpu].current.take() {
            if self.tasks[prev].slice < RESCHED {
                self.expired(prev);
            }
            self.tasks[prev].state = state;
            if state == State::Queued {
                let stays = self.allowed(prev, cpu);
                if stays && self.options.sticky && !self.list.is_empty() {
                    self.swap_sticky(cpu, prev);
                }
                self.enqueue(prev);
                if told || !stays {
                    self.kick_best_idle(prev, cpu);
                } else {
                    left = Some(prev);
                }
            } else if state == State::Gone {
                let gone = |on: &mut Cpu| on.sticky_task = on.sticky_task.filter(|&t| t != prev);
                self.cpus.iter_mut().for_each(gone);
            }
        }
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

/// The policy with both kinds of queue, and the model.
struct Trio {
    model: Model,
    rigs: [Rig<OneQueue>; 2],
    picks: u32,
}

fn affinity(allowed: u16) -> CpuSet {
    match allowed {
        u16::MAX => CpuSet::All,
        _ => CpuSet::of((0..16).filter(|cpu| allowed >> cpu & 1 == 1).map(CpuId)),
    }
}

impl Trio {
    fn new(machine: &str, options: Options) -> Trio {
        let machine = Machine::parse(machine).unwrap();
        let word = |on| if on { "true" } else { "false" };
        let rigs = ["list", "tree"].map(|queue| {
            let settings = [
                ("queue", queue),
                ("sticky", word(options.sticky)),
                ("scaling", word(options.scaling)),
                ("dither", word(options.dither)),
                ("fork", if options.share { "share" } else { "fresh" }),
                ("tick", if options.tick { "1ms" } else { "0" }),
            ];
            let mut rig = Rig::on(machine.clone(), &settings);
            rig.now = Time(BOOT);
            rig
        });
        Trio { model: Model::new(&machine, options), rigs, picks: 0 }
    }

    fn params(&self, task: usize) -> TaskParams {
        let Task { nice, allowed, .. } = self.model.tasks[task];
        TaskParams { affinity: affinity(allowed), ..TaskParams::nice(nice) }
    }

    fn become_ready(&mut self, task: usize, from: Option<usize>, nice: i8, sync: bool) {
        let id = task as u32;
        match self.model.tasks[task].state {
            State::Gone => {
                let from_cpu = from.map(|cpu| cpu as u16);
                for rig in &mut self.rigs {
                    rig.create(id, &TaskParams::nice(nice), from_cpu);
                }
                self.model.create(task, nice, from);
            }
            State::Asleep => {
                let prev = self.model.tasks[task].cpu as u16;
                for rig in &mut self.rigs {
                    match sync {
                        true => rig.wake_sync(id, prev),
                        false => rig.wake(id, prev),
                    }
                }
                self.model.wake(task, sync);
            }
            State::Queued | State::Running => {}
        }
    }

    fn update(&mut self, task: usize, nice: i8, allowed: Option<u16>) {
        if self.model.tasks[task].state == State::Gone {
            return;
        }
        match allowed {
            Some(allowed) => self.model.set_allowed(task, allowed),
            None => self.model.set_nice(task, nice),
        }
        let params = self.params(task);
        self.rigs.iter_mut().for_each(|rig| rig.update(task as u32, &params));
    }

    fn schedule(&mut self, cpu: usize, why: Off) -> Result<(), TestCaseError> {
        let state = match why {
            Off::Blocked => State::Asleep,
            Off::Exited => State::Gone,
            _ => State::Queued,
        };
        let prev = self.model.cpus[cpu].current;
        let expected = self.model.schedule(cpu, state).map(|task| task as u32);
        self.picks += u32::from(expected.is_some());
        for rig in &mut self.rigs {
            if let Some(prev) = prev {
                rig.off(cpu as u16, why);
                if why == Off::Exited {
                    rig.call(|bfs, cx| {
                        anysched_core::Scheduler::detach(bfs, cx, TaskId(prev as u32))
                    });
                }
            }
            prop_assert_eq!(rig.pick(cpu as u16), expected);
            rig.answered(cpu as u16);
        }
        Ok(())
    }

    fn tick(&mut self, cpu: usize) {
        if self.model.options.tick && self.model.cpus[cpu].current.is_some() {
            self.rigs.iter_mut().for_each(|rig| rig.charge_tick(cpu as u16));
            self.model.tick(cpu);
        }
    }

    /// Lets time pass; what has used up its slice is taken off, if there is no tick.
    fn pass(&mut self, us: u64) -> Result<(), TestCaseError> {
        self.model.now += us * 1000;
        self.rigs.iter_mut().for_each(|rig| rig.now += Span::from_us(us));
        for cpu in 0..self.model.cpus.len() {
            let Cpu { current: Some(task), since, .. } = self.model.cpus[cpu] else { continue };
            if !self.model.options.tick && self.model.now - since >= self.model.tasks[task].slice {
                self.schedule(cpu, Off::Expired)?;
            }
        }
        Ok(())
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        for rig in &self.rigs {
            let kicks: Vec<bool> =
                (0..self.model.kicks.len() as u16).map(|cpu| rig.is_kicked(cpu)).collect();
            prop_assert_eq!(&kicks, &self.model.kicks);
            for (task, known) in self.model.tasks.iter().enumerate() {
                if known.state != State::Gone {
                    prop_assert_eq!(rig.deadline(task as u32), known.deadline as i64);
                    prop_assert_eq!(rig.left(task as u32), known.slice as i64);
                }
            }
        }
        Ok(())
    }

    /// Lets up to `most` kicked CPUs pick, the lowest first.
    fn answer(&mut self, most: usize) -> Result<(), TestCaseError> {
        for _ in 0..most {
            let Some(cpu) = self.model.kicks.iter().position(|&kicked| kicked) else { break };
            self.schedule(cpu, Off::Preempted)?;
            self.compare()?;
        }
        Ok(())
    }

    fn step(&mut self, step: Step, prompt: bool) -> Result<(), TestCaseError> {
        let Step { what, task, cpu, us, nice, allowed } = step;
        let cpus = self.model.cpus.len();
        let (cpu, all) = (cpu % cpus, u16::MAX >> (16 - cpus));
        self.pass(us)?;
        self.compare()?;
        match what {
            0..4 => self.become_ready(task, None, nice, false),
            4 => self.become_ready(task, None, nice, true),
            5..8 => self.become_ready(task, Some(cpu), nice, false),
            8..10 => self.schedule(cpu, Off::Blocked)?,
            10 => self.schedule(cpu, Off::Exited)?,
            11 => self.schedule(cpu, Off::Yielded)?,
            12 => self.schedule(cpu, Off::Preempted)?,
            13 => self.update(task, nice, None),
            14 if allowed & all == 0 => self.update(task, nice, Some(u16::MAX)),
            14 => self.update(task, nice, Some(allowed & all)),
            15..18 => self.tick(cpu),
            _ => self.answer(1)?,
        }
        self.compare()?;
        self.answer(if prompt { 20 } else { 0 })
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    task: usize,
    cpu: usize,
    us: u64,
    nice: i8,
    allowed: u16,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few different nice values, so that deadlines are equal now and then.
    let nice = prop_oneof![3 => Just(0i8), 1 => Just(5), 1 => -20..20i8];
    let us = prop_oneof![2 => Just(0u64), 2 => 0..3_000u64, 1 => 0..60_000u64];
    let step = (0..20u8, 0..TASKS, 0..16usize, us, nice, any::<u16>()).prop_map(
        |(what, task, cpu, us, nice, allowed)| Step { what, task, cpu, us, nice, allowed },
    );
    prop::collection::vec(step, 1..250)
}

fn options() -> impl Strategy<Value = Options> {
    (any::<[bool; 4]>(), 0..4u8).prop_map(|([scaling, share, dither, tick], sticky)| Options {
        sticky: sticky > 0,
        scaling,
        share,
        dither,
        tick,
    })
}

const MACHINES: [&str; 6] = [
    "1",
    "3",
    "2 llcs x 2 cores x 2 threads",
    "2 packages x 2 llcs x 2 cores",
    "2 nodes x 2 llcs x 2 cores x 2 threads",
    "2 nodes x 2 packages x 2 llcs x 2 cores",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_policy_decides_as_the_source_does(
        machine in 0..MACHINES.len(),
        options in options(),
        prompt in any::<bool>(),
        steps in steps(),
    ) {
        let mut trio = Trio::new(MACHINES[machine], options);
        for step in steps {
            trio.step(step, prompt)?;
        }
    }
}
