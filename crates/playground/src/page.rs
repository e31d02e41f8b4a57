//! What the page's worker calls, and what it is called by.
//!
//! The worker writes a request at [`room`], calls [`ask`], and reads the answer there: the number
//! of its parts, the length of each (both 4 bytes, little endian), and the parts, of which the
//! first is JSON. The memory stays this module's: it is read before the next call.

use crate::{Answer, Session};
use std::cell::RefCell;
use std::sync::Once;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Tells how far a run is.
    fn progress(done: f64, total: f64);
    /// Tells of a panic, after which the module cannot be used any more.
    fn fault(text: *const u8, length: usize);
}

/// What is kept between calls.
#[derive(Default)]
struct Kept {
    request: Vec<u8>,
    answer: Vec<u8>,
    session: Session,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// Makes room for a request of so many bytes, and says where.
// SAFETY: nothing else of this program has the name.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    KEPT.with_borrow_mut(|kept| {
        kept.request = vec![0; length];
        kept.request.as_mut_ptr()
    })
}

/// Answers the request, and says where the answer is.
// SAFETY: nothing else of this program has the name.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> *const u8 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let text = panic.to_string();
            // SAFETY: the page reads the text during the call, and it lives that long.
            unsafe { fault(text.as_ptr(), text.len()) };
        }));
    });
    let far = |done, total| {
        // SAFETY: it takes numbers, and calls nothing of this module.
        unsafe { progress(done, total) };
    };
    KEPT.with_borrow_mut(|kept| {
        let request = std::mem::take(&mut kept.request);
        let answer = kept.session.answer(&String::from_utf8_lossy(&request), &far);
        kept.answer = joined(&answer);
        kept.answer.as_ptr()
    })
}

/// How many bytes the answer has.
// SAFETY: nothing else of this program has the name.
#[unsafe(no_mangle)]
pub extern "C" fn length() -> usize {
    KEPT.with_borrow(|kept| kept.answer.len())
}

fn joined(answer: &Answer) -> Vec<u8> {
    let parts =
        || std::iter::once(answer.json.as_bytes()).chain(answer.blocks.iter().map(Vec::as_slice));
    let number = |length: usize| (length as u32).to_le_bytes();
    let mut joined = number(parts().count()).to_vec();
    parts().for_each(|part| joined.extend(number(part.len())));
    parts().for_each(|part| joined.extend(part));
    joined
}
