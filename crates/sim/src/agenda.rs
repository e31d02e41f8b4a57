//! The agenda: what happens next.

use anysched_core::{TaskId, Time};

/// What happens first at one instant. Completion wins over everything, so that a task which ends
/// with its slice has ended; arrivals come before the end of a slice, so that they are queued
/// ahead of the expired task (the textbook convention); picks come last, when all is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    Hotplug,
    BurstEnd,
    Ready,
    PolicyTimer,
    Tick,
    SliceEnd,
}

/// A time and a class in one number that orders by both. Times stay below 2^61 ns (73 years).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const NEVER: Moment = Moment(u64::MAX);
    /// Later than any time of a run.
    pub(crate) const HORIZON: Time = Time(1 << 60);

    #[inline]
    pub(crate) fn new(time: Time, class: Class) -> Moment {
        if time >= Moment::HORIZON { Moment::NEVER } else { Moment(time.0 << 3 | class as u64) }
    }

    #[inline]
    pub(crate) fn time(self) -> Time {
        if self == Moment::NEVER { Time::NEVER } else { Time(self.0 >> 3) }
    }

    #[inline]
    pub(crate) fn class(self) -> Class {
        match self.0 & 7 {
            0 => Class::Hotplug,
            1 => Class::BurstEnd,
            2 => Class::Ready,
            3 => Class::PolicyTimer,
            4 => Class::Tick,
            _ => Class::SliceEnd,
        }
    }
}

/// One pending moment per CPU and the earliest of them. Nothing ever goes stale.
///
/// Up to [`FEW`] CPUs are searched; more are the leaves of a tournament tree, where changing one
/// costs log2(CPUs) comparisons.
#[derive(Debug)]
pub(crate) struct CpuAgenda {
    moments: Vec<Moment>,
    /// `winners[1]` is the root; node n has the children 2n and 2n+1; the leaves are the upper
    /// half. Empty for few CPUs.
    winners: Vec<u16>,
}

/// So many moments fill one cache line.
const FEW: usize = 8;

impl CpuAgenda {
    pub(crate) fn new(cpus: usize) -> CpuAgenda {
        let width = if cpus <= FEW { cpus } else { cpus.next_power_of_two() };
        let moments = vec![Moment::NEVER; width];
        let mut winners = Vec::new();
        if cpus > FEW {
            winners = (0..2 * width).map(|node| node.wrapping_sub(width) as u16).collect();
            for node in (1..width).rev() {
                winners[node] = winners[2 * node];
            }
        }
        CpuAgenda { moments, winners }
    }

    #[inline]
    pub(crate) fn set(&mut self, cpu: usize, moment: Moment) {
        self.moments[cpu] = moment;
        if !self.winners.is_empty() {
            self.replay(cpu);
        }
    }

    fn replay(&mut self, cpu: usize) {
        let mut node = (self.moments.len() + cpu) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let right_wins = self.moments[usize::from(right)] < self.moments[usize::from(left)];
            self.winners[node] = if right_wins { right } else { left };
            node /= 2;
        }
    }

    /// The earliest moment and its CPU, the lowest among equals.
    #[inline]
    pub(crate) fn first(&self) -> (Moment, usize) {
        if let Some(&root) = self.winners.get(1) {
            return (self.moments[usize::from(root)], usize::from(root));
        }
        let mut first = (Moment::NEVER, 0);
        for (cpu, &moment) in self.moments.iter().enumerate() {
            let earlier = moment < first.0;
            first = if earlier { (moment, cpu) } else { first };
        }
        first
    }
}

/// Sleeping tasks by wake-up time; first come, first served among equals.
///
/// A heap with four children a node: half as deep as a binary one, and the least of four
/// neighbours is found without a branch that could be mispredicted.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    /// Time, sequence and task in one number that orders by all three.
    heap: Vec<u128>,
    /// Wraps after 2^32 sleeps: then two sleepers with the same wake-up time may change places,
    /// in every run alike.
    sequence: u32,
}

impl Sleepers {
    #[inline]
    pub(crate) fn push(&mut self, wake: Time, task: TaskId) {
        self.sequence = self.sequence.wrapping_add(1);
        let entry =
            u128::from(wake.0) << 64 | u128::from(self.sequence) << 32 | u128::from(task.0);
        let mut at = self.heap.len();
        self.heap.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.heap.first().map_or(Time::NEVER, |entry| Time((entry >> 64) as u64))
    }

    pub(crate) fn pop(&mut self) -> Option<TaskId> {
        let first = *self.heap.first()?;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
        Some(TaskId(first as u32))
    }

    /// Puts `entry` in the place of the first.
    #[inline]
    fn sift_down(&mut self, entry: u128) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        loop {
            let child = 4 * at + 1;
            let least = if let Some(four) = heap.get(child..child + 4) {
                let left = usize::from(four[1] < four[0]);
                let right = 2 + usize::from(four[3] < four[2]);
                child + if four[right] < four[left] { right } else { left }
            } else {
                match (child..heap.len()).min_by_key(|&child| heap[child]) {
                    Some(least) => least,
                    None => break,
                }
            };
            if heap[least] >= entry {
                break;
            }
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = entry;
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
    fn sleepers_wake_by_time_and_then_in_turn() {
        let mut sleepers = Sleepers::default();
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
        assert_eq!((sleepers.pop(), sleepers.next()), (None, Time::NEVER));
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
