//! Events and golden values, worked out by hand from the rules.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::policy;
use anysched_core::{
    CpuId, CpuSet, DomainId, Enqueue, Machine, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_oracle::drive::{Drive, ms};
use anysched_oracle::rig;

const BOOST: i64 = 0;
const UNDER: i64 = -1;
const OVER: i64 = -2;
/// The settings of the improved Credit.
const IMPROVED: &[(&str, &str)] = &[("boost_balance", "true"), ("dyn_slice", "true")];

rig! {
    struct Rig(Drive<Box<dyn Scheduler>>);
}

impl Rig {
    fn new(machine: &str, settings: &[(&str, &str)]) -> Rig {
        Rig(Drive::registered(policy("credit").unwrap(), machine, settings))
    }

    fn domain(&mut self, domain: u16, weight: u32, cap_percent: u32) {
        self.set_domain(domain, weight, cap_percent);
    }

    fn attach(&mut self, task: u32, domain: u16, affinity: &[u16]) {
        let affinity = match affinity {
            [] => CpuSet::All,
            some => CpuSet::of(some.iter().map(|&cpu| CpuId(cpu))),
        };
        let params = TaskParams { affinity, domain: DomainId(domain), ..TaskParams::default() };
        self.0.attach(task, &params);
    }

    fn create(&mut self, task: u32, domain: u16, affinity: &[u16]) {
        self.attach(task, domain, affinity);
        self.ready(task, Enqueue::New, None);
    }

    /// The task that runs on `cpu` has run for `ran` since it was last asked about.
    fn put(&mut self, cpu: u16, ran: Span, why: Off) -> u32 {
        let task = self.running(cpu).unwrap();
        self.0.put(cpu, task, ran, why);
        task
    }

    /// Lets CPU 0 run its task for `ran`, and puts it back.
    fn run(&mut self, ran: Span, why: Off) {
        self.now += ran;
        self.put(0, ran, why);
    }

    fn tick(&mut self, cpu: u16, ran: Span) {
        let task = self.running(cpu).unwrap();
        self.charge_tick(cpu, task, ran);
    }

    fn credits(&self, tasks: core::ops::Range<u32>) -> Vec<i64> {
        self.probes(tasks, "credit")
    }

    fn pris(&self, tasks: core::ops::Range<u32>) -> Vec<i64> {
        self.probes(tasks, "pri")
    }

    /// Lets CPU 0 run hogs until `until`, with exact timers; within an instant the accounting comes
    /// first, then the tick, then the end of the slice. Who ran for how many ms; `u32::MAX` means
    /// none.
    fn play(&mut self, until: u64) -> Vec<(u32, u64)> {
        let mut slices: Vec<(u32, u64)> = Vec::new();
        let until = Time::ZERO + ms(until);
        let mut left = match self.running(0) {
            Some(_) => Span::MAX,
            None => self.pick(0).map_or(Span::MAX, |(_, slice)| slice),
        };
        let tick = self.policy.tick_period().unwrap();
        while self.now < until {
            let next_tick = Time((self.now.0 / tick.0 + 1) * tick.0);
            let timer = self.policy.next_timer().unwrap_or(Time::NEVER);
            let next = next_tick.min(self.now + left).min(timer).min(until);
            let ran = next - self.now;
            self.now = next;
            let task = self.running(0).unwrap_or(NOBODY);
            match slices.last_mut() {
                Some((last, length)) if *last == task => *length += ran.0,
                _ => slices.push((task, ran.0)),
            }
            if self.now == timer {
                self.call(|credit, cx| credit.timer(cx));
            }
            left = if left == Span::MAX { left } else { left.saturating_sub(ran) };
            let mut charged = ran;
            if task != NOBODY && (left > Span::ZERO || self.now == next_tick) {
                // At the end of an instant, so that nothing is charged twice.
                self.tick(0, ran);
                charged = Span::ZERO;
            }
            let expires = task != NOBODY && left == Span::ZERO;
            if expires {
                self.put(0, charged, Off::Expired);
                left = self.pick(0).map_or(Span::MAX, |(_, slice)| slice);
            }
            if !self.kicked().is_empty() {
                if self.running(0).is_some() {
                    self.put(0, Span::ZERO, Off::Preempted);
                }
                left = self.pick(0).map_or(Span::MAX, |(_, slice)| slice);
            }
        }
        slices.into_iter().map(|(task, length)| (task, length / 1_000_000)).collect()
    }
}

const NOBODY: u32 = u32::MAX;

/// Task 1 computes on CPU 0, having run for `ran`; task 0, with credits, sleeps.
fn sleeper_and_hog(settings: &[(&str, &str)], ran: Span) -> Rig {
    let mut drive = Rig::new("1", settings);
    drive.create(0, 0, &[]);
    drive.create(1, 1, &[]);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.run(ms(1), Off::Blocked);
    assert_eq!(drive.pick(0).unwrap().0, 1);
    drive.now += ran;
    drive.kicked();
    drive
}

#[test]
fn who_wakes_with_credits_preempts_at_once() {
    let mut drive = sleeper_and_hog(&[], ms(5));
    drive.wake(0);
    assert_eq!(drive.pris(0..2), [BOOST, UNDER]);
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, ms(5), Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, ms(30))));
}

#[test]
fn who_has_run_for_less_than_a_millisecond_runs_for_the_rest_of_it() {
    let mut drive = sleeper_and_hog(&[], Span::from_us(400));
    drive.wake(0);
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, Span::from_us(400), Off::Preempted);
    assert_eq!(drive.pick(0), Some((1, Span::from_us(600))));
    drive.run(Span::from_us(600), Off::Expired);
    assert_eq!(drive.pick(0), Some((0, ms(30))));

    let mut drive = sleeper_and_hog(&[("ratelimit", "0")], Span::from_us(400));
    drive.wake(0);
    drive.put(0, Span::from_us(400), Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, ms(30))));
}

#[test]
fn the_boosted_are_not_preempted_by_others_that_wake() {
    let mut drive = sleeper_and_hog(&[], ms(5));
    drive.put(0, ms(5), Off::Blocked);
    assert_eq!(drive.pick(0), None);
    drive.wake(0);
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.now += ms(4);
    drive.wake(1);
    assert_eq!((drive.pris(0..2), drive.kicked()), ([BOOST, BOOST].into(), [].into()));
}

#[test]
fn boost_ends_at_the_next_tick() {
    let mut drive = sleeper_and_hog(&[], ms(2));
    drive.put(0, ms(2), Off::Blocked);
    drive.wake(0);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    // It woke at 3 ms; its first tick is at 10 ms.
    for (at, pri) in [(5, BOOST), (9, BOOST), (10, UNDER)] {
        let before = drive.now;
        drive.now = Time::ZERO + ms(at);
        drive.tick(0, drive.now - before);
        assert_eq!(drive.probe(0, "pri"), pri, "{at}");
    }
}

/// Of 3 ms after a tick, or of an idle PCPU's ticks, none is left over.
#[test]
fn ticks_are_multiples_of_a_third_of_the_slice() {
    let mut drive = Rig::new("1", &[]);
    assert_eq!(drive.policy.tick_period(), Some(ms(10)));
    drive.create(0, 0, &[]);
    drive.now += ms(25);
    drive.pick(0);
    drive.now += ms(4);
    drive.tick(0, ms(4));
    assert_eq!(drive.probe(0, "active"), 0);
    drive.now += ms(1);
    drive.tick(0, ms(1));
    assert_eq!(drive.probe(0, "active"), 1);
    let tick = |tslice| Rig::new("1", &[("tslice", tslice)]).policy.tick_period();
    assert_eq!(tick("10ms"), Some(Span::from_us(3_333)));
    assert_eq!(tick("2ms"), Some(ms(2)));
}

#[test]
fn every_full_tenth_of_a_millisecond_is_a_credit() {
    let mut drive = Rig::new("1", &[]);
    drive.create(0, 0, &[]);
    drive.pick(0);
    for (ran, credit, rest) in [(250, -2, 50), (49, -2, 99), (1, -3, 0), (10_070, -103, 70)] {
        drive.now += Span::from_us(ran);
        drive.tick(0, Span::from_us(ran));
        let state = (drive.probe(0, "credit"), drive.probe(0, "uncharged_ns"));
        assert_eq!(state, (credit, rest * 1_000));
    }
    drive.run(Span::from_us(30), Off::Blocked);
    assert_eq!((drive.probe(0, "credit"), drive.probe(0, "uncharged_ns")), (-104, 0));
}

/// Worked out event by event; from 150 ms on every 90 ms are divided 30 : 60.
#[test]
fn twice_the_weight_is_twice_the_cpu() {
    let mut drive = Rig::new("1", &[]);
    drive.create(0, 0, &[]);
    drive.create(1, 1, &[]);
    drive.domain(1, 512, 0);
    let slices = drive.play(600);
    let expected = [
        (0, 30),
        (1, 30),
        (0, 30),
        (1, 30),
        (0, 30),
        (1, 60),
        (0, 30),
        (1, 60),
        (0, 30),
        (1, 60),
        (0, 30),
        (1, 60),
        (0, 30),
        (1, 60),
        (0, 30),
    ];
    assert_eq!(slices[..], expected);
}

#[test]
fn a_capped_domain_is_parked_for_what_it_used_too_much() {
    let mut drive = Rig::new("1", &[]);
    drive.domain(0, 256, 40);
    drive.create(0, 0, &[]);
    let slices = drive.play(450);
    let expected = [(0, 60), (NOBODY, 90), (0, 60), (NOBODY, 90), (0, 60), (NOBODY, 90)];
    assert_eq!(slices, expected);
    // Not boosted by that.
    assert_eq!((drive.probe(0, "pri"), drive.probe(0, "parked")), (UNDER, 0));
    assert_eq!(drive.probe(0, "credit"), 0);
}

/// Tasks 0 and 1, each pinned and in the domain of its number, run on two CPUs to the first
/// accounting; `first` becomes active first. Nothing else takes turns.
fn two_at_the_first_accounting(settings: &[(u16, u32, u32)], first: u16) -> Rig {
    let mut drive = Rig::new("2", &[]);
    for &(domain, weight, cap) in settings {
        drive.domain(domain, weight, cap);
    }
    for cpu in [0, 1] {
        drive.create(cpu.into(), cpu, &[cpu]);
        drive.pick(cpu);
    }
    for at in [10, 20] {
        drive.now = Time::ZERO + ms(at);
        for cpu in [first, 1 - first] {
            drive.tick(cpu, ms(10));
        }
    }
    assert_eq!(drive.credits(0..2), [-200, -200]);
    account(&mut drive, 30);
    drive
}

fn account(drive: &mut Rig, at: u64) {
    drive.now = Time::ZERO + ms(at);
    assert_eq!(drive.policy.next_timer(), Some(drive.now));
    drive.call(|credit, cx| credit.timer(cx));
}

#[test]
fn shares_are_rounded_up_and_bounded_by_what_a_domain_can_use() {
    // 600 credits · 256 / 512 = 300 each.
    assert_eq!(two_at_the_first_accounting(&[], 0).credits(0..2), [100, 100]);
    // Of 600, domain 1 could have 480 but uses 300 at most. Domain 0 has its turn first: 120.
    let weights = [(0, 256, 0), (1, 1024, 0)];
    assert_eq!(two_at_the_first_accounting(&weights, 1).credits(0..2), [-80, 100]);
    // In the other order it has 120 + 180 · 1280 / 256 · 256 / 1280 = 300.
    assert_eq!(two_at_the_first_accounting(&weights, 0).credits(0..2), [100, 100]);
    // 600 · 1 / 1024 = 0.59.
    let weights = [(0, 1, 0), (1, 1023, 0)];
    assert_eq!(two_at_the_first_accounting(&weights, 1).credits(0..2), [-199, 100]);
}

#[test]
fn what_caps_leave_over_goes_to_others_one_accounting_later_at_the_latest() {
    // Domain 1, capped, has its turn first: it takes 60 of 300 and leaves 240 · 512 / 256, as if
    // for all to share, of which domain 0 has half; that is more than it can use.
    let weights = [(0, 256, 0), (1, 256, 20)];
    let drive = two_at_the_first_accounting(&weights, 0);
    assert_eq!(drive.credits(0..2), [100, -140]);
    // Weight 1024 for the capped one: domain 0's turn comes first, 600 · 256 / 1280 = 120. Then the
    // capped one is moved to the front, so domain 0 has 120 + 420 the next time: 300 and half of
    // what is owed. The balance was −200 + 120 − 200 + 60 = −220, so 820 are handed out: 656 − 60
    // are left over, 164 are added to that, and domain 0 may have 300 + 44.
    let weights = [(0, 256, 0), (1, 1024, 20)];
    let mut drive = two_at_the_first_accounting(&weights, 1);
    assert_eq!(drive.credits(0..2), [-80, -140]);
    account(&mut drive, 60);
    assert_eq!(drive.credits(0..2), [-80 + 344, -140 + 60]);
}

#[test]
fn the_capped_are_parked_below_their_share_of_the_cap() {
    let weights = [(0, 256, 0), (1, 256, 20)];
    let mut drive = two_at_the_first_accounting(&weights, 0);
    // −200 + 60 is below −60.
    assert_eq!((drive.pris(0..2), drive.kicked()), ([UNDER, OVER].into(), [1].into()));
    assert_eq!([drive.probe(0, "parked"), drive.probe(1, "parked")], [0, 1]);
    drive.put(1, Span::ZERO, Off::Preempted);
    assert_eq!(drive.pick(1), None);
    // It may block, wake, and be taken out and put back, and stays parked.
    drive.dequeue(1);
    drive.wake(1);
    assert_eq!((drive.pick(1), drive.probe(1, "pri")), (None, OVER));
    // −140, −80, −20, 40: one accounting each.
    for (at, credit) in [(60, -80), (90, -20)] {
        account(&mut drive, at);
        assert_eq!((drive.probe(1, "credit"), drive.pick(1)), (credit, None));
    }
    drive.kicked();
    account(&mut drive, 120);
    assert_eq!(drive.kicked(), [1]);
    assert_eq!((drive.probe(1, "credit"), drive.probe(1, "pri")), (40, UNDER));
    assert_eq!(drive.pick(1), Some((1, ms(30))));
}

#[test]
fn who_does_not_use_credits_stops_earning_them() {
    let mut drive = two_at_the_first_accounting(&[], 0);
    for cpu in [0, 1] {
        drive.put(cpu, Span::ZERO, Off::Blocked);
        drive.pick(cpu);
    }
    // 100, 400: above 300, so 200 and out of the active set.
    account(&mut drive, 60);
    assert_eq!(drive.credits(0..2), [200, 200]);
    assert_eq!([drive.probe(0, "active"), drive.probe(1, "active")], [0, 0]);
    // None to account for: no timer, and the balance that was left is forgotten.
    assert_eq!(drive.policy.next_timer(), None);
    drive.now = Time::ZERO + ms(1_005);
    drive.wake(0);
    drive.pick(0);
    drive.now = Time::ZERO + ms(1_010);
    drive.tick(0, ms(5));
    assert_eq!(drive.policy.next_timer(), Some(Time::ZERO + ms(1_020)));
}

#[test]
fn an_accounting_leaves_nobody_deeper_in_debt_than_a_slice() {
    let mut drive = Rig::new("1", &[("dyn_slice", "true")]);
    (0..2).for_each(|task| drive.create(task, task as u16, &[]));
    drive.domain(1, 1, 0);
    // Slices of 60 ms. At 90 ms task 1 gets 2 credits for the 200 it has used since 60 ms.
    drive.play(115);
    assert_eq!(drive.probe(1, "credit"), -198 - 350);
    // At 120 ms it gets 2 more, which makes −300; then it is charged for the last 5 ms.
    drive.play(120);
    assert_eq!(drive.probe(1, "credit"), -350);
}

#[test]
fn a_yielder_goes_behind_one_of_lower_priority() {
    let mut drive = Rig::new("1", &[("ratelimit", "0")]);
    (0..4).for_each(|task| drive.create(task, task as u16, &[]));
    drive.domain(2, 1, 0);
    drive.domain(3, 1, 0);
    // Each has run once; 2 and 3 hardly earn.
    drive.play(120);
    let order = |drive: &mut Rig| {
        let mut order = Vec::new();
        while let Some((task, _)) = drive.pick(0) {
            order.push(task);
            drive.put(0, Span::ZERO, Off::Blocked);
        }
        order
    };
    assert_eq!(drive.running(0).unwrap(), 0);
    assert_eq!(drive.pris(0..4), [UNDER, UNDER, OVER, OVER]);
    drive.put(0, Span::ZERO, Off::Yielded);
    // Behind the other UNDER and one OVER.
    assert_eq!(order(&mut drive), [1, 2, 0, 3]);
}

#[test]
fn with_nobody_of_lower_priority_a_yielder_goes_behind_its_equals() {
    let mut drive = Rig::new("1", &[]);
    (0..3).for_each(|task| drive.create(task, task as u16, &[]));
    drive.pick(0);
    drive.run(ms(2), Off::Yielded);
    let mut order = Vec::new();
    for _ in 0..3 {
        order.push(drive.pick(0).unwrap().0);
        drive.run(ms(2), Off::Blocked);
    }
    assert_eq!(order, [1, 2, 0]);
    // Within the ratelimit, the yield takes effect when that is over.
    (0..2).for_each(|task| drive.wake(task));
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.run(Span::from_us(300), Off::Yielded);
    assert_eq!(drive.pick(0), Some((0, Span::from_us(700))));
    drive.run(Span::from_us(700), Off::Expired);
    assert_eq!(drive.pick(0).unwrap().0, 1);
}

#[test]
fn since_xen_4_8_a_yield_ends_the_ratelimit() {
    let mut drive = Rig::new("1", &[("limit_yields", "false")]);
    (0..2).for_each(|task| drive.create(task, task as u16, &[]));
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.run(Span::from_us(300), Off::Yielded);
    assert_eq!(drive.pick(0), Some((1, ms(30))));
    // It keeps one that is preempted all the same.
    drive.run(Span::from_us(300), Off::Preempted);
    assert_eq!(drive.pick(0), Some((1, Span::from_us(700))));
}

#[test]
fn a_pick_that_could_not_start_is_undone() {
    let mut drive = Rig::new("1", &[]);
    (0..3).for_each(|task| drive.create(task, task as u16, &[]));
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.kicked();
    drive.put(0, Span::ZERO, Off::NotRun);
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(drive.pick(0), Some((0, ms(30))));
}

#[test]
fn new_vcpus_are_spread() {
    let homes = |machine: &str, tasks: &[(u16, &[u16])]| {
        let mut drive = Rig::new(machine, &[]);
        for (task, &(domain, affinity)) in (0..).zip(tasks) {
            drive.attach(task, domain, affinity);
        }
        let homes = (0..tasks.len() as u32).map(|task| drive.probe(task, "runqueue"));
        homes.collect::<Vec<_>>()
    };
    // The first of a domain: the highest PCPU of those with the fewest.
    let each: [(u16, &[u16]); 5] = [(0, &[]), (1, &[]), (2, &[]), (3, &[]), (4, &[])];
    assert_eq!(homes("4", &each), [3, 2, 1, 0, 3]);
    assert_eq!(homes("2 cores x 2 threads", &each), [3, 1, 3, 1, 3]);
    // The others follow.
    let one: [(u16, &[u16]); 5] = [(0, &[]), (0, &[]), (0, &[]), (0, &[0, 2]), (0, &[0, 2])];
    assert_eq!(homes("4", &one), [3, 0, 1, 2, 0]);
    let pinned: [(u16, &[u16]); 3] = [(0, &[0]), (1, &[0, 2]), (2, &[0, 2])];
    assert_eq!(homes("2 cores x 2 threads", &pinned), [0, 2, 2]);
}

impl Rig {
    fn update(&mut self, task: u32, domain: u16, affinity: &[u16]) {
        let affinity = match affinity {
            [] => CpuSet::All,
            some => CpuSet::of(some.iter().map(|&cpu| CpuId(cpu))),
        };
        let params = TaskParams { affinity, domain: DomainId(domain), ..TaskParams::default() };
        self.call(|credit, cx| credit.update(cx, TaskId(task), &params));
    }

    /// A vCPU that sleeps, is at home on the idle `cpu` and may run anywhere. It has run for less
    /// than a credit's time.
    fn settle(&mut self, task: u32, cpu: u16) {
        self.create(task, 0, &[cpu]);
        assert_eq!(self.pick(cpu).unwrap().0, task);
        self.put(cpu, Span::ZERO, Off::Blocked);
        self.pick(cpu);
        self.update(task, 0, &[]);
        self.kicked();
        assert_eq!(self.probe(task, "runqueue"), i64::from(cpu));
    }

    /// A vCPU that is bound to the idle `cpu` and runs there, not boosted.
    fn occupy(&mut self, task: u32, cpu: u16) {
        self.create(task, 0, &[cpu]);
        assert_eq!(self.pick(cpu).unwrap().0, task);
        self.kicked();
    }

    /// The same, boosted.
    fn occupy_boosted(&mut self, task: u32, cpu: u16) {
        self.occupy(task, cpu);
        self.put(cpu, Span::ZERO, Off::Blocked);
        self.pick(cpu);
        self.wake(task);
        assert_eq!(self.pick(cpu).unwrap().0, task);
        assert_eq!(self.probe(task, "pri"), BOOST);
        self.kicked();
    }
}

#[test]
fn a_wake_is_told_to_idle_pcpus_in_turn() {
    let mut drive = Rig::new("4", &[]);
    (0..3).for_each(|task| drive.settle(task, 0));
    drive.occupy(3, 0);
    let mut told = Vec::new();
    for task in 0..2 {
        drive.wake(task);
        told.extend(drive.kicked());
    }
    // Each PCPU takes turns of its own.
    drive.ready(2, Enqueue::Wakeup { prev: CpuId(0), sync: false }, Some(3));
    told.extend(drive.kicked());
    assert_eq!(told, [1, 2, 1]);
    let picks = [3, 2, 1].map(|cpu| drive.pick(cpu).unwrap().0);
    assert_eq!(picks, [0, 1, 2]);
    assert_eq!(drive.probe(0, "runqueue"), 3);
}

#[test]
fn a_wake_is_told_to_all_idle_pcpus_if_so_set() {
    let mut drive = Rig::new("4", &[("tickle_one", "false")]);
    drive.settle(0, 0);
    drive.occupy(1, 0);
    drive.wake(0);
    assert_eq!(drive.kicked(), [1, 2, 3]);
}

#[test]
fn who_makes_room_goes_to_the_idle_pcpu_that_the_other_may_not_use() {
    let mut drive = Rig::new("2", &[]);
    drive.settle(0, 0);
    drive.update(0, 0, &[0]);
    drive.settle(1, 0);
    drive.wake(1);
    drive.pick(0);
    drive.now += ms(12);
    drive.tick(0, ms(12));
    drive.kicked();
    drive.wake(0);
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, Span::ZERO, Off::Preempted);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    assert_eq!(drive.kicked(), [1]);
    assert_eq!(drive.pick(1).unwrap().0, 1);
    // Placing it anew woke it, which boosts.
    assert_eq!(drive.probe(1, "pri"), BOOST);
}

#[test]
fn only_higher_priorities_are_stolen_and_only_without_credits() {
    let mut drive = Rig::new("2", &[]);
    drive.occupy(0, 0);
    drive.occupy(1, 1);
    drive.create(2, 0, &[]);
    drive.create(3, 0, &[]);
    let homes = [2, 3].map(|task| drive.probe(task, "runqueue"));
    assert_eq!(homes, [0, 1]);
    // CPU 1 has one with credits.
    drive.now += ms(5);
    drive.put(1, ms(5), Off::Expired);
    assert_eq!(drive.pick(1).unwrap().0, 3);
    drive.put(1, Span::ZERO, Off::Blocked);
    assert_eq!(drive.pick(1).unwrap().0, 1);
    // It has none: it takes from CPU 0, but nothing that ran there recently if so set.
    drive.put(1, Span::ZERO, Off::Blocked);
    assert_eq!(drive.pick(1).unwrap().0, 2);
    drive.put(1, Span::ZERO, Off::Blocked);
    assert_eq!(drive.pick(1), None);

    let mut drive = Rig::new("2", &[("migration_delay", "3ms")]);
    drive.settle(0, 0);
    drive.occupy(1, 0);
    drive.wake(0);
    assert_eq!(drive.pick(1), None);
    drive.now += ms(3);
    assert_eq!(drive.pick(1).unwrap().0, 0);
}

#[test]
fn idle_pcpus_steal_on_their_own_node_first() {
    let mut drive = Rig::new("3 nodes x 2 cores", &[]);
    for (task, cpu) in [(0, 0), (1, 1), (2, 2), (3, 5)] {
        drive.settle(task, cpu);
    }
    for (task, cpu) in [(10, 0), (11, 1), (12, 2), (15, 5)] {
        drive.occupy(task, cpu);
    }
    (0..4).for_each(|task| drive.wake(task));
    // Nodes 1, 2, 0; in each the lowest first.
    for expected in [2, 3, 0, 1] {
        assert_eq!(drive.pick(3).unwrap().0, expected);
        drive.put(3, Span::ZERO, Off::Blocked);
    }
}

#[test]
fn ticks_move_a_vcpu_to_a_core_of_its_own() {
    let mut drive = Rig::new("2 cores x 2 threads", &[]);
    drive.settle(0, 0);
    drive.settle(1, 1);
    for task in 0..2 {
        drive.wake(task);
        assert_eq!(drive.pick(task as u16).unwrap().0, task);
    }
    drive.kicked();
    drive.now += ms(10);
    drive.tick(0, ms(10));
    drive.now += ms(10);
    // Now it has been active for a while.
    drive.tick(0, ms(10));
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, Span::ZERO, Off::Preempted);
    assert_eq!(drive.pick(0), None);
    assert_eq!(drive.kicked(), [2]);
    assert_eq!(drive.pick(2).unwrap().0, 0);
    // The other one now has its core to itself.
    drive.tick(1, ms(20));
    drive.now += ms(10);
    drive.tick(1, ms(10));
    assert_eq!((drive.kicked(), drive.probe(1, "active")), (Vec::new(), 1));
}

#[test]
fn vcpus_that_may_not_stay_are_placed_anew() {
    let mut drive = Rig::new("3", &[]);
    drive.occupy(0, 0);
    drive.occupy(1, 1);
    drive.create(2, 0, &[0]);
    drive.kicked();
    // A waiting one: a PCPU that it may use is kicked.
    drive.update(2, 0, &[1, 2]);
    assert_eq!((drive.probe(2, "runqueue"), drive.kicked()), (2, [2].into()));
    drive.pick(2);
    // A running one.
    drive.update(2, 0, &[1]);
    assert_eq!(drive.kicked(), [2]);
    drive.put(2, ms(0), Off::Preempted);
    assert_eq!((drive.pick(2), drive.probe(2, "runqueue")), (None, 1));
    // A sleeping one, and one taken out between two picks.
    drive.dequeue(2);
    drive.update(2, 0, &[2]);
    assert_eq!(drive.probe(2, "runqueue"), 2);
    drive.wake(2);
    drive.pick(2);
    drive.update(2, 0, &[0, 1]);
    drive.put(2, ms(0), Off::Preempted);
    drive.dequeue(2);
    assert_ne!(drive.probe(2, "runqueue"), 2);
}

#[test]
fn vcpus_leave_a_pcpu_that_goes() {
    let mut drive = Rig::new("3", &[]);
    (0..3).for_each(|task| drive.settle(task, 0));
    drive.occupy(3, 1);
    drive.occupy(4, 2);
    drive.wake(0);
    drive.pick(0);
    drive.wake(1);
    drive.kicked();
    drive.call(|credit, cx| credit.set_online(cx, CpuId(0), false));
    // The one that waited and the one that slept; the running one when it is off.
    let homes = [0, 1, 2].map(|task| drive.probe(task, "runqueue"));
    assert_eq!(homes, [0, 1, 1]);
    drive.kicked();
    drive.put(0, ms(0), Off::Preempted);
    assert_eq!((drive.probe(0, "runqueue"), drive.pick(0)), (1, None));
    // It no longer earns: two PCPUs have 600.
    for cpu in [1, 2] {
        drive.now = Time::ZERO + ms(10);
        drive.tick(cpu, ms(10));
    }
    account(&mut drive, 30);
    assert_eq!(drive.credits(3..5), [200, 200]);
    drive.kicked();
    drive.call(|credit, cx| credit.set_online(cx, CpuId(0), true));
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(drive.pick(0).unwrap().0, 1);
}

#[test]
fn a_vcpu_that_changes_its_domain_earns_there() {
    let mut drive = two_at_the_first_accounting(&[(0, 256, 0), (1, 256, 20)], 0);
    drive.update(0, 7, &[0]);
    drive.domain(7, 256, 10);
    account(&mut drive, 60);
    // 100 + 30 of the cap of domain 7.
    assert_eq!((drive.probe(0, "credit"), drive.probe(0, "active")), (130, 1));
}

#[test]
fn weights_and_caps_of_16_bits_and_no_weight_is_no_change() {
    let mut drive = two_at_the_first_accounting(&[(0, 70_000, 0), (1, 65_535, 0)], 0);
    assert_eq!(drive.credits(0..2), [100, 100]);
    drive.domain(0, 0, 10);
    account(&mut drive, 60);
    assert_eq!(drive.credits(0..2), [130, 200]);
}

/// Where a vCPU at home on `home` goes when it wakes boosted.
fn boost_target(machine: &str, home: u16, boosted: &[u16], busy: &[u16], may: &[u16]) -> i64 {
    let mut drive = Rig::new(machine, &[("boost_balance", "true")]);
    drive.settle(0, home);
    (1..).zip(boosted).for_each(|(task, &cpu)| drive.occupy_boosted(task, cpu));
    (100..).zip(busy).for_each(|(task, &cpu)| drive.occupy(task, cpu));
    if !may.is_empty() {
        // While it is at home there: no queue, so as good as idle.
        drive.update(0, 0, may);
        assert_eq!(drive.probe(0, "runqueue"), i64::from(home));
    }
    drive.kicked();
    drive.wake(0);
    assert_eq!(drive.probe(0, "pri"), BOOST);
    drive.probe(0, "runqueue")
}

#[test]
fn the_boosted_go_to_the_nearest_idle_pcpu() {
    let machine = "2 packages x 2 cores x 2 threads";
    let target = |boosted: &[u16], busy: &[u16]| boost_target(machine, 2, boosted, busy, &[]);
    // None is boosted at home: it stays.
    assert_eq!(target(&[], &[]), 2);
    assert_eq!(target(&[], &[2]), 2);
    // The same core, the same package, any: the next after it.
    assert_eq!(target(&[2], &[]), 3);
    assert_eq!(target(&[2], &[3]), 0);
    assert_eq!(target(&[2], &[3, 0]), 1);
    assert_eq!(target(&[2], &[3, 0, 1]), 4);
    assert_eq!(boost_target(machine, 2, &[2], &[], &[0, 2, 6]), 0);
    assert_eq!(boost_target(machine, 2, &[2], &[], &[2, 6]), 6);
}

#[test]
fn with_none_idle_the_boosted_go_where_fewest_are() {
    let machine = "2 packages x 2 cores x 2 threads";
    let all: Vec<u16> = (0..8).collect();
    let target = |calm: &[u16], may: &[u16]| {
        let boosted: Vec<u16> = all.iter().copied().filter(|cpu| !calm.contains(cpu)).collect();
        boost_target(machine, 2, &boosted, calm, may)
    };
    assert_eq!(target(&[], &[]), 2);
    assert_eq!(target(&[0, 1, 3, 7], &[]), 3);
    assert_eq!(target(&[0, 1, 7], &[]), 0);
    assert_eq!(target(&[4, 7], &[]), 4);
    assert_eq!(target(&[4, 7], &[2, 3, 7]), 7);
    assert_eq!(target(&[4, 7], &[2, 3]), 2);
}

#[test]
fn those_that_wait_count_too() {
    let mut drive = Rig::new("2", &[("boost_balance", "true")]);
    (0..4).for_each(|task| drive.settle(task, 0));
    drive.occupy_boosted(4, 0);
    drive.occupy_boosted(5, 1);
    // 1 to 1 (stays), 2 to 1 (goes), 2 to 2 (stays), 3 to 2 (goes).
    (0..4).for_each(|task| drive.wake(task));
    let homes = [0, 1, 2, 3].map(|task| drive.probe(task, "runqueue"));
    assert_eq!(homes, [0, 1, 0, 1]);
    assert_eq!(drive.kicked(), []);
}

#[test]
fn an_idle_pcpu_that_has_been_given_one_is_not_idle_any_more() {
    let mut drive = Rig::new("3", &[("boost_balance", "true")]);
    (0..3).for_each(|task| drive.settle(task, 0));
    drive.occupy_boosted(3, 0);
    (0..3).for_each(|task| drive.wake(task));
    let homes = [0, 1, 2].map(|task| drive.probe(task, "runqueue"));
    assert_eq!(homes, [1, 2, 0]);
    assert_eq!(drive.kicked(), [1, 2]);
}

#[test]
fn boost_lasts_two_milliseconds_whatever_the_ticks() {
    let mut drive = sleeper_and_hog(IMPROVED, ms(5));
    drive.wake(0);
    drive.put(0, ms(5), Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, ms(2))));
    drive.now = Time::ZERO + ms(10);
    drive.tick(0, Span::from_us(1_500));
    assert_eq!(drive.probe(0, "pri"), BOOST);
    // Interruptions by others do not make it longer.
    drive.put(0, Span::ZERO, Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, Span::from_us(500))));
    drive.run(Span::from_us(500), Off::Expired);
    // None is boosted: it goes on at once.
    assert_eq!(drive.pick(0), Some((0, ms(30))));
    assert_eq!(drive.probe(0, "pri"), UNDER);
    drive.run(ms(30), Off::Expired);
    assert_eq!(drive.pick(0).unwrap().0, 1);
}

#[test]
fn after_boost_a_vcpu_is_ahead_of_those_that_compute() {
    let mut drive = Rig::new("1", IMPROVED);
    (0..2).for_each(|task| drive.settle(task, 0));
    drive.occupy(2, 0);
    drive.create(3, 0, &[]);
    (0..2).for_each(|task| drive.wake(task));
    drive.run(ms(5), Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, ms(2))));
    drive.run(ms(2), Off::Expired);
    assert_eq!(drive.pick(0), Some((1, ms(2))));
    drive.run(ms(2), Off::Expired);
    assert_eq!(drive.pick(0), Some((1, ms(30))));
    drive.run(ms(30), Off::Expired);
    // Next is 0, then 3, which waited, then 2, which ran. Four with credits: short slices.
    for (task, slice) in [(0, 30), (3, 30), (2, 30), (1, 30)] {
        assert_eq!(drive.pick(0), Some((task, ms(slice))));
        drive.run(ms(slice), Off::Expired);
    }
}

#[test]
fn a_boost_phase_ended_by_the_ratelimit_goes_on() {
    let mut drive = sleeper_and_hog(IMPROVED, ms(5));
    drive.wake(0);
    drive.put(0, ms(5), Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, ms(2))));
    drive.run(Span::from_us(300), Off::Preempted);
    assert_eq!(drive.pick(0), Some((0, Span::from_us(700))));
    drive.run(Span::from_us(700), Off::Expired);
    assert_eq!((drive.pick(0), drive.probe(0, "pri")), (Some((0, ms(1))), BOOST));
    drive.run(ms(1), Off::Expired);
    assert_eq!((drive.pick(0), drive.probe(0, "pri")), (Some((0, ms(30))), UNDER));
}

#[test]
fn slices_are_long_while_few_wait() {
    let slice = |hogs: u32, settings: &[(&str, &str)]| {
        let mut drive = Rig::new("1", &[&[("dyn_slice", "true")], settings].concat());
        (0..hogs).for_each(|task| drive.create(task, 0, &[]));
        drive.pick(0).unwrap().1
    };
    let without: &[(&str, &str)] = &[("qlen_includes_selected", "false")];
    assert_eq!([1, 3, 4, 9].map(|hogs| slice(hogs, &[])), [60, 60, 30, 30].map(ms));
    assert_eq!([1, 4, 5].map(|hogs| slice(hogs, without)), [60, 60, 30].map(ms));
    let others: &[(&str, &str)] =
        &[("avg_length", "2"), ("long_slice", "7ms"), ("short_slice", "3ms")];
    assert_eq!([1, 2].map(|hogs| slice(hogs, others)), [7, 3].map(ms));
}

/// A slice is computed anew only when a vCPU that came after the last time gets the CPU.
#[test]
fn slices_are_computed_when_one_that_came_since_is_taken() {
    let mut drive = Rig::new("1", &[("dyn_slice", "true")]);
    (0..3).for_each(|task| drive.create(task, 0, &[]));
    let mut next = |expected| {
        let picked = drive.pick(0);
        if picked == Some((0, ms(60))) && drive.now == Time::ZERO {
            (3..5).for_each(|task| drive.create(task, 0, &[]));
        }
        assert_eq!(picked, Some(expected));
        drive.run(ms(2), Off::Expired);
    };
    // 1 and 2 were there when the slice of 0 was computed; for 3 five wait or run.
    for (task, slice) in [(0, 60), (1, 60), (2, 60), (3, 30), (4, 30), (0, 30)] {
        next((task, ms(slice)));
    }
}

#[test]
fn without_credits_slices_are_as_before() {
    let mut drive = Rig::new("1", &[("dyn_slice", "true"), ("avg_length", "9")]);
    (0..2).for_each(|task| drive.create(task, task as u16, &[]));
    drive.domain(1, 1, 0);
    drive.play(240);
    assert_eq!(drive.put(0, Span::ZERO, Off::Blocked), 0);
    assert_eq!((drive.pick(0), drive.probe(1, "pri")), (Some((1, ms(30))), OVER));
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    let machine = Machine::flat(1).unwrap();
    let build = |settings: &[(&str, &str)]| (policy("credit").unwrap().build)(&machine, settings);
    for (name, value) in [
        ("tslice", "0"),
        ("tslice", "1.5ms"),
        ("tslice", "2s"),
        ("ratelimit", "99us"),
        ("ratelimit", "501ms"),
        ("ratelimit", "31ms"),
        ("boost_phase", "0"),
        ("long_slice", "0"),
        ("short_slice", "0"),
    ] {
        assert!(build(&[(name, value)]).is_err(), "{name} = {value}");
    }
    assert!(build(&[("tslice", "1ms")]).is_ok());
    let dynamic = [("ratelimit", "3ms"), ("boost_phase", "3ms"), ("dyn_slice", "true")];
    assert!(build(&dynamic).is_ok() && build(&dynamic[..1]).is_ok());
    assert!(build(&[dynamic[0], dynamic[2]]).is_err());
}

impl Rig {
    /// `task`, of domain 0, prefers these PCPUs from now on.
    fn prefer(&mut self, task: u32, affinity: CpuSet, preferred: &[u16]) {
        let preferred = CpuSet::of(preferred.iter().map(|&cpu| CpuId(cpu)));
        let params = TaskParams { affinity, preferred, ..TaskParams::default() };
        self.call(|credit, cx| credit.update(cx, TaskId(task), &params));
    }
}

#[test]
fn a_vcpu_is_placed_on_an_idle_pcpu_that_it_prefers_or_else_on_any() {
    let mut drive = Rig::new("4", &[]);
    drive.settle(0, 0);
    drive.prefer(0, CpuSet::All, &[2, 3]);
    assert_eq!(drive.probe(0, "runqueue"), 2);
    drive.occupy(1, 2);
    drive.prefer(0, CpuSet::All, &[2]);
    assert_eq!(drive.probe(0, "runqueue"), 2, "its own, whose queue is empty");
    drive.create(2, 0, &[2]);
    drive.prefer(0, CpuSet::All, &[2, 1]);
    assert_eq!(drive.probe(0, "runqueue"), 1);
    drive.occupy(3, 1);
    drive.create(4, 0, &[1]);
    drive.prefer(0, CpuSet::All, &[1, 2, 9]);
    assert_eq!(drive.probe(0, "runqueue"), 3, "none of those is idle");
}

#[test]
fn preferences_that_make_no_difference_do_not_count() {
    for (affinity, preferred) in [
        (CpuSet::All, &[0, 1, 2, 3][..]),
        (CpuSet::of([CpuId(0), CpuId(1)]), &[0, 1]),
        (CpuSet::of([CpuId(0), CpuId(1)]), &[2]),
        (CpuSet::All, &[]),
    ] {
        let mut drive = Rig::new("4", &[]);
        drive.settle(0, 0);
        drive.prefer(0, affinity, preferred);
        assert_eq!(drive.probe(0, "runqueue"), 0, "{preferred:?}");
    }
}

#[test]
fn a_wake_is_told_to_an_idle_pcpu_that_is_preferred() {
    let mut drive = Rig::new("4", &[]);
    drive.settle(0, 0);
    drive.prefer(0, CpuSet::All, &[0, 2]);
    drive.occupy(1, 0);
    drive.kicked();
    drive.wake(0);
    assert_eq!(drive.kicked(), [2]);
    drive.dequeue(0);
    drive.occupy(2, 2);
    drive.wake(0);
    // After the last that was told, of all.
    assert_eq!(drive.kicked(), [3]);
}

#[test]
fn a_pcpu_takes_first_what_prefers_it() {
    let stolen = |preferred: &[u16]| {
        let mut drive = Rig::new("3", &[]);
        for (task, cpu) in [(0, 0), (1, 1)] {
            drive.occupy(task, cpu);
        }
        for task in [2, 3] {
            drive.create(task, 0, &[0, 1]);
            drive.prefer(task, CpuSet::All, if task == 3 { preferred } else { &[0, 1, 2] });
        }
        drive.pick(2).map(|(task, _)| task)
    };
    assert_eq!((stolen(&[0, 1, 2]), stolen(&[2])), (Some(2), Some(3)));
}

#[test]
fn a_tick_moves_what_runs_where_it_would_rather_be() {
    let mut drive = Rig::new("2", &[]);
    drive.occupy(1, 1);
    drive.create(0, 0, &[0]);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.prefer(0, CpuSet::All, &[1]);
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, ms(1), Off::Preempted);
    assert_eq!(drive.pick(0), None);
    assert_eq!(drive.probe(0, "runqueue"), 0, "the one that it prefers is busy");
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.put(1, ms(1), Off::Blocked);
    assert_eq!(drive.pick(1), None);
    for _ in 0..2 {
        drive.now += ms(10);
        drive.tick(0, ms(10));
    }
    assert_eq!(drive.kicked().last(), Some(&0));
    drive.put(0, ms(1), Off::Preempted);
    assert_eq!(drive.pick(0), None);
    assert_eq!((drive.kicked(), drive.pick(1).unwrap().0), (alloc::vec![1], 0));
}

#[test]
fn without_boost_a_woken_vcpu_waits_its_turn() {
    let first = |boost: &str| {
        let mut drive = Rig::new("1", &[("boost", boost)]);
        drive.settle(2, 0);
        drive.occupy(0, 0);
        drive.create(1, 0, &[0]);
        drive.wake(2);
        drive.put(0, ms(2), Off::Preempted);
        drive.pick(0).map(|(task, _)| task)
    };
    assert_eq!((first("true"), first("false")), (Some(2), Some(1)));
}
