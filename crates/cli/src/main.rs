//! The `anysched` command.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod boot;
mod calibrate;
mod choose;
mod gantt;
mod import;
mod kernel;
mod load_model;
mod model;
mod output;
mod periodic;
mod plot;
mod policies;
mod predict;
mod progress;
mod replay;
mod reproduce;
mod run;
mod serve;
mod topology;
mod tune;
mod workloads;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use output::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    output::set_up_errors();
    let result = match args.command {
        Command::Run(args) => run::run(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Check(args) => run::check(&args),
        Command::Boot(command) => boot::boot(&command),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Predict(args) => predict::predict(&args),
        Command::Bench(command) => bench::bench(&command),
        Command::Tune(args) => tune::tune(&args),
        Command::Gantt(args) => gantt::gantt(&args),
        Command::Policies(args) => policies::policies(&args),
        Command::Topology(args) => topology::topology(&args),
        Command::Workloads => workloads::workloads(),
        Command::Import(args) => import::import(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::LoadModel(args) => load_model::load_model(&args),
        Command::Model(command) => model::model(&command),
        Command::Replay(args) => replay::replay(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "anysched", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
        Command::Man => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Args::command()).render(&mut page);
            rendered
                .map_err(|error| Failure::from(format!("the manual page: {error}")))
                .and_then(|()| output::print(&String::from_utf8_lossy(&page)))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
