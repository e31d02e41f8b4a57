//! `anysched gantt`.

use crate::args::GanttArgs;
use crate::choose;
use crate::output::{self, Failure};
use anysched_core::{Span, Time};
use anysched_trace::gantt::Gantt;
use anysched_trace::{Event, Sink, TaskInfo};

/// The widest picture, and the width of the names in it.
const WIDEST: usize = 100;
const NAMES: usize = 16;

/// Notes when the last event was.
struct End(Time);

impl Sink for End {
    fn task(&mut self, _: &TaskInfo<'_>) {}
    fn event(&mut self, event: &Event) {
        self.0 = event.time;
    }
}

pub fn gantt(args: &GanttArgs) -> Result<(), Failure> {
    let experiment = choose::experiment(&args.selection)?;
    let plan = choose::plan(&experiment)?;
    if args.group >= plan.groups().len() {
        let groups = plan.groups().len();
        return Err(Failure::from(format!("--group {}: there are {groups}, from 0", args.group)));
    }
    if args.seed >= plan.seeds() {
        let seeds = plan.seeds();
        return Err(Failure::from(format!("--seed {}: there are {seeds}, from 0", args.seed)));
    }
    let time = |name: &str, text: &str| {
        let span = Span::parse(text).map_err(|why| format!("--{name} {text}: {why}"))?;
        Ok::<Time, Failure>(Time::ZERO + span)
    };
    let from = time("from", &args.from)?;
    let width = args.columns.map_or_else(output::columns, usize::from).clamp(30, WIDEST);
    for (number, entry) in plan.policies().iter().enumerate() {
        // The picture's scale is known only after the run, so that the run is made twice.
        let (metrics, End(last)) = plan.run_one(args.group, number, args.seed, End(Time::ZERO))?;
        let setup = plan.setup(args.group, number);
        let cut = metrics.unfinished > 0 && setup.until != Time::NEVER;
        let end = if cut { setup.until } else { last };
        let until = match &args.until {
            Some(text) => time("until", text)?.min(end),
            None => end,
        };
        if until <= from {
            let why = format!("the run ends at {}", end.since(Time::ZERO));
            return Err(Failure::from(format!("{}: nothing to draw, {why}", entry.label)));
        }
        let gantt = Gantt::new(setup.machine.cpus(), from, until, width - NAMES, args.tasks);
        let (_, mut gantt) = plan.run_one(args.group, number, args.seed, gantt)?;
        gantt.finish(until);
        output::print(&format!("{}\n{gantt}", entry.label))?;
    }
    Ok(())
}
