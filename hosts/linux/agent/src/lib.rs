//! The agent: a process that decides for a kernel under sched_ext.
//!
//! `agent.bpf.c` tells it what happens to tasks, by a ring buffer, and carries out what it answers.
//! One thread makes all calls of the policy, above all tasks that it schedules (`SCHED_FIFO`). The
//! first thread watches it, above that one: it passes on how it is doing and what is to change, and
//! ends the process when the kernel has thrown the scheduler out, or when it is asked to. With the
//! process goes all that it has put into the kernel, however it ends, and the kernel's own
//! scheduler is back.

mod agent;
mod answers;
mod end;
mod libbpf;
mod log;
mod memory;
mod options;
mod process;
mod protocol;
mod ring;

use std::ffi::{c_char, c_int};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anysched_wire::start::Start;

use agent::Agent;
use answers::{Answers, Changes, Letter, Report};
use libbpf::Object;
use options::Options;
use process::Bell;
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
    process::end_with_parent().map_err(|error| format!("its parent's end: {error}"))?;
    let stops = process::block_signals().map_err(|error| format!("signals: {error}"))?;
    let object = Object::load(options)?;
    let mut ends = Ring::open(&object, c"ends")?;
    process::lock_memory().map_err(|error| format!("locking memory: {error}"))?;
    let answers = Answers::open(&options.socket);
    let answers = answers.map_err(|error| format!("{}: {error}", options.socket.display()))?;
    let changes = Changes::open(&options.changes);
    let changes = changes.map_err(|error| format!("{}: {error}", options.changes.display()))?;
    let decider = Decider::spawn(start, Ring::open(&object, c"events")?, &object)?;
    process::real_time(process::WATCHER).map_err(|error| format!("SCHED_FIFO: {error}"))?;
    let link = match object.attach() {
        Ok(link) => link,
        Err(why) => return Err(end_of(&mut ends).unwrap_or(why)),
    };
    watch(&decider, &ends, stops.fd(), &answers, &changes);
    if let Some(why) = end_of(&mut ends) {
        // The other thread may compute for ever. What it keeps from ending goes with the process.
        std::mem::forget(link);
        return Err(why);
    }
    drop(link);
    let status = decider.stop()?.into_text();
    end::write(&status).map_err(|error| error.to_string())
}

/// Passes on how the policy is doing and what is to change until the kernel has thrown the
/// scheduler out or the agent is asked to end.
fn watch(decider: &Decider, ends: &Ring, stops: RawFd, answers: &Answers, changes: &Changes) {
    let mut asking: Vec<UnixStream> = Vec::new();
    loop {
        let fds = [ends.fd(), stops, answers.fd(), changes.fd(), decider.has_answered.fd()];
        let [has_ended, is_to_stop, _, _, rings] = process::wait(&fds, None);
        if has_ended || is_to_stop {
            return;
        }
        if rings
            && decider.has_answered.take()
            && let Some(report) = decider.report()
        {
            let text = report.into_text();
            asking.drain(..).for_each(|asks| answers::tell(&asks, text.as_bytes()));
            decider.changed.try_iter().for_each(|answer| changes.tell(&answer));
        }
        while let Some(letter) = changes.next() {
            // One that has ended needs no answer.
            let _ = decider.changes.send(letter);
            decider.wanted.ring();
        }
        while let Some(asks) = answers.next() {
            asking.push(asks);
            decider.wanted.ring();
        }
    }
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

/// The thread that calls the policy.
struct Decider {
    /// It is asked how it is doing.
    wanted: Bell,
    /// It has said that.
    has_answered: Bell,
    /// What it says then is the last that it says.
    is_over: Arc<AtomicBool>,
    reports: Receiver<Report>,
    /// What is to change, and what has become of that.
    changes: Sender<Letter>,
    changed: Receiver<Letter>,
}

impl Decider {
    /// Starts it. Returns when it is ready.
    ///
    /// Errors: there is no such policy, or the agent may not do what it has to.
    fn spawn(start: Start, events: Ring, object: &Object) -> Result<Decider, String> {
        let shared = Shared::of(object)?;
        let answer = object.program(c"answer")?;
        let bell = || Bell::new().map_err(|error| format!("an event: {error}"));
        let (wanted, has_answered) = (bell()?, bell()?);
        let (ready, is_ready) = channel();
        let (sender, reports) = channel();
        let (changes, to_change) = channel();
        let (has_changed, changed) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let own = Asked {
            wanted: wanted.clone(),
            has_answered: has_answered.clone(),
            is_over: is_over.clone(),
            reports: sender,
            changes: to_change,
            changed: has_changed,
        };
        std::thread::spawn(move || {
            // Here, and not before: what a policy is need not be able to change threads.
            let agent = process::real_time(process::AGENT)
                .map_err(|error| format!("SCHED_FIFO: {error}"))
                .and_then(|()| Agent::new(start, events, shared, answer));
            match agent {
                Ok(agent) => {
                    let _ = ready.send(Ok(()));
                    own.decide(agent);
                }
                Err(why) => drop(ready.send(Err(why))),
            }
        });
        is_ready.recv().unwrap_or_else(|_| Err("the agent's thread has ended".into()))?;
        Ok(Decider { wanted, has_answered, is_over, reports, changes, changed })
    }

    /// What it has said last.
    fn report(&self) -> Option<Report> {
        self.reports.try_iter().last()
    }

    /// What it says now that all is over.
    ///
    /// Errors: it says nothing.
    fn stop(&self) -> Result<Report, String> {
        self.is_over.store(true, SeqCst);
        self.wanted.ring();
        let mut last = None;
        loop {
            match self.reports.recv_timeout(PATIENCE) {
                Ok(report) => last = Some(report),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err("the policy does not return, though the agent was to end".into());
                }
            }
        }
        last.ok_or_else(|| "the agent's thread has ended".into())
    }
}

/// The other end of a [`Decider`].
struct Asked {
    wanted: Bell,
    has_answered: Bell,
    is_over: Arc<AtomicBool>,
    reports: Sender<Report>,
    changes: Receiver<Letter>,
    changed: Sender<Letter>,
}

impl Asked {
    /// Decides, says how it is doing whenever somebody wants to know, and changes what is to
    /// change.
    fn decide(self, mut agent: Agent) {
        loop {
            agent.run(&self.wanted);
            for letter in self.changes.try_iter() {
                let text = agent.change(&letter.text).into_bytes();
                let _ = self.changed.send(Letter { text, ..letter });
            }
            let is_over = self.is_over.load(SeqCst);
            let sent = self.reports.send(agent.report());
            if is_over || sent.is_err() {
                return;
            }
            self.has_answered.ring();
        }
    }
}
