//! Wakers on their way out of the kernel.
//!
//! A recording shows a wake-up in the middle of the waker's system call. What the waker then does
//! until it blocks, ends or is in its program again is work of the kernel, in which kernels without
//! full preemption do not switch: a child that wakes its parent in its exit path is gone before
//! the parent runs. A policy that replays it would let the parent preempt the child.

use super::replay::joined;
use crate::Op;
use crate::model::{Model, Script};
use anysched_core::Span;
use std::sync::Arc;

/// Moves each wake-up in `model` behind what its task runs next, if that takes `most` at most.
pub fn let_stay(model: &mut Model, most: Span) {
    if most == Span::ZERO {
        return;
    }
    for task in &mut model.tasks {
        if task.script.ops.iter().any(wakes) {
            let_one_stay(Arc::make_mut(&mut task.script), most);
        }
    }
}

fn wakes(op: &Op) -> bool {
    matches!(op, Op::Signal(_) | Op::Write(_))
}

fn let_one_stay(script: &mut Script, most: Span) {
    let mut ops = std::mem::take(&mut script.ops);
    let mut at = 0;
    while at < ops.len() {
        // Wake-ups next to each other go together, so that they keep their order.
        let woken = ops[at..].iter().take_while(|op| wakes(op)).count();
        let runs = ops[at + woken..].iter().map_while(|op| match op {
            Op::Run(span) => Some(span.0),
            _ => None,
        });
        let (count, time) = runs.fold((0, 0u64), |(n, sum), run| (n + 1, sum.saturating_add(run)));
        if time <= most.0 {
            ops[at..at + woken + count].rotate_left(woken);
        }
        at += (woken + count).max(1);
    }
    script.ops = joined(ops);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Channel;
    use crate::model::ModelTask;

    fn moved(ops: &[Op], most: u64) -> Vec<Op> {
        let task =
            ModelTask { script: Arc::new(Script::once(ops.to_vec())), ..ModelTask::default() };
        let mut model = Model { tasks: vec![task], ..Model::default() };
        let_stay(&mut model, Span::from_us(most));
        model.tasks[0].script.ops.clone()
    }

    #[test]
    fn what_follows_a_wake_up_at_once_is_before_it() {
        let run = |us| Op::Run(Span::from_us(us));
        let (one, two) = (Op::Signal(Channel(1)), Op::Write(Channel(2)));
        let wait = Op::Wait(Channel(0));
        let ops = [run(9), one.clone(), run(2), wait.clone(), one.clone(), run(4), wait.clone()];
        let after = [run(11), one.clone(), wait.clone(), one.clone(), run(4), wait.clone()];
        assert_eq!(moved(&ops, 3), after);
        assert_eq!(moved(&ops, 0), ops);
        // Pieces of a run count together, at the end of a task as well; the order is kept.
        let ops = [one.clone(), run(1), two.clone(), run(1), run(2)];
        assert_eq!(moved(&ops, 3), [run(1), one.clone(), run(3), two.clone()]);
        assert_eq!(moved(&ops, 2), [run(1), one, two, run(3)]);
    }
}
