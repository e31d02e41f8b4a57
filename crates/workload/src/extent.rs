//! How much there is of a load, as far as that can be said without running it.

use anysched_core::Time;

/// How much there is of a load. Where a policy has a say in it these are lower bounds, where chance
/// has, means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extent {
    /// Tasks, jobs, requests or rounds: what a run of it does at least one thing for.
    pub steps: f64,
    /// CPU time of the fastest CPU that they use, in ns.
    pub work: f64,
    /// When the last of them begins at the earliest, in ns.
    pub last: f64,
    /// How many of them come whether those before are done or not.
    pub uninvited: f64,
}

impl Extent {
    /// Of both.
    pub fn and(self, other: Extent) -> Extent {
        Extent {
            steps: self.steps + other.steps,
            work: self.work + other.work,
            last: self.last.max(other.last),
            uninvited: self.uninvited + other.uninvited,
        }
    }

    /// How long it takes at least on CPUs that together do so much per time, in ns.
    pub fn length(&self, capacity: f64) -> f64 {
        self.last.max(self.work / capacity)
    }

    /// Steps that come one by one, `gap` ns apart on average, each with `run` ns of CPU time.
    pub(crate) fn arriving(
        count: Option<u64>,
        start: Time,
        until: Option<Time>,
        gap: f64,
        run: f64,
    ) -> Extent {
        let time = until.map_or(f64::INFINITY, |until| until.since(start).0 as f64);
        let steps = limit(count).min(time / gap);
        let last = start.0 as f64 + steps * gap;
        Extent { steps, work: steps * run, last, uninvited: steps }
    }

    /// What `tasks` tasks do over and over on `cpus` CPUs, each time with `run` ns of CPU time and
    /// at least `cycle` ns after the last time, until they have done so `rounds` times or until a
    /// time.
    pub(crate) fn repeated(
        (tasks, cpus): (u32, usize),
        rounds: Option<u64>,
        until: Option<Time>,
        cycle: f64,
        run: f64,
    ) -> Extent {
        let (tasks, cycle) = (f64::from(tasks), cycle.max(run).max(1.0));
        let time = until.map_or(f64::INFINITY, |until| until.0 as f64);
        let each = limit(rounds).min(time / cycle);
        // They wait for each other where there are more than CPUs.
        let steps = (tasks * each).min(time * cpus as f64 / run.max(1.0));
        let last = (each - 1.0).max(0.0) * cycle;
        Extent { steps, work: steps * run, last, uninvited: 0.0 }
    }
}

/// The number, or infinity.
fn limit(count: Option<u64>) -> f64 {
    count.map_or(f64::INFINITY, |count| count as f64)
}

/// The earlier of two ends, where there are any.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Dist;
    use crate::generate::{Arrivals, Batch, Closed, Generator, Interactive, Open, Settings};
    use anysched_core::Span;

    const SECOND: Option<Time> = Some(Time(1_000_000_000));

    fn ms(time: u64) -> Dist {
        Dist::constant(Span::from_ms(time))
    }

    #[test]
    fn a_batch_has_its_work() {
        let (settings, at) = (Settings::default(), Time(5));
        let batch = Batch { settings, tasks: 10, service: ms(2), at };
        let extent = batch.extent(4, None);
        assert_eq!((extent.steps, extent.work, extent.last), (10.0, 20e6, 5.0));
        assert_eq!(extent.length(4.0), 5e6);
    }

    #[test]
    fn what_arrives_is_limited_by_time_or_number() {
        let (settings, start) = (Settings::default(), Time::ZERO);
        let arrivals = Arrivals::Rate(100.0);
        let open = Open { settings, arrivals, service: ms(2), tasks: None, start, until: SECOND };
        let extent = open.extent(1, None);
        assert_eq!((extent.steps, extent.uninvited, extent.last), (100.0, 100.0, 1e9));
        let shorter = open.extent(1, Some(Time(500_000_000)));
        assert_eq!((shorter.steps, shorter.work), (50.0, 100e6));
        let few = Open { tasks: Some(3), ..open }.extent(1, None);
        assert_eq!((few.steps, few.last), (3.0, 30e6));
    }

    #[test]
    fn what_repeats_waits_for_cpus() {
        let settings = Settings::default();
        let (run, sleep, offset) = (ms(1), ms(9), ms(0));
        let users =
            Interactive { settings, tasks: 20, run, sleep, offset, rounds: None, until: SECOND };
        // Each 100 times in a second, but two CPUs have room for 2000 runs, not one for each of
        // 400 tasks.
        assert_eq!(users.extent(2, None).steps, 2000.0);
        assert_eq!(Interactive { tasks: 400, ..users }.extent(2, None).steps, 2000.0);
    }

    #[test]
    fn requests_are_the_fewest_that_any_limit_allows() {
        let text = "clients 4 requests 1000 each 50";
        let settings = Settings::default();
        let closed = Closed {
            settings,
            clients: 4,
            requests: Some(1000),
            each: Some(50),
            service: ms(1),
            think: ms(3),
            until: None,
            persistent: false,
        };
        assert_eq!(closed.extent(1, None).steps, 200.0, "{text}");
        assert_eq!(Closed { requests: Some(7), ..closed }.extent(1, None).steps, 7.0);
    }
}
