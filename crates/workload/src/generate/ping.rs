//! A virtual machine that pings another one.

use super::{
    Generator, MAX_TASKS, Maker, SettingError, Settings, check_count, check_period, check_run,
};
use crate::dist::Dist;
use crate::extent::Extent;
use crate::kinds::{Kind, LoadSpec, Needs, Pings, Reader, Refusal, keys};
use crate::per_task::PerTask;
use crate::rng::Rng;
use crate::{Channel, Load, Op, Outside, Port, Sizes};
use anysched_core::{Span, TaskId, Time};

/// One task that sends a message at fixed times and takes the answer: its round trip begins when
/// the task is scheduled to send it and has done the work for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ping {
    /// Of the task.
    pub settings: Settings,
    /// Time between two messages.
    pub every: Span,
    /// When the first one is sent.
    pub offset: Dist,
    /// CPU time for sending a message, and for taking an answer; at least 1 ns.
    pub work: Dist,
    /// How many messages there are; `None`: endless.
    pub pings: Option<u64>,
    /// The way to the machine that is pinged; answers come on channel 0.
    pub port: Port,
}

keys! {
    /// The keys of [`Ping`].
    pub struct PingKeys {
        ..settings: Settings;
        /// The name of the `[[vm]]` that is pinged.
        to: String = needed, eg "web";
        /// Time between two messages.
        every: Span = "1s", eg "100ms";
        /// When the first message is sent.
        offset: Dist = "0ns", eg "uniform(0ns, 100ms)";
        /// CPU time for sending a message, and for taking an answer; at least 1 ns.
        work: Dist = "20us", eg "exp(50us)";
        /// CPU time for an answer, in the other machine; at least 1 ns.
        answer: Option<Dist> = none "that of `work`", eg "100us";
        /// Time that a message takes from one machine to the other, and back; with `via`, each half
        /// of the way.
        hop: Span = "50us", eg "200us";
        /// The name of the `[[vm]]` that hands messages on, as a driver domain does: a task there
        /// takes and sends on each question, another one each answer.
        via: Option<String> = none "straight from one to the other", eg "dom0";
        /// CPU time for handing on a message, in the machine `via`; at least 1 ns.
        forward: Option<Dist> = none "10us", eg "exp(20us)";
        /// How many messages there are.
        pings: Option<u64> = none "no limit", eg "100", in 0..=MAX_TASKS;
    }
}

impl Kind for PingKeys {
    fn load(self, reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
        let ping = Ping {
            settings: self.settings,
            every: self.every,
            offset: self.offset,
            work: self.work,
            pings: self.pings,
            port: Port(0),
        };
        let answer = self.answer.unwrap_or_else(|| ping.work.clone());
        let load = reader.generated(ping.clone())?;
        reader.check(check_run("answer", &answer))?;
        let via = match (self.via, self.forward) {
            (None, Some(_)) => {
                let message = "`forward` is the time of a machine that hands messages on";
                return Err(Refusal::value("forward", message)
                    .help("name that machine, for example `via = \"dom0\"`"));
            }
            (None, None) => None,
            (Some(vm), forward) => {
                let forward = forward.map_or_else(|| reader.dist("10us", "forward"), Ok)?;
                reader.check(check_run("forward", &forward))?;
                Some((vm, forward))
            }
        };
        let pings = Pings { to: self.to, hop: self.hop, via, answer, ping };
        Ok(LoadSpec { pings: Some(pings), ..load })
    }
}

impl Generator for Ping {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check_period("every", self.every)?;
        check_run("work", &self.work)?;
        check_count("pings", self.pings)
    }

    fn endless(&self) -> bool {
        self.pings.is_none()
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        // One at the question, one at the answer.
        let run = 2.0 * self.work.mean();
        Extent::repeated((1, cpus), self.pings, until, self.every.0 as f64, run)
    }

    fn needs(&self) -> Needs {
        Needs { wakeups_between_tasks: true, messages_between_vms: true, ..self.settings.needs() }
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let first = Time::ZERO + self.offset.sample(&mut Rng::stream(seed, "offset"));
        Ok(Box::new(Cycle {
            maker: Maker::new(&self.settings, false),
            arrived: false,
            work: self.work.clone(),
            rng: Rng::stream(seed, "work"),
            step: PerTask::default(),
            ops: &[Step::Release, Step::Work, Step::Send, Step::Wait, Step::Work, Step::Reply],
            port: self.port,
            next: first,
            every: self.every,
            left: self.pings.unwrap_or(u64::MAX),
        }))
    }
}

/// One task that answers every message, or hands it on.
#[derive(Clone, Debug, PartialEq)]
pub struct Echo {
    /// Of the task.
    pub settings: Settings,
    /// CPU time for an answer; at least 1 ns.
    pub work: Dist,
    /// The way back to the machine that pings; messages come on channel 0.
    pub port: Port,
}

impl Generator for Echo {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check_run("work", &self.work)
    }

    fn endless(&self) -> bool {
        // It waits, which does not keep the run going.
        false
    }

    fn extent(&self, _: usize, _: Option<Time>) -> Extent {
        // It does what it is asked to.
        Extent::default()
    }

    fn needs(&self) -> Needs {
        Needs { wakeups_between_tasks: true, messages_between_vms: true, ..self.settings.needs() }
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        Ok(Box::new(Cycle {
            maker: Maker::new(&self.settings, false),
            arrived: false,
            work: self.work.clone(),
            rng: Rng::stream(seed, "work"),
            step: PerTask::default(),
            ops: &[Step::Wait, Step::Work, Step::Send],
            port: self.port,
            next: Time::ZERO,
            every: Span::ZERO,
            left: u64::MAX,
        }))
    }
}

/// What a task does again and again.
#[derive(Clone, Copy, Debug)]
enum Step {
    Release,
    Work,
    Send,
    Wait,
    Reply,
}

struct Cycle {
    maker: Maker,
    arrived: bool,
    work: Dist,
    rng: Rng,
    step: PerTask<usize>,
    ops: &'static [Step],
    port: Port,
    /// The next release.
    next: Time,
    every: Span,
    left: u64,
}

impl Load for Cycle {
    fn sizes(&self) -> Sizes {
        Sizes { channels: 1, ..Sizes::default() }
    }

    #[inline]
    fn peek(&self) -> Time {
        if self.arrived { Time::NEVER } else { Time::ZERO }
    }

    fn outside(&mut self) -> Outside {
        self.arrived = true;
        Outside::Arrival(self.maker.make(Time::ZERO))
    }

    fn start(&mut self, task: TaskId, _: Time) {
        self.step.set(task, 0);
    }

    #[inline]
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        let step = &mut self.step[task];
        let op = self.ops[*step];
        *step = (*step + 1) % self.ops.len();
        match op {
            Step::Release if self.left == 0 => Op::Exit,
            Step::Release => {
                self.left -= 1;
                let at = self.next;
                self.next += self.every;
                let deadline = self.maker.settings.deadline.map(|deadline| at + deadline);
                Op::Release { at, deadline }
            }
            Step::Work => Op::Run(super::run(&self.work, &mut self.rng)),
            Step::Send => Op::Send(self.port),
            Step::Wait => Op::Wait(Channel(0)),
            Step::Reply => Op::Reply(Span::ZERO),
        }
    }
}
