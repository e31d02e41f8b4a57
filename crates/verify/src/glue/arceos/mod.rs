//! ArceOS's axtask, on one CPU or several, as far as its schedulers see of it.
//!
//! Source: axtask 0.3.0-preview.3, src/run_queue.rs (`scheduler_timer_tick`, `yield_current`,
//! `preempt_resched`, `exit_current`, `blocked_resched`, `put_task_with_state`, `resched`,
//! `switch_to`), src/api.rs (`run_idle`), and hosts/arceos/axsched/src/clock.rs.

mod adapter;

use std::fmt;

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{CpuId, CpuSet, Machine, Scheduler, Span, TaskId, Time, canonical};

use self::adapter::{Adapters, Asked};
use super::Kernel;
use crate::event::Step;
use crate::host::{START, params};
use crate::property::{Driven, Steps};
use crate::subject::Held;

/// Each of so many CPUs is interrupted so often, whatever is due: the host's clock.rs says so.
fn base_of(cpus: usize) -> Span {
    Span::from_ms(if cpus == 1 { 10 } else { 1 })
}

/// A CPU that may be about to halt is interrupted once more after this time (there, too).
const HALT_RACE: Span = Span::from_us(2);

/// ArceOS with some tasks and CPUs, and a policy behind its schedulers.
pub struct ArceOs {
    adapter: Adapters,
    now: Time,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// Tasks that no longer exist: the policy learns of it at the next pick.
    departed: Vec<TaskId>,
    /// What is wrong with the glue.
    #[cfg(test)]
    pub(super) flaw: super::tests::Flaw,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// There is none.
    #[default]
    Gone,
    Blocked,
    Ready,
    Running,
    /// It has ended, and its stack is not freed yet.
    Exited,
}

/// A task as axtask knows it.
#[derive(Clone, Debug, Default)]
struct Task {
    state: State,
    /// The policy's number.
    id: Option<TaskId>,
    /// The CPU that runs it or still has its stack (`on_cpu`).
    on: Option<CpuId>,
    is_nice: bool,
}

#[derive(Clone, Debug)]
struct Cpu {
    /// `None`: the idle task.
    current: Option<usize>,
    /// It runs the idle task, and halts; before it does, it may be interrupted.
    halts: bool,
    /// It is about to pick; interrupts are off until it has switched.
    picks: bool,
    /// What it ran before, while it is still on that stack.
    leaves: Option<usize>,
    /// An interrupt of another CPU, or of itself, has come.
    is_interrupted: bool,
    /// When its timer fires.
    armed: Time,
}

canonical!(State: u64);
canonical!(Task { state, id, on, is_nice });
canonical!(Cpu { current, halts, picks, leaves, is_interrupted, armed: due });

impl Cpu {
    fn has_interrupts_on(&self) -> bool {
        !self.picks && self.leaves.is_none()
    }
}

/// What happens in ArceOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields say which task and which CPU")]
pub enum ArceOsEvent {
    /// What runs on a CPU wakes a task, or starts it.
    Wake {
        task: usize,
        cpu: CpuId,
    },
    /// A CPU is interrupted, and its handler may wake a task, or start it.
    Interrupt {
        cpu: CpuId,
        wakes: Option<usize>,
    },
    Block {
        cpu: CpuId,
    },
    Yield {
        cpu: CpuId,
    },
    Exit {
        cpu: CpuId,
    },
    /// What runs on a CPU changes its nice value.
    Nice {
        cpu: CpuId,
    },
    Pick {
        cpu: CpuId,
    },
    /// A CPU that has found nothing to run halts.
    Halt {
        cpu: CpuId,
    },
    /// A CPU has left the stack of what it ran before.
    Switched {
        cpu: CpuId,
    },
    /// The stack of a task that has ended is freed.
    Free {
        task: usize,
    },
    Pass {
        step: Step,
    },
}

impl ArceOs {
    /// With up to `tasks` tasks; `policy` was built for `machine`.
    pub fn new(policy: Held, machine: &Machine, tasks: u32) -> ArceOs {
        let base = base_of(machine.cpus());
        let idle = Cpu {
            current: None,
            halts: true,
            picks: false,
            leaves: None,
            is_interrupted: false,
            armed: START + base,
        };
        ArceOs {
            adapter: Adapters::new(policy, machine),
            now: START,
            tasks: vec![Task::default(); tasks as usize],
            cpus: vec![idle; machine.cpus()],
            departed: Vec::new(),
            #[cfg(test)]
            flaw: super::tests::Flaw::None,
        }
    }

    fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus.len() as u16).map(CpuId)
    }

    fn find(&self, is: impl Fn(&Cpu) -> bool) -> Option<CpuId> {
        self.cpu_ids().find(|cpu| is(&self.cpus[cpu.index()]))
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    fn in_state(&self, state: State) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(move |&task| self.tasks[task].state == state)
    }

    /// Whatever `here` does with the policy.
    fn with<R>(
        &mut self,
        here: CpuId,
        in_interrupt: bool,
        act: impl FnOnce(&mut Adapters) -> R,
    ) -> R {
        self.adapter.enter(self.now, here);
        let done = act(&mut self.adapter);
        while let Some(asked) = self.adapter.asked(here, in_interrupt) {
            #[cfg(test)]
            if self.flaw == super::tests::Flaw::LosesKicks {
                continue;
            }
            match asked {
                Asked::Interrupt(cpu) => self.cpu(cpu).is_interrupted = true,
                Asked::Wake => {
                    let due = self.now + HALT_RACE;
                    let on = self.cpu(here);
                    on.armed = on.armed.min(due);
                }
            }
        }
        done
    }

    /// Sets the timer of `cpu`.
    fn rearm(&mut self, cpu: CpuId, due: Time) {
        let base = base_of(self.cpus.len());
        let base = Time((self.now.0 / base.0 + 1) * base.0);
        self.cpu(cpu).armed = due.min(base);
    }

    fn params(&self, task: usize) -> anysched_core::TaskParams {
        params(TaskId(task as u32), self.tasks[task].is_nice, CpuSet::All)
    }

    /// `add_task`, or `put_prev_task` of a task that was blocked.
    fn ready(&mut self, task: usize, here: CpuId, in_interrupt: bool) {
        let (now, known, params) = (self.now, self.tasks[task].id, self.params(task));
        let id = self.with(here, in_interrupt, |adapter| {
            adapter.ready(now, here, known, &params, in_interrupt)
        });
        self.tasks[task].id = Some(id);
        self.tasks[task].state = State::Ready;
    }

    /// `put_prev_task` of what `cpu` runs, which is about to pick.
    fn put(&mut self, cpu: CpuId, preempted: bool) {
        let Some(task) = self.cpus[cpu.index()].current else { return };
        let id = self.id(task);
        self.tasks[task].state = State::Ready;
        let is_put = self.with(cpu, false, |adapter| adapter.put(cpu, id, preempted));
        assert!(is_put, "task {task} runs, and the policy did not pick it");
        self.cpu(cpu).picks = true;
    }

    fn id(&self, task: usize) -> TaskId {
        self.tasks[task].id.expect("it has been started")
    }

    /// What runs on `cpu` stops without being put back.
    fn stop(&mut self, cpu: CpuId, state: State) {
        if let Some(task) = self.cpus[cpu.index()].current {
            self.tasks[task].state = state;
            self.cpu(cpu).picks = true;
        }
    }

    fn interrupt(&mut self, cpu: CpuId, wakes: Option<usize>) {
        self.cpu(cpu).is_interrupted = false;
        if self.cpus[cpu.index()].armed <= self.now {
            // The kernel's own handler sets it anew.
            self.rearm(cpu, Time::NEVER);
        }
        if let Some(task) = wakes {
            self.ready(task, cpu, true);
        }
        let (now, current) = (self.now, self.cpus[cpu.index()].current);
        let mut preempts = false;
        if let Some(task) = current {
            let id = self.id(task);
            let (resched, due) = self.with(cpu, true, |adapter| adapter.tick(now, cpu, id));
            self.rearm(cpu, due);
            preempts = resched;
        }
        // `interrupt_ends`; `timer_interrupt_begins`, in images for one CPU.
        let halts_in_vain = self.with(cpu, false, |adapter| adapter.halts_in_vain(cpu));
        #[cfg(test)]
        let halts_in_vain = halts_in_vain && self.flaw != super::tests::Flaw::LosesKicks;
        if halts_in_vain {
            self.rearm(cpu, self.now + HALT_RACE);
        }
        if preempts {
            self.put(cpu, true);
        }
        // A halt that is ended ends in a look.
        let on = self.cpu(cpu);
        on.picks |= std::mem::take(&mut on.halts);
    }

    fn pick(&mut self, cpu: CpuId) {
        let prev = self.cpus[cpu.index()].current;
        let exits = prev.is_some_and(|task| self.tasks[task].state == State::Exited);
        let (now, mut departed) = (self.now, std::mem::take(&mut self.departed));
        let next = self.with(cpu, false, |adapter| adapter.pick(now, cpu, exits, &mut departed));
        self.departed = departed;
        #[cfg(test)]
        if self.flaw == super::tests::Flaw::TakesSaving {
            self.adapter.enter(Time::ZERO, cpu);
        }
        let armed = self.cpus[cpu.index()].armed;
        if next.unless_before.is_none_or(|due| due < armed) {
            self.rearm(cpu, next.due);
        }
        let picked = next.picked;
        let next = picked.pick.map(|pick| {
            let next = self.tasks.iter().position(|task| task.id == Some(pick.task));
            next.expect("the policy picks a task that is there")
        });
        let on = self.cpu(cpu);
        on.picks = false;
        on.halts = false;
        on.is_interrupted |= picked.interrupts;
        on.current = next;
        if let Some(next) = next {
            assert!(self.tasks[next].state == State::Ready, "task {next} is not ready");
            self.tasks[next].state = State::Running;
        }
        if next == prev {
            return;
        }
        self.cpu(cpu).leaves = prev;
        if let Some(next) = next {
            assert!(self.tasks[next].on.is_none(), "task {next} is on two CPUs");
            self.tasks[next].on = Some(cpu);
        }
    }
}

impl Steps for ArceOs {
    type Event = ArceOsEvent;

    fn events(&self) -> Vec<ArceOsEvent> {
        let mut events = Vec::new();
        // Tasks are woken when their CPU has left them: the waker waits for that. Numbers of new
        // ones are given out from the lowest.
        let left = self.in_state(State::Blocked).filter(|&task| self.tasks[task].on.is_none());
        let sleepers: Vec<usize> = left.chain(self.in_state(State::Gone).next()).collect();
        // Of interrupts, which CPU has them makes little difference.
        let device = self.find(Cpu::has_interrupts_on);
        for cpu in self.cpu_ids() {
            let on = &self.cpus[cpu.index()];
            if on.picks {
                events.push(ArceOsEvent::Pick { cpu });
                continue;
            }
            if on.leaves.is_some() {
                events.push(ArceOsEvent::Switched { cpu });
                continue;
            }
            if on.is_interrupted || on.armed <= self.now {
                events.push(ArceOsEvent::Interrupt { cpu, wakes: None });
            }
            if device == Some(cpu) {
                let wake = |&task| ArceOsEvent::Interrupt { cpu, wakes: Some(task) };
                events.extend(sleepers.iter().map(wake));
            }
            if on.current.is_none() {
                if !on.halts {
                    events.push(ArceOsEvent::Halt { cpu });
                }
                continue;
            }
            events.extend(sleepers.iter().map(|&task| ArceOsEvent::Wake { task, cpu }));
            events.extend([
                ArceOsEvent::Block { cpu },
                ArceOsEvent::Yield { cpu },
                ArceOsEvent::Exit { cpu },
                ArceOsEvent::Nice { cpu },
            ]);
        }
        let ended = self.in_state(State::Exited).filter(|&task| self.tasks[task].on.is_none());
        events.extend(ended.map(|task| ArceOsEvent::Free { task }));
        // With interrupts off, CPUs do little.
        let all_on = self.cpus.iter().all(Cpu::has_interrupts_on);
        if all_on && self.expired().is_none() {
            let steps = Step::distinct(self.now, self.next_due());
            events.extend(steps.map(|step| ArceOsEvent::Pass { step }));
        }
        events
    }

    fn apply(&mut self, event: ArceOsEvent) {
        match event {
            ArceOsEvent::Wake { task, cpu } => self.ready(task, cpu, false),
            ArceOsEvent::Interrupt { cpu, wakes } => self.interrupt(cpu, wakes),
            ArceOsEvent::Block { cpu } => self.stop(cpu, State::Blocked),
            ArceOsEvent::Yield { cpu } => self.put(cpu, false),
            ArceOsEvent::Exit { cpu } => self.stop(cpu, State::Exited),
            ArceOsEvent::Nice { cpu } => {
                if let Some(task) = self.cpus[cpu.index()].current {
                    self.tasks[task].is_nice ^= true;
                    let (now, id, params) = (self.now, self.id(task), self.params(task));
                    self.with(cpu, false, |adapter| adapter.update(now, id, &params));
                }
            }
            ArceOsEvent::Pick { cpu } => self.pick(cpu),
            ArceOsEvent::Halt { cpu } => self.cpu(cpu).halts = true,
            ArceOsEvent::Switched { cpu } => {
                if let Some(task) = self.cpu(cpu).leaves.take() {
                    self.tasks[task].on = None;
                }
            }
            ArceOsEvent::Free { task } => {
                self.departed.extend(self.tasks[task].id);
                self.tasks[task] = Task::default();
            }
            ArceOsEvent::Pass { step } => self.now = step.end(self.now, self.next_due()),
        }
    }

    fn words(&self) -> Option<Vec<u64>> {
        let mut canon = Canon::new(self.now);
        canon.phase(base_of(self.cpus.len()));
        self.tasks[..].canon(&(), &mut canon);
        self.cpus[..].canon(&(), &mut canon);
        self.departed[..].canon(&(), &mut canon);
        self.adapter.canon(&mut canon);
        canon.words()
    }
}

impl Kernel for ArceOs {
    fn policy(&mut self) -> &mut Held {
        self.adapter.policy_mut()
    }
}

impl Driven for ArceOs {
    fn now(&self) -> Time {
        self.now
    }

    fn pass_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    fn due(&self) -> Option<ArceOsEvent> {
        let switched = self.find(|cpu| cpu.leaves.is_some());
        let pick = || self.find(|cpu| cpu.picks).map(|cpu| ArceOsEvent::Pick { cpu });
        let halt = || self.find(|cpu| cpu.current.is_none() && !cpu.halts);
        let halt = || halt().map(|cpu| ArceOsEvent::Halt { cpu });
        let interrupted = || self.find(|cpu| cpu.is_interrupted);
        let interrupt = |cpu| ArceOsEvent::Interrupt { cpu, wakes: None };
        let switched = switched.map(|cpu| ArceOsEvent::Switched { cpu });
        switched.or_else(pick).or_else(halt).or_else(|| interrupted().map(interrupt))
    }

    fn expired(&self) -> Option<ArceOsEvent> {
        let fired = self.find(|cpu| cpu.armed <= self.now && cpu.has_interrupts_on());
        fired.map(|cpu| ArceOsEvent::Interrupt { cpu, wakes: None })
    }

    fn tick_period(&self) -> Option<Span> {
        self.adapter.policy().tick_period()
    }

    fn next_due(&self) -> Option<Time> {
        self.cpus.iter().map(|cpu| cpu.armed).min()
    }

    fn release(&self) -> Option<ArceOsEvent> {
        None
    }

    fn block(&self) -> Option<ArceOsEvent> {
        let runs = self.find(|cpu| cpu.current.is_some() && cpu.has_interrupts_on());
        runs.map(|cpu| ArceOsEvent::Block { cpu })
    }

    /// They come with the timer of each CPU.
    fn ticks(&self) -> Vec<ArceOsEvent> {
        Vec::new()
    }

    fn waiting(&self) -> Vec<TaskId> {
        self.in_state(State::Ready).map(|task| TaskId(task as u32)).collect()
    }

    /// A CPU that was about to halt when it was to pick.
    fn unasked(&self) -> Span {
        HALT_RACE
    }

    fn runnable(&self) -> usize {
        self.in_state(State::Ready).chain(self.in_state(State::Running)).count()
    }
}

impl fmt::Display for ArceOsEvent {
    /// The event in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ArceOsEvent::Wake { task, cpu } => {
                write!(f, "what runs on CPU {} wakes task {task}", cpu.0)
            }
            ArceOsEvent::Interrupt { cpu, wakes: Some(task) } => {
                write!(f, "an interrupt of CPU {} wakes task {task}", cpu.0)
            }
            ArceOsEvent::Interrupt { cpu, wakes: None } => {
                write!(f, "CPU {} is interrupted", cpu.0)
            }
            ArceOsEvent::Block { cpu } => write!(f, "what runs on CPU {} blocks", cpu.0),
            ArceOsEvent::Yield { cpu } => write!(f, "what runs on CPU {} yields", cpu.0),
            ArceOsEvent::Exit { cpu } => write!(f, "what runs on CPU {} ends", cpu.0),
            ArceOsEvent::Nice { cpu } => {
                write!(f, "what runs on CPU {} changes its nice value", cpu.0)
            }
            ArceOsEvent::Pick { cpu } => write!(f, "CPU {} picks", cpu.0),
            ArceOsEvent::Halt { cpu } => write!(f, "CPU {} halts", cpu.0),
            ArceOsEvent::Switched { cpu } => write!(f, "CPU {} has switched", cpu.0),
            ArceOsEvent::Free { task } => write!(f, "the stack of task {task} is freed"),
            ArceOsEvent::Pass { step } => step.fmt(f),
        }
    }
}
