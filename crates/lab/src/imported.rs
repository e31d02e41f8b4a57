//! Experiments for what has been imported.

use anysched_core::MAX_CPUS;
use anysched_workload::Op;
use anysched_workload::model::Model;

/// The experiment that runs `model`, which was read from `source`, as a load of this kind from
/// `file`.
pub fn experiment_of(model: &Model, source: &str, kind: &str, file: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let extent = Extent::of(model);
    let (cpus, why) = match model.cpus.filter(|&cpus| cpus > 0) {
        Some(cpus) => (cpus, "as many as it was recorded on"),
        None => (extent.cpus(), "as many as its work needs on average"),
    };
    let duration =
        if model.is_endless() { "duration = \"10s\" # the load never ends\n" } else { "" };
    // Ticks and slices of hours would take long, and tell little.
    const LONG: u128 = 1_000_000_000_000;
    let (policies, tick) = match extent.span < LONG {
        true => ("\"rr\", \"cfs\", \"eevdf\"", "tick = \"4ms\"\n"),
        false => ("\"fcfs\", \"sjf\"", ""),
    };
    let most = MAX_CPUS as u32;
    format!(
        "# Save this as run.toml, and run it: anysched run run.toml\n\
         question = {}\n\
         policy = [{policies}] # all: anysched policies\n\
         {duration}\n\
         [machine]\n\
         cpus = {} # {why}{}\n\
         {tick}\n\
         [[workload]]\n\
         kind = \"{kind}\"\n\
         file = {}\n",
        quoted(&format!("How do policies schedule {source}?")),
        cpus.min(most),
        if cpus > most { format!(", {cpus}, but at most {most}") } else { String::new() },
        quoted(file),
    )
}

/// How much a load is, in ns.
struct Extent {
    /// CPU time of all tasks, as far as they do not repeat anything.
    work: u128,
    /// From the first arrival to the end of the last task that arrives, if each had a CPU.
    span: u128,
}

impl Extent {
    fn of(model: &Model) -> Extent {
        let (mut work, mut first, mut last) = (0_u128, u128::MAX, 0_u128);
        for task in &model.tasks {
            let (mut run, mut rest) = (0_u128, 0_u128);
            for op in &task.script.ops {
                match op {
                    Op::Run(span) => run += u128::from(span.0),
                    Op::Sleep(span) => rest += u128::from(span.0),
                    _ => {}
                }
            }
            work += run;
            if let Some(arrival) = task.arrives {
                first = first.min(arrival.0.into());
                last = last.max(u128::from(arrival.0) + run + rest);
            }
        }
        Extent { work, span: last.saturating_sub(first).max(1) }
    }

    /// The fewest CPUs that can do the work in that time.
    fn cpus(&self) -> u32 {
        u32::try_from(self.work.div_ceil(self.span)).unwrap_or(u32::MAX).max(1)
    }
}
