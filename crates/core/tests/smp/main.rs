//! Tests of layout, placement, kicks, pulling and balancing, and the host that they share.

mod balance;
mod idle;
mod place;
mod pull;

use anysched_core::registry::build_rule;
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, Enqueue, Machine, Off, RunQueue, Scheduler, Smp, Span,
    TaskId, TaskParams, Time,
};

/// A host that does what it is told and answers kicks when it is told to.
pub struct Rig<Q> {
    pub smp: Smp<Q>,
    pub now: Time,
    kicks: CpuMask,
    /// Per CPU, what it runs and since when.
    running: Vec<Option<(TaskId, Time)>>,
}

impl<Q: RunQueue> Rig<Q> {
    /// One runqueue per CPU unless `settings` say otherwise.
    pub fn new(machine: &str, settings: &[(&str, &str)]) -> Rig<Q> {
        let machine = Machine::parse(machine).unwrap();
        let settings = [&[("layout", "per-cpu")], settings].concat();
        Rig {
            smp: build_rule(&machine, &settings).unwrap(),
            now: Time::ZERO,
            kicks: CpuMask::EMPTY,
            running: vec![None; machine.cpus()],
        }
    }

    pub fn call<R>(&mut self, call: impl FnOnce(&mut Smp<Q>, &mut Cx<'_>) -> R) -> R {
        call(&mut self.smp, &mut Cx::new(self.now, &mut self.kicks))
    }

    pub fn attach(&mut self, task: u32, params: &TaskParams) {
        self.call(|smp, cx| smp.attach(cx, TaskId(task), params));
    }

    /// Attaches `task`, created on CPU `from`, and makes it ready.
    pub fn create(&mut self, task: u32, from: u16) {
        self.create_with(task, from, &TaskParams::default());
    }

    pub fn create_with(&mut self, task: u32, from: u16, params: &TaskParams) {
        self.attach(task, params);
        self.enqueue(task, Enqueue::New, Some(from));
    }

    pub fn wake(&mut self, task: u32, prev: u16, from: Option<u16>) {
        self.enqueue(task, Enqueue::Wakeup { prev: CpuId(prev), sync: false }, from);
    }

    pub fn enqueue(&mut self, task: u32, why: Enqueue, from: Option<u16>) {
        let arrival = Arrival { from: from.map(CpuId), ..Arrival::because(why) };
        self.call(|smp, cx| smp.enqueue(cx, TaskId(task), arrival));
    }

    pub fn pick(&mut self, cpu: u16) -> Option<u32> {
        assert!(self.running[usize::from(cpu)].is_none());
        self.kicks.remove(CpuId(cpu));
        let task = self.call(|smp, cx| smp.pick_next(cx, CpuId(cpu)))?.task;
        self.running[usize::from(cpu)] = Some((task, self.now));
        Some(task.0)
    }

    pub fn put(&mut self, cpu: u16, why: Off) -> u32 {
        let (task, since) = self.running[usize::from(cpu)].take().expect("a task runs");
        let ran = self.now - since;
        self.call(|smp, cx| smp.put_prev(cx, CpuId(cpu), task, ran, why));
        task.0
    }

    /// The task on `cpu` stops as `why`, and `cpu` picks again.
    pub fn next(&mut self, cpu: u16, why: Off) -> Option<u32> {
        self.put(cpu, why);
        self.pick(cpu)
    }

    /// Answers kicks, the lowest CPU first, until there are none.
    pub fn settle(&mut self) {
        while let Some(cpu) = self.kicks.take_lowest() {
            if self.running(cpu.0).is_some() {
                self.put(cpu.0, Off::Preempted);
            }
            self.pick(cpu.0);
        }
    }

    /// The CPUs kicked and not yet answered.
    pub fn kicked(&self) -> Vec<u16> {
        self.kicks.iter().map(|cpu| cpu.0).collect()
    }

    pub fn running(&self, cpu: u16) -> Option<u32> {
        self.running[usize::from(cpu)].map(|(task, _)| task.0)
    }

    /// How many tasks wait in the runqueue of each CPU.
    pub fn waiting(&self) -> Vec<usize> {
        (0..self.smp.queues()).map(|queue| self.smp.rule().len(queue)).collect()
    }

    /// The runqueue that `task` is in, or was last in.
    pub fn queue(&self, task: u32) -> i64 {
        let mut queue = -1;
        self.smp.probe(TaskId(task), &mut |name, value| {
            if name == "runqueue" {
                queue = value;
            }
        });
        queue
    }

    /// Lets time pass until `us` microseconds, running the timer when it is due.
    pub fn pass_until(&mut self, us: u64) {
        let until = Time::ZERO + Span::from_us(us);
        while let Some(due) = self.smp.next_timer().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.call(|smp, cx| smp.timer(cx));
            self.settle();
        }
        self.now = until;
    }

    pub fn set_online(&mut self, cpu: u16, online: bool) {
        self.call(|smp, cx| smp.set_online(cx, CpuId(cpu), online));
        if !online && self.running(cpu).is_some() {
            self.put(cpu, Off::Preempted);
        }
    }
}

/// Parameters of a task that may only run on `cpus`.
pub fn pinned(cpus: &str) -> TaskParams {
    TaskParams { affinity: CpuSet::parse(cpus).unwrap(), ..TaskParams::default() }
}
