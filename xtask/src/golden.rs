//! Golden results: the tests that compare with snapshots.

use crate::run::{Failed, cargo_command, command, output, root, run};
use std::collections::BTreeSet;

/// Runs the tests that have snapshots, and takes what they find for right. With `names`, only
/// tests whose name or snapshots have one of them.
pub fn bless(names: &[&str]) -> Result<(), Failed> {
    for (package, test) in tests(names)? {
        println!("blessing {test} of {package}");
        let args = ["test", "--quiet", "--all-features", "-p", &package, "--test", &test];
        run(cargo_command(&args).env("INSTA_UPDATE", "always"))?;
    }
    Ok(())
}

/// Packages and tests that have snapshots, which say where they come from. A name that no snapshot
/// has yet, as that of a new policy, means all of them.
fn tests(names: &[&str]) -> Result<BTreeSet<(String, String)>, Failed> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "crates/*.snap"];
    let listed = output(&mut command("git", &list))?;
    let all = || {
        listed.lines().filter_map(|path| {
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            Some((path, test_of(&text)?))
        })
    };
    let wanted = |path: &str| names.iter().any(|name| path.contains(name));
    let found: BTreeSet<_> = all().filter(|(path, _)| wanted(path)).map(|(_, test)| test).collect();
    if found.is_empty() { Ok(all().map(|(_, test)| test).collect()) } else { Ok(found) }
}

/// The package and the test of a snapshot: `source: crates/CRATE/tests/TEST.rs`.
fn test_of(snapshot: &str) -> Option<(String, String)> {
    let source = snapshot.lines().find_map(|line| line.strip_prefix("source: "))?;
    let (package, test) = source.strip_prefix("crates/")?.split_once("/tests/")?;
    Some((format!("anysched-{package}"), test.strip_suffix(".rs")?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_name_their_tests() {
        let test = test_of("---\nsource: crates/lab/tests/errors.rs\n---\nx").unwrap();
        assert_eq!(test, ("anysched-lab".to_string(), "errors".to_string()));
        assert_eq!(test_of("---\nexpression: x\n---\n"), None);
    }

    #[test]
    fn names_choose_tests() {
        let golden = ("anysched-sim".to_string(), "golden_runs".to_string());
        assert_eq!(super::tests(&["rr.snap"]).unwrap(), BTreeSet::from([golden]));
        let all = super::tests(&[]).unwrap();
        assert!(all.len() > 5);
        assert_eq!(super::tests(&["no-such-policy"]).unwrap(), all);
    }
}
