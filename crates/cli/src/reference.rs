//! `anysched metrics`, `explain` and `schema`: what experiments and results may have, from the
//! tables by which they are read and written.

use crate::args::{ExplainArgs, ListFormat, MetricsArgs};
use crate::output::{self, Failure};
use anysched_core::params::ParamInfo;
use anysched_lab::keys::{Key, SECTIONS, Section};
use anysched_lab::output::{OUTPUTS, OutputField};
use anysched_lab::{Stat, column};
use anysched_measure::{Kind, MetricInfo, metric_infos};
use anysched_policies::POLICIES;
use anysched_workload::kinds::{KINDS, KeyInfo, hint};
use serde_json::{Value, json};
use std::fmt::Write;

pub fn metrics(args: &MetricsArgs) -> Result<(), Failure> {
    let all: Vec<&MetricInfo> = metric_infos().collect();
    output::print(&match args.format {
        ListFormat::Table => metrics_text(&all),
        ListFormat::Markdown => metrics_page(&all),
        ListFormat::Json => {
            let list: Vec<Value> = all.iter().map(|info| metric_json(info)).collect();
            format!("{:#}\n", Value::Array(list))
        }
    })
}

/// What runs have of it: statistics, or a number.
fn kind(info: &MetricInfo) -> &'static str {
    match info.kind {
        Kind::Distribution => "distribution",
        Kind::Total => "total",
        Kind::Derived => "number",
    }
}

/// Its unit in words, with a comma behind it; nothing for counts and ratios.
fn unit(unit: &str) -> String {
    if unit == "1" { String::new() } else { format!("in {unit}, ") }
}

fn metrics_text(all: &[&MetricInfo]) -> String {
    let mut text = String::new();
    for info in all {
        let _ = writeln!(text, "{}: {}a {}", info.name, unit(info.unit), kind(info));
        let _ = writeln!(text, "    {}", info.what);
    }
    let stats = Stat::ALL.map(Stat::name).join(", ");
    let _ = write!(
        text,
        "\nA distribution has a column for each of {stats}: {}_p99.\n\
         Of some of the tasks: workload.NAME.COLUMN, task.NAME.COLUMN, vm.NAME.COLUMN.\n",
        all[0].name
    );
    text
}

fn metrics_page(all: &[&MetricInfo]) -> String {
    let mut text = "| metric | unit | kind | what it is |\n|---|---|---|---|\n".to_string();
    for info in all {
        let _ =
            writeln!(text, "| `{}` | {} | {} | {} |", info.name, info.unit, kind(info), info.what);
    }
    text
}

fn metric_json(info: &MetricInfo) -> Value {
    json!({ "name": info.name, "unit": info.unit, "kind": kind(info), "what": info.what })
}

pub fn schema() -> Result<(), Failure> {
    output::print(&format!("{:#}\n", anysched_lab::schema()))
}

pub fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    if args.outputs {
        return output::print(&outputs_page());
    }
    let Some(key) = &args.key else {
        return output::print(&match args.format {
            ListFormat::Table => sections_text(),
            ListFormat::Markdown => SECTIONS.iter().map(|section| section_page(section)).collect(),
            ListFormat::Json => format!("{:#}\n", sections_json()),
        });
    };
    let found = find(key);
    if found.is_empty() {
        let names: Vec<String> = all_names();
        let near = hint(key, names.iter().map(String::as_str));
        return Err(Failure::from(format!("nothing is called \"{key}\"; {near}")));
    }
    output::print(&found.join("\n"))
}

/// What `anysched explain` knows by name.
pub fn all_names() -> Vec<String> {
    let keys = SECTIONS.iter().flat_map(|section| section.names().map(String::from));
    let kinds = KINDS.iter().map(|kind| kind.name.to_string());
    let policies = POLICIES.iter().map(|policy| policy.name.to_string());
    let metrics = metric_infos().map(|info| info.name.to_string());
    keys.chain(kinds).chain(policies).chain(metrics).collect()
}

/// All that a name or a path is: keys of experiments, of loads, parameters, metrics, outputs.
fn find(name: &str) -> Vec<String> {
    let (path, last) = name.rsplit_once('.').unwrap_or(("", name));
    let parts = path.split('.').filter(|part| part.parse::<u32>().is_err());
    let path: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let path = path.join(".");
    let inside = |at: &str| path.is_empty() || at == path || at.ends_with(&format!(".{path}"));
    let mut found = Vec::new();
    for section in SECTIONS.iter().filter(|section| inside(section.path)) {
        found.extend(section.key(last).map(|key| key_text(section, key)));
    }
    if let Some(kind) = KINDS.iter().find(|kind| path.is_empty() && kind.name == last) {
        let (name, summary) = (kind.name, kind.summary);
        found.push(format!("load {name}: {summary}\n    anysched workloads {name}\n"));
    }
    let in_loads = path == "workload" || path.ends_with(".workload");
    let kinds = KINDS.iter().filter(|kind| in_loads || inside(kind.name));
    let keys = kinds.filter_map(|kind| {
        let key = kind.keys().find(|key| key.name == last)?;
        Some(load_key_text(kind.name, key))
    });
    // A key that many kinds share is told with the first.
    found.extend(keys.take(if path.is_empty() { 1 } else { KINDS.len() }));
    for policy in POLICIES {
        if path.is_empty() && policy.name == last {
            found.push(format!(
                "policy {}: {}\n    anysched policies {}\n",
                policy.name, policy.summary, policy.name
            ));
        }
        if inside(policy.name) {
            let params = (policy.params)();
            let param = params.iter().find(|param| param.name == last);
            found.extend(param.map(|param| param_text(policy.name, param)));
        }
    }
    if let Some(info) = metric_infos().find(|info| info.name == name) {
        found.push(format!(
            "metric {}: {}a {}\n    {}\n",
            info.name,
            unit(info.unit),
            kind(info),
            info.what
        ));
    } else if let Some(column) = column(name) {
        let stat = column.stat.map_or("", Stat::name);
        let of = column.metric;
        found.push(format!(
            "column {name}: {}{stat} of {of}\n    {}\n",
            unit(of.unit()),
            of.what()
        ));
    }
    for (form, fields) in OUTPUTS {
        let field = fields.iter().find(|field| field.name == name);
        found
            .extend(field.map(|field| format!("`{}` of {form}\n    {}\n", field.name, field.what)));
    }
    found
}

fn key_text(section: &Section, key: &Key) -> String {
    let example = key.example.replace('\n', "\n    ");
    format!(
        "`{}` of {}: {}; without it: {}\n    {}\n    {example}\n",
        key.name,
        section.name,
        key.takes,
        key.default.words(),
        key.what,
    )
}

fn load_key_text(kind: &str, key: &KeyInfo) -> String {
    let (name, values, without) = (key.name, key.values(), key.without());
    format!(
        "`{name}` of a load, {kind} for one: {values}; without it: {without}\n    {}\n    {}\n",
        key.help,
        key.line()
    )
}

fn param_text(policy: &str, param: &ParamInfo) -> String {
    let ParamInfo { name, doc, kind, default } = param;
    let doc = doc.replace('\n', " ");
    format!("`{name}` of policy {policy}: {kind}; without it: {default}\n    {doc}\n")
}

fn sections_text() -> String {
    let mut text = String::new();
    for section in SECTIONS {
        let _ = writeln!(text, "{}: {}", section.name, section.what);
        for key in section.keys {
            let _ = writeln!(text, "    {:16}{}; {}", key.name, key.takes, key.default.words());
        }
        if !section.others.is_empty() {
            let _ = writeln!(text, "    and {}", section.others);
        }
        text.push('\n');
    }
    text.push_str(
        "anysched explain KEY tells what one does; machine.tick, batch.service, rr.quantum.\n",
    );
    text
}

fn section_page(section: &Section) -> String {
    let title = if section.path.is_empty() { "The file" } else { section.name };
    let mut text = format!("## {title}\n\n{}\n\n", section.what);
    text.push_str("| key | type | without it | what it does | example |\n|---|---|---|---|---|\n");
    for key in section.keys {
        let escape = |text: String| text.replace('|', "\\|");
        let first = key.example.lines().next().unwrap_or_default();
        let (takes, what) = (escape(key.takes.to_string()), escape(key.what.to_string()));
        let without = key.default.words();
        let _ = writeln!(text, "| `{}` | {takes} | {without} | {what} | `{first}` |", key.name);
    }
    if !section.others.is_empty() {
        let _ = writeln!(text, "\nBesides, {}.", section.others);
    }
    text.push('\n');
    text
}

fn sections_json() -> Value {
    let key = |key: &Key| {
        json!({
            "name": key.name,
            "type": key.takes.to_string(),
            "without": key.default.words(),
            "what": key.what,
            "example": key.example,
        })
    };
    let section = |section: &&Section| {
        let keys: Vec<Value> = section.keys.iter().map(key).collect();
        json!({ "name": section.name, "path": section.path, "what": section.what, "keys": keys })
    };
    Value::Array(SECTIONS.iter().map(section).collect())
}

/// The columns and keys of outputs.
fn outputs_page() -> String {
    let mut text = String::new();
    for (form, fields) in OUTPUTS {
        let _ = write!(text, "## {form}\n\n| name | what it is |\n|---|---|\n");
        for OutputField { name, what } in *fields {
            let _ = writeln!(text, "| `{name}` | {what} |");
        }
        text.push('\n');
    }
    text
}
