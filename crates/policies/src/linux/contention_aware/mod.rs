//! Round robin on each CPU; tasks that use the memory much do not share a CPU, and share caches as
//! little as possible.
//!
//! Source: what the GFS paper (Cao Yue, Gu Naijie 2015) says of the cache-contention
//! scheduling that it compares with: tasks have a strength, from counters of the memory system; a
//! CPU takes its tasks round robin; strong tasks are spread so that no two are on one CPU. The rest
//! was decided here and is marked †.
//!
//! - Strength: a task is strong if its [`TaskParams::intensity`] is at least `strong`†, weak
//!   otherwise. Tasks are *on* the CPU where they run or wait; one that is blocked is on none†.
//! - Order: one list per CPU, served from its head. Every turn is a `quantum`†; whoever has used it
//!   up or yields goes to the tail with a new one, as do new and woken tasks†. What the host takes
//!   off goes back to the head with the rest of its quantum†. Nobody preempts†.
//! - Place of a strong task that becomes ready: the CPU with the fewest strong tasks on it; of
//!   these an idle one†; then the one with the fewest strong tasks on its core, behind its
//!   last-level cache†, the fewest tasks, the nearest to where it was, the lowest.
//! - Place of a weak one: the CPU with the fewest tasks on it, then† the one with the fewest on its
//!   core, the nearest, the lowest.
//! - Balancing†: at the end of its turn a task leaves a CPU where others wait for one that idles.
//!   Otherwise it moves if that leaves both CPUs with less than its own has now, and a strong one
//!   then shares no more with strong ones than before. A strong one also moves if it then shares
//!   less, to a CPU with fewer tasks than its own has with it; to any, if that ends that two strong
//!   ones are on one CPU.
//! - Pulling†: a CPU without tasks takes a waiting one that its own CPU is not about to pick: a
//!   strong one that shares its CPU with a strong one, else a weak one, else a strong one; of each
//!   the first from the longest list, the nearest, the lowest.
//!
//! A strong task comes to a CPU with a strong one only if each CPU that it may use has one. As soon
//! as another has none they part, at the end of a turn.
//! Cost, with M CPUs and N tasks: O(M) when a task becomes ready or ends its turn; O(1) to pick,
//! but O(M + N) with nothing to run.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::cmp::Reverse;

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuSet, TaskId};
use anysched_core::machine::{Distance, Level};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Links, List};
use anysched_core::registry::{Bound, First, Policy};
use anysched_core::time::Span;
use anysched_core::{
    Arrival, Canon, Cx, Enqueue, Machine, Off, PerTask, Pick, Scheduler, canon_fields, canonical,
    params,
};

params! {
    /// Parameters of `contention-aware`.
    pub struct ContentionAwareParams {
        /// Time a task runs before the next one of its CPU has its turn.
        quantum: Span = Span::from_ms(6),
        /// Intensity from which on a task is strong, in percent; 0 to 101, which none has.
        strong: u32 = 50,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct ContentionAware {
    quantum: Span,
    strong: u32,
    machine: Machine,
    cpus: Vec<Cpu>,
    /// By core.
    cores: Vec<On>,
    /// By last-level cache.
    llcs: Vec<On>,
    links: Links,
    tasks: PerTask<Task>,
}

/// What is on a CPU, or on all that share something: runs or waits there.
#[derive(Clone, Copy, Debug, Default)]
struct On {
    tasks: u32,
    strong: u32,
}

#[derive(Clone, Debug)]
struct Cpu {
    online: bool,
    on: On,
    queue: List,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Between two tasks: a pick is coming.
    Choosing,
    Running,
}

#[derive(Clone, Debug)]
struct Task {
    affinity: CpuSet,
    strong: bool,
    /// What is left of its turn.
    left: Span,
    /// Where it is, or was when it last ran.
    cpu: CpuId,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Blocked,
    Waiting,
    Running,
}

/// How much a strong task shares with others: on the CPU, on its core, behind its cache.
type Shared = [u32; 3];

/// Which waiting tasks are pulled first: by strength, the length of the list, the distance.
type Lure = (u8, Reverse<usize>, Distance);

impl Policy for ContentionAware {
    type Params = ContentionAwareParams;
    const SOURCE: &'static str = "GFS paper, Cao and Gu 2015, on what it compares with";
    const ORDER: &'static [First] = &[First::Longest];

    /// A quantum of each other task, if all are at the same CPU.
    fn longest_wait(params: &Self::Params) -> Option<Bound> {
        Some(Bound { fixed: Span::ZERO, per_rival: params.quantum })
    }

    fn build(machine: &Machine, _: usize, params: &Self::Params) -> Result<Self, ParamError> {
        if params.quantum == Span::ZERO {
            return Err(ParamError::Invalid { name: "quantum", why: "must be above 0" });
        }
        if params.strong > 101 {
            return Err(ParamError::Invalid { name: "strong", why: "must be from 0 to 101" });
        }
        let queue = List::default();
        let cpu = Cpu { online: true, on: On::default(), queue, state: State::Idle };
        Ok(ContentionAware {
            quantum: params.quantum,
            strong: params.strong,
            cpus: alloc::vec![cpu; machine.cpus()],
            cores: alloc::vec![On::default(); machine.groups(Level::Core)],
            llcs: alloc::vec![On::default(); machine.groups(Level::Llc)],
            links: Links::default(),
            tasks: PerTask::new(),
            machine: machine.clone(),
        })
    }
}

impl On {
    fn change(&mut self, strong: bool, enters: bool) {
        let (tasks, strong) = (1, u32::from(strong));
        if enters {
            self.tasks += tasks;
            self.strong += strong;
        } else {
            self.tasks -= tasks;
            self.strong -= strong;
        }
    }
}

impl ContentionAware {
    fn task(&self, params: &TaskParams) -> Task {
        Task {
            affinity: params.affinity.clone(),
            strong: u32::from(params.intensity) >= self.strong,
            left: self.quantum,
            cpu: CpuId(0),
            place: Place::Blocked,
        }
    }

    fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].online && self.tasks[task].affinity.contains(cpu)
    }

    /// Counts `task` where it is, or no longer.
    fn count(&mut self, task: TaskId, enters: bool) {
        let Task { cpu, strong, .. } = self.tasks[task];
        let at = self.machine.cpu(cpu);
        self.cpus[cpu.index()].on.change(strong, enters);
        self.cores[usize::from(at.core)].change(strong, enters);
        self.llcs[usize::from(at.llc)].change(strong, enters);
    }

    fn on(&self, cpu: CpuId) -> On {
        self.cpus[cpu.index()].on
    }

    fn core(&self, cpu: CpuId) -> On {
        self.cores[usize::from(self.machine.cpu(cpu).core)]
    }

    fn shared(&self, cpu: CpuId) -> Shared {
        let llc = self.llcs[usize::from(self.machine.cpu(cpu).llc)];
        [self.on(cpu).strong, self.core(cpu).strong, llc.strong]
    }

    /// The best CPU for `task`, which is on none, among those that it may run on and that `suit`.
    fn best(&self, task: TaskId, suits: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        let Task { strong, cpu: prev, .. } = self.tasks[task];
        let allowed = self.machine.cpu_ids().filter(|&cpu| self.may_run(task, cpu) && suits(cpu));
        allowed.min_by_key(|&cpu| {
            let tasks = self.on(cpu).tasks;
            let near = self.machine.distance(prev, cpu);
            if strong {
                let [own, core, llc] = self.shared(cpu);
                ([own, u32::from(tasks > 0), core, llc, tasks], near)
            } else {
                ([tasks, self.core(cpu).tasks, 0, 0, 0], near)
            }
        })
    }

    /// `task`, which is on no CPU, waits where it is best; without a CPU that it may run on, where
    /// it was.
    fn place(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let cpu = self.best(task, |_| true).unwrap_or(self.tasks[task].cpu);
        self.queue(cx, task, cpu, false);
    }

    /// `task`, which is on no CPU, waits on `cpu`: at the head or the tail.
    fn queue(&mut self, cx: &mut Cx<'_>, task: TaskId, cpu: CpuId, first: bool) {
        let known = &mut self.tasks[task];
        known.cpu = cpu;
        known.place = Place::Waiting;
        let on = &mut self.cpus[cpu.index()];
        match first {
            true => self.links.push_front(&mut on.queue, task),
            false => self.links.push_back(&mut on.queue, task),
        }
        if on.online && on.state == State::Idle {
            cx.kick(cpu);
        }
        self.count(task, true);
        self.touched(cx, cpu);
    }

    /// `task`, which waits, is on no CPU any more.
    fn take_out(&mut self, task: TaskId) {
        let cpu = self.tasks[task].cpu.index();
        self.links.remove(&mut self.cpus[cpu].queue, task);
        self.leave(task);
    }

    /// `task` is on no CPU any more and in no list.
    fn leave(&mut self, task: TaskId) {
        self.count(task, false);
        self.tasks[task].place = Place::Blocked;
    }

    fn touched(&self, cx: &mut Cx<'_>, cpu: CpuId) {
        cx.work.queue = cpu.0;
        cx.work.queued = self.cpus[cpu.index()].queue.len() as u32;
    }

    /// Whether `task`, which is on no CPU, is better off on `to` than behind all others on `own`.
    fn is_better(&self, task: TaskId, own: CpuId, to: CpuId) -> bool {
        let (here, there) = (self.on(own).tasks, self.on(to).tasks);
        if to == own || (there == 0 && here > 0) {
            return to != own;
        }
        if !self.tasks[task].strong {
            return there < here;
        }
        let (shares, would) = (self.shared(own), self.shared(to));
        match would.cmp(&shares) {
            core::cmp::Ordering::Less => there <= here || would[0] < shares[0],
            core::cmp::Ordering::Equal => there < here,
            core::cmp::Ordering::Greater => false,
        }
    }

    /// The turn of `task`, which is on no CPU, is over.
    fn end_turn(&mut self, cx: &mut Cx<'_>, task: TaskId, own: CpuId) {
        self.tasks[task].left = self.quantum;
        let to = self.best(task, |cpu| self.is_better(task, own, cpu)).unwrap_or(own);
        self.queue(cx, task, to, false);
    }

    /// A waiting task of another CPU for `cpu`, which has none; with how many were looked at.
    fn find(&self, cpu: CpuId) -> (Option<TaskId>, u32) {
        let mut scanned = 0;
        let mut best: Option<(Lure, TaskId)> = None;
        for from in self.machine.cpu_ids() {
            let Cpu { queue, on, online, state } = &self.cpus[from.index()];
            let near = self.machine.distance(cpu, from);
            // A CPU that is about to pick keeps what it will pick.
            let kept = usize::from(*online && *state != State::Running);
            for task in self.links.iter(queue).skip(kept) {
                scanned += 1;
                if !self.may_run(task, cpu) {
                    continue;
                }
                let rank = match (self.tasks[task].strong, on.strong) {
                    (true, 2..) => 0,
                    (false, _) => 1,
                    (true, _) => 2,
                };
                let key = (rank, Reverse(queue.len()), near);
                if best.is_none_or(|(least, _)| key < least) {
                    best = Some((key, task));
                }
            }
        }
        (best.map(|(_, task)| task), scanned)
    }
}

impl Scheduler for ContentionAware {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.links.attach(task);
        self.tasks.set(task, self.task(params));
    }

    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let Task { affinity, strong, .. } = self.task(params);
        let known = &self.tasks[task];
        if (&known.affinity, known.strong) == (&affinity, strong) {
            return;
        }
        let (cpu, place) = (known.cpu, known.place);
        if place != Place::Blocked {
            self.count(task, false);
        }
        self.tasks[task].affinity = affinity;
        self.tasks[task].strong = strong;
        if place != Place::Blocked {
            self.count(task, true);
        }
        match place {
            Place::Waiting => {
                self.take_out(task);
                self.place(cx, task);
            }
            Place::Running if !self.may_run(task, cpu) && self.cpus[cpu.index()].online => {
                cx.kick(cpu);
            }
            Place::Running | Place::Blocked => {}
        }
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.cpus[cpu.index()].online = online;
        if online {
            if self.cpus[cpu.index()].state != State::Running {
                self.cpus[cpu.index()].state = State::Idle;
                // What waits elsewhere may run here.
                cx.kick(cpu);
            }
            return;
        }
        for _ in 0..self.cpus[cpu.index()].queue.len() {
            if let Some(task) = self.cpus[cpu.index()].queue.front() {
                self.take_out(task);
                self.place(cx, task);
            }
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let known = &mut self.tasks[task];
        match arrival.why {
            Enqueue::New => {
                known.cpu = arrival.from.unwrap_or(CpuId(0));
                known.left = self.quantum;
            }
            Enqueue::Wakeup { prev, .. } => {
                known.cpu = prev;
                known.left = self.quantum;
            }
            Enqueue::Resumed { prev } => {
                known.cpu = prev;
                if known.left == Span::ZERO {
                    known.left = self.quantum;
                }
            }
        }
        self.place(cx, task);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.take_out(task);
        self.touched(cx, self.tasks[task].cpu);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let own = &mut self.cpus[cpu.index()];
        own.state = State::Idle;
        if !own.online {
            return None;
        }
        let mut next = self.links.pop_front(&mut own.queue);
        if next.is_none() {
            let (found, scanned) = self.find(cpu);
            if let Some(task) = found {
                self.take_out(task);
                self.tasks[task].cpu = cpu;
                self.count(task, true);
            }
            cx.work.scanned = scanned;
            next = found;
        }
        self.touched(cx, cpu);
        let task = next?;
        self.cpus[cpu.index()].state = State::Running;
        let known = &mut self.tasks[task];
        known.place = Place::Running;
        Some(Pick { task, slice: known.left })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.tick(cx, cpu, task, ran);
        self.leave(task);
        self.cpus[cpu.index()].state = State::Choosing;
        self.touched(cx, cpu);
        if !why.runnable() {
            return;
        }
        let goes_on = match why {
            Off::NotRun => true,
            Off::Preempted => self.tasks[task].left > Span::ZERO,
            _ => false,
        };
        if self.tasks[task].left == Span::ZERO {
            self.tasks[task].left = self.quantum;
        }
        if !self.may_run(task, cpu) {
            self.place(cx, task);
        } else if goes_on {
            self.queue(cx, task, cpu, true);
        } else {
            self.end_turn(cx, task, cpu);
        }
        if self.cpus[cpu.index()].online {
            cx.kick_if_undone(cpu, why);
        }
    }

    fn tick(&mut self, _: &mut Cx<'_>, _: CpuId, task: TaskId, ran: Span) {
        let left = &mut self.tasks[task].left;
        *left = left.saturating_sub(ran);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let known = &self.tasks[task];
        sink("runqueue", i64::from(known.cpu.0));
        sink("strong", i64::from(known.strong));
        sink("slice_left_ns", i64::try_from(known.left.0).unwrap_or(i64::MAX));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            ContentionAware {
                quantum: fixed,
                strong: fixed,
                machine: fixed,
                cpus: of(links),
                cores,
                llcs,
                links: fixed,
                tasks
            }
        );
    }
}

canonical!(On { tasks, strong });
canonical!(State: u64);
canonical!(Place: u64);
canonical!(Task { affinity, strong, left, cpu, place });

impl Canonical<Links> for Cpu {
    fn canon(&self, links: &Links, to: &mut Canon) {
        canon_fields!(self, to, Cpu { online, on, queue: of(links), state });
    }
}
