//! Ranks by age, from how many tasks end at which age.

use alloc::vec::Vec;
use anysched_core::canonical;

use anysched_core::choice;
use anysched_core::time::Span;

choice! {
    /// What the rank of a task is. The least rank is served first.
    pub enum Rank {
        /// Gittins's: the least, over all Δ, of the CPU time that it is expected to use until it
        /// ends or has used Δ more, divided by the probability that it then has ended.
        Gittins = "gittins",
        /// What it is expected to need.
        Serpt = "serpt",
        /// The most that it was expected to need so far.
        MSerpt = "m-serpt",
    }
}

/// Ranks by age: from each point's age on, a rank that stays or falls in a straight line until the
/// next. Whoever outlives the last age at which a task ends is taken to need as much again as it
/// has used when that last doubled.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// By ascending age, the first at 0; all before `end`.
    points: Vec<Point>,
    /// The age at which tasks have ended; none: the last rank holds for good.
    end: Option<Span>,
    /// The least rank beyond.
    floor: Span,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    age: Span,
    rank: Span,
    /// The rank just before the next point; at most `rank`.
    to: Span,
    /// The next age at which the rank rises.
    rise: Span,
}

impl Table {
    /// Room for as many points as [`Builder::fill`] makes of `parts` parts.
    pub fn with_capacity(parts: usize) -> Table {
        Table { points: Vec::with_capacity(parts), end: None, floor: Span::ZERO }
    }

    /// For a task of which nothing is known, which is given `trial` to end.
    pub fn unknown(trial: Span) -> Table {
        let point = Point { age: Span::ZERO, rank: trial, to: trial, rise: trial };
        Table { points: [point].into(), end: Some(trial), floor: Span::ZERO }
    }

    /// Forgets all ranks.
    pub fn clear(&mut self) {
        self.points.clear();
        self.end = None;
    }

    /// Whether ranks are known.
    pub fn is_filled(&self) -> bool {
        self.end.is_some() || !self.points.is_empty()
    }

    /// The rank at `age`.
    #[inline]
    pub fn rank(&self, age: Span) -> Span {
        if let Some(end) = self.end.filter(|&end| age >= end) {
            return doubled(end, age).max(self.floor);
        }
        let place = self.points.partition_point(|point| point.age <= age);
        let Point { age: from, rank, to, .. } = self.points[place - 1];
        if rank == to {
            return rank;
        }
        let until = self.points.get(place).map_or(self.end, |next| Some(next.age));
        let length = until.map_or(u64::MAX, |until| until.0 - from.0);
        let fallen = u128::from(rank.0 - to.0) * u128::from(age.0 - from.0) / u128::from(length);
        Span(rank.0 - fallen as u64)
    }

    /// For how long from `age` on the rank does not rise; above zero.
    #[inline]
    pub fn until_rise(&self, age: Span) -> Span {
        if let Some(end) = self.end.filter(|&end| age >= end) {
            let next = doubled(end, age).0.saturating_mul(2);
            return Span(next.saturating_sub(age.0).max(1));
        }
        let place = self.points.partition_point(|point| point.age <= age);
        match self.points[place - 1].rise {
            Span::MAX => Span::MAX,
            rise => rise.saturating_sub(age),
        }
    }
}

/// The largest of `start`, 2 · `start`, 4 · `start` … up to `age`, or `start`; 1 ns instead of 0.
fn doubled(start: Span, age: Span) -> Span {
    let start = start.0.max(1);
    Span(start << (age.0.max(start) / start).ilog2())
}

/// Between one age and the next.
#[derive(Clone, Copy, Debug)]
struct Part {
    age: Span,
    /// CPU time that tasks use between the ages, summed over them.
    cost: u128,
    /// How many end there.
    ends: u128,
}

/// Makes tables; allocates nothing for as many parts as there is room for.
#[derive(Debug)]
pub(super) struct Builder {
    rank: Rank,
    parts: Vec<Part>,
    ranks: Vec<Span>,
    /// Runs of parts, the nearest last, each with a larger quotient of cost and ends than the one
    /// before it in age.
    runs: Vec<(u128, u128)>,
}

impl Builder {
    /// For tables of these ranks, with room for `parts` parts.
    pub fn new(rank: Rank, parts: usize) -> Builder {
        Builder {
            rank,
            parts: Vec::with_capacity(parts),
            ranks: Vec::with_capacity(parts),
            runs: Vec::with_capacity(parts),
        }
    }

    /// Adds what happens from `age` on, until the next part; ages ascend from 0. Products of any
    /// sum of costs and any sum of ends are below 2^128.
    pub fn part(&mut self, age: Span, cost: u128, ends: u128) {
        self.parts.push(Part { age, cost, ends });
    }

    /// Adds the parts of tasks of these sizes, which ascend, and fills `table`.
    pub fn fill_from_sizes(&mut self, sizes: &[Span], table: &mut Table) {
        let mut age = Span::ZERO;
        for (left, &size) in (1..=sizes.len()).rev().zip(sizes) {
            self.part(age, left as u128 * u128::from(size.0 - age.0), 1);
            age = size;
        }
        self.fill(Some(age), table);
    }

    /// Makes `table` that of the parts added, which are then forgotten. `end` is where the last
    /// ends, at whose end no task is left, or none if it never does.
    pub fn fill(&mut self, end: Option<Span>, table: &mut Table) {
        self.ranks.clear();
        self.ranks.resize(self.parts.len(), Span::ZERO);
        match self.rank {
            Rank::Gittins => self.rank_by_runs(),
            Rank::Serpt | Rank::MSerpt => self.rank_by_remains(),
        }
        let falls = self.rank != Rank::MSerpt;
        if !falls {
            let mut most = Span::ZERO;
            for rank in &mut self.ranks {
                most = most.max(*rank);
                *rank = most;
            }
        }
        table.points.clear();
        for (part, &rank) in self.parts.iter().zip(&self.ranks) {
            // Where several end at one age, the first of them says what the rank falls to before
            // they do, and the last what it is afterwards.
            match table.points.last_mut() {
                Some(point) if point.age == part.age => (point.rank, point.to) = (rank, rank),
                last => {
                    if let Some(point) = last.filter(|point| falls && rank < point.to) {
                        point.to = rank;
                    }
                    let point = Point { age: part.age, rank, to: rank, rise: Span::MAX };
                    table.points.push(point);
                }
            }
        }
        if let Some(end) = end {
            while table.points.last().is_some_and(|point| point.age >= end) {
                table.points.pop();
            }
            if let Some(last) = table.points.last_mut().filter(|_| falls) {
                last.to = Span::ZERO;
            }
        }
        let mut next = end.map(|end| (end, Span::MAX));
        let mut rise = Span::MAX;
        for point in table.points.iter_mut().rev() {
            if let Some((age, _)) = next.filter(|&(_, rank)| rank > point.to) {
                rise = age;
            }
            point.rise = rise;
            next = Some((point.age, point.rank));
        }
        table.floor =
            if falls { Span::ZERO } else { self.ranks.last().copied().unwrap_or_default() };
        table.end = end;
        self.parts.clear();
    }

    /// The least quotient of a sum of costs and a sum of ends over parts from each on. Those up to
    /// the least one make a run: what comes behind a run has a larger quotient, and would raise it.
    fn rank_by_runs(&mut self) {
        self.runs.clear();
        for (part, rank) in self.parts.iter().zip(&mut self.ranks).rev() {
            let (mut cost, mut ends) = (part.cost, part.ends);
            while let Some(&(next_cost, next_ends)) = self.runs.last() {
                if cost * next_ends < next_cost * ends {
                    break;
                }
                (cost, ends) = (cost + next_cost, ends + next_ends);
                self.runs.pop();
            }
            self.runs.push((cost, ends));
            *rank = quotient(cost, ends);
        }
    }

    fn rank_by_remains(&mut self) {
        let (mut cost, mut ends) = (0, 0);
        for (part, rank) in self.parts.iter().zip(&mut self.ranks).rev() {
            (cost, ends) = (cost + part.cost, ends + part.ends);
            *rank = quotient(cost, ends);
        }
    }
}

/// To the nearest; the largest where nothing ends.
fn quotient(cost: u128, ends: u128) -> Span {
    let rounded = (cost + ends / 2).checked_div(ends);
    Span(rounded.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(u64::MAX))
}

canonical!(Table { points, end, floor });
canonical!(Point { age, rank, to, rise });
