//! The list of policies says of each what holds.

use std::fs;
use std::path::{Path, PathBuf};

use anysched_core::registry::PolicyInfo;
use anysched_core::tuning::Role;
use anysched_core::{CpuSet, Machine, Span};
use anysched_policies::POLICIES;

#[test]
fn every_policy_builds_from_its_listed_defaults() {
    let machine = Machine::parse("2 nodes x 2 cores x 2 threads").unwrap();
    for policy in POLICIES {
        let params = (policy.params)();
        let settings: Vec<(&str, &str)> =
            params.iter().map(|param| (param.name, param.default.as_str())).collect();
        assert!((policy.build)(&machine, &settings).is_ok(), "{}", policy.name);
        assert!((policy.build)(&machine, &[("no-such", "1")]).is_err(), "{}", policy.name);
        let nature = (policy.nature)(&settings).unwrap();
        assert_eq!(nature.clairvoyant, policy.clairvoyant, "{}", policy.name);
    }
}

/// What a rehearsal is built from needs none itself, and a seed is a parameter.
#[test]
fn rehearsals_end() {
    let machine = Machine::flat(2).unwrap();
    for policy in POLICIES {
        let params = (policy.params)();
        let seed = policy.seed.is_none_or(|seed| params.iter().any(|p| p.name == seed));
        assert!(seed, "{}", policy.name);
        let Some(first) = (policy.rehearsal)(&[]).unwrap() else { continue };
        let first: Vec<(&str, &str)> =
            first.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!((policy.rehearsal)(&first), Ok(None), "{}", policy.name);
        assert!((policy.build)(&machine, &first).is_ok(), "{}", policy.name);
        assert!((policy.nature)(&[]).unwrap().rehearsed, "{}", policy.name);
    }
}

#[test]
fn names_are_unique_and_every_line_is_documented() {
    let mut names: Vec<&str> = POLICIES.iter().map(|policy| policy.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), POLICIES.len());
    for policy in POLICIES {
        assert!(!policy.summary.is_empty() && !policy.source.is_empty(), "{}", policy.name);
        for param in (policy.params)() {
            let place: String = format!("{} {}", policy.name, param.name);
            assert!(param.doc.ends_with('.'), "{place}: \"{}\"", param.doc);
        }
    }
}

/// Policies that are one rule in several forms and have no folder of their own.
const FAMILIES: [&[&str]; 1] = [&["sjf", "srpt"]];

/// What two policies need is core's or a base of its own (`virtual_deadline`): a policy knows no
/// other policy, so that each can be read, changed and taken out by itself.
#[test]
fn no_policy_imports_another() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let is_policy = |module: &str| POLICIES.iter().any(|p| p.name.replace('-', "_") == module);
    let is_family = |a: &str, b: &str| FAMILIES.iter().any(|f| f.contains(&a) && f.contains(&b));
    let mut files = 0;
    let mut wrong = Vec::new();
    for file in rust_files(&source) {
        let inside = file.strip_prefix(&source).unwrap();
        let mut parts = inside.iter().map(|part| part.to_str().unwrap());
        let (Some(_), Some(owner)) = (parts.next(), parts.next()) else { continue };
        let owner = owner.trim_end_matches(".rs");
        files += 1;
        let is_test = inside.iter().any(|part| part.to_string_lossy().starts_with("tests"));
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            if line.trim_start().starts_with("//") || is_test {
                continue;
            }
            for path in line.split("crate::").skip(1) {
                let mut modules = path.split("::").skip(1);
                let module = modules.next().unwrap_or("").trim_end_matches([';', ',']);
                if module != owner && is_policy(module) && !is_family(module, owner) {
                    wrong.push(format!("{}:{}: {line}", inside.display(), number + 1));
                }
            }
        }
    }
    assert!(files >= POLICIES.len(), "{files} files are too few to show anything");
    assert!(wrong.is_empty(), "move what is shared to core or to a base:\n{}", wrong.join("\n"));
}

/// What only one policy can be, exactly one is.
#[test]
fn places_for_one_policy_are_taken_by_one() {
    let count = |has: fn(&PolicyInfo) -> usize| POLICIES.iter().map(has).sum::<usize>();
    assert_eq!(count(|policy| usize::from(policy.is_default_guest)), 1, "`IS_DEFAULT_GUEST`");
    assert_eq!(count(|policy| usize::from(policy.groupings.is_some())), 1, "`GROUPINGS`");
    let rivals = |policy: &PolicyInfo| policy.spaces.iter().filter(|space| space.is_rival).count();
    assert_eq!(count(rivals), 1, "`is_rival` in `SPACES`");
    let optima = |policy: &PolicyInfo| {
        policy.baseline.iter().filter(|baseline| baseline.role == Role::Optimum).count()
    };
    assert_eq!(count(optima), 1, "`Role::Optimum` in `BASELINE`");
}

/// Every position of a search, and every baseline, is a parameter set that the policy accepts.
#[test]
fn whatever_a_search_tries_can_be_built() {
    let machine = Machine::flat(1).unwrap();
    let build = |policy: &PolicyInfo, values: &[(&str, String)]| {
        let values: Vec<(&str, &str)> =
            values.iter().map(|(name, text)| (*name, &**text)).collect();
        assert!((policy.build)(&machine, &values).is_ok(), "{}: {values:?}", policy.name);
    };
    for mean in [Span(1), Span::from_us(1), Span::from_ms(10), Span::from_s(1_000_000)] {
        for policy in POLICIES {
            policy.baseline.iter().for_each(|baseline| build(policy, &(baseline.values)(mean)));
            for space in policy.spaces {
                let corner = |end: fn(&[i32; 2]) -> i32| -> Vec<i32> {
                    space.axes.iter().map(|axis| end(&[axis.low, axis.high])).collect()
                };
                let corners = [corner(|ends| ends[0]), corner(|ends| ends[1])];
                let widest = space.axes.iter().map(|axis| axis.coarse.len()).max().unwrap();
                let coarse = (0..widest).map(|number| -> Vec<i32> {
                    let at = |coarse: &[i32]| coarse[number % coarse.len()];
                    space.axes.iter().map(|axis| at(axis.coarse)).collect()
                });
                for position in corners.into_iter().chain(coarse) {
                    build(policy, &(space.values)(&position, mean));
                }
            }
        }
    }
}

#[test]
fn groupings_divide_every_machine() {
    let all = |machine: &Machine| CpuSet::of(machine.cpu_ids());
    for policy in POLICIES {
        let Some(groupings) = policy.groupings else { continue };
        for machine in ["1", "3", "2 packages x 4 cores x 2 threads", "2 nodes x 2 packages x 3"] {
            let machine = Machine::parse(machine).unwrap();
            for name in (groupings.names)() {
                let groups = (groupings.of)(&machine, name).unwrap();
                let cpus = machine
                    .cpu_ids()
                    .filter(|&cpu| groups.iter().filter(|group| group.contains(cpu)).count() == 1);
                assert_eq!(CpuSet::of(cpus), all(&machine), "{} {name}", policy.name);
            }
            assert!((groupings.of)(&machine, "no-such").is_err(), "{}", policy.name);
        }
    }
}

/// Quoted words outside the list that are no policies: the end of the file, the word, what it is.
const OTHER_MEANINGS: [(&str, &str, &str); 17] = [
    ("arceos/src/image.rs", "rr", "a feature of ArceOS's axsched"),
    ("arceos/src/image.rs", "cfs", "a feature of ArceOS's axsched"),
    ("cli/src/model.rs", "sjf", "a closed form of the theory, as a key in JSON"),
    ("cli/src/model.rs", "fcfs", "a closed form of the theory, as a key in JSON"),
    ("cli/src/periodic.rs", "dm", "a test of schedulability, as a key in JSON"),
    ("cli/src/periodic.rs", "edf", "a test of schedulability, as a key in JSON"),
    ("core/src/recorder/read.rs", "priority", "a field of logs: a task's fixed priority"),
    ("lab/src/shrink/case.rs", "priority", "a key of loads: a task's fixed priority"),
    ("lab/src/shrink/rust.rs", "priority", "a field of `TaskParams`"),
    ("oracle/src/sedf.rs", "dm", "a probe: whether the order is deadline-monotonic"),
    ("wire/src/dom0.rs", "credit", "a scheduler of Xen's, as its tools call it"),
    ("wire/src/dom0.rs", "credit2", "a scheduler of Xen's, as its tools call it"),
    ("wire/src/dom0.rs", "rtds", "a scheduler of Xen's, as its tools call it"),
    ("wire/src/dom0.rs", "sedf", "a scheduler of Xen's, as its tools call it"),
    ("workload/src/model.rs", "priority", "a key of models: a task's fixed priority"),
    ("workload/src/import/rtapp/mod.rs", "priority", "a key of rt-app's JSON"),
    ("oracle/src/credit.rs", "credit", "a number that policies with credit report"),
];

/// What other code has to know of a policy is data of `PolicyInfo`.
#[test]
fn no_other_crate_names_a_policy() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = 0;
    let mut wrong = Vec::new();
    let mut unused: Vec<_> = OTHER_MEANINGS.iter().collect();
    for file in rust_files(crates) {
        let path = file.strip_prefix(crates).unwrap().to_str().unwrap().replace('\\', "/");
        let mut parts = path.split('/');
        let is_code = parts.next() != Some("policies") && parts.next() == Some("src");
        if !is_code || path.split('/').any(|part| part.starts_with("tests")) {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&file).unwrap();
        for (number, name) in policies_named_in(&text) {
            let is_this =
                |(end, word, _): &(&str, &str, &str)| path.ends_with(end) && *word == name;
            if OTHER_MEANINGS.iter().any(is_this) {
                unused.retain(|other| !is_this(other));
            } else {
                wrong.push(format!("{path}:{number}: \"{name}\""));
            }
        }
    }
    assert!(files > 100, "{files} files are too few to show anything");
    assert!(wrong.is_empty(), "make it data of `PolicyInfo`:\n{}", wrong.join("\n"));
    assert!(unused.is_empty(), "no longer there, take it out of the list: {unused:?}");
}

#[test]
fn names_of_policies_are_found_in_code_only() {
    let text = "let a = \"rr\";\n// \"rr\"\nlet b = (\"fcfs\", \"no-policy\", \"rrr\");\n\
                #[cfg(test)]\nmod tests {\n    let c = \"rr\";\n}\n";
    assert_eq!(policies_named_in(text), [(1, "rr"), (3, "fcfs")]);
}

/// Numbers of lines outside comments and the tests at the end, with the policies quoted there.
fn policies_named_in(text: &str) -> Vec<(usize, &'static str)> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with("//"));
    let mut found = Vec::new();
    for (line, number) in lines {
        let is_quoted = |policy: &&PolicyInfo| line.contains(&format!("\"{}\"", policy.name));
        found.extend(POLICIES.iter().filter(is_quoted).map(|policy| (number, policy.name)));
    }
    found
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
