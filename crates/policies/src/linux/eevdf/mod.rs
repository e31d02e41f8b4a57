//! Earliest eligible virtual deadline first: of the tasks that have had no more than their share,
//! the one whose request is due first in virtual time.
//!
//! Sources: I. Stoica, H. Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995; Linux
//! `kernel/sched/fair.c`, `features.h` 6.6 and 6.12.107 (`profile`).
//!
//! A task of weight w that runs for Δ gains Δ·1024/w of virtual runtime v. V is the mean of v
//! over all tasks of the runqueue, waiting and running, weighted by w; V − v is a task's *lag*,
//! what it is owed. It is *eligible* while v ≤ V. It asks for one slice r at a time, due at
//! d = v + r·1024/w, and for the next as soon as v has come to d.
//! Order key: (d, arrival number) among the eligible.
//!
//! - Placement: v = V − lag·(W + w)/W, where W is the weight already there, so that after the
//!   arrival has moved V the lag is what it was. The lag is kept over a sleep within ±2r.
//! - `run_to_parity`: a task, once picked, is not preempted while it is eligible and its request
//!   lasts. As in Linux a task that goes on into its next request without another one having run
//!   is not protected any more.
//! - `preempt_short`: the wake-up of an eligible task with a shorter slice ends that protection,
//!   if its deadline is earlier or the running task is not eligible; even if a third task is
//!   then the better choice. The tick stops an unprotected task that is not eligible.
//! - `delay_dequeue`: a task that blocks while it is not eligible stays in competition, so that
//!   it cannot sleep its debt off. It leaves when it is picked, or goes on when it wakes up;
//!   `delay_zero` drops what it is owed by then.
//! - A yielder's deadline moves back by one request (6.6), or if it is eligible it gives the rest
//!   of its request away, v = d (`yield_forfeits`, 6.12). Either way it may be picked again: it
//!   does not go behind tasks that are not eligible.
//!
//! Deviations:
//! - Profile 6.6 is that kernel's switches without its slips: it places a new task twice, the
//!   second time without halving the slice, and gives a task whose nice value changes a whole new
//!   request. Here both profiles halve, and a change of weight keeps V, w·lag and w·(d − v).
//! - Nanoseconds are not lost to rounding: what is less than a virtual nanosecond is carried to
//!   the next charge, and a running task counts with the time since its last one.
//! - A slice may end exactly (`tick = 0`), where Linux looks at ticks only. Then a task that lost
//!   its protection runs until its slice ends or another wake-up decides.
//! - That a running task's request has ended is seen when it is charged, by a tick or at its
//!   switch, not at each wake-up on its CPU.
//! - A task's own slice (sched_attr::sched_runtime, from 6.12 on) is its `budget`, if it has no
//!   `period`, within 0.1 ms to 100 ms as in Linux.
//! - Balancing takes the latest deadline first, where Linux takes who has been there longest.
//! - Left out: control groups, buddies, SCHED_IDLE and SCHED_BATCH.
//!
//! If CPUs share a runqueue, all of their tasks count in V, and each CPU protects what it ran
//! itself. Then it may be that no waiting task is eligible: the one nearest to it is taken. A
//! task whose weight is worth more than a CPU falls behind V without bound.
//!
//! Cost: O(log n), plus O(CPUs of the runqueue) to bring V up to date.

mod queue;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use self::queue::{Deadline, Least, Mean, Nodes, Queue, Service, to_virtual};
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::registry::{Native, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why};
use anysched_core::time::{Span, Time, VTime};
use anysched_core::{Machine, Off, PerTask, Scaling, choice, params};

choice! {
    /// The kernel whose defaults the switches have.
    pub enum Profile {
        /// Linux 6.6, the first with EEVDF.
        Linux66 = "6.6",
        /// Linux 6.12.
        Linux612 = "6.12",
    }
}

params! {
    /// Parameters of `eevdf`. Switches that are `auto` are as in `profile`.
    pub struct EevdfParams {
        /// The kernel whose defaults the switches have.
        profile: Profile = Profile::Linux66,
        /// CPU time of one request before scaling, at most 1s; 700us in 6.12.107 and later.
        base_slice: Span = Span::from_us(750),
        /// How base_slice grows with the number of CPUs, of which at most 8 count.
        tunable_scaling: Scaling = Scaling::Log,
        /// Tick at which requests are seen to end; auto is the machine's or 1ms, 0 ends them
        /// exactly.
        tick: Option<Span> = None,
        /// A task keeps its lag while it is away (both profiles).
        place_lag: Option<bool> = None,
        /// A new task begins with half a slice (both profiles).
        place_deadline_initial: Option<bool> = None,
        /// A task that moves to another runqueue keeps the distance of its deadline (6.12).
        place_rel_deadline: Option<bool> = None,
        /// What runs is not preempted while it is eligible and its request lasts (both profiles).
        run_to_parity: Option<bool> = None,
        /// A task that wakes up may preempt (both profiles).
        wakeup_preemption: Option<bool> = None,
        /// The wake-up of a task with a shorter slice ends that protection (6.12).
        preempt_short: Option<bool> = None,
        /// A task that blocks while it is not eligible goes on competing until it is (6.12).
        delay_dequeue: Option<bool> = None,
        /// A task that was so delayed is owed nothing afterwards (6.12).
        delay_zero: Option<bool> = None,
        /// A task's budget, if it has no period, is its own slice, 0.1ms to 100ms (6.12).
        custom_slice: Option<bool> = None,
        /// An eligible task that yields gives up the rest of its request (6.12).
        yield_forfeits: Option<bool> = None,
    }
}

/// The switches, settled.
#[derive(Clone, Copy, Debug)]
struct Switches {
    place_lag: bool,
    place_deadline_initial: bool,
    place_rel_deadline: bool,
    run_to_parity: bool,
    wakeup_preemption: bool,
    preempt_short: bool,
    delay_dequeue: bool,
    delay_zero: bool,
    custom_slice: bool,
    yield_forfeits: bool,
}

impl Switches {
    fn of(params: &EevdfParams) -> Switches {
        let later = params.profile == Profile::Linux612;
        Switches {
            place_lag: params.place_lag.unwrap_or(true),
            place_deadline_initial: params.place_deadline_initial.unwrap_or(true),
            place_rel_deadline: params.place_rel_deadline.unwrap_or(later),
            run_to_parity: params.run_to_parity.unwrap_or(true),
            wakeup_preemption: params.wakeup_preemption.unwrap_or(true),
            preempt_short: params.preempt_short.unwrap_or(later),
            delay_dequeue: params.delay_dequeue.unwrap_or(later),
            delay_zero: params.delay_zero.unwrap_or(later),
            custom_slice: params.custom_slice.unwrap_or(later),
            yield_forfeits: params.yield_forfeits.unwrap_or(later),
        }
    }
}

/// The longest base slice and the longest tick.
const LONGEST: Span = Span::from_s(1);

/// The range of a task's own slice.
const OWN_SLICE: (Span, Span) = (Span::from_us(100), Span::from_ms(100));

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Eevdf {
    on: Switches,
    /// The request of tasks that have no slice of their own.
    slice: Span,
    /// Zero: there is no tick, requests end exactly.
    tick: Span,
    tasks: PerTask<Task>,
    nodes: Nodes,
    queues: Vec<Queue>,
    /// Per CPU, the task that it picked last.
    picked: Vec<Option<TaskId>>,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    weight: u32,
    /// Length of its requests in CPU time.
    slice: Span,
    service: Service,
    /// Virtual deadline of its request. While the task is away, only its distance from the
    /// vruntime means something.
    deadline: VTime,
    /// While it is away: V − v when it left.
    lag: i64,
    /// CPU time charged before the host reported it, because the weight changed meanwhile; it
    /// is set off against the next reports.
    prepaid: Span,
    /// Where it ran last.
    cpu: CpuId,
    /// It is in a tree.
    queued: bool,
    /// It has not been taken from the tree since it ran on `cpu`.
    put_back: bool,
    /// Blocked, but still in the tree.
    delayed: bool,
    /// Its CPU picked it and its request lasts.
    protected: bool,
    /// It has completed a request since it was picked.
    renewed: bool,
}

impl Policy for Eevdf {
    type Params = EevdfParams;
    const SOURCE: &'static str =
        "Stoica and Abdel-Wahab 1995; Linux 6.6 and 6.12.107 kernel/sched/fair.c";
    const NATIVE: &'static [Native] = &[Native { host: "linux", scheduler: Some("stock-eevdf") }];

    fn build(machine: &Machine, queues: usize, params: &EevdfParams) -> Result<Eevdf, ParamError> {
        if params.base_slice == Span::ZERO || params.base_slice > LONGEST {
            return Err(ParamError::Invalid { name: "base_slice", why: "from 1ns to 1s" });
        }
        let tick = params.tick.unwrap_or(machine.tick_or(Span::from_ms(1)));
        if tick > LONGEST {
            return Err(ParamError::Invalid { name: "tick", why: "at most 1s; 0 is none" });
        }
        Ok(Eevdf {
            on: Switches::of(params),
            slice: params.tunable_scaling.scale(params.base_slice, machine.cpus()),
            tick,
            tasks: PerTask::new(),
            nodes: Nodes::default(),
            queues: alloc::vec![Queue::default(); queues],
            picked: alloc::vec![None; machine.cpus()],
        })
    }
}

impl Task {
    fn vruntime(&self) -> VTime {
        self.service.vruntime
    }

    /// How far its deadline lies ahead of its vruntime.
    fn ahead(&self) -> i64 {
        self.deadline.minus(self.vruntime())
    }

    /// One request in virtual time; at least 1, so that every request takes CPU time.
    fn request(&self) -> i64 {
        to_virtual(self.slice, self.weight).max(1)
    }

    /// Uses CPU time; asks for the next slice if this one has been had.
    fn run(&mut self, ran: Span) {
        self.service = self.service.after(ran, self.weight);
        if self.vruntime().minus(self.deadline) >= 0 {
            self.deadline = self.vruntime().plus(self.request());
            self.protected = false;
            self.renewed = true;
        }
    }

    /// CPU time that `running`, which runs this task, has not been charged for.
    fn uncharged(&self, running: &Running, now: Time) -> Span {
        now.since(running.since()).saturating_sub(self.prepaid)
    }
}

/// `distance` virtual ns at weight `from`, as they are at weight `to`.
fn reweighted(distance: i64, from: u32, to: u32) -> i64 {
    (i128::from(distance) * i128::from(from) / i128::from(to)) as i64
}

impl Eevdf {
    fn slice_of(&self, params: &TaskParams) -> Span {
        match (params.budget, params.period) {
            (Some(own), None) if self.on.custom_slice => own.clamp(OWN_SLICE.0, OWN_SLICE.1),
            _ => self.slice,
        }
    }

    /// V at this moment: what runs counts with the time since its last charge.
    #[inline]
    fn mean(&self, at: &At<'_>) -> Mean {
        let mut mean = self.queues[at.queue].mean;
        for running in at.running {
            if let Some(task) = running.task() {
                mean.ran(self.tasks[task].uncharged(running, at.now));
            }
        }
        mean
    }

    /// Gives `task` a vruntime and a deadline in a runqueue in which it does not count yet.
    fn place(&mut self, at: &At<'_>, task: TaskId, why: Why) {
        let mean = self.mean(at);
        let task = &mut self.tasks[task];
        let mut lag = 0;
        if self.on.place_lag && mean.weight() > 0 {
            let (there, own) = (i128::from(mean.weight()), i128::from(task.weight));
            lag = (i128::from(task.lag) * (there + own) / there) as i64;
        }
        let ahead = match why {
            Why::Resumed => task.ahead(),
            Why::Moved if self.on.place_rel_deadline => task.ahead(),
            Why::New if self.on.place_deadline_initial => task.request() / 2,
            _ => task.request(),
        };
        task.service = Service::at(mean.value().plus(-lag));
        task.deadline = task.vruntime().plus(ahead.max(1));
    }

    /// Notes what `task` leaves with.
    fn note_lag(&mut self, at: &At<'_>, task: TaskId) {
        let mean = self.mean(at).value();
        let task = &mut self.tasks[task];
        let limit = to_virtual(Span((2 * task.slice.0).max(self.tick.0)), task.weight);
        task.lag = mean.minus(task.vruntime()).clamp(-limit, limit);
    }

    /// Puts `task`, which counts in the runqueue, into its tree.
    #[inline]
    fn insert(&mut self, queue: usize, task: TaskId) {
        let known = &mut self.tasks[task];
        known.queued = true;
        let (key, least) = (Deadline(known.deadline), Least(known.vruntime()));
        self.nodes.insert(&mut self.queues[queue].tree, task, key, least);
    }

    /// Takes `task` out of the tree.
    #[inline]
    fn extract(&mut self, queue: usize, task: TaskId) {
        self.nodes.remove(&mut self.queues[queue].tree, task);
        let known = &mut self.tasks[task];
        (known.queued, known.put_back) = (false, false);
    }

    /// `task`, which is not in the tree any more, stops counting in the runqueue.
    fn forget(&mut self, at: &At<'_>, task: TaskId) {
        self.note_lag(at, task);
        let (queue, task) = (&mut self.queues[at.queue], &mut self.tasks[task]);
        queue.mean.remove(task.service, task.weight);
        if !task.delayed {
            queue.load -= u64::from(task.weight);
            return;
        }
        task.delayed = false;
        queue.delayed -= 1;
        if self.on.delay_zero {
            task.lag = task.lag.min(0);
        }
    }

    /// `task`, which blocked but was kept in the tree, is ready again.
    fn revive(&mut self, at: &At<'_>, task: TaskId) {
        let queue = &mut self.queues[at.queue];
        let known = &mut self.tasks[task];
        known.delayed = false;
        queue.delayed -= 1;
        queue.load += u64::from(known.weight);
        let known = *known;
        if !self.on.delay_zero || self.mean(at).value().minus(known.vruntime()) <= 0 {
            return;
        }
        self.extract(at.queue, task);
        self.queues[at.queue].mean.remove(known.service, known.weight);
        self.tasks[task].lag = 0;
        self.place(at, task, Why::Woken);
        self.queues[at.queue].mean.add(self.tasks[task].service, known.weight);
        self.insert(at.queue, task);
    }

    /// `task` gives the CPU up and is about to enter the tree.
    fn give_way(&mut self, at: &At<'_>, task: TaskId) {
        if self.queues[at.queue].tree.is_empty() {
            return;
        }
        let eligible = self.mean(at).reached(self.tasks[task].vruntime());
        let known = &mut self.tasks[task];
        if self.on.yield_forfeits {
            if !eligible {
                return;
            }
            let mean = &mut self.queues[at.queue].mean;
            mean.remove(known.service, known.weight);
            known.service = Service::at(known.deadline);
            mean.add(known.service, known.weight);
        }
        known.deadline = known.deadline.plus(known.request());
        known.protected = false;
    }

    /// The task that `cpu` has put back itself and may go on with, if it is protected.
    fn protected(&self, cpu: CpuId, mean: &Mean) -> Option<TaskId> {
        let task = self.picked[cpu.index()]?;
        let known = &self.tasks[task];
        let stays = known.put_back && known.cpu == cpu && known.protected;
        (self.on.run_to_parity && stays && mean.reached(known.vruntime())).then_some(task)
    }

    /// The task that is next on `cpu`; it may be a delayed one.
    #[inline]
    fn choose(&self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let queue = &self.queues[at.queue];
        if queue.tree.is_empty() {
            return None;
        }
        let mean = self.mean(at);
        if let Some(task) = self.protected(cpu, &mean)
            && fits(task)
        {
            return Some(task);
        }
        let eligible = |vruntime: VTime| mean.reached(vruntime);
        let earliest = queue.earliest_fit(&self.nodes, eligible, &fits);
        earliest.or_else(|| queue.least(&self.nodes, fits))
    }

    /// Charges `task` and the mean.
    fn run(&mut self, queue: usize, task: TaskId, ran: Span) {
        self.tasks[task].run(ran);
        self.queues[queue].mean.ran(ran);
    }

    /// The weight of `task`, which counts in the runqueue, becomes `weight`; V, w·lag and
    /// w·(deadline − v) stay, and with them the CPU time until its request ends.
    fn reweigh(&mut self, at: &At<'_>, task: TaskId, weight: u32) {
        let value = self.mean(at).value();
        let (queue, known) = (&mut self.queues[at.queue], &mut self.tasks[task]);
        let lag = reweighted(value.minus(known.vruntime()), known.weight, weight);
        let ahead = reweighted(known.ahead(), known.weight, weight);
        queue.mean.remove(known.service, known.weight);
        if !known.delayed {
            queue.load = queue.load - u64::from(known.weight) + u64::from(weight);
        }
        known.service = Service::at(value.plus(-lag));
        known.deadline = known.vruntime().plus(ahead.max(1));
        known.weight = weight;
        queue.mean.add(known.service, weight);
    }
}

impl RunQueue for Eevdf {
    const PREEMPTS: bool = true;
    const LOAD_COUNTS_RUNNING: bool = true;

    fn smp() -> SmpParams {
        SmpParams::linux()
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.nodes.attach(task);
        let new = Task {
            weight: params.weight.max(1),
            slice: self.slice_of(params),
            service: Service::default(),
            deadline: VTime::default(),
            lag: 0,
            prepaid: Span::ZERO,
            cpu: CpuId(0),
            queued: false,
            put_back: false,
            delayed: false,
            protected: false,
            renewed: false,
        };
        self.tasks.set(task, new);
    }

    /// Goes by its own knowledge of where `task` is: it may have dropped a delayed one that is
    /// said to be queued.
    fn update(&mut self, at: &At<'_>, _: Whereabouts, task: TaskId, params: &TaskParams) {
        let (slice, weight) = (self.slice_of(params), params.weight.max(1));
        let known = &mut self.tasks[task];
        known.slice = slice;
        let before = known.weight;
        if weight == before {
            return;
        }
        if known.queued {
            self.extract(at.queue, task);
            self.reweigh(at, task, weight);
            self.insert(at.queue, task);
        } else if let Some(running) = at.running.iter().find(|r| r.task() == Some(task)) {
            // What it has run so far, it has run at the old weight.
            let ran = known.uncharged(running, at.now);
            known.prepaid += ran;
            self.run(at.queue, task, ran);
            self.reweigh(at, task, weight);
        } else {
            known.lag = reweighted(known.lag, before, weight);
            let ahead = reweighted(known.ahead(), before, weight);
            known.deadline = known.vruntime().plus(ahead);
            known.weight = weight;
        }
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        match entry.why {
            Why::Put(off) => {
                if off == Off::Yielded {
                    self.give_way(at, task);
                }
                self.tasks[task].put_back = off != Off::NotRun;
            }
            _ if self.tasks[task].delayed => return self.revive(at, task),
            why => {
                self.place(at, task, why);
                let (queue, task) = (&mut self.queues[at.queue], &self.tasks[task]);
                queue.mean.add(task.service, task.weight);
                queue.load += u64::from(task.weight);
            }
        }
        self.insert(at.queue, task);
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        loop {
            let task = self.choose(at, cpu, &fits)?;
            let known = self.tasks[task];
            self.extract(at.queue, task);
            if known.delayed {
                self.forget(at, task);
                continue;
            }
            let goes_on =
                known.put_back && known.cpu == cpu && self.picked[cpu.index()] == Some(task);
            let known = &mut self.tasks[task];
            known.protected |= !goes_on;
            known.renewed = false;
            known.cpu = cpu;
            self.picked[cpu.index()] = Some(task);
            return Some(task);
        }
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        // Whoever removes a delayed task cannot know whether it has been dropped since.
        if !self.tasks[task].queued {
            return;
        }
        self.extract(at.queue, task);
        self.forget(at, task);
    }

    #[inline]
    fn charge(&mut self, at: &At<'_>, task: TaskId, ran: Span) {
        let prepaid = &mut self.tasks[task].prepaid;
        let due = ran.saturating_sub(*prepaid);
        *prepaid = prepaid.saturating_sub(ran);
        self.run(at.queue, task, due);
    }

    fn leave(&mut self, at: &At<'_>, task: TaskId, why: Off) -> bool {
        let vruntime = self.tasks[task].vruntime();
        let delay =
            self.on.delay_dequeue && why == Off::Blocked && !self.mean(at).reached(vruntime);
        if delay {
            let (queue, known) = (&mut self.queues[at.queue], &mut self.tasks[task]);
            known.delayed = true;
            queue.delayed += 1;
            queue.load -= u64::from(known.weight);
            self.insert(at.queue, task);
        } else {
            self.forget(at, task);
        }
        delay
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, task: TaskId) -> Span {
        let task = &self.tasks[task];
        match self.tick {
            // Above zero: the deadline always lies ahead.
            Span::ZERO => task.service.until(task.deadline, task.weight) + task.prepaid,
            _ => Span::MAX,
        }
    }

    fn tick(&mut self, at: &At<'_>, task: TaskId) -> bool {
        if self.tick == Span::ZERO {
            return false;
        }
        let known = &mut self.tasks[task];
        let renewed = core::mem::take(&mut known.renewed);
        let (protected, vruntime) = (known.protected, known.vruntime());
        if self.queues[at.queue].tree.is_empty() {
            return false;
        }
        renewed || self.on.preempt_short && !protected && !self.mean(at).reached(vruntime)
    }

    fn tick_period(&self) -> Option<Span> {
        (self.tick > Span::ZERO).then_some(self.tick)
    }

    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let current = running.task().filter(|_| self.on.wakeup_preemption)?;
        let mean = self.mean(at);
        let wakee = self.tasks[task];
        let mut runs = self.tasks[current];
        runs.run(runs.uncharged(running, at.now));
        let eligible = mean.reached(runs.vruntime());
        let behind = runs.deadline.minus(wakee.deadline);
        if self.on.preempt_short
            && wakee.slice < runs.slice
            && mean.reached(wakee.vruntime())
            && (behind > 0 || !eligible)
        {
            runs.protected = false;
            self.tasks[current].protected = false;
        }
        if eligible && (behind < 0 || self.on.run_to_parity && runs.protected) {
            return None;
        }
        let first = self.queues[at.queue].earliest(&self.nodes, |v| mean.reached(v))?;
        // Of several CPUs, first those whose task has had more than its share.
        let class = if eligible { 0 } else { 1 << 63 };
        (first == task).then_some(class | behind.max(0).unsigned_abs())
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].tree.len() - self.queues[queue].delayed as usize
    }

    #[inline]
    fn load(&self, queue: usize) -> u64 {
        self.queues[queue].load
    }

    #[inline]
    fn weight(&self, task: TaskId) -> u64 {
        u64::from(self.tasks[task].weight)
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let last = self.queues[at.queue].tree.last();
        core::iter::successors(last, |&task| self.nodes.prev(task))
            .find(|&task| !self.tasks[task].delayed && fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("vruntime_ns", task.vruntime().0 as i64);
        sink("deadline_ns", task.deadline.0 as i64);
        sink("lag_ns", task.lag);
        sink("delayed", i64::from(task.delayed));
    }
}
