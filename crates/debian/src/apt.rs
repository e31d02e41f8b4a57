//! apt with lists, a cache and a state of its own: it sees another suite than this computer has,
//! and installs nothing.

use crate::BootError;
use crate::versions::{Offer, offers};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

/// The keys that Debian's packages are signed with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The variable that names the mirror.
const VARIABLE: &str = "ANYSCHED_DEBIAN_MIRROR";

/// The mirror, if neither the variable nor this computer's apt names one.
const MIRROR: &str = "http://deb.debian.org/debian";

/// Where packages come from, if what verifies them is there.
///
/// Errors: apt or the keyring is not installed; the variable has no address.
pub fn mirror() -> Result<String, BootError> {
    if !Path::new(KEYRING).is_file() {
        return Err(BootError::Missing {
            what: format!("there is no {KEYRING}, with which Debian's packages are verified"),
            remedy: "install it with `apt-get install debian-archive-keyring`".into(),
        });
    }
    let mut command = Command::new(GET);
    command.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]);
    let targets = match command.output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => return Err(not_started(GET, &error)),
    };
    named_mirror(std::env::var(VARIABLE).ok().as_deref(), &targets)
}

/// What is needed cannot be had from the mirror, `what` says why.
pub fn unavailable(what: String) -> BootError {
    BootError::Unavailable {
        what,
        remedy: format!("try another mirror with {VARIABLE}=http://HOST/debian"),
    }
}

/// The same of one suite there.
pub fn lacking(suite: &str, mirror: &str, why: &str) -> BootError {
    unavailable(format!("Debian {suite} at {mirror} does not have what is needed: {why}"))
}

fn not_started(program: &str, error: &std::io::Error) -> BootError {
    if error.kind() == ErrorKind::NotFound {
        BootError::Missing {
            what: format!("{program} is not installed, with which packages are fetched"),
            remedy: "run this on Debian or Ubuntu, or in a container of one of them".into(),
        }
    } else {
        BootError::files(program, error)
    }
}

/// The mirror, given the variable and what this computer's apt reads.
fn named_mirror(variable: Option<&str>, targets: &str) -> Result<String, BootError> {
    let address = |text: &str| text.contains(":/") && !text.contains(char::is_whitespace);
    if let Some(given) = variable {
        if !address(given) {
            return Err(BootError::Missing {
                what: format!("{VARIABLE}=\"{given}\" is not the address of a mirror"),
                remedy: format!("set it to one like {MIRROR}"),
            });
        }
        return Ok(given.trim_end_matches('/').into());
    }
    // Without lists, apt does not know labels.
    let labelled = targets.lines().find_map(|line| line.strip_prefix("Debian http"));
    let unlabelled =
        || targets.lines().filter_map(|line| line.trim().strip_prefix("http")).find(is_debian);
    let found = labelled.or_else(unlabelled).map(|rest| format!("http{rest}"));
    let found = found.filter(|found| address(found));
    Ok(found.map_or_else(|| MIRROR.into(), |found| found.trim_end_matches('/').into()))
}

fn is_debian(address: &&str) -> bool {
    address.trim_end_matches('/').ends_with("/debian")
}

/// apt's programs.
const GET: &str = "apt-get";
const CACHE: &str = "apt-cache";
const HELPER: &str = "/usr/lib/apt/apt-helper";

/// An apt that sees `suites` and nothing else.
pub struct Apt {
    directory: PathBuf,
    lists: PathBuf,
}

impl Apt {
    /// Keeps its files in `directory`, and lists of packages, which it need not fetch again as long
    /// as they are the same, below `cache`.
    ///
    /// Errors: they cannot be written.
    pub fn new(
        directory: &Path,
        cache: &Path,
        mirror: &str,
        suites: &[&str],
    ) -> Result<Apt, BootError> {
        let apt = Apt { directory: directory.into(), lists: cache.join("lists").join(suites[0]) };
        let fault = |error| BootError::files(directory.display(), error);
        for part in [&apt.lists, &apt.archives()] {
            fs::create_dir_all(part.join("partial")).map_err(fault)?;
        }
        let source = |suite: &&str| {
            format!("deb [arch=amd64 target=Packages signed-by={KEYRING}] {mirror} {suite} main\n")
        };
        let sources: String = suites.iter().map(source).collect();
        fs::write(directory.join("sources.list"), sources).map_err(fault)?;
        // No package is installed: dependencies are fetched, too.
        fs::write(directory.join("status"), "").map_err(fault)?;
        fs::write(apt.configuration(), apt.settings()).map_err(fault)?;
        Ok(apt)
    }

    /// Has it know that these packages are there already, in its own format.
    ///
    /// Errors: the file cannot be copied.
    pub fn has(&self, installed: &Path) -> Result<(), BootError> {
        let copied = fs::copy(installed, self.directory.join("status"));
        copied.map(drop).map_err(|error| BootError::files(installed.display(), error))
    }

    fn configuration(&self) -> PathBuf {
        self.directory.join("apt.conf")
    }

    /// Directories of its own, and nothing done beside fetching: this computer's configuration may
    /// ask for catalogues to be renewed and caches to be emptied.
    fn settings(&self) -> String {
        let (directory, lists) = (self.directory.display(), self.lists.display());
        format!(
            "Dir::State \"{directory}\";\n\
             Dir::State::lists \"{lists}\";\n\
             Dir::State::status \"{directory}/status\";\n\
             Dir::State::extended_states \"{directory}/extended_states\";\n\
             Dir::Cache \"{directory}\";\n\
             Dir::Cache::archives \"{directory}/archives\";\n\
             Dir::Etc::sourcelist \"{directory}/sources.list\";\n\
             Dir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::preferences \"/dev/null\";\n\
             Dir::Etc::preferencesparts \"/dev/null\";\n\
             Dir::Log \"{directory}\";\n\
             APT::Architecture \"amd64\";\n\
             APT::Sandbox::User \"root\";\n\
             APT::Update::Error-Mode \"any\";\n\
             APT::Keep-Downloaded-Packages \"true\";\n\
             Acquire::Languages \"none\";\n\
             Acquire::Retries \"3\";\n\
             #clear APT::Update::Pre-Invoke;\n\
             #clear APT::Update::Post-Invoke;\n\
             #clear APT::Update::Post-Invoke-Success;\n\
             #clear DPkg::Pre-Invoke;\n\
             #clear DPkg::Post-Invoke;\n\
             #clear DPkg::Pre-Install-Pkgs;\n"
        )
    }

    /// Runs one of apt's programs where packages are kept. Errors: what it says.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program);
        // Read after this computer's own configuration, which may name a proxy, or say what to do
        // with lists that are too old.
        command.arg("-c").arg(self.configuration()).args(arguments).env("LC_ALL", "C");
        command.env_remove("APT_CONFIG").current_dir(self.archives());
        let output = command.output().map_err(|error| format!("{program}: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(complaint(&output))
    }

    /// Fetches the lists of packages, as far as they have changed. Returns how many bytes these are
    /// as it keeps them.
    ///
    /// Errors: what apt says.
    pub fn update(&self) -> Result<u64, String> {
        let before = self.kept_lists();
        self.run(GET, &["update", "-qq"])?;
        let new = self.kept_lists().into_iter().filter(|list| !before.contains(list));
        Ok(new.map(|(_, _, length)| length).sum())
    }

    /// The files of lists: names, times of change and lengths.
    fn kept_lists(&self) -> Vec<(OsString, Option<SystemTime>, u64)> {
        let files = fs::read_dir(&self.lists).into_iter().flatten().flatten();
        let described = files.filter_map(|file| {
            let data = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((file.file_name(), data.modified().ok(), data.len()))
        });
        described.collect()
    }

    /// The packages whose names begin with one of `prefixes` and end with `ending`.
    ///
    /// Errors: what apt says.
    pub fn offers(&self, prefixes: &[&str], ending: &str) -> Result<Vec<Offer>, String> {
        let mut names = Vec::new();
        for prefix in prefixes {
            let listed = self.run(CACHE, &["pkgnames", prefix])?;
            names.extend(listed.lines().filter(|name| name.ends_with(ending)).map(String::from));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.versions(&names)
    }

    /// Those of `names` that can be fetched, in all their versions.
    ///
    /// Errors: what apt says.
    pub fn versions(&self, names: &[&str]) -> Result<Vec<Offer>, String> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let listed = self.run(CACHE, &[&["madison"], names].concat())?;
        Ok(offers(&listed).collect())
    }

    /// Fetches packages and what they depend on. Those that an interrupted fetch has left are not
    /// fetched again, or removed if the suite has others today.
    ///
    /// Errors: what apt says.
    pub fn fetch_with_dependencies(&self, names: &[&str]) -> Result<(), String> {
        self.run(GET, &["autoclean", "-qq"])?;
        let options = ["install", "-qq", "-y", "--no-install-recommends", "--download-only"];
        self.run(GET, &[&options, names].concat()).map(drop)
    }

    /// Has the apt see source packages of the suites, too. Call it before [`update`](Apt::update).
    ///
    /// Errors: its files cannot be written.
    pub fn see_sources(&self, mirror: &str, suites: &[&str]) -> Result<(), BootError> {
        let path = self.directory.join("sources.list");
        let fault = |error| BootError::files(path.display(), error);
        let mut text = fs::read_to_string(&path).map_err(fault)?;
        for suite in suites {
            text +=
                &format!("deb-src [target=Sources signed-by={KEYRING}] {mirror} {suite} main\n");
        }
        fs::write(&path, text).map_err(fault)
    }

    /// Fetches a source package's files, which are then among the archives. Returns the tarball of
    /// what its authors have released. Mirrors may lack files of Debian's own beside it.
    ///
    /// Errors: what apt says.
    pub fn fetch_source(&self, name: &str) -> Result<PathBuf, String> {
        let fetched = self.run(GET, &["source", "-qq", "--download-only", name]);
        // apt has compared it with the index, or removed it.
        let entries = fs::read_dir(self.archives()).into_iter().flatten().flatten();
        let tarball = entries.map(|entry| entry.path()).find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.contains(".orig.tar.") && !name.ends_with(".asc")
        });
        tarball.ok_or_else(|| fetched.err().unwrap_or_else(|| format!("{name} has no tarball")))
    }

    /// Fetches a file that no index names, which is then among the archives: `path` on the mirror,
    /// with this SHA-256 sum.
    ///
    /// Errors: what apt says; it is not there, or is another.
    pub fn fetch_file(&self, mirror: &str, path: &str, sha256: &str) -> Result<PathBuf, String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (from, sum) = (format!("{mirror}/{path}"), format!("SHA256:{sha256}"));
        let arguments = ["-qq", "download-file", &from, name, &sum];
        self.run(HELPER, &arguments)?;
        Ok(self.archives().join(name))
    }

    /// Fetches one package, and nothing that it depends on.
    ///
    /// Errors: what apt says.
    pub fn fetch_alone(&self, name: &str) -> Result<(), String> {
        self.run(GET, &["download", "-qq", name]).map(drop)
    }

    /// Where packages are after they have been fetched.
    pub fn archives(&self) -> PathBuf {
        self.directory.join("archives")
    }
}

/// What apt complained about.
fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let errors = said.lines().filter_map(|line| line.strip_prefix("E: "));
    // Which they are, the other lines say.
    let errors: Vec<&str> = errors.filter(|line| !line.starts_with("Some index files")).collect();
    if errors.is_empty() { said.trim().to_string() } else { errors.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `apt-get indextargets` on Debian 12.
    const TARGETS: &str = "\
Debian-Security http://deb.debian.org/debian-security/
Debian http://mirror.example/some/debian/
Debian http://deb.debian.org/debian/
";

    #[test]
    fn the_mirror_is_this_computers() {
        assert_eq!(named_mirror(None, TARGETS).unwrap(), "http://mirror.example/some/debian");
    }

    #[test]
    fn without_lists_the_address_tells() {
        let targets = " http://deb.example/debian-security/\n http://deb.example/debian/\n";
        assert_eq!(named_mirror(None, targets).unwrap(), "http://deb.example/debian");
    }

    #[test]
    fn other_distributions_use_the_public_mirror() {
        let ubuntu = "Ubuntu http://archive.ubuntu.com/ubuntu/\n";
        assert_eq!(named_mirror(None, ubuntu).unwrap(), MIRROR);
        assert_eq!(named_mirror(None, "").unwrap(), MIRROR);
    }

    #[test]
    fn the_variable_overrides() {
        let given = named_mirror(Some("https://near.example/debian/"), TARGETS).unwrap();
        assert_eq!(given, "https://near.example/debian");
        let error = named_mirror(Some("near.example debian"), TARGETS).unwrap_err().to_string();
        assert_eq!(
            error,
            "ANYSCHED_DEBIAN_MIRROR=\"near.example debian\" is not the address of a mirror; set it \
             to one like http://deb.debian.org/debian"
        );
    }
}
