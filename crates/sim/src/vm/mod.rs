//! Virtual machines: machines whose CPUs are tasks of another machine, the host.
//!
//! Each is a [`Sim`] of its own, advanced by the host. One of its CPUs (a vCPU) is *entered* while
//! its task runs on the host, *waiting* while that task is ready or still being switched to, and
//! *halted* while the guest's scheduler has nothing for it; then the task is blocked. Work, slices
//! and ticks of the guest advance only while the vCPU is entered. Interrupts, too, are handled by a
//! vCPU: the end of a task's sleep by the one on which it fell asleep, arrivals from outside by the
//! first. A halted vCPU is woken for it; a waiting one handles it when it is entered.

mod guest;
mod later;
mod trace;

pub(crate) use guest::Guest;

use anysched_core::{
    DomainId, DomainParams, Enqueue, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_trace::{Kind, Sink, TaskInfo};
use anysched_workload::{Channel, Load, Port};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::agenda::{Class, CpuAgenda, Moment};
use crate::engine::Sim;
use crate::task::State;
use anysched_host::{Setup, Vm, Wire};
use anysched_measure::VmMetrics;
use guest::Mode;
use later::Later;
use trace::{GuestTrace, Traced};

/// The virtual machines of a host.
pub(crate) struct Vms {
    machines: Vec<Hosted>,
    /// The next event of each.
    agenda: CpuAgenda,
    /// By task number, the virtual machine and the CPU in it.
    of_task: Vec<(u32, u32)>,
    /// Starts (`true`) and stops in time order, and how many of them are past.
    changes: Vec<(Time, bool, usize)>,
    changed: usize,
    messages: BinaryHeap<Reverse<Message>>,
    sent: u64,
    /// When the current second ends; fairness is judged over whole seconds.
    second_ends: Time,
}

type GuestSim = Sim<Box<dyn Scheduler>, Box<dyn Load>, GuestTrace>;

/// One virtual machine.
struct Hosted {
    name: String,
    domain: DomainId,
    share: DomainParams,
    ports: Vec<Wire>,
    vcpus: Vec<HostTask>,
    sim: GuestSim,
    /// It has been created and not yet destroyed.
    runs: bool,
    /// Its totals when the current second began: time entered and time halted.
    before: (Span, Span),
}

/// The host's task that represents a vCPU.
struct HostTask {
    params: TaskParams,
    task: TaskId,
    /// It has been ready before.
    begun: bool,
}

/// In order of arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    arrives: Time,
    number: u64,
    vm: usize,
    channel: Channel,
    sent: Time,
}

const SECOND: Span = Span::from_ms(1000);

impl Vms {
    pub(crate) fn new(vms: Vec<Vm>, traced: bool) -> Vms {
        let mut changes = Vec::new();
        for (number, vm) in vms.iter().enumerate() {
            changes.push((vm.start, true, number));
            if vm.stop != Time::NEVER {
                changes.push((vm.stop.max(vm.start), false, number));
            }
        }
        // At the same time, stops come before starts.
        changes.sort_by_key(|&(time, starts, number)| (time, starts, number));
        Vms {
            agenda: CpuAgenda::new(vms.len()),
            machines: vms.into_iter().map(|vm| Hosted::new(vm, traced)).collect(),
            of_task: Vec::new(),
            changes,
            changed: 0,
            messages: BinaryHeap::new(),
            sent: 0,
            second_ends: Time::ZERO + SECOND,
        }
    }

    /// The next event.
    pub(crate) fn next(&self) -> Moment {
        let mut next = self.agenda.first();
        if let Some(&(time, ..)) = self.changes.get(self.changed) {
            next = next.min(Moment::new(time, Class::Hotplug));
        }
        if let Some(Reverse(message)) = self.messages.peek() {
            next = next.min(Moment::new(message.arrives, Class::Ready));
        }
        next
    }

    pub(crate) fn starts_or_stops(&self, now: Time) -> bool {
        self.changes.get(self.changed).is_some_and(|&(time, ..)| time <= now)
    }

    /// The virtual machine, and the CPU in it, that `task` represents.
    fn place(&self, task: TaskId) -> (usize, usize) {
        let (vm, vcpu) = self.of_task[task.index()];
        (vm as usize, vcpu as usize)
    }

    /// The vCPU that `task` represents has waited for a CPU of the host.
    pub(crate) fn note_wait(&mut self, task: TaskId, waited: u64) {
        let (vm, _) = self.place(task);
        self.machines[vm].sim.metrics.vcpu_wait.record(waited);
    }

    /// A virtual machine has something to do at once, or a different next event.
    fn plan(&mut self, vm: usize) {
        let next = self.machines[vm].sim.next_time();
        self.agenda.set(vm, Moment::new(next, Class::Guest));
    }
}

impl Hosted {
    fn new(vm: Vm, traced: bool) -> Hosted {
        let vcpus = vm.vcpus.into_iter().map(|params| HostTask {
            params: TaskParams { domain: vm.domain, ..params },
            task: TaskId(0),
            begun: false,
        });
        let setup = Setup { hotplug: Vec::new(), until: Time::NEVER, ..vm.setup };
        let load: Box<dyn Load> = match vm.start {
            Time::ZERO => vm.load,
            start => Box::new(Later { load: vm.load, by: start.since(Time::ZERO) }),
        };
        let cpus = setup.machine.cpus();
        let trace = GuestTrace { listens: traced, items: Vec::new() };
        let mut sim = Sim::with_sink(setup, vm.policy, load, trace).with_vms(vm.vms);
        sim.guest = Some(Box::new(Guest::new(cpus)));
        Hosted {
            name: vm.name,
            domain: vm.domain,
            share: vm.share,
            ports: vm.ports,
            vcpus: vcpus.collect(),
            sim,
            runs: false,
            before: (Span::ZERO, Span::ZERO),
        }
    }
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// The task on `cpu` is a vCPU, which resumes now.
    pub(crate) fn enter_guest(&mut self, cpu: usize, id: TaskId) {
        self.tasks[id].left = Span::MAX;
        self.schedule(cpu);
        let speed = self.cpus[cpu].speed;
        let Some(vms) = &mut self.vms else { return };
        let (vm, vcpu) = vms.place(id);
        vms.machines[vm].sim.enter(vcpu, self.now, speed);
        vms.plan(vm);
        self.pass_on_trace(vm);
    }

    /// The vCPU that `task` represents stops advancing.
    pub(crate) fn leave_guest(&mut self, id: TaskId, why: Off) {
        if std::mem::take(&mut self.tasks[id].left) == Span::ZERO {
            return;
        }
        let Some(vms) = &mut self.vms else { return };
        let (vm, vcpu) = vms.place(id);
        vms.machines[vm].sim.leave(vcpu, self.now, why == Off::Blocked);
        vms.plan(vm);
    }

    /// The speed of `cpu` has changed.
    pub(crate) fn change_guest_speed(&mut self, cpu: usize) {
        let (task, speed) = (self.cpus[cpu].task, self.cpus[cpu].speed);
        let Some(vms) = &mut self.vms else { return };
        let Some(id) = task.filter(|&id| self.tasks[id].vcpu) else { return };
        if self.tasks[id].left > Span::ZERO {
            let (vm, vcpu) = vms.place(id);
            let sim = &mut vms.machines[vm].sim;
            sim.now = self.now;
            sim.run_at(vcpu, speed);
            vms.plan(vm);
        }
    }

    /// Advances the virtual machine whose event is next.
    pub(crate) fn settle_guest(&mut self) {
        let Some(vms) = &mut self.vms else { return };
        let vm = vms.agenda.first_cpu();
        vms.machines[vm].sim.settle(self.now);
        self.follow_guest(vm);
    }

    /// Carries out what a virtual machine wants: wakes vCPUs, takes halted ones off their CPUs, and
    /// sends its messages.
    fn follow_guest(&mut self, vm: usize) {
        self.pass_on_trace(vm);
        let Some(vms) = &mut self.vms else { return };
        let machine = &mut vms.machines[vm];
        if let Some(error) = machine.sim.error.take() {
            self.error = Some(error);
            return;
        }
        if let Some(guest) = &mut machine.sim.guest {
            for (port, sent) in guest.outbox.drain(..) {
                let Some(wire) = machine.ports.get(port.0 as usize) else { continue };
                vms.messages.push(Reverse(Message {
                    arrives: self.now + wire.delay,
                    number: vms.sent,
                    vm: wire.vm,
                    channel: wire.channel,
                    sent,
                }));
                vms.sent += 1;
            }
        }
        for vcpu in 0..machine.vcpus.len() {
            self.follow_vcpu(vm, vcpu);
        }
        if let Some(vms) = &mut self.vms {
            vms.plan(vm);
        }
    }

    fn follow_vcpu(&mut self, vm: usize, vcpu: usize) {
        let Some(vms) = &mut self.vms else { return };
        let machine = &mut vms.machines[vm];
        let (id, wants) = (machine.vcpus[vcpu].task, machine.sim.wants(vcpu));
        match self.tasks[id].state {
            State::Blocked if wants => {
                if let Some(guest) = &mut machine.sim.guest {
                    guest.vcpus[vcpu].change(Mode::Waits, self.now);
                }
                if std::mem::replace(&mut machine.vcpus[vcpu].begun, true) {
                    self.wake(id, None, self.now);
                } else {
                    let name = format!("{}/{vcpu}", machine.name);
                    let serial = self.tasks[id].serial;
                    let name = Some(name.as_str());
                    self.sink.task(&TaskInfo { task: id, serial, name, nice: 0 });
                    self.emit(Kind::Attach { task: id, by: None });
                    self.enqueue(id, Enqueue::New, None);
                }
            }
            State::Running if !wants && self.tasks[id].left > Span::ZERO => {
                let cpu = usize::from(self.tasks[id].cpu);
                self.count(cpu);
                self.take_off(cpu, Off::Blocked);
            }
            _ => {}
        }
    }

    fn pass_on_trace(&mut self, vm: usize) {
        let Some(vms) = &mut self.vms else { return };
        for item in vms.machines[vm].sim.sink.items.drain(..) {
            match item {
                Traced::Event(event) => self.sink.vm_event(vm, &event),
                Traced::Task { task, serial, name, nice } => {
                    let name = name.as_deref();
                    self.sink.vm_task(vm, &TaskInfo { task, serial, name, nice });
                }
            }
        }
    }

    /// A task sends a message out of the machine.
    pub(crate) fn send(&mut self, port: Port, sent: Time) {
        if let Some(guest) = &mut self.guest {
            guest.outbox.push((port, sent));
        }
    }

    pub(crate) fn deliver_message(&mut self) {
        let Some(vms) = &mut self.vms else { return };
        let Some(Reverse(message)) = vms.messages.pop() else { return };
        let Some(machine) = vms.machines.get_mut(message.vm) else { return };
        if !machine.runs {
            return;
        }
        if let Some(guest) = &mut machine.sim.guest {
            guest.inbox.push_back((message.channel, message.sent, self.now));
        }
        machine.sim.now = self.now;
        vms.plan(message.vm);
    }

    pub(crate) fn start_or_stop_vm(&mut self) {
        let Some(vms) = &mut self.vms else { return };
        let (_, starts, vm) = vms.changes[vms.changed];
        vms.changed += 1;
        if starts {
            self.start_vm(vm);
        } else {
            self.stop_vm(vm);
        }
    }

    fn start_vm(&mut self, vm: usize) {
        let Some(vms) = &mut self.vms else { return };
        let machine = &mut vms.machines[vm];
        machine.runs = true;
        machine.sim.begin(self.now);
        let (domain, share, vcpus) = (machine.domain, machine.share, machine.vcpus.len());
        self.call(|policy, cx| policy.set_domain(cx, domain, &share));
        for vcpu in 0..vcpus {
            self.start_vcpu(vm, vcpu);
        }
        self.tell_start(vm);
        // Anything due at once wakes them.
        self.follow_guest(vm);
    }

    fn tell_start(&mut self, vm: usize) {
        if self.sink.listens()
            && let Some(vms) = &self.vms
        {
            let machine = &vms.machines[vm];
            let tasks: Vec<TaskId> = machine.vcpus.iter().map(|host| host.task).collect();
            self.sink.vm(vm, &machine.name, &tasks);
        }
    }

    fn start_vcpu(&mut self, vm: usize, vcpu: usize) {
        if let Some((id, cpu)) = self.tasks.next_reused() {
            self.tell_leaving(id, cpu);
        }
        let id = self.tasks.create(self.now);
        let Some(vms) = &mut self.vms else { return };
        if vms.of_task.len() <= id.index() {
            vms.of_task.resize(id.index() + 1, (0, 0));
        }
        vms.of_task[id.index()] = (vm as u32, vcpu as u32);
        let host = &mut vms.machines[vm].vcpus[vcpu];
        host.task = id;
        let mut params = host.params.clone();
        params.affinity = self.setup_affinity(params.affinity);
        self.call(|policy, cx| policy.attach(cx, id, &params));
        let task = &mut self.tasks[id];
        task.vcpu = true;
        task.params = Some(Box::new(params));
    }

    fn stop_vm(&mut self, vm: usize) {
        let Some(vms) = &mut self.vms else { return };
        let tasks: Vec<TaskId> = vms.machines[vm].vcpus.iter().map(|host| host.task).collect();
        for id in tasks {
            self.stop_vcpu(id);
        }
        let Some(vms) = &mut self.vms else { return };
        let machine = &mut vms.machines[vm];
        machine.runs = false;
        machine.sim.now = self.now;
        machine.sim.finish();
        vms.agenda.set(vm, Moment::NEVER);
        self.sink.vm_end(vm, self.now);
    }

    fn stop_vcpu(&mut self, id: TaskId) {
        let cpu = usize::from(self.tasks[id].cpu);
        match self.tasks[id].state {
            State::Running => {
                self.count(cpu);
                self.take_off(cpu, Off::Exited);
            }
            State::Ready => {
                self.ready -= 1;
                self.tell_leaving(id, self.tasks[id].last_cpu());
                self.call(|policy, cx| policy.dequeue(cx, id));
            }
            _ => {}
        }
        if self.cpus[cpu].last == Some(id) {
            self.cpus[cpu].last = None;
        }
        self.call(|policy, cx| policy.detach(cx, id));
        self.tasks.release(id);
    }

    /// Judges the fairness of the seconds that end before `time`, the time of the next
    /// event.
    #[inline]
    pub(crate) fn close_seconds(&mut self, time: Time) {
        let Some(vms) = &mut self.vms else { return };
        while vms.second_ends <= time {
            let end = vms.second_ends;
            vms.second_ends += SECOND;
            let (mut number, mut sum, mut squares) = (0u32, 0.0, 0.0);
            for machine in vms.machines.iter_mut().filter(|machine| machine.runs) {
                let Some(guest) = &machine.sim.guest else { continue };
                let used = guest.used(end);
                let before = std::mem::replace(&mut machine.before, used);
                // It was created in this second, or could have used less than it got.
                let wanted_all = used.1 == before.1
                    && guest.vcpus.iter().all(|vcpu| {
                        vcpu.spent.iter().map(|span| span.0).sum::<u64>() + end.since(vcpu.since).0
                            >= SECOND.0
                    });
                if wanted_all && machine.share.cap_percent == 0 {
                    let share = (used.0.0 - before.0.0) as f64 / f64::from(machine.share.weight);
                    number += 1;
                    sum += share;
                    squares += share * share;
                }
            }
            if number > 1 && squares > 0.0 {
                let index = sum * sum / (f64::from(number) * squares);
                self.metrics.fairness.record(libm::round(index * 1e6) as u64);
            }
        }
    }

    /// Ends the virtual machines that remain at the end of this run.
    pub(crate) fn finish_vms(&mut self) {
        self.finish_guest();
        let Some(vms) = &mut self.vms else { return };
        for machine in &mut vms.machines {
            if std::mem::take(&mut machine.runs) {
                machine.sim.now = self.now;
                machine.sim.finish();
            }
            self.metrics.vms.push(VmMetrics {
                name: machine.name.clone(),
                domain: machine.domain,
                inside: std::mem::take(&mut machine.sim.metrics),
                learned: anysched_core::registry::learned(&*machine.sim.policy),
            });
        }
    }
}
