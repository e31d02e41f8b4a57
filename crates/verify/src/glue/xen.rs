//! Xen's scheduling core, as far as its glue sees of it.
//!
//! Source: xen/common/sched/core.c of 4.20 (`vcpu_wake`, `vcpu_sleep_nosync_locked`, `vcpu_block`,
//! `schedule`, `sched_context_switched`, `sched_unit_migrate_start` and `_finish`,
//! `sched_move_domain`, `cpu_disable_scheduler`), and hosts/xen/scheduler/anysched.c.

use std::fmt;

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{
    CpuId, CpuSet, Machine, Scheduler, Span, TaskId, Time, canon_fields, canonical,
};
use anysched_vcpus::{Adapter, Fitness};

use super::Kernel;
use crate::event::Step;
use crate::host::{START, params};
use crate::property::{Driven, Steps};
use crate::subject::Held;

/// Xen with some vCPUs and pCPUs, and a policy behind its glue.
pub struct Xen {
    adapter: Adapter<Held>,
    now: Time,
    vcpus: Vec<Vcpu>,
    pcpus: Vec<Pcpu>,
    has_hotplug: bool,
    /// What is wrong with the glue.
    #[cfg(test)]
    pub(super) flaw: super::tests::Flaw,
}

/// A vCPU as Xen knows it.
#[derive(Clone, Debug, Default)]
struct Vcpu {
    /// The glue's number; `None`: it has not been inserted.
    task: Option<TaskId>,
    /// It waits for an event, or has not been started yet.
    is_blocked: bool,
    /// Somebody has paused it.
    is_paused: bool,
    /// It is to go to another pCPU once its registers are saved.
    is_migrating: bool,
    /// The pCPU that has its registers (`is_running`).
    on: Option<CpuId>,
    /// The glue is to be told when they are saved.
    is_awaited: bool,
    bound: Option<CpuId>,
}

#[derive(Clone, Debug)]
struct Pcpu {
    is_online: bool,
    current: Option<usize>,
    /// What it ran before, while it saves its registers.
    saves: Option<usize>,
    /// The softirq of the scheduler is pending.
    is_due: bool,
    slice_ends: Time,
    /// When it was last charged by a tick or a pick.
    ticked: Time,
}

canonical!(Vcpu { task, is_blocked, is_paused, is_migrating, on, is_awaited, bound });

impl Canonical for Pcpu {
    fn canon(&self, _: &(), to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Pcpu { is_online, current, saves, is_due, slice_ends, ticked: fixed }
        );
        // Nothing ticks where nothing runs.
        self.current.map(|_| self.ticked).canon(&(), to);
    }
}

impl Vcpu {
    fn is_runnable(&self) -> bool {
        self.task.is_some() && !self.is_blocked && !self.is_paused && !self.is_migrating
    }
}

/// What happens in Xen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields say which vCPU and which pCPU")]
pub enum XenEvent {
    /// A domain is built, or comes from another pool.
    Insert {
        vcpu: usize,
    },
    /// It is destroyed, or leaves the pool.
    Remove {
        vcpu: usize,
    },
    /// An event comes for a vCPU that is blocked, or it is started.
    Wake {
        vcpu: usize,
        from: Option<CpuId>,
    },
    /// What runs on a pCPU waits for an event.
    Block {
        cpu: CpuId,
    },
    /// What runs on a pCPU yields.
    Yield {
        cpu: CpuId,
    },
    Pause {
        vcpu: usize,
    },
    Unpause {
        vcpu: usize,
    },
    /// The softirq is served.
    Schedule {
        cpu: CpuId,
    },
    /// The registers of what ran before are saved.
    Saved {
        cpu: CpuId,
    },
    /// The timer of the slice ends.
    SliceEnd {
        cpu: CpuId,
    },
    Tick {
        cpu: CpuId,
    },
    Timer,
    Pass {
        step: Step,
    },
    Bind {
        vcpu: usize,
        to: Option<CpuId>,
    },
    Online {
        cpu: CpuId,
        online: bool,
    },
}

impl Xen {
    /// With up to `vcpus` vCPUs, of two domains; `policy` was built for `machine`. With
    /// `has_hotplug`, pCPUs leave the pool and come back.
    pub fn new(policy: Held, machine: &Machine, vcpus: u32, has_hotplug: bool) -> Xen {
        let idle = Pcpu {
            is_online: true,
            current: None,
            saves: None,
            is_due: false,
            slice_ends: Time::NEVER,
            ticked: START,
        };
        Xen {
            adapter: Adapter::new(policy, machine),
            now: START,
            vcpus: vec![Vcpu::default(); vcpus as usize],
            pcpus: vec![idle; machine.cpus()],
            has_hotplug,
            #[cfg(test)]
            flaw: super::tests::Flaw::None,
        }
    }

    fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.pcpus.len() as u16).map(CpuId)
    }

    /// pCPUs that run something.
    fn busy_cpus(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.cpu_ids().filter(|cpu| self.pcpus[cpu.index()].current.is_some())
    }

    fn pcpu(&mut self, cpu: CpuId) -> &mut Pcpu {
        &mut self.pcpus[cpu.index()]
    }

    fn task(&self, vcpu: usize) -> TaskId {
        self.vcpus[vcpu].task.expect("it has been inserted")
    }

    /// The softirqs that the glue has raised.
    fn raise(&mut self) {
        while let Some(cpu) = self.adapter.take_kick() {
            // Xen raises it on any pCPU, and one that is out of use picks nothing.
            self.pcpu(cpu).is_due |= self.pcpus[cpu.index()].is_online;
        }
    }

    /// `await_registers`: whether a pCPU has them still; if so, the glue will be told.
    fn awaits(&mut self, vcpu: usize) -> bool {
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.is_awaited |= vcpu.on.is_some();
        vcpu.on.is_some()
    }

    fn wake(&mut self, vcpu: usize, from: Option<CpuId>) {
        if self.vcpus[vcpu].is_runnable() {
            let (task, saving) = (self.task(vcpu), self.awaits(vcpu));
            self.adapter.wake(self.now, task, saving, from);
        }
    }

    fn sleep(&mut self, vcpu: usize) {
        if self.vcpus[vcpu].is_runnable() {
            return;
        }
        if let Some(cpu) = self.adapter.sleep(self.now, self.task(vcpu)) {
            self.pcpu(cpu).is_due = true;
        }
    }

    fn schedule(&mut self, cpu: CpuId, tasklet: bool) {
        let prev = self.pcpus[cpu.index()].current;
        let is_runnable = prev.is_some_and(|vcpu| self.vcpus[vcpu].is_runnable());
        #[cfg(test)]
        let takes_saving = self.flaw == super::tests::Flaw::TakesSaving;
        #[cfg(not(test))]
        let takes_saving = false;
        let vcpus = &mut self.vcpus;
        let number = |vcpus: &[Vcpu], task| {
            let number = vcpus.iter().position(|vcpu| vcpu.task == Some(task));
            number.expect("the policy picks a vCPU that is there")
        };
        let fitness = |task| {
            let number = number(vcpus, task);
            let vcpu = &mut vcpus[number];
            if vcpu.on.is_some() && prev != Some(number) && !takes_saving {
                vcpu.is_awaited = true;
                return Fitness::Saving;
            }
            if vcpu.is_runnable() { Fitness::Runs } else { Fitness::Paused }
        };
        let pick = self.adapter.schedule(self.now, cpu, is_runnable, tasklet, fitness);
        let next = pick.map(|pick| number(&self.vcpus, pick.task));
        let now = self.now;
        let pcpu = self.pcpu(cpu);
        pcpu.is_due = false;
        pcpu.ticked = now;
        pcpu.slice_ends = match pick {
            Some(pick) if pick.slice != Span::MAX => now + pick.slice,
            _ => Time::NEVER,
        };
        pcpu.current = next;
        if next == prev {
            return;
        }
        pcpu.saves = prev;
        if let Some(next) = next {
            let vcpu = &mut self.vcpus[next];
            assert!(vcpu.on.is_none(), "vCPU {next} runs on two pCPUs");
            let allowed = vcpu.bound.is_none_or(|bound| bound == cpu);
            assert!(allowed || !self.pcpus[vcpu.bound.map_or(0, CpuId::index)].is_online);
            vcpu.on = Some(cpu);
        }
    }

    /// `context_saved`, and what Xen does after it.
    fn saved(&mut self, cpu: CpuId) {
        let Some(vcpu) = self.pcpu(cpu).saves.take() else { return };
        self.vcpus[vcpu].on = None;
        #[cfg(test)]
        if self.flaw == super::tests::Flaw::ForgetsSaved {
            self.vcpus[vcpu].is_awaited = false;
        }
        if std::mem::take(&mut self.vcpus[vcpu].is_awaited) {
            let runnable = self.vcpus[vcpu].is_runnable();
            self.adapter.saved(self.now, self.task(vcpu), runnable);
        }
        self.finish_migration(vcpu);
    }

    fn finish_migration(&mut self, vcpu: usize) {
        if self.vcpus[vcpu].is_migrating && self.vcpus[vcpu].on.is_none() {
            self.vcpus[vcpu].is_migrating = false;
            self.wake(vcpu, None);
        }
    }

    fn bind(&mut self, vcpu: usize, to: Option<CpuId>) {
        self.vcpus[vcpu].bound = to;
        let affinity = to.map_or(CpuSet::All, |cpu| CpuSet::of([cpu]));
        let params = params(TaskId(vcpu as u32), false, affinity);
        let task = self.task(vcpu);
        self.adapter.update(self.now, task, params, vcpu as u32 % 2);
        self.vcpus[vcpu].is_migrating = true;
        self.sleep(vcpu);
        self.finish_migration(vcpu);
    }

    fn online(&mut self, cpu: CpuId, online: bool) {
        if !online {
            // Xen has the pCPU run its idle vCPU before it goes.
            self.schedule(cpu, true);
            self.saved(cpu);
        }
        self.pcpu(cpu).is_online = online;
        self.pcpu(cpu).is_due = false;
        self.adapter.set_online(self.now, cpu, online);
    }
}

impl Steps for Xen {
    type Event = XenEvent;

    fn events(&self) -> Vec<XenEvent> {
        let mut events = Vec::new();
        // Numbers are given out from the lowest.
        let new = self.vcpus.iter().position(|vcpu| vcpu.task.is_none());
        events.extend(new.map(|vcpu| XenEvent::Insert { vcpu }));
        for (number, vcpu) in self.vcpus.iter().enumerate().filter(|(_, it)| it.task.is_some()) {
            if vcpu.is_blocked {
                let wakers = self.busy_cpus().map(Some);
                let wake = |from| XenEvent::Wake { vcpu: number, from };
                events.extend(wakers.chain([None]).map(wake));
            }
            match vcpu.is_paused {
                true => events.push(XenEvent::Unpause { vcpu: number }),
                false => events.push(XenEvent::Pause { vcpu: number }),
            }
            // Domains are paused, and their registers waited for, before they go.
            if vcpu.is_paused && vcpu.on.is_none() {
                events.push(XenEvent::Remove { vcpu: number });
            }
            if self.pcpus.len() > 1 && !vcpu.is_migrating {
                let all = self.cpu_ids().map(Some).chain([None]);
                let others = all.filter(|&to| to != vcpu.bound);
                let is_there =
                    |to: &Option<CpuId>| to.is_none_or(|cpu| self.pcpus[cpu.index()].is_online);
                events
                    .extend(others.filter(is_there).map(|to| XenEvent::Bind { vcpu: number, to }));
            }
        }
        for cpu in self.cpu_ids() {
            let pcpu = &self.pcpus[cpu.index()];
            if pcpu.saves.is_some() {
                events.push(XenEvent::Saved { cpu });
                continue;
            }
            if pcpu.is_due {
                events.push(XenEvent::Schedule { cpu });
            }
            if let Some(vcpu) = pcpu.current {
                // What a pCPU does before it serves a softirq, guests do not notice.
                if self.vcpus[vcpu].is_runnable() {
                    events.push(XenEvent::Block { cpu });
                    events.push(XenEvent::Yield { cpu });
                }
                if pcpu.slice_ends <= self.now {
                    events.push(XenEvent::SliceEnd { cpu });
                } else if pcpu.ticked < self.now {
                    events.push(XenEvent::Tick { cpu });
                }
            }
            let others = self.cpu_ids().any(|it| it != cpu && self.pcpus[it.index()].is_online);
            if self.has_hotplug && (others || !pcpu.is_online) {
                events.push(XenEvent::Online { cpu, online: !pcpu.is_online });
            }
        }
        if self.is_timer_due() {
            events.push(XenEvent::Timer);
        } else if self.expired_cpu().is_none() {
            let steps = Step::distinct(self.now, self.next_due());
            events.extend(steps.map(|step| XenEvent::Pass { step }));
        }
        events
    }

    fn apply(&mut self, event: XenEvent) {
        let now = self.now;
        match event {
            XenEvent::Insert { vcpu } => {
                let params = params(TaskId(vcpu as u32), false, CpuSet::All);
                let task = self.adapter.attach(now, params, vcpu as u32 % 2);
                self.vcpus[vcpu] = Vcpu { task: Some(task), is_blocked: true, ..Vcpu::default() };
            }
            XenEvent::Remove { vcpu } => {
                self.adapter.detach(now, self.task(vcpu));
                self.vcpus[vcpu] = Vcpu::default();
            }
            XenEvent::Wake { vcpu, from } => {
                self.vcpus[vcpu].is_blocked = false;
                self.wake(vcpu, from);
            }
            XenEvent::Block { cpu } => {
                if let Some(vcpu) = self.pcpus[cpu.index()].current {
                    self.vcpus[vcpu].is_blocked = true;
                    self.pcpu(cpu).is_due = true;
                }
            }
            XenEvent::Yield { cpu } => {
                if let Some(vcpu) = self.pcpus[cpu.index()].current {
                    self.adapter.yields(self.task(vcpu));
                    self.pcpu(cpu).is_due = true;
                }
            }
            XenEvent::Pause { vcpu } => {
                self.vcpus[vcpu].is_paused = true;
                self.sleep(vcpu);
            }
            XenEvent::Unpause { vcpu } => {
                self.vcpus[vcpu].is_paused = false;
                self.wake(vcpu, None);
            }
            XenEvent::Schedule { cpu } => self.schedule(cpu, false),
            XenEvent::Saved { cpu } => self.saved(cpu),
            XenEvent::SliceEnd { cpu } => {
                self.pcpu(cpu).is_due = true;
                self.pcpu(cpu).slice_ends = Time::NEVER;
            }
            XenEvent::Tick { cpu } => {
                self.pcpu(cpu).ticked = now;
                self.adapter.tick(now, cpu);
            }
            XenEvent::Timer => self.adapter.timer(now),
            XenEvent::Pass { step } => self.now = step.end(now, self.next_due()),
            XenEvent::Bind { vcpu, to } => self.bind(vcpu, to),
            XenEvent::Online { cpu, online } => self.online(cpu, online),
        }
        self.raise();
    }

    fn words(&self) -> Option<Vec<u64>> {
        let mut canon = Canon::new(self.now);
        self.vcpus[..].canon(&(), &mut canon);
        self.pcpus[..].canon(&(), &mut canon);
        self.adapter.canon(&mut canon);
        canon.words()
    }
}

impl Xen {
    fn is_timer_due(&self) -> bool {
        self.adapter.next_timer().is_some_and(|due| due <= self.now)
    }

    fn expired_cpu(&self) -> Option<CpuId> {
        self.cpu_ids().find(|cpu| self.pcpus[cpu.index()].slice_ends <= self.now)
    }
}

impl Kernel for Xen {
    fn policy(&mut self) -> &mut Held {
        self.adapter.policy_mut()
    }
}

impl Driven for Xen {
    fn now(&self) -> Time {
        self.now
    }

    fn pass_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    fn due(&self) -> Option<XenEvent> {
        let of = |is: fn(&Pcpu) -> bool| self.cpu_ids().find(|cpu| is(&self.pcpus[cpu.index()]));
        let saved = of(|pcpu| pcpu.saves.is_some()).map(|cpu| XenEvent::Saved { cpu });
        let due = || of(|pcpu| pcpu.is_due).map(|cpu| XenEvent::Schedule { cpu });
        let timer = || self.is_timer_due().then_some(XenEvent::Timer);
        saved.or_else(due).or_else(timer)
    }

    fn expired(&self) -> Option<XenEvent> {
        self.expired_cpu().map(|cpu| XenEvent::SliceEnd { cpu })
    }

    fn tick_period(&self) -> Option<Span> {
        self.adapter.policy().tick_period()
    }

    fn next_due(&self) -> Option<Time> {
        let ends = self.pcpus.iter().map(|pcpu| pcpu.slice_ends);
        ends.chain(self.adapter.next_timer()).min().filter(|&due| due != Time::NEVER)
    }

    fn release(&self) -> Option<XenEvent> {
        let paused = self.vcpus.iter().position(|vcpu| vcpu.is_paused);
        paused.map(|vcpu| XenEvent::Unpause { vcpu })
    }

    fn block(&self) -> Option<XenEvent> {
        self.busy_cpus().next().map(|cpu| XenEvent::Block { cpu })
    }

    fn ticks(&self) -> Vec<XenEvent> {
        self.busy_cpus().map(|cpu| XenEvent::Tick { cpu }).collect()
    }

    fn waiting(&self) -> Vec<TaskId> {
        let runs = |number| self.pcpus.iter().any(|pcpu| pcpu.current == Some(number));
        let vcpus = self.vcpus.iter().enumerate();
        let waits = vcpus.filter(|&(number, vcpu)| vcpu.is_runnable() && !runs(number));
        waits.map(|(number, _)| TaskId(number as u32)).collect()
    }

    fn runnable(&self) -> usize {
        self.vcpus.iter().filter(|vcpu| vcpu.is_runnable()).count()
    }
}

impl fmt::Display for XenEvent {
    /// The event in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            XenEvent::Insert { vcpu } => write!(f, "vCPU {vcpu} comes"),
            XenEvent::Remove { vcpu } => write!(f, "vCPU {vcpu} goes"),
            XenEvent::Wake { vcpu, from: None } => write!(f, "an event comes for vCPU {vcpu}"),
            XenEvent::Wake { vcpu, from: Some(cpu) } => {
                write!(f, "what runs on pCPU {} wakes vCPU {vcpu}", cpu.0)
            }
            XenEvent::Block { cpu } => write!(f, "what runs on pCPU {} blocks", cpu.0),
            XenEvent::Yield { cpu } => write!(f, "what runs on pCPU {} yields", cpu.0),
            XenEvent::Pause { vcpu } => write!(f, "vCPU {vcpu} is paused"),
            XenEvent::Unpause { vcpu } => write!(f, "vCPU {vcpu} is unpaused"),
            XenEvent::Schedule { cpu } => write!(f, "pCPU {} schedules", cpu.0),
            XenEvent::Saved { cpu } => write!(f, "pCPU {} has saved registers", cpu.0),
            XenEvent::SliceEnd { cpu } => write!(f, "the slice on pCPU {} ends", cpu.0),
            XenEvent::Tick { cpu } => write!(f, "a tick on pCPU {}", cpu.0),
            XenEvent::Timer => f.write_str("the policy's timer"),
            XenEvent::Pass { step } => step.fmt(f),
            XenEvent::Bind { vcpu, to: Some(cpu) } => {
                write!(f, "vCPU {vcpu} is bound to pCPU {}", cpu.0)
            }
            XenEvent::Bind { vcpu, to: None } => write!(f, "vCPU {vcpu} may run anywhere"),
            XenEvent::Online { cpu, online: true } => {
                write!(f, "pCPU {} comes into the pool", cpu.0)
            }
            XenEvent::Online { cpu, online: false } => write!(f, "pCPU {} leaves the pool", cpu.0),
        }
    }
}
