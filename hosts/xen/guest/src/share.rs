//! What schedulers are told of a domain.

use alloc::vec::Vec;

use crate::control::{Domctl, Failed, Naming, domctl};
use crate::hypercall::at;
use crate::pools::{Pool, Scheduler};

/// What schedulers are told of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Of 256.
    pub weight: Option<u16>,
    /// In percent of a pCPU.
    pub cap: Option<u16>,
    /// Microseconds: a period, and how much of it, of each vCPU.
    pub period: Option<(u32, u32)>,
    /// pCPUs, a bit each, for each vCPU; the last are those of all others. None: all pCPUs.
    pub affinity: Vec<u64>,
    /// Likewise those of them that it prefers. None: all are alike.
    pub preferred: Vec<u64>,
    /// The cpupool.
    pub pool: Pool,
}

impl Share {
    /// Tells the scheduler of the pool, whichever that is, of a domain of so many vCPUs.
    pub fn tell(&self, domain: u16, vcpus: u32) -> Result<(), Failed> {
        for vcpu in 0..vcpus {
            let of = |masks: &[u64]| masks.get(vcpu as usize).or(masks.last()).copied();
            bind(domain, vcpu, of(&self.affinity), of(&self.preferred))?;
        }
        let scheduler = self.pool.scheduler()?;
        if scheduler.has_weights() && (self.weight.is_some() || self.cap.is_some()) {
            self.tell_weight(domain, scheduler)?;
        }
        match self.period.filter(|_| scheduler.has_periods()) {
            Some(period) => tell_period(domain, scheduler, vcpus, period),
            None => Ok(()),
        }
    }

    fn tell_weight(&self, domain: u16, scheduler: Scheduler) -> Result<(), Failed> {
        const PUT: u32 = 0;
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Domain {
            scheduler: u32,
            operation: u32,
            weight: u16,
            cap: u16,
            pad: u32,
            more: u64,
        }
        let (weight, cap) = (self.weight.unwrap_or(256), self.cap.unwrap_or(0));
        let scheduler = scheduler.0;
        let body = Domain { scheduler, operation: PUT, weight, cap, pad: 0, more: 0 };
        domctl(Domctl::Scheduler, domain, body).of("set its weight and cap").map(drop)
    }
}

/// All vCPUs of a domain get the same.
fn tell_period(
    domain: u16,
    scheduler: Scheduler,
    count: u32,
    (period, budget): (u32, u32),
) -> Result<(), Failed> {
    const PUT_VCPU: u32 = 2;
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Vcpus {
        scheduler: u32,
        operation: u32,
        vcpus: u64,
        count: u32,
        pad: u32,
    }
    // Period, budget, flags, vCPU.
    let mut vcpus: Vec<[u32; 4]> = (0..count).map(|vcpu| [period, budget, 0, vcpu]).collect();
    let body = Vcpus {
        scheduler: scheduler.0,
        operation: PUT_VCPU,
        vcpus: vcpus.as_mut_ptr() as u64,
        count,
        pad: 0,
    };
    domctl(Domctl::Scheduler, domain, body).of("set its period and budget").map(drop)
}

/// Binds a vCPU to the pCPUs of `hard`, and has it prefer those of `soft`; what is not said stays.
fn bind(domain: u16, vcpu: u32, hard: Option<u64>, soft: Option<u64>) -> Result<(), Failed> {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Affinity {
        vcpu: u32,
        flags: u32,
        hard: u64,
        hard_bits: u32,
        soft: u64,
        soft_bits: u32,
    }
    const HARD: u32 = 1;
    const SOFT: u32 = 2;
    let flag = |mask: Option<u64>, flag: u32| mask.map_or(0, |_| flag);
    let flags = flag(hard, HARD) | flag(soft, SOFT);
    if flags == 0 {
        return Ok(());
    }
    // Xen answers with what has come of it.
    let mut masks = [hard, soft].map(Option::unwrap_or_default);
    let [hard, soft] = masks.each_mut().map(at);
    let affinity = Affinity { vcpu, flags, hard, hard_bits: 64, soft, soft_bits: 64 };
    domctl(Domctl::Affinity, domain, affinity).of("bind a vCPU").map(drop)
}
