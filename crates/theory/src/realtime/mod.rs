//! Whether periodic tasks on one CPU meet their deadlines, decided without running them.
//!
//! A task is due every `period`, and its n-th job is released at most `jitter` later; it runs for
//! at most `run` and must finish within `deadline` of when it was due. Preemption is immediate and
//! free, and tasks do not wait for each other.
//!
//! - [`bounds`]: tests that look only at utilisations: Liu and Layland's bound, the hyperbolic
//!   bound, U ≤ 1, and density.
//! - [`fixed`]: worst-case response times under fixed priorities, deadline-monotonic or any other.
//! - [`edf`]: the demand of earliest deadline first.
//!
//! All decisions use integers. What cannot be decided in [`EFFORT`] terms is an error, [`TooLong`],
//! not a guess.

pub mod bounds;
pub mod edf;
pub mod fixed;
mod natural;
mod read;

use anysched_core::Span;
use std::fmt;

pub use read::read;

/// The most tasks that a set may have.
pub const MOST_TASKS: usize = 1000;

/// The longest period, deadline or jitter: half of what 64 bits hold, 292 years.
const LONGEST: Span = Span(u64::MAX / 2);

/// How many terms (one task at one point in time) an analysis adds up before it gives up; takes
/// seconds.
pub const EFFORT: u64 = 1 << 26;

/// A periodic task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The longest CPU time of a job.
    pub run: Span,
    /// Time from when a job is due to when the next one is.
    pub period: Span,
    /// Time from when a job is due to its deadline; may be longer than the period.
    pub deadline: Span,
    /// How late the release of a job can be.
    pub jitter: Span,
}

impl Task {
    /// A task whose jobs are released when due and have to finish within the period.
    pub fn new(run: Span, period: Span) -> Task {
        Task { run, period, deadline: period, jitter: Span::ZERO }
    }

    /// Its share of the CPU, for display.
    pub fn utilisation(&self) -> f64 {
        self.run.0 as f64 / self.period.0 as f64
    }

    fn check(&self) -> Result<(), String> {
        let Task { run, period, deadline, jitter } = *self;
        for (name, value) in [("period", period), ("deadline", deadline), ("jitter", jitter)] {
            if value > LONGEST {
                return Err(format!("{name} is {value}; it can be at most 292 years"));
            }
        }
        for (name, value) in [("run", run), ("period", period), ("deadline", deadline)] {
            if value == Span::ZERO {
                return Err(format!("{name} is 0; it has to be above 0, for example 2ms"));
            }
        }
        match run > period {
            true => Err(format!(
                "run is {run}, but the period only {period}: each job would need more than there \
                 is before the next; shorten run or lengthen the period"
            )),
            false => Ok(()),
        }
    }
}

/// Periodic tasks: 1 to [`MOST_TASKS`], none of which needs more than one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSet {
    tasks: Vec<Task>,
}

/// Why tasks or a file with tasks were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetError(String);

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetError {}

/// The analysis would need more than [`EFFORT`] terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "what is not known would take more than 67 million steps;\n\
             round times to fewer digits, or lower the utilisation",
        )
    }
}

impl std::error::Error for TooLong {}

/// What is left of [`EFFORT`].
struct Effort(u64);

impl Effort {
    fn new() -> Effort {
        Effort(EFFORT)
    }

    fn spend(&mut self, terms: usize) -> Result<(), TooLong> {
        self.0 = self.0.checked_sub(terms.max(1) as u64).ok_or(TooLong)?;
        Ok(())
    }
}

impl TaskSet {
    /// Errors: no task or too many, a time of 0, a run time above the period, or a time above 292
    /// years. Tasks are counted from 1.
    pub fn new(tasks: Vec<Task>) -> Result<TaskSet, SetError> {
        if tasks.is_empty() {
            return Err(SetError("there is no task; at least one is needed".to_string()));
        }
        if tasks.len() > MOST_TASKS {
            let count = tasks.len();
            return Err(SetError(format!("{count} tasks; at most {MOST_TASKS} can be analysed")));
        }
        for (nth, task) in tasks.iter().enumerate() {
            task.check().map_err(|why| SetError(format!("task {}: {why}", nth + 1)))?;
        }
        Ok(TaskSet { tasks })
    }

    /// The tasks, as given.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The sum of the utilisations, for display; [`bounds::fits`] decides.
    pub fn utilisation(&self) -> f64 {
        self.tasks.iter().map(Task::utilisation).sum()
    }

    /// The tasks' indices by relative deadline, ties in the order given.
    pub fn deadline_monotonic(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by_key(|&task| self.tasks[task].deadline);
        order
    }

    /// The least common multiple of the periods in ns; `None` if it needs more than 128 bits.
    pub fn hyperperiod(&self) -> Option<u128> {
        self.tasks.iter().try_fold(1, |lcm: u128, task| {
            let period = u128::from(task.period.0);
            lcm.checked_mul(period / gcd(lcm, period))
        })
    }

    /// How long to simulate, in ns, after all tasks are released together, to see a missed deadline
    /// if there ever is one, under any policy that leaves no CPU idle beside a ready task and
    /// without late releases. `None` if it needs more than 128 bits.
    ///
    /// With a utilisation U ≤ 1 no work is left at the end of the hyperperiod H, and the schedule
    /// repeats. With U > 1, some of the U·H ns of work released in H is left, and if no deadline is
    /// longer than its period, all of it was due. Otherwise (U − 1) H ns are left per hyperperiod,
    /// k (U − 1) H ns after k of them; for some k that exceeds the longest deadline, and one
    /// longest deadline later all of it is due.
    pub fn horizon(&self) -> Option<u128> {
        let hyperperiod = self.hyperperiod()?;
        let work = self.tasks.iter().try_fold(0u128, |sum, task| {
            let jobs = hyperperiod / u128::from(task.period.0);
            sum.checked_add(jobs.checked_mul(u128::from(task.run.0))?)
        })?;
        if work <= hyperperiod || self.constrained() {
            return Some(hyperperiod);
        }
        let deadline = u128::from(self.tasks.iter().map(|task| task.deadline.0).max()?);
        let times = deadline / (work - hyperperiod) + 1;
        times.checked_mul(hyperperiod)?.checked_add(deadline)
    }

    /// No deadline is longer than its period.
    fn constrained(&self) -> bool {
        self.tasks.iter().all(|task| task.deadline <= task.period)
    }

    fn has_jitter(&self) -> bool {
        self.tasks.iter().any(|task| task.jitter > Span::ZERO)
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
pub(crate) fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
    let task = |&(run, period, deadline): &(u64, u64, u64)| Task {
        deadline: Span(deadline),
        ..Task::new(Span(run), Span(period))
    };
    TaskSet::new(tasks.iter().map(task).collect()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyperperiods_and_horizons() {
        let tasks = set(&[(1, 4, 4), (2, 6, 6), (3, 10, 10)]);
        assert_eq!((tasks.hyperperiod(), tasks.horizon()), (Some(60), Some(60)));
        // Each 10 ns leaves 1 ns: the 21 left after the 21st are due 20 later.
        let over = set(&[(6, 10, 20), (5, 10, 10)]);
        assert_eq!(over.horizon(), Some(21 * 10 + 20));
        // U > 1, but each deadline is within its period.
        assert_eq!(set(&[(6, 10, 10), (5, 10, 8)]).horizon(), Some(10));
        let primes = [(1 << 61) - 1, (1 << 31) - 1, (1 << 62) - 57, 1_000_000_007];
        let primes = primes.map(|period| (1, period, period));
        assert_eq!(set(&primes).hyperperiod(), None);
        assert_eq!(set(&primes[..2]).hyperperiod(), Some(((1 << 61) - 1) * ((1 << 31) - 1)));
    }

    #[test]
    fn sets_that_are_none() {
        let error = |tasks: Vec<Task>| TaskSet::new(tasks).unwrap_err().to_string();
        assert_eq!(error(Vec::new()), "there is no task; at least one is needed");
        let many = vec![Task::new(Span(1), Span(2)); 1001];
        assert_eq!(error(many), "1001 tasks; at most 1000 can be analysed");
        let (good, bad) = (Task::new(Span(1), Span(2)), Task::new(Span(3), Span(2)));
        assert_eq!(
            error(vec![good, bad]),
            "task 2: run is 3ns, but the period only 2ns: each job would need more than there is \
             before the next; shorten run or lengthen the period"
        );
        let late = Task { jitter: Span::MAX, ..good };
        assert_eq!(error(vec![late]), "task 1: jitter is none; it can be at most 292 years");
    }
}
