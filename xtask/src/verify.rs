//! Searches of all policies, and the page with what they found.

use crate::docs;
use crate::run::{Failed, output_or, root};

/// A table of the page: what stands above it, and the command that prints it.
const TABLES: [(&str, &str); 8] = [
    ("3 tasks on 2 CPUs", "verify --depth 8 --memory 12000 --format markdown"),
    ("4 tasks on 1 CPU", "verify --tasks 4 --cpus 1 --depth 7 --for 60s --format markdown"),
    (
        "3 tasks on 2 nodes of 2 CPUs",
        "verify --machine \"2 nodes x 2 cores\" --depth 5 --for 60s --format markdown",
    ),
    (
        "Settings: 3 tasks on 2 CPUs with a cache each",
        "verify --settings --machine \"2 llcs x 1 cores\" --depth 5 --for 60s --format markdown",
    ),
    (
        "Glue of ArceOS: 3 tasks on 1 CPU",
        "verify --kernel arceos --cpus 1 --depth 12 --for 60s --format markdown",
    ),
    (
        "Glue of ArceOS: 3 tasks on 2 CPUs",
        "verify --kernel arceos --depth 8 --for 60s --format markdown",
    ),
    (
        "Glue of Xen: 3 vCPUs on 2 pCPUs",
        "verify --kernel xen --depth 8 --for 60s --format markdown",
    ),
    (
        "Glue of Linux: 3 tasks on 2 CPUs",
        "verify --kernel linux --depth 8 --for 60s --format markdown",
    ),
];

/// What `ci` searches: settings too, not far.
const QUICK: &[&str] = &["verify", "--settings", "--depth", "5", "--format", "markdown"];

/// With which `verify` says that a property is broken.
const BROKEN: i32 = 1;

/// Searches all policies as far as `ci` does.
pub fn check() -> Result<(), Failed> {
    let mut is_broken = false;
    let table = output_or(&mut docs::program(QUICK), |code| {
        is_broken = code == BROKEN;
        is_broken
    })?;
    if !is_broken {
        return Ok(());
    }
    let broken: Vec<&str> = table.lines().filter(|line| line.contains("**broken**")).collect();
    let remedy = "`anysched verify POLICY --set NAME=VALUE` shows how";
    Err(Failed(format!("{}\n{remedy}", broken.join("\n"))))
}

/// Searches all policies and writes what came of it, which takes hours; of some tables only, if
/// their numbers are given, from 1.
pub fn write(numbers: &[&str]) -> Result<(), Failed> {
    docs::build_released()?;
    let path = root().join("docs/verification.md");
    let failed = |error| Failed(format!("{}: {error}", path.display()));
    for (number, (title, args)) in TABLES.iter().enumerate() {
        if !numbers.is_empty() && !numbers.contains(&(number + 1).to_string().as_str()) {
            continue;
        }
        println!("== {title}");
        let table = output_or(&mut docs::released(&docs::words(args)), |code| code == BROKEN)?;
        let page = std::fs::read_to_string(&path).map_err(failed)?;
        std::fs::write(&path, with_table(&page, title, args, &table)?).map_err(failed)?;
    }
    Ok(())
}

/// `page` with `table` below its heading.
fn with_table(page: &str, title: &str, command: &str, table: &str) -> Result<String, Failed> {
    let heading = format!("## {title}\n");
    let missing = || Failed(format!("docs/verification.md has no heading \"{title}\""));
    let (before, rest) = page.split_once(&heading).ok_or_else(missing)?;
    let after = rest.find("\n## ").map_or("", |next| &rest[next..]);
    Ok(format!("{before}{heading}\n`anysched {command}`\n\n{table}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_one_before() {
        let page = "# A\n\n## One\n\nold\n\n## Two\n\nstays\n";
        let new = with_table(page, "One", "verify", "| new |\n").unwrap();
        assert_eq!(new, "# A\n\n## One\n\n`anysched verify`\n\n| new |\n\n## Two\n\nstays\n");
        assert_eq!(with_table(&new, "One", "verify", "| new |\n").unwrap(), new);
        assert!(with_table(page, "Three", "", "").is_err());
    }

    #[test]
    fn every_table_has_its_heading_in_the_page() {
        let page = std::fs::read_to_string(root().join("docs/verification.md")).unwrap();
        for (title, args) in TABLES {
            with_table(&page, title, "", "").unwrap_or_else(|Failed(why)| panic!("{why}"));
            let says = page.contains(&format!("`anysched {args}`"));
            assert!(says, "{title}: its command is another");
        }
    }
}
