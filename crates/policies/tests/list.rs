//! The list of policies says of each what holds.

use std::fs;
use std::path::{Path, PathBuf};

use anysched_core::Machine;
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
