//! The agent: a process that decides for a kernel under sched_ext.
//!
//! `agent.bpf.c` tells it what happens to tasks, by a ring buffer, and carries out what it answers.
//! One thread makes all calls of the policy, above all tasks that it schedules (`SCHED_FIFO`). The
//! first thread watches it, above that one: it ends the process when the kernel has thrown the
//! scheduler out, or when it is asked to. With the process goes all that it has put into the
//! kernel, however it ends, and the kernel's own scheduler is back.

mod agent;
mod end;
mod libbpf;
mod log;
mod memory;
mod options;
mod process;
mod protocol;
mod ring;

use std::ffi::{c_char, c_int};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anysched_wire::start::Start;

use agent::Agent;
use libbpf::Object;
use options::Options;
use protocol::Shared;
use ring::Ring;

/// For how long the agent's thread may take to stop before it counts as lost.
const PATIENCE: Duration = Duration::from_millis(100);

/// The program.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    let options = Options::read(std::env::args().skip(1)).unwrap_or_else(|why| end::refuse(&why));
    end::begin(&options);
    match run(&options) {
        Ok(()) => 0,
        Err(why) => end::die(&why),
    }
}

fn run(options: &Options) -> Result<(), String> {
    let start = std::fs::read(&options.start)
        .map_err(|error| format!("{}: {error}", options.start.display()))?;
    let start =
        Start::read(&start).map_err(|error| format!("{}: {error}", options.start.display()))?;
    end::name(&start.policy);
    log::reserve(start.record.unwrap_or(0));
    let stops = process::block_signals().map_err(|error| format!("signals: {error}"))?;
    let object = Object::load(options)?;
    let mut ends = Ring::open(&object, c"ends")?;
    process::lock_memory().map_err(|error| format!("locking memory: {error}"))?;
    let (thread, stopped) = spawn(start, Ring::open(&object, c"events")?, &object)?;
    process::real_time(process::WATCHER).map_err(|error| format!("SCHED_FIFO: {error}"))?;
    let link = match object.attach() {
        Ok(link) => link,
        Err(why) => return Err(end_of(&mut ends).unwrap_or(why)),
    };
    process::wait(&[ends.fd(), stops.fd()], None);
    if let Some(why) = end_of(&mut ends) {
        // The other thread may compute for ever. What it keeps from ending goes with the process.
        std::mem::forget(link);
        return Err(why);
    }
    drop(link);
    thread.stop();
    let status = stopped.recv_timeout(PATIENCE);
    let status = status.map_err(|_| "the policy does not return, though the agent was to end")?;
    end::write(&status).map_err(|error| error.to_string())
}

/// Why the kernel has thrown the scheduler out, if it has.
fn end_of(ends: &mut Ring) -> Option<String> {
    let mut why = None;
    ends.drain(|text| {
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        why = Some(String::from_utf8_lossy(text).into_owned());
    });
    why.filter(|why| !why.is_empty())
}

/// Starts the thread that calls the policy. Returns when it is ready; what it sends is the status
/// in the end.
fn spawn(
    start: Start,
    events: Ring,
    object: &Object,
) -> Result<(process::Stop, Receiver<String>), String> {
    let shared = Shared::of(object)?;
    let answer = object.program(c"answer")?;
    let stop = process::Stop::new().map_err(|error| format!("an event: {error}"))?;
    let (ready, is_ready) = channel();
    let (stopped, has_stopped) = channel();
    let own = stop.clone();
    std::thread::spawn(move || {
        // Here, and not before: what a policy is need not be able to change threads.
        let agent = process::real_time(process::AGENT)
            .map_err(|error| format!("SCHED_FIFO: {error}"))
            .and_then(|()| Agent::new(start, events, shared, answer));
        match agent {
            Ok(mut agent) => {
                let _ = ready.send(Ok(()));
                agent.run(&own);
                let _ = stopped.send(agent.status());
            }
            Err(why) => drop(ready.send(Err(why))),
        }
    });
    is_ready.recv().unwrap_or_else(|_| Err("the agent's thread has ended".into()))?;
    Ok((stop, has_stopped))
}
