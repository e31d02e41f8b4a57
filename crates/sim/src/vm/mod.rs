//! Virtual machines: machines whose CPUs are tasks of another machine, the host.
//!
//! Each is a [`Sim`] of its own, advanced by the host, and may hold virtual machines itself.

mod later;
mod trace;

use anysched_core::{DomainId, DomainParams, Scheduler, Span, TaskId, TaskParams, Time};
use anysched_host::{Setup, Vm, Wire};
use anysched_measure::{Apart, Summary, VmMetrics};
use anysched_trace::{Sink, TaskInfo};
use anysched_workload::{Channel, Load};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::engine::{Change, Class, CpuAgenda, Machines, Moment, Sim, SimError, Usage};
use later::Later;
use trace::{GuestTrace, Traced};

/// The virtual machines of a host.
struct Vms {
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
    /// When the current second began.
    before: Usage,
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
    fn new(vms: Vec<Vm>, traced: bool, apart: Apart) -> Vms {
        let mut changes = Vec::new();
        for (number, vm) in vms.iter().enumerate() {
            // One that stops when it starts is never there, and its stop would come first.
            if vm.stop <= vm.start {
                continue;
            }
            changes.push((vm.start, true, number));
            if vm.stop != Time::NEVER {
                changes.push((vm.stop, false, number));
            }
        }
        // At the same time, stops come before starts.
        changes.sort_by_key(|&(time, starts, number)| (time, starts, number));
        Vms {
            agenda: CpuAgenda::new(vms.len()),
            machines: vms.into_iter().map(|vm| Hosted::new(vm, traced, apart)).collect(),
            of_task: Vec::new(),
            changes,
            changed: 0,
            messages: BinaryHeap::new(),
            sent: 0,
            second_ends: Time::ZERO + SECOND,
        }
    }

    /// The virtual machine, and the CPU in it, that `task` is.
    fn place(&self, task: TaskId) -> (usize, usize) {
        let (vm, vcpu) = self.of_task[task.index()];
        (vm as usize, vcpu as usize)
    }
}

impl Hosted {
    fn new(vm: Vm, traced: bool, apart: Apart) -> Hosted {
        let vcpus = vm.vcpus.into_iter().map(|params| HostTask {
            params: TaskParams { domain: vm.domain, ..params },
            task: TaskId(0),
            begun: false,
        });
        let (hotplug, changes) = (Vec::new(), Vec::new());
        let setup = Setup { hotplug, changes, until: Time::NEVER, ..vm.setup };
        let load: Box<dyn Load> = match vm.start {
            Time::ZERO => vm.load,
            start => Box::new(Later { load: vm.load, by: start.since(Time::ZERO) }),
        };
        let trace = GuestTrace { listens: traced, items: Vec::new() };
        let sim = Sim::with_sink(setup, vm.policy, load, trace).measured_apart(apart);
        let sim = sim.with_vms(vm.vms).into_guest();
        Hosted {
            name: vm.name,
            domain: vm.domain,
            share: vm.share,
            ports: vm.ports,
            vcpus: vcpus.collect(),
            sim,
            runs: false,
            before: Usage::default(),
        }
    }
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// The same run with virtual machines, whose CPUs are tasks beside those of the load.
    pub fn with_vms(self, vms: Vec<Vm>) -> Sim<S, L, T> {
        if vms.is_empty() {
            return self;
        }
        let (traced, apart) = (self.listens(), self.apart());
        self.with_machines(Box::new(Vms::new(vms, traced, apart)))
    }
}

impl Machines for Vms {
    fn next(&self) -> Moment {
        let mut next = self.agenda.first();
        if let Some(&(time, ..)) = self.changes.get(self.changed) {
            next = next.min(Moment::new(time, Class::Hotplug));
        }
        if let Some(Reverse(message)) = self.messages.peek() {
            next = next.min(Moment::new(message.arrives, Class::Ready));
        }
        next
    }

    fn next_change(&mut self, now: Time) -> Option<Change> {
        let &(_, starts, vm) = self.changes.get(self.changed).filter(|(time, ..)| *time <= now)?;
        self.changed += 1;
        Some(if starts { Change::Start(vm) } else { Change::Stop(vm) })
    }

    fn start(&mut self, vm: usize, now: Time) -> (DomainId, DomainParams) {
        let machine = &mut self.machines[vm];
        machine.runs = true;
        machine.sim.begin(now);
        (machine.domain, machine.share)
    }

    fn bind(&mut self, vm: usize, vcpu: usize, task: TaskId) -> TaskParams {
        if self.of_task.len() <= task.index() {
            self.of_task.resize(task.index() + 1, (0, 0));
        }
        self.of_task[task.index()] = (vm as u32, vcpu as u32);
        let host = &mut self.machines[vm].vcpus[vcpu];
        host.task = task;
        host.params.clone()
    }

    fn stop(&mut self, vm: usize, now: Time) {
        let machine = &mut self.machines[vm];
        machine.runs = false;
        machine.sim.end(now);
        self.agenda.set(vm, Moment::NEVER);
    }

    fn describe(&self, vm: usize) -> (&str, Vec<TaskId>) {
        let machine = &self.machines[vm];
        (&machine.name, machine.vcpus.iter().map(|host| host.task).collect())
    }

    fn waited(&mut self, task: TaskId, waited: Span) {
        let (vm, _) = self.place(task);
        self.machines[vm].sim.metrics().vcpu_wait.record(waited.0);
    }

    fn enter(&mut self, task: TaskId, now: Time, speed: u64) -> usize {
        let (vm, vcpu) = self.place(task);
        self.machines[vm].sim.enter(vcpu, now, speed);
        self.plan(vm);
        vm
    }

    fn leave(&mut self, task: TaskId, now: Time, halted: bool) {
        let (vm, vcpu) = self.place(task);
        self.machines[vm].sim.leave(vcpu, now, halted);
        self.plan(vm);
    }

    fn set_speed(&mut self, task: TaskId, now: Time, speed: u64) {
        let (vm, vcpu) = self.place(task);
        self.machines[vm].sim.set_speed(vcpu, now, speed);
        self.plan(vm);
    }

    fn settle(&mut self, now: Time) -> usize {
        let vm = self.agenda.first_cpu();
        self.machines[vm].sim.settle(now);
        vm
    }

    fn post(&mut self, vm: usize, now: Time) -> Result<(), SimError> {
        let machine = &mut self.machines[vm];
        if let Some(error) = machine.sim.take_error() {
            return Err(error);
        }
        for (port, sent) in machine.sim.sent() {
            let Some(wire) = machine.ports.get(port.0 as usize) else { continue };
            self.messages.push(Reverse(Message {
                arrives: now + wire.delay,
                number: self.sent,
                vm: wire.vm,
                channel: wire.channel,
                sent,
            }));
            self.sent += 1;
        }
        Ok(())
    }

    fn pass_on_trace(&mut self, vm: usize, sink: &mut dyn Sink) {
        for item in self.machines[vm].sim.sink().items.drain(..) {
            match item {
                Traced::Event(event) => sink.vm_event(vm, &event),
                Traced::Task { task, serial, name, nice } => {
                    let name = name.as_deref();
                    sink.vm_task(vm, &TaskInfo { task, serial, name, nice });
                }
            }
        }
    }

    fn demand(&self, vm: usize, vcpu: usize) -> Option<(TaskId, bool)> {
        let machine = &self.machines[vm];
        Some((machine.vcpus.get(vcpu)?.task, machine.sim.wants(vcpu)))
    }

    fn await_entry(&mut self, vm: usize, vcpu: usize, now: Time) -> bool {
        let machine = &mut self.machines[vm];
        machine.sim.await_entry(vcpu, now);
        std::mem::replace(&mut machine.vcpus[vcpu].begun, true)
    }

    fn plan(&mut self, vm: usize) {
        let next = self.machines[vm].sim.next_time();
        self.agenda.set(vm, Moment::new(next, Class::Guest));
    }

    fn deliver(&mut self, now: Time) {
        let Some(Reverse(message)) = self.messages.pop() else { return };
        let Some(machine) = self.machines.get_mut(message.vm) else { return };
        if machine.runs {
            machine.sim.receive(message.channel, message.sent, now);
            self.plan(message.vm);
        }
    }

    #[inline]
    fn close_seconds(&mut self, time: Time, fairness: &mut Summary) {
        while self.second_ends <= time {
            let end = self.second_ends;
            self.second_ends += SECOND;
            let (mut number, mut sum, mut squares) = (0u32, 0.0, 0.0);
            for machine in self.machines.iter_mut().filter(|machine| machine.runs) {
                let used = machine.sim.usage(end);
                let before = std::mem::replace(&mut machine.before, used);
                // It was created in this second, or could have used less than it got.
                let wanted_all = used.halted == before.halted && used.age >= SECOND;
                if wanted_all && machine.share.cap_percent == 0 {
                    let used = used.entered.0 - before.entered.0;
                    let share = used as f64 / f64::from(machine.share.weight);
                    number += 1;
                    sum += share;
                    squares += share * share;
                }
            }
            if number > 1 && squares > 0.0 {
                let index = sum * sum / (f64::from(number) * squares);
                fairness.record(libm::round(index * 1e6) as u64);
            }
        }
    }

    fn finish(&mut self, now: Time, take: &mut dyn FnMut(VmMetrics)) {
        for machine in &mut self.machines {
            if std::mem::take(&mut machine.runs) {
                machine.sim.end(now);
            }
            take(VmMetrics {
                name: machine.name.clone(),
                domain: machine.domain,
                inside: std::mem::take(machine.sim.metrics()),
                learned: anysched_core::registry::learned(&**machine.sim.policy()),
            });
        }
    }
}
