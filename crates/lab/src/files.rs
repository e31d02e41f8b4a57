//! The files that an experiment names. Each is read, parsed and hashed once, however many runs
//! use it.

use crate::error::Fault;
use crate::fields;
use crate::tree::Node;
use anysched_core::Machine;
use anysched_topology::{self as topology, Source};
use anysched_workload::dist::Dist;
use anysched_workload::import::ImportError;
use anysched_workload::model::Model;
use anysched_workload::tasks_csv::TaskList;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Caches of one plan.
pub(crate) struct Files {
    directory: PathBuf,
    hashes: BTreeMap<String, blake3::Hash>,
    models: BTreeMap<(String, String), Arc<Model>>,
    tasks: BTreeMap<String, Arc<TaskList>>,
    dists: BTreeMap<String, Dist>,
    machines: BTreeMap<String, Machine>,
    /// What models and machines leave out, with the file's name, in the order of first use.
    pub(crate) warnings: Vec<String>,
}

impl Files {
    /// Names are relative to `directory`.
    pub(crate) fn new(directory: &Path) -> Files {
        Files {
            directory: directory.to_path_buf(),
            hashes: BTreeMap::new(),
            models: BTreeMap::new(),
            tasks: BTreeMap::new(),
            dists: BTreeMap::new(),
            machines: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    /// The names and contents' hashes of all files so far, ordered by name.
    pub(crate) fn hashes(&self) -> &BTreeMap<String, blake3::Hash> {
        &self.hashes
    }

    fn read(&mut self, name: &str, at: &Range<usize>) -> Result<Vec<u8>, Fault> {
        let path = self.directory.join(name);
        // A device or a pipe may have no end.
        let read = std::fs::metadata(&path).and_then(|meta| match meta.is_file() {
            true => std::fs::read(&path),
            false => Err(std::io::Error::other("it is not a file")),
        });
        let bytes = read.map_err(|error| {
            let directory = match self.directory.as_os_str().is_empty() {
                true => "the current directory".to_string(),
                false => self.directory.display().to_string(),
            };
            Fault::at(at, format!("\"{name}\" cannot be read: {error}"))
                .help(format!("it is looked for in {directory}, beside the experiment"))
        })?;
        self.hashes.insert(name.to_string(), blake3::hash(&bytes));
        Ok(bytes)
    }

    /// The text of a file that is named at `at`.
    pub(crate) fn text(&mut self, name: &str, at: &Range<usize>) -> Result<Arc<str>, Fault> {
        let bytes = self.read(name, at)?;
        String::from_utf8(bytes).map(Arc::from).map_err(|error| {
            let line = 1 + lines_in(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            Fault::at(at, format!("\"{name}\" is not text: line {line} is not UTF-8"))
        })
    }

    /// The model in the file that `node` names; `options` are what else `parse` depends on.
    pub(crate) fn model(
        &mut self,
        node: &Node,
        options: &str,
        parse: impl FnOnce(&[u8]) -> Result<Model, ImportError>,
    ) -> Result<Arc<Model>, Fault> {
        let name = fields::text(node, "file")?;
        let key = (name.to_string(), options.to_string());
        if let Some(model) = self.models.get(&key) {
            return Ok(Arc::clone(model));
        }
        let bytes = self.read(name, &node.at)?;
        let refused = |what: String| Fault::at(&node.at, format!("\"{name}\": {what}"));
        let mut model = parse(&bytes).map_err(|error| refused(error.to_string()))?;
        model.validate().map_err(|error| refused(error.to_string()))?;
        let warnings = std::mem::take(&mut model.warnings);
        if model.tasks.iter().all(|task| task.arrives.is_none()) {
            let fault = refused("no task arrives".to_string());
            return Err(match warnings.is_empty() {
                true => fault.help("a task of a model has a time in `arrives`"),
                false => fault.help(warnings.join("; ")),
            });
        }
        self.warnings.extend(warnings.into_iter().map(|warning| format!("{name}: {warning}")));
        let model = Arc::new(model);
        self.models.insert(key, Arc::clone(&model));
        Ok(model)
    }

    /// The task list in the file that `node` names.
    pub(crate) fn tasks(
        &mut self,
        node: &Node,
        parse: impl FnOnce(&[u8], &str) -> Result<TaskList, String>,
    ) -> Result<Arc<TaskList>, Fault> {
        let name = fields::text(node, "file")?;
        if let Some(tasks) = self.tasks.get(name) {
            return Ok(Arc::clone(tasks));
        }
        let bytes = self.read(name, &node.at)?;
        let tasks = parse(&bytes, name).map_err(|error| Fault::at(&node.at, error))?;
        if tasks.rows().is_empty() {
            return Err(Fault::at(&node.at, format!("\"{name}\" has no tasks"))
                .help("each is a line below that of the columns"));
        }
        let tasks = Arc::new(tasks);
        self.tasks.insert(name.to_string(), Arc::clone(&tasks));
        Ok(tasks)
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

    /// Notes how many tasks of the file that `node` names may use none of the machine's CPUs.
    pub(crate) fn warn_of_affinities(&mut self, node: &Node, tasks: usize, cpus: usize) {
        let name = node.as_text().unwrap_or_default();
        let warning = format!(
            "{name}: {tasks} tasks are bound to CPUs that this machine of {cpus} does not have; \
             they may use all of it"
        );
        if tasks > 0 && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The distribution that `text`, the value of `node`, describes.
    pub(crate) fn dist(&mut self, node: &Node, text: &str) -> Result<Dist, Fault> {
        if let Some(dist) = self.dists.get(text) {
            return Ok(dist.clone());
        }
        let file = text.trim().strip_prefix("empirical").map(str::trim_start);
        let file = file.and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
        if let Some(file) = file.map(str::trim)
            && !file.is_empty()
        {
            self.read(file, &node.at)?;
        }
        let dist = Dist::parse(text, &self.directory)
            .map_err(|error| Fault::at(&node.at, error.to_string()))?;
        self.dists.insert(text.to_string(), dist.clone());
        Ok(dist)
    }
}

fn lines_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}
