//! Recordings by trace-cmd, `trace.dat`, of versions 6 and 7 of the format
//! (`trace-cmd.dat.v6(5)`, `trace-cmd.dat.v7(5)`), compressed or not.
//!
//! The file has what the kernel's ring buffers had, a run of pages for each CPU. They are read page
//! by page and merged by time. Of several buffers, the first that has events of the scheduler is
//! used.

use super::ftrace::binary::{Endian, Formats};
use super::ftrace::{Recorder, Recording, Replaying, times};
use super::input::{unpacked, unzlib, unzstd};
use super::{ImportError, Imported, Importer, Input, ReadError, ReadTimes, Window, excerpt};
use crate::kinds::{FileName, keys};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, SeekFrom};
use std::ops::Range;

keys! {
    /// The keys of a load that is a recording by trace-cmd.
    pub struct TraceDat {
        ..replaying: Replaying;
        /// The recording.
        file: FileName = needed, eg "trace.dat";
    }
}

impl Importer for TraceDat {
    const FORMAT: &'static str = "trace-dat";
    const ENDINGS: &'static [&'static str] = &[".dat"];
    const TIMES: Option<ReadTimes> = Some(|input, _| times(read(input, Window::default())?));

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        start.starts_with(MAGIC)
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(self.replaying.load(&read(input, self.replaying.window())?))
    }
}

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Descriptions and lists of names are some MiB at most.
const MOST_METADATA: u64 = 1 << 28;
/// Pages have 4 KiB; since kernel 6.8 they can be larger.
const PAGES: std::ops::RangeInclusive<u64> = 1 << 9..=1 << 24;

/// Reads the part of a recording that is in `window`.
///
/// Errors: it is none, it is cut, or there is no `sched_switch`.
pub fn read(input: &mut dyn Input, window: Window) -> Result<Recording, ImportError> {
    let mut file = File { input: unpacked(input)?, at: 0, endian: Endian::Little };
    let mut header = Header::default();
    match file.head(&mut header)?.as_str() {
        "6" => file.version_6(&mut header)?,
        "7" => file.version_7(&mut header)?,
        other => {
            let other = excerpt(other);
            return Err(file.error(format!(
                "version {other} of trace.dat is not known, only 6 and 7 are; `trace-cmd report` \
                 writes a text, which `anysched import ftrace` reads"
            )));
        }
    }
    if !header.formats.has_switches() {
        return Err(ImportError::whole(
            "there is no sched_switch event; record with `trace-cmd record -e sched`",
        ));
    }
    header.clock_is_in_ns()?;
    let mut recorder = Recorder::new(window, true);
    recorder.cpus(header.cpus);
    let buffers = std::mem::take(&mut header.buffers);
    let others = buffers.iter().skip(1).filter(|buffer| !buffer.cpus.is_empty()).count();
    for (number, buffer) in buffers.into_iter().enumerate() {
        if file.has_switches(&header, &buffer)? || number == others {
            file.events(&header, &buffer, &mut recorder)?;
            break;
        }
    }
    recorder.finish("a recording with the scheduler's events: `trace-cmd record -e sched`")
}

/// Adds the events that `bytes` describe, as perf keeps them, to `formats`.
///
/// Errors: they are cut.
pub(super) fn describe(bytes: &[u8], formats: &mut Formats) -> Result<(), ImportError> {
    let input = Box::new(io::Cursor::new(bytes));
    let mut file = File { input, at: 0, endian: Endian::Little };
    let mut header = Header::default();
    file.head(&mut header)?;
    file.descriptions(&mut header)?;
    *formats = header.formats;
    Ok(())
}

/// What a file says before its events.
#[derive(Default)]
struct Header {
    page_size: u64,
    packing: Packing,
    formats: Formats,
    page: PageLayout,
    cpus: u32,
    clock: String,
    tsc: Option<Tsc>,
    buffers: Vec<Buffer>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Packing {
    #[default]
    None,
    Zstd,
    Zlib,
}

/// How the processor's counter becomes nanoseconds.
#[derive(Clone, Copy)]
struct Tsc {
    multiply: u32,
    shift: u32,
    offset: u64,
}

impl Tsc {
    fn ns(self, count: u64) -> u64 {
        let product = u128::from(count) * u128::from(self.multiply);
        ((product >> self.shift.min(127)) as u64).wrapping_sub(self.offset)
    }
}

/// Where a page says how much of it is used, and where its events begin.
#[derive(Clone, Copy)]
struct PageLayout {
    commit: usize,
    commit_size: usize,
    data: usize,
}

impl Default for PageLayout {
    fn default() -> PageLayout {
        PageLayout { commit: 8, commit_size: 8, data: 16 }
    }
}

/// The pages of all CPUs.
struct Buffer {
    page_size: u64,
    is_packed: bool,
    cpus: Vec<CpuData>,
}

#[derive(Clone)]
struct CpuData {
    cpu: u32,
    at: u64,
    size: u64,
}

struct File<'a> {
    input: Box<dyn Input + 'a>,
    at: u64,
    endian: Endian,
}

/// A number of bytes in memory.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
    endian: Endian,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn number(&mut self, length: usize) -> Option<u64> {
        Some(self.endian.number(self.take(length)?))
    }

    /// A text that ends with a 0.
    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.get(self.at..)?.iter().position(|&byte| byte == 0)?;
        let text = self.take(length)?;
        self.at += 1;
        Some(text)
    }
}

impl File<'_> {
    fn error(&self, what: impl std::fmt::Display) -> ImportError {
        ImportError::byte(self.at, what)
    }

    fn go_to(&mut self, at: u64) -> Result<(), ImportError> {
        self.at = at;
        self.input.seek(SeekFrom::Start(at)).map_err(|error| self.error(error))?;
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), ImportError> {
        let read = self.input.read_exact(buffer);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let needed = buffer.len();
                self.error(format!("the file ends here, where {needed} bytes should follow"))
            }
            _ => self.error(format!("cannot be read: {error}")),
        })?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, ImportError> {
        if length > MOST_METADATA {
            return Err(self.error(format!("{length} bytes of description are too many")));
        }
        let mut bytes = Vec::new();
        let read = io::Read::read_to_end(&mut io::Read::take(&mut self.input, length), &mut bytes);
        read.map_err(|error| self.error(format!("cannot be read: {error}")))?;
        if (bytes.len() as u64) < length {
            return Err(self.error(format!("the file ends within the next {length} bytes")));
        }
        self.at += length;
        Ok(bytes)
    }

    fn number(&mut self, length: usize) -> Result<u64, ImportError> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes[..length])?;
        Ok(self.endian.number(&bytes[..length]))
    }

    fn text(&mut self) -> Result<String, ImportError> {
        let mut text = Vec::new();
        loop {
            match self.number(1)? as u8 {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                _ if text.len() == 256 => return Err(self.error("this text has no end")),
                byte => text.push(byte),
            }
        }
    }

    /// Reads the beginning and returns the format's version.
    fn head(&mut self, header: &mut Header) -> Result<String, ImportError> {
        let mut magic = [0; MAGIC.len()];
        self.fill(&mut magic)?;
        if magic != MAGIC {
            self.at = 0;
            return Err(
                self.error("this is no trace.dat, which begins with 17 08 44 and `tracing`")
            );
        }
        let version = self.text()?;
        self.endian = match self.number(1)? {
            0 => Endian::Little,
            1 => Endian::Big,
            other => return Err(self.error(format!("the order of bytes is 0 or 1, not {other}"))),
        };
        header.formats = Formats::new(self.endian);
        self.number(1)?;
        header.page_size = self.number(4)?;
        self.page_size(header.page_size)?;
        Ok(version)
    }

    fn page_size(&self, size: u64) -> Result<(), ImportError> {
        if PAGES.contains(&size) {
            return Ok(());
        }
        Err(self.error(format!("{size} bytes are not the size of a page")))
    }

    /// The layout of pages and of events.
    fn descriptions(&mut self, header: &mut Header) -> Result<(), ImportError> {
        self.expect(b"header_page\0")?;
        let length = self.number(8)?;
        header.page = page_layout(&self.bytes(length)?);
        self.expect(b"header_event\0")?;
        self.skip(8)?;
        let formats = self.number(4)?;
        for _ in 0..formats {
            self.skip(8)?;
        }
        let systems = self.number(4)?;
        for _ in 0..systems {
            let system = self.text()?;
            let events = self.number(4)?;
            for _ in 0..events {
                let length = self.number(8)?;
                let text = self.bytes(length)?;
                let added = header.formats.add(&system, &String::from_utf8_lossy(&text));
                added.map_err(|what| self.error(what))?;
            }
        }
        Ok(())
    }

    /// Descriptions follow one another, and then tables.
    fn version_6(&mut self, header: &mut Header) -> Result<(), ImportError> {
        self.descriptions(header)?;
        // Names of functions, texts of trace_printk, names of processes.
        self.skip(4)?;
        self.skip(4)?;
        self.skip(8)?;
        header.cpus = self.number(4)? as u32;
        let mut next = self.bytes(10)?;
        if next.starts_with(b"options") {
            loop {
                let id = self.number(2)?;
                if id == 0 {
                    break;
                }
                let length = self.number(4)?;
                let data = self.bytes(length)?;
                header.option(id, &data, self.endian);
            }
            next = self.bytes(10)?;
        }
        if next.starts_with(b"latency") {
            return Err(self.error(
                "this has the text of a tracer of latency; `trace-cmd report` shows it, and \
                 `anysched import ftrace` reads that if it has the scheduler's events",
            ));
        }
        if !next.starts_with(b"flyrecord") {
            return Err(self.error("neither options nor data follow where they should"));
        }
        let mut cpus = Vec::new();
        for cpu in 0..header.cpus {
            let (at, size) = (self.number(8)?, self.number(8)?);
            cpus.push(CpuData { cpu, at, size });
        }
        let page_size = header.page_size;
        header.buffers.insert(0, Buffer { page_size, is_packed: false, cpus });
        Ok(())
    }

    fn expect(&mut self, text: &[u8]) -> Result<(), ImportError> {
        let found = self.bytes(text.len() as u64)?;
        if found == text {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&text[..text.len() - 1]);
        Err(self.error(format!("`{text}` should be before this")))
    }

    /// Skips what begins with its length, a number of `size` bytes.
    fn skip(&mut self, size: usize) -> Result<(), ImportError> {
        let length = self.number(size)?;
        let past = self.at.checked_add(length).filter(|&past| past < 1 << 62);
        let past = past.ok_or_else(|| self.error(format!("{length} bytes cannot follow")))?;
        self.go_to(past)
    }

    /// Options say where all else is.
    fn version_7(&mut self, header: &mut Header) -> Result<(), ImportError> {
        let name = self.text()?;
        let version = self.text()?;
        header.packing = match name.as_str() {
            "none" => Packing::None,
            "zstd" => Packing::Zstd,
            "zlib" => Packing::Zlib,
            other => {
                let what = format!("{} {}", excerpt(other), excerpt(&version));
                return Err(self.error(format!(
                    "its compression is {what}, of which only zstd and zlib are known; convert it: \
                     `trace-cmd convert --compression none`"
                )));
            }
        };
        let mut sections = BTreeMap::new();
        let mut places = Vec::new();
        let mut next = self.number(8)?;
        let mut seen = 0;
        while next != 0 {
            seen += 1;
            if seen > 64 {
                return Err(self.error("the lists of options have no end"));
            }
            self.go_to(next)?;
            let data = self.section(header.packing)?.1;
            let mut options = Bytes { bytes: &data, at: 0, endian: self.endian };
            next = 0;
            while let (Some(id), Some(length)) = (options.number(2), options.number(4)) {
                let data = options.take(length as usize);
                let Some(data) = data else { return Err(self.error("an option is cut")) };
                let mut numbers = Bytes { bytes: data, at: 0, endian: self.endian };
                match id {
                    0 => {
                        next = numbers.number(8).unwrap_or_default();
                        break;
                    }
                    3 => places.push(data.to_vec()),
                    16 | 18 => _ = sections.insert(id, numbers.number(8).unwrap_or_default()),
                    _ => header.option(id, data, self.endian),
                }
            }
        }
        if let Some(&at) = sections.get(&16) {
            self.go_to(at)?;
            let (_, data) = self.section(header.packing)?;
            let mut bytes = Bytes { bytes: &data, at: 12, endian: self.endian };
            let length = bytes.number(8).unwrap_or_default() as usize;
            header.page = page_layout(bytes.take(length).unwrap_or_default());
        }
        let &at = sections
            .get(&18)
            .ok_or_else(|| ImportError::whole("the file does not describe its events"))?;
        self.go_to(at)?;
        let (_, data) = self.section(header.packing)?;
        self.formats(&data, &mut header.formats)?;
        for place in places {
            let buffer = self.buffer(&place)?;
            header.buffers.extend(buffer);
        }
        if header.buffers.is_empty() {
            return Err(ImportError::whole(
                "there is no buffer of events: the recording was of latencies, or it was cut",
            ));
        }
        Ok(())
    }

    /// The flags and the data of the section that begins here.
    fn section(&mut self, packing: Packing) -> Result<(u64, Vec<u8>), ImportError> {
        let (_, flags, _, size) =
            (self.number(2)?, self.number(2)?, self.number(4)?, self.number(8)?);
        if flags & 1 == 0 {
            return Ok((flags, self.bytes(size)?));
        }
        let (packed, size) = (self.number(4)?, self.number(4)?);
        Ok((flags, self.unpack(packed, size, packing)?))
    }

    fn unpack(&mut self, packed: u64, size: u64, packing: Packing) -> Result<Vec<u8>, ImportError> {
        if size > MOST_METADATA {
            return Err(self.error(format!("{size} bytes in one piece are too many")));
        }
        let at = self.at;
        let bytes = self.bytes(packed)?;
        let unpacked = match packing {
            Packing::None => Err(io::Error::other("the file says that nothing is compressed")),
            Packing::Zstd => unzstd(&bytes, size as usize),
            Packing::Zlib => unzlib(&bytes, size as usize),
        };
        unpacked.map_err(|error| ImportError::byte(at, format!("cannot be unpacked: {error}")))
    }

    fn formats(&self, data: &[u8], formats: &mut Formats) -> Result<(), ImportError> {
        let mut bytes = Bytes { bytes: data, at: 0, endian: self.endian };
        let cut = || self.error("the description of events is cut");
        let systems = bytes.number(4).ok_or_else(cut)?;
        for _ in 0..systems {
            let system = bytes.text().ok_or_else(cut)?;
            let events = bytes.number(4).ok_or_else(cut)?;
            for _ in 0..events {
                let length = bytes.number(8).ok_or_else(cut)?;
                let text = bytes.take(length as usize).ok_or_else(cut)?;
                let system = String::from_utf8_lossy(system);
                let added = formats.add(&system, &String::from_utf8_lossy(text));
                added.map_err(|what| self.error(what))?;
            }
        }
        Ok(())
    }

    /// A buffer by its option; `None`: it has no CPU.
    fn buffer(&mut self, option: &[u8]) -> Result<Option<Buffer>, ImportError> {
        let mut bytes = Bytes { bytes: option, at: 0, endian: self.endian };
        let cut = || ImportError::whole("the description of a buffer is cut");
        let at = bytes.number(8).ok_or_else(cut)?;
        bytes.text().ok_or_else(cut)?;
        bytes.text().ok_or_else(cut)?;
        let page_size = bytes.number(4).ok_or_else(cut)?;
        self.page_size(page_size)?;
        let count = bytes.number(4).ok_or_else(cut)?;
        let mut cpus = Vec::new();
        for _ in 0..count {
            let mut number = |length| bytes.number(length).ok_or_else(cut);
            let (cpu, at, size) = (number(4)? as u32, number(8)?, number(8)?);
            cpus.push(CpuData { cpu, at, size });
        }
        self.go_to(at)?;
        self.number(2)?;
        let is_packed = self.number(2)? & 1 != 0;
        Ok((!cpus.is_empty()).then_some(Buffer { page_size, is_packed, cpus }))
    }

    /// Whether a buffer begins with an event of the scheduler on some CPU.
    fn has_switches(&mut self, header: &Header, buffer: &Buffer) -> Result<bool, ImportError> {
        for cpu in &buffer.cpus {
            let mut pages = Pages::new(cpu.clone(), buffer);
            if pages.next(self, header, &mut Recorder::default())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the events of all CPUs to `recorder`, in order.
    fn events(
        &mut self,
        header: &Header,
        buffer: &Buffer,
        recorder: &mut Recorder,
    ) -> Result<(), ImportError> {
        let mut all: Vec<Pages> =
            buffer.cpus.iter().map(|cpu| Pages::new(cpu.clone(), buffer)).collect();
        let mut next = BinaryHeap::new();
        for (index, pages) in all.iter_mut().enumerate() {
            if let Some(time) = pages.next(self, header, recorder)? {
                next.push(Reverse((time, index)));
            }
        }
        while let Some(Reverse((time, index))) = next.pop() {
            let pages = &mut all[index];
            let ns = header.tsc.map_or(time, |tsc| tsc.ns(time));
            header
                .formats
                .take(pages.event(), pages.data.cpu, ns, recorder)
                .map_err(|what| ImportError::byte(pages.data.at, what))?;
            if let Some(time) = pages.next(self, header, recorder)? {
                next.push(Reverse((time, index)));
            }
        }
        Ok(())
    }
}

impl Header {
    fn option(&mut self, id: u64, data: &[u8], endian: Endian) {
        let mut numbers = Bytes { bytes: data, at: 0, endian };
        match id {
            4 => {
                // `[local] global counter`: the one in brackets.
                let text = String::from_utf8_lossy(data);
                let used = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.clock = used.map_or_else(String::new, |(used, _)| used.to_string());
            }
            8 => self.cpus = numbers.number(4).map_or(self.cpus, |cpus| cpus as u32),
            14 => {
                let (Some(multiply), Some(shift), Some(offset)) =
                    (numbers.number(4), numbers.number(4), numbers.number(8))
                else {
                    return;
                };
                let (multiply, shift) = (multiply as u32, shift as u32);
                self.tsc = (multiply > 0).then_some(Tsc { multiply, shift, offset });
            }
            _ => {}
        }
    }

    fn clock_is_in_ns(&self) -> Result<(), ImportError> {
        let clock = self.clock.as_str();
        if matches!(clock, "counter" | "uptime") || clock.contains("tsc") && self.tsc.is_none() {
            return Err(ImportError::whole(format!(
                "its clock is {clock}, which does not count nanoseconds; record with a clock that \
                 does: `trace-cmd record -C mono`"
            )));
        }
        Ok(())
    }
}

/// The fields `commit` and `data` of the kernel's `events/header_page`.
fn page_layout(text: &[u8]) -> PageLayout {
    let text = String::from_utf8_lossy(text);
    let value = |field: &str, key: &str| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.contains(field))?;
        let (_, value) = line.split_once(key)?;
        value.split(';').next()?.trim().parse::<usize>().ok()
    };
    let known = PageLayout::default();
    PageLayout {
        commit: value(" commit;", "offset:").unwrap_or(known.commit),
        commit_size: value(" commit;", "size:").filter(|s| *s <= 8).unwrap_or(known.commit_size),
        data: value(" data;", "offset:").unwrap_or(known.data),
    }
}

/// The pages of one CPU.
struct Pages {
    data: CpuData,
    page_size: u64,
    is_packed: bool,
    /// Compressed pieces that are left; `None`: their number has not been read.
    pieces: Option<u64>,
    /// Pages in memory, and where the next one begins.
    pages: Vec<u8>,
    at: usize,
    /// The rest of the page that is being read, in `pages`.
    rest: Range<usize>,
    time: u64,
    /// The event that was found, in `pages`.
    event: Range<usize>,
}

/// So many pages are read at a time where they are not compressed.
const PAGES_AT_ONCE: u64 = 16;

impl Pages {
    fn new(data: CpuData, buffer: &Buffer) -> Pages {
        Pages {
            data,
            page_size: buffer.page_size,
            is_packed: buffer.is_packed,
            pieces: None,
            pages: Vec::new(),
            at: 0,
            rest: 0..0,
            time: 0,
            event: 0..0,
        }
    }

    fn event(&self) -> &[u8] {
        &self.pages[self.event.clone()]
    }

    /// Goes on to the next event that is used, and returns its time. `recorder` is told of others.
    fn next(
        &mut self,
        file: &mut File<'_>,
        header: &Header,
        recorder: &mut Recorder,
    ) -> Result<Option<u64>, ImportError> {
        loop {
            while self.step(file.endian) {
                let event = self.event();
                if event.is_empty() {
                    continue;
                }
                if header.formats.is_used(event) {
                    return Ok(Some(self.time));
                }
                header.formats.count(event, recorder);
            }
            if self.at >= self.pages.len() && !self.load(file, header)? {
                return Ok(None);
            }
            self.begin_page(file.endian, header.page, recorder);
        }
    }

    /// Reads more pages; false: there are none.
    fn load(&mut self, file: &mut File<'_>, header: &Header) -> Result<bool, ImportError> {
        (self.at, self.rest) = (0, 0..0);
        if self.data.size == 0 {
            return Ok(false);
        }
        file.go_to(self.data.at)?;
        if !self.is_packed {
            let length = self.data.size.min(PAGES_AT_ONCE * self.page_size);
            self.pages = file.bytes(length)?;
            (self.data.at, self.data.size) = (self.data.at + length, self.data.size - length);
            return Ok(true);
        }
        let pieces = match self.pieces {
            Some(pieces) => pieces,
            None => file.number(4)?,
        };
        if pieces == 0 {
            self.data.size = 0;
            return Ok(false);
        }
        let (packed, size) = (file.number(4)?, file.number(4)?);
        self.pages = file.unpack(packed, size, header.packing)?;
        (self.pieces, self.data.at) = (Some(pieces - 1), file.at);
        Ok(!self.pages.is_empty())
    }

    fn begin_page(&mut self, endian: Endian, layout: PageLayout, recorder: &mut Recorder) {
        let start = self.at;
        let page = self.page_size.min((self.pages.len() - start) as u64) as usize;
        self.at = start + page;
        let number = |at: usize, size: usize| {
            let bytes = self.pages[start..start + page].get(at..at + size);
            bytes.map(|bytes| endian.number(bytes))
        };
        let (Some(time), Some(commit)) = (number(0, 8), number(layout.commit, layout.commit_size))
        else {
            return;
        };
        // Above the length are flags: events were lost before this page, and how many were is
        // stored behind its last one.
        const LOST: u64 = 1 << 31;
        const LOST_STORED: u64 = 1 << 30;
        let used = (commit & ((1 << 27) - 1)) as usize;
        let end = layout.data.saturating_add(used);
        if commit & LOST != 0 {
            let stored = (commit & LOST_STORED != 0).then(|| number(end, layout.commit_size));
            recorder.lost(stored.flatten());
        }
        self.time = time;
        self.rest = start + layout.data.min(page)..start + end.min(page);
    }

    /// Goes on by one entry of the page, which may be no event: `event` is empty then. False: the
    /// page is done.
    fn step(&mut self, endian: Endian) -> bool {
        const PADDING: u64 = 29;
        const EXTEND: u64 = 30;
        const STAMP: u64 = 31;
        let mut bytes = Bytes { bytes: &self.pages[..self.rest.end], at: self.rest.start, endian };
        self.event = 0..0;
        let Some(head) = bytes.number(4) else { return false };
        let (kind, delta) = match endian {
            Endian::Little => (head & 31, head >> 5),
            Endian::Big => (head >> 27, head & ((1 << 27) - 1)),
        };
        let event = match kind {
            EXTEND | STAMP => {
                let Some(high) = bytes.number(4) else { return false };
                let long = (high << 27).wrapping_add(delta);
                if kind == EXTEND {
                    self.time = self.time.wrapping_add(long);
                } else {
                    // The upper 5 bits do not fit.
                    const FITS: u64 = (1 << 59) - 1;
                    self.time = self.time & !FITS | long & FITS;
                }
                0..0
            }
            PADDING if delta == 0 => return false,
            PADDING => {
                let Some(length) = bytes.number(4) else { return false };
                self.time = self.time.wrapping_add(delta);
                if bytes.take((length as usize).saturating_sub(4)).is_none() {
                    return false;
                }
                0..0
            }
            _ => {
                let length = match kind {
                    0 => match bytes.number(4) {
                        Some(length) => (length as usize).saturating_sub(4),
                        None => return false,
                    },
                    words => 4 * words as usize,
                };
                let at = bytes.at;
                // Lengths are rounded up to whole words.
                if bytes.take(length.saturating_add(3) & !3).is_none() {
                    return false;
                }
                self.time = self.time.wrapping_add(delta);
                at..at + length
            }
        };
        self.rest.start = bytes.at;
        self.event = event;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ftrace::Softirqs;
    use crate::import::{perf_data, perfetto, samples};
    use std::io::Cursor;

    fn shown(recording: &Recording) -> String {
        let replay = recording.replay(Softirqs::ByEvidence);
        format!("{:?} {:?} {:?}", replay.model.tasks, replay.model.signals, replay.schedule)
    }

    #[test]
    fn a_recording_is_the_same_in_every_format() {
        let whole = Window::default;
        let text = Recording::read(samples::FTRACE.as_bytes()).unwrap();
        let expected = shown(&text);
        let six = read(&mut Cursor::new(samples::trace_dat_6()), whole()).unwrap();
        assert_eq!(shown(&six), expected);
        assert_eq!(six.cpus(), 2);
        for packing in ["none", "zstd", "zlib"] {
            let seven = read(&mut Cursor::new(samples::trace_dat_7(packing)), whole()).unwrap();
            assert_eq!(shown(&seven), expected, "{packing}");
        }
        let perf = perf_data::read(&mut Cursor::new(samples::perf_data()), whole()).unwrap();
        assert_eq!(shown(&perf), expected);
        let piped = perf_data::read(&mut Cursor::new(samples::perf_data_piped()), whole()).unwrap();
        assert_eq!((shown(&piped), piped.cpus()), (expected.clone(), 2));
        let packed = samples::perf_data_compressed();
        let packed = perf_data::read(&mut Cursor::new(packed), whole()).unwrap();
        assert_eq!(shown(&packed), expected);
        assert!(
            packed.replay(Softirqs::Task).model.warnings.iter().any(|warning| {
                warning == "events were lost while recording: 2 times, 10 known"
            })
        );
        let one = perfetto::read(samples::perfetto(false).as_slice(), whole()).unwrap();
        assert_eq!(shown(&one), expected);
        // Batches do not say what a CPU ran first.
        let batch = perfetto::read(samples::perfetto(true).as_slice(), whole()).unwrap();
        assert_eq!((batch.switches(), batch.span()), (text.switches(), text.span()));
        let bursts = batch.replay(Softirqs::ByEvidence).bursts;
        assert_eq!(bursts, text.replay(Softirqs::ByEvidence).bursts);
    }

    #[test]
    fn what_is_not_used_and_what_was_lost_is_counted() {
        let six = read(&mut Cursor::new(samples::trace_dat_6()), Window::default()).unwrap();
        let warnings = six.replay(Softirqs::Task).model.warnings;
        assert_eq!(
            warnings[..2],
            [
                "events that are not used: sys_enter (2)",
                "events were lost while recording: 2 times, 0 known"
            ]
        );
    }

    #[test]
    fn files_that_are_cut_or_wrong() {
        let refused =
            |file: &[u8]| read(&mut Cursor::new(file), Window::default()).unwrap_err().to_string();
        let six = samples::trace_dat_6();
        assert_eq!(
            refused(b"no such file"),
            "byte 0: this is no trace.dat, which begins with 17 08 44 and `tracing`"
        );
        assert!(refused(&six[..100]).starts_with("byte 38: the file ends within the next"));
        let mut other = six.clone();
        other[10] = b'9';
        assert!(refused(&other).starts_with("byte 18: version 9 of trace.dat is not known"));
        assert!(
            refused(&six[..six.len() - 100]).contains("the file ends within the next 8192 bytes")
        );
        let cut = samples::trace_dat_7("zstd");
        for length in 0..cut.len() {
            refused(&cut[..length]);
        }
        let at = six.windows(6).position(|window| window == b"[mono]").unwrap();
        let mut other = six.clone();
        other[at - 6..at + 8].copy_from_slice(b"mono [counter]");
        assert!(refused(&other).starts_with("its clock is counter, which does not count nano"));
    }
}
