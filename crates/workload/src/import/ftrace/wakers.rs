//! Wakers on their way out of the kernel.
//!
//! A recording shows a wake-up in the middle of the waker's system call. What the waker then does
//! until it blocks, ends or is in its program again is work of the kernel, in which kernels without
//! full preemption do not switch: a child that wakes its parent in its exit path is gone before
//! the parent runs. A policy that replays it would let the parent preempt the child.

use super::Replay;
use super::replay::joined;
use crate::Op;
use crate::model::Script;
use anysched_core::Span;
use std::sync::Arc;

/// Moves each wake-up in the model behind what its task runs next, if that takes `most` at most. A
/// task that was recorded as preempted had left the kernel by then: its wake-ups stay before.
pub fn let_stay(replay: &mut Replay, most: Span) {
    if most == Span::ZERO {
        return;
    }
    for (task, preempted) in replay.model.tasks.iter_mut().zip(&replay.preempted) {
        if task.script.ops.iter().any(wakes) {
            let_one_stay(Arc::make_mut(&mut task.script), preempted, most);
        }
    }
}

fn wakes(op: &Op) -> bool {
    matches!(op, Op::Signal(_) | Op::Write(_))
}

/// The time of the runs that `ops` begin with, and how many these are.
fn runs(ops: &[Op]) -> (Span, usize) {
    let runs = ops.iter().map_while(|op| if let Op::Run(span) = op { Some(*span) } else { None });
    runs.fold((Span::ZERO, 0), |(sum, count), run| (Span(sum.0.saturating_add(run.0)), count + 1))
}

fn let_one_stay(script: &mut Script, preempted: &[Span], most: Span) {
    let ops = std::mem::take(&mut script.ops);
    let mut moved = Vec::with_capacity(ops.len());
    let (mut at, mut used) = (0, Span::ZERO);
    while at < ops.len() {
        // Wake-ups next to each other go together, so that they keep their order.
        let woken = ops[at..].iter().take_while(|op| wakes(op)).count();
        let (time, count) = runs(&ops[at + woken..]);
        let until = preempted.get(preempted.partition_point(|&left| left < used));
        let stays = until.map_or(time, |&until| time.min(until - used));
        let stays = if stays <= most { stays } else { Span::ZERO };
        moved.push(Op::Run(stays));
        moved.extend_from_slice(&ops[at..at + woken]);
        moved.push(Op::Run(time - stays));
        at += woken + count;
        used += time;
        if woken + count == 0 {
            moved.push(ops[at].clone());
            at += 1;
        }
    }
    script.ops = joined(moved);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Channel;
    use crate::model::{Model, ModelTask};

    fn moved(ops: &[Op], most: u64) -> Vec<Op> {
        moved_beside(ops, &[], most)
    }

    fn moved_beside(ops: &[Op], preempted: &[u64], most: u64) -> Vec<Op> {
        let task =
            ModelTask { script: Arc::new(Script::once(ops.to_vec())), ..ModelTask::default() };
        let model = Model { tasks: vec![task], ..Model::default() };
        let preempted = vec![preempted.iter().map(|&us| Span::from_us(us)).collect()];
        let mut replay = Replay { model, preempted, ..Replay::default() };
        let_stay(&mut replay, Span::from_us(most));
        replay.model.tasks[0].script.ops.clone()
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

    #[test]
    fn what_was_preempted_had_left_the_kernel() {
        let run = |us| Op::Run(Span::from_us(us));
        let (one, two, wait) =
            (Op::Signal(Channel(1)), Op::Signal(Channel(2)), Op::Wait(Channel(0)));
        let ops = [run(9), one.clone(), run(2), two.clone(), run(6), wait.clone()];
        // Preempted 1 us after each wake-up: the rest of the run comes behind it.
        let after = [run(10), one.clone(), run(2), two.clone(), run(5), wait.clone()];
        assert_eq!(moved_beside(&ops, &[10, 12], 3), after);
        // At the wake-up itself, and too late to matter.
        let after = [run(9), one.clone(), run(2), two.clone(), run(6), wait.clone()];
        assert_eq!(moved_beside(&ops, &[9, 16], 3), after);
    }
}
