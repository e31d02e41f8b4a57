//! `anysched plot`.

use crate::args::{PlotArgs, PlotFormat};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use crate::run::interrupted;
use anysched_lab::output::Inputs;
use std::io::Write;

pub fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let experiment = choose::with_seeds(&args.selection, args.seeds)?;
    let metrics: Vec<&str> = args.y.iter().map(String::as_str).collect();
    let chart = experiment.chart(&args.x, &metrics, [args.log_x, args.log_y]);
    let chart = chart.map_err(Failure::pointing)?;
    let plan = choose::plan(&experiment)?.with_chart(&chart);
    let inputs = Inputs::of(plan.inputs());
    if let Some(path) = &args.out {
        output::require_places([path], &inputs)?;
    }
    let cancel = output::cancel_on_interrupt()?;
    let host = hosts::open(args.host.host);
    let results = with_bar(&*host, args.jobs, cancel, None, |options| plan.run(options))?;
    let drawn = match args.format {
        PlotFormat::Svg => chart.svg(&results),
        PlotFormat::Text => chart.text(&results),
    };
    match &args.out {
        Some(path) => output::write_named(path, &inputs, |out| out.write_all(drawn.as_bytes()))?,
        None => output::print(&drawn)?,
    }
    if results.complete { Ok(()) } else { Err(interrupted(&results, None)) }
}
