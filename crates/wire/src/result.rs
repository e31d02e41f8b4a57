//! What came of it: what a kernel says on its console, among prose for people.
//!
//! A line of a message begins with `@`; all other lines are prose and mean nothing. The one
//! exception is a kernel panic, which the kernel prints in its own way.
//!
//! | line | how often | means |
//! |---|---|---|
//! | `@started` *version* *program* | before all but `@refused` | this format's version is 1; the program begins |
//! | `@serving` *n* | once, by servers | clients can send to *n* sockets |
//! | `@task` *name* *key*`=`*n* … | for each task | what became of it |
//! | `@value` *name* *n* | | a measured number |
//! | `@sample` *name* *n* | | a number of which many are measured, such as a latency |
//! | `@learned` *name* *text* | | what the policy has learned: a parameter for a later run |
//! | `@refused` *why* | at most once, the last | what was asked for cannot be done |
//! | `@end` | once, the last | the program has done everything it had to do |
//!
//! The keys of a task, each once; the last two only where the kernel counts them:
//!
//! | key | means |
//! |---|---|
//! | `arrival` | when it was started, in nanoseconds since boot |
//! | `first` | when it ran first, likewise |
//! | `finish` | when its work was done, likewise |
//! | `groups` | parts of its work that it has done |
//! | `slept` | time for which it slept as told or waited for others, in nanoseconds |
//! | `service` | CPU time that it used, in nanoseconds |
//! | `dispatches` | how often it was picked |
//!
//! Names are words; *text*, *why* and *program* are the rest of the line. All are
//! [escaped](mod@crate::escape): they may be anything.

use crate::text::{number, other_version};
use crate::{At, WireError, escape};
use alloc::format;
use alloc::string::String;
use core::fmt;

/// The version of this format.
pub const VERSION: u32 = 1;

/// The I/O port of QEMU's device `isa-debug-exit`, by which a kernel ends its machine.
pub const EXIT_PORT: u16 = 0xf4;

/// The I/O port of QEMU's device `pvpanic`, by which a kernel says that it is ready for its orders,
/// with [`READY`]: its machine may be saved then, and go on later.
pub const READY_PORT: u16 = 0x505;

/// What is written there. The device has no event that fits; this one stops the machine.
pub const READY: u8 = 1;

/// What the lines of messages begin with.
pub const MARK: char = '@';

/// What a kernel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The program of this name begins.
    Started(String),
    /// Clients can send to this many sockets.
    Serving(u64),
    /// What became of a task.
    Task(Task),
    /// A measured number.
    Value {
        /// What it is.
        name: String,
        /// The number.
        number: u64,
    },
    /// A number of which many are measured.
    Sample {
        /// What it is.
        name: String,
        /// The number.
        number: u64,
    },
    /// What the policy has learned.
    Learned {
        /// The name of a parameter.
        name: String,
        /// Its value for a later run.
        value: String,
    },
    /// What was asked for cannot be done, and why. It is the last message.
    Refused(String),
    /// All is done. It is the last message.
    End,
}

/// What became of a task. Times are in nanoseconds since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// When it was started.
    pub arrival: u64,
    /// When it ran first.
    pub first: u64,
    /// When its work was done.
    pub finish: u64,
    /// Parts of its work that it has done.
    pub groups: u64,
    /// Time for which it slept as told, in nanoseconds.
    pub slept: u64,
    /// CPU time that it used, in nanoseconds, where the kernel counts it.
    pub service: Option<u64>,
    /// How often it was picked, where the kernel counts it.
    pub dispatches: Option<u64>,
}

/// The line, without its end.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use escape::{rest, word};
        match self {
            Message::Started(program) => write!(f, "{MARK}started {VERSION} {}", rest(program)),
            Message::Serving(sockets) => write!(f, "{MARK}serving {sockets}"),
            Message::Task(task) => task.fmt(f),
            Message::Value { name, number } => write!(f, "{MARK}value {} {number}", word(name)),
            Message::Sample { name, number } => write!(f, "{MARK}sample {} {number}", word(name)),
            Message::Learned { name, value } => {
                write!(f, "{MARK}learned {} {}", word(name), rest(value))
            }
            Message::Refused(why) => write!(f, "{MARK}refused {}", rest(why)),
            Message::End => write!(f, "{MARK}end"),
        }
    }
}

impl Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task { name, arrival, first, finish, groups, slept, service, dispatches } = self;
        write!(f, "{MARK}task {} arrival={arrival} first={first} ", escape::word(name))?;
        write!(f, "finish={finish} groups={groups} slept={slept}")?;
        for (key, number) in [("service", service), ("dispatches", dispatches)] {
            if let Some(number) = number {
                write!(f, " {key}={number}")?;
            }
        }
        Ok(())
    }
}

impl Message {
    /// Reads a line of the console, without its end. `None`: it is prose.
    ///
    /// Errors: the message is meaningless, or of another version.
    pub fn read(line: &str) -> Result<Option<Message>, WireError> {
        let Some(message) = line.strip_prefix(MARK) else { return Ok(None) };
        let (word, rest) = message.split_once(' ').map_or((message, None), |(w, r)| (w, Some(r)));
        let text = |text: &str| {
            let why = "text is wanted; `\\-` is the empty one, and `\\\\` is a backslash";
            escape::unescape(text).ok_or_else(|| error(line, why))
        };
        let pair = |text: &str| {
            let pair = text.split_once(' ').map(|(name, rest)| (name.into(), rest.into()));
            let pair: Option<(String, String)> = pair;
            pair.ok_or_else(|| error(line, "a name and something more are wanted"))
        };
        Ok(Some(match (word, rest) {
            ("started", Some(rest)) => {
                let (version, program) = pair(rest)?;
                if version != format!("{VERSION}") {
                    return Err(error(line, other_version(VERSION)));
                }
                Message::Started(text(&program)?)
            }
            ("serving", Some(rest)) => Message::Serving(read_number(line, rest)?),
            ("task", Some(rest)) => Message::Task(read_task(line, rest)?),
            ("value", Some(rest)) => {
                let (name, number) = pair(rest)?;
                Message::Value { name: text(&name)?, number: read_number(line, &number)? }
            }
            ("sample", Some(rest)) => {
                let (name, number) = pair(rest)?;
                Message::Sample { name: text(&name)?, number: read_number(line, &number)? }
            }
            ("learned", Some(rest)) => {
                let (name, value) = pair(rest)?;
                Message::Learned { name: text(&name)?, value: text(&value)? }
            }
            ("refused", Some(rest)) => Message::Refused(text(rest)?),
            ("end", None) => Message::End,
            _ => return Err(error(line, UNKNOWN)),
        }))
    }
}

/// Reads the lines of a console in their order.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Before,
    Running,
    Over,
}

impl Reader {
    /// Reads the next line, without its end. `None`: it is prose.
    ///
    /// Errors: as for [`Message::read`]; the message comes at the wrong time.
    pub fn read(&mut self, line: &str) -> Result<Option<Message>, WireError> {
        let Some(message) = Message::read(line)? else { return Ok(None) };
        self.phase = match (self.phase, &message) {
            (Phase::Before, Message::Started(_)) => Phase::Running,
            (Phase::Before | Phase::Running, Message::Refused(_)) => Phase::Over,
            (Phase::Before, _) => {
                return Err(error(
                    line,
                    "\"@started\" has to come first; build program and image \
                                        from the same sources",
                ));
            }
            (Phase::Running, Message::Started(_)) => {
                return Err(error(line, "the program has started already"));
            }
            (Phase::Running, Message::End) => Phase::Over,
            (Phase::Running, _) => Phase::Running,
            (Phase::Over, _) => return Err(error(line, "there was a last message already")),
        };
        Ok(Some(message))
    }

    /// Whether the program has started and has not reported that it is done.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Whether the last message has come.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }
}

const UNKNOWN: &str = "there is no such message; build program and image from the same sources";

fn error(line: &str, why: impl Into<String>) -> WireError {
    WireError::new("result", At::Whole, line, why)
}

fn read_number(line: &str, text: &str) -> Result<u64, WireError> {
    number(text).ok_or_else(|| error(line, format!("\"{text}\" is no whole number")))
}

/// Reads what follows `@task`.
fn read_task(line: &str, text: &str) -> Result<Task, WireError> {
    let mut words = text.split(' ');
    let name = words.next().and_then(escape::unescape);
    let name = name.ok_or_else(|| error(line, "a name is wanted"))?;
    const KEYS: [&str; 7] =
        ["arrival", "first", "finish", "groups", "slept", "service", "dispatches"];
    let mut numbers = [None; KEYS.len()];
    for word in words {
        let (key, text) = word.split_once('=').unwrap_or((word, ""));
        let at = KEYS.iter().position(|known| *known == key);
        let at = at.ok_or_else(|| error(line, format!("\"{key}\" is no key of a task")))?;
        if numbers[at].replace(read_number(line, text)?).is_some() {
            return Err(error(line, format!("\"{key}\" is there twice")));
        }
    }
    let [arrival, first, finish, groups, slept, service, dispatches] = numbers;
    let told = |number: Option<u64>, key| {
        number.ok_or_else(|| error(line, format!("there is no \"{key}\"")))
    };
    Ok(Task {
        name,
        arrival: told(arrival, "arrival")?,
        first: told(first, "first")?,
        finish: told(finish, "finish")?,
        groups: told(groups, "groups")?,
        slept: told(slept, "slept")?,
        service,
        dispatches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// The lines spelled out by hand, so that both ends can be built at different times.
    #[test]
    fn lines_by_hand() {
        let task = Task {
            name: "a b".into(),
            arrival: 1,
            first: 2,
            finish: 30,
            groups: 4,
            ..Task::default()
        };
        let counted = Task { service: Some(6), dispatches: Some(7), ..task.clone() };
        let (name, value) = ("profile".to_string(), "1 2\n3".to_string());
        for (message, line) in [
            (Message::Started("yield".into()), "@started 1 yield"),
            (Message::Serving(2), "@serving 2"),
            (Message::Task(task), "@task a\\sb arrival=1 first=2 finish=30 groups=4 slept=0"),
            (
                Message::Task(counted),
                "@task a\\sb arrival=1 first=2 finish=30 groups=4 slept=0 service=6 dispatches=7",
            ),
            (Message::Value { name: "switches".into(), number: 9 }, "@value switches 9"),
            (Message::Sample { name: "latency".into(), number: 7 }, "@sample latency 7"),
            (Message::Learned { name, value }, "@learned profile 1 2\\n3"),
            (Message::Refused("no policy \"x\"".into()), "@refused no policy \"x\""),
            (Message::End, "@end"),
        ] {
            assert_eq!(message.to_string(), line);
            assert_eq!(Message::read(line), Ok(Some(message)));
        }
    }

    #[test]
    fn prose_means_nothing() {
        for prose in ["", "serving 2 sockets", "program yield", " @end", "[  0.1 axruntime] @end"] {
            assert_eq!(Message::read(prose), Ok(None));
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let task = "@task a arrival=1 first=1 finish=1 groups=1 slept=1";
        assert!(matches!(Message::read(task), Ok(Some(Message::Task(_)))));
        for wrong in [
            "@",
            "@end now",
            "@valve x 1",
            "@value x",
            "@value x y",
            "@value x -1",
            "@sample x",
            "@sample x y",
            "@learned x",
            "@learned x ",
            "@serving",
            "@serving all",
            "@refused",
            "@started 1",
            "@started yield",
            "@task",
            "@task a",
            "@task  arrival=1",
        ] {
            assert!(Message::read(wrong).is_err(), "{wrong}");
        }
        for (more, why) in [
            (" age=3", "\"age\" is no key of a task"),
            (" id=3", "\"id\" is no key of a task"),
            (" arrival=1", "\"arrival\" is there twice"),
            (" service=x", "\"x\" is no whole number"),
        ] {
            assert_eq!(Message::read(&format!("{task}{more}")).unwrap_err().why, why);
        }
        let error = Message::read(&task.replace(" slept=1", "")).unwrap_err();
        assert_eq!(error.why, "there is no \"slept\"");
    }

    #[test]
    fn messages_have_an_order() {
        let value = "@value x 1";
        for (lines, is_right) in [
            (&["prose", "@started 1 a", value, "@end", "prose"][..], true),
            (&["@refused x"], true),
            (&["@started 1 a", "@refused x"], true),
            (&[value], false),
            (&["@end"], false),
            (&["@started 1 a", "@started 1 a"], false),
            (&["@started 1 a", "@end", value], false),
            (&["@started 1 a", "@end", "@end"], false),
            (&["@refused x", "@started 1 a"], false),
        ] {
            let mut reader = Reader::default();
            let read = lines.iter().try_for_each(|line| reader.read(line).map(drop));
            assert_eq!(read.is_ok(), is_right, "{lines:?}");
            assert!(!is_right || reader.is_over());
        }
    }

    #[test]
    fn another_version_says_what_to_do() {
        let error = Message::read("@started 2 yield").unwrap_err().to_string();
        assert_eq!(
            error,
            "result: \"@started 2 yield\": this end reads version 1; build program and image from \
             the same sources"
        );
    }
}
