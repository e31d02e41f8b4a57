//! OSv's rules as it computes them, in floats: c, R and head starts changed step by step.
//!
//! On two CPUs without balancing. A CPU must pick as soon as its task has left, and kicks must be
//! answered at once; only sleeping tasks may be bound to another CPU.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams,
};

const TAU: f64 = 200e6;
const THYST: f64 = 5e6;
const PENALTY: f64 = 10e3;
/// How many CPUs there are.
pub const CPUS: usize = 2;

#[derive(Clone)]
struct Thread {
    p: f64,
    r: f64,
    cpu: usize,
    allowed: CpuSet,
}

#[derive(Clone)]
struct Cpu {
    c: f64,
    since: u64,
    current: Option<usize>,
    /// The current thread has gone; the head start has been taken back.
    left: bool,
    /// The current thread could go on: whether it yields.
    put: Option<bool>,
    queue: Vec<usize>,
    incoming: Vec<(usize, usize)>,
}

/// See the [module documentation](self).
pub struct Osv {
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    /// A decision was too close for floats.
    close: bool,
}

impl Default for Osv {
    fn default() -> Osv {
        Osv::new()
    }
}

impl Osv {
    /// With no thread yet.
    pub fn new() -> Osv {
        let cpu = Cpu {
            // The idle thread has a head start too.
            c: (-THYST / TAU).exp(),
            since: 0,
            current: None,
            left: false,
            put: None,
            queue: Vec::new(),
            incoming: Vec::new(),
        };
        Osv { cpus: vec![cpu; CPUS], threads: Vec::new(), close: false }
    }

    /// The idle thread does not count as a thread here: only c changes.
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

    fn queue(&mut self, cpu: usize, thread: usize) {
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
        let Thread { cpu: from, r, .. } = self.threads[thread].clone();
        let here = self.cpus[from].c * ((now - self.cpus[from].since) as f64 / TAU).exp();
        self.threads[thread].r = r / here * self.cpus[to].c;
        self.threads[thread].cpu = to;
    }

    fn take_in(&mut self, cpu: usize) {
        let mut incoming = std::mem::take(&mut self.cpus[cpu].incoming);
        incoming.sort_by_key(|&(from, _)| from);
        incoming.into_iter().for_each(|(_, thread)| self.queue(cpu, thread));
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
        let Thread { p, r, .. } = self.threads[thread].clone();
        TAU * ((self.threads[first].r - r) / (p * self.cpus[cpu].c)).ln_1p() * 1.01
    }

    /// `put`: the current thread could go on, and whether it yields.
    fn choose(&mut self, cpu: usize, now: u64, put: Option<bool>) -> Option<(usize, f64)> {
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
        if !std::mem::take(&mut self.cpus[cpu].left) {
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
            self.queue(cpu, old);
        }
        let next = self.cpus[cpu].queue.remove(0);
        if let (Some(old), true) = (old, yields) {
            self.queue(cpu, old);
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

impl Scheduler for Osv {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let p = 1024.0 / f64::from(params.weight);
        let thread = Thread { p, r: 0.0, cpu: 0, allowed: params.affinity.clone() };
        self.threads.resize(self.threads.len().max(task.index() + 1), thread.clone());
        self.threads[task.index()] = thread;
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.threads[task.index()].allowed = params.affinity.clone();
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let thread = task.index();
        let prev = self.threads[thread].cpu;
        let from = arrival.from.map_or(prev, CpuId::index);
        if arrival.why == Enqueue::New {
            self.threads[thread].cpu = from;
        } else if !self.threads[thread].allowed.contains(CpuId(prev as u16)) {
            self.move_sleeper(thread, 1 - prev, cx.now.0);
        }
        self.wake(thread, from);
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let put = self.cpus[cpu.index()].put.take();
        let (thread, time) = self.choose(cpu.index(), cx.now.0, put)?;
        let slice = if time.is_infinite() { Span::MAX } else { Span(time.max(1.0) as u64) };
        Some(Pick { task: TaskId(thread as u32), slice })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, _: TaskId, _: Span, why: Off) {
        if why.runnable() {
            self.cpus[cpu.index()].put = Some(why == Off::Yielded);
        } else {
            self.leave(cpu.index(), cx.now.0);
        }
    }
}

impl Oracle for Osv {
    const KICKS: bool = false;
    const TIMERS: bool = false;

    fn is_same_slice(&self, policy: Span, own: Span) -> bool {
        policy == own || own != Span::MAX && policy.0.abs_diff(own.0) <= 3
    }

    fn is_unsure(&self) -> bool {
        self.close
    }
}
