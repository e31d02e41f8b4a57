//! What scheduling costs on this machine, for simulations of it. The domains of each measurement
//! have the machine to themselves for a while.
//!
//! Values, in picoseconds unless they count:
//! - `yield_ps_N`: a yield, while N domains do nothing else, and `yield_switches_N`: how many of a
//!   thousand go to another domain;
//! - `wakeup_ps`: one of two domains wakes the other by an event channel and waits until that wakes
//!   it;
//! - `preempt_ps`: how late at least a domain runs that a timer wakes while no other is ready;
//! - `interrupt_ps`: what a domain that computes loses every 10 ms.

use alloc::boxed::Box;
use alloc::vec::Vec;
use alloc::{format, vec};

use super::{Own, Plan, Work, compute, yields};
use crate::events::Port;
use crate::hypercall::poll;
use crate::report;
use crate::shared::now;

/// How long a measurement may take at most, in nanoseconds.
const TURN: u64 = 400_000_000;

/// How often is yielded by all domains, and woken by each.
const YIELDS: u64 = 4_000;
const WAKEUPS: u64 = 1_000;

/// The first port of a domain.
const FIRST_PORT: u32 = 1;

pub fn plans() -> Vec<Plan<'static>> {
    let alone = Plan::new("alone", "calibrate-yield domains=1 tells=1");
    let among = (1..=4).map(|number| {
        let tells = u64::from(number == 1);
        Plan::new(format!("yields{number}"), format!("calibrate-yield domains=4 tells={tells}"))
    });
    // dom0 builds the first domain as number 1: the waker that waits first is the second.
    let waits = Plan::new("waits", "calibrate-wake first=0 other=2");
    let wakes = Plan { peer: Some("waits"), ..Plan::new("wakes", "calibrate-wake first=1") };
    let computes = Plan::new("computes", "calibrate-compute");
    let sleeps = Plan::new("sleeps", "calibrate-sleep");
    let turns = [vec![waits, wakes], vec![alone], among.collect(), vec![computes], vec![sleeps]];
    let begin = |(turn, plans): (usize, Vec<Plan<'static>>)| {
        plans.into_iter().map(move |plan| Plan { begin: turn as u64 * TURN, ..plan })
    };
    turns.into_iter().enumerate().flat_map(begin).collect()
}

/// Yields.
pub fn yield_work(own: &Own<'_>) -> Work {
    let [domains, tells] = ["domains", "tells"].map(|name| own.number(name));
    Box::new(move |_| {
        let time = yields::time(domains, YIELDS / domains);
        let switches = yields::switches();
        if tells == 1 {
            report::value(&format!("yield_ps_{domains}"), time * 1_000);
            report::value(&format!("yield_switches_{domains}"), switches);
        }
        YIELDS
    })
}

/// Wakes the other domain and waits for it, in turns.
pub fn wake_work(own: &Own<'_>) -> Work {
    let first = own.number("first") == 1;
    // Before any domain goes on, both have got here: the first built has its port.
    let port = (!first).then(|| Port::for_domain(own.number("other") as u16));
    let peer = first.then(|| own.number("peer") as u16);
    Box::new(move |_| {
        let port = match (&port, peer) {
            (Some(Ok(port)), _) => *port,
            (_, Some(peer)) => Port::bound_to(peer, FIRST_PORT)
                .unwrap_or_else(|error| panic!("the other domain has no port: {error:?}")),
            other => panic!("there is no port to wait at: {other:?}"),
        };
        let begin = now();
        for _ in 0..WAKEUPS {
            if first {
                let _ = port.send();
            }
            while !port.take() {
                poll(&mut [port.0], 0);
            }
            if !first {
                let _ = port.send();
            }
        }
        if first {
            report::value("wakeup_ps", (now() - begin) * 1_000 / (2 * WAKEUPS));
        }
        WAKEUPS
    })
}

/// Computes while nobody else is there.
pub fn compute_work(_: &Own<'_>) -> Work {
    const INTERVAL: u64 = 10_000_000;
    const INTERVALS: u64 = 20;
    Box::new(|_| {
        let time = |rounds: u64| {
            let begin = now();
            (0..rounds).for_each(|_| compute());
            now() - begin
        };
        // What nothing interrupts is the fastest. What is not in the loop is in both.
        let fastest = |rounds| (0..8).map(|_| time(rounds)).min().unwrap_or(0);
        let thousand = (fastest(1_200) - fastest(200)).max(1);
        let thousands = INTERVALS * INTERVAL / thousand;
        let lost = time(1_000 * thousands).saturating_sub(thousands * thousand);
        report::value("interrupt_ps", lost * 1_000 / INTERVALS);
        INTERVALS
    })
}

/// Sleeps while nobody else is there.
pub fn sleep_work(_: &Own<'_>) -> Work {
    const SLEEPS: u64 = 40;
    // No multiple of a tick, whose interrupt would come at the same time.
    const SPAN: u64 = 3_300_000;
    Box::new(|_| {
        let late = (0..SLEEPS).map(|_| {
            let due = now() + SPAN;
            while now() < due {
                poll(&mut [], due);
            }
            now() - due
        });
        report::value("preempt_ps", late.min().unwrap_or(0) * 1_000);
        SLEEPS
    })
}
