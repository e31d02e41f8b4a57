//! A domain that wakes at absolute times, beside others that compute, as cyclictest does.
//!
//! Arguments: `l`, loops; `i`, the interval in microseconds; `work_ns`, for how long it computes
//! each time; `hogs`, how many others compute.
//!
//! Values: `cyclictest.wakeup_…_ns` from the time at which it was to wake until it runs; each is a
//! sample, too.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use super::{Arguments, Own, Plan, Work, compute, hogs, summarise};
use crate::hypercall::poll;
use crate::report;
use crate::shared::now;

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
    let loops = arguments.number("l", 500)?;
    let interval = arguments.number("i", 1_000)?;
    let work = arguments.number("work_ns", 0)?;
    let others = arguments.number("hogs", 4)?;
    let command = format!("cyclictest loops={loops} interval={interval} work={work}");
    let mut plans = vec![Plan::new("cyclictest", command)];
    // As long as it should take, and a bit more.
    plans.extend(hogs(others, (loops + 50) * interval * 1_000));
    Ok(plans)
}

/// Counts how often it has woken.
pub fn work(own: &Own<'_>) -> Work {
    let [loops, interval, work] = ["loops", "interval", "work"].map(|name| own.number(name));
    Box::new(move |_| {
        wake_up(loops, interval * 1_000, work);
        loops
    })
}

fn wake_up(loops: u64, interval: u64, work: u64) {
    let mut next = now() + interval;
    let mut delays = Vec::with_capacity(loops as usize);
    for _ in 0..loops {
        while now() < next {
            poll(&mut [], next);
        }
        let delay = now() - next;
        delays.push(delay);
        report::sample("wakeup_ns", delay);
        let end = now() + work;
        while now() < end {
            compute();
        }
        // Wake-ups that were missed do not count as late: the next is an interval away.
        next += interval;
        let late = now();
        if next < late {
            next = late + interval;
        }
    }
    summarise("wakeup", delays);
}
