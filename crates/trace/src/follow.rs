//! Follows a schedule by the calls of its policy alone, so that it is told alike of a simulated run
//! and of a log from a kernel.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_core::call::Call;
use anysched_core::{CpuId, CpuSet, Enqueue, Off, Pick, Span, TaskId, Time};

use crate::TaskInfo;

/// What tasks and CPUs do. Its memory depends on how many tasks there are at a time.
#[derive(Debug, Default)]
pub struct Follow {
    /// By number.
    tasks: Vec<Option<Task>>,
    cpus: Vec<OnCpu>,
    attached: u64,
    /// Who is attached next, if it was described: number, serial and name.
    described: Option<(TaskId, u64, String)>,
}

/// A task, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// How many tasks came before it.
    pub serial: u64,
    /// Its name, or `task 7` if it has none.
    pub name: String,
}

impl Who {
    /// Its name, and its serial if the name does not say it.
    pub fn in_full(&self) -> String {
        let serial = alloc::format!("task {}", self.serial);
        if self.name == serial { serial } else { alloc::format!("{} ({serial})", self.name) }
    }
}

/// A task that is attached.
#[derive(Clone, Debug)]
pub struct Task {
    /// Who it is.
    pub who: Who,
    /// What it does.
    pub doing: Doing,
    /// Where it may run.
    pub affinity: CpuSet,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It is blocked, has ended, or is not ready for the first time yet.
    Away {
        /// Since when.
        since: Time,
    },
    /// It waits for a CPU.
    Waits(Waiting),
    /// The host has taken it off the queue for a moment, in which it goes on waiting.
    Aside(Waiting),
    /// It runs.
    Runs {
        /// Where.
        cpu: CpuId,
        /// Since when.
        since: Time,
        /// The wait before.
        waited: Waiting,
    },
}

/// A wait that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When it became ready.
    pub since: Time,
    /// Why.
    pub why: Became,
}

/// Why a task became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It is new.
    New,
    /// It was woken.
    Woken,
    /// It left a CPU and goes on.
    Left(Off),
}

impl Became {
    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            Became::New => "new",
            Became::Woken => "woken",
            Became::Left(why) => left(why),
        }
    }
}

/// Why a task left its CPU, in a few words.
pub fn left(why: Off) -> &'static str {
    match why {
        Off::Expired => "its slice ended",
        Off::Preempted => "preempted",
        Off::Yielded => "yielded",
        Off::NotRun => "not run",
        Off::Blocked => "blocked",
        Off::Exited => "ended",
    }
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnCpu {
    /// Which task it runs.
    pub runs: Option<TaskId>,
    /// Since when.
    pub since: Time,
}

/// What a call changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// Nothing that is followed.
    Nothing,
    /// A task is known from now on.
    Attached(TaskId),
    /// A task begins to wait, or goes on waiting.
    Ready(TaskId),
    /// A CPU has picked this task, which had waited.
    Picked(CpuId, TaskId, Waiting, Span),
    /// A CPU has found nothing to run.
    Idle(CpuId),
    /// A task has left a CPU, on which it was since then.
    Left(CpuId, TaskId, Time, Off),
    /// A ready task is not ready any more.
    Withdrawn(TaskId),
    /// A task is gone.
    Gone(Task),
}

impl Follow {
    /// On a machine with so many CPUs, all idle.
    pub fn of(cpus: usize) -> Follow {
        let idle = OnCpu { runs: None, since: Time::ZERO };
        Follow { cpus: alloc::vec![idle; cpus], ..Follow::default() }
    }

    /// The next task to be attached, or one that has been attached without a name, is this one.
    pub fn describe(&mut self, info: &TaskInfo<'_>) {
        let (serial, name) = (info.serial, info.label().to_string());
        match self.tasks.get_mut(info.task.index()).and_then(Option::as_mut) {
            Some(task) => task.who = Who { serial, name },
            None => self.described = Some((info.task, serial, name)),
        }
    }

    /// The task with this number.
    pub fn task(&self, task: TaskId) -> Option<&Task> {
        self.tasks.get(task.index()).and_then(Option::as_ref)
    }

    /// Who has this number.
    pub fn who(&self, task: TaskId) -> Who {
        let unknown = || Who { serial: u64::MAX, name: "unknown".to_owned() };
        self.task(task).map_or_else(unknown, |task| task.who.clone())
    }

    /// All tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        (0..).map(TaskId).zip(&self.tasks).filter_map(|(id, task)| Some((id, task.as_ref()?)))
    }

    /// All CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = (CpuId, OnCpu)> + '_ {
        (0..).map(CpuId).zip(self.cpus.iter().copied())
    }

    /// What a CPU does.
    pub fn on(&self, cpu: CpuId) -> OnCpu {
        self.cpus.get(cpu.index()).copied().unwrap_or(OnCpu { runs: None, since: Time::ZERO })
    }

    /// Takes a call that has been answered.
    pub fn take(&mut self, now: Time, call: &Call<'_>, pick: Option<Pick>) -> Change {
        match *call {
            Call::Attach { task, ref params } => self.attach(now, task, &params.affinity),
            Call::Detach { task } => {
                let gone = self.tasks.get_mut(task.index()).and_then(Option::take);
                gone.map_or(Change::Nothing, Change::Gone)
            }
            Call::Update { task, ref params } => {
                if let Some(known) = self.known(task) {
                    known.affinity = params.affinity.clone();
                }
                Change::Nothing
            }
            Call::Enqueue { task, arrival } => {
                let why = match arrival.why {
                    Enqueue::New => Became::New,
                    Enqueue::Wakeup { .. } => Became::Woken,
                    Enqueue::Resumed { .. } => Became::Left(Off::Yielded),
                };
                let Some(known) = self.known(task) else { return Change::Nothing };
                known.doing = match known.doing {
                    Doing::Aside(waiting) if matches!(arrival.why, Enqueue::Resumed { .. }) => {
                        Doing::Waits(waiting)
                    }
                    _ => Doing::Waits(Waiting { since: now, why }),
                };
                Change::Ready(task)
            }
            Call::Dequeue { task } => {
                let Some(known) = self.known(task) else { return Change::Nothing };
                known.doing = match known.doing {
                    Doing::Waits(waiting) => Doing::Aside(waiting),
                    _ => Doing::Away { since: now },
                };
                Change::Withdrawn(task)
            }
            Call::PutPrev { cpu, task, why, .. } => self.put(now, cpu, task, why),
            Call::PickNext { cpu } => self.pick(now, cpu, pick),
            _ => Change::Nothing,
        }
    }

    fn known(&mut self, task: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(task.index()).and_then(Option::as_mut)
    }

    fn attach(&mut self, now: Time, task: TaskId, affinity: &CpuSet) -> Change {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, None);
        }
        let who = match self.described.take() {
            Some((described, serial, name)) if described == task => Who { serial, name },
            _ => Who { serial: self.attached, name: alloc::format!("task {}", self.attached) },
        };
        self.attached += 1;
        let (doing, affinity) = (Doing::Away { since: now }, affinity.clone());
        self.tasks[task.index()] = Some(Task { who, doing, affinity });
        Change::Attached(task)
    }

    fn put(&mut self, now: Time, cpu: CpuId, task: TaskId, why: Off) -> Change {
        let on = self.on(cpu);
        self.set(cpu, OnCpu { runs: None, since: now });
        let Some(known) = self.known(task) else { return Change::Nothing };
        known.doing = match (why, known.doing) {
            // The pick is undone: the wait goes on.
            (Off::NotRun, Doing::Runs { waited, .. }) => Doing::Waits(waited),
            _ if why.runnable() => Doing::Waits(Waiting { since: now, why: Became::Left(why) }),
            _ => Doing::Away { since: now },
        };
        Change::Left(cpu, task, on.since, why)
    }

    fn pick(&mut self, now: Time, cpu: CpuId, pick: Option<Pick>) -> Change {
        let before = self.on(cpu);
        let Some(Pick { task, slice }) = pick else {
            // It stays idle, or begins to be.
            self.set(cpu, OnCpu { runs: None, since: before.since });
            return Change::Idle(cpu);
        };
        self.set(cpu, OnCpu { runs: Some(task), since: now });
        let Some(known) = self.known(task) else { return Change::Nothing };
        let waited = match known.doing {
            Doing::Waits(waiting) | Doing::Aside(waiting) => waiting,
            _ => Waiting { since: now, why: Became::New },
        };
        known.doing = Doing::Runs { cpu, since: now, waited };
        Change::Picked(cpu, task, waited, slice)
    }

    fn set(&mut self, cpu: CpuId, on: OnCpu) {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, OnCpu { runs: None, since: Time::ZERO });
        }
        self.cpus[cpu.index()] = on;
    }
}
