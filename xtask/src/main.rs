//! The project's own tasks: `cargo xtask <task>`.

mod bench;
mod circles;
mod dist;
mod docs;
mod fidelity;
mod fuzz;
mod golden;
mod hosts;
mod inputs;
mod kernels;
mod links;
mod playground;
mod python;
mod report;
mod run;
mod setup;
mod simso;
mod site;
mod style;
mod verify;

use run::{Failed, cargo, step};
use std::process::ExitCode;
use std::thread::JoinHandle;

const HELP: &str = "\
cargo xtask <task>

  ci             set up what is missing, then run every check there is  [with ANYSCHED_LONG set,
                 packages, too]
  test           unit, property, golden and documentation tests
  bless          rewrite golden results and the generated parts of the documentation, as far as
                 what they depend on has changed  [names: only tests and pages so named]
  bench          run the benchmarks and write docs/performance.md  [a group: only this table's
                 again; --quick: only run them]
  docs           rewrite the generated parts of the documentation  [--check; --only PAGE…]
                 [--kernels [HOST [PAPER]]: first make the experiments in kernels, or in one of
                 them, or those of one paper in it, or its tables, again, which takes minutes]
  hosts          build the kernels' images, boot them, and replay what their policies decided
                 [linux or xen: only that; with ANYSCHED_LONG set, everything, which takes hours;
                 --quick: what `ci` boots, of all or of these]
  fidelity       run loads in stock Linux kernels and in the simulator, and write docs/fidelity.md,
                 which takes some ten minutes  [names: only these experiments;
                 --quick: some loads in one kernel, against the tolerance]
  python         build the Python package, install it on the oldest and the newest Python there is,
                 and run its tests, type checks and notebooks  [--check: only on the newest, as
                 `ci` does; --generate: write the modules that are made from the schema]
  report         build the page of reports from `report/`  [--check: compare it with the one that
                 is there, and try reports in a browser; --pictures: make those of the README]
  playground     build the simulator as WebAssembly and the page that it is in, in
                 target/playground  [--check: also compare it with the program, and try it in a
                 browser]
  fuzz           run every fuzz target  [seconds each, default 10]
  site           build the documentation's site, target/site, with Sphinx  [--reports: with a report
                 of each paper, for which its experiments are run in their quick form]
  verify         search every short history of all policies and write docs/verification.md, which
                 takes hours  [numbers: only these tables; --quick: what `ci` searches]
  dist           make packages in target/package: the program for any Linux of this architecture, as
                 an archive and for Debian, a wheel for Python, and a container
                 [--check: and install each in a root that has nothing else, and use it there]
  style          what rustfmt and clippy do not check
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["ci"] => ci(),
        ["test"] => test(),
        ["bless", filter @ ..] => bless(filter),
        ["bench", rest @ ..] => bench::bench(rest),
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["docs", "--only", names @ ..] => docs::write_named(names),
        ["docs", "--kernels"] => setup::ensure().and_then(|()| kernels::write(None)),
        ["docs", "--kernels", host] => setup::ensure().and_then(|()| kernels::write(Some(host))),
        ["docs", "--kernels", host, paper] => {
            setup::ensure().and_then(|()| kernels::write_paper(host, paper))
        }
        ["hosts"] => {
            setup::ensure().and_then(|()| hosts::test()).and_then(|()| hosts::test_linux())
        }
        ["hosts", "--quick", names @ ..] => {
            setup::ensure().and_then(|()| hosts::test_quickly(names))
        }
        ["hosts", "linux"] => setup::ensure().and_then(|()| hosts::test_linux()),
        ["hosts", "xen"] => setup::ensure().and_then(|()| hosts::test_xen()),
        ["fidelity", "--quick"] => setup::ensure().and_then(|()| fidelity::check()),
        ["fidelity", names @ ..] => setup::ensure().and_then(|()| fidelity::write(names)),
        ["python"] => setup::ensure().and_then(|()| python::test(false)),
        ["python", "--check"] => setup::ensure().and_then(|()| python::test(true)),
        ["python", "--generate"] => python::generate(),
        ["report"] => report::write(),
        ["report", "--check"] => {
            step("build", docs::build_program).and_then(|()| step("reports", report::check))
        }
        ["report", "--pictures"] => {
            step("build", docs::build_program).and_then(|()| report::write_pictures())
        }
        ["playground"] => playground::build(),
        ["playground", "--check"] => {
            step("build", docs::build_program).and_then(|()| step("playground", playground::check))
        }
        ["fuzz"] => fuzz::run_all(10),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run_all(seconds),
            Err(_) => Err(Failed(format!("\"{seconds}\" is not a number of seconds"))),
        },
        ["site"] => setup::ensure().and_then(|()| site::build()),
        ["site", "--reports"] => setup::ensure().and_then(|()| site::build_with_reports()),
        ["verify", "--quick"] => docs::build_program().and_then(|()| verify::check()),
        ["verify", numbers @ ..] => verify::write(numbers),
        ["dist"] => setup::ensure_dist().and_then(|()| dist::dist()),
        ["dist", "--check"] => setup::ensure_packages().and_then(|()| dist::check()),
        ["style"] => style::check(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failed(format!("no task \"{}\"\n\n{HELP}", other.join(" ")))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(why)) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Everything, with the faults that are cheapest to find first.
fn ci() -> Result<(), Failed> {
    setup::ensure()?;
    // Before two processes need it.
    hosts::require_toolchain()?;
    // Built beside the other steps, which leave one core idle while a crate waits for another.
    let deny = std::thread::spawn(setup::install_deny);
    step("style", style::check)?;
    step("format", format)?;
    step("clippy", || {
        cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ])
    })?;
    step("core without std", || {
        cargo(&[
            "check",
            "--quiet",
            "-p",
            "anysched-core",
            "-p",
            "anysched-policies",
            "-p",
            "anysched-wire",
            "-p",
            "anysched-trace",
            "-p",
            "anysched-axtask",
            "-p",
            "anysched-vcpus",
            "--no-default-features",
        ])
    })?;
    step("build tests", docs::build_program)?;
    // Images are linked for minutes on one core, and most guests have one CPU: half of the work is
    // done beside them.
    let kernels =
        std::thread::spawn(|| run::beside("kernels", &["hosts", "--quick", "linux", "xen"]));
    let rest = all_but_linux_and_xen(deny);
    let kernels = kernels.join().map_err(|_| Failed("the thread of kernels panicked".into()))?;
    match (rest, kernels) {
        (Err(Failed(rest)), Err(Failed(kernels))) => Err(Failed(format!("{rest}\n{kernels}"))),
        (rest, kernels) => rest.and(kernels),
    }
}

fn all_but_linux_and_xen(deny: JoinHandle<Result<(), Failed>>) -> Result<(), Failed> {
    step("run tests", run_tests)?;
    step("programs for kernels", hosts::test_programs)?;
    step("documentation", docs::build)?;
    step("generated documentation", docs::check)?;
    step("site", site::build)?;
    step("short histories", verify::check)?;
    step("reports in a browser", report::check)?;
    step("playground in a browser", playground::check)?;
    step("fuzz targets", || fuzz::run_all(5))?;
    hosts::test_quickly(&["arceos"])?;
    python::test(true)?;
    step("licences and sources", || {
        deny.join().map_err(|_| Failed("the installation of cargo-deny panicked".into()))??;
        setup::deny()
    })?;
    step("benchmarks compile", || {
        cargo(&[
            "bench",
            "--workspace",
            "--all-features",
            "--no-run",
            "--quiet",
            "--profile",
            "test",
        ])
    })?;
    // Packages are optimised across crates, which takes half an hour.
    match std::env::var_os("ANYSCHED_LONG") {
        Some(_) => setup::ensure_packages().and_then(|()| dist::check()),
        None => Ok(()),
    }
}

/// File by file: `cargo fmt` does not find modules that macros declare.
fn format() -> Result<(), Failed> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"];
    let listed = run::output(&mut run::command("git", &list))?;
    let files: Vec<&str> = listed.lines().collect();
    let args = ["--edition", "2024", "--check"];
    run::run(&mut run::command("rustfmt", &[&args[..], &files].concat()))
}

/// With all features, as the documentation's program is built: one build serves both.
fn test() -> Result<(), Failed> {
    step("build tests", docs::build_program)?;
    step("run tests", run_tests)
}

fn run_tests() -> Result<(), Failed> {
    cargo(&["test", "--workspace", "--all-features", "--quiet"])
}

fn bless(names: &[&str]) -> Result<(), Failed> {
    step("build", docs::build_program)?;
    step("golden results", || golden::bless(names))?;
    step("documentation", || docs::write_named(names))
}
