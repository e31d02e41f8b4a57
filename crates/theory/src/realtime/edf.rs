//! Whether earliest deadline first meets all deadlines.
//!
//! Source: S. Baruah, L. Rosier and R. Howell, Real-Time Systems 2(4), 1990 (demand); M. Spuri,
//! INRIA report 2772, 1996 (busy period, jitter, longer deadlines than periods); F. Zhang and
//! A. Burns, IEEE Transactions on Computers 58(9), 2009 (QPA).

use super::natural::Sum;
use super::{Effort, TaskSet, TooLong, bounds};
use std::cmp::Ordering;

/// Time from the release of the first jobs, in ns. With jitter, deadlines may precede it.
type Instant = i128;

/// A point at which more work is due than time has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Time in ns from when all tasks are released together.
    pub at: u128,
    /// The CPU time in ns of the jobs released since then with deadlines at or before `at`.
    pub work: u128,
}

/// Whether EDF can schedule a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No job ever misses its deadline.
    Schedulable,
    /// Jobs miss deadlines if all tasks are released together, first as late as possible and then
    /// as early as possible; the first miss is at this time. `None` if it is too far away to be
    /// found.
    Misses(Option<Demand>),
}

/// A task, as the demand function needs it.
#[derive(Clone, Copy, Debug)]
struct Jobs {
    run: i128,
    period: i128,
    jitter: i128,
    /// The deadline of the first job.
    first: Instant,
}

impl Jobs {
    /// How many jobs have deadlines at or before `at`.
    fn due(&self, at: Instant) -> i128 {
        if at < self.first { 0 } else { (at - self.first) / self.period + 1 }
    }
}

/// Exact for any deadlines, jitter and utilisations.
///
/// Deadlines are met if and only if the demand h(t), the work released and due within 0 ..= t,
/// never exceeds t when all first jobs are released at 0. It is enough to check the deadlines
/// before the CPU first becomes free; QPA checks only few of them.
///
/// Errors: a busy period has too many jobs to decide.
pub fn verdict(set: &TaskSet) -> Result<Verdict, TooLong> {
    // It also decides cases at once that would take long otherwise, such as U = 1 and many jobs.
    if bounds::dense_enough(set) { Ok(Verdict::Schedulable) } else { by_demand(set) }
}

fn by_demand(set: &TaskSet) -> Result<Verdict, TooLong> {
    let mut load = Sum::zero();
    set.tasks().iter().for_each(|task| load.add(task.run.0, task.period.0));
    let wide = |span: anysched_core::Span| i128::from(span.0);
    let jobs: Vec<Jobs> = set
        .tasks()
        .iter()
        .map(|task| Jobs {
            run: wide(task.run),
            period: wide(task.period),
            jitter: wide(task.jitter),
            first: wide(task.deadline) - wide(task.jitter),
        })
        .collect();
    if load.cmp_one() == Ordering::Greater {
        return Ok(Verdict::Misses(first_failure(&jobs, &mut Effort::new()).ok()));
    }
    let mut effort = Effort::new();
    let end = match load.cmp_one() == Ordering::Equal && set.has_jitter() {
        // The CPU is never free. From the latest of the first deadlines on, h(t + H) = h(t) + H.
        true => {
            let hyperperiod = set.hyperperiod().and_then(|span| i128::try_from(span).ok());
            let last = jobs.iter().map(|task| task.first.max(0)).max().unwrap_or(0);
            hyperperiod.and_then(|span| span.checked_add(last)).ok_or(TooLong)?
        }
        false => busy_period(&jobs, &mut effort)?,
    };
    Ok(match qpa(&jobs, end, &mut effort)? {
        true => Verdict::Schedulable,
        false => Verdict::Misses(first_failure(&jobs, &mut Effort::new()).ok()),
    })
}

/// When the CPU first becomes free: the smallest w > 0 with w = Σ ⌈(w + J) / T⌉ C.
fn busy_period(jobs: &[Jobs], effort: &mut Effort) -> Result<Instant, TooLong> {
    let mut end: i128 = jobs.iter().map(|task| task.run).sum();
    loop {
        effort.spend(jobs.len())?;
        let work = jobs.iter().map(|task| {
            let releases = (end + task.jitter + task.period - 1) / task.period;
            releases * task.run
        });
        let next = work.sum();
        if next == end {
            return Ok(end);
        }
        end = next;
    }
}

/// h(t).
fn demand(jobs: &[Jobs], at: Instant) -> i128 {
    jobs.iter().map(|task| task.due(at) * task.run).sum()
}

/// The last deadline before `end`.
fn deadline_before(jobs: &[Jobs], end: Instant) -> Option<Instant> {
    let last = |task: &Jobs| match task.due(end - 1) {
        0 => None,
        due => Some(task.first + (due - 1) * task.period),
    };
    jobs.iter().filter_map(last).max()
}

/// Whether h(t) ≤ t at all deadlines before `end`. Works backwards: if h(t) ≤ t, no deadline in
/// h(t) .. t can fail, because demand does not decrease.
fn qpa(jobs: &[Jobs], end: Instant, effort: &mut Effort) -> Result<bool, TooLong> {
    let mut at = deadline_before(jobs, end);
    while let Some(now) = at {
        effort.spend(2 * jobs.len())?;
        let demand = demand(jobs, now);
        if demand > now {
            return Ok(false);
        }
        // At the demand itself h may fail; below it, the next candidate is the deadline before.
        at = deadline_before(jobs, demand + i128::from(demand < now));
    }
    Ok(true)
}

/// The first deadline at which demand exceeds time; there is one.
fn first_failure(jobs: &[Jobs], effort: &mut Effort) -> Result<Demand, TooLong> {
    let mut at = jobs.iter().map(|task| task.first).min().unwrap_or(0).max(0);
    loop {
        effort.spend(2 * jobs.len())?;
        let work = demand(jobs, at);
        if work > at {
            return Ok(Demand { at: at as u128, work: work as u128 });
        }
        let next = |task: &Jobs| task.first + task.due(at) * task.period;
        at = jobs.iter().map(next).min().ok_or(TooLong)?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Task, set};
    use super::*;
    use anysched_core::Span;
    use proptest::prelude::*;

    fn misses(at: u128, work: u128) -> Result<Verdict, TooLong> {
        Ok(Verdict::Misses(Some(Demand { at, work })))
    }

    #[test]
    fn by_hand() {
        assert_eq!(verdict(&set(&[(2, 4, 4), (3, 6, 6)])), Ok(Verdict::Schedulable));
        assert_eq!(verdict(&set(&[(2, 4, 3), (3, 6, 6)])), Ok(Verdict::Schedulable));
        // 2 by 2, 6, 10 and 3 by 5, 11: 2 + 3 by 5; 7 by 6.
        assert_eq!(verdict(&set(&[(2, 4, 2), (3, 6, 5)])), misses(6, 7));
        assert_eq!(verdict(&set(&[(2, 4, 2), (3, 6, 4)])), misses(4, 5));
        // Overload: 4 by 4, 8 by 8, 12 by 12 and 1 by 12.
        assert_eq!(verdict(&set(&[(4, 4, 4), (1, 12, 12)])), misses(12, 13));
        // With a longer deadline the first miss is at 24: 24 + 1.
        assert_eq!(verdict(&set(&[(4, 4, 4), (1, 12, 24)])), misses(24, 25));
        assert_eq!(verdict(&set(&[(3, 4, 4), (3, 12, 24)])), Ok(Verdict::Schedulable));
        assert_eq!(verdict(&set(&[(3, 9, 2)])), misses(2, 3));
    }

    #[test]
    fn jitter() {
        let late = |deadline, jitter| {
            let late = Task {
                deadline: Span(deadline),
                jitter: Span(jitter),
                ..Task::new(Span(2), Span(4))
            };
            verdict(&TaskSet::new(vec![late, Task::new(Span(2), Span(4))]).unwrap())
        };
        assert_eq!(late(4, 0), Ok(Verdict::Schedulable));
        // 2 by 3 and 2 by 7, and 2 by 4 and 2 by 8: 6 by 7, 8 by 8.
        assert_eq!(late(4, 1), Ok(Verdict::Schedulable));
        assert_eq!(late(4, 2), Ok(Verdict::Schedulable));
        // 2 by 1.
        assert_eq!(late(4, 3), misses(1, 2));
        assert_eq!(late(4, 4), misses(0, 2));
        assert_eq!(late(4, 9), misses(0, 4));
        assert_eq!(late(9, 9), misses(0, 2));
    }

    #[test]
    fn what_takes_too_long_is_no_guess() {
        let second = 1_000_000_000;
        let over = [(second, second, second), (1, 1 << 60, 1 << 62)];
        assert_eq!(verdict(&set(&over)), Ok(Verdict::Misses(None)));
        let full =
            |deadline| set(&[(second - 1, second, deadline), (second - 7, 1 << 62, 1 << 62)]);
        assert_eq!(verdict(&full(second - 1)), Err(TooLong));
        assert_eq!(verdict(&full(second)), Ok(Verdict::Schedulable));
    }

    /// Checks each instant of two hyperperiods plus the longest deadline.
    fn by_trying(set: &TaskSet) -> Option<Demand> {
        let longest = set.tasks().iter().map(|task| task.deadline.0).max().unwrap();
        let end = 2 * set.hyperperiod().unwrap() as u64 + longest;
        (0..=end).find_map(|at| {
            let of = |task: &Task| match (at + task.jitter.0).checked_sub(task.deadline.0) {
                Some(time) => (time / task.period.0 + 1) * task.run.0,
                None => 0,
            };
            let work = set.tasks().iter().map(of).sum::<u64>();
            (work > at).then_some(Demand { at: at.into(), work: work.into() })
        })
    }

    fn sets() -> impl Strategy<Value = TaskSet> {
        let periods = prop::sample::select(vec![2u64, 3, 4, 6, 8, 12, 24]);
        let task =
            (periods, 0..100u64, 1..30u64, 0..6u64).prop_map(|(period, run, deadline, j)| {
                let run = 1 + run * period / 300;
                let jitter = Span(j.saturating_sub(2));
                Task { deadline: Span(deadline), jitter, ..Task::new(Span(run), Span(period)) }
            });
        prop::collection::vec(task, 1..5).prop_map(|tasks| TaskSet::new(tasks).unwrap())
    }

    proptest! {
        #[test]
        fn as_when_each_instant_is_tried(set in sets()) {
            let found = by_demand(&set).unwrap();
            prop_assert_eq!(verdict(&set), Ok(found));
            match by_trying(&set) {
                Some(demand) => prop_assert_eq!(found, Verdict::Misses(Some(demand))),
                None if bounds::fits(&set) => prop_assert_eq!(found, Verdict::Schedulable),
                None => prop_assert!(matches!(found, Verdict::Misses(_))),
            }
            if bounds::dense_enough(&set) {
                prop_assert_eq!(found, Verdict::Schedulable);
            }
        }
    }
}
