//! The scheduler tests of ArceOS, simulated, in cases small enough to work out by hand, and as
//! PBG's report has them.

use crate::support::{build, ms};
use anysched_core::registry::learned;
use anysched_core::{Machine, Span};
use anysched_host::{Costs, Setup};
use anysched_measure::{Benchmark, Metrics};
use anysched_sim::Sim;
use anysched_workload::generate::{ArceosCase, ArceosTest, Generator, Groups, Runs, Settings};

type Policy = (&'static str, &'static [(&'static str, &'static str)]);

const FCFS: Policy = ("fcfs", &[]);
const RR: Policy = ("rr", &[("tick", "10ms")]);
const REPORT: [Policy; 5] =
    [FCFS, RR, ("cfs-arceos", &[]), ("sjf-ewma", &[]), ("mlfq-arceos", &[])];

fn run(test: &ArceosTest, (policy, settings): Policy, costs: Costs) -> Metrics {
    let setup = Setup { costs, ..Setup::new(Machine::flat(1).unwrap()) };
    let scheduler = build(&setup.machine, policy, settings);
    Sim::new(setup, scheduler, test.build(1, 1).unwrap()).run().unwrap().0
}

fn pick(ns: u64) -> Costs {
    Costs { pick_base: Span(ns), ..Costs::default() }
}

fn report(case: ArceosCase) -> ArceosTest {
    ArceosTest {
        case,
        settings: Settings::default(),
        tasks: case.tasks(),
        iteration_ps: case.iteration_ps(),
        duration: case.duration(),
        runs: Runs::default(),
    }
}

/// Tasks with these groups, of which an iteration takes 1 ms.
fn small(tasks: &[(u64, u64)], duration: Option<Span>) -> ArceosTest {
    let task = |&(groups, iterations): &(u64, u64)| Groups { groups, iterations };
    ArceosTest {
        case: ArceosCase::Equal,
        settings: Settings::default(),
        tasks: tasks.iter().map(task).collect(),
        iteration_ps: 1_000_000_000,
        duration,
        runs: Runs::default(),
    }
}

/// When the tasks are done since they came, and since their first instruction, in ms.
fn times(metrics: &Metrics) -> Vec<(u64, u64)> {
    let ms = |time: Option<Span>| time.unwrap_or(Span::MAX).0 / 1_000_000;
    metrics.benchmark.tasks.iter().map(|task| (ms(task.finished), ms(task.left))).collect()
}

fn groups(benchmark: &Benchmark) -> Vec<u32> {
    benchmark.tasks.iter().filter_map(|task| task.counted).map(|(groups, _)| groups).collect()
}

const TWO: [(u64, u64); 2] = [(3, 10), (3, 10)];

/// Groups end at 10, 20, …, 60 ms, in turn. Then the first task runs again and is done, and so is
/// the second, which began at 10 ms.
#[test]
fn two_tasks_take_turns_in_a_fifo() {
    let metrics = run(&small(&TWO, None), FCFS, Costs::default());
    assert_eq!(times(&metrics), [(60, 60), (60, 50)]);
    assert_eq!([metrics.dispatches, metrics.context_switches], [8, 8]);
    assert_eq!(metrics.busy, ms(60));
}

/// With 1 ms for a pick, groups run at 1, 12, 23, 34, 45 and 56 ms; the seventh pick is over at 67
/// ms, the eighth at 68 ms.
#[test]
fn a_pick_delays_the_clock_of_who_is_picked() {
    let metrics = run(&small(&TWO, None), FCFS, pick(1_000_000));
    assert_eq!(times(&metrics), [(67, 66), (68, 56)]);
    assert_eq!([metrics.busy, metrics.overhead], [ms(60), ms(8)]);
}

/// In each 20 ms: 4 ms for one, 4 ms for the other, twice, and then 2 ms for each, after which it
/// yields. The second begins at 4 ms.
#[test]
fn two_tasks_take_turns_of_4_ms() {
    let metrics = run(&small(&TWO, None), ("rr", &[("quantum", "4ms")]), Costs::default());
    assert_eq!(times(&metrics), [(60, 60), (60, 56)]);
    assert_eq!(metrics.dispatches, 3 * 6 + 2);
}

/// Groups of 10 and 20 ms, slices of 10 ms: the first runs at 0, 20 and 40 ms and is done at 60 ms,
/// the second at 10, 30 and 50 ms and from then on alone.
#[test]
fn a_slice_cuts_a_long_group() {
    let uneven = small(&[(3, 10), (3, 20)], None);
    let metrics = run(&uneven, ("rr", &[("quantum", "10ms")]), Costs::default());
    assert_eq!(times(&metrics), [(60, 60), (90, 80)]);
    let metrics = run(&uneven, FCFS, Costs::default());
    assert_eq!(times(&metrics), [(90, 90), (90, 80)]);
}

/// Groups of 10 and 30 ms under FIFO: they end at 10, 40, 50, 80, 90 and 120 ms. At 100 ms the task
/// that counts goes to the tail, behind the first, which does a fourth group until 130 ms. Then
/// the first has run again after three groups, the second after two.
#[test]
fn groups_are_counted_when_the_policy_lets_them_be() {
    let metrics = run(&small(&[(50, 10), (50, 30)], Some(ms(100))), FCFS, Costs::default());
    let benchmark = &metrics.benchmark;
    assert_eq!(groups(benchmark), [3, 2]);
    assert_eq!(metrics.makespan().unwrap(), ms(130));
    assert_eq!(metrics.unfinished, 0);
    assert!((benchmark.groups_jain().unwrap() - 25.0 / 26.0).abs() < 1e-12);
    assert!((benchmark.groups_time_jain().unwrap() - 0.9).abs() < 1e-12, "30 ms and 60 ms");
}

/// The table of E1 under FIFO is 1137, 1126, 1114 and 1101 ms: 25 rounds of 4 groups, of which the
/// later tasks do not count what was before their first turn.
#[test]
fn equal_work_leaves_in_the_reverse_order() {
    let metrics = run(&report(ArceosCase::Equal), FCFS, pick(500));
    assert_eq!(times(&metrics), [(1140, 1140), (1140, 1128), (1140, 1117), (1140, 1105)]);
    let rr = run(&report(ArceosCase::Equal), RR, pick(500));
    assert_eq!(times(&rr), times(&metrics), "no group lasts five ticks");
}

/// MLFQ's fairness hangs on how 10 ms ticks fall into groups: with 11 or 12 ms, tasks leave 10 ms
/// apart, with 11.4 ms one of them leaves 300 ms before the others.
#[test]
fn under_mlfq_equal_work_depends_on_the_phase_of_ticks() {
    let mut test = report(ArceosCase::Equal);
    let mut spread = |iteration_ps| {
        test.iteration_ps = iteration_ps;
        let metrics = run(&test, ("mlfq-arceos", &[]), Costs::default());
        let left = times(&metrics).into_iter().map(|(_, left)| left);
        left.clone().max().unwrap() - left.min().unwrap()
    };
    assert_eq!([2200, 2400].map(&mut spread), [30, 30]);
    assert!(spread(2280) > 300);
}

/// Of each task, at most the group that is being done or is done and not told is not counted; the
/// task that counts waits at most for a group of each.
#[test]
fn counts_of_unequal_groups_are_5_s_of_work() {
    let test = report(ArceosCase::Unequal);
    for policy in REPORT {
        let metrics = run(&test, policy, Costs::default());
        let counted = metrics.benchmark.tasks.iter().filter_map(|task| task.counted);
        let work: u64 = counted.map(|(_, work)| work.0 / 1_000_000).sum();
        assert!((5000 - 465..=5000 + 465).contains(&work), "{policy:?}: {work} ms");
        let of = |(groups, number): (u32, u64)| u64::from(groups) * number * 465 / 10;
        let groups = groups(&metrics.benchmark).into_iter().zip(1..).map(of);
        assert!(groups.sum::<u64>().abs_diff(work) < 4, "{policy:?}");
    }
}

/// As the report counts them. That needs groups of 45.5 to 47.2 ms: the counting task is woken
/// while the last task does its 11th group, so that 106 to 110 units have taken 5 s.
#[test]
fn unequal_groups_in_a_fifo_are_counted_as_in_the_report() {
    let mut test = report(ArceosCase::Unequal);
    for iteration_ps in [912, 930, 942] {
        test.iteration_ps = iteration_ps;
        assert_eq!(groups(&run(&test, FCFS, Costs::default()).benchmark), [11, 11, 11, 10]);
    }
    for iteration_ps in [908, 946] {
        test.iteration_ps = iteration_ps;
        assert_ne!(groups(&run(&test, FCFS, Costs::default()).benchmark), [11, 11, 11, 10]);
    }
}

/// 400,000 yields and a last pick for each task: with 500 ns a pick, 291.2 ms.
#[test]
fn yields_take_what_they_cost() {
    let metrics = run(&report(ArceosCase::Yield), FCFS, pick(500));
    assert_eq!(metrics.dispatches, 400_004);
    assert_eq!(metrics.overhead, Span(400_004 * 500));
    assert_eq!(metrics.busy, Span(400_000 * 228));
    let finish = |number: usize| metrics.benchmark.tasks[number].finished.unwrap().0;
    assert_eq!(finish(3), 400_000 * 728 + 4 * 500);
}

/// The report has the long task finish last under FIFO, at 2719 ms. It has eight groups of 228 ms,
/// and a turn in each of the first eight rounds, in which the others use 8 times 41 ns and five
/// picks: it is first, at 1824 ms.
#[test]
fn under_fifo_the_long_task_is_done_first() {
    let metrics = run(&report(ArceosCase::Realtime), FCFS, pick(500));
    let finish = finished(&metrics);
    assert_eq!(finish[0], 1824);
    assert!(finish[1..].iter().all(|&short| short > finish[0]), "{finish:?}");
    // In the order in which they need fewer and fewer rounds.
    assert!(finish[1..].is_sorted_by(|more, fewer| more > fewer), "{finish:?}");
}

fn finished(metrics: &Metrics) -> Vec<u64> {
    times(metrics).into_iter().map(|(finish, _)| finish).collect()
}

/// Times as a kernel takes them that reads the clock at both ends of a turn, which are longer than
/// the work: 50,000 · (22.8 + 460) ns and so on.
const GIVEN: Policy = (
    "pbg",
    &[
        ("profile_source", "given"),
        ("profile", "0=1824ms/9 1=231.1ms/500001 2=92.9ms/200001 3=47.1ms/100001 4=24.1ms/50001"),
    ],
);

/// With the shortest task first and 460 ns a turn: 50,000 · 482.8 ns = 24.1 ms for the task created
/// last, then 100,000 · 471.4 ns, 200,000 · 464.56 ns and 500,000 · 462.28 ns, then 1824 ms. In sums
/// 24.1, 71.3, 164.2, 395.3 and 2219.3 ms, 574.9 ms on average.
#[test]
fn pbg_takes_the_shortest_task_first() {
    let metrics = run(&report(ArceosCase::Realtime), GIVEN, pick(460));
    assert_eq!(finished(&metrics), [2219, 395, 164, 71, 24]);
    assert_eq!((metrics.turnaround.mean() / 1e5).round(), 5749.0);
    assert_eq!(metrics.context_switches, 5);
    // By the clock that starts at the first turn, nobody has waited.
    let left = [1824, 231, 92, 47, 24];
    assert_eq!(times(&metrics).into_iter().map(|(_, left)| left).collect::<Vec<_>>(), left);
}

/// The CPU time of tasks alone, as the simulator measures it, is 1.14 ms for three of the four short
/// tasks, and 0.912 ms for that of 200,000 groups: that one is first, at 92.9 ms, and then the
/// others in the order of creation, 500,000 groups until 324.1 ms, 371.2 and 395.3 ms.
#[test]
fn pbg_goes_by_what_the_profile_has_measured() {
    let test = report(ArceosCase::Realtime);
    let setup = Setup { costs: pick(460), ..Setup::new(Machine::flat(1).unwrap()) };
    let scheduler = build(&setup.machine, "pbg", &[("mode", "profile")]);
    let (_, first, _) = Sim::new(setup, scheduler, test.build(1, 1).unwrap()).run().unwrap();
    let learned = learned(&first);
    let profile = learned.iter().find(|(name, _)| name == "profile").unwrap();
    let expected = "0=1.824s/9,1=1.14ms/500001,2=912us/200001,3=1.14ms/100001,4=1.14ms/50001";
    assert_eq!(profile.1, expected);
    let settings = [("profile", profile.1.as_str())];
    let scheduler = build(&Machine::flat(1).unwrap(), "pbg", &settings);
    let setup = Setup { costs: pick(460), ..Setup::new(Machine::flat(1).unwrap()) };
    let metrics = Sim::new(setup, scheduler, test.build(1, 1).unwrap()).run().unwrap().0;
    assert_eq!(finished(&metrics), [2219, 324, 92, 371, 395]);
}

/// PBG's only saving on yields is not to switch: with a price on that alone, one that gives way
/// takes as long as FIFO, and pays for each of the 400,004 turns.
#[test]
fn pbg_saves_switches() {
    let test = report(ArceosCase::Yield);
    let costs = || Costs { context_switch: Span(40), ..Costs::default() };
    const PROFILE: (&str, &str) =
        ("profile", "0=22.8ms/100001 1=22.8ms/100001 2=22.8ms/100001 3=22.8ms/100001");
    let stays = run(&test, ("pbg", &[PROFILE]), costs());
    assert_eq!(stays.overhead, Span(4 * 40));
    let gives_way = run(&test, ("pbg", &[PROFILE, ("on_yield", "last")]), costs());
    assert_eq!(gives_way.overhead, Span(400_004 * 40));
    assert_eq!(finished(&gives_way), finished(&run(&test, FCFS, costs())));
}
