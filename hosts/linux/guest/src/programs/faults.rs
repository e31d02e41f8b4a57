//! Policies that go wrong, and what becomes of the machine. The module has to be one whose policies
//! are built to be checked.
//!
//! One after the other is started, goes wrong while tasks yield, and has to be ended by itself,
//! with the tasks alive afterwards and the module as it was. Then what must be refused is tried,
//! and what must work. The scheduler of the orders has to be the kernel's own.
//!
//! Arguments: `kinds`, faults with commas between; `policy`, which goes wrong.
//!
//! Prose: `KIND: ` and what the status says. Values: `KIND_ended_ns`, how long after its start the
//! policy was gone; `KIND_yields_after`, yields of the tasks in the 50 ms after that.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anysched_loader::{Module, SchedExt};
use anysched_programs::{Kernel, text};
use anysched_wire::start::Start;

use crate::kernel::Linux;
use crate::machine::refuse;
use crate::report::value;
use crate::scheduler::{status_lines, why_dead};

const MODULE: &str = "/lib/anysched/anysched.ko";
const OBJECT: &str = "/lib/anysched/anysched.bpf.o";
const SYSRQ: &str = "/proc/sysrq-trigger";

/// At which pick a policy goes wrong: when the tasks are at work.
const AT: u64 = 300;

/// After how long without an end the program gives up: sched_ext's own watchdog needs 15 s.
const PATIENCE: u64 = 40_000_000_000;

/// Tasks that yield all the time.
struct Yielders {
    yields: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Yielders {
    fn start(count: usize) -> Yielders {
        let (yields, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let body = || {
            let (yields, over) = (yields.clone(), over.clone());
            move || {
                while !over.load(Relaxed) {
                    yields.fetch_add(1, Relaxed);
                    Linux::yield_now();
                }
            }
        };
        let threads = (0..count).map(|_| thread::spawn(body())).collect();
        Yielders { yields, over, threads }
    }

    /// Yields within a time.
    fn within(&self, time: Duration) -> u64 {
        let before = self.yields.load(Relaxed);
        thread::sleep(time);
        self.yields.load(Relaxed) - before
    }

    fn end(self) {
        self.over.store(true, Relaxed);
        for thread in self.threads {
            if thread.join().is_err() {
                refuse("a task that yields has panicked");
            }
        }
    }
}

fn kernel() -> SchedExt {
    SchedExt::new("/usr/sbin/bpftool")
}

/// Why the policy has died, by the module's status.
fn death() -> Option<String> {
    why_dead(&status_lines().unwrap_or_default())
}

fn start(start: Start) -> Result<(), String> {
    Module.configure(start)?;
    kernel().register(Path::new(OBJECT))
}

fn plain(policy: &str) -> Start {
    Start { policy: policy.into(), ..Start::default() }
}

fn must<T>(what: &str, result: Result<T, String>) -> T {
    result.unwrap_or_else(|why| refuse(format_args!("{what}: {why}")))
}

/// Waits until the kernel's own scheduler is back; since `start`, in nanoseconds.
fn await_end(start: u64) -> u64 {
    while kernel().state().as_deref() != Some("disabled") {
        if Linux::now() - start > PATIENCE {
            refuse("the policy goes on, wrong as it is");
        }
        Linux::sleep_until(Linux::now() + 1_000_000);
    }
    Linux::now() - start
}

/// Has a policy go wrong.
fn fault(policy: &str, kind: &str) {
    let tasks = Yielders::start(3);
    let begun = Linux::now();
    let faulty =
        Start { checked: kind == "contract", fault: Some((kind.into(), AT)), ..plain(policy) };
    must(kind, start(faulty));
    let ended = await_end(begun);
    let why = death().unwrap_or_else(|| refuse(format_args!("{kind}: the status has no reason")));
    println!("{kind}: {why}");
    value(&format!("{kind}_ended_ns"), ended);
    value(&format!("{kind}_yields_after"), tasks.within(Duration::from_millis(50)));
    must("unpinning what has ended", kernel().unregister());
    tasks.end();
}

/// Has the module refuse to start something.
fn refused(what: &str, wrong: Start) {
    match start(wrong) {
        Ok(()) => refuse(format_args!("{what} was started")),
        Err(_) => println!("{what}: {}", death().unwrap_or_default()),
    }
    await_end(Linux::now());
}

/// Runs the program.
pub fn faults() {
    let argument =
        |name: &str, default: &str| -> String { text::<Linux>(name).unwrap_or(default).into() };
    let (policy, kinds) =
        (argument("policy", "rr"), argument("kinds", "panic,contract,loop,recursion,memory,idle"));
    must("loading the module", Module.load(Path::new(MODULE), None));
    for kind in kinds.split(',') {
        fault(&policy, kind);
    }
    refused("no_such_policy", plain("nonesuch"));
    let settings = vec![("nonesuch".into(), "1".into())];
    refused("no_such_parameter", Start { settings, ..plain(&policy) });
    // After all that, another policy starts without the module being loaded again.
    must("starting another policy", start(plain(&policy)));
    match Module.unload() {
        Ok(()) => refuse("the module was unloaded while its policy decided"),
        Err(error) => println!("unload: {error}"),
    }
    must("SysRq-S", std::fs::write(SYSRQ, "S").map_err(|error| error.to_string()));
    value("sysrq_ended_ns", await_end(Linux::now()));
    println!("sysrq: {}", death().unwrap_or_default());
    must("unpinning what has ended", kernel().unregister());
    must("starting a policy after SysRq-S", start(plain(&policy)));
    must("stopping it", kernel().unregister());
    must("unloading the module", Module.unload());
}
