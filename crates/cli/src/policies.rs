//! The list of policies, and the explanation of one, from the registry.

use crate::args::{ListFormat, PoliciesArgs};
use crate::output::{self, Failure};
use anysched_core::registry::PolicyInfo;
use anysched_lab::described;
use anysched_lab::output::align;
use anysched_policies::POLICIES;
use serde_json::Value;
use std::fmt::Write;

pub fn policies(args: &PoliciesArgs) -> Result<(), Failure> {
    let wanted = |policy: &&PolicyInfo| args.name.as_deref().is_none_or(|name| name == policy.name);
    let chosen: Vec<&PolicyInfo> = POLICIES.iter().filter(wanted).collect();
    if args.pages.is_some() && args.format != ListFormat::Markdown {
        return Err(Failure::from("--pages: only Markdown has links; add --format markdown"));
    }
    let text = match (args.format, args.name.is_some()) {
        (ListFormat::Json, _) => {
            let list: Vec<Value> = chosen.into_iter().map(described::policy).collect();
            format!("{:#}\n", Value::Array(list))
        }
        (ListFormat::Markdown, false) => markdown(&chosen, args.pages.as_deref()),
        (ListFormat::Markdown, true) => chosen.into_iter().map(page).collect(),
        (ListFormat::Table, true) => chosen.into_iter().map(explain).collect(),
        (ListFormat::Table, false) => list(&chosen),
    };
    output::print(&text)
}

/// Knowledge that a policy needs and that no kernel has when a load first runs: a mark, and words.
fn needs(policy: &PolicyInfo) -> Option<(&'static str, &'static str)> {
    let rehearsed = (policy.nature)(&[]).is_ok_and(|nature| nature.rehearsed);
    match (policy.clairvoyant, rehearsed) {
        (true, _) => Some(ORACLE),
        (false, true) => Some(REHEARSAL),
        (false, false) => None,
    }
}

const ORACLE: (&str, &str) = ("*", "needs to know how long tasks will run, which no kernel does");
const REHEARSAL: (&str, &str) = ("†", "needs a rehearsal: an earlier run of the same load");

fn mark(policy: &PolicyInfo) -> &'static str {
    needs(policy).map_or("", |(mark, _)| mark)
}

/// The marks of these policies, with their meanings.
fn marks(policies: &[&PolicyInfo]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let used = |known: &(&str, &str)| policies.iter().any(|policy| needs(policy) == Some(*known));
    [ORACLE, REHEARSAL].into_iter().filter(used)
}

fn list(policies: &[&PolicyInfo]) -> String {
    let name = |policy: &PolicyInfo| format!("{}{}", policy.name, mark(policy));
    let lines = policies.iter().map(|policy| [name(policy), policy.summary.to_string()]);
    let mut text = align::rows(&lines.collect::<Vec<_>>(), 2);
    for (number, (mark, words)) in marks(policies).enumerate() {
        let _ = writeln!(text, "{}{mark} {words}", if number == 0 { "\n" } else { "" });
    }
    text
}

fn explain(policy: &PolicyInfo) -> String {
    let mut text = format!("{}: {}\n", policy.name, policy.summary);
    let _ = writeln!(text, "source: {}", policy.source);
    if let Some((_, words)) = needs(policy) {
        let _ = writeln!(text, "{words}");
    }
    text.push_str("\nparameters:\n");
    for param in (policy.params)() {
        let _ = writeln!(text, "  {} = \"{}\"  ({})", param.name, param.default, param.kind);
        let _ = writeln!(text, "      {}", param.doc.replace('\n', " "));
    }
    text
}

fn markdown(policies: &[&PolicyInfo], pages: Option<&str>) -> String {
    let mut text = "| policy | what it does | source |\n|---|---|---|\n".to_owned();
    for policy in policies {
        let PolicyInfo { name, summary, source, .. } = policy;
        let shown = match pages {
            Some(folder) => format!("[`{name}`]({folder}/{name}.md)"),
            None => format!("`{name}`"),
        };
        let mark = mark(policy).replace('*', "\\*");
        let _ = writeln!(text, "| {shown}{mark} | {summary} | {source} |");
    }
    for (mark, words) in marks(policies) {
        let _ = writeln!(text, "\n{} {words}", mark.replace('*', "\\*"));
    }
    text
}

fn page(policy: &PolicyInfo) -> String {
    let mut text = "| parameter | default | values | meaning |\n|---|---|---|---|\n".to_owned();
    for param in (policy.params)() {
        let kind = param.kind.replace('|', "\\|");
        let doc = param.doc.replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | `{}` | {kind} | {doc} |", param.name, param.default);
    }
    text
}
