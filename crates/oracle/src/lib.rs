//! Naive implementations of policies, and the harness that compares with them; for tests.
//!
//! - [`drive`] drives any [`Scheduler`](anysched_core::Scheduler) call by call, or plays a list of
//!   tasks with exact timers: for values worked out by hand.
//! - [`compare`](mod@compare) plays random but legal calls to a policy and to an [`Oracle`] beside
//!   it, and reports the first difference with its history.
//! - [`random`] is a host that does everything a host may do, for properties that all policies
//!   share; [`rehearsal`] teaches those that need a first run under it.
//!
//! [`kernel`] is for tests that boot kernels.
//!
//! The other modules are oracles: a policy's rules written down once more, with lists that are
//! searched from end to end and nothing stored that can be computed. They share no code and no
//! tables with the policies, and know only the parameters that a test passes them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bfs;
pub mod cfs;
pub mod compare;
pub mod credit;
pub mod credit2;
pub mod drive;
pub mod eevdf;
pub mod fair;
pub mod gittins;
pub mod kernel;
pub mod m_rsf;
pub mod osv;
pub mod pbg;
pub mod periodic;
pub mod planted;
pub mod random;
pub mod rehearsal;
pub mod rtds;
pub mod sedf;

pub use compare::{
    Moves, Oracle, Picks, Pins, Scope, Seen, compare, compare_all, compare_same, moves,
};
pub use drive::Drive;
