//! What the C side offers: see `glue.c`.

unsafe extern "C" {
    /// Where memory for the policy is, and how much.
    pub safe static anysched_heap_size: u64;
    pub static anysched_heap: *mut u8;
    /// Has a CPU pick soon.
    pub safe fn anysched_kick(cpu: u32);
    /// Appends to the log, as long as there is room.
    pub fn anysched_log_write(bytes: *const u8, length: u64);
    /// What was appended is a record.
    pub safe fn anysched_log_record_ends();
    /// Goes back to where the C side called, and does not return. objtool would have to know it as
    /// such a function, so it is not declared as one.
    safe fn anysched_escape();
}

/// Goes back to where the C side called.
pub fn escape() -> ! {
    anysched_escape();
    loop {
        core::hint::spin_loop();
    }
}
