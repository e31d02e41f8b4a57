//! What puts a policy into the Linux kernel that this runs on, and takes it out again: the module
//! is loaded, told what to start, and registered with sched_ext by a BPF program. Or an agent is
//! started, a process that does the same from outside.
//!
//! The guest of the host `linux` does it for each boot, `anysched attach` on any machine.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg(target_os = "linux")]

mod agent;
mod change;
mod module;
mod sched_ext;
pub mod tracefs;

pub use agent::{Agent, AgentFiles};
pub use module::{LOG, Module, STATUS, here};
pub use sched_ext::SchedExt;
