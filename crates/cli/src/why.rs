//! `anysched why`.

use crate::args::{PlainFormat, WhyArgs};
use crate::choose::Looked;
use crate::output::{self, Failure};
use anysched_core::{Span, Time};
use anysched_lab::look::{self, Answer};
use anysched_trace::follow::{self, Who};
use anysched_trace::why::{Choice, Ran, Reason, Start, Values, Why};
use serde_json::{Map, Value, json};

pub fn why(args: &WhyArgs) -> Result<(), Failure> {
    let looked = Looked::open(&args.selection, args.host.host, args.group, args.seed)?;
    let source = looked.only()?;
    let task = args.task.as_deref().unwrap_or_default();
    let at = args.at.unwrap_or_default();
    let answer = match args.longest {
        true => look::longest(&source, args.task.as_deref())?,
        false => look::why(&source, task, Time::ZERO + at)?,
    };
    let file = args.selection.file.display();
    match answer {
        Answer::Why(why, others) => {
            if others > 0 {
                eprintln!(
                    "anysched: {others} more tasks were called \"{task}\" then; a number, as in \
                     --task {}, names one",
                    why.wait.who.serial
                );
            }
            output::print(&match args.format {
                PlainFormat::Table => why.to_string(),
                PlainFormat::Json => format!("{:#}\n", as_json(&why)),
            })
        }
        Answer::Missed(missed) => Err(format!("--at {at}: {missed}").into()),
        Answer::Never => {
            output::print("no task has waited: each was picked at the instant it became ready\n")
        }
        Answer::Unknown(names, 0) => {
            debug_assert!(names.is_empty());
            Err(format!("{file} has no tasks in this run").into())
        }
        Answer::Unknown(names, tasks) => {
            let more = match tasks.saturating_sub(names.len() as u64) {
                0 => String::new(),
                more => format!(" and {more} more, by number from 0 to {}", tasks - 1),
            };
            let names = names.join(", ");
            Err(format!("--task \"{task}\": there is no such task; there are {names}{more}").into())
        }
    }
}

/// Values of a policy, by name.
pub fn values(values: &Values) -> Value {
    values
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// A task.
pub fn who(who: &Who) -> Value {
    json!({ "task": who.serial, "name": who.name })
}

/// A span in nanoseconds; none: no limit.
fn limit(span: Span) -> Option<u64> {
    (span != Span::MAX).then_some(span.0)
}

/// Why one task was picked and not another.
pub fn reason(reason: &Reason) -> Value {
    fn of(by: &str, chosen: Value, other: Value) -> Value {
        json!({ "by": by, "chosen": chosen, "other": other })
    }
    match reason {
        Reason::By { name, chosen, other } => of(name, json!(chosen), json!(other)),
        Reason::Earlier { chosen, other } => of("ready_since_ns", json!(chosen.0), json!(other.0)),
        Reason::OtherQueue { chosen, other } => of("runqueue", json!(chosen), json!(other)),
        Reason::Despite { name, chosen, other } => {
            json!({ "despite": name, "chosen": chosen, "other": other })
        }
        Reason::Tie => json!({ "by": "tie" }),
        Reason::Unknown => Value::Null,
    }
}

fn as_json(why: &Why) -> Value {
    let start = |start: &Start| {
        let ran = start.ran.as_ref().map(|(task, since, known)| {
            json!({ "ran": who(task), "since_ns": since.0, "values": values(known) })
        });
        json!({ "cpu": start.cpu.0, "running": ran, "kicked": start.kicked })
    };
    let ran = |ran: &Ran| {
        json!({
            "cpu": ran.cpu.0,
            "ran": ran.who.as_ref().map(who),
            "time_ns": ran.time.0,
            "turns": ran.turns,
            "ended": ran.ended.map(follow::left),
        })
    };
    let choice = |choice: &Choice| {
        json!({
            "at_ns": choice.at.0,
            "cpu": choice.cpu.0,
            "picked": choice.who.as_ref().map(who),
            "slice_ns": limit(choice.slice),
            "ready_since_ns": choice.since.0,
            "values": values(&choice.values),
            "values_of_waiting": values(&choice.own),
            "reason": reason(&choice.reason),
        })
    };
    let wait = &why.wait;
    json!({
        "policy": why.policy,
        "waited": who(&wait.who),
        "from_ns": wait.from.0,
        "became_ready": wait.why.words(),
        "to_ns": wait.to.map(|to| to.0),
        "until_ns": why.until.0,
        "picked_by_cpu": why.cpu.map(|cpu| cpu.0),
        "values_when_ready": values(&why.values),
        "values_when_picked": values(&why.values_at_end),
        "cpus_when_ready": why.start.iter().map(start).collect::<Vec<_>>(),
        "ran_meanwhile": why.ran.iter().map(ran).collect::<Vec<_>>(),
        "choices": why.choices.iter().map(choice).collect::<Vec<_>>(),
        "more_choices": why.more_choices,
        "left_for_it": why.left.as_ref().map(|(task, off)| {
            json!({ "task": who(task), "why": follow::left(*off) })
        }),
    })
}
