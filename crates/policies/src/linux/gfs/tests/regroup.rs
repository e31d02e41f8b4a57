//! Groups that change while tasks run.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::{ALL, Gfs, set};
use crate::linux::virtual_deadline::rig::Rig;
use crate::policy;
use anysched_core::checked::{Checked, Rules};
use anysched_core::recorder::{Call, LogReader, Recorder, replay};
use anysched_core::{Machine, Off, Scheduler, Span, TaskParams};
use anysched_oracle::random::{Host, Load};

impl Gfs {
    fn regroup(&mut self, grouping: &str) {
        self.policy.check_param("grouping", grouping).unwrap();
        self.call(|gfs, cx| gfs.set_param(cx, "grouping", grouping));
    }

    /// How often groups have looked at a level, and how many tasks they have moved.
    fn balanced(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        self.policy.tally(&mut |_, count| counts.push(count));
        counts
    }
}

/// Four CPUs in two groups, all busy with tasks of nice 0.
fn two_groups() -> Gfs {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start_all();
    gfs
}

/// Task 10 and 12 were made on CPU 2, 11 and 13 on CPU 0, all with the same deadline.
fn four_wait() -> Gfs {
    let mut gfs = two_groups();
    for (task, cpu) in [(10, 2), (11, 0), (12, 2), (13, 0)] {
        gfs.create(task, &TaskParams::default(), Some(cpu));
    }
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([4, 4]), Vec::new()));
    gfs
}

/// The tasks that CPUs get one after the other, each of which ends at once.
fn order<const N: usize>(gfs: &mut Gfs, cpus: [u16; N]) -> [u32; N] {
    cpus.map(|cpu| {
        gfs.off(cpu, Off::Exited);
        gfs.pick(cpu).unwrap()
    })
}

#[test]
fn tasks_of_several_trees_keep_their_order_in_one() {
    let mut gfs = four_wait();
    gfs.regroup("single");
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([8]), Vec::new()));
    assert_eq!(order(&mut gfs, [3, 1, 0, 2]), [10, 11, 12, 13]);
}

#[test]
fn deadlines_go_before_the_order_of_arrival() {
    let mut gfs = two_groups();
    for (task, nice, cpu) in [(10, 19, 2), (11, 5, 0), (12, 2, 2), (13, 10, 0)] {
        gfs.create(task, &TaskParams::nice(nice), Some(cpu));
    }
    gfs.regroup("single");
    assert_eq!(gfs.kicked(), []);
    assert_eq!(order(&mut gfs, [0; 4]), [12, 11, 13, 10]);
}

#[test]
fn tasks_of_one_tree_go_to_where_they_last_ran() {
    let mut gfs = four_wait();
    gfs.regroup("single");
    gfs.regroup("0,1,3;2");
    assert_eq!(gfs.loads(), [5, 3]);
    assert_eq!(order(&mut gfs, [2, 1, 2, 1]), [10, 11, 12, 13]);
}

/// Tasks 10 and 11 may use CPU 3 only, and CPUs 1 and 3; both were made on CPU 0. To that CPU 1 is
/// nearer.
#[test]
fn tasks_go_to_the_nearest_cpu_that_they_may_use() {
    let mut gfs = two_groups();
    for (task, cpus) in [(10, "3"), (11, "1,3")] {
        let params = TaskParams { affinity: set(cpus), ..TaskParams::default() };
        gfs.create(task, &params, Some(0));
    }
    assert_eq!(gfs.loads(), [3, 3]);
    gfs.regroup("0;1;2;3");
    assert_eq!(gfs.loads(), [1, 2, 1, 2]);
    // CPU 1 is away, and its task with it, so that task 11 waits for CPU 3.
    gfs.set_online(1, false);
    gfs.off(1, Off::Exited);
    assert_eq!(gfs.loads(), [1, 0, 1, 3]);
    gfs.regroup("core");
    assert_eq!(gfs.loads(), [1, 4]);
    assert_eq!(gfs.kicked(), []);
}

#[test]
fn what_has_woken_for_a_cpu_stays_there() {
    let mut gfs = two_groups();
    gfs.asleep(10, -20, ALL);
    gfs.wake(10, 1);
    assert_eq!(gfs.kicked(), [1]);
    gfs.regroup("single");
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([5]), Vec::new()));
    // CPU 0 has no earlier task than its own; task 10 is not for it.
    assert_eq!(gfs.switch(0), Some(0));
    gfs.regroup("0;1,3;2");
    assert_eq!(gfs.loads(), [1, 3, 1]);
    assert_eq!(gfs.switch(1), Some(10));
}

#[test]
fn idle_cpus_of_the_new_group_are_kicked() {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start(0, 0, 0);
    gfs.start(1, 1, 0);
    for task in 10..13 {
        gfs.create(task, &TaskParams::default(), Some(0));
    }
    assert_eq!(gfs.kicked(), []);
    gfs.regroup("single");
    assert_eq!(gfs.kicked(), [2, 3]);
    assert_eq!((gfs.pick(3), gfs.pick(2)), (Some(10), Some(11)));
}

/// CPUs 2 and 3 run what is due at 238 ms, CPUs 0 and 1 what is due at 39 ms. Task 10 is due then, too.
#[test]
fn a_later_task_of_the_new_group_is_preempted() {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    for (cpu, nice) in [(0, 0), (1, 0), (2, 19), (3, 19)] {
        gfs.start(cpu, u32::from(cpu), nice);
    }
    gfs.create(10, &TaskParams::default(), Some(0));
    assert_eq!(gfs.kicked(), []);
    gfs.regroup("single");
    assert_eq!(gfs.kicked(), [2]);
    assert_eq!(gfs.switch(2), Some(10));
}

#[test]
fn with_steal_high_idle_cpus_are_told_of_lists() {
    for (steal, kicked) in [("true", Vec::from([2])), ("false", Vec::new())] {
        let mut gfs = Gfs::new("2 cores x 2 threads", &[("steal_high", steal)]);
        gfs.start(0, 0, 0);
        gfs.start(1, 1, 0);
        gfs.asleep(10, -20, ALL);
        gfs.wake(10, 0);
        assert_eq!(gfs.kicked(), [0]);
        gfs.regroup("single");
        assert_eq!(gfs.kicked(), kicked);
    }
}

#[test]
fn a_cpu_that_is_about_to_pick_serves_the_same_task_if_it_still_can() {
    let mut gfs = two_groups();
    gfs.off(0, Off::Preempted);
    gfs.kicked();
    gfs.regroup("0,2;1,3");
    assert_eq!((gfs.kicked(), gfs.pick(0)), (Vec::new(), Some(0)));
    // CPU 1 was kicked for task 10, which has to wait for CPU 0 now.
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start(0, 0, 0);
    gfs.create(10, &TaskParams::default(), Some(0));
    gfs.regroup("0;1;2;3");
    assert_eq!((gfs.kicked(), gfs.pick(1)), (Vec::from([1]), None));
    assert_eq!(order(&mut gfs, [0]), [10]);
}

/// A group per CPU looks at 64 ms; from then on two groups of two, which look 64 ms later.
#[test]
fn balancing_begins_anew_and_goes_on_counting() {
    let mut gfs = Gfs::new("4", &[("grouping", "core")]);
    (0..4).for_each(|cpu| gfs.start(cpu, u32::from(cpu), -20));
    (10..19).for_each(|task| gfs.create(task, &TaskParams::default(), Some(0)));
    assert_eq!((gfs.timer(), gfs.timer()), (1, 64));
    let before = gfs.balanced();
    assert_eq!(before[0], 4);
    gfs.regroup("0-1;2-3");
    assert_eq!(gfs.balanced(), before);
    let loads = gfs.loads();
    assert_eq!((loads.len(), loads.iter().sum()), (2, 13));
    assert_eq!((gfs.timer(), gfs.timer()), (65, 128));
    assert_eq!(gfs.balanced()[0], 6);
    gfs.regroup("single");
    assert_eq!(gfs.policy.next_timer(), None);
    assert_eq!(gfs.balanced()[0], 6);
}

#[test]
fn the_same_groups_change_nothing() {
    // Task 11 woke in sync and did not preempt, though it is due before the others.
    let mut gfs = two_groups();
    gfs.asleep(11, -20, ALL);
    gfs.wake_sync(11, 0);
    assert_eq!(gfs.kicked(), []);
    gfs.regroup("0-1;2-3");
    assert_eq!(gfs.kicked(), []);
    gfs.regroup("2-3;0-1");
    assert_eq!(gfs.kicked(), [0]);
}

#[test]
fn other_parameters_and_other_machines_are_refused() {
    let gfs = two_groups();
    let refused = |name, text| gfs.policy.check_param(name, text).unwrap_err().to_string();
    assert_eq!(
        refused("rr_interval", "5ms"),
        "`rr_interval` cannot be changed while the policy runs; these can: grouping"
    );
    assert!(refused("grouping", "0-2").ends_with("must be in one of the lists"));
    assert!(refused("grouping", "cores").contains("not auto, core, llc"));
    let bfs: Rig<crate::linux::bfs::OneQueue> = Rig::new("2", &[]);
    assert_eq!(
        bfs.policy.check_param("grouping", "single").unwrap_err().to_string(),
        "`grouping` cannot be changed while the policy runs, nor can any other"
    );
    let rr = (policy("rr").unwrap().build)(&Machine::flat(2).unwrap(), &[]).unwrap();
    assert!(rr.check_param("quantum", "1ms").is_err());
}

/// What a policy refuses it does not do.
#[test]
fn refused_changes_change_nothing() {
    let mut gfs = four_wait();
    gfs.call(|gfs, cx| gfs.set_param(cx, "grouping", "0-2"));
    gfs.call(|gfs, cx| gfs.set_param(cx, "threshold", "200"));
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([4, 4]), Vec::new()));
}

const SETTINGS: [&[(&str, &str)]; 4] = [
    &[],
    &[("wake", "tree")],
    &[("steal_high", "true")],
    &[("wake", "tree"), ("victim", "latest")],
];

/// A machine and groupings of it.
const MACHINES: [(&str, &[&str]); 3] = [
    ("2 cores x 2 threads", &["core", "single", "0;1;2;3", "0,2;1,3", "3;0-2"]),
    ("2 packages x 3 cores", &["auto", "core", "single", "0,3;1,4;2,5", "0-4;5"]),
    ("2 nodes x 2 llcs x 2 cores", &["core", "llc", "node", "single", "0-6;7"]),
];

/// Under a host where everything happens, with groups that change now and then: the contract is
/// kept, all counts are right, no idle CPU is left beside a task of its group, nobody is lost, and
/// the log replays.
#[test]
fn whatever_happens_groups_can_be_changed() {
    let (mut changes, mut replayed) = (0, 0);
    for seed in 0..240 {
        let (topology, groupings) = MACHINES[seed as usize % MACHINES.len()];
        let settings = SETTINGS[seed as usize / MACHINES.len() % SETTINGS.len()];
        let machine = Machine::parse(topology).unwrap();
        let load = Load {
            tasks: 14,
            burst: Span::from_us(300),
            pause: Span::from_us(700),
            pinned: seed % 2 == 0,
            hotplug: seed % 5 < 3,
        };
        let gfs = Gfs::on(machine.clone(), settings).into_policy();
        let log = Recorder::new(gfs, &machine, "gfs", settings, Vec::new());
        // Groups leave CPUs idle beside tasks of others.
        let rules = Rules { work_conserving: false, ..Rules::default() };
        let mut host = Host::new(Checked::new(log, &machine, rules), &machine, load, seed);
        for step in 0..1_500 {
            host.step();
            host.policy.policy().policy().check();
            if (step + seed) % 17 == 0 {
                let grouping = groupings[(step * 7 + seed) as usize % groupings.len()];
                host.set_param("grouping", grouping);
                host.policy.policy().policy().check();
            }
        }
        assert_eq!(host.drain(), 0, "case {seed}");
        let (_, log) = host.policy.into_policy().into_parts();
        let records = LogReader::new(&log).unwrap().map(Result::unwrap);
        changes += records.filter(|record| matches!(record.call, Call::SetParam { .. })).count();
        let mut again = Gfs::on(machine, settings).into_policy();
        replayed += replay(&log, &mut again).unwrap().picks;
    }
    assert!(changes > 10_000 && replayed > 100_000, "{changes} and {replayed} are no test");
}
