//! Domains that yield again and again: what a switch between them takes.
//!
//! Arguments: `domains`, how many; `count`, how often each yields.
//!
//! Values: `yieldN.yield_ns`, the mean time from the yield of a domain to the return of the next,
//! itself or another; `yieldN.switches_of_1000`, how often it was another.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use super::{Arguments, Own, Plan, Work};
use crate::hypercall::{watch_gets, yield_cpu};
use crate::report;
use crate::shared::now;

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
    let domains = arguments.number("domains", 2)?;
    let count = arguments.number("count", 5_000)?;
    if count == 0 {
        return Err("`count` = \"0\": a number of yields is wanted".into());
    }
    let command = format!("yield domains={domains} count={count}");
    let plan = |number| Plan::new(format!("yield{number}"), command.clone());
    Ok((1..=domains).map(plan).collect())
}

/// Counts the yields that are timed.
pub fn work(own: &Own<'_>) -> Work {
    let [domains, count] = ["domains", "count"].map(|name| own.number(name));
    Box::new(move |_| {
        report::value("yield_ns", time(domains, count));
        report::value("switches_of_1000", switches());
        count
    })
}

/// Yields `count` times, as `domains` do, and returns what a yield has taken.
pub fn time(domains: u64, count: u64) -> u64 {
    // Once around, so that all are there.
    yield_cpu();
    let begin = now();
    (0..count).for_each(|_| yield_cpu());
    (now() - begin) / (count * domains)
}

/// Yields a thousand times. Returns how often another vCPU ran meanwhile.
pub fn switches() -> u64 {
    let got = watch_gets().unwrap_or_else(|error| panic!("Xen does not tell switches: {error:?}"));
    let mut last = got();
    let gets = (0..1_000).filter(|_| {
        yield_cpu();
        mem::replace(&mut last, got()) != last
    });
    gets.count() as u64
}
