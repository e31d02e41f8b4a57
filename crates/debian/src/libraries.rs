//! The libraries that programs of a root need.

use crate::step::run;
use crate::{BootError, Root};
use std::collections::BTreeSet;

/// Finds them.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// The libraries of a program and their loader, inside the root.
///
/// Errors: this user may not change roots, or a library is in none of the packages.
pub fn libraries(root: &Root, program: &str) -> Result<BTreeSet<String>, BootError> {
    let mut list = root.command(LOADER, &[])?;
    list.args(["--list", program]);
    listed(&run(list, program)?, program)
}

/// The files in what the loader lists: `NAME => FILE (ADDRESS)`, or `FILE (ADDRESS)` of the loader
/// itself. What the kernel provides has no file.
fn listed(lines: &str, program: &str) -> Result<BTreeSet<String>, BootError> {
    let mut files = BTreeSet::new();
    for line in lines.lines().map(str::trim) {
        let (name, file) = line.split_once(" => ").unwrap_or(("", line));
        if file == "not found" {
            let said = format!("{program} needs {name}, which is in none of its packages");
            return Err(BootError::Build { said });
        }
        let file = file.rsplit_once(" (").map_or(file, |(file, _)| file);
        if file.starts_with('/') {
            files.insert(file.to_string());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the loader says of bpftool in forky, and of a program without a library.
    const BPFTOOL_LISTED: &str = "\
\tlinux-vdso.so.1 (0x00007f0b37ae6000)
\tlibelf.so.1 => /lib/x86_64-linux-gnu/libelf.so.1 (0x00007f0b37a0f000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0b3700a000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f0b37ae8000)
";

    #[test]
    fn libraries_and_the_loader_are_files() {
        let files: Vec<String> =
            listed(BPFTOOL_LISTED, "/usr/sbin/bpftool").unwrap().into_iter().collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/x86_64-linux-gnu/libelf.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(files, expected);
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = listed("\tlibblas.so.3 => not found\n", "/usr/bin/x").unwrap_err().to_string();
        assert!(error.ends_with("/usr/bin/x needs libblas.so.3, which is in none of its packages"));
    }
}
