//! A simple policy with a bug of each kind, for tests of what finds bugs.

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, Enqueue, Machine, Off, Pick, Scheduler, ShortPick, Span, TaskId,
    TaskParams, Time,
};

/// What is wrong with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Nothing.
    None,
    /// What arrives while a CPU is about to pick kicks no one, whether that CPU may run it or not.
    TrustsOneKick,
    /// The only kick is that of the lowest idle CPU, whether the task may run there or not.
    KicksTheLowest,
    /// A task that is put back by a CPU that may not run it any more kicks no one.
    ForgetsKickOfPut,
    /// A task that may suddenly run on an idle CPU kicks no one.
    ForgetsKickOfUpdate,
    /// A CPU that comes into use picks nothing.
    ForgetsKickOfOnline,
    /// A task that is taken out for a moment is put back nowhere.
    LosesResumed,
    /// The last to arrive is always first, so that the first may never run again.
    LastFirst,
    /// A task that exits leaves its neighbour out of the queue.
    ExitTakesTwo,
    /// A slice of what is left of the quantum, of which nothing may be left.
    ZeroSlice,
    /// A running task is picked again by another CPU if it is alone.
    RunsTwice,
    /// Bound tasks run anywhere if they were bound while they ran.
    IgnoresBinding,
    /// The timer is set to a time that has passed if it is asked for late.
    TimerInThePast,
    /// CPU 2 of 2 is kicked when the queue is long.
    KicksTooFar,
    /// Yielding in one call leaves the yielder first.
    YieldsOtherwise,
    /// It panics if a task leaves a queue of three.
    Panics,
    /// It says that tasks are in no order.
    SaysTooLittle,
}

/// How long a task runs at a time.
pub const QUANTUM: Span = Span::from_ms(10);

/// Round robin over one queue, simple enough to be right.
pub struct Simple {
    bug: Bug,
    queue: Vec<TaskId>,
    tasks: Vec<Known>,
    cpus: Vec<OnCpu>,
}

#[derive(Clone)]
struct Known {
    affinity: CpuSet,
    left: Span,
    bound_while_it_ran: bool,
}

struct OnCpu {
    online: bool,
    runs: Option<TaskId>,
    /// It was kicked, or its task was put back.
    chooses: bool,
}

impl Simple {
    /// For `machine`, with `bug`.
    pub fn new(bug: Bug, machine: &Machine) -> Simple {
        let cpu = |_| OnCpu { online: true, runs: None, chooses: false };
        let cpus = machine.cpu_ids().map(cpu).collect();
        Simple { bug, queue: Vec::new(), tasks: Vec::new(), cpus }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn may_run(&self, cpu: usize, task: TaskId) -> bool {
        let known = &self.tasks[task.index()];
        let ignores = self.has(Bug::IgnoresBinding) && known.bound_while_it_ran;
        ignores || known.affinity.contains(CpuId(cpu as u16))
    }

    /// Kicks an idle CPU for each waiting task that none is about to pick for.
    fn serve(&mut self, cx: &mut Cx<'_>) {
        if self.has(Bug::TrustsOneKick) && self.cpus.iter().any(|cpu| cpu.chooses) {
            return;
        }
        for &task in &self.queue.clone() {
            let idle = |cpu: &OnCpu| cpu.online && cpu.runs.is_none() && !cpu.chooses;
            let lowest = (0..self.cpus.len()).find(|&cpu| {
                idle(&self.cpus[cpu]) && (self.has(Bug::KicksTheLowest) || self.may_run(cpu, task))
            });
            if let Some(cpu) = lowest {
                self.kick(cx, cpu);
            }
        }
        if self.has(Bug::KicksTooFar) && self.queue.len() == 3 {
            cx.kick(CpuId(self.cpus.len() as u16));
        }
    }

    fn kick(&mut self, cx: &mut Cx<'_>, cpu: usize) {
        self.cpus[cpu].chooses = true;
        cx.kick(CpuId(cpu as u16));
    }

    fn put(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        let on = &mut self.cpus[cpu.index()];
        (on.runs, on.chooses) = (None, on.online);
        let known = &mut self.tasks[task.index()];
        known.left = known.left.saturating_sub(ran);
        let keeps = known.left > Span::ZERO || self.bug == Bug::ZeroSlice;
        let goes_on = matches!(why, Off::NotRun | Off::Preempted) && keeps;
        if !goes_on {
            known.left = QUANTUM;
        }
        match why {
            Off::Exited if self.has(Bug::ExitTakesTwo) && self.queue.len() > 1 => {
                self.queue.remove(0);
            }
            Off::Blocked | Off::Exited => {}
            _ if goes_on || self.has(Bug::LastFirst) => self.queue.insert(0, task),
            _ => self.queue.push(task),
        }
        if !self.has(Bug::ForgetsKickOfPut) {
            self.serve(cx);
        }
    }
}

impl Scheduler for Simple {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let affinity = params.affinity.clone();
        let new = Known { affinity, left: QUANTUM, bound_while_it_ran: false };
        self.tasks.resize(self.tasks.len().max(task.index() + 1), new.clone());
        self.tasks[task.index()] = new;
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let running = self.cpus.iter().position(|cpu| cpu.runs == Some(task));
        let known = &mut self.tasks[task.index()];
        known.affinity = params.affinity.clone();
        known.bound_while_it_ran = running.is_some();
        match running {
            Some(cpu) if !known.affinity.contains(CpuId(cpu as u16)) => self.kick(cx, cpu),
            _ if self.has(Bug::ForgetsKickOfUpdate) => {}
            _ => self.serve(cx),
        }
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        let on = &mut self.cpus[cpu.index()];
        (on.online, on.chooses) = (online, false);
        if !self.has(Bug::ForgetsKickOfOnline) || !online {
            self.serve(cx);
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let resumed = matches!(arrival.why, Enqueue::Resumed { .. });
        if !resumed || !self.has(Bug::LosesResumed) {
            self.queue.push(task);
        }
        self.serve(cx);
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        if self.has(Bug::Panics) && self.queue.len() == 3 {
            // As a panic, without its message on the terminal.
            std::panic::resume_unwind(Box::new("three are too many"));
        }
        self.queue.retain(|&queued| queued != task);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let on = &mut self.cpus[cpu.index()];
        on.chooses = false;
        if !on.online {
            return None;
        }
        let fits = |&task: &TaskId| self.may_run(cpu.index(), task);
        let Some(at) = self.queue.iter().position(fits) else {
            self.serve(cx);
            let other = self.cpus.iter().find_map(|cpu| cpu.runs);
            let other = other.filter(|_| self.has(Bug::RunsTwice));
            return other.map(|task| Pick { task, slice: QUANTUM });
        };
        let task = self.queue.remove(at);
        self.cpus[cpu.index()].runs = Some(task);
        self.serve(cx);
        Some(Pick { task, slice: self.tasks[task.index()].left })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.put(cx, cpu, task, ran, why);
    }

    fn yield_and_pick(
        &mut self,
        cx: &mut Cx<'_>,
        cpu: CpuId,
        task: TaskId,
        ran: Span,
    ) -> ShortPick {
        let why = if self.has(Bug::YieldsOtherwise) { Off::Preempted } else { Off::Yielded };
        self.put(cx, cpu, task, ran, why);
        self.pick_next(cx, cpu).into()
    }

    fn next_timer(&self) -> Option<Time> {
        let late = self.has(Bug::TimerInThePast) && self.queue.len() > 1;
        late.then_some(Time::ZERO + QUANTUM)
    }

    fn canon(&self, to: &mut Canon) {
        let mut queue = self.queue.clone();
        if self.has(Bug::SaysTooLittle) {
            queue.sort();
        }
        queue.canon(&(), to);
        for Known { affinity, left, bound_while_it_ran } in &self.tasks {
            affinity.canon(&(), to);
            left.canon(&(), to);
            bound_while_it_ran.canon(&(), to);
        }
        for OnCpu { online, runs, chooses } in &self.cpus {
            [*online, *chooses].canon(&(), to);
            runs.canon(&(), to);
        }
    }
}
