//! What hosts of scheduling policies are asked, and what they answer.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod setup;
mod vm;

pub use setup::{Costs, Setup};
pub use vm::{Vm, Wire};
