//! Changes to an experiment from outside its file: `--policy`, `--set`.
//!
//! A change is written as TOML, put behind the file's text and read from there, so that an error
//! in it, or one that it causes, points at it as at any other value.

use crate::spec::error::{Error, Fault, Source};
use crate::spec::experiment::{Experiment, Quick, SEEDS};
use crate::spec::fields::{self, hint};
use crate::spec::parts::{self, RowsShown};
use crate::spec::scenario::set_part;
use crate::spec::sweep;
use crate::spec::tree::{self, Node, Value};
use anysched_policies::POLICIES;
use std::ops::Range;

/// The end of a text that began as an experiment file.
pub(crate) struct Appended {
    pub(crate) source: Source,
    key: String,
    key_at: Range<usize>,
    pub(crate) node: Node,
}

impl Experiment {
    /// The same experiment with only these policies: those of the file by label, others as they
    /// are registered. Of the schedulers that the file expects of hosts (`of_host`), those named
    /// here stay, or all if none is. Claims about what is left out are left out too.
    ///
    /// Errors: a name is neither in the file nor registered, or occurs twice.
    pub fn with_policies(self, names: &[&str]) -> Result<Experiment, Error> {
        self.policies(names)
    }

    /// As [`Experiment::with_policies`], of a list as it would stand in the file: names, and tables
    /// of policies that the file does not have.
    ///
    /// Errors: as there, or as of a file with this list.
    pub fn with_policy_list(self, list: &str) -> Result<Experiment, Error> {
        self.policies_of(list)
    }

    /// As [`Experiment::with_policies`], for experiments that are still needed as they are.
    pub(crate) fn policies(&self, names: &[&str]) -> Result<Experiment, Error> {
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        self.policies_of(&format!("[{}]", list.join(", ")))
    }

    fn policies_of(&self, list: &str) -> Result<Experiment, Error> {
        let change = self.append("policy", list);
        let source = change.source.clone();
        self.choose_policies(change).map_err(|fault| source.error(fault))
    }

    fn choose_policies(&self, change: Appended) -> Result<Experiment, Fault> {
        let mut chosen = Vec::new();
        let mut of_host: Vec<String> = Vec::new();
        let mut places = vec![None; self.sweep.policies.len()];
        for item in change.node.as_list().unwrap_or_default() {
            let name = item.as_text().unwrap_or_default();
            let known = self.sweep.policies.iter().position(|entry| entry.label == name);
            let added = match known {
                _ if item.as_text().is_none() => sweep::read_policies(item)?,
                Some(index) => {
                    places[index] = Some(chosen.len());
                    vec![self.sweep.policies[index].clone()]
                }
                None if self.sweep.of_host.iter().flatten().any(|own| own == name) => {
                    if of_host.iter().any(|before| before == name) {
                        return Err(twice(name, item));
                    }
                    of_host.push(name.to_string());
                    continue;
                }
                None if name == "all" || POLICIES.iter().any(|policy| policy.name == name) => {
                    sweep::read_policies(item)?
                }
                None => {
                    let labels = self.sweep.labels();
                    let others = POLICIES.iter().map(|policy| policy.name);
                    let others = others.filter(|other| labels.clone().all(|label| label != *other));
                    return Err(Fault::at(&item.at, format!("no policy is called \"{name}\""))
                        .label("unknown policy")
                        .help(hint(name, labels.clone().chain(others))));
                }
            };
            for entry in added {
                if chosen.iter().any(|before: &sweep::PolicyEntry| before.label == entry.label) {
                    return Err(twice(&entry.label, item));
                }
                chosen.push(entry);
            }
        }
        let only_of_host = chosen.is_empty() && !of_host.is_empty();
        let of_host = if of_host.is_empty() { self.sweep.of_host.clone() } else { Some(of_host) };
        // The host's own are behind the policies.
        let place = |own: &String| of_host.iter().flatten().position(|name| name == own);
        let moved = |own: &String| place(own).map(|place| chosen.len() + place);
        places.extend(self.sweep.of_host.iter().flatten().map(moved));
        let claims = self.claims.iter().filter_map(|claim| claim.moved(&places)).collect();
        Ok(self.changed(change, |changed, _| {
            if !only_of_host {
                changed.sweep.policies = chosen;
            }
            changed.sweep.only_of_host = only_of_host;
            changed.sweep.of_host = of_host;
            changed.claims = claims;
        }))
    }

    /// The same experiment with one thing changed: the value at a path (`machine.cpus`,
    /// `workload.0.tasks`, `vm.0.count`, `duration`), of which an axis is then reduced to this
    /// value; the `seed`; a parameter of all policies that have it; or `label.parameter`.
    /// Numbers, `true`, `false`, lists and tables are read as TOML, the rest as text.
    ///
    /// Errors: there is no such place or parameter. Whether the value is right is seen when the
    /// experiment is planned.
    pub fn with_setting(self, key: &str, value: &str) -> Result<Experiment, Error> {
        self.setting(key, value)
    }

    /// The same experiment with its rows parted: by `workload` or `task`, or by `vm`, by which they
    /// are in any case.
    ///
    /// Errors: rows cannot be parted by that, or it has no virtual machines.
    pub fn with_rows_by(self, parts: &[&str]) -> Result<Experiment, Error> {
        let list: Vec<String> = parts.iter().map(|part| quoted(part)).collect();
        let change = self.append("by", &format!("[{}]", list.join(", ")));
        let source = change.source.clone();
        let apart = parts::read_by(&change.node, &self.scenarios);
        let apart = apart.map_err(|fault| source.error(fault))?;
        Ok(Experiment { rows_shown: RowsShown { apart, ..self.rows_shown.clone() }, ..self })
    }

    /// As [`Experiment::with_setting`], for experiments that are still needed as they are.
    pub(crate) fn setting(&self, key: &str, value: &str) -> Result<Experiment, Error> {
        let change = self.append(key, &as_toml(value));
        let source = change.source.clone();
        let path: Vec<&str> = key.split('.').collect();
        let changed = match path.as_slice() {
            ["seed"] => self.set_seed(change),
            ["duration" | "machine" | "workload" | "vm", ..] => self.set_value(&path, change),
            _ => self.set_parameter(key, change),
        };
        changed.map_err(|fault| source.error(fault))
    }

    fn set_seed(&self, change: Appended) -> Result<Experiment, Fault> {
        let seed = fields::whole(&change.node, "seed", SEEDS)?;
        Ok(self.changed(change, |changed, _| changed.seed = seed))
    }

    fn set_value(&self, path: &[&str], change: Appended) -> Result<Experiment, Fault> {
        let key = path.join(".");
        if !sweep::is_path(&key) {
            return Err(Fault::at(&change.key_at, format!("`{key}` is no value"))
                .label("not a value")
                .help(
                    "values are `duration` and paths such as `machine.cpus`, `workload.0.tasks`, \
                     `vm.0.count`",
                ));
        }
        if let Some(axis) = self.sweep.axes.iter().position(|axis| axis.path == key) {
            return Ok(self.changed(change, |changed, node| {
                changed.sweep.axes[axis].values = vec![node];
            }));
        }
        let mut scenarios = self.scenarios.clone();
        for scenario in &mut scenarios {
            set_part(&mut scenario.tree, path, &change.key_at, change.node.clone())
                .map_err(|why| Fault::at(&change.key_at, why))?;
        }
        Ok(self.changed(change, |changed, _| changed.scenarios = scenarios))
    }

    /// The same experiment with the value at a path, as of [`Experiment::with_setting`], swept over
    /// `values`, which are read as there; an axis of the file has these values only.
    ///
    /// Errors: there is no such place, or a value occurs twice. Whether the values are right is
    /// seen when the experiment is planned.
    pub fn with_axis(self, path: &str, values: &[&str]) -> Result<Experiment, Error> {
        let list: Vec<String> = values.iter().map(|value| as_toml(value)).collect();
        let change = self.append(path, &format!("[{}]", list.join(", ")));
        let source = change.source.clone();
        let mut axes = self.sweep.axes.clone();
        let place = axes.iter().position(|axis| axis.path == path);
        if let Some(place) = place {
            axes.remove(place);
        }
        let added = sweep::read_axis(path, &change.key_at, &change.node, &mut axes);
        added.map_err(|fault| source.error(fault))?;
        if let Some(place) = place {
            // Where it was, so that rows stay in their order.
            axes[place..].rotate_right(1);
        }
        Ok(self.changed(change, |changed, _| changed.sweep.axes = axes))
    }

    fn set_parameter(&self, key: &str, change: Appended) -> Result<Experiment, Fault> {
        let text = sweep::setting_text(key, &change.node)?;
        let (label, name) = match key.rsplit_once('.') {
            Some((label, name)) => (Some(label), name),
            None => (None, key),
        };
        let mut policies = self.sweep.policies.clone();
        let labels = self.sweep.policies.iter().map(|entry| entry.label.as_str());
        if let Some(label) = label.filter(|label| labels.clone().all(|known| known != *label)) {
            return Err(Fault::at(&change.key_at, format!("no policy here is called `{label}`"))
                .label("neither a policy nor a part of the experiment")
                .help(hint(label, labels.clone().chain(["machine", "workload", "vm"]))));
        }
        let mut names: Vec<&str> = match label {
            Some(_) => Vec::new(),
            None => vec!["duration", "seed"],
        };
        let mut found = false;
        for entry in policies.iter_mut().filter(|e| label.is_none_or(|label| label == e.label)) {
            let params = (entry.info.params)();
            names.extend(params.iter().map(|param| param.name));
            if params.iter().any(|param| param.name == name) {
                entry.set(name, &change.key_at, &text, &change.node.at);
                found = true;
            }
        }
        if !found {
            names.sort_unstable();
            names.dedup();
            return Err(Fault::at(&change.key_at, format!("no policy here has `{key}`"))
                .label("unknown parameter")
                .help(hint(name, names.into_iter())));
        }
        Ok(self.changed(change, |changed, _| changed.sweep.policies = policies))
    }

    /// Puts `key = value`, which must be TOML, behind the text.
    pub(crate) fn append(&self, key: &str, value: &str) -> Appended {
        let source = self.source.with(&format!("{key} = {value}\n"));
        let start = source.text.len() - key.len() - value.len() - " = \n".len();
        let value_at = start + key.len() + 3;
        let node = match tree::parse(&format!("x = {value}\n")) {
            Ok(root) => root.as_table().and_then(|table| table.get("x")).cloned(),
            Err(_) => None,
        };
        let mut node = node.unwrap_or(Node { value: Value::Text(value.to_string()), at: 0..0 });
        // The value was read behind "x = ".
        node.shift(value_at - "x = ".len());
        Appended { source, key: key.to_string(), key_at: start..start + key.len(), node }
    }

    pub(crate) fn changed(
        &self,
        change: Appended,
        how: impl FnOnce(&mut Experiment, Node),
    ) -> Experiment {
        let mut changed = Experiment {
            source: change.source,
            path: self.path.clone(),
            directory: self.directory.clone(),
            attached: self.attached.clone(),
            name: self.name.clone(),
            question: self.question.clone(),
            title: self.title.clone(),
            seed: self.seed,
            sweep: self.sweep.clone(),
            scenarios: self.scenarios.clone(),
            claims: self.claims.clone(),
            columns: self.columns.clone(),
            rows_shown: self.rows_shown.clone(),
            canonical: format!("{}\n{} = {}", self.canonical, change.key, change.node),
            quick: Quick::default(),
        };
        how(&mut changed, change.node);
        changed
    }
}

/// A value as TOML: as it is if it is that, otherwise as a text.
fn as_toml(value: &str) -> String {
    let is_toml = !value.is_empty() && tree::parse(&format!("x = {value}\n")).is_ok();
    if is_toml { value.to_string() } else { quoted(value) }
}

fn twice(name: &str, at: &Node) -> Fault {
    Fault::at(&at.at, format!("policy \"{name}\" is chosen twice"))
        .label("the second time")
        .help("name each once; `all` are the registered ones")
}

/// `text` as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
