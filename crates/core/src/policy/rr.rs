//! Round robin: tasks take turns of one quantum each.
//!
//! Source: textbook; ArceOS `axsched` 0.3.1, `round_robin.rs`.
//! Order key: arrival number. An expired or yielding task goes to the tail with a new quantum; a
//! preempted one goes back to the head with the rest of its quantum. A task that blocks keeps
//! what is left and gets no more when it wakes, as in ArceOS.
//! With `tick`, the quantum is counted in ticks of the host as ArceOS does it: a task is taken
//! off at the tick that finds at most one tick left, however little of that tick it ran.
//! Cost: O(1).

use alloc::vec::Vec;

use crate::ids::{CpuId, TaskId};
use crate::params::{ParamError, TaskParams};
use crate::queue::{Links, List};
use crate::registry::Policy;
use crate::smp::{At, Entry, Removal, RunQueue, SmpParams, Why};
use crate::time::Span;
use crate::{Machine, Off, params};

params! {
    /// Parameters of `rr`.
    pub struct RoundRobinParams {
        /// Time a task runs before the next one has its turn.
        quantum: Span = Span::from_ms(50),
        /// Tick in which the quantum is counted, as ArceOS does (10ms there); 0 ends it exactly.
        tick: Span = Span::ZERO,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct RoundRobin {
    quantum: Span,
    tick: Span,
    links: Links,
    /// Per task, what is left of its quantum.
    left: Vec<Span>,
    queues: Vec<List>,
}

impl Policy for RoundRobin {
    type Params = RoundRobinParams;
    const SOURCE: &'static str = "textbook; ArceOS axsched 0.3.1 round_robin.rs";

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        if params.quantum == Span::ZERO {
            return Err(ParamError::Invalid { name: "quantum", why: "must be above 0" });
        }
        if params.tick > params.quantum {
            return Err(ParamError::Invalid { name: "tick", why: "must not exceed the quantum" });
        }
        Ok(RoundRobin {
            quantum: params.quantum,
            tick: params.tick,
            links: Links::default(),
            left: Vec::new(),
            queues: alloc::vec![List::default(); queues],
        })
    }
}

impl RunQueue for RoundRobin {
    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, _: &TaskParams) {
        self.links.attach(task);
        if self.left.len() <= task.index() {
            self.left.resize(task.index() + 1, self.quantum);
        }
        self.left[task.index()] = self.quantum;
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        let queue = &mut self.queues[at.queue];
        let left = &mut self.left[task.index()];
        match entry.why {
            Why::Put(Off::NotRun) => self.links.push_front(queue, task),
            Why::Put(Off::Preempted) if *left > Span::ZERO => self.links.push_front(queue, task),
            Why::Put(_) => {
                *left = self.quantum;
                self.links.push_back(queue, task);
            }
            Why::Woken | Why::New | Why::Resumed | Why::Moved => {
                if *left == Span::ZERO {
                    *left = self.quantum;
                }
                self.links.push_back(queue, task);
            }
        }
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let queue = &mut self.queues[at.queue];
        if fits(queue.front()?) {
            return self.links.pop_front(queue);
        }
        let task = self.links.iter(queue).find(|&task| fits(task))?;
        self.links.remove(queue, task);
        Some(task)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.links.remove(&mut self.queues[at.queue], task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, task: TaskId, ran: Span) {
        if self.tick == Span::ZERO {
            let left = &mut self.left[task.index()];
            *left = left.saturating_sub(ran);
        }
    }

    #[inline]
    fn tick(&mut self, _: &At<'_>, task: TaskId) -> bool {
        if self.tick == Span::ZERO {
            return false;
        }
        let left = &mut self.left[task.index()];
        *left = left.saturating_sub(self.tick);
        *left == Span::ZERO
    }

    fn tick_period(&self) -> Option<Span> {
        (self.tick > Span::ZERO).then_some(self.tick)
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, task: TaskId) -> Span {
        if self.tick == Span::ZERO { self.left[task.index()] } else { Span::MAX }
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.links.iter(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        sink("quantum_left_ns", self.left[task.index()].0 as i64);
    }
}
