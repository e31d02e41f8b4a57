//! `anysched shrink`, as a user calls it.

mod program;

use program::Folder;
use serde_json::Value;

/// Many tasks on many CPUs, of which one waits for long.
const MANY: &str = "question = \"Who waits?\"\n[machine]\ncpus = 8\ncontext_switch = \"2us\"\n\
    [[workload]]\nkind = \"open\"\ntasks = 200\nservice = \"exp(10ms)\"\nload = 0.9\n\
    [[workload]]\nkind = \"interactive\"\nname = \"editor\"\ntasks = 5\nrun = \"exp(1ms)\"\n\
    sleep = \"exp(10ms)\"\nrounds = 40\n\
    [sweep]\npolicy = [\"fcfs\", { name = \"rr\", quantum = \"3ms\" }]\nseeds = 3\n\
    [[claim]]\nid = \"soon\"\ntext = \"Nobody waits for long\"\n\
    expect = \"fcfs.waiting_time_ns_max < 20ms\"\n";

fn many() -> Folder {
    let folder = Folder::new();
    folder.write("many.toml", MANY);
    folder
}

fn text(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).unwrap()
}

#[test]
fn a_condition_becomes_an_experiment_that_runs_and_a_test() {
    let folder = many();
    let fails = "fcfs.waiting_time_ns_max > 30ms";
    let args = ["shrink", "many.toml", "--fails", fails, "-o", "small", "--for", "1h"];
    let expected = "\
fcfs, seed 0: fcfs.waiting_time_ns_max > 30ms (40ms and 30ms)
205 tasks on 8 CPUs, reduced to 2 tasks on 1 CPU in ";
    let said = folder.stdout(&args);
    assert!(said.starts_with(expected), "{said}");
    let toml = "\
# The smallest that `anysched shrink` found: 2 of 205 tasks, 1 of 8 CPUs.
# From many, fcfs, seed 0.
# --fails 'fcfs.waiting_time_ns_max > 30ms': fcfs.waiting_time_ns_max > 30ms (40ms and 30ms)

question = \"Why is fcfs.waiting_time_ns_max > 30ms?\"
policy = \"fcfs\"

[machine]
cpus = 1

[[workload]]
kind = \"batch\"
tasks = 1
service = \"40ms\"

[[workload]]
kind = \"batch\"
tasks = 1
service = \"1ms\"

[[claim]]
id = \"fails\"
text = \"It fails\"
expect = \"fcfs.waiting_time_ns_max > 30ms\"
";
    assert!(said.ends_with(toml), "{said}");
    assert_eq!(text(&folder, "small/many-shrunk.toml"), toml);
    let test = text(&folder, "small/many-shrunk.rs");
    assert!(test.contains("fn many_shrunk_does_not_fail()") && test.contains(toml), "{test}");
    let results = folder.stdout(&["run", "small/many-shrunk.toml"]);
    assert!(results.contains("holds"), "{results}");
    assert_eq!(folder.stdout(&args), said, "again the same");
}

#[test]
fn a_claim_that_does_not_hold_is_what_fails() {
    let folder = many();
    let args = ["shrink", "many.toml", "--fails", "claim soon", "--seed", "1", "--format", "json"];
    let found: Value = serde_json::from_str(&folder.stdout(&args)).unwrap();
    assert_eq!(found["row"], "fcfs, seed 1");
    assert_eq!(found["after"]["tasks"], 2);
    let toml = found["experiment"].as_str().unwrap();
    assert!(toml.contains("verdict = \"does not hold\""), "{toml}");
    folder.write("small.toml", toml);
    let run = folder.run(&["run", "small.toml"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn a_deadlock_keeps_its_locks() {
    let folder = Folder::new();
    let first = r#"["lock",0],["run",1000000],["lock",1],["run",7000],["unlock",1],["unlock",0]"#;
    let second = r#"["lock",1],["run",1000000],["lock",0],["run",7000],["unlock",0],["unlock",1]"#;
    let task = r#"{"script":2,"arrives":5000}"#;
    let model = format!(
        "{{\"anysched-model\":1,\"locks\":2,\"scripts\":[{{\"ops\":[{first}]}},\
         {{\"ops\":[{second}]}},{{\"ops\":[[\"run\",3000000]]}}],\"tasks\":[\
         {{\"script\":0,\"arrives\":0}},{{\"script\":1,\"arrives\":0}},{}]}}",
        [task; 18].join(",")
    );
    folder.write("locks.model", model);
    folder.write(
        "locks.toml",
        "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 4\n[[workload]]\n\
         kind = \"model\"\nfile = \"locks.model\"\n",
    );
    let args = ["shrink", "locks.toml", "--fails", "deadlock", "-o", "small", "--for", "1h"];
    let said = folder.stdout(&args);
    assert!(said.contains("deadlock: task 0 waits for lock 1, which task 1 holds"), "{said}");
    assert!(said.contains("20 tasks on 4 CPUs, reduced to 2 tasks on 2 CPUs"), "{said}");
    let model = text(&folder, "small/locks-shrunk.model");
    let ops = [r#"{"ops":[["lock",0],["run",1000000],["lock",1]]}"#];
    assert!(ops.iter().all(|ops| model.contains(ops)), "{model}");
    let mut again = folder.command(&["run", "locks-shrunk.toml"]);
    let again = again.current_dir(folder.join("small")).output().unwrap();
    let errors = String::from_utf8(again.stderr).unwrap();
    assert!(errors.contains("deadlock"), "{errors}");
}

#[test]
fn a_log_is_cut_to_the_calls_that_matter() {
    let folder = many();
    folder.stdout(&["run", "many.toml", "--policy", "fcfs", "--seeds", "1", "--record", "run.log"]);
    let said = folder.stderr(&["shrink", "run.log"]);
    assert!(said.contains("run.log: nothing fails: the policy keeps the contract"), "{said}");
    // The same calls, said to be of another policy, which decides otherwise.
    let mut log = folder.read("run.log");
    let at = log.windows(4).position(|bytes| bytes == b"fcfs").unwrap();
    log[at..at + 4].copy_from_slice(b"srpt");
    folder.write("other.log", &log);
    let args = ["shrink", "other.log", "--fails", "differs", "-o", "small", "--for", "1h"];
    let said = folder.stdout(&args);
    assert!(said.starts_with("srpt: the policy answers otherwise to \"pick_next CPU"), "{said}");
    assert!(said.lines().count() < 40, "{said}");
    let replayed = folder.run(&["replay", "small/other-shrunk.log"]);
    assert_eq!(replayed.status.code(), Some(1));
    let differs = String::from_utf8(replayed.stdout).unwrap();
    assert!(differs.contains("now the policy answers"), "{differs}");
    let test = text(&folder, "small/other-shrunk.rs");
    assert!(test.contains("include_bytes!(\"other-shrunk.log\")"), "{test}");
}

#[test]
fn cases_of_the_swarm_are_experiments() {
    let folder = Folder::new();
    let said = folder.stderr(&["shrink", "--swarm", "3"]);
    assert_eq!(said, "anysched: \"contract\": so fails none of 1 runs\n");
    let fails = "rr.waiting_time_ns_max > 1ms";
    let args = ["shrink", "--swarm", "5", "--policy", "rr", "--fails", fails, "--for", "1h"];
    let said = folder.stdout(&args);
    assert!(said.contains("From swarm-5, rr, seed 0."), "{said}");
    assert!(said.contains("reduced to 2 tasks on 1 CPU"), "{said}");
}

#[test]
fn what_cannot_be_made_smaller_says_why() {
    let folder = many();
    folder.write("not-shrunk.toml", MANY);
    for (args, why) in [
        (&["many.toml", "--fails", "fcfs.waiting_time_ns_max > 1h"][..], "so fails none of 3 runs"),
        (&["many.toml", "--fails", "cfs.waiting_time_ns_max > 1s"], "no policy is labelled `cfs`"),
        (&["many.toml", "--fails", "fcfs.waiting"], "expected `<`"),
        (&["many.toml", "--fails", "claim late"], "there are: soon"),
        (&["many.toml", "--group", "4"], "there is no group 4: they go from 0 to 0"),
        (&["many.toml", "--seed", "4"], "there is no seed 4: they go from 0 to 2"),
        (&["many.toml", "--swarm", "4"], "cannot be used with"),
        (&["none.toml"], "none.toml"),
        (
            &["many.toml", "--fails", "fcfs.waiting_time_ns_max > 30ms", "-o", "many.toml"],
            "many.toml",
        ),
    ] {
        let said = folder.stderr(&[&["shrink"], args].concat());
        assert!(said.contains(why), "{args:?}: {said}");
    }
    assert_eq!(text(&folder, "many.toml"), MANY);
    let fails = "fcfs.waiting_time_ns_max > 30ms";
    let said = folder.stderr(&["shrink", "not-shrunk.toml", "--fails", fails, "-o", "."]);
    assert!(said.contains("not-shrunk.toml"), "{said}");
    assert_eq!(text(&folder, "not-shrunk.toml"), MANY, "an input is not replaced");
}
