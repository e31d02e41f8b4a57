//! The trace events of virtual machines.

use anysched_core::TaskId;
use anysched_trace::{Event, Sink, TaskInfo};

/// Buffers the events of a virtual machine until the host passes them on. Events of machines nested
/// inside it are dropped.
pub(crate) struct GuestTrace {
    pub(super) listens: bool,
    pub(super) items: Vec<Traced>,
}

pub(super) enum Traced {
    Task { task: TaskId, serial: u64, name: Option<Box<str>>, nice: i8 },
    Event(Event),
}

impl Sink for GuestTrace {
    #[inline]
    fn listens(&self) -> bool {
        self.listens
    }

    fn task(&mut self, info: &TaskInfo<'_>) {
        if self.listens {
            let &TaskInfo { task, serial, name, nice } = info;
            self.items.push(Traced::Task { task, serial, name: name.map(Box::from), nice });
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        if self.listens {
            self.items.push(Traced::Event(*event));
        }
    }
}
