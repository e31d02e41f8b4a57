//! What a policy in a running kernel is to start with: the text that its module reads.
//!
//! | line | how often | means |
//! |---|---|---|
//! | `anysched-start 1` | the first line | the format and its version |
//! | `policy` *name* | once | the policy |
//! | `set` *name* *value* | | a parameter of the policy |
//! | `tick` *ns* | at most once | the machine's tick, for policies that have none of their own |
//! | `checked` | at most once | the policy and its host are held to their contract |
//! | `record` *bytes* | at most once | calls and answers are recorded into a buffer of this size |
//! | `fault` *kind* *n* | at most once | for tests: goes wrong as *kind* says at pick *n* |
//! | `cpu` *core* *llc* *package* *node* *capacity* | once for each CPU, in order | where it sits |
//!
//! Names and values are as in the [boot text](crate::boot).

use crate::text::{TextFormat, number};
use crate::{At, WireError, escape};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// The name of the firmware item.
pub const ITEM: &str = "opt/org.anysched/start";

/// The most bytes of the text.
pub const LONGEST: usize = 1 << 20;

/// The most CPUs.
pub const MOST_CPUS: usize = 1024;

/// The most bytes of a buffer for a log.
pub const LARGEST_LOG: u64 = 1 << 31;

const FORMAT: TextFormat =
    TextFormat { name: "start text", magic: "anysched-start", version: 1, longest: LONGEST };

/// What a kernel's module is to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The policy.
    pub policy: String,
    /// Its parameters, names and values.
    pub settings: Vec<(String, String)>,
    /// The machine's tick in nanoseconds, 1 at least.
    pub tick: Option<u64>,
    /// Whether the contract is enforced.
    pub checked: bool,
    /// The size of the buffer for the log in bytes, if calls and answers are recorded.
    pub record: Option<u64>,
    /// How to go wrong, and at which pick.
    pub fault: Option<(String, u64)>,
    /// Core, last-level cache, package, node and capacity (1 to 1024) of each CPU.
    pub cpus: Vec<[u16; 5]>,
}

impl Start {
    /// The text.
    ///
    /// Errors: a name is no word, a number is out of its range, or the text is too long.
    pub fn write(&self) -> Result<String, WireError> {
        let Start { policy, settings, tick, checked, record, fault, cpus } = self;
        let mut text = FORMAT.begin();
        let name = |text, field| FORMAT.name(text, At::Field(field));
        let _ = writeln!(text, "policy {}", name(policy, "policy")?);
        for (setting, value) in settings {
            let _ = writeln!(text, "set {} {}", name(setting, "parameter")?, escape::rest(value));
        }
        if let Some(tick) = tick {
            let tick = check(&format!("{tick}"), At::Field("tick"), 1, u64::MAX)?;
            let _ = writeln!(text, "tick {tick}");
        }
        if *checked {
            text.push_str("checked\n");
        }
        if let Some(bytes) = record {
            let bytes = check(&format!("{bytes}"), At::Field("record"), 1, LARGEST_LOG)?;
            let _ = writeln!(text, "record {bytes}");
        }
        if let Some((kind, at)) = fault {
            let _ = writeln!(text, "fault {} {at}", name(kind, "fault")?);
        }
        for [core, llc, package, node, capacity] in cpus {
            let _ = writeln!(text, "cpu {core} {llc} {package} {node} {capacity}");
        }
        FORMAT.end(text)
    }

    /// Reads a text.
    ///
    /// Errors: it is of another version, has a line that is meaningless or occurs twice, names no
    /// policy or no CPU, or is too long.
    pub fn read(text: &[u8]) -> Result<Start, WireError> {
        let start = Start::read_part(text)?;
        if start.cpus.is_empty() {
            return Err(FORMAT.missing("cpu"));
        }
        Ok(start)
    }

    /// Reads a text to which CPUs may have to be added.
    ///
    /// Errors: as [`Start::read`], but that CPUs are missing.
    pub fn read_part(text: &[u8]) -> Result<Start, WireError> {
        let mut start = Start::default();
        let mut policy = None;
        for (number, line) in FORMAT.lines(text)? {
            let at = At::Line(number);
            let (word, rest) = line.split_once(' ').map_or((line, None), |(w, r)| (w, Some(r)));
            let is_first = match (word, rest) {
                ("policy", Some(rest)) => policy.replace(FORMAT.name(rest, at)?).is_none(),
                ("set", Some(rest)) => {
                    start.settings.push(FORMAT.pair(rest, at)?);
                    true
                }
                ("tick", Some(rest)) => start.tick.replace(check(rest, at, 1, u64::MAX)?).is_none(),
                ("checked", None) => !core::mem::replace(&mut start.checked, true),
                ("record", Some(rest)) => {
                    start.record.replace(check(rest, at, 1, LARGEST_LOG)?).is_none()
                }
                ("fault", Some(rest)) => start.fault.replace(fault(rest, at)?).is_none(),
                ("cpu", Some(rest)) => {
                    start.cpus.push(cpu(rest, at)?);
                    start.cpus.len() <= MOST_CPUS
                }
                _ => return Err(FORMAT.error(at, line, WANTED)),
            };
            if !is_first {
                return Err(FORMAT.error(at, line, format!("\"{word}\" is there often enough")));
            }
        }
        start.policy = policy.ok_or_else(|| FORMAT.missing("policy"))?.into();
        Ok(start)
    }
}

const WANTED: &str = "policy NAME, set NAME VALUE, tick NANOSECONDS, checked, record BYTES, fault \
                      KIND N or cpu CORE LLC PACKAGE NODE CAPACITY is wanted";

fn check(text: &str, at: At, least: u64, most: u64) -> Result<u64, WireError> {
    let found = number(text).filter(|number| (least..=most).contains(number));
    let why = || format!("a whole number from {least} to {most} is wanted");
    found.ok_or_else(|| FORMAT.error(at, text, why()))
}

fn fault(text: &str, at: At) -> Result<(String, u64), WireError> {
    let pair = text.split_once(' ').ok_or_else(|| FORMAT.error(at, text, "KIND N is wanted"));
    let (kind, number) = pair?;
    Ok((FORMAT.name(kind, at)?.into(), check(number, at, 0, u64::MAX)?))
}

fn cpu(text: &str, at: At) -> Result<[u16; 5], WireError> {
    let mut words = text.split(' ');
    let mut cpu = [0; 5];
    for (place, number) in cpu.iter_mut().enumerate() {
        let (least, most) = if place == 4 { (1, 1024) } else { (0, u64::from(u16::MAX)) };
        *number = check(words.next().unwrap_or_default(), at, least, most)? as u16;
    }
    match words.next() {
        None => Ok(cpu),
        Some(word) => Err(FORMAT.error(at, word, "five numbers are wanted")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn full() -> Start {
        Start {
            policy: "gfs".into(),
            settings: vec![("groups".into(), "core".into()), ("x".into(), "a\nb".into())],
            tick: Some(4_000_000),
            checked: true,
            record: Some(65_536),
            fault: Some(("panic".into(), 300)),
            cpus: vec![[0, 0, 0, 0, 1024], [0, 0, 0, 0, 512]],
        }
    }

    const TEXT: &str = "anysched-start 1\npolicy gfs\nset groups core\nset x a\\nb\n\
                        tick 4000000\nchecked\nrecord 65536\nfault panic 300\n\
                        cpu 0 0 0 0 1024\ncpu 0 0 0 0 512\n";

    #[test]
    fn a_text_by_hand() {
        assert_eq!(full().write().unwrap(), TEXT);
        assert_eq!(Start::read(TEXT.as_bytes()), Ok(full()));
    }

    #[test]
    fn what_means_nothing_is_refused_with_its_line() {
        let text = |line: &str| format!("anysched-start 1\npolicy rr\ncpu 0 0 0 0 1\n{line}\n");
        for wrong in [
            "",
            "policy rr",
            "policy a b",
            "set x",
            "tick 0",
            "tick 4ms",
            "checked yes",
            "record 0",
            "record 4294967296",
            "fault panic",
            "fault panic x",
            "cpu 0 0 0 0",
            "cpu 0 0 0 0 0",
            "cpu 0 0 0 0 1025",
            "cpu 0 0 0 0 1 1",
            "cpu 0 0 65536 0 1",
            "heap 1",
        ] {
            let error = Start::read(text(wrong).as_bytes()).unwrap_err();
            assert_eq!(error.at, At::Line(4), "{wrong}");
        }
        for twice in ["tick 1", "checked", "record 1", "fault panic 1"] {
            let error = Start::read(text(&format!("{twice}\n{twice}")).as_bytes()).unwrap_err();
            assert_eq!(error.at, At::Line(5), "{twice}");
        }
        let many = "cpu 0 0 0 0 1\n".repeat(MOST_CPUS + 1);
        let error = Start::read(format!("anysched-start 1\npolicy rr\n{many}").as_bytes());
        assert_eq!(error.unwrap_err().at, At::Line(2 + MOST_CPUS + 1));
        for (missing, text) in [("cpu", "policy rr\n"), ("policy", "cpu 0 0 0 0 1\n")] {
            let error = Start::read(format!("anysched-start 1\n{text}").as_bytes()).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_written() {
        for (field, start) in [
            ("policy", Start { policy: "a b".into(), ..full() }),
            ("parameter", Start { settings: vec![("".into(), "".into())], ..full() }),
            ("tick", Start { tick: Some(0), ..full() }),
            ("record", Start { record: Some(LARGEST_LOG + 1), ..full() }),
            ("fault", Start { fault: Some(("a b".into(), 1)), ..full() }),
        ] {
            assert_eq!(start.write().unwrap_err().at, At::Field(field));
        }
    }
}
