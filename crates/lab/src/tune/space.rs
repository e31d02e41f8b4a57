//! What can be tuned, between which bounds, and what a search may cost.

use anysched_core::Span;
use anysched_core::registry::PolicyInfo;
use anysched_core::tuning::{self, Role, Values};
use anysched_policies::POLICIES;

/// A policy and the parameters of it that are searched.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// The policy's entry in the registry.
    pub policy: &'static PolicyInfo,
    /// What it says of the search.
    pub search: &'static tuning::Space,
}

/// Moves at most of a refinement with one step.
pub const MOVES: usize = 8;

/// A policy with a parameter set.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) info: &'static PolicyInfo,
    pub(super) settings: Values,
}

impl Candidate {
    /// `name = value, …`, or nothing.
    pub(super) fn shown(&self) -> String {
        let pair = |(name, text): &(&str, String)| format!("{name} = {text}");
        self.settings.iter().map(pair).collect::<Vec<_>>().join(", ")
    }
}

/// All that can be tuned, the rival of the others last.
pub fn spaces() -> Vec<Space> {
    let of = |policy: &'static PolicyInfo| {
        policy.spaces.iter().map(move |search| Space { policy, search })
    };
    let mut all: Vec<Space> = POLICIES.iter().flat_map(of).collect();
    all.sort_by_key(|space| space.search.is_rival);
    all
}

/// The names of the policies that can be tuned.
pub fn policies() -> Vec<&'static str> {
    let mut names: Vec<&str> = spaces().iter().map(|space| space.policy.name).collect();
    names.dedup();
    names
}

/// What stands beside the tuned policies, with labels.
pub(super) fn baselines(mean: Span) -> Vec<(String, Candidate)> {
    let baseline = |info: &'static PolicyInfo| Some((info, info.baseline?));
    let mut all: Vec<_> = POLICIES.iter().filter_map(baseline).collect();
    all.sort_by_key(|(_, baseline)| baseline.role);
    let build = |(info, baseline): (&'static PolicyInfo, tuning::Baseline)| {
        let settings = (baseline.values)(mean);
        (label(info, baseline.variant), Candidate { info, settings })
    };
    all.into_iter().map(build).collect()
}

/// What results call the policy that all others are compared with.
pub(crate) fn optimum() -> String {
    let is_optimum = |baseline: &tuning::Baseline| baseline.role == Role::Optimum;
    let found = |info: &PolicyInfo| Some(label(info, info.baseline.filter(is_optimum)?.variant));
    POLICIES.iter().find_map(found).unwrap_or_default()
}

/// What results call the tuned policy that others without knowledge have to beat.
pub(crate) fn rival() -> String {
    let rival = spaces().into_iter().find(|space| space.search.is_rival);
    rival.as_ref().map(Space::label).unwrap_or_default()
}

fn label(info: &PolicyInfo, variant: &str) -> String {
    format!("{} {variant}", info.name).trim_end().to_string()
}

/// The most runs that the search in a space can make with so many seeds: all rounds of halving,
/// and all neighbours in all moves.
pub fn budget(space: &Space, seeds: usize) -> usize {
    let mut candidates = space.search.axes.iter().map(|axis| axis.coarse.len()).product::<usize>();
    let mut with = first_round(seeds);
    let mut runs = candidates * with;
    while with < seeds {
        candidates = survivors(candidates);
        let more = (with * 2).min(seeds);
        runs += candidates * (more - with);
        with = more;
    }
    runs + 2 * MOVES * 2 * space.search.axes.len() * seeds
}

/// Seeds of the first round of halving.
pub(super) fn first_round(seeds: usize) -> usize {
    (seeds / 4).max(2).min(seeds)
}

/// How many of `candidates` are left after a round.
pub(super) fn survivors(candidates: usize) -> usize {
    candidates.div_ceil(4)
}

impl Space {
    /// What it is called in results.
    pub fn label(&self) -> String {
        label(self.policy, self.search.variant)
    }

    /// The grid in the order of [`coarse`](tuning::Axis::coarse), the first axis slowest.
    pub(super) fn grid(&self) -> Vec<Vec<i32>> {
        let mut grid = vec![Vec::new()];
        for axis in self.search.axes {
            let longer = |start: &Vec<i32>| {
                let start = start.clone();
                axis.coarse.iter().map(move |&position| [&start[..], &[position]].concat())
            };
            grid = grid.iter().flat_map(longer).collect();
        }
        grid
    }

    /// The positions beside one, `step` is which of the [`steps`](tuning::Axis::steps).
    pub(super) fn neighbours(&self, position: &[i32], step: usize) -> Vec<Vec<i32>> {
        let mut all = Vec::new();
        for (number, axis) in self.search.axes.iter().enumerate() {
            for way in [axis.steps[step], -axis.steps[step]] {
                let moved = position[number] + way;
                if way != 0 && (axis.low..=axis.high).contains(&moved) {
                    let mut neighbour = position.to_vec();
                    neighbour[number] = moved;
                    all.push(neighbour);
                }
            }
        }
        all
    }

    /// The parameter set at a position, for tasks of this mean CPU time.
    pub(super) fn candidate(&self, position: &[i32], mean: Span) -> Candidate {
        Candidate { info: self.policy, settings: (self.search.values)(position, mean) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(label: &str, position: &[i32]) -> String {
        let space = spaces().into_iter().find(|space| space.label() == label).unwrap();
        space.candidate(position, Span::from_ms(10)).shown()
    }

    #[test]
    fn positions_are_multiples_of_the_mean() {
        assert_eq!(settings("m-rsf", &[0, -4]), "q1 = 10ms, q2 = 5ms");
        assert_eq!(settings("m-rsf ewma", &[20, 3]), "q1 = none, estimate = ewma");
        assert_eq!(settings("mlfq", &[3, 1, -8, 4]), "boost = 0, slices = 2.5ms,10ms,40ms");
        assert_eq!(settings("mlfq", &[1, 0, -8, 4]), "boost = 0, slices = none");
    }

    #[test]
    fn grids_and_neighbours_lie_within_the_bounds() {
        for space in spaces() {
            let inside = |position: &Vec<i32>| {
                let mut pairs = position.iter().zip(space.search.axes);
                pairs.all(|(place, axis)| (axis.low..=axis.high).contains(place))
            };
            let grid = space.grid();
            let sizes = space.search.axes.iter().map(|axis| axis.coarse.len());
            assert_eq!(grid.len(), sizes.product::<usize>(), "{}", space.label());
            for position in &grid {
                assert!(inside(position), "{}: {position:?}", space.label());
                for step in 0..2 {
                    assert!(space.neighbours(position, step).iter().all(inside));
                }
            }
        }
        assert_eq!(spaces()[0].neighbours(&[20, 0], 1), [[19, 0], [20, 1], [20, -1]]);
    }

    /// 64 with 5 seeds, 16 with 5 more, 4 with 10 more; 2 · 8 moves with 4 neighbours of 20 each.
    #[test]
    fn the_budget_by_hand() {
        assert_eq!(budget(&spaces()[0], 20), 64 * 5 + 16 * 5 + 4 * 10 + 64 * 20);
    }
}
