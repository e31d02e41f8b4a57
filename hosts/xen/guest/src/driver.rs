//! dom0 as the driver domain: it takes what machines send, and hands it over when it has been on
//! its way for as long as the experiment says. Messages from outside come through it, too.
//!
//! That takes dom0's CPU time, for which it is scheduled as other domains are.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use anysched_wire::domains::Way;
use anysched_wire::mail::Message;

use crate::events::Port;
use crate::mailbox::{Letter, Mailbox};
use crate::shared;

/// The port of a machine by which dom0 and it call each other: the first of a domain.
pub const PORT: u32 = 1;

/// When a message is tried again for which a machine had no room, after so many nanoseconds.
const AGAIN: u64 = 100_000;

/// A machine that sends and gets messages.
pub struct End {
    pub mailbox: &'static Mailbox,
    pub port: Port,
    /// Where its ports lead.
    pub ways: Vec<Way>,
    /// What comes to it from outside, in order, in nanoseconds of Xen's time; the steps stay with
    /// the machine.
    pub outside: Vec<Message>,
}

/// What is on its way, by when it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: u64,
    serial: u64,
    /// To which machine and which channel of it.
    to: usize,
    channel: u32,
    sent: u64,
    number: Option<u32>,
}

/// All machines by position, those without messages among them.
#[derive(Default)]
pub struct Driver {
    ends: Vec<Option<End>>,
    due: BinaryHeap<Reverse<Due>>,
    serial: u64,
}

impl Driver {
    pub fn new(ends: Vec<Option<End>>) -> Driver {
        let mut driver = Driver { ends, ..Driver::default() };
        (0..driver.ends.len()).for_each(|to| driver.expect(to, 0));
        driver
    }

    /// The ports on which it has to wait.
    pub fn ports(&self) -> impl Iterator<Item = u32> {
        self.ends.iter().flatten().map(|end| end.port.0)
    }

    /// A machine has ended: what comes to it is lost.
    pub fn forget(&mut self, machine: usize) {
        if let Some(end) = self.ends.get_mut(machine) {
            *end = None;
        }
    }

    /// The message with this number is the next that comes to a machine from outside.
    fn expect(&mut self, to: usize, number: u32) {
        let Some(Some(end)) = self.ends.get(to) else { return };
        let Some(&Message { arrives, sent, channel, .. }) = end.outside.get(number as usize) else {
            return;
        };
        self.send(Due { at: arrives, serial: 0, to, channel, sent, number: Some(number) });
    }

    fn send(&mut self, due: Due) {
        self.serial += 1;
        self.due.push(Reverse(Due { serial: self.serial, ..due }));
    }

    /// Passes on all that can be passed on. Returns when something is due next; `u64::MAX`: nothing
    /// is.
    pub fn forward(&mut self) -> u64 {
        loop {
            self.collect();
            let Some(&Reverse(due)) = self.due.peek() else { return u64::MAX };
            if due.at > shared::now() {
                return due.at;
            }
            self.due.pop();
            self.hand_over(due);
        }
    }

    /// Takes what machines send.
    fn collect(&mut self) {
        for from in 0..self.ends.len() {
            let Some(end) = &self.ends[from] else { continue };
            if !end.port.take() {
                continue;
            }
            while let Some(end) = &self.ends[from]
                && let Some(Letter { sent, at, whither, .. }) = end.mailbox.out.take()
            {
                let Some(&Way { machine, channel, delay }) = end.ways.get(whither as usize) else {
                    continue;
                };
                let at = at + delay;
                let to = machine as usize;
                self.send(Due { at, serial: 0, to, channel, sent, number: None });
            }
        }
    }

    fn hand_over(&mut self, due: Due) {
        let Due { at, to, channel, sent, number, .. } = due;
        let Some(Some(end)) = self.ends.get(to) else { return };
        if end.mailbox.come.put(Letter { sent, at, whither: channel, number }) {
            let _ = end.port.send();
            if let Some(number) = number {
                self.expect(to, number + 1);
            }
        } else {
            self.send(Due { at: at + AGAIN, ..due });
        }
    }
}
