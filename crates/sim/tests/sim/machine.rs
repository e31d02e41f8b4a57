//! What the machine does to tasks, in cases small enough to work out by hand: costs, SMT, ticks,
//! hotplug, affinity, and the ways in which tasks wait for each other.

use crate::support::{self, MS, at, build, completions, model, ms, play, run, sum, task};
use anysched_core::call::Call;
use anysched_core::{CpuId, CpuSet, Cx, Machine, Pick, Scheduler, Span, Time, scheduler_by_call};
use anysched_host::{Contention, Costs, ParamChange, Setup};
use anysched_sim::{Sim, SimError};
use anysched_workload::model::{Model, ModelTask};
use anysched_workload::{Barrier, Channel, Load, Lock, NewTask, Op, Outside, Sizes};

fn cpus(n: usize) -> Setup {
    Setup::new(Machine::flat(n).unwrap())
}

#[test]
fn costs_delay_tasks_but_are_not_their_service() {
    let mut setup = cpus(1);
    setup.costs = Costs { context_switch: ms(1), pick_base: Span::from_us(10), ..Costs::default() };
    let load = model(vec![task(0, vec![run(4)]), task(0, vec![run(4)])]);
    let (metrics, results) = play(setup, "rr", &[("quantum", "2ms")], load);
    // Four slices, each another task than before: 4 · (1.01 + 2) ms.
    assert_eq!(results[1].completion, Time(4 * 3_010_000));
    assert_eq!(results[0].completion, Time(3 * 3_010_000));
    assert_eq!(results[0].service, ms(4));
    assert_eq!(metrics.context_switches, 4);
    assert_eq!([metrics.busy, metrics.overhead], [ms(8), Span(4 * 1_010_000)]);
}

#[test]
fn charged_costs_are_told_and_are_in_slices_but_are_not_service() {
    let mut setup = cpus(1);
    let half = Span::from_us(500);
    let costs = Costs { context_switch: half, pick_base: half, ..Costs::default() };
    setup.costs = Costs { charged: true, ..costs.clone() };
    let load = || model(vec![task(0, vec![run(2)]), task(0, vec![run(2)])]);
    let (metrics, results) = play(setup.clone(), "rr", &[("quantum", "2ms")], load());
    // Each slice of 2 ms has 1 ms of work in it.
    assert_eq!(completions(&results), [6, 8]);
    assert_eq!([results[0].service, results[1].service], [ms(2); 2]);
    assert_eq!([metrics.busy, metrics.overhead], [ms(4), ms(4)]);
    // Otherwise each has all of it.
    setup.costs = costs;
    assert_eq!(completions(&play(setup, "rr", &[("quantum", "2ms")], load()).1), [3, 6]);
}

#[test]
fn a_task_that_is_picked_again_switches_for_nothing() {
    let mut setup = cpus(1);
    setup.costs.context_switch = ms(1);
    let load = model(vec![task(0, vec![run(6)])]);
    let (metrics, results) = play(setup, "rr", &[("quantum", "2ms")], load);
    assert_eq!([metrics.dispatches, metrics.context_switches], [3, 1]);
    assert_eq!(completions(&results), [7]);
}

#[test]
fn moving_costs_by_distance() {
    let mut setup = Setup::new(Machine::parse("2 nodes x 2 cores").unwrap());
    setup.costs.migrate_core = ms(1);
    setup.costs.migrate_node = ms(3);
    let pinned = |cpu| Op::SetAffinity(CpuSet::of([CpuId(cpu)]));
    let ops = vec![pinned(0), run(1), pinned(1), run(1), pinned(2), run(1), pinned(3), run(1)];
    let (metrics, results) = play(setup, "fcfs", &[], model(vec![task(0, ops)]));
    // 4 ms of work, two moves within a cache, one between nodes.
    assert_eq!(completions(&results), [4 + 1 + 3 + 1]);
    assert_eq!([metrics.migrations, metrics.migrations_node], [3, 1]);
}

#[test]
fn enqueueing_costs_the_waker() {
    let mut setup = cpus(2);
    setup.costs.enqueue_base = ms(1);
    let mut load = model(vec![
        task(0, vec![Op::Wait(Channel(0)), run(2)]),
        task(0, vec![run(3), Op::Signal(Channel(0)), run(2)]),
    ]);
    load.sizes.channels = 1;
    let (_, results) = play(setup, "fcfs", &[], load);
    // Both arrivals keep CPU 0 busy until 2 ms; the second task runs on CPU 1 from 0 on, so that
    // it signals at 3 ms, spends 1 ms on that and has 2 ms to do; the first runs at once.
    assert_eq!(completions(&results), [5, 6]);
}

#[test]
fn no_time_is_lost_on_a_cpu_that_goes_idle_with_costs_to_pay() {
    let mut setup = cpus(2);
    setup.costs.enqueue_base = ms(1);
    let mut pinned = task(6, vec![run(2)]);
    pinned.new.affinity = CpuSet::of([CpuId(1)]);
    let (metrics, results) = play(setup, "fcfs", &[], model(vec![task(0, vec![run(5)]), pinned]));
    // CPU 0 pays for its own task's arrival and, at 6 ms when that is done, for the other one's.
    assert_eq!(completions(&results), [6, 8]);
    assert_eq!(metrics.busy, ms(7));
    assert_eq!(sum([metrics.busy, metrics.overhead, metrics.idle]), ms(16));
}

#[test]
fn a_contended_lock_serves_cpus_in_turn() {
    let mut setup = cpus(2);
    setup.costs.lock_hold = ms(1);
    let load = model(vec![task(0, vec![run(4)]), task(0, vec![run(4)])]);
    let (metrics, results) = play(setup, "fcfs", &[], load);
    // Two arrivals hold the lock until 2 ms (CPU 0 pays), then CPU 0 picks until 3, CPU 1 until 4.
    // The pick of CPU 0 pays the wait and its own arrivals: see the sum.
    let end = metrics.makespan().unwrap();
    assert_eq!(sum([metrics.overhead, metrics.idle]), end + end - ms(8));
    assert!(results[1].completion > at(4) && results[0].completion > at(4));
}

#[test]
fn smt_siblings_slow_each_other_down() {
    let mut setup = Setup::new(Machine::parse("1 cores x 2 threads").unwrap());
    setup.smt_speed = 512;
    let load = model(vec![task(0, vec![run(4)]), task(0, vec![run(10)])]);
    let (metrics, results) = play(setup, "fcfs", &[], load);
    // Both at half speed until the first is done at 8 ms with 4 ms of the second's work done;
    // the other 6 ms go at full speed.
    assert_eq!(completions(&results), [8, 14]);
    assert_eq!(results[1].service, ms(10));
    assert_eq!(metrics.busy, ms(22));
}

/// A task of this intensity that does `ops` from the beginning, on any CPU or one.
fn heavy(intensity: u8, cpu: Option<u16>, ops: Vec<Op>) -> ModelTask {
    let mut task = task(0, ops);
    task.new.intensity = intensity;
    task.new.affinity = cpu.map_or(CpuSet::All, |cpu| CpuSet::of([CpuId(cpu)]));
    task
}

#[test]
fn tasks_that_use_the_memory_slow_each_other_down() {
    let mut setup = Setup::new(Machine::parse("2 llcs x 2 cores x 2 threads").unwrap());
    setup.contention = Contention { core: 1024, llc: 512 };
    let ends = |tasks: &[(u8, u16, u64)]| {
        let each = |&(intensity, cpu, work)| heavy(intensity, Some(cpu), vec![run(work)]);
        let (_, results) = play(
            setup.clone(),
            "rr",
            &[("layout", "per-cpu"), ("steal", "never")],
            model(tasks.iter().map(each).collect()),
        );
        assert_eq!(results.len(), tasks.len());
        let mut ends: Vec<(u64, u64)> = results
            .iter()
            .map(|result| {
                (result.service.0 / 1_000_000, (result.completion.0 + 500_000) / 1_000_000)
            })
            .collect();
        ends.sort_unstable();
        ends
    };
    // To the ms, as speeds are whole 1024ths. Behind one cache: 1 / (1 + 1/2), and alone once the
    // first has gone. Behind the other cache nothing is in its way.
    assert_eq!(ends(&[(100, 0, 4), (100, 2, 10), (100, 4, 11)]), [(4, 6), (10, 12), (11, 11)]);
    // On one core both: 1 / (1 + 1 + 1/2).
    assert_eq!(ends(&[(100, 0, 4), (100, 1, 10)]), [(4, 10), (10, 16)]);
    // Of half the intensity, each: 1 / (1 + 1/2 · 1/2 · 3/2) = 8/11.
    assert_eq!(ends(&[(50, 0, 8), (50, 1, 16)]), [(8, 11), (16, 19)]);
    // Those that do not use it neither suffer nor are in the way, and nor is what waits.
    assert_eq!(ends(&[(100, 0, 4), (0, 1, 5)]), [(4, 4), (5, 5)]);
    assert_eq!(ends(&[(100, 0, 4), (100, 0, 5)]), [(4, 4), (5, 9)]);
}

#[test]
fn a_cpu_that_goes_is_in_nobodys_way() {
    let mut setup = cpus(2);
    setup.contention.llc = 1024;
    setup.hotplug = vec![(at(4), CpuId(1), false)];
    let load = model(vec![heavy(100, Some(0), vec![run(10)]), heavy(100, None, vec![run(10)])]);
    let (_, results) = play(setup, "fcfs", &[], load);
    // Both have done 2 ms when the second has to wait for the first, which needs 8 ms more, and then
    // runs alone.
    assert_eq!(completions(&results), [12, 20]);
}

#[test]
fn slow_cpus_take_longer() {
    let mut cpu = *Machine::flat(1).unwrap().cpu(CpuId(0));
    cpu.capacity = 256;
    let setup = Setup::new(Machine::new(vec![cpu]).unwrap());
    let (_, results) = play(setup, "fcfs", &[], model(vec![task(0, vec![run(3)])]));
    assert_eq!(completions(&results), [12]);
}

#[test]
fn counting_often_changes_no_work() {
    let mut cpu = *Machine::flat(1).unwrap().cpu(CpuId(0));
    cpu.capacity = 333;
    // The tick of cfs-arceos counts what has run every 10 ms or as often as is set here.
    let completion = |tick: &str| {
        let setup = Setup::new(Machine::new(vec![cpu]).unwrap());
        let (_, results) =
            play(setup, "cfs-arceos", &[("tick", tick)], model(vec![task(0, vec![run(3)])]));
        results[0].completion
    };
    // 3 ms · 1024/333, rounded up.
    assert_eq!(["10ms", "1us", "77ns"].map(completion), [Time(9_225_226); 3]);
}

#[test]
fn years_on_a_slow_cpu_do_not_overflow() {
    let mut cpu = *Machine::flat(1).unwrap().cpu(CpuId(0));
    cpu.capacity = 512;
    let setup = Setup { until: at(10), ..Setup::new(Machine::new(vec![cpu]).unwrap()) };
    let for_ever = task(0, vec![Op::Run(Span(u64::MAX - 1))]);
    let (metrics, _) = play(setup, "fcfs", &[], model(vec![for_ever]));
    assert_eq!(metrics.busy, ms(10));
    assert_eq!(metrics.unfinished, 1);
}

#[test]
fn a_cpu_that_goes_offline_gives_its_tasks_away() {
    for (policy, settings) in
        [("fcfs", &[][..]), ("rr", &[("layout", "per-cpu")]), ("cfs", &[]), ("eevdf", &[])]
    {
        let mut setup = cpus(2);
        setup.hotplug = vec![(at(2), CpuId(1), false), (at(8), CpuId(1), true)];
        let mut pinned = task(0, vec![run(4)]);
        pinned.new.affinity = CpuSet::of([CpuId(1)]);
        let load = model(vec![pinned, task(0, vec![run(10)]), task(9, vec![run(3)])]);
        let (metrics, results) = play(setup, policy, settings, load);
        assert_eq!(results.len(), 3, "{policy}");
        // The first task is taken off at 2 ms. What is left of the second keeps CPU 0 busy until
        // at least 10 ms, so that the third, if nothing is preempted for it, is done at 13.
        let end = metrics.makespan().unwrap();
        assert!(end == ms(12) || end == ms(13), "{policy}: {end}");
        assert_eq!(metrics.busy, ms(17), "{policy}");
        assert_eq!(sum([metrics.busy, metrics.idle]), end + end - ms(6), "{policy}");
    }
}

#[test]
fn ticks_come_on_a_grid_while_a_task_runs() {
    let mut setup = cpus(1);
    setup.costs.timer_irq = Span::from_us(100);
    let load = model(vec![task(3, vec![run(20)])]);
    let (metrics, results) = play(setup, "rr", &[("tick", "10ms")], load);
    // From 3 to 23.2 ms, with ticks at 10 and 20 ms.
    assert_eq!(results[0].completion, Time(23_200_000));
    assert_eq!(metrics.overhead, Span(200_000));
}

#[test]
fn locks_are_handed_over_in_turn() {
    let critical = || vec![Op::Lock(Lock(0)), run(2), Op::Unlock(Lock(0)), run(1)];
    let mut load = model((0..3).map(|_| task(0, critical())).collect());
    load.sizes.locks = 1;
    let (_, results) = play(cpus(3), "fcfs", &[], load);
    assert_eq!(completions(&results), [3, 5, 7]);
    assert_eq!(results[2].blocked, ms(4));
}

#[test]
fn a_barrier_lets_everyone_go_at_once() {
    let part = |n| task(0, vec![run(n), Op::Meet(Barrier(0)), run(1)]);
    let mut load = model(vec![part(1), part(5), part(3)]);
    load.sizes.barriers = vec![3];
    let (_, results) = play(cpus(3), "fcfs", &[], load);
    assert_eq!(completions(&results), [6, 6, 6]);
}

#[test]
fn signals_are_stored_notifications_are_not() {
    let case = |signal| {
        let mut load = model(vec![
            task(0, vec![signal]),
            task(1, vec![Op::Wait(Channel(0)), run(1)]),
            task(5, vec![Op::Broadcast(Channel(0))]),
        ]);
        load.sizes.channels = 1;
        let (_, results) = play(cpus(1), "fcfs", &[], load);
        results[1].completion
    };
    assert_eq!(case(Op::Signal(Channel(0))), at(2));
    assert_eq!(case(Op::Notify(Channel(0))), at(6));
}

#[test]
fn a_message_dies_with_its_task() {
    let mut load = model(vec![
        task(0, vec![Op::Signal(Channel(0)), Op::Wait(Channel(0)), run(1)]),
        // It gets the number of the first.
        task(5, vec![run(1), Op::Reply(Span::ZERO)]),
    ]);
    load.sizes.channels = 1;
    let (metrics, results) = play(cpus(1), "fcfs", &[], load);
    assert_eq!(completions(&results), [1, 6]);
    assert_eq!(metrics.round_trip.count(), 0);
}

#[test]
fn spawned_tasks_begin_when_they_are_spawned() {
    let child = ModelTask { arrives: None, ..task(0, vec![run(2)]) };
    let load = model(vec![task(0, vec![run(1), Op::Spawn(1), run(1)]), child]);
    let (_, results) = play(cpus(2), "fcfs", &[], load);
    assert_eq!((results[1].arrival, results[1].completion), (at(1), at(3)));
}

#[test]
fn jobs_are_measured_from_their_release() {
    let release = |n| Op::Release { at: at(n), deadline: Some(at(n + 5)) };
    // In a script, each release counts from the one before.
    let ops = vec![release(0), run(8), release(10), run(3), release(2), run(4)];
    let (metrics, _) = play(cpus(1), "fcfs", &[], model(vec![task(0, ops)]));
    // Jobs: 0–8 (3 late), 10–13, 12–17 (released while the one before runs).
    assert_eq!(metrics.job_response_time.sum(), u128::from((8 + 3 + 5) * MS));
    assert_eq!(metrics.deadline_misses, 1);
    assert_eq!(metrics.tardiness.max(), Some(3 * MS));
}

#[test]
fn a_job_that_is_open_and_late_at_the_end_has_missed_its_deadline() {
    let job = |deadline| {
        let new = NewTask { deadline: Some(at(deadline)), ..NewTask::default() };
        ModelTask { new, ..task(0, vec![run(100)]) }
    };
    let mut setup = cpus(1);
    setup.until = at(10);
    // One runs past its deadline, one waits past its own, one still has time.
    let jobs = [7, 4, 12].map(job);
    let (metrics, _) = play(setup, "fcfs", &[], model(jobs.to_vec()));
    assert_eq!(metrics.deadline_misses, 2);
    assert_eq!(metrics.tardiness.count(), 2);
    assert_eq!(metrics.tardiness.sum(), u128::from((3 + 6) * MS));
}

#[test]
fn waiting_time_leaves_out_service_and_sleep() {
    let sleeper = task(0, vec![run(1), Op::Sleep(ms(5)), run(1)]);
    let load = model(vec![sleeper, task(0, vec![run(10)])]);
    let (metrics, results) = play(cpus(1), "fcfs", &[], load);
    // 0–1, asleep until 6, waits until 11, done at 12: 12 − 2 − 5.
    assert_eq!(completions(&results), [12, 11]);
    assert_eq!(metrics.waiting_time.max(), Some(5 * MS));
    assert_eq!(metrics.wakeup_latency.max(), Some(5 * MS));
}

#[test]
fn the_end_of_time_cuts_what_runs() {
    let mut setup = cpus(2);
    setup.until = at(10);
    let (metrics, results) = play(setup, "fcfs", &[], model(vec![task(4, vec![run(100)])]));
    assert_eq!(results.len(), 0);
    assert_eq!([metrics.busy, metrics.idle], [ms(6), ms(14)]);
    assert_eq!(metrics.unfinished, 1);
}

/// Arrives once and never uses the CPU.
struct Spinner(bool);

impl Load for Spinner {
    fn peek(&self) -> Time {
        if self.0 { Time(7) } else { Time::NEVER }
    }
    fn outside(&mut self) -> Outside {
        self.0 = false;
        Outside::Arrival(NewTask::default())
    }
    fn start(&mut self, _: anysched_core::TaskId, _: Time) {}
    fn step(&mut self, _: anysched_core::TaskId, _: Time) -> Op {
        Op::Yield
    }
}

#[test]
fn a_load_that_stands_still_is_an_error() {
    let setup = cpus(1);
    let scheduler = support::build(&setup.machine, "fcfs", &[]);
    let error = Sim::new(setup, scheduler, Spinner(true)).run().map(|_| ()).unwrap_err();
    assert_eq!(error, SimError::Standstill { at: Time(7), task: 0 });
}

/// Has a CPU that finds nothing to run pick again, at once.
struct Restless {
    policy: Box<dyn Scheduler>,
}

impl Restless {
    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        let cpu = call.cpu();
        let is_pick = matches!(call, Call::PickNext { .. });
        let pick = call.make(&mut self.policy, cx);
        if let (true, None, Some(cpu)) = (is_pick, pick, cpu) {
            cx.kick(cpu);
        }
        pick
    }
}

scheduler_by_call!([] Restless);

#[test]
fn a_policy_that_kicks_idle_cpus_for_ever_is_an_error() {
    let setup = cpus(2);
    let policy = support::build(&setup.machine, "fcfs", &[]);
    let load = model(vec![task(3, vec![run(2)])]).into_load().unwrap();
    let error = Sim::new(setup, Restless { policy }, load).run().map(|_| ()).unwrap_err();
    // Until then no CPU was asked.
    assert_eq!(error, SimError::Kicks { at: Time(5 * MS), cpu: CpuId(0) });
}

#[test]
fn a_run_beyond_the_end_of_time_is_an_error_unless_it_is_cut_before() {
    const YEAR: Span = Span(365 * 86_400 * 1_000_000_000);
    let years = |n: u64| Span(n * YEAR.0);
    for (load, last) in [
        (model(vec![task(0, vec![Op::Run(years(2))]), task(0, vec![Op::Run(years(3))])]), years(2)),
        (model(vec![task(1, vec![Op::Sleep(years(5))])]), ms(1)),
        (model(vec![ModelTask { arrives: Some(Time(years(5).0)), ..task(0, vec![]) }]), ms(0)),
    ] {
        let mut setup = cpus(1);
        let scheduler = support::build(&setup.machine, "fcfs", &[]);
        let sim = Sim::new(setup.clone(), scheduler, load.clone().into_load().unwrap());
        let error = sim.run().map(|_| ()).unwrap_err();
        assert_eq!(error, SimError::TooLong { at: Time(last.0) });
        setup.until = Time(years(4).0);
        play(setup, "fcfs", &[], load);
    }
}

#[test]
fn years_on_a_slow_cpu_are_counted_without_overflow() {
    let mut cpu = *Machine::flat(1).unwrap().cpu(CpuId(0));
    cpu.capacity = 512;
    let setup = Setup::new(Machine::new(vec![cpu]).unwrap());
    // 231 days of work: 2^10 times as many nanoseconds are more than 64 bits hold.
    let work = Span(20_000_000_000_000_000);
    let (_, results) = play(setup, "fcfs", &[], model(vec![task(0, vec![Op::Run(work)])]));
    assert_eq!((results[0].completion, results[0].service), (Time(2 * work.0), work));
}

#[test]
fn sizes_of_a_model_without_objects_are_nothing() {
    assert_eq!(Model::default().into_load().unwrap().sizes(), Sizes::default());
}

/// Task 1 waits on CPU 0 behind task 0, in a group of that CPU alone, until the CPUs share a queue.
#[test]
fn parameters_change_when_they_are_to() {
    let change = |ms, name: &str, text: &str| ParamChange {
        at: at(ms),
        name: name.into(),
        text: text.into(),
    };
    let load = || model(vec![task(0, vec![run(20)]), task(0, vec![run(5)])]);
    let settings = [("grouping", "core"), ("core_interval", "none"), ("tick", "0")];
    let mut setup = cpus(2);
    setup.changes = vec![change(3, "grouping", "single"), change(4, "grouping", "core")];
    let (metrics, _) = play(setup.clone(), "gfs", &settings, load());
    assert_eq!(metrics.makespan().unwrap(), ms(20));
    assert_eq!(metrics.busy, ms(25));
    let (metrics, _) = play(cpus(2), "gfs", &settings, load());
    assert_eq!(metrics.makespan().unwrap(), ms(25));
    setup.changes = vec![change(3, "threshold", "200")];
    let load = load().into_load().unwrap();
    let error = Sim::new(setup, build(&cpus(2).machine, "gfs", &settings), load).run();
    let error = error.err().unwrap().to_string();
    let why = "at 3ms: `threshold` cannot be changed while the policy runs; these can: grouping";
    assert_eq!(error, why);
}
