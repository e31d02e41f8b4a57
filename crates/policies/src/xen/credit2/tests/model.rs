//! A plain model of one CPU: a list of vCPUs, fractions of credit, no trees.

use super::*;
use proptest::prelude::*;

const MS: i64 = 1_000_000;

struct Vcpu {
    task: u32,
    weight: i64,
    credit: i64,
    residual: i64,
}

/// The turns of vCPUs of these weights that never block, the first one picked first.
struct Plain {
    /// In the order of the runqueue.
    waiting: Vec<Vcpu>,
    running: Vcpu,
    in_turn: i64,
    most: i64,
}

impl Plain {
    fn new(weights: &[u32]) -> Plain {
        let vcpu = |(task, &weight): (u32, &u32)| Vcpu {
            task,
            weight: i64::from(weight),
            credit: 10 * MS,
            residual: 0,
        };
        let mut waiting: Vec<Vcpu> = (0..).zip(weights).map(vcpu).collect();
        let running = waiting.remove(0);
        let most = weights.iter().copied().max().unwrap_or(1);
        Plain { waiting, running, in_turn: 0, most: i64::from(most) }
    }

    fn burn(&mut self, ran: i64) {
        let vcpu = &mut self.running;
        let used = ran * self.most + vcpu.residual;
        vcpu.residual = used % vcpu.weight;
        vcpu.credit = (vcpu.credit - used / vcpu.weight).max(-10 * MS);
        self.in_turn += ran;
    }

    fn switch(&mut self) {
        let Some(first) = self.waiting.first() else { return };
        if self.in_turn < MS || first.credit <= self.running.credit {
            return;
        }
        let next = self.waiting.remove(0);
        let old = core::mem::replace(&mut self.running, next);
        let at = self.waiting.iter().position(|other| old.credit > other.credit);
        self.waiting.insert(at.unwrap_or(self.waiting.len()), old);
        self.in_turn = 0;
    }

    fn refill(&mut self, displaced: Option<u32>) {
        let others = self.waiting.iter().filter(|vcpu| Some(vcpu.task) != displaced);
        let most = others.map(|vcpu| vcpu.credit).max();
        if most.max(Some(self.running.credit)) > Some(0) {
            return;
        }
        let by = if self.running.credit == -10 * MS { 20 * MS } else { 10 * MS };
        for vcpu in self.waiting.iter_mut().chain([&mut self.running]) {
            vcpu.credit = (vcpu.credit + by).min(10 * MS + MS / 2);
        }
    }

    fn slice(&self) -> i64 {
        let rival = self.waiting.iter().map(|vcpu| vcpu.credit).max().unwrap_or(0).max(0);
        let vcpu = &self.running;
        let time = (vcpu.credit - rival).max(0) * vcpu.weight / self.most;
        time.max(MS / 2).max(MS - self.in_turn).min(10 * MS)
    }

    /// Ends a turn of `ran`; who goes on, and for how long.
    fn turn(&mut self, ran: i64) -> (u32, Span) {
        self.burn(ran);
        let before = self.running.task;
        self.switch();
        self.refill((before != self.running.task).then_some(before));
        (self.running.task, Span(self.slice() as u64))
    }
}

proptest! {
    #[test]
    fn hogs_take_turns_as_in_a_plain_model(
        weights in prop::collection::vec(1..1_000u32, 1..6),
        shares in prop::collection::vec(1..=100u64, 1..60),
    ) {
        let mut rig = Rig::new("1", &[]);
        for (task, &weight) in (0..).zip(&weights) {
            rig.set_domain(task as u16, weight, 0);
            rig.create(task, task as u16);
        }
        let mut plain = Plain::new(&weights);
        let mut turn = (0, Span(plain.slice() as u64));
        prop_assert_eq!(rig.pick(0), Some(turn));
        for share in shares {
            let ran = Span(turn.1.0 * share / 100);
            rig.run(turn.0, ran, Off::Preempted);
            turn = plain.turn(ran.0 as i64);
            prop_assert_eq!(rig.pick(0), Some(turn));
            for vcpu in plain.waiting.iter().chain([&plain.running]) {
                prop_assert_eq!(rig.probe(vcpu.task, "credit_ns"), vcpu.credit);
            }
        }
    }
}
