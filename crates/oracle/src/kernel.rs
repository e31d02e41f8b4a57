//! What tests that boot kernels have in common: what the kernels are given, how many boots are made
//! at a time, and whether policies decide there as they do here.

use anysched_core::recorder::{LogReader, replay};
use anysched_core::registry::PolicyInfo;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A script of tasks that come, compute, sleep, yield and go, for longer than a tick and for
/// shorter.
pub const TASKS: &str = "\
anysched-script 1
0 hog c30000000
0 yielder r40 c20000 y e
1000 sleeper r10 c100000 s700000 e
500000 short c1000
2500000 waiter u4000000 c2000000 u5000000 c10
7000000 late c9000000 s1 c9000000
";

/// Does `work` for each of `jobs`, as many at a time as there are CPUs, and returns what went
/// wrong, which standard error has at once: a run of hours that is stopped has told something.
pub fn each<T: Sync>(jobs: &[T], work: impl Fn(&T) -> Result<(), String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let begun = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(begun) else { break };
            if let Err(why) = work(job) {
                eprintln!("{} of {}: {why}", begun + 1, jobs.len());
                wrong.lock().unwrap().push(why);
            }
        }
    };
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, usize::from))
            .for_each(|_| drop(scope.spawn(worker)));
    });
    wrong.into_inner().unwrap()
}

/// Feeds a log to the policy built anew, which `find` knows by its name, and returns how many picks
/// it has.
///
/// Errors: it is no log, or is cut off; there is no such policy; a decision differs.
pub fn replayed(log: &[u8], find: fn(&str) -> Option<&'static PolicyInfo>) -> Result<u64, String> {
    let reader = LogReader::new(log).map_err(|error| error.to_string())?;
    let header = reader.header();
    let info = find(header.policy).ok_or("no such policy")?;
    let built = (info.build)(&header.machine, &header.settings);
    let mut scheduler = built.map_err(|error| error.to_string())?;
    let done = replay(log, &mut *scheduler).map_err(|error| error.to_string())?;
    if done.unanswered { Err("the log is cut off".into()) } else { Ok(done.picks) }
}
