//! What `bfs` and `gfs` share: tasks with virtual deadlines, in runqueues that groups of CPUs
//! serve.
//!
//! Source: BFS v0.427 for Linux 3.7, `kernel/sched/bfs.c`; GFS (Cao Yue, Gu Naijie 2015), which
//! takes over its deadlines.
//!
//! - A task has a slice of `rr_interval` and a deadline. Both are kept when it blocks, wakes,
//!   yields or is preempted. When it is taken off a CPU with less than 100us of its slice left, it
//!   gets a new slice and the deadline now + ratio · rr_interval / 128; the ratio is 128 for nice
//!   -20 and grows by a tenth with each nice, rounded down.
//! - A new nice value moves the deadline as if it had been set with that, unless the task runs;
//!   then it is seen at the next refill, and the CPU picks again if it is a worse one.
//! - Order key: (deadline, arrival number).
//! - Slices end at a tick: at the one that finds less than 100us left, or, in a CPU that has last
//!   picked in the first half of a tick, at most half a tick (`dither`). Without a tick they end
//!   exactly.
//! - A task that becomes ready goes to an idle CPU. If there is none, it preempts one that runs
//!   something of later deadline.
//!
//! Which CPUs share a runqueue, where woken tasks go, whom they preempt and which idle CPU they
//! get is what tells the policies apart: `Rules`.
//!
//! For both: a CPU that has been kicked is not idle any more and counts as running what it was
//! kicked for, as if it had been there at once. Linux kicks the same CPU again before the first
//! kick has arrived.

mod balance;
mod grouping;
mod kick;
mod queue;
mod regroup;
#[cfg(test)]
pub(crate) mod rig;
mod standing;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;

pub(crate) use self::balance::{Balancer, Balancing};
pub use self::grouping::Grouping;
use self::queue::Group;
use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuMask, CpuSet, TaskId};
use anysched_core::neighbours::{Idleness, Neighbours};
use anysched_core::params::{NICE_WEIGHTS, ParamError, TaskParams};
use anysched_core::promise::Promises;
use anysched_core::queue::{Forest, Links, NONE, Tree};
use anysched_core::registry::Bound;
use anysched_core::time::{Span, Time};
use anysched_core::{
    Arrival, Canon, Cx, Enqueue, Machine, Off, PerTask, Pick, Scheduler, canon_fields,
};

/// With less than this left of its slice, a task is given a new one (`RESCHED_US`).
pub(crate) const LEAST_SLICE: Span = Span::from_us(100);

/// Deadlines of nice -20 … 19 relative to the slice, in 1/128 (`prio_ratios`).
pub const RATIOS: [u32; 40] = {
    let mut ratios = [128; 40];
    let mut index = 1;
    while index < ratios.len() {
        ratios[index] = ratios[index - 1] * 11 / 10;
        index += 1;
    }
    ratios
};

/// A task whose deadline has passed is before all that get one from then on; the deadline of nice 5
/// is that far away. Each other task may have an earlier one at that moment, and one slice.
pub(crate) fn longest_wait(rr_interval: Span) -> Bound {
    let fixed = rr_interval.scaled(RATIOS[25].into(), 128);
    Bound { fixed, per_rival: rr_interval }
}

/// The ratio of the nice value whose weight is nearest to `weight`.
fn ratio_of(weight: u32) -> u32 {
    let off = |index: &usize| NICE_WEIGHTS[*index].abs_diff(weight);
    RATIOS[(0..RATIOS.len()).min_by_key(off).unwrap_or(20)]
}

/// What tells the policies apart.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub rr_interval: Span,
    /// Zero: slices end exactly.
    pub tick: Span,
    pub dither: bool,
    /// A new task shares its creator's slice and has its deadline.
    pub fork_shares: bool,
    /// If a new task finds no idle CPU, its creator's CPU picks again; otherwise it is placed as
    /// if it came from outside.
    pub creator_picks: bool,
    /// What is preempted stays with its CPU for a while.
    pub sticky: bool,
    /// Other CPUs leave it there altogether.
    pub scaling: bool,
    /// Runqueues are lists that picks look through, not trees.
    pub list: bool,
    /// A pick is charged for each task that waits.
    pub pick_scans: bool,
    /// A woken task waits at the CPU that is to run it, before those of its group.
    pub high: bool,
    /// A CPU with nothing else takes from such lists of its group.
    pub steal_high: bool,
    /// An idle CPU is chosen by how idle its core and cache are; otherwise the nearest.
    pub ranked: bool,
    /// Among CPUs that run something later, the nearest one is preempted; otherwise the one that
    /// runs the latest.
    pub nearest: bool,
    /// There is a parameter `grouping`, which can be changed at run time.
    pub regroups: bool,
}

/// See the [module documentation](self). `Of` is the policy.
#[derive(Debug)]
pub struct VirtualDeadlines<Of> {
    pub(crate) rules: Rules,
    pub(crate) machine: Machine,
    neighbours: Neighbours,
    pub(crate) groups: Vec<Group>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) tasks: PerTask<Task>,
    pub(crate) forest: Forest<Key>,
    links: Links,
    /// Arrival number of the next task that enters a queue.
    arrivals: u64,
    pub(crate) online: CpuMask,
    /// Kept only where idle CPUs are ranked.
    idleness: Box<Idleness>,
    /// How many tasks wait in queues of groups.
    pub(crate) waiting: usize,
    /// How many of them are strays.
    strays: usize,
    /// Attached tasks that may not run everywhere.
    restricted: usize,
    promises: Promises,
    balancer: Box<Balancer>,
    of: PhantomData<Of>,
}

/// Deadline and arrival number.
type Key = (Time, u64);

#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub affinity: CpuSet,
    pub deadline: Time,
    /// What is left of its slice, as of the last charge.
    left: Span,
    /// Of its nice value.
    ratio: u32,
    /// Where it runs or last ran.
    pub cpu: u16,
    place: Place,
    /// It was preempted on its CPU, which should have it again.
    sticky: bool,
    /// It waits among those for which that is so.
    stuck: bool,
    /// It does, but its CPU has another one to stick to.
    stray: bool,
}

const NEW_TASK: Task = Task {
    affinity: CpuSet::All,
    deadline: Time::ZERO,
    left: Span::ZERO,
    ratio: RATIOS[20],
    cpu: 0,
    place: Place::Away,
    sticky: false,
    stuck: false,
    stray: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Away,
    /// In the queue of this group.
    Group(u16),
    /// At this CPU, before those of its group.
    High(u16),
    Running,
}

#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    pub group: u16,
    /// Its place among the CPUs of its group.
    slot: u16,
    running: u32,
    /// It has been kicked, or its task has been taken off, and it has not picked since.
    told: bool,
    /// The task that was last preempted here.
    sticky: u32,
    /// Woken tasks that are to run here.
    high: Tree,
    last_tick: Time,
    /// Slices that end in the second half of the next tick end at that tick.
    dither: bool,
}

/// The groups of `machine` made of these sets, which divide it.
fn made_of(machine: &Machine, sets: &[CpuSet]) -> Vec<Group> {
    let group = |set: &CpuSet| Group::new(machine.cpu_ids().filter(|&cpu| set.contains(cpu)));
    sets.iter().map(group).collect()
}

/// The group of `cpu`, and its place there.
fn place_in(groups: &[Group], cpu: CpuId) -> (u16, u16) {
    let slots = groups.iter().map(|group| group.slot(cpu)).enumerate();
    let found = slots.filter_map(|(group, slot)| Some((group as u16, slot? as u16))).next();
    found.unwrap_or_default()
}

impl<Of> VirtualDeadlines<Of> {
    /// The scheduler of `machine` with a runqueue for each of `groups`, which divide it.
    // In a frame of its own: a kernel's stack may have 8 KiB.
    #[inline(never)]
    pub(crate) fn with_rules(
        machine: &Machine,
        rules: Rules,
        groups: &[CpuSet],
        balancer: Box<Balancer>,
    ) -> Self {
        let neighbours = Neighbours::new(machine);
        let groups = made_of(machine, groups);
        let cpu = |cpu: CpuId| {
            let (group, slot) = place_in(&groups, cpu);
            Cpu {
                group,
                slot,
                running: NONE,
                told: false,
                sticky: NONE,
                high: Tree::default(),
                last_tick: Time::ZERO,
                dither: false,
            }
        };
        VirtualDeadlines {
            cpus: machine.cpu_ids().map(cpu).collect(),
            idleness: Box::new(Idleness::new(machine)),
            rules,
            machine: machine.clone(),
            neighbours,
            groups,
            tasks: PerTask::new(),
            forest: Forest::default(),
            links: Links::default(),
            arrivals: 0,
            online: CpuMask::first(machine.cpus()),
            waiting: 0,
            strays: 0,
            restricted: 0,
            promises: Promises::new(machine.cpus()),
            balancer,
            of: PhantomData,
        }
    }

    fn group_of(&self, cpu: CpuId) -> usize {
        usize::from(self.cpus[cpu.index()].group)
    }

    /// A new slice and deadline.
    fn refill(&mut self, task: TaskId, now: Time) {
        let rr_interval = self.rules.rr_interval;
        let task = &mut self.tasks[task];
        task.left = rr_interval;
        task.deadline = now + rr_interval.scaled(u64::from(task.ratio), 128);
    }

    /// `task`, which does not run, has another ratio than `old` from now on: its deadline moves as
    /// if it had been set with that, and it enters its queue anew.
    fn shift_deadline(&mut self, cx: &mut Cx<'_>, task: TaskId, old: u32) {
        let rr_interval = self.rules.rr_interval;
        let diff = |ratio: u32| rr_interval.scaled(u64::from(ratio), 128);
        let Task { place, ratio, deadline, .. } = self.tasks[task];
        let promise = self.promises.release(task);
        self.take_out(cx, task);
        let start = deadline.0.saturating_sub(diff(old).0);
        self.tasks[task].deadline = Time(start) + diff(ratio);
        match place {
            Place::High(cpu) => self.push_high(cx, task, CpuId(cpu)),
            Place::Group(group) => {
                self.push(cx, task, usize::from(group));
                if let Some(cpu) = promise {
                    self.promises.promise(task, cpu);
                }
            }
            Place::Away | Place::Running => {}
        }
    }

    /// Whether some usable CPU of `group` may run `task`.
    pub(crate) fn may_enter(&self, task: TaskId, group: usize) -> bool {
        let affinity = &self.tasks[task].affinity;
        let members = &self.groups[group].mask;
        members.lowest_among(|word| self.online.word(word) & affinity.word(word)).is_some()
    }

    /// The group in which `task` is placed that last ran on `near`, or was created there: that of
    /// `near`, or of the nearest CPU that it may use, the lowest of equals.
    fn group_for(&self, task: TaskId, near: CpuId) -> usize {
        let home = self.group_of(near);
        if self.groups.len() == 1 || self.may_enter(task, home) {
            return home;
        }
        let affinity = &self.tasks[task].affinity;
        let usable = self.online.iter().filter(|&cpu| affinity.contains(cpu));
        let nearest = usable.min_by_key(|&cpu| (self.machine.distance(near, cpu), cpu));
        nearest.map_or(home, |cpu| self.group_of(cpu))
    }

    /// `task` gets half of what the task `creator` has left, if that is enough for both.
    fn share_slice(&mut self, task: TaskId, creator: u32, now: Time) {
        let creator = &mut self.tasks[TaskId(creator)];
        if creator.left < LEAST_SLICE + LEAST_SLICE {
            creator.left = Span::ZERO;
            return self.refill(task, now);
        }
        creator.left = Span(creator.left.0 / 2);
        let (left, deadline) = (creator.left, creator.deadline);
        let task = &mut self.tasks[task];
        (task.left, task.deadline) = (left, deadline);
    }

    /// A new `task` is ready.
    fn enter_new(&mut self, cx: &mut Cx<'_>, task: TaskId, from: Option<CpuId>) {
        let near = from.unwrap_or(CpuId(0));
        self.tasks[task].cpu = near.0;
        let creator = from.map_or(NONE, |cpu| self.cpus[cpu.index()].running);
        if creator != NONE && self.rules.fork_shares {
            self.share_slice(task, creator, cx.now);
        } else {
            self.refill(task, cx.now);
        }
        let group = self.group_for(task, near);
        self.push(cx, task, group);
        if self.kick_idle(cx, task, group) {
            return;
        }
        if creator != NONE && self.rules.creator_picks {
            self.tell(cx, near);
        } else {
            self.preempt_latest(cx, task, group);
        }
    }

    /// A woken `task` is ready.
    fn enter_woken(&mut self, cx: &mut Cx<'_>, task: TaskId, sync: bool) {
        self.tasks[task].sticky = false;
        let near = CpuId(self.tasks[task].cpu);
        let group = self.group_for(task, near);
        if self.rules.high {
            let target = self.find_idle(task, group, near);
            let busy = || if sync { None } else { self.find_later(task, group) };
            if let Some(cpu) = target.or_else(busy) {
                return self.push_high(cx, task, cpu);
            }
            return self.push(cx, task, group);
        }
        self.push(cx, task, group);
        if !self.kick_idle(cx, task, group) && !sync {
            if self.rules.nearest {
                if let Some(cpu) = self.find_later(task, group) {
                    self.stand_in(cx, cpu, task);
                }
            } else {
                self.preempt_latest(cx, task, group);
            }
        }
    }

    /// `task`, which waits, may not wait where it does.
    fn rehome(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.take_out(cx, task);
        self.settle(cx, task);
    }

    /// `task` waits in the group for it, and an idle CPU is told of it.
    fn settle(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let near = CpuId(self.tasks[task].cpu);
        let group = self.group_for(task, near);
        self.push(cx, task, group);
        if !self.kick_idle(cx, task, group) {
            self.preempt_latest(cx, task, group);
        }
    }

    /// `task`, which was preempted on `cpu` while others wait, is to run there again; the one
    /// before it is to run there no longer.
    fn stick(&mut self, cx: &mut Cx<'_>, task: TaskId, cpu: CpuId) {
        if self.cpus[cpu.index()].sticky != task.0 {
            self.unstick(cx, cpu);
            self.cpus[cpu.index()].sticky = task.0;
        }
        self.tasks[task].sticky = true;
    }

    /// The task that was last preempted on `cpu` may run anywhere.
    fn unstick(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let task = core::mem::replace(&mut self.cpus[cpu.index()].sticky, NONE);
        if task != NONE
            && core::mem::take(&mut self.tasks[TaskId(task)].sticky)
            && let Place::Group(group) = self.tasks[TaskId(task)].place
        {
            self.free(TaskId(task), usize::from(group));
            self.kick_idle_near(cx, TaskId(task), usize::from(group), cpu);
        }
    }

    /// The next task of `cpu`, taken out of where it waits.
    fn take(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<TaskId> {
        let Cpu { high, group, .. } = self.cpus[cpu.index()];
        let group = usize::from(group);
        if let Some(task) = high.first() {
            self.take_out(cx, task);
            return Some(task);
        }
        if let Some(task) = self.pop(cx, cpu) {
            return Some(task);
        }
        if self.balance_idle(cx, cpu)
            && let Some(task) = self.pop(cx, cpu)
        {
            return Some(task);
        }
        if !self.rules.steal_high {
            return None;
        }
        let waiting = self.groups[group].members.iter().flat_map(|&other| {
            let high = &self.cpus[other.index()].high;
            self.forest.iter(high).find(|&task| self.tasks[task].affinity.contains(cpu))
        });
        let task = waiting.min_by_key(|&task| self.forest.key(task))?;
        self.take_out(cx, task);
        Some(task)
    }

    /// `cpu`, which is usable and runs nothing, has nothing to pick.
    fn rest(&mut self, cpu: CpuId) {
        self.stand(cpu, Time::ZERO);
        self.set_idle(cpu, true);
        self.hurry(cpu);
    }
}

impl<Of> Scheduler for VirtualDeadlines<Of> {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.tasks.grow(task, |_| NEW_TASK);
        self.forest.attach(task);
        self.links.attach(task);
        self.promises.attach(task);
        self.restricted += usize::from(!params.affinity.is_all());
        self.tasks[task] =
            Task { affinity: params.affinity.clone(), ratio: ratio_of(params.weight), ..NEW_TASK };
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        let gone = core::mem::replace(&mut self.tasks[task], NEW_TASK);
        self.restricted -= usize::from(!gone.affinity.is_all());
        // It may have stuck to several in turn.
        for cpu in self.cpus.iter_mut().filter(|cpu| cpu.sticky == task.0) {
            cpu.sticky = NONE;
        }
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let known = &mut self.tasks[task];
        self.restricted -= usize::from(!known.affinity.is_all());
        self.restricted += usize::from(!params.affinity.is_all());
        let moves = known.affinity != params.affinity;
        known.affinity = params.affinity.clone();
        let (place, cpu) = (known.place, CpuId(known.cpu));
        let old = core::mem::replace(&mut known.ratio, ratio_of(params.weight));
        let (better, worse) = (known.ratio < old, known.ratio > old);
        if moves || better {
            known.sticky = false;
            if let Place::Group(group) = place {
                self.free(task, usize::from(group));
            }
        }
        if (better || worse) && place != Place::Running {
            self.shift_deadline(cx, task, old);
        }
        match place {
            Place::Away => {}
            Place::Running if params.affinity.contains(cpu) && !worse => {}
            Place::Running => self.tell(cx, cpu),
            Place::High(at) if params.affinity.contains(CpuId(at)) => {}
            Place::High(_) => self.rehome(cx, task),
            Place::Group(group) if self.may_enter(task, usize::from(group)) => {
                let group = usize::from(group);
                if !self.is_promised_allowed(task)
                    && !self.kick_idle(cx, task, group)
                    && (moves || better)
                {
                    self.preempt_latest(cx, task, group);
                }
            }
            Place::Group(_) => self.rehome(cx, task),
        }
    }

    fn check_param(&self, name: &str, text: &str) -> Result<(), ParamError> {
        self.new_groups(name, text).map(drop)
    }

    fn set_param(&mut self, cx: &mut Cx<'_>, name: &str, text: &str) {
        if let Ok(groups) = self.new_groups(name, text) {
            self.regroup(cx, &groups);
        }
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        let group = self.group_of(cpu);
        self.balancer.note(group);
        if online {
            self.groups[group].usable += usize::from(!self.online.contains(cpu));
            self.online.insert(cpu);
            return self.tell(cx, cpu);
        }
        self.groups[group].usable -= usize::from(self.online.contains(cpu));
        self.online.remove(cpu);
        self.set_idle(cpu, false);
        self.stand(cpu, Time::ZERO);
        self.cpus[cpu.index()].told = false;
        self.unstick(cx, cpu);
        self.hand_on(cx, cpu, None);
        while let Some(task) = self.cpus[cpu.index()].high.first() {
            self.rehome(cx, task);
        }
        while let Some(task) = self.stranded(group) {
            self.rehome(cx, task);
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        match arrival.why {
            Enqueue::New => self.enter_new(cx, task, arrival.from),
            Enqueue::Wakeup { prev, sync } => {
                self.tasks[task].cpu = prev.0;
                self.enter_woken(cx, task, sync);
            }
            Enqueue::Resumed { prev } => {
                self.tasks[task].cpu = prev.0;
                let group = self.group_for(task, prev);
                self.push(cx, task, group);
                self.kick_idle(cx, task, group);
            }
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.promises.withdraw(task);
        self.take_out(cx, task);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        self.cpus[cpu.index()].told = false;
        let online = self.online.contains(cpu);
        let task = if online { self.take(cx, cpu) } else { None };
        self.hand_on(cx, cpu, task);
        let Some(task) = task else {
            if online {
                self.rest(cpu);
            }
            return None;
        };
        self.set_idle(cpu, false);
        let half = self.rules.tick.scaled(1, 2);
        let state = &mut self.cpus[cpu.index()];
        state.running = task.0;
        state.dither = cx.now.since(state.last_tick) <= half;
        let group = usize::from(state.group);
        self.groups[group].running += 1;
        self.balancer.note(group);
        let known = &mut self.tasks[task];
        (known.cpu, known.place, known.sticky) = (cpu.0, Place::Running, false);
        let (deadline, left) = (known.deadline, known.left);
        self.stand(cpu, deadline);
        let slice = if self.rules.tick > Span::ZERO { Span::MAX } else { left };
        Some(Pick { task, slice })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        let group = self.group_of(cpu);
        let was_told = core::mem::replace(&mut self.cpus[cpu.index()].told, true);
        self.cpus[cpu.index()].running = NONE;
        self.groups[group].running -= 1;
        self.balancer.note(group);
        let known = &mut self.tasks[task];
        known.place = Place::Away;
        known.left = known.left.saturating_sub(ran);
        if known.left < LEAST_SLICE {
            self.refill(task, cx.now);
        }
        let online = self.online.contains(cpu);
        if !why.runnable() {
            self.tasks[task].sticky = false;
        } else if !self.may_enter(task, group) {
            self.settle(cx, task);
        } else {
            let usable = online && self.tasks[task].affinity.contains(cpu);
            if self.rules.sticky && usable && why != Off::NotRun && self.groups[group].waits() {
                self.stick(cx, task, cpu);
            }
            self.push(cx, task, group);
            if usable && !was_told {
                self.promises.promise(task, cpu);
            } else {
                self.kick_idle(cx, task, group);
            }
            cx.kick_if_undone(cpu, why);
        }
        if !online {
            return self.stand(cpu, Time::ZERO);
        }
        // The host is going to pick for this CPU, which counts as idle if that finds nothing.
        match self.prospect(cpu) {
            Some(next) => self.stand(cpu, next),
            None if was_told => self.stand(cpu, Time::ZERO),
            None => {
                self.cpus[cpu.index()].told = false;
                self.rest(cpu);
            }
        }
    }

    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        let half = self.rules.tick.scaled(1, 2);
        let known = &mut self.tasks[task];
        known.left = known.left.saturating_sub(ran);
        let state = &mut self.cpus[cpu.index()];
        state.last_tick = cx.now;
        if self.rules.tick == Span::ZERO {
            return;
        }
        if self.rules.dither && state.dither {
            if known.left > half {
                return;
            }
            known.left = Span::ZERO;
        } else if known.left >= LEAST_SLICE {
            return;
        }
        self.tell(cx, cpu);
    }

    fn tick_period(&self) -> Option<Span> {
        (self.rules.tick > Span::ZERO).then_some(self.rules.tick)
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_balance()
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.balance(cx);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let known = &self.tasks[task];
        sink("deadline_ns", known.deadline.0 as i64);
        sink("slice_left_ns", known.left.0 as i64);
        sink("group", i64::from(self.cpus[usize::from(known.cpu)].group));
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.balancer.tally(sink);
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            VirtualDeadlines {
                rules: fixed,
                machine: fixed,
                neighbours: fixed,
                groups: fixed,
                cpus: fixed,
                tasks,
                forest: fixed,
                links: fixed,
                arrivals: fixed,
                online,
                idleness: fixed,
                waiting: fixed,
                strays: fixed,
                restricted: fixed,
                promises,
                balancer: fixed,
                of: fixed
            }
        );
        for group in &self.groups {
            group.canon(&self.forest, &self.links, to);
        }
        for Cpu { group, slot: _, running, told, sticky, high, last_tick, dither } in &self.cpus {
            [u32::from(*group), *running, *sticky].canon(&(), to);
            high.canon(&self.forest, to);
            told.canon(&(), to);
            if self.rules.dither {
                dither.canon(&(), to);
                last_tick.canon(&(), to);
            }
        }
        self.forest.keys().for_each(|(_, arrival)| to.order(arrival.into()));
        if self.groups.len() > 1 {
            self.balancer.canon(&(), to);
        }
    }
}

/// The tick of `machine`, or 1 ms, unless a policy is told another one.
///
/// Errors: it is longer than a second.
pub(crate) fn tick(machine: &Machine, tick: Option<Span>) -> Result<Span, ParamError> {
    let tick = tick.unwrap_or(machine.tick_or(Span::from_ms(1)));
    if tick > Span::from_s(1) {
        return Err(ParamError::Invalid { name: "tick", why: "must be at most 1s" });
    }
    Ok(tick)
}

/// Errors: not a time for which BFS is made.
pub(crate) fn check_interval(rr_interval: Span) -> Result<(), ParamError> {
    let range = Span::from_ms(1)..=Span::from_ms(1048);
    if range.contains(&rr_interval) {
        return Ok(());
    }
    Err(ParamError::Invalid { name: "rr_interval", why: "must be from 1ms to 1048ms" })
}

impl Canonical for Task {
    fn canon(&self, _: &(), to: &mut Canon) {
        // A task that has never been ready has none.
        if self.deadline > Time::ZERO {
            self.deadline.canon(&(), to);
        }
        canon_fields!(
            self,
            to,
            Task { affinity, deadline: fixed, left, ratio, cpu, place, sticky, stuck, stray }
        );
    }
}

impl Canonical for Place {
    fn canon(&self, _: &(), to: &mut Canon) {
        let (kind, number) = match *self {
            Place::Away => (0, 0),
            Place::Group(group) => (1, group),
            Place::High(cpu) => (2, cpu),
            Place::Running => (3, 0),
        };
        to.word(kind << 16 | u64::from(number));
    }
}
