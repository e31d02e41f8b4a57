//! A pool of pCPUs, which one instance of a policy schedules.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use anysched_core::params::weight_of_vcpu;
use anysched_core::{Machine, Scheduler, Span, TaskId, TaskParams, Time};
use anysched_vcpus::{Adapter, Counts};
use anysched_wire::option;
use anysched_wire::start::Start;

use crate::log::PoolLog;
use crate::panic::{Line, stop};
use crate::recent::{self, Op, Tag};
use crate::{heap, xen};

/// pCPUs of a pool, at most.
pub const MAX_CPUS: usize = 256;

/// Words of a mask of pCPUs.
const WORDS: usize = MAX_CPUS / 64;

/// Where a pCPU sits. The layout is that of `struct anysched_place` in C.
#[repr(C)]
pub struct Place {
    node: u32,
    socket: u32,
    core: u32,
}

/// What Xen says about a vCPU. The layout is that of `struct anysched_vcpu` in C.
#[repr(C)]
pub struct Vcpu {
    affinity: [u64; WORDS],
    preferred: [u64; WORDS],
    /// Nanoseconds; 0: none.
    period: u64,
    /// Nanoseconds; 0: none.
    budget: u64,
    domain: u32,
    /// Of 256.
    weight: u32,
}

/// The time of a call, and what came of it. The layout is that of `struct anysched_answer` in C.
#[repr(C)]
pub struct Answer {
    /// Nanoseconds since boot; of the call, not of the answer.
    now: u64,
    /// When [`anysched_timer`](crate::anysched_timer) is due; `u64::MAX`: never.
    timer: u64,
    /// Of [`anysched_schedule`](crate::anysched_schedule): the slice in nanoseconds, or `u64::MAX`.
    pub slice: u64,
    /// Likewise: the vCPU, or `u32::MAX`.
    pub task: u32,
}

impl Vcpu {
    /// The domain, as Xen calls it.
    pub fn domain(&self) -> u32 {
        self.domain
    }

    /// As policies know it, on a machine of `cpus` pCPUs.
    pub fn params(&self, cpus: usize) -> TaskParams {
        let span = |ns: u64| (ns > 0).then_some(Span(ns));
        TaskParams {
            weight: weight_of_vcpu(self.weight),
            affinity: anysched_start::affinity(&self.affinity, cpus),
            preferred: anysched_start::affinity(&self.preferred, cpus),
            period: span(self.period),
            budget: span(self.budget),
            relative_deadline: span(self.period),
            ..TaskParams::default()
        }
    }
}

/// A pool of pCPUs.
pub struct Pool {
    name: String,
    number: u8,
    tag: Tag,
    cpus: usize,
    /// By its rule a vCPU may wait for as long as others compute.
    starves: bool,
    adapter: Adapter<Box<dyn Scheduler>>,
}

impl Pool {
    /// A pool as `text` describes it, for a machine of these pCPUs.
    ///
    /// Errors: the text means nothing, or the policy refuses it.
    pub fn new(text: &[u8], places: &[Place], number: u8) -> Result<Box<Pool>, String> {
        let (start, policy, machine) = described(text, places, number)?;
        Ok(Pool::under(&start, policy, &machine, number))
    }

    // In a frame of its own, as `described` is: Xen's stacks have 8 KiB, and policies take some of
    // them to be built.
    #[inline(never)]
    fn under(
        start: &Start,
        policy: Box<dyn Scheduler>,
        machine: &Machine,
        number: u8,
    ) -> Box<Pool> {
        Box::new(Pool {
            name: start.policy.clone(),
            number,
            tag: Tag::of(number),
            cpus: machine.cpus(),
            starves: anysched_start::starves(start),
            adapter: Adapter::new(policy, machine),
        })
    }

    /// The pCPUs of the machine.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// The period of the policy's tick in nanoseconds; 0: it has none.
    pub fn tick_period(&self) -> u64 {
        self.adapter.policy().tick_period().map_or(0, |period| period.0)
    }

    /// The latest time that the policy was told, in nanoseconds since boot: clocks of pCPUs differ
    /// a little, and its time does not go back.
    pub fn now(&self) -> u64 {
        self.adapter.now().0
    }

    /// Whether a vCPU that is ready has to run before long.
    pub fn is_prompt(&self) -> bool {
        !self.starves
    }

    /// A vCPU that is ready and has not run for longer than `limit`: `task` of the answer, and how
    /// long it has not, `slice`.
    pub fn watch(&self, answer: &mut Answer, limit: Span) {
        if let Some((task, waited)) = self.adapter.starving(Time(answer.now), limit) {
            (answer.task, answer.slice) = (task.0, waited.0);
        }
    }

    /// Stops the machine because of what [`watch`](Pool::watch) has found.
    pub fn give_up(&self, answer: &Answer, limit: Span, domain: u32, vcpu: u32) -> ! {
        stop(format_args!(
            "policy {} has not run vCPU {vcpu} of domain {domain}, which is ready, for {}: more \
             than {limit} (anysched_watchdog)",
            self.name,
            Span(answer.slice)
        ))
    }

    /// Makes a call and passes on what the policy asks for.
    #[inline]
    pub fn call<R>(
        &mut self,
        op: Op,
        about: u32,
        answer: &mut Answer,
        call: impl FnOnce(&mut Adapter<Box<dyn Scheduler>>, Time) -> R,
    ) -> R {
        recent::note(op, self.tag, about);
        let result = call(&mut self.adapter, Time(answer.now));
        answer.timer = self.adapter.next_timer().map_or(u64::MAX, |due| due.0);
        while let Some(cpu) = self.adapter.take_kick() {
            xen::anysched_kick(cpu.0.into());
        }
        result
    }

    /// A vCPU gives up its pCPU.
    pub fn yields(&mut self, vcpu: TaskId) {
        self.adapter.yields(vcpu);
    }

    /// A domain has gone.
    pub fn disband(&mut self, domain: u32) {
        self.adapter.disband(domain);
    }

    /// Prints how the pool is doing.
    pub fn dump(&self) {
        let (used, all) = heap::usage();
        let counts = self.adapter.counts();
        let line = Line::of(format_args!(
            "anysched: pool {} under {}: {counts:?}; {used} of {all} bytes of memory in use",
            self.number, self.name
        ));
        xen::print(line.as_str());
        self.tell();
    }

    /// Says what was counted so far, as [messages](anysched_wire::result).
    fn tell(&self) {
        let say = |name: &str, number: u64| {
            let name = format_args!("pool{}.{name}", self.number);
            xen::print(Line::of(format_args!("@value {name} {number}")).as_str());
        };
        let Counts { dispatches, switches, migrations, .. } = *self.adapter.counts();
        say("dispatches", dispatches);
        say("switches", switches);
        say("migrations", migrations);
        self.adapter.policy().tally(&mut |name, number| {
            say(Line::of(format_args!("policy.{name}")).as_str(), number);
        });
    }
}

/// What `text` describes, for a machine of these pCPUs.
///
/// Errors: as [`Pool::new`].
#[inline(never)]
fn described(
    text: &[u8],
    places: &[Place],
    number: u8,
) -> Result<(Start, Box<dyn Scheduler>, Machine), String> {
    let text = core::str::from_utf8(text).map_err(|_| "the option is not UTF-8")?;
    let mut start = option::read(text).map_err(|error| error.to_string())?;
    if places.len() > MAX_CPUS {
        return Err(format!("there are {} pCPUs, more than {MAX_CPUS}", places.len()));
    }
    start.cpus = numbered(places);
    let machine = anysched_start::machine(&start)?;
    let policy = anysched_start::policy(&start, &machine, PoolLog(number))?;
    Ok((start, policy, machine))
}

/// Core, last-level cache, package, node and capacity of each pCPU, in numbers without gaps. Xen
/// knows nothing of caches: a socket is taken to have one.
fn numbered(places: &[Place]) -> Vec<[u16; 5]> {
    let mut known: [Vec<[u32; 3]>; 3] = Default::default();
    let mut number = |level: usize, key: [u32; 3]| {
        let known = &mut known[level];
        let at = known.iter().position(|other| *other == key).unwrap_or_else(|| {
            known.push(key);
            known.len() - 1
        });
        at as u16
    };
    let number = |&Place { node, socket, core }: &Place| {
        let node_number = number(0, [node, 0, 0]);
        let socket_number = number(1, [node, socket, 0]);
        let core_number = number(2, [node, socket, core]);
        [core_number, socket_number, socket_number, node_number, 1024]
    };
    places.iter().map(number).collect()
}
