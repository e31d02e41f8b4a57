//! A dom0 with Linux, and what it builds domains of.

mod packages;

use crate::build::Build;
use crate::{BootError, Sources};
use anysched_debian::step::{run, step};
use anysched_debian::{Archive, libraries};
use anysched_wire::boot::Boot;
use anysched_wire::dom0::{HOGS, ORDERS, SCHEDULER, TakenFor};
use packages::Packages;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target of the first program: static, it runs beside any libraries.
const TARGET: &str = "x86_64-unknown-linux-musl";

const PACKAGE: &str = "anysched-xen-dom0";

const BUSYBOX: &str = "/usr/bin/busybox";

/// Xen's programs that run in dom0.
const TOOLS: [&str; 4] = ["xl", "xenstored", "xenconsoled", "xen-init-dom0"];

/// What the C library loads when a thread is cancelled, as those of `xl` are; no program names it.
const UNWINDER: &str = "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1";

/// Modules of dom0 and of other domains, in the order in which they are loaded.
const MODULES: [&str; 9] = [
    "drivers/xen/xen-evtchn",
    "drivers/xen/xen-gntdev",
    "drivers/xen/xen-gntalloc",
    "drivers/xen/xen-privcmd",
    "drivers/xen/xenfs/xenfs",
    "net/llc/llc",
    "net/802/stp",
    "net/bridge/bridge",
    "drivers/net/xen-netback/xen-netback",
];
const MODULES_OF_DOMAINS: [&str; 1] = ["drivers/net/xen-netfront"];

/// Directories in which is mounted and written.
const DIRECTORIES: [&str; 7] =
    ["/proc", "/sys", "/dev", "/tmp", "/run", "/var/lib/xen", "/var/log/xen"];

/// Where a program of Xen's is in the packages.
fn tool(series: &str, name: &str) -> String {
    format!("/usr/lib/xen-{series}/bin/{name}")
}

/// Where the image of a kernel is in the packages.
fn image(kernel: &str) -> String {
    format!("boot/vmlinuz-{kernel}")
}

/// What is booted as dom0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxDom0 {
    kernel: PathBuf,
    archive: PathBuf,
}

impl LinuxDom0 {
    /// Fetches and builds what is needed beside a hypervisor of `sources`. What happens meanwhile
    /// goes to `say`.
    ///
    /// Errors: a package cannot be had, something is not installed, or what a compiler says.
    pub fn build(sources: &Sources, say: &mut dyn FnMut(&str)) -> Result<LinuxDom0, BootError> {
        let packages = Packages::find(&crate::sources::cache()?, sources, say)?;
        crate::build::in_turn(sources, say, |build, say| {
            anysched_qemu::require_target(TARGET)?;
            say("building dom0");
            let init = build.init_of_dom0()?;
            let archive = archive(build.target, &packages, &init)?;
            Ok(LinuxDom0 { kernel: packages.root.resolve(&image(&packages.kernel))?, archive })
        })
    }

    /// The kernel.
    pub(crate) fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// Writes its first file system, with its orders in it.
    ///
    /// Errors: it cannot be written.
    pub(crate) fn write_initrd(
        &self,
        path: &Path,
        orders: &str,
        scheduler: TakenFor,
    ) -> Result<(), BootError> {
        let fault = |error: io::Error| BootError::files(path.display(), error);
        let mut file = File::create(path).map_err(fault)?;
        let mut archive = File::open(&self.archive)
            .map_err(|error| BootError::files(self.archive.display(), error))?;
        io::copy(&mut archive, &mut file).map_err(fault)?;
        let mut own = Archive::default();
        own.add_file(ORDERS, orders.into());
        own.add_file(SCHEDULER, scheduler.name().into());
        io::copy(&mut own.bytes()?.as_slice(), &mut file).map(drop).map_err(fault)
    }
}

/// Memory of dom0 in MiB: its first file system lies in it, and `xl` unpacks kernels there.
const MEMORY: u64 = 640;

/// What a domain takes, with what Xen keeps of it, in MiB.
const MEMORY_OF_DOMAIN: u64 = 112;

/// What Xen takes, in MiB.
const MEMORY_OF_XEN: u64 = 192;

/// What is said to Xen of dom0.
pub(crate) fn options() -> String {
    format!("dom0_mem={MEMORY}M,max:{MEMORY}M")
}

/// Memory of the machine for these orders, in bytes. dom0 refuses those that mean nothing.
pub(crate) fn memory(orders: &Boot) -> u64 {
    let hogs = orders.argument("hogs").and_then(|text| text.parse().ok()).unwrap_or(HOGS);
    (MEMORY_OF_XEN + MEMORY + (2 + hogs.min(64)) * MEMORY_OF_DOMAIN) << 20
}

impl Build<'_> {
    /// The first program. Cargo knows by itself what has changed.
    fn init_of_dom0(&self) -> Result<PathBuf, BootError> {
        let target = self.target.join("dom0");
        let mut command = Command::new("cargo");
        command
            .current_dir(self.host)
            .args(["build", "--release", "--locked", "--quiet", "--package", PACKAGE])
            .args(["--target", TARGET, "--target-dir"])
            .arg(&target)
            // What cargo sets for the program that calls this is not meant for dom0.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        run(command, PACKAGE)?;
        Ok(target.join(TARGET).join("release").join(PACKAGE))
    }
}

/// dom0's first file system, in which is what it builds domains of.
fn archive(target: &Path, packages: &Packages, init: &Path) -> Result<PathBuf, BootError> {
    let result = target.join("dom0").join(format!("{}.cpio", packages.kernel));
    step(&result, &packages.series, &[packages.record.clone(), init.into()], |new| {
        let mut archive = with_init(packages, init, &MODULES)?;
        let root = &packages.root;
        for name in TOOLS {
            let path = tool(&packages.series, name);
            for file in libraries(root, &path)?.iter().chain([&path]) {
                archive.add_program(file, read(&root.resolve(file)?)?);
            }
        }
        archive.add_program(UNWINDER, read(&root.resolve(UNWINDER)?)?);
        // Names by which these are found, here and by each other.
        archive.add_link("/usr/lib/xen", &format!("xen-{}", packages.series));
        archive.add_link("/bin/true", "busybox");
        archive.add_link("/var/run", "/run");
        archive.add_file("/etc/xen/xl.conf", Vec::new());
        archive.add_file("/boot/vmlinuz", read(&root.resolve(&image(&packages.kernel))?)?);
        let domain = with_init(packages, init, &MODULES_OF_DOMAINS)?;
        archive.add_file("/boot/domain.cpio", domain.bytes()?);
        fs::write(new, archive.bytes()?).map_err(|error| BootError::files(new.display(), error))
    })?;
    Ok(result)
}

/// What every file system has: the first program, BusyBox, modules.
fn with_init(packages: &Packages, init: &Path, modules: &[&str]) -> Result<Archive, BootError> {
    let mut archive = Archive::default();
    archive.add_program("/init", read(init)?);
    archive.add_program("/bin/busybox", read(&packages.root.resolve(BUSYBOX)?)?);
    for directory in DIRECTORIES {
        archive.add_directory(directory);
    }
    for (number, module) in modules.iter().enumerate() {
        let file = packages.module(module)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        archive.add_file(&format!("/lib/anysched/modules/{number:02}-{name}"), read(&file)?);
    }
    Ok(archive)
}

fn read(path: &Path) -> Result<Vec<u8>, BootError> {
    fs::read(path).map_err(|error| BootError::files(path.display(), error))
}
