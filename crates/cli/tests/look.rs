//! `anysched why` and `anysched diff`, as a user calls them.

mod program;

use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Recorder, Scheduler, Span, TaskId,
    TaskParams, Time,
};
use program::Folder;
use serde_json::Value;

/// Three tasks on one CPU that need 24, 3 and 3 ms.
const ROUND: &str = "question = \"Who waits for whom?\"\n[machine]\ncpus = 1\n\
    [[workload]]\nkind = \"batch\"\nname = \"P1\"\ntasks = 1\nservice = \"24ms\"\n\
    [[workload]]\nkind = \"batch\"\nname = \"P\"\ntasks = 2\nservice = \"3ms\"\n\
    [sweep]\npolicy = [\"fcfs\", { name = \"rr\", quantum = \"4ms\" }, \"srpt\"]\n";

fn round() -> Folder {
    let folder = Folder::new();
    folder.write("round.toml", ROUND);
    folder
}

#[test]
fn why_tells_a_wait() {
    let folder = round();
    let args = ["why", "round.toml", "--policy", "rr", "--task", "P-1", "--at", "5ms"];
    let expected = "\
P-1 (task 2) waited 7ms under rr, from 0 (new) to 7ms, when CPU 0 took it.

Meanwhile
  CPU 0: P1 (task 0) had it 4ms (its slice ended), P-0 (task 1) had it 3ms
      (ended)

When it became ready
  P-1: quantum left 4ms
  CPU 0 was idle

What rr chose instead
  0 CPU 0: P1 for at most 4ms: a tie: first come, first served
  4ms CPU 0: P-0 for at most 4ms: a tie: first come, first served
  7ms CPU 0: P-1 after P-0 (ended): quantum left 4ms
";
    assert_eq!(folder.stdout(&args), expected);
    let json = folder.stdout(&[&args[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["to_ns"], 7_000_000);
    assert_eq!(json["ran_meanwhile"][0]["time_ns"], 4_000_000);
    assert_eq!(json["choices"][1]["picked"]["name"], "P-0");
}

#[test]
fn why_says_what_to_ask_instead() {
    let folder = round();
    let why = |task, at, policy| {
        folder.stderr(&["why", "round.toml", "--policy", policy, "--task", task, "--at", at])
    };
    assert_eq!(
        why("Q", "5ms", "rr"),
        "anysched: --task \"Q\": there is no such task; there are P1, P-0, P-1\n"
    );
    assert_eq!(
        why("P1", "2ms", "rr"),
        "anysched: --at 2ms: P1 (task 0) ran then: on CPU 0 from 0, until 4ms; it first waits from \
         4ms to 10ms (6ms, its slice ended)\n"
    );
    assert_eq!(
        why("P-0", "9ms", "rr"),
        "anysched: --at 9ms: P-0 (task 1) had ended at 7ms; it last waited from 0 to 4ms (4ms, \
         new)\n"
    );
    assert_eq!(
        why("P1", "5ms", "rr,fcfs"),
        "anysched: --policy: it takes one policy, of rr, fcfs\n"
    );
}

/// Round robin: P1 waits from 4 to 10 ms, P-0 from 0 to 4, P-1 from 0 to 7.
#[test]
fn the_longest_wait_is_found() {
    let folder = round();
    let longest = ["why", "round.toml", "--policy", "rr", "--longest"];
    let told = folder.stdout(&longest);
    assert!(told.starts_with("P-1 (task 2) waited 7ms under rr, from 0 (new) to 7ms"), "{told}");
    let told = folder.stdout(&[&longest[..], &["--task", "P1"]].concat());
    assert!(told.starts_with("P1 (task 0) waited 6ms under rr, from 4ms"), "{told}");
    let errors = folder.stderr(&[&longest[..], &["--task", "Q"]].concat());
    assert_eq!(errors, "anysched: --task \"Q\": there is no such task; there are P1, P-0, P-1\n");
    let errors = folder.stderr(&["why", "round.toml", "--policy", "rr", "--task", "P1"]);
    assert!(errors.contains("--at <TIME>"), "{errors}");
}

#[test]
fn diff_tells_where_two_schedules_part() {
    let folder = round();
    let expected = "\
fcfs and rr part at 4ms on CPU 0, after 1 step alike.
  fcfs goes on with P1 (task 0)
  rr runs P-0 (task 1): ready since 0, before 4ms

Just before
  P1 (task 0), on CPU 0 since 0
      rr: quantum left 4ms
  P-0 (task 1), ready since 0
      rr: quantum left 4ms
  P-1 (task 2), ready since 0
      rr: quantum left 4ms

What came of it
  P1 (task 0): with fcfs it goes on and ends at 24ms; with rr it is picked at
      10ms and ends at 30ms, 6ms later
  P-0 (task 1): with fcfs it is picked at 24ms and ends at 27ms; with rr it is
      picked at 4ms and ends at 7ms, 20ms earlier
  P-1 (task 2): with fcfs it is picked at 27ms and ends at 30ms; with rr it is
      picked at 7ms and ends at 10ms, 20ms earlier
";
    assert_eq!(folder.stdout(&["diff", "round.toml", "--policy", "fcfs,rr"]), expected);
    let json = folder.stdout(&["diff", "round.toml", "--policy", "fcfs,rr", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["sides"][1]["runs"]["name"], "P-0");
    assert_eq!(json["sides"][0]["at_ns"], 4_000_000);
    // With a quantum as long as that, round robin is first come, first served.
    let set = ["diff", "round.toml", "--policy", "fcfs,rr", "--set", "quantum=1s"];
    let text = folder.stdout(&set);
    assert_eq!(text, "fcfs and rr do not part: 4 steps alike\n");
    let errors = folder.stderr(&["diff", "round.toml", "--policy", "rr"]);
    assert_eq!(
        errors,
        "anysched: there is only rr: it takes two policies, --policy A,B, or two logs\n"
    );
}

#[test]
fn logs_are_looked_into_as_runs_are() {
    let folder = round();
    folder.stdout(&["run", "round.toml", "--policy", "rr", "--record", "rr.log"]);
    folder.stdout(&["run", "round.toml", "--policy", "srpt", "--record", "srpt.log"]);
    let told = folder.stdout(&["why", "rr.log", "--task", "2", "--at", "5ms"]);
    assert!(told.starts_with("task 2 waited 7ms under rr, from 0 (new) to 7ms"), "{told}");
    let told = folder.stdout(&["diff", "rr.log", "srpt.log"]);
    assert!(told.starts_with("rr and srpt part at 0 on CPU 0, the first step.\n"), "{told}");
    let errors = folder.stderr(&["why", "rr.log", "--task", "2", "--at", "5ms", "--policy", "rr"]);
    assert_eq!(
        errors,
        "anysched: --policy: rr.log is a log, which names its policy and parameters itself\n"
    );
}

const MS: u64 = 1_000_000;
/// What a kernel needs between two tasks.
const SWITCH: u64 = 3_000;

/// The load of [`ROUND`] as a kernel of one CPU records it under round robin: it does not know how
/// long tasks will run, it creates them one after the other, a tick comes on its way, and between
/// two tasks there is a switch.
fn recorded_by_a_kernel() -> Vec<u8> {
    let machine = Machine::flat(1).unwrap().with_tick(Some(Span(3 * MS)));
    let settings = [("quantum", "4ms")];
    let rr = (anysched_policies::policy("rr").unwrap().build)(&machine, &settings).unwrap();
    let mut rr = Recorder::new(rr, &machine, "rr", &settings, Vec::new());
    let mut kicks = CpuMask::EMPTY;
    let mut now = MS;
    for task in 0..3 {
        let mut cx = Cx::new(Time(now), &mut kicks);
        rr.attach(&mut cx, TaskId(task), &TaskParams::default());
        rr.enqueue(&mut cx, TaskId(task), Arrival::because(Enqueue::New));
        now += 10_000;
    }
    let mut left = [24 * MS, 3 * MS, 3 * MS];
    while let Some(pick) = rr.pick_next(&mut Cx::new(Time(now), &mut kicks), CpuId(0)) {
        let of_task = &mut left[pick.task.0 as usize];
        let ran = pick.slice.0.min(*of_task);
        *of_task -= ran;
        let why = if *of_task == 0 { Off::Exited } else { Off::Expired };
        let told = if ran > 3 * MS { 3 * MS } else { 0 };
        if told > 0 {
            let mut cx = Cx::new(Time(now + told), &mut kicks);
            rr.tick(&mut cx, CpuId(0), pick.task, Span(told));
        }
        now += ran + SWITCH;
        let mut cx = Cx::new(Time(now), &mut kicks);
        rr.put_prev(&mut cx, CpuId(0), pick.task, Span(ran - told), why);
        if why == Off::Exited {
            rr.detach(&mut cx, pick.task);
        }
    }
    rr.into_parts().1
}

#[test]
fn a_kernels_log_is_explained() {
    let folder = round();
    folder.write("kernel.log", recorded_by_a_kernel());
    assert!(folder.stdout(&["replay", "kernel.log"]).contains("no decision differs"));
    let told = folder.stdout(&["why", "kernel.log", "--task", "2", "--at", "5ms"]);
    let expected = "\
task 2 waited 7.016ms under rr, from 1.02ms (new) to 8.036ms, when CPU 0 took
it.

Meanwhile
  CPU 0: task 0 had it 4.003ms (its slice ended), task 1 had it 3.003ms (ended),
      it was idle 10us

When it became ready
  task 2: quantum left 4ms
  CPU 0 was idle

What rr chose instead
  1.03ms CPU 0: task 0 for at most 4ms: ready since 1ms, before 1.02ms
  5.033ms CPU 0: task 1 for at most 4ms: ready since 1.01ms, before 1.02ms
  8.036ms CPU 0: task 2 after task 1 (ended): quantum left 4ms
";
    assert_eq!(told, expected);
    let told = folder.stdout(&["why", "kernel.log", "--longest"]);
    assert!(told.starts_with("task 2 waited 7.016ms under rr"), "{told}");
}

/// The simulator takes the kernel's decisions, at other times.
#[test]
fn a_kernels_log_is_compared_with_the_simulator() {
    let folder = round();
    folder.write("kernel.log", recorded_by_a_kernel());
    let diff = |policy| folder.stdout(&["diff", "round.toml", "--policy", policy, "kernel.log"]);
    assert_eq!(diff("rr"), "rr (1) and rr (2) do not part: 4 steps alike\n");
    assert_eq!(
        diff("fcfs"),
        "fcfs and rr do not part as far as both go: 3 steps alike; rr goes on\n"
    );
    // The log has no names of its own.
    let expected = "\
srpt and rr part at 0 and 1.03ms on CPU 0, the first step.
  srpt runs P-0 (task 1): left 3ms before 24ms
  rr runs P1 (task 0): ready since 1ms, before 1.01ms
";
    let told = diff("srpt");
    assert!(told.starts_with(expected), "{told}");
    let came = "P1 (task 0): with srpt it is picked at 6ms and ends at 30ms; with rr it is\n      picked \
                at 1.03ms and ends at 31.054ms, 24us later\n";
    assert!(told.contains(came), "{told}");
    let json = ["diff", "round.toml", "--policy", "fcfs", "kernel.log", "--format", "json"];
    let json: Value = serde_json::from_str(&folder.stdout(&json)).unwrap();
    assert_eq!((&json["parts"], &json["longer"]), (&Value::Bool(false), &Value::from("rr")));
}

/// Two tasks that take two locks in opposite orders.
const CROSSED: &str = "{\"anysched-model\":1,\"locks\":2,\n\"scripts\":[\n\
    {\"ops\":[[\"lock\",0],[\"run\",2000000],[\"lock\",1],[\"run\",1]]},\n\
    {\"ops\":[[\"lock\",1],[\"run\",2000000],[\"lock\",0],[\"run\",1]]}],\n\
    \"tasks\":[\n{\"name\":\"a\",\"arrives\":0,\"script\":0},\n\
    {\"name\":\"b\",\"arrives\":0,\"script\":1}]}\n";

#[test]
fn a_run_that_ends_in_a_deadlock_says_so() {
    let folder = Folder::new();
    folder.write("crossed.model", CROSSED);
    folder.write(
        "crossed.toml",
        "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"model\"\nfile = \
         \"crossed.model\"\n[sweep]\npolicy = [{ name = \"rr\", quantum = \"1ms\" }, \"fcfs\"]\n",
    );
    let output = folder.run(&["run", "crossed.toml"]);
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "anysched: rr: deadlock: a waits for lock 1, which b holds; b waits for lock 0, which a \
         holds\n\
         anysched: fcfs: b waits for ever for lock 1, whose holder has ended without giving it back\n"
    );
}

#[test]
fn overload_is_warned_of_before_a_run() {
    let folder = Folder::new();
    let experiment = |load: &str, cpus: u32| {
        format!(
            "question = \"?\"\nduration = \"50ms\"\npolicy = \"rr\"\n[machine]\ncpus = {cpus}\n\
             [[workload]]\nkind = \"periodic\"\nperiod = \"10ms\"\nrun = \"6ms\"\n\
             [[workload]]\nkind = \"open\"\nservice = \"exp(1ms)\"\n{load}\n"
        )
    };
    folder.write("over.toml", experiment("rate = 600", 1));
    let said = String::from_utf8(folder.run(&["check", "over.toml"]).stderr).unwrap();
    assert_eq!(
        said,
        "anysched: overload: the workloads ask for 1.20 CPUs and there is 1: waiting times grow for \
         as long as work comes (utilisation 1.20)\n"
    );
    folder.write("full.toml", experiment("rate = 400", 1));
    assert_eq!(String::from_utf8(folder.run(&["check", "full.toml"]).stderr).unwrap(), "");
    // Two CPUs have room: 0.6 and 2 · 0.9 of them are more than that again.
    folder.write("two.toml", experiment("rate = 600", 2));
    assert_eq!(String::from_utf8(folder.run(&["check", "two.toml"]).stderr).unwrap(), "");
    folder.write("load.toml", experiment("load = 0.9", 2));
    let said = String::from_utf8(folder.run(&["check", "load.toml"]).stderr).unwrap();
    assert!(said.contains("ask for 2.40 CPUs and there are 2: "), "{said}");
}
