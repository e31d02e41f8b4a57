//! `anysched predict`: a real kernel and its simulation, side by side.

use crate::args::{PredictArgs, PredictFormat};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use crate::run::interrupted;
use anysched_host::Host;
use anysched_lab::output::align::{self, Side};
use anysched_lab::{Column, Experiment, Results};
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// Columns of a table, each two numbers wide.
const WIDE: usize = 4;

/// An experiment on both hosts.
struct Compared {
    kernel: Results,
    simulated: Results,
    /// What is compared.
    columns: Vec<Column>,
}

pub fn predict(args: &PredictArgs) -> Result<(), Failure> {
    let cancel = output::cancel_on_interrupt()?;
    let (simulator, predicted) = (hosts::open_usual()?, hosts::open(args.host));
    let mut all = Vec::new();
    for file in &args.files {
        let mut experiment = Experiment::load(file).map_err(Failure::pointing)?;
        if args.quick {
            experiment = experiment.quick().map_err(Failure::pointing)?;
        }
        let plan = choose::plan(&experiment)?;
        let run =
            |host: &dyn Host| with_bar(host, args.jobs, cancel, None, |options| plan.run(options));
        let (simulated, kernel) = (run(&*simulator)?, run(&*predicted)?);
        if cancel.load(Ordering::Relaxed) {
            return Err(interrupted(&kernel, None));
        }
        let columns = chosen(args, &kernel)?;
        all.push(Compared { kernel, simulated, columns });
    }
    output::print(&match args.format {
        PredictFormat::Table => all.iter().map(table).collect::<Vec<_>>().join("\n") + &worst(&all),
        PredictFormat::Markdown => {
            all.iter().map(markdown).collect::<Vec<_>>().join("\n") + &worst(&all)
        }
    })
}

/// What is compared: what was asked for, or the times that the experiment shows.
fn chosen(args: &PredictArgs, results: &Results) -> Result<Vec<Column>, Failure> {
    if args.column.is_empty() {
        return Ok(results.shown().iter().copied().filter(|column| column.is_time()).collect());
    }
    let find = |name: &String| {
        anysched_lab::column(name).ok_or_else(|| {
            Failure::from(format!("no metric is called `{name}`; a JSON of results has all names"))
        })
    };
    args.column.iter().map(find).collect()
}

/// A number of the kernel, and by how much of it the simulation is off; `None` without data.
struct Cell(Option<(f64, f64)>);

impl Compared {
    /// Groups and policies that both have.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let policies = self.simulated.policies.len();
        (0..self.simulated.groups.len())
            .flat_map(move |group| (0..policies).map(move |p| (group, p)))
    }

    fn cell(&self, (group, policy): (usize, usize), column: Column) -> Cell {
        let mean = |results: &Results| {
            let estimate = results.row(group, policy)?.estimate(column)?;
            Some(estimate.mean).filter(|mean| mean.is_finite())
        };
        let pair = mean(&self.kernel).zip(mean(&self.simulated));
        Cell(pair.map(|(kernel, simulated)| (kernel, (simulated - kernel) / kernel)))
    }

    /// How far each number is off.
    fn offs(&self) -> impl Iterator<Item = f64> {
        let rows =
            self.rows().flat_map(|row| self.columns.iter().map(move |column| (row, *column)));
        let off = rows.filter_map(|(row, column)| Some(self.cell(row, column).0?.1));
        off.filter(|off| off.is_finite())
    }

    fn title(&self) -> &str {
        self.kernel.title.as_deref().unwrap_or(&self.kernel.experiment)
    }
}

impl Cell {
    /// The number, in ms if it is a time, and the difference in percent.
    fn texts(&self, is_time: bool) -> [String; 2] {
        let Some((kernel, off)) = self.0 else { return ["-".into(), "-".into()] };
        let number = if is_time { kernel / 1e6 } else { kernel };
        let digits = match number.abs() {
            n if !is_time && n == n.round() => 0,
            n if n >= 1000.0 => 0,
            n if n >= 100.0 => 1,
            n if n >= 10.0 => 2,
            _ => 3,
        };
        let off = if off.is_finite() { format!("{:+.1}", off * 100.0) } else { "-".into() };
        [format!("{number:.digits$}"), off]
    }
}

/// What a column is called: its name without the unit.
fn name(column: Column) -> (String, bool) {
    let name = column.to_string();
    (name.replacen("_ns", "", 1).replace(['_', '.'], " "), column.is_time())
}

fn table(compared: &Compared) -> String {
    let mut text = format!("{}\n", compared.title());
    let label = |(_, policy): (usize, usize)| compared.simulated.policies[policy].label.clone();
    let names = compared.rows().map(label).collect();
    let names = align::Column::new(Side::Left, vec!["policy".to_string()], names);
    for columns in compared.columns.chunks(WIDE) {
        let pairs: Vec<_> = columns.iter().map(|&column| pair(compared, column)).collect();
        let columns: Vec<_> = std::iter::once(&names).chain(&pairs).collect();
        text.push('\n');
        text.push_str(&align::text(&align::lines(&columns, 3)));
    }
    text
}

/// The kernel's numbers and how far the simulation is off, beside each other under one name.
fn pair(compared: &Compared, column: Column) -> align::Column {
    let (name, is_time) = name(column);
    let cells = compared.rows().map(|row| compared.cell(row, column).texts(is_time));
    let (numbers, offs): (Vec<String>, Vec<String>) = cells.map(|[n, off]| (n, off)).unzip();
    let unit = if is_time { "ms" } else { "" };
    let [numbers, offs] = [(unit, numbers), ("off, %", offs)]
        .map(|(head, cells)| align::Column::new(Side::Right, vec![head.to_string()], cells));
    let mut lines = align::lines(&[&numbers, &offs], align::GAP).into_iter();
    let head = vec![name, lines.next().unwrap_or_default()];
    align::Column::new(Side::Right, head, lines.collect())
}

fn markdown(compared: &Compared) -> String {
    let heads = compared.columns.iter().map(|&column| {
        let (name, is_time) = name(column);
        if is_time { format!("{name}, ms | off, %") } else { format!("{name} | off, %") }
    });
    let heads: Vec<String> = heads.collect();
    let mut text = format!("{}\n\n| policy | {} |\n|---|", compared.title(), heads.join(" | "));
    text.push_str(&"--:|--:|".repeat(compared.columns.len()));
    text.push('\n');
    for row in compared.rows() {
        let _ = write!(text, "| {} |", compared.simulated.policies[row.1].label);
        for &column in &compared.columns {
            let [number, off] = compared.cell(row, column).texts(name(column).1);
            let _ = write!(text, " {number} | {off} |");
        }
        text.push('\n');
    }
    text
}

/// How far the simulation is off at worst, and usually.
fn worst(all: &[Compared]) -> String {
    let mut offs: Vec<f64> = all.iter().flat_map(Compared::offs).map(f64::abs).collect();
    offs.sort_by(f64::total_cmp);
    let Some(worst) = offs.last() else { return "\nnothing to compare\n".into() };
    let middle = offs[offs.len() / 2];
    format!(
        "\nnumbers: of the kernel; off: by how much the simulation is\n{} numbers: {:.1} % off at \
         most, half of them {:.1} % or less\n",
        offs.len(),
        worst * 100.0,
        middle * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_lab::RunOptions;
    use anysched_sim::Simulator;
    use std::sync::atomic::AtomicBool;

    /// Two tasks of 10 ms on the simulator, which can also stand in for a kernel.
    fn results(context_switch: &str) -> Results {
        let text = format!(
            "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 1\n\
             context_switch = \"{context_switch}\"\n[[workload]]\nkind = \"batch\"\ntasks = 2\n\
             service = \"10ms\"\n"
        );
        let experiment = Experiment::parse(&text, "test.toml".as_ref()).unwrap();
        let cancel = AtomicBool::new(false);
        let options = RunOptions {
            host: &Simulator,
            jobs: 1,
            cancel: &cancel,
            journal: None,
            progress: &|_| {},
        };
        experiment.plan().unwrap().run(&options).unwrap()
    }

    #[test]
    fn pairs_of_numbers_stand_under_one_name() {
        let names = [
            "turnaround_ns_mean",
            "context_switches",
            "unfinished",
            "job_response_time_ns_p99",
            "makespan_ns",
        ];
        let columns = names.map(|name| anysched_lab::column(name).unwrap()).to_vec();
        let compared = Compared { kernel: results("1ms"), simulated: results("10us"), columns };
        let expected = "\
test

         turnaround mean   context switches   unfinished   job response time p99
policy        ms  off, %             off, %       off, %              ms  off, %
fcfs       16.50    -9.0          2    +0.0    0       -               -       -

              makespan
policy      ms  off, %
fcfs     22.00    -9.0
";
        assert_eq!(table(&compared), expected);
    }
}
