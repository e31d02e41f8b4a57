//! Counters of what a scheduler says of its state for a task, below the task's track.

use super::event::{TrackEvent, Type};
use super::proto::{self, TrackDescriptor};
use super::{PerfettoWriter, task_track};
use anysched_core::TaskId;
use std::borrow::ToOwned;
use std::io::Write;
use std::vec::Vec;

/// Above the tracks of policies, and below those of virtual machines: so many for each task.
const FIRST_TRACK: u64 = (1 << 55) + (1 << 32);
const MOST: u64 = 32;

/// Which counters there are.
#[derive(Debug, Default)]
pub(super) struct States {
    /// In the order in which they came.
    names: Vec<&'static str>,
    /// By a task's number, its serial and which of its counters have been described, a bit each.
    described: Vec<(u64, u32)>,
}

impl<W: Write> PerfettoWriter<W> {
    /// A counter has another value. Of more than 32 names, the first are shown.
    pub(super) fn show_state(&mut self, task: TaskId, name: &'static str, value: i64) {
        let known = self.known(task);
        let names = &mut self.states.names;
        let at = names.iter().position(|other| *other == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        if known.state == super::State::Unknown || at as u64 >= MOST {
            return;
        }
        let track_uuid = FIRST_TRACK + known.serial * MOST + at as u64;
        let described = &mut self.states.described;
        if described.len() <= task.index() {
            described.resize(task.index() + 1, (u64::MAX, 0));
        }
        let entry = &mut described[task.index()];
        if entry.0 != known.serial {
            *entry = (known.serial, 0);
        }
        if entry.1 >> at & 1 == 0 {
            entry.1 |= 1 << at;
            self.describe(TrackDescriptor {
                uuid: Some(track_uuid),
                name: Some(name.to_owned()),
                parent_uuid: Some(task_track(known.serial)),
                counter: Some(proto::CounterDescriptor { unit_name: None }),
                sibling_order_rank: Some(at as i32),
                sibling_merge_behavior: Some(proto::SIBLING_MERGE_BEHAVIOR_NONE),
                ..TrackDescriptor::default()
            });
        }
        self.put(TrackEvent {
            r#type: Type::Counter,
            track_uuid,
            // A signed number is written as its 64 bits.
            counter_value: Some(value as u64),
            ..TrackEvent::default()
        });
    }
}
