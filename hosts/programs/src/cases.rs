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
//! which a case is made smaller for quick runs. It runs `runs` times, one `every` so many
//! nanoseconds, from `at` on. The task that creates the others makes the `calls` of the policy,
//! each at its time after the start, before a run that begins then. In kernels that know of it,
//! `nice`, how nice tasks are, and `cpus`, the CPU to which each is bound, likewise one number or
//! one for each.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anysched_wire::program::CALLS;

use crate::arguments::{argument, numbers, text};
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

/// Calls of the policy that the program is to make.
struct Calls {
    /// When, in nanoseconds since the start, which parameter is set, and to what.
    calls: VecDeque<(u64, &'static str, &'static str)>,
    start: u64,
}

impl Calls {
    /// Refuses to run if the argument is not a list of calls, in the order of their times.
    fn read<K: Kernel>(start: u64) -> Calls {
        let lines = text::<K>(CALLS).unwrap_or_default().lines();
        let calls: VecDeque<_> = lines
            .map(|line| {
                let mut words = line.splitn(3, ' ');
                let time = words.next().and_then(|time| time.parse().ok());
                match (time, words.next(), words.next()) {
                    (Some(time), Some(name), Some(value)) => (time, name, value),
                    _ => K::refuse(format_args!(
                        "`{CALLS}`: \"{line}\": nanoseconds, a parameter and its value are wanted"
                    )),
                }
            })
            .collect();
        if !calls.iter().is_sorted_by_key(|call| call.0) {
            K::refuse(format_args!("`{CALLS}`: the times do not ascend"));
        }
        Calls { calls, start }
    }

    /// Makes those that are due by a time in nanoseconds since the start, each when it is due.
    fn make<K: Kernel>(&mut self, until: u64) {
        while let Some(&(time, name, value)) = self.calls.front().filter(|call| call.0 <= until) {
            self.calls.pop_front();
            sleep_if_early::<K>(self.start + time);
            K::set_param(name, value);
        }
    }
}

fn sleep_if_early<K: Kernel>(time: u64) {
    if time > K::now() {
        K::sleep_until(time);
    }
}

/// Runs the case of this name; `false` if there is none.
pub fn run<K: Kernel>(name: &str) -> bool {
    let Some(case) = CASES.iter().find(|case| case.name == name) else { return false };
    let duration = argument::<K>("duration", case.duration) / argument::<K>("scale", 1).max(1);
    let (at, every) = (argument::<K>("at", 0), argument::<K>("every", 0));
    let runs = argument::<K>("runs", 1);
    if runs > 1 && (every == 0 || duration > 0) {
        K::refuse("several `runs` need `every`, and no `duration`");
    }
    let start = K::now();
    let mut calls = Calls::read::<K>(start);
    let mut crew = Crew::<K>::new();
    let over = Arc::new(AtomicBool::new(false));
    for begin in (0..runs).map(|run| at + run * every) {
        calls.make::<K>(begin);
        if begin > 0 {
            sleep_if_early::<K>(start + begin);
        }
        start_tasks(case, &mut crew, &over);
    }
    if duration > 0 {
        calls.make::<K>(at + duration);
        K::sleep_until(start + at + duration);
        crew.count();
        over.store(true, Relaxed);
    }
    calls.make::<K>(u64::MAX);
    crew.finish();
    true
}

/// Starts the tasks of a run.
fn start_tasks<K: Kernel>(case: &Case, crew: &mut Crew<K>, over: &Arc<AtomicBool>) {
    let (nice, cpus) = (numbers::<K, i32>("nice"), numbers::<K, u32>("cpus"));
    for (number, (groups, iterations)) in case.tasks::<K>().into_iter().enumerate() {
        let (work, over) = (case.work, over.clone());
        let task = Task {
            name: format!("{}-{number}", case.name),
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
}
