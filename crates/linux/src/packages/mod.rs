//! Debian's packages: a kernel that policies can run in, and what builds and boots it.
//!
//! Everything is kept in a directory for each suite. What was found there is found again without a
//! network and in no time; deleting the directory has it fetched anew.

mod choice;
mod program;

use crate::{BootError, Root};
use anysched_debian::place::{
    APT, INSTALLED, ROOT, files, find_or_fetch, finish, present, remove, sizes, unpack_new,
};
use anysched_debian::{Apt, State, unavailable};
use choice::Kernel;
use std::path::{Path, PathBuf};

/// Suites in the order in which they are tried, each with those that complete it.
const SUITES: [&[&str]; 3] = [&["forky"], &["sid"], &["trixie-backports", "trixie"]];

/// The first version of Linux whose sched_ext does what policies need.
pub(crate) const OLDEST: &str = "7.2";

/// What every guest has, beside the kernel.
const SHELL: &str = "busybox-static";

/// What builds and loads a kernel's module, beside the kernel's headers.
const TOOLS: [&str; 12] = [
    "bash",
    "binutils",
    "bpftool",
    "clang",
    "coreutils",
    "findutils",
    "gawk",
    "grep",
    "libbpf-dev",
    "libc6-dev",
    "make",
    "sed",
];

/// Where kernels of other schedulers come from: series and suite.
const STOCK: [(&str, &str); 2] = [("6.1", "bookworm"), ("6.12", "trixie")];

/// A Debian suite with a kernel that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// The kernel, as `uname -r` says it.
    pub kernel: String,
    /// The system that the packages make up: its programs build the module.
    pub root: Root,
    /// The kernel's image, on this computer.
    pub vmlinuz: PathBuf,
    /// The kernel's headers, inside the root, if that has what builds for the kernel.
    pub headers: Option<String>,
    /// Suites that were tried before, and why each does not fit.
    pub passed: Vec<(String, String)>,
    /// Bytes that were fetched, lists and packages, as apt stores them.
    pub fetched: u64,
}

/// What a suite is fetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To boot the kernel under its own scheduler.
    Boot,
    /// To build and load schedulers for the kernel, too.
    Build,
}

/// A kernel of Debian's, for comparisons with its own scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockKernel {
    /// As `uname -r` says it.
    pub kernel: String,
    /// Its image, on this computer.
    pub vmlinuz: PathBuf,
    /// Its modules, on this computer.
    pub modules: PathBuf,
    /// Bytes that were fetched, lists and packages, as apt stores them.
    pub fetched: u64,
}

impl Suite {
    /// The suite that was found before, or the first that fits: some 15 MB of packages to boot a
    /// kernel, 180 MB to build for it, and a list of packages of 22 MB. What happens meanwhile goes
    /// to `say`.
    ///
    /// Errors: apt is not installed, there is no room, or no suite fits; that error says why of
    /// each.
    pub fn find(purpose: Purpose, say: &mut dyn FnMut(&str)) -> Result<Suite, BootError> {
        Suite::find_in(&cache()?, purpose, say)
    }

    /// As [`Suite::find`], with what was found kept in the directory `cache`.
    ///
    /// Errors: as [`Suite::find`].
    pub fn find_in(
        cache: &Path,
        purpose: Purpose,
        say: &mut dyn FnMut(&str),
    ) -> Result<Suite, BootError> {
        Suite::first_of(cache, &SUITES, purpose, say)
    }

    /// As [`Suite::find_in`], but this suite and no other.
    ///
    /// Errors: as [`Suite::find`], or no suite of that name is known to have what is needed.
    pub fn named(
        cache: &Path,
        name: &str,
        purpose: Purpose,
        say: &mut dyn FnMut(&str),
    ) -> Result<Suite, BootError> {
        if let Some(suites) = SUITES.iter().find(|suites| suites[0] == name) {
            return Suite::first_of(cache, &[suites], purpose, say);
        }
        let known: Vec<&str> = SUITES.iter().map(|suites| suites[0]).collect();
        Err(BootError::Missing {
            what: format!("\"{name}\" is not known as a suite of Debian's with sched_ext"),
            remedy: format!("take one of {}", known.join(", ")),
        })
    }

    fn first_of(
        cache: &Path,
        all: &[&[&'static str]],
        purpose: Purpose,
        say: &mut dyn FnMut(&str),
    ) -> Result<Suite, BootError> {
        let found = || all.iter().find_map(|suites| Suite::found(cache, suites[0], purpose));
        find_or_fetch(cache, NEEDS, say, found, |say| {
            let mirror = anysched_debian::mirror()?;
            let mut passed: Vec<(String, String)> = Vec::new();
            for suites in all {
                match fetch_suite(cache, &mirror, suites, purpose, &passed, say) {
                    Ok(()) => return Ok(()),
                    Err(Unfit::Suite(why)) => {
                        say(&format!("Debian {} does not fit: {why}", suites[0]));
                        passed.push((suites[0].into(), why));
                    }
                    Err(Unfit::Computer(error)) => return Err(error),
                }
            }
            Err(none_fits(&mirror, &passed))
        })
    }

    /// The file that changes when the suite is fetched anew.
    pub(crate) fn record(&self) -> PathBuf {
        State::file(self.root.path().parent().unwrap_or(self.root.path()))
    }

    /// Its suites of Debian's: itself, and those that complete it.
    fn parts(&self) -> &'static [&'static str] {
        SUITES.into_iter().find(|suites| suites[0] == self.name).unwrap_or_default()
    }

    /// What was found before, if it has what would be looked for today.
    fn found(cache: &Path, name: &str, purpose: Purpose) -> Option<Suite> {
        let directory = cache.join(name);
        let state = State::read(&directory)?;
        let fetched = state.all("wanted");
        if !wanted(purpose).iter().all(|name| fetched.contains(name)) {
            return None;
        }
        let pair = |line: &str| {
            let (name, why) = line.split_once(' ')?;
            Some((name.to_string(), why.to_string()))
        };
        let root = directory.join(ROOT);
        Some(Suite {
            name: name.into(),
            kernel: state.one("kernel")?.into(),
            vmlinuz: root.join(state.one("vmlinuz")?),
            headers: state.one("headers").map(String::from),
            root: Root::new(root),
            passed: state.all("passed").into_iter().filter_map(pair).collect(),
            fetched: state.one("fetched")?.parse().ok()?,
        })
    }
}

impl StockKernel {
    /// The newest kernel of a series that Debian has had in a release: 6.1 or 6.12. It is fetched
    /// unless it was before.
    ///
    /// Errors: apt is not installed, there is no such series, or it cannot be fetched.
    pub fn find(series: &str, say: &mut dyn FnMut(&str)) -> Result<StockKernel, BootError> {
        StockKernel::find_in(&cache()?, series, say)
    }

    /// As [`StockKernel::find`], with what was found kept in the directory `cache`.
    ///
    /// Errors: as [`StockKernel::find`].
    pub fn find_in(
        cache: &Path,
        series: &str,
        say: &mut dyn FnMut(&str),
    ) -> Result<StockKernel, BootError> {
        let Some((_, suite)) = STOCK.iter().find(|(known, _)| *known == series) else {
            let known: Vec<&str> = STOCK.iter().map(|(known, _)| *known).collect();
            return Err(BootError::Missing {
                what: format!("no release of Debian is known to have Linux {series}"),
                remedy: format!("take one of {}", known.join(", ")),
            });
        };
        let directory = cache.join(format!("{suite}-{series}"));
        let found = || StockKernel::found(&directory);
        find_or_fetch(cache, NEEDS, say, found, |say| {
            let mirror = anysched_debian::mirror()?;
            let fetched = fetch_stock(&directory, &mirror, suite, series, say);
            fetched.map_err(|unfit| match unfit {
                Unfit::Suite(why) => none_fits(&mirror, &[(suite.to_string(), why)]),
                Unfit::Computer(error) => error,
            })
        })
    }

    fn found(directory: &Path) -> Option<StockKernel> {
        let state = State::read(directory)?;
        let root = directory.join(ROOT);
        Some(StockKernel {
            kernel: state.one("kernel")?.into(),
            vmlinuz: root.join(state.one("vmlinuz")?),
            modules: root.join(state.one("modules")?),
            fetched: state.one("fetched")?.parse().ok()?,
        })
    }
}

/// Why a suite was not fetched.
enum Unfit {
    /// For something about the suite: the next may fit.
    Suite(String),
    /// For something about this computer: no other would fit.
    Computer(BootError),
}

impl From<BootError> for Unfit {
    fn from(error: BootError) -> Unfit {
        Unfit::Computer(error)
    }
}

/// What is to be in a suite's root. Where it is not, the suite is fetched anew.
fn wanted(purpose: Purpose) -> Vec<&'static str> {
    let tools = (purpose == Purpose::Build).then_some(TOOLS);
    [OLDEST, SHELL].into_iter().chain(tools.into_iter().flatten()).collect()
}

fn cache() -> Result<PathBuf, BootError> {
    Ok(anysched_qemu::sources("linux")?.join("target/packages"))
}

/// What is done by programs that are fetched.
const NEEDS: &str = "kernels for Linux are built";

fn none_fits(mirror: &str, passed: &[(String, String)]) -> BootError {
    let lines = passed.iter().map(|(suite, why)| format!("\n  {suite}: {why}"));
    unavailable(format!(
        "no suite of Debian at {mirror} has what is needed:{}",
        lines.collect::<String>().trim_end_matches('.')
    ))
}

/// Fetches what is wanted of a suite. Until all of it is there, it is in a directory of another
/// name.
fn fetch_suite(
    cache: &Path,
    mirror: &str,
    suites: &[&str],
    purpose: Purpose,
    passed: &[(String, String)],
    say: &mut dyn FnMut(&str),
) -> Result<(), Unfit> {
    let new = cache.join(format!("{}.new", suites[0]));
    say(&format!("looking for a kernel in Debian {}", suites[0]));
    let apt = Apt::new(&new.join(APT), cache, mirror, suites)?;
    let listed = apt.update().map_err(Unfit::Suite)?;
    let prefixes = [&["linux-headers-"], &choice::IMAGES[..]].concat();
    let offers = apt.offers(&prefixes, "-amd64").map_err(Unfit::Suite)?;
    let kernel = choice::newest(&offers, OLDEST).map_err(Unfit::Suite)?;
    let headers = kernel.headers();
    let mut needed = vec![kernel.image.as_str(), SHELL];
    if purpose == Purpose::Build {
        say(&format!("fetching Linux {} and its tools", kernel.release));
        needed.push(&headers);
        needed.extend(TOOLS);
    } else {
        say(&format!("fetching Linux {}", kernel.release));
    }
    apt.fetch_with_dependencies(&needed).map_err(Unfit::Suite)?;
    let mut state = unpack_new(&new, &apt, listed, say)?;
    let root = new.join(ROOT);
    describe_kernel(&mut state, &root, &kernel)?;
    present(&root, &["usr/bin/busybox".into()], "").map_err(Unfit::Suite)?;
    if purpose == Purpose::Build {
        anysched_debian::link_alternatives(&root)
            .map_err(|error| Unfit::Suite(error.to_string()))?;
        state.add(
            "headers",
            &present(&root, &[format!("usr/src/{headers}")], "/").map_err(Unfit::Suite)?,
        );
        for name in ["bin/make", "bin/clang", "sbin/bpftool"] {
            present(&root, &[format!("usr/{name}")], "").map_err(Unfit::Suite)?;
        }
    }
    for name in wanted(purpose) {
        state.add("wanted", name);
    }
    for (suite, why) in passed {
        state.add("passed", &format!("{suite} {}", why.replace('\n', " ")));
    }
    Ok(finish(&new, &cache.join(suites[0]), &state)?)
}

/// Fetches the image of a kernel.
fn fetch_stock(
    directory: &Path,
    mirror: &str,
    suite: &str,
    series: &str,
    say: &mut dyn FnMut(&str),
) -> Result<(), Unfit> {
    let new = directory.with_added_extension("new");
    let apt = Apt::new(&new.join(APT), directory.parent().unwrap_or(directory), mirror, &[suite])?;
    say(&format!("looking for Linux {series} in Debian {suite}"));
    let listed = apt.update().map_err(Unfit::Suite)?;
    let offers = apt.offers(&["linux-image-"], "-amd64").map_err(Unfit::Suite)?;
    let kernel = choice::newest_of_series(&offers, series).map_err(Unfit::Suite)?;
    say(&format!("fetching Linux {}", kernel.release));
    apt.fetch_alone(&kernel.image).map_err(Unfit::Suite)?;
    let mut state = unpack_new(&new, &apt, listed, say)?;
    let root = new.join(ROOT);
    describe_kernel(&mut state, &root, &kernel)?;
    let modules = format!("usr/lib/modules/{}", kernel.release);
    state.add("modules", &present(&root, &[modules], "").map_err(Unfit::Suite)?);
    Ok(finish(&new, directory, &state)?)
}

/// Notes which kernel it is, and where its image was unpacked.
fn describe_kernel(state: &mut State, root: &Path, kernel: &Kernel) -> Result<(), Unfit> {
    let release = &kernel.release;
    let places = [format!("usr/lib/modules/{release}/vmlinuz"), format!("boot/vmlinuz-{release}")];
    state.add("kernel", release);
    state.add("vmlinuz", &present(root, &places, "").map_err(Unfit::Suite)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A suite as [`fetch_suite`] leaves it.
    fn fetched(cache: &Path, name: &str, wanted: &[&str]) {
        let mut state = State::default();
        for (name, value) in [
            ("fetched", "229455833"),
            ("kernel", "7.2.12+deb14-cloud-amd64"),
            ("vmlinuz", "usr/lib/modules/7.2.12+deb14-cloud-amd64/vmlinuz"),
            ("headers", "/usr/src/linux-headers-7.2.12+deb14-cloud-amd64"),
            ("passed", "forky there are no headers"),
        ] {
            state.add(name, value);
        }
        for name in wanted {
            state.add("wanted", name);
        }
        let new = cache.join(format!("{name}.new"));
        fs::create_dir_all(new.join(APT)).unwrap();
        finish(&new, &cache.join(name), &state).unwrap();
    }

    #[test]
    fn what_was_fetched_is_found_without_a_network() {
        let cache = tempfile::tempdir().unwrap();
        fetched(cache.path(), "sid", &wanted(Purpose::Build));
        let find = |purpose| Suite::find_in(cache.path(), purpose, &mut |line| panic!("{line}"));
        let suite = find(Purpose::Build).unwrap();
        assert_eq!(find(Purpose::Boot).unwrap(), suite, "what builds also boots");
        assert_eq!((suite.name.as_str(), suite.fetched), ("sid", 229_455_833));
        assert_eq!(suite.kernel, "7.2.12+deb14-cloud-amd64");
        assert_eq!(suite.root.path(), cache.path().join("sid/root"));
        assert!(suite.vmlinuz.starts_with(suite.root.path()));
        let headers = "/usr/src/linux-headers-7.2.12+deb14-cloud-amd64";
        assert_eq!(suite.headers.as_deref(), Some(headers));
        assert_eq!(suite.parts(), ["sid"]);
        assert_eq!(suite.passed, [("forky".into(), "there are no headers".into())]);
        assert_eq!(suite.record(), cache.path().join("sid/found"));
        assert!(!cache.path().join("sid/apt").exists());
    }

    #[test]
    fn half_of_a_suite_or_that_of_other_wishes_is_none() {
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir_all(cache.path().join("forky.new/root")).unwrap();
        fs::create_dir_all(cache.path().join("forky/root")).unwrap();
        let is_found = |purpose| {
            Suite::found(cache.path(), "forky", purpose).is_some_and(|suite| suite.name == "forky")
        };
        assert!(!is_found(Purpose::Boot));
        fetched(cache.path(), "forky", &["7.2", "make"]);
        assert!(!is_found(Purpose::Boot));
        fetched(cache.path(), "forky", &wanted(Purpose::Boot));
        assert!(is_found(Purpose::Boot) && !is_found(Purpose::Build));
        // Packages that an older version of this program has fetched, too, do no harm.
        fetched(cache.path(), "forky", &[&wanted(Purpose::Build)[..], &["rt-app"]].concat());
        assert!(is_found(Purpose::Boot) && is_found(Purpose::Build));
    }

    #[test]
    fn names_that_are_unknown_are_refused_with_those_that_are_known() {
        let cache = tempfile::tempdir().unwrap();
        let mut quiet = |line: &str| panic!("{line}");
        let error = Suite::named(cache.path(), "woody", Purpose::Boot, &mut quiet);
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("; take one of forky, sid, trixie-backports"), "{error}");
        let error = StockKernel::find_in(cache.path(), "2.4", &mut quiet).unwrap_err().to_string();
        assert!(error.ends_with("Linux 2.4; take one of 6.1, 6.12"), "{error}");
    }

    #[test]
    fn the_error_says_why_of_each_suite() {
        let passed = [("forky", "it is too old."), ("sid", "it is down.")];
        let passed = passed.map(|(suite, why)| (suite.to_string(), why.to_string()));
        assert_eq!(
            none_fits("http://host/debian", &passed).to_string(),
            "no suite of Debian at http://host/debian has what is needed:\n  \
             forky: it is too old.\n  \
             sid: it is down; try another mirror with ANYSCHED_DEBIAN_MIRROR=http://HOST/debian"
        );
    }
}
