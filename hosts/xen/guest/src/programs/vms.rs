//! The virtual machines of an experiment.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use anysched_wire::domains::{self, Domain, Read};

use super::{Own, Plan, Post};
use crate::machine::{self, Texts, Times};
use crate::pools::Pool;
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
    let ends: Vec<u32> = machines
        .iter()
        .flat_map(|machine| machine.domain.ports.iter().map(|way| way.machine))
        .collect();
    machines.into_iter().enumerate().map(|(number, machine)| plan(number, machine, &ends)).collect()
}

/// Domains are known by number: names of machines may be anything. Messages are sent to `ends`.
fn plan<'a>(number: usize, machine: Read<'a>, ends: &[u32]) -> Result<Plan<'a>, String> {
    let mail = machine.mail();
    let Read { domain, texts, start, script } = machine;
    let Domain { name, vcpus, weight, cap, period, cpus, preferred, begin, stop, ports } = domain;
    if vcpus as usize > smp::MOST {
        return Err(format!(
            "machine {name}: a domain has {} vCPUs at most, not {vcpus}",
            smp::MOST
        ));
    }
    let micros = |span: u64| u32::try_from(span / 1_000).unwrap_or(u32::MAX);
    let stop = stop.unwrap_or(u64::MAX);
    let is_end = ends.contains(&(number as u32));
    let has_post = is_end || !ports.is_empty() || !mail.is_empty();
    let command = format!(
        "machine start={start} script={script} post={} begin={begin} stop={stop}",
        u32::from(has_post)
    );
    let plan = Plan::new(number.to_string(), command);
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
            preferred,
            pool: Pool::default(),
        },
        begin,
        post: has_post.then_some(Post { ways: ports, mail }),
        ..plan
    })
}

/// Runs a machine.
pub fn run(own: &Own<'_>, info: &'static StartInfo) -> ! {
    let [start, script, post, begin, stop] =
        ["start", "script", "post", "begin", "stop"].map(|name| own.number(name));
    let (start, rest) = info.module().split_at(start as usize);
    let (script, mail) = rest.split_at(script as usize);
    let mailbox = (post == 1).then(|| info.mailbox());
    let texts = Texts { start, script, mail };
    machine::run(&texts, mailbox, Times { begin, stop }, || info.epoch())
}
