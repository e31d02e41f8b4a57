//! Shortest remaining processing time: of all tasks, those that need the least CPU time run; one
//! that becomes ready with less to do than a running one interrupts it.
//!
//! Source: L. Schrage, A proof of the optimality of the shortest remaining processing time
//! discipline, Operations Research 16(3), 1968.
//! Order key: as [`sjf`](super::sjf), with the same fallback where the host knows no service
//! times. Of several CPUs the one whose task needs the most is interrupted. What a running task
//! still needs is what it needed when last charged less the time since. Equals do not interrupt.
//! With `key = total` the times that tasks needed when they became ready are compared.
//! Cost: O(log n), and O(CPUs of the runqueue) when a task becomes ready and none is idle.

use crate::textbook::sjf::ShortestFirst;

/// See the [module documentation](self).
pub type Srpt = ShortestFirst<true>;

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Off;
    use anysched_core::Smp;
    use anysched_oracle::drive::{Drive, OPEN, ms, play};

    #[test]
    fn golden_vector() {
        play::<Srpt>(&[], OPEN).assert(OPEN, &[12, 4, 20, 6, 8], 10);
    }

    /// The running task has 10 − 4 = 6 ms to go, though only 3 of the 4 have been charged.
    #[test]
    fn less_than_what_is_left_interrupts_and_as_much_does_not() {
        for (need, kicked) in [(6, false), (5, true)] {
            let mut drive = Drive::<Smp<Srpt>>::rule("1", &[]);
            drive.create(0, Some(ms(10)));
            drive.pick(0);
            drive.kicked();
            assert!(!drive.tick(0, ms(3)));
            drive.now += ms(1);
            drive.create(1, Some(ms(need)));
            assert_eq!(drive.kicked() == [0], kicked, "{need} ms");
        }
    }

    #[test]
    fn the_cpu_whose_task_needs_the_most_is_interrupted() {
        let mut drive = Drive::<Smp<Srpt>>::rule("3", &[]);
        for (task, need) in [(0, 8), (1, 20), (2, 20)] {
            drive.create(task, Some(ms(need)));
            drive.pick(task as u16);
        }
        drive.kicked();
        drive.create(3, Some(ms(7)));
        assert_eq!(drive.kicked(), [1]);
        // That CPU is going to pick anyway: the next victim is another.
        drive.create(4, Some(ms(7)));
        assert_eq!(drive.kicked(), [2]);
        drive.create(5, Some(ms(7)));
        assert_eq!(drive.kicked(), [0]);
    }

    #[test]
    fn an_idle_cpu_spares_the_running_ones() {
        let mut drive = Drive::<Smp<Srpt>>::rule("2", &[]);
        drive.create(0, Some(ms(8)));
        drive.pick(0);
        drive.kicked();
        drive.create(1, Some(ms(1)));
        assert_eq!(drive.kicked(), [1]);
    }

    /// By totals, 9 ms is more than 5 even when 8 of them are over.
    #[test]
    fn totals_ignore_what_is_done() {
        for (key, kicked) in [("remaining", false), ("total", true)] {
            let mut drive = Drive::<Smp<Srpt>>::rule("1", &[("key", key)]);
            drive.create(0, Some(ms(9)));
            drive.pick(0);
            drive.kicked();
            drive.now += ms(8);
            drive.create(1, Some(ms(5)));
            assert_eq!(drive.kicked() == [0], kicked, "{key}");
            drive.put(0, 0, ms(8), Off::Preempted);
            assert_eq!(drive.pick(0).map(|pick| pick.0), Some(u32::from(kicked)), "{key}");
        }
    }
}
