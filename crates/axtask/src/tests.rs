//! axtask's sequences, with a policy whose decisions are known, under `Checked`.

use std::boxed::Box;
use std::vec::Vec;

use anysched_core::checked::Rules;
use anysched_core::{Checked, CpuId, Machine, Scheduler, Span, TaskId, TaskParams, Time};

use crate::{Adapter, Heeded, OneCpu, Picked};

const HERE: CpuId = CpuId(0);
const THERE: CpuId = CpuId(1);

struct Axtask {
    adapter: Adapter<Checked<Box<dyn Scheduler>>>,
    now: u64,
}

impl Axtask {
    /// Two CPUs and one queue, first come, first served.
    fn new() -> Axtask {
        let machine = Machine::flat(2).unwrap();
        let info = anysched_policies::policy("fcfs").unwrap();
        let policy = (info.build)(&machine, &[("layout", "global")]).unwrap();
        let policy = Checked::new(policy, &machine, Rules::default());
        Axtask { adapter: Adapter::new(policy, &machine), now: 1 }
    }

    fn enter(&mut self, cpu: CpuId) -> &mut Adapter<Checked<Box<dyn Scheduler>>> {
        self.now += 1_000;
        self.adapter.enter(Time(self.now), cpu);
        &mut self.adapter
    }

    fn start(&mut self, cpu: CpuId) -> TaskId {
        let adapter = self.enter(cpu);
        let task = adapter.attach(cpu, &TaskParams::default());
        adapter.ready(cpu, task, false, None);
        task
    }

    fn pick(&mut self, cpu: CpuId, exits: bool) -> Picked {
        let adapter = self.enter(cpu);
        let stopped = adapter.stop(cpu, exits);
        adapter.look(cpu);
        let picked = adapter.pick(cpu, stopped, true);
        if picked.pick.is_none() {
            adapter.rest(cpu, true);
        }
        picked
    }

    fn kicks(&mut self, here: CpuId, in_interrupt: bool) -> Vec<CpuId> {
        core::iter::from_fn(|| self.adapter.take_kick(here, in_interrupt)).collect()
    }
}

fn task(picked: Picked) -> Option<TaskId> {
    picked.pick.map(|pick| pick.task)
}

#[test]
fn what_stays_ready_is_hidden_until_its_cpu_has_left_it() {
    let mut axtask = Axtask::new();
    let [first, second] = [(); 2].map(|()| axtask.start(HERE));
    assert_eq!(task(axtask.pick(HERE, false)), Some(first));
    assert!(axtask.enter(HERE).put(HERE, first, false));
    let picked = axtask.pick(HERE, false);
    assert_eq!(task(picked), Some(second));
    assert!(picked.interrupts && picked.switches);
    assert_eq!(task(axtask.pick(THERE, false)), None, "the other CPU is on its stack still");
    assert!(!axtask.adapter.take(first));
    axtask.kicks(HERE, false);
    axtask.enter(HERE);
    assert_eq!(axtask.kicks(HERE, true), [THERE]);
    assert_eq!(task(axtask.pick(THERE, false)), Some(first));
}

#[test]
fn what_goes_on_is_not_left() {
    let mut axtask = Axtask::new();
    let only = axtask.start(HERE);
    assert_eq!(task(axtask.pick(HERE, false)), Some(only));
    assert!(axtask.enter(HERE).put(HERE, only, true));
    let picked = axtask.pick(HERE, false);
    assert_eq!(task(picked), Some(only));
    assert!(!picked.interrupts && !picked.switches);
}

#[test]
fn what_blocks_comes_back_when_it_is_woken() {
    let mut axtask = Axtask::new();
    let only = axtask.start(HERE);
    axtask.pick(HERE, false);
    let stopped = axtask.enter(HERE).stop(HERE, false);
    assert_eq!(stopped.ran, Some((only, Span(1_000))));
    assert!(!stopped.stays());
    assert_eq!(task(axtask.adapter.pick(HERE, stopped, true)), None);
    assert!(!axtask.adapter.take(only), "it is not ready");
    // It is another one that is put back where it does not run.
    assert!(!axtask.enter(THERE).put(THERE, only, false));
    axtask.adapter.ready(THERE, only, true, None);
    assert!(axtask.adapter.take(only));
    axtask.adapter.ready(THERE, only, true, None);
    assert_eq!(task(axtask.pick(THERE, false)), Some(only));
}

#[test]
fn the_kernels_first_task_becomes_known_when_it_stops() {
    let mut axtask = Axtask::new();
    let other = axtask.start(HERE);
    let first = axtask.enter(HERE).attach(HERE, &TaskParams::default());
    axtask.adapter.put_first(HERE, first);
    let picked = axtask.pick(HERE, false);
    assert_eq!((task(picked), picked.interrupts), (Some(other), true));
    axtask.enter(HERE);
    assert_eq!(task(axtask.pick(THERE, false)), Some(first));
}

#[test]
fn numbers_of_tasks_that_are_gone_are_given_again() {
    let mut axtask = Axtask::new();
    let old = axtask.start(HERE);
    axtask.pick(HERE, false);
    assert_eq!(task(axtask.pick(HERE, true)), None);
    axtask.enter(HERE).detach(old);
    assert_eq!(axtask.start(THERE), old);
}

#[test]
fn a_cpu_that_halts_is_told_once() {
    let mut axtask = Axtask::new();
    axtask.pick(HERE, false);
    axtask.pick(THERE, false);
    axtask.kicks(HERE, false);
    axtask.start(HERE);
    let kicked = axtask.kicks(HERE, true);
    let told = axtask.cpu_that_is_told();
    assert!(axtask.adapter.halts_in_vain(told), "{kicked:?}");
    assert_eq!(axtask.kicks(HERE, true), []);
}

impl Axtask {
    fn cpu_that_is_told(&self) -> CpuId {
        let told = [HERE, THERE].into_iter().find(|&cpu| self.adapter.halts_in_vain(cpu));
        told.expect("one of them is to pick")
    }
}

/// The only CPU, under `rr` with slices of 10 ms, at a time that tests set.
fn only_cpu() -> OneCpu<Checked<Box<dyn Scheduler>>> {
    let machine = Machine::flat(1).unwrap();
    let info = anysched_policies::policy("rr").unwrap();
    let policy = (info.build)(&machine, &[("quantum", "10ms")]).unwrap();
    OneCpu::new(Checked::new(policy, &machine, Rules::default()), &machine)
}

/// So many microseconds after boot.
fn us(time: u64) -> Time {
    Time(time * 1_000)
}

/// Two tasks that have become ready, of which the first has been picked.
fn first_of_two() -> (OneCpu<Checked<Box<dyn Scheduler>>>, [TaskId; 2]) {
    let mut cpu = only_cpu();
    let tasks = [(); 2].map(|()| {
        let task = cpu.attach(us(1), &TaskParams::default());
        cpu.ready(us(1), task, true, false, None);
        task
    });
    assert_eq!(cpu.stop(us(1), false).ran, None);
    assert!(!cpu.look(us(1)));
    assert_eq!(task(cpu.pick(us(1))), Some(tasks[0]));
    (cpu, tasks)
}

#[test]
fn a_yield_is_one_call_unless_there_is_more_to_look_at() {
    let (mut cpu, [first, second]) = first_of_two();
    cpu.put(false);
    let (ran, picked) = cpu.yield_and_pick(us(4)).unwrap();
    assert_eq!((ran, task(picked), picked.switches), (Span::from_us(3), Some(second), true));
    cpu.put(false);
    cpu.notice();
    assert!(cpu.yield_and_pick(us(5)).is_none());
    let stopped = cpu.stop(us(5), false);
    assert_eq!(stopped.ran, Some((second, Span::from_us(1))));
    assert!(stopped.stays());
    cpu.look(us(5));
    assert_eq!(task(cpu.pick(us(5))), Some(first));
}

#[test]
fn a_slice_ends_when_it_is_due() {
    let (mut cpu, [first, second]) = first_of_two();
    assert_eq!(cpu.due(), us(10_001));
    assert!(!cpu.tick(us(10_000), true).resched);
    assert!(cpu.tick(us(10_001), true).resched);
    cpu.put(true);
    assert!(cpu.yield_and_pick(us(10_001)).is_none(), "it does not yield");
    assert_eq!(cpu.stop(us(10_001), false).ran, Some((first, Span::from_ms(10))));
    cpu.look(us(10_001));
    assert_eq!(task(cpu.pick(us(10_001))), Some(second));
}

#[test]
fn what_another_task_runs_keeps_no_task_of_the_policy_waiting() {
    let mut cpu = only_cpu();
    let task = cpu.attach(us(1), &TaskParams::default());
    cpu.ready(us(1), task, true, true, None);
    assert!(cpu.tick(us(2), false).resched);
}

#[test]
fn the_only_cpu_is_woken_when_it_halts_or_is_about_to() {
    let mut cpu = only_cpu();
    cpu.stop(us(1), false);
    cpu.look(us(1));
    assert_eq!(task(cpu.pick(us(1))), None);
    cpu.rest(true);
    assert!(cpu.is_idle() && !cpu.halts_in_vain());
    let only = cpu.attach(us(2), &TaskParams::default());
    cpu.ready(us(2), only, true, true, None);
    assert_eq!(cpu.heed_kicks(true), Heeded::Wakes);
    assert!(cpu.halts_in_vain());
    cpu.stop(us(4), false);
    assert!(cpu.look(us(4)));
    assert_eq!(task(cpu.pick(us(4))), Some(only));
    assert!(!cpu.halts_in_vain());
    // It ends, and its number is given again.
    assert_eq!(cpu.stop(us(5), true).ran, Some((only, Span::from_us(1))));
    cpu.detach(us(5), only);
    assert_eq!(cpu.attach(us(5), &TaskParams::default()), only);
}
