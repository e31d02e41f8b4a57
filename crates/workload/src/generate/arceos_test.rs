//! The scheduler tests of ArceOS, simulated: tasks compute a group of iterations, yield, and
//! repeat.
//!
//! Source: `apps/task/sched_{fairness_equal,fairness_unequal,yield_speed,realtime,occupy}` of
//! github.com/chestnut-Q/arceos-X, branch `scheduler` (a25a361), and of 131131yhx/arceos, branch
//! `schedule_benchmark` (901dfaf), from where they come. What matters to a scheduler:
//! - A task yields after each of its groups, including the last. Only when it runs again does it
//!   look at the clock and finish, a whole round later under a FIFO.
//! - The time that the tests print (the *leave time*) counts from the first instruction of the
//!   task, not from its creation: waiting for a first turn costs nothing. Here both are measured.
//! - In `unequal` no task ever finishes. The task that created the others sleeps for 5 s and reads
//!   how many groups each has done when it runs again, for which it waits like any other.
//! - `realtime` and `occupy` create their tasks from the last to the first, the long one first.
//!   Two of `occupy` have nothing to do.
//!
//! Where it differs:
//! - Finished tasks end; in the tests they wait for each other and then end.
//! - The task that creates the others is left out where it only waits for all to be done.
//! - How long an iteration takes is a parameter, because it depends on the machine.

use super::{Generator, MAX_TASKS, Maker, SettingError, Settings, check, check_period};
use crate::extent::{Extent, earlier};
use crate::kinds::{
    Calibrated, Each, Kind, LoadSpec, Needs, ONE_OR_EACH, Picoseconds, Reader, Refusal, Words,
    keys, words,
};
use crate::per_task::PerTask;
use crate::{Load, Measured, Op, Outside, Program};
use anysched_core::{Span, TaskId, Time};
use std::collections::VecDeque;

/// Tasks that compute and yield.
#[derive(Clone, Debug, PartialEq)]
pub struct ArceosTest {
    /// Which test it is, or is derived from.
    pub case: ArceosCase,
    /// Of the tasks.
    pub settings: Settings,
    /// What each task does, in the order in which they are created; at least one.
    pub tasks: Vec<Groups>,
    /// CPU time of an iteration in ps; above 0. A task's groups take as many whole ns as their
    /// iterations together.
    pub iteration_ps: u64,
    /// When groups are counted and all tasks end, by a task that is created before the others;
    /// `None`: each ends when its groups are done. Above 0.
    pub duration: Option<Span>,
    /// When and how often it is run.
    pub runs: Runs,
}

/// When and how often a test is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// When the first run begins.
    pub at: Time,
    /// How many there are, at least 1; one, if there is a duration.
    pub runs: u32,
    /// From the beginning of a run to that of the next; above 0 if there are several. A run that
    /// is not over by then goes on beside the next.
    pub every: Span,
    /// What the first task has for a number in what is measured.
    pub numbered_from: u16,
}

impl Default for Runs {
    /// Once, at once.
    fn default() -> Runs {
        Runs { at: Time::ZERO, runs: 1, every: Span::ZERO, numbered_from: 0 }
    }
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// How many groups, each followed by a yield.
    pub groups: u64,
    /// Iterations of a group.
    pub iterations: u64,
}

/// The tests, with the sizes in their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArceosCase {
    /// Four tasks with the same groups, longer than a tick.
    Equal,
    /// Four tasks with groups of 1, 2, 3 and 4 times the length, counted after 5 s.
    Unequal,
    /// Four tasks with 100,000 short groups.
    Yield,
    /// A long task, and four that yield more often than they compute.
    Realtime,
    /// A long task, and two with many short groups.
    Occupy,
}

const MILLION: u64 = 1_000_000;

impl ArceosCase {
    /// Its name, in experiment files and in kernels.
    pub fn name(self) -> &'static str {
        self.word()
    }

    /// What the tasks do, in the order in which they are created.
    pub fn tasks(self) -> Vec<Groups> {
        let each = |pairs: &[(u64, u64)]| {
            pairs.iter().map(|&(groups, iterations)| Groups { groups, iterations }).collect()
        };
        match self {
            ArceosCase::Equal => each(&[(25, 5 * MILLION); 4]),
            ArceosCase::Unequal => each(&[50, 100, 150, 200].map(|n| (5000, n * MILLION))),
            ArceosCase::Yield => each(&[(100_000, 100); 4]),
            ArceosCase::Realtime => {
                each(&[(8, 100 * MILLION), (500_000, 1), (200_000, 2), (100_000, 5), (50_000, 10)])
            }
            ArceosCase::Occupy => {
                let short = (2 * MILLION, 100);
                each(&[(80, 10 * MILLION), short, short, (0, 0), (0, 0)])
            }
        }
    }

    /// When the groups are counted, if they are.
    pub fn duration(self) -> Option<Span> {
        (self == ArceosCase::Unequal).then_some(Span::from_s(5))
    }

    /// CPU time of an iteration in ps that follows from the published times: of a division, or of
    /// the shift in `unequal`.
    pub fn iteration_ps(self) -> u64 {
        if self == ArceosCase::Unequal { 930 } else { 2280 }
    }
}

words!(ArceosCase {
    ArceosCase::Equal => "equal",
    ArceosCase::Unequal => "unequal",
    ArceosCase::Yield => "yield",
    ArceosCase::Realtime => "realtime",
    ArceosCase::Occupy => "occupy",
});

keys! {
    /// The keys of [`ArceosTest`].
    pub struct ArceosTestKeys {
        ..settings: Settings;
        /// Which test it is, or is derived from.
        case: ArceosCase = needed, eg "equal";
        /// How many tasks compute; those beyond the test's own do what its last one does.
        threads: Option<u32> = none "as many as in a list, or as in the test", eg "4",
            in 0..=MAX_THREADS;
        /// Groups of each task, each followed by a yield.
        groups: Option<Each> = none "as in the test", eg "25", in 0..=MAX_TASKS;
        /// Iterations of a group.
        iterations: Option<Each> = none "as in the test", eg "100, 200", in 0..=MAX_TASKS;
        /// CPU time of an iteration.
        iteration: Option<Picoseconds> = none "2.28ns; in `unequal`, 0.93ns", eg "2.28ns",
            calibrated LOOPS;
        /// When groups are counted and all tasks end, since they came.
        duration: Option<Span> = none "when groups are done; in `unequal`, 5s", eg "5s";
        /// When the tasks come.
        at: Time = "0ns", eg "1s";
        /// How often the test is run, with tasks of its own each time; their numbers go on.
        runs: u32 = "1", eg "2", in 1..=MAX_THREADS;
        /// From the beginning of a run to that of the next.
        every: Option<Span> = none "needed if there are several", eg "5s";
        /// The number of the first task in columns, for several tests in one file.
        numbered_from: u32 = "0", eg "4", in 0..=65_535;
    }
}

/// `unequal` shifts where the others divide.
const LOOPS: Calibrated = Calibrated {
    by: "case",
    names: &[
        ("equal", "divide"),
        ("unequal", "shift"),
        ("yield", "divide"),
        ("realtime", "divide"),
        ("occupy", "divide"),
    ],
};

/// A task costs some memory.
const MAX_THREADS: i64 = 1 << 16;

impl Kind for ArceosTestKeys {
    fn load(self, reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
        let tasks = self.groups()?;
        let iteration = self.iteration.map(|Picoseconds(time)| time);
        reader.generated(ArceosTest {
            case: self.case,
            settings: self.settings,
            tasks,
            iteration_ps: iteration.unwrap_or(self.case.iteration_ps()),
            duration: self.duration.or(self.case.duration()),
            runs: Runs {
                at: self.at,
                runs: self.runs,
                every: self.every.unwrap_or_default(),
                numbered_from: self.numbered_from as u16,
            },
        })
    }
}

impl ArceosTestKeys {
    /// What the tasks do. Unless a number of threads is given, there are as many as in a list, or
    /// as in the test.
    fn groups(&self) -> Result<Vec<Groups>, Refusal> {
        let known = self.case.tasks();
        let lists = [("groups", &self.groups), ("iterations", &self.iterations)];
        let lists = lists.map(|(key, list)| (key, list.as_ref().map(|Each(list)| &list[..])));
        let long =
            lists.iter().filter_map(|(key, list)| Some((key, list.filter(|l| l.len() > 1)?)));
        let threads = match (self.threads, long.clone().next()) {
            (Some(threads), _) => threads as usize,
            (None, Some((_, list))) => list.len(),
            (None, None) => known.len(),
        };
        if let Some((key, list)) = long.into_iter().find(|(_, list)| list.len() != threads) {
            let has = list.len();
            let message = format!("`{key}` has {has} numbers, and there are {threads} threads");
            return Err(Refusal::value(key, message).help(ONE_OR_EACH));
        }
        let of = |list: Option<&[u64]>, thread: usize, known: u64| match list {
            None => known,
            Some([all]) => *all,
            Some(list) => list[thread],
        };
        let [(_, groups), (_, iterations)] = lists;
        let task = |thread: usize| {
            let known = known[thread.min(known.len() - 1)];
            let groups = of(groups, thread, known.groups);
            Groups { groups, iterations: of(iterations, thread, known.iterations) }
        };
        Ok((0..threads).map(task).collect())
    }
}

impl Groups {
    /// CPU time of the first `groups`.
    fn time(self, groups: u64, iteration_ps: u64) -> Span {
        let ps = u128::from(self.iterations) * u128::from(iteration_ps) * u128::from(groups);
        Span(u64::try_from(ps / 1000).unwrap_or(u64::MAX))
    }
}

impl Generator for ArceosTest {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(!self.tasks.is_empty(), "threads", 0, "at least 1")?;
        check(self.iteration_ps > 0, "iteration", 0, "above 0, for example \"2.28ns\"")?;
        for task in &self.tasks {
            let time = task.time(task.groups, self.iteration_ps);
            let why = "fewer or shorter: a task would compute for more than 100 days";
            check(time <= super::FOR_EVER, "groups", task.groups, why)?;
        }
        let Runs { runs, every, numbered_from, .. } = self.runs;
        check(runs > 0, "runs", 0, "at least 1")?;
        if runs > 1 {
            check(self.duration.is_none(), "runs", runs, "1, as there is a `duration`")?;
            check_period("every", every)?;
        }
        let last = self.tasks.len() as u64 * u64::from(runs) + u64::from(numbered_from);
        check(last <= MAX_THREADS as u64, "runs", runs, "fewer: there are above 65536 tasks")?;
        self.duration.map_or(Ok(()), |duration| check_period("duration", duration))
    }

    fn endless(&self) -> bool {
        false
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let runs = f64::from(self.runs.runs);
        let groups: f64 = self.tasks.iter().map(|task| task.groups as f64).sum();
        let iterations = self.tasks.iter().map(|task| task.groups as f64 * task.iterations as f64);
        let work = iterations.sum::<f64>() * self.iteration_ps as f64 / 1000.0;
        let last = self.runs.at.0 as f64 + (runs - 1.0) * self.runs.every.0 as f64;
        let Some(duration) = earlier(self.duration.map(|span| self.runs.at + span), until) else {
            return Extent { steps: runs * groups, work: runs * work, last, ..Extent::default() };
        };
        // What a duration cuts off is not done.
        let (time, room) = (duration.0 as f64, duration.0 as f64 * cpus as f64);
        let share = (room / (runs * work)).min(1.0);
        let (steps, work) = (runs * groups * share, runs * work * share);
        Extent { steps, work, last: last.min(time), ..Extent::default() }
    }

    fn needs(&self) -> Needs {
        self.settings.needs()
    }

    fn build(&self, _: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        Ok(Box::new(ArceosTestLoad {
            maker: Maker::new(&self.settings, true),
            plan: self.clone(),
            arrived: 0,
            done: vec![0; self.tasks.len() * self.runs.runs as usize],
            over: false,
            tasks: PerTask::default(),
        }))
    }
}

struct ArceosTestLoad {
    maker: Maker,
    plan: ArceosTest,
    /// How many tasks have arrived, without the one that counts.
    arrived: usize,
    /// Groups that each task has done, having run again since.
    done: Vec<u64>,
    /// The groups have been counted.
    over: bool,
    tasks: PerTask<Option<Task>>,
}

/// A task that has started.
#[derive(Clone)]
enum Task {
    /// It counts what the others have done.
    Main(Main),
    /// It computes.
    Worker(Worker),
}

/// What the task does next that counts, all on a CPU but the first.
#[derive(Clone)]
enum Main {
    Arrive,
    Sleep,
    Wake,
    Tell(VecDeque<Measured>),
}

#[derive(Clone)]
struct Worker {
    /// Which of the tasks of all runs, in the order in which they are created.
    number: usize,
    created: Time,
    /// Its first instruction.
    began: Time,
    step: Step,
}

/// What a worker does next.
#[derive(Clone, Copy)]
enum Step {
    Arrive,
    Begin,
    Yield,
    Back,
    Tell(Measured),
    Exit,
}

impl ArceosTestLoad {
    fn has_main(&self) -> bool {
        self.plan.duration.is_some()
    }

    /// What the task does that is created as this one.
    fn groups(&self, number: usize) -> Groups {
        self.plan.tasks[number % self.plan.tasks.len()]
    }

    /// The number that it has in what is measured.
    fn thread(&self, number: usize) -> u16 {
        self.plan.runs.numbered_from + number as u16
    }

    /// How much each of the tasks has done.
    fn counts(&self) -> VecDeque<Measured> {
        let plan = self.plan.tasks.iter().zip(&self.done).enumerate();
        plan.map(|(number, (task, &done))| Measured::Groups {
            thread: self.thread(number),
            groups: u32::try_from(done).unwrap_or(u32::MAX),
            work: task.time(done, self.plan.iteration_ps),
        })
        .collect()
    }

    fn step_main(&mut self, mut main: Main, task: TaskId, now: Time) -> Op {
        let op = match &mut main {
            Main::Arrive => {
                main = Main::Sleep;
                Op::Run(Span::ZERO)
            }
            Main::Sleep => {
                main = Main::Wake;
                let end = self.plan.runs.at + self.plan.duration.unwrap_or_default();
                Op::Sleep(end.since(now))
            }
            Main::Wake => {
                main = Main::Tell(VecDeque::new());
                Op::Run(Span::ZERO)
            }
            Main::Tell(counts) => {
                if !std::mem::replace(&mut self.over, true) {
                    *counts = self.counts();
                }
                counts.pop_front().map_or(Op::Exit, Op::Measure)
            }
        };
        self.tasks[task] = Some(Task::Main(main));
        op
    }

    fn step_worker(&mut self, mut worker: Worker, task: TaskId, now: Time) -> Op {
        if matches!(worker.step, Step::Begin) {
            worker.began = now;
        }
        let number = worker.number;
        let (step, op) = match worker.step {
            Step::Arrive => (Step::Begin, Op::Run(Span::ZERO)),
            Step::Yield => (Step::Back, Op::Yield),
            Step::Begin => self.next(&worker, now),
            Step::Back => {
                self.done[number] += 1;
                self.next(&worker, now)
            }
            Step::Tell(measured) => (Step::Exit, Op::Measure(measured)),
            Step::Exit => (Step::Exit, Op::Exit),
        };
        worker.step = step;
        self.tasks[task] = Some(Task::Worker(worker));
        op
    }

    /// The next group, or the end.
    fn next(&self, worker: &Worker, now: Time) -> (Step, Op) {
        if self.over {
            return (Step::Exit, Op::Exit);
        }
        let (task, done) = (self.groups(worker.number), self.done[worker.number]);
        if done < task.groups {
            let time = |groups| task.time(groups, self.plan.iteration_ps);
            return (Step::Yield, Op::Run(time(done + 1) - time(done)));
        }
        let thread = self.thread(worker.number);
        let finished = Measured::Finished { thread, time: now.since(worker.created) };
        let left = Measured::Left { thread, time: now.since(worker.began) };
        (Step::Tell(left), Op::Measure(finished))
    }
}

impl Load for ArceosTestLoad {
    fn program(&self) -> Option<Program> {
        let list = |number: fn(&Groups) -> u64| -> String {
            let each = self.plan.tasks.iter().map(|task| number(task).to_string());
            each.collect::<Vec<_>>().join(",")
        };
        let mut arguments = vec![
            ("groups", list(|task| task.groups)),
            ("iterations", list(|task| task.iterations)),
        ];
        if let Some(duration) = self.plan.duration {
            arguments.push(("duration", duration.0.to_string()));
        }
        let Runs { at, runs, every, numbered_from } = self.plan.runs;
        if numbered_from > 0 {
            return None;
        }
        if at > Time::ZERO {
            arguments.push(("at", at.0.to_string()));
        }
        if runs > 1 {
            arguments.push(("runs", runs.to_string()));
            arguments.push(("every", every.0.to_string()));
        }
        Some(Program { name: self.plan.case.name(), arguments })
    }

    #[inline]
    fn peek(&self) -> Time {
        let (tasks, runs) = (self.plan.tasks.len(), self.plan.runs);
        // Where there is another task that counts, there is one run.
        let run = if self.has_main() { self.arrived / (tasks + 1) } else { self.arrived / tasks };
        let over = run >= runs.runs as usize;
        if over { Time::NEVER } else { runs.at + Span(runs.every.0 * run as u64) }
    }

    fn outside(&mut self) -> Outside {
        let now = self.peek();
        self.arrived += 1;
        Outside::Arrival(self.maker.make(now))
    }

    fn start(&mut self, task: TaskId, now: Time) {
        let before = 1 + usize::from(self.has_main());
        let started = match self.arrived.checked_sub(before) {
            None => Task::Main(Main::Arrive),
            Some(number) => {
                Task::Worker(Worker { number, created: now, began: now, step: Step::Arrive })
            }
        };
        self.tasks.set(task, Some(started));
    }

    fn step(&mut self, task: TaskId, now: Time) -> Op {
        match self.tasks[task].take() {
            Some(Task::Worker(worker)) => self.step_worker(worker, task, now),
            Some(Task::Main(main)) => self.step_main(main, task, now),
            None => Op::Exit,
        }
    }

    /// All that is left: tasks that yield do not block.
    fn burst(&self, task: TaskId, run: Span) -> Span {
        let Some(Task::Worker(worker)) = &self.tasks[task] else { return run };
        let (task, done) = (self.groups(worker.number), self.done[worker.number]);
        let time = |groups| task.time(groups, self.plan.iteration_ps);
        time(task.groups).saturating_sub(time(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::play;

    fn test(tasks: &[(u64, u64)], iteration_ps: u64, duration: Option<Span>) -> ArceosTest {
        let task = |&(groups, iterations): &(u64, u64)| Groups { groups, iterations };
        let (settings, tasks) = (Settings::default(), tasks.iter().map(task).collect());
        let runs = Runs::default();
        ArceosTest { case: ArceosCase::Equal, settings, tasks, iteration_ps, duration, runs }
    }

    fn ops(test: &ArceosTest, serial: usize) -> Vec<Op> {
        let played = play(test.build(1, 1).unwrap(), Time::NEVER, 1);
        played.of(serial).into_iter().map(|(_, op)| op).collect()
    }

    /// Groups of 1.5 ns end at 1.5, 3 and 4.5 ns.
    #[test]
    fn a_group_takes_whole_ns_and_all_take_what_their_iterations_take() {
        let run = |ns| Op::Run(Span(ns));
        let of = |time| (Span(time), 0);
        let (finish, thread) = of(4);
        let end = |measured| Op::Measure(measured);
        let expected = [
            run(0),
            run(1),
            Op::Yield,
            run(2),
            Op::Yield,
            run(1),
            Op::Yield,
            end(Measured::Finished { thread, time: finish }),
            end(Measured::Left { thread, time: finish }),
            Op::Exit,
        ];
        assert_eq!(ops(&test(&[(3, 3)], 500, None), 0), expected);
    }

    #[test]
    fn a_task_without_groups_only_leaves() {
        let none = Span::ZERO;
        let expected = [
            Op::Run(none),
            Op::Measure(Measured::Finished { thread: 1, time: none }),
            Op::Measure(Measured::Left { thread: 1, time: none }),
            Op::Exit,
        ];
        assert_eq!(ops(&test(&[(1, 1), (0, 7)], 1000, None), 1), expected);
    }

    /// The published sizes: groups, and CPU time of all of them, in the order of creation.
    #[test]
    fn the_cases_have_the_work_of_the_code() {
        let us = |of: ArceosCase| -> Vec<(u64, u64)> {
            let time = |task: Groups| task.time(task.groups, of.iteration_ps()).0 / 1000;
            of.tasks().into_iter().map(|task| (task.groups, time(task))).collect()
        };
        assert_eq!(us(ArceosCase::Equal), [(25, 285_000); 4]);
        assert_eq!(us(ArceosCase::Yield), [(100_000, 22_800); 4]);
        let long_first =
            [(8, 1_824_000), (500_000, 1140), (200_000, 912), (100_000, 1140), (50_000, 1140)];
        assert_eq!(us(ArceosCase::Realtime), long_first);
        let short = (2_000_000, 456_000);
        assert_eq!(us(ArceosCase::Occupy), [(80, 1_824_000), short, short, (0, 0), (0, 0)]);
        let unequal = ArceosCase::Unequal;
        let group = unequal.tasks().into_iter().map(|task| task.time(1, 930).0);
        assert_eq!(group.collect::<Vec<_>>(), [46_500_000, 93_000_000, 139_500_000, 186_000_000]);
        assert_eq!(unequal.duration(), Some(Span::from_s(5)));
    }

    #[test]
    fn all_is_played_in_the_order_of_creation_and_to_the_end() {
        for case in [ArceosCase::Equal, ArceosCase::Realtime] {
            let test = ArceosTest {
                case,
                settings: Settings { name: Some("t".into()), ..Settings::default() },
                tasks: case.tasks(),
                iteration_ps: case.iteration_ps(),
                duration: None,
                runs: Runs::default(),
            };
            let played = play(test.build(1, 1).unwrap(), Time::NEVER, 1);
            assert_eq!(played.new.len(), test.tasks.len());
            assert_eq!(played.new[1].1.name.as_deref(), Some("t-1"));
            for (serial, task) in test.tasks.iter().enumerate() {
                let of = played.of(serial);
                let yields = of.iter().filter(|(_, op)| *op == Op::Yield).count() as u64;
                let runs = of.iter().filter_map(|(_, op)| match op {
                    Op::Run(span) => Some(span.0),
                    _ => None,
                });
                let work = task.time(task.groups, test.iteration_ps).0;
                assert_eq!((yields, runs.sum::<u64>()), (task.groups, work), "{case:?} {serial}");
            }
        }
    }

    /// On CPUs of their own, in 105 ms: ten groups of 10 ms and three of 30 ms.
    #[test]
    fn groups_are_counted_by_a_task_that_sleeps() {
        let ms = Span::from_ms;
        let unequal = test(&[(50, 10), (50, 30)], 1_000_000_000, Some(ms(105)));
        let counted =
            |thread, groups, work| Op::Measure(Measured::Groups { thread, groups, work: ms(work) });
        let sleep = [Op::Run(Span::ZERO), Op::Sleep(ms(105)), Op::Run(Span::ZERO)];
        let (first, second) = (counted(0, 10, 100), counted(1, 3, 90));
        let expected: Vec<Op> = sleep.into_iter().chain([first, second, Op::Exit]).collect();
        assert_eq!(ops(&unequal, 0), expected);
        assert!(ops(&unequal, 1).ends_with(&[Op::Yield, Op::Exit]));
    }

    /// Two tasks, again every 7 ms from 2 ms on, each with clocks of its own.
    #[test]
    fn a_test_is_run_again() {
        let ms = Span::from_ms;
        let at = Time::ZERO + ms(2);
        let runs = Runs { at, runs: 3, every: ms(7), numbered_from: 4 };
        let test = ArceosTest { runs, ..test(&[(1, 1), (1, 2)], 1_000_000_000, None) };
        let played = play(test.build(1, 1).unwrap(), Time::NEVER, 1);
        let arrivals: Vec<u64> = played.new.iter().map(|(time, _)| time.0 / 1_000_000).collect();
        assert_eq!(arrivals, [2, 2, 9, 9, 16, 16]);
        for serial in 0..6u16 {
            let work = ms(1 + u64::from(serial % 2));
            let ops = ops(&test, serial.into());
            assert_eq!(ops[1..3], [Op::Run(work), Op::Yield]);
            let finished = Measured::Finished { thread: 4 + serial, time: work };
            assert_eq!(ops[3], Op::Measure(finished));
        }
        assert_eq!(test.build(1, 1).unwrap().program(), None, "no program has these numbers");
    }

    #[test]
    fn a_kernel_is_told_of_the_runs() {
        let runs = Runs { runs: 2, every: Span(5), ..Runs::default() };
        let test = ArceosTest { runs, ..test(&[(1, 1)], 1000, None) };
        let program = test.build(1, 1).unwrap().program().unwrap();
        assert_eq!(program.arguments[2..], [("runs", "2".into()), ("every", "5".into())]);
    }

    #[test]
    fn what_is_not_possible_is_refused() {
        let wrong = |test: ArceosTest| test.validate(1).expect_err("it is wrong").to_string();
        let right = || test(&[(1, 1)], 1000, None);
        assert!(right().validate(1).is_ok());
        assert_eq!(wrong(ArceosTest { tasks: vec![], ..right() }), "`threads` = 0: at least 1");
        let none = ArceosTest { iteration_ps: 0, ..right() };
        assert_eq!(wrong(none), "`iteration` = 0: above 0, for example \"2.28ns\"");
        let long = test(&[(1, 1), (1 << 40, 1 << 40)], 1000, None);
        let why = "fewer or shorter: a task would compute for more than 100 days";
        assert_eq!(wrong(long), format!("`groups` = {}: {why}", 1u64 << 40));
        let never = wrong(ArceosTest { duration: Some(Span::ZERO), ..right() });
        assert!(never.starts_with("`duration` = 0"), "{never}");
        let again = |duration, every| ArceosTest {
            duration,
            runs: Runs { runs: 2, every, ..Runs::default() },
            ..right()
        };
        assert!(again(None, Span(1)).validate(1).is_ok());
        assert!(wrong(again(None, Span::ZERO)).starts_with("`every` = 0"));
        assert_eq!(wrong(again(Some(Span(1)), Span(1))), "`runs` = 2: 1, as there is a `duration`");
        let numbered_from = u16::MAX;
        let many =
            ArceosTest { runs: Runs { numbered_from, ..again(None, Span(1)).runs }, ..right() };
        assert_eq!(wrong(many), "`runs` = 2: fewer: there are above 65536 tasks");
    }
}
