//! The module, built by kbuild from the kernel's headers.

use super::Build;
use crate::BootError;
use anysched_debian::step::{copy_changed, files, step};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Builds the module around `policies`.
pub(super) fn build(build: &Build<'_>, policies: &Path) -> Result<PathBuf, BootError> {
    let mut inputs = files(&build.sources.join("module"), "")?;
    inputs.push(policies.into());
    let directory = build.of_kernel("module");
    let module = directory.join("anysched.ko");
    step(&module, build.kernel, &inputs, |new| {
        let work = directory.join("kbuild");
        fs::create_dir_all(&work).map_err(|error| BootError::files(work.display(), error))?;
        for input in &inputs {
            copy_changed(input, &work.join(input.file_name().unwrap_or_default()))?;
        }
        let mounts = [(work.as_path(), "/work"), (directory.as_path(), "/out")];
        let mut make = build.tools.tool("make", &mounts)?;
        let mut sources = OsString::from("M=");
        sources.push(make.seen(&work));
        make.command.args(["-s", "-C", build.headers]).arg(sources).arg("modules");
        if build.is_of_clang() {
            make.command.arg("LLVM=1");
        }
        make.run()?;
        // What the kernel needs to know of types (BTF) is no debugging information to strip.
        let mut strip = build.tools.tool("strip", &mounts)?;
        let (built, new) = (strip.seen(&work.join("anysched.ko")), strip.seen(new));
        strip.command.args(["-g", "-o"]).arg(new).arg(built);
        strip.run().map(drop)
    })?;
    Ok(module)
}
