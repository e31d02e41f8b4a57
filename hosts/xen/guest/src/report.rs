//! What a domain has to say: [messages](anysched_wire::result) in a place where dom0 finds them
//! when the domain has ended. dom0's own go to the console.

use core::cell::UnsafeCell;
use core::fmt::{self, Write};

use alloc::string::String;
use anysched_wire::result::Message;

/// Bytes of a report.
pub const ROOM: usize = 256 << 10;

/// A report, as it lies in memory.
#[repr(C, align(4096))]
pub struct Report {
    length: UnsafeCell<usize>,
    /// Lines that found no room.
    lost: UnsafeCell<usize>,
    text: UnsafeCell<[u8; ROOM]>,
}

// SAFETY: one vCPU runs here, and nothing interrupts it.
unsafe impl Sync for Report {}

/// This domain's.
pub static REPORT: Report = Report {
    length: UnsafeCell::new(0),
    lost: UnsafeCell::new(0),
    text: UnsafeCell::new([0; ROOM]),
};

/// Before the text.
pub const HEADER: usize = size_of::<usize>() * 2;

/// Adds a message to the report of this domain.
pub fn say(message: &Message) {
    // SAFETY: nobody else is here.
    let (length, lost, text) =
        unsafe { (&mut *REPORT.length.get(), &mut *REPORT.lost.get(), &mut *REPORT.text.get()) };
    let mut rest = Rest { text: &mut text[*length..], used: 0 };
    match writeln!(rest, "{message}") {
        Ok(()) => *length += rest.used,
        Err(fmt::Error) => *lost += 1,
    }
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

/// The text of a report, of its memory. Errors: it is none, or something was lost.
pub fn read(memory: &[u8]) -> Result<String, String> {
    let number = |at: usize| {
        let bytes = memory.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (Some(length), Some(lost)) = (number(0), number(8)) else {
        return Err("the report has no header".into());
    };
    if lost > 0 {
        return Err(alloc::format!("{lost} lines found no room in the report"));
    }
    let text = memory.get(HEADER..HEADER + length).ok_or("the report is cut off")?;
    String::from_utf8(text.to_vec()).map_err(|_| "the report is not UTF-8".into())
}
