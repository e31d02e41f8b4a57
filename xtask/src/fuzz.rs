//! Fuzzes every parser with libFuzzer, on the stable compiler.

use crate::run::{Failed, cargo_command, command, root, run};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Coverage instrumentation is an LLVM pass that stable rustc can enable; libFuzzer itself comes
/// with the crate `libfuzzer-sys`.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cdebug-assertions --cfg fuzzing";

/// Runs each target over its corpus and then for `seconds` more.
pub fn run_all(seconds: u32) -> Result<(), Failed> {
    let folder = root().join("fuzz");
    let target = folder.join("target");
    let triple = "x86_64-unknown-linux-gnu";
    let mut build = cargo_command(&["build", "--release", "--quiet", "--target", triple]);
    run(build.current_dir(&folder).env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", &target))?;
    let mut names: Vec<String> = std::fs::read_dir(folder.join("fuzz_targets"))
        .map_err(|error| Failed(format!("fuzz/fuzz_targets: {error}")))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err(Failed("fuzz/fuzz_targets holds no target".into()));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_one(&folder, &target.join(triple).join("release"), name, seconds)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let panicked = |_| Err(Failed("a fuzz target's thread panicked".into()));
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(panicked))
    })
}

fn run_one(folder: &Path, programs: &Path, name: &str, seconds: u32) -> Result<(), Failed> {
    let corpus = format!("corpus/{name}");
    let artifacts = format!("-artifact_prefix=artifacts/{name}-");
    let _ = std::fs::create_dir_all(folder.join("artifacts"));
    // New inputs go to a separate folder, so that a run changes no file of the project.
    let found = folder.join("target/found").join(name);
    std::fs::create_dir_all(&found)
        .map_err(|error| Failed(format!("{}: {error}", found.display())))?;
    let time = format!("-max_total_time={seconds}");
    let found = found.to_string_lossy().into_owned();
    let args =
        [&found, &corpus, &time, &artifacts, "-rss_limit_mb=2048", "-verbosity=0", "-seed=1"];
    println!("fuzzing {name} for {seconds} s");
    run(command(&programs.join(name).to_string_lossy(), &args).current_dir(folder))
}
