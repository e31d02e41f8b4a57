//! A library in Rust as one object that a kernel is linked with.

use crate::step::{run, step};
use crate::{BootError, Tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A static library, and what of it becomes an object.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// The library.
    pub archive: &'a Path,
    /// The linker's script, which says how its sections are called in the object.
    pub script: &'a Path,
    /// What the kernel calls. All other symbols become local: they are no business of the kernel's.
    pub exports: &'a [&'a str],
}

impl Library<'_> {
    /// Writes the object, with what is reached from the exports, unless it is there and of the
    /// same.
    ///
    /// Errors: what a tool says.
    pub fn merge(&self, tools: Tools<'_>, object: &Path) -> Result<(), BootError> {
        let settings = self.exports.join(" ");
        let inputs = [self.archive.to_path_buf(), self.script.into()];
        step(object, &settings, &inputs, |new| self.merge_now(tools, object, new))
    }

    fn merge_now(&self, tools: Tools<'_>, object: &Path, new: &Path) -> Result<(), BootError> {
        let directory = |path: &'_ Path| path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let [library, script, target] = [self.archive, self.script, object].map(directory);
        let mounts = [
            (library.as_path(), "/library"),
            (script.as_path(), "/policies"),
            (target.as_path(), "/work"),
        ];
        let merged = object.with_added_extension("merged");
        let mut link = tools.tool("ld", &mounts)?;
        let [script, output, archive] =
            [self.script, &merged, self.archive].map(|path| link.seen(path));
        link.command.args(["-r", "--gc-sections", "-T"]).arg(script).args(["-e", self.exports[0]]);
        for name in self.exports {
            link.command.args(["-u", name]);
        }
        link.command.arg("-o").arg(output).arg(archive);
        link.run()?;
        let mut copy = tools.tool("objcopy", &mounts)?;
        let [merged, new] = [&merged, new].map(|path| copy.seen(path));
        copy.command.args(self.exports.iter().map(|name| format!("--keep-global-symbol={name}")));
        copy.command.arg("--strip-debug").arg(merged).arg(new);
        copy.run().map(drop)
    }
}

/// The compiler's flags as cargo takes them, for a library that is built with its own `core`. Files
/// are renamed, so that messages of panics do not depend on where this is built.
///
/// Errors: the compiler came without the sources of its library.
pub fn flags<'a>(
    project: &Path,
    wanted: impl Iterator<Item = &'a str>,
) -> Result<String, BootError> {
    Ok(joined(project, &sources_of_library(&sysroot()?)?, wanted))
}

fn joined<'a>(project: &Path, library: &Path, wanted: impl Iterator<Item = &'a str>) -> String {
    let renamed = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let packages = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let packages = packages.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let packages = packages.unwrap_or_default();
    let names = [(project, "anysched"), (library, "library"), (packages.as_path(), "cargo")];
    let renamed = names.map(|(from, to)| renamed(from, to));
    wanted.map(String::from).chain(renamed).collect::<Vec<_>>().join("\u{1f}")
}

/// Where the compiler is installed.
fn sysroot() -> Result<PathBuf, BootError> {
    let mut ask = Command::new("rustc");
    ask.args(["--print", "sysroot"]);
    Ok(PathBuf::from(run(ask, "rustc")?.trim()))
}

/// The sources of the compiler's library. Errors: it came without them.
fn sources_of_library(sysroot: &Path) -> Result<PathBuf, BootError> {
    let library = sysroot.join("lib/rustlib/src/rust/library");
    if library.join("core/src/lib.rs").is_file() {
        return Ok(library);
    }
    Err(BootError::Missing {
        what: "the compiler came without the sources of its library, which is built anew for the \
               kernel"
            .into(),
        remedy: "add them with `rustup component add rust-src`".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_without_sources_comes_with_a_remedy() {
        let sysroot = tempfile::tempdir().unwrap();
        let error = sources_of_library(sysroot.path()).unwrap_err().to_string();
        assert!(error.ends_with("`rustup component add rust-src`"), "{error}");
        let core = sysroot.path().join("lib/rustlib/src/rust/library/core/src");
        std::fs::create_dir_all(&core).unwrap();
        std::fs::write(core.join("lib.rs"), "").unwrap();
        assert!(sources_of_library(sysroot.path()).is_ok());
    }

    #[test]
    fn flags_survive_spaces_in_paths() {
        let wanted = ["-Zplt=yes"].into_iter();
        let flags = joined(Path::new("/a b"), Path::new("/rust/library"), wanted);
        let flags: Vec<&str> = flags.split('\u{1f}').collect();
        assert!(flags.contains(&"-Zplt=yes"));
        assert!(flags.contains(&"--remap-path-prefix=/a b=anysched"), "{flags:?}");
        assert!(flags.contains(&"--remap-path-prefix=/rust/library=library"), "{flags:?}");
    }
}
