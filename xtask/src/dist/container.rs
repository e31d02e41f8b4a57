//! The container: the program with what hosts need.

use super::{QUICKSTART, about, require_table};
use crate::run::{Failed, command, output, root, run};
use std::fs;
use std::path::Path;

/// Its name where it is made, and where it comes from.
pub(super) const FILE: &str = "Containerfile";
const SOURCE: &str = "xtask/src/dist/Containerfile";

/// What users do with it.
pub(super) const HOW: &str = "podman build --tag anysched target/package";

/// Its name, and that of the root that it is built on here.
const IMAGE: &str = "localhost/anysched";
const BASE: &str = "localhost/anysched-base";

/// The release of Debian that the file names; rustup is a package there.
const SUITE: &str = "trixie";

/// Puts the file beside the packages that it takes.
pub(super) fn write(folder: &Path) -> Result<(), Failed> {
    let from = root().join(SOURCE);
    fs::copy(&from, folder.join(FILE)).map(drop).map_err(|error| about(&from, &error))
}

/// Builds it on Debian's own packages, runs the quickstart in it, and boots a kernel from a copy
/// of the repository.
pub(super) fn check(folder: &Path) -> Result<(), Failed> {
    base()?;
    // Whatever certificates this machine trusts.
    let certificates = "/etc/ssl/certs:/etc/ssl/certs:ro";
    let build = ["build", "--quiet", "--isolation", "chroot", "--network", "host", "--build-arg"];
    let from = format!("BASE={BASE}");
    let folder = folder.to_string_lossy();
    let rest = [&from, "--volume", certificates, "--tag", IMAGE, folder.as_ref()];
    run(&mut command("buildah", &[&build[..], &rest].concat()))?;
    let container = output(&mut command("buildah", &["from", IMAGE]))?;
    let container = container.trim();
    let tried = try_in(container, certificates);
    let removed = run(&mut command("buildah", &["rm", container]));
    tried.and(removed)
}

/// An image with Debian at its smallest, by the package lists of this machine.
fn base() -> Result<(), Failed> {
    let made = tempfile::tempdir().map_err(|error| about(Path::new("/tmp"), &error))?;
    let archive = made.path().join("root.tar");
    let archive = archive.to_string_lossy();
    let root = ["--quiet", "--variant=apt", "--include=ca-certificates", SUITE, &archive];
    run(&mut command("mmdebstrap", &root))?;
    let empty = output(&mut command("buildah", &["from", "scratch"]))?;
    let empty = empty.trim();
    run(&mut command("buildah", &["add", "--quiet", empty, &archive, "/"]))?;
    run(&mut command("buildah", &["commit", "--quiet", "--rm", empty, BASE]))
}

fn try_in(container: &str, certificates: &str) -> Result<(), Failed> {
    // What was built outside has other paths in it.
    let copy = tempfile::tempdir().map_err(|error| about(Path::new("/tmp"), &error))?;
    let [from, to] = [root(), copy.path().to_path_buf()].map(|path| path.display().to_string());
    run(&mut command("git", &["clone", "--quiet", &from, &to]))?;
    let repository = format!("{to}:/work");
    let common = ["run", "--isolation", "chroot", "--network", "host", "--volume", certificates];
    let inside = |args: &[&str]| {
        let which = ["--volume", &repository, container, "--", "anysched"];
        output(&mut command("buildah", &[&common[..], &which, args].concat()))
    };
    let table = inside(&QUICKSTART)?;
    require_table(&table)?;
    let booted = inside(&["boot", "arceos", "--policy", "rr", "--app", "yield"])?;
    match booted.lines().any(|line| line.starts_with("rr ")) {
        true => Ok(()),
        false => Err(Failed(format!("the boot has no line for rr:\n{booted}"))),
    }
}
