//! A machine of 1 to 1024 CPUs under a scheduling policy, event by event.
//!
//! [`Sim`] drives any [`anysched_core::Scheduler`] with any [`anysched_workload::Load`] and
//! measures it. It is deterministic and single-threaded: the same setup, load and policy give
//! the same run, to the nanosecond. Events go to a [`anysched_trace::Sink`] as they happen;
//! nothing grows with the length of a run.
//!
//! # Time within an instant
//!
//! Ends of bursts, then arrivals and wake-ups, the policy's timers, ticks, all events in virtual
//! machines, ends of slices; and when all of that is known, the picks. Costs delay the picked task
//! and count neither as its service nor as its use of the CPU.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod engine;
mod host;
mod vm;

pub use engine::{Sim, SimError, TaskResult};
pub use host::{HOST, Simulator};
