//! The rules of Linux's CFS on one CPU, function by function of `kernel/sched/fair.c` 6.1, with
//! those of other versions behind switches. Lists are searched from end to end.
//!
//! What runs stays current until another task is picked, as in the kernel: a CPU must pick in the
//! instant in which its task has left. Picks are not undone.

use anysched_core::params::NICE_WEIGHTS;
use anysched_core::{Arrival, CpuId, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams};

use crate::Oracle;

/// The inverses of [`NICE_WEIGHTS`], as the kernel has them in a table.
const INVERSES: [u64; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, 449829, 563644,
    704093, 875809, 1099582, 1376151, 1717300, 2157191, 2708050, 3363326, 4194304, 5237765,
    6557202, 8165337, 10153587, 12820798, 15790321, 19976592, 24970740, 31350126, 39045157,
    49367440, 61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
];

/// The weight of tasks of `SCHED_IDLE`, and its inverse.
pub const IDLE: (u32, u64) = (3, 1_431_655_765);

/// What differs between kernels, and what can be set. Times in ns, as scaled.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Options {
    pub latency: u64,
    pub min_granularity: u64,
    pub wakeup_granularity: u64,
    pub keep_slice: bool,
    pub keep_buddies: bool,
    pub base_slice: bool,
    pub cap_slice: bool,
    pub short_idle: bool,
    pub renew_sleepers: bool,
    pub await_leaver: bool,
    pub gentle_sleepers: bool,
    pub start_debit: bool,
    pub child_runs_first: bool,
    pub wakeup_preempt: bool,
    pub next_buddy: bool,
    pub last_buddy: bool,
}

/// What the kernels have, as the page of `cfs` lists it; times for one CPU.
pub const PROFILES: [(&str, Options); 7] = [
    ("3.14", LINUX_3_14),
    ("3.15", LINUX_3_15),
    ("4.19", LINUX_4_19),
    ("5.12", LINUX_5_12),
    ("5.14", LINUX_5_14),
    ("6.1", LINUX_6_1),
    ("6.5", Options { cap_slice: true, ..LINUX_6_1 }),
];

const LINUX_3_14: Options = Options {
    latency: 6_000_000,
    min_granularity: 750_000,
    wakeup_granularity: 1_000_000,
    keep_slice: false,
    keep_buddies: false,
    base_slice: false,
    cap_slice: false,
    short_idle: false,
    renew_sleepers: false,
    await_leaver: true,
    gentle_sleepers: true,
    start_debit: true,
    child_runs_first: false,
    wakeup_preempt: true,
    next_buddy: false,
    last_buddy: true,
};
const LINUX_3_15: Options = Options { keep_slice: true, ..LINUX_3_14 };
const LINUX_4_19: Options = Options { await_leaver: false, ..LINUX_3_15 };
const LINUX_5_12: Options = Options { base_slice: true, ..LINUX_4_19 };
const LINUX_5_14: Options = Options { keep_buddies: true, ..LINUX_5_12 };
/// What 6.1 has.
pub const LINUX_6_1: Options = Options { short_idle: true, renew_sleepers: true, ..LINUX_5_14 };

/// A task.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entity {
    pub(crate) weight: u32,
    pub(crate) vruntime: u64,
    exec_start: u64,
    sum: u64,
    prev_sum: u64,
    pub(crate) on_rq: bool,
    /// It has been placed.
    pub(crate) known: bool,
}

impl Entity {
    /// A new task of this weight.
    pub(crate) fn new(weight: u32) -> Entity {
        Entity { weight, ..Entity::default() }
    }
}

/// See the [module documentation](self).
pub struct Cfs {
    options: Options,
    pub(crate) now: u64,
    pub(crate) entities: Vec<Entity>,
    /// Who waits, in the order of insertion.
    tree: Vec<usize>,
    pub(crate) curr: Option<usize>,
    /// `curr` is on the CPU; else the CPU is about to pick.
    pub(crate) runs: bool,
    pub(crate) resched: bool,
    pub(crate) min_vruntime: u64,
    pub(crate) last: Option<usize>,
    pub(crate) next: Option<usize>,
    skip: Option<usize>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    switches: u64,
    again: u64,
    wakeup_preemptions: u64,
    ends: u64,
    ahead: u64,
    buddies: u64,
    skips: u64,
    reweights: u64,
    forks: u64,
    idles: u64,
    long: u64,
}

/// How far `a` is behind `b`.
fn behind(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

/// `time` · `weight` · `inverse` / 2^32, where the product is cut to 32 bits first.
fn scale(time: u64, weight: u64, inverse: u64) -> u64 {
    let (mut factor, mut shift) = (u128::from(weight) * u128::from(inverse), 32);
    while factor >= 1 << 32 {
        factor >>= 1;
        shift -= 1;
    }
    ((u128::from(time) * factor) >> shift) as u64
}

/// CPU time as virtual time of a task of `weight`.
fn fair(time: u64, weight: u32) -> u64 {
    if weight == 1024 {
        return time;
    }
    let place = NICE_WEIGHTS.iter().position(|&other| other == weight);
    scale(time, 1024, place.map_or(IDLE.1, |place| INVERSES[place]))
}

impl Cfs {
    /// With no task yet.
    pub fn new(options: Options, tasks: usize) -> Cfs {
        Cfs {
            options,
            now: 0,
            entities: vec![Entity::default(); tasks],
            tree: Vec::new(),
            curr: None,
            runs: false,
            resched: false,
            min_vruntime: 0,
            last: None,
            next: None,
            skip: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn is_idle(&self, task: usize) -> bool {
        self.entities[task].weight == IDLE.0
    }

    /// Waiting and current tasks.
    fn runnable(&self) -> Vec<usize> {
        let curr = self.curr.filter(|&curr| self.entities[curr].on_rq);
        self.tree.iter().copied().chain(curr).collect()
    }

    /// The waiting tasks by vruntime, equal ones in the order of insertion.
    fn sorted(&self) -> Vec<usize> {
        let mut sorted: Vec<usize> = Vec::new();
        for &task in &self.tree {
            let v = self.entities[task].vruntime;
            let later = |&other: &usize| behind(self.entities[other].vruntime, v) > 0;
            let place = sorted.iter().position(later).unwrap_or(sorted.len());
            sorted.insert(place, task);
        }
        sorted
    }

    pub(crate) fn update_curr(&mut self) {
        let Some(curr) = self.curr else { return };
        let entity = &mut self.entities[curr];
        let delta = behind(self.now, entity.exec_start);
        if delta <= 0 {
            return;
        }
        entity.exec_start = self.now;
        entity.sum += delta as u64;
        entity.vruntime = entity.vruntime.wrapping_add(fair(delta as u64, entity.weight));
        self.update_min_vruntime();
    }

    fn update_min_vruntime(&mut self) {
        let counts = |&curr: &usize| self.entities[curr].on_rq || self.options.await_leaver;
        let curr = self.curr.filter(counts).map(|curr| self.entities[curr].vruntime);
        let leftmost = self.sorted().first().map(|&task| self.entities[task].vruntime);
        let least = match (curr, leftmost) {
            (Some(a), Some(b)) if behind(b, a) < 0 => b,
            (Some(a), _) => a,
            (None, Some(b)) => b,
            (None, None) => return,
        };
        if behind(least, self.min_vruntime) > 0 {
            self.min_vruntime = least;
        }
    }

    fn slice(&self, task: usize) -> u64 {
        let mut all = self.runnable();
        let among_idle = !all.is_empty() && all.iter().all(|&task| self.is_idle(task));
        if !self.entities[task].on_rq {
            all.push(task);
        }
        let nr_latency = self.options.latency.div_ceil(self.options.min_granularity);
        let period = match all.len() as u64 {
            n if n > nr_latency => n * self.options.min_granularity,
            _ => self.options.latency,
        };
        let total: u64 = all.iter().map(|&task| u64::from(self.entities[task].weight)).sum();
        let slice = scale(period, self.entities[task].weight.into(), 0xffff_ffff / total);
        if !self.options.base_slice {
            return slice;
        }
        let idle = self.options.short_idle && self.is_idle(task) && !among_idle;
        slice.max(if idle { 750_000 } else { self.options.min_granularity })
    }

    /// Where a new task is placed, seen from the queue.
    fn place_new(&self, task: usize) -> u64 {
        let debit = match self.options.start_debit {
            true => fair(self.slice(task), self.entities[task].weight),
            false => 0,
        };
        self.min_vruntime.wrapping_add(debit)
    }

    pub(crate) fn place_woken(&mut self, task: usize) {
        let idle = self.options.short_idle && self.is_idle(task);
        let mut credit = if idle { self.options.min_granularity } else { self.options.latency };
        if self.options.gentle_sleepers {
            credit /= 2;
        }
        let place = self.min_vruntime.wrapping_sub(credit);
        let entity = &mut self.entities[task];
        let slept = behind(self.now, entity.exec_start);
        let long = entity.exec_start != 0 && slept > 1 << 53;
        if self.options.renew_sleepers && long {
            self.counts.long += 1;
            entity.vruntime = place;
        } else if behind(place, entity.vruntime) > 0 {
            entity.vruntime = place;
        }
    }

    fn clear_buddies(&mut self, task: usize) {
        for buddy in [&mut self.last, &mut self.next, &mut self.skip] {
            *buddy = buddy.filter(|&other| other != task);
        }
    }

    /// Takes out a task that does not stay ready.
    pub(crate) fn dequeue_entity(&mut self, task: usize) {
        self.update_curr();
        self.clear_buddies(task);
        self.tree.retain(|&other| other != task);
        self.entities[task].on_rq = false;
        self.update_min_vruntime();
    }

    pub(crate) fn enqueue_entity(&mut self, task: usize) {
        self.tree.push(task);
        (self.entities[task].on_rq, self.entities[task].known) = (true, true);
    }

    fn is_crowded(&self) -> bool {
        let nr_latency = self.options.latency.div_ceil(self.options.min_granularity);
        self.runnable().len() as u64 >= nr_latency
    }

    /// Whether `second` may go before `left`.
    fn is_near(&self, second: usize, left: usize) -> bool {
        let (second, left) = (&self.entities[second], &self.entities[left]);
        let gran = fair(self.options.wakeup_granularity, left.weight);
        behind(second.vruntime, left.vruntime) <= gran as i64
    }

    fn set_next_buddy(&mut self, task: usize) {
        if !self.is_idle(task) {
            self.next = Some(task);
        }
    }

    /// After `task` became ready, or its weight changed: whether it preempts.
    pub(crate) fn check_preempt(&mut self, task: usize, may_be_next: bool) {
        if self.options.next_buddy && self.is_crowded() && may_be_next {
            self.set_next_buddy(task);
        }
        let Some(curr) = self.curr.filter(|_| self.runs && !self.resched) else {
            return;
        };
        if self.is_idle(curr) && !self.is_idle(task) {
            self.counts.idles += 1;
            self.resched = true;
            return;
        }
        if self.is_idle(task) || !self.options.wakeup_preempt {
            return;
        }
        self.update_curr();
        let ahead = behind(self.entities[curr].vruntime, self.entities[task].vruntime);
        let gran = fair(self.options.wakeup_granularity, self.entities[task].weight);
        if ahead <= 0 || ahead <= gran as i64 {
            return;
        }
        self.counts.wakeup_preemptions += 1;
        self.set_next_buddy(task);
        self.resched = true;
        if self.options.last_buddy && self.is_crowded() && !self.is_idle(curr) {
            self.last = Some(curr);
        }
    }

    /// Places `task`, which is new, by the runqueue of its creator.
    pub(crate) fn fork(&mut self, task: usize, from: bool) {
        let parent = self.curr.filter(|_| self.runs && from);
        self.counts.forks += u64::from(parent.is_some());
        self.update_curr();
        self.entities[task].vruntime = self.place_new(task);
        let Some(parent) = parent else { return };
        let (own, child) = (self.entities[parent].vruntime, self.entities[task].vruntime);
        if behind(own, child) > 0 {
            self.entities[task].vruntime = own;
        } else if self.options.child_runs_first && own != child {
            (self.entities[parent].vruntime, self.entities[task].vruntime) = (child, own);
            self.resched = true;
        }
    }

    fn become_ready(&mut self, task: usize, arrival: &Arrival) {
        match arrival.why {
            Enqueue::New => self.fork(task, arrival.from.is_some()),
            Enqueue::Wakeup { .. } => {
                self.update_curr();
                if !self.entities[task].known {
                    self.entities[task].vruntime = self.min_vruntime;
                }
                self.place_woken(task);
            }
            Enqueue::Resumed { .. } => self.update_curr(),
        }
        self.enqueue_entity(task);
        self.check_preempt(task, matches!(arrival.why, Enqueue::Wakeup { .. }));
        // An idle CPU, or one that is about to pick.
        self.resched |= !self.runs;
    }

    pub(crate) fn reweight(&mut self, task: usize, weight: u32) {
        let old = self.entities[task].weight;
        if old == weight {
            return;
        }
        self.counts.reweights += 1;
        if !self.entities[task].on_rq {
            self.entities[task].weight = weight;
            return;
        }
        self.update_curr();
        self.clear_buddies(task);
        self.entities[task].weight = weight;
        let runs = self.curr == Some(task);
        if runs {
            self.entities[task].prev_sum = self.entities[task].sum;
        } else {
            self.tree.retain(|&other| other != task);
            self.tree.push(task);
        }
        if self.runnable().len() == 1 {
            return;
        }
        if runs {
            self.resched |= self.runs && weight < old;
        } else {
            self.check_preempt(task, true);
        }
    }

    /// `task` is taken out for a moment in which nothing else happens.
    pub(crate) fn requeue(&mut self, task: usize) {
        self.update_curr();
        self.clear_buddies(task);
        if self.curr == Some(task) {
            self.entities[task].prev_sum = self.entities[task].sum;
        } else {
            self.tree.retain(|&other| other != task);
            self.tree.push(task);
        }
    }

    pub(crate) fn tick_now(&mut self, task: usize) {
        self.update_curr();
        if self.runnable().len() < 2 {
            return;
        }
        let mut ideal = self.slice(task);
        if self.options.cap_slice {
            ideal = ideal.min(self.options.latency);
        }
        let ran = self.entities[task].sum - self.entities[task].prev_sum;
        if ran > ideal {
            self.counts.ends += 1;
            self.resched = true;
            self.clear_buddies(task);
            return;
        }
        let first = self.sorted()[0];
        let ahead = behind(self.entities[task].vruntime, self.entities[first].vruntime);
        if ran >= self.options.min_granularity && ahead > ideal as i64 {
            self.counts.ahead += 1;
            self.resched = true;
        }
    }

    /// The task that runs next, current or from the tree.
    fn pick_entity(&mut self) -> Option<usize> {
        let sorted = self.sorted();
        let curr = self.curr.filter(|&curr| self.entities[curr].on_rq);
        // Of equals, the current task is the last.
        let mut order = sorted;
        if let Some(curr) = curr {
            let v = self.entities[curr].vruntime;
            let later = |&other: &usize| behind(self.entities[other].vruntime, v) > 0;
            let place = order.iter().position(later).unwrap_or(order.len());
            order.insert(place, curr);
        }
        let left = *order.first()?;
        let mut chosen = left;
        if self.skip == Some(left)
            && let Some(&second) = order.get(1)
            && self.is_near(second, left)
        {
            self.counts.skips += 1;
            chosen = second;
        }
        for buddy in [self.next, self.last].into_iter().flatten() {
            if self.is_near(buddy, left) {
                self.counts.buddies += u64::from(buddy != chosen);
                return Some(buddy);
            }
        }
        Some(chosen)
    }

    pub(crate) fn schedule(&mut self) -> Option<usize> {
        self.resched = false;
        let prev = self.curr.filter(|&prev| self.entities[prev].on_rq);
        let picked = self.pick_entity();
        let again = prev.is_some() && picked == prev;
        self.counts.again += u64::from(again);
        self.counts.switches += u64::from(!again);
        if let Some(prev) = prev.filter(|_| !again) {
            self.tree.push(prev);
        }
        self.curr = picked;
        self.runs = picked.is_some();
        let task = picked?;
        if !again || !self.options.keep_buddies || !self.options.keep_slice {
            self.clear_buddies(task);
        }
        if !again || !self.options.keep_slice {
            self.entities[task].prev_sum = self.entities[task].sum;
        }
        self.tree.retain(|&other| other != task);
        self.entities[task].exec_start = self.now;
        picked
    }

    pub(crate) fn put(&mut self, task: usize, why: Off) {
        self.update_curr();
        if !why.runnable() {
            self.dequeue_entity(task);
        } else if why == Off::Yielded && self.runnable().len() > 1 {
            self.clear_buddies(task);
            self.skip = Some(task);
        }
        self.runs = false;
    }

    /// Follows a call at the time of `cx`, and makes the kick that it causes.
    fn at<R>(&mut self, cx: &mut Cx<'_>, call: impl FnOnce(&mut Cfs) -> R) -> R {
        self.now = cx.now.0;
        let told = self.resched;
        let answer = call(self);
        if self.resched && !told {
            cx.kick(CpuId(0));
        }
        answer
    }
}

impl Scheduler for Cfs {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.entities[task.index()] = Entity::new(params.weight);
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.at(cx, |cfs| cfs.reweight(task.index(), params.weight));
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.at(cx, |cfs| cfs.become_ready(task.index(), &arrival));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.at(cx, |cfs| cfs.dequeue_entity(task.index()));
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        let task = self.at(cx, Cfs::schedule)?;
        Some(Pick { task: TaskId(task as u32), slice: Span::MAX })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, _: Span, why: Off) {
        self.at(cx, |cfs| cfs.put(task.index(), why));
    }

    fn tick(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, _: Span) {
        self.at(cx, |cfs| cfs.tick_now(task.index()));
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let entity = &self.entities[task.index()];
        if entity.known {
            sink("vruntime_ns", entity.vruntime as i64);
            sink("min_vruntime_ns", self.min_vruntime as i64);
        }
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let counts = &self.counts;
        for (name, count) in [
            ("switches", counts.switches),
            ("picked again", counts.again),
            ("preempted by a wake-up", counts.wakeup_preemptions),
            ("slices that ended", counts.ends),
            ("too far ahead", counts.ahead),
            ("buddies picked", counts.buddies),
            ("yielders skipped", counts.skips),
            ("new weights", counts.reweights),
            ("forks", counts.forks),
            ("idle ones preempted", counts.idles),
            ("long sleepers", counts.long),
        ] {
            sink(name, count);
        }
    }
}

impl Oracle for Cfs {
    const TIMERS: bool = false;
}
