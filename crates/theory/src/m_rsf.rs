//! How long a closed batch takes under M-RSF.
//!
//! All n tasks are present at time 0, ordered by run time in Q1. Each gets one slice there;
//! unfinished ones go to Q2, ordered by remaining time, get one slice there, and what is still left
//! goes to Q3, where it runs to completion. On one CPU, without costs and for n → ∞, the mean
//! turnaround is n times the result of the functions here. With c CPUs that share the queues it is
//! n / c times that.

use anysched_core::Span;
use anysched_workload::dist::Dist;
use libm::exp;

/// The mean turnaround divided by n, in multiples of the mean run time, for exponential run times
/// and slices `q` (in the same unit, above 0) in Q1 and Q2.
///
/// With p = e^−q, m = 1 − p and A = 1/4 − p + (3/4 + q/2) p²:
/// A (1 + p²) + p m² + p² m (1 + p) + p⁴ / 4. A is the contribution of tasks that end in Q1. A
/// share p of the tasks enters Q2 when Q1 has taken m, and a share p² enters Q3 when both have
/// taken m (1 + p). As the exponential has no memory, Q2 is Q1 with p times the tasks, and Q3,
/// which is ordered, is SJF with p² times the tasks.
///
/// The result is 0.25, as with SJF, for tiny slices, with which all tasks reach Q3 in order, and
/// for unlimited ones, with which all end in Q1; in between it rises to 0.3804, at q = 0.379.
pub fn exponential_batch(q: f64) -> f64 {
    let p = exp(-q);
    let m = -libm::expm1(-q);
    let p2 = p * p;
    // For large q, q · p² would be infinity times 0.
    let qp2 = if p2 == 0.0 { 0.0 } else { q * p2 };
    let first = 0.25 - p + 0.75 * p2 + qp2 / 2.0;
    first * (1.0 + p2) + p * m * m + p2 * m * (1.0 + p) + p2 * p2 / 4.0
}

/// Mean turnarounds in a closed batch, divided by n, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// Shortest first, which is optimal. SRPT gives the same: nothing arrives later.
    pub sjf: f64,
    /// M-RSF with the slices given.
    pub m_rsf: f64,
    /// First come, first served, in an order that does not depend on run times.
    pub fcfs: f64,
    /// Processor sharing, which RR and fair policies approximate with short slices.
    pub sharing: f64,
}

/// The mean turnarounds in a closed batch of tasks with these run times and slices `q1` and `q2`.
///
/// A task with run time s that ends in Q1 ends when all shorter ones have ended: at the integral of
/// x dF from 0 to s. In Q2 the same holds for the time remaining after q1, counted from the end of
/// Q1, at E\[min(S, q1)\]; likewise in Q3. The outer integral over the tasks is computed by
/// Gauss-Legendre quadrature on pieces of the probability; it is accurate to about six digits.
pub fn batch(service: &Dist, q1: Span, q2: Span) -> Batch {
    let (first, second) = (q1.0 as f64, q1.0 as f64 + q2.0 as f64);
    let stage = |from: f64, to: f64| in_order(service, from, to);
    let mean = service.mean();
    let (in_q1, in_q2) = (service.cdf(first), service.cdf(second));
    let (q1_takes, q2_takes_to) = (service.limited_mean(first), service.limited_mean(second));
    let m_rsf = stage(0.0, first)
        + (in_q2 - in_q1) * q1_takes
        + stage(first, second)
        + (1.0 - in_q2) * q2_takes_to
        + stage(second, f64::INFINITY);
    let sharing = over_tasks(service, 0.0, 1.0, |s| service.limited_mean(s));
    Batch { sjf: stage(0.0, f64::INFINITY), m_rsf, fcfs: mean / 2.0, sharing }
}

/// The integral, over tasks with run times between `from` and `to`, of the time at which they end
/// if their remainders are served in order, counted from when all have received `from`.
fn in_order(service: &Dist, from: f64, to: f64) -> f64 {
    let base = service.limited_mean(from);
    // ∫ (x − from) dF from `from` to s, by parts.
    let ends = |s: f64| service.limited_mean(s) - base - (s - from) * (1.0 - service.cdf(s));
    over_tasks(service, service.cdf(from), service.cdf(to), ends)
}

/// The integral of `value` (a function of the run time) over the tasks between two probabilities.
fn over_tasks(service: &Dist, from: f64, to: f64, value: impl Fn(f64) -> f64) -> f64 {
    // Five points; abscissas and weights on −1 ..= 1.
    const POINTS: [(f64, f64); 5] = [
        (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    const PIECES: u32 = 400;
    let width = (to - from) / f64::from(PIECES);
    let piece = |number: u32| {
        let middle = from + (f64::from(number) + 0.5) * width;
        let at =
            |&(x, weight): &(f64, f64)| weight * value(service.quantile(middle + x * width / 2.0));
        POINTS.iter().map(at).sum::<f64>() * width / 2.0
    };
    (0..PIECES).map(piece).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn close(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() <= by, "{found}, not {wanted}");
    }

    #[test]
    fn the_closed_form() {
        for (q, wanted) in [(0.5, 0.3758), (1.0, 0.3268), (1.5, 0.2892), (2.0, 0.2687)] {
            close(exponential_batch(q), wanted, 0.00005);
        }
        close(exponential_batch(1e-6), 0.25, 2e-6);
        assert_eq!(exponential_batch(1e6), 0.25);
        close(exponential_batch(0.379), 0.3804, 0.00005);
        assert!(exponential_batch(0.379) > exponential_batch(0.37));
        assert!(exponential_batch(0.379) > exponential_batch(0.39));
    }

    #[test]
    fn the_integral_and_the_closed_form_agree() {
        let service = Dist::parse("exp(10ms)", Path::new("")).unwrap();
        for q in [0.5, 1.0, 1.5, 2.0, 7.0] {
            let slice = Span((q * 1e7) as u64);
            let batch = batch(&service, slice, slice);
            close(batch.m_rsf / 1e7, exponential_batch(q), 2e-6);
            close(batch.sjf / 1e7, 0.25, 2e-6);
            close(batch.fcfs / 1e7, 0.5, 1e-12);
            close(batch.sharing / 1e7, 0.5, 2e-6);
        }
    }

    /// Simulates the rule with tasks at the midpoints of 4000 equal shares of the distribution.
    fn played(service: &Dist, q1: f64, q2: f64) -> f64 {
        let n = 4000;
        let tasks: Vec<f64> =
            (0..n).map(|k| service.quantile((f64::from(k) + 0.5) / f64::from(n))).collect();
        let (mut now, mut sum) = (0.0, 0.0);
        let mut queue = tasks;
        for slice in [q1, q2, f64::INFINITY] {
            let mut next = Vec::new();
            for left in queue {
                now += f64::min(left, slice);
                if left > slice {
                    next.push(left - slice);
                } else {
                    sum += now;
                }
            }
            queue = next;
        }
        sum / f64::from(n) / f64::from(n)
    }

    #[test]
    fn other_distributions_are_as_when_played() {
        for text in [
            "exp(10ms)",
            "uniform(1ms, 9ms)",
            "lognormal(10ms, 1.0)",
            "pareto(1.5, 1ms, 1s)",
            "hyperexp(0.9: 1ms, 0.1: 50ms)",
        ] {
            let service = Dist::parse(text, Path::new("")).unwrap();
            for (q1, q2) in [(1e6, 1e6), (5e6, 2e6), (5e6, 20e6)] {
                let found = batch(&service, Span(q1 as u64), Span(q2 as u64));
                let wanted = played(&service, q1, q2);
                close(found.m_rsf / wanted, 1.0, 0.01);
                let wanted = played(&service, 1e18, 1e18);
                close(found.sjf / wanted, 1.0, 0.01);
                assert!(found.sjf <= found.m_rsf * (1.0 + 1e-9), "{text}");
            }
        }
    }

    #[test]
    fn equal_tasks_take_half_a_batch_unless_they_share() {
        let service = Dist::constant(Span::from_ms(2));
        let batch = batch(&service, Span::from_ms(2), Span::from_ms(2));
        close(batch.sharing, 2e6, 1.0);
        close(batch.fcfs, 1e6, 1e-9);
    }
}
