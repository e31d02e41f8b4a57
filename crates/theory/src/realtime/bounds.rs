//! Tests that look only at utilisations C / T, or at densities C / min(D, T).
//!
//! A set that passes a sufficient test is schedulable; one that fails it may or may not be.

use super::TaskSet;
use super::natural::{Natural, Sum};
use std::cmp::Ordering;

/// Whether U ≤ 1. If not, no policy can meet all deadlines forever; if so, EDF does, provided that
/// no deadline is shorter than its period and no release is late (Liu and Layland 1973).
pub fn fits(set: &TaskSet) -> bool {
    let mut sum = Sum::zero();
    set.tasks().iter().for_each(|task| sum.add(task.run.0, task.period.0));
    sum.cmp_one() != Ordering::Greater
}

/// Whether the tests for rate-monotonic order apply: no deadline is shorter than its period, and no
/// release is late.
fn implicit(set: &TaskSet) -> bool {
    !set.has_jitter() && set.tasks().iter().all(|task| task.deadline >= task.period)
}

/// n (2^(1/n) − 1), for display.
pub fn liu_layland_bound(tasks: usize) -> f64 {
    let n = tasks as f64;
    n * libm::expm1(std::f64::consts::LN_2 / n)
}

/// Whether U ≤ n (2^(1/n) − 1): sufficient for rate-monotonic order (Liu and Layland 1973). `None`
/// if a deadline is shorter than its period or releases are late.
///
/// That is (1 + U/n)^n ≤ 2, computed in fixed point with 60 fractional bits and rounded up, so it
/// is never wrongly true. For two or more tasks the bound is irrational, and only a set within
/// 10⁻¹⁴ of it can be rejected wrongly; for one task it is 1, and the test exact.
pub fn liu_layland(set: &TaskSet) -> Option<bool> {
    const ONE: u128 = 1 << 60;
    if !implicit(set) {
        return None;
    }
    let share = |run: u64, period: u64| (u128::from(run) * ONE).div_ceil(u128::from(period));
    let sum: u128 = set.tasks().iter().map(|task| share(task.run.0, task.period.0)).sum();
    let n = set.tasks().len();
    let factor = ONE + sum.div_ceil(n as u128);
    let mut power = ONE;
    for _ in 0..n {
        power = (power * factor).div_ceil(ONE);
        if power > 2 * ONE {
            return Some(false);
        }
    }
    Some(true)
}

/// The product of all U + 1, for display.
pub fn hyperbolic_product(set: &TaskSet) -> f64 {
    set.tasks().iter().map(|task| 1.0 + task.utilisation()).product()
}

/// Whether the product of all U + 1 is at most 2: sufficient for rate-monotonic order, and never
/// worse than [`liu_layland`] (Bini, Buttazzo and Buttazzo 2003). `None` in the same cases. Exact.
pub fn hyperbolic(set: &TaskSet) -> Option<bool> {
    if !implicit(set) {
        return None;
    }
    let one = || (Natural::new(1), Natural::new(1));
    let (sums, periods) = set.tasks().iter().fold(one(), |(sums, periods), task| {
        // Both are below 2^63.
        (sums.times(task.run.0 + task.period.0), periods.times(task.period.0))
    });
    Some(sums <= periods.times(2))
}

/// The sum of all C / min(D − J, T), for display; infinite if some J is as long as its D.
pub fn density(set: &TaskSet) -> f64 {
    set.tasks().iter().map(|task| task.run.0 as f64 / shortest(task) as f64).sum()
}

/// Whether the sum of all C / min(D − J, T) is at most 1: sufficient for EDF. Exact.
pub fn dense_enough(set: &TaskSet) -> bool {
    let mut sum = Sum::zero();
    for task in set.tasks() {
        match shortest(task) {
            0 => return false,
            time => sum.add(task.run.0, time),
        }
    }
    sum.cmp_one() != Ordering::Greater
}

fn shortest(task: &super::Task) -> u64 {
    task.deadline.saturating_sub(task.jitter).min(task.period).0
}

#[cfg(test)]
mod tests {
    use super::super::{Task, set};
    use super::*;
    use anysched_core::Span;
    use proptest::prelude::*;

    #[test]
    fn one_task_may_use_the_whole_cpu_and_no_more_together() {
        let whole = set(&[(7, 7, 7)]);
        assert_eq!((liu_layland(&whole), hyperbolic(&whole)), (Some(true), Some(true)));
        assert!(fits(&whole) && dense_enough(&whole));
        let thirds = set(&[(1, 3, 3), (1, 3, 3), (1, 3, 3)]);
        assert!(fits(&thirds) && dense_enough(&thirds));
        assert!(!fits(&set(&[(1, 3, 3), (1, 3, 3), (1_000_001, 3_000_000, 3)])));
    }

    /// The bounds for two tasks: 0.828427…; U = (1/2, 1/3) has a product of exactly 2.
    #[test]
    fn two_tasks() {
        assert!((liu_layland_bound(2) - 0.828_427_124_7).abs() < 1e-9);
        let at =
            |second: u64| set(&[(400_000, 1_000_000, 1_000_000), (second, 1_000_000, 1_000_000)]);
        assert_eq!(liu_layland(&at(428_427)), Some(true));
        assert_eq!(liu_layland(&at(428_428)), Some(false));
        let half_and_third = set(&[(1, 2, 2), (1, 3, 3)]);
        assert_eq!(liu_layland(&half_and_third), Some(false));
        assert_eq!(hyperbolic(&half_and_third), Some(true));
        assert_eq!(hyperbolic(&set(&[(1, 2, 2), (1001, 3000, 3000)])), Some(false));
        // 1.4 · 1.428571 is just below 2.
        assert_eq!(hyperbolic(&at(428_571)), Some(true));
        assert_eq!(hyperbolic(&at(428_572)), Some(false));
    }

    #[test]
    fn deadlines_and_jitter() {
        let short = set(&[(1, 4, 3), (1, 6, 6)]);
        assert_eq!((liu_layland(&short), hyperbolic(&short)), (None, None));
        assert!(dense_enough(&set(&[(1, 4, 2), (3, 6, 6)])));
        assert!(!dense_enough(&set(&[(1, 4, 2), (3, 6, 5)])));
        let late = |jitter| {
            let task = Task::new(Span(1), Span(4));
            TaskSet::new(vec![Task { jitter: Span(jitter), ..task }]).unwrap()
        };
        assert!(dense_enough(&late(3)) && !dense_enough(&late(4)));
        assert_eq!(liu_layland(&late(1)), None);
        // Deadlines longer than periods do no harm.
        assert_eq!(liu_layland(&set(&[(1, 2, 9)])), Some(true));
    }

    proptest! {
        /// Whatever passes Liu and Layland's bound passes the hyperbolic one.
        #[test]
        fn the_hyperbolic_bound_is_the_better_one(
            tasks in prop::collection::vec((1..1000u64, 0..4000u64), 1..8),
        ) {
            let tasks: Vec<_> =
                tasks.into_iter().map(|(run, rest)| (run, run + rest, run + rest)).collect();
            let set = set(&tasks);
            let (first, second) = (liu_layland(&set).unwrap(), hyperbolic(&set).unwrap());
            prop_assert!(second || !first);
            prop_assert!(fits(&set) || !second);
            let near = (hyperbolic_product(&set) - 2.0).abs() < 1e-9;
            prop_assert!(near || second == (hyperbolic_product(&set) < 2.0));
            let bound = liu_layland_bound(tasks.len());
            let near = (set.utilisation() - bound).abs() < 1e-9;
            prop_assert!(near || first == (set.utilisation() < bound));
        }
    }
}
