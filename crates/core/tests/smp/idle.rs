//! No CPU is left idle beside a task that it may run, whatever happens.

use proptest::prelude::*;
use proptest::sample::select;

use crate::Rig;
use anysched_core::{CpuId, CpuSet, Enqueue, Off, RunQueue, Scheduler, TaskId, TaskParams};
use anysched_policies::linux::cfs::Cfs;
use anysched_policies::textbook::fcfs::Fcfs;

const TASKS: u32 = 14;

#[derive(Clone, Copy, Debug)]
enum Step {
    Create { task: u32, from: u16, cpus: u64, nice: i8 },
    Wake { task: u32, from: Option<u16>, sync: bool },
    Resume { task: u32 },
    TakeOut { task: u32 },
    Update { task: u32, cpus: u64, nice: i8 },
    Detach { task: u32 },
    Put { cpu: u16, why: Off, pick: bool },
    Pick { cpu: u16 },
    Online { cpu: u16, online: bool },
    Pass { us: u64 },
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let why = select(&[Off::Expired, Off::Preempted, Off::Yielded, Off::NotRun, Off::Blocked]);
    let (task, cpu) = (0..TASKS, 0..8u16);
    // Some tasks may run everywhere, most on a few CPUs.
    let cpus = || prop_oneof![Just(u64::MAX), any::<u64>(), (0..8u32).prop_map(|cpu| 1 << cpu)];
    let nice = || -20..20i8;
    prop_oneof![
        4 => (task.clone(), cpu.clone(), cpus(), nice())
            .prop_map(|(task, from, cpus, nice)| Step::Create { task, from, cpus, nice }),
        6 => (task.clone(), prop::option::of(cpu.clone()), any::<bool>())
            .prop_map(|(task, from, sync)| Step::Wake { task, from, sync }),
        1 => task.clone().prop_map(|task| Step::Resume { task }),
        1 => task.clone().prop_map(|task| Step::TakeOut { task }),
        2 => (task.clone(), cpus(), nice())
            .prop_map(|(task, cpus, nice)| Step::Update { task, cpus, nice }),
        1 => task.prop_map(|task| Step::Detach { task }),
        8 => (cpu.clone(), why, any::<bool>())
            .prop_map(|(cpu, why, pick)| Step::Put { cpu, why, pick }),
        4 => cpu.clone().prop_map(|cpu| Step::Pick { cpu }),
        1 => (cpu, any::<bool>()).prop_map(|(cpu, online)| Step::Online { cpu, online }),
        2 => (0..3000u64).prop_map(|us| Step::Pass { us }),
        3 => Just(Step::Settle),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Detached,
    Blocked,
    Ready,
    Running,
}

/// The rig, and what each task's state and affinity ought to be.
struct World<Q> {
    rig: Rig<Q>,
    states: Vec<State>,
    affinities: Vec<CpuSet>,
    prev: Vec<u16>,
    online: Vec<bool>,
    /// CPUs whose task was put back and which have not picked since.
    to_pick: Vec<bool>,
}

impl<Q: RunQueue> World<Q> {
    fn new(machine: &str, settings: &[(&str, &str)]) -> World<Q> {
        let rig = Rig::new(machine, settings);
        let cpus = usize::from(rig.cpus());
        World {
            rig,
            states: vec![State::Detached; TASKS as usize],
            affinities: vec![CpuSet::All; TASKS as usize],
            prev: vec![0; TASKS as usize],
            online: vec![true; cpus],
            to_pick: vec![false; cpus],
        }
    }

    /// `cpus` as an affinity that some CPU in use satisfies.
    fn affinity(&self, cpus: u64) -> CpuSet {
        let set = if cpus == u64::MAX { CpuSet::All } else { CpuSet::Few(cpus) };
        if self.has_cpu(&set, None) { set } else { CpuSet::All }
    }

    fn has_cpu(&self, set: &CpuSet, but: Option<usize>) -> bool {
        let usable = |cpu: &usize| self.online[*cpu] && Some(*cpu) != but;
        (0..self.online.len()).filter(usable).any(|cpu| set.contains(CpuId(cpu as u16)))
    }

    fn params(&mut self, task: u32, cpus: u64, nice: i8) -> TaskParams {
        let affinity = self.affinity(cpus);
        self.affinities[task as usize] = affinity.clone();
        TaskParams { affinity, ..TaskParams::nice(nice) }
    }

    fn pick(&mut self, cpu: u16) {
        self.to_pick[usize::from(cpu)] = false;
        if let Some(task) = self.rig.pick(cpu) {
            assert_eq!(self.states[task as usize], State::Ready, "task {task} on CPU {cpu}");
            assert!(self.affinities[task as usize].contains(CpuId(cpu)));
            assert!(self.online[usize::from(cpu)]);
            self.states[task as usize] = State::Running;
            self.prev[task as usize] = cpu;
        }
    }

    fn put(&mut self, cpu: u16, why: Off) {
        let task = self.rig.put(cpu, why);
        self.states[task as usize] = if why.runnable() { State::Ready } else { State::Blocked };
        self.to_pick[usize::from(cpu)] = true;
    }

    /// Lets every CPU pick that was kicked or whose task was put back, the highest first.
    fn settle(&mut self) {
        while let Some(cpu) = (0..self.online.len() as u16)
            .rev()
            .find(|&cpu| self.to_pick[usize::from(cpu)] || self.rig.kicks.contains(CpuId(cpu)))
        {
            self.rig.kicks.remove(CpuId(cpu));
            if self.rig.running(cpu).is_some() {
                self.put(cpu, Off::Preempted);
            }
            self.pick(cpu);
        }
        for cpu in (0..self.online.len()).filter(|&cpu| self.online[cpu]) {
            if self.rig.running(cpu as u16).is_some() {
                continue;
            }
            for task in 0..TASKS as usize {
                let could = self.affinities[task].contains(CpuId(cpu as u16));
                assert!(
                    self.states[task] != State::Ready || !could,
                    "CPU {cpu} is idle beside task {task}"
                );
            }
        }
    }

    fn go_online(&mut self, cpu: u16, online: bool) {
        let index = usize::from(cpu);
        if online == self.online[index] || !online && !self.has_cpu(&CpuSet::All, Some(index)) {
            return;
        }
        if online {
            self.online[index] = true;
            return self.rig.set_online(cpu, true);
        }
        for task in 0..TASKS as usize {
            let lives = self.states[task] != State::Detached;
            if lives && !self.has_cpu(&self.affinities[task], Some(index)) {
                self.affinities[task] = CpuSet::All;
                let params = TaskParams::default();
                self.rig.call(|smp, cx| smp.update(cx, TaskId(task as u32), &params));
            }
        }
        self.online[index] = false;
        self.to_pick[index] = false;
        let running = self.rig.running(cpu);
        self.rig.set_online(cpu, false);
        self.rig.kicks.remove(CpuId(cpu));
        if let Some(task) = running {
            self.states[task as usize] = State::Ready;
        }
    }

    fn step(&mut self, step: Step) {
        let cpus = self.online.len() as u16;
        let state = |world: &World<Q>, task: u32| world.states[task as usize];
        match step {
            Step::Create { task, from, cpus: set, nice } => {
                if state(self, task) == State::Detached {
                    let params = self.params(task, set, nice);
                    self.rig.create_with(task, from % cpus, &params);
                    self.states[task as usize] = State::Ready;
                }
            }
            Step::Wake { task, from, sync } => {
                if state(self, task) == State::Blocked {
                    let prev = CpuId(self.prev[task as usize]);
                    let why = Enqueue::Wakeup { prev, sync };
                    self.rig.enqueue(task, why, from.map(|from| from % cpus));
                    self.states[task as usize] = State::Ready;
                }
            }
            Step::Resume { task } => {
                if state(self, task) == State::Blocked {
                    let prev = CpuId(self.prev[task as usize]);
                    self.rig.enqueue(task, Enqueue::Resumed { prev }, None);
                    self.states[task as usize] = State::Ready;
                }
            }
            Step::TakeOut { task } => {
                if state(self, task) == State::Ready {
                    self.rig.call(|smp, cx| smp.dequeue(cx, TaskId(task)));
                    self.states[task as usize] = State::Blocked;
                }
            }
            Step::Update { task, cpus, nice } => {
                if state(self, task) != State::Detached {
                    let params = self.params(task, cpus, nice);
                    self.rig.call(|smp, cx| smp.update(cx, TaskId(task), &params));
                }
            }
            Step::Detach { task } => {
                if state(self, task) == State::Blocked {
                    self.rig.call(|smp, cx| smp.detach(cx, TaskId(task)));
                    self.states[task as usize] = State::Detached;
                }
            }
            Step::Put { cpu, why, pick } => {
                if self.rig.running(cpu % cpus).is_some() {
                    self.put(cpu % cpus, why);
                    if pick {
                        self.pick(cpu % cpus);
                    }
                }
            }
            Step::Pick { cpu } => {
                if self.rig.running(cpu % cpus).is_none() {
                    self.pick(cpu % cpus);
                }
            }
            Step::Online { cpu, online } => self.go_online(cpu % cpus, online),
            Step::Pass { us } => {
                // Kicks wait meanwhile, those of the timer too.
                self.rig.now += anysched_core::Span::from_us(us);
                if self.rig.policy.next_timer().is_some_and(|due| due <= self.rig.now) {
                    self.rig.call(|smp, cx| smp.timer(cx));
                }
            }
            Step::Settle => self.settle(),
        }
    }
}

fn play<Q: RunQueue>(machine: &str, settings: &[(&str, &str)], steps: &[Step]) {
    let mut world = World::<Q>::new(machine, settings);
    for &step in steps {
        world.step(step);
    }
    world.settle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_cpu_idles_beside_a_task_that_it_may_run(
        machine in select(&[
            "1", "2", "3 cpus", "2 llcs x 2 cores", "4 cores x 2 threads",
            "2 nodes x 2 cores x 2 threads", "2 nodes x 2 packages x 1 core x 2 threads",
        ]),
        layout in select(&["per-cpu", "per-cpu", "per-llc", "per-node", "global"]),
        place in select(&["creator", "round-robin", "least-loaded", "linux"]),
        balance in select(&["never", "linux"]),
        fair in any::<bool>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let settings = [
            ("layout", layout), ("place", place), ("balance", balance), ("steal", "machine"),
        ];
        if fair {
            play::<Cfs>(machine, &settings, &steps);
        } else {
            play::<Fcfs>(machine, &settings, &steps);
        }
    }
}
