//! Domains that yield again and again: what a switch between them takes.
//!
//! Arguments: `domains`, how many; `count`, how often each yields.
//!
//! Values: `yieldN.switch_ns`, the mean time from the yield of a domain to the return of the next.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Arguments, Own, Plan, Work};
use crate::hypercall::yield_cpu;
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

/// Counts the yields.
pub fn work(own: &Own<'_>) -> Work {
    let [domains, count] = ["domains", "count"].map(|name| own.number(name));
    Box::new(move |_| {
        // Once around, so that all are there.
        yield_cpu();
        let begin = now();
        (0..count).for_each(|_| yield_cpu());
        report::value("switch_ns", (now() - begin) / (count * domains));
        count
    })
}
