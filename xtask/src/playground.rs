//! The playground: the simulator as WebAssembly, in a page that needs nothing else, tried in a
//! browser. It is made from the program's crates, so it is built wherever it is wanted, in
//! `target/playground`, and not kept in the repository.

use crate::run::{Failed, cargo, run};
use crate::{docs, hosts, report};
use lzma_rust2::{LzmaOptions, LzmaWriter};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What browsers run.
const TARGET: &str = "wasm32-unknown-unknown";

/// The page.
pub fn page() -> PathBuf {
    docs::target().join("playground/playground.html")
}

/// The simulator as browsers run it.
fn simulator() -> PathBuf {
    docs::target().join(TARGET).join("playground/anysched_playground.wasm")
}

/// Adds to the toolchain what is missing.
pub fn require_toolchain() -> Result<(), Failed> {
    hosts::require_target(TARGET)
}

/// Builds the simulator and the page with it. Errors: it has too many bytes to be sent.
pub fn build() -> Result<(), Failed> {
    require_toolchain()?;
    report::fetch()?;
    let package = ["--package", "anysched-playground", "--target", TARGET];
    cargo(&[&["build", "--quiet", "--profile", "playground"][..], &package].concat())?;
    let (page, packed) = (page(), page().with_file_name("simulator.lzma"));
    let failed = |path: &Path, error: io::Error| Failed(format!("{}: {error}", path.display()));
    if let Some(folder) = page.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    }
    pack(&simulator(), &packed).map_err(|error| failed(&packed, error))?;
    let [packed, page] = [packed, page].map(|path| path.to_string_lossy().into_owned());
    run(&mut report::in_report("node", &["playground.mjs", &packed, &page]))
}

/// Packs a file as LZMA that says how long it is, which lzma1 unpacks in the page. It is a third
/// smaller than what browsers unpack themselves.
fn pack(from: &Path, to: &Path) -> io::Result<()> {
    let bytes = fs::read(from)?;
    let mut options = LzmaOptions::with_preset(9);
    // WebAssembly is aligned to nothing.
    (options.pb, options.lc, options.nice_len) = (0, 4, 273);
    let size = u64::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(size))?;
    writer.write_all(&bytes)?;
    fs::write(to, writer.finish()?)
}

/// Builds the playground, compares what it gives with what the program gives, and tries it in a
/// browser. The program has been built.
pub fn check() -> Result<(), Failed> {
    build()?;
    // What is only there for browsers, no other check sees.
    let package = ["--package", "anysched-playground", "--target", TARGET];
    cargo(&[&["clippy", "--quiet"][..], &package, &["--", "-D", "warnings"]].concat())?;
    let mut tests = report::in_report("npm", &["run", "playground", "--silent"]);
    tests.env("ANYSCHED", docs::program_path()).env("REPORTS", docs::target().join("report"));
    run(tests.env("PLAYGROUND", page()).env("SIMULATOR", simulator()))
}
