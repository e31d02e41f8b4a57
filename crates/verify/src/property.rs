//! What has to hold in every state.

use std::fmt;

use anysched_core::random::SplitMix64;
use anysched_core::registry::{Bound, Nature};
use anysched_core::{CpuId, Machine, Scheduler, Span, TaskId, Time};

use crate::hash;
use crate::host::Host;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// The contract of policies, as [`Checked`](anysched_core::Checked) sees it, and no panic.
    Contract,
    /// If every task that runs blocks, and nobody else comes, no task stays ready for ever.
    Drain,
    /// If all tasks go on computing, each runs in the end, and within what the policy declares.
    Wait,
    /// A yield in one call has the same effect as its two halves.
    Yield,
    /// Of two states that the policy says to be the same, the same follows; a sample of them is
    /// tried. Without it, what holds in the states that were searched need not hold in others.
    Merge,
}

impl Property {
    /// All of them.
    pub const ALL: [Property; 5] =
        [Property::Contract, Property::Drain, Property::Wait, Property::Yield, Property::Merge];

    /// Its name on command lines and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Property::Contract => "contract",
            Property::Drain => "drain",
            Property::Wait => "wait",
            Property::Yield => "yield",
            Property::Merge => "merge",
        }
    }

    /// The property of this name.
    pub fn named(name: &str) -> Option<Property> {
        Property::ALL.into_iter().find(|property| property.name() == name)
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a policy is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demands {
    /// No CPU idles beside a ready task.
    pub work_conserving: bool,
    /// A ready task may wait for as long as others compute.
    pub starves: bool,
    /// How long a ready task waits at most while others compute, if that is declared.
    pub longest_wait: Option<Bound>,
}

impl From<Nature> for Demands {
    fn from(nature: Nature) -> Demands {
        Demands {
            work_conserving: nature.work_conserving,
            starves: nature.starves,
            longest_wait: nature.longest_wait,
        }
    }
}

/// The longest that the end of a search waits for a task: whatever balances or replenishes has
/// done so many times by then.
const PATIENCE: Span = Span::from_s(30);

/// How many calls an end may take: what takes more in [`PATIENCE`] makes no use of its time.
const MOST_STEPS: u32 = 200_000;

/// Notices that states repeat, in bounded memory: it keeps one state, a later one after every
/// doubling of the steps (R. Brent, BIT 20, 1980).
#[derive(Default)]
struct Lasso {
    kept: Option<u128>,
    steps: u64,
    until: u64,
}

impl Lasso {
    /// Whether `words` have been seen.
    fn closes(&mut self, words: &[u64]) -> bool {
        let hash = hash::of(words);
        if self.kept == Some(hash) {
            return true;
        }
        self.steps += 1;
        if self.steps >= self.until {
            self.until = 2 * self.until.max(4);
            self.kept = Some(hash);
        }
        false
    }
}

/// What goes on, step by step.
pub trait Steps {
    /// What may happen.
    type Event: Copy + PartialEq + fmt::Display + Send + Sync;

    /// Everything that may happen next.
    fn events(&self) -> Vec<Self::Event>;

    /// Makes `event` happen, which may happen next.
    fn apply(&mut self, event: Self::Event);

    /// The state, the same whenever all that may follow is the same; `None` if that cannot be said.
    fn words(&self) -> Option<Vec<u64>>;
}

/// What goes on by itself, so that it can be asked what becomes of each task.
pub trait Driven: Steps {
    /// The time of the next call.
    fn now(&self) -> Time;

    /// Lets time pass.
    fn pass_until(&mut self, time: Time);

    /// When something is due again.
    fn next_due(&self) -> Option<Time>;

    /// The period of the policy's own tick.
    fn tick_period(&self) -> Option<Span>;

    /// What brings back what is held back for a moment, if anything is.
    fn release(&self) -> Option<Self::Event>;

    /// What happens next without anything new from outside, if anything is left to do at this time;
    /// ends of slices are apart.
    fn due(&self) -> Option<Self::Event>;

    /// The end of a slice that is over.
    fn expired(&self) -> Option<Self::Event>;

    /// What makes one of the tasks that run block, if any runs.
    fn block(&self) -> Option<Self::Event>;

    /// The ticks of CPUs that run something.
    fn ticks(&self) -> Vec<Self::Event>;

    /// Tasks that could run and do not.
    fn waiting(&self) -> Vec<TaskId>;

    /// How many tasks could run.
    fn runnable(&self) -> usize;

    /// For how long the kernel keeps CPUs from asking the policy at most.
    fn unasked(&self) -> Span {
        Span::ZERO
    }
}

/// Lets every task that runs block, until no task is ready.
///
/// Errors: a task stays ready.
pub(crate) fn drain<D: Driven>(host: &mut D) -> Result<(), String> {
    let start = host.now();
    let mut lasso = Lasso::default();
    for _ in 0..MOST_STEPS {
        let next = host.release().or_else(|| host.due()).or_else(|| host.block());
        if let Some(event) = next.or_else(|| host.expired()) {
            host.apply(event);
            continue;
        }
        let Some(&task) = host.waiting().first() else { return Ok(()) };
        let Some(due) = host.next_due() else {
            return Err(format!(
                "task {} stays ready: all CPUs are idle, none is kicked, no timer is set",
                task.0
            ));
        };
        let repeats = host.words().is_some_and(|words| lasso.closes(&words));
        if repeats || due.since(start) > PATIENCE {
            return Err(format!(
                "task {} stays ready for ever: all CPUs are idle, and timers change nothing",
                task.0
            ));
        }
        host.pass_until(due);
    }
    Err("a drain has no end: the policy goes on kicking".into())
}

/// The wait of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waited {
    /// From the state at which the search left it until it ran.
    pub time: Span,
    /// The task.
    pub task: TaskId,
}

/// Lets every task compute for as long as it is let, until each has run; what is due is done at
/// once. Where the policy has no tick of its own, CPUs tick as those of `machine`. Returns the
/// longest wait.
///
/// Errors: a task never runs, or not in time.
pub(crate) fn hogs<D: Driven>(
    host: &mut D,
    demands: &Demands,
    machine: &Machine,
) -> Result<Option<Waited>, String> {
    let start = host.now();
    while let Some(event) = host.release() {
        host.apply(event);
    }
    let mut waits = host.waiting();
    let declared = |bound: Bound| bound.of(host.runnable() as u64) + host.unasked();
    let bound = demands.longest_wait.map(declared);
    let tick = host.tick_period().or(machine.tick()).unwrap_or(Span::from_ms(4));
    let mut next_tick = start + tick;
    let mut lasso = Lasso::default();
    let mut longest = None;
    for _ in 0..MOST_STEPS {
        if let Some(event) = host.due().or_else(|| host.expired()) {
            host.apply(event);
        } else {
            let due = host.next_due().unwrap_or(Time::NEVER).min(next_tick);
            let waited = due.since(start);
            if let Some((task, bound)) = waits.first().zip(bound).filter(|&(_, b)| waited > b) {
                return Err(format!("task {} waits longer than the declared {bound}", task.0));
            }
            if let Some(task) = waits.first() {
                if lasso_closes(host, next_tick, &mut lasso) {
                    return Err(format!(
                        "task {} never runs while others go on: states repeat",
                        task.0
                    ));
                }
                if waited > PATIENCE {
                    return Err(format!("task {} has not run after {PATIENCE}", task.0));
                }
            }
            host.pass_until(due);
            if due == next_tick {
                next_tick += tick;
                host.ticks().into_iter().for_each(|tick| host.apply(tick));
            }
        }
        let (still, time) = (host.waiting(), host.now().since(start));
        waits.retain(|&task| {
            let waits = still.contains(&task);
            if !waits {
                longest = longest.max(Some(Waited { time, task }));
            }
            waits
        });
        if waits.is_empty() {
            return Ok(longest);
        }
    }
    let task = waits.first().map_or(0, |task| task.0);
    Err(format!("task {task} has not run after {MOST_STEPS} calls"))
}

fn lasso_closes<D: Driven>(host: &D, next_tick: Time, lasso: &mut Lasso) -> bool {
    let Some(mut words) = host.words() else { return false };
    words.push(next_tick.since(host.now()).0);
    lasso.closes(&words)
}

/// Whether the task of `cpu` yields with the same effect at `once` and in `halves`, which are in
/// the same state.
///
/// Errors: it does not.
pub(crate) fn yields_alike<S: Scheduler>(
    cpu: CpuId,
    once: &mut Host<'_, S>,
    halves: &mut Host<'_, S>,
) -> Result<(), String> {
    once.yields(cpu, true);
    halves.yields(cpu, false);
    let (one, two) = (once.running(cpu), halves.running(cpu));
    if one != two {
        let name =
            |task: Option<TaskId>| task.map_or("nothing".into(), |t| format!("task {}", t.0));
        return Err(format!(
            "yield_and_pick on CPU {} picks {}, put_prev and pick_next {}",
            cpu.0,
            name(one),
            name(two)
        ));
    }
    match once.words() == halves.words() {
        true => Ok(()),
        false => Err(format!(
            "yield_and_pick on CPU {} leaves another state than put_prev and pick_next",
            cpu.0
        )),
    }
}

/// How many events of a common future are tried.
const FUTURE: u64 = 16;

/// Whether two that are in states which are said to be the same stay so, whatever is drawn from
/// `seed`.
///
/// Errors: they do not.
pub(crate) fn agree<S: Steps>(one: &mut S, two: &mut S, seed: u64) -> Result<(), String> {
    let mut random = SplitMix64(seed);
    let mut past = String::from("at once");
    for _ in 0..FUTURE {
        let (events, others) = (one.events(), two.events());
        if events != others || one.words() != two.words() {
            return Err(past);
        }
        let event = events[random.below(events.len() as u64) as usize];
        one.apply(event);
        two.apply(event);
        past = match past.as_str() {
            "at once" => format!("after: {event}"),
            before => format!("{before}; {event}"),
        };
    }
    Ok(())
}
