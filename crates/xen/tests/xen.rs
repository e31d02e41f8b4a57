//! Real boots of Xen: that every policy decides there as it does here, and that what goes wrong is
//! said. `cargo xtask hosts xen` runs these; with ANYSCHED_LONG set, every program under every
//! policy, twice. `cargo xtask ci` runs those whose names begin with `quick_`.

use anysched_core::registry::PolicyInfo;
use anysched_core::{DomainId, Machine, Span, Time};
use anysched_debian::unpack;
use anysched_host::{By, Clock, Host, InstructionTime, Options, Order, Setup, Vm, Wire, Work};
use anysched_measure::Metrics;
use anysched_oracle::kernel::{each, replayed};
use anysched_policies::{POLICIES, policy};
use anysched_qemu::Outcome;
use anysched_sim::Simulator;
use anysched_wire::dom0::TakenFor;
use anysched_workload::dist::Dist;
use anysched_workload::generate::{Echo, Generator, Ping, Service, Settings};
use anysched_workload::mix::Mix;
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Barrier, Channel, Lock, NewTask, Op, Port, Sizes};
use anysched_xen::{Boot, BootError, Image, LinuxDom0, Sources, Xen, package};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// The programs, small.
const PROGRAMS: [(&str, &[(&str, &str)]); 6] = [
    ("hog", &[("domains", "3"), ("duration_ns", "200000000"), ("weights", "256,512")]),
    ("ep", &[("domains", "3"), ("log2_pairs", "16")]),
    ("echo", &[("count", "30"), ("hogs", "2")]),
    ("cyclictest", &[("l", "100"), ("hogs", "2"), ("work_ns", "50000")]),
    ("search", &[("count", "30"), ("documents", "200"), ("hogs", "2")]),
    ("zip", &[("domains", "3"), ("kib", "16"), ("rounds", "2")]),
];

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| build(false))
}

/// With Xen's assertions.
fn checked_image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| build(true))
}

fn build(asserts: bool) -> Image {
    let mut say = |line: &str| println!("xen: {line}");
    let sources = Sources::find(&mut say);
    let image = sources.and_then(|sources| Image::build(&sources, asserts, &mut say));
    image.unwrap_or_else(|error| panic!("{error}"))
}

fn boot(policy: &str, program: &str, arguments: &[(&str, &str)]) -> Boot {
    let mut boot = Boot::new(policy, program);
    boot.orders.arguments = owned(arguments);
    boot
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn run(boot: &Boot) -> Result<Outcome, BootError> {
    boot.run(image(), &mut |_| ())
}

fn is_long() -> bool {
    std::env::var_os("ANYSCHED_LONG").is_some()
}

/// The clock of boots whose times do not matter. Xen looks at clocks for 200 ms when it boots, and
/// each look takes QEMU long where it counts instructions: five seconds of the six that a short boot
/// takes. The long form counts them all the same, so that a boot can be compared with another.
fn clock() -> Clock {
    if is_long() { Clock::COUNTED } else { Clock::Parallel }
}

/// Whether there is a Xen to be had today; if not, that is said in capitals.
fn is_available() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| match Sources::find(&mut |_| ()) {
        Err(error @ BootError::Unavailable { .. }) => {
            let said = format!("NO XEN THAT FITS CAN BE HAD: NOTHING IS TESTED\n{error}\n");
            // Not by `eprintln`, which tests keep to themselves.
            std::io::stderr().write_all(said.as_bytes()).unwrap();
            false
        }
        // Other errors are those of tests.
        _ => true,
    })
}

/// Xen's stacks have 8 KiB, from the hypercall to whatever a policy calls.
#[test]
#[ignore = "builds Xen: cargo xtask hosts xen"]
fn quick_policies_leave_room_on_the_stack() {
    if !is_available() {
        return;
    }
    let objects = image().hypervisor().with_file_name("policies.o");
    let mut objdump = Command::new("objdump");
    let code = objdump.args(["-d", "-C", "--no-show-raw-insn"]).arg(&objects).output().unwrap();
    let code = String::from_utf8(code.stdout).unwrap();
    let (mut frames, mut name) = (Vec::new(), "");
    for line in code.lines() {
        name = line.strip_suffix(">:").unwrap_or(name);
        // What takes more than a page takes it page by page.
        let taken = line.strip_suffix(",%rsp").and_then(|line| line.split_once("sub    $0x"));
        let bytes = taken.and_then(|(_, bytes)| u64::from_str_radix(bytes, 16).ok());
        frames.extend(bytes.filter(|bytes| *bytes < 1 << 31).map(|bytes| (bytes, name)));
    }
    // Of some 800: the listing was understood.
    assert!(frames.len() > 400, "{} frames are read", frames.len());
    frames.retain(|&(bytes, _)| bytes > 3 << 10);
    assert!(frames.is_empty(), "{frames:#?}");
}

/// Every policy runs programs to their end under the contract's checks, and decides in the
/// hypervisor what it decides here. In the long form every program, twice alike to the byte.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn quick_every_policy_decides_in_the_hypervisor_as_it_does_here() {
    if !is_available() {
        return;
    }
    // What learns in an earlier run needs one, with tasks that it knows again.
    let learns = |info: &&PolicyInfo| !matches!((info.rehearsal)(&[]), Ok(None));
    let policies = || POLICIES.iter().filter(move |info| !learns(info));
    let jobs: Vec<_> = if is_long() {
        let all = |program| policies().map(move |info| (info, program));
        PROGRAMS.iter().flat_map(all).collect()
    } else {
        policies().zip(PROGRAMS.iter().cycle()).collect()
    };
    let wrong = each(&jobs, |(info, (program, arguments))| {
        let mut boot = boot(info.name, program, arguments);
        (boot.orders.record, boot.checked, boot.clock) = (true, true, clock());
        let fault = |error: BootError| format!("{} {program}: {error}", info.name);
        let outcome = run(&boot).map_err(fault)?;
        if is_long() && outcome != run(&boot).map_err(fault)? {
            return Err(format!("{} {program}: two boots differ", info.name));
        }
        let picks = replayed(&outcome.logs[0], policy);
        let picks = picks.map_err(|why| format!("{} {program}: {why}", info.name))?;
        // dom0 is one of them.
        if picks <= outcome.tasks.len() as u64 {
            return Err(format!("{} {program}: {picks} picks", info.name));
        }
        Ok(())
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
}

/// A policy, how it is set, and the scheduler of Xen's own beside which it is held.
struct Pair {
    ours: &'static str,
    settings: &'static [(&'static str, &'static str)],
    own: &'static str,
}

const CREDITS: [Pair; 2] = [
    Pair { ours: "credit", settings: &[], own: "stock-credit" },
    Pair { ours: "credit2", settings: &[], own: "stock-credit2" },
];

/// Xen takes extra time away from a vCPU with the call that sets its period.
const RTDS: [Pair; 1] =
    [Pair { ours: "rtds", settings: &[("extratime", "false")], own: "stock-rtds" }];

/// What a program says of each of `values` under both of each pair: not further apart than so many
/// thousandths.
fn are_near(
    pairs: &[Pair],
    (program, arguments): (&str, &[(&str, &str)]),
    values: &[&str],
    most: u64,
) {
    for Pair { ours, settings, own } in pairs {
        let mut boots = [ours, own].map(|name| boot(name, program, arguments));
        boots[0].orders.settings = owned(settings);
        let [ours_said, own_said] = boots.map(|boot| run(&boot).unwrap());
        for value in values {
            let found = ours_said.value(value).unwrap();
            let expected = own_said.value(value).unwrap();
            let is_near = found.abs_diff(expected) * 1_000 <= expected * most;
            assert!(is_near, "{program}: {value} is {found} under {ours}, {expected} under {own}");
        }
    }
}

/// How late a domain runs that wakes every `period` microseconds beside two that compute: the mean of
/// four loads. Under Credit some wake-ups of a thousand wait for slices of 30 ms, two or five, as
/// nanoseconds have it.
fn sleepers_delay(policy: &str, period: &str) -> u64 {
    let works = ["30000", "40000", "50000", "60000"];
    let means = works.map(|work| {
        let sleeps = [("l", "3000"), ("i", period), ("hogs", "2"), ("work_ns", work)];
        let outcome = run(&boot(policy, "cyclictest", &sleeps)).unwrap();
        outcome.value("cyclictest.wakeup_mean_ns").unwrap()
    });
    means.iter().sum::<u64>() / 4
}

const SHARES: [&str; 3] = ["hog1.cpu_millionths", "hog2.cpu_millionths", "hog3.cpu_millionths"];

/// Weights reach Xen's own schedulers and ours by the same calls.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn weights_count_as_in_xens_own_schedulers() {
    let hogs = [("domains", "3"), ("duration_ns", "3000000000"), ("weights", "256,512,1024")];
    are_near(&CREDITS, ("hog", &hogs), &SHARES, 5);
}

/// So do caps. Under Credit it matters when a domain is parked, and accountings come at other times.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn caps_count_as_in_xens_own_schedulers() {
    let hogs = [("domains", "3"), ("duration_ns", "3000000000"), ("caps", "20,50,0")];
    let [credit, credit2] = CREDITS;
    are_near(&[credit], ("hog", &hogs), &SHARES, 30);
    are_near(&[credit2], ("hog", &hogs), &SHARES, 5);
}

/// So do periods and budgets.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn budgets_count_as_in_xens_own_scheduler() {
    let periods = [("periods_us", "10000,20000,40000"), ("budgets_us", "2000,6000,8000")];
    let hogs = [&[("domains", "3"), ("duration_ns", "3000000000")][..], &periods].concat();
    are_near(&RTDS, ("hog", &hogs), &SHARES, 5);
}

/// Domains that answer, or sleep, beside others that compute wait as long as under Xen's own
/// schedulers.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn delays_are_those_of_xens_own_schedulers() {
    let echo = [("count", "100"), ("hogs", "2")];
    are_near(&CREDITS, ("echo", &echo), &["client.round_trip_mean_ns"], 50);
    // A period of Credit2's rate limit has wake-ups come at the same part of it for long.
    for (Pair { ours, own, .. }, period) in CREDITS.into_iter().zip(["1000", "1370"]) {
        let [found, expected] = [ours, own].map(|policy| sleepers_delay(policy, period));
        assert!(found.abs_diff(expected) * 20 <= expected, "{ours}: {found} and {expected} ns");
    }
}

/// A switch costs no more under `rr`, and not much more under Xen's rules, than under Xen's own
/// Credit.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn a_switch_costs_little_more_than_under_xens_own_credit() {
    let cost = |name: &str, settings: &[(&str, &str)]| {
        let mut boot = boot(name, "yield", &[("count", "1000")]);
        boot.orders.settings = owned(settings);
        let outcome = run(&boot).unwrap();
        assert_eq!(outcome.value("yield1.switches_of_1000"), Some(1000), "{name}");
        outcome.value("yield1.yield_ns").unwrap()
    };
    let own = cost("stock-credit", &[]);
    let (rr, credit) = (cost("rr", &[]), cost("credit", &[("limit_yields", "false")]));
    assert!(rr <= own, "rr {rr} ns, Xen's own {own} ns");
    assert!(credit * 4 <= own * 5, "credit {credit} ns, Xen's own {own} ns");
}

/// A domain's vCPUs are tasks of their own, which compute at the same time where there are pCPUs,
/// and only on those that they are bound to.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn domains_have_several_vcpus() {
    let arguments = [("domains", "2"), ("vcpus", "4,1"), ("log2_pairs", "14")];
    let mut wrong = Vec::new();
    for name in ["rr", "credit", "credit2", "cfs", "stock-credit2"] {
        let outcome = match run(&boot(name, "ep", &arguments)) {
            Ok(outcome) => outcome,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let names: BTreeSet<&str> = outcome.tasks.iter().map(|task| task.name.as_str()).collect();
        let expected = BTreeSet::from(["ep1.0", "ep1.1", "ep1.2", "ep1.3", "ep2"]);
        let pairs = ["ep1.gaussian_pairs", "ep2.gaussian_pairs"].map(|name| outcome.value(name));
        if names != expected || pairs[0] != pairs[1] || pairs[0].is_none() {
            wrong.push(format!("{name}: {names:?} made {pairs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut bound = boot("rr", "hog", &[("domains", "1"), ("vcpus", "3"), ("cpus", "2")]);
    bound.machine = Machine::flat(2).unwrap();
    let outcome = run(&bound).unwrap();
    let used = outcome.tasks.iter().filter_map(|task| task.service).map(|span| span.0);
    let longest = outcome.tasks.iter().map(|task| task.finish.since(task.arrival).0).max();
    let (used, longest) = (used.sum::<u64>(), longest.unwrap());
    assert!(used <= longest, "three vCPUs used {used} ns of one pCPU in {longest} ns");
    let refused = run(&boot("rr", "echo", &[("vcpus", "2")])).unwrap_err().to_string();
    assert!(refused.contains("`vcpus` = \"2\": domain server runs `echo-server`"), "{refused}");
}

/// What programs compute is right whoever schedules them: in a domain, floating point and all.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn programs_verify_what_they_compute() {
    let search = [("count", "20"), ("documents", "300"), ("hogs", "1"), ("busy", "1")];
    let zip = [("domains", "2"), ("kib", "32"), ("rounds", "2")];
    let mut found = BTreeSet::new();
    for name in ["rr", "credit", "stock-credit2"] {
        let outcome = run(&boot(name, "search", &search)).unwrap();
        assert_eq!(outcome.value("server.verified"), Some(1), "{name}");
        assert_eq!(outcome.value("client.round_trip_count"), Some(20), "{name}");
        found.insert(outcome.value("server.found"));
        let outcome = run(&boot(name, "zip", &zip)).unwrap();
        for domain in ["zip1", "zip2"] {
            assert_eq!(outcome.value(&format!("{domain}.verified")), Some(1), "{name}");
            let length = outcome.value(&format!("{domain}.compressed")).unwrap();
            assert!((1_000..24_000).contains(&length), "{name}: {length} bytes of 32768");
        }
    }
    assert!(found.len() == 1 && !found.contains(&Some(0)) && !found.contains(&None), "{found:?}");
}

/// A virtual machine whose tasks are a closed load.
fn vm(number: u16, cpus: usize, policy: &'static str, tasks: &[Vec<Op>], sizes: &Sizes) -> Vm {
    let machine = Machine::flat(cpus).unwrap();
    let built = (anysched_policies::policy(policy).unwrap().build)(&machine, &[]).unwrap();
    let task = |ops: &Vec<Op>| ModelTask {
        new: NewTask { name: Some("t".into()), ..NewTask::default() },
        arrives: Some(Time::ZERO),
        script: Arc::new(Script::once(ops.clone())),
    };
    let tasks = tasks.iter().map(task).collect();
    let load = Model { tasks, sizes: sizes.clone(), ..Model::default() }.into_load().unwrap();
    let (setup, name) = (Setup::new(machine), format!("vm{number}"));
    let vm = Vm::new(&name, DomainId(number), setup, built, Box::new(load));
    Vm { named: Some((policy, Vec::new())), ..vm }
}

/// Runs machines of an experiment on `cpus` pCPUs, which count instructions.
fn run_vms(by: &'static str, cpus: usize, vms: Vec<Vm>, until: Time) -> Metrics {
    run_vms_on(&Xen::new(&Options::default()), by, cpus, vms, until)
}

fn run_vms_on(
    host: &dyn Host,
    by: &'static str,
    cpus: usize,
    vms: Vec<Vm>,
    until: Time,
) -> Metrics {
    let setup = Setup { until, ..Setup::new(Machine::flat(cpus).unwrap()) };
    let nothing = Box::new(Model::default().into_load().unwrap());
    let by = By::Policy(anysched_policies::policy(by).unwrap(), Vec::new());
    let order = Order { vms, ..Order::new(by, &setup, Work::Load(nothing)) };
    host.run(order).unwrap_or_else(|error| panic!("{error}")).metrics
}

/// Tasks in domains do what a load says, on guests' vCPUs and under guests' policies.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn machines_of_experiments_perform_their_loads() {
    let ms = |ms: u64| Span::from_ms(ms);
    let near = |span: f64, ms: f64| (span / 1e6 - ms).abs() <= 0.02 * ms + 0.1;
    // Two of 20 ms, less than rr's quantum, and then one that sleeps 5 ms of every 6, on one vCPU.
    let sleeper = (0..5).flat_map(|_| [Op::Run(ms(1)), Op::Sleep(ms(5))]).collect();
    let none = Sizes::default();
    let one = vm(1, 1, "rr", &[vec![Op::Run(ms(20))], vec![Op::Run(ms(20))], sleeper], &none);
    let metrics = run_vms("credit2", 1, vec![one], Time::NEVER);
    let inside = &metrics.vms[0].inside;
    assert_eq!((inside.tasks.get(), inside.unfinished.get()), (Some(3), Some(0)));
    assert!(near(inside.busy.get().unwrap().0 as f64, 45.0), "{:?}", inside.busy);
    assert_eq!(inside.wakeup_latency.count(), 5);
    assert!(near(metrics.turnaround.max().unwrap() as f64, 70.0), "{:?}", metrics.turnaround);
    // Two vCPUs, one pCPU each: tasks meet after 3 and 7 ms, and take a lock in turns of 4.
    let meets = |work, lock| {
        let end = [Op::Run(ms(4)), Op::Unlock(Lock(0))];
        let begin = vec![Op::Run(ms(work)), Op::Meet(Barrier(0)), lock];
        [begin, end.to_vec()].concat()
    };
    let sizes = Sizes { locks: 1, barriers: vec![2], ..Sizes::default() };
    let tasks = [meets(3, Op::Lock(Lock(0))), meets(7, Op::Spin(Lock(0)))];
    let two = vm(1, 2, "cfs", &tasks, &sizes);
    let metrics = run_vms("rr", 2, vec![two], Time::NEVER);
    assert_eq!(metrics.completed.get(), Some(2));
    // pCPUs of the emulator take turns: what is done beside the other takes up to twice as long.
    let ends = [metrics.turnaround.min(), metrics.turnaround.max()].map(|end| end.unwrap() as f64);
    assert!(near(ends[1] - ends[0], 4.0), "{ends:?}");
    assert!((15e6..23e6).contains(&ends[1]), "{ends:?}");
    // Weights of two domains, which compute until the run ends.
    let hog = |number| vm(number, 1, "rr", &[vec![Op::Run(ms(10_000))]], &none);
    let (light, mut heavy) = (hog(1), hog(2));
    heavy.share.weight = 512;
    let metrics = run_vms("credit", 1, vec![light, heavy], Time::ZERO + ms(1500));
    assert_eq!(metrics.unfinished.get(), Some(2));
    let used = metrics.vms.iter().map(|vm| vm.inside.busy.get().unwrap().0);
    let share = used.clone().next().unwrap() as f64 / used.sum::<u64>() as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.04, "{share}");
}

/// Messages between machines go through dom0, and requests from outside come from there: round trips
/// are those of the simulator, with what the hypervisor and dom0 take besides.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn machines_of_experiments_send_each_other_messages() {
    let us = |us: u64| Span(us * 1_000);
    let fixed = Dist::constant;
    let talking = |hogs: u16| {
        let ping = Ping {
            settings: Settings::default(),
            every: Span::from_ms(100),
            offset: fixed(Span::from_ms(3)),
            work: fixed(us(50)),
            pings: None,
            port: Port(0),
        };
        let echo = Echo { settings: Settings::default(), work: fixed(us(50)), port: Port(0) };
        let service = Service {
            settings: Settings::default(),
            servers: 2,
            gaps: fixed(Span::from_ms(40)),
            service: fixed(Span::from_ms(2)),
            hop: us(50),
            requests: None,
            until: None,
        };
        let none = Sizes::default();
        let wire = |vm, channel| Wire { vm, channel: Channel(channel), delay: us(50) };
        let mut asker = vm(1, 1, "rr", &[], &none);
        (asker.load, asker.ports) = (ping.build(1, 1).unwrap(), vec![wire(1, 1)]);
        // It answers requests from outside, too.
        let mut asked = vm(2, 1, "cfs", &[], &none);
        let mix = Mix::new(vec![service.build(1, 1).unwrap(), echo.build(1, 1).unwrap()]);
        (asked.load, asked.ports) = (Box::new(mix), vec![wire(0, 0)]);
        let hog = |number| vm(number, 1, "rr", &[vec![Op::Run(Span::from_ms(10_000))]], &none);
        [asker, asked].into_iter().chain((3..3 + hogs).map(hog)).collect::<Vec<Vm>>()
    };
    // A message wakes dom0 twice, which is two switches each time beside machines that compute, and a
    // request may come meanwhile.
    for (by, hogs, most) in [("rr", 0, 80e3), ("credit", 2, 250e3)] {
        let until = Time::ZERO + Span::from_ms(1010);
        let metrics = run_vms(by, 1, talking(hogs), until);
        let simulated = run_vms_on(&Simulator, by, 1, talking(hogs), until);
        for (here, there) in metrics.vms.iter().zip(&simulated.vms).take(2) {
            let [here, there] = [here, there].map(|vm| &vm.inside.round_trip);
            assert_eq!(here.count(), there.count(), "{by}");
            let [found, expected] = [here, there].map(|trips| trips.mean());
            let more = found - expected;
            assert!((0.0..most).contains(&more), "{by}: {found} where {expected} was simulated");
        }
    }
}

/// Domains come and go, are paused, get other weights and pCPUs and go from pool to pool, as pCPUs
/// do: the contract holds, and no domain is lost. In the long form under every policy, with Xen's
/// assertions, on one pCPU and on four, in so many storms each as `ANYSCHED_STORMS` says, or ten.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn every_policy_survives_storms() {
    let learns = |info: &&PolicyInfo| !matches!((info.rehearsal)(&[]), Ok(None));
    let all = POLICIES.iter().filter(|info| !learns(info)).map(|info| info.name);
    let storms = std::env::var("ANYSCHED_STORMS").map_or(10, |text| text.parse().unwrap());
    let jobs: Vec<(&str, usize, u64)> = if is_long() {
        let every = |name| (1..=storms).flat_map(move |seed| [(name, 1, seed), (name, 4, seed)]);
        all.flat_map(every).collect()
    } else {
        vec![("cfs", 1, 1), ("credit", 4, 1), ("rtds", 4, 2)]
    };
    let image = if is_long() { checked_image() } else { image() };
    let changes = Mutex::new(BTreeMap::<(&str, usize), Changes>::new());
    let wrong = each(&jobs, |&(name, cpus, seed)| {
        let made = storm(image, name, cpus, seed)?;
        changes.lock().unwrap().entry((name, cpus)).or_default().add(made);
        Ok(())
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
    // One storm may lack some of them by chance, so many not.
    for ((name, cpus), changes) in changes.into_inner().unwrap() {
        let lacking = changes.lacking(cpus);
        assert!(!is_long() || storms < 10 || lacking.is_empty(), "{name} on {cpus}: {lacking:?}");
    }
}

/// How often storms made each kind of change.
#[derive(Default)]
struct Changes(BTreeMap<String, u64>);

impl Changes {
    fn add(&mut self, other: Changes) {
        for (kind, count) in other.0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    fn of(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or_default()
    }

    /// What never happened, and could have on `cpus` pCPUs.
    fn lacking(&self, cpus: usize) -> Vec<&str> {
        const ALWAYS: [&str; 5] = ["created", "destroyed", "paused", "unpaused", "changed"];
        const ON_SEVERAL: [&str; 4] = ["moved", "pcpus_moved", "hotplugs", "pools_created"];
        let several = ON_SEVERAL.into_iter().filter(|_| cpus > 1);
        ALWAYS.into_iter().chain(several).filter(|kind| self.of(kind) == 0).collect()
    }
}

/// A pool that is created while Xen runs has its policy built on a stack of 8 KiB, of which these
/// take the most.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn quick_pools_come_and_go() {
    if !is_available() {
        return;
    }
    let wrong = each(&["gittins", "gfs"], |name| {
        for seed in 1..=5 {
            if storm(image(), name, 4, seed)?.of("pools_created") > 0 {
                return Ok(());
            }
        }
        Err(format!("{name}: no pool was created"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A storm that all domains have survived until they were destroyed, or came to their end.
fn storm(image: &Image, name: &str, cpus: usize, seed: u64) -> Result<Changes, String> {
    let storm = format!("{name} on {cpus}, seed {seed}");
    let [pcpus, number] = [cpus as u64, seed].map(|number| number.to_string());
    let arguments = [("duration_ns", "2500000000"), ("pcpus", &pcpus), ("seed", &number)];
    let mut boot = boot(name, "storm", &arguments);
    boot.machine = Machine::flat(cpus).unwrap();
    (boot.checked, boot.patience) = (true, Duration::from_secs(240));
    // A slower machine: its boot and its hogs take us less time, and its changes, which come as
    // often, more of its own.
    boot.clock = Clock::Instructions(InstructionTime::parse("8ns").unwrap());
    let outcome = boot.run(image, &mut |_| ()).map_err(|error| format!("{storm}: {error}"))?;
    let changes = Changes(outcome.values.into_iter().collect());
    if changes.of("created") == 0 || changes.of("created") != changes.of("destroyed") {
        return Err(format!("{storm}: {:?}", changes.0));
    }
    Ok(changes)
}

/// Floating point is the domain's own: Xen switches its registers.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn sums_of_ep_are_the_published_ones() {
    if !is_long() {
        return;
    }
    let outcome = run(&boot("credit", "ep", &[("domains", "2"), ("class", "S")])).unwrap();
    for name in ["ep1.verified", "ep2.verified"] {
        assert_eq!(outcome.value(name), Some(1));
    }
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn quick_what_goes_wrong_is_said() {
    if !is_available() {
        return;
    }
    let hog = |policy: &str| boot(policy, "hog", &[("duration_ns", "50000000")]);
    let error = |boot: &Boot| {
        let boot = Boot { clock: clock(), ..boot.clone() };
        run(&boot).unwrap_err().to_string()
    };
    let unknown = error(&hog("nonesuch"));
    assert!(unknown.contains("there is no policy \"nonesuch\" in this build"), "{unknown}");
    let mut wrong = hog("rr");
    wrong.orders.settings = vec![("quantum".into(), "soon".into())];
    let wrong = error(&wrong);
    assert!(wrong.contains("policy rr: ") && wrong.contains("soon"), "{wrong}");
    let mut panics = hog("rr");
    panics.fault = Some(("panic".into(), 5));
    let panics = error(&panics);
    assert!(panics.contains("asked to panic"), "{panics}");
    let mut idles = hog("rr");
    idles.fault = Some(("idle".into(), 5));
    // Otherwise 30 s, for which somebody would wait.
    idles.watchdog = (!is_long()).then_some(2);
    let idles = error(&idles);
    assert!(idles.contains("policy rr has not run vCPU 0 of domain 0, which is ready"), "{idles}");
    let crowded = error(&boot("stock-null", "hog", &[("domains", "2")]));
    assert!(crowded.contains("3 vCPUs, dom0's among them, and 1 pCPUs"), "{crowded}");
    let refused = error(&boot("rr", "hog", &[("weights", "many")]));
    assert!(refused.contains("`weights` = \"many\": whole numbers and commas"), "{refused}");
}

/// Xen takes its default where it has no scheduler of the name that it is told; that is noticed.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn another_scheduler_than_was_asked_for_is_noticed() {
    let error = run(&boot("stock-arinc653", "hog", &[])).unwrap_err().to_string();
    assert!(error.contains("Xen has no scheduler `stock-arinc653`"), "{error}");
    // A hypervisor with no scheduler of that name.
    let directory = tempfile::tempdir().unwrap();
    let renamed = directory.path().join("xen");
    let mut bytes = fs::read(image().hypervisor()).unwrap();
    let name = b"null\0";
    let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(name)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| bytes[at] = b'N');
    fs::write(&renamed, bytes).unwrap();
    let without = image().clone().with_hypervisor(renamed);
    let asks = boot("stock-null", "hog", &[("domains", "1")]);
    let error = asks.run(&without, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("Xen was told `sched=null` for stock-null"), "{error}");
    assert!(error.contains("runs its own `credit2`"), "{error}");
}

/// A vCPU that waits for longer than the limit stops Xen, unless the policy lets it by its rule.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn policies_that_do_not_starve_are_held_to_that() {
    let wait = |policy: &str, settings: &[(&str, &str)]| {
        let mut boot = boot(policy, "hog", &[("domains", "2"), ("duration_ns", "2500000000")]);
        (boot.orders.settings, boot.watchdog) = (owned(settings), Some(1));
        run(&boot).map_err(|error| error.to_string())
    };
    let stopped = wait("rr", &[("quantum", "2s")]).unwrap_err();
    assert!(stopped.contains("policy rr has not run vCPU 0 of domain "), "{stopped}");
    assert!(stopped.contains("more than 1s (anysched_watchdog)"), "{stopped}");
    assert_eq!(wait("rr", &[("quantum", "500ms")]).unwrap().tasks.len(), 2);
    assert_eq!(wait("fcfs", &[]).unwrap().tasks.len(), 2);
}

/// Where there is no Xen of today's Debian, that of the one before serves.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn the_xen_of_an_older_debian_serves_too() {
    let sources = Sources::find_oldest(&mut |_| ()).unwrap();
    assert!(sources.version.starts_with("4.17."), "{}", sources.version);
    let image = Image::build(&sources, false, &mut |_| ()).unwrap();
    let older = |policy: &str| {
        let (program, arguments) = PROGRAMS[0];
        let mut boot = boot(policy, program, arguments);
        // dom0's vCPU and three more have a pCPU each.
        boot.machine = Machine::flat(if policy == "stock-null" { 4 } else { 1 }).unwrap();
        boot.orders.record = !policy.starts_with("stock-");
        boot.checked = boot.orders.record;
        boot.run(&image, &mut |_| ()).unwrap_or_else(|error| panic!("{policy}: {error}"))
    };
    for name in ["credit", "credit2", "rtds", "sedf-dm", "cfs", "rr"] {
        assert!(replayed(&older(name).logs[0], policy).unwrap() > 10, "{name}");
    }
    for own in ["stock-credit", "stock-credit2", "stock-rtds", "stock-null"] {
        assert_eq!(older(own).tasks.len(), older("rr").tasks.len(), "{own}");
    }
}

/// What a package installs boots as the image does, and its policies decide as they do here.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn a_package_has_a_hypervisor_that_boots() {
    let directory = tempfile::tempdir().unwrap();
    let sources = Sources::find(&mut |_| ()).unwrap();
    let written = package(&sources, directory.path(), &mut |_| ()).unwrap();
    let root = directory.path().join("root");
    fs::create_dir(&root).unwrap();
    unpack(&written[..1], &root).unwrap();
    let name = format!("xen-{}-anysched.gz", sources.version);
    let compressed = root.join("boot").join(name);
    assert!(Command::new("gzip").arg("-d").arg(&compressed).status().unwrap().success());
    let installed = image().clone().with_hypervisor(compressed.with_extension(""));
    let mut boot = boot("credit2", PROGRAMS[0].0, PROGRAMS[0].1);
    (boot.orders.record, boot.checked) = (true, true);
    let logs = [image(), &installed].map(|image| boot.run(image, &mut |_| ()).unwrap().logs);
    for log in &logs {
        assert!(replayed(&log[0], policy).unwrap() > 10);
    }
    let patch = fs::read_to_string(&written[1]).unwrap();
    let files = patch.lines().filter(|line| line.starts_with("+++ b/xen/common/sched/"));
    assert_eq!(files.count(), 4);
}

/// Under a dom0 with Linux, `xl` builds domains with Linux that ping each other, and what it sets
/// reaches policies as it reaches Xen's own schedulers: here, how much a domain that computes gets.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn xl_sets_what_domains_with_linux_get() {
    if !is_available() {
        return;
    }
    let sources = Sources::find(&mut |_| ()).unwrap();
    let linux = LinuxDom0::build(&sources, &mut |_| ()).unwrap();
    let weights: &[_] = &[("hogs", "2"), ("weights", "256,256,256,768")];
    let periods: &[_] = &[("hogs", "1"), ("periods_us", "7000"), ("budgets_us", "1400,1400,3500")];
    for (name, scheduler, more) in [
        ("credit2", TakenFor::Credit2, weights),
        ("stock-credit2", TakenFor::Credit2, weights),
        ("rtds", TakenFor::Rtds, periods),
        ("stock-rtds", TakenFor::Rtds, periods),
    ] {
        let mut boot = boot(name, "ping", &[&[("count", "50")][..], more].concat());
        if name == "rtds" {
            boot.orders.settings = owned(&[("extratime", "false")]);
        }
        boot.linux = Some((linux.clone(), scheduler));
        let outcome = run(&boot).unwrap_or_else(|error| panic!("{name}: {error}"));
        let value = |value: &str| outcome.value(value).unwrap();
        assert_eq!((value("client.round_trip_count"), value("client.lost")), (50, 0), "{name}");
        let mean = value("client.round_trip_mean_ns");
        assert!((50_000..20_000_000).contains(&mean), "{name}: {mean} ns");
        let hog = value("hog1.cpu_millionths");
        match scheduler {
            // Half of its time at most, where it would have nearly all.
            TakenFor::Rtds => assert!((200_000..520_000).contains(&hog), "{name}: {hog}"),
            _ => {
                let times = value("hog2.cpu_millionths") as f64 / hog as f64;
                assert!((2.7..3.3).contains(&times), "{name}: {times}");
            }
        }
    }
}

/// Several pCPUs at the same time: all domains come to their end, whoever schedules them.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn quick_several_pcpus_run_domains_to_their_end() {
    if !is_available() {
        return;
    }
    let jobs = ["rr", "credit", "credit2", "rtds", "gfs", "cfs", "eevdf", "osv"];
    let wrong = each(&jobs, |name| {
        let mut boot = boot(name, "hog", &[("domains", "9"), ("duration_ns", "100000000")]);
        boot.machine = Machine::flat(4).unwrap();
        (boot.clock, boot.checked) = (Clock::Parallel, true);
        let outcome = run(&boot).map_err(|error| format!("{name}: {error}"))?;
        match outcome.tasks.len() {
            9 => Ok(()),
            other => Err(format!("{name}: {other} of 9")),
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
