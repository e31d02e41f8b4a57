//! What scheduling costs on a host, as it measured it.

use anysched_core::Span;
use anysched_core::registry::Settings;

/// A scheduler whose costs are to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What results call it.
    pub label: String,
    /// A policy, or one of the host's own schedulers.
    pub name: String,
    /// The settings of the policy.
    pub settings: Settings,
}

/// What was measured under all subjects.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// What an iteration of the host's test loops takes, in ps, by the loop's name; empty where
    /// loads are not measured in iterations.
    pub iterations: Vec<(&'static str, u64)>,
    /// What the columns of [`MeasuredCosts::figures`] are.
    pub figures: Vec<Figure>,
    /// One for each subject, in order.
    pub costs: Vec<MeasuredCosts>,
    /// What readers of the figures need to know.
    pub notes: &'static str,
}

/// A column of the table of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its heading, in two lines; a first line that ends with a hyphen continues in the second.
    pub heading: [&'static str; 2],
}

/// What scheduling costs under one scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredCosts {
    /// What results call the scheduler.
    pub label: String,
    /// Every pick.
    pub pick: Span,
    /// What switching to another task takes beyond a pick.
    pub context_switch: Span,
    /// What making a task ready takes; where it is not told from what follows, with that.
    pub enqueue: Span,
    /// What a task does between waking another and its own next step in the kernel, where that is
    /// told from the enqueue.
    pub after_wake: Option<Span>,
    /// What a timer's interrupt takes that wakes a task, likewise.
    pub wake_irq: Option<Span>,
    /// What starting a task takes from the one that starts it, without the enqueue, where that was
    /// measured.
    pub create: Option<Span>,
    /// What a task takes to end, without the switch to and from it, likewise.
    pub exit: Option<Span>,
    /// What a timer interrupt takes.
    pub timer_irq: Span,
    /// The figures behind it, in the order of [`Calibration::figures`]; `None`: not measured.
    pub figures: Vec<Option<u64>>,
}
