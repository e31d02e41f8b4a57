//! Programs of Debian's packages, and what they have measured.
//!
//! Arguments: `args`, those of the program, quoted as in a shell, in place of the usual ones;
//! `burners`, how many processes compute beside it. `file` of rt-app is read by the host, which
//! puts it in the guest's files.
//!
//! Values: `elapsed_ns`, how long it ran, and what it says of itself. A program that fails is an
//! error with what it said last. Its output waits in a file: nobody reads it meanwhile.

mod cyclictest;
mod decimal;
mod rt_app;
mod stress;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use anysched_programs::{Kernel, Summary, argument, text};

use super::command::prose;
use super::latency::spin;
use crate::kernel::Linux;
use crate::machine::refuse;
use crate::process::Process;
use crate::report::value;

/// Measured numbers, by name.
type Values = Vec<(String, u64)>;

/// A program of a package.
struct Packaged {
    name: &'static str,
    /// Its arguments, unless others are given.
    usual: &'static str,
    /// Arguments that it always has, in front of the others.
    always: &'static [&'static str],
    /// What it has measured, of what it printed with all its arguments.
    values: fn(&str, &[String]) -> Values,
    /// Whether a line is for people.
    is_prose: fn(&str) -> bool,
}

const PACKAGED: [Packaged; 5] = [
    Packaged {
        name: "cyclictest",
        usual: "-l 500 -i 1000 -h 20000",
        // Without tuning the machine and, before that, looking for how.
        always: &["-q", "--default-system"],
        values: cyclictest::values,
        is_prose: |line| !cyclictest::is_histogram(line),
    },
    Packaged {
        name: "hackbench",
        usual: "-g 2 -f 5 -l 50",
        always: &[],
        values: stress::hackbench,
        is_prose: |_| true,
    },
    Packaged {
        name: "rt-app",
        usual: rt_app::FILE,
        always: &[],
        values: rt_app::values,
        is_prose: |line| !line.is_empty(),
    },
    Packaged {
        name: "stress-ng",
        usual: "--cpu 4 --cpu-method int64 --timeout 1",
        always: &["--metrics-brief", "--no-rand-seed"],
        values: stress::stress_ng,
        is_prose: |_| true,
    },
    Packaged {
        name: "sysbench",
        usual: "cpu --threads=4 --cpu-max-prime=2000 --time=1 run",
        always: &["--rand-seed=1"],
        values: stress::sysbench,
        is_prose: |line| !line.is_empty(),
    },
];

/// Where programs run, and what they print is.
const DIRECTORY: &str = "/tmp/program";
const OUTPUT: &str = "/tmp/output";

/// Runs the program of this name; `false` if there is none.
pub fn run(name: &str) -> bool {
    let Some(packaged) = PACKAGED.iter().find(|packaged| packaged.name == name) else {
        return false;
    };
    let given = text::<Linux>("args").unwrap_or(packaged.usual);
    let Some(arguments) = shlex::split(given) else {
        refuse(format_args!("`args` = \"{given}\": a quotation has no end"));
    };
    let mut command = Command::new(format!("/usr/bin/{name}"));
    command.args(packaged.always).args(&arguments).current_dir(DIRECTORY);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    let burners = argument::<Linux>("burners", 0);
    let prepared = fs::create_dir_all(DIRECTORY).and_then(|()| {
        if name == "rt-app" {
            rt_app::prepare()?;
        }
        let output = File::create(OUTPUT)?;
        command.stdout(output.try_clone()?).stderr(output);
        Ok(())
    });
    if let Err(error) = prepared {
        refuse(format_args!("the files of {name}: {error}"));
    }
    let burners: Vec<Process> = (0..burners).map(|_| Process::start(spin)).collect();
    let start = Linux::now();
    let status = command.status();
    let elapsed = Linux::now() - start;
    burners.into_iter().for_each(Process::kill);
    let output = fs::read(OUTPUT).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    show(packaged, status, &output);
    value("elapsed_ns", elapsed);
    for (name, number) in (packaged.values)(&output, &arguments) {
        value(&name, number);
    }
    true
}

/// Shows what the program has said. The guest refuses to run if it has failed.
fn show(packaged: &Packaged, status: io::Result<ExitStatus>, output: &str) {
    let name = packaged.name;
    for line in output.lines().filter(|line| (packaged.is_prose)(line)) {
        let _ = writeln!(io::stdout(), "{}", prose(line.as_bytes()));
    }
    let status = match status {
        Ok(status) => status,
        Err(error) => refuse(format_args!("{name}: {error}")),
    };
    if !status.success() {
        let last = output.lines().rev().find(|line| !line.trim().is_empty());
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("status {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        refuse(format_args!("{name} has ended with {how}: {}", last.unwrap_or("nothing said")));
    }
}

/// Values of a distribution in nanoseconds: `WHAT_mean_ns` and so on.
fn distribution(what: &str, samples: Vec<u64>) -> Values {
    let Some(summary) = Summary::of(samples) else { return Values::new() };
    let mut values = vec![
        (format!("{what}_mean_ns"), summary.mean()),
        (format!("{what}_max_ns"), summary.max()),
    ];
    for percent in [50, 90, 99] {
        values.push((format!("{what}_p{percent}_ns"), summary.percentile(percent)));
    }
    values.push((format!("{what}_count"), summary.count()));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_arguments_are_words() {
        for packaged in &PACKAGED {
            assert!(shlex::split(packaged.usual).is_some_and(|words| !words.is_empty()));
        }
    }

    #[test]
    fn output_of_no_program_has_no_values() {
        for packaged in &PACKAGED {
            let said = "nothing\n of: this 1.5 means anything\n";
            assert_eq!((packaged.values)(said, &[]), []);
        }
    }
}
