//! The documentation as a site, in `target/site`.

use crate::run::{Failed, command, root, run};
use crate::{playground, python};

/// Builds the site, with the playground in it. Errors: a page that is in no list, or a link to what
/// is not there.
pub fn build() -> Result<(), Failed> {
    let sphinx = python::program("sphinx-build", "site/requirements.txt", "site")?;
    let html = "target/site";
    // All pages anew: it does not see that a page which another one links to has gone.
    let args = ["-q", "-E", "-W", "--keep-going", "-c", "site", ".", html];
    run(&mut command(&sphinx.to_string_lossy(), &args))?;
    playground::build()?;
    let into = root().join(html).join("playground.html");
    std::fs::copy(playground::page(), &into)
        .map_err(|error| Failed(format!("{}: {error}", into.display())))?;
    println!("the site begins with {html}/index.html");
    Ok(())
}
