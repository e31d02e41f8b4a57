//! What a demanding new user did in the first hour, and what has to come of it now: a table of
//! commands, and the tests that have the rest of it.

#![cfg(unix)]

mod program;

use program::Folder;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Something that was tried. The files stay as they are.
struct Row {
    did: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// What the last command reads from standard input.
    input: &'static str,
    /// One after another; what is expected is of the last one, and the others succeed.
    commands: &'static [&'static [&'static str]],
    code: i32,
    /// Parts of standard output, and of standard error.
    out: &'static [&'static str],
    err: &'static [&'static str],
    /// What is nowhere in either.
    never: &'static [&'static str],
}

const NOTHING: Row =
    Row { did: "", files: &[], input: "", commands: &[], code: 0, out: &[], err: &[], never: &[] };

const SMALL: (&str, &str) = (
    "small.toml",
    "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\n\
     tasks = 3\nservice = \"1ms\"\n",
);

/// Three tasks whose turns are much shorter than a column of a chart.
const ROUND: (&str, &str) = (
    "round.toml",
    "question = \"?\"\npolicy = { name = \"rr\", quantum = \"1ms\" }\n[machine]\ncpus = 1\n\
     [[workload]]\nkind = \"batch\"\ntasks = 3\nservice = \"80ms\"\n",
);

const SERVED: (&str, &str) = (
    "served.toml",
    "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"service\"\n\
     rate = 100\nservice = \"1ms\"\nrequests = 5\n[report]\n\
     columns = [\"job_response_time_ns_p99\"]\n",
);

/// By hand: two web tasks of 1 ms are over after 1 and 2 ms, the batch behind them after 52.
const APART: (&str, &str) = (
    "apart.toml",
    "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\n\
     name = \"web\"\ntasks = 2\nservice = \"1ms\"\n[[workload]]\nkind = \"batch\"\n\
     name = \"batch\"\ntasks = 1\nservice = \"50ms\"\n[report]\n\
     columns = [\"workload.web.turnaround_ns_max\", \"workload.batch.turnaround_ns_max\"]\n\
     [[claim]]\nid = \"web\"\ntext = \"Web is done at 2 ms\"\n\
     expect = \"fcfs.workload.web.turnaround_ns_max <= 2ms\"\n",
);

/// Tasks of 25 in 50 and 30 in 75 ms: by deadlines the second is done after 55 ms, by fixed
/// priorities after 80, when its deadline is over.
const DEADLINES: (&str, &str) = (
    "deadlines.toml",
    "question = \"?\"\npolicy = [\"edf\", \"dm\"]\nduration = \"150ms\"\n[machine]\ncpus = 1\n\
     [[workload]]\nkind = \"periodic\"\nname = \"a\"\nperiod = \"50ms\"\nrun = \"25ms\"\n\
     [[workload]]\nkind = \"periodic\"\nname = \"b\"\nperiod = \"75ms\"\nrun = \"30ms\"\n\
     [report]\ncolumns = [\"task.b.job_response_time_ns_max\", \"task.b.deadline_miss_ratio\"]\n",
);

/// More than the CPU has.
const OVERLOAD: (&str, &str) = (
    "overload.toml",
    "question = \"?\"\npolicy = \"edf\"\nduration = \"60ms\"\n[machine]\ncpus = 1\n\
     [[workload]]\nkind = \"periodic\"\nname = \"a\"\nperiod = \"10ms\"\nrun = \"5ms\"\n\
     [[workload]]\nkind = \"periodic\"\nname = \"b\"\nperiod = \"20ms\"\nrun = \"12ms\"\n",
);

const LOCKS: (&str, &str) = (
    "locks.json",
    "{\"tasks\": {\"a\": {\"loop\": 1, \"lock\": \"m\", \"run\": 1000, \"lock0\": \"n\", \"run1\": 9, \
     \"unlock\": \"n\", \"unlock0\": \"m\"},\n\"b\": {\"loop\": 1, \"lock\": \"n\", \"run\": 1000, \
     \"lock0\": \"m\", \"run1\": 9, \"unlock\": \"m\", \"unlock0\": \"n\"}}}",
);

const TABLE: (&str, &str) = (
    "table.csv",
    "submitted,took,who\n5,10,plain\n6,10,\u{1b}[31mred\n\"7\",\"10\",\"two\nlines\"\n",
);

const TAKEN: [&str; 9] =
    ["import", "csv", "table.csv", "--arrival", "submitted", "--service", "took", "--unit", "ms"];

const ROWS: &[Row] = &[
    Row {
        did: "a chart onto what is read",
        files: &[SMALL],
        commands: &[&["plot", "small.toml", "--y", "makespan_ns", "--out", "small.toml"]],
        code: 1,
        err: &["small.toml cannot be written: it is read, too; give the output another name"],
        ..NOTHING
    },
    Row {
        did: "an import onto its own input",
        files: &[LOCKS],
        commands: &[&["import", "rt-app", "locks.json", "-o", "locks.json"]],
        code: 1,
        err: &["locks.json cannot be written: it is read, too"],
        ..NOTHING
    },
    Row {
        did: "tails of the web tasks beside a batch",
        files: &[APART],
        commands: &[&["run", "apart.toml", "--format", "csv", "--by", "workload"]],
        out: &["workload,", ",web,", ",batch,"],
        ..NOTHING
    },
    Row {
        did: "the same as columns and as a claim",
        files: &[APART],
        commands: &[&["run", "apart.toml"]],
        out: &["web", "batch", "52", "holds"],
        ..NOTHING
    },
    Row {
        did: "a real-time set with U = 1.1",
        files: &[OVERLOAD],
        commands: &[&["run", "overload.toml", "--by", "task"]],
        out: &["edf     all", "        a ", "        b "],
        err: &["overload: the workloads ask for 1.10 CPUs and there is 1"],
        ..NOTHING
    },
    Row {
        did: "its chart: releases, deadlines, misses",
        files: &[OVERLOAD],
        commands: &[&["gantt", "overload.toml"]],
        out: &["^", "v deadline", "! deadline missed"],
        ..NOTHING
    },
    Row {
        did: "textbook deadlines and fixed priorities",
        files: &[DEADLINES],
        commands: &[&["run", "deadlines.toml"]],
        out: &["edf ", "55", "dm ", "80"],
        ..NOTHING
    },
    Row {
        did: "looked for the metrics",
        commands: &[&["metrics"]],
        out: &["turnaround_ns", "wakeup_latency_ns", "deadline_miss_ratio"],
        ..NOTHING
    },
    Row {
        did: "looked for `smt`",
        commands: &[&["explain", "smt"]],
        out: &["`smt` of [machine]: number, 0 to 1; without it: 1.0", "smt = 0.6"],
        ..NOTHING
    },
    Row {
        did: "looked for `capacity`",
        commands: &[&["explain", "capacity"]],
        out: &["`capacity` of [machine]: list of 1 to 1024, one per CPU", "capacity = [1024"],
        ..NOTHING
    },
    Row {
        did: "looked for `ipi`",
        commands: &[&["explain", "ipi"]],
        out: &["`ipi` of [machine]: time; without it: \"0\"", "ipi = \"1us\""],
        ..NOTHING
    },
    Row {
        did: "looked for types and defaults of a load's keys",
        commands: &[&["workloads", "service"]],
        out: &["key ", "type", "default", "hop           time                          50us"],
        ..NOTHING
    },
    Row {
        did: "looked for a schema for an editor",
        commands: &[&["schema"]],
        out: &["https://json-schema.org/draft/2020-12/schema", "\"question\""],
        ..NOTHING
    },
    Row {
        did: "a metric that the load does not have",
        files: &[SERVED],
        commands: &[&["run", "served.toml"]],
        out: &["No data of job_response_time_ns", "There is wakeup_latency_ns"],
        ..NOTHING
    },
    Row {
        did: "recorded an experiment of several rows",
        files: &[SMALL],
        commands: &[
            &["run", "small.toml", "--sweep", "machine.cpus=1,2", "--record", "run.log"],
            &["replay", "run-1.log"],
        ],
        out: &["no decision differs"],
        ..NOTHING
    },
    Row {
        did: "the names of what was written",
        files: &[SMALL],
        commands: &[&["run", "small.toml", "--sweep", "machine.cpus=1,2", "--record", "run.log"]],
        err: &["anysched: wrote run-0.log\n", "anysched: wrote run-1.log\n"],
        ..NOTHING
    },
    Row {
        did: "plotted along what is not varied",
        files: &[SMALL],
        commands: &[&["plot", "small.toml", "--x", "machine.cpus", "--y", "makespan_ns"]],
        code: 1,
        err: &["`machine.cpus` is no axis", "or vary it: --sweep machine.cpus=VALUE,…"],
        ..NOTHING
    },
    Row {
        did: "varied it",
        files: &[SMALL],
        commands: &[&[
            "plot",
            "small.toml",
            "--sweep",
            "machine.cpus=1,3",
            "--x",
            "machine.cpus",
            "--y",
            "makespan_ns",
            "--format",
            "text",
        ]],
        out: &["machine.cpus", "\n1 ", "\n3 "],
        ..NOTHING
    },
    Row {
        did: "compared policies without an axis",
        files: &[SMALL],
        commands: &[&["plot", "small.toml", "--y", "makespan_ns", "--format", "text"]],
        out: &["rr  █"],
        ..NOTHING
    },
    Row {
        did: "a chart of turns of 1 ms over 240",
        files: &[ROUND],
        commands: &[&["gantt", "round.toml"]],
        out: &["|50ms", "240ms|", "0 task 0        ▒▒▒▒", "less than half of the column"],
        never: &["....", "240.000024ms"],
        ..NOTHING
    },
    Row {
        did: "the same as a picture",
        files: &[ROUND],
        commands: &[&["gantt", "round.toml", "--format", "svg"]],
        out: &["<svg ", "</svg>"],
        ..NOTHING
    },
    Row {
        did: "read the scheduler's events of a trace for Perfetto",
        files: &[ROUND],
        commands: &[
            &["run", "round.toml", "--trace", "round.pftrace"],
            &["import", "perfetto", "round.pftrace", "-o", "again.json"],
        ],
        err: &["3 tasks in again.json"],
        ..NOTHING
    },
    Row {
        did: "the manual of a command",
        commands: &[&["man", "run"]],
        out: &[".TH anysched-run 1"],
        ..NOTHING
    },
    Row {
        did: "a run of 34 years",
        input: "question = \"?\"\npolicy = \"rr\"\nduration = \"300000h\"\n[machine]\ncpus = 1\n\
                [[workload]]\nkind = \"hog\"\n",
        commands: &[&["run", "-"]],
        code: 1,
        err: &["stdin:3:12", "what can be simulated ends after"],
        ..NOTHING
    },
    Row {
        did: "a service of 292 years",
        files: &[SMALL],
        commands: &[&["run", "small.toml", "--set", "workload.0.service=9223372036854775807ns"]],
        code: 1,
        err: &["this load takes at least 876.8 years", "what can be simulated ends after"],
        ..NOTHING
    },
    Row {
        did: "an absurd rate",
        input: "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 1\n[[workload]]\n\
                kind = \"open\"\ntasks = 9\nrate = 1e300\nservice = \"1ms\"\n",
        commands: &[&["run", "-"]],
        err: &["the workloads ask for 1e297 CPUs and there is 1"],
        never: &["00000000000"],
        ..NOTHING
    },
    Row {
        did: "tasks that take two locks in opposite orders",
        files: &[LOCKS],
        input: "question = \"?\"\npolicy = { name = \"rr\", quantum = \"500us\" }\n[machine]\n\
                cpus = 1\n[[workload]]\nkind = \"model\"\nfile = \"model.json\"\n",
        commands: &[&["import", "rt-app", "locks.json", "-o", "model.json"], &["run", "-"]],
        err: &[
            "rr: deadlock: a waits for lock 1, which b holds; b waits for lock 0, which a holds",
        ],
        ..NOTHING
    },
    Row {
        did: "a name that terminals obey",
        input: "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 1\n[[workload]]\n\
                kind = \"batch\"\nname = \"\\u001b[31m\"\ntasks = 1\nservice = \"1ms\"\n",
        commands: &[&["run", "-"]],
        code: 1,
        err: &["stdin:7:8", "a text with the control character \\u{1b}"],
        ..NOTHING
    },
    Row {
        did: "a name of two lines",
        input: "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 1\n[[workload]]\n\
                kind = \"batch\"\nname = \"a\\nb\"\ntasks = 1\nservice = \"1ms\"\n",
        commands: &[&["run", "-"]],
        code: 1,
        err: &["stdin:7:8", "`name` = \"a\\nb\" has a line end or another control character"],
        ..NOTHING
    },
    Row {
        did: "such names in a file",
        files: &[TABLE],
        input: "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 1\n[[workload]]\n\
                kind = \"tasks\"\nfile = \"tasks.csv\"\n",
        commands: &[
            &[
                "import",
                "csv",
                "table.csv",
                "--arrival",
                "submitted",
                "--service",
                "took",
                "--unit",
                "ms",
                "--set",
                "name=who",
                "-o",
                "tasks.csv",
            ],
            &["gantt", "-"],
        ],
        out: &["0 plain", "1 \\u{1b}[31mre ", "2 two\\nlines"],
        ..NOTHING
    },
    Row {
        did: "forgot the question",
        input: "[machine]\ncpus = 0\n[[workload]]\nkind = \"batch\"\ntasks = \"x\"\n",
        commands: &[&["run", "-", "--policy", "rr,cfs"]],
        code: 1,
        err: &["no `question`", "`cpus` = 0 is out of range", "`tasks` is a whole", "no `service`"],
        ..NOTHING
    },
    Row {
        did: "forgot the load",
        input: "question = \"?\"\npolicy = { name = \"rr\", quantum = 5 }\n[machine]\ncpus = 0\n\
                [[claim]]\nid = \"1\"\nexpect = \"rr.makespan_ns <\"\n",
        commands: &[&["run", "-"]],
        code: 1,
        err: &["no load", "`cpus` = 0", "`quantum` of policy `rr`", "no `text`"],
        ..NOTHING
    },
    Row {
        did: "policies from the command line alone",
        input: "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\ntasks = 2\n\
                service = \"1ms\"\n",
        commands: &[&["run", "-", "--policy", "rr,sjf"]],
        out: &["\nrr ", "\nsjf "],
        ..NOTHING
    },
    Row {
        did: "`hotplug` as a number",
        files: &[SMALL],
        commands: &[&["run", "small.toml", "--set", "machine.hotplug=5"]],
        code: 1,
        err: &["`hotplug` is a list of tables, not 5", "begins with a line `[[machine.hotplug]]`"],
        ..NOTHING
    },
    Row {
        did: "`hotplug` in the wrong place",
        input: "question = \"?\"\nhotplug = 5\n",
        commands: &[&["run", "-"]],
        code: 1,
        err: &["no key `hotplug` in an experiment", "`hotplug` is a key of [machine]"],
        ..NOTHING
    },
    Row {
        did: "an error in --set",
        files: &[SMALL],
        commands: &[&["run", "small.toml", "--set", "workload.0.tasks=x"]],
        code: 1,
        err: &["--> command line for small.toml:1:20"],
        ..NOTHING
    },
    Row {
        did: "trace.dat as text",
        files: &[("trace.dat", "\u{17}\u{8}Dtracing6\0\0")],
        commands: &[&["import", "ftrace", "trace.dat", "-o", "load.json"]],
        code: 1,
        err: &["this is not ftrace but trace-dat", "`anysched import trace-dat FILE -o load.json`"],
        ..NOTHING
    },
    Row {
        did: "perf.data as text",
        files: &[("perf.data", "PERFILE2\u{10}\0\0\0\0\0\0\0")],
        commands: &[&["import", "ftrace", "perf.data", "-o", "load.json"]],
        code: 1,
        err: &["this is not ftrace but perf-data", "`anysched import perf-data FILE -o load.json`"],
        ..NOTHING
    },
    Row {
        did: "a part of a load for rt-app",
        files: &[("part.json", "{\"resources\": {\"m\": {\"type\": \"mutex\"}}}")],
        commands: &[&["import", "rt-app", "part.json", "-o", "load.json"]],
        code: 1,
        err: &["there are no `tasks`; if this is a part of a load, put its parts together first"],
        ..NOTHING
    },
    Row {
        did: "a load for rt-app that never ends",
        files: &[("ever.json", "{\"tasks\": {\"a\": {\"loop\": -1, \"run\": 5, \"sleep\": 5}}}")],
        commands: &[&["import", "rt-app", "ever.json", "-o", "load.json"]],
        out: &["duration = \"10s\" # the load never ends"],
        ..NOTHING
    },
    Row {
        did: "a job log of too many tasks",
        files: &[("jobs.swf", "1 0 -1 10 3000000 -1 -1 3000000 -1 -1 1 3 1 -1 -1 -1 -1 -1\n")],
        commands: &[&["import", "swf", "jobs.swf", "-o", "load.json"]],
        code: 1,
        err: &["2097152", "--jobs", "processors=one-task"],
        ..NOTHING
    },
    Row {
        did: "a job log with 19 fields",
        files: &[("jobs.swf", "1 0 -1 10 1 -1 -1 1 -1 -1 1 3 1 -1 -1 -1 -1 -1 7\n")],
        commands: &[&["import", "swf", "jobs.swf", "-o", "load.json"]],
        err: &["1 tasks in load.json", "more are not used"],
        ..NOTHING
    },
    Row {
        did: "the table of a cluster",
        files: &[TABLE],
        commands: &[&[
            TAKEN[0], TAKEN[1], TAKEN[2], TAKEN[3], TAKEN[4], TAKEN[5], TAKEN[6], TAKEN[7],
            TAKEN[8], "-o", "load.csv",
        ]],
        out: &["kind = \"tasks\"", "file = \"load.csv\""],
        err: &["3 tasks in load.csv"],
        ..NOTHING
    },
];

/// What is tested elsewhere: the crate, the file and the test.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "outputs that are devices, pipes, links, read-only",
        "cli/tests/nothing_lost.rs",
        "devices_pipes_links_and_read_only_files_stay_what_they_are",
    ),
    ("outputs that are inputs", "cli/tests/nothing_lost.rs", "what_is_read_is_not_replaced"),
    (
        "Ctrl-C over earlier results",
        "cli/tests/nothing_lost.rs",
        "an_interrupted_run_keeps_older_results_and_goes_on",
    ),
    ("Ctrl-C in a long run", "cli/tests/nothing_lost.rs", "ctrl_c_ends_a_long_run_within_a_second"),
    ("finished seeds after Ctrl-C", "cli/tests/command.rs", "ctrl_c_prints_what_there_is"),
    (
        "two experiments of one name",
        "cli/tests/nothing_lost.rs",
        "two_experiments_of_one_name_have_a_folder_each",
    ),
    (
        "progress of long runs",
        "cli/src/progress.rs",
        "lines_come_ever_more_seldom_and_not_for_what_is_over_soon",
    ),
    ("textbook numbers", "cli/tests/anywhere.rs", "papers_are_reproduced_anywhere"),
    ("manual pages", "cli/tests/anywhere.rs", "manual_pages_are_installed"),
    ("completion in bash", "cli/tests/shells.rs", "bash_completes"),
    ("completion in zsh", "cli/tests/shells.rs", "zsh_completes"),
    ("completion in fish", "cli/tests/shells.rs", "fish_completes"),
    (
        "`reproduce` outside the repository",
        "cli/tests/anywhere.rs",
        "papers_are_reproduced_anywhere",
    ),
    ("runs that nobody can wait for", "lab/tests/lab/errors.rs", "runs_that_would_not_end"),
    ("all that is wrong at once", "lab/tests/lab/errors.rs", "all_that_is_wrong_is_said_at_once"),
    (
        "an experiment from a pipe",
        "cli/tests/command.rs",
        "an_experiment_comes_from_a_pipe_and_its_policies_and_axes_from_the_command_line",
    ),
    ("deadlocks", "cli/tests/look.rs", "a_run_that_ends_in_a_deadlock_says_so"),
    ("bars and boxes", "cli/tests/plot.rs", "bars_and_boxes_have_no_axis"),
    ("who waited for whom", "cli/tests/look.rs", "why_tells_a_wait"),
    (
        "recordings of all formats",
        "workload/src/import/trace_dat.rs",
        "a_recording_is_the_same_in_every_format",
    ),
];

/// The code that it exits with, and what it prints and says.
fn said(row: &Row) -> (Option<i32>, String, String) {
    let folder = Folder::new();
    for (name, contents) in row.files {
        folder.write(name, contents);
    }
    let (last, before) = row.commands.split_last().unwrap();
    before.iter().for_each(|args| drop(folder.stdout(args)));
    let mut command = folder.command(last);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = command.spawn().unwrap();
    // Most do not read it.
    let _ = program.stdin.take().unwrap().write_all(row.input.as_bytes());
    let output = program.wait_with_output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    for (name, contents) in row.files {
        assert!(folder.read(name) == contents.as_bytes(), "{}: {name} has changed", row.did);
    }
    if row.code != 0 {
        assert_eq!(folder.names().len(), row.files.len(), "{}: {:?}", row.did, folder.names());
    }
    (output.status.code(), out, err)
}

#[test]
fn what_was_tried_comes_out_as_expected() {
    let mut wrong = Vec::new();
    for row in ROWS {
        let (code, out, err) = said(row);
        if code != Some(row.code) {
            wrong.push(format!("{}: exits with {code:?}:\n{out}{err}", row.did));
        }
        for (what, text, parts) in [("out", &out, row.out), ("err", &err, row.err)] {
            for part in parts.iter().filter(|part| !text.contains(**part)) {
                wrong.push(format!("{}: {part:?} is not in std{what}:\n{out}{err}", row.did));
            }
        }
        for part in row.never.iter().filter(|part| out.contains(**part) || err.contains(**part)) {
            wrong.push(format!("{}: {part:?}:\n{out}{err}", row.did));
        }
        if (out + &err).contains(|c: char| c.is_control() && c != '\n') {
            wrong.push(format!("{}: a control character is printed", row.did));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_tested_elsewhere_is_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (did, file, test) in ELSEWHERE {
        let text = fs::read_to_string(crates.join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}()")), "{did}: {file} has no test {test}");
    }
}
