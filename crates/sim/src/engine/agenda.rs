//! The agenda: what happens next.

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
    pub(crate) const HORIZON: Time = anysched_host::LONGEST;

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

/// No value is greater.
const NOTHING: u64 = u64::MAX;

/// How many values a node knows the least of: as many as a cache line holds.
const FANOUT: usize = 8;

/// Values next to each other in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; FANOUT]);

const EMPTY: Line = Line([NOTHING; FANOUT]);

impl Line {
    #[inline]
    fn least(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }

    /// Where `value` is first, which must be somewhere.
    #[inline]
    fn position(&self, value: u64) -> usize {
        // Which one it is cannot be predicted, so that branches would be wrong every other time.
        let mut position = FANOUT - 1;
        for place in (0..FANOUT - 1).rev() {
            position = select_unpredictable(self.0[place] == value, place, position);
        }
        position
    }
}

/// The least of many numbers that change one at a time: a tournament tree of cache lines. A change
/// costs at most log8 of how many there are, and nothing ever goes stale.
#[derive(Debug)]
struct Tournament {
    /// From the leaves to the root: the values of a level are the least ones of the lines of the
    /// level below.
    levels: Vec<Vec<Line>>,
    least: u64,
    /// Its leaf, the lowest among equals, if `least` is a value. Found when it changes, not when it
    /// is asked for: then whatever happens next would have to wait for it.
    first: usize,
}

impl Tournament {
    fn new(leaves: usize) -> Tournament {
        let mut levels = vec![vec![EMPTY; leaves.div_ceil(FANOUT).max(1)]];
        while levels[levels.len() - 1].len() > 1 {
            levels.push(vec![EMPTY; levels[levels.len() - 1].len().div_ceil(FANOUT)]);
        }
        Tournament { levels, least: NOTHING, first: 0 }
    }

    fn leaves(&self) -> usize {
        self.levels[0].len() * FANOUT
    }

    /// Sets a number that was [`NOTHING`].
    #[inline]
    fn add(&mut self, leaf: usize, value: u64) {
        self.note(leaf, value);
        let mut at = leaf;
        for level in &mut self.levels {
            let place = &mut level[at / FANOUT].0[at % FANOUT];
            if value >= *place {
                return;
            }
            *place = value;
            at /= FANOUT;
        }
    }

    /// A leaf gets this value, which may be the least.
    #[inline]
    fn note(&mut self, leaf: usize, value: u64) {
        if value < self.least || value == self.least && leaf < self.first {
            (self.least, self.first) = (value, leaf);
        }
    }

    /// Changes a number.
    #[inline]
    fn set(&mut self, leaf: usize, value: u64) {
        let (mut at, mut least) = (leaf, value);
        let changes_least = 'up: {
            for level in &mut self.levels {
                let line = &mut level[at / FANOUT];
                if line.0[at % FANOUT] == least {
                    break 'up false;
                }
                line.0[at % FANOUT] = least;
                least = line.least();
                at /= FANOUT;
            }
            true
        };
        if changes_least {
            self.least = least;
        }
        if leaf == self.first || value == self.least {
            self.first = self.find_first();
        }
    }

    /// The lowest leaf of the least value.
    #[inline]
    fn find_first(&self) -> usize {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            at = at * FANOUT + level[at].position(self.least);
        }
        at
    }

    /// The least value.
    #[inline]
    fn least(&self) -> u64 {
        self.least
    }

    /// Its leaf, the lowest among equals.
    #[inline]
    fn least_leaf(&self) -> usize {
        self.first
    }

    #[cold]
    fn grow_to(&mut self, leaves: usize) {
        let mut grown = Tournament::new(leaves.max(2 * self.leaves()));
        for (leaf, value) in self.levels[0].iter().flat_map(|line| line.0).enumerate() {
            grown.add(leaf, value);
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

    /// The earliest moment.
    #[inline]
    pub(crate) fn first(&self) -> Moment {
        Moment(self.moments.least())
    }

    /// The CPU of the earliest moment, the lowest among equals.
    #[inline]
    pub(crate) fn first_cpu(&self) -> usize {
        self.moments.least_leaf()
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
        self.times.add(task.index(), wake.0);
    }

    #[inline]
    pub(crate) fn next(&self) -> Time {
        Time(self.times.least())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times.least() == NOTHING
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<TaskId> {
        if self.times.least() == NOTHING {
            return None;
        }
        let task = self.times.least_leaf();
        self.times.set(task, NOTHING);
        Some(TaskId(task as u32))
    }
}

/// What happens next, but for the policy's timer and the events of machines inside this one.
#[derive(Debug)]
pub(super) struct Agenda {
    pub(super) cpus: CpuAgenda,
    pub(super) sleepers: Sleepers,
    /// When the load's next event is due.
    pub(super) outside: Time,
    /// How many of the CPUs' arrivals and departures are past.
    pub(super) hotplugged: usize,
    /// How many parameters of the policy have changed.
    pub(super) changed: usize,
}

impl Agenda {
    pub(super) fn new(cpus: usize, outside: Time) -> Agenda {
        let (cpus, sleepers) = (CpuAgenda::new(cpus), Sleepers::new());
        Agenda { cpus, sleepers, outside, hotplugged: 0, changed: 0 }
    }

    /// Whether anything is still to come that makes a task ready.
    pub(super) fn has_outside_or_sleepers(&self) -> bool {
        self.outside < Time::NEVER || !self.sleepers.is_empty()
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
                assert_eq!(agenda.first(), first);
                if first != Moment::NEVER {
                    assert_eq!(agenda.first_cpu(), expected);
                }
            }
        }
    }
}
