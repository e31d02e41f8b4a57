//! Every short history of a policy, checked.
//!
//! Random runs find what happens often. What needs five events in one order, on two CPUs, with
//! nothing else about, they hardly ever meet; and such a case is exactly what a person can
//! understand. So here a [`Host`] offers all that the contract lets a host do next, and [`search`]
//! tries all of it: breadth first, so that what it finds first is as short as can be. States from
//! which the policy will decide alike are one ([`anysched_core::canon`]).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod event;
mod hash;
mod host;
mod property;
mod scope;
mod search;
mod settings;
mod subject;

pub use event::{Event, LONG, SHORT, Step};
pub use host::Host;
pub use property::{Demands, Property, Waited};
pub use scope::{Kinds, Scope};
pub use search::{End, Finding, Limits, Report, STATE_BYTES, search};
pub use settings::settings;
pub use subject::{Build, Subject};
