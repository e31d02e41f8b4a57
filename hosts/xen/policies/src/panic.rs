//! What a panic says.

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use crate::{heap, log, recent, xen};

/// Text that is cut where there is no more room.
pub struct Line {
    text: [u8; 480],
    used: usize,
}

impl Line {
    /// `text`, as far as there is room.
    pub fn of(text: fmt::Arguments<'_>) -> Line {
        let mut line = Line { text: [0; 480], used: 0 };
        let _ = line.write_fmt(text);
        line
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.text[..self.used]).unwrap_or_default()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut length = text.len().min(self.text.len() - self.used);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        self.text[self.used..self.used + length].copy_from_slice(&text.as_bytes()[..length]);
        self.used += length;
        Ok(())
    }
}

/// Stops the machine, because something cannot be obeyed.
pub fn refuse(why: fmt::Arguments<'_>) -> ! {
    xen::panic(Line::of(format_args!("anysched: {why}")).as_str())
}

/// Stops the machine, because something went wrong: says what was called last.
pub fn stop(why: fmt::Arguments<'_>) -> ! {
    log::flush();
    recent::print();
    refuse(why)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Some(size) = heap::refused() {
        let (used, all) = heap::usage();
        stop(format_args!(
            "the policies' memory is used up: {size} bytes more are wanted, {used} of {all} are in \
             use"
        ));
    }
    stop(format_args!("the policy panicked: {info}"))
}
