//! Messages that come to a machine from outside, and what whoever takes them does about each.
//!
//! The first line is `anysched-mail 1`, the format and its version. Each other line is a message,
//! in order of arrival, as words separated by single spaces: when it arrives and when it was sent,
//! in nanoseconds from the start of the machine, the channel to which it comes, and a word for each
//! step, as a [`script`](crate::script) has them. The task that takes the message does these before
//! its own next step.

use crate::script::{HIGHEST, LATEST, Limits, Step};
use crate::text::{TextFormat, number};
use crate::{At, WireError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// The most bytes of the text.
pub const LONGEST: usize = 16 << 20;

const FORMAT: TextFormat =
    TextFormat { name: "mail", magic: "anysched-mail", version: 1, longest: LONGEST };

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// When it arrives, in nanoseconds from the start of the machine.
    pub arrives: u64,
    /// When it was sent, likewise; not after that.
    pub sent: u64,
    /// The channel to which it comes.
    pub channel: u32,
    /// What whoever takes it does about it.
    pub steps: Vec<Step>,
}

/// The text; empty, if there are no messages.
///
/// Errors: a limit of a [`script`](crate::script) is exceeded, or messages are not in order.
pub fn write(messages: &[Message]) -> Result<String, WireError> {
    if messages.is_empty() {
        return Ok(String::new());
    }
    let (mut order, mut limits, mut text) = (Order::default(), Limits::default(), FORMAT.begin());
    for (index, message) in messages.iter().enumerate() {
        // The line that it will be on.
        let at = At::Line(index + 2);
        order.check(message, at)?;
        limits.steps(&message.steps, 0, at)?;
        let Message { arrives, sent, channel, steps } = message;
        let _ = write!(text, "{arrives} {sent} {channel}");
        for step in steps {
            let _ = write!(text, " {step}");
        }
        text.push('\n');
    }
    FORMAT.end(text)
}

/// Reads a text; the empty one has no messages.
///
/// Errors: as for [`write()`]; it is of another version, or a word is meaningless.
pub fn read(text: &[u8]) -> Result<Vec<Message>, WireError> {
    let mut messages = Vec::new();
    let mut limits = Limits::default();
    read_lines(text, &mut |message, words, at| {
        let steps = limits.read_steps(words, at)?;
        messages.push(Message { steps, ..message });
        Ok(())
    })?;
    Ok(messages)
}

/// The same without steps, for who only passes messages on.
///
/// Errors: as for [`read`], but steps are not looked at.
pub fn read_envelopes(text: &[u8], take: &mut dyn FnMut(Message)) -> Result<(), WireError> {
    read_lines(text, &mut |message, _, _| {
        take(message);
        Ok(())
    })
}

/// What is done with the words of a message behind those that say where it goes.
type WithSteps<'a> =
    &'a mut dyn FnMut(Message, &mut dyn Iterator<Item = &str>, At) -> Result<(), WireError>;

fn read_lines(text: &[u8], with_steps: WithSteps<'_>) -> Result<(), WireError> {
    if text.is_empty() {
        return Ok(());
    }
    let mut order = Order::default();
    for (line_number, line) in FORMAT.lines(text)? {
        let at = At::Line(line_number);
        let mut words = line.split(' ');
        let mut next = |what: &str| {
            let word = words.next().unwrap_or_default();
            number(word).ok_or_else(|| FORMAT.error(at, word, format!("{what} is wanted")))
        };
        let arrives = next("an arrival in nanoseconds")?;
        let sent = next("the time of sending in nanoseconds")?;
        let channel = next("a channel")?;
        let channel = u32::try_from(channel).unwrap_or(u32::MAX);
        let message = Message { arrives, sent, channel, steps: Vec::new() };
        order.check(&message, at)?;
        with_steps(message, &mut words, at)?;
    }
    Ok(())
}

/// What holds of messages in their order.
#[derive(Default)]
struct Order {
    last: u64,
}

impl Order {
    fn check(&mut self, message: &Message, at: At) -> Result<(), WireError> {
        let Message { arrives, sent, channel, .. } = *message;
        let error = |value: u64, why: String| Err(FORMAT.error(at, &format!("{value}"), why));
        if arrives > LATEST {
            return error(arrives, format!("an arrival is at most {LATEST} ns"));
        }
        if arrives < core::mem::replace(&mut self.last, arrives) {
            let why = "this message comes before the one above: order them by arrival";
            return error(arrives, why.into());
        }
        if sent > arrives {
            return error(sent, "it would arrive before it is sent".into());
        }
        if channel > HIGHEST {
            return error(channel.into(), format!("channels have numbers up to {HIGHEST}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// The text spelled out by hand, so that both ends can be built at different times.
    #[test]
    fn a_text_by_hand() {
        let text = "anysched-mail 1\n60 10 0 c5 q50\n60 60 2\n";
        let steps = vec![Step::Compute(5), Step::Reply(50)];
        let messages = [
            Message { arrives: 60, sent: 10, channel: 0, steps },
            Message { arrives: 60, sent: 60, channel: 2, steps: vec![] },
        ];
        assert_eq!(write(&messages).unwrap(), text);
        assert_eq!(read(text.as_bytes()).unwrap(), messages);
        let mut envelopes = Vec::new();
        read_envelopes(text.as_bytes(), &mut |message| envelopes.push(message)).unwrap();
        let bare = messages.map(|message| Message { steps: vec![], ..message });
        assert_eq!(envelopes, bare);
        assert_eq!((write(&[]).unwrap().as_str(), read(b"").unwrap()), ("", vec![]));
    }

    #[test]
    fn what_means_nothing_is_refused_with_its_line() {
        for (line, why) in [
            ("", "an arrival in nanoseconds is wanted"),
            ("7", "the time of sending in nanoseconds is wanted"),
            ("7 7", "a channel is wanted"),
            ("7 8 0", "it would arrive before it is sent"),
            ("4 4 0", "order them by arrival"),
            ("7 7 16777216", "up to 16777215"),
            ("10000000000000001 7 0", "at most 10000000000000000 ns"),
            ("7 7 0 z1", "a step is wanted"),
            ("7 7 0 r2 y", "no end"),
        ] {
            let error = read(format!("anysched-mail 1\n5 5 0\n{line}\n").as_bytes()).unwrap_err();
            assert!(error.at == At::Line(3) && error.why.contains(why), "{line}: {error}");
        }
        let late = Message { arrives: 5, sent: 6, ..Message::default() };
        assert!(write(&[late]).unwrap_err().why.contains("before it is sent"));
        assert!(read(b"anysched-mail 1\n5 5 0").is_err(), "cut off");
    }
}
