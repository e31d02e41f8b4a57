//! EEVDF on many CPUs: the [model of one CPU](crate::eevdf) for each. A task takes along its lag
//! and what is left of its request.
//!
//! A CPU that is only asked to pick again when it is in the kernel anyway (PREEMPT_LAZY) does not
//! see that if a CPU behind the same cache asks, before it has a tick or is interrupted. Balancing
//! by another CPU interrupts nobody; what changes a task's parameters or takes it out does.

use anysched_core::machine::Level;
use anysched_core::{CpuId, Machine, Off, Scheduler, Span, TaskParams};

use super::rule::{At, Enter, Rule, Where};
use crate::eevdf;

/// A runqueue of [`eevdf::Eevdf`] per CPU.
pub struct Eevdf {
    rules: eevdf::Rules,
    on: Vec<eevdf::Eevdf>,
    /// Per task, whose runqueue it is, or was, in.
    home: Vec<usize>,
    /// The task that entered last is new.
    is_new: bool,
    /// Per CPU, which one is the first behind its cache.
    llc: Vec<usize>,
    /// The CPU that made that task ready, if one did, unless by an interrupt.
    waker: Option<usize>,
    /// Before, its CPU had been told to pick.
    told: bool,
    /// Per CPU, it has not seen yet that it should pick again.
    unseen: Vec<bool>,
}

impl Eevdf {
    /// On `machine`, with at most so many tasks.
    pub fn new(rules: eevdf::Rules, tasks: usize, machine: &Machine) -> Eevdf {
        let cpus = machine.cpus();
        let llc = |cpu| machine.sharing(Level::Llc, CpuId(cpu as u16))[0].index();
        let mut on: Vec<_> = (0..cpus).map(|_| eevdf::Eevdf::new(rules)).collect();
        let nobody = TaskParams::default();
        on.iter_mut().for_each(|queue| (0..tasks).for_each(|task| queue.add(task, &nobody)));
        Eevdf {
            rules,
            on,
            home: vec![0; tasks],
            is_new: false,
            llc: (0..cpus).map(llc).collect(),
            waker: None,
            told: false,
            unseen: vec![false; cpus],
        }
    }

    /// The runqueue, whose clock is set to the time of the call.
    fn queue(&mut self, at: At) -> &mut eevdf::Eevdf {
        let queue = &mut self.on[at.cpu];
        queue.now = at.now.into();
        queue
    }

    /// Whether a pick is wanted and seen.
    fn is_told(&self, cpu: usize) -> bool {
        self.on[cpu].wants_pick(!self.unseen[cpu])
    }
}

impl Rule for Eevdf {
    fn attach(&mut self, task: usize, params: &TaskParams) {
        self.home[task] = 0;
        self.on[0].add(task, params);
    }

    fn detach(&mut self, at: At, task: usize) {
        if self.on[at.cpu].all[task].delayed {
            self.unseen[at.cpu] = false;
            self.queue(at).end_delay(task);
        }
    }

    fn reweigh(&mut self, at: At, task: usize, is: Where, params: &TaskParams) {
        let cpu = self.home[task];
        self.unseen[cpu] &= is == Where::Away;
        self.queue(At { cpu, ..at }).set_params(task, params);
    }

    fn rebind(&mut self, at: At, task: usize, _: Where) {
        let cpu = self.home[task];
        self.unseen[cpu] = false;
        self.queue(At { cpu, ..at }).requeue(task);
    }

    fn enter(&mut self, at: At, task: usize, why: Enter, by: Option<usize>) {
        self.waker = by.map(|by| self.home[by]);
        self.told = self.is_told(at.cpu);
        let home = std::mem::replace(&mut self.home[task], at.cpu);
        self.is_new = why == Enter::New;
        let keeps_request = match why {
            Enter::Resumed => true,
            Enter::Moved => self.rules.place_rel_deadline,
            Enter::New | Enter::Woken => false,
        };
        let entity = self.on[home].all[task];
        let is_new = self.is_new;
        let queue = self.queue(at);
        if entity.counts {
            return queue.revive(task);
        }
        queue.all[task] = entity;
        queue.enter(task, keeps_request, is_new);
    }

    fn pick(&mut self, at: At) -> Option<(usize, Span)> {
        self.unseen[at.cpu] = false;
        let queue = self.queue(at);
        let task = queue.schedule()?;
        Some((task, queue.slice_left()))
    }

    fn put_back(&mut self, at: At, task: usize, _: Span, why: Off) {
        self.queue(at).stop(task, why);
    }

    fn leave(&mut self, at: At, task: usize, _: Span, why: Off) -> bool {
        let queue = self.queue(at);
        queue.stop(task, why);
        queue.all[task].delayed
    }

    fn remove(&mut self, at: At, task: usize, moves: bool) {
        let wanted = self.on[at.cpu].wants_resched;
        let queue = self.queue(at);
        queue.take_out(task);
        if queue.current == Some(task) {
            queue.current = None;
        }
        if moves {
            self.unseen[at.cpu] |= !wanted;
        } else {
            self.unseen[at.cpu] = false;
        }
    }

    fn tick(&mut self, at: At, _: usize, _: Span) -> bool {
        self.unseen[at.cpu] = false;
        self.queue(at).update_curr();
        false
    }

    fn preempts(&mut self, at: At, task: usize) -> bool {
        let is_new = self.is_new;
        self.queue(at).wakeup_preempt(task, is_new);
        if !self.told {
            let shares = |waker: usize| waker != at.cpu && self.llc[waker] == self.llc[at.cpu];
            self.unseen[at.cpu] = self.rules.lazy && self.waker.is_some_and(shares);
        }
        false
    }

    fn wants_pick(&self, cpu: usize) -> bool {
        self.is_told(cpu)
    }

    fn dropped(&mut self) -> Vec<usize> {
        self.on.iter_mut().flat_map(|queue| std::mem::take(&mut queue.dropped)).collect()
    }

    fn is_owed(&self, cpu: usize, task: usize) -> bool {
        !self.rules.place_lag || self.on[cpu].is_eligible(task)
    }

    fn is_buddy(&self, cpu: usize, task: usize) -> bool {
        self.on[cpu].next == Some(task)
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.on.iter().for_each(|queue| queue.tally(sink));
    }

    fn probe(&self, task: usize, sink: &mut dyn FnMut(&'static str, i64)) {
        self.on[self.home[task]].show(task, sink);
    }
}
