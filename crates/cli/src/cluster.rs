//! Runs on the workers of a cluster, which the Python package hands out: nothing distributed is
//! written here.
//!
//! A process of Python gets the experiment and the numbers of the runs that are missing, and writes
//! runs as they come back, a line each, as a file of runs has them.

use crate::choose::Changes;
use crate::output::Failure;
use crate::progress;
use anysched_host::{Host, HostInfo};
use anysched_lab::{Experiment, Journal, Plan};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The variable that names the Python which has the package; without it, the one that `python3` is.
const PYTHON: &str = "ANYSCHED_PYTHON";

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// The scheduler of a Dask cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    address: String,
}

impl FromStr for Cluster {
    type Err = String;

    fn from_str(text: &str) -> Result<Cluster, String> {
        match text.split_once(':') {
            Some(("dask", address)) if address.contains("://") => {
                Ok(Cluster { address: address.to_string() })
            }
            _ => Err("it is the address of a Dask scheduler: dask:tcp://HOST:PORT".to_string()),
        }
    }
}

impl Cluster {
    /// What the workers are told of an experiment that is to be changed.
    ///
    /// Errors: workers have no such host.
    pub fn job(
        &self,
        experiment: &Experiment,
        changes: &Changes,
        host: &HostInfo,
    ) -> Result<Job, Failure> {
        if !crate::hosts::is_usual(host) {
            let why = format!("workers run {} only, not {}", crate::hosts::usual(), host.name);
            return Err(Failure::from(format!("--on: {why}")));
        }
        let path = std::path::absolute(experiment.path())
            .map_err(|error| format!("{}: {error}", experiment.path().display()))?;
        let policies = match &changes.policies[..] {
            [] => Value::Null,
            // A list in TOML, which as one of texts is the same as in JSON.
            names => Value::from(list(names)),
        };
        Ok(Job(json!({
            "address": self.address,
            "text": experiment.text(),
            "path": path,
            "changes": {
                "quick": false,
                "policies": policies,
                "settings": changes.settings,
                "sweep": changes.axes,
                "by": changes.by,
                "seeds": changes.seeds,
            },
        })))
    }
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| Value::from(&**name).to_string()).collect();
    format!("[{}]", quoted.join(", "))
}

/// An experiment that workers make.
#[derive(Debug)]
pub struct Job(Value);

impl Job {
    /// Makes the runs that `journal` does not have, and adds them to it. Ends early, without an
    /// error, when `cancel` is true.
    ///
    /// Errors: Python, the package or the cluster is not there, or a run failed, which the other
    /// process says.
    pub fn make(
        mut self,
        plan: &Plan,
        host: &dyn Host,
        journal: &mut Journal,
        cancel: &AtomicBool,
    ) -> Result<(), Failure> {
        let missing = plan.missing(host, journal)?;
        if missing.is_empty() {
            return Ok(());
        }
        let ends = |range: &Range<usize>| json!([range.start, range.end]);
        self.0["missing"] = missing.iter().map(ends).collect();
        self.0["spec_hash"] = Value::from(plan.spec_hash());
        let python = std::env::var(PYTHON).unwrap_or_else(|_| "python3".to_string());
        let failed = |error| format!("--on: {python}: {error}; {PYTHON} names another Python");
        let mut child = Command::new(&python)
            .args(["-m", "anysched.on_cluster"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let taken = self.take(&mut child, plan, journal, cancel);
        if taken.is_err() || cancel.load(Ordering::Relaxed) {
            // It may have ended already.
            let _ = child.kill();
        }
        let status = child.wait().map_err(failed)?;
        taken?;
        match status.success() || cancel.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(Failure::from(format!(
                "--on: {python} -m anysched.on_cluster ended with {status}; runs that came back \
                 are kept where there is an --out"
            ))),
        }
    }

    /// Takes over the runs that `child` writes.
    fn take(
        &self,
        child: &mut Child,
        plan: &Plan,
        journal: &mut Journal,
        cancel: &AtomicBool,
    ) -> Result<(), Failure> {
        let (Some(mut told), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::from("--on: no pipes"));
        };
        // Where it ends before it has read all, its status says so.
        let _ = told.write_all(self.0.to_string().as_bytes());
        drop(told);
        let shown = progress::Counted::new(plan.runs(), journal.len());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut said = BufReader::new(said);
            let mut line = Vec::new();
            while said.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if send.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => {
                    let about = |error| format!("--on: what came back: {error}");
                    journal.take(plan, &line).map_err(about)?;
                    shown.update(journal.len());
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::Relaxed) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let cluster: Cluster = "dask:tcp://10.0.0.1:8786".parse().unwrap();
        assert_eq!(cluster.address, "tcp://10.0.0.1:8786");
        for wrong in ["tcp://10.0.0.1:8786", "dask:", "dask:10.0.0.1", "ray:tcp://a:1", ""] {
            assert!(wrong.parse::<Cluster>().unwrap_err().contains("dask:tcp://HOST:PORT"));
        }
    }

    #[test]
    fn lists_are_as_in_a_file() {
        assert_eq!(list(&["rr".to_string(), "a \"b\"".to_string()]), r#"["rr", "a \"b\""]"#);
    }
}
