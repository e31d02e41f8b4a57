//! A directory as the root of programs, for those that need libraries newer than this computer's.

use crate::BootError;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf, absolute};
use std::process::Command;
use std::sync::OnceLock;

/// A directory with a system in it, which programs get as their root.
///
/// Each program has mounts of its own, so that several can run at once and nothing stays mounted,
/// however a program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    path: PathBuf,
}

/// Where programs are found, inside and outside.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Arguments: the root, pairs of a directory and where it is to be seen, `--`, the program and its
/// arguments. Devices are mounted one by one: a build that deletes `/dev/null` gets an error.
const ENTER: &str = r#"
root=$1
shift
mount --rbind /proc "$root/proc" || exit
for device in full null random urandom zero; do
    [ -e "$root/dev/$device" ] || : > "$root/dev/$device" || exit
    mount --bind "/dev/$device" "$root/dev/$device" || exit
done
while [ "$1" != -- ]; do
    [ -d "$root$2" ] || mkdir -p "$root$2" || exit
    mount --bind "$1" "$root$2" || exit
    shift 2
done
shift
unset OLDPWD PWD SHLVL
exec chroot "$root" "$@"
"#;

impl Root {
    /// The system in `path`.
    pub fn new(path: impl Into<PathBuf>) -> Root {
        Root { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where on this computer the file is that is `path` inside: links are followed as inside.
    ///
    /// Errors: it is not there, or links lead in a circle.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, BootError> {
        let fault = |error: &dyn fmt::Display| BootError::files(self.path.display(), error);
        let mut left: Vec<PathBuf> = names(Path::new(path));
        let mut found = self.path.clone();
        let mut links = 0;
        while let Some(name) = left.pop() {
            if name == Path::new("..") {
                if found != self.path {
                    found.pop();
                }
                continue;
            }
            found.push(name);
            let data =
                found.symlink_metadata().map_err(|error| fault(&format!("{path}: {error}")))?;
            if data.is_symlink() {
                links += 1;
                if links > MOST_LINKS {
                    return Err(fault(&format!("{path}: too many links")));
                }
                let target = found.read_link().map_err(|error| fault(&error))?;
                found.pop();
                if target.is_absolute() {
                    found.clone_from(&self.path);
                }
                left.extend(names(&target));
            }
        }
        Ok(found)
    }

    /// A command that runs `program`, named as inside, with this root. Directories of this computer
    /// are seen inside where `mounts` says; the working directory is `/`, and of the environment
    /// only `PATH` is set.
    ///
    /// Errors: this user may not change roots.
    pub fn command(&self, program: &str, mounts: &[(&Path, &str)]) -> Result<Command, BootError> {
        let full =
            |path: &Path| absolute(path).map_err(|error| BootError::files(path.display(), error));
        let mut command = unshare(privilege()?);
        command.args(["sh", "-c", ENTER, "sh"]).arg(full(&self.path)?);
        for (outside, inside) in mounts {
            command.arg(full(outside)?).arg(inside);
        }
        command.args(["--", program]);
        Ok(command)
    }
}

/// As many as Linux follows.
const MOST_LINKS: u32 = 40;

/// The names that a path consists of, the last one first.
fn names(path: &Path) -> Vec<PathBuf> {
    let names = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.map(|part| PathBuf::from(part.as_os_str())).rev().collect()
}

/// What a user needs to change roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privilege {
    /// Nothing: it is root, and has root's capabilities.
    Own,
    /// A user namespace, in which it is root.
    Namespace,
}

/// A command that runs another with mounts of its own.
fn unshare(privilege: Privilege) -> Command {
    let mut command = Command::new("unshare");
    command.env_clear().env("PATH", PATH);
    if privilege == Privilege::Namespace {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--propagation", "private", "--"]);
    command
}

/// What this user needs, found out by trying.
fn privilege() -> Result<Privilege, BootError> {
    static FOUND: OnceLock<Result<Privilege, BootError>> = OnceLock::new();
    FOUND.get_or_init(try_privileges).clone()
}

fn try_privileges() -> Result<Privilege, BootError> {
    let mut said = String::new();
    for privilege in [Privilege::Own, Privilege::Namespace] {
        // Where security modules restrict namespaces, one can be made but nothing be mounted in it.
        let tried = unshare(privilege).args(["mount", "--rbind", "/proc", "/proc"]).output();
        match tried {
            Ok(output) if output.status.success() => return Ok(privilege),
            Ok(output) => said = String::from_utf8_lossy(&output.stderr).trim().to_string(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(BootError::Missing {
                    what: "unshare is not installed".into(),
                    remedy: "install it with `apt-get install util-linux`".into(),
                });
            }
            Err(error) => return Err(BootError::files("unshare", error)),
        }
    }
    let setting = |name: &str| std::fs::read_to_string(format!("/proc/sys/{name}")).ok();
    Err(BootError::Missing {
        what: format!("this user may not change roots ({said})"),
        remedy: remedy(&setting),
    })
}

/// Settings of the kernel that keep users from making namespaces, the value that does, and one that
/// does not.
const SETTINGS: [(&str, &str, &str); 3] = [
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user/max_user_namespaces", "0", "15000"),
];

/// What to type so that the user may change roots, given the kernel's settings.
fn remedy(setting: &dyn Fn(&str) -> Option<String>) -> String {
    let forbids = |(name, value, _): &&(&str, &str, &str)| {
        setting(name).is_some_and(|found| found.trim() == *value)
    };
    let typed: Vec<String> = SETTINGS
        .iter()
        .filter(forbids)
        .map(|(name, _, good)| format!("`sudo sysctl -w {}={good}`", name.replace('/', ".")))
        .collect();
    if typed.is_empty() {
        return "run this as root, or, in a container, start that with `docker run --privileged`"
            .into();
    }
    format!("allow it with {}, or run this as root", typed.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A system of one static program is enough, but not every computer has one: links to this
    /// computer's directories do as well, mounted into an empty root.
    fn run(root: &Root, program: &str, arguments: &[&str], mounts: &[(&Path, &str)]) -> String {
        let mut all: Vec<(&Path, &str)> = vec![(Path::new("/usr"), "/usr")];
        all.extend(mounts);
        let output = root.command(program, &all).unwrap().args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn empty_root() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in ["proc", "dev", "usr"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        for name in ["bin", "lib", "lib64"] {
            #[cfg(unix)]
            std::os::unix::fs::symlink(format!("usr/{name}"), directory.path().join(name)).unwrap();
        }
        directory
    }

    /// Whether roots can be changed here; where they cannot, only the error can be tested.
    fn allowed() -> bool {
        match privilege() {
            Ok(_) => true,
            Err(BootError::Missing { what, remedy }) => {
                assert!(what.starts_with("this user may not") && !remedy.is_empty(), "{remedy}");
                false
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn programs_see_the_root_and_what_is_mounted() {
        if !allowed() {
            return;
        }
        let directory = empty_root();
        let work = tempfile::tempdir().unwrap();
        fs::write(work.path().join("file"), "seen").unwrap();
        let root = Root::new(directory.path());
        let mounts = [(work.path(), "/deep/work")];
        assert_eq!(run(&root, "cat", &["/deep/work/file"], &mounts), "seen");
        assert_eq!(run(&root, "ls", &["/"], &[]), "bin\ndeep\ndev\nlib\nlib64\nproc\nusr\n");
        assert_eq!(run(&root, "pwd", &[], &[]), "/\n");
        assert_eq!(run(&root, "env", &[], &[]), format!("PATH={PATH}\n"));
        assert_eq!(run(&root, "sh", &["-c", "echo x > /dev/null; wc -c < /dev/null"], &[]), "0\n");
    }

    #[test]
    fn nothing_stays_mounted() {
        if !allowed() {
            return;
        }
        let directory = empty_root();
        let root = Root::new(directory.path());
        let mounts = [(Path::new("/usr"), "/usr")];
        let mut sleeping = root.command("sleep", &mounts).unwrap().arg("60").spawn().unwrap();
        assert_eq!(run(&root, "echo", &["beside it"], &[]), "beside it\n");
        sleeping.kill().unwrap();
        sleeping.wait().unwrap();
        let mounted = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounted.contains(directory.path().to_str().unwrap()), "{mounted}");
        assert_eq!(fs::read_dir(directory.path().join("usr")).unwrap().count(), 0);
    }

    #[test]
    #[cfg(unix)]
    fn links_are_followed_as_inside() {
        use std::os::unix::fs::symlink;
        let directory = empty_root();
        let inside = |name: &str| directory.path().join(name);
        fs::create_dir(inside("usr/lib")).unwrap();
        fs::write(inside("usr/lib/real"), "").unwrap();
        symlink("/lib/real", inside("usr/absolute")).unwrap();
        symlink("../../../usr/absolute", inside("usr/lib/relative")).unwrap();
        symlink("circle", inside("usr/circle")).unwrap();
        let root = Root::new(directory.path());
        for path in ["/usr/lib/real", "/lib/real", "usr/absolute", "/lib/relative"] {
            assert_eq!(root.resolve(path).unwrap(), inside("usr/lib/real"), "{path}");
        }
        let error = |path: &str| root.resolve(path).unwrap_err().to_string();
        assert!(error("/usr/circle").ends_with("/usr/circle: too many links"));
        assert!(error("/etc/none").contains("/etc/none: "));
    }

    #[test]
    fn the_exit_code_is_the_programs() {
        if !allowed() {
            return;
        }
        let directory = empty_root();
        let mounts = [(Path::new("/usr"), "/usr")];
        let mut command = Root::new(directory.path()).command("sh", &mounts).unwrap();
        assert_eq!(command.args(["-c", "exit 7"]).status().unwrap().code(), Some(7));
    }

    #[test]
    fn the_remedy_names_the_setting_that_forbids_it() {
        let with = |name: &'static str, value: &'static str| {
            remedy(&move |asked| (asked == name).then(|| format!("{value}\n")))
        };
        assert_eq!(
            with("kernel/apparmor_restrict_unprivileged_userns", "1"),
            "allow it with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or run \
             this as root"
        );
        assert!(with("user/max_user_namespaces", "0").contains("user.max_user_namespaces=15000"));
        assert!(with("user/max_user_namespaces", "7").starts_with("run this as root"));
    }
}
