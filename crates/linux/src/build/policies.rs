//! All policies as one object that kbuild links into the module.

use super::step::{run, step};
use super::{Build, cargo_as};
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
    let library = sources_of_library(&sysroot()?)?;
    let target = build.target.join("policies");
    let profile = if build.checked { "checked" } else { "release" };
    let mut command = cargo_as(build, profile, PACKAGE, TARGET, &target);
    // The libraries that come with the compiler are compiled for other settings.
    command
        .args(["-Z", "build-std=core,alloc", "-Z", "build-std-features=compiler-builtins-mem"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags(build, &library));
    run(command, PACKAGE)?;
    let archive = target.join(TARGET).join(profile).join("libanysched_linux_policies.a");
    let sources = build.sources.join("policies");
    let script = sources.join("merge.lds");
    let object = target.join("policy.o_shipped");
    let settings = format!("{} {}", build.kernel, EXPORTS.join(" "));
    let inputs = [archive.clone(), script];
    step(&object, &settings, &inputs, |new| merge(build, &sources, &target, &archive, new))?;
    Ok(object)
}

/// One object of the library, with what is reached from the exports.
fn merge(
    build: &Build<'_>,
    sources: &Path,
    target: &Path,
    archive: &Path,
    new: &Path,
) -> Result<(), BootError> {
    let mounts = [(target, "/work"), (sources, "/policies")];
    let mut link = build.tools.tool("ld", &mounts)?;
    let [script, merged] = [sources.join("merge.lds"), target.join("policy.o")];
    let [script, output, archive] =
        [script.as_path(), merged.as_path(), archive].map(|path| link.seen(path));
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

/// The flags as cargo takes them. Files are renamed, so that messages of panics do not depend on
/// where this is built.
fn flags(build: &Build<'_>, library: &Path) -> String {
    let project = build.sources.ancestors().nth(2).unwrap_or(build.sources);
    let renamed = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let packages = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let packages = packages.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let packages = packages.unwrap_or_default();
    let names = [(project, "anysched"), (library, "library"), (packages.as_path(), "cargo")];
    let renamed = names.map(|(from, to)| renamed(from, to));
    let counted = if build.checked { &COUNTED[..] } else { &[] };
    let all = FLAGS.iter().chain(counted).copied().chain(renamed.iter().map(String::as_str));
    all.collect::<Vec<_>>().join("\u{1f}")
}

/// Where the compiler is installed.
fn sysroot() -> Result<PathBuf, BootError> {
    let mut ask = Command::new("rustc");
    ask.args(["--print", "sysroot"]);
    Ok(PathBuf::from(run(ask, "rustc")?.trim()))
}

/// The sources of the compiler's library. Errors: it came without them.
fn sources_of_library(sysroot: &Path) -> Result<PathBuf, BootError> {
    let library = sysroot.join("lib/rustlib/src/rust/library");
    if library.join("core/src/lib.rs").is_file() {
        return Ok(library);
    }
    Err(BootError::Missing {
        what: "the compiler came without the sources of its library, which is built anew for the \
               kernel"
            .into(),
        remedy: "add them with `rustup component add rust-src`".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Tools;
    use super::*;

    #[test]
    fn a_compiler_without_sources_comes_with_a_remedy() {
        let sysroot = tempfile::tempdir().unwrap();
        let error = sources_of_library(sysroot.path()).unwrap_err().to_string();
        assert!(error.ends_with("`rustup component add rust-src`"), "{error}");
        let core = sysroot.path().join("lib/rustlib/src/rust/library/core/src");
        std::fs::create_dir_all(&core).unwrap();
        std::fs::write(core.join("lib.rs"), "").unwrap();
        assert!(sources_of_library(sysroot.path()).is_ok());
    }

    #[test]
    fn flags_survive_spaces_in_paths() {
        let build = Build {
            sources: Path::new("/a b/hosts/linux"),
            target: Path::new("/target"),
            kernel: "7.2",
            headers: "/headers",
            tools: Tools::Machine,
            checked: false,
        };
        let library = Path::new("/rust/library");
        let plain = flags(&build, library);
        let flags: Vec<&str> = plain.split('\u{1f}').collect();
        assert!(flags.contains(&"-Zplt=yes"));
        assert!(flags.contains(&"--remap-path-prefix=/a b=anysched"), "{flags:?}");
        assert!(flags.contains(&"--remap-path-prefix=/rust/library=library"), "{flags:?}");
        assert!(!plain.contains("sancov"), "{flags:?}");
        assert!(super::flags(&Build { checked: true, ..build }, library).contains("sancov"));
    }
}
