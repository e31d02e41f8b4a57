//! Dispatches: picks, what they cost, and CPU time.

use anysched_core::random::SplitMix64;
use anysched_core::{CpuId, Off, Scheduler, Span, TaskId, Time, Work};
use anysched_trace::{Kind, Sink};
use anysched_workload::Load;

use super::Sim;
use super::agenda::Moment;
use super::task::State;

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// Waits for the lock of `queue` and holds it for `work`; returns the total time.
    pub(super) fn lock(&mut self, queue: u16, work: Span) -> Span {
        let hold = self.setup.costs.lock_hold;
        if hold == Span::ZERO {
            return work;
        }
        let free = &mut self.locks[usize::from(queue)];
        *free = (*free).max(self.clock.now()) + hold + work;
        free.since(self.now())
    }

    /// `cpu` spends `cost` on something that no task is charged for.
    pub(super) fn charge(&mut self, cpu: CpuId, cost: Span) {
        if cost == Span::ZERO {
            return;
        }
        let index = cpu.index();
        if self.cpus[index].task.is_some() {
            if self.charges_later(cpu, cost) {
                return;
            }
            self.count(index);
            self.delay(index, cost);
            self.occupy(index, cost);
            self.schedule(index);
        } else {
            self.occupy(index, cost);
        }
    }

    /// `cpu` spends `cost` whichever task it runs then: one that is picked meanwhile has to wait.
    fn occupy(&mut self, cpu: usize, cost: Span) {
        let cpu = &mut self.cpus[cpu];
        cpu.free_at = cpu.free_at.max(self.clock.now()) + cost;
    }

    /// Delays the task on `cpu` by `cost`; its time must have been counted up to now.
    fn delay(&mut self, cpu: usize, cost: Span) {
        self.cpus[cpu].delay(cost);
        if self.setup.costs.charged {
            self.cpus[cpu].charge(cost);
        }
        if let Some(id) = self.cpus[cpu].task
            && self.tasks[id].vcpu
        {
            // It resumes when the delay is over.
            self.suspend_vcpu(id, Off::Preempted);
        }
    }

    /// Counts the CPU time of the task on `cpu` up to now.
    #[inline]
    pub(super) fn count(&mut self, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        if let Some(id) = cpu.task {
            let task = &mut self.tasks[id];
            let (ran, work) = cpu.count(self.clock.now(), task.left);
            task.left -= work;
            task.service += work;
            self.account.used(id, ran);
        }
    }

    /// Puts the next event of `cpu` on the agenda.
    #[inline]
    pub(super) fn schedule(&mut self, cpu: usize) {
        let moment = match self.cpus[cpu].task {
            Some(task) => self.cpus[cpu].next(self.tasks[task].left),
            None => Moment::NEVER,
        };
        self.agenda.cpus.set(cpu, moment);
    }

    /// The CPU time of the task on `cpu` not yet reported to its policy; reports it now, except for
    /// delays that have not passed yet.
    fn tell(&mut self, cpu: usize, unspent: Span) -> Span {
        let charged = self.setup.costs.charged;
        let untold = &mut self.cpus[cpu].untold;
        let open = if charged { unspent.min(*untold) } else { Span::ZERO };
        std::mem::replace(untold, open) - open
    }

    /// Takes the running task off `cpu`, which will pick again at the end of this instant.
    pub(super) fn put_prev(&mut self, cpu: usize, why: Off) {
        self.count(cpu);
        self.take_off(cpu, why);
    }

    /// The same, when all CPU time of the task has been counted.
    pub(super) fn take_off(&mut self, cpu: usize, why: Off) {
        let state = &mut self.cpus[cpu];
        let Some(id) = state.task.take() else { return };
        if self.tasks[id].vcpu {
            self.suspend_vcpu(id, why);
        }
        // A planned cost of switching to the task that was never incurred was not spent.
        let unspent = match self.postponed_delay(cpu) {
            Some(delay) => delay,
            None => self.cpus[cpu].from.since(self.now()),
        };
        let ran = self.tell(cpu, unspent);
        let state = &mut self.cpus[cpu];
        let cpu_id = state.id;
        state.leaving = Some((id, why));
        state.overhead = state.overhead.saturating_sub(unspent);
        self.agenda.cpus.set(cpu, Moment::NEVER);
        self.kicks.insert(cpu_id);
        let now = self.now();
        self.account.left_cpu(id, now, why.runnable());
        let task = &mut self.tasks[id];
        task.since = now;
        task.state = if why.runnable() { State::Ready } else { State::Blocked };
        self.call(|policy, cx| policy.put_prev(cx, cpu_id, id, ran, why));
    }

    pub(super) fn do_tick(&mut self, cpu: usize) {
        self.count(cpu);
        let cost = self.setup.costs.timer_irq;
        if cost > Span::ZERO {
            self.delay(cpu, cost);
            self.occupy(cpu, cost);
        }
        self.cpus[cpu].next_tick = self.now() + self.tick;
        self.schedule(cpu);
        let ran = self.tell(cpu, self.cpus[cpu].from.since(self.now()));
        if let Some(task) = self.cpus[cpu].task {
            let id = self.cpus[cpu].id;
            self.call(|policy, cx| policy.tick(cx, id, task, ran));
        }
    }

    /// The picks of this instant, lowest CPU first.
    pub(super) fn pick_kicked(&mut self) {
        while let Some(cpu) = self.kicks.take_lowest() {
            let index = cpu.index();
            if !self.cpus[index].online || self.postpones_kick(index) {
                continue;
            }
            if let Some(running) = self.cpus[index].task {
                self.emit(Kind::Kick { cpu });
                self.account.of(running, |metrics| metrics.preemptions += 1);
                self.put_prev(index, Off::Preempted);
                self.kicks.remove(cpu);
            }
            self.pick(index);
            if self.clock.count_pick(cpu) {
                return;
            }
        }
    }

    fn pick(&mut self, cpu: usize) {
        let id = self.cpus[cpu].id;
        let was_idle = self.cpus[cpu].leaving.is_none();
        let (pick, work) = self.call_counting(|policy, cx| policy.pick_next(cx, id));
        let prev = self.cpus[cpu].leaving.take();
        let told = std::mem::take(&mut self.cpus[cpu].leaving_told);
        let next = pick.map(|pick| pick.task);
        if let Some(pick) = pick {
            self.start(cpu, pick.task, pick.slice, prev, &work);
            self.agenda.cpus.add(cpu, self.cpus[cpu].next(self.tasks[pick.task].left));
        } else if !was_idle {
            self.cpus[cpu].idle_since = self.now();
        }
        let prev = prev.filter(|_| !told);
        if prev.is_some() || next.is_some() {
            self.emit(Kind::Switch { cpu: id, prev, next });
            self.sample();
        }
        if self.setup.smt_speed != 1024 && was_idle != next.is_none() {
            self.change_sibling_speed(cpu);
        }
        if !self.setup.contention.is_none() {
            self.change_pressure(cpu);
        }
    }

    /// `cpu` switches to the task it has picked.
    fn start(
        &mut self,
        cpu: usize,
        id: TaskId,
        slice: Span,
        prev: Option<(TaskId, Off)>,
        work: &Work,
    ) {
        let task = &mut self.tasks[id];
        let (cpu_id, last) = (self.cpus[cpu].id, task.last_cpu());
        let switched = self.cpus[cpu].last != Some(id);
        let migrated = task.has_run && last != cpu_id;
        task.cpu = cpu_id.0;
        task.state = State::Running;
        self.account.dispatched(id, switched);
        self.clock.note_pick();
        if migrated {
            self.tell_leaving(id, last);
            self.note_migration(id, last, cpu_id);
        }
        let mut idle = Span::ZERO;
        if prev.is_none() {
            idle = self.now().since(self.cpus[cpu].idle_since);
            self.cpus[cpu].idle += idle;
        }
        let mut delay = Span::ZERO;
        if !self.free {
            delay = self.pick_cost(cpu, switched, migrated.then_some(last), work);
            if idle > Span::ZERO {
                delay += self.setup.costs.idle_exit;
            }
        }
        self.note_run(id, delay);
        let slice = self.timed(slice);
        let tick = self.tick;
        let cpu = &mut self.cpus[cpu];
        cpu.task = Some(id);
        cpu.last = Some(id);
        cpu.from = self.clock.now() + delay;
        cpu.overhead += delay;
        cpu.untold = Span::ZERO;
        cpu.rest = 0;
        cpu.slice = slice;
        if self.setup.costs.charged {
            cpu.charge(delay);
        }
        cpu.next_tick = match tick {
            Span::ZERO => Time::NEVER,
            Span(tick) => Time((self.clock.now().0 / tick + 1) * tick),
        };
    }

    /// When the timer for `slice` goes off: by chance, but the same in each run of a load.
    fn timed(&self, slice: Span) -> Span {
        let most = self.setup.costs.timer_late.0;
        if most == 0 || slice == Span::MAX {
            return slice;
        }
        let late = SplitMix64(self.now().0).below(most.saturating_add(1));
        Span(slice.0.saturating_add(late))
    }

    /// `task` has been picked and runs after `delay`; until then it waits.
    #[inline]
    fn note_run(&mut self, id: TaskId, delay: Span) {
        let runs = self.now() + delay;
        let task = &mut self.tasks[id];
        let waited = runs.since(task.since);
        if task.vcpu {
            if let Some(machines) = &mut self.machines {
                machines.waited(id, waited);
            }
        } else {
            self.account.waited(id, waited, std::mem::take(&mut task.woken));
        }
        task.first_run = task.first_run.min(runs);
        task.has_run = true;
    }

    fn note_migration(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let machine = &self.setup.machine;
        self.account.migrated(task, machine.cpu(from), machine.cpu(to));
        self.emit(Kind::Migrate { task, from, to });
    }

    /// The time that `cpu` spends from now until the picked task runs.
    fn pick_cost(
        &mut self,
        cpu: usize,
        switched: bool,
        migrated_from: Option<CpuId>,
        work: &Work,
    ) -> Span {
        let search = self.setup.costs.pick_per_item.scaled(u64::from(work.scanned), 1);
        let mut cost = self.lock(work.queue, search) + self.cpus[cpu].free_at.since(self.now());
        let costs = &self.setup.costs;
        cost += costs.pick_base;
        if switched {
            cost += costs.context_switch;
        }
        if let Some(from) = migrated_from {
            cost += costs.migration(self.setup.machine.distance(from, self.cpus[cpu].id));
        }
        cost
    }
}
