//! Recordings of real machines beside their loads, run again under the policy of the kernel that
//! they were made on.
//!
//! The run is written as a recording, too, and both are read the same way.

use super::decisions::{Decisions, Tasks};
use super::figures::{Figures, from_tsv, load, rows, tsv};
use super::row::{Row, Tolerance, named};
use super::{EXPERIMENTS, RESULTS, run_file};
use crate::kernels::write_file;
use crate::run::{Failed, root};
use std::fmt::Write;
use std::path::Path;

/// An experiment whose loads are recordings.
struct Set {
    experiment: &'static str,
    /// It. One that names a folder in place of which another comes ends with `.in`.
    file: &'static str,
    /// The label of its policy.
    kernel: &'static str,
    /// For each scenario its recording, in the repository or in the folder that [`FOLDER`] names.
    recordings: &'static [&'static str],
}

/// Those whose recordings are in the repository.
const HERE: Set = Set {
    experiment: "recordings",
    file: "recordings.toml",
    kernel: "6.18",
    recordings: &["traces/cargo-build.txt.gz", "traces/request-response.txt.gz"],
};

/// Those whose recordings are not. Both sides are kept, as the page is printed without them.
const ELSEWHERE: Set = Set {
    experiment: "recordings-elsewhere",
    file: "recordings-elsewhere.toml.in",
    kernel: "4.19",
    recordings: &["ftrace-arm-6cpu.txt"],
};

/// The environment variable with the folder of the recordings that are not in the repository. In
/// their experiment, its name stands for the folder.
const FOLDER: &str = "ANYSCHED_RECORDINGS";

/// The name of the set and of what is kept of it.
pub const NAME: &str = "recordings";

const RECORDED: &str = "recorded";
const SIMULATED: &str = "simulated";

/// What is compared, and by how much it may differ.
const QUANTITIES: [(&str, Tolerance); 7] = [
    ("involuntary switches", Tolerance::Percent(15.0)),
    ("wakeup_latency_ns_mean", Tolerance::Percent(20.0)),
    ("wakeup_latency_ns_p95", Tolerance::Percent(20.0)),
    ("first_run_of_new_tasks_ns_mean", Tolerance::Percent(20.0)),
    ("migrations", Tolerance::Percent(15.0)),
    ("to a busy CPU, %", Tolerance::Points(5.0)),
    ("to a busy CPU while another was idle, %", Tolerance::Points(5.0)),
];

/// Compares the recordings that are not in the repository, if they are there, and keeps the result.
pub fn write() -> Result<(), Failed> {
    let Some(folder) = std::env::var_os(FOLDER) else {
        println!("{FOLDER} names no folder of recordings: those from elsewhere are as they were");
        return Ok(());
    };
    write_file(&stored(), &tsv(&ELSEWHERE.compare(Path::new(&folder))?))
}

fn stored() -> String {
    format!("{RESULTS}/{}.tsv", ELSEWHERE.experiment)
}

/// The table, and its rows.
pub fn page() -> Result<(String, Vec<Row>), Failed> {
    let here = HERE.compare(root().as_path())?;
    let kept = std::fs::read_to_string(root().join(stored())).unwrap_or_default();
    let mut text = String::from("| recording | | recorded | simulated | off, % |\n");
    text.push_str("|---|---|--:|--:|--:|\n");
    let mut all = Vec::new();
    for (set, figures) in [(HERE, here), (ELSEWHERE, from_tsv(&kept))] {
        let mut last = String::new();
        for row in set.rows(&figures) {
            let name = if row.load == last { "" } else { &row.load };
            let _ = writeln!(text, "| {name} | {} |{}", named(&row.quantity), row.cells());
            last.clone_from(&row.load);
            all.push(row);
        }
    }
    Ok((text, all))
}

impl Set {
    fn compare(&self, folder: &Path) -> Result<Figures, Failed> {
        let out = root().join("target/fidelity").join(self.experiment);
        let failed = |error: std::io::Error| Failed(format!("{}: {error}", out.display()));
        let _ = std::fs::remove_dir_all(&out);
        std::fs::create_dir_all(&out).map_err(failed)?;
        let file = root().join(EXPERIMENTS).join(self.file);
        let mut text = std::fs::read_to_string(&file)
            .map_err(|error| Failed(format!("{}: {error}", file.display())))?;
        let mut file = file.to_string_lossy().into_owned();
        if text.contains(FOLDER) {
            text = text.replace(FOLDER, &folder.to_string_lossy());
            file = out.join("experiment.toml").to_string_lossy().into_owned();
            std::fs::write(&file, &text).map_err(failed)?;
        }
        let trace = out.join("trace.txt");
        let json = run_file(&file, &["--format", "json", "--trace", &trace.to_string_lossy()])?;
        let mut figures = Figures::new();
        let all = self.recordings.iter().zip(rows(&json)).zip(idle_exits(&text));
        for (number, ((path, row), idle_exit)) in all.enumerate() {
            let mut put = |side: &str, decisions: &Decisions| {
                for (quantity, figure) in figures_of(decisions) {
                    figures.insert((load(row), side.into(), quantity.into()), figure);
                }
            };
            put(RECORDED, &Decisions::of(&folder.join(path), Tasks::Known, 0)?);
            let several = self.recordings.len() > 1;
            let trace = if several { format!("trace-{number}.txt") } else { "trace.txt".into() };
            put(SIMULATED, &Decisions::of(&out.join(trace), Tasks::Known, idle_exit)?);
        }
        Ok(figures)
    }

    fn rows(&self, figures: &Figures) -> Vec<Row> {
        let mut loads: Vec<&String> = figures.keys().map(|(load, ..)| load).collect();
        loads.dedup();
        let row = |load: &String, (quantity, tolerance): (&str, Tolerance)| {
            let of = |side: &str| figures.get(&(load.clone(), side.into(), quantity.into()));
            Some(Row {
                load: load.clone(),
                quantity: quantity.into(),
                kernel: self.kernel,
                measured: *of(RECORDED)?,
                simulated: *of(SIMULATED)?,
                tolerance,
            })
        };
        loads.iter().flat_map(|load| QUANTITIES.iter().filter_map(|of| row(load, *of))).collect()
    }
}

/// What leaving idle costs in each scenario of an experiment, in ns.
fn idle_exits(text: &str) -> Vec<u64> {
    let number = |text: &str| text.split_once("us\"").and_then(|(us, _)| us.parse::<u64>().ok());
    let all = text.split("idle_exit = \"").skip(1).filter_map(number);
    all.map(|us| us * 1000).collect()
}

/// In the order of [`QUANTITIES`], without what there is none of.
fn figures_of(decisions: &Decisions) -> impl Iterator<Item = (&'static str, f64)> {
    let figures = [
        decisions.get("involuntary_switches"),
        decisions.get("wakeup_latency_ns_mean"),
        decisions.get("wakeup_latency_ns_p95"),
        decisions.get("first_run_of_new_tasks_ns_mean"),
        decisions.get("migrations"),
        decisions.percent("share_to_busy_cpu"),
        decisions.percent("share_to_busy_cpu_while_another_was_idle"),
    ];
    QUANTITIES.iter().zip(figures).filter_map(|((quantity, _), figure)| Some((*quantity, figure?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recording_has_a_scenario_that_says_what_leaving_idle_costs() {
        for Set { experiment, file, kernel, recordings } in [HERE, ELSEWHERE] {
            let text = std::fs::read_to_string(root().join(EXPERIMENTS).join(file)).unwrap();
            let files = text.split("\nfile = \"").skip(1);
            let names: Vec<&str> =
                files.filter_map(|rest| rest.split('"').next()?.rsplit('/').next()).collect();
            let expected: Vec<&str> =
                recordings.iter().filter_map(|path| path.rsplit('/').next()).collect();
            assert_eq!(names, expected, "{experiment}");
            assert_eq!(idle_exits(&text).len(), recordings.len(), "{experiment}");
            assert!(text.contains(&format!("label = \"{kernel}\"")), "{experiment}");
        }
    }
}
