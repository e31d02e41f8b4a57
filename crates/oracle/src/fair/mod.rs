//! Linux's placement and balancing on many CPUs: `select_task_rq_fair`, `sched_balance_rq` and all
//! that they need, of Linux 6.12.107 as Debian has it.
//!
//! Every function names the one of `kernel/sched/fair.c`, `pelt.c`, `topology.c` or `core.c` whose
//! rules it follows. Nothing is kept that can be computed from all tasks of a runqueue. The order
//! within a runqueue is a [`Rule`].
//!
//! Deviations:
//! - CPUs have the same capacity, and there are no groups of tasks, other scheduling classes,
//!   frequencies, NUMA balancing or core scheduling.
//! - Jiffies are the time divided by the tick, from 0 on. CPUs have a tick while they run a task;
//!   one that finds nothing to run has none at once.
//! - A task is queued where it wakes at once, without a list of tasks to wake.
//! - What a timer or device wakes is woken on its last CPU.
//! - At a tick, a CPU first balances for itself; the idle CPU that it then kicks balances at once.
//! - What a CPU runs is put back, and its load updated, even if it goes on.
//! - A task's affinity is changed by the CPU on which the task is or last was.
//! - A running task is pushed away when it is put back.
//! - A machine has been idle for long, unless it is [fresh](Options::is_fresh).

mod balance;
pub mod cfs;
pub mod domains;
pub mod eevdf;
mod groups;
mod idle;
mod load;
mod pelt;
mod place;
pub mod rule;
#[cfg(test)]
mod tests;

use anysched_core::{
    Arrival, CpuId, Cx, Enqueue, Machine, Off, Pick, Scheduler, Span, TaskId, TaskParams,
};

use crate::Oracle;
use anysched_core::random::SplitMix64;
use domains::Domains;
use idle::Nohz;
use load::{Cpu, State, Task};
pub use rule::{At, Enter, Rule, Stride, Turns, Where};

/// What kernels differ in.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tick.
    pub jiffy: Span,
    /// What looking at a CPU costs when one finds nothing to run.
    pub newidle_cost: Span,
    /// A task that ran within this time is cache-hot (sysctl_sched_migration_cost).
    pub migration_cost: Span,
    /// How many tasks are looked at to move some (sysctl_sched_nr_migrate).
    pub nr_migrate: u64,
    /// After how many of them there is a break (SCHED_NR_MIGRATE_BREAK).
    pub batch: u64,
    /// The kernel knows groups of tasks, although there are none (CONFIG_FAIR_GROUP_SCHED).
    pub groups: bool,
    /// The load of a runqueue, of which that of a task is a part, is taken once in a jiffy.
    pub caches_h_load: bool,
    /// As in 6.18: tasks that sleep in their runqueue move only where load is moved, and do not
    /// count as tasks to be moved; nor do tasks move, at first, that are not eligible.
    pub balances_eligible: bool,
    /// As from 6.6 on: threads of a core are a group of their own kind, an idle core comes before
    /// an idle thread, and tasks are compared by cores.
    pub balances_cores: bool,
    /// A CPU with nothing to run looks at a domain only with some luck (NI_RANDOM),
    pub ni_random: bool,
    /// of which it has more if it seldom looks (NI_RATE).
    pub ni_rate: bool,
    /// The kernel is preemptible (CONFIG_PREEMPTION).
    pub preemption: bool,
    /// CPUs have not been idle yet, and nothing was balanced, as the kernel builds it; if not, the
    /// machine has been idle for long.
    pub is_fresh: bool,
    /// Loads of tasks and of their runqueues are shown, and how their CPUs balance.
    pub shows_load: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            jiffy: Span::from_ms(4),
            newidle_cost: Span::ZERO,
            migration_cost: Span::from_us(500),
            nr_migrate: 32,
            batch: 32,
            groups: true,
            caches_h_load: true,
            balances_eligible: false,
            balances_cores: true,
            ni_random: true,
            ni_rate: false,
            preemption: true,
            is_fresh: false,
            shows_load: false,
        }
    }
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Fair<R> {
    options: Options,
    rule: R,
    /// In ns.
    now: u64,
    domains: Domains,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    /// Some CPU may have more than one task.
    overloaded: bool,
    nohz: Nohz,
    /// CPUs that are to pick again.
    kicks: Vec<usize>,
    /// What luck is drawn from.
    random: SplitMix64,
    /// How many tasks were moved.
    moves: u64,
    /// How often a CPU with nothing to run got something.
    pulls: u64,
}

impl<R: Rule> Fair<R> {
    /// On `machine`, all CPUs idle.
    pub fn new(machine: &Machine, rule: R, options: Options) -> Fair<R> {
        let cpu = Cpu {
            idle: true,
            avg_idle: 2 * options.migration_cost.0,
            max_idle_balance_cost: options.migration_cost.0,
            ..Cpu::default()
        };
        let mut domains = Domains::new(machine);
        let mut cpus = vec![cpu; machine.cpus()];
        if !options.is_fresh {
            for (cpu, on) in cpus.iter_mut().enumerate() {
                (on.tickless, on.idle_stamp) = (!domains.of[cpu].is_empty(), 1);
                domains.shared[cpu].busy = 0;
                domains.shared[cpu].idle_cores = true;
                domains.shared[cpu].scan = domains.llc_size(cpu);
            }
        }
        Fair {
            options,
            rule,
            now: 0,
            domains,
            cpus,
            tasks: Vec::new(),
            overloaded: false,
            nohz: Nohz::default(),
            kicks: Vec::new(),
            random: SplitMix64(0),
            moves: 0,
            pulls: 0,
        }
    }

    fn jiffies(&self) -> u64 {
        self.now / self.options.jiffy.0
    }

    /// Jiffies per second.
    fn hz(&self) -> u64 {
        Span::from_s(1).0 / self.options.jiffy.0
    }

    fn ms_to_jiffies(&self, ms: u64) -> u64 {
        (ms * 1_000_000).div_ceil(self.options.jiffy.0)
    }

    fn at(&self, cpu: usize) -> At {
        let on = &self.cpus[cpu];
        At { now: self.now, cpu, running: on.running.map(|task| (task, on.since)) }
    }

    /// What runs on `cpu` is to go elsewhere.
    fn tell(&mut self, cpu: usize) {
        self.kicks.push(cpu);
        self.rule.tell(cpu);
    }

    /// `id` has been queued on its CPU (wakeup_preempt).
    fn check_preempt(&mut self, id: usize) {
        let at = self.at(self.tasks[id].cpu);
        if at.running.is_none() || self.rule.preempts(at, id) {
            self.kicks.push(at.cpu);
        }
    }

    /// Follows a call at the time of `cx`, and makes the kicks that it causes.
    fn on<A>(&mut self, cx: &mut Cx<'_>, call: impl FnOnce(&mut Fair<R>) -> A) -> A {
        self.now = cx.now.0;
        let wanted: Vec<bool> =
            self.all().into_iter().map(|cpu| self.rule.wants_pick(cpu)).collect();
        let answer = call(self);
        self.drop_delayed();
        let wants = |cpu: &usize| self.rule.wants_pick(*cpu) && !wanted[*cpu];
        self.kicks.extend((0..wanted.len()).filter(wants));
        self.kicks.drain(..).for_each(|cpu| cx.kick(CpuId(cpu as u16)));
        answer
    }

    /// wake_up_new_task
    fn begin(&mut self, id: usize, from: Option<usize>) {
        let this = from.unwrap_or(0);
        let parent = from.and_then(|cpu| self.cpus[cpu].running);
        if let Some(parent) = parent {
            self.tasks[id].waker = self.tasks[parent].waker.clone();
        }
        (self.tasks[id].cpu, self.tasks[id].recent) = (this, this);
        self.tasks[id].cpu = self.place_new(id, this);
        self.init_util(id);
        self.activate(id, false);
        let at = self.at(self.tasks[id].cpu);
        self.rule.enter(at, id, Enter::New, parent);
    }

    /// Those that slept in their runqueue and have left it (dequeue_entities).
    fn drop_delayed(&mut self) {
        for id in self.rule.dropped() {
            self.update_load(id);
            let cpu = self.tasks[id].cpu;
            self.cpus[cpu].tasks.retain(|&other| other != id);
            self.tasks[id].state = State::Blocked;
        }
    }

    /// ttwu_runnable, of a task that sleeps in its runqueue
    fn revive(&mut self, id: usize, from: Option<usize>) {
        let cpu = self.tasks[id].cpu;
        self.cpus[cpu].util_est += self.tasks[id].util_est;
        let by = from.and_then(|cpu| self.cpus[cpu].running);
        self.rule.enter(self.at(cpu), id, Enter::Woken, by);
        self.update_load(id);
        self.tasks[id].state = State::Waiting;
    }

    /// try_to_wake_up
    fn wake(&mut self, id: usize, from: Option<usize>, sync: bool) {
        let prev = self.tasks[id].cpu;
        let cpu = self.place_woken(id, from.unwrap_or(prev), sync);
        if cpu != prev {
            self.leave_blocked(id, cpu);
        }
        self.activate(id, cpu != prev);
        let by = from.and_then(|cpu| self.cpus[cpu].running);
        self.rule.enter(self.at(cpu), id, Enter::Woken, by);
        let on = &mut self.cpus[cpu];
        if on.idle_stamp > 0 {
            let idle = (self.now - on.idle_stamp) as i64;
            let difference = (idle - on.avg_idle as i64) / 8;
            on.avg_idle = on.avg_idle.wrapping_add_signed(difference);
            on.avg_idle = on.avg_idle.min(2 * on.max_idle_balance_cost);
            on.idle_stamp = 0;
        }
    }

    fn resume(&mut self, id: usize, from: Option<usize>) {
        let prev = self.tasks[id].cpu;
        let cpu = self.fall_back(id, prev);
        if cpu != prev {
            self.leave_blocked(id, cpu);
        }
        self.activate(id, cpu != prev);
        let by = from.and_then(|cpu| self.cpus[cpu].running);
        self.rule.enter(self.at(cpu), id, Enter::Resumed, by);
    }

    /// set_next_task_fair
    fn set_next(&mut self, cpu: usize, id: usize) {
        self.update_load(id);
        let on = &mut self.cpus[cpu];
        (on.running, on.since, on.idle) = (Some(id), self.now, false);
        on.tasks.retain(|&other| other != id);
        on.tasks.insert(0, id);
        self.tasks[id].exec_start = self.now;
        self.tasks[id].state = State::Running;
    }

    /// Changes `id` by `change`; while it is changed, it is not queued (set_user_nice,
    /// __do_set_cpus_allowed).
    fn change(&mut self, id: usize, change: impl FnOnce(&mut Fair<R>)) {
        let cpu = self.tasks[id].cpu;
        let is_running = self.tasks[id].state == State::Running;
        let is_ready = !matches!(self.tasks[id].state, State::New | State::Blocked);
        if is_ready {
            self.deactivate(id, false, false);
        }
        if is_running {
            self.cpus[cpu].running = None;
        }
        change(self);
        if is_ready {
            self.activate(id, false);
        }
        if is_running {
            self.cpus[cpu].running = Some(id);
            self.tasks[id].exec_start = self.now;
        }
    }
}

impl<R: Rule> Fair<R> {
    fn set_params(&mut self, id: usize, params: &TaskParams) {
        let weight = u64::from(params.weight);
        let cpu = self.tasks[id].cpu;
        let is = match self.tasks[id].state {
            State::Running => Where::Running,
            State::Waiting | State::Delayed => Where::Waiting,
            _ => Where::Away,
        };
        self.rule.reweigh(self.at(cpu), id, is, params);
        if self.tasks[id].state == State::New {
            self.tasks[id].weight = weight;
            self.tasks[id].avg.load = self.tasks[id].load_weight();
        } else if self.tasks[id].weight != weight {
            self.change(id, |fair| fair.set_weight(id, weight));
        }
        if self.tasks[id].allowed != params.affinity {
            self.change(id, |fair| fair.tasks[id].allowed = params.affinity.clone());
            if is != Where::Away {
                self.rule.rebind(self.at(cpu), id, is);
            }
            self.distribute(id);
        }
        match is {
            _ if self.is_allowed(id, cpu) => {}
            Where::Waiting => self.move_task(id, self.tasks[id].bound_to),
            Where::Running => self.tell(cpu),
            Where::Away => {}
        }
    }

    /// schedule, as far as the next task is concerned
    fn pick(&mut self, cpu: usize) -> Option<(usize, Span)> {
        let mut updates = false;
        let next = loop {
            let next = self.rule.pick(self.at(cpu));
            self.drop_delayed();
            if next.is_some() {
                break next;
            }
            let has_pulled;
            (has_pulled, updates) = self.newidle(cpu);
            if !has_pulled {
                break None;
            }
        };
        match next {
            Some((id, _)) => {
                self.set_next(cpu, id);
                self.finish_switch(cpu);
            }
            None => {
                self.finish_switch(cpu);
                self.go_idle(cpu, updates);
            }
        }
        self.kicks.retain(|&kicked| kicked != cpu);
        next
    }

    /// schedule, as far as the task that ran is concerned
    fn put(&mut self, cpu: usize, id: usize, ran: Span, why: Off) {
        if why.runnable() {
            self.rule.put_back(self.at(cpu), id, ran, why);
            self.update_load(id);
            self.cpus[cpu].running = None;
            self.tasks[id].exec_start = self.now;
            self.tasks[id].state = State::Waiting;
            self.leave_if_bound(id, cpu);
        } else if self.rule.leave(self.at(cpu), id, ran, why) {
            self.sleep_queued(id);
            self.cpus[cpu].running = None;
            self.tasks[id].state = State::Delayed;
            self.leave_if_bound(id, cpu);
        } else {
            self.deactivate(id, true, false);
            self.cpus[cpu].running = None;
            self.tasks[id].state = State::Blocked;
            if why == Off::Exited {
                self.tasks[id].attached = false;
                self.cpus[cpu].dead = Some(self.tasks[id].clone());
            }
        }
        self.push(cpu);
    }

    /// migration_cpu_stop: `id`, which is off `cpu` but queued there, goes where it may run.
    fn leave_if_bound(&mut self, id: usize, cpu: usize) {
        if !self.is_allowed(id, cpu) {
            self.move_task(id, self.tasks[id].bound_to);
        }
    }

    /// sched_tick
    fn tick_on(&mut self, cpu: usize, id: usize, ran: Span) {
        if self.rule.tick(self.at(cpu), id, ran) {
            self.kicks.push(cpu);
        }
        self.cpus[cpu].since = self.now;
        self.tasks[id].exec_start = self.now;
        self.update_load(id);
        self.trigger(cpu);
    }
}

impl<R: Rule> Scheduler for Fair<R> {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.now = cx.now.0;
        let id = task.index();
        if self.tasks.len() <= id {
            self.tasks.resize(id + 1, Task::default());
        }
        let weight = u64::from(params.weight);
        self.tasks[id] =
            Task { state: State::New, weight, allowed: params.affinity.clone(), ..Task::default() };
        self.tasks[id].avg.load = self.tasks[id].load_weight();
        self.rule.attach(id, params);
    }

    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let id = task.index();
        self.on(cx, |fair| {
            if fair.tasks[id].state != State::New {
                fair.rule.detach(fair.at(fair.tasks[id].cpu), id);
                fair.drop_delayed();
                if fair.tasks[id].attached {
                    fair.remove_load(id);
                }
            }
            fair.tasks[id].state = State::Gone;
        });
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.on(cx, |fair| fair.set_params(task.index(), params));
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let id = task.index();
        let from = arrival.from.map(CpuId::index);
        self.on(cx, |fair| {
            match arrival.why {
                _ if fair.tasks[id].state == State::Delayed => fair.revive(id, from),
                Enqueue::New => fair.begin(id, from),
                Enqueue::Wakeup { sync, .. } => fair.wake(id, from, sync),
                Enqueue::Resumed { .. } => fair.resume(id, from),
            }
            fair.tasks[id].state = State::Waiting;
            fair.check_preempt(id);
        });
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let id = task.index();
        self.on(cx, |fair| {
            fair.rule.remove(fair.at(fair.tasks[id].cpu), id, false);
            fair.deactivate(id, false, false);
            fair.tasks[id].state = State::Blocked;
        });
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let (id, slice) = self.on(cx, |fair| fair.pick(cpu.index()))?;
        Some(Pick { task: TaskId(id as u32), slice })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.on(cx, |fair| fair.put(cpu.index(), task.index(), ran, why));
        if self.cpus.len() > 1 {
            cx.kick_if_undone(cpu, why);
        }
    }

    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        self.on(cx, |fair| fair.tick_on(cpu.index(), task.index(), ran));
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let shown = &self.tasks[task.index()];
        if self.cpus.len() > 1 {
            sink("runqueue", shown.cpu as i64);
        }
        if self.options.shows_load {
            sink("load_avg", shown.avg.load as i64);
            sink("util_avg", shown.avg.util as i64);
            sink("util_est", shown.util_est as i64);
            let on = &self.cpus[shown.cpu];
            sink("q_load", on.avg.load as i64);
            sink("q_util", on.avg.util as i64);
            sink("q_runnable", on.avg.runnable as i64);
            sink("q_est", on.util_est as i64);
            sink("q_avg_idle", on.avg_idle as i64);
            sink("q_next", on.next_balance as i64);
            let of = &self.domains.of[shown.cpu];
            sink("q_fails", of.iter().map(|domain| domain.failed as i64).sum());
            sink("q_interval", of.iter().map(|domain| domain.interval as i64).sum());
            sink("nohz_next", self.nohz.next_balance as i64);
            sink("nohz_blocked", self.nohz.next_blocked as i64);
            sink("over", i64::from(self.overloaded));
        }
        self.rule.probe(task.index(), sink);
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.rule.tally(sink);
        sink("moves", self.moves);
        sink("pulls", self.pulls);
    }
}

impl<R: Rule> Oracle for Fair<R> {
    const KICKS: bool = true;
    const TIMERS: bool = false;
}
