//! What the CPUs of virtual machines are doing, combined from the events of the host and the
//! guests.

use alloc::vec::Vec;
use anysched_core::{CpuId, TaskId};

use crate::{Kind, TaskInfo};

/// A virtual machine and one of its CPUs, by number.
pub(crate) type Place = (usize, usize);

/// What a virtual CPU is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Doing {
    /// It is halted, runs only the guest's scheduler, or does not exist.
    #[default]
    Nothing,
    /// It is ready, but the host is running something else.
    Stolen,
    /// It runs the task with this serial on this CPU of the host. `None`: a task that was never
    /// described.
    Runs(Option<u64>, CpuId),
}

/// All virtual machines so far, by number.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    machines: Vec<Machine>,
    /// By number of the host's task, the virtual CPU that it is.
    places: Vec<Option<Place>>,
}

#[derive(Debug, Default)]
struct Machine {
    cpus: Vec<Cpu>,
    /// Serials of its tasks, by number.
    serials: Vec<Option<u64>>,
}

#[derive(Debug)]
struct Cpu {
    task: TaskId,
    host: Host,
    /// What the guest is running on it.
    inside: Option<Option<u64>>,
}

/// What the host is doing with a virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    Blocked,
    Ready,
    Running(CpuId),
}

/// The entry at `index` of a list that grows as needed.
fn entry<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}

impl Guests {
    /// Whether there has never been a virtual machine.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// A virtual machine starts; its CPUs are `tasks` of the host.
    pub(crate) fn start(&mut self, vm: usize, tasks: &[TaskId]) {
        if self.machines.len() <= vm {
            self.machines.resize_with(vm + 1, Machine::default);
        }
        let cpu = |&task| Cpu { task, host: Host::Blocked, inside: None };
        self.machines[vm] = Machine { cpus: tasks.iter().map(cpu).collect(), serials: Vec::new() };
        for (cpu, task) in tasks.iter().enumerate() {
            *entry(&mut self.places, task.index()) = Some((vm, cpu));
        }
    }

    /// A virtual machine is gone; its CPUs do nothing from here on.
    pub(crate) fn stop(&mut self, vm: usize) {
        let Some(machine) = self.machines.get_mut(vm) else { return };
        for cpu in &mut machine.cpus {
            (cpu.host, cpu.inside) = (Host::Blocked, None);
            self.places[cpu.task.index()] = None;
        }
    }

    /// The host's tasks that are the CPUs of a virtual machine.
    pub(crate) fn tasks(&self, vm: usize) -> impl Iterator<Item = TaskId> + '_ {
        self.machines.get(vm).into_iter().flat_map(|machine| &machine.cpus).map(|cpu| cpu.task)
    }

    /// The virtual CPU that a task of the host is, if it is one.
    pub(crate) fn place(&self, task: TaskId) -> Option<Place> {
        self.places.get(task.index()).copied().flatten()
    }

    /// A new task of a virtual machine.
    pub(crate) fn task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        if let Some(machine) = self.machines.get_mut(vm) {
            *entry(&mut machine.serials, info.task.index()) = Some(info.serial);
        }
    }

    /// Takes an event of the host; returns the virtual CPUs whose activity may have changed.
    pub(crate) fn outside(&mut self, kind: &Kind) -> [Option<Place>; 2] {
        match *kind {
            Kind::Attach { task, .. } | Kind::Wake { task, .. } => {
                [self.change(task, Host::Ready), None]
            }
            Kind::Switch { prev: Some((prev, _)), next: Some(next), .. } if prev == next => {
                [None; 2]
            }
            Kind::Switch { cpu, prev, next } => {
                let left = prev.and_then(|(task, why)| {
                    let host = if why.runnable() { Host::Ready } else { Host::Blocked };
                    self.change(task, host)
                });
                [left, next.and_then(|task| self.change(task, Host::Running(cpu)))]
            }
            Kind::Offline { task } => [self.change(task, Host::Blocked), None],
            Kind::Kick { .. } | Kind::Migrate { .. } | Kind::State { .. } | Kind::Sample { .. } => {
                [None; 2]
            }
        }
    }

    fn change(&mut self, task: TaskId, host: Host) -> Option<Place> {
        let (vm, cpu) = self.place(task)?;
        self.machines[vm].cpus[cpu].host = host;
        Some((vm, cpu))
    }

    /// Takes an event of a guest; returns the virtual CPU whose activity may have changed.
    pub(crate) fn inside(&mut self, vm: usize, kind: &Kind) -> Option<Place> {
        let Kind::Switch { cpu, next, .. } = *kind else { return None };
        let machine = self.machines.get_mut(vm)?;
        let serial = |task: TaskId| machine.serials.get(task.index()).copied().flatten();
        machine.cpus.get_mut(cpu.index())?.inside = next.map(serial);
        Some((vm, cpu.index()))
    }

    /// What a virtual CPU is doing.
    pub(crate) fn doing(&self, (vm, cpu): Place) -> Doing {
        match self.machines.get(vm).and_then(|machine| machine.cpus.get(cpu)) {
            Some(Cpu { host: Host::Ready, .. }) => Doing::Stolen,
            Some(&Cpu { host: Host::Running(on), inside: Some(serial), .. }) => {
                Doing::Runs(serial, on)
            }
            _ => Doing::Nothing,
        }
    }
}
