//! `anysched coverage`: what of a paper the experiments cover.
//!
//! A paper's folder has a file `coverage.tsv`: for each claim, figure, table and equation of the
//! text a line with its place, what it says, the ids of claims about it (one stands for those that
//! begin with it and a blank, too), and, if there is none, the reason.

use crate::args::CoverageArgs;
use crate::output::{self, Failure};
use crate::reproduce;
use anysched_lab::{Experiment, builtin};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const FILE: &str = "coverage.tsv";

pub fn coverage(args: &CoverageArgs) -> Result<(), Failure> {
    let folder = reproduce::paper_folder(&reproduce::library(&args.experiments), &args.paper)?;
    let claims = Claims::of(&folder)?;
    let path = folder.join(FILE);
    let text = match builtin::contents(&path) {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: cannot be read: {error}", path.display()))?,
    };
    output::print(&table(&text, &claims).map_err(|why| format!("{}:{why}", path.display()))?)
}

/// Those of a paper's experiments, on all hosts.
#[derive(Default)]
struct Claims {
    all: BTreeSet<String>,
    /// Those about something that the paper says.
    of_paper: BTreeSet<String>,
}

impl Claims {
    fn of(folder: &Path) -> Result<Claims, Failure> {
        let mut claims = Claims::default();
        for file in all_files(folder)? {
            let experiment = Experiment::load(&file).map_err(Failure::pointing)?;
            for (id, paper) in experiment.claims() {
                if !claims.all.insert(id.to_string()) {
                    let file = file.display();
                    return Err(format!("{file}: there are two claims with the id {id}").into());
                }
                if paper.is_some() {
                    claims.of_paper.insert(id.to_string());
                }
            }
        }
        Ok(claims)
    }

    /// Those that `id` stands for.
    fn named<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a String> {
        self.all.iter().filter(move |known| {
            known.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    }
}

/// The experiments of a paper for all hosts.
fn all_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = reproduce::experiment_files(folder)?;
    for inner in reproduce::entries(folder)?.into_iter().filter(|path| reproduce::is_folder(path)) {
        files.extend(reproduce::experiment_files(&inner)?);
    }
    Ok(files)
}

/// The table in Markdown.
///
/// Errors: a line says nothing about how it is covered, an id is none, or a claim about the paper
/// is missing; they begin with the number of the line.
fn table(text: &str, claims: &Claims) -> Result<String, String> {
    let mut table = String::from("| place | what it says | covered by |\n|---|---|---|\n");
    let mut missing = claims.of_paper.clone();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let mut number_of_lines = 0;
    for (number, line) in lines {
        number_of_lines = number + 1;
        let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
        let [place, says, ids, rest @ ..] = &fields[..] else {
            return Err(format!(
                "{number_of_lines}: a line is the place, what it says, ids of claims and, if there \
                 are none, why, with tabs between them"
            ));
        };
        let reason = rest.first().copied().unwrap_or_default();
        for id in ids.split(',').map(str::trim).filter(|id| !id.is_empty()) {
            let mut some = false;
            for known in claims.named(id) {
                some = true;
                missing.remove(known);
            }
            if !some {
                return Err(format!("{number_of_lines}: no claim has the id {id}"));
            }
        }
        let by = match (*ids, reason) {
            ("", "") => {
                return Err(format!("{number_of_lines}: neither ids of claims nor a reason"));
            }
            (ids, "") => ids.to_string(),
            ("", reason) => reason.to_string(),
            (ids, reason) => format!("{ids}; {reason}"),
        };
        let _ = writeln!(table, "| {place} | {says} | {by} |");
    }
    match missing.first() {
        Some(id) => {
            Err(format!("{number_of_lines}: the claim {id} is about the paper and in no line"))
        }
        None => Ok(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        let set = |ids: &[&str]| ids.iter().map(ToString::to_string).collect();
        Claims { all: set(&["1-1 a", "1-1 b", "1-10", "own"]), of_paper: set(&["1-1 a", "1-1 b"]) }
    }

    #[test]
    fn all_that_the_paper_says_is_covered_or_has_a_reason() {
        let table = table("# Comment.\nFigure 1\tA\t1-1\nTable 2\tB\t\tno values\n", &claims());
        let lines = "| Figure 1 | A | 1-1 |\n| Table 2 | B | no values |\n";
        assert!(table.unwrap().ends_with(lines));
    }

    #[test]
    fn gaps_are_errors() {
        let error = |text: &str| table(text, &claims()).unwrap_err();
        assert_eq!(
            error("Figure 1\tA\t1-1 a\n"),
            "1: the claim 1-1 b is about the paper and in no line"
        );
        assert_eq!(
            error("Figure 1\tA\t1-1\nTable 2\tB\t\n"),
            "2: neither ids of claims nor a reason"
        );
        assert_eq!(error("Figure 1\tA\t1-1, 1-2\n"), "1: no claim has the id 1-2");
        assert!(error("Figure 1\n").starts_with("1: a line is"));
    }
}
