//! Xen's sequences, with a policy whose decisions are known, under `Checked`.

use std::boxed::Box;
use std::vec::Vec;

use anysched_core::checked::Rules;
use anysched_core::{
    Checked, CpuId, CpuSet, DomainParams, Machine, Scheduler, TaskId, TaskParams, Time,
};

use crate::{Adapter, Fitness, State};

struct Xen {
    adapter: Adapter<Checked<Box<dyn Scheduler>>>,
    now: u64,
    paused: Vec<TaskId>,
    saving: Vec<TaskId>,
}

impl Xen {
    fn new(cpus: usize) -> Xen {
        let machine = Machine::flat(cpus).unwrap();
        let info = anysched_policies::policy("fcfs").unwrap();
        let policy = (info.build)(&machine, &[("layout", "global")]);
        let policy = policy.or_else(|_| (info.build)(&machine, &[])).unwrap();
        let policy = Checked::new(policy, &machine, Rules::default());
        Xen {
            adapter: Adapter::new(policy, &machine),
            now: 0,
            paused: Vec::new(),
            saving: Vec::new(),
        }
    }

    fn attach(&mut self, domain: u32) -> TaskId {
        self.adapter.attach(Time(self.now), TaskParams::default(), domain)
    }

    fn wake(&mut self, vcpu: TaskId) {
        self.adapter.wake(Time(self.now), vcpu, false, None);
    }

    fn schedule(&mut self, cpu: u16, is_runnable: bool) -> Option<u32> {
        self.now += 1_000;
        let now = Time(self.now);
        let before = self.adapter.runs(CpuId(cpu));
        let fitness = |id: TaskId| match id {
            id if self.paused.contains(&id) => Fitness::Paused,
            id if self.saving.contains(&id) => Fitness::Saving,
            _ => Fitness::Runs,
        };
        let pick = self.adapter.schedule(now, CpuId(cpu), is_runnable, false, fitness);
        let picked = pick.map(|pick| pick.task);
        self.saving.extend(before.filter(|before| picked != Some(*before)));
        picked.map(|picked| picked.0)
    }

    fn saved(&mut self, vcpu: TaskId, is_runnable: bool) {
        self.saving.retain(|saving| *saving != vcpu);
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
fn what_is_replaced_waits_for_its_turn_and_its_registers() {
    let mut xen = Xen::new(2);
    let (first, second) = (xen.attach(1), xen.attach(2));
    xen.wake(first);
    assert_eq!(xen.schedule(0, false), Some(0));
    xen.wake(second);
    xen.adapter.yields(first);
    assert_eq!(xen.schedule(0, true), Some(1));
    assert_eq!(xen.adapter.state(first), State::Ready);
    // Another pCPU picks it too early, and then in time.
    assert_eq!(xen.schedule(1, false), None);
    assert_eq!((xen.adapter.state(first), xen.adapter.counts().undone), (State::Out, 1));
    xen.saved(first, true);
    assert_eq!(xen.schedule(1, false), Some(0));
    // Nobody picks this one before.
    xen.adapter.yields(second);
    let third = xen.attach(2);
    xen.wake(third);
    assert_eq!(xen.schedule(0, true), Some(2));
    xen.saved(second, true);
    assert_eq!(xen.schedule(0, false), Some(1));
    assert_eq!(xen.adapter.counts().undone, 1);
}

#[test]
fn what_is_paused_before_its_registers_are_saved_does_not_come_back() {
    let mut xen = Xen::new(2);
    let vcpus: Vec<TaskId> = (0..3).map(|_| xen.attach(1)).collect();
    vcpus.iter().for_each(|vcpu| xen.wake(*vcpu));
    let replace = |xen: &mut Xen, vcpu: u32| {
        xen.adapter.yields(TaskId(vcpu));
        assert_eq!(xen.schedule(0, true), Some(vcpu + 1));
    };
    assert_eq!(xen.schedule(0, false), Some(0));
    replace(&mut xen, 0);
    assert_eq!(xen.adapter.sleep(Time(xen.now), vcpus[0]), None);
    xen.saved(vcpus[0], false);
    assert_eq!(xen.adapter.state(vcpus[0]), State::Blocked);
    // One that was picked too early.
    replace(&mut xen, 1);
    assert_eq!(xen.schedule(1, false), None);
    assert_eq!(xen.adapter.sleep(Time(xen.now), vcpus[1]), None);
    xen.saved(vcpus[1], false);
    assert_eq!(xen.adapter.state(vcpus[1]), State::Blocked);
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

/// Its last pCPU goes: it runs elsewhere, and where it was as soon as that is back.
#[test]
fn what_has_lost_its_pcpus_runs_anywhere() {
    let mut xen = Xen::new(2);
    let bound = TaskParams { affinity: CpuSet::of([CpuId(1)]), ..TaskParams::default() };
    let vcpu = xen.adapter.attach(Time(0), bound.clone(), 1);
    xen.wake(vcpu);
    assert_eq!(xen.schedule(0, false), None);
    xen.adapter.set_online(Time(xen.now), CpuId(1), false);
    assert_eq!(xen.schedule(0, false), Some(0));
    // Xen says so while the pCPU is away, too.
    xen.adapter.update(Time(xen.now), vcpu, bound, 1);
    assert_eq!(xen.schedule(0, true), Some(0));
    xen.adapter.set_online(Time(xen.now), CpuId(1), true);
    assert_eq!(xen.schedule(0, true), None);
    xen.saved(vcpu, true);
    assert_eq!(xen.schedule(1, false), Some(0));
}

/// Whatever made it ready, it waits from then, and no more once it runs, blocks or is paused.
#[test]
fn what_does_not_run_is_found() {
    let mut xen = Xen::new(1);
    let period = Some(anysched_core::Span(100_000));
    let due = TaskParams { period, ..TaskParams::default() };
    let (first, second) = (xen.attach(1), xen.adapter.attach(Time(0), due, 2));
    let found = |xen: &Xen, at| {
        let limit = anysched_core::Span(10_000);
        xen.adapter.starving(Time(at), limit).map(|(id, waited)| (id.0, waited.0))
    };
    xen.wake(first);
    assert_eq!((found(&xen, 10_000), found(&xen, 10_001)), (None, Some((0, 10_001))));
    assert_eq!(xen.schedule(0, false), Some(0));
    assert_eq!(found(&xen, 1_000_000), None);
    xen.wake(second);
    xen.adapter.yields(first);
    assert_eq!(xen.schedule(0, true), Some(1));
    assert_eq!(found(&xen, 12_001), Some((0, 10_001)), "it was put back at 2 us");
    assert_eq!(xen.adapter.sleep(Time(xen.now), first), None);
    // It has a period.
    let third = xen.attach(3);
    xen.wake(third);
    xen.adapter.yields(second);
    assert_eq!(xen.schedule(0, true), Some(2));
    assert_eq!((found(&xen, 213_000), found(&xen, 213_001)), (None, Some((1, 210_001))));
}
