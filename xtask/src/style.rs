//! What rustfmt and clippy do not check: widths, names, lengths of functions, circles of modules,
//! dead links.
//!
//! Clippy's `too_many_lines` counts neither signatures nor comments nor blank lines, and does not
//! see `hosts` and `fuzz`, which are workspaces of their own.

use crate::run::{Failed, command, output, root};
use crate::{circles, links};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: usize = 100;
const FUNCTION_LINES: usize = 80;
const NAMES: [&str; 4] = ["utils", "helpers", "common", "misc"];

/// Checks all files that git tracks or could add.
pub fn check() -> Result<(), Failed> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let (mut faults, mut sources) = (String::new(), BTreeMap::new());
    for path in output(&mut command("git", &list))?.lines() {
        let stem = path.rsplit('/').next().and_then(|name| name.split('.').next());
        if stem.is_some_and(|stem| NAMES.contains(&stem)) {
            let _ = writeln!(faults, "{path}: a name that explains itself can be found");
        }
        let (is_source, is_page) = (path.ends_with(".rs"), path.ends_with(".md"));
        if !is_source && !is_page {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root().join(path)) else { continue };
        if is_page {
            links::check(path, &text, &mut faults);
            continue;
        }
        // Tests contain inputs that cannot be wrapped, and may be one long table.
        if !path.contains("/tests") {
            check_widths(path, &text, &mut faults);
            check_functions(path, &text, &mut faults);
        }
        sources.insert(path.to_string(), text);
    }
    circles::check(&sources, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(Failed(format!("\n{faults}"))) }
}

fn check_widths(path: &str, text: &str, faults: &mut String) {
    for (number, line) in text.lines().enumerate() {
        let width = line.chars().count();
        // A table in a comment cannot be wrapped.
        if width > WIDTH && !line.trim_start().starts_with("//! |") {
            let _ = writeln!(faults, "{path}:{}: {width} columns, {WIDTH} fit", number + 1);
        }
        if line.trim_end() != line {
            let _ = writeln!(faults, "{path}:{}: blanks at the end", number + 1);
        }
    }
}

/// A function ends at the first closing brace with the indentation of its first line, which is true
/// of all code formatted by rustfmt.
fn check_functions(path: &str, text: &str, faults: &mut String) {
    let lines: Vec<&str> = text.lines().collect();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let mut words = code.split(' ').skip_while(|word| {
            matches!(*word, "pub" | "const" | "unsafe" | "extern") || word.starts_with("pub(")
        });
        // A function that ends on its first line is short enough.
        if words.next() != Some("fn") || line.trim_end().ends_with('}') {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent));
        let ends = |line: &&str| {
            **line == closing
                || line.trim_end().ends_with(';') && line.len() - line.trim_start().len() == indent
        };
        let Some(length) = lines[start..].iter().position(ends) else { continue };
        if length > FUNCTION_LINES {
            let _ = writeln!(
                faults,
                "{path}:{}: a function of {length} lines; {FUNCTION_LINES} are the most",
                start + 1
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found() {
        let mut faults = String::new();
        let long = format!("fn long() {{\n{}}}\n", "    x();\n".repeat(FUNCTION_LINES + 1));
        check_functions("a.rs", &long, &mut faults);
        assert!(faults.starts_with("a.rs:1: a function of"), "{faults}");
        faults.clear();
        check_widths("a.rs", &"x".repeat(WIDTH + 1), &mut faults);
        assert_eq!(faults, "a.rs:1: 101 columns, 100 fit\n");
        faults.clear();
        check_functions("a.rs", "    fn short() {\n        x();\n    }\n", &mut faults);
        check_widths("a.rs", &"x".repeat(WIDTH), &mut faults);
        assert_eq!(faults, "");
    }
}
