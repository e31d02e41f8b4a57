//! Earliest deadline first: of all jobs that are ready, the one whose absolute deadline comes first
//! runs, and one that is released with an earlier deadline takes the CPU at once.
//!
//! Source: C. L. Liu and J. W. Layland, Scheduling algorithms for multiprogramming in a
//! hard-real-time environment, J. ACM 20(1), 1973 (their deadline driven algorithm); M. L.
//! Dertouzos, Control robotics: the procedural control of physical processes, IFIP 1974.
//! Order key: (absolute deadline, order of release). The deadline is the one that the host names
//! for the job ([`Arrival::deadline`](anysched_core::Arrival::deadline)), else its release plus the
//! relative deadline of the task, else its release plus the period. Jobs without any deadline come
//! last, in order of release. Of several CPUs, the one whose job has the latest deadline is
//! interrupted.
//! Equals do not interrupt; a job that yields goes behind its equals.
//! A runqueue that wants a task is given the last in the order.
//!
//! Deviations:
//! - The paper has one CPU. Here CPUs share the order (global EDF, which may miss deadlines at a
//!   utilisation little above 1 however many CPUs there are), or have one each (`layout`).
//! - Hosts do not report a job that begins while its task is still running, because the previous
//!   job ended just then or late. A task with a period and a budget is assumed to begin its next
//!   job when the current one has used its budget and the next is due; the deadline then moves by a
//!   period. Without both, or if a late job needs less than its budget, the old deadline stays.
//! - A task that blocks within a job is still in that job when it wakes if the host names the same
//!   deadline; otherwise waking up begins a job.
//!
//! Cost: O(log n), and O(CPUs of the runqueue) when a job is released and no CPU is idle.

use alloc::vec::Vec;

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::{First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why};
use anysched_core::time::{Span, Time};
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `edf`: none beyond those of the queue layout.
    pub struct EdfParams {}
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Edf {
    forest: Forest<(Time, u64)>,
    queues: Vec<Tree>,
    tasks: PerTask<Task>,
    /// Counts released jobs and yields, for the order among equals.
    releases: u64,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// From the release of a job to its deadline, unless the host names another.
    relative_deadline: Option<Span>,
    cycle: Option<Cycle>,
    /// When the current job was released.
    release: Time,
    /// [`Time::NEVER`] if it has none.
    deadline: Time,
    /// CPU time that the job has used.
    used: Span,
    /// Its place among equals.
    number: u64,
}

/// What shows that a task has moved on to its next job.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    period: Span,
    budget: Span,
}

const NEW: Task = Task {
    relative_deadline: None,
    cycle: None,
    release: Time::ZERO,
    deadline: Time::NEVER,
    used: Span::ZERO,
    number: 0,
};

impl Task {
    fn read(&mut self, params: &TaskParams) {
        self.relative_deadline = params.relative_deadline.or(params.period);
        let cycle = params.period.zip(params.budget.filter(|&budget| budget > Span::ZERO));
        self.cycle = cycle.map(|(period, budget)| Cycle { period, budget });
    }

    /// The task becomes ready at `now` for a job with this deadline. Returns whether it is a new
    /// job.
    fn arrive(&mut self, now: Time, deadline: Option<Time>) -> bool {
        if deadline == Some(self.deadline) {
            return false;
        }
        let usual = self.relative_deadline.map_or(Time::NEVER, |relative| now + relative);
        self.release = match (deadline, self.relative_deadline) {
            (Some(deadline), Some(relative)) => Time(deadline.0.saturating_sub(relative.0)),
            _ => now,
        };
        self.deadline = deadline.unwrap_or(usual);
        self.used = Span::ZERO;
        true
    }

    /// Moves on to the next job if the current one must be done and the next is due. Returns
    /// whether it did.
    fn begins_next_job(&mut self, now: Time) -> bool {
        let Some(Cycle { period, budget }) = self.cycle else { return false };
        let begins = self.used >= budget && self.release + period <= now;
        if begins {
            self.used -= budget;
            self.release += period;
            self.deadline += period;
        }
        begins
    }
}

impl Policy for Edf {
    type Params = EdfParams;
    const SOURCE: &'static str = "Liu and Layland, J. ACM 20(1), 1973; Dertouzos 1974";
    const ORDER: &'static [First] = &[First::Least("deadline_ns")];
    const STARVES: bool = true;

    fn build(_: &Machine, queues: usize, _: &EdfParams) -> Result<Edf, ParamError> {
        Ok(Edf {
            forest: Forest::default(),
            queues: alloc::vec![Tree::default(); queues],
            tasks: PerTask::new(),
            releases: 0,
        })
    }
}

impl RunQueue for Edf {
    const PREEMPTS: bool = true;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.forest.attach(task);
        self.tasks.set(task, NEW);
        self.tasks[task].read(params);
    }

    /// From the next job on.
    fn update(&mut self, _: &At<'_>, _: Whereabouts, task: TaskId, params: &TaskParams) {
        self.tasks[task].read(params);
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let task = &mut self.tasks[id];
        let goes_behind_equals = match entry.why {
            Why::New | Why::Woken => task.arrive(at.now, entry.deadline),
            Why::Put(why) => task.begins_next_job(at.now) || why == Off::Yielded,
            Why::Resumed | Why::Moved => false,
        };
        if goes_behind_equals {
            self.releases += 1;
            task.number = self.releases;
        }
        let key = (task.deadline, task.number);
        self.forest.insert(&mut self.queues[at.queue], id, key, ());
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.pop_first_fit(&mut self.queues[at.queue], fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.forest.remove(&mut self.queues[at.queue], task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, task: TaskId, ran: Span) {
        self.tasks[task].used += ran;
    }

    /// The time until the job has used its budget, so that the start of the next one is noticed.
    #[inline]
    fn slice(&mut self, _: &At<'_>, task: TaskId) -> Span {
        let task = &self.tasks[task];
        match task.cycle {
            Some(cycle) if task.used < cycle.budget => cycle.budget - task.used,
            _ => Span::MAX,
        }
    }

    #[inline]
    fn preempts(&mut self, _: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let rival = self.tasks[running.task()?].deadline;
        let margin = rival.since(self.tasks[task].deadline);
        (margin > Span::ZERO).then_some(margin.0)
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.iter_back(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let ns = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        sink("deadline_ns", ns(self.tasks[task].deadline.0));
        sink("used_ns", ns(self.tasks[task].used.0));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(self, to, Edf { forest: fixed, queues: of(forest), tasks, releases: fixed });
    }
}

impl Canonical for Task {
    fn canon(&self, _: &(), to: &mut Canon) {
        // A task that has never been ready has none.
        let release = Some(self.release).filter(|&release| release > Time::ZERO);
        release.canon(&(), to);
        canon_fields!(
            self,
            to,
            Task { relative_deadline, cycle, release: fixed, deadline, used, number: order }
        );
    }
}

canonical!(Cycle { period, budget });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Smp;
    use anysched_core::{Arrival, Enqueue, Scheduler};
    use anysched_oracle::drive::{Drive, ms, times};
    use anysched_oracle::periodic::{Job, play, task};

    /// Utilisation 2/4 + 3/6 = 1. At 4 ms the second task goes on, because it is due at 6 ms and
    /// the first at 8; at 8 ms both are due at 12, and the one that was released first goes on.
    #[test]
    fn a_full_cpu_meets_all_deadlines() {
        let played = play::<Edf>(&[task(4, 2, 4), task(6, 3, 6)], 24);
        assert_eq!(played.ran, "001110011100001110011100");
        assert_eq!(played.missed, []);
    }

    /// Liu and Layland's periods of 3, 4 and 5 with run times of 1, 1 and 2, of which a fixed order
    /// leaves the last only 1: 59/60 of the CPU.
    #[test]
    fn the_third_task_of_liu_and_layland_has_two_of_five() {
        let played = play::<Edf>(&[task(3, 1, 3), task(4, 1, 4), task(5, 2, 5)], 60);
        assert_eq!(&played.ran[..15], "012201022102201");
        assert_eq!(played.missed, []);
        assert_eq!(played.ran.matches('.').count(), 1);
    }

    /// Above full load one late job makes the next ones late (the domino effect).
    #[test]
    fn an_overloaded_cpu_misses_by_turns() {
        let played = play::<Edf>(&[task(4, 3, 4), task(4, 3, 4)], 12);
        assert_eq!(played.ran, "000111000111");
        let missed =
            [(1, 4), (0, 8), (1, 8), (0, 12), (1, 12)].map(|(task, due)| Job { task, due });
        assert_eq!(played.missed, missed);
    }

    fn job(drive: &mut Drive<Smp<Edf>>, task: u32, deadline: Option<u64>, params: &TaskParams) {
        let deadline = deadline.map(|at| times(&[at])[0]);
        let arrival = Arrival { deadline, ..Arrival::because(Enqueue::New) };
        drive.call(|smp, cx| {
            smp.attach(cx, TaskId(task), params);
            smp.enqueue(cx, TaskId(task), arrival);
        });
    }

    fn order(drive: &mut Drive<Smp<Edf>>) -> Vec<u32> {
        core::iter::from_fn(|| {
            let (task, _) = drive.pick(0)?;
            drive.put(0, task, Span::ZERO, Off::Blocked);
            Some(task)
        })
        .collect()
    }

    fn relative(period: Option<u64>, deadline: Option<u64>) -> TaskParams {
        let (period, relative_deadline) = (period.map(ms), deadline.map(ms));
        TaskParams { period, relative_deadline, ..TaskParams::default() }
    }

    /// At 5 ms: due at 30 by the host, at 5 + 20 by the relative deadline, at 5 + 28 by the period.
    #[test]
    fn the_deadline_is_the_hosts_or_the_relative_one_or_the_period() {
        let mut drive = Drive::<Smp<Edf>>::rule("1", &[]);
        drive.now = times(&[5])[0];
        job(&mut drive, 0, None, &relative(None, None));
        job(&mut drive, 1, None, &relative(None, None));
        job(&mut drive, 2, None, &relative(Some(28), None));
        job(&mut drive, 3, Some(30), &relative(Some(1), Some(1)));
        job(&mut drive, 4, None, &relative(Some(1), Some(20)));
        let due = [4, 3, 2].map(|task| drive.probe(task, "deadline_ns") / 1_000_000);
        assert_eq!(due, [25, 30, 33]);
        assert_eq!(order(&mut drive), [4, 3, 2, 0, 1], "those without one as they came");
    }

    #[test]
    fn an_earlier_deadline_interrupts_and_an_equal_one_does_not() {
        for (due, kicked) in [(69, true), (70, false)] {
            let mut drive = Drive::<Smp<Edf>>::rule("1", &[]);
            job(&mut drive, 0, Some(70), &TaskParams::default());
            drive.pick(0);
            drive.kicked();
            drive.now = times(&[10])[0];
            // Less time until it is due, whatever it is due at.
            job(&mut drive, 1, Some(due), &TaskParams::default());
            assert_eq!(drive.kicked() == [0], kicked, "{due}");
        }
    }

    #[test]
    fn the_cpu_with_the_latest_deadline_is_interrupted() {
        let mut drive = Drive::<Smp<Edf>>::rule("3", &[]);
        for (task, due) in [(0, Some(90)), (1, None), (2, Some(95))] {
            job(&mut drive, task, due, &TaskParams::default());
            drive.pick(task as u16);
        }
        drive.kicked();
        let victims = (3..7).map(|task| {
            job(&mut drive, task, Some(80), &TaskParams::default());
            drive.kicked()
        });
        assert_eq!(
            victims.collect::<Vec<_>>(),
            [alloc::vec![1], [2].into(), [0].into(), [].into()]
        );
    }

    #[test]
    fn a_yielder_goes_behind_its_equals_only() {
        let mut drive = Drive::<Smp<Edf>>::rule("1", &[]);
        for (task, due) in [(0, 50), (1, 50), (2, 60)] {
            job(&mut drive, task, Some(due), &TaskParams::default());
        }
        assert_eq!(drive.run(ms(1), Off::Preempted), 0);
        assert_eq!(drive.run(ms(1), Off::Yielded), 0);
        drive.take_out_and_resume(1);
        assert_eq!(drive.run(ms(1), Off::Yielded), 1);
        assert_eq!(order(&mut drive), [0, 1, 2]);
    }

    /// A task of 2 ms in 4 ends a job at 4 ms, when the next one is released: that is due at 8 ms,
    /// behind one at 5 ms. A late job that has not used its budget keeps its deadline, as does one
    /// that goes on beyond it before the next is due.
    #[test]
    fn a_job_that_follows_at_once_has_its_own_deadline() {
        for (begun, ran, why, expected) in [
            (2, 2, Off::Expired, [1, 0]),
            (3, 1, Off::Preempted, [0, 1]),
            (1, 2, Off::Expired, [0, 1]),
        ] {
            let mut drive = Drive::<Smp<Edf>>::rule("1", &[]);
            let params = TaskParams { budget: Some(ms(2)), ..relative(Some(4), None) };
            job(&mut drive, 0, Some(4), &params);
            job(&mut drive, 1, Some(5), &TaskParams::default());
            drive.now = times(&[begun])[0];
            assert_eq!(drive.pick(0), Some((0, ms(2))));
            drive.now += ms(ran);
            drive.put(0, 0, ms(ran), why);
            assert_eq!(order(&mut drive), expected, "{begun}");
        }
    }

    /// It blocks after 1 ms of a job of 3 and wakes for the rest: another 2 ms and the job is done.
    #[test]
    fn blocking_within_a_job_begins_no_other() {
        for (due, used, slice) in [(10, 1_000_000, ms(2)), (20, 0, ms(3))] {
            let mut drive = Drive::<Smp<Edf>>::rule("1", &[]);
            let params = TaskParams { budget: Some(ms(3)), ..relative(Some(10), None) };
            job(&mut drive, 0, Some(10), &params);
            assert_eq!(drive.run(ms(1), Off::Blocked), 0);
            let why = Enqueue::Wakeup { prev: CpuId(0), sync: false };
            let arrival = Arrival { deadline: Some(times(&[due])[0]), ..Arrival::because(why) };
            drive.call(|smp, cx| smp.enqueue(cx, TaskId(0), arrival));
            assert_eq!(drive.probe(0, "used_ns"), used);
            assert_eq!(drive.pick(0), Some((0, slice)));
        }
    }
}
