//! Requests from outside and tasks that serve them.

use super::{
    Generator, MAX_SOURCES, MAX_TASKS, Maker, SettingError, Settings, check, check_count,
    check_run, check_until,
};
use crate::dist::Dist;
use crate::extent::{Extent, earlier};
use crate::kinds::{Kind, LoadSpec, Needs, Place, Reader, Refusal, keys};
use crate::per_task::PerTask;
use crate::rng::Rng;
use crate::{Channel, Load, Op, Outside, Sizes};
use anysched_core::{Span, TaskId, Time};

/// A service: clients elsewhere send requests, whatever became of those before; tasks that are
/// there from the start take them, work on them and answer. The round trip is the time from sending
/// a request to having its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Of the tasks that serve.
    pub settings: Settings,
    /// How many tasks serve; at least 1.
    pub servers: u32,
    /// Time between two requests being sent.
    pub gaps: Dist,
    /// CPU time for a request; at least 1 ns.
    pub service: Dist,
    /// Time that a message takes from the client to this machine, and back: wire and, in a virtual
    /// machine, driver domain.
    pub hop: Span,
    /// How many requests there are; `None`: endless.
    pub requests: Option<u64>,
    /// No request is sent at this time or later.
    pub until: Option<Time>,
}

keys! {
    /// The keys of [`Service`].
    pub struct ServiceKeys {
        ..settings: Settings;
        /// How many tasks serve.
        servers: u32 = "1", eg "4", in 1..=MAX_SOURCES;
        /// Rate at which requests of a Poisson process are sent.
        rate: Option<f64> = or "`interarrival`", eg "100", unit "requests per second";
        /// Time between two requests.
        interarrival: Option<Dist> = or "`rate`", eg "exp(10ms)";
        /// CPU time for a request; at least 1 ns.
        service: Dist = needed, eg "exp(10ms)";
        /// Time that a message takes from the client to this machine, and back.
        hop: Span = "50us", eg "200us";
        /// How many requests there are.
        requests: Option<u64> = none "no limit", eg "1000", in 0..=MAX_TASKS;
        /// No request is sent at this time or later.
        until: Option<Time> = none "no limit", eg "10s";
    }
}

impl Kind for ServiceKeys {
    fn load(self, reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
        let gaps = match (self.rate, self.interarrival) {
            (Some(_), Some(_)) => {
                let message = "`rate` and `interarrival` say the same thing";
                return Err(Refusal::value("interarrival", message).help("keep one of them"));
            }
            (Some(rate), None) if !(1e-6..=1e9).contains(&rate) => {
                return Err(Refusal::value("rate", format!("`rate` = {rate} is out of range"))
                    .help("it is requests per second, from 0.000001 to 1000000000"));
            }
            (Some(rate), None) => {
                reader.dist(&format!("exp({}ns)", libm::round(1e9 / rate)), "rate")?
            }
            (None, Some(gaps)) => gaps,
            (None, None) => {
                let message = "it is not said how often requests are sent";
                return Err(Refusal::new(Place::Table, message).help(
                    "`rate` = 100 is requests per second, `interarrival` = \"exp(10ms)\" is the \
                     time between them",
                ));
            }
        };
        reader.generated(Service {
            settings: self.settings,
            servers: self.servers,
            gaps,
            service: self.service,
            hop: self.hop,
            requests: self.requests,
            until: self.until,
        })
    }
}

impl Generator for Service {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.servers > 0, "servers", self.servers, "at least 1")?;
        check_run("service", &self.service)?;
        check_count("requests", self.requests)?;
        let why = "requests need time between them, for example \"exp(10ms)\"";
        check(self.gaps.mean() > 0.0, "interarrival", &self.gaps, why)?;
        check_until(Time::ZERO, self.until)
    }

    fn endless(&self) -> bool {
        // The servers wait for more, which ends nothing and does not keep the run going.
        self.requests.is_none() && self.until.is_none()
    }

    fn utilisation(&self, _: usize) -> f64 {
        self.service.mean() / self.gaps.mean()
    }

    fn extent(&self, _: usize, until: Option<Time>) -> Extent {
        let until = earlier(self.until, until);
        let (gap, run) = (self.gaps.mean(), self.service.mean());
        Extent::arriving(self.requests, Time::ZERO, until, gap, run)
    }

    fn needs(&self) -> Needs {
        Needs { wakeups_between_tasks: true, messages_from_outside: true, ..self.settings.needs() }
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let mut load = ServiceLoad {
            maker: Maker::new(&self.settings, self.servers > 1),
            plan: self.clone(),
            gaps: Rng::stream(seed, "gaps"),
            work: Rng::stream(seed, "service"),
            arrived: 0,
            sent: Time::ZERO,
            left: self.requests.unwrap_or(u64::MAX),
            next: PerTask::default(),
        };
        load.send();
        Ok(Box::new(load))
    }
}

struct ServiceLoad {
    maker: Maker,
    plan: Service,
    gaps: Rng,
    /// Of the requests in the order in which they are taken, whoever takes them.
    work: Rng,
    /// Servers that have arrived.
    arrived: u32,
    /// When the next request is sent.
    sent: Time,
    /// Requests that have not come yet.
    left: u64,
    next: PerTask<Then>,
}

/// What a server does next.
#[derive(Clone, Copy, Default)]
enum Then {
    #[default]
    Wait,
    Work,
    Reply,
}

impl ServiceLoad {
    fn send(&mut self) {
        self.sent += self.plan.gaps.sample(&mut self.gaps);
        if self.plan.until.is_some_and(|until| self.sent >= until) {
            self.left = 0;
        }
    }
}

impl Load for ServiceLoad {
    fn sizes(&self) -> Sizes {
        Sizes { channels: 1, ..Sizes::default() }
    }

    fn inboxes(&self) -> Vec<Channel> {
        vec![Channel(0)]
    }

    #[inline]
    fn peek(&self) -> Time {
        if self.arrived < self.plan.servers {
            Time::ZERO
        } else if self.left > 0 {
            self.sent + self.plan.hop
        } else {
            Time::NEVER
        }
    }

    fn outside(&mut self) -> Outside {
        if self.arrived < self.plan.servers {
            self.arrived += 1;
            return Outside::Arrival(self.maker.make(Time::ZERO));
        }
        let message = Outside::Message { channel: Channel(0), sent: self.sent };
        self.left -= 1;
        self.send();
        message
    }

    fn start(&mut self, task: TaskId, _: Time) {
        self.next.set(task, Then::Wait);
    }

    #[inline]
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        let next = &mut self.next[task];
        match *next {
            Then::Wait => {
                *next = Then::Work;
                Op::Wait(Channel(0))
            }
            Then::Work => {
                *next = Then::Reply;
                Op::Run(super::run(&self.plan.service, &mut self.work))
            }
            Then::Reply => {
                *next = Then::Wait;
                Op::Reply(self.plan.hop)
            }
        }
    }
}
