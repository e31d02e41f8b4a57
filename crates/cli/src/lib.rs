//! The `anysched` command, whichever hosts it has.
//!
//! [`main`] is the whole of it: a program names its hosts and calls that.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod args;
mod attach;
mod attach_args;
mod bench;
mod bench_args;
mod boot;
mod calibrate;
mod choose;
mod cluster;
mod compare;
mod complete;
mod coverage;
mod diff;
mod experiments;
mod gantt;
mod hosts;
mod import;
mod load_model;
mod man;
mod model;
mod output;
mod periodic;
mod plot;
mod policies;
mod predict;
mod progress;
mod reference;
mod replay;
mod report;
mod reproduce;
mod run;
mod serve;
mod shrink;
mod shrink_args;
mod stuck;
mod topology;
mod tune;
mod verify;
mod verify_args;
mod why;
mod workloads;

use anysched_host::HostInfo;
use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

/// Runs the command line with these hosts. The first is where runs are made unless another is
/// named.
pub fn main(hosts: &'static [&'static HostInfo]) -> ExitCode {
    hosts::set(hosts);
    complete::answer();
    let args = Args::parse();
    let result = match args.command {
        Command::Run(args) => run::run(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Report(args) => report::report(&args),
        Command::Check(args) => run::check(&args),
        Command::Boot(args) => boot::boot(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Record(args) => attach::record(&args),
        Command::Hosts(args) => hosts::hosts(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Package(args) => hosts::package(&args),
        Command::Predict(args) => predict::predict(&args),
        Command::Bench(command) => bench::bench(&command),
        Command::Tune(args) => tune::tune(&args),
        Command::Gantt(args) => gantt::gantt(&args),
        Command::Why(args) => why::why(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Shrink(args) => shrink::shrink(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Policies(args) => policies::policies(&args),
        Command::Topology(args) => topology::topology(&args),
        Command::Workloads(args) => workloads::workloads(&args),
        Command::Metrics(args) => reference::metrics(&args),
        Command::Explain(args) => reference::explain(&args),
        Command::Schema => reference::schema(),
        Command::Import(args) => import::import(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Coverage(args) => coverage::coverage(&args),
        Command::LoadModel(args) => load_model::load_model(&args),
        Command::Model(command) => model::model(&command),
        Command::Replay(args) => replay::replay(&args),
        Command::Experiments(args) => experiments::experiments(&args),
        Command::Completions { shell } => complete::completions(shell),
        Command::Man(args) => man::man(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
