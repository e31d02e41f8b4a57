//! `anysched shrink`.

use crate::args::PlainFormat;
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::Searching;
use crate::shrink_args::ShrinkArgs;
use anysched_core::recorder::Call;
use anysched_core::{Span, Time};
use anysched_lab::Experiment;
use anysched_lab::output::Inputs;
use anysched_lab::shrink::{
    self as lab, Extent, Fails, Limits, LogFails, ShortLog, ShrinkError, Shrinker, Shrunk,
};
use anysched_lab::swarm::Case;
use anysched_policies::policy;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub fn shrink(args: &ShrinkArgs) -> Result<(), Failure> {
    let cancel = output::cancel_on_interrupt()?;
    if let Some(folder) = &args.output {
        output::require_folder(folder)?;
    }
    let limits = Limits {
        time: Some(Duration::from_nanos(args.time.0)),
        tries: args.tries.unwrap_or(u64::MAX),
        cancel,
    };
    match (&args.file, args.swarm) {
        (Some(file), _) if choose::is_log(file) => shrink_log(args, file, limits),
        (Some(file), _) => shrink_experiment(args, experiment(args, file)?, limits),
        (None, seed) => shrink_experiment(args, drawn(args, seed.unwrap_or_default())?, limits),
    }
}

/// The experiment of the command line, and its file.
fn experiment(args: &ShrinkArgs, file: &Path) -> Result<(Experiment, Inputs), Failure> {
    let changed = choose::changed(choose::read(file)?, &args.policy, &args.set)?;
    Ok((changed, Inputs::of([file])))
}

/// The case of the swarm with this seed.
fn drawn(args: &ShrinkArgs, seed: u64) -> Result<(Experiment, Inputs), Failure> {
    let case = match &args.policy[..] {
        [] => Case::new(seed),
        [name] => {
            let policy = policy(name).ok_or_else(|| format!("there is no policy {name}"))?;
            Case::with_policy(seed, policy)
        }
        _ => return Err("--policy: a case of the swarm has one policy".into()),
    };
    let name = format!("swarm-{seed}");
    let (text, model) = case.experiment(&name)?;
    let experiment = Experiment::parse(&text, format!("{name}.toml").as_ref());
    let experiment = experiment.map_err(Failure::pointing)?;
    let experiment = experiment.with_file(&format!("{name}.model"), &model);
    Ok((choose::changed(experiment, &[], &args.set)?, Inputs::of([] as [&Path; 0])))
}

/// Makes a log shorter.
fn shrink_log(args: &ShrinkArgs, file: &Path, limits: Limits<'_>) -> Result<(), Failure> {
    let fails = match args.fails.trim() {
        "contract" => LogFails::Contract,
        "differs" => LogFails::Differs,
        other => {
            return Err(format!("--fails \"{other}\": a log has `contract` or `differs`").into());
        }
    };
    let given = [
        ("--policy", !args.policy.is_empty()),
        ("--set", !args.set.is_empty()),
        ("--group", args.group.is_some()),
        ("--seed", args.seed.is_some()),
    ];
    let place = file.display();
    if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(format!("{name}: {place} is a log, which is one run of one policy").into());
    }
    let log = std::fs::read(file).map_err(|error| format!("{place}: cannot be read: {error}"))?;
    let short = quietly(|| lab::shrink_log(&log, fails, limits));
    let short = short.map_err(|error| format!("{place}: {error}"))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{}-shrunk", stem.trim_end_matches("-shrunk"));
    if let Some(folder) = &args.output {
        let files = vec![
            (format!("{name}.log"), short.sequence.log()),
            (format!("{name}.rs"), short.test(fails, &name).into_bytes()),
        ];
        save(&files, folder, &Inputs::of([file]))?;
    }
    output::print(&match args.format {
        PlainFormat::Table => short_text(&short),
        PlainFormat::Json => format!("{:#}\n", short_json(&short)),
    })
}

fn shrink_experiment(
    args: &ShrinkArgs,
    (experiment, inputs): (Experiment, Inputs),
    limits: Limits<'_>,
) -> Result<(), Failure> {
    let name = format!("{}-shrunk", experiment.name().trim_end_matches("-shrunk"));
    let fails = Fails::parse(&args.fails);
    let shown = Searching::new();
    let shrinker = Shrinker {
        host: &*hosts::open_usual()?,
        fails: &fails,
        only: (args.group, args.seed),
        limits,
        progress: &|tried, Extent { tasks, cpus }| {
            shown.update(|| format!("{tasks} tasks, {cpus} CPUs, {tried} tries"));
        },
    };
    let shrunk = quietly(|| shrinker.shrink(&experiment, &name));
    drop(shown);
    let shrunk = shrunk.map_err(failure)?;
    if let Some(folder) = &args.output {
        save(&files(&shrunk, &fails), folder, &inputs)?;
    }
    output::print(&match args.format {
        PlainFormat::Table => text(&shrunk),
        PlainFormat::Json => format!("{:#}\n", as_json(&shrunk)),
    })
}

fn failure(error: ShrinkError) -> Failure {
    match error {
        ShrinkError::Experiment(error) => Failure::pointing(error),
        ShrinkError::Other(why) => Failure::Line(why),
    }
}

/// Does `work`, in which policies may panic: that is found, not shown as it happens.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let done = work();
    std::panic::set_hook(hook);
    done
}

fn of(Extent { tasks, cpus }: Extent) -> String {
    let many = |count: u64, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    format!("{} on {}", many(tasks, "task"), many(cpus, "CPU"))
}

fn text(shrunk: &Shrunk) -> String {
    let Shrunk { failure, row, before, after, tried, complete, toml, model, .. } = shrunk;
    let end = if *complete { "" } else { "; the search was not at its end" };
    let mut text = format!(
        "{row}: {}\n{}, reduced to {} in {tried} tries{end}\n\n{toml}",
        failure.what,
        of(*before),
        of(*after)
    );
    if let Some((name, model)) = model {
        text += &format!("\n{name}:\n{model}");
    }
    if let Some(calls) = &shrunk.calls {
        text += &format!("\nThe calls alone:\n\n{}", short_text(calls));
    }
    text
}

fn as_json(shrunk: &Shrunk) -> Value {
    let extent = |Extent { tasks, cpus }: Extent| json!({ "tasks": tasks, "cpus": cpus });
    json!({
        "row": shrunk.row,
        "what": shrunk.failure.what,
        "before": extent(shrunk.before),
        "after": extent(shrunk.after),
        "tries": shrunk.tried,
        "complete": shrunk.complete,
        "experiment": shrunk.toml,
        "calls": shrunk.calls.as_ref().map(short_json),
        "model": shrunk.model.as_ref().map(|(name, text)| json!({ "name": name, "text": text })),
    })
}

fn short_text(short: &ShortLog) -> String {
    let ShortLog { sequence, failure, before, after, tried, complete } = short;
    let end = if *complete { "" } else { "; the search was not at its end" };
    let of = |[tasks, cpus, calls]: [usize; 3]| {
        let extent = Extent { tasks: tasks as u64, cpus: cpus as u64 };
        format!("{calls} calls, {}", of(extent))
    };
    let mut text = format!(
        "{}: {}\n{}, reduced to {} in {tried} tries{end}\n\n",
        sequence.policy.name,
        failure.what,
        of(*before),
        of(*after)
    );
    for (now, call) in &sequence.calls {
        text += &format!("    at {}: {call}\n", Span(now.0));
    }
    text
}

fn short_json(short: &ShortLog) -> Value {
    let extent =
        |[tasks, cpus, calls]: [usize; 3]| json!({ "tasks": tasks, "cpus": cpus, "calls": calls });
    let call =
        |(now, call): &(Time, Call<'static>)| json!({ "at_ns": now.0, "call": call.to_string() });
    json!({
        "policy": short.sequence.policy.name,
        "what": short.failure.what,
        "before": extent(short.before),
        "after": extent(short.after),
        "tries": short.tried,
        "complete": short.complete,
        "calls": short.sequence.calls.iter().map(call).collect::<Vec<_>>(),
    })
}

/// The files of what was found, by name.
fn files(shrunk: &Shrunk, fails: &Fails) -> Vec<(String, Vec<u8>)> {
    let name = &shrunk.name;
    let test = match &shrunk.calls {
        Some(calls) => calls.test(LogFails::Contract, name),
        None => shrunk.test(fails),
    };
    let mut files = vec![
        (format!("{name}.toml"), shrunk.toml.clone().into_bytes()),
        (format!("{name}.rs"), test.into_bytes()),
    ];
    files.extend(shrunk.model.clone().map(|(name, text)| (name, text.into_bytes())));
    files
}

/// Writes files into a folder, which is made if it is not there.
pub fn save(files: &[(String, Vec<u8>)], folder: &Path, inputs: &Inputs) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let places: Vec<_> = files.iter().map(|(name, _)| folder.join(name)).collect();
    output::require_places(&places, inputs)?;
    for ((_, bytes), place) in files.iter().zip(&places) {
        output::write_named(place, inputs, |out| out.write_all(bytes))?;
    }
    Ok(())
}
