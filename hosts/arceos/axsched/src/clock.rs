//! The time, and the one-shot timer of each CPU.
//!
//! Before it calls us, axruntime's interrupt handler sets the timer anew, each time one period of
//! its own later. Images are built with a period that is long enough for the rest of the handler;
//! here the timer is set again to when something is really due.

use alloc::collections::BTreeSet;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use axplat::irq::IpiTarget;
use kspin::SpinNoIrq;

use crate::MAX_CPUS;

/// Every CPU is interrupted at least this often, as with ArceOS's own 100 Hz, for kernel timeouts
/// that are not announced with `interrupt_at`. In nanoseconds.
///
/// Of several CPUs that take turns where instructions are counted, one is ahead of another by a
/// part of this, as QEMU ends a turn at the next interrupt by a timer at the latest.
const BASE_PERIOD: u64 = if cfg!(feature = "smp") { 1_000_000 } else { 10_000_000 };

/// An idle CPU for which an interrupt handler readied a task may be about to halt: it is woken once
/// more after this many nanoseconds, enough to leave the handler.
pub(crate) const HALT_RACE: u64 = 2_000;

/// When the timer of each CPU will fire.
static ARMED: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// Whether each CPU is in its timer's handler, before `task_tick`.
static INTERRUPTED: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];

/// The CPU halts, or is about to, although it should pick.
#[cfg(not(feature = "smp"))]
static HALTS_IN_VAIN: AtomicBool = AtomicBool::new(false);

/// When tasks of each CPU want to wake up.
static ALARMS: [SpinNoIrq<BTreeSet<u64>>; MAX_CPUS] =
    [const { SpinNoIrq::new(BTreeSet::new()) }; MAX_CPUS];

/// How many times each CPU has switched to another task than it ran last.
static SWITCHES: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// How many times CPUs have switched to another task than they ran last.
pub fn switches() -> u64 {
    SWITCHES.iter().map(|switches| switches.load(Relaxed)).sum()
}

/// The time in nanoseconds since boot.
#[inline]
pub(crate) fn now() -> u64 {
    // Images are built for a clock whose ticks are nanoseconds, as it is when QEMU counts
    // instructions: there is nothing to convert.
    axplat::time::current_ticks()
}

/// Interrupts this CPU at `deadline` (nanoseconds since boot), so that a sleep until then is
/// noticed in time.
#[cfg(not(feature = "smp"))]
pub fn interrupt_at(deadline: u64) {
    let cpu = axplat::percpu::this_cpu_id();
    ALARMS[cpu].lock().insert(deadline);
    Clock::of(cpu).arm_by(deadline);
}

/// Must be called first in every timer interrupt: axtask wakes sleepers before it calls
/// `task_tick`, which can then handle their kicks.
pub fn timer_interrupt_begins() {
    let cpu = axplat::percpu::this_cpu_id();
    INTERRUPTED[cpu].store(true, Relaxed);
    #[cfg(not(feature = "smp"))]
    if HALTS_IN_VAIN.load(Relaxed) {
        // It had not halted yet.
        Clock::of(cpu).rearm(now() + HALT_RACE);
    }
    #[cfg(feature = "smp")]
    sleep::wake_sleepers();
}

/// The timer of one CPU. All times in nanoseconds since boot.
pub(crate) struct Clock {
    cpu: usize,
    armed: &'static AtomicU64,
    switches: &'static AtomicU64,
}

impl Clock {
    pub fn of(cpu: usize) -> Clock {
        // What `now` relies on.
        assert_eq!(axplat::time::ticks_to_nanos(1_000_003), 1_000_003, "a tick is a nanosecond");
        Clock { cpu, armed: &ARMED[cpu], switches: &SWITCHES[cpu] }
    }

    pub fn is_in_interrupt(&self) -> bool {
        INTERRUPTED[self.cpu].load(Relaxed)
    }

    pub fn leave_interrupt(&self) {
        INTERRUPTED[self.cpu].store(false, Relaxed);
    }

    /// Whether the timer is set to a time after `due`.
    #[inline]
    pub fn fires_after(&self, due: u64) -> bool {
        due < self.armed.load(Relaxed)
    }

    /// Sets the timer to `due` if it would fire later. One that has fired, whose handler runs, is
    /// the kernel's.
    fn arm_by(&self, due: u64) {
        if self.fires_after(due) || self.armed.load(Relaxed) <= now() {
            self.rearm(due);
        }
    }

    /// Only the CPU itself counts, so this needs no locked addition.
    #[inline]
    pub fn count_switch(&self) {
        self.switches.store(self.switches.load(Relaxed) + 1, Relaxed);
    }

    /// Sets the timer to `due`, an alarm or the base period, whichever is first.
    #[cold]
    pub fn rearm(&self, due: u64) {
        let now = now();
        let base = (now / BASE_PERIOD + 1) * BASE_PERIOD;
        let mut alarms = ALARMS[self.cpu].lock();
        while alarms.first().is_some_and(|&alarm| alarm <= now) {
            alarms.pop_first();
        }
        let alarm = alarms.first().copied().unwrap_or(u64::MAX);
        let due = due.min(base).min(alarm);
        self.armed.store(due, Relaxed);
        axplat::time::set_oneshot_timer(due);
    }

    /// Wakes this CPU, which is idle and may or may not have halted.
    #[cfg(not(feature = "smp"))]
    pub fn wake_idle(&self, now: u64) {
        HALTS_IN_VAIN.store(true, Relaxed);
        self.arm_by(now + HALT_RACE);
    }

    /// This CPU, which was idle, is about to pick.
    #[cfg(not(feature = "smp"))]
    pub fn leave_idle(&self) {
        HALTS_IN_VAIN.store(false, Relaxed);
        // If an interrupt ended the idling, axtask did not call `task_tick`.
        self.leave_interrupt();
    }
}

/// Interrupts `cpu`, another one or this one, as if its timer had fired.
///
/// This one by its number too: `IpiTarget::Current` needs a register that only an x2APIC has;
/// without one, x2apic 0.5.1 writes to an address that belongs to no device (0xfee0_ffff).
pub(crate) fn interrupt(cpu: usize) {
    let target = IpiTarget::Other { cpu_id: cpu };
    axplat::irq::send_ipi(axplat::time::irq_num(), target);
}

/// Sleeps, where a task may go on on another CPU at any time.
///
/// axtask's own sleep keeps a list of sleepers for each CPU and looks into that of the CPU on which
/// the task is by then: one that was taken off between two looks would wake too early, and could
/// take another off its list.
#[cfg(feature = "smp")]
pub(crate) mod sleep {
    use super::*;
    use alloc::collections::BTreeMap;
    use core::future::poll_fn;
    use core::task::{Poll, Waker};

    /// Those that sleep, by when they wake up and the order in which they came.
    static SLEEPERS: SpinNoIrq<BTreeMap<(u64, u64), Waker>> = SpinNoIrq::new(BTreeMap::new());

    /// Until `deadline`, in nanoseconds since boot.
    pub fn until(deadline: u64) -> impl Future<Output = ()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let key = (deadline, COUNT.fetch_add(1, Relaxed));
        poll_fn(move |cx| {
            if now() >= deadline {
                return Poll::Ready(());
            }
            // This keeps the CPU, whose timer is set.
            let mut sleepers = SLEEPERS.lock();
            sleepers.insert(key, cx.waker().clone());
            let cpu = axplat::percpu::this_cpu_id();
            ALARMS[cpu].lock().insert(deadline);
            Clock::of(cpu).arm_by(deadline);
            Poll::Pending
        })
    }

    pub(super) fn wake_sleepers() {
        loop {
            let mut sleepers = SLEEPERS.lock();
            let Some(first) = sleepers.first_entry().filter(|first| first.key().0 <= now()) else {
                return;
            };
            let waker = first.remove();
            drop(sleepers);
            waker.wake();
        }
    }
}
