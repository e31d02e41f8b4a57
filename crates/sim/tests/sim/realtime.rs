//! DM and EDF in the simulator beside the analysis of periodic tasks: the two have nothing in common
//! but the tasks.

use crate::support::{self, MS, at, build, model};
use anysched_core::{Machine, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_sim::Sim;
use anysched_theory::realtime::edf::{self, Verdict};
use anysched_theory::realtime::{Task, TaskSet, bounds, fixed};
use anysched_workload::generate::utilisations;
use anysched_workload::model::{ModelTask, Script};
use anysched_workload::rng::Rng;
use anysched_workload::{Load, NewTask, Op, Outside};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// In ms; all divide 720.
const PERIODS: [u64; 14] = [6, 8, 9, 10, 12, 15, 18, 20, 24, 30, 36, 40, 45, 60];
const US: u64 = 1_000;

/// Relative deadlines.
#[derive(Clone, Copy, PartialEq)]
enum Deadlines {
    Periods,
    Shorter,
    /// Or shorter.
    Longer,
}

/// Two to five tasks with different periods and deadlines, so that their order is not left to the
/// policy. Utilisations are whole permille that sum to `permille`: many sets fill the CPU exactly.
fn random_set(rng: &mut Rng, permille: u64, deadlines: Deadlines) -> TaskSet {
    let count = 2 + rng.below(4) as usize;
    let mut periods = PERIODS.to_vec();
    let shares = loop {
        let shares = utilisations(count, permille as f64 / 1000.0, rng);
        let mut shares: Vec<u64> = shares.iter().map(|share| (share * 1000.0) as u64).collect();
        shares[0] += permille - shares.iter().sum::<u64>();
        if shares.iter().all(|share| (1..=1000).contains(share)) {
            break shares;
        }
    };
    let mut tasks: Vec<Task> = Vec::new();
    for share in shares {
        let period = periods.swap_remove(rng.below(periods.len() as u64) as usize) * 1000 * US;
        let run = share * period / 1000;
        let deadline = loop {
            let deadline = match deadlines {
                Deadlines::Periods => period,
                Deadlines::Shorter => period - rng.below((period - run) / 2 + 1),
                Deadlines::Longer => period / 2 + rng.below(2 * period),
            };
            if tasks.iter().all(|task| task.deadline.0 != deadline) {
                break deadline;
            }
        };
        tasks.push(Task { deadline: Span(deadline), ..Task::new(Span(run), Span(period)) });
    }
    TaskSet::new(tasks).unwrap()
}

/// How jobs come to the policy.
#[derive(Clone, Copy, PartialEq)]
enum Jobs {
    /// A task does one after the other, and blocks between them if there is time.
    OneTask,
    /// Each is a task of its own, so that it has its own deadline also if it is released before
    /// the one before it is done.
    OneTaskEach,
}

/// A job, or a task that does all jobs of one periodic task.
#[derive(Clone, Copy)]
struct Running {
    number: usize,
    due: Time,
    ran: bool,
}

struct Periodic {
    tasks: Vec<Task>,
    jobs: Jobs,
    /// When each comes next from outside.
    next: Vec<Time>,
    arriving: Running,
    running: Vec<Option<Running>>,
    /// The largest response time of each.
    worst: Rc<RefCell<Vec<u64>>>,
}

impl Periodic {
    fn new(set: &TaskSet, offsets: &[u64], jobs: Jobs) -> Periodic {
        Periodic {
            tasks: set.tasks().to_vec(),
            jobs,
            next: offsets.iter().map(|&offset| Time(offset)).collect(),
            arriving: Running { number: 0, due: Time::ZERO, ran: false },
            running: Vec::new(),
            worst: Rc::new(RefCell::new(vec![0; set.tasks().len()])),
        }
    }
}

impl Load for Periodic {
    fn peek(&self) -> Time {
        *self.next.iter().min().unwrap()
    }

    fn outside(&mut self) -> Outside {
        let due = self.peek();
        let number = self.next.iter().position(|&next| next == due).unwrap();
        let task = self.tasks[number];
        self.next[number] = match self.jobs {
            Jobs::OneTask => Time::NEVER,
            Jobs::OneTaskEach => due + task.period,
        };
        self.arriving = Running { number, due, ran: false };
        Outside::Arrival(NewTask {
            period: Some(task.period),
            budget: Some(task.run),
            relative_deadline: Some(task.deadline),
            deadline: Some(due + task.deadline),
            ..NewTask::default()
        })
    }

    fn start(&mut self, id: TaskId, _: Time) {
        self.running.resize(self.running.len().max(id.index() + 1), None);
        self.running[id.index()] = Some(self.arriving);
    }

    fn step(&mut self, id: TaskId, now: Time) -> Op {
        let running = self.running[id.index()].as_mut().unwrap();
        let task = self.tasks[running.number];
        running.ran = !running.ran;
        if running.ran {
            return Op::Run(task.run);
        }
        let worst = &mut self.worst.borrow_mut()[running.number];
        *worst = (*worst).max((now - running.due).0);
        match self.jobs {
            Jobs::OneTaskEach => Op::Exit,
            Jobs::OneTask => {
                running.due += task.period;
                Op::Release { at: running.due, deadline: Some(running.due + task.deadline) }
            }
        }
    }
}

struct Played {
    misses: u64,
    worst: Vec<u64>,
}

/// One CPU, no costs.
fn play(policy: &str, set: &TaskSet, offsets: &[u64], jobs: Jobs, until: u64) -> Played {
    let load = Periodic::new(set, offsets, jobs);
    let worst = Rc::clone(&load.worst);
    // What was due at the end is late just behind it.
    let setup = Setup { until: Time(until + 1), ..Setup::new(Machine::flat(1).unwrap()) };
    let policy = build(&setup.machine, policy, &[]);
    let (metrics, ..) = Sim::new(setup, policy, load).run().unwrap();
    let worst = worst.borrow().clone();
    Played { misses: metrics.deadline_misses.get().unwrap(), worst }
}

/// How many sets there were, and of how many the analysis says what.
#[derive(Debug, Default)]
struct Count {
    sets: u32,
    fits: u32,
    full: u32,
    liu_layland: u32,
    hyperbolic: u32,
    density: u32,
    dm: u32,
    edf: u32,
}

/// What the analysis says of a set and what happens are the same.
fn check(set: &TaskSet, rng: &mut Rng, jobs: Jobs, count: &mut Count) {
    let responses = fixed::responses(set).unwrap();
    let dm = fixed::meets(set, &responses);
    let verdict = edf::verdict(set).unwrap();
    let edf = verdict == Verdict::Schedulable;
    let horizon = u64::try_from(set.horizon().unwrap()).unwrap();
    let together = vec![0; set.tasks().len()];

    let played = play("dm", set, &together, jobs, horizon);
    assert_eq!(played.misses == 0, dm, "DM: {set:?}");
    for (nth, response) in responses.iter().enumerate() {
        if let Some(response) = response {
            let found = u128::from(played.worst[nth]);
            assert_eq!(found, *response, "task {nth} of {set:?}");
        }
    }
    let played = play("edf", set, &together, jobs, 3 * horizon);
    assert_eq!(played.misses == 0, edf, "EDF: {set:?}");
    if let Verdict::Misses(Some(first)) = verdict {
        // The deadline is missed at that time, and none before.
        let at = u64::try_from(first.at).unwrap();
        assert_eq!(play("edf", set, &together, jobs, at - 1).misses, 0, "{first:?} {set:?}");
        assert!(play("edf", set, &together, jobs, at).misses > 0, "{first:?} {set:?}");
    }
    assert!(edf || !dm, "EDF meets what DM meets: {set:?}");

    let offsets: Vec<u64> = set.tasks().iter().map(|task| rng.below(task.period.0)).collect();
    for (name, schedulable) in [("dm", dm), ("edf", edf)] {
        if schedulable {
            let played = play(name, set, &offsets, jobs, 2 * horizon);
            assert_eq!(played.misses, 0, "{name}, {offsets:?}: {set:?}");
            for (found, response) in played.worst.iter().zip(&responses) {
                let bound = response.unwrap_or(u128::MAX);
                assert!(name == "edf" || u128::from(*found) <= bound, "{offsets:?}: {set:?}");
            }
        }
    }

    let (liu_layland, hyperbolic) = (bounds::liu_layland(set), bounds::hyperbolic(set));
    let (fits, density) = (bounds::fits(set), bounds::dense_enough(set));
    if set.tasks().iter().all(|task| task.deadline == task.period) {
        assert_eq!(edf, fits, "{set:?}");
        assert!(dm || hyperbolic == Some(false), "{set:?}");
        assert!(hyperbolic == Some(true) || liu_layland == Some(false), "{set:?}");
    }
    assert!((edf || !density) && (fits || !edf), "{set:?}");
    count.sets += 1;
    count.fits += u32::from(fits);
    let permille = set.tasks().iter().map(|task| task.run.0 * 1000 / task.period.0).sum::<u64>();
    count.full += u32::from(permille == 1000);
    count.liu_layland += u32::from(liu_layland == Some(true));
    count.hyperbolic += u32::from(hyperbolic == Some(true));
    count.density += u32::from(density);
    count.dm += u32::from(dm);
    count.edf += u32::from(edf);
}

/// Sets of utilisations from 0.5 to 1.05: one in ten of exactly 1, two of more.
fn check_all(seed: &str, sets: u32, deadlines: Deadlines, jobs: Jobs) -> Count {
    let rng = &mut Rng::stream(1, seed);
    let mut count = Count::default();
    for nth in 0..sets {
        let permille = match nth % 10 {
            0 => 1000,
            1 | 2 => 1001 + rng.below(50),
            _ => 500 + rng.below(500),
        };
        let set = random_set(rng, permille, deadlines);
        check(&set, rng, jobs, &mut count);
    }
    println!("{count:?}");
    count
}

#[test]
fn deadlines_at_the_end_of_periods() {
    let count = check_all("periods", 500, Deadlines::Periods, Jobs::OneTask);
    assert!(count.full >= 50, "{count:?}");
    assert!((100..400).contains(&count.dm), "{count:?}");
    assert!((250..420).contains(&count.edf), "{count:?}");
    assert!(50 < count.liu_layland && count.liu_layland < count.hyperbolic, "{count:?}");
}

#[test]
fn deadlines_within_periods() {
    let count = check_all("shorter", 500, Deadlines::Shorter, Jobs::OneTask);
    assert!((100..400).contains(&count.dm), "{count:?}");
    assert!((150..400).contains(&count.edf) && count.edf < count.fits, "{count:?}");
    assert!(count.density > 30, "{count:?}");
}

#[test]
fn deadlines_beyond_periods() {
    for jobs in [Jobs::OneTask, Jobs::OneTaskEach] {
        let count = check_all("longer", 300, Deadlines::Longer, jobs);
        assert!((60..270).contains(&count.dm), "{count:?}");
        assert!((60..280).contains(&count.edf), "{count:?}");
    }
}

/// All times are a few ms, so that jobs often end at the very time at which others, or the next of
/// the same task, are released.
#[test]
fn coincidences() {
    let rng = &mut Rng::stream(1, "coincidences");
    let mut count = Count::default();
    while count.sets < 1000 {
        let tasks: Vec<Task> = (0..2 + rng.below(3)).map(|_| coarse_task(rng)).collect();
        let differ =
            |nth: usize| tasks[..nth].iter().all(|task| task.deadline != tasks[nth].deadline);
        let set = TaskSet::new(tasks.clone()).unwrap();
        if (0..tasks.len()).all(differ) && set.utilisation() <= 1.1 {
            check(&set, rng, Jobs::OneTask, &mut count);
        }
    }
    println!("{count:?}");
    assert!((200..800).contains(&count.dm) && (200..800).contains(&count.edf), "{count:?}");
}

fn coarse_task(rng: &mut Rng) -> Task {
    let period = [2, 3, 4, 6, 8, 12, 24][rng.below(7) as usize];
    let run = 1 + rng.below(period / 2);
    let deadline = run + rng.below(period - run + 1);
    Task {
        deadline: Span::from_ms(deadline),
        ..Task::new(Span::from_ms(run), Span::from_ms(period))
    }
}

/// The second task is done at 4 ms, when its next job is released. That job is due at 8 ms, and
/// the third task at 5 ms.
#[test]
fn a_job_that_follows_at_once_has_its_own_deadline() {
    let task = |run, period, deadline| Task {
        deadline: Span::from_ms(deadline),
        ..Task::new(Span::from_ms(run), Span::from_ms(period))
    };
    let set = TaskSet::new(vec![task(2, 8, 4), task(2, 4, 4), task(1, 20, 5)]).unwrap();
    assert_eq!(edf::verdict(&set), Ok(Verdict::Schedulable));
    for jobs in [Jobs::OneTask, Jobs::OneTaskEach] {
        assert_eq!(play("edf", &set, &[0; 3], jobs, 80 * MS).misses, 0);
    }
}

/// (period, run, relative deadline) in us.
type InUs = (u64, u64, u64);

/// Without a budget, so that the policy cannot tell where a job begins at once.
fn unbudgeted(&(period, work, deadline): &InUs) -> ModelTask {
    let us = Span::from_us;
    let release =
        Op::Release { at: Time(us(period).0), deadline: Some(Time(us(period + deadline).0)) };
    let script =
        Script { ops: vec![Op::Run(us(work)), release], rounds: u64::MAX, ..Script::default() };
    ModelTask {
        new: NewTask {
            period: Some(us(period)),
            relative_deadline: Some(us(deadline)),
            deadline: Some(Time(us(deadline).0)),
            ..NewTask::default()
        },
        arrives: Some(Time::ZERO),
        script: Arc::new(script),
    }
}

/// Three to six tasks of this utilisation in percent, give or take; deadlines are periods unless
/// `constrained`.
fn set_in_us(rng: &mut Rng, percent: u64, constrained: bool) -> Vec<InUs> {
    let count = 3 + rng.below(4);
    let mut set = Vec::new();
    for _ in 0..count {
        let period = 5_000 + rng.below(60) * 1_000;
        let share = percent * period / 100 / count;
        let work = share / 2 + rng.below(share + 1);
        let slack = if constrained { rng.below((period - work) / 2 + 1) } else { 0 };
        set.push((period, work, period - slack));
    }
    set
}

fn misses(name: &str, set: &[InUs]) -> u64 {
    let setup = Setup { until: at(4_000), ..Setup::new(Machine::flat(1).unwrap()) };
    let tasks = set.iter().map(unbudgeted).collect();
    support::number(support::play(setup, name, &[], model(tasks)).0.deadline_misses)
}

/// Whether every task meets its deadline if all are released at once (Joseph and Pandya 1986),
/// shortest relative deadline first.
fn analysis_says_schedulable(set: &[InUs]) -> bool {
    set.iter().enumerate().all(|(nth, &(_, work, deadline))| {
        let before = set.iter().enumerate();
        let before = before.filter(|&(other, task)| (task.2, other) < (deadline, nth));
        let before: Vec<&InUs> = before.map(|(_, task)| task).collect();
        let mut response = work;
        loop {
            let others = before.iter().map(|task| response.div_ceil(task.0) * task.1);
            let next = work + others.sum::<u64>();
            if next == response || next > deadline {
                return next <= deadline;
            }
            response = next;
        }
    })
}

#[test]
fn dm_misses_deadlines_exactly_where_analysis_says() {
    let rng = &mut Rng::stream(1, "dm");
    let mut schedulable = 0;
    for nth in 0..200 {
        let set = set_in_us(rng, 60 + nth % 40, true);
        let expected = analysis_says_schedulable(&set);
        schedulable += u64::from(expected);
        assert_eq!(misses("dm", &set) == 0, expected, "{set:?}");
    }
    assert!((50..150).contains(&schedulable), "{schedulable}");
}

#[test]
fn edf_misses_none_up_to_full_load_and_some_beyond() {
    let rng = &mut Rng::stream(2, "edf");
    let (mut fits, mut dm_fails) = (0, 0);
    for nth in 0..200 {
        let set = set_in_us(rng, 80 + nth % 40, false);
        let load: f64 = set.iter().map(|task| task.1 as f64 / task.0 as f64).sum();
        if load < 1.0 {
            assert_eq!(misses("edf", &set), 0, "{set:?}");
            fits += 1;
            dm_fails += u64::from(misses("dm", &set) > 0);
        } else if load > 1.05 {
            assert!(misses("edf", &set) > 0, "{set:?}");
        }
    }
    assert!(fits > 50 && dm_fails > 0, "{fits} {dm_fails}");
}
