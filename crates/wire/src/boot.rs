//! What to run: the text that a kernel reads when it boots.
//!
//! | line | how often | means |
//! |---|---|---|
//! | `anysched-boot 1` | the first line | the format and its version |
//! | `policy` *name* | once | the policy, or the kernel's own scheduler |
//! | `set` *name* *value* | | a parameter of the policy |
//! | `tick` *ns* | at most once | the machine's tick, for policies that have none of their own |
//! | `record` | at most once | the policy's calls and answers are sent as a [log](crate::log) |
//! | `events` | at most once | the kernel's own scheduling events are sent, too |
//! | `timed` | at most once | the time that the policy's calls take is measured |
//! | `program` *name* | once | the program |
//! | `with` *name* *value* | | an argument of the program; the last of a name counts |
//!
//! A name is a word without white space, control characters or backslashes, of [`LONGEST_NAME`]
//! bytes at most. A value is the rest of the line, [escaped](mod@crate::escape): it may be
//! anything. The kernel [refuses](crate::result) to run a text with any other line.

use crate::text::{self, TextFormat, number};
use crate::{At, WireError, escape};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

/// The name of the firmware item.
pub const ITEM: &str = "opt/org.anysched/boot";

/// The name of the item that says where in the kernel's machine the policy runs, where it has a
/// choice: `module` or `agent`.
pub const PLACE: &str = "opt/org.anysched/in";

/// The most bytes of the text.
pub const LONGEST: usize = 1 << 20;

/// The most bytes of a name.
pub const LONGEST_NAME: usize = text::LONGEST_NAME;

const FORMAT: TextFormat =
    TextFormat { name: "boot text", magic: "anysched-boot", version: 1, longest: LONGEST };

/// What a kernel is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// The policy, or the kernel's own scheduler.
    pub policy: String,
    /// The policy's parameters, names and values.
    pub settings: Vec<(String, String)>,
    /// The machine's tick in nanoseconds, 1 at least.
    pub tick: Option<u64>,
    /// Whether the policy's calls and answers are recorded.
    pub record: bool,
    /// Whether the kernel's own scheduling events are sent, by kernels that record them.
    pub events: bool,
    /// Whether the time that the policy's calls take is measured.
    pub timed: bool,
    /// The program.
    pub program: String,
    /// The program's arguments, names and values.
    pub arguments: Vec<(String, String)>,
}

impl Boot {
    /// The argument `name` of the program.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let found = self.arguments.iter().rev().find(|(argument, _)| argument == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The text.
    ///
    /// Errors: a name is invalid, the tick is 0, or the text is too long.
    pub fn write(&self) -> Result<String, WireError> {
        let Boot { policy, settings, tick, record, events, timed, program, arguments } = self;
        let mut text = FORMAT.begin();
        let name = |text, field| FORMAT.name(text, At::Field(field));
        let _ = writeln!(text, "policy {}", name(policy, "policy")?);
        for (setting, value) in settings {
            let _ = writeln!(text, "set {} {}", name(setting, "parameter")?, escape::rest(value));
        }
        if let Some(tick) = tick {
            check_tick(&tick.to_string(), At::Field("tick"))?;
            let _ = writeln!(text, "tick {tick}");
        }
        for (switch, is_on) in [("record", record), ("events", events), ("timed", timed)] {
            if *is_on {
                let _ = writeln!(text, "{switch}");
            }
        }
        let _ = writeln!(text, "program {}", name(program, "program")?);
        for (argument, value) in arguments {
            let _ = writeln!(text, "with {} {}", name(argument, "argument")?, escape::rest(value));
        }
        FORMAT.end(text)
    }

    /// Reads a text.
    ///
    /// Errors: it is of another version, has a line that is meaningless or occurs twice, names no
    /// policy or no program, or is too long.
    pub fn read(text: &[u8]) -> Result<Boot, WireError> {
        let (mut policy, mut program) = (None, None);
        let mut boot = Boot::default();
        for (number, line) in FORMAT.lines(text)? {
            let at = At::Line(number);
            let (word, rest) = line.split_once(' ').map_or((line, None), |(w, r)| (w, Some(r)));
            let is_first = match (word, rest) {
                ("policy", Some(rest)) => policy.replace(FORMAT.name(rest, at)?).is_none(),
                ("program", Some(rest)) => program.replace(FORMAT.name(rest, at)?).is_none(),
                ("set", Some(rest)) => {
                    boot.settings.push(FORMAT.pair(rest, at)?);
                    true
                }
                ("with", Some(rest)) => {
                    boot.arguments.push(FORMAT.pair(rest, at)?);
                    true
                }
                ("tick", Some(rest)) => boot.tick.replace(check_tick(rest, at)?).is_none(),
                ("record", None) => !core::mem::replace(&mut boot.record, true),
                ("events", None) => !core::mem::replace(&mut boot.events, true),
                ("timed", None) => !core::mem::replace(&mut boot.timed, true),
                _ => return Err(FORMAT.error(at, line, WANTED)),
            };
            if !is_first {
                return Err(FORMAT.error(at, line, format!("\"{word}\" is there already")));
            }
        }
        boot.policy = policy.ok_or_else(|| FORMAT.missing("policy"))?.into();
        boot.program = program.ok_or_else(|| FORMAT.missing("program"))?.into();
        Ok(boot)
    }
}

const WANTED: &str = "policy NAME, set NAME VALUE, tick NANOSECONDS, record, events, timed, \
                      program NAME or with NAME VALUE is wanted";

fn check_tick(text: &str, at: At) -> Result<u64, WireError> {
    let tick = number(text).filter(|tick| *tick > 0);
    tick.ok_or_else(|| FORMAT.error(at, text, "nanoseconds, 1 at least, are wanted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    fn full() -> Boot {
        Boot {
            policy: "pbg".into(),
            settings: owned(&[("profile", "0: 1 2; 3\n4"), ("phase", "")]),
            tick: Some(1_000_000),
            record: true,
            events: true,
            timed: true,
            program: "yield".into(),
            arguments: owned(&[("scale", "10"), ("scale", " 2 ")]),
        }
    }

    /// The text spelled out by hand, so that both ends can be built at different times.
    const TEXT: &str = "anysched-boot 1\npolicy pbg\nset profile 0: 1 2; 3\\n4\nset phase \\-\n\
                        tick 1000000\nrecord\nevents\ntimed\nprogram yield\n\
                        with scale 10\nwith scale  2 \n";

    #[test]
    fn a_text_by_hand() {
        assert_eq!(full().write().unwrap(), TEXT);
        assert_eq!(Boot::read(TEXT.as_bytes()), Ok(full()));
        assert_eq!(full().argument("scale"), Some(" 2 "));
        assert_eq!(full().argument("hold"), None);
    }

    #[test]
    fn what_is_no_name_cannot_be_written() {
        for wrong in ["", "a b", "a\nb", "a\\b", "\u{7f}", &"n".repeat(LONGEST_NAME + 1)] {
            for (field, boot) in [
                ("policy", Boot { policy: wrong.into(), ..full() }),
                ("program", Boot { program: wrong.into(), ..full() }),
                ("parameter", Boot { settings: owned(&[(wrong, "1")]), ..full() }),
                ("argument", Boot { arguments: owned(&[(wrong, "1")]), ..full() }),
            ] {
                assert_eq!(boot.write().unwrap_err().at, At::Field(field), "{wrong:?}");
            }
        }
        let error = Boot { tick: Some(0), ..full() }.write().unwrap_err();
        assert_eq!(
            error.to_string(),
            "boot text, tick: \"0\": nanoseconds, 1 at least, are wanted"
        );
        let long = Boot { settings: owned(&[("x", &"v".repeat(LONGEST))]), ..full() };
        assert_eq!(long.write().unwrap_err().at, At::Whole);
    }

    #[test]
    fn what_means_nothing_is_refused_with_its_line() {
        let text = |lines: &str| format!("anysched-boot 1\npolicy rr\nprogram yield\n{lines}");
        for wrong in [
            "base 10ms",
            "tick 10ms",
            "tick 0",
            "tick +1",
            "tick",
            "record on",
            "set",
            "set x",
            "set x ",
            "set  x",
            "with x \\q",
            "app yield",
            "policy rr",
            "program",
            " record",
            "",
        ] {
            let error = Boot::read(text(&format!("{wrong}\n")).as_bytes()).unwrap_err();
            assert_eq!(error.at, At::Line(4), "{wrong}");
        }
        for twice in ["tick 1", "record", "events", "timed"] {
            let error = Boot::read(text(&format!("{twice}\n{twice}\n")).as_bytes()).unwrap_err();
            assert_eq!(error.at, At::Line(5), "{twice}");
        }
        let error = Boot::read(text("record").as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "boot text, line 4: \"record\": the line has no end: the text is cut off"
        );
        let error = Boot::read(b"anysched-boot 1\npolicy rr\n").unwrap_err().to_string();
        assert_eq!(error, "boot text: \"\": there is no line \"program\"");
    }

    #[test]
    fn another_version_says_what_to_do() {
        let error = Boot::read(b"anysched-boot 2\nfuture\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "boot text, line 1: \"anysched-boot 2\": this end reads version 1; build program and \
             image from the same sources"
        );
        for wrong in [&b""[..], b"policy rr\n", b"anysched-boot\n", b"anysched-boot x\n", b"\xff"] {
            let error = Boot::read(wrong).unwrap_err();
            assert!(matches!(error.at, At::Line(1) | At::Byte(0)), "{error}");
        }
    }
}
