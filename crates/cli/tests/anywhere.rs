//! The program away from the repository: experiments that it carries, and its manual.

mod program;

use program::Folder;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Of the repository.
fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_quickstart_runs_in_an_empty_folder() {
    let folder = Folder::new();
    let more = ["--policy", "fcfs,eevdf", "--seeds", "1", "--format", "json"];
    let here = folder.stdout(&[&["run", "quickstart"], &more[..]].concat());
    assert_eq!(folder.names(), Vec::<String>::new());
    let file = repository().join("experiments/quickstart.toml");
    let there = folder.stdout(&[&["run", file.to_str().unwrap()], &more[..]].concat());
    assert_eq!(here, there, "it is the file of the repository, with its recording");
    for name in ["quickstart.toml", "experiments/quickstart.toml"] {
        assert!(folder.stdout(&["check", name]).contains("scenario = recorded build"));
    }
    let results = ["run", "quickstart", "--policy", "fcfs", "--seeds", "1", "--out", "results"];
    folder.stdout(&results);
    assert!(folder.join("results/quickstart.json").is_file());
}

#[test]
fn a_file_of_ones_own_goes_first() {
    let folder = Folder::new();
    folder.write("quickstart", "question = \"mine?\"\n");
    let said = folder.stderr(&["run", "quickstart"]);
    assert!(said.contains("error: quickstart: no load"), "{said}");
    let said = folder.stderr(&["run", "quickstar"]);
    assert!(said.contains("quickstar") && said.contains("No such file"), "{said}");
}

#[test]
fn experiments_are_listed_printed_and_written() {
    let folder = Folder::new();
    let all: Value =
        serde_json::from_str(&folder.stdout(&["experiments", "--format", "json"])).unwrap();
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for name in ["quickstart", "classroom/e1-round-robin", "m-rsf/e2-batch"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let printed = folder.stdout(&["experiments", "quickstart"]);
    let file = fs::read_to_string(repository().join("experiments/quickstart.toml")).unwrap();
    assert_eq!(printed, file);
    let said = folder.stderr(&["experiments", "none"]);
    assert!(said.contains("no experiment \"none\" comes with this program"), "{said}");
    // What is written finds its files.
    folder.stdout(&["experiments", "--write", "mine"]);
    folder.stdout(&["check", "mine/experiments/quickstart.toml"]);
    let said = folder.stderr(&["experiments", "--write", "mine"]);
    assert!(said.contains("is there already"), "{said}");
}

#[test]
fn papers_are_reproduced_anywhere() {
    let folder = Folder::new();
    let said = folder.stdout(&["reproduce", "classroom"]);
    assert!(said.contains("round"), "{said}");
    folder.stdout(&["coverage", "m-rsf"]);
    let said = folder.stderr(&["reproduce", "none"]);
    assert!(said.contains("there are: beyond, classroom,"), "{said}");
    let said = folder.stderr(&["reproduce", "classroom", "--experiments", "elsewhere"]);
    assert!(said.contains("elsewhere: cannot be read"), "{said}");
}

/// A page for each command, with its name as man(1) finds it.
#[test]
fn manual_pages_are_installed() {
    let folder = Folder::new();
    let home = folder.path().to_str().unwrap();
    let mut install = folder.command(&["man", "--install"]);
    let output = install.env("HOME", home).env_remove("XDG_DATA_HOME").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains(".local/share/man/man1"), "{said}");
    let pages = folder.join(".local/share/man/man1");
    let mut names: Vec<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let help = folder.stdout(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        assert!(names.contains(&format!("anysched-{command}.1")), "{command}: {names:?}");
    }
    assert!(names.contains(&"anysched-model-mmc.1".to_string()), "{names:?}");
    let page = fs::read_to_string(pages.join("anysched-run.1")).unwrap();
    assert!(page.contains(".TH anysched-run 1") && page.contains("\\-\\-resume"), "{page}");
    let printed = folder.stdout(&["man", "model", "mmc"]);
    assert_eq!(printed, fs::read_to_string(pages.join("anysched-model-mmc.1")).unwrap());
    // What is referred to is there.
    for name in &names {
        let page = fs::read_to_string(pages.join(name)).unwrap();
        for word in page.split_whitespace().filter(|word| word.starts_with("anysched\\-")) {
            let Some(other) = word.strip_suffix("(1)") else { continue };
            let other = format!("{}.1", other.replace('\\', ""));
            assert!(names.contains(&other) || other.ends_with("-help.1"), "{name}: {other}");
        }
    }
    let said = folder.stderr(&["man", "model", "mm"]);
    assert!(said.contains("has no command \"mm\"; it has mmc, mmcn"), "{said}");
    folder.stdout(&["man", "--install", "--dir", "pages"]);
    assert_eq!(fs::read_dir(folder.join("pages")).unwrap().count(), names.len());
}
