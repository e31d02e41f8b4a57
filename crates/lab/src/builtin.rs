//! The experiments and traces of the repository, which the program carries, so that they run
//! anywhere.
//!
//! Their paths begin with `built-in:`, as if that were a folder.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Where the files are.
pub const ROOT: &str = "built-in:";

/// The folder of experiments in it.
pub const EXPERIMENTS: &str = "experiments";

/// Names with `/` and contents, by name.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// All files: names relative to [`ROOT`], and what is in them.
pub fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().copied()
}

/// The name of a path below [`ROOT`], with `..` resolved; `None`: it is not there.
fn name_of(path: &Path) -> Option<String> {
    let rest = path.strip_prefix(ROOT).ok()?;
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            _ => {}
        }
    }
    Some(parts.join("/"))
}

/// What is in the file at a path below [`ROOT`].
pub fn contents(path: &Path) -> Option<&'static [u8]> {
    let name = name_of(path)?;
    let place = FILES.binary_search_by_key(&name.as_str(), |(name, _)| name).ok()?;
    Some(FILES[place].1)
}

/// Whether a path below [`ROOT`] is that of a folder.
pub fn is_folder(path: &Path) -> bool {
    !entries(path).is_empty()
}

/// The paths of what is in a folder below [`ROOT`], by name; empty: there is no such folder.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let Some(name) = name_of(folder) else { return Vec::new() };
    let start = if name.is_empty() { name } else { name + "/" };
    let inside = FILES.iter().filter_map(|(file, _)| file.strip_prefix(&start));
    let first: BTreeSet<&str> = inside.map(|rest| rest.split('/').next().unwrap_or(rest)).collect();
    first.into_iter().map(|entry| folder.join(entry)).collect()
}

/// The path of the experiment of this name: `quickstart`, `m-rsf/e2-batch`,
/// `experiments/quickstart.toml`.
pub fn experiment(name: &Path) -> Option<PathBuf> {
    let name = name.strip_prefix(EXPERIMENTS).unwrap_or(name);
    let mut path = Path::new(ROOT).join(EXPERIMENTS).join(name);
    if path.extension().is_none_or(|end| end != "toml") {
        path.as_mut_os_string().push(".toml");
    }
    contents(&path).map(|_| path)
}

/// The names of all experiments, as [`experiment`] takes them.
pub fn experiments() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(file, _)| {
        file.strip_prefix(EXPERIMENTS)?.strip_prefix('/')?.strip_suffix(".toml")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    #[test]
    fn names_lead_to_files() {
        for name in ["quickstart", "quickstart.toml", "experiments/quickstart.toml"] {
            let path = experiment(Path::new(name)).unwrap();
            assert_eq!(path, Path::new("built-in:/experiments/quickstart.toml"));
        }
        assert_eq!(experiment(Path::new("quick")), None);
        assert_eq!(experiment(Path::new("../traces/cargo-build")), None);
        let trace = Path::new(ROOT).join("experiments/../traces/cargo-build.txt.gz");
        assert!(contents(&trace).is_some());
        assert_eq!(contents(Path::new("experiments/quickstart.toml")), None, "not below the root");
        assert_eq!(contents(&Path::new(ROOT).join("../../etc/passwd")), None);
    }

    #[test]
    fn folders_have_what_is_in_them() {
        let root = Path::new(ROOT);
        assert_eq!(entries(root), [root.join("experiments"), root.join("traces")]);
        let classroom = root.join("experiments/classroom");
        assert!(is_folder(&classroom) && !is_folder(&root.join("experiments/none")));
        assert!(entries(&classroom).contains(&classroom.join("e1-round-robin.toml")));
    }

    /// Each finds what it names: nothing that one needs was left out.
    #[test]
    fn all_can_be_planned() {
        assert!(experiments().count() > 50);
        let mut missing = Vec::new();
        for name in experiments() {
            let path = experiment(Path::new(name)).unwrap();
            // Not those that are made with files of other places.
            let whole = Experiment::load(&path).and_then(|experiment| experiment.check());
            let quick = Experiment::load(&path).and_then(Experiment::quick);
            let quick = quick.and_then(|experiment| experiment.check());
            for error in [whole.err(), quick.err()].into_iter().flatten() {
                missing.push(format!("{name}: {}", error.to_plain()));
            }
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
    }
}
