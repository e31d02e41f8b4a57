//! Domains that do nothing but compute.
//!
//! Arguments: `domains`, how many; `duration_ns` of each. All vCPUs of a domain compute.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Arguments, Own, Plan, Work, compute, hogs};
use crate::shared::now;

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
    let domains = arguments.number("domains", 4)?;
    let duration = arguments.number("duration_ns", 500_000_000)?;
    Ok(hogs(domains, duration).collect())
}

/// Each vCPU computes. Counts how often.
pub fn work(own: &Own<'_>) -> Work {
    let duration = own.number("duration");
    Box::new(move |_| {
        let end = now() + duration;
        let mut done = 0;
        while now() < end {
            compute();
            done += 1;
        }
        done
    })
}
