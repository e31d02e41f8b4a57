//! All policies as one object that the hypervisor Xen is linked with.
//!
//! The C side, `scheduler/anysched.c`, has a [`Pool`] for each instance of its scheduler, and calls
//! with that pool's lock held and interrupts off. Calls for different pools may come at the same
//! time; they share the [heap] and the channel of the [log]. Nothing here calls Xen but by the
//! functions in [`xen`]. A panic is Xen's: the machine stops with the message.

#![no_std]

extern crate alloc;

mod heap;
mod lock;
mod log;
mod panic;
mod pool;
mod recent;
mod xen;

use alloc::boxed::Box;

use anysched_core::{CpuId, DomainParams, Span, TaskId};
use anysched_vcpus::Fitness;
use pool::{Answer, Place, Pool, Vcpu};
use recent::{Op, Tag};

/// No vCPU, or no pCPU.
const NONE: u32 = u32::MAX;

/// Gives the heap its memory. Called once, before all else.
///
/// # Safety
///
/// `region` has `size` bytes that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anysched_give_memory(region: *mut u8, size: usize) {
    // SAFETY: by the contract of this function.
    unsafe { heap::give(region, size) }
}

/// A pool as `text` describes it: what stands after `anysched=` on the command line. `number` tells
/// its log from those of other pools. Text that cannot be obeyed is a panic that says why.
///
/// # Safety
///
/// `text` has `length` bytes and `places` one place for each of `cpus` pCPUs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anysched_new(
    text: *const u8,
    length: usize,
    places: *const Place,
    cpus: u32,
    number: u32,
) -> *mut Pool {
    // SAFETY: by the contract of this function.
    let (text, places) = unsafe {
        let text = core::slice::from_raw_parts(text, length);
        (text, core::slice::from_raw_parts(places, cpus as usize))
    };
    recent::note(Op::New, Tag::of(number as u8), cpus);
    match Pool::new(text, places, number as u8) {
        Ok(pool) => Box::into_raw(pool),
        Err(why) => panic::refuse(format_args!("{why}")),
    }
}

/// A pool is not used any more.
///
/// # Safety
///
/// `pool` is of [`anysched_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anysched_drop(pool: *mut Pool) {
    // SAFETY: by the contract of this function.
    drop(unsafe { Box::from_raw(pool) });
}

/// The period of the policy's tick in nanoseconds; 0: it has none.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_tick_period(pool: &Pool) -> u64 {
    pool.tick_period()
}

/// A pCPU comes into the pool or leaves it.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_online(pool: &mut Pool, answer: &mut Answer, cpu: u32, online: bool) {
    pool.call(if online { Op::Online } else { Op::Offline }, cpu, answer, |adapter, now| {
        adapter.set_online(now, CpuId(cpu as u16), online);
    });
}

/// A vCPU has come. Returns its number.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_attach(pool: &mut Pool, answer: &mut Answer, vcpu: &Vcpu) -> u32 {
    let params = vcpu.params(pool.cpus());
    pool.call(Op::Attach, vcpu.domain(), answer, |adapter, now| {
        adapter.attach(now, params, vcpu.domain()).0
    })
}

/// A vCPU has gone.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_detach(pool: &mut Pool, answer: &mut Answer, task: u32) {
    pool.call(Op::Detach, task, answer, |adapter, now| adapter.detach(now, TaskId(task)));
}

/// A vCPU's parameters have changed.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_update(pool: &mut Pool, answer: &mut Answer, task: u32, vcpu: &Vcpu) {
    let params = vcpu.params(pool.cpus());
    pool.call(Op::Update, task, answer, |adapter, now| {
        adapter.update(now, TaskId(task), params, vcpu.domain());
    });
}

/// A domain has this weight, of 256, and cap in percent of a pCPU, 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_domain(
    pool: &mut Pool,
    answer: &mut Answer,
    domain: u32,
    weight: u32,
    cap_percent: u32,
) {
    let params = DomainParams { weight, cap_percent };
    pool.call(Op::Domain, domain, answer, |adapter, now| adapter.set_domain(now, domain, &params));
}

/// A domain has gone.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_disband(pool: &mut Pool, domain: u32) {
    pool.disband(domain);
}

/// A vCPU is ready. `saving`: its registers are being saved. `from`: the pCPU whose vCPU woke it.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_wake(
    pool: &mut Pool,
    answer: &mut Answer,
    task: u32,
    saving: bool,
    from: u32,
) {
    let from = (from != NONE).then_some(CpuId(from as u16));
    pool.call(Op::Wake, task, answer, |adapter, now| {
        adapter.wake(now, TaskId(task), saving, from);
    });
}

/// A vCPU blocks or is paused. Returns the pCPU that runs it, or [`NONE`].
#[unsafe(no_mangle)]
pub extern "C" fn anysched_sleep(pool: &mut Pool, answer: &mut Answer, task: u32) -> u32 {
    pool.call(Op::Sleep, task, answer, |adapter, now| {
        adapter.sleep(now, TaskId(task)).map_or(NONE, |cpu| cpu.0.into())
    })
}

/// A vCPU gives up its pCPU.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_yield(pool: &mut Pool, task: u32) {
    pool.yields(TaskId(task));
}

/// A vCPU's registers have been saved, which [`anysched_wake`] or [`anysched_schedule`] was told to
/// wait for.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_saved(
    pool: &mut Pool,
    answer: &mut Answer,
    task: u32,
    is_runnable: bool,
) {
    pool.call(Op::Saved, task, answer, |adapter, now| {
        adapter.saved(now, TaskId(task), is_runnable);
    });
}

/// What a pCPU runs next: `task` and `slice` of the answer. `fitness` is asked about it.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_schedule(
    pool: &mut Pool,
    answer: &mut Answer,
    cpu: u32,
    is_runnable: bool,
    tasklet: bool,
    fitness: extern "C" fn(*mut u8, u32) -> Fitness,
    data: *mut u8,
) {
    let fitness = |task: TaskId| fitness(data, task.0);
    let pick = pool.call(Op::Schedule, cpu, answer, |adapter, now| {
        adapter.schedule(now, CpuId(cpu as u16), is_runnable, tasklet, fitness)
    });
    answer.task = pick.map_or(NONE, |pick| pick.task.0);
    answer.slice = pick.map_or(u64::MAX, |pick| pick.slice.0);
}

/// A pCPU's tick.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_tick(pool: &mut Pool, answer: &mut Answer, cpu: u32) {
    pool.call(Op::Tick, cpu, answer, |adapter, now| adapter.tick(now, CpuId(cpu as u16)));
}

/// The policy's timer is due.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_timer(pool: &mut Pool, answer: &mut Answer) {
    pool.call(Op::Timer, 0, answer, |adapter, now| adapter.timer(now));
}

/// The latest time that the policy was told, in nanoseconds since boot.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_now(pool: &Pool) -> u64 {
    pool.now()
}

/// Whether [`anysched_watch`] is to be called now and then: not, if vCPUs may wait by the policy's
/// rule.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_is_prompt(pool: &Pool) -> bool {
    pool.is_prompt()
}

/// Looks for a vCPU that is ready and has not run for more than `limit` nanoseconds: `task` of the
/// answer, if there is one, and `slice` is how long it has not.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_watch(pool: &Pool, answer: &mut Answer, limit: u64) {
    pool.watch(answer, Span(limit));
}

/// Stops the machine, because this vCPU was found.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_give_up(
    pool: &Pool,
    answer: &Answer,
    limit: u64,
    domain: u32,
    vcpu: u32,
) -> ! {
    pool.give_up(answer, Span(limit), domain, vcpu)
}

/// Prints how the pool is doing.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_dump(pool: &Pool) {
    pool.dump();
}

/// Sends what has been recorded so far.
#[unsafe(no_mangle)]
pub extern "C" fn anysched_flush() {
    log::flush();
}
