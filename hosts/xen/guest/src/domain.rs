//! Building a domain: a copy of this image, with page tables and a command line of its own.

use core::slice;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::control::{Domctl, Failed, Interface, Naming, domctl};
use crate::hypercall::{Call, Errno, at, hypercall};
use crate::mailbox::Mailbox;
use crate::pools::Pool;
use crate::share::Share;
use crate::{Given, StartInfo, mailbox, report, smp};

unsafe extern "C" {
    static _image: u8;
    static _edata: u8;
    static _end: u8;
    static mut window: [u8; PAGE];
    fn _start_other();
}

/// Bytes of a page.
pub const PAGE: usize = 4096;

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

/// What a domain is given besides a copy of this image.
#[derive(Clone, Debug)]
pub struct Needs<'a> {
    /// What it reads as its command line.
    pub command_line: &'a str,
    /// What it reads besides.
    pub module: &'a [u8],
    /// How many vCPUs it has; 1 to [`smp::MOST`].
    pub vcpus: u32,
    /// Bytes of its heap.
    pub heap: usize,
    /// Bytes that it may report.
    pub report: usize,
}

/// Frames by what is mapped there, in this order: the image, the page that it starts with, and what
/// it is given. Page tables follow.
#[derive(Clone, Copy)]
struct Layout {
    image: usize,
    module: usize,
    stacks: usize,
    report: usize,
    mailbox: usize,
    heap: usize,
    tables: usize,
}

impl Layout {
    fn new(needs: &Needs<'_>) -> Layout {
        let pages = |bytes: usize| bytes.div_ceil(PAGE);
        let mut layout = Layout {
            image: pages(end() - image()),
            module: pages(needs.module.len()),
            stacks: pages((needs.vcpus as usize - 1) * smp::STACK),
            report: pages(needs.report + report::HEADER),
            mailbox: 1,
            heap: pages(needs.heap),
            tables: 0,
        };
        let first = image_page() / ENTRIES;
        let last = (image_page() + layout.mapped() - 1) / ENTRIES;
        layout.tables = last - first + 1;
        layout
    }

    fn start_info(&self) -> usize {
        self.image
    }

    fn module(&self) -> usize {
        self.start_info() + 1
    }

    fn stacks(&self) -> usize {
        self.module() + self.module
    }

    fn report(&self) -> usize {
        self.stacks() + self.stacks
    }

    fn mailbox(&self) -> usize {
        self.report() + self.report
    }

    fn heap(&self) -> usize {
        self.mailbox() + self.mailbox
    }

    /// How many pages the domain sees.
    fn mapped(&self) -> usize {
        self.heap() + self.heap
    }

    /// The tables that map pages, then those above them.
    fn table(&self, number: usize) -> usize {
        self.mapped() + number
    }

    fn frames(&self) -> usize {
        self.table(self.tables + 3)
    }
}

/// Where a domain sees a frame.
fn address(frame: usize) -> u64 {
    (image() + frame * PAGE) as u64
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
    vcpus: u32,
    start_info: u64,
    /// The frames of its report, and that of its mailbox.
    report: Vec<u64>,
    mailbox: u64,
}

/// A domain that is being built.
struct Building<'a> {
    number: u16,
    layout: Layout,
    needs: &'a Needs<'a>,
    frames: Vec<u64>,
}

impl Domain {
    /// Builds a domain that is paused, in a cpupool.
    pub fn build(needs: &Needs<'_>, pool: Pool) -> Result<Domain, Failed> {
        let layout = Layout::new(needs);
        let mut create = Create {
            handle: [1; 16],
            vcpus: needs.vcpus,
            ports: 1023,
            grant_frames: 4,
            maptrack_frames: 4,
            grant_version: 1,
            pool: pool.0,
            ..Create::default()
        };
        if Interface::here() == Interface::Of417 {
            // What follows comes a word earlier.
            (create.trace_size, create.pool) = (create.pool, 0);
        }
        let (number, _) = domctl(Domctl::Create, 0, create).of("create a domain")?;
        // In KiB, with a page to spare.
        let memory = (layout.frames() as u64 + 1) * 4;
        domctl(Domctl::MaxMemory, number, memory).of("limit its memory")?;
        domctl(Domctl::MaxVcpus, number, needs.vcpus).of("give it vCPUs")?;
        let frames = populate(number, layout.frames())?;
        let building = Building { number, layout, needs, frames };
        building.fill()?;
        (0..needs.vcpus as usize).try_for_each(|vcpu| building.start_at(vcpu))?;
        let report = building.frames[layout.report()..layout.mailbox()].to_vec();
        let [start_info, mailbox] =
            [layout.start_info(), layout.mailbox()].map(|frame| building.frames[frame]);
        Ok(Domain { number, vcpus: needs.vcpus, start_info, report, mailbox })
    }

    /// Has it run.
    pub fn unpause(&self) -> Result<(), Failed> {
        domctl(Domctl::Unpause, self.number, 0_u64).of("unpause it").map(drop)
    }

    /// Has it not run, whatever it does, until it is unpaused as often.
    pub fn pause(&self) -> Result<(), Failed> {
        domctl(Domctl::Pause, self.number, 0_u64).of("pause it").map(drop)
    }

    /// Has it go on from where it has suspended itself.
    pub fn resume(&self) -> Result<(), Failed> {
        domctl(Domctl::Resume, self.number, 0_u64).of("resume it").map(drop)
    }

    /// Tells it when the run starts. It stands still meanwhile.
    pub fn set_epoch(&self, epoch: u64) -> Result<(), Failed> {
        let page = map(self.number, self.start_info)?;
        // SAFETY: it is that page.
        unsafe { (*page.as_mut_ptr().cast::<StartInfo>()).given.epoch = epoch };
        unmap()
    }

    /// The page by which it passes messages, mapped for good.
    pub fn mailbox(&self) -> Result<&'static Mailbox, Failed> {
        let place = Place::of(self.number, self.mailbox)?;
        // SAFETY: it is mapped there now, and was zero when the domain was built.
        Ok(unsafe { mailbox::at(place) })
    }

    /// Tells its scheduler what it is to get.
    pub fn tell(&self, share: &Share) -> Result<(), Failed> {
        share.tell(self.number, self.vcpus)
    }

    /// Why it has shut down, if it has.
    pub fn shut_down(&self) -> Result<Option<u32>, Failed> {
        const SHUTDOWN: u32 = 4;
        let (_, info) = domctl(Domctl::Info, self.number, Info::default()).of("ask about it")?;
        let why = info.flags >> 16 & 0xff;
        Ok((info.flags & SHUTDOWN != 0).then_some(why))
    }

    /// Passes on each line that it has reported. Errors: what is wrong with it, or of `line`.
    pub fn report(&self, line: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
        let mut reader = report::Reader::default();
        for frame in &self.report {
            let failed = |failed: Failed| alloc::format!("it cannot be read: {failed:?}");
            let page = map(self.number, *frame).map_err(failed)?;
            if reader.read(page, line)? {
                break;
            }
        }
        let _ = unmap();
        reader.end()
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

impl Building<'_> {
    /// Copies the image and what the domain is given, and writes page tables.
    fn fill(&self) -> Result<(), Failed> {
        let Layout { image: pages, module, report, .. } = self.layout;
        let data = &raw const _edata as usize;
        for page in 0..pages {
            let from = image() + page * PAGE;
            let length = data.saturating_sub(from).min(PAGE);
            self.write(page, |to| {
                // SAFETY: it is this image, whose constant parts it copies; `_edata` ends those.
                let own = unsafe { slice::from_raw_parts(from as *const u8, length) };
                to[..length].copy_from_slice(own);
            })?;
        }
        for (page, part) in self.needs.module.chunks(PAGE).enumerate() {
            debug_assert!(page < module);
            let to = self.layout.module() + page;
            self.write(to, |to| to[..part.len()].copy_from_slice(part))?;
        }
        // Its header says that it is empty.
        (0..report.min(1)).try_for_each(|page| self.write(self.layout.report() + page, |_| ()))?;
        self.write(self.layout.mailbox(), |_| ())?;
        self.write_start_info()?;
        self.write_tables()
    }

    fn write_start_info(&self) -> Result<(), Failed> {
        let Building { number, layout, needs, .. } = self;
        let (_, info) = domctl(Domctl::Info, *number, Info::default()).of("ask about it")?;
        self.write(layout.start_info(), |to| {
            // SAFETY: a page holds it, and all its bytes may be anything.
            let start = unsafe { &mut *to.as_mut_ptr().cast::<StartInfo>() };
            start.magic[..14].copy_from_slice(b"xen-3.0-x86_64");
            start.pages = layout.frames() as u64;
            start.shared_info = info.shared_info << 12;
            (start.module, start.module_length) =
                (address(layout.module()), needs.module.len() as u64);
            let text = needs.command_line.as_bytes();
            let length = text.len().min(start.command_line.len() - 1);
            start.command_line[..length].copy_from_slice(&text[..length]);
            start.given = Given {
                vcpus: needs.vcpus.into(),
                stacks: address(layout.stacks()),
                report: address(layout.report()),
                report_room: needs.report as u64,
                mailbox: address(layout.mailbox()),
                heap: address(layout.heap()),
                heap_length: (layout.heap * PAGE) as u64,
                epoch: 0,
            };
        })
    }

    fn write_tables(&self) -> Result<(), Failed> {
        const TABLE: u64 = 0x67;
        let layout = &self.layout;
        let entry = |frame: usize| self.frames[frame] << 12 | TABLE;
        let first = image_page() / ENTRIES;
        for table in 0..layout.tables {
            self.write(layout.table(table), |to| {
                for (slot, bytes) in to.chunks_exact_mut(8).enumerate() {
                    let page = (first + table) * ENTRIES + slot;
                    let frame = page.checked_sub(image_page());
                    if let Some(frame) = frame.filter(|frame| *frame < layout.mapped()) {
                        bytes.copy_from_slice(&entry(frame).to_le_bytes());
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

    /// Sets the registers that a vCPU starts with. The first is there at once, others as soon as
    /// the domain says so.
    fn start_at(&self, vcpu: usize) -> Result<(), Failed> {
        let layout = &self.layout;
        let mut context = vec![0_u64; CONTEXT / 8];
        let start_info = address(layout.start_info());
        let (online, entry, stack) = match vcpu {
            // The linker has put the entry there.
            0 => (ONLINE, address(0), start_info),
            _ => {
                let stack = address(layout.stacks()) + (vcpu * smp::STACK) as u64;
                (0, _start_other as *const () as u64, stack)
            }
        };
        let fourth = self.frames[layout.table(layout.tables + 2)];
        for (at, number) in [
            (512, IN_KERNEL | online),
            (USER_REGISTERS + 13 * 8, start_info),
            (USER_REGISTERS + 14 * 8, vcpu as u64),
            (USER_REGISTERS + 16 * 8, entry),
            (USER_REGISTERS + 17 * 8, KERNEL_CODE),
            (USER_REGISTERS + 18 * 8, 0x200),
            (USER_REGISTERS + 19 * 8, stack),
            (USER_REGISTERS + 20 * 8, KERNEL_STACK),
            (KERNEL_SS, KERNEL_STACK),
            (CONTROL_3, fourth << 12),
        ] {
            context[at / 8] = number;
        }
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Context(u32, u64);
        let body = Context(vcpu as u32, context.as_mut_ptr() as u64);
        domctl(Domctl::Context, self.number, body).of("set registers of a vCPU").map(drop)
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
    // Nobody keeps what it showed before.
    let place = &raw mut window;
    map_at(place as u64, domain, frame)?;
    // SAFETY: it is mapped, and nobody else is here.
    Ok(unsafe { &mut *place })
}

/// Shows a frame of a domain in the window, to be read before the next call of this module.
pub fn show(domain: u16, frame: u64) -> Result<&'static [u8], Failed> {
    let place = &raw mut window;
    map_with(place as u64, domain, frame, READ)?;
    // SAFETY: as in `map`.
    Ok(unsafe { &*place })
}

/// Memory of dom0 that is to show a page of another domain, for good.
#[repr(align(4096))]
pub struct Place([u8; PAGE]);

impl Place {
    /// Shows a frame of a domain, and returns the address.
    pub fn of(domain: u16, frame: u64) -> Result<u64, Failed> {
        let place = Box::leak(Box::new(Place([0; PAGE]))).0.as_ptr() as u64;
        map_at(place, domain, frame).map(|()| place)
    }
}

/// Of an entry of a page table: how a page is mapped.
const READ: u64 = 0x61;
const READ_AND_WRITE: u64 = 0x63;

/// Maps a frame of a domain at an address, which is that of a page for it.
fn map_at(address: u64, domain: u16, frame: u64) -> Result<(), Failed> {
    map_with(address, domain, frame, READ_AND_WRITE)
}

fn map_with(address: u64, domain: u16, frame: u64, how: u64) -> Result<(), Failed> {
    let arguments = [address, frame << 12 | how, INVALIDATE, domain.into()];
    // SAFETY: the page is for this.
    let answer = unsafe { hypercall(Call::UpdateVaMappingOtherDomain, arguments) };
    answer.of("map its memory").map(drop)
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
