//! Recordings of the Linux scheduler: text of ftrace, `trace-cmd report` and `perf script`.
//!
//! [`Recording::read`] takes the events in; [`Recording::replay`] turns them into a
//! [`Model`](crate::model::Model) and into the schedule as it was recorded.
//!
//! It uses `sched_switch`, `sched_waking`, `sched_wakeup`, `sched_wakeup_new`,
//! `sched_process_fork`, `sched_process_exit` and `sched_migrate_task`, with the fields spelled out
//! (`prev_comm=sh …`) or short (`sh:1642 [120] S ==> …`), with or without the column of flags. Only
//! the first is required. To record, for example:
//!
//! ```sh
//! trace-cmd record -C mono -e sched:sched_switch -e sched:sched_waking \
//!     -e sched:sched_wakeup -e sched:sched_wakeup_new -e sched:sched_process_fork \
//!     -e sched:sched_process_exit -e sched:sched_migrate_task -- make
//! trace-cmd report
//! ```

mod decisions;
pub mod line;
mod replay;
#[cfg(test)]
mod tests;
pub mod wakers;

pub use decisions::{Decisions, mean, percentile};
pub use replay::{Burst, Ended, Replay, Slot, Softirqs, Wake};

use super::{ImportError, Imported, Importer, Lines, ReadError, ReadTimes, excerpt};
use crate::kinds::{FileName, keys, words};
use anysched_core::{CpuId, Span, Time};
use line::{Fields, Line, Named};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// The events of a recording, in time order.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    events: Vec<Event>,
    /// The names that tasks had.
    names: Vec<Arc<str>>,
    /// As the header says; 0 if it does not.
    cpus: u32,
    notes: Notes,
}

/// What deserves a warning.
#[derive(Clone, Debug, Default)]
struct Notes {
    /// Events that are not used, and how many of each.
    unused: BTreeMap<String, u64>,
    /// Lines that are not events: how many, and the first.
    unknown: u64,
    first_unknown: Option<(u64, String)>,
    /// How often events were lost, and how many where that is known.
    losses: u64,
    lost: u64,
    /// Events earlier than the one on the line above.
    early: u64,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    time: Time,
    cpu: CpuId,
    /// Runs on `cpu`; 0 is the idle task.
    current: u32,
    context: Context,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Switch { prev: Task, state: State, next: Task },
    Waking(Task),
    Wakeup(Task),
    WakeupNew(Task),
    Fork { child: u32 },
    Exit { pid: u32 },
    Migrate { pid: u32 },
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug)]
struct Task {
    /// Index of its name.
    name: u32,
    pid: u32,
    prio: i32,
}

/// What a CPU was doing when it recorded an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The text does not say.
    Unknown,
    /// What the task wanted.
    Task,
    /// A soft interrupt.
    SoftIrq,
    /// A hard interrupt, also within a soft one, or an NMI.
    HardIrq,
}

/// How a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It could have gone on.
    Ready,
    /// It waits.
    Blocked,
    /// It has ended.
    Ended,
    /// 64 means the one or the other, depending on the kernel.
    EndedOrParked,
}

words!(Softirqs {
    Softirqs::ByEvidence => "by-evidence",
    Softirqs::Task => "task",
    Softirqs::Outside => "outside",
});

keys! {
    /// The keys of a load that is a recording.
    pub struct Trace {
        /// The recording, plain or compressed with gzip.
        file: FileName = needed, eg "recording.txt.gz";
        /// Who counts as the waker when a soft interrupt wakes: the running task; timers and
        /// devices; or for each woken task whichever its wake-ups suggest.
        softirqs: Softirqs = "by-evidence", eg "task";
        /// A task that has woken another and then runs for no longer than this before it does
        /// something else is on its way out of the kernel, where it is not preempted: the other
        /// is woken after it. 0 wakes at the recorded time.
        waker_stays: Span = "3us", eg "0us";
    }
}

impl Importer for Trace {
    const FORMAT: &'static str = "ftrace";
    const ENDINGS: &'static [&'static str] = &[".txt", ".txt.gz"];
    const TIMES: Option<ReadTimes> = Some(times);

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(text: &str) -> bool {
        text.contains("sched_switch") || text.starts_with("# tracer:")
    }

    fn import(&self, input: &mut dyn Read, _: &str) -> Result<Imported, ReadError> {
        let mut replay = Recording::read(input)?.replay(self.softirqs);
        wakers::let_stay(&mut replay, self.waker_stays);
        Ok(Imported::Model(replay.model))
    }
}

/// CPU time that tasks used from a wake-up to a block or their end, however often they were
/// preempted. Times that the end of the recording cuts are left out; what a task used before the
/// recording began is unknown and missing from its first time.
fn times(input: &mut dyn Read, _: &str) -> Result<(Vec<Span>, Vec<String>), ReadError> {
    let replay = Recording::read(input)?.replay(Softirqs::ByEvidence);
    let all = replay.bursts.iter().flatten();
    let whole = all.clone().filter(|burst| burst.why != Ended::Cut);
    let values: Vec<Span> = whole.map(|burst| burst.used).collect();
    let cut = all.count() - values.len();
    let mut notes = replay.model.warnings;
    if cut > 0 {
        notes.push(format!("{cut} bursts are cut by the end of the recording and left out"));
    }
    Ok((values, notes))
}

impl Recording {
    /// Reads a text, plain or compressed with gzip, line by line.
    ///
    /// Lines that are not events are counted; so are other events, by name. Both become warnings of
    /// the model. Events are sorted by time if necessary.
    ///
    /// Errors: the input cannot be read, a scheduler event is not understood, a line is longer
    /// than 65 536 bytes, or there is no `sched_switch`.
    pub fn read(input: impl Read) -> Result<Recording, ImportError> {
        let mut lines = Lines::of(input)?;
        let mut recording = Recording::default();
        let mut names = BTreeMap::new();
        while let Some((number, text)) = lines.next()? {
            recording
                .take(number, &text, &mut names)
                .map_err(|what| ImportError::line(number, format!("{what}: {}", excerpt(&text))))?;
        }
        if recording.switches() == 0 {
            return Err(ImportError::whole(
                "there is no sched_switch event; this has to be the text of ftrace, of \
                 `trace-cmd report` or of `perf script`, with the scheduler's events",
            ));
        }
        if recording.notes.early > 0 {
            recording.events.sort_by_key(|event| event.time);
        }
        Ok(recording)
    }

    fn take(
        &mut self,
        number: u64,
        text: &str,
        names: &mut BTreeMap<Arc<str>, u32>,
    ) -> Result<(), String> {
        let notes = &mut self.notes;
        match line::parse(text)? {
            Line::Nothing => {}
            Line::Cpus(cpus) => self.cpus = self.cpus.max(cpus),
            Line::Unused(event) => *notes.unused.entry(event.to_string()).or_default() += 1,
            Line::Lost(lost) => {
                notes.losses += 1;
                notes.lost = notes.lost.saturating_add(lost.unwrap_or(0));
            }
            Line::Unknown => {
                notes.unknown += 1;
                notes.first_unknown.get_or_insert_with(|| (number, excerpt(text)));
            }
            Line::Event(head, fields) => {
                let mut task = |named: Named<'_>| {
                    let name = match names.get(named.comm) {
                        Some(&known) => known,
                        None => {
                            let name: Arc<str> = named.comm.into();
                            self.names.push(name.clone());
                            names.insert(name, self.names.len() as u32 - 1);
                            self.names.len() as u32 - 1
                        }
                    };
                    Task { name, pid: named.pid, prio: named.prio }
                };
                let kind = match fields {
                    Fields::Switch { prev, state, next } => {
                        Kind::Switch { prev: task(prev), state, next: task(next) }
                    }
                    Fields::Waking(named) => Kind::Waking(task(named)),
                    Fields::Wakeup(named) => Kind::Wakeup(task(named)),
                    Fields::WakeupNew(named) => Kind::WakeupNew(task(named)),
                    Fields::Fork { child } => Kind::Fork { child },
                    Fields::Exit { pid } => Kind::Exit { pid },
                    Fields::Migrate { pid } => Kind::Migrate { pid },
                };
                let (time, cpu) = (Time(head.time), CpuId(head.cpu as u16));
                notes.early += u64::from(self.events.last().is_some_and(|last| last.time > time));
                let event = Event { time, cpu, current: head.pid, context: head.context, kind };
                self.events.push(event);
            }
        }
        Ok(())
    }

    /// How many `sched_switch` events there are.
    pub fn switches(&self) -> usize {
        self.count(|kind| matches!(kind, Kind::Switch { .. }))
    }

    fn count(&self, of: impl Fn(&Kind) -> bool) -> usize {
        self.events.iter().filter(|event| of(&event.kind)).count()
    }

    /// How many CPUs the machine has: as the header says, but at least as many as have events.
    pub fn cpus(&self) -> u32 {
        let highest = self.events.iter().map(|event| u32::from(event.cpu.0) + 1).max();
        self.cpus.min(anysched_core::MAX_CPUS as u32).max(highest.unwrap_or(0))
    }

    /// The time of the first event; times of the model and the schedule count from it.
    pub fn start(&self) -> Time {
        self.events.first().map_or(Time::ZERO, |event| event.time)
    }

    /// The time from the first to the last event.
    pub fn span(&self) -> Span {
        self.events.last().map_or(Span::ZERO, |event| event.time - self.start())
    }
}
