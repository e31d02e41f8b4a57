//! What waits in the tree while others wake: for how long lists keep it from running.
//!
//! A list takes a task only if the CPU runs a later one. So of tasks h1 < h2 < … by deadline, only
//! those before hi can enter while hi runs, and what is preempted goes to the tree. If the last
//! act of each is to wake all before it, hi leads to 2^(i-1) bursts, all m to 2^m - 1; that is the
//! most. `bfs` runs the earliest, wherever it comes from.

use alloc::vec::Vec;
use proptest::prelude::*;

use super::ALL;
use crate::linux::bfs::OneQueue;
use crate::linux::gfs::GroupQueues;
use crate::linux::virtual_deadline::VirtualDeadlines;
use crate::linux::virtual_deadline::rig::Rig;
use anysched_core::registry::Policy;
use anysched_core::{Off, TaskParams};

/// The task in the tree, of deadline 16 ms.
const TREE: u32 = 100;

/// CPU 0 runs something of deadline 238.546875 ms. Tasks 1 to `sleepers`, of deadlines from
/// 39.2875 ms on, 0.1 ms apart, have all woken at 10 ms, and `TREE` is new.
fn all_wake<Of>(sleepers: u32) -> Rig<Of>
where
    VirtualDeadlines<Of>: Policy,
{
    let mut rig = Rig::new("1", &[]);
    rig.start(0, 0, 19);
    for task in 1..=sleepers {
        rig.pass_us(100);
        rig.asleep(task, 0, ALL);
    }
    rig.at(10);
    (1..=sleepers).rev().for_each(|task| rig.wake(task, 0));
    rig.create(TREE, &TaskParams::nice(-20), None);
    assert_eq!(rig.deadline(TREE), 16_000_000);
    assert_eq!(rig.kicked(), [0]);
    rig.off(0, Off::Preempted);
    rig
}

/// When `TREE` runs, in us, if each of 20 sleepers runs for 1 ms and then blocks.
fn one_by_one<Of>() -> u64
where
    VirtualDeadlines<Of>: Policy,
{
    let mut rig = all_wake::<Of>(20);
    while rig.pick(0).unwrap() != TREE {
        rig.pass_us(1_000);
        rig.off(0, Off::Blocked);
    }
    rig.now.0 / 1000
}

#[test]
fn the_tree_waits_for_all_that_have_woken() {
    assert_eq!(one_by_one::<OneQueue>(), 10_000);
    // 14 ms after its deadline; those of the others are from 39 ms on.
    assert_eq!(one_by_one::<GroupQueues>(), 30_000);
}

/// How many bursts there are before `TREE` runs if each sleeper ends by waking those before it.
fn in_chains<Of>(sleepers: u32) -> u32
where
    VirtualDeadlines<Of>: Policy,
{
    let mut rig = all_wake::<Of>(sleepers);
    let mut asleep: Vec<u32> = Vec::new();
    let mut bursts = 0;
    loop {
        let task = rig.pick(0).unwrap();
        if task == TREE {
            return bursts;
        }
        bursts += 1;
        rig.pass_us(10);
        // In descending order, so that each is due before the CPU's next.
        for before in (1..task).rev() {
            if let Some(at) = asleep.iter().position(|&other| other == before) {
                rig.wake(asleep.swap_remove(at), 0);
            }
        }
        rig.off(0, Off::Blocked);
        asleep.push(task);
    }
}

#[test]
fn the_tree_waits_for_chains_of_wake_ups() {
    for sleepers in 1..=9 {
        assert_eq!(in_chains::<GroupQueues>(sleepers), (1 << sleepers) - 1);
        assert_eq!(in_chains::<OneQueue>(sleepers), 0);
    }
}

/// The same sleepers, but each is woken while another runs, not as that falls asleep: what is
/// preempted then waits in the tree too, behind the task that is due first.
#[test]
fn what_is_preempted_keeps_the_tree_waiting_no_longer() {
    let mut rig = all_wake::<GroupQueues>(2);
    assert_eq!(rig.pick(0), Some(1));
    rig.off(0, Off::Blocked);
    assert_eq!(rig.pick(0), Some(2));
    rig.wake(1, 0);
    assert_eq!(rig.kicked(), [0]);
    assert_eq!(rig.switch(0), Some(1));
    rig.off(0, Off::Blocked);
    assert_eq!(rig.pick(0), Some(TREE));
}

proptest! {
    #[test]
    fn the_tree_does_not_wait_forever(
        sleepers in 1..7u32,
        steps in prop::collection::vec((0..8u8, 0..6u32, 0..2_000u64), 200),
    ) {
        let mut rig = all_wake::<GroupQueues>(sleepers);
        let mut asleep: Vec<u32> = Vec::new();
        let mut steps = steps.into_iter();
        for bursts in 0.. {
            let task = rig.pick(0).unwrap();
            if task == TREE {
                break;
            }
            prop_assert!(bursts < (1 << sleepers) - 1);
            for (what, other, us) in steps.by_ref().take_while(|step| step.0 > 0) {
                rig.pass_us(us / u64::from(what));
                if let Some(at) = asleep.iter().position(|&task| task == other + 1) {
                    rig.wake(asleep.swap_remove(at), 0);
                }
                if rig.pending().contains(&0) && what % 2 == 0 {
                    break;
                }
            }
            let preempted = rig.pending().contains(&0) && task.is_multiple_of(2);
            rig.kicked();
            rig.off(0, if preempted { Off::Preempted } else { Off::Blocked });
            if !preempted {
                asleep.push(task);
            }
        }
    }
}
