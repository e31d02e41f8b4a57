//! Building the images. One that is there, and newer than all it is made of, is not built again.

use crate::BootError;
use crate::made;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Which scheduler an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Any policy of anysched, named at boot.
    Anysched,
    /// ArceOS's own FIFO.
    StockFifo,
    /// ArceOS's own round robin.
    StockRr,
    /// ArceOS's own CFS.
    StockCfs,
}

impl Kernel {
    /// ArceOS's own schedulers, by the names under which they can be booted.
    pub const STOCK: [(&str, Kernel); 3] = [
        ("stock-fifo", Kernel::StockFifo),
        ("stock-rr", Kernel::StockRr),
        ("stock-cfs", Kernel::StockCfs),
    ];

    fn name(self) -> &'static str {
        let stock = Kernel::STOCK.iter().find(|(_, kernel)| *kernel == self);
        stock.map_or("anysched", |(name, _)| name)
    }

    fn is_stock(self) -> bool {
        self != Kernel::Anysched
    }

    fn features(self) -> &'static str {
        match self {
            Kernel::Anysched => "",
            Kernel::StockFifo => "fifo",
            Kernel::StockRr => "rr",
            Kernel::StockCfs => "cfs",
        }
    }
}

/// An image: what it is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image {
    /// Its scheduler.
    pub kernel: Kernel,
    /// CPUs of the machine, 1 to 16.
    pub cpus: u16,
    /// Whether it has a network.
    pub net: bool,
}

/// Ticks a second of ArceOS's own schedulers, its default. Those of ours come when they are due.
const STOCK_TICKS: u16 = 100;

/// The target that ArceOS is built for.
const TARGET: &str = "x86_64-unknown-none";

/// The machine's address in the network of QEMU, and that of its gateway.
const NETWORK: [(&str, &str); 2] = [("AX_IP", "10.0.2.15"), ("AX_GW", "10.0.2.2")];

/// What runs on this computer while an image is built (macros, build scripts) is the same for all
/// images: built once, the second image takes a third of the time of the first.
fn share_host_programs(sources: &Path, target: &Path) -> Result<(), BootError> {
    let shared = sources.join("target/host/release");
    let own = target.join("release");
    let fault = |error| BootError::files(own.display(), error);
    fs::create_dir_all(&shared).and_then(|()| fs::create_dir_all(target)).map_err(fault)?;
    #[cfg(unix)]
    match std::os::unix::fs::symlink("../host/release", &own) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(fault(error));
        }
        _ => {}
    }
    Ok(())
}

/// What this program has built, and where it is.
static BUILT: Mutex<BTreeMap<Image, PathBuf>> = Mutex::new(BTreeMap::new());

impl Image {
    /// Builds the image, unless it is there and newer than all it is made of, or this has built it
    /// before. Returns its file.
    ///
    /// Errors: something is not installed, or the compiler's.
    pub fn build(self) -> Result<PathBuf, BootError> {
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = built.get(&self) {
            return Ok(file.clone());
        }
        let file = self.build_now()?;
        built.insert(self, file.clone());
        Ok(file)
    }

    fn build_now(self) -> Result<PathBuf, BootError> {
        let sources = anysched_qemu::sources("arceos")?;
        anysched_qemu::require_target(TARGET)?;
        // Images that differ only in features have most of what they are built from in common.
        let kind = if self.kernel.is_stock() { "stock" } else { "anysched" };
        let target = sources.join("target").join(format!("{kind}-{}", self.cpus));
        share_host_programs(&sources, &target)?;
        let config = target.join("axconfig.toml");
        self.write_config(&sources, &config)?;
        let workspace = if self.kernel.is_stock() { sources.join("stock") } else { sources };
        let package =
            if self.kernel.is_stock() { "anysched-arceos-stock" } else { "anysched-arceos-image" };
        let program = format!("{}{}", self.kernel.name(), if self.net { "-net" } else { "" });
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&workspace)
            .args(["build", "--release", "--locked", "--package", package, "--target", TARGET])
            .args(["--bin", &program])
            .arg("--features")
            .arg(self.all_features())
            .arg("--target-dir")
            .arg(&target)
            .env("AX_CONFIG_PATH", &config)
            // ArceOS uses unstable features of the compiler.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("AX_LOG", "warn")
            .envs(NETWORK)
            // What cargo sets for the program that calls this is not meant for the kernel.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        let image = target.join(TARGET).join("release").join(program);
        made::unless_current(&image, &workspace, &config, cargo)?;
        Ok(image)
    }

    fn all_features(self) -> String {
        let mut features: Vec<&str> = vec![self.kernel.features()];
        if self.net {
            features.push("net");
        }
        if self.cpus > 1 {
            features.push("smp");
        }
        features.join(",")
    }

    /// Writes the configuration of the machine, if it is not there already: a new time of change
    /// would build everything again.
    fn write_config(self, sources: &Path, path: &Path) -> Result<(), BootError> {
        let fault =
            |path: &Path, error: &dyn std::fmt::Display| BootError::files(path.display(), error);
        let template = sources.join("axconfig.toml");
        let text = fs::read_to_string(&template).map_err(|error| fault(&template, &error))?;
        // Line by line: the comments give the values their types.
        let mut values = vec![("max-cpu-num", self.cpus)];
        if self.kernel.is_stock() {
            values.push(("ticks-per-sec", STOCK_TICKS));
        }
        let changed = text.lines().map(|line| {
            let key = line.split(' ').next().unwrap_or_default();
            match values.iter().find(|(name, _)| *name == key) {
                Some((name, value)) => format!("{name} = {value} # uint\n"),
                None => format!("{line}\n"),
            }
        });
        let text: String = changed.collect();
        if fs::read_to_string(path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let directory = path.parent().unwrap_or(sources);
        fs::create_dir_all(directory).map_err(|error| fault(directory, &error))?;
        fs::write(path, text).map_err(|error| fault(path, &error))
    }
}
