//! Completely fair: the task that has had the least CPU time for its weight runs next.
//!
//! Source: Linux `kernel/sched/fair.c`, `features.h` 6.1.192; for the other kernels of `profile`,
//! those that the page of this policy lists. CFS of 2.6.23 had another key, 2.6.24 other rules for
//! placing tasks.
//!
//! A task of weight w that runs for Δ gains Δ·1024/w of virtual runtime v. Order key: (v, arrival
//! number). `min_vruntime` follows the least v of a runqueue, whenever what runs is charged and
//! when a task leaves, and never goes back. W is the weight of its tasks and n their number,
//! running ones included. All of it is rounded as in the kernel.
//!
//! - What runs is charged at ticks, when it stops, and whenever a task comes, goes or changes its
//!   weight.
//! - Slice: period·w/W, where period = `latency`, or n·`min_granularity` if more than
//!   latency / min_granularity tasks share it; at least min_granularity (`base_slice`). At a tick a
//!   running task has to go once it ran for longer, or if it ran for `min_granularity` and the
//!   first waiting task is more than a slice behind it. If it is picked again, its slice goes on,
//!   so that it has to go at each further tick (`keep_slice`).
//! - New: v = max(v of its creator, min_vruntime + slice·1024/w) (`start_debit`), counted on the
//!   creator's runqueue.
//! - Woken: v = max(own, min_vruntime − latency/2) (`gentle_sleepers`; else − latency).
//! - It preempts a running task whose v is more than wakeup_granularity·1024/w above its own,
//!   w being the weight of the task that wakes up. So does a waiting task whose weight changes.
//! - Other runqueue: v − min_vruntime is kept.
//! - A task that gets less weight while it runs makes room; a new slice begins in any case.
//! - Buddies are preferred to the first task while not more than wakeup_granularity·1024/w(first)
//!   behind it: `next`, who preempts, then `last`, whom it preempted (if there are at least
//!   latency / min_granularity tasks), then the second task if the first one yielded (`skip`).
//!   So a yielder may be picked again, but only until it has run for that long.
//! - A task of weight 3 is one of SCHED_IDLE: it preempts no one, is preempted by all others, and
//!   is no buddy.
//!
//! Deviations:
//! - A slice may end exactly (`tick = 0`), as with the HRTICK switch, which is off in Linux. It is
//!   fixed when the task is picked and at least 10us: who has run alone may stay for a latency, and
//!   who is picked again has a new one.
//! - What is charged at other times than the host's reports is the time that has passed. Where the
//!   host measures less, the next report corrects v, but min_vruntime stays ahead.
//! - If c CPUs share a runqueue, n is the tasks per CPU and W the weight per CPU, but a slice is
//!   at most a period; the least v is that of all tasks; there is no `last`, as whoever was
//!   preempted left no warmer a cache to the CPU that picks; each pick begins a slice.
//! - min_vruntime begins at 0, not at −2^20 ns, on which nothing depends.
//! - Left out: control groups, SCHED_BATCH, load averages.
//!
//! Cost: O(log n), plus O(CPUs of the runqueue) to bring min_vruntime up to date.

mod profile;
mod rate;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::cmp::Ordering;

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Links, List, Tree};
use anysched_core::registry::{First, Native, Policy};
use anysched_core::smp::{
    At, Balancing, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why,
};
use anysched_core::time::{Span, Time, VTime};
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields};
use profile::Switches;
pub use profile::{CfsParams, Profile};
use rate::Rate;

/// The longest of each time that is a parameter.
const LONGEST: Span = Span::from_s(1);

/// The shortest slice that ends by a timer of its own.
const SHORTEST_EXACT: Span = Span::from_us(10);

/// The weight of tasks of SCHED_IDLE; at nice 19 it is 15.
const IDLE_WEIGHT: u32 = 3;

/// The shortest slice of a task of SCHED_IDLE beside others (sched_idle_min_granularity).
const IDLE_SLICE: Span = Span::from_us(750);

/// Who slept for longer is placed anew: 2^63 / 1024 ns, 104 days.
const LONG_SLEEP: Span = Span(1 << 53);

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Cfs {
    params: CfsParams,
    on: Switches,
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
    /// A running task that has become nicer, or a new one that is to run before its creator: its
    /// CPU has to pick.
    oust: Option<TaskId>,
    /// Whose weight changed last, until that has been considered.
    changed: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// Up to `since`.
    vruntime: VTime,
    /// When it was picked or last charged; zero if that was on another runqueue.
    since: Time,
    /// CPU time of its slice.
    ran: Span,
    /// CPU time charged before the host reported it; it is set off against the next report.
    prepaid: Span,
    rate: Rate,
    weight: u32,
    /// The runqueue to whose min_vruntime its vruntime relates; [`AFLOAT`] if to zero.
    queue: u16,
    running: bool,
}

impl Task {
    /// Whether it is of SCHED_IDLE.
    #[inline]
    fn is_idle(&self) -> bool {
        self.weight == IDLE_WEIGHT
    }

    /// Charges `time`.
    #[inline]
    fn charge(&mut self, time: Span) {
        self.vruntime = self.vruntime.plus(self.rate.apply(time).0 as i64);
        self.ran += time;
    }

    /// Charges what has passed since the last charge, ahead of the host's report. Whether that is
    /// anything.
    #[inline]
    fn catch_up(&mut self, now: Time) -> bool {
        let passed = now.since(self.since);
        if passed == Span::ZERO {
            return false;
        }
        self.since = now;
        self.prepaid += passed;
        self.charge(passed);
        true
    }

    /// Charges `ran`, which the host reports, except for what has been charged ahead. Whether that
    /// is anything.
    #[inline]
    fn settle(&mut self, ran: Span, now: Time) -> bool {
        let excess = self.prepaid.saturating_sub(ran);
        let rest = ran.saturating_sub(self.prepaid);
        self.since = now;
        self.prepaid = Span::ZERO;
        if excess > Span::ZERO {
            // The host lost time to something else, an interrupt perhaps.
            self.vruntime = self.vruntime.plus(-(self.rate.apply(excess).0 as i64));
            self.ran = self.ran.saturating_sub(excess);
        }
        self.charge(rest);
        rest > Span::ZERO
    }
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
    /// How many of them are of SCHED_IDLE.
    idle: u32,
    next: Option<TaskId>,
    last: Option<TaskId>,
    skip: Option<TaskId>,
    /// Who has been put back by the CPU that is about to pick.
    prev: Option<TaskId>,
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

impl Policy for Cfs {
    type Params = CfsParams;
    const SOURCE: &'static str = "Linux 3.14 to 6.5 kernel/sched/fair.c";
    const ORDER: &'static [First] = &[First::Least("vruntime_ns")];
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
        let mut on = Switches::of(&params);
        // Who has come to the exact end of its slice needs another one.
        on.keep_slice &= tick > Span::ZERO;
        let nr_latency = params.latency.0.div_ceil(params.min_granularity.0);
        for time in
            [&mut params.latency, &mut params.min_granularity, &mut params.wakeup_granularity]
        {
            *time = params.tunable_scaling.scale(*time, machine.cpus());
        }
        Ok(Cfs {
            params,
            on,
            nr_latency,
            tick,
            tasks: PerTask::new(),
            forest: Forest::default(),
            links: Links::default(),
            queues: alloc::vec![Queue::default(); queues],
            arrivals: 0,
            oust: None,
            changed: None,
        })
    }
}

impl Cfs {
    /// Brings min_vruntime up to date.
    #[inline]
    fn advance(&mut self, at: &At<'_>) {
        self.advance_with(at, None);
    }

    /// The same, counting `leaver`, which has just stopped.
    #[inline]
    fn advance_with(&mut self, at: &At<'_>, leaver: Option<TaskId>) {
        let mut least = leaver.map(|task| self.tasks[task].vruntime);
        for running in at.running {
            least = self.earlier(least, running.task());
        }
        let queue = &self.queues[at.queue];
        if let Some(least) = self.earlier(least, queue.tree.first()) {
            let queue = &mut self.queues[at.queue];
            queue.min_vruntime = queue.min_vruntime.max(least);
        }
    }

    /// The vruntime of `task` if that is less than `least`.
    #[inline]
    fn earlier(&self, least: Option<VTime>, task: Option<TaskId>) -> Option<VTime> {
        let Some(task) = task else { return least };
        let vruntime = self.tasks[task].vruntime;
        Some(least.map_or(vruntime, |least| least.min(vruntime)))
    }

    /// Charges what runs for the time that has passed (update_curr). min_vruntime stays as it is if
    /// that is none: of two tasks that wake up on an idle CPU, the first does not move it.
    #[inline]
    fn charge_running(&mut self, at: &At<'_>) {
        let mut charged = false;
        for running in at.running {
            if let Some(task) = running.task() {
                charged |= self.tasks[task].catch_up(at.now);
            }
        }
        if charged {
            self.advance(at);
        }
    }

    /// The slice of `task` in `queue`, which `cpus` CPUs share; it is in the runqueue or about to
    /// be.
    fn slice_in(&self, queue: &Queue, task: TaskId, is_in: bool, cpus: usize) -> Span {
        let task = &self.tasks[task];
        let (mut tasks, mut total) = (queue.by_age.len(), queue.weight);
        if !is_in {
            tasks += 1;
            total += u64::from(task.weight);
        }
        let per_cpu = tasks.div_ceil(cpus) as u64;
        let period = if per_cpu > self.nr_latency {
            self.params.min_granularity.scaled(per_cpu, 1)
        } else {
            self.params.latency
        };
        let share = (u64::from(task.weight) * cpus as u64).min(total);
        let slice = rate::slice(period, share, total);
        if !self.on.base_slice {
            return slice;
        }
        let among_idle = queue.idle > 0 && queue.idle as usize == queue.by_age.len();
        let shortest = if self.on.short_idle && task.is_idle() && !among_idle {
            IDLE_SLICE
        } else {
            self.params.min_granularity
        };
        slice.max(shortest)
    }

    /// The slice of `task`, which is in the runqueue.
    fn slice_of(&self, at: &At<'_>, task: TaskId) -> Span {
        self.slice_in(&self.queues[at.queue], task, true, at.running.len())
    }

    /// Places `task`, which is new, relative to its creator's runqueue.
    fn place_new(&mut self, at: &At<'_>, task: TaskId, creator: Option<TaskId>) {
        let home = creator.map_or(at.queue, |by| usize::from(self.tasks[by].queue));
        if let Some(creator) = creator.filter(|_| home != at.queue) {
            let charged = self.tasks[creator].catch_up(at.now);
            let vruntime = self.tasks[creator].vruntime;
            let queue = &mut self.queues[home];
            let first = queue.tree.first().map(|task| self.tasks[task].vruntime);
            // Who runs on the other CPUs of a shared runqueue is not known.
            if charged && at.running.len() == 1 {
                let least = first.map_or(vruntime, |first| first.min(vruntime));
                queue.min_vruntime = queue.min_vruntime.max(least);
            }
        }
        let queue = &self.queues[home];
        let min_vruntime = queue.min_vruntime;
        let mut vruntime = min_vruntime;
        if self.params.start_debit {
            let slice = self.slice_in(queue, task, false, at.running.len());
            vruntime = vruntime.plus(self.tasks[task].rate.apply(slice).0 as i64);
        }
        if let Some(creator) = creator {
            let own = &mut self.tasks[creator].vruntime;
            vruntime = vruntime.max(*own);
            if self.params.child_runs_first && vruntime.minus(*own) > 0 {
                core::mem::swap(own, &mut vruntime);
                self.oust = Some(task).filter(|_| home == at.queue);
            }
        }
        self.tasks[task].vruntime = VTime(0).plus(vruntime.minus(min_vruntime));
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

    /// Places `task`, which wakes up: not too far ahead.
    #[inline]
    fn place_woken(&mut self, at: &At<'_>, task: TaskId) {
        let state = &mut self.tasks[task];
        let idle = self.on.short_idle && state.is_idle();
        let credit = if idle { self.params.min_granularity } else { self.params.latency };
        let credit = (credit.0 >> u32::from(self.params.gentle_sleepers)) as i64;
        let earliest = self.queues[at.queue].min_vruntime.plus(-credit);
        let slept = at.now.since(state.since);
        if self.on.renew_sleepers && slept > LONG_SLEEP && state.since > Time::ZERO {
            state.vruntime = earliest;
        } else {
            state.vruntime = state.vruntime.max(earliest);
        }
    }

    /// wakeup_granularity in the virtual time of `task`.
    #[inline]
    fn granularity(&self, task: TaskId) -> i64 {
        self.tasks[task].rate.apply(self.params.wakeup_granularity).0 as i64
    }

    /// Whether there are so many tasks that buddies matter.
    fn is_crowded(&self, at: &At<'_>) -> bool {
        let tasks = self.queues[at.queue].by_age.len();
        tasks.div_ceil(at.running.len()) as u64 >= self.nr_latency
    }

    /// `task`, which may preempt, is preferred even if it does not, if that is wanted.
    fn nominate(&mut self, at: &At<'_>, task: TaskId) {
        if self.params.next_buddy && self.is_crowded(at) && !self.tasks[task].is_idle() {
            self.queues[at.queue].next = Some(task);
        }
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
        self.queues[queue].prev = Some(task);
    }

    /// `task` enters the runqueue's accounts.
    fn join(&mut self, queue: usize, task: TaskId) {
        let queue = &mut self.queues[queue];
        queue.weight += u64::from(self.tasks[task].weight);
        queue.idle += u32::from(self.tasks[task].is_idle());
        self.links.push_back(&mut queue.by_age, task);
    }

    /// `task` leaves the runqueue's accounts.
    fn forget(&mut self, queue: usize, task: TaskId) {
        let queue = &mut self.queues[queue];
        queue.weight -= u64::from(self.tasks[task].weight);
        queue.idle -= u32::from(self.tasks[task].is_idle());
        queue.forget_buddy(task);
        queue.prev = queue.prev.filter(|&prev| prev != task);
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
    const RECONSIDERS: bool = true;
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
            prepaid: Span::ZERO,
            rate: Rate::of(params.weight),
            weight: params.weight,
            queue: AFLOAT,
            running: false,
        };
        self.tasks.set(task, new);
    }

    fn update(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId, params: &TaskParams) {
        let old = self.tasks[task].weight;
        let new = params.weight;
        self.changed = Some(task).filter(|_| new != old);
        if new == old {
            return;
        }
        // As in Linux it is taken out and comes back: no buddy, last of its equals, the youngest,
        // and with a new slice if it runs.
        let is_here = is != Whereabouts::Away;
        if is_here {
            self.charge_running(at);
            self.forget(at.queue, task);
        }
        let state = &mut self.tasks[task];
        (state.weight, state.rate) = (new, Rate::of(new));
        if !is_here {
            return;
        }
        self.join(at.queue, task);
        let others = self.queues[at.queue].by_age.len() > 1;
        if is == Whereabouts::Running {
            self.tasks[task].ran = Span::ZERO;
            self.oust = Some(task).filter(|_| others && new < old);
            return;
        }
        self.forest.remove(&mut self.queues[at.queue].tree, task);
        self.insert(at.queue, task);
        if others {
            self.nominate(at, task);
        }
    }

    /// As in Linux: no buddy, last of its equals, the youngest, and with a new slice if it runs.
    fn requeue(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId) {
        self.charge_running(at);
        self.forget(at.queue, task);
        self.join(at.queue, task);
        if is == Whereabouts::Running {
            self.tasks[task].ran = Span::ZERO;
        } else {
            self.forest.remove(&mut self.queues[at.queue].tree, task);
            self.insert(at.queue, task);
        }
    }

    fn reconsiders(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> bool {
        if self.changed.take() != Some(task) {
            return false;
        }
        if running.task() == Some(task) {
            return self.oust.take() == Some(task);
        }
        self.preempts(at, task, running).is_some()
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        if let Why::Put(off) = entry.why {
            return self.put(at.queue, task, off);
        }
        self.charge_running(at);
        if entry.why == Why::New {
            self.place_new(at, task, entry.by);
        }
        let is_home = usize::from(self.tasks[task].queue) == at.queue;
        self.relocate(at, task);
        if entry.why == Why::Woken {
            self.place_woken(at, task);
        }
        if !is_home {
            self.tasks[task].since = Time::ZERO;
        }
        self.join(at.queue, task);
        self.insert(at.queue, task);
        if matches!(entry.why, Why::Woken | Why::Moved) {
            self.nominate(at, task);
        }
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let task = self.choose(&self.queues[at.queue], fits)?;
        let queue = &mut self.queues[at.queue];
        self.oust = None;
        let again = queue.prev.take() == Some(task);
        self.forest.remove(&mut queue.tree, task);
        self.links.move_back(&mut queue.by_age, task);
        let state = &mut self.tasks[task];
        (state.since, state.running) = (at.now, true);
        // Linux leaves alone a task that goes on running.
        let again = again && self.on.keep_slice && at.running.len() == 1;
        if !again {
            state.ran = Span::ZERO;
        }
        if !(again && self.on.keep_buddies) {
            queue.forget_buddy(task);
        }
        Some(task)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, why: Removal) {
        self.charge_running(at);
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
        if self.tasks[task].settle(ran, at.now) {
            self.advance(at);
        }
    }

    fn leave(&mut self, at: &At<'_>, task: TaskId, _: Off) -> bool {
        self.tasks[task].running = false;
        self.forget(at.queue, task);
        self.advance_with(at, Some(task).filter(|_| self.on.await_leaver));
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
        let mut slice = self.slice_of(at, task);
        if self.on.cap_slice {
            slice = slice.min(self.params.latency);
        }
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
        if self.oust.take() == Some(task) {
            return Some(0);
        }
        let current = running.task()?;
        let is_idle = |task: TaskId| self.tasks[task].is_idle();
        if is_idle(current) && !is_idle(task) {
            return Some(u64::MAX);
        }
        if is_idle(task) || !self.params.wakeup_preempt {
            return None;
        }
        self.charge_running(at);
        let behind = self.tasks[current].vruntime.minus(self.tasks[task].vruntime);
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

    fn balancing(&self) -> Balancing {
        Balancing { by_core: false, random: self.on.ni_random, ..Balancing::default() }
    }

    fn is_buddy(&self, queue: usize, task: TaskId) -> bool {
        let Queue { next, last, .. } = self.queues[queue];
        [next, last].contains(&Some(task))
    }

    fn is_cold(&self, task: TaskId) -> bool {
        self.tasks[task].is_idle()
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("vruntime_ns", task.vruntime.minus(VTime(0)));
        sink("weight", task.weight.into());
        if let Some(queue) = self.queues.get(usize::from(task.queue)) {
            sink("min_vruntime_ns", queue.min_vruntime.minus(VTime(0)));
        }
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Cfs {
                params: fixed,
                on: fixed,
                nr_latency: fixed,
                tick: fixed,
                tasks,
                forest: fixed,
                links: fixed,
                queues: fixed,
                arrivals: fixed,
                oust,
                changed
            }
        );
        for Queue { tree, by_age, min_vruntime, weight, idle, next, last, skip, prev } in
            &self.queues
        {
            tree.canon(&self.forest, to);
            by_age.canon(&self.links, to);
            min_vruntime.canon(&(), to);
            weight.canon(&(), to);
            idle.canon(&(), to);
            [*next, *last, *skip, *prev].canon(&(), to);
        }
        for Key { vruntime, arrival } in self.forest.keys() {
            vruntime.canon(&(), to);
            to.order(arrival.into());
        }
    }
}

impl Canonical for Task {
    fn canon(&self, _: &(), to: &mut Canon) {
        let Task { vruntime, since, ran, prepaid, rate: _, weight, queue, running } = self;
        if *queue == AFLOAT {
            to.word(vruntime.0);
        } else {
            vruntime.canon(&(), to);
        }
        let is_known = *since > Time::ZERO;
        is_known.canon(&(), to);
        if is_known {
            since.canon(&(), to);
        }
        [*ran, *prepaid].canon(&(), to);
        weight.canon(&(), to);
        queue.canon(&(), to);
        running.canon(&(), to);
    }
}
