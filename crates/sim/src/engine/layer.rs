//! Machines inside this one: their CPUs (vCPUs) are tasks here.
//!
//! The engine asks [`Machines`] for what happens in them and tells them what happens to their
//! CPUs; what they are it does not know.

use anysched_core::{
    DomainId, DomainParams, Enqueue, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_measure::{Summary, VmMetrics};
use anysched_trace::{Kind, Sink, TaskInfo};
use anysched_workload::Load;

use super::agenda::Moment;
use super::task::State;
use super::{Sim, SimError};

/// Machines by number, each with its vCPUs by number.
///
/// A vCPU is *entered* while its task runs here, *waiting* while that task is ready or still being
/// switched to, and *halted* while the scheduler inside has nothing for it; then its task is
/// blocked.
pub(crate) trait Machines {
    /// The next event: one inside a machine, a message that arrives, a start or a stop.
    fn next(&self) -> Moment;

    /// The start or stop due at `now`, once.
    fn next_change(&mut self, now: Time) -> Option<Change>;

    /// Machine `vm` starts. Returns the domain that its vCPUs belong to.
    fn start(&mut self, vm: usize, now: Time) -> (DomainId, DomainParams);

    /// From now on `task` is the vCPU. Returns its parameters.
    fn bind(&mut self, vm: usize, vcpu: usize, task: TaskId) -> TaskParams;

    /// Machine `vm` stops; its tasks are gone.
    fn stop(&mut self, vm: usize, now: Time);

    /// The name of a machine and the tasks that its vCPUs are, in order.
    fn describe(&self, vm: usize) -> (&str, Vec<TaskId>);

    /// The task has waited so long for a CPU.
    fn waited(&mut self, task: TaskId, waited: Span);

    /// The task begins to run on a CPU of `speed` 1/1024. Returns its machine.
    fn enter(&mut self, task: TaskId, now: Time, speed: u64) -> usize;

    /// The task no longer runs; `halted`: because its vCPU has nothing to do.
    fn leave(&mut self, task: TaskId, now: Time, halted: bool);

    /// The CPU that runs the task changes its speed.
    fn set_speed(&mut self, task: TaskId, now: Time, speed: u64);

    /// Handles what is due in the machine whose event is next. Returns that machine.
    fn settle(&mut self, now: Time) -> usize;

    /// Sends what machine `vm` has to send.
    ///
    /// Errors: its run has failed.
    fn post(&mut self, vm: usize, now: Time) -> Result<(), SimError>;

    /// Passes on the trace of machine `vm`.
    fn pass_on_trace(&mut self, vm: usize, sink: &mut dyn Sink);

    /// The task of a vCPU, and whether that has anything to do; `None`: there is no such vCPU.
    fn demand(&self, vm: usize, vcpu: usize) -> Option<(TaskId, bool)>;

    /// A halted vCPU begins to wait for a CPU. Returns whether it has done so before.
    fn await_entry(&mut self, vm: usize, vcpu: usize, now: Time) -> bool;

    /// The next event in machine `vm` may be another one.
    fn plan(&mut self, vm: usize);

    /// Hands over the message that is due.
    fn deliver(&mut self, now: Time);

    /// Judges the fairness of each second that ends before `time`, the time of the next event.
    fn close_seconds(&mut self, time: Time, fairness: &mut Summary);

    /// The run is over.
    fn finish(&mut self, now: Time, take: &mut dyn FnMut(VmMetrics));
}

/// A machine starts or stops.
pub(crate) enum Change {
    Start(usize),
    Stop(usize),
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// The task on `cpu` is a vCPU, which resumes now.
    pub(super) fn resume_vcpu(&mut self, cpu: usize, id: TaskId) {
        self.tasks[id].left = Span::MAX;
        self.schedule(cpu);
        let (now, speed) = (self.now(), self.cpus[cpu].speed);
        let Some(machines) = &mut self.machines else { return };
        let vm = machines.enter(id, now, speed);
        machines.pass_on_trace(vm, &mut self.sink);
    }

    /// The vCPU that `task` is stops advancing.
    pub(super) fn suspend_vcpu(&mut self, id: TaskId, why: Off) {
        if std::mem::take(&mut self.tasks[id].left) == Span::ZERO {
            return;
        }
        let now = self.now();
        if let Some(machines) = &mut self.machines {
            machines.leave(id, now, why == Off::Blocked);
        }
    }

    /// The speed of `cpu` has changed.
    pub(super) fn change_vcpu_speed(&mut self, cpu: usize) {
        let (task, now, speed) = (self.cpus[cpu].task, self.now(), self.cpus[cpu].speed);
        let Some(machines) = &mut self.machines else { return };
        let Some(id) = task.filter(|&id| self.tasks[id].vcpu) else { return };
        if self.tasks[id].left > Span::ZERO {
            machines.set_speed(id, now, speed);
        }
    }

    /// Advances the machine whose event is next.
    pub(super) fn settle_machine(&mut self) {
        let now = self.now();
        let Some(machines) = &mut self.machines else { return };
        let vm = machines.settle(now);
        self.follow(vm);
    }

    /// Carries out what a machine wants: wakes vCPUs, takes halted ones off their CPUs, and sends
    /// its messages.
    fn follow(&mut self, vm: usize) {
        let now = self.now();
        let Some(machines) = &mut self.machines else { return };
        machines.pass_on_trace(vm, &mut self.sink);
        if let Err(error) = machines.post(vm, now) {
            return self.clock.fail(error);
        }
        let mut vcpu = 0;
        while let Some(machines) = &mut self.machines
            && let Some((id, wants)) = machines.demand(vm, vcpu)
        {
            match self.tasks[id].state {
                State::Blocked if wants => self.wake_vcpu(vm, vcpu, id),
                State::Running if !wants && self.tasks[id].left > Span::ZERO => {
                    let cpu = usize::from(self.tasks[id].cpu);
                    self.count(cpu);
                    self.take_off(cpu, Off::Blocked);
                }
                _ => {}
            }
            vcpu += 1;
        }
        if let Some(machines) = &mut self.machines {
            machines.plan(vm);
        }
    }

    fn wake_vcpu(&mut self, vm: usize, vcpu: usize, id: TaskId) {
        let now = self.now();
        let Some(machines) = &mut self.machines else { return };
        if machines.await_entry(vm, vcpu, now) {
            return self.wake(id, None, now);
        }
        let name = format!("{}/{vcpu}", machines.describe(vm).0);
        let serial = self.tasks[id].serial;
        self.sink.task(&TaskInfo { task: id, serial, name: Some(&name), nice: 0 });
        self.emit(Kind::Attach { task: id, by: None });
        self.enqueue(id, Enqueue::New, None);
    }

    pub(super) fn deliver_message(&mut self) {
        let now = self.now();
        if let Some(machines) = &mut self.machines {
            machines.deliver(now);
        }
    }

    pub(super) fn next_change(&mut self) -> Option<Change> {
        let now = self.now();
        self.machines.as_mut()?.next_change(now)
    }

    pub(super) fn change_machine(&mut self, change: Change) {
        match change {
            Change::Start(vm) => self.start_machine(vm),
            Change::Stop(vm) => self.stop_machine(vm),
        }
    }

    fn start_machine(&mut self, vm: usize) {
        let now = self.now();
        let Some(machines) = &mut self.machines else { return };
        let (domain, share) = machines.start(vm, now);
        let vcpus = machines.describe(vm).1.len();
        self.call(|policy, cx| policy.set_domain(cx, domain, &share));
        for vcpu in 0..vcpus {
            self.attach_vcpu(vm, vcpu);
        }
        if self.sink.listens()
            && let Some(machines) = &self.machines
        {
            let (name, tasks) = machines.describe(vm);
            self.sink.vm(vm, name, &tasks);
        }
        // Anything due at once wakes them.
        self.follow(vm);
    }

    fn attach_vcpu(&mut self, vm: usize, vcpu: usize) {
        let id = self.new_task(self.now());
        let Some(machines) = &mut self.machines else { return };
        let mut params = machines.bind(vm, vcpu, id);
        params.affinity = self.setup_affinity(params.affinity);
        self.call(|policy, cx| policy.attach(cx, id, &params));
        let task = &mut self.tasks[id];
        task.vcpu = true;
        task.params = Some(Box::new(params));
    }

    fn stop_machine(&mut self, vm: usize) {
        let Some(machines) = &self.machines else { return };
        for id in machines.describe(vm).1 {
            self.remove_vcpu(id);
        }
        let now = self.now();
        if let Some(machines) = &mut self.machines {
            machines.stop(vm, now);
        }
        self.sink.vm_end(vm, now);
    }

    fn remove_vcpu(&mut self, id: TaskId) {
        let cpu = usize::from(self.tasks[id].cpu);
        match self.tasks[id].state {
            State::Running => {
                self.count(cpu);
                self.take_off(cpu, Off::Exited);
            }
            State::Ready => {
                self.account.withdrawn();
                self.tell_leaving(id, self.tasks[id].last_cpu());
                self.call(|policy, cx| policy.dequeue(cx, id));
            }
            _ => {}
        }
        self.forget(id);
        self.tasks.release(id);
    }

    /// Judges the fairness among machines in the seconds that end before `time`, the time of the
    /// next event.
    #[inline]
    pub(super) fn close_seconds(&mut self, time: Time) {
        if let Some(machines) = &mut self.machines {
            machines.close_seconds(time, &mut self.account.metrics.fairness);
        }
    }

    /// Ends the machines that remain at the end of this run.
    pub(super) fn finish_machines(&mut self) {
        let now = self.now();
        if let Some(machines) = &mut self.machines {
            machines.finish(now, &mut |metrics| self.account.metrics.vms.push(metrics));
        }
    }
}
