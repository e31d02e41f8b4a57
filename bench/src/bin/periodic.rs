//! The periodic tasks of the benchmark `dispatches`, for other simulators: `periodic TASKS CPUS`
//! prints the period and run time of each as CSV. All are released at 0.

use anysched_bench::periodic;
use anysched_core::{Span, TaskId, Time};
use anysched_workload::{Load, Outside};

fn main() {
    let mut args = std::env::args().skip(1);
    let tasks: u32 = args.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let cpus: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(4);
    let mut load = periodic(tasks, cpus);
    println!("period_ns,run_ns");
    for task in 0..tasks {
        assert_eq!(load.peek(), Time::ZERO, "all tasks are released at 0");
        let Outside::Arrival(new) = load.outside() else {
            panic!("periodic tasks wait for no signals");
        };
        load.start(TaskId(task), Time::ZERO);
        let ns = |time: Option<Span>| time.map_or(0, |time| time.0);
        println!("{},{}", ns(new.period), ns(new.budget));
    }
}
