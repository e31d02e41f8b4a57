//! Recordings by Perfetto of the kernel's scheduling events (data source `linux.ftrace`), in either
//! encoding: an event each, or in batches (`compact_sched`). Read packet by packet.
//!
//! What programs record of themselves (track events) is no load and is left out.

use super::ftrace::binary::context_of;
use super::ftrace::line::{Fields, Head, Named, state_of_bits};
use super::ftrace::{Context, Recorder, Recording, Replaying, times};
use super::input::open;
use super::{ImportError, Imported, Importer, Input, ReadError, ReadTimes, Window};
use crate::kinds::{FileName, keys};
use flate2::read::ZlibDecoder;
use prost::Message;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

keys! {
    /// The keys of a load that is a recording by Perfetto.
    pub struct Perfetto {
        ..replaying: Replaying;
        /// The recording, plain or packed.
        file: FileName = needed, eg "trace.pftrace";
    }
}

impl Importer for Perfetto {
    const FORMAT: &'static str = "perfetto";
    const ENDINGS: &'static [&'static str] = &[".pftrace", ".perfetto-trace", ".pb"];
    const TIMES: Option<ReadTimes> = Some(|input, _| times(read(input, Window::default())?));

    fn file(&self) -> &FileName {
        &self.file
    }

    /// Packets follow one another, each behind its tag and its length.
    fn begins(start: &[u8]) -> bool {
        let (mut rest, mut packets) = (start, 0);
        while let Some((&TAG, after)) = rest.split_first() {
            let mut after = after;
            let Ok(length) = prost::encoding::decode_varint(&mut after) else { return false };
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (packet, behind) = after.split_at(length.min(after.len()));
            if length == 0 || !has_fields(packet, packet.len() == length) {
                return false;
            }
            packets += 1;
            rest = behind;
        }
        packets > 0 && rest.is_empty()
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(self.replaying.load(&read(input, self.replaying.window())?))
    }
}

/// What is before a packet: field 1, with a length.
const TAG: u8 = 1 << 3 | 2;
/// Larger packets are refused; Perfetto's are some 100 KiB.
const MOST: u64 = 1 << 28;
/// Packets may be packed in a packet, but not again.
const MOST_LEVELS: usize = 2;

const THIS: &str = "a trace with the kernel's scheduling events: data source `linux.ftrace`, with \
                    sched/sched_switch and sched/sched_waking";

/// Whether `bytes` are fields of a message, if not `whole` as far as they go.
fn has_fields(mut bytes: &[u8], whole: bool) -> bool {
    while !bytes.is_empty() {
        let Ok(key) = prost::encoding::decode_varint(&mut bytes) else { return !whole };
        let length = match (key >> 3, key & 7) {
            (0 | 0x2000_0000.., _) => return false,
            (_, 0) => match prost::encoding::decode_varint(&mut bytes) {
                Ok(_) => 0,
                Err(_) => return !whole,
            },
            (_, 1) => 8,
            (_, 5) => 4,
            (_, 2) => match prost::encoding::decode_varint(&mut bytes) {
                Ok(length) => length,
                Err(_) => return !whole,
            },
            _ => return false,
        };
        match bytes.get(usize::try_from(length).unwrap_or(usize::MAX)..) {
            Some(rest) => bytes = rest,
            None => return !whole,
        }
    }
    true
}

/// Reads the part of a recording that is in `window`.
///
/// Errors: it is none, it is cut, or there is no `sched_switch`.
pub fn read(input: impl Read, window: Window) -> Result<Recording, ImportError> {
    let mut reader = Reader { recorder: Recorder::new(window, false), cpus: BTreeMap::new() };
    let mut at = 0;
    reader.packets(&mut *open(input)?, &mut at, MOST_LEVELS)?;
    reader.recorder.finish(THIS)
}

struct Reader {
    recorder: Recorder,
    /// What each CPU runs as far as its events have been read.
    cpus: BTreeMap<u32, Task>,
}

/// A task as events name it.
#[derive(Clone, Default)]
struct Task {
    comm: String,
    pid: i32,
    prio: i32,
}

impl Task {
    fn named(&self) -> Named<'_> {
        Named { comm: &self.comm, pid: self.pid as u32, prio: self.prio }
    }
}

impl Reader {
    /// Reads packets; `at` is where they are in the file.
    fn packets(
        &mut self,
        mut input: &mut dyn BufRead,
        at: &mut u64,
        levels: usize,
    ) -> Result<(), ImportError> {
        let mut packet = Vec::new();
        loop {
            let start = *at;
            let wrong = |what: &dyn std::fmt::Display| ImportError::byte(start, what);
            let Some(key) = varint(&mut *input, at).map_err(|error| wrong(&error))? else {
                return Ok(());
            };
            let length = match key & 7 {
                2 => varint(&mut *input, at).map_err(|error| wrong(&error))?.unwrap_or(u64::MAX),
                _ => return Err(wrong(&format!("this is no packet; this has to be {THIS}"))),
            };
            if length > MOST {
                return Err(wrong(&format!("a packet of {length} bytes is too large")));
            }
            packet.clear();
            let read = Read::take(&mut input, length).read_to_end(&mut packet);
            read.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
            if (packet.len() as u64) < length {
                return Err(wrong(&format!("the file ends within this packet of {length} bytes")));
            }
            *at += length;
            if key >> 3 == 1 {
                let decoded = TracePacket::decode(packet.as_slice());
                let packet = decoded.map_err(|error| wrong(&error))?;
                self.packet(packet, start, levels)?;
            }
        }
    }

    fn packet(&mut self, packet: TracePacket, at: u64, levels: usize) -> Result<(), ImportError> {
        if let Some(bundle) = packet.ftrace_events {
            self.bundle(bundle).map_err(|what| ImportError::byte(at, what))?;
        }
        let inner: Box<dyn Read + '_> =
            match (&packet.compressed_packets, &packet.zstd_compressed_packets) {
                (Some(bytes), _) => Box::new(ZlibDecoder::new(bytes.as_slice())),
                (None, Some(bytes)) => open(bytes.as_slice())?,
                (None, None) => return Ok(()),
            };
        if levels == 0 {
            return Err(ImportError::byte(at, "packets are packed in packed packets"));
        }
        let mut within = 0;
        let inner = self.packets(&mut BufReader::new(inner), &mut within, levels - 1);
        inner.map_err(|error| ImportError::byte(at, format!("packed in this packet: {error}")))
    }

    fn bundle(&mut self, bundle: FtraceEventBundle) -> Result<(), String> {
        let cpu = bundle.cpu.unwrap_or_default();
        if bundle.lost_events == Some(true) {
            self.recorder.lost(None);
        }
        if let Some(compact) = &bundle.compact_sched {
            self.compact(cpu, compact)?;
        }
        bundle.event.iter().try_for_each(|event| self.event(cpu, event))
    }

    /// Switches and wake-ups of one CPU, each in order.
    fn compact(&mut self, cpu: u32, compact: &CompactSched) -> Result<(), String> {
        let comm = |index: Option<&u32>| {
            let comm = index.and_then(|&index| compact.intern_table.get(index as usize));
            comm.map(String::as_str).ok_or("a name is missing")
        };
        let mut woken = compact.waking_timestamp.iter().enumerate();
        let mut next_woken = woken.next();
        let (mut switched_at, mut woken_at) = (0_u64, 0_u64);
        let switches = compact.switch_timestamp.iter().map(Some).chain([None]);
        for (index, delta) in switches.enumerate() {
            switched_at = delta.map_or(u64::MAX, |delta| switched_at.wrapping_add(*delta));
            while let Some((index, delta)) = next_woken {
                let time = woken_at.wrapping_add(*delta);
                if time > switched_at {
                    break;
                }
                woken_at = time;
                next_woken = woken.next();
                let (Some(&pid), Some(&prio)) =
                    (compact.waking_pid.get(index), compact.waking_prio.get(index))
                else {
                    return Err("a wake-up lacks its task".to_string());
                };
                let flags = compact.waking_common_flags.get(index);
                let context = flags.map_or(Context::Unknown, |&flags| context_of(flags.into()));
                let current = self.cpus.get(&cpu).map_or(0, |task| task.pid as u32);
                let comm = comm(compact.waking_comm_index.get(index))?;
                let woken = Named { comm, pid: pid as u32, prio };
                let head = Head::new(current, cpu, context, time);
                self.recorder.event(head, Fields::Waking(woken))?;
            }
            if delta.is_none() {
                break;
            }
            let (Some(&state), Some(&pid), Some(&prio)) = (
                compact.switch_prev_state.get(index),
                compact.switch_next_pid.get(index),
                compact.switch_next_prio.get(index),
            ) else {
                return Err("a switch lacks its tasks".to_string());
            };
            let comm = comm(compact.switch_next_comm_index.get(index))?.to_string();
            let next = Task { comm, pid, prio };
            self.switch(cpu, switched_at, None, state as u64, next, Context::Task)?;
        }
        Ok(())
    }

    /// `cpu` goes to `next`; what it ran before is the same as before if not given.
    fn switch(
        &mut self,
        cpu: u32,
        time: u64,
        prev: Option<Task>,
        state: u64,
        next: Task,
        context: Context,
    ) -> Result<(), String> {
        let before = self.cpus.insert(cpu, next.clone());
        let idle = || Task { comm: format!("swapper/{cpu}"), pid: 0, prio: 120 };
        let prev = prev.or(before).unwrap_or_else(idle);
        let (prev, next) = (prev.named(), next.named());
        let fields = Fields::Switch { prev, state: state_of_bits(state), next };
        self.recorder.event(Head::new(prev.pid, cpu, context, time), fields)
    }

    fn event(&mut self, cpu: u32, event: &FtraceEvent) -> Result<(), String> {
        let time = event.timestamp.unwrap_or_default();
        let context = event.common_flags.map_or(Context::Unknown, |flags| context_of(flags.into()));
        if let Some(switch) = &event.sched_switch {
            let task = |comm: &Option<String>, pid: Option<i32>, prio: Option<i32>| Task {
                comm: comm.clone().unwrap_or_default(),
                pid: pid.unwrap_or_default(),
                prio: prio.unwrap_or_default(),
            };
            let prev = task(&switch.prev_comm, switch.prev_pid, switch.prev_prio);
            let next = task(&switch.next_comm, switch.next_pid, switch.next_prio);
            let state = switch.prev_state.unwrap_or_default() as u64;
            return self.switch(cpu, time, Some(prev), state, next, context);
        }
        let named = |woken: &Woken| Task {
            comm: woken.comm.clone().unwrap_or_default(),
            pid: woken.pid.unwrap_or_default(),
            prio: woken.prio.unwrap_or_default(),
        };
        let woken = event.sched_waking.as_ref().or(event.sched_wakeup.as_ref());
        let task = woken.or(event.sched_wakeup_new.as_ref()).map(named).unwrap_or_default();
        let fields = if event.sched_waking.is_some() {
            Fields::Waking(task.named())
        } else if event.sched_wakeup.is_some() {
            Fields::Wakeup(task.named())
        } else if event.sched_wakeup_new.is_some() {
            Fields::WakeupNew(task.named())
        } else if let Some(fork) = &event.sched_process_fork {
            Fields::Fork { child: fork.child_pid.unwrap_or_default() as u32 }
        } else if let Some(exit) = &event.sched_process_exit {
            Fields::Exit { pid: exit.pid.unwrap_or_default() as u32 }
        } else if let Some(moved) = &event.sched_migrate_task {
            Fields::Migrate { pid: moved.pid.unwrap_or_default() as u32 }
        } else {
            return Ok(());
        };
        self.recorder.event(Head::new(event.pid.unwrap_or_default(), cpu, context, time), fields)
    }
}

/// The next number; `None` at the end.
fn varint(input: &mut dyn BufRead, at: &mut u64) -> io::Result<Option<u64>> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        match input.read(&mut byte)? {
            0 if shift == 0 => return Ok(None),
            0 => return Err(io::Error::other("the file ends within a number")),
            _ => {}
        }
        *at += 1;
        number |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            return Ok(Some(number));
        }
    }
    Err(io::Error::other("this is no packet: its length has no end"))
}

/// The part of Perfetto's definitions that is read, with their names and numbers; fields of a
/// `oneof` are side by side.
#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(message, optional, tag = "1")]
    ftrace_events: Option<FtraceEventBundle>,
    #[prost(bytes = "vec", optional, tag = "50")]
    compressed_packets: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "133")]
    zstd_compressed_packets: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    event: Vec<FtraceEvent>,
    #[prost(bool, optional, tag = "3")]
    lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    compact_sched: Option<CompactSched>,
}

#[derive(Clone, PartialEq, Message)]
struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    switch_next_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "4")]
    switch_next_prio: Vec<i32>,
    #[prost(string, repeated, tag = "5")]
    intern_table: Vec<String>,
    #[prost(uint32, repeated, tag = "6")]
    switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    waking_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "10")]
    waking_prio: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    waking_comm_index: Vec<u32>,
    #[prost(uint32, repeated, tag = "12")]
    waking_common_flags: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pid: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    common_flags: Option<u32>,
    #[prost(message, optional, tag = "4")]
    sched_switch: Option<Switch>,
    #[prost(message, optional, tag = "17")]
    sched_wakeup: Option<Woken>,
    #[prost(message, optional, tag = "20")]
    sched_waking: Option<Woken>,
    #[prost(message, optional, tag = "114")]
    sched_wakeup_new: Option<Woken>,
    #[prost(message, optional, tag = "238")]
    sched_process_exit: Option<Exit>,
    #[prost(message, optional, tag = "239")]
    sched_process_fork: Option<Fork>,
    #[prost(message, optional, tag = "491")]
    sched_migrate_task: Option<Woken>,
}

#[derive(Clone, PartialEq, Message)]
struct Switch {
    #[prost(string, optional, tag = "1")]
    prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    next_prio: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Woken {
    #[prost(string, optional, tag = "1")]
    comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prio: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Exit {
    #[prost(int32, optional, tag = "2")]
    pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Fork {
    #[prost(int32, optional, tag = "4")]
    child_pid: Option<i32>,
}
