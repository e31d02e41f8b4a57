//! Cases worked out by hand.

use alloc::vec::Vec;

use super::{Vfair, VfairParams};
use anysched_core::checked::{Checked, Rules};
use anysched_core::params::Params;
use anysched_core::registry::Policy;
use anysched_core::{CpuId, Machine, Off, Scheduler, Span, TaskId, Time};
use anysched_oracle::drive::{Drive, in_domain, ms, us};
use anysched_oracle::rig;

rig! {
    /// The policy under [`Checked`].
    struct Rig(Drive<Checked<Vfair>>);
}

impl Rig {
    fn new(machine: &str, settings: &[(&str, &str)]) -> Rig {
        Rig::with_rules(machine, settings, Rules::default())
    }

    fn with_rules(machine: &str, settings: &[(&str, &str)], rules: Rules) -> Rig {
        let machine = Machine::parse(machine).unwrap();
        let vfair = Drive::<Vfair>::scheduler_on(&machine, settings).policy;
        Rig(Drive::new(Checked::new(vfair, &machine, rules), &machine))
    }

    fn create(&mut self, task: u32, domain: u16) {
        self.attach(task, &in_domain(domain));
        self.wake(task);
    }

    /// `task` leaves `cpu` after it has run for all the time that passed.
    fn run(&mut self, cpu: u16, task: u32, ran: Span, why: Off) {
        self.now += ran;
        self.put(cpu, task, ran, why);
    }

    /// CPU time of each of `tasks` when slices of CPU 0 end until `until`; timers come when due.
    fn shares(&mut self, tasks: usize, until: Time) -> Vec<u64> {
        let mut used = alloc::vec![0; tasks];
        while self.now < until {
            let timer = self.policy.next_timer().unwrap_or(Time::NEVER);
            let Some((task, slice)) = self.pick(0) else {
                self.now = timer;
                self.call(|policy, cx| policy.timer(cx));
                continue;
            };
            let ran = slice.min(timer.since(self.now).max(Span(1)));
            used[task as usize] += ran.0;
            self.run(0, task, ran, if ran == slice { Off::Expired } else { Off::Preempted });
            if timer <= self.now {
                self.call(|policy, cx| policy.timer(cx));
            }
        }
        used
    }
}

/// Whether `part` of `whole` is `percent` of it within 1 %.
fn is_percent(part: u64, whole: u64, percent: u64) -> bool {
    (part * 100).abs_diff(whole * percent) <= whole
}

#[test]
fn domains_share_by_weight() {
    let mut rig = Rig::new("1", &[]);
    rig.set_domain(1, 256, 0);
    rig.set_domain(2, 512, 0);
    rig.create(0, 1);
    rig.create(1, 2);
    let used = rig.shares(2, Time::ZERO + Span::from_s(1));
    assert!((used[0] * 2).abs_diff(used[1]) * 100 <= used[1], "{used:?}");
}

#[test]
fn a_domain_gains_nothing_by_more_vcpus() {
    let mut rig = Rig::new("1", &[]);
    for (task, domain) in [(0, 1), (1, 2), (2, 2), (3, 2)] {
        rig.create(task, domain);
    }
    let used = rig.shares(4, Time::ZERO + Span::from_s(1));
    assert!(is_percent(used[0], 1_000_000_000, 50), "{used:?}");
}

#[test]
fn a_capped_domain_waits_for_its_next_period() {
    let rules = Rules { work_conserving: false, ..Rules::default() };
    let mut rig = Rig::with_rules("1", &[], rules);
    rig.set_domain(1, 256, 40);
    rig.create(0, 1);
    let used = rig.shares(1, Time::ZERO + Span::from_s(1));
    assert!(is_percent(used[0], 1_000_000_000, 40), "{used:?}");
}

#[test]
fn slices_are_the_latency_divided() {
    let mut rig = Rig::new("1", &[]);
    for task in 0..4 {
        rig.create(task, task as u16);
        // New ones have no past bursts: the least request.
        assert_eq!(rig.policy.policy().task(TaskId(task)).left, us(200));
    }
    let (first, slice) = rig.pick(0).unwrap();
    assert_eq!((first, slice), (0, us(200)));
    rig.run(0, 0, us(200), Off::Expired);
    // 3 wait, none runs, and this one: 4 ms / 4.
    assert_eq!(rig.policy.policy().task(TaskId(0)).left, ms(1));
}

#[test]
fn slices_cover_measured_switches() {
    let mut rig = Rig::new("1", &[("min_slice", "10us")]);
    rig.create(0, 0);
    rig.create(1, 1);
    rig.pick(0);
    // 250 us passed, of which 50 us were the switch: 128 · 50 us = 6.4 ms.
    rig.now += us(250);
    rig.call(|policy, cx| policy.put_prev(cx, CpuId(0), TaskId(0), us(200), Off::Expired));
    assert_eq!(rig.policy.policy().task(TaskId(0)).left, us(6_400));
}

#[test]
fn a_woken_vcpu_takes_the_cpu_after_the_guard() {
    let mut rig = Rig::new("1", &[]);
    rig.create(0, 0);
    rig.attach(1, &in_domain(1));
    rig.pick(0);
    rig.run(0, 0, ms(1), Off::Expired);
    rig.pick(0);
    rig.kicked();
    rig.now += us(40);
    rig.wake(1);
    assert_eq!(rig.kicked(), []);
    assert_eq!(rig.policy.next_timer(), Some(Time(1_100_000)));
    rig.now = Time(1_100_000);
    rig.call(|policy, cx| policy.timer(cx));
    assert_eq!(rig.kicked(), [0]);
    rig.run(0, 0, Span::ZERO, Off::Preempted);
    assert_eq!(rig.pick(0).unwrap().0, 1);
}

#[test]
fn a_woken_vcpu_is_left_alone_by_its_like() {
    let mut rig = Rig::new("1", &[]);
    rig.create(0, 0);
    rig.pick(0);
    rig.kicked();
    rig.now += us(150);
    rig.create(1, 1);
    assert_eq!(rig.kicked(), []);
    assert_eq!(rig.policy.next_timer(), None);
}

#[test]
fn requests_follow_bursts() {
    let mut rig = Rig::new("1", &[]);
    rig.create(0, 0);
    rig.pick(0);
    rig.run(0, 0, us(800), Off::Blocked);
    // A quarter of 800 us is 200 us, twice that is 400 us.
    rig.wake(0);
    assert_eq!(rig.pick(0), Some((0, us(400))));
    rig.run(0, 0, us(400), Off::Blocked);
    // 200 us · 3/4 + 400 us / 4 = 250 us.
    rig.wake(0);
    assert_eq!(rig.pick(0), Some((0, us(500))));
}

#[test]
fn idle_cores_come_before_idle_siblings() {
    let mut rig = Rig::new("2 cores x 2 threads", &[]);
    for task in 0..3 {
        rig.create(task, task as u16);
        let kicked = rig.kicked();
        assert_eq!(kicked, [[0], [2], [3]][task as usize], "task {task}");
        rig.pick(kicked[0]);
    }
}

#[test]
fn wrong_parameters_say_why() {
    let refused = |name: &str, value: &str| {
        let mut params = VfairParams::default();
        params.set(name, value).unwrap();
        Vfair::build(&Machine::flat(1).unwrap(), 1, &params).is_err()
    };
    assert!(refused("latency", "50us"));
    assert!(refused("min_slice", "5ms"));
    assert!(refused("min_request", "1us"));
    assert!(refused("cap_period", "1us"));
    assert!(!refused("guard", "0ns"));
}
