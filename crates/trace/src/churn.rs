//! A stream with no end in sight, for tests of memory.

use crate::{Counter, Event, Kind, Sink, TaskInfo};
use anysched_core::{CpuId, Off, TaskId, Time};
use std::format;

/// Tasks that live for eight events each, at most `live` at once.
pub(crate) fn churn(sink: &mut impl Sink, events: u64, live: u32) {
    for serial in 0..events / 8 {
        let task = TaskId((serial % u64::from(live)) as u32);
        let cpu = CpuId((serial % 4) as u16);
        let name = format!("task-{serial}");
        sink.task(&TaskInfo { task, serial, name: Some(&name), nice: 0 });
        let kinds = [
            Kind::Attach { task, by: None },
            Kind::Switch { cpu, prev: None, next: Some(task) },
            Kind::Switch { cpu, prev: Some((task, Off::Blocked)), next: None },
            Kind::Wake { task, by: None, cpu: None },
            Kind::Switch { cpu, prev: None, next: Some(task) },
            Kind::Kick { cpu },
            Kind::Sample { counter: Counter::Busy, value: serial },
            Kind::Switch { cpu, prev: Some((task, Off::Exited)), next: None },
        ];
        for kind in kinds {
            sink.event(&Event { time: Time(serial), kind });
        }
    }
}
