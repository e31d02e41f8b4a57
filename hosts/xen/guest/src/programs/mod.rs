//! Programs of domains, and which domains a program of dom0's orders takes.

mod calibrate;
mod cyclictest;
mod echo;
mod ep;
mod hog;
mod search;
mod vms;
mod yields;
mod zip;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hint::black_box;

use anysched_wire::boot::Boot;
use anysched_wire::domains::Way;
use anysched_wire::result::{Message, Task};

use crate::hypercall::{ready, runstates};
use crate::share::Share;
use crate::{StartInfo, report, shared, smp};

/// A domain that is to be built.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Its name.
    pub name: String,
    /// Its program and the arguments of that.
    pub command: String,
    /// What the program reads besides.
    pub module: &'a [u8],
    /// The domain whose number it is told as `peer`.
    pub peer: Option<&'static str>,
    /// How many vCPUs it has.
    pub vcpus: u32,
    /// Bytes of its heap.
    pub heap: usize,
    /// Bytes that it may report.
    pub report: usize,
    /// What schedulers are told of it.
    pub share: Share,
    /// When it is let go, in nanoseconds from the start.
    pub begin: u64,
    /// What it needs for messages, if it sends or gets any.
    pub post: Option<Post<'a>>,
}

/// Messages of a domain.
#[derive(Clone, Debug, Default)]
pub struct Post<'a> {
    /// Where its ports lead.
    pub ways: Vec<Way>,
    /// What comes to it from outside.
    pub mail: &'a str,
}

impl Plan<'_> {
    /// Whether it has work for several vCPUs.
    pub fn is_parallel(&self) -> bool {
        PARALLEL.contains(&self.program())
    }

    fn program(&self) -> &str {
        self.command.split(' ').next().unwrap_or_default()
    }

    fn new(name: impl Into<String>, command: impl Into<String>) -> Plan<'static> {
        Plan {
            name: name.into(),
            command: command.into(),
            module: &[],
            peer: None,
            vcpus: 1,
            heap: 1 << 20,
            report: report::ROOM,
            share: Share::default(),
            begin: 0,
            post: None,
        }
    }
}

/// The program whose domains are those of an experiment.
pub const VMS: &str = "vms";

/// Programs that have several vCPUs do their work.
const PARALLEL: [&str; 2] = ["hog", "ep"];

/// What dom0 builds for a program; `more` is what its orders have behind them.
///
/// Arguments of all programs, each a list with an entry for each domain in order, whose last entry
/// is that of all others: `vcpus`, `weights` (of 256), `caps` (percent of a pCPU), `periods_us` and
/// `budgets_us`, `cpus` and `preferred` (masks of pCPUs).
///
/// Errors: there is no such program, or an argument of it means nothing.
pub fn plans<'a>(boot: &Boot, more: &'a [u8]) -> Result<Vec<Plan<'a>>, String> {
    if boot.program == VMS {
        return vms::plans(more);
    }
    let arguments = Arguments(boot);
    let mut plans = match boot.program.as_str() {
        "calibrate" => calibrate::plans(),
        "hog" => hog::plans(&arguments)?,
        "ep" => ep::plans(&arguments)?,
        "echo" => echo::plans(&arguments)?,
        "cyclictest" => cyclictest::plans(&arguments)?,
        "search" => search::plans(&arguments)?,
        "yield" => yields::plans(&arguments)?,
        "zip" => zip::plans(&arguments)?,
        name => return Err(format!("there is no program `{name}`")),
    };
    let [vcpus, weights, caps, periods, budgets, masks, preferred] =
        ["vcpus", "weights", "caps", "periods_us", "budgets_us", "cpus", "preferred"]
            .map(|name| arguments.list(name));
    let (vcpus, weights, caps, masks, preferred) = (vcpus?, weights?, caps?, masks?, preferred?);
    let (periods, budgets) = (periods?, budgets?);
    if periods.is_empty() != budgets.is_empty() {
        return Err("`periods_us` and `budgets_us` come together".into());
    }
    for (number, plan) in plans.iter_mut().enumerate() {
        let of = |list: &[u64]| list.get(number).or(list.last()).copied();
        let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        let micros = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        plan.vcpus = own_vcpus(plan, of(&vcpus).unwrap_or(1))?;
        let share = &mut plan.share;
        share.weight = of(&weights).map(small);
        share.cap = of(&caps).map(small);
        let period = of(&periods).zip(of(&budgets));
        share.period = period.map(|(p, b)| (micros(p), micros(b)));
        share.affinity = of(&masks).into_iter().collect();
        share.preferred = of(&preferred).into_iter().collect();
    }
    Ok(plans)
}

/// How many vCPUs a domain gets of those that are wanted for it. Errors: there can be none or not
/// so many.
fn own_vcpus(plan: &Plan<'_>, wanted: u64) -> Result<u32, String> {
    if !(1..=smp::MOST as u64).contains(&wanted) {
        return Err(format!("`vcpus` = \"{wanted}\": from 1 to {} are wanted", smp::MOST));
    }
    if wanted > 1 && !plan.is_parallel() {
        let program = plan.program();
        return Err(format!(
            "`vcpus` = \"{wanted}\": domain {} runs `{program}`, which has work for one vCPU: give \
             it 1; several have {}",
            plan.name,
            PARALLEL.join(" and ")
        ));
    }
    Ok(wanted as u32)
}

/// The arguments of a program, in dom0's orders.
pub struct Arguments<'a>(&'a Boot);

impl<'a> Arguments<'a> {
    /// Those of the program that the orders are for.
    pub fn of(boot: &'a Boot) -> Arguments<'a> {
        Arguments(boot)
    }

    /// The number called `name`, or the usual one.
    ///
    /// Errors: it is no number.
    pub fn number(&self, name: &str, usual: u64) -> Result<u64, String> {
        match self.0.argument(name) {
            None => Ok(usual),
            Some(text) => {
                text.parse().map_err(|_| format!("`{name}` = \"{text}\": a whole number is wanted"))
            }
        }
    }

    /// The text called `name`, or the usual one.
    pub fn text<'b>(&'b self, name: &str, usual: &'b str) -> &'b str {
        self.0.argument(name).unwrap_or(usual)
    }

    fn list(&self, name: &str) -> Result<Vec<u64>, String> {
        let Some(text) = self.0.argument(name) else { return Ok(Vec::new()) };
        let wrong = |_| format!("`{name}` = \"{text}\": whole numbers and commas are wanted");
        text.split(',').map(|number| number.trim().parse().map_err(wrong)).collect()
    }
}

/// The arguments of a domain, from its command line.
pub struct Own<'a>(&'a str);

impl Own<'_> {
    /// The number called `name`.
    pub fn number(&self, name: &str) -> u64 {
        let mut pairs = self.0.split(' ').filter_map(|word| word.split_once('='));
        let found = pairs.rfind(|(known, _)| *known == name);
        let Some(number) = found.and_then(|(_, text)| text.parse().ok()) else {
            panic!("the command line has no number `{name}`")
        };
        number
    }
}

/// What a vCPU does, told its number. Returns how much of it there was.
type Work = Box<dyn Fn(usize) -> u64 + Sync>;

/// Runs the program of a domain.
pub fn run(info: &'static StartInfo) -> ! {
    let mut words = info.command_line().splitn(3, ' ');
    let (_name, program) = (words.next(), words.next().unwrap_or_default());
    let own = Own(words.next().unwrap_or_default());
    let work = match program {
        "calibrate-yield" => calibrate::yield_work(&own),
        "calibrate-wake" => calibrate::wake_work(&own),
        "calibrate-compute" => calibrate::compute_work(&own),
        "calibrate-sleep" => calibrate::sleep_work(&own),
        "hog" => hog::work(&own),
        "ep" => ep::work(&own),
        "echo-server" => echo::serve(&own),
        "echo-client" => echo::ask(&own),
        "cyclictest" => cyclictest::work(&own),
        "search-server" => search::serve(&own),
        "yield" => yields::work(&own),
        "zip" => zip::work(&own),
        "machine" => vms::run(&own, info),
        _ => panic!("there is no program `{program}` for domains"),
    };
    ready();
    smp::run(Box::new(move |vcpu| measured(vcpu, &work)), Box::new(|| ()))
}

/// Has a vCPU do its work and says what became of it: by number, if there are several.
fn measured(vcpu: usize, work: &Work) {
    let first = shared::now();
    let before = runstates(vcpu);
    let groups = work(vcpu);
    let after = runstates(vcpu);
    report::say(&Message::Task(Task {
        name: if smp::count() == 1 { "-".to_string() } else { vcpu.to_string() },
        arrival: 0,
        first,
        finish: shared::now(),
        groups,
        slept: after[2] - before[2],
        service: Some(after[0] - before[0]),
        dispatches: None,
    }));
}

/// Computes for a moment: some thousand instructions.
pub fn compute() {
    let mut sum = 0_u64;
    for number in 0..1_000_u64 {
        sum = black_box(sum.wrapping_add(number));
    }
}

/// Domains that only compute, beside others.
fn hogs(count: u64, duration: u64) -> impl Iterator<Item = Plan<'static>> {
    (1..=count).map(move |number| computing(&format!("hog{number}"), duration))
}

/// A domain that only computes, for `duration` nanoseconds.
pub fn computing(name: &str, duration: u64) -> Plan<'static> {
    Plan::new(name, format!("hog duration={duration}"))
}

/// A domain that wakes up `loops` times, every `interval` microseconds.
pub fn waking(name: &str, loops: u64, interval: u64) -> Plan<'static> {
    Plan::new(name, format!("cyclictest loops={loops} interval={interval} work=0"))
}

/// The values of a distribution, in the report.
fn summarise(name: &str, mut samples: Vec<u64>) {
    samples.sort_unstable();
    let Some(&max) = samples.last() else { return };
    let count = samples.len();
    let percentile = |percent: usize| samples[(count * percent).div_ceil(100).max(1) - 1];
    for percent in [50, 90, 99] {
        report::value(&format!("{name}_p{percent}_ns"), percentile(percent));
    }
    report::value(&format!("{name}_max_ns"), max);
    report::value(&format!("{name}_mean_ns"), samples.iter().sum::<u64>() / count as u64);
    report::value(&format!("{name}_count"), count as u64);
}
