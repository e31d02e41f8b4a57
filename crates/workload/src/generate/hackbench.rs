//! The pipe and wake-up benchmark hackbench, simulated.
//!
//! Source: hackbench of rt-tests 0.84 (github.com/jlelli/rt-tests, 857cdd5),
//! `src/hackbench/hackbench.c`: `main`, `group`, `ready`, `sender`, `receiver`.
//!
//! Each group has as many senders as receivers, and a pipe to each receiver. The main task creates
//! the receivers and then the senders of one group after another and waits until each of them has
//! reported that it is ready. Then it opens the gate for all of them. Each sender sends `loops`
//! messages to every receiver of its group; a receiver takes what all of its senders send. The
//! result is the time from the opening of the gate until the main task has seen the last one exit.
//!
//! A receiver waits while its pipe is empty, a sender while it is full. Linux keeps a message of
//! 100 bytes within a page, so a pipe of 16 pages holds 16 · 40 = 640 of them (`pipe_write`).
//!
//! Differences: the size of a message only shows in the CPU time that it takes to send and to
//! receive it. Each message received wakes a sender that waits for room; Linux wakes one when a
//! page is free. The tool's socket pairs, which it uses without `--pipe`, hold other numbers of
//! messages. Creating tasks takes no time.

use super::{Generator, Maker, SettingError, Settings, check};
use crate::extent::Extent;
use crate::kinds::{Needs, keys};
use crate::per_task::PerTask;
use crate::{Channel, Load, Measured, NewTask, Op, Outside, Sizes};
use anysched_core::{Span, TaskId, Time};

keys! {
    /// Groups of tasks that send each other messages.
    pub struct Hackbench {
        ..settings: Settings;
        /// How many groups there are.
        groups: u32 = "10", eg "2";
        /// How many senders, and how many receivers, a group has.
        fds: u32 = "20", eg "5";
        /// How many messages a sender sends to each receiver.
        loops: u32 = "100", eg "10";
        /// CPU time for sending a message.
        send: Span = "1us", eg "2us";
        /// CPU time for receiving a message.
        receive: Span = "1us", eg "2us";
        /// How many messages a pipe holds.
        buffer: u32 = "640", eg "64";
    }
}

/// More tasks than this make no benchmark.
const MAX_TASKS: u64 = 1 << 20;

impl Generator for Hackbench {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.groups > 0, "groups", self.groups, "at least 1")?;
        check(self.fds > 0, "fds", self.fds, "at least 1")?;
        check(self.loops > 0, "loops", self.loops, "at least 1")?;
        check(self.buffer > 0, "buffer", self.buffer, "at least 1")?;
        let tasks = 2 * u64::from(self.groups) * u64::from(self.fds);
        let why = format_args!("with `fds`, it makes {tasks} tasks; at most {MAX_TASKS}");
        check(tasks <= MAX_TASKS, "groups", self.groups, why)
    }

    fn endless(&self) -> bool {
        false
    }

    fn extent(&self, _: usize, _: Option<Time>) -> Extent {
        let pipes = f64::from(self.groups) * f64::from(self.fds);
        let messages = pipes * f64::from(self.fds) * f64::from(self.loops);
        let work = messages * (self.send + self.receive).0 as f64;
        Extent { steps: messages, work, ..Extent::default() }
    }

    fn needs(&self) -> Needs {
        Needs {
            wakeups_between_tasks: true,
            spawning: true,
            reactions: true,
            ..self.settings.needs()
        }
    }

    fn build(&self, _: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let pipes = (self.groups * self.fds) as usize;
        Ok(Box::new(HackbenchLoad {
            maker: Maker::new(&self.settings, true),
            plan: self.clone(),
            arrived: false,
            spawning: None,
            open: false,
            pipes: vec![Pipe { room: self.buffer, senders: 0 }; pipes],
            tasks: PerTask::default(),
        }))
    }
}

const READY: Channel = Channel(0);
const GATE: Channel = Channel(1);
const EXITED: Channel = Channel(2);
const FIRST_PIPE: u32 = 3;

/// Where messages wait for the receiver.
fn messages(pipe: u32) -> Channel {
    Channel(FIRST_PIPE + 2 * pipe)
}

/// Where senders wait for room.
fn room(pipe: u32) -> Channel {
    Channel(FIRST_PIPE + 2 * pipe + 1)
}

struct HackbenchLoad {
    maker: Maker,
    plan: Hackbench,
    arrived: bool,
    /// Which of all the others the main task creates.
    spawning: Option<u32>,
    /// The gate is open.
    open: bool,
    pipes: Vec<Pipe>,
    tasks: PerTask<Task>,
}

#[derive(Clone, Copy)]
struct Pipe {
    /// For how many messages there is room that has not been given to a sender.
    room: u32,
    /// How many senders wait.
    senders: u32,
}

#[derive(Clone, Copy, Default)]
enum Task {
    Main(Main),
    Receiver {
        pipe: u32,
        left: u64,
        step: Receive,
    },
    Sender {
        group: u32,
        /// Messages sent.
        sent: u64,
        step: Send,
    },
    #[default]
    Gone,
}

#[derive(Clone, Copy)]
enum Main {
    /// How many tasks have been created.
    Create(u32),
    /// How many are ready.
    Gather(u32),
    Open,
    /// When the gate was opened, how many have exited.
    Reap(Time, u32),
    End,
}

#[derive(Clone, Copy)]
enum Receive {
    Ready,
    Gate,
    Wait,
    Read,
    Free,
    Leave,
}

#[derive(Clone, Copy)]
enum Send {
    Ready,
    Gate,
    /// Woken when the gate opened: it runs for no time, and then looks for room.
    Pass,
    Room,
    Write,
    Tell,
    Leave,
}

impl HackbenchLoad {
    fn workers(&self) -> u32 {
        2 * self.plan.groups * self.plan.fds
    }

    /// Messages of a sender, and of a receiver.
    fn each(&self) -> u64 {
        u64::from(self.plan.loops) * u64::from(self.plan.fds)
    }

    fn main(&mut self, step: Main, now: Time) -> (Main, Op) {
        let workers = self.workers();
        match step {
            Main::Create(made) if made < workers => (Main::Create(made + 1), Op::Spawn(made)),
            Main::Create(_) => (Main::Gather(1), Op::Wait(READY)),
            Main::Gather(ready) if ready < workers => (Main::Gather(ready + 1), Op::Wait(READY)),
            // Woken by the last one, it is not on a CPU yet.
            Main::Gather(_) => (Main::Open, Op::Run(Span::ZERO)),
            Main::Open => {
                self.open = true;
                (Main::Reap(now, 0), Op::Broadcast(GATE))
            }
            Main::Reap(from, gone) if gone < workers => {
                (Main::Reap(from, gone + 1), Op::Wait(EXITED))
            }
            Main::Reap(from, gone) if gone == workers => {
                (Main::Reap(from, gone + 1), Op::Run(Span::ZERO))
            }
            Main::Reap(from, _) => (Main::End, Op::Measure(Measured::Elapsed(now.since(from)))),
            Main::End => (Main::End, Op::Exit),
        }
    }

    fn receive(&mut self, pipe: u32, left: &mut u64, step: Receive) -> (Receive, Op) {
        match step {
            Receive::Ready => (Receive::Gate, Op::Write(READY)),
            Receive::Gate if !self.open => (Receive::Wait, Op::Wait(GATE)),
            Receive::Gate | Receive::Wait if *left == 0 => (Receive::Leave, Op::Signal(EXITED)),
            Receive::Gate | Receive::Wait => (Receive::Read, Op::Wait(messages(pipe))),
            Receive::Read => {
                *left -= 1;
                (Receive::Free, Op::Run(self.plan.receive))
            }
            Receive::Free => {
                let state = &mut self.pipes[pipe as usize];
                if state.senders > 0 {
                    state.senders -= 1;
                    return (Receive::Wait, Op::Write(room(pipe)));
                }
                state.room += 1;
                self.receive(pipe, left, Receive::Wait)
            }
            Receive::Leave => (Receive::Leave, Op::Exit),
        }
    }

    fn send(&mut self, group: u32, sent: &mut u64, step: Send) -> (Send, Op) {
        let pipe = group * self.plan.fds + (*sent % u64::from(self.plan.fds)) as u32;
        match step {
            Send::Ready => (Send::Gate, Op::Write(READY)),
            Send::Gate if !self.open => (Send::Pass, Op::Wait(GATE)),
            Send::Pass => (Send::Room, Op::Run(Span::ZERO)),
            Send::Gate | Send::Room if *sent == self.each() => (Send::Leave, Op::Signal(EXITED)),
            Send::Gate | Send::Room => {
                let state = &mut self.pipes[pipe as usize];
                if state.room == 0 {
                    state.senders += 1;
                    return (Send::Write, Op::Wait(room(pipe)));
                }
                state.room -= 1;
                (Send::Tell, Op::Run(self.plan.send))
            }
            Send::Write => (Send::Tell, Op::Run(self.plan.send)),
            Send::Tell => {
                *sent += 1;
                (Send::Room, Op::Write(messages(pipe)))
            }
            Send::Leave => (Send::Leave, Op::Exit),
        }
    }
}

impl Load for HackbenchLoad {
    fn sizes(&self) -> Sizes {
        let channels = FIRST_PIPE + 2 * self.plan.groups * self.plan.fds;
        Sizes { channels, ..Sizes::default() }
    }

    #[inline]
    fn peek(&self) -> Time {
        if self.arrived { Time::NEVER } else { Time::ZERO }
    }

    fn outside(&mut self) -> Outside {
        self.arrived = true;
        Outside::Arrival(self.maker.make(Time::ZERO))
    }

    fn spawn(&mut self, what: u32) -> NewTask {
        self.spawning = Some(what);
        self.maker.make(Time::ZERO)
    }

    fn start(&mut self, task: TaskId, _: Time) {
        let fds = self.plan.fds;
        let place = self.spawning.map(|worker| (worker / (2 * fds), worker % (2 * fds)));
        let new = match place {
            None => Task::Main(Main::Create(0)),
            Some((group, member)) if member < fds => {
                let pipe = group * fds + member;
                Task::Receiver { pipe, left: self.each(), step: Receive::Ready }
            }
            Some((group, _)) => Task::Sender { group, sent: 0, step: Send::Ready },
        };
        self.tasks.set(task, new);
    }

    #[inline]
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        let mut state = self.tasks[task];
        let op = match &mut state {
            Task::Main(main) => {
                let (next, op) = self.main(*main, now);
                *main = next;
                op
            }
            Task::Receiver { pipe, left, step } => {
                let (next, op) = self.receive(*pipe, left, *step);
                *step = next;
                op
            }
            Task::Sender { group, sent, step } => {
                let (next, op) = self.send(*group, sent, *step);
                *step = next;
                op
            }
            Task::Gone => Op::Exit,
        };
        self.tasks[task] = state;
        op
    }
}
