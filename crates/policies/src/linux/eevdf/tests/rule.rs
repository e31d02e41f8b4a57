//! Cases worked out by hand, exact to the nanosecond.

use super::*;
use crate::linux::eevdf::queue::Mean;

#[test]
fn a_deadline_is_one_slice_away_in_virtual_time() {
    // 0.75 ms on 8 CPUs is 3 ms; nice −5 weighs 3121: ⌊3 ms · 1024 / 3121⌋ = 984299 ns.
    let settings = [("place_deadline_initial", "false"), ("tick", "0")];
    let mut host = Host::new(8, &settings);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::nice(-5));
    assert_eq!((host.at(0), host.at(1)), ((0, 3 * MS), (0, 984_299)));
    // 984299 virtual ns are reached after ⌈984299 · 3121 / 1024⌉ ns.
    assert_eq!(host.pick_on(0), Some((1, 2_999_998)));
    assert_eq!(host.pick_on(1), Some((0, 3 * MS)));
    host.now = 3 * MS;
    host.put_on(1, Off::Expired);
    assert_eq!(host.at(0), (3 * MS, 6 * MS));
    host.put_on(0, Off::Expired);
    assert_eq!(host.at(1), (984_299, 2 * 984_299));
}

#[test]
fn a_new_task_begins_with_half_a_slice() {
    // 6.6 places a new task twice, the second time with a whole slice.
    for (profile, slice, halves) in [("6.6", 3_000_000, 1), ("6.12", 2_800_000, 2)] {
        let mut host = Host::new(8, &[("profile", profile)]);
        host.spawn(0, &TaskParams::default());
        host.spawn(1, &TaskParams::nice(-5));
        assert_eq!(host.at(0), (0, slice / halves), "{profile}");
        assert_eq!(host.at(1), (0, slice * 1024 / 3121 / halves), "{profile}");
    }
}

#[test]
fn the_slice_grows_with_the_cpus() {
    for (cpus, scaling, us) in
        [(1, "log", 750), (3, "log", 1_500), (4, "log", 2_250), (64, "log", 3_000)]
            .into_iter()
            .chain([(64, "none", 750), (3, "linear", 2_250), (64, "linear", 6_000)])
    {
        let host = Host::new(cpus, &[("tunable_scaling", scaling)]);
        assert_eq!(host.rule.slice, Span::from_us(us), "{cpus} {scaling}");
    }
}

/// The earliest deadline is often not eligible, and what is chosen has not the least vruntime.
#[test]
fn the_earliest_deadline_waits_until_it_is_eligible() {
    let mut host = Host::exact(&[("profile", "6.12")]);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::default());
    host.spawn(2, &sliced(1_000));
    // (picked, ms run); before the second pick task 2 has v = 1, d = 2 and V = 1/3; before the
    // third it has the earliest deadline, but task 1 the least vruntime (v = 0, V = 4/3).
    for (turn, expected) in
        [(2, 1), (0, 3), (2, 1), (1, 3), (2, 1), (2, 1), (0, 3)].into_iter().enumerate()
    {
        let (task, slice) = host.pick_on(0).unwrap();
        assert_eq!((task, slice), (expected.0, expected.1 * MS), "turn {turn}");
        host.run(slice, Off::Expired);
    }
}

#[test]
fn lag_survives_a_sleep_and_is_inflated_at_placement() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::default());
    assert_eq!(host.pick(), Some(0));
    host.run(2 * MS, Off::Blocked);
    assert_eq!(host.lag(0), -1_000_000, "V = 1 ms, v = 2 ms");
    assert_eq!(host.pick(), Some(1));
    host.now += MS;
    // V = 1 ms, and −1 ms · (1024 + 1024) / 1024 = −2 ms. Afterwards V = 2 ms, the lag is −1 ms.
    assert!(!host.wake(0));
    assert_eq!(host.at(0), (3 * MS, 6 * MS));
    host.run(0, Off::Blocked);
    assert_eq!(host.lag(1), 1_000_000, "V = 2 ms, v = 1 ms");
    assert_eq!(host.pick(), Some(0));
    host.now += MS / 2;
    // V = 3.5 ms without task 1, 2.5 ms with it: what runs is no longer eligible.
    assert!(host.wake(1));
    assert_eq!(host.at(1), (1_500_000, 4_500_000));
}

#[test]
fn inflation_goes_by_weight() {
    // W = 1024 + 335 there, w = 3121 comes: the lag grows by (1359 + 3121) / 1359.
    let mut host = Host::exact(&[]);
    for (task, nice) in [(0, -5), (1, 0), (2, 5)] {
        host.spawn(task, &TaskParams::nice(nice));
    }
    assert_eq!(host.pick(), Some(0));
    host.run(MS, Off::Blocked);
    // v = ⌊1024·10^6 / 3121⌋ = 328099, V = ⌊3121 · 328099 / 4480⌋ = 228570.
    assert_eq!(host.lag(0), 228_570 - 328_099);
    host.wake(0);
    // 99529 + ⌊99529 · 3121 / 1359⌋ = 328101, and V = 0 without it.
    assert_eq!(host.at(0).0, 328_101);
}

#[test]
fn without_place_lag_a_waking_task_is_placed_at_the_mean() {
    let mut host = Host::exact(&[("place_lag", "false")]);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::default());
    host.pick();
    host.run(2 * MS, Off::Blocked);
    assert_eq!(host.pick(), Some(1));
    host.now += MS;
    host.wake(0);
    assert_eq!(host.at(0), (MS, 4 * MS));
}

#[test]
fn lag_is_limited_to_two_slices_or_a_tick() {
    for (nice, tick, limit) in [(0, "0", 6_000_000), (-5, "0", 1_968_599), (0, "8ms", 8_000_000)] {
        let mut host = Host::exact(&[("tick", tick)]);
        host.spawn(0, &TaskParams::nice(nice));
        host.spawn(1, &TaskParams::nice(nice));
        assert_eq!(host.pick(), Some(0));
        host.run(100 * MS, Off::Blocked);
        assert_eq!(host.lag(0), -limit, "nice {nice} tick {tick}");
        assert_eq!(host.pick(), Some(1));
        host.wake(0);
        host.run(0, Off::Blocked);
        // Both weigh the same: behind by 2 · limit, the mean in the middle.
        assert_eq!(host.lag(1), limit, "nice {nice} tick {tick}");
    }
}

/// A task of nice −5 arrives with the earlier deadline, 1.98 ms against 3 ms.
#[test]
fn what_runs_is_not_preempted_while_eligible_in_its_request() {
    for (parity, kicked, next) in [("true", false, 0), ("false", true, 1)] {
        let mut host = Host::exact(&[("run_to_parity", parity)]);
        host.spawn(0, &TaskParams::default());
        host.pick();
        host.now = MS;
        assert_eq!(host.spawn(1, &TaskParams::nice(-5)), kicked);
        assert_eq!(host.at(1), (MS, 1_984_299));
        // Even if something else makes the CPU pick again.
        host.put_on(0, Off::Preempted);
        assert_eq!(host.pick(), Some(next));
    }
}

#[test]
fn protection_ends_when_the_task_is_not_eligible_any_more() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.pick();
    host.now = MS;
    assert!(!host.spawn(1, &TaskParams::nice(-5)));
    // 1 ns more and v = 1000001 is above V.
    host.run(1, Off::Preempted);
    assert_eq!(host.pick(), Some(1));
}

#[test]
fn protection_ends_with_the_request() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.pick();
    host.run(3 * MS, Off::Expired);
    assert_eq!(host.pick(), Some(0));
    assert!(host.spawn(1, &TaskParams::nice(-5)), "d = 3.98 ms against 6 ms");
}

#[test]
fn wakeup_preemption_can_be_turned_off() {
    let settings = [("run_to_parity", "false"), ("wakeup_preemption", "false")];
    let mut host = Host::exact(&settings);
    host.spawn(0, &TaskParams::default());
    host.pick();
    assert!(!host.spawn(1, &TaskParams::nice(-5)));
}

#[test]
fn a_shorter_slice_ends_the_protection() {
    for (short, kicked) in [("auto", true), ("false", false)] {
        let mut host = Host::exact(&[("profile", "6.12"), ("preempt_short", short)]);
        host.spawn(0, &TaskParams::default());
        host.pick();
        host.now = MS;
        assert_eq!(host.spawn(1, &sliced(1_000)), kicked, "d = 2 ms against 3 ms");
    }
    // As long a slice does not.
    let mut host = Host::exact(&[("profile", "6.12")]);
    host.spawn(0, &TaskParams::default());
    host.pick();
    host.now = MS;
    assert!(!host.spawn(1, &TaskParams::nice(-5)));
}

/// Protection is lost to a short task even if a third one is first; the tick acts on it.
#[test]
fn the_tick_stops_what_lost_its_protection() {
    for (short, kicked) in [("auto", true), ("false", false)] {
        let settings = [("profile", "6.12"), ("preempt_short", short), ("tick", "1ms")];
        let mut host = Host::exact(&settings);
        host.spawn(0, &TaskParams::default());
        host.pick();
        assert!(!host.tick(MS));
        // d = 1 ms + ⌊3 ms · 1024 / 88761⌋ = 1034609, before the 2 ms of the short one.
        assert!(!host.spawn(1, &TaskParams::nice(-20)));
        assert!(!host.spawn(2, &sliced(1_000)));
        assert_eq!((host.at(1).1, host.at(2).1), (1_034_609, 2 * MS));
        assert_eq!(host.tick(1), kicked);
        assert_eq!(host.rule.is_protected(TaskId(0)), !kicked);
    }
}

#[test]
fn with_a_tick_requests_are_seen_to_end_at_ticks() {
    let mut host = Host::exact(&[("tick", "2ms")]);
    assert_eq!(host.rule.tick_period(), Some(Span::from_ms(2)));
    host.spawn(0, &TaskParams::default());
    assert_eq!(host.pick_on(0), Some((0, u64::MAX)));
    assert!(!host.tick(2 * MS));
    assert!(!host.tick(2 * MS), "alone, it goes on");
    assert_eq!(host.at(0), (4 * MS, 7 * MS));
    assert!(!host.spawn(1, &TaskParams::nice(5)));
    assert!(!host.tick(2 * MS), "6 ms of 7 ms");
    assert!(host.tick(2 * MS));
    assert_eq!(host.at(0), (8 * MS, 11 * MS));
    let exact = Host::exact(&[]);
    assert_eq!(exact.rule.tick_period(), None);
}

/// Task 0 blocks at v = 2 ms, V = 1 ms: it is not eligible and stays.
fn delayed(settings: &[(&str, &str)]) -> Host {
    let mut all = alloc::vec![("profile", "6.12")];
    all.extend(settings);
    let mut host = Host::exact(&all);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::default());
    assert_eq!(host.pick(), Some(0));
    host.run(2 * MS, Off::Blocked);
    assert_eq!(host.rule.len(0), 1);
    assert_eq!(host.rule.load(0), 1024);
    assert_eq!(host.mean().weight(), 2048);
    assert_eq!(host.pick(), Some(1));
    host
}

#[test]
fn a_delayed_task_is_dropped_when_it_is_picked() {
    for (zero, lag) in [("auto", 0), ("false", 500_000)] {
        let mut host = delayed(&[("delay_zero", zero)]);
        host.run(3 * MS, Off::Expired);
        // V = 2.5 ms: task 0 (v = 2, d = 3) would be first, before task 1 (v = 3, d = 6).
        assert_eq!(host.mean().value(), VTime(2_500_000));
        assert_eq!(host.pick(), Some(1));
        assert_eq!(host.lag(0), lag);
        assert_eq!(host.mean().weight(), 1024);
        host.wake(0);
        assert_eq!(host.at(0).0, 3 * MS - 2 * lag as u64, "zero {zero}");
    }
}

#[test]
fn a_delayed_task_goes_on_when_it_wakes_early() {
    let mut host = delayed(&[]);
    host.now += MS;
    // V = 1.5 ms: its lag is −0.5 ms.
    assert!(!host.wake(0));
    assert_eq!(host.at(0), (2 * MS, 3 * MS));
    assert_eq!((host.rule.len(0), host.rule.load(0)), (1, 2048));
}

#[test]
fn a_delayed_task_that_wakes_with_lag_loses_it() {
    // V = 2.25 ms: what runs (v = 2.5 ms) is not eligible.
    let mut host = delayed(&[("delay_zero", "false")]);
    host.now += 2_500_000;
    assert!(host.wake(0));
    assert_eq!(host.at(0), (2 * MS, 3 * MS));
    // V without task 0 is 2.5 ms, where it is placed; what runs is eligible again. Up to 6.18 V
    // is as of the last charge.
    for (debt, charged) in [("false", false), ("false", true), ("true", false)] {
        let mut host = delayed(&[("delay_keeps_debt", debt)]);
        host.now += 2_500_000;
        if charged {
            assert!(!host.tick(0));
        }
        let stale = debt == "false" && !charged;
        assert_eq!(host.wake(0), stale);
        let expected = if stale { (2 * MS, 3 * MS) } else { (2_500_000, 5_500_000) };
        assert_eq!(host.at(0), expected, "{debt} {charged}");
    }
}

#[test]
fn only_sleepers_that_are_not_eligible_are_delayed() {
    let mut host = delayed(&[]);
    // V = 1 ms + 0.5 ms, v = 1 ms: eligible.
    host.run(MS, Off::Blocked);
    assert_eq!(host.lag(1), 500_000);
    assert_eq!((host.rule.len(0), host.pick()), (0, None), "the delayed one is dropped");
    for (why, settings) in [(Off::Exited, "auto"), (Off::Blocked, "false")] {
        let mut host = Host::exact(&[("profile", "6.12"), ("delay_dequeue", settings)]);
        host.spawn(0, &TaskParams::default());
        host.spawn(1, &TaskParams::default());
        host.pick();
        host.run(2 * MS, why);
        assert_eq!(host.rule.queues[0].tree.len(), 1);
    }
}

#[test]
fn a_delayed_task_can_be_detached() {
    let mut host = delayed(&[]);
    host.remove(0, Removal::Dequeue);
    assert_eq!(host.mean().weight(), 1024);
    host.run(3 * MS, Off::Expired);
    assert_eq!(host.pick(), Some(1));
}

/// The host goes on taking it for queued: what it says of it then must do no harm.
#[test]
fn a_delayed_task_may_be_dropped_unnoticed() {
    let mut host = delayed(&[("delay_zero", "false")]);
    host.run(3 * MS, Off::Expired);
    assert_eq!(host.pick(), Some(1));
    host.update(0, &TaskParams::nice(-5));
    assert_eq!(host.lag(0), 500_000 * 1024 / 3121);
    host.remove(0, Removal::Dequeue);
    assert_eq!((host.rule.len(0), host.rule.load(0), host.mean().weight()), (0, 1024, 1024));
}

/// Reniced while it is eligible, it preempts what runs by its shorter slice, and is dropped.
#[test]
fn a_delayed_task_never_runs_next() {
    for debt in ["false", "true"] {
        let mut host = delayed(&[
            ("short_runs_next", "true"),
            ("short_ends_protection", "false"),
            ("delay_keeps_debt", debt),
            ("wakeup_limits", "never"),
        ]);
        host.now += 3 * MS;
        host.update(0, &TaskParams { weight: 3121, ..sliced(100) });
        assert_eq!(host.rule.queues[0].next, None, "{debt}");
        host.put_on(0, Off::Preempted);
        assert_eq!((host.pick(), host.rule.len(0)), (Some(1), 0), "{debt}");
    }
}

#[test]
fn a_yielder_asks_one_request_later() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.pick();
    host.run(MS, Off::Yielded);
    assert_eq!(host.at(0), (MS, 3 * MS), "alone, it changes nothing");
    host.spawn(1, &TaskParams::default());
    assert_eq!(host.pick(), Some(0), "v = 1 ms each, d = 3 ms against 4 ms");
    host.run(0, Off::Yielded);
    assert_eq!(host.at(0), (MS, 6 * MS));
    assert_eq!(host.pick(), Some(1));
    host.run(MS, Off::Preempted);
    assert_eq!(host.pick(), Some(0), "v = 1 ms against 2 ms");
    host.run(0, Off::Yielded);
    assert_eq!(host.pick(), Some(0), "the only one eligible");
}

#[test]
fn a_yielder_gives_up_its_request_if_it_is_eligible() {
    let mut host = Host::exact(&[("profile", "6.12")]);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::default());
    assert_eq!(host.pick(), Some(0));
    host.run(MS, Off::Yielded);
    assert_eq!(host.at(0), (MS, 3 * MS), "not eligible: V = 0.5 ms");
    assert_eq!(host.pick(), Some(1));
    host.run(0, Off::Yielded);
    assert_eq!(host.at(1), (3 * MS, 6 * MS));
    assert_eq!(host.mean().value(), VTime(2 * MS));
    assert_eq!(host.pick(), Some(0));
}

#[test]
fn a_change_of_nice_keeps_the_mean_and_weighted_lag() {
    let mut host = Host::exact(&[("profile", "6.18")]);
    for task in 0..3 {
        host.spawn(task, &TaskParams::default());
    }
    assert_eq!(host.pick(), Some(0));
    host.run(1_500_000, Off::Preempted);
    assert_eq!(host.pick(), Some(1));
    host.now += 600_000;
    // v = 1.5, 0.6 (running), 0; V = 0.7 ms. Lag −0.8 ms · 1024 / 3121 = −262479.97 ns, inflated
    // by 3121 / 2048 to −662477, from V = 0.3 ms without it; d − v = 1.5 ms · 1024 / 3121.
    host.update(0, &TaskParams::nice(-5));
    assert_eq!(host.at(0), (962_477, 962_477 + 492_149));
    // Rounding has moved V to 699998. Task 2 to nice 5 (335): lag 699998 · 1024 / 335 = 2139695,
    // inflated by 335 / 4145 to 2312625, from V = 872929 without it; d − v = 3 ms · 1024 / 335.
    host.update(2, &TaskParams::nice(5));
    let vruntime = 872_929 - 2_312_625_i64;
    assert_eq!(host.at(2), (vruntime as u64, (vruntime + 9_170_149) as u64));
    assert_eq!(host.mean().value(), VTime(699_998));
    assert_eq!(host.rule.load(0), 3121 + 1024 + 335);
}

/// What has run so far counts at the old weight. What is left of the request is a whole new one in
/// 6.6, the same virtual time in 6.12, the same CPU time from 6.18 on.
#[test]
fn a_change_of_nice_keeps_the_request_as_each_kernel_does() {
    for (profile, ahead) in [("6.6", 984_299), ("6.12", 2 * MS), ("6.18", 656_199)] {
        let mut host = Host::exact(&[("profile", profile)]);
        host.spawn(0, &TaskParams::default());
        host.spawn(1, &TaskParams::default());
        assert_eq!(host.pick_on(0), Some((0, 3 * MS)));
        host.now = MS;
        host.update(0, &TaskParams::nice(-5));
        // Lag −0.5 ms · 1024 / 3121 = −164049.98, inflated by 3121 / 1024 to −664046.
        assert_eq!(host.at(0), (664_046, 664_046 + ahead), "{profile}");
        assert!(!host.rule.wants_pick(CpuId(0)));
        assert!(host.rule.is_protected(TaskId(0)));
        // A worse nice value than before reschedules.
        host.update(0, &TaskParams::nice(-4));
        assert!(host.rule.wants_pick(CpuId(0)));
    }
}

/// What would round to nothing is one virtual nanosecond: slices are above zero.
#[test]
fn the_shortest_request_takes_time() {
    let mut host = Host::exact(&[("profile", "6.18")]);
    host.spawn(0, &TaskParams::nice(19));
    host.pick();
    // 2999999 · 1024 / 15 = 204799931.7; the deadline is 204800000. 68 · 15 / 88761 < 1.
    host.run(2_999_999, Off::Preempted);
    host.update(0, &TaskParams::nice(-20));
    assert_eq!(host.at(0), (204_799_931, 204_799_931));
    assert_eq!(host.pick_on(0), Some((0, 1)));
    let mut host = Host::exact(&[("base_slice", "1ns")]);
    host.spawn(0, &TaskParams::nice(-20));
    assert_eq!(host.pick_on(0), Some((0, 87)), "⌈88761 / 1024⌉");
    host.run(87, Off::Expired);
    assert_eq!(host.at(0), (1, 2));
}

#[test]
fn a_change_of_nice_while_away_keeps_weighted_lag() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::default());
    host.pick();
    host.run(2 * MS, Off::Blocked);
    host.update(0, &TaskParams::nice(-5));
    assert_eq!(host.lag(0), -328_099);
}

#[test]
fn other_changes_leave_the_order_alone() {
    let mut host = Host::exact(&[]);
    for task in 0..3 {
        host.spawn(task, &TaskParams::default());
    }
    host.update(0, &pinned(0));
    assert_eq!(host.pick(), Some(0));
}

/// Task 0 has had 1 ms of its 3 ms on CPU 0 when it moves to CPU 1.
#[test]
fn a_task_that_moves_keeps_its_lag_and_its_relative_deadline() {
    for (profile, ahead) in [("6.12", 2 * MS), ("6.6", 3 * MS)] {
        let mut settings = EXACT.to_vec();
        settings.push(("profile", profile));
        let mut host = Host::with(2, true, &settings);
        host.spawn(0, &TaskParams::default());
        host.spawn(1, &TaskParams::default());
        host.attach(2, &TaskParams::default());
        host.known[2].queue = 1;
        host.enter(2, Why::New);
        assert_eq!(host.pick(), Some(0));
        assert_eq!(host.pick_on(1).unwrap().0, 2);
        host.run(MS, Off::Preempted);
        assert_eq!(host.pick(), Some(1));
        host.remove(0, Removal::Move);
        host.known[0].queue = 1;
        host.enter(0, Why::Moved);
        // On CPU 0 V = 0.5 ms; on CPU 1 task 2 runs, V = 1 ms; the lag of −0.5 ms is doubled.
        assert_eq!(host.at(0), (2 * MS, 2 * MS + ahead));
        assert_eq!((host.rule.len(0), host.rule.len(1)), (0, 1));
        assert_eq!((host.rule.load(0), host.rule.load(1)), (1024, 2048));
    }
}

/// A host that saves tasks late takes them out and puts them back: nothing has changed.
#[test]
fn a_resumed_task_is_as_it_was() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.spawn(1, &TaskParams::default());
    host.pick();
    host.run(MS, Off::Preempted);
    assert_eq!(host.pick(), Some(1));
    host.remove(0, Removal::Dequeue);
    host.enter(0, Why::Resumed);
    assert_eq!(host.at(0), (MS, 3 * MS));
}

#[test]
fn an_undone_pick_gives_no_protection() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.pick();
    host.run(0, Off::NotRun);
    host.spawn(1, &TaskParams::nice(-5));
    assert_eq!(host.pick(), Some(1));
}

#[test]
fn each_charge_is_rounded_down() {
    let mut host = Host::exact(&[("tick", "1ms")]);
    host.spawn(0, &TaskParams::nice(-20));
    host.pick();
    for (ran, vruntime) in [(86, 0), (87, 1), (86, 1), (174, 3)] {
        host.tick(ran);
        assert_eq!(host.at(0).0, vruntime);
    }
}

#[test]
fn balancing_gets_the_latest_deadline_and_nothing_delayed() {
    let mut host = delayed(&[]);
    host.spawn(2, &TaskParams::default());
    host.spawn(3, &TaskParams::nice(-5));
    // Deadlines: 0 (delayed) 3 ms, 2 about 4 ms, 3 about 2 ms.
    let mut spare = |but: Option<u32>| {
        host.call(0, |rule, at| rule.spare(at, |task| Some(task.0) != but)).map(|task| task.0)
    };
    assert_eq!((spare(None), spare(Some(2))), (Some(2), Some(3)));
    assert_eq!(host.call(0, |rule, at| rule.spare(at, |task| task == TaskId(0))), None);
}

/// If none of those that may run here is eligible, the one nearest to it is taken.
#[test]
fn a_cpu_never_idles_beside_a_task_it_may_run() {
    let mut host = Host::new(2, &[("tick", "0")]);
    for (task, cpu) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        host.spawn(task, &pinned(cpu));
    }
    for (task, ms) in [(0, 4), (1, 5)] {
        assert_eq!(host.pick_on(0).unwrap().0, task);
        host.now += ms * MS;
        host.put_on(0, Off::Preempted);
    }
    // v = 4 and 5 ms, V = 9/4 ms; tasks 2 and 3 are eligible, but may not run on CPU 0.
    assert_eq!(host.pick_on(0).unwrap().0, 0);
    assert_eq!(host.pick_on(1).unwrap().0, 2);
}

/// What another CPU has run since is not protected on the CPU where it ran before.
#[test]
fn protection_is_of_one_cpu() {
    for (cpu, next) in [(0, 1), (1, 0)] {
        let mut host = Host::new(2, &[("tick", "0")]);
        host.spawn(0, &TaskParams::default());
        for cpu in [0, 1] {
            assert_eq!(host.pick_on(cpu).unwrap().0, 0);
            host.put_on(cpu, Off::Preempted);
        }
        host.spawn(1, &TaskParams::nice(-5));
        assert_eq!(host.pick_on(cpu).unwrap().0, next, "CPU {cpu}");
    }
}

/// The search passes by tasks that may not run here and tasks that are not eligible.
#[test]
fn affinity_narrows_the_choice_to_the_eligible_that_fit() {
    let settings = [("tick", "0"), ("base_slice", "3ms"), ("tunable_scaling", "none")];
    let mut host = Host::new(2, &settings);
    host.spawn(0, &TaskParams { affinity: CpuSet::of([CpuId(1)]), ..TaskParams::nice(-5) });
    host.spawn(1, &TaskParams::nice(-3));
    host.spawn(2, &TaskParams::default());
    assert_eq!(host.pick_on(0).unwrap().0, 1);
    host.now = MS / 2;
    host.put_on(0, Off::Preempted);
    // Deadlines 0.49, 0.77 and 1.5 ms; only the second is not eligible.
    assert_eq!(host.pick_on(0).unwrap().0, 2);
}

/// The host reports less CPU time than passed, after a wake-up has charged all of it.
#[test]
fn what_was_charged_too_early_is_set_off_later() {
    let mut host = Host::exact(&[]);
    host.spawn(0, &TaskParams::default());
    host.pick();
    host.now = MS;
    host.spawn(1, &TaskParams::default());
    assert_eq!(host.at(0), (MS, 3 * MS));
    let task = host.charge_part(0, Span(400_000));
    host.put_charged(0, task, Off::Preempted);
    assert_eq!(host.at(0), (MS, 3 * MS));
    // 0.6 ms are paid already.
    assert_eq!(host.pick_on(0), Some((0, 2_600_000)));
    host.run(700_000, Off::Preempted);
    assert_eq!(host.at(0), (1_100_000, 3 * MS));
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value, text) in [
        ("base_slice", "0", "`base_slice`: from 1ns to 1s"),
        ("base_slice", "1001ms", "`base_slice`: from 1ns to 1s"),
        ("tick", "none", "`tick`: at most 1s; 0 is none"),
        ("profile", "6.7", "`profile` = \"6.7\": not one of 6.6 | 6.12 | 6.18 | 7.2 | 7.3"),
    ] {
        let error = build(1, 1, &[(name, value)]).unwrap_err();
        assert_eq!(alloc::string::ToString::to_string(&error), text);
    }
}

#[test]
fn own_slices_are_limited_and_need_the_later_profile() {
    for (us, slice) in [(1, 100), (5_000, 5_000), (200_000, 100_000)] {
        let mut host = Host::exact(&[("profile", "6.12")]);
        host.attach(0, &sliced(us));
        assert_eq!(host.rule.tasks[TaskId(0)].slice, Span::from_us(slice));
        host.attach(1, &TaskParams { period: Some(Span::from_ms(10)), ..sliced(us) });
        assert_eq!(host.rule.tasks[TaskId(1)].slice, Span::from_ms(3), "a periodic task's budget");
    }
    let mut host = Host::exact(&[]);
    host.attach(0, &sliced(5_000));
    assert_eq!(host.rule.tasks[TaskId(0)].slice, Span::from_ms(3));
}

/// The most tasks, the largest weight, the farthest they may lie from the mean, where virtual
/// time wraps: the mean is exact and nothing overflows (tests run with overflow checks).
#[test]
fn the_mean_holds_a_million_of_the_heaviest() {
    const FAR: i64 = 1 << 46;
    for weight in [88_761, u32::MAX] {
        let start = VTime(u64::MAX - 1_000);
        let mut mean = Mean::default();
        mean.add(start, 1);
        mean.remove(start, 1);
        for _ in 0..1 << 19 {
            mean.add(start.plus(FAR), weight);
        }
        assert_eq!(mean.value(), start.plus(FAR));
        for _ in 0..1 << 19 {
            mean.add(start.plus(-FAR), weight);
        }
        assert_eq!(mean.value(), start);
        assert!(mean.reached(start.plus(-FAR)) && mean.reached(start));
        assert!(!mean.reached(start.plus(1)) && !mean.reached(start.plus(FAR)));
        // Years for one of them make the zero point move.
        let years = 1 << 62;
        mean.ran(years, weight);
        assert_eq!(mean.value(), start.plus(years >> 20));
    }
}

#[test]
fn the_mean_goes_on_when_its_zero_point_follows() {
    const HOUR: i64 = 3_600_000_000_000;
    let mut mean = Mean::default();
    mean.add(VTime(0), 1024);
    mean.add(VTime(0), 3072);
    for hour in 1..=48 {
        mean.ran(HOUR, 1024);
        assert_eq!(mean.value(), VTime(hour * HOUR as u64 / 4));
    }
    mean.remove(VTime(48 * HOUR as u64), 1024);
    assert_eq!(mean.value(), VTime(0));
}

/// Reciprocals of weights as in `sched_prio_to_wmult` of `kernel/sched/core.c`: to nearest, but
/// rounded down where the kernel computes them.
#[test]
fn a_share_is_rounded_as_in_the_kernel() {
    for (weight, reciprocal, floor) in [
        (88_761, 48_388, 48_388),
        (56_483, 76_040, 76_039),
        (3_121, 1_376_151, 1_376_151),
        (335, 12_820_798, 12_820_797),
        (15, 286_331_153, 286_331_153),
    ] {
        for (rounds, reciprocal) in [(false, reciprocal), (true, floor)] {
            let share = Share::new(weight, rounds);
            let (mut factor, mut shift) = (1024_u128 * reciprocal, 32);
            while factor >> 32 > 0 {
                (factor, shift) = (factor >> 1, shift - 1);
            }
            for ran in [1, 87, 999_999, 4_000_000, 5_000_000_000, 300 * 86_400_000_000_000] {
                let distance = share.to_virtual(Span(ran));
                assert_eq!(distance as u128, (u128::from(ran) * factor) >> shift, "{weight} {ran}");
                let real = share.to_real(distance);
                assert!(real.0 <= ran && share.to_virtual(real) == distance);
                assert!(real.0 == 0 || share.to_virtual(Span(real.0 - 1)) < distance);
            }
        }
    }
    assert_eq!(Share::new(1024, true).to_virtual(Span(u64::MAX / 4)), (u64::MAX / 4) as i64);
    assert_eq!(Share::new(0, false).weight, 1);
}

#[test]
fn distances_are_converted_toward_zero() {
    let (nice_0, nice_5) = (Share::new(1024, false), Share::new(335, false));
    assert_eq!(nice_5.convert(-1_000, nice_0), -327);
    assert_eq!(nice_0.convert(1 << 60, nice_5), ((1_i128 << 70) / 335) as i64);
}

/// Task 1 wakes, is not eligible and has no earlier deadline: its wake-up ends the request of task
/// 0 all the same, as `update_curr` does.
#[test]
fn a_wakeup_ends_a_request_that_has_been_used_up() {
    for (profile, requests) in [("6.6", 750_000), ("6.12", 700_000), ("6.18", 700_000)] {
        let mut host = Host::new(1, &[("profile", profile), ("tick", "4ms")]);
        for task in 0..3 {
            host.spawn(task, &TaskParams::default());
        }
        for (task, ran) in [(0, MS / 4), (1, 2 * MS)] {
            assert_eq!(host.pick(), Some(task));
            host.run(ran, if task == 1 { Off::Blocked } else { Off::Preempted });
        }
        let running = host.pick().unwrap();
        let ahead = host.at(running).1 - host.at(running).0;
        host.now += ahead - 1;
        host.attach(3, &TaskParams::default());
        let before = host.enter(3, Why::New).is_some();
        host.now += 1;
        host.attach(4, &TaskParams::nice(19));
        assert!(host.enter(4, Why::New).is_some(), "{profile}");
        assert_eq!((before, host.at(running).1 - host.at(running).0), (false, requests));
    }
}

/// With a timer a request ends exactly if another task waits, from when it comes.
#[test]
fn the_timer_is_set_when_another_task_comes() {
    let mut host = Host::new(1, &[("profile", "7.3"), ("tick", "4ms")]);
    host.spawn(0, &TaskParams::default());
    assert_eq!(host.pick_on(0), Some((0, u64::MAX)), "0.35 ms, but alone");
    host.now = 100_000;
    assert!(host.spawn(1, &TaskParams::nice(19)), "a kick to set the timer");
    host.put_on(0, Off::Preempted);
    assert_eq!(host.pick_on(0), Some((0, 250_000)), "it goes on");
    host.run(250_000, Off::Expired);
    assert_eq!(host.at(0), (350_000, 1_050_000));
    // V has hardly moved: what has run is not eligible.
    assert_eq!(host.pick_on(0).unwrap().0, 1);
}

/// Task 0 runs into its third request without a switch: there is no new timer.
#[test]
fn who_goes_on_into_the_next_request_has_no_timer() {
    let mut host = Host::new(1, &[("profile", "7.3"), ("tick", "4ms")]);
    host.spawn(0, &TaskParams::nice(-20));
    host.spawn(1, &TaskParams::nice(19));
    // Half a request: ⌊0.7 ms · 1024 / 88761⌋ / 2 = 4037 virtual ns.
    assert_eq!(host.pick_on(0), Some((0, 349_930)));
    host.run(349_930, Off::Expired);
    assert_eq!(host.at(0), (4_037, 4_037 + 8_075));
    // V is just below: task 1 is next, for half a request too.
    assert_eq!(host.pick_on(0), Some((1, 350_000)));
    host.run(350_000, Off::Expired);
    // Task 1 is at 23893333, V at 8073.
    let (task, slice) = host.pick_on(0).unwrap();
    assert_eq!(task, 0);
    host.run(slice, Off::Expired);
    assert_eq!(host.at(0).0, 4_037 + 8_075);
    assert_eq!(host.pick_on(0), Some((0, u64::MAX)));
}

/// Profile 7.3: while a shorter slice waits, what runs is protected until it is not eligible.
#[test]
fn protection_beside_shorter_slices_is_as_in_each_kernel() {
    // Tasks of 3 ms and, at first place, 0.1 ms; all at v = 0.
    for (profile, protected) in [("6.12", 3 * MS), ("6.18", 100_000), ("7.2", 100_000), ("7.3", 1)]
    {
        let mut host = Host::exact(&[("profile", profile)]);
        host.spawn(0, &TaskParams::default());
        host.spawn(1, &TaskParams::default());
        host.spawn(2, &sliced(100));
        assert_eq!(host.pick(), Some(2));
        host.run(1, Off::Preempted);
        assert_eq!(host.pick(), Some(0));
        assert_eq!(host.rule.tasks[TaskId(0)].protection, VTime(protected), "{profile}");
    }
}

/// The running task is eligible and protected when a shorter slice wakes, whose deadline is later
/// than that of a third task.
#[test]
fn a_shorter_slice_that_is_not_first_does_as_in_each_kernel() {
    for (profile, ends, preempts) in
        [("6.12", true, false), ("6.18", false, false), ("7.2", false, false), ("7.3", true, true)]
    {
        let settings = [("profile", profile), ("tick", "10ms"), ("hrtick", "false")];
        let mut host = Host::exact(&settings);
        host.spawn(0, &TaskParams::default());
        host.pick();
        host.now = MS;
        // d = 1 ms + 3 ms · 1024 / 88761, before the 2 ms of the short one.
        assert!(!host.spawn(1, &TaskParams::nice(-20)), "{profile}");
        assert_eq!(host.spawn(2, &sliced(1_000)), preempts, "{profile}");
        assert_eq!(host.rule.is_protected(TaskId(0)), !ends, "{profile}");
        if preempts {
            host.put_on(0, Off::Preempted);
            assert_eq!(host.pick(), Some(2), "in spite of the earlier deadline");
        }
    }
}

#[test]
fn lag_is_limited_as_in_each_kernel() {
    // Its own slice of 0.5 ms twice, but a tick at least; or the longest and a tick.
    for (profile, tick, limit) in
        [("6.12", "1ms", MS), ("6.12", "4ms", 4 * MS), ("7.2", "1ms", 4 * MS)]
    {
        let mut host = Host::exact(&[("profile", profile), ("tick", tick)]);
        host.spawn(0, &TaskParams::default());
        host.spawn(1, &sliced(500));
        assert_eq!(host.pick(), Some(1));
        host.run(100 * MS, Off::Preempted);
        // V = 50 ms.
        let lag = host.call(0, |rule, at| rule.lag(at, TaskId(1)));
        assert_eq!(lag, -(limit as i64), "{profile} {tick}");
    }
}
