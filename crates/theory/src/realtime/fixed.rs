//! Worst-case response times under fixed priorities.
//!
//! Source: M. Joseph and P. Pandya, The Computer Journal 29(5), 1986, for deadlines within the
//! period; J. Lehoczky, RTSS 1990, for longer ones; K. Tindell, A. Burns and A. Wellings,
//! Real-Time Systems 6(2), 1994, for both with jitter.

use super::natural::Sum;
use super::{Effort, Task, TaskSet, TooLong};
use std::cmp::Ordering;

/// The worst-case response times under deadline-monotonic order, indexed as in the set; among equal
/// deadlines, the first task in the set has priority. See [`responses_in`].
///
/// This order is optimal among fixed priorities if no deadline is longer than its period and no
/// release is late (Leung and Whitehead 1982).
pub fn responses(set: &TaskSet) -> Result<Vec<Option<u128>>, TooLong> {
    responses_in(set, &set.deadline_monotonic())
}

/// Whether all tasks meet their deadlines, given these worst-case response times.
pub fn meets(set: &TaskSet, responses: &[Option<u128>]) -> bool {
    let meets = |(task, response): (&Task, &Option<u128>)| {
        response.is_some_and(|response| response <= u128::from(task.deadline.0))
    };
    set.tasks().iter().zip(responses).all(meets)
}

/// The worst-case response times in ns, indexed as in the set, when the tasks numbered in `order`
/// have descending priorities; tasks not in it do not run and have none. Exact: response times
/// count from when a job is due, some pattern of releases attains each, and jobs that miss their
/// deadlines still run to completion. `None` if it grows without bound.
///
/// Errors: a busy period has too many jobs.
pub fn responses_in(set: &TaskSet, order: &[usize]) -> Result<Vec<Option<u128>>, TooLong> {
    let mut responses = vec![None; set.tasks().len()];
    let mut effort = Effort::new();
    let mut load = Sum::zero();
    let mut before: Vec<Task> = Vec::with_capacity(order.len());
    for &number in order {
        let task = set.tasks()[number];
        load.add(task.run.0, task.period.0);
        if load.cmp_one() == Ordering::Greater {
            break;
        }
        let full = load.cmp_one() == Ordering::Equal;
        responses[number] = Some(response(&task, &before, full, &mut effort)?);
        before.push(task);
    }
    Ok(responses)
}

/// The worst-case response time of `task` when the tasks in `before` have precedence; `full`: these
/// tasks together keep the CPU fully busy.
///
/// All are released together, first as late as possible and then as early as possible: the (q +
/// 1)-th job finishes at the smallest w with w = (q + 1) C + Σ ⌈(w + J) / T⌉ C over `before`, and
/// was due at q T − J. The worst response time is that of a job before the CPU becomes free. With
/// jitter and a full CPU it never does; then everything repeats with the hyperperiod.
fn response(
    task: &Task,
    before: &[Task],
    full: bool,
    effort: &mut Effort,
) -> Result<u128, TooLong> {
    let wide = u128::from;
    let (run, period, jitter) = (wide(task.run.0), wide(task.period.0), wide(task.jitter.0));
    let mut last = u128::MAX;
    if full {
        let set = TaskSet { tasks: [before, &[*task]].concat() };
        if set.has_jitter() {
            last = set.hyperperiod().ok_or(TooLong)? / period;
        }
    }
    let (mut done, mut worst, mut jobs) = (wide(0), 0, 0);
    loop {
        jobs += 1;
        done += run;
        loop {
            effort.spend(before.len())?;
            let others = before.iter().map(|other| {
                let releases = (done + wide(other.jitter.0)).div_ceil(wide(other.period.0));
                releases * wide(other.run.0)
            });
            let next = jobs * run + others.sum::<u128>();
            if next == done {
                break;
            }
            done = next;
        }
        worst = worst.max(done + jitter - (jobs - 1) * period);
        if done + jitter <= jobs * period || jobs >= last {
            return Ok(worst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::set;
    use super::*;
    use anysched_core::Span;

    fn worst(tasks: &[(u64, u64, u64)]) -> Vec<Option<u128>> {
        responses(&set(tasks)).unwrap()
    }

    /// 3 in 7, 3 in 12, 5 in 20: the last one is done at 5 + 3·3 + 2·3 = 20.
    #[test]
    fn deadlines_within_the_period() {
        assert_eq!(worst(&[(3, 7, 7), (3, 12, 12), (5, 20, 20)]), [Some(3), Some(6), Some(20)]);
        // The order is by deadline, not by period, and not as given.
        assert_eq!(worst(&[(3, 7, 7), (3, 12, 5)]), [Some(6), Some(3)]);
        assert_eq!(worst(&[(2, 4, 4), (4, 8, 8)]), [Some(2), Some(8)]);
        // Ties in the order given.
        assert_eq!(worst(&[(1, 9, 9), (2, 10, 9)]), [Some(1), Some(3)]);
    }

    /// Lehoczky's example: 26 in 70 and 62 in 100. The second task's jobs take 114, 102, 116, 104,
    /// 118, 106 and 94, when the CPU is free at 694: the first job is not the worst.
    #[test]
    fn longer_deadlines_than_periods() {
        let tasks = set(&[(26, 70, 70), (62, 100, 118)]);
        let found = responses(&tasks).unwrap();
        assert_eq!(found, [Some(26), Some(118)]);
        assert!(meets(&tasks, &found));
        let shorter = set(&[(26, 70, 70), (62, 100, 117)]);
        assert!(!meets(&shorter, &responses(&shorter).unwrap()));
    }

    #[test]
    fn overload_has_no_bound_below_it() {
        let tasks = [(1, 2, 2), (2, 4, 4), (1, 100, 100)];
        assert_eq!(worst(&tasks), [Some(1), Some(4), None]);
        assert!(!meets(&set(&tasks), &worst(&tasks)));
    }

    /// The first task, 2 in 10 and up to 3 late, is released at 0 and 7.
    #[test]
    fn jitter() {
        let task = |run, period, jitter| Task {
            jitter: Span(jitter),
            ..Task::new(Span(run), Span(period))
        };
        let tasks = |second: Task| TaskSet::new(vec![task(2, 10, 3), second]).unwrap();
        let found = |second| responses(&tasks(second)).unwrap();
        assert_eq!(found(task(5, 20, 0)), [Some(5), Some(7)]);
        assert_eq!(found(task(6, 20, 0)), [Some(5), Some(10)]);
        assert_eq!(found(task(6, 20, 4)), [Some(5), Some(14)]);
        // A full CPU is never free: 8 in 10 beside it is done at 12; the first
        // task is released at 0, 7 and 17.
        assert_eq!(found(task(8, 10, 0)), [Some(5), Some(12)]);
    }

    #[test]
    fn what_takes_too_long_is_no_guess() {
        let second = 1_000_000_000;
        let close = set(&[(second - 1, second, second), (1, second + 1, second + 1)]);
        assert_eq!(responses(&close), Ok(vec![Some(u128::from(second) - 1), Some(1000000000)]));
        let tasks = [(second - 1, second, second), (second - 7, 1 << 62, 1 << 62)];
        assert_eq!(responses(&set(&tasks)), Err(TooLong));
    }
}
