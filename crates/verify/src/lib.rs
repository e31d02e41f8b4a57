//! Every short history of a policy, checked.
//!
//! Random runs find what happens often. What needs five events in one order, on two CPUs, with
//! nothing else about, they hardly ever meet; and such a case is exactly what a person can
//! understand. So here a [`Host`] offers all that the contract lets a host do next, and [`search`]
//! tries all of it, breadth first, so that what it finds first is as short as can be.
//!
//! - States from which the policy will decide alike are one: policies say what their decisions
//!   depend on ([`anysched_core::canon`]). A policy that does not is searched all the same, history
//!   by history, and comes less far. What policies say is tried, too ([`Property::Merge`]).
//! - A state is its history, replayed from nothing: policies cannot be copied, and need not be able
//!   to. A history is at most some ten events long, so that takes microseconds.
//! - From each state the search looks ahead along the ways that a fair host may go on
//!   ([`Property::Drain`], [`Property::Wait`]). Where a state comes back on such a way, the way has
//!   no end (a *lasso*), and what has not happened will not.
//!
//! # Why no model checker from a library
//!
//! Looked at was stateright 0.31, which is made for models of distributed systems. It holds each
//! pending state by value, and a policy behind `dyn Scheduler` is no value that can be copied; with
//! histories in its place it would hold those. Its threads take work from each other without regard
//! to depth, so that with several of them the first history found need not be the shortest, nor the
//! same each time. What would be left of it is the queue, which here has sixty lines.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod event;
mod glue;
mod hash;
mod host;
mod property;
mod scope;
mod search;
mod settings;
mod subject;

pub use event::{Event, LONG, SHORT, Step};
pub use glue::{ArceOs, ArceOsEvent, Glue, Kernel, Linux, LinuxEvent, Xen, XenEvent};
pub use host::Host;
pub use property::{Demands, Driven, Property, Steps, Waited};
pub use scope::{Kinds, Scope};
pub use search::{End, Finding, Histories, Limits, Report, STATE_BYTES, search};
pub use settings::settings;
pub use subject::{Build, Held, Subject};
