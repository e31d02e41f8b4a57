//! Whether claims hold, on runs small enough to know the answer.

use crate::support::{self, SIMULATED};
use anysched_lab::{ClaimResult, Experiment, Results, RunOptions, Verdict, output};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// One CPU and three tasks of 2 ms, or random ones; first come, first served, and in turns of
/// 1 ms. With the three tasks, turnaround is 4 ms on average for the one and 5 ms for the other.
fn results(service: &str, seeds: u32, claims: &str) -> Results {
    let text = format!(
        "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\n\
         service = \"{service}\"\n[sweep]\n\
         policy = [\"fcfs\", {{ name = \"rr\", quantum = \"1ms\", label = \"in turns\" }}]\n\
         \"workload.0.tasks\" = [3, 6]\nseeds = {seeds}\n{claims}"
    );
    let experiment = support::experiment("claims.toml", &text);
    support::plan(&experiment).run(&RunOptions { jobs: 1, ..SIMULATED }).unwrap()
}

/// The claim with these further keys, on fixed tasks.
fn claim(keys: &str) -> ClaimResult {
    let claims = format!("[[claim]]\nid = \"1\"\ntext = \"t\"\n{keys}\n");
    results("2ms", 2, &claims).claims.remove(0)
}

#[test]
fn a_claim_holds_in_all_its_rows_or_not_at_all() {
    let of = |expect: &str| {
        let claim = claim(&format!("expect = \"{expect}\""));
        let checks: Vec<Option<Verdict>> = claim.checks.iter().map(|it| it.verdict).collect();
        (claim.verdict, checks)
    };
    let (yes, no) = (Some(Verdict::Holds), Some(Verdict::DoesNotHold));
    assert_eq!(
        of("fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean"),
        (Some(Verdict::Holds), vec![yes, yes])
    );
    // 6 tasks of 2 ms end at 7 ms on average one by one, and at 9.5 ms in turns.
    assert_eq!(of("fcfs.turnaround_ns_mean <= 4ms"), (Some(Verdict::DoesNotHold), vec![yes, no]));
    assert_eq!(
        of("3ms < fcfs.turnaround_ns_mean < 7ms and fcfs.tasks > 5"),
        (Some(Verdict::DoesNotHold), vec![yes, yes, no, yes, no, yes])
    );
    let (verdict, holds) = of("1.35 < `in turns`.turnaround_ns_mean / fcfs.turnaround_ns_mean");
    assert_eq!((verdict, holds), (Some(Verdict::DoesNotHold), vec![no, yes]));
}

#[test]
fn numbers_are_reported_with_their_rows() {
    let keys = "expect = \"fcfs.turnaround_ns_mean < 0.9 * `in turns`.turnaround_ns_mean\"\n\
                measure = \"fcfs.turnaround_ns_mean / `in turns`.turnaround_ns_mean - 1\"\n\
                where = { \"workload.0.tasks\" = 3 }\npaper = \"-20 %\"";
    let claim = claim(keys);
    assert_eq!((claim.checks.len(), claim.measures.len()), (1, 1));
    let check = &claim.checks[0];
    assert_eq!((check.left, check.right, check.difference), (4e6, 4.5e6, -5e5));
    assert_eq!((check.margin, check.verdict, check.note), (Some(0.0), Some(Verdict::Holds), None));
    assert_eq!(check.axes[0].1.to_string(), "3");
    assert!((claim.measures[0].value.unwrap().mean + 0.2).abs() < 1e-12);
    assert_eq!(claim.paper.as_deref(), Some("-20 %"));
}

#[test]
fn rows_can_be_compared_with_each_other() {
    let keys = "expect = \"fcfs{workload.0.tasks = 6}.turnaround_ns_mean > \
                1.7 * fcfs{workload.0.tasks = 3}.turnaround_ns_mean\"";
    let claim = claim(keys);
    let check = &claim.checks[0];
    assert_eq!((claim.checks.len(), check.left, check.right), (1, 7e6, 6.8e6));
    assert!(check.axes.is_empty(), "the comparison says itself which rows it means");
    assert_eq!(claim.verdict, Some(Verdict::Holds));
}

#[test]
fn readings_and_expected_verdicts() {
    let found = |keys: &str| {
        let claim = claim(keys);
        (claim.verdict, claim.is_as_expected())
    };
    let (right, wrong) = ("expect = \"fcfs.tasks < 7\"", "expect = \"fcfs.tasks < 3\"");
    let reading = "reading = \"arrivals count\"";
    assert_eq!(found(&format!("{right}\n{reading}")), (Some(Verdict::HoldsUnderReading), true));
    assert_eq!(found(&format!("{wrong}\n{reading}")), (Some(Verdict::DoesNotHold), false));
    let expected = "verdict = \"does not hold\"";
    assert_eq!(found(&format!("{wrong}\n{expected}")), (Some(Verdict::DoesNotHold), true));
    assert_eq!(found(&format!("{right}\n{expected}")), (Some(Verdict::Holds), false));
    let stated = "verdict = \"inconsistent\"\nbecause = \"it says 1 and 2\"";
    assert_eq!(found(stated), (Some(Verdict::Inconsistent), true));
    let with_numbers = claim(&format!("{wrong}\n{stated}"));
    assert_eq!(with_numbers.verdict, Some(Verdict::Inconsistent));
    assert_eq!(with_numbers.checks[0].verdict, Some(Verdict::DoesNotHold));
}

#[test]
fn a_claim_is_about_the_values_that_it_lists() {
    let rows = |values: &str| {
        let keys = "expect = \"fcfs.tasks > 1\"\nwhere = { \"workload.0.tasks\" = VALUES }";
        claim(&keys.replace("VALUES", values)).checks.len()
    };
    assert_eq!(["3", "[6]", "[3, 6]", "[6, 3]"].map(rows), [1, 1, 2, 2]);
}

#[test]
fn what_was_not_measured_decides_nothing() {
    let claim = claim("expect = \"fcfs.wakeup_latency_ns_mean < 1ms\"");
    assert_eq!((claim.verdict, claim.is_as_expected()), (None, false));
    assert_eq!(claim.checks[0].note, Some("no data"));
    let claims = "[[claim]]\nid = \"1\"\ntext = \"t\"\nwhere = { \"workload.0.tasks\" = 6 }\n\
                  expect = \"fcfs.tasks > 1\"\n";
    let text = format!(
        "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\n\
         service = \"1ms\"\n[sweep]\n\"workload.0.tasks\" = [3, 6]\n{claims}"
    );
    let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
    let plan = experiment.with_setting("workload.0.tasks", "3").unwrap().plan().unwrap();
    let cancel = AtomicBool::new(false);
    let run = |cancel| plan.run(&RunOptions { jobs: 1, cancel, ..SIMULATED }).unwrap();
    assert_eq!(run(&cancel).claims[0].verdict, None, "its row is not there");
}

/// With random tasks, in turns and one by one differ by chance in mean waiting time (their
/// expectations are the same, as sizes are exponential), but not in the first run.
#[test]
fn too_little_evidence_decides_nothing() {
    let both = "[[claim]]\nid = \"order\"\ntext = \"t\"\nwhere = { \"workload.0.tasks\" = 6 }\n\
                expect = \"`in turns`.waiting_time_ns_mean OP fcfs.waiting_time_ns_mean\"\n";
    let quick = "[[claim]]\nid = \"quick\"\ntext = \"t\"\n\
                 expect = \"`in turns`.response_time_ns_mean < fcfs.response_time_ns_mean\"\n";
    for order in ["<", ">"] {
        let results = results("exp(10ms)", 20, &format!("{}{quick}", both.replace("OP", order)));
        let claim = &results.claims[0];
        assert_eq!(claim.verdict, Some(Verdict::Undecided));
        assert!(claim.seeds_needed().unwrap() > 20);
        let check = &claim.checks[0];
        assert!(check.difference.abs() <= check.margin.unwrap());
        assert_eq!(results.claims[1].verdict, Some(Verdict::Holds));
        let paired = results.paired(1, "waiting_time_ns_mean", "in turns", "fcfs").unwrap();
        assert_eq!(paired.mean, check.difference);
        assert_eq!(paired.ci95, check.margin);
    }
}

#[test]
fn claims_are_in_the_outputs() {
    let results = results(
        "2ms",
        1,
        "[[claim]]\nid = \"C-1\"\ntext = \"One by one is sooner\"\npaper = \"-20 %\"\n\
         reading = \"mean of all tasks\"\n\
         expect = \"fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean\"\n\
         [[claim]]\nid = \"C-2\"\ntext = \"Memory\"\nverdict = \"not testable\"\n\
         because = \"there is none\"\n",
    );
    let json: serde_json::Value = serde_json::from_str(&output::json(&results)).unwrap();
    let claim = &json["claims"][0];
    assert_eq!(claim["verdict"], "holds under the stated reading");
    assert_eq!(claim["as_expected"], true);
    assert_eq!(claim["checks"][1]["axes"]["workload.0.tasks"], 6);
    assert_eq!(claim["checks"][0]["difference"], -1_000_000);
    assert_eq!(json["claims"][1]["verdict"], "not testable");
    let table = output::table(&results);
    let claims = &table[table.find("Claims").unwrap()..];
    let expected = "\
Claims
  C-1: holds under the stated reading
    One by one is sooner
    paper: -20 %
    reading: mean of all tasks
    fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean
      workload.0.tasks = 3: yes: 4ms against 5ms, difference -1ms (one seed)
      workload.0.tasks = 6: yes: 7.000ms against 9.500ms, difference -2.500ms
        (one seed)
  C-2: not testable
    Memory
    because: there is none
";
    assert_eq!(claims, expected);
}

/// A cell holds a phrase; what takes more, each row and the comparisons follow below the tables.
#[test]
fn markdown_is_tables_of_phrases_with_entries_below() {
    let claims = "\
[[claim]]
id = \"1 a\"
text = \"Turns | cost\"
paper = \"20 %\"
expect = \"fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean\"
measure = \"`in turns`.turnaround_ns_mean / 1000000\"
unit = \"ms in turns\"
size = [4, 10]
reading = \"of all tasks\"
[[claim]]
id = \"1 b\"
text = \"They are done\"
expect = \"fcfs.tasks > 5\"
verdict = \"does not hold\"
because = \"three are three\"
[[claim]]
id = \"1 c\"
text = \"Of three, one is done at 2 ms\"
paper = \"at 3 ms\"
where = { \"workload.0.tasks\" = 3 }
expect = \"fcfs.turnaround_ns_p50 > 1ms and fcfs.tasks > 0\"
measure = \"fcfs.turnaround_ns_p50 / 1000000\"
unit = \"ms\"
size = [2.5, 3.5]
size_verdict = \"does not hold\"
because = \"that is the second one's time\"
details = \"the first is done at 2 ms\"
";
    let text = output::claims_markdown(&[results("2ms", 2, claims)]);
    let expected = "\
| claim | paper | here | verdict | why |
|---|---|---|---|---|
| 1 a: Turns \\| cost | 20 % | 5.000 ± 0.000 to 9.500 ± 0.000 ms in turns | holds under the stated reading; its size, too | of all tasks |
| 1 c: Of three, one is done at 2 ms | at 3 ms | 4 ± 0 ms | holds; its size does not | that is the second one's time |

2 claims of papers. holds: 1; holds under the stated reading: 1. Their sizes, where they give one: holds: 1; does not hold: 1.

What this project adds:

| claim | here | verdict | why |
|---|---|---|---|
| 1 b: They are done | 1 of 2 comparisons hold | does not hold | three are three |

1 claim of this project. does not hold: 1.

Each claim:

- 1 a
  - size: 4 to 10 ms in turns: holds
  - here: workload.0.tasks = 3: 5 ± 0 ms in turns
  - here: workload.0.tasks = 6: 9.500 ± 0.000 ms in turns
  - ``fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean``: holds
- 1 c
  - the first is done at 2 ms
  - size: 2.500 to 3.500 ms: does not hold
  - at: workload.0.tasks = 3
  - `fcfs.turnaround_ns_p50 > 1ms`: holds
  - `fcfs.tasks > 0`: holds
- 1 b
  - `fcfs.tasks > 5`:
    - workload.0.tasks = 3: no: 3 against 5, difference -2 ± 0
    - workload.0.tasks = 6: yes: 6 against 5, difference 1 ± 0
";
    assert_eq!(text, expected);
}

/// With random tasks, the tables say how many seeds would decide what these do not.
#[test]
fn what_is_undecided_says_how_many_seeds_would_tell() {
    let claims = "[[claim]]\nid = \"order\"\ntext = \"t\"\nwhere = { \"workload.0.tasks\" = 6 }\n\
                  expect = \"`in turns`.waiting_time_ns_mean < fcfs.waiting_time_ns_mean\"\n\
                  measure = \"`in turns`.waiting_time_ns_mean - fcfs.waiting_time_ns_mean\"\n\
                  size = [-1e9, 0]\nsize_verdict = \"undecided\"\nverdict = \"undecided\"\n";
    let results = results("exp(10ms)", 20, claims);
    let claim = &results.claims[0];
    assert!(claim.is_as_expected() && !claim.is_unexpected());
    let size = claim.size.unwrap();
    assert_eq!(size.verdict, Some(Verdict::Undecided));
    assert!(size.seeds_needed.unwrap() > 20);
    let text = output::claims_markdown(std::slice::from_ref(&results));
    let row = text.lines().find(|line| line.starts_with("| order")).unwrap();
    assert!(row.contains("| undecided; some "), "{row}");
    assert!(row.contains(" seeds would tell; its size is undecided |"), "{row}");
    let json: serde_json::Value = serde_json::from_str(&output::json(&results)).unwrap();
    assert_eq!(json["claims"][0]["seeds_needed"].as_u64(), claim.seeds_needed());
    assert_eq!(json["claims"][0]["size"]["seeds_needed"].as_u64(), size.seeds_needed);
    assert_eq!(json["claims"][0]["size"]["verdict"], "undecided");
}

/// What came out otherwise than expected, and what contradicts it in a smaller version.
#[test]
fn a_smaller_version_contradicts_by_the_opposite_only() {
    let found = |keys: &str| {
        let claim = claim(keys);
        (claim.is_unexpected(), claim.is_contradicted(true), claim.is_contradicted(false))
    };
    let (right, wrong) = ("expect = \"fcfs.tasks < 7\"\n", "expect = \"fcfs.tasks < 3\"\n");
    let (not, undecided) = ("verdict = \"does not hold\"\n", "verdict = \"undecided\"\n");
    assert_eq!(found(right), (false, false, false));
    assert_eq!(found(wrong), (true, true, true));
    assert_eq!(found(&format!("{right}{not}")), (true, true, false), "other rows may fail");
    assert_eq!(found(&format!("{wrong}{not}")), (false, false, false));
    assert_eq!(found(&format!("{right}{undecided}")), (true, false, false));
    let none = "expect = \"fcfs.wakeup_latency_ns_mean < 1ms\"";
    assert_eq!(found(none), (false, false, false), "no data");
    let sized = format!("{right}measure = \"fcfs.tasks\"\nsize = ");
    assert_eq!(found(&format!("{sized}[3, 6]")), (false, false, false));
    assert_eq!(found(&format!("{sized}[3, 5]")), (true, true, true));
    let size_not = "size_verdict = \"does not hold\"";
    assert_eq!(found(&format!("{sized}[3, 6]\n{size_not}")), (true, true, false));
}
