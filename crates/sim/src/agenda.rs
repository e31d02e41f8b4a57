//! The agenda: what happens next.

use anysched_core::{TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// One pending moment per CPU and the earliest of them: a tournament tree, so that changing one
/// costs log2(CPUs) comparisons and nothing ever goes stale.
#[derive(Debug)]
pub(crate) struct CpuAgenda {
    moments: Vec<Moment>,
    /// `winners[1]` is the root; node n has the children 2n and 2n+1; leaves are not stored.
    winners: Vec<u16>,
    /// Leaves, a power of two.
    width: usize,
}

impl CpuAgenda {
    pub(crate) fn new(cpus: usize) -> CpuAgenda {
        let width = cpus.next_power_of_two().max(2);
        let mut agenda = CpuAgenda {
            moments: vec![Moment::NEVER; width],
            winners: vec![0; width],
            width,
        };
        for node in (1..width).rev() {
            agenda.winners[node] = agenda.contender(2 * node);
        }
        agenda
    }

    #[inline]
    fn contender(&self, node: usize) -> u16 {
        if node >= self.width { (node - self.width) as u16 } else { self.winners[node] }
    }

    #[inline]
    pub(crate) fn set(&mut self, cpu: usize, moment: Moment) {
        if self.moments[cpu] == moment {
            return;
        }
        self.moments[cpu] = moment;
        let mut node = (self.width + cpu) / 2;
        while node > 0 {
            let (left, right) = (self.contender(2 * node), self.contender(2 * node + 1));
            let right_wins = self.moments[usize::from(right)] < self.moments[usize::from(left)];
            self.winners[node] = if right_wins { right } else { left };
            node /= 2;
        }
    }

    /// The earliest moment and its CPU, the lowest among equals.
    #[inline]
    pub(crate) fn first(&self) -> (Moment, usize) {
        let cpu = usize::from(self.winners[1]);
        (self.moments[cpu], cpu)
    }
}

/// Sleeping tasks by wake-up time; first come, first served among equals.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    heap: BinaryHeap<Reverse<(Time, u64, TaskId)>>,
    sequence: u64,
}

impl Sleepers {
    #[inline]
    pub(crate) fn push(&mut self, wake: Time, task: TaskId) {
        self.sequence += 1;
        self.heap.push(Reverse((wake, self.sequence, task)));
    }

    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((wake, ..))| *wake)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<TaskId> {
        self.heap.pop().map(|Reverse((_, _, task))| task)
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
