//! A storm: dom0 creates domains, pauses them, changes what they get and where they may run, and
//! destroys them, all by chance.
//!
//! Arguments: `duration_ns`; `domains`, how many there are at most; `gap_ns`, the longest time
//! between two changes; `seed`; `pcpus`, how many the machine has.
//!
//! Values: how often each kind of change was made. In the end all domains that are left are let
//! go, and have to come to their end.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use anysched_core::random::SplitMix64;
use anysched_wire::boot::Boot;
use anysched_wire::result::Message;

use crate::domain::Domain;
use crate::events::Port;
use crate::hypercall::{Shutdown, poll};
use crate::programs::{Arguments, Plan, computing, waking};
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
const KINDS: [&str; 5] = ["created", "destroyed", "paused", "unpaused", "changed"];

struct Storm {
    random: SplitMix64,
    all: Vec<One>,
    most: u64,
    pcpus: u64,
    made: u64,
    counts: [u64; KINDS.len()],
}

/// Makes the storm that the orders are for. Errors: Xen refuses something, or a domain crashes.
pub fn run(boot: &Boot) -> Result<(), String> {
    let arguments = Arguments::of(boot);
    let duration = arguments.number("duration_ns", 1_000_000_000)?;
    let gap = arguments.number("gap_ns", 2_000_000)?;
    let seed = arguments.number("seed", 1)?;
    let mut storm = Storm {
        random: SplitMix64(seed),
        all: Vec::new(),
        most: arguments.number("domains", 8)?.max(1),
        pcpus: arguments.number("pcpus", 1)?.clamp(1, 64),
        made: 0,
        counts: [0; KINDS.len()],
    };
    let deaths = Port::of_deaths().map_err(|error| format!("dom0 hears nothing: {error:?}"))?;
    let end = now() + duration;
    while now() < end {
        let pause = 1 + storm.random.below(gap.max(1));
        poll(&mut [deaths.0], now() + pause);
        deaths.take();
        storm.look()?;
        storm.change()?;
    }
    storm.calm(deaths)?;
    for (name, number) in KINDS.iter().zip(storm.counts) {
        say(&Message::Value { name: (*name).into(), number });
    }
    Ok(())
}

impl Storm {
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
        self.counts[1] += 1;
        Ok(())
    }

    /// Does one thing.
    fn change(&mut self) -> Result<(), String> {
        let kind = self.random.below(8);
        if self.all.is_empty() || (kind < 2 && (self.all.len() as u64) < self.most) {
            return self.create();
        }
        let at = self.random.below(self.all.len() as u64) as usize;
        if kind == 2 {
            return self.destroy(at);
        }
        let share = self.share();
        let One { plan, domain, pauses } = &mut self.all[at];
        let (count, result) = match kind {
            0 | 1 | 3 if *pauses < 3 => {
                *pauses += 1;
                (2, domain.pause())
            }
            4 | 5 if *pauses > 0 => {
                *pauses -= 1;
                (3, domain.unpause())
            }
            _ => (4, domain.tell(&share)),
        };
        result.map_err(|error| failed(plan, error))?;
        self.counts[count] += 1;
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
        if plan.is_parallel() {
            plan.vcpus = 1 + self.random.below(3) as u32;
        }
        plan.share = self.share();
        let domain = build_one(&plan, "")?;
        domain.tell(&plan.share).map_err(|error| failed(&plan, error))?;
        domain.unpause().map_err(|error| failed(&plan, error))?;
        self.all.push(One { plan, domain, pauses: 0 });
        self.counts[0] += 1;
        Ok(())
    }

    /// What a domain may get.
    fn share(&mut self) -> Share {
        let mut next = |most: u64| self.random.below(most);
        let cap = [0, 0, 10, 50, 150][next(5) as usize];
        let period = 1_000 << next(6) as u32;
        let budget = period / (1 + next(10) as u32);
        let all = u64::MAX >> (64 - self.pcpus);
        let mask = self.random.bits() & all;
        Share {
            weight: Some(64 << self.random.below(6)),
            cap: Some(cap),
            period: (self.random.below(2) == 0).then_some((period, budget.max(100))),
            affinity: [if mask == 0 { all } else { mask }].into(),
            pool: 0,
        }
    }

    /// Lets all domains go, and waits until they have come to their end.
    fn calm(&mut self, deaths: Port) -> Result<(), String> {
        let fair = Share {
            weight: Some(256),
            cap: Some(0),
            period: Some((10_000, 10_000)),
            affinity: [u64::MAX >> (64 - self.pcpus)].into(),
            pool: 0,
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
            }
            deaths.take();
        }
        Ok(())
    }
}
