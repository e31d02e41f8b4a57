//! `anysched verify`, as a user calls it.

mod program;

use program::Folder;
use serde_json::Value;

#[test]
fn a_policy_is_verified_without_writing_anything() {
    let said = Folder::new().stdout(&["verify", "rr", "--depth", "4"]);
    assert!(said.starts_with("rr: 3 tasks, 2 CPUs\n"), "{said}");
    for property in ["contract", "drain", "wait", "yield", "merge"] {
        let line = format!("  {property:<9} holds after every history of up to 4 events\n");
        assert!(said.contains(&line), "{line}{said}");
    }
}

#[test]
fn settings_machine_and_kinds_of_events_are_what_is_asked_for() {
    let args = [
        "verify",
        "rr",
        "--set",
        "quantum=3ms",
        "--machine",
        "2 nodes x 1 cores",
        "--tasks",
        "2",
        "--depth",
        "5",
        "--without",
        "hotplug,affinity,nice",
        "--property",
        "wait",
        "--format",
        "json",
    ];
    let said: Value = serde_json::from_str(&Folder::new().stdout(&args)).unwrap();
    let found = &said[0];
    assert_eq!((&found["tasks"], &found["cpus"]), (&2.into(), &2.into()));
    assert_eq!(found["settings"][0]["value"], "3ms");
    assert_eq!(found["properties"].as_array().unwrap().len(), 1);
    assert_eq!(found["longest_wait_ns"], 0, "each has a CPU");
    let all: Value = serde_json::from_str(
        &Folder::new()
            .stdout(&["verify", "rr", "--tasks", "2", "--depth", "5", "--format", "json"]),
    )
    .unwrap();
    assert!(all[0]["states"].as_u64() > found["states"].as_u64(), "{all} {found}");
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let folder = Folder::new();
    for (args, why) in [
        (&["verify", "rr", "--set", "quantum"][..], "it has to be NAME=VALUE"),
        (&["verify", "rr", "--set", "quantum=0"], "`rr` cannot be built"),
        (&["verify", "rr", "--machine", "two"], "--machine \"two\""),
        (&["verify", "nobody"], "nobody"),
        (&["verify", "rr", "--tasks", "70"], "not a whole number from 1 to 6"),
    ] {
        let said = folder.stderr(args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

/// The memory for states ends a search, and that is said.
#[test]
fn memory_is_bounded() {
    let said = Folder::new().stdout(&["verify", "stride", "--depth", "20", "--memory", "1"]);
    assert!(said.contains("the memory for states was used up"), "{said}");
}
