//! What is wrong with an experiment, and where in its file.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Why an experiment was refused: all that is wrong with it, in the order of its file.
/// [`Error::to_snippet`] shows the lines, [`Error::to_plain`] has one line for each.
#[derive(Clone, Debug)]
pub struct Error(Vec<Inner>);

/// One of the things that are wrong.
#[derive(Clone, Debug)]
struct Inner {
    fault: FaultParts,
    source: Source,
}

/// The place of values that do not come from the file.
pub(crate) const NOWHERE: Range<usize> = 0..0;

/// What is wrong, as bytes of a text that is not at hand; at least one thing.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Box<FaultParts>, Vec<FaultParts>);

#[derive(Clone, Debug, PartialEq)]
struct FaultParts {
    message: String,
    label: String,
    help: Option<String>,
    /// `None` once it is known to be [`NOWHERE`].
    at: Option<Range<usize>>,
}

impl Fault {
    /// `message` is about the bytes `at`.
    pub(crate) fn at(at: &Range<usize>, message: impl Into<String>) -> Fault {
        let parts = FaultParts {
            message: message.into(),
            label: "here".to_string(),
            help: None,
            at: Some(at.clone()),
        };
        Fault(Box::new(parts), Vec::new())
    }

    /// What is wrong.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// `message` is about the file as a whole.
    pub(crate) fn whole(message: impl Into<String>) -> Fault {
        Fault::at(&NOWHERE, message)
    }

    /// What stands below the marked bytes.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Fault {
        self.0.label = label.into();
        self
    }

    /// How to get it right.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.0.help = Some(help.into());
        self
    }

    /// The same fault in a text that this one is a part of.
    pub(crate) fn shifted(mut self, place: impl Fn(Range<usize>) -> Range<usize>) -> Fault {
        for part in std::iter::once(&mut *self.0).chain(&mut self.1) {
            part.at = part.at.take().map(&place);
        }
        self
    }

    /// Whether something of it is about bytes of `place`.
    pub(crate) fn is_in(&self, place: &Range<usize>) -> bool {
        let mut parts = std::iter::once(&*self.0).chain(&self.1);
        let inside = |at: &Range<usize>| place.start <= at.start && at.end <= place.end;
        parts.any(|part| part.at.as_ref().is_some_and(|at| *at != NOWHERE && inside(at)))
    }

    /// What of it is about places that are `wanted`.
    pub(crate) fn about(self, wanted: impl Fn(&Range<usize>) -> bool) -> Option<Fault> {
        let Fault(first, others) = self;
        let mut parts = std::iter::once(*first).chain(others);
        let is_wanted = |part: &FaultParts| part.at.as_ref().is_some_and(&wanted);
        let first = parts.find(is_wanted)?;
        Some(Fault(Box::new(first), parts.filter(is_wanted).collect()))
    }

    /// Both, each thing once.
    pub(crate) fn and(mut self, other: Fault) -> Fault {
        for part in std::iter::once(*other.0).chain(other.1) {
            if *self.0 != part && !self.1.contains(&part) && self.1.len() < MOST {
                self.1.push(part);
            }
        }
        self
    }
}

/// How many more than one are told at once.
const MOST: usize = 50;

/// What is wrong so far with something of which more is to be read.
#[derive(Debug, Default)]
pub(crate) struct Faults(Option<Fault>);

impl Faults {
    /// What has been read, or nothing if that failed.
    pub(crate) fn take<T>(&mut self, read: Result<T, Fault>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(fault) => {
                self.add(fault);
                None
            }
        }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        self.0 = Some(match self.0.take() {
            Some(others) => others.and(fault),
            None => fault,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Errors: all of them, if there are any.
    pub(crate) fn result(self) -> Result<(), Fault> {
        self.0.map_or(Ok(()), Err)
    }
}

/// A text and the name it is known by.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
    /// Where what was appended to the file begins, if anything was.
    appended_at: Option<usize>,
}

impl Source {
    pub(crate) fn new(path: &Path, text: &str) -> Source {
        Source { name: path.display().to_string(), text: text.into(), appended_at: None }
    }

    /// The text with `line` from the command line behind it.
    pub(crate) fn with(&self, line: &str) -> Source {
        let mut text = self.text.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let appended_at = self.appended_at.or(Some(text.len()));
        text.push_str(line);
        Source { name: self.name.clone(), text: text.into(), appended_at }
    }

    pub(crate) fn error(&self, fault: Fault) -> Error {
        let mut parts: Vec<FaultParts> = std::iter::once(*fault.0).chain(fault.1).collect();
        // What is about the file as a whole comes last.
        let place = |part: &FaultParts| part.at.clone().filter(|at| *at != NOWHERE);
        parts.sort_by_key(|part| place(part).map_or(usize::MAX, |at| at.start));
        Error(parts.into_iter().map(|part| self.about(part)).collect())
    }

    fn about(&self, mut fault: FaultParts) -> Inner {
        fault.at = fault.at.filter(|at| *at != NOWHERE);
        let mut source = self.clone();
        if let (Some(at), Some(begin)) = (&mut fault.at, self.appended_at)
            && at.start >= begin
        {
            // Each option is a line of its own.
            let begin = self.text[..at.start].rfind('\n').map_or(begin, |line| line + 1);
            *at = at.start - begin..at.end - begin;
            // Not a line that the file has.
            source.name = format!("command line for {}", self.name);
            let line = self.text[begin..].lines().next().unwrap_or_default();
            source.text = line.into();
        }
        Inner { fault, source }
    }
}

impl Error {
    /// Where the first of it is: line and column, both from 1 and the column in characters; `None`
    /// if it is about no one place.
    pub fn location(&self) -> Option<(usize, usize)> {
        self.0[0].location()
    }

    /// How to get the first of it right, if it can be said.
    pub fn remedy(&self) -> Option<&str> {
        self.0[0].fault.help.as_deref()
    }

    /// The messages with the lines of the file that they are about, as compilers show them; with
    /// the colours of a terminal if it is `styled`.
    pub fn to_snippet(&self, styled: bool) -> String {
        let all: Vec<String> = self.0.iter().map(|one| one.to_snippet(styled)).collect();
        all.join("\n")
    }

    /// In a line each: `file:line:column: message; remedy`.
    pub fn to_plain(&self) -> String {
        self.0.iter().map(Inner::to_plain).collect::<Vec<_>>().join("\n")
    }
}

impl Inner {
    fn location(&self) -> Option<(usize, usize)> {
        let at = self.fault.at.as_ref()?;
        let before = self.source.text.get(..at.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        Some((line, before[line_start..].chars().count() + 1))
    }

    fn to_snippet(&self, styled: bool) -> String {
        let Inner { fault, source } = self;
        let message = self.to_string();
        let mut report = Group::with_title(Level::ERROR.primary_title(&message));
        if let Some(at) = &fault.at {
            let mark = AnnotationKind::Primary.span(at.clone()).label(&fault.label);
            report =
                report.element(Snippet::source(&*source.text).path(&source.name).annotation(mark));
        }
        if let Some(help) = &fault.help {
            report = report.element(Level::HELP.message(help));
        }
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        format!("{}\n", renderer.render(&[report]))
    }

    fn to_plain(&self) -> String {
        let mut text = self.source.name.clone();
        if let Some((line, column)) = self.location() {
            text += &format!(":{line}:{column}");
        }
        text += &format!(": {}", self.fault.message);
        if let Some(remedy) = &self.fault.help {
            text += &format!("; {remedy}");
        }
        text
    }
}

/// The message. One that is about no one place begins with the name of the file, which is
/// otherwise shown with the place.
impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fault.at.is_none() {
            write!(f, "{}: ", self.source.name)?;
        }
        f.write_str(&self.fault.message)
    }
}

/// The messages, a line each.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.0.iter().enumerate() {
            write!(f, "{}{one}", if number > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
