//! SEDF as Xen implements it, with plain lists that are walked: vCPUs, queues, one CPU, one
//! function that decides. The policy must answer random sequences of events in the same way.

use alloc::boxed::Box;
use alloc::vec::Vec;
use proptest::prelude::*;

use crate::policy;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Scheduler, Span, TaskId, TaskParams, Time,
};

const US: i64 = 1_000;
const TASKS: usize = 5;

#[derive(Clone, Copy, Default)]
struct Vcpu {
    period: i64,
    slice: i64,
    deadline: i64,
    started: bool,
    used: i64,
    blocked_before: bool,
    aware: bool,
    wants_l0: bool,
    score: [i64; 2],
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Running {
    Idle,
    Right(usize),
    Extra(usize, usize),
}

/// The four policies.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Sedf,
    Dm,
    DEdf,
    SedfDm,
}

struct Model {
    kind: Kind,
    dm: bool,
    misses: u32,
    seen: u32,
    mets: u32,
    window: u32,
    vcpus: Vec<Vcpu>,
    run: Vec<usize>,
    wait: Vec<usize>,
    extra: [Vec<usize>; 2],
    running: Running,
    expires: i64,
}

impl Model {
    fn begin(&self, v: usize) -> i64 {
        self.vcpus[v].deadline - self.vcpus[v].period
    }

    fn run_key(&self, v: usize) -> i64 {
        if self.dm { self.vcpus[v].slice } else { self.vcpus[v].deadline }
    }

    fn add_run(&mut self, v: usize) {
        let at = self.run.iter().position(|&other| self.run_key(v) < self.run_key(other));
        self.run.insert(at.unwrap_or(self.run.len()), v);
    }

    fn add_wait(&mut self, v: usize) {
        let at = self.wait.iter().position(|&other| self.begin(v) < self.begin(other));
        self.wait.insert(at.unwrap_or(self.wait.len()), v);
    }

    fn add_by_begin(&mut self, v: usize, now: i64) {
        if self.begin(v) > now { self.add_wait(v) } else { self.add_run(v) }
    }

    fn add_extra(&mut self, v: usize, level: usize, subtract: i64) {
        for &other in &self.extra[level] {
            self.vcpus[other].score[level] -= subtract;
        }
        let score = |v: usize| self.vcpus[v].score[level];
        let at = self.extra[level].iter().position(|&other| score(v) < score(other));
        let at = at.unwrap_or(self.extra[level].len());
        self.extra[level].insert(at, v);
    }

    fn drop_all(&mut self, v: usize) {
        self.run.retain(|&other| other != v);
        self.wait.retain(|&other| other != v);
        self.extra.iter_mut().for_each(|queue| queue.retain(|&other| other != v));
    }

    /// Whether the CPU decides anew.
    fn wake(&mut self, v: usize, now: i64) -> bool {
        let Vcpu { period, slice, deadline, used, blocked_before, .. } = self.vcpus[v];
        let vcpu = &mut self.vcpus[v];
        if !vcpu.started {
            vcpu.started = true;
            vcpu.deadline = now + if slice == 0 { period } else { slice };
        } else if now < deadline - period {
            if vcpu.wants_l0 {
                self.add_extra(v, 0, 0);
            }
        } else if now < deadline {
            vcpu.deadline += period;
            vcpu.used = 0;
            if blocked_before && slice - used > 0 {
                vcpu.score[0] = period * 1024 / (slice - used);
                vcpu.wants_l0 = true;
                self.add_extra(v, 0, 0);
            }
        } else {
            vcpu.deadline = now + period;
            vcpu.used = 0;
        }
        if self.vcpus[v].aware {
            self.add_extra(v, 1, 0);
        }
        self.add_by_begin(v, now);
        if self.running == Running::Idle || self.begin(v) < self.expires {
            return true;
        }
        match self.running {
            Running::Extra(other, 0) => {
                self.vcpus[v].wants_l0 && self.vcpus[v].score[0] < self.vcpus[other].score[0]
            }
            Running::Extra(..) => self.vcpus[v].wants_l0,
            _ => false,
        }
    }

    fn stop(&mut self, now: i64, ran: i64, runnable: bool) {
        match self.running {
            Running::Idle => {}
            Running::Right(v) => {
                let vcpu = &mut self.vcpus[v];
                vcpu.blocked_before |= !runnable;
                vcpu.used += ran;
                if vcpu.used < vcpu.slice && runnable {
                    return;
                }
                self.run.retain(|&other| other != v);
                if vcpu.used >= vcpu.slice {
                    vcpu.used -= vcpu.slice;
                    if vcpu.deadline >= now {
                        self.mets += 1;
                        if self.kind == Kind::DEdf {
                            self.misses = 0;
                        }
                    }
                    vcpu.deadline += vcpu.period;
                }
                if runnable { self.add_wait(v) } else { self.drop_all(v) }
            }
            Running::Extra(v, level) => {
                self.extra[level].retain(|&other| other != v);
                let vcpu = &mut self.vcpus[v];
                vcpu.blocked_before |= !runnable;
                vcpu.used = 0;
                let old = vcpu.score[level];
                if level == 0 {
                    vcpu.wants_l0 = false;
                } else {
                    vcpu.score[1] =
                        if vcpu.slice == 0 { 1 << 17 } else { vcpu.period * 1024 / vcpu.slice };
                }
                if !runnable {
                    self.drop_all(v);
                } else if level == 1 && vcpu.aware {
                    self.add_extra(v, 1, old);
                }
            }
        }
    }

    fn update_queues(&mut self, now: i64) {
        while let Some(&v) = self.wait.first().filter(|&&v| self.begin(v) <= now) {
            self.wait.remove(0);
            self.add_run(v);
        }
        let mut late = Vec::new();
        let mut next = self.run.first().copied();
        while let Some(v) = next {
            let at = self.run.iter().position(|&other| other == v).unwrap();
            next = self.run.get(at + 1).copied();
            let vcpu = &mut self.vcpus[v];
            if vcpu.slice == 0 {
                vcpu.deadline += vcpu.period;
                while vcpu.deadline - vcpu.period < now {
                    vcpu.deadline += vcpu.period;
                }
                self.run.remove(at);
                self.add_wait(v);
                continue;
            }
            self.seen += u32::from(!late.contains(&v));
            if vcpu.deadline < now || vcpu.used > vcpu.slice {
                self.misses += 1;
                late.push(v);
                if self.kind == Kind::DEdf {
                    self.mets = 0;
                }
                vcpu.deadline += vcpu.period;
                while vcpu.deadline < now {
                    vcpu.deadline += vcpu.period;
                }
                vcpu.used = 0;
                self.run.remove(at);
                self.add_by_begin(v, now);
            } else if !self.dm && self.kind != Kind::SedfDm {
                break;
            }
        }
    }

    fn switch(&mut self) {
        let switches = match self.kind {
            Kind::Sedf | Kind::Dm => false,
            Kind::DEdf if self.dm => self.mets >= 10,
            Kind::DEdf => self.misses >= 2,
            Kind::SedfDm if self.seen < self.window => false,
            Kind::SedfDm if self.dm => self.misses == 0,
            Kind::SedfDm => self.misses > self.seen / 16,
        };
        if switches {
            let dm = core::mem::replace(&mut self.dm, false) ^ true;
            self.dm = dm;
            match self.kind {
                Kind::DEdf if dm => self.misses = 0,
                Kind::DEdf => self.mets = 0,
                _ => {}
            }
            let old = core::mem::take(&mut self.run);
            old.into_iter().for_each(|v| self.add_run(v));
        }
        if self.kind == Kind::SedfDm && self.seen >= self.window {
            (self.seen, self.misses) = (0, 0);
        }
    }

    fn schedule(&mut self, now: i64, ran: i64, runnable: bool) -> Option<(usize, i64)> {
        self.stop(now, ran, runnable);
        self.update_queues(now);
        self.switch();
        let begin = self.wait.first().map_or(i64::MAX, |&v| self.begin(v));
        let (running, time) = match self.run.first() {
            Some(&v) => {
                let left = self.vcpus[v].slice - self.vcpus[v].used;
                // Xen's timer would expire at once.
                let until = if begin > now { begin - now } else { i64::MAX };
                (Running::Right(v), left.max(1).min(until))
            }
            None if begin != i64::MAX && begin - now >= 500 * US => {
                let first = |level: usize| Some((*self.extra[level].first()?, level));
                match first(0).or(first(1)) {
                    Some((v, level)) => (Running::Extra(v, level), 500 * US),
                    None => (Running::Idle, 0),
                }
            }
            None => (Running::Idle, 0),
        };
        self.running = running;
        self.expires = now + time;
        match running {
            Running::Right(v) | Running::Extra(v, _) => Some((v, time)),
            Running::Idle => None,
        }
    }
}

/// The policy and the model side by side.
struct Pair {
    policy: Box<dyn Scheduler>,
    model: Model,
    now: i64,
    kicks: CpuMask,
    since: i64,
    slice: i64,
    picks: u32,
    switches: u32,
}

impl Pair {
    fn new(kind: Kind, aware: bool, budgets: &[(i64, i64)]) -> Pair {
        let mut settings = alloc::vec![("extra", if aware { "true" } else { "false" })];
        settings.push(("slice", "1ms"));
        let name = match kind {
            Kind::Sedf => "sedf",
            Kind::Dm => "dm-xen",
            Kind::DEdf => "d-edf",
            Kind::SedfDm => {
                settings.push(("window", "24"));
                "sedf-dm"
            }
        };
        let vcpu = |&(period, slice): &(i64, i64)| Vcpu {
            period: period * 100 * US,
            slice: slice * 100 * US,
            aware,
            ..Vcpu::default()
        };
        let mut pair = Pair {
            policy: (policy(name).unwrap().build)(&Machine::flat(1).unwrap(), &settings).unwrap(),
            model: Model {
                kind,
                dm: kind == Kind::Dm,
                misses: 0,
                seen: 0,
                mets: 0,
                window: 24,
                vcpus: budgets.iter().map(vcpu).collect(),
                run: Vec::new(),
                wait: Vec::new(),
                extra: [Vec::new(), Vec::new()],
                running: Running::Idle,
                expires: 0,
            },
            now: 0,
            kicks: CpuMask::EMPTY,
            since: 0,
            slice: 0,
            picks: 0,
            switches: 0,
        };
        for v in 0..budgets.len() {
            let Vcpu { period, slice, .. } = pair.model.vcpus[v];
            let params = TaskParams {
                period: Some(Span(period as u64)),
                budget: Some(Span(slice as u64)),
                ..TaskParams::default()
            };
            pair.call(|policy, cx| policy.attach(cx, TaskId(v as u32), &params));
        }
        pair
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>) -> R) -> R {
        call(&mut *self.policy, &mut Cx::new(Time(self.now as u64), &mut self.kicks))
    }

    fn current(&self) -> Option<usize> {
        match self.model.running {
            Running::Right(v) | Running::Extra(v, _) => Some(v),
            Running::Idle => None,
        }
    }

    fn is_queued(&self, v: usize) -> bool {
        self.model.run.contains(&v) || self.model.wait.contains(&v)
    }

    fn schedule(&mut self, why: Off) -> Result<(), TestCaseError> {
        let ran = self.now - self.since;
        if let Some(v) = self.current() {
            let (task, ran) = (TaskId(v as u32), Span(ran as u64));
            self.call(|policy, cx| policy.put_prev(cx, CpuId(0), task, ran, why));
        }
        self.kicks.clear();
        let before = self.model.dm;
        let pick = self.call(|policy, cx| policy.pick_next(cx, CpuId(0)));
        let pick = pick.map(|pick| (pick.task.index(), pick.slice.0 as i64));
        let expected = self.model.schedule(self.now, ran, why.runnable());
        prop_assert_eq!(pick, expected, "at {}, dm {}", self.now, self.model.dm);
        self.switches += u32::from(before != self.model.dm);
        self.picks += u32::from(pick.is_some());
        self.since = self.now;
        self.slice = expected.map_or(i64::MAX, |(_, time)| time);
        Ok(())
    }

    /// Lets `span` pass; slices end and periods begin meanwhile.
    fn pass(&mut self, span: i64) -> Result<(), TestCaseError> {
        let until = self.now + span;
        loop {
            let ends = if self.current().is_some() { self.since + self.slice } else { i64::MAX };
            let timer = self.policy.next_timer().map_or(i64::MAX, |time| time.0 as i64);
            let next = ends.min(timer);
            if next > until {
                self.now = until;
                return Ok(());
            }
            // A slice ends when a period begins, if not before; the timer is for idle CPUs, and
            // for what begins at the time of the pick.
            let begin = self.model.wait.first().map_or(i64::MAX, |&v| self.model.begin(v));
            prop_assert_eq!(timer, begin);
            let is_cut = ends <= timer || timer == self.now;
            prop_assert!(is_cut || self.current().is_none(), "{} {}", ends, timer);
            self.now = next;
            if timer == next {
                self.call(|policy, cx| policy.timer(cx));
                let due = self.policy.next_timer();
                prop_assert!(due.is_none_or(|due| due.0 as i64 > self.now));
            }
            self.schedule(Off::Expired)?;
        }
    }

    fn wake(&mut self, v: usize) -> Result<(), TestCaseError> {
        if self.is_queued(v) {
            return Ok(());
        }
        let why = Enqueue::Wakeup { prev: CpuId(0), sync: false };
        self.call(|policy, cx| policy.enqueue(cx, TaskId(v as u32), Arrival::because(why)));
        let decides = self.model.wake(v, self.now);
        prop_assert_eq!(self.kicks.contains(CpuId(0)), decides);
        if decides { self.schedule(Off::Preempted) } else { Ok(()) }
    }

    fn sleep(&mut self, v: usize) {
        if self.is_queued(v) && self.current() != Some(v) {
            self.call(|policy, cx| policy.dequeue(cx, TaskId(v as u32)));
            self.model.drop_all(v);
        }
    }
}

proptest! {
    #[test]
    fn the_policy_decides_as_xen_does(
        kind in prop::sample::select(alloc::vec![Kind::Sedf, Kind::Dm, Kind::DEdf, Kind::SedfDm]),
        aware: bool,
        budgets in prop::collection::vec((1..40i64, 1..40i64), TASKS),
        best_effort in 0..4usize,
        steps in prop::collection::vec((0..9u8, 0..TASKS, 1..8_000i64, 0..3u32), 1..150),
    ) {
        let mut budgets: Vec<(i64, i64)> =
            budgets.into_iter().map(|(period, slice)| (period, slice.min(period))).collect();
        if aware && best_effort < TASKS {
            budgets[best_effort] = (100, 0);
        }
        let mut pair = Pair::new(kind, aware, &budgets);
        for (step, v, span, finer) in steps {
            // From nanoseconds to milliseconds.
            pair.pass(span * US / 50i64.pow(finer))?;
            match step {
                0..4 => pair.wake(v)?,
                4 => pair.schedule(Off::Preempted)?,
                5 => pair.schedule(Off::Yielded)?,
                6 | 7 => pair.schedule(Off::Blocked)?,
                _ => pair.sleep(v),
            }
        }
    }

    /// vCPUs that ask for more than there is and never sleep, so that orders change.
    #[test]
    fn and_under_overload(
        kind in prop::sample::select(alloc::vec![Kind::DEdf, Kind::SedfDm]),
        budgets in prop::collection::vec((10..40i64, 3..15i64), TASKS),
        spans in prop::collection::vec((1..40_000i64, 0..TASKS), 40),
    ) {
        let budgets: Vec<(i64, i64)> =
            budgets.into_iter().map(|(period, slice)| (period, slice.min(period))).collect();
        let mut pair = Pair::new(kind, false, &budgets);
        for v in 0..TASKS {
            pair.wake(v)?;
        }
        for (span, v) in spans {
            pair.pass(span * US)?;
            if span % 3 == 0 && pair.current() == Some(v) {
                pair.schedule(Off::Blocked)?;
            }
            if span % 5 == 0 {
                pair.wake(v)?;
            }
        }
        prop_assert!(pair.picks > 40);
        let utilisation: f64 = budgets.iter().map(|&(p, s)| s as f64 / p as f64).sum();
        prop_assert!(utilisation < 2.5 || pair.switches > 0, "{utilisation}");
    }
}
