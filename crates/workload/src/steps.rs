//! Loads as [scripts](anysched_wire::script), for hosts that cannot ask a [`Load`] while its tasks
//! run.
//!
//! Only what tasks do by themselves can be listed, and none of it may depend on when it is done.

use crate::{Load, Op, Outside};
use anysched_core::{TaskId, Time};
use anysched_wire::script::{Script, Step, Task};
use std::fmt;

/// The most tasks, and the most steps of a task, that are listed.
const MOST: usize = 1 << 20;

/// Why a load cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepsError {
    /// A task interacts with others, or changes itself.
    Interacts {
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
            StepsError::Interacts { op } => {
                write!(
                    f,
                    "tasks can only compute, sleep, wait for a time and yield there, not {op}"
                )
            }
            StepsError::Signals => f.write_str("signals from devices cannot be made there"),
            StepsError::TooMany => write!(
                f,
                "there are more than {MOST} tasks or steps of a task; give the load an end"
            ),
        }
    }
}

impl std::error::Error for StepsError {}

/// What `load` does, as a script.
///
/// Errors: it does something that cannot be listed, or too much.
pub fn script(mut load: Box<dyn Load>) -> Result<Script, StepsError> {
    let mut script = Script::default();
    for serial in 0.. {
        let arrival = load.peek();
        if arrival == Time::NEVER {
            return Ok(script);
        }
        if serial == MOST {
            break;
        }
        let Outside::Arrival(new) = load.outside() else { return Err(StepsError::Signals) };
        let task = TaskId(serial as u32);
        load.start(task, arrival);
        let steps = steps_of(&mut *load, task, arrival)?;
        let name = format!("{}-{serial}", new.name.as_deref().unwrap_or("task"));
        script.tasks.push(Task { arrival: arrival.0, name, steps: folded(&steps) });
        load.exited(task, arrival);
    }
    Err(StepsError::TooMany)
}

/// What `task` does from its arrival to its end, as if it had a CPU of its own.
fn steps_of(load: &mut dyn Load, task: TaskId, arrival: Time) -> Result<Vec<Step>, StepsError> {
    let mut now = arrival;
    let mut steps = Vec::new();
    while steps.len() < MOST {
        match load.step(task, now) {
            Op::Run(span) => {
                now += span;
                steps.push(Step::Compute(span.0));
            }
            Op::Sleep(span) => {
                now += span;
                steps.push(Step::Sleep(span.0));
            }
            Op::Release { at, .. } => {
                now = now.max(at);
                steps.push(Step::Until(at.0));
            }
            Op::Yield => steps.push(Step::Yield),
            Op::Exit => return Ok(steps),
            Op::Measure(_) => {}
            other => return Err(StepsError::Interacts { op: format!("{other:?}") }),
        }
    }
    Err(StepsError::TooMany)
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
        let (period, times) = if times(1) > 1 { (1, times(1)) } else { (2, times(2)) };
        if times == 1 {
            folded.push(first.clone());
            rest = &rest[1..];
            continue;
        }
        folded.push(Step::Repeat(times as u64, rest[..period].to_vec()));
        rest = &rest[period * times..];
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, Model, ModelTask};
    use crate::{Channel, NewTask, Sizes};
    use anysched_core::Span;
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
        let text = |ops: &[Op], rounds| script(model(ops, rounds)).unwrap().write().unwrap();
        assert_eq!(
            text(&[run.clone(), sleep], 1),
            "anysched-script 1\n0 a-0 c5 s3\n7 b\\sc-1 c5 s3\n"
        );
        let listed = text(&[run.clone(), Op::Yield], 1000);
        assert_eq!(listed.lines().nth(1), Some("0 a-0 r1000 c5 y e"));
        let listed = text(&[run, Op::Yield, Op::Yield], 2);
        assert_eq!(listed.lines().nth(1), Some("0 a-0 c5 r2 y e c5 r2 y e"));
    }

    #[test]
    fn what_cannot_be_listed_is_refused() {
        let waits = script(model(&[Op::Wait(Channel(0))], 1));
        assert!(matches!(waits, Err(StepsError::Interacts { .. })), "{waits:?}");
        let endless = script(model(&[Op::Run(Span(1))], u64::MAX));
        assert_eq!(endless, Err(StepsError::TooMany));
    }
}
