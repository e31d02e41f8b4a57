//! `anysched verify`: every short history of a policy.

use crate::args::ListFormat;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::Searching;
use crate::shrink::{self, quietly};
use crate::verify_args::{Kernel, VerifyArgs};
use anysched_core::recorder::LogReader;
use anysched_core::registry::{PolicyInfo, Settings};
use anysched_core::{Machine, Span, Time};
use anysched_lab::available_jobs;
use anysched_lab::output::Inputs;
use anysched_lab::shrink::told;
use anysched_policies::{POLICIES, policy};
use anysched_trace::decisions;
use anysched_trace::gantt::{Gantt, NAMES};
use anysched_verify::{
    ArceOs, Demands, End, Event, Finding, Glue, Held, Kinds, Limits, Linux, Property, Report,
    STATE_BYTES, Scope, Subject, Xen, search, settings,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How far histories go unless something else is said.
const DEPTH: u32 = 7;

pub fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let machine = match &args.machine {
        None => Machine::flat(args.cpus.into()).map_err(|error| error.to_string())?,
        Some(text) => {
            Machine::parse(text).map_err(|error| format!("--machine \"{text}\": {error}"))?
        }
    };
    if let Some(folder) = &args.save {
        output::require_folder(folder)?;
    }
    let mut searches = Vec::new();
    for search in all(args, &machine)? {
        let done = search.run(args)?;
        if args.format == ListFormat::Table {
            output::print(&done.text(args)?)?;
        }
        searches.push(done);
    }
    match args.format {
        ListFormat::Table => {}
        ListFormat::Json => {
            let all: Vec<Value> = searches.iter().map(Done::json).collect();
            output::print(&format!("{:#}\n", Value::Array(all)))?;
        }
        ListFormat::Markdown => output::print(&markdown(&searches))?,
    }
    match searches.iter().all(|done| done.report.findings.is_empty()) {
        true => Ok(()),
        false => Err(Failure::Differs),
    }
}

/// A policy with settings, in a scope.
struct Search {
    info: &'static PolicyInfo,
    settings: Settings,
    /// The machine in words.
    machine: String,
    scope: Scope,
    demands: Demands,
    /// The kernel whose glue is between; `None`: the policy is searched alone.
    kernel: Option<Kernel>,
}

/// A search and what came of it.
struct Done {
    search: Search,
    properties: Vec<Property>,
    report: Report<String>,
    /// What was found of a policy alone, event by event.
    findings: Vec<Finding>,
    took: Duration,
}

fn all(args: &VerifyArgs, machine: &Machine) -> Result<Vec<Search>, Failure> {
    let named = |name: &String| policy(name).ok_or_else(|| format!("there is no policy {name}"));
    let policies: Vec<&PolicyInfo> = match args.policy.is_empty() {
        true => POLICIES.iter().collect(),
        false => args.policy.iter().map(named).collect::<Result<_, _>>()?,
    };
    let mut given = Settings::new();
    for set in &args.set {
        let (name, text) = set.split_once('=').ok_or_else(|| {
            format!("--set {set}: it has to be NAME=VALUE, for example quantum=10ms")
        })?;
        given.push((name.trim().into(), text.trim().into()));
    }
    let mut all = Vec::new();
    for info in policies {
        let every = match args.settings {
            true => settings(info, machine),
            false => vec![given.clone()],
        };
        for settings in every {
            all.push(Search::new(args, info, settings, machine)?);
        }
    }
    Ok(all)
}

/// As functions of the registry take them.
fn borrowed(settings: &Settings) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

impl Search {
    fn new(
        args: &VerifyArgs,
        info: &'static PolicyInfo,
        settings: Settings,
        machine: &Machine,
    ) -> Result<Search, Failure> {
        let refused = |error| format!("`{}` cannot be built: {error}", info.name);
        let nature = (info.nature)(&borrowed(&settings)).map_err(refused)?;
        (info.build)(machine, &borrowed(&settings)).map_err(refused)?;
        let mut scope = Scope::new(machine.clone(), args.tasks);
        scope.tells_bursts = nature.clairvoyant;
        let has = |kind: &str| !args.without.iter().any(|name| name == kind);
        scope.kinds = Kinds {
            sync: has("sync"),
            late_picks: has("late-picks"),
            not_run: has("not-run"),
            resumed: has("resumed"),
            ticks: has("ticks"),
            nice: has("nice"),
            affinity: has("affinity"),
            hotplug: has("hotplug"),
        };
        let words = args.machine.clone().unwrap_or_else(|| args.cpus.to_string());
        let demands = Demands::from(nature);
        Ok(Search { info, settings, machine: words, scope, demands, kernel: args.kernel })
    }

    /// Does `work` with what is to be searched.
    fn with_subject<T>(&self, work: impl FnOnce(&Subject<'_>) -> T) -> T {
        let settings = borrowed(&self.settings);
        let build = || match (self.info.build)(&self.scope.machine, &settings) {
            Ok(policy) => policy,
            Err(error) => unreachable!("it could be built before: {error}"),
        };
        work(&Subject { scope: &self.scope, build: &build, demands: self.demands })
    }

    /// The search with the glue of a kernel in front of the policy.
    fn search_glue<K: anysched_verify::Kernel>(
        &self,
        kernel: fn(Held, &Machine, u32, bool) -> K,
        properties: &[Property],
        limits: &Limits,
        progress: &mut dyn FnMut(u32, u64),
    ) -> Report<String> {
        self.with_subject(|subject| {
            let (machine, tasks) = (&self.scope.machine, self.scope.tasks);
            let build = || kernel(subject.held_policy(), machine, tasks, machine.cpus() > 1);
            let glue = Glue { build: &build, demands: self.demands, machine };
            search(&glue, properties, limits, progress).in_words()
        })
    }

    /// The policy with its settings.
    fn label(&self) -> String {
        let settings = self.settings.iter().map(|(name, text)| format!(" {name}={text}"));
        format!("{}{}", self.info.name, settings.collect::<String>())
    }

    fn run(self, args: &VerifyArgs) -> Result<Done, Failure> {
        let named = args.property.iter().filter_map(|name| Property::named(name)).collect();
        let properties = if args.property.is_empty() { Property::ALL.to_vec() } else { named };
        let limits = Limits {
            depth: args.depth.unwrap_or(if args.time.is_some() { u32::MAX } else { DEPTH }),
            time: args.time.map(|time| Duration::from_nanos(time.0)),
            states: args.memory.saturating_mul(1 << 20) / STATE_BYTES,
            threads: args.jobs.map_or_else(available_jobs, usize::from),
        };
        let (label, began) = (self.label(), Instant::now());
        let shown = Searching::new();
        let mut progress = |depth, states| {
            shown.update(|| format!("{label}: {depth} events, {states} states"));
        };
        let mut findings = Vec::new();
        let report = quietly(|| match self.kernel {
            None => {
                let found = self
                    .with_subject(|subject| search(subject, &properties, &limits, &mut progress));
                findings.clone_from(&found.findings);
                found.in_words()
            }
            Some(Kernel::ArceOs) => {
                let arceos = |policy, machine: &_, tasks, _| ArceOs::new(policy, machine, tasks);
                self.search_glue(arceos, &properties, &limits, &mut progress)
            }
            Some(Kernel::Xen) => self.search_glue(Xen::new, &properties, &limits, &mut progress),
            Some(Kernel::Linux) => {
                self.search_glue(Linux::new, &properties, &limits, &mut progress)
            }
        });
        drop(shown);
        Ok(Done { search: self, properties, report, findings, took: began.elapsed() })
    }

    /// The log of a finding.
    fn log(&self, finding: &Finding) -> Vec<u8> {
        let settings = borrowed(&self.settings);
        let (property, history) = (finding.property, &finding.history);
        self.with_subject(|subject| subject.log(property, history, self.info.name, &settings))
    }
}

impl Done {
    fn finding(&self, property: Property) -> Option<&Finding<String>> {
        self.report.findings.iter().find(|finding| finding.property == property)
    }

    /// Why the search ended, as far as that is not as it was asked to.
    fn end(&self) -> &'static str {
        match self.report.end {
            End::AllStates => "there are no further states",
            End::Depth => "",
            End::AllBroken => "every property is broken",
            End::Time => "the time was over",
            End::Memory => "the memory for states was used up",
        }
    }

    fn text(&self, args: &VerifyArgs) -> Result<String, Failure> {
        let Report { depth, states, transitions, merges, ref longest, .. } = self.report;
        let (tasks, cpus) = (self.search.scope.tasks, self.search.scope.machine.cpus());
        let mut text = format!("{}: {tasks} tasks, {cpus} CPUs\n", self.search.label());
        for &property in &self.properties {
            let said = match self.finding(property) {
                Some(finding) => {
                    format!("broken after {} events: {}", finding.history.len(), finding.what)
                }
                None if property == Property::Wait && self.search.demands.starves => {
                    "not asked: by its rule, tasks may wait for as long as others compute".into()
                }
                None if property == Property::Yield && self.search.kernel.is_some() => {
                    "not asked: how a yield is called is the kernel's matter".into()
                }
                None if property == Property::Merge && !merges => {
                    "not asked: it does not say its state".into()
                }
                None => self.holds(),
            };
            let _ = writeln!(text, "  {:<9} {said}", property.name());
        }
        if let Some((waited, _)) = longest {
            let bound = self.search.demands.longest_wait.map(|b| b.of(tasks.into()));
            let bound = bound.map_or(String::new(), |bound| format!(" of {bound} declared"));
            let _ =
                writeln!(text, "  longest wait beside tasks that compute: {}{bound}", waited.time);
        }
        let (what, took) = (if merges { "states" } else { "histories" }, self.took.as_secs_f64());
        let end = if self.end().is_empty() { String::new() } else { format!("; {}", self.end()) };
        let _ = writeln!(
            text,
            "  {states} {what}, {transitions} events tried, {took:.1} s; \
             complete up to {depth} events{end}"
        );
        for finding in &self.report.findings {
            text += &listed(finding);
        }
        for finding in &self.findings {
            text += &self.calls(finding)?;
            if let Some(folder) = &args.save {
                self.save(finding, folder)?;
            }
        }
        Ok(text + "\n")
    }

    fn holds(&self) -> String {
        match self.report.end {
            End::AllStates => "holds in every state".into(),
            _ => format!("holds after every history of up to {} events", self.report.depth),
        }
    }

    /// The calls of a finding, and a picture.
    fn calls(&self, finding: &Finding) -> Result<String, Failure> {
        let log = self.search.log(finding);
        let mut text = format!("\n  calls of {}:\n", finding.property);
        let reader = LogReader::new(&log).map_err(|error| error.to_string())?;
        let records: Vec<String> =
            reader.map_while(|record| Some(record.ok()?.to_string())).collect();
        // A wait has a long end, of which the first calls say enough.
        for record in records.iter().take(MOST_CALLS) {
            let _ = writeln!(text, "    {record}");
        }
        if let Some(more) = records.len().checked_sub(MOST_CALLS).filter(|&more| more > 0) {
            let _ = writeln!(text, "    and {more} more");
        }
        if let Some(picture) = picture(&log) {
            let _ = write!(text, "\n{picture}");
        }
        Ok(text)
    }

    fn save(&self, finding: &Finding, folder: &Path) -> Result<(), Failure> {
        let stem = format!("{}-{}", self.search.info.name, finding.property);
        let log = self.search.log(finding);
        let told = told(&log, &stem, &*hosts::open_usual()?)
            .map_err(|error| format!("{stem} cannot be told as an experiment: {error}"))?;
        let texts =
            [(format!("{stem}.rs"), self.test(finding)), (format!("{stem}.toml"), told.toml)];
        let mut files = vec![(format!("{stem}.log"), log)];
        let texts = texts.into_iter().chain(told.model);
        files.extend(texts.map(|(name, text)| (name, text.into_bytes())));
        shrink::save(&files, folder, &Inputs::of([] as [&Path; 0]))
    }

    /// A test in Rust that fails for as long as the property is broken.
    fn test(&self, finding: &Finding) -> String {
        let Search { info, settings, scope, .. } = &self.search;
        let written = |event: &Event| {
            let event = format!("{event:?}");
            event.replace("why: ", "why: Off::").replace("step: ", "step: Step::")
        };
        let events = finding.history.iter().map(|e| format!("        Event::{},\n", written(e)));
        format!(
            "//! Found by `anysched verify`: {what}.\n\n\
             use anysched_core::{{CpuId, Machine, Off, TaskId}};\n\
             use anysched_verify::{{\n    \
                 Demands, Event, Histories, Property, Scope, Step, Subject,\n\
             }};\n\n\
             #[test]\n\
             #[allow(unused_imports)]\n\
             fn {name}_keeps_{property}() {{\n    \
                 let info = anysched_policies::policy({policy:?}).unwrap();\n    \
                 let settings: &[(&str, &str)] = &{settings:?};\n    \
                 let machine = Machine::parse({machine:?}).unwrap();\n    \
                 let nature = (info.nature)(settings).unwrap();\n    \
                 let mut scope = Scope::new(machine.clone(), {tasks});\n    \
                 scope.tells_bursts = nature.clairvoyant;\n    \
                 let build = || (info.build)(&machine, settings).unwrap();\n    \
                 let demands = Demands::from(nature);\n    \
                 let subject = Subject {{ scope: &scope, build: &build, demands }};\n    \
                 let history = [\n{events}    ];\n    \
                 assert_eq!(subject.check(Property::{finding:?}, &history).err(), None);\n\
             }}\n",
            what = finding.what,
            name = info.name.replace('-', "_"),
            property = finding.property,
            policy = info.name,
            settings = borrowed(settings),
            machine = self.search.machine,
            tasks = scope.tasks,
            events = events.collect::<String>(),
            finding = finding.property,
        )
    }

    fn json(&self) -> Value {
        let Report { depth, states, transitions, merges, ref longest, ref findings, .. } =
            self.report;
        let finding = |property: Property| {
            let finding = findings.iter().find(|finding| finding.property == property);
            json!({
                "property": property.name(),
                "holds": finding.is_none(),
                "what": finding.map(|finding| &finding.what),
                "history": finding.map(|finding| &finding.history),
            })
        };
        json!({
            "policy": self.search.info.name,
            "settings": self.search.settings.iter().map(|(n, t)| json!({ "name": n, "value": t }))
                .collect::<Vec<_>>(),
            "tasks": self.search.scope.tasks,
            "cpus": self.search.scope.machine.cpus(),
            "depth": depth,
            "all_states": self.report.end == End::AllStates,
            "states": states,
            "merged": merges,
            "events_tried": transitions,
            "seconds": self.took.as_secs_f64(),
            "longest_wait_ns": longest.as_ref().map(|(waited, _)| waited.time.0),
            "properties": self.properties.iter().map(|&p| finding(p)).collect::<Vec<_>>(),
        })
    }
}

/// How many calls of a history and its end are shown.
const MOST_CALLS: usize = 24;

/// The history of a finding.
fn listed(finding: &Finding<String>) -> String {
    let mut text = format!("\n  {}: {}\n", finding.property, finding.what);
    for (number, event) in finding.history.iter().enumerate() {
        let _ = writeln!(text, "    {:>2}  {event}", number + 1);
    }
    text
}

/// What ran when, if any time passes.
fn picture(log: &[u8]) -> Option<String> {
    let cpus = LogReader::new(log).ok()?.header().machine.cpus();
    let (end, _) = decisions::tell(log, |_| None, anysched_trace::NoTrace).ok()?;
    // Of a wait without end, the beginning.
    let until = end.min(Time::ZERO + Span::from_ms(200));
    if until <= Time::ZERO + Span(1) {
        return None;
    }
    let columns = output::columns().clamp(30, 100) - NAMES;
    let gantt = Gantt::new(cpus, Time::ZERO, until, columns, 8);
    let (_, mut gantt) = decisions::tell(log, |_| None, gantt).ok()?;
    gantt.finish(until);
    Some(gantt.to_string())
}

/// A line for each search.
fn markdown(searches: &[Done]) -> String {
    let mut text = String::from(
        "| policy | events | states | time | contract | drain | wait | longest wait | yield |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for done in searches {
        let Report { depth, states, ref longest, .. } = done.report;
        let said = |property: Property| match done.finding(property) {
            Some(_) => "**broken**",
            None if property == Property::Wait && done.search.demands.starves => "starves",
            None if property == Property::Yield && done.search.kernel.is_some() => "",
            None => "holds",
        };
        let all = if done.report.end == End::AllStates { ", all" } else { "" };
        // What it says of the others is then worth nothing.
        let merged = match done.finding(Property::Merge) {
            Some(_) => ", **broken**: some are not the same that were taken for the same",
            None => "",
        };
        let longest = longest.as_ref().map_or("".into(), |(waited, _)| waited.time.to_string());
        let _ = writeln!(
            text,
            "| {} | {depth}{all} | {states}{merged} | {:.1} s | {} | {} | {} | {longest} | {} |",
            done.search.label(),
            done.took.as_secs_f64(),
            said(Property::Contract),
            said(Property::Drain),
            said(Property::Wait),
            said(Property::Yield),
        );
    }
    text
}
