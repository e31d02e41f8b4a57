//! Importers: recordings, descriptions of programs, job logs and tables become [`Model`]s.
//!
//! Each is a line of one list, with its name and what it is; the module says how such a file begins
//! and how it is read. A file may be packed with gzip, zstd, xz, zip or tar (recognised by how it
//! begins), and one that begins like another format is refused with that format's name. None of
//! them opens a file: the caller knows its name and adds it to the errors. Input is not trusted:
//! arbitrary bytes give a model or an [`ImportError`].

pub mod input;
mod json;
#[cfg(test)]
pub(crate) mod samples;
mod strangers;
mod window;
mod zipped;

use crate::kinds::{
    self, FileName, Given, KeyInfo, Keys, KindInfo, LoadSpec, Reader, Refusal, Table,
};
use crate::model::Model;
use crate::tasks_csv::{CsvError, TaskList};
use anysched_core::Span;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

pub(crate) use input::Lines;
pub use input::{Input, open};
pub use window::Window;

/// Declares the modules of importers and the lists of kinds and formats: the names of the kind of
/// load that reads such files, module, keys, and what it is.
macro_rules! importers {
    ($( $name:literal $(| $alias:literal)* $module:ident => $keys:ident, $summary:literal; )*) => {
        $( pub mod $module; )*

        /// The kinds of load that are read from files.
        pub const KINDS: &[KindInfo] = &[$( KindInfo {
            name: $name,
            aliases: &[$($alias),*],
            summary: $summary,
            own: <$module::$keys as Keys>::OWN,
            shared: <$module::$keys as Keys>::SHARED,
            read: load::<$module::$keys>,
        }, )*];

        /// The formats of files that are loads.
        pub static IMPORTERS: &[ImporterInfo] = &[$( ImporterInfo {
            name: <$module::$keys as Importer>::FORMAT,
            aliases: &[$name, $($alias),*],
            summary: $summary,
            endings: <$module::$keys as Importer>::ENDINGS,
            own: <$module::$keys as Keys>::OWN,
            shared: <$module::$keys as Keys>::SHARED,
            usage: <$module::$keys as Importer>::USAGE,
            begins: <$module::$keys as Importer>::begins,
            read: import::<$module::$keys>,
            times: <$module::$keys as Importer>::TIMES,
        }, )*];
    };
}

importers! {
    "tasks" tasks => Tasks, "A list of tasks as CSV: when each arrives and how long it runs";
    "csv" csv => Csv, "A table with columns of any name, such as the trace of a cluster";
    "trace" | "ftrace" | "trace-cmd" | "perf" ftrace => Trace,
        "A recording of the Linux scheduler as text: ftrace, trace-cmd report or perf script";
    "trace-dat" | "trace.dat" trace_dat => TraceDat, "A recording by trace-cmd: trace.dat";
    "perf-data" | "perf.data" perf_data => PerfData, "A recording by perf: perf.data";
    "perfetto" | "pftrace" perfetto => Perfetto, "A recording by Perfetto";
    "systrace" systrace => Systrace, "A recording by systrace, as JSON or HTML";
    "rt-app" | "rtapp" rtapp => RtApp, "A file of rt-app";
    "simso" simso => SimSo, "Tasks and machine of SimSo, as XML";
    "swf" swf => Swf, "A job log in the Standard Workload Format";
    "model" explicit => Explicit, "An explicit model as JSON: every task with what it does";
}

/// A format of files that are loads.
#[derive(Debug)]
pub struct ImporterInfo {
    /// Its name.
    pub name: &'static str,
    /// Its other names, including the kind of load that reads it.
    pub aliases: &'static [&'static str],
    /// What it is, in one line.
    pub summary: &'static str,
    /// How the names of such files usually end.
    pub endings: &'static [&'static str],
    /// The keys that only its kind of load has: `file`, and how it is read.
    pub own: &'static [KeyInfo],
    /// The keys that it shares with others.
    pub shared: &'static [KeyInfo],
    /// Arguments that its import cannot do without, as they are written on the command line.
    pub usage: &'static str,
    /// Whether a file that begins like this, unpacked, is probably in this format. Of such a
    /// beginning, one format at most says so.
    pub begins: fn(&[u8]) -> bool,
    /// Reads a file, called `name` in errors, plain or packed.
    ///
    /// Errors: the file is refused; an unknown option or an invalid value of one.
    pub read: ReadFormat,
    /// Reads only how long tasks run, if such a file says that.
    pub times: Option<ReadTimes>,
}

/// Reads a file with options.
pub type ReadFormat = fn(&mut dyn Input, &str, &dyn Table) -> Result<Imported, ReadError>;

/// Reads the run times in a file, called `name` in errors, and what was left out of them.
pub type ReadTimes = fn(&mut dyn Input, &str) -> Result<(Vec<Span>, Vec<String>), ReadError>;

impl ImporterInfo {
    /// The format that is called `name`.
    pub fn of(name: &str) -> Option<&'static ImporterInfo> {
        IMPORTERS.iter().find(|known| known.name == name || known.aliases.contains(&name))
    }

    /// The format of a file that begins like this, unpacked.
    pub fn recognise(start: &[u8]) -> Option<&'static ImporterInfo> {
        IMPORTERS.iter().find(|known| (known.begins)(start))
    }

    /// The keys: how it is read.
    pub fn options(&self) -> impl Iterator<Item = &'static KeyInfo> + Clone {
        self.own.iter().chain(self.shared)
    }

    /// The command that imports such a file.
    pub fn command(&self) -> String {
        let space = if self.usage.is_empty() { "" } else { " " };
        format!("anysched import {} FILE{space}{} -o load.json", self.name, self.usage)
    }
}

/// What a file has become.
#[derive(Clone, Debug)]
pub enum Imported {
    /// A list of tasks.
    Tasks(TaskList),
    /// A model, which has not been validated.
    Model(Model),
}

impl Imported {
    /// The same as a model, which has not been validated.
    pub fn into_model(self) -> Model {
        match self {
            Imported::Tasks(tasks) => tasks.to_model(),
            Imported::Model(model) => model,
        }
    }

    /// The same with names that can be shown on one line: control characters as they are escaped.
    fn with_plain_names(mut self) -> Imported {
        match &mut self {
            Imported::Tasks(tasks) => tasks.names().for_each(plain_name),
            Imported::Model(model) => {
                model.tasks.iter_mut().for_each(|task| plain_name(&mut task.new.name));
            }
        }
        self
    }
}

fn plain_name(name: &mut Option<Arc<str>>) {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    if let Some(name) = name
        && name.contains(char::is_control)
    {
        *name = name.chars().map(escaped).collect::<String>().into();
    }
}

/// The keys of an import with their values as text.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The format, which says what each key takes.
    pub format: &'static ImporterInfo,
    /// Each key with its value, written the way [`KeyType::literal`] reads it.
    ///
    /// [`KeyType::literal`]: kinds::KeyType::literal
    pub values: Vec<(&'a str, &'a str)>,
}

impl Table for Options<'_> {
    fn keys(&self) -> Vec<&str> {
        self.values.iter().map(|(key, _)| *key).collect()
    }

    fn get(&self, key: &str) -> Option<Given<'_>> {
        let (_, text) = self.values.iter().find(|(known, _)| *known == key)?;
        let option = self.format.options().find(|option| option.name == key);
        Some(option.map_or(Given::Text(text), |option| option.takes.literal(text)))
    }
}

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Its text.
    Input(ImportError),
    /// Its text, with the file's name.
    List(CsvError),
    /// How it is to be read.
    Option(Refusal),
}

impl ReadError {
    /// On one line, for the file called `name`.
    pub fn of(&self, name: impl fmt::Display) -> String {
        match self {
            ReadError::Input(error) => format!("{name}: {error}"),
            ReadError::List(error) => error.to_string(),
            ReadError::Option(refusal) => refusal.to_string(),
        }
    }
}

impl From<ImportError> for ReadError {
    fn from(error: ImportError) -> ReadError {
        ReadError::Input(error)
    }
}

/// An importer: the keys of its kind of load, and how files are read under them.
pub trait Importer: Keys + fmt::Debug {
    /// What the format is called where files are imported.
    const FORMAT: &'static str;
    /// See [`ImporterInfo::endings`].
    const ENDINGS: &'static [&'static str];
    /// See [`ImporterInfo::times`].
    const TIMES: Option<ReadTimes> = None;
    /// See [`ImporterInfo::usage`].
    const USAGE: &'static str = "";

    /// The value of the key `file`.
    fn file(&self) -> &FileName;

    /// See [`ImporterInfo::begins`].
    fn begins(start: &[u8]) -> bool;

    /// Whether a file that begins like this can be read, though another format may be meant.
    fn takes(start: &[u8]) -> bool {
        Self::begins(start)
    }

    /// Reads a file, called `name` in errors, plain or packed.
    ///
    /// Errors: the file is refused.
    fn import(&self, input: &mut dyn Input, name: &str) -> Result<Imported, ReadError>;
}

fn load<I: Importer>(reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
    let keys = I::read(reader)?;
    let FileName(name) = keys.file();
    reader.imported(name, &format!("{keys:?}"), &|input| checked(&keys, input, name))
}

fn import<I: Importer>(
    input: &mut dyn Input,
    name: &str,
    options: &dyn Table,
) -> Result<Imported, ReadError> {
    let keys: I = kinds::read_options(options, I::FORMAT).map_err(ReadError::Option)?;
    checked(&keys, input, name)
}

/// How much of a file is looked at to recognise what it is.
pub const LOOK: u64 = 1 << 16;

fn checked<I: Importer>(
    keys: &I,
    input: &mut dyn Input,
    name: &str,
) -> Result<Imported, ReadError> {
    // What cannot be unpacked is found out again by whoever reads it, with its place.
    let start = input::beginning(input, LOOK);
    input.rewind().map_err(ImportError::from)?;
    if let Ok(start) = start
        && !I::takes(&start)
        && let Some(stranger) = strangers::other_than(I::FORMAT, &start)
    {
        return Err(ImportError::whole(stranger).into());
    }
    keys.import(input, name).map(Imported::with_plain_names)
}

/// Why an input was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The line, from 1; 0 if it is about no particular line.
    pub line: u64,
    /// The column, from 1; 0 if it is about the whole line.
    pub column: u64,
    /// What is wrong and what would be right.
    pub what: String,
}

impl ImportError {
    pub(crate) fn at(line: u64, column: u64, what: impl Into<String>) -> ImportError {
        ImportError { line, column, what: what.into() }
    }

    pub(crate) fn line(line: u64, what: impl Into<String>) -> ImportError {
        ImportError::at(line, 0, what)
    }

    pub(crate) fn whole(what: impl Into<String>) -> ImportError {
        ImportError::at(0, 0, what)
    }

    /// About what is at `offset` of a file that is no text.
    pub(crate) fn byte(offset: u64, what: impl fmt::Display) -> ImportError {
        ImportError::whole(format!("byte {offset}: {what}"))
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}", self.what),
            (line, 0) => write!(f, "line {line}: {}", self.what),
            (line, column) => write!(f, "line {line}, column {column}: {}", self.what),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> ImportError {
        ImportError::whole(format!("cannot be read: {error}"))
    }
}

/// The beginning of a text; `None` if it is none.
fn text(start: &[u8]) -> Option<Cow<'_, str>> {
    let text = !start.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
    text.then(|| String::from_utf8_lossy(start))
}

/// The beginning of a text that is JSON.
fn json_text(start: &[u8]) -> Option<Cow<'_, str>> {
    let first = |text: &str| text.trim_start_matches('\u{feff}').trim_start().chars().next();
    text(start).filter(|text| matches!(first(text), Some('{' | '[' | '/')))
}

/// The first line of a text that is neither empty nor a comment.
fn first_line(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(|line| line.trim_start_matches('\u{feff}').trim());
    lines.find(|line| !line.is_empty() && !line.starts_with('#'))
}

/// A part of an input for an error message: short, and without control characters.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 120;
    let mut shown = String::new();
    for (number, character) in text.trim().chars().enumerate() {
        match character {
            _ if number == MOST => {
                shown.push('…');
                break;
            }
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::{Read, Seek, Write};

    fn all(input: &[u8]) -> Vec<(u64, String)> {
        let mut lines = Lines::of(input).unwrap();
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            all.push((number, line.into_owned()));
        }
        all
    }

    #[test]
    fn lines_of_plain_and_of_compressed_text_are_the_same() {
        let text = b"one\r\n\ntwo \xff\nthree";
        let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
        zip.write_all(text).unwrap();
        let expected = [(1, "one"), (2, ""), (3, "two \u{fffd}"), (4, "three")];
        let expected = expected.map(|(number, line)| (number, line.to_string()));
        assert_eq!(all(text), expected);
        let gzip = zip.finish().unwrap();
        assert_eq!(all(&gzip), expected);
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let zstd = |text: &[u8]| ruzstd::encoding::compress_to_vec(text, level);
        assert_eq!(all(&zstd(text)), expected);
        let frames = [zstd(&text[..7]), zstd(&text[7..])].concat();
        assert_eq!(all(&frames), expected);
        assert_eq!(all(&XZ), expected);
        assert_eq!(all(&zipped(&[("a.txt", text)])), expected);
        let tar = tarred(&[("a.txt", text)]);
        assert_eq!(all(&tar), expected);
        assert_eq!(all(&zstd(&tar)), expected);
        // What has to be read from any place is put aside.
        for packed in [text.to_vec(), gzip, zstd(&tar)] {
            let mut file = io::Cursor::new(packed);
            let mut unpacked = input::unpacked(&mut file).unwrap();
            unpacked.seek(io::SeekFrom::Start(5)).unwrap();
            let mut rest = Vec::new();
            unpacked.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, text[5..]);
        }
    }

    /// The same text.
    const XZ: [u8; 72] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21,
        0x01, 0x1c, 0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0x01, 0x00, 0x10, 0x6f, 0x6e, 0x65,
        0x0d, 0x0a, 0x0a, 0x74, 0x77, 0x6f, 0x20, 0xff, 0x0a, 0x74, 0x68, 0x72, 0x65, 0x65, 0x00,
        0x00, 0x00, 0x00, 0x33, 0x3e, 0xe8, 0xe0, 0x00, 0x01, 0x25, 0x11, 0x3e, 0x45, 0xc5, 0xa2,
        0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    /// An archive of these files in a folder.
    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        zip.add_directory("folder", options).unwrap();
        for (name, text) in files {
            zip.start_file(format!("folder/{name}"), options).unwrap();
            zip.write_all(text).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn tarred(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        tar.append_data(&mut header, "folder", io::empty()).unwrap();
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, format!("folder/{name}"), *text).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn an_archive_has_one_file() {
        let files: [(&str, &[u8]); 2] = [("a.txt", b"1\n"), ("b.txt", b"2\n")];
        let refused = |archive: &[u8]| match Lines::of(archive) {
            Err(error) => error.to_string(),
            Ok(mut lines) => loop {
                match lines.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("accepted"),
                    Err(error) => break error.to_string(),
                }
            },
        };
        for (archive, what) in
            [(zipped(&files), "zip has 2"), (tarred(&files), "tar has at least 2")]
        {
            let refused = refused(&archive);
            let names = "files (folder/a.txt, folder/b.txt); unpack it and name one of them";
            assert!(refused.ends_with(&format!("the {what} {names}")), "{refused}");
        }
        assert!(refused(&zipped(&[])).ends_with("the zip has no file"));
        assert!(refused(&tarred(&[])).ends_with("the tar has no file"));
        let tar = tarred(&files);
        assert!(refused(&tar[..1025]).contains("the tar ends within its file"));
    }

    #[test]
    fn a_line_is_bounded() {
        let mut lines = Lines::of(io::repeat(b'x')).unwrap();
        let error = lines.next().unwrap_err();
        assert_eq!(error.to_string(), "line 1: longer than 65536 bytes: this is not such a text");
    }

    #[test]
    fn broken_compression_is_an_error_with_a_line() {
        let mut lines = Lines::of(&b"\x1f\x8b\x08\x00garbage"[..]).unwrap();
        assert!(lines.next().unwrap_err().to_string().starts_with("line 1: cannot be read: "));
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(" a\tb\u{7} "), "a\\tb\\u{7}");
        assert_eq!(excerpt(&"x".repeat(200)).chars().count(), 121);
    }
}
