//! The package for Debian.
//!
//! What is in it and what it recommends is in `crates/cli/Cargo.toml`, where cargo-deb reads it.

use super::only;
use crate::run::{Failed, command, run};
use crate::setup;
use std::path::{Path, PathBuf};

/// Packs what is staged in `folder`.
pub(super) fn make(folder: &Path) -> Result<PathBuf, Failed> {
    let program = setup::install_tool(&setup::CARGO_DEB)?;
    let out = folder.join("debian");
    let args = ["deb", "--quiet", "--no-build", "--no-strip", "--locked", "--package"];
    let mut make = command(&program, &[&args[..], &["anysched-cli", "--output"]].concat());
    run(make.arg(&out).env("SOURCE_DATE_EPOCH", "0"))?;
    only(&out, ".deb")
}
