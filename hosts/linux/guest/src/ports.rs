//! I/O ports of QEMU's devices: items from the host, the debug console, and the ways to stop.

use std::arch::asm;
use std::io;

use anysched_wire::firmware::{self, DATA, SELECTOR};
use anysched_wire::log::PORT as DEBUG_CONSOLE;
use anysched_wire::result::{EXIT_PORT, READY, READY_PORT};

/// The right of the current thread to use I/O ports, as long as this is there: who has it, and what
/// he starts meanwhile, costs the kernel more at each switch.
pub struct Ports(());

impl Ports {
    /// Asks the kernel for it.
    pub fn open() -> io::Result<Ports> {
        allow(3).map(|()| Ports(()))
    }

    /// Sends `bytes` by the debug console.
    pub fn send(&self, bytes: &[u8]) {
        // SAFETY: the instruction reads `bytes` and nothing else; the port belongs to isa-debugcon
        // or to nobody. That this thread may use it, `open` has seen to.
        unsafe {
            asm!(
                "rep outsb",
                in("dx") DEBUG_CONSOLE,
                inout("rcx") bytes.len() => _,
                inout("rsi") bytes.as_ptr() => _,
                options(readonly, nostack, preserves_flags)
            );
        }
    }

    /// Says that the guest is ready for its orders. The machine may stop here, and go on whenever
    /// it is given some.
    pub fn ready(&self) {
        // SAFETY: the port belongs to pvpanic or to nobody; writing to it touches no memory.
        unsafe {
            asm!(
                "out dx, al",
                in("dx") READY_PORT,
                in("al") READY,
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    /// Ends QEMU with status `2 · code + 1`. Returns if the device is not there.
    pub fn exit(&self, code: u32) {
        // SAFETY: the port belongs to isa-debug-exit or to nobody; writing to it touches no memory.
        unsafe {
            asm!(
                "out dx, eax",
                in("dx") EXIT_PORT,
                in("eax") code,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // There is nothing to do about a right that stays.
        let _ = allow(0);
    }
}

/// Sets the current thread's level of rights to I/O ports: 3 for all, 0 for none.
fn allow(level: u32) -> io::Result<()> {
    // SAFETY: it changes what this thread may do, and no memory.
    match unsafe { libc::syscall(libc::SYS_iopl, level) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl firmware::Ports for Ports {
    fn select(&mut self, item: u16) {
        // SAFETY: selecting an item only changes what the data port gives next.
        unsafe {
            asm!(
                "out dx, ax",
                in("dx") SELECTOR,
                in("ax") item,
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    fn byte(&mut self) -> u8 {
        let byte;
        // SAFETY: reading only moves on within the selected item.
        unsafe {
            asm!(
                "in al, dx",
                in("dx") DATA,
                out("al") byte,
                options(nomem, nostack, preserves_flags)
            );
        }
        byte
    }
}
