//! Recordings of the Linux scheduler, and their text: ftrace's, that of `trace-cmd report` and of
//! `perf script`.
//!
//! [`Recording::read`] takes the events of a text in, a [`Recorder`] those of any format;
//! [`Recording::replay`] turns them into a [`Model`](crate::model::Model) and into the schedule as
//! it was recorded.
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

pub(super) mod binary;
mod decisions;
pub mod line;
mod replay;
#[cfg(test)]
mod tests;
pub mod wakers;

pub use decisions::{Decisions, mean, percentile};
pub use replay::{Burst, Ended, Replay, Slot, Softirqs, Wake};

use super::{
    ImportError, Imported, Importer, Input, Lines, ReadError, ReadTimes, Window, excerpt,
    json_text, text,
};
use crate::kinds::{FileName, keys, words};
use anysched_core::{CpuId, Span, Time};
use line::{Fields, Head, Line, Named};
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
    /// The keys of all recordings.
    pub struct Replaying {
        /// Who counts as the waker when a soft interrupt wakes: the running task; timers and
        /// devices; or for each woken task whichever its wake-ups suggest.
        softirqs: Softirqs = "by-evidence", eg "task";
        /// A task that has woken another and then runs for no longer than this before it does
        /// something else is on its way out of the kernel, where it is not preempted: the other
        /// is woken after it. 0 wakes at the recorded time.
        waker_stays: Span = "3us", eg "0us";
        /// What was recorded less than this after the first event is left out.
        from: Span = "0s", eg "10s";
        /// What was recorded this long after the first event or later is left out.
        until: Option<Span> = none "no limit", eg "60s";
    }
}

impl Replaying {
    /// What is recorded here.
    pub(super) fn window(&self) -> Window {
        Window { from: self.from, until: self.until }
    }

    /// The load that `recording` shows.
    pub(super) fn load(&self, recording: &Recording) -> Imported {
        let mut replay = recording.replay(self.softirqs);
        wakers::let_stay(&mut replay, self.waker_stays);
        Imported::Model(replay.model)
    }
}

keys! {
    /// The keys of a load that is a recording as text.
    pub struct Trace {
        ..replaying: Replaying;
        /// The recording, plain or packed.
        file: FileName = needed, eg "recording.txt.gz";
    }
}

impl Importer for Trace {
    const FORMAT: &'static str = "ftrace";
    const ENDINGS: &'static [&'static str] = &[".txt", ".txt.gz"];
    const TIMES: Option<ReadTimes> = Some(|input, _| times(Recording::read(input)?));

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        let is_markup = |text: &str| text.trim_start().starts_with('<') && text.contains("<script");
        text(start).is_some_and(|text| {
            json_text(start).is_none()
                && !is_markup(&text)
                && (text.contains("sched_switch") || text.starts_with("# tracer:"))
        })
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        let recording = Recording::read_part(input, self.replaying.window())?;
        Ok(self.replaying.load(&recording))
    }
}

/// CPU time that tasks used from a wake-up to a block or their end, however often they were
/// preempted. Times that the end of the recording cuts are left out; what a task used before the
/// recording began is unknown and missing from its first time.
pub(super) fn times(recording: Recording) -> Result<(Vec<Span>, Vec<String>), ReadError> {
    let replay = recording.replay(Softirqs::ByEvidence);
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

/// Takes events in, from whatever format.
#[derive(Debug, Default)]
pub struct Recorder {
    recording: Recording,
    names: BTreeMap<Arc<str>, u32>,
    window: Window,
    /// The earliest event, also of those that are not kept.
    start: Option<Time>,
    /// Whether events come in order but for a few, so that those before the window can go at once.
    in_order: bool,
}

impl Recorder {
    /// Keeps the events that are in `window`, counted from the first one.
    pub fn new(window: Window, in_order: bool) -> Recorder {
        Recorder { window, in_order, ..Recorder::default() }
    }

    /// The machine has so many CPUs.
    pub fn cpus(&mut self, cpus: u32) {
        self.recording.cpus = self.recording.cpus.max(cpus);
    }

    /// An event that is not used.
    pub fn unused(&mut self, event: &str) {
        let unused = &mut self.recording.notes.unused;
        match unused.get_mut(event) {
            Some(count) => *count += 1,
            None => _ = unused.insert(event.to_string(), 1),
        }
    }

    /// Something that is no event: what, and which line.
    pub fn unknown(&mut self, number: u64, text: &str) {
        let notes = &mut self.recording.notes;
        notes.unknown += 1;
        notes.first_unknown.get_or_insert_with(|| (number, excerpt(text)));
    }

    /// So many events were lost; `None`: an unknown number.
    pub fn lost(&mut self, lost: Option<u64>) {
        let notes = &mut self.recording.notes;
        notes.losses += 1;
        notes.lost = notes.lost.saturating_add(lost.unwrap_or(0));
    }

    /// An event.
    ///
    /// Errors: of a CPU that no machine has.
    pub fn event(&mut self, head: Head<'_>, fields: Fields<'_>) -> Result<(), String> {
        if head.cpu >= anysched_core::MAX_CPUS as u32 {
            return Err(format!("CPU {}: CPUs are numbered 0 to 1023", head.cpu));
        }
        let time = Time(head.time);
        let start = self.start.map_or(time, |start| start.min(time));
        self.start = Some(start);
        let since = Span(time.0 - start.0);
        if self.window.is_past(since) || self.in_order && since < self.window.from {
            return Ok(());
        }
        let Recorder { recording, names, .. } = self;
        let mut task = |named: Named<'_>| {
            let name = match names.get(named.comm) {
                Some(&known) => known,
                None => {
                    let name: Arc<str> = named.comm.into();
                    recording.names.push(name.clone());
                    names.insert(name, recording.names.len() as u32 - 1);
                    recording.names.len() as u32 - 1
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
        let cpu = CpuId(head.cpu as u16);
        let last = recording.events.last();
        recording.notes.early += u64::from(last.is_some_and(|last| last.time > time));
        let event = Event { time, cpu, current: head.pid, context: head.context, kind };
        recording.events.push(event);
        Ok(())
    }

    /// What was recorded. `this` is what the input has to be, for the message if it is not.
    ///
    /// Errors: there is no `sched_switch`, or none in the window.
    pub fn finish(self, this: &str) -> Result<Recording, ImportError> {
        let Recorder { mut recording, window, start, in_order, .. } = self;
        let start = start.unwrap_or_default();
        if !window.is_whole() {
            recording.events.retain(|event| window.has(event.time - start));
        }
        if recording.switches() == 0 {
            return Err(ImportError::whole(match (start, window.is_whole()) {
                (Time::ZERO, _) | (_, true) => {
                    format!("there is no sched_switch event; this has to be {this}")
                }
                _ => format!("there is no sched_switch event {window} after the first event"),
            }));
        }
        if recording.notes.early > 0 {
            if in_order {
                recording.events.sort_by_key(|event| event.time);
            } else {
                // What woke a task was recorded before the switch to it, if not much before.
                let is_switch = |kind: &Kind| matches!(kind, Kind::Switch { .. });
                recording.events.sort_by_key(|event| (event.time, is_switch(&event.kind)));
                recording.notes.early = 0;
            }
        }
        Ok(recording)
    }
}

impl Recording {
    /// Reads a text, plain or packed, line by line.
    ///
    /// Lines that are not events are counted; so are other events, by name. Both become warnings of
    /// the model. Events are sorted by time if necessary.
    ///
    /// Errors: the input cannot be read, a scheduler event is not understood, a line is longer
    /// than 65 536 bytes, or there is no `sched_switch`.
    pub fn read(input: impl Read) -> Result<Recording, ImportError> {
        Recording::read_part(input, Window::default())
    }

    /// Reads the part of a text that is in `window`.
    ///
    /// Errors: as for [`Recording::read`].
    pub fn read_part(input: impl Read, window: Window) -> Result<Recording, ImportError> {
        Recording::read_lines(Lines::of(input)?, window)
    }

    pub(super) fn read_lines(
        mut lines: Lines<'_>,
        window: Window,
    ) -> Result<Recording, ImportError> {
        let mut recorder = Recorder::new(window, true);
        while let Some((number, text)) = lines.next()? {
            let taken = line::parse(&text).and_then(|line| recorder.take(number, &text, line));
            taken
                .map_err(|what| ImportError::line(number, format!("{what}: {}", excerpt(&text))))?;
        }
        recorder.finish(
            "the text of ftrace, of `trace-cmd report` or of `perf script`, with the scheduler's \
             events",
        )
    }
}

impl Recorder {
    fn take(&mut self, number: u64, text: &str, line: Line<'_>) -> Result<(), String> {
        match line {
            Line::Nothing => {}
            Line::Cpus(cpus) => self.cpus(cpus),
            Line::Unused(event) => self.unused(event),
            Line::Lost(lost) => self.lost(lost),
            Line::Unknown => self.unknown(number, text),
            Line::Event(head, fields) => self.event(head, fields)?,
        }
        Ok(())
    }
}

impl Recording {
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
