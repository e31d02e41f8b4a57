//! What decides for the kernel that runs here, built where a user keeps caches.

use super::Machine;
use crate::BootError;
use crate::build::{build_agent_here, build_here};
use anysched_host::{Built, Place};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds what has changed since it was built last.
///
/// Errors: what is missing and what to do about it, or what a compiler says.
pub fn build(
    machine: &Machine,
    place: Place,
    checked: bool,
    say: &mut dyn FnMut(&str),
) -> Result<Built, String> {
    let headers = match place {
        Place::Kernel => machine.headers().map(Some)?,
        Place::Agent => None,
    };
    machine.require_tools(place)?;
    let said = |error: BootError| error.to_string();
    let sources = anysched_qemu::sources("linux").map_err(said)?;
    let home = std::env::home_dir().ok_or("HOME is not set")?;
    let target = cache(&home, std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from));
    let Some(headers) = headers else {
        return build_agent_here(&sources, &target, &machine.kernel(), say).map_err(said);
    };
    let headers = headers.to_str().ok_or("the headers' place is not UTF-8")?;
    build_here(&sources, &target, &machine.kernel(), headers, checked, say).map_err(said)
}

/// As [`build`], as the user who has called sudo: compilers are no business of root's, and root may
/// not have them.
pub fn as_user(
    machine: &Machine,
    place: Place,
    checked: bool,
    say: &mut dyn FnMut(&str),
) -> Result<Built, String> {
    let Some(user) = User::behind_sudo(machine.root()) else {
        return build(machine, place, checked, say);
    };
    if place == Place::Kernel {
        machine.headers()?;
    }
    let place = place.name();
    say(&format!("building as {}", user.name));
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut path = vec![user.home.join(".cargo/bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path = std::env::join_paths(path).map_err(|error| format!("PATH: {error}"))?;
    let mut child = Command::new(program);
    child.args(["attach", "--build", "--in", place]).args(checked.then_some("--checked"));
    child.env("HOME", &user.home).env("USER", &user.name);
    child.env("PATH", path).uid(user.uid).gid(user.gid).stderr(Stdio::inherit());
    let output = child.output().map_err(|error| format!("this program as a user: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    match (output.status.success(), &printed.lines().collect::<Vec<_>>()[..]) {
        (true, [decider, program]) => {
            Ok(Built { decider: decider.into(), program: program.into() })
        }
        _ => Err(format!("the {place} could not be built")),
    }
}

/// Where builds are kept, given the home directory and what the environment says of caches.
fn cache(home: &Path, caches: Option<PathBuf>) -> PathBuf {
    let caches = caches.filter(|path| path.is_absolute());
    caches.unwrap_or_else(|| home.join(".cache")).join("anysched/linux")
}

/// A user.
#[derive(Debug, PartialEq, Eq)]
struct User {
    name: String,
    uid: u32,
    gid: u32,
    home: PathBuf,
}

impl User {
    /// Who has called sudo to run this as root.
    fn behind_sudo(root: &Path) -> Option<User> {
        let uid = std::env::var("SUDO_UID").ok()?.parse().ok().filter(|uid| *uid != 0)?;
        User::of(&std::fs::read_to_string(root.join("etc/passwd")).ok()?, uid)
    }

    /// The user of this number, from the text of `/etc/passwd`.
    fn of(passwd: &str, uid: u32) -> Option<User> {
        passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, number, gid, _, home, _] = fields[..] else { return None };
            let found = User { name: name.into(), uid, gid: gid.parse().ok()?, home: home.into() };
            (number.parse() == Ok(uid)).then_some(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_where_the_environment_says() {
        let home = Path::new("/home/eve");
        assert_eq!(cache(home, None), Path::new("/home/eve/.cache/anysched/linux"));
        assert_eq!(cache(home, Some("/var/c".into())), Path::new("/var/c/anysched/linux"));
        // The specification has relative ones ignored.
        assert_eq!(cache(home, Some("c".into())), cache(home, None));
    }

    #[test]
    fn users_are_found_by_number() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\nbroken\neve:x:1001:100:Eve,,:/home/eve:/bin/sh\n";
        let eve = User { name: "eve".into(), uid: 1001, gid: 100, home: "/home/eve".into() };
        assert_eq!(User::of(passwd, 1001), Some(eve));
        assert_eq!(User::of(passwd, 1002), None);
    }
}
