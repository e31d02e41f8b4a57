//! Policies in the Linux that this program runs on.

mod build;
mod decider;
mod drain;
mod machine;
mod note;
mod watch;

pub use build::build;
pub(crate) use machine::Machine;

use crate::during::{GoingOn, Signals};
use anysched_core::Span;
use anysched_host::{Attach, Attached, Attachment, Built, End, Place, Sample};
use anysched_loader::{Agent, Module, SchedExt};
use anysched_wire::start::Start;
use decider::{Decider, Ended};
use note::Note;
use rustix::time::{ClockId, Timespec, clock_getres};
use std::thread::sleep;
use std::time::{Duration, Instant};
use watch::Status;

/// The name in sched_ext of the program that asks the module.
const PROGRAM: &str = "anysched";

/// That of the program that asks an agent.
const AGENT: &str = "anysched_agent";

/// Room for what has not been taken out of the module's log, in bytes.
const LOG_BYTES: u64 = 64 << 20;

/// Room for an agent's log, which nobody takes out before the end.
const WHOLE_LOG_BYTES: u64 = 256 << 20;

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
    match order.place {
        Place::Kernel => machine.require_modules(order.built.is_some())?,
        Place::Agent => machine.require_bpf_reads()?,
    }
    let built = match &order.built {
        Some(built) => built.clone(),
        None => build::as_user(&machine, order.place, order.checked, say)?,
    };
    let kernel = match order.place {
        Place::Kernel => {
            machine.require_bpf_files()?;
            SchedExt::new(machine.bpftool()?)
        }
        Place::Agent => SchedExt::new(""),
    };
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
    let text = match program.as_str() {
        PROGRAM => Module.status(),
        AGENT => Agent::status(),
        _ => return Ok(Some(Attachment { policy: None, program, notes: Vec::new() })),
    };
    let status = text.and_then(|text| Status::read(&text).ok());
    let note = Note::read(machine.root());
    let mut notes = note.as_ref().map(|note| note.lines(machine.root())).unwrap_or_default();
    if let Some(process) = Agent::running() {
        notes.push(format!("in an agent, process {process}"));
    }
    // Whose status may not be read, or does not come, has left a note.
    let policy = status.and_then(|status| status.policy).or(note.map(|note| note.policy));
    Ok(Some(Attachment { policy, program, notes }))
}

/// Ends the policy that schedules this machine, whoever attached it.
///
/// Errors: there is none, or it does not end.
pub fn detach() -> Result<(), String> {
    let machine = Machine::here();
    machine.require_kernel()?;
    let kernel = SchedExt::new("bpftool");
    let program = kernel.program();
    let is_ours = matches!(program.as_deref(), Some(PROGRAM | AGENT));
    if !is_ours && !Module.is_loaded() {
        return Err(nothing_attached(program));
    }
    machine.require_root("attach --stop")?;
    let note = Note::read(machine.root());
    match program.as_deref() {
        Some(PROGRAM) => kernel.unregister()?,
        Some(AGENT) => Agent::end_running()?,
        _ => {}
    }
    // Who watches it notices that, takes what is left of the log, and cleans up.
    let start = Instant::now();
    while note.as_ref().is_some_and(|note| note.is_watched(machine.root()))
        && Note::read(machine.root()) == note
        && start.elapsed() < PATIENCE
    {
        sleep(Duration::from_millis(10));
    }
    Module.unload()?;
    Note::remove(machine.root());
    Ok(())
}

/// Changes a parameter of the policy that schedules this machine, whoever attached it.
///
/// Errors: there is none, or it does not change the parameter while it runs, or not to that.
pub fn change(name: &str, value: &str) -> Result<(), String> {
    let machine = Machine::here();
    machine.require_kernel()?;
    let program = SchedExt::new("bpftool").program();
    if !matches!(program.as_deref(), Some(PROGRAM | AGENT)) {
        return Err(nothing_attached(program));
    }
    machine.require_root(&format!("attach --change {name}={value}"))?;
    match program.as_deref() {
        Some(AGENT) => Agent::change(name, value)?,
        _ => Module.change(name, value)?,
    }
    match Note::read(machine.root()) {
        Some(note) => note.with(name, value).write(machine.root()),
        None => Ok(()),
    }
}

/// That no policy schedules, but this program of sched_ext, if any.
fn nothing_attached(program: Option<String>) -> String {
    match program {
        Some(other) => format!("no policy is attached: \"{other}\" of sched_ext schedules"),
        None => "no policy is attached: the kernel's own scheduler schedules".into(),
    }
}

/// A policy that this process has attached.
struct Session {
    decider: Decider,
    begun: Instant,
    first: Status,
}

impl Session {
    fn begin(order: &Attach<'_>, built: &Built, kernel: SchedExt) -> Result<Session, String> {
        let root = Machine::here();
        Note::of(order).write(root.root())?;
        let decider = Decider::start(order, built, kernel);
        let decider = decider.inspect_err(|_| Note::remove(root.root()))?;
        let begun = Instant::now();
        let first = decider.status()?;
        Ok(Session { decider, begun, first })
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
            let over = going_on.wait(next, || (!self.decider.is_enabled()).then_some(()));
            // Of one that has ended, CPUs and tasks are not known any more.
            if matches!(over, Some(Err(()))) {
                break Err(());
            }
            // An agent that dies at this moment does not answer.
            let Ok(now) = self.decider.status() else { break Err(()) };
            let to = Instant::now();
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
        let ended = self.decider.end();
        match over {
            Ok(end) => Ok(Attached { whole, end, recorded: ended?.recorded }),
            Err(()) => {
                let why = match &ended {
                    Ok(Ended { dead: Some(dead), .. }) => format!("the policy has died: {dead}"),
                    _ => "another process has ended the policy".into(),
                };
                let has_command = going_on.has_command();
                if has_command {
                    say(&format!("{why}; the command goes on under the kernel's own scheduler"));
                    going_on.finish();
                }
                let Ended { dead, recorded } = ended?;
                if dead.is_some() || has_command {
                    return Err(why);
                }
                Ok(Attached { whole, end: End::Elsewhere, recorded })
            }
        }
    }
}

/// What is to be started.
fn start(order: &Attach<'_>) -> Start {
    Start {
        policy: order.policy.into(),
        settings: crate::boot::in_kernel(order.policy, order.settings),
        tick: Some(tick()),
        checked: order.checked,
        record: order.record.map(|_| match order.place {
            Place::Kernel => LOG_BYTES,
            Place::Agent => WHOLE_LOG_BYTES,
        }),
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
