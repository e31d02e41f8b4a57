//! What the tests of `bfs` and `gfs` share.

use alloc::vec::Vec;

use super::{Place, VirtualDeadlines};
use anysched_core::ids::{CpuId, CpuSet};
use anysched_core::params::TaskParams;
use anysched_core::queue::NONE;
use anysched_core::registry::Policy;
use anysched_core::time::{Span, Time};
use anysched_core::{Enqueue, Machine, Off, TaskId};
use anysched_oracle::drive::Drive;
use anysched_oracle::rig;

rig! {
    pub(crate) struct Rig<Of>(Drive<VirtualDeadlines<Of>>);
}

impl<Of> Rig<Of>
where
    VirtualDeadlines<Of>: Policy,
{
    /// All CPUs idle at 0, exact slices unless `settings` have a tick.
    pub fn new(machine: &str, settings: &[(&str, &str)]) -> Rig<Of> {
        Rig::on(Machine::parse(machine).unwrap(), settings)
    }

    pub fn on(machine: Machine, settings: &[(&str, &str)]) -> Rig<Of> {
        Rig(Drive::scheduler_on(&machine, &[&[("tick", "0")], settings].concat()))
    }

    /// The policy alone.
    pub fn into_policy(self) -> VirtualDeadlines<Of> {
        self.0.policy
    }

    /// A new task, made by what runs on `from` or from outside.
    pub fn create(&mut self, task: u32, params: &TaskParams, from: Option<u16>) {
        self.create_from(task, params, from);
    }

    /// A new task from outside that waits: its CPU 0 and all others are busy.
    pub fn queue(&mut self, task: u32, nice: i8) {
        self.create(task, &TaskParams::nice(nice), None);
    }

    /// A new task that runs on `cpu`, which was idle.
    pub fn start(&mut self, cpu: u16, task: u32, nice: i8) {
        self.create(task, &TaskParams::nice(nice), Some(cpu));
        assert_eq!(self.pick(cpu), Some(task));
        self.kicked();
    }

    /// As many tasks of nice 0 as there are CPUs run, each on the CPU of its number.
    pub fn start_all(&mut self) {
        (0..self.cpus()).for_each(|cpu| self.start(cpu, u32::from(cpu), 0));
    }

    pub fn wake(&mut self, task: u32, prev: u16) {
        self.wake_on(task, prev, None);
    }

    pub fn wake_sync(&mut self, task: u32, prev: u16) {
        self.ready(task, Enqueue::Wakeup { prev: CpuId(prev), sync: true });
    }

    pub fn ready(&mut self, task: u32, why: Enqueue) {
        self.0.ready(task, why, None);
    }

    /// A task that sleeps and whose deadline is that of a new one of this nice value.
    pub fn asleep(&mut self, task: u32, nice: i8, affinity: CpuSet) {
        self.attach(task, &TaskParams { affinity, ..TaskParams::nice(nice) });
        let now = self.now;
        self.policy.refill(TaskId(task), now);
    }

    pub fn pin(&mut self, task: u32, nice: i8, cpus: &str) {
        let affinity = CpuSet::parse(cpus).unwrap();
        self.update(task, &TaskParams { affinity, ..TaskParams::nice(nice) });
    }

    /// The task that `cpu` is given.
    pub fn pick(&mut self, cpu: u16) -> Option<u32> {
        self.pick_task(cpu)
    }

    pub fn pick_slice(&mut self, cpu: u16) -> Option<(u32, Span)> {
        self.0.pick(cpu)
    }

    /// What `cpu` runs after its task was preempted.
    pub fn switch(&mut self, cpu: u16) -> Option<u32> {
        self.next(cpu, Off::Preempted)
    }

    /// A tick on `cpu`; whether it is to pick again.
    pub fn tick(&mut self, cpu: u16) -> bool {
        self.tick_on(cpu)
    }

    pub fn deadline(&self, task: u32) -> i64 {
        self.probe(task, "deadline_ns")
    }

    pub fn left(&self, task: u32) -> i64 {
        self.probe(task, "slice_left_ns")
    }

    /// The timer as the policy asks for it; the time in ms.
    pub fn timer(&mut self) -> u64 {
        self.0.timer();
        self.now.0 / 1_000_000
    }

    /// Per group, how many tasks wait or run there.
    pub fn loads(&self) -> Vec<usize> {
        self.policy.groups.iter().map(|group| group.load()).collect()
    }
}

impl<Of> VirtualDeadlines<Of> {
    /// Checks that what is known of groups is what their CPUs and tasks are, and that whatever
    /// waits in a queue while a CPU of the group is idle has a CPU that is about to pick for it.
    pub(crate) fn check(&self) {
        for (number, group) in self.groups.iter().enumerate() {
            let members = group.members.iter().map(|cpu| &self.cpus[cpu.index()]);
            for (slot, cpu) in members.clone().enumerate() {
                assert_eq!((usize::from(cpu.group), usize::from(cpu.slot)), (number, slot));
            }
            assert_eq!(group.running, members.clone().filter(|cpu| cpu.running != NONE).count());
            assert_eq!(group.high, members.map(|cpu| cpu.high.len()).sum::<usize>());
            let usable = group.members.iter().filter(|&&cpu| self.online.contains(cpu)).count();
            assert_eq!(group.usable, usable);
            for cpu in group.idle.iter() {
                assert!(group.mask.contains(cpu) && self.online.contains(cpu));
                assert_eq!(self.cpus[cpu.index()].running, NONE);
            }
            let mut last = (Time::ZERO, 0);
            for task in self.forest.iter(&group.tree) {
                let (known, key) = (&self.tasks[task], self.forest.key(task));
                assert_eq!((known.place, known.deadline), (Place::Group(number as u16), key.0));
                assert!(last < key && self.may_enter(task, number));
                last = key;
                match self.promises.cpu(task) {
                    Some(cpu) => {
                        assert!(group.mask.contains(cpu) && self.online.contains(cpu));
                        assert_eq!(self.cpus[cpu.index()].running, NONE);
                    }
                    None => assert!(!group.idle.meets(&known.affinity), "{task:?} has no CPU"),
                }
            }
        }
        let waiting: usize = self.groups.iter().map(|group| group.queued()).sum();
        assert_eq!(self.waiting, waiting);
    }
}
