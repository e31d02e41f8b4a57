//! What a start text asks for, and the status of what runs: the same in the kernel's module and in
//! the agent in user space.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod change;
mod status;

pub use anysched_start::{affinity, machine, params, policy};
pub use change::change;
pub use status::part;
