//! How a policy in a running kernel is doing: the text that its module answers with.
//!
//! | line | how often | means |
//! |---|---|---|
//! | `anysched-status 1` | the first line | the format and its version |
//! | `idle` | | no policy has been started |
//! | `policy` *name* | | the policy of this name decides |
//! | `dead` *why* | | it did; this ended it |
//! | `heap` *used* *size* | | its memory in bytes |
//! | `log` *used* *size* *lost* | | the buffer of its log in bytes, and records that found no room |
//! | `calls` *calls* *ns* *longest* | | calls of the policy, and nanoseconds in all and in one |
//! | `cpu` *number* *task* *queued* *key*`=`*n* … | for each CPU in use | see [`Cpu`] |
//! | `runs` *number* *task* *pid* *name* | for each CPU that runs a task | the task, as the kernel knows it |
//! | `waited` *ns* *count* | | *count* woken tasks waited for *ns* or a little more |
//! | `tally` *name* *n* | | a counter of the policy |
//! | `learned` *name* *text* | | what the policy has learned: a parameter for a later run |
//!
//! *Task* is the number by which the policy knows what the CPU runs, or `-`. Texts are
//! [escaped](mod@crate::escape).

use crate::text::{TextFormat, number};
use crate::{At, WireError, escape};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The most bytes of the text.
pub const LONGEST: usize = 1 << 24;

const FORMAT: TextFormat =
    TextFormat { name: "status", magic: "anysched-status", version: 1, longest: LONGEST };

/// The first line, with its end.
pub const FIRST: &str = "anysched-status 1\n";

/// The keys of a CPU's counters, in the order of [`Cpu::counts`].
pub const COUNTERS: [&str; 9] = [
    "dispatches",
    "kept",
    "idle",
    "preemptions",
    "migrations",
    "wakeups",
    "kicks",
    "undone",
    "unasked",
];

/// A line of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// No policy has been started.
    Idle,
    /// The policy of this name decides.
    Policy(String),
    /// What ended it.
    Dead(String),
    /// Memory in bytes: used, and there.
    Heap(u64, u64),
    /// The log in bytes: used, and there; records that found no room.
    Log(u64, u64, u64),
    /// Calls of the policy; nanoseconds in all, and of the longest.
    Calls(u64, u64, u64),
    /// A CPU.
    Cpu(Cpu),
    /// What a CPU runs.
    Runs(Runs),
    /// A bucket of the histogram of wake-up latencies: its lowest, in nanoseconds, and how many.
    Waited(u64, u64),
    /// A counter of the policy.
    Tally(String, u64),
    /// What the policy has learned.
    Learned(String, String),
}

/// A CPU in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: u16,
    /// What the policy believes that it runs.
    pub task: Option<u32>,
    /// Tasks in its runqueue, when the policy last said.
    pub queued: u64,
    /// Counters, in the order of [`COUNTERS`].
    pub counts: [u64; COUNTERS.len()],
}

/// What a CPU runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// The CPU's number.
    pub cpu: u16,
    /// The number by which the policy knows the task.
    pub task: u32,
    /// The number by which the kernel knows it: of a thread, not of its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Line {
    /// The line, without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use escape::{rest, word};
        match self {
            Line::Idle => f.write_str("idle"),
            Line::Policy(name) => write!(f, "policy {}", rest(name)),
            Line::Dead(why) => write!(f, "dead {}", rest(why)),
            Line::Heap(used, size) => write!(f, "heap {used} {size}"),
            Line::Log(used, size, lost) => write!(f, "log {used} {size} {lost}"),
            Line::Calls(calls, ns, longest) => write!(f, "calls {calls} {ns} {longest}"),
            Line::Cpu(cpu) => cpu.fmt(f),
            Line::Runs(Runs { cpu, task, pid, name }) => {
                write!(f, "runs {cpu} {task} {pid} {}", rest(name))
            }
            Line::Waited(ns, count) => write!(f, "waited {ns} {count}"),
            Line::Tally(name, number) => write!(f, "tally {} {number}", word(name)),
            Line::Learned(name, text) => write!(f, "learned {} {}", word(name), rest(text)),
        }
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu {} ", self.number)?;
        match self.task {
            Some(task) => write!(f, "{task}")?,
            None => f.write_char('-')?,
        }
        write!(f, " {}", self.queued)?;
        COUNTERS.iter().zip(&self.counts).try_for_each(|(key, count)| write!(f, " {key}={count}"))
    }
}

/// Reads a text.
///
/// Errors: it is of another version, a line is meaningless, or it is cut off.
pub fn read(text: &[u8]) -> Result<Vec<Line>, WireError> {
    FORMAT.lines(text)?.map(|(number, line)| read_line(line, At::Line(number))).collect()
}

fn read_line(line: &str, at: At) -> Result<Line, WireError> {
    let error = |why: &str| FORMAT.error(at, line, why);
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let text = |text: &str| escape::unescape(text).ok_or_else(|| error("text is wanted"));
    let pair = || rest.split_once(' ').ok_or_else(|| error("a name and something more are wanted"));
    Ok(match word {
        "idle" if rest.is_empty() => Line::Idle,
        "policy" => Line::Policy(text(rest)?),
        "dead" => Line::Dead(text(rest)?),
        "heap" => numbers(rest)
            .map(|[used, size]| Line::Heap(used, size))
            .ok_or_else(|| error(NUMBERS))?,
        "log" => numbers(rest)
            .map(|[used, size, lost]| Line::Log(used, size, lost))
            .ok_or_else(|| error(NUMBERS))?,
        "calls" => numbers(rest)
            .map(|[calls, ns, longest]| Line::Calls(calls, ns, longest))
            .ok_or_else(|| error(NUMBERS))?,
        "waited" => numbers(rest)
            .map(|[ns, count]| Line::Waited(ns, count))
            .ok_or_else(|| error(NUMBERS))?,
        "cpu" => Line::Cpu(read_cpu(rest).ok_or_else(|| error("a CPU is wanted"))?),
        "runs" => {
            let runs = || {
                let mut words = rest.splitn(4, ' ');
                let mut number = || number(words.next()?);
                let (cpu, task, pid) = (number()?, number()?, number()?);
                Some((cpu.try_into().ok()?, task.try_into().ok()?, pid.try_into().ok()?, words))
            };
            let (cpu, task, pid, mut words) = runs().ok_or_else(|| error(NUMBERS))?;
            Line::Runs(Runs { cpu, task, pid, name: text(words.next().unwrap_or_default())? })
        }
        "tally" => {
            let (name, count) = pair()?;
            Line::Tally(text(name)?, number(count).ok_or_else(|| error(NUMBERS))?)
        }
        "learned" => {
            let (name, value) = pair()?;
            Line::Learned(text(name)?, text(value)?)
        }
        _ => {
            return Err(error(
                "there is no such line; build module and program from the same sources",
            ));
        }
    })
}

const NUMBERS: &str = "whole numbers are wanted";

/// Exactly so many numbers.
fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut words = text.split(' ');
    let mut all = [0; N];
    for place in &mut all {
        *place = number(words.next()?)?;
    }
    words.next().is_none().then_some(all)
}

fn read_cpu(text: &str) -> Option<Cpu> {
    let mut words = text.split(' ');
    let cpu = number(words.next()?).and_then(|number| number.try_into().ok())?;
    let task = match words.next()? {
        "-" => None,
        task => Some(number(task)?.try_into().ok()?),
    };
    let queued = number(words.next()?)?;
    let mut counts = [0; COUNTERS.len()];
    for (key, count) in COUNTERS.iter().zip(&mut counts) {
        *count = number(words.next()?.strip_prefix(key)?.strip_prefix('=')?)?;
    }
    words.next().is_none().then_some(Cpu { number: cpu, task, queued, counts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, vec};

    #[test]
    fn lines_by_hand() {
        let cpu = Cpu { number: 3, task: Some(17), queued: 2, counts: [1, 2, 3, 4, 5, 6, 7, 8, 9] };
        let all = "cpu 3 17 2 dispatches=1 kept=2 idle=3 preemptions=4 migrations=5 wakeups=6 \
                   kicks=7 undone=8 unasked=9";
        for (line, text) in [
            (Line::Idle, "idle"),
            (Line::Policy("gfs".into()), "policy gfs"),
            (Line::Dead("src/a.rs:1: no\nmore".into()), "dead src/a.rs:1: no\\nmore"),
            (Line::Heap(1, 2), "heap 1 2"),
            (Line::Log(1, 2, 3), "log 1 2 3"),
            (Line::Calls(1, 2, 3), "calls 1 2 3"),
            (Line::Cpu(cpu), all),
            (Line::Cpu(Cpu { task: None, ..cpu }), &all.replace(" 17 ", " - ")),
            (
                Line::Runs(Runs { cpu: 1, task: 17, pid: 4711, name: "a b".into() }),
                "runs 1 17 4711 a b",
            ),
            (Line::Waited(960, 5), "waited 960 5"),
            (Line::Tally("boosts".into(), 4), "tally boosts 4"),
            (Line::Learned("profile".into(), "1 2\n3".into()), "learned profile 1 2\\n3"),
        ] {
            assert_eq!(format!("{line}"), text);
            let whole = format!("{FIRST}{text}\n");
            assert_eq!(read(whole.as_bytes()), Ok(vec![line]));
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for wrong in [
            "",
            "idle now",
            "heap 1",
            "heap 1 2 3",
            "log 1 2",
            "calls 1 x 3",
            "cpu 1 - 0",
            "runs 1 2",
            "runs 65536 1 1 a",
            "tally x",
            "tally x y",
            "learned x",
            "waited -1 2",
            "boats 3",
            "cpu 70000 - 0",
        ] {
            let text = format!("{FIRST}{wrong}\n");
            assert_eq!(read(text.as_bytes()).unwrap_err().at, At::Line(2), "{wrong}");
        }
        assert!(read(b"anysched-status 1\nidle").is_err(), "cut off");
        assert!(read(b"anysched-status 2\nidle\n").is_err());
    }
}
