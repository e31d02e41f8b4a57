//! Events worked out by hand from the rules. CPUs 0 and 1 are siblings, as are 2 and 3, and so on.

use alloc::vec::Vec;

use super::ContentionAware;
use crate::policy;
use anysched_core::{CpuSet, Machine, Off, Span, TaskParams};
use anysched_oracle::drive::{Drive, ms};

type Rig = Drive<ContentionAware>;

const TWO_CORES: &str = "2 cores x 2 threads";

fn of(intensity: u8) -> TaskParams {
    TaskParams { intensity, ..TaskParams::default() }
}

fn strong() -> TaskParams {
    of(80)
}

fn weak() -> TaskParams {
    of(0)
}

/// Where `task` is.
fn at(rig: &Rig, task: u32) -> i64 {
    rig.probe(task, "runqueue")
}

/// Where tasks are that become ready one after the other, while no CPU picks.
fn places(machine: &str, tasks: &[TaskParams]) -> Vec<i64> {
    let mut rig = Rig::scheduler(machine, &[]);
    (0..).zip(tasks).for_each(|(task, params)| rig.create_from(task, params, None));
    (0..tasks.len() as u32).map(|task| at(&rig, task)).collect()
}

#[test]
fn strong_tasks_are_spread_over_caches_then_cores_then_cpus() {
    let many = |count| alloc::vec![strong(); count];
    assert_eq!(places(TWO_CORES, &many(7)), [0, 2, 1, 3, 0, 2, 1]);
    assert_eq!(places("2 llcs x 2 cores", &many(5)), [0, 2, 1, 3, 0]);
    assert_eq!(places("2 llcs x 2 cores x 2 threads", &many(5)), [0, 4, 2, 6, 1]);
}

#[test]
fn weak_tasks_go_to_the_cpu_with_the_fewest() {
    let all = [weak(), weak(), weak(), weak(), weak()];
    assert_eq!(places(TWO_CORES, &all), [0, 2, 1, 3, 0]);
    // A strong task avoids CPUs with a strong one, whatever waits elsewhere.
    let mixed = [strong(), weak(), weak(), weak(), weak(), weak(), weak(), strong()];
    assert_eq!(places("2", &mixed), [0, 1, 0, 1, 0, 1, 0, 1]);
    let crowded = [of(80), weak(), of(80)];
    assert_eq!(places("2", &crowded), [0, 1, 1]);
}

#[test]
fn a_task_is_strong_from_its_intensity_on() {
    for (threshold, found) in [("50", [0, 0, 1, 1]), ("0", [1; 4]), ("101", [0; 4])] {
        let mut rig = Rig::scheduler("1", &[("strong", threshold)]);
        (0..).zip([0, 49, 50, 100]).for_each(|(task, intensity)| rig.attach(task, &of(intensity)));
        assert_eq!(rig.probes(0..4, "strong"), found, "{threshold}");
    }
}

#[test]
fn a_cpu_takes_its_tasks_in_turn() {
    let mut rig = Rig::scheduler("1", &[]);
    (0..3).for_each(|task| rig.create_from(task, &weak(), None));
    assert_eq!(rig.pick(0), Some((0, ms(6))));
    for next in [1, 2, 0] {
        rig.pass_us(6_000);
        rig.off(0, Off::Expired);
        assert_eq!(rig.pick(0), Some((next, ms(6))));
    }
    // Taken off by the host it goes on with what is left, and that before others.
    rig.pass_us(2_000);
    rig.off(0, Off::Preempted);
    assert_eq!(rig.pick(0), Some((0, ms(4))));
    rig.pass_us(1_000);
    rig.off(0, Off::Yielded);
    assert_eq!(rig.pick(0), Some((1, ms(6))));
    // A sleeper comes back with a whole turn, at the tail.
    rig.pass_us(5_000);
    rig.off(0, Off::Blocked);
    rig.wake_on(1, 0, None);
    let rest: Vec<_> = (0..3)
        .map(|_| {
            let pick = rig.pick(0).unwrap();
            rig.off(0, Off::Exited);
            pick
        })
        .collect();
    assert_eq!(rest, [(2, ms(6)), (0, ms(6)), (1, ms(6))]);
    assert_eq!(rig.pick(0), None);
}

#[test]
fn nobody_preempts() {
    let mut rig = Rig::scheduler("1", &[]);
    rig.create_from(0, &weak(), None);
    assert_eq!(rig.kicked(), [0]);
    rig.pick(0);
    rig.create_from(1, &strong(), None);
    assert_eq!(rig.kicked(), []);
}

/// On two CPUs: strong tasks 0 and 1 on CPU 0 and 1, weak 2 and 3 behind them, strong 4 behind.
fn crowded() -> Rig {
    let mut rig = Rig::scheduler("2", &[]);
    for (task, params) in (0..).zip([strong(), strong(), weak(), weak(), strong()]) {
        rig.create_from(task, &params, None);
    }
    assert_eq!((0..5).map(|task| at(&rig, task)).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
    assert_eq!((rig.pick_task(0), rig.pick_task(1)), (Some(0), Some(1)));
    rig.kicked();
    rig
}

#[test]
fn two_strong_tasks_part_as_soon_as_they_can() {
    // With CPU 1's strong task gone, CPU 0's leaves at the end of its turn, although it then
    // is behind as many.
    let mut rig = crowded();
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), Some(3));
    rig.create_from(5, &weak(), Some(1));
    rig.create_from(6, &weak(), Some(1));
    rig.create_from(7, &weak(), Some(1));
    assert_eq!((at(&rig, 5), at(&rig, 6), at(&rig, 7)), (1, 1, 1));
    rig.off(0, Off::Expired);
    assert_eq!(at(&rig, 0), 1);
    assert_eq!(rig.kicked(), []);
    assert_eq!(rig.pick_task(0), Some(2));
}

#[test]
fn a_cpu_without_tasks_takes_a_strong_one_that_is_not_alone() {
    let mut rig = crowded();
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), Some(3));
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), Some(4), "task 2 came first, but is weak");
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), Some(2));
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), None);
}

#[test]
fn a_weak_task_is_taken_before_a_strong_one_that_is_alone() {
    let only = |cpus, params| TaskParams { affinity: CpuSet::Few(cpus), ..params };
    let mut rig = Rig::scheduler("2", &[]);
    // CPU 1 has enough of its own, so that tasks 1 to 3 stay on CPU 0 when they may leave it.
    (5..9).for_each(|task| rig.create_from(task, &only(0b10, weak()), None));
    for (task, params) in (0..).zip([weak(), weak(), strong(), weak()]) {
        rig.create_from(task, &only(0b01, params), None);
    }
    assert_eq!((rig.pick_task(0), rig.pick_task(1)), (Some(0), Some(5)));
    for (task, params) in (1..).zip([weak(), strong(), weak()]) {
        rig.update(task, &params);
        assert_eq!(at(&rig, task), 0, "{task}");
    }
    for (gone, next) in [(5, 6), (6, 7), (7, 8), (8, 1), (1, 3)] {
        assert_eq!((rig.off(1, Off::Blocked), rig.pick_task(1)), (gone, Some(next)));
    }
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), Some(2), "rather than idle");
}

#[test]
fn a_turn_that_ends_evens_out() {
    let mut rig = Rig::scheduler("2", &[]);
    (0..6).for_each(|task| rig.create_from(task, &weak(), None));
    (0..2).for_each(|cpu| assert!(rig.pick(cpu).is_some()));
    // Tasks 0, 2 and 4 are on CPU 0; task 5 stays behind on CPU 1.
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), Some(3));
    rig.off(0, Off::Expired);
    assert_eq!(at(&rig, 0), 0, "3 and 2 would become 2 and 3");
    assert_eq!(rig.pick_task(0), Some(2));
    rig.off(1, Off::Blocked);
    assert_eq!(rig.pick_task(1), Some(5));
    rig.off(0, Off::Expired);
    assert_eq!(at(&rig, 2), 1);
    assert_eq!(rig.kicked(), []);
}

#[test]
fn a_strong_task_leaves_a_core_that_it_shares_with_one() {
    // Two strong tasks on core 0, and weak ones on core 1, pinned until then.
    let only =
        |cpu: u16, params: TaskParams| TaskParams { affinity: CpuSet::Few(1 << cpu), ..params };
    let mut rig = Rig::scheduler(TWO_CORES, &[]);
    for (task, params) in (0..).zip([strong(), strong(), weak(), weak()]) {
        rig.create_from(task, &only(task as u16, params), None);
    }
    (0..4).for_each(|cpu| assert_eq!(rig.pick_task(cpu), Some(u32::from(cpu))));
    rig.create_from(4, &only(0, weak()), None);
    rig.update(0, &strong());
    rig.kicked();
    rig.off(0, Off::Expired);
    assert_eq!(at(&rig, 0), 2);
    assert_eq!(rig.pick_task(0), Some(4));
    // Where it was alone it would leave an idle CPU behind, and stays.
    rig.update(1, &strong());
    rig.off(1, Off::Expired);
    assert_eq!(at(&rig, 1), 1);
}

#[test]
fn tasks_go_where_they_may_run() {
    let mut rig = Rig::scheduler("2", &[]);
    let only = |cpus| TaskParams { affinity: CpuSet::Few(cpus), ..strong() };
    (0..2).for_each(|task| rig.create_from(task, &only(1), None));
    assert_eq!(rig.pick_task(0), Some(0));
    rig.kicked();
    rig.update(1, &only(3));
    assert_eq!((at(&rig, 1), rig.kicked()), (1, [1].to_vec()));
    assert_eq!(rig.pick_task(1), Some(1));
    rig.update(1, &only(1));
    assert_eq!(rig.kicked(), [1], "it has to leave");
    rig.off(1, Off::Preempted);
    assert_eq!((rig.pick_task(1), at(&rig, 1)), (None, 0));
    // CPU 0 goes; the host lets its tasks run anywhere before.
    (0..2).for_each(|task| rig.update(task, &only(3)));
    assert_eq!((at(&rig, 1), rig.kicked()), (1, [1].to_vec()));
    rig.set_online(0, false);
    rig.off(0, Off::Preempted);
    assert_eq!((at(&rig, 0), at(&rig, 1)), (1, 1));
    assert_eq!(rig.pick_task(1), Some(1));
    rig.set_online(0, true);
    assert!(rig.kicked().contains(&0));
    assert_eq!(rig.pick_task(0), Some(0));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let machine = Machine::flat(2).unwrap();
    let builds =
        |setting| (policy("contention-aware").unwrap().build)(&machine, &[setting]).is_ok();
    assert!(!builds(("quantum", "0")) && !builds(("strong", "102")));
    assert!(builds(("quantum", "none")) && builds(("strong", "101")));
    assert_eq!(Rig::scheduler("1", &[("quantum", "none")]).policy.quantum, Span::MAX);
}

#[test]
fn a_cpu_that_is_about_to_pick_keeps_what_it_will_pick() {
    let mut rig = Rig::scheduler("2", &[]);
    (0..3).for_each(|task| rig.create_from(task, &weak(), None));
    assert_eq!((rig.pick_task(0), rig.pick_task(1)), (Some(0), Some(1)));
    // Both CPUs pick at one instant: CPU 1 takes task 0 from behind task 2, not task 2.
    rig.off(1, Off::Exited);
    rig.off(0, Off::Yielded);
    assert_eq!(at(&rig, 0), 1, "CPU 1 has nothing");
    assert_eq!((rig.pick_task(1), rig.pick_task(0)), (Some(0), Some(2)));
    rig.off(1, Off::Exited);
    rig.off(0, Off::Yielded);
    assert_eq!((rig.pick_task(1), rig.pick_task(0)), (None, Some(2)));
}
