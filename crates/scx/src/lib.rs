//! Linux's sched_ext on one side, a policy on the other: what the kernel says about tasks, in the
//! order of the [contract](anysched_core).
//!
//! sched_ext moves tasks where policies know nothing of it: real-time tasks take a CPU for a
//! moment, a task is taken out and put back when its priority changes, a picked task has gone by
//! the time it should run. [`Adapter`] knows in which [`State`] each task is, and turns what the
//! kernel says into calls that a policy may get. It is the same code in the kernel's module and in
//! the agent in user space, and uses nothing of either.
//!
//! | operation of sched_ext | here | call of the policy |
//! |---|---|---|
//! | `enable`, the first time; `exit_task` | [`attach`], [`detach`] | `attach`; `dequeue` or `put_prev(Exited)`, `detach` |
//! | `enqueue` | [`enqueue`] | by state: New, Wakeup, Resumed; of a running task `put_prev` |
//! | `quiescent`, but for sleep | [`dequeue`] | `dequeue`; of a picked task `put_prev(NotRun)` first |
//! | `dispatch` | [`dispatch`] | `put_prev` of what runs, `pick_next`, with several CPUs `dequeue` of what another task replaces |
//! | `running` | [`started`], [`runs_unasked`] | none; of a task that was not picked `dequeue` |
//! | `quiescent`, for sleep | [`leaves`] | `put_prev(Blocked)` or `put_prev(Exited)` |
//! | `yield`, `tick` | [`yields`], [`tick`] | at the next `put_prev`; `tick` |
//! | `set_weight`, `set_cpumask` | [`update`] | `update` |
//! | `cgroup_init`, `cgroup_set_weight`, `cgroup_set_bandwidth` | [`set_group_weight`], [`set_group_cap`] | `set_domain` |
//! | `cgroup_move`, `cgroup_exit` | [`join`], [`disband`] | `update`; none |
//! | none: somebody changes a parameter | [`set_param`] | `set_param`, if `check_param` allows it |
//! | `cpu_online`, `cpu_offline` | [`set_online`] | `set_online`, after `update` of tasks left without a CPU |
//!
//! [`attach`]: Adapter::attach
//! [`detach`]: Adapter::detach
//! [`enqueue`]: Adapter::enqueue
//! [`dequeue`]: Adapter::dequeue
//! [`dispatch`]: Adapter::dispatch
//! [`started`]: Adapter::started
//! [`runs_unasked`]: Adapter::runs_unasked
//! [`leaves`]: Adapter::leaves
//! [`yields`]: Adapter::yields
//! [`tick`]: Adapter::tick
//! [`update`]: Adapter::update
//! [`set_param`]: Adapter::set_param
//! [`set_online`]: Adapter::set_online
//! [`set_group_weight`]: Adapter::set_group_weight
//! [`set_group_cap`]: Adapter::set_group_cap
//! [`join`]: Adapter::join
//! [`disband`]: Adapter::disband

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod adapter;
mod canon;
mod count;
pub mod groups;
mod hotplug;

pub use adapter::{Adapter, Enqueued, Prev, State, Waking};
pub use count::{Counts, Latencies};
