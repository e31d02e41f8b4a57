//! Tracks of virtual machines.

use super::event::{TrackEvent, Type};
use super::proto::{self, InternedData, TracePacket, TrackDescriptor};
use super::{Arg, Name, PerfettoWriter, VMS, argument, interned, packet};
use crate::TaskInfo;
use crate::guests::{Doing, Place};
use anysched_core::{TaskId, Time};
use std::borrow::ToOwned;
use std::format;
use std::io::Write;
use std::string::{String, ToString};
use std::vec::Vec;

/// Above the tracks of all tasks.
const FIRST_TRACK: u64 = 1 << 56;
/// Above the names of all tasks.
const STOLEN: u64 = 1 << 62;

fn vm_track(vm: usize) -> u64 {
    FIRST_TRACK + ((vm as u64) << 20)
}

fn cpu_track((vm, cpu): Place) -> u64 {
    vm_track(vm) + 1 + cpu as u64
}

fn task_name(vm: usize, serial: u64) -> u64 {
    STOLEN + ((vm as u64 + 1) << 40) + serial
}

/// What the tracks of virtual CPUs show.
#[derive(Debug, Default)]
pub(super) struct VirtualCpus {
    /// The open slice, by virtual machine and CPU.
    shown: Vec<Vec<Doing>>,
    /// Those that changed at the current instant. Only the state at its end is shown, so that no
    /// slice has zero length.
    changed: Vec<Place>,
}

impl VirtualCpus {
    pub(super) fn note(&mut self, places: impl IntoIterator<Item = Place>) {
        self.changed.extend(places);
    }
}

impl<W: Write> PerfettoWriter<W> {
    /// Advances the current time to `time`.
    #[inline]
    pub(super) fn go_on_to(&mut self, time: Time) {
        if time > self.now {
            if !self.virtual_cpus.changed.is_empty() {
                self.show_virtual_cpus();
            }
            self.now = time;
        }
    }

    pub(super) fn start_vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        if self.guests.is_empty() {
            self.describe(TrackDescriptor {
                uuid: Some(VMS),
                name: Some("Virtual machines".to_owned()),
                child_ordering: Some(proto::CHILD_ORDERING_EXPLICIT),
                ..TrackDescriptor::default()
            });
            self.intern(STOLEN, "stolen");
        }
        self.guests.start(vm, tasks);
        self.describe_in(VMS, vm_track(vm), name.to_owned(), vm);
        for cpu in 0..tasks.len() {
            self.describe_in(vm_track(vm), cpu_track((vm, cpu)), format!("vCPU {cpu}"), cpu);
        }
        let shown = &mut self.virtual_cpus.shown;
        shown.resize(shown.len().max(vm + 1), Vec::new());
        shown[vm] = std::vec![Doing::Nothing; tasks.len()];
    }

    pub(super) fn end_vm(&mut self, vm: usize) {
        let tasks: Vec<TaskId> = self.guests.tasks(vm).collect();
        for (cpu, task) in tasks.into_iter().enumerate() {
            self.virtual_cpus.note([(vm, cpu)]);
            self.end_ready(task);
        }
        self.guests.stop(vm);
    }

    /// Describes a track, child number `rank` of `parent`.
    fn describe_in(&mut self, parent: u64, uuid: u64, name: String, rank: usize) {
        self.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(parent),
            child_ordering: Some(proto::CHILD_ORDERING_EXPLICIT),
            sibling_order_rank: Some(i32::try_from(rank).unwrap_or(i32::MAX)),
            // Two machines may have the same name.
            sibling_merge_behavior: Some(proto::SIBLING_MERGE_BEHAVIOR_NONE),
            ..TrackDescriptor::default()
        });
    }

    pub(super) fn name_guest_task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        self.intern(task_name(vm, info.serial), &info.label().to_string());
    }

    fn intern(&mut self, iid: u64, text: &str) {
        let event_names = [interned(iid, text)].into();
        let interned_data = Some(InternedData { event_names, ..InternedData::default() });
        self.write(TracePacket { interned_data, ..packet() });
    }

    /// Begins slices for the virtual CPUs whose activity changed.
    #[cold]
    fn show_virtual_cpus(&mut self) {
        let changed = std::mem::take(&mut self.virtual_cpus.changed);
        for &(vm, cpu) in &changed {
            let doing = self.guests.doing((vm, cpu));
            self.show((vm, cpu), doing);
        }
        // Put back to reuse its allocation.
        self.virtual_cpus.changed = changed;
        self.virtual_cpus.changed.clear();
    }

    fn show(&mut self, (vm, cpu): Place, doing: Doing) {
        let before = std::mem::replace(&mut self.virtual_cpus.shown[vm][cpu], doing);
        let track_uuid = cpu_track((vm, cpu));
        if before == doing {
            return;
        }
        if before != Doing::Nothing {
            let r#type = Type::SliceEnd;
            self.put(TrackEvent { r#type, track_uuid, ..TrackEvent::default() });
        }
        let (name_iid, on) = match doing {
            Doing::Nothing => return,
            Doing::Stolen => (STOLEN, None),
            Doing::Runs(None, on) => (Name::Unknown as u64, Some(on)),
            Doing::Runs(Some(serial), on) => (task_name(vm, serial), Some(on)),
        };
        self.put(TrackEvent {
            track_uuid,
            name_iid,
            debug_annotations: [on.map(|cpu| argument(Arg::Cpu, cpu)), None],
            // The same for all slices of a task, whatever its name.
            correlation_id: on.is_some().then_some(name_iid),
            ..TrackEvent::default()
        });
    }

    /// Closes the slices of all virtual CPUs.
    pub(super) fn end_virtual_cpus(&mut self) {
        for vm in 0..self.virtual_cpus.shown.len() {
            for cpu in 0..self.virtual_cpus.shown[vm].len() {
                self.show((vm, cpu), Doing::Nothing);
            }
        }
    }
}
