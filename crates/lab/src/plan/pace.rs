//! How far an experiment is while its runs are under way, and how long the rest takes.

use crate::plan::size::Length;
use anysched_core::Time;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How far a run has to be, or how long it has to have run, for its time so far to say how long all
/// of it takes.
const TELLING: (f64, f64) = (0.01, 2.0);

/// Between two times that somebody is told within runs.
const PAUSE: Duration = Duration::from_secs(1);

/// Since when time is counted; `None` in WebAssembly, which has no clock.
#[derive(Clone, Copy, Debug)]
struct Clock(Option<Instant>);

impl Clock {
    fn begin() -> Clock {
        Clock((!cfg!(target_family = "wasm")).then(Instant::now))
    }

    fn elapsed(self) -> Duration {
        self.0.map_or(Duration::ZERO, |began| began.elapsed())
    }
}

/// The runs of an experiment in time. Rows differ: a policy or machine may take a hundred times as
/// long as another. So each row goes by its own runs, and by the mean of the others only as long as
/// it has none.
#[derive(Debug)]
pub(crate) struct Pace {
    began: Clock,
    jobs: usize,
    /// Runs of each row.
    seeds: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    rows: Vec<RowPace>,
    under_way: HashMap<usize, UnderWay>,
    done: usize,
    /// When somebody was told last.
    told: Duration,
}

#[derive(Clone, Debug, Default)]
struct RowPace {
    /// Runs that need not be made any more.
    done: usize,
    /// How long those took of them that were made here.
    took: Duration,
    made: u32,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    began: Duration,
    /// How much of it is done, if that can be told.
    share: Option<f64>,
}

/// What can be said at some moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) done: usize,
    /// Runs that are done, and the parts of others that are.
    pub(crate) progress: f64,
    pub(crate) left: Option<Duration>,
}

impl Length {
    /// How much of a run is over at a time; `None`: it goes on for longer than was to be seen.
    pub(crate) fn share(self, now: Time) -> Option<f64> {
        let whole = match self {
            Length::Until(end) => end.0,
            Length::AtLeast(span) => span.0,
        };
        let share = now.0 as f64 / whole.max(1) as f64;
        (share <= 1.0).then_some(share)
    }
}

impl Pace {
    pub(crate) fn new(rows: usize, seeds: usize, jobs: usize) -> Pace {
        let rows = vec![RowPace::default(); rows];
        let (under_way, told) = (HashMap::new(), Duration::ZERO);
        let inner = Mutex::new(Inner { rows, under_way, done: 0, told });
        Pace { began: Clock::begin(), jobs: jobs.max(1), seeds, inner }
    }

    /// A run begins.
    pub(crate) fn begin(&self, number: usize) {
        let began = self.began.elapsed();
        self.with(|inner| inner.under_way.insert(number, UnderWay { began, share: None }));
    }

    /// A run is so far; what to tell, if it is time to.
    pub(crate) fn beat(&self, number: usize, share: Option<f64>) -> Option<Said> {
        let now = self.began.elapsed();
        self.with(|inner| {
            if let Some(run) = inner.under_way.get_mut(&number) {
                run.share = share;
            }
            // Without a clock whoever is told has to see to it that it is not too often.
            let is_due = self.began.0.is_none() || now >= inner.told + PAUSE;
            is_due.then(|| self.say(inner, now))
        })
    }

    /// A run is done; what to tell.
    pub(crate) fn end(&self, number: usize) -> Said {
        let now = self.began.elapsed();
        self.with(|inner| {
            let row = &mut inner.rows[number / self.seeds];
            row.done += 1;
            if let Some(run) = inner.under_way.remove(&number) {
                row.took += now.saturating_sub(run.began);
                row.made += 1;
            }
            inner.done += 1;
            self.say(inner, now)
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn say(&self, inner: &mut Inner, now: Duration) -> Said {
        // There may be a million rows, and nobody reads that fast.
        let is_early = now < inner.told + PAUSE / 10 && inner.told > Duration::ZERO;
        let left = if is_early { None } else { inner.left(self.seeds, self.jobs, now) };
        if !is_early {
            inner.told = now;
        }
        let shares = inner.under_way.values().filter_map(|run| run.share);
        Said { done: inner.done, progress: inner.done as f64 + shares.sum::<f64>(), left }
    }
}

impl Inner {
    /// How long what is left takes, as far as can be told.
    fn left(&self, seeds: usize, jobs: usize, now: Duration) -> Option<Duration> {
        let mut of_rows: HashMap<usize, Vec<(f64, Option<f64>)>> = HashMap::new();
        for (number, run) in &self.under_way {
            let time = now.saturating_sub(run.began).as_secs_f64();
            let tells = |share: &f64| *share > 0.0 && (*share >= TELLING.0 || time >= TELLING.1);
            let whole = run.share.filter(tells).map(|share| time / share);
            of_rows.entry(number / seeds).or_default().push((time, whole));
        }
        let nothing = Vec::new();
        let under_way = |row: usize| of_rows.get(&row).unwrap_or(&nothing);
        // How long a run of a row takes, by those that have been made, or else by those that are.
        let own = |row: usize| {
            let RowPace { took, made, .. } = self.rows[row];
            let known: Vec<f64> = under_way(row).iter().filter_map(|(_, whole)| *whole).collect();
            match (made, known.len()) {
                (0, 0) => None,
                (0, n) => Some(known.iter().sum::<f64>() / n as f64),
                _ => Some(took.as_secs_f64() / f64::from(made)),
            }
        };
        let all: Vec<Option<f64>> = (0..self.rows.len()).map(own).collect();
        let known: Vec<f64> = all.iter().flatten().copied().collect();
        if known.is_empty() {
            return None;
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let (mut sum, mut longest) = (0.0, 0.0f64);
        for (row, cost) in all.iter().enumerate() {
            let cost = cost.unwrap_or(mean);
            let begun = under_way(row);
            for (time, whole) in begun {
                let left = (whole.unwrap_or(cost) - time).max(0.0);
                (sum, longest) = (sum + left, longest.max(left));
            }
            let rest = (seeds - self.rows[row].done).saturating_sub(begun.len());
            sum += rest as f64 * cost;
            if rest > 0 {
                longest = longest.max(cost);
            }
        }
        let seconds = (sum / jobs as f64).max(longest);
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Span;

    fn seconds(time: f64) -> Duration {
        Duration::from_secs_f64(time)
    }

    /// Two rows of four runs on two jobs: the first row took 1 s a run, the second takes 10 s.
    fn pace() -> Inner {
        let first = RowPace { done: 4, took: seconds(4.0), made: 4 };
        let under_way = [
            (4, UnderWay { began: seconds(2.0), share: Some(0.5) }),
            (5, UnderWay { began: seconds(2.0), share: None }),
        ];
        Inner {
            rows: vec![first, RowPace::default()],
            under_way: under_way.into(),
            done: 4,
            told: Duration::ZERO,
        }
    }

    #[test]
    fn a_row_goes_by_its_own_runs() {
        // 5 s of the first run are left, 5 s of the second, which goes by the first, and two runs
        // of 10 s.
        assert_eq!(pace().left(4, 2, seconds(7.0)), Some(seconds(15.0)));
        // One alone takes as long as it takes, however many jobs there are.
        assert_eq!(pace().left(4, 100, seconds(7.0)), Some(seconds(10.0)));
    }

    #[test]
    fn without_runs_of_its_own_a_row_goes_by_the_others() {
        let mut pace = pace();
        pace.under_way.clear();
        assert_eq!(pace.left(4, 2, seconds(7.0)), Some(seconds(2.0)));
        pace.rows[0] = RowPace::default();
        assert_eq!(pace.left(4, 2, seconds(7.0)), None);
    }

    #[test]
    fn what_has_only_begun_tells_nothing() {
        let mut pace = pace();
        pace.rows[0] = RowPace::default();
        for run in pace.under_way.values_mut() {
            run.share = Some(0.001);
        }
        assert_eq!(pace.left(4, 2, seconds(2.5)), None);
        // After a while it does: the two others of the row go by these two.
        let left = pace.left(4, 2, seconds(4.0)).unwrap();
        assert_eq!(left.as_secs(), (2.0 * 1998.0 + 6.0 * 2000.0) as u64 / 2);
    }

    #[test]
    fn runs_that_were_recalled_took_no_time() {
        let pace = Pace::new(1, 3, 1);
        let said = pace.end(0);
        assert_eq!((said.done, said.progress, said.left), (1, 1.0, None));
    }

    #[test]
    fn a_run_that_is_longer_than_expected_tells_nothing() {
        let length = Length::AtLeast(Span(200));
        assert_eq!(length.share(Time(50)), Some(0.25));
        assert_eq!(length.share(Time(201)), None);
        assert_eq!(Length::Until(Time(200)).share(Time(200)), Some(1.0));
    }
}
