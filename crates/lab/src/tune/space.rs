//! What can be tuned, between which bounds, and what a search may cost.

use anysched_core::Span;
use anysched_core::registry::PolicyInfo;
use anysched_policies::POLICIES;

/// A policy and the parameters of it that are searched.
#[derive(Debug)]
pub struct Space {
    /// The policy's name in the registry.
    pub policy: &'static str,
    /// What it is called in results.
    pub label: &'static str,
    /// A parameter set is a position on each of them.
    pub axes: &'static [Axis],
    /// The parameter set at a position, for tasks of a mean CPU time in ns.
    settings: fn(&[i32], f64) -> Settings,
}

/// Whole numbers that stand for the values of a parameter.
#[derive(Debug)]
pub struct Axis {
    /// The least position.
    pub low: i32,
    /// The largest one.
    pub high: i32,
    /// The positions of the grid, the simplest first: fewer levels, longer slices.
    pub coarse: &'static [i32],
    /// How far a move goes when the best of the grid is refined, at first and then; 0: not at all.
    pub steps: [i32; 2],
}

/// Moves at most of a refinement with one step.
pub const MOVES: usize = 8;

type Settings = Vec<(&'static str, String)>;

/// A policy with a parameter set.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) info: &'static PolicyInfo,
    pub(super) settings: Settings,
}

impl Candidate {
    fn new(policy: &str, settings: Settings) -> Option<Candidate> {
        let info = POLICIES.iter().find(|info| info.name == policy)?;
        Some(Candidate { info, settings })
    }

    /// `name = value, …`, or nothing.
    pub(super) fn shown(&self) -> String {
        let pair = |(name, text): &(&str, String)| format!("{name} = {text}");
        self.settings.iter().map(pair).collect::<Vec<_>>().join(", ")
    }
}

/// The slices of `m-rsf`: quarters of octaves of the mean CPU time, from 1/256 to 27; the largest
/// position is none.
const SLICE: Axis =
    Axis { low: -32, high: NO_SLICE, coarse: &[20, 12, 8, 4, 0, -4, -8, -16], steps: [2, 1] };
const NO_SLICE: i32 = 20;

/// Levels; whether tasks of the last take turns (1); the first slice in quarters of octaves of the
/// mean CPU time, from 1/64 to 64; the ratio of the slices in halves of octaves, from 1 to 8.
const FEEDBACK: [Axis; 4] = [
    Axis { low: 1, high: 8, coarse: &[1, 2, 3, 5, 8], steps: [1, 1] },
    Axis { low: 0, high: 1, coarse: &[0, 1], steps: [1, 0] },
    Axis { low: -24, high: 24, coarse: &[16, 8, 4, 0, -4, -8, -16], steps: [2, 1] },
    Axis { low: 0, high: 6, coarse: &[0, 2, 4], steps: [1, 1] },
];

/// All that can be tuned.
pub static SPACES: &[Space] = &[
    Space {
        policy: "m-rsf",
        label: "m-rsf",
        axes: &[SLICE, SLICE],
        settings: |position, mean| m_rsf(position, mean, None),
    },
    Space {
        policy: "m-rsf",
        label: "m-rsf profile",
        axes: &[SLICE, SLICE],
        settings: |position, mean| m_rsf(position, mean, Some("profile")),
    },
    Space {
        policy: "m-rsf",
        label: "m-rsf ewma",
        axes: &[SLICE, SLICE],
        settings: |position, mean| m_rsf(position, mean, Some("ewma")),
    },
    Space { policy: "mlfq", label: "mlfq", axes: &FEEDBACK, settings: mlfq },
];

/// The names of the policies that can be tuned.
pub fn policies() -> Vec<&'static str> {
    let mut names: Vec<&str> = SPACES.iter().map(|space| space.policy).collect();
    names.dedup();
    names
}

/// What stands beside the tuned policies, with labels: the best that can be with full knowledge,
/// the best without preemption, one that knows nothing, processor sharing nearly, and M-RSF with
/// the slices of its source.
pub(super) fn baselines(mean: f64) -> Vec<(&'static str, Candidate)> {
    let whole = slice(mean, 1.0).to_string();
    let tenth = slice(mean, 0.1).to_string();
    let list = [
        ("srpt", "srpt", vec![]),
        ("sjf", "sjf", vec![]),
        ("fcfs", "fcfs", vec![]),
        ("rr", "rr", vec![("quantum", tenth)]),
        ("m-rsf untuned", "m-rsf", vec![("q1", whole.clone()), ("q2", whole)]),
    ];
    let build = |(label, policy, settings)| Some((label, Candidate::new(policy, settings)?));
    list.into_iter().filter_map(build).collect()
}

/// The most runs that the search in a space can make with so many seeds: all rounds of halving,
/// and all neighbours in all moves.
pub fn budget(space: &Space, seeds: usize) -> usize {
    let mut candidates = space.axes.iter().map(|axis| axis.coarse.len()).product::<usize>();
    let mut with = first_round(seeds);
    let mut runs = candidates * with;
    while with < seeds {
        candidates = survivors(candidates);
        let more = (with * 2).min(seeds);
        runs += candidates * (more - with);
        with = more;
    }
    runs + 2 * MOVES * 2 * space.axes.len() * seeds
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
    /// The grid in the order of [`Axis::coarse`], the first axis slowest.
    pub(super) fn grid(&self) -> Vec<Vec<i32>> {
        let mut grid = vec![Vec::new()];
        for axis in self.axes {
            let longer = |start: &Vec<i32>| {
                let start = start.clone();
                axis.coarse.iter().map(move |&position| [&start[..], &[position]].concat())
            };
            grid = grid.iter().flat_map(longer).collect();
        }
        grid
    }

    /// The positions beside one, `step` is which of the [`Axis::steps`].
    pub(super) fn neighbours(&self, position: &[i32], step: usize) -> Vec<Vec<i32>> {
        let mut all = Vec::new();
        for (number, axis) in self.axes.iter().enumerate() {
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

    pub(super) fn candidate(&self, position: &[i32], mean: f64) -> Option<Candidate> {
        Candidate::new(self.policy, (self.settings)(position, mean))
    }
}

fn m_rsf(position: &[i32], mean: f64, estimate: Option<&str>) -> Settings {
    let slice = |position: i32| match position {
        NO_SLICE.. => Span::MAX,
        _ => slice(mean, libm::exp2(f64::from(position) / 4.0)),
    };
    let mut settings = vec![("q1", slice(position[0]).to_string())];
    // Nothing gets to Q2 when Q1 has no slice.
    if position[0] < NO_SLICE {
        settings.push(("q2", slice(position[1]).to_string()));
    }
    settings.extend(estimate.map(|estimate| ("estimate", estimate.to_string())));
    settings
}

fn mlfq(position: &[i32], mean: f64) -> Settings {
    let [levels, turns, first, ratio] = *position else { return Vec::new() };
    let slice_of = |level: i32| {
        if level + 1 == levels && turns == 0 {
            return Span::MAX;
        }
        let octaves = f64::from(first) / 4.0 + f64::from(level * ratio) / 2.0;
        slice(mean, libm::exp2(octaves))
    };
    let slices: Vec<String> = (0..levels).map(|level| slice_of(level).to_string()).collect();
    vec![("boost", "0".to_string()), ("slices", slices.join(","))]
}

/// `mean` ns times `factor`, to three digits, so that it can be written down.
fn slice(mean: f64, factor: f64) -> Span {
    let ns = (mean * factor).max(1.0) as u64;
    let mut unit = 1;
    while ns / unit >= 1000 {
        unit *= 10;
    }
    Span((ns + unit / 2) / unit * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(label: &str, position: &[i32]) -> String {
        let space = SPACES.iter().find(|space| space.label == label).unwrap();
        space.candidate(position, 10e6).unwrap().shown()
    }

    #[test]
    fn positions_are_multiples_of_the_mean() {
        assert_eq!(settings("m-rsf", &[0, -4]), "q1 = 10ms, q2 = 5ms");
        assert_eq!(settings("m-rsf ewma", &[20, 3]), "q1 = none, estimate = ewma");
        assert_eq!(settings("mlfq", &[3, 1, -8, 4]), "boost = 0, slices = 2.5ms,10ms,40ms");
        assert_eq!(settings("mlfq", &[1, 0, -8, 4]), "boost = 0, slices = none");
        assert_eq!(slice(1_234_567.0, 1.0), Span(1_230_000));
        assert_eq!(slice(0.1, 0.1), Span(1));
    }

    #[test]
    fn grids_and_neighbours_lie_within_the_bounds() {
        for space in SPACES {
            let inside = |position: &Vec<i32>| {
                let mut pairs = position.iter().zip(space.axes);
                pairs.all(|(place, axis)| (axis.low..=axis.high).contains(place))
            };
            let grid = space.grid();
            let sizes = space.axes.iter().map(|axis| axis.coarse.len());
            assert_eq!(grid.len(), sizes.product::<usize>(), "{}", space.label);
            for position in &grid {
                assert!(inside(position), "{}: {position:?}", space.label);
                for step in 0..2 {
                    assert!(space.neighbours(position, step).iter().all(inside));
                }
            }
        }
        assert_eq!(SPACES[0].neighbours(&[20, 0], 1), [[19, 0], [20, 1], [20, -1]]);
    }

    /// 64 with 5 seeds, 16 with 5 more, 4 with 10 more; 2 · 8 moves with 4 neighbours of 20 each.
    #[test]
    fn the_budget_by_hand() {
        assert_eq!(budget(&SPACES[0], 20), 64 * 5 + 16 * 5 + 4 * 10 + 64 * 20);
    }
}
