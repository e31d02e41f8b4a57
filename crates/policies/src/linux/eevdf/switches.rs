//! What differs between kernels, as switches, and the kernels, as sets of them.

use anysched_core::time::Span;
use anysched_core::{Scaling, choice, params};

choice! {
    /// The kernel whose defaults the switches have.
    pub enum Profile {
        /// Linux 6.6 (`fair.c` at b01db23d5923), the first with EEVDF.
        Linux66 = "6.6",
        /// Linux 6.12.107, as in Debian 13.
        Linux612 = "6.12",
        /// Linux 6.18.
        Linux618 = "6.18",
        /// Linux 7.2.13.
        Linux72 = "7.2",
        /// Linux 7.3.4.
        Linux73 = "7.3",
    }
}

choice! {
    /// When a CPU that runs in user space acts on a decision to preempt.
    pub enum Preemption {
        /// At once.
        Full = "full",
        /// At its next interrupt or system call: no CPU sharing the last-level cache interrupts it.
        Lazy = "lazy",
        /// As full; only work in the kernel, which no policy sees, goes on for longer.
        Voluntary = "voluntary",
    }
}

choice! {
    /// Which wake-ups limit the protection of what runs to the shortest slice of the runqueue, if
    /// they do not preempt it.
    pub enum Limits {
        /// None.
        Never = "never",
        /// Those of tasks with a shorter slice.
        Short = "short",
        /// All but those of new tasks.
        Woken = "woken",
        /// All, and what runs ahead of V is protected for that much less.
        All = "all",
    }
}

params! {
    /// Parameters of `eevdf`. Switches that are `auto` are as in `profile`.
    pub struct EevdfParams {
        /// The kernel whose defaults the switches have.
        profile: Profile = Profile::Linux73,
        /// CPU time of one request before scaling, at most 1s; auto is 750us in 6.6, else 700us.
        base_slice: Option<Span> = None,
        /// How base_slice grows with the number of CPUs, of which at most 8 count.
        tunable_scaling: Scaling = Scaling::Log,
        /// Tick at which requests are seen to end; auto is the machine's or 1ms, 0 ends them
        /// exactly.
        tick: Option<Span> = None,
        /// Requests end exactly, by a timer of their own, unless a task goes on into its next
        /// (from 7.2).
        hrtick: Option<bool> = None,
        /// When a CPU acts on the decision of another to preempt what it runs (lazy from 7.2, else
        /// voluntary).
        preemption: Option<Preemption> = None,
        /// A task keeps its lag while it is away (all).
        place_lag: Option<bool> = None,
        /// A new task begins with half a slice (from 6.12).
        place_deadline_initial: Option<bool> = None,
        /// A task that moves or changes its nice value keeps its request (from 6.12).
        place_rel_deadline: Option<bool> = None,
        /// With a nice value, the CPU time left of the request is kept, not its virtual time (from
        /// 6.18).
        scale_deadline: Option<bool> = None,
        /// Lag is limited by the longest slice of the runqueue and a tick, not by the task's own
        /// slice twice (from 7.2).
        longest_slice_limits_lag: Option<bool> = None,
        /// What runs is not preempted while it is eligible and its request lasts (all).
        run_to_parity: Option<bool> = None,
        /// That protection lasts for the shortest slice of the runqueue at most, and a charge
        /// after it reschedules (from 6.18).
        shortest_slice_limits: Option<bool> = None,
        /// Against a shorter slice it lasts until the task is not eligible instead (7.3).
        protect_to_parity: Option<bool> = None,
        /// Which wake-ups limit it anew (short in 6.18, woken in 7.2, all in 7.3).
        wakeup_limits: Option<Limits> = None,
        /// A change of nice protects what runs anew (up to 6.18).
        protect_at_nice: Option<bool> = None,
        /// Of equal deadlines that of the running task is first (6.6).
        running_wins_ties: Option<bool> = None,
        /// A task that wakes up may preempt (all).
        wakeup_preemption: Option<bool> = None,
        /// A new task may preempt even if its slice is not the shorter one (up to 6.18).
        fork_preemption: Option<bool> = None,
        /// The wake-up of a task with a shorter slice ignores the protection (from 6.12).
        preempt_short: Option<bool> = None,
        /// It ends the protection even if another task is then first (6.12).
        short_ends_protection: Option<bool> = None,
        /// It preempts and runs next if it is eligible, even if another deadline is earlier (7.3).
        short_runs_next: Option<bool> = None,
        /// A task that blocks while it is not eligible goes on competing until it is (from 6.12).
        delay_dequeue: Option<bool> = None,
        /// A task that was so delayed is owed nothing afterwards (from 6.12).
        delay_zero: Option<bool> = None,
        /// What such a task owes does not grow (from 7.2).
        delay_keeps_debt: Option<bool> = None,
        /// A task's slice is its own, 0.1ms to 100ms (from 6.12).
        custom_slice: Option<bool> = None,
        /// An eligible task that yields gives up the rest of its request (from 6.12, though not in
        /// 6.12.0).
        yield_forfeits: Option<bool> = None,
        /// Balancing leaves who is not eligible where it is, unless it has failed before, and
        /// moves delayed tasks for their load only (from 6.18).
        balance_eligible: Option<bool> = None,
        /// With `ni_random`, CPUs that seldom run out of work look at domains more often (from
        /// 7.2).
        ni_rate: Option<bool> = None,
    }
}

/// The switches, settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switches {
    pub hrtick: bool,
    pub preemption: Preemption,
    pub place_lag: bool,
    pub place_deadline_initial: bool,
    pub place_rel_deadline: bool,
    pub scale_deadline: bool,
    pub longest_slice_limits_lag: bool,
    pub run_to_parity: bool,
    pub shortest_slice_limits: bool,
    pub protect_to_parity: bool,
    pub wakeup_limits: Limits,
    pub protect_at_nice: bool,
    pub running_wins_ties: bool,
    pub wakeup_preemption: bool,
    pub fork_preemption: bool,
    pub preempt_short: bool,
    pub short_ends_protection: bool,
    pub short_runs_next: bool,
    pub delay_dequeue: bool,
    pub delay_zero: bool,
    pub delay_keeps_debt: bool,
    pub custom_slice: bool,
    pub yield_forfeits: bool,
    pub balance_eligible: bool,
    pub ni_rate: bool,
    /// Reciprocals of weights are rounded down (7.3), not to nearest.
    pub floor_reciprocals: bool,
}

impl EevdfParams {
    /// `base_slice`, settled.
    pub(super) fn base_slice(&self) -> Span {
        let us = if self.profile == Profile::Linux66 { 750 } else { 700 };
        self.base_slice.unwrap_or(Span::from_us(us))
    }
}

impl Switches {
    pub fn of(params: &EevdfParams) -> Switches {
        let version = params.profile as u8;
        let from = |first: Profile| version >= first as u8;
        let upto = |last: Profile| version <= last as u8;
        let (v66, v612) = (Profile::Linux66, Profile::Linux612);
        let (v618, v72, v73) = (Profile::Linux618, Profile::Linux72, Profile::Linux73);
        let preemption = match params.profile {
            Profile::Linux72 | Profile::Linux73 => Preemption::Lazy,
            _ => Preemption::Voluntary,
        };
        let limits = match params.profile {
            Profile::Linux66 | Profile::Linux612 => Limits::Never,
            Profile::Linux618 => Limits::Short,
            Profile::Linux72 => Limits::Woken,
            Profile::Linux73 => Limits::All,
        };
        Switches {
            hrtick: params.hrtick.unwrap_or(from(v72)),
            preemption: params.preemption.unwrap_or(preemption),
            place_lag: params.place_lag.unwrap_or(true),
            place_deadline_initial: params.place_deadline_initial.unwrap_or(from(v612)),
            place_rel_deadline: params.place_rel_deadline.unwrap_or(from(v612)),
            scale_deadline: params.scale_deadline.unwrap_or(from(v618)),
            longest_slice_limits_lag: params.longest_slice_limits_lag.unwrap_or(from(v72)),
            run_to_parity: params.run_to_parity.unwrap_or(true),
            shortest_slice_limits: params.shortest_slice_limits.unwrap_or(from(v618)),
            protect_to_parity: params.protect_to_parity.unwrap_or(from(v73)),
            wakeup_limits: params.wakeup_limits.unwrap_or(limits),
            protect_at_nice: params.protect_at_nice.unwrap_or(upto(v618)),
            running_wins_ties: params.running_wins_ties.unwrap_or(upto(v66)),
            wakeup_preemption: params.wakeup_preemption.unwrap_or(true),
            fork_preemption: params.fork_preemption.unwrap_or(upto(v618)),
            preempt_short: params.preempt_short.unwrap_or(from(v612)),
            short_ends_protection: params.short_ends_protection.unwrap_or(upto(v612)),
            short_runs_next: params.short_runs_next.unwrap_or(from(v73)),
            delay_dequeue: params.delay_dequeue.unwrap_or(from(v612)),
            delay_zero: params.delay_zero.unwrap_or(from(v612)),
            delay_keeps_debt: params.delay_keeps_debt.unwrap_or(from(v72)),
            custom_slice: params.custom_slice.unwrap_or(from(v612)),
            yield_forfeits: params.yield_forfeits.unwrap_or(from(v612)),
            balance_eligible: params.balance_eligible.unwrap_or(from(v618)),
            ni_rate: params.ni_rate.unwrap_or(from(v72)),
            floor_reciprocals: from(v73),
        }
    }
}
