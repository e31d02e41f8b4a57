//! Lottery scheduling: each quantum goes to the holder of a ticket drawn at random, so that tasks
//! share the CPU in proportion to their tickets.
//!
//! Source: C. A. Waldspurger and W. E. Weihl, Lottery scheduling: flexible proportional-share
//! resource management, OSDI 1994.
//! A task has as many tickets as its weight. Of n waiting tasks, one with t of T tickets wins with
//! probability t / T; it runs for a quantum, or until it blocks or yields. One that ran for only a
//! fraction f of its quantum then has t / f tickets until its next quantum begins (*compensation
//! tickets*); otherwise it would win as often as others and get less. Nothing preempts.
//! A runqueue that wants a task is given the last that entered.
//!
//! Deviations:
//! - Currencies and transfers of tickets are left out: tasks have no groups and no servers here.
//! - Compensation is at most 65,536-fold, and a turn of no time gets none.
//! - The paper's generator is Park and Miller's, of 31 bits, too few for this many tickets; this
//!   one is SplitMix64 (Steele, Lea and Flood 2014).
//! - The quantum is 10 ms, with which the paper expects fairness in less than a second; its
//!   prototype had 100 ms.
//! - The paper has one CPU. Here CPUs that share a runqueue draw in turn from the waiting tasks. A
//!   task cannot run on two CPUs, so one with more tickets than a CPU is worth gets less than its
//!   share.
//!
//! Cost: O(log n); O(n) if the winner may not run on the CPU.

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Summary, Tree};
use anysched_core::random::SplitMix64;
use anysched_core::registry::Policy;
use anysched_core::smp::{At, Entry, Removal, RunQueue, SmpParams, Whereabouts};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `lottery`.
    pub struct LotteryParams {
        /// Time between draws, up to 10s.
        quantum: Span = Span::from_ms(10),
        /// Whether a task that left part of its quantum unused has more tickets in the next draws.
        compensation: bool = true,
        /// Seed of the draws.
        seed: u64 = 0,
    }
}

const LONGEST_QUANTUM: Span = Span::from_s(10);

/// The largest factor by which compensation multiplies tickets.
const MOST_COMPENSATION: u64 = 1 << 16;

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Lottery {
    params: LotteryParams,
    random: SplitMix64,
    /// By number of entry, with the tickets of each.
    forest: Forest<u64, Tickets>,
    queues: Vec<Tree>,
    tasks: PerTask<Task>,
    entries: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tickets(u64);

impl Summary for Tickets {
    const NEEDED: bool = true;

    fn merge(self, other: Tickets) -> Tickets {
        Tickets(self.0.saturating_add(other.0))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    weight: u32,
    /// What it has used of its quantum since it was picked.
    used: Span,
    /// What it used of the previous quantum, if it is to be compensated for the rest.
    part: Option<Span>,
}

impl Lottery {
    /// The tickets of `task`, compensation included.
    fn tickets(&self, task: TaskId) -> Tickets {
        let Task { weight, part, .. } = self.tasks[task];
        let weight = Span(u64::from(weight.max(1)));
        let Some(part) = part else { return Tickets(weight.0) };
        let most = weight.0 * MOST_COMPENSATION;
        Tickets(weight.scaled(self.params.quantum.0, part.0).0.min(most))
    }

    fn insert(&mut self, queue: usize, task: TaskId) {
        self.entries += 1;
        let tickets = self.tickets(task);
        self.forest.insert(&mut self.queues[queue], task, self.entries, tickets);
    }

    /// The holder of the ticket with this number, counted from 0 in the order of entry.
    fn holder(&self, queue: usize, mut ticket: u64) -> Option<TaskId> {
        let sum = |subtree: Option<TaskId>| subtree.map_or(0, |task| self.forest.summary(task).0);
        let mut at = self.queues[queue].root()?;
        loop {
            let left = self.forest.left(at);
            if let Some(left) = left.filter(|_| ticket < sum(left)) {
                at = left;
                continue;
            }
            ticket -= sum(left);
            let own = self.forest.own(at).0;
            match self.forest.right(at) {
                Some(right) if ticket >= own => (ticket, at) = (ticket - own, right),
                _ => return Some(at),
            }
        }
    }

    fn draw(&mut self, queue: usize) -> Option<TaskId> {
        let tree = &self.queues[queue];
        let root = tree.root()?;
        if tree.len() == 1 {
            return Some(root);
        }
        let ticket = self.random.below(self.forest.summary(root).0);
        self.holder(queue, ticket)
    }

    /// Draws among the tasks that fit.
    #[cold]
    fn draw_fitting(&mut self, queue: usize, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let tree = &self.queues[queue];
        let fitting = || self.forest.iter(tree).filter(|&task| fits(task));
        let total = fitting().fold(Tickets(0), |sum, task| sum.merge(self.forest.own(task))).0;
        if total == 0 {
            return None;
        }
        let mut ticket = self.random.below(total);
        let holds = |task: &TaskId| {
            let own = self.forest.own(*task).0;
            let holds = ticket < own;
            ticket = ticket.saturating_sub(own);
            holds
        };
        fitting().find(holds)
    }
}

impl Policy for Lottery {
    type Params = LotteryParams;
    const SOURCE: &'static str = "Waldspurger and Weihl, OSDI 1994";
    const SEED: Option<&'static str> = Some("seed");

    fn build(_: &Machine, queues: usize, params: &LotteryParams) -> Result<Lottery, ParamError> {
        if !(Span(1)..=LONGEST_QUANTUM).contains(&params.quantum) {
            return Err(ParamError::Invalid {
                name: "quantum",
                why: "must be above 0 and at most 10s",
            });
        }
        Ok(Lottery {
            params: params.clone(),
            random: SplitMix64(params.seed),
            forest: Forest::default(),
            queues: alloc::vec![Tree::default(); queues],
            tasks: PerTask::new(),
            entries: 0,
        })
    }
}

impl RunQueue for Lottery {
    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.forest.attach(task);
        self.tasks.grow(task, |_| Task::default());
        self.tasks[task] = Task { weight: params.weight, ..Task::default() };
    }

    fn update(&mut self, _: &At<'_>, is: Whereabouts, id: TaskId, params: &TaskParams) {
        self.tasks[id].weight = params.weight;
        if is == Whereabouts::Queued {
            self.forest.set_own(id, self.tickets(id));
        }
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, task: TaskId, _: &Entry) {
        self.insert(at.queue, task);
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut winner = self.draw(at.queue)?;
        if !fits(winner) {
            winner = self.draw_fitting(at.queue, fits)?;
        }
        self.forest.remove(&mut self.queues[at.queue], winner);
        self.tasks[winner].used = Span::ZERO;
        Some(winner)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.forest.remove(&mut self.queues[at.queue], task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, task: TaskId, ran: Span) {
        self.tasks[task].used += ran;
    }

    #[inline]
    fn settle(&mut self, at: &At<'_>, task: TaskId, ran: Span, why: Off) {
        self.charge(at, task, ran);
        if why == Off::NotRun {
            return;
        }
        let Task { used, part, .. } = &mut self.tasks[task];
        let is_part = *used > Span::ZERO && *used < self.params.quantum;
        let compensated = self.params.compensation && is_part && why != Off::Expired;
        *part = compensated.then_some(*used);
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        self.params.quantum
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn weight(&self, task: TaskId) -> u64 {
        self.tasks[task].weight.into()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.iter_back(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        sink("tickets", i64::try_from(self.tickets(task).0).unwrap_or(i64::MAX));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Lottery {
                params: fixed,
                random,
                forest: fixed,
                queues: of(forest),
                tasks,
                entries: fixed
            }
        );
    }
}

canonical!(Task { weight, used, part });

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use anysched_core::Scheduler;
    use anysched_core::Smp;
    use anysched_oracle::drive::{Drive, ms};

    fn of(weight: u32) -> TaskParams {
        TaskParams { weight, ..TaskParams::default() }
    }

    fn with(settings: &[(&str, &str)], weights: &[u32]) -> Drive<Smp<Lottery>> {
        let mut drive = Drive::rule("1", settings);
        for (task, &weight) in (0..).zip(weights) {
            drive.create_with(task, None, &of(weight));
        }
        drive
    }

    /// How often each task wins in `draws` draws, running for whole quanta.
    fn wins<const N: usize>(seed: u64, weights: [u32; N], draws: u32) -> [u32; N] {
        let mut drive = with(&[("seed", &format!("{seed}"))], &weights);
        let mut wins = [0; N];
        (0..draws).for_each(|_| wins[drive.run(ms(10), Off::Expired) as usize] += 1);
        wins
    }

    fn assert_within(found: u32, expected: f64, margin: f64) {
        assert!((f64::from(found) - expected).abs() < margin, "{found}, not {expected} ± {margin}");
    }

    /// The first figure of the paper: clients with 10, 2, 5, 1 and 2 tickets; the third has number
    /// 15, counted from 0.
    #[test]
    fn each_ticket_has_the_holder_that_sums_in_order_give() {
        let drive = with(&[], &[10, 2, 5, 1, 2]);
        let rule = drive.policy.rule();
        assert_eq!(rule.holder(0, 15), Some(TaskId(2)));
        let holders: Vec<u32> = (0..20).map(|ticket| rule.holder(0, ticket).unwrap().0).collect();
        assert_eq!(holders, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3, 4, 4]);
    }

    /// Wins are binomial: the sum over 100 seeds of 1000 draws has a standard deviation of
    /// √(100000 · p(1 − p)), which is 158, 145 and 126. The margins are five of these.
    #[test]
    fn shares_are_those_of_the_tickets() {
        let mut sums = [0; 3];
        for seed in 0..100 {
            let wins = wins(seed, [5, 3, 2], 1000);
            sums.iter_mut().zip(wins).for_each(|(sum, wins)| *sum += wins);
        }
        for (sum, (expected, margin)) in
            sums.into_iter().zip([(50_000.0, 790.0), (30_000.0, 725.0), (20_000.0, 632.0)])
        {
            assert_within(sum, expected, margin);
        }
    }

    /// Over 200 seeds, the sum of (wins − np)² / np(1 − p) is χ² with 200 degrees of freedom: 200
    /// on average, with a standard deviation of 20. A policy that shares more evenly has less.
    #[test]
    fn shares_vary_as_independent_draws_do() {
        let (draws, share) = (300, 0.25);
        let (mean, variance) = (75.0, 56.25);
        assert_eq!((mean, variance), (300.0 * share, 300.0 * share * (1.0 - share)));
        let deviation = |seed| f64::from(wins(seed, [1, 3], draws)[0]) - mean;
        let sum: f64 = (0..200).map(|seed| deviation(seed).powi(2) / variance).sum();
        assert!((100.0..300.0).contains(&sum), "{sum}");
    }

    /// Waits are geometric: a task with a fifth of the tickets wins after 5 draws on average, with
    /// a standard deviation of √(1 − p)/p = 4.47; of the mean of 10,000 waits, 0.045.
    #[test]
    fn waits_for_a_win_are_geometric() {
        let mut drive = with(&[], &[1, 4]);
        let (mut draws, mut waits, mut at_once) = (0u32, 0, 0);
        while waits < 10_000 {
            let mut wait = 1;
            while drive.run(ms(10), Off::Expired) != 0 {
                wait += 1;
            }
            (draws, waits, at_once) = (draws + wait, waits + 1, at_once + u32::from(wait == 1));
        }
        assert_within(draws, 50_000.0, 2_240.0);
        // √(10000 · 0.2 · 0.8) = 40
        assert_within(at_once, 2_000.0, 200.0);
    }

    /// The paper's example: two threads with 400 tickets each, of which one yields after 20 of its
    /// 100 ms. It has 2000 tickets from then on, wins 5 draws of 6, and gets half of the CPU.
    #[test]
    fn compensation_makes_up_for_the_rest_of_a_quantum() {
        for (compensation, tickets, expected) in
            [("true", 2000, 50_000.0), ("false", 400, 30_000.0)]
        {
            let settings = [("quantum", "100ms"), ("compensation", compensation)];
            let mut drive = with(&settings, &[400, 400]);
            drive.kicked();
            let mut wins = 0;
            for _ in 0..60_000 {
                if drive.pick(0).unwrap().0 == 0 {
                    drive.put(0, 0, ms(100), Off::Expired);
                } else {
                    assert!(!drive.tick(1, ms(5)));
                    drive.put(0, 1, ms(15), Off::Yielded);
                    wins += 1;
                }
            }
            assert_eq!([0, 1].map(|task| drive.probe(task, "tickets")), [400, tickets]);
            // √(60000 · 5/36) = 91 and √(60000/4) = 122
            assert_within(wins, expected, 610.0);
        }
    }

    #[test]
    fn compensation_lasts_until_the_next_quantum_is_over() {
        let mut drive = with(&[], &[100]);
        let mut tickets = |ran, why| {
            drive.run(ran, why);
            let tickets = drive.probe(0, "tickets");
            if why == Off::Blocked {
                drive.wake(0);
                assert_eq!(drive.probe(0, "tickets"), tickets);
            }
            tickets
        };
        assert_eq!(tickets(ms(4), Off::Blocked), 250);
        assert_eq!(tickets(Span::ZERO, Off::NotRun), 250, "the quantum has not begun");
        assert_eq!(tickets(ms(10), Off::Expired), 100);
        assert_eq!(tickets(Span::ZERO, Off::Yielded), 100);
        assert_eq!(tickets(Span(1), Off::Yielded), 6_553_600);
        // The host may measure less than it gave.
        assert_eq!(tickets(ms(9), Off::Expired), 100);
    }

    /// On CPU 0, where a task with many tickets may not run, the others win 1 : 3.
    #[test]
    fn draws_are_among_those_that_may_run() {
        let mut drive = Drive::<Smp<Lottery>>::rule("2", &[]);
        let only = TaskParams { affinity: anysched_core::CpuSet::Few(2), ..of(100_000) };
        drive.create_with(0, None, &only);
        drive.create_with(1, None, &of(100));
        drive.create_with(2, None, &of(300));
        let mut wins = [0; 3];
        (0..20_000).for_each(|_| wins[drive.run(ms(10), Off::Expired) as usize] += 1);
        // √(20000 · 3/16) = 61
        assert_within(wins[1], 5_000.0, 306.0);
        assert_eq!(wins[0], 0);
    }

    #[test]
    fn another_weight_counts_in_the_next_draw() {
        let mut drive = with(&[], &[1, u32::MAX]);
        drive.call(|smp, cx| smp.update(cx, TaskId(0), &of(u32::MAX)));
        drive.call(|smp, cx| smp.update(cx, TaskId(1), &of(1)));
        let winners: Vec<u32> = (0..100).map(|_| drive.run(ms(10), Off::Expired)).collect();
        assert_eq!(winners, [0; 100]);
    }

    #[test]
    fn a_seed_is_a_schedule() {
        assert_eq!(wins(7, [1, 1, 1, 1], 1000), wins(7, [1, 1, 1, 1], 1000));
        assert_ne!(wins(7, [1, 1, 1, 1], 1000), wins(8, [1, 1, 1, 1], 1000));
    }

    #[test]
    fn who_becomes_ready_waits_for_the_end_of_the_quantum() {
        let mut drive = with(&[], &[1]);
        assert_eq!(drive.pick(0), Some((0, ms(10))));
        drive.kicked();
        drive.create_with(1, None, &of(1_000_000));
        assert_eq!(drive.kicked(), []);
    }
}
