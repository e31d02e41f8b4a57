//! Links an ArceOS image: axhal's build script has written the linker script into the directory
//! of the target and profile.

use std::path::PathBuf;

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // target/<triple>/<profile>/build/<package>-<hash>/out
    let profile = out.ancestors().nth(3).expect("OUT_DIR is deep in target");
    println!("cargo:rustc-link-arg-bins=-T{}", profile.join("linker_x86-pc.lds").display());
    println!("cargo:rustc-link-arg-bins=-no-pie");
    println!("cargo:rustc-link-arg-bins=-znostart-stop-gc");
}
