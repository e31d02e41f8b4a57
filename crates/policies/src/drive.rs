//! Drives a rule through [`Smp`] call by call, or plays a list of tasks on one CPU with exact
//! timers. For tests of policies.

use alloc::vec::Vec;

use anysched_core::registry::build_rule;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, RunQueue, Scheduler, Smp, Span, TaskId,
    TaskParams, Time,
};

pub const fn ms(n: u64) -> Span {
    Span::from_ms(n)
}

/// All at 0, sizes in ms: the closed batch of the golden vectors.
pub const CLOSED: &[(u64, u64)] = &[(0, 7), (0, 2), (0, 5), (0, 1), (0, 9), (0, 3)];
/// (arrival, size) in ms: the open arrivals of the golden vectors.
pub const OPEN: &[(u64, u64)] = &[(0, 6), (1, 3), (2, 8), (5, 1), (6, 2)];

/// The CPUs in `kicks`, which is cleared.
pub fn kicked(kicks: &mut CpuMask) -> Vec<u16> {
    let kicked = kicks.iter().map(|cpu| cpu.0).collect();
    kicks.clear();
    kicked
}

/// One value of [`Scheduler::probe`].
pub fn probe(policy: &(impl Scheduler + ?Sized), task: u32, name: &str) -> i64 {
    let mut found = None;
    policy.probe(TaskId(task), &mut |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found.expect("the policy shows this value")
}

/// A scheduler and the time it believes in.
pub struct Drive<Q> {
    pub smp: Smp<Q>,
    pub now: Time,
    kicks: CpuMask,
}

impl<Q: RunQueue> Drive<Q> {
    pub fn new(machine: &str, settings: &[(&str, &str)]) -> Drive<Q> {
        let smp = build_rule(&Machine::parse(machine).unwrap(), settings).unwrap();
        Drive { smp, now: Time::ZERO, kicks: CpuMask::EMPTY }
    }

    pub fn call<R>(&mut self, call: impl FnOnce(&mut Smp<Q>, &mut Cx<'_>) -> R) -> R {
        call(&mut self.smp, &mut Cx::new(self.now, &mut self.kicks))
    }

    /// Attaches `task` and makes it ready, created on CPU 0.
    pub fn create(&mut self, task: u32, burst: Option<Span>) {
        self.create_with(task, burst, &TaskParams::default());
    }

    pub fn create_with(&mut self, task: u32, burst: Option<Span>, params: &TaskParams) {
        let arrival = Arrival { burst, ..Arrival::because(Enqueue::New) };
        self.call(|smp, cx| {
            smp.attach(cx, TaskId(task), params);
            smp.enqueue(cx, TaskId(task), arrival);
        });
    }

    pub fn wake(&mut self, task: u32, burst: Option<Span>) {
        let why = Enqueue::Wakeup { prev: CpuId(0), sync: false };
        let arrival = Arrival { burst, ..Arrival::because(why) };
        self.call(|smp, cx| smp.enqueue(cx, TaskId(task), arrival));
    }

    /// What a host does with a ready task that it has to take out for a moment.
    pub fn take_out_and_resume(&mut self, task: u32) {
        let arrival = Arrival::because(Enqueue::Resumed { prev: CpuId(0) });
        self.call(|smp, cx| {
            smp.dequeue(cx, TaskId(task));
            smp.enqueue(cx, TaskId(task), arrival);
        });
    }

    /// The task and the slice that `cpu` is given.
    pub fn pick(&mut self, cpu: u16) -> Option<(u32, Span)> {
        let pick = self.call(|smp, cx| smp.pick_next(cx, CpuId(cpu)));
        pick.map(|pick| (pick.task.0, pick.slice))
    }

    /// Picks on CPU 0 and lets the task run for `ran`, to be put back as `why`.
    pub fn run(&mut self, ran: Span, why: Off) -> u32 {
        let (task, _) = self.pick(0).expect("a task is ready");
        self.now += ran;
        self.put(0, task, ran, why);
        task
    }

    pub fn put(&mut self, cpu: u16, task: u32, ran: Span, why: Off) {
        self.call(|smp, cx| smp.put_prev(cx, CpuId(cpu), TaskId(task), ran, why));
    }

    /// Lets `ran` pass on CPU 0 and ticks; whether it is to pick again.
    pub fn tick(&mut self, task: u32, ran: Span) -> bool {
        self.now += ran;
        self.call(|smp, cx| smp.tick(cx, CpuId(0), TaskId(task), ran));
        self.kicked() == [0]
    }

    /// The CPUs kicked since the last time of asking.
    pub fn kicked(&mut self) -> Vec<u16> {
        kicked(&mut self.kicks)
    }

    /// One value of [`Scheduler::probe`].
    pub fn probe(&self, task: u32, name: &str) -> i64 {
        probe(&self.smp, task, name)
    }
}

/// When each task ended and first ran.
#[derive(Debug, PartialEq)]
pub struct Played {
    pub finish: Vec<Time>,
    pub first: Vec<Time>,
}

impl Played {
    /// Asserts the ends in ms and the sum of the response times in ms.
    pub fn assert(&self, tasks: &[(u64, u64)], finish: &[u64], response_sum: u64) {
        assert_eq!(self.finish, times(finish));
        let response = self.first.iter().zip(tasks).map(|(first, task)| first.0 - ms(task.0).0);
        assert_eq!(response.sum::<u64>(), ms(response_sum).0);
    }
}

/// Instants given in ms.
pub fn times(ms: &[u64]) -> Vec<Time> {
    ms.iter().map(|&n| Time::ZERO + Span::from_ms(n)).collect()
}

struct Run {
    task: usize,
    since: Time,
    slice_end: Time,
}

/// Plays tasks of (arrival, size) in ms, in order of arrival, on CPU 0. At each instant:
/// completion, arrivals, timer, tick, end of slice, pick.
pub fn play<Q: RunQueue>(settings: &[(&str, &str)], tasks: &[(u64, u64)]) -> Played {
    let mut drive = Drive::<Q>::new("1", settings);
    let mut left: Vec<Span> = tasks.iter().map(|task| ms(task.1)).collect();
    let never = alloc::vec![Time::NEVER; tasks.len()];
    let mut played = Played { finish: never.clone(), first: never };
    let mut arrivals = tasks.iter().map(|task| Time::ZERO + ms(task.0)).enumerate().peekable();
    let mut run: Option<Run> = None;
    let mut next_tick = drive.smp.tick_period().map_or(Time::NEVER, |period| Time(period.0));
    while played.finish.contains(&Time::NEVER) {
        let ends = run.as_ref().map_or(Time::NEVER, |run| {
            (run.since + left[run.task]).min(run.slice_end).min(next_tick)
        });
        let arrives = arrivals.peek().map_or(Time::NEVER, |arrival| arrival.1);
        let timer = drive.smp.next_timer().unwrap_or(Time::NEVER);
        drive.now = ends.min(arrives).min(timer);
        if let Some(Run { task, since, .. }) = run
            && since + left[task] == drive.now
        {
            drive.put(0, task as u32, left[task], Off::Exited);
            played.finish[task] = drive.now;
            run = None;
        }
        while let Some((task, _)) = arrivals.next_if(|arrival| arrival.1 == drive.now) {
            drive.create(task as u32, Some(left[task]));
        }
        if timer == drive.now {
            drive.call(|smp, cx| smp.timer(cx));
        }
        if let Some(run) = run.as_mut().filter(|_| drive.now >= next_tick) {
            let (ran, id) = (drive.now - run.since, TaskId(run.task as u32));
            drive.call(|smp, cx| smp.tick(cx, CpuId(0), id, ran));
            left[run.task] -= ran;
            run.since = drive.now;
        }
        while next_tick <= drive.now {
            next_tick += drive.smp.tick_period().unwrap_or(Span::MAX);
        }
        let why = match run.as_ref().is_some_and(|run| run.slice_end == drive.now) {
            true => Off::Expired,
            false => Off::Preempted,
        };
        if (!drive.kicked().is_empty() || why == Off::Expired)
            && let Some(Run { task, since, .. }) = run.take()
        {
            left[task] -= drive.now - since;
            drive.put(0, task as u32, drive.now - since, why);
        }
        if run.is_none()
            && let Some((task, slice)) = drive.pick(0)
        {
            let task = task as usize;
            played.first[task] = played.first[task].min(drive.now);
            run = Some(Run { task, since: drive.now, slice_end: drive.now + slice });
        }
    }
    played
}
