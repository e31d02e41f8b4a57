//! Real kernels beside the simulator: the experiments of `experiments/fidelity` under schedulers of
//! stock kernels and under the policies that have their rules.
//!
//! What kernels gave is kept in `hosts/linux/results/fidelity`, because booting them takes minutes.
//! The simulator's side is computed whenever a page is printed.

use crate::docs::{self, anysched};
use crate::kernels::write_file;
use crate::run::{Failed, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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

/// Runs the kernels and writes what they gave, then the page; with `names`, only these experiments.
pub fn write(names: &[&str]) -> Result<(), Failed> {
    if let Some(unknown) = names.iter().find(|name| !ALL.contains(name)) {
        return Err(Failed(format!("no experiment \"{unknown}\", but {}", ALL.join(", "))));
    }
    docs::build_program()?;
    for name in ALL.into_iter().filter(|name| names.is_empty() || names.contains(name)) {
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
        let word = format!("{} {:+.0} %", words_of(&row.quantity), row.off());
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
        let title = json["title"].as_str().unwrap_or(name).to_string();
        let mut all = figures(&json, |_| true);
        // What is counted in traces is of the first run.
        let first = run(name, &["--format", "json", "--seeds", "1"])?;
        all.extend(figures(&first, |quantity| COUNTED.iter().any(|counted| counted == quantity)));
        Ok(Run { title, loads: loads(&json), quantities: quantities(name)?, figures: all })
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
fn words_of(quantity: &str) -> String {
    quantity.replacen("_ns", "", 1).replace('_', " ")
}

/// The same, with its unit.
fn named(quantity: &str) -> String {
    let words = words_of(quantity);
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
    let counted: Vec<&str> =
        COUNTED.into_iter().filter(|counted| wanted.iter().any(|name| name == counted)).collect();
    let folder = root().join("target/fidelity").join(name);
    let failed = |error: std::io::Error| Failed(format!("{}: {error}", folder.display()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let trace = folder.join("trace.txt");
    let trace = trace.to_string_lossy();
    let list = schedulers.join(",");
    let mut options = vec!["--host", "linux", "--policy", &list, "--format", "json"];
    if !counted.is_empty() {
        options.extend(["--trace", &*trace]);
    }
    let json = run(name, &options)?;
    let is_wanted = |quantity: &String| {
        wanted.contains(quantity) && COUNTED.iter().all(|counted| counted != quantity)
    };
    let mut figures = figures(&json, is_wanted);
    let groups = loads(&json);
    for (group, load) in groups.iter().enumerate().filter(|_| !counted.is_empty()) {
        for scheduler in schedulers {
            // As `run --trace` calls the files of several rows.
            let mut file = trace.trim_end_matches(".txt").to_string();
            if groups.len() > 1 {
                let _ = write!(file, "-{group}");
            }
            if schedulers.len() > 1 {
                let _ = write!(file, "-{}", scheduler.replace('.', "_"));
            }
            let text = std::fs::read_to_string(file + ".txt").map_err(failed)?;
            let counts = Counts::of(&text);
            for quantity in &counted {
                let key = (load.clone(), scheduler.to_string(), quantity.to_string());
                figures.insert(key, counts.get(quantity));
            }
        }
    }
    std::fs::remove_dir_all(&folder).map_err(failed)?;
    Ok(figures)
}

const SWITCHES: &str = "context_switches";
const MIGRATIONS: &str = "migrations";

/// Quantities that are counted in traces: a kernel counts its own threads, too.
const COUNTED: [&str; 2] = [SWITCHES, MIGRATIONS];

/// What tasks of a load did, by the simulator's definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// To another task of the load than the CPU ran before, whatever else it ran between.
    switches: u32,
    /// To a task on another CPU than it ran on before.
    migrations: u32,
}

impl Counts {
    /// Those of a trace in ftrace's text.
    fn of(trace: &str) -> Counts {
        let switches: Vec<Switch<'_>> = trace.lines().filter_map(Switch::read).collect();
        let tasks: BTreeSet<&str> =
            switches.iter().filter(|to| is_task(to.name)).map(|to| to.task).collect();
        let mut counts = Counts::default();
        let (mut on, mut at) = (BTreeMap::new(), BTreeMap::new());
        for Switch { cpu, task, .. } in switches.iter().filter(|to| tasks.contains(to.task)) {
            counts.switches += u32::from(on.insert(cpu, task) != Some(task));
            counts.migrations += u32::from(at.insert(task, cpu).is_some_and(|last| last != cpu));
        }
        counts
    }

    fn get(&self, quantity: &str) -> f64 {
        f64::from(if quantity == MIGRATIONS { self.migrations } else { self.switches })
    }
}

/// A switch of a CPU to a task.
struct Switch<'a> {
    cpu: &'a str,
    name: &'a str,
    task: &'a str,
}

impl Switch<'_> {
    fn read(line: &str) -> Option<Switch<'_>> {
        let (head, event) = line.split_once(": sched_switch: ")?;
        let (_, cpu) = head.split_once(" [")?;
        let (_, name) = event.split_once("next_comm=")?;
        let (name, task) = name.split_once(" next_pid=")?;
        Some(Switch { cpu: cpu.split(']').next()?, name, task: task.split(' ').next()? })
    }
}

/// Whether a thread of this name is a task of the load: these end with a number.
fn is_task(name: &str) -> bool {
    let number = name.rsplit_once('-').map_or("", |(_, number)| number);
    !name.contains('/') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The results of an experiment.
fn run(name: &str, options: &[&str]) -> Result<Value, Failed> {
    let file = format!("{EXPERIMENTS}/{name}.toml");
    let text = anysched(&[&["run", &file][..], options].concat())?;
    serde_json::from_str(&text).map_err(|error| Failed(format!("results of {file}: {error}")))
}

/// Names of columns end with one of these if the metric has many values.
const STATS: [&str; 6] = ["mean", "min", "p50", "p95", "p99", "max"];

fn rows(json: &Value) -> impl Iterator<Item = &Value> {
    json["rows"].as_array().into_iter().flatten()
}

/// The loads, in the order of the file.
fn loads(json: &Value) -> Vec<String> {
    let mut loads: Vec<String> = rows(json).map(load).collect();
    loads.dedup();
    loads
}

/// The load of a row.
fn load(row: &Value) -> String {
    row["axes"]["scenario"].as_str().unwrap_or_default().to_string()
}

/// The figures of results, of quantities that are wanted.
fn figures(json: &Value, is_wanted: impl Fn(&String) -> bool) -> Figures {
    let mut figures = Figures::new();
    for row in rows(json) {
        let scheduler = row["policy"].as_str().unwrap_or_default();
        for (metric, numbers) in row["metrics"].as_object().into_iter().flatten() {
            let stats = STATS.map(|stat| (format!("{metric}_{stat}"), &numbers[stat]));
            for (quantity, number) in stats.into_iter().chain([(metric.clone(), &numbers["mean"])])
            {
                if let Some(number) = number.as_f64().filter(|_| is_wanted(&quantity)) {
                    figures.insert((load(row), scheduler.to_string(), quantity), number);
                }
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
            "metrics": {"a_ns": {"mean": 1.5, "p99": 7}, "b": {"mean": null}}}]}"#;
        let json: Value = serde_json::from_str(json).unwrap();
        let figures = figures(&json, |quantity| quantity != "a_ns");
        let lines = ["one hog\tstock-cfs\ta_ns_mean\t1.5\n", "one hog\tstock-cfs\ta_ns_p99\t7\n"];
        assert_eq!(tsv(&figures), lines.concat());
        assert_eq!(from_tsv(&tsv(&figures)), figures);
        assert_eq!(from_tsv("a\tb\n"), Figures::new());
    }

    #[test]
    fn switches_are_those_among_tasks_of_the_load() {
        let to = |cpu: u32, name: &str, pid: u32| {
            format!(
                "  x-1  [00{cpu}] d..2. 1.000000001: sched_switch: prev_comm=x prev_pid=1 \
                 prev_prio=120 prev_state=R ==> next_comm={name} next_pid={pid} next_prio=120\n"
            )
        };
        let lines = [
            // Before it has its name.
            to(0, "init", 7),
            to(0, "hog-0-0", 7),
            to(0, "kworker/0:1-9", 3),
            to(0, "hog-0-0", 7),
            to(0, "hog-1-1", 8),
            to(1, "hog-0-0", 7),
            to(1, "swapper/1", 0),
            to(1, "hog-0-0", 7),
            "  x-1  [000] d..2. 1.0: sched_waking: comm=hog-0-0 pid=7 prio=120\n".into(),
        ];
        assert_eq!(Counts::of(&lines.concat()), Counts { switches: 3, migrations: 1 });
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
