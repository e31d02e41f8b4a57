//! Programs that go wrong, to test that the host notices.

use anysched_arceos_qemu::{boot, exit};

/// Goes wrong as the argument `how` says: `panic`, `hang` or `leave`.
pub fn fault() {
    match boot().argument("how").unwrap_or("panic") {
        "hang" => loop {
            core::hint::spin_loop();
        },
        "leave" => exit(0),
        how => panic!("asked to {how}"),
    }
}
