//! Runs that are done, kept in a file so that an interrupted experiment can go on from there.
//!
//! A line of JSON each, after one that says of which experiment, on which host and by which program
//! they are. A line that was cut off, as by a crash, does not count. Numbers are kept as the bits
//! of their `f64`, so that what is read is what was written.

use crate::plan::Plan;
use crate::plan::views::View;
use crate::results::Run;
use crate::spec::columns::{self, Column};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The form of the file; one of another number is not read.
const FORM: u32 = 2;

/// A run by its group, the label of its policy and the number of its seed.
type Place = (usize, String, u32);

/// What a run has shown.
type Views = Vec<(View, Run)>;

/// The runs of an experiment that are done.
#[derive(Debug)]
pub struct Journal {
    /// Where they are kept, and under which head; `None`: in memory, and no further ones.
    place: Option<(PathBuf, Head)>,
    known: BTreeMap<Place, Views>,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// None before the first run is added.
    file: Option<File>,
    /// Why a run could not be added: from then on, none is.
    failed: Option<io::Error>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    journal: u32,
    experiment: String,
    spec_hash: String,
    seed: u64,
    host: String,
    /// By which axes the views of runs are told apart.
    views: Vec<String>,
    /// BLAKE3 of the program: another one may decide otherwise.
    program: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    group: usize,
    policy: String,
    index: u32,
    seed: u64,
    /// Of each view of the group: column and bits of the number.
    views: Vec<(View, Vec<(String, u64)>)>,
}

impl Journal {
    /// The file for a plan in a folder of results.
    pub fn path(plan: &Plan, folder: &Path) -> PathBuf {
        folder.join(format!("{}.runs", plan.experiment))
    }

    /// Opens the file for `plan` in `folder`. If there is none, both are made when the first run is
    /// added; with `resume`, it may have runs.
    ///
    /// Errors: it cannot be read; it has runs, and is not to be resumed, or they are of another
    /// experiment, host or program. The message says what to do.
    pub fn open(plan: &Plan, host: &str, folder: &Path, resume: bool) -> io::Result<Journal> {
        let path = Journal::path(plan, folder);
        let head = Head::of(plan, host).map_err(|error| about(&path, error))?;
        Journal::open_file(path, head, resume)
    }

    fn open_file(path: PathBuf, head: Head, resume: bool) -> io::Result<Journal> {
        let about = |error| about(&path, error);
        let file = match OpenOptions::new().read(true).append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            file => Some(file.map_err(about)?),
        };
        let known = match &file {
            Some(file) => read(file, &head, resume).map_err(about)?,
            None => BTreeMap::new(),
        };
        let kept = Mutex::new(Kept { file, failed: None });
        Ok(Journal { place: Some((path, head)), known, kept })
    }

    /// Opens the file for the runs of `plan` in `folder`, where those of many plans are kept for
    /// whoever plans the same again: with the same text, on the same host, by the same program. It
    /// is not to be finished.
    ///
    /// Errors: it cannot be read.
    pub fn keep(plan: &Plan, host: &str, folder: &Path) -> io::Result<Journal> {
        let head = Head::of(plan, host).map_err(|error| about(folder, error))?;
        let hash = blake3::hash(&line(&head)?).to_hex();
        let path = folder.join(format!("{}-{}.runs", plan.experiment, &hash[..16]));
        Journal::open_file(path, head, true)
    }

    /// The runs that parts of `plan` have ([`Plan::part`]).
    ///
    /// Errors: a line that is no run of the plan.
    pub fn of_parts<'a>(
        plan: &Plan,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> io::Result<Journal> {
        let kept = Mutex::new(Kept { file: None, failed: None });
        let mut journal = Journal { place: None, known: BTreeMap::new(), kept };
        for (number, part) in parts.into_iter().enumerate() {
            let about = |error| io::Error::other(format!("part {number}, {error}"));
            journal.take(plan, part).map_err(about)?;
        }
        Ok(journal)
    }

    /// Takes over the runs that a part of `plan` has ([`Plan::part`]), and keeps them as those that
    /// are made here.
    ///
    /// Errors: a line that is no run of the plan.
    pub fn take(&mut self, plan: &Plan, part: &[u8]) -> io::Result<()> {
        for (number, text) in part.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let refused = |why: &str| io::Error::other(format!("line {}: {why}", number + 1));
            let whole = text.ends_with(b"\n").then(|| parse(text)).flatten();
            let ((group, policy, index), views) =
                whole.ok_or_else(|| refused("not a run as this program writes it"))?;
            let is_of_plan = group < plan.groups.len()
                && views.iter().all(|(_, run)| run.seed == plan.seed(group, index));
            if !is_of_plan {
                return Err(refused("a run of another experiment"));
            }
            self.add(group, &policy, &views);
            self.known.insert((group, policy, index), views);
        }
        Ok(())
    }

    /// How many runs it had when it was opened, and has taken over since.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether it had none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// A run that was done before.
    pub(crate) fn known(&self, group: usize, policy: &str, index: u32) -> Option<Views> {
        self.known.get(&(group, policy.to_string(), index)).cloned()
    }

    /// Whether it has a run that was done before.
    pub(crate) fn has(&self, group: usize, policy: &str, index: u32) -> bool {
        self.known.contains_key(&(group, policy.to_string(), index))
    }

    /// Adds a run. That it cannot be written is no reason to end an experiment: see
    /// [`Journal::failure`].
    pub(crate) fn add(&self, group: usize, policy: &str, views: &[(View, Run)]) {
        let Some((path, head)) = &self.place else { return };
        let bytes = written(group, policy, views);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.failed.is_some() {
            return;
        }
        let written = bytes.and_then(|bytes| {
            let file = match &mut kept.file {
                Some(file) => file,
                none => none.insert(begin(path, head)?),
            };
            // One write each: a crash cuts at most the last line.
            file.write_all(&bytes)
        });
        kept.failed = written.err().map(|error| about(path, error));
    }

    /// Why there is a run that could not be added, if there is one.
    pub fn failure(&self) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.failed.as_ref().map(ToString::to_string)
    }

    /// Removes the file: its runs are in the results.
    ///
    /// Errors: it cannot be removed.
    pub fn finish(self) -> io::Result<()> {
        let file = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner).file;
        match (file, self.place) {
            (Some(_), Some((path, _))) => {
                std::fs::remove_file(&path).map_err(|error| about(&path, error))
            }
            _ => Ok(()),
        }
    }
}

fn begin(path: &Path, head: &Head) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
    file.write_all(&line(head)?)?;
    Ok(file)
}

/// The line of a run of a group by position, by a policy by label; a run that shows nothing has
/// none.
pub(crate) fn written(group: usize, policy: &str, views: &[(View, Run)]) -> io::Result<Vec<u8>> {
    let Some((_, first)) = views.first() else { return Ok(Vec::new()) };
    let numbers = |(view, run): &(View, Run)| {
        let bits = |(column, number): &(Column, f64)| (column.to_string(), number.to_bits());
        (view.clone(), run.values.iter().map(bits).collect())
    };
    line(&Line {
        group,
        policy: policy.to_string(),
        index: first.index,
        seed: first.seed,
        views: views.iter().map(numbers).collect(),
    })
}

impl Head {
    fn of(plan: &Plan, host: &str) -> io::Result<Head> {
        let program = std::env::current_exe().and_then(std::fs::read)?;
        Ok(Head {
            journal: FORM,
            experiment: plan.experiment.clone(),
            spec_hash: plan.spec_hash.clone(),
            seed: plan.seed,
            host: host.to_string(),
            views: plan.view_axes().into_iter().map(String::from).collect(),
            program: blake3::hash(&program).to_hex().to_string(),
        })
    }
}

/// Reads the runs, and cuts off what follows the last whole line.
fn read(file: &File, wanted: &Head, resume: bool) -> io::Result<BTreeMap<Place, Views>> {
    let mut lines = BufReader::new(file);
    let mut text = Vec::new();
    let mut next = |text: &mut Vec<u8>| -> io::Result<bool> {
        text.clear();
        lines.read_until(b'\n', text)?;
        Ok(text.last() == Some(&b'\n'))
    };
    next(&mut text)?;
    let whose = match serde_json::from_slice::<Head>(&text) {
        Ok(head) if head == *wanted => None,
        Ok(head) if head.program != wanted.program => Some("another build of this program"),
        Ok(head) if head.host != wanted.host => Some("another host"),
        Ok(head) if head.views != wanted.views => Some("rows that are parted by something else"),
        Ok(_) => Some("another experiment, or of another text of this one"),
        Err(_) => Some("something else"),
    };
    if let Some(whose) = whose {
        let why = format!("it has runs of {whose}; remove it, or give another folder");
        return Err(io::Error::other(why));
    }
    let mut known = BTreeMap::new();
    let mut end = text.len() as u64;
    while next(&mut text)? {
        let Some((place, runs)) = parse(&text) else {
            return Err(io::Error::other(format!(
                "byte {end}: not a line that this program writes; remove the file, or that line"
            )));
        };
        known.insert(place, runs);
        end += text.len() as u64;
    }
    if !resume && !known.is_empty() {
        return Err(io::Error::other(format!(
            "it has {} runs of this experiment, which was interrupted; --resume goes on from \
             there; or remove it to begin anew",
            known.len()
        )));
    }
    file.set_len(end)?;
    Ok(known)
}

fn parse(text: &[u8]) -> Option<(Place, Views)> {
    let Line { group, policy, index, seed, views } = serde_json::from_slice(text).ok()?;
    let run = |(view, numbers): (View, Vec<(String, u64)>)| {
        let number =
            |(name, bits): (String, u64)| Some((columns::column(&name)?, f64::from_bits(bits)));
        let values = numbers.into_iter().map(number).collect::<Option<_>>()?;
        Some((view, Run { index, seed, values }))
    };
    let runs = views.into_iter().map(run).collect::<Option<Vec<_>>>()?;
    Some(((group, policy, index), runs))
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn about(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
