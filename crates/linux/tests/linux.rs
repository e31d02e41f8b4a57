//! Real boots of Linux: that every policy decides there as it does here, and that what goes wrong
//! is noticed. `cargo xtask hosts` runs these; with ANYSCHED_LONG set, every program under every
//! policy, twice, and a minute of storms under every policy, which takes two cores some forty
//! minutes each. Nothing of the guest may be built anew meanwhile.

mod guest;

use anysched_core::recorder::LogReader;
use anysched_core::registry::PolicyInfo;
use anysched_core::{Machine, Span};
use anysched_host::{Clock, Host, InstructionTime, Options, Subject};
use anysched_linux::{Boot, BootError, Image, Linux};
use anysched_oracle::kernel::{TASKS, each, replayed};
use anysched_policies::{POLICIES, policy};
use anysched_qemu::Outcome;
use anysched_wire::script::Script;
use guest::image;
use std::time::Duration;

/// The programs, small: their arguments and the tasks of `batch`.
const PROGRAMS: [(&str, &[(&str, &str)]); 14] = [
    ("yield", &[("scale", "200")]),
    ("equal", &[("scale", "100")]),
    ("unequal", &[("scale", "200")]),
    ("realtime", &[("scale", "1000")]),
    ("occupy", &[("scale", "2000")]),
    ("batch", &[]),
    ("interbench", &[("pause_ns", "20000000"), ("duration_ns", "400000000")]),
    ("latency", &[("duration_ns", "200000000")]),
    ("cost", &[("n", "200")]),
    ("cyclictest", &[("args", "-l 40 -i 1000 -t 2 -h 5000"), ("burners", "2")]),
    ("hackbench", &[("args", "-g 1 -f 3 -l 10")]),
    ("rt-app", &[]),
    ("stress-ng", &[("args", "--cpu 2 --cpu-method int64 --cpu-ops 10")]),
    ("sysbench", &[("args", "threads --threads=3 --events=40 --time=0 run")]),
];

fn boot(policy: &str, app: &str, arguments: &[(&str, &str)]) -> Boot {
    let mut boot = guest::boot(policy, app, arguments);
    boot.tasks = (app == "batch").then(|| Script::read(TASKS.as_bytes()).unwrap());
    boot.patience = Duration::from_secs(240);
    boot.provide().unwrap();
    boot
}

/// The time of a machine that has fewer instructions in a second, and so takes less of ours.
fn slow() -> Clock {
    Clock::Instructions(InstructionTime::parse("8ns").unwrap())
}

/// Whether the long form is wanted.
fn is_long() -> bool {
    std::env::var_os("ANYSCHED_LONG").is_some()
}

/// Whether this is how a policy ends that starves tasks by its rule: by sched_ext's watchdog.
fn is_starved(info: &PolicyInfo, error: &BootError) -> bool {
    let BootError::Refused { why } = error else { return false };
    let starves = (info.nature)(&[]).is_ok_and(|nature| nature.starves);
    starves && (why.contains("failed to run for") || why.contains("failed to check in"))
}

/// Makes a boot under a policy; `None`: tasks starved, as they may by its rule.
///
/// Errors: what went wrong, and the last lines that the guest said.
fn run(info: &PolicyInfo, boot: &Boot, image: &Image) -> Result<Option<Outcome>, String> {
    match heard(boot, image) {
        (_, Ok(outcome)) => Ok(Some(outcome)),
        (_, Err(error)) if is_starved(info, &error) => Ok(None),
        (lines, Err(error)) => {
            let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
            Err(format!("{} {}: {error}\n{last}", info.name, boot.orders.program))
        }
    }
}

/// Lines of a guest that errors show: its dump of CPUs and tasks.
const SHOWN: usize = 200;

/// Every policy runs programs to their end under the contract's checks, and decides in the kernel
/// what it decides here; where it starves tasks by its rule, the watchdog may end it instead. In the
/// long form every program, twice alike to the byte.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn every_policy_decides_in_the_kernel_as_it_does_here() {
    let Some(image) = image() else { return };
    let jobs: Vec<_> = if is_long() {
        let all = |program| POLICIES.iter().map(move |info| (info, program));
        PROGRAMS.iter().flat_map(all).collect()
    } else {
        POLICIES.iter().zip(PROGRAMS.iter().cycle()).collect()
    };
    // One machine has all that comes with packages: each would boot for ten seconds.
    let packaged = PROGRAMS.iter().flat_map(|(app, arguments)| boot("rr", app, arguments).programs);
    let packaged: Vec<String> = packaged.collect();
    let wrong = each(&jobs, |(info, (app, arguments))| {
        let mut boot = boot(info.name, app, arguments);
        boot.programs.clone_from(&packaged);
        boot.orders.record = true;
        boot.checked = true;
        if !guest::rehearse(info, &mut boot, |boot| run(info, boot, image))? {
            return Ok(());
        }
        let Some(outcome) = run(info, &boot, image)? else { return Ok(()) };
        if is_long() && Some(&outcome) != run(info, &boot, image)?.as_ref() {
            return Err(format!("{} {app}: two boots differ", info.name));
        }
        let picks = replayed(&outcome.logs[0], policy);
        let picks = picks.map_err(|why| format!("{} {app}: {why}", info.name))?;
        if picks < outcome.tasks.len() as u64 || picks < 10 {
            return Err(format!("{} {app}: {picks} picks", info.name));
        }
        Ok(())
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
}

/// Tasks of two CPUs that are nice, bound, and wait for each other.
const AMONG: &str = "\
anysched-script 1
0 plain a0 c200000000
0 nice i10 a0 c200000000
0 ping a1 r20 c100000 p0 w1 e
0 pong a1 r20 w0 c100000 p1 e
0 holder r10 l0 c200000 o0 e
0 other r10 l0 c200000 o0 x1 o1 e
0 early a1 m0:3
0 waiter w2 w3 i-5 a c1000 m0:3
0 second w2 m0:3
60000000 late n3 b2 p3
";

/// Tasks of experiments are created with their niceness and CPUs, change them, wake each other, and
/// hand over locks; what the policy decides meanwhile, under its checks, it decides here, too.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn batches_have_niceness_and_cpus_and_wake_each_other() {
    let Some(image) = image() else { return };
    let mut among = boot("cfs", "batch", &[]);
    among.tasks = Some(Script::read(AMONG.as_bytes()).unwrap());
    among.machine = Machine::flat(2).unwrap();
    (among.checked, among.orders.record) = (true, true);
    let (lines, outcome) = heard(&among, image);
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}\n{lines:#?}"));
    let task = |name: &str| outcome.tasks.iter().find(|task| task.name == name).unwrap();
    assert_eq!(outcome.tasks.len(), 10, "all have come to their end");
    // Where both compute, the nice one gets a tenth: it has nearly all of its work still to do. They
    // compute for long enough that a turn more of 4 ms, or one before the other comes, matters
    // little.
    let (plain, nice) = (task("plain"), task("nice"));
    let after = nice.finish.since(plain.finish);
    assert!(after > Span::from_ms(140), "{after:?}");
    for name in ["ping", "pong", "holder", "other"] {
        let task = task(name);
        assert!(task.groups >= 10, "{task:?}");
    }
    // They take turns: each is picked anew in each of its rounds.
    let pong = task("pong");
    assert!(pong.dispatches >= Some(20), "{pong:?}");
    // Those that meet had to wait for a task that came late.
    for name in ["early", "waiter", "second"] {
        let slept = task(name).slept;
        assert!(slept >= Span::from_ms(25), "{name}: {slept:?}");
    }
    let picks = replayed(&outcome.logs[0], policy).unwrap();
    assert!(picks >= 50, "{picks} picks");
}

/// What a boot said for people and in values, and how it ended.
fn heard(boot: &Boot, image: &Image) -> (Vec<String>, Result<Outcome, BootError>) {
    let mut lines = Vec::new();
    let outcome = boot.run(image, &mut |line| lines.push(line.to_string()));
    (lines, outcome)
}

/// A policy that panics, breaks the contract, loops, uses up its memory or picks nothing is ended
/// with its reason, and so is one by SysRq-S; tasks go on, the module stays, and is not unloaded
/// while its policy decides. What does not exist is refused by name.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn policies_that_go_wrong_give_the_machine_back() {
    let Some(image) = image() else { return };
    let mut faults = boot("stock-eevdf", "faults", &[]);
    faults.checked = true;
    let (lines, outcome) = heard(&faults, image);
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}\n{lines:#?}"));
    for (what, why) in [
        ("panic", "the policy panicked: asked to panic"),
        ("contract", "slice"),
        ("loop", "the policy does not return: 67108864 blocks of code in one call, the last in "),
        ("recursion", "the policy's calls are too deep for its stack, the last in "),
        ("memory", "the policy's memory is used up"),
        ("idle", "failed to run for 1"),
        ("no_such_policy", "there is no policy \"nonesuch\" in this build"),
        ("no_such_parameter", "no parameter `nonesuch`"),
        ("unload", "the module anysched cannot be unloaded"),
        ("sysrq", "disabled by sysrq-S"),
    ] {
        let said = lines.iter().find(|line| line.starts_with(&format!("{what}: ")));
        assert!(said.is_some_and(|said| said.contains(why)), "{what}: {said:?}\n{lines:#?}");
    }
    for kind in ["panic", "contract", "loop", "recursion", "memory", "idle"] {
        let value = |name: &str| outcome.value(&format!("{kind}_{name}")).unwrap();
        // sched_ext's watchdog looks for tasks that have waited for 15 s.
        let most = if kind == "idle" { 25_000_000_000 } else { 2_000_000_000 };
        assert!(value("ended_ns") < most, "{kind}: {} ns", value("ended_ns"));
        assert!(value("yields_after") > 1000, "{kind}: {} yields", value("yields_after"));
    }
    assert!(outcome.value("sysrq_ended_ns").unwrap() < 1_000_000_000);
}

/// A policy that dies while a program runs is an error with its reason, and the program has come to
/// its end all the same.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn a_policy_that_dies_is_an_error() {
    let Some(image) = image() else { return };
    let mut dies = boot("rr", "yield", &[("scale", "200")]);
    dies.fault = Some(("panic".into(), 500));
    match heard(&dies, image) {
        (_, Err(BootError::Refused { why })) => assert!(why.contains("asked to panic"), "{why}"),
        (lines, other) => panic!("{other:?}\n{lines:#?}"),
    }
}

/// Beside eight tasks that compute, a task that sleeps most of the time runs soon after it wakes up
/// under a policy that lets wakers go first, sooner than under the kernel's own scheduler. A pipe's
/// round trip is not much dearer than there.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn wakers_run_soon() {
    let Some(image) = image() else { return };
    let values = |policy: &str, app: &str, name: &str| {
        let (lines, outcome) = heard(&boot(policy, app, &[]), image);
        let outcome = outcome.unwrap_or_else(|error| panic!("{policy}: {error}\n{lines:#?}"));
        outcome.value(name).unwrap()
    };
    let p50 = |policy| values(policy, "latency", "wakeup_p50_ns");
    let (ours, stock) = (p50("cfs"), p50("stock-eevdf"));
    assert!(ours < 20_000, "{ours} ns");
    assert!(ours * 10 < stock, "{ours} ns, {stock} ns under the kernel's own");
    let round_trip = |policy| values(policy, "cost", "pipe_round_trip_ns");
    let (ours, stock) = (round_trip("cfs"), round_trip("stock-eevdf"));
    assert!(ours * 100 < stock * 135, "{ours} instructions, {stock} under the kernel's own");
}

/// What makes 65 CPUs boot in 30 s instead of 90. Before each tick of one of them, QEMU has all of
/// them take turns in ever fewer instructions, so they get theirs together, from the PIT. Nor does
/// each measure how fast it is, or wait for the next one to start.
const WITH_MANY_CPUS: &str = "nolapic_timer hpet=disable lpj=4000000 cpu_init_udelay=0";

/// The machine that a policy is told of is the one that was asked for, whatever the guest's kernel
/// makes of QEMU's processors, also where there are more CPUs than a word has bits; and the policy
/// decides there what it decides here.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn policies_see_the_machine_that_was_asked_for() {
    let Some(image) = image() else { return };
    let scale: &[(&str, &str)] = &[("scale", "2000")];
    let mut jobs = vec![
        ("2 packages x 2 cores x 2 threads", "fcfs", "yield", scale),
        ("3 nodes x 2 cores", "fcfs", "yield", scale),
        ("65 cpus", "cfs", "batch", &[]),
    ];
    if is_long() {
        jobs.push(("2 cores x 2 threads", "fcfs", "yield", scale));
        jobs.push(("2 packages x 24 cores x 2 threads", "vfair", "yield", scale));
    }
    let wrong = each(&jobs, |(machine, name, app, arguments)| {
        let mut boot = boot(name, app, arguments);
        boot.machine = Machine::parse(machine).unwrap();
        boot.orders.record = true;
        if boot.machine.cpus() > 64 {
            boot.clock = slow();
            boot.options = WITH_MANY_CPUS.into();
            boot.checked = true;
        }
        let outcome =
            boot.run(image, &mut |_| ()).map_err(|error| format!("{machine}: {error}"))?;
        let log = LogReader::new(&outcome.logs[0]).map_err(|error| error.to_string())?;
        let (told, asked) = (&log.header().machine, &boot.machine);
        let is_told = asked.cpu_ids().all(|cpu| told.cpu(cpu) == asked.cpu(cpu));
        let count = told.cpus();
        let picks =
            replayed(&outcome.logs[0], policy).map_err(|why| format!("{machine}: {why}"))?;
        if picks < 10 {
            return Err(format!("{machine}: {picks} picks"));
        }
        (is_told && count == asked.cpus()).then_some(()).ok_or(format!("{machine}: {told:?}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// On four CPUs under a storm of system calls, with CPUs that come and go, every task goes on,
/// under policies of all kinds of runqueues; in the long form under every policy for a minute. Who
/// waits while others compute, as policies may have it that starve tasks by their rule, is not lost.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn storms_stall_nobody() {
    let Some(image) = image() else { return };
    let quick = ["cfs", "gfs"];
    let wanted = |name: &&str| is_long() || quick.contains(name);
    let chosen: Vec<_> = POLICIES.iter().filter(|info| wanted(&info.name)).collect();
    let wrong = each(&chosen, |info| {
        let duration = if is_long() { "60000000000" } else { "16000000000" };
        let arguments = [("duration_ns", duration), ("hotplug", "1")];
        let mut boot = boot(info.name, "storm", &arguments);
        boot.machine = Machine::parse("2 cores x 2 threads").unwrap();
        boot.clock = slow();
        boot.checked = true;
        // A minute takes four of ours on a computer with other work.
        boot.patience = Duration::from_secs(900);
        if !guest::rehearse(info, &mut boot, |boot| run(info, boot, image))? {
            return Ok(());
        }
        let Some(outcome) = run(info, &boot, image)? else { return Ok(()) };
        for change in ["forks", "affinity_changes", "nice_changes", "policy_changes", "hotplugs"] {
            if outcome.value(change).is_none_or(|count| count == 0) {
                return Err(format!("{}: no {change}", info.name));
            }
        }
        match outcome.value("stalled") {
            Some(0) => Ok(()),
            Some(_) if (info.nature)(&[]).is_ok_and(|nature| nature.starves) => Ok(()),
            stalled => Err(format!("{}: {stalled:?} tasks have stalled", info.name)),
        }
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), chosen.len(), wrong.join("\n"));
}

/// Policies see cgroups as domains: those of weights 3 to 1 share the CPU so, and one with a limit
/// gets no more.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn cgroups_are_domains() {
    let Some(image) = image() else { return };
    let command = "cd /sys/fs/cgroup; echo +cpu > cgroup.subtree_control; mkdir a b
        echo 300 > a/cpu.weight
        for g in a b; do for i in 1 2; do
            sh -c 'echo $$ > /sys/fs/cgroup/'$g'/cgroup.procs; while :; do :; done' &
        done; done
        usage() { grep usage_usec [ab]/cpu.stat; }
        sleep 1; usage; echo 20000 100000 > a/cpu.max; sleep 1; usage; kill %1 %2 %3 %4";
    let mut boot = boot("vfair", "shell", &[("command", command)]);
    boot.checked = true;
    let (lines, outcome) = heard(&boot, image);
    outcome.unwrap_or_else(|error| panic!("{error}\n{lines:#?}"));
    let usage = lines.iter().filter_map(|line| line.split_once("usage_usec "));
    let usage: Vec<f64> = usage.map(|(_, number)| number.parse().unwrap()).collect();
    let [a, b, a_limited, b_beside] = usage[..] else { panic!("{lines:#?}") };
    assert!((2.8..3.2).contains(&(a / b)), "{a} us beside {b} us");
    let share = (a_limited - a) / (a_limited - a + b_beside - b);
    assert!((0.18..0.22).contains(&share), "{share} of the CPU, 0.2 is its limit");
}

/// What scheduling costs is measured under policies and under the kernel's own scheduler: the
/// policy's part is less than the whole, and what is charged to a simulation adds up to what was
/// measured.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn what_scheduling_costs_is_measured() {
    if image().is_none() {
        return;
    }
    let names = ["rr", "eevdf", "gfs", "stock-eevdf"];
    let subject =
        |name: &str| Subject { label: name.into(), name: name.into(), settings: Vec::new() };
    let measured = Linux::new(&Options::default()).calibrate(&names.map(subject)).unwrap();
    for one in &measured.costs {
        let [alone, of_4, _, policy, _, wakeup, of_wakeup, tick, idle, start, end, wake, preempt] =
            one.figures[..]
        else {
            panic!("{one:?}")
        };
        let is_own = one.label.starts_with("stock-");
        assert!(policy.is_none() == is_own && of_wakeup.is_none() == is_own, "{one:?}");
        assert!(policy < of_4 && of_wakeup < wakeup && of_4 >= alone, "{one:?}");
        // Where the new task goes first, its whole life is in what starts it.
        let life = start.zip(end).map(|(start, end)| start + end);
        for time in [alone, wakeup, tick, idle, start, life, wake, preempt] {
            assert!(time.is_some_and(|ns| (300..300_000).contains(&ns)), "{one:?}");
        }
        let after = one.after_wake.unwrap_or_default();
        let charged = one.pick + one.context_switch + one.enqueue + after;
        assert_eq!(Some(charged.0), wakeup, "{one:?}");
    }
}
