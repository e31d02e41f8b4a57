//! Records every call of a policy and every answer, on any host, and replays them.
//!
//! [`Recorder`] wraps a policy and writes a log to a [`LogSink`]. [`LogReader`] reads it, and
//! [`replay()`] feeds its calls to a policy and stops at the first answer that differs: the same
//! policy gives the same answers on every host, so what happened in a kernel can be reproduced in a
//! test.
//!
//! # Format
//!
//! A log is a header followed by records, without padding. Integers are little-endian base-128
//! *varints*: seven bits per byte, lowest first, with the top bit set on all bytes but the last; at
//! most ten bytes and less than 2^64. A *signed* varint holds `n ≥ 0` as `2·n` and `n < 0` as `−2·n
//! − 1`. A *text* is its length in bytes as a varint, then that much UTF-8. Times and spans are in
//! nanoseconds. Sums and differences of times are modulo 2^64, so that any time can be written.
//!
//! ```text
//! header   "anysched" (8 bytes), version (1 byte, 2),
//!          policy (text), settings (varint count, then name and value, both text, for each),
//!          CPUs (varint count, then core, LLC, package, node, capacity, all varint, for each),
//!          tick (varint, 0: none)
//! record   head (byte), [time passed since the record before it, varint], arguments, answer
//! answer   flags (byte), [pick], [kicks], [timer]
//! ```
//!
//! The head's low four bits identify the call, 0x10 says that time has passed (the first record
//! counts from 0), and other bits are 0. The arguments are written before the call and the answer
//! after it, so the last record of a log has no answer if the policy panicked in it.
//!
//! | head | call | arguments (varints unless said otherwise) |
//! |---|---|---|
//! | 0 | `attach` | task, parameters |
//! | 1 | `detach` | task |
//! | 2 | `update` | task, parameters |
//! | 3 | `set_domain` | domain, weight, cap in percent |
//! | 4 | `set_online(false)` | CPU |
//! | 5 | `set_online(true)` | CPU |
//! | 6 | `enqueue` | task, arrival |
//! | 7 | `dequeue` | task |
//! | 8 | `pick_next` | CPU |
//! | 9 | `put_prev` | CPU, task, ran, why (byte) |
//! | 10 | `tick` | CPU, task, ran |
//! | 11 | `timer` | |
//! | 12 | none, the end: what follows found no room | how many records |
//! | 13 | `set_param` | name, value (both text) |
//!
//! *Why* a task stops: 0 `Expired`, 1 `Preempted`, 2 `Yielded`, 3 `NotRun`, 4 `Blocked`, 5
//! `Exited`.
//!
//! *Parameters*: flags (a varint; in version 1, which is read as well, a byte), then the fields
//! whose flags are set, in this order; others have their defaults. 0x01 weight (at least 1), 0x02
//! priority (signed), 0x04 affinity, 0x08 domain, 0x10 period, 0x20 budget, 0x40 relative deadline,
//! 0x80 key, 0x100 preferred CPUs (not in version 1), 0x200 intensity in percent, up to 100 (not in
//! version 1). A set of CPUs is a count from 0 to 16, followed by that many words of 64 CPUs, one
//! bit each, lowest first.
//!
//! *Arrival*: a byte whose low two bits are 0 `New`, 1 `Wakeup` or 2 `Resumed`, and flags: 0x04
//! `sync` (of a wake-up), 0x08 `from`, 0x10 `burst`, 0x20 `deadline`. Then the previous CPU (unless
//! new), and the fields whose flags are set, in this order; the deadline is the signed distance
//! from the time of the call.
//!
//! *Answer*: flags 0x01 pick, 0x02 kicks, 0x04 timer; other bits are 0. A *pick* is the task, then
//! the slice plus 1 modulo 2^64, so that "no limit" is 0. *Kicks* are a count and the kicked CPUs
//! in ascending order, the first as a number and the others as the distance from the one before. A
//! *timer* is present if the answer of `next_timer`, asked after every call, differs from the one
//! before (initially `None`): 0 for `None`, or 1 and the signed distance from the time of the call.

mod hash;
mod read;
mod replay;
mod write;

use alloc::vec::Vec;

pub use crate::call::Call;
pub use hash::PickHash;
pub use read::{Answer, Header, LogError, LogReader, Problem, Record};
pub use replay::{Difference, Replay, ReplayError, replay, replay_observed};
use write::Encoder;
pub use write::lost;

use crate::ids::CpuMask;
use crate::machine::Machine;
use crate::scheduler_by_call;
use crate::time::Time;
use crate::{Cx, Pick, Scheduler};

/// Receives a log.
pub trait LogSink {
    /// Takes the next bytes. A record is written in two or more pieces.
    fn write(&mut self, bytes: &[u8]);

    /// A record is complete: the log so far can be read on its own.
    #[inline]
    fn record_ends(&mut self) {}
}

impl LogSink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<W: LogSink + ?Sized> LogSink for &mut W {
    fn write(&mut self, bytes: &[u8]) {
        (**self).write(bytes);
    }
    fn record_ends(&mut self) {
        (**self).record_ends();
    }
}

/// Wraps a policy and writes its calls and answers to a sink. Allocates nothing.
///
/// Asks `next_timer` after every call, as hosts do, since any call may change its answer.
#[derive(Debug)]
pub struct Recorder<S, W> {
    policy: S,
    sink: W,
    /// The time of the last record.
    last: Time,
    /// The last answer of `next_timer` that was logged.
    timer: Option<Time>,
}

impl<S: Scheduler, W: LogSink> Recorder<S, W> {
    /// Writes the header and records `policy`, which was built as `name` with `settings` for
    /// `machine` and has not been called yet.
    pub fn new(
        policy: S,
        machine: &Machine,
        name: &str,
        settings: &[(&str, &str)],
        mut sink: W,
    ) -> Recorder<S, W> {
        write::header(&mut sink, machine, name, settings);
        Recorder { policy, sink, last: Time::ZERO, timer: None }
    }

    /// The policy.
    pub fn policy(&self) -> &S {
        &self.policy
    }

    /// The sink, to flush or drain it.
    pub fn sink(&mut self) -> &mut W {
        &mut self.sink
    }

    /// The policy and the sink.
    pub fn into_parts(self) -> (S, W) {
        (self.policy, self.sink)
    }

    #[inline]
    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        let mut log = Encoder::new(&mut self.sink);
        log.call(cx.now, self.last, &call);
        log.finish();
        self.last = cx.now;
        let mut kicks = CpuMask::EMPTY;
        let mut inner = Cx { now: cx.now, work: cx.work, kicks: &mut kicks };
        let pick = call.make(&mut self.policy, &mut inner);
        cx.work = inner.work;
        let timer = self.policy.next_timer();
        let mut log = Encoder::new(&mut self.sink);
        log.answer(cx.now, pick, &kicks, (timer != self.timer).then_some(timer));
        log.finish();
        self.sink.record_ends();
        self.timer = timer;
        if !kicks.is_empty() {
            kicks.iter().for_each(|cpu| cx.kick(cpu));
        }
        pick
    }
}

scheduler_by_call!([S: Scheduler, W: LogSink] Recorder<S, W>);
