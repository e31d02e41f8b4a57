//! All policies as one object that kbuild links into the module.

use super::{Build, cargo_as};
use crate::BootError;
use anysched_debian::object::{self, Library};
use anysched_debian::step::run;
use std::path::PathBuf;

const PACKAGE: &str = "anysched-linux-policies";

/// The target whose code expects nothing of what it runs on.
const TARGET: &str = "x86_64-unknown-none";

/// What the C side calls. All other symbols become local: they are no business of the kernel's.
const EXPORTS: [&str; 2] = ["anysched_call", "anysched_message"];

/// Code as the kernel wants it: where it is loaded, without what interrupts would overwrite, with
/// indirect jumps and returns by thunks, and nothing for unwinding. Calls go by the PLT, which
/// linking resolves; otherwise they would go by a table of offsets, which modules do not have.
const FLAGS: [&str; 10] = [
    "-Crelocation-model=static",
    "-Ccode-model=kernel",
    "-Cno-redzone=yes",
    "-Cjump-tables=no",
    "-Cforce-unwind-tables=no",
    "-Zfunction-return=thunk-extern",
    "-Zretpoline-external-thunk",
    "-Zindirect-branch-cs-prefix",
    "-Zcf-protection=branch",
    "-Zplt=yes",
];

/// Has each block of code count itself, so that a call that does not return is noticed (`try.S` of
/// the module): a loop without such a block there is not.
const COUNTED: [&str; 4] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-trace-pc",
    "-Cllvm-args=-sanitizer-coverage-prune-blocks=0",
];

/// Builds the object. Cargo knows by itself what has changed.
pub(super) fn build(build: &Build<'_>) -> Result<PathBuf, BootError> {
    let project = build.sources.ancestors().nth(2).unwrap_or(build.sources);
    let counted = if build.checked { &COUNTED[..] } else { &[] };
    let flags = object::flags(project, FLAGS.iter().chain(counted).copied())?;
    let target = build.target.join("policies");
    let profile = if build.checked { "checked" } else { "release" };
    let mut command = cargo_as(build, profile, PACKAGE, TARGET, &target);
    // The libraries that come with the compiler are compiled for other settings.
    command
        .args(["-Z", "build-std=core,alloc", "-Z", "build-std-features=compiler-builtins-mem"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags);
    run(command, PACKAGE)?;
    let archive = target.join(TARGET).join(profile).join("libanysched_linux_policies.a");
    let script = build.sources.join("policies/merge.lds");
    let object = target.join("policy.o_shipped");
    let library = Library { archive: &archive, script: &script, exports: &EXPORTS };
    library.merge(build.tools, &object)?;
    Ok(object)
}
