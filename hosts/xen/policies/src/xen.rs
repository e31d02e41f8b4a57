//! What of Xen is called.

unsafe extern "C" {
    /// Has a pCPU pick again, soon.
    pub safe fn anysched_kick(cpu: u32);
    /// Prints a line.
    fn anysched_print(text: *const u8, length: usize);
    /// Stops the machine with a message.
    fn anysched_panic(text: *const u8, length: usize) -> !;
}

/// Prints a line.
pub fn print(line: &str) {
    // SAFETY: the text is valid.
    unsafe { anysched_print(line.as_ptr(), line.len()) }
}

/// Stops the machine with a message.
pub fn panic(message: &str) -> ! {
    // SAFETY: the text is valid.
    unsafe { anysched_panic(message.as_ptr(), message.len()) }
}
