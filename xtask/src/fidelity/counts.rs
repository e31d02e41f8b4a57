//! What tasks of a load did, counted in a trace.

use std::collections::{BTreeMap, BTreeSet};

const SWITCHES: &str = "context_switches";
const MIGRATIONS: &str = "migrations";

/// Quantities that are counted in traces: a kernel counts its own threads, too.
pub const COUNTED: [&str; 2] = [SWITCHES, MIGRATIONS];

/// What tasks of a load did, by the simulator's definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// To another task of the load than the CPU ran before, whatever else it ran between.
    switches: u32,
    /// To a task on another CPU than it ran on before.
    migrations: u32,
}

impl Counts {
    /// Those of a trace in ftrace's text.
    pub fn of(trace: &str) -> Counts {
        let switches: Vec<Switch<'_>> = trace.lines().filter_map(Switch::read).collect();
        let tasks: BTreeSet<&str> =
            switches.iter().filter(|to| is_task(to.name)).map(|to| to.task).collect();
        let mut counts = Counts::default();
        let (mut on, mut at) = (BTreeMap::new(), BTreeMap::new());
        for Switch { cpu, task, .. } in switches.iter().filter(|to| tasks.contains(to.task)) {
            counts.switches += u32::from(on.insert(cpu, task) != Some(task));
            counts.migrations += u32::from(at.insert(task, cpu).is_some_and(|last| last != cpu));
        }
        counts
    }

    pub fn get(&self, quantity: &str) -> f64 {
        f64::from(if quantity == MIGRATIONS { self.migrations } else { self.switches })
    }
}

/// A switch of a CPU to a task.
struct Switch<'a> {
    cpu: &'a str,
    name: &'a str,
    task: &'a str,
}

impl Switch<'_> {
    fn read(line: &str) -> Option<Switch<'_>> {
        let (head, event) = line.split_once(": sched_switch: ")?;
        let (_, cpu) = head.split_once(" [")?;
        let (_, name) = event.split_once("next_comm=")?;
        let (name, task) = name.split_once(" next_pid=")?;
        Some(Switch { cpu: cpu.split(']').next()?, name, task: task.split(' ').next()? })
    }
}

/// Whether a thread of this name is a task of the load: these end with a number.
fn is_task(name: &str) -> bool {
    let number = name.rsplit_once('-').map_or("", |(_, number)| number);
    !name.contains('/') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_those_among_tasks_of_the_load() {
        let to = |cpu: u32, name: &str, pid: u32| {
            format!(
                "  x-1  [00{cpu}] d..2. 1.000000001: sched_switch: prev_comm=x prev_pid=1 \
                 prev_prio=120 prev_state=R ==> next_comm={name} next_pid={pid} next_prio=120\n"
            )
        };
        let lines = [
            // Before it has its name.
            to(0, "init", 7),
            to(0, "hog-0-0", 7),
            to(0, "kworker/0:1-9", 3),
            to(0, "hog-0-0", 7),
            to(0, "hog-1-1", 8),
            to(1, "hog-0-0", 7),
            to(1, "swapper/1", 0),
            to(1, "hog-0-0", 7),
            "  x-1  [000] d..2. 1.0: sched_waking: comm=hog-0-0 pid=7 prio=120\n".into(),
        ];
        assert_eq!(Counts::of(&lines.concat()), Counts { switches: 3, migrations: 1 });
    }
}
