//! One runqueue of EEVDF: the weighted mean of virtual runtimes and the tree of waiting tasks.

use core::cmp::Ordering;

use anysched_core::ids::TaskId;
use anysched_core::params::NICE_0_WEIGHT;
use anysched_core::queue::{Forest, Summary, Tree};
use anysched_core::time::{Span, VTime};

/// Virtual nanoseconds times weight that a nanosecond of CPU time is worth, whatever the weight.
const SCALE: u64 = NICE_0_WEIGHT as u64;

/// How far, as a power of two of virtual ns, the mean may leave its zero point before that point
/// follows: 2^40 ns are 18 minutes of a lone task of nice 0.
const DRIFT: u32 = 40;

/// `real` ns of CPU time in virtual ns of a task of this weight, rounded down.
#[inline]
pub(super) fn to_virtual(real: Span, weight: u32) -> i64 {
    real.scaled(SCALE, u64::from(weight)).0 as i64
}

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
/// A term of the sum is w·(v − z) + rest. With |v − z| < 2^63, w < 2^32 and 2^20 tasks (88761,
/// the weight of nice −20, is below 2^17) the sum is below 2^115; so are its product with the sum
/// of weights, at most 2^52, and a distance: |v − z|·Σw < 2^115. An `i128` holds 2^127.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    /// The zero point z.
    zero: VTime,
    /// Σ w·(v − z) + rest, see [`Service`].
    moment: i128,
    /// Σ w.
    weight: u64,
}

/// How much CPU time a task has had, in virtual time, without loss by rounding: however often
/// the host charges, the sum is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Service {
    /// The virtual runtime v.
    pub vruntime: VTime,
    /// What is left of 1024·(CPU time) once whole virtual ns have been taken out, `0 .. weight`.
    pub rest: u32,
}

impl Service {
    /// A task placed at `vruntime`.
    #[inline]
    pub fn at(vruntime: VTime) -> Service {
        Service { vruntime, rest: 0 }
    }

    /// After another `ran` of CPU time at this weight.
    #[inline]
    pub fn after(self, ran: Span, weight: u32) -> Service {
        let fine = ran.0.checked_mul(SCALE).and_then(|fine| fine.checked_add(self.rest.into()));
        let (whole, rest) = match fine {
            Some(fine) => (fine / u64::from(weight), fine % u64::from(weight)),
            None => {
                let fine = u128::from(ran.0) * u128::from(SCALE) + u128::from(self.rest);
                ((fine / u128::from(weight)) as u64, (fine % u128::from(weight)) as u64)
            }
        };
        Service { vruntime: self.vruntime.plus(whole as i64), rest: rest as u32 }
    }

    /// The least CPU time at this weight after which `vruntime` is at `goal` or past it.
    #[inline]
    pub fn until(self, goal: VTime, weight: u32) -> Span {
        let whole = u128::from(goal.minus(self.vruntime).max(0).unsigned_abs());
        let fine = (whole * u128::from(weight)).saturating_sub(u128::from(self.rest));
        Span(u64::try_from(fine.div_ceil(u128::from(SCALE))).unwrap_or(u64::MAX))
    }
}

impl Mean {
    /// Σ w.
    #[inline]
    pub fn weight(&self) -> u64 {
        self.weight
    }

    fn term(&self, service: Service, weight: u32) -> i128 {
        let distance = i128::from(service.vruntime.minus(self.zero));
        distance * i128::from(weight) + i128::from(service.rest)
    }

    /// A task of this weight is counted from now on.
    #[inline]
    pub fn add(&mut self, service: Service, weight: u32) {
        self.moment += self.term(service, weight);
        self.weight += u64::from(weight);
    }

    /// A task that is counted with this weight is not any more.
    #[inline]
    pub fn remove(&mut self, service: Service, weight: u32) {
        self.moment -= self.term(service, weight);
        self.weight -= u64::from(weight);
        if self.weight == 0 {
            // The next task continues where the last one left.
            *self = Mean { zero: service.vruntime, moment: 0, weight: 0 };
        }
    }

    /// Some counted task, whichever, used `span` of CPU time.
    #[inline]
    pub fn ran(&mut self, span: Span) {
        self.moment += i128::from(span.0) * i128::from(SCALE);
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

/// The least virtual runtime of a subtree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Least(pub VTime);

impl Summary for Least {
    const NEEDED: bool = true;
    #[inline]
    fn merge(self, other: Least) -> Least {
        Least(self.0.min(other.0))
    }
}

/// The nodes of all tasks.
pub(super) type Nodes = Forest<Deadline, Least>;

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
}

impl Queue {
    /// The first task in the order of the tree whose vruntime is `low` enough; `low` must hold
    /// below any vruntime for which it holds. O(log n).
    pub fn earliest(&self, nodes: &Nodes, low: impl Fn(VTime) -> bool) -> Option<TaskId> {
        let first = self.tree.first()?;
        if low(nodes.own(first).0) {
            return Some(first);
        }
        let mut at = self.tree.root()?;
        loop {
            if let Some(left) = nodes.left(at)
                && low(nodes.summary(left).0)
            {
                at = left;
            } else if low(nodes.own(at).0) {
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
        core::iter::successors(Some(first), |&task| nodes.next(task))
            .find(|&task| low(nodes.own(task).0) && fits(task))
    }

    /// The task that fits whose vruntime is the least, the earliest deadline first among equals.
    /// O(log n) if all fit, else O(n).
    pub fn least(&self, nodes: &Nodes, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let least = nodes.summary(self.tree.root()?).0;
        let first = self.earliest(nodes, |vruntime| vruntime.minus(least) <= 0)?;
        if fits(first) {
            return Some(first);
        }
        let vruntime = |task: &TaskId| nodes.own(*task).0;
        let fitting = nodes.iter(&self.tree).filter(|&task| fits(task));
        fitting.min_by(|a, b| vruntime(a).minus(vruntime(b)).cmp(&0))
    }
}
