//! What one CPU is doing.

use anysched_core::{CpuId, Off, Span, TaskId, Time};

use super::agenda::{Class, Moment};

#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) id: CpuId,
    pub(super) online: bool,
    /// The running task.
    pub(super) task: Option<TaskId>,
    /// The task whose state its caches and registers still hold.
    pub(super) last: Option<TaskId>,
    /// The task taken off at this instant, until the next pick.
    pub(super) leaving: Option<(TaskId, Off)>,
    /// The trace has already been told that it left.
    pub(super) leaving_told: bool,
    /// Since when the running task's CPU time has not been counted; in the future while the CPU is
    /// still switching to it.
    pub(super) from: Time,
    /// CPU time counted but not yet reported to the policy.
    pub(super) untold: Span,
    /// CPU time until the slice ends.
    pub(super) slice: Span,
    /// Speed in 1/1024.
    pub(super) speed: u64,
    /// How much its task uses the memory, in percent; 0 on machines without contention.
    pub(super) intensity: u8,
    /// Work that the running task has done beyond whole ns, in 1/1024 ns, so that the work is the
    /// same however often its time is counted.
    pub(super) rest: u64,
    pub(super) next_tick: Time,
    /// When the CPU has done what it does whichever task it runs: interrupts, and what wakes.
    pub(super) free_at: Time,
    pub(super) busy: Span,
    pub(super) overhead: Span,
    pub(super) idle: Span,
    /// When it last became idle; `NEVER` while it is busy.
    pub(super) idle_since: Time,
}

impl Cpu {
    pub(super) fn new(id: CpuId, capacity: u16) -> Cpu {
        Cpu {
            id,
            online: true,
            task: None,
            last: None,
            leaving: None,
            leaving_told: false,
            from: Time::ZERO,
            untold: Span::ZERO,
            slice: Span::MAX,
            speed: u64::from(capacity),
            intensity: 0,
            rest: 0,
            next_tick: Time::NEVER,
            free_at: Time::ZERO,
            busy: Span::ZERO,
            overhead: Span::ZERO,
            idle: Span::ZERO,
            idle_since: Time::ZERO,
        }
    }

    /// Counts the CPU time up to `now`; returns it with the work done in it.
    #[inline]
    pub(super) fn count(&mut self, now: Time, left: Span) -> (Span, Span) {
        let ran = now.since(self.from);
        if ran == Span::ZERO {
            return (Span::ZERO, Span::ZERO);
        }
        self.from = now;
        self.untold += ran;
        self.busy += ran;
        if self.slice != Span::MAX {
            self.slice = self.slice.saturating_sub(ran);
        }
        let work = if self.speed == 1024 { ran } else { self.slow_work(ran) };
        (ran, work.min(left))
    }

    fn slow_work(&mut self, ran: Span) -> Span {
        let done = u128::from(ran.0) * u128::from(self.speed) + u128::from(self.rest);
        self.rest = (done % 1024) as u64;
        Span((done / 1024) as u64)
    }

    /// CPU time until `left` is done.
    fn slow_time(&self, left: Span) -> Span {
        let open = (u128::from(left.0) * 1024).saturating_sub(u128::from(self.rest));
        // Rounded up: the work must be done when the event is due.
        let time = open.div_ceil(u128::from(self.speed));
        Span(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Delays the running task by `cost`; its time must have been counted up to now.
    #[inline]
    pub(super) fn delay(&mut self, cost: Span) {
        self.from += cost;
        self.overhead += cost;
    }

    /// Reports `cost` to the policy as if the task had run for it.
    #[inline]
    pub(super) fn charge(&mut self, cost: Span) {
        self.untold += cost;
        if self.slice != Span::MAX {
            // Leaves part of the slice, so that tasks make progress.
            self.slice = self.slice.saturating_sub(cost).max(Span(1));
        }
    }

    /// The next event on this CPU, given the work left in the current burst.
    #[inline]
    pub(super) fn next(&self, left: Span) -> Moment {
        let time = if self.speed == 1024 { left } else { self.slow_time(left) };
        let mut next = Moment::new(self.from + time, Class::BurstEnd);
        if self.slice < time {
            next = Moment::new(self.from + self.slice, Class::SliceEnd);
        }
        if self.next_tick != Time::NEVER {
            next = next.min(Moment::new(self.next_tick, Class::Tick));
        }
        next
    }
}
