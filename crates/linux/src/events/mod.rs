//! What a policy decided and what the kernel made of it, as one stream of events.
//!
//! The kernel's own events come as ftrace's text, of each CPU; the policy's calls come as its log.
//! Both have times of `CLOCK_MONOTONIC` in nanoseconds. The log numbers tasks in its own way: whom
//! it means follows from what CPUs switch to between picks.

mod kernel;
mod whom;

#[cfg(test)]
mod tests;

use anysched_core::recorder::{LogReader, Record};
use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_trace::policy::{Actor, Decision, Made, place};
use anysched_trace::{Counter, Event, Kind, Sink, TaskInfo};
use kernel::{Happened, Kernel, What};
use whom::Whom;

/// Tells the kernel's own events, and between them what the policy decided, if there is a log.
///
/// Errors: a line or a record cannot be read.
pub fn tell(events: &[Vec<u8>], log: Option<&[u8]>, sink: &mut dyn Sink) -> Result<(), String> {
    let texts: Vec<_> = events.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
    let kernel = Kernel::read(&texts)?;
    let whom = log.map(|log| Whom::find(log, &kernel)).transpose()?;
    let mut teller = Teller::new(&kernel, sink);
    teller.begin();
    let mut happened = kernel.happened.iter().peekable();
    if let (Some(log), Some(mut whom)) = (log, whom) {
        for record in LogReader::new(log).map_err(|error| error.to_string())? {
            let record = record.map_err(|error| error.to_string())?;
            while let Some(event) = happened.next_if(|event| event.time < record.now) {
                teller.take(event);
            }
            let (task, made) = whom.of(&record);
            teller.decide(&record, task, made);
        }
    }
    happened.for_each(|event| teller.take(event));
    Ok(())
}

/// Tells a sink what has happened.
struct Teller<'a> {
    kernel: &'a Kernel<'a>,
    sink: &'a mut dyn Sink,
    tasks: Vec<Doing>,
    /// What each CPU runs.
    cpus: Vec<Option<TaskId>>,
    ready: u64,
    running: u64,
}

/// What the sink knows of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Doing {
    is_told: bool,
    state: State,
    /// Who is about to wake it, and on which CPU.
    waker: Option<(Option<TaskId>, CpuId)>,
    last: Option<CpuId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Blocked,
    Ready,
    Running,
}

impl<'a> Teller<'a> {
    fn new(kernel: &'a Kernel<'a>, sink: &'a mut dyn Sink) -> Teller<'a> {
        let tasks = vec![Doing::default(); kernel.tasks.len()];
        let cpus = vec![None; kernel.cpus];
        Teller { kernel, sink, tasks, cpus, ready: 0, running: 0 }
    }

    /// What was ready or running before the first event.
    fn begin(&mut self) {
        if self.sink.takes_lines() {
            return;
        }
        let Some(start) = self.kernel.happened.first().map(|first| first.time) else { return };
        for at in 0..self.kernel.tasks.len() {
            let (id, was) = (TaskId(at as u32), self.kernel.tasks[at].was);
            if was == kernel::Was::Blocked {
                continue;
            }
            self.make_ready(start, id, None, None);
            if let kernel::Was::Running(cpu) = was {
                self.switch(start, cpu, None, Some(id));
            }
        }
    }

    fn emit(&mut self, time: Time, kind: Kind) {
        self.sink.event(&Event { time, kind });
    }

    fn take(&mut self, event: &Happened<'a>) {
        let (time, cpu) = (event.time, event.cpu);
        if self.sink.takes_lines() {
            self.sink.line(time, event.line);
            if let What::Switch { next, .. } = event.what {
                self.cpus[cpu.index()] = next;
            }
            return;
        }
        match event.what {
            What::Switch { prev, next } => self.switch(time, cpu, prev, next),
            What::Waking { task, by } => match self.tasks[task.index()].state {
                State::Blocked => self.make_ready(time, task, by, Some(cpu)),
                // It is about to block, and is woken when it has.
                State::Running => self.tasks[task.index()].waker = Some((by, cpu)),
                State::Ready => {}
            },
            What::Wakeup { task, by } => {
                let doing = &mut self.tasks[task.index()];
                let (by, cpu) = doing.waker.take().unwrap_or((by, cpu));
                if doing.state == State::Blocked {
                    self.make_ready(time, task, by, Some(cpu));
                }
            }
            What::Other => {}
        }
    }

    fn make_ready(&mut self, time: Time, task: TaskId, by: Option<TaskId>, cpu: Option<CpuId>) {
        let doing = &mut self.tasks[task.index()];
        doing.state = State::Ready;
        if std::mem::replace(&mut doing.is_told, true) {
            self.emit(time, Kind::Wake { task, by, cpu });
        } else {
            let known = &self.kernel.tasks[task.index()];
            let (serial, nice) = (u64::from(task.0), known.nice);
            let name = Some(known.name.as_str());
            self.sink.task(&TaskInfo { task, serial, name, nice });
            self.emit(time, Kind::Attach { task, by });
        }
        self.ready += 1;
        self.sample(time);
    }

    fn switch(
        &mut self,
        time: Time,
        cpu: CpuId,
        prev: Option<(TaskId, Off)>,
        next: Option<TaskId>,
    ) {
        self.cpus[cpu.index()] = next;
        if let Some((task, why)) = prev {
            let state = if why.runnable() { State::Ready } else { State::Blocked };
            self.tasks[task.index()].state = state;
            self.running = self.running.saturating_sub(1);
            self.ready += u64::from(why.runnable());
        }
        if let Some(task) = next {
            let doing = &mut self.tasks[task.index()];
            doing.state = State::Running;
            self.running += 1;
            self.ready = self.ready.saturating_sub(1);
            let from = doing.last.replace(cpu).filter(|&from| from != cpu);
            if let Some(from) = from {
                self.emit(time, Kind::Migrate { task, from, to: cpu });
            }
        }
        self.emit(time, Kind::Switch { cpu, prev, next });
        self.sample(time);
    }

    fn sample(&mut self, time: Time) {
        self.emit(time, Kind::Sample { counter: Counter::Ready, value: self.ready });
        self.emit(time, Kind::Sample { counter: Counter::Busy, value: self.running });
    }

    fn decide(&mut self, record: &Record, task: Option<TaskId>, made: Option<Made>) {
        let cpu = place(&record.call);
        let current = self.cpus.get(cpu.index()).copied().flatten();
        let decision = Decision {
            record,
            task: task.map(|task| self.kernel.actor(task)),
            cpu,
            current: current.map(|task| self.kernel.actor(task)),
            made,
        };
        self.sink.decision(&decision);
    }
}

impl Kernel<'_> {
    fn actor(&self, id: TaskId) -> Actor<'_> {
        let task = &self.tasks[id.index()];
        Actor { id, comm: &task.comm, pid: task.pid }
    }
}
