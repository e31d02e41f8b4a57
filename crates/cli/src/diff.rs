//! `anysched diff`.

use crate::args::{DiffArgs, PlainFormat};
use crate::choose::Looked;
use crate::output::{self, Failure};
use crate::why::{reason, values, who};
use anysched_lab::look::{self, Alike};
use anysched_trace::diff::{Diff, Side, Then};
use anysched_trace::follow;
use serde_json::{Value, json};

pub fn diff(args: &DiffArgs) -> Result<(), Failure> {
    let looked = Looked::open(&args.selection, args.host.host, args.group, args.seed)?;
    let other = match &args.other {
        Some(file) => Some(Looked::log(file)?),
        None => None,
    };
    let sources = match &other {
        Some(other) => [looked.only()?, other.only()?],
        None => looked.both()?,
    };
    let mut names = [sources[0].label()?, sources[1].label()?];
    if names[0] == names[1] {
        names = [1, 2].map(|number| format!("{} ({number})", names[0]));
    }
    match look::diff(sources)? {
        Err(Alike { steps, longer }) => {
            let longer = longer.map(|side| &names[side]);
            let [a, b] = &names;
            output::print(&match args.format {
                PlainFormat::Table => match longer {
                    None => format!("{a} and {b} do not part: {steps} steps alike\n"),
                    Some(longer) => format!(
                        "{a} and {b} do not part as far as both go: {steps} steps alike; {longer} \
                         goes on\n"
                    ),
                },
                PlainFormat::Json => {
                    let sides = [a, b];
                    let all = json!({
                        "sides": sides, "alike": steps, "parts": false, "longer": longer,
                    });
                    format!("{all:#}\n")
                }
            })
        }
        Ok(diff) => output::print(&match args.format {
            PlainFormat::Table => diff.to_string(),
            PlainFormat::Json => format!("{:#}\n", as_json(&diff)),
        }),
    }
}

fn as_json(diff: &Diff) -> Value {
    let then = |then: &Then| {
        json!({
            "task": who(&then.who),
            "ready_since_ns": then.waits.map(|at| at.0),
            "values": values(&then.values),
            "picked_ns": then.picked.map(|at| at.0),
            "done_ns": then.done.map(|(at, _)| at.0),
            "done": then.done.map(|(_, why)| follow::left(why)),
        })
    };
    let side = |(number, side): (usize, &Side)| {
        let cpus = side.after.cpus.iter().map(|(cpu, task, since)| {
            json!({ "cpu": cpu.0, "ran": task.as_ref().map(who), "since_ns": since.0 })
        });
        json!({
            "policy": side.name,
            "at_ns": side.parting.time.0,
            "cpu": side.parting.cpu.0,
            "runs": side.after.runs.as_ref().map(who),
            "reason": reason(&diff.reason(number)),
            "cpus": cpus.collect::<Vec<_>>(),
            "tasks": side.after.tasks.values().map(then).collect::<Vec<_>>(),
        })
    };
    json!({
        "alike": diff.sides[0].parting.alike,
        "parts": true,
        "sides": diff.sides.iter().enumerate().map(side).collect::<Vec<_>>(),
    })
}
