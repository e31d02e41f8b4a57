//! The scheduler tests of ArceOS that the PBG report measures: tasks that compute a group of
//! iterations, yield, and repeat.
//!
//! Source: `apps/task/sched_{fairness_equal,fairness_unequal,yield_speed,realtime,occupy}` of
//! github.com/chestnut-Q/arceos-X, branch `scheduler` (a25a361); their sizes are the defaults here.
//! A task is done when it runs again after its last yield, as there. Where groups are counted
//! (`unequal`), the task that created the others sleeps, and reads how far each is when it runs
//! again.
//!
//! Arguments: `groups` and `iterations` (one number for all tasks, or one for each with commas
//! between), `duration` (nanoseconds until groups are counted and tasks stop), and `scale`, by
//! which a case is made smaller for quick runs. In kernels that know of it, `nice`, how nice tasks
//! are, and `cpus`, the CPU to which each is bound, likewise one number or one for each.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::arguments::{argument, numbers};
use crate::crew::Crew;
use crate::work::{divide, shift};
use crate::{Kernel, Task};

/// A case: its tasks in the order in which they are created.
struct Case {
    name: &'static str,
    /// Groups and iterations of each.
    tasks: &'static [(u64, u64)],
    /// What an iteration is.
    work: fn(u64),
    /// Nanoseconds after which groups are counted; 0: each task ends by itself.
    duration: u64,
}

const MILLION: u64 = 1_000_000;

const CASES: [Case; 5] = [
    Case { name: "equal", tasks: &[(25, 5 * MILLION); 4], work: divide, duration: 0 },
    Case {
        name: "unequal",
        tasks: &[
            (5000, 50 * MILLION),
            (5000, 100 * MILLION),
            (5000, 150 * MILLION),
            (5000, 200 * MILLION),
        ],
        work: shift,
        duration: 5_000 * MILLION,
    },
    Case { name: "yield", tasks: &[(100_000, 100); 4], work: divide, duration: 0 },
    Case {
        name: "realtime",
        tasks: &[(8, 100 * MILLION), (500_000, 1), (200_000, 2), (100_000, 5), (50_000, 10)],
        work: divide,
        duration: 0,
    },
    Case {
        name: "occupy",
        tasks: &[(80, 10 * MILLION), (2 * MILLION, 100), (2 * MILLION, 100), (0, 0), (0, 0)],
        work: divide,
        duration: 0,
    },
];

/// More groups than this, of fewer iterations than this, are many short ones: `scale` makes them
/// fewer instead of shorter.
const MANY: u64 = 1000;

/// The number for a task: its own, or the last or only one there is.
fn of<N: Copy>(list: &Option<Vec<N>>, task: usize) -> Option<N> {
    let list = list.as_deref()?;
    list.get(task).or(list.last()).copied()
}

impl Case {
    /// Groups and iterations of each task, with the arguments applied.
    fn tasks<K: Kernel>(&self) -> Vec<(u64, u64)> {
        let (groups, iterations) = (numbers::<K, _>("groups"), numbers::<K, _>("iterations"));
        let length = |list: &Option<Vec<u64>>| list.as_ref().map_or(0, Vec::len);
        let most = length(&groups).max(length(&iterations));
        let count = if most > 1 { most } else { self.tasks.len() };
        let scale = argument::<K>("scale", 1).max(1);
        (0..count)
            .map(|task| {
                let known = self.tasks[task.min(self.tasks.len() - 1)];
                let groups = of(&groups, task).unwrap_or(known.0);
                let iterations = of(&iterations, task).unwrap_or(known.1);
                if groups > MANY && iterations < MANY {
                    (groups / scale, iterations)
                } else {
                    (groups, iterations / scale)
                }
            })
            .collect()
    }
}

/// Runs the case of this name; `false` if there is none.
pub fn run<K: Kernel>(name: &str) -> bool {
    let Some(case) = CASES.iter().find(|case| case.name == name) else { return false };
    let duration = argument::<K>("duration", case.duration) / argument::<K>("scale", 1).max(1);
    let (nice, cpus) = (numbers::<K, i32>("nice"), numbers::<K, u32>("cpus"));
    let over = Arc::new(AtomicBool::new(false));
    let start = K::now();
    let mut crew = Crew::<K>::new();
    for (number, (groups, iterations)) in case.tasks::<K>().into_iter().enumerate() {
        let (work, over) = (case.work, over.clone());
        let task = Task {
            name: format!("{name}-{number}"),
            nice: of(&nice, number).unwrap_or(0),
            cpus: of(&cpus, number).into_iter().collect(),
            ..Task::default()
        };
        crew.start(task, move |notes| {
            for _ in 0..groups {
                work(iterations);
                K::yield_now();
                notes.group_done();
                if over.load(Relaxed) {
                    break;
                }
            }
        });
    }
    if duration > 0 {
        K::sleep_until(start + duration);
        crew.count();
        over.store(true, Relaxed);
    }
    crew.finish();
    true
}
