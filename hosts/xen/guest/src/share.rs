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
    /// The cpupool.
    pub pool: Pool,
}

impl Share {
    /// Tells the scheduler of the pool, whichever that is, of a domain of so many vCPUs.
    pub fn tell(&self, domain: u16, vcpus: u32) -> Result<(), Failed> {
        for vcpu in 0..vcpus {
            let mask = self.affinity.get(vcpu as usize).or(self.affinity.last());
            mask.map_or(Ok(()), |mask| bind(domain, vcpu, *mask))?;
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

/// Binds a vCPU to the pCPUs of `mask`.
pub fn bind(domain: u16, vcpu: u32, mut mask: u64) -> Result<(), Failed> {
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
    let hard = at(&mut mask);
    let affinity = Affinity { vcpu, flags: HARD, hard, hard_bits: 64, soft: 0, soft_bits: 0 };
    domctl(Domctl::Affinity, domain, affinity).of("bind a vCPU").map(drop)
}
