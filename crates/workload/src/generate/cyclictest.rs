//! The timer benchmark cyclictest, simulated.
//!
//! Source: cyclictest of rt-tests 0.84 (github.com/jlelli/rt-tests, 857cdd5),
//! `src/cyclictest/cyclictest.c`: `timerthread`, `main`.
//!
//! Each thread sleeps until a time, `next`, and looks at the clock: the latency is how late it is.
//! Then `next` advances by the thread's interval, and further over those that have passed, as the
//! tool's default timer does with its overruns and its later versions with a loop. The interval of
//! a thread is longer than that of the previous one by the distance. Once one thread has done its
//! loops, or its duration has passed, all end after their current cycle.
//!
//! Differences: threads have the policy's ordinary class, as the tool's have without a priority;
//! looking at the clock takes no time; the main thread, which prints and checks every 10 ms whether
//! it is over, is left out. Times are in ns, as with the tool's `-N`.

use super::{
    Generator, MAX_TASKS, Maker, SettingError, Settings, check, check_count, check_period,
};
use crate::extent::{Extent, earlier};
use crate::kinds::{Needs, keys};
use crate::per_task::PerTask;
use crate::{Load, Measured, Op, Outside};
use anysched_core::{Span, TaskId, Time};

keys! {
    /// Threads that sleep for fixed times and see how late they wake.
    pub struct Cyclictest {
        ..settings: Settings;
        /// How many threads there are, at most 1024.
        threads: u32 = "1", eg "4";
        /// The interval of the first thread.
        interval: Span = "1ms", eg "200us";
        /// How much longer the interval of each further thread is.
        distance: Span = "500us", eg "0ns";
        /// How many cycles the first thread to end does.
        loops: Option<u64> = none "no limit", eg "1000", in 0..=MAX_TASKS;
        /// When the threads end.
        duration: Option<Span> = none "no limit", eg "10s";
    }
}

/// Results are kept for each.
const MAX_THREADS: u32 = 1024;

impl Generator for Cyclictest {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        let right = (1..=MAX_THREADS).contains(&self.threads);
        check(right, "threads", self.threads, format_args!("from 1 to {MAX_THREADS}"))?;
        check_period("interval", self.interval)?;
        check(self.distance < Span::MAX, "distance", self.distance, "shorter")?;
        check_count("loops", self.loops)?;
        self.duration.map_or(Ok(()), |duration| check_period("duration", duration))
    }

    fn endless(&self) -> bool {
        self.loops.is_none() && self.duration.is_none()
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let own = self.duration.map(|duration| Time::ZERO + duration);
        let (until, interval) = (earlier(own, until), self.interval.0 as f64);
        Extent::repeated((self.threads, cpus), self.loops, until, interval, 0.0)
    }

    fn needs(&self) -> Needs {
        self.settings.needs()
    }

    fn build(&self, _: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        Ok(Box::new(CyclictestLoad {
            maker: Maker::new(&self.settings, self.threads > 1),
            plan: self.clone(),
            arrived: 0,
            over: false,
            threads: PerTask::default(),
        }))
    }
}

struct CyclictestLoad {
    maker: Maker,
    plan: Cyclictest,
    arrived: u32,
    /// A thread has reached its end.
    over: bool,
    threads: PerTask<Thread>,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    number: u16,
    interval: Span,
    next: Time,
    /// When its duration is over.
    stop: Time,
    cycles: u64,
    step: Step,
}

#[derive(Clone, Copy, Default)]
enum Step {
    #[default]
    Arrive,
    Begin,
    /// Woken: it runs for no time, and then looks at the clock.
    Wake,
    Look,
    Sleep,
}

impl Load for CyclictestLoad {
    #[inline]
    fn peek(&self) -> Time {
        if self.arrived < self.plan.threads { Time::ZERO } else { Time::NEVER }
    }

    fn outside(&mut self) -> Outside {
        self.arrived += 1;
        Outside::Arrival(self.maker.make(Time::ZERO))
    }

    fn start(&mut self, task: TaskId, _: Time) {
        let number = self.arrived - 1;
        let interval = self.plan.interval + self.plan.distance.scaled(u64::from(number), 1);
        self.threads.set(task, Thread { number: number as u16, interval, ..Thread::default() });
    }

    fn step(&mut self, task: TaskId, now: Time) -> Op {
        let thread = &mut self.threads[task];
        match thread.step {
            Step::Arrive => {
                thread.step = Step::Begin;
                Op::Run(Span::ZERO)
            }
            Step::Begin => {
                thread.next = now + thread.interval;
                thread.stop = self.plan.duration.map_or(Time::NEVER, |duration| now + duration);
                thread.step = Step::Wake;
                Op::Sleep(thread.interval)
            }
            Step::Wake => {
                thread.step = Step::Look;
                Op::Run(Span::ZERO)
            }
            Step::Look => {
                let latency = now.since(thread.next);
                thread.cycles += 1;
                self.over |= now >= thread.stop || self.plan.loops == Some(thread.cycles);
                let passed = latency.0.div_ceil(thread.interval.0).max(1);
                thread.next += thread.interval.scaled(passed, 1);
                thread.step = Step::Sleep;
                Op::Measure(Measured::Latency { thread: thread.number, latency })
            }
            Step::Sleep if self.over => Op::Exit,
            Step::Sleep => {
                thread.step = Step::Wake;
                Op::Sleep(thread.next.since(now))
            }
        }
    }
}
