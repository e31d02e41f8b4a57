//! The files that an experiment names. Each is read, parsed and hashed once, however many runs
//! use it.

use crate::builtin;
use crate::spec::error::Fault;
use crate::spec::experiment::{Attached, Experiment};
use crate::spec::fields;
use crate::spec::tree::Node;
use anysched_core::Machine;
use anysched_topology::{self as topology, Source};
use anysched_workload::dist::Dist;
use anysched_workload::import::{Imported, Input};
use anysched_workload::kinds::{self, Place, ReadFile, Refusal};
use anysched_workload::model::Model;
use anysched_workload::model_load::CheckedModel;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Error, ErrorKind};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Caches of one plan.
pub(crate) struct Files {
    directory: PathBuf,
    attached: Attached,
    hashes: BTreeMap<String, blake3::Hash>,
    /// By the file's name and how it was read.
    loads: BTreeMap<(String, String), kinds::Source>,
    dists: BTreeMap<String, Dist>,
    machines: BTreeMap<String, Machine>,
    /// What models and machines leave out, with the file's name, in the order of first use.
    pub(crate) warnings: Vec<String>,
}

impl Files {
    /// Those of `experiment`.
    pub(crate) fn new(experiment: &Experiment) -> Files {
        Files {
            directory: experiment.directory.clone(),
            attached: experiment.attached.clone(),
            hashes: BTreeMap::new(),
            loads: BTreeMap::new(),
            dists: BTreeMap::new(),
            machines: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a warning, unless it is there.
    pub(crate) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The names and contents' hashes of all files so far, ordered by name.
    pub(crate) fn hashes(&self) -> &BTreeMap<String, blake3::Hash> {
        &self.hashes
    }

    /// Where all files so far are.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.hashes.keys().map(|name| self.directory.join(name))
    }

    fn read(&mut self, name: &str, at: &Range<usize>) -> Result<Vec<u8>, Fault> {
        self.bytes(name).map_err(|refusal| Fault::refused(at, refusal))
    }

    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        let read = self.open(name)?.read_to_end(&mut bytes);
        read.map_err(|error| self.unreadable(name, &error))?;
        Ok(bytes)
    }

    /// The file `name`: one that is attached, one that the program carries, or one on disk, which
    /// may be larger than the memory.
    fn open(&mut self, name: &str) -> Result<Box<dyn Input>, Refusal> {
        let path = self.directory.join(name);
        let mut hasher = blake3::Hasher::new();
        let opened: Result<Box<dyn Input>, Error> =
            match (self.attached.get(name), builtin::contents(&path)) {
                (Some(bytes), _) => Ok(Box::new(Cursor::new(bytes.clone()))),
                (None, Some(bytes)) => Ok(Box::new(Cursor::new(bytes))),
                // A device or a pipe may have no end.
                (None, None) => std::fs::metadata(&path).and_then(|meta| match meta.is_file() {
                    true => Ok(Box::new(File::open(&path)?) as Box<dyn Input>),
                    false => Err(Error::other("it is not a file")),
                }),
            };
        let hashed = opened.and_then(|mut file| {
            std::io::copy(&mut file, &mut hasher)?;
            file.rewind()?;
            Ok(file)
        });
        let file = hashed.map_err(|error| self.unreadable(name, &error))?;
        self.hashes.insert(name.to_string(), hasher.finalize());
        Ok(file)
    }

    fn unreadable(&self, name: &str, error: &Error) -> Refusal {
        if error.kind() == ErrorKind::Unsupported {
            return refused(format!("\"{name}\" is not attached, and there are no files here"))
                .help("attach it under this name");
        }
        let directory = match self.directory.as_os_str().is_empty() {
            true => "the current directory".to_string(),
            false => self.directory.display().to_string(),
        };
        refused(format!("\"{name}\" cannot be read: {error}"))
            .help(format!("it is looked for in {directory}, beside the experiment"))
    }

    /// The text of a file that is named at `at`.
    pub(crate) fn text(&mut self, name: &str, at: &Range<usize>) -> Result<Arc<str>, Fault> {
        let bytes = self.read(name, at)?;
        String::from_utf8(bytes).map(Arc::from).map_err(|error| {
            let line = 1 + lines_in(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            Fault::at(at, format!("\"{name}\" is not text: line {line} is not UTF-8"))
        })
    }

    /// The machine that `node` describes: in words, as a file, or as the one that this runs on.
    pub(crate) fn machine(&mut self, node: &Node) -> Result<Machine, Fault> {
        let spec = fields::text(node, "topology")?;
        let source = Source::of(spec);
        if source == Source::Words {
            return topology::words(spec).map(|found| found.machine).map_err(|error| {
                Fault::at(&node.at, format!("\"{spec}\" is not a topology")).help(format!(
                    "{error}; or name an .xml of lstopo, a .json of lscpu, or `host`"
                ))
            });
        }
        if let Some(machine) = self.machines.get(spec) {
            return Ok(machine.clone());
        }
        let found = match source {
            Source::Host => topology::host(),
            _ => topology::parse(spec, &self.read(spec, &node.at)?),
        };
        let found = found.map_err(|error| {
            Fault::at(&node.at, format!("{}: {}", error.place, error.message)).help(error.remedy)
        })?;
        if source == Source::Host {
            // What the machine is like takes the place of what is in a file.
            let like = topology::cpus_in_json(&found).to_string();
            self.hashes.insert(spec.to_string(), blake3::hash(like.as_bytes()));
        }
        self.warnings
            .extend(found.warnings.into_iter().map(|warning| format!("{spec}: {warning}")));
        self.machines.insert(spec.to_string(), found.machine.clone());
        Ok(found.machine)
    }
}

impl kinds::Files for Files {
    fn dist(&mut self, text: &str) -> Result<Dist, Refusal> {
        if let Some(dist) = self.dists.get(text) {
            return Ok(dist.clone());
        }
        let file = text.trim().strip_prefix("empirical").map(str::trim_start);
        let file = file.and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
        let mut held = Vec::new();
        if let Some(file) = file.map(str::trim)
            && !file.is_empty()
        {
            held = self.bytes(file)?;
        }
        let dist = Dist::parse_with(text, &self.directory, &|_| Ok(held.clone()));
        let dist = dist.map_err(|error| refused(error.to_string()))?;
        self.dists.insert(text.to_string(), dist.clone());
        Ok(dist)
    }

    fn import(
        &mut self,
        name: &str,
        how: &str,
        read: &ReadFile<'_>,
    ) -> Result<kinds::Source, Refusal> {
        let key = (name.to_string(), how.to_string());
        if let Some(source) = self.loads.get(&key) {
            return Ok(source.clone());
        }
        let mut file = self.open(name)?;
        let quoted = format!("\"{name}\"");
        let source = match read(&mut file).map_err(|error| refused(error.of(&quoted)))? {
            Imported::Tasks(tasks) if tasks.rows().is_empty() => {
                return Err(refused(format!("{quoted} has no tasks"))
                    .help("each is a line below that of the columns"));
            }
            Imported::Tasks(tasks) => kinds::Source::Tasks(Arc::new(tasks)),
            Imported::Model(model) => kinds::Source::Model(self.checked(model, name)?),
        };
        self.loads.insert(key, source.clone());
        Ok(source)
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

impl Files {
    /// `model`, the warnings of which are noted, if it can be run.
    fn checked(&mut self, mut model: Model, name: &str) -> Result<CheckedModel, Refusal> {
        let wrong = |what: String| refused(format!("\"{name}\": {what}"));
        let warnings = std::mem::take(&mut model.warnings);
        let arrives = model.tasks.iter().any(|task| task.arrives.is_some());
        let model = model.checked().map_err(|error| wrong(error.to_string()))?;
        if !arrives {
            return Err(wrong("no task arrives".to_string()).help(match warnings.is_empty() {
                true => "a task of a model has a time in `arrives`".to_string(),
                false => warnings.join("; "),
            }));
        }
        self.warnings.extend(warnings.into_iter().map(|warning| format!("{name}: {warning}")));
        Ok(model)
    }
}

/// What is wrong with a file; whoever names it knows where.
fn refused(message: String) -> Refusal {
    Refusal::new(Place::Table, message)
}

fn lines_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}
