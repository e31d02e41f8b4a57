//! The command line.

use std::path::PathBuf;

/// What the agent is told.
pub struct Options {
    /// The start text.
    pub start: PathBuf,
    /// Where the status is written when the agent ends.
    pub status: PathBuf,
    /// Where the log of decisions is written when the agent ends, if there is one.
    pub log: PathBuf,
    /// Where whoever connects is told the status.
    pub socket: PathBuf,
    /// Where somebody asks for a parameter to be changed.
    pub changes: PathBuf,
    /// The BPF programs.
    pub object: PathBuf,
    /// The most tasks at a time.
    pub tasks: u32,
    /// Memory for the policy, in bytes.
    pub heap: usize,
}

const USAGE: &str = "anysched-agent [--start FILE] [--status FILE] [--log FILE] [--socket FILE] \
                     [--changes FILE] [--object FILE] [--tasks N] [--heap BYTES]";

impl Options {
    /// Reads `arguments`, pairs of an option and its value.
    ///
    /// Errors: there is no such option, or its value is none.
    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            start: "/run/anysched/start".into(),
            status: "/run/anysched/status".into(),
            log: "/run/anysched/log".into(),
            socket: "/run/anysched/agent".into(),
            changes: "/run/anysched/changes".into(),
            object: "/lib/anysched/agent.bpf.o".into(),
            tasks: 1 << 15,
            heap: 64 << 20,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next();
            let value = value.ok_or_else(|| format!("{name}: a value is wanted; {USAGE}"))?;
            let number = || value.parse().ok().filter(|number| *number > 0_usize);
            let wrong = || format!("{name} {value}: a whole number above 0 is wanted");
            match name.as_str() {
                "--start" => options.start = value.into(),
                "--status" => options.status = value.into(),
                "--log" => options.log = value.into(),
                "--socket" => options.socket = value.into(),
                "--changes" => options.changes = value.into(),
                "--object" => options.object = value.into(),
                "--tasks" => {
                    let tasks = number().and_then(|number| u32::try_from(number).ok());
                    options.tasks = tasks.ok_or_else(wrong)?;
                }
                "--heap" => options.heap = number().ok_or_else(wrong)?,
                _ => return Err(format!("there is no option {name}; {USAGE}")),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options, String> {
        Options::read(text.split_whitespace().map(String::from))
    }

    #[test]
    fn options_by_hand() {
        let options =
            read("--tasks 7 --heap 5000000000 --log /x").unwrap_or_else(|why| panic!("{why}"));
        let Options { tasks, heap, log, .. } = options;
        assert_eq!((tasks, heap, log), (7, 5_000_000_000, "/x".into()));
        for wrong in
            ["--tasks", "--tasks 0", "--tasks x", "--tasks 5000000000", "--heap -1", "--boats 3"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
