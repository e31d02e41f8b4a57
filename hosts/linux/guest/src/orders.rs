//! What to run, as the host says.

use std::sync::OnceLock;

use anysched_wire::boot::{self, Boot};
use anysched_wire::start::{self, Start};
use anysched_wire::{firmware, script};

use crate::machine::refuse;
use crate::ports::Ports;

/// What the host says, read once. If it cannot be read, the guest refuses to run.
pub fn boot() -> &'static Boot {
    static TEXT: OnceLock<Boot> = OnceLock::new();
    TEXT.get_or_init(|| match Boot::read(&read(boot::ITEM)) {
        Ok(boot) => boot,
        Err(error) => refuse(error),
    })
}

/// What the module is to start, without the CPUs. If it cannot be read, the guest refuses to run.
pub fn start() -> Start {
    match Start::read_part(&read(start::ITEM)) {
        Ok(start) => start,
        Err(error) => refuse(error),
    }
}

/// Whether the policy is to run in an agent, and not in the kernel's module.
pub fn in_agent() -> bool {
    match read(boot::PLACE).trim_ascii() {
        b"agent" => true,
        b"module" => false,
        other => {
            let other = String::from_utf8_lossy(other);
            refuse(format_args!("{}: \"{other}\": agent or module is wanted", boot::PLACE))
        }
    }
}

/// The text of the script, without which the guest refuses to run.
pub fn script() -> Vec<u8> {
    read(script::ITEM)
}

/// The item called `name`.
fn read(name: &str) -> Vec<u8> {
    let mut ports = match Ports::open() {
        Ok(ports) => ports,
        Err(error) => refuse(format_args!("{name} cannot be read: I/O ports: {error}")),
    };
    firmware::read(&mut ports, name)
        .unwrap_or_else(|| refuse(format_args!("the host gives no {name} by -fw_cfg")))
}
