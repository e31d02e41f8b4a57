//! OSv's rules as it computes them, in floats: c, R and head starts changed step by step.
//!
//! A CPU must pick as soon as its task has left, and kicks must be answered at once; only sleeping
//! tasks may be bound to a CPU, a single one.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams, Time,
};

const TAU: f64 = 200e6;
const THYST: f64 = 5e6;
const PENALTY: f64 = 10e3;
/// Between two rounds of the balancers, in ns.
const PERIOD: u64 = 100_000_000;

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
    /// Where the balancer has sent the current thread.
    leaves_for: Option<usize>,
    queue: Vec<usize>,
    incoming: Vec<(usize, usize)>,
}

/// See the [module documentation](self).
pub struct Osv {
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    balances: bool,
    /// When the balancers last ran.
    balanced: u64,
    next_balance: u64,
    /// Threads that the balancers moved, and those of them that ran.
    moves: u64,
    moves_of_running: u64,
    /// A decision was too close for floats.
    close: bool,
}

impl Osv {
    /// On this many CPUs, with or without balancers.
    pub fn new(cpus: usize, balances: bool) -> Osv {
        let cpu = Cpu {
            // The idle thread has a head start too.
            c: (-THYST / TAU).exp(),
            since: 0,
            current: None,
            left: false,
            put: None,
            leaves_for: None,
            queue: Vec::new(),
            incoming: Vec::new(),
        };
        Osv {
            cpus: vec![cpu; cpus],
            threads: Vec::new(),
            balances: balances && cpus > 1,
            balanced: 0,
            next_balance: PERIOD,
            moves: 0,
            moves_of_running: 0,
            close: false,
        }
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
        // Only 0 is exact: threads of different CPUs with the same past become equal in floats and
        // differ in the last bits of more exact numbers, or the other way round.
        let is_near = |&other: &usize| {
            let other = threads[other].r;
            (other - r).abs() < 1e-10 * c && (other, r) != (0.0, 0.0)
        };
        let near = self.cpus[cpu].queue.iter().any(is_near);
        let at = self.cpus[cpu].queue.partition_point(|&other| threads[other].r <= r);
        self.close |= near;
        self.cpus[cpu].queue.insert(at, thread);
    }

    fn wake(&mut self, thread: usize, from: usize) {
        self.cpus[self.threads[thread].cpu].incoming.push((from, thread));
    }

    /// c of `cpu` at `now`, with the head start of what runs there.
    fn c_at(&self, cpu: usize, now: u64) -> f64 {
        let on = &self.cpus[cpu];
        let taken_back = if on.left { THYST } else { 0.0 };
        on.c * ((now.saturating_sub(on.since) as f64 - taken_back) / TAU).exp()
    }

    /// `thread`, which is on no CPU, belongs to `to` from now on.
    fn change_cpu(&mut self, thread: usize, to: usize, now: u64) {
        let Thread { cpu: from, r, .. } = self.threads[thread].clone();
        if from != to {
            // The other CPU's c is as of when that last rescheduled, by its balancer at the latest.
            let there = self.c_at(to, self.balanced);
            self.threads[thread].r = r / self.c_at(from, now) * there;
            self.threads[thread].cpu = to;
        }
    }

    fn load(&self, cpu: usize) -> usize {
        let on = &self.cpus[cpu];
        let expected = self.cpus.iter().filter(|other| other.leaves_for == Some(cpu)).count();
        match on.current {
            // The idle thread waits too.
            Some(_) => on.queue.len() + 1,
            None => on.queue.len() + on.incoming.len() + expected,
        }
    }

    fn balance(&mut self, cpu: usize, now: u64) {
        let Some(current) = self.cpus[cpu].current else { return };
        self.take_in(cpu);
        let to = (0..self.cpus.len()).min_by_key(|&other| self.load(other)).unwrap();
        // The displaced thread waits as well; one more than there are is not enough.
        if self.load(to) >= self.load(cpu) {
            return;
        }
        let may = |&thread: &usize| self.threads[thread].allowed.contains(CpuId(to as u16));
        let Thread { p, r, .. } = self.threads[current];
        // It has to give its head start back when the balancer displaces it.
        let r = r + p * (self.c_at(cpu, now) * (THYST / TAU).exp() - self.cpus[cpu].c);
        let last = self.cpus[cpu].queue.iter().copied().rev().find(may);
        let ahead = last.map_or(f64::NEG_INFINITY, |last| self.threads[last].r - r);
        self.close |= may(&current) && ahead.abs() < 1e-10 * self.cpus[cpu].c;
        match last {
            Some(last) if ahead > 0.0 || !may(&current) => {
                self.moves += 1;
                self.cpus[cpu].queue.retain(|&other| other != last);
                self.change_cpu(last, to, now);
                self.wake(last, cpu);
            }
            _ if may(&current) => {
                self.moves_of_running += 1;
                self.cpus[cpu].leaves_for = Some(to);
            }
            _ => {}
        }
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
            let allowed = |&cpu: &usize| self.threads[thread].allowed.contains(CpuId(cpu as u16));
            let to = (0..self.cpus.len()).find(allowed).unwrap();
            self.change_cpu(thread, to, cx.now.0);
            // The CPU where it was sends it on.
            return self.wake(thread, prev);
        }
        match arrival.why {
            Enqueue::Resumed { .. } => self.queue(prev, thread),
            _ => self.wake(thread, from),
        }
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        for on in &mut self.cpus {
            on.queue.retain(|&thread| thread != task.index());
            on.incoming.retain(|&(_, thread)| thread != task.index());
        }
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let put = self.cpus[cpu.index()].put.take();
        let (thread, time) = self.choose(cpu.index(), cx.now.0, put)?;
        let slice = if time.is_infinite() { Span::MAX } else { Span(time.max(1.0) as u64) };
        Some(Pick { task: TaskId(thread as u32), slice })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, _: Span, why: Off) {
        let leaves_for = self.cpus[cpu.index()].leaves_for.take().filter(|_| why.runnable());
        if why.runnable() && leaves_for.is_none() {
            self.cpus[cpu.index()].put = Some(why == Off::Yielded);
            return;
        }
        self.leave(cpu.index(), cx.now.0);
        if let Some(to) = leaves_for {
            self.change_cpu(task.index(), to, cx.now.0);
            self.wake(task.index(), cpu.index());
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.balances.then_some(Time(self.next_balance))
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.balanced = cx.now.0;
        self.next_balance += PERIOD;
        (0..self.cpus.len()).for_each(|cpu| self.balance(cpu, cx.now.0));
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("moves", self.moves);
        sink("moves of running", self.moves_of_running);
    }
}

impl Oracle for Osv {
    const KICKS: bool = false;

    fn is_same_slice(&self, policy: Span, own: Span) -> bool {
        policy == own || own != Span::MAX && policy.0.abs_diff(own.0) <= 3
    }

    fn is_unsure(&self) -> bool {
        self.close
    }
}
