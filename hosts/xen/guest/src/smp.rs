//! The vCPUs of this domain: the first starts the others, and all run one program.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use alloc::boxed::Box;

use crate::hypercall::{self, Call, hypercall};
use crate::shared;

/// vCPUs of a domain, at most: so many have a place in the page that Xen shares.
pub const MOST: usize = 32;

/// Bytes of the stack of each vCPU but the first.
pub const STACK: usize = 32 << 10;

static STACKS: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(1);
/// vCPUs that have not done their work.
static LEFT: AtomicU64 = AtomicU64::new(1);

/// Says how many there are, and where the stacks of all but the first begin.
pub fn set_up(count: u64, stacks: u64) {
    STACKS.store(stacks, Relaxed);
    COUNT.store(count, Relaxed);
    (0..count).for_each(stop_ticks);
}

/// Xen ticks for each vCPU that runs, every 10 ms, unless it says that it needs none.
pub fn stop_ticks(vcpu: u64) {
    const STOP_PERIODIC_TIMER: u64 = 7;
    // SAFETY: it takes nothing.
    let _ = unsafe { hypercall(Call::Vcpu, [STOP_PERIODIC_TIMER, vcpu, 0, 0]) };
}

/// How many there are.
pub fn count() -> usize {
    COUNT.load(Relaxed) as usize
}

/// The number of the vCPU that asks: it shows in where its stack is.
pub fn number() -> usize {
    let stack: u64;
    // SAFETY: it reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack, preserves_flags)) };
    match stack.checked_sub(STACKS.load(Relaxed)) {
        Some(above) if above < (count() as u64 - 1) * STACK as u64 => 1 + above as usize / STACK,
        _ => 0,
    }
}

/// What vCPUs share, one at a time.
pub struct Lock<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is lent to one vCPU at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// `value`, which nobody has taken.
    pub const fn new(value: T) -> Lock<T> {
        Lock { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Lends the value, which must not be asked for again meanwhile.
    pub fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        /// Who has it may have lost its pCPU, and gets it back sooner if others yield.
        const PATIENCE: u32 = 1_000;
        let mut tries = 0;
        while self.is_taken.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            tries += 1;
            if tries % PATIENCE == 0 {
                hypercall::yield_cpu();
            }
            spin_loop();
        }
        self.lend(use_it)
    }

    /// Lends the value, unless somebody has it.
    pub fn with_if_free<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> Option<R> {
        let took = self.is_taken.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        took.then(|| self.lend(use_it))
    }

    /// Lends the value to who has taken it, and gives it back.
    fn lend<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: nobody else has it.
        let result = use_it(unsafe { &mut *self.value.get() });
        self.is_taken.store(false, Release);
        result
    }
}

/// What all vCPUs do, each told its number, and what the last that has done it does.
struct Program {
    work: Box<dyn Fn(usize) + Sync>,
    last: Box<dyn Fn() + Sync>,
}

struct Place(UnsafeCell<Option<Program>>);

// SAFETY: it is written before other vCPUs are started, and read only after that.
unsafe impl Sync for Place {}

static PROGRAM: Place = Place(UnsafeCell::new(None));

/// Has all vCPUs do `work`, and the last that has done it `last`. Called once, by the first.
pub fn run(work: Box<dyn Fn(usize) + Sync>, last: Box<dyn Fn() + Sync>) -> ! {
    const UP: u64 = 1;
    LEFT.store(count() as u64, Relaxed);
    // SAFETY: no other vCPU runs.
    unsafe { *PROGRAM.0.get() = Some(Program { work, last }) };
    for vcpu in 1..count() as u64 {
        // Another vCPU may call it before it does anything.
        shared::mask(vcpu as usize);
        // SAFETY: dom0 has set the registers of this vCPU.
        if let Err(error) = unsafe { hypercall(Call::Vcpu, [UP, vcpu, 0, 0]) } {
            panic!("vCPU {vcpu} does not come up: {error:?}");
        }
    }
    perform(0)
}

/// Where all vCPUs but the first begin.
pub extern "C" fn enter_other(vcpu: usize) -> ! {
    perform(vcpu)
}

fn perform(vcpu: usize) -> ! {
    const DOWN: u64 = 2;
    // SAFETY: it was written before this vCPU came up, and is not written again.
    let program = unsafe { (*PROGRAM.0.get()).as_ref() };
    let Some(Program { work, last }) = program else { panic!("there is nothing to do") };
    work(vcpu);
    if LEFT.fetch_sub(1, AcqRel) == 1 {
        last();
        hypercall::shut_down(hypercall::Shutdown::PowerOff);
    }
    loop {
        // SAFETY: a vCPU may stop itself.
        let _ = unsafe { hypercall(Call::Vcpu, [DOWN, vcpu as u64, 0, 0]) };
    }
}
