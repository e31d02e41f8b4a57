//! What a kernel's tracing would have recorded of the run: which CPU switched to which task
//! (`sched_switch`), and who made a task ready (`sched_waking`). From these the trace processor
//! makes its tables `sched` and `thread_state`, for queries and for others' analyses.
//!
//! - A pid is the task's serial + 1; 0 is the idle task. `prio` is 120 + nice.
//! - `prev_state` is 1 for a task that blocked, 16 for one that ended, 0x800 (`R+`) for one that
//!   was taken off, 0 for one that yielded or could not be started: what readers take it for in a
//!   trace that names no version of a kernel.
//! - What timers, devices and the outside world wake is recorded in interrupt context, on the CPU
//!   that took the interrupt or else where the task ran last. A task's creation is recorded as its
//!   first wake-up.
//! - When the run ends, all CPUs become idle. Of a virtual machine, only its CPUs appear.
//!
//! They are written in batches (`CompactSched`), a CPU's columns one after another with times as
//! differences and names once a batch: some ten bytes an event. The reader drops a CPU's first
//! event, for want of what ran before it; so each CPU begins with one that goes from idle to idle.

use super::proto::{CompactSched, FtraceEventBundle, TracePacket};
use super::{PerfettoWriter, SEQUENCE};
use crate::TaskInfo;
use anysched_core::{CpuId, Off, TaskId, Time};
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::format;
use std::io::Write;
use std::string::{String, ToString};
use std::vec::Vec;

/// A batch has so many events at most.
const MOST: usize = 512;

const INTERRUPT: u32 = 0x08;

/// What the events say of tasks and CPUs.
#[derive(Debug, Default)]
pub(super) struct Sched {
    /// The task that the next event attaches.
    arriving: Option<Task>,
    /// The live task with each number.
    tasks: Vec<Option<Task>>,
    cpus: Vec<Cpu>,
}

#[derive(Clone, Debug)]
struct Task {
    pid: i32,
    prio: i32,
    comm: String,
    /// Where it runs or ran last.
    cpu: CpuId,
}

#[derive(Debug, Default)]
struct Cpu {
    /// It has an event.
    is_known: bool,
    /// The task that it runs.
    runs: Option<TaskId>,
    batch: CompactSched,
    /// Where names are in the batch's table, by pid.
    names: BTreeMap<i32, u32>,
    /// The times of the last switch and the last wake-up in the batch.
    switched: Time,
    woken: Time,
}

impl Cpu {
    /// Where the name of a task is in the batch's table.
    fn name(&mut self, pid: i32, comm: &str) -> u32 {
        let next = self.names.len() as u32;
        *self.names.entry(pid).or_insert_with(|| {
            self.batch.intern_table.push(comm.to_owned());
            next
        })
    }

    fn switch(&mut self, now: Time, state: i64, pid: i32, prio: i32, comm: &str) {
        let index = self.name(pid, comm);
        let batch = &mut self.batch;
        batch.switch_timestamp.push(now.since(self.switched).0);
        batch.switch_prev_state.push(state);
        batch.switch_next_pid.push(pid);
        batch.switch_next_prio.push(prio);
        batch.switch_next_comm_index.push(index);
        self.switched = now;
    }
}

fn state_of(why: Option<Off>) -> i64 {
    match why {
        None | Some(Off::Yielded | Off::NotRun) => 0,
        Some(Off::Blocked) => 1,
        Some(Off::Exited) => 16,
        Some(Off::Expired | Off::Preempted) => 0x800,
    }
}

impl Sched {
    fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.index())?.as_ref()
    }
}

impl<W: Write> PerfettoWriter<W> {
    pub(super) fn sched_task(&mut self, info: &TaskInfo<'_>) {
        self.sched.arriving = Some(Task {
            pid: i32::try_from(info.serial).map_or(i32::MAX, |serial| serial.saturating_add(1)),
            prio: 120 + i32::from(info.nice),
            comm: info.label().to_string(),
            cpu: CpuId(0),
        });
    }

    /// The task that was described last has the number `id`.
    pub(super) fn sched_attach(&mut self, id: TaskId) {
        let tasks = &mut self.sched.tasks;
        if tasks.len() <= id.index() {
            tasks.resize(id.index() + 1, None);
        }
        tasks[id.index()] = self.sched.arriving.take();
    }

    fn sched_cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        let cpus = &mut self.sched.cpus;
        if cpus.len() <= cpu.index() {
            cpus.resize_with(cpu.index() + 1, Cpu::default);
        }
        let entry = &mut cpus[cpu.index()];
        if !std::mem::replace(&mut entry.is_known, true) {
            entry.switch(Time::ZERO, 0, 0, 120, &swapper(cpu));
        }
        entry
    }

    /// `id` becomes ready: because of what runs on `waker`, or of an interrupt on `cpu`.
    pub(super) fn sched_waking(&mut self, id: TaskId, waker: Option<CpuId>, cpu: Option<CpuId>) {
        let now = self.now;
        let Some(task) = self.sched.task(id).cloned() else { return };
        let on = self.sched_cpu(waker.or(cpu).unwrap_or(task.cpu));
        let index = on.name(task.pid, &task.comm);
        let batch = &mut on.batch;
        batch.waking_timestamp.push(now.since(on.woken).0);
        batch.waking_pid.push(task.pid);
        batch.waking_target_cpu.push(i32::from(task.cpu.0));
        batch.waking_prio.push(task.prio);
        batch.waking_comm_index.push(index);
        batch.waking_common_flags.push(if waker.is_some() { 0 } else { INTERRUPT });
        on.woken = now;
        self.sched_flush(waker.or(cpu).unwrap_or(task.cpu), MOST);
    }

    /// `cpu` goes to `next`; `why` is why what it ran stops.
    pub(super) fn sched_switch(&mut self, cpu: CpuId, why: Option<Off>, next: Option<TaskId>) {
        let now = self.now;
        let task = next.and_then(|next| self.sched.task(next)).cloned();
        let next = next.filter(|_| task.is_some());
        let on = self.sched_cpu(cpu);
        if std::mem::replace(&mut on.runs, next) == next {
            return;
        }
        match task {
            Some(task) => on.switch(now, state_of(why), task.pid, task.prio, &task.comm),
            None => on.switch(now, state_of(why), 0, 120, &swapper(cpu)),
        }
        if let Some(task) = next.and_then(|next| self.sched.tasks[next.index()].as_mut()) {
            task.cpu = cpu;
        }
        self.sched_flush(cpu, MOST);
    }

    /// `id` has left `cpu`, if that is not known yet.
    pub(super) fn sched_leave(&mut self, id: TaskId, cpu: CpuId, why: Option<Off>) {
        if self.sched.cpus.get(cpu.index()).is_some_and(|cpu| cpu.runs == Some(id)) {
            self.sched_switch(cpu, why, None);
        }
    }

    /// All CPUs become idle, and all batches are written.
    pub(super) fn sched_end(&mut self) {
        for cpu in 0..self.sched.cpus.len() {
            let cpu = CpuId(cpu as u16);
            if self.sched.cpus[cpu.index()].runs.is_some() {
                self.sched_switch(cpu, Some(Off::Preempted), None);
            }
            self.sched_flush(cpu, 1);
        }
    }

    /// Writes the batch of `cpu` if it has so many events.
    fn sched_flush(&mut self, cpu: CpuId, events: usize) {
        let on = &mut self.sched.cpus[cpu.index()];
        if on.batch.switch_timestamp.len() + on.batch.waking_timestamp.len() < events {
            return;
        }
        let compact_sched = Some(std::mem::take(&mut on.batch));
        on.names.clear();
        (on.switched, on.woken) = (Time::ZERO, Time::ZERO);
        let ftrace_events = Some(FtraceEventBundle { cpu: Some(u32::from(cpu.0)), compact_sched });
        let trusted_packet_sequence_id = Some(SEQUENCE);
        self.write(TracePacket {
            ftrace_events,
            trusted_packet_sequence_id,
            ..TracePacket::default()
        });
    }
}

fn swapper(cpu: CpuId) -> String {
    format!("swapper/{}", cpu.0)
}
