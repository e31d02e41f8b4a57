//! Recordings of real machines, imported.

mod arm;

use anysched_core::Time;
use anysched_workload::import::ftrace::{Recording, Replay, Slot, Softirqs};
use anysched_workload::model::{Model, Script};
use anysched_workload::{Channel, Op};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
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

/// The CPU time that a task has used when it wakes another one, and the pid of that one.
fn woken_by(script: &Script, pids: &[u32]) -> Vec<(u64, u32)> {
    let mut used = 0;
    let mut woken = Vec::new();
    for op in &script.ops {
        match op {
            Op::Run(span) => used += span.0,
            Op::Signal(Channel(task)) | Op::Write(Channel(task)) => {
                woken.push((used, pids[*task as usize]))
            }
            _ => {}
        }
    }
    woken
}

/// The part of the recording, in per mille, in which each CPU was busy.
fn busy(recording: &Recording, schedule: &[Slot]) -> Vec<u64> {
    let mut busy = vec![0; recording.cpus() as usize];
    for slot in schedule {
        busy[slot.cpu.index()] += (slot.end - slot.start).0;
    }
    let per_mille = |ns: u64| (ns * 1000 + recording.span().0 / 2) / recording.span().0;
    busy.into_iter().map(per_mille).collect()
}

fn pid_of(name: &str) -> u32 {
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

#[test]
#[ignore = "needs a recording that is not in the repository: ANYSCHED_RECORDINGS=FOLDER"]
fn the_arm_recording_is_imported_to_the_nanosecond() {
    let text = arm::text();
    let recording = Recording::read(text.as_bytes()).unwrap();
    assert_eq!((recording.switches(), recording.cpus()), (1856, 6));
    assert_eq!(recording.span().0, 82_888_010_000 - 76_211_513_000);
    let Replay { model, schedule, bursts, .. } = recording.replay(Softirqs::default());
    assert_eq!(model.tasks.len(), 49);

    let told = arm::told(&text);
    let expected = told.bursts;
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

    let pids = model.tasks.iter().map(|task| pid_of(task.new.name.as_deref().unwrap()));
    let pids: Vec<u32> = pids.collect();
    let signals = model.signals.iter().map(|&(at, to)| (at.0, pids[to.0 as usize]));
    assert_eq!(signals.collect::<Vec<_>>(), told.woken_from_outside);
    let woke =
        pids.iter().zip(&model.tasks).map(|(&pid, task)| (pid, woken_by(&task.script, &pids)));
    let woke: BTreeMap<_, _> = woke.filter(|(_, woke)| !woke.is_empty()).collect();
    assert_eq!(woke, told.woke);
    assert!(woke.values().flatten().count() > 400 && told.woken_from_outside.len() > 400);
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
                    Op::Signal(Channel(channel)) | Op::Write(Channel(channel)) => {
                        stored[*channel as usize] += 1
                    }
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
    assert_eq!(busy(&recording, &replay.schedule), [853, 935]);
    follow(&replay.model);
    comes_back(&replay.model);
}

#[test]
fn the_recording_of_a_server() {
    let recording = recorded("request-response.txt.gz");
    assert_eq!((recording.switches(), recording.cpus()), (30847, 2));
    let Replay { model, schedule, .. } = recording.replay(Softirqs::default());
    assert_eq!(model.tasks.len(), 33 + 9 + 5);
    assert_eq!(busy(&recording, &schedule), [639, 689]);
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
        let is = |op: &&Op| matches!(op, Op::Signal(Channel(c)) | Op::Write(Channel(c)) if woken.contains(&(*c as usize)));
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
