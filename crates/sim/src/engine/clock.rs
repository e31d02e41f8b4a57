//! The time of a run, and the watch over its advance.

use anysched_core::{CpuId, ParamError, Span, Time};
use std::fmt;

use super::agenda::Moment;

/// Why a run could not be finished. Each is a fault of the load or the policy, not of the machine
/// it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// Ten million operations without any time passing.
    Standstill {
        /// The time at which it happened.
        at: Time,
        /// The last task that did something, by serial.
        task: u64,
    },
    /// The policy asked for a timer ten million times without any time passing.
    PolicyTimer {
        /// The time at which it happened.
        at: Time,
    },
    /// The policy had CPUs pick ten million times without any time passing.
    Kicks {
        /// The time at which it happened.
        at: Time,
        /// The CPU that picked last.
        cpu: CpuId,
    },
    /// The policy refused the change of a parameter.
    Refused {
        /// The time at which it was to change.
        at: Time,
        /// Why.
        why: ParamError,
    },
    /// The next event lies beyond the last time that can be simulated.
    TooLong {
        /// The time of the last event.
        at: Time,
    },
    /// Whoever watched the run has ended it.
    Stopped {
        /// The time at which it happened.
        at: Time,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Standstill { at, task } => write!(
                f,
                "time stands still at {} ns: task {task} and perhaps others go on without using \
                 the CPU or blocking; give the loop a run or a sleep above 0",
                at.0
            ),
            SimError::PolicyTimer { at } => {
                write!(f, "the policy's timer does not advance beyond {} ns", at.0)
            }
            SimError::Kicks { at, cpu } => write!(
                f,
                "time stands still at {} ns: the policy kicks CPU {} and perhaps others again and \
                 again; kick a CPU only where a task is there for it",
                at.0, cpu.0
            ),
            SimError::Refused { at, why } => write!(f, "at {}: {why}", Span(at.0)),
            SimError::Stopped { at } => write!(f, "stopped at {}", Span(at.0)),
            SimError::TooLong { at } => write!(
                f,
                "after {} ns, something goes on beyond {} ns (4.5 years), the end of what can be \
                 simulated; shorten the load or end the run before",
                at.0,
                Moment::HORIZON.0
            ),
        }
    }
}

impl std::error::Error for SimError {}

/// Events and picks that may happen at one time.
const STANDSTILL: u64 = 10_000_000;

/// How often the policy's timer may run before the engine concludes that no ready task awaits it.
const FRUITLESS: u64 = 1_000_000;

/// The time, and whether the run still gets anywhere.
#[derive(Debug)]
pub(super) struct Clock {
    now: Time,
    /// Events and picks since time last advanced.
    standstill: u64,
    /// How often the policy's timer has run since a task was last picked.
    fruitless: u64,
    error: Option<SimError>,
}

impl Clock {
    pub(super) fn new() -> Clock {
        Clock { now: Time::ZERO, standstill: 0, fruitless: 0, error: None }
    }

    #[inline]
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Time passes up to `time`, if that is later.
    #[inline]
    pub(super) fn advance(&mut self, time: Time) {
        if time > self.now {
            self.now = time;
            self.standstill = 0;
        }
    }

    /// A task, whose serial number `task` tells, performs an operation. True: the run has failed.
    #[inline]
    pub(super) fn count_operation(&mut self, task: impl FnOnce() -> u64) -> bool {
        self.standstill += 1;
        if self.standstill > STANDSTILL {
            self.fail(SimError::Standstill { at: self.now, task: task() });
        }
        self.has_failed()
    }

    /// The policy's timer runs.
    pub(super) fn count_timer(&mut self) {
        self.standstill += 1;
        if self.standstill > STANDSTILL {
            self.fail(SimError::PolicyTimer { at: self.now });
        }
        self.fruitless += 1;
    }

    /// `cpu`, which was kicked, has picked. True: the run has failed.
    #[inline]
    pub(super) fn count_pick(&mut self, cpu: CpuId) -> bool {
        self.standstill += 1;
        if self.standstill > STANDSTILL {
            self.fail(SimError::Kicks { at: self.now, cpu });
        }
        self.has_failed()
    }

    /// A task has been picked.
    #[inline]
    pub(super) fn note_pick(&mut self) {
        self.fruitless = 0;
    }

    /// Whether the policy's timer may still lead to a pick.
    #[inline]
    pub(super) fn trusts_timer(&self) -> bool {
        self.fruitless < FRUITLESS
    }

    #[cold]
    pub(super) fn fail(&mut self, error: SimError) {
        self.error = Some(error);
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn take_error(&mut self) -> Option<SimError> {
        self.error.take()
    }
}
