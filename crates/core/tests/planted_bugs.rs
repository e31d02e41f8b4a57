//! Tests of the tester: a policy with a planted bug of each kind is caught, with the right
//! violation, by a host that finds nothing wrong with the same policy without the bug.

use anysched_core::call::Call;
use anysched_core::checked::{
    Fault, HostFault, OnViolation, PolicyFault, Rules, TaskState, Violation,
};
use anysched_core::{
    Arrival, Checked, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, Machine, Off,
    Pick, Scheduler, Span, TaskId, TaskParams, Time, scheduler_by_call,
};
use anysched_oracle::random::{Host, Load};

/// More work than the CPUs can do at times, less on average.
const LOAD: Load = Load {
    tasks: 12,
    burst: Span::from_us(300),
    pause: Span::from_us(700),
    pinned: true,
    hotplug: true,
};

/// Longer than any run, so only a task that never runs waits for so long.
const FOR_EVER: Span = Span::from_s(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// An arrival is forgotten.
    LosesTask,
    /// A task that runs on another CPU is picked.
    RunsTwice,
    /// `pick_next` says that there is nothing to run.
    Idles,
    /// Tasks run anywhere.
    IgnoresAffinity,
    /// A CPU that goes out of use goes on.
    IgnoresOffline,
    /// The last to arrive is always first.
    Starves,
    /// The timer is due in the past.
    TimerInThePast,
    ZeroSlice,
    PicksBlocked,
    PicksDetached,
    /// An arrival kicks no one.
    ForgetsKick,
    /// A task that is put back kicks no one.
    ForgetsKickOfPut,
    /// A task that may suddenly run on an idle CPU kicks no one.
    ForgetsKickOfUpdate,
    /// A CPU that comes into use is not kicked.
    ForgetsKickOfOnline,
    /// A CPU is kicked that does not exist.
    KicksTooFar,
    /// A yielding task stays first.
    FavoursYielder,
}

/// First come, first served, with a bug that shows now and then.
struct Planted {
    policy: Box<dyn Scheduler>,
    bug: Bug,
    cpus: u16,
    calls: u64,
    lost: Option<TaskId>,
    running: Vec<Option<TaskId>>,
    blocked: Option<TaskId>,
    detached: Option<TaskId>,
    now: Time,
}

impl Planted {
    fn new(bug: Bug, machine: &Machine) -> Planted {
        // "Last come, first served" is the opposite of fair.
        let policy: Box<dyn Scheduler> = match bug {
            Bug::Starves => Box::new(Stack::new(machine)),
            _ => (anysched_policies::policy("fcfs").unwrap().build)(machine, &[]).unwrap(),
        };
        Planted {
            policy,
            bug,
            cpus: machine.cpus() as u16,
            calls: 0,
            lost: None,
            running: vec![None; machine.cpus()],
            blocked: None,
            detached: None,
            now: Time::ZERO,
        }
    }

    /// Whether `bug` is planted and shows in this call.
    fn shows(&mut self, bug: Bug) -> bool {
        self.calls += 1;
        self.bug == bug && self.calls.is_multiple_of(7)
    }

    /// Makes a call whose kicks are lost.
    fn without_kicks(&mut self, cx: &Cx<'_>, call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>)) {
        let mut lost = CpuMask::EMPTY;
        call(&mut *self.policy, &mut Cx::new(cx.now, &mut lost));
    }

    fn everywhere(&self, params: &TaskParams) -> TaskParams {
        let mut params = params.clone();
        if self.bug == Bug::IgnoresAffinity {
            params.affinity = CpuSet::All;
        }
        params
    }
}

impl Scheduler for Planted {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        if self.detached == Some(task) {
            self.detached = None;
        }
        self.policy.attach(cx, task, &self.everywhere(params));
    }

    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if self.blocked == Some(task) {
            self.blocked = None;
        }
        self.detached = Some(task);
        self.policy.detach(cx, task);
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let params = self.everywhere(params);
        if self.bug == Bug::ForgetsKickOfUpdate {
            return self.without_kicks(cx, |policy, cx| policy.update(cx, task, &params));
        }
        self.policy.update(cx, task, &params);
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        match self.bug {
            Bug::IgnoresOffline if !online => {}
            Bug::ForgetsKickOfOnline if online => {
                self.without_kicks(cx, |policy, cx| policy.set_online(cx, cpu, online));
            }
            _ => self.policy.set_online(cx, cpu, online),
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        if self.blocked == Some(task) {
            self.blocked = None;
        }
        if self.lost.is_none() && self.shows(Bug::LosesTask) {
            self.lost = Some(task);
            return;
        }
        if self.shows(Bug::ForgetsKick) {
            return self.without_kicks(cx, |policy, cx| policy.enqueue(cx, task, arrival));
        }
        if self.shows(Bug::KicksTooFar) {
            cx.kick(CpuId(self.cpus));
        }
        self.policy.enqueue(cx, task, arrival);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if self.lost == Some(task) {
            self.lost = None;
            return;
        }
        self.policy.dequeue(cx, task);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let wrong = if self.shows(Bug::RunsTwice) {
            self.running.iter().flatten().next().copied()
        } else if self.shows(Bug::PicksBlocked) {
            self.blocked
        } else if self.shows(Bug::PicksDetached) {
            self.detached
        } else {
            None
        };
        if let Some(task) = wrong {
            return Some(Pick { task, slice: Span::MAX });
        }
        if self.shows(Bug::Idles) {
            return None;
        }
        let mut pick = self.policy.pick_next(cx, cpu)?;
        if self.shows(Bug::ZeroSlice) {
            pick.slice = Span::ZERO;
        }
        self.running[cpu.index()] = Some(pick.task);
        Some(pick)
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.now = cx.now;
        self.running[cpu.index()] = None;
        if why == Off::Blocked {
            self.blocked = Some(task);
        }
        let why = match why {
            Off::Yielded if self.bug == Bug::FavoursYielder => Off::NotRun,
            why => why,
        };
        if self.shows(Bug::ForgetsKickOfPut) {
            return self.without_kicks(cx, |policy, cx| policy.put_prev(cx, cpu, task, ran, why));
        }
        self.policy.put_prev(cx, cpu, task, ran, why);
    }

    fn next_timer(&self) -> Option<Time> {
        (self.bug == Bug::TimerInThePast && self.now > Time::ZERO)
            .then_some(Time(self.now.0.saturating_sub(1)))
    }
}

/// The last task that became ready is the first to run, for as long as it likes; CPUs and
/// affinities do not matter.
struct Stack {
    ready: Vec<TaskId>,
    running: Vec<bool>,
}

impl Stack {
    fn new(machine: &Machine) -> Stack {
        Stack { ready: Vec::new(), running: vec![false; machine.cpus()] }
    }

    fn push(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.ready.push(task);
        let idle = self.running.iter().enumerate().filter(|(_, running)| !**running);
        idle.for_each(|(cpu, _)| cx.kick(CpuId(cpu as u16)));
    }
}

impl Scheduler for Stack {
    fn attach(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}
    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}
    fn update(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, _: Arrival) {
        self.push(cx, task);
    }

    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.ready.retain(|&other| other != task);
    }

    fn pick_next(&mut self, _: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let task = self.ready.pop()?;
        self.running[cpu.index()] = true;
        Some(Pick { task, slice: Span::MAX })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, _: Span, why: Off) {
        if why.runnable() {
            self.push(cx, task);
        }
        self.running[cpu.index()] = false;
    }
}

/// Runs `policy` until the first violation, or for `steps` and until nothing is left to do.
fn run<S: Scheduler>(
    policy: S,
    machine: &Machine,
    rules: &Rules,
    load: Load,
    seed: u64,
) -> Option<Violation> {
    let rules = Rules { on_violation: OnViolation::Collect, ..rules.clone() };
    let checked = Checked::new(policy, machine, rules);
    let mut host = Host::new(checked, machine, load, seed);
    while host.picks < 2_000 {
        host.step();
        if let Some(&first) = host.policy.violations().first() {
            return Some(first);
        }
    }
    host.drain();
    host.policy.check_waits(host.now + FOR_EVER + FOR_EVER);
    host.policy.take_violations().first().copied()
}

/// Plants `bug` and returns the first violation of some runs.
fn caught(bug: Bug, rules: &Rules, load: Load) -> Violation {
    let machine = Machine::flat(4).unwrap();
    let mut violations =
        (1..=20).filter_map(|seed| run(Planted::new(bug, &machine), &machine, rules, load, seed));
    violations.next().unwrap_or_else(|| panic!("{bug:?} was not caught"))
}

fn fault(bug: Bug, rules: &Rules, load: Load) -> PolicyFault {
    match caught(bug, rules, load).fault {
        Fault::Policy(fault) => fault,
        Fault::Host(_) => panic!("{bug:?}: {}", caught(bug, rules, load)),
    }
}

macro_rules! assert_caught {
    ($bug:ident, $rules:expr, $load:expr, $pattern:pat) => {
        let fault = fault(Bug::$bug, $rules, $load);
        assert!(matches!(fault, $pattern), "{:?} was taken for {fault:?}", Bug::$bug);
    };
}

#[test]
fn without_a_bug_nothing_is_found() {
    let machine = Machine::flat(4).unwrap();
    let rules = Rules { max_wait: Some(FOR_EVER), yielders_wait: true, ..Rules::default() };
    for seed in 1..=20 {
        let planted = Planted::new(Bug::None, &machine);
        let found = run(planted, &machine, &rules, LOAD, seed);
        assert_eq!(found.map(|violation| violation.to_string()), None, "seed {seed}");
    }
}

#[test]
fn wrong_picks_are_caught() {
    let rules = &Rules::default();
    assert_caught!(RunsTwice, rules, LOAD, PolicyFault::DoubleRun { .. });
    assert_caught!(
        PicksBlocked,
        rules,
        LOAD,
        PolicyFault::NotReady { state: TaskState::Blocked, .. }
    );
    assert_caught!(
        PicksDetached,
        rules,
        LOAD,
        PolicyFault::NotReady { state: TaskState::Detached, .. }
    );
    assert_caught!(ZeroSlice, rules, LOAD, PolicyFault::ZeroSlice { .. });
    // Such policies also kick CPUs that cannot help, which may show first.
    let lenient = &Rules { work_conserving: false, ..Rules::default() };
    assert_caught!(IgnoresAffinity, lenient, LOAD, PolicyFault::NotAllowed { .. });
    assert_caught!(IgnoresOffline, lenient, LOAD, PolicyFault::Offline { .. });
}

#[test]
fn idle_cpus_are_caught() {
    let rules = &Rules::default();
    assert_caught!(Idles, rules, LOAD, PolicyFault::IdleBesideReady { .. });
    assert_caught!(ForgetsKick, rules, LOAD, PolicyFault::NoKick { .. });
    assert_caught!(ForgetsKickOfPut, rules, LOAD, PolicyFault::NoKick { .. });
    assert_caught!(
        ForgetsKickOfUpdate,
        rules,
        LOAD,
        PolicyFault::NoKick { .. } | PolicyFault::NotMoved { .. }
    );
    assert_caught!(ForgetsKickOfOnline, rules, LOAD, PolicyFault::NoKick { .. });
    // Caps and budgets make idle CPUs legal, but not all of them with nothing to come.
    let lenient = &Rules { work_conserving: false, ..Rules::default() };
    assert_caught!(Idles, lenient, LOAD, PolicyFault::Lost { .. });
}

#[test]
fn tasks_left_on_a_cpu_that_is_forbidden_now_are_caught() {
    let lenient = &Rules { work_conserving: false, ..Rules::default() };
    assert_caught!(ForgetsKickOfUpdate, lenient, LOAD, PolicyFault::NotMoved { .. });
}

#[test]
fn lost_tasks_are_caught() {
    let rules = &Rules { work_conserving: false, max_wait: Some(FOR_EVER), ..Rules::default() };
    assert_caught!(LosesTask, rules, LOAD, PolicyFault::Lost { .. });
    // Without the allowance to idle, the first sign is a missing kick or an idle CPU.
    let strict = &Rules { max_wait: Some(FOR_EVER), ..Rules::default() };
    assert_caught!(
        LosesTask,
        strict,
        LOAD,
        PolicyFault::NoKick { .. } | PolicyFault::IdleBesideReady { .. }
    );
}

/// Runs nothing, though it kicks; until its timer, if it has one.
struct HoldsBack(Option<Time>);

impl Scheduler for HoldsBack {
    fn attach(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}
    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}
    fn update(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}
    fn enqueue(&mut self, cx: &mut Cx<'_>, _: TaskId, _: Arrival) {
        cx.kick(CpuId(0));
    }
    fn dequeue(&mut self, _: &mut Cx<'_>, _: TaskId) {}
    fn pick_next(&mut self, _: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        None
    }
    fn put_prev(&mut self, _: &mut Cx<'_>, _: CpuId, _: TaskId, _: Span, _: Off) {}
    fn next_timer(&self) -> Option<Time> {
        self.0
    }
}

/// Caps and budgets make idle CPUs legal: a policy may hold a task back, if it sets a timer.
#[test]
fn a_task_that_nothing_will_come_for_is_caught() {
    let machine = Machine::flat(2).unwrap();
    for (timer, found) in [(Some(Time(1_000)), 0), (None, 1)] {
        let rules = Rules {
            work_conserving: false,
            on_violation: OnViolation::Collect,
            ..Rules::default()
        };
        let mut checked = Checked::new(HoldsBack(timer), &machine, rules);
        let mut kicks = CpuMask::EMPTY;
        let cx = &mut Cx::new(Time::ZERO, &mut kicks);
        checked.attach(cx, TaskId(0), &TaskParams::default());
        checked.enqueue(cx, TaskId(0), Arrival::because(Enqueue::New));
        assert_eq!(checked.found(), 0, "CPU 0 is about to pick");
        checked.pick_next(cx, CpuId(0));
        checked.pick_next(cx, CpuId(1));
        assert_eq!(checked.found(), found, "{:?}", checked.violations());
    }
}

#[test]
fn starvation_is_caught() {
    let load = Load { tasks: 12, pause: Span::from_us(300), pinned: false, hotplug: false, ..LOAD };
    let rules = &Rules { max_wait: Some(Span::from_ms(20)), ..Rules::default() };
    assert_caught!(Starves, rules, load, PolicyFault::Starved { .. });
    // The same load, served in order of arrival: twelve tasks on four CPUs wait for at most
    // eleven bursts of at most 0.45 ms.
    let machine = Machine::flat(4).unwrap();
    for seed in 1..=20 {
        assert_eq!(run(Planted::new(Bug::None, &machine), &machine, rules, load, seed), None);
    }
}

#[test]
fn timers_and_kicks_out_of_bounds_are_caught() {
    let rules = &Rules::default();
    assert_caught!(TimerInThePast, rules, LOAD, PolicyFault::TimerStuck { .. });
    assert_caught!(
        KicksTooFar,
        rules,
        LOAD,
        PolicyFault::KickedNoSuchCpu { cpu: CpuId(4), cpus: 4 }
    );
}

#[test]
fn favoured_yielders_are_caught() {
    let rules = &Rules { yielders_wait: true, ..Rules::default() };
    assert_caught!(FavoursYielder, rules, LOAD, PolicyFault::YielderFirst { .. });
}

/// A correct policy on two CPUs that knows task 0; a task may wait for 10 ms.
fn two_cpus() -> Checked<Box<dyn Scheduler>> {
    let machine = Machine::flat(2).unwrap();
    let fcfs = (anysched_policies::policy("fcfs").unwrap().build)(&machine, &[]).unwrap();
    let rules = Rules {
        max_wait: Some(Span::from_ms(10)),
        on_violation: OnViolation::Collect,
        ..Rules::default()
    };
    let mut checked = Checked::new(fcfs, &machine, rules);
    at(&mut checked, 0, |policy, cx| policy.attach(cx, TaskId(0), &TaskParams::default()));
    checked
}

/// Makes a call at a time in µs and returns what it answers.
fn at<S: Scheduler, R>(policy: &mut S, us: u64, call: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
    let mut kicks = CpuMask::EMPTY;
    call(policy, &mut Cx::new(Time(us * 1_000), &mut kicks))
}

/// Makes a call that the host must not make.
fn refused<S: Scheduler>(
    checked: &mut Checked<S>,
    us: u64,
    fault: HostFault,
    call: impl FnOnce(&mut Checked<S>, &mut Cx<'_>),
) {
    at(checked, us, call);
    let found: Vec<Fault> = checked.take_violations().iter().map(|found| found.fault).collect();
    assert_eq!(found, [Fault::Host(fault)]);
}

fn new_task() -> Arrival {
    Arrival::because(Enqueue::New)
}

#[test]
fn calls_that_a_host_must_not_make_are_caught_and_not_passed_on() {
    use TaskState::{Blocked, Detached, Ready, Running};
    let (t0, c0, c1, c2) = (TaskId(0), CpuId(0), CpuId(1), CpuId(2));
    let us = Span::from_us;
    let all = TaskParams::default();
    let wrong = |call, state, needed| HostFault::WrongState { call, task: t0, state, needed };
    let c = &mut two_cpus();

    refused(c, 0, wrong("attach", Blocked, Detached), |c, cx| c.attach(cx, t0, &all));
    refused(c, 0, wrong("dequeue", Blocked, Ready), |c, cx| c.dequeue(cx, t0));
    let far = TaskId(1 << 20);
    let not_dense = HostFault::NotDense { task: far, attached: 1 };
    refused(c, 0, not_dense, |c, cx| c.attach(cx, far, &all));
    let unknown = TaskId(7);
    let detached =
        HostFault::WrongState { call: "detach", task: unknown, state: Detached, needed: Blocked };
    refused(c, 0, detached, |c, cx| c.detach(cx, unknown));
    let nowhere = TaskParams { affinity: CpuSet::Few(0b100), ..all.clone() };
    refused(c, 0, HostFault::NoCpuLeft { task: t0 }, |c, cx| c.update(cx, t0, &nowhere));
    let no_such = HostFault::NoSuchCpu { cpu: c2, cpus: 2 };
    refused(c, 0, no_such, |c, cx| assert_eq!(c.pick_next(cx, c2), None));
    let woken = Arrival::because(Enqueue::Wakeup { prev: c2, sync: false });
    refused(c, 0, no_such, |c, cx| c.enqueue(cx, t0, woken));

    at(c, 5, |c, cx| c.enqueue(cx, t0, new_task()));
    refused(c, 5, wrong("enqueue", Ready, Blocked), |c, cx| c.enqueue(cx, t0, new_task()));
    refused(c, 5, wrong("detach", Ready, Blocked), |c, cx| c.detach(cx, t0));
    let not_running = wrong("put_prev", Ready, Running(c0));
    refused(c, 5, not_running, |c, cx| c.put_prev(cx, c0, t0, us(0), Off::Blocked));

    let pick = at(c, 10, |c, cx| c.pick_next(cx, c0));
    assert_eq!(pick, Some(Pick { task: t0, slice: Span::MAX }));
    let still = HostFault::StillRuns { cpu: c0, task: t0 };
    refused(c, 11, still, |c, cx| assert_eq!(c.pick_next(cx, c0), None));
    let elsewhere = wrong("tick", Running(c0), Running(c1));
    refused(c, 11, elsewhere, |c, cx| c.tick(cx, c1, t0, us(1)));
    let too_long = HostFault::RanTooLong { cpu: c0, task: t0, ran: us(3), passed: us(2) };
    refused(c, 12, too_long, |c, cx| c.put_prev(cx, c0, t0, us(3), Off::Yielded));
    refused(c, 11, HostFault::TimeWentBack { to: Time(11_000) }, |c, cx| c.timer(cx));
    assert_eq!(c.state(t0), Running(c0));
    assert_eq!(c.found(), 14);
}

#[test]
fn the_last_cpu_of_a_task_must_not_go() {
    let c = &mut two_cpus();
    let only_1 = TaskParams { affinity: CpuSet::Few(0b10), ..TaskParams::default() };
    at(c, 0, |c, cx| c.attach(cx, TaskId(1), &only_1));
    let no_cpu = HostFault::NoCpuLeft { task: TaskId(1) };
    refused(c, 1, no_cpu, |c, cx| c.set_online(cx, CpuId(1), false));
    at(c, 2, |c, cx| c.set_online(cx, CpuId(0), false));
    refused(c, 3, HostFault::NoCpuLeft { task: TaskId(0) }, |c, cx| {
        c.set_online(cx, CpuId(1), false);
    });
}

/// Runs nothing, though it kicks CPUs.
struct Never {
    policy: Box<dyn Scheduler>,
}

impl Never {
    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        if matches!(call, Call::PickNext { .. }) { None } else { call.make(&mut self.policy, cx) }
    }
}

scheduler_by_call!([] Never);

#[test]
fn tasks_with_a_cap_may_wait_beside_an_idle_cpu() {
    let machine = Machine::flat(1).unwrap();
    let policy = (anysched_policies::policy("fcfs").unwrap().build)(&machine, &[]).unwrap();
    let rules = Rules { on_violation: OnViolation::Collect, ..Rules::default() };
    let c = &mut Checked::new(Never { policy }, &machine, rules);
    let (cpu, task, domain) = (CpuId(0), TaskId(0), DomainId(3));
    let cap = |cap_percent| DomainParams { weight: 256, cap_percent };
    at(c, 0, |c, cx| c.attach(cx, task, &TaskParams { domain, ..TaskParams::default() }));
    at(c, 0, |c, cx| c.set_domain(cx, domain, &cap(50)));
    at(c, 1, |c, cx| c.enqueue(cx, task, new_task()));
    at(c, 2, |c, cx| c.pick_next(cx, cpu));
    assert_eq!(c.violations(), []);
    at(c, 3, |c, cx| c.set_domain(cx, domain, &cap(0)));
    let faults: Vec<_> = c.violations().iter().map(|violation| violation.fault).collect();
    assert_eq!(faults, [Fault::Policy(PolicyFault::NoKick { task, idle: cpu })]);
}

/// `fcfs` has nothing to change, and is not asked to.
#[test]
fn a_host_that_changes_a_parameter_without_asking_is_told_so() {
    let c = &mut two_cpus();
    refused(c, 1_000, HostFault::ParamRefused, |c, cx| c.set_param(cx, "steal", "never"));
    let machine = Machine::flat(2).unwrap();
    let gfs = (anysched_policies::policy("gfs").unwrap().build)(&machine, &[]).unwrap();
    let mut gfs = Checked::new(gfs, &machine, Rules::default());
    assert!(gfs.check_param("grouping", "single").is_ok());
    at(&mut gfs, 1, |gfs, cx| gfs.set_param(cx, "grouping", "single"));
}

#[test]
fn a_host_that_loses_a_kick_is_told_so() {
    let c = &mut two_cpus();
    at(c, 1_000, |c, cx| c.enqueue(cx, TaskId(0), new_task()));
    at(c, 11_000, |c, cx| c.timer(cx));
    assert_eq!(c.violations(), []);
    let asked = Time(1_000_000);
    let lost = HostFault::KickLost { cpu: CpuId(0), asked, task: TaskId(0) };
    refused(c, 11_001, lost, |c, cx| c.timer(cx));
    at(c, 20_000, |c, cx| c.timer(cx));
    assert_eq!(c.violations(), [], "a wait is reported once");
}

#[test]
fn violations_are_told_in_a_sentence() {
    let show = |call, now, fault| Violation { call, now, fault }.to_string();
    let (task, cpu) = (TaskId(7), CpuId(3));
    let policy = Fault::Policy;
    for (text, fault) in [
        (
            "call 12 at 1.5ms: the policy picked task 7 for CPU 3, but it runs on CPU 1 already",
            policy(PolicyFault::DoubleRun { task, cpu, on: CpuId(1) }),
        ),
        (
            "call 12 at 1.5ms: the policy left CPU 3 idle beside task 7, which is allowed there \
             and ready since 1ms",
            policy(PolicyFault::IdleBesideReady { cpu, task, since: Time(1_000_000) }),
        ),
        (
            "call 12 at 1.5ms: the host called put_prev for task 7, which is ready, not running \
             on CPU 3",
            Fault::Host(HostFault::WrongState {
                call: "put_prev",
                task,
                state: TaskState::Ready,
                needed: TaskState::Running(cpu),
            }),
        ),
    ] {
        assert_eq!(show(12, Time(1_500_000), fault), text);
    }
}

#[test]
#[should_panic(expected = "call 2 at 0: the host called dequeue for task 0, which is blocked")]
fn a_violation_panics_unless_told_otherwise() {
    let machine = Machine::flat(1).unwrap();
    let fcfs = (anysched_policies::policy("fcfs").unwrap().build)(&machine, &[]).unwrap();
    let mut checked = Checked::new(fcfs, &machine, Rules::default());
    at(&mut checked, 0, |c, cx| c.attach(cx, TaskId(0), &TaskParams::default()));
    at(&mut checked, 0, |c, cx| c.dequeue(cx, TaskId(0)));
}
