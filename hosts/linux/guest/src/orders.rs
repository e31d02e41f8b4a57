//! What to run, as the host says.

use std::sync::OnceLock;

use anysched_wire::boot::Boot;
use anysched_wire::start::Start;

use crate::machine::refuse;

const BOOT: &str = "/etc/anysched/boot";
const START: &str = "/etc/anysched/start";
const PLACE: &str = "/etc/anysched/in";
const SCRIPT: &str = "/etc/anysched/script";

/// What the host says, read once. If it cannot be read, the guest refuses to run.
pub fn boot() -> &'static Boot {
    static TEXT: OnceLock<Boot> = OnceLock::new();
    TEXT.get_or_init(|| match Boot::read(&read(BOOT)) {
        Ok(boot) => boot,
        Err(error) => refuse(error),
    })
}

/// What the module is to start, without the CPUs. If it cannot be read, the guest refuses to run.
pub fn start() -> Start {
    match Start::read_part(&read(START)) {
        Ok(start) => start,
        Err(error) => refuse(error),
    }
}

/// Whether the policy is to run in an agent, and not in the kernel's module.
pub fn in_agent() -> bool {
    match read(PLACE).trim_ascii() {
        b"agent" => true,
        b"module" => false,
        other => {
            let other = String::from_utf8_lossy(other);
            refuse(format_args!("{PLACE}: \"{other}\": agent or module is wanted"))
        }
    }
}

/// The text of the script, without which the guest refuses to run.
pub fn script() -> Vec<u8> {
    read(SCRIPT)
}

fn read(path: &str) -> Vec<u8> {
    match std::fs::read(path) {
        Ok(text) => text,
        Err(error) => {
            refuse(format_args!("{path}: {error}; the host puts it in the guest's files"))
        }
    }
}
