//! Domains that do nothing but compute.
//!
//! Arguments: `domains`, how many; `duration_ns` of each. All vCPUs of a domain compute.
//!
//! Values, of domains with one vCPU: `hogN.cpu_millionths`, how much of a pCPU it got.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Arguments, Own, Plan, Work, compute, hogs};
use crate::hypercall::runstates;
use crate::shared::now;
use crate::{report, smp};

pub fn plans(arguments: &Arguments<'_>) -> Result<Vec<Plan<'static>>, String> {
    let domains = arguments.number("domains", 4)?;
    let duration = arguments.number("duration_ns", 500_000_000)?;
    Ok(hogs(domains, duration).collect())
}

/// Each vCPU computes. Counts how often.
pub fn work(own: &Own<'_>) -> Work {
    let duration = own.number("duration");
    Box::new(move |vcpu| {
        let (begin, before) = (now(), runstates(vcpu)[0]);
        let mut done = 0;
        while now() < begin + duration {
            compute();
            done += 1;
        }
        if smp::count() == 1 {
            let ran = runstates(vcpu)[0] - before;
            report::value("cpu_millionths", ran * 1_000_000 / (now() - begin));
        }
        done
    })
}
