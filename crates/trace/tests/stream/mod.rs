//! A machine that generates valid streams of events and knows what happened.
//!
//! As in the simulator, a task leaves its CPU a moment before the CPU picks again, and only the
//! pick is reported, as a switch. In between, at the same instant, the task may be woken or picked
//! elsewhere and its number may be reused.

#![allow(dead_code)]

use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_trace::{Counter, Event, Kind, Sink, TaskInfo};
use std::collections::VecDeque;

/// What a sink is told.
#[derive(Clone, Debug)]
pub enum Item {
    Task { task: TaskId, serial: u64, name: Option<String>, nice: i8 },
    Event(Event),
}

impl Item {
    pub fn tell(&self, sink: &mut impl Sink) {
        match self {
            Item::Task { task, serial, name, nice } => sink.task(&TaskInfo {
                task: *task,
                serial: *serial,
                name: name.as_deref(),
                nice: *nice,
            }),
            Item::Event(event) => sink.event(event),
        }
    }
}

/// A time interval that a task spent on a CPU or ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stay {
    pub serial: u64,
    pub from: Time,
    pub until: Time,
    /// The CPU it ran on; `None`: it was ready, not running.
    pub cpu: Option<CpuId>,
}

/// Who made a task ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    Task(u64),
    Cpu(CpuId),
    Outside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    pub at: Time,
    pub from: Cause,
    pub to: u64,
    pub new: bool,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    serial: u64,
    live: bool,
    since: Time,
    on: Option<CpuId>,
    last: Option<CpuId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    runs: Option<TaskId>,
    leaving: Option<(TaskId, Off)>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Machine {
    pub now: Time,
    pub items: Vec<Item>,
    pub stays: Vec<Stay>,
    pub arrows: Vec<Arrow>,
    pub names: Vec<String>,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    free: Vec<TaskId>,
    pub ready: VecDeque<TaskId>,
    pub blocked: Vec<TaskId>,
}

impl Machine {
    pub fn new(cpus: usize) -> Machine {
        Machine {
            now: Time::ZERO,
            items: Vec::new(),
            stays: Vec::new(),
            arrows: Vec::new(),
            names: Vec::new(),
            cpus: vec![Cpu::default(); cpus],
            tasks: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            blocked: Vec::new(),
        }
    }

    pub fn live(&self) -> usize {
        self.tasks.iter().filter(|task| task.live).count()
    }

    pub fn running(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].runs
    }

    pub fn event(&mut self, kind: Kind) {
        self.items.push(Item::Event(Event { time: self.now, kind }));
    }

    /// Lets time pass; CPUs whose task has left pick first.
    pub fn pass(&mut self, ns: u64) {
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].leaving.is_some() {
                self.pick(cpu);
            }
        }
        self.now.0 += ns;
    }

    fn cause(&self, by: Option<TaskId>, cpu: Option<CpuId>) -> Cause {
        match (by, cpu) {
            (Some(by), _) => Cause::Task(self.tasks[by.index()].serial),
            (None, Some(cpu)) => Cause::Cpu(cpu),
            (None, None) => Cause::Outside,
        }
    }

    pub fn attach(&mut self, by: Option<TaskId>, name: Option<&str>, nice: i8) {
        let serial = self.names.len() as u64;
        let new = Task { serial, live: true, since: self.now, on: None, last: None };
        let task = match self.free.pop() {
            Some(task) => {
                self.tasks[task.index()] = new;
                task
            }
            None => {
                self.tasks.push(new);
                TaskId(self.tasks.len() as u32 - 1)
            }
        };
        self.names.push(name.map_or_else(|| format!("task {serial}"), str::to_owned));
        self.items.push(Item::Task { task, serial, name: name.map(str::to_owned), nice });
        let from = self.cause(by, None);
        self.arrows.push(Arrow { at: self.now, from, to: serial, new: true });
        self.event(Kind::Attach { task, by });
        self.ready.push_back(task);
    }

    /// Wakes the blocked task at `index`.
    pub fn wake(&mut self, index: usize, by: Option<TaskId>, cpu: Option<CpuId>) {
        let task = self.blocked.swap_remove(index);
        let from = self.cause(by, cpu);
        let to = self.tasks[task.index()].serial;
        self.arrows.push(Arrow { at: self.now, from, to, new: false });
        self.event(Kind::Wake { task, by, cpu });
        self.tasks[task.index()].since = self.now;
        self.ready.push_back(task);
    }

    /// The task on `cpu` stops; nothing is reported yet.
    pub fn leave(&mut self, cpu: usize, why: Off) {
        let Some(id) = self.cpus[cpu].runs.take() else { return };
        self.cpus[cpu].leaving = Some((id, why));
        let task = &mut self.tasks[id.index()];
        self.stays.push(Stay {
            serial: task.serial,
            from: task.since,
            until: self.now,
            cpu: task.on.take(),
        });
        task.since = self.now;
        match why {
            Off::Blocked => self.blocked.push(id),
            Off::Exited => {
                task.live = false;
                self.free.push(id);
            }
            _ => self.ready.push_back(id),
        }
    }

    /// `cpu`, if it runs nothing, picks the task that has been ready longest.
    pub fn pick(&mut self, cpu: usize) {
        if self.cpus[cpu].runs.is_some() {
            return;
        }
        let id = CpuId(cpu as u16);
        let prev = self.cpus[cpu].leaving.take();
        let next = self.ready.pop_front();
        if prev.is_none() && next.is_none() {
            return;
        }
        if let Some(next) = next {
            let task = &mut self.tasks[next.index()];
            self.stays.push(Stay {
                serial: task.serial,
                from: task.since,
                until: self.now,
                cpu: None,
            });
            task.since = self.now;
            task.on = Some(id);
            let last = task.last.replace(id);
            self.cpus[cpu].runs = Some(next);
            if let Some(from) = last.filter(|&last| last != id) {
                self.event(Kind::Migrate { task: next, from, to: id });
            }
        }
        self.event(Kind::Switch { cpu: id, prev, next });
    }

    pub fn sample(&mut self) {
        let busy = self.cpus.iter().filter(|cpu| cpu.runs.is_some()).count() as u64;
        self.event(Kind::Sample { counter: Counter::Ready, value: self.ready.len() as u64 });
        self.event(Kind::Sample { counter: Counter::Busy, value: busy });
    }

    /// All stays including the unfinished ones, without empty ones, and with adjacent ones joined.
    pub fn finish(&mut self) -> Vec<Stay> {
        self.pass(0);
        let mut stays = self.stays.clone();
        let ready = self.ready.iter().copied();
        for id in self.cpus.iter().filter_map(|cpu| cpu.runs).chain(ready) {
            let task = self.tasks[id.index()];
            let (serial, from, until) = (task.serial, task.since, self.now);
            stays.push(Stay { serial, from, until, cpu: task.on });
        }
        join(stays)
    }
}

/// Drops empty stays and joins consecutive ones of the same task on the same CPU.
pub fn join(mut stays: Vec<Stay>) -> Vec<Stay> {
    stays.retain(|stay| stay.from < stay.until);
    stays.sort();
    stays.dedup_by(|next, stay| {
        let same = next.serial == stay.serial && next.cpu == stay.cpu && next.from == stay.until;
        if same {
            stay.until = next.until;
        }
        same
    });
    stays
}

/// One step of [`play`]: what to do, to which task or CPU, and how much time passes before it.
pub type Command = (u8, u8, u16);

/// Turns arbitrary commands into a valid stream.
pub fn play(cpus: usize, commands: &[Command]) -> Machine {
    let mut machine = Machine::new(cpus);
    for &(what, which, ns) in commands {
        let choice = usize::from(which);
        let cpu = choice % cpus;
        let running = machine.running(cpu);
        // Half of the steps happen at the same instant as the step before.
        if ns % 2 == 1 {
            machine.pass(u64::from(ns));
        }
        match what % 12 {
            0 if machine.live() < 40 => {
                let name = (which % 3 != 0).then(|| format!("worker {}", which % 7));
                let by = running.filter(|_| which % 2 == 0);
                machine.attach(by, name.as_deref(), (which % 40) as i8 - 20);
            }
            1..=3 if !machine.blocked.is_empty() => {
                let index = choice % machine.blocked.len();
                let by = running.filter(|_| what % 2 == 0);
                let cpu = (which % 5 != 0).then_some(CpuId(cpu as u16));
                machine.wake(
                    index,
                    by,
                    if by.is_some() { Some(CpuId(choice as u16 % cpus as u16)) } else { cpu },
                );
            }
            4 => machine.leave(cpu, Off::Exited),
            5 | 6 => machine.leave(cpu, Off::Blocked),
            7 => {
                let whys = [Off::Expired, Off::Preempted, Off::Yielded, Off::NotRun];
                machine.leave(cpu, whys[choice / cpus % 4]);
            }
            8 if running.is_some() => machine.event(Kind::Kick { cpu: CpuId(cpu as u16) }),
            9 => machine.sample(),
            _ => machine.pick(cpu),
        }
    }
    machine
}
