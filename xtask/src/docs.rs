//! Generated parts of the documentation: between `<!-- generated: COMMAND -->` and
//! `<!-- end -->` stands exactly what the command prints, so that no figure in the documentation
//! is older than the program.

use crate::run::{Failed, cargo, cargo_command, command, output, root, run};
use std::collections::BTreeMap;
use std::path::PathBuf;

const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";

/// Rewrites the generated parts.
pub fn write() -> Result<(), Failed> {
    for (path, old, new) in generate()? {
        if old != new {
            println!("rewriting {}", path.display());
            std::fs::write(&path, new)
                .map_err(|error| Failed(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(())
}

/// Fails if a generated part is not what its command prints now.
pub fn check() -> Result<(), Failed> {
    let stale: Vec<String> = generate()?
        .into_iter()
        .filter(|(_, old, new)| old != new)
        .map(|(path, old, new)| {
            let line = old.lines().zip(new.lines()).position(|(old, new)| old != new);
            format!("{}:{}", path.display(), line.map_or(0, |line| line + 1))
        })
        .collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(Failed(format!("not current: {}; type: cargo xtask docs", stale.join(", "))))
}

/// Builds the API documentation without a warning.
pub fn build() -> Result<(), Failed> {
    let mut doc = cargo_command(&["doc", "--workspace", "--no-deps", "--quiet"]);
    run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Every page with generated parts: path, text, text as it should be.
fn generate() -> Result<Vec<(PathBuf, String, String)>, Failed> {
    cargo(&["build", "--release", "--quiet", "-p", "anysched-cli"])?;
    let mut printed = BTreeMap::new();
    let mut pages = Vec::new();
    for name in output(&mut command("git", &["ls-files", "*.md"]))?.lines() {
        let path = root().join(name);
        let Ok(old) = std::fs::read_to_string(&path) else { continue };
        let new = regenerate(&old, |line| {
            if !printed.contains_key(line) {
                printed.insert(line.to_owned(), print(line)?);
            }
            Ok(printed[line].clone())
        })
        .map_err(|Failed(why)| Failed(format!("{name}: {why}")))?;
        if old.contains(BEGIN) {
            pages.push((path, old, new));
        }
    }
    Ok(pages)
}

fn regenerate(
    page: &str,
    mut print: impl FnMut(&str) -> Result<String, Failed>,
) -> Result<String, Failed> {
    let mut new = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        new.push_str(line);
        new.push('\n');
        if let Some(command) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) {
            let old: Vec<&str> = lines.by_ref().take_while(|line| *line != END).collect();
            let fenced = old.first().is_some_and(|line| line.starts_with("```"));
            if fenced {
                new.push_str(old[0]);
                new.push('\n');
            }
            new.push_str(print(command)?.trim_end());
            new.push_str(if fenced { "\n```\n" } else { "\n" });
            new.push_str(END);
            new.push('\n');
        }
    }
    Ok(new)
}

/// What `anysched ARGUMENTS` prints, on a terminal of 80 columns without colours.
fn print(line: &str) -> Result<String, Failed> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(("anysched", args)) = words.split_first().map(|(first, rest)| (*first, rest)) else {
        return Err(Failed(format!("\"{line}\" is not an anysched command")));
    };
    let target =
        std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from);
    let program = target.join("release/anysched");
    let mut command = command(&program.to_string_lossy(), args);
    output(command.env("NO_COLOR", "1").env("COLUMNS", "80"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_generated_changes() {
        let page = "a\n<!-- generated: anysched x -->\n```text\nold\n```\n<!-- end -->\nb\n";
        let new = regenerate(page, |command| Ok(format!("printed by {command}\n"))).unwrap();
        let expected = "a\n<!-- generated: anysched x -->\n```text\nprinted by anysched x\n```\n\
                        <!-- end -->\nb\n";
        assert_eq!(new, expected);
        assert_eq!(regenerate(&new, |_| Ok("printed by anysched x".into())).unwrap(), new);
    }
}
