//! An ArceOS unikernel whose scheduler is a policy of anysched. The host says which, and what to
//! run, when it boots.

#![no_std]
#![no_main]

extern crate alloc;
use axstd as _;

#[cfg(feature = "smp")]
mod cpus;
mod sleep;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use anysched_arceos_apps::{ArceOs, Image, Task, Usage, run};
use anysched_core::Span;
use anysched_programs::Kernel;
use anysched_wire::result::Message;
use axsched::Declared;
use axtask::AxTaskRef;
use axtask::future::block_on;
use kernel_guard::NoPreempt;

/// Enough for the programs, and little enough for thousands of tasks. In bytes.
const STACK: usize = 16 << 10;

/// An image whose scheduler is a policy of anysched.
struct Anysched;

impl Image for Anysched {
    const COUNTS: bool = true;

    /// CPUs that take turns take many meanwhile.
    #[cfg(feature = "smp")]
    const CALIBRATION: u64 = 3_000_000;

    fn spawn(task: &Task, body: Box<dyn FnOnce() + Send>) -> AxTaskRef {
        let declared = Declared { work: task.work.map(Span), ..Declared::default() };
        let body = move || {
            body();
            axtask::current().leaves();
        };
        // The declaration must apply to this task, not to another that the CPU might create
        // meanwhile.
        let _guard = NoPreempt::new();
        axsched::declare_next(declared);
        axtask::spawn_raw(body, task.name.clone(), STACK)
    }

    fn sleep_until(deadline: u64) {
        block_on(sleep::until(deadline));
    }

    fn sleep_before(deadline: u64, burst: u64) {
        block_on(sleep::before(deadline, burst));
    }

    fn expect(task: &AxTaskRef, burst: u64) {
        task.expects(Span(burst));
    }

    fn set_param(name: &str, value: &str) -> Result<(), String> {
        axsched::ask_for_param(name, value);
        // Blocked and woken again, so that the scheduler looks around.
        Self::sleep_until(axplat::time::monotonic_time_nanos() + 1_000);
        axsched::refused().map_or(Ok(()), Err)
    }

    fn usage(task: &AxTaskRef) -> Option<Usage> {
        let dispatches = Some(task.dispatches().into());
        Some(Usage { service: task.service(), dispatches })
    }

    fn switches() -> Option<u64> {
        Some(axsched::switches())
    }

    fn measured() {
        let value =
            |name: String, number| ArceOs::<Anysched>::say(&Message::Value { name, number });
        value("switches".into(), axsched::switches());
        for (name, calls, time) in axsched::calls() {
            value(format!("{name}_calls"), calls);
            value(format!("{name}_ns"), time);
        }
        axsched::ask_what_was_learned();
        // Blocked and woken again, so that the scheduler looks around.
        Self::sleep_until(axplat::time::monotonic_time_nanos() + 1_000);
        for (name, value) in axsched::learned() {
            ArceOs::<Anysched>::say(&Message::Learned { name, value });
        }
        axsched::finish_log();
    }
}

#[unsafe(no_mangle)]
fn main() {
    axtask::register_timer_callback(|_| axsched::timer_interrupt_begins());
    #[cfg(feature = "smp")]
    cpus::start();
    run::<Anysched>();
    anysched_arceos_qemu::exit(0);
}
