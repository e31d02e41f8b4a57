//! Virtual machines: what a toolstack builds, and what runs in each.
//!
//! The first line is `anysched-domains 1`, the format and its version. For each machine there is a
//! line of words, and behind it, byte for byte, two texts: its own scheduler, as
//! [`start`](crate::start) has it, and its tasks, as a [`script`](crate::script).
//!
//! | word | how often | means |
//! |---|---|---|
//! | *name* | the first | what it is called |
//! | `vcpus=`*n* | once | how many CPUs it has, 1 at least |
//! | `weight=`*n* | once | its weight, of 256 |
//! | `cap=`*n* | once | its cap in percent of a CPU; 0: none |
//! | `period=`*ns*`:`*ns* | at most once | a period, and how much of it each of its CPUs gets |
//! | `cpus=`*n*,… | at most once | masks of CPUs of the host, one for each of its own |
//! | `begin=`*ns* | once | when it begins, from the start of the run |
//! | `stop=`*ns* | at most once | when it ends, whatever is left to do, likewise |
//! | `start=`*n* | once | bytes of the first text |
//! | `script=`*n* | once | bytes of the second text |

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
    /// When it begins, in nanoseconds from the start of the run.
    pub begin: u64,
    /// When it ends, whatever is left to do, likewise.
    pub stop: Option<u64>,
}

/// A virtual machine, and the texts of its scheduler and its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The machine.
    pub domain: Domain,
    /// Its own scheduler, a [start text](crate::start).
    pub start: String,
    /// Its tasks, a [`script`](crate::script); empty: there are none.
    pub script: String,
}

/// The same, as it is read: the texts as one, which a machine takes apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// The machine.
    pub domain: Domain,
    /// The text of its scheduler, and behind it that of its tasks.
    pub texts: &'a str,
    /// Bytes of the first.
    pub start: usize,
}

/// The text.
///
/// Errors: it is too long.
pub fn write(domains: &[Described]) -> Result<String, WireError> {
    let mut text = FORMAT.begin();
    for Described { domain, start, script } in domains {
        let Domain { name, vcpus, weight, cap, period, cpus, begin, stop } = domain;
        let _ = write!(text, "{} vcpus={vcpus} weight={weight} cap={cap}", escape::word(name));
        if let Some((period, budget)) = period {
            let _ = write!(text, " period={period}:{budget}");
        }
        for (place, mask) in cpus.iter().enumerate() {
            let _ = write!(text, "{}{mask}", if place == 0 { " cpus=" } else { "," });
        }
        let _ = write!(text, " begin={begin}");
        if let Some(stop) = stop {
            let _ = write!(text, " stop={stop}");
        }
        let _ = writeln!(text, " start={} script={}", start.len(), script.len());
        text.push_str(start);
        text.push_str(script);
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
        let (domain, start, script) = read_line(line, at)?;
        let (texts, behind) = behind.split_at_checked(start + script).ok_or_else(cut)?;
        domains.push(Read { domain, texts, start });
        rest = behind;
    }
    Ok(domains)
}

/// The words of a machine, and the lengths of its texts.
fn read_line(line: &str, at: At) -> Result<(Domain, usize, usize), WireError> {
    let wrong = |word: &str, why: &str| FORMAT.error(at, word, why);
    let mut words = line.split(' ');
    let name = words.next().and_then(escape::unescape);
    let name = name.ok_or_else(|| wrong(line, "a name is wanted"))?;
    let mut domain = Domain { name, ..Domain::default() };
    let (mut known, mut start, mut script) = (Vec::new(), None, None);
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
            "begin" => domain.begin = whole(value)?,
            "stop" => domain.stop = Some(whole(value)?),
            "start" => start = Some(length(whole(value)?)?),
            "script" => script = Some(length(whole(value)?)?),
            _ => return Err(wrong(word, "there is no such word")),
        }
    }
    match (start, script) {
        _ if domain.vcpus == 0 => Err(wrong(line, "a machine has a CPU at least: `vcpus`")),
        (Some(start), Some(script)) => Ok((domain, start, script)),
        _ => Err(wrong(line, "`start` and `script`, lengths of the texts, are wanted")),
    }
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
            begin: 3,
            stop: Some(9),
        };
        let other = Domain { name: "c".into(), vcpus: 1, weight: 256, ..Domain::default() };
        [
            Described { domain: one, start: "x\n".into(), script: "y 1\nz\n".into() },
            Described { domain: other, start: String::new(), script: String::new() },
        ]
    }

    /// The text spelled out by hand, so that both ends can be built at different times.
    const TEXT: &str = "anysched-domains 1\n\
        a\\sb vcpus=2 weight=512 cap=50 period=100:20 cpus=1,2 begin=3 stop=9 start=2 script=6\n\
        x\ny 1\nz\nc vcpus=1 weight=256 cap=0 begin=0 start=0 script=0\n";

    #[test]
    fn a_text_by_hand() {
        let two = two();
        assert_eq!(write(&two).unwrap(), TEXT);
        let read = read(TEXT.as_bytes()).unwrap();
        for (read, written) in read.iter().zip(&two) {
            assert_eq!((&read.domain, read.start), (&written.domain, written.start.len()));
            assert_eq!(read.texts, format!("{}{}", written.start, written.script));
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
            " vcpus=1 start=0 script=0",
        ] {
            assert!(read(text(wrong).as_bytes()).is_err(), "{wrong}");
        }
        assert!(read(b"anysched-domains 2\n").is_err());
        assert!(read(&TEXT.as_bytes()[..TEXT.len() - 1]).is_err(), "cut off");
    }
}
