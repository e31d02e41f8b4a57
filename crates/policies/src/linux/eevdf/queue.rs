//! One runqueue of EEVDF: the weighted mean of virtual runtimes and the tree of waiting tasks.

use anysched_core::{Canon, canonical};
use core::cmp::Ordering;

use anysched_core::canon::Canonical;
use anysched_core::ids::TaskId;
use anysched_core::queue::{Forest, Summary, Tree};
use anysched_core::time::{Span, VTime};

/// How far, as a power of two of virtual ns, the mean may leave its zero point before that point
/// follows: 2^40 ns are 18 minutes of a lone task of nice 0.
const DRIFT: u32 = 40;

/// The weighted mean V = Σ w·v / Σ w over the tasks of a runqueue, kept as a sum around a zero
/// point that follows it, so that neither a division nor a growing number is needed to compare
/// with it.
///
/// # Nothing overflows
///
/// Every request is at most 8 s (base slice ≤ 1 s, scaled by ≤ 8; own slices ≤ 100 ms), so limits
/// of lag are at most 16 s < 2^34 ns of CPU time, 2^44 weighted virtual ns. A task of weight w is
/// thus placed within 2^44 · (1/w + 1/W) ≤ 2^45 virtual ns of the mean (the inflation of lag
/// included), and its deadline another 2^43 / w behind that: far inside the 2^63 of an `i64`
/// distance, even for w = 1. On a runqueue of one CPU the theory bounds lag from then on by the
/// longest request and the time between two ticks.
/// A term of the sum is w·(v − z). With |v − z| < 2^63, w < 2^32 and 2^20 tasks (88761,
/// the weight of nice −20, is below 2^17) the sum is below 2^115; so are its product with the sum
/// of weights, at most 2^52, and a distance: |v − z|·Σw < 2^115. An `i128` holds 2^127.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    /// The zero point z.
    zero: VTime,
    /// Σ w·(v − z).
    moment: i128,
    /// Σ w.
    weight: u64,
}

impl Mean {
    /// Σ w.
    #[inline]
    pub fn weight(&self) -> u64 {
        self.weight
    }

    fn term(&self, vruntime: VTime, weight: u32) -> i128 {
        i128::from(vruntime.minus(self.zero)) * i128::from(weight)
    }

    /// A task of this weight is counted from now on.
    #[inline]
    pub fn add(&mut self, vruntime: VTime, weight: u32) {
        self.moment += self.term(vruntime, weight);
        self.weight += u64::from(weight);
    }

    /// A task that is counted with this weight is not any more.
    #[inline]
    pub fn remove(&mut self, vruntime: VTime, weight: u32) {
        self.moment -= self.term(vruntime, weight);
        self.weight -= u64::from(weight);
        if self.weight == 0 {
            // The next task continues where the last one left.
            *self = Mean { zero: vruntime, moment: 0, weight: 0 };
        }
    }

    /// A counted task of this weight went on by `distance`.
    #[inline]
    pub fn ran(&mut self, distance: i64, weight: u32) {
        self.moment += i128::from(distance) * i128::from(weight);
        if self.moment >> DRIFT > i128::from(self.weight) {
            let value = self.value();
            self.moment -= i128::from(value.minus(self.zero)) * i128::from(self.weight);
            self.zero = value;
        }
    }

    /// V, rounded down. Without tasks, where the last one left.
    #[inline]
    pub fn value(&self) -> VTime {
        if self.weight == 0 {
            return self.zero;
        }
        // A 128-bit division costs several times a 64-bit one and is hardly ever needed.
        let distance = match i64::try_from(self.moment) {
            Ok(moment) => moment.div_euclid(self.weight as i64),
            Err(_) => self.moment.div_euclid(i128::from(self.weight)) as i64,
        };
        self.zero.plus(distance)
    }

    /// Whether V has come to `vruntime`: a task there is owed service, it is *eligible*. Exact,
    /// without division.
    #[inline]
    pub fn reached(&self, vruntime: VTime) -> bool {
        self.moment >= i128::from(vruntime.minus(self.zero)) * i128::from(self.weight)
    }
}

/// Order of the tree: virtual deadlines, of which equal ones stay in the order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deadline(pub VTime);

impl Ord for Deadline {
    /// Total among the tasks of one runqueue, whose deadlines lie within 2^63 of each other.
    #[inline]
    fn cmp(&self, other: &Deadline) -> Ordering {
        self.0.minus(other.0).cmp(&0)
    }
}

impl PartialOrd for Deadline {
    #[inline]
    fn partial_cmp(&self, other: &Deadline) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is known of a subtree: its least virtual runtime, its shortest and its longest slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extremes {
    /// The least virtual runtime.
    pub vruntime: VTime,
    /// The shortest slice.
    pub shortest: Span,
    /// The longest slice.
    pub longest: Span,
}

impl Extremes {
    /// Those of one task.
    #[inline]
    pub fn of(vruntime: VTime, slice: Span) -> Extremes {
        Extremes { vruntime, shortest: slice, longest: slice }
    }
}

impl Summary for Extremes {
    const NEEDED: bool = true;
    #[inline]
    fn merge(self, other: Extremes) -> Extremes {
        Extremes {
            vruntime: self.vruntime.min(other.vruntime),
            shortest: self.shortest.min(other.shortest),
            longest: self.longest.max(other.longest),
        }
    }
}

/// The nodes of all tasks.
pub(super) type Nodes = Forest<Deadline, Extremes>;

/// One runqueue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Over waiting, delayed and running tasks.
    pub mean: Mean,
    /// The waiting and the delayed tasks.
    pub tree: Tree,
    /// How many of them are delayed.
    pub delayed: u32,
    /// Weight of the waiting and the running tasks.
    pub load: u64,
    /// The waiting task that runs next if it is eligible (the kernel's *buddy*).
    pub next: Option<TaskId>,
}

impl Queue {
    /// What is known of all tasks in the tree, if there are any.
    #[inline]
    pub fn extremes(&self, nodes: &Nodes) -> Option<Extremes> {
        self.tree.root().map(|root| nodes.summary(root))
    }

    /// The first task in the order of the tree whose vruntime is `low` enough; `low` must hold
    /// below any vruntime for which it holds. O(log n).
    pub fn earliest(&self, nodes: &Nodes, low: impl Fn(VTime) -> bool) -> Option<TaskId> {
        let first = self.tree.first()?;
        if low(nodes.own(first).vruntime) {
            return Some(first);
        }
        let mut at = self.tree.root()?;
        loop {
            if let Some(left) = nodes.left(at)
                && low(nodes.summary(left).vruntime)
            {
                at = left;
            } else if low(nodes.own(at).vruntime) {
                return Some(at);
            } else {
                at = nodes.right(at)?;
            }
        }
    }

    /// As [`Queue::earliest`], among the tasks that fit. O(log n) if all do, else O(n).
    pub fn earliest_fit(
        &self,
        nodes: &Nodes,
        low: impl Fn(VTime) -> bool,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        let first = self.earliest(nodes, &low)?;
        if fits(first) {
            return Some(first);
        }
        core::iter::successors(Some(first), |&task| nodes.next(task))
            .find(|&task| low(nodes.own(task).vruntime) && fits(task))
    }

    /// The task that fits whose vruntime is the least, the earliest deadline first among equals.
    /// O(log n) if all fit, else O(n).
    pub fn least(&self, nodes: &Nodes, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let least = self.extremes(nodes)?.vruntime;
        let first = self.earliest(nodes, |vruntime| vruntime.minus(least) <= 0)?;
        if fits(first) {
            return Some(first);
        }
        let vruntime = |task: &TaskId| nodes.own(*task).vruntime;
        let fitting = nodes.iter(&self.tree).filter(|&task| fits(task));
        fitting.min_by(|a, b| vruntime(a).minus(vruntime(b)).cmp(&0))
    }
}

canonical!(Queue, nodes: Nodes { mean: of(nodes), tree: of(nodes), delayed, load, next });

impl Canonical<Nodes> for Mean {
    /// The zero point can be anywhere.
    fn canon(&self, _: &Nodes, to: &mut Canon) {
        let Mean { zero: _, moment, weight } = self;
        self.value().canon(&(), to);
        weight.canon(&(), to);
        moment.rem_euclid(i128::from((*weight).max(1))).canon(&(), to);
    }
}
