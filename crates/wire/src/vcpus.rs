//! What a hypervisor has recorded of its vCPUs, as dom0 passes it on: a stream for each pCPU.
//!
//! A stream begins with [`MAGIC`]. Each record is a byte that says what it is, then how many ticks
//! of the pCPU's counter of time after the record before it was made, then numbers:
//!
//! | byte | numbers | means |
//! |---|---|---|
//! | 0 | *ticks* *ns* | the hypervisor's time was *ns* when the counter was at *ticks* |
//! | 1 | *domain* *vcpu* *from* *to* | a vCPU's runstate is another one |
//! | 2 | *domain* *vcpu* | the pCPU goes on with what it ran |
//! | 3 | *domain* *vcpu* | a vCPU gives up the pCPU |
//! | 4 | *pool* *ns* | a policy was asked, at this time of its own, what the pCPU runs next |
//! | 5 | *pool* *task* *domain* *vcpu* | a vCPU has come to a policy, which calls it so |
//! | 6 | *domain* *vcpu* *on* | a vCPU's wake-up puts it before others, or does so no more |
//! | 7 | *domain* *length* | the name of a domain: so many bytes of UTF-8 follow |
//! | 8 | *records* | so many records found no room |
//!
//! Numbers are unsigned, seven bits a byte, the lowest first; the highest bit of a byte says that
//! another follows. Counters begin at 0, and those of all pCPUs are taken to be the same.

use crate::{At, WireError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What each stream begins with; the last character is the version.
pub const MAGIC: [u8; 4] = *b"vcp1";

/// The I/O port of QEMU's device `isa-debugcon` by which the streams leave, in
/// [chunks](crate::log); that of the policies' logs is another.
pub const PORT: u16 = 0xea;

/// The longest name of a domain, in bytes.
pub const LONGEST_NAME: usize = 1 << 10;

/// The domain of the vCPUs that pCPUs run while they have nothing to run.
pub const IDLE: u16 = 0x7fff;

const NAME: &str = "the hypervisor's records";

/// A virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vcpu {
    /// Its domain, by the hypervisor's number.
    pub domain: u16,
    /// Its number in the domain.
    pub number: u16,
}

/// What a vCPU is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runstate {
    /// It has a pCPU.
    Running,
    /// It could run.
    Runnable,
    /// It waits for an event.
    Blocked,
    /// It is paused, or not in use.
    Offline,
}

impl Runstate {
    /// By the hypervisor's number (Xen, public/vcpu.h); the lowest two bits count.
    pub fn of(number: u32) -> Runstate {
        match number & 3 {
            0 => Runstate::Running,
            1 => Runstate::Runnable,
            2 => Runstate::Blocked,
            _ => Runstate::Offline,
        }
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where the pCPU's counter of time was.
    pub ticks: u64,
    /// What happened.
    pub event: Event,
}

/// What happened on a pCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The hypervisor's time was `now`, in nanoseconds since boot, when the counter was at `ticks`.
    Clock {
        /// The counter.
        ticks: u64,
        /// The time.
        now: u64,
    },
    /// A vCPU's runstate is another one. Of one that runs, or ran, this is of its pCPU.
    Runstate {
        /// The vCPU.
        vcpu: Vcpu,
        /// What it did.
        from: Runstate,
        /// What it does.
        to: Runstate,
    },
    /// The pCPU goes on with what it ran.
    Continue(Vcpu),
    /// A vCPU gives up the pCPU.
    Yield(Vcpu),
    /// A policy was asked what the pCPU runs next.
    Asked {
        /// The number of the policy's instance.
        pool: u32,
        /// When, in nanoseconds since boot, as the policy was told.
        now: u64,
    },
    /// A vCPU has come to a policy.
    Attach {
        /// The number of the policy's instance.
        pool: u32,
        /// How the policy calls it.
        task: u32,
        /// The vCPU.
        vcpu: Vcpu,
    },
    /// A vCPU that woke is put before others, or is so no more.
    Boost {
        /// The vCPU.
        vcpu: Vcpu,
        /// Whether it is.
        on: bool,
    },
    /// The name of a domain.
    Name {
        /// The domain.
        domain: u16,
        /// Its name.
        name: String,
    },
    /// So many records found no room, and are missing here.
    Lost(u64),
}

/// Writes a stream.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    has_begun: bool,
    last: u64,
}

impl Writer {
    /// Adds a record, which was made after those before; a counter that has gone back is taken to
    /// stand still.
    pub fn add(&mut self, record: &Record) {
        if !core::mem::replace(&mut self.has_begun, true) {
            self.bytes.extend(MAGIC);
        }
        let vcpu = |vcpu: &Vcpu| [u64::from(vcpu.domain), u64::from(vcpu.number)];
        let later = record.ticks.saturating_sub(self.last);
        self.last += later;
        match &record.event {
            Event::Clock { ticks, now } => self.put(0, later, &[*ticks, *now]),
            Event::Runstate { vcpu: of, from, to } => {
                let [domain, number] = vcpu(of);
                self.put(1, later, &[domain, number, *from as u64, *to as u64]);
            }
            Event::Continue(of) => self.put(2, later, &vcpu(of)),
            Event::Yield(of) => self.put(3, later, &vcpu(of)),
            Event::Asked { pool, now } => self.put(4, later, &[u64::from(*pool), *now]),
            Event::Attach { pool, task, vcpu: of } => {
                let [domain, number] = vcpu(of);
                self.put(5, later, &[u64::from(*pool), u64::from(*task), domain, number]);
            }
            Event::Boost { vcpu: of, on } => {
                let [domain, number] = vcpu(of);
                self.put(6, later, &[domain, number, u64::from(*on)]);
            }
            Event::Name { domain, name } => {
                let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
                self.put(7, later, &[u64::from(*domain), name.len() as u64]);
                self.bytes.extend(name.as_bytes());
            }
            Event::Lost(records) => self.put(8, later, &[*records]),
        }
    }

    fn put(&mut self, kind: u8, later: u64, numbers: &[u64]) {
        self.bytes.push(kind);
        for number in core::iter::once(&later).chain(numbers) {
            let mut rest = *number;
            while rest >= 0x80 {
                self.bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            self.bytes.push(rest as u8);
        }
    }

    /// How many bytes there are that nobody has taken.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Hands over what there is so far, and goes on with an empty buffer of the same size.
    pub fn take(&mut self, sink: impl FnOnce(&[u8])) {
        sink(&self.bytes);
        self.bytes.clear();
    }
}

/// Reads a stream. Ends after an error.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    ticks: u64,
}

impl<'a> Reader<'a> {
    /// Reads what was written so; no bytes are a stream without records.
    ///
    /// Errors: it does not begin like a stream, or like one of another version.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, WireError> {
        let begin = bytes.get(..MAGIC.len()).unwrap_or(bytes);
        if !bytes.is_empty() && begin != MAGIC {
            let wanted = "vcp1 is wanted; build program and image from the same sources";
            let found = format!("{}", begin.escape_ascii());
            return Err(WireError::new(NAME, At::Byte(0), &found, wanted));
        }
        Ok(Reader { bytes, at: begin.len(), ticks: 0 })
    }

    fn error(&self, at: usize, value: &str, why: &str) -> WireError {
        WireError::new(NAME, At::Byte(at), value, why)
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        let byte = self.bytes.get(self.at).copied();
        let byte = byte.ok_or_else(|| self.error(self.at, "", "it is cut off"))?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, WireError> {
        let (begin, mut number) = (self.at, 0);
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.error(begin, "", "a number has more than 64 bits"))
    }

    fn within(&mut self, most: u64) -> Result<u64, WireError> {
        let begin = self.at;
        match self.number()? {
            number if number <= most => Ok(number),
            number => {
                Err(self.error(begin, &format!("{number}"), &format!("{most} is the most here")))
            }
        }
    }

    fn vcpu(&mut self) -> Result<Vcpu, WireError> {
        let most = u64::from(u16::MAX);
        Ok(Vcpu { domain: self.within(most)? as u16, number: self.within(most)? as u16 })
    }

    fn record(&mut self) -> Result<Record, WireError> {
        let (begin, most) = (self.at, u64::from(u32::MAX));
        let kind = self.byte()?;
        self.ticks = self.ticks.saturating_add(self.number()?);
        let event = match kind {
            0 => Event::Clock { ticks: self.number()?, now: self.number()? },
            1 => Event::Runstate {
                vcpu: self.vcpu()?,
                from: Runstate::of(self.within(3)? as u32),
                to: Runstate::of(self.within(3)? as u32),
            },
            2 => Event::Continue(self.vcpu()?),
            3 => Event::Yield(self.vcpu()?),
            4 => Event::Asked { pool: self.within(most)? as u32, now: self.number()? },
            5 => Event::Attach {
                pool: self.within(most)? as u32,
                task: self.within(most)? as u32,
                vcpu: self.vcpu()?,
            },
            6 => Event::Boost { vcpu: self.vcpu()?, on: self.within(1)? == 1 },
            7 => {
                let domain = self.within(u64::from(u16::MAX))? as u16;
                let length = self.within(LONGEST_NAME as u64)? as usize;
                let name = self.bytes.get(self.at..self.at + length);
                let name = name.ok_or_else(|| self.error(self.at, "", "it is cut off"))?;
                let text = core::str::from_utf8(name)
                    .map_err(|_| self.error(self.at, "", "a name is not UTF-8"))?;
                self.at += length;
                Event::Name { domain, name: text.into() }
            }
            8 => Event::Lost(self.number()?),
            _ => return Err(self.error(begin, &format!("{kind}"), "there is no such record")),
        };
        Ok(Record { ticks: self.ticks, event })
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Record, WireError>;

    fn next(&mut self) -> Option<Result<Record, WireError>> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.at = self.bytes.len();
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    const VCPU: Vcpu = Vcpu { domain: 300, number: 2 };

    fn records() -> Vec<Record> {
        let events = vec![
            Event::Clock { ticks: 1 << 40, now: u64::MAX },
            Event::Name { domain: 300, name: "übung 1".into() },
            Event::Attach { pool: 1, task: 7, vcpu: VCPU },
            Event::Runstate { vcpu: VCPU, from: Runstate::Blocked, to: Runstate::Runnable },
            Event::Boost { vcpu: VCPU, on: true },
            Event::Asked { pool: 1, now: 129 },
            Event::Runstate { vcpu: VCPU, from: Runstate::Runnable, to: Runstate::Running },
            Event::Yield(VCPU),
            Event::Continue(VCPU),
            Event::Runstate { vcpu: VCPU, from: Runstate::Running, to: Runstate::Offline },
            Event::Lost(5),
        ];
        let at = |(number, event)| Record { ticks: 1_000 + 64 * number as u64, event };
        events.into_iter().enumerate().map(at).collect()
    }

    fn written(records: &[Record]) -> Vec<u8> {
        let (mut writer, mut bytes) = (Writer::default(), Vec::new());
        for record in records {
            writer.add(record);
            writer.take(|part| bytes.extend_from_slice(part));
        }
        bytes
    }

    #[test]
    fn a_stream_by_hand() {
        let stream = written(&records()[3..7]);
        let boosted = b"\x06\x40\xac\x02\x02\x01";
        let asked = b"\x04\x40\x01\x81\x01";
        let runs = b"\x01\x40\xac\x02\x02\x01\x00";
        let runnable = b"vcp1\x01\xa8\x09\xac\x02\x02\x02\x01";
        assert_eq!(stream, [&runnable[..], boosted, asked, runs].concat());
    }

    #[test]
    fn what_is_written_is_read() {
        let read = |bytes: &[u8]| Reader::new(bytes)?.collect::<Result<Vec<_>, _>>();
        let bytes = written(&records());
        assert_eq!(read(&bytes).unwrap(), records());
        assert_eq!(read(&[]).unwrap(), []);
        // Wherever it is cut off, there are fewer records, or an error.
        let fewer = |length| read(&bytes[..length]).map_or(true, |read| read.len() < 11);
        assert!((1..bytes.len()).all(fewer));
    }

    #[test]
    fn a_counter_that_goes_back_stands_still() {
        let mut back = records();
        back[1].ticks = 3;
        let bytes = written(&back);
        let read: Vec<Record> = Reader::new(&bytes).unwrap().map(Result::unwrap).collect();
        assert_eq!(read[1].ticks, read[0].ticks);
        assert_eq!(read[2].ticks, back[2].ticks);
    }

    #[test]
    fn what_means_nothing_is_refused_with_its_place() {
        let refused = |bytes: &[u8]| {
            let read = Reader::new(bytes).and_then(|reader| reader.collect::<Result<Vec<_>, _>>());
            read.unwrap_err().to_string()
        };
        assert!(refused(b"vcp2").contains("byte 0: \"vcp2\": vcp1 is wanted"));
        assert!(refused(b"vcp1\x09\x00").contains("byte 4: \"9\": there is no such record"));
        assert!(refused(b"vcp1\x01\x00\x01\x00\x04\x00").contains("\"4\": 3 is the most"));
        let long = [&b"vcp1\x08\x00"[..], &[0xff; 10]].concat();
        assert!(refused(&long).contains("more than 64 bits"));
        assert!(refused(b"vcp1\x07\x00\x01\x01\xff").contains("not UTF-8"));
        assert!(refused(b"vcp1\x07\x00\x01\x81\x08").contains("1024 is the most"));
    }
}
