//! Domains by Xen's numbers, which grow, as those of policies, which begin at 0 and are used again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use anysched_core::{DomainId, DomainParams, Scheduler, Time};

use crate::Adapter;

/// The domains that there are.
#[derive(Default)]
pub(crate) struct Domains {
    pub(crate) known: BTreeMap<u32, DomainId>,
    pub(crate) free: Vec<DomainId>,
}

impl Domains {
    /// The policy's number of a domain, which gets one if it has none.
    pub(crate) fn number(&mut self, domain: u32) -> DomainId {
        let count = self.known.len();
        *self.known.entry(domain).or_insert_with(|| {
            let next = || u16::try_from(count).ok().map(DomainId);
            let Some(number) = self.free.pop().or_else(next) else {
                panic!("there are more than 65536 domains")
            };
            number
        })
    }
}

impl<P: Scheduler> Adapter<P> {
    /// A domain has these parameters; it may be new.
    pub fn set_domain(&mut self, now: Time, domain: u32, params: &DomainParams) {
        let number = self.domains.number(domain);
        self.call(now, |policy, cx| policy.set_domain(cx, number, params));
    }

    /// A domain has gone; it has no vCPU here.
    pub fn disband(&mut self, domain: u32) {
        if let Some(number) = self.domains.known.remove(&domain) {
            self.domains.free.push(number);
        }
    }
}
