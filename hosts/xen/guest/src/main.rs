//! A small PV kernel for Xen. As dom0 it is the toolstack: it builds domains from its own image,
//! sets what schedulers know of them, waits until they have shut down, and says what came of it. As
//! domU it runs one program.
//!
//! One vCPU, no interrupts: a program that waits polls the hypervisor, as `SCHEDOP_poll` is made
//! for.

#![no_std]
#![no_main]

extern crate alloc;

mod domain;
mod events;
mod heap;
mod hypercall;
mod programs;
mod report;
mod shared;
mod start;
mod toolstack;

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::slice;

use hypercall::{Shutdown, shut_down};

/// What Xen, or the toolstack, says to a domain that starts (public/xen.h).
#[repr(C)]
pub struct StartInfo {
    magic: [u8; 32],
    pages: u64,
    shared_info: u64,
    flags: u32,
    store_frame: u64,
    store_port: u32,
    console: [u64; 2],
    page_table: u64,
    page_table_frames: u64,
    frame_list: u64,
    module: u64,
    module_length: u64,
    command_line: [u8; 1024],
    first_p2m: u64,
    p2m_frames: u64,
}

/// The domain that Xen makes.
const INITIAL_DOMAIN: u32 = 2;

impl StartInfo {
    fn command_line(&self) -> &str {
        let length = self.command_line.iter().position(|byte| *byte == 0);
        let text = &self.command_line[..length.unwrap_or(self.command_line.len())];
        core::str::from_utf8(text).unwrap_or_default()
    }

    /// The file that came with the kernel.
    fn module(&self) -> &[u8] {
        if self.module == 0 {
            return &[];
        }
        // SAFETY: Xen has mapped it for this domain.
        unsafe { slice::from_raw_parts(self.module as *const u8, self.module_length as usize) }
    }
}

/// Called by the code at the entry.
extern "C" fn enter(info: *const StartInfo) -> ! {
    // SAFETY: the register points to it, and it stays.
    let info = unsafe { &*info };
    heap::set_up();
    shared::map(info.shared_info);
    if info.flags & INITIAL_DOMAIN != 0 {
        toolstack::run(info.module());
        shut_down(Shutdown::Reboot);
    }
    programs::run(info.command_line());
    shut_down(Shutdown::PowerOff);
}

/// The console.
struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        hypercall::write(text);
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = writeln!(Console, "{info}");
    shut_down(Shutdown::Crash);
}
