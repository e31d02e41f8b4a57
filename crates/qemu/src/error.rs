//! Why a kernel could not be built, or did not do what it should.

use anysched_wire::WireError;
use std::fmt;
use std::time::Duration;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootError {
    /// Something is not installed, or not where it should be.
    Missing {
        /// What.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// Nothing that fits can be had from elsewhere at the moment.
    Unavailable {
        /// What was looked for, and where.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The image could not be built.
    Build {
        /// What the compiler said.
        said: String,
    },
    /// Files that a boot needs could not be written or read.
    Files {
        /// Which, and why.
        why: String,
    },
    /// The kernel, the policy or the program panicked.
    Panicked {
        /// Where and why.
        message: String,
    },
    /// The kernel was silent for too long.
    Hung {
        /// For how long.
        silence: Duration,
        /// What it printed last.
        last: String,
    },
    /// It ended without reporting that it was done.
    Unfinished {
        /// What it printed last.
        last: String,
        /// How QEMU ended.
        status: String,
    },
    /// It cannot do what was asked.
    Refused {
        /// Why.
        why: String,
    },
    /// Its instructions cannot be written, or its output cannot be read.
    Wire {
        /// Which, and why.
        error: WireError,
    },
}

impl BootError {
    /// `what` could not be written or read.
    pub fn files(what: impl fmt::Display, error: impl fmt::Display) -> BootError {
        BootError::Files { why: format!("{what}: {error}") }
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootError::Missing { what, remedy } | BootError::Unavailable { what, remedy } => {
                write!(f, "{what}; {remedy}")
            }
            BootError::Build { said } => write!(f, "the image could not be built:\n{said}"),
            BootError::Files { why } => f.write_str(why),
            BootError::Panicked { message } => write!(f, "the kernel panicked: {message}"),
            BootError::Hung { silence, last } => write!(
                f,
                "the kernel has said nothing for {} s and was ended; last it said \"{last}\" \
                 (`--timeout` waits longer)",
                silence.as_secs()
            ),
            BootError::Unfinished { last, status } => write!(
                f,
                "the kernel ended ({status}) without its last line; last it said \"{last}\""
            ),
            BootError::Refused { why } => write!(f, "the kernel refused to run this: {why}"),
            BootError::Wire { error } => error.fmt(f),
        }
    }
}

impl std::error::Error for BootError {}

impl From<WireError> for BootError {
    fn from(error: WireError) -> BootError {
        BootError::Wire { error }
    }
}
