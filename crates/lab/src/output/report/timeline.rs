//! What a run did, in few bytes: events, and why the first picks of each wait were made.
//!
//! A timeline is two blocks of streams: what happened, and from `picks` on why, which a page
//! unpacks when it is asked. Each stream is a length of four bytes (little endian) and that many
//! bytes. Numbers in them are LEB128; those that may be negative are zigzag (here: "signed").
//!
//! | stream | of | what |
//! |---|---|---|
//! | kinds | each event | a byte: [`NEW`] and others; a switch: [`SWITCH`] + 2 · why + goes on |
//! | times | each event | nanoseconds since the event before |
//! | cpus | a switch | the CPU |
//! | tasks | all events but switches to idle | serial, signed, less that before |
//! | by | `NEW`, `WAKE` | 0, or 1 + the serial of the task that did it |
//! | jobs | `JOB` | release less now, signed; deadline less release |
//! | picks | each pick that is told | see below |
//! | choices | each choice | serial of who waited, signed, less that before |
//! | reasons | each choice | a byte: [`BY`] and others |
//! | names | `BY`, `DESPITE` | which of the timeline's `values` decided |
//! | values | choices but ties | two, signed: see below |
//!
//! A pick is how many events there were since the one before; nanoseconds since the last event; the
//! CPU; the serial of the task, signed, less that before; and how many choices it was. The values
//! of a choice are those of the task that was picked and of the one that waited; of `QUEUE` as they
//! are, otherwise the former less that of the choice before, and the latter less the same task's
//! last one, at first less the former.

use anysched_core::call::Call;
use anysched_core::registry::First;
use anysched_core::{CpuId, CpuMask, Observer, Off, Pick, Scheduler, TaskId, Time};
use anysched_trace::follow::{Change, Doing, Follow, Waiting};
use anysched_trace::why::{Reason, reason};
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use std::collections::{BTreeMap, BTreeSet};

/// A task is new and ready.
const NEW: u8 = 0;
/// A blocked task is ready.
const WAKE: u8 = 1;
/// A task is not ready any more.
const OFFLINE: u8 = 2;
/// A job with a deadline is released.
const JOB: u8 = 3;
/// Such a job is done.
const DONE: u8 = 4;
/// A CPU switches. Why what ran has stopped: 0 it was idle, 1 its slice ended, 2 preempted,
/// 3 yielded, 4 not run, 5 blocked, 6 ended.
const SWITCH: u8 = 8;

/// A value came before that of the other.
const BY: u8 = 0;
/// It had been ready for longer; the values are since when.
const EARLIER: u8 = 1;
/// The other waits in another runqueue; the values are which.
const QUEUE: u8 = 2;
/// By this value the other would have come first.
const DESPITE: u8 = 3;
/// All values are the same.
const TIE: u8 = 4;
/// The policy has no order that one value tells.
const UNKNOWN: u8 = 5;

/// So many choices of each wait are told, and at most one from another runqueue.
const TOLD: u8 = 3;
/// So many choices of a wait are looked at for them.
const LOOKED_AT: u8 = 12;
/// Where more tasks wait, choices are not told: each of them would have to be looked at.
const MOST_WAITING: usize = 256;

/// Gathers what a run does.
#[derive(Debug)]
pub(crate) struct Recorder {
    order: &'static [First],
    most: u64,
    events: u64,
    tasks: u64,
    names: Vec<(u64, String)>,
    streams: Streams,
    /// By number.
    serials: Vec<u64>,
    last: Last,
    follow: Follow,
    /// Of tasks that wait, by number.
    waiting: BTreeMap<TaskId, Told>,
    /// What the policy says of each just before a pick.
    looked: Vec<(TaskId, Vec<(&'static str, i64)>)>,
    values: Vec<&'static str>,
    /// Tasks with a job that has a deadline.
    due: BTreeSet<TaskId>,
    end: Option<Time>,
}

/// What has been told of a wait.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    own: u8,
    other: u8,
    looked_at: u8,
}

/// Where the deltas begin.
#[derive(Debug, Default)]
struct Last {
    event: u64,
    task: u64,
    /// How many events there had been at a pick, and of which task it was.
    pick: (u64, u64),
    waited: u64,
    /// Of the task that was picked.
    value: i64,
    /// Of those that waited, by serial.
    values: BTreeMap<u64, i64>,
}

#[derive(Debug, Default)]
struct Streams {
    kinds: Vec<u8>,
    times: Vec<u8>,
    cpus: Vec<u8>,
    tasks: Vec<u8>,
    by: Vec<u8>,
    jobs: Vec<u8>,
    picks: Vec<u8>,
    choices: Vec<u8>,
    reasons: Vec<u8>,
    names: Vec<u8>,
    values: Vec<u8>,
}

/// What has been gathered of a run.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// How many events there are.
    pub(crate) events: u64,
    /// How many tasks.
    pub(crate) tasks: u64,
    /// The names of those that have one, by serial.
    pub(crate) names: Vec<(u64, String)>,
    /// The names of the values that decided choices.
    pub(crate) values: Vec<&'static str>,
    /// The time of the last event, or when the run ended.
    pub(crate) until: Time,
    /// Whether the run ended then.
    pub(crate) ended: bool,
    /// The streams of events.
    pub(crate) block: Vec<u8>,
    /// The streams of choices.
    pub(crate) choices: Vec<u8>,
}

/// Streams one after the other, each after its length.
fn joined(streams: &[&Vec<u8>]) -> Vec<u8> {
    let mut block = Vec::new();
    for stream in streams {
        block.extend_from_slice(&(stream.len() as u32).to_le_bytes());
        block.extend_from_slice(stream);
    }
    block
}

fn unsigned(stream: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        stream.push(number as u8 | 0x80);
        number >>= 7;
    }
    stream.push(number as u8);
}

fn signed(stream: &mut Vec<u8>, number: i64) {
    unsigned(stream, ((number << 1) ^ (number >> 63)) as u64);
}

impl Recorder {
    /// Of a run on so many CPUs, under a policy with this order; at most so many events.
    pub(crate) fn new(cpus: usize, order: &'static [First], most: u64) -> Recorder {
        Recorder {
            order,
            most,
            events: 0,
            tasks: 0,
            names: Vec::new(),
            streams: Streams::default(),
            serials: Vec::new(),
            last: Last::default(),
            follow: Follow::of(cpus),
            waiting: BTreeMap::new(),
            looked: Vec::new(),
            values: Vec::new(),
            due: BTreeSet::new(),
            end: None,
        }
    }

    /// Whether nothing more is gathered.
    pub(crate) fn is_full(&self) -> bool {
        self.events >= self.most
    }

    /// The run is over, or has been ended.
    pub(crate) fn finish(self) -> Timeline {
        let s = &self.streams;
        let events = [&s.kinds, &s.times, &s.cpus, &s.tasks, &s.by, &s.jobs];
        let choices = [&s.picks, &s.choices, &s.reasons, &s.names, &s.values];
        Timeline {
            events: self.events,
            tasks: self.tasks,
            names: self.names,
            values: self.values,
            until: self.end.unwrap_or(Time(self.last.event)),
            ended: self.end.is_some(),
            block: joined(&events),
            choices: joined(&choices),
        }
    }

    /// An event begins; `None`: no more are gathered.
    fn begin(&mut self, kind: u8, time: Time) -> Option<()> {
        if self.is_full() {
            return None;
        }
        self.events += 1;
        self.streams.kinds.push(kind);
        unsigned(&mut self.streams.times, time.0 - self.last.event);
        self.last.event = time.0;
        Some(())
    }

    fn serial(&self, task: TaskId) -> u64 {
        self.serials.get(task.index()).copied().unwrap_or_default()
    }

    fn task_of_event(&mut self, task: TaskId) {
        let serial = self.serial(task);
        signed(&mut self.streams.tasks, serial as i64 - self.last.task as i64);
        self.last.task = serial;
    }

    fn ready(&mut self, kind: u8, time: Time, task: TaskId, by: Option<TaskId>) -> Option<()> {
        self.begin(kind, time)?;
        self.task_of_event(task);
        let by = by.map_or(0, |by| self.serial(by) + 1);
        unsigned(&mut self.streams.by, by);
        Some(())
    }

    fn take(&mut self, event: &Event) -> Option<()> {
        match event.kind {
            Kind::Attach { task, by } => self.ready(NEW, event.time, task, by),
            Kind::Wake { task, by, .. } => self.ready(WAKE, event.time, task, by),
            Kind::Offline { task } => {
                self.begin(OFFLINE, event.time)?;
                self.task_of_event(task);
                Some(())
            }
            Kind::Switch { cpu, prev, next } => {
                let why = prev.map_or(0, |(_, off)| match off {
                    Off::Expired => 1,
                    Off::Preempted => 2,
                    Off::Yielded => 3,
                    Off::NotRun => 4,
                    Off::Blocked => 5,
                    Off::Exited => 6,
                });
                self.begin(SWITCH + 2 * why + u8::from(next.is_some()), event.time)?;
                unsigned(&mut self.streams.cpus, cpu.0.into());
                if let Some(task) = next {
                    self.task_of_event(task);
                }
                Some(())
            }
            Kind::Kick { .. } | Kind::Migrate { .. } | Kind::State { .. } | Kind::Sample { .. } => {
                Some(())
            }
        }
    }

    /// `chosen`, ready since then, has been picked for a CPU: what that means for tasks that wait.
    fn choose(&mut self, now: Time, cpu: u16, chosen: TaskId, since: Time) {
        let Some(at) = self.looked.iter().position(|(task, _)| *task == chosen) else { return };
        let looked = std::mem::take(&mut self.looked);
        let mut choices = 0;
        for (task, values) in looked.iter().filter(|(task, _)| *task != chosen) {
            let Some(known) = self.follow.task(*task) else { continue };
            let Doing::Waits(Waiting { since: own, .. }) = known.doing else { continue };
            if !known.affinity.contains(CpuId(cpu)) {
                continue;
            }
            let told = self.waiting.entry(*task).or_default();
            if told.own >= TOLD || told.looked_at >= LOOKED_AT {
                continue;
            }
            told.looked_at += 1;
            let found = reason(self.order, (&looked[at].1, since), (values, own));
            let told = match found {
                Reason::OtherQueue { .. } if told.other > 0 => continue,
                Reason::OtherQueue { .. } => &mut told.other,
                _ => &mut told.own,
            };
            *told += 1;
            choices += 1;
            self.tell(*task, &found);
        }
        self.looked = looked;
        if choices > 0 {
            let (events, chosen) = (self.events, self.serial(chosen));
            let last = std::mem::replace(&mut self.last.pick, (events, chosen));
            let picks = &mut self.streams.picks;
            unsigned(picks, events - last.0);
            unsigned(picks, now.0.saturating_sub(self.last.event));
            unsigned(picks, cpu.into());
            signed(picks, chosen.wrapping_sub(last.1) as i64);
            unsigned(picks, choices);
        }
    }

    /// Another task was picked and not `waits`.
    fn tell(&mut self, waits: TaskId, reason: &Reason) {
        let waits = self.serial(waits);
        let streams = &mut self.streams;
        signed(&mut streams.choices, waits.wrapping_sub(self.last.waited) as i64);
        self.last.waited = waits;
        let (code, name, values) = match *reason {
            Reason::By { name, chosen, other } => (BY, Some(name), Some((chosen, other))),
            Reason::Despite { name, chosen, other } => (DESPITE, Some(name), Some((chosen, other))),
            Reason::Earlier { chosen, other } => {
                (EARLIER, None, Some((chosen.0 as i64, other.0 as i64)))
            }
            Reason::OtherQueue { chosen, other } => (QUEUE, None, Some((chosen, other))),
            Reason::Tie => (TIE, None, None),
            Reason::Unknown => (UNKNOWN, None, None),
        };
        streams.reasons.push(code);
        if let Some(name) = name {
            let place = self.values.iter().position(|known| *known == name);
            let place = place.unwrap_or_else(|| {
                self.values.push(name);
                self.values.len() - 1
            });
            unsigned(&mut streams.names, place as u64);
        }
        match values {
            None => {}
            Some((chosen, other)) if code == QUEUE => {
                signed(&mut streams.values, chosen);
                signed(&mut streams.values, other);
            }
            Some((chosen, other)) => {
                signed(&mut streams.values, chosen.wrapping_sub(self.last.value));
                self.last.value = chosen;
                let last = self.last.values.insert(waits, other).unwrap_or(chosen);
                signed(&mut streams.values, other.wrapping_sub(last));
            }
        }
    }
}

impl Sink for Recorder {
    fn task(&mut self, info: &TaskInfo<'_>) {
        if self.serials.len() <= info.task.index() {
            self.serials.resize(info.task.index() + 1, 0);
        }
        self.serials[info.task.index()] = info.serial;
        self.follow.describe(info);
        if self.is_full() {
            return;
        }
        self.tasks = self.tasks.max(info.serial + 1);
        if let Some(name) = info.name.filter(|name| !name.is_empty()) {
            self.names.push((info.serial, name.to_string()));
        }
    }

    fn event(&mut self, event: &Event) {
        self.take(event);
    }

    fn job(&mut self, task: TaskId, release: Time, deadline: Option<Time>) {
        let now = self.last.event;
        self.due.remove(&task);
        let Some(deadline) = deadline else { return };
        if self.begin(JOB, Time(now)).is_some() {
            self.due.insert(task);
            self.task_of_event(task);
            signed(&mut self.streams.jobs, release.0 as i64 - now as i64);
            unsigned(&mut self.streams.jobs, deadline.since(release).0);
        }
    }

    fn job_done(&mut self, task: TaskId, time: Time) {
        if self.due.remove(&task) && self.begin(DONE, time.max(Time(self.last.event))).is_some() {
            self.task_of_event(task);
        }
    }

    fn end(&mut self, time: Time) {
        if !self.is_full() {
            self.end = Some(time.max(Time(self.last.event)));
        }
    }
}

impl Observer for Recorder {
    fn before(&mut self, _: Time, call: &Call<'_>, policy: &dyn Scheduler) {
        self.looked.clear();
        let Call::PickNext { .. } = call else { return };
        let is_open = |told: &Told| told.own < TOLD && told.looked_at < LOOKED_AT;
        if self.is_full()
            || !(2..=MOST_WAITING).contains(&self.waiting.len())
            || !self.waiting.values().any(is_open)
        {
            return;
        }
        for &task in self.waiting.keys() {
            let mut values = Vec::new();
            policy.probe(task, &mut |name, value| values.push((name, value)));
            self.looked.push((task, values));
        }
    }

    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        _: &CpuMask,
        _: &dyn Scheduler,
    ) {
        match self.follow.take(now, call, pick) {
            Change::Ready(task) => {
                self.waiting.insert(task, Told::default());
            }
            Change::Left(_, task, _, off) if off.runnable() => {
                self.waiting.insert(task, Told::default());
            }
            Change::Picked(cpu, task, waited, _) => {
                self.waiting.remove(&task);
                self.choose(now, cpu.0, task, waited.since);
            }
            Change::Withdrawn(task) => {
                self.waiting.remove(&task);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_page_reads_them() {
        let mut stream = Vec::new();
        [0, 127, 128, u64::MAX].into_iter().for_each(|number| unsigned(&mut stream, number));
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(stream, [&[0, 127, 0x80, 1][..], &most].concat());
        stream.clear();
        [0, -1, 1, -64, i64::MIN].into_iter().for_each(|number| signed(&mut stream, number));
        assert_eq!(stream, [&[0, 1, 2, 127][..], &most].concat());
    }
}
