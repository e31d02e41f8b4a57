//! Completely fair: the task that has had the least CPU time for its weight runs next.
//!
//! Source: Linux `kernel/sched/fair.c`, 2.6.23 to 6.5 (read in 3.7 and 6.1).
//!
//! A task of weight w that runs for Δ gains Δ·1024/w of virtual runtime v. Order key: (v, arrival
//! number). `min_vruntime` follows the least v of a runqueue and never goes back; W is the weight
//! of its tasks and n their number, running ones included.
//!
//! - Slice: period·w/W, where period = `latency`, or n·`min_granularity` if more than
//!   latency / min_granularity tasks share it. At a tick a running task has to go once it ran for
//!   longer, or if it ran for `min_granularity` and the first waiting task is more than a slice
//!   behind it.
//! - New: v = max(v of its creator, min_vruntime + slice·1024/w) (`start_debit`), counted on the
//!   creator's runqueue.
//! - Woken: v = max(own, min_vruntime − latency/2) (`gentle_sleepers`; else − latency).
//! - It preempts a running task whose v is more than wakeup_granularity·1024/w above its own,
//!   w being the weight of the task that wakes up.
//! - Other runqueue: v − min_vruntime is kept.
//! - Buddies are preferred to the first task while not more than wakeup_granularity·1024/w(first)
//!   behind it: `next`, who preempts, then `last`, whom it preempted (if there are at least
//!   latency / min_granularity tasks), then the second task if the first one yielded (`skip`).
//!   So a yielder may be picked again, but only until it has run for that long.
//!
//! Deviations:
//! - A slice may end exactly (`tick = 0`), as with the HRTICK switch, which is off in Linux. It is
//!   fixed when the task is picked and at least 10us: who has run alone may stay for a latency.
//! - Between charges a running task's v grows with the clock, so that it is up to date at any
//!   instant. Where the host measures less CPU time than that, min_vruntime stays ahead.
//! - If c CPUs share a runqueue, n is the tasks per CPU and W the weight per CPU, but a slice is
//!   at most a period; the least v is that of all tasks; there is no `last`, as whoever was
//!   preempted left no warmer a cache to the CPU that picks.
//! - Left out: control groups, SCHED_IDLE and SCHED_BATCH, child_runs_first, load averages.
//!
//! Cost: O(log n), plus O(CPUs of the runqueue) to bring min_vruntime up to date.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::cmp::Ordering;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{NICE_0_WEIGHT, ParamError, TaskParams};
use anysched_core::queue::{Forest, Links, List, Tree};
use anysched_core::registry::{Native, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why};
use anysched_core::time::{Span, Time, VTime};
use anysched_core::{Machine, Off, PerTask, Scaling, params};

params! {
    /// Parameters of `cfs`. Times are before scaling; with the default scaling they are 4 times
    /// as long on 8 CPUs or more.
    pub struct CfsParams {
        /// Time in which each of a few ready tasks runs once, up to 1s (sched_latency).
        latency: Span = Span::from_ms(6),
        /// Time per task of such a period when there are many tasks (sched_min_granularity).
        min_granularity: Span = Span::from_us(750),
        /// How far behind a running task, in virtual time, one that wakes up must be to preempt
        /// it, up to 1s (sched_wakeup_granularity).
        wakeup_granularity: Span = Span::from_ms(1),
        /// How the three times grow with the number of CPUs, of which at most 8 count.
        tunable_scaling: Scaling = Scaling::Log,
        /// Slices are at least min_granularity whatever the weight (BASE_SLICE, Linux 5.13).
        base_slice: bool = false,
        /// A task that wakes up is ahead by half a latency at most, not by a whole one.
        gentle_sleepers: bool = true,
        /// A new task begins one slice behind.
        start_debit: bool = true,
        /// A task that wakes up may preempt.
        wakeup_preempt: bool = true,
        /// Among many tasks, one that wakes up is preferred even if it does not preempt.
        next_buddy: bool = false,
        /// Among many tasks, one that was preempted is preferred.
        last_buddy: bool = true,
        /// Tick at which slices are seen to end, up to 1s; auto is the machine's or 1ms, 0 ends
        /// them exactly.
        tick: Option<Span> = None,
    }
}

/// The longest of each time that is a parameter.
const LONGEST: Span = Span::from_s(1);

/// The shortest slice that ends by a timer of its own.
const SHORTEST_EXACT: Span = Span::from_us(10);

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Cfs {
    params: CfsParams,
    /// The most tasks that share one latency.
    nr_latency: u64,
    /// Zero: there is no tick, slices end exactly.
    tick: Span,
    tasks: PerTask<Task>,
    forest: Forest<Key>,
    links: Links,
    queues: Vec<Queue>,
    /// Arrival number of the next task that enters a tree.
    arrivals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// Up to `since`.
    vruntime: VTime,
    /// When it was picked or last charged, while it runs.
    since: Time,
    /// CPU time since it was picked.
    ran: Span,
    weight: u32,
    /// The runqueue to whose min_vruntime its vruntime relates; [`AFLOAT`] if to zero.
    queue: u16,
    running: bool,
}

/// A task on its way from one runqueue to another, or a new one.
const AFLOAT: u16 = u16::MAX;

/// Ordered by distance, so that virtual time may wrap: right while all keys of a tree lie within
/// 2^63 ns of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    vruntime: VTime,
    arrival: u64,
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        self.vruntime.minus(other.vruntime).cmp(&0).then(self.arrival.cmp(&other.arrival))
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    /// The waiting tasks.
    tree: Tree,
    /// Waiting and running tasks, the one that was picked or came longest ago first.
    by_age: List,
    min_vruntime: VTime,
    /// Weight of all tasks, running ones included.
    weight: u64,
    next: Option<TaskId>,
    last: Option<TaskId>,
    skip: Option<TaskId>,
}

impl Queue {
    fn forget_buddy(&mut self, task: TaskId) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            if *buddy == Some(task) {
                *buddy = None;
            }
        }
    }
}

/// What `time` of CPU time is in the virtual time of a task of `weight`.
#[inline]
fn to_virtual(time: Span, weight: u32) -> i64 {
    if weight == NICE_0_WEIGHT {
        return time.0 as i64;
    }
    let virtual_time = time.scaled(NICE_0_WEIGHT.into(), weight.max(1).into());
    virtual_time.0.min(i64::MAX as u64) as i64
}

impl Policy for Cfs {
    type Params = CfsParams;
    const SOURCE: &'static str = "Linux 2.6.23 to 6.5 kernel/sched/fair.c";
    const NATIVE: &'static [Native] = &[Native { host: "linux", scheduler: Some("stock-cfs") }];
    const IS_DEFAULT_GUEST: bool = true;

    fn build(machine: &Machine, queues: usize, params: &CfsParams) -> Result<Cfs, ParamError> {
        let mut params = params.clone();
        let tick = params.tick.unwrap_or(machine.tick_or(Span::from_ms(1)));
        for (name, time, least) in [
            ("latency", params.latency, Span(1)),
            ("min_granularity", params.min_granularity, Span(1)),
            ("wakeup_granularity", params.wakeup_granularity, Span::ZERO),
            ("tick", tick, Span::ZERO),
        ] {
            if time > LONGEST {
                return Err(ParamError::Invalid { name, why: "must be at most 1s" });
            }
            if time < least {
                return Err(ParamError::Invalid { name, why: "must be above 0" });
            }
        }
        let nr_latency = params.latency.0.div_ceil(params.min_granularity.0);
        for time in
            [&mut params.latency, &mut params.min_granularity, &mut params.wakeup_granularity]
        {
            *time = params.tunable_scaling.scale(*time, machine.cpus());
        }
        Ok(Cfs {
            params,
            nr_latency,
            tick,
            tasks: PerTask::new(),
            forest: Forest::default(),
            links: Links::default(),
            queues: alloc::vec![Queue::default(); queues],
            arrivals: 0,
        })
    }
}

impl Cfs {
    /// The vruntime of `task`, which runs, including what it has not been charged for yet.
    #[inline]
    fn vruntime_now(&self, task: TaskId, now: Time) -> VTime {
        let task = &self.tasks[task];
        task.vruntime.plus(to_virtual(now.since(task.since), task.weight))
    }

    /// Brings min_vruntime up to date.
    #[inline]
    fn advance(&mut self, at: &At<'_>) {
        let queue = &self.queues[at.queue];
        let mut least = queue.tree.first().map(|task| self.tasks[task].vruntime);
        for running in at.running {
            if let Some(task) = running.task() {
                let vruntime = self.vruntime_now(task, at.now);
                least = Some(least.map_or(vruntime, |least| least.min(vruntime)));
            }
        }
        if let Some(least) = least {
            let queue = &mut self.queues[at.queue];
            queue.min_vruntime = queue.min_vruntime.max(least);
        }
    }

    /// The slice of a task of `weight` among `tasks` of `total` weight that share `cpus` CPUs,
    /// itself included.
    fn slice_among(&self, weight: u32, tasks: usize, total: u64, cpus: usize) -> Span {
        let per_cpu = tasks.div_ceil(cpus) as u64;
        let period = if per_cpu > self.nr_latency {
            self.params.min_granularity.scaled(per_cpu, 1)
        } else {
            self.params.latency
        };
        let share = (u64::from(weight) * cpus as u64).min(total);
        let slice = period.scaled(share, total.max(1));
        if self.params.base_slice { slice.max(self.params.min_granularity) } else { slice }
    }

    /// The slice of `task`, which is in the runqueue.
    fn slice_of(&self, at: &At<'_>, task: TaskId) -> Span {
        let queue = &self.queues[at.queue];
        let weight = self.tasks[task].weight;
        self.slice_among(weight, queue.by_age.len(), queue.weight, at.running.len())
    }

    /// How far from min_vruntime of its creator's runqueue a new task begins.
    fn debit(&self, at: &At<'_>, task: TaskId, creator: Option<TaskId>) -> i64 {
        let weight = self.tasks[task].weight;
        let home = creator.map_or(at.queue, |by| usize::from(self.tasks[by].queue));
        let queue = &self.queues[home];
        let mut debit = 0;
        if self.params.start_debit {
            let (tasks, total) = (queue.by_age.len() + 1, queue.weight + u64::from(weight));
            let slice = self.slice_among(weight, tasks, total, at.running.len());
            debit = to_virtual(slice, weight);
        }
        let Some(creator) = creator else { return debit };
        let vruntime = self.vruntime_now(creator, at.now);
        let mut min_vruntime = queue.min_vruntime;
        if home != at.queue {
            // Who runs elsewhere is not known, so this runqueue's minimum is brought up to date
            // as if the creator ran alone.
            let first = queue.tree.first().map(|task| self.tasks[task].vruntime);
            min_vruntime = min_vruntime.max(first.map_or(vruntime, |first| first.min(vruntime)));
        }
        debit.max(vruntime.minus(min_vruntime))
    }

    /// Makes the vruntime of `task` relate to the runqueue that it enters.
    fn relocate(&mut self, at: &At<'_>, task: TaskId) {
        let Task { queue, vruntime, .. } = self.tasks[task];
        if usize::from(queue) != at.queue {
            let from = match queue {
                AFLOAT => VTime(0),
                queue => self.queues[usize::from(queue)].min_vruntime,
            };
            let task = &mut self.tasks[task];
            task.vruntime = self.queues[at.queue].min_vruntime.plus(vruntime.minus(from));
            task.queue = at.queue as u16;
        }
    }

    /// The furthest that a task that wakes up may be ahead.
    fn sleeper_credit(&self) -> i64 {
        let latency = self.params.latency.0 as i64;
        if self.params.gentle_sleepers { latency / 2 } else { latency }
    }

    /// wakeup_granularity in the virtual time of `task`.
    #[inline]
    fn granularity(&self, task: TaskId) -> i64 {
        to_virtual(self.params.wakeup_granularity, self.tasks[task].weight)
    }

    /// Whether there are so many tasks that buddies matter.
    fn is_crowded(&self, at: &At<'_>) -> bool {
        let tasks = self.queues[at.queue].by_age.len();
        tasks.div_ceil(at.running.len()) as u64 >= self.nr_latency
    }

    /// Puts `task` into the tree, behind equals.
    fn insert(&mut self, queue: usize, task: TaskId) {
        let key = Key { vruntime: self.tasks[task].vruntime, arrival: self.arrivals };
        self.arrivals += 1;
        self.forest.insert(&mut self.queues[queue].tree, task, key, ());
    }

    /// Puts back `task`, which ran.
    fn put(&mut self, queue: usize, task: TaskId, off: Off) {
        self.tasks[task].running = false;
        match off {
            Off::NotRun => {
                let key = self.forest.key(task);
                let queue = &mut self.queues[queue];
                self.forest.insert(&mut queue.tree, task, key, ());
                if queue.tree.first() != Some(task) {
                    // Only as a buddy can it have been picked, and so it is again.
                    queue.next = Some(task);
                }
                return;
            }
            Off::Yielded if !self.queues[queue].tree.is_empty() => {
                let queue = &mut self.queues[queue];
                queue.forget_buddy(task);
                queue.skip = Some(task);
            }
            _ => {}
        }
        self.insert(queue, task);
    }

    /// `task` leaves the runqueue's accounts.
    fn forget(&mut self, queue: usize, task: TaskId) {
        let queue = &mut self.queues[queue];
        queue.weight -= u64::from(self.tasks[task].weight);
        queue.forget_buddy(task);
        self.links.remove(&mut queue.by_age, task);
    }

    /// The waiting task to run next among those that fit.
    #[inline]
    fn choose(&self, queue: &Queue, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut first = queue.tree.first()?;
        while !fits(first) {
            first = self.forest.next(first)?;
        }
        let near = |task: TaskId| {
            let vruntime = |task: TaskId| self.tasks[task].vruntime;
            vruntime(task).minus(vruntime(first)) <= self.granularity(first)
        };
        for buddy in [queue.next, queue.last].into_iter().flatten() {
            if !self.tasks[buddy].running && fits(buddy) && near(buddy) {
                return Some(buddy);
            }
        }
        if queue.skip == Some(first) {
            let mut rest =
                core::iter::successors(self.forest.next(first), |&t| self.forest.next(t));
            return rest.find(|&task| fits(task)).filter(|&task| near(task)).or(Some(first));
        }
        Some(first)
    }
}

impl RunQueue for Cfs {
    const PREEMPTS: bool = true;
    const LOAD_COUNTS_RUNNING: bool = true;

    fn smp() -> SmpParams {
        SmpParams::linux()
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.forest.attach(task);
        self.links.attach(task);
        let new = Task {
            vruntime: VTime(0),
            since: Time::ZERO,
            ran: Span::ZERO,
            weight: params.weight,
            queue: AFLOAT,
            running: false,
        };
        self.tasks.set(task, new);
    }

    fn update(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId, params: &TaskParams) {
        let Task { weight: old, since, .. } = self.tasks[task];
        let new = params.weight;
        if new == old {
            return;
        }
        if is == Whereabouts::Running {
            // The time since the last charge was run at the old weight, but will be charged at
            // the new one.
            let ran = at.now.since(since);
            let task = &mut self.tasks[task];
            task.vruntime = task.vruntime.plus(to_virtual(ran, old) - to_virtual(ran, new));
        }
        if is != Whereabouts::Away {
            let queue = &mut self.queues[at.queue];
            queue.weight = queue.weight - u64::from(old) + u64::from(new);
        }
        self.tasks[task].weight = new;
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        self.advance(at);
        if let Why::Put(off) = entry.why {
            return self.put(at.queue, task, off);
        }
        if entry.why == Why::New {
            self.tasks[task].vruntime = VTime(0).plus(self.debit(at, task, entry.by));
        }
        self.relocate(at, task);
        if entry.why == Why::Woken {
            let earliest = self.queues[at.queue].min_vruntime.plus(-self.sleeper_credit());
            let task = &mut self.tasks[task];
            task.vruntime = task.vruntime.max(earliest);
        }
        let queue = &mut self.queues[at.queue];
        queue.weight += u64::from(self.tasks[task].weight);
        self.links.push_back(&mut queue.by_age, task);
        self.insert(at.queue, task);
        if self.params.next_buddy && entry.why == Why::Woken && self.is_crowded(at) {
            self.queues[at.queue].next = Some(task);
        }
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let task = self.choose(&self.queues[at.queue], fits)?;
        let queue = &mut self.queues[at.queue];
        queue.forget_buddy(task);
        self.forest.remove(&mut queue.tree, task);
        self.links.remove(&mut queue.by_age, task);
        self.links.push_back(&mut queue.by_age, task);
        let task_state = &mut self.tasks[task];
        (task_state.since, task_state.ran, task_state.running) = (at.now, Span::ZERO, true);
        Some(task)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, why: Removal) {
        self.advance(at);
        self.forest.remove(&mut self.queues[at.queue].tree, task);
        self.forget(at.queue, task);
        if why == Removal::Move {
            let task = &mut self.tasks[task];
            let distance = task.vruntime.minus(self.queues[at.queue].min_vruntime);
            (task.vruntime, task.queue) = (VTime(0).plus(distance), AFLOAT);
        }
        self.advance(at);
    }

    #[inline]
    fn charge(&mut self, at: &At<'_>, task: TaskId, ran: Span) {
        let task = &mut self.tasks[task];
        task.vruntime = task.vruntime.plus(to_virtual(ran, task.weight));
        task.since = at.now;
        task.ran += ran;
        self.advance(at);
    }

    fn leave(&mut self, at: &At<'_>, task: TaskId, _: Off) -> bool {
        self.tasks[task].running = false;
        self.forget(at.queue, task);
        self.advance(at);
        false
    }

    #[inline]
    fn slice(&mut self, at: &At<'_>, task: TaskId) -> Span {
        if self.tick > Span::ZERO {
            return Span::MAX;
        }
        self.slice_of(at, task).max(SHORTEST_EXACT)
    }

    fn tick(&mut self, at: &At<'_>, task: TaskId) -> bool {
        let Some(first) = self.queues[at.queue].tree.first() else { return false };
        let slice = self.slice_of(at, task);
        let Task { ran, vruntime, .. } = self.tasks[task];
        if ran > slice {
            self.queues[at.queue].forget_buddy(task);
            return true;
        }
        let ahead = vruntime.minus(self.tasks[first].vruntime);
        ran >= self.params.min_granularity && ahead > slice.0 as i64
    }

    fn tick_period(&self) -> Option<Span> {
        (self.tick > Span::ZERO).then_some(self.tick)
    }

    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let current = running.task().filter(|_| self.params.wakeup_preempt)?;
        let behind = self.vruntime_now(current, at.now).minus(self.tasks[task].vruntime);
        let margin = behind - self.granularity(task);
        if behind <= 0 || margin <= 0 {
            return None;
        }
        let last = self.params.last_buddy && at.running.len() == 1 && self.is_crowded(at);
        let queue = &mut self.queues[at.queue];
        queue.next = Some(task);
        if last {
            queue.last = Some(current);
        }
        Some(margin as u64)
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].tree.len()
    }

    fn load(&self, queue: usize) -> u64 {
        self.queues[queue].weight
    }

    fn weight(&self, task: TaskId) -> u64 {
        self.tasks[task].weight.into()
    }

    /// Who has been waiting longest, as in Linux (`cfs_tasks`), where the list has running tasks
    /// too.
    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let waits = |task: &TaskId| !self.tasks[*task].running;
        self.links.iter(&self.queues[at.queue].by_age).filter(waits).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("vruntime_ns", task.vruntime.minus(VTime(0)));
        sink("weight", task.weight.into());
        if let Some(queue) = self.queues.get(usize::from(task.queue)) {
            sink("min_vruntime_ns", queue.min_vruntime.minus(VTime(0)));
        }
    }
}
