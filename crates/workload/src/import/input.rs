//! What stands in a file: unpacked, and line by line.

use super::{ImportError, zipped};
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use tempfile::SpooledTempFile;

/// A file, or a text in memory.
pub trait Input: Read + Seek {}
impl<T: Read + Seek + ?Sized> Input for T {}

/// How a file is packed. All are recognised by how they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Xz,
    Zip,
    Tar,
}

/// How much of a file tells how it is packed: tar has the farthest mark.
const MARK: usize = 512;
/// A packed archive is packed twice; nobody packs more often.
const MOST_LAYERS: usize = 3;
/// What has to be put aside is kept in memory up to this size, and in a temporary file beyond;
/// WebAssembly has no files.
const IN_MEMORY: usize = if cfg!(target_family = "wasm") { usize::MAX } else { 1 << 24 };
/// Compressed blocks that would need more memory than this are refused.
const MOST_MEMORY: u64 = 1 << 28;

impl Packing {
    fn of(start: &[u8]) -> Option<Packing> {
        Some(match start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
            [b'P', b'K', 3, 4, ..] => Packing::Zip,
            _ if start.get(257..262) == Some(b"ustar") => Packing::Tar,
            _ => return None,
        })
    }
}

/// The first bytes of `input`, and all of it again.
fn peeked<'a>(mut input: impl Read + 'a) -> io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let mut start = Vec::new();
    input.by_ref().take(MARK as u64).read_to_end(&mut start)?;
    let whole = Cursor::new(start.clone()).chain(input);
    Ok((start, Box::new(BufReader::with_capacity(1 << 16, whole))))
}

/// What is in `input`: itself, or what is packed in it with gzip, zstd, xz, zip or tar. An archive
/// has to have one file.
///
/// Errors: the first bytes cannot be read, or an archive has no file or several.
pub fn open<'a>(input: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let (mut start, mut input) = peeked(input)?;
    for _ in 0..MOST_LAYERS {
        let Some(packing) = Packing::of(&start) else { return Ok(input) };
        let inner: Box<dyn Read + 'a> = match packing {
            Packing::Gzip => Box::new(MultiGzDecoder::new(input)),
            Packing::Zstd => Box::new(Frames::new(input)),
            Packing::Xz => {
                Box::new(XzReader::new_mem_limit(input, true, (MOST_MEMORY >> 10) as u32))
            }
            Packing::Zip => zipped::only_file(input)?,
            Packing::Tar => Box::new(InTar::new(input)?),
        };
        (start, input) = match peeked(inner) {
            Ok(peeked) => peeked,
            // The line that cannot be read says so.
            Err(error) => return Ok(Box::new(BufReader::new(Broken(Some(error))))),
        };
    }
    Ok(input)
}

/// The same as [`open`] for readers that go to and fro: what is packed is put aside, at most
/// `IN_MEMORY` bytes in memory.
///
/// Errors: as for [`open`]; what is packed cannot be unpacked or put aside.
pub fn unpacked<'a>(input: &'a mut dyn Input) -> io::Result<Box<dyn Input + 'a>> {
    let mut start = Vec::new();
    input.take(MARK as u64).read_to_end(&mut start)?;
    input.rewind()?;
    if Packing::of(&start).is_none() {
        return Ok(Box::new(input));
    }
    Ok(Box::new(put_aside(open(input)?)?))
}

/// A file that can be read from any place: itself, or what a pipe gives, put aside.
///
/// Errors: the pipe cannot be read or put aside.
pub fn of_file(file: File) -> io::Result<Box<dyn Input>> {
    Ok(match file.metadata()?.is_file() {
        true => Box::new(file),
        false => Box::new(put_aside(file)?),
    })
}

pub(super) fn put_aside(mut input: impl Read) -> io::Result<SpooledTempFile> {
    let mut aside = tempfile::spooled_tempfile(IN_MEMORY);
    io::copy(&mut input, &mut aside)?;
    aside.rewind()?;
    Ok(aside)
}

/// The beginning of what is in `input`, which is left anywhere.
///
/// Errors: as for [`open`]; it cannot be unpacked.
pub fn beginning(input: &mut dyn Input, most: u64) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    open(&mut *input)?.take(most).read_to_end(&mut start)?;
    Ok(start)
}

/// Fails once.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Frames of zstd, one after another.
struct Frames<R: BufRead> {
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
    next: Option<R>,
}

impl<R: BufRead> Frames<R> {
    fn new(input: R) -> Frames<R> {
        Frames { frame: None, next: Some(input) }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                match frame.read(buffer)? {
                    0 if !buffer.is_empty() => {}
                    length => return Ok(length),
                }
                self.next = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut input) = self.next.take() else { return Ok(0) };
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new(input).map_err(io::Error::other)?;
            self.frame = Some(frame);
        }
    }
}

/// Unpacks what was compressed with zstd in one piece, and has to become `size` bytes.
pub(super) fn unzstd(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
    sized(Frames::new(bytes), size)
}

/// Unpacks what was compressed with zlib in one piece, and has to become `size` bytes.
pub(super) fn unzlib(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
    sized(flate2::read::ZlibDecoder::new(bytes), size)
}

fn sized(input: impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    input.take(size as u64).read_to_end(&mut out)?;
    if out.len() < size {
        let what = format!("{} bytes are compressed where {size} should be", out.len());
        return Err(io::Error::other(what));
    }
    Ok(out)
}

pub(super) fn several(what: &str, names: &[String]) -> io::Error {
    let known: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
    io::Error::other(match names.len() {
        0 => format!("the {what} has no file"),
        n => format!(
            "the {what} has {}{n} files ({}{}); unpack it and name one of them",
            if what == "tar" { "at least " } else { "" },
            known.join(", "),
            if n > known.len() { ", …" } else { "" },
        ),
    })
}

/// The only file of a tape archive.
struct InTar<R: Read> {
    input: R,
    names: Vec<String>,
    /// What is left of the file, and of its last block.
    left: u64,
    padding: u64,
}

impl<R: Read> InTar<R> {
    fn new(input: R) -> io::Result<InTar<R>> {
        let mut tar = InTar { input, names: Vec::new(), left: 0, padding: 0 };
        match tar.next_file()? {
            true => Ok(tar),
            false => Err(several("tar", &[])),
        }
    }

    /// Goes on to the next file, if there is one.
    fn next_file(&mut self) -> io::Result<bool> {
        loop {
            let mut block = [0; MARK];
            let mut at = 0;
            while at < MARK {
                match self.input.read(&mut block[at..])? {
                    0 => return Ok(false),
                    length => at += length,
                }
            }
            if block.iter().all(|&byte| byte == 0) {
                return Ok(false);
            }
            let header = tar::Header::from_byte_slice(&block);
            let size = header.entry_size()?;
            let padding = size.wrapping_neg() % MARK as u64;
            if header.entry_type().is_file() || header.entry_type().is_contiguous() {
                self.names.push(String::from_utf8_lossy(&header.path_bytes()).into_owned());
                (self.left, self.padding) = (size, padding);
                return Ok(true);
            }
            let skipped = size.checked_add(padding).ok_or_else(|| io::Error::other("no tar"))?;
            io::copy(&mut self.input.by_ref().take(skipped), &mut io::sink())?;
        }
    }
}

impl<R: Read> Read for InTar<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            let padding = std::mem::take(&mut self.padding);
            io::copy(&mut self.input.by_ref().take(padding), &mut io::sink())?;
            return match self.next_file()? {
                true => Err(several("tar", &self.names)),
                false => Ok(0),
            };
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let length = self.input.read(&mut buffer[..most])?;
        if length == 0 {
            return Err(io::Error::other("the tar ends within its file"));
        }
        self.left -= length as u64;
        Ok(length)
    }
}

/// The longest line that is read; no format here has longer ones.
const MAX_LINE: usize = 1 << 16;

/// The lines of a text, one at a time.
pub(crate) struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(input: impl Read + 'a) -> io::Result<Lines<'a>> {
        Ok(Lines::after(open(input)?, 0))
    }

    /// Those of a text that was opened, `number` lines of which have been read.
    pub(crate) fn after(input: Box<dyn BufRead + 'a>, number: u64) -> Lines<'a> {
        Lines { input, line: Vec::new(), number }
    }

    /// The next line without its end, and its number from 1. What is not UTF-8 is replaced.
    ///
    /// Errors: those of the input; a line of more than 65 536 bytes.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Cow<'_, str>)>, ImportError> {
        self.line.clear();
        self.number += 1;
        let number = self.number;
        let mut limited = self.input.by_ref().take(MAX_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        match read.map_err(|error| ImportError::line(number, format!("cannot be read: {error}")))? {
            0 => return Ok(None),
            length if length > MAX_LINE => {
                let what = format!("longer than {MAX_LINE} bytes: this is not such a text");
                return Err(ImportError::line(number, what));
            }
            _ => {}
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some((number, String::from_utf8_lossy(line))))
    }
}
