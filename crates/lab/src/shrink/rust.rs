//! What was found, as tests in Rust that fail for as long as it does.

use crate::shrink::calls::{LogFails, Sequence, ShortLog};
use crate::shrink::{Fails, Shrunk};
use anysched_core::call::Call;
use anysched_core::machine::Cpu;
use anysched_core::{Arrival, CpuSet, Enqueue, Machine, Span, TaskParams};
use std::fmt::Write;

impl Shrunk {
    /// A test in Rust that fails for as long as the experiment does.
    pub fn test(&self, fails: &Fails) -> String {
        let attached = self.model.as_ref().map_or(String::new(), |(name, text)| {
            format!("\n        .with_file({name:?}, {}.as_bytes())", raw(text))
        });
        format!(
            "//! Found by `anysched shrink`: {what}\n\n\
             use anysched_lab::Experiment;\n\
             use anysched_lab::shrink::{{Fails, failure}};\n\
             use anysched_sim::Simulator;\n\n\
             const EXPERIMENT: &str = {toml};\n\n\
             #[test]\n\
             fn {name}_does_not_fail() {{\n    \
                 let experiment = Experiment::parse(EXPERIMENT, \"{file}.toml\".as_ref())\n        \
                     .unwrap(){attached};\n    \
                 let fails = Fails::parse({fails});\n    \
                 assert_eq!(failure(&experiment, &Simulator, &fails).unwrap(), None);\n\
             }}\n",
            what = self.failure.what,
            toml = raw(&self.toml),
            name = identifier(&self.name),
            file = self.name,
            fails = raw(&fails.to_string()),
        )
    }
}

impl ShortLog {
    /// A test in Rust that fails for as long as the calls do. Where answers differ, it stands
    /// beside the log, `NAME.log`.
    pub fn test(&self, fails: LogFails, name: &str) -> String {
        let Sequence { policy, settings, machine, .. } = &self.sequence;
        let (what, called, policy) = (&self.failure.what, identifier(name), policy.name);
        if fails == LogFails::Differs {
            return format!(
                "//! Found by `anysched shrink`: {what}\n\n\
                 use anysched_core::recorder::{{LogReader, replay}};\n\n\
                 #[test]\n\
                 fn {called}_decides_as_recorded() {{\n    \
                     let log = include_bytes!(\"{name}.log\");\n    \
                     let header = LogReader::new(log).unwrap().header().clone();\n    \
                     let info = anysched_policies::policy(header.policy).unwrap();\n    \
                     let (machine, settings) = (&header.machine, &header.settings);\n    \
                     let mut policy = (info.build)(machine, settings).unwrap();\n    \
                     replay(log, &mut *policy).unwrap();\n\
                 }}\n"
            );
        }
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let mut calls = String::new();
        for (now, call) in &self.sequence.calls {
            let _ = writeln!(calls, "    at({}, {});", now.0, written(call));
        }
        format!(
            "//! Found by `anysched shrink`: {what}\n\n\
             #![allow(unused_imports)]\n\n\
             use anysched_core::call::{{Call, Cow}};\n\
             use anysched_core::checked::Rules;\n\
             use anysched_core::machine::Cpu;\n\
             use anysched_core::{{\n    \
                 Arrival, Checked, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, \
                 Machine, Off,\n    Span, TaskId, TaskParams, Time,\n}};\n\n\
             #[test]\n\
             fn {called}_keeps_the_contract() {{\n    \
                 let machine = {machine};\n    \
                 let settings: &[(&str, &str)] = &{settings:?};\n    \
                 let info = anysched_policies::policy({policy:?}).unwrap();\n    \
                 let work_conserving = (info.nature)(settings).unwrap().work_conserving;\n    \
                 let policy = (info.build)(&machine, settings).unwrap();\n    \
                 let rules = Rules {{ work_conserving, ..Rules::default() }};\n    \
                 let mut policy = Checked::new(policy, &machine, rules);\n    \
                 let mut at = |ns, call: Call<'_>| {{\n        \
                     let mut kicks = CpuMask::EMPTY;\n        \
                     call.make(&mut policy, &mut Cx::new(Time(ns), &mut kicks));\n    \
                 }};\n{calls}}}\n",
            machine = built(machine),
        )
    }
}

/// How a machine is made.
fn built(machine: &Machine) -> String {
    let mut text = match Machine::flat(machine.cpus()) {
        Ok(flat) if flat == machine.clone().with_tick(None) => {
            format!("Machine::flat({}).unwrap()", machine.cpus())
        }
        _ => {
            let cpus = machine.cpu_ids().map(|cpu| {
                let Cpu { core, llc, package, node, capacity } = machine.cpu(cpu);
                format!(
                    "\n        Cpu {{ core: {core}, llc: {llc}, package: {package}, node: {node}, \
                     capacity: {capacity} }},"
                )
            });
            format!("Machine::new(vec![{}\n    ])\n    .unwrap()", cpus.collect::<String>())
        }
    };
    if let Some(tick) = machine.tick() {
        let _ = write!(text, ".with_tick(Some(Span({})))", tick.0);
    }
    text
}

/// A call as it is written in Rust.
fn written(call: &Call<'_>) -> String {
    match call {
        Call::Attach { task, params } => {
            format!("Call::Attach {{ task: {task:?}, params: Cow::Owned({}) }}", given(params))
        }
        Call::Update { task, params } => {
            format!("Call::Update {{ task: {task:?}, params: Cow::Owned({}) }}", given(params))
        }
        Call::SetParam { name, text } => {
            format!("Call::SetParam {{ name: {name:?}.into(), text: {text:?}.into() }}")
        }
        Call::Enqueue { task, arrival } => {
            let Arrival { why, from, burst, deadline } = arrival;
            let why = match why {
                Enqueue::New => "Enqueue::New".to_string(),
                why => format!("Enqueue::{why:?}"),
            };
            let mut others = String::new();
            for (name, value) in [
                ("from", from.map(|from| format!("{from:?}"))),
                ("burst", burst.map(|burst| format!("{burst:?}"))),
                ("deadline", deadline.map(|deadline| format!("{deadline:?}"))),
            ] {
                if let Some(value) = value {
                    let _ = write!(others, "{name}: Some({value}), ");
                }
            }
            let because = format!("Arrival::because({why})");
            let arrival = match others.is_empty() {
                true => because,
                false => format!("Arrival {{ {others}..{because} }}"),
            };
            format!("Call::Enqueue {{ task: {task:?}, arrival: {arrival} }}")
        }
        Call::PutPrev { cpu, task, ran, why } => format!(
            "Call::PutPrev {{ cpu: {cpu:?}, task: {task:?}, ran: {ran:?}, why: Off::{why:?} }}"
        ),
        // What the others hold is written as `Debug` does.
        call => format!("Call::{call:?}"),
    }
}

/// Parameters of a task as they are written in Rust.
fn given(params: &TaskParams) -> String {
    let usual = TaskParams::default();
    let mut text = String::new();
    let mut say = |name: &str, value: String| {
        let _ = write!(text, "{name}: {value}, ");
    };
    if params.weight != usual.weight {
        say("weight", params.weight.to_string());
    }
    if params.priority != usual.priority {
        say("priority", params.priority.to_string());
    }
    let set = |set: &CpuSet| format!("CpuSet::parse(\"{set}\").unwrap()");
    if !params.affinity.is_all() {
        say("affinity", set(&params.affinity));
    }
    if !params.preferred.is_all() {
        say("preferred", set(&params.preferred));
    }
    if params.domain != usual.domain {
        say("domain", format!("{:?}", params.domain));
    }
    let span = |span: Option<Span>| format!("{span:?}");
    for (name, value) in [
        ("period", params.period),
        ("budget", params.budget),
        ("relative_deadline", params.relative_deadline),
    ] {
        if value.is_some() {
            say(name, span(value));
        }
    }
    if params.key.is_some() {
        say("key", format!("{:?}", params.key));
    }
    if params.intensity != usual.intensity {
        say("intensity", params.intensity.to_string());
    }
    match text.is_empty() {
        true => "TaskParams::default()".into(),
        false => format!("TaskParams {{ {text}..TaskParams::default() }}"),
    }
}

/// A name of Rust made of `name`.
pub(crate) fn identifier(name: &str) -> String {
    let mut made: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !made.starts_with(|c: char| c.is_ascii_alphabetic()) {
        made.insert_str(0, "case_");
    }
    made.to_lowercase()
}

/// A raw string literal.
pub(crate) fn raw(text: &str) -> String {
    let mut hashes = String::from("#");
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("r{hashes}\"{text}\"{hashes}")
}
