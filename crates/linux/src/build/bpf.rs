//! The BPF programs that hand sched_ext's calls to the module, or decide themselves.

use super::Build;
use crate::BootError;
use anysched_debian::step::{files, step};
use std::path::PathBuf;

const FLAGS: [&str; 8] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-Wall",
    "-Wno-missing-declarations",
    "-D__TARGET_ARCH_x86",
];

/// Compiles every `*.bpf.c`.
pub(super) fn build(build: &Build<'_>) -> Result<Vec<PathBuf>, BootError> {
    let sources = build.sources.join("bpf");
    let inputs = files(&sources, "")?;
    let directory = build.of_kernel("bpf");
    let mut objects = Vec::new();
    for source in files(&sources, ".bpf.c")? {
        let name = source.file_name().unwrap_or_default();
        let object = directory.join(name).with_extension("o");
        let settings = format!("{} {}", build.kernel, FLAGS.join(" "));
        step(&object, &settings, &inputs, |new| {
            let mounts = [(sources.as_path(), "/work"), (directory.as_path(), "/out")];
            let mut clang = build.tools.tool("clang", &mounts)?;
            let (source, new) = (clang.seen(&source), clang.seen(new));
            clang.command.args(FLAGS).arg("-c").arg(source).arg("-o").arg(new);
            clang.run().map(drop)
        })?;
        objects.push(object);
    }
    Ok(objects)
}

/// The program that asks the module for every decision.
pub(super) fn of_policies(objects: &[PathBuf]) -> Result<PathBuf, BootError> {
    named(objects, "anysched.bpf.o")
}

/// The program that asks an agent.
pub(super) fn of_agent(objects: &[PathBuf]) -> Result<PathBuf, BootError> {
    named(objects, "agent.bpf.o")
}

fn named(objects: &[PathBuf], name: &str) -> Result<PathBuf, BootError> {
    let found = objects.iter().find(|object| object.ends_with(name));
    found.cloned().ok_or_else(|| BootError::files(name, "there are no sources of it"))
}
