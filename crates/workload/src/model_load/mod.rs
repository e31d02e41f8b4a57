//! Models as loads.

use crate::generate::FOR_EVER;
use crate::model::{Model, ModelTask, Script};
use crate::per_task::PerTask;
use crate::{Load, NewTask, Op, Outside, Sizes};
use anysched_core::{CpuId, MAX_CPUS, Span, TaskId, Time};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Why a model cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// The task, operation or signal.
    pub place: String,
    /// What is wrong and what would be right.
    pub why: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

impl std::error::Error for ModelError {}

/// A part that is repeated more often than this must take time.
const ENOUGH: u64 = 1_000_000;

impl Model {
    /// Checks that the model is consistent and that time passes in it.
    ///
    /// Errors: an object or task that does not exist, a value out of range, a part that is repeated
    /// forever (or more than a million times) without using time or waiting, or tasks that spawn
    /// each other endlessly in no time.
    pub fn validate(&self) -> Result<(), ModelError> {
        Compiled::new(self).map(drop)
    }

    /// The same model, from which any number of loads can be made.
    ///
    /// Errors: those of [`Model::validate`].
    pub fn checked(mut self) -> Result<CheckedModel, ModelError> {
        let compiled = Compiled::new(&self)?;
        let arriving = |task: &u32| self.tasks[*task as usize].arrives;
        let mut arrivals: Vec<u32> = (0..self.tasks.len() as u32).collect();
        arrivals.retain(|task| arriving(task).is_some());
        arrivals.sort_by_key(arriving);
        self.signals.sort_by_key(|&(at, _)| at);
        Ok(CheckedModel(Arc::new(Checked { model: self, compiled, arrivals })))
    }

    /// The load that this model describes. [`Model::until`] is left to the host.
    ///
    /// Errors: those of [`Model::validate`].
    pub fn into_load(self) -> Result<impl Load + use<>, ModelError> {
        Ok(self.checked()?.load())
    }
}

/// A model that can be run. Its clones and loads share it.
#[derive(Clone, Debug)]
pub struct CheckedModel(Arc<Checked>);

#[derive(Debug)]
struct Checked {
    /// Its signals are in time order.
    model: Model,
    compiled: Compiled,
    /// Tasks by arrival.
    arrivals: Vec<u32>,
}

impl CheckedModel {
    /// The model, with its signals in time order.
    pub fn model(&self) -> &Model {
        &self.0.model
    }

    /// The load that it describes. [`Model::until`] is left to the host.
    pub fn load(&self) -> impl Load + use<> {
        let mut load = ModelLoad {
            of: Arc::clone(&self.0),
            next_arrival: 0,
            next_signal: 0,
            next: Time::NEVER,
            starting: 0,
            tasks: PerTask::default(),
        };
        load.find_next();
        load
    }
}

/// The distinct scripts of a model with what a look-ahead needs.
#[derive(Debug)]
struct Compiled {
    scripts: Vec<Ahead>,
    /// Which of them each task has.
    script_of: Vec<u32>,
}

/// A script and, for each operation, what follows from there.
#[derive(Debug)]
struct Ahead {
    script: Arc<Script>,
    /// The CPU time from this operation to the next one that may block or that ends the task, and
    /// where that one is; within one round.
    runs: Vec<(Span, u32)>,
}

/// Whether a task may block or end there. Unknown for a release until it is reached.
fn stops(op: &Op) -> bool {
    match op {
        Op::Sleep(span) => *span > Span::ZERO,
        Op::Release { .. } | Op::Wait(_) | Op::Lock(_) | Op::Meet(_) | Op::Exit => true,
        _ => false,
    }
}

/// Whether repeating this takes time: a release moves on by its period.
fn takes_time(op: &Op, sizes: &Sizes) -> bool {
    match op {
        Op::Run(span) | Op::Sleep(span) => *span > Span::ZERO,
        Op::Release { at, .. } => *at > Time::ZERO,
        Op::Meet(barrier) => sizes.barriers[barrier.0 as usize] > 1,
        Op::Wait(_) | Op::Exit => true,
        _ => false,
    }
}

impl Ahead {
    fn new(script: &Arc<Script>) -> Ahead {
        let ops = &script.ops;
        let mut runs = vec![(Span::ZERO, ops.len() as u32); ops.len() + 1];
        for (index, op) in ops.iter().enumerate().rev() {
            let (run, stop) = runs[index + 1];
            runs[index] = match op {
                Op::Run(span) => (run + *span, stop),
                op if stops(op) => (Span::ZERO, index as u32),
                _ => (run, stop),
            };
        }
        Ahead { script: Arc::clone(script), runs }
    }

    /// How many times the repeated part is done after the first time.
    fn repeats(&self) -> u64 {
        let script = &*self.script;
        if script.repeat_from < script.ops.len() { script.rounds - 1 } else { 0 }
    }
}

impl Compiled {
    fn new(model: &Model) -> Result<Compiled, ModelError> {
        if let Some(barrier) = model.sizes.barriers.iter().position(|&tasks| tasks == 0) {
            let why = "is for no task; at least 1 meets there".to_string();
            return Err(ModelError { place: format!("barrier {barrier}"), why });
        }
        for (number, (_, channel)) in model.signals.iter().enumerate() {
            check_index("channel", channel.0, model.sizes.channels as usize)
                .map_err(|why| ModelError { place: format!("signal {number}"), why })?;
        }
        // Ordered by address, but only used for lookups.
        let mut known = BTreeMap::new();
        let (mut scripts, mut script_of) = (Vec::new(), Vec::with_capacity(model.tasks.len()));
        for (number, task) in model.tasks.iter().enumerate() {
            let place = || match &task.new.name {
                Some(name) => format!("task {number} \"{name}\""),
                None => format!("task {number}"),
            };
            check_task(task).map_err(|why| ModelError { place: place(), why })?;
            let number = match known.get(&Arc::as_ptr(&task.script)) {
                Some(&number) => number,
                None => {
                    check_script(model, &task.script).map_err(|(op, why)| ModelError {
                        place: op.map_or(place(), |op| format!("{}, operation {op}", place())),
                        why,
                    })?;
                    let number = scripts.len() as u32;
                    known.insert(Arc::as_ptr(&task.script), number);
                    scripts.push(Ahead::new(&task.script));
                    number
                }
            };
            script_of.push(number);
        }
        let compiled = Compiled { scripts, script_of };
        compiled.check_spawning(&model.sizes)?;
        Ok(compiled)
    }

    /// Refuses tasks that spawn each other in a circle before any of them takes time: removes those
    /// that spawn none, then those that spawn none but these, and so on.
    fn check_spawning(&self, sizes: &Sizes) -> Result<(), ModelError> {
        let spawned = |task: usize| {
            let ops = &self.scripts[self.script_of[task] as usize].script.ops;
            let at_once = ops.iter().take_while(|op| !takes_time(op, sizes) && !stops(op));
            at_once.filter_map(|op| if let Op::Spawn(what) = op { Some(*what) } else { None })
        };
        let tasks = self.script_of.len();
        let mut spawners = vec![Vec::new(); tasks];
        for (task, what) in (0..tasks).flat_map(|task| spawned(task).map(move |what| (task, what)))
        {
            spawners[what as usize].push(task);
        }
        let mut left: Vec<usize> = (0..tasks).map(|task| spawned(task).count()).collect();
        let mut harmless: Vec<usize> = (0..tasks).filter(|&task| left[task] == 0).collect();
        while let Some(task) = harmless.pop() {
            for &spawner in &spawners[task] {
                left[spawner] -= 1;
                if left[spawner] == 0 {
                    harmless.push(spawner);
                }
            }
        }
        match left.iter().position(|&left| left > 0) {
            None => Ok(()),
            Some(task) => Err(ModelError {
                place: format!("task {task}"),
                why: "begins an endless chain of tasks that spawn each other in no time; let them \
                      run before they spawn"
                    .to_string(),
            }),
        }
    }
}

fn check_index(what: &str, number: u32, there: usize) -> Result<(), String> {
    if (number as usize) < there {
        return Ok(());
    }
    Err(format!("{what} {number} is not there; the model has {there}, numbered from 0"))
}

fn check_nice(nice: i8) -> Result<(), String> {
    if (-20..=19).contains(&nice) {
        return Ok(());
    }
    Err(format!("nice {nice} is not in -20 ..= 19"))
}

fn check_affinity(affinity: &anysched_core::CpuSet) -> Result<(), String> {
    if affinity.is_all() || (0..MAX_CPUS as u16).any(|cpu| affinity.contains(CpuId(cpu))) {
        return Ok(());
    }
    Err("the affinity has no CPU".to_string())
}

fn check_task(task: &ModelTask) -> Result<(), String> {
    if task.arrives == Some(Time::NEVER) {
        return Err(format!("arrives at {}, which stands for never; leave it out", Time::NEVER.0));
    }
    check_nice(task.new.nice)?;
    if task.new.intensity > 100 {
        return Err(format!("intensity {} is not in 0 ..= 100", task.new.intensity));
    }
    check_affinity(&task.new.affinity)
}

/// What is wrong with a script, and at which operation.
fn check_script(model: &Model, script: &Script) -> Result<(), (Option<usize>, String)> {
    let sizes = &model.sizes;
    for (index, op) in script.ops.iter().enumerate() {
        let checked = match op {
            Op::Wait(channel)
            | Op::Signal(channel)
            | Op::Write(channel)
            | Op::Notify(channel)
            | Op::Broadcast(channel) => check_index("channel", channel.0, sizes.channels as usize),
            Op::Lock(lock) | Op::Spin(lock) | Op::Unlock(lock) => {
                check_index("lock", lock.0, sizes.locks as usize)
            }
            Op::Meet(barrier) => check_index("barrier", barrier.0, sizes.barriers.len()),
            Op::Spawn(what) => check_index("task", *what, model.tasks.len()),
            Op::SetNice(nice) => check_nice(*nice),
            Op::SetAffinity(affinity) => check_affinity(affinity),
            _ => Ok(()),
        };
        checked.map_err(|why| (Some(index), why))?;
    }
    let Some(repeated) = script.ops.get(script.repeat_from..) else {
        let (from, ops) = (script.repeat_from, script.ops.len());
        return Err((None, format!("repeats from operation {from}, but has only {ops}")));
    };
    if repeated.is_empty() {
        return Ok(());
    }
    if script.rounds == 0 {
        return Err((None, "is repeated 0 times; at least 1".to_string()));
    }
    if script.rounds > ENOUGH && !repeated.iter().any(|op| takes_time(op, sizes)) {
        let why = "repeats without end from here on, but nothing there takes time; let it run, \
                   sleep or wait";
        return Err((Some(script.repeat_from), why.to_string()));
    }
    Ok(())
}

struct ModelLoad {
    of: Arc<Checked>,
    next_arrival: usize,
    next_signal: usize,
    next: Time,
    /// The task of the model that was created last.
    starting: u32,
    tasks: PerTask<Position>,
}

/// Where a task is in its script.
#[derive(Clone, Copy, Default)]
struct Position {
    script: u32,
    /// The operation asked for last.
    current: u32,
    /// The one after it.
    next: u32,
    /// How many more times the repeated part will be done. Forever is 2^64 − 2 times, which take
    /// 584 years even at 1 ns each.
    repeats: u64,
    /// The last release.
    release: Time,
    /// When `current` was asked for.
    now: Time,
}

/// The most past releases that a look-ahead goes through.
const MOST_RELEASES: usize = 10_000;

impl ModelLoad {
    fn find_next(&mut self) {
        self.next = self.next_arrival().min(self.next_signal());
    }

    fn next_arrival(&self) -> Time {
        let task = self.of.arrivals.get(self.next_arrival);
        task.and_then(|&task| self.of.model.tasks[task as usize].arrives).unwrap_or(Time::NEVER)
    }

    fn next_signal(&self) -> Time {
        self.of.model.signals.get(self.next_signal).map_or(Time::NEVER, |&(at, _)| at)
    }
}

impl Position {
    /// Moves on to the next operation. None: the script is over.
    #[inline]
    fn advance<'a>(&mut self, script: &'a Script) -> Option<&'a Op> {
        if self.next as usize == script.ops.len() {
            if self.repeats == 0 {
                return None;
            }
            self.repeats -= 1;
            self.next = script.repeat_from as u32;
        }
        self.current = self.next;
        self.next += 1;
        script.ops.get(self.current as usize)
    }

    /// Makes the next release, `period` after the last one.
    fn release(&mut self, script: &Script, period: Time, reached: Time) {
        self.release += Span(period.0);
        if script.slips && self.release < reached {
            self.release = reached;
        }
    }
}

impl Load for ModelLoad {
    fn sizes(&self) -> Sizes {
        self.of.model.sizes.clone()
    }

    #[inline]
    fn peek(&self) -> Time {
        self.next
    }

    /// Tasks arrive first among things that come at the same time.
    fn outside(&mut self) -> Outside {
        let outside = if self.next_arrival() <= self.next_signal() {
            self.starting = self.of.arrivals[self.next_arrival];
            self.next_arrival += 1;
            Outside::Arrival(self.of.model.tasks[self.starting as usize].new.clone())
        } else {
            self.next_signal += 1;
            Outside::Signal(self.of.model.signals[self.next_signal - 1].1)
        };
        self.find_next();
        outside
    }

    fn spawn(&mut self, what: u32) -> NewTask {
        self.starting = what;
        self.of.model.tasks[what as usize].new.clone()
    }

    fn start(&mut self, task: TaskId, now: Time) {
        let script = self.of.compiled.script_of[self.starting as usize];
        let repeats = self.of.compiled.scripts[script as usize].repeats();
        let position = Position { script, repeats, release: now, now, ..Position::default() };
        self.tasks.set(task, position);
    }

    #[inline]
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        let position = &mut self.tasks[task];
        let script = &self.of.compiled.scripts[position.script as usize].script;
        position.now = now;
        match position.advance(script) {
            None => Op::Exit,
            Some(&Op::Release { at: period, deadline }) => {
                position.release(script, period, now);
                let at = position.release;
                let relative = |deadline: Time| deadline.since(period);
                Op::Release { at, deadline: deadline.map(|deadline| at + relative(deadline)) }
            }
            Some(op) => op.clone(),
        }
    }

    /// The time until it may block, if it goes through every release that is found past.
    fn burst(&self, task: TaskId, run: Span) -> Span {
        let mut at = self.tasks[task];
        let Ahead { script, runs } = &self.of.compiled.scripts[at.script as usize];
        let mut total = run;
        match script.ops.get(at.current as usize) {
            Some(Op::Release { .. }) if at.release <= at.now => {}
            Some(op) if stops(op) => return total,
            _ => {}
        }
        for _ in 0..MOST_RELEASES {
            let (run, stop) = runs[at.next as usize];
            total += run;
            at.next = stop;
            if stop as usize == script.ops.len() && at.repeats > 0 {
                let (round, stop) = runs[script.repeat_from];
                if stop as usize == script.ops.len() {
                    total += Span(round.0.saturating_mul(at.repeats));
                    break;
                }
                total += round;
                at.repeats -= 1;
                at.next = stop;
            }
            let Some(&Op::Release { at: period, .. }) = script.ops.get(at.next as usize) else {
                break;
            };
            let reached = at.now + total;
            at.release(script, period, reached);
            if at.release > reached {
                break;
            }
            at.next += 1;
        }
        total.min(FOR_EVER)
    }
}

#[cfg(test)]
mod tests;
