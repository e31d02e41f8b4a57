//! Loads as lists of steps, for hosts that cannot ask a [`Load`] while its tasks run.
//!
//! A list is text that a kernel reads with a few lines of code, a task each, in the order of their
//! arrival: the arrival in nanoseconds from the start, the task's name, and what it does, a word
//! each:
//!
//! | word | means |
//! |---|---|
//! | `c`*n* | computes for *n* ns |
//! | `s`*n* | sleeps for *n* ns |
//! | `u`*n* | sleeps until *n* ns from the start, if that is to come |
//! | `y` | yields |
//! | `r`*n* … `e` | does what is between *n* times |
//!
//! Only what tasks do by themselves can be listed; nothing of it may depend on when it is done.

use crate::{Load, Op, Outside};
use anysched_core::{TaskId, Time};
use std::fmt::{self, Write};

/// The most tasks, and the most steps of a task, that are listed.
const MOST: usize = 1 << 20;

/// Why a load cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepsError {
    /// A task does something with others, or changes itself.
    Interacts {
        /// The operation.
        op: String,
    },
    /// Something other than tasks comes from outside.
    Signals,
    /// It has too many tasks or steps, perhaps without end.
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

/// A step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Compute(u64),
    Sleep(u64),
    Until(u64),
    Yield,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Compute(span) => write!(f, "c{span}"),
            Step::Sleep(span) => write!(f, "s{span}"),
            Step::Until(time) => write!(f, "u{time}"),
            Step::Yield => f.write_str("y"),
        }
    }
}

/// The list of a load.
///
/// Errors: it does what cannot be listed, or too much.
pub fn list(mut load: Box<dyn Load>) -> Result<String, StepsError> {
    let mut text = String::new();
    for serial in 0.. {
        let arrival = load.peek();
        if arrival == Time::NEVER {
            return Ok(text);
        }
        if serial == MOST {
            break;
        }
        let Outside::Arrival(new) = load.outside() else { return Err(StepsError::Signals) };
        let task = TaskId(serial as u32);
        load.start(task, arrival);
        let steps = steps_of(&mut *load, task, arrival)?;
        let name = new.name.as_deref().unwrap_or("task").replace(char::is_whitespace, "_");
        let _ = write!(text, "{} {name}-{serial}", arrival.0);
        write_steps(&mut text, &steps);
        text.push('\n');
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

/// Writes `steps`, those that are done again and again only once.
fn write_steps(text: &mut String, steps: &[Step]) {
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let times = |period: usize| {
            let (block, after) = rest.split_at_checked(period).unwrap_or((rest, &[]));
            1 + after.chunks_exact(period).take_while(|next| *next == block).count()
        };
        let (period, times) = if times(1) > 1 { (1, times(1)) } else { (2, times(2)) };
        if times == 1 {
            let _ = write!(text, " {first}");
            rest = &rest[1..];
            continue;
        }
        let _ = write!(text, " r{times}");
        for step in &rest[..period] {
            let _ = write!(text, " {step}");
        }
        text.push_str(" e");
        rest = &rest[period * times..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, ModelTask, Script};
    use crate::{Channel, NewTask, Sizes};
    use anysched_core::Span;
    use std::sync::Arc;

    fn model(ops: &[Op], rounds: u64) -> Box<dyn Load> {
        let script = Arc::new(Script { ops: ops.to_vec(), rounds, ..Script::default() });
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
        assert_eq!(list(model(&[run.clone(), sleep], 1)).unwrap(), "0 a-0 c5 s3\n7 b_c-1 c5 s3\n");
        let listed = list(model(&[run.clone(), Op::Yield], 1000)).unwrap();
        assert_eq!(listed.lines().next(), Some("0 a-0 r1000 c5 y e"));
        let listed = list(model(&[run, Op::Yield, Op::Yield], 2)).unwrap();
        assert_eq!(listed.lines().next(), Some("0 a-0 c5 r2 y e c5 r2 y e"));
    }

    #[test]
    fn what_cannot_be_listed_is_refused() {
        let waits = list(model(&[Op::Wait(Channel(0))], 1));
        assert!(matches!(waits, Err(StepsError::Interacts { .. })), "{waits:?}");
        let endless = list(model(&[Op::Run(Span(1))], u64::MAX));
        assert_eq!(endless, Err(StepsError::TooMany));
    }
}
