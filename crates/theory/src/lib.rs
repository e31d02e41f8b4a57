//! Load theory, queueing theory and schedulability: what can be said of a load without running it.
//!
//! - [`load_model`]: the slice that a distribution of run times suggests, and how many tasks finish
//!   within one and two slices.
//! - [`measured`] and [`fit`]: run times from a file, and the distribution they follow.
//! - [`queueing`]: M/M/c and M/M/c/N.
//! - [`m_rsf`]: how long a batch takes under M-RSF, compared with policies for which theory has an
//!   answer.
//! - [`realtime`]: whether periodic tasks meet their deadlines on one CPU.
//!
//! Times are in ns, as in [`Dist`](anysched_workload::dist::Dist). All mathematical functions come
//! from `libm`, so that results are the same on every machine.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod fit;
pub mod load_model;
pub mod m_rsf;
pub mod measured;
pub mod queueing;
pub mod realtime;
