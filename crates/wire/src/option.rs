//! What a hypervisor is to start: an option of its command line.
//!
//! `anysched=`*policy*, then, each after a comma:
//!
//! | word | means |
//! |---|---|
//! | *name*`=`*value* | a parameter of the policy |
//! | `tick:`*ns* | the machine's tick, for policies that have none of their own |
//! | `checked` | the policy and its host are held to their contract |
//! | `record` | calls and answers are sent as a [log](crate::log) |
//! | `fault:`*kind*`@`*n* | for tests: goes wrong as *kind* says at pick *n* |
//!
//! A value is [escaped](mod@crate::escape) as one word, and a comma in it is `\u{2c}`. The CPUs
//! of a [`Start`] are not part of it: the hypervisor knows its own.

use crate::start::Start;
use crate::text::{TextFormat, number};
use crate::{At, WireError, escape};
use alloc::format;
use alloc::string::{String, ToString};

/// The most bytes: Xen's command line has 1024.
pub const LONGEST: usize = 768;

const FORMAT: TextFormat =
    TextFormat { name: "option `anysched`", magic: "", version: 1, longest: LONGEST };

/// What stands after `anysched=`.
///
/// Errors: a name is no word, or the text is too long.
pub fn write(start: &Start) -> Result<String, WireError> {
    let Start { policy, settings, tick, checked, record, fault, cpus: _ } = start;
    let mut text = FORMAT.name(policy, At::Field("policy"))?.to_string();
    for (name, value) in settings {
        let name = FORMAT.name(name, At::Field("parameter"))?;
        let value = format!("{}", escape::word(value)).replace(',', "\\u{2c}");
        text += &format!(",{name}={value}");
    }
    if let Some(tick) = tick {
        text += &format!(",tick:{tick}");
    }
    for (word, is_on) in [("checked", *checked), ("record", record.is_some())] {
        if is_on {
            text += &format!(",{word}");
        }
    }
    if let Some((kind, at)) = fault {
        text += &format!(",fault:{}@{at}", FORMAT.name(kind, At::Field("fault"))?);
    }
    FORMAT.end(text)
}

/// Reads what stands after `anysched=`. A log that is asked for may be as long as it gets.
///
/// Errors: no policy is named, or a word means nothing.
pub fn read(text: &str) -> Result<Start, WireError> {
    let mut words = text.split(',');
    let policy = words.next().unwrap_or_default();
    let policy = FORMAT.name(policy, At::Whole)?.to_string();
    let mut start = Start { policy, ..Start::default() };
    for word in words {
        let error = |why: &str| FORMAT.error(At::Whole, word, why);
        if let Some((name, value)) = word.split_once('=') {
            let value = escape::unescape(value).ok_or_else(|| error(VALUE))?;
            start.settings.push((FORMAT.name(name, At::Whole)?.into(), value));
        } else if let Some(tick) = word.strip_prefix("tick:") {
            let tick = number(tick).filter(|tick| *tick > 0);
            start.tick = Some(tick.ok_or_else(|| error("nanoseconds, 1 at least, are wanted"))?);
        } else if let Some(fault) = word.strip_prefix("fault:") {
            let pair = fault.split_once('@').and_then(|(kind, at)| Some((kind, number(at)?)));
            let (kind, at) = pair.ok_or_else(|| error("fault:KIND@PICK is wanted"))?;
            start.fault = Some((kind.into(), at));
        } else if word == "checked" {
            start.checked = true;
        } else if word == "record" {
            start.record = Some(crate::start::LARGEST_LOG);
        } else {
            return Err(error(WANTED));
        }
    }
    Ok(start)
}

const VALUE: &str = "NAME=VALUE is wanted; `\\-` is the empty value, and a comma in one is \\u{2c}";
const WANTED: &str = "NAME=VALUE, tick:NANOSECONDS, checked, record or fault:KIND@PICK is wanted";

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn full() -> Start {
        Start {
            policy: "credit".into(),
            settings: vec![("boost".into(), "true".into()), ("list".into(), "1 2,3".into())],
            tick: Some(1_000_000),
            checked: true,
            record: Some(crate::start::LARGEST_LOG),
            fault: Some(("panic".into(), 7)),
            cpus: vec![],
        }
    }

    #[test]
    fn a_text_by_hand() {
        let text = "credit,boost=true,list=1\\s2\\u{2c}3,tick:1000000,checked,record,fault:panic@7";
        assert_eq!(write(&full()).unwrap(), text);
        assert_eq!(read(text), Ok(full()));
        assert_eq!(read("rr"), Ok(Start { policy: "rr".into(), ..Start::default() }));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (wrong, why) in [
            ("", "a name is wanted"),
            ("rr,", "NAME=VALUE, tick:"),
            ("rr,quick", "NAME=VALUE, tick:"),
            ("rr,x=", "NAME=VALUE is wanted; "),
            ("rr,=1", "a name is wanted"),
            ("rr,tick:0", "nanoseconds, 1 at least"),
            ("rr,tick:1ms", "nanoseconds, 1 at least"),
            ("rr,fault:panic", "fault:KIND@PICK"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.why.starts_with(why), "{wrong}: {error}");
        }
        let long = Start { settings: vec![("x".into(), "v".repeat(LONGEST))], ..full() };
        assert_eq!(write(&long).unwrap_err().at, At::Whole);
        let wrong = Start { policy: "two words".into(), ..full() };
        assert_eq!(write(&wrong).unwrap_err().at, At::Field("policy"));
    }
}
