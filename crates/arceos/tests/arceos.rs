//! Real boots of ArceOS: that every policy decides there as it does here, and that what goes wrong
//! is noticed. `cargo xtask hosts` runs these; with ANYSCHED_LONG set, every program under every
//! policy is booted twice.

use anysched_arceos::BootError;
use anysched_arceos::{Boot, Clock, Image, Kernel, Outcome};
use anysched_core::Span;
use anysched_core::recorder::{Call, LogReader};
use anysched_host::as_text;
use anysched_oracle::kernel::{TASKS, each, replayed};
use anysched_policies::{POLICIES, policy};
use anysched_wire::script::{Script, Step, Task};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// The programs, small: their arguments and the tasks of `batch`.
const PROGRAMS: [(&str, &[(&str, &str)]); 6] = [
    ("equal", &[("scale", "100")]),
    ("unequal", &[("scale", "200")]),
    ("yield", &[("scale", "200")]),
    ("realtime", &[("scale", "1000")]),
    ("occupy", &[("scale", "2000")]),
    ("batch", &[]),
];

fn script(text: &str) -> Script {
    Script::read(text.as_bytes()).unwrap()
}

fn boot(policy: &str, app: &str, arguments: &[(&str, &str)]) -> Boot {
    let mut boot = Boot::new(policy, app);
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    boot.arguments = arguments.iter().map(owned).collect();
    boot.tasks = (app == "batch").then(|| script(TASKS));
    boot.tick = Some(Span::from_ms(1));
    boot.patience = Duration::from_secs(120);
    boot
}

/// Every policy runs every program to its end, and decides in the kernel what it decides here. Two
/// boots are alike to the byte: of one program of each policy, in the long form of all.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn every_policy_decides_in_the_kernel_as_it_does_here() {
    let image = Boot::new("fcfs", "").image.build().unwrap();
    let is_long = std::env::var_os("ANYSCHED_LONG").is_some();
    let all = |(policy, info)| {
        let programs = PROGRAMS.iter().enumerate();
        programs.map(move |(number, program)| {
            (info, program, is_long || number == policy % PROGRAMS.len())
        })
    };
    let jobs: Vec<_> = POLICIES.iter().enumerate().flat_map(all).collect();
    let wrong = each(&jobs, |(info, (app, arguments), is_twice)| {
        let mut boot = boot(info.name, app, arguments);
        boot.record = true;
        let run = |boot: &Boot| -> Result<Outcome, String> {
            let outcome = boot.run_image(&image, &mut |_| ());
            outcome.map_err(|error| format!("{} {app}: {error}", info.name))
        };
        if let Some(first) = (info.rehearsal)(&[]).map_err(|error| error.to_string())? {
            boot.settings = first;
            let learned = run(&boot)?.learned;
            boot.settings = learned;
            let needs = (info.rehearsal)(&as_text(&boot.settings));
            assert_eq!(needs, Ok(None), "{}: what was learned is enough", info.name);
        }
        let outcome = run(&boot)?;
        if *is_twice && outcome != run(&boot)? {
            return Err(format!("{} {app}: two boots differ", info.name));
        }
        let picks = replayed(&outcome.logs[0], policy);
        let picks = picks.map_err(|why| format!("{} {app}: {why}", info.name))?;
        let dispatches: u64 = outcome.tasks.iter().filter_map(|task| task.dispatches).sum();
        if picks < dispatches || dispatches < outcome.tasks.len() as u64 {
            return Err(format!("{} {app}: {picks} picks, {dispatches} counted", info.name));
        }
        Ok(())
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
}

/// ArceOS's own schedulers run the same programs.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn stock_schedulers_run_the_same_programs() {
    for (name, kernel) in Kernel::STOCK {
        let image = Image { kernel, cpus: 1, net: false }.build().unwrap();
        let wrong = each(&PROGRAMS, |(app, arguments)| {
            let outcome = boot(name, app, arguments).run_image(&image, &mut |_| ());
            let outcome = outcome.map_err(|error| format!("{name} {app}: {error}"))?;
            let unfinished = outcome.tasks.iter().find(|task| task.finish <= task.arrival);
            unfinished.map_or(Ok(()), |task| Err(format!("{name} {app}: {}", task.name)))
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A yield of one of four tasks, with some 150 instructions of work between two, takes at most a
/// quarter more than under ArceOS's own scheduler: for what else a policy here knows, of time and
/// slices, that is the price.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn yields_cost_little_more_than_under_schedulers_of_arceos() {
    let arguments = [("groups", "5000,5000,5000,5000"), ("iterations", "11")];
    let cost = |policy: &str| {
        let outcome = boot(policy, "yield", &arguments).run(&mut |_| ()).unwrap();
        let last = outcome.tasks.iter().map(|task| task.finish).max().unwrap();
        last.since(outcome.tasks[0].arrival).0 / (4 * 5000)
    };
    for (ours, stock) in [("rr", "stock-rr"), ("cfs-arceos", "stock-cfs")] {
        let (here, there) = (cost(ours), cost(stock));
        assert!(here * 100 <= there * 125, "{ours} {here} instructions a yield, {stock} {there}");
    }
}

/// What the host reads of a calibration is measured, shortly here, under either kind of scheduler.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn what_scheduling_costs_is_measured() {
    for name in ["rr", "stock-rr"] {
        let calibration = boot(name, "calibrate", &[("yields", "640"), ("wakeups", "20")]);
        let outcome = calibration.run(&mut |_| ()).unwrap();
        for value in ["yield_ps_1", "yield_ps_64", "wakeup_ps", "start_ps", "end_ps"] {
            assert!(outcome.value(value).is_some_and(|ps| ps > 10_000), "{name}: {value}");
        }
        // The kernel knows no niceness.
        assert_eq!(outcome.value("preempt_ps"), None);
    }
}

/// Under a policy that goes by work, short tasks of a batch end first; under first come, first
/// served they end in the order in which they came, each after the work of those before.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn a_batch_ends_in_the_order_of_the_policy() {
    let tasks = "anysched-script 1\n0 long c9000000\n0 middle c5000000\n0 short c1000000\n";
    let finish = |policy: &str| -> Vec<u64> {
        let mut boot = boot(policy, "batch", &[]);
        boot.tasks = Some(script(tasks));
        let outcome = boot.run(&mut |_| ()).unwrap();
        outcome.tasks.iter().map(|task| task.finish.since(task.arrival).0 / 100_000).collect()
    };
    // In tenths of a millisecond; what is above the work is the kernel's.
    let near = |found: Vec<u64>, expected: [u64; 3]| {
        let far = found
            .iter()
            .zip(expected)
            .any(|(found, expected)| !(expected..=expected + 1 + expected / 20).contains(found));
        assert!(!far, "{found:?}, expected {expected:?}");
    };
    near(finish("fcfs"), [90, 140, 150]);
    near(finish("sjf"), [150, 60, 10]);
    near(finish("stock-fifo"), [90, 140, 150]);
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn what_goes_wrong_is_noticed() {
    let run = |how: &str| {
        let mut boot = boot("fcfs", "fault", &[("how", how)]);
        boot.patience = Duration::from_secs(10);
        boot.run(&mut |_| ()).unwrap_err()
    };
    let error = run("panic");
    let told = matches!(&error, BootError::Panicked { message } if message.ends_with("to panic"));
    assert!(told, "{error}");
    let error = run("leave");
    let told = matches!(&error, BootError::Unfinished { last, .. } if last == "program fault");
    assert!(told, "{error}");
    let error = run("hang");
    let told = matches!(&error, BootError::Hung { last, .. } if last == "program fault");
    assert!(told, "{error}");
    let refused = |boot: Boot| match boot.run(&mut |_| ()).unwrap_err() {
        BootError::Refused { why } => why,
        other => panic!("{other}"),
    };
    let why = refused(boot("no-such", "equal", &[]));
    assert_eq!(why, "there is no policy \"no-such\" in this image");
    let why = refused(boot("fcfs", "no-such", &[]));
    assert_eq!(why, "there is no program \"no-such\" in this image");
    let why = refused(boot("fcfs", "equal", &[("scale", "a lot")]));
    assert_eq!(why, "`scale` = \"a lot\": a whole number is wanted");
    let why = refused(boot("rr", "equal", &[("calls", "0 quantum 1ms")]));
    let fixed = "`quantum` cannot be changed while the policy runs, nor can any other";
    assert_eq!(why, format!("policy rr: {fixed}"));
    let why = refused(boot("stock-rr", "equal", &[("calls", "0 quantum 1ms")]));
    assert_eq!(why, "ArceOS's own schedulers have no parameter such as `quantum`");
    let why = refused(Boot { tasks: None, ..boot("stock-rr", "batch", &[]) });
    assert_eq!(why, "there is no firmware item opt/org.anysched/script");
}

/// One boot measures, stops and goes by what it measured, as the program calls the policy between
/// its runs: each task of the second run is done when it is in a boot that follows one that
/// measured, within 1 in 100. The decisions, calls included, are the policy's.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn a_program_calls_the_policy_between_its_runs() {
    const SMALL: (&str, &str) = ("scale", "100");
    let finish = |outcome: &Outcome| -> Vec<u64> {
        outcome.tasks.iter().map(|task| task.finish.since(task.arrival).0).collect()
    };
    let perform = |record: bool, arguments: &[(&str, &str)], settings: &[(&str, &str)]| {
        let mut boot = Boot { record, ..boot("pbg", "realtime", arguments) };
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        boot.settings = settings.iter().map(owned).collect();
        boot.run(&mut |_| ()).unwrap()
    };
    let learned = perform(false, &[SMALL], &[("mode", "profile")]).learned;
    let expected = finish(&perform(false, &[SMALL], &as_text(&learned)));

    let calls = "0 mode profile\n900000000 mode off\n900000000 mode plan";
    let arguments = [SMALL, ("runs", "2"), ("every", "1000000000"), ("calls", calls)];
    let found = finish(&perform(false, &arguments, &[("mode", "off")]));
    assert_eq!(found.len(), 2 * expected.len());
    let (measured, planned) = found.split_at(expected.len());
    for (planned, expected) in planned.iter().zip(&expected) {
        assert!(planned.abs_diff(*expected) * 100 < *expected, "{found:?}, expected {expected}");
    }
    let mean = |times: &[u64]| times.iter().sum::<u64>();
    assert!(mean(planned) * 2 < mean(measured), "{found:?}");
    // A recorded decision takes longer.
    let outcome = perform(true, &arguments, &[("mode", "off")]);
    assert!(replayed(&outcome.logs[0], policy).unwrap() > 1_000);
}

/// Names of tasks and values of arguments come through as they are, whatever they are.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn any_name_of_a_task_survives() {
    let names = ["two words", "", "@end", "a\\s\n@task b\u{1b}[31m", "größer"];
    let task = |name: &&str| Task { arrival: 0, name: name.to_string(), steps: vec![Step::Yield] };
    let mut boot = boot("rr", "batch", &[("unused", " @end \n\\")]);
    boot.tasks = Some(Script { tasks: names.iter().map(task).collect() });
    let outcome = boot.run(&mut |_| ()).unwrap();
    let found: Vec<&str> = outcome.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(found, names);
}

/// Several CPUs, as many as an experiment has whose figures are compared, too: its image serves
/// both.
const SEVERAL: Image = Image { kernel: Kernel::Anysched, cpus: 3, net: false };

/// Several CPUs share a policy, which decides there as it does here: every program ends, with CPUs
/// that take turns and with CPUs that run at once, and several of them have something to do. Where
/// they run at once, the machine here may let none but the first run until a short program is over,
/// so several are wanted in some program of each policy there, and in every program where they take
/// turns.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn several_cpus_share_a_policy() {
    const CHOSEN: [&str; 6] = ["fcfs", "rr", "cfs", "m-rsf", "gfs", "osv"];
    let path = SEVERAL.build().unwrap();
    let jobs: Vec<_> = CHOSEN
        .into_iter()
        .flat_map(|policy| PROGRAMS.iter().map(move |program| (policy, program)))
        .flat_map(|(policy, program)| {
            [Clock::COUNTED, Clock::Parallel].map(|clock| (policy, program, clock))
        })
        .collect();
    let shared_at_once = Mutex::new(BTreeSet::new());
    let mut wrong = each(&jobs, |&(policy, (app, arguments), clock)| {
        let mut boot = Boot { image: SEVERAL, clock, record: true, ..boot(policy, app, arguments) };
        if policy == "osv" {
            // Otherwise short programs run where they were started.
            boot.settings = vec![("start_place".into(), "spread".into())];
        }
        let told = |why| format!("{policy} {app} {clock:?}: {why}");
        let outcome =
            boot.run_image(&path, &mut |_| ()).map_err(|error| told(error.to_string()))?;
        let [log] = &outcome.logs[..] else {
            return Err(told(format!("{} logs", outcome.logs.len())));
        };
        let picks = replayed(log, anysched_policies::policy).map_err(told)?;
        let dispatches: u64 = outcome.tasks.iter().filter_map(|task| task.dispatches).sum();
        if picks < dispatches || dispatches < outcome.tasks.len() as u64 {
            return Err(told(format!("{picks} picks, {dispatches} counted")));
        }
        match (busy_cpus(log), clock) {
            (2.., Clock::Parallel) => drop(shared_at_once.lock().unwrap().insert(policy)),
            (2.., _) | (_, Clock::Parallel) => {}
            (busy, _) => return Err(told(format!("{busy} CPUs did anything"))),
        }
        Ok(())
    });
    let shared_at_once = shared_at_once.into_inner().unwrap();
    let alone = CHOSEN.iter().filter(|policy| !shared_at_once.contains(*policy));
    wrong.extend(alone.map(|policy| format!("{policy}: one CPU did everything in each program")));
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
}

/// How many CPUs were given a task.
fn busy_cpus(log: &[u8]) -> usize {
    let records = LogReader::new(log).unwrap().map(|record| record.unwrap());
    let picked = records.filter_map(|record| match record.call {
        Call::PickNext { cpu } => record.answer?.pick.map(|_| cpu),
        _ => None,
    });
    picked.collect::<BTreeSet<_>>().len()
}

/// Where instructions are counted, a CPU is as fast whether the others have something to do or not,
/// but for what QEMU's turns differ by: three tasks take as long as one, and six twice as long.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn each_of_several_cpus_is_as_fast_as_the_others() {
    let path = SEVERAL.build().unwrap();
    let makespan = |tasks: usize| {
        let script_of = "0 a c20000000\n".repeat(tasks);
        let tasks = Some(script(&format!("anysched-script 1\n{script_of}")));
        let boot = Boot { image: SEVERAL, tasks, ..boot("fcfs", "batch", &[]) };
        let outcome = boot.run_image(&path, &mut |_| ()).unwrap();
        let last = outcome.tasks.iter().map(|task| task.finish).max().unwrap();
        last.since(outcome.tasks[0].arrival).0 as f64 / 20e6
    };
    let [one, three, six] = [1, 3, 6].map(makespan);
    for (found, expected) in [(one, 1.0), (three, 1.0), (six, 2.0)] {
        assert!((0.9..1.2).contains(&(found / expected)), "{one}, {three}, {six}");
    }
}
