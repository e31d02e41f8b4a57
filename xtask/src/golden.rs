//! Golden results: the tests that compare with snapshots.

use crate::run::{Failed, cargo_command, command, output, root, run};
use std::collections::BTreeSet;

/// Tests that have snapshots.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tests {
    package: String,
    /// The program of the package's tests.
    program: String,
    /// The file of the program, if it has several.
    module: Option<String>,
}

/// Runs the tests that have snapshots, and takes what they find for right. With `names`, only
/// tests whose name or snapshots have one of them.
pub fn bless(names: &[&str]) -> Result<(), Failed> {
    for Tests { package, program, module } in tests(names)? {
        let module = module.map(|module| format!("{module}::"));
        println!("blessing {program} {}of {package}", module.as_deref().unwrap_or_default());
        let args = ["test", "--quiet", "--all-features", "-p", &package, "--test", &program, "--"];
        let mut test = cargo_command(&args);
        run(test.args(module).env("INSTA_UPDATE", "always"))?;
    }
    Ok(())
}

/// The tests that have snapshots, which say where they come from. A name that no snapshot has yet,
/// as that of a new policy, means all of them.
fn tests(names: &[&str]) -> Result<BTreeSet<Tests>, Failed> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "crates/*.snap"];
    let listed = output(&mut command("git", &list))?;
    let all = || {
        listed.lines().filter_map(|path| {
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            Some((path, Tests::of(&text)?))
        })
    };
    let wanted = |path: &str| names.iter().any(|name| path.contains(name));
    let found: BTreeSet<_> = all().filter(|(path, _)| wanted(path)).map(|(_, test)| test).collect();
    if found.is_empty() { Ok(all().map(|(_, test)| test).collect()) } else { Ok(found) }
}

impl Tests {
    /// Those of a snapshot: `source: crates/PACKAGE/tests/PROGRAM.rs`, or `…/PROGRAM/MODULE.rs`.
    fn of(snapshot: &str) -> Option<Tests> {
        let source = snapshot.lines().find_map(|line| line.strip_prefix("source: "))?;
        let (package, file) = source.strip_prefix("crates/")?.split_once("/tests/")?;
        let path = file.strip_suffix(".rs")?;
        let (program, module) = match path.split_once('/') {
            Some((program, module)) => (program, Some(module.to_string())),
            None => (path, None),
        };
        let package = format!("anysched-{package}");
        Some(Tests { package, program: program.to_string(), module })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_name_their_tests() {
        let tests = |source| Tests::of(&format!("---\nsource: crates/{source}\n---\nx"));
        let [package, program] = ["anysched-cli", "tune"].map(String::from);
        assert_eq!(tests("cli/tests/tune.rs"), Some(Tests { package, program, module: None }));
        let [package, program, module] = ["anysched-lab", "lab", "errors"].map(String::from);
        let several = Tests { package, program, module: Some(module) };
        assert_eq!(tests("lab/tests/lab/errors.rs"), Some(several));
        assert_eq!(Tests::of("---\nexpression: x\n---\n"), None);
    }

    #[test]
    fn names_choose_tests() {
        let [package, program, module] = ["anysched-sim", "sim", "golden_runs"].map(String::from);
        let golden = Tests { package, program, module: Some(module) };
        assert_eq!(super::tests(&["rr.snap"]).unwrap(), BTreeSet::from([golden]));
        let all = super::tests(&[]).unwrap();
        assert!(all.len() > 5);
        assert_eq!(super::tests(&["no-such-policy"]).unwrap(), all);
    }
}
