//! Lists the experiments and traces of the repository, which the program carries.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What is carried: not what is about the files, nor how they were made.
const ENDINGS: [&str; 5] = ["toml", "tsv", "model", "costs", "gz"];

/// WebAssembly is sent with the page that it is in: what has more bytes is not carried there.
const MOST_IN_A_PAGE: u64 = 1 << 18;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_in_a_page = env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm");
    let mut files = Vec::new();
    for folder in ["experiments", "traces"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        walk(&root.join(folder), folder, &mut files)?;
    }
    if is_in_a_page {
        files.retain(|(_, path)| path.metadata().is_ok_and(|file| file.len() <= MOST_IN_A_PAGE));
    }
    files.sort();
    let mut list = String::from("&[\n");
    for (name, path) in &files {
        let path = path.canonicalize()?;
        let _ = writeln!(list, "    ({name:?}, include_bytes!({path:?})),");
    }
    list += "]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("builtin.rs"), list)
}

fn walk(folder: &Path, name: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{name}/{own}");
        if path.is_dir() {
            walk(&path, &name, files)?;
        } else if path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known)) {
            files.push((name, path));
        }
    }
    Ok(())
}
