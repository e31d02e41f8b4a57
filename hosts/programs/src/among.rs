//! What tasks of a script wait for and wake each other by: channels, locks and barriers.
//!
//! Whoever waits is woken in the order in which it came, and what it waited for is handed to it:
//! nobody that comes later takes it first.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::hint::spin_loop;
use core::mem;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

use anysched_wire::script::{Script, Step};

use crate::{Guarded, Kernel, Signal};

/// For how long a task was blocked by others, in nanoseconds, and until when since boot. That does
/// not include waiting for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// How long.
    pub span: u64,
    /// When it was let go.
    pub until: u64,
}

/// A task that waits until another lets it go.
struct Waiter<S> {
    /// When that was, in nanoseconds since boot; 0: it has not been.
    let_go: AtomicU64,
    signal: S,
}

impl<S: Signal> Waiter<S> {
    fn new() -> Arc<Waiter<S>> {
        Arc::new(Waiter { let_go: AtomicU64::new(0), signal: S::default() })
    }

    /// Blocks the task until it is let go.
    fn wait<K: Kernel>(&self) -> Option<Blocked> {
        let came = K::now();
        self.signal.wait_until(|| self.let_go.load(Acquire) > 0);
        let until = self.let_go.load(Acquire);
        // None, if it was let go before it came to wait.
        until.checked_sub(came).map(|span| Blocked { span, until })
    }

    /// The same, on the CPU.
    fn spin(&self) {
        while self.let_go.load(Acquire) == 0 {
            spin_loop();
        }
    }

    fn let_go<K: Kernel>(&self) {
        self.let_go.store(K::now().max(1), Release);
        self.signal.wake();
    }
}

/// Those that wait for one thing, in the order in which they came.
type Waiters<K> = VecDeque<Arc<Waiter<<K as Kernel>::Signal>>>;

/// Stored signals, and tasks that wait for one.
struct Channel<K: Kernel> {
    stored: u64,
    waiters: Waiters<K>,
}

/// Which task holds a lock, and which wait for it.
struct Lock<K: Kernel> {
    holder: Option<usize>,
    waiters: VecDeque<(usize, Arc<Waiter<K::Signal>>)>,
}

/// A thing of tasks, which one of them looks at at a time.
type One<K, T> = <K as Kernel>::Guarded<T>;

/// The channels, locks and barriers of a script, by number.
pub struct Among<K: Kernel> {
    channels: BTreeMap<u32, One<K, Channel<K>>>,
    locks: BTreeMap<u32, One<K, Lock<K>>>,
    /// Those that have come so far, all but the last of a round.
    barriers: BTreeMap<u32, One<K, Waiters<K>>>,
}

impl<K: Kernel> Among<K> {
    /// All that tasks of `script` use.
    pub fn of(script: &Script) -> Among<K> {
        let mut among =
            Among { channels: BTreeMap::new(), locks: BTreeMap::new(), barriers: BTreeMap::new() };
        script.tasks.iter().for_each(|task| among.add(&task.steps));
        among
    }

    fn add(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Wait(number)
                | Step::Post(number)
                | Step::Notify(number)
                | Step::Broadcast(number) => {
                    let new = || Guarded::new(Channel { stored: 0, waiters: VecDeque::new() });
                    self.channels.entry(*number).or_insert_with(new);
                }
                Step::Lock(number) | Step::Spin(number) | Step::Unlock(number) => {
                    let new = || Guarded::new(Lock { holder: None, waiters: VecDeque::new() });
                    self.locks.entry(*number).or_insert_with(new);
                }
                Step::Meet { barrier, .. } => {
                    self.barriers.entry(*barrier).or_insert_with(|| Guarded::new(VecDeque::new()));
                }
                Step::Repeat(_, steps) => self.add(steps),
                _ => {}
            }
        }
    }

    /// Takes a signal, or waits for one. Returns how long it was blocked.
    pub fn wait(&self, channel: u32) -> Option<Blocked> {
        let waiter = self.channels[&channel].with(|channel| {
            if channel.stored > 0 {
                channel.stored -= 1;
                return None;
            }
            let waiter = Waiter::new();
            channel.waiters.push_back(waiter.clone());
            Some(waiter)
        });
        waiter.and_then(|waiter| waiter.wait::<K>())
    }

    /// Wakes the first that waits. Without one, the signal is stored, if it is to be.
    pub fn signal(&self, channel: u32, is_stored: bool) {
        let first = self.channels[&channel].with(|channel| {
            let first = channel.waiters.pop_front();
            channel.stored += u64::from(first.is_none() && is_stored);
            first
        });
        if let Some(first) = first {
            first.let_go::<K>();
        }
    }

    /// Wakes all that wait.
    pub fn broadcast(&self, channel: u32) {
        let all = self.channels[&channel].with(|channel| mem::take(&mut channel.waiters));
        all.iter().for_each(|waiter| waiter.let_go::<K>());
    }

    /// Has the task of this number take a lock, or wait until it is handed over: on the CPU, if it
    /// is to spin. Returns how long it was blocked.
    pub fn lock(&self, lock: u32, task: usize, spins: bool) -> Option<Blocked> {
        let waiter = self.locks[&lock].with(|lock| {
            if lock.holder.is_none() {
                lock.holder = Some(task);
                return None;
            }
            let waiter = Waiter::new();
            lock.waiters.push_back((task, waiter.clone()));
            Some(waiter)
        });
        match waiter {
            Some(waiter) if spins => {
                waiter.spin();
                None
            }
            Some(waiter) => waiter.wait::<K>(),
            None => None,
        }
    }

    /// Hands a lock over, if the task of this number holds it.
    pub fn unlock(&self, lock: u32, task: usize) {
        let next = self.locks[&lock].with(|lock| {
            if lock.holder != Some(task) {
                return None;
            }
            let next = lock.waiters.pop_front();
            lock.holder = next.as_ref().map(|(task, _)| *task);
            next
        });
        if let Some((_, waiter)) = next {
            waiter.let_go::<K>();
        }
    }

    /// Waits until `tasks` have come to a barrier. Returns how long it was blocked.
    pub fn meet(&self, barrier: u32, tasks: u32) -> Option<Blocked> {
        let came = self.barriers[&barrier].with(|waiters| {
            if waiters.len() as u64 + 1 == u64::from(tasks) {
                return Err(mem::take(waiters));
            }
            let waiter = Waiter::new();
            waiters.push_back(waiter.clone());
            Ok(waiter)
        });
        match came {
            Ok(waiter) => waiter.wait::<K>(),
            Err(others) => {
                others.iter().for_each(|waiter| waiter.let_go::<K>());
                None
            }
        }
    }
}
