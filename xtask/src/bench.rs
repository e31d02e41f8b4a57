//! Benchmarks and the page with their results.
//!
//! Every figure in docs/performance.md comes from the last measurement by criterion or by a
//! separate program, and every claim is a ratio of two figures of one table, from the same run:
//! absolute times depend on the machine.

use crate::docs;
use crate::run::{Failed, cargo, cargo_command, output, root};
use crate::simso::{self, SimSo};
use serde_json::Value;
use std::fmt::Write;

/// Runs the benchmarks and writes docs/performance.md. With the name of a table's group, measures
/// that again and takes the others as they were measured last; with `--quick`, only runs them. The
/// filter `simso` measures only SimSo.
pub fn bench(args: &[&str]) -> Result<(), Failed> {
    if args == ["simso"] {
        if let Ok(SimSo { version, python, rows }) = simso::measure()? {
            println!("SimSo {version}, Python {python}");
            for row in rows {
                let simso::Row { scheduler, dispatches, jobs, seconds } = &row;
                println!(
                    "{scheduler}: {dispatches} dispatches, {jobs} jobs, {seconds:.2} s: \
                     {:.0} dispatches/s",
                    1e9 / row.ns()
                );
            }
        }
        return Ok(());
    }
    let mut command = vec!["bench", "--quiet", "-p", "anysched-bench", "--"];
    if args.contains(&"--quick") {
        command.extend(["--warm-up-time", "0.3", "--measurement-time", "1"]);
    }
    command.extend(args.iter().filter(|arg| **arg != "--quick"));
    cargo(&command)?;
    if args.contains(&"--quick") {
        return Ok(());
    }
    let page = page(simso::measure()?)?;
    let path = root().join("docs/performance.md");
    std::fs::write(&path, page).map_err(|error| Failed(format!("{}: {error}", path.display())))
}

/// Criterion's last measurement: the median in ns, per element if the benchmark counts elements.
fn measured(group: &str, name: &str) -> Result<f64, Failed> {
    let folder = docs::target().join("criterion").join(group).join(name).join("new");
    let read = |file: &str| -> Result<Value, Failed> {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failed(format!("{}: {error}", path.display())))?;
        serde_json::from_str(&text).map_err(|error| Failed(format!("{}: {error}", path.display())))
    };
    let wrong = || Failed(format!("{}: not what criterion writes", folder.display()));
    let median = read("estimates.json")?["median"]["point_estimate"].as_f64().ok_or_else(wrong)?;
    let elements = read("benchmark.json")?["throughput"]["Elements"].as_u64();
    Ok(median / elements.unwrap_or(1) as f64)
}

const SIZES: [&str; 3] = ["16", "1000", "100000"];
const POLICIES: [&str; 9] =
    ["fcfs (static)", "fcfs", "rr", "mlfq", "srpt", "cfs", "eevdf", "rr 100us", "rr 20us"];
const PAIRS: [(&str, &str); 3] =
    [("fcfs", "axsched-fifo"), ("rr", "axsched-rr"), ("cfs-arceos", "axsched-cfs")];

fn page(simso: Result<SimSo, String>) -> Result<String, Failed> {
    let mut page = String::from(
        "# Performance\n\nWritten by `cargo xtask bench`, each table in one run on one machine; \
         one core is used at a time. Compare the ratios: the times are those of that machine.\n",
    );
    dispatches(&mut page, simso)?;
    queueing(&mut page)?;
    two_levels(&mut page)?;
    many_cpus(&mut page)?;
    decisions(&mut page)?;
    wakeups(&mut page)?;
    growth(&mut page)?;
    batches(&mut page)?;
    let ns = measured("tracing", "perfetto file")?;
    let _ = write!(
        page,
        "\n## Tracing\n\nThe load of the first table with every event written to a Perfetto file: \
         {:.1} M events/s.\n",
        1e3 / ns
    );
    Ok(page)
}

fn dispatches(page: &mut String, simso: Result<SimSo, String>) -> Result<(), Failed> {
    page.push_str(
        "\n## Dispatches\n\n100 periodic tasks, 80 % load, 4 CPUs, no costs, tracing off. Most \
         jobs are over within one slice, so that a dispatch is a wake-up, a pick and a block; with \
         a short quantum (the last two rows of `rr`) most dispatches follow the end of a slice. \
         `static` is built without dynamic dispatch.\n\n| policy | M dispatches/s | ns each |\n\
         |---|--:|--:|\n",
    );
    let mut times = Vec::new();
    for policy in POLICIES {
        let ns = measured("dispatches", policy)?;
        let _ = writeln!(page, "| {policy} | {:.1} | {ns:.0} |", 1e3 / ns);
        times.push(ns);
    }
    beside_simso(page, &times, simso);
    Ok(())
}

/// The last rows of that table, and an explanation of them.
fn beside_simso(page: &mut String, times: &[f64], simso: Result<SimSo, String>) {
    let simso = match simso {
        Ok(simso) => simso,
        Err(why) => {
            let _ = writeln!(page, "| SimSo | not measured | |\n\nSimSo: {why}.");
            return;
        }
    };
    let SimSo { version, python, rows } = &simso;
    for row in rows {
        let (name, ns) = (&row.scheduler, row.ns());
        let _ = writeln!(page, "| SimSo {version} {name} | {:.4} | {ns:.0} |", 1e3 / ns);
    }
    let fastest = rows.iter().map(simso::Row::ns).fold(f64::INFINITY, f64::min);
    let least = fastest / times.iter().copied().fold(0.0, f64::max);
    let most = fastest / times.iter().copied().fold(f64::INFINITY, f64::min);
    let counts: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {} for {} jobs", row.scheduler, row.dispatches, row.jobs))
        .collect();
    let _ = writeln!(
        page,
        "\n[SimSo](https://pypi.org/project/simso/) {version}, under Python {python}, runs the \
         same tasks for {} ms of simulated time under two of its schedulers of all CPUs from one \
         queue. Its dispatches are the decisions that give a processor a job that it is not \
         running already ({}); its time is the CPU time of the simulation alone, without its \
         analysis of the results. Its faster scheduler takes {least:.0} to {most:.0} times as \
         long for a dispatch as the policies here. `cargo xtask bench simso` measures only this.",
        simso::MILLISECONDS,
        counts.join(", ")
    );
}

fn queueing(page: &mut String) -> Result<(), Failed> {
    let (bare, ours) = (measured("mm1", "bare heap loop")?, measured("mm1", "fcfs")?);
    let _ = write!(
        page,
        "\n## M/M/1\n\nAgainst a bare loop over a binary heap that only counts waiting times: \
         {ours:.1} ns an event against {bare:.1} ns, {:.2} times.\n",
        ours / bare
    );
    Ok(())
}

fn two_levels(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Virtual machines\n\n32 virtual machines with a CPU each on 4 CPUs, 90 % busy, 10 s; \
         their tasks run and sleep some 100 us. Dispatches are those of virtual CPUs on the host \
         and of tasks in the virtual machines together. The last row has the tasks of the first on \
         the host itself.\n\n| tasks a machine | scheduler | M dispatches/s | ns each |\n\
         |--:|---|--:|--:|\n",
    );
    for (tasks, name) in [
        ("1", "fcfs on fcfs"),
        ("1", "fcfs on credit"),
        ("1", "fcfs on credit2"),
        ("4", "cfs on credit"),
        ("", "fcfs alone"),
    ] {
        let ns = measured("two levels", name)?;
        let _ = writeln!(page, "| {tasks} | {name} | {:.1} | {ns:.0} |", 1e3 / ns);
    }
    Ok(())
}

/// The numbers of CPUs of that table; the second is what the others are compared with.
const CPUS: [u32; 4] = [1, 16, 256, 1024];

fn many_cpus(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Many CPUs\n\nM dispatches/s, and against 16 CPUs: 20 tasks for each CPU run for 1 ms \
         and sleep for 20 ms on average, timers are exact. A dispatch is a wake-up that looks for \
         a CPU, a pick and a block. 32 CPUs are a package; from some hundred CPUs on, the tasks \
         are more than the caches hold, which is what `fcfs`, with a list for all CPUs, shows.\n\n\
         | policy | 1 CPU | 16 CPUs | 256 CPUs | 1024 CPUs |\n|---|--:|--:|--:|--:|\n",
    );
    for name in ["fcfs", "cfs", "eevdf", "gfs", "bfs"] {
        let times = CPUS.map(|cpus| measured("many cpus", &format!("{name}/{cpus}")));
        let times = times.into_iter().collect::<Result<Vec<f64>, Failed>>()?;
        page.push_str(&many_cpus_row(name, &times));
    }
    Ok(())
}

/// A row of that table: `times` are ns a dispatch for each number of CPUs.
fn many_cpus_row(name: &str, times: &[f64]) -> String {
    let cells = times.iter().map(|ns| format!(" {:.2} ({:.2}) |", 1e3 / ns, times[1] / ns));
    format!("| {name} |{}\n", cells.collect::<String>())
}

fn decisions(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Decisions\n\nPick, tick and put on one CPU, ns, beside ArceOS's `axsched` 0.3.1, \
         which has no clock, reasons, CPU time or kicks.\n\n| tasks | policy | here | axsched | \
         ratio |\n|--:|---|--:|--:|--:|\n",
    );
    for (ours, theirs) in PAIRS {
        for size in SIZES {
            let here = measured("decision", &format!("{ours}/{size}"))?;
            let there = measured("decision", &format!("{theirs}/{size}"))?;
            let ratio = here / there;
            let _ = writeln!(page, "| {size} | {ours} | {here:.1} | {there:.1} | {ratio:.2} |");
        }
    }
    Ok(())
}

fn wakeups(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Wake-ups\n\nPick, block and wake-up with another burst on one CPU while 20 to \
         200,000 tasks are ready, ns, and against 2,000 tasks: M-RSF and GFS beside what their \
         papers compare them with. An ordered queue of n tasks needs log2 n comparisons, so that \
         1.6 times the time would be due to the rule from 2,000 to 200,000, and what is beyond it \
         to memory out of the caches. BFS as it was keeps tasks in a list and looks through all of \
         it: its time grows with n.\n\n\
         | policy | 20 | 2,000 | 200,000 |\n|---|--:|--:|--:|\n",
    );
    for policy in [
        "fcfs",
        "sjf",
        "rr",
        "mlfq",
        "cfs",
        "osv",
        "mqms-loose",
        "m-rsf",
        "bfs, list",
        "bfs, tree",
        "gfs",
    ] {
        let times =
            [20, 2_000, 200_000].map(|tasks: u32| measured("wakeup", &format!("{policy}/{tasks}")));
        let times = times.into_iter().collect::<Result<Vec<f64>, Failed>>()?;
        let cells = times.iter().map(|ns| format!(" {ns:.1} ({:.2}) |", ns / times[1]));
        let _ = writeln!(page, "| {policy} |{}", cells.collect::<String>());
    }
    Ok(())
}

fn growth(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Growth\n\nPeriodic tasks on 4 CPUs under FCFS, a release every 10 us. Growth \
         is against 10 tasks, of the time and of log2 n.\n\n\
         | tasks | ns an event | growth | of log2 n |\n\
         |--:|--:|--:|--:|\n",
    );
    let first = measured("growth", "10")?;
    for tasks in [10u32, 1_000, 100_000, 1_000_000] {
        let ns = measured("growth", &tasks.to_string())?;
        let log = f64::from(tasks).log2() / 10f64.log2();
        let _ = writeln!(page, "| {tasks} | {ns:.0} | {:.2} | {log:.2} |", ns / first);
    }
    Ok(())
}

fn batches(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## A closed batch of 1,000,000 tasks\n\nOn 4 CPUs. Bytes a task are the growth of a \
         process's peak: of load, simulator, policy and metrics together, and of the policy alone \
         with all tasks ready.\n\n| policy | s | bytes a task | in the policy |\n\
         |---|--:|--:|--:|\n",
    );
    for policy in
        ["fcfs", "sjf", "srpt", "rr", "mlfq", "cfs", "eevdf", "osv", "mqms-loose", "m-rsf", "gfs"]
    {
        let [ms, all] = memory(&[policy, "1000000"])?;
        let [_, alone] = memory(&[policy, "1000000", "alone"])?;
        let _ = writeln!(page, "| {policy} | {:.2} | {all:.0} | {alone:.0} |", ms / 1000.0);
    }
    Ok(())
}

/// Milliseconds and bytes per task, as printed by the memory program.
fn memory(args: &[&str]) -> Result<[f64; 2], Failed> {
    let program = ["run", "--quiet", "--profile", "bench", "-p", "anysched-bench"];
    let command = [&program[..], &["--bin", "memory", "--"], args].concat();
    let line = output(&mut cargo_command(&command))?;
    let numbers: Vec<f64> =
        line.split_whitespace().skip(2).filter_map(|word| word.parse().ok()).collect();
    let wrong = |_| Failed(format!("the memory program printed \"{line}\""));
    numbers.try_into().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 and 250 us a dispatch there against 100 and 200 ns here.
    #[test]
    fn simso_is_compared_with_the_fastest_and_the_slowest_policy() {
        let row = |scheduler: &str, seconds| simso::Row {
            scheduler: scheduler.into(),
            dispatches: 200,
            jobs: 120,
            seconds,
        };
        let (version, python) = ("0.8.5".into(), "3.11.7".into());
        let rows = vec![row("RM", 0.02), row("EDF2", 0.05)];
        let mut page = String::new();
        beside_simso(&mut page, &[200.0, 100.0], Ok(SimSo { version, python, rows }));
        assert!(page.starts_with("| SimSo 0.8.5 RM | 0.0100 | 100000 |\n"), "{page}");
        assert!(page.contains("takes 500 to 1000 times as long"), "{page}");
        assert!(page.contains("(RM: 200 for 120 jobs, EDF2: 200 for 120 jobs)"), "{page}");
    }

    /// 250 ns a dispatch are 4 M/s, twice as fast as 500 ns.
    #[test]
    fn speeds_are_compared_with_those_on_16_cpus() {
        let row = many_cpus_row("bfs", &[250.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(row, "| bfs | 4.00 (2.00) | 2.00 (1.00) | 1.00 (0.50) | 0.50 (0.25) |\n");
    }

    #[test]
    fn the_page_says_that_simso_was_not_measured_and_why() {
        let mut page = String::new();
        beside_simso(&mut page, &[100.0], Err("there is no Python".into()));
        assert_eq!(page, "| SimSo | not measured | |\n\nSimSo: there is no Python.\n");
    }
}
