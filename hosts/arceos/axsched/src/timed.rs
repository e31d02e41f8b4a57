//! How long a policy's calls take, if the host asks for it: a clock around each.
//!
//! It costs nothing otherwise: the wrapper is put around the policy only on request.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anysched_core::call::Call;
use anysched_core::{Cx, Off, Pick, Scheduler, scheduler_by_call};

use crate::clock;

/// A call that is timed, by name.
#[derive(Clone, Copy)]
enum Kind {
    Enqueue,
    Pick,
    /// What runs stays ready.
    Put,
    /// It does not.
    Leave,
    Tick,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Enqueue, "enqueue"),
    (Kind::Pick, "pick"),
    (Kind::Put, "put"),
    (Kind::Leave, "leave"),
    (Kind::Tick, "tick"),
];

/// Number and time (in nanoseconds) of the calls of a kind, on all CPUs.
struct Sum {
    calls: AtomicU64,
    time: AtomicU64,
}

static SUMS: [Sum; KINDS.len()] =
    [const { Sum { calls: AtomicU64::new(0), time: AtomicU64::new(0) } }; KINDS.len()];

/// A policy and a clock.
pub(crate) struct Timed {
    policy: Box<dyn Scheduler>,
    /// What is measured when there is nothing between two readings of the clock.
    nothing: u64,
}

impl Timed {
    pub fn new(policy: Box<dyn Scheduler>) -> Timed {
        let nothing = (0..8).map(|_| {
            let start = clock::now();
            clock::now() - start
        });
        Timed { policy, nothing: nothing.min().unwrap_or(0) }
    }

    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        let kind = match call {
            Call::Enqueue { .. } => Kind::Enqueue,
            Call::PickNext { .. } => Kind::Pick,
            Call::PutPrev { why: Off::Blocked | Off::Exited, .. } => Kind::Leave,
            Call::PutPrev { .. } => Kind::Put,
            Call::Tick { .. } => Kind::Tick,
            other => return other.make(&mut *self.policy, cx),
        };
        let start = clock::now();
        let pick = call.make(&mut *self.policy, cx);
        let time = clock::now() - start;
        let sum = &SUMS[kind as usize];
        sum.calls.fetch_add(1, Relaxed);
        sum.time.fetch_add(time.saturating_sub(self.nothing), Relaxed);
        pick
    }
}

scheduler_by_call!([] Timed);

/// For each kind of call: its name, how many there were so far, and the time they took in all, in
/// nanoseconds. The time covers the calls only if the host asked for it.
pub fn calls() -> impl Iterator<Item = (&'static str, u64, u64)> {
    let sum = |(kind, name): (Kind, &'static str)| {
        let sum = &SUMS[kind as usize];
        (name, sum.calls.load(Relaxed), sum.time.load(Relaxed))
    };
    KINDS.into_iter().map(sum).filter(|(_, calls, _)| *calls > 0)
}
