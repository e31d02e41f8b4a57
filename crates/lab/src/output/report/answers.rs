//! Which policy does best, by how much, how sure that is, and what it costs other tasks.

use super::super::json::{EstimateOut, Number};
use crate::results::stats::Estimate;
use crate::results::{Group, Results};
use crate::spec::columns::{Column, Stat, columns};
use crate::spec::parts::{ALL, TASK, WORKLOAD};
use serde::Serialize;

/// Which values of a column are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Better {
    /// Small ones.
    Less,
    /// Large ones.
    More,
}

/// Which values of a column anybody wants; `None`: that depends.
pub(super) fn better(column: Column) -> Option<Better> {
    let name = column.metric.to_string();
    match name.as_str() {
        "throughput_per_s" | "fairness" | "completed" => Some(Better::More),
        "deadline_miss_ratio" | "slowdown" | "makespan_ns" => Some(Better::Less),
        _ if column.stat == Some(Stat::Sd) => None,
        _ if column.metric.is_distribution() && column.is_time() => Some(Better::Less),
        _ => None,
    }
}

/// What a column says of the policies in a group.
#[derive(Serialize)]
pub(super) struct Answer {
    /// Position among the groups.
    group: usize,
    column: String,
    /// The policy that does best of those that a kernel could run.
    best: Place,
    /// The one that comes next, and how far behind it is.
    next: Option<Beside>,
    /// One that does better still because it is told the future.
    told: Option<Place>,
    /// What else is under the best one.
    costs: Vec<Cost>,
}

/// A policy and its value.
#[derive(Serialize)]
struct Place {
    policy: usize,
    #[serde(flatten)]
    value: EstimateOut,
}

/// Another policy beside the best.
#[derive(Serialize)]
struct Beside {
    #[serde(flatten)]
    place: Place,
    /// Its value less that of the best, seed by seed.
    difference: EstimateOut,
    /// Whether the interval of that leaves out 0; `null`: there is one seed.
    sure: Option<bool>,
}

/// What the best policy of an answer means for other tasks.
#[derive(Serialize)]
struct Cost {
    /// Position among the groups.
    group: usize,
    column: String,
    /// Under the policy of the answer.
    here: EstimateOut,
    /// The policy under which it is best, if that is another one.
    best: Option<Beside>,
}

/// All answers: for the columns that are shown and have a direction, or for usual ones.
pub(super) fn answers(results: &Results) -> Vec<Answer> {
    let mut asked: Vec<Column> = results.shown();
    asked.retain(|column| better(*column).is_some());
    if asked.is_empty() {
        let usual = ["turnaround_ns_mean", "wakeup_latency_ns_mean", "wakeup_latency_ns_p99"];
        let is_usual = |column: &&Column| usual.contains(&column.to_string().as_str());
        asked = columns().iter().filter(is_usual).copied().collect();
    }
    let groups = 0..results.groups.len();
    let of_tasks = |group: &usize| is_all(&results.groups[*group], TASK);
    groups
        .filter(of_tasks)
        .flat_map(|group| asked.iter().filter_map(move |column| answer(results, group, *column)))
        .collect()
}

fn is_all(group: &Group, axis: &str) -> bool {
    group.axes.iter().all(|(known, value)| known != axis || value.to_string() == ALL)
}

/// The policies of a group from best to worst.
fn ranked(results: &Results, group: usize, column: Column, which: Better) -> Vec<(usize, f64)> {
    let value = |policy: usize| Some((policy, results.row(group, policy)?.estimate(column)?.mean));
    let mut ranked: Vec<(usize, f64)> = (0..results.policies.len()).filter_map(value).collect();
    ranked.sort_by(|(_, a), (_, b)| match which {
        Better::Less => a.total_cmp(b),
        Better::More => b.total_cmp(a),
    });
    ranked
}

fn place(results: &Results, group: usize, column: Column, policy: usize) -> Place {
    let value = results.row(group, policy).and_then(|row| row.estimate(column));
    Place { policy, value: value.into() }
}

/// `policy` beside `best`.
fn beside(results: &Results, group: usize, column: Column, policy: usize, best: usize) -> Beside {
    let label = |policy: usize| results.policies[policy].label.as_str();
    let name = column.to_string();
    let difference = results.paired(group, &name, label(policy), label(best));
    let sure = |difference: Estimate| Some(libm::fabs(difference.mean) > difference.ci95?);
    Beside {
        place: place(results, group, column, policy),
        difference: difference.into(),
        sure: difference.and_then(sure),
    }
}

fn answer(results: &Results, group: usize, column: Column) -> Option<Answer> {
    let which = better(column)?;
    let ranked = ranked(results, group, column, which);
    let is_told = |policy: usize| results.policies[policy].nature.clairvoyant;
    let mut real = ranked.iter().map(|(policy, _)| *policy).filter(|policy| !is_told(*policy));
    let (best, next) = (real.next()?, real.next());
    let first = ranked.first().map(|(policy, _)| *policy).filter(|policy| is_told(*policy));
    Some(Answer {
        group,
        column: column.to_string(),
        best: place(results, group, column, best),
        next: next.map(|next| beside(results, group, column, next, best)),
        told: first.map(|policy| place(results, group, column, policy)),
        costs: costs(results, group, column, best),
    })
}

/// What the tasks of other loads have under `policy`: the same column, or their CPU time.
fn costs(results: &Results, group: usize, column: Column, policy: usize) -> Vec<Cost> {
    let here = &results.groups[group];
    if is_all(here, WORKLOAD) {
        return Vec::new();
    }
    let alike = |other: &Group| {
        other.axes.iter().zip(&here.axes).all(|(a, b)| a == b || a.0 == WORKLOAD && b.0 == WORKLOAD)
    };
    let others = results
        .groups
        .iter()
        .enumerate()
        .filter(|(number, other)| *number != group && !is_all(other, WORKLOAD) && alike(other));
    let usual = ["turnaround_ns_mean", "busy_ns"];
    let known = |name: &str| columns().iter().find(|known| known.to_string() == name).copied();
    let mut costs = Vec::new();
    for (number, _) in others {
        let row = results.row(number, policy);
        let value = |column: Column| row.and_then(|row| row.estimate(column));
        let candidates = usual.into_iter().filter_map(known).chain([column]);
        let Some(of) = candidates.into_iter().find(|column| value(*column).is_some()) else {
            continue;
        };
        let which = better(of).unwrap_or(Better::More);
        let ranked = ranked(results, number, of, which);
        let is_real = |policy: usize| !results.policies[policy].nature.clairvoyant;
        let mut real = ranked.into_iter().map(|(policy, _)| policy).filter(|it| is_real(*it));
        let best = real.next().filter(|best| *best != policy);
        costs.push(Cost {
            group: number,
            column: of.to_string(),
            here: value(of).into(),
            best: best.map(|best| beside(results, number, of, best, policy)),
        });
    }
    costs
}

/// A number over seeds, for the page.
pub(super) fn number(value: f64) -> Option<Number> {
    value.is_finite().then_some(Number(value))
}
