//! Policies in the Linux that this program runs on.

mod build;
mod drain;
mod machine;
mod note;
mod watch;

pub use build::build;
pub(crate) use machine::Machine;

use crate::during::{GoingOn, Signals};
use anysched_core::Span;
use anysched_host::{Attach, Attached, Attachment, Built, End, Sample};
use anysched_loader::{Module, SchedExt};
use anysched_wire::start::Start;
use drain::Drain;
use note::Note;
use rustix::time::{ClockId, Timespec, clock_getres};
use std::thread::sleep;
use std::time::{Duration, Instant};
use watch::Status;

/// Our program's name in sched_ext.
const PROGRAM: &str = "anysched";

/// Room for what has not been taken out of the log, in bytes.
const LOG_BYTES: u64 = 64 << 20;

/// For how long the process that watches a policy may take to leave.
const PATIENCE: Duration = Duration::from_secs(10);

/// Has a policy schedule this machine.
///
/// Errors: what is missing, and what to do about it; the policy has died.
pub fn attach(
    order: &Attach<'_>,
    say: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(&Sample),
) -> Result<Attached, String> {
    let machine = Machine::here();
    machine.require_kernel()?;
    machine.require_free()?;
    machine.require_root(&format!("attach --policy {}", order.policy))?;
    machine.require_modules(order.built.is_some())?;
    let built = match &order.built {
        Some(built) => built.clone(),
        None => build::as_user(&machine, order.checked, say)?,
    };
    let kernel = SchedExt::new(machine.bpftool()?);
    machine.require_bpf_files()?;
    // From here on a signal ends the policy, and not this process before it.
    let signals = Signals::notice()?;
    let session = Session::begin(order, &built, kernel)?;
    session.watch(order, &signals, say, show)
}

/// Who schedules this machine; `None`: the kernel's own scheduler.
///
/// Errors: this kernel has no other.
pub fn attached() -> Result<Option<Attachment>, String> {
    let machine = Machine::here();
    machine.require_kernel()?;
    let kernel = SchedExt::new("bpftool");
    if kernel.state().as_deref() == Some("disabled") {
        return Ok(None);
    }
    let program = kernel.program().unwrap_or_default();
    if program != PROGRAM {
        return Ok(Some(Attachment { policy: None, program, notes: Vec::new() }));
    }
    let policy = status().ok().and_then(|status| status.policy);
    let note = Note::read(machine.root());
    let notes = note.map(|note| note.lines(machine.root())).unwrap_or_default();
    Ok(Some(Attachment { policy, program, notes }))
}

/// Ends the policy that schedules this machine, whoever attached it.
///
/// Errors: there is none, or it does not end.
pub fn detach() -> Result<(), String> {
    let machine = Machine::here();
    machine.require_kernel()?;
    let kernel = SchedExt::new("bpftool");
    let is_ours = kernel.program().as_deref() == Some(PROGRAM);
    if !is_ours && !Module.is_loaded() {
        return Err(match kernel.program() {
            Some(other) => format!("no policy is attached: \"{other}\" of sched_ext schedules"),
            None => "no policy is attached: the kernel's own scheduler schedules".into(),
        });
    }
    machine.require_root("attach --stop")?;
    let note = Note::read(machine.root());
    if is_ours {
        kernel.unregister()?;
    }
    // Who watches it notices that, takes what is left of the log, and unloads the module.
    let start = Instant::now();
    while note.as_ref().is_some_and(|note| note.is_watched(machine.root()))
        && Module.is_loaded()
        && start.elapsed() < PATIENCE
    {
        sleep(Duration::from_millis(10));
    }
    Module.unload()?;
    Note::remove(machine.root());
    Ok(())
}

/// What the module says of itself.
fn status() -> Result<Status, String> {
    let text = Module.status().ok_or("the module anysched is not loaded")?;
    Status::read(&text).map_err(|error| error.to_string())
}

/// A policy that this process has attached. When this is dropped, the kernel's own scheduler is
/// back.
struct Session {
    kernel: SchedExt,
    drain: Option<Drain>,
    begun: Instant,
    first: Status,
}

impl Session {
    fn begin(order: &Attach<'_>, built: &Built, kernel: SchedExt) -> Result<Session, String> {
        // One that is left over may be another, and has another heap.
        Module.unload()?;
        let begun = Instant::now();
        let mut session = Session { kernel, drain: None, begun, first: Status::default() };
        Module.load(&built.module, Some(order.heap))?;
        Module.configure(start(order))?;
        Note::of(order).write(Machine::here().root())?;
        if let Err(why) = session.kernel.register(&built.program) {
            // The module knows why better than who has tried to register the program.
            return Err(status().ok().and_then(|status| status.dead).unwrap_or(why));
        }
        if let Some(path) = order.record {
            session.drain = Some(Drain::begin(path)?);
        }
        session.begun = Instant::now();
        session.first = status()?;
        Ok(session)
    }

    /// Shows what it does until it is over.
    fn watch(
        mut self,
        order: &Attach<'_>,
        signals: &Signals,
        say: &mut dyn FnMut(&str),
        show: &mut dyn FnMut(&Sample),
    ) -> Result<Attached, String> {
        let mut going_on = GoingOn::begin(order.during, signals)?;
        let (mut before, mut from) = (self.first.clone(), self.begun);
        let every = Duration::from_nanos(order.every.0.max(1));
        let over = loop {
            let next = from + every;
            let over = going_on.wait(next, || (!self.is_enabled()).then_some(()));
            // Of one that has ended, CPUs and tasks are not known any more.
            if matches!(over, Some(Err(()))) {
                break Err(());
            }
            let (now, to) = (status()?, Instant::now());
            if over.is_none() {
                show(&now.since(&before, span(to - self.begun), span(to - from)));
            }
            (before, from) = (now, to);
            if let Some(Ok(end)) = over {
                break Ok(end);
            }
        };
        let whole = span(from - self.begun);
        let whole = before.since(&self.first, whole, whole);
        let ended = self.end();
        match over {
            Ok(end) => {
                let recorded = ended?.1;
                Ok(Attached { whole, end, recorded })
            }
            Err(()) => {
                let why = match &ended {
                    Ok((Some(dead), _)) => format!("the policy has died: {dead}"),
                    _ => "another process has ended the policy".into(),
                };
                let has_command = going_on.has_command();
                if has_command {
                    say(&format!("{why}; the command goes on under the kernel's own scheduler"));
                    going_on.finish();
                }
                let (dead, recorded) = ended?;
                if dead.is_some() || has_command {
                    return Err(why);
                }
                Ok(Attached { whole, end: End::Elsewhere, recorded })
            }
        }
    }

    fn is_enabled(&self) -> bool {
        self.kernel.state().as_deref() == Some("enabled")
    }

    /// Gives the machine back. Returns why the policy has died, if it has, and how long its log is.
    fn end(&mut self) -> Result<(Option<String>, Option<u64>), String> {
        self.kernel.unregister()?;
        let status = status()?;
        let lost = status.log().map_or(0, |log| log.lost);
        let recorded = self.drain.take().map(|drain| drain.end(lost)).transpose();
        Module.unload()?;
        Note::remove(Machine::here().root());
        Ok((status.dead, recorded?))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.kernel.unregister();
        let _ = self.drain.take().map(|drain| drain.end(0));
        let _ = Module.unload();
        Note::remove(Machine::here().root());
    }
}

/// What the module is to start.
fn start(order: &Attach<'_>) -> Start {
    Start {
        policy: order.policy.into(),
        settings: order.settings.to_vec(),
        tick: Some(tick()),
        checked: order.checked,
        record: order.record.map(|_| LOG_BYTES),
        fault: order.fault.clone(),
        cpus: Vec::new(),
    }
}

/// The kernel's tick in nanoseconds: its coarse clock goes by ticks.
fn tick() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_getres(ClockId::MonotonicCoarse);
    (tv_sec as u64 * 1_000_000_000 + tv_nsec as u64).max(1)
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
