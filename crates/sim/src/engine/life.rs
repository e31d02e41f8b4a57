//! The lives of tasks: arrival, wake-ups, exit.

use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Enqueue, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_trace::{Kind, Sink, TaskInfo};
use anysched_workload::{Load, NewTask, Op, Outside};

use super::Sim;
use super::cpu::Cpu;
use super::task::{Doing, Job, State};

/// Who wakes a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waker {
    /// The CPU that its task runs on.
    pub(super) cpu: CpuId,
    /// The kernel takes it that this task waits for the woken one soon.
    pub(super) sync: bool,
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    pub(super) fn take_outside(&mut self) {
        // In the past if a virtual CPU only now gets to handle it.
        let at = self.agenda.outside;
        let what = self.load.outside();
        self.agenda.outside = self.load.peek();
        match what {
            Outside::Arrival(new) => self.create(new, None, at),
            Outside::Signal(channel) => {
                self.signal(channel, Some(at), None, at);
            }
            Outside::Message { channel, sent } => {
                self.signal(channel, Some(sent), None, at);
            }
        }
    }

    /// `task` is about to do something else at the instant at which it left `cpu`, which has not
    /// picked yet: reports to the trace that it left.
    #[inline]
    pub(super) fn tell_leaving(&mut self, task: TaskId, cpu: CpuId) {
        if !self.sink.listens() {
            return;
        }
        let state = &mut self.cpus[cpu.index()];
        if let Some(prev) = state.leaving
            && prev.0 == task
            && !std::mem::replace(&mut state.leaving_told, true)
        {
            self.emit(Kind::Switch { cpu, prev: Some(prev), next: None });
        }
    }

    /// A number for a task that arrives at `at`; the trace hears first that its last holder left.
    pub(super) fn new_task(&mut self, at: Time) -> TaskId {
        if let Some((id, cpu)) = self.tasks.next_reused() {
            self.tell_leaving(id, cpu);
        }
        self.tasks.create(at)
    }

    /// A task has arrived at `at`; `creator` is the CPU whose task created it.
    pub(super) fn create(&mut self, new: NewTask, creator: Option<CpuId>, at: Time) {
        let id = self.new_task(at);
        // A message to the last task with this number is not for this one.
        self.objects.take_message(id);
        let task = &mut self.tasks[id];
        task.nice = new.nice;
        task.cpu = creator.map_or(0, |cpu| cpu.0);
        if new.deadline.is_some() || new.period.is_some() {
            task.job = Job { release: at, deadline: new.deadline.unwrap_or(Time::NEVER) };
        }
        let serial = task.serial;
        let params = TaskParams {
            priority: new.priority,
            affinity: self.setup_affinity(new.affinity),
            domain: new.domain,
            period: new.period,
            budget: new.budget,
            relative_deadline: new.relative_deadline,
            key: new.key,
            intensity: new.intensity,
            ..TaskParams::nice(new.nice)
        };
        self.sink.task(&TaskInfo { task: id, serial, name: new.name.as_deref(), nice: new.nice });
        let by = creator.and_then(|cpu| self.cpus[cpu.index()].task);
        self.emit(Kind::Attach { task: id, by });
        self.tell_job(id);
        self.call(|policy, cx| policy.attach(cx, id, &params));
        if params != TaskParams::default() {
            self.tasks[id].params = Some(Box::new(params));
        }
        self.load.start(id, at);
        self.account.arrived(id, serial, new.name.as_deref(), self.load.part(id), at);
        self.fetch(id);
        if creator.is_none() && self.setup.costs.create > Span::ZERO {
            self.begin_kernel_work(id, Doing::Starts);
        }
        self.enqueue(id, Enqueue::New, creator);
        self.tasks[id].since = at;
    }

    /// `task`, which is blocked, becomes ready because of an event at `at`; `waker` says whose task
    /// woke it.
    pub(super) fn wake(&mut self, id: TaskId, waker: Option<Waker>, at: Time) {
        let task = &mut self.tasks[id];
        let at = at.max(task.since);
        task.blocked += at.since(task.since);
        task.woken = true;
        let prev = task.last_cpu();
        self.tell_leaving(id, prev);
        let (cpu, sync) = (waker.map(|waker| waker.cpu), waker.is_some_and(|waker| waker.sync));
        let by = cpu.and_then(|cpu| self.cpus[cpu.index()].task);
        self.emit(Kind::Wake { task: id, by, cpu });
        self.fetch(id);
        self.enqueue(id, Enqueue::Wakeup { prev, sync }, cpu);
        self.tasks[id].since = at;
    }

    /// Asks the load what `task` does next, so that the policy can be told how long it runs.
    #[inline]
    fn fetch(&mut self, id: TaskId) {
        let task = &self.tasks[id];
        if task.left == Span::ZERO && task.pending.is_none() && !task.vcpu {
            match self.load.step(id, self.now()) {
                Op::Run(work) => self.tasks[id].left = work,
                other => self.tasks[id].pending = Some(Box::new(other)),
            }
        }
    }

    pub(super) fn enqueue(&mut self, id: TaskId, why: Enqueue, from: Option<CpuId>) {
        let task = &mut self.tasks[id];
        task.state = State::Ready;
        task.since = self.clock.now();
        self.account.became_ready();
        let (left, last, vcpu) = (task.left, task.last_cpu(), task.vcpu);
        let deadline = task.job.deadline;
        let arrival = Arrival {
            why,
            from,
            // How long a virtual machine will want its CPU is unknown even to the simulator.
            burst: if vcpu { None } else { Some(self.load.burst(id, left)) },
            deadline: (deadline != Time::NEVER).then_some(deadline),
        };
        let kicked = from.filter(|_| self.setup.costs.ipi > Span::ZERO).map(|_| self.kicks.clone());
        let ((), work) = self.call_counting(|policy, cx| policy.enqueue(cx, id, arrival));
        if !self.free {
            let mut cost =
                self.setup.costs.enqueue(work.queued) + self.lock(work.queue, Span::ZERO);
            if from.is_none() && matches!(why, Enqueue::Wakeup { .. }) {
                cost += self.setup.costs.wake_irq;
            }
            self.charge(from.unwrap_or(last), cost);
        }
        if let (Some(before), Some(from)) = (kicked, from) {
            self.interrupt_kicked(&before, from);
        }
        self.sample();
    }

    /// Charges the CPUs that have been kicked by a task on `from`, but for those kicked `before`.
    #[cold]
    fn interrupt_kicked(&mut self, before: &CpuMask, from: CpuId) {
        let cost = self.setup.costs.ipi;
        for cpu in self.setup.machine.cpu_ids() {
            if self.kicks.contains(cpu) && !before.contains(cpu) && cpu != from {
                self.charge(cpu, cost);
            }
        }
    }

    /// `task` has exited and been taken off its CPU.
    pub(super) fn retire(&mut self, id: TaskId) {
        self.close_job(id);
        let task = &self.tasks[id];
        self.account.exited(id, task, self.clock.now());
        self.forget(id);
        self.load.exited(id, self.now());
        self.agenda.outside = self.load.peek();
        self.tasks.release(id);
    }

    /// `task` is gone: no CPU holds its state any more, and the policy knows nothing of it.
    pub(super) fn forget(&mut self, id: TaskId) {
        let cpu = usize::from(self.tasks[id].cpu);
        if self.cpus[cpu].last == Some(id) {
            self.cpus[cpu].last = None;
        }
        self.call(|policy, cx| policy.detach(cx, id));
    }

    /// Completes the task's current job, if it has one.
    #[inline]
    pub(super) fn close_job(&mut self, id: TaskId) {
        let job = std::mem::take(&mut self.tasks[id].job);
        if job.release == Time::NEVER {
            return;
        }
        self.account.completed_job(id, job, self.now());
        self.sink.job_done(id, self.clock.now());
    }

    /// The job of `task` is done, and the next one is released at `release`.
    pub(super) fn begin_job(&mut self, id: TaskId, release: Time, deadline: Option<Time>) {
        self.close_job(id);
        self.tasks[id].job = Job { release, deadline: deadline.unwrap_or(Time::NEVER) };
        self.tell_job(id);
    }

    /// Reports the job that `task` has now, if it has one.
    fn tell_job(&mut self, id: TaskId) {
        let Job { release, deadline } = self.tasks[id].job;
        if release != Time::NEVER {
            self.sink.job(id, release, (deadline != Time::NEVER).then_some(deadline));
        }
    }

    /// Changes the parameters of `task` and tells the policy.
    pub(super) fn update_params(&mut self, id: TaskId, change: impl FnOnce(&mut TaskParams)) {
        let mut params = self.tasks[id].params.take().unwrap_or_default();
        change(&mut params);
        self.call(|policy, cx| policy.update(cx, id, &params));
        self.tasks[id].params = Some(params);
    }

    /// An affinity that some CPU of the machine satisfies: if none does, all are allowed.
    pub(super) fn setup_affinity(&self, affinity: CpuSet) -> CpuSet {
        let usable = |cpu: &Cpu| cpu.online && affinity.contains(cpu.id);
        if self.cpus.iter().any(usable) { affinity } else { CpuSet::All }
    }
}
