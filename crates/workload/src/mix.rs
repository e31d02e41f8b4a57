//! Several loads as one.

use crate::per_task::PerTask;
use crate::{Channel, Load, NewTask, Op, Outside, Sizes};
use anysched_core::{Span, TaskId, Time};

/// Several loads that run at the same time and know nothing of each other.
///
/// Each keeps its own channels, locks and barriers: their numbers are shifted past those of the
/// loads before it. Of what happens at the same time, the load given first comes first.
pub struct Mix {
    parts: Vec<Part>,
    sizes: Sizes,
    /// The part that has something next from outside, and when.
    next: (Time, usize),
    /// The part whose task was created last.
    starting: usize,
    part_of: PerTask<usize>,
}

struct Part {
    load: Box<dyn Load>,
    channels: u32,
    locks: u32,
    barriers: u32,
    /// What its [`Load::peek`] said after the last call that may change it.
    next: Time,
}

impl Mix {
    /// The loads as one. Their objects and what they spawn must be few enough for the numbers of
    /// all together to fit in 32 bits.
    pub fn new(loads: Vec<Box<dyn Load>>) -> Mix {
        let mut sizes = Sizes::default();
        let part = |load: Box<dyn Load>| {
            let (channels, locks) = (sizes.channels, sizes.locks);
            let barriers = sizes.barriers.len() as u32;
            let own = load.sizes();
            sizes.channels += own.channels;
            sizes.locks += own.locks;
            sizes.barriers.extend(own.barriers);
            let next = load.peek();
            Part { load, channels, locks, barriers, next }
        };
        let parts: Vec<Part> = loads.into_iter().map(part).collect();
        let mut mix =
            Mix { parts, sizes, next: (Time::NEVER, 0), starting: 0, part_of: PerTask::default() };
        mix.find_next();
        mix
    }

    /// What is added to the numbers of the channels of each load, in their order.
    pub fn first_channels(&self) -> Vec<u32> {
        self.parts.iter().map(|part| part.channels).collect()
    }

    fn find_next(&mut self) {
        let nexts = self.parts.iter().enumerate().map(|(number, part)| (part.next, number));
        self.next = nexts.min().unwrap_or((Time::NEVER, 0));
    }

    /// Asks a part again whose answer may have changed.
    fn refresh(&mut self, number: usize) {
        let part = &mut self.parts[number];
        let next = part.load.peek();
        if next != part.next {
            part.next = next;
            self.find_next();
        }
    }
}

impl Load for Mix {
    fn sizes(&self) -> Sizes {
        self.sizes.clone()
    }

    fn inboxes(&self) -> Vec<Channel> {
        let own = |part: &Part| {
            let first = part.channels;
            part.load.inboxes().into_iter().map(move |channel| Channel(channel.0 + first))
        };
        self.parts.iter().flat_map(own).collect()
    }

    #[inline]
    fn peek(&self) -> Time {
        self.next.0
    }

    fn outside(&mut self) -> Outside {
        let (_, number) = self.next;
        let part = &mut self.parts[number];
        let mut outside = part.load.outside();
        match &mut outside {
            Outside::Arrival(_) => self.starting = number,
            Outside::Signal(channel) | Outside::Message { channel, .. } => {
                channel.0 += part.channels;
            }
        }
        self.refresh(number);
        outside
    }

    fn spawn(&mut self, what: u32) -> NewTask {
        let parts = self.parts.len() as u32;
        self.starting = (what % parts) as usize;
        self.parts[self.starting].load.spawn(what / parts)
    }

    fn start(&mut self, task: TaskId, now: Time) {
        self.part_of.set(task, self.starting);
        self.parts[self.starting].load.start(task, now);
    }

    #[inline]
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        let number = self.part_of[task];
        let parts = self.parts.len() as u32;
        let part = &mut self.parts[number];
        let mut op = part.load.step(task, now);
        match &mut op {
            Op::Wait(channel)
            | Op::Signal(channel)
            | Op::Write(channel)
            | Op::Notify(channel)
            | Op::Broadcast(channel) => channel.0 += part.channels,
            Op::Lock(lock) | Op::Spin(lock) | Op::Unlock(lock) => lock.0 += part.locks,
            Op::Meet(barrier) => barrier.0 += part.barriers,
            // Part k of n spawns k, k + n, k + 2n, …
            Op::Spawn(what) => *what = *what * parts + number as u32,
            _ => {}
        }
        op
    }

    fn burst(&self, task: TaskId, run: Span) -> Span {
        self.parts[self.part_of[task]].load.burst(task, run)
    }

    fn rests(&self, task: TaskId) -> bool {
        self.parts[self.part_of[task]].load.rests(task)
    }

    fn exited(&mut self, task: TaskId, now: Time) {
        let number = self.part_of[task];
        self.parts[number].load.exited(task, now);
        self.refresh(number);
    }

    fn part(&self, task: TaskId) -> usize {
        self.part_of[task]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, ModelTask, Script};
    use crate::play::play;
    use crate::{Barrier, Lock};
    use std::sync::Arc;

    fn task(arrives: Option<u64>, ops: Vec<Op>) -> ModelTask {
        let script = Arc::new(Script::once(ops));
        ModelTask { arrives: arrives.map(Time), script, ..ModelTask::default() }
    }

    /// A task that spawns another one and waits for its signal and for one from outside; it uses
    /// all its objects.
    fn model(at: u64, run: u64, channels: u32) -> Box<dyn Load> {
        let channel = Channel(channels - 1);
        let first = vec![
            Op::Spawn(1),
            Op::Wait(channel),
            Op::Wait(channel),
            Op::Lock(Lock(0)),
            Op::Meet(Barrier(0)),
            Op::Unlock(Lock(0)),
        ];
        let second = vec![Op::Run(Span(run)), Op::Signal(channel)];
        let sizes = Sizes { channels, locks: 1, barriers: vec![1] };
        let tasks = vec![task(Some(at), first), task(None, second)];
        let signals = vec![(Time(at + 2 * run), channel)];
        let model = Model { tasks, signals, sizes, ..Model::default() };
        Box::new(model.into_load().unwrap())
    }

    #[test]
    fn each_load_keeps_its_objects_and_spawns() {
        let mix = Mix::new(vec![model(5, 10, 3), model(0, 100, 2), model(5, 1, 1)]);
        assert_eq!(mix.sizes(), Sizes { channels: 6, locks: 3, barriers: vec![1, 1, 1] });
        let played = play(mix, Time::NEVER, 1);
        // Tasks in the order in which they are created: part 1 at 0, parts 0 and 2 at 5.
        assert_eq!(played.arrivals(), [0, 0, 5, 5, 5, 5]);
        let first = |start: u64, run: u64, part: u32, channel: u32, parts: u32| {
            let (once, twice) = (start + run, start + 2 * run);
            vec![
                (start, Op::Spawn(parts + part)),
                (start, Op::Wait(Channel(channel))),
                (once, Op::Wait(Channel(channel))),
                (twice, Op::Lock(Lock(part))),
                (twice, Op::Meet(Barrier(part))),
                (twice, Op::Unlock(Lock(part))),
                (twice, Op::Exit),
            ]
        };
        assert_eq!(played.of(0), first(0, 100, 1, 4, 3));
        assert_eq!(played.of(2), first(5, 10, 0, 2, 3));
        assert_eq!(played.of(3), first(5, 1, 2, 5, 3));
        let second = played.of(1);
        assert_eq!(second[..2], [(0, Op::Run(Span(100))), (100, Op::Signal(Channel(4)))]);
    }

    #[test]
    fn ties_go_by_the_order_of_the_loads() {
        let one = |name: &str| -> Box<dyn Load> {
            let mut task = task(Some(7), vec![Op::Run(Span(1))]);
            task.new.name = Some(name.into());
            let model = Model { tasks: vec![task], ..Model::default() };
            Box::new(model.into_load().unwrap())
        };
        let played = play(Mix::new(vec![one("b"), one("a"), one("c")]), Time::NEVER, 1);
        let names: Vec<_> = played.new.iter().map(|(_, new)| new.name.clone().unwrap()).collect();
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["b", "a", "c"]);
    }

    #[test]
    fn a_mix_does_what_its_loads_do_alone() {
        use crate::generate::{Closed, Generator, Settings};
        let dist = |text| crate::dist::Dist::parse(text, std::path::Path::new("")).unwrap();
        let closed = |clients| Closed {
            settings: Settings::default(),
            clients,
            requests: Some(60),
            each: None,
            service: dist("exp(10ms)"),
            think: dist("exp(20ms)"),
            until: None,
            persistent: false,
        };
        let build = |clients| closed(clients).build(u64::from(clients), 1).unwrap();
        let runs = |load: Box<dyn Load>| {
            let played = play(load, Time::NEVER, 1);
            let runs = played.did.into_iter().filter(|did| matches!(did.op, Op::Run(_)));
            runs.map(|did| (did.at, did.op)).collect::<Vec<_>>()
        };
        let mixed = runs(Box::new(Mix::new(vec![build(2), build(5), build(1)])));
        let mut alone = [2, 5, 1].map(build).map(runs).concat();
        alone.sort_by_key(|(at, _)| *at);
        assert_eq!(mixed, alone);
        let nothing = Mix::new(Vec::new());
        assert_eq!((nothing.peek(), nothing.sizes()), (Time::NEVER, Sizes::default()));
    }
}
