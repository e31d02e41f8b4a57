//! What a panic leaves: its message.

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use crate::{heap, kernel};

/// Bytes of the message, with the zero that ends it.
const ROOM: usize = 512;

/// The message, for the C side.
#[unsafe(no_mangle)]
pub static mut anysched_message: [u8; ROOM] = [0; ROOM];

/// Writes the message, as far as there is room.
struct Message(usize);

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: nobody else is here.
        let room = unsafe { &mut *(&raw mut anysched_message) };
        let mut length = text.len().min(ROOM - 1 - self.0);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        room[self.0..self.0 + length].copy_from_slice(&text.as_bytes()[..length]);
        self.0 += length;
        room[self.0] = 0;
        Ok(())
    }
}

/// Ends what was started, because it cannot run.
pub fn refuse(why: fmt::Arguments<'_>) -> ! {
    let _ = Message(0).write_fmt(why);
    kernel::escape()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Some(size) = heap::refused() {
        let (used, all) = heap::usage();
        refuse(format_args!(
            "the policy's memory is used up: {size} bytes more are wanted, {used} of {all} are in \
             use; it takes a larger heap=BYTES of the module, or --heap of `anysched attach`"
        ));
    }
    let (text, at) = (info.message(), info.location());
    match at.map(|at| (at.file(), at.line())) {
        Some((file, line)) => refuse(format_args!("the policy panicked: {text} ({file}:{line})")),
        None => refuse(format_args!("the policy panicked: {text}")),
    }
}
