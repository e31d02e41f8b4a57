//! Tasks that the host describes by a [script](anysched_wire::script): when each arrives and what
//! it does.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::mem;

use anysched_wire::result::Message;
use anysched_wire::script::{Script, Step, Task as Scripted, burst};

use crate::among::{Among, Blocked};
use crate::crew::{Crew, Notes};
use crate::work::Burner;
use crate::{Guarded, Kernel, Task, sleep_until_start};

/// What all tasks share.
struct Setting<K: Kernel> {
    burner: Burner,
    start: u64,
    among: Among<K>,
    /// Of all tasks that have ended.
    samples: K::Guarded<Samples>,
}

/// What is measured many times, in nanoseconds.
#[derive(Debug, Default)]
struct Samples {
    /// From the time at which a task was to go on, or was let go, to its next instruction.
    latencies: Vec<u64>,
    /// From the time at which a job may begin, a task's arrival or the end of a sleep until then,
    /// to the task's next such sleep or its end.
    responses: Vec<u64>,
}

impl Samples {
    /// With room for what a task that performs `steps` measures, which the kernel has backed by
    /// memory already.
    fn of<K: Kernel>(steps: &[Step]) -> Samples {
        let room = |count: u64| {
            let mut samples = alloc::vec![u64::MAX; if K::COUNTS { count as usize } else { 0 }];
            samples.clear();
            samples
        };
        let [blocks, jobs] = counts(steps);
        Samples { latencies: room(blocks), responses: room(jobs + u64::from(jobs > 0)) }
    }
}

/// How often a task that performs `steps` may block, and how many jobs begin after its arrival.
fn counts(steps: &[Step]) -> [u64; 2] {
    let mut counts = [0; 2];
    for step in steps {
        let [blocks, jobs] = match step {
            Step::Until(_) => [1, 1],
            Step::Sleep(_) | Step::Wait(_) | Step::Lock(_) | Step::Meet { .. } => [1, 0],
            Step::Repeat(times, steps) => counts_of(*times, steps),
            _ => [0, 0],
        };
        counts = [counts[0] + blocks, counts[1] + jobs];
    }
    counts
}

fn counts_of(times: u64, steps: &[Step]) -> [u64; 2] {
    counts(steps).map(|count| count.saturating_mul(times))
}

/// A task that performs its steps.
struct Performer<'a, K: Kernel> {
    /// Its position in the script.
    number: usize,
    setting: &'a Setting<K>,
    notes: &'a Notes,
    samples: RefCell<Samples>,
    /// When the current job could begin, if the task has jobs.
    released: Cell<Option<u64>>,
}

impl<K: Kernel> Performer<'_, K> {
    /// Does what `steps` say, after which the task uses `then` nanoseconds of CPU time before it
    /// may block.
    fn perform(&self, steps: &[Step], then: u64) {
        let Setting { burner, start, .. } = self.setting;
        for (step, done) in steps.iter().zip(1..) {
            match step {
                Step::Compute(span) => {
                    burner.burn(*span);
                    self.notes.group_done();
                }
                Step::Sleep(span) => {
                    self.notes.sleeps(*span);
                    self.sleep_until(K::now() + span, burst(&steps[done..], then));
                }
                Step::Until(time) => {
                    let (now, time) = (K::now(), start + time);
                    self.notes.sleeps(time.saturating_sub(now));
                    self.job_ends(now, Some(time));
                    if time > now {
                        self.sleep_until(time, burst(&steps[done..], then));
                    }
                }
                Step::Yield => K::yield_now(),
                Step::Nice(nice) => K::set_nice(i32::from(*nice)),
                Step::Cpus(cpus) => K::set_cpus(cpus),
                Step::Repeat(times, round) => {
                    let (again, then) = (burst(round, 0), burst(&steps[done..], then));
                    for left in (0..*times).rev() {
                        self.perform(round, if left > 0 { again } else { then });
                    }
                }
                among => self.meet_others(among),
            }
        }
    }

    fn sleep_until(&self, time: u64, burst: u64) {
        K::sleep_before(time, burst);
        self.goes_on(time);
    }

    /// The task goes on, as it could from `time` on.
    fn goes_on(&self, time: u64) {
        if K::COUNTS {
            self.samples.borrow_mut().latencies.push(K::now().saturating_sub(time));
        }
    }

    /// A job ends, if the task has jobs; the next can begin at `next`.
    fn job_ends(&self, now: u64, next: Option<u64>) {
        if K::COUNTS
            && let Some(released) = self.released.replace(next)
        {
            self.samples.borrow_mut().responses.push(now.saturating_sub(released));
        }
    }

    /// The task has been blocked by others, if `blocked` says for how long and until when.
    fn was_blocked(&self, blocked: Option<Blocked>) {
        if let Some(Blocked { span, until }) = blocked {
            self.notes.sleeps(span);
            self.goes_on(until);
        }
    }

    /// Hands over what was measured, if anything was.
    fn end(&self) {
        self.job_ends(K::now(), None);
        let own = self.samples.take();
        if own.latencies.is_empty() && own.responses.is_empty() {
            return;
        }
        self.setting.samples.with(|samples| {
            samples.latencies.extend(own.latencies);
            samples.responses.extend(own.responses);
        });
    }

    /// Does a step in which other tasks have a part.
    fn meet_others(&self, step: &Step) {
        let among = &self.setting.among;
        match step {
            Step::Wait(channel) => self.was_blocked(among.wait(*channel)),
            Step::Post(channel) => among.signal(*channel, true),
            Step::Notify(channel) => among.signal(*channel, false),
            Step::Broadcast(channel) => among.broadcast(*channel),
            Step::Lock(lock) => self.was_blocked(among.lock(*lock, self.number, false)),
            Step::Spin(lock) => self.was_blocked(among.lock(*lock, self.number, true)),
            Step::Unlock(lock) => among.unlock(*lock, self.number),
            Step::Meet { barrier, tasks } => self.was_blocked(among.meet(*barrier, *tasks)),
            // Those that concern the task alone have been done.
            _ => {}
        }
    }
}

/// Takes what says how a task is created off its steps.
fn created(scripted: Scripted) -> (Task, Vec<Step>) {
    let Scripted { name, mut steps, .. } = scripted;
    let work = Some(burst(&steps, 0));
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
    let samples = Guarded::new(Samples::default());
    let setting = Arc::new(Setting::<K> { burner, start, among, samples });
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
            let samples = Samples::of::<K>(&steps);
            crew.start_late(task, came, move |notes| {
                let has_jobs = samples.responses.capacity() > 0;
                let released = Cell::new(has_jobs.then_some(came));
                let samples = RefCell::new(samples);
                let task = Performer { number, setting: &setting, notes, samples, released };
                task.perform(&steps, 0);
                task.end();
            });
        }
    }
    crew.finish();
    setting.samples.with(|samples| {
        say::<K>("wakeup_latency_ns", mem::take(&mut samples.latencies));
        say::<K>("job_response_time_ns", mem::take(&mut samples.responses));
    });
}

fn say<K: Kernel>(name: &str, samples: Vec<u64>) {
    for number in samples {
        K::say(&Message::Sample { name: name.into(), number });
    }
}
