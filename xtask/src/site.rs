//! The documentation as a site, in `target/site`.

use crate::run::{Failed, command, output, output_or, root, run, step};
use crate::{docs, playground, python};
use std::path::Path;

/// Below `target`: reports for the site's folder `reports`, which `site/conf.py` lists.
const REPORTS: &str = "target/site-reports/reports";

/// With which `reproduce` says that a claim came out otherwise than expected; its page says so.
const OTHERWISE: i32 = 3;

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

/// Makes the reports of all papers, and builds the site with them.
pub fn build_with_reports() -> Result<(), Failed> {
    docs::build_released()?;
    let there = Path::new(REPORTS);
    let about = |error| Failed(format!("{REPORTS}: {error}"));
    let _ = std::fs::remove_dir_all(root().join(there));
    std::fs::create_dir_all(root().join(there)).map_err(about)?;
    let page = |name: &str| there.join(format!("{name}.html")).to_string_lossy().into_owned();
    let quickstart = "experiments/quickstart.toml";
    let args = ["run", quickstart, "--format", "csv", "--report", &page("quickstart")];
    step("quickstart", || output(&mut docs::released(&args)).map(drop))?;
    for paper in papers()? {
        let results = format!("target/site-results/{paper}");
        let reproduce = ["reproduce", &paper, "--quick", "--format", "json", "--out", &results];
        step(&paper, || {
            output_or(&mut docs::released(&reproduce), |code| code == OTHERWISE)?;
            run(&mut docs::released(&["report", &results, "--output", &page(&paper)]))
        })?;
    }
    step("site", build)
}

/// The folders of experiments that `reproduce` knows.
fn papers() -> Result<Vec<String>, Failed> {
    let folder = root().join("experiments");
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| Failed(format!("{}: {error}", folder.display())))?;
    let folders = entries.filter_map(Result::ok).filter(|entry| {
        let files = std::fs::read_dir(entry.path()).into_iter().flatten().filter_map(Result::ok);
        files.map(|file| file.path()).any(|path| path.extension().is_some_and(|end| end == "toml"))
    });
    let mut names: Vec<String> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}
