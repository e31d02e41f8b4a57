//! Why tasks wait and where schedules part, beside what can be worked out by hand.

use crate::support;
use anysched_core::{CpuId, Off, Time};
use anysched_host::Watch;
use anysched_lab::Plan;
use anysched_lab::look::{Alike, Answer, Source, diff, why};
use anysched_sim::Simulator;
use anysched_trace::diff::Diff;
use anysched_trace::follow::Became;
use anysched_trace::why::{Did, Missed, Reason, Why};

const MS: u64 = 1_000_000;

/// Tasks that arrive at these times and run for these, in ms, with further keys.
fn plan(policies: &str, cpus: u32, tasks: &[(&str, u64, u64, &str)]) -> Plan {
    let mut text = format!("question = \"?\"\n[machine]\ncpus = {cpus}\n");
    for (name, at, service, keys) in tasks {
        text += &format!(
            "[[workload]]\nkind = \"batch\"\ntasks = 1\nname = \"{name}\"\nat = \"{at}ms\"\n\
             service = \"{service}ms\"\n{keys}\n"
        );
    }
    text += &format!("[sweep]\npolicy = [{policies}]\n");
    parsed(&text)
}

fn parsed(text: &str) -> Plan {
    support::plan(&support::experiment("dir/name.toml", text))
}

fn run(plan: &Plan, policy: usize) -> Source<'_> {
    Source::Run { plan, host: &Simulator, group: 0, policy, seed: 0 }
}

fn asked(source: &Source<'_>, task: &str, ms: u64) -> Answer {
    why(source, task, Time(ms * MS)).unwrap()
}

fn explained(source: &Source<'_>, task: &str, ms: u64) -> Why {
    match asked(source, task, ms) {
        Answer::Why(why, 0) => *why,
        other => panic!("{other:?}"),
    }
}

fn missed(source: &Source<'_>, task: &str, ms: u64) -> Missed {
    match asked(source, task, ms) {
        Answer::Missed(missed) => *missed,
        other => panic!("{other:?}"),
    }
}

/// From when to when in ms, why, and who had which CPU for how long in how many turns.
type Story = (u64, Option<u64>, Became, Vec<(u16, String, u64, u64)>);

fn story(why: &Why) -> Story {
    let name = |who: &Option<anysched_trace::follow::Who>| {
        who.as_ref().map_or("idle".to_string(), |who| who.name.clone())
    };
    let ran = why.ran.iter();
    let ran = ran.map(|ran| (ran.cpu.0, name(&ran.who), ran.time.0 / MS, ran.turns)).collect();
    (why.wait.from.0 / MS, why.wait.to.map(|to| to.0 / MS), why.wait.why, ran)
}

/// When which task was picked on which CPU, and why that one.
fn choices(why: &Why) -> Vec<(u64, u16, &str, &Reason)> {
    let named = why.choices.iter().map(|choice| {
        let name = choice.who.as_ref().map_or("nothing", |who| &who.name);
        (choice.at.0 / MS, choice.cpu.0, name, &choice.reason)
    });
    named.collect()
}

fn ran(cpu: u16, name: &str, ms: u64, turns: u64) -> (u16, String, u64, u64) {
    (cpu, name.to_string(), ms, turns)
}

/// Three tasks at 0 that need 24, 3 and 3 ms, with a quantum of 4 ms: P1 until 4, P2 until 7, P3
/// until 10, then P1 to the end at 30.
const ROUND: [(&str, u64, u64, &str); 3] = [("P1", 0, 24, ""), ("P2", 0, 3, ""), ("P3", 0, 3, "")];

#[test]
fn round_robin_takes_turns() {
    let plan = plan("{ name = \"rr\", quantum = \"4ms\" }", 1, &ROUND);
    let source = run(&plan, 0);
    let third = explained(&source, "P3", 6);
    let expected = (0, Some(7), Became::New, vec![ran(0, "P1", 4, 1), ran(0, "P2", 3, 1)]);
    assert_eq!(story(&third), expected);
    // All became ready at 0, so which went first is a matter of their order at that instant.
    assert_eq!(choices(&third), [(0, 0, "P1", &Reason::Tie), (4, 0, "P2", &Reason::Tie)]);
    assert_eq!(third.left.as_ref().map(|(who, why)| (&*who.name, *why)), Some(("P2", Off::Exited)));
    // The first one, once its quantum is used up, waits for both.
    let first = explained(&source, "P1", 4);
    let expected =
        (4, Some(10), Became::Left(Off::Expired), vec![ran(0, "P2", 3, 1), ran(0, "P3", 3, 1)]);
    assert_eq!(story(&first), expected);
    let earlier = |since| Reason::Earlier { chosen: Time(since * MS), other: Time(4 * MS) };
    assert_eq!(choices(&first), [(4, 0, "P2", &earlier(0)), (7, 0, "P3", &earlier(0))]);
}

/// Arrivals at 0, 1, 2, 3 ms of tasks that need 8, 4, 9, 5 ms: P1 until 1, P2 until 5, P4 until 10,
/// P1 until 17, P3 until 26.
const SHORTEST: [(&str, u64, u64, &str); 4] =
    [("P1", 0, 8, ""), ("P2", 1, 4, ""), ("P3", 2, 9, ""), ("P4", 3, 5, "")];

#[test]
fn the_shortest_rest_goes_first() {
    let plan = plan("\"srpt\"", 1, &SHORTEST);
    let source = run(&plan, 0);
    let first = explained(&source, "P1", 2);
    let expected =
        (1, Some(10), Became::Left(Off::Preempted), vec![ran(0, "P4", 5, 1), ran(0, "P2", 4, 1)]);
    assert_eq!(story(&first), expected);
    // P1 has 7 ms to go; P2 needs 4, and P4 needs 5.
    let by = |ms: i64| {
        let [chosen, other] = [ms, 7].map(|ms| ms * MS as i64);
        Reason::By { name: "left_ns", chosen, other }
    };
    assert_eq!(choices(&first), [(1, 0, "P2", &by(4)), (5, 0, "P4", &by(5))]);
    let third = explained(&source, "P3", 2);
    let all = vec![ran(0, "P1", 7, 1), ran(0, "P4", 5, 1), ran(0, "P2", 3, 1)];
    assert_eq!(story(&third), (2, Some(17), Became::New, all));
    assert_eq!(third.start[0].ran.as_ref().map(|(who, ..)| &*who.name), Some("P2"));
    assert!(!third.start[0].kicked);
}

/// Five tasks at 0 that need 10, 1, 2, 1, 5 ms, of priorities where 1 is the most urgent: they wait
/// 6, 0, 16, 18 and 1 ms.
#[test]
fn the_most_urgent_goes_first() {
    let tasks = [
        ("P1", 0, 10, "priority = -3"),
        ("P2", 0, 1, "priority = -1"),
        ("P3", 0, 2, "priority = -4"),
        ("P4", 0, 1, "priority = -5"),
        ("P5", 0, 5, "priority = -2"),
    ];
    let plan = plan("\"priority\"", 1, &tasks);
    let source = run(&plan, 0);
    let first = explained(&source, "P1", 5);
    let expected = (0, Some(6), Became::New, vec![ran(0, "P5", 5, 1), ran(0, "P2", 1, 1)]);
    assert_eq!(story(&first), expected);
    let by = |chosen, other| Reason::By { name: "priority", chosen, other };
    assert_eq!(choices(&first), [(0, 0, "P2", &by(-1, -3)), (1, 0, "P5", &by(-2, -3))]);
    let last = explained(&source, "P4", 17);
    assert_eq!((last.wait.to, last.ran.len()), (Some(Time(18 * MS)), 4));
    assert_eq!(choices(&last)[3], (16, 0, "P3", &by(-4, -5)));
    // P2 was first: it did not wait at all.
    let second = missed(&source, "P2", 10);
    assert_eq!((second.did, second.before, second.after), (Did::Ended(Time(MS)), None, None));
}

/// Each of two CPUs has a runqueue, and nothing is moved between them: a task waits though the other
/// CPU takes another.
#[test]
fn a_task_waits_in_its_own_runqueue() {
    let policy = "{ name = \"rr\", quantum = \"2ms\", layout = \"per-cpu\", steal = \"never\" }";
    let zero = "affinity = \"0\"";
    let one = "affinity = \"1\"";
    let tasks = [("A", 0, 4, zero), ("B", 0, 6, zero), ("C", 0, 2, one), ("D", 0, 4, one)];
    let plan = plan(policy, 2, &tasks);
    let b = explained(&run(&plan, 0), "B", 1);
    // It may not run on CPU 1, of which nothing is told.
    assert_eq!(story(&b), (0, Some(2), Became::New, vec![ran(0, "A", 2, 1)]));
    assert_eq!((b.cpu, b.start.len()), (Some(CpuId(0)), 1));
}

#[test]
fn a_moment_without_a_wait_is_described() {
    let plan = plan("{ name = \"rr\", quantum = \"4ms\" }", 1, &ROUND);
    let source = run(&plan, 0);
    let first = missed(&source, "P1", 2);
    assert_eq!((first.did, first.until), (Did::Ran(CpuId(0), Time::ZERO), Some(Time(4 * MS))));
    let after = first.after.unwrap();
    assert_eq!((after.from, after.to), (Time(4 * MS), Some(Time(10 * MS))));
    let later = missed(&source, "P1", 20);
    assert!(matches!(later.did, Did::Ran(..)), "{:?}", later.did);
    assert_eq!(later.before.unwrap().from, Time(4 * MS));
    match asked(&source, "P7", 2) {
        Answer::Unknown(names, tasks) => {
            assert_eq!((names.join(","), tasks), ("P1,P2,P3".into(), 3))
        }
        other => panic!("{other:?}"),
    }
    // By number, too.
    assert_eq!(explained(&source, "1", 1).wait.who.name, "P2");
    let plan = self::plan("\"fcfs\"", 1, &SHORTEST);
    let later = missed(&run(&plan, 0), "P3", 1);
    assert_eq!(later.did, Did::NotYet(Time(2 * MS)));
    assert_eq!(
        later.after.map(|wait| (wait.from, wait.to)),
        Some((Time(2 * MS), Some(Time(12 * MS))))
    );
}

fn parted(plan: &Plan) -> Diff {
    *diff([run(plan, 0), run(plan, 1)]).unwrap().expect("they part")
}

/// Where, what each side runs, and of each task that was there when it is done in each, in ms.
type Parted = (u64, u16, [Option<String>; 2], Vec<(String, [Option<u64>; 2])>);

fn parted_story(diff: &Diff) -> Parted {
    let [a, b] = &diff.sides;
    assert_eq!(a.parting, b.parting);
    let runs = [a, b].map(|side| side.after.runs.as_ref().map(|who| who.name.clone()));
    let done = a.after.tasks.iter().map(|(serial, then)| {
        let of = [then, &b.after.tasks[serial]];
        (then.who.name.clone(), of.map(|then| then.done.map(|(at, _)| at.0 / MS)))
    });
    (a.parting.time.0 / MS, a.parting.cpu.0, runs, done.collect())
}

fn named(runs: [&str; 2]) -> [Option<String>; 2] {
    runs.map(|name| Some(name.to_string()))
}

fn done(name: &str, a: u64, b: u64) -> (String, [Option<u64>; 2]) {
    (name.to_string(), [Some(a), Some(b)])
}

/// First come, first served ends them at 24, 27, 30; round robin at 30, 7, 10.
#[test]
fn fcfs_and_round_robin_part_at_the_first_quantum() {
    let plan = plan("\"fcfs\", { name = \"rr\", quantum = \"4ms\" }", 1, &ROUND);
    let diff = parted(&plan);
    let tasks = vec![done("P1", 24, 30), done("P2", 27, 7), done("P3", 30, 10)];
    assert_eq!(parted_story(&diff), (4, 0, named(["P1", "P2"]), tasks));
    assert_eq!(diff.sides[0].parting.alike, 1);
    assert_eq!(
        diff.reason(1),
        Reason::Earlier { chosen: Time::ZERO, other: Time(4 * MS) },
        "P1 is behind P2 from 4 ms on"
    );
}

/// They part when P2 arrives, which SRPT prefers: at 1 ms. Done under SJF: 8, 12, and under SRPT 17,
/// 5. The other two are not there yet.
#[test]
fn sjf_and_srpt_part_when_a_shorter_one_arrives() {
    let plan = plan("\"sjf\", \"srpt\"", 1, &SHORTEST);
    let diff = parted(&plan);
    let tasks = vec![done("P1", 8, 17), done("P2", 12, 5)];
    assert_eq!(parted_story(&diff), (1, 0, named(["P1", "P2"]), tasks));
    let [chosen, other] = [4, 7].map(|ms| ms * MS as i64);
    assert_eq!(diff.reason(1), Reason::By { name: "left_ns", chosen, other });
}

/// A runs 2 of 5 ms, B 4 of 7, as in Liu and Layland: B's first job has 2 ms done at 5 ms… DM lets A
/// run then, whose deadline is the shorter; EDF goes on with B, due at 7 ms and not at 10.
#[test]
fn dm_and_edf_part_where_the_longer_deadline_is_nearer() {
    let task = |name, period, run| {
        format!(
            "[[workload]]\nkind = \"periodic\"\ntasks = 1\nname = \"{name}\"\nperiod = \"{period}ms\"\n\
             run = \"{run}ms\"\njobs = 2\n"
        )
    };
    let tasks = task("A", 5, 2) + &task("B", 7, 4);
    let text = format!(
        "question = \"?\"\n[machine]\ncpus = 1\n{tasks}[sweep]\npolicy = [\"dm\", \"edf\"]\n"
    );
    let diff = parted(&parsed(&text));
    let (at, cpu, runs, tasks) = parted_story(&diff);
    assert_eq!((at, cpu, runs), (5, 0, named(["A", "B"])));
    // EDF: B until 6, A until 8. DM: A until 7, then B's last ms, late; its next job has been
    // released meanwhile, so that it goes on until 12.
    assert_eq!(tasks, [done("A", 7, 8), done("B", 12, 6)]);
    let [chosen, other] = [5, 7].map(|ms| ms * MS as i64);
    assert_eq!(diff.reason(0), Reason::By { name: "relative_deadline_ns", chosen, other });
    let [chosen, other] = [7, 10].map(|ms| ms * MS as i64);
    assert_eq!(diff.reason(1), Reason::By { name: "deadline_ns", chosen, other });
}

#[test]
fn schedules_that_are_the_same_do_not_part() {
    let plan = plan("\"fcfs\", { name = \"rr\", quantum = \"1s\" }", 1, &ROUND);
    // P1, P2, P3, and the end.
    let alike = Alike { steps: 4, longer: None };
    assert_eq!(diff([run(&plan, 0), run(&plan, 1)]).unwrap().unwrap_err(), alike);
}

fn recorded(plan: &Plan, policy: usize) -> Vec<u8> {
    let watch = Watch { record: true, ..Watch::default() };
    plan.run_one(&Simulator, 0, policy, 0, watch).unwrap().only_log().unwrap().to_vec()
}

/// A log tells the same as the run that was recorded; only names are missing.
#[test]
fn logs_are_explained_as_runs_are() {
    let plan = plan("\"srpt\", \"sjf\"", 1, &SHORTEST);
    let [log, other] = [0, 1].map(|policy| recorded(&plan, policy));
    let source = Source::Log { name: "run.log", log: &log };
    let (of_log, of_run) = (explained(&source, "0", 2), explained(&run(&plan, 0), "0", 2));
    assert_eq!(of_log.wait.who.name, "task 0");
    assert_eq!(of_log.wait.to, of_run.wait.to);
    let reasons = |why: &Why| why.choices.iter().map(|it| it.reason.clone()).collect::<Vec<_>>();
    assert_eq!(reasons(&of_log), reasons(&of_run));
    // Of two logs, the order counts: P1, P2, P4 under both, then what is left of P1 or P3.
    let logs = [source, Source::Log { name: "other.log", log: &other }];
    let diff = diff(logs).unwrap().expect("they part");
    assert_eq!(diff.sides[0].parting.alike, 3);
}

/// A log whose decisions differ now is not explained: the error names the call.
#[test]
fn a_log_that_does_not_replay_is_refused() {
    let plan = plan("\"fcfs\"", 1, &SHORTEST);
    // What fcfs decided, under the name of another policy.
    let log = {
        let mut log = recorded(&plan, 0);
        let at = log.windows(4).position(|bytes| bytes == b"fcfs").unwrap();
        log[at..at + 4].copy_from_slice(b"srpt");
        log
    };
    let source = Source::Log { name: "run.log", log: &log };
    let error = why(&source, "0", Time(2 * MS)).unwrap_err().to_string();
    assert!(error.starts_with("run.log: call "), "{error}");
}
