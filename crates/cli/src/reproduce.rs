//! `anysched reproduce`.

use crate::args::{ListFormat, ReproduceArgs};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use crate::run::{kept, open_journal, write_results};
use anysched_lab::output::{self as formats, Inputs};
use anysched_lab::{ClaimResult, Experiment, Results, RunOptions, builtin};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The code to exit with if a claim came out otherwise than its file expects. It is none of those
/// for errors, so that a script can tell.
const UNEXPECTED: u8 = 3;

/// What stands for the name of a paper and means each folder.
const ALL: &str = "all";

pub fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let folder = (!hosts::is_usual(args.host)).then_some(args.host.name);
    let library = library(&args.experiments);
    let files = match args.paper.as_str() {
        ALL => all_experiments(&library, folder)?,
        paper => experiments(&library, paper, folder)?,
    };
    let host = hosts::open(args.host);
    let cancel = output::cancel_on_interrupt()?;
    let mut all = Vec::new();
    let mut unexpected = Vec::new();
    for file in &files {
        let mut experiment = Experiment::load(file).map_err(Failure::pointing)?;
        if args.paper == ALL && !experiment.has_claims() {
            continue;
        }
        let mut all_rows = None;
        if args.quick {
            all_rows = Some(choose::plan(&experiment)?.groups().len());
            experiment = experiment.quick().map_err(Failure::pointing)?;
        }
        let plan = choose::plan(&experiment)?;
        let inputs = Inputs::of(plan.inputs());
        let out = args.out.as_ref().map(|out| match args.paper.as_str() {
            ALL => out.join(paper_of(file, folder.is_some())),
            _ => out.clone(),
        });
        let journal = match &out {
            Some(out) => Some(open_journal(&plan, &*host, &inputs, out, args.resume)?),
            None => None,
        };
        let kept = if journal.is_none() { kept(&plan, &*host)? } else { None };
        let known = journal.as_ref().or(kept.as_ref());
        let run = |options: &RunOptions<'_>| plan.run(options);
        let results = with_bar(&*host, args.jobs, cancel, known, run)?;
        if let (Some(out), Some(journal), true) = (&out, journal, results.complete) {
            write_results(&results, &inputs, out)?;
            journal.finish()?;
        }
        let is_unexpected = |claim: &&ClaimResult| match all_rows {
            Some(number) => claim.is_contradicted(plan.groups().len() == number),
            None => claim.is_unexpected(),
        };
        let claims = results.claims.iter().filter(is_unexpected);
        unexpected.extend(claims.map(|claim| claim.id.clone()));
        all.push(results);
        if cancel.load(Ordering::Relaxed) {
            break;
        }
    }
    print(args, &all)?;
    if cancel.load(Ordering::Relaxed) {
        let (done, files) = (all.len(), files.len());
        eprintln!("anysched: interrupted in experiment {done} of {files}; the rest is left out");
        return Err(Failure::Interrupted);
    }
    if unexpected.is_empty() {
        return Ok(());
    }
    eprintln!("anysched: otherwise than the experiments expect: {}", unexpected.join(", "));
    Err(Failure::Exit(UNEXPECTED))
}

/// The folder of the paper that an experiment is of: of another host, the one above it.
fn paper_of(file: &Path, is_of_host: bool) -> &Path {
    let folder = file.ancestors().nth(if is_of_host { 2 } else { 1 });
    folder.and_then(Path::file_name).map_or(Path::new(""), Path::new)
}

fn print(args: &ReproduceArgs, all: &[Results]) -> Result<(), Failure> {
    output::print(&match args.format {
        ListFormat::Table => formats::claims_text(all),
        ListFormat::Markdown => formats::claims_markdown(all),
        ListFormat::Json => {
            let each: Vec<String> =
                all.iter().map(|results| formats::json(results).trim_end().to_string()).collect();
            format!("[{}]\n", each.join(",\n"))
        }
    })
}

/// The experiment files of all papers, by name: for the simulator, or for another host.
fn all_experiments(folder: &Path, host: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for paper in entries(folder)?.into_iter().filter(|path| is_folder(path)) {
        let of_host = host.map_or_else(|| paper.clone(), |host| paper.join(host));
        if is_folder(&of_host) {
            files.extend(experiment_files(&of_host)?);
        }
    }
    match files.is_empty() {
        true => Err(Failure::from(format!(
            "no experiments{} in {} (--experiments says where to look)",
            host.map(|host| format!(" for {host}")).unwrap_or_default(),
            folder.display()
        ))),
        false => Ok(files),
    }
}

/// The experiment files of a paper, by name: for the simulator, or for another host.
fn experiments(folder: &Path, paper: &str, host: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
    let mut of_paper = paper_folder(folder, paper)?;
    if let Some(host) = host {
        of_paper.push(host);
        if !is_folder(&of_paper) {
            return Err(Failure::from(format!("{paper} has no experiments for {host}")));
        }
    }
    let files = experiment_files(&of_paper)?;
    if files.is_empty() {
        return Err(Failure::from(format!("no experiment files in {}", of_paper.display())));
    }
    Ok(files)
}

/// The folder of a paper.
pub fn paper_folder(folder: &Path, paper: &str) -> Result<PathBuf, Failure> {
    let of_paper = folder.join(paper);
    if is_folder(&of_paper) {
        return Ok(of_paper);
    }
    let papers = entries(folder)?.into_iter().filter(|path| is_folder(path));
    let names: Vec<String> =
        papers.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    let known = if names.is_empty() { "none".to_string() } else { names.join(", ") };
    Err(Failure::from(format!(
        "no experiments of \"{paper}\" in {}; there are: {known} (--experiments says where to \
         look)",
        folder.display()
    )))
}

/// The experiments in a folder, without those in folders inside it, by name.
pub fn experiment_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = entries(folder)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    Ok(files)
}

/// Where experiments are: in the folder that was named or, if that is the usual one and not there,
/// in the program.
pub fn library(folder: &Path) -> PathBuf {
    let is_usual = folder == Path::new(builtin::EXPERIMENTS) && !folder.exists();
    if is_usual { Path::new(builtin::ROOT).join(folder) } else { folder.to_path_buf() }
}

/// Whether there is such a folder, in the file system or in the program.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() || builtin::is_folder(path)
}

/// What is in a folder, by name.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let known = builtin::entries(folder);
    if !known.is_empty() {
        return Ok(known);
    }
    let failed = |error: std::io::Error| {
        let folder = folder.display();
        format!("{folder}: cannot be read: {error} (--experiments says where to look)")
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    Ok(entries)
}
