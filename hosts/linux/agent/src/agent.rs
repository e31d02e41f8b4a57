//! The policy, as events drive it.

use std::fmt::Write;
use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use anysched_core::{CpuId, Off, Scheduler, TaskId, TaskParams, Time};
use anysched_linux_start::{change, machine, params, part, policy};
use anysched_scx::{Adapter, Prev, Waking};
use anysched_wire::start::Start;
use anysched_wire::status::{FIRST, Line};

use crate::answers::Report;
use crate::libbpf::Program;
use crate::log::Buffer;
use crate::process::{self, Bell};
use crate::protocol::{
    Answer, Event, Kind, LATER, MOST_ANSWERS, NO_TASK, REFUSED, Shared, WORDS, What,
};
use crate::ring::Ring;
use crate::{log, memory};

/// The CPUs in use, as a list.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// When an answer that came too early is given again.
const SOON: Duration = Duration::from_micros(20);

/// What is known of a task by its number in the kernel.
#[derive(Clone, Copy)]
struct Known {
    id: TaskId,
    sequence: u64,
    /// Its number for the rest of the kernel.
    pid: u32,
}

/// A CPU that wants a task.
#[derive(Clone, Copy)]
struct Wish {
    /// What the policy has it run.
    prev: Option<TaskId>,
    why: Off,
    has_yielded: bool,
    runtime: u64,
}

/// A policy and the kernel's tasks.
pub struct Agent {
    events: Ring,
    kernel: Kernel,
    running: Running,
}

/// The way to the kernel.
struct Kernel {
    shared: Shared,
    program: Program,
    answers: Vec<Answer>,
}

/// What has been started.
struct Running {
    name: String,
    adapter: Adapter<Box<dyn Scheduler>>,
    cpus: usize,
    /// The time of the last call.
    last: u64,
    known: Vec<Option<Known>>,
    /// The kernel's numbers of the policy's tasks.
    numbers: Vec<u32>,
    wishes: Vec<Option<Wish>>,
    calls: u64,
    time: u64,
    longest: u64,
}

impl Agent {
    /// Starts what `start` says, for events to come.
    ///
    /// Errors: there is no such policy, or a parameter is refused.
    pub fn new(
        start: Start,
        events: Ring,
        mut shared: Shared,
        program: Program,
    ) -> Result<Agent, String> {
        let machine = machine(&start)?;
        let policy = policy(&start, &machine, Buffer)?;
        let cpus = start.cpus.len();
        shared.configure(cpus as u32, policy.tick_period().map_or(0, |period| period.0));
        let mut running = Running {
            name: start.policy,
            adapter: Adapter::new(policy, &machine),
            cpus,
            last: 0,
            known: Vec::new(),
            numbers: Vec::new(),
            wishes: vec![None; cpus],
            calls: 0,
            time: 0,
            longest: 0,
        };
        running.take_offline()?;
        let answers = Vec::with_capacity(2 * MOST_ANSWERS);
        Ok(Agent { events, kernel: Kernel { shared, program, answers }, running })
    }

    /// Answers until somebody wants something of this thread: until the bell rings.
    pub fn run(&mut self, wanted: &Bell) {
        let Agent { events, kernel, running } = self;
        while !wanted.has_rung() {
            events.drain(|record| {
                let (event, affinity) = Event::read(record);
                running.timed(|running| running.handle(&event, &affinity));
            });
            running.timed(|running| running.decide(&mut kernel.answers));
            let is_later = kernel.answer(running);
            if !kernel.answers.is_empty() && !is_later || !events.is_empty() {
                continue;
            }
            let due = if is_later { Some(SOON) } else { running.until_timer() };
            kernel.shared.waits().store(1, SeqCst);
            let [_, rings] = process::wait(&[events.fd(), wanted.fd()], due);
            kernel.shared.waits().store(0, SeqCst);
            if rings && wanted.take() {
                return;
            }
        }
    }

    /// Changes a parameter as a [text](anysched_wire::change) asks, and returns the answer. What
    /// the policy wants of CPUs then is asked for as soon as the agent runs again.
    pub fn change(&mut self, text: &[u8]) -> String {
        let mut answer = String::new();
        self.running.timed(|running| {
            let now = running.now();
            answer = change(now, text, &running.name, &mut running.adapter);
        });
        answer
    }

    /// How it is doing.
    pub fn report(&self) -> Report {
        let running = &self.running;
        let mut text = String::from(FIRST);
        let facts = (running.name.as_str(), running.cpus, memory::usage());
        let mut say = |line: &Line| {
            let _ = writeln!(text, "{line}");
        };
        if let Some((used, size, lost)) = log::usage() {
            say(&Line::Log(used, size, lost));
        }
        say(&Line::Calls(running.calls, running.time, running.longest));
        let mut number = 0;
        while part(number, facts, &running.adapter, &mut say) {
            number += 1;
        }
        Report { text, runs: running.runs() }
    }
}

impl Kernel {
    /// Has the kernel do what was decided. What came too early stays, to be said again: returns
    /// whether there is something like that.
    fn answer(&mut self, running: &mut Running) -> bool {
        let mut answers = std::mem::take(&mut self.answers);
        let mut is_later = false;
        for some in answers.chunks_mut(MOST_ANSWERS) {
            self.shared.answer(some, || self.program.run());
            for answer in some {
                match answer.result {
                    LATER => {
                        is_later = true;
                        self.answers.push(Answer { result: 0, ..*answer });
                    }
                    REFUSED => running.is_refused(answer.task, &mut self.answers),
                    _ => {}
                }
            }
        }
        is_later
    }
}

impl Running {
    /// Tells the policy of CPUs that are not in use to begin with.
    fn take_offline(&mut self) -> Result<(), String> {
        let text = fs::read_to_string(ONLINE).map_err(|error| format!("{ONLINE}: {error}"))?;
        let now = self.now();
        for cpu in (0..self.cpus).filter(|cpu| !lists(&text, *cpu)) {
            self.adapter.set_online(now, CpuId(cpu as u16), false, 0);
        }
        Ok(())
    }

    /// CPU, task and the kernel's number of each that a CPU runs.
    fn runs(&self) -> Vec<(u16, u32, u32)> {
        let cpus = (0..self.cpus as u16).map(CpuId);
        let runs = cpus.filter_map(|cpu| {
            let task = self.adapter.runs(cpu)?;
            let number = *self.numbers.get(task.index())? as usize;
            let known = (*self.known.get(number)?)?;
            Some((cpu.0, task.0, known.pid))
        });
        runs.collect()
    }

    /// Clocks of CPUs may differ by little; a policy's time never goes back.
    fn at(&mut self, time: u64) -> Time {
        self.last = self.last.max(time);
        Time(self.last)
    }

    fn now(&mut self) -> Time {
        self.at(process::clock())
    }

    fn timed(&mut self, action: impl FnOnce(&mut Running)) {
        let start = process::clock();
        action(self);
        let time = process::clock() - start;
        self.calls += 1;
        self.time += time;
        self.longest = self.longest.max(time);
    }

    /// The task of an event.
    fn task(&mut self, event: &Event) -> Option<TaskId> {
        let known = self.known.get_mut(event.task as usize)?.as_mut()?;
        known.sequence = event.sequence;
        Some(known.id)
    }

    /// Makes the calls that follow from an event. Picks come last, when all of that is known.
    fn handle(&mut self, event: &Event, affinity: &[u64; WORDS]) {
        let now = self.at(event.now);
        let cpu = CpuId(event.cpu as u16);
        match event.kind() {
            Kind::Attach => return self.attach(now, event, affinity),
            Kind::Online => {
                let is_online = event.has(Event::ONLINE);
                return self.adapter.set_online(now, cpu, is_online, event.runtime);
            }
            _ => {}
        }
        let task = self.task(event);
        if event.has(Event::STARTED)
            && let Some(runs) = self.adapter.runs(cpu)
            && Some(runs) == task
        {
            self.adapter.started(runs);
        }
        if event.kind() == Kind::Ask {
            let why = if event.has(Event::EXPIRED) { Off::Expired } else { Off::Preempted };
            let (has_yielded, runtime) = (event.has(Event::YIELDED), event.runtime);
            let prev = task.filter(|_| event.has(Event::STARTED));
            self.wishes[cpu.index()] = Some(Wish { prev, why, has_yielded, runtime });
            return;
        }
        let Some(task) = task else { return };
        let adapter = &mut self.adapter;
        match event.kind() {
            Kind::Detach => {
                adapter.detach(now, task, event.runtime);
                self.known[event.task as usize] = None;
            }
            Kind::Update => {
                let params = self.params(event, affinity);
                self.adapter.update(now, task, params);
            }
            Kind::Enqueue => {
                let waking = Waking {
                    wakeup: event.has(Event::WAKEUP),
                    sync: event.has(Event::SYNC),
                    from: event.from.checked_sub(1).map(|cpu| CpuId(cpu as u16)),
                    over: Some(Off::Preempted),
                };
                adapter.enqueue(now, task, event.runtime, waking);
            }
            Kind::Dequeue => adapter.dequeue(now, task),
            Kind::Leave => {
                let why = if event.has(Event::DEAD) { Off::Exited } else { Off::Blocked };
                adapter.leaves(now, task, event.runtime, why);
            }
            Kind::Unasked => adapter.runs_unasked(now, task, event.runtime, cpu),
            Kind::Tick => adapter.tick(now, task, event.runtime),
            Kind::Attach | Kind::Ask | Kind::Online => unreachable!("handled before"),
        }
    }

    fn params(&self, event: &Event, affinity: &[u64; WORDS]) -> TaskParams {
        params(event.niceness, anysched_linux_start::affinity(affinity, self.cpus))
    }

    fn attach(&mut self, now: Time, event: &Event, affinity: &[u64; WORDS]) {
        let params = self.params(event, affinity);
        // The program does not tell of cgroups.
        let id = self.adapter.attach(now, params, 0);
        let number = event.task as usize;
        if self.known.len() <= number {
            self.known.resize(number + 1, None);
        }
        // What is no wake-up has no waker, and tells the number in its place.
        self.known[number] = Some(Known { id, sequence: event.sequence, pid: event.from });
        if self.numbers.len() <= id.index() {
            self.numbers.resize(id.index() + 1, NO_TASK);
        }
        self.numbers[id.index()] = event.task;
    }

    /// Answers all that is to be answered.
    fn decide(&mut self, answers: &mut Vec<Answer>) {
        let now = self.now();
        self.adapter.timer(now);
        for cpu in 0..self.cpus {
            if let Some(wish) = self.wishes[cpu].take() {
                let answer = self.pick(now, CpuId(cpu as u16), wish);
                answers.push(answer);
            }
        }
        self.kick(answers);
    }

    fn kick(&mut self, answers: &mut Vec<Answer>) {
        while let Some(cpu) = self.adapter.take_kick() {
            answers.push(answer(What::Kick, cpu));
        }
    }

    fn pick(&mut self, now: Time, cpu: CpuId, wish: Wish) -> Answer {
        let Wish { prev, why, has_yielded, runtime } = wish;
        if !self.adapter.is_online(cpu) {
            return answer(What::Nothing, cpu);
        }
        if let Some(task) = prev.filter(|task| has_yielded && self.adapter.runs(cpu) == Some(*task))
        {
            self.adapter.yields(task);
        }
        let prev = prev.map(|task| Prev { task, runnable: true, why });
        let Some(pick) = self.adapter.dispatch(now, cpu, prev, runtime) else {
            return answer(What::Nothing, cpu);
        };
        let task = self.numbers[pick.task.index()];
        let sequence = self.known[task as usize].map_or(0, |known| known.sequence);
        Answer { task, sequence, slice: pick.slice.0, ..answer(What::Give, cpu) }
    }

    fn is_refused(&mut self, number: u32, answers: &mut Vec<Answer>) {
        let now = self.now();
        if let Some(known) = self.known[number as usize] {
            self.adapter.refuse(now, known.id);
        }
        self.kick(answers);
    }

    fn until_timer(&self) -> Option<Duration> {
        let due = self.adapter.next_timer()?;
        Some(Duration::from_nanos(due.0.saturating_sub(process::clock())))
    }
}

fn answer(what: What, cpu: CpuId) -> Answer {
    Answer { what, cpu: cpu.0.into(), task: NO_TASK, result: 0, sequence: 0, slice: 0 }
}

/// Whether a list such as `0-3,8` has this number.
fn lists(list: &str, number: usize) -> bool {
    list.trim().split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.parse().ok().zip(last.parse().ok());
        bounds.is_some_and(|(first, last): (usize, usize)| (first..=last).contains(&number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        let of = |list| (0..6).filter(|cpu| lists(list, *cpu)).collect::<Vec<_>>();
        assert_eq!(of("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(of("3"), [3]);
        assert!(of("").is_empty());
    }
}
