//! The documentation as a site, in `target/site/html`.

use crate::run::{Failed, command, root, run};
use std::path::PathBuf;

const REQUIREMENTS: &str = "site/requirements.txt";

/// Builds the site. Errors: a page that is in no list, or a link to what is not there.
pub fn build() -> Result<(), Failed> {
    let sphinx = sphinx()?.to_string_lossy().into_owned();
    let html = "target/site/html";
    // All pages anew: it does not see that a page which another one links to has gone.
    let args = ["-q", "-E", "-W", "--keep-going", "-c", "site", ".", html];
    run(&mut command(&sphinx, &args))?;
    println!("the site begins with {html}/index.html");
    Ok(())
}

/// The builder, in an environment of its own that is as the requirements say.
fn sphinx() -> Result<PathBuf, Failed> {
    let folder = root().join("target/site/venv");
    let installed = folder.join("installed.txt");
    let read = |path: PathBuf| std::fs::read_to_string(path).ok();
    let wanted = read(root().join(REQUIREMENTS));
    if wanted.is_none() || read(installed.clone()) != wanted {
        let environment = folder.to_string_lossy().into_owned();
        run(&mut command("python3", &["-m", "venv", "--clear", &environment]))?;
        let pip = folder.join("bin/pip").to_string_lossy().into_owned();
        let quiet = ["install", "--quiet", "--disable-pip-version-check"];
        run(&mut command(&pip, &[&quiet[..], &["--no-deps", "-r", REQUIREMENTS]].concat()))?;
        std::fs::copy(root().join(REQUIREMENTS), &installed)
            .map_err(|error| Failed(format!("{}: {error}", installed.display())))?;
    }
    Ok(folder.join("bin/sphinx-build"))
}
