//! Values worked out by hand from the rules, a naive model on one CPU, and what holds after every
//! call.

mod model;
mod rules;
mod sound;

use alloc::vec::Vec;

use super::{Credit2, Credit2Params};
use crate::drive;
use anysched_core::params::{DomainParams, Params};
use anysched_core::registry::Policy;
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, Enqueue, Machine, Off, Scheduler, Span, TaskId,
    TaskParams, Time,
};

const fn us(n: u64) -> Span {
    Span::from_us(n)
}

const fn ms(n: u64) -> Span {
    Span::from_ms(n)
}

/// A policy and the time it believes in.
struct Rig {
    policy: Credit2,
    now: Time,
    kicks: CpuMask,
}

impl Rig {
    fn new(machine: &str, settings: &[(&str, &str)]) -> Rig {
        let mut params = Credit2Params::default();
        for (name, value) in settings {
            params.set(name, value).unwrap();
        }
        let machine = Machine::parse(machine).unwrap();
        let policy = Credit2::build(&machine, machine.cpus(), &params).unwrap();
        Rig { policy, now: Time::ZERO, kicks: CpuMask::EMPTY }
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut Credit2, &mut Cx<'_>) -> R) -> R {
        call(&mut self.policy, &mut Cx::new(self.now, &mut self.kicks))
    }

    fn set_domain(&mut self, domain: u16, weight: u32, cap_percent: u32) {
        let params = DomainParams { weight, cap_percent };
        self.call(|policy, cx| policy.set_domain(cx, DomainId(domain), &params));
    }

    fn attach(&mut self, task: u32, params: &TaskParams) {
        self.call(|policy, cx| policy.attach(cx, TaskId(task), params));
    }

    fn wake(&mut self, task: u32) {
        let arrival = Arrival::because(Enqueue::Wakeup { prev: CpuId(0), sync: false });
        self.call(|policy, cx| policy.enqueue(cx, TaskId(task), arrival));
    }

    /// Attaches `task` to `domain` and makes it ready.
    fn create(&mut self, task: u32, domain: u16) {
        self.attach(task, &of(domain));
        self.wake(task);
    }

    fn pick(&mut self, cpu: u16) -> Option<(u32, Span)> {
        let pick = self.call(|policy, cx| policy.pick_next(cx, CpuId(cpu)));
        pick.map(|pick| (pick.task.0, pick.slice))
    }

    /// Takes `task` off, which has run for `ran` since it was last charged; no time passes here.
    fn put(&mut self, cpu: u16, task: u32, ran: Span, why: Off) {
        self.call(|policy, cx| policy.put_prev(cx, CpuId(cpu), TaskId(task), ran, why));
    }

    /// Lets time pass in which CPU 0 runs `task`, and takes it off.
    fn run(&mut self, task: u32, ran: Span, why: Off) {
        self.now += ran;
        self.put(0, task, ran, why);
    }

    fn timer(&mut self) {
        self.now = self.policy.next_timer().unwrap();
        self.call(|policy, cx| policy.timer(cx));
    }

    fn set_online(&mut self, cpu: u16, online: bool) {
        self.call(|policy, cx| policy.set_online(cx, CpuId(cpu), online));
    }

    fn kicked(&mut self) -> Vec<u16> {
        drive::kicked(&mut self.kicks)
    }

    fn probe(&self, task: u32, name: &str) -> i64 {
        drive::probe(&self.policy, task, name)
    }

    /// Credit in us.
    fn credit(&self, task: u32) -> i64 {
        self.probe(task, "credit_ns") / 1_000
    }

    fn set_credit(&mut self, task: u32, us: i64) {
        self.policy.tasks[TaskId(task)].credit = us * 1_000;
    }

    /// Lets slices of CPU 0 end until `until`; who ran and for how many us.
    fn slices(&mut self, until: Time) -> Vec<(u32, u64)> {
        let mut slices: Vec<(u32, u64)> = Vec::new();
        while self.now < until {
            let (task, slice) = self.pick(0).expect("a vCPU is ready");
            match slices.last_mut() {
                Some((last, ran)) if *last == task => *ran += slice.0 / 1_000,
                _ => slices.push((task, slice.0 / 1_000)),
            }
            self.run(task, slice, Off::Expired);
        }
        slices
    }
}

fn of(domain: u16) -> TaskParams {
    TaskParams { domain: DomainId(domain), ..TaskParams::default() }
}

fn only(cpus: &[u16]) -> TaskParams {
    let affinity = CpuSet::of(cpus.iter().map(|&cpu| CpuId(cpu)));
    TaskParams { affinity, ..TaskParams::default() }
}
