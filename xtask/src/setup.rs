//! What the checks need besides Rust, and how it is installed.

use crate::run::{Failed, cargo_command, command, output, root, run};

/// A command that succeeds where what a check needs is installed, the Debian package that contains
/// it, and the reason.
type Tool = (&'static [&'static str], &'static str, &'static str);

const TOOLS: [Tool; 7] = [
    (&["c++", "--version"], "g++", "the fuzz targets link libFuzzer, which is C++"),
    (&["qemu-system-x86_64", "--version"], "qemu-system-x86", "kernels are booted in it"),
    (&["zstd", "--version"], "zstd", "machines that have booted are kept compressed"),
    (&["python3", "-c", "import ensurepip, venv"], "python3-venv", "the Python package is tested"),
    (&["bash", "--version"], "bash", "completion is tested in it"),
    (&["zsh", "--version"], "zsh", "completion is tested in it"),
    (&["fish", "--version"], "fish", "completion is tested in it"),
];

/// What building the page of reports needs, and trying it.
const TOOLS_OF_REPORT: [Tool; 3] = [
    (&["node", "--version"], "nodejs", "the page of reports is built with it"),
    (&["npm", "--version"], "npm", "it fetches what the page of reports is built from"),
    (&["chromium", "--version"], "chromium", "reports are tried in it"),
];

const COMPONENTS: [(&str, &str); 2] = [("rustfmt", "rustfmt"), ("cargo-clippy", "clippy")];

/// Checks the toolchain and the tools; installs packages if permitted, otherwise says what to type.
pub fn ensure() -> Result<(), Failed> {
    require_components().and_then(|()| install(&TOOLS))
}

/// The packages that `ci` needs and that are missing; packages are made with more.
///
/// Errors: they cannot be installed, or the toolchain lacks something, and what to type.
pub fn missing() -> Result<Packages, Failed> {
    require_components()?;
    Packages::of([&TOOLS[..], &TOOLS_OF_REPORT].concat())
}

fn require_components() -> Result<(), Failed> {
    match COMPONENTS.iter().find(|(program, _)| !exists(program)) {
        None => Ok(()),
        Some((program, component)) => {
            Err(Failed(format!("`{program}` is missing; type: rustup component add {component}")))
        }
    }
}

/// What making packages needs.
const TOOLS_OF_DIST: [Tool; 1] = [(
    &["musl-gcc", "-dumpversion"],
    "musl-tools",
    "the static program's allocator, which is C, is compiled with it",
)];

/// The same for making packages.
pub fn ensure_dist() -> Result<(), Failed> {
    ensure().and_then(|()| install(&TOOLS_OF_DIST))
}

/// What trying packages in clean roots needs.
const TOOLS_OF_PACKAGES: [Tool; 2] = [
    (&["mmdebstrap", "--version"], "mmdebstrap", "packages are installed in roots that it makes"),
    (&["buildah", "--version"], "buildah", "the container is built and tried with it"),
];

/// The same for making and trying packages.
pub fn ensure_packages() -> Result<(), Failed> {
    ensure_dist().and_then(|()| install(&TOOLS_OF_PACKAGES))
}

/// The same for the page of reports.
pub fn ensure_report() -> Result<(), Failed> {
    install(&TOOLS_OF_REPORT)
}

/// Installs the packages of tools that are missing.
fn install(tools: &[Tool]) -> Result<(), Failed> {
    Packages::of(tools.to_vec())?.install()
}

/// Packages of Debian that are missing.
pub struct Packages(Vec<&'static str>);

impl Packages {
    /// Those of tools that are missing. Errors: they cannot be installed, and what to type.
    fn of(tools: Vec<Tool>) -> Result<Packages, Failed> {
        let missing: Vec<Tool> = tools.into_iter().filter(|(test, ..)| !succeeds(test)).collect();
        for (test, package, why) in &missing {
            println!("`{}` fails ({why}); it comes with the package {package}", test.join(" "));
        }
        let packages = Packages(missing.into_iter().map(|(_, package, _)| package).collect());
        if packages.0.is_empty() {
            return Ok(packages);
        }
        let is_root = output(&mut command("id", &["-u"]))?.trim() == "0";
        if !is_root || !exists("apt-get") {
            let line = packages.line();
            return Err(Failed(format!("install what is missing; on Debian, as root: {line}")));
        }
        Ok(packages)
    }

    /// The command that installs them.
    fn line(&self) -> String {
        format!("apt-get install -y --no-install-recommends {}", self.0.join(" "))
    }

    /// Installs them.
    pub fn install(&self) -> Result<(), Failed> {
        if self.0.is_empty() {
            return Ok(());
        }
        println!("installing: {}", self.line());
        run(&mut command("apt-get", &["update", "-qq"]))?;
        let args = ["install", "-y", "-qq", "--no-install-recommends"];
        let mut install = command("apt-get", &args);
        // Two hundred lines for a dozen packages; what goes wrong is on the other stream.
        output(install.args(&self.0).env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
    }
}

fn succeeds(test: &[&str]) -> bool {
    let [program, args @ ..] = test else { return false };
    let output = command(program, args).output();
    output.is_ok_and(|output| output.status.success())
}

fn exists(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// A program that cargo installs.
pub struct CargoTool {
    name: &'static str,
    /// The version that the project is written for.
    version: &'static str,
}

/// Checks licences and sources, as deny.toml says.
const CARGO_DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20" };

/// Packs a program for Debian.
pub const CARGO_DEB: CargoTool = CargoTool { name: "cargo-deb", version: "3.8" };

/// Where a program is; it is installed, on one core, if it is missing.
pub fn install_tool(tool: &CargoTool) -> Result<String, Failed> {
    let CargoTool { name, version } = tool;
    let tools = root().join("target/tools");
    let own = tools.join("bin").join(name);
    if own.is_file() {
        return Ok(own.to_string_lossy().into_owned());
    }
    if exists(name) {
        return Ok(name.to_string());
    }
    println!("installing {name} {version} into target/tools");
    let tools = tools.to_string_lossy().into_owned();
    let version = format!("^{version}");
    // Unoptimised and without line tables: builds in less than half the time, and it runs for only
    // a second.
    let mut install = cargo_command(&[
        "install",
        "--quiet",
        "--debug",
        "--locked",
        "--jobs",
        "1",
        "--root",
        &tools,
        "--version",
        &version,
        name,
    ]);
    run(install.env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    Ok(own.to_string_lossy().into_owned())
}

/// Checks licences, duplicate versions and sources of all dependencies. Advisories come from a
/// database that is not a package, so they are not checked here.
pub fn deny() -> Result<(), Failed> {
    let program = install_tool(&CARGO_DENY)?;
    for (workspace, config) in WORKSPACES {
        let manifest = format!("{workspace}/Cargo.toml");
        let args = ["--manifest-path", &manifest, "--config", config, "--log-level", "error"];
        let checks = ["check", "bans", "licenses", "sources"];
        run(command(&program, &args).args(checks))?;
    }
    Ok(())
}

/// All workspaces, each with its configuration of cargo-deny.
const WORKSPACES: [(&str, &str); 6] = [
    (".", "deny.toml"),
    ("fuzz", "deny.toml"),
    ("hosts/arceos", "hosts/arceos/deny.toml"),
    ("hosts/linux", "deny.toml"),
    ("hosts/arceos/stock", "hosts/arceos/deny.toml"),
    ("hosts/xen", "deny.toml"),
];
