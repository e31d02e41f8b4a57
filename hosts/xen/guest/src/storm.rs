//! A storm: dom0 creates domains, pauses them, changes what they get and where they may run, moves
//! them to another cpupool, and destroys them, while pCPUs change their pool, go, and come back,
//! all by chance.
//!
//! Arguments: `duration_ns`; `domains`, how many there are at most; `gap_ns`, the longest time
//! between two changes; `seed`; `pcpus`, how many the machine has.
//!
//! While Xen records what happens, all pCPUs stay in use: one that comes back has no buffer.
//!
//! Values: how often each kind of change was made. In the end all domains that are left are let
//! go on all pCPUs, and have to come to their end.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use anysched_core::random::SplitMix64;
use anysched_wire::boot::Boot;
use anysched_wire::result::Message;

use crate::control::Failed;
use crate::domain::Domain;
use crate::events::Port;
use crate::hypercall::{Shutdown, poll};
use crate::pools::{Pool, Scheduler, plug, unplug};
use crate::programs::{Arguments, Plan, computing, waking};
use crate::records::Records;
use crate::share::Share;
use crate::shared::now;
use crate::toolstack::{build_one, crashed, failed, say};

/// The program's name.
pub const NAME: &str = "storm";

/// A domain, and how often it is paused.
struct One {
    plan: Plan<'static>,
    domain: Domain,
    pauses: u32,
}

/// What is done, and how often it was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Created,
    Destroyed,
    Paused,
    Unpaused,
    Changed,
    /// To another cpupool.
    Moved,
    /// A pCPU to a cpupool, or from one.
    PcpuMoved,
    /// A pCPU went or came back.
    Hotplug,
    /// A cpupool.
    PoolCreated,
}

const NAMES: [(Kind, &str); 9] = [
    (Kind::Created, "created"),
    (Kind::Destroyed, "destroyed"),
    (Kind::Paused, "paused"),
    (Kind::Unpaused, "unpaused"),
    (Kind::Changed, "changed"),
    (Kind::Moved, "moved"),
    (Kind::PcpuMoved, "pcpus_moved"),
    (Kind::Hotplug, "hotplugs"),
    (Kind::PoolCreated, "pools_created"),
];

/// Where a pCPU is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In Xen's own pool.
    First,
    Other,
    /// In none.
    Free,
    Unplugged,
}

struct Storm<'a> {
    records: &'a mut Records,
    random: SplitMix64,
    all: Vec<One>,
    most: u64,
    /// Where each pCPU is. The first stays where it is.
    pcpus: Vec<Place>,
    /// Beside Xen's own pool, with the same scheduler.
    other: Option<Pool>,
    made: u64,
    counts: [u64; NAMES.len()],
}

/// Makes the storm that the orders are for. Errors: Xen refuses something, or a domain crashes.
pub fn run(boot: &Boot, records: &mut Records) -> Result<(), String> {
    let arguments = Arguments::of(boot);
    let duration = arguments.number("duration_ns", 1_000_000_000)?;
    let gap = arguments.number("gap_ns", 2_000_000)?;
    let seed = arguments.number("seed", 1)?;
    let mut ports: Vec<u32> = records.port().into_iter().collect();
    let mut storm = Storm {
        records,
        random: SplitMix64(seed),
        all: Vec::new(),
        most: arguments.number("domains", 8)?.max(1),
        pcpus: vec![Place::First; arguments.number("pcpus", 1)?.clamp(1, 64) as usize],
        other: None,
        made: 0,
        counts: [0; NAMES.len()],
    };
    let deaths = Port::of_deaths().map_err(|error| format!("dom0 hears nothing: {error:?}"))?;
    ports.push(deaths.0);
    let end = now() + duration;
    while now() < end {
        let pause = 1 + storm.random.below(gap.max(1));
        poll(&mut ports, now() + pause);
        deaths.take();
        storm.records.look()?;
        storm.look()?;
        storm.change()?;
    }
    storm.calm(deaths)?;
    for (kind, name) in NAMES {
        say(&Message::Value { name: name.into(), number: storm.counts[kind as usize] });
    }
    Ok(())
}

impl Storm<'_> {
    /// Lets domains go that are ready, and destroys those that have ended.
    fn look(&mut self) -> Result<(), String> {
        let mut at = 0;
        while at < self.all.len() {
            let One { plan, domain, .. } = &self.all[at];
            let why = domain.shut_down().map_err(|error| failed(plan, error))?;
            match why {
                Some(why) if why == Shutdown::Suspend as u32 => {
                    domain.resume().map_err(|error| failed(plan, error))?;
                }
                Some(why) if why == Shutdown::PowerOff as u32 => {
                    self.destroy(at)?;
                    continue;
                }
                Some(why) => return Err(crashed(plan, domain, why)),
                None => {}
            }
            at += 1;
        }
        Ok(())
    }

    fn destroy(&mut self, at: usize) -> Result<(), String> {
        let One { plan, domain, .. } = self.all.swap_remove(at);
        domain.destroy().map_err(|error| failed(&plan, error))?;
        self.count(Kind::Destroyed);
        Ok(())
    }

    fn count(&mut self, kind: Kind) {
        self.counts[kind as usize] += 1;
    }

    /// Does one thing.
    fn change(&mut self) -> Result<(), String> {
        if self.pcpus.len() > 1 && self.random.below(6) == 0 {
            return self.change_pcpu().map_err(refused);
        }
        let kind = self.random.below(9);
        if self.all.is_empty() || (kind < 2 && (self.all.len() as u64) < self.most) {
            return self.create();
        }
        let at = self.random.below(self.all.len() as u64) as usize;
        if kind == 2 {
            return self.destroy(at);
        }
        if kind == 8 && self.pcpus.contains(&Place::Other) {
            return self.move_to_other_pool(at).map_err(refused);
        }
        let share = self.share(self.all[at].plan.share.pool);
        let One { plan, domain, pauses } = &mut self.all[at];
        let (kind, result) = match kind {
            0 | 1 | 3 if *pauses < 3 => {
                *pauses += 1;
                (Kind::Paused, domain.pause())
            }
            4 | 5 if *pauses > 0 => {
                *pauses -= 1;
                (Kind::Unpaused, domain.unpause())
            }
            _ => (Kind::Changed, domain.tell(&share)),
        };
        result.map_err(|error| failed(plan, error))?;
        self.count(kind);
        Ok(())
    }

    /// Has the domain at `at` be in the other pool of the two.
    fn move_to_other_pool(&mut self, at: usize) -> Result<(), Failed> {
        let from = self.all[at].plan.share.pool;
        let to = self.other.filter(|other| *other != from).unwrap_or_default();
        self.move_to(at, to)
    }

    fn move_to(&mut self, at: usize, pool: Pool) -> Result<(), Failed> {
        self.forget()?;
        let One { plan, domain, .. } = &mut self.all[at];
        pool.take(domain.number)?;
        plan.share.pool = pool;
        self.count(Kind::Moved);
        Ok(())
    }

    /// Waits until Xen has forgotten the domains that are gone. It does so on whatever pCPU, with a
    /// lock that the move of a domain has while it waits for the vCPU that is on that pCPU: neither
    /// ends (complete_domain_destroy and sched_move_domain of 4.20).
    fn forget(&self) -> Result<(), Failed> {
        let known = 1 + self.all.len() as u32;
        let pools = || core::iter::once(Pool::default()).chain(self.other);
        while pools().try_fold(0, |sum, pool| Ok(sum + pool.domains()?))? > known {
            poll(&mut [], now() + 100_000);
        }
        Ok(())
    }

    /// A pCPU goes, comes back, or changes its pool.
    fn change_pcpu(&mut self) -> Result<(), Failed> {
        let cpu = 1 + self.random.below(self.pcpus.len() as u64 - 1) as u32;
        let first = self.random.below(2) == 0;
        match self.pcpus[cpu as usize] {
            Place::First | Place::Free if first && !self.records.are_wanted() => {
                unplug(cpu)?;
                self.put(cpu, Place::Unplugged, Kind::Hotplug);
            }
            Place::First => {
                Pool::default().remove(cpu)?;
                self.put(cpu, Place::Free, Kind::PcpuMoved);
            }
            Place::Free => {
                self.other()?.add(cpu)?;
                self.put(cpu, Place::Other, Kind::PcpuMoved);
            }
            Place::Other => self.take_from_other(cpu, first)?,
            Place::Unplugged => {
                plug(cpu)?;
                self.put(cpu, Place::First, Kind::Hotplug);
            }
        }
        Ok(())
    }

    fn put(&mut self, cpu: u32, place: Place, kind: Kind) {
        self.pcpus[cpu as usize] = place;
        self.count(kind);
    }

    /// The pool beside Xen's own.
    fn other(&mut self) -> Result<Pool, Failed> {
        if let Some(other) = self.other {
            return Ok(other);
        }
        let scheduler: Scheduler = Pool::default().scheduler()?;
        let other = Pool::create(scheduler)?;
        self.count(Kind::PoolCreated);
        Ok(*self.other.insert(other))
    }

    /// Takes a pCPU from the other pool, which ends with its last one.
    fn take_from_other(&mut self, cpu: u32, back: bool) -> Result<(), Failed> {
        let Some(other) = self.other else { return Ok(()) };
        let is_last = self.pcpus.iter().filter(|place| **place == Place::Other).count() == 1;
        if is_last {
            for at in 0..self.all.len() {
                if self.all[at].plan.share.pool == other {
                    self.move_to(at, Pool::default())?;
                }
            }
        }
        other.remove(cpu)?;
        self.put(cpu, Place::Free, Kind::PcpuMoved);
        if is_last {
            self.other = None;
            other.destroy()?;
        }
        if back {
            Pool::default().add(cpu)?;
            self.put(cpu, Place::First, Kind::PcpuMoved);
        }
        Ok(())
    }

    fn create(&mut self) -> Result<(), String> {
        self.made += 1;
        let name = format!("storm{}", self.made);
        let length = 5_000_000 + self.random.below(100_000_000);
        let mut plan = match self.random.below(3) {
            0 => waking(&name, 200, 500),
            _ => computing(&name, length),
        };
        // What is built more quickly leaves more time for the rest.
        (plan.heap, plan.report) = (64 << 10, 16 << 10);
        if plan.is_parallel() {
            plan.vcpus = 1 + self.random.below(3) as u32;
        }
        let pool = match self.other {
            Some(other) if self.pcpus.contains(&Place::Other) && self.random.below(2) == 0 => other,
            _ => Pool::default(),
        };
        plan.share = self.share(pool);
        let domain = build_one(&plan, "")?;
        domain.tell(&plan.share).map_err(|error| failed(&plan, error))?;
        domain.unpause().map_err(|error| failed(&plan, error))?;
        self.records.name(domain.number, &name);
        self.all.push(One { plan, domain, pauses: 0 });
        self.count(Kind::Created);
        Ok(())
    }

    /// What a domain in `pool` may get.
    fn share(&mut self, pool: Pool) -> Share {
        let place = if self.other == Some(pool) { Place::Other } else { Place::First };
        let usable = (0..64).zip(&self.pcpus).filter(|(_, other)| **other == place);
        let usable = usable.fold(0, |mask, (cpu, _)| mask | 1 << cpu);
        let mut next = |most: u64| self.random.below(most);
        let cap = [0, 0, 10, 50, 150][next(5) as usize];
        let period = 1_000 << next(6) as u32;
        let budget = period / (1 + next(10) as u32);
        let mask = self.random.bits();
        // Few of the bits are of pCPUs that there are, sometimes none.
        let preferred = self.random.bits() & self.random.bits();
        Share {
            weight: Some(64 << self.random.below(6)),
            cap: Some(cap),
            period: (self.random.below(2) == 0).then_some((period, budget.max(100))),
            affinity: [if mask & usable == 0 { u64::MAX } else { mask }].into(),
            preferred: [if preferred & 3 == 0 { u64::MAX } else { preferred }].into(),
            pool,
        }
    }

    /// Lets all domains go, on all pCPUs, and waits until they have come to their end.
    fn calm(&mut self, deaths: Port) -> Result<(), String> {
        for cpu in 0..self.pcpus.len() as u32 {
            match self.pcpus[cpu as usize] {
                Place::First => {}
                Place::Other => self.take_from_other(cpu, true).map_err(refused)?,
                Place::Free => Pool::default().add(cpu).map_err(refused)?,
                Place::Unplugged => plug(cpu).map_err(refused)?,
            }
            self.pcpus[cpu as usize] = Place::First;
        }
        let fair = Share {
            weight: Some(256),
            cap: Some(0),
            period: Some((10_000, 10_000)),
            affinity: [u64::MAX].into(),
            preferred: [u64::MAX].into(),
            pool: Pool::default(),
        };
        for One { plan, domain, pauses } in &mut self.all {
            domain.tell(&fair).map_err(|error| failed(plan, error))?;
            for _ in 0..core::mem::take(pauses) {
                domain.unpause().map_err(|error| failed(plan, error))?;
            }
        }
        while !self.all.is_empty() {
            self.look()?;
            if !self.all.is_empty() {
                poll(&mut [deaths.0], now() + 10_000_000);
                self.records.look()?;
            }
            deaths.take();
        }
        Ok(())
    }
}

fn refused(Failed(what, errno): Failed) -> String {
    format!("Xen refused to {what}: error {}", errno.0)
}
