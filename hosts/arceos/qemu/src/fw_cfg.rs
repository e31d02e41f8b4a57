//! QEMU's firmware configuration device: `-fw_cfg name=NAME,file=FILE`.
//!
//! Source: QEMU 7.2, docs/specs/fw_cfg.txt (the port interface).

use alloc::vec::Vec;

use kspin::SpinNoIrq;
use x86_64::instructions::port::{Port, PortWriteOnly};

const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;

/// The item that says which device this is.
const SIGNATURE: u16 = 0x00;
/// The item that lists all items that have names.
const DIRECTORY: u16 = 0x19;

struct FwCfg {
    selector: PortWriteOnly<u16>,
    data: Port<u8>,
}

/// One selector for the whole machine: CPUs take turns.
static DEVICE: SpinNoIrq<FwCfg> =
    SpinNoIrq::new(FwCfg { selector: PortWriteOnly::new(SELECTOR), data: Port::new(DATA) });

impl FwCfg {
    fn select(&mut self, item: u16) {
        // SAFETY: selecting an item only changes what the data port gives next.
        unsafe { self.selector.write(item) }
    }

    fn byte(&mut self) -> u8 {
        // SAFETY: reading only moves on within the selected item; past its end it gives zeros.
        unsafe { self.data.read() }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.byte())
    }

    /// The number and the size of the item called `name`.
    fn find(&mut self, name: &str) -> Option<(u16, u32)> {
        self.select(SIGNATURE);
        if &self.bytes() != b"QEMU" {
            return None;
        }
        self.select(DIRECTORY);
        let count = u32::from_be_bytes(self.bytes());
        let mut found = None;
        for _ in 0..count {
            let size = u32::from_be_bytes(self.bytes());
            let item = u16::from_be_bytes(self.bytes());
            let _reserved: [u8; 2] = self.bytes();
            let field: [u8; 56] = self.bytes();
            let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
            if &field[..end] == name.as_bytes() {
                found = Some((item, size));
            }
        }
        found
    }
}

/// The item called `name`, or `None` if the host gave none.
pub fn read(name: &str) -> Option<Vec<u8>> {
    let mut device = DEVICE.lock();
    let (item, size) = device.find(name)?;
    device.select(item);
    Some((0..size).map(|_| device.byte()).collect())
}
