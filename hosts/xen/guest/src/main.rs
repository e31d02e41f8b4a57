//! A small PV kernel for Xen. As dom0 it is the toolstack: it builds domains from its own image,
//! sets what schedulers know of them, waits until they have shut down, and says what came of it. As
//! domU it runs one program.
//!
//! No interrupts: a program that waits polls the hypervisor, as `SCHEDOP_poll` is made for.

#![no_std]
#![no_main]

extern crate alloc;

mod control;
mod domain;
mod driver;
mod events;
mod heap;
mod hypercall;
mod machine;
mod mailbox;
mod pools;
mod programs;
mod records;
mod report;
mod share;
mod shared;
mod smp;
mod start;
mod storm;
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
    given: Given,
}

/// What dom0 gives a domain that it builds; Xen gives dom0 nothing of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Given {
    vcpus: u64,
    /// Where the stacks of all vCPUs but the first begin.
    stacks: u64,
    report: u64,
    report_room: u64,
    /// The page by which it and dom0 pass messages.
    mailbox: u64,
    heap: u64,
    heap_length: u64,
    /// When the run starts, once it has.
    epoch: u64,
}

/// The domain that Xen makes.
const INITIAL_DOMAIN: u32 = 2;

impl StartInfo {
    fn command_line(&self) -> &str {
        let length = self.command_line.iter().position(|byte| *byte == 0);
        let text = &self.command_line[..length.unwrap_or(self.command_line.len())];
        core::str::from_utf8(text).unwrap_or_default()
    }

    /// When the run starts, which dom0 writes there before it does.
    fn epoch(&self) -> u64 {
        // SAFETY: it is a part of this, which dom0 changes while this domain stands still.
        unsafe { (&raw const self.given.epoch).read_volatile() }
    }

    /// The page by which this domain and dom0 pass messages.
    fn mailbox(&self) -> &'static mailbox::Mailbox {
        // SAFETY: dom0 has made it for that.
        unsafe { mailbox::at(self.given.mailbox) }
    }

    /// The file that came with the kernel.
    fn module(&'static self) -> &'static [u8] {
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
    let info: &'static StartInfo = unsafe { &*info };
    if info.flags & INITIAL_DOMAIN != 0 {
        smp::stop_ticks(0);
        heap::set_up_own();
        shared::map(info.shared_info);
        toolstack::run(info.module());
        shut_down(Shutdown::Reboot);
    }
    let Given { vcpus, stacks, report, report_room, heap, heap_length, .. } = info.given;
    smp::set_up(vcpus, stacks);
    // SAFETY: dom0 has made these for that.
    unsafe {
        heap::set_up(heap, heap_length as usize);
        report::set_up(report, report_room as usize);
    }
    shared::map(info.shared_info);
    programs::run(info)
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
    // Xen shows what dom0 writes to the console only.
    let _ = writeln!(Console, "{info}");
    report::last_words(info);
    shut_down(Shutdown::Crash);
}
