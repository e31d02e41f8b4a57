//! Generated parts of the documentation. Between `<!-- generated: COMMAND -->` and `<!-- end -->`
//! stands exactly what the command prints, so that no number is older than the program. A command
//! is `anysched ARGUMENTS`, `cat FILE` for a file in the repository, or `fidelity` for the tables
//! of real kernels beside the simulator. A figure is a file beside
//! the page: `<!-- figure: PATH.svg: COMMAND -->`, followed by `![…](PATH.svg)`, names the command
//! that prints it.

use crate::fidelity;
use crate::inputs::{Inputs, Kept};
use crate::noted::Noted;
use crate::run::{Failed, cargo, cargo_command, command, output, output_or, root, run};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";
const FIGURE: &str = "<!-- figure: ";

/// Rewrites the generated parts and figures.
pub fn write() -> Result<(), Failed> {
    write_named(&[])
}

/// Rewrites the generated parts and figures of pages whose path has one of `names`; of all pages
/// if there are none.
pub fn write_named(names: &[&str]) -> Result<(), Failed> {
    let mut printer = Printer::new(false)?;
    for Page { name, old, new } in generate(names, &mut printer)? {
        if old != new {
            println!("rewriting {name}");
            std::fs::write(root().join(&name), new)
                .map_err(|error| Failed(format!("{name}: {error}")))?;
        }
    }
    if names.is_empty() {
        printer.noted.retain(|line| printer.printed.contains_key(line));
    }
    printer.noted.write()
}

/// Fails if a generated part differs from what its command prints, or from what is noted of that.
pub fn check() -> Result<(), Failed> {
    let mut printer = Printer::new(std::env::var_os("ANYSCHED_LONG").is_none())?;
    let pages = generate(&[], &mut printer)?;
    let stale: Vec<String> = pages.iter().filter_map(first_difference).collect();
    if !stale.is_empty() {
        return Err(Failed(format!("not current: {}; type: cargo xtask docs", stale.join(", "))));
    }
    println!("taken from docs/printed.tsv: {} of {}", printer.believed, printer.printed.len());
    Ok(())
}

/// Builds the API documentation; warnings are errors.
pub fn build() -> Result<(), Failed> {
    let mut doc = cargo_command(&["doc", "--workspace", "--no-deps", "--quiet"]);
    run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// A page of documentation, or a figure on a page.
struct Page {
    /// Path from the root of the repository.
    name: String,
    old: String,
    /// The text with its generated parts up to date.
    new: String,
}

/// Every page that git tracks or could add.
fn generate(names: &[&str], printer: &mut Printer) -> Result<Vec<Page>, Failed> {
    build_program()?;
    let mut pages = Vec::new();
    let mut drawn: BTreeMap<String, String> = BTreeMap::new();
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
    let wanted = |page: &&str| names.is_empty() || names.iter().any(|name| page.contains(name));
    for name in output(&mut command("git", &list))?.lines().filter(wanted) {
        let Ok(old) = std::fs::read_to_string(root().join(name)) else { continue };
        for (path, line) in figures(&old).map_err(|Failed(why)| Failed(format!("{name}:{why}")))? {
            let path = beside(name, path)?;
            match drawn.get(&path) {
                Some(other) if other == line => continue,
                Some(other) => {
                    let why = format!("{name}: {path} is \"{line}\", and \"{other}\" elsewhere");
                    return Err(Failed(why));
                }
                None => drawn.insert(path.clone(), line.to_owned()),
            };
            let old = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
            let printed = printer.print(line, &old);
            let new = printed.map_err(|Failed(why)| Failed(format!("{name}: {why}")))?;
            pages.push(Page { name: path, old, new });
        }
        if !old.contains(BEGIN) {
            pages.push(Page { name: name.to_owned(), new: old.clone(), old });
            continue;
        }
        let new = regenerate(&old, |line, old| printer.print(line, old))
            .map_err(|Failed(why)| Failed(format!("{name}: {why}")))?;
        pages.push(Page { name: name.to_owned(), old, new });
    }
    Ok(pages)
}

/// The figures of a page, with the commands that print them.
///
/// Errors: `line: what is wrong`, for a figure that is not shown on the next line or is not a
/// picture.
fn figures(page: &str) -> Result<Vec<(&str, &str)>, Failed> {
    let mut found = Vec::new();
    let mut lines = (1..).zip(page.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let Some(rest) = line.strip_prefix(FIGURE) else { continue };
        let figure = rest.strip_suffix(" -->").and_then(|rest| rest.split_once(": "));
        let Some((path, command)) = figure.filter(|(path, _)| path.ends_with(".svg")) else {
            let form = format!("{FIGURE}PATH.svg: anysched plot … -->");
            return Err(Failed(format!("{number}: a figure is written {form}")));
        };
        let shown = format!("]({path})");
        if !lines.peek().is_some_and(|(_, next)| next.starts_with("![") && next.contains(&shown)) {
            return Err(Failed(format!("{number}: the next line is not ![…]({path})")));
        }
        found.push((path, command));
    }
    Ok(found)
}

/// The path from the root of the repository of a file named on a page.
fn beside(page: &str, path: &str) -> Result<String, Failed> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.pop().is_some() => {}
            "" | ".." => return Err(Failed(format!("{page}: {path} is not in the repository"))),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Where the page first differs from what it should be: `path:line`.
fn first_difference(Page { name, old, new }: &Page) -> Option<String> {
    if old == new {
        return None;
    }
    let line = old.lines().zip(new.lines()).position(|(old, new)| old != new);
    Some(format!("{name}:{}", line.map_or(0, |line| line + 1)))
}

/// The page with what `print` prints for each command, given what stands there now.
fn regenerate(
    page: &str,
    mut print: impl FnMut(&str, &str) -> Result<String, Failed>,
) -> Result<String, Failed> {
    let mut new = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        new.push_str(line);
        new.push('\n');
        if let Some(command) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) {
            let old: Vec<&str> = lines.clone().take_while(|line| *line != END).collect();
            if lines.nth(old.len()).is_none() {
                return Err(Failed(format!("no {END} after {line}")));
            }
            let (fence, old) = match &old[..] {
                [fence, old @ .., "```"] if fence.starts_with("```") => (Some(fence), old),
                old => (None, old),
            };
            if let Some(fence) = fence {
                new.push_str(fence);
                new.push('\n');
            }
            new.push_str(print(command, &old.join("\n"))?.trim_end());
            new.push_str(if fence.is_some() { "\n```\n" } else { "\n" });
            new.push_str(END);
            new.push('\n');
        }
    }
    Ok(new)
}

/// The words of a command; one in double quotes may have blanks.
pub fn words(line: &str) -> Vec<&str> {
    let quoted = line.split('"').enumerate();
    quoted
        .flat_map(|(part, text)| match part % 2 {
            0 => text.split_whitespace().collect(),
            _ => vec![text],
        })
        .collect()
}

/// Prints what commands print, or what they have printed before from the same inputs.
struct Printer {
    inputs: Inputs,
    kept: Kept,
    runs: Runs,
    noted: Noted,
    /// Whether what is noted is taken for printed.
    believes: bool,
    /// Outputs of which it was.
    believed: usize,
    /// Outputs by command.
    printed: BTreeMap<String, String>,
}

impl Printer {
    fn new(believes: bool) -> Result<Printer, Failed> {
        let (inputs, kept, runs) = (Inputs::read()?, Kept::open(), Runs::new()?);
        let (noted, printed) = (Noted::read()?, BTreeMap::new());
        Ok(Printer { inputs, kept, runs, noted, believes, believed: 0, printed })
    }

    /// What a command prints; `old` is what stands there.
    fn print(&mut self, line: &str, old: &str) -> Result<String, Failed> {
        if let Some(printed) = self.printed.get(line) {
            return Ok(printed.clone());
        }
        let new = self.print_now(line, old)?;
        self.printed.insert(line.to_owned(), new.clone());
        Ok(new)
    }

    fn print_now(&mut self, line: &str, old: &str) -> Result<String, Failed> {
        let words = words(line);
        match words[..] {
            ["anysched", ref args @ ..] => {
                let inputs = self.inputs.of(args);
                let output = match self.kept.get(line, &inputs) {
                    Some(output) => output,
                    None if self.believes && self.noted.has(line, &inputs, old) => {
                        self.believed += 1;
                        return Ok(old.to_owned());
                    }
                    None => self.run(line, args, &inputs)?,
                };
                if takes_long(args) {
                    self.noted.note(line, &inputs, &output);
                }
                Ok(output)
            }
            ["cat", file] => std::fs::read_to_string(root().join(file))
                .map_err(|error| Failed(format!("{file}: {error}"))),
            ["fidelity"] => fidelity::page(),
            _ => {
                let known = "`anysched …`, `cat FILE` and `fidelity`";
                Err(Failed(format!("\"{line}\" is none of {known}")))
            }
        }
    }

    /// Has the program print, and keeps that.
    fn run(&mut self, line: &str, args: &[&str], inputs: &str) -> Result<String, Failed> {
        let started = Instant::now();
        let output = output(self.runs.kept_for(args, &mut program(args)))?;
        let seconds = started.elapsed().as_secs_f64();
        if seconds >= SLOW {
            println!("{seconds:5.1} s: {line}");
        }
        self.kept.put(line, inputs, &output)?;
        Ok(output)
    }
}

/// Whether a command runs experiments of the repository.
fn runs_experiments(args: &[&str]) -> bool {
    match args {
        ["reproduce", ..] => true,
        ["run" | "plot", file, ..] => file.starts_with("experiments/"),
        _ => false,
    }
}

/// Whether what a command prints is noted for fresh clones.
fn takes_long(args: &[&str]) -> bool {
    runs_experiments(args) || matches!(args, ["tune", ..])
}

/// Where runs of experiments are kept while pages are generated: what a page prints of a paper, and
/// what it draws, are often the same runs.
struct Runs(tempfile::TempDir);

impl Runs {
    fn new() -> Result<Runs, Failed> {
        let made = tempfile::tempdir();
        made.map(Runs).map_err(|error| Failed(format!("a folder for runs: {error}")))
    }

    /// Has a command that runs experiments of the repository use what others have run.
    fn kept_for<'a>(&self, args: &[&str], command: &'a mut Command) -> &'a mut Command {
        if runs_experiments(args) {
            command.env("ANYSCHED_RUNS", self.0.path());
        }
        command
    }
}

/// Commands that take at least this many seconds are reported.
const SLOW: f64 = 2.0;

/// Builds the program that [`anysched`] runs. It is the debug build that the tests use: it exists
/// already when everything is checked, and it detects overflows.
pub fn build_program() -> Result<(), Failed> {
    cargo(&["test", "--workspace", "--all-features", "--no-run", "--quiet"])
}

/// What `anysched` prints on a terminal of 80 columns without colours.
pub fn anysched(args: &[&str]) -> Result<String, Failed> {
    output(&mut program(args))
}

/// What `anysched reproduce` prints, also if claims come out otherwise than their experiments
/// expect: that is a result, which says so.
pub fn reproduced(args: &[&str]) -> Result<String, Failed> {
    /// With which `reproduce` says that.
    const UNEXPECTED: i32 = 3;
    output_or(&mut program(&[&["reproduce"], args].concat()), |code| code == UNEXPECTED)
}

/// Where builds go.
pub fn target() -> PathBuf {
    std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from)
}

/// Builds the program as `cargo anysched` does, for what would take too long by [`program`]. It is
/// called by [`released`].
pub fn build_released() -> Result<(), Failed> {
    cargo(&["build", "--release", "--quiet", "-p", "anysched-cli"])
}

/// A command of the program as it is released.
pub fn released(args: &[&str]) -> Command {
    command(&target().join("release/anysched").to_string_lossy(), args)
}

/// Where the program is once it has been built.
pub fn program_path() -> PathBuf {
    target().join("debug/anysched")
}

/// A command of the program.
pub fn program(args: &[&str]) -> Command {
    let mut command = command(&program_path().to_string_lossy(), args);
    command.env("NO_COLOR", "1").env("COLUMNS", "80");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_may_have_blanks() {
        assert_eq!(
            words("gantt a.toml --policy \"by period\" -x"),
            ["gantt", "a.toml", "--policy", "by period", "-x"]
        );
    }

    #[test]
    fn only_what_is_generated_changes() {
        let page = "a\n<!-- generated: anysched x -->\n```text\nold\n```\n<!-- end -->\nb\n";
        let mut stood = Vec::new();
        let new = regenerate(page, |command, old| {
            stood.push(old.to_owned());
            Ok(format!("printed by {command}\n"))
        });
        let new = new.unwrap();
        assert_eq!(stood, ["old"]);
        let expected = "a\n<!-- generated: anysched x -->\n```text\nprinted by anysched x\n```\n\
                        <!-- end -->\nb\n";
        assert_eq!(new, expected);
        assert_eq!(regenerate(&new, |_, _| Ok("printed by anysched x".into())).unwrap(), new);
        let unended = new.replace(END, "");
        assert!(regenerate(&unended, |_, _| Ok(String::new())).is_err());
    }

    #[test]
    fn figures_are_found_beside_their_pages() {
        let page = "a\n<!-- figure: img/a.svg: anysched plot x.toml -->\n![A](img/a.svg)\nb\n";
        assert_eq!(figures(page).unwrap(), [("img/a.svg", "anysched plot x.toml")]);
        let fault = |page: &str| figures(page).unwrap_err().0;
        let other = page.replace("](img/a.svg)", "](img/b.svg)");
        assert_eq!(fault(&other), "2: the next line is not ![…](img/a.svg)");
        assert_eq!(fault(page.split("![").next().unwrap()), fault(&other));
        assert!(fault(&page.replace("a.svg: ", "a.png: ")).starts_with("2: a figure is written"));
        let path = |path| beside("docs/papers/x.md", path).map_err(|Failed(why)| why);
        assert_eq!(path("img/a.svg").unwrap(), "docs/papers/img/a.svg");
        assert_eq!(path("../a.svg").unwrap(), "docs/a.svg");
        assert_eq!(beside("README.md", "./a.svg").map_err(|_| ()), Ok("a.svg".to_string()));
        assert!(path("../../../a.svg").is_err() && path("/a.svg").is_err());
        let stale =
            Page { name: "a.svg".into(), old: "<svg>\n1\n".into(), new: "<svg>\n2\n".into() };
        assert_eq!(first_difference(&stale).unwrap(), "a.svg:2");
        let missing = Page { old: String::new(), ..stale };
        assert!(first_difference(&missing).is_some());
    }
}
