//! Each rule by itself.

use super::*;
use anysched_core::params::ParamError;

/// The CPUs of each runqueue.
fn runqueues(rig: &Rig) -> Vec<Vec<u16>> {
    let used = rig.policy.queues.iter().filter(|queue| !queue.cpus.is_empty());
    used.map(|queue| queue.cpus.iter().map(|cpu| cpu.0).collect()).collect()
}

#[test]
fn runqueues_follow_the_topology() {
    let machine = "2 nodes x 2 packages x 2 cores x 2 threads";
    let sizes = |runqueue| -> Vec<usize> {
        let rig = Rig::new(machine, &[("runqueue", runqueue)]);
        let found = runqueues(&rig);
        let cpus: Vec<u16> = found.iter().flatten().copied().collect();
        assert_eq!(cpus, (0..16).collect::<Vec<u16>>());
        found.iter().map(Vec::len).collect()
    };
    assert_eq!(sizes("cpu"), [1; 16]);
    assert_eq!(sizes("core"), [2; 8]);
    assert_eq!(sizes("socket"), [4; 4]);
    assert_eq!(sizes("node"), [8; 2]);
    assert_eq!(sizes("all"), [16]);
}

#[test]
fn runqueues_have_at_most_16_cpus_and_keep_siblings_together() {
    let sizes = |machine, settings: &[(&str, &str)]| -> Vec<usize> {
        runqueues(&Rig::new(machine, settings)).iter().map(Vec::len).collect()
    };
    assert_eq!(sizes("16", &[]), [16]);
    assert_eq!(sizes("20", &[]), [10, 10]);
    // 17 CPUs need 2 runqueues of at most 17 / 2.
    assert_eq!(sizes("17", &[]), [8, 8, 1]);
    // 8 CPUs in threes make 3 runqueues of at most 2: a core each.
    assert_eq!(sizes("4 cores x 2 threads", &[("max_cpus_runqueue", "3")]), [2; 4]);
    // A core of 4 does not fit, but siblings stay together.
    assert_eq!(sizes("2 cores x 4 threads", &[("max_cpus_runqueue", "2")]), [4, 4]);
}

#[test]
fn settings_out_of_range_are_refused() {
    let machine = Machine::flat(1).unwrap();
    for (name, value) in [
        ("max_cpus_runqueue", "0"),
        ("ratelimit", "99us"),
        ("ratelimit", "501ms"),
        ("migrate_resist", "2s"),
        ("cap_period", "499us"),
        ("load_window_shift", "10"),
        ("load_precision_shift", "3"),
        ("balance_under", "-5"),
        ("balance_over", "21"),
    ] {
        let mut params = Credit2Params::default();
        params.set(name, value).unwrap();
        let error = Credit2::build(&machine, 1, &params).unwrap_err();
        assert!(matches!(error, ParamError::Invalid { name: at, .. } if at == name), "{error}");
    }
    let mut params = Credit2Params::default();
    params.set("ratelimit", "0").unwrap();
    params.set("balance_under", "-4").unwrap();
    assert!(Credit2::build(&machine, 1, &params).is_ok());
}

/// Weight 256 burns 2 credits per ns, weight 512 one. Slices: at least 1 ms when switched to; then
/// until the other has as much, and 500 us more, since of equals the running one goes on.
#[test]
fn two_hogs_of_different_weight() {
    let mut rig = Rig::new("1", &[]);
    rig.set_domain(1, 512, 0);
    rig.create(0, 0);
    rig.create(1, 1);
    let mut expected = alloc::vec![(0, 1_000), (1, 2_500)];
    expected.extend([(0, 1_000), (1, 2_000)].repeat(3));
    assert_eq!(rig.slices(Time(12_500_000)), expected);
    assert_eq!([rig.credit(0), rig.credit(1)], [2_000, 1_500]);
    // 0 uses up the last of its credit, and so does 1, in 1.5 ms; equal to 0, it goes on, and as
    // none has any left, all get 10 ms.
    assert_eq!(rig.slices(Time(15_000_000)), [(0, 1_000), (1, 1_500)]);
    assert_eq!([rig.credit(0), rig.credit(1)], [0, 0]);
    assert_eq!(rig.pick(0), Some((1, us(500))));
    assert_eq!([rig.credit(0), rig.credit(1)], [10_000, 10_000]);
}

#[test]
fn a_lone_vcpu_is_asked_again_when_its_credit_is_used_up() {
    let mut rig = Rig::new("1", &[]);
    rig.create(0, 0);
    assert_eq!(rig.pick(0), Some((0, ms(10))));
    rig.run(0, ms(7), Off::Preempted);
    assert_eq!(rig.pick(0), Some((0, ms(3))));
    rig.run(0, ms(3), Off::Expired);
    assert_eq!(rig.pick(0), Some((0, ms(10))));
}

#[test]
fn reset_reaches_sleepers_and_is_clipped() {
    let mut rig = Rig::new("1", &[]);
    (0..3).for_each(|task| rig.attach(task, &of(0)));
    rig.set_credit(1, 400);
    rig.set_credit(2, 600);
    rig.wake(0);
    rig.pick(0);
    rig.run(0, ms(10) + us(300), Off::Expired);
    rig.pick(0);
    assert_eq!([0, 1, 2].map(|task| rig.credit(task)), [9_700, 10_400, 10_500]);
    // 30 ms more than it had: credit stops at −10 ms, and all gain 20 ms.
    rig.set_credit(1, -9_700);
    rig.run(0, ms(40), Off::Expired);
    assert_eq!(rig.credit(0), -10_000);
    rig.pick(0);
    assert_eq!([0, 1, 2].map(|task| rig.credit(task)), [10_000, 10_300, 10_500]);
}

#[test]
fn no_reset_while_somebody_who_waits_has_credit() {
    let mut rig = Rig::new("2", &[]);
    rig.attach(0, &only(&[0]));
    rig.attach(1, &only(&[1]));
    rig.wake(0);
    rig.pick(0);
    rig.wake(1);
    // CPU 1 has been kicked and has not picked yet.
    rig.run(0, ms(12), Off::Expired);
    assert_eq!(rig.pick(0), Some((0, us(500))));
    assert_eq!(rig.credit(0), -2_000);
}

/// 3 ns at weight 256 beside 1000 burn 11.71875 credits.
#[test]
fn what_a_division_leaves_over_is_kept() {
    let mut rig = Rig::new("1", &[]);
    rig.set_domain(1, 1_000, 0);
    rig.attach(1, &of(1));
    rig.create(0, 0);
    rig.pick(0);
    for credit in [9_999_989, 9_999_977, 9_999_965, 9_999_954] {
        rig.now += Span(3);
        rig.call(|policy, cx| policy.tick(cx, CpuId(0), TaskId(0), Span(3)));
        assert_eq!(rig.probe(0, "credit_ns"), credit);
    }
}

#[test]
fn the_greatest_weight_of_the_runqueue_sets_the_pace() {
    let mut rig = Rig::new("2", &[("runqueue", "cpu")]);
    let most = |rig: &Rig| [rig.policy.queues[0].max_weight, rig.policy.queues[1].max_weight];
    assert_eq!(most(&rig), [1, 1]);
    rig.set_domain(1, 512, 0);
    rig.attach(0, &TaskParams { domain: DomainId(1), ..only(&[0]) });
    rig.attach(1, &TaskParams { domain: DomainId(2), ..only(&[0]) });
    rig.attach(2, &only(&[1]));
    assert_eq!(most(&rig), [512, 256]);
    rig.set_domain(2, 600, 0);
    assert_eq!(most(&rig), [600, 256]);
    rig.set_domain(2, 0, 0);
    rig.set_domain(1, 100, 0);
    assert_eq!(most(&rig), [600, 256]);
    rig.call(|policy, cx| policy.detach(cx, TaskId(1)));
    assert_eq!(most(&rig), [100, 256]);
    // A vCPU that changes its domain takes on that domain's weight.
    rig.call(|policy, cx| {
        policy.update(cx, TaskId(2), &TaskParams { domain: DomainId(1), ..only(&[1]) })
    });
    assert_eq!(most(&rig), [100, 100]);
}

/// A vCPU with more credit takes the CPU of one that has run for more than 950 us; until 1 ms has
/// passed the running one goes on, for at least 500 us.
#[test]
fn a_wakeup_preempts_after_the_ratelimit() {
    for (ran, kicked, picked) in
        [(950, false, None), (951, true, Some((0, us(500)))), (1_000, true, Some((1, ms(1))))]
    {
        let mut rig = Rig::new("1", &[]);
        rig.create(0, 0);
        rig.pick(0);
        rig.kicked();
        rig.attach(1, &of(0));
        rig.now += us(ran);
        rig.wake(1);
        assert_eq!(rig.kicked() == [0], kicked, "after {ran} us");
        if picked.is_some() {
            rig.put(0, 0, us(ran), Off::Preempted);
            assert_eq!(rig.pick(0), picked);
        }
    }
}

#[test]
fn without_a_ratelimit_more_credit_preempts_at_once_and_as_much_does_not() {
    let mut rig = Rig::new("1", &[("ratelimit", "0")]);
    rig.create(0, 0);
    rig.pick(0);
    rig.kicked();
    rig.attach(1, &of(0));
    rig.wake(1);
    assert_eq!(rig.kicked(), []);
    rig.attach(2, &of(0));
    rig.now += Span(1);
    rig.wake(2);
    assert_eq!(rig.kicked(), [0]);
    rig.put(0, 0, Span(1), Off::Preempted);
    // Only MIN_TIMER applies then.
    assert_eq!(rig.pick(0), Some((1, us(500))));
}

#[test]
fn an_idle_core_comes_first() {
    let wake_beside_one = |saves| {
        let mut rig = Rig::new("2 cores x 2 threads", &[("smt_power_savings", saves)]);
        rig.attach(0, &only(&[0]));
        rig.wake(0);
        rig.pick(0);
        rig.kicked();
        rig.attach(1, &of(0));
        // Its own CPU is the sibling of the busy one.
        assert_eq!(rig.policy.tasks[TaskId(1)].cpu, CpuId(1));
        rig.wake(1);
        rig.kicked()
    };
    assert_eq!(wake_beside_one("false"), [2]);
    assert_eq!(wake_beside_one("true"), [1]);
}

#[test]
fn each_wakeup_kicks_another_idle_cpu_its_own_first() {
    let mut rig = Rig::new("4", &[]);
    let mut kicked = Vec::new();
    for task in 0..4 {
        rig.attach(task, &of(0));
    }
    // They were placed in turn from CPU 1 on.
    for task in [1, 0, 2, 3] {
        rig.wake(task);
        kicked.extend(rig.kicked());
    }
    assert_eq!(kicked, [2, 1, 3, 0]);
    // All have been kicked: none is left to kick.
    rig.create(4, 0);
    assert_eq!(rig.kicked(), []);
}

#[test]
fn the_cpu_where_most_is_gained_is_preempted_but_its_own_before_all() {
    let wake_with = |credit| {
        let mut rig = Rig::new("3", &[]);
        for task in 0..3 {
            rig.attach(task, &only(&[task as u16]));
            rig.wake(task);
            assert_eq!(rig.pick(task as u16).unwrap().0, task);
        }
        rig.now += ms(2);
        [7_000, 6_000, 5_000].into_iter().zip(0..).for_each(|(credit, task)| {
            // 2 ms have been burned by the time it is looked at.
            rig.set_credit(task, credit + 2_000);
        });
        rig.kicked();
        rig.attach(3, &of(0));
        rig.policy.tasks[TaskId(3)].cpu = CpuId(1);
        rig.set_credit(3, credit);
        rig.wake(3);
        rig.kicked()
    };
    assert_eq!(wake_with(6_001), [1]);
    assert_eq!(wake_with(6_000), [2]);
    // 500 us of resistance apply to the others.
    assert_eq!(wake_with(5_501), [2]);
    assert_eq!(wake_with(5_500), []);
}

#[test]
fn a_cpu_resists_vcpus_of_others_and_pays_those_that_come() {
    let pick_beside = |credit| {
        let mut rig = Rig::new("2", &[]);
        rig.attach(0, &only(&[0]));
        rig.wake(0);
        rig.pick(0);
        rig.attach(1, &only(&[1]));
        rig.wake(1);
        rig.pick(1);
        rig.attach(2, &of(0));
        rig.policy.tasks[TaskId(2)].cpu = CpuId(1);
        rig.set_credit(2, credit);
        rig.wake(2);
        rig.run(0, ms(5), Off::Preempted);
        let picked = rig.pick(0).unwrap().0;
        (picked, rig.credit(2))
    };
    assert_eq!(pick_beside(5_499), (0, 5_499));
    assert_eq!(pick_beside(5_500), (2, 5_550));
}

#[test]
fn what_another_cpu_was_kicked_for_is_left_to_it() {
    let mut rig = Rig::new("2", &[]);
    rig.attach(0, &only(&[0]));
    rig.wake(0);
    rig.pick(0);
    rig.attach(1, &of(0));
    rig.policy.tasks[TaskId(1)].cpu = CpuId(1);
    rig.kicked();
    rig.wake(1);
    assert_eq!(rig.kicked(), [1]);
    rig.run(0, ms(1), Off::Blocked);
    assert_eq!(rig.pick(0), None);
    assert_eq!(rig.pick(1).unwrap().0, 1);
}

#[test]
fn a_yielder_lets_those_of_its_cpu_go_first() {
    let mut rig = Rig::new("1", &[]);
    rig.create(0, 0);
    rig.create(1, 0);
    rig.set_credit(1, 3_000);
    rig.call(|policy, _| {
        // As it would be in the queue with that credit.
        policy.remove(TaskId(1));
        policy.insert(TaskId(1));
    });
    assert_eq!(rig.pick(0).unwrap().0, 0);
    rig.run(0, us(100), Off::Yielded);
    assert_eq!(rig.pick(0), Some((1, ms(1))));
    rig.run(1, ms(1), Off::Expired);
    assert_eq!(rig.pick(0).unwrap().0, 0);
    // Without any other vCPU it goes on.
    rig.call(|policy, cx| policy.dequeue(cx, TaskId(1)));
    rig.run(0, us(100), Off::Yielded);
    assert_eq!(rig.pick(0).unwrap().0, 0);
}

#[test]
fn a_pick_that_cannot_start_is_undone() {
    let mut rig = Rig::new("1", &[]);
    rig.create(0, 0);
    rig.pick(0);
    rig.kicked();
    rig.put(0, 0, Span::ZERO, Off::NotRun);
    assert_eq!(rig.kicked(), [0]);
    rig.call(|policy, cx| policy.dequeue(cx, TaskId(0)));
    assert_eq!(rig.pick(0), None);
    rig.wake(0);
    assert_eq!(rig.pick(0), Some((0, ms(10))));
}

#[test]
fn an_undone_pick_gives_nothing_for_the_move() {
    let mut rig = Rig::new("2", &[]);
    rig.create(0, 0);
    assert_eq!(rig.policy.tasks[TaskId(0)].cpu, CpuId(1));
    for _ in 0..3 {
        // CPU 1 has been kicked for it, and fails.
        assert_eq!(rig.pick(1), Some((0, ms(10))));
        rig.put(1, 0, Span::ZERO, Off::NotRun);
        rig.policy.cpus[1].tickled = false;
        assert_eq!(rig.pick(0), Some((0, ms(10))));
        assert_eq!(rig.credit(0), 10_050);
        rig.put(0, 0, Span::ZERO, Off::NotRun);
        rig.policy.cpus[0].tickled = false;
        assert_eq!(rig.credit(0), 10_000);
        rig.policy.tasks[TaskId(0)].cpu = CpuId(1);
    }
}

#[test]
fn a_cap_is_a_budget_in_each_period() {
    let mut rig = Rig::new("1", &[]);
    rig.set_domain(0, 256, 40);
    rig.create(0, 0);
    assert_eq!(rig.pick(0), Some((0, ms(4))));
    assert_eq!(rig.probe(0, "budget_ns"), 4_000_000);
    rig.run(0, ms(4), Off::Expired);
    assert_eq!(rig.pick(0), None);
    rig.kicked();
    rig.timer();
    assert_eq!((rig.now, rig.kicked()), (Time(10_000_000), alloc::vec![0]));
    assert_eq!(rig.pick(0), Some((0, ms(4))));
    // What is left when it blocks goes back to the pool and is there when it wakes, but is not
    // added to the next period's.
    rig.run(0, ms(1), Off::Blocked);
    assert_eq!(rig.probe(0, "budget_ns"), 0);
    rig.wake(0);
    assert_eq!(rig.pick(0), Some((0, ms(3))));
    rig.run(0, ms(1), Off::Blocked);
    rig.timer();
    rig.wake(0);
    assert_eq!(rig.pick(0), Some((0, ms(4))));
}

/// 5 % of 10 ms is less than the ratelimit, so the rest is a debt: 1 ms in 20 ms.
#[test]
fn overrun_budgets_are_debts() {
    let mut rig = Rig::new("1", &[]);
    rig.set_domain(0, 256, 5);
    rig.create(0, 0);
    for start in [0, 20, 40] {
        assert_eq!(rig.now, Time::ZERO + ms(start));
        assert_eq!(rig.pick(0), Some((0, ms(1))));
        rig.run(0, ms(1), Off::Expired);
        assert_eq!(rig.pick(0), None);
        rig.timer();
        assert_eq!(rig.pick(0), None);
        rig.timer();
    }
}

#[test]
fn vcpus_of_a_domain_share_its_budget() {
    let mut rig = Rig::new("2", &[]);
    rig.set_domain(0, 256, 60);
    rig.create(0, 0);
    rig.create(1, 0);
    assert_eq!(rig.pick(1).unwrap().0, 0);
    assert_eq!(rig.pick(0), Some((1, ms(3))));
    assert_eq!(rig.probe(0, "budget_ns"), 3_000_000);
    // A third one finds nothing until another gives back what it has left.
    rig.set_credit(0, 1_000);
    rig.attach(2, &only(&[0]));
    rig.now += ms(2);
    rig.kicked();
    rig.wake(2);
    assert_eq!(rig.kicked(), [0]);
    rig.put(0, 1, ms(2), Off::Preempted);
    assert_eq!(rig.pick(0), Some((1, ms(1))));
    rig.kicked();
    rig.put(1, 0, ms(2), Off::Blocked);
    rig.now += ms(1);
    rig.put(0, 1, ms(1), Off::Expired);
    // 1 ms came back, and the running one asks first, although vCPU 2 has more credit.
    assert_eq!(rig.pick(0), Some((1, ms(1))));
    rig.run(1, us(900), Off::Blocked);
    assert_eq!(rig.pick(0), Some((2, ms(1))));
    assert_eq!(rig.probe(2, "budget_ns"), 100_000);
}

#[test]
fn a_new_cap_ends_turns_and_lifting_it_ends_waits() {
    let mut rig = Rig::new("1", &[]);
    rig.create(0, 0);
    rig.pick(0);
    rig.kicked();
    rig.now += ms(3);
    rig.set_domain(0, 256, 10);
    assert_eq!(rig.kicked(), [0]);
    rig.put(0, 0, ms(3), Off::Preempted);
    // What it ran before does not count.
    assert_eq!(rig.pick(0), Some((0, ms(1))));
    rig.run(0, ms(1), Off::Expired);
    assert_eq!(rig.pick(0), None);
    rig.kicked();
    rig.set_domain(0, 256, 0);
    assert_eq!(rig.kicked(), [0]);
    assert_eq!(rig.policy.next_timer(), None);
    assert_eq!(rig.pick(0), Some((0, ms(6))));
}

#[test]
fn a_late_replenishment_makes_up_for_debts_but_saves_nothing() {
    let mut rig = Rig::new("1", &[]);
    rig.set_domain(0, 256, 20);
    rig.create(0, 0);
    rig.pick(0);
    // The host took it off 7 ms late.
    rig.run(0, ms(9), Off::Expired);
    assert_eq!(rig.pick(0), None);
    rig.now = Time::ZERO + ms(35);
    rig.call(|policy, cx| policy.timer(cx));
    // −7 + 3 · 2 = −1 ms.
    assert_eq!((rig.pick(0), rig.policy.next_timer()), (None, Some(Time(40_000_000))));
    rig.timer();
    assert_eq!(rig.pick(0), Some((0, ms(1))));
    rig.run(0, us(10), Off::Blocked);
    rig.set_credit(0, 10_000);
    rig.now = Time::ZERO + ms(100);
    rig.call(|policy, cx| policy.timer(cx));
    rig.wake(0);
    assert_eq!(rig.pick(0), Some((0, ms(2))));
}

/// Half a window at load 1 goes half of the way to 1, a whole one all of it.
#[test]
fn loads_decay_over_a_window() {
    let mut rig = Rig::new("1", &[]);
    let window = 1 << 30;
    rig.create(0, 0);
    rig.pick(0);
    let loads = |rig: &mut Rig| {
        rig.call(|policy, cx| policy.change_load(TaskId(0), 0, cx.now));
        let queue = &rig.policy.queues[0];
        [queue.load.average, queue.expected, rig.policy.tasks[TaskId(0)].load.average]
    };
    // Half a vCPU of load was expected when it came.
    assert_eq!(loads(&mut rig), [0, 1 << 17, 1 << 17]);
    rig.now = Time(window / 2);
    assert_eq!(loads(&mut rig), [1 << 17, 3 << 16, 3 << 16]);
    rig.now = Time(window);
    assert_eq!(loads(&mut rig), [3 << 16, 7 << 15, 7 << 15]);
    rig.now = Time(2 * window);
    assert_eq!(loads(&mut rig), [1 << 18; 3]);
}

#[test]
fn new_vcpus_go_where_the_load_is_least_and_there_to_each_cpu_in_turn() {
    let mut rig = Rig::new("2 packages x 2 cores", &[]);
    (0..5).for_each(|task| rig.attach(task, &of(0)));
    let cpus: Vec<u16> = rig.policy.tasks.values().map(|task| task.cpu.0).collect();
    assert_eq!(cpus, [1, 3, 0, 2, 1]);
    rig.attach(5, &only(&[0, 1]));
    assert_eq!(rig.policy.tasks[TaskId(5)].cpu, CpuId(0));
}

fn load_of(rig: &mut Rig, task: u32, percent: i64) {
    rig.policy.tasks[TaskId(task)].load.average = (percent << 18) / 100;
}

/// Two runqueues; the averages are set, and no time passes.
fn balance(loads: [i64; 2], members: &[(u16, i64)], settings: &[(&str, &str)]) -> Vec<i64> {
    let mut rig = Rig::new("2", &[&[("runqueue", "cpu")], settings].concat());
    for (task, &(cpu, load)) in (0..).zip(members) {
        rig.attach(task, &only(&[cpu]));
        rig.policy.tasks[TaskId(task)].affinity = CpuSet::All;
        load_of(&mut rig, task, load);
    }
    for (queue, load) in loads.into_iter().enumerate() {
        rig.policy.queues[queue].expected = (load << 18) / 100;
    }
    rig.call(|policy, cx| policy.balance(cx, 0));
    (0..members.len() as u32).map(|task| rig.probe(task, "runqueue")).collect()
}

#[test]
fn balancing_pushes_pulls_or_swaps_what_makes_loads_most_equal() {
    assert_eq!(balance([220, 100], &[(0, 100), (0, 60), (0, 30), (1, 10)], &[]), [0, 1, 0, 1]);
    // Swapping 70 for 10 leaves 20 of 100, moving 70 alone 40.
    assert_eq!(balance([200, 100], &[(0, 100), (0, 70), (0, 30), (1, 10)], &[]), [0, 1, 0, 0]);
    assert_eq!(balance([100, 220], &[(0, 10), (1, 100), (1, 60), (1, 30)], &[]), [0, 1, 0, 1]);
    // Swapping 130 for 70 would do as well, but comes later.
    assert_eq!(balance([220, 100], &[(0, 90), (0, 130), (1, 30), (1, 70)], &[]), [1, 0, 0, 1]);
}

/// Below the capacity of a CPU the difference must be 1, above it 1/8.
#[test]
fn balancing_tolerates_small_differences() {
    let one = |loads, settings: &[(&str, &str)]| balance(loads, &[(0, 10)], settings)[0];
    assert_eq!(one([99, 0], &[]), 0);
    assert_eq!(one([99, 0], &[("balance_under", "-1")]), 1);
    // If this runqueue is the last, it alone is compared with its CPUs; here the other one is last.
    assert_eq!(one([100, 0], &[]), 1);
    assert_eq!(one([200, 188], &[]), 0);
    assert_eq!(one([200, 187], &[]), 1);
    assert_eq!(one([200, 187], &[("balance_over", "-2")]), 0);
}

#[test]
fn a_running_vcpu_leaves_its_cpu_to_be_moved() {
    let mut rig = Rig::new("2", &[("runqueue", "cpu")]);
    rig.attach(0, &only(&[0]));
    rig.wake(0);
    rig.pick(0);
    rig.kicked();
    rig.policy.tasks[TaskId(0)].affinity = CpuSet::All;
    rig.call(|policy, cx| policy.migrate(cx, TaskId(0), 1));
    assert_eq!((rig.kicked(), rig.probe(0, "runqueue")), (alloc::vec![0], 0));
    rig.run(0, us(100), Off::Preempted);
    assert_eq!(rig.pick(0), None);
    assert_eq!((rig.kicked(), rig.probe(0, "runqueue")), (alloc::vec![1], 1));
    assert_eq!(rig.pick(1).unwrap().0, 0);
}

#[test]
fn affinity_moves_vcpus_at_once_running_ones_when_they_are_off() {
    let mut rig = Rig::new("2 packages x 1 core", &[]);
    for (task, params) in [(0, only(&[0])), (1, only(&[0])), (2, only(&[0]))] {
        rig.attach(task, &params);
    }
    rig.wake(0);
    rig.wake(1);
    rig.pick(0);
    rig.kicked();
    for task in [2, 1] {
        rig.call(|policy, cx| policy.update(cx, TaskId(task), &only(&[1])));
        assert_eq!(rig.probe(task, "runqueue"), 1);
    }
    assert_eq!(rig.kicked(), [1]);
    assert_eq!(rig.pick(1).unwrap().0, 1);
    rig.call(|policy, cx| policy.update(cx, TaskId(0), &only(&[1])));
    assert_eq!(rig.kicked(), [0]);
    rig.run(0, us(100), Off::Preempted);
    assert_eq!(rig.pick(0), None);
    assert_eq!(rig.probe(0, "runqueue"), 1);
}

#[test]
fn a_cpu_that_goes_takes_nobody_along() {
    let mut rig = Rig::new("2 packages x 2 cores", &[]);
    for task in 0..3 {
        rig.attach(task, &only(&[0, 1]));
        rig.wake(task);
    }
    let home = rig.pick(0).unwrap().0;
    rig.call(|policy, cx| {
        (0..3).for_each(|task| policy.update(cx, TaskId(task), &of(0)));
    });
    rig.put(0, home, Span::ZERO, Off::Preempted);
    rig.pick(0);
    rig.set_online(0, false);
    rig.set_online(1, false);
    if let Some(running) = rig.policy.cpus[0].current {
        rig.put(0, running.0, Span::ZERO, Off::Preempted);
    }
    for task in 0..3 {
        assert_eq!(rig.probe(task, "runqueue"), 1, "vCPU {task}");
    }
    assert_eq!(runqueues(&rig), [[2, 3]]);
    rig.set_online(1, true);
    rig.set_online(0, true);
    assert_eq!(runqueues(&rig), [[0, 1], [2, 3]]);
}

/// The kick of CPU 2 was for vCPU 0 while that could run there.
#[test]
fn a_kicked_cpu_that_may_not_run_it_leaves_a_vcpu_to_others() {
    let mut rig = Rig::new("3", &[]);
    rig.attach(0, &only(&[1]));
    rig.wake(0);
    assert_eq!(rig.kicks.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), [1]);
    rig.update(0, &only(&[2]));
    rig.update(0, &only(&[1]));
    assert_eq!(rig.kicked(), [1, 2]);
    assert_eq!(rig.pick_task(1), Some(0));
}

/// The same with a CPU that serves another runqueue by then.
#[test]
fn a_kicked_cpu_of_another_runqueue_leaves_a_vcpu_to_its_own() {
    let mut rig = Rig::new("2", &[("runqueue", "cpu")]);
    rig.create(0, 0);
    assert_eq!(rig.kicked(), [0]);
    rig.dequeue(0);
    rig.create(1, 0);
    assert_eq!(rig.kicked(), [1]);
    rig.set_online(1, false);
    rig.set_online(1, true);
    rig.create(2, 0);
    assert_eq!(rig.kicked(), [1]);
    assert_eq!([rig.pick_task(0), rig.pick_task(1)], [Some(1), Some(2)]);
}

fn preferring(cpus: &[u16]) -> TaskParams {
    let preferred = CpuSet::of(cpus.iter().map(|&cpu| CpuId(cpu)));
    TaskParams { preferred, ..TaskParams::default() }
}

/// The runqueue is the best of those with a preferred CPU; where Xen goes on from, and what it
/// remembers, is the last choice of the best of all.
#[test]
fn new_vcpus_go_where_they_prefer_to_be() {
    let mut rig = Rig::new("2 packages x 2 cores", &[]);
    for (task, cpus) in (0..).zip([&[2, 3][..], &[2, 3], &[3, 2], &[9], &[0, 1, 2, 3]]) {
        rig.attach(task, &preferring(cpus));
    }
    let cpus: Vec<u16> = rig.policy.tasks.values().map(|task| task.cpu.0).collect();
    // The first queue has the least load all the time, and 0 for its last choice, then 2, 3 and 2:
    // those who prefer nothing go on behind that.
    assert_eq!(cpus, [2, 3, 2, 0, 1]);
}

#[test]
fn a_preferred_cpu_that_idles_is_kicked_before_others() {
    let mut rig = Rig::new("4", &[("runqueue", "all")]);
    rig.attach(0, &preferring(&[2, 3]));
    rig.policy.tasks[TaskId(0)].cpu = CpuId(0);
    rig.wake(0);
    assert_eq!(rig.kicked(), [2]);
    rig.dequeue(0);
    rig.wake(0);
    // CPU 2 has been kicked and has not picked.
    assert_eq!(rig.kicked(), [3]);
    rig.dequeue(0);
    rig.wake(0);
    assert_eq!(rig.kicked(), [0]);
}

/// A vCPU on a CPU that it does not prefer leaves it for one that idles, and for no other reason.
#[test]
fn a_vcpu_moves_to_an_idle_cpu_that_it_prefers() {
    let mut rig = Rig::new("2", &[("runqueue", "all")]);
    rig.attach(0, &only(&[0]));
    rig.wake(0);
    assert_eq!(rig.pick(0).unwrap().0, 0);
    rig.policy.tasks[TaskId(0)].affinity = CpuSet::All;
    rig.policy.tasks[TaskId(0)].preferred = CpuSet::of([CpuId(1)]);
    rig.kicked();
    // The rate limit keeps it.
    rig.run(0, us(500), Off::Preempted);
    assert_eq!(rig.pick(0).unwrap().0, 0);
    rig.run(0, ms(1), Off::Preempted);
    assert_eq!(rig.pick(0), None);
    assert_eq!(rig.kicked(), [1]);
    assert_eq!(rig.pick(1).unwrap().0, 0);
    rig.policy.tasks[TaskId(0)].preferred = CpuSet::of([CpuId(0)]);
    rig.attach(1, &only(&[0]));
    rig.wake(1);
    assert_eq!(rig.pick(0).unwrap().0, 1);
    rig.now += ms(2);
    rig.put(1, 0, ms(2), Off::Preempted);
    assert_eq!(rig.pick(1).unwrap().0, 0);
}

/// Of busy CPUs, those that it prefers are ahead of others, and so are those whose vCPU would rather
/// be elsewhere.
#[test]
fn busy_cpus_are_compared_by_who_prefers_them() {
    let kicked = |credits: [i64; 3], own: &[u16], of_second: &[u16]| {
        let mut rig = Rig::new("3", &[("runqueue", "all"), ("ratelimit", "0")]);
        for task in 0..3 {
            rig.attach(task, &only(&[task as u16]));
            rig.wake(task);
            assert_eq!(rig.pick(task as u16).unwrap().0, task);
            rig.set_credit(task, credits[task as usize]);
            rig.policy.tasks[TaskId(task)].affinity = CpuSet::All;
        }
        let set = |cpus: &[u16]| CpuSet::of(cpus.iter().map(|&cpu| CpuId(cpu)));
        rig.policy.tasks[TaskId(1)].preferred = set(of_second);
        rig.attach(3, &TaskParams { preferred: set(own), ..TaskParams::default() });
        rig.policy.tasks[TaskId(3)].cpu = CpuId(0);
        rig.kicked();
        rig.wake(3);
        rig.kicked()
    };
    let all = [0, 1, 2];
    // It has 10 ms. Its own CPU comes first, even if it gains more elsewhere, unless it prefers others.
    assert_eq!(kicked([8_000, 7_000, 1_000], &all, &all), [0]);
    assert_eq!(kicked([8_000, 7_000, 1_000], &[1], &all), [1]);
    assert_eq!(kicked([8_000, 7_000, 1_000], &[1, 2], &all), [2]);
    assert_eq!(kicked([8_000, 7_000, 1_000], &[1, 2], &[0]), [1]);
    // What it prefers does not help where it is not ahead.
    assert_eq!(kicked([8_000, 9_800, 1_000], &[1], &all), [2]);
    assert_eq!(kicked([10_000, 9_800, 9_900], &[1], &all), [0; 0]);
}
