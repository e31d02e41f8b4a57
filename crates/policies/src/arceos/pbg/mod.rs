//! Program-behaviour-guided scheduling: a first run of the program measures how long each task
//! runs and how often it is dispatched; in later runs the tasks of that *profile* go shortest
//! first, each until its dispatches are used up.
//!
//! Source: Qin Ruoyu's PBG for ArceOS; report and `pbg.rs` (chestnut-Q/arceos-X a25a361).
//! Order key: (time of the record, creation number); the time is the total, or the mean of a
//! dispatch. Tasks that are not in the profile, or have used up their dispatches, wait in the
//! fallback queue behind all planned ones, first or last come first. A planned task that yields
//! stays on its CPU, so that hosts need no switch; this is the exception of rule 10 of the
//! contract. One that blocks stays in the plan. Nothing is ever interrupted.
//! Deviations: the profile is measured; the source's programs contain one written by hand. A
//! dispatch is used up when it ends, by a yield, by blocking or by exit, so one that the host
//! undoes or interrupts counts once; the source counts picks. The report's three calls, start
//! measuring, stop and enable, are `mode` changed while the policy runs; the source's start does
//! not measure. Blocked tasks are not picked, and tasks that have ended leave the plan; in the
//! source neither holds. `fallback` is FIFO unless told otherwise; the source's is LIFO. Other CPUs
//! leave a yielder alone as long as they find anything else; the source has one CPU. Several
//! runqueues, which the report leaves for later, are those of `layout`: each has its planned tasks
//! and its fallback queue, and numbers of tasks, records and measuring are of all. A runqueue that
//! wants a task is given the first of the fallback queue, else the last of the plan.
//! Cost: O(1) for a yield that stays, its pick and the fallback queue; O(log n) for a planned task
//! that becomes ready, and for its pick then. So the picks of a program whose n tasks only yield
//! cost O(dispatches + n log n). Building the plan is O(n log n), attaching a task O(log n).

mod profile;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

pub use profile::{Key, Profile, Record};

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::noise::{self, Sigma};
use anysched_core::params::{ParamError, TaskParams, Value};
use anysched_core::queue::{Forest, Links, List, Tree};
use anysched_core::registry::{Native, Policy};
use anysched_core::smp::{At, Entry, NOBODY, Removal, RunQueue, SmpParams, Whereabouts, Why};
use anysched_core::time::{Span, Time};
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, choice, params};

choice! {
    /// What profiles are for.
    pub enum Mode {
        /// Nothing: all tasks are in the fallback queue. Set during a run, it stops measuring.
        Off = "off",
        /// To be learned: all tasks are in the fallback queue, and each dispatch is timed. Set
        /// during a run, it starts that, and the count of created tasks anew.
        Profile = "profile",
        /// To be followed. Without a profile, one is learned first. Set during a run, it goes by
        /// what has been measured so far, and starts the count of created tasks anew.
        Plan = "plan",
    }
}

choice! {
    /// Which time of a record orders planned tasks.
    pub enum Order {
        /// That of all dispatches.
        TotalTime = "total_time",
        /// That of a dispatch.
        MeanTime = "mean_time",
    }
}

choice! {
    /// Which task of the fallback queue is next.
    pub enum Fallback {
        /// The first that came; a yielder goes behind the others.
        Fifo = "fifo",
        /// The last that came, as in the source; a yielder counts as last to come and goes on.
        Lifo = "lifo",
    }
}

choice! {
    /// What happens to a planned task that yields and has dispatches left.
    pub enum OnYield {
        /// It goes on.
        Stay = "stay",
        /// The best of the other ready planned tasks is next, if there are any.
        Next = "next",
        /// It goes behind all ready planned tasks, and behind those that become ready.
        Last = "last",
    }
}

/// Where a profile's times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An earlier run of the same load.
    Measured,
    /// Someone who knows.
    Given,
    /// As measured, but wrong: each time is multiplied by a lognormal factor with median 1.
    Noisy(Sigma),
}

impl Value for Source {
    const KIND: &'static str = "measured | given | noisy(σ)";
    fn parse(text: &str) -> Result<Source, &'static str> {
        match text.trim() {
            "measured" => Ok(Source::Measured),
            "given" => Ok(Source::Given),
            text => {
                let sigma = text.strip_prefix("noisy(").and_then(|rest| rest.strip_suffix(')'));
                let why = "not one of measured | given | noisy(σ), for example noisy(0.5)";
                Sigma::parse(sigma.ok_or(why)?).map(Source::Noisy)
            }
        }
    }
    fn show(&self) -> alloc::string::String {
        match *self {
            Source::Measured => "measured".into(),
            Source::Given => "given".into(),
            Source::Noisy(sigma) => alloc::format!("noisy({})", sigma.show()),
        }
    }
}

params! {
    /// Parameters of `pbg`.
    pub struct PbgParams {
        /// `plan`: planned tasks first; without a profile, one is learned. `profile`: learn one.
        /// `off`: neither. May change during a run: measure, stop, go by what was measured.
        mode: Mode = Mode::Plan,
        /// Whether the profile comes from a run of the same load, is given by someone who knows, or
        /// is measured and then made wrong: each time multiplied by a lognormal factor with median
        /// 1 and this σ, 0 to 10.
        profile_source: Source = Source::Measured,
        /// Records KEY=TIME/DISPATCHES, such as 0=12.5ms/100000: of the first task that is
        /// created, 12.5 ms in all and 100000 dispatches; k7 instead of 0 is the task with the
        /// key 7. Between records are commas, spaces or line ends; # begins a comment. `auto`:
        /// learned in a rehearsal.
        profile: Option<Profile> = None,
        /// Which time of a record orders planned tasks.
        order: Order = Order::TotalTime,
        /// Order of the tasks that are not planned.
        fallback: Fallback = Fallback::Fifo,
        /// What a planned task that yields leaves its CPU to: itself, the best other, all others.
        on_yield: OnYield = OnYield::Stay,
        /// Planned tasks of a higher priority go before others, also when one of these yields.
        priorities: bool = false,
        /// A task that waits and is late unless it runs now goes before all others: whose deadline
        /// is no further off than what it needs by its record, until it ends, or with `order =
        /// mean_time` for a dispatch.
        latest: bool = false,
        /// How much earlier: as nothing is interrupted, it waits for a dispatch that runs.
        margin: Span = Span::ZERO,
        /// Seed of the noise, which also depends on the key of the task.
        noise_seed: u64 = 0,
    }
}

impl PbgParams {
    /// Whether a profile is learned in this run.
    fn learns(&self) -> bool {
        match self.mode {
            Mode::Off => false,
            Mode::Profile => true,
            Mode::Plan => self.profile.is_none(),
        }
    }

    /// Whether planned tasks that yield stay whatever waits.
    fn stays_always(&self, learns: bool) -> bool {
        self.on_yield == OnYield::Stay && !self.priorities && !self.latest && !learns
    }
}

/// What the plan says of the tasks with a key.
#[derive(Clone, Copy, Debug)]
struct Planned {
    key: Key,
    /// Rank of its time among the times of all records; equal times share a rank.
    rank: u32,
    time: Span,
    dispatches: u64,
}

/// What the plan says of a task that is not in it.
const UNPLANNED: Planned =
    Planned { key: Key::Created(0), rank: 0, time: Span::ZERO, dispatches: 0 };

/// What has been learned of the tasks with a key.
#[derive(Clone, Copy, Debug)]
struct Learned {
    key: Key,
    tasks: u64,
    time: u128,
    dispatches: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Blocked, running, or kept by its CPU, on which it has yielded.
    Away,
    /// Among the planned ones that are ready.
    Ready,
    Fallback,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    place: Place,
    /// The CPU it last ran on.
    cpu: u16,
    /// The runqueue it is in, or was last in.
    queue: u16,
    rank: u32,
    created: u32,
    /// Dispatches left; none if it is not planned.
    left: u64,
    /// Its record's time and dispatches.
    time: Span,
    dispatches: u64,
    /// Where priorities count, the lower the more urgent; else 0.
    urgency: u32,
    relative_deadline: Option<Span>,
    /// Of its job. [`Time::NEVER`] if it has none.
    deadline: Time,
    /// It waits and has a latest time to begin.
    is_due: bool,
    /// Number of the yield that sent it behind the others; 0: none did.
    behind: u64,
    /// Of what has been learned.
    record: u32,
    /// By what it is known. None of an earlier program's, which has no key of its own, or if it
    /// does not exist.
    key: Option<Key>,
    /// It has used the CPU in a dispatch that has not ended.
    ran: bool,
}

/// A runqueue.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The planned tasks that are ready.
    ready: Tree,
    /// The fallback queue.
    unplanned: List,
    /// Tasks of both that have a deadline, by the latest time to begin, where that counts.
    due: Tree,
    /// How many tasks its CPUs keep.
    staying: usize,
}

/// Runqueues by number. The first needs no look-up, which is a part of what a yield costs where
/// there is one.
#[derive(Debug)]
struct Queues {
    first: Queue,
    rest: Vec<Queue>,
}

impl Index<usize> for Queues {
    type Output = Queue;
    #[inline(always)]
    fn index(&self, queue: usize) -> &Queue {
        if queue == 0 { &self.first } else { &self.rest[queue - 1] }
    }
}

impl IndexMut<usize> for Queues {
    #[inline(always)]
    fn index_mut(&mut self, queue: usize) -> &mut Queue {
        if queue == 0 { &mut self.first } else { &mut self.rest[queue - 1] }
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Pbg {
    params: PbgParams,
    /// All that is known: the profile of an earlier run, and what was measured in this one until
    /// measuring stopped.
    known: Profile,
    /// Something was measured in this run.
    has_learned: bool,
    /// By ascending key.
    plan: Vec<Planned>,
    learns: bool,
    /// Whether planned tasks that yield stay whatever waits. They do not while something is
    /// measured.
    stays_always: bool,
    forest: Forest<(u32, u64, u32, u32)>,
    due: Forest<(Time, u32)>,
    queues: Queues,
    /// Per CPU, the task that has yielded there since the last pick and goes on if it may. It waits
    /// nowhere else, so such a yield and its pick write nothing but this.
    keeps: Vec<u32>,
    /// Per CPU, the task that has yielded there since the last pick and is ready like others.
    yielder: Vec<u32>,
    links: Links,
    tasks: PerTask<Task>,
    /// Tasks attached so far, or since measuring or going by a profile began during the run.
    created: u32,
    yields: u64,
    learned: Vec<Learned>,
    /// For tasks with keys of their own, where they are in `learned`.
    learned_by_key: BTreeMap<u32, u32>,
}

impl Policy for Pbg {
    type Params = PbgParams;
    const SOURCE: &'static str = "Qin Ruoyu, PBG; pbg.rs (chestnut-Q/arceos-X a25a361)";
    const STARVES: bool = true;
    const NATIVE: &'static [Native] = &[Native { host: "arceos", scheduler: None }];
    const SEED: Option<&'static str> = Some("noise_seed");

    fn is_clairvoyant(params: &PbgParams) -> bool {
        params.mode == Mode::Plan && params.profile_source == Source::Given
    }

    fn is_rehearsed(params: &PbgParams) -> bool {
        params.mode == Mode::Plan && params.profile_source != Source::Given
    }

    fn rehearsal(params: &PbgParams) -> Option<&'static [(&'static str, &'static str)]> {
        let lacks = params.profile.is_none() && Pbg::is_rehearsed(params);
        lacks.then_some(&[("mode", "profile")])
    }

    fn build(machine: &Machine, queues: usize, params: &PbgParams) -> Result<Pbg, ParamError> {
        if params.profile_source == Source::Given && params.profile.is_none() {
            let why = "profile_source = given needs one, for example 0=12.5ms/100000";
            return Err(ParamError::Invalid { name: "profile", why });
        }
        let known = match params.mode {
            Mode::Plan => params.profile.clone().unwrap_or_default(),
            Mode::Off | Mode::Profile => Profile::default(),
        };
        Ok(Pbg {
            plan: plan(&known, params),
            known,
            learns: params.learns(),
            has_learned: params.learns(),
            params: PbgParams { profile: None, ..params.clone() },
            stays_always: params.stays_always(params.learns()),
            forest: Forest::default(),
            due: Forest::default(),
            queues: Queues {
                first: Queue::default(),
                rest: alloc::vec![Queue::default(); queues - 1],
            },
            keeps: alloc::vec![NOBODY; machine.cpus()],
            yielder: alloc::vec![NOBODY; machine.cpus()],
            links: Links::default(),
            tasks: PerTask::new(),
            created: 0,
            yields: 0,
            learned: Vec::new(),
            learned_by_key: BTreeMap::new(),
        })
    }
}

/// The records that have dispatches, by key, with the ranks of their times.
fn plan(profile: &Profile, params: &PbgParams) -> Vec<Planned> {
    let time = |record: &Record| match params.profile_source {
        Source::Noisy(sigma) => {
            let of = match record.key {
                Key::Created(number) => u64::from(number),
                Key::Own(key) => 1 << 32 | u64::from(key),
            };
            noise::apply(record.time, sigma, params.noise_seed, of)
        }
        Source::Measured | Source::Given => record.time,
    };
    let mut records: Vec<Record> = profile.records().to_vec();
    records.retain(|record| record.dispatches > 0);
    records.iter_mut().for_each(|record| record.time = time(record));
    let compare = |a: &Record, b: &Record| match params.order {
        Order::TotalTime => a.time.cmp(&b.time),
        Order::MeanTime => {
            let wide = |time: Span, dispatches: u64| u128::from(time.0) * u128::from(dispatches);
            wide(a.time, b.dispatches).cmp(&wide(b.time, a.dispatches))
        }
    };
    records.sort_unstable_by(|a, b| compare(a, b).then(a.key.cmp(&b.key)));
    let mut rank = 0;
    let mut plan = Vec::with_capacity(records.len());
    for (place, record) in records.iter().enumerate() {
        if place > 0 && compare(&records[place - 1], record).is_ne() {
            rank = place as u32;
        }
        let Record { key, time, dispatches } = *record;
        plan.push(Planned { key, rank, time, dispatches });
    }
    plan.sort_unstable_by_key(|planned| planned.key);
    plan
}

impl Pbg {
    /// Where what is learned of tasks with this key goes.
    fn record(&mut self, key: Key) -> u32 {
        let number = match key {
            Key::Own(own) => *self.learned_by_key.entry(own).or_insert(self.learned.len() as u32),
            Key::Created(_) => self.learned.len() as u32,
        };
        if number as usize == self.learned.len() {
            self.learned.push(Learned { key, tasks: 0, time: 0, dispatches: 0 });
        }
        self.learned[number as usize].tasks += 1;
        number
    }

    /// How urgent a task is that has these parameters, the lower the more.
    fn urgency(&self, params: &TaskParams) -> u32 {
        if self.params.priorities { !(params.priority as u32 ^ 1 << 31) } else { 0 }
    }

    /// What the plan says of tasks with this key.
    fn planned(&self, key: Key) -> Planned {
        let place = self.plan.binary_search_by_key(&key, |planned| planned.key);
        place.map_or(UNPLANNED, |place| self.plan[place])
    }

    /// Starts measuring, stops it, or goes by what is known.
    fn set_mode(&mut self, mode: Mode) {
        if self.learns {
            self.known.update(self.measured());
            self.learned.clear();
            self.learned_by_key.clear();
        }
        self.params.mode = mode;
        self.learns = mode == Mode::Profile;
        self.stays_always = self.params.stays_always(self.learns);
        self.has_learned |= self.learns;
        self.plan = match mode {
            Mode::Plan => plan(&self.known, &self.params),
            Mode::Off | Mode::Profile => Vec::new(),
        };
        if mode != Mode::Off {
            self.created = 0;
        }
        for number in 0..self.tasks.len() as u32 {
            self.meet_again(TaskId(number));
        }
        self.queue_anew();
    }

    /// Looks up what the plan says of `task`, which was there before it, or starts its record.
    fn meet_again(&mut self, id: TaskId) {
        let mut key = self.tasks[id].key;
        if self.learns && matches!(key, Some(Key::Created(_))) {
            // The numbers are those of the program that is measured now.
            key = None;
        }
        let planned = key.map_or(UNPLANNED, |key| self.planned(key));
        let Planned { rank, time, dispatches, .. } = planned;
        let record = match key {
            Some(key) if self.learns => self.record(key),
            _ => NOBODY,
        };
        let task = &mut self.tasks[id];
        let left = dispatches;
        *task = Task { rank, left, time, dispatches, record, key, behind: 0, ran: false, ..*task };
    }

    /// Queues all tasks that are ready as the plan has it now, in the order in which they were.
    fn queue_anew(&mut self) {
        self.yielder.fill(NOBODY);
        let kept = self.keeps.iter().copied().filter(|&task| task != NOBODY);
        let kept: Vec<TaskId> = kept.map(TaskId).collect();
        kept.iter().for_each(|&task| self.release(task));
        for number in 0..=self.queues.rest.len() {
            let queue = &mut self.queues[number];
            while let Some(task) = self.due.pop_first(&mut queue.due) {
                self.tasks[task].is_due = false;
            }
            let planned: Vec<TaskId> = self.forest.iter(&queue.ready).collect();
            planned.iter().for_each(|&task| self.forest.remove(&mut queue.ready, task));
            let others: Vec<TaskId> = self.links.iter(&queue.unplanned).collect();
            others.iter().for_each(|&task| self.links.remove(&mut queue.unplanned, task));
            let own = |task: &TaskId| usize::from(self.tasks[*task].queue) == number;
            let kept: Vec<TaskId> = kept.iter().copied().filter(own).collect();
            for id in kept.into_iter().chain(planned).chain(others) {
                if self.tasks[id].left > 0 {
                    self.insert(id);
                } else {
                    self.tasks[id].place = Place::Fallback;
                    self.links.push_back(&mut self.queues[number].unplanned, id);
                    self.watch(id);
                }
            }
        }
    }

    /// `task` has yielded, blocked or ended.
    #[inline]
    fn end_dispatch(&mut self, task: TaskId) {
        let task = &mut self.tasks[task];
        task.left = task.left.saturating_sub(1);
        task.ran = false;
        if self.learns && task.record != NOBODY {
            self.learned[task.record as usize].dispatches += 1;
        }
    }

    /// What has been measured since measuring began.
    fn measured(&self) -> Profile {
        let mut learned = self.learned.clone();
        for task in self.tasks.values().filter(|task| task.ran && task.record != NOBODY) {
            learned[task.record as usize].dispatches += 1;
        }
        learned.retain(|learned| learned.dispatches > 0);
        Profile::of(learned.iter().map(|&Learned { key, tasks, time, dispatches }| {
            let tasks = u128::from(tasks);
            let mean = |sum: u128| u64::try_from(sum / tasks).unwrap_or(u64::MAX);
            let time = Span(mean(time + tasks / 2));
            Record { key, time, dispatches: mean(dispatches + tasks - 1) }
        }))
    }

    // Out of line, for the sake of tasks that stay.
    #[inline(never)]
    fn insert(&mut self, id: TaskId) {
        let task = &mut self.tasks[id];
        task.place = Place::Ready;
        let key = (task.urgency, task.behind, task.rank, task.created);
        self.forest.insert(&mut self.queues[usize::from(task.queue)].ready, id, key, ());
        self.watch(id);
    }

    /// Where the latest time to begin counts, notes that of `id`, which waits.
    #[inline]
    fn watch(&mut self, id: TaskId) {
        if self.params.latest {
            self.note_latest(id);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_latest(&mut self, id: TaskId) {
        if self.tasks[id].deadline != Time::NEVER {
            let latest = (self.latest(id), self.tasks[id].created);
            let task = &mut self.tasks[id];
            task.is_due = true;
            self.due.insert(&mut self.queues[usize::from(task.queue)].due, id, latest, ());
        }
    }

    /// `id` does not wait any longer.
    #[inline]
    fn unwatch(&mut self, id: TaskId) {
        if self.params.latest {
            self.forget_latest(id);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_latest(&mut self, id: TaskId) {
        let task = &mut self.tasks[id];
        if core::mem::replace(&mut task.is_due, false) {
            self.due.remove(&mut self.queues[usize::from(task.queue)].due, id);
        }
    }

    /// When `task` has to begin at the latest to be in time.
    fn latest(&self, task: TaskId) -> Time {
        let Task { left, time, dispatches, deadline, .. } = self.tasks[task];
        let left = match self.params.order {
            Order::TotalTime => left,
            Order::MeanTime => left.min(1),
        };
        let needs = u128::from(time.0) * u128::from(left) / u128::from(dispatches.max(1));
        let needs = u64::try_from(needs).unwrap_or(u64::MAX).saturating_add(self.params.margin.0);
        Time(deadline.0.saturating_sub(needs))
    }

    /// The task of `queue` that should have begun by `now` and fits, the one that is most late.
    fn most_late(&self, queue: usize, now: Time, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let due = &self.queues[queue].due;
        let mut late = self.due.iter(due).take_while(|&task| self.due.key(task).0 <= now);
        late.find(|&task| fits(task))
    }

    /// Whether `task`, which has yielded and would stay, gives way all the same.
    fn gives_way(&self, queue: usize, now: Time, task: TaskId) -> bool {
        let first = self.queues[queue].ready.first();
        let is_urgent = |first: TaskId| self.forest.key(first).0 < self.tasks[task].urgency;
        let is_late = || self.tasks[task].deadline != Time::NEVER && self.latest(task) <= now;
        let others_late = self.params.latest && self.most_late(queue, now, |_| true).is_some();
        if others_late {
            return !is_late();
        }
        self.params.priorities && !(self.params.latest && is_late()) && first.is_some_and(is_urgent)
    }

    /// `id` has yielded. Returns whether it stays without further ado.
    #[inline(always)]
    fn keep(&mut self, queue: usize, id: TaskId) -> bool {
        let task = &mut self.tasks[id];
        if !self.stays_always || task.left <= 1 {
            return false;
        }
        task.left -= 1;
        self.keeps[usize::from(task.cpu)] = id.0;
        self.queues[queue].staying += 1;
        true
    }

    /// Queues `id` among the planned tasks, or with those that are not; or has it stay. A job that
    /// it becomes ready for is due at `deadline`, or when the task's own says.
    // Plain numbers and out of line, so that a yield that stays need not write down what it does
    // not need.
    #[inline(never)]
    fn queue(&mut self, queue: usize, now: Time, id: TaskId, why: Why, deadline: Option<Time>) {
        let task = &mut self.tasks[id];
        task.queue = queue as u16;
        match why {
            Why::New | Why::Woken => {
                let usual = task.relative_deadline.map(|relative| now + relative);
                task.behind = 0;
                task.deadline = deadline.or(usual).unwrap_or(Time::NEVER);
            }
            Why::Put(Off::Yielded) => self.end_dispatch(id),
            _ => {}
        }
        if self.tasks[id].left == 0 {
            return self.fall_back(queue, id, why);
        }
        if why == Why::Put(Off::Yielded) {
            let cpu = usize::from(self.tasks[id].cpu);
            match self.params.on_yield {
                OnYield::Stay if !self.gives_way(queue, now, id) => {
                    self.keeps[cpu] = id.0;
                    self.queues[queue].staying += 1;
                    return;
                }
                OnYield::Stay => {}
                OnYield::Next => self.yielder[cpu] = id.0,
                OnYield::Last => {
                    self.yields += 1;
                    self.tasks[id].behind = self.yields;
                }
            }
        }
        self.insert(id);
    }

    /// Queues `id` with the tasks that are not planned.
    fn fall_back(&mut self, queue: usize, id: TaskId, why: Why) {
        self.tasks[id].place = Place::Fallback;
        let unplanned = &mut self.queues[queue].unplanned;
        match (self.params.fallback, why) {
            (Fallback::Lifo, _) | (_, Why::Put(Off::NotRun)) => {
                self.links.push_front(unplanned, id);
            }
            (Fallback::Fifo, _) => self.links.push_back(unplanned, id),
        }
        self.watch(id);
    }

    /// Lets go of `task`, which a CPU keeps.
    fn release(&mut self, task: TaskId) {
        let Task { cpu, queue, .. } = self.tasks[task];
        self.keeps[usize::from(cpu)] = NOBODY;
        self.queues[usize::from(queue)].staying -= 1;
    }

    fn is_kept(&self, task: TaskId) -> bool {
        self.keeps[usize::from(self.tasks[task].cpu)] == task.0
    }

    fn pop_planned(
        &mut self,
        queue: usize,
        yielder: u32,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        let other = |task: TaskId| task.0 != yielder && fits(task);
        self.forest.pop_first_fit(&mut self.queues[queue].ready, other)
    }

    /// Takes `task`, which waits in `queue`, out of the plan or the fallback queue.
    fn take(&mut self, queue: usize, task: TaskId) {
        match core::mem::replace(&mut self.tasks[task].place, Place::Away) {
            Place::Away => {}
            Place::Ready => self.forest.remove(&mut self.queues[queue].ready, task),
            Place::Fallback => self.links.remove(&mut self.queues[queue].unplanned, task),
        }
    }

    /// Tasks that CPUs of `queue` keep, by CPU.
    fn kept(&self, queue: usize) -> impl Iterator<Item = TaskId> {
        let kept = self.keeps.iter().filter(|&&task| task != NOBODY).map(|&task| TaskId(task));
        kept.filter(move |&task| usize::from(self.tasks[task].queue) == queue)
    }

    /// The task of `queue` that `cpu`, which keeps none, runs next.
    // As for `queue`.
    #[inline(never)]
    fn choose(
        &mut self,
        queue: usize,
        now: Time,
        cpu: CpuId,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        let id = self.find(queue, now, cpu, fits)?;
        self.unwatch(id);
        let task = &mut self.tasks[id];
        task.place = Place::Away;
        task.cpu = cpu.0;
        Some(id)
    }

    fn find(
        &mut self,
        queue: usize,
        now: Time,
        cpu: CpuId,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        let yielder = core::mem::replace(&mut self.yielder[cpu.index()], NOBODY);
        if self.params.latest
            && let Some(task) = self.most_late(queue, now, &fits)
        {
            self.take(queue, task);
            return Some(task);
        }
        if let Some(task) = self.pop_planned(queue, yielder, &fits) {
            return Some(task);
        }
        if yielder != NOBODY
            && let Some(task) = self.pop_planned(queue, NOBODY, &fits)
        {
            return Some(task);
        }
        let Queue { unplanned, staying, .. } = &mut self.queues[queue];
        if let Some(task) = self.links.pop_first_fit(unplanned, &fits) {
            return Some(task);
        }
        if *staying == 0 {
            return None;
        }
        let task = self.kept(queue).find(|&task| fits(task))?;
        self.release(task);
        Some(task)
    }
}

impl RunQueue for Pbg {
    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn set_online(&mut self, cpu: CpuId, online: bool) {
        let task = TaskId(self.keeps[cpu.index()]);
        if !online && task.0 != NOBODY {
            self.release(task);
            self.insert(task);
        }
    }

    fn attach(&mut self, id: TaskId, params: &TaskParams) {
        self.forest.attach(id);
        self.due.attach(id);
        self.links.attach(id);
        let created = self.created;
        self.created = created.saturating_add(1);
        let key = params.key.map_or(Key::Created(created), Key::Own);
        let Planned { rank, time, dispatches, .. } = self.planned(key);
        let record = if self.learns { self.record(key) } else { NOBODY };
        let fresh = Task {
            place: Place::Away,
            cpu: 0,
            queue: 0,
            rank,
            created,
            left: dispatches,
            time,
            dispatches,
            urgency: self.urgency(params),
            relative_deadline: params.relative_deadline,
            deadline: Time::NEVER,
            is_due: false,
            behind: 0,
            record,
            key: Some(key),
            ran: false,
        };
        self.tasks.grow(id, |_| Task { left: 0, key: None, ..fresh });
        self.tasks[id] = fresh;
    }

    fn update(&mut self, _: &At<'_>, is: Whereabouts, id: TaskId, params: &TaskParams) {
        let urgency = self.urgency(params);
        let task = &mut self.tasks[id];
        task.relative_deadline = params.relative_deadline;
        if urgency == core::mem::replace(&mut task.urgency, urgency) {
            return;
        }
        if is == Whereabouts::Queued && task.place == Place::Ready {
            let queue = usize::from(task.queue);
            self.unwatch(id);
            self.take(queue, id);
            self.insert(id);
        }
    }

    fn detach(&mut self, task: TaskId) {
        // Taken out for good while it was ready, in the middle of a dispatch.
        if self.tasks[task].ran {
            self.end_dispatch(task);
        }
        self.tasks[task].key = None;
    }

    fn check_param(&self, name: &str, text: &str) -> Result<(), ParamError> {
        if name != "mode" {
            return Err(ParamError::Fixed { name: name.into(), changeable: &["mode"] });
        }
        Mode::read(name, text).map(drop)
    }

    fn set_param(&mut self, name: &str, text: &str) {
        if let ("mode", Ok(mode)) = (name, Mode::parse(text)) {
            self.set_mode(mode);
        }
    }

    // Inlines as much of it into `yield_and_pick` as staying takes.
    #[inline(always)]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let stays = entry.why == Why::Put(Off::Yielded) && self.keep(at.queue, id);
        if !stays {
            self.queue(at.queue, at.now, id, entry.why, entry.deadline);
        }
    }

    #[inline(always)]
    fn pop(&mut self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let kept = core::mem::replace(&mut self.keeps[cpu.index()], NOBODY);
        if kept == NOBODY {
            return self.choose(at.queue, at.now, cpu, fits);
        }
        self.queues[at.queue].staying -= 1;
        if fits(TaskId(kept)) {
            return Some(TaskId(kept));
        }
        self.insert(TaskId(kept));
        self.choose(at.queue, at.now, cpu, fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.unwatch(task);
        if self.tasks[task].place == Place::Away && self.is_kept(task) {
            self.release(task);
        }
        self.take(at.queue, task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, task: TaskId, ran: Span) {
        if self.learns && ran > Span::ZERO {
            let task = &mut self.tasks[task];
            task.ran = true;
            if task.record != NOBODY {
                self.learned[task.record as usize].time += u128::from(ran.0);
            }
        }
    }

    fn leave(&mut self, _: &At<'_>, task: TaskId, _: Off) -> bool {
        self.end_dispatch(task);
        false
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        Span::MAX
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        let queue = &self.queues[queue];
        queue.ready.len() + queue.unplanned.len() + queue.staying
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let queue = &self.queues[at.queue];
        let unplanned = self.links.iter(&queue.unplanned);
        let planned = self.forest.iter_back(&queue.ready);
        unplanned.chain(planned).chain(self.kept(at.queue)).find(|&id| fits(id))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("rank", i64::from(task.rank));
        sink("dispatches_left", i64::try_from(task.left).unwrap_or(i64::MAX));
    }

    fn learned(&self, sink: &mut dyn FnMut(&'static str, &str)) {
        if !self.has_learned {
            return;
        }
        let mut known = self.known.clone();
        if self.learns {
            known.update(self.measured());
        }
        sink("profile", &known.to_string());
    }

    fn canon(&self, to: &mut Canon) {
        // Without a plan, nothing goes by how many tasks there were.
        to.word(if self.plan.is_empty() { 0 } else { self.created.into() });
        for Queue { ready, unplanned, due, staying } in
            core::iter::once(&self.queues.first).chain(&self.queues.rest)
        {
            ready.canon(&self.forest, to);
            unplanned.canon(&self.links, to);
            due.canon(&self.due, to);
            due_times(due, &self.due, to);
            staying.canon(&(), to);
        }
        canon_fields!(
            self,
            to,
            Pbg {
                params: fixed,
                known: fixed,
                has_learned: fixed,
                plan: fixed,
                learns,
                stays_always,
                forest: fixed,
                due: fixed,
                queues: fixed,
                keeps,
                yielder,
                links: fixed,
                tasks,
                created: fixed,
                yields: fixed,
                learned: fixed,
                learned_by_key: fixed
            }
        );
    }
}

/// When tasks have to begin at the latest.
fn due_times(due: &Tree, forest: &Forest<(Time, u32)>, to: &mut Canon) {
    forest.iter(due).for_each(|task| forest.key(task).0.canon(&(), to));
}

impl Canonical for Task {
    fn canon(&self, _: &(), to: &mut Canon) {
        (self.behind > 0).canon(&(), to);
        canon_fields!(
            self,
            to,
            Task {
                place,
                cpu,
                queue,
                rank,
                created: order,
                left,
                time,
                dispatches,
                urgency,
                relative_deadline,
                deadline,
                is_due,
                behind: order,
                record: fixed,
                key: fixed,
                ran,
            }
        );
    }
}

canonical!(Place: u64);
