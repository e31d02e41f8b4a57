//! Queues with Poisson arrivals and exponential service times, in equilibrium.
//!
//! [`mmc`] has unlimited room, [`mmcn`] a limit. They describe every policy that leaves no CPU idle
//! while a task waits and ignores run times, such as FCFS; mean numbers and times also hold for RR
//! and other forms of processor sharing. They do not describe M-RSF, SJF or SRPT, whose order
//! depends on run times; for a batch under M-RSF see [`crate::m_rsf`]. [`paper`] has the formulas
//! of the M-RSF paper, which are wrong.

pub mod mmc;
pub mod mmcn;
pub mod paper;

use std::fmt;

/// Arrivals and the servers that serve them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// λ, tasks per second.
    arrivals: f64,
    /// 1/μ, ns.
    service: f64,
    servers: u32,
}

/// The most servers, and the highest limit: the probability of every state is stored.
pub const MOST: u32 = 10_000_000;

impl Station {
    /// `arrivals` tasks per second, of a mean `service` in ns, at `servers` servers.
    ///
    /// Errors: `arrivals` or `service` is not above 0 and finite, or `servers` is not in
    /// 1 ..= [`MOST`].
    pub fn new(arrivals: f64, service: f64, servers: u32) -> Result<Station, QueueError> {
        let positive = |number: f64| number.is_finite() && number > 0.0;
        if !positive(arrivals) {
            return Err(QueueError::Arrivals(arrivals));
        }
        if !positive(service) {
            return Err(QueueError::Service(service));
        }
        if !(1..=MOST).contains(&servers) {
            return Err(QueueError::Servers(servers));
        }
        Ok(Station { arrivals, service, servers })
    }

    /// The same, from `load`, the fraction of time that the servers would be busy if nobody were
    /// turned away: ρ = λ / (c · μ).
    ///
    /// Errors: those of [`Station::new`]; `load` is not above 0 and finite.
    pub fn with_load(load: f64, service: f64, servers: u32) -> Result<Station, QueueError> {
        if !(load.is_finite() && load > 0.0) {
            return Err(QueueError::Load(load));
        }
        // Reports invalid services and servers as such, not as the arrival rate they would imply.
        let station = Station::new(1.0, service, servers)?;
        Station::new(load * f64::from(servers) / service * 1e9, station.service, station.servers)
    }

    /// λ, tasks per second.
    pub fn arrivals(&self) -> f64 {
        self.arrivals
    }

    /// 1/μ, ns.
    pub fn service(&self) -> f64 {
        self.service
    }

    /// c.
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// a = λ / μ: how many servers would be busy on average if nobody were turned away.
    pub fn offered(&self) -> f64 {
        self.arrivals * self.service / 1e9
    }

    /// ρ = a / c.
    pub fn load(&self) -> f64 {
        self.offered() / f64::from(self.servers)
    }

    /// Probabilities of 0 ..= `last` tasks up to a common factor, from the ratio of neighbours,
    /// π(k) / π(k − 1) = a / min(k, c). The greatest is 1, so none overflows, and those that
    /// underflow do not matter.
    fn weights(&self, last: u32) -> Vec<f64> {
        let offered = self.offered();
        let ratio = |k: usize| offered / f64::min(k as f64, f64::from(self.servers));
        let grows_to = if offered >= f64::from(self.servers) { last } else { offered as u32 };
        let mode = grows_to.min(last) as usize;
        let mut weights = vec![1.0; last as usize + 1];
        for k in (0..mode).rev() {
            weights[k] = weights[k + 1] / ratio(k + 1);
        }
        for k in mode + 1..weights.len() {
            weights[k] = weights[k - 1] * ratio(k);
        }
        weights
    }
}

/// Long-run means. Times are in ns and those of admitted tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// The fraction of time that a server is busy.
    pub utilisation: f64,
    /// The fraction of arrivals that are turned away.
    pub lost: f64,
    /// The fraction of admitted tasks that have to wait.
    pub waits: f64,
    /// L: the number of tasks in the system.
    pub tasks: f64,
    /// Lq: the number of waiting tasks.
    pub waiting: f64,
    /// Wq: waiting time, ns.
    pub waiting_time: f64,
    /// T: time in the system, ns.
    pub time: f64,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueError {
    /// Arrivals per second that are not above 0.
    Arrivals(f64),
    /// A load that is not above 0.
    Load(f64),
    /// A service time (ns) that is not above 0.
    Service(f64),
    /// No servers, or more than [`MOST`].
    Servers(u32),
    /// A limit below the number of servers, or above [`MOST`].
    Limit {
        /// The limit.
        limit: u32,
        /// The number of servers.
        servers: u32,
    },
    /// More arrives than can be served, and nothing limits the queue.
    Overload(Station),
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::Arrivals(rate) => {
                write!(f, "arrivals is {rate}; it has to be above 0, for example 50 (per second)")
            }
            QueueError::Load(load) => {
                write!(f, "load is {load}; it has to be above 0, for example 0.7")
            }
            QueueError::Service(_) => {
                write!(f, "service is 0; it has to be above 0, for example 10ms")
            }
            QueueError::Servers(servers) => {
                write!(f, "servers is {servers}; it has to be in 1 ..= {MOST}")
            }
            QueueError::Limit { limit, servers } => {
                let why = "it counts those who are served too";
                write!(f, "limit is {limit}; it has to be in {servers} ..= {MOST}, as {why}")
            }
            QueueError::Overload(station) => {
                let most = f64::from(station.servers) / station.service * 1e9;
                let needed = libm::floor(station.offered()) + 1.0;
                write!(
                    f,
                    "load is {}, so the queue grows without bound: arrivals ({}/s) have to stay \
                     below what the servers can do ({}/s); lower them, use at least {needed} \
                     servers, or turn arrivals away at a limit (mmcn)",
                    rounded(station.load()),
                    rounded(station.arrivals),
                    rounded(most)
                )
            }
        }
    }
}

/// Hides digits that arise only because decimal fractions are not exact in binary.
fn rounded(number: f64) -> f64 {
    libm::round(number * 1e6) / 1e6
}

impl std::error::Error for QueueError {}
