//! Recordings by systrace, and by whatever wraps the kernel's text as it does: JSON of Chrome's
//! trace viewer, where the text is the value of `systemTraceEvents`, or a page of HTML with the
//! text in elements `<script class="trace-data">` or, as first it was, in a variable of a script.
//!
//! The wrapping is taken off while the text is read; what it is then is ftrace's.

use super::ftrace::{Recording, Replaying, times};
use super::input::{Lines, open};
use super::{
    ImportError, Imported, Importer, Input, ReadError, ReadTimes, Window, json_text, text,
};
use crate::kinds::{FileName, keys};
use std::io::{self, BufRead, BufReader, Read};

keys! {
    /// The keys of a load that is a recording by systrace.
    pub struct Systrace {
        ..replaying: Replaying;
        /// The recording, plain or packed.
        file: FileName = needed, eg "trace.json";
    }
}

impl Importer for Systrace {
    const FORMAT: &'static str = "systrace";
    const ENDINGS: &'static [&'static str] = &[".json", ".html"];
    const TIMES: Option<ReadTimes> = Some(|input, _| times(read(input, Window::default())?));

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        if let Some(text) = json_text(start) {
            return text.contains("\"systemTraceEvents\"") || text.contains("\"traceEvents\"");
        }
        is_page(start)
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(self.replaying.load(&read(input, self.replaying.window())?))
    }
}

/// A page of HTML.
fn is_page(start: &[u8]) -> bool {
    text(start).is_some_and(|text| {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let begins = text.get(..9).unwrap_or(text).to_ascii_lowercase();
        begins.starts_with("<!doctype") || begins.starts_with("<html")
    })
}

/// Reads the part of a recording that is in `window`.
///
/// Errors: it has no text of ftrace, or that has no `sched_switch`.
pub fn read(input: impl Read, window: Window) -> Result<Recording, ImportError> {
    let mut input = open(input)?;
    let text: Box<dyn BufRead + '_> = if is_page(input.fill_buf()?) {
        Box::new(BufReader::new(InPage::find(input)?))
    } else {
        Box::new(BufReader::new(InJson::find(input)?))
    };
    Recording::read_lines(Lines::after(text, 0), window).map_err(|mut error| {
        if error.line > 0 {
            error.what = format!("of the kernel's text: {}", error.what);
        }
        error
    })
}

/// The text within a page, in one script or several.
struct InPage<R> {
    input: R,
    within: Within,
    /// What has been read of it and is to be handed on.
    line: Vec<u8>,
    at: usize,
}

/// Where a line of a page is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// An element with the text.
    Element,
    /// A text in JavaScript, with a backslash at the end of each line.
    Variable,
}

const ELEMENT: &[u8] = b"class=\"trace-data\"";
const ELEMENT_ENDS: &[u8] = b"</script>";
const VARIABLE: &[u8] = b"linuxPerfData = \"";
const VARIABLE_ENDS: &[u8] = b"\";";
const LINE_ENDS: &[u8] = b"\\n\\\n";
/// Longer lines are scripts.
const LONGEST: usize = 1 << 15;
/// So much of a line is read at a time.
const MOST: u64 = 1 << 26;

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

impl<R: BufRead> InPage<R> {
    fn find(input: R) -> Result<InPage<R>, ImportError> {
        let mut page = InPage { input, within: Within::Nothing, line: Vec::new(), at: 0 };
        match page.next_line()? {
            true => Ok(page),
            false => Err(ImportError::whole(
                "this page has no trace: no element is a script of class trace-data, and no script \
                 sets linuxPerfData",
            )),
        }
    }

    /// Goes on to the next line of text; false: there is none.
    fn next_line(&mut self) -> io::Result<bool> {
        loop {
            self.line.clear();
            self.at = 0;
            if self.input.by_ref().take(MOST).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(false);
            }
            if self.within == Within::Nothing {
                if let Some(at) = position(&self.line, ELEMENT) {
                    let behind = self.line[at..].iter().position(|&byte| byte == b'>');
                    self.at = behind.map_or(self.line.len(), |behind| at + behind + 1);
                    self.within = Within::Element;
                } else if let Some(at) = position(&self.line, VARIABLE) {
                    self.at = at + VARIABLE.len();
                    self.within = Within::Variable;
                } else {
                    continue;
                }
            } else if self.line.len() > LONGEST {
                self.line.clear();
            }
            let ends = match self.within {
                Within::Variable => VARIABLE_ENDS,
                _ => ELEMENT_ENDS,
            };
            if let Some(at) = position(&self.line[self.at..], ends) {
                self.line.truncate(self.at + at);
                self.within = Within::Nothing;
            } else if self.within == Within::Variable && self.line.ends_with(LINE_ENDS) {
                self.line.truncate(self.line.len() - LINE_ENDS.len());
                self.line.push(b'\n');
            }
            return Ok(true);
        }
    }
}

impl<R: BufRead> Read for InPage<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.line.len() {
            if !self.next_line()? {
                return Ok(0);
            }
        }
        let length = buffer.len().min(self.line.len() - self.at);
        buffer[..length].copy_from_slice(&self.line[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

/// The value of a key of JSON that is a text, without its escapes.
struct InJson<R: BufRead> {
    bytes: io::Bytes<R>,
    /// What an escape stands for.
    ready: Vec<u8>,
    is_over: bool,
}

const KEY: &[u8] = b"systemTraceEvents";

impl<R: BufRead> InJson<R> {
    fn find(input: R) -> Result<InJson<R>, ImportError> {
        let missing = || {
            ImportError::whole(
                "it has no `systemTraceEvents`, the kernel's events: `traceEvents` are what \
                 programs say of themselves, which is no load; record the category sched",
            )
        };
        let mut json = InJson { bytes: input.bytes(), ready: Vec::new(), is_over: false };
        let mut is_key = false;
        loop {
            let Some(byte) = json.bytes.next().transpose()? else { return Err(missing()) };
            match byte {
                b'"' if is_key => return Ok(json),
                b'"' => {
                    let text = json.short_text()?;
                    is_key = text == KEY;
                }
                b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => is_key = false,
            }
        }
    }

    /// The text that has begun, or as much of it as is as long as the key.
    fn short_text(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            match self.bytes.next().transpose()? {
                None | Some(b'"') => return Ok(text),
                Some(b'\\') => {
                    self.bytes.next().transpose()?;
                    text.push(b'\\');
                }
                Some(byte) => text.push(byte),
            }
            text.truncate(KEY.len() + 1);
        }
    }

    fn escape(&mut self) -> io::Result<()> {
        let cut = || io::Error::other("the text ends within an escape");
        let byte = self.bytes.next().transpose()?.ok_or_else(cut)?;
        let character = match byte {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let mut code = 0;
                for _ in 0..4 {
                    let digit = self.bytes.next().transpose()?.ok_or_else(cut)?;
                    let digit = char::from(digit).to_digit(16);
                    code = code * 16 + digit.ok_or_else(|| io::Error::other("no such escape"))?;
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => char::from(other),
        };
        // The last byte comes first.
        self.ready.extend(character.encode_utf8(&mut [0; 4]).bytes().rev());
        Ok(())
    }
}

impl<R: BufRead> Read for InJson<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        while length < buffer.len() && !self.is_over {
            if let Some(byte) = self.ready.pop() {
                buffer[length] = byte;
                length += 1;
                continue;
            }
            match self.bytes.next().transpose()? {
                Some(b'\\') => self.escape()?,
                Some(b'"') => self.is_over = true,
                Some(byte) => {
                    buffer[length] = byte;
                    length += 1;
                }
                None => return Err(io::Error::other("the text has no end")),
            }
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCHES: &str = "\
# tracer: nop
 a-7 [000] d..2. 1.000000: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> \
next_comm=b\\\" next_pid=8 next_prio=120
 b\"-8 [000] d..2. 1.002000: sched_switch: prev_comm=b\\\" prev_pid=8 \
prev_prio=120 prev_state=S ==> \
next_comm=a next_pid=7 next_prio=120
";

    fn json(before: &str, after: &str) -> String {
        let text = SWITCHES.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{{{before}\"systemTraceEvents\" : \"{text}\"{after}}}")
    }

    #[test]
    fn text_is_found_in_what_wraps_it() {
        let plain = Recording::read(SWITCHES.as_bytes()).unwrap();
        let page = format!(
            "<!DOCTYPE html>\n<html><script>\n{}\n</script>\n<script class=\"trace-data\" \
             type=\"application/text\">\n{SWITCHES}</script>\n<script>sched_switch: no</script>",
            "x".repeat(100_000)
        );
        let variable = SWITCHES.replace('\n', "\\n\\\n");
        let old = format!(
            "<!DOCTYPE HTML>\n<html>\n<script>\n  var linuxPerfData = \"\\\n{variable}\";\n \
             sched_switch: no\n</script></html>"
        );
        let split = SWITCHES.replace(
            " b\"-8",
            "</script><script>no\n</script>\n\
            <script class=\"trace-data\">\n b\"-8",
        );
        let two = format!("<html>\n<script class=\"trace-data\">{split}</script></html>");
        let other = "\"traceEvents\":[{\"systemTraceEventsX\":\"y\"}, \"systemTraceEvents\"],";
        for text in [json("", ""), json(other, ",\"metadata\":{}"), page, old, two] {
            assert!(Systrace::begins(&text.as_bytes()[..text.len().min(1 << 16)]), "{text}");
            let read = read(text.as_bytes(), Window::default()).unwrap();
            assert_eq!((read.switches(), read.span()), (2, plain.span()), "{text}");
        }
    }

    #[test]
    fn what_has_no_text_says_so() {
        let refused =
            |text: &str| read(text.as_bytes(), Window::default()).unwrap_err().to_string();
        assert!(refused("{\"traceEvents\":[]}").starts_with("it has no `systemTraceEvents`"));
        assert!(refused("<html>\n</html>").starts_with("this page has no trace"));
        assert!(refused(&json("", "")[..90]).contains("cannot be read: the text has no end"));
        let wrong = json("", "").replace("prev_prio", "prev_prix");
        assert!(refused(&wrong).starts_with("line 2: of the kernel's text: sched_switch is not"));
    }
}
