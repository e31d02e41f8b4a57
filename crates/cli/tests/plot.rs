//! `anysched plot`.

mod program;

use program::Folder;

const EXPERIMENT: &str = "question = \"How long?\"\n[machine]\ncpus = 1\n[[workload]]\n\
    kind = \"batch\"\nservice = \"exp(10ms)\"\n[sweep]\npolicy = [\"fcfs\", \"sjf\"]\n\
    \"workload.0.tasks\" = [1, 2, 5]\nseeds = 3\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("e.toml", EXPERIMENT);
    folder
}

const PLOT: [&str; 6] =
    ["plot", "e.toml", "--x", "workload.0.tasks", "--y", "waiting_time_ns_mean"];

#[test]
fn a_picture_is_printed_or_written_and_the_same_each_time() {
    let folder = folder();
    let printed = folder.stdout(&[&PLOT[..], &["--jobs", "1"]].concat());
    assert!(printed.starts_with("<svg ") && printed.ends_with("</svg>\n"), "{printed}");
    let none = folder.stdout(&[&PLOT[..], &["--jobs", "2", "--out", "a.svg"]].concat());
    assert_eq!(none, "");
    assert_eq!(folder.read("a.svg"), printed.as_bytes());
    assert_eq!(folder.names(), ["a.svg", "e.toml"]);
}

#[test]
fn it_is_of_the_runs_of_run() {
    let folder = folder();
    let options = ["--policy", "sjf", "--set", "workload.0.service=4ms", "--seeds", "2"];
    let text = folder.stdout(&[&PLOT[..], &options, &["--format", "text"]].concat());
    assert!(text.contains("2 seeds"), "{text}");
    // Task k waits (k − 1) times 4 ms.
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("workload.0.tasks"))
        .map(|line| line.split_whitespace().collect())
        .take(4)
        .collect();
    assert_eq!(
        rows,
        [vec!["workload.0.tasks", "sjf", "*"], vec!["1", "0"], vec!["2", "2"], vec!["5", "8"]]
    );
}

#[test]
fn what_cannot_be_drawn_is_refused_before_the_runs() {
    let folder = folder();
    let says = |args: &[&str], parts: &[&str]| {
        let message = folder.stderr(args);
        for part in parts {
            assert!(message.contains(part), "{args:?}: {part} is not in {message}");
        }
    };
    let with = |x, y, more: &'static [&'static str]| {
        [&["plot", "e.toml", "--x", x, "--y", y], more].concat()
    };
    says(&with("machine.cpus", "makespan_ns", &[]), &["no axis", "e.toml:", "`workload.0.tasks`"]);
    says(&with("workload.0.tasks", "waiting", &[]), &["`waiting`", "e.toml:"]);
    says(&with("workload.0.tasks", "makespan_ns", &["--out", "no/a.svg"]), &["no folder no"]);
    says(&["plot", "e.toml", "--y", "makespan_ns"], &["--x <AXIS>"]);
    says(&["plot", "e.toml", "--x", "workload.0.tasks"], &["--y <METRIC,…>"]);
    assert_eq!(folder.names(), ["e.toml"]);
}
