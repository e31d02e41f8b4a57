//! Recordings of real machines, imported.

use anysched_core::Time;
use anysched_workload::import::ftrace::{Recording, Replay, Softirqs};
use anysched_workload::model::{Model, Script};
use anysched_workload::{Channel, Op};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A recording that is not part of the repository; `None`, with a line that says so, if it is not
/// there.
fn arm() -> Option<String> {
    let folder = std::env::var_os("ANYSCHED_SHARED_DATA")
        .map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let path = folder.join("ftrace-arm-6cpu.txt");
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) => {
            // Not by `eprintln`, which the test runner hides.
            let path = path.display();
            let _ = writeln!(io::stderr(), "test skipped, because {path} cannot be read: {error}");
            None
        }
    }
}

fn recorded(name: &str) -> Recording {
    let path = root().join("traces").join(name);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Recording::read(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The runs of a script, summed up between its waits; none of zero.
fn bursts_of(script: &Script) -> Vec<u64> {
    let mut bursts = vec![0];
    for op in &script.ops {
        match op {
            Op::Run(span) => *bursts.last_mut().unwrap() += span.0,
            Op::Wait(_) => bursts.push(0),
            _ => {}
        }
    }
    bursts.retain(|&burst| burst > 0);
    bursts
}

/// The CPU time of each burst of each task, straight from the text of a `trace-cmd report`.
fn bursts_in(text: &str) -> BTreeMap<u32, Vec<u64>> {
    let field = |line: &str, name: &str| -> String {
        let rest = line.split_once(name).unwrap_or_else(|| panic!("{name} in {line}")).1;
        rest.split_whitespace().next().unwrap().to_string()
    };
    let mut bursts: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut so_far: BTreeMap<u32, u64> = BTreeMap::new();
    let mut since: BTreeMap<String, u64> = BTreeMap::new();
    let mut start = None;
    for line in text.lines().filter(|line| line.contains("sched_")) {
        let cpu = field(line, "[");
        let time: String = field(line, "]").chars().filter(char::is_ascii_digit).collect();
        let time: u64 = time.parse::<u64>().unwrap() * 1000;
        let start = *start.get_or_insert(time);
        if !line.contains("sched_switch") {
            continue;
        }
        let ran = time - since.insert(cpu, time).unwrap_or(start);
        let pid: u32 = field(line, "prev_pid=").parse().unwrap();
        *so_far.entry(pid).or_default() += ran;
        if !["0", "4096"].contains(&field(line, "prev_state=").as_str()) {
            bursts.entry(pid).or_default().push(so_far.remove(&pid).unwrap());
        }
    }
    for (pid, rest) in so_far {
        bursts.entry(pid).or_default().push(rest);
    }
    bursts.remove(&0);
    bursts.values_mut().for_each(|bursts| bursts.retain(|&burst| burst > 0));
    bursts.retain(|_, bursts| !bursts.is_empty());
    bursts
}

fn pid_of(name: &str) -> u32 {
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

#[test]
fn the_arm_recording_is_imported_to_the_nanosecond() {
    let Some(text) = arm() else { return };
    let recording = Recording::read(text.as_bytes()).unwrap();
    assert_eq!((recording.switches(), recording.cpus()), (1856, 6));
    assert_eq!(recording.span().0, 82_888_010_000 - 76_211_513_000);
    let Replay { model, schedule, bursts } = recording.replay(Softirqs::default());
    assert_eq!(model.tasks.len(), 49);

    let expected = bursts_in(&text);
    let mut found = BTreeMap::new();
    let mut listed = BTreeMap::new();
    for (task, bursts) in model.tasks.iter().zip(&bursts) {
        let pid = pid_of(task.new.name.as_deref().unwrap());
        found.insert(pid, bursts_of(&task.script));
        let used = bursts.iter().map(|burst| burst.used.0).filter(|&used| used > 0);
        listed.insert(pid, used.collect::<Vec<u64>>());
    }
    assert_eq!(found, expected);
    assert_eq!(listed, expected);

    // Nobody runs twice at once, and no CPU runs two.
    let mut free: BTreeMap<(bool, u32), Time> = BTreeMap::new();
    for slot in &schedule {
        for key in [(true, u32::from(slot.cpu.0)), (false, slot.task)] {
            let until = free.insert(key, slot.end).unwrap_or(Time::ZERO);
            assert!(until <= slot.start && slot.start < slot.end, "{slot:?}");
        }
    }
    let sum: u64 = schedule.iter().map(|slot| (slot.end - slot.start).0).sum();
    assert_eq!(sum, expected.values().flatten().sum::<u64>());
    follow(&model);
}

/// Every signal is taken, and every task comes to its end or to its last wait, in whatever order
/// they run: here each as far as it gets, with all outside signals given at once.
fn follow(model: &Model) {
    let mut stored = vec![0u64; model.sizes.channels as usize];
    for (_, Channel(channel)) in &model.signals {
        stored[*channel as usize] += 1;
    }
    let mut at = vec![0; model.tasks.len()];
    let mut there: Vec<bool> = model.tasks.iter().map(|task| task.arrives.is_some()).collect();
    loop {
        let mut moved = false;
        for (task, model) in model.tasks.iter().enumerate() {
            while let Some(op) = model.script.ops.get(at[task]).filter(|_| there[task]) {
                match op {
                    Op::Wait(Channel(channel)) => match &mut stored[*channel as usize] {
                        0 => break,
                        stored => *stored -= 1,
                    },
                    Op::Signal(Channel(channel)) => stored[*channel as usize] += 1,
                    Op::Spawn(new) => {
                        let twice = std::mem::replace(&mut there[*new as usize], true);
                        assert!(!twice, "task {new} is spawned once");
                    }
                    _ => {}
                }
                at[task] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for (task, model) in model.tasks.iter().enumerate() {
        let left = &model.script.ops[at[task]..];
        assert!(left.is_empty() || matches!(left, [Op::Wait(_)]), "{:?}: {left:?}", model.new.name);
        assert_eq!(stored[task], 0, "{:?} was woken too often", model.new.name);
    }
}

/// The model is the same when it has been written and read.
fn comes_back(model: &Model) {
    let mut file = Vec::new();
    model.write(&mut file).unwrap();
    let back = Model::read(&file[..]).unwrap();
    assert_eq!(format!("{back:?}"), format!("{model:?}"));
}

#[test]
fn the_recording_of_a_build() {
    let recording = recorded("cargo-build.txt.gz");
    assert_eq!((recording.switches(), recording.cpus()), (5042, 2));
    let replay = recording.replay(Softirqs::default());
    // 315 of the command, 13 of the kernel, 5 others.
    assert_eq!(replay.model.tasks.len(), 333);
    let spawned = replay.model.tasks.iter().filter(|task| task.arrives.is_none()).count();
    assert_eq!(spawned, 314);
    assert!(
        replay.model.warnings[0].starts_with("293 switches are missing"),
        "{:?}",
        replay.model.warnings
    );
    follow(&replay.model);
    comes_back(&replay.model);
}

#[test]
fn the_recording_of_a_server() {
    let recording = recorded("request-response.txt.gz");
    assert_eq!((recording.switches(), recording.cpus()), (30847, 2));
    let Replay { model, .. } = recording.replay(Softirqs::default());
    assert_eq!(model.tasks.len(), 33 + 9 + 5);
    follow(&model);
    comes_back(&model);

    // What goes over loopback is woken by those who send it: every request by its sender, and the
    // replies by the workers; the pauses of the senders end from outside.
    let named = |name: &str| -> Vec<usize> {
        let names = model.tasks.iter().map(|task| task.new.name.as_deref().unwrap());
        names.enumerate().filter(|(_, is)| is.starts_with(name)).map(|(index, _)| index).collect()
    };
    let ops = |name: &str| named(name).into_iter().flat_map(|task| &model.tasks[task].script.ops);
    let woken_by = |wakers: &str, woken: &str| -> usize {
        let woken = named(woken);
        let is = |op: &&Op| matches!(op, Op::Signal(Channel(c)) if woken.contains(&(*c as usize)));
        ops(wakers).filter(is).count()
    };
    let waits = |who: &str| ops(who).filter(|op| matches!(op, Op::Wait(_))).count();
    assert!(woken_by("send-", "reader-") > waits("reader-") * 9 / 10);
    assert!(woken_by("worker-", "receive-") > waits("receive-") * 9 / 10);
    assert!(woken_by("reader-", "worker-") > waits("worker-") / 2);
    let senders = named("send-");
    let outside = model.signals.iter().filter(|(_, c)| senders.contains(&(c.0 as usize))).count();
    assert!(outside > waits("send-") * 9 / 10);
}
