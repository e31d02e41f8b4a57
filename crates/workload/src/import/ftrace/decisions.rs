//! What the scheduler of a recording decided, in figures: for comparing a recording with another of
//! the same load, such as one that the simulator writes.

use super::{Replay, Slot, Wake};
use anysched_core::{CpuId, Span, Time};

/// How often tasks were switched and moved, and where and when they ran after they were woken.
///
/// Where a woken task ran need not be where it was placed: a CPU that became idle may have pulled
/// it meanwhile. Shares and percentiles of no wake-ups are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions {
    /// Switches from a task that could have gone on to another one.
    pub involuntary: u64,
    /// Times a task ran on another CPU than before.
    pub migrations: u64,
    /// From wake-up to run, shortest first.
    pub latencies: Vec<Span>,
    /// From creation to the first run, shortest first; of tasks that tasks created.
    pub first_waits: Vec<Span>,
    /// Wake-ups after which the task ran on a CPU that was busy when it was woken. One whose task
    /// woke it is.
    pub to_busy: u64,
    /// Of these, those where another CPU was idle.
    pub past_idle: u64,
    /// Wake-ups after which the task ran where it ran before.
    pub to_previous: u64,
    /// Wake-ups by tasks.
    pub by_tasks: u64,
    /// Of these, those after which the task ran on the CPU of the task that woke it.
    pub to_waker: u64,
}

impl Decisions {
    /// Those that `replay` shows, of a machine with `cpus` CPUs. Only of wake-ups of tasks that
    /// `is_meant` says, by index in the model; switches and migrations are of all. A task on a CPU
    /// that was idle ran `idle_exit` later than the switch to it, if switches do not show that.
    pub fn of(
        replay: &Replay,
        cpus: u32,
        idle_exit: Span,
        is_meant: impl Fn(usize) -> bool,
    ) -> Decisions {
        let busy = Busy::of(&replay.schedule, cpus);
        let mut decisions = Decisions {
            involuntary: replay.involuntary,
            migrations: replay.migrations,
            ..Decisions::default()
        };
        for wake in replay.wakes.iter().filter(|wake| is_meant(wake.task as usize)) {
            decisions.add(wake, &busy, idle_exit);
        }
        decisions.latencies.sort_unstable();
        decisions.first_waits.sort_unstable();
        decisions
    }

    fn add(&mut self, wake: &Wake, busy: &Busy, idle_exit: Span) {
        let is_busy = |cpu: CpuId| wake.waker == Some(cpu) || busy.at(cpu, wake.at);
        let mut delay = wake.ran - wake.at;
        if !is_busy(wake.cpu) {
            delay += idle_exit;
        }
        if wake.new {
            self.first_waits.push(delay);
            return;
        }
        self.latencies.push(delay);
        if is_busy(wake.cpu) {
            self.to_busy += 1;
            self.past_idle += u64::from(busy.cpus().any(|cpu| !is_busy(cpu)));
        }
        self.to_previous += u64::from(wake.previous == Some(wake.cpu));
        if let Some(waker) = wake.waker {
            self.by_tasks += 1;
            self.to_waker += u64::from(waker == wake.cpu);
        }
    }

    /// `part` of all wake-ups.
    pub fn share(&self, part: u64) -> Option<f64> {
        let all = self.latencies.len();
        (all > 0).then(|| part as f64 / all as f64)
    }

    /// The part of wake-ups by tasks after which the task ran on the waker's CPU.
    pub fn share_to_waker(&self) -> Option<f64> {
        (self.by_tasks > 0).then(|| self.to_waker as f64 / self.by_tasks as f64)
    }
}

/// The mean of `spans` in ns.
pub fn mean(spans: &[Span]) -> Option<f64> {
    let sum: u128 = spans.iter().map(|span| u128::from(span.0)).sum();
    (!spans.is_empty()).then(|| sum as f64 / spans.len() as f64)
}

/// The least of `sorted` that `percent` of them do not exceed.
pub fn percentile(sorted: &[Span], percent: usize) -> Option<Span> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// When each CPU was busy: intervals in order.
struct Busy(Vec<Vec<(Time, Time)>>);

impl Busy {
    fn of(schedule: &[Slot], cpus: u32) -> Busy {
        let mut busy = vec![Vec::new(); cpus as usize];
        for slot in schedule {
            if let Some(cpu) = busy.get_mut(slot.cpu.index()) {
                cpu.push((slot.start, slot.end));
            }
        }
        Busy(busy)
    }

    fn cpus(&self) -> impl Iterator<Item = CpuId> {
        (0..self.0.len()).map(|cpu| CpuId(cpu as u16))
    }

    fn at(&self, cpu: CpuId, time: Time) -> bool {
        let Some(slots) = self.0.get(cpu.index()) else { return false };
        // What is woken may run, or interrupt what runs, at once.
        let next = slots.partition_point(|(start, _)| *start < time);
        next > 0 && time <= slots[next - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, Softirqs};
    use super::*;

    fn decisions(text: &str) -> Decisions {
        let recording = Recording::read(text.as_bytes()).unwrap();
        let replay = recording.replay(Softirqs::default());
        Decisions::of(&replay, recording.cpus(), Span::ZERO, |_| true)
    }

    fn switch(us: u64, cpu: u32, prev: (&str, u32, &str), next: (&str, u32)) -> String {
        let (name, pid, state) = prev;
        format!(
            "{name}-{pid} [00{cpu}] d..2. 1.{us:06}: sched_switch: prev_comm={name} \
             prev_pid={pid} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={} \
             next_prio=120\n",
            next.0, next.1
        )
    }

    fn woken(us: u64, cpu: u32, by: (&str, u32), event: &str, task: (&str, u32)) -> String {
        let flags = if by.1 == 0 { "d.h2." } else { "d..2." };
        format!(
            "{}-{} [00{cpu}] {flags} 1.{us:06}: {event}: comm={} pid={} prio=120 target_cpu=000\n",
            by.0, by.1, task.0, task.1
        )
    }

    #[test]
    fn decisions_are_counted() {
        let lines = [
            switch(0, 0, ("swapper/0", 0, "R"), ("a", 1)),
            switch(0, 1, ("swapper/1", 0, "R"), ("b", 2)),
            switch(5, 1, ("b", 2, "S"), ("swapper/1", 0)),
            // To where `a` runs and woke it, though CPU 1 is idle, where it was before.
            woken(10, 0, ("a", 1), "sched_waking", ("b", 2)),
            switch(40, 0, ("a", 1, "R+"), ("b", 2)),
            // To the idle CPU, away from where it was.
            switch(50, 1, ("swapper/1", 0, "R"), ("a", 1)),
            switch(60, 1, ("a", 1, "S"), ("swapper/1", 0)),
            woken(70, 1, ("<idle>", 0), "sched_waking", ("a", 1)),
            switch(72, 1, ("swapper/1", 0, "R"), ("a", 1)),
            woken(80, 1, ("a", 1), "sched_wakeup_new", ("c", 3)),
            switch(90, 1, ("a", 1, "S"), ("c", 3)),
        ];
        let found = decisions(&lines.concat());
        let expected = Decisions {
            involuntary: 1,
            migrations: 2,
            latencies: vec![Span::from_us(2), Span::from_us(30)],
            first_waits: vec![Span::from_us(10)],
            to_busy: 1,
            past_idle: 1,
            to_previous: 1,
            by_tasks: 1,
            to_waker: 1,
        };
        assert_eq!(found, expected);
        assert_eq!((found.share(1), found.share_to_waker()), (Some(0.5), Some(1.0)));
        assert_eq!(Decisions::default().share(0), None);
        let recording = Recording::read(lines.concat().as_bytes()).unwrap();
        let replay = recording.replay(Softirqs::default());
        let of = Decisions::of(&replay, 2, Span::from_us(3), |task| task == 0);
        assert_eq!(of.latencies, [Span::from_us(5)]);
    }

    #[test]
    fn percentiles_are_of_what_there_is() {
        let spans: Vec<Span> = (1..=20).map(Span).collect();
        assert_eq!(mean(&spans), Some(10.5));
        assert_eq!(percentile(&spans, 95), Some(Span(19)));
        assert_eq!(percentile(&spans, 50), Some(Span(10)));
        assert_eq!(percentile(&spans[..1], 95), Some(Span(1)));
        assert_eq!((mean(&[]), percentile(&[], 95)), (None, None));
    }
}
