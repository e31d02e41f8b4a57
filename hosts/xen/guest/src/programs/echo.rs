//! A domain that asks another for an answer, again and again, as ping does, beside others that
//! compute.
//!
//! Arguments: `count`, how often it asks; `interval_us` between two questions; `work_ns`, what an
//! answer takes; `hogs`, how many others compute; `busy=1` has the server compute, too, while
//! nobody asks.
//!
//! Values: `client.round_trip_…_ns`; each is a sample, `latency_ns`.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Arguments, Own, Plan, Work, compute, hogs, summarise};
use crate::events::Port;
use crate::hypercall::{poll, write};
use crate::report;
use crate::shared::now;

/// The first port of a domain.
const SERVER_PORT: u32 = 1;

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
    let work = arguments.number("work_ns", 20_000)?;
    asked(arguments, &format!("echo-server work={work}"))
}

/// A server whose program is `serve`, who asks it, and domains that compute. dom0 builds the client
/// second, so that the server knows it by number.
pub fn asked(arguments: &Arguments<'_>, serve: &str) -> Result<Vec<Plan<'static>>, String> {
    let count = arguments.number("count", 200)?;
    let interval = arguments.number("interval_us", 5_000)?;
    let busy = arguments.number("busy", 0)?;
    let others = arguments.number("hogs", 4)?;
    let ask = format!("echo-client count={count} interval={interval}");
    let mut plans = Vec::new();
    let serve = format!("{serve} count={count} busy={busy} client=2");
    let server = Plan::new("server", serve);
    let mut client = Plan::new("client", ask);
    client.peer = Some("server");
    plans.push(server);
    plans.push(client);
    plans.extend(hogs(others, (count + 20) * interval * 1_000));
    Ok(plans)
}

/// Answers. Counts how often.
pub fn serve(own: &Own<'_>) -> Work {
    let work = own.number("work");
    answering(own, move |_| {
        let end = now() + work;
        while now() < end {
            compute();
        }
    })
}

/// Answers each question, told its number, by `answer`. Counts them.
pub fn answering(own: &Own<'_>, answer: impl Fn(u64) + Sync + 'static) -> Work {
    let [count, busy, client] = ["count", "busy", "client"].map(|name| own.number(name));
    let port = match Port::for_domain(client as u16) {
        Ok(port) if port.0 == SERVER_PORT => port,
        other => panic!("the server has no first port: {other:?}"),
    };
    Box::new(move |_| {
        for question in 0..count {
            while !port.take() {
                if busy == 0 {
                    poll(&mut [port.0], 0);
                } else {
                    compute();
                }
            }
            answer(question);
            if port.send().is_err() {
                write("the client has gone\n");
            }
        }
        count
    })
}

/// Asks. Counts how often.
pub fn ask(own: &Own<'_>) -> Work {
    let [count, interval, server] = ["count", "interval", "peer"].map(|name| own.number(name));
    Box::new(move |_| {
        // The server has got there: all domains have, before one of them goes on.
        let port = Port::bound_to(server as u16, SERVER_PORT)
            .unwrap_or_else(|error| panic!("the server has no port: {error:?}"));
        let mut trips = Vec::with_capacity(count as usize);
        let mut next = now();
        for _ in 0..count {
            next += interval * 1_000;
            while now() < next {
                poll(&mut [], next);
            }
            let begin = now();
            let _ = port.send();
            while !port.take() {
                poll(&mut [port.0], 0);
            }
            let trip = now() - begin;
            trips.push(trip);
            report::sample("latency_ns", trip);
        }
        summarise("round_trip", trips);
        count
    })
}
