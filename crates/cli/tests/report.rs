//! `anysched run --report` and `anysched report`.

mod program;

use program::Folder;

const EXPERIMENT: &str = "question = \"How long?\"\n[machine]\ncpus = 1\n[[workload]]\n\
    kind = \"batch\"\ntasks = 5\nservice = \"exp(10ms)\"\n[sweep]\npolicy = [\"fcfs\", \"sjf\"]\n\
    seeds = 3\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("e.toml", EXPERIMENT);
    folder
}

#[test]
fn a_report_is_one_page_beside_what_is_printed() {
    let folder = folder();
    let plain = folder.stdout(&["run", "e.toml"]);
    let printed = folder.stdout(&["run", "e.toml", "--report", "e.html"]);
    assert_eq!(printed, plain);
    assert_eq!(folder.names(), ["e.html", "e.toml"]);
    let page = String::from_utf8(folder.read("e.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("id=\"block-1\""));
    assert!(!page.contains("src=\"http") && !page.contains("<link"));
}

#[test]
fn results_become_a_page() {
    let folder = folder();
    folder.stdout(&["run", "e.toml", "--out", "results"]);
    folder.stdout(&["report", "results", "-o", "a.html"]);
    folder.stdout(&["report", "results/e.json", "-o", "b.html"]);
    assert!(folder.read("a.html") == folder.read("b.html"));
}

#[test]
fn what_cannot_be_shown_is_refused_before_anything_is_written() {
    let folder = folder();
    folder.write("other.json", "{}");
    std::fs::create_dir(folder.join("empty")).unwrap();
    let refused = |args: &[&str]| {
        let output = folder.run(args);
        assert!(!output.status.success(), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&["report", "other.json", "-o", "a.html"]);
    assert!(said.contains("other.json: no results of an experiment: there is no \"experiment\""));
    let said = refused(&["report", "empty", "-o", "a.html"]);
    assert!(said.contains("empty: there are no results"), "{said}");
    let said = refused(&["report", "none.json", "-o", "a.html"]);
    assert!(said.contains("none.json: cannot be read"), "{said}");
    let said = refused(&["report", "other.json", "-o", "other.json"]);
    assert!(said.contains("it is read, too"), "{said}");
    let said = refused(&["run", "e.toml", "--report", "e.toml"]);
    assert!(said.contains("it is read, too"), "{said}");
    assert_eq!(folder.names(), ["e.toml", "empty", "other.json"]);
}
