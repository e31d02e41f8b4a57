//! What a policy says of its state, by replaying its log.

use anysched_core::ids::CpuMask;
use anysched_core::recorder::{Call, LogReader, Record, replay};
use anysched_core::{Cx, Scheduler, TaskId};
use anysched_policies::policy;
use std::collections::{BTreeMap, BTreeSet};

/// A policy that is asked again, and what it has said last.
pub(super) struct States {
    policy: Box<dyn Scheduler>,
    attached: BTreeSet<TaskId>,
    said: BTreeMap<(TaskId, &'static str), i64>,
}

impl States {
    /// Of a log that was recorded.
    ///
    /// Errors: the log cannot be read, there is no such policy here, or it decides otherwise.
    pub fn of(log: &[u8]) -> Result<States, String> {
        let build = || {
            let reader = LogReader::new(log).map_err(|error| error.to_string())?;
            let header = reader.header();
            let name = header.policy;
            let info = policy(name).ok_or_else(|| format!("there is no policy \"{name}\" here"))?;
            let built = (info.build)(&header.machine, &header.settings);
            built.map_err(|error| format!("policy {name}: {error}"))
        };
        // What is replayed without an error breaks no rule, and can be repeated.
        replay(log, &mut *build()?).map_err(|error| error.to_string())?;
        Ok(States { policy: build()?, attached: BTreeSet::new(), said: BTreeMap::new() })
    }

    /// Makes a call again, and tells what is not as before: of the task that the call is about and
    /// of the one that was picked, or of all, if the call is about none.
    pub fn after(&mut self, record: &Record, tell: &mut dyn FnMut(TaskId, &'static str, i64)) {
        if let Call::Detach { task } = record.call {
            self.attached.remove(&task);
            self.said.retain(|(other, _), _| *other != task);
        }
        let mut kicks = CpuMask::EMPTY;
        let pick = record.call.make(&mut *self.policy, &mut Cx::new(record.now, &mut kicks));
        if let Call::Attach { task, .. } = record.call {
            self.attached.insert(task);
        }
        let picked = pick.map(|pick| pick.task);
        match (super::about(record), picked) {
            (None, None) if !matches!(record.call, Call::PickNext { .. }) => {
                for task in self.attached.clone() {
                    self.probe(task, tell);
                }
            }
            (about, picked) => {
                let other = picked.filter(|picked| about != Some(*picked));
                for task in about.into_iter().chain(other) {
                    if self.attached.contains(&task) {
                        self.probe(task, tell);
                    }
                }
            }
        }
    }

    fn probe(&mut self, task: TaskId, tell: &mut dyn FnMut(TaskId, &'static str, i64)) {
        let said = &mut self.said;
        self.policy.probe(task, &mut |name, value| {
            if said.insert((task, name), value) != Some(value) {
                tell(task, name, value);
            }
        });
    }
}
