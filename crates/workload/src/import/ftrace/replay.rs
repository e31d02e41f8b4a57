//! From the events of a recording to what its tasks did.
//!
//! # Bursts
//!
//! The CPU time that a task uses between two blocks is one burst, however often it was preempted:
//! that was the recorded policy's doing, and another one will preempt elsewhere. A burst is cut
//! where the task woke or created another one, so that this happens when the task has got as far,
//! not at the recorded time. Every block is an [`Op::Wait`] on the task's own channel, on which it
//! can be woken once for each time that it was. A wake-up of a task that was not blocked changed
//! nothing and is left out.
//!
//! # Who woke
//!
//! `sched_waking` tells, as it is recorded where the waker runs; without it, `sched_wakeup` does,
//! which the CPU of the woken task may record, then mostly while idle. The waker is the task that
//! this CPU ran, unless it was idle or in an interrupt: such wake-ups come from outside, at the
//! recorded time. [`Softirqs`] says how soft interrupts are treated. If the text has no column of
//! flags, interrupts are not seen, and the interrupted task is taken for the waker.
//!
//! # The ends of a recording
//!
//! A task whose first event is a wake-up was blocked at the start, one first seen leaving a CPU had
//! that CPU since the start, and one first seen getting a CPU was ready at the start; but if that
//! CPU was idle in between, the task cannot have been ready, and arrives then. A task that leaves a
//! CPU in the first instant counts from its next event. A task that is blocked at the end waits
//! forever, and the last burst of one that is not is cut there.
//!
//! # What is missing
//!
//! On each CPU, a switch begins with the task that the previous one ended with, and the head of
//! every line names the running task. Where that does not fit, a switch was not recorded: it is
//! assumed to be as early as possible, after the last event that showed the old task and after the
//! last one that made the new one ready. A task that runs again without having been woken was woken
//! from outside at that moment.

use super::{Context, Event, Kind, Recording, State, Task};
use crate::model::{Model, ModelTask, Script};
use crate::{Channel, NewTask, Op, Sizes};
use anysched_core::{CpuId, CpuSet, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who counts as the waker when a soft interrupt wakes while a task runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Softirqs {
    /// For each woken task, whichever its wake-ups by soft interrupts suggest. Timers and devices
    /// also interrupt idle CPUs. If less than a tenth of at least ten wake-ups did, the running
    /// tasks are the cause: what one sends to another on the same machine is delivered by a soft
    /// interrupt within its system call.
    #[default]
    ByEvidence,
    /// The running task.
    Task,
    /// Timers and devices, at the recorded time.
    Outside,
}

/// What a [`Recording`] shows.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The load, to be run under any policy. Time 0 is the first event.
    pub model: Model,
    /// What each CPU ran when, as recorded, by start; idle time is left out.
    pub schedule: Vec<Slot>,
    /// Per task of the model, its bursts in order.
    pub bursts: Vec<Vec<Burst>>,
    /// Per task of the model, the CPU time that it had used when it was taken off a CPU though it
    /// could have gone on.
    pub preempted: Vec<Vec<Span>>,
    /// Wake-ups and creations after which the task ran, in the order in which it did.
    pub wakes: Vec<Wake>,
    /// How often a CPU went from a task that could have gone on to another one.
    pub involuntary: u64,
    /// How often a task ran on another CPU than before.
    pub migrations: u64,
}

/// A task was made ready and then ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Its index in [`Model::tasks`].
    pub task: u32,
    /// A task created it, rather than it having been blocked.
    pub new: bool,
    /// When it was made ready.
    pub at: Time,
    /// Where the task ran that did so, if one did.
    pub waker: Option<CpuId>,
    /// Where it had run last, if anywhere.
    pub previous: Option<CpuId>,
    /// Where it ran.
    pub cpu: CpuId,
    /// From when.
    pub ran: Time,
}

/// A task on a CPU without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where.
    pub cpu: CpuId,
    /// Its index in [`Model::tasks`].
    pub task: u32,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
}

/// A burst of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// CPU time used.
    pub used: Span,
    /// When it ended.
    pub end: Time,
    /// Why.
    pub why: Ended,
}

/// Why a burst ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The task waited for something.
    Blocked,
    /// The task exited.
    Exited,
    /// The recording ended.
    Cut,
}

impl Recording {
    /// What the recording shows.
    pub fn replay(&self, softirqs: Softirqs) -> Replay {
        let mut replayer = Replayer::new(self, softirqs);
        for event in &self.events {
            replayer.take(event);
        }
        replayer.finish()
    }

    /// The tasks that soft interrupts wake on behalf of others.
    fn woken_by_tasks_in_softirq(&self, softirqs: Softirqs) -> BTreeSet<u32> {
        let has_waking = self.count(|kind| matches!(kind, Kind::Waking(_))) > 0;
        let mut seen: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.context == Context::SoftIrq) {
            let (Kind::Waking(task) | Kind::Wakeup(task)) = event.kind else { continue };
            if has_waking == matches!(event.kind, Kind::Waking(_)) {
                let (idle, all) = seen.entry(task.pid).or_default();
                *idle += u64::from(event.current == 0);
                *all += 1;
            }
        }
        let by_tasks = |&(idle, all): &(u64, u64)| match softirqs {
            Softirqs::ByEvidence => all >= 10 && idle * 10 < all,
            Softirqs::Task => true,
            Softirqs::Outside => false,
        };
        seen.iter().filter(|(_, counts)| by_tasks(counts)).map(|(&pid, _)| pid).collect()
    }
}

/// A task as far as its events have been read.
struct Tracked {
    pid: u32,
    name: Option<u32>,
    nice: Option<i8>,
    /// The nice value that it began with.
    first_nice: i8,
    /// The lowest `prio` below 100 that it had.
    real_time: Option<i32>,
    arrives: Option<Time>,
    /// What it did. `Run(0)` keeps a place for what is not yet known.
    ops: Vec<Op>,
    stage: Stage,
    /// Since when it is in this stage; while it runs, up to when its use of the CPU is in `ops`.
    since: Time,
    /// Recorded while it was not blocked; it counts if the task was then about to block.
    early_wake: Option<Waker>,
    /// `sched_process_exit` has been seen.
    exiting: bool,
    /// CPU time of the current burst so far.
    used: Span,
    bursts: Vec<Burst>,
    /// CPU time of all bursts, and what that was when it was taken off but could have gone on.
    total: Span,
    preempted: Vec<Span>,
    /// Where it ran.
    cpus: BTreeSet<u16>,
    /// Where it runs or ran last.
    last: Option<CpuId>,
    /// If it was made ready and has not run since: when, by a task on which CPU, and whether it
    /// is new.
    made_ready: Option<(Time, Option<CpuId>, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready,
    Running(CpuId),
    Blocked,
    /// Blocked or ended; later events will tell.
    BlockedOrEnded,
    /// Another task ran in its place without a switch; it is ready or blocked.
    Lost,
    Ended,
}

/// What wakes or creates a task.
#[derive(Clone, Copy, Debug)]
enum Waker {
    Outside(Time),
    /// At this place among the operations of this task.
    Task {
        task: usize,
        place: usize,
        /// A soft interrupt did it for the task, as the network does, which wakes in sync.
        sync: bool,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Current {
    #[default]
    Unknown,
    Idle,
    Task(usize),
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    current: Current,
    /// Since when it is.
    since: Time,
    /// The last event that showed it.
    seen: Time,
    /// Whether it has been idle for any time.
    was_idle: bool,
}

/// How many times events did not fit.
#[derive(Default)]
struct Misfits {
    switches: u64,
    wakes: u64,
    in_softirq: u64,
}

struct Replayer<'a> {
    recording: &'a Recording,
    woken_by_tasks_in_softirq: BTreeSet<u32>,
    cpus: Vec<Cpu>,
    tasks: Vec<Tracked>,
    /// The most recent task with this number.
    by_pid: BTreeMap<u32, usize>,
    /// Tasks that have been forked but not been seen since.
    forked: BTreeMap<u32, Waker>,
    signals: Vec<(Time, Channel)>,
    schedule: Vec<Slot>,
    wakes: Vec<Wake>,
    involuntary: u64,
    migrations: u64,
    misfits: Misfits,
}

impl Replayer<'_> {
    fn new(recording: &Recording, softirqs: Softirqs) -> Replayer<'_> {
        Replayer {
            recording,
            woken_by_tasks_in_softirq: recording.woken_by_tasks_in_softirq(softirqs),
            cpus: vec![Cpu::default(); recording.cpus() as usize],
            tasks: Vec::new(),
            by_pid: BTreeMap::new(),
            forked: BTreeMap::new(),
            signals: Vec::new(),
            schedule: Vec::new(),
            wakes: Vec::new(),
            involuntary: 0,
            migrations: 0,
            misfits: Misfits::default(),
        }
    }

    fn take(&mut self, event: &Event) {
        let now = Time((event.time - self.recording.start()).0);
        if let Kind::Switch { prev, state, next } = event.kind {
            if self.begins_with(event.cpu, prev.pid, state, now) {
                self.observe(event.cpu, prev.pid, now);
                self.switch_out(event.cpu, prev, state, now);
            }
            let both = prev.pid != 0 && next.pid != 0;
            self.involuntary += u64::from(both && state == State::Ready);
            return self.switch_in(event.cpu, next, now);
        }
        self.observe(event.cpu, event.current, now);
        match event.kind {
            Kind::Switch { .. } => {}
            Kind::Waking(task) => self.woken(event, task, now, true),
            Kind::Wakeup(task) => self.woken(event, task, now, false),
            Kind::WakeupNew(task) => {
                self.forked.remove(&task.pid);
                let creator = self.waker(event, task.pid, now);
                let new = self.create(task.pid, creator, now);
                self.describe(new, task);
            }
            Kind::Fork { child } => {
                let creator = self.waker(event, child, now);
                self.by_pid.remove(&child);
                self.forked.insert(child, creator);
            }
            Kind::Exit { pid } => {
                if let Some(&task) = self.by_pid.get(&pid) {
                    self.tasks[task].exiting = true;
                }
            }
            Kind::Migrate { pid } => {
                if let Some(&task) = self.by_pid.get(&pid)
                    && self.tasks[task].stage == Stage::Ready
                {
                    self.tasks[task].since = now;
                }
            }
        }
    }

    /// Whether a switch has a task to begin with; not if it leaves in the first instant.
    fn begins_with(&self, cpu: CpuId, pid: u32, state: State, now: Time) -> bool {
        now > Time::ZERO
            || state == State::Ready
            || self.cpus[cpu.index()].current != Current::Unknown
            || self.by_pid.contains_key(&pid)
    }

    /// An event shows that `cpu` runs `pid` at `now`.
    fn observe(&mut self, cpu: CpuId, pid: u32, now: Time) {
        let fits = match self.cpus[cpu.index()].current {
            Current::Unknown => false,
            Current::Idle => pid == 0,
            Current::Task(task) => {
                self.tasks[task].pid == pid && self.by_pid.get(&pid) == Some(&task)
            }
        };
        if !fits {
            self.repair(cpu, pid, now);
        }
        self.cpus[cpu.index()].seen = now;
    }

    /// Lets `cpu` switch to `pid` as early as possible.
    fn repair(&mut self, cpu: CpuId, pid: u32, now: Time) {
        let Cpu { current, seen, .. } = self.cpus[cpu.index()];
        self.misfits.switches += u64::from(current != Current::Unknown);
        let known = self.by_pid.get(&pid).map(|&task| &self.tasks[task]);
        let mut at = known.map_or(seen, |task| seen.max(task.since));
        if let Some(Stage::Running(other)) = known.map(|task| task.stage) {
            at = at.max(self.cpus[other.index()].seen);
        }
        if let Current::Task(task) = current {
            at = at.max(self.tasks[task].since).min(now);
            self.stop(cpu, task, at);
            self.tasks[task].stage = Stage::Lost;
        }
        self.set_current(cpu, Current::Idle, at);
        if pid != 0 {
            let task = self.runnable(cpu, pid, at);
            self.start(cpu, task, at);
        }
    }

    fn set_current(&mut self, cpu: CpuId, current: Current, now: Time) {
        let cpu = &mut self.cpus[cpu.index()];
        cpu.was_idle |= cpu.current == Current::Idle && now > cpu.since;
        cpu.current = current;
        (cpu.since, cpu.seen) = (now, now);
    }

    fn start(&mut self, cpu: CpuId, task: usize, now: Time) {
        self.set_current(cpu, Current::Task(task), now);
        let tracked = &mut self.tasks[task];
        tracked.stage = Stage::Running(cpu);
        tracked.since = now;
        tracked.cpus.insert(cpu.0);
        let previous = tracked.last.replace(cpu);
        self.migrations += u64::from(previous.is_some_and(|last| last != cpu));
        if let Some((at, waker, new)) = tracked.made_ready.take() {
            let task = task as u32;
            self.wakes.push(Wake { task, new, at, waker, previous, cpu, ran: now.max(at) });
        }
    }

    /// Where `waker` runs, if it is a task.
    fn place_of(&self, waker: Waker) -> Option<CpuId> {
        let Waker::Task { task, .. } = waker else { return None };
        match self.tasks[task].stage {
            Stage::Running(cpu) => Some(cpu),
            _ => None,
        }
    }

    /// Ends the slot of `task`, which runs on `cpu`; the caller gives it its new stage.
    fn stop(&mut self, cpu: CpuId, task: usize, now: Time) {
        self.count(task, now);
        let start = self.cpus[cpu.index()].since;
        if start < now {
            self.schedule.push(Slot { cpu, task: task as u32, start, end: now });
        }
    }

    /// Adds what `task`, which runs, has used of the CPU up to now.
    fn count(&mut self, task: usize, now: Time) {
        let task = &mut self.tasks[task];
        let used = now.since(task.since);
        task.since = task.since.max(now);
        task.used += used;
        task.total += used;
        task.ops.push(Op::Run(used));
    }

    fn switch_out(&mut self, cpu: CpuId, prev: Task, state: State, now: Time) {
        let Current::Task(task) = self.cpus[cpu.index()].current else { return };
        self.stop(cpu, task, now);
        self.describe(task, prev);
        let tracked = &mut self.tasks[task];
        tracked.since = now;
        match state {
            State::Ready => {
                tracked.stage = Stage::Ready;
                tracked.preempted.push(tracked.total);
            }
            State::Blocked => self.block(task, now, Stage::Blocked),
            State::EndedOrParked if !tracked.exiting => {
                self.block(task, now, Stage::BlockedOrEnded)
            }
            State::Ended | State::EndedOrParked => {
                tracked.stage = Stage::Ended;
                tracked.end_burst(now, Ended::Exited);
            }
        }
    }

    fn block(&mut self, task: usize, now: Time, stage: Stage) {
        let tracked = &mut self.tasks[task];
        tracked.end_burst(now, Ended::Blocked);
        tracked.ops.push(Op::Wait(Channel(task as u32)));
        tracked.stage = stage;
        tracked.since = now;
    }

    fn switch_in(&mut self, cpu: CpuId, next: Task, now: Time) {
        self.set_current(cpu, Current::Idle, now);
        if next.pid == 0 {
            return;
        }
        let task = self.runnable(cpu, next.pid, now);
        self.describe(task, next);
        self.start(cpu, task, now);
    }

    /// The task `pid`, which `cpu` now begins to run, made ready if that was not recorded.
    fn runnable(&mut self, cpu: CpuId, pid: u32, now: Time) -> usize {
        if let Some(creator) = self.forked.remove(&pid) {
            return self.create(pid, creator, now);
        }
        let known = self.by_pid.get(&pid).copied();
        let known = known.filter(|&task| self.tasks[task].stage != Stage::Ended);
        let Some(task) = known else {
            let new = self.by_pid.contains_key(&pid) || self.cpus[cpu.index()].was_idle;
            let arrives = if new { now } else { Time::ZERO };
            return self.create(pid, Waker::Outside(arrives), now);
        };
        match self.tasks[task].stage {
            Stage::Blocked | Stage::BlockedOrEnded => {
                let waker = self.tasks[task].early_wake.take();
                self.misfits.wakes += u64::from(waker.is_none());
                self.wake(task, waker.unwrap_or(Waker::Outside(now)), now);
            }
            Stage::Running(other) => {
                self.misfits.switches += 1;
                let seen = self.cpus[other.index()].seen;
                self.stop(other, task, seen);
                self.set_current(other, Current::Idle, seen);
            }
            Stage::Ready | Stage::Lost | Stage::Ended => {}
        }
        task
    }

    /// A new task, which is ready.
    fn create(&mut self, pid: u32, creator: Waker, now: Time) -> usize {
        let index = self.tasks.len();
        let place = self.place_of(creator);
        let arrives = match creator {
            Waker::Outside(at) => Some(at),
            Waker::Task { task, place, .. } => {
                self.tasks[task].ops[place] = Op::Spawn(index as u32);
                None
            }
        };
        self.tasks.push(Tracked {
            pid,
            name: None,
            nice: None,
            first_nice: 0,
            real_time: None,
            arrives,
            ops: Vec::new(),
            stage: Stage::Ready,
            since: now,
            early_wake: None,
            exiting: false,
            used: Span::ZERO,
            bursts: Vec::new(),
            total: Span::ZERO,
            preempted: Vec::new(),
            cpus: BTreeSet::new(),
            last: None,
            made_ready: place.map(|cpu| (now, Some(cpu), true)),
        });
        self.by_pid.insert(pid, index);
        index
    }

    /// Notes the name of a task and, when it changes, its nice value.
    fn describe(&mut self, task: usize, named: Task) {
        let task = &mut self.tasks[task];
        task.name = Some(named.name);
        let nice = (named.prio.clamp(100, 139) - 120) as i8;
        if named.prio < 100 {
            task.real_time = Some(task.real_time.map_or(named.prio, |prio| prio.min(named.prio)));
        }
        match task.nice.replace(nice) {
            None => task.first_nice = nice,
            Some(before) if before != nice => task.ops.push(Op::SetNice(nice)),
            Some(_) => {}
        }
    }

    /// A wake-up of `named` was recorded: by `sched_waking` or else by `sched_wakeup`.
    fn woken(&mut self, event: &Event, named: Task, now: Time, waking: bool) {
        if named.pid == 0 {
            return;
        }
        let task = self.woken_task(named.pid, now);
        match self.tasks[task].stage {
            Stage::Blocked | Stage::BlockedOrEnded | Stage::Lost => {
                if self.tasks[task].stage == Stage::Lost {
                    self.block(task, now, Stage::Blocked);
                }
                let early = self.tasks[task].early_wake.take().filter(|_| !waking);
                let waker = early.unwrap_or_else(|| self.waker(event, named.pid, now));
                let by_task = matches!(waker, Waker::Task { .. });
                self.misfits.in_softirq += u64::from(by_task && event.context == Context::SoftIrq);
                self.wake(task, waker, now);
            }
            Stage::Ready | Stage::Running(_) if waking => {
                let waker = self.waker(event, named.pid, now);
                self.tasks[task].early_wake = Some(waker);
            }
            Stage::Ready => {
                self.tasks[task].early_wake = None;
                self.tasks[task].since = now;
            }
            Stage::Running(_) => self.tasks[task].early_wake = None,
            Stage::Ended => {}
        }
        self.describe(task, named);
    }

    /// The task with number `pid`, which a wake-up names; if it was not known, it was blocked.
    fn woken_task(&mut self, pid: u32, now: Time) -> usize {
        let known = self.by_pid.get(&pid).copied();
        if let Some(task) = known.filter(|&task| self.tasks[task].stage != Stage::Ended) {
            return task;
        }
        let creator = match self.forked.remove(&pid) {
            Some(creator) => creator,
            None => Waker::Outside(if known.is_some() { now } else { Time::ZERO }),
        };
        let task = self.create(pid, creator, now);
        self.tasks[task].ops.push(Op::Wait(Channel(task as u32)));
        self.tasks[task].stage = Stage::Blocked;
        task
    }

    /// Who performs what `event` does to `pid`.
    fn waker(&mut self, event: &Event, pid: u32, now: Time) -> Waker {
        let by_task = match event.context {
            Context::Unknown | Context::Task => true,
            Context::SoftIrq => self.woken_by_tasks_in_softirq.contains(&pid),
            Context::HardIrq => false,
        };
        match self.cpus[event.cpu.index()].current {
            Current::Task(task) if by_task => {
                self.count(task, now);
                self.tasks[task].ops.push(Op::Run(Span::ZERO));
                let sync = event.context == Context::SoftIrq && !self.tasks[task].exiting;
                Waker::Task { task, place: self.tasks[task].ops.len() - 1, sync }
            }
            _ => Waker::Outside(now),
        }
    }

    /// Makes `task`, which is blocked, ready.
    fn wake(&mut self, task: usize, waker: Waker, now: Time) {
        let channel = Channel(task as u32);
        self.tasks[task].made_ready = Some((now, self.place_of(waker), false));
        match waker {
            Waker::Outside(at) => self.signals.push((at, channel)),
            Waker::Task { task, place, sync } => {
                let wake = if sync { Op::Write } else { Op::Signal };
                self.tasks[task].ops[place] = wake(channel);
            }
        }
        self.tasks[task].stage = Stage::Ready;
        self.tasks[task].since = now;
    }

    fn finish(mut self) -> Replay {
        let end = Time(self.recording.span().0);
        for cpu in 0..self.cpus.len() {
            if let Current::Task(task) = self.cpus[cpu].current {
                self.stop(CpuId(cpu as u16), task, end);
            }
        }
        for task in &mut self.tasks {
            match task.stage {
                Stage::Ready | Stage::Running(_) | Stage::Lost if task.used > Span::ZERO => {
                    task.end_burst(end, Ended::Cut);
                }
                Stage::BlockedOrEnded => {
                    let wait = task.ops.iter().rposition(|op| matches!(op, Op::Wait(_)));
                    task.ops.truncate(wait.unwrap_or(task.ops.len()));
                    if let Some(burst) = task.bursts.last_mut() {
                        burst.why = Ended::Exited;
                    }
                }
                _ => {}
            }
        }
        self.signals.sort_by_key(|&(time, _)| time);
        self.schedule.sort_by_key(|slot| (slot.start, slot.cpu));
        let warnings = self.warnings();
        let channels = self.tasks.len() as u32;
        let names = &self.recording.names;
        let bursts = self.tasks.iter_mut().map(|task| std::mem::take(&mut task.bursts)).collect();
        let preempted = self.tasks.iter_mut().map(|task| std::mem::take(&mut task.preempted));
        let preempted = preempted.collect();
        let model = Model {
            tasks: self.tasks.into_iter().map(|task| task.into_model(names)).collect(),
            signals: self.signals,
            sizes: Sizes { channels, ..Sizes::default() },
            cpus: Some(self.recording.cpus()),
            until: None,
            warnings,
        };
        let Replayer { schedule, wakes, involuntary, migrations, .. } = self;
        Replay { model, schedule, bursts, preempted, wakes, involuntary, migrations }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.recording.warnings();
        let mut warn = |count: u64, text: &dyn Fn() -> String| {
            if count > 0 {
                warnings.push(format!("{count} {}", text()));
            }
        };
        warn(self.misfits.switches, &|| {
            "switches are missing from the recording; each is taken to be as early as it can have \
             been"
                .into()
        });
        warn(self.misfits.wakes, &|| {
            "wake-ups are missing from the recording; they come from outside when the task next \
             ran"
            .into()
        });
        warn(self.misfits.in_softirq, &|| {
            "wake-ups by soft interrupts are taken to be by the task that ran".into()
        });
        let names = &self.recording.names;
        let real_time: Vec<String> = self
            .tasks
            .iter()
            .filter(|task| task.real_time.is_some())
            .map(|task| task.full_name(names))
            .collect();
        warn(real_time.len() as u64, &|| {
            format!(
                "real-time tasks have nice -20, and a priority for policies that use it: {}",
                real_time.join(", ")
            )
        });
        warnings
    }
}

impl Recording {
    fn creations(&self) -> usize {
        self.count(|kind| matches!(kind, Kind::WakeupNew(_) | Kind::Fork { .. }))
    }

    /// What the text left out, and what it contains that is not used.
    fn warnings(&self) -> Vec<String> {
        let notes = &self.notes;
        let mut warnings = Vec::new();
        if !notes.unused.is_empty() {
            let names: Vec<String> =
                notes.unused.iter().map(|(event, n)| format!("{event} ({n})")).collect();
            warnings.push(format!("events that are not used: {}", names.join(", ")));
        }
        if let Some((line, text)) = &notes.first_unknown {
            let count = notes.unknown;
            warnings.push(format!("{count} lines are no events; the first is {line}: {text}"));
        }
        if notes.losses > 0 {
            let (losses, lost) = (notes.losses, notes.lost);
            warnings
                .push(format!("events were lost while recording: {losses} times, {lost} known"));
        }
        if notes.early > 0 {
            warnings.push(format!("{} events were out of order; they were sorted", notes.early));
        }
        if self.creations() == 0 {
            warnings.push("no events of creation: new tasks come from outside".into());
        }
        match self.count(|kind| matches!(kind, Kind::Waking(_))) {
            0 if self.count(|kind| matches!(kind, Kind::Wakeup(_))) == 0 => {
                warnings.push("no wake-ups: all come from outside, when the task next ran".into());
            }
            0 => warnings.push(
                "no sched_waking: sched_wakeup tells who woke, and mostly nobody if that was on \
                 another CPU"
                    .into(),
            ),
            _ => {}
        }
        if self.events.iter().all(|event| event.context == Context::Unknown) {
            warnings.push(
                "no column of flags: what an interrupt woke counts as woken by the task it \
                 interrupted"
                    .into(),
            );
        }
        warnings
    }
}

impl Tracked {
    fn end_burst(&mut self, end: Time, why: Ended) {
        self.bursts.push(Burst { used: std::mem::take(&mut self.used), end, why });
    }

    fn full_name(&self, names: &[Arc<str>]) -> String {
        match self.name {
            Some(name) => format!("{}-{}", names[name as usize], self.pid),
            None => self.pid.to_string(),
        }
    }

    /// The only CPU that the kernel lets it run on, if its name says so and it was nowhere else.
    fn bound_to(&self, names: &[Arc<str>]) -> Option<u16> {
        const KINDS: [&str; 10] = [
            "kworker",
            "ksoftirqd",
            "migration",
            "watchdog",
            "cpuhp",
            "rcuc",
            "ktimers",
            "irq_work",
            "idle_inject",
            "posixcputmr",
        ];
        let (kind, cpu) = names[self.name? as usize].split_once('/')?;
        let cpu = match kind {
            // The number of an unbound worker's pool has a `u` before it.
            "kworker" => cpu.split_once(':')?.0,
            _ => cpu,
        };
        let cpu: u16 = cpu.parse().ok()?;
        let bound = KINDS.contains(&kind) && self.cpus.iter().all(|&ran| ran == cpu);
        bound.then_some(cpu)
    }

    fn into_model(self, names: &[Arc<str>]) -> ModelTask {
        let bound = self.bound_to(names).filter(|&cpu| usize::from(cpu) < anysched_core::MAX_CPUS);
        ModelTask {
            new: NewTask {
                name: Some(self.full_name(names).into()),
                nice: self.first_nice,
                affinity: bound.map_or(CpuSet::All, |cpu| CpuSet::of([CpuId(cpu)])),
                priority: self.real_time.map_or(0, |prio| 99 - prio.max(-1)),
                ..NewTask::default()
            },
            arrives: self.arrives,
            script: Arc::new(Script::once(joined(self.ops))),
        }
    }
}

/// The same operations with consecutive runs joined and empty ones removed.
pub(super) fn joined(ops: Vec<Op>) -> Vec<Op> {
    let mut joined: Vec<Op> = Vec::with_capacity(ops.len());
    for op in ops {
        match (joined.last_mut(), op) {
            (_, Op::Run(Span::ZERO)) => {}
            (Some(Op::Run(before)), Op::Run(span)) => *before += span,
            (_, op) => joined.push(op),
        }
    }
    joined.shrink_to_fit();
    joined
}
