//! A small host that keeps to the contract: a few CPUs; tasks that run, block, wake, yield, end and
//! are moved about at random; late kicks. Everything follows from one seed.

use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, Machine, Off, Scheduler,
    Span, TaskId, TaskParams, Time,
};

/// Marsaglia's xorshift, 64 bit.
pub struct XorShift(u64);

impl XorShift {
    /// The sequence that starts from `seed`.
    pub fn new(seed: u64) -> XorShift {
        XorShift(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// From half to one and a half of `mean`.
    fn around(&mut self, mean: Span) -> Span {
        Span(mean.0 / 2 + self.below(mean.0 + 1))
    }
}

/// What the tasks do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many there are.
    pub tasks: u32,
    /// Mean CPU time before a task blocks.
    pub burst: Span,
    /// Mean time blocked.
    pub pause: Span,
    /// Some tasks may not run everywhere.
    pub pinned: bool,
    /// CPUs go out of use and come back.
    pub hotplug: bool,
}

struct OnCpu {
    online: bool,
    running: Option<TaskId>,
    /// When its task was picked or last charged.
    charged: Time,
    /// What is left of the slice.
    slice: Span,
}

struct Guest {
    state: State,
    /// CPU time until it blocks, yields or ends.
    left: Span,
    prev: CpuId,
    params: TaskParams,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not attached until then.
    Gone(Time),
    /// Blocked until then, and why it becomes ready.
    Blocked(Time, Back),
    Ready,
    Running,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    Wakeup,
    Resumed,
}

/// See the [module documentation](self).
pub struct Host<S> {
    /// The policy.
    pub policy: S,
    /// The time of the next call.
    pub now: Time,
    /// Picks so far.
    pub picks: u64,
    steps: u64,
    load: Load,
    rng: XorShift,
    kicked: CpuMask,
    cpus: Vec<OnCpu>,
    tasks: Vec<Guest>,
    tick: Span,
    next_tick: Time,
    draining: bool,
}

impl<S: Scheduler> Host<S> {
    /// Plays `load` to `policy`, which was built for `machine`.
    pub fn new(policy: S, machine: &Machine, load: Load, seed: u64) -> Host<S> {
        let mut rng = XorShift::new(seed);
        let cpu = |_| OnCpu { online: true, running: None, charged: Time::ZERO, slice: Span::ZERO };
        let born = |_| Guest {
            state: State::Gone(Time(rng.below(load.pause.0))),
            left: Span::ZERO,
            prev: CpuId(0),
            params: TaskParams::default(),
        };
        let tasks = (0..load.tasks).map(born).collect();
        let tick = policy.tick_period().unwrap_or(Span::from_ms(1));
        Host {
            policy,
            now: Time::ZERO,
            picks: 0,
            steps: 0,
            load,
            rng,
            kicked: CpuMask::EMPTY,
            cpus: machine.cpu_ids().map(cpu).collect(),
            tasks,
            tick,
            next_tick: Time::ZERO + tick,
            draining: false,
        }
    }

    /// Moves on to the next event, or to some time before it.
    pub fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < 1_000 * (self.picks + 10), "the host gets nowhere");
        self.now = self.next_time();
        self.fire_timer();
        for cpu in 0..self.cpus.len() {
            self.end_turn(cpu);
        }
        self.wake_sleepers();
        self.ticks();
        if !self.draining && self.rng.one_in(4) {
            self.disturb();
        }
        self.answer_kicks();
    }

    /// Changes a parameter of the policy.
    pub fn set_param(&mut self, name: &str, text: &str) {
        self.call(|policy, cx| policy.set_param(cx, name, text));
    }

    /// Lets every task run until it blocks, as long as any does so. Returns how many tasks are
    /// still ready at the end.
    pub fn drain(&mut self) -> usize {
        self.draining = true;
        for _ in 0..100_000 {
            let alive = |task: &Guest| matches!(task.state, State::Ready | State::Running);
            if !self.tasks.iter().any(alive) || self.next_time() == Time::NEVER {
                break;
            }
            self.step();
        }
        self.tasks.iter().filter(|task| task.state == State::Ready).count()
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
        call(&mut self.policy, &mut Cx::new(self.now, &mut self.kicked))
    }

    fn next_time(&mut self) -> Time {
        if !self.kicked.is_empty() {
            return if self.draining { self.now } else { self.now + Span(self.rng.below(5_000)) };
        }
        let busy = self.cpus.iter().filter_map(|on| {
            let left = self.tasks[on.running?.index()].left;
            Some(on.charged + left.min(on.slice))
        });
        let sleepers = self.tasks.iter().filter_map(|task| match task.state {
            State::Gone(until) | State::Blocked(until, _) if !self.draining => Some(until),
            _ => None,
        });
        let timer = self.policy.next_timer().filter(|&due| due > self.now);
        let next = busy.chain(sleepers).chain(timer).min();
        let running = self.cpus.iter().any(|on| on.running.is_some());
        let tick = if running { self.next_tick } else { Time::NEVER };
        let next = next.unwrap_or(Time::NEVER).min(tick).max(self.now);
        if self.draining {
            return next;
        }
        next.min(self.now + Span(self.rng.below(self.load.burst.0 / 3)))
    }

    fn fire_timer(&mut self) {
        for _ in 0..1_000 {
            if self.policy.next_timer().is_none_or(|due| due > self.now) {
                return;
            }
            self.call(|policy, cx| policy.timer(cx));
        }
    }

    /// The CPU time that the task on `cpu` has used since it was last charged. Now and then a
    /// little is lost to interrupts.
    fn measure(&mut self, cpu: usize) -> Span {
        let elapsed = self.now - self.cpus[cpu].charged;
        if !self.draining && self.rng.one_in(8) { Span(elapsed.0 - elapsed.0 / 8) } else { elapsed }
    }

    fn charge(&mut self, cpu: usize, task: TaskId, ran: Span) {
        let on = &mut self.cpus[cpu];
        on.charged = self.now;
        if on.slice != Span::MAX {
            on.slice = on.slice.saturating_sub(ran);
        }
        let guest = &mut self.tasks[task.index()];
        guest.left = guest.left.saturating_sub(ran);
    }

    fn end_turn(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].running else { return };
        let elapsed = self.now - self.cpus[cpu].charged;
        if self.tasks[task.index()].left <= elapsed {
            let why = match self.rng.below(10) {
                _ if self.draining => Off::Blocked,
                0..2 => Off::Yielded,
                2 => Off::Exited,
                _ => Off::Blocked,
            };
            self.put(cpu, elapsed, why);
            if why == Off::Exited {
                self.call(|policy, cx| policy.detach(cx, task));
                let pause = self.rng.around(self.load.pause);
                self.tasks[task.index()].state = State::Gone(self.now + pause);
            }
        } else if self.cpus[cpu].slice <= elapsed {
            self.put(cpu, elapsed, Off::Expired);
        } else {
            return;
        }
        if self.rng.one_in(8) {
            self.wake_sleepers();
        }
        self.pick(cpu);
    }

    fn put(&mut self, cpu: usize, ran: Span, why: Off) {
        let Some(task) = self.cpus[cpu].running.take() else { return };
        self.charge(cpu, task, ran);
        let on = CpuId(cpu as u16);
        self.call(|policy, cx| policy.put_prev(cx, on, task, ran, why));
        let (burst, pause) = (self.rng.around(self.load.burst), self.rng.around(self.load.pause));
        let guest = &mut self.tasks[task.index()];
        guest.prev = on;
        if guest.left == Span::ZERO || why == Off::Yielded {
            guest.left = burst;
        }
        guest.state = match why {
            _ if why.runnable() => State::Ready,
            _ => State::Blocked(self.now + pause, Back::Wakeup),
        };
    }

    fn pick(&mut self, cpu: usize) {
        let on = CpuId(cpu as u16);
        for _ in 0..4 {
            self.kicked.remove(on);
            let Some(pick) = self.call(|policy, cx| policy.pick_next(cx, on)) else { return };
            self.picks += 1;
            self.tasks[pick.task.index()].state = State::Running;
            self.cpus[cpu] = OnCpu {
                online: true,
                running: Some(pick.task),
                charged: self.now,
                slice: pick.slice,
            };
            if self.draining || !self.rng.one_in(64) {
                return;
            }
            self.put(cpu, Span::ZERO, Off::NotRun);
        }
        self.kicked.insert(on);
    }

    fn wake_sleepers(&mut self) {
        if self.draining {
            return;
        }
        for task in 0..self.tasks.len() as u32 {
            match self.tasks[task as usize].state {
                State::Gone(until) if until <= self.now => self.create(TaskId(task)),
                State::Blocked(until, back) if until <= self.now => self.wake(TaskId(task), back),
                _ => {}
            }
        }
    }

    fn create(&mut self, task: TaskId) {
        let params = self.random_params();
        self.call(|policy, cx| policy.attach(cx, task, &params));
        let left = self.rng.around(self.load.burst);
        self.tasks[task.index()] =
            Guest { state: State::Blocked(self.now, Back::Wakeup), left, prev: CpuId(0), params };
        self.enqueue(task, Enqueue::New);
    }

    fn wake(&mut self, task: TaskId, back: Back) {
        let prev = self.tasks[task.index()].prev;
        let why = match back {
            Back::Wakeup => Enqueue::Wakeup { prev, sync: self.rng.one_in(4) },
            Back::Resumed => Enqueue::Resumed { prev },
        };
        self.enqueue(task, why);
    }

    fn enqueue(&mut self, task: TaskId, why: Enqueue) {
        let from = CpuId(self.rng.below(self.cpus.len() as u64) as u16);
        let arrival = Arrival {
            why,
            from: (!self.rng.one_in(3)).then_some(from),
            burst: Some(self.tasks[task.index()].left),
            deadline: self.rng.one_in(4).then_some(self.now + Span::from_ms(10)),
        };
        self.call(|policy, cx| policy.enqueue(cx, task, arrival));
        self.tasks[task.index()].state = State::Ready;
    }

    fn random_params(&mut self) -> TaskParams {
        let nice = self.rng.below(40) as i8 - 20;
        let affinity = self.random_affinity();
        let domain = DomainId(self.rng.below(3) as u16);
        let preferred = match self.load.pinned && self.rng.one_in(2) {
            true => CpuSet::Few(self.rng.below(1 << self.cpus.len().min(32))),
            false => CpuSet::All,
        };
        let priority = -i32::from(nice);
        let params = TaskParams { affinity, preferred, domain, priority, ..TaskParams::nice(nice) };
        // Half of them use the memory much.
        TaskParams { intensity: (nice + 20) as u8 * 5 / 2, ..params }
    }

    /// CPUs of which at least one is in use.
    fn random_affinity(&mut self) -> CpuSet {
        if !self.load.pinned || self.rng.one_in(2) {
            return CpuSet::All;
        }
        let bits = self.rng.below(1 << self.cpus.len().min(32));
        let set = CpuSet::Few(bits);
        if self.has_cpu(&set, None) { set } else { CpuSet::All }
    }

    /// Whether `set` has a CPU in use apart from `but`.
    fn has_cpu(&self, set: &CpuSet, but: Option<usize>) -> bool {
        let mut usable = self.cpus.iter().enumerate().filter(|(_, on)| on.online);
        usable.any(|(cpu, _)| Some(cpu) != but && set.contains(CpuId(cpu as u16)))
    }

    fn ticks(&mut self) {
        if self.now < self.next_tick {
            return;
        }
        self.next_tick = self.now + self.tick;
        for cpu in 0..self.cpus.len() {
            if let Some(task) = self.cpus[cpu].running {
                let ran = self.measure(cpu);
                self.charge(cpu, task, ran);
                self.call(|policy, cx| policy.tick(cx, CpuId(cpu as u16), task, ran));
            }
        }
    }

    fn answer_kicks(&mut self) {
        for cpu in 0..self.cpus.len() {
            if !self.kicked.contains(CpuId(cpu as u16)) {
                continue;
            }
            if !self.cpus[cpu].online && !self.rng.one_in(4) {
                self.kicked.remove(CpuId(cpu as u16));
            } else if self.draining || !self.rng.one_in(4) {
                self.reschedule(cpu);
            }
        }
    }

    /// `put_prev` and `pick_next`; sometimes the losing task is not saved yet and has to be taken
    /// out for a moment (rule 9).
    fn reschedule(&mut self, cpu: usize) {
        let prev = self.cpus[cpu].running;
        let ran = self.measure(cpu);
        self.put(cpu, ran, Off::Preempted);
        self.pick(cpu);
        let Some(prev) = prev.filter(|_| !self.draining && self.rng.one_in(4)) else { return };
        if self.tasks[prev.index()].state == State::Ready {
            self.call(|policy, cx| policy.dequeue(cx, prev));
            let until = self.now + Span(self.rng.below(3_000));
            self.tasks[prev.index()].state = State::Blocked(until, Back::Resumed);
        }
    }

    fn disturb(&mut self) {
        let task = TaskId(self.rng.below(self.tasks.len() as u64) as u32);
        let cpu = self.rng.below(self.cpus.len() as u64) as usize;
        let state = self.tasks[task.index()].state;
        match self.rng.below(16) {
            0..4 if self.cpus[cpu].online => self.reschedule(cpu),
            4..7 if !matches!(state, State::Gone(_)) => self.update(task),
            7..9 if state == State::Ready => {
                self.call(|policy, cx| policy.dequeue(cx, task));
                let until = self.now + self.rng.around(self.load.pause);
                self.tasks[task.index()].state = State::Blocked(until, Back::Wakeup);
            }
            9 if matches!(state, State::Blocked(..)) => {
                self.call(|policy, cx| policy.detach(cx, task));
                let until = self.now + self.rng.around(self.load.pause);
                self.tasks[task.index()].state = State::Gone(until);
            }
            10 => {
                let domain = DomainId(self.rng.below(3) as u16);
                let weight = 1 + self.rng.below(512) as u32;
                let params = DomainParams { weight, cap_percent: 0 };
                self.call(|policy, cx| policy.set_domain(cx, domain, &params));
            }
            11..13 if self.load.hotplug => self.plug(cpu),
            _ => {}
        }
    }

    fn update(&mut self, task: TaskId) {
        let params = self.random_params();
        self.call(|policy, cx| policy.update(cx, task, &params));
        self.tasks[task.index()].params = params;
    }

    fn plug(&mut self, cpu: usize) {
        let on = CpuId(cpu as u16);
        if !self.cpus[cpu].online {
            self.cpus[cpu].online = true;
            return self.call(|policy, cx| policy.set_online(cx, on, true));
        }
        if !self.has_cpu(&CpuSet::All, Some(cpu)) {
            return;
        }
        for task in 0..self.tasks.len() {
            let guest = &self.tasks[task];
            let gone = matches!(guest.state, State::Gone(_));
            if !gone && !self.has_cpu(&guest.params.affinity, Some(cpu)) {
                let params = TaskParams { affinity: CpuSet::All, ..guest.params.clone() };
                self.call(|policy, cx| policy.update(cx, TaskId(task as u32), &params));
                self.tasks[task].params = params;
            }
        }
        self.cpus[cpu].online = false;
        self.call(|policy, cx| policy.set_online(cx, on, false));
        let ran = self.measure(cpu);
        self.put(cpu, ran, Off::Preempted);
    }
}
