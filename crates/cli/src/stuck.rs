//! Runs that end with tasks that wait for each other: what `anysched run` says of them.

use crate::output::Failure;
use crate::run::policies_run;
use anysched_host::{Host, Watch};
use anysched_lab::{Plan, Results, column};
use anysched_trace::stuck::Waits;

/// Of so many rows it is said; others are alike.
const MOST: usize = 4;

/// Says which tasks of the first runs wait for ever, and for what. Those runs are made again, but
/// only where tasks have not ended that may wait for each other.
pub fn say(plan: &Plan, host: &dyn Host, results: &Results) -> Result<(), Failure> {
    let Some(unfinished) = column("unfinished") else { return Ok(()) };
    if !host.info().capabilities.observed {
        return Ok(());
    }
    let is_unfinished = |&(group, policy): &(usize, usize)| {
        let left = results.first_run(group, policy).and_then(|run| run.value(unfinished));
        left.is_some_and(|left| left > 0.0) && plan.waits_for_tasks(group)
    };
    let rows = policies_run(plan, results).into_iter().filter(is_unfinished).take(MOST);
    for (group, policy) in rows {
        let mut waits = Waits::default();
        let watch = Watch { trace: Some(&mut waits), ..Watch::default() };
        plan.run_one(host, group, policy, 0, watch)?;
        let label = &plan.policy(group, policy).label;
        let title = plan.groups().nth(group).map(|group| group.title()).unwrap_or_default();
        let of = if title.is_empty() { label.clone() } else { format!("{label} ({title})") };
        for line in waits.lines() {
            eprintln!("anysched: {of}: {line}");
        }
    }
    Ok(())
}
