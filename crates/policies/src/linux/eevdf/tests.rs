use super::*;
use anysched_core::{CpuSet, Params};

mod rule;
mod theory;

const MS: u64 = 1_000_000;

/// A host that does nothing by itself: each test says what happens when. Its CPUs share one
/// runqueue or have one each.
struct Host {
    rule: Eevdf,
    now: u64,
    cpus: Vec<Running>,
    own_queues: bool,
    /// Per task, what is known of it without the rule.
    known: Vec<Known>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    affinity: CpuSet,
    queue: usize,
    queued: bool,
}

/// Settings are on top of profile 6.6.
fn build(cpus: usize, queues: usize, settings: &[(&str, &str)]) -> Result<Eevdf, ParamError> {
    let mut params = EevdfParams { profile: Profile::Linux66, ..EevdfParams::default() };
    for (name, text) in settings {
        params.set(name, text)?;
    }
    Eevdf::build(&Machine::flat(cpus).unwrap(), queues, &params)
}

impl Host {
    fn with(cpus: usize, own_queues: bool, settings: &[(&str, &str)]) -> Host {
        let rule = build(cpus, if own_queues { cpus } else { 1 }, settings).unwrap();
        let idle = |cpu| Running::new(CpuId(cpu), None, Time::ZERO);
        let cpus = (0..cpus as u16).map(idle).collect();
        Host { rule, now: 0, cpus, own_queues, known: Vec::new() }
    }

    /// CPUs that share a runqueue.
    fn new(cpus: usize, settings: &[(&str, &str)]) -> Host {
        Host::with(cpus, false, settings)
    }

    /// One CPU, requests of 3 ms that end exactly and begin whole, and these settings.
    fn exact(settings: &[(&str, &str)]) -> Host {
        let mut all = EXACT.to_vec();
        all.extend(settings);
        Host::new(1, &all)
    }

    fn members(&self, queue: usize) -> &[Running] {
        if self.own_queues { &self.cpus[queue..=queue] } else { &self.cpus }
    }

    fn call<R>(&mut self, queue: usize, f: impl FnOnce(&mut Eevdf, &At<'_>) -> R) -> R {
        let running = if self.own_queues { &self.cpus[queue..=queue] } else { &self.cpus };
        f(&mut self.rule, &At { now: Time(self.now), queue, running })
    }

    fn queue_of(&self, cpu: usize) -> usize {
        if self.own_queues { cpu } else { 0 }
    }

    fn attach(&mut self, task: u32, params: &TaskParams) {
        let index = task as usize;
        if self.known.len() <= index {
            self.known.resize(index + 1, Known::default());
        }
        self.known[index] = Known { affinity: params.affinity.clone(), ..Known::default() };
        self.rule.attach(TaskId(task), params);
    }

    /// Puts the task into its runqueue. Returns the CPU that it preempts, if none is idle.
    fn enter(&mut self, task: u32, why: Why) -> Option<usize> {
        let queue = self.known[task as usize].queue;
        self.known[task as usize].queued = true;
        self.call(queue, |rule, at| rule.push(at, TaskId(task), &Entry::because(why)));
        let running = self.members(queue).to_vec();
        if running.iter().any(|running| running.task().is_none()) {
            return None;
        }
        let mut victim: Option<(u64, usize)> = None;
        for running in &running {
            let margin = self.call(queue, |rule, at| rule.preempts(at, TaskId(task), running));
            if let Some(margin) = margin
                && victim.is_none_or(|(most, _)| margin > most)
            {
                victim = Some((margin, running.cpu().index()));
            }
        }
        victim.map(|(_, cpu)| cpu)
    }

    /// Creates a task; whether it preempts.
    fn spawn(&mut self, task: u32, params: &TaskParams) -> bool {
        self.attach(task, params);
        self.enter(task, Why::New).is_some()
    }

    /// Wakes a task; whether it preempts.
    fn wake(&mut self, task: u32) -> bool {
        self.enter(task, Why::Woken).is_some()
    }

    /// The task that the CPU picks now, and its slice.
    fn pick_on(&mut self, cpu: usize) -> Option<(u32, u64)> {
        assert!(self.cpus[cpu].task().is_none());
        let (queue, id) = (self.queue_of(cpu), CpuId(cpu as u16));
        let known = core::mem::take(&mut self.known);
        let fits = |task: TaskId| known[task.index()].affinity.contains(id);
        let task = self.call(queue, |rule, at| rule.pop(at, id, fits));
        self.known = known;
        let task = task?;
        self.known[task.index()].queued = false;
        self.cpus[cpu] = Running::new(CpuId(cpu as u16), Some(task), Time(self.now));
        let slice = self.call(queue, |rule, at| rule.slice(at, task));
        assert_ne!(slice, Span::ZERO);
        Some((task.0, slice.0))
    }

    /// Charges what the CPU runs with all of the time since the last charge.
    fn charge(&mut self, cpu: usize) -> TaskId {
        self.charge_part(cpu, Span(self.now - self.cpus[cpu].since().0))
    }

    fn charge_part(&mut self, cpu: usize, ran: Span) -> TaskId {
        let task = self.cpus[cpu].task().unwrap();
        self.call(self.queue_of(cpu), |rule, at| rule.charge(at, task, ran));
        self.cpus[cpu] = Running::new(CpuId(cpu as u16), self.cpus[cpu].task(), Time(self.now));
        task
    }

    fn put_on(&mut self, cpu: usize, why: Off) {
        let (task, since) = (self.cpus[cpu].task().unwrap(), self.cpus[cpu].since());
        let ran = Time(self.now).since(since);
        self.call(self.queue_of(cpu), |rule, at| rule.settle(at, task, ran, why));
        self.put_charged(cpu, task, why);
    }

    fn put_charged(&mut self, cpu: usize, task: TaskId, why: Off) {
        self.cpus[cpu] = Running::new(CpuId(cpu as u16), None, Time(self.now));
        let entry = Entry::because(Why::Put(why));
        let queued = self.call(self.queue_of(cpu), |rule, at| {
            if why.runnable() {
                rule.push(at, task, &entry);
            }
            why.runnable() || rule.leave(at, task, why)
        });
        self.known[task.index()].queued = queued;
    }

    /// What CPU 0 picks now.
    fn pick(&mut self) -> Option<u32> {
        self.pick_on(0).map(|(task, _)| task)
    }

    /// CPU 0 runs for `ns`, then its task stops for this reason.
    fn run(&mut self, ns: u64, why: Off) {
        self.now += ns;
        self.put_on(0, why);
    }

    /// CPU 0 runs for `ns` and ticks; whether it shall pick again.
    fn tick(&mut self, ns: u64) -> bool {
        self.now += ns;
        self.tick_on(0)
    }

    fn tick_on(&mut self, cpu: usize) -> bool {
        let task = self.charge(cpu);
        self.call(self.queue_of(cpu), |rule, at| rule.tick(at, task))
    }

    /// A host cannot know that a delayed task has been dropped: it goes on calling it queued.
    fn update(&mut self, task: u32, params: &TaskParams) {
        let Known { queue, queued, .. } = self.known[task as usize];
        let is = match self.cpus.iter().any(|running| running.task() == Some(TaskId(task))) {
            true => Whereabouts::Running,
            false if queued => Whereabouts::Queued,
            false => Whereabouts::Away,
        };
        self.call(queue, |rule, at| rule.update(at, is, TaskId(task), params));
    }

    fn remove(&mut self, task: u32, why: Removal) {
        let queue = self.known[task as usize].queue;
        self.known[task as usize].queued = false;
        self.call(queue, |rule, at| rule.remove(at, TaskId(task), why));
    }

    /// vruntime and deadline.
    fn at(&self, task: u32) -> (u64, u64) {
        let task = &self.rule.tasks[TaskId(task)];
        (task.vruntime.0, task.deadline.0)
    }

    fn lag(&self, task: u32) -> i64 {
        self.rule.tasks[TaskId(task)].lag
    }

    /// The sums of runqueue 0.
    fn mean(&self) -> Mean {
        self.rule.queues[0].mean
    }
}

const EXACT: [(&str, &str); 4] = [
    ("base_slice", "3ms"),
    ("tunable_scaling", "none"),
    ("tick", "0"),
    ("place_deadline_initial", "false"),
];

/// A task of nice 0 with a slice of its own.
fn sliced(us: u64) -> TaskParams {
    TaskParams { budget: Some(Span::from_us(us)), ..TaskParams::default() }
}

/// A task of nice 0 that may run on one CPU only.
fn pinned(cpu: u16) -> TaskParams {
    TaskParams { affinity: CpuSet::of([CpuId(cpu)]), ..TaskParams::default() }
}
