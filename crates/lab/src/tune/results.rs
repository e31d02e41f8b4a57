//! What tuning has shown.

use super::evaluate::Scores;
use super::space::Candidate;
use super::{Objective, Tuning};
use crate::results::stats::Estimate;
use crate::spec::sweep::nature_of;
use anysched_core::registry::{Nature, PolicyInfo};

/// Tuned policies beside others.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// What was asked for.
    pub tuning: Tuning,
    /// The policies with their parameters, the untuned ones first.
    pub rows: Vec<TunedRow>,
    /// Whether no row is missing.
    pub complete: bool,
}

/// A policy with parameters, measured with the seeds that no search saw.
#[derive(Clone, Debug)]
pub struct TunedRow {
    /// What it is called here.
    pub label: String,
    /// Its line in the registry.
    pub policy: &'static PolicyInfo,
    /// Its parameters where they differ from the defaults, or were searched.
    pub settings: Vec<(&'static str, String)>,
    /// What it needs to know, and whether it leaves CPUs idle.
    pub nature: Nature,
    /// How many runs its search made; `None`: it was not tuned.
    pub search_runs: Option<usize>,
    scores: Scores,
}

impl TunedRow {
    pub(super) fn new(
        label: String,
        candidate: Candidate,
        search_runs: Option<usize>,
        scores: Scores,
    ) -> TunedRow {
        let Candidate { info, settings } = candidate;
        let texts: Vec<(&str, &str)> =
            settings.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let nature = nature_of(info, &texts);
        TunedRow { label, policy: info, settings, nature, search_runs, scores }
    }

    /// Its parameters as `name = value, …`.
    pub fn parameters(&self) -> String {
        Candidate { info: self.policy, settings: self.settings.clone() }.shown()
    }

    /// The turnaround in ns, per seed.
    pub fn values(&self, objective: Objective) -> Vec<f64> {
        self.scores.iter().map(|score| score.of(objective)).collect()
    }

    /// The turnaround over seeds, in ns.
    pub fn turnaround(&self, objective: Objective) -> Option<Estimate> {
        Estimate::of(&self.values(objective))
    }

    /// The difference from `other` over seeds, paired, in percent of the mean of `other`.
    pub fn against(&self, other: &TunedRow, objective: Objective) -> Option<Estimate> {
        let scale = other.turnaround(objective)?.mean / 100.0;
        let (own, others) = (self.values(objective), other.values(objective));
        let difference = |(own, other): (&f64, &f64)| (own - other) / scale;
        Estimate::of(&own.iter().zip(&others).map(difference).collect::<Vec<_>>())
    }
}

impl Tuned {
    /// The row of this label.
    pub fn row(&self, label: &str) -> Option<&TunedRow> {
        self.rows.iter().find(|row| row.label == label)
    }

    /// How many runs the searches made.
    pub fn search_runs(&self) -> usize {
        self.rows.iter().filter_map(|row| row.search_runs).sum()
    }
}
