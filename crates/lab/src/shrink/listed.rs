//! A load as a model: every task with the list of what it does, so that tasks and steps can be left
//! out one by one.
//!
//! Tasks are listed as if each had a CPU of its own and nothing to wait for. Where what they do
//! depends on more than that, the model is another load; whether it still fails is tried.

use anysched_core::{TaskId, Time};
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Load, NewTask, Op, Outside};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most tasks that are listed, and the most steps of all of them.
const MOST_TASKS: usize = 20_000;
const MOST_STEPS: usize = 400_000;

/// What `load` does up to `until`; `None`: it cannot be listed, or there is too much of it.
pub(crate) fn listed(mut load: Box<dyn Load>, until: Time) -> Option<Model> {
    if !load.inboxes().is_empty() {
        return None;
    }
    let mut model = Model { sizes: load.sizes(), ..Model::default() };
    let mut steps = 0;
    // Tasks that have begun and are not listed: their positions in the model, and when they began.
    let mut begun = VecDeque::new();
    loop {
        let at = load.peek();
        if at == Time::NEVER || at > until {
            return Some(model);
        }
        match load.outside() {
            Outside::Arrival(new) => {
                let task = create(&mut model, new, Some(at));
                load.start(TaskId(task as u32), at);
                begun.push_back((task, at));
            }
            Outside::Signal(channel) => model.signals.push((at, channel)),
            Outside::Message { .. } => return None,
        }
        while let Some((task, at)) = begun.pop_front() {
            let id = TaskId(task as u32);
            let mut ops = Vec::new();
            let mut clock = Clock { released: at, now: at };
            while clock.now <= until {
                steps += 1;
                if steps > MOST_STEPS || model.tasks.len() > MOST_TASKS {
                    return None;
                }
                let op = load.step(id, clock.now);
                match clock.listed(op, load.rests(id)) {
                    Listed::Op(Op::Spawn(what)) => {
                        let spawned = create(&mut model, load.spawn(what), None);
                        load.start(TaskId(spawned as u32), clock.now);
                        begun.push_back((spawned, clock.now));
                        ops.push(Op::Spawn(spawned as u32));
                    }
                    // A hog looks at the clock now and then, which is no step of its own.
                    Listed::Op(Op::Run(more)) if matches!(ops.last(), Some(Op::Run(_))) => {
                        if let Some(Op::Run(span)) = ops.last_mut() {
                            *span += more;
                        }
                    }
                    Listed::Op(op) => ops.push(op),
                    Listed::Nothing => {}
                    Listed::End => break,
                    Listed::Unlisted => return None,
                }
            }
            load.exited(id, clock.now);
            model.tasks[task].script = Arc::new(Script::once(ops));
        }
    }
}

fn create(model: &mut Model, mut new: NewTask, arrives: Option<Time>) -> usize {
    new.deadline = new.deadline.filter(|&deadline| deadline != Time::NEVER);
    model.tasks.push(ModelTask { new, arrives, script: Arc::default() });
    model.tasks.len() - 1
}

/// How far a task is.
struct Clock {
    /// When it was last released.
    released: Time,
    now: Time,
}

enum Listed {
    Op(Op),
    /// No part of a model.
    Nothing,
    End,
    Unlisted,
}

impl Clock {
    fn listed(&mut self, op: Op, rests: bool) -> Listed {
        match op {
            Op::Run(span) => self.now += span,
            Op::Sleep(span) => self.now += span,
            // So long after what it did before, whenever that was.
            Op::Release { at, .. } if rests => {
                let span = at.since(self.now);
                self.now = self.now.max(at);
                return Listed::Op(Op::Sleep(span));
            }
            Op::Release { at, deadline } => {
                let since = |time: Time| Time::ZERO + time.since(self.released);
                let op = Op::Release { at: since(at), deadline: deadline.map(since) };
                self.released = at;
                self.now = self.now.max(at);
                return Listed::Op(op);
            }
            Op::Exit => return Listed::End,
            Op::Measure(_) => return Listed::Nothing,
            Op::Send(_) | Op::Reply(_) => return Listed::Unlisted,
            _ => {}
        }
        Listed::Op(op)
    }
}
