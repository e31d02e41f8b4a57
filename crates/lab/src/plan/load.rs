//! `[[workload]]`: what tasks there are. The kinds of load are those of [`kinds`].

use crate::spec::error::{Fault, Faults};
use crate::spec::fields::read_all;
use crate::spec::files::Files;
use crate::spec::parts;
use crate::spec::tree::{Node, Table, Value};
use anysched_core::{Machine, Time};
use anysched_host::{HostError, HostInfo};
use anysched_workload::kinds::{self, Given, LoadSpec, Needs, Pings, Place, Refusal, Source};
use anysched_workload::mix::Mix;
use anysched_workload::rng;
use anysched_workload::{Load, Port};
use std::ops::Range;

/// The loads of a group of rows, checked. What they read from files is shared by all runs.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    pub(crate) parts: Vec<Source>,
    /// Where each of those is written that the file has; they are the first.
    pub(crate) at: Vec<Range<usize>>,
    pub(crate) cpus: usize,
    /// In words, one each.
    pub(crate) words: Vec<String>,
    /// What they are called, one each and each once.
    pub(crate) names: Vec<String>,
    /// The latest end that one of the files states.
    pub(crate) until: Option<Time>,
    /// Where the first load is written that never ends.
    pub(crate) endless: Option<Range<usize>>,
    /// What other virtual machines have to answer.
    pub(crate) pinged: Vec<Pinged>,
}

/// What another virtual machine has to answer.
#[derive(Clone, Debug)]
pub(crate) struct Pinged {
    /// The load that sends, by position.
    pub(crate) part: usize,
    pub(crate) pings: Pings,
    /// Where the other machine is named.
    pub(crate) to_at: Range<usize>,
    /// Where the machine between is named.
    pub(crate) via_at: Range<usize>,
}

impl kinds::Table for Table {
    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|entry| entry.key.as_str()).collect()
    }

    fn get(&self, key: &str) -> Option<Given<'_>> {
        Table::get(self, key).map(Node::given)
    }
}

impl Node {
    /// The value without places.
    pub(crate) fn given(&self) -> Given<'_> {
        match &self.value {
            Value::Text(text) => Given::Text(text),
            Value::Integer(number) => Given::Whole(*number),
            Value::Real(number) => Given::Real(*number),
            Value::Flag(flag) => Given::Flag(*flag),
            Value::List(items) => Given::List(items.iter().map(Node::given).collect()),
            Value::Table(_) => Given::Table,
        }
    }
}

impl Fault {
    /// `refusal`, which is about something at `at`.
    pub(crate) fn refused(at: &Range<usize>, refusal: Refusal) -> Fault {
        let Refusal { message, label, help, .. } = refusal;
        let mut fault = Fault::at(at, message);
        if let Some(label) = label {
            fault = fault.label(label);
        }
        match help {
            Some(help) => fault.help(help),
            None => fault,
        }
    }
}

/// Where in `node`, a table, a load was refused.
fn place_in<'a>(node: &'a Node, place: &Place) -> &'a Range<usize> {
    let entry = |key: &str| node.as_table().and_then(|table| table.entry(key));
    let found = match place {
        Place::Table => None,
        Place::Key(key) => entry(key).map(|entry| &entry.key_at),
        Place::Value(key) => entry(key).map(|entry| &entry.node.at),
        Place::Item(key, item) => entry(key).map(|entry| {
            let items = entry.node.as_list().unwrap_or_default();
            items.get(*item).map_or(&entry.node.at, |item| &item.at)
        }),
    };
    found.unwrap_or(&node.at)
}

fn read_load(node: &Node, cpus: usize, files: &mut Files) -> Result<LoadSpec, Fault> {
    let Some(table) = node.as_table() else {
        return Err(Fault::at(&node.at, format!("a load is a table, not {}", node.shown())));
    };
    kinds::read(table, cpus, files).map_err(|refusal| {
        let mut faults = Faults::default();
        for refusal in refusal.each() {
            faults.add(Fault::refused(place_in(node, &refusal.place), refusal));
        }
        faults.result().err().unwrap_or_else(|| Fault::at(&node.at, "not a load"))
    })
}

impl Loads {
    /// Reads the list of loads for a machine of `cpus` CPUs.
    pub(crate) fn read(list: &Node, cpus: usize, files: &mut Files) -> Result<Loads, Fault> {
        let nodes = list.as_list().filter(|list| !list.is_empty()).ok_or_else(|| {
            Fault::at(&list.at, format!("`workload` is a list of tables, not {}", list.shown()))
                .help("each begins with a line `[[workload]]`")
        })?;
        let mut loads = Loads::none(cpus);
        loads.names = parts::load_names(nodes);
        let mut faults = Faults::default();
        for node in nodes {
            let read = read_all(node, |node| read_load(node, cpus, files));
            let Some(load) = faults.take(read) else { continue };
            loads.until = loads.until.max(load.source.until());
            if load.source.endless() && loads.endless.is_none() {
                loads.endless = Some(node.at.clone());
            }
            if let Some(pings) = load.pings {
                let at = |key: &str| place_in(node, &Place::Value(key.to_string())).clone();
                let (to_at, via_at) = (at("to"), at("via"));
                loads.pinged.push(Pinged { part: loads.parts.len(), pings, to_at, via_at });
            }
            loads.parts.push(load.source);
            loads.at.push(node.at.clone());
            loads.words.push(in_words(node));
        }
        faults.result().map(|()| loads)
    }

    /// No load on a machine of `cpus` CPUs.
    pub(crate) fn none(cpus: usize) -> Loads {
        let (parts, at, words, names, pinged) = Default::default();
        Loads { parts, at, cpus, words, names, until: None, endless: None, pinged }
    }

    /// Adds a load that no file has, by what it does, and returns its position.
    pub(crate) fn add(&mut self, does: &str, load: Source) -> usize {
        self.names.push(format!("{does}-{}", self.parts.len()));
        self.parts.push(load);
        self.parts.len() - 1
    }

    /// Has the load that pings do so through `port`.
    pub(crate) fn connect(&mut self, pinged: &Pinged, port: Port) {
        self.parts[pinged.part] = pinged.pings.through(port);
    }

    /// That they ask for more than `machine` has, in words, if they do: what comes at a rate of its
    /// own is never done then, and waits grow for as long as it comes.
    pub(crate) fn overload(&self, machine: &Machine) -> Option<String> {
        let asked: f64 = self.parts.iter().map(|part| part.utilisation(self.cpus)).sum();
        let speeds = machine.cpu_ids().map(|cpu| f64::from(machine.cpu(cpu).capacity) / 1024.0);
        let has: f64 = speeds.sum();
        // Sums of fractions that are meant to fill the machine may be off by rounding.
        (asked > has * (1.0 + 1e-9)).then(|| {
            // Rates may be absurd.
            let shown = |number: f64| match number < 1e6 {
                true => format!("{number:.2}"),
                false => format!("{number:.0e}"),
            };
            format!(
                "overload: the workloads ask for {} CPUs and there {} {has}: waiting times grow \
                 for as long as work comes (utilisation {})",
                shown(asked),
                if has == 1.0 { "is" } else { "are" },
                shown(asked / has)
            )
        })
    }

    /// What they need from a host, together.
    pub(crate) fn needs(&self) -> Needs {
        self.parts.iter().map(Source::needs).fold(Needs::NOTHING, Needs::or)
    }

    /// Checks that tasks can do on `host` what they need.
    ///
    /// Errors: names the first load whose tasks cannot.
    pub(crate) fn require(&self, host: &HostInfo) -> Result<(), HostError> {
        for (part, words) in self.parts.iter().zip(&self.words) {
            let required = host.require_tasks(part.needs());
            required.map_err(|why| HostError(format!("workload \"{words}\": {why}")))?;
        }
        Ok(())
    }

    /// The load as the run with this seed has it.
    ///
    /// Errors: one of the loads is refused after all.
    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Load>, String> {
        self.build_with_channels(seed).map(|(load, _)| load)
    }

    /// The same, and what is added to the numbers of the channels of each of the loads.
    ///
    /// Errors: as [`Loads::build`].
    pub(crate) fn build_with_channels(
        &self,
        seed: u64,
    ) -> Result<(Box<dyn Load>, Vec<u32>), String> {
        let build = |(number, part): (usize, &Source)| {
            part.build(rng::derive(seed, &format!("workload.{number}")), self.cpus)
        };
        let mut loads: Vec<Box<dyn Load>> =
            self.parts.iter().enumerate().map(build).collect::<Result<_, _>>()?;
        if loads.len() == 1 {
            return Ok((loads.remove(0), vec![0]));
        }
        let mix = Mix::new(loads);
        let channels = mix.first_channels();
        Ok((Box::new(mix), channels))
    }
}

/// `batch: tasks 500, service exp(10ms)`.
fn in_words(node: &Node) -> String {
    let entries = node.as_table().map_or(&[][..], |table| &table.0);
    let word = |value: &Node| match &value.value {
        Value::Text(text) => text.clone(),
        _ => value.to_string(),
    };
    let kind = entries.iter().find(|entry| entry.key == "kind");
    let others: Vec<String> = entries
        .iter()
        .filter(|entry| entry.key != "kind")
        .map(|entry| format!("{} {}", entry.key, word(&entry.node)))
        .collect();
    format!("{}: {}", kind.map_or(String::new(), |kind| word(&kind.node)), others.join(", "))
}
