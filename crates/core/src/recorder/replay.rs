//! Feeds a recorded run to a policy.

use alloc::boxed::Box;
use core::fmt;

use super::hash::PickHash;
use super::read::{Answer, LogError, LogReader, Record};
use crate::call::Call;
use crate::checked::{Belief, Fault, HostFault, Violation};
use crate::ids::CpuMask;
use crate::{Cx, Observer, Pick, Scheduler, Time};

/// The outcome of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Calls made.
    pub calls: u64,
    /// Tasks picked.
    pub picks: u64,
    /// The [`PickHash`] of the picks.
    pub hash: u64,
    /// The last call has no answer in the log: the log was cut off, or the policy panicked in that
    /// call (and did not in the replay).
    pub unanswered: bool,
}

/// Why a replay stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The log cannot be read any further.
    Log(LogError),
    /// The recorded run breaks the contract: the host made a call that it must not make, or the
    /// policy gave, both times, an answer that it must not give. The call is its number in the log.
    Contract(Violation),
    /// The policy's answer differs.
    Difference(Box<Difference>),
}

/// A call that the policy answers differently from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The call, with the expected answer.
    pub record: Record,
    /// What the policy answered.
    pub got: Answer,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Log(error) => error.fmt(f),
            ReplayError::Contract(violation) => violation.fmt(f),
            ReplayError::Difference(difference) => difference.fmt(f),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}; now the policy answers: ", self.record)?;
        self.got.show(f, &self.record.call)
    }
}

impl core::error::Error for ReplayError {}
impl core::error::Error for Difference {}

/// Feeds the calls of `log` to `policy`, which was built according to the log's header and has not
/// been called yet, and compares every answer: picks, kicks and `next_timer`. Makes no call that
/// breaks the contract, so a malformed log cannot make a policy that keeps to it panic.
///
/// Errors: the first answer that differs, or the log is malformed or breaks the contract.
pub fn replay(log: &[u8], policy: &mut dyn Scheduler) -> Result<Replay, ReplayError> {
    replay_observed(log, policy, &mut Nobody)
}

/// Observes nothing.
struct Nobody;

impl Observer for Nobody {
    fn after(&mut self, _: Time, _: &Call<'_>, _: Option<Pick>, _: &CpuMask, _: &dyn Scheduler) {}
}

/// As [`replay()`]; `observer` is told of each call, also of the one whose answer differs.
///
/// Errors: as [`replay()`].
pub fn replay_observed(
    log: &[u8],
    policy: &mut dyn Scheduler,
    observer: &mut dyn Observer,
) -> Result<Replay, ReplayError> {
    let records = LogReader::new(log).map_err(ReplayError::Log)?;
    let mut belief = Belief::new(&records.header().machine);
    let mut done = Replay { calls: 0, picks: 0, hash: 0, unanswered: false };
    let mut hash = PickHash::default();
    for record in records {
        let record = record.map_err(ReplayError::Log)?;
        let (number, now) = (record.number, record.now);
        let breach = |fault| ReplayError::Contract(Violation { call: number, now, fault });
        belief.check(now, &record.call).map_err(|fault| breach(Fault::Host(fault)))?;
        if let Call::SetParam { name, text } = &record.call {
            let refused = |_| breach(Fault::Host(HostFault::ParamRefused));
            policy.check_param(name, text).map_err(refused)?;
        }
        let mut kicks = CpuMask::EMPTY;
        observer.before(now, &record.call, &policy);
        let pick = record.call.make(policy, &mut Cx::new(now, &mut kicks));
        observer.after(now, &record.call, pick, &kicks, &policy);
        done.calls += 1;
        let got = Answer { pick, kicks, next_timer: policy.next_timer() };
        let Some(expected) = &record.answer else {
            done.unanswered = true;
            break;
        };
        if got != *expected {
            return Err(ReplayError::Difference(Box::new(Difference { record, got })));
        }
        belief.apply(now, &record.call);
        if let (&Call::PickNext { cpu }, Some(pick)) = (&record.call, pick) {
            belief.check_pick(cpu, pick).map_err(|fault| breach(Fault::Policy(fault)))?;
            belief.run(cpu, pick.task);
            hash.add(now, cpu, pick);
            done.picks += 1;
        }
    }
    done.hash = hash.value();
    Ok(done)
}
