//! The order within a runqueue.

use anysched_core::{Off, Span, TaskParams};

/// When, and of which CPU's runqueue.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// In ns.
    pub now: u64,
    /// The CPU.
    pub cpu: usize,
    /// The task that it runs, and since when it was not charged, in ns.
    pub running: Option<(usize, u64)>,
}

/// Why a task enters a runqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    /// It has just been created.
    New,
    /// It was blocked.
    Woken,
    /// It was taken out for a moment.
    Resumed,
    /// It comes from another runqueue.
    Moved,
}

/// Where a task is when its weight changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Blocked or new.
    Away,
    /// Waiting in the runqueue.
    Waiting,
    /// Running.
    Running,
}

/// An order of one runqueue per CPU, without balancing.
pub trait Rule {
    /// A new task.
    fn attach(&mut self, task: usize, params: &TaskParams);

    /// `task`, which sleeps, is forgotten.
    fn detach(&mut self, _at: At, _task: usize) {}

    /// Another weight or slice, perhaps.
    fn reweigh(&mut self, _at: At, _task: usize, _is: Where, _params: &TaskParams) {}

    /// The affinity of `task` changes, for which it is taken out and put back.
    fn rebind(&mut self, _at: At, _task: usize, _is: Where) {}

    /// `task` begins to wait here; `by` has created or woken it.
    fn enter(&mut self, at: At, task: usize, why: Enter, by: Option<usize>);

    /// Takes out the next one, with its slice.
    fn pick(&mut self, at: At) -> Option<(usize, Span)>;

    /// `task` has run for `ran` and waits again.
    fn put_back(&mut self, at: At, task: usize, ran: Span, why: Off);

    /// `task` has run for `ran` and blocks. Whether it stays queued all the same, as one that is
    /// not picked any more (delayed dequeue).
    fn leave(&mut self, at: At, task: usize, ran: Span, why: Off) -> bool;

    /// `task`, which waits here, is taken out, or moves to another runqueue.
    fn remove(&mut self, at: At, task: usize, moves: bool);

    /// A tick after `ran`. Whether the CPU should pick again.
    fn tick(&mut self, at: At, task: usize, ran: Span) -> bool;

    /// Whether `task`, which has just entered, interrupts what runs.
    fn preempts(&mut self, _at: At, _task: usize) -> bool {
        false
    }

    /// `cpu` is going to pick again, as what it runs is to go elsewhere.
    fn tell(&mut self, _cpu: usize) {}

    /// Whether `cpu` should pick again, whatever was the cause.
    fn wants_pick(&self, _cpu: usize) -> bool {
        false
    }

    /// The sleeping tasks that stayed queued until now and are not any more, since this was asked
    /// last.
    fn dropped(&mut self) -> Vec<usize> {
        Vec::new()
    }

    /// Whether a CPU that is busy leaves `task`, which waits here, alone: it is to run soon.
    fn is_buddy(&self, _cpu: usize, _task: usize) -> bool {
        false
    }

    /// Whether `task`, which waits here, is owed CPU time.
    fn is_owed(&self, _cpu: usize, _task: usize) -> bool {
        true
    }

    /// Whether `task` has no cache to lose, whenever it ran.
    fn is_cold(&self, _task: usize) -> bool {
        false
    }

    /// What it counted.
    fn tally(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}

    /// What it shows of `task`.
    fn probe(&self, _task: usize, _sink: &mut dyn FnMut(&'static str, i64)) {}
}

fn slot<T: Clone>(list: &mut Vec<T>, index: usize, new: T) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, new);
    }
    &mut list[index]
}

/// Round robin: who is preempted comes first again with the rest of its quantum, all others last.
#[derive(Clone, Debug)]
pub struct Turns {
    quantum: Span,
    queues: Vec<Vec<usize>>,
    left: Vec<Span>,
}

impl Turns {
    /// With this quantum.
    pub fn new(cpus: usize, quantum: Span) -> Turns {
        Turns { quantum, queues: vec![Vec::new(); cpus], left: Vec::new() }
    }

    fn use_up(&mut self, task: usize, ran: Span) {
        if self.quantum < Span::MAX {
            self.left[task] = self.left[task].saturating_sub(ran);
        }
    }
}

impl Rule for Turns {
    fn attach(&mut self, task: usize, _: &TaskParams) {
        *slot(&mut self.left, task, Span::ZERO) = self.quantum;
    }

    fn enter(&mut self, at: At, task: usize, why: Enter, _: Option<usize>) {
        if why == Enter::Resumed && self.left[task] < self.quantum {
            return self.queues[at.cpu].insert(0, task);
        }
        if self.left[task] == Span::ZERO {
            self.left[task] = self.quantum;
        }
        self.queues[at.cpu].push(task);
    }

    fn pick(&mut self, at: At) -> Option<(usize, Span)> {
        let queue = &mut self.queues[at.cpu];
        let task = (!queue.is_empty()).then(|| queue.remove(0))?;
        Some((task, self.left[task]))
    }

    fn put_back(&mut self, at: At, task: usize, ran: Span, why: Off) {
        self.use_up(task, ran);
        let keeps = why == Off::NotRun || why == Off::Preempted && self.left[task] > Span::ZERO;
        if keeps {
            return self.queues[at.cpu].insert(0, task);
        }
        self.left[task] = self.quantum;
        self.queues[at.cpu].push(task);
    }

    fn leave(&mut self, _: At, task: usize, ran: Span, _: Off) -> bool {
        self.use_up(task, ran);
        false
    }

    fn remove(&mut self, at: At, task: usize, _: bool) {
        self.queues[at.cpu].retain(|&other| other != task);
    }

    fn tick(&mut self, _: At, task: usize, ran: Span) -> bool {
        self.use_up(task, ran);
        false
    }

    fn probe(&self, task: usize, sink: &mut dyn FnMut(&'static str, i64)) {
        sink("quantum_left_ns", self.left[task].0 as i64);
    }
}

const QUANTUM: Span = Span::from_ms(10);
const STRIDE1: i128 = 1 << 52;

#[derive(Clone, Debug, Default)]
struct Tickets {
    tickets: i128,
    pass: i128,
    /// How far ahead of the global pass it is while it is away.
    remain: i128,
    number: u64,
    /// CPU time in the global pass that it was not charged for, in ns.
    counted: u64,
}

/// Stride scheduling with a global pass per runqueue.
#[derive(Clone, Debug)]
pub struct Stride {
    tasks: Vec<Tickets>,
    /// Waiting.
    queues: Vec<Vec<usize>>,
    /// Waiting or running.
    present: Vec<Vec<usize>>,
    global: Vec<i128>,
    numbers: u64,
}

impl Stride {
    /// With a quantum of 10 ms.
    pub fn new(cpus: usize) -> Stride {
        Stride {
            tasks: Vec::new(),
            queues: vec![Vec::new(); cpus],
            present: vec![Vec::new(); cpus],
            global: vec![0; cpus],
            numbers: 0,
        }
    }

    fn stride(&self, task: usize) -> i128 {
        STRIDE1 / self.tasks[task].tickets
    }

    fn move_global(&mut self, cpu: usize, ran: i128) {
        let tickets: i128 = self.present[cpu].iter().map(|&task| self.tasks[task].tickets).sum();
        if tickets > 0 {
            self.global[cpu] += STRIDE1 * ran / (tickets * i128::from(QUANTUM.0));
        }
    }

    /// The running task has used what it was not charged for yet.
    fn catch_up(&mut self, at: At) {
        let Some((task, since)) = at.running else { return };
        let used = (at.now - since).max(self.tasks[task].counted);
        let new = used - self.tasks[task].counted;
        self.tasks[task].counted = used;
        self.move_global(at.cpu, new.into());
    }

    fn charge(&mut self, cpu: usize, task: usize, ran: Span) {
        let counted = std::mem::take(&mut self.tasks[task].counted);
        self.tasks[task].pass += self.stride(task) * i128::from(ran.0) / i128::from(QUANTUM.0);
        self.move_global(cpu, i128::from(ran.0) - i128::from(counted));
    }

    fn join(&mut self, at: At, task: usize) {
        self.catch_up(at);
        self.present[at.cpu].push(task);
        self.tasks[task].pass = self.global[at.cpu] + self.tasks[task].remain;
    }

    fn part(&mut self, at: At, task: usize) {
        self.catch_up(at);
        self.present[at.cpu].retain(|&other| other != task);
        self.tasks[task].remain = self.tasks[task].pass - self.global[at.cpu];
    }

    fn number(&mut self, task: usize) {
        self.numbers += 1;
        self.tasks[task].number = self.numbers;
    }
}

impl Rule for Stride {
    fn attach(&mut self, task: usize, params: &TaskParams) {
        let tickets = i128::from(params.weight.max(1));
        let new = Tickets { tickets, remain: STRIDE1 / tickets, ..Tickets::default() };
        *slot(&mut self.tasks, task, Tickets { tickets: 1, ..Tickets::default() }) = new;
    }

    fn reweigh(&mut self, at: At, task: usize, is: Where, params: &TaskParams) {
        if is != Where::Away {
            self.part(at, task);
        }
        let before = self.stride(task);
        self.tasks[task].tickets = i128::from(params.weight.max(1));
        let remain = self.tasks[task].remain;
        let after = self.stride(task);
        self.tasks[task].remain = remain / before * after + remain % before * after / before;
        if is != Where::Away {
            self.join(at, task);
        }
    }

    fn enter(&mut self, at: At, task: usize, why: Enter, _: Option<usize>) {
        if matches!(why, Enter::New | Enter::Woken) {
            self.number(task);
        }
        self.join(at, task);
        self.queues[at.cpu].push(task);
    }

    fn pick(&mut self, at: At) -> Option<(usize, Span)> {
        let key = |&task: &usize| (self.tasks[task].pass, self.tasks[task].number);
        let first = self.queues[at.cpu].iter().copied().min_by_key(key)?;
        self.queues[at.cpu].retain(|&other| other != first);
        Some((first, QUANTUM))
    }

    fn put_back(&mut self, at: At, task: usize, ran: Span, why: Off) {
        self.charge(at.cpu, task, ran);
        if why == Off::Yielded {
            self.number(task);
        }
        self.queues[at.cpu].push(task);
    }

    fn leave(&mut self, at: At, task: usize, ran: Span, _: Off) -> bool {
        self.charge(at.cpu, task, ran);
        self.part(At { running: None, ..at }, task);
        false
    }

    fn remove(&mut self, at: At, task: usize, _: bool) {
        self.queues[at.cpu].retain(|&other| other != task);
        self.part(at, task);
    }

    fn tick(&mut self, at: At, task: usize, ran: Span) -> bool {
        self.charge(at.cpu, task, ran);
        false
    }
}
