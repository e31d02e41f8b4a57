//! Credit2 for vCPUs that never block, on one CPU: a list, fractions of credit, no trees.
//!
//! Each vCPU is in the domain of its number. The CPU must pick as soon as a turn has ended.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, Cx, DomainId, DomainParams, Off, Pick, Scheduler, Span, TaskId, TaskParams,
};

const MS: i64 = 1_000_000;

struct Vcpu {
    task: u32,
    weight: i64,
    credit: i64,
    residual: i64,
}

/// See the [module documentation](self).
#[derive(Default)]
pub struct Hogs {
    weights: Vec<i64>,
    /// In the order of the runqueue.
    waiting: Vec<Vcpu>,
    running: Option<Vcpu>,
    in_turn: i64,
    most: i64,
}

impl Hogs {
    fn running(&self) -> &Vcpu {
        self.running.as_ref().unwrap()
    }

    fn burn(&mut self, ran: i64) {
        let vcpu = self.running.as_mut().unwrap();
        let used = ran * self.most + vcpu.residual;
        vcpu.residual = used % vcpu.weight;
        vcpu.credit = (vcpu.credit - used / vcpu.weight).max(-10 * MS);
        self.in_turn += ran;
    }

    fn switch(&mut self) {
        let Some(first) = self.waiting.first() else { return };
        if self.in_turn < MS || first.credit <= self.running().credit {
            return;
        }
        let next = self.waiting.remove(0);
        let old = self.running.replace(next).unwrap();
        let at = self.waiting.iter().position(|other| old.credit > other.credit);
        self.waiting.insert(at.unwrap_or(self.waiting.len()), old);
        self.in_turn = 0;
    }

    fn refill(&mut self, displaced: Option<u32>) {
        let others = self.waiting.iter().filter(|vcpu| Some(vcpu.task) != displaced);
        let most = others.map(|vcpu| vcpu.credit).max();
        if most.max(Some(self.running().credit)) > Some(0) {
            return;
        }
        let by = if self.running().credit == -10 * MS { 20 * MS } else { 10 * MS };
        for vcpu in self.waiting.iter_mut().chain(&mut self.running) {
            vcpu.credit = (vcpu.credit + by).min(10 * MS + MS / 2);
        }
    }

    fn slice(&self) -> i64 {
        let rival = self.waiting.iter().map(|vcpu| vcpu.credit).max().unwrap_or(0).max(0);
        let vcpu = self.running();
        let time = (vcpu.credit - rival).max(0) * vcpu.weight / self.most;
        time.max(MS / 2).max(MS - self.in_turn).min(10 * MS)
    }
}

impl Scheduler for Hogs {
    fn attach(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}

    fn set_domain(&mut self, _: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        let domain = usize::from(domain.0);
        self.weights.resize(self.weights.len().max(domain + 1), 256);
        self.weights[domain] = i64::from(params.weight);
    }

    fn enqueue(&mut self, _: &mut Cx<'_>, task: TaskId, _: Arrival) {
        let weight = self.weights[task.index()];
        self.most = self.most.max(weight);
        self.waiting.push(Vcpu { task: task.0, weight, credit: 10 * MS, residual: 0 });
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn pick_next(&mut self, _: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        if self.running.is_none() {
            self.running = Some(self.waiting.remove(0));
        } else {
            let before = self.running().task;
            self.switch();
            self.refill((before != self.running().task).then_some(before));
        }
        let slice = Span(self.slice() as u64);
        Some(Pick { task: TaskId(self.running().task), slice })
    }

    fn put_prev(&mut self, _: &mut Cx<'_>, _: CpuId, _: TaskId, ran: Span, _: Off) {
        self.burn(ran.0 as i64);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let mut vcpus = self.waiting.iter().chain(&self.running);
        if let Some(vcpu) = vcpus.find(|vcpu| vcpu.task == task.0) {
            sink("credit_ns", vcpu.credit);
        }
    }
}

impl Oracle for Hogs {
    const KICKS: bool = false;
    const TIMERS: bool = false;
}
