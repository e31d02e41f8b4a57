//! Tasks that the host describes by a [script](anysched_wire::script): when each arrives and what
//! it does.

use alloc::sync::Arc;
use alloc::vec::Vec;

use anysched_wire::script::{Script, Step, Task as Scripted};

use crate::among::Among;
use crate::crew::{Crew, Notes};
use crate::work::Burner;
use crate::{Kernel, Task, sleep_until_start};

/// What all tasks share.
struct Setting<K: Kernel> {
    burner: Burner,
    start: u64,
    among: Among<K>,
}

/// A task that performs its steps.
struct Performer<'a, K: Kernel> {
    /// Its position in the script.
    number: usize,
    setting: &'a Setting<K>,
    notes: &'a Notes,
}

impl<K: Kernel> Performer<'_, K> {
    /// Does what `steps` say.
    fn perform(&self, steps: &[Step]) {
        let Setting { burner, start, .. } = self.setting;
        for step in steps {
            match step {
                Step::Compute(span) => {
                    burner.burn(*span);
                    self.notes.group_done();
                }
                Step::Sleep(span) => {
                    self.notes.sleeps(*span);
                    K::sleep_until(K::now() + span);
                }
                Step::Until(time) => {
                    let time = start + time;
                    self.notes.sleeps(time.saturating_sub(K::now()));
                    if time > K::now() {
                        K::sleep_until(time);
                    }
                }
                Step::Yield => K::yield_now(),
                Step::Nice(nice) => K::set_nice(i32::from(*nice)),
                Step::Cpus(cpus) => K::set_cpus(cpus),
                Step::Repeat(times, steps) => {
                    for _ in 0..*times {
                        self.perform(steps);
                    }
                }
                among => self.meet_others(among),
            }
        }
    }

    /// Does a step in which other tasks have a part.
    fn meet_others(&self, step: &Step) {
        let among = &self.setting.among;
        match step {
            Step::Wait(channel) => self.notes.sleeps(among.wait(*channel)),
            Step::Post(channel) => among.signal(*channel, true),
            Step::Notify(channel) => among.signal(*channel, false),
            Step::Broadcast(channel) => among.broadcast(*channel),
            Step::Lock(lock) => self.notes.sleeps(among.lock(*lock, self.number, false)),
            Step::Spin(lock) => self.notes.sleeps(among.lock(*lock, self.number, true)),
            Step::Unlock(lock) => among.unlock(*lock, self.number),
            Step::Meet { barrier, tasks } => self.notes.sleeps(among.meet(*barrier, *tasks)),
            // Those that concern the task alone have been done.
            _ => {}
        }
    }
}

/// Takes what says how a task is created off its steps.
fn created(scripted: Scripted) -> (Task, Vec<Step>) {
    let work = Some(scripted.work());
    let Scripted { name, mut steps, .. } = scripted;
    let mut task = Task { name, work, ..Task::default() };
    let mut taken = 0;
    for step in &steps {
        match step {
            Step::Nice(nice) => task.nice = i32::from(*nice),
            Step::Cpus(cpus) => task.cpus.clone_from(cpus),
            _ => break,
        }
        taken += 1;
    }
    steps.drain(..taken);
    (task, steps)
}

/// Runs the tasks that the host describes.
pub fn batch<K: Kernel>() {
    let text = K::script();
    let burner = Burner::calibrated::<K>();
    let script = match Script::read(&text) {
        Ok(script) => script,
        Err(error) => K::refuse(error),
    };
    drop(text);
    let among = Among::of(&script);
    sleep_until_start::<K>();
    let start = K::now();
    let setting = Arc::new(Setting::<K> { burner, start, among });
    let mut crew = Crew::<K>::new();
    let mut tasks = script.tasks.into_iter().enumerate().peekable();
    while let Some(arrival) = tasks.peek().map(|(_, task)| task.arrival) {
        if start + arrival > K::now() {
            K::sleep_until(start + arrival);
        }
        let came = K::now();
        // Tasks that arrive together are all there before one of them runs.
        let _guard = K::together();
        while let Some((number, scripted)) = tasks.next_if(|(_, task)| task.arrival == arrival) {
            let (task, steps) = created(scripted);
            let setting = setting.clone();
            crew.start_late(task, came, move |notes| {
                Performer { number, setting: &setting, notes }.perform(&steps);
            });
        }
    }
    crew.finish();
}
