//! Whether claims hold, on runs small enough to know the answer.

use anysched_lab::{ClaimResult, Experiment, Results, RunOptions, Verdict, output};
use anysched_sim::Simulator;
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
    let plan = Experiment::parse(&text, Path::new("claims.toml")).and_then(|e| e.plan());
    let plan = plan.unwrap_or_else(|error| panic!("{}", error.to_plain()));
    let options = RunOptions {
        host: &Simulator,
        jobs: 1,
        cancel: &AtomicBool::new(false),
        progress: &|_| {},
    };
    plan.run(&options).unwrap()
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
        let holds: Vec<Option<bool>> = claim.checks.iter().map(|check| check.holds).collect();
        (claim.verdict, holds)
    };
    let (yes, no) = (Some(true), Some(false));
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
    assert_eq!((check.margin, check.holds, check.note), (Some(0.0), Some(true), None));
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
    let stated = "verdict = \"internally inconsistent\"\nbecause = \"it says 1 and 2\"";
    assert_eq!(found(stated), (Some(Verdict::Inconsistent), true));
    let with_numbers = claim(&format!("{wrong}\n{stated}"));
    assert_eq!(with_numbers.verdict, Some(Verdict::Inconsistent));
    assert_eq!(with_numbers.checks[0].holds, Some(false));
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
    let run = |cancel| {
        plan.run(&RunOptions { host: &Simulator, jobs: 1, cancel, progress: &|_| {} }).unwrap()
    };
    assert_eq!(run(&cancel).claims[0].verdict, None, "its row is not there");
}

/// With random tasks, in turns and one by one differ by chance in mean waiting time (their
/// expectations are the same, as sizes are exponential), but not in the first run.
#[test]
fn too_little_evidence_is_not_enough() {
    let both = "[[claim]]\nid = \"order\"\ntext = \"t\"\nwhere = { \"workload.0.tasks\" = 6 }\n\
                expect = \"`in turns`.waiting_time_ns_mean OP fcfs.waiting_time_ns_mean\"\n";
    let quick = "[[claim]]\nid = \"quick\"\ntext = \"t\"\n\
                 expect = \"`in turns`.response_time_ns_mean < fcfs.response_time_ns_mean\"\n";
    let mut notes = Vec::new();
    for order in ["<", ">"] {
        let results = results("exp(10ms)", 20, &format!("{}{quick}", both.replace("OP", order)));
        let claim = &results.claims[0];
        assert_eq!(claim.verdict, Some(Verdict::DoesNotHold));
        let check = &claim.checks[0];
        assert!(check.difference.abs() <= check.margin.unwrap());
        notes.push(check.note.unwrap());
        assert_eq!(results.claims[1].verdict, Some(Verdict::Holds));
        let paired = results.paired(1, "waiting_time_ns_mean", "in turns", "fcfs").unwrap();
        assert_eq!(paired.mean, check.difference);
        assert_eq!(paired.standard_error.map(|error| 2.0 * error), check.margin);
    }
    assert_eq!(notes, ["difference within 2 s.e."; 2]);
}

#[test]
fn claims_are_in_the_outputs() {
    let results = results(
        "2ms",
        1,
        "[[claim]]\nid = \"C-1\"\ntext = \"One by one is sooner\"\npaper = \"-20 %\"\n\
         reading = \"mean of all tasks\"\n\
         expect = \"fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean\"\n\
         [[claim]]\nid = \"C-2\"\ntext = \"Memory\"\nverdict = \"not testable in simulation\"\n\
         because = \"there is none\"\n",
    );
    let json: serde_json::Value = serde_json::from_str(&output::json(&results)).unwrap();
    let claim = &json["claims"][0];
    assert_eq!(claim["verdict"], "holds only under the stated reading");
    assert_eq!(claim["as_expected"], true);
    assert_eq!(claim["checks"][1]["axes"]["workload.0.tasks"], 6);
    assert_eq!(claim["checks"][0]["difference"], -1_000_000);
    assert_eq!(json["claims"][1]["verdict"], "not testable in simulation");
    let table = output::table(&results);
    let claims = &table[table.find("Claims").unwrap()..];
    let expected = "\
Claims
  C-1: holds only under the stated reading
    One by one is sooner
    paper: -20 %
    reading: mean of all tasks
    fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean
      workload.0.tasks = 3: yes: 4ms against 5ms, difference -1ms (one seed)
      workload.0.tasks = 6: yes: 7.000ms against 9.500ms, difference -2.500ms
        (one seed)
  C-2: not testable in simulation
    Memory
    because: there is none
";
    assert_eq!(claims, expected);
}

/// A cell holds a phrase; readings, reasons and each figure follow below the table.
#[test]
fn markdown_is_a_table_of_phrases_with_notes_below() {
    let claims = "\
[[claim]]
id = \"1 a\"
text = \"Turns | cost\"
paper = \"20 %\"
expect = \"fcfs.turnaround_ns_mean < `in turns`.turnaround_ns_mean\"
measure = \"`in turns`.turnaround_ns_mean / 1000000\"
unit = \"ms in turns\"
reading = \"of all tasks\"
[[claim]]
id = \"1 b\"
text = \"They are done\"
expect = \"fcfs.tasks > 5\"
verdict = \"does not hold\"
because = \"three are three\"
[[claim]]
id = \"1 c\"
text = \"Nothing is lost\"
expect = \"fcfs.tasks > 0\"
";
    let text = output::claims_markdown(&[results("2ms", 2, claims)]);
    let expected = "\
| claim | the paper | here | verdict |
|---|---|---|---|
| 1 a: Turns \\| cost | 20 % | 5.000 to 9.500 ms in turns | holds only under the stated reading |
| 1 b: They are done |  | 1 of 2 comparisons hold | does not hold |
| 1 c: Nothing is lost |  | 2 of 2 comparisons hold | holds |

3 claims. holds: 1; holds only under the stated reading: 1; does not hold: 1.

Readings, reasons and each figure:

- 1 a
  - reading: of all tasks
  - here: workload.0.tasks = 3: 5 ± 0 ms in turns
  - here: workload.0.tasks = 6: 9.500 ± 0.000 ms in turns
- 1 b
  - why: three are three
  - here: workload.0.tasks = 3: `fcfs.tasks > 5`: no: 3 against 5, difference -2, 2 s.e. 0
";
    assert_eq!(text, expected);
}
