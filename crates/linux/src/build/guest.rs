//! The first program of the guest.

use super::{Build, cargo};
use crate::BootError;
use anysched_debian::step::run;
use std::path::PathBuf;

const PACKAGE: &str = "anysched-linux-guest";

/// Programs for this target are static: they run on any kernel, beside any libraries.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// Builds it. Cargo knows by itself what has changed.
pub(super) fn build(build: &Build<'_>) -> Result<PathBuf, BootError> {
    anysched_qemu::require_target(TARGET)?;
    let target = build.target.join("guest");
    run(cargo(build, PACKAGE, TARGET, &target), PACKAGE)?;
    Ok(target.join(TARGET).join("release").join(PACKAGE))
}
