//! Kernels: builds their images, boots them, and checks their policies against the ones here.

use crate::kernels;
use crate::run::{Failed, cargo, command, output, run};

/// The images' compilation target.
const TARGET: &str = "x86_64-unknown-none";

/// Runs the tests that boot kernels, which ordinary test runs skip.
pub fn test() -> Result<(), Failed> {
    require_target()?;
    // For the whole workspace, as in other test runs: a single package would be rebuilt with
    // different features.
    let tests = ["--test", "arceos", "--test", "udp"];
    let all = ["test", "--quiet", "--workspace", "--all-features"];
    cargo(&[&all[..], &tests[..], &["--", "--ignored"]].concat())?;
    kernels::check()
}

/// Checks what runs in the user space of kernels, as far as that can be done on this computer.
pub fn test_programs() -> Result<(), Failed> {
    let manifest = ["--manifest-path", "hosts/linux/Cargo.toml"];
    let packages = ["--package", "anysched-programs", "--package", "anysched-linux-guest"];
    let all = [&manifest[..], &packages[..], &["--quiet", "--locked", "--all-targets"]].concat();
    cargo(&[&["clippy"][..], &all, &["--", "-D", "warnings"]].concat())?;
    cargo(&[&["test"][..], &all].concat())
}

/// Adds the target to the toolchain if it is missing.
fn require_target() -> Result<(), Failed> {
    let known = output(&mut command("rustc", &["--print", "target-libdir", "--target", TARGET]))?;
    if std::path::Path::new(known.trim()).is_dir() {
        return Ok(());
    }
    println!("adding the compiler's target {TARGET}");
    run(&mut command("rustup", &["target", "add", TARGET])).map_err(|Failed(why)| {
        Failed(format!("{why}; the target is needed: rustup target add {TARGET}"))
    })
}
