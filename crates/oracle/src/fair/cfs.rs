//! CFS on many CPUs: the [model of one CPU](crate::cfs) for each, and what a task takes along from
//! one to another.

use anysched_core::{Off, Scheduler, Span, TaskParams};

use super::rule::{At, Enter, Rule, Where};
use crate::cfs;

/// A runqueue of [`cfs::Cfs`] per CPU.
pub struct Cfs {
    on: Vec<cfs::Cfs>,
    tasks: Vec<Task>,
    /// The task that entered last is one that forked does not make a buddy.
    is_new: bool,
}

#[derive(Clone, Copy, Default)]
struct Task {
    /// Whose runqueue its vruntime is of.
    home: usize,
    /// min_vruntime there when it left for another one.
    left: u64,
}

impl Cfs {
    /// On that many CPUs, with at most so many tasks.
    pub fn new(options: cfs::Options, tasks: usize, cpus: usize) -> Cfs {
        let on = (0..cpus).map(|_| cfs::Cfs::new(options, tasks)).collect();
        Cfs { on, tasks: vec![Task::default(); tasks], is_new: false }
    }

    /// The runqueue, whose clock is set to the time of the call.
    fn queue(&mut self, at: At, cpu: usize) -> &mut cfs::Cfs {
        self.on[cpu].now = at.now;
        &mut self.on[cpu]
    }

    /// `task`, which is `ahead` of its min_vruntime, comes to another runqueue (enqueue_entity).
    fn come(&mut self, at: At, task: usize, ahead: u64) {
        let entity = self.on[self.tasks[task].home].entities[task];
        self.tasks[task].home = at.cpu;
        let queue = self.queue(at, at.cpu);
        queue.update_curr();
        queue.entities[task] = entity;
        queue.entities[task].vruntime = queue.min_vruntime.wrapping_add(ahead);
    }

    /// How far `task` is ahead of the min_vruntime that its runqueue has, or had when it left.
    fn ahead(&self, task: usize, had: Option<u64>) -> u64 {
        let home = &self.on[self.tasks[task].home];
        home.entities[task].vruntime.wrapping_sub(had.unwrap_or(home.min_vruntime))
    }
}

impl Rule for Cfs {
    fn attach(&mut self, task: usize, params: &TaskParams) {
        self.tasks[task] = Task::default();
        self.on[0].entities[task] = cfs::Entity::new(params.weight);
    }

    fn reweigh(&mut self, at: At, task: usize, _: Where, params: &TaskParams) {
        let home = self.tasks[task].home;
        self.queue(at, home).reweight(task, params.weight);
    }

    fn rebind(&mut self, at: At, task: usize, _: Where) {
        let home = self.tasks[task].home;
        self.queue(at, home).requeue(task);
    }

    fn enter(&mut self, at: At, task: usize, why: Enter, by: Option<usize>) {
        match why {
            Enter::New => {
                let home = by.map_or(at.cpu, |by| self.tasks[by].home);
                let entity = self.on[0].entities[task];
                self.tasks[task].home = home;
                let queue = self.queue(at, home);
                queue.entities[task] = entity;
                queue.fork(task, by.is_some());
                let ahead = self.ahead(task, None);
                self.come(at, task, ahead);
            }
            Enter::Woken | Enter::Resumed => {
                if self.tasks[task].home == at.cpu {
                    self.queue(at, at.cpu).update_curr();
                } else {
                    let ahead = self.ahead(task, None);
                    self.come(at, task, ahead);
                }
                if why == Enter::Woken {
                    self.queue(at, at.cpu).place_woken(task);
                }
            }
            Enter::Moved => {
                let ahead = self.ahead(task, Some(self.tasks[task].left));
                self.come(at, task, ahead);
            }
        }
        self.is_new = matches!(why, Enter::New | Enter::Resumed);
        self.queue(at, at.cpu).enqueue_entity(task);
    }

    fn pick(&mut self, at: At) -> Option<(usize, Span)> {
        Some((self.queue(at, at.cpu).schedule()?, Span::MAX))
    }

    fn put_back(&mut self, at: At, task: usize, _: Span, why: Off) {
        self.queue(at, at.cpu).put(task, why);
    }

    fn leave(&mut self, at: At, task: usize, _: Span, why: Off) -> bool {
        self.queue(at, at.cpu).put(task, why);
        false
    }

    fn remove(&mut self, at: At, task: usize, _: bool) {
        let queue = self.queue(at, at.cpu);
        queue.update_curr();
        let left = queue.min_vruntime;
        // Who has run until now has been put back, or has left.
        let stays = |&curr: &usize| curr != task && (queue.runs || queue.entities[curr].on_rq);
        queue.curr = queue.curr.filter(stays);
        queue.dequeue_entity(task);
        self.tasks[task].left = left;
    }

    fn tick(&mut self, at: At, task: usize, _: Span) -> bool {
        self.queue(at, at.cpu).tick_now(task);
        false
    }

    fn preempts(&mut self, at: At, task: usize) -> bool {
        let may_be_next = !self.is_new;
        self.queue(at, at.cpu).check_preempt(task, may_be_next);
        false
    }

    fn tell(&mut self, cpu: usize) {
        self.on[cpu].resched = true;
    }

    fn wants_pick(&self, cpu: usize) -> bool {
        self.on[cpu].resched
    }

    fn is_buddy(&self, cpu: usize, task: usize) -> bool {
        [self.on[cpu].next, self.on[cpu].last].contains(&Some(task))
    }

    fn is_cold(&self, task: usize) -> bool {
        self.on[self.tasks[task].home].is_idle(task)
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.on.iter().for_each(|queue| queue.tally(sink));
    }

    fn probe(&self, task: usize, sink: &mut dyn FnMut(&'static str, i64)) {
        let home = &self.on[self.tasks[task].home];
        if home.entities[task].known {
            sink("vruntime_ns", home.entities[task].vruntime as i64);
            sink("min_vruntime_ns", home.min_vruntime as i64);
        }
    }
}
