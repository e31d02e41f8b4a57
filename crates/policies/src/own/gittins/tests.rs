use super::*;
use alloc::string::{String, ToString};
use anysched_core::params::Value;
use anysched_core::{Params, Smp};
use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play, us};
use proptest::prelude::*;

fn table(rank: Rank, sizes: &str) -> Table {
    let sizes = Sizes::parse(sizes).unwrap();
    let mut table = Table::with_capacity(sizes.parts());
    sizes.fill(&mut Builder::new(rank, sizes.parts()), &mut table);
    table
}

/// Ranks in µs at ages in µs.
fn ranks(rank: Rank, sizes: &str, ages: &[u64]) -> Vec<u64> {
    let table = table(rank, sizes);
    ages.iter().map(|&age| table.rank(us(age)).0 / 1_000).collect()
}

fn with_key(key: u32) -> TaskParams {
    TaskParams { key: Some(key), ..TaskParams::default() }
}

fn drive(settings: &[(&str, &str)]) -> Drive<Smp<Gittins>> {
    Drive::rule("1", settings)
}

/// Of the sizes 2, 3 and 12 ms a task at age 0 ends for 6 ms (Δ = 2: 2 + 2 + 2 for one end), 4 ms
/// (Δ = 3: 2 + 3 + 3 for two) or 5.67 ms (Δ = 12: 17 for three). At age 2 it is 1 + 1 for one end or
/// 1 + 10 for two, and at age 3 it is 9 for the last.
#[test]
fn indices_by_hand() {
    let ages = [0, 1_000, 2_000, 2_500, 3_000, 7_500, 11_999];
    let gittins = ranks(Rank::Gittins, "2ms, 3ms, 12ms", &ages);
    assert_eq!(gittins, [4_000, 3_000, 2_000, 2_000, 9_000, 4_500, 1]);
    // 17/3, 11/2 and 9 are expected to be left.
    let serpt = ranks(Rank::Serpt, "2ms, 3ms, 12ms", &ages);
    assert_eq!(serpt, [5_666, 5_583, 5_500, 5_500, 9_000, 4_500, 1]);
    let m_serpt = ranks(Rank::MSerpt, "2ms, 3ms, 12ms", &ages);
    assert_eq!(m_serpt, [5_666, 5_666, 5_666, 5_666, 9_000, 9_000, 9_000]);
    // One or ten: half of the tasks end within the first ms.
    assert_eq!(ranks(Rank::Gittins, "1ms 10ms", &[0, 999, 1_000]), [2_000, 2_000, 9_000]);
    // Two ends at one age: nothing else can end before them.
    assert_eq!(
        ranks(Rank::Gittins, "1ms 1ms 10ms 10ms", &[0, 500, 999, 1_000]),
        [2_000, 1_000, 2, 9_000]
    );
    // What always takes as long has as much to do as is left.
    for rank in [Rank::Gittins, Rank::Serpt] {
        assert_eq!(ranks(rank, "8ms", &[0, 1_000, 7_000]), [8_000, 7_000, 1_000]);
    }
}

#[test]
fn slices_end_where_ranks_rise() {
    let table = table(Rank::Gittins, "2ms, 3ms, 12ms");
    for (age, until) in [(0, 3_000), (2_500, 500), (3_000, 9_000), (12_000, 12_000)] {
        assert_eq!(table.until_rise(us(age)), us(until), "{age}");
    }
    assert_eq!(self::table(Rank::Gittins, "exp(10ms)").until_rise(us(77)), Span::MAX);
}

/// 8 ms were the most, so at 8 and 15 ms it needs 8 more, at 16 ms 16.
#[test]
fn who_outlives_what_is_known_needs_as_much_again() {
    let ages = [8_000, 15_999, 16_000, 40_000];
    for rank in [Rank::Gittins, Rank::Serpt, Rank::MSerpt] {
        assert_eq!(ranks(rank, "8ms", &ages), [8_000, 8_000, 16_000, 32_000]);
    }
    let table = table(Rank::MSerpt, "1ns, 1ns, 30ms");
    assert_eq!(table.rank(us(30_000)), us(30_000));
    let far = Table::unknown(Span(1)).until_rise(Span(u64::MAX));
    assert!(far > Span::ZERO);
}

/// In closed form: where hazards fall, the index is one over the hazard. It and what is expected to
/// be left rise with age, and so a table is between what they are a step earlier and a step later.
#[test]
fn tables_are_near_the_continuous_ranks() {
    let check = |rank, sizes, ages: &[u64], ratio: f64, exact: &dyn Fn(f64) -> f64| {
        let table = self::table(rank, sizes);
        for &age in ages {
            let x = age as f64 * 1e3;
            let found = table.rank(us(age)).0 as f64;
            let (least, most) = (0.999 * exact(x / ratio), 1.001 * exact(x * ratio));
            assert!((least..=most).contains(&found), "{sizes} at {age} us: {found} {least} {most}");
        }
    };
    let parts = 1.0 / 32.0;
    let pareto = |x: f64| x / 1.5 * (1.0 - 1e-6 * (x / 1e6).powf(1.5));
    let ages = [2_000, 10_000, 77_000, 400_000];
    let ratio = 1e4f64.powf(parts);
    check(Rank::Gittins, "pareto(1.5, 1ms, 10s)", &ages, ratio, &pareto);
    let sum = |x: f64, power: i32| -> f64 {
        let phases = [(0.9, 1e6), (0.1, 50e6)];
        phases.iter().map(|(p, m): &(f64, f64)| p * m.powi(power) * (-x / m).exp()).sum()
    };
    let sizes = "hyperexp(0.9: 1ms, 0.1: 50ms)";
    let ratio = (64.0 * 24.0 * 50.0f64).powf(parts);
    let ages = [100, 500, 3_000, 10_000, 90_000];
    check(Rank::Gittins, sizes, &ages, ratio, &|x| sum(x, 0) / sum(x, -1));
    check(Rank::Serpt, sizes, &ages, ratio, &|x| sum(x, 1) / sum(x, 0));
    check(Rank::MSerpt, sizes, &ages, ratio, &|x| sum(x, 1) / sum(x, 0));
    // Uniform on 0 to 10 ms: Δ to the end is best, and half of what is left the mean.
    let uniform = self::table(Rank::Gittins, "uniform(0ns, 10ms)");
    for (age, rank) in [(0, 5_000), (4_000, 3_000), (9_000, 500)] {
        assert!(uniform.rank(us(age)).0.abs_diff(us(rank).0) <= 50_000, "{age} us");
    }
}

const EXACT: (&str, &str) = ("share", "0");

#[test]
fn what_forgets_its_age_is_served_as_it_comes() {
    for rank in ["gittins", "serpt", "m-serpt"] {
        let settings = [EXACT, ("sizes", "exp(10ms)"), ("rank", rank)];
        play::<Gittins>(&settings, OPEN).assert(OPEN, &[6, 9, 17, 18, 20], 36);
        play::<Gittins>(&settings, CLOSED).assert(CLOSED, &[7, 9, 14, 15, 24, 27], 69);
    }
}

/// The older a task is, the nearer to its end: no newcomer interrupts it.
#[test]
fn what_ages_is_served_to_its_end() {
    for rank in ["gittins", "serpt", "m-serpt"] {
        for sizes in ["8ms", "uniform(6ms, 8ms)"] {
            let mut drive = drive(&[EXACT, ("sizes", sizes), ("rank", rank)]);
            drive.create(0, None);
            drive.pick(0);
            drive.kicked();
            drive.now += ms(1);
            drive.create(1, None);
            assert_eq!(drive.kicked(), [], "{rank}, {sizes}");
        }
    }
}

/// The younger a task is, the sooner it ends: the least attained service goes first.
#[test]
fn what_improves_is_served_least_attained_first() {
    let mut drive = drive(&[EXACT, ("sizes", "pareto(1.5, 500us, 1s)")]);
    drive.create(0, None);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.kicked();
    drive.now += ms(3);
    drive.create(1, None);
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, 0, ms(3), Off::Preempted);
    // Task 1 runs until it is as old, in ever longer slices, and from then on they take turns.
    let mut used = [3_000_000u64, 0];
    let mut slices = 0;
    while used[1] < 2_400_000 {
        let (task, slice) = drive.pick(0).unwrap();
        assert_eq!(task, 1, "{used:?}");
        assert!(slice < us(700));
        used[1] += slice.0;
        slices += 1;
        drive.now += slice;
        drive.put(0, 1, slice, Off::Expired);
    }
    assert!((5..12).contains(&slices), "{slices}");
    for _ in 0..20 {
        let (task, slice) = drive.pick(0).unwrap();
        drive.now += slice;
        drive.put(0, task, slice, Off::Expired);
        used[task as usize] += slice.0;
        assert!(used[0].abs_diff(used[1]) < used[0] / 3, "{used:?}");
    }
}

#[test]
fn runs_are_learned_by_key_by_task_and_from_all() {
    let mut drive = drive(&[EXACT]);
    drive.create_with(0, None, &with_key(7));
    assert_eq!(drive.probe(0, "rank_ns"), 1_000_000, "of nothing: a quantum");
    for _ in 0..4 {
        assert_eq!(drive.run(ms(8), Off::Blocked), 0);
        drive.wake(0);
    }
    assert_eq!(drive.probe(0, "rank_ns"), 8_000_000);
    // Another with this key, one with another key, and one without.
    drive.create_with(1, None, &with_key(7));
    drive.create_with(2, None, &with_key(8));
    drive.create(3, None);
    assert_eq!(drive.probes(1..4, "rank_ns"), [8_000_000; 3], "known of all tasks");
    // The others have the earlier numbers: 0 and 1 end first, then 2 learns that it is shorter.
    assert_eq!([0, 1].map(|_| drive.run(ms(8), Off::Exited)), [0, 1]);
    for turn in 0..4 {
        assert_eq!(drive.run(ms(2), if turn == 0 { Off::Blocked } else { Off::Yielded }), 2);
        if turn == 0 {
            assert_eq!(drive.run(ms(8), Off::Blocked), 3);
            drive.wake(2);
        }
    }
    drive.wake(3);
    assert_eq!(drive.probe(2, "rank_ns"), 2_000_000);
    assert!(drive.probe(3, "rank_ns") > 2_000_000, "of all tasks");
    // Preemption and an undone pick end no run, and what has not run teaches nothing.
    assert_eq!(drive.run(ms(1), Off::Preempted), 2);
    assert_eq!(drive.probe(2, "rank_ns"), 1_000_000);
    assert_eq!(drive.run(ms(0), Off::NotRun), 2);
    assert_eq!(drive.probe(2, "age_ns"), 1_000_000);
}

/// A short one is served before a long one, though it came later, and does interrupt it, unless the
/// long one has less left.
#[test]
fn keys_that_always_run_as_long_are_served_by_what_is_left() {
    let mut drive = drive(&[EXACT]);
    for (key, size) in [(1, 4), (2, 10)] {
        drive.create_with(key, None, &with_key(key));
        for _ in 0..4 {
            assert_eq!(drive.run(ms(size), Off::Blocked), key);
            drive.wake(key);
        }
        assert_eq!(drive.run(ms(size), Off::Exited), key);
    }
    for (ran, interrupted) in [(5, true), (7, false)] {
        drive.create_with(0, None, &with_key(2));
        assert_eq!(drive.pick(0).unwrap().0, 0);
        drive.kicked();
        drive.now += ms(ran);
        drive.create_with(1, None, &with_key(1));
        assert_eq!(drive.kicked() == [0], interrupted, "{ran} of 10 ms");
        drive.put(0, 0, ms(ran), Off::Exited);
        assert_eq!(drive.run(ms(4), Off::Exited), 1);
    }
}

#[test]
fn wrong_estimates_are_wrong_by_a_factor_for_each_key() {
    let rank = |seed: &str, error: &str, key| {
        let mut drive = drive(&[EXACT, ("error", error), ("error_seed", seed)]);
        drive.create_with(0, None, &with_key(key));
        for _ in 0..4 {
            drive.run(ms(8), Off::Blocked);
            drive.wake(0);
        }
        drive.probe(0, "rank_ns")
    };
    assert_eq!(rank("1", "0", 7), 8_000_000);
    let noisy = rank("1", "1", 7);
    assert!(noisy != 8_000_000 && noisy == rank("1", "1", 7));
    assert!(noisy != rank("2", "1", 7) && noisy != rank("1", "1", 8));
}

/// The oldest of 40 runs no longer count.
#[test]
fn the_latest_runs_count() {
    let mut drive = drive(&[EXACT, ("history", "4")]);
    drive.create(0, None);
    for run in 0..40 {
        drive.run(if run < 36 { ms(90) } else { ms(2) }, Off::Blocked);
        drive.wake(0);
    }
    assert_eq!(drive.probe(0, "rank_ns"), 2_000_000);
    // The number is another task's now, of which only what all do is known.
    drive.dequeue(0);
    drive.call(|smp, cx| anysched_core::Scheduler::detach(smp, cx, TaskId(0)));
    drive.create(0, None);
    assert!(drive.probe(0, "rank_ns") > 2_000_000);
}

#[test]
fn a_hundred_percent_of_turns_is_round_robin() {
    let settings = [("share", "100"), ("quantum", "2ms"), ("sizes", "1ms")];
    play::<Gittins>(&settings, CLOSED).assert(CLOSED, &[24, 4, 21, 7, 27, 18], 28);
}

/// A task that is taken for the longest has its tenth all the same: a turn of 1 ms behind each 9 ms
/// of others, which do not interrupt it.
#[test]
fn turns_are_a_share_of_the_cpu() {
    let mut drive = drive(&[("sizes", "1ms, 1s")]);
    drive.create(0, None);
    // Nobody else is there, and what it had of turns does not count.
    while drive.probe(0, "age_ns") < 500_000_000 {
        let (_, slice) = drive.pick(0).unwrap();
        drive.now += slice;
        drive.put(0, 0, slice, Off::Expired);
    }
    drive.kicked();
    let mut used = [0u64; 2];
    let mut next = 1;
    drive.create(next, None);
    while used[0] + used[1] < 1_000_000_000 {
        let (task, slice) = drive.pick(0).unwrap();
        let slice = slice.min(us(500));
        drive.now += slice;
        used[usize::from(task != 0)] += slice.0;
        if task == 0 {
            drive.put(0, 0, slice, Off::Expired);
            continue;
        }
        // They end at once, and others come.
        drive.put(0, task, slice, Off::Exited);
        next = 1 + next % 8;
        drive.create(next, None);
    }
    let share = used[0] as f64 / 1e9;
    assert!((0.04..=0.11).contains(&share), "{share}");
}

fn turnarounds(drive: &mut Drive<impl anysched_core::Scheduler>, sizes: &[u64]) -> Vec<u64> {
    let mut left: Vec<Span> = sizes.iter().map(|&size| us(size)).collect();
    let mut ended = alloc::vec![0; sizes.len()];
    while let Some((task, slice)) = drive.pick(0) {
        let left = &mut left[task as usize];
        let ran = slice.min(*left);
        *left = left.saturating_sub(ran);
        drive.now += ran;
        if *left == Span::ZERO {
            ended[task as usize] = drive.now.0;
            drive.put(0, task, ran, Off::Exited);
        } else {
            drive.put(0, task, ran, Off::Expired);
        }
    }
    ended
}

proptest! {
    /// However wrong what is known is: none ends later than 100/share times when it would under
    /// round robin, and as many quanta.
    #[test]
    fn no_task_is_late_by_more_than_its_bound(
        sizes in prop::collection::vec(1..40_000u64, 1..12),
        known in prop::collection::vec(1..40_000u64, 1..12),
        rank in prop::sample::select(["gittins", "serpt", "m-serpt"].as_slice()),
        share in 1..=100u64,
    ) {
        let known = Sizes::Values(known.into_iter().map(us).collect());
        let known = Sizes::parse(&known.show()).unwrap().show();
        let share_text = share.to_string();
        let settings = [
            ("sizes", known.as_str()), ("rank", rank), ("share", &share_text), ("quantum", "3ms"),
        ];
        let mut ours = drive(&settings);
        let mut turns = drive(&[("share", "100"), ("quantum", "3ms")]);
        for task in 0..sizes.len() as u32 {
            ours.create(task, None);
            turns.create(task, None);
        }
        let ours = turnarounds(&mut ours, &sizes);
        let turns = turnarounds(&mut turns, &sizes);
        for (ours, turns) in ours.iter().zip(&turns) {
            prop_assert!(ours * share <= 100 * (turns + 3_000_000), "{ours} {turns}");
        }
    }

    #[test]
    fn any_text_is_sizes_or_not(
        text in "(exp|uniform|pareto|hyperexp)?[(]?[0-9.:, mns]{0,40}[)]?|.*",
    ) {
        if let Ok(sizes) = Sizes::parse(&text) {
            prop_assert_eq!(Sizes::parse(&sizes.show()), Ok(sizes.clone()));
            let table = table(Rank::Gittins, &sizes.show());
            prop_assert!(table.until_rise(Span::ZERO) > Span::ZERO);
        }
    }

    /// By definition: the least over all later ends of the time used until there by the ends.
    #[test]
    fn indices_are_the_least_of_all_quotients(
        mut sizes in prop::collection::vec(1..30u64, 1..12),
    ) {
        sizes.sort_unstable();
        let text: Vec<String> = sizes.iter().map(|size| Span::from_us(*size).to_string()).collect();
        let table = table(Rank::Gittins, &text.join(","));
        for age in [0].iter().chain(&sizes).copied().filter(|age| sizes.last() > Some(age)) {
            let left: Vec<u64> =
                sizes.iter().filter(|&&size| size > age).map(|size| size - age).collect();
            let quotient = |&until: &u64| {
                let used: u64 = left.iter().map(|&left| left.min(until)).sum();
                let ends = left.iter().filter(|&&left| left <= until).count() as u64;
                (1_000 * used + ends / 2) / ends
            };
            prop_assert_eq!(table.rank(us(age)).0, left.iter().map(quotient).min().unwrap());
        }
    }
}

#[test]
fn parameters_are_checked() {
    for (name, value) in [("history", "3"), ("history", "65"), ("share", "101"), ("quantum", "0")] {
        let machine = Machine::flat(1).unwrap();
        let built = anysched_core::registry::build_rule::<Gittins>(&machine, &[(name, value)]);
        assert!(matches!(built, Err(ParamError::Invalid { name: at, .. }) if at == name));
    }
    let mut params = GittinsParams::default();
    for text in
        ["", "0ns", "exp()", "exp(0ns)", "exp(2h)", "uniform(2ms, 1ms)", "pareto(0, 1ms, 2ms)"]
    {
        assert!(params.set("sizes", text).is_err(), "{text}");
    }
    for text in ["hyperexp(0.5: 1ms)", "pareto(1.5, 2ms, 1ms)", "normal(1ms)", "exp(1ms"] {
        assert!(params.set("sizes", text).is_err(), "{text}");
    }
    params.set("sizes", "hyperexp(0.9: 1ms, 0.1: 50ms)").unwrap();
    assert_eq!(params.sizes.unwrap().show(), "hyperexp(0.9: 1ms, 0.1: 50ms)");
    assert_eq!(Sizes::parse("3ms # long\n1ms 2ms"), Sizes::parse("1ms,2ms,3ms"));
}
