//! cpupools, and pCPUs that come and go.

use crate::control::{Failed, Naming, sysctl};
use crate::hypercall::{Errno, at, poll};
use crate::shared::now;

/// A cpupool, by Xen's number. The one that Xen makes, which all pCPUs are in at first, has 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pool(pub u32);

/// A scheduler, by Xen's number (public/domctl.h); 4 is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduler(pub u32);

impl Scheduler {
    /// Whether domains have weights and caps.
    pub fn has_weights(self) -> bool {
        matches!(self.0, 4..=6)
    }

    /// Whether vCPUs have periods and budgets.
    pub fn has_periods(self) -> bool {
        matches!(self.0, 4 | 8)
    }
}

/// What is asked of cpupools (public/sysctl.h).
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
enum What {
    Create = 1,
    Destroy = 2,
    Info = 3,
    AddCpu = 4,
    RemoveCpu = 5,
    MoveDomain = 6,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Call {
    what: u32,
    pool: u32,
    scheduler: u32,
    domain: u32,
    cpu: u32,
    domains: u32,
    map: u64,
    bits: u32,
    pad: u32,
}

/// Makes a call about cpupools.
fn call(what: What, call: Call) -> Result<Call, Errno> {
    call_with_map(what, call).map(|(answer, _)| answer)
}

/// The same. Returns the map of pCPUs in the answer, too, a bit each.
fn call_with_map(what: What, call: Call) -> Result<(Call, [u64; 4]), Errno> {
    const POOL: u32 = 18;
    let mut map = [0_u64; 4];
    let what = what as u32;
    let answer = sysctl(POOL, Call { what, map: at(&mut map), bits: 256, ..call })?;
    Ok((answer, map))
}

impl Call {
    fn of(pool: Pool) -> Call {
        Call { pool: pool.0, ..Call::default() }
    }
}

impl Pool {
    /// A new pool, with no pCPU yet.
    pub fn create(scheduler: Scheduler) -> Result<Pool, Failed> {
        const ANY: u32 = u32::MAX;
        let asked = Call { scheduler: scheduler.0, ..Call::of(Pool(ANY)) };
        let made = call(What::Create, asked).of("create a cpupool")?;
        Ok(Pool(made.pool))
    }

    /// Ends it. It has no pCPUs and no domains.
    pub fn destroy(self) -> Result<(), Failed> {
        again(|| call(What::Destroy, Call::of(self))).of("destroy a cpupool").map(drop)
    }

    /// Its scheduler.
    pub fn scheduler(self) -> Result<Scheduler, Failed> {
        let told = call(What::Info, Call::of(self)).of("ask about a cpupool")?;
        Ok(Scheduler(told.scheduler))
    }

    /// How many domains it has, with those that are gone but not forgotten.
    pub fn domains(self) -> Result<u32, Failed> {
        Ok(call(What::Info, Call::of(self)).of("ask about a cpupool")?.domains)
    }

    /// How many pCPUs it has.
    pub fn pcpus(self) -> Result<u32, Failed> {
        let (_, map) = call_with_map(What::Info, Call::of(self)).of("ask about a cpupool")?;
        Ok(map.into_iter().map(u64::count_ones).sum())
    }

    /// Gives it a pCPU that is in no pool.
    pub fn add(self, cpu: u32) -> Result<(), Failed> {
        let asked = Call { cpu, ..Call::of(self) };
        call(What::AddCpu, asked).of("add a pCPU to a cpupool").map(drop)
    }

    /// Takes a pCPU from it, not its last one if it has domains.
    pub fn remove(self, cpu: u32) -> Result<(), Failed> {
        let asked = Call { cpu, ..Call::of(self) };
        let done = again(|| call(What::RemoveCpu, asked));
        done.of("remove a pCPU from a cpupool").map(drop)
    }

    /// Has a domain of another pool be in this one.
    pub fn take(self, domain: u16) -> Result<(), Failed> {
        let asked = Call { domain: domain.into(), ..Call::of(self) };
        call(What::MoveDomain, asked).of("move a domain to another cpupool").map(drop)
    }
}

/// Takes a pCPU of the first pool, or of none, out of use.
pub fn unplug(cpu: u32) -> Result<(), Failed> {
    again(|| plug_call(cpu, 1)).of("take a pCPU out of use").map(drop)
}

/// Takes it into use again; it is in the first pool then.
pub fn plug(cpu: u32) -> Result<(), Failed> {
    again(|| plug_call(cpu, 0)).of("take a pCPU into use").map(drop)
}

fn plug_call(cpu: u32, what: u32) -> Result<[u32; 2], Errno> {
    const HOTPLUG: u32 = 11;
    sysctl(HOTPLUG, [cpu, what])
}

/// How often it is tried again, and after which time, in ns.
const TRIES: u32 = 200;
const PAUSE: u64 = 1_000_000;

/// Makes a call until nothing stands in its way that passes, such as a vCPU that is about to leave,
/// or a domain that is being taken to pieces.
fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut answer = call();
    for _ in 0..TRIES {
        if !matches!(&answer, Err(errno) if errno.is_passing()) {
            break;
        }
        poll(&mut [], now() + PAUSE);
        answer = call();
    }
    answer
}
