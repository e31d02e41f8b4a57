//! What the scheduler of a recording decided. Recordings are read by an example of `workload`:
//! tasks of the project are to be built soon, without the crates that they check.

use crate::docs;
use crate::run::{Failed, command, output};
use serde_json::Value;
use std::path::Path;

/// Figures of a recording.
pub struct Decisions(Value);

/// Of which tasks wake-ups count.
#[derive(Clone, Copy)]
pub enum Tasks {
    All,
    /// Not those that the recording calls `other`. How late they ran is not known: switches to them
    /// are missing.
    Known,
    /// Those whose names end with a number, as tasks of a load do in a kernel.
    Numbered,
}

impl Decisions {
    /// Those of a recording in which tasks ran `idle_exit_ns` later than an idle CPU switched to
    /// them.
    pub fn of(path: &Path, tasks: Tasks, idle_exit_ns: u64) -> Result<Decisions, Failed> {
        let tasks = match tasks {
            Tasks::All => "all",
            Tasks::Known => "known",
            Tasks::Numbered => "numbered",
        };
        let program = docs::target().join("debug/examples/decisions");
        let (program, path) = (program.to_string_lossy(), path.to_string_lossy());
        let text = output(&mut command(&program, &[&path, tasks, &idle_exit_ns.to_string()]))?;
        let read = serde_json::from_str(&text);
        read.map(Decisions).map_err(|error| Failed(format!("decisions of {path}: {error}")))
    }

    /// A figure; `None` if there is nothing that it is of.
    pub fn get(&self, name: &str) -> Option<f64> {
        let figure = self.0.get(name);
        figure.unwrap_or_else(|| panic!("`decisions` prints no \"{name}\"")).as_f64()
    }

    /// A share in percent.
    pub fn percent(&self, name: &str) -> Option<f64> {
        self.get(name).map(|share| share * 100.0)
    }
}
