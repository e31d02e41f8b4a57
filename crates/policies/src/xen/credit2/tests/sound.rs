//! Invariants that hold after every call, whatever the calls.

use super::*;
use crate::xen::credit2::{CREDIT_MAX, CREDIT_MIN, Place};
use proptest::prelude::*;

const TASKS: u32 = 9;
const CPUS: u16 = 6;

/// What the host knows of a vCPU.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Blocked,
    Ready,
    Running(u16),
}

struct Host {
    rig: Rig,
    states: Vec<State>,
    online: Vec<bool>,
    /// Picks so far.
    picks: i64,
}

impl Host {
    fn new(runqueue: &str) -> Host {
        let settings = [("runqueue", runqueue), ("max_cpus_runqueue", "4")];
        let mut rig = Rig::new("3 packages x 2 threads", &settings);
        for task in 0..TASKS {
            rig.attach(task, &of((task % 3) as u16));
        }
        let states = alloc::vec![State::Blocked; TASKS as usize];
        Host { rig, states, online: alloc::vec![true; usize::from(CPUS)], picks: 0 }
    }

    fn runs(&self, cpu: u16) -> Option<u32> {
        let at = self.states.iter().position(|&state| state == State::Running(cpu));
        at.map(|task| task as u32)
    }

    fn put(&mut self, cpu: u16, part: u64, why: Off) {
        let Some(task) = self.runs(cpu) else { return };
        let ran = self.rig.now.since(self.rig.policy.tasks[TaskId(task)].charged);
        // Hosts may count less time than has passed.
        self.rig.put(cpu, task, Span(ran.0 * part / 4), why);
        self.states[task as usize] = if why.runnable() { State::Ready } else { State::Blocked };
    }

    fn pick(&mut self, cpu: u16) {
        if let Some((task, slice)) = self.rig.pick(cpu) {
            assert!(self.states[task as usize] == State::Ready && slice > Span::ZERO);
            assert!(self.online[usize::from(cpu)]);
            self.states[task as usize] = State::Running(cpu);
            self.picks += 1;
        }
    }

    fn plug(&mut self, cpu: u16) {
        let online = !self.online[usize::from(cpu)];
        if !online && self.online.iter().filter(|&&online| online).count() == 1 {
            return;
        }
        if !online {
            // The host widens an affinity that would leave it without a CPU.
            for task in 0..TASKS {
                self.update(task, task, None);
            }
        }
        self.online[usize::from(cpu)] = online;
        self.rig.set_online(cpu, online);
        if !online {
            self.put(cpu, 4, Off::Preempted);
        }
    }

    fn update(&mut self, task: u32, domain: u32, cpu: Option<u16>) {
        let cpu = cpu.filter(|&cpu| self.online[usize::from(cpu)]);
        let affinity = cpu.map_or(CpuSet::All, |cpu| CpuSet::of([CpuId(cpu), CpuId(cpu ^ 1)]));
        // Any CPUs, or in one case of three all.
        let preferred =
            if task.is_multiple_of(3) { CpuSet::All } else { CpuSet::Few(u64::from(domain)) };
        let params = TaskParams { affinity, preferred, ..of((domain % 3) as u16) };
        self.rig.call(|policy, cx| policy.update(cx, TaskId(task), &params));
    }

    fn step(&mut self, (what, task, cpu, n): (u8, u32, u16, u64)) {
        self.rig.now += us(n * n * n / 100);
        let state = self.states[task as usize];
        match (what, state) {
            (0..4, State::Blocked) => {
                self.rig.wake(task);
                self.states[task as usize] = State::Ready;
            }
            (0..2, State::Ready) => {
                self.rig.call(|policy, cx| policy.dequeue(cx, TaskId(task)));
                self.states[task as usize] = State::Blocked;
            }
            (4..8, _) => {
                let whys = [Off::Expired, Off::Preempted, Off::Yielded, Off::NotRun, Off::Blocked];
                self.put(cpu, n % 5, whys[(n % 5) as usize]);
                if n % 3 != 0 {
                    self.pick(cpu);
                }
            }
            (8..12, _) if self.runs(cpu).is_none() => self.pick(cpu),
            (12, _) => self.update(task, task + n as u32, (n % 2 == 0).then_some(cpu)),
            (13, _) => self.plug(cpu),
            (14, _) => self.rig.set_domain((n % 3) as u16, 1 + n as u32 * 7, (n as u32 % 4) * 25),
            (15, State::Blocked) => {
                self.rig.call(|policy, cx| policy.detach(cx, TaskId(task)));
                self.rig.attach(task, &of((n % 3) as u16));
            }
            _ if self.rig.policy.next_timer().is_some_and(|due| due <= self.rig.now) => {
                self.rig.call(|policy, cx| policy.timer(cx));
            }
            _ => {}
        }
    }

    fn check(&self) {
        let policy = &self.rig.policy;
        for (index, queue) in policy.queues.iter().enumerate() {
            let members: Vec<TaskId> = policy.members.iter(&queue.members).collect();
            let waiting: Vec<TaskId> = policy.waiting.iter(&queue.waiting).collect();
            let count = |places: &[Place]| {
                members.iter().filter(|&&task| places.contains(&policy.task(task).place)).count()
            };
            assert!(members.iter().all(|&task| policy.task(task).queue == index));
            assert!(waiting.iter().all(|task| members.contains(task)));
            assert_eq!(count(&[Place::Waiting]), waiting.len());
            assert_eq!(count(&[Place::Waiting, Place::OnCpu]), queue.active as usize);
            let credits = waiting.iter().map(|&task| policy.task(task).credit);
            assert!(credits.is_sorted_by(|a, b| a >= b));
            let most = members.iter().map(|&task| policy.task(task).weight).max();
            assert_eq!(most.unwrap_or(1), queue.max_weight);
            assert!(queue.expected >= 0 && queue.load.average >= 0);
            let idle = queue.cpus.iter().filter(|cpu| policy.cpus[cpu.index()].idle);
            assert_eq!(idle.count(), queue.idle as usize);
            assert!(queue.cpus.iter().all(|cpu| policy.cpus[cpu.index()].queue == index));
            // It may be another runqueue's, of a vCPU that preferred that.
            assert!(queue.cpus.is_empty() || queue.pick_bias.0 < CPUS);
        }
        for cpu in 0..CPUS {
            let on = &policy.cpus[usize::from(cpu)];
            assert_eq!(on.online, self.online[usize::from(cpu)]);
            assert_eq!(self.runs(cpu).map(TaskId), on.current.filter(|_| on.put.is_none()));
            assert!(on.online || !on.idle && !on.tickled);
            assert!(!on.idle || on.current.is_none());
        }
        for task in 0..TASKS {
            self.check_task(task);
        }
    }

    fn check_task(&self, task: u32) {
        let policy = &self.rig.policy;
        let known = &policy.tasks[TaskId(task)];
        let place = match self.states[task as usize] {
            State::Blocked => known.place == Place::Blocked,
            State::Running(cpu) => known.place == Place::OnCpu && known.cpu == CpuId(cpu),
            State::Ready => known.place != Place::Blocked,
        };
        assert!(place, "vCPU {task} is {:?}", known.place);
        // A reset clips credit; moves to other CPUs add to it in between.
        let most = CREDIT_MAX + 50_000 * self.picks;
        assert!((CREDIT_MIN..=most).contains(&known.credit), "{}", known.credit);
        if known.place == Place::Waiting {
            let on = &policy.cpus[known.cpu.index()];
            assert!(on.online && on.queue == known.queue && known.affinity.contains(known.cpu));
        }
        if known.place != Place::OnCpu {
            assert!(known.budget.is_none_or(|budget| budget == 0));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn counts_and_places_agree_after_every_call(
        runqueue in prop::sample::select(alloc::vec!["cpu", "core", "socket", "all"]),
        steps in prop::collection::vec((0..18u8, 0..TASKS, 0..CPUS, 0..100u64), 0..400),
    ) {
        let mut host = Host::new(runqueue);
        for step in steps {
            host.step(step);
            host.check();
        }
    }
}
