//! What comes over the tasks of the storm.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use anysched_programs::Kernel;
use fastrand::Rng;
use rustix::thread::Pid;

use super::worker::Worker;
use crate::attributes::{Class, set_class, set_cpus, set_nice};
use crate::kernel::Linux;
use crate::report::value;

/// CPUs come and go at the pace of other changes divided by this.
const HOTPLUG_GAPS: u64 = 10;

/// Above real-time tasks of the storm, which would keep it from ending what it has begun.
const ABOVE: Class = Class::Fifo(2);

const RAGING: u8 = 0;
const CALM: u8 = 1;
const OVER: u8 = 2;

/// How far the storm is, and what it has done.
#[derive(Default)]
pub struct Storm {
    phase: AtomicU8,
    affinity_changes: AtomicU64,
    nice_changes: AtomicU64,
    policy_changes: AtomicU64,
    hotplugs: AtomicU64,
}

impl Storm {
    /// Nothing changes from here on.
    pub fn calms(&self) {
        self.phase.store(CALM, Release);
    }

    /// All tasks are to end.
    pub fn ends(&self) {
        self.phase.store(OVER, Release);
    }

    /// Whether all tasks are to end.
    pub fn is_over(&self) -> bool {
        self.phase.load(Acquire) == OVER
    }

    /// Says what it has done.
    pub fn report(&self) {
        for (name, count) in [
            ("affinity_changes", &self.affinity_changes),
            ("nice_changes", &self.nice_changes),
            ("policy_changes", &self.policy_changes),
            ("hotplugs", &self.hotplugs),
        ] {
            value(name, count.load(Relaxed));
        }
    }

    /// Does something as long as the storm rages, with pauses of at most `gap` nanoseconds;
    /// `change` returns how many changes it has made.
    fn rage(
        &self,
        gap: u64,
        rng: &mut Rng,
        count: &AtomicU64,
        mut change: impl FnMut(&mut Rng) -> u64,
    ) {
        while self.phase.load(Acquire) == RAGING {
            count.fetch_add(change(rng), Relaxed);
            pause(gap, rng);
        }
    }
}

/// What is needed to make it.
pub struct Weather<'a> {
    /// Its course.
    pub storm: &'a Arc<Storm>,
    /// The tasks that it comes over.
    pub victims: &'a [Pid],
    /// CPUs of the machine.
    pub cpus: &'a [usize],
    /// The longest time between two changes of a kind, in nanoseconds, 1 at least.
    pub gap: u64,
    /// What chance begins with.
    pub seed: u64,
}

impl Weather<'_> {
    /// Starts the threads that make it: that which changes scheduling classes, and the others.
    pub fn start(&self, hotplug: bool) -> (Worker, Vec<Worker>) {
        let gap = self.gap;
        let hotplug_gap = gap.saturating_mul(HOTPLUG_GAPS);
        let classes = self.worker("classes", 1, move |storm, victims, _, rng| {
            storm.rage(gap, rng, &storm.policy_changes, |rng| {
                change_class(pick(victims, rng), gap, rng)
            });
        });
        let mut others = vec![
            self.worker("affinity", 2, move |storm, victims, cpus, rng| {
                storm.rage(gap, rng, &storm.affinity_changes, |rng| {
                    let count = rng.usize(1..=cpus.len());
                    let some = rng.choose_multiple(cpus.iter().copied(), count);
                    made(set_cpus(pick(victims, rng), &some))
                });
            }),
            self.worker("nice", 3, move |storm, victims, _, rng| {
                storm.rage(gap, rng, &storm.nice_changes, |rng| {
                    made(set_nice(pick(victims, rng), rng.i32(-20..=19)))
                });
            }),
        ];
        if hotplug {
            others.push(self.worker("hotplug", 4, move |storm, _, cpus, rng| {
                storm.rage(hotplug_gap, rng, &storm.hotplugs, |rng| {
                    hotplug_one(cpus, hotplug_gap, rng)
                });
            }));
        }
        (classes, others)
    }

    fn worker(
        &self,
        name: &str,
        stream: u64,
        body: impl FnOnce(&Storm, &[Pid], &[usize], &mut Rng) + Send + 'static,
    ) -> Worker {
        let (victims, cpus) = (self.victims.to_vec(), self.cpus.to_vec());
        let mut rng = Rng::with_seed(self.seed.wrapping_mul(8).wrapping_add(stream));
        Worker::start(name.into(), self.storm, move |storm| {
            // It may not, and then does what it can.
            let _ = set_class(None, ABOVE);
            body(storm, &victims, &cpus, &mut rng);
        })
    }
}

fn pause(longest: u64, rng: &mut Rng) {
    Linux::sleep_until(Linux::now() + rng.u64(1..=longest));
}

fn pick(victims: &[Pid], rng: &mut Rng) -> Option<Pid> {
    rng.choice(victims).copied()
}

/// How many changes this was.
fn made(changed: std::io::Result<()>) -> u64 {
    u64::from(changed.is_ok())
}

/// Makes a task a real-time one, and soon after an ordinary one of any kind.
fn change_class(victim: Option<Pid>, gap: u64, rng: &mut Rng) -> u64 {
    let above = if rng.bool() { Class::Fifo(1) } else { Class::RoundRobin(1) };
    let ordinary = [Class::Normal, Class::Batch, Class::Idle];
    let first = made(set_class(victim, above));
    pause(gap, rng);
    first + made(set_class(victim, ordinary[rng.usize(..ordinary.len())]))
}

/// Takes a CPU other than the first away, and brings it back.
fn hotplug_one(cpus: &[usize], gap: u64, rng: &mut Rng) -> u64 {
    let Some(cpu) = rng.choice(cpus.get(1..).unwrap_or_default()) else { return 0 };
    let switch = |to: &str| std::fs::write(format!("/sys/devices/system/cpu/cpu{cpu}/online"), to);
    let off = made(switch("0"));
    pause(gap, rng);
    off + made(switch("1"))
}
