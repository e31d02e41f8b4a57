//! Breadth first, with merged states, on all cores.
//!
//! A state is kept as the event that led to it and the state before; the policy is brought there by
//! replaying all events from nothing. Each level is searched in blocks, whose results are joined in
//! their order, so that the same search finds the same whatever the number of threads.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::event::Event;
use crate::hash;
use crate::property::{Property, Waited};

/// What has histories: a policy and whatever calls it.
pub trait Histories: Sync {
    /// What may happen.
    type Event: Copy + PartialEq + fmt::Display + Send + Sync;

    /// Everything that may happen after `history`.
    fn events(&self, history: &[Self::Event]) -> Vec<Self::Event>;

    /// The state after `history` and then `event`, the same whenever all that may follow is the
    /// same; `None` if that cannot be said.
    ///
    /// Errors: the last event breaks the contract, and how; a panic is a break like any other.
    fn state(
        &self,
        history: &[Self::Event],
        event: Option<Self::Event>,
    ) -> Result<Option<Vec<u64>>, String>;

    /// Whether `property` holds after `history`. Returns how long a task had to wait, where that
    /// is the property.
    ///
    /// Errors: it does not, and why; a panic is a break like any other.
    fn check(&self, property: Property, history: &[Self::Event]) -> Result<Option<Waited>, String>;

    /// Whether what follows `history` and `event` is what follows `other`, for a future that is
    /// drawn from `seed`.
    ///
    /// Errors: it is not, and from when on.
    fn agree(
        &self,
        other: &[Self::Event],
        history: &[Self::Event],
        event: Self::Event,
        seed: u64,
    ) -> Result<(), String>;
}

/// When a search ends, whatever it has found.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many events a history has at most.
    pub depth: u32,
    /// How long the search may take.
    pub time: Option<Duration>,
    /// How many states may be kept, at about [`STATE_BYTES`] each.
    pub states: usize,
    /// How many threads search.
    pub threads: usize,
}

/// What a kept state takes at most: 16 bytes for itself and 33 in a table of which more than a half
/// may be empty, both of which double as they grow.
pub const STATE_BYTES: usize = 128;

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There is no further state.
    AllStates,
    /// Histories of the given length are complete.
    Depth,
    /// Every property is broken.
    AllBroken,
    /// The time is over.
    Time,
    /// As many states are kept as may be.
    Memory,
}

/// A history after which a property does not hold, of the fewest events.
#[derive(Clone, Debug)]
pub struct Finding<E = Event> {
    /// The property.
    pub property: Property,
    /// What happened.
    pub history: Vec<E>,
    /// What is wrong afterwards.
    pub what: String,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Report<E = Event> {
    /// Why it ended.
    pub end: End,
    /// All histories of up to so many events are checked.
    pub depth: u32,
    /// How many different states there are among them; histories, if states cannot be merged.
    pub states: u64,
    /// How many events were tried.
    pub transitions: u64,
    /// Whether states are merged: whether the policy says its state.
    pub merges: bool,
    /// The first break of each property that is broken.
    pub findings: Vec<Finding<E>>,
    /// The longest that a task waited while others computed, and after which history.
    pub longest: Option<(Waited, Vec<E>)>,
}

impl<E: fmt::Display> Report<E> {
    /// The same with events in words.
    pub fn in_words(&self) -> Report<String> {
        let words = |history: &[E]| history.iter().map(E::to_string).collect();
        let findings = self.findings.iter().map(|finding| Finding {
            property: finding.property,
            history: words(&finding.history),
            what: finding.what.clone(),
        });
        Report {
            end: self.end,
            depth: self.depth,
            states: self.states,
            transitions: self.transitions,
            merges: self.merges,
            findings: findings.collect(),
            longest: self.longest.as_ref().map(|(waited, history)| (*waited, words(history))),
        }
    }
}

/// The first state.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node<E> {
    before: u32,
    event: E,
}

/// Hashes need no hashing.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only u128 is hashed")
    }
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

/// Hashes of states, and where they are in the list of states.
type Seen = HashMap<u128, u32, BuildHasherDefault<AsIs>>;

/// States that one thread takes at a time.
const BLOCK: usize = 64;

/// Of how many states that were seen before one is compared with the one before.
const SAMPLED: u64 = 32;

/// After so few events, all are.
const ALL_UP_TO: usize = 5;

/// Blocks after which results are joined.
const ROUND: usize = 64;

/// A search, as far as threads share it.
struct Search<'a, H: Histories> {
    subject: &'a H,
    /// Properties that no break is known of.
    open: Vec<Property>,
    nodes: Vec<Node<H::Event>>,
    seen: Seen,
    merges: bool,
}

/// What a block of states led to.
struct Found<E> {
    states: Vec<(u128, Node<E>)>,
    transitions: u64,
    breaks: Vec<(Property, u32, Option<E>, String)>,
    longest: Option<(Waited, u32)>,
}

/// Hashes of states that one block has led to.
type Near = HashSet<u128, BuildHasherDefault<AsIs>>;

/// Searches all histories of `subject` for breaks of `properties`. `progress` is told the depth
/// that is being searched and the number of states every now and then.
pub fn search<H: Histories>(
    subject: &H,
    properties: &[Property],
    limits: &Limits,
    progress: &mut dyn FnMut(u32, u64),
) -> Report<H::Event> {
    let began = Instant::now();
    let first = subject.state(&[], None).ok().flatten();
    let mut search = Search {
        subject,
        open: properties.to_vec(),
        nodes: Vec::new(),
        seen: Seen::default(),
        merges: first.is_some(),
    };
    let mut report = Report {
        end: End::Depth,
        depth: 0,
        states: 1,
        transitions: 0,
        merges: search.merges,
        findings: Vec::new(),
        longest: None,
    };
    search.seen.extend(first.map(|words| (hash::of(&words), NOWHERE)));
    // The first level is the first state, which is no node.
    let mut level: Vec<u32> = vec![NOWHERE];
    for depth in 0..=limits.depth {
        let expands = depth < limits.depth;
        let mut next = Vec::new();
        for round in level.chunks(BLOCK * ROUND) {
            progress(depth, report.states);
            let found = search.round(round, expands, limits.threads);
            search.join(found, &mut next, &mut report);
            let is_late = limits.time.is_some_and(|time| began.elapsed() >= time);
            let is_full = search.nodes.len() >= limits.states;
            let is_broken = search.open.is_empty();
            if is_late || is_full || is_broken {
                report.end = match (is_broken, is_late) {
                    (true, _) => End::AllBroken,
                    (_, true) => End::Time,
                    _ => End::Memory,
                };
                return report;
            }
        }
        report.depth = depth;
        if expands && next.is_empty() {
            report.end = End::AllStates;
            return report;
        }
        level = next;
    }
    report
}

impl<H: Histories> Search<'_, H> {
    /// The events that lead to `node`.
    fn history(&self, mut node: u32) -> Vec<H::Event> {
        let mut events = Vec::new();
        while node != NOWHERE {
            let Node { before, event } = self.nodes[node as usize];
            events.push(event);
            node = before;
        }
        events.reverse();
        events
    }

    /// Searches the states of a round on several threads; the results are in the order of blocks.
    fn round(&self, states: &[u32], expands: bool, threads: usize) -> Vec<Found<H::Event>> {
        let blocks: Vec<&[u32]> = states.chunks(BLOCK).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(block) = blocks.get(number) else { return done };
                done.push((number, self.block(block, expands)));
            }
        };
        let mut found: Vec<(usize, Found<H::Event>)> = if threads <= 1 || blocks.len() == 1 {
            work()
        } else {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                let done = workers.into_iter().map(|worker| worker.join());
                done.flat_map(|done| done.unwrap_or_else(|p| panic::resume_unwind(p))).collect()
            })
        };
        found.sort_by_key(|&(number, _)| number);
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn block(&self, states: &[u32], expands: bool) -> Found<H::Event> {
        let mut found =
            Found { states: Vec::new(), transitions: 0, breaks: Vec::new(), longest: None };
        let mut near = Near::default();
        for &state in states {
            let history = self.history(state);
            self.check(state, &history, &mut found);
            if expands {
                self.expand(state, &history, &mut near, &mut found);
            }
        }
        found
    }

    fn is_open(&self, property: Property) -> bool {
        self.open.contains(&property)
    }

    /// Checks the properties of a state.
    fn check(&self, state: u32, history: &[H::Event], found: &mut Found<H::Event>) {
        // The others are checked on the way from one state to the next.
        let of_states =
            |property: &&Property| !matches!(property, Property::Contract | Property::Merge);
        for &property in self.open.iter().filter(of_states) {
            match self.subject.check(property, history) {
                Err(what) => found.breaks.push((property, state, None, what)),
                Ok(Some(waited))
                    if found.longest.is_none_or(|(most, _)| most.time < waited.time) =>
                {
                    found.longest = Some((waited, state));
                }
                Ok(_) => {}
            }
        }
    }

    /// Makes each event happen that may happen next.
    fn expand(
        &self,
        state: u32,
        history: &[H::Event],
        near: &mut Near,
        found: &mut Found<H::Event>,
    ) {
        for event in self.subject.events(history) {
            found.transitions += 1;
            let reached = self.subject.state(history, Some(event));
            let node = Node { before: state, event };
            let hash = match reached {
                Err(what) => {
                    if self.is_open(Property::Contract) {
                        found.breaks.push((Property::Contract, state, Some(event), what));
                    }
                    continue;
                }
                Ok(words) => words.map(|words| hash::of(&words)),
            };
            match hash {
                Some(hash) if self.seen.contains_key(&hash) => {
                    let agreed = self.check_merge(hash, history, event);
                    if let Err(what) = agreed {
                        found.breaks.push((Property::Merge, state, Some(event), what));
                    }
                }
                Some(hash) if !near.insert(hash) => {}
                hash => found.states.push((hash.unwrap_or(0), node)),
            }
        }
    }

    /// Compares, for a sample of states, what follows with what follows from the state that was
    /// found before and is said to be the same.
    fn check_merge(&self, hash: u128, history: &[H::Event], event: H::Event) -> Result<(), String> {
        let is_sampled = history.len() < ALL_UP_TO || ((hash >> 64) as u64).is_multiple_of(SAMPLED);
        let Some(&before) = self.seen.get(&hash).filter(|_| is_sampled) else { return Ok(()) };
        if !self.is_open(Property::Merge) {
            return Ok(());
        }
        let before = self.history(before);
        self.subject.agree(&before, history, event, hash as u64).map_err(|past| {
            let before: Vec<String> = before.iter().map(ToString::to_string).collect();
            format!(
                "the state is said to be that after \"{}\", but differs {past}",
                before.join("; ")
            )
        })
    }

    fn join(
        &mut self,
        round: Vec<Found<H::Event>>,
        next: &mut Vec<u32>,
        report: &mut Report<H::Event>,
    ) {
        for found in round {
            report.transitions += found.transitions;
            for (hash, node) in found.states {
                let number = self.nodes.len() as u32;
                let is_new = !self.merges || *self.seen.entry(hash).or_insert(number) == number;
                if is_new {
                    next.push(number);
                    self.nodes.push(node);
                    report.states += 1;
                } else if let Err(what) =
                    self.check_merge(hash, &self.history(node.before), node.event)
                {
                    self.note(report, Property::Merge, node.before, Some(node.event), what);
                }
            }
            for (property, state, event, what) in found.breaks {
                self.note(report, property, state, event, what);
            }
            if let Some((waited, state)) = found.longest
                && report.longest.as_ref().is_none_or(|(longest, _)| longest.time < waited.time)
            {
                report.longest = Some((waited, self.history(state)));
            }
        }
    }

    /// Notes the first break of a property.
    fn note(
        &mut self,
        report: &mut Report<H::Event>,
        property: Property,
        state: u32,
        event: Option<H::Event>,
        what: String,
    ) {
        if let Some(at) = self.open.iter().position(|&open| open == property) {
            self.open.remove(at);
            let history = self.history(state).into_iter().chain(event).collect();
            report.findings.push(Finding { property, history, what });
        }
    }
}
