//! The list of policies says of each what holds.

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
