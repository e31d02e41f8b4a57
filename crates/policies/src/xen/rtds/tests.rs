//! Values worked out by hand from the rules, and invariants for random vCPUs: on one CPU none
//! misses a deadline up to full utilisation, and nowhere does one get more than its budget.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Rtds, RtdsParams};
use anysched_core::params::{ParamError, Params};
use anysched_core::registry::Policy;
use anysched_core::{CpuId, CpuSet, Machine, Off, Scheduler, Span, TaskId, TaskParams, Time};
use anysched_oracle::drive::{Drive, ms};
use anysched_oracle::rig;
use proptest::prelude::*;

const STRICT: &[(&str, &str)] = &[("extratime", "false")];

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

/// `budget` of every `period`, in ms.
fn of(budget: u64, period: u64) -> TaskParams {
    TaskParams { period: Some(ms(period)), budget: Some(ms(budget)), ..TaskParams::default() }
}

rig! {
    struct Rig(Drive<Rtds>);
}

impl Rig {
    fn new(cpus: u16, settings: &[(&str, &str)]) -> Rig {
        Rig(Drive::scheduler(&cpus.to_string(), settings))
    }

    fn create(&mut self, task: u32, params: &TaskParams) {
        self.attach(task, params);
        self.wake(task);
    }

    /// Time on a CPU so far in us, including the current turn.
    fn used(&self, task: u32) -> u64 {
        self.0.used(task).0 / 1_000
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let machine = Machine::flat(1).unwrap();
    for (name, value) in
        [("period", "9us"), ("period", "none"), ("budget", "9us"), ("budget", "11ms")]
    {
        let mut params = RtdsParams::default();
        params.set(name, value).unwrap();
        let error = Rtds::build(&machine, 1, &params).unwrap_err();
        assert!(matches!(error, ParamError::Invalid { name: at, .. } if at == name), "{error}");
    }
}

#[test]
fn a_lone_vcpu_has_4_of_10_ms() {
    let mut rig = Rig::new(1, STRICT);
    rig.create(0, &TaskParams::default());
    assert_eq!(rig.pick(0), Some((0, ms(4))));
    rig.go(at(4));
    assert_eq!((rig.running(0), rig.used(0)), (None, 4_000));
    assert_eq!(rig.policy.next_timer(), Some(at(10)));
    rig.go(at(93));
    assert_eq!(rig.used(0), 39_000);
    // A budget above the period is cut to it.
    rig.create(1, &of(7, 5));
    rig.go(at(100));
    assert_eq!(rig.probe(1, "budget_ns"), 5_000_000);
}

#[test]
fn the_earlier_deadline_runs_first_and_an_equal_one_does_not_preempt() {
    let mut rig = Rig::new(1, STRICT);
    rig.create(0, &of(4, 10));
    rig.create(1, &of(2, 5));
    rig.go(at(1));
    assert_eq!(rig.running(0), Some(1));
    rig.go(at(2));
    assert_eq!(rig.running(0), Some(0));
    // At 5 ms both deadlines are at 10 ms.
    rig.go(at(5) + Span(1));
    assert_eq!(rig.running(0), Some(0));
    rig.go(at(6));
    assert_eq!(rig.running(0), Some(1));
    rig.go(at(8));
    assert_eq!((rig.running(0), rig.used(0), rig.used(1)), (None, 4_000, 4_000));
}

#[test]
fn of_equals_the_one_that_waits_runs_when_the_cpu_is_asked() {
    let mut rig = Rig::new(1, &[]);
    (0..2).for_each(|task| rig.create(task, &TaskParams::default()));
    rig.go(at(1));
    assert_eq!(rig.running(0), Some(0));
    rig.next(0, Off::Yielded);
    assert_eq!(rig.running(0), Some(1));
    rig.create(2, &of(4, 20));
    rig.next(0, Off::Yielded);
    // A yielder whose deadline is the earliest goes on.
    rig.call(|policy, cx| policy.dequeue(cx, TaskId(1)));
    rig.next(0, Off::Yielded);
    assert_eq!(rig.running(0), Some(0));
}

#[test]
fn sleeping_keeps_the_budget_until_the_deadline() {
    let mut rig = Rig::new(1, STRICT);
    rig.create(0, &TaskParams::default());
    rig.go(at(1));
    rig.off(0, Off::Blocked);
    // A sleeper is given nothing.
    assert_eq!(rig.policy.next_timer(), None);
    rig.now = at(9);
    rig.wake(0);
    assert_eq!(rig.pick(0), Some((0, ms(3))));
    // The new period begins while it runs; what it ran before does not count.
    rig.go(at(11));
    rig.next(0, Off::Preempted);
    assert_eq!(rig.probe(0, "budget_ns"), 3_000_000);
    assert_eq!(rig.used(0), 3_000);
    rig.off(0, Off::Blocked);
    rig.now = at(47);
    rig.wake(0);
    assert_eq!(rig.probe(0, "deadline_ns"), 50_000_000);
    assert_eq!(rig.pick(0), Some((0, ms(4))));
}

#[test]
fn extra_time_is_what_budgets_leave() {
    let mut rig = Rig::new(1, &[]);
    // 0 has an earlier deadline than 1 until it has used up its budget.
    rig.create(0, &of(1, 4));
    rig.create(1, &of(2, 8));
    rig.go(Time(500_000));
    assert_eq!(rig.running(0), Some(0));
    rig.go(Time(1_500_000));
    assert_eq!((rig.running(0), rig.probe(0, "level")), (Some(1), 1));
    rig.go(Time(3_500_000));
    // Both are at level 1 now; the deadline of 0 is the earlier one.
    assert_eq!((rig.running(0), rig.probe(1, "level")), (Some(0), 1));
    rig.go(at(4) + Span(1));
    assert_eq!((rig.running(0), rig.probe(0, "level")), (Some(0), 0));
    rig.go(at(80));
    // No CPU is left idle, and no vCPU has less than its budget.
    assert_eq!(rig.used(0) + rig.used(1), 80_000);
    assert!(rig.used(0) >= 20_000 && rig.used(1) >= 20_000);
}

#[test]
fn a_budget_precedes_all_extra_time() {
    let mut rig = Rig::new(1, &[]);
    rig.create(0, &of(1, 10));
    rig.go(at(5));
    assert_eq!((rig.running(0), rig.probe(0, "level")), (Some(0), 5));
    // Its deadline is later, but it has budget.
    rig.create(1, &of(4, 40));
    rig.go(at(9));
    assert_eq!((rig.used(0), rig.used(1)), (5_000, 4_000));
    // 1 is at level 1 now and 0 at level 5.
    rig.go(at(10));
    assert_eq!((rig.used(0), rig.used(1)), (5_000, 5_000));
}

#[test]
fn idle_cpus_are_kicked_the_own_one_first_and_then_the_least_urgent() {
    let mut rig = Rig::new(3, &[]);
    rig.attach(0, &of(4, 10));
    rig.policy.tasks[TaskId(0)].cpu = CpuId(1);
    rig.wake(0);
    assert_eq!(rig.kicked(), [1]);
    // CPU 1 has been kicked for another.
    rig.attach(1, &of(4, 40));
    rig.policy.tasks[TaskId(1)].cpu = CpuId(1);
    rig.wake(1);
    assert_eq!(rig.kicked(), [2]);
    rig.create(2, &of(4, 20));
    assert_eq!(rig.kicked(), [0]);
    let picked = [0, 1, 2].map(|cpu| rig.pick(cpu).map(|pick| pick.0));
    assert_eq!(picked, [Some(0), Some(2), Some(1)]);
    rig.create(3, &of(4, 40));
    assert_eq!(rig.kicked(), []);
    rig.create(4, &of(4, 30));
    assert_eq!(rig.kicked(), [2]);
    // 2 has been kicked and has not picked yet: of the rest, 1 has the latest deadline.
    rig.create(5, &of(4, 15));
    assert_eq!(rig.kicked(), [1]);
    let only_0 = TaskParams { affinity: CpuSet::of([CpuId(0)]), ..of(1, 10) };
    rig.create(6, &only_0);
    assert_eq!(rig.kicked(), []);
}

#[test]
fn a_new_period_of_the_running_vcpu_lets_an_earlier_deadline_run() {
    let mut rig = Rig::new(1, STRICT);
    rig.create(0, &of(9, 9));
    rig.create(1, &of(5, 10));
    rig.go(at(8));
    assert_eq!(rig.running(0), Some(0));
    // At 9 ms the deadline of 0 becomes 18 ms, and 1 has until 10 ms.
    rig.go(at(9));
    assert_eq!(rig.running(0), Some(1));
    rig.go(at(10));
    assert_eq!((rig.running(0), rig.used(1)), (Some(0), 1_000));
}

/// 0 woke at level 2; the period of 1 ends at 100 ms.
#[test]
fn levels_delay_new_periods_unless_prompt() {
    let next_end = |renewals| {
        let mut rig = Rig::new(1, &[("renewals", renewals)]);
        rig.create(0, &of(1, 10));
        rig.go(at(2));
        rig.off(0, Off::Blocked);
        assert_eq!(rig.probe(0, "level"), 2);
        rig.create(1, &of(50, 100));
        rig.wake(0);
        rig.policy.next_timer()
    };
    assert_eq!(next_end("xen"), Some(at(100)));
    assert_eq!(next_end("prompt"), Some(at(10)));
}

/// Who runs on CPU 0 in each millisecond until `until` ms.
fn by_ms(rig: &mut Rig, until: u64) -> Vec<u32> {
    (0..until)
        .map(|n| {
            rig.go(at(n) + Span(1));
            rig.running(0).unwrap()
        })
        .collect()
}

/// The end of a period of 0 is expected before or behind that of 1 by the level that 0 has reached
/// when 1 begins a period.
#[test]
fn new_periods_come_in_the_order_of_levels_at_that_moment() {
    let mut rig = Rig::new(1, &[]);
    rig.create(0, &of(4, 20));
    rig.create(1, &of(2, 7));
    let ran = by_ms(&mut rig, 24);
    let switches: Vec<(usize, u32)> =
        (1..24).filter(|&ms| ran[ms] != ran[ms - 1]).map(|ms| (ms, ran[ms])).collect();
    assert_eq!(switches[switches.len() - 3..], [(19, 0), (21, 1), (23, 0)]);
}

#[test]
fn extra_time_is_shared_as_new_periods_come() {
    let mut rig = Rig::new(1, &[]);
    rig.create(0, &of(10, 20));
    rig.create(1, &of(2, 7));
    rig.create(2, &of(2, 11));
    rig.go(at(2_000));
    let shares = [0, 1, 2].map(|task| rig.used(task));
    assert_eq!(shares, [1_266_000, 369_000, 365_000]);
}

/// 0 needs 1 ms of every 2, and 1 runs from 1 to 4 ms because nothing kicks the CPU at 2 ms.
#[test]
fn extra_time_of_xen_makes_deadlines_be_missed() {
    let used_by_4_ms = |renewals| {
        let mut rig = Rig::new(1, &[("renewals", renewals)]);
        rig.create(0, &of(1, 2));
        rig.create(1, &of(3, 200));
        rig.go(at(4));
        rig.used(0)
    };
    assert_eq!(used_by_4_ms("xen"), 1_000);
    assert_eq!(used_by_4_ms("prompt"), 2_000);
}

#[test]
fn a_cpu_that_goes_leaves_nobody_behind() {
    let mut rig = Rig::new(2, &[]);
    rig.create(0, &of(4, 10));
    rig.create(1, &of(4, 20));
    rig.create(2, &of(4, 40));
    rig.go(at(1));
    assert_eq!([rig.running(0), rig.running(1)], [Some(0), Some(1)]);
    rig.call(|policy, cx| policy.set_online(cx, CpuId(0), false));
    rig.off(0, Off::Preempted);
    rig.settle();
    assert_eq!([rig.running(0), rig.running(1)], [None, Some(0)]);
    rig.call(|policy, cx| policy.set_online(cx, CpuId(0), true));
    rig.settle();
    assert_eq!(rig.running(0), Some(1));
    // A vCPU that may no longer run there goes elsewhere.
    let only_1 = TaskParams { affinity: CpuSet::of([CpuId(1)]), ..of(4, 20) };
    rig.call(|policy, cx| policy.update(cx, TaskId(1), &only_1));
    rig.settle();
    assert_eq!([rig.running(0), rig.running(1)], [Some(2), Some(0)]);
}

/// (budget, period) in units of 10 us, of at most one CPU's time.
fn fitting_sets() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((1..100u64, 1..400u64), 1..8).prop_map(|wanted| {
        let mut left = 1_000_000;
        let fit = |(part, period): (u64, u64)| {
            let most = period * left / 1_000_000;
            let budget = (most * part / 100).max(1);
            let share = (budget * 1_000_000).div_ceil(period);
            (share <= left).then(|| {
                left -= share;
                (budget, period)
            })
        };
        wanted.into_iter().filter_map(fit).collect()
    })
}

fn in_10_us(budget: u64, period: u64) -> TaskParams {
    let span = |n| Some(Span::from_us(10 * n));
    TaskParams { period: span(period), budget: span(budget), ..TaskParams::default() }
}

proptest! {
    /// Earliest deadline first is optimal on one CPU: up to full utilisation every vCPU has all of
    /// its budget by each deadline, and without extra time no more; with extra time only if
    /// renewals are prompt.
    #[test]
    fn nobody_misses_a_deadline_up_to_full_use(set in fitting_sets(), extra in any::<bool>()) {
        let with_extra = [("renewals", "prompt")];
        let mut rig = Rig::new(1, if extra { &with_extra } else { STRICT });
        for (task, &(budget, period)) in (0..).zip(&set) {
            rig.create(task, &in_10_us(budget, period));
        }
        let mut deadlines: Vec<(u64, u32)> = Vec::new();
        for (task, &(_, period)) in (0..).zip(&set) {
            deadlines.extend((1..=4_000 / period).map(|nth| (nth * period, task)));
        }
        deadlines.sort_unstable();
        for (deadline, task) in deadlines {
            // Just before a new period might add to it.
            rig.go(Time(deadline * 10_000 - 1));
            rig.now = Time(deadline * 10_000);
            let (budget, period) = set[task as usize];
            let due = deadline / period * budget * 10;
            let used = rig.used(task);
            prop_assert!(used >= due, "vCPU {task} has {used} of {due} us at {deadline}");
            if !extra {
                prop_assert_eq!(used, due);
            }
            rig.now = Time(deadline * 10_000 - 1);
        }
    }

    /// On three CPUs, whatever sleeps or is interrupted: no vCPU uses more than its budget in any
    /// period, and none with budget left waits beside an idle CPU.
    #[test]
    fn nobody_uses_more_than_the_budget(
        set in prop::collection::vec((1..200u64, 1..400u64), 1..9),
        steps in prop::collection::vec((0..9u32, 0..3u16, 1..3_000u64), 1..120),
    ) {
        let mut rig = Rig::new(3, STRICT);
        let mut asleep = alloc::vec![true; set.len()];
        for (task, &(budget, period)) in (0..).zip(&set) {
            rig.attach(task, &in_10_us(budget.min(period), period));
        }
        for (task, cpu, passes) in steps {
            match asleep.get(task as usize) {
                Some(true) => {
                    rig.wake(task);
                    asleep[task as usize] = false;
                }
                Some(false) => {
                    if rig.running(cpu).is_some() {
                        rig.off(cpu, Off::Yielded);
                    }
                    rig.pick(cpu);
                }
                None if rig.running(cpu).is_some() => {
                    asleep[rig.off(cpu, Off::Blocked) as usize] = true;
                    rig.pick(cpu);
                }
                None => {}
            }
            let until = rig.now + Span::from_us(passes);
            rig.go(until);
            for (task, &(budget, period)) in (0..).zip(&set) {
                let periods = rig.now.0.div_ceil(period * 10_000);
                let most = periods * budget.min(period) * 10;
                prop_assert!(rig.used(task) <= most, "vCPU {task}: {} of {most}", rig.used(task));
            }
            let idle = (0..3).any(|cpu| rig.running(cpu).is_none());
            prop_assert!(!idle || rig.policy.queue.is_empty());
        }
    }
}
