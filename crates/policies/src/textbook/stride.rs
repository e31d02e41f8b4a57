//! Stride scheduling: each quantum goes to the task with the least pass, and running for a quantum
//! moves the pass of a task by its stride, the inverse of its tickets.
//!
//! Source: C. A. Waldspurger and W. E. Weihl, Stride scheduling: deterministic proportional-share
//! resource management, MIT/LCS/TM-528, 1995; the dynamic form.
//! A task has as many tickets t as its weight, and a stride of s = stride₁/t. A quantum of which it
//! uses the fraction f moves its pass by f·s. Order key: (pass, number), where a task gets a new
//! number when it becomes ready or yields. Of any two tasks that stay ready, neither is ever more
//! than a quantum ahead of its share.
//! Each runqueue has a global pass, which moves by stride₁/T per quantum of CPU time, T being the
//! tickets of the tasks that are ready or run. A task that blocks remembers how far its pass is
//! ahead of the global one (*remain*), and is as far ahead when it wakes; a new one begins a stride
//! ahead. When the weight of a task changes, what remains is scaled as its stride is.
//! Nothing preempts. A runqueue that wants a task is given the last in the order.
//!
//! Deviations:
//! - stride₁ is 2^52, not 2^20, so that weights and parts of a quantum are exact enough.
//! - The global pass advances with the CPU time of all CPUs of the runqueue, not with the clock.
//! - The paper has one CPU, and so has each runqueue unless `layout` says otherwise. Where CPUs
//!   share one, a task with more tickets than a CPU is worth cannot use them all: its pass falls
//!   behind without bound, and it keeps that claim (Chandra, Adler, Goyal and Shenoy, OSDI 2000).
//! - The quantum is 10 ms.
//! - Transfers of tickets and the hierarchical variant are left out.
//!
//! Cost: O(log n), and O(CPUs of the runqueue) when a task comes or leaves.

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::{Bound, First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, SmpParams, Steal, Whereabouts, Why};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `stride`.
    pub struct StrideParams {
        /// Time between decisions, up to 10s.
        quantum: Span = Span::from_ms(10),
    }
}

const LONGEST_QUANTUM: Span = Span::from_s(10);

/// The stride of a single ticket.
const STRIDE1: i128 = 1 << 52;

/// The unit in which passes are shown: the paper's stride₁ of 2^20.
const SHOWN: i128 = STRIDE1 >> 20;

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Stride {
    quantum: Span,
    forest: Forest<Key>,
    queues: Vec<Queue>,
    tasks: PerTask<Task>,
    numbers: u64,
}

/// Pass and number.
type Key = (i128, u64);

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    tree: Tree,
    /// Of all tasks that wait or run here.
    tickets: u64,
    global_pass: i128,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    tickets: u32,
    /// While it waits or runs.
    pass: i128,
    /// While it does neither.
    remain: i128,
    /// Its place among those of the same pass.
    number: u64,
    /// CPU time by which the global pass has moved and which has not been charged yet.
    counted: Span,
}

impl Task {
    fn stride(&self) -> i128 {
        (STRIDE1 as u64 / u64::from(self.tickets)).into()
    }
}

impl Queue {
    /// Moves the global pass by `ran` ns of CPU time.
    fn advance(&mut self, ran: i128, quantum: Span) {
        if self.tickets > 0 && ran != 0 {
            let quanta = u128::from(self.tickets) * u128::from(quantum.0);
            self.global_pass += part(STRIDE1 as u64, ran, quanta);
        }
    }
}

/// `whole · ran / of`, rounded toward 0.
#[inline]
fn part(whole: u64, ran: i128, of: u128) -> i128 {
    // A 128-bit division costs several times a 64-bit one and is hardly ever needed.
    if let (Ok(short), Ok(of)) = (u64::try_from(ran), u64::try_from(of))
        && let Some(rest) = (whole % of).checked_mul(short)
    {
        return i128::from(whole / of) * ran + i128::from(rest / of);
    }
    i128::from(whole) * ran / of as i128
}

impl Stride {
    /// Brings the global pass up to date with what runs.
    fn advance(&mut self, at: &At<'_>) {
        let mut ran = 0;
        for running in at.running {
            let Some(task) = running.task() else { continue };
            let counted = &mut self.tasks[task].counted;
            let elapsed = at.now.since(running.since());
            ran += i128::from(elapsed.saturating_sub(*counted).0);
            *counted = elapsed.max(*counted);
        }
        self.queues[at.queue].advance(ran, self.quantum);
    }

    fn join(&mut self, at: &At<'_>, id: TaskId) {
        self.advance(at);
        let (queue, task) = (&mut self.queues[at.queue], &mut self.tasks[id]);
        queue.tickets += u64::from(task.tickets);
        task.pass = queue.global_pass + task.remain;
    }

    fn part(&mut self, at: &At<'_>, id: TaskId) {
        self.advance(at);
        let (queue, task) = (&mut self.queues[at.queue], &mut self.tasks[id]);
        queue.tickets -= u64::from(task.tickets);
        task.remain = task.pass - queue.global_pass;
    }

    fn insert(&mut self, queue: usize, id: TaskId) {
        let Task { pass, number, .. } = self.tasks[id];
        self.forest.insert(&mut self.queues[queue].tree, id, (pass, number), ());
    }

    fn renumber(&mut self, id: TaskId) {
        self.numbers += 1;
        self.tasks[id].number = self.numbers;
    }

    /// Gives `id`, which neither waits nor runs, this many tickets.
    fn set_tickets(&mut self, id: TaskId, tickets: u32) {
        let task = &mut self.tasks[id];
        let before = task.stride();
        task.tickets = tickets.max(1);
        let (whole, rest) = (task.remain / before, task.remain % before);
        task.remain = whole * task.stride() + rest * task.stride() / before;
    }
}

impl Policy for Stride {
    type Params = StrideParams;
    const SOURCE: &'static str = "Waldspurger and Weihl, MIT/LCS/TM-528, 1995";
    const ORDER: &'static [First] = &[First::Least("pass")];

    /// A task of nice 5 may have two strides before it: that of the quantum that it has had, and
    /// the one with which it came. Meanwhile one of nice 0, whose weight is 3.1 times as large, has
    /// at most seven quanta.
    fn longest_wait(params: &StrideParams) -> Option<Bound> {
        Some(Bound { fixed: Span::ZERO, per_rival: Span(params.quantum.0.saturating_mul(7)) })
    }

    fn build(_: &Machine, queues: usize, params: &StrideParams) -> Result<Stride, ParamError> {
        if !(Span(1)..=LONGEST_QUANTUM).contains(&params.quantum) {
            return Err(ParamError::Invalid {
                name: "quantum",
                why: "must be above 0 and at most 10s",
            });
        }
        Ok(Stride {
            quantum: params.quantum,
            forest: Forest::default(),
            queues: alloc::vec![Queue::default(); queues],
            tasks: PerTask::new(),
            numbers: 0,
        })
    }
}

impl RunQueue for Stride {
    const LOAD_COUNTS_RUNNING: bool = true;

    fn smp() -> SmpParams {
        // Whom a CPU takes is up to the order.
        SmpParams { steal: Steal::Machine, ..SmpParams::linux() }
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.forest.attach(task);
        self.tasks.grow(task, |_| Task { tickets: 1, ..Task::default() });
        let new = Task { tickets: params.weight.max(1), ..Task::default() };
        self.tasks[task] = Task { remain: new.stride(), ..new };
    }

    fn update(&mut self, at: &At<'_>, is: Whereabouts, id: TaskId, params: &TaskParams) {
        if is == Whereabouts::Queued {
            self.forest.remove(&mut self.queues[at.queue].tree, id);
        }
        if is != Whereabouts::Away {
            self.part(at, id);
        }
        self.set_tickets(id, params.weight);
        if is != Whereabouts::Away {
            self.join(at, id);
        }
        if is == Whereabouts::Queued {
            self.insert(at.queue, id);
        }
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        if matches!(entry.why, Why::New | Why::Woken | Why::Put(Off::Yielded)) {
            self.renumber(id);
        }
        if !matches!(entry.why, Why::Put(_)) {
            self.join(at, id);
        }
        self.insert(at.queue, id);
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.pop_first_fit(&mut self.queues[at.queue].tree, fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.forest.remove(&mut self.queues[at.queue].tree, task);
        self.part(at, task);
    }

    #[inline]
    fn charge(&mut self, at: &At<'_>, id: TaskId, ran: Span) {
        let task = &mut self.tasks[id];
        let counted = core::mem::take(&mut task.counted);
        task.pass += part(task.stride() as u64, ran.0.into(), self.quantum.0.into());
        let uncounted = i128::from(ran.0) - i128::from(counted.0);
        self.queues[at.queue].advance(uncounted, self.quantum);
    }

    fn leave(&mut self, at: &At<'_>, task: TaskId, _: Off) -> bool {
        self.part(at, task);
        false
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        self.quantum
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].tree.len()
    }

    fn load(&self, queue: usize) -> u64 {
        self.queues[queue].tickets
    }

    fn weight(&self, task: TaskId) -> u64 {
        self.tasks[task].tickets.into()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.iter_back(&self.queues[at.queue].tree).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        let shown = |pass: i128| i64::try_from(pass / SHOWN).unwrap_or(i64::MAX);
        sink("stride", shown(task.stride()));
        sink("pass", shown(task.pass));
        sink("remain", shown(task.remain));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Stride { quantum: fixed, forest: fixed, queues: of(forest), tasks, numbers: fixed }
        );
    }
}

canonical!(Queue, forest: Forest<Key> { tree: of(forest), tickets, global_pass: shift_wide });
canonical!(Task { tickets, pass: shift_wide, remain, number: order, counted });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Scheduler;
    use anysched_core::Smp;
    use anysched_oracle::drive::{Drive, ms};

    fn of(weight: u32) -> TaskParams {
        TaskParams { weight, ..TaskParams::default() }
    }

    fn with(weights: &[u32]) -> Drive<Smp<Stride>> {
        let mut drive = Drive::rule("1", &[]);
        for (task, &weight) in (0..).zip(weights) {
            drive.create_with(task, None, &of(weight));
        }
        drive
    }

    /// The pass of each task, to the thousandth of a stride of one ticket.
    fn passes<const N: usize>(drive: &Drive<Smp<Stride>>) -> [i64; N] {
        core::array::from_fn(|task| {
            let pass = drive.policy.rule().tasks[TaskId(task as u32)].pass;
            ((pass * 1000 + STRIDE1 / 2) / STRIDE1) as i64
        })
    }

    /// The paper's example: tickets 3, 2 and 1, and strides 2, 3 and 6 with a stride₁ of 6.
    #[test]
    fn the_table_of_the_paper() {
        let mut drive = with(&[3, 2, 1]);
        let mut table = Vec::new();
        for _ in 0..7 {
            let passes: [i64; 3] = passes(&drive).map(|pass| (pass * 6 + 500) / 1000);
            table.push((passes, drive.run(ms(10), Off::Expired)));
        }
        assert_eq!(
            table,
            [
                ([2, 3, 6], 0),
                ([4, 3, 6], 1),
                ([4, 6, 6], 0),
                ([6, 6, 6], 0),
                ([8, 6, 6], 1),
                ([8, 9, 6], 2),
                ([8, 9, 12], 0)
            ]
        );
        assert_eq!(drive.probe(2, "stride"), 1 << 20);
    }

    /// After any number of quanta, what one of two tasks has had differs from its share of their
    /// total by at most one quantum.
    #[test]
    fn no_two_tasks_are_more_than_a_quantum_off_their_shares() {
        let weights = [7, 3, 1024, 1, 15, 88_761, 335, 3, 200];
        let mut drive = with(&weights);
        let mut had = [0u64; 9];
        for _ in 0..50_000 {
            had[drive.run(ms(10), Off::Expired) as usize] += 1;
            for (a, b) in (0..9).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let (of_a, of_b) = (u64::from(weights[a]), u64::from(weights[b]));
                let off = (had[a] * of_b).abs_diff(had[b] * of_a);
                assert!(off <= of_a + of_b, "{a} {b}: {had:?}");
            }
        }
        assert!(had.iter().filter(|&&quanta| quanta > 100).count() >= 3, "{had:?}");
    }

    /// One task with 100 tickets and 100 with one: it gets 100 quanta in a row although 50 are its
    /// share, which the paper's hierarchical variant is meant to cure.
    #[test]
    fn many_tasks_let_one_go_far_ahead_of_the_average() {
        let mut weights = [1; 101];
        weights[0] = 100;
        let mut drive = with(&weights);
        let run: Vec<u32> = (0..200).map(|_| drive.run(ms(10), Off::Expired)).collect();
        assert!(run[..100].iter().all(|&task| task == 0));
        assert!(run[100..].iter().copied().eq(1..101));
    }

    /// A fifth of a quantum moves the pass by a fifth of the stride.
    #[test]
    fn a_part_of_a_quantum_is_a_part_of_a_stride() {
        let mut drive = with(&[1, 1]);
        let mut had = [0, 0];
        for _ in 0..600 {
            let (task, _) = drive.pick(0).unwrap();
            drive.kicked();
            let (ran, why) = if task == 0 { (10, Off::Expired) } else { (2, Off::Yielded) };
            assert!(!drive.tick(task, ms(1)));
            drive.put(0, task, ms(ran - 1), why);
            had[task as usize] += ran;
            assert!(u64::abs_diff(had[0], had[1]) <= 10, "{had:?}");
        }
        assert_eq!(had, [1000, 1000]);
    }

    /// Passes in strides of one ticket: 0 runs to 2 and 1 for half a quantum to 1.5, when the
    /// global pass is at 0.75. 0 goes on alone for 10 quanta, which moves both by 10; 1 comes back
    /// to 0.75 ahead of the global pass, and sleeping has earned it nothing.
    #[test]
    fn what_remains_is_kept_over_a_sleep() {
        let mut drive = with(&[1, 1]);
        assert_eq!(drive.run(ms(10), Off::Expired), 0);
        assert_eq!(drive.run(ms(5), Off::Blocked), 1);
        assert_eq!(drive.probe(1, "remain"), 3 << 18);
        (0..10).for_each(|_| assert_eq!(drive.run(ms(10), Off::Expired), 0));
        drive.wake(1);
        assert_eq!(passes(&drive), [12_000, 11_500]);
        let run: [u32; 4] = core::array::from_fn(|_| drive.run(ms(10), Off::Expired));
        assert_eq!(run, [1, 0, 1, 0]);
    }

    /// 6 ms of the quantum are over, of which the policy has been told 2.
    #[test]
    fn who_comes_within_a_quantum_begins_where_the_others_are() {
        let mut drive = with(&[1]);
        assert_eq!(drive.pick(0), Some((0, ms(10))));
        drive.kicked();
        assert!(!drive.tick(0, ms(2)));
        drive.now += ms(4);
        drive.create_with(1, None, &of(1));
        assert_eq!(drive.kicked(), [], "nothing preempts");
        assert_eq!(passes(&drive), [1_200, 1_600]);
        drive.now += ms(4);
        drive.put(0, 0, ms(8), Off::Expired);
        // 4 ms of the quantum, with two tickets.
        assert_eq!(passes(&drive), [2_000, 1_600]);
        let rule = drive.policy.rule();
        assert_eq!(rule.queues[0].global_pass, STRIDE1 * 6 / 10 + STRIDE1 * 4 / 20);
    }

    #[test]
    fn the_global_pass_goes_by_the_time_that_the_host_measured() {
        let mut drive = with(&[1]);
        drive.pick(0);
        drive.now += ms(8);
        drive.create_with(1, None, &of(1));
        // Of 8 ms, 3 went to something else.
        drive.put(0, 0, ms(5), Off::Preempted);
        let rule = drive.policy.rule();
        assert_eq!(rule.queues[0].global_pass, STRIDE1 * 8 / 10 - STRIDE1 * 3 / 20);
    }

    /// Four times the tickets: a quarter of what remains, and of the stride.
    #[test]
    fn another_weight_scales_what_remains() {
        let mut drive = with(&[1, 1, 1]);
        drive.call(|smp, cx| smp.update(cx, TaskId(1), &of(4)));
        assert_eq!(passes(&drive), [1_000, 250, 1_000]);
        assert_eq!(drive.policy.rule().queues[0].tickets, 6);
        let run: [u32; 7] = core::array::from_fn(|_| drive.run(ms(10), Off::Expired));
        assert_eq!(run, [1, 1, 1, 0, 1, 2, 1]);
        // While it runs and while it sleeps, too.
        drive.pick(0);
        drive.call(|smp, cx| smp.update(cx, TaskId(1), &of(8)));
        drive.put(0, 1, Span::ZERO, Off::Blocked);
        assert_eq!(drive.policy.rule().queues[0].tickets, 2);
        drive.call(|smp, cx| smp.update(cx, TaskId(1), &of(2)));
        drive.wake(1);
        assert_eq!(drive.policy.rule().queues[0].tickets, 4);
    }

    #[test]
    fn a_yielder_goes_behind_those_of_the_same_pass() {
        let mut drive = with(&[1, 1, 1]);
        assert_eq!(drive.run(Span::ZERO, Off::NotRun), 0);
        assert_eq!(drive.run(Span::ZERO, Off::Yielded), 0);
        drive.take_out_and_resume(1);
        let run: [u32; 3] = core::array::from_fn(|_| drive.run(ms(10), Off::Expired));
        assert_eq!(run, [1, 2, 0]);
    }

    /// A task that moves is as far ahead of the global pass there as it was here.
    #[test]
    fn another_runqueue_is_given_the_last_in_the_order() {
        let mut drive =
            Drive::<Smp<Stride>>::rule("2", &[("place", "creator"), ("balance", "never")]);
        for (task, weight) in [(0, 2), (1, 1), (2, 4)] {
            drive.create_with(task, None, &of(weight));
        }
        drive.kicked();
        assert_eq!(drive.run(ms(10), Off::Expired), 2);
        assert_eq!(drive.pick(1).map(|pick| pick.0), Some(1));
        let queues = &drive.policy.rule().queues;
        assert_eq!((queues[0].tickets, queues[1].tickets), (6, 1));
        assert_eq!(queues[0].global_pass, STRIDE1 / 7);
        let pass = drive.policy.rule().tasks[TaskId(1)].pass;
        assert_eq!((pass, queues[1].global_pass), (STRIDE1 - STRIDE1 / 7, 0));
    }
}
