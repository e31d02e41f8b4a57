//! What a scheduler decided and what Xen made of it, as one stream of events.
//!
//! Xen records into its trace buffers what each vCPU does, whoever schedules it, and our scheduler
//! beside that which vCPU a policy calls how, and when it was asked. The policy's calls come as its
//! log, which is also replayed: so that is shown, too, what the policy says of its state.

mod records;
mod states;

#[cfg(test)]
mod tests;

use anysched_core::recorder::{Call, LogReader, Record};
use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_trace::policy::{Actor, Decision, Made, about, place};
use anysched_trace::{Counter, Event, Kind, Sink, TaskInfo};
use anysched_wire::vcpus::{Runstate, Vcpu};
use records::{Followed, Happened, Left, Recorded, What};
use states::States;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The instance of the policy whose log is told: the first that has pCPUs. Others are of other
/// cpupools.
const POOL: u32 = 1;

/// What Xen's own Credit records of a vCPU that woke.
const BOOST: &str = "boost";

/// Tells what vCPUs did, and between that what the policy decided, if there is a log. `name` gives
/// another name to a domain than the one by which dom0 knows it.
///
/// Errors: what Xen recorded, or the log, cannot be read or is not whole; the policy decides
/// otherwise here.
pub fn tell(
    streams: &[Vec<u8>],
    log: Option<&[u8]>,
    name: &dyn Fn(&str) -> Option<String>,
    sink: &mut dyn Sink,
) -> Result<(), String> {
    let mut recorded = Recorded::read(streams)?;
    let followed = std::mem::take(&mut recorded.followed);
    let decided = log.map(|log| Decided::read(log, &recorded, followed)).transpose()?;
    let mut states = log.map(States::of).transpose()?;
    let reasons = decided.as_ref().map(|decided| &decided.reasons);
    let mut teller = Teller::new(&recorded, name, reasons, sink);
    let mut happened = recorded.happened.iter().peekable();
    if let (Some(log), Some(decided)) = (log, &decided) {
        let mut tasks = Attached::default();
        for record in LogReader::new(log).map_err(|error| error.to_string())? {
            let record = record.map_err(|error| error.to_string())?;
            while let Some(event) = happened.next_if(|event| event.time < record.now) {
                teller.take(event);
            }
            tasks.take(&record.call, &decided.vcpus);
            let vcpu = about(&record).and_then(|task| tasks.of(task));
            teller.decide(&record, vcpu, decided.made.get(&record.number).copied());
            if let Some(states) = &mut states {
                states.after(&record, &mut |task, name, value| {
                    if let Some(vcpu) = tasks.of(task) {
                        teller.state(record.now, vcpu, name, value);
                    }
                });
            }
        }
    }
    happened.for_each(|event| teller.take(event));
    Ok(())
}

/// Which vCPU each of the policy's tasks is, as far as its log has been read.
#[derive(Default)]
struct Attached {
    by_task: HashMap<TaskId, Vcpu>,
    count: usize,
}

impl Attached {
    /// `vcpus` are all that have come, in order.
    fn take(&mut self, call: &Call<'_>, vcpus: &[Vcpu]) {
        if let Call::Attach { task, .. } = call {
            if let Some(vcpu) = vcpus.get(self.count) {
                self.by_task.insert(*task, *vcpu);
            }
            self.count += 1;
        }
    }

    fn of(&self, task: TaskId) -> Option<Vcpu> {
        self.by_task.get(&task).copied()
    }
}

/// What a log says that has to be known before its record is told.
struct Decided {
    /// Who has come, in order.
    vcpus: Vec<Vcpu>,
    /// What came of a pick, by the number of its record.
    made: HashMap<u64, Made>,
    /// Why the policy took back what a pCPU ran, by that and when.
    reasons: Reasons,
}

type Reasons = HashMap<(CpuId, Time), Off>;

impl Decided {
    /// Errors: the log cannot be read, or is not of what Xen has recorded.
    fn read(
        log: &[u8],
        recorded: &Recorded,
        mut followed: HashMap<(CpuId, Time), VecDeque<Followed>>,
    ) -> Result<Decided, String> {
        let come = recorded.attached.iter().filter(|(pool, ..)| *pool == POOL);
        let mut come = come.map(|(_, task, vcpu)| (TaskId(*task), *vcpu));
        let mut decided =
            Decided { vcpus: Vec::new(), made: HashMap::new(), reasons: HashMap::new() };
        let mut tasks = Attached::default();
        // By pCPU, the pick whose fate is open, and what followed when the policy was asked for it.
        let mut open: HashMap<CpuId, (u64, Made)> = HashMap::new();
        let mut last: HashMap<CpuId, Option<Followed>> = HashMap::new();
        let mut then: HashMap<CpuId, Option<Followed>> = HashMap::new();
        for record in LogReader::new(log).map_err(|error| error.to_string())? {
            let record = record.map_err(|error| error.to_string())?;
            if let Call::Attach { task, .. } = record.call {
                let vcpu = if record.now < recorded.begin {
                    // Xen builds dom0 before it records.
                    Vcpu { domain: 0, number: decided.vcpus.len() as u16 }
                } else {
                    match come.next() {
                        Some((same, vcpu)) if same == task => vcpu,
                        other => {
                            return Err(format!(
                                "call {record}: of the vCPUs that have come, Xen has recorded \
                                 {other:?} there"
                            ));
                        }
                    }
                };
                decided.vcpus.push(vcpu);
            }
            tasks.take(&record.call, &decided.vcpus);
            match record.call {
                Call::PickNext { cpu } => {
                    if let Some((number, made)) = open.remove(&cpu) {
                        decided.made.insert(number, made);
                    }
                    // It is asked again at once where a pick could not be run.
                    let next = || followed.get_mut(&(cpu, record.now))?.pop_front();
                    let followed = then.remove(&cpu).unwrap_or_else(next);
                    let pick = record.answer.as_ref().and_then(|answer| answer.pick);
                    if let Some(pick) = pick {
                        let made = made(record.now, tasks.of(pick.task), followed);
                        open.insert(cpu, (record.number, made));
                    }
                    last.insert(cpu, followed);
                }
                Call::PutPrev { cpu, why, .. } => {
                    let made = match why {
                        Off::NotRun => {
                            then.extend(last.remove_entry(&cpu));
                            open.remove(&cpu).map(|(number, _)| (number, Made::NotRun))
                        }
                        _ => {
                            decided.reasons.insert((cpu, record.now), why);
                            open.remove(&cpu)
                        }
                    };
                    decided.made.extend(made);
                }
                _ => {}
            }
        }
        decided.made.extend(open.into_values());
        Ok(decided)
    }
}

/// What came of a pick, if it was the last of its call.
fn made(now: Time, picked: Option<Vcpu>, followed: Option<Followed>) -> Made {
    match followed {
        Some(Followed::Switched(next, time)) if next == picked => Made::Switched(time.since(now)),
        Some(Followed::WentOn(runs)) if runs == picked => Made::WentOn,
        Some(_) => Made::Overtaken,
        None => Made::Unknown,
    }
}

/// Tells a sink what has happened.
struct Teller<'a> {
    recorded: &'a Recorded,
    /// Of domains.
    rename: &'a dyn Fn(&str) -> Option<String>,
    reasons: Option<&'a Reasons>,
    sink: &'a mut dyn Sink,
    numbers: HashMap<Vcpu, TaskId>,
    /// What was said of vCPUs that the sink does not know yet.
    said: HashMap<Vcpu, BTreeMap<&'static str, i64>>,
    vcpus: Vec<Doing>,
    /// What each pCPU runs.
    cpus: Vec<Option<TaskId>>,
    ready: u64,
    running: u64,
}

/// What the sink knows of a vCPU.
#[derive(Clone, Debug)]
struct Doing {
    name: String,
    state: Runstate,
    last: Option<CpuId>,
}

impl<'a> Teller<'a> {
    fn new(
        recorded: &'a Recorded,
        rename: &'a dyn Fn(&str) -> Option<String>,
        reasons: Option<&'a Reasons>,
        sink: &'a mut dyn Sink,
    ) -> Teller<'a> {
        Teller {
            recorded,
            rename,
            reasons,
            sink,
            numbers: HashMap::new(),
            said: HashMap::new(),
            vcpus: Vec::new(),
            cpus: Vec::new(),
            ready: 0,
            running: 0,
        }
    }

    fn emit(&mut self, time: Time, kind: Kind) {
        self.sink.event(&Event { time, kind });
    }

    fn take(&mut self, event: &Happened) {
        let (time, cpu) = (event.time, event.cpu);
        match event.what {
            What::Switch { prev, next, asked } => self.switch(time, cpu, prev, next, asked),
            What::Runstate { vcpu, to: Runstate::Runnable, .. } => {
                self.make_ready(time, vcpu, Some(cpu));
            }
            What::Runstate { vcpu, from, to } => {
                let known = self.numbers.get(&vcpu).copied();
                let Some(task) = known else { return };
                self.ready -= u64::from(from == Runstate::Runnable && self.ready > 0);
                self.vcpus[task.index()].state = to;
                self.leave(time, task, to);
                self.sample(time);
            }
            What::Boost { vcpu, on } => self.state(time, vcpu, BOOST, on.into()),
        }
    }

    /// A vCPU is blocked or not in use.
    fn leave(&mut self, time: Time, task: TaskId, to: Runstate) {
        if to == Runstate::Offline {
            self.emit(time, Kind::Offline { task });
        }
    }

    /// The number of a vCPU; one that is not known is told as new, and ready.
    fn number(&mut self, time: Time, vcpu: Vcpu) -> TaskId {
        if let Some(task) = self.numbers.get(&vcpu) {
            return *task;
        }
        let task = TaskId(self.vcpus.len() as u32);
        self.numbers.insert(vcpu, task);
        let name = self.name(vcpu);
        let (serial, shown) = (u64::from(task.0), Some(name.as_str()));
        self.sink.task(&TaskInfo { task, serial, name: shown, nice: 0 });
        self.vcpus.push(Doing { name, state: Runstate::Runnable, last: None });
        self.ready += 1;
        self.emit(time, Kind::Attach { task, by: None });
        for (name, value) in self.said.remove(&vcpu).unwrap_or_default() {
            self.emit(time, Kind::State { task, name, value });
        }
        task
    }

    fn name(&self, Vcpu { domain, number }: Vcpu) -> String {
        match (self.recorded.names.get(&domain), domain) {
            (Some(name), _) => {
                let other = (self.rename)(name);
                format!("{}/{number}", other.as_ref().unwrap_or(name))
            }
            (None, 0) => format!("dom0/{number}"),
            (None, _) => format!("d{domain}/{number}"),
        }
    }

    fn make_ready(&mut self, time: Time, vcpu: Vcpu, cpu: Option<CpuId>) {
        let is_new = !self.numbers.contains_key(&vcpu);
        let task = self.number(time, vcpu);
        let doing = &mut self.vcpus[task.index()];
        if !is_new && doing.state != Runstate::Runnable {
            doing.state = Runstate::Runnable;
            self.ready += 1;
            self.emit(time, Kind::Wake { task, by: None, cpu });
        }
        self.sample(time);
    }

    fn switch(
        &mut self,
        time: Time,
        cpu: CpuId,
        prev: Option<Left>,
        next: Option<Vcpu>,
        asked: Option<Time>,
    ) {
        let reason = asked.and_then(|asked| self.reasons?.get(&(cpu, asked)).copied());
        let prev = prev.map(|left| (self.number(time, left.vcpu), left));
        let next = next.map(|next| self.number(time, next));
        if let Some((task, left)) = &prev {
            let doing = &mut self.vcpus[task.index()];
            // It ran when recording began.
            self.ready -= u64::from(doing.state == Runstate::Runnable && self.ready > 0);
            self.running -= u64::from(doing.state == Runstate::Running && self.running > 0);
            doing.state = left.to;
            self.ready += u64::from(left.to == Runstate::Runnable);
        }
        if let Some(task) = next {
            let doing = &mut self.vcpus[task.index()];
            self.ready -= u64::from(doing.state == Runstate::Runnable && self.ready > 0);
            doing.state = Runstate::Running;
            self.running += 1;
            let from = doing.last.replace(cpu).filter(|&from| from != cpu);
            if let Some(from) = from {
                self.emit(time, Kind::Migrate { task, from, to: cpu });
            }
        }
        let prev = prev.map(|(task, left)| (task, left.to, off(&left, reason)));
        self.emit(time, Kind::Switch { cpu, prev: prev.map(|(task, _, off)| (task, off)), next });
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, None);
        }
        self.cpus[cpu.index()] = next;
        if let Some((task, to, _)) = prev {
            self.leave(time, task, to);
        }
        self.sample(time);
    }

    fn sample(&mut self, time: Time) {
        self.emit(time, Kind::Sample { counter: Counter::Ready, value: self.ready });
        self.emit(time, Kind::Sample { counter: Counter::Busy, value: self.running });
    }

    /// What a scheduler says of its state for a vCPU; of one that has never been ready, as soon as
    /// it is.
    fn state(&mut self, time: Time, vcpu: Vcpu, name: &'static str, value: i64) {
        match self.numbers.get(&vcpu) {
            Some(&task) => self.emit(time, Kind::State { task, name, value }),
            None => {
                self.said.entry(vcpu).or_default().insert(name, value);
            }
        }
    }

    fn decide(&mut self, record: &Record, vcpu: Option<Vcpu>, made: Option<Made>) {
        let cpu = place(&record.call);
        let task = vcpu.and_then(|vcpu| self.numbers.get(&vcpu).copied());
        let current = self.cpus.get(cpu.index()).copied().flatten();
        let actor = |id: TaskId| Actor { id, comm: &self.vcpus[id.index()].name, pid: id.0 + 1 };
        let decision =
            Decision { record, task: task.map(actor), cpu, current: current.map(actor), made };
        self.sink.decision(&decision);
    }
}

/// Why a vCPU has left its pCPU. `reason` is the policy's.
fn off(left: &Left, reason: Option<Off>) -> Off {
    match (left.to, reason) {
        (Runstate::Blocked | Runstate::Offline, _) => Off::Blocked,
        (_, Some(reason)) if reason.runnable() => reason,
        _ if left.has_yielded => Off::Yielded,
        _ => Off::Preempted,
    }
}
