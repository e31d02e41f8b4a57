//! SimSo, a simulator of real-time scheduling in Python, on the load of the benchmark
//! `dispatches`.

use crate::run::{Failed, cargo_command, command, output, root, run};
use std::path::Path;

/// The packages. SimPy has the one version that SimSo requires.
const PACKAGES: [&str; 2] = ["simso==0.8.5", "SimPy==2.3.1"];

/// SimSo's fastest schedulers on this load among those that serve several processors from one
/// queue: rate monotonic, and the faster of two forms of earliest deadline first.
const SCHEDULERS: [&str; 2] = ["RM", "EDF2"];

/// Simulated time for each scheduler; this takes some 5 s.
pub const MILLISECONDS: &str = "1000";

/// Tasks and CPUs, as in the benchmark.
const LOAD: [&str; 2] = ["100", "4"];

/// What was measured.
#[derive(Debug, PartialEq)]
pub struct SimSo {
    pub version: String,
    pub python: String,
    pub rows: Vec<Row>,
}

/// One scheduler.
#[derive(Debug, PartialEq)]
pub struct Row {
    pub scheduler: String,
    pub dispatches: u64,
    pub jobs: u64,
    /// Of CPU time.
    pub seconds: f64,
}

impl Row {
    /// CPU time per dispatch.
    pub fn ns(&self) -> f64 {
        self.seconds * 1e9 / self.dispatches as f64
    }
}

/// Measures SimSo, or says why it cannot be measured here.
///
/// Errors: SimSo is installed but fails.
pub fn measure() -> Result<Result<SimSo, String>, Failed> {
    let python = match install() {
        Ok(python) => python,
        Err(Failed(why)) => {
            println!("SimSo is not measured: {why}");
            return Ok(Err(why));
        }
    };
    let mut periodic = vec!["run", "--quiet", "--profile", "bench", "-p", "anysched-bench"];
    periodic.extend(["--bin", "periodic", "--"]);
    periodic.extend(LOAD);
    let tasks = root().join("target/tools/periodic.csv");
    let text = output(&mut cargo_command(&periodic))?;
    std::fs::write(&tasks, text)
        .map_err(|error| Failed(format!("{}: {error}", tasks.display())))?;
    let tasks = tasks.to_string_lossy().into_owned();
    let mut script = command(&python, &["bench/simso_speed.py", &tasks, LOAD[1], MILLISECONDS]);
    let printed = output(script.args(SCHEDULERS))?;
    parse(&printed)
        .map(Ok)
        .ok_or_else(|| Failed(format!("bench/simso_speed.py printed \"{printed}\"")))
}

fn parse(printed: &str) -> Option<SimSo> {
    let mut lines = printed.lines();
    let (version, python) = lines.next()?.split_once(' ')?;
    let row = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [scheduler, dispatches, jobs, seconds] = words[..] else { return None };
        Some(Row {
            scheduler: scheduler.to_owned(),
            dispatches: dispatches.parse().ok()?,
            jobs: jobs.parse().ok()?,
            seconds: seconds.parse().ok()?,
        })
    };
    let rows: Option<Vec<Row>> = lines.map(row).collect();
    Some(SimSo { version: version.to_owned(), python: python.to_owned(), rows: rows? })
}

/// Installs SimSo into its own virtual environment, once; returns its Python.
fn install() -> Result<String, Failed> {
    let folder = root().join("target/tools/simso");
    let python = folder.join("bin/python").to_string_lossy().into_owned();
    if Path::new(&python).exists()
        && output(&mut command(&python, &["-c", "import simso.core"])).is_ok()
    {
        return Ok(python);
    }
    let Some(base) = ["python3.11", "python3"].into_iter().find(|name| runs_simso(name)) else {
        let why = "it needs Python 3.11 or older, because it imports `imp`, with `venv`; neither \
                   `python3.11` nor `python3` is one; on Debian 12: apt-get install python3-venv";
        return Err(Failed(why.into()));
    };
    println!("installing {} into target/tools/simso", PACKAGES.join(" and "));
    let folder = folder.to_string_lossy();
    run(&mut command(base, &["-m", "venv", "--clear", &folder]))?;
    run(command(&python, &["-m", "pip", "install", "--quiet"]).args(PACKAGES))?;
    Ok(python)
}

/// Whether this Python exists, is old enough, and can create virtual environments.
fn runs_simso(name: &str) -> bool {
    let test = "import ensurepip, imp, venv";
    let mut command = command(name, &["-W", "ignore", "-c", test]);
    command.stderr(std::process::Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_prints_is_read() {
        let simso = parse("0.8.5 3.11.7\nRM 200 120 0.05\n").unwrap();
        let row = Row { scheduler: "RM".into(), dispatches: 200, jobs: 120, seconds: 0.05 };
        assert_eq!(row.ns(), 250_000.0);
        let expected = SimSo { version: "0.8.5".into(), python: "3.11.7".into(), rows: vec![row] };
        assert_eq!(simso, expected);
        assert_eq!(parse("0.8.5 3.11.7\nRM 200 0.05\n"), None);
        assert_eq!(parse(""), None);
    }
}
