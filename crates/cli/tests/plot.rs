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
    let without =
        |more: &[&'static str]| [&["plot", "e.toml", "--y", "makespan_ns"], more].concat();
    says(&without(&["--kind", "line"]), &["--kind line: --x says along which axis"]);
    says(&without(&["--log-x"]), &["--x <AXIS>"]);
    says(&with("workload.0.tasks", "makespan_ns", &["--kind", "box"]), &["have no axis"]);
    says(&["plot", "e.toml", "--x", "workload.0.tasks"], &["--y <METRIC,…>"]);
    assert_eq!(folder.names(), ["e.toml"]);
}

/// Without an axis policies stand side by side, in a section for each value of one.
#[test]
fn bars_and_boxes_have_no_axis() {
    let folder = folder();
    let bars = ["plot", "e.toml", "--y", "waiting_time_ns_mean", "--set", "workload.0.service=4ms"];
    let text = folder.stdout(&[&bars[..], &["--format", "text"]].concat());
    let section = text.split("workload.0.tasks = 5").nth(1).unwrap();
    let line = section.lines().find(|line| line.starts_with("fcfs ")).unwrap();
    // Task k waits (k − 1) times 4 ms, with every seed.
    assert!(line.contains('█') && line.ends_with(" 8"), "{text}");
    let boxes = folder.stdout(&[&bars[..4], &["--kind", "box", "--format", "text"]].concat());
    assert!(boxes.contains("Of 3 seeds: the smallest, the quartiles"), "{boxes}");
    let numbers = boxes.lines().rfind(|line| line.starts_with("fcfs ")).unwrap();
    let numbers: Vec<f64> =
        numbers.rsplit(' ').take(5).map(|number| number.parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a >= b) && numbers[0] > numbers[4], "{boxes}");
    for kind in ["bar", "box"] {
        let picture = folder.stdout(&[&bars[..], &["--kind", kind]].concat());
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
        assert_eq!(picture.matches("<rect ").count(), 1 + 3 * 2, "{kind}: a shape for each row");
    }
}

/// What has been run is drawn without running it again, as long as it is the same.
#[test]
fn runs_are_kept_for_other_commands() {
    let folder = folder();
    let expected = folder.stdout(&PLOT);
    let kept = |args: &[&str]| {
        let mut command = folder.command(args);
        let output = command.env("ANYSCHED_RUNS", folder.join("runs")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let files = || {
        let entries = std::fs::read_dir(folder.join("runs")).unwrap();
        let read = |path| String::from_utf8(std::fs::read(path).unwrap()).unwrap();
        entries.map(|entry| read(entry.unwrap().path())).collect::<Vec<String>>()
    };
    let table = kept(&["run", "e.toml"]);
    let before = files();
    // 2 policies, 3 numbers of tasks, 3 seeds; and the head.
    assert_eq!(before.iter().map(|text| text.lines().count()).collect::<Vec<_>>(), [19]);
    assert_eq!(kept(&PLOT), expected);
    assert_eq!(kept(&["run", "e.toml"]), table);
    assert_eq!(files(), before, "nothing is run again");
    kept(&["run", "e.toml", "--seeds", "4"]);
    assert_eq!(files()[0].lines().count(), 25, "only what is new");
    let other = ["--set", "workload.0.service=4ms"];
    assert_eq!(kept(&[&PLOT[..], &other].concat()), folder.stdout(&[&PLOT[..], &other].concat()));
    assert_eq!(files().len(), 2);
}
