//! Reads Perfetto traces with an independent decoder that knows the wire format and only the fields
//! that may occur. Anything else is an error, so that every byte of a trace is checked.

#![allow(dead_code)]

use anysched_core::Time;
use std::collections::BTreeMap;

/// A field's value on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    fn number(self) -> u64 {
        match self {
            Wire::Varint(value) | Wire::Fixed64(value) => value,
            Wire::Bytes(_) => panic!("bytes where a number should be"),
        }
    }

    fn bytes(self) -> &'a [u8] {
        match self {
            Wire::Bytes(bytes) => bytes,
            other => panic!("{other:?} where bytes should be"),
        }
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

/// The fields of a message with their numbers.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.0[0];
            self.0 = &self.0[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
        }
        unreachable!()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Wire<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let key = self.varint();
        let value = match key & 7 {
            0 => Wire::Varint(self.varint()),
            1 => {
                let (value, rest) = self.0.split_at(8);
                self.0 = rest;
                Wire::Fixed64(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = self.varint() as usize;
                let (value, rest) = self.0.split_at(length);
                self.0 = rest;
                Wire::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        Some((key >> 3, value))
    }
}

/// A track as described.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    pub name: String,
    pub parent: Option<u64>,
    pub description: Option<String>,
    pub counter: bool,
    pub child_ordering: u64,
    pub rank: i64,
    pub merge: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    Begin,
    End,
    Instant,
    Counter(u64),
}

/// An event with its names looked up.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: Time,
    pub r#type: Type,
    pub track: u64,
    pub name: Option<String>,
    pub args: Vec<(String, String)>,
    pub flow: Option<u64>,
    pub end_of_flow: Option<u64>,
    pub correlation: Option<u64>,
}

impl Event {
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.args.iter().find(|(arg, _)| arg == name).map(|(_, value)| value.as_str())
    }
}

/// A finished slice; instants count as slices.
#[derive(Clone, Debug)]
pub struct Slice {
    pub begin: Event,
    pub until: Time,
    pub end_args: Vec<(String, String)>,
    /// The index of the slice it lies in.
    pub parent: Option<usize>,
}

/// A `sched_switch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    pub at: Time,
    pub cpu: u64,
    pub state: u64,
    /// Pid and prio of the task that the CPU goes to, and its name.
    pub next: (u64, u64, String),
}

/// A `sched_waking`.
#[derive(Clone, Debug, PartialEq)]
pub struct Waking {
    pub at: Time,
    pub cpu: u64,
    pub task: (u64, u64, String),
    pub target: u64,
    pub in_interrupt: bool,
}

#[derive(Debug, Default)]
pub struct Trace {
    /// Of each CPU in order, but batch by batch.
    pub switches: Vec<Switch>,
    pub wakings: Vec<Waking>,

    pub tracks: BTreeMap<u64, Track>,
    pub events: Vec<Event>,
    event_names: BTreeMap<u64, String>,
    arg_names: BTreeMap<u64, String>,
    arg_values: BTreeMap<u64, String>,
    packets: usize,
    now: u64,
}

const INCREMENTAL_CLOCK: u64 = 64;

impl Trace {
    /// Decodes a whole file.
    pub fn read(bytes: &[u8]) -> Trace {
        let mut trace = Trace::default();
        for (number, packet) in Fields(bytes) {
            assert_eq!(number, 1, "Trace has only packets");
            trace.packet(packet.bytes());
        }
        trace
    }

    fn packet(&mut self, packet: &[u8]) {
        let (mut sequence, mut flags, mut first) = (0, 0, 0);
        let (mut timestamp, mut event, mut ftrace) = (None, None, false);
        for (number, value) in Fields(packet) {
            match number {
                1 => {
                    ftrace = true;
                    self.ftrace(value.bytes());
                }
                6 => self.clock_snapshot(value.bytes()),
                8 => timestamp = Some(value.number()),
                10 => sequence = value.number(),
                11 => event = Some(value.bytes()),
                12 => self.interned_data(value.bytes()),
                13 => flags = value.number(),
                59 => {
                    let defaults: Vec<_> = Fields(value.bytes()).collect();
                    assert_eq!(defaults.len(), 1);
                    assert_eq!((defaults[0].0, defaults[0].1.number()), (58, INCREMENTAL_CLOCK));
                }
                60 => self.track_descriptor(value.bytes()),
                87 => first = value.number(),
                other => panic!("TracePacket field {other}"),
            }
        }
        let begins = self.packets == 0;
        let expected = if begins { 1 } else { 2 };
        assert_eq!((sequence, first), (1, u64::from(begins)));
        assert_eq!(flags, if ftrace { 0 } else { expected });
        self.packets += 1;
        assert_eq!(timestamp.is_some(), event.is_some());
        if let Some(event) = event {
            self.now += timestamp.unwrap_or(0);
            self.track_event(event);
        }
    }

    /// A batch of a CPU's events.
    fn ftrace(&mut self, message: &[u8]) {
        let fields: Vec<_> = Fields(message).collect();
        let [(1, cpu), (4, batch)] = fields[..] else { panic!("{fields:?}") };
        let cpu = cpu.number();
        let (mut names, mut columns) = (Vec::new(), BTreeMap::new());
        for (number, value) in Fields(batch.bytes()) {
            match number {
                5 => names.push(value.text()),
                1..=4 | 6..=12 => {
                    let mut packed = Fields(value.bytes());
                    let mut column = Vec::new();
                    while !packed.0.is_empty() {
                        column.push(packed.varint());
                    }
                    assert!(columns.insert(number, column).is_none());
                }
                other => panic!("CompactSched field {other}"),
            }
        }
        let column = |number: u64, like: u64| {
            let found = columns.get(&number).cloned().unwrap_or_default();
            assert_eq!(found.len(), columns.get(&like).map_or(0, Vec::len), "{number}");
            found
        };
        let task = |pid: u64, prio: u64, name: u64| (pid, prio, names[name as usize].clone());
        let (states, pids, prios) = (column(2, 1), column(3, 1), column(4, 1));
        let (indices, mut at) = (column(6, 1), 0);
        for (index, delta) in column(1, 1).into_iter().enumerate() {
            at += delta;
            let next = task(pids[index], prios[index], indices[index]);
            self.switches.push(Switch { at: Time(at), cpu, state: states[index], next });
        }
        let (pids, targets, prios) = (column(8, 7), column(9, 7), column(10, 7));
        let (indices, flags, mut at) = (column(11, 7), column(12, 7), 0);
        for (index, delta) in column(7, 7).into_iter().enumerate() {
            at += delta;
            self.wakings.push(Waking {
                at: Time(at),
                cpu,
                task: task(pids[index], prios[index], indices[index]),
                target: targets[index],
                in_interrupt: flags[index] == 8,
            });
        }
    }

    fn clock_snapshot(&mut self, message: &[u8]) {
        let mut clocks = Vec::new();
        for (number, value) in Fields(message) {
            match number {
                1 => {
                    let fields: Vec<_> =
                        Fields(value.bytes()).map(|(tag, value)| (tag, value.number())).collect();
                    clocks.push(fields);
                }
                2 => assert_eq!(value.number(), 6),
                other => panic!("ClockSnapshot field {other}"),
            }
        }
        assert_eq!(clocks, [vec![(1, 6), (2, 0)], vec![(1, INCREMENTAL_CLOCK), (2, 0), (3, 1)]]);
    }

    fn interned_data(&mut self, message: &[u8]) {
        for (number, value) in Fields(message) {
            let index = match number {
                2 => &mut self.event_names,
                3 => &mut self.arg_names,
                29 => &mut self.arg_values,
                other => panic!("InternedData field {other}"),
            };
            let (mut iid, mut name) = (0, None);
            for (number, value) in Fields(value.bytes()) {
                match number {
                    1 => iid = value.number(),
                    2 => name = Some(value.text()),
                    other => panic!("field {other} of an interned text"),
                }
            }
            assert_ne!(iid, 0);
            assert_eq!(index.insert(iid, name.unwrap()), None, "{iid} twice");
        }
    }

    fn track_descriptor(&mut self, message: &[u8]) {
        let (mut uuid, mut track) = (0, Track::default());
        for (number, value) in Fields(message) {
            match number {
                1 => uuid = value.number(),
                2 => track.name = value.text(),
                5 => track.parent = Some(value.number()),
                8 => {
                    track.counter = true;
                    assert!(Fields(value.bytes()).all(|(number, _)| number == 6));
                }
                11 => track.child_ordering = value.number(),
                12 => track.rank = value.number() as i64,
                14 => track.description = Some(value.text()),
                15 => track.merge = value.number(),
                other => panic!("TrackDescriptor field {other}"),
            }
        }
        if let Some(parent) = track.parent {
            assert!(self.tracks.contains_key(&parent), "{track:?} comes before its parent");
        }
        assert_ne!(uuid, 0);
        assert_eq!(self.tracks.insert(uuid, track), None, "{uuid} described twice");
    }

    fn track_event(&mut self, message: &[u8]) {
        let mut event = Event {
            at: Time(self.now),
            r#type: Type::Begin,
            track: 0,
            name: None,
            args: Vec::new(),
            flow: None,
            end_of_flow: None,
            correlation: None,
        };
        let (mut r#type, mut counter) = (0, None);
        for (number, value) in Fields(message) {
            match number {
                4 => event.args.push(self.debug_annotation(value.bytes())),
                9 => r#type = value.number(),
                10 => event.name = Some(self.event_names[&value.number()].clone()),
                11 => event.track = value.number(),
                30 => counter = Some(value.number()),
                47 => assert_eq!(event.flow.replace(value.number()), None),
                48 => assert_eq!(event.end_of_flow.replace(value.number()), None),
                52 => event.correlation = Some(value.number()),
                other => panic!("TrackEvent field {other}"),
            }
        }
        event.r#type = match (r#type, counter) {
            (1, None) => Type::Begin,
            (2, None) => Type::End,
            (3, None) => Type::Instant,
            (4, Some(value)) => Type::Counter(value),
            other => panic!("type and counter value {other:?}"),
        };
        let track = &self.tracks[&event.track];
        assert_eq!(track.counter, counter.is_some(), "{event:?} on {track:?}");
        self.events.push(event);
    }

    fn debug_annotation(&self, message: &[u8]) -> (String, String) {
        let (mut name, mut text) = (None, None);
        for (number, value) in Fields(message) {
            match number {
                1 => name = Some(self.arg_names[&value.number()].clone()),
                3 => text = Some(value.number().to_string()),
                17 => text = Some(self.arg_values[&value.number()].clone()),
                other => panic!("DebugAnnotation field {other}"),
            }
        }
        (name.unwrap(), text.unwrap())
    }

    /// All slices and instants, in the order in which they begin. Checks that they are nested and
    /// that all of them end.
    pub fn slices(&self) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for event in &self.events {
            let open = open.entry(event.track).or_default();
            let parent = open.last().copied();
            let new = Slice { begin: event.clone(), until: event.at, end_args: Vec::new(), parent };
            match event.r#type {
                Type::Begin => {
                    open.push(slices.len());
                    slices.push(new);
                }
                Type::Instant => slices.push(new),
                Type::End => {
                    let index = open.pop().unwrap_or_else(|| panic!("{event:?} ends nothing"));
                    slices[index].until = event.at;
                    slices[index].end_args = event.args.clone();
                }
                Type::Counter(_) => {}
            }
        }
        let open: Vec<_> = open.into_iter().filter(|(_, open)| !open.is_empty()).collect();
        assert_eq!(open, [], "slices that do not end");
        slices
    }

    /// The uuid of the track with this name; there must be exactly one.
    pub fn track(&self, name: &str) -> u64 {
        let found: Vec<_> = self.tracks.iter().filter(|(_, track)| track.name == name).collect();
        assert_eq!(found.len(), 1, "tracks called {name}: {found:?}");
        *found[0].0
    }
}
