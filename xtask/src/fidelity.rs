//! Real kernels beside the simulator: the experiments of `experiments/fidelity` under the schedulers
//! of stock kernels and under the policies that have their rules.
//!
//! What kernels gave is kept in `hosts/linux/results/fidelity`, because booting them takes minutes.
//! The simulator's side is computed whenever a page is printed.

use crate::docs::{self, anysched};
use crate::kernels::write_file;
use crate::run::{Failed, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const EXPERIMENTS: &str = "experiments/fidelity";
const RESULTS: &str = "hosts/linux/results/fidelity";

/// The experiments of the page.
const ALL: [&str; 8] = [
    "shares",
    "arrivals",
    "woken",
    "sleeper",
    "sleepers",
    "ping-pong",
    "other-sleepers",
    "other-batches",
];

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

/// By how much of the kernel's figure the simulator's may be off, in percent: means and counts, and
/// percentiles.
const OF_MEANS: f64 = 5.0;
const OF_PERCENTILES: f64 = 10.0;

/// Differences of times that mean nothing, in nanoseconds: a load is not performed to the
/// instruction.
const NOTHING: f64 = 1000.0;

/// Figures by load, scheduler and quantity.
type Figures = BTreeMap<(String, String, String), f64>;

/// Runs the kernels and writes what they gave, then the page.
pub fn write() -> Result<(), Failed> {
    docs::build_program()?;
    for name in ALL {
        let schedulers: Vec<&str> = KERNELS.iter().map(|kernel| kernel.scheduler).collect();
        let figures = of_kernels(name, &schedulers)?;
        write_file(&format!("{RESULTS}/{name}.tsv"), &tsv(&figures))?;
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
    let (mut all, mut off) = ([0; KERNELS.len()], [0; KERNELS.len()]);
    let mut failed = Vec::new();
    for name in ALL {
        let stored = format!("{RESULTS}/{name}.tsv");
        let kept = std::fs::read_to_string(root().join(&stored))
            .map_err(|error| Failed(format!("{stored}: {error}; type: cargo xtask fidelity")))?;
        let (measured, run) = (from_tsv(&kept), Run::of(name)?);
        let _ = write!(text, "### {}\n\n{}\n", run.title, run.table(&measured));
        for row in run.rows(&measured) {
            let kernel = KERNELS.iter().position(|kernel| *kernel == row.kernel).unwrap_or(0);
            all[kernel] += 1;
            if !row.is_within() {
                off[kernel] += 1;
                failed.push(row);
            }
        }
    }
    let mut head = String::from("| kernel | figures | within the tolerance |\n|---|--:|--:|\n");
    for (kernel, (all, off)) in KERNELS.iter().zip(all.into_iter().zip(off)) {
        let _ = writeln!(head, "| {} | {all} | {} |", kernel.label, all - off);
    }
    Ok(format!("{head}\n{text}### Causes\n\n{}", causes_of(&failed, &causes)))
}

/// Why rows are off, a line for each load and kernel.
fn causes_of(failed: &[Row], causes: &str) -> String {
    let mut text = String::from("| load | kernel | off | cause |\n|---|---|---|---|\n");
    let mut groups: Vec<(&str, Kernel, Vec<String>)> = Vec::new();
    for row in failed {
        let word = format!("{} {:+.0} %", row.quantity, row.off());
        match groups.iter_mut().find(|(load, kernel, _)| *load == row.load && *kernel == row.kernel)
        {
            Some((.., words)) => words.push(word),
            None => groups.push((&row.load, row.kernel, vec![word])),
        }
    }
    for (load, Kernel { label, .. }, words) in groups {
        let known = causes.lines().find_map(|line| {
            let mut words = line.split('\t');
            let is_it = words.next() == Some(load) && words.next() == Some(label);
            words.next().filter(|_| is_it)
        });
        let cause = known.unwrap_or("not found");
        let _ = writeln!(text, "| {load} | {label} | {} | {cause} |", words.join(", "));
    }
    text
}

/// An experiment, simulated.
struct Run {
    title: String,
    loads: Vec<String>,
    quantities: Vec<String>,
    figures: Figures,
}

/// A figure of a kernel and of its simulation.
#[derive(Clone, Debug)]
struct Row {
    load: String,
    quantity: String,
    kernel: Kernel,
    measured: f64,
    simulated: f64,
}

impl Run {
    fn of(name: &str) -> Result<Run, Failed> {
        let json = run(name, &["--format", "json"])?;
        let figures = figures(&json, |_, quantity| Some(quantity));
        let mut loads = Vec::new();
        for row in rows(&json) {
            let load = load(row);
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        let title = json["title"].as_str().unwrap_or(name).to_string();
        Ok(Run { title, loads, quantities: quantities(name)?, figures })
    }

    /// What there is of a load, a quantity and a kernel.
    fn row(&self, measured: &Figures, load: &str, quantity: &str, kernel: Kernel) -> Option<Row> {
        let key = |scheduler: &str| (load.to_string(), scheduler.to_string(), quantity.to_string());
        Some(Row {
            load: load.to_string(),
            quantity: quantity.to_string(),
            kernel,
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
            KERNELS.iter().filter_map(move |kernel| self.row(measured, load, quantity, *kernel))
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
            for (number, quantity) in self.quantities.iter().enumerate() {
                let name = if number == 0 { load } else { "" };
                let _ = write!(text, "| {name} | {} |", named(quantity));
                for kernel in KERNELS {
                    match self.row(measured, load, quantity, kernel) {
                        Some(row) => text.push_str(&row.cells()),
                        None => text.push_str(" - | - | - |"),
                    }
                }
                text.push('\n');
            }
        }
        text
    }
}

impl Row {
    /// By how much of the kernel's figure the simulator's is off, in percent.
    fn off(&self) -> f64 {
        (self.simulated - self.measured) / self.measured * 100.0
    }

    fn is_time(&self) -> bool {
        self.quantity.contains("_ns")
    }

    fn is_within(&self) -> bool {
        let percentile = ["_p50", "_p95", "_p99"].iter().any(|end| self.quantity.ends_with(end));
        let tolerance = if percentile { OF_PERCENTILES } else { OF_MEANS };
        let difference = (self.simulated - self.measured).abs();
        let is_nothing = self.is_time() && difference <= NOTHING;
        is_nothing || difference <= tolerance / 100.0 * self.measured.abs()
    }

    fn cells(&self) -> String {
        let off = format!("{:+.1}", self.off());
        let off = if self.is_within() { off } else { format!("**{off}**") };
        let [measured, simulated] = [self.measured, self.simulated].map(|n| self.number(n));
        format!(" {measured} | {simulated} | {off} |")
    }

    /// Times are in microseconds.
    fn number(&self, number: f64) -> String {
        let (number, digits) = match self.is_time() {
            true => (number / 1000.0, if number < 100_000.0 { 1 } else { 0 }),
            false => (number, 0),
        };
        format!("{number:.digits$}")
    }
}

/// A quantity as the page calls it.
fn named(quantity: &str) -> String {
    let words = quantity.replacen("_ns", "", 1).replace('_', " ");
    if quantity.contains("_ns") { format!("{words}, us") } else { words }
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
    let json = run(
        name,
        &["--host", "linux", "--policy", &schedulers.join(","), "--format", "json", "--jobs", "2"],
    )?;
    Ok(figures(&json, |row, quantity| {
        let of_tasks = quantity == SWITCHES && row["metrics"].get(PICKS).is_some();
        match quantity.as_str() {
            PICKS => Some(SWITCHES.to_string()).filter(|name| wanted.contains(name)),
            _ if of_tasks => None,
            _ => Some(quantity).filter(|name| wanted.contains(name)),
        }
    }))
}

/// The kernel's count of switches is that of the machine, with those to its own threads. What it
/// counts of each task are switches to it.
const SWITCHES: &str = "context_switches";
const PICKS: &str = "dispatches";

/// The results of an experiment.
fn run(name: &str, options: &[&str]) -> Result<Value, Failed> {
    let file = format!("{EXPERIMENTS}/{name}.toml");
    let text = anysched(&[&["run", &file][..], options].concat())?;
    serde_json::from_str(&text).map_err(|error| Failed(format!("results of {file}: {error}")))
}

fn rows(json: &Value) -> impl Iterator<Item = &Value> {
    json["rows"].as_array().into_iter().flatten()
}

/// The load of a row.
fn load(row: &Value) -> String {
    row["axes"]["scenario"].as_str().unwrap_or_default().to_string()
}

/// The figures of results, each under the name that `called` gives it.
fn figures(json: &Value, called: impl Fn(&Value, String) -> Option<String>) -> Figures {
    let mut figures = Figures::new();
    for row in rows(json) {
        let scheduler = row["policy"].as_str().unwrap_or_default();
        for (quantity, figure) in row["metrics"].as_object().into_iter().flatten() {
            if let (Some(figure), Some(quantity)) =
                (figure["mean"].as_f64(), called(row, quantity.clone()))
            {
                figures.insert((load(row), scheduler.to_string(), quantity), figure);
            }
        }
    }
    figures
}

fn tsv(figures: &Figures) -> String {
    let line = |((load, scheduler, quantity), figure): (&(String, String, String), &f64)| {
        format!("{load}\t{scheduler}\t{quantity}\t{figure}\n")
    };
    figures.iter().map(line).collect()
}

fn from_tsv(text: &str) -> Figures {
    let line = |line: &str| {
        let words: Vec<&str> = line.split('\t').collect();
        let [load, scheduler, quantity, figure] = words[..] else { return None };
        let key = (load.to_string(), scheduler.to_string(), quantity.to_string());
        Some((key, figure.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(quantity: &str, measured: f64, simulated: f64) -> Row {
        let (load, quantity) = ("a".to_string(), quantity.to_string());
        Row { load, quantity, kernel: KERNELS[0], measured, simulated }
    }

    #[test]
    fn the_tolerance_depends_on_the_quantity() {
        let is_within = |quantity, simulated| row(quantity, 100_000.0, simulated).is_within();
        assert!(is_within("turnaround_ns_mean", 105_000.0));
        assert!(!is_within("turnaround_ns_mean", 105_001.0));
        assert!(is_within("turnaround_ns_p99", 110_000.0));
        assert!(!is_within("turnaround_ns_p99", 89_999.0));
        assert!(!is_within("context_switches", 106_000.0));
        // A microsecond is nothing, a switch is something.
        assert!(row("turnaround_ns_p50", 900.0, 1_900.0).is_within());
        assert!(!row("context_switches", 9.0, 10.0).is_within());
        assert_eq!(row("context_switches", 200.0, 150.0).cells(), " 200 | 150 | **-25.0** |");
        assert_eq!(row("x_ns_mean", 5_000.0, 5_100.0).cells(), " 5.0 | 5.1 | +2.0 |");
    }

    #[test]
    fn what_is_kept_is_what_was_measured() {
        let json = r#"{"rows": [{"policy": "stock-cfs", "axes": {"scenario": "one hog"},
            "metrics": {"a_ns_mean": {"mean": 1.5}, "b": {"mean": null}}}]}"#;
        let json: Value = serde_json::from_str(json).unwrap();
        let figures = figures(&json, |_, quantity| Some(quantity));
        assert_eq!(tsv(&figures), "one hog\tstock-cfs\ta_ns_mean\t1.5\n");
        assert_eq!(from_tsv(&tsv(&figures)), figures);
        assert_eq!(from_tsv("a\tb\n"), Figures::new());
    }

    #[test]
    fn rows_that_are_off_have_a_cause_or_say_that_there_is_none() {
        let rows = [row("b", 1.0, 2.0), row("c", 1.0, 0.5)];
        let text = causes_of(&rows, "a\t6.12\tx\na\t6.1\ty\n");
        assert_eq!(text.lines().nth(2), Some("| a | 6.1 | b +100 %, c -50 % | y |"));
        assert!(causes_of(&rows, "").contains("| not found |"));
    }

    /// Each experiment exists, has all kernels and says what it is about.
    #[test]
    fn experiments_have_what_is_asked_of_them() {
        for name in ALL {
            let text = std::fs::read_to_string(root().join(format!("{EXPERIMENTS}/{name}.toml")));
            let text = text.unwrap();
            for Kernel { label, scheduler } in KERNELS {
                assert!(text.contains(&format!("label = \"{label}\"")), "{name}: {label}");
                assert!(text.contains(&format!("\"{scheduler}\"")), "{name}: {scheduler}");
            }
            assert!(!quantities(name).unwrap().is_empty(), "{name}");
        }
    }
}
