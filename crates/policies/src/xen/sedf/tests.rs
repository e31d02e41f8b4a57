//! Schedules and decisions worked out by hand.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::policy;
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, Machine, Off, Scheduler,
    Span, TaskId, TaskParams, Time,
};
use anysched_oracle::drive;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn ms(n: u64) -> Option<Span> {
    Some(Span::from_ms(n))
}

/// A vCPU that may use `slice` ms of each `period` ms.
fn budget(period: u64, slice: u64) -> TaskParams {
    TaskParams { period: ms(period), budget: ms(slice), ..TaskParams::default() }
}

struct Drive {
    policy: Box<dyn Scheduler>,
    now: u64,
    kicks: CpuMask,
}

impl Drive {
    fn new(cpus: usize, name: &str, settings: &[(&str, &str)]) -> Drive {
        let policy = policy(name).unwrap();
        let policy = (policy.build)(&Machine::flat(cpus).unwrap(), settings).unwrap();
        Drive { policy, now: 0, kicks: CpuMask::EMPTY }
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>) -> R) -> R {
        call(&mut *self.policy, &mut Cx::new(Time(self.now), &mut self.kicks))
    }

    fn attach(&mut self, task: u32, params: &TaskParams) {
        self.call(|policy, cx| policy.attach(cx, TaskId(task), params));
    }

    fn wake(&mut self, task: u32) {
        let why = Enqueue::Wakeup { prev: CpuId(0), sync: false };
        self.call(|policy, cx| policy.enqueue(cx, TaskId(task), Arrival::because(why)));
    }

    fn start(&mut self, task: u32, params: &TaskParams) {
        self.attach(task, params);
        self.wake(task);
    }

    /// The task that `cpu` is given, and its slice in us.
    fn pick(&mut self, cpu: u16) -> Option<(u32, u64)> {
        let pick = self.call(|policy, cx| policy.pick_next(cx, CpuId(cpu)));
        self.kicks.remove(CpuId(cpu));
        pick.map(|pick| (pick.task.0, pick.slice.0 / US))
    }

    fn put(&mut self, task: u32, ran: u64, why: Off) {
        self.call(|policy, cx| policy.put_prev(cx, CpuId(0), TaskId(task), Span(ran), why));
    }

    /// Lets `task`, which runs on CPU 0, run for `us` more and be put back.
    fn run(&mut self, task: u32, us: u64, why: Off) {
        self.now += us * US;
        self.put(task, us * US, why);
    }

    fn kicked(&mut self) -> Vec<u16> {
        drive::kicked(&mut self.kicks)
    }

    fn probe(&self, task: u32, name: &str) -> i64 {
        drive::probe(&*self.policy, task, name)
    }

    /// What CPU 0 runs up to `until` us if no task blocks: (from us, task); 99 stands for idle.
    fn play(&mut self, until: u64) -> Vec<(u64, u32)> {
        let mut played: Vec<(u64, u32)> = Vec::new();
        while self.now < until * US {
            let pick = self.pick(0);
            let task = pick.map_or(99, |(task, _)| task);
            if played.last().is_none_or(|last| last.1 != task) {
                played.push((self.now / US, task));
            }
            match pick {
                Some((task, us)) => self.run(task, us, Off::Expired),
                None => {
                    let Some(due) = self.policy.next_timer() else { break };
                    self.now = due.0;
                    self.call(|policy, cx| policy.timer(cx));
                    assert_eq!(self.kicked(), [0]);
                }
            }
        }
        played
    }
}

#[test]
fn the_first_two_slices_are_contiguous() {
    let mut drive = Drive::new(1, "sedf", &[("extra", "off"), ("slice", "50ms")]);
    drive.start(0, &TaskParams::default());
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(
        drive.play(300_000),
        [(0, 0), (100_000, 99), (150_000, 0), (200_000, 99), (250_000, 0)]
    );
}

#[test]
fn the_first_period_may_begin_otherwise() {
    let play = |start| {
        let settings = [("extra", "off"), ("slice", "50ms"), ("start", start)];
        let mut drive = Drive::new(1, "sedf", &settings);
        drive.start(0, &TaskParams::default());
        drive.play(150_000)
    };
    assert_eq!(play("period"), [(0, 0), (50_000, 99), (100_000, 0)]);
    assert_eq!(play("wait"), [(0, 99), (50_000, 0), (100_000, 99)]);
}

#[test]
fn the_earliest_deadline_runs_and_budgets_end() {
    let mut drive =
        Drive::new(1, "sedf", &[("extra", "off"), ("slice", "1ms"), ("start", "period")]);
    drive.start(0, &budget(10, 4));
    drive.start(1, &budget(20, 8));
    // At 10 ms task 0 has a new period, which ends when 1's does: it is behind it.
    let expected = [(0, 0), (4_000, 1), (12_000, 0), (16_000, 99), (20_000, 0), (24_000, 1)];
    assert_eq!(drive.play(28_000), expected);
}

#[test]
fn a_miss_is_found_when_a_cpu_decides_after_it() {
    let mut drive =
        Drive::new(1, "sedf", &[("extra", "off"), ("slice", "1ms"), ("start", "period")]);
    drive.start(0, &budget(100, 60));
    drive.start(1, &budget(100, 60));
    let expected = [
        (0, 0),
        (60_000, 1),
        // 1 ends 20 ms late, 0 has the deadline 200.
        (120_000, 0),
        (180_000, 1),
        // 1 ends 40 ms late.
        (240_000, 0),
        (300_000, 1),
        // Both have the deadline 400 and 1 ends in time.
        (360_000, 0),
    ];
    assert_eq!(drive.play(420_000), expected);
    assert_eq!(drive.probe(1, "misses"), 0);
    // At 420 ms, 1 is late for 400 and gets a fresh slice until 500, behind 0.
    assert_eq!(drive.play(540_000), [(420_000, 0), (480_000, 1)]);
    assert_eq!(drive.probe(1, "misses"), 1);
}

#[test]
fn dm_prefers_the_shortest_slice_and_the_longest_starves() {
    let slices = [50, 30, 40];
    let play = |settings: &[(&str, &str)]| {
        let own = [("extra", "off"), ("slice", "1ms"), ("start", "period")];
        let mut drive = Drive::new(1, "dm-xen", &[&own, settings].concat());
        for (task, slice) in (0..).zip(slices) {
            drive.start(task, &budget(100, slice));
        }
        drive.play(250_000)
    };
    let expected = [(0, 1), (30_000, 2), (70_000, 0), (100_000, 1), (130_000, 2), (170_000, 0)];
    assert_eq!(play(&[])[..6], expected);
    // With equal periods, the period decides nothing: they run as they came, and 2 is still there
    // at 100.
    assert_eq!(
        play(&[("dm_key", "period")])[..4],
        [(0, 0), (50_000, 1), (80_000, 2), (120_000, 0)]
    );
}

/// One vCPU with 50 of 100 ms that has run for 10.
fn blocked_at_10(settings: &[(&str, &str)]) -> Drive {
    let own = [("slice", "50ms"), ("start", "period")];
    let mut drive = Drive::new(1, "sedf", &[&own, settings].concat());
    drive.start(0, &TaskParams::default());
    assert_eq!(drive.pick(0), Some((0, 50_000)));
    drive.run(0, 10_000, Off::Blocked);
    assert_eq!(drive.pick(0), None);
    assert_eq!(drive.policy.next_timer(), None);
    drive
}

#[test]
fn a_short_block_costs_the_rest_of_the_slice_and_gives_a_turn_of_extra_time() {
    for extra in ["on", "off"] {
        let mut drive = blocked_at_10(&[("extra", extra)]);
        drive.now = 30 * MS;
        drive.wake(0);
        assert_eq!(drive.kicked(), [0]);
        assert_eq!(drive.probe(0, "deadline_ns"), 200_000_000);
        // 100 ms / 40 ms lost, in 1/1024.
        assert_eq!(drive.probe(0, "penalty_score"), 2_560);
        assert_eq!(drive.pick(0), Some((0, 500)), "its turn on L0");
        drive.run(0, 500, Off::Expired);
        match extra {
            "on" => assert_eq!(drive.pick(0), Some((0, 500)), "on L1"),
            _ => assert_eq!(drive.pick(0), None),
        }
        if extra == "off" {
            assert_eq!(drive.policy.next_timer(), Some(Time(100 * MS)));
            assert_eq!(drive.play(150_001), [(30_500, 99), (100_000, 0), (150_000, 99)]);
        }
    }
}

#[test]
fn a_long_block_starts_a_period() {
    let mut drive = blocked_at_10(&[]);
    drive.now = 130 * MS;
    drive.wake(0);
    assert_eq!(drive.pick(0), Some((0, 50_000)));
    assert_eq!(drive.probe(0, "deadline_ns"), 230_000_000);
    // Exactly at the deadline counts as long, too.
    let mut drive = blocked_at_10(&[]);
    drive.now = 100 * MS;
    drive.wake(0);
    assert_eq!(drive.probe(0, "deadline_ns"), 200_000_000);
    assert_eq!(drive.pick(0), Some((0, 50_000)));
}

#[test]
fn a_block_in_extra_time_changes_nothing() {
    let mut drive = Drive::new(1, "sedf", &[("slice", "50ms"), ("start", "period")]);
    drive.start(0, &TaskParams::default());
    assert_eq!(drive.pick(0), Some((0, 50_000)));
    drive.run(0, 50_000, Off::Expired);
    assert_eq!(drive.pick(0), Some((0, 500)));
    drive.run(0, 200, Off::Blocked);
    assert_eq!(drive.pick(0), None);
    drive.now = 60 * MS;
    drive.wake(0);
    assert_eq!(drive.probe(0, "deadline_ns"), 200_000_000);
    // By utilisation: 100 ms / 50 ms, in 1/1024.
    assert_eq!(drive.probe(0, "utilisation_score"), 2_048);
    assert_eq!(drive.pick(0), Some((0, 500)));
    // Extra time ends half a millisecond before the period begins; then it is a slice again.
    drive.put(0, 0, Off::NotRun);
    drive.now = 99_501 * US;
    assert_eq!(drive.pick(0), None);
    drive.now = 100 * MS;
    assert_eq!(drive.pick(0), Some((0, 50_000)));
}

#[test]
fn an_uncompensated_penalty_outlives_a_sleep() {
    let mut drive = blocked_at_10(&[("extra", "off")]);
    drive.now = 30 * MS;
    drive.wake(0);
    drive.call(|policy, cx| policy.dequeue(cx, TaskId(0)));
    assert_eq!(drive.pick(0), None);
    drive.now = 40 * MS;
    drive.wake(0);
    assert_eq!(drive.pick(0), Some((0, 500)));
}

#[test]
fn after_a_long_block_periods_are_short_and_double() {
    let mut drive = blocked_at_10(&[("latency", "10ms"), ("extra", "off")]);
    drive.now = 130 * MS;
    drive.wake(0);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let (_, us) = drive.pick(0).unwrap();
        seen.push((drive.now / MS, us / 1_000, drive.probe(0, "period_ns") / 1_000_000));
        drive.run(0, us, Off::Expired);
        if drive.pick(0).is_none() {
            drive.now = drive.policy.next_timer().unwrap().0;
        } else {
            drive.put(0, 0, Off::NotRun);
        }
    }
    // The next period is a doubled one and ends that much after the last deadline, so it begins
    // when the last one did or later: 140 + 20, 160 + 40, 200 + 80, 280 + 100.
    let expected = [(130, 5, 10), (140, 10, 20), (160, 20, 40), (200, 40, 80), (280, 50, 100)];
    assert_eq!(seen, expected);
}

#[test]
fn penalties_go_before_weights_and_the_largest_loss_first() {
    let mut drive = Drive::new(1, "sedf", &[("start", "period")]);
    for (task, slice) in [(0, 50), (1, 20)] {
        drive.start(task, &budget(100, slice));
    }
    drive.start(2, &TaskParams::default());
    // The one with the longer slice loses more, and is served first though it wakes last.
    assert_eq!(drive.pick(0), Some((0, 50_000)));
    drive.run(0, 1_000, Off::Blocked);
    assert_eq!(drive.pick(0), Some((1, 20_000)));
    drive.run(1, 1_000, Off::Blocked);
    assert_eq!(drive.pick(0), Some((2, 500)));
    drive.kicked();
    drive.wake(1);
    assert_eq!(drive.kicked(), [0], "L0 before L1");
    drive.run(2, 100, Off::Preempted);
    assert_eq!(drive.pick(0), Some((1, 500)));
    drive.wake(0);
    assert_eq!(drive.kicked(), [0], "score 2089 before 5389");
    drive.run(1, 100, Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, 500)));
    assert_eq!(drive.probe(0, "penalty_score"), 102_400 / 49);
    // A turn cut short is a turn.
    drive.run(0, 500, Off::Expired);
    assert_eq!(drive.probe(1, "penalty_score"), 102_400 / 19);
    // On L1 neither has had a turn; 1 woke up first.
    assert_eq!(drive.pick(0), Some((1, 500)));
}

#[test]
fn a_woken_task_with_a_later_period_does_not_interrupt_a_slice() {
    let mut drive =
        Drive::new(1, "sedf", &[("start", "period"), ("extra", "off"), ("slice", "5ms")]);
    drive.start(0, &budget(100, 50));
    drive.start(1, &budget(200, 50));
    assert_eq!(drive.pick(0), Some((0, 50_000)));
    drive.run(0, 10_000, Off::Blocked);
    assert_eq!(drive.pick(0), Some((1, 50_000)));
    drive.kicked();
    drive.now += 10 * MS;
    // A short block: its next period begins at 100 ms, the slice of 1 ends at 60.
    drive.wake(0);
    assert_eq!(drive.kicked(), []);
    // A new one with a later deadline that may run makes the CPU decide again: its task goes on.
    drive.start(2, &budget(1_000, 10));
    assert_eq!(drive.kicked(), [0]);
    drive.put(1, 10 * MS, Off::Preempted);
    assert_eq!(drive.pick(0), Some((1, 40_000)));
}

/// How many of `turns` turns of extra time each of two tasks gets.
fn turns(settings: &[(&str, &str)], weights: [u32; 2], turns: usize) -> [usize; 2] {
    let mut drive = Drive::new(1, "sedf", settings);
    for (task, weight) in (0..).zip(weights) {
        let domain = DomainId(task as u16);
        let params = DomainParams { weight, cap_percent: 0 };
        drive.call(|policy, cx| policy.set_domain(cx, domain, &params));
        drive.start(task, &TaskParams { domain, ..TaskParams::default() });
    }
    let mut counts = [0; 2];
    while counts[0] + counts[1] < turns {
        match drive.pick(0) {
            Some((task, us)) => {
                assert_eq!(us, 500);
                counts[task as usize] += 1;
                drive.run(task, us, Off::Expired);
            }
            None => drive.now = drive.policy.next_timer().unwrap().0,
        }
    }
    counts
}

#[test]
fn best_effort_shares_evenly_or_by_weight() {
    assert_eq!(turns(&[], [256, 512], 300), [150, 150], "weights are off");
    assert_eq!(turns(&[("weights", "extra")], [256, 512], 300), [100, 200]);
    assert_eq!(turns(&[("weights", "extra")], [100, 700], 800), [100, 700]);
}

#[test]
fn slices_by_weight_share_what_slices_of_their_own_leave() {
    let mut drive = Drive::new(1, "sedf", &[("weights", "slices"), ("extra", "off")]);
    let of = |domain| TaskParams { domain: DomainId(domain), ..TaskParams::default() };
    let weight = |drive: &mut Drive, domain, weight| {
        let params = DomainParams { weight, cap_percent: 0 };
        drive.call(|policy, cx| policy.set_domain(cx, DomainId(domain), &params));
    };
    drive.start(0, &of(0));
    assert_eq!(drive.probe(0, "slice_ns"), 95_000_000);
    drive.attach(1, &of(1));
    assert_eq!(drive.probe(0, "slice_ns"), 47_500_000);
    weight(&mut drive, 1, 512);
    // 10 of 50 ms is 20 of 100: 75 are left.
    drive.attach(2, &budget(50, 10));
    let slices = |drive: &Drive| [0, 1, 2].map(|task| drive.probe(task, "slice_ns") / 1_000_000);
    assert_eq!(slices(&drive), [25, 50, 10]);
    drive.call(|policy, cx| policy.update(cx, TaskId(2), &budget(50, 30)));
    assert_eq!(slices(&drive), [11, 23, 30]);
    drive.call(|policy, cx| policy.detach(cx, TaskId(2)));
    assert_eq!(drive.probe(0, "slice_ns"), 31_666_666);
    // With nothing left it gets as little as Xen allows.
    drive.attach(2, &budget(50, 50));
    assert_eq!(drive.probe(0, "slice_ns"), 5_000);
}

#[test]
fn placement_and_affinity() {
    let on = |drive: &Drive, task| drive.probe(task, "runqueue");
    let mut first = Drive::new(4, "sedf", &[]);
    let mut spread = Drive::new(4, "sedf", &[("placement", "spread")]);
    let pinned = TaskParams { affinity: CpuSet::of([CpuId(1), CpuId(3)]), ..TaskParams::default() };
    for drive in [&mut first, &mut spread] {
        (0..5).for_each(|task| drive.attach(task, &TaskParams::default()));
        (5..8).for_each(|task| drive.attach(task, &pinned));
        // The number counts within the domain.
        drive.attach(8, &TaskParams { domain: DomainId(7), ..TaskParams::default() });
    }
    assert_eq!([0, 1, 4, 5, 7, 8].map(|task| on(&first, task)), [0, 0, 0, 1, 1, 0]);
    // The first of {1, 3} from number mod 2 on.
    assert_eq!([0, 1, 4, 5, 7, 8].map(|task| on(&spread, task)), [0, 1, 0, 1, 1, 0]);
}

#[test]
fn affinity_moves_a_task_as_if_it_had_slept() {
    let mut drive =
        Drive::new(2, "sedf", &[("start", "period"), ("extra", "off"), ("slice", "50ms")]);
    drive.start(0, &TaskParams::default());
    drive.start(1, &TaskParams::default());
    assert_eq!(drive.pick(0), Some((0, 50_000)));
    drive.now = 20 * MS;
    let there = TaskParams { affinity: CpuSet::of([CpuId(1)]), ..TaskParams::default() };
    // A waiting one moves at once; within its period that is a short block.
    drive.kicked();
    drive.call(|policy, cx| policy.update(cx, TaskId(1), &there));
    assert_eq!(drive.kicked(), [1]);
    assert_eq!([drive.probe(1, "runqueue"), drive.probe(1, "deadline_ns")], [1, 200_000_000]);
    assert_eq!(drive.pick(1), None);
    assert_eq!(drive.policy.next_timer(), Some(Time(100 * MS)));
    // A running one moves when it is taken off, and counts as blocked.
    drive.call(|policy, cx| policy.update(cx, TaskId(0), &there));
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, 20 * MS, Off::Preempted);
    assert_eq!(drive.kicked(), [1]);
    assert_eq!(drive.pick(0), None);
    assert_eq!(drive.pick(1), Some((0, 500)), "its penalty");
    // One that blocks before it is taken off wakes up there.
    drive.start(2, &TaskParams::default());
    assert_eq!(drive.pick(0), Some((2, 50_000)));
    drive.call(|policy, cx| policy.update(cx, TaskId(2), &there));
    drive.put(2, 0, Off::Blocked);
    assert_eq!(drive.probe(2, "runqueue"), 1);
    // An affinity that includes its CPU moves nothing.
    let both = TaskParams::default();
    drive.call(|policy, cx| policy.update(cx, TaskId(1), &both));
    assert_eq!(drive.probe(1, "runqueue"), 1);
}

#[test]
fn tasks_leave_a_cpu_that_goes() {
    let mut drive = Drive::new(2, "sedf", &[("start", "period")]);
    for task in 0..3 {
        drive.start(task, &budget(100, 20));
    }
    drive.attach(3, &budget(100, 20));
    assert_eq!(drive.pick(0), Some((0, 20_000)));
    drive.now = 5 * MS;
    drive.kicked();
    drive.call(|policy, cx| policy.set_online(cx, CpuId(0), false));
    drive.put(0, 5 * MS, Off::Preempted);
    assert_eq!([0, 1, 2, 3].map(|task| drive.probe(task, "runqueue")), [1; 4]);
    assert!(drive.kicked().contains(&1));
    assert_eq!(drive.policy.next_timer(), Some(Time(100 * MS)));
    assert_eq!(drive.pick(0), None);
    // 0 has run and so lost 15 ms; the others have never blocked.
    assert_eq!(drive.pick(1), Some((0, 500)));
    drive.call(|policy, cx| policy.set_online(cx, CpuId(0), true));
    drive.attach(4, &budget(100, 20));
    assert_eq!([3, 4].map(|task| drive.probe(task, "runqueue")), [1, 0]);
}

#[test]
fn taking_out_for_a_moment_is_no_sleep() {
    let mut drive = Drive::new(1, "sedf", &[("start", "period"), ("slice", "50ms")]);
    drive.start(0, &TaskParams::default());
    drive.start(1, &TaskParams::default());
    assert_eq!(drive.pick(0), Some((0, 50_000)));
    drive.run(0, 10_000, Off::Preempted);
    drive.call(|policy, cx| policy.dequeue(cx, TaskId(0)));
    assert_eq!(drive.pick(0), Some((1, 50_000)));
    let why = Enqueue::Resumed { prev: CpuId(0) };
    drive.call(|policy, cx| policy.enqueue(cx, TaskId(0), Arrival::because(why)));
    assert_eq!(drive.probe(0, "deadline_ns"), 100_000_000);
    drive.run(1, 50_000, Off::Expired);
    assert_eq!(drive.pick(0), Some((0, 40_000)), "what was left");
}

#[test]
fn settings_with_which_a_task_would_never_run_are_refused() {
    for (name, settings, word) in [
        ("sedf", &[("extra", "off")][..], "`slice`"),
        ("sedf", &[("slice", "200ms")], "`slice`"),
        ("sedf", &[("slice", "4us")], "`slice`"),
        ("sedf", &[("period", "11s")], "`period`"),
        ("sedf", &[("period", "300us")], "`period`"),
        ("sedf", &[("latency", "9us")], "`latency`"),
        ("dm-xen", &[("weights", "extra"), ("extra", "off")], "`weights`"),
        ("d-edf", &[("mets_to_edf", "0")], "`mets_to_edf`"),
        ("sedf-dm", &[("window", "0")], "`window`"),
    ] {
        let error = (policy(name).unwrap().build)(&Machine::flat(1).unwrap(), settings);
        let error = error.err().expect("refused").to_string();
        assert!(error.contains(word), "{settings:?}: {error}");
    }
}

#[test]
fn a_change_of_the_order_looks_at_all_of_the_runqueue() {
    let settings = [("misses_to_dm", "1"), ("extra", "off"), ("slice", "1ms")];
    let mut drive = Drive::new(1, "d-edf", &settings);
    (0..3).for_each(|task| drive.start(task, &budget(10, 4)));
    let scanned = |drive: &mut Drive| {
        drive.call(|policy, cx| {
            policy.pick_next(cx, CpuId(0));
            cx.work.scanned
        })
    };
    assert_eq!(scanned(&mut drive), 1, "the first is on time");
    drive.run(0, 4_000, Off::Expired);
    drive.now += US;
    // Of 1 and 2 the deadline, at 4 ms, is past; 0 is in its next period. Then 3 are sorted anew.
    assert_eq!(scanned(&mut drive), 3 + 3);
    assert_eq!(drive.probe(0, "switches"), 1);
}

#[test]
fn those_with_deadline_monotonic_order_say_that_they_starve() {
    let starves = |name| (policy(name).unwrap().nature)(&[]).unwrap().starves;
    assert_eq!(["sedf", "dm-xen", "d-edf", "sedf-dm"].map(starves), [false, true, true, true]);
}
