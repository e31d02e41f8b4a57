//! The programs: those that all kernels run, and those for which there has to be a Linux.

mod agent_fault;
mod command;
mod cost;
mod faults;
mod latency;
mod packaged;
mod storm;

use crate::kernel::Linux;

/// Runs the program of this name; `false` if there is none.
pub fn run(name: &str) -> bool {
    match name {
        "agent-fault" => agent_fault::agent_fault(),
        "cost" => cost::cost(),
        "exec" => command::exec(),
        "faults" => faults::faults(),
        "latency" => latency::latency(),
        "shell" => command::shell(),
        "storm" => storm::storm(),
        other => return packaged::run(other) || anysched_programs::run::<Linux>(other),
    }
    true
}
