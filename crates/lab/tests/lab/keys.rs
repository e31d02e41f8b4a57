//! The examples of the reference of keys: each is of an experiment that runs.

use crate::support::{self, SIMULATED};
use anysched_lab::keys::{Key, SECTIONS, Section, Takes};
use anysched_lab::{Experiment, Results, output};
use anysched_workload::kinds::{Fallback, Given, KINDS};
use std::path::Path;
use toml::{Table, Value};

/// Small, with something of everything.
const BASE: &str = r#"
question = "?"
policy = ["rr", "fcfs"]
[machine]
cpus = 4
[[workload]]
kind = "batch"
tasks = 3
service = "1ms"
"#;

/// What else an experiment needs for a key of a section to mean something.
fn needed(section: &Section, key: &Key) -> &'static str {
    match (section.path, key.name) {
        ("machine.hotplug", _) => "[[machine.hotplug]]\nat = \"1s\"\ncpu = 1\nonline = true",
        ("vm", _) | ("report", "vms") => {
            "[[vm]]\nname = \"web\"\n[[vm.workload]]\nkind = \"batch\"\ntasks = 1\nservice = \"1ms\""
        }
        ("scenario", _) => "[[scenario]]\nname = \"a\"",
        ("policy", _) => "policy = { name = \"gfs\", label = \"one\" }",
        ("claim", "size" | "size_verdict") => {
            "[[claim]]\nid = \"1\"\ntext = \"?\"\nexpect = \"1 < 2\"\nmeasure = \"5\"\nsize = [1, 9]"
        }
        ("claim", "where") => {
            "sweep = { \"machine.cpus\" = [2, 4] }\n[[claim]]\nid = \"1\"\ntext = \"?\"\nexpect = \"1 < 2\""
        }
        ("claim", "unit") => {
            "[[claim]]\nid = \"1\"\ntext = \"?\"\nexpect = \"1 < 2\"\nmeasure = \"5\""
        }
        ("claim", _) => "[[claim]]\nid = \"1\"\ntext = \"?\"\nexpect = \"1 < 2\"",
        _ => "",
    }
}

/// `other` over `base`, table by table; of lists of tables, the first ones.
fn merge(base: &mut Table, other: Table) {
    for (key, value) in other {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(other)) => merge(base, other),
            (Some(Value::Array(base)), Value::Array(mut other))
                if base.first().is_some_and(Value::is_table)
                    && other.first().is_some_and(Value::is_table) =>
            {
                let (Some(Value::Table(base)), Value::Table(other)) =
                    (base.first_mut(), other.remove(0))
                else {
                    unreachable!("both are tables")
                };
                merge(base, other);
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// The example as a part of a file: what is in a table goes there.
fn example(section: &Section, key: &Key) -> Table {
    // A list in a list begins with the outer one.
    let nested =
        section.name.starts_with("[[") && key.example.starts_with(&format!("[[{}.", section.path));
    let outer = if nested { format!("[[{}]]\n", section.path) } else { String::new() };
    let table: Table = toml::from_str(&format!("{outer}{}", key.example)).unwrap();
    if key.example.starts_with('[') || section.path.is_empty() {
        return table;
    }
    let mut parts: Vec<&str> = section.path.split('.').collect();
    let is_list = section.name.starts_with("[[");
    let last = parts.pop().unwrap();
    let inner = if is_list { Value::Array(vec![table.into()]) } else { table.into() };
    let mut whole = Table::from_iter([(last.to_string(), inner)]);
    for part in parts.into_iter().rev() {
        whole = Table::from_iter([(part.to_string(), whole.into())]);
    }
    whole
}

fn experiment(section: &Section, key: &Key) -> String {
    let mut whole: Table = toml::from_str(BASE).unwrap();
    merge(&mut whole, toml::from_str(needed(section, key)).unwrap());
    let machine = whole.get_mut("machine").and_then(Value::as_table_mut).unwrap();
    if section.path == "machine" && key.name == "topology" {
        machine.remove("cpus");
    }
    let sweeps_policies = section.path == "sweep" && key.name == "policy" || key.name == "sweep";
    if sweeps_policies {
        whole.remove("policy");
    }
    if section.path == "vm" && key.name == "machine" {
        let vm = whole["vm"].as_array_mut().unwrap()[0].as_table_mut().unwrap();
        vm.remove("vcpus");
    }
    merge(&mut whole, example(section, key));
    whole.entry("duration").or_insert(Value::from("2s"));
    toml::to_string(&whole).unwrap()
}

fn run(experiment: Experiment) -> Results {
    support::plan(&experiment).run(&SIMULATED).unwrap()
}

#[test]
fn every_example_runs() {
    for section in SECTIONS {
        for key in section.keys {
            // What only hosts with schedulers of their own have.
            if key.name == "of_host" {
                continue;
            }
            let text = experiment(section, key);
            let read = Experiment::parse(&text, Path::new("x.toml"));
            let read = read.unwrap_or_else(|e| panic!("{}: {}\n{text}", key.name, e.to_plain()));
            let results = run(read);
            assert!(results.complete, "{}", key.name);
        }
    }
}

/// A default that is written out changes nothing.
#[test]
fn defaults_are_what_applies_without_a_key() {
    let mut seen = 0;
    for section in SECTIONS.iter().filter(|section| section.path != "claim") {
        for key in section.keys {
            let anysched_lab::keys::Default::Value(default) = key.default else { continue };
            seen += 1;
            let mut key_alone = Table::new();
            let value: Table = toml::from_str(&format!("x = {default}")).unwrap();
            key_alone.insert(key.name.to_string(), value["x"].clone());
            let stated = Key {
                example: Box::leak(toml::to_string(&key_alone).unwrap().into_boxed_str()),
                takes: Takes::Texts,
                ..*key
            };
            let rows = |key: &Key| {
                let text = experiment(section, key);
                let read = Experiment::parse(&text, Path::new("x.toml")).unwrap();
                let csv = output::csv(&run(read));
                // All but the hash of the file.
                let cut = |line: &str| line.splitn(3, ',').nth(2).unwrap_or_default().to_string();
                csv.lines().map(cut).collect::<Vec<_>>()
            };
            let nothing = Key { example: "", ..*key };
            assert_eq!(rows(&stated), rows(&nothing), "{} {}", section.name, key.name);
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Values of every kind that TOML has, none of which many keys take.
const WRONG: [&str; 8] = [
    "true",
    "-7",
    "1e300",
    "\"no such thing\"",
    "\"\"",
    "[[1]]",
    "{ nothing = 1 }",
    "1979-05-27T07:32:00Z",
];

/// The text with the value of the key exchanged, or nothing if the example does not have it.
fn with_value(text: &str, section: &Section, key: &Key, value: &str) -> Option<String> {
    let mut whole: Table = toml::from_str(text).unwrap();
    let mut place = &mut whole;
    for part in section.path.split('.').filter(|part| !part.is_empty()) {
        place = match place.get_mut(part)? {
            Value::Table(table) => table,
            Value::Array(tables) => tables.first_mut()?.as_table_mut()?,
            _ => return None,
        };
    }
    let wrong: Table = toml::from_str(&format!("x = {value}")).unwrap();
    *place.get_mut(key.name)? = wrong["x"].clone();
    Some(toml::to_string(&whole).unwrap())
}

/// What is refused, and what of it with a message that does not help.
#[derive(Default)]
struct Refusals {
    refused: usize,
    unhelpful: Vec<String>,
}

impl Refusals {
    /// Reads an experiment whose `key` is wrong. Its place is a line with one of these words.
    fn add(&mut self, text: &str, place: &[&str], key: &str, value: &str) {
        const REMEDIES: [&str; 9] = [
            "help: ",
            " there are ",
            " is a",
            " is one ",
            " is true or false, not ",
            " looks like ",
            " for example ",
            " has at least ",
            "expected ",
        ];
        let read = Experiment::parse(text, Path::new("x.toml"));
        let Err(error) = read.and_then(|experiment| experiment.plan()) else { return };
        self.refused += 1;
        let message = error.to_snippet(false);
        let places = message.split("x.toml:").skip(1);
        let lines = places.filter_map(|place| place.split(':').next()?.parse::<usize>().ok());
        let mut shown = lines.filter_map(|line| text.lines().nth(line - 1));
        let is_shown = shown.any(|line| place.iter().any(|word| line.contains(word)));
        if !is_shown || !REMEDIES.iter().any(|remedy| message.contains(remedy)) {
            self.unhelpful.push(format!("{key} = {value}\n{message}"));
        }
    }

    #[track_caller]
    fn assert_helpful(&self, at_least: usize) {
        let (all, unhelpful) = (self.refused, &self.unhelpful);
        assert!(unhelpful.is_empty(), "{} of {all}:\n{}", unhelpful.len(), unhelpful.join("\n\n"));
        assert!(all > at_least, "{all}");
    }
}

#[test]
fn wrong_values_are_refused_at_their_place_with_a_remedy() {
    let mut refusals = Refusals::default();
    for section in SECTIONS {
        let header = format!("[{}", section.path);
        for key in section.keys.iter().filter(|key| key.name != "of_host") {
            let text = experiment(section, key);
            for value in WRONG {
                if let Some(text) = with_value(&text, section, key, value) {
                    let place = [key.name, "nothing", header.as_str()];
                    refusals.add(&text, &place, key.name, value);
                }
            }
        }
    }
    refusals.assert_helpful(600);
}

fn as_toml(value: Given<'_>) -> Value {
    match value {
        Given::Text(text) => text.into(),
        Given::Whole(number) => number.into(),
        Given::Real(number) => number.into(),
        Given::Flag(flag) => flag.into(),
        Given::List(list) => Value::Array(list.into_iter().map(as_toml).collect()),
        Given::Table => Table::new().into(),
    }
}

#[test]
fn wrong_values_of_loads_are_refused_at_their_place_with_a_remedy() {
    let mut refusals = Refusals::default();
    for kind in KINDS {
        for key in kind.keys() {
            let needed = kind.keys().filter(|other| other.default == Fallback::Needed);
            let mut load = Table::from_iter([("kind".to_string(), Value::from(kind.name))]);
            for other in needed {
                load.insert(other.name.to_string(), as_toml(other.takes.literal(other.example)));
            }
            let mut whole: Table = toml::from_str(BASE).unwrap();
            whole.insert("duration".to_string(), Value::from("2s"));
            for value in WRONG {
                let wrong: Table = toml::from_str(&format!("x = {value}")).unwrap();
                load.insert(key.name.to_string(), wrong["x"].clone());
                whole.insert("workload".to_string(), Value::Array(vec![load.clone().into()]));
                let text = toml::to_string(&whole).unwrap();
                // Or at what else these few keys need: an interval, a file, a machine to ping.
                let place = [key.name, "[[workload]]", "file = ", "to = "];
                refusals.add(&text, &place, key.name, value);
            }
            load.remove(key.name);
            let misspelt = format!("{}-x", key.name);
            load.insert(misspelt.clone(), Value::from(1));
            whole.insert("workload".to_string(), Value::Array(vec![load.clone().into()]));
            let text = toml::to_string(&whole).unwrap();
            refusals.add(&text, &[&misspelt], &misspelt, "1");
        }
    }
    refusals.assert_helpful(600);
}
