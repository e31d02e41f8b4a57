//! Xen: a hypervisor whose scheduler is a policy of anysched, or one of its own, and virtual
//! machines that run under it.
//!
//! Xen is built from Debian's source package, in a directory of its own ([`Sources`]); nothing of
//! it is changed but that it has one scheduler more. Domains are a small kernel of ours: as dom0 it
//! builds the others, as domU it runs a program. In the slow form dom0 and domains are Linux, and
//! Xen's own tools build them ([`LinuxDom0`]).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod boot;
mod build;
mod calibrate;
mod dom0;
pub mod events;
mod host;
mod package;
mod sources;
mod vms;

pub use boot::Boot;
pub use build::Image;
pub use dom0::LinuxDom0;
pub use host::{HOST, Xen};
pub use package::package;
pub use sources::Sources;

pub use anysched_qemu::BootError;
