//! What Xen has recorded of vCPUs, read out of its trace buffers and sent to this computer.
//!
//! Each pCPU has a buffer, which Xen makes at boot as its command line says and dom0 maps (Xen,
//! public/trace.h, of versions 4.17 and 4.20). dom0 takes what is in them when the run is over, and
//! before that only when one is half full: Xen calls it then.

use core::arch::asm;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use anysched_wire::log;
use anysched_wire::vcpus::{Event, PORT, Record, Runstate, Vcpu, Writer};

use crate::control::{Failed, Naming, sysctl};
use crate::domain::{PAGE, Place, show};
use crate::events::Port;
use crate::hypercall::{Call, at, hypercall};
use crate::shared;

/// Whose memory the buffers are, in calls.
const XEN: u16 = 0x7ff2;

/// Bytes that are sent at once.
const DUE: usize = 64 << 10;

/// The longest record, one of lost records, and what fills a buffer up to its end, in bytes: a
/// buffer with less room has perhaps lost some.
const LEAST_ROOM: u32 = 40 + 28 + 40;

/// What Xen records, if it is to.
pub struct Records(Option<Buffers>);

struct Buffers {
    /// Bytes of each.
    size: u32,
    pcpus: Vec<Pcpu>,
    /// It is pending when one is half full.
    port: Port,
}

/// The buffer of a pCPU.
struct Pcpu {
    number: u8,
    header: &'static Header,
    /// Of all pages, the first with the header.
    frames: Vec<u64>,
    /// What has been read and not sent.
    read: Writer,
    /// It was found full, and has not said since how much is lost.
    was_full: bool,
}

/// What a buffer begins with; both are positions modulo twice its size.
#[repr(C)]
struct Header {
    consumed: AtomicU32,
    produced: AtomicU32,
}

impl Records {
    /// What Xen has recorded so far, and goes on to, if that is `wanted`.
    ///
    /// Errors: it does not record, or dom0 cannot read it.
    pub fn of(wanted: bool) -> Result<Records, String> {
        let failed = |Failed(what, errno)| {
            format!("Xen's trace buffers: it refused to {what}: error {}", errno.0)
        };
        let mut buffers = if wanted { Some(Buffers::find().map_err(failed)?) } else { None };
        buffers.iter_mut().for_each(Buffers::say_time);
        Ok(Records(buffers))
    }

    /// Whether Xen records. A pCPU that goes out of use and comes back does so no more, since Xen
    /// gives it no buffer (common/trace.c).
    pub fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// The port by which Xen calls dom0 when there is something to read.
    pub fn port(&self) -> Option<u32> {
        self.0.as_ref().map(|buffers| buffers.port.0)
    }

    /// A domain that is in the records has this name.
    pub fn name(&mut self, domain: u16, name: &str) {
        if let Some(Buffers { pcpus, .. }) = &mut self.0 {
            let event = Event::Name { domain, name: name.into() };
            // It is of no time: its ticks are those of the record before.
            pcpus[0].read.add(&Record { ticks: 0, event });
        }
    }

    /// Reads what there is, if Xen has called.
    ///
    /// Errors: a buffer cannot be read.
    pub fn look(&mut self) -> Result<(), String> {
        match &mut self.0 {
            Some(buffers) if buffers.port.take() => buffers.read_all(),
            _ => Ok(()),
        }
    }

    /// Reads and sends all that there is.
    ///
    /// Errors: a buffer cannot be read.
    pub fn finish(&mut self) -> Result<(), String> {
        let Some(buffers) = &mut self.0 else { return Ok(()) };
        buffers.read_all()?;
        for pcpu in &mut buffers.pcpus {
            if pcpu.was_full {
                let event = Event::Lost(0);
                pcpu.read.add(&Record { ticks: 0, event });
            }
            pcpu.send();
        }
        Ok(())
    }
}

impl Buffers {
    fn find() -> Result<Buffers, Failed> {
        allow_ports()?;
        let Information { frame, size, .. } = information()?;
        if frame == 0 {
            return Err(Failed("tell where they are", crate::hypercall::Errno(0)));
        }
        let mut words: Vec<u32> = Vec::new();
        for page in 0..u64::from(size).div_ceil(PAGE as u64) {
            let page = show(XEN, frame + page)?;
            let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            words.extend(page.chunks_exact(4).map(word));
        }
        // The pages of each buffer, and then where the list of those of each pCPU begins.
        let half = |number: usize| words[number / 2] >> (number % 2 * 16) & 0xffff;
        let pages = half(0) as usize;
        let list = half(1) as usize;
        let mut pcpus = Vec::new();
        for number in 0..(2 * list).saturating_sub(1).min(log::MOST_CPUS) {
            let from = half(1 + number) as usize;
            if from == 0 {
                continue;
            }
            let frames: Vec<u64> =
                words[from..][..pages].iter().map(|word| (*word).into()).collect();
            let header = Place::of(XEN, frames[0])?;
            // SAFETY: the page is mapped there for good, and begins with this, which is atomic.
            let header = unsafe { &*(header as *const Header) };
            let (number, read) = (number as u8, Writer::default());
            pcpus.push(Pcpu { number, header, frames, read, was_full: false });
        }
        let port = Port::of_records().of("say when they are half full")?;
        let size = (pages * PAGE - size_of::<Header>()) as u32;
        Ok(Buffers { size, pcpus, port })
    }

    /// Buffers have no time of Xen's but that of our scheduler.
    fn say_time(&mut self) {
        let (ticks, now) = shared::clock();
        for pcpu in &mut self.pcpus {
            pcpu.read.add(&Record { ticks: 0, event: Event::Clock { ticks, now } });
        }
    }

    fn read_all(&mut self) -> Result<(), String> {
        self.say_time();
        for pcpu in &mut self.pcpus {
            let number = pcpu.number;
            let failed =
                |Failed(_, errno)| format!("the trace buffer of pCPU {number}: error {}", errno.0);
            pcpu.read_all(self.size).map_err(failed)?;
        }
        Ok(())
    }
}

impl Pcpu {
    fn read_all(&mut self, size: u32) -> Result<(), Failed> {
        let produced = self.header.produced.load(Acquire);
        let mut at = self.header.consumed.load(Relaxed);
        let used = (produced + 2 * size - at) % (2 * size);
        self.was_full |= size - used < LEAST_ROOM;
        // The page that the window shows.
        let mut shown: Option<(usize, &[u8])> = None;
        while at != produced {
            let mut word = |number: u32| {
                let at = ((at + 4 * number) % size) as usize + size_of::<Header>();
                let page = match shown {
                    Some((page, bytes)) if page == at / PAGE => bytes,
                    _ => {
                        let bytes = show(XEN, self.frames[at / PAGE])?;
                        shown = Some((at / PAGE, bytes));
                        bytes
                    }
                };
                let bytes = &page[at % PAGE..];
                Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            };
            let head = word(0)?;
            let (extra, has_ticks) = (head >> 28 & 7, head >> 31);
            let first = 1 + 2 * has_ticks;
            let mut ticks = 0;
            if has_ticks != 0 {
                ticks = u64::from(word(1)?) | u64::from(word(2)?) << 32;
            }
            let mut numbers = [0; 7];
            for (number, place) in numbers.iter_mut().enumerate().take(extra as usize) {
                *place = word(first + number as u32)?;
            }
            at = (at + 4 * (first + extra)) % (2 * size);
            if let Some(event) = event(head & 0x0fff_ffff, ticks, &numbers) {
                self.was_full &= !matches!(event, Event::Lost(_));
                self.read.add(&Record { ticks, event });
                if self.read.length() >= DUE {
                    self.send();
                }
            }
        }
        self.header.consumed.store(at, Release);
        Ok(())
    }

    fn send(&mut self) {
        self.read.take(|bytes| log::send(self.number, bytes, send));
    }
}

/// What a record says, if it is of interest (Xen, public/trace.h, and of Credit
/// common/sched/credit.c; ours scheduler/anysched.c).
fn event(head: u32, ticks: u64, numbers: &[u32; 7]) -> Option<Event> {
    const LOST: u32 = 0x1f001;
    const RUNSTATE: u32 = 0x21001;
    const RUNSTATES: u32 = 0x330;
    const CONTINUE: u32 = 0x21002;
    const YIELD: u32 = 0x28005;
    const CREDIT_BOOSTS: u32 = 0x22007;
    const CREDIT_BOOSTS_NO_MORE: u32 = 0x22008;
    const ATTACH: u32 = 0x22c01;
    const CLOCK: u32 = 0x22c02;
    const ASKED: u32 = 0x22c03;
    let one = |word: u32| Vcpu { domain: (word >> 16) as u16, number: word as u16 };
    let time = || u64::from(numbers[0]) | u64::from(numbers[1]) << 32;
    let two = || Vcpu { domain: numbers[0] as u16, number: numbers[1] as u16 };
    Some(match head {
        LOST => Event::Lost(numbers[0].into()),
        _ if head & !RUNSTATES == RUNSTATE => Event::Runstate {
            vcpu: one(numbers[0]),
            from: Runstate::of(head >> 8),
            to: Runstate::of(head >> 4),
        },
        CONTINUE => Event::Continue(one(numbers[0])),
        YIELD => Event::Yield(two()),
        CREDIT_BOOSTS | CREDIT_BOOSTS_NO_MORE => {
            Event::Boost { vcpu: two(), on: head == CREDIT_BOOSTS }
        }
        ATTACH => Event::Attach { pool: numbers[2], task: numbers[0], vcpu: one(numbers[1]) },
        CLOCK => Event::Clock { ticks, now: time() },
        ASKED => Event::Asked { pool: numbers[2], now: time() },
        _ => return None,
    })
}

/// The answer to where the buffers are, and how large what says so is (public/sysctl.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Information {
    command: u32,
    pcpus: [u64; 2],
    mask: u32,
    frame: u64,
    size: u32,
}

fn information() -> Result<Information, Failed> {
    const TRACE_BUFFERS: u32 = 2;
    const GET: u32 = 0;
    let asked = Information { command: GET, ..Information::default() };
    sysctl(TRACE_BUFFERS, asked).of("tell where they are")
}

/// dom0 may use I/O ports that Xen leaves to it.
fn allow_ports() -> Result<(), Failed> {
    const SET_LEVEL: u64 = 6;
    let mut level = 1_u32;
    // SAFETY: it takes a level.
    let answer = unsafe { hypercall(Call::PhysicalDevices, [SET_LEVEL, at(&mut level), 0, 0]) };
    answer.of("let dom0 send them").map(drop)
}

/// Sends bytes to the debug console for these records. Xen does it, at one trap for many bytes.
fn send(bytes: &[u8]) {
    // SAFETY: the port belongs to isa-debugcon or to nobody; the bytes are read.
    unsafe {
        asm!(
            "rep outsb",
            in("dx") PORT,
            inout("rsi") bytes.as_ptr() => _,
            inout("rcx") bytes.len() => _,
            options(nostack, readonly),
        );
    }
}
