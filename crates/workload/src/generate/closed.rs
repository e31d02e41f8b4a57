//! A closed loop: a fixed number of clients that wait for their answers.

use super::{
    Generator, MAX_SOURCES, MAX_TASKS, Maker, SettingError, Settings, check, check_count,
    check_run, check_until, run,
};
use crate::dist::Dist;
use crate::kinds::{Needs, keys};
use crate::per_task::{OneRun, PerTask};
use crate::rng::Rng;
use crate::{Load, Op, Outside};
use anysched_core::{TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

keys! {
    /// Clients that think, make a request, and think again when it is done. Each request is a task
    /// that arrives, runs once and exits.
    pub struct Closed {
        ..settings: Settings;
        /// How many clients there are; all start by thinking.
        clients: u32 = needed, eg "40", in 0..=MAX_SOURCES;
        /// How many requests there are in all.
        requests: Option<u64> = none "no limit", eg "1000", in 0..=MAX_TASKS;
        /// CPU time of a request; at least 1 ns.
        service: Dist = needed, eg "exp(10ms)";
        /// Time that a client thinks before each request.
        think: Dist = "0ns", eg "exp(1s)";
        /// No request is made at this time or later.
        until: Option<Time> = none "no limit", eg "10s";
    }
}

impl Generator for Closed {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.clients > 0, "clients", self.clients, "at least 1")?;
        check_count("requests", self.requests)?;
        check_run("service", &self.service)?;
        check_until(Time::ZERO, self.until)
    }

    fn endless(&self) -> bool {
        self.requests.is_none() && self.until.is_none()
    }

    fn needs(&self) -> Needs {
        self.settings.needs()
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let client = |n| Client {
            think: Rng::numbered(seed, "think", u64::from(n)),
            service: Rng::numbered(seed, "service", u64::from(n)),
        };
        let mut load = ClosedLoad {
            maker: Maker::new(&self.settings, self.requests != Some(1)),
            clients: (0..self.clients).map(client).collect(),
            service: self.service.clone(),
            think: self.think.clone(),
            thinking: BinaryHeap::with_capacity(self.clients as usize),
            left: self.requests.unwrap_or(u64::MAX),
            until: self.until.unwrap_or(Time::NEVER),
            asking: 0,
            client_of: PerTask::default(),
            tasks: OneRun::default(),
        };
        for client in 0..self.clients {
            load.think(client, Time::ZERO);
        }
        Ok(Box::new(load))
    }
}

/// Each client draws for itself, so the order in which requests finish changes nothing.
struct Client {
    think: Rng,
    service: Rng,
}

struct ClosedLoad {
    maker: Maker,
    clients: Vec<Client>,
    service: Dist,
    think: Dist,
    /// When clients make their next requests; ties go by the client's number.
    thinking: BinaryHeap<Reverse<(Time, u32)>>,
    /// Requests that have not been made yet.
    left: u64,
    until: Time,
    /// The client whose request arrived last.
    asking: u32,
    client_of: PerTask<u32>,
    tasks: OneRun,
}

impl ClosedLoad {
    fn think(&mut self, client: u32, now: Time) {
        let next = now + self.think.sample(&mut self.clients[client as usize].think);
        if next < self.until {
            self.thinking.push(Reverse((next, client)));
        }
    }
}

impl Load for ClosedLoad {
    #[inline]
    fn peek(&self) -> Time {
        match self.thinking.peek() {
            Some(&Reverse((at, _))) if self.left > 0 => at,
            _ => Time::NEVER,
        }
    }

    fn outside(&mut self) -> Outside {
        let mut at = Time::NEVER;
        if let Some(Reverse((time, client))) = self.thinking.pop() {
            (at, self.asking) = (time, client);
        }
        self.left -= 1;
        Outside::Arrival(self.maker.make(at))
    }

    fn start(&mut self, task: TaskId, _: Time) {
        let rng = &mut self.clients[self.asking as usize].service;
        self.tasks.start(task, run(&self.service, rng));
        self.client_of.set(task, self.asking);
    }

    #[inline]
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        self.tasks.step(task)
    }

    fn exited(&mut self, task: TaskId, now: Time) {
        self.think(self.client_of[task], now);
    }
}
