//! What a load needs from a host, beyond CPU time, sleeps, releases at given times and yields,
//! which every host has.

use crate::model::Model;
use crate::{NewTask, Op};
use anysched_core::Time;

macro_rules! needs {
    ($( $(#[$doc:meta])+ $need:ident = $words:literal; )+) => {
        /// What a load needs, or what a host has.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Needs { $( $(#[$doc])+ pub $need: bool, )+ }

        impl Needs {
            /// Nothing but what every host has.
            pub const NOTHING: Needs = Needs { $( $need: false, )+ };

            /// Everything.
            pub const ALL: Needs = Needs { $( $need: true, )+ };

            /// What either of two needs.
            pub fn or(self, other: Needs) -> Needs {
                Needs { $( $need: self.$need | other.$need, )+ }
            }

            /// What a host lacks of it, in words.
            pub fn lacking(self, host: Needs) -> impl Iterator<Item = &'static str> {
                let all = [$( (self.$need && !host.$need, $words), )+];
                all.into_iter().filter(|(lacks, _)| *lacks).map(|(_, words)| words)
            }
        }
    };
}

needs! {
    /// Tasks wake each other: [`Op::Wait`], [`Op::Signal`], [`Op::Write`], [`Op::Notify`],
    /// [`Op::Broadcast`].
    wakeups_between_tasks = "tasks that wake each other";
    /// Tasks exclude each other: [`Op::Lock`], [`Op::Spin`], [`Op::Unlock`].
    locks = "locks";
    /// Tasks wait for each other at a barrier: [`Op::Meet`].
    barriers = "barriers";
    /// Tasks create others: [`Op::Spawn`].
    spawning = "tasks that create others";
    /// What tasks do next depends on what others have done: no list of steps says it.
    reactions = "tasks that go by what others have done";
    /// Tasks have nice values other than 0: [`NewTask::nice`], [`Op::SetNice`].
    niceness = "nice values";
    /// Tasks are bound to CPUs: [`NewTask::affinity`], [`Op::SetAffinity`].
    affinity = "tasks bound to CPUs";
    /// Something counts how much tasks use the memory: [`NewTask::intensity`].
    intensity = "tasks that use the memory more or less";
    /// Timers and devices wake tasks: [`Outside::Signal`](crate::Outside::Signal).
    signals_from_outside = "signals from timers and devices";
    /// Messages come from outside: [`Outside::Message`](crate::Outside::Message), [`Op::Reply`].
    messages_from_outside = "messages from outside";
    /// Messages go to other virtual machines and come back: [`Op::Send`].
    messages_between_vms = "messages between virtual machines";
    /// Tasks or their jobs have deadlines, for deadline-based policies. On a host without them
    /// tasks do the same, but nothing shows whether they are on time.
    deadlines = "deadlines";
}

impl Needs {
    /// Nothing, but perhaps deadlines.
    pub fn deadlines(deadlines: bool) -> Needs {
        Needs { deadlines, ..Needs::NOTHING }
    }

    /// What a task needs to do `op`.
    pub fn of_op(op: &Op) -> Needs {
        let mut needs = Needs::NOTHING;
        match op {
            Op::Wait(_) | Op::Signal(_) | Op::Write(_) | Op::Notify(_) | Op::Broadcast(_) => {
                needs.wakeups_between_tasks = true;
            }
            Op::Lock(_) | Op::Spin(_) | Op::Unlock(_) => needs.locks = true,
            Op::Meet(_) => needs.barriers = true,
            Op::Spawn(_) => needs.spawning = true,
            Op::SetNice(_) => needs.niceness = true,
            Op::SetAffinity(_) => needs.affinity = true,
            Op::Send(_) => needs.messages_between_vms = true,
            Op::Reply(_) => needs.messages_from_outside = true,
            Op::Release { deadline, .. } => {
                needs.deadlines = deadline.is_some_and(|at| at != Time::NEVER);
            }
            Op::Run(_) | Op::Sleep(_) | Op::Yield | Op::Measure(_) | Op::Exit => {}
        }
        needs
    }

    /// What it needs to create a task.
    pub fn of_task(task: &NewTask) -> Needs {
        let deadline = task.deadline.is_some_and(|at| at != Time::NEVER);
        Needs {
            deadlines: deadline || task.relative_deadline.is_some(),
            niceness: task.nice != 0,
            affinity: !task.affinity.is_all(),
            intensity: task.intensity != 0,
            ..Needs::NOTHING
        }
    }

    /// What the tasks and signals of a model need.
    pub fn of_model(model: &Model) -> Needs {
        let outside = Needs { signals_from_outside: !model.signals.is_empty(), ..Needs::NOTHING };
        let tasks = model.tasks.iter().map(|task| {
            let ops = task.script.ops.iter().map(Needs::of_op);
            ops.fold(Needs::of_task(&task.new), Needs::or)
        });
        tasks.fold(outside, Needs::or)
    }
}
