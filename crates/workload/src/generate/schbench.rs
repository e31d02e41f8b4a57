//! The wake-up and request benchmark schbench, simulated.
//!
//! Source: schbench 24e32b8 (github.com/masoncl/schbench), `schbench.c`: `run_msg_thread`,
//! `xlist_wake_all`, `msg_and_wait`, `worker_thread`, `sleep_for_runtime`.
//!
//! A worker puts itself on the list of its message thread, wakes that thread if no other worker
//! has, and waits. A message thread takes the whole list, the latest entry first, looks at the
//! clock once and wakes them all. The wake-up latency is the time from that look to the worker's
//! next instruction. Then the worker does a request: it sleeps, which stands for the network, and
//! computes. The main task counts the requests once a second and, when the time is over, tells all
//! to end: waiting workers are woken and do one more request.
//!
//! The computation is 5 products of matrices that fill 256 KiB, 104 rows each. The tool's page
//! (`README.md`, calibration run) measures 17 ms for it, which is the default.
//!
//! Differences: the computation does not take the CPU's lock that the tool takes for it, as with
//! its `-L`; that lock delays workers that come to a CPU on which another worker was interrupted.
//! Pipes (`-p`) and fixed rates (`-R`, `-A`) are left out. Sending messages takes no CPU time. As
//! in the tool, a wake-up latency below 1 us is not counted; otherwise times are in ns. The time
//! need not be whole seconds; the last count then covers less.

use super::{Generator, Maker, SettingError, Settings, check, check_period};
use crate::extent::{Extent, earlier};
use crate::kinds::{Needs, keys};
use crate::per_task::PerTask;
use crate::{Channel, Load, Measured, Op, Outside, Sizes};
use anysched_core::{Span, TaskId, Time};

keys! {
    /// Message threads and workers.
    pub struct Schbench {
        ..settings: Settings;
        /// How many message threads there are.
        message_threads: u32 = "1", eg "2";
        /// Workers of each message thread.
        workers: Option<u32> = none "CPUs by message threads, rounded up", eg "4";
        /// How long a request sleeps.
        sleep: Span = "100us", eg "1ms";
        /// CPU time of a request; at least 1 ns.
        work: Span = "17ms", eg "5ms";
        /// When no more requests are begun.
        duration: Span = "30s", eg "10s";
    }
}

/// More tasks than this make no benchmark.
const MAX_TASKS: u64 = 1 << 20;

/// Latencies below this are not counted.
const CLOCK: Span = Span::from_us(1);

impl Schbench {
    /// Workers of each message thread.
    fn workers(&self, cpus: usize) -> u32 {
        self.workers.unwrap_or_else(|| (cpus as u32).div_ceil(self.message_threads))
    }
}

impl Generator for Schbench {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.message_threads > 0, "message_threads", 0, "at least 1")?;
        check(self.workers != Some(0), "workers", 0, "at least 1")?;
        let workers = u64::from(self.workers(cpus));
        let tasks = u64::from(self.message_threads) * (1 + workers);
        let why = format_args!("that makes {tasks} tasks with the workers; at most {MAX_TASKS}");
        check(tasks <= MAX_TASKS, "message_threads", self.message_threads, why)?;
        check(self.work > Span::ZERO, "work", 0, "a request uses CPU time, for example \"17ms\"")?;
        check_period("duration", self.duration)
    }

    fn endless(&self) -> bool {
        false
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let until = earlier(Some(Time::ZERO + self.duration), until);
        let tasks = self.message_threads.saturating_mul(self.workers(cpus));
        let (sleep, work) = (self.sleep.0 as f64, self.work.0 as f64);
        Extent::repeated((tasks, cpus), None, until, sleep + work, work)
    }

    fn needs(&self) -> Needs {
        Needs { wakeups_between_tasks: true, reactions: true, ..self.settings.needs() }
    }

    fn build(&self, _: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let workers = self.workers(cpus);
        let teams = self.message_threads as usize;
        Ok(Box::new(SchbenchLoad {
            maker: Maker::new(&self.settings, true),
            plan: self.clone(),
            workers,
            arrived: 0,
            stopping: false,
            requests: 0,
            teams: vec![
                Team { waiting: Vec::with_capacity(workers as usize), posted: false };
                teams
            ],
            stamps: vec![Time::ZERO; teams * workers as usize],
            tasks: PerTask::default(),
        }))
    }
}

struct SchbenchLoad {
    maker: Maker,
    plan: Schbench,
    /// Of each message thread.
    workers: u32,
    arrived: u32,
    stopping: bool,
    /// Requests done by all.
    requests: u64,
    teams: Vec<Team>,
    /// Per worker, when it was woken, or came to wait.
    stamps: Vec<Time>,
    tasks: PerTask<Task>,
}

/// A message thread and its workers.
#[derive(Clone)]
struct Team {
    /// Waiting workers, by number; the last one came last.
    waiting: Vec<u32>,
    /// The message thread has been woken, or will not wait.
    posted: bool,
}

#[derive(Clone, Copy, Default)]
enum Task {
    Main(Main),
    Message {
        team: u32,
        step: Message,
    },
    Worker {
        worker: u32,
        /// When its request began.
        began: Time,
        step: Work,
    },
    #[default]
    Gone,
}

#[derive(Clone, Copy)]
enum Main {
    Arrive,
    Begin,
    Wake {
        start: Time,
        last: Time,
        before: u64,
    },
    Count {
        start: Time,
        last: Time,
        before: u64,
    },
    Sleep {
        start: Time,
        last: Time,
        before: u64,
    },
    /// It wakes this team, and those after it.
    Stop(u32),
    Exit,
}

#[derive(Clone, Copy)]
enum Message {
    /// Woken: it runs for no time, and then looks at the clock.
    Wake,
    Take,
    /// Some that it has taken may still have to be woken.
    Post,
}

#[derive(Clone, Copy)]
enum Work {
    Arrive,
    Begin,
    Wait,
    Wake,
    Look,
    Request,
    Compute,
    Done,
}

impl SchbenchLoad {
    /// The channel of a message thread.
    fn of_team(team: u32) -> Channel {
        Channel(team)
    }

    fn of_worker(&self, worker: u32) -> Channel {
        Channel(self.plan.message_threads + worker)
    }

    /// The next team to wake is this one or after it.
    fn wake_teams(&mut self, first: u32) -> (Main, Op) {
        let teams = (first..).zip(&mut self.teams[first as usize..]);
        for (number, team) in teams {
            if !std::mem::replace(&mut team.posted, true) {
                return (Main::Stop(number + 1), Op::Signal(Self::of_team(number)));
            }
        }
        (Main::Exit, Op::Measure(Measured::Elapsed(self.plan.duration)))
    }

    /// The first count is at the start: nothing in no time, which counts as none.
    fn main(&mut self, step: Main, now: Time) -> (Main, Op) {
        const SECOND: Span = Span::from_s(1);
        match step {
            Main::Arrive => (Main::Begin, Op::Run(Span::ZERO)),
            Main::Begin => {
                let next = Main::Sleep { start: now, last: now, before: self.requests };
                (next, Op::Measure(Measured::Rate(0)))
            }
            Main::Sleep { start, last, before } => {
                let left = self.plan.duration.saturating_sub(now.since(start));
                if left == Span::ZERO {
                    self.stopping = true;
                    return self.wake_teams(0);
                }
                (Main::Wake { start, last, before }, Op::Sleep(left.min(SECOND)))
            }
            Main::Wake { start, last, before } => {
                (Main::Count { start, last, before }, Op::Run(Span::ZERO))
            }
            Main::Count { start, last, before } => {
                let done = (self.requests - before) * SECOND.0;
                let rate = done.checked_div(now.since(last).0).unwrap_or(0);
                let next = Main::Sleep { start, last: now, before: self.requests };
                (next, Op::Measure(Measured::Rate(rate)))
            }
            Main::Stop(first) => self.wake_teams(first),
            Main::Exit => (Main::Exit, Op::Exit),
        }
    }

    fn message(&mut self, team: u32, step: Message, now: Time) -> (Message, Op) {
        let state = &mut self.teams[team as usize];
        match step {
            Message::Wake => (Message::Take, Op::Run(Span::ZERO)),
            Message::Take => {
                state.posted = false;
                for &worker in &state.waiting {
                    self.stamps[worker as usize] = now;
                }
                self.message(team, Message::Post, now)
            }
            // No worker comes to wait while others are woken, which takes no time.
            Message::Post => match state.waiting.pop() {
                Some(worker) => (Message::Post, Op::Signal(self.of_worker(worker))),
                None if self.stopping => (Message::Post, Op::Exit),
                None => (Message::Wake, Op::Wait(Self::of_team(team))),
            },
        }
    }

    fn work(&mut self, worker: u32, began: &mut Time, step: Work, now: Time) -> (Work, Op) {
        let stamp = &mut self.stamps[worker as usize];
        match step {
            Work::Arrive => (Work::Begin, Op::Run(Span::ZERO)),
            Work::Begin if self.stopping => (Work::Begin, Op::Exit),
            Work::Begin => {
                *stamp = now;
                let team = worker / self.workers;
                let state = &mut self.teams[team as usize];
                state.waiting.push(worker);
                if std::mem::replace(&mut state.posted, true) {
                    return self.work(worker, began, Work::Wait, now);
                }
                (Work::Wait, Op::Signal(Self::of_team(team)))
            }
            Work::Wait => (Work::Wake, Op::Wait(self.of_worker(worker))),
            Work::Wake => (Work::Look, Op::Run(Span::ZERO)),
            Work::Look => {
                let latency = now.since(*stamp);
                *began = now;
                if latency < CLOCK {
                    return self.work(worker, began, Work::Request, now);
                }
                (Work::Request, Op::Measure(Measured::Latency { thread: 0, latency }))
            }
            Work::Request => (Work::Compute, Op::Sleep(self.plan.sleep)),
            Work::Compute => (Work::Done, Op::Run(self.plan.work)),
            Work::Done => {
                self.requests += 1;
                (Work::Begin, Op::Measure(Measured::Request(now.since(*began))))
            }
        }
    }
}

impl Load for SchbenchLoad {
    fn sizes(&self) -> Sizes {
        let channels = self.plan.message_threads * (1 + self.workers);
        Sizes { channels, ..Sizes::default() }
    }

    #[inline]
    fn peek(&self) -> Time {
        let tasks = 1 + self.plan.message_threads * (1 + self.workers);
        if self.arrived < tasks { Time::ZERO } else { Time::NEVER }
    }

    fn outside(&mut self) -> Outside {
        self.arrived += 1;
        Outside::Arrival(self.maker.make(Time::ZERO))
    }

    /// The main task comes first, then each message thread with its workers.
    fn start(&mut self, task: TaskId, _: Time) {
        let place = (self.arrived - 1).checked_sub(1);
        let new = match place.map(|place| (place / (1 + self.workers), place % (1 + self.workers)))
        {
            None => Task::Main(Main::Arrive),
            Some((team, 0)) => Task::Message { team, step: Message::Wake },
            Some((team, member)) => {
                let worker = team * self.workers + member - 1;
                Task::Worker { worker, began: Time::ZERO, step: Work::Arrive }
            }
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
            Task::Message { team, step } => {
                let (next, op) = self.message(*team, *step, now);
                *step = next;
                op
            }
            Task::Worker { worker, began, step } => {
                let (next, op) = self.work(*worker, began, *step, now);
                *step = next;
                op
            }
            Task::Gone => Op::Exit,
        };
        self.tasks[task] = state;
        op
    }
}
