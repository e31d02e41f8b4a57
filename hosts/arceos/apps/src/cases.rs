//! The five test cases of the PBG report (https://github.com/chestnut-Q/arceos-X, branch
//! `scheduler`), with its numbers as defaults of their arguments. `scale` divides the work of a
//! case, for quick runs.

use alloc::format;

use axtask::yield_now;

use crate::Kernel;
use crate::crew::{Crew, Notes, Task, argument, now};
use crate::work::{divide, shift};

/// Groups of `iterations` divisions with a yield after each.
fn groups(count: u64, iterations: u64) -> impl FnOnce(&Notes) + Send + 'static {
    move |notes| {
        for _ in 0..count {
            divide(iterations);
            notes.group_done();
            yield_now();
        }
    }
}

fn task(name: impl Into<alloc::string::String>) -> Task {
    Task { name: name.into(), work: None }
}

/// Four tasks that do the same.
pub fn equal(kernel: &Kernel) {
    let tasks = argument("tasks", 4);
    let each = argument("groups", 100) / tasks;
    let iterations = argument("iterations", 5_000_000) / argument("scale", 1);
    let mut crew = Crew::new(kernel);
    for i in 0..tasks {
        crew.start(task(format!("P{i}")), groups(each, iterations));
    }
    crew.finish();
}

/// Four tasks whose groups are one, two, three and four times as long, for a fixed time.
pub fn unequal(kernel: &Kernel) {
    let scale = argument("scale", 1);
    let iterations = argument("iterations", 50_000_000) / scale;
    let run = argument("run", 5_000_000_000) / scale;
    let end = now() + run;
    let mut crew = Crew::new(kernel);
    for i in 0..argument("tasks", 4) {
        crew.start(task(format!("P{i}")), move |notes| {
            while now() < end {
                shift(iterations * (i + 1));
                if now() < end {
                    notes.group_done();
                }
                yield_now();
            }
        });
    }
    crew.finish();
}

/// Four tasks that yield all the time.
pub fn yields(kernel: &Kernel) {
    let each = argument("groups", 100_000) / argument("scale", 1);
    let iterations = argument("iterations", 100);
    let start = now();
    let mut crew = Crew::new(kernel);
    let tasks = argument("tasks", 4);
    for i in 0..tasks {
        crew.start(task(format!("P{i}")), groups(each, iterations));
    }
    crew.finish();
    std::println!("@value per_yield_ns {}", (now() - start) / (each * tasks));
}

/// A long task, which yields now and then, and four short ones that yield often.
pub fn realtime(kernel: &Kernel) {
    let scale = argument("scale", 1);
    let mut crew = Crew::new(kernel);
    crew.start(task("long"), groups(8, 100_000_000 / scale));
    for (number, yields, iterations) in
        [(4, 500_000, 1), (3, 200_000, 2), (2, 100_000, 5), (1, 50_000, 10)]
    {
        crew.start(task(format!("short{number}")), groups(yields / scale, iterations));
    }
    crew.finish();
}

/// Two tasks that yield often beside one that does much at a time.
pub fn occupy(kernel: &Kernel) {
    let scale = argument("scale", 1);
    let mut crew = Crew::new(kernel);
    for number in 1..=2 {
        crew.start(task(format!("short{number}")), groups(1_000_000 / scale, 100));
    }
    crew.start(task("long"), groups(80, 10_000_000 / scale));
    crew.finish();
}
