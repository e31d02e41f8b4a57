//! All policies as one object that a module of the Linux kernel is linked with.
//!
//! The module's C side calls [`anysched_call`] for everything, one call at a time, with interrupts
//! off and through an assembler stub that a panic returns to: what the policy and the adapter have
//! in memory is lost then, and a later start begins with an empty heap. Nothing here calls the
//! kernel but by the functions in [`kernel`].

#![no_std]

extern crate alloc;

mod call;
mod heap;
mod kernel;
mod log;
mod panic;
mod running;
mod status;

use call::{Call, Op};
use running::Running;

/// What has been started.
static mut RUNNING: Option<Running> = None;

/// Makes a call. Only the C side calls this.
///
/// # Safety
///
/// One caller at a time; `call` and what it points to are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anysched_call(call: *mut Call) {
    // SAFETY: by the contract of this function, nobody else is here.
    let (call, running) = unsafe { (&mut *call, &mut *(&raw mut RUNNING)) };
    if call.op == Op::Start as u32 {
        // What was there is not dropped: it may be what panicked.
        core::mem::forget(running.take());
        heap::reset();
        // SAFETY: the C side gives a text, by the contract of this function.
        let text = unsafe { call.text() };
        *running = Some(Running::start(text, call));
        return;
    }
    match running {
        Some(running) => running.handle(call),
        None => panic!("nothing has been started"),
    }
}
