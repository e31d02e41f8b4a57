//! What several CPUs need besides a scheduler.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axsched::Declared;
use axtask::{AxCpuMask, TaskInner};
use kernel_guard::NoPreempt;

use crate::STACK;

const MAX_CPUS: usize = 16;

/// Has the scheduler told of interrupts of all CPUs, of which this is the first, and keeps CPUs
/// busy that have nothing to do, if the host says `idle=spin`.
pub fn start() {
    CALLED_BACK[axhal::percpu::this_cpu_id()].store(true, Relaxed);
    axhal::irq::register_irq_hook(interrupted);
    if anysched_arceos_qemu::boot().argument("idle") == Some("spin") {
        (0..axhal::cpu_num()).for_each(spin_on);
    }
}

/// The CPUs that have their timer's callback, which each has to register for itself.
static CALLED_BACK: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];

/// At the end of an interrupt.
fn interrupted(_: usize) {
    if !CALLED_BACK[axhal::percpu::this_cpu_id()].swap(true, Relaxed) {
        axtask::register_timer_callback(|_| axsched::timer_interrupt_begins());
    }
    axsched::interrupt_ends();
}

/// Starts a task that runs on `cpu` while there is nothing else to do.
fn spin_on(cpu: usize) {
    let _guard = NoPreempt::new();
    axsched::declare_next(Declared { idles: true, ..Declared::default() });
    let task = TaskInner::new(spin, "idler".into(), STACK);
    task.set_cpumask(AxCpuMask::one_shot(cpu));
    axtask::spawn_task(task);
}

/// Not `spin_loop`: at a pause QEMU lets the next CPU go on.
fn spin() {
    loop {
        black_box(());
    }
}
