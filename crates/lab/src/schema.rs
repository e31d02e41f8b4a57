//! The JSON Schema of experiment files, for completion and checks in editors.

use crate::spec::columns::{Column, columns};
use crate::spec::keys::{Default, Key, SECTIONS, Section, Takes, section};
use anysched_core::registry::PolicyInfo;
use anysched_measure::metric_infos;
use anysched_policies::POLICIES;
use anysched_workload::kinds::{KINDS, KeyInfo, KeyType, KindInfo};
use serde_json::{Map, Value, json};

/// The schema, of draft 2020-12. What it allows may still be refused: it knows names, types and
/// ranges, and not what goes with what.
pub fn schema() -> Value {
    let mut root = table(section_of(""));
    let defs = SECTIONS.iter().filter(|section| !section.path.is_empty()).map(|section| {
        let schema = match section.path {
            "policy" => policy_table(),
            _ => table(section),
        };
        (section.path.to_string(), schema)
    });
    let mut defs: Map<String, Value> = defs.collect();
    for (name, schema) in [
        ("load", load()),
        ("policies", policies()),
        ("policy name", json!({ "enum": names() })),
        ("time", time()),
        ("column", column()),
        ("value", json!({ "type": ["string", "number", "boolean", "array"] })),
    ] {
        defs.insert(name.to_string(), schema);
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("An experiment of anysched");
    root["$defs"] = Value::Object(defs);
    root
}

fn section_of(path: &str) -> &'static Section {
    section(path).unwrap_or(SECTIONS[0])
}

fn reference(name: &str) -> Value {
    // A pointer in the fragment of a URI.
    json!({ "$ref": format!("#/$defs/{}", name.replace(' ', "%20")) })
}

fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|policy| policy.name).collect()
}

/// A table of an experiment.
fn table(section: &Section) -> Value {
    let properties: Map<String, Value> =
        section.keys.iter().map(|key| (key.name.to_string(), property(section, key))).collect();
    let needed = |key: &&Key| key.default == Default::Needed && !is_swept(section, key);
    let needed: Vec<&str> = section.keys.iter().filter(needed).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": section.what,
        "properties": properties,
        "additionalProperties": false,
    });
    if !section.others.is_empty() {
        schema["additionalProperties"] = others(section);
    }
    if !needed.is_empty() {
        schema["required"] = json!(needed);
    }
    schema
}

/// Whether what is needed may come from elsewhere: from the sweep, or from the file for a scenario.
fn is_swept(section: &Section, key: &Key) -> bool {
    match section.path {
        "" => key.name != "question",
        path => ["machine", "scenario", "vm"].contains(&path),
    }
}

/// What a table takes besides its own keys.
fn others(section: &Section) -> Value {
    match section.path {
        // `machine.cpus = […]` without quotes is a table of tables.
        "sweep" => json!({ "type": ["array", "object"] }),
        _ => json!(true),
    }
}

fn property(section: &Section, key: &Key) -> Value {
    let mut schema = match (section.path, key.name) {
        ("report", "columns") => json!({ "type": "array", "items": reference("column") }),
        _ => takes(key.takes),
    };
    schema["description"] = json!(key.what);
    if let Default::Value(text) = key.default {
        schema["default"] = literal(text);
    }
    schema
}

/// A value as TOML writes it.
fn literal(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(json!(text))
}

fn one_or_list(item: Value) -> Value {
    json!({ "anyOf": [item.clone(), { "type": "array", "items": item }] })
}

fn takes(takes: Takes) -> Value {
    match takes {
        Takes::Value(kind) => of_type(kind),
        Takes::Between(least, most) => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Takes::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Takes::Words(words) => one_or_list(json!({ "enum": words })),
        Takes::WholeEach(least, most) => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": least, "maximum": most },
        }),
        Takes::CpusEach => one_or_list(of_type(KeyType::Cpus)),
        Takes::Range => json!({
            "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2,
        }),
        Takes::Policies => reference("policies"),
        Takes::Policy => json!({ "anyOf": [reference("policy name"), reference("policy")] }),
        Takes::Table(path) if section(path).is_none() => json!({ "type": "object" }),
        Takes::Table(path) => json!({ "allOf": [reference(path)] }),
        Takes::Tables(path) if section(path).is_none() => {
            json!({ "type": "array", "items": { "type": "object" } })
        }
        Takes::Tables(path) => json!({ "type": "array", "items": reference(path) }),
        Takes::Loads => json!({ "type": "array", "items": reference("load") }),
        Takes::Rows => json!({ "type": "object" }),
    }
}

fn of_type(kind: KeyType) -> Value {
    let whole = |least: i64, most: i64| {
        json!({
            "type": "integer", "minimum": least, "maximum": most,
        })
    };
    match kind {
        KeyType::Text | KeyType::File | KeyType::FineTime => json!({ "type": "string" }),
        KeyType::Flag => json!({ "type": "boolean" }),
        KeyType::Real => json!({ "type": "number" }),
        KeyType::Whole { least, most } => whole(least, most),
        KeyType::WholeOrList { least, most } => one_or_list(whole(least, most)),
        KeyType::Time => json!({ "anyOf": [reference("time")] }),
        KeyType::TwoTimes => json!({
            "type": "array", "items": reference("time"), "minItems": 2, "maxItems": 2,
        }),
        KeyType::Distribution => json!({ "type": ["string", "integer"] }),
        KeyType::Cpus => json!({ "type": ["string", "integer"] }),
        KeyType::Choice(words) => json!({ "enum": words }),
    }
}

/// `10ms`, `1.5us`, or a plain 0.
fn time() -> Value {
    json!({
        "anyOf": [
            { "type": "string", "pattern": r"^\s*\d[\d_]*(\.\d+)?\s*(ns|us|µs|ms|s|min|h)?\s*$" },
            { "const": 0 },
        ],
        "description": "A time: a number with ns, us, ms, s, min or h.",
    })
}

/// A load: by its kind, with that one's keys.
fn load() -> Value {
    let kinds: Vec<&str> = KINDS
        .iter()
        .flat_map(|kind| std::iter::once(kind.name).chain(kind.aliases.iter().copied()))
        .collect();
    let by_kind: Vec<Value> = KINDS.iter().map(of_kind).collect();
    json!({
        "type": "object",
        "properties": { "kind": { "enum": kinds, "description": "Which kind of load." } },
        "allOf": by_kind,
    })
}

fn of_kind(kind: &KindInfo) -> Value {
    let mut properties: Map<String, Value> =
        kind.keys().map(|key| (key.name.to_string(), of_key(key))).collect();
    let name = json!({ "type": "string", "description": "What rows and claims call the load." });
    properties.entry("name").or_insert(name);
    properties.insert("kind".to_string(), json!({ "description": kind.summary }));
    let called: Vec<&str> =
        std::iter::once(kind.name).chain(kind.aliases.iter().copied()).collect();
    json!({
        "if": { "properties": { "kind": { "enum": called } }, "required": ["kind"] },
        "then": { "properties": properties, "additionalProperties": false },
    })
}

fn of_key(key: &KeyInfo) -> Value {
    let mut schema = of_type(key.takes);
    let unit = if key.unit.is_empty() { String::new() } else { format!(" In {}.", key.unit) };
    schema["description"] = json!(format!("{}{unit} Without it: {}.", key.help, key.without()));
    schema
}

fn policies() -> Value {
    let one = json!({ "anyOf": [reference("policy name"), reference("policy")] });
    json!({
        "anyOf": [
            { "const": "all", "description": "All registered policies." },
            reference("policy name"),
            reference("policy"),
            { "type": "array", "items": one },
        ],
    })
}

/// A policy with parameters.
fn policy_table() -> Value {
    let section = section_of("policy");
    let own: Map<String, Value> =
        section.keys.iter().map(|key| (key.name.to_string(), property(section, key))).collect();
    let of_policy = |policy: &PolicyInfo| {
        let mut properties = own.clone();
        properties.insert("name".to_string(), json!({ "description": policy.summary }));
        for param in (policy.params)() {
            let mut schema = json!({ "type": ["string", "number", "boolean", "array"] });
            let what = param.doc.replace('\n', " ");
            schema["description"] = json!(format!("{what} ({})", param.kind));
            schema["default"] = json!(param.default);
            properties.insert(param.name.to_string(), schema);
        }
        json!({
            "if": { "properties": { "name": { "const": policy.name } }, "required": ["name"] },
            "then": { "properties": properties, "additionalProperties": false },
        })
    };
    json!({
        "type": "object",
        "description": section.what,
        "properties": { "name": { "enum": names() } },
        "required": ["name"],
        "allOf": POLICIES.iter().map(of_policy).collect::<Vec<_>>(),
    })
}

/// A column: those of every run by name, others by what they begin with.
fn column() -> Value {
    let general: Vec<String> = columns().iter().map(Column::to_string).collect();
    let others =
        metric_infos().filter(|info| !general.iter().any(|name| name.starts_with(info.name)));
    let stems: Vec<String> =
        others.map(|info| info.name.split('N').next().unwrap_or_default().to_string()).collect();
    json!({
        "anyOf": [
            { "enum": general },
            { "type": "string", "pattern": format!("^({})", stems.join("|").replace('.', "\\.")) },
            { "type": "string", "pattern": r"^(workload|task|vm)\." },
        ],
    })
}
