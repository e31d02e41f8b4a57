//! The search in one space.

use super::evaluate::{Bench, Purpose, Score, Scores};
use super::space::{Candidate, MOVES, Space, first_round, survivors};
use super::{Counter, Objective, TuneError};
use crate::plan::workers::Workers;
use crate::results::stats::Estimate;
use anysched_core::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A parameter set that is worse by no more than this part, and by no more than a standard error,
/// is as good: then the simpler one is kept. Errors alone would hide what counts under noisy loads.
const ALIKE: f64 = 0.005;

pub(super) struct Search<'a> {
    space: Space,
    objective: Objective,
    bench: &'a Bench,
    workers: Workers<'a>,
    counter: &'a Counter<'a>,
    mean: Span,
    /// By what the parameter set is in words: positions may mean the same.
    tried: BTreeMap<String, Tried>,
}

struct Tried {
    candidate: Candidate,
    scores: Scores,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        space: Space,
        objective: Objective,
        bench: &'a Bench,
        workers: Workers<'a>,
        counter: &'a Counter<'a>,
    ) -> Search<'a> {
        let mean = bench.mean();
        Search { space, objective, bench, workers, counter, mean, tried: BTreeMap::new() }
    }

    /// The best parameter set and how many runs were made; `None` after a cancellation.
    pub(super) fn run(mut self) -> Result<Option<(Candidate, usize)>, TuneError> {
        let Some(start) = self.halve()? else { return Ok(None) };
        let Some(best) = self.refine(start)? else { return Ok(None) };
        let runs = self.tried.values().map(|tried| tried.scores.len()).sum();
        let key = self.key(&best);
        Ok(self.tried.remove(&key).map(|tried| (tried.candidate, runs)))
    }

    /// Thins the grid; the simplest position that is as good as the best.
    fn halve(&mut self) -> Result<Option<Vec<i32>>, TuneError> {
        let mut left = self.space.grid();
        let mut seen = BTreeSet::new();
        left.retain(|position| seen.insert(self.key(position)));
        let (seeds, mut with) = (self.bench.seeds(), first_round(self.bench.seeds()));
        loop {
            if !self.evaluate(&left, with)? {
                return Ok(None);
            }
            if with == seeds {
                break;
            }
            let mut order: Vec<usize> = (0..left.len()).collect();
            let values: Vec<f64> = left.iter().map(|position| self.value(position)).collect();
            order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
            order.truncate(survivors(left.len()));
            order.sort_unstable();
            left = order.into_iter().map(|number| left[number].clone()).collect();
            with = (with * 2).min(seeds);
        }
        let value = |position: &&Vec<i32>| self.value(position);
        let Some(best) = left.iter().min_by(|a, b| value(a).total_cmp(&value(b))) else {
            return Ok(None);
        };
        Ok(left.iter().find(|position| self.is_as_good(position, best)).cloned())
    }

    /// Goes on to better neighbours until there is none.
    fn refine(&mut self, start: Vec<i32>) -> Result<Option<Vec<i32>>, TuneError> {
        let mut here = start;
        for step in 0..2 {
            for _ in 0..MOVES {
                let neighbours = self.space.neighbours(&here, step);
                if !self.evaluate(&neighbours, self.bench.seeds())? {
                    return Ok(None);
                }
                let better = neighbours.into_iter().filter(|there| !self.is_as_good(&here, there));
                let value = |position: &Vec<i32>| self.value(position);
                let Some(best) = better.min_by(|a, b| value(a).total_cmp(&value(b))) else { break };
                here = best;
            }
        }
        Ok(Some(here))
    }

    /// Makes the runs of the first `seeds` seeds that have not been made; false: cancelled.
    fn evaluate(&mut self, positions: &[Vec<i32>], seeds: usize) -> Result<bool, TuneError> {
        let mut keys = Vec::new();
        for position in positions {
            let candidate = self.space.candidate(position, self.mean);
            let key = candidate.shown();
            let tried = Tried { candidate, scores: Vec::new() };
            let has = self.tried.entry(key.clone()).or_insert(tried).scores.len();
            if has < seeds && !keys.contains(&(key.clone(), has)) {
                keys.push((key, has));
            }
        }
        let mut wanted = Vec::new();
        for (key, has) in &keys {
            let seed = |index| self.bench.seed(Purpose::Search, index);
            wanted.extend((*has..seeds).map(|index| (&self.tried[key].candidate, seed(index))));
        }
        let label = self.space.label();
        let Some(scores) = self.bench.run(self.workers, self.counter, &label, &wanted)? else {
            return Ok(false);
        };
        let mut scores = scores.into_iter();
        for (key, has) in keys {
            if let Some(tried) = self.tried.get_mut(&key) {
                tried.scores.extend(scores.by_ref().take(seeds - has));
            }
        }
        Ok(true)
    }

    fn key(&self, position: &[i32]) -> String {
        self.space.candidate(position, self.mean).shown()
    }

    fn values(&self, position: &[i32]) -> Vec<f64> {
        let scores = self.tried.get(&self.key(position)).map_or(&[][..], |tried| &tried.scores);
        scores.iter().map(|score: &Score| score.of(self.objective)).collect()
    }

    fn value(&self, position: &[i32]) -> f64 {
        Estimate::of(&self.values(position)).map_or(f64::INFINITY, |estimate| estimate.mean)
    }

    /// Whether `a` is not worse than `b` by more than a standard error of the paired difference,
    /// nor by more than [`ALIKE`].
    fn is_as_good(&self, a: &[i32], b: &[i32]) -> bool {
        let (a, b) = (self.values(a), self.values(b));
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let (Some(difference), Some(b)) = (Estimate::of(&differences), Estimate::of(&b)) else {
            return false;
        };
        let error = difference.standard_error.unwrap_or(0.0);
        difference.mean <= error.min(ALIKE * b.mean)
    }
}
