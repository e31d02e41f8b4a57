//! Reading an experiment, with all that is wrong with it.

use crate::builtin;
use crate::plan::Plan;
use crate::spec::error::{Error, Fault, Source};
use crate::spec::experiment::Experiment;
use std::path::Path;

/// The name of an experiment that is in no file.
const STDIN: &str = "stdin";

impl Experiment {
    /// Reads the experiment file at `path`; if there is none, the one of that name that the program
    /// carries ([`builtin`]).
    ///
    /// Errors: the file cannot be read, or as [`Experiment::parse`].
    pub fn load(path: &Path) -> Result<Experiment, Error> {
        let known = Some(path.to_path_buf()).filter(|path| builtin::contents(path).is_some());
        let known = known.or_else(|| (!path.exists()).then(|| builtin::experiment(path))?);
        if let Some((path, bytes)) = known.and_then(|path| {
            let bytes = builtin::contents(&path)?;
            Some((path, bytes))
        }) {
            return Experiment::of_bytes(bytes, &path);
        }
        let bytes = std::fs::read(path).map_err(|error| {
            Source::new(path, "").error(Fault::whole(format!("cannot be read: {error}")))
        })?;
        Experiment::of_bytes(&bytes, path)
    }

    fn of_bytes(bytes: &[u8], path: &Path) -> Result<Experiment, Error> {
        let refused = |fault| Source::new(path, "").error(fault);
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            refused(
                Fault::whole(format!("line {line} is not UTF-8"))
                    .help("an experiment is a text in TOML; save it as UTF-8"),
            )
        })?;
        Experiment::parse(text, path)
    }

    /// Reads an experiment from standard input, as if it stood in a file `stdin` of the working
    /// directory.
    ///
    /// Errors: it cannot be read, or as [`Experiment::parse`].
    pub fn read_from(input: &mut dyn std::io::Read) -> Result<Experiment, Error> {
        let mut bytes = Vec::new();
        let path = Path::new(STDIN);
        let read = input.read_to_end(&mut bytes);
        read.map_err(|error| {
            Source::new(path, "").error(Fault::whole(format!("cannot be read: {error}")))
        })?;
        Experiment::of_bytes(&bytes, path)
    }

    /// Reads an experiment from `text`, as if it stood in the file `path`: the file's stem is
    /// the experiment's name, and files that it names are looked for beside it.
    ///
    /// Errors: it is not TOML, or a part of it is not understood. What depends on the values of
    /// the sweep is checked by [`Experiment::plan`].
    pub fn parse(text: &str, path: &Path) -> Result<Experiment, Error> {
        let source = Source::new(path, text);
        let read = Experiment::read(&source, path).and_then(|(experiment, mut faults)| {
            if !faults.is_empty() {
                // What depends on values of the sweep would be found next.
                faults.take(Plan::check_parts(&experiment));
            }
            faults.result().map(|()| experiment)
        });
        read.map_err(|fault| source.error(fault))
    }
}
