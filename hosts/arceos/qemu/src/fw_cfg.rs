//! QEMU's firmware configuration device.

use alloc::vec::Vec;

use anysched_wire::firmware::{self, DATA, Ports, SELECTOR};
use kspin::SpinNoIrq;
use x86_64::instructions::port::{Port, PortWriteOnly};

struct FwCfg {
    selector: PortWriteOnly<u16>,
    data: Port<u8>,
}

/// One selector for the whole machine: CPUs take turns.
static DEVICE: SpinNoIrq<FwCfg> =
    SpinNoIrq::new(FwCfg { selector: PortWriteOnly::new(SELECTOR), data: Port::new(DATA) });

impl Ports for FwCfg {
    fn select(&mut self, item: u16) {
        // SAFETY: selecting an item only changes what the data port gives next.
        unsafe { self.selector.write(item) }
    }

    fn byte(&mut self) -> u8 {
        // SAFETY: reading only moves on within the selected item.
        unsafe { self.data.read() }
    }
}

/// The item called `name`, or `None` if the host gave none.
pub fn read(name: &str) -> Option<Vec<u8>> {
    firmware::read(&mut *DEVICE.lock(), name)
}
