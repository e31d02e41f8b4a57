//! Tasks that the host describes by a [script](anysched_wire::script): when each arrives and what
//! it does.

use anysched_arceos_qemu::{item, refuse};
use anysched_wire::script::{ITEM, Script, Step, Task as Scripted};
use axtask::yield_now;
use kernel_guard::NoPreempt;

use crate::crew::{Crew, Notes, Task, now};
use crate::work::Burner;
use crate::{Kernel, sleep_until_start};

/// What all tasks share.
#[derive(Clone, Copy)]
struct Setting {
    burner: Burner,
    kernel: Kernel,
    start: u64,
}

/// Does what `steps` say.
fn perform(steps: &[Step], setting: &Setting, notes: &Notes) {
    let Setting { burner, kernel, start } = setting;
    for step in steps {
        match step {
            Step::Compute(span) => {
                burner.burn(*span);
                notes.group_done();
            }
            Step::Sleep(span) => {
                notes.sleeps(*span);
                (kernel.sleep_until)(now() + span);
            }
            Step::Until(time) => {
                let time = start + time;
                notes.sleeps(time.saturating_sub(now()));
                if time > now() {
                    (kernel.sleep_until)(time);
                }
            }
            Step::Yield => yield_now(),
            Step::Repeat(times, steps) => {
                for _ in 0..*times {
                    perform(steps, setting, notes);
                }
            }
        }
    }
}

/// Runs the tasks that the host describes.
pub fn batch(kernel: &Kernel) {
    let text = item(ITEM);
    let burner = Burner::calibrated();
    let script = match Script::read(&text) {
        Ok(script) => script,
        Err(error) => refuse(error),
    };
    drop(text);
    sleep_until_start(kernel);
    let start = now();
    let mut crew = Crew::new(kernel);
    let mut tasks = script.tasks.into_iter().peekable();
    while let Some(arrival) = tasks.peek().map(|task| task.arrival) {
        if start + arrival > now() {
            (kernel.sleep_until)(start + arrival);
        }
        let came = now();
        // Tasks that arrive together are all there before one of them runs.
        let _guard = NoPreempt::new();
        while let Some(scripted) = tasks.next_if(|task| task.arrival == arrival) {
            let work = scripted.work();
            let Scripted { name, steps, .. } = scripted;
            let setting = Setting { burner, kernel: *kernel, start };
            let task = Task { name, work: Some(work) };
            crew.start_late(task, came, move |notes| perform(&steps, &setting, notes));
        }
    }
    crew.finish();
}
