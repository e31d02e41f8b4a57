//! The virtual machines of an experiment.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use anysched_wire::domains::{self, Domain, Read};

use super::{Own, Plan};
use crate::machine::{self, Times};
use crate::share::Share;
use crate::{StartInfo, report, smp};

/// Bytes of the heap of a machine: the scheduler's, and for each byte of its texts what becomes of
/// that. A step takes three bytes of text at least, and the list of them grows by doubling.
const HEAP: usize = 8 << 20;
const HEAP_OF_A_BYTE: usize = 24;

/// Bytes of a report for each byte of text: a job takes a dozen of text, and three samples.
const REPORT_OF_A_BYTE: usize = 10;

/// Errors: the text is refused, or a machine cannot be built as it says.
pub fn plans(text: &[u8]) -> Result<Vec<Plan<'_>>, String> {
    let machines = domains::read(text).map_err(|error| error.to_string())?;
    machines.into_iter().enumerate().map(|(number, machine)| plan(number, machine)).collect()
}

/// Domains are known by number: names of machines may be anything.
fn plan<'a>(number: usize, machine: Read<'a>) -> Result<Plan<'a>, String> {
    let Read { domain, texts, start } = machine;
    let Domain { name, vcpus, weight, cap, period, cpus, begin, stop } = domain;
    if vcpus as usize > smp::MOST {
        return Err(format!(
            "machine {name}: a domain has {} vCPUs at most, not {vcpus}",
            smp::MOST
        ));
    }
    let micros = |span: u64| u32::try_from(span / 1_000).unwrap_or(u32::MAX);
    let stop = stop.unwrap_or(u64::MAX);
    let plan =
        Plan::new(number.to_string(), format!("machine start={start} begin={begin} stop={stop}"));
    Ok(Plan {
        module: texts.as_bytes(),
        vcpus,
        heap: HEAP + texts.len() * HEAP_OF_A_BYTE,
        report: report::ROOM + texts.len() * REPORT_OF_A_BYTE,
        share: Share {
            weight: Some(weight),
            cap: Some(cap),
            period: period.map(|(period, budget)| (micros(period), micros(budget))),
            affinity: cpus,
            pool: 0,
        },
        begin,
        ..plan
    })
}

/// Runs a machine.
pub fn run(own: &Own<'_>, info: &'static StartInfo) -> ! {
    let [start, begin, stop] = ["start", "begin", "stop"].map(|name| own.number(name));
    let (start, script) = info.module().split_at(start as usize);
    machine::run(start, script, Times { begin, stop }, || info.epoch())
}
