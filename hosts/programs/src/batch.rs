//! Tasks that the host describes by a [script](anysched_wire::script): when each arrives and what
//! it does.

use anysched_wire::script::{Script, Step, Task as Scripted};

use crate::crew::{Crew, Notes};
use crate::work::Burner;
use crate::{Kernel, Task, sleep_until_start};

/// What all tasks share.
#[derive(Clone, Copy)]
struct Setting {
    burner: Burner,
    start: u64,
}

/// Does what `steps` say.
fn perform<K: Kernel>(steps: &[Step], setting: &Setting, notes: &Notes) {
    let Setting { burner, start } = setting;
    for step in steps {
        match step {
            Step::Compute(span) => {
                burner.burn(*span);
                notes.group_done();
            }
            Step::Sleep(span) => {
                notes.sleeps(*span);
                K::sleep_until(K::now() + span);
            }
            Step::Until(time) => {
                let time = start + time;
                notes.sleeps(time.saturating_sub(K::now()));
                if time > K::now() {
                    K::sleep_until(time);
                }
            }
            Step::Yield => K::yield_now(),
            Step::Repeat(times, steps) => {
                for _ in 0..*times {
                    perform::<K>(steps, setting, notes);
                }
            }
        }
    }
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
    sleep_until_start::<K>();
    let start = K::now();
    let mut crew = Crew::<K>::new();
    let mut tasks = script.tasks.into_iter().peekable();
    while let Some(arrival) = tasks.peek().map(|task| task.arrival) {
        if start + arrival > K::now() {
            K::sleep_until(start + arrival);
        }
        let came = K::now();
        // Tasks that arrive together are all there before one of them runs.
        let _guard = K::together();
        while let Some(scripted) = tasks.next_if(|task| task.arrival == arrival) {
            let work = scripted.work();
            let Scripted { name, steps, .. } = scripted;
            let setting = Setting { burner, start };
            let task = Task { name, work: Some(work), ..Task::default() };
            crew.start_late(task, came, move |notes| perform::<K>(&steps, &setting, notes));
        }
    }
    crew.finish();
}
