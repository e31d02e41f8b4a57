//! What a task does on a CPU when it has no work left: it performs its operations, one after
//! another, until one of them takes time.

use anysched_core::params::weight_of_nice;
use anysched_core::{Off, Scheduler, Span, TaskId, Time};
use anysched_trace::Sink;
use anysched_workload::{Channel, Load, Op, Port};

use super::Sim;
use super::life::Waker;
use super::task::{Doing, State};

/// What follows an operation.
enum Then {
    /// The next one.
    GoOn,
    /// The next one, on the way to which the task has woken another.
    Woke,
    /// The task uses the CPU.
    Runs,
    /// The task leaves the CPU.
    Leaves(Off),
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// The task on `cpu` has finished its work: performs its next operations.
    pub(super) fn continue_task(&mut self, cpu: usize) {
        let Some(id) = self.cpus[cpu].task else { return };
        if self.tasks[id].left > Span::ZERO {
            return self.schedule(cpu);
        }
        if self.tasks[id].vcpu {
            return self.resume_vcpu(cpu, id);
        }
        let mut paid = self.end_kernel_work(id);
        loop {
            if self.clock.count_operation(|| self.tasks[id].serial) {
                return;
            }
            let mut op = match self.tasks[id].pending.take() {
                Some(op) => *op,
                None => self.load.step(id, self.now()),
            };
            if !self.free && !std::mem::take(&mut paid) && self.works_before(id, &op) {
                self.tasks[id].pending = Some(Box::new(op));
                return self.schedule(cpu);
            }
            match self.perform(cpu, id, &mut op) {
                Then::GoOn => {}
                Then::Woke if self.setup.costs.after_wake == Span::ZERO => {}
                Then::Woke => {
                    self.begin_kernel_work(id, Doing::Returns);
                    return self.schedule(cpu);
                }
                Then::Runs => return self.schedule(cpu),
                Then::Leaves(why) => {
                    self.take_off(cpu, why);
                    if why == Off::Exited {
                        self.retire(id);
                    }
                    return;
                }
            }
        }
    }

    /// Wakes the first task that waits at `channel` and hands it the message, if there is one; if
    /// nobody waits, a message is kept. `waker` says whose task did it, `at` the time at which it
    /// did. Returns whether a task was woken.
    pub(super) fn signal(
        &mut self,
        channel: Channel,
        sent: Option<Time>,
        waker: Option<Waker>,
        at: Time,
    ) -> bool {
        let Some(woken) = self.objects.signal(channel, sent) else { return false };
        self.objects.give_message(woken, sent.unwrap_or(at));
        self.wake(woken, waker, at);
        true
    }

    /// What `doing` costs.
    fn kernel_work(&self, doing: Doing) -> Span {
        let costs = &self.setup.costs;
        match doing {
            Doing::Own | Doing::Spins => Span::ZERO,
            Doing::Starts | Doing::Creates => costs.create,
            Doing::Returns => costs.after_wake,
            Doing::Exits => costs.exit,
        }
    }

    /// `task` has that work to do besides its own.
    pub(super) fn begin_kernel_work(&mut self, id: TaskId, doing: Doing) {
        let work = self.kernel_work(doing);
        let task = &mut self.tasks[id];
        task.doing = doing;
        task.left += work;
    }

    /// `task` has no work left; what it did for the kernel is not its service. True: that was for
    /// the operation that it is about to perform.
    #[inline]
    fn end_kernel_work(&mut self, id: TaskId) -> bool {
        let doing = self.tasks[id].doing;
        if doing == Doing::Own {
            return false;
        }
        let work = self.kernel_work(doing);
        let task = &mut self.tasks[id];
        task.doing = Doing::Own;
        task.service = task.service.saturating_sub(work);
        matches!(doing, Doing::Creates | Doing::Exits)
    }

    /// Whether `task` has work to do before it performs `op`.
    fn works_before(&mut self, id: TaskId, op: &Op) -> bool {
        let doing = match op {
            Op::Spawn(_) => Doing::Creates,
            Op::Exit => Doing::Exits,
            _ => return false,
        };
        if self.kernel_work(doing) == Span::ZERO {
            return false;
        }
        self.begin_kernel_work(id, doing);
        true
    }

    /// `task` sends on the message that it has, or a new one.
    fn send_on(&mut self, id: TaskId, port: Port) {
        let sent = self.objects.take_message(id).unwrap_or(self.now());
        self.send(port, sent);
    }

    /// `task` answers the message that it has; the answer travels for `way`.
    fn reply(&mut self, id: TaskId, way: Span) {
        if let Some(sent) = self.objects.take_message(id) {
            let round_trip = (self.now() + way).since(sent).0;
            self.account.of(id, |metrics| metrics.round_trip.record(round_trip));
        }
    }

    /// `task` has been handed the lock for which it spins, whether on a CPU or waiting for one.
    /// Time spent spinning is not service.
    fn end_spin(&mut self, id: TaskId) {
        let cpu = usize::from(self.tasks[id].cpu);
        let runs = self.tasks[id].state == State::Running;
        if runs {
            self.count(cpu);
        }
        let task = &mut self.tasks[id];
        let spun = Span::MAX.saturating_sub(std::mem::take(&mut task.left));
        task.doing = Doing::Own;
        task.service = task.service.saturating_sub(spun);
        self.account.of(id, |metrics| metrics.spun += spun);
        if runs {
            self.schedule(cpu);
        }
    }

    /// Performs an operation on a channel, by the task on `cpu`; whether it woke a task.
    fn wake_at(&mut self, cpu: usize, op: &Op) -> bool {
        let (now, cpu) = (self.now(), self.cpus[cpu].id);
        let waker = Some(Waker { cpu, sync: matches!(op, Op::Write(_)) });
        match *op {
            Op::Signal(channel) | Op::Write(channel) => self.signal(channel, Some(now), waker, now),
            Op::Notify(channel) => self.signal(channel, None, waker, now),
            Op::Broadcast(channel) => {
                let mut woke = false;
                while self.signal(channel, None, waker, now) {
                    woke = true;
                }
                woke
            }
            _ => false,
        }
    }

    /// Performs `op`. By reference, because copying it takes as long as some operations.
    fn perform(&mut self, cpu: usize, id: TaskId, op: &mut Op) -> Then {
        let here = Some(Waker { cpu: self.cpus[cpu].id, sync: false });
        let mut woke = false;
        match *op {
            Op::Run(Span::ZERO) => {}
            Op::Run(work) => {
                self.tasks[id].left = work;
                return Then::Runs;
            }
            Op::Sleep(Span::ZERO) => {}
            Op::Sleep(time) => {
                self.agenda.sleepers.push(self.now() + time, id);
                return Then::Leaves(Off::Blocked);
            }
            Op::Release { at, deadline } => {
                self.begin_job(id, at, deadline);
                if at > self.now() {
                    self.agenda.sleepers.push(at, id);
                    return Then::Leaves(Off::Blocked);
                }
            }
            Op::Wait(channel) => match self.objects.take(channel, id) {
                Some(sent) => self.objects.give_message(id, sent),
                None => return Then::Leaves(Off::Blocked),
            },
            Op::Signal(_) | Op::Write(_) | Op::Notify(_) | Op::Broadcast(_) => {
                woke = self.wake_at(cpu, op);
            }
            Op::Send(port) => self.send_on(id, port),
            Op::Reply(way) => self.reply(id, way),
            Op::Lock(lock) => {
                if !self.objects.lock(lock, id) {
                    return Then::Leaves(Off::Blocked);
                }
            }
            Op::Spin(lock) => {
                if !self.objects.lock(lock, id) {
                    let task = &mut self.tasks[id];
                    task.doing = Doing::Spins;
                    task.left = Span::MAX;
                    return Then::Runs;
                }
            }
            Op::Unlock(lock) => match self.objects.unlock(lock, id) {
                Some(next) if self.tasks[next].doing == Doing::Spins => self.end_spin(next),
                Some(next) => {
                    self.wake(next, here, self.now());
                    woke = true;
                }
                None => {}
            },
            Op::Meet(barrier) => {
                if !self.objects.meet(barrier, id) {
                    return Then::Leaves(Off::Blocked);
                }
                while let Some(woken) = self.objects.next_met(barrier) {
                    self.wake(woken, here, self.now());
                    woke = true;
                }
            }
            Op::Yield => return Then::Leaves(Off::Yielded),
            Op::SetNice(nice) => {
                self.tasks[id].nice = nice;
                self.update_params(id, |params| params.weight = weight_of_nice(nice));
            }
            Op::SetAffinity(ref mut affinity) => {
                let affinity = self.setup_affinity(std::mem::take(affinity));
                self.update_params(id, |params| params.affinity = affinity);
            }
            Op::Spawn(what) => {
                let new = self.load.spawn(what);
                self.create(new, Some(self.cpus[cpu].id), self.now());
            }
            Op::Measure(measured) => self.account.measured(id, measured),
            Op::Exit => return Then::Leaves(Off::Exited),
        }
        if woke { Then::Woke } else { Then::GoOn }
    }
}
