//! Against what the theory promises.

use super::*;
use proptest::prelude::*;

fn params(nice: i8, own: Option<u64>) -> TaskParams {
    TaskParams { budget: own.map(Span::from_us), ..TaskParams::nice(nice) }
}

/// All tasks want the CPU all the time; returns after each pick by how much each has fallen
/// behind the CPU time that a perfect division by weight would have given it, in ns.
fn lags(
    settings: &[(&str, &str)],
    tasks: &[TaskParams],
    picks: usize,
    mut seen: impl FnMut(&[i128]),
) {
    let mut host = Host::new(1, settings);
    let tick = host.rule.tick_period();
    for (task, params) in tasks.iter().enumerate() {
        host.spawn(task as u32, params);
    }
    let total: i128 = tasks.iter().map(|task| i128::from(task.weight)).sum();
    let mut had = alloc::vec![0i128; tasks.len()];
    for _ in 0..picks {
        let start = host.now;
        let (task, slice) = host.pick_on(0).unwrap();
        match tick {
            None => host.run(slice, Off::Expired),
            Some(period) => {
                while !host.tick(period.0) && tasks.len() > 1 {}
                host.run(0, Off::Preempted);
            }
        }
        had[task as usize] += i128::from(host.now - start);
        let due = |task: &TaskParams| i128::from(host.now) * i128::from(task.weight) / total;
        let behind: Vec<i128> = tasks.iter().zip(&had).map(|(task, had)| due(task) - had).collect();
        seen(&behind);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Stoica's theorem: −r < lag < r for requests of r that end exactly. If they end at ticks,
    /// a task may be a tick more ahead, and behind by a tick for each task that is ahead so.
    #[test]
    fn lag_stays_within_a_slice(
        nice in prop::collection::vec((-20..20i8, prop::option::of(100..5_000u64)), 2..20),
        tick: bool,
    ) {
        let tick_ns = if tick { 700_000 } else { 0 };
        let text = if tick { "700us" } else { "0" };
        let settings = [("base_slice", "3ms"), ("tick", text), ("custom_slice", "true")];
        let tasks: Vec<TaskParams> = nice.iter().map(|&(nice, own)| params(nice, own)).collect();
        let own = |task: &TaskParams| task.budget.map_or(3_000_000, |own| own.0);
        let longest = i128::from(tasks.iter().map(own).max().unwrap());
        lags(&settings, &tasks, 2_000, |behind| {
            for (&behind, task) in behind.iter().zip(&tasks) {
                let own = i128::from(own(task));
                let most = longest + tick_ns * tasks.len() as i128 + 2;
                assert!(behind <= most, "{behind} behind, slice {longest}");
                assert!(-behind <= own + tick_ns + 2, "{} ahead, slice {own}", -behind);
            }
        });
    }
}

#[test]
fn shares_follow_weights() {
    for (tick, most) in [("0", 3 * MS), ("1ms", 4 * MS)] {
        let settings = [("base_slice", "3ms"), ("tick", tick)];
        // A minute and more, of which nice 0 gets 1024 / 1359, nice 5 the rest.
        let tasks = [TaskParams::nice(0), TaskParams::nice(5)];
        let mut last = Vec::new();
        lags(&settings, &tasks, 20_000, |behind| last = behind.to_vec());
        assert!(last.iter().all(|behind| behind.unsigned_abs() <= u128::from(most)), "{last:?}");
    }
}

/// Two CPUs share a runqueue; no weight is worth more than one CPU.
#[test]
fn shares_follow_weights_on_two_cpus() {
    let mut host = Host::new(2, &[("base_slice", "1ms"), ("tick", "0")]);
    let nice = [0, 0, 0, 5, 5, -3];
    for (task, nice) in nice.into_iter().enumerate() {
        host.spawn(task as u32, &TaskParams::nice(nice));
    }
    let mut had = [0; 6];
    let mut ends = [0; 2];
    for _ in 0..20_000 {
        let cpu = usize::from(ends[1] < ends[0]);
        host.now = ends[cpu];
        if let Some(task) = host.cpus[cpu].task() {
            had[task.index()] += host.now - host.cpus[cpu].since().0;
            host.put_on(cpu, Off::Expired);
        }
        ends[cpu] = host.now + host.pick_on(cpu).unwrap().1;
    }
    let total: u64 = had.iter().sum();
    let weights = nice.map(|nice| u64::from(anysched_core::params::weight_of_nice(nice)));
    for (task, weight) in weights.into_iter().enumerate() {
        let share = had[task] * 10_000 / total;
        let due = weight * 10_000 / weights.iter().sum::<u64>();
        assert!(share.abs_diff(due) <= 5, "task {task}: {share} of {due} per 10000, {had:?}");
    }
}

/// What happens next on two CPUs that share a runqueue.
#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Put(usize, Off),
    Tick(usize),
    Wake(u32),
    Remove(u32),
    Renice(u32, i8, Option<u64>),
}

const TASKS: u32 = 10;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let off = prop_oneof![
        2 => Just(Off::Preempted),
        1 => Just(Off::Yielded),
        1 => Just(Off::NotRun),
        3 => Just(Off::Blocked),
        1 => Just(Off::Exited),
    ];
    let own = prop::option::of(50..3_000u64);
    let step = prop_oneof![
        6 => (0..2_000_000u64).prop_map(Step::Pass),
        6 => (0..2usize, off).prop_map(|(cpu, off)| Step::Put(cpu, off)),
        3 => (0..2usize).prop_map(Step::Tick),
        8 => (0..TASKS).prop_map(Step::Wake),
        1 => (0..TASKS).prop_map(Step::Remove),
        2 => (0..TASKS, -20..20i8, own).prop_map(|(task, nice, own)| Step::Renice(task, nice, own)),
    ];
    prop::collection::vec(step, 1..300)
}

fn step(host: &mut Host, step: Step) {
    let runs = |host: &Host, cpu: usize| host.cpus[cpu].task().is_some();
    let running = |host: &Host, task| host.cpus.iter().any(|cpu| cpu.task() == Some(TaskId(task)));
    match step {
        Step::Pass(ns) => host.now += ns,
        Step::Put(cpu, why) if runs(host, cpu) => host.put_on(cpu, why),
        Step::Tick(cpu) if runs(host, cpu) => drop(host.tick_on(cpu)),
        Step::Wake(task) => {
            let known = host.rule.tasks[TaskId(task)];
            if !running(host, task) && (!known.queued || known.delayed) {
                host.enter(task, Why::Woken);
            }
        }
        Step::Remove(task) => host.remove(task, Removal::Dequeue),
        Step::Renice(task, nice, own) => host.update(task, &params(nice, own)),
        Step::Put(..) | Step::Tick(_) => {}
    }
    for cpu in 0..host.cpus.len() {
        if host.cpus[cpu].task().is_none() {
            pick_as_a_scan_does(host, cpu);
        }
    }
}

/// The pick is protected, or the first in order of deadlines among the eligible.
fn pick_as_a_scan_does(host: &mut Host, cpu: usize) {
    let before = host.rule.queues[0].clone();
    let all: Vec<(u32, Task)> =
        (0..TASKS).map(|task| (task, host.rule.tasks[TaskId(task)])).collect();
    let last = host.rule.cpus[cpu].picked;
    let Some((picked, _)) = host.pick_on(cpu) else {
        assert!(all.iter().all(|(_, task)| !task.queued || task.delayed));
        return;
    };
    let dropped =
        all.iter().any(|(task, was)| was.delayed && !host.rule.tasks[TaskId(*task)].delayed);
    let goes_on = last == Some(TaskId(picked)) || before.next == Some(TaskId(picked));
    if dropped || goes_on {
        return;
    }
    let eligible = |task: &Task| task.queued && before.mean.reached(task.vruntime);
    let was = &all[picked as usize].1;
    if all.iter().any(|(_, task)| eligible(task)) {
        assert!(eligible(was));
        assert!(
            all.iter().all(|(_, task)| !eligible(task) || task.deadline.minus(was.deadline) >= 0)
        );
    } else {
        assert!(all.iter().all(|(_, task)| !task.queued || task.vruntime.minus(was.vruntime) >= 0));
    }
}

/// The sums that are kept agree with the tasks.
fn check(host: &Host) {
    let queue = &host.rule.queues[0];
    let runs = |task: u32| host.cpus.iter().any(|cpu| cpu.task() == Some(TaskId(task)));
    let (mut sum, mut weight, mut load, mut delayed) = (0, 0, 0, 0);
    for task in 0..TASKS {
        let known = &host.rule.tasks[TaskId(task)];
        if known.queued || runs(task) {
            let own = u64::from(known.share.weight);
            sum += i128::from(known.vruntime.0 as i64) * i128::from(own);
            weight += own;
            load += if known.delayed { 0 } else { own };
            delayed += u32::from(known.delayed);
            assert!(known.ahead() >= 0);
        }
    }
    assert_eq!((queue.mean.weight(), queue.load, queue.delayed), (weight, load, delayed));
    if weight > 0 {
        let mean = sum.div_euclid(i128::from(weight)) as i64;
        assert_eq!(queue.mean.value(), VTime(mean as u64));
    }
    if let Some(next) = queue.next {
        assert!(host.rule.tasks[next].queued && !host.rule.tasks[next].delayed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn two_cpus_pick_from_one_runqueue_as_a_scan_does(
        profile in prop::sample::select(["6.6", "6.12", "6.18", "7.2", "7.3"].as_slice()),
        steps in steps(),
    ) {
        let mut host = Host::new(2, &[("profile", profile), ("tick", "1ms")]);
        for task in 0..TASKS {
            host.attach(task, &TaskParams::default());
        }
        for one in steps {
            step(&mut host, one);
            check(&host);
        }
    }
}
