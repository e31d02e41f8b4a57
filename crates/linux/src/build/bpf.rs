//! The BPF programs that hand sched_ext's calls to the module, or decide themselves.

use super::Build;
use super::step::{files, run, step};
use crate::BootError;
use std::path::{Path, PathBuf};

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
        let settings = format!("{} {}", build.suite.kernel, FLAGS.join(" "));
        step(&object, &settings, &inputs, |new| {
            let mounts = [(sources.as_path(), "/work"), (directory.as_path(), "/out")];
            let mut clang = build.suite.root.command("clang", &mounts)?;
            clang.args(FLAGS).arg("-c").arg(Path::new("/work").join(name));
            clang.arg("-o").arg(Path::new("/out").join(new.file_name().unwrap_or_default()));
            run(clang, "clang").map(drop)
        })?;
        objects.push(object);
    }
    Ok(objects)
}
