//! Circles among the parts of a crate, which no tool of Rust's finds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The crates whose folders must not use each other in a circle.
const CRATES: [&str; 8] = ["arceos", "cli", "core", "host", "lab", "measure", "policies", "sim"];

/// The parts of a crate's `src` and which others each uses. A part is a file there, or a folder
/// with the file of the same name.
#[derive(Default)]
struct Parts {
    uses: BTreeMap<String, BTreeSet<String>>,
    folders: BTreeSet<String>,
}

/// Finds circles that a folder is in. Files directly in `src` may use each other as they like.
pub fn check(sources: &BTreeMap<String, String>, faults: &mut String) {
    for name in CRATES {
        let src = format!("crates/{name}/src/");
        let inside =
            sources.iter().filter_map(|(path, text)| Some((path.strip_prefix(&src)?, text)));
        for circle in Parts::new(inside).circles() {
            let _ = writeln!(
                faults,
                "{src}: {} use each other in a circle; move what they share to one that uses none \
                 of the others",
                circle.join(", ")
            );
        }
    }
}

impl Parts {
    fn new<'a>(files: impl Iterator<Item = (&'a str, &'a String)>) -> Parts {
        let mut parts = Parts::default();
        for (path, text) in files {
            let top = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
            if is_test(path) || matches!(top, "lib" | "main") {
                continue;
            }
            if path.contains('/') {
                parts.folders.insert(top.to_string());
            }
            parts.uses.entry(top.to_string()).or_default().extend(used(&code(text)));
        }
        let known: BTreeSet<String> = parts.uses.keys().cloned().collect();
        for (part, used) in &mut parts.uses {
            used.retain(|other| other != part && known.contains(other));
        }
        parts
    }

    /// All parts that `part` needs, directly or not.
    fn reached<'a>(&'a self, part: &'a str) -> BTreeSet<&'a str> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![part]);
        while let Some(part) = open.pop() {
            let others = self.uses.get(part).into_iter().flatten();
            open.extend(others.map(String::as_str).filter(|other| reached.insert(*other)));
        }
        reached
    }

    /// Groups of parts that all need each other, if there is a folder among them.
    fn circles(&self) -> Vec<Vec<&str>> {
        let parts = self.uses.keys().map(String::as_str);
        let reached: BTreeMap<&str, _> = parts.map(|part| (part, self.reached(part))).collect();
        let mut circles = Vec::new();
        for (part, others) in &reached {
            let back = |other: &&str| reached[other].contains(part);
            let circle: Vec<&str> = others.iter().copied().filter(back).collect();
            let is_first = circle.first() == Some(part);
            if is_first && circle.iter().any(|part| self.folders.contains(*part)) {
                circles.push(circle);
            }
        }
        circles
    }
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part.trim_end_matches(".rs").ends_with("tests"))
}

/// `text` without comments and the modules of its tests.
fn code(text: &str) -> String {
    let (mut code, mut end_of_tests) = (String::new(), None);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(end) = &end_of_tests {
            if line == end {
                end_of_tests = None;
            }
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_module = |next: &&str| next.trim_start().starts_with("mod ") && next.ends_with('{');
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(is_module) {
            end_of_tests = Some(format!("{indent}}}"));
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// The first names of all paths that start with `crate::`.
fn used(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        // `$crate` is of the crate that a macro is from.
        if code[..at].ends_with(|c: char| c == '$' || c == '_' || c.is_alphanumeric()) {
            continue;
        }
        let rest = &code[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(list) => used.extend(heads(list)),
            None => used.push(name(rest)),
        }
    }
    used
}

/// The first names of the paths in a list, up to its closing brace.
fn heads(list: &str) -> Vec<String> {
    let (mut heads, mut depth, mut is_start) = (Vec::new(), 0, true);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_start = true,
            c if is_start && !c.is_whitespace() => {
                heads.push(name(&list[at..]));
                is_start = false;
            }
            _ => {}
        }
    }
    heads
}

fn name(text: &str) -> String {
    text.chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> String {
        let path = |path: &str| format!("crates/lab/src/{path}");
        let sources = files.iter().map(|(file, text)| (path(file), text.to_string())).collect();
        let mut faults = String::new();
        check(&sources, &mut faults);
        faults
    }

    #[test]
    fn circles_through_folders_are_found() {
        let one = faults(&[
            ("lib.rs", "use crate::a::X;\n"),
            ("a/mod.rs", "use crate::{self, c::{d, e}, b::Y};\n"),
            ("a/more.rs", ""),
            ("b.rs", "fn f() {\n    crate::c::g();\n}\n"),
            ("c.rs", "use crate::a::more;\n"),
        ]);
        assert!(one.starts_with("crates/lab/src/: a, b, c use each other"), "{one}");
        assert_eq!(one.lines().count(), 1);
    }

    #[test]
    fn lines_are_no_circles() {
        let none = faults(&[
            ("lib.rs", "use crate::b::X;\n"),
            ("a/mod.rs", "use crate::b::X;\nuse crate::a::more;\n"),
            ("a/tests.rs", "use crate::d;\n"),
            ("b.rs", "// crate::a\nuse crate::c::{a, X};\nmacro!($crate::a::b);\n"),
            ("c.rs", "use crate::b;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
            ("d.rs", "use crate::a;\n"),
        ]);
        assert_eq!(none, "");
    }

    #[test]
    fn code_goes_on_behind_tests() {
        let text = "#[cfg(test)]\nmod tests {\n    use crate::x;\n}\nuse crate::y; // crate::z\n";
        assert_eq!(used(&code(text)), ["y"]);
    }
}
