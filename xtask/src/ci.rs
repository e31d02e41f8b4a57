//! Everything that is checked, with the faults that are cheapest to find first.

use crate::run::{Failed, beside, cargo, command, output, run, step};
use crate::{docs, fuzz, hosts, playground, python, report, setup, site, style, verify};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A part of the checks, which needs no other.
type Part = (&'static str, fn() -> Result<(), Failed>);

/// What is done once everything is built: tests first, then what takes longest, so that at the end
/// there are short parts for whoever is idle.
const PARTS: [Part; 13] = [
    ("tests", || step("run tests", run_tests)),
    ("linux", || hosts::test_quickly(&["linux"])),
    ("arceos", || hosts::test_quickly(&["arceos"])),
    ("docs", || step("generated documentation", docs::check)),
    ("xen", || hosts::test_quickly(&["xen"])),
    ("fuzz", || step("fuzz targets", || fuzz::run_all(3))),
    ("pages", pages),
    ("licences", || step("licences and sources", setup::deny)),
    ("python", || python::test(true)),
    ("histories", || step("short histories", verify::check)),
    ("programs", || step("programs for kernels", hosts::test_programs)),
    ("api", || step("documentation of the API", docs::build)),
    ("benchmarks", || step("benchmarks compile", compile_benchmarks)),
];

/// All checks. What has to be built for most of them comes first.
pub fn all() -> Result<(), Failed> {
    // What cannot be installed is said at the beginning.
    let missing = setup::missing()?;
    // Sources are checked with nothing but Rust, and most of installing is waiting for the network
    // and the disk.
    let (installed, checked) = std::thread::scope(|scope| {
        let installing = scope.spawn(|| step("set up", || set_up(&missing)));
        let checked = check_sources();
        let panicked = |_| Err(Failed("the thread that sets up panicked".into()));
        (installing.join().unwrap_or_else(panicked), checked)
    });
    checked.and(installed)?;
    step("build tests", docs::build_program)?;
    all_parts()?;
    // Packages are optimised across crates, which takes half an hour.
    match std::env::var_os("ANYSCHED_LONG") {
        Some(_) => setup::ensure_packages().and_then(|()| crate::dist::check()),
        None => Ok(()),
    }
}

/// Before two processes need it.
fn set_up(missing: &setup::Packages) -> Result<(), Failed> {
    missing.install()?;
    hosts::require_toolchain()?;
    playground::require_toolchain()
}

fn check_sources() -> Result<(), Failed> {
    step("style", style::check)?;
    step("format", format)?;
    step("clippy", clippy)?;
    step("core without std", check_without_std)
}

/// All parts, as many at a time as there are cores: images are linked for minutes on one core, and
/// most guests have one CPU. With one more, each took a quarter more CPU time. After a failure none
/// is begun.
fn all_parts() -> Result<(), Failed> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let failures = Mutex::new(Vec::new());
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || {
        while !is_over.load(Ordering::Relaxed)
            && let Some((name, _)) = PARTS.get(next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(Failed(why)) = beside(name, &["ci", name]) {
                is_over.store(true, Ordering::Relaxed);
                failures.lock().unwrap_or_else(PoisonError::into_inner).push(why);
            }
        }
    };
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(worker))));
    match failures.into_inner().unwrap_or_else(PoisonError::into_inner) {
        failures if failures.is_empty() => Ok(()),
        failures => Err(Failed(failures.join("\n"))),
    }
}

/// One of the parts.
pub fn part(name: &str) -> Result<(), Failed> {
    setup::ensure()?;
    match PARTS.iter().find(|(known, _)| *known == name) {
        Some((_, check)) => check(),
        None => {
            let known = PARTS.map(|(name, _)| name).join(", ");
            Err(Failed(format!("no part \"{name}\"; there are {known}")))
        }
    }
}

fn clippy() -> Result<(), Failed> {
    let all = ["clippy", "--workspace", "--all-targets", "--all-features", "--quiet"];
    cargo(&[&all[..], &["--", "-D", "warnings"]].concat())
}

fn check_without_std() -> Result<(), Failed> {
    let names = ["core", "policies", "wire", "trace", "axtask", "vcpus"];
    let names = names.map(|name| format!("anysched-{name}"));
    let packages = names.iter().flat_map(|name| ["-p", name]);
    let all: Vec<&str> =
        ["check", "--quiet", "--no-default-features"].into_iter().chain(packages).collect();
    cargo(&all)
}

/// File by file: `cargo fmt` does not find modules that macros declare.
fn format() -> Result<(), Failed> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"];
    let listed = output(&mut command("git", &list))?;
    let files: Vec<&str> = listed.lines().collect();
    let args = ["--edition", "2024", "--check"];
    run(&mut command("rustfmt", &[&args[..], &files].concat()))
}

/// The tests that [`docs::build_program`] has built.
pub fn run_tests() -> Result<(), Failed> {
    cargo(&["test", "--workspace", "--all-features", "--quiet"])
}

/// What is in a browser. One after another: each fetches what pages are built from.
fn pages() -> Result<(), Failed> {
    step("site", site::build)?;
    step("reports in a browser", report::check)?;
    step("playground in a browser", playground::check)
}

fn compile_benchmarks() -> Result<(), Failed> {
    let all = ["bench", "--workspace", "--all-features", "--no-run", "--quiet"];
    cargo(&[&all[..], &["--profile", "test"]].concat())
}
