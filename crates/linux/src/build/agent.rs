//! The agent: a policy in a process.
//!
//! For guests it is linked in the suite's root, where libbpf and what that needs are there as
//! archives: the program needs no library, and this computer needs nothing but Rust. For the
//! machine that this runs on it is linked with that machine's libraries.

use super::{Build, cargo_as};
use crate::BootError;
use anysched_debian::Tools;
use anysched_debian::step::{run, step};
use std::path::PathBuf;

const PACKAGE: &str = "anysched-linux-agent";
const ARCHIVE: &str = "libanysched_linux_agent.a";

/// The target of Debian's libraries.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "agent";

const STATIC: [&str; 6] = ["-static", "-Wl,--gc-sections", "-lbpf", "-lelf", "-lz", "-lzstd"];
const DYNAMIC: [&str; 4] = ["-Wl,--gc-sections", "-lbpf", "-lm", "-ldl"];

/// Builds it. Cargo knows by itself what has changed.
pub(super) fn build(build: &Build<'_>) -> Result<PathBuf, BootError> {
    anysched_qemu::require_target(TARGET)?;
    let target = build.target.join("agent");
    run(cargo_as(build, PROFILE, PACKAGE, TARGET, &target), PACKAGE)?;
    let work = target.join(TARGET).join(PROFILE);
    let directory = build.of_kernel("agent");
    let program = directory.join("anysched-agent");
    let link: &[&str] = match build.tools {
        Tools::Root(_) => &STATIC,
        Tools::Machine => &DYNAMIC,
    };
    let settings = format!("{} {}", build.kernel, link.join(" "));
    step(&program, &settings, &[work.join(ARCHIVE)], |new| {
        let mounts = [(work.as_path(), "/work"), (directory.as_path(), "/out")];
        let mut gcc = build.tools.tool("gcc", &mounts)?;
        let (archive, new) = (gcc.seen(&work.join(ARCHIVE)), gcc.seen(new));
        gcc.command.arg("-o").arg(new).arg(archive).args(link);
        gcc.run().map(drop)
    })?;
    Ok(program)
}
