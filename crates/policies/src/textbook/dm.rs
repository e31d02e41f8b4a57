//! Deadline monotonic: each task has a fixed priority, the higher the shorter the time from the
//! release of a job to its deadline; the most urgent job that is ready runs, and takes the CPU at
//! once when it is released.
//!
//! Source: J. Y.-T. Leung and J. Whitehead, On the complexity of fixed-priority scheduling of
//! periodic, real-time tasks, Performance Evaluation 2(4), 1982.
//! Order key: (relative deadline, order of release). A task without a relative deadline uses its
//! period (which makes this the rate-monotonic order of Liu and Layland), and one without either
//! uses the time from the release of its job to the deadline that the host names. Tasks without any
//! deadline come last, in order of release. Of several CPUs, the one whose task has the longest
//! relative deadline is interrupted. Equals do not interrupt; a task that yields goes behind its
//! equals.
//! A runqueue that wants a task is given the last in the order.
//! Deviation: the paper has one CPU. Here CPUs share the order, or have one each (`layout`).
//! Cost: O(log n), and O(CPUs of the runqueue) when a job is released and no CPU is idle.

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::{First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `dm`: none beyond those of the queue layout.
    pub struct DmParams {}
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Dm {
    forest: Forest<(Span, u64)>,
    queues: Vec<Tree>,
    tasks: PerTask<Task>,
    /// Counts released jobs and yields, for the order among equals.
    releases: u64,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// As its parameters say.
    given: Option<Span>,
    /// [`Span::MAX`] if it has no deadline.
    relative_deadline: Span,
    /// Its place among equals.
    number: u64,
}

const NEW: Task = Task { given: None, relative_deadline: Span::MAX, number: 0 };

impl Task {
    fn read(&mut self, params: &TaskParams) {
        self.given = params.relative_deadline.or(params.period);
        if let Some(given) = self.given {
            self.relative_deadline = given;
        }
    }

    fn key(&self) -> (Span, u64) {
        (self.relative_deadline, self.number)
    }
}

impl Policy for Dm {
    type Params = DmParams;
    const SOURCE: &'static str = "Leung and Whitehead, Performance Evaluation 2(4), 1982";
    const ORDER: &'static [First] = &[First::Least("relative_deadline_ns")];
    const STARVES: bool = true;

    fn build(_: &Machine, queues: usize, _: &DmParams) -> Result<Dm, ParamError> {
        Ok(Dm {
            forest: Forest::default(),
            queues: alloc::vec![Tree::default(); queues],
            tasks: PerTask::new(),
            releases: 0,
        })
    }
}

impl RunQueue for Dm {
    const PREEMPTS: bool = true;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.forest.attach(task);
        self.tasks.set(task, NEW);
        self.tasks[task].read(params);
    }

    fn update(&mut self, at: &At<'_>, is: Whereabouts, id: TaskId, params: &TaskParams) {
        let task = &mut self.tasks[id];
        task.read(params);
        if is == Whereabouts::Queued && self.forest.key(id) != task.key() {
            let queue = &mut self.queues[at.queue];
            self.forest.remove(queue, id);
            self.forest.insert(queue, id, task.key(), ());
        }
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let task = &mut self.tasks[id];
        let is_released = matches!(entry.why, Why::New | Why::Woken);
        if is_released && task.given.is_none() {
            let named = entry.deadline.map(|deadline| deadline.since(at.now));
            task.relative_deadline = named.unwrap_or(Span::MAX);
        }
        if is_released || entry.why == Why::Put(Off::Yielded) {
            self.releases += 1;
            task.number = self.releases;
        }
        self.forest.insert(&mut self.queues[at.queue], id, task.key(), ());
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.pop_first_fit(&mut self.queues[at.queue], fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.forest.remove(&mut self.queues[at.queue], task);
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        Span::MAX
    }

    #[inline]
    fn preempts(&mut self, _: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let rival = self.tasks[running.task()?].relative_deadline;
        let margin = rival.saturating_sub(self.tasks[task].relative_deadline);
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
        let relative = self.tasks[task].relative_deadline.0;
        sink("relative_deadline_ns", i64::try_from(relative).unwrap_or(i64::MAX));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(self, to, Dm { forest: fixed, queues: of(forest), tasks, releases: fixed });
    }
}

canonical!(Task { given, relative_deadline, number: order });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Smp;
    use anysched_core::{Arrival, Enqueue, Scheduler};
    use anysched_oracle::drive::{Drive, ms, times};
    use anysched_oracle::periodic::{Job, play, task};

    /// Leung and Whitehead: with deadlines before the ends of periods, the shorter deadline goes
    /// first, though its period is the longer one. By periods it would be done at 3 ms.
    #[test]
    fn the_shorter_deadline_goes_before_the_shorter_period() {
        let played = play::<Dm>(&[task(4, 2, 4), task(6, 1, 2)], 12);
        assert_eq!(played.ran, "100.001.00..");
        assert_eq!(played.missed, []);
    }

    /// A set of utilisation 1 that EDF schedules: the first task goes first at 4 ms too, and the
    /// second is not done by 6 ms.
    #[test]
    fn the_order_is_fixed_and_a_full_cpu_misses_deadlines() {
        let played = play::<Dm>(&[task(4, 2, 4), task(6, 3, 6)], 12);
        assert_eq!(played.ran, "001100110011");
        assert_eq!(played.missed, [Job { task: 1, due: 6 }]);
    }

    /// Liu and Layland's two tasks with periods of 2 and 5: the second may run for 2 ms of each
    /// period, and not for 3.
    #[test]
    fn by_periods_it_is_rate_monotonic() {
        let played = play::<Dm>(&[task(5, 2, 5), task(2, 1, 2)], 10);
        assert_eq!((played.ran.as_str(), played.missed.len()), ("101010101.", 0));
        let played = play::<Dm>(&[task(5, 3, 5), task(2, 1, 2)], 10);
        assert_eq!(played.missed, [Job { task: 0, due: 5 }, Job { task: 0, due: 10 }]);
    }

    fn params(period: Option<u64>, deadline: Option<u64>) -> TaskParams {
        let (period, relative_deadline) = (period.map(ms), deadline.map(ms));
        TaskParams { period, relative_deadline, ..TaskParams::default() }
    }

    fn job(drive: &mut Drive<Smp<Dm>>, task: u32, due: Option<u64>, params: &TaskParams) {
        let deadline = due.map(|at| times(&[at])[0]);
        let arrival = Arrival { deadline, ..Arrival::because(Enqueue::New) };
        drive.call(|smp, cx| {
            smp.attach(cx, TaskId(task), params);
            smp.enqueue(cx, TaskId(task), arrival);
        });
    }

    fn order(drive: &mut Drive<Smp<Dm>>) -> Vec<u32> {
        core::iter::from_fn(|| {
            let (task, _) = drive.pick(0)?;
            drive.put(0, task, Span::ZERO, Off::Blocked);
            Some(task)
        })
        .collect()
    }

    #[test]
    fn the_key_is_the_relative_deadline_or_the_period_or_what_the_host_names() {
        let mut drive = Drive::<Smp<Dm>>::rule("1", &[]);
        drive.now = times(&[50])[0];
        job(&mut drive, 0, None, &params(None, None));
        job(&mut drive, 1, None, &params(None, None));
        job(&mut drive, 2, Some(75), &params(None, None));
        // The absolute deadline is ignored where there is a relative one.
        job(&mut drive, 3, Some(51), &params(Some(30), None));
        job(&mut drive, 4, Some(99), &params(Some(40), Some(20)));
        assert_eq!(order(&mut drive), [4, 2, 3, 0, 1]);
    }

    #[test]
    fn a_shorter_relative_deadline_interrupts_though_it_is_due_later() {
        let mut drive = Drive::<Smp<Dm>>::rule("2", &[]);
        job(&mut drive, 0, None, &params(Some(90), None));
        job(&mut drive, 1, None, &params(Some(80), None));
        assert_eq!([drive.pick(0), drive.pick(1)].map(|pick| pick.unwrap().0), [1, 0]);
        drive.kicked();
        drive.now = times(&[75])[0];
        job(&mut drive, 2, None, &params(Some(90), None));
        assert_eq!(drive.kicked(), [], "equals do not");
        job(&mut drive, 3, None, &params(Some(70), None));
        assert_eq!(drive.kicked(), [1]);
        drive.put(1, 0, ms(75), Off::Preempted);
        assert_eq!(drive.pick(1), Some((3, Span::MAX)));
        drive.put(0, 1, ms(75), Off::Blocked);
        assert_eq!(order(&mut drive), [0, 2]);
    }

    #[test]
    fn equals_keep_the_order_of_release_unless_one_yields() {
        let mut drive = Drive::<Smp<Dm>>::rule("1", &[]);
        (0..3).for_each(|task| job(&mut drive, task, None, &params(Some(50), None)));
        assert_eq!(drive.run(ms(1), Off::Preempted), 0);
        assert_eq!(drive.run(ms(1), Off::Yielded), 0);
        drive.take_out_and_resume(1);
        assert_eq!(order(&mut drive), [1, 2, 0]);
    }

    #[test]
    fn a_changed_deadline_counts_at_once() {
        let mut drive = Drive::<Smp<Dm>>::rule("1", &[]);
        (0..3).for_each(|task| job(&mut drive, task, None, &params(Some(50), None)));
        drive.call(|smp, cx| smp.update(cx, TaskId(2), &params(Some(50), Some(10))));
        drive.call(|smp, cx| smp.update(cx, TaskId(0), &params(Some(60), None)));
        assert_eq!(order(&mut drive), [2, 1, 0]);
    }
}
