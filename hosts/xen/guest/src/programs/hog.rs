//! Domains that do nothing but compute.
//!
//! Arguments: `domains`, how many; `duration_ns` of each.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Arguments, Own, Plan, compute, hogs};
use crate::shared::now;

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan>, String> {
    let domains = arguments.number("domains", 4)?;
    let duration = arguments.number("duration_ns", 500_000_000)?;
    Ok(hogs(domains, duration).collect())
}

/// Returns how often it has computed.
pub fn run(own: &Own<'_>) -> u64 {
    let end = now() + own.number("duration");
    let mut done = 0;
    while now() < end {
        compute();
        done += 1;
    }
    done
}
