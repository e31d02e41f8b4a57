//! Programs of Debian's packages that guests run, and the files that they read.

use crate::{Boot, BootError};
use std::path::Path;

/// Programs, and the packages that have them.
const PROGRAMS: [(&str, &str); 5] = [
    ("cyclictest", "rt-tests"),
    ("hackbench", "rt-tests"),
    ("rt-app", "rt-app"),
    ("stress-ng", "stress-ng"),
    ("sysbench", "sysbench"),
];

/// The argument of rt-app that names its file on this computer.
const FILE: &str = "file";

/// Where the guest looks for it.
const PLACE: &str = "/etc/anysched/rt-app.json";

/// The package that has a program.
pub(crate) fn package(program: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|(name, _)| *name == program).map(|(_, package)| *package)
}

/// Adds to a boot what its program needs of packages: itself, or what `shell` and `exec` name.
///
/// Errors: the file that an argument names is not there.
pub(crate) fn provide(boot: &mut Boot) -> Result<(), BootError> {
    let program = &boot.orders.program;
    let argument = |name: &str| boot.orders.arguments.iter().find(|(known, _)| known == name);
    if ["shell", "exec"].contains(&program.as_str())
        && let Some((_, names)) = argument("programs")
    {
        boot.programs.extend(names.split(',').map(|name| name.trim().to_string()));
    }
    if package(program).is_none() {
        return Ok(());
    }
    boot.programs.push(program.clone());
    if let Some((_, path)) = argument(FILE).filter(|_| program == "rt-app") {
        if !Path::new(path).is_file() {
            return Err(BootError::Missing {
                what: format!("`{FILE}` = \"{path}\": there is no such file"),
                remedy: "name a JSON file of rt-app's, or leave it out for a small one".into(),
            });
        }
        boot.files.push((PLACE.into(), path.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provided(program: &str, arguments: &[(&str, &str)]) -> Result<Boot, String> {
        let mut boot = Boot::new("rr", program);
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        boot.orders.arguments = arguments.iter().map(owned).collect();
        provide(&mut boot).map_err(|error| error.to_string())?;
        Ok(boot)
    }

    #[test]
    fn a_boot_has_the_program_and_its_file() {
        let boot = provided("hackbench", &[("file", "/nonesuch")]).unwrap();
        assert_eq!((boot.programs, boot.files), (vec!["hackbench".to_string()], vec![]));
        let here = file!();
        let path = Path::new(here).file_name().map(|name| Path::new("src").join(name)).unwrap();
        let path = path.to_str().unwrap();
        let boot = provided("rt-app", &[("args", "x"), ("file", path)]).unwrap();
        assert_eq!(boot.files, [(PLACE.to_string(), path.into())]);
        let boot = provided("shell", &[("programs", "rt-app, perf")]).unwrap();
        assert_eq!(boot.programs, ["rt-app", "perf"]);
        let boot = provided("yield", &[]).unwrap();
        assert!(boot.programs.is_empty() && boot.files.is_empty());
        let error = provided("rt-app", &[("file", "/nonesuch")]).unwrap_err();
        assert!(error.starts_with("`file` = \"/nonesuch\": there is no such file"), "{error}");
    }
}
