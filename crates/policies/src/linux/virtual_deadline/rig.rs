//! Drives `bfs` and `gfs` call by call: for their tests.

use alloc::vec::Vec;

use super::VirtualDeadlines;
use crate::drive;
use anysched_core::ids::{CpuId, CpuMask, CpuSet, TaskId};
use anysched_core::params::TaskParams;
use anysched_core::registry::Policy;
use anysched_core::time::{Span, Time};
use anysched_core::{Arrival, Cx, Enqueue, Machine, Off, Params, Scheduler, Work};

/// A policy, the time it believes in, and what each CPU runs.
pub(crate) struct Rig<Of> {
    pub policy: VirtualDeadlines<Of>,
    pub now: Time,
    kicks: CpuMask,
    /// Per CPU, its task and since when that has not been charged.
    runs: Vec<Option<(u32, Time)>>,
    /// What the last call did.
    pub work: Work,
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
        let mut params = <VirtualDeadlines<Of> as Policy>::Params::default();
        params.set("tick", "0").unwrap();
        settings.iter().for_each(|(name, value)| params.set(name, value).unwrap());
        let policy = VirtualDeadlines::<Of>::build(&machine, machine.cpus(), &params).unwrap();
        Rig {
            policy,
            now: Time::ZERO,
            kicks: CpuMask::EMPTY,
            runs: alloc::vec![None; machine.cpus()],
            work: Work::default(),
        }
    }

    pub fn call<R>(&mut self, call: impl FnOnce(&mut VirtualDeadlines<Of>, &mut Cx<'_>) -> R) -> R {
        let mut cx = Cx::new(self.now, &mut self.kicks);
        let answer = call(&mut self.policy, &mut cx);
        self.work = cx.work;
        answer
    }

    pub fn at(&mut self, ms: u64) {
        self.now = Time::ZERO + Span::from_ms(ms);
    }

    pub fn pass_us(&mut self, us: u64) {
        self.now += Span::from_us(us);
    }

    /// A new task, made by what runs on `from` or from outside.
    pub fn create(&mut self, task: u32, params: &TaskParams, from: Option<u16>) {
        let arrival = Arrival { from: from.map(CpuId), ..Arrival::because(Enqueue::New) };
        self.call(|policy, cx| {
            policy.attach(cx, TaskId(task), params);
            policy.enqueue(cx, TaskId(task), arrival);
        });
    }

    /// A new task from outside that waits: its CPU 0 and all others are busy.
    pub fn queue(&mut self, task: u32, nice: i8) {
        self.create(task, &TaskParams::nice(nice), None);
    }

    /// A new task that runs on `cpu`, which was idle.
    pub fn start(&mut self, cpu: u16, task: u32, nice: i8) {
        self.create(task, &TaskParams::nice(nice), Some(cpu));
        assert_eq!(self.pick(cpu), Some(task));
        self.kicks.clear();
    }

    /// As many tasks of nice 0 as there are CPUs run, each on the CPU of its number.
    pub fn start_all(&mut self) {
        (0..self.runs.len() as u16).for_each(|cpu| self.start(cpu, u32::from(cpu), 0));
    }

    pub fn wake(&mut self, task: u32, prev: u16) {
        self.ready(task, Enqueue::Wakeup { prev: CpuId(prev), sync: false });
    }

    pub fn wake_sync(&mut self, task: u32, prev: u16) {
        self.ready(task, Enqueue::Wakeup { prev: CpuId(prev), sync: true });
    }

    pub fn ready(&mut self, task: u32, why: Enqueue) {
        self.call(|policy, cx| policy.enqueue(cx, TaskId(task), Arrival::because(why)));
    }

    /// A task that sleeps and whose deadline is that of a new one of this nice value.
    pub fn asleep(&mut self, task: u32, nice: i8, affinity: CpuSet) {
        self.call(|policy, cx| {
            policy.attach(cx, TaskId(task), &TaskParams { affinity, ..TaskParams::nice(nice) });
            policy.refill(TaskId(task), cx.now);
        });
    }

    pub fn update(&mut self, task: u32, params: &TaskParams) {
        self.call(|policy, cx| policy.update(cx, TaskId(task), params));
    }

    pub fn pin(&mut self, task: u32, nice: i8, cpus: &str) {
        let affinity = CpuSet::parse(cpus).unwrap();
        self.update(task, &TaskParams { affinity, ..TaskParams::nice(nice) });
    }

    pub fn online(&mut self, cpu: u16, online: bool) {
        self.call(|policy, cx| policy.set_online(cx, CpuId(cpu), online));
    }

    /// The task that `cpu` is given.
    pub fn pick(&mut self, cpu: u16) -> Option<u32> {
        self.pick_slice(cpu).map(|(task, _)| task)
    }

    pub fn pick_slice(&mut self, cpu: u16) -> Option<(u32, Span)> {
        let pick = self.call(|policy, cx| policy.pick_next(cx, CpuId(cpu)))?;
        self.runs[usize::from(cpu)] = Some((pick.task.0, self.now));
        Some((pick.task.0, pick.slice))
    }

    /// Takes its task off `cpu`, charged for the time since it was last charged.
    pub fn off(&mut self, cpu: u16, why: Off) {
        let (task, since) = self.runs[usize::from(cpu)].take().expect("it runs a task");
        let ran = self.now - since;
        self.call(|policy, cx| policy.put_prev(cx, CpuId(cpu), TaskId(task), ran, why));
    }

    /// What `cpu` runs after its task was preempted.
    pub fn switch(&mut self, cpu: u16) -> Option<u32> {
        self.off(cpu, Off::Preempted);
        self.pick(cpu)
    }

    /// A tick on `cpu`; whether it is to pick again.
    pub fn tick(&mut self, cpu: u16) -> bool {
        self.charge_tick(cpu);
        self.kicked() == [cpu]
    }

    /// A tick on `cpu`; kicks are left where they are.
    pub fn charge_tick(&mut self, cpu: u16) {
        let now = self.now;
        let (task, since) = self.runs[usize::from(cpu)].as_mut().expect("it runs a task");
        let (task, ran) = (TaskId(*task), now - core::mem::replace(since, now));
        self.call(|policy, cx| policy.tick(cx, CpuId(cpu), task, ran));
    }

    /// The CPUs kicked since the last time of asking.
    pub fn kicked(&mut self) -> Vec<u16> {
        drive::kicked(&mut self.kicks)
    }

    /// Whether `cpu` has been kicked and has not answered.
    pub fn is_kicked(&self, cpu: u16) -> bool {
        self.kicks.contains(CpuId(cpu))
    }

    /// `cpu` has picked.
    pub fn answered(&mut self, cpu: u16) {
        self.kicks.remove(CpuId(cpu));
    }

    /// `deadline_ns` of [`Scheduler::probe`].
    pub fn deadline(&self, task: u32) -> i64 {
        drive::probe(&self.policy, task, "deadline_ns")
    }

    /// `slice_left_ns` of [`Scheduler::probe`].
    pub fn left(&self, task: u32) -> i64 {
        drive::probe(&self.policy, task, "slice_left_ns")
    }

    /// The timer as the policy asks for it; the time in ms.
    pub fn timer(&mut self) -> u64 {
        self.now = self.policy.next_timer().expect("it wants a timer");
        self.call(|policy, cx| policy.timer(cx));
        self.now.0 / 1_000_000
    }

    /// Per group, how many tasks wait or run there.
    pub fn loads(&self) -> Vec<usize> {
        self.policy.groups.iter().map(|group| group.load()).collect()
    }
}
