//! What a start text asks for: the same in all kernels that read one.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod fault;
mod policy;

pub use policy::{affinity, machine, params, policy, starves};
