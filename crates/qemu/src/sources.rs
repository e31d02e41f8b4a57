//! What the kernel's end of a host is built from, and for.

use crate::BootError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory `hosts/HOST` of the project: below the working directory or one above it, or else
/// where this program was built.
///
/// Errors: there is none.
pub fn sources(host: &str) -> Result<PathBuf, BootError> {
    let here = std::env::current_dir().unwrap_or_default();
    let built = Path::new(env!("CARGO_MANIFEST_DIR"));
    let relative = Path::new("hosts").join(host);
    let mut candidates = here.ancestors().chain(built.ancestors());
    let found = candidates.find(|path| path.join(&relative).join("Cargo.toml").is_file());
    found.map(|path| path.join(&relative)).ok_or_else(|| BootError::Missing {
        what: format!("there is no {} here or above", relative.display()),
        remedy: "call this in a copy of anysched's repository".into(),
    })
}

/// Errors: the compiler cannot build for `target`.
pub fn require_target(target: &str) -> Result<(), BootError> {
    let asked =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let directory = asked.ok().filter(|output| output.status.success());
    let directory =
        directory.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    if directory.is_some_and(|directory| Path::new(&directory).is_dir()) {
        return Ok(());
    }
    Err(BootError::Missing {
        what: format!("the compiler has no libraries for {target}"),
        remedy: format!("add them with `rustup target add {target}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_sources_are_found_from_anywhere_in_the_project() {
        assert!(sources("arceos").unwrap().ends_with("hosts/arceos"));
        let error = sources("nonesuch").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no hosts/nonesuch here or above; call this"),
            "{error}"
        );
    }

    #[test]
    fn a_target_that_is_not_installed_comes_with_a_remedy() {
        let error = require_target("x86_64-unknown-nonesuch").unwrap_err().to_string();
        assert!(error.ends_with("`rustup target add x86_64-unknown-nonesuch`"), "{error}");
    }
}
