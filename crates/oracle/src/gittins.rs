//! `gittins` with all runs in lists: every rank is computed from the sizes by its definition.

use std::collections::BTreeMap;

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams,
};

/// What the rank of a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The least time for an end.
    Gittins,
    /// What it is expected to need.
    Serpt,
    /// The most that it was expected to need.
    MSerpt,
}

/// Parameters of `gittins`, times in ns; without `sizes`, they are learned.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named as the parameters")]
pub struct Rules {
    pub rank: Rank,
    pub sizes: Option<Vec<u64>>,
    pub history: usize,
    pub share: i64,
    pub quantum: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Everybody,
    Key(u32),
    /// By how many were attached before.
    Task(usize),
}

#[derive(Clone, Debug, Default)]
struct Past {
    runs: Vec<u64>,
    fresh: usize,
    /// In ascending order.
    known: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Away,
    Ready,
    Running,
}

#[derive(Clone, Debug)]
struct Job {
    state: State,
    age: u64,
    /// When it was last queued.
    rank: u64,
    number: usize,
    turn: usize,
    has_turn: bool,
    whose: Whose,
    by: Option<Whose>,
    cpu: usize,
    affinity: CpuSet,
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Gittins {
    rules: Rules,
    past: BTreeMap<Whose, Past>,
    jobs: BTreeMap<u32, Job>,
    owed: Vec<i64>,
    attached: usize,
    entries: usize,
    turns: usize,
}

/// Where the rank of tasks of these sizes changes: ages, with the rank before and the rank from
/// there on.
fn corners(rank: Rank, sizes: &[u64]) -> Vec<(u64, u64, u64)> {
    // Of those that are older than the first `gone`, at this age.
    let at = |age: u64, gone: usize| -> u64 {
        let left: Vec<u64> = sizes[gone..].iter().map(|size| size - age).collect();
        let quotient = |until: u64| {
            let used: u64 = left.iter().map(|&left| left.min(until)).sum();
            let ends = left.iter().filter(|&&left| left <= until).count() as u64;
            (used + ends / 2) / ends
        };
        match rank {
            Rank::Gittins => left.iter().map(|&until| quotient(until)).min().unwrap(),
            Rank::Serpt | Rank::MSerpt => quotient(u64::MAX),
        }
    };
    let end = *sizes.last().unwrap();
    let mut ages: Vec<u64> = [0].iter().chain(sizes).copied().filter(|&age| age < end).collect();
    ages.dedup();
    let mut most = 0;
    let mut found = Vec::new();
    for age in ages {
        let gone = sizes.iter().filter(|&&size| size <= age).count();
        let same = sizes.iter().filter(|&&size| size == age).count();
        // When the first of those of this size has ended, and when all have.
        let (before, from) = (at(age, gone - same.saturating_sub(1)), at(age, gone));
        most = from.max(most);
        found.push(if rank == Rank::MSerpt { (age, most, most) } else { (age, before, from) });
    }
    found
}

/// The rank at `age`, and for how long it does not rise.
fn rank_at(rank: Rank, sizes: &[u64], age: u64) -> (u64, u64) {
    let corners = corners(rank, sizes);
    let end = *sizes.last().unwrap();
    let falls = rank != Rank::MSerpt;
    if age >= end {
        let floor = if falls { 0 } else { corners.last().map_or(0, |corner| corner.2) };
        let mut doubled = end;
        while doubled * 2 <= age {
            doubled *= 2;
        }
        return (doubled.max(floor), doubled * 2 - age);
    }
    // The rank just before each corner but the first.
    let to = |corner: usize| match corners.get(corner + 1) {
        _ if !falls => corners[corner].2,
        Some(next) => corners[corner].2.min(next.1),
        None => 0,
    };
    let here = corners.iter().rposition(|corner| corner.0 <= age).unwrap();
    let next = corners.get(here + 1).map_or(end, |next| next.0);
    let (from, high) = (corners[here].0, corners[here].2);
    let now = high - (high - to(here)) * (age - from) / (next - from);
    let rises = (here + 1..corners.len()).find(|&corner| corners[corner].2 > to(corner - 1));
    (now, rises.map_or(end, |corner| corners[corner].0) - age)
}

impl Gittins {
    /// On `cpus` CPUs, with no task yet.
    pub fn new(cpus: usize, rules: Rules) -> Gittins {
        Gittins {
            rules,
            past: BTreeMap::new(),
            jobs: BTreeMap::new(),
            owed: vec![0; cpus],
            attached: 0,
            entries: 0,
            turns: 0,
        }
    }

    fn known(&self, whose: Whose) -> Option<&[u64]> {
        let past = self.past.get(&whose)?;
        (!past.known.is_empty()).then_some(&past.known)
    }

    fn rank(&self, job: &Job) -> (u64, u64) {
        let Rules { rank, quantum, .. } = self.rules;
        let learned = job.by.and_then(|whose| self.known(whose));
        match self.rules.sizes.as_deref().or(learned) {
            Some(sizes) => rank_at(rank, sizes, job.age),
            // Nothing is known: a quantum, whatever the age until then.
            None if job.age < quantum => (quantum, quantum - job.age),
            None => rank_at(rank, &[quantum], job.age),
        }
    }

    fn queue(&mut self, task: u32) {
        let rank = self.rank(&self.jobs[&task]).0;
        let job = self.jobs.get_mut(&task).unwrap();
        (job.state, job.rank, job.has_turn) = (State::Ready, rank, false);
    }

    fn begin(&mut self, task: u32) {
        let whose = self.jobs[&task].whose;
        let by = [whose, Whose::Everybody].into_iter().find(|&whose| self.known(whose).is_some());
        self.entries += 1;
        self.turns += 1;
        let job = self.jobs.get_mut(&task).unwrap();
        (job.age, job.number, job.turn, job.by) = (0, self.entries, self.turns, by);
    }

    fn learn(&mut self, task: u32) {
        let Job { age, whose, .. } = self.jobs[&task];
        if age == 0 {
            return;
        }
        for (whose, length) in
            [(whose, self.rules.history), (Whose::Everybody, 16 * self.rules.history)]
        {
            let past = self.past.entry(whose).or_default();
            past.runs.push(age);
            past.fresh += 1;
            let latest = &past.runs[past.runs.len().saturating_sub(length)..];
            if latest.len() >= 4 && 4 * past.fresh >= latest.len() {
                past.fresh = 0;
                past.known = latest.to_vec();
                past.known.sort_unstable();
            }
        }
    }
}

impl Scheduler for Gittins {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let job = Job {
            state: State::Away,
            age: 0,
            rank: 0,
            number: 0,
            turn: 0,
            has_turn: false,
            whose: params.key.map_or(Whose::Task(self.attached), Whose::Key),
            by: None,
            cpu: 0,
            affinity: params.affinity.clone(),
        };
        self.attached += 1;
        self.jobs.insert(task.0, job);
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.jobs.remove(&task.0);
    }

    fn update(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.jobs.get_mut(&task.0).unwrap().affinity = params.affinity.clone();
    }

    fn enqueue(&mut self, _: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        if !matches!(arrival.why, Enqueue::Resumed { .. }) {
            self.begin(task.0);
        }
        self.queue(task.0);
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.jobs.get_mut(&task.0).unwrap().state = State::Away;
    }

    fn pick_next(&mut self, _: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let Rules { share, quantum, .. } = self.rules;
        let due = (100 - share) * quantum as i64;
        let owed = self.owed[cpu.index()];
        let has_turn = share > 0 && owed >= due;
        let fits =
            |(_, job): &(&u32, &Job)| job.state == State::Ready && job.affinity.contains(cpu);
        let first = |(_, job): &(&u32, &Job)| match has_turn {
            true => (0, job.turn),
            false => (job.rank, job.number),
        };
        let task = *self.jobs.iter().filter(fits).min_by_key(first)?.0;
        let steady = self.rank(&self.jobs[&task]).1;
        let slice = match (has_turn, share) {
            (true, _) => quantum,
            (false, 0) => steady,
            // As much for ranks as brings what is owed up to a turn.
            (false, _) => steady.min((due - owed).max(1).unsigned_abs().div_ceil(share as u64)),
        };
        let job = self.jobs.get_mut(&task).unwrap();
        (job.state, job.cpu, job.has_turn) = (State::Running, cpu.index(), has_turn);
        Some(Pick { task: TaskId(task), slice: Span(slice) })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.tick(cx, cpu, task, ran);
        if matches!(why, Off::Yielded | Off::Blocked | Off::Exited) {
            self.learn(task.0);
        }
        match why {
            Off::Yielded => self.begin(task.0),
            Off::Expired if self.jobs[&task.0].has_turn => {
                self.turns += 1;
                self.jobs.get_mut(&task.0).unwrap().turn = self.turns;
            }
            _ => {}
        }
        match why.runnable() {
            true => self.queue(task.0),
            false => self.jobs.get_mut(&task.0).unwrap().state = State::Away,
        }
    }

    fn tick(&mut self, _: &mut Cx<'_>, _: CpuId, task: TaskId, ran: Span) {
        let Rules { share, quantum, .. } = self.rules;
        let due = (100 - share) * quantum as i64;
        let job = self.jobs.get_mut(&task.0).unwrap();
        job.age += ran.0;
        let gain = if job.has_turn { share - 100 } else { share };
        let owed = &mut self.owed[job.cpu];
        *owed = (*owed + ran.0 as i64 * gain).clamp(-due, due);
    }
}

impl Oracle for Gittins {
    const KICKS: bool = false;
    const TIMERS: bool = false;
}
