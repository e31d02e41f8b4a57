//! Plays loads on a machine with a CPU for each task, to see what they do.

use crate::{Load, NewTask, Op, Outside};
use anysched_core::{Span, TaskId, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a load did, and when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Did {
    pub(crate) at: Time,
    /// Which task, counted from 0 in the order in which they were created.
    pub(crate) serial: usize,
    pub(crate) op: Op,
}

/// The result of playing a load.
#[derive(Debug, Default)]
pub(crate) struct Played {
    pub(crate) new: Vec<(Time, NewTask)>,
    pub(crate) did: Vec<Did>,
    /// The most tasks alive at the same time.
    pub(crate) most: usize,
    /// What [`Load::burst`] said each time a run was asked for: serial number and time.
    pub(crate) bursts: Vec<(usize, Span)>,
}

impl Played {
    /// The operations of one task.
    pub(crate) fn of(&self, serial: usize) -> Vec<(u64, Op)> {
        let its = self.did.iter().filter(|did| did.serial == serial);
        its.map(|did| (did.at.0, did.op.clone())).collect()
    }

    pub(crate) fn arrivals(&self) -> Vec<u64> {
        self.new.iter().map(|(at, _)| at.0).collect()
    }

    /// The first run of each task that has come so far.
    pub(crate) fn services(&self) -> Vec<u64> {
        let first = |serial| {
            self.of(serial).into_iter().find_map(|(_, op)| match op {
                Op::Run(span) => Some(span.0),
                _ => None,
            })
        };
        (0..self.new.len()).filter_map(first).collect()
    }
}

struct Player<L> {
    load: L,
    played: Played,
    wakes: BinaryHeap<Reverse<(Time, u64, u32)>>,
    pushed: u64,
    /// Per task number, which task it is; free numbers are reused, the last one first.
    serials: Vec<usize>,
    free: Vec<u32>,
    /// Stored signals and waiting tasks of each channel.
    channels: Vec<(u32, VecDeque<u32>)>,
    /// A run takes this many times longer than on a CPU of its own.
    slowdown: u64,
}

/// Plays `load` until nothing is left or `until` has come. A run takes `slowdown` times its CPU
/// time.
pub(crate) fn play(load: impl Load, until: Time, slowdown: u64) -> Played {
    let channels = vec![Default::default(); load.sizes().channels as usize];
    let mut player = Player {
        load,
        played: Played::default(),
        wakes: BinaryHeap::new(),
        pushed: 0,
        serials: Vec::new(),
        free: Vec::new(),
        channels,
        slowdown,
    };
    loop {
        let wake = player.wakes.peek().map_or(Time::NEVER, |&Reverse((at, ..))| at);
        let outside = player.load.peek();
        let now = wake.min(outside);
        if now >= until {
            return player.played;
        }
        if outside <= wake {
            match player.load.outside() {
                Outside::Arrival(new) => player.create(new, now),
                Outside::Signal(channel) | Outside::Message { channel, .. } => {
                    player.signal(channel.0, true, now);
                }
            }
        } else if let Some(Reverse((_, _, task))) = player.wakes.pop() {
            player.go_on(task, now);
        }
    }
}

impl<L: Load> Player<L> {
    fn create(&mut self, new: NewTask, now: Time) {
        let task = self.free.pop().unwrap_or(self.serials.len() as u32);
        if task as usize == self.serials.len() {
            self.serials.push(0);
        }
        self.serials[task as usize] = self.played.new.len();
        self.played.new.push((now, new));
        self.played.most = self.played.most.max(self.serials.len() - self.free.len());
        self.load.start(TaskId(task), now);
        self.wake(task, now);
    }

    fn wake(&mut self, task: u32, at: Time) {
        self.wakes.push(Reverse((at, self.pushed, task)));
        self.pushed += 1;
    }

    fn signal(&mut self, channel: u32, store: bool, now: Time) {
        let (stored, waiting) = &mut self.channels[channel as usize];
        match waiting.pop_front() {
            Some(task) => self.wake(task, now),
            None => *stored += u32::from(store),
        }
    }

    fn go_on(&mut self, task: u32, now: Time) {
        loop {
            let op = self.load.step(TaskId(task), now);
            let serial = self.serials[task as usize];
            self.played.did.push(Did { at: now, serial, op: op.clone() });
            match op {
                Op::Run(span) => {
                    self.played.bursts.push((serial, self.load.burst(TaskId(task), span)));
                    return self.wake(task, now + Span(span.0.saturating_mul(self.slowdown)));
                }
                Op::Sleep(span) => return self.wake(task, now + span),
                Op::Release { at, .. } if at > now => return self.wake(task, at),
                Op::Wait(channel) => {
                    let (stored, waiting) = &mut self.channels[channel.0 as usize];
                    if *stored == 0 {
                        return waiting.push_back(task);
                    }
                    *stored -= 1;
                }
                Op::Signal(channel) | Op::Write(channel) => self.signal(channel.0, true, now),
                Op::Notify(channel) => self.signal(channel.0, false, now),
                Op::Spawn(what) => {
                    let new = self.load.spawn(what);
                    self.create(new, now);
                }
                Op::Exit => {
                    self.free.push(task);
                    return self.load.exited(TaskId(task), now);
                }
                _ => {}
            }
        }
    }
}
