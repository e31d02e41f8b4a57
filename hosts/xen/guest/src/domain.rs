//! Building a domain: a copy of this image, with page tables and a command line of its own.

use core::slice;

use alloc::vec;
use alloc::vec::Vec;

use crate::StartInfo;
use crate::hypercall::{Answer, Call, Errno, at, hypercall};
use crate::report::{self, REPORT};

unsafe extern "C" {
    static _image: u8;
    static _edata: u8;
    static _end: u8;
    static mut window: [u8; PAGE];
}

const PAGE: usize = 4096;

/// The versions of the interface that structures here are of: Xen 4.20's.
const DOMCTL_VERSION: u32 = 0x17;
const SYSCTL_VERSION: u32 = 0x15;

/// Operations (public/domctl.h).
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
enum Domctl {
    Create = 1,
    Destroy = 2,
    Unpause = 4,
    Info = 5,
    Affinity = 9,
    MaxMemory = 11,
    Context = 12,
    MaxVcpus = 15,
    Scheduler = 16,
}

#[repr(C)]
struct DomctlCall<T> {
    operation: u32,
    version: u32,
    domain: u16,
    pad: [u16; 3],
    body: T,
    /// The union is as large as its largest member; Xen copies all of it.
    room: [u64; 32],
}

/// Makes a call about a domain; the body is changed to the answer.
fn domctl<T: Copy>(operation: Domctl, domain: u16, body: T) -> Result<(u16, T), Errno> {
    let mut call = DomctlCall {
        operation: operation as u32,
        version: DOMCTL_VERSION,
        domain,
        pad: [0; 3],
        body,
        room: [0; 32],
    };
    // SAFETY: the structure is the operation's.
    unsafe { hypercall(Call::Domctl, [at(&mut call), 0, 0, 0]) }?;
    Ok((call.domain, call.body))
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Create {
    security: u32,
    handle: [u8; 16],
    flags: u32,
    iommu: u32,
    vcpus: u32,
    ports: u32,
    grant_frames: i32,
    maptrack_frames: i32,
    grant_version: u32,
    altp2m: u32,
    trace_size: u32,
    pool: u32,
    emulation: u32,
    misc: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Info {
    domain: u16,
    pad: u16,
    flags: u32,
    pages: [u64; 5],
    shared_info: u64,
    cpu_time: u64,
    rest: [u64; 8],
}

/// Frames by what is mapped there: the image, then what it starts with.
struct Layout {
    image: usize,
    tables: usize,
}

impl Layout {
    fn new() -> Layout {
        let image = (end() - image()).div_ceil(PAGE);
        // The page of the start info is behind the image.
        let first = image_page() / ENTRIES;
        let last = (image_page() + image) / ENTRIES;
        Layout { image, tables: last - first + 1 }
    }

    fn start_info(&self) -> usize {
        self.image
    }

    /// The tables that map pages, then those above them.
    fn table(&self, number: usize) -> usize {
        self.image + 1 + number
    }

    fn frames(&self) -> usize {
        self.table(self.tables + 3)
    }
}

/// Entries of a page table.
const ENTRIES: usize = 512;

fn image() -> usize {
    &raw const _image as usize
}

fn image_page() -> usize {
    image() / PAGE
}

fn end() -> usize {
    &raw const _end as usize
}

/// A domain that this has built.
#[derive(Debug)]
pub struct Domain {
    /// Xen's number of it.
    pub number: u16,
    frames: Vec<u64>,
}

/// What schedulers are told of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Of 256.
    pub weight: Option<u16>,
    /// In percent of a pCPU.
    pub cap: Option<u16>,
    /// Microseconds: a period, and how much of it.
    pub period: Option<(u32, u32)>,
    /// pCPUs, a bit each.
    pub affinity: Option<u64>,
    /// The cpupool.
    pub pool: u32,
}

/// What failed, and how.
#[derive(Clone, Copy, Debug)]
pub struct Failed(pub &'static str, pub Errno);

trait Naming<T> {
    fn of(self, what: &'static str) -> Result<T, Failed>;
}

impl<T> Naming<T> for Result<T, Errno> {
    fn of(self, what: &'static str) -> Result<T, Failed> {
        self.map_err(|errno| Failed(what, errno))
    }
}

impl Domain {
    /// Builds a domain that is paused. Its program is what `command_line` says.
    pub fn build(command_line: &str, share: &Share) -> Result<Domain, Failed> {
        let layout = Layout::new();
        let pages = layout.frames() as u64;
        let create = Create {
            handle: [1; 16],
            vcpus: 1,
            ports: 1023,
            grant_frames: 4,
            maptrack_frames: 4,
            grant_version: 1,
            pool: share.pool,
            ..Create::default()
        };
        let (number, _) = domctl(Domctl::Create, 0, create).of("create a domain")?;
        // In KiB, with a page to spare.
        domctl(Domctl::MaxMemory, number, (pages + 1) * 4).of("limit its memory")?;
        domctl(Domctl::MaxVcpus, number, 1_u32).of("give it a vCPU")?;
        let domain = Domain { number, frames: populate(number, layout.frames())? };
        domain.fill(&layout, command_line)?;
        domain.start_at(&layout)?;
        domain.set_affinity(share)?;
        domain.set_share(share)?;
        Ok(domain)
    }

    /// Copies the image and writes page tables.
    fn fill(&self, layout: &Layout, command_line: &str) -> Result<(), Failed> {
        let data = &raw const _edata as usize;
        for page in 0..layout.image {
            let from = image() + page * PAGE;
            let length = data.saturating_sub(from).min(PAGE);
            self.write(page, |to| {
                // SAFETY: it is this image, whose constant parts it copies; `_edata` ends those.
                let own = unsafe { slice::from_raw_parts(from as *const u8, length) };
                to[..length].copy_from_slice(own);
            })?;
        }
        let (_, info) = domctl(Domctl::Info, self.number, Info::default()).of("ask about it")?;
        self.write(layout.start_info(), |to| {
            // SAFETY: a page holds it, and all its bytes may be anything.
            let start = unsafe { &mut *to.as_mut_ptr().cast::<StartInfo>() };
            start.magic[..14].copy_from_slice(b"xen-3.0-x86_64");
            start.pages = layout.frames() as u64;
            start.shared_info = info.shared_info << 12;
            let text = command_line.as_bytes();
            let length = text.len().min(start.command_line.len() - 1);
            start.command_line[..length].copy_from_slice(&text[..length]);
        })?;
        self.write_tables(layout)
    }

    fn write_tables(&self, layout: &Layout) -> Result<(), Failed> {
        const TABLE: u64 = 0x67;
        let entry = |frame: usize| self.frames[frame] << 12 | TABLE;
        let first = image_page() / ENTRIES;
        for table in 0..layout.tables {
            self.write(layout.table(table), |to| {
                for (slot, bytes) in to.chunks_exact_mut(8).enumerate() {
                    let page = (first + table) * ENTRIES + slot;
                    let mapped =
                        page.checked_sub(image_page()).filter(|page| *page <= layout.image);
                    if let Some(page) = mapped {
                        bytes.copy_from_slice(&entry(page).to_le_bytes());
                    }
                }
            })?;
        }
        let [second, third, fourth] = [0, 1, 2].map(|level| layout.table(layout.tables + level));
        self.write(second, |to| {
            for table in 0..layout.tables {
                let at = (first + table) * 8;
                to[at..at + 8].copy_from_slice(&entry(layout.table(table)).to_le_bytes());
            }
        })?;
        self.write(third, |to| to[..8].copy_from_slice(&entry(second).to_le_bytes()))?;
        self.write(fourth, |to| to[..8].copy_from_slice(&entry(third).to_le_bytes()))?;
        unmap()?;
        pin(self.number, self.frames[fourth]).of("check its page tables")
    }

    /// Writes a page of the domain, zero before.
    fn write(&self, frame: usize, write: impl FnOnce(&mut [u8])) -> Result<(), Failed> {
        let page = map(self.number, self.frames[frame])?;
        page.fill(0);
        write(page);
        Ok(())
    }

    /// Sets the registers that its vCPU starts with.
    fn start_at(&self, layout: &Layout) -> Result<(), Failed> {
        let mut context = vec![0_u64; CONTEXT / 8];
        let start_info = (image() + layout.start_info() * PAGE) as u64;
        // SAFETY: the linker has put it there.
        let entry = image() as u64;
        let fourth = self.frames[layout.table(layout.tables + 2)];
        for (at, number) in [
            (512, IN_KERNEL | ONLINE),
            (USER_REGISTERS + 13 * 8, start_info),
            (USER_REGISTERS + 16 * 8, entry),
            (USER_REGISTERS + 17 * 8, KERNEL_CODE),
            (USER_REGISTERS + 18 * 8, 0x200),
            (USER_REGISTERS + 19 * 8, start_info),
            (USER_REGISTERS + 20 * 8, KERNEL_STACK),
            (KERNEL_SS, KERNEL_STACK),
            (CONTROL_3, fourth << 12),
        ] {
            context[at / 8] = number;
        }
        let body = (0_u32, context.as_mut_ptr() as u64);
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Context(u32, u64);
        domctl(Domctl::Context, self.number, Context(body.0, body.1))
            .of("set its registers")
            .map(drop)
    }

    fn set_affinity(&self, share: &Share) -> Result<(), Failed> {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Affinity {
            vcpu: u32,
            flags: u32,
            hard: u64,
            hard_bits: u32,
            soft: u64,
            soft_bits: u32,
        }
        const HARD: u32 = 1;
        let Some(mut mask) = share.affinity else { return Ok(()) };
        let affinity = Affinity {
            vcpu: 0,
            flags: HARD,
            hard: at(&mut mask),
            hard_bits: 64,
            soft: 0,
            soft_bits: 0,
        };
        domctl(Domctl::Affinity, self.number, affinity).of("bind its vCPU").map(drop)
    }

    /// Tells the scheduler of its pool, whichever that is.
    fn set_share(&self, share: &Share) -> Result<(), Failed> {
        const PUT: u32 = 0;
        const PUT_VCPU: u32 = 2;
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Domain {
            scheduler: u32,
            operation: u32,
            weight: u16,
            cap: u16,
            pad: u32,
            more: u64,
        }
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Vcpus {
            scheduler: u32,
            operation: u32,
            vcpus: u64,
            count: u32,
            pad: u32,
        }
        let scheduler = pool_scheduler(share.pool)?;
        if scheduler.has_weights() && (share.weight.is_some() || share.cap.is_some()) {
            let (weight, cap) = (share.weight.unwrap_or(256), share.cap.unwrap_or(0));
            let scheduler = scheduler.0;
            let domain = Domain { scheduler, operation: PUT, weight, cap, pad: 0, more: 0 };
            domctl(Domctl::Scheduler, self.number, domain).of("set its weight and cap")?;
        }
        if let Some((period, budget)) = share.period.filter(|_| scheduler.has_periods()) {
            // Period, budget, flags, vCPU.
            let mut vcpu = [period, budget, 0, 0];
            let vcpus = at(&mut vcpu);
            let scheduler = scheduler.0;
            let vcpus = Vcpus { scheduler, operation: PUT_VCPU, vcpus, count: 1, pad: 0 };
            domctl(Domctl::Scheduler, self.number, vcpus).of("set its period and budget")?;
        }
        Ok(())
    }

    /// Has it run.
    pub fn unpause(&self) -> Result<(), Failed> {
        domctl(Domctl::Unpause, self.number, 0_u64).of("unpause it").map(drop)
    }

    /// Why it has shut down, if it has, and how much CPU time in nanoseconds it has used.
    pub fn state(&self) -> Result<(Option<u32>, u64), Failed> {
        const SHUTDOWN: u32 = 4;
        let (_, info) = domctl(Domctl::Info, self.number, Info::default()).of("ask about it")?;
        let why = info.flags >> 16 & 0xff;
        Ok(((info.flags & SHUTDOWN != 0).then_some(why), info.cpu_time))
    }

    /// What it has reported. Errors: what is wrong with it.
    pub fn report(&self) -> Result<alloc::string::String, alloc::string::String> {
        let first = (&raw const REPORT as usize - image()) / PAGE;
        let mut memory = Vec::new();
        let mut wanted = report::HEADER;
        let mut page = first;
        while memory.len() < wanted {
            let failed = |failed: Failed| alloc::format!("it cannot be read: {failed:?}");
            let seen = map(self.number, self.frames[page]).map_err(failed)?;
            memory.extend_from_slice(seen);
            if page == first {
                let length = u64::from_le_bytes(memory[..8].try_into().unwrap_or_default());
                wanted += (length as usize).min(report::ROOM);
            }
            page += 1;
        }
        let _ = unmap();
        report::read(&memory)
    }

    /// Destroys it.
    pub fn destroy(self) -> Result<(), Failed> {
        loop {
            match domctl(Domctl::Destroy, self.number, 0_u64) {
                Err(Errno::RESTART) => {}
                result => return result.of("destroy it").map(drop),
            }
        }
    }
}

/// Parts of `struct vcpu_guest_context` (public/arch-x86/xen.h), in bytes.
const CONTEXT: usize = 512 + 8 + 200 + 256 * 16 + 16 + 136 + 16 + 64 + 64 + 24 + 8 + 24;
const USER_REGISTERS: usize = 520;
const KERNEL_SS: usize = 520 + 200 + 256 * 16 + 16 + 136;
const CONTROL_3: usize = KERNEL_SS + 16 + 24;
const IN_KERNEL: u64 = 1 << 2;
const ONLINE: u64 = 1 << 5;
const KERNEL_CODE: u64 = 0xe033;
const KERNEL_STACK: u64 = 0xe02b;

/// Gives a domain memory. Returns the machine's frames.
fn populate(domain: u16, count: usize) -> Result<Vec<u64>, Failed> {
    #[repr(C)]
    struct Reservation {
        frames: u64,
        count: u64,
        order: u32,
        flags: u32,
        domain: u16,
    }
    const POPULATE: u64 = 6;
    let mut frames: Vec<u64> = (0..count as u64).collect();
    let address = frames.as_mut_ptr() as u64;
    let mut asked =
        Reservation { frames: address, count: count as u64, order: 0, flags: 0, domain };
    // SAFETY: it takes this structure, and frames of this number.
    let got = unsafe { hypercall(Call::Memory, [POPULATE, at(&mut asked), 0, 0]) };
    match got.of("give it memory")? {
        got if got == count as u64 => Ok(frames),
        _ => Err(Failed("give it memory: there is too little", Errno(12))),
    }
}

const INVALIDATE: u64 = 2;

/// Maps a frame of a domain into the window.
fn map(domain: u16, frame: u64) -> Result<&'static mut [u8], Failed> {
    const MAPPED: u64 = 0x63;
    let page = &raw mut window as u64;
    let arguments = [page, frame << 12 | MAPPED, INVALIDATE, domain.into()];
    // SAFETY: the window is for this; nobody keeps what it showed before.
    unsafe { hypercall(Call::UpdateVaMappingOtherDomain, arguments) }.of("map its memory")?;
    // SAFETY: it is mapped, and nobody else is here.
    Ok(unsafe { &mut *(&raw mut window) })
}

/// Lets go of what the window shows.
fn unmap() -> Result<(), Failed> {
    let page = &raw mut window as u64;
    // SAFETY: as in `map`.
    let answer = unsafe { hypercall(Call::UpdateVaMapping, [page, 0, INVALIDATE, 0]) };
    answer.of("unmap its memory").map(drop)
}

/// Has Xen check a page table of the fourth level and all below it.
fn pin(domain: u16, frame: u64) -> Result<(), Errno> {
    #[repr(C)]
    struct Operation {
        command: u32,
        frame: u64,
        argument: u64,
    }
    const PIN: u32 = 3;
    let mut operation = Operation { command: PIN, frame, argument: 0 };
    // SAFETY: it takes one such structure.
    unsafe { hypercall(Call::MmuExtended, [at(&mut operation), 1, 0, domain.into()]) }.map(drop)
}

#[repr(C)]
struct SysctlCall<T> {
    operation: u32,
    version: u32,
    body: T,
    room: [u64; 32],
}

/// Makes a call about the machine; the body is changed to the answer.
fn sysctl<T: Copy>(operation: u32, body: T) -> Result<T, Errno> {
    let mut call = SysctlCall { operation, version: SYSCTL_VERSION, body, room: [0; 32] };
    // SAFETY: the structure is the operation's.
    unsafe { hypercall(Call::Sysctl, [at(&mut call), 0, 0, 0]) }?;
    Ok(call.body)
}

/// A scheduler, by Xen's number (public/domctl.h); 4 is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduler(u32);

impl Scheduler {
    fn has_weights(self) -> bool {
        matches!(self.0, 4..=6)
    }

    fn has_periods(self) -> bool {
        matches!(self.0, 4 | 8)
    }
}

/// The scheduler of a cpupool.
fn pool_scheduler(pool: u32) -> Result<Scheduler, Failed> {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Pool {
        operation: u32,
        pool: u32,
        scheduler: u32,
        domain: u32,
        cpu: u32,
        domains: u32,
        map: u64,
        bits: u32,
        pad: u32,
    }
    const POOL: u32 = 18;
    const INFO: u32 = 3;
    let mut map = [0_u64; 4];
    let asked = Pool {
        operation: INFO,
        pool,
        scheduler: 0,
        domain: 0,
        cpu: 0,
        domains: 0,
        map: at(&mut map),
        bits: 256,
        pad: 0,
    };
    sysctl(POOL, asked).of("ask about a cpupool").map(|pool| Scheduler(pool.scheduler))
}

/// Sends keys to Xen's console, as by hand.
pub fn press(keys: &str) -> Answer {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Keys {
        keys: u64,
        count: u32,
    }
    const KEYS: u32 = 7;
    let count = keys.len() as u32;
    sysctl(KEYS, Keys { keys: keys.as_ptr() as u64, count }).map(|_| 0)
}
