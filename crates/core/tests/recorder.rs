//! Logs read back as written, replay to the same answers, and are never trusted.

use std::borrow::Cow;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use anysched_core::checked::{Fault, HostFault, Violation};
use anysched_core::machine::Cpu;
use anysched_core::recorder::{
    Answer, Call, LogError, LogReader, PickHash, Problem, Record, ReplayError, lost, replay,
};
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, MAX_CPUS, Machine, Off,
    Pick, Recorder, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_oracle::random::{Host, Load};
use anysched_oracle::rehearsal::{rehearsed, text};
use anysched_policies::POLICIES;
use proptest::prelude::*;

const LOAD: Load = Load {
    tasks: 10,
    burst: Span::from_us(300),
    pause: Span::from_us(700),
    pinned: true,
    hotplug: true,
};

fn build(log: &[u8]) -> Option<Box<dyn Scheduler>> {
    let reader = LogReader::new(log).ok()?;
    let header = reader.header();
    (anysched_policies::policy(header.policy)?.build)(&header.machine, &header.settings).ok()
}

/// The log of a random run.
fn record(policy: &str, machine: &Machine, settings: &[(&str, &str)], picks: u64) -> Vec<u8> {
    let known = anysched_policies::policy(policy).unwrap();
    let settings = &rehearsed(known, settings, machine, LOAD, 1);
    let settings = &text(settings);
    let built = (known.build)(machine, settings).unwrap();
    let recorder = Recorder::new(built, machine, policy, settings, Vec::new());
    let mut host = Host::new(recorder, machine, LOAD, 1);
    while host.picks < picks {
        host.step();
    }
    host.drain();
    host.policy.into_parts().1
}

fn records(log: &[u8]) -> Vec<Record> {
    LogReader::new(log).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_policy_replays_to_the_same_answers() {
    for topology in ["1 cpu", "2 nodes x 3 cores"] {
        let machine = Machine::parse(topology).unwrap().with_tick(Some(Span::from_ms(4)));
        for policy in POLICIES {
            let log = record(policy.name, &machine, &[], 1_000);
            let reader = LogReader::new(&log).unwrap();
            assert_eq!(reader.header().machine, machine);
            assert_eq!(reader.header().policy, policy.name);
            let mut picks = 0;
            let mut hash = PickHash::default();
            for Record { now, call, answer, .. } in records(&log) {
                if let (Call::PickNext { cpu }, Some(pick)) = (call, answer.unwrap().pick) {
                    picks += 1;
                    hash.add(now, cpu, pick);
                }
            }
            let done = replay(&log, &mut *build(&log).unwrap());
            let done = done.unwrap_or_else(|error| panic!("{}: {error}", policy.name));
            assert_eq!(done.calls, records(&log).len() as u64);
            assert!(picks >= 1_000);
            assert_eq!((done.picks, done.hash), (picks, hash.value()));
        }
    }
}

#[test]
fn replay_stops_at_the_first_answer_that_differs() {
    let machine = Machine::flat(1).unwrap();
    let settings = [("quantum", "3ms")];
    let rr = (anysched_policies::policy("rr").unwrap().build)(&machine, &settings).unwrap();
    let mut rr = Recorder::new(rr, &machine, "rr", &settings, Vec::new());
    let mut kicks = CpuMask::EMPTY;
    let mut cx = Cx::new(Time(1_500_000), &mut kicks);
    rr.attach(&mut cx, TaskId(0), &TaskParams::default());
    rr.enqueue(&mut cx, TaskId(0), Arrival::because(Enqueue::New));
    rr.pick_next(&mut cx, CpuId(0));
    let (_, log) = rr.into_parts();

    let mut fcfs = (anysched_policies::policy("fcfs").unwrap().build)(&machine, &[]).unwrap();
    let error = replay(&log, &mut *fcfs).unwrap_err();
    assert_eq!(
        error.to_string(),
        "call 3 at 1.5ms: pick_next CPU 0 -> task 0 for 3ms, no kick; now the policy answers: \
         task 0 without limit, no kick"
    );
    let ReplayError::Difference(difference) = error else { panic!("{error}") };
    assert_eq!(difference.record.number, 3);
    assert_eq!(difference.got.pick, Some(Pick { task: TaskId(0), slice: Span::MAX }));
}

#[test]
fn replay_refuses_what_a_host_must_not_do() {
    let machine = Machine::flat(1).unwrap();
    let mut nothing = Recorder::new(Scripted::default(), &machine, "", &[], Vec::new());
    let mut kicks = CpuMask::EMPTY;
    nothing.dequeue(&mut Cx::new(Time(0), &mut kicks), TaskId(3));
    let (_, log) = nothing.into_parts();
    let mut fcfs = (anysched_policies::policy("fcfs").unwrap().build)(&machine, &[]).unwrap();
    match replay(&log, &mut *fcfs) {
        Err(ReplayError::Contract(violation)) => {
            assert_eq!(violation.call, 1);
            assert!(matches!(violation.fault, Fault::Host(HostFault::WrongState { .. })));
        }
        other => panic!("{other:?}"),
    }
}

/// What a [`Scripted`] policy answers.
#[derive(Clone, Debug, Default)]
struct Script {
    pick: Option<Pick>,
    kicks: Vec<u16>,
    timer: Option<Time>,
}

/// Answers what it is told to, whatever it is called for, and panics on `detach`.
#[derive(Clone, Default)]
struct Scripted(Rc<RefCell<Script>>);

impl Scripted {
    fn answers(&self, script: Script) {
        *self.0.borrow_mut() = script;
    }

    fn kick(&self, cx: &mut Cx<'_>) {
        self.0.borrow().kicks.iter().for_each(|&cpu| cx.kick(CpuId(cpu)));
    }
}

impl Scheduler for Scripted {
    fn attach(&mut self, cx: &mut Cx<'_>, _: TaskId, _: &TaskParams) {
        self.kick(cx);
    }
    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {
        panic!("planted");
    }
    fn update(&mut self, cx: &mut Cx<'_>, _: TaskId, _: &TaskParams) {
        self.kick(cx);
    }
    fn set_domain(&mut self, cx: &mut Cx<'_>, _: DomainId, _: &DomainParams) {
        self.kick(cx);
    }
    fn set_param(&mut self, cx: &mut Cx<'_>, _: &str, _: &str) {
        self.kick(cx);
    }
    fn set_online(&mut self, cx: &mut Cx<'_>, _: CpuId, _: bool) {
        self.kick(cx);
    }
    fn enqueue(&mut self, cx: &mut Cx<'_>, _: TaskId, _: Arrival) {
        self.kick(cx);
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>, _: TaskId) {
        self.kick(cx);
    }
    fn pick_next(&mut self, cx: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        self.kick(cx);
        self.0.borrow().pick
    }
    fn put_prev(&mut self, cx: &mut Cx<'_>, _: CpuId, _: TaskId, _: Span, _: Off) {
        self.kick(cx);
    }
    fn tick(&mut self, cx: &mut Cx<'_>, _: CpuId, _: TaskId, _: Span) {
        self.kick(cx);
    }
    fn next_timer(&self) -> Option<Time> {
        self.0.borrow().timer
    }
    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.kick(cx);
    }
}

/// The example of a log, byte by byte from the documentation of the format.
#[test]
fn the_format_is_as_documented() {
    let cpu = Cpu { core: 0, llc: 0, package: 0, node: 0, capacity: 1024 };
    let machine = Machine::new(vec![cpu, Cpu { core: 1, capacity: 300, ..cpu }]).unwrap();
    let machine = machine.with_tick(Some(Span(200)));
    let policy = Scripted::default();
    let mut log = Recorder::new(policy.clone(), &machine, "rr", &[("quantum", "1ms")], Vec::new());
    let mut kicks = CpuMask::EMPTY;
    let params = TaskParams {
        weight: 2000,
        priority: -3,
        affinity: CpuSet::Few(0b11),
        preferred: CpuSet::Few(0b110),
        domain: DomainId(5),
        period: Some(Span(1)),
        budget: Some(Span(2)),
        relative_deadline: Some(Span(128)),
        key: Some(300),
        intensity: 80,
    };
    let timer = Some(Time(60));
    policy.answers(Script { timer, ..Script::default() });
    log.attach(&mut Cx::new(Time(300), &mut kicks), TaskId(130), &params);
    policy.answers(Script { timer, kicks: vec![1, 3, 200], pick: None });
    let arrival = Arrival {
        why: Enqueue::Wakeup { prev: CpuId(1), sync: true },
        from: Some(CpuId(0)),
        burst: Some(Span(7)),
        deadline: Some(Time(290)),
    };
    log.enqueue(&mut Cx::new(Time(300), &mut kicks), TaskId(130), arrival);
    assert_eq!(kicks.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), [1, 3, 200]);
    let pick = Some(Pick { task: TaskId(130), slice: Span::MAX });
    policy.answers(Script { pick, ..Script::default() });
    log.pick_next(&mut Cx::new(Time(301), &mut kicks), CpuId(1));
    let pick = Some(Pick { task: TaskId(1), slice: Span(4) });
    policy.answers(Script { pick, ..Script::default() });
    log.pick_next(&mut Cx::new(Time(301), &mut kicks), CpuId(0));
    log.put_prev(&mut Cx::new(Time(305), &mut kicks), CpuId(0), TaskId(1), Span(4), Off::Exited);
    log.set_param(&mut Cx::new(Time(305), &mut kicks), "quantum", "2ms");

    #[rustfmt::skip]
    let expected = [
        b"anysched".as_slice(), &[2],
        &[2], b"rr", &[1, 7], b"quantum", &[3], b"1ms",
        &[2, 0, 0, 0, 0, 0x80, 8, 1, 0, 0, 0, 0xac, 2],   // two CPUs; 1024 = 8·128, 300 = 2·128+44
        &[0xc8, 1],                                       // tick 200 = 128+72
        &[0x10, 0xac, 2, 0x82, 1],                        // attach after 300, task 130
        &[0xff, 7],                                       // flags 0x3ff = 7·128+127
        &[0xd0, 0x0f, 5, 1, 3, 5, 1, 2, 0x80, 1],         // 2000 = 15·128+80, -3 as 5, one word
        &[0xac, 2, 1, 6, 80],                             // key 300; one word; intensity
        &[4, 1, 0xdf, 3],                                 // timer at 300 - 240: 479 = 3·128+95
        &[6, 0x82, 1, 0x3d, 1, 0, 7, 19],                 // enqueue, 1|4|8|16|32; deadline -10
        &[2, 3, 1, 2, 0xc5, 1],                           // kicks 1, +2, +197 = 128+69
        &[0x18, 1, 1, 5, 0x82, 1, 0, 0],                  // pick on 1, no limit; no timer now
        &[8, 0, 1, 1, 5],                                 // pick on 0: task 1 for 4
        &[0x19, 4, 0, 1, 4, 5, 0],                        // put_prev, exited
        &[13, 7], b"quantum", &[3], b"2ms", &[0],         // set_param
    ].concat();
    let (_, bytes) = log.into_parts();
    assert_eq!(bytes, expected);

    let lines: Vec<String> = records(&bytes).iter().map(|record| record.to_string()).collect();
    assert_eq!(
        lines,
        [
            "1 at 300ns: attach task 130, weight 2000, priority -3, CPUs 0-1, domain 5, prefers \
             CPUs 1-2, period 1ns, budget 2ns, relative deadline 128ns, key 300, intensity 80 % -> no kick, timer at 60ns",
            "2 at 300ns: enqueue task 130, woken in sync, was on CPU 1, by CPU 0, burst 7ns, \
             deadline 290ns -> kicks 1,3,200, timer at 60ns",
            "3 at 301ns: pick_next CPU 1 -> task 130 without limit, no kick",
            "4 at 301ns: pick_next CPU 0 -> task 1 for 4ns, no kick",
            "5 at 305ns: put_prev CPU 0, task 1, ran 4ns, Exited -> no kick",
            "6 at 305ns: set_param quantum to 2ms -> no kick",
        ]
    );
}

/// Parameters had a byte of flags, and neither preferred CPUs nor an intensity.
#[test]
fn logs_of_version_1_are_read() {
    #[rustfmt::skip]
    let log = [
        b"anysched".as_slice(), &[1],
        &[2], b"rr", &[0],
        &[1, 0, 0, 0, 0, 0x80, 8, 0],   // a CPU of capacity 1024 = 8·128; no tick
        &[0, 7, 0x84, 1, 3, 0xac, 2],   // attach task 7: affinity, of one word, and key 300
        &[0],
        &[2, 7, 0x81, 5, 9],            // update it: weight 5, key 9
        &[0],
    ].concat();
    let [first, second] = [("CPUs 0-1", 300), ("CPUs all", 9)];
    let lines: Vec<String> = records(&log).iter().map(|record| record.to_string()).collect();
    let line = |number, call, weight, (cpus, key)| {
        format!(
            "{number} at 0: {call} task 7, weight {weight}, priority 0, {cpus}, domain 0, key \
             {key} -> no kick"
        )
    };
    assert_eq!(lines, [line(1, "attach", 1024, first), line(2, "update", 5, second)]);
    let unknown = [&log[..log.len() - 6], &[2, 7, 0x80, 8]].concat();
    let mut newer = unknown.clone();
    newer[8] = 2;
    assert!(LogReader::new(&newer).unwrap().any(|record| record.is_err()));
    newer[8] = 3;
    let error = LogReader::new(&newer).unwrap_err().to_string();
    assert_eq!(error, "log, byte 8: version 3, but only versions 1 and 2 can be read");
}

#[test]
fn a_call_that_panics_is_the_last_of_the_log() {
    let machine = Machine::flat(1).unwrap();
    let mut log = Recorder::new(Scripted::default(), &machine, "", &[], Vec::new());
    let mut kicks = CpuMask::EMPTY;
    log.timer(&mut Cx::new(Time(1), &mut kicks));
    let detach = || log.detach(&mut Cx::new(Time(2), &mut kicks), TaskId(9));
    catch_unwind(AssertUnwindSafe(detach)).unwrap_err();
    let last = records(&log.into_parts().1).pop().unwrap();
    assert_eq!((last.number, last.call, last.answer), (2, Call::Detach { task: TaskId(9) }, None));
}

fn error(log: &[u8]) -> LogError {
    match LogReader::new(log) {
        Err(error) => error,
        Ok(mut records) => {
            let error = records.find_map(Result::err).expect("a malformed log was read");
            assert!(records.next().is_none(), "nothing comes after an error");
            error
        }
    }
}

#[test]
fn malformed_logs_are_refused_with_the_place() {
    let header = {
        let machine = Machine::flat(1).unwrap();
        Recorder::new(Scripted::default(), &machine, "", &[], Vec::new()).into_parts().1
    };
    let at = header.len();
    let with = |record: &[u8]| error(&[&header, record].concat());
    let value = |what, value, least, most| Problem::Value { what, value, least, most };
    let bits = |what, byte| Problem::Bits { what, byte };
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let start = [b"anysched".as_slice(), &[1]].concat();
    for (error, offset, problem) in [
        (error(b""), 0, Problem::NotALog),
        (error(b"anyschee\x01"), 0, Problem::NotALog),
        (error(b"anysched"), 8, Problem::Truncated),
        (error(b"anysched\x03"), 8, Problem::Version(3)),
        (error(b"anysched\0"), 8, Problem::Version(0)),
        // A text, a list and a machine that claim to be as long as can be.
        (error(&[&start, huge.as_slice()].concat()), 19, Problem::Truncated),
        (error(&[&start, [0].as_slice(), &huge].concat()), 20, Problem::Truncated),
        (
            error(&[&start, [0, 0].as_slice(), &huge].concat()),
            11,
            value("the number of CPUs", u64::MAX, 1, 1024),
        ),
        (error(&[&start, [2, 0x41, 0xff].as_slice()].concat()), 11, Problem::NotText),
        (with(&[12]), at + 1, Problem::Truncated),
        (with(&[12, 0x80, 1]), at, Problem::Lost(128)),
        (with(&[14]), at, bits("the head of a record", 14)),
        (with(&[0x2b]), at, bits("the head of a record", 0x2b)),
        (with(&[8, 0x80, 8]), at + 1, value("CPU", 1024, 0, 1023)),
        (with(&[8, 0x80]), at + 2, Problem::Truncated),
        (with(&[8, 0, 8]), at + 2, bits("the flags of an answer", 8)),
        (with(&[11, 1, 0, 1]), at + 1, bits("the flags of an answer", 1)),
        (with(&[7, 0, 2, 2, 5, 0]), at + 5, Problem::KicksOrder),
        (with(&[7, 0, 2, 2, 5, 0xff, 7]), at + 5, value("CPU", 1028, 0, 1023)),
        (with(&[7, 0, 2, 0]), at + 3, value("the number of kicks", 0, 1, 1024)),
        (with(&[11, 4, 2]), at + 2, bits("whether there is a timer", 2)),
        (
            with(&[0, 0, 0x80, 1, 0x80, 0x80, 0x80, 0x80, 0x10]),
            at + 4,
            value("key", 1 << 32, 0, u64::from(u32::MAX)),
        ),
        (with(&[0, 0, 1, 0]), at + 3, value("weight", 0, 1, u64::from(u32::MAX))),
        (with(&[0, 0, 4, 17]), at + 3, value("words of a set of CPUs", 17, 0, 16)),
        (with(&[6, 0, 3]), at + 2, bits("the flags of an arrival", 3)),
        (with(&[6, 0, 4]), at + 2, bits("the flags of an arrival", 4)),
        (with(&[9, 0, 0, 0, 6]), at + 4, bits("why a task stops", 6)),
        (
            with(&[7, 0x80, 0x80, 0x80, 0x80, 0x10]),
            at + 1,
            value("task", 1 << 32, 0, (1 << 32) - 1),
        ),
        (
            with(&[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]),
            at + 1,
            Problem::TooLong,
        ),
    ] {
        assert_eq!(error, LogError { offset, problem }, "{error}");
    }
}

/// What there is of a log with losses is read, and then it is an error.
#[test]
fn a_log_with_losses_does_not_replay() {
    let mut log = record("rr", &Machine::flat(2).unwrap(), &[], 30);
    let whole = records(&log);
    lost(&mut log, 17);
    let read: Vec<_> = LogReader::new(&log).unwrap().map_while(Result::ok).collect();
    assert_eq!(read, whole);
    let error = replay(&log, &mut *build(&log).unwrap()).unwrap_err();
    assert!(error.to_string().contains("17 records that follow found no room"), "{error}");
}

#[test]
fn a_log_that_is_cut_off_anywhere_keeps_its_whole_records() {
    let log = record("rr", &Machine::flat(3).unwrap(), &[], 30);
    let whole = records(&log);
    assert!(whole.len() > 100);
    for length in 0..log.len() {
        let Ok(reader) = LogReader::new(&log[..length]) else {
            assert!(length < whole[0].offset);
            continue;
        };
        let ends = whole[1..].iter().map(|record| record.offset).chain([log.len()]);
        let complete = ends.filter(|&end| end <= length).count();
        let (read, rest): (Vec<_>, Vec<_>) =
            reader.partition(|read| read.as_ref().is_ok_and(|record| record.answer.is_some()));
        let read: Vec<Record> = read.into_iter().map(Result::unwrap).collect();
        assert_eq!(read, whole[..complete]);
        match &rest[..] {
            [] => assert_eq!(length, whole.get(complete).map_or(log.len(), |next| next.offset)),
            [Ok(unanswered)] => assert_eq!(unanswered.call, whole[complete].call),
            [Err(error)] => {
                assert_eq!((error.offset, &error.problem), (length, &Problem::Truncated));
            }
            _ => panic!("{rest:?}"),
        }
        let replayed = replay(&log[..length], &mut *build(&log).unwrap());
        match replayed {
            Ok(done) => assert_eq!(done.unanswered, rest.len() == 1, "{length}"),
            Err(error) => {
                assert!(matches!(&rest[..], [Err(cut)] if error == ReplayError::Log(cut.clone())))
            }
        }
    }
}

#[test]
fn damaged_logs_neither_panic_nor_hang() {
    let log = record("fcfs", &Machine::flat(3).unwrap(), &[], 30);
    for at in 0..log.len() {
        for damage in [0x01, 0x08, 0x10, 0x80, 0xff] {
            let mut log = log.clone();
            log[at] ^= damage;
            if let Ok(reader) = LogReader::new(&log) {
                assert!(reader.count() <= log.len());
                if let Some(mut policy) = build(&log) {
                    let _ = replay(&log, &mut *policy);
                }
            }
        }
    }
}

fn any_time() -> impl Strategy<Value = Time> {
    prop_oneof![Just(0), Just(u64::MAX), 0..1_000_000u64, any::<u64>()].prop_map(Time)
}

fn any_span() -> impl Strategy<Value = Span> {
    any_time().prop_map(|time| Span(time.0))
}

fn any_cpu() -> impl Strategy<Value = CpuId> {
    (0..MAX_CPUS as u16).prop_map(CpuId)
}

fn any_task() -> impl Strategy<Value = TaskId> {
    prop_oneof![0..200u32, any::<u32>()].prop_map(TaskId)
}

fn any_set() -> impl Strategy<Value = CpuSet> {
    prop_oneof![
        Just(CpuSet::All),
        any::<u64>().prop_map(CpuSet::Few),
        prop::collection::vec(any_cpu(), 0..20).prop_map(CpuSet::of),
    ]
}

fn any_params() -> impl Strategy<Value = TaskParams> {
    let spans = prop::array::uniform3(prop::option::of(any_span()));
    let key = any::<Option<u32>>();
    let sets = [any_set(), any_set()];
    (1..u32::MAX, any::<i32>(), sets, any::<u16>(), spans, (key, 0..=100u8)).prop_map(
        |(weight, priority, sets, domain, [period, budget, relative_deadline], more)| {
            let (key, intensity) = more;
            let [affinity, preferred] = sets;
            let domain = DomainId(domain);
            TaskParams {
                weight,
                priority,
                affinity,
                preferred,
                domain,
                period,
                budget,
                relative_deadline,
                key,
                intensity,
            }
        },
    )
}

fn any_arrival() -> impl Strategy<Value = Arrival> {
    let why = prop_oneof![
        Just(Enqueue::New),
        (any_cpu(), any::<bool>()).prop_map(|(prev, sync)| Enqueue::Wakeup { prev, sync }),
        any_cpu().prop_map(|prev| Enqueue::Resumed { prev }),
    ];
    let from = prop::option::of(any_cpu());
    (why, from, prop::option::of(any_span()), prop::option::of(any_time()))
        .prop_map(|(why, from, burst, deadline)| Arrival { why, from, burst, deadline })
}

fn any_call() -> impl Strategy<Value = Call<'static>> {
    let why = prop::sample::select(vec![
        Off::Expired,
        Off::Preempted,
        Off::Yielded,
        Off::NotRun,
        Off::Blocked,
        Off::Exited,
    ]);
    let domain = (any::<u16>(), any::<u32>(), any::<u32>());
    prop_oneof![
        (any_task(), any_params())
            .prop_map(|(task, params)| Call::Attach { task, params: Cow::Owned(params) }),
        (any_task(), any_params())
            .prop_map(|(task, params)| Call::Update { task, params: Cow::Owned(params) }),
        domain.prop_map(|(domain, weight, cap_percent)| Call::SetDomain {
            domain: DomainId(domain),
            params: DomainParams { weight, cap_percent },
        }),
        (".{0,80}", ".{0,80}")
            .prop_map(|(name, text)| Call::SetParam { name: name.into(), text: text.into() }),
        (any_cpu(), any::<bool>()).prop_map(|(cpu, online)| Call::SetOnline { cpu, online }),
        (any_task(), any_arrival()).prop_map(|(task, arrival)| Call::Enqueue { task, arrival }),
        any_task().prop_map(|task| Call::Dequeue { task }),
        any_cpu().prop_map(|cpu| Call::PickNext { cpu }),
        (any_cpu(), any_task(), any_span(), why).prop_map(|(cpu, task, ran, why)| Call::PutPrev {
            cpu,
            task,
            ran,
            why
        }),
        (any_cpu(), any_task(), any_span()).prop_map(|(cpu, task, ran)| Call::Tick {
            cpu,
            task,
            ran
        }),
        Just(Call::Timer),
    ]
}

fn any_script() -> impl Strategy<Value = Script> {
    let pick = (any_task(), any_span()).prop_map(|(task, slice)| Pick { task, slice });
    (
        prop::option::of(pick),
        prop::collection::vec(0..MAX_CPUS as u16, 0..40),
        prop::option::of(any_time()),
    )
        .prop_map(|(pick, kicks, timer)| Script { pick, kicks, timer })
}

proptest! {
    /// Any calls, at any times, with any answers, read back as they were made.
    #[test]
    fn logs_read_back_as_written(
        steps in prop::collection::vec((any_time(), any_call(), any_script()), 0..20),
        settings in prop::collection::vec((".{0,80}", ".{0,80}"), 0..3),
    ) {
        let machine = Machine::parse("2 nodes x 2 cores x 2 threads").unwrap();
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let policy = Scripted::default();
        let mut log = Recorder::new(policy.clone(), &machine, "größe", &settings, Vec::new());
        for (now, call, script) in &steps {
            policy.answers(script.clone());
            let mut kicks = CpuMask::EMPTY;
            call.make(&mut log, &mut Cx::new(*now, &mut kicks));
        }
        let (_, bytes) = log.into_parts();
        let reader = LogReader::new(&bytes).unwrap();
        prop_assert_eq!(reader.header().policy, "größe");
        prop_assert_eq!(&reader.header().settings, &settings);
        prop_assert_eq!(&reader.header().machine, &machine);
        let read: Vec<Record> = reader.collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), steps.len());
        for (record, (now, call, script)) in read.iter().zip(&steps) {
            let mut kicks = CpuMask::EMPTY;
            script.kicks.iter().for_each(|&cpu| kicks.insert(CpuId(cpu)));
            let picks = matches!(call, Call::PickNext { .. });
            let pick = script.pick.filter(|_| picks);
            let answer = Answer { pick, kicks, next_timer: script.timer };
            prop_assert_eq!(record.now, *now);
            prop_assert_eq!(&record.call, call);
            prop_assert_eq!(record.answer.as_ref(), Some(&answer));
        }
    }

    /// No bytes make the reader panic or read more records than there are bytes.
    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let machine = Machine::flat(2).unwrap();
        let recorder = Recorder::new(Scripted::default(), &machine, "", &[], Vec::new());
        let log = [recorder.into_parts().1, bytes.clone()].concat();
        prop_assert!(LogReader::new(&log).unwrap().count() <= bytes.len());
        let _ = LogReader::new(&bytes);
    }
}

/// No log makes a policy change what it refuses to change.
#[test]
fn changes_that_the_policy_refuses_are_not_replayed() {
    let machine = Machine::flat(2).unwrap();
    let build = anysched_policies::policy("gfs").unwrap().build;
    let policy = || build(&machine, &[]).unwrap();
    let mut kicks = CpuMask::EMPTY;
    for (grouping, accepted) in [("single", true), ("0-2", false)] {
        let mut log = Recorder::new(policy(), &machine, "gfs", &[], Vec::new());
        log.set_param(&mut Cx::new(Time(7), &mut kicks), "grouping", grouping);
        let replayed = replay(&log.into_parts().1, &mut *policy());
        let expected =
            Violation { call: 1, now: Time(7), fault: Fault::Host(HostFault::ParamRefused) };
        match replayed {
            Ok(done) => assert!(accepted && done.calls == 1),
            Err(error) => {
                assert!(!accepted);
                assert_eq!(error, ReplayError::Contract(expected));
            }
        }
    }
}
