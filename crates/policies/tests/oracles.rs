//! Policies decide as naive implementations of their rules do.

use anysched_core::checked::Rules;
use anysched_core::machine::Level;
use anysched_core::{Checked, CpuId, Machine, Off, Scheduler, Span, TaskParams, Time};
use anysched_oracle::{
    Moves, Picks, Pins, Scope, Seen, bfs, compare, compare_all, credit, credit2, eevdf, gittins,
    m_rsf, moves,
};
use anysched_oracle::{osv, pbg, rtds, sedf};
use anysched_policies::policy;
use proptest::prelude::*;
use proptest::sample::select;

fn build(name: &str, machine: &Machine, settings: &[(&str, &str)]) -> Box<dyn Scheduler> {
    (policy(name).unwrap().build)(machine, settings).unwrap()
}

/// The same, held to the contract besides.
fn checked(
    name: &str,
    machine: &Machine,
    settings: &[(&str, &str)],
) -> Checked<Box<dyn Scheduler>> {
    let work_conserving = (policy(name).unwrap().nature)(settings).unwrap().work_conserving;
    let rules = Rules { work_conserving, ..Rules::default() };
    Checked::new(build(name, machine, settings), machine, rules)
}

fn word(on: bool) -> &'static str {
    if on { "true" } else { "false" }
}

fn bfs_options() -> impl Strategy<Value = bfs::Options> {
    (any::<[bool; 4]>(), 0..4u8).prop_map(|([scaling, share, dither, tick], sticky)| bfs::Options {
        sticky: sticky > 0,
        scaling,
        share,
        dither,
        tick,
    })
}

const BFS_MACHINES: [&str; 6] = [
    "1",
    "3",
    "2 llcs x 2 cores x 2 threads",
    "2 packages x 2 llcs x 2 cores",
    "2 nodes x 2 llcs x 2 cores x 2 threads",
    "2 nodes x 2 packages x 2 llcs x 2 cores",
];

#[test]
fn bfs_decides_as_its_source() {
    let pass = prop_oneof![2 => Just(0u64), 2 => 0..3_000_000u64, 1 => 0..60_000_000u64];
    let machine = select(BFS_MACHINES.as_slice());
    let queue = select(["list", "tree"].as_slice());
    let strategy = (machine, bfs_options(), queue, any::<bool>(), moves(pass, 250));
    compare_all(800, strategy, |(machine, options, queue, prompt, moves)| {
        let machine = Machine::parse(machine).unwrap();
        let settings = [
            ("queue", queue),
            ("sticky", word(options.sticky)),
            ("scaling", word(options.scaling)),
            ("dither", word(options.dither)),
            ("fork", if options.share { "share" } else { "fresh" }),
            ("tick", if options.tick { "1ms" } else { "0" }),
        ];
        let scope = Scope {
            start: Time(bfs::BOOT),
            nice: true,
            renices: true,
            pins: Pins::Any,
            syncs: true,
            wakers: 1,
            picks: Picks::AtOnce,
            prompt,
            tick: options.tick.then_some(Span::from_ms(1)),
            ..Scope::new(bfs::TASKS as u32)
        };
        let policy = build("bfs", &machine, &settings);
        compare(&machine, policy, bfs::Bfs::new(&machine, options), &scope, &moves)
    });
}

#[test]
fn credit_decides_as_its_rules() {
    for (ratelimit, limit_yields, tickle_one) in
        [("1ms", true, true), ("1ms", false, true), ("0", true, false)]
    {
        for improved in [false, true] {
            compare_credit((ratelimit, limit_yields), tickle_one, improved, true);
        }
    }
    compare_credit(("1ms", true), true, false, false);
}

fn compare_credit(
    (ratelimit, limit_yields): (&str, bool),
    tickle_one: bool,
    improved: bool,
    boost: bool,
) {
    let settings = [
        ("ratelimit", ratelimit),
        ("limit_yields", word(limit_yields)),
        ("tickle_one", word(tickle_one)),
        ("boost", word(boost)),
        ("boost_balance", word(improved)),
        ("dyn_slice", word(improved)),
    ];
    let limit = (Span::parse(ratelimit).unwrap().0, limit_yields);
    let strategy = (1..5usize, 5..20u32, any::<bool>(), moves(0..3_000_000u64, 1_500));
    let seen = compare_all(150, strategy, |(cpus, tasks, prefers, moves)| {
        let machine = Machine::flat(cpus).unwrap();
        let scope = Scope {
            attached: true,
            domains: credit::DOMAINS as u16,
            caps: true,
            offs: &[Off::Blocked, Off::Blocked, Off::Yielded],
            pins: Pins::Any,
            prefers,
            dequeues: true,
            undoes: true,
            picks: Picks::SameInstant,
            wakers: 2,
            tick: Some(Span::from_ms(10)),
            ..Scope::new(tasks)
        };
        let oracle = credit::Credit::new(cpus, limit, tickle_one, improved);
        let oracle = if boost { oracle } else { oracle.without_boost() };
        compare(&machine, build("credit", &machine, &settings), oracle, &scope, &moves)
    });
    assert!(["over", "parked"].iter().all(|name| seen[name] > 100), "{seen:?}");
    assert_eq!(seen["boosted"] > 100, boost, "{seen:?}");
    assert!(boost || seen["boosted"] == 0, "{seen:?}");
}

/// Machines, which of their CPUs share a runqueue, and how that is asked for.
const CREDIT2: [(&str, Option<Level>, &str); 7] = [
    ("1", None, "cpu"),
    ("3", Some(Level::Machine), "all"),
    ("3", None, "cpu"),
    ("2 cores x 2 threads", Some(Level::Package), "socket"),
    ("2 cores x 2 threads", Some(Level::Core), "core"),
    ("2 packages x 2 cores x 2 threads", Some(Level::Package), "socket"),
    ("2 nodes x 3 cores", Some(Level::Node), "node"),
];

fn compare_credit2(
    (name, shared, runqueue): (&str, Option<Level>, &str),
    (ratelimit, saves): (&str, bool),
    scope: Scope,
    moves: &Moves,
) -> Result<Seen, TestCaseError> {
    let machine = Machine::parse(name).unwrap();
    let first = |level: Option<Level>, cpu| level.map_or(cpu, |at| machine.sharing(at, cpu)[0]);
    let number = |level: Option<Level>| -> Vec<usize> {
        let firsts: Vec<CpuId> = machine.cpu_ids().map(|cpu| first(level, cpu)).collect();
        let mut all = firsts.clone();
        all.dedup();
        firsts.iter().map(|cpu| all.iter().position(|other| other == cpu).unwrap()).collect()
    };
    let options = credit2::Options {
        queues: number(shared),
        cores: number(Some(Level::Core)),
        ratelimit: Span::parse(ratelimit).unwrap().0 as i64,
        saves,
    };
    let settings =
        [("runqueue", runqueue), ("ratelimit", ratelimit), ("smt_power_savings", word(saves))];
    let policy = build("credit2", &machine, &settings);
    compare(&machine, policy, credit2::Credit2::new(options), &scope, moves)
}

/// From microseconds to tens of milliseconds.
fn short_and_long() -> impl Strategy<Value = u64> {
    (1..20_000_000u64, 0..3u32).prop_map(|(ns, finer)| ns / 30u64.pow(finer))
}

#[test]
fn credit2_decides_as_xen_does() {
    let settings = (select(["1ms", "0", "100us"].as_slice()), any::<bool>());
    let machine = select(CREDIT2.as_slice());
    let flags = any::<[bool; 4]>();
    let strategy = (machine, settings, flags, moves(short_and_long(), 300));
    let seen = compare_all(1_000, strategy, |(machine, settings, flags, moves)| {
        let [caps, pins, prefers, at_once] = flags;
        let scope = Scope {
            attached: at_once,
            domains: 3,
            caps,
            offs: &[Off::Preempted, Off::Yielded, Off::Blocked, Off::Blocked, Off::Exited],
            pins: if pins { Pins::Any } else { Pins::None },
            prefers: pins && prefers,
            dequeues: true,
            detaches: true,
            undoes: true,
            picks: if at_once { Picks::AtOnce } else { Picks::Later },
            prompt: at_once,
            ..Scope::new(9)
        };
        compare_credit2(machine, settings, scope, &moves)
    });
    assert!(["resets", "moves", "parked"].iter().all(|name| seen[name] > 1_000), "{seen:?}");
}

/// vCPUs that hardly sleep: resets come, and loads differ for long enough to be balanced.
#[test]
fn credit2_gives_hogs_their_turns() {
    let machine = select(CREDIT2.as_slice());
    let strategy = (machine, 1..9u32, moves(short_and_long(), 150));
    let seen = compare_all(500, strategy, |(machine, tasks, moves)| {
        let scope = Scope {
            attached: true,
            domains: 4,
            offs: &[Off::Preempted, Off::Preempted, Off::Preempted, Off::Blocked],
            picks: Picks::AtOnce,
            prompt: true,
            ..Scope::new(tasks)
        };
        compare_credit2(machine, ("1ms", false), scope, &moves)
    });
    assert!(seen["resets"] > 1_000 && seen["moves"] > 100, "{seen:?}");
}

#[test]
fn osv_decides_as_floats_do() {
    // From microseconds to seconds.
    let pass = (1..400_000_000u64, 0..3u32).prop_map(|(ns, finer)| ns / 100u64.pow(finer) + 1);
    let seen = compare_all(800, (1..5usize, any::<bool>(), moves(pass, 240)), |options| {
        let (cpus, balances, moves) = options;
        let scope = Scope {
            attached: true,
            offs: &[Off::Preempted, Off::Yielded, Off::Blocked, Off::Blocked],
            nice: true,
            pins: Pins::Asleep,
            wakers: 3,
            dequeues: true,
            picks: Picks::AtOnce,
            prompt: true,
            ..Scope::new(6)
        };
        let machine = Machine::flat(cpus).unwrap();
        let period = if balances { "100ms" } else { "0" };
        let policy = build("osv", &machine, &[("lb_period", period)]);
        compare(&machine, policy, osv::Osv::new(cpus, balances), &scope, &moves)
    });
    assert!(seen["moves"] > 500 && seen["moves of running"] > 500, "{seen:?}");
}

fn m_rsf_rules() -> impl Strategy<Value = m_rsf::Rules> {
    let layouts = [("shared", 1), ("shared", 4), ("bound3", 3), ("pipe3", 3), ("pipe5", 5)];
    let slice = || select([Some(3), Some(5), None].as_slice());
    let flags = any::<[bool; 5]>();
    let aging = select([None, Some(4), Some(9)].as_slice());
    let all = (select(layouts.to_vec()), slice(), slice(), flags, aging);
    all.prop_map(|((layout, cpus), q1, q2, [sort_q1, sort_q2, thirds, batch, spill], aging)| {
        m_rsf::Rules {
            layout,
            cpus,
            slices: [q1, q2, None],
            sorted: [sort_q1, sort_q2, false],
            thirds,
            batch,
            spill,
            aging,
        }
    })
}

#[test]
fn m_rsf_decides_as_a_search_of_all_tasks() {
    compare_all(3_000, (m_rsf_rules(), moves(0..5u64, 200)), |(rules, moves)| {
        let machine = Machine::flat(rules.cpus).unwrap();
        let settings = rules.settings();
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let scope = Scope {
            offs: &[Off::Blocked, Off::Blocked, Off::Yielded, Off::Preempted, Off::Exited],
            pins: Pins::Any,
            dequeues: true,
            detaches: true,
            undoes: true,
            hotplug: true,
            burst: 16,
            ..Scope::new(m_rsf::TASKS as u32)
        };
        let policy = checked("m-rsf", &machine, &settings);
        compare(&machine, policy, m_rsf::MRsf::new(rules), &scope, &moves)
    });
}

#[test]
fn pbg_decides_as_a_search_of_all_tasks() {
    // Few different times, so that some are equal; some tasks are not in the profile.
    let record = prop_oneof![4 => (0..6u64, 0..7u64), 1 => Just((0, 0))];
    let strategy = (
        select([1usize, 3].as_slice()),
        select(
            [("total_time", pbg::Order::TotalTime), ("mean_time", pbg::Order::MeanTime)].as_slice(),
        ),
        select(
            [
                ("stay", pbg::OnYield::Stay),
                ("next", pbg::OnYield::Next),
                ("last", pbg::OnYield::Last),
            ]
            .as_slice(),
        ),
        any::<bool>(),
        prop::collection::vec(record, 12),
        moves(0..3u64, 400),
    );
    compare_all(1_500, strategy, |(cpus, order, on_yield, lifo, records, moves)| {
        let machine = Machine::flat(cpus).unwrap();
        let known = records.iter().enumerate().filter(|(_, record)| **record != (0, 0));
        let profile: String =
            known.map(|(key, (time, n))| format!("{key}={time}ns/{n} ")).collect();
        let settings = [
            ("profile", profile.as_str()),
            ("order", order.0),
            ("on_yield", on_yield.0),
            ("fallback", if lifo { "lifo" } else { "fifo" }),
        ];
        let scope = Scope {
            offs: &[Off::Yielded, Off::Yielded, Off::Yielded, Off::Blocked, Off::Exited],
            dequeues: true,
            undoes: true,
            ..Scope::new(12)
        };
        let oracle = pbg::Pbg::new(cpus, order.1, on_yield.1, lifo, records);
        compare(&machine, checked("pbg", &machine, &settings), oracle, &scope, &moves)
    });
}

/// Some tasks share a key, some have none.
fn some_keys(number: u64, params: &mut TaskParams) {
    params.key = (number & 1 == 0).then_some((number >> 1 & 3) as u32);
}

#[test]
fn gittins_decides_by_the_definition_of_its_ranks() {
    let ranks = [
        ("gittins", gittins::Rank::Gittins),
        ("serpt", gittins::Rank::Serpt),
        ("m-serpt", gittins::Rank::MSerpt),
    ];
    let sizes = prop::option::of(prop::collection::vec(1..6_000u64, 1..8));
    let strategy = (
        select([1usize, 3].as_slice()),
        select(ranks.to_vec()),
        sizes,
        select([4usize, 16].as_slice()),
        select([0i64, 10, 50, 100].as_slice()),
        any::<bool>(),
        moves(0..3_000u64, 300),
    );
    compare_all(1_500, strategy, |(cpus, rank, mut sizes, history, share, ticks, moves)| {
        let machine = Machine::flat(cpus).unwrap();
        if let Some(sizes) = &mut sizes {
            // Some of them are equal.
            sizes.iter_mut().for_each(|size| *size -= *size % 3 * (*size / 3));
            sizes.sort_unstable();
        }
        let text = sizes.as_ref().map_or("auto".into(), |sizes| {
            let texts: Vec<String> = sizes.iter().map(|size| format!("{size}ns")).collect();
            texts.join(",")
        });
        let (history_text, share_text) = (history.to_string(), share.to_string());
        let settings = [
            ("rank", rank.0),
            ("sizes", text.as_str()),
            ("history", history_text.as_str()),
            ("share", share_text.as_str()),
            ("quantum", "2us"),
        ];
        let scope = Scope {
            offs: &[Off::Blocked, Off::Blocked, Off::Yielded, Off::Preempted, Off::Exited],
            pins: Pins::Any,
            dequeues: true,
            detaches: true,
            undoes: true,
            hotplug: true,
            describe: some_keys,
            tick: ticks.then_some(Span::from_us(1)),
            ..Scope::new(10)
        };
        let rules = gittins::Rules { rank: rank.1, sizes, history, share, quantum: 2_000 };
        let policy = checked("gittins", &machine, &settings);
        compare(&machine, policy, gittins::Gittins::new(cpus, rules), &scope, &moves)
    });
}

/// A period of 0.1 to 3.9 ms and a slice within it.
fn periodic(number: u64, params: &mut TaskParams) {
    let unit = Span::from_us(100).0;
    let period = 1 + number % 39;
    let slice = (1 + (number >> 16) % 39).min(period);
    (params.period, params.budget) = (Some(Span(period * unit)), Some(Span(slice * unit)));
}

/// The same, but for some that only get extra time.
fn best_effort(number: u64, params: &mut TaskParams) {
    periodic(number, params);
    if number >> 32 & 7 == 0 {
        (params.period, params.budget) = (Some(Span::from_ms(10)), Some(Span::ZERO));
    }
}

/// More than there is: of 1 to 4 ms, 0.3 to 1.5 each.
fn overload(number: u64, params: &mut TaskParams) {
    let unit = Span::from_us(100).0;
    let period = 10 + number % 30;
    let slice = (3 + (number >> 16) % 12).min(period);
    (params.period, params.budget) = (Some(Span(period * unit)), Some(Span(slice * unit)));
}

const SEDF: [(&str, sedf::Kind); 4] = [
    ("sedf", sedf::Kind::Sedf),
    ("dm-xen", sedf::Kind::DmXen),
    ("d-edf", sedf::Kind::DEdf),
    ("sedf-dm", sedf::Kind::SedfDm),
];

fn compare_sedf(
    (name, kind): (&str, sedf::Kind),
    aware: bool,
    scope: Scope,
    moves: &Moves,
) -> Result<Seen, TestCaseError> {
    let mut settings = vec![("extra", word(aware)), ("slice", "1ms")];
    if kind == sedf::Kind::SedfDm {
        settings.push(("window", "24"));
    }
    let machine = Machine::flat(1).unwrap();
    let policy = build(name, &machine, &settings);
    let scope = Scope { picks: Picks::AtOnce, prompt: true, ..scope };
    compare(&machine, policy, sedf::Sedf::new(kind, aware, 24), &scope, moves)
}

#[test]
fn sedf_decides_as_xen_does() {
    // From nanoseconds to milliseconds.
    let pass = (1..8_000_000u64, 0..3u32).prop_map(|(ns, finer)| ns / 50u64.pow(finer));
    let strategy = (select(SEDF.as_slice()), any::<bool>(), moves(pass, 200));
    compare_all(800, strategy, |(kind, aware, moves)| {
        let scope = Scope {
            attached: true,
            offs: &[Off::Preempted, Off::Yielded, Off::Blocked, Off::Blocked],
            dequeues: true,
            describe: if aware { best_effort } else { periodic },
            ..Scope::new(5)
        };
        compare_sedf(kind, aware, scope, &moves)
    });
}

/// Several CPUs, which do not know each other, come and go; affinities change.
#[test]
fn sedf_places_as_xen_does() {
    let pass = (1..8_000_000u64, 0..3u32).prop_map(|(ns, finer)| ns / 50u64.pow(finer));
    let strategy = (select(SEDF.as_slice()), any::<[bool; 2]>(), 2..5usize, moves(pass, 250));
    let seen = compare_all(600, strategy, |((name, kind), [aware, spread], cpus, moves)| {
        let scope = Scope {
            attached: true,
            offs: &[Off::Preempted, Off::Yielded, Off::Blocked, Off::Blocked],
            dequeues: true,
            hotplug: true,
            pins: Pins::Any,
            describe: if aware { best_effort } else { periodic },
            picks: Picks::AtOnce,
            prompt: true,
            ..Scope::new(3 * cpus as u32)
        };
        let placement = if spread { "spread" } else { "first" };
        let mut settings = vec![("extra", word(aware)), ("slice", "1ms"), ("placement", placement)];
        if kind == sedf::Kind::SedfDm {
            settings.push(("window", "24"));
        }
        let machine = Machine::flat(cpus).unwrap();
        let oracle = sedf::Cpus::new(cpus, spread, || sedf::Sedf::new(kind, aware, 24));
        compare(&machine, build(name, &machine, &settings), oracle, &scope, &moves)
    });
    assert!(seen["moves"] > 300, "{seen:?}");
}

/// vCPUs that hardly sleep, so that orders change.
#[test]
fn sedf_changes_its_order_under_overload_as_its_rules_say() {
    let strategy = (select(&SEDF[2..]), moves(1_000..40_000_000u64, 60));
    let seen = compare_all(300, strategy, |(kind, moves)| {
        let scope = Scope {
            attached: true,
            offs: &[Off::Preempted, Off::Blocked],
            describe: overload,
            ..Scope::new(5)
        };
        compare_sedf(kind, false, scope, &moves)
    });
    assert!(seen["switches"] > 300, "{seen:?}");
}

fn compare_rtds(
    (cpus, extratime, prompt): (usize, bool, bool),
    scope: Scope,
    moves: &Moves,
) -> Result<Seen, TestCaseError> {
    let renewals = if prompt { "prompt" } else { "xen" };
    let settings = [("extratime", word(extratime)), ("renewals", renewals)];
    let machine = Machine::flat(cpus).unwrap();
    let policy = build("rtds", &machine, &settings);
    compare(&machine, policy, rtds::Rtds::new(cpus, extratime, prompt), &scope, moves)
}

/// With CPUs that come and go, parameters and affinities that change.
#[test]
fn rtds_decides_as_xen_does() {
    let pass = (1..8_000_000u64, 0..3u32).prop_map(|(ns, finer)| ns / 50u64.pow(finer));
    let options = (1..5usize, any::<bool>(), any::<bool>());
    let seen = compare_all(
        800,
        (options, any::<bool>(), moves(pass, 250)),
        |(options, is_calm, moves)| {
            let scope = Scope {
                attached: is_calm,
                offs: &[Off::Preempted, Off::Yielded, Off::Blocked, Off::Blocked, Off::Exited],
                pins: Pins::Any,
                renices: true,
                dequeues: true,
                detaches: true,
                undoes: true,
                hotplug: true,
                describe: periodic,
                prompt: is_calm,
                ..Scope::new(2 + options.0 as u32 * 2)
            };
            compare_rtds(options, scope, &moves)
        },
    );
    assert!(
        ["held up", "levels", "tickled busy"].iter().all(|name| seen[name] > 1_000),
        "{seen:?}"
    );
}

/// vCPUs that hardly sleep, so that levels rise and delay new periods.
#[test]
fn rtds_orders_new_periods_as_xen_does() {
    let strategy = (1..4usize, any::<bool>(), moves(1_000..20_000_000u64, 80));
    let seen = compare_all(500, strategy, |(cpus, prompt, moves)| {
        let scope = Scope {
            attached: true,
            offs: &[Off::Preempted, Off::Blocked],
            describe: overload,
            prompt: true,
            picks: Picks::AtOnce,
            ..Scope::new(2 + cpus as u32 * 2)
        };
        compare_rtds((cpus, true, prompt), scope, &moves)
    });
    assert!(seen["held up"] > 1_000, "{seen:?}");
}

/// A slice of its own, of 0.05 to 3.2 ms, for some.
fn own_slice(number: u64, params: &mut TaskParams) {
    if number >> 32 & 3 == 0 {
        params.budget = Some(Span::from_us(50 << ((number >> 34) % 7)));
    }
}

/// Tasks that come and go on one CPU, of all nice values, with slices of their own.
fn fair_scope(tasks: u32, tick: Span) -> Scope {
    Scope {
        nice: true,
        renices: true,
        dequeues: true,
        detaches: true,
        offs: &[
            Off::Blocked,
            Off::Blocked,
            Off::Blocked,
            Off::Yielded,
            Off::Preempted,
            Off::Exited,
        ],
        describe: own_slice,
        picks: Picks::AtOnce,
        prompt: true,
        tick: Some(tick),
        ..Scope::new(tasks)
    }
}

fn fair_moves() -> impl Strategy<Value = Moves> {
    let pass = prop_oneof![
        2 => Just(0u64),
        2 => 0..40_000u64,
        3 => 0..900_000u64,
        1 => (0..12u64).prop_map(|steps| steps * 250_000),
        1 => 0..6_000_000u64,
    ];
    moves(pass, 300)
}

const KERNELS: [(&str, (u8, u8)); 5] =
    [("6.6", (6, 6)), ("6.12", (6, 12)), ("6.18", (6, 18)), ("7.2", (7, 2)), ("7.3", (7, 3))];

#[test]
fn eevdf_decides_as_each_kernel() {
    let machine = Machine::flat(1).unwrap();
    for (profile, version) in KERNELS {
        let tick = select(["250us", "1ms", "4ms", "10ms"].as_slice());
        let base = select([None, Some("200us"), Some("3ms")].as_slice());
        let seen = compare_all(
            1_200,
            (tick, base, 2..9u32, fair_moves()),
            |(tick, base, tasks, moves)| {
                let mut settings = vec![("profile", profile), ("tick", tick)];
                let tick = Span::parse(tick).unwrap();
                let mut rules = eevdf::Rules::of(version, tick.0);
                if let Some(base) = base {
                    settings.push(("base_slice", base));
                    rules.base_slice = i128::from(Span::parse(base).unwrap().0);
                }
                let policy = build("eevdf", &machine, &settings);
                compare(
                    &machine,
                    policy,
                    eevdf::Eevdf::new(rules),
                    &fair_scope(tasks, tick),
                    &moves,
                )
            },
        );
        for (name, since) in [("switches", (6, 6)), ("delays", (6, 12)), ("buddies", (7, 3))] {
            assert!(version < since || seen[name] > 1_000, "{profile}: {seen:?}");
        }
    }
}

fn any_rules() -> impl Strategy<Value = eevdf::Rules> {
    let limits =
        [eevdf::Limits::Never, eevdf::Limits::Short, eevdf::Limits::Woken, eevdf::Limits::All];
    let flags = (any::<[bool; 10]>(), any::<[bool; 11]>(), select(limits.to_vec()));
    flags.prop_map(|(first, second, wakeup_limits)| eevdf::Rules {
        hrtick: first[0],
        lazy: first[1],
        place_lag: first[2],
        place_deadline_initial: first[3],
        place_rel_deadline: first[4],
        scale_deadline: first[5],
        longest_slice_limits_lag: first[6],
        run_to_parity: first[7],
        shortest_slice_limits: first[8],
        protect_to_parity: first[9],
        wakeup_limits,
        protect_at_nice: second[0],
        running_wins_ties: second[1],
        wakeup_preemption: second[2],
        fork_preemption: second[3],
        preempt_short: second[4],
        short_ends_protection: second[5],
        short_runs_next: second[6],
        delay_dequeue: second[7],
        delay_zero: second[8],
        delay_keeps_debt: second[9],
        yield_forfeits: second[10],
        ..eevdf::Rules::of((7, 3), 1_000_000)
    })
}

fn fair_settings(rules: &eevdf::Rules) -> Vec<(&'static str, &'static str)> {
    let limits = match rules.wakeup_limits {
        eevdf::Limits::Never => "never",
        eevdf::Limits::Short => "short",
        eevdf::Limits::Woken => "woken",
        eevdf::Limits::All => "all",
    };
    vec![
        ("tick", "1ms"),
        ("hrtick", word(rules.hrtick)),
        ("preemption", if rules.lazy { "lazy" } else { "full" }),
        ("place_lag", word(rules.place_lag)),
        ("place_deadline_initial", word(rules.place_deadline_initial)),
        ("place_rel_deadline", word(rules.place_rel_deadline)),
        ("scale_deadline", word(rules.scale_deadline)),
        ("longest_slice_limits_lag", word(rules.longest_slice_limits_lag)),
        ("run_to_parity", word(rules.run_to_parity)),
        ("shortest_slice_limits", word(rules.shortest_slice_limits)),
        ("protect_to_parity", word(rules.protect_to_parity)),
        ("wakeup_limits", limits),
        ("protect_at_nice", word(rules.protect_at_nice)),
        ("running_wins_ties", word(rules.running_wins_ties)),
        ("wakeup_preemption", word(rules.wakeup_preemption)),
        ("fork_preemption", word(rules.fork_preemption)),
        ("preempt_short", word(rules.preempt_short)),
        ("short_ends_protection", word(rules.short_ends_protection)),
        ("short_runs_next", word(rules.short_runs_next)),
        ("delay_dequeue", word(rules.delay_dequeue)),
        ("delay_zero", word(rules.delay_zero)),
        ("delay_keeps_debt", word(rules.delay_keeps_debt)),
        ("yield_forfeits", word(rules.yield_forfeits)),
    ]
}

#[test]
fn eevdf_obeys_each_switch() {
    let machine = Machine::flat(1).unwrap();
    compare_all(3_000, (any_rules(), 2..9u32, fair_moves()), |(rules, tasks, moves)| {
        let policy = build("eevdf", &machine, &fair_settings(&rules));
        let scope = fair_scope(tasks, Span::from_ms(1));
        compare(&machine, policy, eevdf::Eevdf::new(rules), &scope, &moves)
    });
}
