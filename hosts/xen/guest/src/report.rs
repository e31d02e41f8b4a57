//! What a domain has to say: [messages](anysched_wire::result) in a place where dom0 finds them
//! when the domain has ended. dom0's own go to the console.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::slice;

use alloc::string::String;
use alloc::vec::Vec;
use anysched_wire::result::Message;

use crate::smp::Lock;

/// Bytes of a report, usually.
pub const ROOM: usize = 256 << 10;

/// The length of the text and how many lines found no room, as two words before it.
pub const HEADER: usize = 16;

/// A report, as it lies in memory.
struct Report {
    header: &'static mut [u64],
    text: &'static mut [u8],
}

static REPORT: Lock<Option<Report>> = Lock::new(None);

/// Says where the report is to be.
///
/// # Safety
///
/// There are [`HEADER`] zero bytes and `room` more that nobody else uses, aligned to words.
pub unsafe fn set_up(address: u64, room: usize) {
    // SAFETY: by the contract of this function.
    let report = unsafe {
        Report {
            header: slice::from_raw_parts_mut(address as *mut u64, HEADER / 8),
            text: slice::from_raw_parts_mut((address as *mut u8).add(HEADER), room),
        }
    };
    REPORT.with(|place| *place = Some(report));
}

/// Adds a message to the report of this domain.
pub fn say(message: &Message) {
    REPORT.with(|report| {
        let Some(Report { header, text }) = report else { return };
        let length = header[0] as usize;
        let mut rest = Rest { text: &mut text[length..], used: 0 };
        match writeln!(rest, "{message}") {
            Ok(()) => header[0] += rest.used as u64,
            Err(fmt::Error) => header[1] += 1,
        }
    });
}

/// Adds why the domain panics, as text that is no message; not if it panics while it reports.
pub fn last_words(info: &PanicInfo<'_>) {
    REPORT.with_if_free(|report| {
        let Some(Report { header, text }) = report else { return };
        let length = header[0] as usize;
        let mut rest = Rest { text: &mut text[length..], used: 0 };
        let _ = writeln!(rest, "{info}");
        header[0] += rest.used as u64;
    });
}

struct Rest<'a> {
    text: &'a mut [u8],
    used: usize,
}

impl Write for Rest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.get_mut(self.used..self.used + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

/// A measured number.
pub fn value(name: &str, number: u64) {
    say(&Message::Value { name: name.into(), number });
}

/// A number of which many are measured.
pub fn sample(name: &str, number: u64) {
    say(&Message::Sample { name: name.into(), number });
}

/// Reads the lines of a report, page by page.
#[derive(Default)]
pub struct Reader {
    /// Bytes of text that are left, and lines that found no room; `None`: the header has not come.
    left: Option<(usize, u64)>,
    /// A line whose end has not come.
    line: Vec<u8>,
}

impl Reader {
    /// Reads the next page and passes its lines on. Returns whether it was the last. Errors: of
    /// `line`, or the report is none.
    pub fn read(
        &mut self,
        page: &[u8],
        line: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<bool, String> {
        let mut text = page;
        if self.left.is_none() {
            let word = |at: usize| page[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
            self.left = Some((word(0) as usize, word(8)));
            text = &page[HEADER..];
        }
        let Some((left, _)) = &mut self.left else { return Ok(true) };
        text = &text[..text.len().min(*left)];
        *left -= text.len();
        let is_last = *left == 0;
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if let Some(whole) = self.line.strip_suffix(b"\n") {
                line(core::str::from_utf8(whole).map_err(|_| "the report is not UTF-8")?)?;
                self.line.clear();
            }
        }
        Ok(is_last)
    }

    /// There are no more pages. Errors: the report is cut off, or lines found no room in it.
    pub fn end(self) -> Result<(), String> {
        match self.left {
            Some((0, 0)) if self.line.is_empty() => Ok(()),
            Some((_, lost @ 1..)) => {
                Err(alloc::format!("{lost} lines found no room in the report"))
            }
            _ => Err("the report is cut off".into()),
        }
    }
}
