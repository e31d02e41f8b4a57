//! One run of a benchmark's load under a policy, for profilers and for comparing two versions, the
//! decisions of which may differ: `events POLICY CPUS MILLISECONDS` prints how many events and
//! dispatches there were. The load is that of the table of dispatches on up to 4 CPUs, else that of
//! many CPUs, with the policy's defaults.

use anysched_bench::{machine, packages, periodic, registered, run, sleepers};
use anysched_core::Time;
use anysched_trace::NoTrace;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| args.get(place).and_then(|text| text.parse::<u64>().ok());
    let (Some(policy), Some(cpus), Some(ms)) = (args.first(), number(1), number(2)) else {
        eprintln!("usage: events POLICY CPUS MILLISECONDS, e.g. events cfs 4 2500");
        std::process::exit(2);
    };
    let cpus = cpus as usize;
    let (machine, load) = match cpus {
        ..=4 => (machine(cpus), periodic(100, cpus)),
        _ => (packages(cpus), sleepers(cpus)),
    };
    let until = Time(ms * 1_000_000);
    let (metrics, _) = run(&machine, registered(policy, &machine), load, until, NoTrace);
    match (metrics.events.get(), metrics.dispatches.get()) {
        (Some(events), Some(dispatches)) => println!("{policy} {cpus} {events} {dispatches}"),
        _ => panic!("the simulator counts both"),
    }
}
