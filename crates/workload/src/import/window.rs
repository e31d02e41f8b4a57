//! Which part of a file is read.

use crate::kinds::keys;
use anysched_core::Span;

keys! {
    /// The keys of a part of a file, by time.
    pub struct Window {
        /// What comes before this time is left out; times of the load count from it.
        from: Span = "0s", eg "10s";
        /// What comes at this time or later is left out.
        until: Option<Span> = none "no limit", eg "60s";
    }
}

impl Default for Window {
    fn default() -> Window {
        Window { from: Span::ZERO, until: None }
    }
}

impl Window {
    /// Whether `at` is in it.
    pub fn has(&self, at: Span) -> bool {
        at >= self.from && !self.is_past(at)
    }

    /// Whether `at` is behind it.
    pub fn is_past(&self, at: Span) -> bool {
        self.until.is_some_and(|until| at >= until)
    }

    /// Whether it leaves anything out.
    pub fn is_whole(&self) -> bool {
        *self == Window::default()
    }
}

/// In words, for messages.
impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "from {}", self.from)?;
        self.until.map_or(Ok(()), |until| write!(f, " until {until}"))
    }
}
