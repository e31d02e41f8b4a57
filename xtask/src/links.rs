//! Links of the documentation: each that names a file must lead to one.

use crate::run::root;
use std::fmt::Write;
use std::path::Path;

/// Finds the links of a page that lead nowhere. `path` is from the root of the repository.
pub fn check(path: &str, page: &str, faults: &mut String) {
    let path = Path::new(path);
    let folder = root().join(path.parent().unwrap_or(Path::new("")));
    for (line, target) in links(page).filter(|(_, target)| !folder.join(target).exists()) {
        let _ = writeln!(faults, "{}:{line}: there is no file {target}", path.display());
    }
}

/// The files that a page links to, outside fenced text: line number and path relative to the page.
fn links(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let lines = (1..).zip(page.lines()).filter(move |(_, line)| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    let targets = lines.flat_map(|(number, line)| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.map(move |target| (number, target))
    });
    targets.filter_map(|(number, target)| {
        let file = target.split('#').next().unwrap_or(target);
        let elsewhere = file.is_empty() || target.contains("://");
        (!elsewhere).then_some((number, file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let page = "[a](a.md) [b](https://b) [c](#c)\n```\n[d](d.md)\n```\n[e](../e.md#f)\n";
        assert_eq!(links(page).collect::<Vec<_>>(), [(1, "a.md"), (5, "../e.md")]);
        let mut faults = String::new();
        check("docs/a.md", "[README](../README.md) [a](b.md)\n", &mut faults);
        assert_eq!(faults, "docs/a.md:1: there is no file b.md\n");
    }
}
