//! What became of the requests.

use super::Cost;
use anysched_core::Span;
use anysched_wire::datagram::Answer;

/// What became of all requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// All requests.
    pub all: Class,
    /// The requests of each cost, in the order of the load's costs.
    pub classes: Vec<Class>,
    /// From the first request to the last answer, by this computer's clock.
    pub elapsed: Span,
    /// Datagrams that were not answers, or that answered a request already counted as lost.
    pub strays: u64,
    /// How far the server's clock advanced per unit of this computer's; `None` if there was too
    /// little time between answers to tell.
    pub clock: Option<f64>,
}

/// What became of a class of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What each cost; `None`: they differ.
    pub work: Option<Span>,
    /// How many were sent.
    pub sent: u64,
    /// How many of them were not answered in time.
    pub lost: u64,
    /// Answers a second, by this computer's clock.
    pub per_s: f64,
    /// Answers a second, by the server's clock: unaffected by what else this computer does. `None`
    /// as for [`Report::clock`].
    pub per_server_s: Option<f64>,
    /// From sending to the answer, by this computer's clock.
    pub round_trip: Option<Spread>,
    /// From when the server took the request from its socket to the start of the work, by the
    /// server's clock.
    pub queued: Option<Spread>,
    /// From the start to the end of the work, including interruptions, by the server's clock.
    pub served: Option<Spread>,
}

/// A distribution of times, in nanoseconds. Percentiles are by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

impl Spread {
    /// The spread of `times`, which it sorts; `None` if there are none.
    fn of(mut times: Vec<u64>) -> Option<Spread> {
        times.sort_unstable();
        let max = *times.last()?;
        let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
        let rank = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
        let mean = sum as f64 / times.len() as f64;
        Some(Spread { mean, p50: rank(50), p95: rank(95), p99: rank(99), max })
    }
}

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Index into the load's costs.
    pub class: u16,
    /// When, since the start of the load.
    pub sent: u64,
    /// `None`: it was lost.
    pub answered: Option<Answered>,
}

/// An answer. Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// When, since the start of the load.
    at: u64,
    /// When the work ended, by the server's clock.
    end: u64,
    round_trip: u64,
    queued: u64,
    served: u64,
}

impl Answered {
    pub fn new(at: u64, round_trip: u64, answer: &Answer) -> Answered {
        Answered {
            at,
            end: answer.end,
            round_trip,
            queued: answer.start.saturating_sub(answer.arrival),
            served: answer.end.saturating_sub(answer.start),
        }
    }
}

impl Report {
    pub(super) fn new(costs: &[Cost], samples: &[Sample], strays: u64) -> Report {
        let answers = || samples.iter().filter_map(|sample| sample.answered.as_ref());
        let start = samples.iter().map(|sample| sample.sent).min().unwrap_or(0);
        let first = answers().min_by_key(|answer| answer.at);
        let last = answers().max_by_key(|answer| answer.at);
        let elapsed = Span(last.map_or(0, |last| last.at - start));
        let clock = first.zip(last).and_then(|(first, last)| {
            let here = last.at - first.at;
            (here > 0).then(|| last.end.saturating_sub(first.end) as f64 / here as f64)
        });
        let of = |class: usize, cost: &Cost| {
            let own = samples.iter().filter(|sample| usize::from(sample.class) == class);
            Class::new(Some(cost.work), own.copied().collect(), elapsed, clock)
        };
        let only = costs.first().filter(|_| costs.len() == 1).map(|cost| cost.work);
        Report {
            all: Class::new(only, samples.to_vec(), elapsed, clock),
            classes: costs.iter().enumerate().map(|(class, cost)| of(class, cost)).collect(),
            elapsed,
            strays,
            clock,
        }
    }
}

impl Class {
    fn new(work: Option<Span>, samples: Vec<Sample>, elapsed: Span, clock: Option<f64>) -> Class {
        let answers: Vec<Answered> = samples.iter().filter_map(|sample| sample.answered).collect();
        let spread = |time: fn(&Answered) -> u64| Spread::of(answers.iter().map(time).collect());
        let per_s = answers.len() as f64 * 1e9 / elapsed.0.max(1) as f64;
        Class {
            work,
            sent: samples.len() as u64,
            lost: (samples.len() - answers.len()) as u64,
            per_s,
            per_server_s: clock.filter(|&clock| clock > 0.0).map(|clock| per_s / clock),
            round_trip: spread(|answer| answer.round_trip),
            queued: spread(|answer| answer.queued),
            served: spread(|answer| answer.served),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_by_hand() {
        // Ranks of 200 numbers: 100, 190, 198.
        let spread = Spread::of((1..=200).rev().collect()).unwrap();
        assert_eq!((spread.p50, spread.p95, spread.p99, spread.max), (100, 190, 198, 200));
        assert_eq!(spread.mean, 100.5);
        let one = Spread::of(vec![7]).unwrap();
        assert_eq!((one.p50, one.p99, one.mean), (7, 7, 7.0));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    /// Two classes, four requests in 4 s: 10 and 30 ns for the first, and one of the second lost.
    #[test]
    fn a_report_by_hand() {
        const S: u64 = 1_000_000_000;
        let costs = [(5, 1), (6, 1)].map(|(work, weight)| Cost { work: Span(work), weight });
        let answer = |at, round_trip, end| {
            let answer = Answer { number: 0, sent: 0, arrival: end - 9, start: end - 5, end };
            Some(Answered::new(at, round_trip, &answer))
        };
        let samples = [
            Sample { class: 0, sent: S, answered: answer(2 * S, 30, 7 * S) },
            Sample { class: 1, sent: S, answered: None },
            Sample { class: 0, sent: 3 * S, answered: answer(4 * S, 10, 8 * S) },
            Sample { class: 1, sent: 4 * S, answered: answer(5 * S, 80, 13 * S) },
        ];
        let report = Report::new(&costs, &samples, 3);
        assert_eq!((report.elapsed, report.strays), (Span(4 * S), 3));
        assert_eq!(report.clock, Some(2.0), "6 s of theirs in 3 s of ours");
        let [first, second] = &report.classes[..] else { panic!("two classes") };
        assert_eq!((first.sent, first.lost, first.per_s), (2, 0, 0.5));
        assert_eq!(first.per_server_s, Some(0.25));
        assert_eq!((second.sent, second.lost, second.per_s), (2, 1, 0.25));
        assert_eq!(first.round_trip.unwrap().mean, 20.0);
        assert_eq!(first.queued.unwrap().max, 4);
        assert_eq!(first.served.unwrap().p50, 5);
        let all = &report.all;
        assert_eq!((all.work, all.sent, all.lost, all.per_s), (None, 4, 1, 0.75));
    }

    #[test]
    fn without_answers_there_is_nothing_to_say() {
        let cost = Cost { work: Span(5), weight: 1 };
        let lost = Sample { class: 0, sent: 7, answered: None };
        let report = Report::new(&[cost], &[lost], 0);
        assert_eq!((report.elapsed, report.clock), (Span::ZERO, None));
        let Class { work, sent, lost, per_s, round_trip, .. } = report.all;
        assert_eq!((work, sent, lost, per_s), (Some(Span(5)), 1, 1, 0.0));
        assert_eq!(round_trip, None);
    }
}
