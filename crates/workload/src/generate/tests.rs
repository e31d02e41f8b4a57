use super::*;
use crate::dist::Dist;
use crate::play::{Played, play};
use crate::rng::Rng;
use crate::{Barrier, Channel, Lock, Measured, Op, Outside, Port, steps};
use anysched_core::TaskId;
use anysched_wire::script::Step;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::path::Path;

const MS: u64 = 1_000_000;

fn dist(text: &str) -> Dist {
    Dist::parse(text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

fn ms(time: u64) -> Time {
    Time(time * MS)
}

fn run_of(span: u64) -> Op {
    Op::Run(Span(span * MS))
}

fn played(generator: &impl Generator, cpus: usize) -> Played {
    play(generator.build(1, cpus).unwrap(), Time::NEVER, 1)
}

fn batch() -> Batch {
    let settings = Settings::default();
    Batch { settings, tasks: 3, service: dist("exp(10ms)"), at: ms(5) }
}

fn open(arrivals: Arrivals) -> Open {
    Open {
        settings: Settings::default(),
        arrivals,
        service: dist("exp(10ms)"),
        tasks: Some(20_000),
        start: Time::ZERO,
        until: None,
    }
}

fn closed() -> Closed {
    Closed {
        settings: Settings::default(),
        clients: 4,
        requests: Some(1000),
        each: None,
        service: dist("exp(10ms)"),
        think: dist("exp(30ms)"),
        until: None,
        persistent: false,
    }
}

fn periodic() -> Periodic {
    Periodic {
        settings: Settings::default(),
        tasks: 1,
        period: Span::from_ms(10),
        run: dist("2ms"),
        budget: None,
        offset: dist("3ms"),
        jitter: Span::ZERO,
        jobs: Some(3),
        until: None,
    }
}

fn task_set() -> TaskSet {
    TaskSet {
        settings: Settings::default(),
        tasks: 100,
        load: 0.8,
        periods: (Span::from_ms(1), Span::from_ms(100)),
        period_step: Span::from_us(100),
        offset: dist("0"),
        jitter: Span::ZERO,
        jobs: Some(2),
        until: None,
    }
}

fn interactive() -> Interactive {
    Interactive {
        settings: Settings::default(),
        tasks: 1,
        run: dist("2ms"),
        sleep: dist("8ms"),
        offset: dist("1ms"),
        rounds: None,
        until: Some(ms(22)),
    }
}

fn hog() -> Hog {
    Hog {
        settings: Settings::default(),
        tasks: 1,
        offset: dist("1ms"),
        until: Some(ms(10)),
        check: Span::from_ms(4),
    }
}

fn ping() -> Ping {
    Ping {
        settings: Settings::default(),
        every: Span::from_ms(10),
        offset: dist("3ms"),
        work: dist("2ms"),
        pings: Some(2),
        port: Port(5),
    }
}

fn echo() -> Echo {
    Echo { settings: Settings::default(), work: dist("1ms"), port: Port(6) }
}

fn service() -> Service {
    Service {
        settings: Settings::default(),
        servers: 1,
        gaps: dist("10ms"),
        service: dist("4ms"),
        hop: Span::from_ms(1),
        requests: Some(2),
        until: None,
    }
}

fn parallel() -> Parallel {
    Parallel {
        settings: Settings::default(),
        tasks: 2,
        run: dist("3ms"),
        rounds: 2,
        locked: Span::ZERO,
        spin: false,
    }
}

/// The first operations of the only task of a load, whatever the outcome of each.
fn ops(generator: &impl Generator, seed: u64, count: usize) -> Vec<Op> {
    let mut load = generator.build(seed, 1).unwrap();
    assert!(matches!(load.outside(), Outside::Arrival(_)));
    load.start(TaskId(0), Time::ZERO);
    (0..count).map(|_| load.step(TaskId(0), Time::ZERO)).collect()
}

#[test]
fn a_batch_arrives_at_once() {
    let name = Some("job".to_string());
    let deadline = Some(Span::from_ms(20));
    let settings = Settings { name, deadline, nice: -3, ..Settings::default() };
    let played = played(&Batch { settings, ..batch() }, 1);
    assert_eq!(played.arrivals(), [5 * MS; 3]);
    let mut rng = Rng::stream(1, "service");
    let service: Vec<u64> = (0..3).map(|_| dist("exp(10ms)").sample(&mut rng).0).collect();
    assert_eq!(played.services(), service);
    for (number, (_, new)) in played.new.iter().enumerate() {
        assert_eq!(new.name.as_deref(), Some(format!("job-{number}").as_str()));
        assert_eq!((new.nice, new.deadline), (-3, Some(ms(25))));
        assert_eq!(new.relative_deadline, deadline);
        let end = (5 * MS + service[number], Op::Exit);
        assert_eq!(played.of(number), [(5 * MS, Op::Run(Span(service[number]))), end]);
    }
}

#[test]
fn only_one_task_has_the_plain_name() {
    let settings = Settings { name: Some("x".to_string()), ..Settings::default() };
    let names = |played: Played| -> Vec<_> {
        played.new.into_iter().map(|(_, new)| new.name.unwrap().to_string()).collect()
    };
    let one = Batch { settings: settings.clone(), tasks: 1, ..batch() };
    assert_eq!(names(played(&one, 1)), ["x"]);
    let two = Periodic { settings, tasks: 2, ..periodic() };
    assert_eq!(names(played(&two, 1)), ["x-0", "x-1"]);
    assert!(played(&batch(), 1).new.iter().all(|(_, new)| new.name.is_none()));
}

/// Kolmogorov-Smirnov: sqrt(n)·D exceeds 2.5 with probability 7·10^-6.
fn follows(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> bool {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let off = |(rank, &value): (usize, &f64)| {
        let p = cdf(value);
        (p - rank as f64 / n).abs().max((p - (rank + 1) as f64 / n).abs())
    };
    values.iter().enumerate().map(off).fold(0.0, f64::max) * n.sqrt() < 2.5
}

fn gaps(played: &Played) -> Vec<f64> {
    let arrivals = played.arrivals();
    let before = std::iter::once(&0).chain(&arrivals);
    arrivals.iter().zip(before).map(|(at, before)| (at - before) as f64).collect()
}

#[test]
fn poisson_arrivals_have_exponential_gaps() {
    // A load of 0.8 on 4 CPUs with 10 ms a task: one task per 3.125 ms, 320 a second.
    for arrivals in
        [Arrivals::Load(0.8), Arrivals::Rate(320.0), Arrivals::Gaps(dist("exp(3125us)"))]
    {
        let played = played(&open(arrivals), 4);
        assert_eq!(played.new.len(), 20_000);
        let wanted = dist("exp(3125us)");
        assert!(follows(gaps(&played), |x| wanted.cdf(x)));
        let service = dist("exp(10ms)");
        let services = played.did.iter().filter_map(|did| match did.op {
            Op::Run(span) => Some(span.0 as f64),
            _ => None,
        });
        assert!(follows(services.collect(), |x| service.cdf(x)));
    }
}

#[test]
fn open_arrivals_keep_their_limits() {
    let every = Arrivals::Gaps(dist("10ms"));
    let start = ms(5);
    let five = Open { tasks: Some(5), start, ..open(every.clone()) };
    assert_eq!(played(&five, 1).arrivals(), [15, 25, 35, 45, 55].map(|at| at * MS));
    let until = Open { tasks: None, start, until: Some(ms(35)), ..open(every.clone()) };
    assert_eq!(played(&until, 1).arrivals(), [15, 25].map(|at| at * MS));
    let neither = Open { tasks: None, ..open(every) };
    assert!(neither.endless() && !until.endless() && !five.endless());
    let long = play(neither.build(1, 1).unwrap(), ms(1_000_000), 1);
    assert_eq!(long.new.len(), 99_999);
}

/// However slowly tasks run, and whoever reuses their numbers: they are the same tasks.
#[test]
fn tasks_do_not_depend_on_how_they_are_run() {
    fn runs(generator: &impl Generator, slowdown: u64) -> (Vec<u64>, Vec<u64>) {
        let played = play(generator.build(7, 2).unwrap(), Time::NEVER, slowdown);
        (played.arrivals(), played.services())
    }
    let open = Open { tasks: Some(300), ..open(Arrivals::Load(0.9)) };
    assert_eq!(runs(&open, 1), runs(&open, 9));
    let set = TaskSet { offset: dist("exp(5ms)"), jitter: Span::from_us(300), ..task_set() };
    assert_eq!(runs(&set, 1), runs(&set, 9));
    let runs = |slowdown| {
        let periodic = Periodic { tasks: 3, run: dist("exp(2ms)"), jobs: Some(50), ..periodic() };
        let played = play(periodic.build(7, 2).unwrap(), Time::NEVER, slowdown);
        let ops = (0..3).map(|serial| played.of(serial).into_iter().map(|(_, op)| op).collect());
        ops.collect::<Vec<Vec<Op>>>()
    };
    assert_eq!(runs(1), runs(9));
}

fn run_time(op: &Op) -> Option<u64> {
    match op {
        Op::Run(span) => Some(span.0),
        _ => None,
    }
}

#[test]
fn a_client_waits_for_its_answer_and_thinks() {
    let (service, think) = (dist("2ms"), dist("3ms"));
    let one = Closed { clients: 1, requests: Some(3), service, think, ..closed() };
    assert_eq!(played(&one, 1).arrivals(), [3, 8, 13].map(|at| at * MS));
    let until = Closed { requests: None, until: Some(ms(13)), ..one.clone() };
    assert_eq!(played(&until, 1).arrivals(), [3, 8].map(|at| at * MS));
    assert!(Closed { until: None, ..until }.endless());
    let busy = Closed { clients: 40, requests: Some(100), think: dist("0"), ..one };
    let played = played(&busy, 1);
    assert_eq!(played.arrivals()[..41], [vec![0; 40], vec![2 * MS]].concat());
    assert_eq!((played.new.len(), played.most), (100, 40));
}

#[test]
fn a_closed_loop_has_the_throughput_of_its_cycle() {
    let many = Closed { clients: 50, requests: Some(20_000), ..closed() };
    let played = played(&many, 1);
    assert!(played.most <= 50);
    // 50 clients with cycles of 10 + 30 ms; the count of n renewals of 50 such cycles varies by
    // about sqrt(n · cv²), cv² = (10² + 30²) / 40².
    let seconds = played.arrivals()[19_999] as f64 / 1e9;
    let wanted = 20_000.0 / (50.0 / 0.04);
    assert!((seconds - wanted).abs() < wanted * 5.0 * (0.625f64 / 20_000.0).sqrt() + 0.05);
}

#[test]
fn a_task_that_stays_serves_what_new_tasks_would() {
    let (service, think) = (dist("2ms"), dist("3ms"));
    let one = Closed { clients: 1, requests: Some(2), service, think, ..closed() };
    let stays = played(&Closed { persistent: true, ..one.clone() }, 1);
    assert_eq!(stays.arrivals(), [3 * MS]);
    let wanted = [
        (3, run_of(2)),
        (5, Op::Measure(Measured::Request(Span::from_ms(2)))),
        (5, Op::Release { at: ms(8), deadline: None }),
        (8, run_of(2)),
        (10, Op::Measure(Measured::Request(Span::from_ms(2)))),
        (10, Op::Measure(Measured::Elapsed(Span::from_ms(7)))),
        (10, Op::Exit),
    ];
    assert_eq!(stays.of(0), wanted.map(|(at, op)| (at * MS, op)));
    // Each client draws the same, whoever serves it.
    let runs = |persistent| {
        let load =
            Closed { persistent, clients: 3, requests: None, until: Some(ms(900)), ..closed() };
        let played = played(&load, 3);
        let mut runs: Vec<u64> = played.did.iter().filter_map(|did| run_time(&did.op)).collect();
        runs.sort_unstable();
        (runs, played.new.len())
    };
    assert_eq!(runs(true).0, runs(false).0);
    assert_eq!(runs(true).1, 3);
    assert!(runs(false).1 > 20);
}

#[test]
fn each_client_makes_its_own_requests() {
    let (service, think) = (dist("2ms"), dist("3ms"));
    let two = Closed { clients: 2, requests: None, each: Some(2), service, think, ..closed() };
    assert!(!two.endless());
    assert_eq!(played(&two, 1).arrivals(), [3, 3, 8, 8].map(|at| at * MS));
    let fewer = Closed { requests: Some(3), ..two.clone() };
    assert_eq!(played(&fewer, 1).arrivals(), [3, 3, 8].map(|at| at * MS));
    let stays = Closed { persistent: true, ..two };
    assert!(
        !stays.needs().reactions
            && Closed { until: Some(ms(9)), ..stays.clone() }.needs().reactions
    );
    // What a kernel is given of it: the same for each client, whatever the others do.
    let script = steps::script(stays.build(1, 1).unwrap(), 1).unwrap();
    let steps = [Step::Compute(2 * MS), Step::Sleep(3 * MS), Step::Compute(2 * MS)];
    assert_eq!(script.tasks.len(), 2);
    assert!(script.tasks.iter().all(|task| task.arrival == 3 * MS && task.steps == steps));
}

/// The k-th request of a client takes the same time however long the client thinks.
#[test]
fn thinking_does_not_change_requests() {
    let services = |think: &str| {
        let one = Closed { clients: 1, requests: Some(50), think: dist(think), ..closed() };
        played(&one, 1).services()
    };
    assert_eq!(services("0"), services("exp(1s)"));
}

#[test]
fn periodic_tasks_are_released_on_their_grid() {
    let settings = Settings { deadline: Some(Span::from_ms(6)), ..Settings::default() };
    let played = played(&Periodic { settings, ..periodic() }, 1);
    let release = |at| Op::Release { at: ms(at), deadline: Some(ms(at + 6)) };
    let wanted = [
        (3, run_of(2)),
        (5, release(13)),
        (13, run_of(2)),
        (15, release(23)),
        (23, run_of(2)),
        (25, Op::Exit),
    ];
    assert_eq!(played.of(0), wanted.map(|(at, op)| (at * MS, op)));
    let (at, new) = &played.new[0];
    assert_eq!((*at, new.deadline, new.period), (ms(3), Some(ms(9)), Some(Span::from_ms(10))));
    assert_eq!(new.budget, Some(Span::from_ms(2)));
    assert_eq!(new.relative_deadline, Some(Span::from_ms(6)));
}

#[test]
fn a_slice_is_a_budget_without_a_period() {
    let settings = Settings { slice: Some(Span::from_us(500)), ..Settings::default() };
    let played = played(&Interactive { settings, ..interactive() }, 1);
    let new = &played.new[0].1;
    assert_eq!((new.budget, new.period), (Some(Span::from_us(500)), None));
    let settings = Settings { slice: Some(Span::ZERO), ..Settings::default() };
    let error = Hog { settings, ..hog() }.validate(1).unwrap_err();
    assert_eq!(error.key, "slice");
}

#[test]
fn late_jobs_follow_each_other_and_none_is_left_out() {
    let late = Periodic { run: dist("25ms"), jobs: None, until: Some(ms(33)), ..periodic() };
    // Releases at 3, 13 and 23; the one at 33 is too late. Without a deadline it is the period.
    let release = |at| Op::Release { at: ms(at), deadline: Some(ms(at + 10)) };
    let wanted = [
        (3, run_of(25)),
        (28, release(13)),
        (28, run_of(25)),
        (53, release(23)),
        (53, run_of(25)),
        (78, Op::Exit),
    ];
    assert_eq!(played(&late, 1).of(0), wanted.map(|(at, op)| (at * MS, op)));
    let none = Periodic { until: Some(ms(3)), ..late };
    assert!(played(&none, 1).new.is_empty());
}

#[test]
fn jitter_delays_releases_but_does_not_add_up() {
    let jitter = Span::from_ms(10);
    let played = played(&Periodic { jitter, jobs: Some(4000), run: dist("1ns"), ..periodic() }, 1);
    let mut lates = vec![played.arrivals()[0] as f64 - 3e6];
    for did in &played.did {
        if let Op::Release { at, deadline } = did.op {
            assert_eq!(deadline, Some(at + Span::from_ms(10)));
            lates.push(at.0 as f64 - (3 + 10 * lates.len() as u64) as f64 * 1e6);
        }
    }
    assert_eq!(lates.len(), 4000);
    assert!(lates.iter().all(|late| (0.0..=1e7).contains(late)));
    assert!(follows(lates, |late| late / 1e7));
}

#[test]
fn random_sets_have_their_load_and_log_uniform_periods() {
    let mut periods = Vec::new();
    for seed in 0..100 {
        let exact = TaskSet { period_step: Span(1), ..task_set() };
        let played = play(exact.build(seed, 4).unwrap(), Time(1), 1);
        let mut total = 0.0;
        for (_, new) in &played.new {
            let (period, run) = (new.period.unwrap(), new.budget.unwrap());
            assert!(period >= Span::from_ms(1) && period <= Span::from_ms(100));
            assert!(run <= period && run > Span::ZERO);
            total += run.0 as f64 / period.0 as f64;
            periods.push(period.0 as f64);
        }
        assert_eq!(played.new.len(), 100);
        // Each run is rounded to the ns, of a period of at least 1 ms.
        assert!((total - 3.2).abs() < 100.0 * 1e-6, "{total}");
    }
    assert!(follows(periods, |period| (period / 1e6).ln() / 100f64.ln()));
    let rounded = play(task_set().build(1, 4).unwrap(), Time(1), 1);
    assert!(rounded.new.iter().all(|(_, new)| new.period.unwrap().0 % 100_000 == 0));
    assert!(rounded.new.iter().all(|(_, new)| new.relative_deadline == new.period));
}

/// UUniFast-Discard, straight from its definition.
fn uunifast_discard(n: usize, total: f64, rng: &mut Rng) -> Vec<f64> {
    loop {
        let mut left = total;
        let mut set = Vec::new();
        for after in (1..n).rev() {
            let next = left * rng.unit().powf(1.0 / after as f64);
            set.push(left - next);
            left = next;
        }
        set.push(left);
        if set.iter().all(|&u| u <= 1.0) {
            return set;
        }
    }
}

#[test]
fn utilisations_are_distributed_as_by_uunifast_discard() {
    for (n, total) in [(3, 0.9), (3, 1.5), (4, 2.2), (8, 2.0)] {
        let mut rng = Rng::from_seed(5);
        let sets = 20_000;
        // The first, the largest and the product tell whether sets are equally likely.
        let views: [fn(&[f64]) -> f64; 3] = [
            |set| set[0],
            |set| set.iter().copied().fold(0.0, f64::max),
            |set| set.iter().product(),
        ];
        let ours: Vec<_> = (0..sets).map(|_| utilisations(n, total, &mut rng)).collect();
        let theirs: Vec<_> = (0..sets).map(|_| uunifast_discard(n, total, &mut rng)).collect();
        for view in views {
            let sorted = |sets: &[Vec<f64>]| {
                let mut values: Vec<f64> = sets.iter().map(|set| view(set)).collect();
                values.sort_unstable_by(f64::total_cmp);
                values
            };
            let (ours, theirs) = (sorted(&ours), sorted(&theirs));
            let below = |value: f64| theirs.partition_point(|&x| x <= value);
            let off = |(rank, &value): (usize, &f64)| below(value).abs_diff(rank + 1);
            let most = ours.iter().enumerate().map(off).max().unwrap();
            // Two samples of m: D exceeds 2.5 · sqrt(2 / m) with probability 7·10^-6.
            let bound = 2.5 * (2.0 * f64::from(sets)).sqrt();
            assert!((most as f64) < bound, "{n} {total}: {most}");
        }
    }
}

#[test]
fn interactive_tasks_end_after_their_rounds() {
    let some = Interactive { tasks: 2, rounds: Some(3), until: None, ..interactive() };
    assert!(!some.endless() && Interactive { rounds: None, ..some.clone() }.endless());
    let runs = |played: &Played, task| {
        played.of(task).iter().filter(|(_, op)| matches!(op, Op::Run(_))).count()
    };
    let played = played(&some, 1);
    assert_eq!([0, 1].map(|task| runs(&played, task)), [3, 3]);
    // In a kernel it sleeps for so long, whenever it comes to that.
    let script = steps::script(some.build(1, 1).unwrap(), 1).unwrap();
    let (run, sleep) = (Step::Compute(2 * MS), Step::Sleep(8 * MS));
    assert_eq!(script.tasks[0].steps, [Step::Repeat(2, vec![run.clone(), sleep]), run]);
}

#[test]
fn interactive_tasks_run_and_sleep_in_turn() {
    let settings = Settings { deadline: Some(Span::from_ms(4)), ..Settings::default() };
    let played = played(&Interactive { settings, ..interactive() }, 1);
    let release = |at| Op::Release { at: ms(at), deadline: Some(ms(at + 4)) };
    let wanted = [
        (1, run_of(2)),
        (3, release(11)),
        (11, run_of(2)),
        (13, release(21)),
        (21, run_of(2)),
        (23, Op::Exit),
    ];
    assert_eq!(played.of(0), wanted.map(|(at, op)| (at * MS, op)));
    assert_eq!(played.new[0].1.deadline, Some(ms(5)));
    // The sleep counts from the end of the run, so slow runs move everything. Without a deadline
    // the first run is a job all the same.
    let slow = play(interactive().build(1, 1).unwrap(), Time::NEVER, 3);
    let starts: Vec<u64> =
        slow.of(0).into_iter().filter(|(_, op)| *op == run_of(2)).map(|(at, _)| at / MS).collect();
    assert_eq!(starts, [1, 15]);
    assert_eq!(slow.new[0].1.deadline, Some(Time::NEVER));
    assert_eq!(slow.of(0)[1].1, Op::Release { at: ms(15), deadline: None });
}

#[test]
fn hogs_end_at_the_next_look_at_the_clock() {
    let alone = played(&hog(), 1);
    let wanted = [(1, run_of(4)), (5, run_of(4)), (9, run_of(1)), (10, Op::Exit)];
    assert_eq!(alone.of(0), wanted.map(|(at, op)| (at * MS, op)));
    assert_eq!(alone.bursts, [9, 5, 1].map(|left| (0, Span::from_ms(left))));
    let slow = play(hog().build(1, 1).unwrap(), Time::NEVER, 2);
    let wanted = [(1, run_of(4)), (9, run_of(1)), (11, Op::Exit)];
    assert_eq!(slow.of(0), wanted.map(|(at, op)| (at * MS, op)));
    let endless = Hog { until: None, ..hog() };
    let long = play(endless.build(1, 1).unwrap(), Time(FOR_EVER.0), 1);
    assert_eq!(long.did.len(), 1);
    assert_eq!(long.bursts, [(0, FOR_EVER)]);
}

#[test]
fn pings_are_sent_on_their_grid_and_answers_taken() {
    let deadline = Some(Span::from_ms(5));
    let ping = Ping { settings: Settings { deadline, ..Settings::default() }, ..ping() };
    let cycle = |at: u64| {
        let release = Op::Release { at: ms(at), deadline: Some(ms(at + 5)) };
        let taken = [Op::Wait(Channel(0)), run_of(2), Op::Reply(Span::ZERO)];
        [&[release, run_of(2), Op::Send(Port(5))][..], &taken].concat()
    };
    assert_eq!(ops(&ping, 1, 13), [cycle(3), cycle(13), vec![Op::Exit]].concat());
    let played = played(&ping, 1);
    assert_eq!((played.new.len(), played.arrivals()), (1, vec![0]));
    // Nothing answers here.
    let sent: Vec<u64> = played.of(0).iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [0, 3 * MS, 5 * MS, 5 * MS]);
    assert!(!ping.endless() && Ping { pings: None, ..ping }.endless());
}

#[test]
fn an_echo_answers_every_message() {
    let answer = [Op::Wait(Channel(0)), run_of(1), Op::Send(Port(6))];
    assert_eq!(ops(&echo(), 1, 9), [&answer[..], &answer, &answer].concat());
    // It waits for more, which does not keep the run going.
    assert!(!echo().endless());
    assert_eq!(played(&echo(), 1).of(0), [(0, Op::Wait(Channel(0)))]);
}

#[test]
fn a_service_takes_requests_a_hop_after_they_were_sent() {
    let mut load = service().build(1, 1).unwrap();
    assert!(matches!(load.outside(), Outside::Arrival(_)));
    for sent in [10, 20] {
        assert_eq!(load.peek(), ms(sent + 1));
        let Outside::Message { channel, sent: at } = load.outside() else { panic!("no request") };
        assert_eq!((channel, at), (Channel(0), ms(sent)));
    }
    assert_eq!(load.peek(), Time::NEVER);
    let server = [
        (0, Op::Wait(Channel(0))),
        (11, run_of(4)),
        (15, Op::Reply(Span::from_ms(1))),
        (15, Op::Wait(Channel(0))),
        (21, run_of(4)),
        (25, Op::Reply(Span::from_ms(1))),
        (25, Op::Wait(Channel(0))),
    ];
    assert_eq!(played(&service(), 1).of(0), server.map(|(at, op)| (at * MS, op)));
}

#[test]
fn servers_take_requests_in_turn_and_none_is_sent_too_late() {
    let settings = Settings { name: Some("worker".to_string()), ..Settings::default() };
    let service = dist("14ms");
    let two = Service { settings, servers: 2, service, requests: None, ..self::service() };
    assert!(two.endless());
    let until = Service { until: Some(ms(40)), ..two };
    assert!(!until.endless());
    let played = played(&until, 2);
    let names: Vec<_> = played.new.iter().map(|(_, new)| new.name.as_deref().unwrap()).collect();
    assert_eq!((names, played.arrivals()), (vec!["worker-0", "worker-1"], vec![0, 0]));
    // Those of 10, 20 and 30 ms come at 11, 21 and 31; that of 40 is not sent.
    let runs = |serial: usize| {
        let of = played.of(serial).into_iter();
        of.filter(|(_, op)| matches!(op, Op::Run(_))).map(|(at, _)| at / MS).collect::<Vec<_>>()
    };
    assert_eq!((runs(0), runs(1)), (vec![11, 31], vec![21]));
}

#[test]
fn requests_do_not_depend_on_who_serves_them() {
    let work = |servers: u32, slowdown: u64| {
        let load = Service {
            servers,
            gaps: dist("exp(10ms)"),
            service: dist("exp(8ms)"),
            requests: Some(100),
            ..service()
        };
        let played = play(load.build(7, 1).unwrap(), Time::NEVER, slowdown);
        let runs = played.did.into_iter().filter_map(|did| match did.op {
            Op::Run(span) => Some(span),
            _ => None,
        });
        runs.collect::<Vec<_>>()
    };
    assert_eq!(work(1, 1).len(), 100);
    assert_eq!(work(1, 1), work(3, 1));
    assert_eq!(work(1, 1), work(5, 4));
}

#[test]
fn parallel_tasks_compute_and_meet() {
    let load = parallel().build(1, 2).unwrap();
    assert_eq!(load.sizes().barriers, [2]);
    let free = played(&parallel(), 2);
    let round = |at: u64| [(at, run_of(3)), (at + 3, Op::Meet(Barrier(0)))];
    let rounds = [&round(0)[..], &round(3), &[(6, Op::Exit)]].concat();
    let expected: Vec<_> = rounds.into_iter().map(|(at, op)| (at * MS, op)).collect();
    assert_eq!((free.of(0), free.of(1)), (expected.clone(), expected));
}

#[test]
fn the_lock_of_a_round_is_slept_or_spun_for() {
    let one = Parallel { tasks: 1, rounds: 1, locked: Span::from_ms(1), ..parallel() };
    for (spin, lock) in [(false, Op::Lock(Lock(0))), (true, Op::Spin(Lock(0)))] {
        let held = [run_of(1), Op::Unlock(Lock(0)), Op::Meet(Barrier(0)), Op::Exit];
        let expected = [&[run_of(3), lock][..], &held].concat();
        assert_eq!(ops(&Parallel { spin, ..one.clone() }, 1, 6), expected);
    }
}

#[test]
fn each_parallel_task_has_its_own_times() {
    let drawn = |tasks: u32| {
        let load = Parallel { tasks, rounds: 5, run: dist("exp(3ms)"), ..parallel() };
        let played = played(&load, 4);
        let runs = |serial: usize| {
            let of = played.of(serial).into_iter().map(|(_, op)| op);
            of.filter(|op| matches!(op, Op::Run(_))).collect::<Vec<_>>()
        };
        (0..tasks as usize).map(runs).collect::<Vec<_>>()
    };
    let (two, three) = (drawn(2), drawn(3));
    assert_eq!(two, three[..2]);
    assert!(three[0] != three[1] && three[1] != three[2] && three[0] != three[2]);
}

#[test]
fn wrong_settings_say_what_is_wrong() {
    let settings = Settings::default();
    let elsewhere = CpuSet::parse("4-7").unwrap();
    let cases: Vec<(Box<dyn Generator>, &str)> = vec![
        (Box::new(Batch { tasks: 0, ..batch() }), "`tasks` = 0: at least 1"),
        (
            Box::new(Batch { service: dist("0"), ..batch() }),
            "`service` = 0: a task uses CPU time, for example \"10ms\"",
        ),
        (
            Box::new(Batch { settings: Settings { nice: 20, ..settings.clone() }, ..batch() }),
            "`nice` = 20: from -20 to 19",
        ),
        (
            Box::new(Batch {
                settings: Settings { affinity: elsewhere, ..settings.clone() },
                ..batch()
            }),
            "`affinity` = 4-7: none of these is a CPU of this machine, which has 4",
        ),
        (
            Box::new(Batch {
                settings: Settings { deadline: Some(Span::ZERO), ..settings },
                ..batch()
            }),
            "`deadline` = 0: longer than 0; leave it out for tasks without deadlines",
        ),
        (Box::new(open(Arrivals::Load(0.0))), "`load` = 0: above 0, for example 0.9"),
        (Box::new(open(Arrivals::Load(f64::NAN))), "`load` = NaN: above 0, for example 0.9"),
        (Box::new(open(Arrivals::Rate(-1.0))), "`rate` = -1: above 0, in tasks per second"),
        (
            Box::new(open(Arrivals::Gaps(dist("0")))),
            "`interarrival` = 0: longer than 0 on average; a batch has tasks that arrive together",
        ),
        (
            Box::new(Open { start: ms(5), until: Some(ms(5)), ..open(Arrivals::Load(0.5)) }),
            "`until` = 5ms: later than the start; leave it out to go on for ever",
        ),
        (Box::new(Closed { clients: 0, ..closed() }), "`clients` = 0: at least 1"),
        (Box::new(Closed { requests: Some(0), ..closed() }), "`requests` = 0: at least 1"),
        (Box::new(Closed { each: Some(0), ..closed() }), "`each` = 0: at least 1"),
        (
            Box::new(Periodic { period: Span::ZERO, ..periodic() }),
            "`period` = 0: longer than 0, for example \"10ms\"",
        ),
        (
            Box::new(Periodic { jitter: Span::from_ms(11), ..periodic() }),
            "`jitter` = 11ms: at most the period",
        ),
        (
            Box::new(TaskSet { load: 30.0, ..task_set() }),
            "`load` = 30: above 0; on 4 CPUs at most 25 for 100 tasks, of which each needs at most \
             one CPU",
        ),
        (
            Box::new(TaskSet { periods: (Span(9), Span(8)), ..task_set() }),
            "`periods` = 9ns, 8ns: the shorter one first",
        ),
        (
            Box::new(TaskSet { period_step: Span::from_ms(2), ..task_set() }),
            "`period_step` = 2ms: above 0, at most the shortest period",
        ),
        (
            Box::new(Hog { check: Span::ZERO, ..hog() }),
            "`check` = 0: longer than 0, for example \"10ms\"",
        ),
        (Box::new(Interactive { tasks: 0, ..interactive() }), "`tasks` = 0: at least 1"),
        (
            Box::new(Ping { every: Span::ZERO, ..ping() }),
            "`every` = 0: longer than 0, for example \"10ms\"",
        ),
        (
            Box::new(Ping { work: dist("0"), ..ping() }),
            "`work` = 0: a task uses CPU time, for example \"10ms\"",
        ),
        (Box::new(Ping { pings: Some(0), ..ping() }), "`pings` = 0: at least 1"),
        (
            Box::new(Echo { work: dist("0"), ..echo() }),
            "`work` = 0: a task uses CPU time, for example \"10ms\"",
        ),
        (Box::new(Service { servers: 0, ..service() }), "`servers` = 0: at least 1"),
        (Box::new(Service { requests: Some(0), ..service() }), "`requests` = 0: at least 1"),
        (
            Box::new(Service { gaps: dist("0"), ..service() }),
            "`interarrival` = 0: requests need time between them, for example \"exp(10ms)\"",
        ),
        (
            Box::new(Service { service: dist("0"), ..service() }),
            "`service` = 0: a task uses CPU time, for example \"10ms\"",
        ),
        (
            Box::new(Service { until: Some(Time::ZERO), ..service() }),
            "`until` = 0: later than the start; leave it out to go on for ever",
        ),
        (Box::new(Parallel { tasks: 0, ..parallel() }), "`tasks` = 0: at least 1"),
        (Box::new(Parallel { rounds: 0, ..parallel() }), "`rounds` = 0: at least 1"),
        (
            Box::new(Parallel { run: dist("0"), ..parallel() }),
            "`run` = 0: a task uses CPU time, for example \"10ms\"",
        ),
    ];
    for (generator, message) in cases {
        assert_eq!(generator.validate(4).unwrap_err().to_string(), message);
        assert!(generator.build(1, 4).is_err());
    }
}

fn any_generator() -> impl Strategy<Value = Box<dyn Generator>> {
    let span = || 0..50 * MS;
    prop_oneof![
        (1u64..20, 0u64..5).prop_map(|(tasks, at)| {
            Box::new(Batch { tasks, at: ms(at), ..batch() }) as Box<dyn Generator>
        }),
        (0.1f64..3.0, 1u64..50).prop_map(|(load, tasks)| {
            Box::new(Open { tasks: Some(tasks), ..open(Arrivals::Load(load)) }) as _
        }),
        (1u32..8, 1u64..50).prop_map(|(clients, requests)| {
            Box::new(Closed { clients, requests: Some(requests), ..closed() }) as _
        }),
        (1u32..5, 1u64..20, 0u64..=10).prop_map(|(tasks, jobs, jitter)| {
            let (jobs, jitter) = (Some(jobs), Span::from_ms(jitter));
            Box::new(Periodic { tasks, jobs, jitter, ..periodic() }) as _
        }),
        (1u32..30, 0.01f64..0.99, span()).prop_map(|(tasks, part, offset)| {
            let offset = Dist::constant(Span(offset));
            let load = part * f64::from(tasks) / 2.0;
            Box::new(TaskSet { tasks, load, offset, ..task_set() }) as _
        }),
        (1u32..5, span()).prop_map(|(tasks, until)| {
            Box::new(Interactive { tasks, until: Some(Time(until + 1)), ..interactive() }) as _
        }),
        (1u32..5, span()).prop_map(|(tasks, until)| {
            Box::new(Hog { tasks, until: Some(Time(until + 1)), ..hog() }) as _
        }),
        (1u32..8, 1u64..20, span()).prop_map(|(tasks, rounds, locked)| {
            let run = dist("exp(3ms)");
            Box::new(Parallel { tasks, rounds, locked: Span(locked), run, ..parallel() }) as _
        }),
    ]
}

proptest! {
    /// Every load that is not endless ends, the same way each time, and says when it goes on.
    #[test]
    fn loads_are_deterministic_and_end(generator in any_generator(), seed in any::<u64>()) {
        prop_assert!(!generator.endless());
        let [first, second] =
            [1, 1].map(|slowdown| play(generator.build(seed, 2).unwrap(), Time::NEVER, slowdown));
        prop_assert_eq!(&first.did, &second.did);
        let exits = first.did.iter().filter(|did| did.op == Op::Exit).count();
        prop_assert_eq!(exits, first.new.len());
        prop_assert!(first.did.is_sorted_by_key(|did| did.at));
        let empty = first.did.iter().any(|did| did.op == Op::Run(Span::ZERO));
        prop_assert!(!empty);
    }

    /// Loads that wait for messages do the same each time, too.
    #[test]
    fn services_are_deterministic(servers in 1u32..5, requests in 1u64..60, seed in any::<u64>()) {
        let (gaps, work) = (dist("exp(3ms)"), dist("exp(5ms)"));
        let requests = Some(requests);
        let load = Service { servers, gaps, service: work, requests, ..service() };
        let [first, second] =
            [(), ()].map(|()| play(load.build(seed, 2).unwrap(), Time::NEVER, 1));
        prop_assert_eq!(&first.did, &second.did);
        let replies = first.did.iter().filter(|did| matches!(did.op, Op::Reply(_))).count();
        prop_assert_eq!(Some(replies as u64), requests);
    }

    #[test]
    fn utilisations_sum_to_the_total(n in 1usize..60, part in 0.0f64..=1.0, seed in any::<u64>()) {
        let total = part * n as f64;
        let set = utilisations(n, total, &mut Rng::from_seed(seed));
        prop_assert_eq!(set.len(), n);
        prop_assert!((set.iter().sum::<f64>() - total).abs() < 1e-9);
        prop_assert!(set.iter().all(|u| (0.0..=1.0).contains(u)));
    }
}
