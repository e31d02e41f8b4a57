//! Whoever can be expected to end soonest for the CPU time that it takes to find out: tasks go by a
//! rank that follows from how long tasks like them run, and for how long they have run already.
//!
//! Source: J. C. Gittins, Bandit processes and dynamic allocation indices, J. Royal Statistical
//! Society B 41(2), 1979: with Poisson arrivals, known distribution and one CPU no policy that does
//! not know run times themselves has a smaller mean response time. Ranks `serpt` and `m-serpt`: Z.
//! Scully, M. Harchol-Balter, A. Scheller-Wolf, Simple Near-Optimal Scheduling for the M/G/1,
//! SIGMETRICS 2020 (at most 5 times Gittins's mean). Turns: preferential round robin, M. Purohit,
//! Z. Svitkina, R. Kumar, Improving Online Algorithms via ML Predictions, NeurIPS 2018. What is
//! learned, and how, is the project's own.
//! Order key: (rank at its age, arrival number). The age of a task is the CPU time that it has used
//! since it became ready; a yield ends the run, as blocking and exit do. Ranks are in a table by
//! age, made in integers from `sizes`, or from the latest run times: of the task or, if it has a
//! key, of all with its key; of all tasks, until it has four; without any, a task is given
//! `quantum` to end.
//! Between the ages of the table the rank falls in a straight line to the next, or else stays and
//! then rises: there a slice ends. A task that becomes ready with less than the rank of a running
//! one interrupts it; of several CPUs the one with the largest rank. Equals do not interrupt.
//! Beyond the last age, a task is taken to need as much as it had used when that last doubled.
//! Turns: each CPU gives `share` percent of its time to all ready tasks in turn, a `quantum` each,
//! whatever their ranks. So of n ready tasks on one CPU each has at least share/n of it, and of
//! tasks that come together none ends later than 100/share times when it would under round robin
//! with that quantum, and as many quanta, however wrong what is expected of them is. A turn that is
//! interrupted by the host is not over.
//! Deviations: ranks of continuous distributions are those of 32 steps; with `rank = gittins` the
//! index between two ages of a list is not that of its exact values, which falls to 0 just before
//! each, because learned times are a sample. A waiting task keeps the rank with which it was queued
//! when its table changes.
//! Cost: O(log n), and O(log ages) for the rank; O(CPUs of the runqueue) when a task becomes ready
//! and none is idle. O(history) at the end of a run that is learned from.

mod history;
mod sizes;
mod table;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

pub use sizes::Sizes;
pub use table::Rank;

use self::history::{Error, History};
use self::table::{Builder, Table};
use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::noise::Sigma;
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{WideForest, WideTree};
use anysched_core::registry::{First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Why};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `gittins`.
    pub struct GittinsParams {
        /// Rank: Gittins's, the expected remaining time, or the most that this has been so far.
        rank: Rank = Rank::Gittins,
        /// How long tasks run, if that is known: exp(10ms), uniform(1ms, 5ms),
        /// pareto(1.5, 1ms, 10s), hyperexp(0.9: 1ms, 0.1: 50ms), or times that are equally likely.
        /// `auto`: learned.
        sizes: Option<Sizes> = None,
        /// How many of the latest runs count, of a task or key; of all tasks 16 times as many. 4 to
        /// 64.
        history: u32 = 16,
        /// Percent of the CPU time that goes to all ready tasks in turn, whatever their ranks.
        share: u32 = 10,
        /// CPU time of a turn, and what a task of which nothing is known is expected to need.
        quantum: Span = Span::from_ms(1),
        /// What is learned of a key, or of a task without one, is multiplied by a lognormal factor
        /// with median 1 and this σ, 0 to 10, to see what wrong estimates cost.
        error: Sigma = Sigma::default(),
        /// Seed of these factors.
        error_seed: u64 = 0,
    }
}

/// Runs of all tasks count for this many of one.
const OF_ALL: usize = 16;
/// The history of all tasks.
const ALL: u32 = 0;
/// No history.
const NONE: u32 = u32::MAX;

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Gittins {
    history: usize,
    share: i64,
    quantum: Span,
    error: Error,
    /// Ranks by what is known beforehand.
    known: Option<Table>,
    /// Ranks by nothing.
    unknown: Table,
    builder: Builder,
    histories: Vec<History>,
    by_key: BTreeMap<u32, u32>,
    /// Histories of tasks that are gone.
    free: Vec<u32>,
    by_rank: WideForest,
    ranked: Vec<WideTree>,
    /// With a share for turns, the same tasks by the number of their turn.
    by_turn: WideForest,
    turned: Vec<WideTree>,
    /// Per CPU, what it owes to turns: of each ns for ranks `share`, less 100 − `share` of each ns
    /// in a turn.
    owed: Vec<i64>,
    tasks: PerTask<Task>,
    attached: u64,
    /// How often a task became ready.
    entries: u64,
    /// How often a task came behind all others in the order of turns.
    turns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// CPU time used since it became ready.
    age: Span,
    /// When it became ready, by number.
    number: u64,
    turn: u64,
    /// Its own history, or that of its key.
    own: u32,
    /// The history that it is ranked by.
    by: u32,
    /// The CPU that it runs on or ran on last.
    cpu: u16,
    has_turn: bool,
    has_key: bool,
    /// Its key, or how many tasks were attached before it.
    about: u64,
}

impl Policy for Gittins {
    type Params = GittinsParams;
    const SOURCE: &'static str = "Gittins 1979; Scully, Harchol-Balter and Scheller-Wolf 2020; \
                                  Purohit, Svitkina and Kumar 2018";
    const ORDER: &'static [First] = &[First::Least("rank_ns")];
    const SEED: Option<&'static str> = Some("error_seed");

    fn build(
        machine: &Machine,
        queues: usize,
        params: &GittinsParams,
    ) -> Result<Gittins, ParamError> {
        if !(4..=64).contains(&params.history) {
            return Err(ParamError::Invalid { name: "history", why: "must be from 4 to 64" });
        }
        if params.share > 100 {
            return Err(ParamError::Invalid { name: "share", why: "must be at most 100" });
        }
        if !(Span::from_us(1)..=Span::from_s(3600)).contains(&params.quantum) {
            return Err(ParamError::Invalid { name: "quantum", why: "must be from 1us to 1h" });
        }
        let history = params.history as usize;
        let parts = params.sizes.as_ref().map_or(OF_ALL * history, Sizes::parts);
        let mut builder = Builder::new(params.rank, parts);
        let known = params.sizes.as_ref().map(|sizes| {
            let mut table = Table::with_capacity(parts);
            sizes.fill(&mut builder, &mut table);
            table
        });
        let histories = known.is_none().then(|| History::new(OF_ALL * history));
        Ok(Gittins {
            history,
            share: i64::from(params.share),
            quantum: params.quantum,
            error: Error { sigma: params.error, seed: params.error_seed, about: 0 },
            known,
            unknown: Table::unknown(params.quantum),
            builder,
            histories: histories.into_iter().collect(),
            by_key: BTreeMap::new(),
            free: Vec::new(),
            by_rank: WideForest::new(queues),
            ranked: alloc::vec![WideTree::default(); queues],
            by_turn: WideForest::new(queues),
            turned: alloc::vec![WideTree::default(); queues],
            owed: alloc::vec![0; machine.cpus()],
            tasks: PerTask::new(),
            attached: 0,
            entries: 0,
            turns: 0,
        })
    }
}

impl Gittins {
    #[inline]
    fn table(&self, task: &Task) -> &Table {
        if let Some(known) = &self.known {
            return known;
        }
        let history = self.histories.get(task.by as usize);
        history.and_then(History::table).unwrap_or(&self.unknown)
    }

    /// The history of `key`, or one of its own.
    fn history_of(&mut self, key: Option<u32>) -> u32 {
        if self.known.is_some() {
            return NONE;
        }
        let found = key.and_then(|key| self.by_key.get(&key).copied());
        if let Some(history) = found.or_else(|| key.is_none().then(|| self.free.pop()).flatten()) {
            return history;
        }
        let new = self.histories.len() as u32;
        self.histories.push(History::new(self.history));
        // So that none of them needs memory to become free.
        self.free.reserve(self.histories.len() - self.free.len());
        if let Some(key) = key {
            self.by_key.insert(key, new);
        }
        new
    }

    /// A run of `task` begins.
    fn begin(&mut self, id: TaskId) {
        self.entries += 1;
        self.turns += 1;
        let knows = |history: u32| {
            self.histories.get(history as usize).is_some_and(|history| history.table().is_some())
        };
        let task = &mut self.tasks[id];
        task.by = [task.own, ALL].into_iter().find(|&history| knows(history)).unwrap_or(NONE);
        (task.age, task.number, task.turn) = (Span::ZERO, self.entries, self.turns);
    }

    /// A run of `task` has ended.
    fn learn(&mut self, id: TaskId) {
        let Task { age, own, about, .. } = self.tasks[id];
        if self.known.is_some() || age == Span::ZERO {
            return;
        }
        let error = Error { about, ..self.error };
        self.histories[own as usize].note(age, error, &mut self.builder);
        let exact = Error { sigma: Sigma::default(), ..error };
        self.histories[ALL as usize].note(age, exact, &mut self.builder);
    }

    /// From what it owes on, a CPU gives a turn.
    fn due(&self) -> i64 {
        (100 - self.share) * self.quantum.0 as i64
    }

    fn take(&mut self, queue: usize, task: TaskId) {
        self.by_rank.remove(&mut self.ranked[queue], task);
        if self.share > 0 {
            self.by_turn.remove(&mut self.turned[queue], task);
        }
    }
}

impl RunQueue for Gittins {
    const PREEMPTS: bool = true;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, id: TaskId, params: &TaskParams) {
        self.by_rank.attach(id);
        self.by_turn.attach(id);
        let own = self.history_of(params.key);
        let about = params.key.map_or(self.attached, |key| 1 << 32 | u64::from(key));
        self.attached += 1;
        let task = Task {
            age: Span::ZERO,
            number: 0,
            turn: 0,
            own,
            by: NONE,
            cpu: 0,
            has_turn: false,
            has_key: params.key.is_some(),
            about,
        };
        self.tasks.set(id, task);
    }

    fn detach(&mut self, id: TaskId) {
        let task = &mut self.tasks[id];
        let own = core::mem::replace(&mut task.own, NONE);
        if own != NONE && !task.has_key {
            self.histories[own as usize].clear();
            self.free.push(own);
        }
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        match entry.why {
            Why::New | Why::Woken => self.begin(id),
            Why::Put(Off::Yielded) => {
                self.learn(id);
                self.begin(id);
            }
            Why::Put(Off::Expired) if self.tasks[id].has_turn => {
                self.turns += 1;
                self.tasks[id].turn = self.turns;
            }
            Why::Put(_) | Why::Resumed | Why::Moved => {}
        }
        let task = &mut self.tasks[id];
        task.has_turn = false;
        let task = *task;
        let rank = self.table(&task).rank(task.age);
        self.by_rank.insert(&mut self.ranked[at.queue], id, (rank.0, task.number));
        if self.share > 0 {
            self.by_turn.insert(&mut self.turned[at.queue], id, (task.turn, 0));
        }
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let has_turn = self.share > 0 && self.owed[cpu.index()] >= self.due();
        let (forest, tree) = match has_turn {
            true => (&self.by_turn, &self.turned[at.queue]),
            false => (&self.by_rank, &self.ranked[at.queue]),
        };
        let first = forest.first(tree)?;
        let id = if fits(first) { first } else { forest.iter(tree).find(|&task| fits(task))? };
        self.take(at.queue, id);
        let task = &mut self.tasks[id];
        (task.cpu, task.has_turn) = (cpu.0, has_turn);
        Some(id)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.take(at.queue, task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, id: TaskId, ran: Span) {
        let due = self.due();
        let task = &mut self.tasks[id];
        task.age += ran;
        let gain = if task.has_turn { self.share - 100 } else { self.share };
        let owed = &mut self.owed[usize::from(task.cpu)];
        let ran = i64::try_from(ran.0).unwrap_or(i64::MAX);
        // Where nobody waits, what is owed is owed to nobody in particular.
        *owed = owed.saturating_add(ran.saturating_mul(gain)).clamp(-due, due);
    }

    fn leave(&mut self, _: &At<'_>, task: TaskId, _: Off) -> bool {
        self.learn(task);
        false
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, id: TaskId) -> Span {
        let task = &self.tasks[id];
        if task.has_turn {
            return self.quantum;
        }
        let steady = self.table(task).until_rise(task.age);
        if self.share == 0 {
            return steady;
        }
        let left = self.due() - self.owed[usize::from(task.cpu)];
        steady.min(Span(left.max(1).unsigned_abs().div_ceil(self.share.unsigned_abs())))
    }

    #[inline]
    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let rival = &self.tasks[running.task()?];
        if rival.has_turn {
            return None;
        }
        let uncharged = at.now.since(running.since());
        let rank = self.table(rival).rank(rival.age + uncharged);
        let task = &self.tasks[task];
        let margin = rank.saturating_sub(self.table(task).rank(task.age));
        (margin > Span::ZERO).then_some(margin.0)
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.ranked[queue].len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.by_rank.iter_back(&self.ranked[at.queue]).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        let ns = |span: Span| i64::try_from(span.0).unwrap_or(i64::MAX);
        sink("rank_ns", ns(self.table(task).rank(task.age)));
        sink("age_ns", ns(task.age));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Gittins {
                history: fixed,
                share: fixed,
                quantum: fixed,
                error: fixed,
                known: fixed,
                unknown: fixed,
                builder: fixed,
                histories,
                by_key: fixed,
                free,
                by_rank: fixed,
                ranked: of(by_rank),
                by_turn: fixed,
                turned: of(by_turn),
                owed,
                tasks: fixed,
                attached: fixed,
                entries: fixed,
                turns: fixed
            }
        );
        for (key, history) in &self.by_key {
            [*key, *history].canon(&(), to);
        }
        for task in self.tasks.values() {
            task.canon(&(), to);
            to.word(if self.error.sigma == Sigma::default() { 0 } else { task.about });
        }
        to.word(if self.error.sigma == Sigma::default() { 0 } else { self.attached });
    }
}

canonical!(Task { age, number: order, turn: order, own, by, cpu, has_turn, has_key, about: fixed });
