//! Policies in the machine that this program runs on.

use crate::Place;
use anysched_core::Span;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A policy that is to schedule the running machine, and for how long.
#[derive(Clone, Debug)]
pub struct Attach<'a> {
    /// Its name.
    pub policy: &'a str,
    /// Its parameters, names and values.
    pub settings: &'a [(String, String)],
    /// Where it runs.
    pub place: Place,
    /// Whether policy and host are held to their contract.
    pub checked: bool,
    /// Memory for the policy in bytes.
    pub heap: u64,
    /// Where its calls and answers are recorded, if they are.
    pub record: Option<&'a Path>,
    /// The kernel's end, if it has been built before.
    pub built: Option<Built>,
    /// How it goes wrong, and at which pick; for tests.
    pub fault: Option<(String, u64)>,
    /// For how long.
    pub during: During<'a>,
    /// The time between two samples.
    pub every: Span,
}

/// How long something about the running machine lasts. An interrupt ends each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During<'a> {
    /// Until an interrupt.
    Interrupt,
    /// This long.
    Span(Span),
    /// While this command runs: a program and its arguments.
    Command(&'a [OsString]),
}

/// A kernel's end that has been built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The module with the policies, or the agent.
    pub decider: PathBuf,
    /// The BPF program that asks them.
    pub program: PathBuf,
}

/// What the policy did in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// From the moment at which it was attached to the end of the interval.
    pub elapsed: Span,
    /// The interval's length.
    pub interval: Span,
    /// The CPUs in use, in the order of their numbers.
    pub cpus: Vec<SampledCpu>,
    /// Calls of the policy.
    pub calls: u64,
    /// What they took in all.
    pub called: Span,
    /// The longest call since the policy was attached.
    pub longest: Span,
    /// Bytes of its memory: used, and there.
    pub heap: Option<(u64, u64)>,
    /// The buffer of its log, if it has one.
    pub log: Option<SampledLog>,
    /// How long woken tasks waited: the lowest of each bucket of a histogram, an eighth wide, and
    /// how many.
    pub waited: Vec<(Span, u64)>,
    /// What the policy counts, since it was attached.
    pub tally: Vec<(String, u64)>,
}

/// The buffer of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledLog {
    /// Bytes that have not been taken out.
    pub used: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Records that found no room.
    pub lost: u64,
}

/// A CPU in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledCpu {
    /// Its number.
    pub number: u16,
    /// What it ran at the end.
    pub runs: Option<RunningTask>,
    /// Tasks in its runqueue at the end, when the policy last said.
    pub queued: u64,
    /// Picks that gave it a task.
    pub dispatches: u64,
    /// Running tasks that a kick took off.
    pub preemptions: u64,
    /// Picks of a task that ran on another CPU last.
    pub migrations: u64,
    /// Wake-ups.
    pub wakeups: u64,
}

/// A task that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    /// The policy's number for it.
    pub number: u32,
    /// The kernel's number and the name of the thread, if they are known.
    pub thread: Option<(u32, String)>,
}

/// How an attached policy came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// From beginning to end.
    pub whole: Sample,
    /// Why it ended.
    pub end: End,
    /// Bytes of the log of decisions, if one was recorded.
    pub recorded: Option<u64>,
}

/// Why something about the running machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its time was over.
    Time,
    /// The command has ended with this code; of one that was killed, 128 and the signal's number.
    Command(u8),
    /// A signal of this number.
    Signal(u8),
    /// Another process has ended it.
    Elsewhere,
}

/// Which policy schedules the running machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Its name, if it is one of ours.
    pub policy: Option<String>,
    /// Who schedules, in the kernel's words.
    pub program: String,
    /// Since when, who attached it and with which parameters, a line each.
    pub notes: Vec<String>,
}

/// A recording of the running machine's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording<'a> {
    /// Where to; compressed if the name ends in `.gz`.
    pub output: &'a Path,
    /// For how long.
    pub during: During<'a>,
    /// Memory for what has not been written yet, in bytes.
    pub buffer: u64,
    /// Whether one with losses is kept.
    pub lossy: bool,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The format, as importers call it.
    pub format: &'static str,
    /// Lines of events.
    pub events: u64,
    /// Events that are missing.
    pub lost: u64,
    /// How long it lasted.
    pub elapsed: Span,
    /// Why it ended.
    pub end: End,
}
