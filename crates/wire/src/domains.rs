//! Virtual machines: what a toolstack builds, and what runs in each.
//!
//! The first line is `anysched-domains 1`, the format and its version. For each machine there is a
//! line of words, and behind it, byte for byte, three texts: its own scheduler, as
//! [`start`](crate::start) has it, its tasks, as a [`script`](crate::script), and messages from
//! outside, as [`mail`](crate::mail).
//!
//! | word | how often | means |
//! |---|---|---|
//! | *name* | the first | what it is called |
//! | `vcpus=`*n* | once | how many CPUs it has, 1 at least |
//! | `weight=`*n* | once | its weight, of 256 |
//! | `cap=`*n* | once | its cap in percent of a CPU; 0: none |
//! | `period=`*ns*`:`*ns* | at most once | a period, and how much of it each of its CPUs gets |
//! | `cpus=`*n*,… | at most once | masks of CPUs of the host, one for each of its own |
//! | `preferred=`*n*,… | at most once | likewise, those that it prefers |
//! | `begin=`*ns* | once | when it begins, from the start of the run |
//! | `stop=`*ns* | at most once | when it ends, whatever is left to do, likewise |
//! | `ports=`*n*`:`*n*`:`*ns*,… | at most once | where its ports lead: a machine by its position, a channel there, and how long messages take |
//! | `start=`*n* | once | bytes of the first text |
//! | `script=`*n* | once | bytes of the second text |
//! | `mail=`*n* | at most once | bytes of the third text |

use crate::text::{TextFormat, number};
use crate::{At, WireError, escape};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// The most bytes of the text.
pub const LONGEST: usize = 64 << 20;

const FORMAT: TextFormat =
    TextFormat { name: "domains", magic: "anysched-domains", version: 1, longest: LONGEST };

/// A virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// What it is called.
    pub name: String,
    /// How many CPUs it has, 1 at least.
    pub vcpus: u32,
    /// Its weight, of 256.
    pub weight: u16,
    /// Its cap in percent of a CPU; 0: none.
    pub cap: u16,
    /// Nanoseconds: a period, and how much of it each of its CPUs gets.
    pub period: Option<(u64, u64)>,
    /// Masks of CPUs of the host, one for each of its own; empty: all.
    pub cpus: Vec<u64>,
    /// Masks of those that it prefers, one for each of its own; empty: all are alike.
    pub preferred: Vec<u64>,
    /// When it begins, in nanoseconds from the start of the run.
    pub begin: u64,
    /// When it ends, whatever is left to do, likewise.
    pub stop: Option<u64>,
    /// Where its ports lead.
    pub ports: Vec<Way>,
}

/// Where messages go that a machine sends by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// To which machine, by its position; to none, if there is no such machine.
    pub machine: u32,
    /// To which channel of it.
    pub channel: u32,
    /// How long they take, in nanoseconds.
    pub delay: u64,
}

/// A virtual machine, and the texts of its scheduler, its tasks and its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The machine.
    pub domain: Domain,
    /// Its own scheduler, a [start text](crate::start).
    pub start: String,
    /// Its tasks, a [`script`](crate::script); empty: there are none.
    pub script: String,
    /// Messages that come to it from outside, as [`mail`](crate::mail) has them.
    pub mail: String,
}

/// The same, as it is read: the texts as one, which a machine takes apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// The machine.
    pub domain: Domain,
    /// The text of its scheduler, behind it that of its tasks, and behind that its messages.
    pub texts: &'a str,
    /// Bytes of the first.
    pub start: usize,
    /// Bytes of the second.
    pub script: usize,
}

impl<'a> Read<'a> {
    /// The messages that come to it.
    pub fn mail(&self) -> &'a str {
        &self.texts[self.start + self.script..]
    }
}

/// The text.
///
/// Errors: it is too long.
pub fn write(domains: &[Described]) -> Result<String, WireError> {
    let mut text = FORMAT.begin();
    for Described { domain, start, script, mail } in domains {
        let Domain { name, vcpus, weight, cap, period, cpus, preferred, begin, stop, ports } =
            domain;
        let _ = write!(text, "{} vcpus={vcpus} weight={weight} cap={cap}", escape::word(name));
        if let Some((period, budget)) = period {
            let _ = write!(text, " period={period}:{budget}");
        }
        for (key, masks) in [(" cpus=", cpus), (" preferred=", preferred)] {
            for (place, mask) in masks.iter().enumerate() {
                let _ = write!(text, "{}{mask}", if place == 0 { key } else { "," });
            }
        }
        let _ = write!(text, " begin={begin}");
        if let Some(stop) = stop {
            let _ = write!(text, " stop={stop}");
        }
        for (place, Way { machine, channel, delay }) in ports.iter().enumerate() {
            let before = if place == 0 { " ports=" } else { "," };
            let _ = write!(text, "{before}{machine}:{channel}:{delay}");
        }
        let _ = write!(text, " start={} script={}", start.len(), script.len());
        if !mail.is_empty() {
            let _ = write!(text, " mail={}", mail.len());
        }
        text.push('\n');
        for part in [start, script, mail] {
            text.push_str(part);
        }
    }
    FORMAT.end(text)
}

/// Reads a text. The texts in it are not looked into.
///
/// Errors: it is of another version, cut off, or has a word that is meaningless.
pub fn read(bytes: &[u8]) -> Result<Vec<Read<'_>>, WireError> {
    let text = FORMAT.text(bytes)?;
    let (_, mut rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut domains = Vec::new();
    while !rest.is_empty() {
        let at = At::Byte(text.len() - rest.len());
        let cut = || FORMAT.error(at, "", "the text is cut off");
        let (line, behind) = rest.split_once('\n').ok_or_else(cut)?;
        let (domain, [start, script, mail]) = read_line(line, at)?;
        let length = start + script + mail;
        let (texts, behind) = behind.split_at_checked(length).ok_or_else(cut)?;
        if !texts.is_char_boundary(start) || !texts.is_char_boundary(start + script) {
            return Err(FORMAT.error(at, line, "a text ends within a character"));
        }
        domains.push(Read { domain, texts, start, script });
        rest = behind;
    }
    Ok(domains)
}

/// The words of a machine, and the lengths of its texts.
fn read_line(line: &str, at: At) -> Result<(Domain, [usize; 3]), WireError> {
    let wrong = |word: &str, why: &str| FORMAT.error(at, word, why);
    let mut words = line.split(' ');
    let name = words.next().and_then(escape::unescape);
    let name = name.ok_or_else(|| wrong(line, "a name is wanted"))?;
    let mut domain = Domain { name, ..Domain::default() };
    let (mut known, mut start, mut script, mut mail) = (Vec::new(), None, None, 0);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let whole = |text: &str| number(text).ok_or_else(|| wrong(word, "whole numbers"));
        let length = |number: u64| match usize::try_from(number) {
            Ok(length) if length <= LONGEST => Ok(length),
            _ => Err(wrong(word, "this is too long")),
        };
        let small =
            |text: &str| u16::try_from(whole(text)?).map_err(|_| wrong(word, "65535 is the most"));
        if known.contains(&key) {
            return Err(wrong(word, "this is there already"));
        }
        known.push(key);
        match key {
            "vcpus" => domain.vcpus = small(value)?.into(),
            "weight" => domain.weight = small(value)?,
            "cap" => domain.cap = small(value)?,
            "period" => {
                let (period, budget) = value.split_once(':').unwrap_or((value, ""));
                domain.period = Some((whole(period)?, whole(budget)?));
            }
            "cpus" => domain.cpus = value.split(',').map(whole).collect::<Result<_, _>>()?,
            "preferred" => {
                domain.preferred = value.split(',').map(whole).collect::<Result<_, _>>()?;
            }
            "begin" => domain.begin = whole(value)?,
            "stop" => domain.stop = Some(whole(value)?),
            "ports" => {
                let way = |text: &str| {
                    read_way(text).ok_or_else(|| wrong(word, "machine:channel:delay are wanted"))
                };
                domain.ports = value.split(',').map(way).collect::<Result<_, _>>()?;
            }
            "start" => start = Some(length(whole(value)?)?),
            "script" => script = Some(length(whole(value)?)?),
            "mail" => mail = length(whole(value)?)?,
            _ => return Err(wrong(word, "there is no such word")),
        }
    }
    match (start, script) {
        _ if domain.vcpus == 0 => Err(wrong(line, "a machine has a CPU at least: `vcpus`")),
        (Some(start), Some(script)) => Ok((domain, [start, script, mail])),
        _ => Err(wrong(line, "`start` and `script`, lengths of the texts, are wanted")),
    }
}

fn read_way(text: &str) -> Option<Way> {
    let mut parts = text.split(':');
    let mut part = || number(parts.next()?);
    let (machine, channel, delay) = (part()?, part()?, part()?);
    let small = |number: u64| u32::try_from(number).ok();
    let way = Way { machine: small(machine)?, channel: small(channel)?, delay };
    parts.next().is_none().then_some(way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn two() -> [Described; 2] {
        let one = Domain {
            name: "a b".into(),
            vcpus: 2,
            weight: 512,
            cap: 50,
            period: Some((100, 20)),
            cpus: alloc::vec![1, 2],
            preferred: alloc::vec![3, 4],
            begin: 3,
            stop: Some(9),
            ports: alloc::vec![
                Way { machine: 1, channel: 0, delay: 50 },
                Way { machine: 0, channel: 2, delay: 0 },
            ],
        };
        let other = Domain { name: "c".into(), vcpus: 1, weight: 256, ..Domain::default() };
        [
            Described {
                domain: one,
                start: "x\n".into(),
                script: "y 1\nz\n".into(),
                mail: "m\n".into(),
            },
            Described { domain: other, ..Described::default() },
        ]
    }

    /// The text spelled out by hand, so that both ends can be built at different times.
    const TEXT: &str = "anysched-domains 1\n\
        a\\sb vcpus=2 weight=512 cap=50 period=100:20 cpus=1,2 preferred=3,4 begin=3 stop=9 \
        ports=1:0:50,0:2:0 start=2 script=6 mail=2\nx\ny 1\nz\nm\n\
        c vcpus=1 weight=256 cap=0 begin=0 start=0 script=0\n";

    #[test]
    fn a_text_by_hand() {
        let two = two();
        assert_eq!(write(&two).unwrap(), TEXT);
        let read = read(TEXT.as_bytes()).unwrap();
        for (read, written) in read.iter().zip(&two) {
            assert_eq!((&read.domain, read.start), (&written.domain, written.start.len()));
            let Described { start, script, mail, .. } = written;
            assert_eq!(read.texts, format!("{start}{script}{mail}"));
            assert_eq!((read.script, read.mail()), (script.len(), mail.as_str()));
        }
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let text = |line: &str| format!("anysched-domains 1\n{line}\n");
        assert!(read(text("a vcpus=1 start=0 script=0").as_bytes()).is_ok());
        for wrong in [
            "a vcpus=0 start=0 script=0",
            "a vcpus=1 start=0",
            "a vcpus=1 start=1 script=0",
            "a vcpus=1 start=0 script=0 weight=70000",
            "a vcpus=1 vcpus=1 start=0 script=0",
            "a vcpus=1 start=0 script=0 cpus=",
            "a vcpus=1 start=0 script=0 age=3",
            "a vcpus=1 start=0 script=0 ports=",
            "a vcpus=1 start=0 script=0 ports=1:2",
            "a vcpus=1 start=0 script=0 ports=1:2:3:4",
            "a vcpus=1 start=0 script=0 ports=4294967296:0:0",
            "a vcpus=1 start=0 script=0 mail=1",
            "a vcpus=1 start=1 script=1 mail=1\n\u{e4}",
            " vcpus=1 start=0 script=0",
        ] {
            assert!(read(text(wrong).as_bytes()).is_err(), "{wrong}");
        }
        assert!(read(b"anysched-domains 2\n").is_err());
        assert!(read(&TEXT.as_bytes()[..TEXT.len() - 1]).is_err(), "cut off");
    }
}
