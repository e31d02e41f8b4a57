//! What a machine has to have so that policies can be attached to it. Each thing that is missing is
//! said in a line, with what to do about it.

use super::note::Note;
use crate::packages::OLDEST;
use anysched_host::Place;
use std::fs;
use std::path::{Path, PathBuf};

/// `CAP_SYS_MODULE` and `CAP_SYS_ADMIN` as bits of a capability set.
const CAPABILITIES: u64 = 1 << 16 | 1 << 21;

/// Where programs of administrators are, which a user's search path may leave out.
const SBIN: [&str; 3] = ["usr/local/sbin", "usr/sbin", "sbin"];

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
    architecture: &'static str,
    /// Where programs are looked for.
    path: Vec<PathBuf>,
}

/// A program that builds, and the packages that have it in Debian, Fedora and Arch.
type Tool = (&'static str, [&'static str; 3]);

const TOOLS: [Tool; 7] = [
    ("make", ["make", "make", "make"]),
    ("gcc", ["gcc", "gcc", "gcc"]),
    ("clang", ["clang", "clang", "clang"]),
    ("ld", ["binutils", "binutils", "binutils"]),
    ("objcopy", ["binutils", "binutils", "binutils"]),
    ("strip", ["binutils", "binutils", "binutils"]),
    ("pahole", ["dwarves", "dwarves", "pahole"]),
];
/// Those that an agent takes.
const OF_AGENTS: [&str; 3] = ["gcc", "clang", "ld"];
const BPFTOOL: Tool = ("bpftool", ["bpftool", "bpftool", "bpf"]);

/// A header of libbpf.
const LIBBPF: &str = "usr/include/bpf/bpf_helpers.h";

impl Machine {
    /// The one that this program runs on.
    pub fn here() -> Machine {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let root = PathBuf::from("/");
        let sbin = SBIN.map(|directory| root.join(directory));
        let path = std::env::split_paths(&path).chain(sbin).collect();
        Machine { root, architecture: std::env::consts::ARCH, path }
    }

    /// The root of its files.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn read(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().into())
    }

    /// The kernel, as `uname -r` says it.
    pub fn kernel(&self) -> String {
        self.read("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into())
    }

    /// Errors: this kernel cannot schedule by policies.
    pub fn require_kernel(&self) -> Result<(), String> {
        if self.architecture != "x86_64" {
            let found = self.architecture;
            return Err(format!("policies attach to Linux on x86-64, and this is {found}"));
        }
        let found = self.kernel();
        if version(&found) < version(OLDEST) {
            return Err(format!(
                "policies need Linux {OLDEST} or later, and this is {found}: boot a newer kernel, \
                 or run them in a guest with `anysched boot linux`"
            ));
        }
        if !self.root.join("sys/kernel/sched_ext").is_dir() {
            return Err(format!(
                "Linux {found} was built without sched_ext: boot a kernel that has \
                 CONFIG_SCHED_CLASS_EXT=y, as those of distributions do"
            ));
        }
        Ok(())
    }

    /// Errors: the kernel's own scheduler has been replaced.
    pub fn require_free(&self) -> Result<(), String> {
        let state = self.read("sys/kernel/sched_ext/state").unwrap_or_default();
        if state == "disabled" {
            return Ok(());
        }
        let program = self.read("sys/kernel/sched_ext/root/ops").unwrap_or_default();
        Err(match (program.as_str(), Note::read(&self.root)) {
            (super::PROGRAM | super::AGENT, note) => {
                let note =
                    note.map(|note| format!("{}, {}", note.policy, note.lines(&self.root)[0]));
                let note = note.unwrap_or_else(|| "a policy".into());
                format!(
                    "this machine is scheduled by {note}: `sudo anysched attach --stop` ends that"
                )
            }
            ("", _) => format!("sched_ext is {state}: try again when it is disabled"),
            (other, _) => format!(
                "this machine is scheduled by \"{other}\" of sched_ext: stop that first, for \
                 example with `sudo systemctl stop scx`"
            ),
        })
    }

    /// Errors: this process may not do `what`.
    pub fn require_root(&self, what: &str) -> Result<(), String> {
        let status = self.read("proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        if effective.unwrap_or(0) & CAPABILITIES == CAPABILITIES {
            return Ok(());
        }
        Err(format!("this takes root: `sudo anysched {what}`"))
    }

    /// Errors: this kernel loads no modules, or none but those with a signature if it `is_signed`
    /// is not known.
    pub fn require_modules(&self, may_be_signed: bool) -> Result<(), String> {
        if self.read("proc/sys/kernel/modules_disabled").as_deref() == Some("1") {
            return Err(
                "this kernel loads no modules any more (kernel.modules_disabled = 1): boot \
                        it without that setting"
                    .into(),
            );
        }
        if may_be_signed {
            return Ok(());
        }
        let why = match self.lockdown().as_str() {
            level @ ("integrity" | "confidentiality") => {
                format!("is locked down ({level}, as with Secure Boot)")
            }
            _ if self.read("sys/module/module/parameters/sig_enforce").as_deref() == Some("Y") => {
                "was booted with module.sig_enforce".into()
            }
            _ => return Ok(()),
        };
        Err(format!(
            "this kernel {why} and loads signed modules only: build with `anysched attach \
             --build`, sign the module with a key that the machine trusts, and give it with \
             --module; or take `--in agent`, which needs no module"
        ))
    }

    /// How much this kernel keeps from root: `integrity` or `confidentiality`, if anything.
    fn lockdown(&self) -> String {
        let levels = self.read("sys/kernel/security/lockdown").unwrap_or_default();
        let level = levels.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        level.map_or_else(String::new, |(level, _)| level.into())
    }

    /// Errors: this kernel does not let BPF programs read what an agent is told of.
    pub fn require_bpf_reads(&self) -> Result<(), String> {
        match self.lockdown().as_str() {
            "confidentiality" => Err("this kernel is locked down (confidentiality), and its BPF \
                                      programs may not read its memory: boot it with \
                                      lockdown=integrity"
                .into()),
            _ => Ok(()),
        }
    }

    /// The headers of the running kernel.
    ///
    /// Errors: they are not installed.
    pub fn headers(&self) -> Result<PathBuf, String> {
        let kernel = self.kernel();
        let headers = self.root.join("lib/modules").join(&kernel).join("build");
        if headers.join("Makefile").is_file() {
            if headers.join("vmlinux").is_file() {
                return Ok(headers);
            }
            return Err(format!(
                "the headers of Linux {kernel} come without its types, which the module has to \
                 match: `sudo cp /sys/kernel/btf/vmlinux /lib/modules/$(uname -r)/build/`"
            ));
        }
        let remedy = match self.distribution() {
            Some(0) => "`sudo apt-get install linux-headers-$(uname -r)`",
            Some(1) => "`sudo dnf install kernel-devel-$(uname -r)`",
            Some(2) => "`sudo pacman -S linux-headers`",
            _ => "install the package of your distribution that has them",
        };
        Err(format!(
            "the headers of Linux {kernel} are missing: {remedy}; or take `--in agent`, which \
             needs none"
        ))
    }

    /// Errors: a program that builds, or libbpf, is not installed.
    pub fn require_tools(&self, place: Place) -> Result<(), String> {
        let needed = |(name, _): &&Tool| place == Place::Kernel || OF_AGENTS.contains(name);
        for tool in TOOLS.iter().filter(needed) {
            self.tool(*tool)?;
        }
        if !self.root.join(LIBBPF).is_file() {
            let packages = ["libbpf-dev", "libbpf-devel", "libbpf"];
            return Err(format!("libbpf's headers are missing: {}", self.install(packages)));
        }
        match self.find("cargo") {
            Some(_) => Ok(()),
            None => Err("cargo is missing: install Rust as https://rustup.rs says".into()),
        }
    }

    /// The program that registers BPF programs.
    ///
    /// Errors: it is not installed.
    pub fn bpftool(&self) -> Result<PathBuf, String> {
        self.tool(BPFTOOL)
    }

    /// Errors: BPF programs cannot be pinned.
    pub fn require_bpf_files(&self) -> Result<(), String> {
        let mounts = self.read("proc/self/mounts").unwrap_or_default();
        let is_there = |line: &str| {
            let mut words = line.split(' ').skip(1);
            words.next() == Some("/sys/fs/bpf") && words.next() == Some("bpf")
        };
        if mounts.lines().any(is_there) {
            return Ok(());
        }
        Err("BPF's file system is not mounted: `sudo mount -t bpf bpf /sys/fs/bpf`".into())
    }

    fn tool(&self, (name, packages): Tool) -> Result<PathBuf, String> {
        let missing = || format!("{name} is missing: {}", self.install(packages));
        self.find(name).ok_or_else(missing)
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        self.path.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
    }

    fn install(&self, [debian, fedora, arch]: [&str; 3]) -> String {
        match self.distribution() {
            Some(0) => format!("`sudo apt-get install {debian}`"),
            Some(1) => format!("`sudo dnf install {fedora}`"),
            Some(2) => format!("`sudo pacman -S {arch}`"),
            _ => format!("install the package that has it, such as {debian}"),
        }
    }

    /// 0, 1 or 2: it is like Debian, Fedora or Arch.
    fn distribution(&self) -> Option<usize> {
        let text = self.read("etc/os-release")?;
        let value = |key| text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        let names = [value("ID="), value("ID_LIKE=")].join(" ").replace('"', "");
        let known = ["debian", "fedora", "arch"];
        names.split(' ').find_map(|name| known.iter().position(|other| *other == name))
    }
}

/// The first two numbers of a version.
fn version(text: &str) -> (u32, u32) {
    let mut numbers =
        text.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that has all that is needed.
    struct Fake {
        files: tempfile::TempDir,
    }

    impl Fake {
        fn new() -> Fake {
            let fake = Fake { files: tempfile::tempdir().unwrap() };
            for (path, text) in [
                ("proc/sys/kernel/osrelease", "7.2.12-amd64\n"),
                ("proc/sys/kernel/modules_disabled", "0\n"),
                ("proc/self/status", "Name:\ta\nCapEff:\t000001ffffffffff\n"),
                ("proc/self/mounts", "proc /proc proc rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n"),
                ("sys/kernel/sched_ext/state", "disabled\n"),
                ("sys/kernel/security/lockdown", "[none] integrity confidentiality\n"),
                ("sys/module/module/parameters/sig_enforce", "N\n"),
                ("lib/modules/7.2.12-amd64/build/Makefile", ""),
                ("lib/modules/7.2.12-amd64/build/vmlinux", ""),
                ("etc/os-release", "NAME=\"Debian\"\nID=debian\n"),
                (LIBBPF, ""),
            ] {
                fake.set(path, text);
            }
            for (name, _) in TOOLS.into_iter().chain([BPFTOOL, ("cargo", [""; 3])]) {
                fake.set(&format!("usr/bin/{name}"), "");
            }
            fake
        }

        fn set(&self, path: &str, text: &str) {
            let path = self.files.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn remove(&self, path: &str) {
            let path = self.files.path().join(path);
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }

        fn machine(&self) -> Machine {
            let root = self.files.path().to_path_buf();
            let path = vec![root.join("usr/bin"), root.join("usr/sbin")];
            Machine { root, architecture: "x86_64", path }
        }

        fn check(&self) -> Result<(), String> {
            let machine = self.machine();
            machine.require_kernel()?;
            machine.require_free()?;
            machine.require_root("attach")?;
            machine.require_modules(false)?;
            machine.headers()?;
            machine.require_tools(Place::Kernel)?;
            machine.bpftool()?;
            machine.require_bpf_files()
        }
    }

    #[test]
    fn a_machine_that_has_all() {
        Fake::new().check().unwrap();
    }

    #[test]
    fn files_that_say_no() {
        for (path, text, said) in [
            ("proc/sys/kernel/osrelease", "6.12.9", "and this is 6.12.9: boot a newer kernel"),
            ("proc/sys/kernel/osrelease", "7.1.99", "7.2 or later, and this is 7.1.99"),
            ("proc/self/status", "CapEff:\t00000000a80425fb\n", "`sudo anysched attach`"),
            ("proc/sys/kernel/modules_disabled", "1", "kernel.modules_disabled = 1"),
            ("sys/kernel/security/lockdown", "none [integrity] x", "locked down (integrity, as"),
            ("sys/module/module/parameters/sig_enforce", "Y\n", "booted with module.sig_enforce"),
            ("proc/self/mounts", "bpf /sys bpf\n", "`sudo mount -t bpf bpf /sys/fs/bpf`"),
            ("sys/kernel/sched_ext/state", "disabling\n", "sched_ext is disabling"),
        ] {
            let fake = Fake::new();
            fake.set(path, text);
            let error = fake.check().unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{path}: {error}");
        }
    }

    #[test]
    fn files_that_are_missing() {
        for (path, said) in [
            ("sys/kernel/sched_ext", "without sched_ext"),
            ("lib/modules", "`sudo apt-get install linux-headers-$(uname -r)`"),
            ("lib/modules/7.2.12-amd64/build/vmlinux", "`sudo cp /sys/kernel/btf/vmlinux "),
            ("usr/bin/make", "make is missing: `sudo apt-get install make`"),
            ("usr/bin/objcopy", "objcopy is missing: `sudo apt-get install binutils`"),
            ("usr/bin/pahole", "`sudo apt-get install dwarves`"),
            ("usr/bin/bpftool", "bpftool is missing: `sudo apt-get install bpftool`"),
            ("usr/bin/cargo", "cargo is missing: install Rust"),
            (LIBBPF, "libbpf's headers are missing: `sudo apt-get install libbpf-dev`"),
        ] {
            let fake = Fake::new();
            fake.remove(path);
            let error = fake.check().unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{path}: {error}");
        }
    }

    #[test]
    fn an_agent_needs_no_module_and_no_headers() {
        let fake = Fake::new();
        fake.set("sys/module/module/parameters/sig_enforce", "Y\n");
        fake.set("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        fake.set("proc/sys/kernel/modules_disabled", "1");
        for path in ["lib/modules", "usr/bin/make", "usr/bin/pahole", "usr/bin/bpftool"] {
            fake.remove(path);
        }
        let check = |fake: &Fake| {
            fake.machine().require_bpf_reads()?;
            fake.machine().require_tools(Place::Agent)
        };
        check(&fake).unwrap();
        assert!(fake.machine().require_modules(false).is_err());
        fake.set("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
        assert!(check(&fake).unwrap_err().contains("lockdown=integrity"));
        fake.remove("sys/kernel/security/lockdown");
        fake.remove("usr/bin/clang");
        assert!(check(&fake).unwrap_err().starts_with("clang is missing: "));
    }

    #[test]
    fn commands_are_those_of_the_distribution() {
        for (release, said) in [
            ("ID=fedora\n", "`sudo dnf install kernel-devel-$(uname -r)`"),
            ("ID=manjaro\nID_LIKE=arch\n", "`sudo pacman -S linux-headers`"),
            ("ID=ubuntu\nID_LIKE=\"debian\"\n", "`sudo apt-get install linux-headers-$(uname -r)`"),
            ("ID=other\n", "install the package of your distribution"),
        ] {
            let fake = Fake::new();
            fake.set("etc/os-release", release);
            fake.remove("lib/modules");
            let error = fake.check().unwrap_err();
            assert!(error.ends_with(said) || error.contains(said), "{release}: {error}");
        }
    }

    #[test]
    fn who_schedules_is_named() {
        let fake = Fake::new();
        fake.set("sys/kernel/sched_ext/state", "enabled\n");
        fake.set("sys/kernel/sched_ext/root/ops", "lavd_1.0\n");
        assert!(fake.check().unwrap_err().contains("\"lavd_1.0\" of sched_ext: stop that first"));
        fake.set("sys/kernel/sched_ext/root/ops", "anysched\n");
        let error = fake.check().unwrap_err();
        assert!(error.ends_with("by a policy: `sudo anysched attach --stop` ends that"), "{error}");
        let note = Note { policy: "fair".into(), user: "eve".into(), ..Note::default() };
        note.write(fake.files.path()).unwrap();
        let error = fake.check().unwrap_err();
        assert!(error.contains("by fair, attached ") && error.contains(" ago by eve: "), "{error}");
    }
}
