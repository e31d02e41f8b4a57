//! Results of experiments in kernels: files in `hosts/*/results` that the documentation shows. They
//! are kept because producing them takes minutes and needs QEMU.
//!
//! The check uses the quick form of ArceOS's experiments, in `hosts/arceos/expected`. Instructions
//! are counted, so an image gives the same figures on every machine. It differs by the versions of
//! QEMU and of the compiler and by where it is built: paths are in it, and order its functions. The
//! check allows for that. Linux's depend on the kernel that Debian has that day, too; its tests
//! have bounds instead.

use crate::docs::{self, anysched, reproduced};
use crate::run::{Failed, root};
use std::path::Path;

/// Folders with experiments for kernels, and the kernel.
const PAPERS: [(&str, &str); 7] = [
    ("pbg", ARCEOS),
    ("m-rsf", ARCEOS),
    ("beyond", ARCEOS),
    ("gfs", LINUX),
    ("beyond", LINUX),
    ("credit", XEN),
    ("sedf-dm", XEN),
];

/// Costs of a kernel that experiments name: the kernel, the file, and whose costs are measured. For
/// experiments in a kernel that is the one of their folder that uses all of its policies.
const CALIBRATED: [(&str, &str, &[&str]); 5] = [
    (ARCEOS, "experiments/pbg/arceos/kernel.costs", &["experiments/pbg/arceos/e7-turnaround.toml"]),
    (ARCEOS, "experiments/m-rsf/arceos/kernel.costs", &["experiments/m-rsf/arceos/e4-batch.toml"]),
    (
        LINUX,
        "experiments/predict/linux/kernel.costs",
        &["experiments/predict/linux/e2-sleepers.toml"],
    ),
    (XEN, "experiments/predict/xen/kernel.costs", &["experiments/predict/xen/e2-sleepers.toml"]),
    // With extra time, which the experiments do not give: without it domains wait for their
    // periods, and that would be measured.
    (
        XEN,
        "experiments/sedf-dm/xen.costs",
        &["--policy", "sedf,dm-xen,d-edf,sedf-dm,credit,credit2,rtds"],
    ),
];

const ARCEOS: &str = "arceos";
const LINUX: &str = "linux";
const XEN: &str = "xen";

/// The files of results and the commands that print them.
const PRINTED: [(&str, &[&str]); 18] = [
    ("hosts/arceos/results/costs.md", &["calibrate", "arceos", "--format", "markdown"]),
    (
        "hosts/arceos/results/yields.txt",
        &[
            "boot",
            "arceos",
            "--policy",
            "fcfs,rr,cfs-arceos,stock-fifo,stock-rr,stock-cfs",
            "--app",
            "yield",
            "--with",
            "iterations=11",
        ],
    ),
    (
        "hosts/arceos/results/predicted.txt",
        &[
            "predict",
            "--quick",
            "experiments/pbg/arceos/e3-yield.toml",
            "experiments/pbg/arceos/e4-realtime.toml",
            "experiments/pbg/arceos/e5-occupy.toml",
            "experiments/pbg/arceos/e7-turnaround.toml",
        ],
    ),
    (
        "hosts/linux/results/latency.txt",
        &[
            "boot",
            "linux",
            "--policy",
            "stock-eevdf,stock-cfs,cfs,eevdf,gfs",
            "--in",
            "module,agent",
            "--app",
            "latency",
        ],
    ),
    (
        "hosts/linux/results/latency-others.txt",
        &["boot", "linux", "--policy", "bfs,vfair,credit2,rr", "--app", "latency"],
    ),
    (
        "hosts/linux/results/cost.txt",
        &["boot", "linux", "--policy", "stock-eevdf,cfs,gfs,rr,fcfs", "--app", "cost"],
    ),
    (
        "hosts/linux/results/interbench.txt",
        &["boot", "linux", "--policy", "stock-eevdf,cfs,eevdf,gfs", "--app", "interbench"],
    ),
    ("hosts/linux/results/costs.md", &["calibrate", "linux", "--format", "markdown"]),
    (
        "hosts/linux/results/predicted.txt",
        &[
            "predict",
            "--host",
            "linux",
            "--column",
            "turnaround_ns_mean,waiting_time_ns_mean,makespan_ns,context_switches",
            "experiments/predict/linux/e1-equal.toml",
            "experiments/predict/linux/e2-sleepers.toml",
            "experiments/predict/linux/e3-arrivals.toml",
            "experiments/predict/linux/e4-yield.toml",
        ],
    ),
    (
        "hosts/xen/results/switch.txt",
        &["boot", "xen", "--policy", "rr,credit2,stock-credit2", "--app", "yield"],
    ),
    (
        "hosts/xen/results/switch-credit.txt",
        &[
            "boot",
            "xen",
            "--policy",
            "credit,stock-credit",
            "--set",
            "limit_yields=false",
            "--app",
            "yield",
        ],
    ),
    (
        "hosts/xen/results/periods.txt",
        &[
            "boot",
            "xen",
            "--policy",
            "rtds,stock-rtds",
            "--set",
            "extratime=false",
            "--app",
            "hog",
            "--with",
            "domains=3",
            "--with",
            "duration_ns=3000000000",
            "--with",
            "periods_us=10000,20000,40000",
            "--with",
            "budgets_us=2000,6000,8000",
        ],
    ),
    (
        "hosts/xen/results/echo.txt",
        &[
            "boot",
            "xen",
            "--policy",
            "credit,stock-credit,credit2,stock-credit2",
            "--app",
            "echo",
            "--with",
            "count=100",
            "--with",
            "hogs=2",
        ],
    ),
    (
        "hosts/xen/results/weights.txt",
        &beside_xens_own("hog", ["weights=256,512,1024", HOGS, LONG]),
    ),
    ("hosts/xen/results/caps.txt", &beside_xens_own("hog", ["caps=20,50,0", HOGS, LONG])),
    (
        "hosts/xen/results/cyclictest.txt",
        &beside_xens_own("cyclictest", ["l=500", "hogs=2", "work_ns=50000"]),
    ),
    (
        "hosts/xen/results/ping.txt",
        &[
            "boot",
            "xen",
            "--dom0",
            "linux",
            "--policy",
            "credit,stock-credit,credit2,stock-credit2",
            "--app",
            "ping",
            "--with",
            "count=100",
            "--with",
            "hogs=1",
        ],
    ),
    (
        "hosts/xen/results/predicted.txt",
        &[
            "predict",
            "--host",
            "xen",
            "experiments/predict/xen/e1-shares.toml",
            "experiments/predict/xen/e2-sleepers.toml",
        ],
    ),
];

/// So many domains that compute, and for so long.
const HOGS: &str = "domains=3";
const LONG: &str = "duration_ns=3000000000";

/// A program with these arguments under our policies and Xen's own schedulers of the same rules.
const fn beside_xens_own(
    program: &'static str,
    [first, second, third]: [&'static str; 3],
) -> [&'static str; 12] {
    const BOTH: &str = "credit,stock-credit,credit2,stock-credit2";
    [
        "boot", "xen", "--policy", BOTH, "--app", program, "--with", first, "--with", second,
        "--with", third,
    ]
}

const EXPECTED: &str = "hosts/arceos/expected";

/// The relative difference of numbers that the check accepts.
const TOLERANCE: f64 = 0.03;

/// Writes a file of the repository, unless it says that already.
pub fn write_file(path: &str, text: &str) -> Result<(), Failed> {
    let path = root().join(path);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    if old == text {
        return Ok(());
    }
    println!("rewriting {}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| Failed(format!("{}: {error}", path.display())))
}

/// What stands for a paper and means all that is none's: costs and tables.
const TABLES: &str = "tables";

/// The papers with experiments for ArceOS.
fn checked() -> impl Iterator<Item = &'static str> {
    PAPERS.into_iter().filter(|(_, host)| *host == ARCEOS).map(|(paper, _)| paper)
}

/// The claims of a paper in their quick form.
fn quick(paper: &str) -> Result<String, Failed> {
    reproduced(&[paper, "--host", ARCEOS, "--quick", "--format", "markdown"])
}

/// Repeats the experiments of a paper in a kernel, then regenerates the pages that name it.
pub fn write_paper(host: &str, paper: &str) -> Result<(), Failed> {
    if paper == TABLES {
        docs::build_program()?;
        write_tables(|of| of == host)?;
        return docs::write_named(&[&format!("hosts/{host}")]);
    }
    if !PAPERS.contains(&(paper, host)) {
        let of_host = PAPERS.iter().filter(|(_, known)| *known == host);
        let known: Vec<&str> = of_host.map(|(paper, _)| *paper).collect();
        let there_are = if known.is_empty() { "none" } else { &known.join(", ") };
        return Err(Failed(format!(
            "{host} has no experiments of {paper}; there are: {there_are}; and `{TABLES}`, all \
             that is no paper's"
        )));
    }
    docs::build_program()?;
    if host == ARCEOS {
        write_file(&format!("{EXPECTED}/{paper}.md"), &quick(paper)?)?;
    }
    write_results(paper, host)?;
    docs::write_named(&[paper])
}

/// Repeats all experiments, or those in the kernel `only`, then regenerates the pages.
pub fn write(only: Option<&str>) -> Result<(), Failed> {
    if let Some(host) = only.filter(|host| ![ARCEOS, LINUX, XEN].contains(host)) {
        let all = format!("{ARCEOS}, {LINUX} and {XEN}");
        return Err(Failed(format!("there are no results of {host}, but of {all}")));
    }
    let wanted = |host: &str| only.is_none_or(|only| only == host);
    docs::build_program()?;
    write_tables(wanted)?;
    for paper in checked().filter(|_| wanted(ARCEOS)) {
        write_file(&format!("{EXPECTED}/{paper}.md"), &quick(paper)?)?;
    }
    for (paper, host) in PAPERS.into_iter().filter(|(_, host)| wanted(host)) {
        write_results(paper, host)?;
    }
    docs::write()
}

/// Measures costs, and what is no paper's, in the kernels that are wanted.
fn write_tables(wanted: impl Fn(&str) -> bool) -> Result<(), Failed> {
    // First, because simulations of the kernel use these costs.
    for (host, file, whose) in CALIBRATED.into_iter().filter(|(host, ..)| wanted(host)) {
        let args = [&["calibrate", host], whose, &["--format", "toml"]].concat();
        write_file(file, &anysched(&args)?)?;
    }
    let of_host = |(file, _): &(&str, _)| file.split('/').nth(1).is_some_and(&wanted);
    for (file, args) in PRINTED.into_iter().filter(of_host) {
        write_file(file, &anysched(args)?)?;
    }
    Ok(())
}

/// Writes the claims and the tables of a paper in a kernel.
fn write_results(paper: &str, host: &str) -> Result<(), Failed> {
    let folder = root().join("target/kernels").join(host).join(paper);
    let results = format!("hosts/{host}/results");
    let failed = |error: std::io::Error| Failed(format!("{}: {error}", folder.display()));
    // Results of other texts of the experiments, or of an interrupted run.
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => std::fs::create_dir_all(&folder).map_err(failed)?,
    }
    let out = folder.to_string_lossy();
    let args = [paper, "--host", host, "--format", "markdown", "--out", &out];
    let claims = reproduced(&args)?;
    write_file(&format!("{results}/{paper}.md"), &claims)?;
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    names.sort();
    for path in names.iter().filter(|path| path.extension().is_some_and(|end| end == "txt")) {
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        write_file(&format!("{results}/{paper}-{stem}.txt"), table(&text))?;
    }
    Ok(())
}

/// The table at the head of an experiment's results, without the claims.
fn table(text: &str) -> &str {
    text.split_once("\nClaims\n").map_or(text, |(table, _)| table)
}

/// Fails if the quick form of an experiment in a kernel no longer gives the expected results.
pub fn check() -> Result<(), Failed> {
    docs::build_program()?;
    for paper in checked() {
        let path = format!("{EXPECTED}/{paper}.md");
        let expected = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        let found = quick(paper)?;
        let mut pairs = expected.lines().zip(found.lines());
        let differs = pairs.find(|(old, new)| !are_alike(old, new));
        if differs.is_some() || expected.lines().count() != found.lines().count() {
            let (old, new) = differs.unwrap_or(("", "(more or fewer lines)"));
            return Err(Failed(format!(
                "{path} is not current:\n- {old}\n+ {new}\nif this is right, type: cargo xtask \
                 docs --kernels"
            )));
        }
    }
    Ok(())
}

/// Fails if claims about Linux come out otherwise than the page says. Their figures may differ, as
/// Debian's kernels do from day to day.
pub fn check_linux() -> Result<(), Failed> {
    docs::build_program()?;
    for (paper, _) in PAPERS.into_iter().filter(|(_, host)| *host == LINUX) {
        let path = format!("hosts/{LINUX}/results/{paper}.md");
        let expected = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        let found = reproduced(&[paper, "--host", LINUX, "--format", "markdown"])?;
        if !verdicts(&expected).eq(verdicts(&found)) {
            return Err(Failed(format!(
                "{path}: verdicts differ; what was found:\n{found}\nif this is right, type: cargo \
                 xtask docs --kernels {LINUX}"
            )));
        }
    }
    Ok(())
}

/// Each claim of the tables and what has become of it.
fn verdicts(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = table.lines().filter(|line| line.starts_with("| "));
    // Each table has a head that says in which column it is.
    let mut column = None;
    rows.filter_map(move |row| {
        let mut cells = row.trim_start_matches("| ").split(" | ");
        let Some((claim, _)) = row.split_once(": ") else {
            column = cells.position(|cell| cell == "verdict");
            return None;
        };
        Some((claim, cells.nth(column?).unwrap_or_default()))
    })
}

/// Whether two lines differ only in numbers, and in these only a little.
fn are_alike(old: &str, new: &str) -> bool {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split(' ').collect(), new.split(' ').collect());
    let alike = |at: usize| match (measured(&old, at), measured(&new, at)) {
        (Some(old), Some(new)) => (old - new).abs() <= TOLERANCE * old.abs(),
        _ => old[at] == new[at],
    };
    old.len() == new.len() && (0..old.len()).all(alike)
}

/// What the number at a word says was measured: "25 % less" is 75 % of something.
fn measured(words: &[&str], at: usize) -> Option<f64> {
    let number: f64 = words[at].parse().ok()?;
    match words[at + 1..] {
        ["%", "less", ..] => Some(100.0 - number),
        ["%", "more", ..] => Some(100.0 + number),
        _ => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_compared_without_figures() {
        let tables = |figure: &str, verdict: &str| {
            format!(
                "| claim | paper | here | verdict | why |\n|---|---|---|---|---|\n\
                 | K1 a: x |  | {figure} | {verdict} | 1 \\| 2 |\n\n1 claim.\n\n\
                 | claim | here | verdict | why |\n|---|---|---|---|\n\
                 | K1 b: y: z | {figure} | undecided |  |\n"
            )
        };
        let holds = tables("1.5 ms", "holds");
        let found: Vec<_> = verdicts(&holds).collect();
        assert_eq!(found, [("| K1 a", "holds"), ("| K1 b", "undecided")]);
        assert!(verdicts(&holds).eq(verdicts(&tables("2 ms", "holds"))));
        assert!(!verdicts(&holds).eq(verdicts(&tables("1.5 ms", "does not hold"))));
        assert!(!verdicts(&holds).eq(verdicts("")));
    }

    #[test]
    fn claims_are_cut_off() {
        assert_eq!(table("a\n\n1 2\n\nClaims\n  x: holds\n"), "a\n\n1 2\n");
        assert_eq!(table("a\n"), "a\n");
    }

    #[test]
    fn numbers_may_differ_by_little_and_words_not_at_all() {
        assert!(are_alike("| 27.40 ms | holds |", "| 27.65 ms | holds |"));
        assert!(!are_alike("| 27.40 ms | holds |", "| 28.40 ms | holds |"));
        assert!(!are_alike("| 27.40 ms | holds |", "| 27.40 ms | does not hold |"));
        assert!(!are_alike("27 a", "27"));
    }

    #[test]
    fn a_percentage_more_or_less_is_compared_as_what_it_is_of() {
        assert!(are_alike("| -31.84 % less |", "| -30.71 % less |"));
        assert!(!are_alike("| -31.84 % less |", "| -27.50 % less |"));
        assert!(are_alike("| 0.5 % more |", "| 1.5 % more |"));
        assert!(!are_alike("| 0.5 % more |", "| 4.5 % more |"));
        assert!(!are_alike("| 95.0 % less |", "| 96.0 % less |"));
        assert!(!are_alike("| 31.84 % |", "| 30.71 % |"));
    }

    /// Each experiment exists that is calibrated, reproduced or predicted.
    #[test]
    fn what_is_named_exists() {
        for (_, file, whose) in CALIBRATED {
            let experiments = whose.iter().filter(|arg| arg.ends_with(".toml"));
            for file in experiments.chain([&file]) {
                assert!(root().join(file).is_file(), "{file}");
            }
        }
        for (paper, host) in PAPERS {
            assert!(root().join(format!("experiments/{paper}/{host}")).is_dir(), "{paper} {host}");
        }
        let named = PRINTED.iter().flat_map(|(_, args)| args.iter());
        for file in named.filter(|arg| arg.ends_with(".toml")) {
            assert!(root().join(file).is_file(), "{file}");
        }
    }
}
