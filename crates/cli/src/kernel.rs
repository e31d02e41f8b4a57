//! Kernels as hosts of experiments: what they are asked to run, and what is read off them.

use anysched_arceos::{Boot, Image, Kernel, Outcome};
use anysched_core::{Machine, Span, Time};
use anysched_lab::{By, Host, Hosted, Order};
use anysched_measure::{Metrics, TaskProgress};
use anysched_workload::{Program, steps};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// How long a kernel may be silent: programs print when they are done.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// ArceOS in QEMU, an instruction a nanosecond.
pub struct ArceOs {
    /// How long a kernel may be silent.
    pub patience: Duration,
    /// Images that have been built, so that no two runs build one at the same time.
    built: Mutex<Vec<(Image, PathBuf)>>,
}

/// ArceOS's own schedulers, by name.
static STOCK: LazyLock<Vec<&str>> =
    LazyLock::new(|| Kernel::STOCK.iter().map(|(name, _)| *name).collect());

impl ArceOs {
    pub fn new(patience: Duration) -> ArceOs {
        ArceOs { patience, built: Mutex::default() }
    }

    /// The file of an image, which is built if need be.
    pub fn image(&self, image: Image) -> Result<PathBuf, String> {
        // One that another thread failed to build fails here again.
        let mut built = self.built.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, path)) = built.iter().find(|(known, _)| *known == image) {
            return Ok(path.clone());
        }
        let path = image.build().map_err(|error| error.to_string())?;
        built.push((image, path.clone()));
        Ok(path)
    }

    /// Boots and waits for the end.
    pub fn boot(&self, boot: &Boot, say: &mut dyn FnMut(&str)) -> Result<Outcome, String> {
        let kernel = self.image(boot.image)?;
        boot.run_image(&kernel, say).map_err(|error| error.to_string())
    }
}

impl Host for ArceOs {
    fn name(&self) -> &'static str {
        "arceos"
    }

    fn costs(&self) -> &'static str {
        "the kernel's own"
    }

    fn schedulers(&self) -> &'static [&'static str] {
        &STOCK
    }

    fn run(&self, order: Order<'_>) -> Result<Hosted, String> {
        let (name, settings) = match order.by {
            By::Policy(info, settings) => (info.name, settings),
            By::Own(name) => (name, Vec::new()),
        };
        let mut boot = Boot::new(name, "");
        let owned = |(name, text): (&str, &str)| (name.to_string(), text.to_string());
        boot.settings = settings.into_iter().map(owned).collect();
        boot.patience = self.patience;
        boot.tick = order.setup.machine.tick();
        set_machine(&mut boot, &order.setup.machine)?;
        if order.setup.until != Time::NEVER {
            return Err("a program in ArceOS ends by itself: leave `duration` out".into());
        }
        let mut iterations = Vec::new();
        match order.load.program() {
            Some(Program { name, arguments }) => {
                iterations = numbers(&arguments, "iterations");
                boot.app = name.into();
                boot.arguments =
                    arguments.into_iter().map(|(name, text)| (name.to_string(), text)).collect();
            }
            None => {
                boot.app = "batch".into();
                boot.tasks = Some(steps::list(order.load).map_err(|error| error.to_string())?);
            }
        }
        let mut hosted = hosted(self.boot(&boot, &mut |_| ())?);
        // What a task has done, at a nanosecond an iteration: how tasks share is all that counts.
        for (task, iterations) in hosted.metrics.benchmark.tasks.iter_mut().zip(iterations) {
            let done = |(groups, _): (u32, Span)| (groups, Span(u64::from(groups) * iterations));
            task.counted = task.counted.map(done);
        }
        Ok(hosted)
    }
}

/// The list of numbers that a program is given as the argument `name`.
fn numbers(arguments: &[(&'static str, String)], name: &str) -> Vec<u64> {
    let list = arguments.iter().find(|(argument, _)| *argument == name);
    list.map_or(Vec::new(), |(_, text)| text.split(',').filter_map(|n| n.parse().ok()).collect())
}

/// Gives the image the CPUs of `machine`, as far as there can be such.
fn set_machine(boot: &mut Boot, machine: &Machine) -> Result<(), String> {
    if machine.cpus() > 16 {
        return Err(format!("images are for at most 16 CPUs, not {}", machine.cpus()));
    }
    boot.image.cpus = machine.cpus() as u16;
    Ok(())
}

/// What came of a boot, in the simulator's terms.
pub fn hosted(outcome: Outcome) -> Hosted {
    let mut unknown = Vec::new();
    if outcome.value("switches").is_none() {
        unknown.push("context_switches");
    }
    if outcome.tasks.iter().any(|task| task.service.is_none()) {
        unknown.extend(["dispatches", "waiting_time_ns", "slowdown", "busy_ns", "utilisation"]);
    }
    Hosted { metrics: metrics(&outcome), unknown, learned: outcome.learned }
}

fn metrics(outcome: &Outcome) -> Metrics {
    let mut metrics = Metrics::default();
    for task in &outcome.tasks {
        let turnaround = task.finish.since(task.arrival);
        metrics.turnaround.record(turnaround.0);
        metrics.response_time.record(task.first.since(task.arrival).0);
        if let Some(service) = task.service {
            let waited = turnaround.saturating_sub(service).saturating_sub(task.slept);
            metrics.waiting_time.record(waited.0);
            if service > Span::ZERO {
                metrics.slowdown.record(turnaround.scaled(1_000_000, service.0).0);
            }
            metrics.busy += service;
        }
        metrics.dispatches += task.dispatches.unwrap_or(0);
        let left = task.finish.since(task.first);
        metrics.benchmark.leave_time.record(left.0);
        metrics.benchmark.tasks.push(TaskProgress {
            finished: Some(turnaround),
            left: Some(left),
            counted: Some((u32::try_from(task.groups).unwrap_or(u32::MAX), Span::ZERO)),
        });
        let first = metrics.first_arrival.map_or(task.arrival, |first| first.min(task.arrival));
        metrics.first_arrival = Some(first);
        metrics.last_completion = metrics.last_completion.max(task.finish);
    }
    metrics.tasks = outcome.tasks.len() as u64;
    metrics.completed = metrics.tasks;
    metrics.context_switches = outcome.value("switches").unwrap_or(0);
    metrics
}
