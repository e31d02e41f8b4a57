//! `anysched record`.

use super::{during, ended, open};
use crate::attach_args::RecordArgs;
use crate::output::{self, Failure};
use anysched_host::{Recorded, Recording};
use anysched_lab::output::Inputs;

pub fn record(args: &RecordArgs) -> Result<(), Failure> {
    output::require_places([&args.output], &Inputs::default())?;
    let order = Recording {
        output: &args.output,
        during: during(args.span, &args.command),
        buffer: args.buffer,
        lossy: args.lossy,
    };
    let Recorded { format, events, lost, elapsed, end } = open()?.record(&order)?;
    let name = args.output.display();
    let missing = if lost > 0 { format!(", {lost} more are missing") } else { String::new() };
    let seconds = elapsed.0 as f64 / 1e9;
    eprintln!("{events} events of {seconds:.1} s in {name}{missing}; for a load:");
    eprintln!("anysched import {format} {name} -o load.json");
    ended(end, order.during)
}
