//! Debian's packages: a kernel that policies can run in, and what builds and boots it.
//!
//! Everything is kept in a directory for each suite. What was found there is found again without a
//! network and in no time; deleting the directory has it fetched anew.

mod apt;
mod choice;
mod state;
mod unpack;

use crate::{BootError, Root};
use apt::Apt;
use choice::Kernel;
use state::State;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Suites in the order in which they are tried, each with those that complete it.
const SUITES: [&[&str]; 3] = [&["forky"], &["sid"], &["trixie-backports", "trixie"]];

/// The first version of Linux whose sched_ext does what policies need.
pub(crate) const OLDEST: &str = "7.2";

/// What builds and boots a kernel's module, beside the kernel and its headers.
const TOOLS: [&str; 13] = [
    "bash",
    "binutils",
    "bpftool",
    "busybox-static",
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

/// What programs a guest may have: cyclictest and hackbench are in rt-tests.
const PROGRAMS: [&str; 4] = ["rt-app", "rt-tests", "stress-ng", "sysbench"];

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
    /// The kernel's headers, inside the root.
    pub headers: String,
    /// Packages with programs for guests that this suite does not have.
    pub missing: Vec<String>,
    /// Suites that were tried before, and why each does not fit.
    pub passed: Vec<(String, String)>,
    /// Bytes that were fetched, lists and packages, as apt stores them.
    pub fetched: u64,
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
    /// The suite that was found before, or the first that fits: it is fetched, which takes a minute
    /// and about 220 MB. What happens meanwhile goes to `say`.
    ///
    /// Errors: apt is not installed, there is no room, or no suite fits; that error says why of each.
    pub fn find(say: &mut dyn FnMut(&str)) -> Result<Suite, BootError> {
        Suite::find_in(&cache()?, say)
    }

    /// As [`Suite::find`], with what was found kept in the directory `cache`.
    ///
    /// Errors: as [`Suite::find`].
    pub fn find_in(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Suite, BootError> {
        if let Some(suite) = Suite::found(cache) {
            return Ok(suite);
        }
        refuse_other_machines()?;
        let _lock = lock(cache, say)?;
        // Somebody else may have fetched it while this waited.
        if let Some(suite) = Suite::found(cache) {
            return Ok(suite);
        }
        let mirror = apt::mirror()?;
        let mut passed: Vec<(String, String)> = Vec::new();
        for suites in SUITES {
            match fetch_suite(cache, &mirror, suites, &passed, say) {
                Ok(()) => break,
                Err(Unfit::Suite(why)) => {
                    say(&format!("Debian {} does not fit: {why}", suites[0]));
                    passed.push((suites[0].into(), why));
                }
                Err(Unfit::Computer(error)) => return Err(error),
            }
        }
        Suite::found(cache).ok_or_else(|| none_fits(&mirror, &passed))
    }

    /// The file that changes when the suite is fetched anew.
    pub(crate) fn record(&self) -> PathBuf {
        self.root.path().with_file_name(state::FILE)
    }

    /// What was found before, if it is what would be looked for today.
    fn found(cache: &Path) -> Option<Suite> {
        SUITES.iter().find_map(|suites| {
            let directory = cache.join(suites[0]);
            let state = State::read(&directory)?;
            if state.all("wanted") != wanted() {
                return None;
            }
            let pair = |line: &str| {
                let (name, why) = line.split_once(' ')?;
                Some((name.to_string(), why.to_string()))
            };
            let root = directory.join(ROOT);
            Some(Suite {
                name: suites[0].into(),
                kernel: state.one("kernel")?.into(),
                vmlinuz: root.join(state.one("vmlinuz")?),
                headers: state.one("headers")?.into(),
                root: Root::new(root),
                missing: state.all("missing").iter().map(|name| name.to_string()).collect(),
                passed: state.all("passed").into_iter().filter_map(pair).collect(),
                fetched: state.one("fetched")?.parse().ok()?,
            })
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
        if let Some(kernel) = StockKernel::found(&directory) {
            return Ok(kernel);
        }
        refuse_other_machines()?;
        let _lock = lock(cache, say)?;
        if let Some(kernel) = StockKernel::found(&directory) {
            return Ok(kernel);
        }
        let mirror = apt::mirror()?;
        let fetched = fetch_stock(&directory, &mirror, suite, series, say);
        fetched.map_err(|unfit| match unfit {
            Unfit::Suite(why) => none_fits(&mirror, &[(suite.to_string(), why)]),
            Unfit::Computer(error) => error,
        })?;
        let lost = || BootError::files(directory.display(), "what was fetched is not there");
        StockKernel::found(&directory).ok_or_else(lost)
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

/// In a suite's directory: the unpacked packages.
const ROOT: &str = "root";

/// In a suite's directory while it is fetched: apt's files.
const APT: &str = "apt";

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

/// What is to be in a suite's root. When it changes, the suite is fetched anew.
fn wanted() -> Vec<&'static str> {
    [OLDEST].into_iter().chain(TOOLS).chain(PROGRAMS).collect()
}

fn cache() -> Result<PathBuf, BootError> {
    Ok(anysched_qemu::sources("linux")?.join("target/packages"))
}

/// What is fetched are programs for this architecture.
fn refuse_other_machines() -> Result<(), BootError> {
    if std::env::consts::ARCH == "x86_64" && cfg!(unix) {
        return Ok(());
    }
    Err(BootError::Missing {
        what: "kernels for Linux are built by programs for Linux on x86-64".into(),
        remedy: "run this on such a computer".into(),
    })
}

/// Waits until no other process fetches. The lock goes with the file, and with the process.
fn lock(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<File, BootError> {
    let path = cache.join("lock");
    let fault = |error| BootError::files(path.display(), error);
    fs::create_dir_all(cache).map_err(fault)?;
    let file = File::create(&path).map_err(fault)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => say("waiting for another process that fetches packages"),
        Err(TryLockError::Error(error)) => return Err(fault(error)),
    }
    file.lock().map_err(fault)?;
    Ok(file)
}

fn none_fits(mirror: &str, passed: &[(String, String)]) -> BootError {
    let lines = passed.iter().map(|(suite, why)| format!("\n  {suite}: {why}"));
    BootError::Missing {
        what: format!(
            "no suite of Debian at {mirror} has what is needed:{}\n",
            lines.collect::<String>()
        ),
        remedy: "try another mirror with ANYSCHED_DEBIAN_MIRROR=http://HOST/debian".into(),
    }
}

/// Fetches what is wanted of a suite. Until all of it is there, it is in a directory of another name.
fn fetch_suite(
    cache: &Path,
    mirror: &str,
    suites: &[&str],
    passed: &[(String, String)],
    say: &mut dyn FnMut(&str),
) -> Result<(), Unfit> {
    let new = cache.join(format!("{}.new", suites[0]));
    say(&format!("looking for a kernel in Debian {}", suites[0]));
    let apt = Apt::new(&new.join(APT), mirror, suites)?;
    apt.update().map_err(Unfit::Suite)?;
    let prefixes = [&["linux-headers-"], &choice::IMAGES[..]].concat();
    let offers = apt.offers(&prefixes, "-amd64").map_err(Unfit::Suite)?;
    let kernel = choice::newest(&offers, OLDEST).map_err(Unfit::Suite)?;
    let programs = apt.versions(&PROGRAMS).map_err(Unfit::Suite)?;
    let is_there = |name: &&str| programs.iter().any(|offer| offer.name == **name);
    let (there, missing): (Vec<&str>, Vec<&str>) = PROGRAMS.into_iter().partition(is_there);

    say(&format!("fetching Linux {} and its tools", kernel.release));
    let headers = kernel.headers();
    let named = [&[kernel.image.as_str(), headers.as_str()], &TOOLS[..], &there[..]].concat();
    apt.fetch_with_dependencies(&named).map_err(Unfit::Suite)?;
    let mut state = unpack(&new, &apt, say)?;
    let root = new.join(ROOT);
    unpack::link_alternatives(&root).map_err(|error| Unfit::Suite(error.to_string()))?;
    describe_kernel(&mut state, &root, &kernel)?;
    state.add("headers", &present(&root, &[format!("usr/src/{headers}")], "/")?);
    for name in ["bin/make", "bin/clang", "bin/busybox", "sbin/bpftool"] {
        present(&root, &[format!("usr/{name}")], "")?;
    }
    for name in missing {
        state.add("missing", name);
    }
    for name in wanted() {
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
    let apt = Apt::new(&new.join(APT), mirror, &[suite])?;
    say(&format!("looking for Linux {series} in Debian {suite}"));
    apt.update().map_err(Unfit::Suite)?;
    let offers = apt.offers(&["linux-image-"], "-amd64").map_err(Unfit::Suite)?;
    let kernel = choice::newest_of_series(&offers, series).map_err(Unfit::Suite)?;
    say(&format!("fetching Linux {}", kernel.release));
    apt.fetch_alone(&kernel.image).map_err(Unfit::Suite)?;
    let mut state = unpack(&new, &apt, say)?;
    let root = new.join(ROOT);
    describe_kernel(&mut state, &root, &kernel)?;
    let modules = format!("usr/lib/modules/{}", kernel.release);
    state.add("modules", &present(&root, &[modules], "")?);
    Ok(finish(&new, directory, &state)?)
}

/// Unpacks what was fetched. A root that an interrupted process left is made anew; packages that it
/// fetched are not fetched again.
fn unpack(new: &Path, apt: &Apt, say: &mut dyn FnMut(&str)) -> Result<State, BootError> {
    let root = new.join(ROOT);
    remove(&root)?;
    let packages = files(&apt.archives())?;
    let lists = files(&apt.lists())?;
    let size = |path: &PathBuf| path.metadata().map_or(0, |data| data.len());
    let fetched: u64 = packages.iter().chain(&lists).map(size).sum();
    say(&format!("unpacking {} packages", packages.len()));
    unpack::unpack(&packages, &root)?;
    let mut state = State::default();
    state.add("fetched", &fetched.to_string());
    Ok(state)
}

/// Notes which kernel it is, and where its image was unpacked.
fn describe_kernel(state: &mut State, root: &Path, kernel: &Kernel) -> Result<(), Unfit> {
    let release = &kernel.release;
    let places = [format!("usr/lib/modules/{release}/vmlinuz"), format!("boot/vmlinuz-{release}")];
    state.add("kernel", release);
    state.add("vmlinuz", &present(root, &places, "")?);
    Ok(())
}

/// The first of `places` that is in the root, after `prefix`.
fn present(root: &Path, places: &[String], prefix: &str) -> Result<String, Unfit> {
    let found = places.iter().find(|place| root.join(place).exists());
    let missing = || Unfit::Suite(format!("its packages have no {}", places.join(" or ")));
    found.map(|place| format!("{prefix}{place}")).ok_or_else(missing)
}

/// Puts what was fetched in its place.
fn finish(new: &Path, place: &Path, state: &State) -> Result<(), BootError> {
    remove(&new.join(APT))?;
    state.write(new)?;
    remove(place)?;
    fs::rename(new, place).map_err(|error| BootError::files(place.display(), error))
}

/// Removes a directory, if there is one.
fn remove(directory: &Path) -> Result<(), BootError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BootError::files(directory.display(), error))
        }
        _ => Ok(()),
    }
}

/// The files that a directory has, not empty ones and not those below it.
fn files(directory: &Path) -> Result<Vec<PathBuf>, BootError> {
    let fault = |error| BootError::files(directory.display(), error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let data = entry.metadata().map_err(fault)?;
        if data.is_file() && data.len() > 0 {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
