//! How much there is to a run, before it is made: what could not end within anybody's patience is
//! refused, and how far a run is can be told from its time.

use crate::plan::load::Loads;
use crate::plan::vm::Vms;
use crate::spec::error::Fault;
use crate::spec::tree::Node;
use anysched_core::{Span, Time};
use anysched_host::{LONGEST, Setup};
use anysched_workload::extent::Extent;
use std::ops::Range;

/// Steps of a run, of those that can be counted beforehand. At a million a second it takes a
/// fortnight.
const MOST_STEPS: f64 = (1u64 << 40) as f64;

/// Tasks and requests that are there at once, at some 150 bytes each.
const MOST_WAITING: f64 = (1u64 << 24) as f64;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    /// Until then, or perhaps until all tasks are done before.
    Until(Time),
    /// As long as the loads need, which is about this at least.
    AtLeast(Span),
}

/// What the parts of an experiment say about the length of runs.
pub(crate) struct Size<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) loads: &'a Loads,
    pub(crate) vms: &'a Vms,
    /// `duration`, if there is one.
    pub(crate) duration: Option<&'a Node>,
    /// `[machine]`.
    pub(crate) machine: &'a Node,
}

impl Size<'_> {
    /// How long a run is.
    ///
    /// Errors: it would take days or more memory than there is, or more time than can be
    /// simulated.
    pub(crate) fn length(&self) -> Result<Length, Fault> {
        let Size { setup, loads, vms, .. } = self;
        let until = (setup.until != Time::NEVER).then_some(setup.until);
        let machine = &setup.machine;
        let speeds = machine.cpu_ids().map(|cpu| f64::from(machine.cpu(cpu).capacity) / 1024.0);
        let capacity: f64 = speeds.sum();
        // Those of machines, and last the machine's own. A recording takes a while to go through.
        let all: Vec<Extents<'_>> =
            vms.loads().chain([*loads]).map(|loads| Extents::of(loads, until)).collect();
        let needed = all.iter().map(|extents| extents.length(capacity)).fold(0.0, f64::max);
        let length = until.map_or(needed, |until| needed.min(until.0 as f64));
        if length >= LONGEST.0 as f64 {
            return Err(self.too_long(&all, capacity));
        }
        for extents in &all {
            extents.require_countable()?;
        }
        if let Some(own) = all.last() {
            own.require_room(capacity)?;
        }
        self.require_ticks(length)?;
        Ok(until.map_or(Length::AtLeast(Span(length as u64)), Length::Until))
    }

    fn too_long(&self, all: &[Extents<'_>], capacity: f64) -> Fault {
        let longest = "what can be simulated ends after 4.5 years";
        if let Some(duration) = self.duration {
            let message = format!("`duration` = {duration} is out of range");
            return Fault::at(&duration.at, message)
                .help(format!("{longest}; a load shows what it is within minutes"));
        }
        let longest_load = all.iter().find_map(|extents| extents.beyond_the_end(capacity));
        let fault = match longest_load {
            Some((at, years)) => {
                let message = format!("this load takes at least {years:.1} years");
                Fault::at(at, message)
            }
            None => Fault::whole("runs of it take too many years"),
        };
        fault.help(format!(
            "{longest}; shorter times in the load, or `duration = \"10s\"` at the top, which ends \
             runs"
        ))
    }

    fn require_ticks(&self, length: f64) -> Result<(), Fault> {
        let Some(tick) = self.setup.machine.tick() else { return Ok(()) };
        let ticks = length / tick.0.max(1) as f64;
        if ticks <= MOST_STEPS {
            return Ok(());
        }
        let node = self.machine.as_table().and_then(|table| table.get("tick"));
        let at = node.map_or(&self.machine.at, |node| &node.at);
        Err(Fault::at(at, format!("a run has {ticks:.1e} ticks, {}", patience(ticks)))
            .help("a longer tick, or shorter runs; kernels have 1ms to 10ms"))
    }
}

/// How much there is of each load that the file has, with its place.
struct Extents<'a>(Vec<(Extent, &'a Range<usize>)>);

impl<'a> Extents<'a> {
    fn of(loads: &'a Loads, until: Option<Time>) -> Extents<'a> {
        let all = loads.parts.iter().zip(&loads.at);
        Extents(all.map(|(part, at)| (part.extent(loads.cpus, until), at)).collect())
    }

    /// How long they take at least together, in ns.
    fn length(&self, capacity: f64) -> f64 {
        let all = self.0.iter().map(|(extent, _)| *extent);
        all.fold(Extent::default(), Extent::and).length(capacity)
    }

    /// The load that takes longest, if that is more than can be simulated, and its years.
    fn beyond_the_end(&self, capacity: f64) -> Option<(&'a Range<usize>, f64)> {
        const YEAR: f64 = 365.25 * 86400e9;
        let lengths = self.0.iter().map(|(extent, at)| (extent.length(capacity), *at));
        let (length, at) = lengths.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (length >= LONGEST.0 as f64).then_some((at, length / YEAR))
    }

    fn require_countable(&self) -> Result<(), Fault> {
        for &(Extent { steps, .. }, at) in &self.0 {
            if steps > MOST_STEPS {
                let message = format!(
                    "a run has {steps:.1e} tasks, jobs or rounds of this load, {}",
                    patience(steps)
                );
                return Err(Fault::at(at, message).help(
                    "a lower rate, longer times or a smaller number, or shorter runs: `duration = \
                     \"10s\"` at the top",
                ));
            }
        }
        Ok(())
    }

    /// Checks that there is memory for what arrives faster than it can be done.
    fn require_room(&self, capacity: f64) -> Result<(), Fault> {
        let all: f64 = self.0.iter().map(|(extent, _)| extent.work).sum();
        let by_number =
            |a: &&(Extent, _), b: &&(Extent, _)| a.0.uninvited.total_cmp(&b.0.uninvited);
        let Some((most, at)) = self.0.iter().max_by(by_number) else { return Ok(()) };
        // What is served until the last of them comes is not there any more.
        let served = if all > 0.0 { (most.last * capacity / all).min(1.0) } else { 1.0 };
        let waiting = most.uninvited * (1.0 - served);
        if waiting <= MOST_WAITING {
            return Ok(());
        }
        let message = format!("{waiting:.1e} tasks or requests of this load wait in the end");
        Err(Fault::at(at, message).help(format!(
            "they come faster than this machine can serve them; there is memory for {MOST_WAITING} \
             of them: a lower rate, or shorter runs"
        )))
    }
}

/// How long so many steps take.
fn patience(steps: f64) -> String {
    let days = steps / 1e6 / 86400.0;
    let (time, unit) = if days < 3650.0 { (days, "days") } else { (days / 365.25, "years") };
    format!("which is {time:.0} {unit} at a million a second")
}
