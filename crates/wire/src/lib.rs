//! What passes between this computer and a kernel under test: one source for both ends.
//!
//! | module | from | to | by | what |
//! |---|---|---|---|---|
//! | [`boot`] | here | kernel | an item of QEMU's [firmware configuration](firmware) | what to run |
//! | [`script`] | here | kernel | another such item | tasks and what they do |
//! | [`domains`] | here | dom0 of a hypervisor | behind its boot text | virtual machines |
//! | [`dom0`] | here | that dom0, if it is Linux | files of its first file system | where orders are, and how its tools set shares |
//! | [`mail`] | here | that dom0 and a virtual machine | in that text | messages from outside |
//! | [`result`] | kernel | here | lines on the console | what came of it |
//! | [`log`] | kernel | here | QEMU's debug console | what policies were asked and answered |
//! | [`vcpus`] | dom0 of a hypervisor | here | another such console | what vCPUs did |
//! | [`start`] | a program | a module of a running kernel | a file of that module; of a guest, such an item | what to start |
//! | [`option`] | here | a hypervisor | its command line | what to start |
//! | [`status`] | such a module | a program | another such file | how it is doing |
//! | [`change`] | a program and such a module | the other | another such file | a parameter that changes |
//! | [`datagram`] | here and kernel | the other | UDP | requests to a server and its answers |
//!
//! Both ends also know which [`program`]s there are.
//!
//! Each format states its version first, so that an image built from other sources can be told
//! apart from one that fails. Readers take what the writers write and refuse everything else, with
//! its place and value ([`WireError`]); limits hold at both ends. Nothing panics on input.
//!
//! Texts are UTF-8. Where a text may hold anything, it is written as [`mod@escape`] says.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod boot;
pub mod change;
pub mod datagram;
pub mod dom0;
pub mod domains;
mod error;
pub mod escape;
pub mod firmware;
pub mod log;
pub mod mail;
pub mod option;
pub mod program;
pub mod result;
pub mod script;
pub mod start;
pub mod status;
mod text;
pub mod vcpus;

pub use error::{At, WireError};
