//! M/M/c: every arrival waits until served.

use super::{Measures, QueueError, Station};

/// The equilibrium of M/M/c.
#[derive(Clone, Debug, PartialEq)]
pub struct Mmc {
    station: Station,
    /// π(0) ..= π(c).
    first: Vec<f64>,
}

impl Mmc {
    /// Errors: the load is 1 or more.
    pub fn new(station: Station) -> Result<Mmc, QueueError> {
        let load = station.load();
        if load >= 1.0 {
            return Err(QueueError::Overload(station));
        }
        let mut first = station.weights(station.servers);
        // Beyond c the states form a geometric series.
        let beyond = first[station.servers as usize] * load / (1.0 - load);
        let sum = first.iter().sum::<f64>() + beyond;
        first.iter_mut().for_each(|weight| *weight /= sum);
        Ok(Mmc { station, first })
    }

    /// π(k), the probability of `k` tasks.
    pub fn pi(&self, k: u32) -> f64 {
        match self.first.get(k as usize) {
            Some(&probability) => probability,
            None => {
                let last = self.first[self.first.len() - 1];
                last * libm::pow(self.station.load(), f64::from(k - self.station.servers))
            }
        }
    }

    /// The long-run means. An arrival waits with Erlang's probability C(c, a).
    pub fn measures(&self) -> Measures {
        let Station { arrivals, service, servers } = self.station;
        let load = self.station.load();
        let waits = self.first[servers as usize] / (1.0 - load);
        let waiting = waits * load / (1.0 - load);
        let waiting_time = waiting / arrivals * 1e9;
        Measures {
            utilisation: load,
            lost: 0.0,
            waits,
            tasks: waiting + self.station.offered(),
            waiting,
            waiting_time,
            time: waiting_time + service,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() <= by * wanted.abs().max(1e-300), "{found}, not {wanted}");
    }

    fn mmc(load: f64, servers: u32) -> Mmc {
        Mmc::new(Station::with_load(load, 1e9, servers).unwrap()).unwrap()
    }

    /// Erlang's C from tables, and M/M/1 and M/M/2 in closed form.
    #[test]
    fn values_of_textbooks() {
        for load in [0.1, 0.5, 0.9, 0.99] {
            let one = mmc(load, 1).measures();
            close(one.waits, load, 1e-13);
            close(one.tasks, load / (1.0 - load), 1e-12);
            close(one.waiting, load * load / (1.0 - load), 1e-12);
            close(one.time, 1e9 / (1.0 - load), 1e-12);
            let two = mmc(load, 2).measures();
            close(two.waits, 2.0 * load * load / (1.0 + load), 1e-12);
            close(two.tasks, 2.0 * load / (1.0 - load * load), 1e-12);
        }
        // a = 2, c = 3: π(0) = 1/9, C = 4/9, Lq = 8/9.
        let three = mmc(2.0 / 3.0, 3);
        close(three.pi(0), 1.0 / 9.0, 1e-13);
        close(three.measures().waits, 4.0 / 9.0, 1e-13);
        close(three.measures().waiting, 8.0 / 9.0, 1e-13);
        close(three.measures().waiting_time, 4.0 / 9.0 * 1e9, 1e-13);
        // a = 8, c = 10: Erlang's C is 0.409180.
        close(mmc(0.8, 10).measures().waits, 0.409_180, 1e-5);
    }

    #[test]
    fn means_are_those_of_the_probabilities() {
        for (load, servers) in [(0.3, 1), (0.9, 1), (0.7, 3), (0.95, 16), (0.99, 400)] {
            let queue = mmc(load, servers);
            let (mut sum, mut tasks, mut waiting) = (0.0, 0.0, 0.0);
            for k in 0..10_000 {
                let pi = queue.pi(k);
                sum += pi;
                tasks += f64::from(k) * pi;
                waiting += f64::from(k.saturating_sub(servers)) * pi;
            }
            close(sum, 1.0, 1e-11);
            close(tasks, queue.measures().tasks, 1e-9);
            close(waiting, queue.measures().waiting, 1e-9);
            // Little's law for all tasks in the system.
            close(queue.measures().time / 1e9 * queue.station.arrivals, tasks, 1e-9);
        }
    }

    /// Neither e^100 000 nor 100 000! fits into a float.
    #[test]
    fn many_servers_overflow_nothing() {
        let queue = mmc(0.999, 100_000).measures();
        assert!(queue.waits > 0.0 && queue.waits < 1.0, "{queue:?}");
        close(queue.tasks, 99_900.0 + queue.waiting, 1e-12);
    }

    #[test]
    fn wrong_numbers_say_what_to_change() {
        let by_load = |load| Station::with_load(load, 1e7, 1).unwrap_err().to_string();
        assert_eq!(by_load(0.0), "load is 0; it has to be above 0, for example 0.7");
        let new = |arrivals, service, servers| {
            Station::new(arrivals, service, servers).unwrap_err().to_string()
        };
        assert_eq!(
            new(-3.0, 1e7, 1),
            "arrivals is -3; it has to be above 0, for example 50 (per second)"
        );
        assert_eq!(new(5.0, 0.0, 1), "service is 0; it has to be above 0, for example 10ms");
        assert_eq!(new(5.0, 1e7, 0), "servers is 0; it has to be in 1 ..= 10000000");
        let full = Mmc::new(Station::new(250.0, 1e7, 2).unwrap()).unwrap_err();
        assert_eq!(
            full.to_string(),
            "load is 1.25, so the queue grows without bound: arrivals (250/s) have to stay below \
             what the servers can do (200/s); lower them, use at least 3 servers, or turn arrivals \
             away at a limit (mmcn)"
        );
    }
}
