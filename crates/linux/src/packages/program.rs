//! Programs for guests: packages that are added to a suite's root when they are asked for first.

use super::{APT, INSTALLED, NEEDS, Suite, files, find_or_fetch, remove, sizes};
use crate::BootError;
use anysched_debian::{Apt, State, mirror};
use std::fs;
use std::path::PathBuf;

impl Suite {
    /// Has the root have a package with a program for guests. Returns the file that changes when it
    /// is fetched anew. What happens meanwhile goes to `say`.
    ///
    /// Errors: the suite does not have it, or it cannot be fetched.
    pub(crate) fn add(
        &self,
        package: &str,
        say: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, BootError> {
        let directory = self.root.path().parent().unwrap_or(self.root.path());
        let note = directory.join("added").join(package);
        let cache = directory.parent().unwrap_or(directory);
        let found = || State::read(&note).map(|_| State::file(&note));
        find_or_fetch(cache, NEEDS, say, found, |say| {
            let apt = Apt::new(&note.join(APT), cache, &mirror()?, self.parts())?;
            let installed = directory.join(INSTALLED);
            if installed.exists() {
                apt.has(&installed)?;
            }
            say(&format!("fetching {package}"));
            let fetched = apt.update().and_then(|listed| {
                apt.fetch_with_dependencies(&[package])?;
                Ok(listed)
            });
            let listed = fetched.map_err(|why| self.does_not_have(package, &why))?;
            let packages = files(&apt.archives())?;
            let fetched = listed + sizes(&packages);
            anysched_debian::unpack(&packages, self.root.path())?;
            anysched_debian::note(&packages, &installed)?;
            remove(&note.join(APT))?;
            let mut state = State::default();
            state.add("fetched", &fetched.to_string());
            fs::create_dir_all(&note).map_err(|error| BootError::files(note.display(), error))?;
            state.write(&note)
        })
    }

    fn does_not_have(&self, package: &str, why: &str) -> BootError {
        BootError::Missing {
            what: format!("Debian {} does not give its package {package}: {why}", self.name),
            remedy: "take another program, or delete hosts/linux/target/packages to look for a \
                     newer suite"
                .into(),
        }
    }

    /// Whether the root has this file, whichever package it is from.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.resolve(path).is_ok_and(|found| found.is_file())
    }
}
