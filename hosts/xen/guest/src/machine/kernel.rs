//! The kernel of the machine: which task each vCPU runs, and what is due when.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams,
    Time,
};
use anysched_wire::script::{self, Step};
use anysched_wire::start::Start;
use anysched_wire::{mail, result};

use super::among::{Among, Fate, Freed, Message};
use super::named;
use super::steps::Cursor;
use crate::mailbox::Letter;

/// What a vCPU does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It computes for `work` nanoseconds, and looks again at `until`.
    Compute { work: u64, until: u64 },
    /// It has nothing to do until then, or until it is called; `u64::MAX`: only that.
    Idle { until: u64 },
    /// The machine has done its work, or its time is over.
    End,
}

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A task arrives.
    Arrival,
    /// A task goes on.
    Wake,
}

/// Of a task.
struct Task {
    scripted: &'static script::Task,
    cursor: Cursor,
    params: TaskParams,
    /// Nanoseconds that it computes yet; `u64::MAX`: until a lock is handed to it.
    left: u64,
    /// Since when it has been due to run, if it was blocked.
    woken: Option<u64>,
    /// Since when it has been blocked.
    blocked: Option<u64>,
    /// When its current job could begin, if it has jobs.
    released: Option<u64>,
    /// When the message was sent that it holds.
    holds: Option<u64>,
    /// The CPU that it ran on last.
    cpu: CpuId,
    has_ended: bool,
    told: result::Task,
}

/// Of a vCPU.
#[derive(Default)]
struct Cpu {
    running: Option<TaskId>,
    /// Who ran last.
    last: Option<TaskId>,
    /// Work since the policy was told.
    ran: u64,
    /// Work until the slice ends, and until the tick.
    slice: u64,
    tick: u64,
    due: BinaryHeap<Reverse<(u64, u64, Due, u32)>>,
}

/// Samples by name.
#[derive(Default)]
struct Samples {
    latencies: Vec<u64>,
    responses: Vec<u64>,
    tardiness: Vec<u64>,
    round_trips: Vec<u64>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    work: u64,
    dispatches: u64,
    switches: u64,
    migrations: u64,
    preemptions: u64,
    misses: u64,
}

/// The kernel.
pub struct Kernel {
    policy: Box<dyn Scheduler>,
    /// Nanoseconds between ticks; `u64::MAX`: there are none.
    tick: u64,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    among: Among,
    kicks: CpuMask,
    /// vCPUs that have been called, and those that are to be.
    told: CpuMask,
    nudges: CpuMask,
    /// Tasks that have not ended, those that have not come among them.
    left: usize,
    /// Numbers what is due in order.
    serial: u64,
    now: u64,
    begin: u64,
    stop: u64,
    is_over: bool,
    samples: Samples,
    counts: Counts,
    /// Messages from outside by number, and what whoever takes them does.
    mail: &'static [mail::Message],
    /// What goes out: by which port, and when it was sent first.
    sent: Vec<(u32, u64)>,
}

// SAFETY: a policy knows nothing of the vCPU that calls it, and one calls at a time.
unsafe impl Send for Kernel {}

impl Kernel {
    /// A machine of `cpus` CPUs with these tasks, to which these messages come.
    ///
    /// Errors: the scheduler is refused.
    pub fn new(
        start: &Start,
        tasks: Vec<script::Task>,
        mail: Vec<mail::Message>,
        cpus: usize,
    ) -> Result<Kernel, String> {
        let machine = anysched_start::machine(start)?;
        let policy = anysched_start::policy(start, &machine, Unheard)?;
        let tasks: &'static [script::Task] = tasks.leak();
        let tasks: Vec<Task> = tasks.iter().map(|task| Task::new(task, cpus)).collect();
        let period = policy.tick_period().map(|period| period.0).or(start.tick);
        Ok(Kernel {
            policy,
            tick: period.unwrap_or(u64::MAX),
            left: tasks.len(),
            tasks,
            cpus: (0..cpus).map(|_| Cpu { tick: u64::MAX, ..Cpu::default() }).collect(),
            among: Among::default(),
            kicks: CpuMask::EMPTY,
            told: CpuMask::EMPTY,
            nudges: CpuMask::EMPTY,
            serial: 0,
            now: 0,
            begin: 0,
            stop: u64::MAX,
            is_over: false,
            samples: Samples::default(),
            counts: Counts::default(),
            mail: mail.leak(),
            sent: Vec::new(),
        })
    }

    /// The machine begins at `begin` and ends at `stop`.
    pub fn begin(&mut self, begin: u64, stop: u64) {
        (self.begin, self.stop) = (begin, stop);
        for number in 0..self.tasks.len() {
            let arrival = begin + self.tasks[number].scripted.arrival;
            // What comes from outside goes to the first.
            self.at(0, arrival, Due::Arrival, TaskId(number as u32));
        }
    }

    fn at(&mut self, cpu: usize, time: u64, due: Due, task: TaskId) {
        self.serial += 1;
        self.cpus[cpu].due.push(Reverse((time, self.serial, due, task.0)));
    }

    #[inline]
    fn call<R>(&mut self, call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>) -> R) -> R {
        // Times of a run begin with it.
        let now = Time(self.now.saturating_sub(self.begin));
        call(&mut *self.policy, &mut Cx::new(now, &mut self.kicks))
    }

    /// The vCPUs that have to be called, by `caller`.
    pub fn calls(&mut self, caller: usize) -> Vec<usize> {
        let mut calls = Vec::new();
        for cpu in 0..self.cpus.len() {
            let id = CpuId(cpu as u16);
            let wanted = self.kicks.contains(id) || self.nudges.contains(id) || self.is_over;
            if wanted && cpu != caller && !self.told.contains(id) {
                self.told.insert(id);
                calls.push(cpu);
            }
        }
        calls
    }

    /// A message comes from outside of the machine, which interrupts its first vCPU: that calls
    /// this before its turn.
    pub fn receive(&mut self, now: u64, letter: Letter) {
        self.now = self.now.max(now);
        let Letter { sent, at, whither: channel, number } = letter;
        let known = number.and_then(|number| self.mail.get(number as usize));
        let message = Message { sent, brings: known.map_or(&[], |message| &message.steps) };
        let mut free = Vec::new();
        self.among.receive(channel, message, &mut free);
        self.let_go(&mut free, at, None);
    }

    /// What the machine has sent since the last call.
    pub fn sent(&mut self) -> impl Iterator<Item = (u32, u64)> {
        self.sent.drain(..)
    }

    /// A vCPU has computed for `burned` nanoseconds and asks what to do.
    pub fn turn(&mut self, cpu: usize, now: u64, burned: u64) -> Then {
        self.now = self.now.max(now);
        let id = CpuId(cpu as u16);
        self.told.remove(id);
        self.nudges.remove(id);
        self.charge(cpu, burned);
        if self.now >= self.stop || self.left == 0 {
            self.is_over = true;
        }
        if self.is_over {
            return Then::End;
        }
        self.do_what_is_due(cpu);
        loop {
            self.go_on(cpu);
            if self.left == 0 {
                self.is_over = true;
                return Then::End;
            }
            if self.cpus[cpu].running.is_none() && !self.pick(cpu) {
                if self.waits_for_ever() {
                    self.is_over = true;
                    return Then::End;
                }
                return Then::Idle { until: self.next_due(cpu) };
            }
            let Some(task) = self.cpus[cpu].running else { continue };
            let left = self.tasks[task.index()].left;
            if left > 0 && !self.kicks.contains(id) {
                let Cpu { slice, tick, .. } = self.cpus[cpu];
                let work = left.min(slice).min(tick);
                return Then::Compute { work, until: self.next_due(cpu) };
            }
        }
    }

    /// What a vCPU has computed is accounted for.
    fn charge(&mut self, cpu: usize, burned: u64) {
        let Cpu { running, ran, slice, tick, .. } = &mut self.cpus[cpu];
        let Some(task) = running else { return };
        *ran += burned;
        *slice = slice.saturating_sub(burned);
        *tick = tick.saturating_sub(burned);
        let task = &mut self.tasks[task.index()];
        if task.left != u64::MAX {
            task.left = task.left.saturating_sub(burned);
        }
        task.told.service = task.told.service.map(|service| service + burned);
        self.counts.work += burned;
    }

    /// When a vCPU has to look at the latest.
    fn next_due(&self, cpu: usize) -> u64 {
        let own = self.cpus[cpu].due.peek().map_or(u64::MAX, |Reverse((time, ..))| *time);
        let timer = match self.policy.has_timers() {
            true => self.policy.next_timer().map_or(u64::MAX, |due| due.0 + self.begin),
            false => u64::MAX,
        };
        own.min(timer).min(self.stop)
    }

    /// Whether all tasks wait for each other, which keeps no machine going.
    fn waits_for_ever(&self) -> bool {
        self.stop == u64::MAX
            && self.cpus.iter().all(|cpu| cpu.due.is_empty())
            && self.tasks.iter().all(|task| task.has_ended || task.blocked.is_some())
    }

    fn do_what_is_due(&mut self, cpu: usize) {
        while let Some(&Reverse((time, _, due, task))) = self.cpus[cpu].due.peek() {
            if time > self.now {
                break;
            }
            self.cpus[cpu].due.pop();
            match due {
                Due::Arrival => self.arrive(TaskId(task), time),
                Due::Wake => self.wake(TaskId(task), time, None),
            }
        }
        let is_due = |due: Time| due.0 + self.begin <= self.now;
        if self.policy.has_timers() && self.policy.next_timer().is_some_and(is_due) {
            self.call(|policy, cx| policy.timer(cx));
        }
    }

    fn arrive(&mut self, task: TaskId, time: u64) {
        let state = &mut self.tasks[task.index()];
        state.told.arrival = time;
        state.released = state.released.map(|_| time);
        let params = state.params.clone();
        self.call(|policy, cx| policy.attach(cx, task, &params));
        self.call(|policy, cx| policy.enqueue(cx, task, Arrival::because(Enqueue::New)));
    }

    /// A blocked task goes on, as it could from `time` on; the vCPU `from` has let it go.
    fn wake(&mut self, task: TaskId, time: u64, from: Option<CpuId>) {
        let state = &mut self.tasks[task.index()];
        if let Some(since) = state.blocked.take() {
            state.told.slept += time.saturating_sub(since);
        }
        state.woken = Some(time);
        let why = Enqueue::Wakeup { prev: state.cpu, sync: false };
        let arrival = Arrival { from, ..Arrival::because(why) };
        self.call(|policy, cx| policy.enqueue(cx, task, arrival));
    }

    /// What runs on a vCPU goes on until it computes, or is taken off.
    fn go_on(&mut self, cpu: usize) {
        let id = CpuId(cpu as u16);
        while let Some(task) = self.cpus[cpu].running {
            if self.cpus[cpu].tick == 0 {
                let ran = Span(mem::take(&mut self.cpus[cpu].ran));
                self.cpus[cpu].tick = self.tick;
                self.call(|policy, cx| policy.tick(cx, id, task, ran));
            }
            if self.tasks[task.index()].left == 0 && !self.step(cpu, task) {
                return;
            }
            if self.kicks.contains(id) {
                self.counts.preemptions += 1;
                return self.put(cpu, task, Off::Preempted);
            }
            if self.cpus[cpu].slice == 0 {
                return self.put(cpu, task, Off::Expired);
            }
            if self.tasks[task.index()].left > 0 {
                return;
            }
        }
    }

    fn put(&mut self, cpu: usize, task: TaskId, why: Off) {
        let ran = Span(mem::take(&mut self.cpus[cpu].ran));
        self.cpus[cpu].running = None;
        self.call(|policy, cx| policy.put_prev(cx, CpuId(cpu as u16), task, ran, why));
    }

    /// Picks a task for a vCPU. Returns whether there is one.
    fn pick(&mut self, cpu: usize) -> bool {
        let id = CpuId(cpu as u16);
        self.kicks.remove(id);
        let Some(Pick { task, slice }) = self.call(|policy, cx| policy.pick_next(cx, id)) else {
            return false;
        };
        self.counts.dispatches += 1;
        let place = &mut self.cpus[cpu];
        place.running = Some(task);
        (place.slice, place.tick) = (slice.0, place.tick.min(self.tick));
        self.counts.switches += u64::from(place.last.replace(task) != Some(task));
        let state = &mut self.tasks[task.index()];
        self.counts.migrations += u64::from(state.told.first > 0 && state.cpu != id);
        state.cpu = id;
        if state.told.first == 0 {
            state.told.first = self.now;
        }
        state.told.dispatches = state.told.dispatches.map(|dispatches| dispatches + 1);
        if let Some(woken) = state.woken.take() {
            self.samples.latencies.push(self.now.saturating_sub(woken));
        }
        true
    }

    /// A task does its next step. Returns whether it still has the vCPU.
    fn step(&mut self, cpu: usize, task: TaskId) -> bool {
        let state = &mut self.tasks[task.index()];
        match state.cursor.step() {
            None => {
                self.job_ends(task, None);
                let state = &mut self.tasks[task.index()];
                (state.has_ended, state.told.finish) = (true, self.now);
                self.left -= 1;
                self.put(cpu, task, Off::Exited);
                self.call(|policy, cx| policy.detach(cx, task));
                false
            }
            Some(Step::Compute(span)) => {
                state.left = *span;
                state.told.groups += 1;
                true
            }
            Some(Step::Sleep(0)) => true,
            Some(Step::Sleep(span)) => self.sleep(cpu, task, self.now + span),
            Some(Step::Until(time)) => {
                let time = self.begin + time;
                self.job_ends(task, Some(time));
                time <= self.now || self.sleep(cpu, task, time)
            }
            Some(Step::Yield) => {
                self.put(cpu, task, Off::Yielded);
                false
            }
            Some(step @ (Step::Nice(_) | Step::Cpus(_) | Step::Deadline(_))) => {
                state.change(step, self.cpus.len());
                let params = state.params.clone();
                self.call(|policy, cx| policy.update(cx, task, &params));
                true
            }
            Some(Step::Send(port)) => {
                let sent = state.holds.take().unwrap_or(self.now);
                self.sent.push((*port, sent));
                true
            }
            Some(Step::Reply(way)) => {
                if let Some(sent) = state.holds.take() {
                    self.samples.round_trips.push(self.now + way - sent);
                }
                true
            }
            Some(step) => self.step_among(cpu, task, step),
        }
    }

    fn sleep(&mut self, cpu: usize, task: TaskId, until: u64) -> bool {
        self.block(cpu, task);
        self.at(cpu, until, Due::Wake, task);
        false
    }

    fn block(&mut self, cpu: usize, task: TaskId) {
        self.tasks[task.index()].blocked = Some(self.now);
        self.put(cpu, task, Off::Blocked);
    }

    /// A task does a step in which others may have a part.
    fn step_among(&mut self, cpu: usize, task: TaskId, step: &Step) -> bool {
        let mut free = Vec::new();
        let fate = self.among.step(task, step, self.now, &mut free);
        self.let_go(&mut free, self.now, Some(CpuId(cpu as u16)));
        match fate {
            Fate::GoesOn => true,
            Fate::Takes(message) => {
                self.tasks[task.index()].take(message);
                true
            }
            Fate::Spins => {
                self.tasks[task.index()].left = u64::MAX;
                true
            }
            Fate::Waits => {
                self.block(cpu, task);
                false
            }
        }
    }

    /// Tasks that have waited go on, as they could from `time` on; the vCPU `from` has let them go.
    fn let_go(&mut self, free: &mut Vec<Freed>, time: u64, from: Option<CpuId>) {
        for (task, message) in free.drain(..) {
            let state = &mut self.tasks[task.index()];
            if let Some(message) = message {
                state.take(message);
            }
            if state.left == u64::MAX {
                // It has been spinning.
                state.left = 0;
                self.nudges.insert(state.cpu);
            } else {
                self.wake(task, time, from);
            }
        }
    }

    /// The job of a task ends, if it has one; the next can begin at `next`.
    fn job_ends(&mut self, task: TaskId, next: Option<u64>) {
        let state = &mut self.tasks[task.index()];
        let Some(released) = mem::replace(&mut state.released, next) else { return };
        // A task that begins by waiting for its first job has not done one.
        if state.told.groups == 0 {
            return;
        }
        self.samples.responses.push(self.now.saturating_sub(released));
        if let Some(deadline) = state.params.relative_deadline {
            let late = self.now.saturating_sub(released + deadline.0);
            self.samples.tardiness.push(late);
            self.counts.misses += u64::from(late > 0);
        }
    }

    /// The run is over: jobs that are late already count.
    pub fn close(&mut self) {
        for task in self.tasks.iter().filter(|task| !task.has_ended && task.told.first > 0) {
            let due = task.released.zip(task.params.relative_deadline);
            let end = self.now.min(self.stop);
            if let Some((released, deadline)) = due
                && end > released + deadline.0
            {
                self.samples.tardiness.push(end - released - deadline.0);
                self.counts.misses += 1;
            }
        }
    }

    /// The tasks that have ended.
    pub fn ended(&self) -> impl Iterator<Item = result::Task> + '_ {
        let ended = self.tasks.iter().enumerate().filter(|(_, task)| task.has_ended);
        ended.map(|(serial, task)| named(task.told.clone(), serial))
    }

    /// What was measured many times.
    pub fn samples(&self) -> [(&'static str, &[u64]); 4] {
        let Samples { latencies, responses, tardiness, round_trips } = &self.samples;
        [
            ("wakeup_latency_ns", latencies),
            ("job_response_time_ns", responses),
            ("tardiness_ns", tardiness),
            ("round_trip_ns", round_trips),
        ]
    }

    /// What was counted.
    pub fn counts(&self) -> [(&'static str, u64); 8] {
        let Counts { work, dispatches, switches, migrations, preemptions, misses } = self.counts;
        let came = |task: &&Task| task.told.arrival > 0 || task.has_ended;
        let came = self.tasks.iter().filter(came).count() as u64;
        let ended = self.tasks.iter().filter(|task| task.has_ended).count() as u64;
        [
            ("work_ns", work),
            ("dispatches", dispatches),
            ("switches", switches),
            ("migrations", migrations),
            ("preemptions", preemptions),
            ("deadline_misses", misses),
            ("tasks", came),
            ("unfinished", came - ended),
        ]
    }
}

impl Task {
    fn new(scripted: &'static script::Task, cpus: usize) -> Task {
        let told = result::Task {
            name: scripted.name.clone(),
            service: Some(0),
            dispatches: Some(0),
            ..result::Task::default()
        };
        let mut task = Task {
            scripted,
            cursor: Cursor::new(&scripted.steps),
            params: anysched_start::params(20, CpuSet::All),
            left: 0,
            woken: None,
            blocked: None,
            released: has_jobs(&scripted.steps).then_some(0),
            holds: None,
            cpu: CpuId(0),
            has_ended: false,
            told,
        };
        // How it is created.
        let own = |step: &&Step| matches!(step, Step::Nice(_) | Step::Cpus(_) | Step::Deadline(_));
        let created = scripted.steps.iter().take_while(own).count();
        scripted.steps[..created].iter().for_each(|step| task.change(step, cpus));
        task.cursor = Cursor::new(&scripted.steps[created..]);
        task
    }

    /// It has what it waited for.
    fn take(&mut self, message: Message) {
        self.holds = Some(message.sent);
        if !message.brings.is_empty() {
            self.cursor.first_do(message.brings);
        }
    }

    fn change(&mut self, step: &Step, cpus: usize) {
        match step {
            Step::Nice(nice) => {
                let niceness = (20 + i32::from(*nice)) as u32;
                let affinity = self.params.affinity.clone();
                let of_nice = anysched_start::params(niceness, affinity);
                let relative_deadline = self.params.relative_deadline;
                self.params = TaskParams { relative_deadline, ..of_nice };
            }
            Step::Cpus(list) => {
                let own = list.iter().filter(|cpu| (**cpu as usize) < cpus);
                let own: Vec<CpuId> = own.map(|cpu| CpuId(*cpu as u16)).collect();
                self.params.affinity = if own.is_empty() { CpuSet::All } else { CpuSet::of(own) };
            }
            Step::Deadline(span) => self.params.relative_deadline = Some(Span(*span)),
            _ => {}
        }
    }
}

fn has_jobs(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Until(_) => true,
        Step::Repeat(_, steps) => has_jobs(steps),
        _ => false,
    })
}

/// Guests record nothing.
struct Unheard;

impl anysched_core::recorder::LogSink for Unheard {
    fn write(&mut self, _: &[u8]) {}
}
