//! The project's own tasks: `cargo xtask <task>`.

mod bench;
mod ci;
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
mod noted;
mod playground;
mod python;
mod report;
mod run;
mod setup;
mod simso;
mod site;
mod style;
mod verify;

use run::{Failed, step};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <task>

  ci             set up what is missing, then run every check there is  [with ANYSCHED_LONG set,
                 packages, too; the name of a part: only this]
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
        ["ci"] => ci::all(),
        ["ci", part] => ci::part(part),
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

/// With all features, as the documentation's program is built: one build serves both.
fn test() -> Result<(), Failed> {
    step("build tests", docs::build_program)?;
    step("run tests", ci::run_tests)
}

fn bless(names: &[&str]) -> Result<(), Failed> {
    step("build", docs::build_program)?;
    step("golden results", || golden::bless(names))?;
    step("documentation", || docs::write_named(names))
}
