//! The keys of the simulated benchmarks.

use super::{MAX_TASKS, Part, Reader};
use crate::error::Fault;
use anysched_core::Span;
use anysched_workload::generate::{
    Background, Cyclictest, Emulation, Hackbench, Interbench, Schbench,
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

    fn number(&self, key: &str, default: u32) -> Result<u32, Fault> {
        Ok(self.fields.whole(key, 0..=u32::MAX)?.unwrap_or(default))
    }

    fn span_or(&self, key: &str, default: Span) -> Result<Span, Fault> {
        Ok(self.fields.span(key)?.unwrap_or(default))
    }
}
