//! Xen's sequences, with a policy whose decisions are known, under `Checked`.

use std::boxed::Box;
use std::vec::Vec;

use anysched_core::checked::Rules;
use anysched_core::{
    Checked, CpuId, CpuSet, DomainParams, Machine, Scheduler, TaskId, TaskParams, Time,
};

use crate::{Adapter, State};

struct Xen {
    adapter: Adapter<Checked<Box<dyn Scheduler>>>,
    now: u64,
    paused: Vec<TaskId>,
}

impl Xen {
    fn new(cpus: usize) -> Xen {
        let machine = Machine::flat(cpus).unwrap();
        let info = anysched_policies::policy("fcfs").unwrap();
        let policy = (info.build)(&machine, &[("layout", "global")]);
        let policy = policy.or_else(|_| (info.build)(&machine, &[])).unwrap();
        let policy = Checked::new(policy, &machine, Rules::default());
        Xen { adapter: Adapter::new(policy, &machine), now: 0, paused: Vec::new() }
    }

    fn attach(&mut self, domain: u32) -> TaskId {
        self.adapter.attach(Time(self.now), TaskParams::default(), domain)
    }

    fn wake(&mut self, vcpu: TaskId) {
        self.adapter.wake(Time(self.now), vcpu, false, None);
    }

    fn schedule(&mut self, cpu: u16, is_runnable: bool) -> Option<u32> {
        self.now += 1_000;
        let (now, paused) = (Time(self.now), &self.paused);
        let can_run = |id: TaskId| !paused.contains(&id);
        let pick = self.adapter.schedule(now, CpuId(cpu), is_runnable, false, can_run);
        pick.map(|pick| pick.task.0)
    }

    fn saved(&mut self, vcpu: TaskId, is_runnable: bool) {
        self.adapter.saved(Time(self.now), vcpu, is_runnable);
    }
}

#[test]
fn what_blocks_is_woken_and_runs_again() {
    let mut xen = Xen::new(1);
    let vcpu = xen.attach(7);
    assert_eq!(xen.adapter.state(vcpu), State::New);
    xen.wake(vcpu);
    xen.wake(vcpu);
    assert_eq!(xen.schedule(0, false), Some(0));
    assert_eq!(xen.adapter.sleep(Time(xen.now), vcpu), Some(CpuId(0)), "the pCPU has to look");
    assert_eq!(xen.schedule(0, false), None);
    xen.saved(vcpu, false);
    assert_eq!(xen.adapter.state(vcpu), State::Blocked);
    xen.wake(vcpu);
    assert_eq!(xen.schedule(0, false), Some(0));
    let counts = xen.adapter.counts();
    assert_eq!((counts.wakeups, counts.dispatches, counts.switches), (1, 2, 1));
}

/// Its registers are still on another pCPU: nobody may have it before they are saved.
#[test]
fn what_is_woken_too_early_waits_for_its_registers() {
    let mut xen = Xen::new(2);
    let vcpu = xen.attach(1);
    xen.wake(vcpu);
    assert_eq!(xen.schedule(0, false), Some(0));
    assert_eq!(xen.schedule(0, false), None);
    xen.adapter.wake(Time(xen.now), vcpu, true, None);
    assert_eq!(xen.adapter.state(vcpu), State::Woken);
    assert_eq!(xen.schedule(1, false), None);
    xen.saved(vcpu, true);
    assert_eq!(xen.schedule(1, false), Some(0));
    assert_eq!(xen.adapter.counts().migrations, 1);
}

#[test]
fn what_is_replaced_comes_back_when_it_is_saved() {
    let mut xen = Xen::new(2);
    let (first, second) = (xen.attach(1), xen.attach(2));
    xen.wake(first);
    assert_eq!(xen.schedule(0, false), Some(0));
    xen.wake(second);
    xen.adapter.yields(first);
    assert_eq!(xen.schedule(0, true), Some(1));
    assert_eq!(xen.adapter.state(first), State::Out);
    assert_eq!(xen.schedule(1, false), None);
    xen.saved(first, true);
    assert_eq!(xen.schedule(1, false), Some(0));
    // Paused while it was out, another is only saved.
    xen.adapter.yields(second);
    let third = xen.attach(2);
    xen.wake(third);
    assert_eq!(xen.schedule(0, true), Some(2));
    assert_eq!(xen.adapter.sleep(Time(xen.now), second), None);
    xen.saved(second, false);
    assert_eq!(xen.adapter.state(second), State::Blocked);
}

#[test]
fn what_is_paused_is_passed_over() {
    let mut xen = Xen::new(1);
    let (first, second) = (xen.attach(1), xen.attach(2));
    xen.wake(first);
    xen.wake(second);
    xen.paused.push(first);
    assert_eq!(xen.schedule(0, false), Some(1));
    assert_eq!(xen.adapter.state(first), State::Blocked);
    assert_eq!(xen.adapter.counts().undone, 1);
    // Also when it has just been put back.
    xen.paused.push(second);
    assert_eq!(xen.schedule(0, true), None);
    assert_eq!(xen.adapter.state(second), State::Blocked);
}

#[test]
fn vcpus_and_domains_that_go_give_back_their_numbers() {
    let mut xen = Xen::new(1);
    for domain in 1..100_000 {
        let share = DomainParams { weight: 256, cap_percent: 0 };
        xen.adapter.set_domain(Time(xen.now), domain, &share);
        let vcpu = xen.attach(domain);
        assert_eq!(vcpu, TaskId(0));
        match domain % 3 {
            0 => {}
            1 => xen.wake(vcpu),
            _ => {
                xen.wake(vcpu);
                assert_eq!(xen.schedule(0, false), Some(0));
            }
        }
        let only = TaskParams { affinity: CpuSet::of([CpuId(0)]), ..TaskParams::default() };
        xen.adapter.update(Time(xen.now), vcpu, only, domain);
        xen.adapter.detach(Time(xen.now), vcpu);
        xen.adapter.disband(domain);
        assert_eq!(xen.adapter.runs(CpuId(0)), None);
    }
}
