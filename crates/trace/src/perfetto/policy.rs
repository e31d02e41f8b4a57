//! Tracks of what a policy decided, beside those of what the kernel did.

use super::event::{DebugAnnotation, TrackEvent, Type, Value};
use super::proto::{self, InternedData, TracePacket, TrackDescriptor};
use super::{Arg, FIRST_NAME, Name, PerfettoWriter, interned, packet};
use crate::policy::{Actor, Decision, Made};
use anysched_core::recorder::Call;
use anysched_core::{CpuId, Enqueue, Off, Span};
use std::borrow::ToOwned;
use std::format;
use std::io::Write;
use std::string::String;
use std::vec::Vec;

/// The group.
const POLICY: u64 = 6;

/// Above the tracks of all tasks, and below those of virtual machines.
const FIRST_TRACK: u64 = 1 << 55;
/// What no CPU was asked about.
const CALLS: u64 = FIRST_TRACK;

/// Above the names of all tasks, and below those of virtual machines.
const FIRST_CALL: u64 = 1 << 61;

/// Calls that are instants, in the order of their names' numbers.
const INSTANTS: [&str; 10] = [
    "attach",
    "detach",
    "update",
    "set_domain",
    "set_online",
    "enqueue",
    "dequeue",
    "tick",
    "timer",
    "set_param",
];

/// Values of arguments; numbers below are those of [`Off`], above are tasks' names.
const FIRST_VALUE: u64 = 16;
const VALUES: [&str; 9] = [
    "new",
    "woken",
    "resumed",
    "switched to",
    "went on",
    "overtaken",
    "not run",
    "taken back",
    "unknown",
];
const FIRST_TASK: u64 = 32;

/// What the tracks show.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// The group has been described.
    is_described: bool,
    /// By CPU, whether its track has an open slice, if it has been described.
    cpus: Vec<Option<bool>>,
    /// By a task's number, whether its name is an argument's value, too.
    named: Vec<bool>,
}

fn cpu_track(cpu: CpuId) -> u64 {
    FIRST_TRACK + 1 + u64::from(cpu.0)
}

fn value(name: Arg, text: &str) -> Option<DebugAnnotation> {
    let at = VALUES.iter().position(|value| *value == text)?;
    Some(DebugAnnotation {
        name_iid: name as u64,
        value: Value::StringIid(FIRST_VALUE + at as u64),
    })
}

fn uint(name: Arg, number: u64) -> Option<DebugAnnotation> {
    Some(DebugAnnotation { name_iid: name as u64, value: Value::Uint(number) })
}

impl<W: Write> PerfettoWriter<W> {
    pub(super) fn decide(&mut self, decision: &Decision<'_>) {
        if !self.policy.is_described {
            self.describe_policy();
        }
        let (Decision { task, cpu, made, .. }, call) = (*decision, &decision.record.call);
        match *call {
            Call::PickNext { cpu } => self.pick(decision, cpu, made),
            Call::PutPrev { cpu, why, .. } => self.put_back(cpu, Some(why)),
            Call::Tick { cpu, .. } => {
                let track_uuid = self.policy_track(cpu);
                self.call("tick", TrackEvent { track_uuid, ..TrackEvent::default() });
            }
            Call::Enqueue { arrival, .. } => self.about("enqueue", task, Some(arrival.why), cpu),
            Call::Attach { .. } => self.about("attach", task, None, cpu),
            Call::Detach { .. } => self.about("detach", task, None, cpu),
            Call::Update { .. } => self.about("update", task, None, cpu),
            Call::Dequeue { .. } => self.about("dequeue", task, None, cpu),
            Call::SetDomain { .. } => self.about("set_domain", task, None, cpu),
            Call::SetOnline { .. } => self.about("set_online", task, None, cpu),
            Call::SetParam { .. } => self.about("set_param", task, None, cpu),
            Call::Timer => self.about("timer", task, None, cpu),
        }
        let kicks = decision.record.answer.iter().flat_map(|answer| answer.kicks.iter());
        for cpu in kicks {
            let track_uuid = self.policy_track(cpu);
            self.instant(Name::Kick, TrackEvent { track_uuid, ..TrackEvent::default() });
        }
    }

    /// What the policy believes that `cpu` runs from here on.
    fn pick(&mut self, decision: &Decision<'_>, cpu: CpuId, made: Option<Made>) {
        self.put_back(cpu, None);
        let answer = decision.record.answer.as_ref();
        let Some(pick) = answer.and_then(|answer| answer.pick) else { return };
        let (name_iid, correlation_id) = match decision.task {
            Some(task) => {
                let serial = u64::from(task.id.0);
                (FIRST_NAME + serial, Some(serial))
            }
            None => (Name::Unknown as u64, None),
        };
        let slice = (pick.slice != Span::MAX).then(|| uint(Arg::Slice, pick.slice.0)).flatten();
        let event = TrackEvent {
            track_uuid: self.policy_track(cpu),
            name_iid,
            debug_annotations: [slice, made.and_then(|made| value(Arg::Made, made.words()))],
            correlation_id,
            ..TrackEvent::default()
        };
        self.put(event);
        self.policy.cpus[cpu.index()] = Some(true);
    }

    /// The policy has taken back what it had `cpu` run.
    fn put_back(&mut self, cpu: CpuId, why: Option<Off>) {
        let track = self.policy_track(cpu);
        if self.policy.cpus[cpu.index()] == Some(true) {
            self.end_slice(track, why);
            self.policy.cpus[cpu.index()] = Some(false);
        }
    }

    /// A call that is about no CPU's running task.
    fn about(&mut self, name: &str, task: Option<Actor<'_>>, why: Option<Enqueue>, cpu: CpuId) {
        let first = match task {
            Some(task) => Some(self.task_argument(task)),
            None => uint(Arg::Cpu, u64::from(cpu.0)),
        };
        let second = why.and_then(|why| value(Arg::Why, reason(why)));
        let debug_annotations = [first, second];
        self.call(
            name,
            TrackEvent { track_uuid: CALLS, debug_annotations, ..TrackEvent::default() },
        );
    }

    fn call(&mut self, name: &str, event: TrackEvent) {
        let at = INSTANTS.iter().position(|instant| *instant == name);
        let name_iid = at.map_or(Name::Unknown as u64, |at| FIRST_CALL + at as u64);
        self.put(TrackEvent { r#type: Type::Instant, name_iid, ..event });
    }

    /// A task's name as an argument, told once.
    fn task_argument(&mut self, task: Actor<'_>) -> DebugAnnotation {
        let (at, iid) = (task.id.index(), FIRST_TASK + u64::from(task.id.0));
        if self.policy.named.len() <= at {
            self.policy.named.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.policy.named[at], true) {
            let text = format!("{}-{}", task.comm, task.pid);
            let debug_annotation_string_values = [interned(iid, &text)].into();
            let interned_data =
                Some(InternedData { debug_annotation_string_values, ..InternedData::default() });
            self.write(TracePacket { interned_data, ..packet() });
        }
        DebugAnnotation { name_iid: Arg::Task as u64, value: Value::StringIid(iid) }
    }

    #[cold]
    fn describe_policy(&mut self) {
        self.policy.is_described = true;
        self.describe(TrackDescriptor {
            uuid: Some(POLICY),
            name: Some("Policy".to_owned()),
            child_ordering: Some(proto::CHILD_ORDERING_EXPLICIT),
            ..TrackDescriptor::default()
        });
        let names = |first: u64, texts: &[&str]| {
            texts.iter().zip(first..).map(|(text, iid)| interned(iid, text)).collect()
        };
        self.write(TracePacket {
            interned_data: Some(InternedData {
                event_names: names(FIRST_CALL, &INSTANTS),
                debug_annotation_names: Vec::new(),
                debug_annotation_string_values: names(FIRST_VALUE, &VALUES),
            }),
            ..packet()
        });
        self.describe_policy_track(CALLS, "calls".to_owned(), i32::MAX);
    }

    /// The track of a CPU's picks; describes it first if needed.
    fn policy_track(&mut self, cpu: CpuId) -> u64 {
        let cpus = &mut self.policy.cpus;
        if cpus.len() <= cpu.index() {
            cpus.resize(cpu.index() + 1, None);
        }
        let track = cpu_track(cpu);
        if cpus[cpu.index()].is_none() {
            cpus[cpu.index()] = Some(false);
            self.describe_policy_track(track, format!("CPU {}", cpu.0), i32::from(cpu.0));
        }
        track
    }

    fn describe_policy_track(&mut self, uuid: u64, name: String, rank: i32) {
        self.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(POLICY),
            sibling_order_rank: Some(rank),
            // The kernel's CPUs have the same names.
            sibling_merge_behavior: Some(proto::SIBLING_MERGE_BEHAVIOR_NONE),
            ..TrackDescriptor::default()
        });
    }

    /// Closes all slices.
    pub(super) fn end_policy(&mut self) {
        for cpu in 0..self.policy.cpus.len() {
            if self.policy.cpus[cpu].is_some() {
                self.put_back(CpuId(cpu as u16), None);
            }
        }
    }
}

/// Why a task becomes ready, in a word.
fn reason(why: Enqueue) -> &'static str {
    match why {
        Enqueue::New => "new",
        Enqueue::Wakeup { .. } => "woken",
        Enqueue::Resumed { .. } => "resumed",
    }
}
