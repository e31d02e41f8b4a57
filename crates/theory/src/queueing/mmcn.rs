//! M/M/c/N: arrivals that find N tasks present are turned away.

use super::{MOST, Measures, QueueError, Station};

/// The equilibrium of M/M/c/N. It exists for every load.
#[derive(Clone, Debug, PartialEq)]
pub struct Mmcn {
    station: Station,
    /// π(0) ..= π(N).
    pi: Vec<f64>,
}

impl Mmcn {
    /// With room for `limit` tasks, including those in service.
    ///
    /// Errors: `limit` is not in `servers` ..= [`MOST`].
    pub fn new(station: Station, limit: u32) -> Result<Mmcn, QueueError> {
        if !(station.servers..=MOST).contains(&limit) {
            return Err(QueueError::Limit { limit, servers: station.servers });
        }
        let mut pi = station.weights(limit);
        let sum: f64 = pi.iter().sum();
        pi.iter_mut().for_each(|weight| *weight /= sum);
        Ok(Mmcn { station, pi })
    }

    /// The probabilities of 0 ..= N tasks.
    pub fn pi(&self) -> &[f64] {
        &self.pi
    }

    /// The long-run means. Times are those of admitted tasks, by Little's law: Wq = Lq / (λ (1 −
    /// π(N))).
    pub fn measures(&self) -> Measures {
        let Station { arrivals, service, servers } = self.station;
        let lost = self.pi[self.pi.len() - 1];
        let waiting = |(k, pi): (usize, &f64)| k.saturating_sub(servers as usize) as f64 * pi;
        let waiting = self.pi.iter().enumerate().map(waiting).sum::<f64>();
        // 1 − lost, without the cancellation when nearly all are turned away.
        let let_in = self.pi[..self.pi.len() - 1].iter().sum::<f64>();
        let waits = self.pi[servers as usize..self.pi.len() - 1].iter().sum::<f64>() / let_in;
        let waiting_time = waiting / (arrivals * let_in) * 1e9;
        Measures {
            utilisation: self.station.load() * let_in,
            lost,
            waits,
            tasks: self.pi.iter().enumerate().map(|(k, pi)| k as f64 * pi).sum(),
            waiting,
            waiting_time,
            time: waiting_time + service,
        }
    }
}

/// Lq of M/M/1/N in closed form, for a load `rho` other than 1:
/// ρ² (1 − N ρ^(N−1) + (N − 1) ρ^N) / ((1 − ρ) (1 − ρ^(N+1))).
pub fn mm1n_waiting(rho: f64, limit: u32) -> f64 {
    let n = f64::from(limit);
    let power = |exponent: f64| libm::pow(rho, exponent);
    rho * rho * (1.0 - n * power(n - 1.0) + (n - 1.0) * power(n))
        / ((1.0 - rho) * (1.0 - power(n + 1.0)))
}

#[cfg(test)]
mod tests {
    use super::super::mmc::Mmc;
    use super::*;

    fn close(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() <= by * wanted.abs().max(1e-300), "{found}, not {wanted}");
    }

    fn station(load: f64, servers: u32) -> Station {
        Station::with_load(load, 1e9, servers).unwrap()
    }

    fn mmcn(load: f64, servers: u32, limit: u32) -> Mmcn {
        Mmcn::new(station(load, servers), limit).unwrap()
    }

    /// a = 2, c = 2, N = 3: weights 1, 2, 2, 2.
    #[test]
    fn by_hand() {
        let queue = mmcn(1.0, 2, 3);
        for (found, wanted) in queue.pi().iter().zip([1.0, 2.0, 2.0, 2.0]) {
            close(*found, wanted / 7.0, 1e-14);
        }
        let means = queue.measures();
        close(means.lost, 2.0 / 7.0, 1e-14);
        close(means.waiting, 2.0 / 7.0, 1e-14);
        close(means.tasks, 12.0 / 7.0, 1e-14);
        // 10/7 per second are admitted; 2/5 of them find two tasks.
        close(means.waiting_time, 0.2e9, 1e-14);
        close(means.time, 1.2e9, 1e-14);
        close(means.waits, 0.4, 1e-14);
        close(means.utilisation, 5.0 / 7.0, 1e-14);
    }

    #[test]
    fn probabilities_sum_to_one_and_little_holds() {
        for load in [1e-9, 0.2, 0.9, 1.0, 1.1, 50.0, 1e9] {
            for (servers, limit) in [(1, 1), (1, 20), (3, 3), (3, 50), (64, 2000), (2000, 2000)] {
                let queue = mmcn(load, servers, limit);
                close(queue.pi().iter().sum(), 1.0, 1e-12);
                let means = queue.measures();
                let let_in = queue.station.arrivals / 1e9 * (1.0 - means.lost);
                if means.lost < 0.999 {
                    close(means.tasks, let_in * means.time, 1e-9);
                }
                // Flow between neighbouring states is equal in both directions.
                for k in 1..=limit.min(100) {
                    let up = queue.station.offered() * queue.pi()[k as usize - 1];
                    close(f64::from(k.min(servers)) * queue.pi()[k as usize], up, 1e-12);
                }
            }
        }
    }

    #[test]
    fn one_server_has_a_closed_form() {
        for rho in [0.1, 0.5, 0.9, 1.5] {
            for limit in [1, 2, 5, 30] {
                let queue = mmcn(rho, 1, limit);
                let found = queue.measures().waiting;
                assert!((found - mm1n_waiting(rho, limit)).abs() <= 1e-10 * found.max(1.0));
                let first = (1.0 - rho) / (1.0 - rho.powi(limit as i32 + 1));
                close(queue.pi()[0], first, 1e-12);
            }
        }
    }

    #[test]
    fn a_high_limit_changes_nothing() {
        for (load, servers) in [(0.5, 1), (0.9, 3), (0.95, 16)] {
            let (limited, open) =
                (mmcn(load, servers, 5000).measures(), Mmc::new(station(load, servers)).unwrap());
            let open = open.measures();
            close(limited.waiting, open.waiting, 1e-9);
            close(limited.time, open.time, 1e-9);
            close(limited.waits, open.waits, 1e-9);
        }
    }

    /// Without waiting room this is Erlang's loss formula: B(2, 1) = 1/5, B(10, 8) = 0.121661.
    #[test]
    fn no_room_is_erlangs_loss() {
        close(mmcn(0.5, 2, 2).measures().lost, 0.2, 1e-14);
        close(mmcn(0.8, 10, 10).measures().lost, 0.121_661, 1e-5);
        assert_eq!(mmcn(0.8, 10, 10).measures().waits, 0.0);
    }

    #[test]
    fn a_limit_below_the_servers_is_refused() {
        assert_eq!(
            Mmcn::new(station(0.5, 3), 2).unwrap_err().to_string(),
            "limit is 2; it has to be in 3 ..= 10000000, as it counts those who are served too"
        );
    }
}
