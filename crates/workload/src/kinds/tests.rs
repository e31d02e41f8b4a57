//! What every kind of load must satisfy.

use super::{Fallback, Files, Given, KINDS, KeyInfo, KeyType, KindInfo, LoadSpec, Needs};
use super::{Place, ReadFile, Refusal, Source, Table, kind, read};
use crate::dist::Dist;
use crate::import::{IMPORTERS, Imported, ImporterInfo, samples};
use crate::model::{Model, ModelTask, Script};
use crate::play::play;
use crate::tasks_csv::TaskList;
use crate::{Channel, Lock, Op};
use anysched_core::{Span, Time};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

/// A load as keys and values written the way [`KeyType::literal`] reads them.
#[derive(Clone)]
struct Written {
    kind: &'static KindInfo,
    values: Vec<(&'static str, &'static str)>,
}

impl Table for Written {
    fn keys(&self) -> Vec<&str> {
        ["kind"].into_iter().chain(self.values.iter().map(|(key, _)| *key)).collect()
    }

    fn get(&self, key: &str) -> Option<Given<'_>> {
        if key == "kind" {
            return Some(Given::Text(self.kind.name));
        }
        let (_, text) = self.values.iter().find(|(known, _)| *known == key)?;
        let info = self.kind.keys().find(|info| info.name == key);
        Some(info.map_or(Given::Text(text), |info| info.takes.literal(text)))
    }
}

impl Written {
    /// The examples of its required keys.
    fn least(kind: &'static KindInfo) -> Written {
        let needed = kind.keys().filter(|key| key.default == Fallback::Needed);
        Written { kind, values: needed.map(|key| (key.name, key.example)).collect() }
    }

    fn with(&self, key: &'static str, value: &'static str) -> Written {
        let mut with = self.clone();
        with.values.retain(|(known, _)| *known != key);
        with.values.push((key, value));
        with
    }

    /// Key sets from which every kind can be read: the minimum, or one more key where a kind needs
    /// any of several.
    fn enough(kind: &'static KindInfo) -> Written {
        let least = Written::least(kind);
        let more = kind.own.iter().map(|key| least.with(key.name, key.example));
        let mut all = [least.clone()].into_iter().chain(more);
        all.find(|written| written.read().is_ok()).unwrap_or(least)
    }

    fn read(&self) -> Result<LoadSpec, Refusal> {
        read(self, 4, &mut Folder)
    }

    fn source(&self) -> Source {
        self.read().unwrap_or_else(|why| panic!("{}: {why}", self.kind.name)).source
    }
}

/// A folder in which every file is an empty list of tasks.
struct Folder;

impl Files for Folder {
    fn dist(&mut self, text: &str) -> Result<Dist, Refusal> {
        let dist = Dist::parse(text, ".".as_ref());
        dist.map_err(|error| Refusal::new(Place::Table, error.to_string()))
    }

    fn import(&mut self, name: &str, _: &str, _: &ReadFile<'_>) -> Result<Source, Refusal> {
        assert!(!name.is_empty());
        Ok(Source::Tasks(Arc::new(TaskList::default())))
    }

    fn warn(&mut self, warning: String) {
        panic!("{warning}");
    }
}

#[test]
fn names_are_different_and_found_however_they_are_written() {
    let mut names = BTreeSet::new();
    for info in KINDS {
        for name in [info.name].into_iter().chain(info.aliases.iter().copied()) {
            assert!(names.insert(name), "{name}");
            let written = format!(" {} ", name.to_uppercase().replace('-', "_"));
            assert_eq!(kind(&written).map(|found| found.name), Some(info.name));
        }
    }
    assert!(kind("bach").is_none());
}

#[test]
fn every_kind_and_key_is_described() {
    for kind in KINDS {
        assert!(!kind.summary.is_empty() && !kind.summary.ends_with('.'), "{}", kind.name);
        let mut names = BTreeSet::new();
        for KeyInfo { name, help, example, .. } in kind.keys() {
            let place = format!("{}.{name}", kind.name);
            assert!(names.insert(*name) && *name != "kind", "{place}");
            assert!(help.ends_with('.') && !help.contains('\n'), "{place}: {help}");
            assert!(help.starts_with(char::is_uppercase), "{place}: {help}");
            assert!(!example.is_empty(), "{place}");
        }
    }
}

/// Keys of kinds that are of no use without another one.
const NEEDS: [(&str, &str, &str); 2] =
    [("ping", "forward", "via"), ("arceos-test", "runs", "every")];

#[test]
fn examples_are_accepted_and_defaults_change_nothing() {
    for kind in KINDS {
        let (least, enough) = (Written::least(kind), Written::enough(kind));
        for key in kind.keys() {
            let needed =
                kind.keys().find(|other| NEEDS.contains(&(kind.name, key.name, other.name)));
            let [least, enough] = [&least, &enough]
                .map(|given| needed.map_or(given.clone(), |by| given.with(by.name, by.example)));
            let tried = [&least, &enough].map(|given| given.with(key.name, key.example).read());
            assert!(tried.iter().any(Result::is_ok), "{}.{}: {tried:?}", kind.name, key.name);
            let Fallback::Value(text) = key.default else { continue };
            let load = |given: Written| given.read().unwrap();
            let without = format!("{:?}", load(enough.clone()));
            let given = format!("{:?}", load(enough.with(key.name, text)));
            assert_eq!(given, without, "{}.{}", kind.name, key.name);
            let example = load(enough.with(key.name, key.example));
            // An empty file does not show how files are read, nor does `custom` where it is not
            // chosen.
            let unseen = !matches!(example.source, Source::Generated(_));
            let changes = format!("{example:?}") != without || key.name.starts_with("custom_");
            assert!(unseen || changes, "{}.{} does nothing", kind.name, key.name);
        }
    }
}

#[test]
fn every_word_of_a_choice_is_accepted() {
    for kind in KINDS {
        for key in kind.keys() {
            let KeyType::Choice(words) = key.takes else { continue };
            for word in words {
                Written::enough(kind).with(key.name, word).source();
            }
        }
    }
}

#[test]
fn what_is_measured_in_kernels_goes_by_another_key() {
    let calibrated =
        |kind: &'static KindInfo| kind.keys().filter_map(move |key| Some((kind, key.calibrated?)));
    let mut found = 0;
    for (kind, by) in KINDS.iter().flat_map(calibrated) {
        let other = kind.keys().find(|key| key.name == by.by).unwrap();
        let KeyType::Choice(words) = other.takes else { panic!("{}", other.name) };
        assert!(words.iter().all(|word| by.name(word).is_some()), "{}", other.name);
        assert_eq!(by.name("no such word"), None);
        found += 1;
    }
    assert_eq!(found, 1);
}

#[test]
fn unknown_keys_and_lacking_ones_are_refused() {
    let hog = kind("hog").unwrap();
    let refusal = Written::least(hog).with("offst", "1ms").read().unwrap_err();
    assert_eq!(refusal.place, Place::Key("offst".to_string()));
    let text = "no key `offst` in a load of kind \"hog\"; did you mean `offset`?";
    assert_eq!(refusal.to_string(), text);
    let batch = Written { kind: kind("batch").unwrap(), values: vec![("tasks", "3")] };
    let refusal = batch.read().unwrap_err();
    assert_eq!(refusal.place, Place::Table);
    let text = "a load of kind \"batch\" has no `service`; for example `service = \"exp(10ms)\"`";
    assert_eq!(refusal.to_string(), text);
    let sets = Written::enough(kind("task-set").unwrap()).with("periods", "1ms, 2");
    assert_eq!(sets.read().unwrap_err().place, Place::Item("periods".to_string(), 1));
}

/// What a load turned out to need when it ran by itself for a while.
fn seen(source: &Source) -> Needs {
    let played = play(source.build(1, 4).unwrap(), Time::ZERO + Span::from_ms(300), 1);
    assert!(!played.did.is_empty());
    let tasks = played.new.iter().map(|(_, task)| Needs::of_task(task));
    let ops = played.did.iter().map(|did| Needs::of_op(&did.op));
    tasks.chain(ops).fold(Needs::NOTHING, Needs::or)
}

#[test]
fn generated_loads_need_what_they_are_seen_to_need() {
    let more = [
        ("deadline", "20ms"),
        ("locked", "1ms"),
        ("requests", "10"),
        ("threads", "2"),
        ("nice", "3"),
        ("affinity", "0"),
        ("load_nice", "4"),
    ];
    for kind in KINDS {
        let enough = Written::enough(kind);
        let has = |name: &str| kind.keys().any(|key| key.name == name);
        let more = more.iter().filter(|(key, _)| has(key));
        let more = more.map(|(key, value)| enough.with(key, value));
        let loads: Vec<Written> = [enough.clone()].into_iter().chain(more).collect();
        for load in loads {
            let source = load.source();
            if matches!(source, Source::Generated(_)) {
                // What an operation goes by is not seen of it.
                let needs = Needs { reactions: false, ..source.needs() };
                assert_eq!(seen(&source), needs, "{} {:?}", kind.name, load.values);
            }
        }
    }
    for plain in ["batch", "open", "interactive", "hog", "arceos-test"] {
        let needs = Written::enough(kind(plain).unwrap()).source().needs();
        assert_eq!(needs, Needs::NOTHING, "{plain}");
    }
}

#[test]
fn models_need_what_their_scripts_do() {
    let model = |ops: Vec<Op>| {
        let task = ModelTask { script: Arc::new(Script::once(ops)), ..ModelTask::default() };
        Model { tasks: vec![task], ..Model::default() }
    };
    let run = Op::Run(Span(1));
    assert_eq!(Needs::of_model(&model(vec![run.clone(), Op::Yield])), Needs::NOTHING);
    let needs = Needs::of_model(&model(vec![run, Op::Wait(Channel(0)), Op::Spin(Lock(0))]));
    let host = Needs { locks: true, ..Needs::NOTHING };
    assert_eq!(needs.lacking(host).collect::<Vec<_>>(), ["tasks that wake each other"]);
    assert_eq!(needs.lacking(Needs::ALL).count(), 0);
    let signals = Model { signals: vec![(Time(1), Channel(0))], ..model(Vec::new()) };
    assert!(Needs::of_model(&signals).signals_from_outside);
}

#[test]
fn every_importer_is_a_kind_and_knows_its_files() {
    let mut names = BTreeSet::new();
    let samples = samples::all();
    for importer in IMPORTERS {
        assert!(names.insert(importer.name) && !importer.endings.is_empty(), "{}", importer.name);
        let kind = kind(importer.name).unwrap();
        assert!(kind.keys().eq(importer.options()), "{}", importer.name);
        assert_eq!(kind.own[0].name, "file");
        assert!(importer.aliases.contains(&kind.name));
        assert_eq!(ImporterInfo::of(kind.name).unwrap().name, importer.name);
        for (format, sample) in &samples {
            assert_eq!((importer.begins)(sample), *format == importer.name, "{format}");
        }
        let (_, sample) = samples.iter().find(|(name, _)| *name == importer.name).unwrap();
        let read = |sample: &[u8], key, value| {
            let mut values = vec![("file", "x"), (key, value)];
            let usage: Vec<&str> = importer.usage.split_ascii_whitespace().collect();
            for pair in usage.chunks(2) {
                let key = pair[0].strip_prefix("--").unwrap();
                let option = importer.options().find(|option| option.name == key).unwrap();
                values.push((key, option.example));
            }
            let options = Written { kind, values };
            (importer.read)(&mut Cursor::new(sample), "x", &Options(options)).map_err(|e| e.of("x"))
        };
        for option in importer.options() {
            let tasks = match read(sample, option.name, option.example) {
                Ok(Imported::Tasks(tasks)) => tasks.rows().len(),
                Ok(Imported::Model(model)) => model.tasks.len(),
                Err(error) => panic!("{} {}: {error}", importer.name, option.name),
            };
            assert!(tasks > 0, "{}", importer.name);
        }
        let refused = read(sample, "softirqz", "task").unwrap_err();
        assert!(refused.starts_with("no key `softirqz` in a file of format"), "{refused}");
        let refused = read(b"?\n", "file", "x").unwrap_err();
        assert!(refused.starts_with("x:"), "{refused}");
        // A file of another format is named, and the command for it.
        let others = samples.iter().filter(|(format, _)| *format != importer.name);
        // Lists of tasks are tables, too.
        for (format, sample) in others.filter(|other| (importer.name, other.0) != ("csv", "tasks"))
        {
            let refused = read(sample, "file", "x").unwrap_err();
            let command = format!("`anysched import {format} FILE");
            assert!(refused.contains(&command), "{}, {format}: {refused}", importer.name);
        }
        let refused = read(b"anysched\x01\x02", "file", "x").unwrap_err();
        assert!(refused.ends_with("replay it: `anysched replay FILE`"), "{refused}");
    }
}

/// Without `kind`.
struct Options(Written);

impl Table for Options {
    fn keys(&self) -> Vec<&str> {
        self.0.values.iter().map(|(key, _)| *key).collect()
    }

    fn get(&self, key: &str) -> Option<Given<'_>> {
        self.0.get(key)
    }
}
