//! `anysched replay`: the proof that a policy decides alike wherever it runs.

use crate::args::ReplayArgs;
use crate::output::{self, Failure};
use crate::run::{TraceFormat, write_events};
use anysched_core::recorder::{LogError, LogReader, Problem, ReplayError};
use anysched_lab::output::Inputs;
use anysched_policies::policy;
use std::io::Write;

pub fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let name = args.log.display();
    let log =
        std::fs::read(&args.log).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let reader = LogReader::new(&log).map_err(|error| match error {
        LogError { problem: Problem::NotALog, .. } => {
            format!("{name}: {error}; `anysched run --record LOG` makes one")
        }
        error => format!("{name}: {error}"),
    })?;
    if let Some(path) = &args.trace {
        let format = TraceFormat::of(path)?;
        let inputs = Inputs::of([&args.log]);
        output::require_places([path], &inputs)?;
        write_events(path, &inputs, format, &log, |_| None)?;
    }
    if args.show {
        return show(reader, &name.to_string());
    }
    let header = reader.header();
    let known = policy(header.policy)
        .ok_or_else(|| format!("{name}: there is no policy `{}` here", header.policy))?;
    let mut scheduler = (known.build)(&header.machine, &header.settings)
        .map_err(|error| format!("{name}: `{}` cannot be built: {error}", header.policy))?;
    match anysched_core::recorder::replay(&log, &mut *scheduler) {
        Ok(done) if done.unanswered => Err(Failure::from(format!(
            "{name}: the log ends in call {}, before its answer: it was cut off, or the policy did \
             not return; up to that call, no decision differs",
            done.calls
        ))),
        Ok(done) => output::print(&format!(
            "{}: {} calls, {} picks, no decision differs\n",
            header.policy, done.calls, done.picks
        )),
        Err(ReplayError::Difference(difference)) => {
            output::print(&format!("{}: {difference}\n", header.policy))?;
            Err(Failure::Differs)
        }
        Err(error) => Err(Failure::from(format!("{name}: {error}"))),
    }
}

fn show(reader: LogReader<'_>, name: &str) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for record in reader {
        let record = record.map_err(|error| format!("{name}: {error}"))?;
        if let Err(error) = writeln!(out, "{record}") {
            return output::printed(Err(error));
        }
    }
    output::printed(out.flush())
}
