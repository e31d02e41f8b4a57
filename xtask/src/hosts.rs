//! Kernels: builds their images, boots them, and checks their policies against the ones here.

use crate::fidelity;
use crate::kernels;
use crate::run::{Failed, cargo, command, output, run, step};
use std::path::Path;

/// The target of kernels, and that of a guest's programs.
const TARGETS: [&str; 2] = ["x86_64-unknown-none", "x86_64-unknown-linux-musl"];

/// Runs the tests that boot kernels, which ordinary test runs skip.
pub fn test() -> Result<(), Failed> {
    require_toolchain()?;
    boot(&["arceos", "udp"], &[])?;
    kernels::check()
}

/// A kernel, and what a full check does with it.
type Quick = (&'static str, fn() -> Result<(), Failed>);

const QUICK: [Quick; 3] =
    [("arceos", test), ("linux", test_linux_quickly), ("xen", test_xen_quickly)];

/// What a full check boots: of kernels called so, or of all if none is named.
pub fn test_quickly(names: &[&str]) -> Result<(), Failed> {
    if let Some(other) = names.iter().find(|name| QUICK.iter().all(|(known, _)| known != *name)) {
        let known = QUICK.map(|(known, _)| known).join(", ");
        return Err(Failed(format!("no kernel \"{other}\"; there are {known}")));
    }
    let wanted = |(name, _): &&Quick| names.is_empty() || names.contains(name);
    QUICK.iter().filter(wanted).try_for_each(|(name, test)| step(name, test))
}

/// As [`test()`], of Linux: of agents, attaching and traces those whose names begin with `quick_`.
fn test_linux_quickly() -> Result<(), Failed> {
    require_toolchain()?;
    // A boot keeps one core busy, and some of these tests make one at a time.
    let beside = std::thread::spawn(|| {
        boot(&["agent", "attach", "trace"], &["quick_"]).and_then(|()| fidelity::check())
    });
    let tested = boot(&["linux"], &[]);
    let beside = beside.join().map_err(|_| Failed("a thread of Linux's tests panicked".into()))?;
    tested.and(beside)
}

/// As [`test()`], all of Linux.
pub fn test_linux() -> Result<(), Failed> {
    require_toolchain()?;
    boot(&["linux", "agent", "attach", "trace"], &[])?;
    fidelity::check()?;
    kernels::check_linux()
}

/// As [`test()`], of Xen those whose names begin with `quick_`.
fn test_xen_quickly() -> Result<(), Failed> {
    require_toolchain()?;
    boot(&["xen", "xen_trace"], &["quick_"])
}

/// As [`test()`], of Xen.
pub fn test_xen() -> Result<(), Failed> {
    require_toolchain()?;
    boot(&["xen", "xen_trace"], &[])
}

/// Runs the tests of these files that boot kernels and, if `only` says so, whose names have one of
/// its parts.
fn boot(names: &[&str], only: &[&str]) -> Result<(), Failed> {
    // For the whole workspace, as in other test runs: a single package would be rebuilt with
    // different features.
    let all = ["test", "--quiet", "--workspace", "--all-features"];
    let tests: Vec<&str> = names.iter().flat_map(|name| ["--test", name]).collect();
    cargo(&[&all[..], &tests, &["--", "--ignored"], only].concat())
}

/// Checks what runs in the user space of kernels, as far as that can be done on this computer.
pub fn test_programs() -> Result<(), Failed> {
    let linux = ["--package", "anysched-programs", "--package", "anysched-linux-guest"];
    let xen = ["--package", "anysched-xen-dom0"];
    for (workspace, packages) in [("linux", &linux[..]), ("xen", &xen)] {
        let manifest = format!("hosts/{workspace}/Cargo.toml");
        let manifest = ["--manifest-path", manifest.as_str()];
        let all = [&manifest[..], packages, &["--quiet", "--locked", "--all-targets"]].concat();
        cargo(&[&["clippy"][..], &all, &["--", "-D", "warnings"]].concat())?;
        cargo(&[&["test"][..], &all].concat())?;
    }
    lint_xen()
}

/// Checks what of Xen's end runs on nothing: the policies in the hypervisor, and the small guest.
fn lint_xen() -> Result<(), Failed> {
    let packages = ["--package", "anysched-xen-policies", "--package", "anysched-xen-guest"];
    let target = ["--manifest-path", "hosts/xen/Cargo.toml", "--target", TARGETS[0]];
    let quiet = ["--quiet", "--locked", "--", "-D", "warnings"];
    cargo(&[&["clippy"][..], &target, &packages, &quiet].concat())
}

/// Adds to the toolchain what is missing: targets, and the library's sources, which are compiled
/// anew for the inside of a kernel.
pub fn require_toolchain() -> Result<(), Failed> {
    TARGETS.into_iter().try_for_each(require_target)?;
    let root = output(&mut command("rustc", &["--print", "sysroot"]))?;
    if !Path::new(root.trim()).join("lib/rustlib/src/rust/library").is_dir() {
        add("component", "rust-src")?;
    }
    Ok(())
}

/// Adds a target to the toolchain if it is missing.
pub fn require_target(target: &str) -> Result<(), Failed> {
    let ask = ["--print", "target-libdir", "--target", target];
    match Path::new(output(&mut command("rustc", &ask))?.trim()).is_dir() {
        true => Ok(()),
        false => add("target", target),
    }
}

fn add(kind: &str, name: &str) -> Result<(), Failed> {
    println!("adding to the toolchain: {name}");
    run(&mut command("rustup", &[kind, "add", name]))
        .map_err(|Failed(why)| Failed(format!("{why}; it is needed: rustup {kind} add {name}")))
}
