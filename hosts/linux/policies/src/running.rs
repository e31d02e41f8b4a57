//! A policy that has been started, and the calls that the C side makes.

use alloc::boxed::Box;
use alloc::string::String;

use anysched_core::{Off, Scheduler, TaskId, TaskParams, Time};
use anysched_linux_start::params;
use anysched_scx::{Adapter, Enqueued, Prev, Waking};
use anysched_wire::start::Start;

use crate::call::{Call, Op};
use crate::kernel;
use crate::log::Buffer;
use crate::panic::refuse;
use crate::status;

/// What has been started.
pub struct Running {
    pub name: String,
    pub adapter: Adapter<Box<dyn Scheduler>>,
    pub cpus: usize,
}

/// What `built` holds, without which nothing can be started.
fn or_refuse<T>(built: Result<T, String>) -> T {
    built.unwrap_or_else(|why| refuse(format_args!("{why}")))
}

impl Running {
    /// Starts what `text` says.
    pub fn start(text: &[u8], call: &mut Call) -> Running {
        let start = match Start::read(text) {
            Ok(start) => start,
            Err(error) => refuse(format_args!("{error}")),
        };
        if start.cpus.len() != call.cpu as usize {
            refuse(format_args!(
                "the start text has {} CPUs, the kernel has {}",
                start.cpus.len(),
                call.cpu
            ));
        }
        let machine = or_refuse(anysched_linux_start::machine(&start));
        let policy = or_refuse(anysched_linux_start::policy(&start, &machine, Buffer));
        call.timer = policy.tick_period().map_or(0, |period| period.0);
        let cpus = start.cpus.len();
        Running { name: start.policy, adapter: Adapter::new(policy, &machine), cpus }
    }

    fn params(&self, call: &Call) -> TaskParams {
        // SAFETY: the C side gives the mask of the task.
        let affinity = unsafe { call.affinity(self.cpus) };
        params(call.niceness, affinity)
    }

    /// Makes a call, and passes on what the policy asks for.
    pub fn handle(&mut self, call: &mut Call) {
        let (now, task) = (Time(call.now), call.task());
        let home = call.home();
        if call.has(Call::STARTED)
            && let Some(task) = home.and_then(|home| self.adapter.runs(home))
        {
            self.adapter.started(task);
        }
        let adapter = &mut self.adapter;
        match Op::of(call.op) {
            Op::Enqueue => self.enqueue(now, task, call),
            Op::Dispatch => self.dispatch(now, call),
            Op::Leave => {
                let why = if call.has(Call::DEAD) { Off::Exited } else { Off::Blocked };
                adapter.leaves(now, task, call.runtime, why);
            }
            Op::Dequeue => adapter.dequeue(now, task),
            Op::Yield => adapter.yields(task),
            Op::Tick => adapter.tick(now, task, call.runtime),
            Op::Timer => adapter.timer(now),
            Op::Unasked => adapter.runs_unasked(now, task, call.runtime, call.cpu()),
            Op::Refuse => adapter.refuse(now, task),
            Op::Attach => {
                let params = self.params(call);
                let task = self.adapter.attach(now, params, call.group);
                call.answer(Some(task));
            }
            Op::Detach => adapter.detach(now, task, call.runtime),
            Op::Update => {
                let params = self.params(call);
                self.adapter.update(now, task, params);
            }
            Op::Online => {
                adapter.set_online(now, call.cpu(), call.has(Call::ONLINE), call.runtime);
            }
            Op::Weight => adapter.set_group_weight(now, call.group, call.amount),
            Op::Cap => adapter.set_group_cap(now, call.group, call.amount),
            Op::Disband => adapter.disband(call.group),
            Op::Join => adapter.join(now, task, call.group),
            Op::Change => self.change(now, call),
            Op::Status => status::answer(self, call),
            Op::State => call.slice = status::state(self.adapter.state(task)),
            Op::Start => unreachable!("handled before"),
        }
        if home.is_some_and(|home| self.adapter.runs(home) == Some(task)) {
            call.flags |= Call::RUNS;
        }
        call.timer = self.adapter.next_timer().map_or(u64::MAX, |due| due.0);
        while let Some(cpu) = self.adapter.take_kick() {
            kernel::anysched_kick(cpu.0.into());
        }
    }

    fn enqueue(&mut self, now: Time, task: TaskId, call: &mut Call) {
        let over = match (call.has(Call::EXPIRED), call.has(Call::KICKED)) {
            (true, _) => Some(Off::Expired),
            (false, true) => Some(Off::Preempted),
            (false, false) => None,
        };
        let waking = Waking {
            wakeup: call.has(Call::WAKEUP),
            sync: call.has(Call::SYNC),
            from: call.from(),
            over,
        };
        let goes_on = self.adapter.enqueue(now, task, call.runtime, waking) == Enqueued::GoesOn;
        call.slice = u64::from(goes_on);
    }

    fn dispatch(&mut self, now: Time, call: &mut Call) {
        let why = if call.has(Call::EXPIRED) { Off::Expired } else { Off::Preempted };
        let runnable = call.has(Call::RUNNABLE);
        let prev = call.prev().map(|task| Prev { task, runnable, why });
        let pick = self.adapter.dispatch(now, call.cpu(), prev, call.runtime);
        call.slice = pick.map_or(0, |pick| pick.slice.0);
        call.answer(pick.map(|pick| pick.task));
    }

    /// Changes a parameter as the text of the call asks; the answer takes its place.
    fn change(&mut self, now: Time, call: &mut Call) {
        // SAFETY: the C side gives a text with this call.
        let text = unsafe { call.text() };
        let answer = anysched_linux_start::change(now, text, &self.name, &mut self.adapter);
        call.text_len = call.amount as u32;
        // SAFETY: where the text is, there is room for so much; nobody looks at the text any more.
        let room = unsafe { call.room() };
        let length = answer.len().min(room.len());
        room[..length].copy_from_slice(&answer.as_bytes()[..length]);
        call.text_len = length as u32;
    }
}
