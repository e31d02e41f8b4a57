//! The hosts that this command has, and `anysched hosts`.

use crate::args::{HostsArgs, PackageArgs, PlainFormat};
use crate::output::{self, Failure};
use anysched_host::{Capabilities, Clock, Host, HostInfo, Options, cpus_in_words};
use anysched_workload::kinds::Needs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::OnceLock;

static HOSTS: OnceLock<&'static [&'static HostInfo]> = OnceLock::new();

/// Says which hosts there are: once, before anything else.
pub fn set(hosts: &'static [&'static HostInfo]) {
    // A second call would name the same hosts.
    let _ = HOSTS.set(hosts);
}

/// All hosts; the first is the usual one.
pub fn all() -> &'static [&'static HostInfo] {
    HOSTS.get().copied().unwrap_or_default()
}

/// The name of the host on which runs are made unless another is named.
pub fn usual() -> &'static str {
    all().first().map_or("", |host| host.name)
}

/// The name of the first host that has costs of its own, which simulations can predict.
pub fn measured() -> &'static str {
    all().iter().find(|host| host.costs.is_some()).map_or("", |host| host.name)
}

/// A host for experiments. Emulated machines count instructions, with several CPUs, too: what is
/// published has to come out again.
pub fn open(info: &HostInfo) -> Box<dyn Host> {
    (info.open)(&Options { clock: Some(Clock::COUNTED), ..Options::default() })
}

/// The usual host, open.
///
/// Errors: this command has no hosts.
pub fn open_usual() -> Result<Box<dyn Host>, Failure> {
    let host = all().first().ok_or("this command has no hosts")?;
    Ok(open(host))
}

/// `anysched package`: names the files that were written.
pub fn package(args: &PackageArgs) -> Result<(), Failure> {
    let mut say = |line: &str| eprintln!("{}: {line}", args.host.name);
    let written = open(args.host).package(&args.output, &mut say)?;
    let lines: Vec<String> = written.iter().map(|path| format!("{}\n", path.display())).collect();
    output::print(&lines.concat())
}

/// Whether `host` is the usual one.
pub fn is_usual(host: &HostInfo) -> bool {
    host.name == usual()
}

/// Reads the name of a host.
pub fn parser() -> impl TypedValueParser<Value = &'static HostInfo> {
    let names = all().iter().map(|host| PossibleValue::new(host.name).help(host.summary));
    PossibleValuesParser::new(names).try_map(|name| {
        all().iter().copied().find(|host| host.name == name).ok_or("there is no such host")
    })
}

pub fn hosts(args: &HostsArgs) -> Result<(), Failure> {
    output::print(&match args.format {
        PlainFormat::Table => all().iter().map(|host| in_words(host)).collect::<String>(),
        PlainFormat::Json => {
            let all: Vec<Value> = all().iter().map(|host| as_json(host)).collect();
            format!("{:#}\n", Value::from(all))
        }
    })
}

/// What a host can do, and what not, in words.
fn abilities(can: &Capabilities) -> [Vec<&'static str>; 2] {
    let Capabilities {
        cpus: _,
        vms,
        duration,
        hotplug,
        changes,
        unequal_cpus,
        logs,
        traces,
        parts,
        observed: _,
        running_machine,
        agents: _,
        dom0s: _,
        kernel_options: _,
        tasks,
    } = *can;
    let all = [
        ("virtual machines", vms),
        ("a given duration", duration),
        ("CPUs that come and go", hotplug),
        ("parameters that change during a run", changes),
        ("CPUs of different speeds", unequal_cpus),
        ("logs of decisions", logs),
        ("traces", traces),
        ("rows by workload and by task", parts),
        ("policies in the running machine", running_machine),
    ];
    let of_all = |wanted: bool| all.into_iter().filter(move |(_, can)| *can == wanted);
    let [has, has_not] = [true, false].map(|wanted| of_all(wanted).map(|(what, _)| what));
    let of_tasks = tasks.lacking(Needs::NOTHING);
    [has.chain(of_tasks).collect(), has_not.chain(Needs::ALL.lacking(tasks)).collect()]
}

fn in_words(host: &HostInfo) -> String {
    let mut text = format!("{}: {}\n", host.name, host.summary);
    let [has, has_not] = abilities(&host.capabilities).map(|list| list.join(", "));
    let _ = writeln!(text, "  up to {}", cpus_in_words(host.capabilities.cpus));
    let programs: Vec<&str> = host.programs.iter().map(|program| program.name).collect();
    for (what, list) in [
        ("has", has),
        ("does not have", has_not),
        ("schedulers of its own", host.schedulers.join(", ")),
        ("programs", programs.join(", ")),
    ] {
        if !list.is_empty() {
            let _ = writeln!(text, "  {what}: {list}");
        }
    }
    for program in host.programs {
        let names: Vec<&str> = program.arguments.iter().map(|argument| argument.name).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "  {} takes: {}", program.name, names.join(", "));
        }
    }
    text
}

fn as_json(host: &HostInfo) -> Value {
    let [has, has_not] = abilities(&host.capabilities);
    let programs: Vec<Value> = host
        .programs
        .iter()
        .map(|program| {
            let arguments: Vec<Value> = program
                .arguments
                .iter()
                .map(|argument| json!({ "name": argument.name, "summary": argument.summary }))
                .collect();
            json!({ "name": program.name, "summary": program.summary, "arguments": arguments })
        })
        .collect();
    json!({
        "name": host.name,
        "summary": host.summary,
        "cpus": host.capabilities.cpus,
        "has": has,
        "does_not_have": has_not,
        "costs": host.costs,
        "schedulers": host.schedulers,
        "programs": programs,
    })
}
