//! The adapter of images for one CPU, or that of images for several, as their hosts call them.

use anysched_axtask::{Adapter, Current, Heeded, OneCpu, Picked};
use anysched_core::canon::Canon;
use anysched_core::{CpuId, Machine, TaskId, TaskParams, Time};

use crate::subject::Held;

pub(super) enum Adapters {
    /// hosts/arceos/axsched/src/scheduler.rs.
    One(OneCpu<Held>),
    /// hosts/arceos/axsched/src/shared.rs.
    Several(Adapter<Held>),
}

use Adapters::{One, Several};

/// What a CPU is to do because of what the policy asked for.
pub(super) enum Asked {
    Interrupt(CpuId),
    /// It is interrupted after it may have halted.
    Wake,
}

/// What a CPU is to run, and its timer.
pub(super) struct Next {
    pub picked: Picked,
    /// The timer is set to this.
    pub due: Time,
    /// Unless it fires before this.
    pub unless_before: Option<Time>,
}

impl Adapters {
    /// For a machine whose CPUs all halt.
    pub fn new(policy: Held, machine: &Machine) -> Adapters {
        if machine.cpus() == 1 {
            let mut adapter = OneCpu::new(policy, machine);
            adapter.rest(true);
            return One(adapter);
        }
        let mut adapter = Adapter::new(policy, machine);
        machine.cpu_ids().for_each(|cpu| adapter.rest(cpu, true));
        Several(adapter)
    }

    pub fn policy(&self) -> &Held {
        match self {
            One(adapter) => adapter.policy(),
            Several(adapter) => adapter.policy(),
        }
    }

    pub fn policy_mut(&mut self) -> &mut Held {
        match self {
            One(adapter) => adapter.policy_mut(),
            Several(adapter) => adapter.policy_mut(),
        }
    }

    /// Comes before anything else that `here` does.
    pub fn enter(&mut self, now: Time, here: CpuId) {
        if let Several(adapter) = self {
            adapter.enter(now, here);
        }
    }

    pub fn asked(&mut self, here: CpuId, in_interrupt: bool) -> Option<Asked> {
        match self {
            One(adapter) => match adapter.heed_kicks(in_interrupt) {
                Heeded::Nothing => None,
                Heeded::Interrupts => Some(Asked::Interrupt(here)),
                Heeded::Wakes => Some(Asked::Wake),
            },
            Several(adapter) => adapter.take_kick(here, in_interrupt).map(Asked::Interrupt),
        }
    }

    /// A task that is `known` to the policy, or else is not yet, has become ready.
    pub fn ready(
        &mut self,
        now: Time,
        here: CpuId,
        known: Option<TaskId>,
        params: &TaskParams,
        in_interrupt: bool,
    ) -> TaskId {
        match self {
            One(adapter) => {
                let id = known.unwrap_or_else(|| adapter.attach(now, params));
                adapter.ready(now, id, known.is_none(), in_interrupt, None);
                id
            }
            Several(adapter) => {
                let id = known.unwrap_or_else(|| adapter.attach(here, params));
                adapter.ready(here, id, in_interrupt, None);
                id
            }
        }
    }

    /// Returns whether it runs because of the policy.
    pub fn put(&mut self, here: CpuId, id: TaskId, preempted: bool) -> bool {
        match self {
            One(adapter) => {
                let runs = adapter.running() == Some(id);
                if runs {
                    adapter.put(preempted);
                }
                runs
            }
            Several(adapter) => adapter.put(here, id, preempted),
        }
    }

    pub fn update(&mut self, now: Time, id: TaskId, params: &TaskParams) {
        match self {
            One(adapter) => adapter.update(now, id, params),
            Several(adapter) => adapter.update(id, params),
        }
    }

    /// Returns whether another task should run, and when the timer is due.
    pub fn tick(&mut self, now: Time, here: CpuId, id: TaskId) -> (bool, Time) {
        match self {
            One(adapter) => {
                let is_running = adapter.running() == Some(id);
                let resched = adapter.tick(now, is_running).resched;
                (resched, if resched { adapter.next_tick() } else { adapter.due() })
            }
            Several(adapter) => {
                let resched = adapter.tick(here, Current::Task(id)).resched;
                (resched, if resched { adapter.next_tick(here) } else { adapter.due(here) })
            }
        }
    }

    /// `here` picks, and learns of tasks that have `departed` if it looks.
    pub fn pick(
        &mut self,
        now: Time,
        here: CpuId,
        exits: bool,
        departed: &mut Vec<TaskId>,
    ) -> Next {
        match self {
            One(adapter) => pick_alone(adapter, now, exits, departed),
            Several(adapter) => {
                let stopped = adapter.stop(here, exits);
                departed.drain(..).for_each(|id| adapter.detach(id));
                adapter.look(here);
                let picked = adapter.pick(here, stopped, true);
                if picked.pick.is_none() {
                    adapter.rest(here, true);
                }
                Next { picked, due: adapter.due(here), unless_before: None }
            }
        }
    }

    /// Whether `here`, at the end of an interrupt, halts or is about to although it should pick.
    pub fn halts_in_vain(&self, here: CpuId) -> bool {
        match self {
            One(adapter) => adapter.halts_in_vain(),
            Several(adapter) => adapter.halts_in_vain(here),
        }
    }

    pub fn canon(&self, to: &mut Canon) {
        match self {
            One(adapter) => adapter.canon(to),
            Several(adapter) => adapter.canon(to),
        }
    }
}

fn pick_alone(
    adapter: &mut OneCpu<Held>,
    now: Time,
    exits: bool,
    departed: &mut Vec<TaskId>,
) -> Next {
    let (picked, was_idle) = match adapter.yield_and_pick(now) {
        Some((_, picked)) => (picked, false),
        None => {
            adapter.stop(now, exits);
            departed.drain(..).for_each(|id| adapter.detach(now, id));
            let was_idle = adapter.look(now);
            (adapter.pick(now), was_idle)
        }
    };
    let unless_before = match picked.pick {
        None => {
            adapter.rest(true);
            None
        }
        Some(_) if was_idle => None,
        Some(_) => Some(adapter.due_by_pick()),
    };
    Next { picked, due: adapter.due(), unless_before }
}
