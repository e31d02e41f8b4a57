//! Sleeps that end when they are due.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Waker};

use anysched_core::Span;
use axtask::WeakAxTaskRef;

/// Until `deadline`, in nanoseconds since boot.
#[cfg(feature = "smp")]
pub use axsched::sleep_until as until;

/// Until `deadline`, in nanoseconds since boot.
#[cfg(not(feature = "smp"))]
pub fn until(deadline: u64) -> impl Future<Output = ()> {
    axsched::interrupt_at(deadline);
    axtask::future::sleep_until(core::time::Duration::from_nanos(deadline))
}

/// The same for the current task, which uses `burst` nanoseconds of CPU time afterwards, before it
/// may block again. The policy learns that when the task is woken.
pub async fn before(deadline: u64, burst: u64) {
    let task = Arc::downgrade(&*axtask::current());
    let mut sleep = pin!(until(deadline));
    poll_fn(|cx| {
        let (task, waker) = (task.clone(), cx.waker().clone());
        let teller = Arc::new(Teller { task, burst: Span(burst), waker });
        sleep.as_mut().poll(&mut Context::from_waker(&Waker::from(teller)))
    })
    .await;
}

/// Wakes a task and says what it is going to use.
struct Teller {
    task: WeakAxTaskRef,
    burst: Span,
    waker: Waker,
}

impl Wake for Teller {
    fn wake(self: Arc<Teller>) {
        if let Some(task) = self.task.upgrade() {
            task.expects(self.burst);
        }
        self.waker.wake_by_ref();
    }
}
