//! Small files, and what they must become.

use super::*;
use anysched_core::Time;

fn model(text: &str) -> Model {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Each task as `name @arrival: what it does [what is repeated] rounds`, times in µs; channels,
/// locks and barriers by number.
fn show(model: &Model) -> Vec<String> {
    let us = |span: Span| span.0 / 1000;
    let op = |op: &Op| match op {
        Op::Run(span) => format!("run {}", us(*span)),
        Op::Sleep(span) => format!("sleep {}", us(*span)),
        Op::Release { at, .. } => format!("release {}", at.0 / 1000),
        Op::Wait(Channel(n)) => format!("wait {n}"),
        Op::Signal(Channel(n)) => format!("signal {n}"),
        Op::Notify(Channel(n)) => format!("notify {n}"),
        Op::Broadcast(Channel(n)) => format!("broadcast {n}"),
        Op::Lock(Lock(n)) => format!("lock {n}"),
        Op::Unlock(Lock(n)) => format!("unlock {n}"),
        Op::Meet(barrier) => format!("meet {}", barrier.0),
        Op::Yield => "yield".into(),
        Op::SetNice(nice) => format!("nice {nice}"),
        Op::SetAffinity(cpus) => format!("on {cpus}"),
        Op::Spawn(task) => format!("spawn {task}"),
        Op::Exit => "exit".into(),
        Op::Write(_) | Op::Spin(_) | Op::Send(_) | Op::Reply(_) | Op::Measure(_) => {
            panic!("rt-app has no such event")
        }
    };
    let task = |task: &crate::model::ModelTask| {
        let name = task.new.name.as_deref().unwrap();
        let at = task.arrives.map_or("forked".into(), |at| format!("@{}", at.0 / 1000));
        let (once, again) = task.script.ops.split_at(task.script.repeat_from);
        let once: String = once.iter().map(|each| op(each) + ", ").collect();
        let again: Vec<String> = again.iter().map(op).collect();
        let rounds = match task.script.rounds {
            u64::MAX => "for ever".into(),
            rounds => rounds.to_string(),
        };
        format!("{name} {at}: {once}[{}] {rounds}", again.join(", "))
    };
    model.tasks.iter().map(task).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) -> Model {
    let model = model(text);
    assert_eq!(show(&model), expected);
    model
}

#[test]
fn events_are_done_in_the_order_of_the_file() {
    check(
        r#"{ "tasks": { "t": {  // sleeps between its runs
            "run": 5, "sleep": 7, "run": 6, "run_long": 30, "yield", "sleep0": 1,
        } } }"#,
        &["t @0: [run 5, sleep 7, run 6, run 30, yield, sleep 1] for ever"],
    );
}

#[test]
fn loops() {
    // Without phases, the number of rounds is the task's; endless is the default.
    check(r#"{"tasks":{"t":{"run":1,"loop":3}}}"#, &["t @0: [run 1] 3"]);
    check(r#"{"tasks":{"t":{"run":1,"loop":-1}}}"#, &["t @0: [run 1] for ever"]);
    check(r#"{"tasks":{"t":{"run":1,"loop":0}}}"#, &["t @0: [run 1] for ever"]);
    // With phases, those of a phase are within those of the task.
    let phases = |outer: i64, a: i64, b: i64| {
        format!(
            r#"{{"tasks":{{"t":{{"loop":{outer},"phases":{{
                "a":{{"loop":{a},"run":1}},"b":{{"run":2,"loop":{b}}}}}}}}}}}"#
        )
    };
    check(&phases(1, 2, 3), &["t @0: run 1, run 1, [run 2] 3"]);
    check(&phases(4, 2, 1), &["t @0: [run 1, run 1, run 2] 4"]);
    check(&phases(-1, 1, 2), &["t @0: [run 1, run 2, run 2] for ever"]);
    check(&phases(0, 1, 1), &["t @0: [] 1"]);
    check(&phases(5, 1, 0), &["t @0: run 1, [run 2] for ever"]);
    let stuck = check(&phases(5, -1, 2), &["t @0: [run 1] for ever"]);
    assert_eq!(stuck.warnings, ["`t` never leaves phase 1"]);
    // A single phase is not unrolled, however often it is done.
    check(
        r#"{"tasks":{"t":{"loop":1000000000,"phases":{"p":{"loop":1000000,"run":1}}}}}"#,
        &["t @0: [run 1] 1000000000000000"],
    );
    // Phases of the same name, and several lists of them.
    check(
        r#"{"tasks":{"t":{"loop":1,"phases":{"p":{"run":1},"p":{"run":2}},
            "phases":{"p":{"run":3}}}}}"#,
        &["t @0: run 1, run 2, [run 3] 1"],
    );
}

#[test]
fn the_duration_ends_endless_loops() {
    let model = check(
        r#"{"global":{"duration":2},"tasks":{
            "a":{"run":3000,"sleep":4000},
            "b":{"run":3000,"timer":{"ref":"unique","period":10000}},
            "c":{"loop":7,"run":1},
            "d":{"suspend":"d"}}}"#,
        &[
            "a @0: [run 3000, sleep 4000] 286",
            "b @0: [run 3000, release 10000] 200",
            "c @0: [run 1] 7",
            "d @0: [wait 0] for ever",
        ],
    );
    assert_eq!(model.until, Some(Time(2_000_000_000)));
    assert_eq!(super::read(&br#"{"tasks":{},"global":{"duration":-1}}"#[..]).unwrap().until, None);
}

#[test]
fn instances_delays_and_cpus() {
    let model = check(
        r#"{"tasks":{
            "a":{"instance":2,"delay":500,"cpus":[0,2,3],"run":1},
            "b":{"instance":0,"run":1},
            "c":{"cpus":[1],"loop":1,"phases":{
                "p":{"run":1},"q":{"cpus":[4],"run":2},"r":{"run":3}}}}}"#,
        &[
            "a-0 @500: [run 1] for ever",
            "a-1 @500: [run 1] for ever",
            "c @0: on 1, run 1, on 4, run 2, on 1, [run 3] 1",
        ],
    );
    let affinities: Vec<String> =
        model.tasks.iter().map(|task| task.new.affinity.to_string()).collect();
    assert_eq!(affinities, ["0,2-3", "0,2-3", "1"]);
}

#[test]
fn policies_and_priorities() {
    let model = check(
        r#"{"global":{"default_policy":"SCHED_BATCH"},"tasks":{
            "a":{"run":1},
            "b":{"priority":-7,"run":1},
            "c":{"policy":"SCHED_FIFO","run":1},
            "d":{"policy":"SCHED_RR","priority":40,"run":1},
            "e":{"policy":"SCHED_IDLE","run":1},
            "f":{"policy":"SCHED_DEADLINE","dl-runtime":2,"dl-period":9,"dl-deadline":8,"run":1},
            "g":{"nice":5,"loop":1,"phases":{"p":{"run":1},"q":{"priority":3,"run":1}}}}}"#,
        &[
            "a @0: [run 1] for ever",
            "b @0: [run 1] for ever",
            "c @0: [run 1] for ever",
            "d @0: [run 1] for ever",
            "e @0: [run 1] for ever",
            "f @0: [run 1] for ever",
            "g @0: run 1, nice 3, [run 1] 1",
        ],
    );
    let classes: Vec<(i8, i32)> =
        model.tasks.iter().map(|task| (task.new.nice, task.new.priority)).collect();
    assert_eq!(classes, [(0, 0), (-7, 0), (-20, 10), (-20, 40), (19, 0), (0, 0), (5, 0)]);
    let new = &model.tasks[5].new;
    let us = |n| Some(Span::from_us(n));
    assert_eq!((new.budget, new.period, new.relative_deadline), (us(2), us(9), us(8)));
    assert_eq!(
        model.warnings,
        [
            "SCHED_BATCH is taken as SCHED_OTHER (3 times)",
            "SCHED_FIFO and SCHED_RR are taken as nice -20 with a priority (2 times)",
            "SCHED_IDLE is taken as nice 19",
            "SCHED_DEADLINE is taken as SCHED_OTHER with a budget, a period and a \
             relative deadline",
        ]
    );
}

#[test]
fn timers_are_releases() {
    let model = check(
        r#"{"tasks":{
            "a":{"delay":50,"run":1,"timer":{"ref":"unique","period":100}},
            "b":{"timer":{"ref":"tick","period":100,"mode":"absolute"},"run":1,
                 "timer":{"ref":"tick","period":300}},
            "c":{"instance":2,"run":1,"timer":{"ref":"tick","period":7},
                 "timer":{"ref":"tock","period":8}}}}"#,
        &[
            "a @50: [run 1, release 100] for ever",
            "b @0: [release 100, run 1, release 300] for ever",
            "c-0 @0: [run 1, release 7, release 8] for ever",
            "c-1 @0: [run 1, release 7, release 8] for ever",
        ],
    );
    // Only the first is periodic: its job that arrives at 50 is due at 150, the next, which is
    // released 100 later, 200 later.
    let us = |n: u64| Time(n * 1000);
    let deadline = |task: usize| {
        let find = |op: &Op| match op {
            Op::Release { deadline, .. } => Some(*deadline),
            _ => None,
        };
        model.tasks[task].script.ops.iter().find_map(find).unwrap()
    };
    assert_eq!(model.tasks[0].new.period, Some(Span::from_us(100)));
    assert_eq!(model.tasks[0].new.deadline, Some(us(150)));
    assert_eq!((deadline(0), deadline(1)), (Some(us(200)), None));
    assert_eq!(model.tasks[1].new.period, None);
    let slips: Vec<bool> = model.tasks.iter().map(|task| task.script.slips).collect();
    assert_eq!(slips, [true, false, true, true]);
    assert_eq!(
        model.warnings,
        [
            "the timers of `c` are taken as one, firing in turn",
            "timer `tick` has 3 users; each has its own here",
            "timer `tock` has 2 users; each has its own here",
        ]
    );
}

#[test]
fn tasks_that_wait_for_each_other() {
    let model = check(
        r#"{"tasks":{
            "a":{"lock":"m","wait":{"ref":"q","mutex":"m"},"unlock":"m"},
            "b":{"lock":"m","signal":"q","broad":"q","unlock":"m"},
            "c":{"sync":{"ref":"q","mutex":"m"}},
            "d":{"suspend","run":1,"resume":"e"},
            "e":{"resume":"d","suspend":"e"},
            "f":{"sem_post":"q","sem_wait":"q"}}}"#,
        &[
            "a @0: [lock 0, unlock 0, wait 0, lock 0, unlock 0] for ever",
            "b @0: [lock 0, notify 0, broadcast 0, unlock 0] for ever",
            "c @0: [notify 0, unlock 0, wait 0, lock 0] for ever",
            // Tasks are numbered where they are first named.
            "d @0: [wait 2, run 1, broadcast 1] for ever",
            "e @0: [broadcast 2, wait 1] for ever",
            "f @0: [signal 3, wait 3] for ever",
        ],
    );
    assert_eq!((model.sizes.channels, model.sizes.locks), (4, 1));
    assert_eq!(model.warnings, [""; 0]);
}

#[test]
fn suspending_in_files_for_old_versions() {
    let model = check(
        r#"{"tasks":{
            "a1":{"suspend":"a","run":1},
            "a2":{"suspend":"a","run":2},
            "b":{"suspend":"a1","resume":"a","resume":"nobody"}}}"#,
        &[
            "a1 @0: [wait 0, run 1] for ever",
            "a2 @0: [wait 0, run 2] for ever",
            "b @0: [wait 2, broadcast 0, broadcast 1] for ever",
        ],
    );
    assert_eq!(
        model.warnings,
        [
            "`suspend` waits on a name that is no task's, as in files for old versions (2 times)",
            "the value of `suspend` has no effect",
            "nobody waits for `nobody`, which is signalled",
        ]
    );
}

#[test]
fn barriers_and_forks() {
    let model = check(
        r#"{"tasks":{
            "a":{"instance":3,"barrier":"x"},
            "b":{"barrier":"x","barrier_too":"y","loop":2},
            "c":{"instance":0,"delay":9,"run":1,"loop":1},
            "d":{"loop":1,"phases":{"p":{"fork":"c","fork":"b","run":4}}}}}"#,
        &[
            "c forked: [run 1] 1",
            "b forked: [meet 0, meet 1] 2",
            "a-0 @0: [meet 0] for ever",
            "a-1 @0: [meet 0] for ever",
            "a-2 @0: [meet 0] for ever",
            "b @0: [meet 0, meet 1] 2",
            "d @0: [spawn 0, spawn 1, run 4] 1",
        ],
    );
    assert_eq!(model.sizes.barriers, [4, 1]);
    assert_eq!(model.warnings, ["`delay` has no effect on a task that is forked"]);
}

#[test]
fn whatever_is_not_modelled_is_named() {
    let model = check(
        r#"{"global":{"calibration":"CPU0","ftrace":"none","gnuplot":true,"pi_enabled":false},
            "resources":{"m":{"type":"mutex"}},
            "tasks":{
                "a":{"taskgroup":"/x","util_min":3,"nodes_membind":[0],"mem":5,"iorun":6,"run":1,
                     "memrun":{"type":"chase"},"runtime":2},
                "b":{"run":9,"dl-runtime":1,"phases":{"p":{"mem":1,"util_max":9}}}}}"#,
        &["a @0: [run 1, run 2] for ever", "b @0: [] 1"],
    );
    assert_eq!(
        model.warnings,
        [
            "without effect in `global`: calibration, ftrace, gnuplot, pi_enabled",
            "`taskgroup` has no effect",
            "`util_min` has no effect",
            "`nodes_membind` has no effect",
            "`mem` has no effect (2 times)",
            "`iorun` has no effect",
            "`memrun` has no effect",
            "`runtime` is taken as CPU time, not as time that passes",
            "`run` beside `phases` has no effect",
            "`util_max` of a phase has no effect",
            "`dl-runtime`, `dl-period` and `dl-deadline` without SCHED_DEADLINE are kept as \
             budget, period and relative deadline",
        ]
    );
}

/// A file with one task, which begins on line 2.
fn in_task(inner: &str) -> String {
    format!("{{\"tasks\":\n{{\"t\":{{{inner}}}}}}}")
}

fn check_errors(cases: &[(String, &str)]) {
    for (text, error) in cases {
        let found = read(text.as_bytes()).expect_err(text);
        assert_eq!(found.to_string(), *error, "{text}");
    }
}

#[test]
fn malformed_files() {
    check_errors(&[
        ("[1]".into(), "line 1, column 1: a file of rt-app is an object in braces, not a list"),
        (
            "{}".into(),
            "line 1, column 1: there are no `tasks`; if this is a part of a load, put its parts \
             together first, as rt-app's merge.py does: `global`, `resources` and `tasks` in one \
             file",
        ),
        (
            "{\"task\":{}}".into(),
            "line 1, column 2: unknown key `task` in the file; did you mean `tasks`?",
        ),
        (
            "{\"tasks\":{},\"global\":{\"durations\":1}}".into(),
            "line 1, column 23: unknown key `durations` in `global`; did you mean `duration`?",
        ),
        (
            "{\"tasks\":{},\"global\":{\"duration\":1.5}}".into(),
            "line 1, column 34: `duration` takes a whole number of seconds, or -1 for no end, not \
             1.5",
        ),
        (
            in_task("\"slep\": 5"),
            "line 2, column 7: unknown key `slep` in a task; did you mean `sleep`?",
        ),
        (in_task("\"color\": 5"), "line 2, column 7: unknown key `color` in a task"),
        (
            in_task("\"loop\": 5"),
            "line 2, column 2: there are no events here, such as `run` or `sleep`",
        ),
        (in_task("\"phases\": {}"), "line 2, column 2: this task has no phases"),
        (
            in_task("\"phases\": {\"p\": {\"delay\": 1}}"),
            "line 2, column 24: unknown key `delay` in a phase",
        ),
        (in_task("\"run\":1") + "\u{e9}", "line 2, column 17: expected the end, found `é`"),
    ]);
    let error = read(&b"{\n  \"\xff\"}"[..]).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 4: not UTF-8; save the file as UTF-8");
}

#[test]
fn wrong_values() {
    check_errors(&[
        (
            in_task("\"run\": -5"),
            "line 2, column 14: `run` takes a whole number of microseconds from 0 to 18446744073709551, not -5",
        ),
        (
            in_task("\"run\": \"5\""),
            "line 2, column 14: `run` takes a whole number of microseconds from 0 to 18446744073709551, not \"5\"",
        ),
        (
            in_task("\"run\""),
            "line 2, column 12: `run` takes a whole number of microseconds from 0 to 18446744073709551, not nothing",
        ),
        (
            in_task("\"run\": 9223372036854775807"),
            "line 2, column 14: `run` takes a whole number of microseconds from 0 to 18446744073709551, not \
             9223372036854775807",
        ),
        (in_task("\"run\":1,\"loop\":1,\"loop\":2"), "line 2, column 24: `loop` is given twice"),
        (in_task("\"lock\": 7"), "line 2, column 15: `lock` takes a string, not 7"),
        (in_task("\"timer\": 7"), "line 2, column 16: `timer` is an object in braces, not 7"),
        (
            in_task("\"timer\": {\"mode\": \"fast\"}"),
            "line 2, column 25: `mode` is relative or absolute, not `fast`",
        ),
        (
            in_task("\"wait\": {\"reff\": \"q\"}"),
            "line 2, column 16: unknown key `reff` in `wait`; did you mean `ref`?",
        ),
        (
            in_task("\"run\":1,\"policy\":\"SCHED_FAST\""),
            "line 2, column 24: no policy `SCHED_FAST`; there are SCHED_OTHER, SCHED_BATCH, \
             SCHED_IDLE, SCHED_FIFO, SCHED_RR, SCHED_DEADLINE",
        ),
        (
            in_task("\"run\":1,\"priority\":20"),
            "line 2, column 26: `priority` takes a nice value from -20 to 19, not 20",
        ),
        (
            in_task("\"run\":1,\"policy\":\"SCHED_RR\",\"priority\":0"),
            "line 2, column 46: `priority` takes a real-time priority from 1 to 99, not 0",
        ),
        (
            in_task("\"run\":1,\"priority\":1,\"nice\":1"),
            "line 2, column 28: `priority` and `nice` are the same; give one of them",
        ),
        (
            in_task("\"run\":1,\"cpus\":[0,1024]"),
            "line 2, column 25: `cpus` takes a list of CPU numbers from 0 to 1023, not 1024",
        ),
        (
            in_task("\"run\":1,\"cpus\":[]"),
            "line 2, column 22: `cpus` takes a list of CPU numbers from 0 to 1023, not an \
             empty one",
        ),
        (
            in_task("\"fork\": \"tt\""),
            "line 2, column 15: there is no task `tt`; did you mean `t`?",
        ),
        (
            in_task("\"run\":1,\"instance\":70000"),
            "line 2, column 2: with this there are more than 65536 tasks",
        ),
        (
            in_task("\"phases\":{\"p\":{\"run\":1,\"loop\":5000000},\"q\":{\"run\":1}}"),
            "line 2, column 2: with this there are more than 4194304 events",
        ),
    ]);
}

/// Tasks as before 2014, with a file's parts put together.
#[test]
fn tasks_of_old_versions() {
    let text = r#"{
        "resources": {
            "m": { "type": "mutex" }, "inner": { "type": "mutex" },
            "go": { "type": "wait" },
            "one": { "type": "signal", "target": "go" },
            "all": { "type": "broadcast", "target": "go" }
        },
        "tasks": {
            "waits": { "exec": 5000, "period": 9000, "deadline": 8000,
                "lock_order": ["m", "go"],
                "resources": {
                    "m": { "duration": 1000, "access": ["inner"] },
                    "go": { "duration": 500, "access": ["m"] } } },
            "wakes": { "exec": 300, "period": 1000,
                "lock_order": ["one", "all"],
                "resources": { "all": { "duration": 0, "access": ["m"] } } }
        }
    }"#;
    let model = read(text.as_bytes()).unwrap();
    model.validate().unwrap();
    let run = |us| Op::Run(Span::from_us(us));
    let release = |at, deadline| Op::Release {
        at: Time::ZERO + Span::from_us(at),
        deadline: Some(Time::ZERO + Span::from_us(deadline)),
    };
    let (inner, m, go) = (Lock(0), Lock(1), Channel(0));
    assert_eq!(
        model.tasks[0].script.ops,
        [
            Op::Lock(inner),
            Op::Lock(m),
            run(1000),
            Op::Unlock(m),
            Op::Unlock(inner),
            Op::Lock(m),
            Op::Unlock(m),
            Op::Wait(go),
            Op::Lock(m),
            run(500),
            Op::Unlock(m),
            run(3500),
            release(9000, 17_000),
        ]
    );
    assert_eq!(
        model.tasks[1].script.ops,
        [
            Op::Notify(go),
            Op::Lock(m),
            Op::Broadcast(go),
            Op::Unlock(m),
            run(300),
            release(1000, 2000),
        ]
    );
    let new = &model.tasks[0].new;
    assert_eq!(new.relative_deadline, Some(Span::from_us(8000)));
    assert_eq!(new.deadline, Some(Time::ZERO + Span::from_us(8000)));
    assert!(!model.tasks[0].script.slips);
}

#[test]
fn parts_of_a_load_say_what_they_are() {
    let remedy = "if this is a part of a load, put its parts together first, as rt-app's merge.py \
                  does: `global`, `resources` and `tasks` in one file";
    let cases = [
        (
            "{\"resources\": {}}".to_string(),
            format!("line 1, column 1: there are no `tasks`; {remedy}"),
        ),
        (
            "{\"tasks\": {\"t\": {\"exec\": 5, \"lock_order\": [\"m0\"]}}}".to_string(),
            format!("line 1, column 44: `resources` of the file does not have `m0`; {remedy}"),
        ),
        (
            "{\"tasks\": {\"t\": {\"exec\": 5, \"lock_order\": \"m0\"}}}".to_string(),
            "line 1, column 43: `lock_order` takes a list of names, not \"m0\"".to_string(),
        ),
        (
            "{\"tasks\": {\"t\": {\"exec\": 0}}}".to_string(),
            "line 1, column 12: this task neither runs nor waits".to_string(),
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1, \"resources\": {}}}}".to_string(),
            "line 1, column 28: unknown key `resources` in a task".to_string(),
        ),
    ];
    let cases: Vec<_> = cases.iter().map(|(text, error)| (text.clone(), error.as_str())).collect();
    check_errors(&cases);
}
