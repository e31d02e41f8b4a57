//! Credits: who earns how many, and who is parked.

use super::{Credit, Place, Pri, Vcpu, next_multiple};
use anysched_core::ids::{DomainId, TaskId};
use anysched_core::time::{Span, Time};
use anysched_core::{CpuId, Cx};

/// CPU time of one credit.
const CREDIT: u64 = 100_000;

/// What is being handed out in one accounting.
struct Round {
    /// Weight of all active vCPUs.
    whole: u128,
    /// Weight of those that have not had their turn.
    left: u128,
    /// Credits to hand out; what one domain may not have is added as if it were available to all.
    pool: u128,
    /// How far the last balance was below zero.
    owed: u128,
    /// A domain could have used more.
    wanted: bool,
}

/// What the vCPUs of a domain get.
struct Share {
    /// Credits for each vCPU.
    fair: i64,
    /// Each vCPU's part of the domain's cap, if it has one.
    cap: Option<i64>,
}

/// `amount · part / whole`, rounded up.
fn part_of(amount: u128, part: u128, whole: u128) -> u128 {
    (amount * part).div_ceil(whole)
}

impl Vcpu {
    pub(super) fn burn(&mut self, ran: Span) {
        let open = self.rest + ran;
        self.credit = self.credit.saturating_sub_unsigned(open.0 / CREDIT);
        self.rest = Span(open.0 % CREDIT);
    }
}

impl Credit {
    /// `task` starts to earn.
    pub(super) fn activate(&mut self, task: TaskId, now: Time) {
        if self.weight == 0 && self.next_account <= now {
            // What accountings without any active vCPU would have done.
            self.balance = 0;
            self.next_account = next_multiple(now, self.params.tslice);
        }
        let vcpu = &mut self.vcpus[task];
        vcpu.active = true;
        let id = TaskId(u32::from(vcpu.domain.0));
        let domain = &mut self.domains[id.index()];
        if domain.active.is_empty() {
            self.domain_links.push_front(&mut self.earning, id);
        }
        self.active.push_front(&mut domain.active, task);
        self.weight += domain.weight;
    }

    /// `task` stops earning.
    pub(super) fn deactivate(&mut self, task: TaskId) {
        let vcpu = &mut self.vcpus[task];
        if !core::mem::replace(&mut vcpu.active, false) {
            return;
        }
        let id = TaskId(u32::from(vcpu.domain.0));
        let domain = &mut self.domains[id.index()];
        self.active.remove(&mut domain.active, task);
        self.weight -= domain.weight;
        if domain.active.is_empty() {
            self.domain_links.remove(&mut self.earning, id);
        }
    }

    /// Hands out the credits of one period.
    pub(super) fn account(&mut self, cx: &mut Cx<'_>) {
        let owed = self.balance.min(0).unsigned_abs();
        let earned = self.per_slice.unsigned_abs() * self.online.len() as u64;
        let mut round = Round {
            whole: self.weight.into(),
            left: self.weight.into(),
            pool: (earned + owed).into(),
            owed: owed.into(),
            wanted: false,
        };
        let mut balance = 0;
        let mut next = self.earning.front();
        while let Some(id) = next {
            next = self.domain_links.next(id);
            let share = self.share(id, &mut round);
            balance += self.pay(cx, DomainId(id.0 as u16), &share);
        }
        self.balance = balance;
        self.epoch += 1;
        // Busy PCPUs sort at their next tick; the ticks of idle ones do nothing else.
        for cpu in self.machine.cpu_ids() {
            if self.idlers.contains(cpu) {
                self.sort(cpu);
            }
        }
    }

    /// What the domain numbered `id`, whose turn it is, gets.
    fn share(&mut self, id: TaskId, round: &mut Round) -> Share {
        let domain = &self.domains[id.index()];
        let vcpus = domain.active.len() as u128;
        let weight = u128::from(domain.weight) * vcpus;
        let per_slice = self.per_slice.unsigned_abs().into();
        round.left -= weight;
        // At most what all its vCPUs can use, unless others have used too much.
        let mut peak = vcpus * per_slice + part_of(round.owed, weight, round.whole);
        let mut cap = None;
        if domain.cap != 0 {
            let whole = part_of(domain.cap.into(), per_slice, 100);
            peak = peak.min(whole);
            cap = Some(whole.div_ceil(vcpus) as i64);
        }
        let mut fair = part_of(round.pool, weight, round.whole);
        if fair < peak {
            round.wanted = true;
        } else {
            if round.left != 0 {
                round.pool += part_of(fair - peak, round.whole, round.left);
            }
            if round.wanted {
                // What it leaves comes too late for some: next time it goes before them.
                self.domain_links.remove(&mut self.earning, id);
                self.domain_links.push_front(&mut self.earning, id);
            }
            fair = peak;
        }
        Share { fair: fair.div_ceil(vcpus) as i64, cap }
    }

    /// Pays the active vCPUs of `domain`. Returns the sum of what they then have.
    fn pay(&mut self, cx: &mut Cx<'_>, domain: DomainId, share: &Share) -> i64 {
        let most = self.per_slice;
        let mut sum = 0;
        let mut next = self.domains[usize::from(domain.0)].active.front();
        while let Some(task) = next {
            next = self.active.next(task);
            let credit = self.vcpus[task].credit.saturating_add(share.fair);
            self.vcpus[task].credit = credit.max(-most);
            if credit < 0 {
                self.set_pri(task, Pri::Over);
                if share.cap.is_some_and(|cap| credit < -cap) {
                    self.park(cx, task);
                }
            } else {
                self.set_pri(task, Pri::Under);
                self.unpark(cx, task);
                if credit > most {
                    // It does not use what it earns. Half is its head start for when it does.
                    self.deactivate(task);
                    self.vcpus[task].credit = credit / 2;
                }
            }
            sum += self.vcpus[task].credit;
        }
        sum
    }

    fn park(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let vcpu = &mut self.vcpus[task];
        if core::mem::replace(&mut vcpu.parked, true) {
            return;
        }
        let (cpu, place) = (vcpu.processor, vcpu.place);
        let is_put = self.pcpus[cpu.index()].stint().is_some_and(|stint| stint.put.is_some());
        match place {
            Place::OnCpu if !is_put => cx.kick(cpu),
            Place::OnCpu | Place::Queued => {
                self.take_out(task);
                self.vcpus[task].place = Place::Parked;
            }
            _ => {}
        }
    }

    fn unpark(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let vcpu = &mut self.vcpus[task];
        if core::mem::replace(&mut vcpu.parked, false) && vcpu.place == Place::Parked {
            // Accounting runs on the first PCPU.
            let by = self.online.lowest().unwrap_or(CpuId(0));
            self.make_ready(cx, task, by);
        }
    }
}
