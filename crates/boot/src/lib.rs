//! Kernels whose scheduler is a policy of anysched: builds their images, boots them in QEMU and
//! reads what they print.
//!
//! [`arceos`] is the unikernel, [`load`] what sends requests to servers in kernels. The images'
//! sources are in `hosts/`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod arceos;
mod error;
pub mod load;
mod qemu;

pub use error::BootError;
