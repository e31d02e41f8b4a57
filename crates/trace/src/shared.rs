//! One listener for the events of a run and for the calls of its policy.

use anysched_core::call::Call;
use anysched_core::{CpuMask, Observer, Pick, Scheduler, TaskId, Time};
use core::cell::RefCell;

use crate::{Event, Sink, TaskInfo};

/// Passes what it is told on to a listener that others have, too.
#[derive(Debug)]
pub struct Shared<'a, T>(pub &'a RefCell<T>);

impl<T: Observer> Observer for Shared<'_, T> {
    fn before(&mut self, now: Time, call: &Call<'_>, policy: &dyn Scheduler) {
        self.0.borrow_mut().before(now, call, policy);
    }
    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        kicks: &CpuMask,
        policy: &dyn Scheduler,
    ) {
        self.0.borrow_mut().after(now, call, pick, kicks, policy);
    }
}

/// Only of the host's own tasks.
impl<T: Sink> Sink for Shared<'_, T> {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.0.borrow_mut().task(info);
    }
    fn event(&mut self, event: &Event) {
        self.0.borrow_mut().event(event);
    }
    fn job(&mut self, task: TaskId, release: Time, deadline: Option<Time>) {
        self.0.borrow_mut().job(task, release, deadline);
    }
    fn job_done(&mut self, task: TaskId, time: Time) {
        self.0.borrow_mut().job_done(task, time);
    }
    fn end(&mut self, time: Time) {
        self.0.borrow_mut().end(time);
    }
}
