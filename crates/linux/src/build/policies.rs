//! All policies as one object that kbuild links into the module.

use super::step::{run, step};
use super::{Build, cargo};
use crate::BootError;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "anysched-linux-policies";

/// The target whose code expects nothing of what it runs on.
const TARGET: &str = "x86_64-unknown-none";

/// What the C side calls. All other symbols become local: they are no business of the kernel's.
const EXPORTS: [&str; 2] = ["anysched_call", "anysched_message"];

/// Code as the kernel wants it: where it is loaded, without what interrupts would overwrite, with
/// indirect jumps and returns by thunks, and nothing for unwinding. Calls go by the PLT, which
/// linking resolves; otherwise they would go by a table of offsets, which modules do not have.
const FLAGS: &str = "-C relocation-model=static -C code-model=kernel -C no-redzone=yes \
                     -C jump-tables=no -C force-unwind-tables=no -Z function-return=thunk-extern \
                     -Z retpoline-external-thunk -Z indirect-branch-cs-prefix \
                     -Z cf-protection=branch -Z plt=yes";

/// Builds the object. Cargo knows by itself what has changed.
pub(super) fn build(build: &Build<'_>) -> Result<PathBuf, BootError> {
    require_sources_of_core()?;
    let target = build.target.join("policies");
    let mut command = cargo(build, PACKAGE, TARGET, &target);
    // The libraries that come with the compiler are compiled for other settings.
    command
        .args(["-Z", "build-std=core,alloc", "-Z", "build-std-features=compiler-builtins-mem"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS);
    run(command, PACKAGE)?;
    let library = target.join(TARGET).join("release/libanysched_linux_policies.a");
    let sources = build.sources.join("policies");
    let script = sources.join("merge.lds");
    let object = target.join("policy.o_shipped");
    let settings = format!("{} {}", build.kernel, EXPORTS.join(" "));
    step(&object, &settings, &[library, script], |new| merge(build, &sources, &target, new))?;
    Ok(object)
}

/// One object of the library, with what is reached from the exports.
fn merge(build: &Build<'_>, sources: &Path, target: &Path, new: &Path) -> Result<(), BootError> {
    let mounts = [(target, "/work"), (sources, "/policies")];
    let mut link = build.tools.tool("ld", &mounts)?;
    let [script, merged] = [sources.join("merge.lds"), target.join("policy.o")];
    let archive = target.join(TARGET).join("release/libanysched_linux_policies.a");
    let [script, output, archive] = [&script, &merged, &archive].map(|path| link.seen(path));
    link.command.args(["-r", "--gc-sections", "-T"]).arg(script).args(["-e", EXPORTS[0]]);
    for name in EXPORTS {
        link.command.args(["-u", name]);
    }
    link.command.arg("-o").arg(output).arg(archive);
    link.run()?;
    let mut copy = build.tools.tool("objcopy", &mounts)?;
    let [merged, new] = [&merged, new].map(|path| copy.seen(path));
    copy.command.args(EXPORTS.map(|name| format!("--keep-global-symbol={name}")));
    copy.command.arg("--strip-debug").arg(merged).arg(new);
    copy.run().map(drop)
}

/// Errors: the compiler came without the sources of its library.
fn require_sources_of_core() -> Result<(), BootError> {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
    let asked = asked.map_err(|error| BootError::files("rustc", error))?;
    let root = String::from_utf8_lossy(&asked.stdout).trim().to_string();
    if Path::new(&root).join("lib/rustlib/src/rust/library/core/src/lib.rs").is_file() {
        return Ok(());
    }
    Err(BootError::Missing {
        what: "the compiler came without the sources of its library, which is built anew for the \
               kernel"
            .into(),
        remedy: "add them with `rustup component add rust-src`".into(),
    })
}
