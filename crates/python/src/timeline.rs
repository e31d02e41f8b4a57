//! What each task did in a run, stretch by stretch.

use crate::frame::{Columns, Frame};
use anysched_core::{CpuId, TaskId, Time};
use anysched_trace::follow::left;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use arrow_array::{Int64Array, StringArray, UInt64Array};
use pyo3::PyResult;
use std::collections::HashMap;

/// The stretches in which tasks run, wait or sleep, on the machine itself: what happens inside of
/// virtual machines is theirs.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Names by serial.
    names: HashMap<u64, String>,
    /// Serials by number, of tasks that are there.
    serials: HashMap<TaskId, u64>,
    open: HashMap<u64, (Doing, Time)>,
    spans: Vec<Span>,
    now: Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Runs(CpuId),
    Waits,
    Sleeps,
}

#[derive(Debug)]
struct Span {
    serial: u64,
    doing: Doing,
    from: Time,
    to: Time,
    ended: Option<&'static str>,
}

impl Timeline {
    fn change(&mut self, task: TaskId, doing: Option<Doing>, ended: Option<&'static str>) {
        let Some(&serial) = self.serials.get(&task) else { return };
        let before = match doing {
            Some(doing) => self.open.insert(serial, (doing, self.now)),
            None => self.open.remove(&serial),
        };
        if let Some((doing, from)) = before
            && (from < self.now || ended.is_some())
        {
            self.spans.push(Span { serial, doing, from, to: self.now, ended });
        }
    }

    /// A line for each stretch, by beginning, then by task.
    pub fn frame(mut self) -> PyResult<Frame> {
        let open = std::mem::take(&mut self.open);
        let unfinished = open.into_iter().filter(|(_, (_, from))| *from < self.now);
        let to = self.now;
        self.spans.extend(unfinished.map(|(serial, (doing, from))| Span {
            serial,
            doing,
            from,
            to,
            ended: None,
        }));
        self.spans.sort_by_key(|span| (span.from, span.serial));
        let spans = &self.spans;
        let name = |span: &Span| self.names.get(&span.serial).map(String::as_str);
        let doing = |span: &Span| match span.doing {
            Doing::Runs(_) => "runs",
            Doing::Waits => "waits",
            Doing::Sleeps => "sleeps",
        };
        let cpu = |span: &Span| match span.doing {
            Doing::Runs(cpu) => Some(i64::from(cpu.0)),
            _ => None,
        };
        let column = |of: fn(&Span) -> u64| -> UInt64Array {
            spans.iter().map(of).collect::<Vec<_>>().into()
        };
        Columns::default()
            .add("task", column(|span| span.serial))
            .add("name", spans.iter().map(name).collect::<StringArray>())
            .add("state", StringArray::from_iter_values(spans.iter().map(doing)))
            .add("cpu", spans.iter().map(cpu).collect::<Int64Array>())
            .add("start_ns", column(|span| span.from.0))
            .add("end_ns", column(|span| span.to.0))
            .add("ended", spans.iter().map(|span| span.ended).collect::<StringArray>())
            .frame()
    }
}

impl Sink for Timeline {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.serials.insert(info.task, info.serial);
        self.names.insert(info.serial, info.label().to_string());
    }

    fn event(&mut self, event: &Event) {
        self.now = event.time;
        match event.kind {
            Kind::Attach { task, .. } => self.change(task, Some(Doing::Waits), None),
            Kind::Wake { task, .. } => self.change(task, Some(Doing::Waits), Some("woken")),
            Kind::Switch { cpu, prev, next } => {
                if let Some((task, why)) = prev {
                    use anysched_core::Off;
                    let then = match why {
                        Off::Blocked => Some(Doing::Sleeps),
                        Off::Exited => None,
                        _ => Some(Doing::Waits),
                    };
                    self.change(task, then, Some(left(why)));
                    if why == Off::Exited {
                        self.serials.remove(&task);
                    }
                }
                if let Some(task) = next {
                    self.change(task, Some(Doing::Runs(cpu)), None);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, time: Time) {
        self.now = self.now.max(time);
    }
}
