//! `anysched workloads`: what an experiment can be given to run.

use crate::args::{ListFormat, WorkloadsArgs};
use crate::output::{self, Failure};
use anysched_workload::kinds::{Calibrated, Fallback, KINDS, KeyInfo, KindInfo, kind};
use serde_json::{Value, json};
use std::fmt::Write;

pub fn workloads(args: &WorkloadsArgs) -> Result<(), Failure> {
    let chosen = args.kind.as_deref().and_then(kind);
    let text = match (args.format, chosen) {
        (ListFormat::Json, Some(kind)) => format!("{:#}\n", describe(kind)),
        (ListFormat::Json, None) => {
            format!("{:#}\n", Value::Array(KINDS.iter().map(describe).collect()))
        }
        (ListFormat::Markdown, Some(kind)) => page(kind),
        (ListFormat::Markdown, None) => markdown(),
        (ListFormat::Table, Some(kind)) => explain(kind),
        (ListFormat::Table, None) => list(),
    };
    output::print(&text)
}

/// The widest line that is printed.
const WIDTH: usize = 100;

fn list() -> String {
    let mut text = String::new();
    for kind in KINDS {
        let _ = writeln!(text, "{:12}  {}", kind.name, kind.summary);
        let keys: Vec<&str> = kind.keys().map(|key| key.name).collect();
        for line in wrap(&keys, ", ", 64) {
            let _ = writeln!(text, "{:14}{line}", "");
        }
    }
    text.push_str("\ndistributions, wherever a time is drawn (service, run, sleep, think, …):\n");
    for example in DISTRIBUTIONS {
        let _ = writeln!(text, "  {example}");
    }
    text
}

/// One of each that [`Dist::parse`](anysched_workload::dist::Dist::parse) knows.
const DISTRIBUTIONS: [&str; 8] = [
    "10ms",
    "uniform(1ms, 5ms)",
    "exp(10ms)",
    "lognormal(10ms, 1.0)",
    "pareto(1.5, 1ms, 10s)",
    "hyperexp(0.9: 1ms, 0.1: 50ms)",
    "hyperexp(10ms, cv2=4)",
    "empirical(file.csv)",
];

fn explain(kind: &KindInfo) -> String {
    let mut text = format!("{}: {}\n", kind.name, kind.summary);
    if !kind.aliases.is_empty() {
        let _ = writeln!(text, "also called {}", kind.aliases.join(", "));
    }
    let head = ["key", "type", "default"].map(str::to_string);
    let cells = |key: &KeyInfo| {
        let or = if matches!(key.default, Fallback::Or(_)) { "or " } else { "" };
        [key.name.to_string(), key.values(), format!("{or}{}", key.without())]
    };
    let rows: Vec<[String; 3]> = kind.keys().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    // A longer type only moves the default of its own row.
    let (first, second) = (width(0), width(1).min(28));
    let line = |[name, values, default]: &[String; 3]| {
        format!("{name:first$}  {values:second$}  {default}").trim_end().to_owned()
    };
    let _ = writeln!(text, "\n{}", line(&head));
    for (row, key) in rows.iter().zip(kind.keys()) {
        let _ = writeln!(text, "{}", line(row));
        let words: Vec<&str> = key.help.split_whitespace().collect();
        for line in wrap(&words, " ", WIDTH - 4) {
            let _ = writeln!(text, "    {line}");
        }
    }
    let _ = write!(text, "\nfor example:\n\n{}", example(kind));
    text
}

/// The least that an experiment file needs for a load of a kind.
fn example(kind: &KindInfo) -> String {
    let mut text = format!("[[workload]]\nkind = \"{}\"\n", kind.name);
    let mut one_of_several = false;
    for key in kind.keys() {
        let first = matches!(key.default, Fallback::Or(_)) && !one_of_several;
        if first || key.default == Fallback::Needed {
            let _ = writeln!(text, "{}", key.line());
        }
        one_of_several |= first;
    }
    text
}

fn markdown() -> String {
    let mut text = "| kind | what it is | its own keys |\n|---|---|---|\n".to_owned();
    for kind in KINDS {
        let keys: Vec<String> = kind.own.iter().map(|key| format!("`{}`", key.name)).collect();
        let _ = writeln!(text, "| `{}` | {} | {} |", kind.name, kind.summary, keys.join(", "));
    }
    text
}

fn page(kind: &KindInfo) -> String {
    let mut text = "| key | type | default | what it does |\n|---|---|---|---|\n".to_owned();
    for key in kind.keys() {
        let default = match key.default {
            Fallback::Value(text) => format!("`{text}`"),
            Fallback::Or(keys) => format!("or {keys}"),
            Fallback::Needed | Fallback::Words(_) => key.without().to_owned(),
        };
        let (values, help) = (key.values().replace('|', "\\|"), key.help.replace('|', "\\|"));
        let _ = writeln!(text, "| `{}` | {values} | {default} | {help} |", key.name);
    }
    text
}

fn describe(kind: &KindInfo) -> Value {
    let keys: Vec<Value> = kind.keys().map(describe_key).collect();
    json!({
        "name": kind.name,
        "aliases": kind.aliases,
        "summary": kind.summary,
        "keys": keys,
    })
}

fn describe_key(key: &KeyInfo) -> Value {
    let (default, otherwise) = match key.default {
        Fallback::Needed => (None, None),
        Fallback::Value(text) => (Some(text), None),
        Fallback::Words(words) | Fallback::Or(words) => (None, Some(words)),
    };
    json!({
        "name": key.name,
        "type": key.takes.to_string(),
        "unit": key.unit,
        "needed": key.default == Fallback::Needed,
        "default": default,
        "otherwise": otherwise,
        "example": key.example,
        "help": key.help,
        "calibrated_by": key.calibrated.map(|Calibrated { by, .. }| by),
    })
}

/// Words in lines of at most `width` characters, with `between` between them; at the end of a line
/// without its space.
fn wrap(words: &[&str], between: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let length = |line: &str| line.chars().count();
        match lines.last_mut() {
            Some(line) if length(line) + between.len() + length(word) <= width => {
                line.push_str(between);
                line.push_str(word);
            }
            last => {
                if let Some(line) = last {
                    line.push_str(between.trim_end());
                }
                lines.push((*word).to_owned());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_workload::dist::Dist;

    #[test]
    fn lists_are_broken_after_commas() {
        assert_eq!(wrap(&["ab", "cd", "ef"], ", ", 6), ["ab, cd,", "ef"]);
        assert_eq!(wrap(&["ab", "cd", "ef"], " ", 6), ["ab cd", "ef"]);
        assert!(wrap(&[], ", ", 6).is_empty());
    }

    #[test]
    fn every_example_is_a_distribution() {
        for example in &DISTRIBUTIONS[..DISTRIBUTIONS.len() - 1] {
            assert!(Dist::parse(example, ".".as_ref()).is_ok(), "{example}");
        }
    }

    #[test]
    fn a_kind_is_explained_key_by_key() {
        let text = explain(kind("hog").unwrap());
        let rows = ["key        type  ", "check      time  ", "    CPU time between two looks"];
        for row in rows {
            assert!(text.lines().any(|line| line.starts_with(row)), "{row}: {text}");
        }
        assert!(text.ends_with("for example:\n\n[[workload]]\nkind = \"hog\"\n"), "{text}");
        for kind in KINDS {
            let text = explain(kind);
            let fits = |line: &str| line.chars().count() <= WIDTH && line.trim_end() == line;
            assert!(text.lines().all(fits), "{text}");
        }
    }
}
