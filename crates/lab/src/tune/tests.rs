//! What a search must find, and what must change nothing.

use super::evaluate::{Bench, Purpose};
use super::space::{Space, spaces};
use super::*;
use crate::plan::run::Progress;
use anysched_core::Span;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

fn tuning(service: &str, arriving: Arriving) -> Tuning {
    Tuning {
        service: Dist::parse(service, "".as_ref()).unwrap(),
        arriving,
        tasks: 300,
        cpus: 1,
        objective: Objective::Mean,
        seeds: 8,
        seed: 1,
        policies: vec!["m-rsf".to_string()],
    }
}

fn options<'a>(
    jobs: usize,
    cancel: &'a AtomicBool,
    progress: &'a (dyn Fn(&Progress<'_>) + Sync),
) -> RunOptions<'a> {
    RunOptions { host: &anysched_sim::Simulator, jobs, cancel, journal: None, progress }
}

fn tuned(tuning: &Tuning) -> Tuned {
    tuning.tune(&options(2, &AtomicBool::new(false), &|_| {})).unwrap()
}

fn mean(tuned: &Tuned, label: &str) -> f64 {
    tuned.row(label).unwrap().turnaround(Objective::Mean).unwrap().mean
}

/// All tasks are there from the start, so that no preemption ever pays: a single level in order
/// of CPU time is shortest job first, but for the rotation over the three parts, which hands out
/// a batch in its order.
#[test]
fn a_batch_with_known_times_wants_no_slice() {
    let tuned = tuned(&tuning("exp(10ms)", Arriving::Batch));
    let row = tuned.row("m-rsf").unwrap();
    assert_eq!(row.parameters(), "q1 = none");
    assert_eq!(row.values(Objective::Mean), tuned.row("sjf").unwrap().values(Objective::Mean));
    assert!(row.nature.clairvoyant && !tuned.row("m-rsf ewma").unwrap().nature.clairvoyant);
    // The closed form for slices of one mean is 0.3268 n against 0.25 n.
    let ratio = mean(&tuned, "m-rsf untuned") / mean(&tuned, "m-rsf");
    assert!((ratio - 0.3268 / 0.25).abs() < 0.03, "{ratio}");
}

/// Without knowledge the mean over tasks that are all alike is least when each runs to its end.
#[test]
fn constant_times_want_no_slice() {
    let mut tuning = tuning("10ms", Arriving::Batch);
    tuning.policies = vec!["m-rsf".to_string(), "mlfq".to_string()];
    let tuned = tuned(&tuning);
    assert_eq!(tuned.row("mlfq").unwrap().parameters(), "boost = 0, slices = none");
    assert_eq!(tuned.row("m-rsf ewma").unwrap().parameters(), "q1 = none, estimate = ewma");
    // Task k of n ends after k times 10 ms.
    assert_eq!(mean(&tuned, "mlfq"), 301.0 / 2.0 * 10e6);
    assert_eq!(mean(&tuned, "rr").min(mean(&tuned, "mlfq")), mean(&tuned, "mlfq"));
}

#[test]
fn tuning_beats_the_untuned_on_other_seeds() {
    let tuned = tuned(&tuning("hyperexp(10ms, cv2=8)", Arriving::Load(0.8)));
    let (own, other) = (tuned.row("m-rsf").unwrap(), tuned.row("m-rsf untuned").unwrap());
    let gain = own.against(other, Objective::Mean).unwrap();
    assert!(gain.mean + gain.ci95.unwrap() < 0.0, "{gain:?}");
    let optimum = tuned.row("srpt").unwrap();
    assert!(own.against(optimum, Objective::Mean).unwrap().mean > 0.0);
    assert_eq!(optimum.against(optimum, Objective::P99).unwrap().mean, 0.0);
}

#[test]
fn jobs_change_nothing() {
    let tuning = tuning("pareto(1.5, 1ms, 1s)", Arriving::Load(0.7));
    let printed = |jobs| {
        let cancel = AtomicBool::new(false);
        crate::output::tuned_json(&tuning.tune(&options(jobs, &cancel, &|_| {})).unwrap())
    };
    let one = printed(1);
    assert_eq!(one, printed(2));
    assert_eq!(one, printed(7));
}

/// The numbers of a parameter set are those of a run of it alone.
#[test]
fn other_candidates_change_no_numbers() {
    let tuning = tuning("exp(10ms)", Arriving::Load(0.9));
    let bench = Bench::new(&tuning).unwrap();
    let cancel = AtomicBool::new(false);
    let options = options(2, &cancel, &|_| {});
    let workers = Workers { jobs: 2, cancel: &cancel };
    let counter = Counter { options: &options, total: 0, before: Cell::new(0) };
    let [few, many] = [[0, 0], [20, 4]].map(|at| spaces()[0].candidate(&at, Span::from_ms(10)));
    let seeds = [0, 1, 2].map(|index| bench.seed(Purpose::Search, index));
    let run = |wanted: Vec<_>| bench.run(workers, &counter, "", &wanted).unwrap().unwrap();
    let alone = run(seeds.iter().map(|&seed| (&few, seed)).collect());
    let both = run(seeds.iter().flat_map(|&seed| [(&many, seed), (&few, seed)]).collect());
    let among: Vec<_> = both.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(alone, among);
    assert_ne!(alone[0], both[0], "the other candidate is another one");
    assert_ne!(alone[0], alone[1], "seeds differ");
    assert_ne!(bench.seed(Purpose::Compare, 0), seeds[0]);
}

/// More searches do not change the rows of the others.
#[test]
fn rows_do_not_depend_on_what_else_is_tuned() {
    let mut tuning = tuning("exp(10ms)", Arriving::Load(0.5));
    let alone = tuned(&tuning);
    tuning.policies.push("mlfq".to_string());
    let both = tuned(&tuning);
    assert_eq!(both.rows.len(), alone.rows.len() + 1);
    for (a, b) in alone.rows.iter().zip(&both.rows) {
        assert_eq!(
            (a.parameters(), a.values(Objective::P99)),
            (b.parameters(), b.values(Objective::P99))
        );
    }
}

#[test]
fn searches_keep_their_budget_and_progress_ends_at_its_total() {
    let tuning = tuning("hyperexp(10ms, cv2=4)", Arriving::Load(0.9));
    let seen = Mutex::new(Vec::new());
    let cancel = AtomicBool::new(false);
    let note = |progress: &Progress<'_>| seen.lock().unwrap().push((progress.done, progress.total));
    let tuned = tuning.tune(&options(2, &cancel, &note)).unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted(), "progress never goes back");
    let (done, total) = seen[seen.len() - 1];
    assert_eq!(done, total);
    for row in tuned.rows {
        let space = spaces().into_iter().find(|space| space.label() == row.label);
        let budget = space.map(|space: Space| space::budget(&space, 8));
        assert!(row.search_runs <= budget, "{}: {:?} of {budget:?}", row.label, row.search_runs);
    }
}

#[test]
fn a_cancellation_leaves_whole_rows() {
    let tuning = tuning("exp(10ms)", Arriving::Load(0.5));
    let cancel = AtomicBool::new(false);
    // In the search of the first policy, after five baselines of eight runs.
    let stop = |progress: &Progress<'_>| {
        if progress.done > 60 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let tuned = tuning.tune(&options(2, &cancel, &stop)).unwrap();
    assert!(!tuned.complete);
    assert_eq!(tuned.rows.len(), 5);
    assert!(tuned.rows.iter().all(|row| row.values(Objective::Mean).len() == 8));
}

#[test]
fn settings_of_no_use_are_named() {
    let refused = |change: fn(&mut Tuning)| {
        let mut tuning = tuning("exp(10ms)", Arriving::Load(0.9));
        change(&mut tuning);
        let error = tuning.tune(&options(1, &AtomicBool::new(false), &|_| {})).unwrap_err();
        error.to_string()
    };
    let why = refused(|tuning| tuning.arriving = Arriving::Load(0.0));
    assert_eq!(why, "load 0: above 0, for example 0.9");
    let why = refused(|tuning| tuning.policies = vec!["cfs".to_string()]);
    assert_eq!(why, "policy cfs: only m-rsf and mlfq can be tuned");
    let why = refused(|tuning| tuning.seeds = 1);
    assert_eq!(why, "seeds 1: at least 2, to tell luck from worth");
    let why = refused(|tuning| tuning.cpus = 0);
    assert_eq!(why, "cpus 0: from 1 to 1024");
    let why = refused(|tuning| tuning.service = Dist::constant(Span::ZERO));
    assert!(why.starts_with("service 0: "), "{why}");
}

/// Tasks that run once have no past, so that M-RSF with `ewma` is a feedback queue of three levels
/// that never preempts; one that preempts is another policy.
#[test]
fn without_a_past_m_rsf_is_a_feedback_queue() {
    let bench = Bench::new(&tuning("hyperexp(10ms, cv2=8)", Arriving::Load(0.9))).unwrap();
    let own = spaces()[2].candidate(&[6, 12], Span::from_ms(10));
    assert_eq!(own.shown(), "q1 = 28.3ms, q2 = 80ms, estimate = ewma");
    let mut queue = spaces()[3].candidate(&[3, 0, 6, 3], Span::from_ms(10));
    assert_eq!(queue.shown(), "boost = 0, slices = 28.3ms,80ms,none");
    let preempting = queue.clone();
    queue.settings.push(("preemptive", "no".to_string()));
    let cancel = AtomicBool::new(false);
    let options = options(1, &cancel, &|_| {});
    let counter = Counter { options: &options, total: 0, before: Cell::new(0) };
    let run = |candidate| {
        let wanted: Vec<_> = (0..8).map(|seed| (candidate, seed)).collect();
        bench.run(Workers { jobs: 1, cancel: &cancel }, &counter, "", &wanted).unwrap().unwrap()
    };
    assert_eq!(run(&own), run(&queue));
    assert_ne!(run(&own), run(&preempting));
}
