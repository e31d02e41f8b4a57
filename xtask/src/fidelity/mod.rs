//! Real kernels beside the simulator: the experiments of `experiments/fidelity` under schedulers of
//! stock kernels and under the policies that have their rules.
//!
//! What kernels gave is kept in `hosts/linux/results/fidelity`, because booting them takes minutes.
//! The simulator's side is computed whenever a page is printed.

mod counts;
mod decisions;
mod figures;
mod placement;
mod recordings;
mod row;

use self::counts::{COUNTED, Counts};
use self::figures::{Figures, figures, from_tsv, loads, tsv};
use self::row::{Row, Tolerance, causes_of, named};
use crate::docs::{self, anysched};
use crate::kernels::write_file;
use crate::run::{Failed, root};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

const EXPERIMENTS: &str = "experiments/fidelity";
const RESULTS: &str = "hosts/linux/results/fidelity";

/// The experiments of the page.
const ALL: [&str; 12] = [
    "shares",
    "arrivals",
    "woken",
    "sleeper",
    "sleepers",
    "ping-pong",
    "other-sleepers",
    "other-batches",
    SEVERAL[0],
    SEVERAL[1],
    SEVERAL[2],
    SEVERAL[3],
];

/// Those of several CPUs: of them, decisions are compared, too.
const SEVERAL: [&str; 4] = ["smp-2", "smp-4", "smp-2-woken", "smp-4-woken"];

/// What is different in simulations of an experiment: CPUs that take turns are slower.
fn options_of(name: &str) -> &'static [&'static str] {
    match name {
        two if two.starts_with("smp-2") => &["--set", "machine.capacity=[512, 512]"],
        four if four.starts_with("smp-4") => &["--set", "machine.capacity=[256, 256, 256, 256]"],
        _ => &[],
    }
}

/// That of the quick form, whose kernel is that of [`QUICK_KERNEL`].
const QUICK: &str = "quick";
const QUICK_KERNEL: Kernel = KERNELS[2];

/// A kernel: what experiments call the policy with its rule, and the scheduler of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kernel {
    label: &'static str,
    scheduler: &'static str,
}

const KERNELS: [Kernel; 3] = [
    Kernel { label: "6.1", scheduler: "stock-cfs" },
    Kernel { label: "6.12", scheduler: "stock-eevdf-6.12" },
    Kernel { label: "7.2", scheduler: "stock-eevdf" },
];

/// Why rows are not within the tolerance: a load, a kernel and the cause on each line.
const CAUSES: &str = "experiments/fidelity/causes.tsv";

/// Runs the kernels and writes what they gave, then the page; with `names`, only these experiments.
pub fn write(names: &[&str]) -> Result<(), Failed> {
    let known = |name: &&&str| ALL.contains(name) || **name == recordings::NAME;
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let (all, last) = (ALL.join(", "), recordings::NAME);
        return Err(Failed(format!("no experiment \"{unknown}\", but {all} and {last}")));
    }
    docs::build_program()?;
    let schedulers = KERNELS.map(|kernel| kernel.scheduler);
    for name in ALL.into_iter().filter(|name| names.is_empty() || names.contains(name)) {
        let figures = of_kernels(name, &schedulers)?;
        write_file(&format!("{RESULTS}/{name}.tsv"), &tsv(&figures))?;
    }
    if names.is_empty() || names.contains(&recordings::NAME) {
        recordings::write()?;
    }
    docs::write_named(&["docs/fidelity.md"])
}

/// Fails if a kernel and the simulator differ on some loads by more than the tolerance.
pub fn check() -> Result<(), Failed> {
    docs::build_program()?;
    let kernel = of_kernels(QUICK, &[QUICK_KERNEL.scheduler])?;
    let run = Run::of(QUICK)?;
    let mut wrong = String::new();
    for row in run.rows(&kernel).filter(|row| !row.is_within()) {
        let Row { load, quantity, measured, simulated, .. } = &row;
        let _ = write!(wrong, "\n  {load}: {quantity} is {measured}, simulated {simulated}");
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failed(format!("{EXPERIMENTS}/{QUICK}.toml: the simulator is off:{wrong}")))
}

/// The tables of a page, in Markdown: what kernels gave beside the simulator.
pub fn page() -> Result<String, Failed> {
    let causes = std::fs::read_to_string(root().join(CAUSES)).unwrap_or_default();
    let mut text = String::new();
    let mut tally = Tally::default();
    for name in ALL {
        let stored = format!("{RESULTS}/{name}.tsv");
        let kept = std::fs::read_to_string(root().join(&stored))
            .map_err(|error| Failed(format!("{stored}: {error}; type: cargo xtask fidelity")))?;
        let (measured, run) = (from_tsv(&kept), Run::of(name)?);
        let _ = write!(text, "### {}\n\n{}\n", run.title, run.table(&measured));
        for row in run.rows(&measured) {
            let several = if SEVERAL.contains(&name) { ", several CPUs" } else { "" };
            tally.add(format!("{}{several}", row.kernel), row);
        }
    }
    let (table, rows) = recordings::page()?;
    let _ = write!(text, "### Recordings, run again\n\n{table}\n");
    rows.into_iter().for_each(|row| tally.add("recordings".into(), row));
    let head = tally.table();
    Ok(format!("{head}\n{text}### Causes\n\n{}", causes_of(&tally.failed, &causes)))
}

/// How many figures there are of each kernel, and those that are off.
#[derive(Default)]
struct Tally {
    /// What they are of, how many there are, and how many are within the tolerance.
    counts: Vec<(String, usize, usize)>,
    failed: Vec<Row>,
}

impl Tally {
    fn add(&mut self, of: String, row: Row) {
        let at = self.counts.iter().position(|(known, ..)| *known == of);
        let at = at.unwrap_or_else(|| {
            self.counts.push((of, 0, 0));
            self.counts.len() - 1
        });
        let (_, all, within) = &mut self.counts[at];
        *all += 1;
        if row.is_within() {
            *within += 1;
        } else {
            self.failed.push(row);
        }
    }

    fn table(&self) -> String {
        let mut text = String::from("| kernel | figures | within the tolerance |\n|---|--:|--:|\n");
        for (of, all, within) in &self.counts {
            let _ = writeln!(text, "| {of} | {all} | {within} |");
        }
        text
    }
}

/// An experiment, simulated.
struct Run {
    title: String,
    loads: Vec<String>,
    quantities: Vec<String>,
    figures: Figures,
    /// By how much counts and shares may be off.
    tolerance: fn(&str) -> Tolerance,
}

impl Run {
    fn of(name: &str) -> Result<Run, Failed> {
        let options = options_of(name);
        let json = run(name, &[options, &["--format", "json"]].concat())?;
        let title = json["title"].as_str().unwrap_or(name).to_string();
        let mut all = figures(&json, |_| true);
        // What is counted in traces is of the first run.
        let first = run(name, &[options, &["--format", "json", "--seeds", "1"]].concat())?;
        all.extend(figures(&first, |quantity| COUNTED.iter().any(|counted| counted == quantity)));
        let mut quantities = quantities(name)?;
        let mut tolerance: fn(&str) -> Tolerance = Tolerance::of;
        if SEVERAL.contains(&name) {
            let labels = KERNELS.map(|kernel| kernel.label);
            traced(name, options, &labels, &mut |load, label, trace| {
                all.extend(placement::figures(load, label, trace, false)?);
                Ok(())
            })?;
            quantities.extend(placement::QUANTITIES.map(str::to_string));
            tolerance = placement::tolerance;
        }
        let loads = loads(&json);
        Ok(Run { title, loads, quantities, figures: all, tolerance })
    }

    /// What there is of a load, a quantity and a kernel.
    fn row(&self, measured: &Figures, load: &str, quantity: &str, kernel: Kernel) -> Option<Row> {
        let key = |scheduler: &str| (load.to_string(), scheduler.to_string(), quantity.to_string());
        Some(Row {
            load: load.to_string(),
            quantity: quantity.to_string(),
            kernel: kernel.label,
            tolerance: (self.tolerance)(quantity),
            measured: *measured.get(&key(kernel.scheduler))?,
            simulated: *self.figures.get(&key(kernel.label))?,
        })
    }

    fn rows<'a>(&'a self, measured: &'a Figures) -> impl Iterator<Item = Row> + 'a {
        let pairs = self
            .loads
            .iter()
            .flat_map(|load| self.quantities.iter().map(move |quantity| (load, quantity)));
        pairs.flat_map(move |(load, quantity)| {
            let kernels = KERNELS.iter();
            kernels.filter_map(move |kernel| self.row(measured, load, quantity, *kernel))
        })
    }

    fn table(&self, measured: &Figures) -> String {
        let mut text = String::from("| load | |");
        for Kernel { label, .. } in KERNELS {
            let _ = write!(text, " {label} | simulated | off, % |");
        }
        text.push_str("\n|---|---|");
        text.push_str(&"--:|--:|--:|".repeat(KERNELS.len()));
        text.push('\n');
        for load in &self.loads {
            let mut name = load.as_str();
            for quantity in &self.quantities {
                let row = |kernel| self.row(measured, load, quantity, kernel);
                if KERNELS.iter().all(|kernel| row(*kernel).is_none()) {
                    continue;
                }
                let _ = write!(text, "| {name} | {} |", named(quantity));
                for kernel in KERNELS {
                    match row(kernel) {
                        Some(row) => text.push_str(&row.cells()),
                        None => text.push_str(" - | - | - |"),
                    }
                }
                text.push('\n');
                name = "";
            }
        }
        text
    }
}

/// The columns of an experiment's report.
fn quantities(name: &str) -> Result<Vec<String>, Failed> {
    let file = format!("{EXPERIMENTS}/{name}.toml");
    let text = std::fs::read_to_string(root().join(&file))
        .map_err(|error| Failed(format!("{file}: {error}")))?;
    let list = text.split_once("columns = [").and_then(|(_, rest)| rest.split_once(']'));
    let list = list.map_or("", |(list, _)| list);
    Ok(list.split('"').skip(1).step_by(2).map(str::to_string).collect())
}

/// What an experiment gives under schedulers of kernels, in the columns of its report.
fn of_kernels(name: &str, schedulers: &[&str]) -> Result<Figures, Failed> {
    let wanted = quantities(name)?;
    let counted: Vec<&str> =
        COUNTED.into_iter().filter(|counted| wanted.iter().any(|name| name == counted)).collect();
    let list = schedulers.join(",");
    let options = ["--host", "linux", "--policy", &list];
    let is_wanted = |quantity: &String| {
        wanted.contains(quantity) && COUNTED.iter().all(|counted| counted != quantity)
    };
    if counted.is_empty() {
        let json = run(name, &[&options[..], &["--format", "json"]].concat())?;
        return Ok(figures(&json, is_wanted));
    }
    let mut of_traces = Figures::new();
    let json = traced(name, &options, schedulers, &mut |load, scheduler, trace| {
        let text = std::fs::read_to_string(trace)
            .map_err(|error| Failed(format!("{}: {error}", trace.display())))?;
        let counts = Counts::of(&text);
        for quantity in &counted {
            let key = (load.to_string(), scheduler.to_string(), quantity.to_string());
            of_traces.insert(key, counts.get(quantity));
        }
        if SEVERAL.contains(&name) {
            of_traces.extend(placement::figures(load, scheduler, trace, true)?);
        }
        Ok(())
    })?;
    let mut figures = figures(&json, is_wanted);
    figures.extend(of_traces);
    Ok(figures)
}

/// The results of an experiment, traced; hands on the load, the policy and the file of each trace.
fn traced(
    name: &str,
    options: &[&str],
    policies: &[&str],
    take: &mut dyn FnMut(&str, &str, &Path) -> Result<(), Failed>,
) -> Result<Value, Failed> {
    let folder = root().join("target/fidelity").join(name);
    let failed = |error: std::io::Error| Failed(format!("{}: {error}", folder.display()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let trace = folder.join("trace.txt");
    let trace = trace.to_string_lossy();
    let json = run(name, &[options, &["--format", "json", "--trace", &*trace]].concat())?;
    let groups = loads(&json);
    for (group, load) in groups.iter().enumerate() {
        for policy in policies {
            // As `run --trace` calls the files of several rows.
            let mut file = trace.trim_end_matches(".txt").to_string();
            if groups.len() > 1 {
                let _ = write!(file, "-{group}");
            }
            if policies.len() > 1 {
                let _ = write!(file, "-{}", policy.replace('.', "_"));
            }
            take(load, policy, Path::new(&(file + ".txt")))?;
        }
    }
    std::fs::remove_dir_all(&folder).map_err(failed)?;
    Ok(json)
}

/// The results of an experiment.
fn run(name: &str, options: &[&str]) -> Result<Value, Failed> {
    run_file(&format!("{EXPERIMENTS}/{name}.toml"), options)
}

fn run_file(file: &str, options: &[&str]) -> Result<Value, Failed> {
    let text = anysched(&[&["run", file][..], options].concat())?;
    serde_json::from_str(&text).map_err(|error| Failed(format!("results of {file}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each experiment exists, has all kernels and says what it is about.
    #[test]
    fn experiments_have_what_is_asked_of_them() {
        for name in ALL {
            let text = std::fs::read_to_string(root().join(format!("{EXPERIMENTS}/{name}.toml")));
            let text = text.unwrap();
            for Kernel { label, scheduler } in &KERNELS {
                assert!(text.contains(&format!("label = \"{label}\"")), "{name}: {label}");
                assert!(text.contains(&format!("\"{scheduler}\"")), "{name}: {scheduler}");
            }
            assert!(!quantities(name).unwrap().is_empty(), "{name}");
        }
    }
}
