//! Perfetto traces (`.pftrace`), for <https://ui.perfetto.dev>.
//!
//! What the viewer shows:
//!
//! - Under "CPUs", the counters and then a track for each CPU that did anything, whose slices are
//!   the tasks that ran, by name; a kick is an instant.
//! - Under "Tasks", a track for each task in order of arrival. Its slices are `ready`, `running`
//!   (argument `cpu`; at the end `off`, why it stopped) and `offline`; a gap means blocked. A
//!   migration is an instant. Below it are counters of what the scheduler says of its state for
//!   the task, if it does.
//! - A wake-up is an instant in the waker's `running` slice, on the CPU that took the interrupt, or
//!   on the track "outside", with an arrow to the `ready` slice that it begins. A task's creation
//!   is shown the same way.
//! - Under "Virtual machines", if there are any, a group for each, with a track for each of its
//!   CPUs. Its slices are the guest's tasks that ran, by name (argument `cpu`: the host CPU), and
//!   `stolen` while it was ready and the host ran something else; a gap means that it was halted.
//!   To the host, a virtual CPU is a task called `NAME/NUMBER`, with a track of its own.
//! - Under "Policy", where a kernel has recorded its own events, what the policy decided: a track
//!   for each CPU, whose slices are the tasks that it was given, from the pick until it is put back
//!   (arguments `slice`, in nanoseconds, and `made`, what came of it; at the end `off`), with kicks
//!   and ticks as instants; and the track "calls" with all other calls (arguments `task`, `why`).
//!   All other tracks show what the kernel made of it.
//!
//! A task's `running` slices and its slices on CPU tracks share a correlation id, its serial, by
//! which the viewer gives them the same colour.
//!
//! Tracks are plain tracks with a parent, not thread tracks: the viewer sorts threads by its own
//! rules, below processes, and has no CPU tracks on which others can draw slices.
//!
//! Beside the tracks there is what a kernel's tracing would have recorded, `sched_switch` and
//! `sched_waking` (`perfetto/sched.rs` says how). The viewer shows it as its own scheduling view,
//! and SQL finds it in the tables `sched` and `thread_state`, where tasks are threads.
//!
//! Events are packets of one sequence, with interned names and an incremental clock; one event
//! becomes at most six packets of about 20 bytes, and some ten bytes in a batch. Only the state of
//! live tasks and of CPUs is kept, and a batch for each CPU.

mod event;
mod policy;
mod proto;
mod sched;
mod state;
mod vms;

use crate::guests::Guests;
use crate::output::Output;
use crate::policy::Decision;
use crate::{Counter, Event, Kind, Sink, TaskInfo};
use anysched_core::{CpuId, Off, TaskId, Time};
use event::{DebugAnnotation, TrackEvent, Type, Value};
use policy::Policy;
use prost::Message;
use proto::{Interned, Trace, TracePacket, TrackDescriptor};
use sched::Sched;
use state::States;
use std::borrow::ToOwned;
use std::format;
use std::io::{self, Write};
use std::string::{String, ToString};
use std::vec::Vec;
use vms::VirtualCpus;

/// The only sequence.
const SEQUENCE: u32 = 1;
/// The sequence's own clock: each timestamp counts from the one before. 64 is the first number
/// available for such clocks.
const CLOCK: u32 = 64;

/// Tracks that belong to no CPU or task. 0 is the viewer's.
const CPUS: u64 = 1;
const TASKS: u64 = 2;
const OUTSIDE: u64 = 3;
const COUNTERS: u64 = 4;
const VMS: u64 = 5;
/// From here on, CPUs' and tasks' tracks alternate.
const FIRST_TRACK: u64 = 8;

/// Names of slices and instants, interned; tasks' names start at [`FIRST_NAME`].
#[derive(Clone, Copy)]
enum Name {
    Running = 1,
    Ready,
    Wake,
    New,
    Kick,
    Migrate,
    Unknown,
    Offline,
}
const NAMES: [(Name, &str); 8] = [
    (Name::Running, "running"),
    (Name::Ready, "ready"),
    (Name::Wake, "wake"),
    (Name::New, "new"),
    (Name::Kick, "kick"),
    (Name::Migrate, "migrate"),
    (Name::Unknown, "unknown task"),
    (Name::Offline, "offline"),
];
const FIRST_NAME: u64 = 9;

/// Names of arguments, interned.
#[derive(Clone, Copy)]
enum Arg {
    Cpu = 1,
    Off,
    From,
    To,
    Slice,
    Made,
    Task,
    Why,
}
const ARGS: [(Arg, &str); 8] = [
    (Arg::Cpu, "cpu"),
    (Arg::Off, "off"),
    (Arg::From, "from"),
    (Arg::To, "to"),
    (Arg::Slice, "slice"),
    (Arg::Made, "made"),
    (Arg::Task, "task"),
    (Arg::Why, "why"),
];

const OFFS: [(Off, &str); 6] = [
    (Off::Expired, "expired"),
    (Off::Preempted, "preempted"),
    (Off::Yielded, "yielded"),
    (Off::NotRun, "not run"),
    (Off::Blocked, "blocked"),
    (Off::Exited, "exited"),
];

fn cpu_track(cpu: CpuId) -> u64 {
    FIRST_TRACK + 2 * u64::from(cpu.0)
}

fn task_track(serial: u64) -> u64 {
    FIRST_TRACK + 1 + 2 * serial
}

/// State of the live task with a given number.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    serial: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    /// No task with this number has been described.
    #[default]
    Unknown,
    Blocked,
    Ready,
    Running(CpuId),
    Offline,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Its track has been described.
    described: bool,
    /// Its track has an open slice.
    busy: bool,
}

/// Writes events as a Perfetto trace. Output is buffered here, so `W` needs no buffer.
///
/// Without [`PerfettoWriter::finish`] the end of the trace is missing.
#[derive(Debug)]
pub struct PerfettoWriter<W> {
    output: Output<W>,
    /// The time of the current event.
    now: Time,
    /// The time of the last packet that has a timestamp.
    written: Time,
    /// The task that the next event attaches.
    arriving: Option<(TaskId, u64)>,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// The last value of each counter.
    counters: [Option<u64>; 2],
    /// The track "outside" has been described.
    outside: bool,
    /// The number of arrows so far, which is the last one's id.
    flows: u64,
    guests: Guests,
    virtual_cpus: VirtualCpus,
    policy: Policy,
    states: States,
    sched: Sched,
}

impl<W: Write> PerfettoWriter<W> {
    /// A trace written to `out`, ideally an unbuffered file.
    pub fn new(out: W) -> PerfettoWriter<W> {
        let mut writer = PerfettoWriter {
            output: Output::new(out),
            now: Time::ZERO,
            written: Time::ZERO,
            arriving: None,
            tasks: Vec::new(),
            cpus: Vec::new(),
            counters: [None; 2],
            outside: false,
            flows: 0,
            guests: Guests::default(),
            virtual_cpus: VirtualCpus::default(),
            policy: Policy::default(),
            states: States::default(),
            sched: Sched::default(),
        };
        writer.begin();
        writer
    }

    /// Closes all slices at `end`, or at the last event if that is later, and returns the file.
    ///
    /// Errors: the first write error; nothing was written after it.
    pub fn finish(mut self, end: Time) -> io::Result<W> {
        self.go_on_to(end);
        self.end_virtual_cpus();
        self.end_policy();
        self.sched_end();
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].busy {
                self.end_slice(cpu_track(CpuId(cpu as u16)), None);
            }
        }
        for task in 0..self.tasks.len() {
            self.change(TaskId(task as u32), State::Unknown, None);
        }
        self.output.finish()
    }

    /// Writes the sequence's clock and names, and the groups of tracks.
    fn begin(&mut self) {
        let clock = |id, is_incremental| proto::Clock {
            clock_id: Some(id),
            timestamp: Some(0),
            is_incremental,
        };
        self.write(TracePacket {
            sequence_flags: Some(proto::SEQ_INCREMENTAL_STATE_CLEARED),
            first_packet_on_sequence: Some(true),
            trace_packet_defaults: Some(proto::TracePacketDefaults {
                timestamp_clock_id: Some(CLOCK),
            }),
            clock_snapshot: Some(proto::ClockSnapshot {
                clocks: [clock(proto::BUILTIN_CLOCK_BOOTTIME, None), clock(CLOCK, Some(true))]
                    .into(),
                primary_trace_clock: Some(proto::BUILTIN_CLOCK_BOOTTIME),
            }),
            interned_data: Some(proto::InternedData {
                event_names: NAMES
                    .iter()
                    .map(|&(name, text)| interned(name as u64, text))
                    .collect(),
                debug_annotation_names: ARGS
                    .iter()
                    .map(|&(arg, text)| interned(arg as u64, text))
                    .collect(),
                debug_annotation_string_values: OFFS
                    .iter()
                    .map(|&(off, text)| interned(off as u64 + 1, text))
                    .collect(),
            }),
            ..packet()
        });
        for (uuid, name) in [(CPUS, "CPUs"), (TASKS, "Tasks")] {
            self.describe(TrackDescriptor {
                uuid: Some(uuid),
                name: Some(name.to_owned()),
                child_ordering: Some(proto::CHILD_ORDERING_EXPLICIT),
                ..TrackDescriptor::default()
            });
        }
    }

    fn describe(&mut self, track: TrackDescriptor) {
        self.write(TracePacket { track_descriptor: Some(track), ..packet() });
    }

    /// Describes a track of the group "CPUs".
    #[cold]
    fn describe_cpus_track(&mut self, uuid: u64, name: String, rank: i32) {
        self.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(CPUS),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        });
    }

    /// Writes a packet that is not an event.
    fn write(&mut self, packet: TracePacket) {
        self.output.extend(&Trace { packet: [packet].into() }.encode_to_vec());
    }

    /// Writes an event at the current time.
    #[inline]
    fn put(&mut self, event: TrackEvent) {
        let since_last = self.now.since(self.written);
        self.written = self.now;
        let flags = proto::SEQ_NEEDS_INCREMENTAL_STATE;
        self.output.fill(|free| event::encode(free, since_last.0, SEQUENCE, flags, &event));
    }

    fn end_slice(&mut self, track_uuid: u64, why: Option<Off>) {
        let off = |off| DebugAnnotation {
            name_iid: Arg::Off as u64,
            value: Value::StringIid(off as u64 + 1),
        };
        self.put(TrackEvent {
            r#type: Type::SliceEnd,
            track_uuid,
            debug_annotations: [why.map(off), None],
            ..TrackEvent::default()
        });
    }

    fn known(&self, task: TaskId) -> Task {
        self.tasks.get(task.index()).copied().unwrap_or_default()
    }

    /// The track of `cpu`; describes it first if needed.
    fn track_of(&mut self, cpu: CpuId) -> u64 {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        let track = cpu_track(cpu);
        if !self.cpus[cpu.index()].described {
            self.cpus[cpu.index()].described = true;
            self.describe_cpus_track(track, format!("CPU {}", cpu.0), i32::from(cpu.0));
        }
        track
    }

    /// The track for what neither a task nor a CPU did.
    fn outside(&mut self) -> u64 {
        if !self.outside {
            self.outside = true;
            self.describe_cpus_track(OUTSIDE, "outside".to_owned(), i32::MAX);
        }
        OUTSIDE
    }

    /// Moves `id` to another state: closes its open slice, with `off` as the reason, and begins a
    /// new one.
    fn change(&mut self, id: TaskId, state: State, off: Option<Off>) {
        let task = self.known(id);
        if task.state == State::Unknown {
            return;
        }
        let track = task_track(task.serial);
        if let State::Running(cpu) = task.state
            && state != task.state
        {
            self.sched_leave(id, cpu, off);
        }
        match task.state {
            State::Unknown | State::Blocked => {}
            State::Ready | State::Offline => self.end_slice(track, None),
            State::Running(_) => self.end_slice(track, off),
        }
        self.tasks[id.index()].state = state;
        match state {
            State::Unknown | State::Blocked => {}
            State::Ready => self.begin_ready(track, 0),
            State::Offline => self.put(TrackEvent {
                track_uuid: track,
                name_iid: Name::Offline as u64,
                ..TrackEvent::default()
            }),
            State::Running(cpu) => self.put(TrackEvent {
                track_uuid: track,
                name_iid: Name::Running as u64,
                debug_annotations: [Some(argument(Arg::Cpu, cpu)), None],
                correlation_id: Some(task.serial),
                ..TrackEvent::default()
            }),
        }
    }

    /// `id` is gone unless it is running; a running one leaves with a switch.
    fn end_ready(&mut self, id: TaskId) {
        if !matches!(self.known(id).state, State::Running(_)) {
            self.change(id, State::Unknown, None);
        }
    }

    /// Begins a `ready` slice, the target of `arrow` unless that is 0.
    fn begin_ready(&mut self, track_uuid: u64, arrow: u64) {
        self.put(TrackEvent {
            track_uuid,
            name_iid: Name::Ready as u64,
            terminating_flow_id: arrow,
            ..TrackEvent::default()
        });
    }

    fn instant(&mut self, name: Name, event: TrackEvent) {
        self.put(TrackEvent { r#type: Type::Instant, name_iid: name as u64, ..event });
    }

    /// `id`, if known, becomes ready because of `by`, or else of an interrupt on `cpu`.
    fn ready(&mut self, id: TaskId, name: Name, by: Option<TaskId>, cpu: Option<CpuId>) {
        let task = self.known(id);
        if task.state == State::Unknown {
            return;
        }
        let waker = by.map(|by| self.known(by)).filter(|waker| waker.state != State::Unknown);
        let track_uuid = match (waker, cpu) {
            (Some(waker), _) => task_track(waker.serial),
            (None, Some(cpu)) => self.track_of(cpu),
            (None, None) => self.outside(),
        };
        self.flows += 1;
        let flow_id = self.flows;
        self.instant(name, TrackEvent { track_uuid, flow_id, ..TrackEvent::default() });
        // It may have blocked already: the switch away from it can be reported after this event.
        self.change(id, State::Blocked, Some(Off::Blocked));
        let waker = waker.and_then(|waker| match waker.state {
            State::Running(cpu) => Some(cpu),
            _ => None,
        });
        self.sched_waking(id, waker, cpu);
        self.tasks[id.index()].state = State::Ready;
        self.begin_ready(task_track(task.serial), flow_id);
    }

    fn attach(&mut self, id: TaskId, by: Option<TaskId>) {
        let Some((_, serial)) = self.arriving.take().filter(|&(named, _)| named == id) else {
            return;
        };
        if self.tasks.len() <= id.index() {
            self.tasks.resize(id.index() + 1, Task::default());
        }
        // The number may be reused before the switch away from its last holder is reported.
        self.change(id, State::Unknown, Some(Off::Exited));
        self.tasks[id.index()] = Task { serial, state: State::Blocked };
        self.sched_attach(id);
        self.ready(id, Name::New, by, None);
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<(TaskId, Off)>, next: Option<TaskId>) {
        let here = State::Running(cpu);
        if let (Some((prev, _)), Some(next)) = (prev, next)
            && prev == next
            && self.known(prev).state == here
        {
            return;
        }
        let track = self.track_of(cpu);
        if std::mem::replace(&mut self.cpus[cpu.index()].busy, next.is_some()) {
            self.end_slice(track, None);
        }
        if let Some(next) = next
            && let State::Running(elsewhere) = self.known(next).state
            && elsewhere != cpu
        {
            self.sched_leave(next, elsewhere, Some(Off::Preempted));
        }
        let known = next.filter(|&next| self.known(next).state != State::Unknown);
        self.sched_switch(cpu, prev.map(|(_, why)| why), known);
        if let Some((prev, why)) = prev
            // It may have been woken, or have run elsewhere, since it left the CPU.
            && self.known(prev).state == here
        {
            let state = match why {
                Off::Exited => State::Unknown,
                Off::Blocked => State::Blocked,
                _ => State::Ready,
            };
            self.change(prev, state, Some(why));
        }
        if let Some(next) = next {
            let task = self.known(next);
            let known = task.state != State::Unknown;
            self.put(TrackEvent {
                track_uuid: track,
                name_iid: if known { FIRST_NAME + task.serial } else { Name::Unknown as u64 },
                correlation_id: known.then_some(task.serial),
                ..TrackEvent::default()
            });
            self.change(next, here, None);
        }
    }

    fn migrate(&mut self, id: TaskId, from: CpuId, to: CpuId) {
        let task = self.known(id);
        if task.state != State::Unknown {
            let event = TrackEvent {
                track_uuid: task_track(task.serial),
                debug_annotations: [Some(argument(Arg::From, from)), Some(argument(Arg::To, to))],
                ..TrackEvent::default()
            };
            self.instant(Name::Migrate, event);
        }
    }

    fn sample(&mut self, counter: Counter, value: u64) {
        let (index, name, unit) = match counter {
            Counter::Ready => (0, "ready tasks", "tasks"),
            Counter::Busy => (1, "busy CPUs", "CPUs"),
        };
        let track = COUNTERS + index as u64;
        match self.counters[index].replace(value) {
            Some(last) if last == value => return,
            Some(_) => {}
            None => self.describe(TrackDescriptor {
                uuid: Some(track),
                name: Some(name.to_owned()),
                parent_uuid: Some(CPUS),
                counter: Some(proto::CounterDescriptor { unit_name: Some(unit.to_owned()) }),
                sibling_order_rank: Some(index as i32 - 2),
                ..TrackDescriptor::default()
            }),
        }
        self.put(TrackEvent {
            r#type: Type::Counter,
            track_uuid: track,
            counter_value: Some(value),
            ..TrackEvent::default()
        });
    }
}

fn argument(name: Arg, cpu: CpuId) -> DebugAnnotation {
    DebugAnnotation { name_iid: name as u64, value: Value::Uint(u64::from(cpu.0)) }
}

fn packet() -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(proto::SEQ_NEEDS_INCREMENTAL_STATE),
        ..TracePacket::default()
    }
}

fn interned(iid: u64, text: &str) -> Interned {
    Interned { iid: Some(iid), name: Some(text.to_owned()) }
}

impl<W: Write> Sink for PerfettoWriter<W> {
    fn task(&mut self, info: &TaskInfo<'_>) {
        let serial = info.serial;
        let name = info.label().to_string();
        self.write(TracePacket {
            interned_data: Some(proto::InternedData {
                event_names: [interned(FIRST_NAME + serial, &name)].into(),
                ..proto::InternedData::default()
            }),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(task_track(serial)),
                name: Some(name),
                parent_uuid: Some(TASKS),
                sibling_order_rank: Some(i32::try_from(serial).unwrap_or(i32::MAX)),
                sibling_merge_behavior: Some(proto::SIBLING_MERGE_BEHAVIOR_NONE),
                description: Some(format!("task {serial}, nice {}", info.nice)),
                ..TrackDescriptor::default()
            }),
            ..packet()
        });
        self.sched_task(info);
        self.arriving = Some((info.task, serial));
    }

    fn event(&mut self, event: &Event) {
        self.go_on_to(event.time);
        if !self.guests.is_empty() {
            let changed = self.guests.outside(&event.kind);
            self.virtual_cpus.note(changed.into_iter().flatten());
        }
        match event.kind {
            Kind::Attach { task, by } => self.attach(task, by),
            Kind::Wake { task, by, cpu } => self.ready(task, Name::Wake, by, cpu),
            Kind::Switch { cpu, prev, next } => self.switch(cpu, prev, next),
            Kind::Kick { cpu } => {
                let track_uuid = self.track_of(cpu);
                self.instant(Name::Kick, TrackEvent { track_uuid, ..TrackEvent::default() });
            }
            Kind::Migrate { task, from, to } => self.migrate(task, from, to),
            Kind::Offline { task } => self.change(task, State::Offline, Some(Off::Blocked)),
            Kind::State { task, name, value } => self.show_state(task, name, value),
            Kind::Sample { counter, value } => self.sample(counter, value),
        }
    }

    fn decision(&mut self, decision: &Decision<'_>) {
        self.go_on_to(decision.time());
        self.decide(decision);
    }

    fn vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        self.start_vm(vm, name, tasks);
    }

    fn vm_end(&mut self, vm: usize, time: Time) {
        self.go_on_to(time);
        self.end_vm(vm);
    }

    fn vm_task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        self.guests.task(vm, info);
        self.name_guest_task(vm, info);
    }

    fn vm_event(&mut self, vm: usize, event: &Event) {
        self.go_on_to(event.time);
        self.virtual_cpus.note(self.guests.inside(vm, &event.kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::churn::churn;

    #[test]
    fn memory_depends_on_live_tasks_only() {
        let mut writer = PerfettoWriter::new(io::sink());
        churn(&mut writer, 2_000_000, 100);
        assert_eq!((writer.tasks.len(), writer.cpus.len()), (100, 4));
        assert!(writer.tasks.capacity() <= 200);
        writer.finish(Time::ZERO).unwrap();
    }
}
