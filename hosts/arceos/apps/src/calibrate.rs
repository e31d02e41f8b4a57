//! What scheduling costs on this machine, for simulations of it.

use std::println;

use crate::Kernel;
use crate::crew::{Crew, Task, argument, now};
use crate::work::{divide, shift};
use axtask::yield_now;

/// How long a yield takes, in picoseconds, when `tasks` tasks do nothing else.
fn per_yield(kernel: &Kernel, tasks: u64) -> u64 {
    let each = argument("yields", 20_000);
    let start = now();
    let mut crew = Crew::new(kernel);
    for i in 0..tasks {
        let task = Task { name: alloc::format!("yielder{tasks}-{i}"), work: None };
        crew.start(task, move |_| {
            for _ in 0..each {
                yield_now();
            }
        });
    }
    crew.finish();
    (now() - start) * 1000 / (each * tasks)
}

/// Picoseconds that an iteration of `work` takes.
fn per_iteration(work: fn(u64)) -> u64 {
    const ITERATIONS: u64 = 100_000;
    let start = now();
    work(ITERATIONS);
    (now() - start) * 1000 / ITERATIONS
}

/// Measures and prints.
pub fn calibrate(kernel: &Kernel) {
    println!("@value divide_ps {}", per_iteration(divide));
    println!("@value shift_ps {}", per_iteration(shift));
    for tasks in [1, 2, 4, 16, 64] {
        println!("@value yield_ps_{tasks} {}", per_yield(kernel, tasks));
    }
}
