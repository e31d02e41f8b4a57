//! The keys of the simulated benchmarks.

use super::{MAX_TASKS, Part, Reader};
use crate::error::Fault;
use crate::fields;
use crate::tree::Node;
use anysched_core::Span;
use anysched_workload::generate::{
    ArceosCase, ArceosTest, Background, Cyclictest, Emulation, Groups, Hackbench, Interbench,
    Schbench,
};

impl Reader<'_> {
    pub(super) fn interbench(self, cpus: usize) -> Result<Part, Fault> {
        let custom = Emulation::Custom {
            run: self.span_or("custom_run", Span::from_ms(5))?,
            interval: self.span_or("custom_interval", Span::from_ms(50))?,
        };
        let burn = Background::Burn(self.number("burners", 4)?);
        let tasks = [
            ("x", Emulation::X),
            ("audio", Emulation::Audio),
            ("video", Emulation::Video),
            ("gaming", Emulation::Gaming),
            ("custom", custom),
        ];
        let loads = [("burn", burn), ("none", Background::None)].into_iter();
        let emulated = tasks.map(|(name, task)| (name, Background::Emulated(task)));
        let loads: Vec<_> = loads.chain(emulated).collect();
        let load = Interbench {
            settings: self.settings()?,
            task: self.choice("task", &tasks)?,
            against: self.choice("against", &loads)?,
            load_nice: self.fields.whole("load_nice", -20..=19)?.unwrap_or(0),
            pause: self.span_or("pause", Span::from_s(1))?,
            duration: self.span_or("duration", Span::from_s(30))?,
        };
        self.generated(load, cpus)
    }

    pub(super) fn cyclictest(self, cpus: usize) -> Result<Part, Fault> {
        let load = Cyclictest {
            settings: self.settings()?,
            threads: self.number("threads", 1)?,
            interval: self.span_or("interval", Span::from_us(1000))?,
            distance: self.span_or("distance", Span::from_us(500))?,
            loops: self.fields.whole("loops", 0..=MAX_TASKS)?,
            duration: self.fields.span("duration")?,
        };
        self.generated(load, cpus)
    }

    pub(super) fn schbench(self, cpus: usize) -> Result<Part, Fault> {
        let load = Schbench {
            settings: self.settings()?,
            message_threads: self.number("message_threads", 1)?,
            workers: self.fields.whole("workers", 0..=u32::MAX)?,
            sleep: self.span_or("sleep", Span::from_us(100))?,
            work: self.span_or("work", Span::from_ms(17))?,
            duration: self.span_or("duration", Span::from_s(30))?,
        };
        self.generated(load, cpus)
    }

    pub(super) fn hackbench(self, cpus: usize) -> Result<Part, Fault> {
        let load = Hackbench {
            settings: self.settings()?,
            groups: self.number("groups", 10)?,
            fds: self.number("fds", 20)?,
            loops: self.number("loops", 100)?,
            send: self.span_or("send", Span::from_us(1))?,
            receive: self.span_or("receive", Span::from_us(1))?,
            buffer: self.number("buffer", 640)?,
        };
        self.generated(load, cpus)
    }

    pub(super) fn arceos_test(self, cpus: usize) -> Result<Part, Fault> {
        self.fields.need("case", "\"equal\"")?;
        let case = self.choice("case", &ArceosCase::ALL.map(|case| (case.name(), case)))?;
        let load = ArceosTest {
            case,
            settings: self.settings()?,
            tasks: self.groups(case.tasks())?,
            iteration_ps: self.picoseconds("iteration")?.unwrap_or(case.iteration_ps()),
            duration: self.fields.span("duration")?.or(case.duration()),
        };
        self.generated(load, cpus)
    }

    /// What the tasks do, if it is not what `known` says. Without a number of threads, there are
    /// as many as in a list, or as known.
    fn groups(&self, known: Vec<Groups>) -> Result<Vec<Groups>, Fault> {
        let groups = self.fields.get("groups").map(|node| each(node, "groups")).transpose()?;
        let iterations = self.fields.get("iterations");
        let iterations = iterations.map(|node| each(node, "iterations")).transpose()?;
        let lists = [("groups", &groups), ("iterations", &iterations)];
        let listed = lists.into_iter().find_map(|(key, list)| match list {
            Some(list) if list.len() > 1 => Some((key, list.len())),
            _ => None,
        });
        let threads = match (self.fields.whole("threads", 0..=MAX_THREADS)?, listed) {
            (Some(threads), _) => threads as usize,
            (None, Some((_, listed))) => listed,
            (None, None) => known.len(),
        };
        for (key, list) in lists {
            let Some(list) = list.as_ref().filter(|list| list.len() > 1) else { continue };
            if list.len() != threads {
                let at = self.fields.get(key).map_or(&self.node.at, |node| &node.at);
                let (has, what) = (list.len(), "one number for all, or a list with one for each");
                let message = format!("`{key}` has {has} numbers, and there are {threads} threads");
                return Err(Fault::at(at, message).help(what));
            }
        }
        // More threads than known do what the last known does.
        let of = |list: &Option<Vec<u64>>, thread: usize, known: u64| match list.as_deref() {
            None => known,
            Some([all]) => *all,
            Some(list) => list[thread],
        };
        let task = |thread: usize| {
            let known = known[thread.min(known.len() - 1)];
            let groups = of(&groups, thread, known.groups);
            Groups { groups, iterations: of(&iterations, thread, known.iterations) }
        };
        Ok((0..threads).map(task).collect())
    }

    /// A time in ps: what is a nanosecond elsewhere may have three digits behind the point.
    fn picoseconds(&self, key: &str) -> Result<Option<u64>, Fault> {
        let Some(node) = self.fields.get(key) else { return Ok(None) };
        let text = fields::text(node, key)?;
        let thousandfold = [("ps", "ns"), ("ns", "us"), ("us", "ms")].into_iter();
        let mut read = thousandfold.filter_map(|(unit, next)| {
            let number =
                text.trim().strip_suffix(unit).filter(|n| !n.ends_with(['n', 'u', 'p']))?;
            Span::parse(&format!("{number}{next}")).ok()
        });
        read.next().map(|span| Some(span.0)).ok_or_else(|| {
            Fault::at(&node.at, format!("`{key}` = {} is not the time of an iteration", node))
                .help("a number of ps, ns or us, for example \"2.28ns\"")
        })
    }

    fn number(&self, key: &str, default: u32) -> Result<u32, Fault> {
        Ok(self.fields.whole(key, 0..=u32::MAX)?.unwrap_or(default))
    }

    fn span_or(&self, key: &str, default: Span) -> Result<Span, Fault> {
        Ok(self.fields.span(key)?.unwrap_or(default))
    }
}

/// A task costs some memory.
const MAX_THREADS: u64 = 1 << 16;

/// A number for all tasks, or a list with one for each.
fn each(node: &Node, key: &str) -> Result<Vec<u64>, Fault> {
    let range = 0..=MAX_TASKS;
    match node.as_list() {
        None => Ok(vec![fields::whole(node, key, range)?]),
        Some([]) => Err(Fault::at(&node.at, format!("`{key}` is an empty list"))
            .help("one number for all, or a list with one for each")),
        Some(list) => list.iter().map(|item| fields::whole(item, key, range.clone())).collect(),
    }
}
