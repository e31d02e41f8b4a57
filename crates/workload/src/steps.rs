//! Loads as [scripts](anysched_wire::script), for hosts that cannot ask a [`Load`] while its tasks
//! run.
//!
//! None of what can be listed depends on when it is done, or on what other tasks have done.

use crate::{Load, NewTask, Op, Outside, Sizes};
use anysched_core::{CpuId, CpuSet, Span, TaskId, Time};
use anysched_wire::script::{Script, Step, Task};
use std::fmt;

/// The most tasks, and the most steps of a task, that are listed.
const MOST: usize = 1 << 20;

/// The most steps that are looked at for being repeated.
const LONGEST_ROUND: usize = 16;

/// Why a load cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepsError {
    /// A task does what no list says.
    Unlisted {
        /// The task.
        task: String,
        /// The operation.
        op: String,
    },
    /// Something other than tasks comes from outside.
    Signals,
    /// It has too many tasks or steps, perhaps endlessly many.
    TooMany,
}

impl fmt::Display for StepsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepsError::Unlisted { task, op } => write!(
                f,
                "task \"{task}\": {op} cannot be done there; leave it out, or take another host"
            ),
            StepsError::Signals => f.write_str("signals from devices cannot be made there"),
            StepsError::TooMany => write!(
                f,
                "there are more than {MOST} tasks or steps of a task; give the load an end"
            ),
        }
    }
}

impl std::error::Error for StepsError {}

/// What `load` does on a machine of `cpus` CPUs, as a script. Tasks that are bound to none of them
/// may run on all, as elsewhere.
///
/// Errors: it does something that cannot be listed, or too much.
pub fn script(load: Box<dyn Load>, cpus: usize) -> Result<Script, StepsError> {
    listed(load, cpus, None)
}

/// The same of a run that ends at `until`, on a host that knows deadlines: what no task can come to
/// by then is left out, so that endless loads can be listed, too.
///
/// Errors: as [`script`].
pub fn script_until(load: Box<dyn Load>, cpus: usize, until: Time) -> Result<Script, StepsError> {
    listed(load, cpus, Some(until))
}

/// `until`: the end, on a host that knows deadlines.
fn listed(mut load: Box<dyn Load>, cpus: usize, until: Option<Time>) -> Result<Script, StepsError> {
    let mut script = Script::default();
    let machine = Machine { sizes: load.sizes(), cpus, until };
    for serial in 0.. {
        let arrival = load.peek();
        if arrival == Time::NEVER || arrival > machine.end() {
            return Ok(script);
        }
        if serial == MOST {
            break;
        }
        let Outside::Arrival(new) = load.outside() else { return Err(StepsError::Signals) };
        let task = TaskId(serial as u32);
        load.start(task, arrival);
        let name = format!("{}-{serial}", new.name.as_deref().unwrap_or("task"));
        let steps = steps_of(&mut *load, task, arrival, &machine);
        let steps = steps.map_err(|unlisted| unlisted.by(&name))?;
        let steps = [machine.created(&new), folded(&steps)].concat();
        script.tasks.push(Task { arrival: arrival.0, name, steps });
        load.exited(task, arrival);
    }
    Err(StepsError::TooMany)
}

/// What steps are about besides tasks.
struct Machine {
    sizes: Sizes,
    cpus: usize,
    /// When the run ends, on hosts that know deadlines.
    until: Option<Time>,
}

/// Why steps cannot be listed.
enum Unlisted {
    Op(Op),
    TooMany,
}

impl Unlisted {
    /// Those of the task of this name.
    fn by(self, task: &str) -> StepsError {
        match self {
            Unlisted::Op(op) => StepsError::Unlisted { task: task.into(), op: format!("{op:?}") },
            Unlisted::TooMany => StepsError::TooMany,
        }
    }
}

impl Machine {
    fn end(&self) -> Time {
        self.until.unwrap_or(Time::NEVER)
    }

    /// How a task is created, as its first steps.
    fn created(&self, new: &NewTask) -> Vec<Step> {
        let nice = (new.nice != 0).then_some(Step::Nice(new.nice));
        let deadline = new.relative_deadline.filter(|_| self.until.is_some());
        let deadline = deadline.map(|deadline| Step::Deadline(deadline.0));
        let cpus = Some(self.bound(&new.affinity)).filter(|step| *step != Step::Cpus(Vec::new()));
        nice.into_iter().chain(deadline).chain(cpus).collect()
    }

    fn bound(&self, affinity: &CpuSet) -> Step {
        let contained = |cpu: &u32| affinity.contains(CpuId(*cpu as u16));
        let cpus: Vec<u32> = (0..self.cpus as u32).filter(contained).collect();
        Step::Cpus(if cpus.len() == self.cpus { Vec::new() } else { cpus })
    }

    /// A step that takes no time of its own; none, for what is not performed.
    fn step(&self, op: Op) -> Result<Option<Step>, Unlisted> {
        Ok(Some(match op {
            Op::Yield => Step::Yield,
            Op::Wait(channel) => Step::Wait(channel.0),
            Op::Signal(channel) | Op::Write(channel) => Step::Post(channel.0),
            Op::Notify(channel) => Step::Notify(channel.0),
            Op::Broadcast(channel) => Step::Broadcast(channel.0),
            Op::Lock(lock) => Step::Lock(lock.0),
            Op::Spin(lock) => Step::Spin(lock.0),
            Op::Unlock(lock) => Step::Unlock(lock.0),
            Op::Meet(barrier) => {
                let tasks = self.sizes.barriers.get(barrier.0 as usize).copied();
                Step::Meet { barrier: barrier.0, tasks: tasks.unwrap_or(1) }
            }
            Op::SetNice(nice) => Step::Nice(nice),
            Op::SetAffinity(affinity) => self.bound(&affinity),
            Op::Measure(_) => return Ok(None),
            other => return Err(Unlisted::Op(other)),
        }))
    }
}

/// What `task` does from its arrival to its end, as if it had a CPU of its own and nothing to wait
/// for.
fn steps_of(
    load: &mut dyn Load,
    task: TaskId,
    arrival: Time,
    machine: &Machine,
) -> Result<Vec<Step>, Unlisted> {
    let mut now = arrival;
    let mut steps = Vec::new();
    while steps.len() < MOST {
        if now > machine.end() {
            return Ok(steps);
        }
        // More than it has until the end.
        let most = Span(machine.end().since(now).0.saturating_add(1));
        match load.step(task, now) {
            Op::Run(span) => {
                let span = span.min(most);
                now += span;
                steps.push(Step::Compute(span.0));
            }
            Op::Sleep(span) => {
                let span = span.min(most);
                now += span;
                steps.push(Step::Sleep(span.0));
            }
            // Alone, a task comes to it earlier than among others.
            Op::Release { at, .. } if load.rests(task) => {
                steps.push(Step::Sleep(at.since(now).0));
                now = now.max(at);
            }
            Op::Release { at, .. } => {
                now = now.max(at);
                steps.push(Step::Until(at.0));
            }
            Op::Exit => return Ok(steps),
            other => steps.extend(machine.step(other)?),
        }
    }
    Err(Unlisted::TooMany)
}

/// `steps`, with repeated ones only once.
fn folded(steps: &[Step]) -> Vec<Step> {
    let mut folded = Vec::new();
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let times = |period: usize| {
            let (block, after) = rest.split_at_checked(period).unwrap_or((rest, &[]));
            1 + after.chunks_exact(period).take_while(|next| *next == block).count()
        };
        let found = (1..=LONGEST_ROUND).map(|period| (period, times(period)));
        let Some((period, times)) = found.into_iter().find(|(_, times)| *times > 1) else {
            folded.push(first.clone());
            rest = &rest[1..];
            continue;
        };
        folded.push(Step::Repeat(times as u64, rest[..period].to_vec()));
        rest = &rest[period * times..];
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, Model, ModelTask};
    use crate::{Barrier, Channel, Lock};
    use std::sync::Arc;

    fn model(ops: &[Op], rounds: u64) -> Box<dyn Load> {
        let ops = ops.to_vec();
        let script = Arc::new(model::Script { ops, rounds, ..model::Script::default() });
        let task = |name: &str, arrives| ModelTask {
            new: NewTask { name: Some(name.into()), ..NewTask::default() },
            arrives: Some(Time(arrives)),
            script: script.clone(),
        };
        let tasks = vec![task("a", 0), task("b c", 7)];
        let sizes = Sizes { channels: 1, ..Sizes::default() };
        Box::new(Model { tasks, sizes, ..Model::default() }.into_load().unwrap())
    }

    #[test]
    fn what_tasks_do_is_listed_and_repetitions_are_short() {
        let (run, sleep) = (Op::Run(Span(5)), Op::Sleep(Span(3)));
        let text = |ops: &[Op], rounds| script(model(ops, rounds), 1).unwrap().write().unwrap();
        assert_eq!(
            text(&[run.clone(), sleep], 1),
            "anysched-script 1\n0 a-0 c5 s3\n7 b\\sc-1 c5 s3\n"
        );
        let listed = text(&[run.clone(), Op::Yield], 1000);
        assert_eq!(listed.lines().nth(1), Some("0 a-0 r1000 c5 y e"));
        let listed = text(&[run, Op::Yield, Op::Yield], 2);
        assert_eq!(listed.lines().nth(1), Some("0 a-0 r2 c5 y y e"));
    }

    #[test]
    fn tasks_among_others_are_listed() {
        let cpus = |list| Op::SetAffinity(CpuSet::parse(list).unwrap());
        let ops = [
            Op::SetNice(-3),
            cpus("1-2"),
            cpus("0-3"),
            Op::Wait(Channel(1)),
            Op::Signal(Channel(0)),
            Op::Write(Channel(0)),
            Op::Notify(Channel(0)),
            Op::Broadcast(Channel(0)),
            Op::Lock(Lock(0)),
            Op::Spin(Lock(1)),
            Op::Unlock(Lock(0)),
            Op::Meet(Barrier(0)),
            cpus("7"),
        ];
        let sizes = Sizes { channels: 2, locks: 2, barriers: vec![2] };
        let ops = Arc::new(model::Script::once(ops.to_vec()));
        let new = NewTask { nice: 5, affinity: CpuSet::parse("3").unwrap(), ..NewTask::default() };
        let task = ModelTask { new, arrives: Some(Time(0)), script: ops };
        let load = Model { tasks: vec![task], sizes, ..Model::default() }.into_load().unwrap();
        let listed = script(Box::new(load), 4).unwrap().write().unwrap();
        let expected = "0 task-0 i5 a3 i-3 a1,2 a w1 r2 p0 e n0 b0 l0 x1 o0 m0:2 a";
        assert_eq!(listed.lines().nth(1), Some(expected));
    }

    #[test]
    fn an_endless_load_is_listed_up_to_the_end_of_a_run() {
        let ops = [Op::Run(Span(5)), Op::Sleep(Span(4))];
        let text = |until, rounds| {
            let listed = script_until(model(&ops, rounds), 1, Time(until));
            listed.unwrap().write().unwrap()
        };
        // The second task arrives at 7. At 10 the first is in its second round, and goes on by a
        // nanosecond more than it can.
        assert_eq!(text(10, u64::MAX), "anysched-script 1\n0 a-0 c5 s4 c2\n7 b\\sc-1 c4\n");
        assert_eq!(text(6, u64::MAX), "anysched-script 1\n0 a-0 c5 s2\n");
        assert_eq!(text(1000, 1), script(model(&ops, 1), 1).unwrap().write().unwrap());
    }

    #[test]
    fn deadlines_are_listed_where_they_are_known() {
        let script_of = Arc::new(model::Script::once(vec![Op::Run(Span(5))]));
        let new = NewTask { relative_deadline: Some(Span(9)), ..NewTask::default() };
        let task = ModelTask { new, arrives: Some(Time(0)), script: script_of };
        let model = Model { tasks: vec![task], ..Model::default() };
        let load = || Box::new(model.clone().into_load().unwrap());
        let line = |script: Script| script.write().unwrap().lines().nth(1).map(String::from);
        let known = script_until(load(), 1, Time::NEVER).unwrap();
        assert_eq!(line(known).as_deref(), Some("0 task-0 d9 c5"));
        assert_eq!(line(script(load(), 1).unwrap()).as_deref(), Some("0 task-0 c5"));
    }

    #[test]
    fn what_cannot_be_listed_is_refused() {
        let spawns =
            script(model(&[Op::Run(Span(1)), Op::Spawn(1)], 1), 1).unwrap_err().to_string();
        assert_eq!(
            spawns,
            "task \"a-0\": Spawn(1) cannot be done there; leave it out, or take another host"
        );
        let endless = script(model(&[Op::Run(Span(1))], u64::MAX), 1);
        assert_eq!(endless, Err(StepsError::TooMany));
    }
}
