//! The agenda: the next events.

use anysched_core::{TaskId, Time};
use std::hint::select_unpredictable;

/// The order of events within an instant. Completion comes first, so that a task that ends with its
/// slice has ended; arrivals precede the end of a slice, so that they are queued ahead of the
/// expired task (the textbook convention); picks come last, when all else is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    Hotplug,
    BurstEnd,
    Ready,
    PolicyTimer,
    Tick,
    /// Anything in a virtual machine up to its picks: its demand for CPUs is known before the
    /// slices of those CPUs end.
    Guest,
    SliceEnd,
}

/// A time and a class in one number, ordered by both. Times stay below 2^57 ns (4.5 years).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const NEVER: Moment = Moment(NOTHING);
    /// Later than any time of a run.
    pub(crate) const HORIZON: Time = Time(1 << 57);

    #[inline]
    pub(crate) fn new(time: Time, class: Class) -> Moment {
        if time >= Moment::HORIZON { Moment::NEVER } else { Moment(time.0 << 3 | class as u64) }
    }

    /// The time; for [`Moment::NEVER`], a time beyond [`Moment::HORIZON`].
    #[inline]
    pub(crate) fn time(self) -> Time {
        Time(self.0 >> 3)
    }

    #[inline]
    pub(crate) fn class(self) -> Class {
        match self.0 & 7 {
            0 => Class::Hotplug,
            1 => Class::BurstEnd,
            2 => Class::Ready,
            3 => Class::PolicyTimer,
            4 => Class::Tick,
            5 => Class::Guest,
            _ => Class::SliceEnd,
        }
    }
}

/// Greater than every value, yet one below the maximum, so that 1 can be added.
const NOTHING: u64 = u64::MAX - 1;

/// A value and its leaf.
#[derive(Clone, Copy, Debug)]
struct Contender {
    value: u64,
    leaf: u32,
}

impl Contender {
    /// `other` if it `wins`, else this one. The outcome is unpredictable, so a branch would be
    /// mispredicted half of the time.
    #[inline]
    fn or(self, other: Contender, wins: bool) -> Contender {
        Contender {
            value: select_unpredictable(wins, other.value, self.value),
            leaf: select_unpredictable(wins, other.leaf, self.leaf),
        }
    }
}

/// The least of many numbers that change one at a time: a tournament tree. A change costs log2 of
/// their number, without branches that could be mispredicted, and no entry ever goes stale.
#[derive(Debug)]
struct Tournament {
    /// Node 1 is the overall least; node n has the children 2n and 2n + 1; the upper half of the
    /// nodes are the leaves.
    nodes: Vec<Contender>,
    least: Contender,
}

impl Tournament {
    fn new(leaves: usize) -> Tournament {
        let width = leaves.next_power_of_two();
        let leaf =
            |node: usize| Contender { value: NOTHING, leaf: node.wrapping_sub(width) as u32 };
        let nodes: Vec<Contender> = (0..2 * width).map(leaf).collect();
        Tournament { nodes, least: leaf(width) }
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Sets a number that was [`NOTHING`]. The least is updated at once, so the next step need not
    /// wait for the whole way up.
    #[inline]
    fn add(&mut self, leaf: usize, value: u64) {
        let new = Contender { value, leaf: leaf as u32 };
        let order = |it: Contender| u128::from(it.value) << 64 | u128::from(it.leaf);
        self.least = self.least.or(new, order(new) < order(self.least));
        self.climb(new);
    }

    /// Changes a number.
    #[inline]
    fn set(&mut self, leaf: usize, value: u64) {
        self.least = self.climb(Contender { value, leaf: leaf as u32 });
    }

    #[inline]
    fn climb(&mut self, changed: Contender) -> Contender {
        let nodes = self.nodes.as_mut_slice();
        let mut node = nodes.len() / 2 + changed.leaf as usize;
        let mut least = changed;
        nodes[node] = least;
        while node > 1 {
            let other = nodes[node ^ 1];
            // The left one wins ties, so that the lowest leaf does.
            least = least.or(other, other.value < least.value + (node & 1) as u64);
            node /= 2;
            nodes[node] = least;
        }
        least
    }

    /// The least value and its leaf, the lowest among equals.
    #[inline]
    fn least(&self) -> (u64, usize) {
        (self.least.value, self.least.leaf as usize)
    }

    #[cold]
    fn grow_to(&mut self, leaves: usize) {
        let mut grown = Tournament::new(leaves.max(2 * self.leaves()));
        for (leaf, contender) in self.nodes[self.leaves()..].iter().enumerate() {
            grown.add(leaf, contender.value);
        }
        *self = grown;
    }
}

/// One pending moment per CPU and the earliest of them.
#[derive(Debug)]
pub(crate) struct CpuAgenda {
    moments: Tournament,
}

impl CpuAgenda {
    pub(crate) fn new(cpus: usize) -> CpuAgenda {
        CpuAgenda { moments: Tournament::new(cpus) }
    }

    /// Plans a moment for a CPU that had none.
    #[inline]
    pub(crate) fn add(&mut self, cpu: usize, moment: Moment) {
        self.moments.add(cpu, moment.0);
    }

    #[inline]
    pub(crate) fn set(&mut self, cpu: usize, moment: Moment) {
        self.moments.set(cpu, moment.0);
    }

    /// The earliest moment and its CPU, the lowest among equals.
    #[inline]
    pub(crate) fn first(&self) -> (Moment, usize) {
        let (moment, cpu) = self.moments.least();
        (Moment(moment), cpu)
    }
}

/// Sleeping tasks by wake-up time, the lowest number first among equals.
#[derive(Debug)]
pub(crate) struct Sleepers {
    /// Leaves are task numbers.
    times: Tournament,
}

impl Sleepers {
    pub(crate) fn new() -> Sleepers {
        Sleepers { times: Tournament::new(1) }
    }

    #[inline]
    pub(crate) fn push(&mut self, wake: Time, task: TaskId) {
        if task.index() >= self.times.leaves() {
            self.times.grow_to(task.index() + 1);
        }
        self.times.add(task.index(), wake.0.min(NOTHING));
    }

    #[inline]
    pub(crate) fn next(&self) -> Time {
        Time(self.times.least().0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times.least().0 >= NOTHING
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<TaskId> {
        let (time, task) = self.times.least();
        if time == NOTHING {
            return None;
        }
        self.times.set(task, NOTHING);
        Some(TaskId(task as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_order_by_time_then_class() {
        let at = |ns, class| Moment::new(Time(ns), class);
        assert!(at(5, Class::SliceEnd) < at(6, Class::BurstEnd));
        assert!(at(5, Class::BurstEnd) < at(5, Class::Ready));
        assert!(at(5, Class::Ready) < at(5, Class::SliceEnd));
        assert_eq!(at(5, Class::Tick).time(), Time(5));
        assert_eq!(at(5, Class::Tick).class(), Class::Tick);
        assert_eq!(at(u64::MAX, Class::Tick), Moment::NEVER);
    }

    #[test]
    fn sleepers_wake_by_time_and_then_by_number() {
        let mut sleepers = Sleepers::new();
        let mut model: Vec<(u64, u32)> = Vec::new();
        let mut state = 1u64;
        for task in 0..3000u32 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if state >> 62 == 0 && !model.is_empty() {
                model.sort();
                assert_eq!(sleepers.next(), Time(model[0].0));
                assert_eq!(sleepers.pop(), Some(TaskId(model.remove(0).1)));
            }
            let wake = state >> 54;
            model.push((wake, task));
            sleepers.push(Time(wake), TaskId(task));
        }
        model.sort();
        for (_, task) in model {
            assert_eq!(sleepers.pop(), Some(TaskId(task)));
        }
        assert_eq!(sleepers.pop(), None);
        assert!(sleepers.next() > Moment::HORIZON);
    }

    #[test]
    fn the_agenda_always_knows_the_earliest() {
        for cpus in [1, 2, 3, 4, 7, 64, 1000] {
            let mut agenda = CpuAgenda::new(cpus);
            let mut model = vec![Moment::NEVER; cpus];
            let mut state = 1u64;
            for _ in 0..2000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let cpu = (state >> 33) as usize % cpus;
                let moment = match state >> 60 {
                    0..3 => Moment::NEVER,
                    _ => Moment::new(Time(state >> 40 & 63), Class::BurstEnd),
                };
                agenda.set(cpu, moment);
                model[cpu] = moment;
                let first = *model.iter().min().unwrap();
                let expected = model.iter().position(|&moment| moment == first).unwrap();
                assert_eq!(agenda.first().0, first);
                if first != Moment::NEVER {
                    assert_eq!(agenda.first().1, expected);
                }
            }
        }
    }
}
