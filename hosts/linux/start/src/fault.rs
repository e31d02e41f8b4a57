//! A policy that goes wrong when it is told to, for tests of what becomes of the machine.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use anysched_core::{Arrival, DomainId, DomainParams};
use anysched_core::{CpuId, Cx, Off, Pick, Scheduler, Span, TaskId, TaskParams, Time};

/// How it goes wrong.
#[derive(Clone, Copy)]
enum Kind {
    /// Panics.
    Panic,
    /// Picks nothing.
    Idle,
    /// Does not return.
    Loop,
    /// Picks tasks for no time at all.
    Contract,
    /// Allocates until there is no memory.
    Memory,
}

/// A policy that goes wrong from a pick on.
pub struct Faulty {
    policy: Box<dyn Scheduler>,
    kind: Kind,
    left: u64,
}

impl Faulty {
    /// Goes wrong as `kind` says, at pick `at`.
    ///
    /// Errors: there is no such kind.
    pub fn new(policy: Box<dyn Scheduler>, kind: &str, at: u64) -> Result<Faulty, String> {
        let kind = match kind {
            "panic" => Kind::Panic,
            "idle" => Kind::Idle,
            "loop" => Kind::Loop,
            "contract" => Kind::Contract,
            "memory" => Kind::Memory,
            _ => {
                return Err(format!(
                    "there is no fault \"{kind}\", but panic, idle, loop, contract, memory"
                ));
            }
        };
        Ok(Faulty { policy, kind, left: at })
    }

    fn go_wrong(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        match self.kind {
            Kind::Panic => panic!("asked to panic"),
            Kind::Idle => None,
            // With the hint for spinning, time of QEMU that counts instructions would all but
            // stand.
            Kind::Loop => loop {
                core::hint::black_box(());
            },
            Kind::Contract => {
                let pick = self.policy.pick_next(cx, cpu)?;
                Some(Pick { slice: Span::ZERO, ..pick })
            }
            Kind::Memory => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(Vec::with_capacity(1 << 16));
                }
            }
        }
    }
}

impl Scheduler for Faulty {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.policy.attach(cx, task, params);
    }
    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.policy.detach(cx, task);
    }
    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.policy.update(cx, task, params);
    }
    fn set_domain(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        self.policy.set_domain(cx, domain, params);
    }
    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.policy.set_online(cx, cpu, online);
    }
    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.policy.enqueue(cx, task, arrival);
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.policy.dequeue(cx, task);
    }
    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return self.go_wrong(cx, cpu),
        }
        self.policy.pick_next(cx, cpu)
    }
    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.policy.put_prev(cx, cpu, task, ran, why);
    }
    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        self.policy.tick(cx, cpu, task, ran);
    }
    fn tick_period(&self) -> Option<Span> {
        self.policy.tick_period()
    }
    fn has_timers(&self) -> bool {
        self.policy.has_timers()
    }
    fn next_timer(&self) -> Option<Time> {
        self.policy.next_timer()
    }
    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.policy.timer(cx);
    }
}
