//! Parameters, and what they are in which kernel.

use anysched_core::time::Span;
use anysched_core::{Scaling, choice, params};

choice! {
    /// A kernel, or rather the first in which this was found: what changed between two of them may
    /// have come with any version between.
    #[derive(PartialOrd)]
    pub enum Profile {
        /// Linux 3.14.1.
        Linux3_14 = "3.14",
        /// Linux 3.15.5.
        Linux3_15 = "3.15",
        /// Linux 4.19.
        Linux4_19 = "4.19",
        /// Linux 5.12.9.
        Linux5_12 = "5.12",
        /// Linux 5.14-rc5, 5.15.16.
        Linux5_14 = "5.14",
        /// Linux 6.1.192.
        Linux6_1 = "6.1",
        /// Linux 6.5, the last with CFS.
        Linux6_5 = "6.5",
    }
}

params! {
    /// Parameters of `cfs`. Times are before scaling; with the default scaling they are 4 times
    /// as long on 8 CPUs or more. Switches that are `auto` are as in `profile`.
    pub struct CfsParams {
        /// The kernel whose defaults the switches have.
        profile: Profile = Profile::Linux6_1,
        /// Time in which each of a few ready tasks runs once, up to 1s (sched_latency).
        latency: Span = Span::from_ms(6),
        /// Time per task of such a period when there are many tasks (sched_min_granularity).
        min_granularity: Span = Span::from_us(750),
        /// How far behind a running task, in virtual time, one that wakes up must be to preempt
        /// it, up to 1s (sched_wakeup_granularity).
        wakeup_granularity: Span = Span::from_ms(1),
        /// How the three times grow with the number of CPUs, of which at most 8 count.
        tunable_scaling: Scaling = Scaling::Log,
        /// A task that is picked again where it ran goes on with its slice, even if that is over
        /// (3.15).
        keep_slice: Option<bool> = None,
        /// Such a task remains a buddy if it was one (5.14).
        keep_buddies: Option<bool> = None,
        /// Slices are at least min_granularity whatever the weight (BASE_SLICE, 5.12).
        base_slice: Option<bool> = None,
        /// At a tick, slices are at most a latency (6.5).
        cap_slice: Option<bool> = None,
        /// Beside others, a task of SCHED_IDLE has slices from 750us, unscaled, and is ahead by
        /// min_granularity when it wakes up, not by latency (6.1).
        short_idle: Option<bool> = None,
        /// A task that slept for 104 days is placed without regard to its vruntime (6.1).
        renew_sleepers: Option<bool> = None,
        /// A task that blocks counts for min_vruntime until what runs next is charged (up to 3.15).
        await_leaver: Option<bool> = None,
        /// A task that wakes up is ahead by half a latency at most, not by a whole one.
        gentle_sleepers: bool = true,
        /// A new task begins one slice behind.
        start_debit: bool = true,
        /// A new task changes places with its creator if it is behind it.
        child_runs_first: bool = false,
        /// A task that wakes up may preempt.
        wakeup_preempt: bool = true,
        /// Among many tasks, one that wakes up is preferred even if it does not preempt.
        next_buddy: bool = false,
        /// Among many tasks, one that was preempted is preferred.
        last_buddy: bool = true,
        /// Tick at which slices are seen to end, up to 1s; auto is the machine's or 1ms, 0 ends
        /// them exactly.
        tick: Option<Span> = None,
    }
}

/// The switches that differ between kernels, settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switches {
    pub keep_slice: bool,
    pub keep_buddies: bool,
    pub base_slice: bool,
    pub cap_slice: bool,
    pub short_idle: bool,
    pub renew_sleepers: bool,
    pub await_leaver: bool,
    pub ni_random: bool,
}

impl Switches {
    pub fn of(params: &CfsParams) -> Switches {
        let since = |first| params.profile >= first;
        Switches {
            keep_slice: params.keep_slice.unwrap_or(since(Profile::Linux3_15)),
            keep_buddies: params.keep_buddies.unwrap_or(since(Profile::Linux5_14)),
            base_slice: params.base_slice.unwrap_or(since(Profile::Linux5_12)),
            cap_slice: params.cap_slice.unwrap_or(since(Profile::Linux6_5)),
            short_idle: params.short_idle.unwrap_or(since(Profile::Linux6_1)),
            renew_sleepers: params.renew_sleepers.unwrap_or(since(Profile::Linux6_1)),
            await_leaver: params.await_leaver.unwrap_or(!since(Profile::Linux4_19)),
            // Of kernels with CFS, only 6.1 was still maintained when that came.
            ni_random: params.profile == Profile::Linux6_1,
        }
    }
}
