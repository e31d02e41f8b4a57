//! A schedule as a picture: with characters, for terminals and for golden results, or as SVG.

mod svg;
mod text;
mod ticks;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use anysched_core::{CpuId, Off, Span, TaskId, Time};

pub use svg::{SVG_COLUMNS, svg};
pub use text::NAMES;

use crate::guests::{Doing as GuestDoing, Guests, Place};
use crate::{Event, Kind, Sink, TaskInfo};

/// Draws a time window: a line per CPU that says which task ran for most of each column, and a line
/// per task that says where it ran or that it waited. For a task that is a CPU of a virtual
/// machine, the line says which of the guest's tasks it ran, or that it was ready but the host ran
/// something else (`-`: stolen time). Its memory depends on the size of the picture, not on the
/// length of the run.
#[derive(Debug)]
pub struct Gantt {
    scale: Scale,
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
    /// Marks are shown, whether there are deadlines or not.
    marks: bool,
    /// The deadlines of jobs that are not done, by task.
    due: BTreeMap<TaskId, Time>,
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
    /// Per column.
    cells: Vec<CpuCell>,
    /// The column being filled, and how long each task ran in it.
    open: (usize, Vec<(u64, Span)>),
}

/// What a CPU did in a column.
#[derive(Clone, Copy, Debug, Default)]
struct CpuCell {
    /// The task that ran longest, and how long.
    task: Option<u64>,
    ran: Span,
    /// How long all ran.
    busy: Span,
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
    marks: u8,
}

/// Marks of a task in a column.
mod mark {
    /// It became ready by something outside it: it arrived, was released or woken.
    pub(super) const READY: u8 = 1;
    /// A job was due.
    pub(super) const DUE: u8 = 2;
    /// That job was late.
    pub(super) const MISSED: u8 = 4;
    /// It was taken off its CPU for another.
    pub(super) const PREEMPTED: u8 = 8;
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
        Gantt {
            scale: Scale { from, length: until.since(from).0.max(1), columns },
            cpus: (0..cpus).map(|_| CpuLine::new(columns)).collect(),
            tasks: BTreeMap::new(),
            most_tasks,
            hidden: 0,
            live: BTreeMap::new(),
            now: from,
            guests: Guests::default(),
            virtual_cpus: BTreeMap::new(),
            inside: BTreeMap::new(),
            marks: false,
            due: BTreeMap::new(),
        }
    }

    /// The same picture, in which marks below a task's line say when it became ready, was
    /// preempted, and its jobs were due; otherwise only pictures with deadlines have marks.
    pub fn with_marks(self) -> Gantt {
        Gantt { marks: true, ..self }
    }

    /// Marks the column of a task in which `at` is.
    fn mark(&mut self, task: TaskId, at: Time, mark: u8) {
        let column = self.scale.column(at);
        let Some(live) = self.live.get(&task) else { return };
        let line = self.tasks.get_mut(&live.serial);
        if let Some(cell) = line.zip(column).and_then(|(line, column)| line.cells.get_mut(column)) {
            cell.marks |= mark;
        }
    }

    fn change(&mut self, task: TaskId, doing: Doing) {
        let now = self.now;
        let Some(live) = self.live.get_mut(&task) else { return };
        let before = core::mem::replace(live, Live { doing, since: now, ..*live });
        self.fill_task(before, now);
    }

    fn fill_task(&mut self, live: Live, now: Time) {
        let parts = self.scale.split(live.since, now);
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
        let (scale, now) = (self.scale, self.now);
        self.cpus[cpu.index()].switch(scale, next, now);
    }

    /// Redraws a virtual CPU whose activity may have changed.
    fn follow(&mut self, place: Place) {
        let (scale, now) = (self.scale, self.now);
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
        let scale = self.scale;
        let late: Vec<_> = self.due.iter().filter(|(_, due)| **due < now).collect();
        let late: Vec<(TaskId, Time)> = late.into_iter().map(|(task, due)| (*task, *due)).collect();
        late.into_iter().for_each(|(task, due)| self.mark(task, due, mark::MISSED));
        for line in self.cpus.iter_mut().chain(self.virtual_cpus.values_mut()) {
            line.switch(scale, None, now);
            line.close();
        }
        for live in core::mem::take(&mut self.live).into_values() {
            self.fill_task(live, now);
        }
    }
}

/// Maps times to columns, which cover the picture's time exactly.
#[derive(Clone, Copy, Debug)]
struct Scale {
    from: Time,
    /// In ns, above zero.
    length: u64,
    columns: usize,
}

impl Scale {
    /// Where a column begins, or the one before ends, in ns since the start.
    fn begin(self, column: usize) -> u64 {
        (u128::from(self.length) * column as u128 / self.columns as u128) as u64
    }

    /// How much time a column is.
    fn width(self, column: usize) -> Span {
        Span(self.begin(column + 1) - self.begin(column))
    }

    /// The end of the picture.
    fn until(self) -> Time {
        self.from + Span(self.length)
    }

    /// The column in which a time is; the end belongs to the last one.
    fn column(self, at: Time) -> Option<usize> {
        if at < self.from || at > self.until() {
            return None;
        }
        let passed = at.since(self.from).0;
        let about = u128::from(passed) * self.columns as u128 / u128::from(self.length);
        let mut column = (about as usize).min(self.columns - 1);
        while column + 1 < self.columns && self.begin(column + 1) <= passed {
            column += 1;
        }
        Some(column)
    }

    /// The columns that `since .. until` touches, and how much of each it covers.
    fn split(self, since: Time, until: Time) -> impl Iterator<Item = (usize, Span)> {
        let (since, until) = (since.max(self.from), until.min(self.until()));
        let first = if since < until { self.column(since) } else { None };
        let (since, until) = (since.since(self.from).0, until.since(self.from).0);
        let columns = first.map_or(0..0, |first| first..self.columns);
        columns.take_while(move |&index| self.begin(index) < until).map(move |index| {
            let (begin, end) = (self.begin(index), self.begin(index + 1));
            (index, Span(until.min(end).saturating_sub(since.max(begin))))
        })
    }
}

impl CpuLine {
    fn new(columns: usize) -> CpuLine {
        CpuLine {
            running: None,
            cells: alloc::vec![CpuCell::default(); columns],
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
            cell.busy += ran;
            if ran > cell.ran {
                (cell.task, cell.ran) = (Some(serial), ran);
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
                self.virtual_cpus.insert(place, CpuLine::new(self.scale.columns));
            }
            let cells = alloc::vec![TaskCell::default(); self.scale.columns];
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
                self.mark(task, event.time, mark::READY);
            }
            Kind::Switch { cpu, prev, next } => {
                if let Some((task, why)) = prev {
                    if why == Off::Preempted && next != Some(task) {
                        self.mark(task, event.time, mark::PREEMPTED);
                    }
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

    fn job(&mut self, task: TaskId, release: Time, deadline: Option<Time>) {
        self.mark(task, release, mark::READY);
        self.due.remove(&task);
        if let Some(deadline) = deadline {
            self.mark(task, deadline, mark::DUE);
            self.due.insert(task, deadline);
        }
    }

    fn job_done(&mut self, task: TaskId, time: Time) {
        if let Some(deadline) = self.due.remove(&task)
            && deadline < time
        {
            self.mark(task, deadline, mark::MISSED);
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

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
        let expected = "                |0   10ns|\n\
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
        assert_eq!(lines[1], "cpu 0           1░");
        assert_eq!(lines[2], "0 task 0        ▒░");
    }

    /// Three tasks in turns of 1 ns in columns of 3 ns: each has a third of each column, and none
    /// looks as if it starved.
    #[test]
    fn tasks_that_share_columns_are_shaded() {
        let mut gantt = Gantt::new(1, Time(0), Time(12), 4, 3);
        let task = |n: u64| TaskId((n % 3) as u32);
        for n in 0..3 {
            gantt.task(&TaskInfo { task: task(n), serial: n, name: None, nice: 0 });
            let kind = Kind::Attach { task: task(n), by: None };
            gantt.event(&Event { time: Time(0), kind });
        }
        for n in 0..12u64 {
            let prev = n.checked_sub(1).map(|before| (task(before), Off::Expired));
            let kind = Kind::Switch { cpu: CpuId(0), prev, next: Some(task(n)) };
            gantt.event(&Event { time: Time(n), kind });
        }
        gantt.finish(Time(12));
        let text = gantt.to_string();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let tasks = ["0 task 0        ▒▒▒▒", "1 task 1        ▒▒▒▒", "2 task 2        ▒▒▒▒"];
        assert_eq!(lines, ["cpu 0           ▓▓▓▓", tasks[0], tasks[1], tasks[2]]);
        let legend = Gantt::legend(&[gantt], 80);
        assert!(legend.contains('▓') && legend.contains('▒'), "{legend}");
        assert!(!legend.contains('░') && !legend.contains(". waits"), "{legend}");
    }

    /// A picture ends where the time ends, whether or not columns divide it: 100 ns in 7 columns
    /// are columns of 14 and 15 ns, and the last ns belongs to the last one.
    #[test]
    fn columns_cover_the_time_exactly() {
        let scale = Scale { from: Time(5), length: 100, columns: 7 };
        assert_eq!(scale.until(), Time(105));
        let begins: Vec<u64> = (0..=7).map(|column| scale.begin(column)).collect();
        assert_eq!(begins, [0, 14, 28, 42, 57, 71, 85, 100]);
        for at in 0..100 {
            let column = scale.column(Time(5 + at)).unwrap();
            assert!((scale.begin(column)..scale.begin(column + 1)).contains(&at), "{at}");
        }
        assert_eq!((scale.column(Time(4)), scale.column(Time(105))), (None, Some(6)));
        let parts: Vec<_> = scale.split(Time(0), Time(200)).collect();
        assert_eq!(parts.iter().map(|(_, part)| part.0).sum::<u64>(), 100);
        assert_eq!(
            scale.split(Time(20), Time(35)).collect::<Vec<_>>(),
            [(1, Span(13)), (2, Span(2))]
        );
        assert_eq!(scale.split(Time(30), Time(30)).count(), 0);
    }

    /// Released at 0, due at 4, done at 5: late. Released at 6 and due at 9, where it is done.
    #[test]
    fn releases_deadlines_misses_and_preemptions_are_marked() {
        let mut gantt = Gantt::new(1, Time(0), Time(10), 10, 2);
        let (a, b) = (TaskId(0), TaskId(1));
        for (task, name) in [(a, "a"), (b, "b")] {
            let serial = task.0.into();
            gantt.task(&TaskInfo { task, serial, name: Some(name), nice: 0 });
        }
        let tell = |gantt: &mut Gantt, time, kind| gantt.event(&Event { time: Time(time), kind });
        let run = |prev, next| Kind::Switch { cpu: CpuId(0), prev, next };
        tell(&mut gantt, 0, Kind::Attach { task: a, by: None });
        gantt.job(a, Time(0), Some(Time(4)));
        tell(&mut gantt, 0, run(None, Some(a)));
        tell(&mut gantt, 2, Kind::Attach { task: b, by: None });
        tell(&mut gantt, 2, run(Some((a, Off::Preempted)), Some(b)));
        tell(&mut gantt, 4, run(Some((b, Off::Exited)), Some(a)));
        gantt.job_done(a, Time(5));
        gantt.job(a, Time(6), Some(Time(9)));
        tell(&mut gantt, 5, run(Some((a, Off::Blocked)), None));
        tell(&mut gantt, 6, Kind::Wake { task: a, by: None, cpu: None });
        tell(&mut gantt, 6, run(None, Some(a)));
        gantt.job_done(a, Time(9));
        tell(&mut gantt, 9, run(Some((a, Off::Exited)), None));
        gantt.finish(Time(10));
        let text = gantt.to_string();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "cpu 0           00110 000",
                "0 a             00..0 000",
                "                ^ < ! ^  v",
                "1 b               00",
                "                  ^",
            ]
        );
        let svg = svg("a & b", &[("edf", &gantt)]);
        assert!(svg.contains("<title>a &amp; b</title>") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("class=\"miss\"").count(), 1);
    }
}
