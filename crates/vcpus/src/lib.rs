//! Xen on one side, a policy on the other: what the hypervisor says about virtual CPUs, in the
//! order of the [contract](anysched_core).
//!
//! Xen moves vCPUs where policies know nothing of it: one is woken while its registers are still
//! being saved, paused although it was picked, sent to another pool. [`Adapter`] knows in which
//! [`State`] each vCPU is, and turns what Xen says into calls that a policy may get. It uses
//! nothing of Xen, so it can be tested without it.
//!
//! | operation of `struct scheduler` | here | call of the policy |
//! |---|---|---|
//! | `insert_unit`, `remove_unit` | [`attach`], [`detach`] | `attach`; `dequeue` or `put_prev(Exited)`, `detach` |
//! | `wake` | [`wake`] | by state: New, Wakeup; none while registers are saved |
//! | `sleep` | [`sleep`] | `dequeue`; none of one that runs, whose pCPU has to look |
//! | `do_schedule` | [`schedule`] | `put_prev` of what ran, `pick_next`; of one that is paused, or whose registers another pCPU has, `put_prev(NotRun)` and `dequeue` |
//! | `context_saved` | [`saved`] | Resumed or Wakeup, of what was picked or woken before |
//! | `yield` | [`yields`] | at the next `put_prev` |
//! | `adjust_affinity`, `adjust` | [`update`], [`set_domain`] | `update`, `set_domain` |
//! | `free_domdata` | [`disband`] | none |
//! | `switch_sched`, `deinit_pdata` | [`set_online`] | `set_online` |
//! | a timer of each pCPU, one of the pool | [`tick`], [`timer`] | `tick`, `timer` |
//! | another timer of the pool | [`starving`] | none |
//!
//! [`attach`]: Adapter::attach
//! [`detach`]: Adapter::detach
//! [`wake`]: Adapter::wake
//! [`sleep`]: Adapter::sleep
//! [`schedule`]: Adapter::schedule
//! [`saved`]: Adapter::saved
//! [`yields`]: Adapter::yields
//! [`update`]: Adapter::update
//! [`set_domain`]: Adapter::set_domain
//! [`disband`]: Adapter::disband
//! [`set_online`]: Adapter::set_online
//! [`starving`]: Adapter::starving
//! [`tick`]: Adapter::tick
//! [`timer`]: Adapter::timer

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod adapter;
mod canon;
mod domains;
#[cfg(test)]
mod tests;

pub use adapter::{Adapter, Counts, Fitness, State};
