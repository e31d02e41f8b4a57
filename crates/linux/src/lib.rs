//! Linux under sched_ext: a stock Debian kernel whose scheduling class is a module with a policy of
//! anysched in it.
//!
//! Nothing is installed on this computer. Kernel, headers, compilers and the guest's programs come
//! from Debian's packages, unpacked into a directory of their own ([`Suite`]); programs from it run
//! with that directory as their root ([`Root`]).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod attach;
mod boot;
mod build;
mod calibrate;
#[cfg(target_os = "linux")]
mod during;
pub mod events;
mod host;
mod machine;
mod packaged;
mod packages;
#[cfg(target_os = "linux")]
mod record;

pub use anysched_debian::{Archive, Root};
pub use boot::Boot;
pub use build::Image;
pub use host::{HOST, Linux};
pub use packages::{Purpose, StockKernel, Suite};

pub use anysched_qemu::BootError;
