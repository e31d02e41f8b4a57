//! Linux's ftrace text format, as `trace-cmd report`, Perfetto and other tools read it.
//!
//! | event | lines |
//! |---|---|
//! | attach | `sched_process_fork` if a task created it; `sched_wakeup_new` |
//! | wake | `sched_waking`, `sched_wakeup` |
//! | switch | `sched_process_exit` if the task has ended; `sched_switch` |
//! | migrate | `sched_migrate_task` |
//! | state | `tracing_mark_write: C\|PID\|NAME\|VALUE` |
//! | kick, offline, sample | none: ftrace has no equivalent |
//! | a kernel's own line | itself |
//! | call of a policy beside those | `tracing_mark_write: I\|PID\|anysched: CALL` |
//!
//! - Times are in nanoseconds: nine digits after the point, where ftrace has six.
//! - A pid is the task's serial + 1, so it is never reused; 0 is the idle task.
//! - `prio` is 120 + nice. `target_cpu` of a wake-up is the CPU where the task last ran (at first,
//!   its creator's CPU); the switch that follows says where it runs next.
//! - What a task does is written in its own context. What timers, devices and the outside world do
//!   is written in interrupt context (flag `h`) of the CPU that took the interrupt, or else of the
//!   CPU where the woken task last ran.
//! - `prev_state` is `R+` for a task that was taken off its CPU, `R` for one that yielded or could
//!   not be started, `S` for one that blocked and `X` for one that ended. As in Linux, nothing is
//!   written when a CPU picks the same task again.
//! - A host may report that a task left its CPU only when that CPU picks again, even though at the
//!   same instant the task was woken or picked elsewhere in between. The CPU is then shown as idle
//!   from the moment the task must have left, so that no task is ever in two places and only
//!   sleeping tasks are woken.
//! - When the run ends, all CPUs become idle (`R+`), which closes the last interval on each.
//! - Of a virtual machine, only its CPUs appear, as ordinary tasks: the format has one set of CPUs
//!   and one of pids. A guest would be traced separately, in its own time.
//!
//! In a task's name, `_` replaces white space, control characters, `=` and `#`, which would break
//! the line. Names may be longer than Linux's 15 bytes but are cut at 63.

use crate::output::Output;
use crate::policy::Decision;
use crate::{Event, Kind, Sink, TaskInfo};
use anysched_core::{CpuId, Off, TaskId, Time};
use std::fmt::{self, Write as _};
use std::format;
use std::io::{self, Write};
use std::string::{String, ToString};
use std::vec::Vec;

/// Longer names are cut: readers that allow any character in a name limit how far they search for
/// its end.
const MAX_COMM: usize = 63;

/// The flags column: interrupts off, reschedule needed, interrupt context, preemption-disable
/// depth, migration-disable depth.
const IN_TASK: &str = ".....";
const IN_SCHEDULER: &str = "d..2.";
const IN_INTERRUPT: &str = "d.h2.";

/// Writes events as ftrace text. Output is buffered here, so `W` needs no buffer.
///
/// Without [`FtraceWriter::finish`] the end of the trace is missing.
#[derive(Debug)]
pub struct FtraceWriter<W> {
    text: Text<W>,
    machine: Machine,
    /// The task that the next event attaches, and its number.
    arriving: Option<(TaskId, Task)>,
}

#[derive(Clone, Debug)]
struct Task {
    pid: u64,
    prio: i16,
    comm: String,
    /// Where it runs.
    on: Option<CpuId>,
    /// Where it runs or last ran.
    last: CpuId,
}

/// Who runs where.
#[derive(Debug, Default)]
struct Machine {
    /// The live task with each number.
    tasks: Vec<Option<Task>>,
    /// Per CPU, the task that runs; its [`Task::on`] is that CPU.
    cpus: Vec<Option<TaskId>>,
}

impl Machine {
    /// The task with this number, if it has been described.
    fn known(&self, task: TaskId) -> Option<&Task> {
        self.tasks.get(task.index())?.as_ref()
    }

    fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus.get(cpu.index()).copied().flatten()
    }

    /// What `cpu` is running; the idle task if nothing.
    fn current(&self, cpu: CpuId) -> Context<'_> {
        Context { cpu, task: self.running(cpu).and_then(|task| self.known(task)) }
    }

    /// Replaces the task on `cpu` by `next`; a task that has ended is forgotten.
    fn run(&mut self, cpu: CpuId, next: Option<TaskId>, ended: bool) {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, None);
        }
        if let Some(prev) = std::mem::replace(&mut self.cpus[cpu.index()], next) {
            let prev = &mut self.tasks[prev.index()];
            match prev {
                Some(task) if !ended => task.on = None,
                _ => *prev = None,
            }
        }
        if let Some(next) = next.and_then(|next| self.tasks[next.index()].as_mut()) {
            (next.on, next.last) = (Some(cpu), cpu);
        }
    }
}

/// A task, or the idle task of a CPU.
#[derive(Clone, Copy)]
struct Context<'a> {
    cpu: CpuId,
    task: Option<&'a Task>,
}

impl Context<'_> {
    fn pid(&self) -> u64 {
        self.task.map_or(0, |task| task.pid)
    }

    fn prio(&self) -> i16 {
        self.task.map_or(120, |task| task.prio)
    }
}

/// Writes its `comm`.
impl fmt::Display for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => f.write_str(&task.comm),
            None => write!(f, "swapper/{}", self.cpu.0),
        }
    }
}

#[derive(Debug)]
struct Text<W> {
    output: Output<W>,
    now: Time,
    line: String,
}

impl<W: Write> Text<W> {
    fn line(&mut self, context: Context<'_>, flags: &str, event: fmt::Arguments<'_>) {
        let comm = context.task.map_or("<idle>", |task| &task.comm);
        self.put(comm, context.pid(), context.cpu, flags, event);
    }

    fn put(
        &mut self,
        comm: &str,
        pid: u64,
        CpuId(cpu): CpuId,
        flags: &str,
        event: fmt::Arguments<'_>,
    ) {
        let (seconds, ns) = (self.now.0 / 1_000_000_000, self.now.0 % 1_000_000_000);
        self.line.clear();
        // Writing to a string does not fail.
        let _ = writeln!(
            self.line,
            "{comm:>16}-{pid:<7} [{cpu:03}] {flags} {seconds:>5}.{ns:09}: {event}"
        );
        self.output.extend(self.line.as_bytes());
    }
}

impl<W: Write> FtraceWriter<W> {
    /// A trace of a machine with `cpus` CPUs, written to `out`, ideally an unbuffered file.
    pub fn new(out: W, cpus: usize) -> FtraceWriter<W> {
        let mut output = Output::new(out);
        let header = format!(
            "# tracer: nop\n#\n#{:>69}{cpus}\n#\n\
             #            TASK-PID     CPU#  flags       TIMESTAMP  FUNCTION\n",
            "#P:"
        );
        output.extend(header.as_bytes());
        FtraceWriter {
            text: Text { output, now: Time::ZERO, line: String::new() },
            machine: Machine::default(),
            arriving: None,
        }
    }

    /// Makes all CPUs idle at `end`, or at the last event if that is later, and returns the file.
    ///
    /// Errors: the first write error; nothing was written after it.
    pub fn finish(mut self, end: Time) -> io::Result<W> {
        self.text.now = self.text.now.max(end);
        for cpu in 0..self.machine.cpus.len() {
            if self.machine.cpus[cpu].is_some() {
                self.switch_to(CpuId(cpu as u16), Off::Preempted, None);
            }
        }
        self.text.output.finish()
    }

    fn attach(&mut self, id: TaskId, by: Option<TaskId>) {
        let Some((_, mut task)) = self.arriving.take().filter(|&(named, _)| named == id) else {
            return;
        };
        // The number may be reused before the switch away from its last holder is reported.
        self.leave(id, Off::Exited);
        let creator = by.and_then(|by| self.machine.known(by)?.on);
        task.last = creator.unwrap_or(CpuId(0));
        if let Some(cpu) = creator {
            let context = self.machine.current(cpu);
            let (pid, comm, child) = (context.pid(), &task.comm, task.pid);
            self.text.line(
                context,
                IN_TASK,
                format_args!(
                    "sched_process_fork: comm={context} pid={pid} child_comm={comm} \
                     child_pid={child}"
                ),
            );
        }
        let tasks = &mut self.machine.tasks;
        if tasks.len() <= id.index() {
            tasks.resize(id.index() + 1, None);
        }
        tasks[id.index()] = Some(task);
        self.ready(id, creator, None, &["sched_wakeup_new"]);
    }

    fn wake(&mut self, id: TaskId, by: Option<TaskId>, cpu: Option<CpuId>) {
        self.leave(id, Off::Blocked);
        let waker = by.and_then(|by| self.machine.known(by)?.on);
        self.ready(id, waker, cpu, &["sched_waking", "sched_wakeup"]);
    }

    /// `id` becomes ready because of the task on CPU `waker`, or else of an interrupt on `cpu`.
    fn ready(&mut self, id: TaskId, waker: Option<CpuId>, cpu: Option<CpuId>, names: &[&str]) {
        let Some(task) = self.machine.known(id) else { return };
        let flags = if waker.is_some() { IN_SCHEDULER } else { IN_INTERRUPT };
        let context = self.machine.current(waker.or(cpu).unwrap_or(task.last));
        let Task { pid, prio, comm, last: CpuId(target), .. } = task;
        for name in names {
            self.text.line(
                context,
                flags,
                format_args!("{name}: comm={comm} pid={pid} prio={prio} target_cpu={target:03}"),
            );
        }
    }

    /// If `id` is still running as far as has been reported, its CPU becomes idle.
    fn leave(&mut self, id: TaskId, why: Off) {
        if let Some(cpu) = self.machine.known(id).and_then(|task| task.on) {
            self.switch_to(cpu, why, None);
        }
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<(TaskId, Off)>, next: Option<TaskId>) {
        let next = next.filter(|&next| self.machine.known(next).is_some());
        if self.machine.running(cpu) == next {
            return;
        }
        if let Some(next) = next {
            self.leave(next, Off::Preempted);
        }
        self.switch_to(cpu, prev.map_or(Off::Preempted, |(_, why)| why), next);
    }

    /// `cpu` switches to `next`; `why` is why its current task stops.
    fn switch_to(&mut self, cpu: CpuId, why: Off, next: Option<TaskId>) {
        let prev = self.machine.current(cpu);
        let task = next.and_then(|next| self.machine.known(next));
        let next_context = Context { cpu, task };
        let ((pid, prio), (next_pid, next_prio)) =
            ((prev.pid(), prev.prio()), (next_context.pid(), next_context.prio()));
        let state = match why {
            _ if prev.task.is_none() => "R",
            Off::Expired | Off::Preempted => "R+",
            Off::Yielded | Off::NotRun => "R",
            Off::Blocked => "S",
            Off::Exited => "X",
        };
        if state == "X" {
            let exit = format_args!("sched_process_exit: comm={prev} pid={pid} prio={prio}");
            self.text.line(prev, IN_TASK, exit);
        }
        self.text.line(
            prev,
            IN_SCHEDULER,
            format_args!(
                "sched_switch: prev_comm={prev} prev_pid={pid} prev_prio={prio} \
                 prev_state={state} ==> next_comm={next_context} next_pid={next_pid} \
                 next_prio={next_prio}"
            ),
        );
        self.machine.run(cpu, next, why == Off::Exited);
    }

    /// A counter of the task, as programs write theirs into the kernel's `trace_marker`.
    fn state(&mut self, id: TaskId, name: &str, value: i64) {
        let Some(task) = self.machine.known(id) else { return };
        let mark = format_args!("tracing_mark_write: C|{}|{name}|{value}", task.pid);
        self.text.line(self.machine.current(task.last), IN_SCHEDULER, mark);
    }

    fn migrate(&mut self, id: TaskId, from: CpuId, to: CpuId) {
        let Some(task) = self.machine.known(id) else { return };
        let Task { pid, prio, comm, .. } = task;
        self.text.line(
            self.machine.current(to),
            IN_SCHEDULER,
            format_args!(
                "sched_migrate_task: comm={comm} pid={pid} prio={prio} orig_cpu={} dest_cpu={}",
                from.0, to.0
            ),
        );
    }
}

impl<W: Write> Sink for FtraceWriter<W> {
    fn takes_lines(&self) -> bool {
        true
    }

    fn line(&mut self, time: Time, line: &str) {
        self.text.now = self.text.now.max(time);
        self.text.output.extend(line.as_bytes());
        self.text.output.extend(b"\n");
    }

    /// An instant, as programs write them into the kernel's `trace_marker` for viewers.
    fn decision(&mut self, decision: &Decision<'_>) {
        self.text.now = self.text.now.max(decision.time());
        let (comm, pid) = decision.current.map_or(("<idle>", 0), |task| (task.comm, task.pid));
        let mark = format_args!("tracing_mark_write: I|{pid}|anysched: {decision}");
        self.text.put(comm, u64::from(pid), decision.cpu, IN_SCHEDULER, mark);
    }

    fn task(&mut self, info: &TaskInfo<'_>) {
        let breaks = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '=' | '#');
        let mut comm = info.label().to_string().replace(breaks, "_");
        comm.truncate(comm.floor_char_boundary(MAX_COMM));
        let task = Task {
            pid: info.serial + 1,
            prio: 120 + i16::from(info.nice),
            comm,
            on: None,
            last: CpuId(0),
        };
        self.arriving = Some((info.task, task));
    }

    fn event(&mut self, event: &Event) {
        self.text.now = self.text.now.max(event.time);
        match event.kind {
            Kind::Attach { task, by } => self.attach(task, by),
            Kind::Wake { task, by, cpu } => self.wake(task, by, cpu),
            Kind::Switch { cpu, prev, next } => self.switch(cpu, prev, next),
            Kind::Migrate { task, from, to } => self.migrate(task, from, to),
            Kind::State { task, name, value } => self.state(task, name, value),
            Kind::Kick { .. } | Kind::Offline { .. } | Kind::Sample { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::churn::churn;

    #[test]
    fn memory_depends_on_live_tasks_only() {
        let mut writer = FtraceWriter::new(io::sink(), 4);
        churn(&mut writer, 2_000_000, 100);
        let Machine { tasks, cpus } = &writer.machine;
        assert_eq!((tasks.len(), cpus.len()), (100, 4));
        assert_eq!(tasks.iter().flatten().count(), 0);
        assert!(writer.text.line.capacity() <= 512);
        writer.finish(Time::ZERO).unwrap();
    }
}
