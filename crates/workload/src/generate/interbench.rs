//! The interactivity benchmark Interbench, simulated.
//!
//! Source: Interbench 0.31 (github.com/ckolivas/interbench, e612a65), `interbench.c`:
//! `periodic_schedule`, the `emulate_*` functions, `timekeeping_thread`, `bench`.
//!
//! One task runs in the presence of background load. It computes, sleeps until its deadline and
//! looks at the clock:
//! - Latency is how late it is. If a whole interval has passed as well, it computes nothing, and
//!   the frames it missed are skipped. If it finishes its work late, frames are skipped too. Each
//!   missed frame adds an interval to the latency.
//! - Audio computes 2.5 ms in 50 ms, Video 6.666 ms in 16.666 ms.
//! - X computes for i = 0, 1, …, 100 ms and sleeps until its deadline, which has then advanced by
//!   100 − i ms; only then does it advance by i ms more, so the next wake-up is early by i ms and
//!   latency below that is not seen. (That is what [`Measured::Wakeup`] is for.)
//! - Gaming computes 100 ms again and again and is late by however much longer that takes.
//!
//! Where it differs:
//! - The tool's timer thread has a real-time priority and reports by how much it overslept, which
//!   is deducted. Here it is an exact timer without CPU time, and oversleep is 0. The same goes for
//!   the timer of Audio, Video and X as background load, which in the tool is an ordinary thread.
//! - Times are in ns; the tool reads the clock in whole us.
//! - Ring, Read, Write, Compile and Memload, which are about semaphores, files and memory, are left
//!   out.

use super::{Generator, Maker, SettingError, Settings, check, check_period};
use crate::extent::{Extent, earlier};
use crate::kinds::{Kind, LoadSpec, Needs, Reader, Refusal, keys, words};
use crate::per_task::PerTask;
use crate::{Load, Measured, Op, Outside, Program};
use anysched_core::{Span, TaskId, Time};
use std::collections::VecDeque;

/// A task that Interbench measures, and its background load.
#[derive(Clone, Debug, PartialEq)]
pub struct Interbench {
    /// Of the task.
    pub settings: Settings,
    /// What the task does.
    pub task: Emulation,
    /// The background load.
    pub against: Background,
    /// Nice value of the background load, −20 ..= 19.
    pub load_nice: i8,
    /// How long the background load runs before the task begins; 1 s in the tool.
    pub pause: Span,
    /// How long the task is measured; above 0. The tool's is 30 s, rounded up to whole 10 s.
    pub duration: Span,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// 2.5 ms every 50 ms.
    Audio,
    /// 6.666 ms every 16.666 ms.
    Video,
    /// From nothing to all of the CPU in steps of 1 ms.
    X,
    /// 100 ms again and again, without a sleep.
    Gaming,
    /// Its own time every interval.
    Custom {
        /// CPU time.
        run: Span,
        /// Above 0.
        interval: Span,
    },
}

/// What runs beside the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Nothing.
    None,
    /// This many tasks that never sleep; at least 1.
    Burn(u32),
    /// A task like those that are measured.
    Emulated(Emulation),
}

keys! {
    /// The keys of [`Interbench`].
    pub struct InterbenchKeys {
        ..settings: Settings;
        /// What the measured task does.
        task: Task = "x", eg "video";
        /// What runs beside it: tasks that never sleep, nothing, or one of the tasks that are
        /// measured.
        against: Against = "burn", eg "gaming";
        /// How many tasks of `burn` there are.
        burners: u32 = "4", eg "8";
        /// The nice value of what runs beside the task.
        load_nice: i8 = "0", eg "10", in -20..=19;
        /// CPU time of `custom` in each interval.
        custom_run: Span = "5ms", eg "2ms";
        /// The interval of `custom`.
        custom_interval: Span = "50ms", eg "20ms";
        /// How long the other tasks run before the task begins.
        pause: Span = "1s", eg "100ms";
        /// How long the task is measured.
        duration: Span = "30s", eg "10s";
    }
}

/// An [`Emulation`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    X,
    Audio,
    Video,
    Gaming,
    Custom,
}

/// A [`Background`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    Burn,
    None,
    Emulated(Task),
}

words!(Task {
    Task::X => "x",
    Task::Audio => "audio",
    Task::Video => "video",
    Task::Gaming => "gaming",
    Task::Custom => "custom",
});

words!(Against {
    Against::Burn => "burn",
    Against::None => "none",
    Against::Emulated(Task::X) => "x",
    Against::Emulated(Task::Audio) => "audio",
    Against::Emulated(Task::Video) => "video",
    Against::Emulated(Task::Gaming) => "gaming",
    Against::Emulated(Task::Custom) => "custom",
});

impl Kind for InterbenchKeys {
    fn load(self, reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
        let emulation = |task| match task {
            Task::X => Emulation::X,
            Task::Audio => Emulation::Audio,
            Task::Video => Emulation::Video,
            Task::Gaming => Emulation::Gaming,
            Task::Custom => {
                Emulation::Custom { run: self.custom_run, interval: self.custom_interval }
            }
        };
        let against = match self.against {
            Against::Burn => Background::Burn(self.burners),
            Against::None => Background::None,
            Against::Emulated(task) => Background::Emulated(emulation(task)),
        };
        reader.generated(Interbench {
            settings: self.settings,
            task: emulation(self.task),
            against,
            load_nice: self.load_nice,
            pause: self.pause,
            duration: self.duration,
        })
    }
}

const GAMING: Span = Span::from_ms(100);

/// CPU time between two looks at the clock, of tasks that never sleep.
const LOOK: Span = Span::from_ms(1);

impl Emulation {
    /// CPU time and interval of a frame.
    fn frame(self, frame: u64) -> (Span, Span) {
        match self {
            Emulation::Audio => (Span::from_us(2_500), Span::from_us(50_000)),
            Emulation::Video => (Span::from_us(6_666), Span::from_us(16_666)),
            Emulation::X => (Span::from_ms(frame), Span::from_ms(100 - frame)),
            Emulation::Gaming => (GAMING, GAMING),
            Emulation::Custom { run, interval } => (run, interval),
        }
    }

    /// By how much the deadline advances after the sleep.
    fn after(self, frame: u64) -> Span {
        if self == Emulation::X { Span::from_ms(frame) } else { Span::ZERO }
    }

    /// How many distinct frames there are.
    fn frames(self) -> u64 {
        if self == Emulation::X { 101 } else { 1 }
    }

    fn validate(self) -> Result<(), SettingError> {
        let Emulation::Custom { run, interval } = self else { return Ok(()) };
        check_period("custom_interval", interval)?;
        let right = run > Span::ZERO && run <= interval;
        check(right, "custom_run", run, "above 0, at most `custom_interval`")
    }
}

impl Background {
    fn tasks(self) -> u32 {
        match self {
            Background::None => 0,
            Background::Burn(tasks) => tasks,
            Background::Emulated(_) => 1,
        }
    }
}

impl Generator for Interbench {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        self.task.validate()?;
        if let Background::Emulated(emulation) = self.against {
            emulation.validate()?;
        }
        let burners = self.against != Background::Burn(0);
        check(burners, "burners", 0, "at least 1; `against` = \"none\" is no load")?;
        let nice = self.load_nice;
        check((-20..=19).contains(&nice), "load_nice", nice, "from -20 to 19")?;
        check_period("duration", self.duration)
    }

    fn endless(&self) -> bool {
        false
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let end = earlier(Some(Time::ZERO + self.pause + self.duration), until);
        let time = end.map_or(f64::INFINITY, |end| end.0 as f64);
        let busy = match self.against {
            Background::Burn(burners) => f64::from(burners).min(cpus as f64),
            Background::None | Background::Emulated(_) => 0.0,
        };
        let frames = match self.task {
            Emulation::Custom { interval, .. } => time / interval.0 as f64,
            _ => time / LOOK.0 as f64,
        };
        let steps = frames + busy * time / LOOK.0 as f64;
        Extent { steps, last: time, ..Extent::default() }
    }

    fn needs(&self) -> Needs {
        let niceness = self.load_nice != 0 && self.against.tasks() > 0;
        Needs { niceness, ..Needs::NOTHING }.or(self.settings.needs())
    }

    fn build(&self, _: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let background = Settings {
            name: self.settings.name.as_ref().map(|name| format!("{name}-load")),
            nice: self.load_nice,
            affinity: self.settings.affinity.clone(),
            domain: self.settings.domain,
            ..Settings::default()
        };
        let begin = Time::ZERO + self.pause;
        Ok(Box::new(InterbenchLoad {
            benched: Maker::new(&self.settings, false),
            background: Maker::new(&background, self.against.tasks() > 1),
            task: self.task,
            against: self.against,
            load_nice: self.load_nice,
            begin,
            stop: begin + self.duration,
            arrived: 0,
            threads: PerTask::default(),
        }))
    }
}

struct InterbenchLoad {
    benched: Maker,
    background: Maker,
    task: Emulation,
    against: Background,
    load_nice: i8,
    /// When the task begins.
    begin: Time,
    /// When everything ends.
    stop: Time,
    arrived: u32,
    /// `None`: one that never sleeps.
    threads: PerTask<Option<Thread>>,
}

/// A task that does frames.
#[derive(Clone)]
struct Thread {
    emulation: Emulation,
    measured: bool,
    step: Step,
    frame: u64,
    deadline: Time,
    /// When its sleep ends, if it sleeps.
    wakes: Option<Time>,
    /// How late the frame began.
    latency: Span,
    /// What it does before its next step.
    todo: VecDeque<Op>,
}

/// What a task does next. At its wake-up, when it is not on a CPU yet, that is to run for no time
/// at all; then it looks at the clock.
#[derive(Clone, Copy)]
enum Step {
    Arrive,
    Pause,
    Begin,
    First,
    Wake,
    Next,
    Finish,
}

impl Thread {
    fn new(emulation: Emulation, measured: bool) -> Thread {
        Thread {
            emulation,
            measured,
            step: Step::Arrive,
            frame: 0,
            deadline: Time::ZERO,
            wakes: None,
            latency: Span::ZERO,
            todo: VecDeque::new(),
        }
    }

    fn measure(&mut self, measured: Measured) {
        if self.measured {
            self.todo.push_back(Op::Measure(measured));
        }
    }

    /// Measures the latency of a frame and sleeps until the deadline.
    fn sleep(&mut self, latency: Span, now: Time) {
        self.measure(Measured::Latency { thread: 0, latency });
        let time = self.deadline.since(now);
        self.wakes = (time > Span::ZERO).then_some(self.deadline);
        self.todo.push_back(Op::Sleep(time));
        self.step = Step::Wake;
    }

    /// How many deadlines have passed, the present one included; the next is in the future.
    fn skip(&mut self, interval: Span, now: Time) -> u32 {
        let frames = now.since(self.deadline).0 / interval.0 + 1;
        self.deadline += Span(frames * interval.0);
        u32::try_from(frames).unwrap_or(u32::MAX)
    }

    /// Begins a frame, or skips those it is too late for.
    fn begin(&mut self, now: Time) {
        let (run, interval) = self.emulation.frame(self.frame);
        if self.emulation == Emulation::Gaming {
            self.deadline = now + GAMING;
        } else {
            self.latency = now.since(self.deadline);
            if interval > Span::ZERO && now > self.deadline + interval {
                self.deadline += interval;
                let missed = self.skip(interval, now);
                self.measure(Measured::Deadlines { met: 0, missed });
                self.measure(Measured::Work { done: 0, missed });
                return self.sleep(self.latency + interval.scaled(u64::from(missed), 1), now);
            }
        }
        self.step = Step::Finish;
        self.todo.push_back(Op::Run(run));
    }

    /// A frame is computed.
    fn finish(&mut self, now: Time) {
        let (_, interval) = self.emulation.frame(self.frame);
        if self.emulation == Emulation::Gaming {
            return self.finish_gaming(now);
        }
        self.measure(Measured::Work { done: 1, missed: 0 });
        self.deadline += interval;
        if self.deadline >= now {
            self.measure(Measured::Deadlines { met: 1, missed: 0 });
            self.sleep(self.latency, now);
        } else if interval > Span::ZERO {
            let missed = self.skip(interval, now);
            self.measure(Measured::Deadlines { met: 0, missed });
            if missed > 1 {
                self.measure(Measured::Work { done: 0, missed });
            }
            self.sleep(self.latency + interval.scaled(u64::from(missed), 1), now);
        } else {
            self.deadline = now;
            self.measure(Measured::Latency { thread: 0, latency: self.latency });
            self.step = Step::Next;
        }
    }

    /// Work is counted in us here.
    fn finish_gaming(&mut self, now: Time) {
        let latency = now.since(self.deadline);
        let us = |span: Span| u32::try_from(span.0 / 1000).unwrap_or(u32::MAX);
        self.measure(Measured::Work { done: us(GAMING), missed: us(latency) });
        self.measure(Measured::Latency { thread: 0, latency });
        self.step = Step::Next;
    }

    /// The next frame, if the end has not come.
    fn next(&mut self, now: Time, stop: Time) {
        if let Some(at) = self.wakes.take() {
            self.measure(Measured::Wakeup(now.since(at)));
        }
        self.deadline += self.emulation.after(self.frame);
        self.frame = (self.frame + 1) % self.emulation.frames();
        if now >= stop {
            self.todo.push_back(Op::Exit);
        } else {
            self.begin(now);
        }
    }

    fn step(&mut self, now: Time, begin: Time, stop: Time) -> Op {
        loop {
            if let Some(op) = self.todo.pop_front() {
                return op;
            }
            match self.step {
                Step::Arrive => {
                    self.step = if self.measured { Step::Pause } else { Step::First };
                    return Op::Run(Span::ZERO);
                }
                Step::Pause => {
                    self.step = Step::Begin;
                    return Op::Sleep(begin.since(now));
                }
                Step::Begin => {
                    self.step = Step::First;
                    return Op::Run(Span::ZERO);
                }
                Step::First => {
                    self.deadline = now;
                    self.begin(now);
                }
                Step::Wake => {
                    self.step = Step::Next;
                    return Op::Run(Span::ZERO);
                }
                Step::Next => self.next(now, stop),
                Step::Finish => self.finish(now),
            }
        }
    }
}

impl Load for InterbenchLoad {
    /// X beside burners, for which there is one.
    fn program(&self) -> Option<Program> {
        let (Emulation::X, Background::Burn(burners)) = (self.task, self.against) else {
            return None;
        };
        let span = |from: Time, to: Time| to.since(from).0.to_string();
        let arguments = vec![
            ("burners", burners.to_string()),
            ("load_nice", self.load_nice.to_string()),
            ("pause_ns", span(Time::ZERO, self.begin)),
            ("duration_ns", span(self.begin, self.stop)),
        ];
        Some(Program { name: "interbench", arguments })
    }

    #[inline]
    fn peek(&self) -> Time {
        if self.arrived <= self.against.tasks() { Time::ZERO } else { Time::NEVER }
    }

    fn outside(&mut self) -> Outside {
        self.arrived += 1;
        let maker = if self.arrived == 1 { &mut self.benched } else { &mut self.background };
        Outside::Arrival(maker.make(Time::ZERO))
    }

    fn start(&mut self, task: TaskId, _: Time) {
        let thread = match (self.arrived, self.against) {
            (1, _) => Some(Thread::new(self.task, true)),
            (_, Background::Emulated(emulation)) => Some(Thread::new(emulation, false)),
            _ => None,
        };
        self.threads.set(task, thread);
    }

    fn step(&mut self, task: TaskId, now: Time) -> Op {
        match &mut self.threads[task] {
            Some(thread) => thread.step(now, self.begin, self.stop),
            None if now >= self.stop => Op::Exit,
            None => Op::Run(LOOK),
        }
    }

    /// For a task that has just woken, the frame that it comes to if it is not late.
    fn burst(&self, task: TaskId, run: Span) -> Span {
        match &self.threads[task] {
            None => super::FOR_EVER,
            Some(Thread { emulation: Emulation::Gaming, .. }) => super::FOR_EVER,
            Some(thread) => match thread.step {
                Step::Next => {
                    let next = (thread.frame + 1) % thread.emulation.frames();
                    thread.emulation.frame(next).0
                }
                Step::First => thread.emulation.frame(0).0,
                _ => run,
            },
        }
    }
}
