//! Reads the format defined in the [module documentation](super). Nothing in a log is trusted:
//! counts do not reserve memory, and allocations are bounded by the length of the log (plus a few
//! megabytes for the groups of a machine).

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use super::write::{
    BURST, DEADLINE, FROM, KICKS, LOST, MAGIC, OLDEST, PASSED, PICK, SET_PARAM, SYNC, TIMER,
    VERSION,
};
use crate::call::Call;
use crate::ids::{CpuId, CpuMask, CpuSet, DomainId, MAX_CPUS, TaskId};
use crate::machine::{Cpu, Machine, TopologyError};
use crate::params::{DomainParams, TaskParams};
use crate::time::{Span, Time};
use crate::{Arrival, Enqueue, Off, Pick};

/// The header of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name by which the policy was built.
    pub policy: &'a str,
    /// Its settings, names and values.
    pub settings: Vec<(&'a str, &'a str)>,
    /// The machine that it was built for.
    pub machine: Machine,
}

/// A recorded call. `Display` describes it in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number in the log, from 1.
    pub number: u64,
    /// Where it begins in the log, in bytes.
    pub offset: usize,
    /// The time of the call.
    pub now: Time,
    /// The call.
    pub call: Call<'static>,
    /// The answer; `None` if the log ends before it, or if the last call never returned.
    pub answer: Option<Answer>,
}

/// What a policy answered to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What `pick_next` returned.
    pub pick: Option<Pick>,
    /// The CPUs that were kicked.
    pub kicks: CpuMask,
    /// What `next_timer` returned after the call.
    pub next_timer: Option<Time>,
}

/// Why a log cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Where the problem starts, in bytes from the start of the log.
    pub offset: usize,
    /// What it is.
    pub problem: Problem,
}

/// What is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It does not begin like a log.
    NotALog,
    /// It has an unsupported version.
    Version(u8),
    /// It ends prematurely.
    Truncated,
    /// So many records are missing, for which its buffer had no room.
    Lost(u64),
    /// An integer is 2^64 or more.
    TooLong,
    /// A value out of range.
    Value {
        /// Of what.
        what: &'static str,
        /// The value.
        value: u64,
        /// The smallest valid value.
        least: u64,
        /// The largest valid value.
        most: u64,
    },
    /// A byte of flags or a choice with undefined bits.
    Bits {
        /// Of what.
        what: &'static str,
        /// The byte, or the lowest bits of flags that are longer.
        byte: u8,
    },
    /// A text that is not UTF-8.
    NotText,
    /// Kicked CPUs that are not in ascending order.
    KicksOrder,
    /// An invalid machine.
    Machine(TopologyError),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log, byte {}: ", self.offset)?;
        match &self.problem {
            Problem::NotALog => f.write_str("not a log, which begins with \"anysched\""),
            Problem::Version(version) => {
                write!(f, "version {version}, but only versions {OLDEST} and {VERSION} can be read")
            }
            Problem::Truncated => f.write_str("ends in the middle of the header or of a record"),
            Problem::Lost(records) => write!(
                f,
                "the log is not whole: {records} records that follow found no room in its buffer; \
                 record a shorter time"
            ),
            Problem::TooLong => f.write_str("an integer of more than 64 bits"),
            Problem::Value { what, value, least, most } => {
                write!(f, "{what} {value} is not in {least}..={most}")
            }
            Problem::Bits { what, byte } => write!(f, "{what} 0x{byte:02x} means nothing"),
            Problem::NotText => f.write_str("a text that is not UTF-8"),
            Problem::KicksOrder => f.write_str("kicked CPUs are not in ascending order"),
            Problem::Machine(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LogError {}

/// Iterates over the records of a log. Ends after an error.
#[derive(Clone, Debug)]
pub struct LogReader<'a> {
    header: Header<'a>,
    rest: Decoder<'a>,
    number: u64,
    now: Time,
    timer: Option<Time>,
    failed: bool,
}

impl<'a> LogReader<'a> {
    /// Reads the header of `log`.
    ///
    /// Errors: it is not a log, has an unsupported version, or is malformed.
    pub fn new(log: &'a [u8]) -> Result<LogReader<'a>, LogError> {
        let mut rest = Decoder { log, at: 0, version: VERSION };
        let header = rest.header()?;
        Ok(LogReader { header, rest, number: 0, now: Time::ZERO, timer: None, failed: false })
    }

    /// The header.
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    fn record(&mut self) -> Result<Record, LogError> {
        let log = &mut self.rest;
        let offset = log.at;
        let head = log.byte()?;
        if head == LOST {
            return Err(Decoder::error(offset, Problem::Lost(log.varint()?)));
        }
        if head & PASSED != 0 {
            self.now = Time(self.now.0.wrapping_add(log.varint()?));
        }
        let call = match log.call(self.now, head & !PASSED)? {
            Some(call) => call,
            None => return Err(log.bits_at(offset, "the head of a record", head)),
        };
        let mut answer = None;
        if log.at < log.log.len() {
            let picks = matches!(call, Call::PickNext { .. });
            let (pick, kicks, timer) = log.answer(self.now, picks)?;
            self.timer = timer.unwrap_or(self.timer);
            answer = Some(Answer { pick, kicks, next_timer: self.timer });
        }
        self.number += 1;
        Ok(Record { number: self.number, offset, now: self.now, call, answer })
    }
}

impl Iterator for LogReader<'_> {
    type Item = Result<Record, LogError>;

    fn next(&mut self) -> Option<Result<Record, LogError>> {
        if self.failed || self.rest.at == self.rest.log.len() {
            return None;
        }
        let record = self.record();
        self.failed = record.is_err();
        Some(record)
    }
}

impl core::iter::FusedIterator for LogReader<'_> {}

/// A position in a log.
#[derive(Clone, Debug)]
struct Decoder<'a> {
    log: &'a [u8],
    at: usize,
    version: u8,
}

type Read<T> = Result<T, LogError>;

impl<'a> Decoder<'a> {
    fn error(offset: usize, problem: Problem) -> LogError {
        LogError { offset, problem }
    }

    fn bits_at(&self, offset: usize, what: &'static str, byte: u8) -> LogError {
        Decoder::error(offset, Problem::Bits { what, byte })
    }

    fn byte(&mut self) -> Read<u8> {
        let byte = self.log.get(self.at).copied();
        let byte = byte.ok_or_else(|| Decoder::error(self.log.len(), Problem::Truncated))?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Read<u64> {
        let start = self.at;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && byte > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Decoder::error(start, Problem::TooLong))
    }

    fn signed(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A varint in `least ..= most`.
    fn within(&mut self, what: &'static str, least: u64, most: u64) -> Read<u64> {
        let start = self.at;
        match self.varint()? {
            value if (least..=most).contains(&value) => Ok(value),
            value => Err(Decoder::error(start, Problem::Value { what, value, least, most })),
        }
    }

    fn text(&mut self) -> Read<&'a str> {
        let length = self.varint()?;
        let left = &self.log[self.at..];
        if length > left.len() as u64 {
            return Err(Decoder::error(self.log.len(), Problem::Truncated));
        }
        let (text, _) = left.split_at(length as usize);
        let start = self.at;
        self.at += text.len();
        core::str::from_utf8(text)
            .map_err(|error| Decoder::error(start + error.valid_up_to(), Problem::NotText))
    }

    fn header(&mut self) -> Read<Header<'a>> {
        if !self.log.starts_with(MAGIC) {
            return Err(Decoder::error(0, Problem::NotALog));
        }
        self.at = MAGIC.len();
        self.version = self.byte()?;
        if !(OLDEST..=VERSION).contains(&self.version) {
            return Err(Decoder::error(MAGIC.len(), Problem::Version(self.version)));
        }
        let policy = self.text()?;
        let mut settings = Vec::new();
        for _ in 0..self.varint()? {
            settings.push((self.text()?, self.text()?));
        }
        Ok(Header { policy, settings, machine: self.machine()? })
    }

    fn machine(&mut self) -> Read<Machine> {
        let start = self.at;
        let mut cpus = Vec::new();
        for _ in 0..self.within("the number of CPUs", 1, MAX_CPUS as u64)? {
            let mut field = |what| Ok(self.within(what, 0, u64::from(u16::MAX))? as u16);
            cpus.push(Cpu {
                core: field("core")?,
                llc: field("LLC")?,
                package: field("package")?,
                node: field("node")?,
                capacity: field("capacity")?,
            });
        }
        let machine = Machine::new(cpus);
        let machine = machine.map_err(|error| Decoder::error(start, Problem::Machine(error)))?;
        let tick = Span(self.varint()?);
        Ok(machine.with_tick(Some(tick)))
    }

    fn task(&mut self) -> Read<TaskId> {
        Ok(TaskId(self.within("task", 0, u64::from(u32::MAX))? as u32))
    }

    fn cpu(&mut self) -> Read<CpuId> {
        Ok(CpuId(self.within("CPU", 0, MAX_CPUS as u64 - 1)? as u16))
    }

    fn span(&mut self) -> Read<Span> {
        self.varint().map(Span)
    }

    /// A time written as its distance from `now`.
    fn time(&mut self, now: Time) -> Read<Time> {
        Ok(Time(now.0.wrapping_add(self.signed()? as u64)))
    }

    /// The call numbered `kind`; `None` if there is no such call.
    fn call(&mut self, now: Time, kind: u8) -> Read<Option<Call<'static>>> {
        Ok(Some(match kind {
            0 => Call::Attach { task: self.task()?, params: Cow::Owned(self.params()?) },
            1 => Call::Detach { task: self.task()? },
            2 => Call::Update { task: self.task()?, params: Cow::Owned(self.params()?) },
            3 => Call::SetDomain { domain: self.domain()?, params: self.domain_params()? },
            4 | 5 => Call::SetOnline { cpu: self.cpu()?, online: kind == 5 },
            6 => Call::Enqueue { task: self.task()?, arrival: self.arrival(now)? },
            7 => Call::Dequeue { task: self.task()? },
            8 => Call::PickNext { cpu: self.cpu()? },
            9 => Call::PutPrev {
                cpu: self.cpu()?,
                task: self.task()?,
                ran: self.span()?,
                why: self.off()?,
            },
            10 => Call::Tick { cpu: self.cpu()?, task: self.task()?, ran: self.span()? },
            11 => Call::Timer,
            SET_PARAM => {
                let (name, text) = (self.text()?, self.text()?);
                Call::SetParam { name: Cow::Owned(name.into()), text: Cow::Owned(text.into()) }
            }
            _ => return Ok(None),
        }))
    }

    fn domain(&mut self) -> Read<DomainId> {
        Ok(DomainId(self.within("domain", 0, u64::from(u16::MAX))? as u16))
    }

    fn domain_params(&mut self) -> Read<DomainParams> {
        let mut field = |what| Ok(self.within(what, 0, u64::from(u32::MAX))? as u32);
        Ok(DomainParams { weight: field("weight")?, cap_percent: field("cap")? })
    }

    fn off(&mut self) -> Read<Off> {
        let start = self.at;
        Ok(match self.byte()? {
            0 => Off::Expired,
            1 => Off::Preempted,
            2 => Off::Yielded,
            3 => Off::NotRun,
            4 => Off::Blocked,
            5 => Off::Exited,
            byte => return Err(self.bits_at(start, "why a task stops", byte)),
        })
    }

    fn params(&mut self) -> Read<TaskParams> {
        const FLAGS: u64 = 0x3ff;
        let start = self.at;
        let flags = if self.version == 1 { self.byte()?.into() } else { self.varint()? };
        if flags & !FLAGS != 0 {
            return Err(self.bits_at(start, "the flags of parameters", flags as u8));
        }
        let has = |bit: u8| flags >> bit & 1 != 0;
        let mut params = TaskParams::default();
        if has(0) {
            params.weight = self.within("weight", 1, u64::from(u32::MAX))? as u32;
        }
        if has(1) {
            let start = self.at;
            let priority = self.signed()?;
            params.priority = i32::try_from(priority).map_err(|_| {
                let value = priority.unsigned_abs();
                let most = i32::MAX as u64;
                Decoder::error(start, Problem::Value { what: "priority", value, least: 0, most })
            })?;
        }
        if has(2) {
            params.affinity = self.cpus()?;
        }
        if has(3) {
            params.domain = self.domain()?;
        }
        params.period = self.optional(has(4), Decoder::span)?;
        params.budget = self.optional(has(5), Decoder::span)?;
        params.relative_deadline = self.optional(has(6), Decoder::span)?;
        params.key = self.optional(has(7), Decoder::key)?;
        if has(8) {
            params.preferred = self.cpus()?;
        }
        if has(9) {
            params.intensity = self.within("intensity", 0, 100)? as u8;
        }
        Ok(params)
    }

    fn key(&mut self) -> Read<u32> {
        Ok(self.within("key", 0, u64::from(u32::MAX))? as u32)
    }

    fn optional<T>(&mut self, is: bool, read: fn(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if is { read(self).map(Some) } else { Ok(None) }
    }

    fn cpus(&mut self) -> Read<CpuSet> {
        let mut mask = CpuMask::EMPTY;
        let words = self.within("words of a set of CPUs", 0, MAX_CPUS as u64 / 64)?;
        for word in 0..words as u16 {
            let bits = self.varint()?;
            let set = (0..64).filter(|bit| bits >> bit & 1 != 0);
            set.for_each(|bit| mask.insert(CpuId(word * 64 + bit)));
        }
        Ok(CpuSet::of(mask.iter()))
    }

    fn arrival(&mut self, now: Time) -> Read<Arrival> {
        let start = self.at;
        let flags = self.byte()?;
        let sync = flags & SYNC != 0;
        let why = match flags & 3 {
            0 if !sync => Enqueue::New,
            1 => Enqueue::Wakeup { prev: self.cpu()?, sync },
            2 if !sync => Enqueue::Resumed { prev: self.cpu()? },
            _ => return Err(self.bits_at(start, "the flags of an arrival", flags)),
        };
        if flags & !(3 | SYNC | FROM | BURST | DEADLINE) != 0 {
            return Err(self.bits_at(start, "the flags of an arrival", flags));
        }
        let from = self.optional(flags & FROM != 0, Decoder::cpu)?;
        let burst = self.optional(flags & BURST != 0, Decoder::span)?;
        let deadline = if flags & DEADLINE != 0 { Some(self.time(now)?) } else { None };
        Ok(Arrival { why, from, burst, deadline })
    }

    /// Pick, kicks, and the new answer of `next_timer` if it has changed.
    #[allow(clippy::type_complexity)]
    fn answer(
        &mut self,
        now: Time,
        picks: bool,
    ) -> Read<(Option<Pick>, CpuMask, Option<Option<Time>>)> {
        let start = self.at;
        let flags = self.byte()?;
        if flags & !(PICK | KICKS | TIMER) != 0 || (flags & PICK != 0 && !picks) {
            return Err(self.bits_at(start, "the flags of an answer", flags));
        }
        let mut pick = None;
        if flags & PICK != 0 {
            let task = self.task()?;
            pick = Some(Pick { task, slice: Span(self.varint()?.wrapping_sub(1)) });
        }
        let mut kicks = CpuMask::EMPTY;
        if flags & KICKS != 0 {
            self.kicks(&mut kicks)?;
        }
        let mut timer = None;
        if flags & TIMER != 0 {
            let start = self.at;
            timer = Some(match self.byte()? {
                0 => None,
                1 => Some(self.time(now)?),
                byte => return Err(self.bits_at(start, "whether there is a timer", byte)),
            });
        }
        Ok((pick, kicks, timer))
    }

    fn kicks(&mut self, kicks: &mut CpuMask) -> Read<()> {
        let mut last = None;
        for _ in 0..self.within("the number of kicks", 1, MAX_CPUS as u64)? {
            let start = self.at;
            let most = MAX_CPUS as u64 - 1;
            let step = self.within("CPU", 0, most)?;
            if last.is_some() && step == 0 {
                return Err(Decoder::error(start, Problem::KicksOrder));
            }
            let value = last.unwrap_or(0) + step;
            if value > most {
                let problem = Problem::Value { what: "CPU", value, least: 0, most };
                return Err(Decoder::error(start, problem));
            }
            kicks.insert(CpuId(value as u16));
            last = Some(value);
        }
        Ok(())
    }
}

impl fmt::Display for Record {
    /// A line such as `17 at 1.5ms: pick_next CPU 0 -> task 3 for 50ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {} -> ", self.number, Span(self.now.0), self.call)?;
        match &self.answer {
            Some(answer) => answer.show(f, &self.call),
            None => f.write_str("no answer"),
        }
    }
}

impl Answer {
    /// The answer to `call` in words.
    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>, call: &Call<'_>) -> fmt::Result {
        match (call, self.pick) {
            (Call::PickNext { .. }, Some(Pick { task, slice: Span::MAX })) => {
                write!(f, "task {} without limit, ", task.0)?;
            }
            (Call::PickNext { .. }, Some(Pick { task, slice })) => {
                write!(f, "task {} for {slice}, ", task.0)?;
            }
            (Call::PickNext { .. }, None) => f.write_str("nothing to run, ")?,
            _ => {}
        }
        match self.kicks.is_empty() {
            true => f.write_str("no kick")?,
            false => write!(f, "kicks {}", CpuSet::of(self.kicks.iter()))?,
        }
        match self.next_timer {
            Some(due) => write!(f, ", timer at {}", Span(due.0)),
            None => Ok(()),
        }
    }
}
