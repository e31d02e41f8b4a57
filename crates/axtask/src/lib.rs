//! ArceOS on one side, a policy for all its CPUs on the other: what its crate axtask tells the
//! scheduler of each CPU, in the order of the [contract](anysched_core). [`Adapter`] is for several
//! CPUs, [`OneCpu`] for the images that have one.
//!
//! axtask puts a task that is started or woken on a CPU's runqueue in turn, and takes from the
//! runqueue of a CPU what that CPU is to run. Which runqueue a task is on makes no difference here:
//! a CPU is given what the policy picks for it, wherever axtask put it.
//!
//! One thing axtask relies on is that a task which stops but stays ready is on the runqueue of the
//! CPU that it leaves: nothing tells another CPU when its stack is free. So such a task is hidden
//! from the policy, by rule 9 of its contract, until its CPU has gone on: it interrupts itself, and
//! can only be interrupted once it has switched. Tasks that are woken need no such care, since
//! axtask itself waits until they have left their CPU.
//!
//! axtask tells neither the time nor why a task stops. The adapters find that out, and use nothing
//! of axtask, so they can be tested without it.
//!
//! | axtask calls | here | call of the policy |
//! |---|---|---|
//! | each of them, on a CPU | [`enter`] | Resumed or New, of what that CPU has left |
//! | `add_task`, `put_prev_task` of what did not run | [`attach`], [`ready`] | `attach`; New, Wakeup |
//! | `put_prev_task` of what runs | [`put`] | none before the pick |
//! | `pick_next_task` | [`stop`], [`look`], [`pick`] | `put_prev`, `timer`, `pick_next`; `dequeue` of what stays ready |
//! | `pick_next_task`, if the policy has nothing | [`rest`] | none |
//! | `task_tick` | [`tick`] | `tick`, `timer` |
//! | `remove_task` | [`take`] | `dequeue` |
//! | `set_priority` | [`update`] | `update` |
//! | the drop of a task | [`detach`] | `detach` |
//!
//! [`enter`]: Adapter::enter
//! [`attach`]: Adapter::attach
//! [`ready`]: Adapter::ready
//! [`put`]: Adapter::put
//! [`stop`]: Adapter::stop
//! [`look`]: Adapter::look
//! [`pick`]: Adapter::pick
//! [`rest`]: Adapter::rest
//! [`tick`]: Adapter::tick
//! [`take`]: Adapter::take
//! [`update`]: Adapter::update
//! [`detach`]: Adapter::detach

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod adapter;
mod canon;
mod driver;
mod one_cpu;
#[cfg(test)]
mod tests;

pub use adapter::{Adapter, Current, Picked, Stopped, Ticked};
pub use one_cpu::{Heeded, OneCpu};
