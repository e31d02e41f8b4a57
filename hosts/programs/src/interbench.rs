//! Interbench's X beside tasks that only compute: is a task of a desktop on time?
//!
//! Source: Interbench 0.31 (github.com/ckolivas/interbench, e612a65), `interbench.c`:
//! `periodic_schedule`, `emulate_x`, `emulate_burn`. X computes for i = 0, 1, …, 100 ms, one after
//! the other, and sleeps until its deadline, which has then advanced by 100 - i ms; only behind the
//! sleep it advances by i ms more. The whole saw-tooth takes 10.1 s. How late X is counts as
//! latency, and an interval for each frame that it misses besides.
//!
//! The tool has a thread of real-time priority wake X, and deducts by how much that overslept; here
//! X sleeps itself. Times are in nanoseconds; the tool reads whole microseconds.
//!
//! Arguments: `burners`, how many tasks compute; `load_nice`, their niceness, where the kernel
//! knows it; `pause_ns`, for how long they run before X begins; `duration_ns`, for how long X is
//! measured.
//!
//! Values: `latency_…` as the tool counts it, with its standard deviation and `latency_tool_sd_ns`,
//! what the tool prints as such (it subtracts mean²/n where n·mean² is right); `wakeup_…`, from the
//! end of a sleep to the CPU; frames: `work_done`, `work_missed`, `deadlines_met` and
//! `deadlines_missed`, and what part of them was done or met, in millionths. Each latency is a
//! sample `latency_ns`, each time from a sleep's end to the CPU a sample `wakeup_ns`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, string::String};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::arguments::{argument, whole};
use crate::crew::{Crew, Notes};
use crate::summary::Summary;
use crate::work::Burner;
use crate::{Guarded, Kernel, Task, value};
use anysched_wire::result::Message;

const MILLISECOND: u64 = 1_000_000;

/// Milliseconds of a frame without work, and number of frames with work.
const STEPS: u64 = 100;

/// What X is measured by.
#[derive(Debug, Default, PartialEq, Eq)]
struct Measured {
    latencies: Vec<u64>,
    wakeups: Vec<u64>,
    /// Frames that were computed, and that were left out or late.
    done: u64,
    left_out: u64,
    met: u64,
    missed: u64,
}

/// What X does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Computes for a span, and then [finishes](X::finish) the frame.
    Compute(u64),
    /// Sleeps until a time, and then [begins](X::begin) the next frame.
    Sleep(u64),
    /// Begins the next frame at once.
    Begin,
}

/// X, by the time that it is told.
struct X {
    frame: u64,
    deadline: u64,
    /// How late the frame began.
    latency: u64,
    measured: Measured,
}

impl X {
    /// It begins at a time.
    fn new(now: u64) -> X {
        X { frame: 0, deadline: now, latency: 0, measured: Measured::default() }
    }

    /// How much the deadline advances before the sleep.
    fn interval(&self) -> u64 {
        (STEPS - self.frame) * MILLISECOND
    }

    /// Begins a frame, or leaves out those that it is too late for.
    fn begin(&mut self, now: u64) -> Next {
        let interval = self.interval();
        self.latency = now.saturating_sub(self.deadline);
        if interval == 0 || now <= self.deadline + interval {
            return Next::Compute(self.frame * MILLISECOND);
        }
        self.deadline += interval;
        let missed = self.skip(interval, now);
        self.measured.left_out += missed;
        self.sleep(self.latency + missed * interval)
    }

    /// The work of a frame is done.
    fn finish(&mut self, now: u64) -> Next {
        let interval = self.interval();
        self.measured.done += 1;
        self.deadline += interval;
        if self.deadline >= now {
            self.measured.met += 1;
            self.sleep(self.latency)
        } else if interval > 0 {
            let missed = self.skip(interval, now);
            self.measured.left_out += if missed > 1 { missed } else { 0 };
            self.sleep(self.latency + missed * interval)
        } else {
            self.deadline = now;
            self.measured.latencies.push(self.latency);
            Next::Begin
        }
    }

    /// How many deadlines have passed, the present one included; the next is in the future.
    fn skip(&mut self, interval: u64, now: u64) -> u64 {
        let frames = now.saturating_sub(self.deadline) / interval + 1;
        self.deadline += frames * interval;
        self.measured.missed += frames;
        frames
    }

    fn sleep(&mut self, latency: u64) -> Next {
        self.measured.latencies.push(latency);
        Next::Sleep(self.deadline)
    }

    /// The frame is over, and the sleep behind it.
    fn advance(&mut self) {
        self.deadline += self.frame * MILLISECOND;
        self.frame = (self.frame + 1) % (STEPS + 1);
    }
}

/// Does what X does until a time.
fn perform<K: Kernel>(burner: &Burner, notes: &Notes, stop: u64) -> Measured {
    let mut x = X::new(K::now());
    while K::now() < stop {
        let mut next = x.begin(K::now());
        if let Next::Compute(span) = next {
            burner.burn(span);
            notes.group_done();
            next = x.finish(K::now());
        }
        if let Next::Sleep(until) = next {
            let before = K::now();
            // One that is past is none.
            if until > before {
                notes.sleeps(until - before);
                K::sleep_until(until);
                x.measured.wakeups.push(K::now().saturating_sub(until));
            }
        }
        x.advance();
    }
    x.measured
}

/// `part` of `part + rest`, in millionths, if there is any.
fn share(part: u64, rest: u64) -> Option<u64> {
    (part * 1_000_000).checked_div(part + rest)
}

fn report<K: Kernel>(measured: Measured) {
    let Measured { latencies, wakeups, done, left_out, met, missed } = measured;
    for (what, samples) in [("latency", latencies), ("wakeup", wakeups)] {
        for &number in &samples {
            K::say(&Message::Sample { name: format!("{what}_ns"), number });
        }
        let Some(summary) = Summary::of(samples) else { continue };
        value::<K>(&format!("{what}_mean_ns"), summary.mean());
        value::<K>(&format!("{what}_sd_ns"), summary.deviation());
        if what == "latency" {
            value::<K>("latency_tool_sd_ns", summary.deviation_of_interbench());
        }
        value::<K>(&format!("{what}_max_ns"), summary.max());
        for percent in [50, 90, 99] {
            value::<K>(&format!("{what}_p{percent}_ns"), summary.percentile(percent));
        }
        value::<K>(&format!("{what}_count"), summary.count());
    }
    for (what, number) in [
        ("work_done", done),
        ("work_missed", left_out),
        ("deadlines_met", met),
        ("deadlines_missed", missed),
    ] {
        value::<K>(what, number);
    }
    for (what, share) in
        [("desired_cpu", share(done, left_out)), ("deadlines_met", share(met, missed))]
    {
        if let Some(share) = share {
            value::<K>(&format!("{what}_millionths"), share);
        }
    }
}

/// Runs the program.
pub fn interbench<K: Kernel>() {
    let burners = argument::<K>("burners", 4);
    let nice = whole::<K, i32>("load_nice", 0);
    let pause = argument::<K>("pause_ns", 100 * MILLISECOND);
    let duration = argument::<K>("duration_ns", 5_000 * MILLISECOND);
    let burner = Burner::calibrated::<K>();
    let over = Arc::new(AtomicBool::new(false));
    let mut crew = Crew::<K>::new();
    for number in 0..burners {
        let over = over.clone();
        let task = Task { name: format!("burn-{number}"), nice, ..Task::default() };
        crew.start(task, move |notes| {
            while !over.load(Relaxed) {
                burner.burn(MILLISECOND);
                notes.group_done();
            }
        });
    }
    K::sleep_until(K::now() + pause);
    let found: Arc<K::Guarded<Option<Measured>>> = Arc::new(Guarded::new(None));
    let own = found.clone();
    let task = Task { name: String::from("x"), ..Task::default() };
    crew.start(task, move |notes| {
        let measured = perform::<K>(&burner, notes, K::now() + duration);
        over.store(true, Relaxed);
        Guarded::with(&*own, |found| *found = Some(measured));
    });
    crew.finish();
    report::<K>(Guarded::with(&*found, |found| found.take()).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last frame has no deadline of its own.
    #[test]
    fn alone_it_meets_its_deadlines() {
        let mut x = X::new(0);
        let mut now = 0;
        for frame in 0..=STEPS {
            let Next::Compute(span) = x.begin(now) else { panic!("frame {frame} is left out") };
            assert_eq!(span, frame * MILLISECOND);
            now += span;
            match x.finish(now) {
                Next::Sleep(until) => now = now.max(until),
                next => assert!(next == Next::Begin, "{next:?}"),
            }
            x.advance();
        }
        let Measured { done, left_out, met, missed, latencies, .. } = x.measured;
        assert_eq!((done, left_out, met, missed), (101, 0, 100, 0));
        assert!(latencies.iter().all(|latency| *latency == 0) && x.frame == 0);
    }

    #[test]
    fn what_it_misses_is_latency() {
        let mut x = X::new(0);
        x.frame = 40;
        // 35 ms late, within the interval of 60 ms: it computes, and is done 25 ms late.
        assert_eq!(x.begin(35 * MILLISECOND), Next::Compute(40 * MILLISECOND));
        assert_eq!(x.finish(85 * MILLISECOND), Next::Sleep(120 * MILLISECOND));
        assert_eq!(x.measured.latencies, [95 * MILLISECOND]);
        assert_eq!((x.measured.done, x.measured.left_out, x.measured.missed), (1, 0, 1));
        x.advance();
        assert_eq!((x.frame, x.deadline), (41, 160 * MILLISECOND));
        // 130 ms late, more than two intervals of 59 ms: it computes nothing.
        let Next::Sleep(until) = x.begin(290 * MILLISECOND) else { panic!("it is too late") };
        assert_eq!(until, (160 + 3 * 59) * MILLISECOND);
        assert_eq!(x.measured.latencies[1], (130 + 2 * 59) * MILLISECOND);
        assert_eq!((x.measured.done, x.measured.left_out, x.measured.missed), (1, 2, 3));
    }
}
