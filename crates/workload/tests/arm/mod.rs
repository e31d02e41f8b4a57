//! A recording of a 6-CPU Arm board that is not part of the repository, and what its text tells
//! to a reader that knows nothing of the importer.

#![allow(dead_code)] // each test uses a part of it

use std::collections::BTreeMap;
use std::path::Path;

/// The text, from the folder that `ANYSCHED_RECORDINGS` names.
pub fn text() -> String {
    let folder = std::env::var_os("ANYSCHED_RECORDINGS");
    let folder = folder.expect("ANYSCHED_RECORDINGS names the folder of ftrace-arm-6cpu.txt");
    let path = Path::new(&folder).join("ftrace-arm-6cpu.txt");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the tasks did, by pid. Times are in ns.
#[derive(Default)]
pub struct Told {
    /// The CPU time of each burst; none of zero.
    pub bursts: BTreeMap<u32, Vec<u64>>,
    /// The CPU time that each had used in all when it woke another one, and which.
    pub woke: BTreeMap<u32, Vec<(u64, u32)>>,
    /// When what was not done by a task woke which, since the first event.
    pub woken_from_outside: Vec<(u64, u32)>,
}

/// A task so far.
#[derive(Default)]
struct Task {
    burst: u64,
    all: u64,
    /// Ready or running.
    ready: bool,
}

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let rest = line.split_once(name).unwrap_or_else(|| panic!("{name} in {line}")).1;
    rest.split([' ', ']', ':']).next().unwrap()
}

fn number(line: &str, name: &str) -> u32 {
    field(line, name).parse().unwrap_or_else(|_| panic!("{name} in {line}"))
}

/// Reads the text of a `trace-cmd report`.
pub fn told(text: &str) -> Told {
    let mut told = Told::default();
    let mut tasks: BTreeMap<u32, Task> = BTreeMap::new();
    // Per CPU, up to when its time has been given to the task that runs there.
    let mut counted: BTreeMap<u32, u64> = BTreeMap::new();
    let mut start = None;
    for line in text.lines().filter(|line| line.contains("sched_")) {
        let (head, rest) = line.split_once("  [").unwrap();
        let (cpu, rest) = rest.split_once("]  ").unwrap();
        let us: u64 = rest.split(':').next().unwrap().trim().replace('.', "").parse().unwrap();
        let now = us * 1000;
        let start = *start.get_or_insert(now);
        let running: u32 = head.trim().rsplit('-').next().unwrap().parse().unwrap();
        let cpu: u32 = cpu.parse().unwrap();
        let ran = now - counted.insert(cpu, now).unwrap_or(start);
        let task = tasks.entry(running).or_default();
        (task.burst, task.all, task.ready) = (task.burst + ran, task.all + ran, true);
        let used = task.all;
        if line.contains("sched_wakeup:") {
            let woken = number(line, " pid=");
            if std::mem::replace(&mut tasks.entry(woken).or_default().ready, true) {
                continue;
            }
            match running {
                0 => told.woken_from_outside.push((now - start, woken)),
                waker => told.woke.entry(waker).or_default().push((used, woken)),
            }
        } else if line.contains("sched_switch:") {
            assert_eq!(number(line, "prev_pid="), running);
            tasks.entry(number(line, "next_pid=")).or_default().ready = true;
            if !["0", "4096"].contains(&field(line, "prev_state=")) {
                let task = tasks.entry(running).or_default();
                task.ready = false;
                told.bursts.entry(running).or_default().push(std::mem::take(&mut task.burst));
            }
        }
    }
    for (pid, task) in tasks {
        told.bursts.entry(pid).or_default().push(task.burst);
    }
    told.bursts.remove(&0);
    told.bursts.values_mut().for_each(|bursts| bursts.retain(|&burst| burst > 0));
    told.bursts.retain(|_, bursts| !bursts.is_empty());
    told
}
