//! A closed loop: a fixed number of clients that wait for their answers.

use super::{
    Generator, MAX_SOURCES, MAX_TASKS, Maker, SettingError, Settings, check, check_count,
    check_run, check_until, run,
};
use crate::dist::Dist;
use crate::extent::{Extent, earlier};
use crate::kinds::{Needs, keys};
use crate::per_task::{OneRun, PerTask};
use crate::rng::Rng;
use crate::{Load, Measured, Op, Outside};
use anysched_core::{Span, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

keys! {
    /// Clients that think, make a request, and think again when it is done. Each request is a task
    /// that arrives, runs once and exits, or a job of its client's task (`persistent`).
    pub struct Closed {
        ..settings: Settings;
        /// How many clients there are; all start by thinking.
        clients: u32 = needed, eg "40", in 0..=MAX_SOURCES;
        /// How many requests there are in all.
        requests: Option<u64> = none "no limit", eg "1000", in 0..=MAX_TASKS;
        /// How many requests each client makes.
        each: Option<u64> = none "no limit", eg "50", in 0..=MAX_TASKS;
        /// CPU time of a request; at least 1 ns.
        service: Dist = needed, eg "exp(10ms)";
        /// Time that a client thinks before each request.
        think: Dist = "0ns", eg "exp(1s)";
        /// No request is made at this time or later.
        until: Option<Time> = none "no limit", eg "10s";
        /// Whether each client has one task on the machine, from its first request on. It serves
        /// the client's requests and is blocked while the client thinks.
        persistent: bool = "false", eg "true";
    }
}

impl Generator for Closed {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.clients > 0, "clients", self.clients, "at least 1")?;
        check_count("requests", self.requests)?;
        check_count("each", self.each)?;
        check_run("service", &self.service)?;
        check_until(Time::ZERO, self.until)
    }

    fn endless(&self) -> bool {
        self.requests.is_none() && self.each.is_none() && self.until.is_none()
    }

    /// What a client does is known in advance if it has a task and requests of its own.
    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let run = self.service.mean();
        let until = earlier(self.until, until);
        let tasks = (self.clients, cpus);
        let all = Extent::repeated(tasks, self.each, until, run + self.think.mean(), run);
        let Some(requests) = self.requests.map(|requests| requests as f64) else { return all };
        if requests >= all.steps {
            return all;
        }
        // All clients ask as long as there are requests left.
        let rounds = (requests / f64::from(self.clients) - 1.0).max(0.0);
        let last = rounds * (run + self.think.mean());
        Extent { steps: requests, work: requests * run, last, ..all }
    }

    fn needs(&self) -> Needs {
        let is_known = self.persistent && self.requests.is_none() && self.until.is_none();
        Needs { reactions: !is_known, ..self.settings.needs() }
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let client = |n| Client {
            think: Rng::numbered(seed, "think", u64::from(n)),
            service: Rng::numbered(seed, "service", u64::from(n)),
            left: self.each.unwrap_or(u64::MAX),
        };
        let several = if self.persistent { self.clients > 1 } else { self.most() != Some(1) };
        let mut load = ClosedLoad {
            maker: Maker::new(&self.settings, several),
            clients: (0..self.clients).map(client).collect(),
            service: self.service.clone(),
            think: self.think.clone(),
            thinking: BinaryHeap::with_capacity(self.clients as usize),
            left: self.requests.unwrap_or(u64::MAX),
            until: self.until.unwrap_or(Time::NEVER),
            asking: 0,
            client_of: PerTask::default(),
            tasks: OneRun::default(),
            persistent: self.persistent.then(Persistent::default),
            deadline: self.settings.deadline,
        };
        for client in 0..self.clients {
            load.think(client, Time::ZERO);
        }
        Ok(Box::new(load))
    }
}

impl Closed {
    /// How many requests there are at most.
    fn most(&self) -> Option<u64> {
        let each = self.each.map(|each| each.saturating_mul(u64::from(self.clients)));
        self.requests.into_iter().chain(each).min()
    }
}

/// Each client draws for itself, so the order in which requests finish changes nothing.
struct Client {
    think: Rng,
    service: Rng,
    /// Requests of its own that it has not made yet.
    left: u64,
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
    persistent: Option<Persistent>,
    deadline: Option<Span>,
}

/// What there is to know if each client has one task.
#[derive(Default)]
struct Persistent {
    tasks: PerTask<Serving>,
    /// When the first request was made.
    first: Option<Time>,
}

/// What a client's task does.
#[derive(Clone, Copy, Default)]
struct Serving {
    /// When its request was made.
    asked: Time,
    next: Next,
}

/// What it does next.
#[derive(Clone, Copy, Default)]
enum Next {
    #[default]
    Serve,
    Answer,
    Wait,
    Exit,
}

impl ClosedLoad {
    /// When the client asks again, if it does.
    fn next_request(&mut self, client: u32, now: Time) -> Option<Time> {
        let client = &mut self.clients[client as usize];
        client.left = client.left.checked_sub(1)?;
        Some(now + self.think.sample(&mut client.think)).filter(|next| *next < self.until)
    }

    fn think(&mut self, client: u32, now: Time) {
        if let Some(next) = self.next_request(client, now) {
            self.thinking.push(Reverse((next, client)));
        }
    }
}

impl ClosedLoad {
    /// The next step of a client's task.
    fn serve(&mut self, task: TaskId, now: Time) -> Op {
        let client = self.client_of[task];
        let Some(persistent) = &mut self.persistent else { return Op::Exit };
        let first = persistent.first.unwrap_or(now);
        let Serving { asked, next } = persistent.tasks[task];
        let (asked, next, op) = match next {
            Next::Serve => {
                let rng = &mut self.clients[client as usize].service;
                (asked, Next::Answer, Op::Run(run(&self.service, rng)))
            }
            Next::Answer => (asked, Next::Wait, Op::Measure(Measured::Request(now.since(asked)))),
            Next::Wait => {
                let at = self.next_request(client, now).filter(|_| self.left > 0);
                if let Some(at) = at {
                    self.left -= 1;
                    let deadline = self.deadline.map(|deadline| at + deadline);
                    (at, Next::Serve, Op::Release { at, deadline })
                } else {
                    (asked, Next::Exit, Op::Measure(Measured::Elapsed(now.since(first))))
                }
            }
            Next::Exit => return Op::Exit,
        };
        if let Some(persistent) = &mut self.persistent {
            persistent.tasks.set(task, Serving { asked, next });
        }
        op
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
        let Some(persistent) = &mut self.persistent else {
            return Outside::Arrival(self.maker.make(at));
        };
        persistent.first.get_or_insert(at);
        let mut new = self.maker.make_numbered(u64::from(self.asking), at);
        // A deadline makes the first request a job like the others.
        new.deadline.get_or_insert(Time::NEVER);
        Outside::Arrival(new)
    }

    fn start(&mut self, task: TaskId, now: Time) {
        self.client_of.set(task, self.asking);
        match &mut self.persistent {
            Some(persistent) => {
                persistent.tasks.set(task, Serving { asked: now, ..Serving::default() });
            }
            None => {
                let rng = &mut self.clients[self.asking as usize].service;
                self.tasks.start(task, run(&self.service, rng));
            }
        }
    }

    #[inline]
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        if self.persistent.is_some() { self.serve(task, now) } else { self.tasks.step(task) }
    }

    fn exited(&mut self, task: TaskId, now: Time) {
        if self.persistent.is_none() {
            self.think(self.client_of[task], now);
        }
    }

    fn rests(&self, _: TaskId) -> bool {
        self.persistent.is_some()
    }
}
