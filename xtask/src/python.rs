//! The Python package: its wheel is built, installed into environments, and tested there.

use crate::docs;
use crate::run::{Failed, command, root, run, step};
use std::path::{Path, PathBuf};

/// The oldest Python that the package runs on; `requires-python` in pyproject.toml says so, too.
const OLDEST: u32 = 11;

/// The newest that is looked for.
const NEWEST: u32 = 19;

/// The folder of the package.
const PACKAGE: &str = "python/anysched";

/// What the tests need, pinned.
const REQUIREMENTS: &str = "python/anysched/requirements.txt";

/// What a bare environment is asked, with nothing installed but the wheel: the package runs, and
/// says what it lacks.
pub const BARE: &str = "
import anysched
load = {'kind': 'batch', 'tasks': 3, 'service': '2ms'}
experiment = {'question': '?', 'machine': {'cpus': 1}, 'workload': [load], 'policy': ['rr']}
result = anysched.run(experiment)
assert result.rows[0]['makespan_ns'].mean == 6_000_000, result
try:
    result.frame()
except anysched.UsageError as error:
    assert 'pip install polars' in str(error), error
else:
    raise SystemExit('a data frame without a library for them')
";

/// Tests the package on the newest Python that there is, and unless it is `quick` on the oldest,
/// too.
pub fn test(quick: bool) -> Result<(), Failed> {
    let pythons = pythons()?;
    let chosen = match (quick, &pythons[..]) {
        (true, [.., newest]) => vec![newest],
        (false, [oldest, .., newest]) => vec![oldest, newest],
        (_, all) => all.iter().collect(),
    };
    let Some(newest) = chosen.last() else { return Ok(()) };
    let mut wheel = PathBuf::new();
    step("wheel", || build(newest).map(|built| wheel = built))?;
    step("command to compare with", docs::build_program)?;
    for python in chosen {
        let name = format!("Python 3.{}", python.minor);
        step(&format!("{name}, the wheel alone"), || test_bare(python, &wheel))?;
        let environment = environment(python)?;
        step(&format!("{name}, tests"), || test_in(&environment, &wheel, quick))?;
        step(&format!("{name}, types"), || check_types(&environment))?;
        step(&format!("{name}, notebooks"), || {
            run(&mut in_package(&environment.python(), &["notebooks.py"]))
        })?;
    }
    Ok(())
}

/// Writes the modules that are made from the schema.
pub fn generate() -> Result<(), Failed> {
    let pythons = pythons()?;
    let Some(newest) = pythons.last() else { return Ok(()) };
    let wheel = build(newest)?;
    let environment = environment(newest)?;
    install(&environment, &wheel)?;
    run(&mut in_package(&environment.python(), &["generate.py"]))
}

/// A program of the newest Python's environment `name`, in which these requirements are installed.
pub fn program(program: &str, requirements: &str, name: &str) -> Result<PathBuf, Failed> {
    let pythons = pythons()?;
    let newest = pythons.last().ok_or_else(|| Failed("there is no Python".into()))?;
    Ok(kept(newest, requirements, name)?.0.join("bin").join(program))
}

/// A Python that can make environments.
struct Python {
    program: String,
    minor: u32,
}

/// Those that there are, the oldest first.
///
/// Errors: there is none, and what to do.
fn pythons() -> Result<Vec<Python>, Failed> {
    let named = (OLDEST..=NEWEST).map(|minor| format!("python3.{minor}"));
    let mut found: Vec<Python> = named.chain(["python3".into()]).filter_map(usable).collect();
    found.sort_by_key(|python| python.minor);
    found.dedup_by_key(|python| python.minor);
    if found.is_empty() {
        return Err(Failed(format!(
            "there is no Python 3.{OLDEST} or newer with `venv`; on Debian, as root: apt-get \
             install -y --no-install-recommends python3 python3-venv"
        )));
    }
    Ok(found)
}

fn usable(program: String) -> Option<Python> {
    const ASK: &str = "import ensurepip, venv, sys; print(sys.version_info.minor)";
    let mut asked = command(&program, &["-c", ASK]);
    let answer = asked.stderr(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let minor = text.trim().parse().ok().filter(|minor| *minor >= OLDEST)?;
    answer.status.success().then_some(Python { program, minor })
}

/// An environment of a Python.
struct Environment(PathBuf);

impl Environment {
    /// A new one in a folder, in place of the one that may be there.
    fn create(python: &Python, folder: PathBuf) -> Result<Environment, Failed> {
        run(&mut command(&python.program, &["-m", "venv", "--clear", &text(&folder)]))?;
        Ok(Environment(folder))
    }

    fn python(&self) -> String {
        text(&self.0.join("bin/python"))
    }

    fn pip(&self, args: &[&str]) -> Result<(), Failed> {
        let common = ["-m", "pip", "--disable-pip-version-check", "--quiet", "install"];
        run(&mut command(&self.python(), &[&common[..], args].concat()))
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn in_package(program: &str, args: &[&str]) -> std::process::Command {
    let mut command = command(program, args);
    command.current_dir(root().join(PACKAGE));
    command
}

/// The environment with what the tests need.
fn environment(python: &Python) -> Result<Environment, Failed> {
    kept(python, REQUIREMENTS, &format!("python-3.{}", python.minor))
}

/// The environment `name` with what these requirements list, which is kept until that changes.
fn kept(python: &Python, requirements: &str, name: &str) -> Result<Environment, Failed> {
    let folder = root().join("target/tools").join(name);
    let wanted = std::fs::read_to_string(root().join(requirements))
        .map_err(|error| Failed(format!("{requirements}: {error}")))?;
    let noted = folder.join("requirements.txt");
    if std::fs::read_to_string(&noted).is_ok_and(|there| there == wanted) {
        return Ok(Environment(folder));
    }
    let environment = Environment::create(python, folder)?;
    environment.pip(&["--requirement", requirements])?;
    std::fs::write(&noted, wanted)
        .map_err(|error| Failed(format!("{}: {error}", noted.display())))?;
    Ok(environment)
}

/// Builds the wheel as the tests of the workspace are built, whose crates it shares.
fn build(python: &Python) -> Result<PathBuf, Failed> {
    build_wheel(python, "dev", &root().join("target/wheels"))
}

/// Builds the wheel that users are to have, into `wheel` of `folder`. One serves every Python from
/// the oldest on.
pub fn release(folder: &Path) -> Result<PathBuf, Failed> {
    let pythons = pythons()?;
    let oldest = pythons.first().ok_or_else(|| Failed("there is no Python".into()))?;
    build_wheel(oldest, "dist", &folder.join("wheel"))
}

fn build_wheel(python: &Python, profile: &str, wheels: &Path) -> Result<PathBuf, Failed> {
    let maturin = text(&environment(python)?.0.join("bin/maturin"));
    let _ = std::fs::remove_dir_all(wheels);
    let folder = text(wheels);
    let args = ["build", "--quiet", "--locked", "--profile", profile, "--out", &folder];
    let mut build = in_package(&maturin, &args);
    build.env("CARGO_INCREMENTAL", "0").env("CARGO_TARGET_DIR", docs::target());
    run(build.args(["--interpreter", &python.program]))?;
    let built = std::fs::read_dir(wheels).into_iter().flatten().filter_map(Result::ok).next();
    built.map(|entry| entry.path()).ok_or_else(|| Failed("maturin built no wheel".into()))
}

fn test_bare(python: &Python, wheel: &Path) -> Result<(), Failed> {
    let folder = root().join(format!("target/tools/bare-3.{}", python.minor));
    let bare = Environment::create(python, folder)?;
    bare.pip(&["--no-index", &text(wheel)])?;
    run(&mut command(&bare.python(), &["-c", BARE]))
}

fn install(environment: &Environment, wheel: &Path) -> Result<(), Failed> {
    environment.pip(&["--no-index", "--no-deps", "--force-reinstall", &text(wheel)])
}

fn test_in(environment: &Environment, wheel: &Path, quick: bool) -> Result<(), Failed> {
    install(environment, wheel)?;
    let python = environment.python();
    run(&mut in_package(&python, &["generate.py", "--check"]))?;
    let chosen: &[&str] = if quick { &["-m", "not cluster"] } else { &[] };
    let mut tests = in_package(&python, &[&["-m", "pytest"], chosen].concat());
    run(tests.env("ANYSCHED", docs::program_path()).env("COLUMNS", "80"))
}

fn check_types(environment: &Environment) -> Result<(), Failed> {
    let python = environment.python();
    let checked = ["-m", "mypy", "src/anysched", "tests/typed_use.py"];
    run(&mut in_package(&python, &checked))?;
    let stubs = ["-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml"];
    let allowed = ["--allowlist", "stubtest.allow", "anysched._core"];
    run(in_package(&python, &stubs).args(allowed))
}
