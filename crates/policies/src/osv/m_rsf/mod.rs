//! M-RSF: a feedback queue of three levels; on the first two the shortest task goes first, for
//! one slice each, on the third tasks run to completion in the order in which they got there.
//!
//! Source: Dong, Yang and Li, 2024 (M-RSF for OSv), read with the decisions below.
//! Order key: (level, place). New tasks are dealt to the three parts of level 1, Q1-1 to Q1-3;
//! CPUs take from the parts in turn, then from Q2, then from Q3. Within a part and in Q2 the key
//! is (CPU time left, arrival number), without sorting and in Q3 the arrival number. A slice that
//! ends sends the task to the next level; nothing ever preempts.
//! Dealing: the tasks created at one instant are a batch; they are sorted by (CPU time, number of
//! the task) and dealt before the next pick or the next entry at a later time. Without `sort_q1`
//! they are dealt by their numbers.
//! `layout` says which CPUs serve which queues. A task that no CPU of its queue may run (by
//! affinity, or because that CPU is out of use) is served by any CPU that may.
//! Where the source is silent:
//! - A yielding task is queued anew with what is left of its slice; one that the host preempts
//!   keeps its arrival number too. Blocking keeps level, part and what is left of the slice, as
//!   there is one slice per level; with nothing left the task goes on at the next level.
//! - `batch`: Q2 is served when no task of level 1 waits or runs, Q3 when none of level 2 does
//!   either; later arrivals close them again.
//! - `spill`: a slice that ends in a part of Q1 sends the tasks waiting there to Q2 unrun.
//! - `aging` counts from the last time the task was queued. From Q2 a task returns to the part it
//!   was dealt to; arrival number and slice are new.
//! - An estimate is what a task is expected to use from waking to blocking; beyond it, nothing
//!   counts as left. A host that does not know the CPU time leaves `oracle` with `ewma`.
//! - [`Off::NotRun`] gives the part its turn back.
//!
//! Cost: O(log n); the end of a slice with `spill` O(log n) per task that it moves.

mod tune;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuSet, DomainId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Links, List, NONE, WideForest, WideTree};
use anysched_core::registry::{First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, SmpParams, Whereabouts, Why};
use anysched_core::time::{Span, Time};
use anysched_core::tuning::{Baseline, Space};
use anysched_core::{Canon, Ewma, Machine, Off, PerTask, canon_fields, canonical, choice, params};

choice! {
    /// Which CPUs serve which queues.
    pub enum Layout {
        /// Each CPU all of them.
        Shared = "shared",
        /// Three CPUs: each its part of Q1, then Q2, then Q3.
        Bound3 = "bound3",
        /// Three CPUs: one for each level.
        Pipe3 = "pipe3",
        /// Five CPUs: one for each part of Q1, one for Q2, one for Q3.
        Pipe5 = "pipe5",
    }
}

choice! {
    /// How a batch is dealt to the parts of Q1.
    pub enum Deal {
        /// In turn.
        Cyclic = "cyclic",
        /// The first third to the first part, and so on; one or two tasks in turn.
        ContiguousThirds = "contiguous-thirds",
    }
}

choice! {
    /// Whence the CPU time is known that a task needs until it blocks or ends.
    pub enum Estimate {
        /// From the host.
        Oracle = "oracle",
        /// From the task's own past.
        Ewma = "ewma",
        /// From the past of all tasks of its domain.
        Profile = "profile",
    }
}

params! {
    /// Parameters of `m-rsf`.
    pub struct MRsfParams {
        /// Which CPUs serve which queues: all serve all; three have a part of Q1 each and share
        /// Q2 and Q3; three have a level each; five have a queue each.
        layout: Layout = Layout::Shared,
        /// Slice in Q1; the source takes the mean CPU time of the tasks.
        q1: Span = Span::from_ms(10),
        /// Slice in Q2; the source takes the mean CPU time of the tasks.
        q2: Span = Span::from_ms(10),
        /// Whether batches and the parts of Q1 are in order of CPU time left, or of arrival.
        sort_q1: bool = true,
        /// Whether Q2 is in order of CPU time left, or of arrival.
        sort_q2: bool = true,
        /// How the tasks created at one instant are dealt to the parts of Q1: in turn, or a third
        /// to each.
        deal: Deal = Deal::Cyclic,
        /// Whether a level is served only when no task of a higher one waits or runs.
        batch: bool = false,
        /// Whether a slice that ends in a part of Q1 sends all tasks waiting there to Q2.
        spill: bool = false,
        /// A task that waits this long in Q2 or Q3 moves up a level; none: never.
        aging: Span = Span::MAX,
        /// Whence the CPU time of a task is known: from the host, from an average over its own
        /// past bursts in which the latest counts 1/16, or from all past bursts of its domain.
        estimate: Estimate = Estimate::Oracle,
        /// What a task is expected to use of which there is no past.
        initial: Span = Span::ZERO,
    }
}

/// The queues 0 to 2 are the parts of Q1.
const PARTS: usize = 3;
const Q2: usize = 3;
const Q3: usize = 4;
/// New tasks that have not been dealt yet.
const UNDEALT: usize = 5;
const QUEUES: usize = 6;

/// The level of each queue, from 0.
const LEVEL: [usize; QUEUES] = [0, 0, 0, 1, 2, 0];
/// The order in which queues are served when a part of Q1 has its turn.
const ORDER: [[u8; 5]; PARTS] = [[0, 1, 2, 3, 4], [1, 2, 0, 3, 4], [2, 0, 1, 3, 4]];
/// A set of all queues that can be served, one bit each.
const ALL: u8 = 0b11111;

impl Layout {
    /// Per CPU, the queues it serves, one bit each; where there are no entries, all.
    fn roles(self) -> &'static [u8] {
        match self {
            Layout::Shared => &[],
            Layout::Bound3 => &[0b11001, 0b11010, 0b11100],
            Layout::Pipe3 => &[0b00111, 0b01000, 0b10000],
            Layout::Pipe5 => &[0b00001, 0b00010, 0b00100, 0b01000, 0b10000],
        }
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct MRsf {
    params: MRsfParams,
    /// The slice of each level.
    slices: [Span; 3],
    /// Queues in order of CPU time left, one bit each.
    sorted: u8,
    roles: &'static [u8],
    /// CPUs with a role that are out of use, one bit each.
    offline: u8,
    /// Attached tasks that may not run on all CPUs with a role.
    restricted: u32,
    forest: WideForest,
    trees: [WideTree; QUEUES],
    /// Per queue, up to where the tasks that come next have been read ahead.
    read: [u32; QUEUES],
    tasks: PerTask<Task>,
    profiles: Vec<Profile>,
    waiting: usize,
    /// Tasks of each level that wait or run.
    members: [usize; 3],
    /// The part of Q1 that has its turn.
    turn: usize,
    /// The part of Q1 that the next task is dealt to.
    next_part: usize,
    /// When a task last entered.
    entered: Time,
    /// How often tasks have been queued.
    entries: u64,
    opened: bool,
    /// With `aging`, what waits in Q2 and in Q3 by the time it was queued.
    links: Links,
    by_wait: [List; 2],
}

/// A cache line: of many waiting tasks, each costs one that is not in the caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Task {
    /// CPU time that it is expected to use until it blocks or ends, from when it became ready.
    need: Span,
    /// CPU time that it has used since.
    used: Span,
    slice_left: Span,
    /// When it was last queued; kept with `aging`.
    since: Time,
    /// Average of past bursts that the host did not know.
    average: Span,
    /// The number with which it was last queued.
    number: u64,
    domain: DomainId,
    /// The queue it is in or was taken from.
    queue: u8,
    /// The part of Q1 that it was dealt to.
    part: u8,
    /// The CPUs with a role that it may run on, one bit each.
    allowed: u8,
    /// Whether the host knows the need.
    known: bool,
}

impl Task {
    fn left(&self) -> Span {
        self.need.saturating_sub(self.used)
    }
}

/// All bursts of a domain that have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Profile {
    bursts: u64,
    total: Span,
}

impl Policy for MRsf {
    type Params = MRsfParams;
    const SOURCE: &'static str = "Dong, Yang and Li, M-RSF for OSv, 2024";
    const ORDER: &'static [First] = &[First::Least("level")];
    const STARVES: bool = true;
    const SPACES: &'static [Space] = &tune::SPACES;
    const BASELINE: Option<Baseline> = Some(tune::UNTUNED);
    const CLAIRVOYANT: bool = true;

    fn is_clairvoyant(params: &MRsfParams) -> bool {
        params.estimate == Estimate::Oracle
    }

    fn is_work_conserving(params: &MRsfParams) -> bool {
        params.layout == Layout::Shared && !params.batch
    }

    fn build(machine: &Machine, _: usize, params: &MRsfParams) -> Result<MRsf, ParamError> {
        for (name, span) in [("q1", params.q1), ("q2", params.q2), ("aging", params.aging)] {
            if span == Span::ZERO {
                return Err(ParamError::Invalid { name, why: "must be above 0" });
            }
        }
        let roles = params.layout.roles();
        if !roles.is_empty() && roles.len() != machine.cpus() {
            let why = "bound3 and pipe3 need a machine of 3 CPUs, pipe5 one of 5; shared runs on \
                       any";
            return Err(ParamError::Invalid { name: "layout", why });
        }
        let mut sorted = 0;
        if params.sort_q1 {
            sorted |= 0b111 | 1 << UNDEALT;
        }
        if params.sort_q2 {
            sorted |= 1 << Q2;
        }
        Ok(MRsf {
            params: params.clone(),
            slices: [params.q1, params.q2, Span::MAX],
            sorted,
            roles,
            offline: 0,
            restricted: 0,
            forest: WideForest::new(QUEUES),
            trees: [WideTree::default(); QUEUES],
            read: [NONE; QUEUES],
            tasks: PerTask::new(),
            profiles: Vec::new(),
            waiting: 0,
            members: [0; 3],
            turn: 0,
            next_part: 0,
            entered: Time::ZERO,
            entries: 0,
            opened: false,
            links: Links::default(),
            by_wait: [List::default(); 2],
        })
    }
}

impl MRsf {
    fn ages(&self) -> bool {
        self.params.aging != Span::MAX
    }

    /// All CPUs with a role, one bit each.
    fn all_allowed(&self) -> u8 {
        (1 << self.roles.len()) - 1
    }

    fn allowed(&self, affinity: &CpuSet) -> u8 {
        let cpus = (0..self.roles.len()).filter(|&cpu| affinity.contains(CpuId(cpu as u16)));
        cpus.fold(0, |set, cpu| set | 1 << cpu)
    }

    /// The queues that `cpu` serves, one bit each.
    #[inline]
    fn role(&self, cpu: CpuId) -> u8 {
        self.roles.get(cpu.index()).copied().unwrap_or(ALL)
    }

    /// The queues that are served, one bit each.
    #[inline]
    fn open(&self) -> u8 {
        match self.members {
            _ if !self.params.batch => ALL,
            [0, 0, _] => ALL,
            [0, ..] => ALL & !(1 << Q3),
            _ => 0b111,
        }
    }

    /// Whether some task may have to be served by a CPU whose role that is not.
    #[inline]
    fn has_stand_ins(&self) -> bool {
        self.offline != 0 || self.restricted > 0
    }

    /// Whether no CPU whose role it is may run `task`, which waits in `queue`.
    fn is_stranded(&self, queue: usize, task: TaskId) -> bool {
        let usable = self.tasks[task].allowed & !self.offline;
        let mut roles = self.roles.iter().enumerate();
        !roles.any(|(cpu, role)| role >> queue & 1 != 0 && usable >> cpu & 1 != 0)
    }

    /// The first of `queues`, in the order in which they are served now, that `fits`.
    #[inline]
    fn find(&self, queues: u8, fits: impl Fn(usize, TaskId) -> bool) -> Option<(usize, TaskId)> {
        for queue in ORDER[self.turn].map(usize::from) {
            if queues >> queue & 1 == 0 {
                continue;
            }
            let tree = &self.trees[queue];
            let Some(first) = self.forest.first(tree) else { continue };
            if fits(queue, first) {
                return Some((queue, first));
            }
            let found = self.forest.iter(tree).skip(1).find(|&task| fits(queue, task));
            if let Some(found) = found {
                return Some((queue, found));
            }
        }
        None
    }

    /// Queues `id` where its `queue` says, behind what has been queued before.
    fn insert_last(&mut self, now: Time, id: TaskId) {
        self.entries += 1;
        self.insert(now, id, self.entries);
    }

    #[inline]
    fn insert(&mut self, now: Time, id: TaskId, number: u64) {
        let task = &mut self.tasks[id];
        let queue = usize::from(task.queue);
        let left = if self.sorted >> queue & 1 != 0 { task.left() } else { Span::ZERO };
        task.number = if queue == UNDEALT { u64::from(id.0) } else { number };
        self.forest.insert(&mut self.trees[queue], id, (left.0, task.number));
        self.waiting += 1;
        if self.params.aging != Span::MAX && (Q2..=Q3).contains(&queue) {
            task.since = now;
            self.links.push_back(&mut self.by_wait[queue - Q2], id);
        }
    }

    #[inline]
    fn take_out(&mut self, id: TaskId, queue: usize) {
        let tree = &mut self.trees[queue];
        // The first one is found without looking up where it is.
        if self.forest.first(tree) == Some(id) {
            self.forest.pop_first(tree);
        } else {
            self.forest.remove(tree, id);
        }
        self.waiting -= 1;
        if self.ages() && (Q2..=Q3).contains(&queue) {
            self.links.remove(&mut self.by_wait[queue - Q2], id);
        }
    }

    /// Brings what is known of the tasks that `queue` serves next into the caches.
    #[inline]
    fn read_ahead(&mut self, queue: usize) {
        let (place, tasks) = self.forest.first_together(&self.trees[queue]);
        if core::mem::replace(&mut self.read[queue], place) != place {
            let read = |&task: &u32| u64::from(self.tasks[TaskId(task)].queue);
            core::hint::black_box(tasks.iter().map(read).sum::<u64>());
        }
    }

    /// Deals the batch, if there is one.
    #[inline]
    fn deal(&mut self) {
        if !self.trees[UNDEALT].is_empty() {
            self.deal_batch();
        }
    }

    fn deal_batch(&mut self) {
        let size = self.trees[UNDEALT].len();
        let thirds = self.params.deal == Deal::ContiguousThirds && size >= PARTS;
        for place in 0..size {
            let Some(id) = self.forest.pop_first(&mut self.trees[UNDEALT]) else { return };
            self.waiting -= 1;
            let part = if thirds { place * PARTS / size } else { self.next_part };
            if !thirds {
                self.next_part = (part + 1) % PARTS;
            }
            let task = &mut self.tasks[id];
            (task.queue, task.part) = (part as u8, part as u8);
            self.insert_last(self.entered, id);
        }
    }

    /// Lets `id`, which is not queued, go on in `queue` with a new slice.
    fn change_queue(&mut self, id: TaskId, queue: usize) {
        let task = &mut self.tasks[id];
        let (from, to) = (LEVEL[usize::from(task.queue)], LEVEL[queue]);
        task.queue = queue as u8;
        task.slice_left = self.slices[to];
        self.members[to] += 1;
        self.leave_level(from);
    }

    #[inline]
    fn leave_level(&mut self, level: usize) {
        self.members[level] -= 1;
        self.opened |= self.params.batch && self.members[level] == 0;
    }

    /// Sends what waits in a part of Q1 to Q2.
    fn spill(&mut self, now: Time, part: usize) {
        self.deal();
        while let Some(id) = self.forest.pop_first(&mut self.trees[part]) {
            self.waiting -= 1;
            self.change_queue(id, Q2);
            self.insert_last(now, id);
            self.opened = true;
        }
    }

    /// What `id` is expected to use until it blocks or ends.
    fn expect(&mut self, id: TaskId, burst: Option<Span>) {
        let initial = self.params.initial;
        let task = &mut self.tasks[id];
        let known = burst.filter(|_| self.params.estimate == Estimate::Oracle);
        task.known = known.is_some();
        task.used = Span::ZERO;
        task.need = known.unwrap_or_else(|| match self.params.estimate {
            Estimate::Oracle | Estimate::Ewma => task.average,
            Estimate::Profile => {
                let Profile { bursts, total } = self.profiles[usize::from(task.domain.0)];
                total.0.checked_div(bursts).map_or(initial, Span)
            }
        });
    }

    /// Takes note of what `id`, which blocks or ends, used, unless the host knows better.
    fn learn(&mut self, id: TaskId) {
        let task = &mut self.tasks[id];
        if self.params.estimate == Estimate::Profile {
            let profile = &mut self.profiles[usize::from(task.domain.0)];
            profile.bursts += 1;
            profile.total += task.used;
        } else if !task.known {
            task.average = Ewma::ARCEOS.after(task.average, task.used);
        }
    }

    /// Takes note of domain and affinity.
    fn note(&mut self, id: TaskId, params: &TaskParams) {
        let (all, allowed) = (self.all_allowed(), self.allowed(&params.affinity));
        let task = &mut self.tasks[id];
        self.restricted += u32::from(allowed != all);
        self.restricted -= u32::from(task.allowed != all);
        (task.allowed, task.domain) = (allowed, params.domain);
        let domains = usize::from(params.domain.0) + 1;
        if self.profiles.len() < domains && self.params.estimate == Estimate::Profile {
            self.profiles.resize(domains, Profile::default());
        }
    }
}

impl RunQueue for MRsf {
    const HAS_LAYOUTS: bool = false;
    const HAS_ROLES: bool = true;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    #[inline]
    fn serves(&self, cpu: CpuId, task: TaskId) -> bool {
        let queue = usize::from(self.tasks[task].queue);
        if queue == UNDEALT {
            // Whoever will serve it, `has_opened` has told.
            return self.roles.is_empty();
        }
        let is_role = self.role(cpu) >> queue & 1 != 0;
        self.open() >> queue & 1 != 0
            && (is_role || self.has_stand_ins() && self.is_stranded(queue, task))
    }

    #[inline]
    fn has_opened(&mut self) -> bool {
        core::mem::take(&mut self.opened)
    }

    fn set_online(&mut self, cpu: CpuId, online: bool) {
        if cpu.index() < self.roles.len() {
            let bit = 1 << cpu.index();
            self.offline = if online { self.offline & !bit } else { self.offline | bit };
            self.opened = true;
        }
    }

    fn attach(&mut self, id: TaskId, params: &TaskParams) {
        self.forest.attach(id);
        if self.ages() {
            self.links.attach(id);
        }
        let fresh = Task {
            need: Span::ZERO,
            used: Span::ZERO,
            slice_left: self.slices[0],
            since: Time::ZERO,
            average: self.params.initial,
            number: 0,
            domain: params.domain,
            queue: UNDEALT as u8,
            part: 0,
            allowed: self.all_allowed(),
            known: false,
        };
        self.tasks.set(id, fresh);
        self.note(id, params);
    }

    fn detach(&mut self, id: TaskId) {
        let all = self.all_allowed();
        let task = &mut self.tasks[id];
        self.restricted -= u32::from(task.allowed != all);
        task.allowed = all;
    }

    fn update(&mut self, _: &At<'_>, _: Whereabouts, id: TaskId, params: &TaskParams) {
        self.note(id, params);
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        if at.now > self.entered {
            self.deal();
            self.entered = at.now;
        }
        if matches!(entry.why, Why::New | Why::Woken) {
            self.expect(id, entry.burst);
        }
        let Task { queue, slice_left, .. } = self.tasks[id];
        let queue = usize::from(queue);
        let ran = matches!(entry.why, Why::Put(_));
        if !ran {
            self.members[LEVEL[queue]] += 1;
        }
        if queue == UNDEALT {
            self.opened |= !self.roles.is_empty();
        }
        let ends = entry.why == Why::Put(Off::Expired) || slice_left == Span::ZERO;
        if ends && queue != Q3 {
            self.change_queue(id, if queue == Q2 { Q3 } else { Q2 });
            self.insert_last(at.now, id);
            if ran && queue < PARTS && self.params.spill {
                self.spill(at.now, queue);
            }
            return;
        }
        if entry.why == Why::Put(Off::NotRun) && queue < PARTS && self.turn == (queue + 1) % PARTS {
            self.turn = queue;
        }
        match entry.why {
            Why::Put(Off::NotRun | Off::Preempted) | Why::Resumed | Why::Moved => {
                self.insert(at.now, id, self.tasks[id].number);
            }
            Why::New | Why::Woken | Why::Put(_) => self.insert_last(at.now, id),
        }
    }

    #[inline]
    fn pop(&mut self, _: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.deal();
        let (role, open) = (self.role(cpu), self.open());
        let (queue, id) = if self.has_stand_ins() {
            let serves = |queue, task| role >> queue & 1 != 0 || self.is_stranded(queue, task);
            self.find(open, |queue, task| fits(task) && serves(queue, task))
        } else {
            self.find(role & open, |_, task| fits(task))
        }?;
        self.take_out(id, queue);
        self.read_ahead(queue);
        if queue < PARTS {
            self.turn = (queue + 1) % PARTS;
        }
        Some(id)
    }

    fn remove(&mut self, _: &At<'_>, id: TaskId, _: Removal) {
        let queue = usize::from(self.tasks[id].queue);
        self.take_out(id, queue);
        self.leave_level(LEVEL[queue]);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, id: TaskId, ran: Span) {
        let task = &mut self.tasks[id];
        task.used += ran;
        if task.slice_left != Span::MAX {
            task.slice_left = task.slice_left.saturating_sub(ran);
        }
    }

    #[inline]
    fn leave(&mut self, _: &At<'_>, id: TaskId, _: Off) -> bool {
        self.learn(id);
        self.leave_level(LEVEL[usize::from(self.tasks[id].queue)]);
        false
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, id: TaskId) -> Span {
        self.tasks[id].slice_left
    }

    #[inline]
    fn len(&self, _: usize) -> usize {
        self.waiting
    }

    fn spare(&self, _: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut all = self.trees.iter().rev().flat_map(|tree| self.forest.iter_back(tree));
        all.find(|&task| fits(task))
    }

    const HAS_TIMERS: bool = true;

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        if !self.ages() {
            return None;
        }
        let oldest = self.by_wait.iter().filter_map(List::front);
        oldest.map(|task| self.tasks[task].since + self.params.aging).min()
    }

    fn timer(&mut self, now: Time) {
        for queue in [Q2, Q3] {
            while let Some(id) = self.by_wait[queue - Q2].front() {
                let Task { since, part, .. } = self.tasks[id];
                if since + self.params.aging > now {
                    break;
                }
                self.take_out(id, queue);
                self.change_queue(id, if queue == Q3 { Q2 } else { usize::from(part) });
                self.insert_last(now, id);
                self.opened = true;
            }
        }
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        let ns = |span: Span| i64::try_from(span.0).unwrap_or(i64::MAX);
        sink("level", LEVEL[usize::from(task.queue)] as i64 + 1);
        sink("part", i64::from(task.part) + 1);
        sink("slice_left_ns", ns(task.slice_left));
        sink("left_ns", ns(task.left()));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            MRsf {
                params: fixed,
                slices: fixed,
                sorted: fixed,
                roles: fixed,
                offline,
                restricted: fixed,
                forest: fixed,
                trees: of(forest),
                read: fixed,
                tasks: fixed,
                profiles,
                waiting: fixed,
                members,
                turn,
                next_part,
                entered: fixed,
                entries: fixed,
                opened,
                links: fixed,
                by_wait: of(links)
            }
        );
        (to.now() > self.entered).canon(&(), to);
        for task in self.tasks.values() {
            task.canon(&(), to);
            // A task that has not been dealt yet is numbered by its own number.
            if usize::from(task.queue) != UNDEALT {
                to.order(task.number.into());
            }
            if self.params.aging != Span::MAX {
                task.since.canon(&(), to);
            }
        }
    }
}

canonical!(Profile { bursts, total });
canonical!(Task {
    need,
    used,
    slice_left,
    since: fixed,
    average,
    number: fixed,
    domain,
    queue,
    part,
    allowed,
    known,
});
