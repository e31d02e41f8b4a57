//! Building what a boot needs: each step is skipped when nothing it depends on has changed.

mod agent;
mod bpf;
mod guest;
mod initramfs;
mod module;
mod policies;

use crate::{BootError, Suite};
use anysched_debian::Tools;
use anysched_host::Built;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// What is built, of which sources.
#[derive(Clone, Copy)]
struct Build<'a> {
    /// The directory `hosts/linux`.
    sources: &'a Path,
    /// Where everything is built.
    target: &'a Path,
    /// The kernel, as `uname -r` says it.
    kernel: &'a str,
    /// Its headers, as tools see them.
    headers: &'a str,
    /// What builds its module.
    tools: Tools<'a>,
    /// Whether the module's policies are built to be checked: with a bound on the work of a call,
    /// and with all that the language can check.
    checked: bool,
}

impl<'a> Build<'a> {
    /// For the kernel of a suite.
    fn of_suite(sources: &'a Path, target: &'a Path, suite: &'a Suite) -> Build<'a> {
        let Suite { kernel, headers, root, .. } = suite;
        let headers = headers.as_deref().unwrap_or_default();
        Build { sources, target, kernel, headers, tools: Tools::Root(root), checked: false }
    }

    /// The module with its policies.
    fn module(&self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, BootError> {
        let target = self.target.join("checked");
        let build = if self.checked { Build { target: &target, ..*self } } else { *self };
        say("building the policies");
        let policies = policies::build(&build)?;
        say("building the module");
        module::build(&build, &policies)
    }

    /// Whether the kernel that runs here was compiled by Clang. Those of suites are GCC's.
    fn is_of_clang(&self) -> bool {
        let settings = Path::new(self.headers).join("include/config/auto.conf");
        let settings = match self.tools {
            Tools::Machine => fs::read_to_string(settings).unwrap_or_default(),
            Tools::Root(_) => String::new(),
        };
        settings.lines().any(|line| line == "CONFIG_CC_IS_CLANG=y")
    }

    /// A directory for what depends on the kernel.
    fn of_kernel(&self, kind: &str) -> PathBuf {
        self.target.join(kind).join(self.kernel)
    }
}

/// Builds the module and the programs that ask it for the kernel that runs here, with this
/// machine's tools, of the sources in `sources` and with all that is built in `target`.
///
/// Errors: what a compiler says.
pub(crate) fn build_here(
    sources: &Path,
    target: &Path,
    kernel: &str,
    headers: &str,
    checked: bool,
    say: &mut dyn FnMut(&str),
) -> Result<Built, BootError> {
    let _lock = lock(target)?;
    let build = Build { sources, target, kernel, headers, tools: Tools::Machine, checked };
    let module = build.module(say)?;
    let program = bpf::of_policies(&bpf::build(&build)?)?;
    Ok(Built { decider: module, program })
}

/// As [`build_here`], the agent, which takes no headers.
pub(crate) fn build_agent_here(
    sources: &Path,
    target: &Path,
    kernel: &str,
    say: &mut dyn FnMut(&str),
) -> Result<Built, BootError> {
    let _lock = lock(target)?;
    let build =
        Build { sources, target, kernel, headers: "", tools: Tools::Machine, checked: false };
    say("building the agent");
    let decider = agent::build(&build)?;
    let program = bpf::of_agent(&bpf::build(&build)?)?;
    Ok(Built { decider, program })
}

/// An archive that is built when it is asked for first.
type Later = Arc<Mutex<Option<PathBuf>>>;

/// What is booted: a kernel, and archives for its first file system.
#[derive(Clone, Debug)]
pub struct Image {
    sources: PathBuf,
    target: PathBuf,
    suite: Suite,
    initramfs: PathBuf,
    loaders: Later,
    /// Plain, and checked.
    modules: [Later; 2],
}

impl Image {
    /// Builds what has changed since it was built last. What happens meanwhile goes to `say`.
    ///
    /// Errors: something is not installed, or what a compiler says.
    pub fn build(suite: &Suite, say: &mut dyn FnMut(&str)) -> Result<Image, BootError> {
        let sources = anysched_qemu::sources("linux")?;
        let target = sources.join("target");
        Image::build_in(&sources, &target, suite, say)
    }

    /// As [`Image::build`], of the sources in `sources` and with all that is built in `target`.
    ///
    /// Errors: as [`Image::build`].
    pub fn build_in(
        sources: &Path,
        target: &Path,
        suite: &Suite,
        say: &mut dyn FnMut(&str),
    ) -> Result<Image, BootError> {
        let _lock = lock(target)?;
        let build = Build::of_suite(sources, target, suite);
        say("building the guest");
        let guest = guest::build(&build)?;
        let initramfs = initramfs::base(&build, suite, &guest)?;
        let (sources, target) = (sources.into(), target.into());
        let (loaders, modules) = (Later::default(), <[Later; 2]>::default());
        Ok(Image { sources, target, suite: suite.clone(), initramfs, loaders, modules })
    }

    /// The archive that adds what policies come into the kernel by, and the agent; built when it is
    /// asked for first. What happens meanwhile goes to `say`.
    ///
    /// Errors: as [`Image::build`], or the suite was found [only to boot](crate::Purpose::Boot).
    pub fn loaders(&self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, BootError> {
        self.later(&self.loaders, |build| {
            let bpf = bpf::build(build)?;
            say("building the agent");
            let agent = agent::build(build)?;
            initramfs::loaders(build, &self.suite, &agent, &bpf)
        })
    }

    /// The archive that adds the module; built when it is asked for first. What happens meanwhile
    /// goes to `say`. With `checked`, calls of its policies have a bound on their work.
    ///
    /// Errors: as [`Image::build`].
    pub fn module(&self, checked: bool, say: &mut dyn FnMut(&str)) -> Result<PathBuf, BootError> {
        self.later(&self.modules[usize::from(checked)], |build| {
            let build = Build { checked, ..*build };
            initramfs::module(&build, &build.module(say)?)
        })
    }

    /// An archive that `make` builds, unless it was built before.
    fn later(
        &self,
        archive: &Later,
        make: impl FnOnce(&Build<'_>) -> Result<PathBuf, BootError>,
    ) -> Result<PathBuf, BootError> {
        let mut archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(archive) = &*archive {
            return Ok(archive.clone());
        }
        if self.suite.headers.is_none() {
            return Err(BootError::Missing {
                what: format!("Debian {} was fetched without what builds", self.suite.name),
                remedy: "look for it for a policy".into(),
            });
        }
        let _lock = lock(&self.target)?;
        let built = make(&Build::of_suite(&self.sources, &self.target, &self.suite))?;
        Ok(archive.insert(built).clone())
    }

    /// The kernel's image.
    pub fn vmlinuz(&self) -> &Path {
        &self.suite.vmlinuz
    }

    /// The archive that every boot begins with.
    pub fn initramfs(&self) -> &Path {
        &self.initramfs
    }

    /// Where machines that have booted are kept.
    pub(crate) fn machines(&self) -> PathBuf {
        self.target.join("machines")
    }

    /// The archive that adds a program of the suite, like `cyclictest`, and its libraries; fetched
    /// when it is asked for first. What happens meanwhile goes to `say`.
    ///
    /// Errors: the suite does not have it, or it cannot be fetched.
    pub fn program(&self, name: &str, say: &mut dyn FnMut(&str)) -> Result<PathBuf, BootError> {
        let _lock = lock(&self.target)?;
        let build = Build::of_suite(&self.sources, &self.target, &self.suite);
        initramfs::program(&build, &self.suite, name, say)
    }
}

/// Waits until nobody else builds here. The lock goes with the file, and with the process.
pub(crate) fn lock(target: &Path) -> Result<File, BootError> {
    let path = target.join("lock");
    let fault = |error| BootError::files(path.display(), error);
    fs::create_dir_all(target).map_err(fault)?;
    let file = File::create(&path).map_err(fault)?;
    file.lock().map_err(fault)?;
    Ok(file)
}

/// A command that has cargo build a package of the host's workspace.
fn cargo(build: &Build<'_>, package: &str, target: &str, directory: &Path) -> Command {
    cargo_as(build, "release", package, target, directory)
}

/// As [`cargo`], with another profile.
fn cargo_as(
    build: &Build<'_>,
    profile: &str,
    package: &str,
    target: &str,
    directory: &Path,
) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(build.sources)
        .args(["build", "--profile", profile, "--locked", "--quiet", "--package", package])
        .args(["--target", target, "--target-dir"])
        .arg(directory)
        // What cargo sets for the program that calls this is not meant for the guest.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS");
    command
}
