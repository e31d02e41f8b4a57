//! What is wrong with an experiment, and where in its file.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Why an experiment was refused, with the place in its file. [`Error::to_snippet`] shows the line,
/// [`Error::to_plain`] is one line for where there is no room.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    fault: FaultParts,
    source: Source,
}

/// The place of values that do not come from the file.
pub(crate) const NOWHERE: Range<usize> = 0..0;

/// What is wrong, as bytes of a text that is not at hand.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Box<FaultParts>);

#[derive(Clone, Debug)]
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
        Fault(Box::new(FaultParts {
            message: message.into(),
            label: "here".to_string(),
            help: None,
            at: Some(at.clone()),
        }))
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
        self.0.at = self.0.at.map(place);
        self
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

    pub(crate) fn error(&self, mut fault: Fault) -> Error {
        fault.0.at = fault.0.at.filter(|at| *at != NOWHERE);
        let mut source = self.clone();
        if let (Some(at), Some(begin)) = (&mut fault.0.at, self.appended_at)
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
        Error(Box::new(Inner { fault: *fault.0, source }))
    }
}

impl Error {
    /// Line and column, both from 1 and the column in characters; `None` if the error is about
    /// no one place.
    pub fn location(&self) -> Option<(usize, usize)> {
        let at = self.0.fault.at.as_ref()?;
        let before = self.0.source.text.get(..at.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        Some((line, before[line_start..].chars().count() + 1))
    }

    /// How to get it right, if it can be said.
    pub fn remedy(&self) -> Option<&str> {
        self.0.fault.help.as_deref()
    }

    /// The message with the lines of the file that it is about, as compilers show them; with the
    /// colours of a terminal if it is `styled`.
    pub fn to_snippet(&self, styled: bool) -> String {
        let Inner { fault, source } = &*self.0;
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

    /// In one line: `file:line:column: message; remedy`.
    pub fn to_plain(&self) -> String {
        let mut text = self.0.source.name.clone();
        if let Some((line, column)) = self.location() {
            text += &format!(":{line}:{column}");
        }
        text += &format!(": {}", self.0.fault.message);
        if let Some(remedy) = self.remedy() {
            text += &format!("; {remedy}");
        }
        text
    }
}

/// The message. One that is about no one place begins with the name of the file, which is
/// otherwise shown with the place.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fault.at.is_none() {
            write!(f, "{}: ", self.0.source.name)?;
        }
        f.write_str(&self.0.fault.message)
    }
}

impl std::error::Error for Error {}
