//! OSv's rules as it computes them, in floats: c, R and head starts changed step by step. Random
//! sequences of events must be answered alike by the policy.

use alloc::vec::Vec;
use proptest::prelude::*;

use super::Osv;
use anysched_core::registry::Policy;
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, Enqueue, Machine, Off, Params, Pick, Scheduler, Span,
    TaskId, TaskParams, Time,
};

const TAU: f64 = 200e6;
const THYST: f64 = 5e6;
const PENALTY: f64 = 10e3;
const CPUS: usize = 2;
const TASKS: usize = 6;

#[derive(Clone, Copy)]
struct Thread {
    p: f64,
    r: f64,
    cpu: usize,
}

#[derive(Clone)]
struct Cpu {
    c: f64,
    since: u64,
    current: Option<usize>,
    /// The current thread has gone; the head start has been taken back.
    left: bool,
    queue: Vec<usize>,
    incoming: Vec<(usize, usize)>,
}

struct Model {
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    /// A decision was too close for floats.
    close: bool,
}

impl Model {
    fn new(weights: &[u32]) -> Model {
        let cpu = Cpu {
            // The idle thread has its head start too.
            c: (-THYST / TAU).exp(),
            since: 0,
            current: None,
            left: false,
            queue: Vec::new(),
            incoming: Vec::new(),
        };
        let thread = |&weight: &u32| Thread { p: 1024.0 / f64::from(weight), r: 0.0, cpu: 0 };
        Model {
            cpus: alloc::vec![cpu; CPUS],
            threads: weights.iter().map(thread).collect(),
            close: false,
        }
    }

    /// The idle thread is no thread here: only c changes.
    fn ran_for(&mut self, cpu: usize, thread: Option<usize>, time: f64) {
        let old = self.cpus[cpu].c;
        let new = old * (time / TAU).exp();
        self.cpus[cpu].c = new;
        if let Some(thread) = thread {
            self.threads[thread].r += self.threads[thread].p * (new - old);
        }
        if new > 1e90 {
            self.cpus[cpu].c /= 1e90;
            let local = self.threads.iter_mut().filter(|thread| thread.cpu == cpu);
            local.for_each(|thread| thread.r /= 1e90);
        }
    }

    fn enqueue(&mut self, cpu: usize, thread: usize) {
        let (r, c) = (self.threads[thread].r, self.cpus[cpu].c);
        let threads = &self.threads;
        let other = |&other: &usize| (threads[other].r - r).abs();
        let near = self.cpus[cpu].queue.iter().map(other).any(|d| d > 0.0 && d < 1e-10 * c);
        let at = self.cpus[cpu].queue.partition_point(|&other| threads[other].r <= r);
        self.close |= near;
        self.cpus[cpu].queue.insert(at, thread);
    }

    fn wake(&mut self, thread: usize, from: usize) {
        self.cpus[self.threads[thread].cpu].incoming.push((from, thread));
    }

    fn move_sleeper(&mut self, thread: usize, to: usize, now: u64) {
        let Thread { cpu: from, r, .. } = self.threads[thread];
        let here = self.cpus[from].c * ((now - self.cpus[from].since) as f64 / TAU).exp();
        self.threads[thread].r = r / here * self.cpus[to].c;
        self.threads[thread].cpu = to;
    }

    fn take_in(&mut self, cpu: usize) {
        let mut incoming = core::mem::take(&mut self.cpus[cpu].incoming);
        incoming.sort_by_key(|&(from, _)| from);
        incoming.into_iter().for_each(|(_, thread)| self.enqueue(cpu, thread));
    }

    fn charge(&mut self, cpu: usize, now: u64) {
        let on = &mut self.cpus[cpu];
        let passed = (now - on.since) as f64;
        let current = on.current;
        on.since = now;
        self.ran_for(cpu, current, if passed == 0.0 { PENALTY } else { passed });
    }

    fn leave(&mut self, cpu: usize, now: u64) {
        self.charge(cpu, now);
        let current = self.cpus[cpu].current;
        self.ran_for(cpu, current, THYST);
        self.cpus[cpu].current = None;
        self.cpus[cpu].left = true;
    }

    fn time_until(&mut self, cpu: usize, thread: usize) -> f64 {
        let Some(&first) = self.cpus[cpu].queue.first() else { return f64::INFINITY };
        let Thread { p, r, .. } = self.threads[thread];
        TAU * ((self.threads[first].r - r) / (p * self.cpus[cpu].c)).ln_1p() * 1.01
    }

    /// `put`: the current thread could go on, and whether it yields.
    fn pick(&mut self, cpu: usize, now: u64, put: Option<bool>) -> Option<(usize, f64)> {
        self.take_in(cpu);
        let yields = put == Some(true);
        let old = self.cpus[cpu].current;
        if self.cpus[cpu].queue.is_empty() {
            if self.cpus[cpu].left {
                // To the idle thread.
                self.cpus[cpu].left = false;
                self.ran_for(cpu, None, -THYST);
            } else if put == Some(false) {
                self.charge(cpu, now);
            }
            return old.map(|old| (old, f64::INFINITY));
        }
        if !core::mem::take(&mut self.cpus[cpu].left) {
            self.charge(cpu, now);
            if let (Some(old), false) = (old, yields) {
                let first = self.cpus[cpu].queue[0];
                let ahead = self.threads[first].r - self.threads[old].r;
                self.close |= ahead.abs() < 1e-10 * self.cpus[cpu].c;
                if ahead > 0.0 {
                    return Some((old, self.time_until(cpu, old)));
                }
            }
            self.ran_for(cpu, old, THYST);
        }
        if let (Some(old), false) = (old, yields) {
            self.enqueue(cpu, old);
        }
        let next = self.cpus[cpu].queue.remove(0);
        if let (Some(old), true) = (old, yields) {
            self.enqueue(cpu, old);
        }
        self.ran_for(cpu, Some(next), -THYST);
        if old.is_some() {
            self.ran_for(cpu, Some(next), PENALTY);
        }
        self.cpus[cpu].current = Some(next);
        self.cpus[cpu].since = now;
        let time = if yields { THYST } else { self.time_until(cpu, next) };
        Some((next, time))
    }
}

/// The policy and the model side by side.
struct Pair {
    osv: Osv,
    model: Model,
    now: u64,
    kicks: CpuMask,
    runs: [Option<(usize, u64)>; CPUS],
    slices: [Span; CPUS],
    asleep: Vec<bool>,
    picks: u32,
}

impl Pair {
    fn new(weights: &[u32]) -> Pair {
        let mut params = <Osv as Policy>::Params::default();
        params.set("lb_period", "0").unwrap();
        let machine = Machine::flat(CPUS).unwrap();
        let mut pair = Pair {
            osv: Osv::build(&machine, CPUS, &params).unwrap(),
            model: Model::new(weights),
            now: 0,
            kicks: CpuMask::EMPTY,
            runs: [None; CPUS],
            slices: [Span::MAX; CPUS],
            asleep: alloc::vec![true; weights.len()],
            picks: 0,
        };
        for (task, &weight) in weights.iter().enumerate() {
            let task_params = TaskParams { weight, ..TaskParams::default() };
            pair.call(|osv, cx| osv.attach(cx, TaskId(task as u32), &task_params));
        }
        pair
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut Osv, &mut Cx<'_>) -> R) -> R {
        call(&mut self.osv, &mut Cx::new(Time(self.now), &mut self.kicks))
    }

    fn wake(&mut self, task: usize, from: usize, new: bool) {
        if !core::mem::take(&mut self.asleep[task]) {
            return;
        }
        let prev = CpuId(self.model.threads[task].cpu as u16);
        if new {
            self.model.threads[task].cpu = from;
        }
        let why = if new { Enqueue::New } else { Enqueue::Wakeup { prev, sync: false } };
        let arrival = Arrival { from: Some(CpuId(from as u16)), ..Arrival::because(why) };
        self.call(|osv, cx| osv.enqueue(cx, TaskId(task as u32), arrival));
        self.model.wake(task, from);
    }

    fn off(&mut self, cpu: usize, why: Off) -> Result<(), TestCaseError> {
        let Some((task, since)) = self.runs[cpu] else { return Ok(()) };
        let (id, ran) = (TaskId(task as u32), Span(self.now - since));
        self.call(|osv, cx| osv.put_prev(cx, CpuId(cpu as u16), id, ran, why));
        if why.runnable() {
            return self.pick(cpu, Some(why == Off::Yielded));
        }
        self.asleep[task] = true;
        self.model.leave(cpu, self.now);
        self.pick(cpu, None)
    }

    fn pick(&mut self, cpu: usize, put: Option<bool>) -> Result<(), TestCaseError> {
        self.kicks.remove(CpuId(cpu as u16));
        let pick = self.call(|osv, cx| osv.pick_next(cx, CpuId(cpu as u16)));
        let expected = self.model.pick(cpu, self.now, put);
        if self.model.close {
            return Err(TestCaseError::reject("too close for floats"));
        }
        self.picks += 1;
        let task = |pick: &Pick| pick.task.index();
        prop_assert_eq!(pick.as_ref().map(task), expected.map(|(thread, _)| thread));
        self.runs[cpu] = expected.map(|(thread, _)| (thread, self.now));
        if let (Some(Pick { slice, .. }), Some((_, time))) = (pick, expected) {
            let same = match time.is_infinite() {
                true => slice == Span::MAX,
                false => (slice.0 as f64 - time).abs() < 3.0,
            };
            prop_assert!(same, "{slice} instead of {time} ns");
            self.slices[cpu] = slice;
        }
        Ok(())
    }

    fn answer_kicks(&mut self) -> Result<(), TestCaseError> {
        while let Some(cpu) = self.kicks.take_lowest() {
            match self.runs[cpu.index()] {
                Some(_) => self.off(cpu.index(), Off::Preempted)?,
                None => self.pick(cpu.index(), None)?,
            }
        }
        Ok(())
    }

    /// Lets up to `span` pass, or until a slice ends, which ends it.
    fn pass(&mut self, span: u64) -> Result<(), TestCaseError> {
        let until = self.now + span;
        loop {
            let ends = (0..CPUS).filter_map(|cpu| {
                let (_, since) = self.runs[cpu]?;
                Some((since.saturating_add(self.slices[cpu].0), cpu))
            });
            match ends.min().filter(|&(end, _)| end <= until) {
                Some((end, cpu)) => {
                    self.now = end;
                    self.off(cpu, Off::Expired)?;
                    self.answer_kicks()?;
                }
                None => break,
            }
        }
        self.now = until;
        Ok(())
    }

    fn repin(&mut self, task: usize, to: usize) {
        if !self.asleep[task] || self.model.threads[task].cpu == to {
            return;
        }
        let affinity = CpuSet::of([CpuId(to as u16)]);
        let weight = (1024.0 / self.model.threads[task].p).round() as u32;
        let params = TaskParams { affinity, weight, ..TaskParams::default() };
        self.call(|osv, cx| osv.update(cx, TaskId(task as u32), &params));
        // It is moved when it wakes.
        self.model.move_sleeper(task, to, self.now);
        self.asleep[task] = false;
        let prev = CpuId(1 - to as u16);
        let arrival = Arrival::because(Enqueue::Wakeup { prev, sync: false });
        self.call(|osv, cx| osv.enqueue(cx, TaskId(task as u32), arrival));
        self.model.wake(task, 1 - to);
    }
}

proptest! {
    #[test]
    fn the_policy_decides_as_floats_do(
        nices in prop::collection::vec(-20..20i8, TASKS),
        steps in prop::collection::vec(
            (0..8u8, 0..TASKS, 0..CPUS, 1..400_000_000u64, 0..3u32),
            1..120,
        ),
    ) {
        let weights: Vec<u32> = nices.iter().map(|&nice| TaskParams::nice(nice).weight).collect();
        let mut pair = Pair::new(&weights);
        (0..TASKS).for_each(|task| pair.wake(task, task % CPUS, true));
        pair.answer_kicks()?;
        for (step, task, cpu, span, finer) in steps {
            // From microseconds to seconds.
            pair.pass(span / 100u64.pow(finer) + 1)?;
            match step {
                0..3 => pair.wake(task, cpu, false),
                3 => pair.off(cpu, Off::Preempted)?,
                4 => pair.off(cpu, Off::Yielded)?,
                5 | 6 => pair.off(cpu, Off::Blocked)?,
                _ => pair.repin(task, cpu),
            }
            pair.answer_kicks()?;
        }
        prop_assert!(pair.picks > 0);
    }
}
