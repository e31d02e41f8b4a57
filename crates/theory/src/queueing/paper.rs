//! Equations (9) to (11) of the M-RSF paper, as printed, to show where they go wrong. Nothing else
//! uses them.
//!
//! The paper describes three servers with room for N tasks and calls ρ = σ / μ the load, with the
//! names of completions and arrivals swapped. [`Mmcn`](super::mmcn::Mmcn) is the model it
//! describes.

use libm::pow;

/// Equation (9), "the probability of `k` tasks": 3 (1 − ρ) ρ^k / (1 − ρ^(N+1)).
///
/// This is three times the probability in M/M/1/N, so over 0 ..= N it sums to 3. Having three
/// servers instead of one does not multiply probabilities; it changes the first three ratios.
pub fn paper_pi(rho: f64, limit: u32, k: u32) -> f64 {
    3.0 * (1.0 - rho) * pow(rho, f64::from(k)) / (1.0 - pow(rho, f64::from(limit) + 1.0))
}

/// Equation (10) as the sum it starts from, "the length of the queue": k · π(k + 1) from k = 0 to
/// N.
///
/// The last term has π(N + 1), a state that does not exist. Only one of k + 1 tasks is counted as
/// being served, although there are three servers.
pub fn paper_queue_sum(rho: f64, limit: u32) -> f64 {
    (0..=limit).map(|k| f64::from(k) * paper_pi(rho, limit, k + 1)).sum()
}

/// Equation (10) as the closed form it ends with:
/// 3 ρ² / (1 − ρ) − (N + 1) ρ^(N+1) / (1 − ρ^(N+1)).
///
/// It does not equal the sum: the second term lacks the factor 3 and the correction for the last
/// state.
pub fn paper_queue_closed(rho: f64, limit: u32) -> f64 {
    let n = f64::from(limit) + 1.0;
    3.0 * rho * rho / (1.0 - rho) - n * pow(rho, n) / (1.0 - pow(rho, n))
}

/// Equation (11), "the time in the system": the closed form of (10) divided by ρ.
///
/// Little's law divides by the rate of admitted arrivals. Dividing a number of tasks by a number
/// without a unit leaves a number of tasks: the result is not a time.
pub fn paper_time(rho: f64, limit: u32) -> f64 {
    paper_queue_closed(rho, limit) / rho
}

/// The last expression of equation (11), which is divided by ρ a second time.
pub fn paper_time_last(rho: f64, limit: u32) -> f64 {
    paper_time(rho, limit) / rho
}

#[cfg(test)]
mod tests {
    use super::super::Station;
    use super::super::mmcn::{Mmcn, mm1n_waiting};
    use super::*;

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{found}, not {wanted}");
    }

    #[test]
    fn the_probabilities_sum_to_three() {
        for (rho, limit) in [(0.5, 10), (0.9, 100), (1.5, 20)] {
            close((0..=limit).map(|k| paper_pi(rho, limit, k)).sum(), 3.0);
        }
    }

    /// ρ = 1/2, N = 2. By (9) the states have 12/7, 6/7, 3/7, and a fourth 3/14. The sum in (10)
    /// is 1 · 3/7 + 2 · 3/14 = 6/7; the closed form 3/2 − 3/7 = 15/14; M/M/1/N has 1/7.
    #[test]
    fn the_queue_is_three_different_numbers() {
        close(paper_pi(0.5, 2, 0), 12.0 / 7.0);
        close(paper_queue_sum(0.5, 2), 6.0 / 7.0);
        close(paper_queue_closed(0.5, 2), 15.0 / 14.0);
        close(mm1n_waiting(0.5, 2), 1.0 / 7.0);
        // Apart from the factor 3, the non-existent last state is all that is wrong with the sum.
        let last = 2.0 * paper_pi(0.5, 2, 3);
        close(paper_queue_sum(0.5, 2) - last, 3.0 * mm1n_waiting(0.5, 2));
    }

    /// With ρ = 0.9 and ample room, (10) says 24.3 waiting; three servers have 7.35.
    #[test]
    fn the_queue_of_three_servers_is_another() {
        let station = Station::with_load(0.9, 1e9, 3).unwrap();
        let real = Mmcn::new(station, 1000).unwrap().measures().waiting;
        assert!((real - 7.3535).abs() < 1e-4, "{real}");
        close(paper_queue_closed(0.9, 1000), 24.3);
    }

    /// Tasks that are twice as long stay twice as long; according to (11), nothing changes.
    #[test]
    fn the_time_has_no_unit_and_is_divided_twice() {
        let time = |service| {
            let station = Station::with_load(0.5, service, 3).unwrap();
            Mmcn::new(station, 10).unwrap().measures().time
        };
        close(time(2e9), 2.0 * time(1e9));
        close(paper_time(0.5, 2), 15.0 / 7.0);
        close(paper_time_last(0.5, 2), 30.0 / 7.0);
    }
}
