//! Random sets of periodic tasks with a given load.

use super::periodic::{Jobs, Limits, Timing};
use super::{
    Generator, MAX_SOURCES, MAX_TASKS, Maker, SettingError, Settings, check, check_count,
    check_period, check_until,
};
use crate::Load;
use crate::dist::{Dist, to_span};
use crate::extent::{Extent, earlier};
use crate::kinds::{Needs, keys};
use crate::rng::Rng;
use anysched_core::{Span, Time};
use libm::{exp, expm1, log, log1p};

keys! {
    /// Periodic tasks with random periods, and random utilisations of a given sum.
    ///
    /// The periods are log-uniform: as many tasks have periods of 1 to 10 ms as of 10 to 100 ms
    /// (Emberson, Stafford and Davis 2010). Each job runs for utilisation · period, rounded to the
    /// ns, which is also the task's budget.
    ///
    /// The deadline counts from the release of each job; without one it is the period.
    pub struct TaskSet {
        ..settings: Settings;
        /// How many tasks there are.
        tasks: u32 = needed, eg "20", in 0..=MAX_SOURCES;
        /// The sum of their utilisations as a fraction of all CPUs; no task needs more than one
        /// CPU.
        load: f64 = needed, eg "0.8";
        /// The shortest and the longest period.
        periods: (Span, Span) = needed, eg "1ms, 100ms";
        /// Periods are rounded to multiples of this, which keeps their common multiple small; at
        /// most the shortest period.
        period_step: Span = "1ns", eg "1ms";
        /// When a task arrives: its first release before jitter, drawn for each task.
        offset: Dist = "0ns", eg "uniform(0ns, 10ms)";
        /// Maximum delay of a release, drawn uniformly for each job; at most the shortest period.
        jitter: Span = "0ns", eg "1ms";
        /// How many jobs each task has.
        jobs: Option<u64> = none "no limit", eg "100", in 0..=MAX_TASKS;
        /// No release is due at this time or later, before jitter.
        until: Option<Time> = none "no limit", eg "10s";
    }
}

impl TaskSet {
    fn period(&self, rng: &mut Rng) -> Span {
        let (low, high, step) =
            (self.periods.0.0 as f64, self.periods.1.0 as f64, self.period_step.0);
        let period = to_span(low * exp(rng.unit() * log(high / low)));
        let steps = (period.0 + step / 2) / step;
        Span((steps * step).clamp(self.periods.0.0, self.periods.1.0))
    }

    fn timings(&self, seed: u64, cpus: usize) -> Vec<Timing> {
        let total = self.load * cpus as f64;
        let mut rng = Rng::stream(seed, "utilisations");
        let utilisations = utilisations(self.tasks as usize, total, &mut rng);
        let mut rng = Rng::stream(seed, "periods");
        let timing = |utilisation: f64| {
            let period = self.period(&mut rng);
            let run = to_span(utilisation * period.0 as f64).max(Span(1));
            let deadline = self.settings.deadline.unwrap_or(period);
            Timing { period, deadline, budget: Some(run), run: Dist::constant(run) }
        };
        utilisations.into_iter().map(timing).collect()
    }
}

impl Generator for TaskSet {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.tasks > 0, "tasks", self.tasks, "at least 1")?;
        let total = self.load * cpus as f64;
        let right = self.load > 0.0 && total <= f64::from(self.tasks);
        let why = format!(
            "above 0; on {cpus} CPUs at most {} for {} tasks, of which each needs at most one CPU",
            f64::from(self.tasks) / cpus as f64,
            self.tasks
        );
        check(right, "load", self.load, why)?;
        let (low, high) = self.periods;
        check_period("periods", low)?;
        check_period("periods", high)?;
        check(low <= high, "periods", format_args!("{low}, {high}"), "the shorter one first")?;
        let right = self.period_step > Span::ZERO && self.period_step <= low;
        check(right, "period_step", self.period_step, "above 0, at most the shortest period")?;
        check(self.jitter <= low, "jitter", self.jitter, "at most the shortest period")?;
        check_count("jobs", self.jobs)?;
        check_until(Time::ZERO, self.until)
    }

    fn endless(&self) -> bool {
        self.jobs.is_none() && self.until.is_none()
    }

    fn utilisation(&self, cpus: usize) -> f64 {
        self.load * cpus as f64
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        // Periods are as frequent as their logarithms are even, so this is the mean rate's.
        let (low, high) = (self.periods.0.0 as f64, self.periods.1.0 as f64);
        let period = if low < high { log(high / low) / (1.0 / low - 1.0 / high) } else { low };
        let run = period * self.load * cpus as f64 / f64::from(self.tasks);
        let until = earlier(self.until, until);
        Extent::repeated((self.tasks, cpus), self.jobs, until, period, run)
    }

    fn needs(&self) -> Needs {
        // Without one of its own, the deadline of a job is the next release.
        Needs { deadlines: true, ..self.settings.needs() }
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let limits = Limits { jitter: self.jitter, jobs: self.jobs, until: self.until };
        let maker = Maker::new(&self.settings, self.tasks > 1);
        let timings = self.timings(seed, cpus);
        Ok(Box::new(Jobs::new(maker, timings, &self.offset, limits, seed)))
    }
}

/// `n` utilisations of at most 1 that sum to `total`, which is in 0 ..= n; uniformly distributed
/// over all such sets.
///
/// This is the distribution of UUniFast (Bini and Buttazzo 2005) and, above 1, of UUniFast-Discard
/// (Davis and Burns 2009). UUniFast-Discard hardly ever ends once `total` is a large part of `n`.
/// Instead, n − 1 values are drawn from the exponential density c·e^(−rate·u) on 0 ..= 1 whose mean
/// is total / n; the last value makes up the sum. Given their sum, all sets have the same density
/// but for the last value's factor, e^(−rate·u), which is the probability with which the set is
/// accepted: about one in sqrt(2πn).
pub fn utilisations(n: usize, total: f64, rng: &mut Rng) -> Vec<f64> {
    let n_real = n as f64;
    // Sets of sum `total` and of sum n − total mirror each other.
    if total > n_real / 2.0 {
        let unused = utilisations(n, n_real - total, rng);
        return unused.into_iter().map(|unused| 1.0 - unused).collect();
    }
    if total <= 0.0 {
        return vec![0.0; n];
    }
    let rate = rate_for_mean(total / n_real);
    let (end, mut set) = (expm1(-rate), Vec::with_capacity(n));
    loop {
        set.clear();
        set.extend((1..n).map(|_| -log1p(rng.unit() * end) / rate));
        let last = total - set.iter().sum::<f64>();
        if (0.0..=1.0).contains(&last) && rng.unit() < exp(-rate * last) {
            set.push(last);
            return set;
        }
    }
}

/// The rate above 0 with which the density c·e^(−rate·u) on 0 ..= 1 has this mean, which is in 0
/// ..= ½. It need not be exact: it decides how often a set is rejected, not which ones.
fn rate_for_mean(mean: f64) -> f64 {
    let (mut low, mut high) = (1e-6, 1.0 / mean);
    for _ in 0..60 {
        let rate = (low + high) / 2.0;
        if 1.0 / rate - 1.0 / expm1(rate) > mean {
            low = rate;
        } else {
            high = rate;
        }
    }
    high
}
