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
