//! What to run, as the host says.

use anysched_wire::boot::{Boot, ITEM};
use spin::Once;

use crate::{fw_cfg, refuse};

/// What the host says, read once. If it cannot be read, the kernel refuses to run.
pub fn boot() -> &'static Boot {
    static BOOT: Once<Boot> = Once::new();
    BOOT.call_once(|| match Boot::read(&item(ITEM)) {
        Ok(boot) => boot,
        Err(error) => refuse(error),
    })
}

/// The firmware item called `name`, without which the kernel refuses to run.
pub fn item(name: &str) -> alloc::vec::Vec<u8> {
    match fw_cfg::read(name) {
        Some(item) => item,
        None => refuse(format_args!("there is no firmware item {name}")),
    }
}
