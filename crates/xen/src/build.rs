//! Building what a boot needs: each step is skipped when nothing it depends on has changed.

use crate::{BootError, Sources};
use anysched_debian::Tools;
use anysched_debian::object::{self, Library};
use anysched_debian::place::{lock, remove};
use anysched_debian::step::{copy_changed, files, run, step};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// What is booted: the hypervisor, and the kernel of its domains.
#[derive(Clone, Debug)]
pub struct Image {
    hypervisor: PathBuf,
    guest: PathBuf,
}

/// A hypervisor with all that Xen has by default, for real machines.
pub(crate) struct ForMachines {
    pub hypervisor: PathBuf,
    /// The policies that it is linked with.
    pub policies: PathBuf,
    /// Xen's sources as they are changed.
    pub source: PathBuf,
}

/// What the hypervisor calls of the policies.
const EXPORTS: [&str; 23] = [
    "anysched_new",
    "anysched_attach",
    "anysched_detach",
    "anysched_disband",
    "anysched_domain",
    "anysched_drop",
    "anysched_dump",
    "anysched_flush",
    "anysched_give_memory",
    "anysched_give_up",
    "anysched_is_prompt",
    "anysched_now",
    "anysched_online",
    "anysched_saved",
    "anysched_schedule",
    "anysched_sleep",
    "anysched_tick",
    "anysched_tick_period",
    "anysched_timer",
    "anysched_update",
    "anysched_wake",
    "anysched_watch",
    "anysched_yield",
];

/// Code as Xen wants it: it lies outside of the lowest and the highest 2 GB, so addresses are
/// relative, and no table of offsets resolves them; nothing below the stack's end, indirect jumps
/// and returns by Xen's thunks, marks for indirect branches, nothing for unwinding.
const POLICIES: [&str; 10] = [
    "-Crelocation-model=pic",
    "-Ccode-model=small",
    "-Cno-redzone=yes",
    "-Cjump-tables=no",
    "-Cforce-unwind-tables=no",
    "-Zplt=yes",
    "-Zdefault-visibility=hidden",
    "-Zfunction-return=thunk-extern",
    "-Zretpoline-external-thunk",
    "-Zcf-protection=branch",
];

/// The target whose code expects nothing of what it runs on.
const BARE: &str = "x86_64-unknown-none";

/// A guest may use floating point: Xen switches its registers.
const GUEST: &str = "x86_64-unknown-linux-musl";

/// A static program without a library of C, where the linker's script says.
const GUEST_FLAGS: [&str; 8] = [
    "-Crelocation-model=static",
    "-Cno-redzone=yes",
    "-Cforce-unwind-tables=no",
    "-Clinker=rust-lld",
    "-Clinker-flavor=ld.lld",
    "-Clink-self-contained=no",
    "-Clink-arg=--build-id=none",
    "-Clink-arg=-static",
];

impl Image {
    /// Builds what has changed since it was built last; with `asserts`, a hypervisor that checks
    /// what it assumes. What happens meanwhile goes to `say`.
    ///
    /// Errors: something is not installed, or what a compiler says.
    pub fn build(
        sources: &Sources,
        asserts: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Image, BootError> {
        let kind = if asserts { &CHECKED } else { &USUAL };
        in_turn(sources, say, |build, say| {
            anysched_qemu::require_target(GUEST)?;
            say("building the guest");
            // Each is linked for a minute on one core.
            std::thread::scope(|scope| {
                let guest = scope.spawn(|| build.guest());
                let hypervisor = build.hypervisor(kind, say);
                let guest = guest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Ok(Image { hypervisor: hypervisor?.0, guest: guest? })
            })
        })
    }

    /// The same with another hypervisor.
    pub fn with_hypervisor(self, hypervisor: PathBuf) -> Image {
        Image { hypervisor, ..self }
    }

    /// The hypervisor.
    pub fn hypervisor(&self) -> &Path {
        &self.hypervisor
    }

    /// The kernel of all domains.
    pub fn guest(&self) -> &Path {
        &self.guest
    }
}

impl ForMachines {
    /// Builds what has changed since it was built last.
    ///
    /// Errors: as [`Image::build`].
    pub fn build(sources: &Sources, say: &mut dyn FnMut(&str)) -> Result<ForMachines, BootError> {
        in_turn(sources, say, |build, say| {
            let (hypervisor, policies) = build.hypervisor(&FOR_MACHINES, say)?;
            Ok(ForMachines { hypervisor, policies, source: build.unpacked()? })
        })
    }
}

/// Builds in the host's directory, while nobody else does.
pub(crate) fn in_turn<T>(
    sources: &Sources,
    say: &mut dyn FnMut(&str),
    make: impl FnOnce(&Build<'_>, &mut dyn FnMut(&str)) -> Result<T, BootError>,
) -> Result<T, BootError> {
    let host = anysched_qemu::sources("xen")?;
    let target = host.join("target");
    let _lock = lock(&target, say)?;
    anysched_qemu::require_target(BARE)?;
    make(&Build { host: &host, target: &target, sources }, say)
}

/// A way to build the hypervisor.
struct Kind {
    announced: &'static str,
    /// What the file is called, and the directory of objects beside it.
    name: &'static str,
    objects: &'static str,
    configuration: &'static str,
    /// The file in the scheduler's directory in which that is, and a line of it that is another
    /// one here.
    of: &'static str,
    instead: Option<[&'static str; 2]>,
}

const USUAL: Kind = Kind {
    announced: "building the hypervisor",
    name: "xen",
    objects: "build",
    configuration: "anysched_defconfig",
    of: "anysched_defconfig",
    instead: None,
};

/// With Xen's assertions, but without its tests of itself: QEMU fails one of them (it knows no #SS
/// for what is on the stack), of which Xen would warn for three seconds at each boot.
const CHECKED: Kind = Kind {
    announced: "building the hypervisor with its assertions",
    name: "xen-checked",
    objects: "build-checked",
    configuration: "anysched_checked_defconfig",
    instead: Some(["# CONFIG_DEBUG is not set", "CONFIG_DEBUG=y\n# CONFIG_SELF_TESTS is not set"]),
    ..USUAL
};

/// With all that Xen has by default.
const FOR_MACHINES: Kind = Kind {
    announced: "building the hypervisor for real machines",
    name: "xen-machines",
    objects: "build-machines",
    configuration: "anysched_machines_defconfig",
    of: "anysched_machines_defconfig",
    instead: None,
};

pub(crate) struct Build<'a> {
    /// The directory `hosts/xen`.
    pub(crate) host: &'a Path,
    /// Where everything is built.
    pub(crate) target: &'a Path,
    sources: &'a Sources,
}

impl Build<'_> {
    /// Has cargo build a package. Cargo knows by itself what has changed.
    fn cargo(
        &self,
        package: &str,
        target: &str,
        directory: &Path,
        flags: &[&str],
    ) -> Result<(), BootError> {
        let project = self.host.ancestors().nth(2).unwrap_or(self.host);
        let flags = object::flags(project, flags.iter().copied())?;
        let mut command = Command::new("cargo");
        command
            .current_dir(self.host)
            .args(["build", "--release", "--locked", "--quiet", "--package", package])
            .args(["--target", target, "--target-dir"])
            .arg(directory)
            // The libraries that come with the compiler are compiled for other settings.
            .args(["-Z", "build-std=core,alloc", "-Z", "build-std-features=compiler-builtins-mem"])
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            // What cargo sets for the program that calls this is not meant for Xen.
            .env_remove("RUSTFLAGS");
        run(command, package).map(drop)
    }

    /// The policies as one object.
    fn policies(&self) -> Result<PathBuf, BootError> {
        let target = self.target.join("policies");
        self.cargo("anysched-xen-policies", BARE, &target, &POLICIES)?;
        let archive = target.join(BARE).join("release/libanysched_xen_policies.a");
        let script = self.host.join("policies/merge.lds");
        let object = target.join("policies.o");
        let library = Library { archive: &archive, script: &script, exports: &EXPORTS };
        library.merge(Tools::Root(&self.sources.root), &object)?;
        Ok(object)
    }

    /// The kernel of domains.
    fn guest(&self) -> Result<PathBuf, BootError> {
        const PACKAGE: &str = "anysched-xen-guest";
        let target = self.target.join("guest");
        let script = format!("-Clink-arg=-T{}", self.host.join("guest/guest.lds").display());
        let flags = [&GUEST_FLAGS[..], &[script.as_str()]].concat();
        self.cargo(PACKAGE, GUEST, &target, &flags)?;
        Ok(target.join(GUEST).join("release").join(PACKAGE))
    }

    /// Xen's sources with our scheduler among its own, of this version.
    fn unpacked(&self) -> Result<PathBuf, BootError> {
        let place = self.target.join(format!("xen-{}", self.sources.version));
        let source = place.join("source");
        let settings = &self.sources.version;
        let inputs = [self.sources.tarball.clone()];
        step(&source.with_added_extension("unpacked"), settings, &inputs, |new| {
            let fault = |error| BootError::files(source.display(), error);
            remove(&source)?;
            fs::create_dir_all(&source).map_err(fault)?;
            let tarball = self.sources.tarball.parent().unwrap_or(Path::new("/"));
            let mounts = [(tarball, "/package"), (source.as_path(), "/work")];
            let mut tar = Tools::Root(&self.sources.root).tool("tar", &mounts)?;
            let seen = tar.seen(&self.sources.tarball);
            tar.command.arg("--extract").arg("--file").arg(seen);
            tar.command.args(["--directory", "/work", "--strip-components=1", "--no-same-owner"]);
            tar.run()?;
            add_lines(&source)?;
            fs::write(new, "").map_err(fault)
        })?;
        Ok(source)
    }

    /// Builds Xen with the policies, and returns it and them.
    fn hypervisor(
        &self,
        kind: &Kind,
        say: &mut dyn FnMut(&str),
    ) -> Result<(PathBuf, PathBuf), BootError> {
        say("building the policies");
        let policies = self.policies()?;
        say(kind.announced);
        let source = self.unpacked()?;
        let place = source.parent().unwrap_or(&source);
        let scheduler = self.host.join("scheduler");
        let mut inputs = files(&scheduler, "")?;
        inputs.extend([policies.clone(), self.sources.tarball.clone()]);
        let hypervisor = place.join(kind.name);
        step(&hypervisor, &self.sources.version, &inputs, |new| {
            let out = place.join(kind.objects);
            let fault = |error| BootError::files(out.display(), error);
            fs::create_dir_all(&out).map_err(fault)?;
            for (from, to) in ADDED {
                copy_changed(&scheduler.join(from), &source.join(to))?;
            }
            configure(&scheduler, &source, kind)?;
            copy_changed(&policies, &place.join("policies.o"))?;
            self.make(&source, place, kind, kind.configuration)?;
            self.make(&source, place, kind, "xen")?;
            fs::copy(out.join("xen"), new).map(drop).map_err(fault)
        })?;
        Ok((hypervisor, policies))
    }

    fn make(&self, source: &Path, place: &Path, kind: &Kind, goal: &str) -> Result<(), BootError> {
        let mounts = [(source, "/source"), (place, "/work")];
        let mut make = Tools::Root(&self.sources.root).tool("make", &mounts)?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let out = format!("O=/work/{}", kind.objects);
        make.command.args(["-s", "-C", "/source/xen", &out, "XEN_TARGET_ARCH=x86_64"]);
        make.command.arg("ANYSCHED_POLICIES=/work/policies.o").arg(format!("-j{jobs}")).arg(goal);
        // The version that Xen prints must not say when and where it was built: a boot repeated is
        // the same.
        make.command.args(["XEN_BUILD_DATE=", "XEN_BUILD_TIME=", "XEN_BUILD_HOST=anysched"]);
        make.command.args(["XEN_WHOAMI=anysched", "XEN_DOMAIN="]);
        make.run().map(drop)
    }
}

/// Writes the configuration, where Xen's build looks for such.
fn configure(scheduler: &Path, source: &Path, kind: &Kind) -> Result<(), BootError> {
    let of = scheduler.join(kind.of);
    let fault = |error| BootError::files(of.display(), error);
    let mut text = fs::read_to_string(&of).map_err(fault)?;
    if let Some([line, instead]) = kind.instead {
        if !text.contains(line) {
            return Err(fault(io::Error::other(format!("there is no line `{line}`"))));
        }
        text = text.replace(line, instead);
    }
    let path = source.join("xen/arch/x86/configs").join(kind.configuration);
    fs::write(&path, text).map_err(|error| BootError::files(path.display(), error))
}

/// Files that Xen's sources get: in the scheduler's directory, and there.
pub(crate) const ADDED: [(&str, &str); 2] = [
    ("anysched.c", "xen/common/sched/anysched.c"),
    ("Kconfig", "xen/common/sched/Kconfig.anysched"),
];

/// Lines that files of Xen's get at their end.
pub(crate) const LINES: [(&str, &str); 2] = [
    ("xen/common/sched/Kconfig", "\nsource \"common/sched/Kconfig.anysched\"\n"),
    (
        "xen/common/sched/Makefile",
        "\nobj-$(CONFIG_SCHED_ANYSCHED) += anysched.o anysched-policies.o\n\
         $(obj)/anysched-policies.o: $(ANYSCHED_POLICIES) FORCE\n\tcp $< $@\n",
    ),
];

/// Xen's own build learns of the scheduler.
fn add_lines(source: &Path) -> Result<(), BootError> {
    for (file, lines) in LINES {
        let path = source.join(file);
        let fault = |error| BootError::files(path.display(), error);
        let text = fs::read_to_string(&path).map_err(fault)?;
        fs::write(&path, text + lines).map_err(fault)?;
    }
    Ok(())
}
