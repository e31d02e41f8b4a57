//! Changes to an experiment from outside its file: `--policy`, `--set`.
//!
//! A change is written as TOML, put behind the file's text and read from there, so that an error
//! in it, or one that it causes, points at it as at any other value.

use crate::claim::ClaimSpec;
use crate::error::{Error, Fault, Source};
use crate::experiment::{Experiment, set_part};
use crate::fields::hint;
use crate::plan::Plan;
use crate::run::RunError;
use crate::sweep;
use crate::tree::{self, Node, Value};
use anysched_core::Scheduler;
use anysched_core::registry::POLICIES;
use anysched_sim::{Metrics, Setup};
use anysched_trace::Sink;
use std::ops::Range;

/// The end of a text that began as an experiment file.
struct Appended {
    source: Source,
    /// Where the value is.
    key_at: Range<usize>,
    node: Node,
}

impl Experiment {
    /// The same experiment with only these policies: those of the file by label, others as they
    /// are registered. Claims about policies that are left out are left out too.
    ///
    /// Errors: a name is neither a label of the file nor registered, or occurs twice.
    pub fn with_policies(mut self, names: &[&str]) -> Result<Experiment, Error> {
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let change = self.append("policy", &format!("[{}]", list.join(", ")));
        let source = change.source.clone();
        self.choose_policies(change).map_err(|fault| source.error(fault))
    }

    fn choose_policies(&mut self, change: Appended) -> Result<Experiment, Fault> {
        let mut chosen = Vec::new();
        let mut places = vec![None; self.sweep.policies.len()];
        for item in change.node.as_list().unwrap_or_default() {
            let name = item.as_text().unwrap_or_default();
            let known = self.sweep.policies.iter().position(|entry| entry.label == name);
            if chosen.iter().any(|entry: &sweep::PolicyEntry| entry.label == name) {
                return Err(Fault::at(&item.at, format!("\"{name}\" twice")));
            }
            match known {
                Some(index) => {
                    places[index] = Some(chosen.len());
                    chosen.push(self.sweep.policies[index].clone());
                }
                None if name == "all" || POLICIES.iter().any(|policy| policy.name == name) => {
                    chosen.extend(sweep::read_policies(item)?);
                }
                None => {
                    let labels = self.sweep.policies.iter().map(|entry| entry.label.as_str());
                    let names = labels.chain(POLICIES.iter().map(|policy| policy.name));
                    return Err(Fault::at(&item.at, format!("no policy is called \"{name}\""))
                        .label("unknown policy")
                        .help(hint(name, names)));
                }
            }
        }
        let claims = self.claims.iter().filter_map(|claim| claim.moved(&places)).collect();
        Ok(self.changed(change, |changed| {
            changed.sweep.policies = chosen;
            changed.claims = claims;
        }))
    }

    /// The same experiment with another value at a dotted path (`machine.cpus`,
    /// `workload.0.tasks`, `duration`), or with another value of a parameter of the policies that
    /// have it. Numbers, `true`, `false`, lists and tables are read as TOML, the rest as text.
    ///
    /// Errors: there is no such place or parameter. Whether the value is right is seen when the
    /// experiment is planned.
    pub fn with_setting(mut self, key: &str, value: &str) -> Result<Experiment, Error> {
        let is_toml = !value.is_empty() && tree::parse(&format!("x = {value}\n")).is_ok();
        let text = if is_toml { value.to_string() } else { quoted(value) };
        let change = self.append(key, &text);
        let source = change.source.clone();
        let path: Vec<&str> = key.split('.').collect();
        let is_path = path.len() > 1 || key == "duration";
        let changed =
            if is_path { self.set_value(&path, change) } else { self.set_param(key, change) };
        changed.map_err(|fault| source.error(fault))
    }

    fn set_value(&mut self, path: &[&str], change: Appended) -> Result<Experiment, Fault> {
        sweep::check_path(&path.join("."), &change.key_at)?;
        let mut scenarios = self.scenarios.clone();
        for scenario in &mut scenarios {
            set_part(&mut scenario.tree, path, &change.key_at, change.node.clone())
                .map_err(|why| Fault::at(&change.key_at, why))?;
        }
        if self.sweep.axes.iter().any(|axis| axis.path == path.join(".")) {
            let message = format!("`{}` is an axis of this experiment", path.join("."));
            return Err(Fault::at(&change.key_at, message)
                .help("its values are all run; change the list in the file"));
        }
        Ok(self.changed(change, |changed| changed.scenarios = scenarios))
    }

    fn set_param(&mut self, key: &str, change: Appended) -> Result<Experiment, Fault> {
        let text = match &change.node.value {
            Value::Text(text) => text.clone(),
            _ => change.node.to_string(),
        };
        let mut policies = self.sweep.policies.clone();
        let mut names: Vec<&str> = vec!["duration"];
        let mut found = false;
        for entry in &mut policies {
            let params = (entry.info.params)();
            names.extend(params.iter().map(|param| param.name));
            if params.iter().any(|param| param.name == key) {
                entry.set(key, &change.key_at, &text, &change.node.at);
                found = true;
            }
        }
        if !found {
            return Err(Fault::at(&change.key_at, format!("no policy here has `{key}`"))
                .label("unknown parameter")
                .help(hint(key, names)));
        }
        Ok(self.changed(change, |changed| changed.sweep.policies = policies))
    }

    /// Puts `key = value`, which must be TOML, behind the text.
    fn append(&self, key: &str, value: &str) -> Appended {
        let mut text = self.source.text.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("# from the command line\n");
        let start = text.len();
        text.push_str(&format!("{key} = {value}\n"));
        let value_at = start + key.len() + 3;
        let node = match tree::parse(&format!("x = {value}\n")) {
            Ok(root) => root.as_table().and_then(|table| table.get("x")).cloned(),
            Err(_) => None,
        };
        let mut node = node.unwrap_or(Node { value: Value::Text(value.to_string()), at: 0..0 });
        // The value was read behind "x = ".
        node.shift(value_at - "x = ".len());
        let source = Source { name: self.source.name.clone(), text: text.into() };
        Appended { source, key_at: start..start + key.len(), node }
    }

    fn changed(&self, change: Appended, how: impl FnOnce(&mut Experiment)) -> Experiment {
        let mut changed = Experiment {
            source: change.source,
            directory: self.directory.clone(),
            name: self.name.clone(),
            question: self.question.clone(),
            title: self.title.clone(),
            seed: self.seed,
            sweep: self.sweep.clone(),
            scenarios: self.scenarios.clone(),
            claims: self.claims.clone(),
            columns: self.columns.clone(),
            canonical: format!("{}\n{}", self.canonical, change.node),
        };
        how(&mut changed);
        changed
    }
}

/// `text` as a TOML string.
fn quoted(text: &str) -> String {
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

impl ClaimSpec {
    /// The claim when policies have moved to these positions; `None` if it is about one that is
    /// gone.
    fn moved(&self, places: &[Option<usize>]) -> Option<ClaimSpec> {
        let mut moved = self.clone();
        moved.move_policies(&|policy| places.get(policy).copied().flatten())?;
        Some(moved)
    }
}

impl Plan {
    /// The machine of a group, by position, and what goes with it.
    pub fn setup(&self, group: usize) -> &Setup {
        &self.groups[group].setup
    }

    /// [`Plan::run_one`] with the policy inside whatever `wrap` makes around it: a recorder, a
    /// checker.
    ///
    /// Errors: the run could not be finished.
    pub fn run_one_wrapped<T: Sink>(
        &self,
        group: usize,
        policy: usize,
        index: u32,
        sink: T,
        wrap: impl FnOnce(Box<dyn Scheduler>) -> Box<dyn Scheduler>,
    ) -> Result<(Metrics, T), RunError> {
        self.run_scheduler(group, policy, index, sink, wrap)
    }
}
