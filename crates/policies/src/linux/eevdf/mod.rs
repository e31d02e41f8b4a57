//! Earliest eligible virtual deadline first: of the tasks that have had no more than their share,
//! the one whose request is due first in virtual time.
//!
//! Sources: I. Stoica, H. Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995; Linux
//! `kernel/sched/fair.c`, `features.h`: 6.6 (b01db23d5923), 6.12.107, 6.18, 7.2.13 and 7.3.4
//! (`profile`).
//!
//! A task of weight w that runs for Δ gains Δ·1024/w of virtual runtime v. V is the mean of v
//! over all tasks of the runqueue, waiting and running, weighted by w; V − v is a task's *lag*,
//! what it is owed. It is *eligible* while v ≤ V. It asks for one slice r at a time, due at
//! d = v + r·1024/w, and for the next when it is charged and v has come to d.
//! Order key: (d, arrival number) among the eligible.
//!
//! - Charges: whatever changes a runqueue charges what runs there first, as `update_curr` does: a
//!   tick, a task that comes, goes, moves or changes its nice value, a switch. If the running
//!   task's request has ended and others wait, its CPU picks again; from 6.18 on also if it has
//!   lost its protection (`shortest_slice_limits`), in 6.12 if it is not eligible besides.
//! - Placement: v = V − lag·(W + w)/W, where W is the weight already there, so that after the
//!   arrival has moved V the lag is what it was. The lag is kept over a sleep within limits.
//! - `run_to_parity`: a task, once picked, is not preempted while it is eligible and protected:
//!   until its request ends, from 6.18 on for the shortest slice of the runqueue at most, in 7.3
//!   in place of that until it is not eligible. A task that goes on into its next request without
//!   another one having run is not protected any more.
//! - `preempt_short`: the wake-up of a task with a shorter slice ignores that protection.
//! - `delay_dequeue`: a task that blocks while it is not eligible stays in competition, so that
//!   it cannot sleep its debt off. It leaves when it is picked, or goes on when it wakes up;
//!   `delay_zero` drops what it is owed by then.
//! - A yielder's deadline moves back by one request (6.6), or if it is eligible it gives the rest
//!   of its request away, v = d (`yield_forfeits`). Either way it may be picked again: it does
//!   not go behind tasks that are not eligible.
//! - A change of nice or of slice is a dequeue and a placement.
//! - `hrtick`: a timer ends requests exactly. It is set when a task is switched to while others
//!   wait, or when another one comes; a CPU whose timer is set while it runs is kicked for that,
//!   and goes on with what it runs.
//!
//! Deviations:
//! - A slice may end exactly at each pick (`tick = 0`), where Linux looks at ticks, or at its
//!   timer. Then a task that lost its protection runs until its slice ends or another wake-up
//!   decides.
//! - The timer of `hrtick` goes off in the ns in which the request ends; Linux rounds down, and
//!   what is short is made up for by the time that the interrupt takes.
//! - Of equal deadlines of waiting tasks the one that came first is first; 6.6 goes by the shape
//!   of its tree.
//! - A task's own slice (sched_attr::sched_runtime) is its `budget`, if it has no `period`.
//! - Where CPUs pull otherwise than as in Linux, they take the latest deadline first.
//! - Left out: control groups, `NEXT_BUDDY` (off in all kernels), SCHED_IDLE and SCHED_BATCH.
//!
//! If CPUs share a runqueue, all of their tasks count in V, and each CPU protects what it ran
//! itself. Then it may be that no waiting task is eligible: the one nearest to it is taken. A
//! task whose weight is worth more than a CPU falls behind V without bound.
//!
//! Cost: O(log n), plus O(CPUs of the runqueue) to charge them.

mod queue;
mod share;
mod switches;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use self::queue::{Deadline, Extremes, Mean, Nodes, Queue};
use self::share::Share;
use self::switches::Switches;
pub use self::switches::{EevdfParams, Limits, Preemption, Profile};
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::machine::Level;
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Links, List};
use anysched_core::registry::{First, Native, Policy};
use anysched_core::smp::{
    At, Balancing, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why,
};
use anysched_core::time::{Span, Time, VTime};
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical};

/// The longest base slice and the longest tick.
const LONGEST: Span = Span::from_s(1);

/// The range of a task's own slice.
const OWN_SLICE: (Span, Span) = (Span::from_us(100), Span::from_ms(100));

/// The timer of `hrtick` is never set to less.
const HRTICK_LEAST: Span = Span::from_us(10);

/// The timer of `hrtick` is left as it is if it would change by this at most.
const HRTICK_SLACK: Span = Span::from_us(5);

/// What the interrupt of that timer is taken to last, if charges were rounded down so often that
/// the request would not have ended yet.
const HRTICK_LATE: Span = Span::from_us(1);

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Eevdf {
    on: Switches,
    /// The request of tasks that have no slice of their own.
    slice: Span,
    /// The same before scaling.
    base_slice: Span,
    /// Zero: there is no tick, requests end exactly.
    tick: Span,
    tasks: PerTask<Task>,
    nodes: Nodes,
    queues: Vec<Queue>,
    cpus: Vec<Cpu>,
    /// Delayed tasks that were dropped and not taken note of yet.
    dropped: List,
    links: Links,
    /// Where the task runs that caused the last push, if one did.
    waker: Option<CpuId>,
}

/// What is known of a CPU.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// The task that it picked last.
    picked: Option<TaskId>,
    /// It is to pick again.
    resched: Resched,
    /// It does not know yet that it is to, as another CPU decided that without an interrupt.
    unseen: bool,
    /// It is to pick again, but only to learn of `hrtick_at`.
    rearm: bool,
    /// When the timer of `hrtick` goes off.
    hrtick_at: Time,
    /// CPUs with the same number share a last-level cache.
    llc: u16,
}

/// Whether a CPU is to pick again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resched {
    No,
    /// Once it is in the kernel.
    Lazily,
    AtOnce,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    share: Share,
    /// Length of its requests in CPU time.
    slice: Span,
    vruntime: VTime,
    /// Virtual deadline of its request. While the task is away, only its distance from the
    /// vruntime means something.
    deadline: VTime,
    /// How far it is protected, see [`Task::is_protected`].
    protection: VTime,
    /// V − v when it left or, if `delay_keeps_debt`, when it was delayed.
    lag: i64,
    /// CPU time charged before the host reported it; it is set off against the next reports.
    prepaid: Span,
    /// Where it ran last.
    cpu: CpuId,
    /// It is in a tree.
    queued: bool,
    /// It has not been taken from the tree since it ran on `cpu`.
    put_back: bool,
    /// Blocked, but still in the tree.
    delayed: bool,
}

impl Policy for Eevdf {
    type Params = EevdfParams;
    const SOURCE: &'static str =
        "Stoica and Abdel-Wahab 1995; Linux 6.6 to 7.3.4 kernel/sched/fair.c";
    const ORDER: &'static [First] = &[First::Most("eligible"), First::Least("deadline_ns")];
    const NATIVE: &'static [Native] = &[Native { host: "linux", scheduler: Some("stock-eevdf") }];

    fn build(machine: &Machine, queues: usize, params: &EevdfParams) -> Result<Eevdf, ParamError> {
        let base_slice = params.base_slice();
        if base_slice == Span::ZERO || base_slice > LONGEST {
            return Err(ParamError::Invalid { name: "base_slice", why: "from 1ns to 1s" });
        }
        let tick = params.tick.unwrap_or(machine.tick_or(Span::from_ms(1)));
        if tick > LONGEST {
            return Err(ParamError::Invalid { name: "tick", why: "at most 1s; 0 is none" });
        }
        let mut on = Switches::of(params);
        on.hrtick &= tick != Span::ZERO;
        let cpu = |cpu| Cpu {
            picked: None,
            resched: Resched::No,
            unseen: false,
            rearm: false,
            hrtick_at: Time::NEVER,
            llc: machine.cpu(cpu).group(Level::Llc),
        };
        Ok(Eevdf {
            on,
            slice: params.tunable_scaling.scale(base_slice, machine.cpus()),
            base_slice,
            tick,
            tasks: PerTask::new(),
            nodes: Nodes::default(),
            queues: alloc::vec![Queue::default(); queues],
            cpus: machine.cpu_ids().map(cpu).collect(),
            dropped: List::default(),
            links: Links::default(),
            waker: None,
        })
    }
}

impl Task {
    /// How far its deadline lies ahead of its vruntime.
    fn ahead(&self) -> i64 {
        self.deadline.minus(self.vruntime)
    }

    /// One request in virtual time; at least 1, so that every request takes CPU time.
    fn request(&self) -> i64 {
        self.share.to_virtual(self.slice).max(1)
    }

    /// Whether it, which runs or has just run, is protected: with `shortest_slice_limits`, its
    /// vruntime is below where protection ends; else it still has the deadline with which it was
    /// picked.
    #[inline]
    fn is_protected(&self, shortest_slice_limits: bool) -> bool {
        match shortest_slice_limits {
            true => self.vruntime.minus(self.protection) < 0,
            false => self.protection == self.deadline,
        }
    }

    /// It goes on by `distance` in virtual time; whether that ends its request.
    #[inline]
    fn go_on(&mut self, mean: &mut Mean, distance: i64) -> bool {
        self.vruntime = self.vruntime.plus(distance);
        mean.ran(distance, self.share.weight);
        let ended = self.ahead() <= 0;
        if ended {
            self.deadline = self.vruntime.plus(self.request());
        }
        ended
    }

    /// CPU time that `running`, which runs this task, has not been charged for.
    fn uncharged(&self, running: &Running, now: Time) -> Span {
        now.since(running.since()).saturating_sub(self.prepaid)
    }
}

/// Requests, charges, placement.
impl Eevdf {
    fn slice_of(&self, params: &TaskParams) -> Span {
        match (params.budget, params.period) {
            (Some(own), None) if self.on.custom_slice => own.clamp(OWN_SLICE.0, OWN_SLICE.1),
            _ => self.slice,
        }
    }

    fn mean(&self, at: &At<'_>) -> &Mean {
        &self.queues[at.queue].mean
    }

    #[inline]
    fn is_eligible(&self, at: &At<'_>, task: TaskId) -> bool {
        self.mean(at).reached(self.tasks[task].vruntime)
    }

    /// Whether `task`, which runs or has just run, is protected.
    #[inline]
    fn is_protected(&self, task: TaskId) -> bool {
        self.tasks[task].is_protected(self.on.shortest_slice_limits)
    }

    fn end_protection(&mut self, task: TaskId) {
        if self.is_protected(task) {
            let limited = self.on.shortest_slice_limits;
            let task = &mut self.tasks[task];
            task.protection = if limited { task.vruntime } else { task.deadline.plus(1) };
        }
    }

    /// `task`, which is not in the tree, begins to run.
    #[inline]
    fn protect(&mut self, queue: usize, task: TaskId) {
        let known = &self.tasks[task];
        let mut until = known.deadline;
        if self.on.shortest_slice_limits {
            let queue = &self.queues[queue];
            let least = match self.on.run_to_parity {
                true => queue.extremes(&self.nodes).map_or(Span::MAX, |all| all.shortest),
                false => self.base_slice,
            };
            if least < known.slice {
                let end = if self.on.protect_to_parity && self.on.preempt_short {
                    let mut others = queue.mean;
                    others.remove(known.vruntime, known.share.weight);
                    others.value().plus(1)
                } else {
                    known.vruntime.plus(known.share.to_virtual(least))
                };
                until = until.min(end);
            }
        }
        self.tasks[task].protection = until;
    }

    /// A wake-up did not preempt `current`: it is protected for the shortest slice at most.
    fn limit_protection(&mut self, at: &At<'_>, current: TaskId) {
        if !self.on.run_to_parity {
            return;
        }
        let known = &self.tasks[current];
        let queue = &self.queues[at.queue];
        let all = queue.extremes(&self.nodes);
        let least = all.map_or(known.slice, |all| all.shortest.min(known.slice));
        let from = match self.on.wakeup_limits {
            Limits::All => known.vruntime.min(queue.mean.value()),
            _ => known.vruntime,
        };
        let end = known.protection.min(from.plus(known.share.to_virtual(least)));
        self.tasks[current].protection = end;
    }

    /// How a decision about fair tasks is passed on.
    fn softly(&self) -> Resched {
        match self.on.preemption {
            Preemption::Lazy => Resched::Lazily,
            Preemption::Full | Preemption::Voluntary => Resched::AtOnce,
        }
    }

    fn resched(&mut self, cpu: CpuId, how: Resched) {
        let cpu = &mut self.cpus[cpu.index()];
        cpu.resched = cpu.resched.max(how);
    }

    /// As the kernel charges (`update_curr`): `task`, which runs on `cpu`, has used `ran`. If its
    /// request has ended or it has lost its protection, and others wait, `cpu` is to pick again.
    #[inline]
    fn run(&mut self, queue: usize, cpu: CpuId, task: TaskId, ran: Span) {
        let (queue, known) = (&mut self.queues[queue], &mut self.tasks[task]);
        let ended = known.go_on(&mut queue.mean, known.share.to_virtual(ran));
        if queue.tree.is_empty() {
            return;
        }
        let limited = self.on.shortest_slice_limits;
        let gives_way = ended
            || !known.is_protected(limited)
                && (limited || self.on.preempt_short && !queue.mean.reached(known.vruntime));
        if gives_way {
            self.resched(cpu, self.softly());
        }
    }

    /// Charges what runs up to now, as every change of a runqueue does.
    #[inline]
    fn charge_running(&mut self, at: &At<'_>) {
        for running in at.running {
            if let Some(task) = running.task() {
                let known = &mut self.tasks[task];
                let ran = known.uncharged(running, at.now);
                if ran > Span::ZERO {
                    known.prepaid += ran;
                    self.run(at.queue, running.cpu(), task, ran);
                }
            }
        }
    }

    /// Gives `task` a vruntime and a deadline in a runqueue in which it does not count yet.
    fn place(&mut self, at: &At<'_>, task: TaskId, ahead: i64) {
        let mean = &self.queues[at.queue].mean;
        let task = &mut self.tasks[task];
        let mut lag = 0;
        if self.on.place_lag && mean.weight() > 0 && task.lag != 0 {
            let (there, own) = (mean.weight() as i64, i64::from(task.share.weight));
            let more = match task.lag.checked_mul(own) {
                Some(product) => product / there,
                None => (i128::from(task.lag) * i128::from(own) / i128::from(there)) as i64,
            };
            lag = task.lag + more;
        }
        task.vruntime = mean.value().plus(-lag);
        task.deadline = task.vruntime.plus(ahead);
    }

    /// What `task`, which counts in the runqueue, is owed, within limits.
    fn lag(&self, at: &At<'_>, task: TaskId) -> i64 {
        let known = &self.tasks[task];
        let queue = &self.queues[at.queue];
        let most = if self.on.longest_slice_limits_lag {
            let waits = queue.extremes(&self.nodes).map_or(Span::ZERO, |all| all.longest);
            let runs =
                at.running.iter().filter_map(Running::task).map(|task| self.tasks[task].slice);
            runs.fold(waits.max(known.slice), Span::max) + self.tick
        } else {
            Span((2 * known.slice.0).max(self.tick.0))
        };
        let limit = known.share.to_virtual(most);
        let lag = queue.mean.value().minus(known.vruntime).clamp(-limit, limit);
        match known.delayed && self.on.delay_keeps_debt {
            true if self.on.delay_zero => lag.max(known.lag).min(0),
            true => lag.max(known.lag),
            false => lag,
        }
    }

    /// Puts `task`, which counts in the runqueue, into its tree.
    #[inline]
    fn insert(&mut self, queue: usize, task: TaskId) {
        let known = &mut self.tasks[task];
        known.queued = true;
        let (key, own) = (Deadline(known.deadline), Extremes::of(known.vruntime, known.slice));
        self.nodes.insert(&mut self.queues[queue].tree, task, key, own);
    }

    /// Takes `task` out of the tree.
    #[inline]
    fn extract(&mut self, queue: usize, task: TaskId) {
        self.nodes.remove(&mut self.queues[queue].tree, task);
        let known = &mut self.tasks[task];
        (known.queued, known.put_back) = (false, false);
    }

    /// `task` is not the next any more, if it was.
    #[inline]
    fn forget_next(&mut self, queue: usize, task: TaskId) {
        let next = &mut self.queues[queue].next;
        if *next == Some(task) {
            *next = None;
        }
    }

    /// `task`, which is not in the tree any more, stops counting in the runqueue with this lag.
    fn forget(&mut self, queue: usize, task: TaskId, lag: i64) {
        self.forget_next(queue, task);
        let (queue, task) = (&mut self.queues[queue], &mut self.tasks[task]);
        task.lag = lag;
        queue.mean.remove(task.vruntime, task.share.weight);
        if task.delayed {
            task.delayed = false;
            queue.delayed -= 1;
        } else {
            queue.load -= u64::from(task.share.weight);
        }
    }

    /// `task`, which was delayed, is out of the tree and leaves for good.
    fn finish_delayed(&mut self, at: &At<'_>, task: TaskId) {
        let lag = self.lag(at, task);
        self.forget(at.queue, task, if self.on.delay_zero { lag.min(0) } else { lag });
        if self.queues.len() > 1 {
            self.links.push_back(&mut self.dropped, task);
        }
    }

    /// `task`, which blocked but was kept in the tree, is ready again.
    fn revive(&mut self, at: &At<'_>, task: TaskId) {
        let before = self.tasks[task];
        let moves = if self.on.delay_keeps_debt {
            self.charge_running(at);
            let lag = self.lag(at, task);
            self.tasks[task].lag = lag;
            self.mean(at).value().plus(-lag) != before.vruntime
        } else {
            // V is as of the last charge.
            let is_owed = self.on.delay_zero && self.mean(at).value().minus(before.vruntime) > 0;
            if is_owed {
                self.tasks[task].lag = 0;
            }
            is_owed
        };
        if moves {
            self.extract(at.queue, task);
            self.queues[at.queue].mean.remove(before.vruntime, before.share.weight);
            self.place(at, task, before.request());
            let placed = self.tasks[task].vruntime;
            self.queues[at.queue].mean.add(placed, before.share.weight);
            self.insert(at.queue, task);
        }
        self.tasks[task].delayed = false;
        let queue = &mut self.queues[at.queue];
        queue.delayed -= 1;
        queue.load += u64::from(before.share.weight);
    }

    /// `task`, which counts in the runqueue, is given another weight or slice: it leaves and is
    /// placed anew.
    fn replace(&mut self, at: &At<'_>, task: TaskId, share: Share, slice: Span) {
        let lag = self.lag(at, task);
        let old = self.tasks[task];
        if old.queued {
            self.extract(at.queue, task);
        }
        self.forget_next(at.queue, task);
        self.queues[at.queue].mean.remove(old.vruntime, old.share.weight);
        let known = &mut self.tasks[task];
        (known.share, known.slice) = (share, slice);
        known.lag = old.share.convert(lag, share);
        let ahead = match (self.on.place_rel_deadline, self.on.scale_deadline) {
            (false, _) => known.request(),
            (true, false) => old.ahead(),
            (true, true) => old.share.convert(old.ahead(), share),
        };
        self.place(at, task, ahead);
        let queue = &mut self.queues[at.queue];
        queue.mean.add(self.tasks[task].vruntime, share.weight);
        if !old.delayed {
            queue.load = queue.load - u64::from(old.share.weight) + u64::from(share.weight);
        }
        if old.queued {
            self.insert(at.queue, task);
        }
    }

    /// `task` gives the CPU up and is about to enter the tree.
    fn give_way(&mut self, at: &At<'_>, task: TaskId) {
        if self.queues[at.queue].tree.is_empty() {
            return;
        }
        let eligible = self.is_eligible(at, task);
        let known = &mut self.tasks[task];
        if self.on.yield_forfeits {
            if !eligible {
                return;
            }
            let forfeited = known.ahead();
            known.vruntime = known.deadline;
            self.queues[at.queue].mean.ran(forfeited, known.share.weight);
        }
        known.deadline = known.deadline.plus(known.request());
    }
}

/// Decisions.
impl Eevdf {
    /// Who is first: the next, if it is eligible; what runs, if it is protected and eligible; the
    /// earliest deadline among the eligible. `current` may be in the tree or not. With `protect`
    /// off, only deadlines count.
    #[inline]
    fn first(
        &self,
        at: &At<'_>,
        current: Option<TaskId>,
        protect: bool,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        let queue = &self.queues[at.queue];
        let eligible = |vruntime: VTime| queue.mean.reached(vruntime);
        if protect
            && let Some(next) = queue.next
            && self.is_eligible(at, next)
            && fits(next)
        {
            return Some(next);
        }
        let current = current.filter(|&task| self.is_eligible(at, task) && fits(task));
        let parity = self.on.run_to_parity || self.on.shortest_slice_limits;
        if protect
            && parity
            && let Some(task) = current
            && self.is_protected(task)
        {
            return Some(task);
        }
        let waits = queue.earliest_fit(&self.nodes, eligible, &fits);
        match (current, waits) {
            (Some(runs), Some(waits)) => {
                let earlier = self.tasks[waits].deadline.minus(self.tasks[runs].deadline);
                let stays = earlier > 0 || earlier == 0 && self.on.running_wins_ties;
                Some(if stays { runs } else { waits })
            }
            (runs, waits) => runs.or(waits).or_else(|| queue.least(&self.nodes, fits)),
        }
    }

    /// Whether `task`, which has just been queued, should interrupt what `running` runs, as the
    /// kernel decides it (`wakeup_preempt_fair`); of several CPUs the one with the largest number.
    fn contend(&mut self, at: &At<'_>, task: TaskId, running: &Running, new: bool) -> Option<u64> {
        let current = running.task().filter(|_| self.on.wakeup_preemption)?;
        let was_told = self.cpus[running.cpu().index()].resched == Resched::AtOnce;
        if was_told && !(self.on.short_runs_next && self.on.preempt_short) {
            return None;
        }
        self.charge_running(at);
        let (wakee, runs) = (&self.tasks[task], &self.tasks[current]);
        let (is_delayed, sooner) = (wakee.delayed, runs.deadline.minus(wakee.deadline));
        let short = self.on.preempt_short && wakee.slice < runs.slice;
        // Of several CPUs, first those whose task has had more than its share.
        let class = if self.is_eligible(at, current) { 0 } else { 1 << 63 };
        let margin = class | sooner.max(0).unsigned_abs();
        if self.on.short_ends_protection {
            let short = short && self.is_eligible(at, task);
            if short && (sooner > 0 || class != 0) {
                self.end_protection(current);
            }
            return (self.first(at, Some(current), true, |_| true) == Some(task)).then_some(margin);
        }
        let limits = self.on.wakeup_limits;
        // From 7.2 on no task that is still delayed preempts.
        let waits = is_delayed && self.on.delay_keeps_debt;
        let ignored = !short && (new && !self.on.fork_preemption || waits);
        if ignored || waits && limits == Limits::All {
            if limits == Limits::All {
                self.limit_protection(at, current);
            }
            return None;
        }
        let first = self.first_ready(at, current, !short);
        // A delayed task is never the next: whoever picks the next runs it.
        let short_next = short && self.on.short_runs_next && !is_delayed;
        if first == Some(task) || short_next && self.is_eligible(at, task) {
            if short || self.on.short_runs_next {
                self.end_protection(current);
            }
            if short_next {
                self.suggest(at.queue, task);
            }
            return Some(margin);
        }
        if limits != Limits::Never && (short || limits != Limits::Short) {
            self.limit_protection(at, current);
        }
        None
    }

    /// Who is first beside `current`; from 7.2 on, delayed tasks that would be are dropped.
    fn first_ready(&mut self, at: &At<'_>, current: TaskId, protect: bool) -> Option<TaskId> {
        loop {
            let first = self.first(at, Some(current), protect, |_| true)?;
            if !self.tasks[first].delayed || !self.on.delay_keeps_debt {
                return Some(first);
            }
            self.extract(at.queue, first);
            self.finish_delayed(at, first);
        }
    }

    /// `task` shall run next unless one with a shorter slice shall.
    fn suggest(&mut self, queue: usize, task: TaskId) {
        let slice = self.tasks[task].slice;
        let next = self.queues[queue].next;
        if next.is_none_or(|next| self.tasks[next].slice >= slice) {
            self.queues[queue].next = Some(task);
        }
    }

    /// `task` was queued: decides about the CPU of the runqueue, if it has only one.
    #[inline]
    fn decide(&mut self, at: &At<'_>, task: TaskId, new: bool) {
        if let [running] = at.running
            && self.contend(at, task, running, new).is_some()
        {
            self.resched(running.cpu(), self.softly());
        }
    }

    /// Sets the timer of what runs, if others wait and it is not set already.
    #[inline]
    fn start_hrtick(&mut self, at: &At<'_>) {
        if !self.on.hrtick {
            return;
        }
        for running in at.running {
            let cpu = running.cpu().index();
            if let Some(task) = running.task()
                && self.cpus[cpu].hrtick_at == Time::NEVER
            {
                self.set_hrtick(at, cpu, task);
                self.cpus[cpu].rearm = self.cpus[cpu].hrtick_at != Time::NEVER;
            }
        }
    }

    /// Sets the timer of `cpu` to the end of the request of `task`, if others wait.
    fn set_hrtick(&mut self, at: &At<'_>, cpu: usize, task: TaskId) {
        if self.queues[at.queue].tree.is_empty() {
            return;
        }
        let known = &self.tasks[task];
        let left = known.share.to_real(known.ahead()).max(HRTICK_LEAST);
        let (due, set) = (at.now + left, &mut self.cpus[cpu].hrtick_at);
        let change = due.since(*set).max(set.since(due));
        if *set == Time::NEVER || change > HRTICK_SLACK {
            *set = due;
        }
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
        self.links.attach(task);
        let new = Task {
            share: Share::new(params.weight, self.on.floor_reciprocals),
            slice: self.slice_of(params),
            vruntime: VTime::default(),
            deadline: VTime::default(),
            protection: VTime::default(),
            lag: 0,
            prepaid: Span::ZERO,
            cpu: CpuId(0),
            queued: false,
            put_back: false,
            delayed: false,
        };
        self.tasks.set(task, new);
    }

    /// Goes by its own knowledge of where `task` is: it may have dropped a delayed one that is
    /// said to be queued. As in Linux, a task that is there leaves and is placed anew.
    fn update(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId, params: &TaskParams) {
        self.waker = None;
        if is != Whereabouts::Away {
            at.running.iter().for_each(|running| self.cpus[running.cpu().index()].unseen = false);
        }
        let (slice, weight) = (self.slice_of(params), params.weight.max(1));
        let known = &self.tasks[task];
        let (old, queued) = (known.share, known.queued);
        if weight == old.weight && slice == known.slice {
            return;
        }
        let share = Share::new(weight, self.on.floor_reciprocals);
        let runs = at.running.iter().find(|running| running.task() == Some(task)).copied();
        if !queued && runs.is_none() {
            let known = &mut self.tasks[task];
            let ahead = old.convert(known.ahead(), share);
            known.lag = old.convert(known.lag, share);
            known.deadline = known.vruntime.plus(ahead);
            (known.share, known.slice) = (share, slice);
            return;
        }
        self.charge_running(at);
        self.replace(at, task, share, slice);
        if runs.is_some() && self.on.protect_at_nice {
            self.protect(at.queue, task);
        }
        self.start_hrtick(at);
        if let Some(running) = runs {
            if weight < old.weight && !self.queues[at.queue].tree.is_empty() {
                self.resched(running.cpu(), Resched::AtOnce);
            }
        } else if weight != old.weight {
            self.decide(at, task, false);
        }
    }

    /// As in Linux: it is placed anew, with the lag and the rest of the request that it has.
    fn requeue(&mut self, at: &At<'_>, is: Whereabouts, task: TaskId) {
        let Task { share, slice, .. } = self.tasks[task];
        self.charge_running(at);
        self.replace(at, task, share, slice);
        if is == Whereabouts::Running && self.on.protect_at_nice {
            self.protect(at.queue, task);
        }
        self.start_hrtick(at);
    }

    fn wants_pick(&self, cpu: CpuId) -> bool {
        let cpu = &self.cpus[cpu.index()];
        match cpu.resched {
            Resched::No => cpu.rearm,
            Resched::Lazily => cpu.rearm || !cpu.unseen,
            Resched::AtOnce => true,
        }
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        if let Why::Put(off) = entry.why {
            if off == Off::Yielded {
                self.give_way(at, task);
            }
            let known = &mut self.tasks[task];
            known.put_back = off != Off::NotRun;
            self.cpus[known.cpu.index()].rearm &= off == Off::Preempted;
            self.insert(at.queue, task);
            return;
        }
        self.waker = entry.by.map(|waker| self.tasks[waker].cpu);
        let new = entry.why == Why::New;
        if self.tasks[task].delayed && entry.why != Why::Moved {
            self.revive(at, task);
        } else {
            self.charge_running(at);
            let known = &self.tasks[task];
            let ahead = match entry.why {
                Why::Resumed => known.ahead(),
                Why::Moved if self.on.place_rel_deadline => known.ahead(),
                Why::New if self.on.place_deadline_initial => known.request() / 2,
                _ => known.request(),
            };
            self.place(at, task, ahead);
            let (queue, known) = (&mut self.queues[at.queue], &self.tasks[task]);
            queue.mean.add(known.vruntime, known.share.weight);
            if known.delayed {
                queue.delayed += 1;
            } else {
                queue.load += u64::from(known.share.weight);
            }
            self.insert(at.queue, task);
            self.start_hrtick(at);
        }
        self.decide(at, task, new);
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let index = cpu.index();
        let Cpu { picked, resched, rearm, .. } = self.cpus[index];
        let asked = &mut self.cpus[index];
        (asked.resched, asked.unseen, asked.rearm) = (Resched::No, false, false);
        let mut current = picked.filter(|&task| {
            let known = &self.tasks[task];
            known.put_back && known.cpu == cpu
        });
        loop {
            if self.queues[at.queue].tree.is_empty() {
                self.cpus[index].hrtick_at = Time::NEVER;
                return None;
            }
            let task = match current {
                Some(task) if rearm && resched == Resched::No && fits(task) => task,
                // A delayed task that is first is dropped, wherever it may run.
                _ => {
                    self.first(at, current, true, |task| self.tasks[task].delayed || fits(task))?
                }
            };
            self.extract(at.queue, task);
            if self.tasks[task].delayed {
                self.finish_delayed(at, task);
                current = current.filter(|&current| current != task);
                continue;
            }
            self.tasks[task].cpu = cpu;
            if current != Some(task) {
                self.forget_next(at.queue, task);
                self.protect(at.queue, task);
                self.cpus[index].picked = Some(task);
                if self.on.hrtick {
                    self.set_hrtick(at, index, task);
                }
            }
            return Some(task);
        }
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, why: Removal) {
        // Whoever removes a delayed task cannot know whether it has been dropped since.
        if !self.tasks[task].queued {
            return;
        }
        if let [running] = at.running {
            let asked = &mut self.cpus[running.cpu().index()];
            // Who pulls does not interrupt.
            let pulls = why == Removal::Move;
            asked.unseen = pulls && (asked.unseen || asked.resched == Resched::No);
        }
        self.charge_running(at);
        let delayed = self.tasks[task].delayed;
        if delayed && why == Removal::Dequeue {
            self.extract(at.queue, task);
            self.finish_delayed(at, task);
            return;
        }
        let lag = self.lag(at, task);
        self.extract(at.queue, task);
        self.forget(at.queue, task, lag);
        self.tasks[task].delayed = delayed;
    }

    #[inline]
    fn charge(&mut self, at: &At<'_>, task: TaskId, ran: Span) {
        let known = &mut self.tasks[task];
        let due = ran.saturating_sub(known.prepaid);
        known.prepaid = known.prepaid.saturating_sub(ran);
        let cpu = known.cpu;
        if due > Span::ZERO {
            self.run(at.queue, cpu, task, due);
        }
    }

    #[inline]
    fn settle(&mut self, at: &At<'_>, task: TaskId, ran: Span, why: Off) {
        let deadline = self.tasks[task].deadline;
        self.charge(at, task, ran);
        if why == Off::Expired {
            let known = &mut self.tasks[task];
            let (cpu, short) = (known.cpu, known.ahead());
            if known.deadline == deadline && short <= known.share.to_virtual(HRTICK_LATE) {
                known.go_on(&mut self.queues[at.queue].mean, short);
            }
            self.cpus[cpu.index()].hrtick_at = Time::NEVER;
            self.resched(cpu, Resched::AtOnce);
        }
    }

    fn leave(&mut self, at: &At<'_>, task: TaskId, why: Off) -> bool {
        let lag = self.lag(at, task);
        let delay = self.on.delay_dequeue && why == Off::Blocked && !self.is_eligible(at, task);
        if delay {
            let (queue, known) = (&mut self.queues[at.queue], &mut self.tasks[task]);
            (known.delayed, known.lag) = (true, lag);
            // Until the CPU has picked, it counts as what runs there.
            known.put_back = true;
            self.cpus[known.cpu.index()].rearm = false;
            queue.delayed += 1;
            queue.load -= u64::from(known.share.weight);
            self.insert(at.queue, task);
        } else {
            self.forget(at.queue, task, lag);
        }
        delay
    }

    const DELAYS: bool = true;

    fn take_dropped(&mut self) -> Option<TaskId> {
        self.links.pop_front(&mut self.dropped)
    }

    fn balancing(&self) -> Balancing {
        let (eligible, by_rate) = (self.on.balance_eligible, self.on.ni_rate);
        Balancing { eligible, by_rate, ..Balancing::default() }
    }

    fn is_owed(&self, queue: usize, task: TaskId) -> bool {
        !self.on.place_lag || self.queues[queue].mean.reached(self.tasks[task].vruntime)
    }

    fn is_buddy(&self, queue: usize, task: TaskId) -> bool {
        self.queues[queue].next == Some(task)
    }

    #[inline]
    fn slice(&mut self, at: &At<'_>, task: TaskId) -> Span {
        let known = &self.tasks[task];
        if self.tick == Span::ZERO {
            return (known.share.to_real(known.ahead()) + known.prepaid).max(Span(1));
        }
        match self.cpus[known.cpu.index()].hrtick_at {
            Time::NEVER => Span::MAX,
            due => due.since(at.now).max(Span(1)),
        }
    }

    #[inline]
    fn tick(&mut self, _: &At<'_>, task: TaskId) -> bool {
        let cpu = self.tasks[task].cpu;
        self.cpus[cpu.index()].unseen = false;
        self.wants_pick(cpu)
    }

    fn tick_period(&self) -> Option<Span> {
        (self.tick > Span::ZERO).then_some(self.tick)
    }

    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        if at.running.len() > 1 {
            return self.contend(at, task, running, false);
        }
        let index = running.cpu().index();
        let near = |waker: CpuId| self.cpus[waker.index()].llc == self.cpus[index].llc;
        let far = self.waker.is_some_and(|waker| waker != running.cpu() && near(waker));
        self.cpus[index].unseen = far;
        self.wants_pick(running.cpu()).then_some(0)
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
        u64::from(self.tasks[task].share.weight)
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let last = self.queues[at.queue].tree.last();
        core::iter::successors(last, |&task| self.nodes.prev(task))
            .find(|&task| !self.tasks[task].delayed && fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("vruntime_ns", task.vruntime.0 as i64);
        sink("deadline_ns", task.deadline.0 as i64);
        sink("lag_ns", task.lag);
        sink("delayed", i64::from(task.delayed));
    }

    fn probe_in(&self, queue: usize, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        self.probe(task, sink);
        let is_eligible = self.queues[queue].mean.reached(self.tasks[task].vruntime);
        sink("eligible", i64::from(is_eligible));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Eevdf {
                on: fixed,
                slice: fixed,
                base_slice: fixed,
                tick: fixed,
                tasks,
                nodes: fixed,
                queues: of(nodes),
                cpus,
                dropped: of(links),
                links: fixed,
                waker
            }
        );
    }
}

canonical!(Cpu { picked, resched, unseen, rearm, hrtick_at, llc: fixed });
canonical!(Resched: u64);
canonical!(Task {
    share,
    slice,
    vruntime,
    deadline,
    protection,
    lag,
    prepaid,
    cpu,
    queued,
    put_back,
    delayed,
});
