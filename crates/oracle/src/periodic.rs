//! Plays periodic tasks on one CPU, a millisecond at a time, for tests of deadline-based policies.

use crate::drive::{Drive, ms, times};
use anysched_core::{
    Arrival, CpuId, Enqueue, Off, RunQueue, Scheduler, Smp, Span, TaskId, TaskParams,
};

/// A task that is first released at 0; all times in ms.
#[derive(Clone, Copy)]
pub struct Task {
    period: u64,
    run: u64,
    relative_deadline: u64,
}

/// The task of this period, run and relative deadline, in ms.
pub const fn task(period: u64, run: u64, relative_deadline: u64) -> Task {
    Task { period, run, relative_deadline }
}

/// A job that missed its deadline.
#[derive(Debug, PartialEq)]
pub struct Job {
    /// Its task.
    pub task: u32,
    /// Its deadline, in ms.
    pub due: u64,
}

/// The outcome.
pub struct Played {
    /// A character per ms: the number of the task that ran, or a dot.
    pub ran: String,
    /// In the order in which they were done, then those still unfinished and late at the end.
    pub missed: Vec<Job>,
}

/// Where a task is in its jobs.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// How many jobs are done.
    done: u64,
    /// How long the current job has run, in ms.
    ran: u64,
    ready: bool,
}

/// A task whose job is done goes on with the next one if that has been released, which the policy
/// is not told; otherwise it blocks.
pub fn play<Q: RunQueue>(tasks: &[Task], until: u64) -> Played {
    let mut drive = Drive::<Smp<Q>>::rule("1", &[]);
    let mut progress = vec![Progress::default(); tasks.len()];
    let mut played = Played { ran: String::new(), missed: Vec::new() };
    let mut running: Option<(usize, u64, Span)> = None;
    for now in 0..=until {
        drive.now = times(&[now])[0];
        if let Some((id, ran, _)) = running
            && progress[id].ran == tasks[id].run
        {
            let Task { period, relative_deadline, .. } = tasks[id];
            let due = progress[id].done * period + relative_deadline;
            if due < now {
                played.missed.push(Job { task: id as u32, due });
            }
            let done = progress[id].done + 1;
            let ready = done * period <= now;
            progress[id] = Progress { done, ran: 0, ready };
            if !ready {
                drive.put(0, id as u32, ms(ran), Off::Blocked);
                running = None;
            }
        }
        for (id, task) in tasks.iter().enumerate() {
            let is_due = progress[id].done * task.period <= now;
            if is_due && !std::mem::replace(&mut progress[id].ready, true) {
                release(&mut drive, id as u32, task, progress[id].done);
            }
        }
        let kicked = !drive.kicked().is_empty();
        if let Some((id, ran, slice)) = running
            && (kicked || ms(ran) == slice)
        {
            let why = if ms(ran) == slice { Off::Expired } else { Off::Preempted };
            drive.put(0, id as u32, ms(ran), why);
            running = None;
        }
        if now < until {
            running = running.or_else(|| drive.pick(0).map(|(id, slice)| (id as usize, 0, slice)));
            if let Some((id, ran, _)) = &mut running {
                *ran += 1;
                progress[*id].ran += 1;
            }
            let name = running.map_or('.', |(id, ..)| char::from(b'0' + id as u8));
            played.ran.push(name);
        }
    }
    for (id, task) in tasks.iter().enumerate() {
        let due = progress[id].done * task.period + task.relative_deadline;
        if due <= until {
            played.missed.push(Job { task: id as u32, due });
        }
    }
    played
}

/// Releases the job of this number.
fn release<Q: RunQueue>(drive: &mut Drive<Smp<Q>>, id: u32, task: &Task, number: u64) {
    let due = number * task.period + task.relative_deadline;
    let why = match number {
        0 => Enqueue::New,
        _ => Enqueue::Wakeup { prev: CpuId(0), sync: false },
    };
    let arrival = Arrival { deadline: Some(times(&[due])[0]), ..Arrival::because(why) };
    let params = TaskParams {
        period: Some(ms(task.period)),
        budget: Some(ms(task.run)),
        relative_deadline: Some(ms(task.relative_deadline)),
        ..TaskParams::default()
    };
    drive.call(|smp, cx| {
        if number == 0 {
            smp.attach(cx, TaskId(id), &params);
        }
        smp.enqueue(cx, TaskId(id), arrival);
    });
}
