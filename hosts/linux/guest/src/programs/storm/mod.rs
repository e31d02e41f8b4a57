//! What storms of system calls do to a policy: tasks that compute and tasks that fork, while others
//! change on which CPUs, how nice and in which scheduling class they are, and CPUs come and go.
//!
//! At the end it is calm: the storm is over and all tasks are ordinary again, with niceness 0 and
//! on all CPUs. Every task that is ready has to get CPU time in it.
//!
//! Arguments: `duration_ns`; `calm_ns`, how much of it is calm at most: once each task has run in
//! it, the program ends; `spinners` and `forkers`, how many
//! tasks compute and fork; `hotplug`, 1 for CPUs that come and go; `gap_ns`, the longest time
//! between two changes of a kind (CPUs change at a tenth of that pace); `seed`.
//!
//! Values: `forks`, `affinity_changes`, `nice_changes`, `policy_changes`, `hotplugs`: how many
//! there were; `stalled`: tasks that were ready and got no CPU time while it was calm.

mod weather;
mod worker;

use std::hint::spin_loop;
use std::sync::Arc;

use anysched_programs::{Kernel, argument};
use rustix::thread::{Pid, sched_getaffinity};

use crate::attributes::{Class, set_class, set_cpus, set_nice};
use crate::kernel::Linux;
use crate::machine::refuse;
use crate::process::Process;
use crate::procfs;
use crate::report::value;
use weather::{Storm, Weather};
use worker::{Sight, Worker};

/// How long it is calm at the end, in nanoseconds, if a task waits as long. Under CFS, a tick of
/// 4 ms in `SCHED_IDLE`, with a weight of 3, counts as 1.4 s of each of the others on that CPU.
const CALM: u64 = 12_000_000_000;

/// How long it is calm where each task runs.
const SHORT_CALM: u64 = 1_000_000_000;

/// How often tasks are looked at while it is calm, in nanoseconds.
const LOOK: u64 = 100_000_000;

/// How long tasks may take to end when they are to, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// Above all that the storm does, so that it ends even if no ordinary task runs any more.
const SUPERVISOR: Class = Class::Fifo(10);

/// Runs the program.
pub fn storm() {
    let [duration, calm, spinners, forkers, hotplug, gap, seed] = [
        ("duration_ns", 60_000_000_000),
        ("calm_ns", CALM),
        ("spinners", 6),
        ("forkers", 3),
        ("hotplug", 0),
        ("gap_ns", 10_000_000),
        ("seed", 1),
    ]
    .map(|(name, default)| argument::<Linux>(name, default));
    if duration <= calm {
        refuse(format_args!("`duration_ns` = {duration}: more than {calm} is wanted"));
    }
    if spinners + forkers == 0 {
        refuse("`spinners` = 0, `forkers` = 0: there is nothing for a storm to come over");
    }
    let start = Linux::now();
    let forkers: Vec<Process> = (0..forkers).map(|_| Process::start(fork)).collect();
    supervise(SUPERVISOR);
    let cpus = cpus();
    let storm = Arc::new(Storm::default());
    let mut workers: Vec<Worker> = (0..spinners)
        .map(|number| Worker::start(format!("spinner-{number}"), &storm, spin))
        .collect();
    let mut tasks: Vec<Pid> = workers.iter().map(Worker::id).collect();
    tasks.extend(forkers.iter().map(Process::id));
    let victims = tasks.clone();
    let weather = Weather { storm: &storm, victims: &victims, cpus: &cpus, gap: gap.max(1), seed };
    let (classes, others) = weather.start(hotplug > 0);
    let before = forks();
    Linux::sleep_until(start + duration - calm);
    storm.calms();
    // It is above the policy, and ends; what it does last must not come after what follows.
    classes.await_end(PATIENCE);
    victims.iter().for_each(|victim| restore(*victim, &cpus));
    workers.extend(others);
    tasks.extend(workers.iter().skip(spinners as usize).map(Worker::id));
    let stalled = stalled(&tasks, calm);
    let forks = forks() - before;
    storm.ends();
    workers.iter().for_each(|worker| worker.await_end(PATIENCE));
    forkers.into_iter().for_each(Process::kill);
    supervise(Class::Normal);
    value("forks", forks);
    storm.report();
    value("stalled", stalled);
}

/// Puts the program's own task into a class.
fn supervise(class: Class) {
    if let Err(error) = set_class(None, class) {
        refuse(format_args!("the program's own task cannot be {class:?}: {error}"));
    }
}

/// Tasks that have been created since the machine booted.
fn forks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    procfs::forks(&stat).unwrap_or_else(|| refuse("/proc/stat does not count new tasks"))
}

/// Those that are online.
fn cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(error) => refuse(format_args!("CPUs: {error}")),
    }
}

/// Makes a task ordinary again.
fn restore(task: Pid, cpus: &[usize]) {
    let task = Some(task);
    let restored = set_class(task, Class::Normal)
        .and_then(|()| set_nice(task, 0))
        .and_then(|()| set_cpus(task, cpus));
    if let Err(error) = restored {
        refuse(format_args!("a task of the storm cannot be restored: {error}"));
    }
}

/// How many tasks are ready and get no CPU time while it is calm. Says, for people, which.
fn stalled(tasks: &[Pid], calm: u64) -> u64 {
    let start = Linux::now();
    let mut watched: Vec<_> = tasks.iter().map(|task| (*task, Sight::of(*task))).collect();
    loop {
        Linux::sleep_until(Linux::now() + LOOK);
        watched.retain(|(task, before)| Sight::of(*task).used == before.used);
        let waits = watched.iter().filter(|(task, _)| Sight::of(*task).is_ready);
        let (count, elapsed) = (waits.clone().count() as u64, Linux::now() - start);
        if elapsed >= calm || (count == 0 && elapsed >= SHORT_CALM) {
            waits.for_each(|(task, _)| println!("stalled: {}", worker::seen(*task)));
            return count;
        }
    }
}

/// Computes until all is over. It pauses in between: where QEMU lets CPUs take turns, a turn lasts
/// until the next timer or a pause, and before QEMU 8.1 the CPU after one that pauses for nothing
/// may get no turn for seconds.
fn spin(storm: &Storm) {
    while !storm.is_over() {
        anysched_programs::shift(1000);
        spin_loop();
    }
}

/// Starts processes that end at once, one after the other, until it is killed. It is a process
/// itself: what a fork takes of its memory the threads of the storm would wait for otherwise, and
/// leave a task real-time for as long.
fn fork() {
    let _ = rustix::thread::set_name(c"forker");
    loop {
        Process::start(|| ()).wait();
    }
}
