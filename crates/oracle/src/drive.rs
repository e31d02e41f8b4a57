//! Drives a policy call by call, or plays a list of tasks on one CPU with exact timers.

use std::ops::Range;

use anysched_core::params::Params;
use anysched_core::registry::{Policy, PolicyInfo, build_rule};
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, Machine, Off, RunQueue,
    Scheduler, Smp, Span, TaskId, TaskParams, Time, Work,
};

/// `n` milliseconds.
pub const fn ms(n: u64) -> Span {
    Span::from_ms(n)
}

/// `n` microseconds.
pub const fn us(n: u64) -> Span {
    Span::from_us(n)
}

/// All arrive at 0, sizes in ms: the closed batch of the golden vectors.
pub const CLOSED: &[(u64, u64)] = &[(0, 7), (0, 2), (0, 5), (0, 1), (0, 9), (0, 3)];
/// (arrival, size) in ms: the open arrivals of the golden vectors.
pub const OPEN: &[(u64, u64)] = &[(0, 6), (1, 3), (2, 8), (5, 1), (6, 2)];

/// Instants given in ms.
pub fn times(ms: &[u64]) -> Vec<Time> {
    ms.iter().map(|&n| Time::ZERO + Span::from_ms(n)).collect()
}

/// Parameters of a task that may only run on `cpus`, a list such as `"0,2-3"`.
pub fn pinned(cpus: &str) -> TaskParams {
    TaskParams { affinity: CpuSet::parse(cpus).unwrap(), ..TaskParams::default() }
}

/// Parameters of a task of `domain`.
pub fn in_domain(domain: u16) -> TaskParams {
    TaskParams { domain: DomainId(domain), ..TaskParams::default() }
}

/// The CPUs in `kicks`, which is cleared.
pub fn kicked(kicks: &mut CpuMask) -> Vec<u16> {
    let kicked = kicks.iter().map(|cpu| cpu.0).collect();
    kicks.clear();
    kicked
}

/// The value that `policy` shows of `task` under `name` ([`Scheduler::probe`]).
pub fn probe(policy: &(impl Scheduler + ?Sized), task: u32, name: &str) -> i64 {
    let mut found = None;
    policy.probe(TaskId(task), &mut |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("the policy shows no {name} of task {task}"))
}

/// A policy, the present time, and what its CPUs run.
///
/// Does what it is told and nothing by itself. Where it only passes calls on, its methods are named
/// like those of [`Scheduler`]; a task is named by its number, a CPU by its own.
#[derive(Debug)]
pub struct Drive<S> {
    /// The policy.
    pub policy: S,
    /// The time of the next call.
    pub now: Time,
    /// What the last call touched.
    pub work: Work,
    /// The CPUs kicked and not answered.
    pub kicks: CpuMask,
    /// Per CPU, what it runs.
    runs: Vec<Option<Running>>,
    /// Per task, all that it has been charged.
    used: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    task: u32,
    /// When its task was picked or last charged.
    since: Time,
    /// When its slice ends.
    ends: Time,
}

impl<Q: RunQueue> Drive<Smp<Q>> {
    /// The rule `Q` on `machine`, a topology as [`Machine::parse`] reads it.
    pub fn rule(machine: &str, settings: &[(&str, &str)]) -> Drive<Smp<Q>> {
        let machine = Machine::parse(machine).unwrap();
        Drive::new(build_rule(&machine, settings).unwrap(), &machine)
    }
}

impl<P: Policy + Scheduler> Drive<P> {
    /// A policy that drives all CPUs itself, on `machine`.
    pub fn scheduler(machine: &str, settings: &[(&str, &str)]) -> Drive<P> {
        Drive::scheduler_on(&Machine::parse(machine).unwrap(), settings)
    }

    /// The same on a machine that has already been read.
    pub fn scheduler_on(machine: &Machine, settings: &[(&str, &str)]) -> Drive<P> {
        let mut params = P::Params::default();
        settings.iter().for_each(|(name, value)| params.set(name, value).unwrap());
        Drive::new(P::build(machine, machine.cpus(), &params).unwrap(), machine)
    }
}

impl Drive<Box<dyn Scheduler>> {
    /// A registered policy on `machine`.
    pub fn registered(policy: &PolicyInfo, machine: &str, settings: &[(&str, &str)]) -> Self {
        let machine = Machine::parse(machine).unwrap();
        Drive::new((policy.build)(&machine, settings).unwrap(), &machine)
    }
}

impl<S: Scheduler> Drive<S> {
    /// `policy`, which was built for `machine`, at 0 with all CPUs idle.
    pub fn new(policy: S, machine: &Machine) -> Drive<S> {
        Drive {
            policy,
            now: Time::ZERO,
            work: Work::default(),
            kicks: CpuMask::EMPTY,
            runs: vec![None; machine.cpus()],
            used: Vec::new(),
        }
    }

    /// Makes a call at the present time.
    pub fn call<R>(&mut self, call: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
        let mut cx = Cx::new(self.now, &mut self.kicks);
        let answer = call(&mut self.policy, &mut cx);
        self.work = cx.work;
        answer
    }

    /// Goes to `ms` milliseconds.
    pub fn at(&mut self, ms: u64) {
        self.now = Time::ZERO + Span::from_ms(ms);
    }

    /// Lets `us` microseconds pass.
    pub fn pass_us(&mut self, us: u64) {
        self.now += Span::from_us(us);
    }

    /// Lets time pass until `us` microseconds, running the timer whenever it is due and answering
    /// the kicks that it causes.
    pub fn pass_until(&mut self, us: u64) {
        let until = Time::ZERO + Span::from_us(us);
        while let Some(due) = self.policy.next_timer().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.call(|policy, cx| policy.timer(cx));
            self.settle();
        }
        self.now = until;
    }

    /// Attaches `task`.
    pub fn attach(&mut self, task: u32, params: &TaskParams) {
        self.call(|policy, cx| policy.attach(cx, TaskId(task), params));
    }

    /// Attaches `task` and makes it ready, created from outside; `burst` is what it will use.
    pub fn create(&mut self, task: u32, burst: Option<Span>) {
        self.create_with(task, burst, &TaskParams::default());
    }

    /// The same with parameters.
    pub fn create_with(&mut self, task: u32, burst: Option<Span>, params: &TaskParams) {
        self.attach(task, params);
        let arrival = Arrival { burst, ..Arrival::because(Enqueue::New) };
        self.call(|policy, cx| policy.enqueue(cx, TaskId(task), arrival));
    }

    /// The same, created by what runs on `from`, or from outside.
    pub fn create_from(&mut self, task: u32, params: &TaskParams, from: Option<u16>) {
        self.attach(task, params);
        self.ready(task, Enqueue::New, from);
    }

    /// `task` wakes, woken from outside, having last run on CPU 0.
    pub fn wake(&mut self, task: u32) {
        self.wake_for(task, None);
    }

    /// The same; `burst` is what it will use.
    pub fn wake_for(&mut self, task: u32, burst: Option<Span>) {
        let why = Enqueue::Wakeup { prev: CpuId(0), sync: false };
        let arrival = Arrival { burst, ..Arrival::because(why) };
        self.call(|policy, cx| policy.enqueue(cx, TaskId(task), arrival));
    }

    /// `task`, which last ran on `prev`, is woken by what runs on `from`, or from outside.
    pub fn wake_on(&mut self, task: u32, prev: u16, from: Option<u16>) {
        self.ready(task, Enqueue::Wakeup { prev: CpuId(prev), sync: false }, from);
    }

    /// `task` becomes ready, made so by what runs on `from`, or from outside.
    pub fn ready(&mut self, task: u32, why: Enqueue, from: Option<u16>) {
        let arrival = Arrival { from: from.map(CpuId), ..Arrival::because(why) };
        self.call(|policy, cx| policy.enqueue(cx, TaskId(task), arrival));
    }

    /// `task` is no longer ready.
    pub fn dequeue(&mut self, task: u32) {
        self.call(|policy, cx| policy.dequeue(cx, TaskId(task)));
    }

    /// What a host does with a ready task that it has to take out for a moment.
    pub fn take_out_and_resume(&mut self, task: u32) {
        self.dequeue(task);
        self.ready(task, Enqueue::Resumed { prev: CpuId(0) }, None);
    }

    /// Changes the parameters of `task`.
    pub fn update(&mut self, task: u32, params: &TaskParams) {
        self.call(|policy, cx| policy.update(cx, TaskId(task), params));
    }

    /// Sets the parameters of `domain`.
    pub fn set_domain(&mut self, domain: u16, weight: u32, cap_percent: u32) {
        let params = DomainParams { weight, cap_percent };
        self.call(|policy, cx| policy.set_domain(cx, DomainId(domain), &params));
    }

    /// Puts `cpu` into use or takes it out; what runs there is left alone.
    pub fn set_online(&mut self, cpu: u16, online: bool) {
        self.call(|policy, cx| policy.set_online(cx, CpuId(cpu), online));
    }

    /// Goes to the time at which the timer is next due, and runs it.
    pub fn timer(&mut self) {
        self.now = self.policy.next_timer().expect("the policy wants a timer");
        self.call(|policy, cx| policy.timer(cx));
    }

    /// The task and the slice that `cpu` is given, which answers its kick.
    pub fn pick(&mut self, cpu: u16) -> Option<(u32, Span)> {
        self.kicks.remove(CpuId(cpu));
        let pick = self.call(|policy, cx| policy.pick_next(cx, CpuId(cpu)))?;
        let (task, slice) = (pick.task.0, pick.slice);
        let run = Running { task, since: self.now, ends: self.now + slice };
        self.runs[usize::from(cpu)] = Some(run);
        Some((task, slice))
    }

    /// The task that `cpu` is given.
    pub fn pick_task(&mut self, cpu: u16) -> Option<u32> {
        self.pick(cpu).map(|(task, _)| task)
    }

    /// `task` leaves `cpu` and is charged `ran`.
    pub fn put(&mut self, cpu: u16, task: u32, ran: Span, why: Off) {
        self.runs[usize::from(cpu)] = None;
        self.charge(task, ran);
        self.call(|policy, cx| policy.put_prev(cx, CpuId(cpu), TaskId(task), ran, why));
    }

    /// What `cpu` runs leaves it, charged for the time since it was last charged. Returns it.
    pub fn off(&mut self, cpu: u16, why: Off) -> u32 {
        let Running { task, since, .. } = self.runs[usize::from(cpu)].expect("a task runs there");
        self.put(cpu, task, self.now - since, why);
        task
    }

    /// What `cpu` runs leaves it for the reason `why`, and `cpu` picks again.
    pub fn next(&mut self, cpu: u16, why: Off) -> Option<u32> {
        self.off(cpu, why);
        self.pick_task(cpu)
    }

    /// Picks on CPU 0 and lets the task run for `ran`, to be put back for the reason `why`.
    pub fn run(&mut self, ran: Span, why: Off) -> u32 {
        let (task, _) = self.pick(0).expect("a task is ready");
        self.now += ran;
        self.put(0, task, ran, why);
        task
    }

    /// Lets `ran` pass on CPU 0, which runs `task`, and ticks. Returns whether the tick asks for a
    /// pick.
    pub fn tick(&mut self, task: u32, ran: Span) -> bool {
        self.now += ran;
        self.charge_tick(0, task, ran);
        self.kicked() == [0]
    }

    /// A tick on `cpu`, which charges its task for the time since it was last charged. Returns
    /// whether the tick asks that CPU to pick.
    pub fn tick_on(&mut self, cpu: u16) -> bool {
        let Running { task, since, .. } = self.runs[usize::from(cpu)].expect("a task runs there");
        self.charge_tick(cpu, task, self.now - since);
        self.kicked() == [cpu]
    }

    /// A tick on `cpu` that charges `task`, which runs there, `ran`.
    pub fn charge_tick(&mut self, cpu: u16, task: u32, ran: Span) {
        if let Some(run) = &mut self.runs[usize::from(cpu)] {
            run.since = self.now;
        }
        self.charge(task, ran);
        self.call(|policy, cx| policy.tick(cx, CpuId(cpu), TaskId(task), ran));
    }

    fn charge(&mut self, task: u32, ran: Span) {
        let index = task as usize;
        self.used.resize(self.used.len().max(index + 1), Span::ZERO);
        self.used[index] += ran;
    }

    /// All the time that `task` has been on a CPU, including the present turn.
    pub fn used(&self, task: u32) -> Span {
        let runs = self.runs.iter().flatten().filter(|run| run.task == task);
        let charged = self.used.get(task as usize).copied().unwrap_or_default();
        runs.fold(charged, |used, run| used + (self.now - run.since))
    }

    /// Lets time pass until `until` with exact timers: in each instant the policy's timer, ends of
    /// slices, kicks.
    pub fn go(&mut self, until: Time) {
        self.settle();
        loop {
            let ends = self.runs.iter().flatten().map(|run| run.ends).min();
            let next = ends.into_iter().chain(self.policy.next_timer()).min();
            let Some(next) = next.filter(|&next| next <= until) else { break };
            self.now = next;
            if self.policy.next_timer() == Some(next) {
                self.call(|policy, cx| policy.timer(cx));
            }
            for cpu in 0..self.cpus() {
                if self.runs[usize::from(cpu)].is_some_and(|run| run.ends <= next) {
                    self.next(cpu, Off::Expired);
                }
            }
            self.settle();
        }
        self.now = until;
    }

    /// Answers kicks, the lowest CPU first, until none are left.
    pub fn settle(&mut self) {
        while let Some(cpu) = self.kicks.take_lowest() {
            if self.running(cpu.0).is_some() {
                self.off(cpu.0, Off::Preempted);
            }
            self.pick(cpu.0);
        }
    }

    /// Runs CPU 0 slice by slice until `until`; who ran in turn, and for how long.
    pub fn slices(&mut self, until: Time) -> Vec<(u32, Span)> {
        let mut slices: Vec<(u32, Span)> = Vec::new();
        while self.now < until {
            let (task, slice) = self.pick(0).expect("a task is ready");
            let slice = slice.min(until.since(self.now));
            match slices.last_mut() {
                Some((last, ran)) if *last == task => *ran += slice,
                _ => slices.push((task, slice)),
            }
            self.now += slice;
            self.put(0, task, slice, Off::Expired);
        }
        slices
    }

    /// The CPUs kicked and not answered; they then count as answered.
    pub fn kicked(&mut self) -> Vec<u16> {
        kicked(&mut self.kicks)
    }

    /// The CPUs kicked and not answered.
    pub fn pending(&self) -> Vec<u16> {
        self.kicks.iter().map(|cpu| cpu.0).collect()
    }

    /// What `cpu` runs.
    pub fn running(&self, cpu: u16) -> Option<u32> {
        self.runs[usize::from(cpu)].map(|run| run.task)
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> u16 {
        self.runs.len() as u16
    }

    /// The value that the policy shows of `task` under `name` ([`Scheduler::probe`]).
    pub fn probe(&self, task: u32, name: &str) -> i64 {
        probe(&self.policy, task, name)
    }

    /// The same of several tasks.
    pub fn probes(&self, tasks: Range<u32>, name: &str) -> Vec<i64> {
        tasks.map(|task| self.probe(task, name)).collect()
    }
}

/// Makes `$rig` a [`Drive`] of one policy, to which its tests add what is special about it: what it
/// defines itself takes precedence over what the driver has under the same name.
#[macro_export]
macro_rules! rig {
    ($(#[$doc:meta])* $visible:vis struct $rig:ident $(<$of:ident>)? ($drive:ty);) => {
        $(#[$doc])*
        $visible struct $rig $(<$of>)? ($drive);

        impl $(<$of>)? core::ops::Deref for $rig $(<$of>)? {
            type Target = $drive;
            fn deref(&self) -> &$drive {
                &self.0
            }
        }

        impl $(<$of>)? core::ops::DerefMut for $rig $(<$of>)? {
            fn deref_mut(&mut self) -> &mut $drive {
                &mut self.0
            }
        }
    };
}

/// When each task ended and first ran.
#[derive(Debug, PartialEq)]
pub struct Played {
    /// The ends.
    pub finish: Vec<Time>,
    /// The first picks.
    pub first: Vec<Time>,
}

impl Played {
    /// Asserts the ends in ms and the sum of the response times in ms.
    pub fn assert(&self, tasks: &[(u64, u64)], finish: &[u64], response_sum: u64) {
        assert_eq!(self.finish, times(finish));
        let response = self.first.iter().zip(tasks).map(|(first, task)| first.0 - ms(task.0).0);
        assert_eq!(response.sum::<u64>(), ms(response_sum).0);
    }
}

struct Run {
    task: usize,
    since: Time,
    slice_end: Time,
}

/// Plays tasks of (arrival, size) in ms, in order of arrival, under the rule `Q` on CPU 0. At each
/// instant: completion, arrivals, timer, tick, end of slice, pick.
pub fn play<Q: RunQueue>(settings: &[(&str, &str)], tasks: &[(u64, u64)]) -> Played {
    let mut drive = Drive::<Smp<Q>>::rule("1", settings);
    let mut left: Vec<Span> = tasks.iter().map(|task| ms(task.1)).collect();
    let never = vec![Time::NEVER; tasks.len()];
    let mut played = Played { finish: never.clone(), first: never };
    let mut arrivals = tasks.iter().map(|task| Time::ZERO + ms(task.0)).enumerate().peekable();
    let mut run: Option<Run> = None;
    let mut next_tick = drive.policy.tick_period().map_or(Time::NEVER, |period| Time(period.0));
    while played.finish.contains(&Time::NEVER) {
        let ends = run.as_ref().map_or(Time::NEVER, |run| {
            (run.since + left[run.task]).min(run.slice_end).min(next_tick)
        });
        let arrives = arrivals.peek().map_or(Time::NEVER, |arrival| arrival.1);
        let timer = drive.policy.next_timer().unwrap_or(Time::NEVER);
        drive.now = ends.min(arrives).min(timer);
        if let Some(Run { task, since, .. }) = run
            && since + left[task] == drive.now
        {
            drive.put(0, task as u32, left[task], Off::Exited);
            played.finish[task] = drive.now;
            run = None;
        }
        while let Some((task, _)) = arrivals.next_if(|arrival| arrival.1 == drive.now) {
            drive.create(task as u32, Some(left[task]));
        }
        if timer == drive.now {
            drive.call(|policy, cx| policy.timer(cx));
        }
        if let Some(run) = run.as_mut().filter(|_| drive.now >= next_tick) {
            let ran = drive.now - run.since;
            drive.charge_tick(0, run.task as u32, ran);
            left[run.task] -= ran;
            run.since = drive.now;
        }
        while next_tick <= drive.now {
            next_tick += drive.policy.tick_period().unwrap_or(Span::MAX);
        }
        let why = match run.as_ref().is_some_and(|run| run.slice_end == drive.now) {
            true => Off::Expired,
            false => Off::Preempted,
        };
        if (!drive.kicked().is_empty() || why == Off::Expired)
            && let Some(Run { task, since, .. }) = run.take()
        {
            left[task] -= drive.now - since;
            drive.put(0, task as u32, drive.now - since, why);
        }
        if run.is_none()
            && let Some((task, slice)) = drive.pick(0)
        {
            let task = task as usize;
            played.first[task] = played.first[task].min(drive.now);
            run = Some(Run { task, since: drive.now, slice_end: drive.now + slice });
        }
    }
    played
}
