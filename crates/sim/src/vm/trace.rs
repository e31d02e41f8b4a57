//! What virtual machines tell a trace.

use anysched_core::TaskId;
use anysched_trace::{Event, Sink, TaskInfo};

/// Keeps the events of a virtual machine until the host passes them on. Those of machines inside
/// it are not kept.
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
