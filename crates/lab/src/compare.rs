//! Two sets of runs side by side, with the differences between them.
//!
//! Runs with the same seed had the same tasks, so their differences are taken one by one, and the
//! interval is that of these differences. Where seeds differ, it is that of two independent means,
//! by Welch.

use crate::results::stats::{Estimate, student_t_975};
use crate::results::{Results, Run};
use crate::spec::columns::{self, Column};
use crate::spec::experiment::Experiment;
use crate::spec::fields::hint;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// How the name of a file with runs ends.
pub const RUNS: &str = "runs.csv";

/// Columns of such a file. Axes lie between the policy and the number of the seed, metrics behind
/// the seed.
pub(crate) const EXPERIMENT: &str = "experiment";
pub(crate) const HOST: &str = "host";
pub(crate) const POLICY: &str = "policy";
pub(crate) const SEED_INDEX: &str = "seed_index";
pub(crate) const SEED: &str = "seed";

/// The runs of an experiment, from results or from their file.
#[derive(Clone, Debug)]
pub struct RunTable {
    /// Where they are from, for people: the name of a file.
    pub name: String,
    /// The experiment's name.
    pub experiment: String,
    rows: Vec<RunRow>,
    /// What the experiment wants to be shown.
    shown: Vec<Column>,
}

#[derive(Clone, Debug)]
struct RunRow {
    policy: String,
    axes: Vec<(String, String)>,
    runs: Vec<Run>,
}

/// One metric of two rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The axis values that both rows have.
    pub axes: Vec<(String, String)>,
    /// The policy of the first and that of the second row.
    pub policies: [String; 2],
    /// What is compared.
    pub column: Column,
    /// Of the first and of the second.
    pub means: [Estimate; 2],
    /// The second less the first: its mean, and half the width of its 95 % confidence interval,
    /// which there is from two runs on.
    pub difference: (f64, Option<f64>),
    /// Pairs of runs with the same tasks; `None`: the difference is that of the means.
    pub pairs: Option<usize>,
}

/// What a difference tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// There is none.
    Same,
    /// The second is lower.
    Lower,
    /// The second is higher.
    Higher,
    /// The interval holds 0, or there is none: more seeds would tell.
    Nothing,
}

/// Two sets of runs, compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The names of both.
    pub names: [String; 2],
    /// By group, then policy, then metric.
    pub rows: Vec<Compared>,
    /// Rows that only the first or only the second has, in words.
    pub only: [Vec<String>; 2],
}

impl RunTable {
    /// The runs of results, called `name`.
    pub fn of(results: &Results, name: &str) -> RunTable {
        let row = |row: &crate::results::Row| RunRow {
            policy: results.policies[row.policy].label.clone(),
            axes: results.groups[row.group]
                .axes
                .iter()
                .map(|(axis, value)| (axis.clone(), value.to_string()))
                .collect(),
            runs: row.runs.clone(),
        };
        RunTable {
            name: name.to_string(),
            experiment: results.experiment.clone(),
            rows: results.rows.iter().map(row).collect(),
            shown: results.shown(),
        }
    }

    /// The runs in a folder that `run --out` wrote, of each experiment there, by name.
    ///
    /// Errors: there are none, or they cannot be read; the message names the file and what to do.
    pub fn of_folder(folder: &Path) -> io::Result<Vec<RunTable>> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: cannot be read: {error}", folder.display()))
        };
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(named)? {
            let path = entry.map_err(named)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.strip_suffix(RUNS).is_some_and(|stem| stem.ends_with('.')) {
                files.push(path);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(io::Error::other(format!(
                "{}: no NAME.{RUNS}, which `anysched run FILE.toml --out DIR` writes",
                folder.display()
            )));
        }
        files.iter().map(|file| RunTable::read(file)).collect()
    }

    /// The runs in a file that `run --out` wrote.
    ///
    /// Errors: it cannot be read, or is no such file; the message says where.
    pub fn read(file: &Path) -> io::Result<RunTable> {
        let name = file.display();
        let failed = |line: u64, why: &dyn std::fmt::Display| {
            io::Error::other(format!(
                "{name}:{line}: {why}; `anysched run --out` writes such files"
            ))
        };
        let mut reader = ::csv::Reader::from_path(file)
            .map_err(|error| io::Error::other(format!("{name}: cannot be read: {error}")))?;
        let header = reader.headers().map_err(|error| failed(1, &error))?.clone();
        let place = |wanted: &str| {
            let found = header.iter().position(|name| name == wanted);
            found.ok_or_else(|| failed(1, &format!("no column `{wanted}`")))
        };
        let (policy, index, seed) = (place(POLICY)?, place(SEED_INDEX)?, place(SEED)?);
        let (experiment, _) = (place(EXPERIMENT)?, place(HOST)?);
        if !(policy < index && index < seed) {
            return Err(failed(1, &format!("`{POLICY}`, `{SEED_INDEX}`, `{SEED}` in this order")));
        }
        // Those of other builds of the program may count more than this one knows.
        let metrics: Vec<(usize, Column)> = (seed + 1..header.len())
            .filter_map(|place| Some((place, columns::column(&header[place])?)))
            .collect();
        let mut table = RunTable {
            name: file.display().to_string(),
            experiment: String::new(),
            rows: Vec::new(),
            shown: Vec::new(),
        };
        for record in reader.records() {
            let record = record.map_err(|error| {
                failed(error.position().map_or(0, ::csv::Position::line), &error)
            })?;
            let line = record.position().map_or(0, ::csv::Position::line);
            let whole = |place: usize| {
                let text = &record[place];
                let column = &header[place];
                text.parse::<u64>()
                    .map_err(|_| failed(line, &format!("`{column}` = \"{text}\" is no number")))
            };
            let mut values = Vec::new();
            for (place, column) in metrics.iter().filter(|(place, _)| !record[*place].is_empty()) {
                let text = &record[*place];
                let number = text
                    .parse()
                    .map_err(|_| failed(line, &format!("`{column}` = \"{text}\" is no number")))?;
                values.push((*column, number));
            }
            values.sort_by_key(|(column, _)| *column);
            let run = Run {
                index: u32::try_from(whole(index)?).unwrap_or(u32::MAX),
                seed: whole(seed)?,
                values: values.into(),
            };
            let axes = policy + 1..index;
            let axes: Vec<(String, String)> =
                axes.map(|at| (header[at].to_string(), record[at].to_string())).collect();
            table.experiment = record[experiment].to_string();
            match table.rows.last_mut() {
                Some(row) if row.policy == record[policy] && row.axes == axes => row.runs.push(run),
                _ => {
                    let policy = record[policy].to_string();
                    table.rows.push(RunRow { policy, axes, runs: vec![run] });
                }
            }
        }
        Ok(table)
    }

    /// The columns that any run has data for.
    fn measured(&self) -> BTreeSet<Column> {
        let runs = self.rows.iter().flat_map(|row| &row.runs);
        runs.flat_map(|run| run.values().iter().map(|(column, _)| *column)).collect()
    }
}

impl Experiment {
    /// The same experiment with the tasks of another one: seeds derive from its name and seed, as
    /// far as axes have the same values.
    pub fn with_tasks_of(mut self, other: &Experiment) -> Experiment {
        self.name.clone_from(&other.name);
        self.seed = other.seed;
        self
    }
}

impl Comparison {
    /// Compares the rows with the same axis values and policies; where each has only one policy,
    /// these. `metrics` are names of columns; without any, those that the experiments show.
    ///
    /// Errors: there is no such column, or neither has data for it.
    pub fn of(a: &RunTable, b: &RunTable, metrics: &[String]) -> Result<Comparison, String> {
        let columns = wanted(a, b, metrics)?;
        let only_policy = |table: &RunTable| {
            let all: BTreeSet<&str> = table.rows.iter().map(|row| row.policy.as_str()).collect();
            (all.len() == 1).then(|| all.into_iter().next().unwrap_or_default().to_string())
        };
        let alone = only_policy(a).zip(only_policy(b));
        let fits = |row: &RunRow, other: &RunRow| {
            row.axes == other.axes && (row.policy == other.policy || alone.is_some())
        };
        let mut rows = Vec::new();
        for row in &a.rows {
            let Some(other) = b.rows.iter().find(|other| fits(row, other)) else { continue };
            rows.extend(columns.iter().filter_map(|column| compared(row, other, *column)));
        }
        let lacking = |these: &RunTable, those: &RunTable| {
            let without =
                these.rows.iter().filter(|row| !those.rows.iter().any(|it| fits(row, it)));
            without.map(RunRow::in_words).collect()
        };
        let only = [lacking(a, b), lacking(b, a)];
        Ok(Comparison { names: [a.name.clone(), b.name.clone()], rows, only })
    }
}

fn wanted(a: &RunTable, b: &RunTable, metrics: &[String]) -> Result<Vec<Column>, String> {
    let measured: BTreeSet<Column> = a.measured().union(&b.measured()).copied().collect();
    if metrics.is_empty() {
        let mut shown = a.shown.clone();
        shown.extend(b.shown.iter().filter(|column| !a.shown.contains(column)));
        if shown.is_empty() {
            shown =
                columns::shown_by_default().filter(|column| measured.contains(column)).collect();
        }
        return Ok(shown);
    }
    let column = |name: &String| {
        let names: Vec<String> = measured.iter().map(Column::to_string).collect();
        let known = columns::column(name).ok_or_else(|| {
            format!("--metric {name}: {}", hint(name, names.iter().map(|it| &**it)))
        })?;
        match measured.contains(&known) {
            true => Ok(known),
            false => Err(format!(
                "--metric {name}: no data; {}",
                hint(name, names.iter().map(|it| &**it))
            )),
        }
    };
    metrics.iter().map(column).collect()
}

impl RunRow {
    /// `rr (machine.cpus = 2)`
    fn in_words(&self) -> String {
        let pairs: Vec<String> =
            self.axes.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        match pairs.is_empty() {
            true => self.policy.clone(),
            false => format!("{} ({})", self.policy, pairs.join(", ")),
        }
    }

    fn values(&self, column: Column) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.value(column)).collect()
    }
}

fn compared(a: &RunRow, b: &RunRow, column: Column) -> Option<Compared> {
    let means = [Estimate::of(&a.values(column))?, Estimate::of(&b.values(column))?];
    let pair = |run: &Run| {
        let other = b.runs.iter().find(|other| other.seed == run.seed)?;
        Some(other.value(column)? - run.value(column)?)
    };
    let differences: Vec<f64> = a.runs.iter().filter_map(pair).collect();
    let (difference, pairs) = match Estimate::of(&differences) {
        Some(paired) => ((paired.mean, paired.ci95), Some(paired.n)),
        None => (welch(means), None),
    };
    let policies = [a.policy.clone(), b.policy.clone()];
    Some(Compared { axes: a.axes.clone(), policies, column, means, difference, pairs })
}

/// The second mean less the first, which are independent, and half the width of its interval.
fn welch([a, b]: [Estimate; 2]) -> (f64, Option<f64>) {
    let difference = b.mean - a.mean;
    let (Some(first), Some(second)) = (a.standard_error, b.standard_error) else {
        return (difference, None);
    };
    let (first, second) = (first * first, second * second);
    let sum = first + second;
    if sum == 0.0 {
        return (difference, Some(0.0));
    }
    let share = |part: f64, n: usize| part * part / (n - 1) as f64;
    let freedom = sum * sum / (share(first, a.n) + share(second, b.n));
    // Rounded down, as tables are read.
    let t = student_t_975((freedom as usize).max(1));
    (difference, Some(t * libm::sqrt(sum)))
}

impl Compared {
    /// What the difference tells.
    pub fn tells(&self) -> Tells {
        match self.difference {
            (0.0, Some(0.0)) => Tells::Same,
            (mean, Some(ci95)) if mean + ci95 < 0.0 => Tells::Lower,
            (mean, Some(ci95)) if mean - ci95 > 0.0 => Tells::Higher,
            _ => Tells::Nothing,
        }
    }

    /// The difference in percent of the first, if that is not 0.
    pub fn change(&self) -> Option<f64> {
        let base = self.means[0].mean;
        (base != 0.0).then(|| self.difference.0 / libm::fabs(base) * 100.0)
    }
}

impl Tells {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Tells::Same => "same",
            Tells::Lower => "lower",
            Tells::Higher => "higher",
            Tells::Nothing => "undecided",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRIC: &str = "makespan_ns";

    /// A row whose runs have these seeds and values.
    fn row(policy: &str, runs: &[(u64, f64)]) -> RunRow {
        let column = columns::column(METRIC).unwrap();
        let run = |(index, &(seed, value)): (u32, &(u64, f64))| Run {
            index,
            seed,
            values: [(column, value)].into(),
        };
        RunRow {
            policy: policy.to_string(),
            axes: Vec::new(),
            runs: (0..).zip(runs).map(run).collect(),
        }
    }

    fn table(rows: Vec<RunRow>) -> RunTable {
        let (name, experiment) = ("a.toml".to_string(), "a".to_string());
        RunTable { name, experiment, rows, shown: Vec::new() }
    }

    fn compare(a: Vec<RunRow>, b: Vec<RunRow>) -> Comparison {
        Comparison::of(&table(a), &table(b), &[METRIC.to_string()]).unwrap()
    }

    #[test]
    fn differences_are_paired_by_seed() {
        // Far apart from run to run, and always 1 higher but for one of 2: 1, 1, 2.
        let a = row("rr", &[(7, 100.0), (8, 500.0), (9, 900.0)]);
        let b = row("rr", &[(9, 902.0), (7, 101.0), (8, 501.0)]);
        let compared = compare(vec![a], vec![b]);
        let found = &compared.rows[0];
        assert_eq!(found.pairs, Some(3));
        let (mean, ci95) = found.difference;
        assert!((mean - 4.0 / 3.0).abs() < 1e-12);
        // sd 1 / √3, error 1 / 3, t 4.302653.
        assert!((ci95.unwrap() - 4.302653 / 3.0).abs() < 1e-5);
        assert_eq!(found.tells(), Tells::Nothing);
        assert!((found.change().unwrap() - 100.0 * 4.0 / 3.0 / 500.0).abs() < 1e-9);
    }

    #[test]
    fn without_common_seeds_means_are_independent() {
        // Variances 4 / 3 and 16 / 3 of the means: error √(20 / 3); freedom (20 / 3)² /
        // ((4 / 3)² / 2 + (16 / 3)² / 2) = 2.94, rounded down to 2.
        let a = row("rr", &[(1, 8.0), (2, 10.0), (3, 12.0)]);
        let b = row("rr", &[(4, 96.0), (5, 100.0), (6, 104.0)]);
        let found = &compare(vec![a], vec![b]).rows[0];
        assert_eq!(found.pairs, None);
        let (mean, ci95) = found.difference;
        assert_eq!(mean, 90.0);
        assert!((ci95.unwrap() - 4.302653 * libm::sqrt(20.0 / 3.0)).abs() < 1e-4);
        assert_eq!(found.tells(), Tells::Higher);
    }

    #[test]
    fn rows_go_by_policy_unless_there_is_only_one() {
        let (rr, cfs) = (row("rr", &[(1, 5.0), (2, 6.0)]), row("cfs", &[(1, 3.0), (2, 4.0)]));
        let both = compare(vec![rr.clone(), cfs.clone()], vec![cfs.clone()]);
        assert_eq!(both.rows.len(), 1);
        assert_eq!(both.only, [vec!["rr".to_string()], vec![]]);
        assert_eq!(both.rows[0].tells(), Tells::Same);
        let alone = compare(vec![rr], vec![cfs]);
        assert_eq!(alone.rows[0].policies, ["rr", "cfs"]);
        assert_eq!(
            (alone.rows[0].difference, alone.rows[0].tells()),
            ((-2.0, Some(0.0)), Tells::Lower)
        );
    }

    #[test]
    fn a_single_pair_tells_nothing() {
        let found = compare(vec![row("rr", &[(1, 5.0)])], vec![row("rr", &[(1, 6.0)])]);
        assert_eq!(
            (found.rows[0].difference, found.rows[0].tells()),
            ((1.0, None), Tells::Nothing)
        );
    }

    #[test]
    fn metrics_that_there_are_not_are_refused() {
        let table = table(vec![row("rr", &[(1, 5.0)])]);
        let refused = |name: &str| Comparison::of(&table, &table, &[name.into()]).unwrap_err();
        assert!(refused("makespan").contains("makespan_ns"), "{}", refused("makespan"));
        assert!(refused("waiting_time_ns_p99").contains("no data"));
    }
}
