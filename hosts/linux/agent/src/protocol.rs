//! What the programs in the kernel and the agent tell each other: the other side of
//! `bpf/agent.h`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use crate::libbpf::Object;

/// What an event tells. The numbers are those of `enum kind`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Attach,
    Detach,
    Update,
    Enqueue,
    Dequeue,
    Leave,
    Ask,
    Unasked,
    Tick,
    Online,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Attach,
        Kind::Detach,
        Kind::Update,
        Kind::Enqueue,
        Kind::Dequeue,
        Kind::Leave,
        Kind::Ask,
        Kind::Unasked,
        Kind::Tick,
        Kind::Online,
    ];
}

/// No task.
pub const NO_TASK: u32 = u32::MAX;

/// Words of an affinity.
pub const WORDS: usize = 1024 / 64;

/// An event. The layout is that of `struct event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    kind: u32,
    pub flags: u32,
    /// The CPU that it is about, or for which the task was given.
    pub cpu: u32,
    /// The kernel's number of the task; when a CPU asks, of what the policy has it run.
    pub task: u32,
    /// Of the task: answers with another are stale.
    pub sequence: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub now: u64,
    /// CPU time of the task in nanoseconds.
    pub runtime: u64,
    /// The CPU of the waker, plus 1; when a task is attached, the number by which the kernel knows
    /// it elsewhere.
    pub from: u32,
    /// Nice value + 20, 40 for `SCHED_IDLE`.
    pub niceness: u32,
}

impl Event {
    pub const WAKEUP: u32 = 1;
    pub const SYNC: u32 = 2;
    pub const DEAD: u32 = 4;
    pub const STARTED: u32 = 8;
    pub const EXPIRED: u32 = 16;
    pub const YIELDED: u32 = 32;
    pub const ONLINE: u32 = 64;

    /// Reads a record: an event, and the CPUs that the task may run on, if it tells them.
    pub fn read(record: &[u8]) -> (Event, [u64; WORDS]) {
        let (event, rest) = record.split_at_checked(size_of::<Event>()).expect("a whole event");
        // SAFETY: it is long enough, and all bits are a value of every field.
        let event = unsafe { event.as_ptr().cast::<Event>().read_unaligned() };
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(rest.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        (event, words)
    }

    pub fn kind(&self) -> Kind {
        match Kind::ALL.get(self.kind as usize) {
            Some(kind) => *kind,
            None => panic!("there is no event {}: agent and programs differ", self.kind),
        }
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// What an answer says. The numbers are those of `enum what`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Give,
    Nothing,
    Kick,
}

/// What became of an answer: `enum result`.
pub const LATER: u32 = 2;
/// See [`LATER`].
pub const REFUSED: u32 = 3;

/// An answer. The layout is that of `struct answer`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub what: What,
    pub cpu: u32,
    pub task: u32,
    pub result: u32,
    pub sequence: u64,
    pub slice: u64,
}

/// The most answers at a time.
pub const MOST_ANSWERS: usize = 64;

/// The layout of `struct shared`.
#[repr(C)]
struct Memory {
    tick_period: u64,
    cpus: u32,
    waits: AtomicU32,
    count: u32,
    answers: [Answer; MOST_ANSWERS],
}

/// Memory that the programs use, too.
pub struct Shared(NonNull<Memory>);

// SAFETY: it stays as long as the process lives.
unsafe impl Send for Shared {}

impl Shared {
    /// That of `object`.
    ///
    /// Errors: it has none, or one of another layout.
    pub fn of(object: &Object) -> Result<Shared, String> {
        match object.section(c".data.shared")? {
            (memory, length) if length == size_of::<Memory>() => Ok(Shared(memory.cast())),
            (_, length) => Err(format!(
                "{length} bytes are shared, not {}; build agent and programs from the same sources",
                size_of::<Memory>()
            )),
        }
    }

    /// Says what the programs have to know; `tick_period` in nanoseconds, 0 if the policy has no
    /// tick of its own.
    pub fn configure(&mut self, cpus: u32, tick_period: u64) {
        // SAFETY: nothing runs yet that would look.
        unsafe {
            let memory = self.0.as_ptr();
            (&raw mut (*memory).cpus).write_volatile(cpus);
            (&raw mut (*memory).tick_period).write_volatile(tick_period);
        }
    }

    /// Whether the agent sleeps until there are events. The programs unset it, too.
    pub fn waits(&self) -> &AtomicU32 {
        // SAFETY: the programs change it as one word, and no reference to the rest is made.
        unsafe { (&raw const (*self.0.as_ptr()).waits).as_ref_unchecked() }
    }

    /// Has `carry_out` look at `answers`, and puts what became of each there.
    pub fn answer(&mut self, answers: &mut [Answer], carry_out: impl FnOnce()) {
        let places = unsafe {
            // SAFETY: the programs look only while `carry_out` runs.
            let memory = self.0.as_ptr();
            (&raw mut (*memory).count).write_volatile(answers.len() as u32);
            (&raw mut (*memory).answers).cast::<Answer>()
        };
        for (place, answer) in answers.iter().enumerate().take(MOST_ANSWERS) {
            // SAFETY: there are so many.
            unsafe { places.add(place).write_volatile(*answer) };
        }
        std::sync::atomic::fence(SeqCst);
        carry_out();
        std::sync::atomic::fence(SeqCst);
        for (place, answer) in answers.iter_mut().enumerate().take(MOST_ANSWERS) {
            // SAFETY: as above; the programs write to nothing but the result.
            *answer = unsafe { places.add(place).read_volatile() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_header() {
        let sizes = (size_of::<Event>(), size_of::<Answer>(), size_of::<Memory>());
        assert_eq!(sizes, (48, 32, 24 + MOST_ANSWERS * 32));
    }
}
