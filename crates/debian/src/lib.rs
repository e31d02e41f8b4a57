//! Debian's packages: fetched, unpacked and used without being installed.
//!
//! [`Apt`] sees one suite and nothing of what this computer has. What it fetches is
//! [unpacked](unpack) into a directory, which is the [root](Root) of the programs that run from it:
//! any user may do so where user namespaces are allowed. What was found is kept beside it
//! ([`State`]), and what is built from it is built once ([`step`](step::step)), such as the
//! [object] that has policies in it, or an [`Archive`] from which Linux fills its first file
//! system.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod apt;
mod archive;
mod emulator;
mod libraries;
pub mod object;
pub mod place;
mod root;
mod state;
pub mod step;
mod tools;
mod unpack;
mod versions;

pub use apt::{Apt, lacking, mirror, unavailable};
pub use archive::Archive;
pub use emulator::emulator;
pub use libraries::libraries;
pub use root::Root;
pub use state::State;
pub use tools::{Tool, Tools};
pub use unpack::{link_alternatives, note, unpack};
pub use versions::{Offer, compare, offers};

use anysched_qemu::BootError;
