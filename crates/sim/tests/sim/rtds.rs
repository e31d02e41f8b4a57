//! Xen RTDS in the simulator: budgets, deadlines of periodic vCPUs, extra time.

use crate::support::{self, at, completions, model, ms, run, task};
use anysched_core::{Machine, Span, Time};
use anysched_host::{Costs, Setup};
use anysched_workload::Op;
use anysched_workload::model::{ModelTask, Script};
use anysched_workload::rng::Rng;
use std::sync::Arc;

const STRICT: &[(&str, &str)] = &[("extratime", "false")];
const PROMPT: &[(&str, &str)] = &[("renewals", "prompt")];

fn setup(cpus: usize, until: u64) -> Setup {
    let mut setup = Setup::new(Machine::flat(cpus).unwrap());
    setup.until = at(until);
    setup
}

/// A vCPU that uses `budget` in every `period` from 0 on, by its end.
fn periodic(budget: Span, period: Span) -> ModelTask {
    let release = Op::Release { at: Time(period.0), deadline: Some(Time(2 * period.0)) };
    let ops = vec![Op::Run(budget), release];
    let mut task = task(0, vec![]);
    task.script = Arc::new(Script { ops, rounds: u64::MAX, ..Script::default() });
    task.new.period = Some(period);
    task.new.budget = Some(budget);
    task.new.deadline = Some(Time(period.0));
    task
}

/// 50 ms at 4 in 10: 12 periods and 2 ms. Nothing happens in between but the policy's timer.
#[test]
fn a_share_of_a_cpu_is_a_budget_in_each_period() {
    let load = model(vec![task(0, vec![run(50)])]);
    let (metrics, results) =
        support::play(Setup::new(Machine::flat(1).unwrap()), "rtds", STRICT, load);
    assert_eq!(completions(&results), [122]);
    assert_eq!(metrics.busy, ms(50));
}

#[test]
fn shares_are_exact_whatever_switching_costs() {
    let mut setup = setup(2, 1_000);
    setup.costs = Costs { context_switch: Span::from_us(50), ..Costs::default() };
    let load = model((0..4).map(|_| task(0, vec![run(100_000)])).collect());
    let (metrics, _) = support::play(setup, "rtds", STRICT, load);
    // Four have 4 ms in each of 100 periods.
    assert_eq!(metrics.busy, ms(1_600));
}

/// Up to full use of one CPU earliest deadline first meets every deadline.
#[test]
fn periodic_vcpus_meet_all_deadlines_up_to_full_use() {
    for seed in 0..40 {
        let rng = &mut Rng::stream(seed, "rtds");
        let mut left = 1.0;
        let mut tasks = Vec::new();
        while tasks.len() < 8 {
            let period = Span::from_us(200 * (1 + rng.below(60)));
            let share = if tasks.len() == 7 { left } else { left * rng.unit() };
            let budget = Span((period.0 as f64 * share) as u64).max(Span::from_us(10));
            let used = budget.0 as f64 / period.0 as f64;
            if used > left {
                break;
            }
            left -= used;
            tasks.push(periodic(budget, period));
        }
        let strict = model(tasks.clone());
        let (metrics, _) = support::play(setup(1, 500), "rtds", STRICT, strict);
        assert!(metrics.job_response_time.count() > 40);
        assert_eq!(metrics.deadline_misses, 0, "seed {seed}");
        // Beside them one without an end, which has next to no budget, runs in extra time.
        let mut hog = task(0, vec![run(100_000)]);
        (hog.new.budget, hog.new.period) = (Some(Span::from_us(10)), Some(Span::from_s(10)));
        let extra = model(tasks.into_iter().chain([hog]).collect());
        if left > 0.01 {
            let (metrics, _) = support::play(setup(1, 500), "rtds", PROMPT, extra);
            assert_eq!(metrics.deadline_misses, 0, "seed {seed} with extra time");
            assert_eq!(metrics.idle, Span::ZERO);
        }
    }
}

/// Global earliest deadline first is not optimal: two short ones delay one that needs nearly all of
/// its time (Dhall and Liu 1978). It runs from 2 ms on, to 12 instead of 11.
#[test]
fn short_vcpus_make_a_long_one_late_unless_it_has_a_cpu() {
    let misses = |cpus| {
        let short = || periodic(ms(2), ms(10));
        let tasks = vec![short(), short(), periodic(ms(10), ms(11))];
        support::play(setup(cpus, 12), "rtds", STRICT, model(tasks)).0.deadline_misses
    };
    assert_eq!([misses(2), misses(3)], [1, 0]);
}
