//! A schedule drawn with characters, for terminals and for golden results.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_core::{CpuId, Span, TaskId, Time};
use core::fmt;

use crate::guests::{Doing as GuestDoing, Guests, Place};
use crate::{Event, Kind, Sink, TaskInfo};

/// Draws a time window: a line per CPU that says which task ran for most of each column, and a line
/// per task that says where it ran or that it waited. For a task that is a CPU of a virtual
/// machine, the line says which of the guest's tasks it ran, or that it was ready but the host ran
/// something else (`-`: stolen time). Its memory depends on the size of the picture, not on the
/// length of the run.
#[derive(Debug)]
pub struct Gantt {
    from: Time,
    column: Span,
    columns: usize,
    cpus: Vec<CpuLine>,
    /// By serial.
    tasks: BTreeMap<u64, TaskLine>,
    most_tasks: usize,
    /// How many tasks have no line.
    hidden: u64,
    live: BTreeMap<TaskId, Live>,
    now: Time,
    guests: Guests,
    /// The virtual CPUs that are shown.
    virtual_cpus: BTreeMap<Place, CpuLine>,
    /// By virtual machine.
    inside: BTreeMap<usize, Inside>,
}

/// State of a virtual machine.
#[derive(Debug)]
struct Inside {
    name: String,
    /// The first tasks that have names, by their letter.
    tasks: BTreeMap<char, String>,
}

/// What a live task is doing, and since when.
#[derive(Clone, Copy, Debug)]
struct Live {
    serial: u64,
    doing: Doing,
    since: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Away,
    Waiting,
    Running(CpuId),
}

#[derive(Debug)]
struct CpuLine {
    /// What runs, by serial, and since when. [`STOLEN`] runs on virtual CPUs.
    running: Option<(u64, Time)>,
    /// Per column, the task that ran longest so far, and how long.
    cells: Vec<(Option<u64>, Span)>,
    /// The column being filled, and how long each task ran in it.
    open: (usize, Vec<(u64, Span)>),
}

#[derive(Debug)]
struct TaskLine {
    name: String,
    cells: Vec<TaskCell>,
    /// Which virtual CPU the task is, if any.
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TaskCell {
    ran: Span,
    cpu: u16,
    waited: Span,
}

/// The characters that stand for tasks and CPUs; beyond them, `#`.
const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// What runs on a virtual CPU while it is ready and the host runs something else.
const STOLEN: u64 = u64::MAX;
/// A task that was never described.
const UNKNOWN: u64 = u64::MAX - 1;

fn letter(number: u64) -> char {
    if number == STOLEN {
        return '-';
    }
    usize::try_from(number).ok().and_then(|n| LETTERS.get(n)).map_or('#', |&byte| char::from(byte))
}

impl Gantt {
    /// A picture of `from .. until` on `cpus` CPUs, `columns` characters wide plus the names, with
    /// a line for each of the first `most_tasks` tasks.
    pub fn new(cpus: usize, from: Time, until: Time, columns: usize, most_tasks: usize) -> Gantt {
        let columns = columns.max(1);
        let column = Span(until.since(from).0.div_ceil(columns as u64).max(1));
        Gantt {
            from,
            column,
            columns,
            cpus: (0..cpus).map(|_| CpuLine::new(columns)).collect(),
            tasks: BTreeMap::new(),
            most_tasks,
            hidden: 0,
            live: BTreeMap::new(),
            now: from,
            guests: Guests::default(),
            virtual_cpus: BTreeMap::new(),
            inside: BTreeMap::new(),
        }
    }

    fn scale(&self) -> Scale {
        Scale { from: self.from, column: self.column, columns: self.columns }
    }

    fn change(&mut self, task: TaskId, doing: Doing) {
        let now = self.now;
        let Some(live) = self.live.get_mut(&task) else { return };
        let before = core::mem::replace(live, Live { doing, since: now, ..*live });
        self.fill_task(before, now);
    }

    fn fill_task(&mut self, live: Live, now: Time) {
        let parts = self.scale().split(live.since, now);
        let Some(line) = self.tasks.get_mut(&live.serial) else { return };
        for (index, part) in parts {
            let cell = &mut line.cells[index];
            match live.doing {
                Doing::Away => {}
                Doing::Waiting => cell.waited += part,
                Doing::Running(cpu) => {
                    cell.ran += part;
                    cell.cpu = cpu.0;
                }
            }
        }
    }

    fn switch(&mut self, cpu: CpuId, next: Option<u64>) {
        let (scale, now) = (self.scale(), self.now);
        self.cpus[cpu.index()].switch(scale, next, now);
    }

    /// Redraws a virtual CPU whose activity may have changed.
    fn follow(&mut self, place: Place) {
        let (scale, now) = (self.scale(), self.now);
        let Some(line) = self.virtual_cpus.get_mut(&place) else { return };
        let next = match self.guests.doing(place) {
            GuestDoing::Nothing => None,
            GuestDoing::Stolen => Some(STOLEN),
            GuestDoing::Runs(serial, _) => Some(serial.unwrap_or(UNKNOWN)),
        };
        line.switch(scale, next, now);
    }

    /// Fills in what is still running or waiting at `now`.
    pub fn finish(&mut self, now: Time) {
        self.now = now;
        let scale = self.scale();
        for line in self.cpus.iter_mut().chain(self.virtual_cpus.values_mut()) {
            line.switch(scale, None, now);
            line.close();
        }
        for live in core::mem::take(&mut self.live).into_values() {
            self.fill_task(live, now);
        }
    }

    fn write_cpu(&self, f: &mut fmt::Formatter<'_>, line: &CpuLine) -> fmt::Result {
        let half = Span(self.column.0 / 2);
        let cells = line.cells.iter().map(|(task, ran)| match task {
            Some(serial) if *ran >= half => letter(*serial),
            Some(_) => '\'',
            None => ' ',
        });
        let cells: String = cells.collect();
        writeln!(f, "{}", cells.trim_end())
    }

    fn write_task(&self, f: &mut fmt::Formatter<'_>, line: &TaskLine) -> fmt::Result {
        let cells = line.cells.iter().map(|cell| {
            let away = self.column.saturating_sub(cell.ran + cell.waited);
            if cell.ran > Span::ZERO && cell.ran >= cell.waited.max(away) {
                letter(u64::from(cell.cpu))
            } else if cell.waited > Span::ZERO && cell.waited >= away {
                '.'
            } else if cell.ran > Span::ZERO {
                '\''
            } else {
                ' '
            }
        });
        let cells: String = cells.collect();
        writeln!(f, "{}", cells.trim_end())
    }
}

/// Maps times to columns.
#[derive(Clone, Copy)]
struct Scale {
    from: Time,
    column: Span,
    columns: usize,
}

impl Scale {
    /// The columns that `since .. until` touches, and how much of each it covers.
    fn split(self, since: Time, until: Time) -> impl Iterator<Item = (usize, Span)> {
        let (origin, column) = (self.from.0, self.column.0);
        let since = since.0.max(origin) - origin;
        let until = (until.0.max(origin) - origin).min(column * self.columns as u64);
        let first = since / column;
        let last = if until > since { until.div_ceil(column) } else { first };
        (first..last).map(move |index| {
            let (begin, end) = (index * column, (index + 1) * column);
            (index as usize, Span(until.min(end) - since.max(begin)))
        })
    }
}

impl CpuLine {
    fn new(columns: usize) -> CpuLine {
        CpuLine {
            running: None,
            cells: alloc::vec![(None, Span::ZERO); columns],
            open: (0, Vec::new()),
        }
    }

    fn switch(&mut self, scale: Scale, next: Option<u64>, now: Time) {
        let running = core::mem::replace(&mut self.running, next.map(|serial| (serial, now)));
        if let Some((serial, since)) = running {
            for (index, part) in scale.split(since, now) {
                self.fill(index, serial, part);
            }
        }
    }

    fn fill(&mut self, index: usize, serial: u64, part: Span) {
        if self.open.0 != index {
            self.close();
            self.open.0 = index;
        }
        match self.open.1.iter_mut().find(|(other, _)| *other == serial) {
            Some((_, ran)) => *ran += part,
            None => self.open.1.push((serial, part)),
        }
    }

    fn close(&mut self) {
        let (index, tasks) = &mut self.open;
        for (serial, ran) in tasks.drain(..) {
            let cell = &mut self.cells[*index];
            if ran > cell.1 {
                *cell = (Some(serial), ran);
            }
        }
    }
}

impl Sink for Gantt {
    fn task(&mut self, info: &TaskInfo<'_>) {
        let since = self.now;
        self.live.insert(info.task, Live { serial: info.serial, doing: Doing::Away, since });
        if self.tasks.len() < self.most_tasks {
            let name = info.name.map_or_else(|| alloc::format!("task {}", info.serial), Into::into);
            let place = self.guests.place(info.task);
            if let Some(place) = place {
                self.virtual_cpus.insert(place, CpuLine::new(self.columns));
            }
            let cells = alloc::vec![TaskCell::default(); self.columns];
            self.tasks.insert(info.serial, TaskLine { name, cells, place });
        } else {
            self.hidden += 1;
        }
    }

    fn event(&mut self, event: &Event) {
        self.now = event.time;
        match event.kind {
            Kind::Attach { task, .. } | Kind::Wake { task, .. } => {
                self.change(task, Doing::Waiting);
            }
            Kind::Switch { cpu, prev, next } => {
                if let Some((task, why)) = prev {
                    self.change(task, if why.runnable() { Doing::Waiting } else { Doing::Away });
                }
                let serial = next.and_then(|task| self.live.get(&task)).map(|live| live.serial);
                if let Some(task) = next {
                    self.change(task, Doing::Running(cpu));
                }
                self.switch(cpu, serial);
            }
            Kind::Offline { task } => self.change(task, Doing::Away),
            Kind::Kick { .. } | Kind::Migrate { .. } | Kind::State { .. } | Kind::Sample { .. } => {
            }
        }
        if !self.guests.is_empty() {
            for place in self.guests.outside(&event.kind).into_iter().flatten() {
                self.follow(place);
            }
        }
    }

    fn vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        self.guests.start(vm, tasks);
        let inside = Inside { name: name.into(), tasks: BTreeMap::new() };
        self.inside.insert(vm, inside);
    }

    fn vm_end(&mut self, vm: usize, time: Time) {
        self.now = time;
        let tasks: Vec<TaskId> = self.guests.tasks(vm).collect();
        self.guests.stop(vm);
        for (cpu, task) in tasks.into_iter().enumerate() {
            self.follow((vm, cpu));
            if self.live.get(&task).is_some_and(|live| live.doing == Doing::Waiting) {
                self.change(task, Doing::Away);
            }
        }
    }

    fn vm_task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        self.guests.task(vm, info);
        if let (Some(inside), Some(name)) = (self.inside.get_mut(&vm), info.name)
            && info.serial < LETTERS.len() as u64
        {
            inside.tasks.insert(letter(info.serial), name.into());
        }
    }

    fn vm_event(&mut self, vm: usize, event: &Event) {
        self.now = event.time;
        if let Some(place) = self.guests.inside(vm, &event.kind) {
            self.follow(place);
        }
    }
}

/// Width of the column of names.
const NAMES: usize = 16;

impl fmt::Display for Gantt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = Span(self.column.0 * self.columns as u64);
        let (from, until) =
            (Span(self.from.0).to_string(), (Span(self.from.0) + until).to_string());
        let gap = self.columns.saturating_sub(from.len() + until.len());
        writeln!(f, "{:NAMES$}{from}{:gap$}{until}", "", "")?;
        for (cpu, line) in self.cpus.iter().enumerate() {
            write!(f, "{:NAMES$}", alloc::format!("cpu {cpu}"))?;
            self.write_cpu(f, line)?;
        }
        for (&serial, line) in &self.tasks {
            // The names of virtual CPUs differ at their ends.
            let cut = line.name.chars().count().saturating_sub(NAMES - 4);
            let cut = if line.place.is_some() { cut } else { 0 };
            let name: String = line.name.chars().skip(cut).take(NAMES - 4).collect();
            write!(f, "{} {name:14}", letter(serial))?;
            match line.place.and_then(|place| self.virtual_cpus.get(&place)) {
                Some(line) => self.write_cpu(f, line)?,
                None => self.write_task(f, line)?,
            }
        }
        if self.hidden > 0 {
            writeln!(f, "and {} more tasks", self.hidden)?;
        }
        let shown = |vm: usize| self.virtual_cpus.range((vm, 0)..(vm + 1, 0)).next().is_some();
        for (_, inside) in self.inside.iter().filter(|&(&vm, _)| shown(vm)) {
            for (number, (letter, name)) in inside.tasks.iter().enumerate() {
                if number == 0 {
                    write!(f, "in {}: {letter} {name}", inside.name)?;
                } else {
                    write!(f, ", {letter} {name}")?;
                }
            }
            if !inside.tasks.is_empty() {
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Off;

    #[test]
    fn a_schedule_of_two_tasks_on_two_cpus() {
        let mut gantt = Gantt::new(2, Time(0), Time(10), 10, 2);
        let info = |task, name| TaskInfo { task: TaskId(task), serial: task.into(), name, nice: 0 };
        let mut tell = |time, kind| gantt.event(&Event { time: Time(time), kind });
        let run = |cpu, prev, next| Kind::Switch { cpu: CpuId(cpu), prev, next };
        let (a, b) = (TaskId(0), TaskId(1));
        tell(0, Kind::Sample { counter: crate::Counter::Ready, value: 0 });
        gantt.task(&info(0, None));
        gantt.task(&info(1, Some("reader")));
        gantt.task(&info(2, None));
        let mut tell = |time, kind| gantt.event(&Event { time: Time(time), kind });
        tell(0, Kind::Attach { task: a, by: None });
        tell(0, run(0, None, Some(a)));
        tell(2, Kind::Attach { task: b, by: None });
        tell(4, run(0, Some((a, Off::Preempted)), Some(b)));
        tell(5, run(1, None, Some(a)));
        tell(7, run(1, Some((a, Off::Exited)), None));
        tell(8, run(0, Some((b, Off::Blocked)), None));
        gantt.finish(Time(10));
        let expected = "                0     10ns\n\
                        cpu 0           00001111\n\
                        cpu 1                00\n\
                        0 task 0        0000.11\n\
                        1 reader          ..0000\n\
                        and 1 more tasks\n";
        assert_eq!(gantt.to_string(), expected);
    }

    #[test]
    fn the_longest_share_of_a_column_is_shown() {
        let mut gantt = Gantt::new(1, Time(0), Time(20), 2, 2);
        for task in 0..2 {
            let info = TaskInfo { task: TaskId(task), serial: task.into(), name: None, nice: 0 };
            gantt.task(&info);
        }
        let mut tell = |time, prev, next| {
            let kind = Kind::Switch { cpu: CpuId(0), prev, next };
            gantt.event(&Event { time: Time(time), kind });
        };
        tell(0, None, Some(TaskId(0)));
        tell(4, Some((TaskId(0), Off::Yielded)), Some(TaskId(1)));
        tell(10, Some((TaskId(1), Off::Blocked)), Some(TaskId(0)));
        tell(12, Some((TaskId(0), Off::Blocked)), None);
        gantt.finish(Time(20));
        let text = gantt.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "cpu 0           1'");
        assert_eq!(lines[2], "0 task 0        .'");
    }
}
