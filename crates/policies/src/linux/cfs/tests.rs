//! Times are for 8 CPUs unless a test says otherwise: latency 24 ms, min_granularity 3 ms,
//! wakeup_granularity 4 ms.

mod on_cpus;

use alloc::vec::Vec;
use proptest::prelude::*;

use super::{Cfs, CfsParams, Key};
use anysched_core::params::Params;
use anysched_core::registry::Policy;
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, Whereabouts, Why};
use anysched_core::{CpuId, Machine, Off, Span, TaskId, TaskParams, Time, VTime};

const MS: i64 = 1_000_000;

/// Half of 24 ms, and a third, by rounded inverses of weights.
const HALF: Span = Span(11_999_994);
const THIRD: Span = Span(7_999_998);

const fn ms(n: u64) -> Span {
    Span::from_ms(n)
}

/// The rule for one CPU of a machine of 8, with tasks where a test wants them.
struct Rule {
    cfs: Cfs,
    now: Time,
    running: [Running; 1],
}

macro_rules! at {
    ($rule:ident) => {
        At { now: $rule.now, queue: 0, running: &$rule.running }
    };
}

impl Rule {
    fn new(settings: &[(&str, &str)]) -> Rule {
        let mut params = CfsParams::default();
        settings.iter().for_each(|(name, text)| params.set(name, text).unwrap());
        let nobody = Running::new(CpuId(0), None, Time::ZERO);
        Rule {
            cfs: Cfs::build(&Machine::flat(8).unwrap(), 1, &params).unwrap(),
            now: Time::ZERO + ms(1000),
            running: [nobody],
        }
    }

    /// `task` sleeps, with this vruntime.
    fn sleeps(&mut self, task: u32, nice: i8, vruntime: i64) {
        self.cfs.attach(TaskId(task), &TaskParams::nice(nice));
        let state = &mut self.cfs.tasks[TaskId(task)];
        (state.vruntime, state.queue) = (VTime(0).plus(vruntime), 0);
    }

    fn push(&mut self, task: u32, why: Why) {
        self.cfs.push(&at!(self), TaskId(task), &Entry::because(why));
    }

    /// `task` waits, with this vruntime.
    fn waits(&mut self, task: u32, nice: i8, vruntime: i64) {
        self.sleeps(task, nice, vruntime);
        self.push(task, Why::Resumed);
    }

    /// `task` has just been picked, with this vruntime.
    fn runs(&mut self, task: u32, nice: i8, vruntime: i64) {
        self.waits(task, nice, vruntime);
        assert_eq!(self.pick_of(|other| other == TaskId(task)), Some(task));
    }

    fn pick(&mut self) -> Option<u32> {
        self.pick_of(|_| true)
    }

    fn pick_of(&mut self, fits: impl Fn(TaskId) -> bool) -> Option<u32> {
        let task = self.cfs.pop(&at!(self), CpuId(0), fits)?.0;
        self.running[0] = Running::new(CpuId(0), Some(TaskId(task)), self.now);
        Some(task)
    }

    /// Charges what has passed to the running task.
    fn charge(&mut self) -> TaskId {
        let task = self.running[0].task().unwrap();
        let ran = self.now - self.running[0].since();
        self.cfs.charge(&at!(self), task, ran);
        self.running[0] = Running::new(CpuId(0), Some(task), self.now);
        task
    }

    fn tick_after(&mut self, span: Span) -> bool {
        self.now += span;
        let task = self.charge();
        self.cfs.tick(&at!(self), task)
    }

    /// The running task stops as `why`.
    fn off(&mut self, why: Off) {
        let task = self.charge();
        self.running[0] = Running::new(CpuId(0), None, self.now);
        if why.runnable() {
            self.push(task.0, Why::Put(why));
        } else {
            assert!(!self.cfs.leave(&at!(self), task, why));
        }
    }

    /// The running task stops as `why`, and the next one is picked.
    fn next(&mut self, why: Off) -> Option<u32> {
        self.off(why);
        self.pick()
    }

    /// `task` wakes up. Whether it preempts.
    fn wake(&mut self, task: u32) -> bool {
        self.push(task, Why::Woken);
        self.cfs.preempts(&at!(self), TaskId(task), &self.running[0]).is_some()
    }

    fn vruntime(&self, task: u32) -> i64 {
        self.cfs.tasks[TaskId(task)].vruntime.minus(VTime(0))
    }

    fn min_vruntime(&self) -> i64 {
        self.cfs.queues[0].min_vruntime.minus(VTime(0))
    }
}

#[test]
fn the_least_vruntime_runs_and_of_equals_who_came_first() {
    let mut rule = Rule::new(&[]);
    for (task, vruntime) in [(0, 9), (1, 5), (2, -7), (3, 5), (4, 5)] {
        rule.waits(task, 0, vruntime);
    }
    let order: Vec<_> = core::iter::from_fn(|| {
        let task = rule.pick();
        if task.is_some() {
            rule.off(Off::Blocked);
        }
        task
    })
    .collect();
    assert_eq!(order, [2, 1, 3, 4, 0]);
}

#[test]
fn vruntime_may_wrap() {
    let key = |vruntime, arrival| Key { vruntime: VTime(vruntime), arrival };
    assert!(key(u64::MAX, 1) < key(3, 0));
    assert!(key(3, 0) < key(3, 1));
    let mut rule = Rule::new(&[]);
    rule.waits(0, 0, i64::MAX - 1);
    rule.waits(1, 0, i64::MIN + 1);
    assert_eq!(rule.pick(), Some(0), "3 ns before task 1");
}

#[test]
fn only_a_task_that_fits_is_picked() {
    let mut rule = Rule::new(&[]);
    for task in 0..4 {
        rule.waits(task, 0, task.into());
    }
    assert_eq!(rule.pick_of(|task| task.0 > 1), Some(2));
}

#[test]
fn vruntime_grows_by_weight() {
    let mut rule = Rule::new(&[]);
    for (task, nice, expected) in [(0, 0, 5_000_000), (1, 5, 15_283_582), (2, -20, 57_682)] {
        rule.runs(task, nice, 0);
        rule.now += ms(5);
        rule.off(Off::Blocked);
        assert_eq!(rule.vruntime(task), expected, "5 ms · 1024 / weight of nice {nice}");
    }
}

#[test]
fn a_slice_is_over_when_it_has_been_exceeded() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    // Beyond reach of vruntime, so that only the time since the pick counts.
    rule.waits(1, 0, 1000 * MS);
    assert!(!rule.tick_after(HALF));
    assert!(rule.tick_after(Span(1)));
}

#[test]
fn who_is_picked_again_goes_on_with_its_slice_since_3_15() {
    for (profile, still_over) in [("3.14", false), ("3.15", true)] {
        let mut rule = Rule::new(&[("profile", profile)]);
        rule.runs(0, 0, 0);
        rule.waits(1, 0, 1000 * MS);
        assert!(rule.tick_after(ms(12)));
        assert_eq!(rule.next(Off::Preempted), Some(0), "still the first");
        assert_eq!(rule.tick_after(ms(1)), still_over, "{profile}");
        // Who leaves, or lets another one run, begins anew.
        assert_eq!(rule.next(Off::Blocked), Some(1));
        rule.push(0, Why::Woken);
        assert_eq!(rule.next(Off::Preempted), Some(0));
        assert!(!rule.tick_after(ms(1)), "{profile}");
    }
}

#[test]
fn who_is_picked_again_remains_a_buddy_since_5_14() {
    for (profile, picked) in [("5.12", Some(0)), ("5.14", Some(1))] {
        let mut rule = Rule::new(&[("profile", profile)]);
        rule.runs(0, 0, 0);
        rule.waits(1, 0, 5 * MS);
        assert_eq!(rule.next(Off::Yielded), Some(0), "task 1 is 5 ms behind it, not 4");
        rule.now += ms(2);
        assert_eq!(rule.next(Off::Preempted), picked, "{profile}");
    }
}

#[test]
fn slices_have_bounds_in_later_kernels() {
    let over = |profile, nice, ran| {
        let mut rule = Rule::new(&[("profile", profile)]);
        rule.runs(0, nice, 0);
        (1..16).for_each(|task| rule.waits(task, 19, 1000 * MS));
        rule.tick_after(ran)
    };
    // Nice 19 among 16 of them has a slice of 3 ms; nice -20, nearly the whole period of 48 ms.
    assert!(!over("6.1", -20, ms(47)) && over("6.1", -20, ms(48)));
    assert!(!over("6.5", -20, ms(24)) && over("6.5", -20, Span(24_000_001)));
    let beside_nice_0 = |profile, ran| {
        let mut rule = Rule::new(&[("profile", profile)]);
        rule.runs(0, 19, 0);
        rule.waits(1, 0, 1000 * MS);
        rule.tick_after(ran)
    };
    // 15 of 1039 parts of 24 ms.
    assert!(!beside_nice_0("4.19", Span(346_487)) && beside_nice_0("4.19", Span(346_488)));
    assert!(!beside_nice_0("5.12", ms(3)) && beside_nice_0("5.12", Span(3_000_001)));
}

#[test]
fn sched_idle_has_shorter_slices_and_less_credit_since_6_1() {
    let idle = TaskParams { weight: 3, ..TaskParams::default() };
    let kernels = [("5.14", ms(3), ms(12)), ("6.1", Span(750_000), Span(1_500_000))];
    for (profile, slice, credit) in kernels {
        let mut rule = Rule::new(&[("profile", profile)]);
        rule.cfs.attach(TaskId(0), &idle);
        rule.push(0, Why::Resumed);
        assert_eq!(rule.pick(), Some(0));
        rule.waits(1, 0, 100_000 * MS);
        assert!(!rule.tick_after(slice), "{profile}");
        assert!(rule.tick_after(Span(1)), "{profile}");
        rule.off(Off::Blocked);
        assert_eq!(rule.pick(), Some(1));
        rule.cfs.tasks[TaskId(0)].vruntime = VTime(0);
        rule.push(0, Why::Woken);
        assert_eq!(rule.min_vruntime() - rule.vruntime(0), credit.0 as i64, "{profile}");
    }
}

#[test]
fn sched_idle_gives_way_at_once_and_preempts_no_one() {
    let mut rule = Rule::new(&[]);
    rule.cfs.attach(TaskId(0), &TaskParams { weight: 3, ..TaskParams::default() });
    rule.push(0, Why::Resumed);
    assert_eq!(rule.pick(), Some(0));
    rule.sleeps(1, 19, 1000 * MS);
    assert!(rule.wake(1), "however far behind");
    rule.off(Off::Blocked);
    assert_eq!(rule.pick(), Some(1));
    rule.now += ms(1000);
    assert!(!rule.wake(0), "however far ahead");
}

#[test]
fn who_blocks_counts_for_the_minimum_until_3_15() {
    for (profile, minimum) in [("3.15", 3), ("4.19", 50)] {
        let mut rule = Rule::new(&[("profile", profile)]);
        rule.runs(0, 0, 0);
        rule.waits(1, 0, 50 * MS);
        rule.now += ms(3);
        rule.off(Off::Blocked);
        assert_eq!(rule.min_vruntime(), minimum * MS, "{profile}");
        assert_eq!(rule.pick(), Some(1));
        rule.now += Span(1);
        rule.charge();
        assert_eq!(rule.min_vruntime(), 50 * MS + 1);
    }
}

#[test]
fn who_slept_for_104_days_is_placed_anew() {
    let vruntime = |profile, slept| {
        let mut rule = Rule::new(&[("profile", profile)]);
        rule.runs(0, 0, 299 * MS);
        rule.now += ms(1);
        rule.off(Off::Blocked);
        rule.waits(1, 0, 0);
        assert_eq!(rule.pick(), Some(1));
        rule.now += Span(slept);
        // What runs has been charged nothing: it lost all of it to something else.
        rule.cfs.charge(&at!(rule), TaskId(1), Span::ZERO);
        rule.running[0] = Running::new(CpuId(0), None, rule.now);
        rule.push(0, Why::Woken);
        rule.vruntime(0)
    };
    assert_eq!(vruntime("6.1", 1 << 53), 300 * MS);
    assert_eq!(vruntime("6.1", (1 << 53) + 1), 288 * MS);
    assert_eq!(vruntime("5.14", (1 << 53) + 1), 300 * MS);
}

/// The put-back task is neither running nor waiting for a moment, in which the others are not all.
#[test]
fn putting_a_task_back_does_not_move_the_minimum() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    rule.waits(1, 0, 50 * MS);
    rule.now += ms(3);
    assert_eq!(rule.next(Off::Preempted), Some(0));
    assert_eq!(rule.min_vruntime(), 3 * MS);
}

#[test]
fn tasks_that_wake_up_on_an_idle_cpu_do_not_move_the_minimum() {
    let mut rule = Rule::new(&[]);
    rule.waits(0, 0, 50 * MS);
    rule.waits(1, 0, 70 * MS);
    assert_eq!(rule.min_vruntime(), 0);
    assert_eq!(rule.pick(), Some(0));
    assert_eq!(rule.min_vruntime(), 0);
    rule.now += Span(1);
    rule.charge();
    assert_eq!(rule.min_vruntime(), 50 * MS + 1);
}

#[test]
fn a_wake_up_charges_what_runs() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 5, 0);
    rule.sleeps(1, 0, 0);
    rule.now += ms(2);
    rule.wake(1);
    assert_eq!(rule.vruntime(0), 6_113_432);
    rule.now += ms(1);
    // The host reports 3 ms, of which 2 have been charged.
    rule.charge();
    assert!((9_170_147..=9_170_149).contains(&rule.vruntime(0)), "{}", rule.vruntime(0));
    // Of the next 2 ms it lost one.
    rule.now += ms(2);
    rule.sleeps(2, 0, 0);
    rule.wake(2);
    rule.cfs.charge(&at!(rule), TaskId(0), ms(1));
    assert!((12_226_863..=12_226_867).contains(&rule.vruntime(0)), "{}", rule.vruntime(0));
}

#[test]
fn a_task_alone_has_no_slice() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    assert!(!rule.tick_after(ms(1000)));
}

#[test]
fn a_task_a_slice_ahead_of_the_first_goes_after_the_least_granularity() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 9 * MS - 6);
    rule.waits(1, 0, 0);
    assert!(!rule.tick_after(Span(2_999_999)), "ran for less than 3 ms");
    assert!(!rule.tick_after(Span(1)), "exactly a slice ahead");
    assert!(rule.tick_after(Span(1)));

    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 20 * MS);
    rule.waits(1, 0, 0);
    assert!(!rule.tick_after(Span(2_999_999)));
    assert!(rule.tick_after(Span(1)), "ran for 3 ms");
}

#[test]
fn a_sleeper_comes_back_half_a_latency_ahead_at_most() {
    let woken = |settings: &[(&str, &str)], vruntime| {
        let mut rule = Rule::new(settings);
        rule.runs(0, 0, 100 * MS);
        rule.sleeps(1, 0, vruntime);
        rule.now += ms(10);
        rule.wake(1);
        assert_eq!(rule.min_vruntime(), 110 * MS, "task 0 has not been charged yet");
        rule.vruntime(1)
    };
    assert_eq!(woken(&[], 0), 98 * MS);
    assert_eq!(woken(&[], 98 * MS - 1), 98 * MS);
    assert_eq!(woken(&[], 98 * MS + 1), 98 * MS + 1, "its own is later");
    assert_eq!(woken(&[], 300 * MS), 300 * MS);
    let whole = [("gentle_sleepers", "false")];
    assert_eq!(woken(&whole, 0), 86 * MS);
}

#[test]
fn a_task_out_for_a_moment_keeps_its_vruntime() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 100 * MS);
    rule.sleeps(1, 0, 5);
    rule.push(1, Why::Resumed);
    assert_eq!(rule.vruntime(1), 5);
}

#[test]
fn a_wake_up_preempts_by_more_than_the_granularity() {
    let preempts = |settings: &[(&str, &str)], nice, ahead| {
        let mut rule = Rule::new(settings);
        rule.runs(0, 0, -3 * MS + ahead);
        rule.sleeps(1, nice, 0);
        rule.now += ms(3);
        rule.wake(1)
    };
    assert!(!preempts(&[], 0, 4_000_000));
    assert!(preempts(&[], 0, 4_000_001));
    // In the virtual time of who wakes up: 4 ms · 1024 / 3121 at nice -5.
    assert!(!preempts(&[], -5, 1_312_399));
    assert!(preempts(&[], -5, 1_312_400));
    // At nice 5 that is 12.2 ms, but nobody wakes up more than 12 ms ahead.
    assert!(!preempts(&[], 5, 1000 * MS));
    assert!(preempts(&[("gentle_sleepers", "false")], 5, 12_226_866));
    assert!(!preempts(&[("wakeup_preempt", "false")], 0, 1000 * MS));
    let none = [("wakeup_granularity", "0")];
    assert!(!preempts(&none, 0, 0) && preempts(&none, 0, 1));
}

#[test]
fn who_preempts_is_picked_before_the_first_if_near() {
    for (vruntime, picked) in [(4 * MS, 1), (4 * MS + 1, 2)] {
        let mut rule = Rule::new(&[]);
        rule.runs(0, 0, 10 * MS);
        rule.waits(2, 0, 0);
        rule.sleeps(1, 0, vruntime);
        assert!(rule.wake(1));
        assert_eq!(rule.next(Off::Preempted), Some(picked));
    }
    // How near is told in the virtual time of the first: at nice -5, 1.3 ms.
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 10 * MS);
    rule.waits(2, -5, 0);
    rule.sleeps(1, 0, 1_312_400);
    assert!(rule.wake(1));
    assert_eq!(rule.next(Off::Preempted), Some(2));
}

#[test]
fn who_preempts_is_preferred_only_once() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 10 * MS);
    rule.waits(2, 0, 0);
    rule.sleeps(1, 0, MS);
    assert!(rule.wake(1));
    assert_eq!(rule.next(Off::Preempted), Some(1));
    assert_eq!(rule.next(Off::Preempted), Some(2));
}

/// Task 0 is preempted by task 1, which blocks at once. What runs then, among `tasks` tasks of
/// which the first is 2?
fn after_the_preempting_task(settings: &[(&str, &str)], tasks: u32, ahead: i64) -> Option<u32> {
    let mut rule = Rule::new(settings);
    rule.runs(0, 0, ahead);
    for task in 2..tasks {
        rule.waits(task, 0, 0);
    }
    rule.sleeps(1, 0, ahead - 5 * MS);
    assert!(rule.wake(1));
    rule.off(Off::Preempted);
    assert_eq!(rule.pick_of(|task| task == TaskId(1)), Some(1));
    rule.next(Off::Blocked)
}

#[test]
fn who_was_preempted_runs_on_before_the_first_if_near_and_among_many() {
    // 8 tasks share a latency, so 8 are many.
    assert_eq!(after_the_preempting_task(&[], 8, 4 * MS), Some(0));
    assert_eq!(after_the_preempting_task(&[], 8, 4 * MS + 1), Some(2));
    assert_eq!(after_the_preempting_task(&[], 7, 4 * MS), Some(2));
    assert_eq!(after_the_preempting_task(&[("last_buddy", "false")], 8, 4 * MS), Some(2));
}

#[test]
fn who_preempts_comes_before_whom_it_preempted() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 4 * MS);
    for task in 2..9 {
        rule.waits(task, 0, 0);
    }
    rule.sleeps(1, 0, -MS);
    assert!(rule.wake(1));
    assert_eq!(rule.next(Off::Preempted), Some(1));
    rule.now += ms(2);
    assert_eq!(rule.next(Off::Preempted), Some(0), "then it, though all others are before it");
    assert_eq!(rule.next(Off::Preempted), Some(2), "then no one is preferred");
}

#[test]
fn of_two_that_are_near_who_preempts_runs() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 4 * MS);
    for task in 2..9 {
        rule.waits(task, 0, 0);
    }
    // The granularity of task 1 is 1.3 ms.
    rule.sleeps(1, -5, 2 * MS);
    assert!(rule.wake(1));
    assert_eq!(rule.next(Off::Preempted), Some(1));
    assert_eq!(rule.next(Off::Blocked), Some(0));
}

#[test]
fn who_came_to_the_end_of_its_slice_is_not_preferred() {
    for (ran, picked) in [(3_000_000, Some(0)), (3_000_001, Some(2))] {
        let mut rule = Rule::new(&[]);
        rule.runs(0, 0, 0);
        for task in 2..10 {
            rule.waits(task, 0, 0);
        }
        // Of 10 tasks each has a slice of 3 ms.
        rule.now += ms(2);
        rule.sleeps(1, 0, -3 * MS);
        assert!(rule.wake(1));
        // It has to go in either case: task 1 is a slice behind it, too.
        assert!(rule.tick_after(Span(ran - 2_000_000)));
        assert_eq!(rule.next(Off::Preempted), Some(1));
        assert_eq!(rule.next(Off::Blocked), picked);
    }
}

#[test]
fn among_many_a_wakee_may_be_preferred_without_preempting() {
    let picked = |settings: &[(&str, &str)], tasks| {
        let mut rule = Rule::new(settings);
        rule.runs(0, 0, 0);
        for task in 2..tasks {
            rule.waits(task, 0, 0);
        }
        rule.sleeps(1, 0, 2 * MS);
        assert!(!rule.wake(1));
        rule.next(Off::Blocked)
    };
    assert_eq!(picked(&[("next_buddy", "true")], 8), Some(1));
    assert_eq!(picked(&[("next_buddy", "true")], 7), Some(2));
    assert_eq!(picked(&[], 8), Some(2));
}

#[test]
fn a_yielder_is_skipped_while_the_second_is_near() {
    let yields = |nice, second| {
        let mut rule = Rule::new(&[]);
        rule.runs(0, nice, 0);
        rule.waits(1, 0, second);
        rule.waits(2, 0, second + 1);
        rule.next(Off::Yielded)
    };
    assert_eq!(yields(0, 4 * MS), Some(1));
    assert_eq!(yields(0, 4 * MS + 1), Some(0), "the second one would be wronged");
    assert_eq!(yields(-5, 1_312_399), Some(1));
    assert_eq!(yields(-5, 1_312_400), Some(0));
}

#[test]
fn a_yielder_is_skipped_until_it_is_picked() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    rule.waits(1, 0, MS);
    assert_eq!(rule.next(Off::Yielded), Some(1));
    rule.now += ms(2);
    // Task 0 is skipped again as the first of two, for task 1 at 3 ms.
    assert_eq!(rule.next(Off::Preempted), Some(1));
    rule.now += ms(2);
    assert_eq!(rule.next(Off::Preempted), Some(0), "task 1 is at 5 ms");
    rule.waits(2, 0, MS);
    assert_eq!(rule.next(Off::Preempted), Some(0), "not skipped any more");
}

#[test]
fn a_task_that_yields_alone_is_not_skipped_later() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    rule.off(Off::Yielded);
    rule.waits(1, 0, MS);
    assert_eq!(rule.pick(), Some(0));
}

#[test]
fn a_yielder_that_was_to_be_preferred_is_not() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 4 * MS);
    for task in 2..9 {
        rule.waits(task, 0, 0);
    }
    rule.sleeps(1, 0, -MS);
    assert!(rule.wake(1));
    assert_eq!(rule.next(Off::Yielded), Some(1));
    rule.now += ms(2);
    assert_eq!(rule.next(Off::Preempted), Some(2), "not whom task 1 would have preempted");
}

#[test]
fn an_undone_pick_is_made_again() {
    let mut rule = Rule::new(&[]);
    rule.waits(0, 0, 0);
    rule.waits(1, 0, 0);
    assert_eq!(rule.pick(), Some(0));
    assert_eq!(rule.next(Off::NotRun), Some(0), "not behind its equal");
    // As a buddy, too.
    rule.off(Off::Blocked);
    rule.runs(2, 0, 10 * MS);
    rule.sleeps(3, 0, 2 * MS);
    assert!(rule.wake(3));
    assert_eq!(rule.next(Off::Preempted), Some(3));
    assert_eq!(rule.next(Off::NotRun), Some(3));
    assert_eq!(rule.next(Off::Preempted), Some(1));
}

#[test]
fn a_new_weight_counts_from_now_on() {
    let nice = TaskParams::nice(5);
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    rule.waits(1, 0, 7 * MS);
    rule.sleeps(2, 0, 3);
    assert_eq!(rule.cfs.load(0), 2048);
    rule.now += ms(10);
    rule.cfs.update(&at!(rule), Whereabouts::Running, TaskId(0), &nice);
    rule.cfs.update(&at!(rule), Whereabouts::Queued, TaskId(1), &nice);
    rule.cfs.update(&at!(rule), Whereabouts::Away, TaskId(2), &nice);
    assert_eq!(rule.cfs.load(0), 670);
    rule.now += ms(2);
    rule.charge();
    // 10 ms at weight 1024 and 2 ms at 335; rounding costs at most a ns a term.
    let expected = 10 * MS + 2 * MS * 1024 / 335;
    assert!((expected - rule.vruntime(0)).abs() <= 2, "{}", rule.vruntime(0));
    assert_eq!((rule.vruntime(1), rule.vruntime(2)), (7 * MS, 3));
    assert_eq!(rule.cfs.weight(TaskId(2)), 335);
}

#[test]
fn the_minimum_follows_who_leaves() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    rule.waits(1, 0, 10 * MS);
    rule.waits(2, 0, 20 * MS);
    rule.off(Off::Blocked);
    assert_eq!(rule.min_vruntime(), 10 * MS);
    rule.cfs.remove(&at!(rule), TaskId(1), Removal::Dequeue);
    assert_eq!(rule.min_vruntime(), 20 * MS);
}

#[test]
fn who_moves_keeps_the_distance_that_it_had_when_it_left() {
    let mut rule = Rule::new(&[]);
    rule.runs(2, 0, 0);
    rule.waits(0, 0, 3 * MS);
    rule.waits(1, 0, 10 * MS);
    rule.now += ms(20);
    // Task 0 is the minimum; when it has gone, task 1 is.
    rule.cfs.remove(&at!(rule), TaskId(0), Removal::Move);
    rule.push(0, Why::Moved);
    assert_eq!(rule.vruntime(0), 10 * MS);
}

#[test]
fn others_are_given_who_has_been_there_longest() {
    let mut rule = Rule::new(&[]);
    rule.runs(0, 0, 0);
    for (task, vruntime) in [(1, 9), (2, 1), (3, 5)] {
        rule.waits(task, 0, vruntime);
    }
    let spare = |rule: &Rule, but: u32| rule.cfs.spare(&at!(rule), |task| task.0 != but);
    assert_eq!(spare(&rule, 99), Some(TaskId(1)), "not task 0, which runs");
    assert_eq!(spare(&rule, 1), Some(TaskId(2)));
    // Who was picked counts from then on.
    assert_eq!(rule.pick_of(|task| task.0 == 1), Some(1));
    rule.off(Off::Preempted);
    assert_eq!(spare(&rule, 99), Some(TaskId(2)));
    let order = |rule: &Rule| {
        let seen = core::cell::RefCell::new(Vec::new());
        rule.cfs.spare(&at!(rule), |task| {
            seen.borrow_mut().push(task.0);
            false
        });
        seen.into_inner()
    };
    assert_eq!(order(&rule), [2, 3, 1]);
}

#[test]
fn unusable_parameters_are_refused() {
    let build = |name, text| {
        let mut params = CfsParams::default();
        params.set(name, text).unwrap();
        Cfs::build(&Machine::flat(8).unwrap(), 1, &params).map(|_| ())
    };
    for name in ["latency", "min_granularity", "wakeup_granularity", "tick"] {
        let error = build(name, "1001ms").unwrap_err();
        assert_eq!(alloc::format!("{error}"), alloc::format!("`{name}`: must be at most 1s"));
    }
    for name in ["latency", "min_granularity"] {
        let error = build(name, "0").unwrap_err();
        assert_eq!(alloc::format!("{error}"), alloc::format!("`{name}`: must be above 0"));
    }
    assert!(build("wakeup_granularity", "0").is_ok() && build("tick", "0").is_ok());
}

proptest! {
    /// min_vruntime never goes back, is never beyond the least vruntime by more than what tasks
    /// were placed before it, and the accounts of weight and number are those of the tasks there.
    #[test]
    fn accounts_are_kept(
        steps in prop::collection::vec((0..8u8, 0..10u32, 0..20_000_000u64), 0..200),
    ) {
        let mut rule = Rule::new(&[]);
        let nice = |task: u32| task as i8 * 3 - 15;
        (0..10).for_each(|task| rule.sleeps(task, nice(task), 0));
        let mut present = [false; 10];
        let mut least = rule.min_vruntime();
        for (step, task, time) in steps {
            rule.now += Span(time);
            let runs = rule.running[0].task();
            match (step, runs) {
                (0 | 1, _) if !present[task as usize] => {
                    present[task as usize] = true;
                    if runs.is_some() {
                        rule.wake(task);
                    } else {
                        rule.push(task, Why::Woken);
                    }
                }
                (2, _) if present[task as usize] && runs != Some(TaskId(task)) => {
                    present[task as usize] = false;
                    rule.cfs.remove(&at!(rule), TaskId(task), Removal::Dequeue);
                }
                (3, Some(running)) => {
                    present[running.index()] = false;
                    rule.off(Off::Blocked);
                }
                (4, Some(_)) => rule.off(Off::Preempted),
                (5, Some(_)) => rule.off(Off::Yielded),
                (6, Some(_)) => {
                    rule.tick_after(Span::ZERO);
                }
                (_, None) => {
                    let waiting = present.contains(&true);
                    prop_assert_eq!(rule.pick().is_some(), waiting);
                }
                _ => {}
            }
            prop_assert!(rule.min_vruntime() >= least);
            least = rule.min_vruntime();
            let there = (0..10).filter(|&task| present[task as usize]);
            let weight: u64 = there.clone().map(|task| rule.cfs.weight(TaskId(task))).sum();
            prop_assert_eq!(rule.cfs.load(0), weight);
            let running = usize::from(rule.running[0].task().is_some());
            prop_assert_eq!(rule.cfs.len(0) + running, there.count());
        }
    }
}
