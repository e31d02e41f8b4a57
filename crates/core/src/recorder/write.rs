//! Writes the format defined in the [module documentation](super).

use super::LogSink;
use crate::call::Call;
use crate::ids::{CpuMask, CpuSet};
use crate::machine::Machine;
use crate::params::TaskParams;
use crate::time::{Span, Time};
use crate::{Arrival, Enqueue, Off, Pick};

pub(super) const MAGIC: &[u8; 8] = b"anysched";
pub(super) const VERSION: u8 = 2;

/// The oldest version that can be read.
pub(super) const OLDEST: u8 = 1;

/// Set in the head of a record if time has passed since the previous one.
pub(super) const PASSED: u8 = 0x10;

/// The head of the mark behind which records are missing.
pub(super) const LOST: u8 = 12;

/// The number of `set_param`, which came after the mark.
pub(super) const SET_PARAM: u8 = 13;

/// Flags of an answer.
pub(super) const PICK: u8 = 0x01;
pub(super) const KICKS: u8 = 0x02;
pub(super) const TIMER: u8 = 0x04;

/// Flags of an arrival.
pub(super) const SYNC: u8 = 0x04;
pub(super) const FROM: u8 = 0x08;
pub(super) const BURST: u8 = 0x10;
pub(super) const DEADLINE: u8 = 0x20;

/// Most records fit, so they reach the sink in one piece before the call and another after it.
const BUFFER: usize = 64;

/// Collects small writes for a sink.
pub(super) struct Encoder<'a, W: LogSink> {
    sink: &'a mut W,
    bytes: [u8; BUFFER],
    len: usize,
}

/// The whole header of a log.
pub(super) fn header(
    sink: &mut impl LogSink,
    machine: &Machine,
    policy: &str,
    settings: &[(&str, &str)],
) {
    sink.write(MAGIC);
    let mut log = Encoder::new(sink);
    log.byte(VERSION);
    log.text(policy);
    log.varint(settings.len() as u64);
    for (name, value) in settings {
        log.text(name);
        log.text(value);
    }
    log.varint(machine.cpus() as u64);
    for cpu in machine.cpu_ids() {
        let cpu = machine.cpu(cpu);
        for field in [cpu.core, cpu.llc, cpu.package, cpu.node, cpu.capacity] {
            log.varint(u64::from(field));
        }
    }
    log.varint(machine.tick().map_or(0, |tick| tick.0));
    log.finish();
}

/// Ends a log behind its last whole record: `records` that came after that found no room. A log
/// with this mark reads up to it and is an error there.
pub fn lost(sink: &mut impl LogSink, records: u64) {
    let mut log = Encoder::new(sink);
    log.byte(LOST);
    log.varint(records);
    log.finish();
}

impl<'a, W: LogSink> Encoder<'a, W> {
    #[inline]
    pub fn new(sink: &'a mut W) -> Encoder<'a, W> {
        Encoder { sink, bytes: [0; BUFFER], len: 0 }
    }

    /// Passes on what is left.
    #[inline]
    pub fn finish(self) {
        self.sink.write(&self.bytes[..self.len]);
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        if self.len == BUFFER {
            self.sink.write(&self.bytes);
            self.len = 0;
        }
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    fn signed(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    fn text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        text.bytes().for_each(|byte| self.byte(byte));
    }

    /// Writes `time` as its distance from `now`.
    fn time(&mut self, now: Time, time: Time) {
        self.signed(time.0.wrapping_sub(now.0) as i64);
    }

    #[inline]
    fn head(&mut self, now: Time, last: Time, kind: u8) {
        if now == last {
            self.byte(kind);
        } else {
            self.byte(kind | PASSED);
            self.varint(now.0.wrapping_sub(last.0));
        }
    }

    /// A record up to its answer.
    #[inline]
    pub fn call(&mut self, now: Time, last: Time, call: &Call<'_>) {
        self.head(now, last, kind_of(call));
        match *call {
            Call::Attach { task, ref params } | Call::Update { task, ref params } => {
                self.varint(u64::from(task.0));
                self.params(params);
            }
            Call::Detach { task } | Call::Dequeue { task } => self.varint(u64::from(task.0)),
            Call::SetDomain { domain, params } => {
                self.varint(u64::from(domain.0));
                self.varint(u64::from(params.weight));
                self.varint(u64::from(params.cap_percent));
            }
            Call::SetParam { ref name, ref text } => {
                self.text(name);
                self.text(text);
            }
            Call::SetOnline { cpu, .. } | Call::PickNext { cpu } => self.varint(u64::from(cpu.0)),
            Call::Enqueue { task, ref arrival } => {
                self.varint(u64::from(task.0));
                self.arrival(now, arrival);
            }
            Call::PutPrev { cpu, task, ran, why } => {
                self.ran(cpu.0, task.0, ran);
                self.byte(match why {
                    Off::Expired => 0,
                    Off::Preempted => 1,
                    Off::Yielded => 2,
                    Off::NotRun => 3,
                    Off::Blocked => 4,
                    Off::Exited => 5,
                });
            }
            Call::Tick { cpu, task, ran } => self.ran(cpu.0, task.0, ran),
            Call::Timer => {}
        }
    }

    fn ran(&mut self, cpu: u16, task: u32, ran: Span) {
        self.varint(u64::from(cpu));
        self.varint(u64::from(task));
        self.varint(ran.0);
    }

    fn params(&mut self, params: &TaskParams) {
        let usual = TaskParams::default();
        let spans = [params.period, params.budget, params.relative_deadline];
        let flags = [
            params.weight != usual.weight,
            params.priority != usual.priority,
            !params.affinity.is_all(),
            params.domain != usual.domain,
            spans[0].is_some(),
            spans[1].is_some(),
            spans[2].is_some(),
            params.key.is_some(),
            !params.preferred.is_all(),
            params.intensity != usual.intensity,
        ];
        let set = flags.iter().enumerate();
        self.varint(set.fold(0, |all, (bit, &flag)| all | u64::from(flag) << bit));
        if flags[0] {
            self.varint(u64::from(params.weight));
        }
        if flags[1] {
            self.signed(i64::from(params.priority));
        }
        self.cpus(&params.affinity);
        if flags[3] {
            self.varint(u64::from(params.domain.0));
        }
        spans.iter().flatten().for_each(|span| self.varint(span.0));
        if let Some(key) = params.key {
            self.varint(u64::from(key));
        }
        self.cpus(&params.preferred);
        if flags[9] {
            self.varint(u64::from(params.intensity));
        }
    }

    /// A set that is not that of all CPUs.
    fn cpus(&mut self, cpus: &CpuSet) {
        let words = match cpus {
            CpuSet::All => return,
            CpuSet::Few(word) => core::slice::from_ref(word),
            CpuSet::Many(words) => &words[..],
        };
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        self.varint(used as u64);
        words[..used].iter().for_each(|&word| self.varint(word));
    }

    fn arrival(&mut self, now: Time, arrival: &Arrival) {
        let (why, prev) = match arrival.why {
            Enqueue::New => (0, None),
            Enqueue::Wakeup { prev, sync: false } => (1, Some(prev)),
            Enqueue::Wakeup { prev, sync: true } => (1 | SYNC, Some(prev)),
            Enqueue::Resumed { prev } => (2, Some(prev)),
        };
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        self.byte(
            why | flag(arrival.from.is_some(), FROM)
                | flag(arrival.burst.is_some(), BURST)
                | flag(arrival.deadline.is_some(), DEADLINE),
        );
        prev.into_iter().chain(arrival.from).for_each(|cpu| self.varint(u64::from(cpu.0)));
        if let Some(burst) = arrival.burst {
            self.varint(burst.0);
        }
        if let Some(deadline) = arrival.deadline {
            self.time(now, deadline);
        }
    }

    /// The answer of a record; `timer` is the new answer of `next_timer` if it has changed.
    #[inline]
    pub fn answer(
        &mut self,
        now: Time,
        pick: Option<Pick>,
        kicks: &CpuMask,
        timer: Option<Option<Time>>,
    ) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        self.byte(
            flag(pick.is_some(), PICK)
                | flag(!kicks.is_empty(), KICKS)
                | flag(timer.is_some(), TIMER),
        );
        if let Some(Pick { task, slice }) = pick {
            self.varint(u64::from(task.0));
            self.varint(slice.0.wrapping_add(1));
        }
        if !kicks.is_empty() {
            self.varint(kicks.len() as u64);
            let mut last = 0;
            for cpu in kicks.iter() {
                self.varint(u64::from(cpu.0 - last));
                last = cpu.0;
            }
        }
        match timer {
            None => {}
            Some(None) => self.byte(0),
            Some(Some(due)) => {
                self.byte(1);
                self.time(now, due);
            }
        }
    }
}

/// The number of a call in the head of a record.
fn kind_of(call: &Call<'_>) -> u8 {
    match call {
        Call::Attach { .. } => 0,
        Call::Detach { .. } => 1,
        Call::Update { .. } => 2,
        Call::SetDomain { .. } => 3,
        Call::SetOnline { online: false, .. } => 4,
        Call::SetOnline { online: true, .. } => 5,
        Call::Enqueue { .. } => 6,
        Call::Dequeue { .. } => 7,
        Call::PickNext { .. } => 8,
        Call::PutPrev { .. } => 9,
        Call::Tick { .. } => 10,
        Call::Timer => 11,
        Call::SetParam { .. } => SET_PARAM,
    }
}
