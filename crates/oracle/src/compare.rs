//! Plays random but legal calls to a policy and to a naive implementation of its rules beside it.
//! Both must answer alike; the first difference is shown with the calls that led to it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};

use anysched_core::call::{Call, Cow};
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Enqueue, Machine, Off, Pick,
    Scheduler, Span, TaskId, TaskParams, Time,
};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestError, TestRunner};

/// A naive implementation of a policy's rules. Whatever it shows by [`Scheduler::probe`] the policy
/// has to show too.
pub trait Oracle: Scheduler {
    /// Whether it says which CPUs are kicked; if not, the policy's kicks count for both.
    const KICKS: bool = true;

    /// Whether it says when the timer is due.
    const TIMERS: bool = true;

    /// Whether it says how many tasks wait ([`Work::queued`](anysched_core::Work::queued)) after
    /// tasks became ready, were taken out or were picked.
    const QUEUED: bool = false;

    /// Whether the policy's slice must be the one that it computes itself.
    fn is_same_slice(&self, policy: Span, own: Span) -> bool {
        policy == own
    }

    /// Whether something was too close to call: the sequence is discarded.
    fn is_unsure(&self) -> bool {
        false
    }
}

/// When CPUs whose task has left pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picks {
    /// Before anything else.
    AtOnce,
    /// Before time passes.
    SameInstant,
    /// At some time.
    Later,
}

/// Which tasks are bound to CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pins {
    /// None.
    None,
    /// Sleeping ones, to a single CPU.
    Asleep,
    /// Any, to any CPUs.
    Any,
}

/// What the host does.
#[derive(Clone, Debug)]
pub struct Scope {
    /// When it begins.
    pub start: Time,
    /// How many tasks there are; with `attached`, all from the start.
    pub tasks: u32,
    /// Tasks are attached and made ready before anything else.
    pub attached: bool,
    /// How many domains there are, at least 1; each task belongs to one, and if there are several,
    /// their weights and caps are random.
    pub domains: u16,
    /// Why tasks stop other than at the end of a slice; each reason is as likely as it is listed
    /// often.
    pub offs: &'static [Off],
    /// Domains have caps.
    pub caps: bool,
    /// Tasks differ in weight.
    pub nice: bool,
    /// Their weights change, and what `describe` says of them.
    pub renices: bool,
    /// Which tasks are bound to CPUs, and later to others.
    pub pins: Pins,
    /// Half of the tasks prefer some CPUs, any or none of them allowed, and later others.
    pub prefers: bool,
    /// Ready tasks are taken out, for a moment or until they wake.
    pub dequeues: bool,
    /// Blocked tasks are detached.
    pub detaches: bool,
    /// Picks are undone by the host.
    pub undoes: bool,
    /// CPUs other than the first go out of use and come back.
    pub hotplug: bool,
    /// Some wakers are about to sleep.
    pub syncs: bool,
    /// How many in three tasks are made ready by what runs on a CPU, the others by timers and
    /// devices.
    pub wakers: u8,
    /// What else there is to say of a task, made from a random number.
    pub describe: fn(u64, &mut TaskParams),
    /// Bound on the CPU time that a task is said to use between becoming ready and blocking, in ns;
    /// 0 if nothing is said.
    pub burst: u64,
    /// When CPUs whose task has left pick.
    pub picks: Picks,
    /// Kicks are answered at once.
    pub prompt: bool,
    /// The tick, if there is one.
    pub tick: Option<Span>,
}

impl Scope {
    /// `tasks` tasks that run, block and wake, and nothing else.
    pub fn new(tasks: u32) -> Scope {
        Scope {
            start: Time::ZERO,
            tasks,
            attached: false,
            domains: 1,
            offs: &[Off::Blocked, Off::Blocked, Off::Yielded, Off::Preempted, Off::Exited],
            caps: false,
            nice: false,
            renices: false,
            pins: Pins::None,
            prefers: false,
            dequeues: false,
            detaches: false,
            undoes: false,
            hotplug: false,
            syncs: false,
            wakers: 0,
            describe: |_, _| {},
            burst: 0,
            picks: Picks::Later,
            prompt: false,
            tick: None,
        }
    }
}

/// Random numbers from which the host makes whatever is possible at the time.
#[derive(Clone)]
pub struct Moves(Vec<Move>);

impl fmt::Debug for Moves {
    /// The resulting calls say more.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} moves", self.0.len())
    }
}

#[derive(Clone, Copy, Debug)]
struct Move {
    what: u8,
    task: u32,
    cpu: u16,
    number: u64,
    /// Time that passes before it, in ns.
    pass: u64,
}

/// Up to `most` moves with times of `pass` ns between them.
pub fn moves(pass: impl Strategy<Value = u64>, most: usize) -> impl Strategy<Value = Moves> {
    let one = (any::<u8>(), any::<u32>(), any::<u16>(), any::<u64>(), pass);
    let one =
        one.prop_map(|(what, task, cpu, number, pass)| Move { what, task, cpu, number, pass });
    prop::collection::vec(one, 1..most).prop_map(Moves)
}

/// What happened in a number of comparisons: calls, picks, and what the oracles counted
/// ([`Scheduler::tally`]).
pub type Seen = BTreeMap<&'static str, u64>;

/// Runs `test` with `cases` values of `strategy` and adds up what was seen. Panics with the
/// smallest value for which it fails.
pub fn compare_all<T: fmt::Debug>(
    cases: u32,
    strategy: impl Strategy<Value = T>,
    test: impl Fn(T) -> Result<Seen, TestCaseError>,
) -> Seen {
    compare_with(ProptestConfig::with_cases(cases), strategy, test)
}

/// As [`compare_all`], with the values that `seed` gives: the same ones each time.
pub fn compare_same<T: fmt::Debug>(
    cases: u32,
    seed: u64,
    strategy: impl Strategy<Value = T>,
    test: impl Fn(T) -> Result<Seen, TestCaseError>,
) -> Seen {
    let rng_seed = RngSeed::Fixed(seed);
    compare_with(ProptestConfig { rng_seed, ..ProptestConfig::with_cases(cases) }, strategy, test)
}

/// One that no run had before.
fn new_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn compare_with<T: fmt::Debug>(
    config: ProptestConfig,
    strategy: impl Strategy<Value = T>,
    test: impl Fn(T) -> Result<Seen, TestCaseError>,
) -> Seen {
    let cases = config.cases;
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => new_seed(),
    };
    let rng_seed = RngSeed::Fixed(seed);
    let config = ProptestConfig { failure_persistence: None, rng_seed, ..config };
    let seen = std::cell::RefCell::new(Seen::new());
    let result = TestRunner::new(config).run(&strategy, |value| {
        for (name, count) in test(value)? {
            *seen.borrow_mut().entry(name).or_default() += count;
        }
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => {
            panic!("{value:?}: {reason}\nagain by PROPTEST_RNG_SEED={seed}")
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
    let seen = seen.into_inner();
    assert!(seen.get("picks").is_some_and(|&picks| picks > u64::from(cases)), "{seen:?}");
    seen
}

/// Plays `moves` to `policy` and `oracle`, both built for `machine`.
///
/// Errors: the first difference, or the oracle is unsure.
pub fn compare<P: Scheduler, O: Oracle>(
    machine: &Machine,
    policy: P,
    oracle: O,
    scope: &Scope,
    Moves(moves): &Moves,
) -> Result<Seen, TestCaseError> {
    let mut twins = Twins::new(machine, policy, oracle, scope.clone());
    twins.begin(moves)?;
    moves.iter().try_for_each(|&one| twins.step(one))?;
    twins.answer(usize::MAX)?;
    let mut seen = Seen::from([("calls", twins.calls), ("picks", twins.picks)]);
    twins.oracle.tally(&mut |name, count| *seen.entry(name).or_default() += count);
    Ok(seen)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Gone,
    Blocked,
    /// Taken out for a moment.
    Suspended,
    Ready,
    Running(usize),
}

struct Known {
    state: State,
    params: TaskParams,
    /// Where it last ran.
    prev: CpuId,
}

#[derive(Clone)]
struct OnCpu {
    online: bool,
    task: Option<u32>,
    /// When its task was picked or last charged.
    since: Time,
    /// What was left of its slice then.
    left: Span,
}

/// A call and its answer.
struct Record {
    now: Time,
    call: Call<'static>,
    pick: Option<Pick>,
    kicks: CpuMask,
    /// How many ticks without kicks it stands for, if it is one.
    ticks: u64,
}

/// How many things may fall due in one instant.
const STUCK: u32 = 1_000;

/// How many calls before a difference are shown.
const SHOWN: usize = 40;

struct Twins<P, O> {
    policy: P,
    oracle: O,
    scope: Scope,
    now: Time,
    next_tick: Time,
    kicks: CpuMask,
    /// CPUs whose task has left and that have not picked since.
    choosing: CpuMask,
    cpus: Vec<OnCpu>,
    tasks: Vec<Known>,
    history: VecDeque<Record>,
    calls: u64,
    picks: u64,
    shown: Shown,
}

/// What a policy shows of a task, to be asked for in the oracle's order. That is much the same for
/// each task, so where a name was found is remembered: names are compared millions of times.
#[derive(Default)]
struct Shown {
    values: Vec<(&'static str, i64)>,
    /// Where the first, the second … name that is asked for was found last.
    places: Vec<usize>,
    asked: usize,
}

impl Shown {
    /// Of another task.
    fn begin(&mut self) {
        self.values.clear();
        self.asked = 0;
    }

    /// The value of the next name that is asked for, if the policy shows it.
    fn next(&mut self, name: &str) -> Option<i64> {
        let is_at = |place: usize| self.values.get(place).is_some_and(|(own, _)| *own == name);
        let place = match self.places.get(self.asked) {
            Some(&place) if is_at(place) => place,
            _ => {
                let next = self.asked.checked_sub(1).map_or(0, |last| self.places[last] + 1);
                let all = 0..self.values.len();
                (next..all.end).chain(all).find(|&place| is_at(place))?
            }
        };
        if self.places.len() <= self.asked {
            self.places.resize(self.asked + 1, 0);
        }
        self.places[self.asked] = place;
        self.asked += 1;
        Some(self.values[place].1)
    }
}

type Outcome = Result<(), TestCaseError>;

impl<P: Scheduler, O: Oracle> Twins<P, O> {
    fn new(machine: &Machine, policy: P, oracle: O, scope: Scope) -> Twins<P, O> {
        let cpu = OnCpu { online: true, task: None, since: Time::ZERO, left: Span::ZERO };
        let task = |_| Known { state: State::Gone, params: TaskParams::default(), prev: CpuId(0) };
        let mut twins = Twins {
            policy,
            oracle,
            now: scope.start,
            next_tick: Time::NEVER,
            kicks: CpuMask::EMPTY,
            choosing: CpuMask::EMPTY,
            cpus: vec![cpu; machine.cpus()],
            tasks: (0..scope.tasks).map(task).collect(),
            scope,
            history: VecDeque::new(),
            calls: 0,
            picks: 0,
            shown: Shown::default(),
        };
        twins.set_next_tick();
        twins
    }

    fn set_next_tick(&mut self) {
        if let Some(tick) = self.scope.tick {
            self.next_tick = Time((self.now.0 / tick.0 + 1) * tick.0);
        }
    }

    /// Domains and tasks that are there from the start, drawn from the moves' numbers.
    fn begin(&mut self, moves: &[Move]) -> Outcome {
        let mut moves = moves.iter().cycle().copied();
        if self.scope.domains > 1 {
            for domain in 0..self.scope.domains {
                self.set_domain(domain, moves.next().map_or(0, |one| one.number))?;
            }
        }
        for task in 0..if self.scope.attached { self.scope.tasks } else { 0 } {
            if let Some(Move { cpu, number, .. }) = moves.next() {
                let cpu = usize::from(cpu) % self.cpus.len();
                self.become_ready(task, cpu, number)?;
            }
        }
        self.answer(usize::MAX)
    }

    fn set_domain(&mut self, domain: u16, number: u64) -> Outcome {
        let cap_percent = match self.scope.caps && number % 2 == 1 {
            true => 5 + (number >> 16) as u32 % 150,
            false => 0,
        };
        let params = DomainParams { weight: 1 + (number >> 32) as u32 % 600, cap_percent };
        self.call(Call::SetDomain { domain: DomainId(domain), params }).map(drop)
    }

    /// Makes a call to both and compares their answers and what they show.
    fn call(&mut self, call: Call<'static>) -> Result<Option<Pick>, TestCaseError> {
        let (mut kicks, mut expected_kicks) = (CpuMask::EMPTY, CpuMask::EMPTY);
        let mut cx = Cx::new(self.now, &mut kicks);
        let pick = call.make(&mut self.policy, &mut cx);
        let queued = cx.work.queued;
        let mut cx = Cx::new(self.now, &mut expected_kicks);
        let expected = call.make(&mut self.oracle, &mut cx);
        let expected_queued = cx.work.queued;
        let counts =
            matches!(call, Call::Enqueue { .. } | Call::Dequeue { .. } | Call::PickNext { .. });
        if self.oracle.is_unsure() {
            return Err(TestCaseError::reject("the oracle is unsure"));
        }
        self.calls += 1;
        self.note(Record { now: self.now, call, pick, kicks: kicks.clone(), ticks: 0 });
        let same_pick = match (pick, expected) {
            (Some(pick), Some(expected)) => {
                let same_slice = self.oracle.is_same_slice(pick.slice, expected.slice);
                pick.task == expected.task && same_slice
            }
            (None, None) => true,
            _ => false,
        };
        if !same_pick {
            return self.differ(format_args!("picked {pick:?} instead of {expected:?}"));
        }
        self.compare_states()?;
        // Kicking a CPU again that has not answered yet means nothing.
        let news = |kicks: &CpuMask| -> Vec<CpuId> {
            kicks.iter().filter(|&cpu| !self.kicks.contains(cpu)).collect()
        };
        let (kicked, expected) = (news(&kicks), news(&expected_kicks));
        if O::KICKS && kicked != expected {
            return self.differ(format_args!("kicked {kicked:?} instead of {expected:?}"));
        }
        if O::QUEUED && counts && queued != expected_queued {
            return self.differ(format_args!("queues {queued} tasks instead of {expected_queued}"));
        }
        kicks.iter().for_each(|cpu| self.kicks.insert(cpu));
        Ok(pick)
    }

    /// Keeps `record`; of ticks in a row that change nothing, the last.
    fn note(&mut self, mut record: Record) {
        if matches!(record.call, Call::Tick { .. }) && record.kicks == CpuMask::EMPTY {
            let before = self.history.pop_back_if(|last| last.ticks > 0);
            record.ticks = 1 + before.map_or(0, |last| last.ticks);
        }
        if self.history.len() == SHOWN {
            self.history.pop_front();
        }
        self.history.push_back(record);
    }

    fn compare_states(&mut self) -> Outcome {
        let (due, expected) = (self.policy.next_timer(), self.oracle.next_timer());
        if O::TIMERS && due != expected {
            return self.differ(format_args!("wants a timer at {due:?} instead of {expected:?}"));
        }
        let mut shown = std::mem::take(&mut self.shown);
        for (number, known) in (0..).zip(&self.tasks) {
            // A call that attaches or detaches is noted afterwards.
            if known.state == State::Gone {
                continue;
            }
            shown.begin();
            self.policy.probe(TaskId(number), &mut |name, value| shown.values.push((name, value)));
            let mut wrong = String::new();
            self.oracle.probe(TaskId(number), &mut |name, value| {
                let found = shown.next(name);
                if found != Some(value) {
                    let comma = if wrong.is_empty() { "" } else { "," };
                    let _ = write!(wrong, "{comma} {name} {found:?} instead of {value}");
                }
            });
            if !wrong.is_empty() {
                return self.differ(format_args!("shows{wrong} of task {number}"));
            }
        }
        self.shown = shown;
        Ok(())
    }

    /// The error that reports a difference, with the calls that led to it.
    fn differ<R>(&self, what: fmt::Arguments<'_>) -> Result<R, TestCaseError> {
        let mut text = format!("after call {}, the policy {what}:", self.calls);
        for Record { now, call, pick, kicks, ticks } in &self.history {
            let _ = write!(text, "\n    {} {call}", now.0);
            if *ticks > 1 {
                let _ = write!(text, ", the last of {ticks} ticks");
            }
            if let Some(Pick { task, slice }) = pick {
                let _ = write!(text, " -> task {} for {}", task.0, slice);
            }
            for cpu in kicks.iter() {
                let _ = write!(text, ", kicks CPU {}", cpu.0);
            }
        }
        Err(TestCaseError::fail(text))
    }

    fn step(&mut self, Move { what, task, cpu, number, pass }: Move) -> Outcome {
        self.pass(pass)?;
        let task = task % self.scope.tasks;
        let cpu = usize::from(cpu) % self.cpus.len();
        let state = self.tasks[task as usize].state;
        match what % 40 {
            0..12 => self.become_ready(task, cpu, number)?,
            12..20 => self.leave(cpu, self.scope.offs[number as usize % self.scope.offs.len()])?,
            20..26 => self.pick(cpu)?,
            26..28 if self.scope.renices => self.renice(task, number)?,
            28..30 if self.scope.pins != Pins::None => self.repin(task, number)?,
            30 | 31 if self.scope.dequeues && state == State::Ready => {
                let suspends = number % 2 == 0;
                self.call(Call::Dequeue { task: TaskId(task) })?;
                let then = if suspends { State::Suspended } else { State::Blocked };
                self.tasks[task as usize].state = then;
            }
            32 if self.scope.detaches && state == State::Blocked => self.detach(task)?,
            33 if self.scope.undoes => {
                self.put(cpu, Off::Preempted)?;
                self.pick(cpu)?;
                self.leave(cpu, Off::NotRun)?;
            }
            34 if self.scope.hotplug && cpu > 0 => self.plug(cpu)?,
            _ => self.answer(1 + number as usize % 3)?,
        }
        self.answer(if self.scope.prompt { usize::MAX } else { 0 })
    }

    /// Lets `ns` pass; timers, ticks and ends of slices come at their exact times.
    fn pass(&mut self, ns: u64) -> Outcome {
        if ns > 0 && self.scope.picks == Picks::SameInstant {
            while let Some(cpu) = self.choosing.take_lowest() {
                self.pick(cpu.index())?;
            }
        }
        let until = self.now + Span(ns);
        let mut at_once = 0;
        loop {
            let ends = self.cpus.iter().filter(|on| on.task.is_some()).map(|on| on.since + on.left);
            let next = ends.chain(self.policy.next_timer()).fold(self.next_tick, Time::min);
            if next > until {
                break;
            }
            at_once = if next > self.now { 0 } else { at_once + 1 };
            if at_once == STUCK {
                return self.differ(format_args!("wants its timer again and again"));
            }
            self.now = self.now.max(next);
            self.happen()?;
        }
        self.now = until;
        Ok(())
    }

    /// Handles what is due at this instant.
    fn happen(&mut self) -> Outcome {
        if self.policy.next_timer().is_some_and(|due| due <= self.now) {
            self.call(Call::Timer)?;
        }
        let ticks = self.next_tick <= self.now;
        if ticks {
            self.set_next_tick();
        }
        for cpu in 0..self.cpus.len() {
            if ticks {
                self.tick(cpu)?;
            }
            let on = &self.cpus[cpu];
            if on.task.is_some() && on.since + on.left <= self.now {
                self.put(cpu, Off::Expired)?;
                self.pick(cpu)?;
            }
        }
        self.answer(if self.scope.prompt { usize::MAX } else { 0 })
    }

    fn tick(&mut self, cpu: usize) -> Outcome {
        let on = &mut self.cpus[cpu];
        let Some(task) = on.task else { return Ok(()) };
        let ran = self.now - on.since;
        on.since = self.now;
        if on.left != Span::MAX {
            on.left = on.left.saturating_sub(ran);
        }
        self.call(Call::Tick { cpu: CpuId(cpu as u16), task: TaskId(task), ran }).map(drop)
    }

    fn become_ready(&mut self, task: u32, cpu: usize, number: u64) -> Outcome {
        let id = TaskId(task);
        let prev = self.tasks[task as usize].prev;
        let why = match self.tasks[task as usize].state {
            State::Gone => {
                let params = self.new_params(task, number);
                self.call(Call::Attach { task: id, params: Cow::Owned(params.clone()) })?;
                let known = &mut self.tasks[task as usize];
                (known.state, known.params) = (State::Blocked, params);
                Enqueue::New
            }
            State::Blocked => {
                let sync = self.scope.syncs && number.is_multiple_of(5);
                Enqueue::Wakeup { prev, sync }
            }
            State::Suspended => Enqueue::Resumed { prev },
            State::Ready | State::Running(_) => return Ok(()),
        };
        let from = (number >> 8) % 3 < u64::from(self.scope.wakers);
        let says = self.scope.burst > 0 && !matches!(why, Enqueue::Resumed { .. });
        let arrival = Arrival {
            from: from.then_some(CpuId(cpu as u16)),
            burst: says.then(|| Span((number >> 16) % self.scope.burst)),
            ..Arrival::because(why)
        };
        self.tasks[task as usize].state = State::Ready;
        self.call(Call::Enqueue { task: id, arrival }).map(drop)
    }

    fn new_params(&self, task: u32, number: u64) -> TaskParams {
        let domain = DomainId((task % u32::from(self.scope.domains)) as u16);
        let mut params = TaskParams { domain, ..TaskParams::default() };
        if self.scope.nice {
            params.weight = TaskParams::nice(nice(number)).weight;
        }
        if self.scope.pins == Pins::Any && number >> 40 & 1 == 1 {
            params.affinity = self.affinity(number >> 41);
        }
        if self.scope.prefers && number & 1 == 1 {
            params.preferred = self.preferred(number >> 1);
        }
        (self.scope.describe)(number, &mut params);
        params
    }

    /// Any set of CPUs.
    fn preferred(&self, bits: u64) -> CpuSet {
        let all = (0..self.cpus.len() as u16).filter(|cpu| bits >> (cpu % 16) & 1 == 1);
        CpuSet::of(all.map(CpuId))
    }

    /// A set of CPUs of which at least one is in use.
    fn affinity(&self, bits: u64) -> CpuSet {
        let set = CpuSet::of(
            (0..self.cpus.len() as u16).filter(|cpu| bits >> (cpu % 16) & 1 == 1).map(CpuId),
        );
        let full = (0..self.cpus.len() as u16).all(|cpu| set.contains(CpuId(cpu)));
        if full || !self.has_cpu(&set, usize::MAX) { CpuSet::All } else { set }
    }

    /// Whether `set` has a CPU in use apart from `but`.
    fn has_cpu(&self, set: &CpuSet, but: usize) -> bool {
        let mut usable = self.cpus.iter().enumerate().filter(|(_, on)| on.online);
        usable.any(|(cpu, _)| cpu != but && set.contains(CpuId(cpu as u16)))
    }

    fn renice(&mut self, task: u32, number: u64) -> Outcome {
        let weight = TaskParams::nice(nice(number)).weight;
        let mut params = TaskParams { weight, ..self.tasks[task as usize].params.clone() };
        (self.scope.describe)(number, &mut params);
        self.update(task, params)
    }

    fn repin(&mut self, task: u32, number: u64) -> Outcome {
        let affinity = match self.scope.pins {
            Pins::Asleep if self.tasks[task as usize].state != State::Blocked => return Ok(()),
            Pins::Asleep => CpuSet::of([CpuId((number % self.cpus.len() as u64) as u16)]),
            _ if number.is_multiple_of(4) => CpuSet::All,
            _ => self.affinity(number >> 8),
        };
        let mut params = TaskParams { affinity, ..self.tasks[task as usize].params.clone() };
        if self.scope.prefers && number >> 32 & 1 == 1 {
            params.preferred = match number >> 33 & 3 {
                0 => CpuSet::All,
                _ => self.preferred(number >> 35),
            };
        }
        self.update(task, params)
    }

    fn update(&mut self, task: u32, params: TaskParams) -> Outcome {
        let known = &mut self.tasks[task as usize];
        if known.state == State::Gone {
            return Ok(());
        }
        known.params = params.clone();
        self.call(Call::Update { task: TaskId(task), params: Cow::Owned(params) }).map(drop)
    }

    fn detach(&mut self, task: u32) -> Outcome {
        self.tasks[task as usize].state = State::Gone;
        self.call(Call::Detach { task: TaskId(task) }).map(drop)
    }

    /// What `cpu` runs stops for the reason `why`, and the CPU picks if it must at once.
    fn leave(&mut self, cpu: usize, why: Off) -> Outcome {
        if self.cpus[cpu].task.is_none() {
            return Ok(());
        }
        self.put(cpu, why)?;
        if self.scope.picks == Picks::AtOnce { self.pick(cpu) } else { Ok(()) }
    }

    fn put(&mut self, cpu: usize, why: Off) -> Outcome {
        let on = &mut self.cpus[cpu];
        let Some(task) = on.task.take() else { return Ok(()) };
        let ran = self.now - on.since;
        let known = &mut self.tasks[task as usize];
        known.prev = CpuId(cpu as u16);
        known.state = if why.runnable() { State::Ready } else { State::Blocked };
        let on = CpuId(cpu as u16);
        self.choosing.insert(on);
        self.call(Call::PutPrev { cpu: on, task: TaskId(task), ran, why })?;
        if why == Off::Exited { self.detach(task) } else { Ok(()) }
    }

    fn pick(&mut self, cpu: usize) -> Outcome {
        let id = CpuId(cpu as u16);
        if self.cpus[cpu].task.is_some() || !self.cpus[cpu].online {
            return Ok(());
        }
        self.kicks.remove(id);
        self.choosing.remove(id);
        let Some(Pick { task, slice }) = self.call(Call::PickNext { cpu: id })? else {
            return Ok(());
        };
        let known = &mut self.tasks[task.index()];
        if known.state != State::Ready || !known.params.affinity.contains(id) {
            return self.differ(format_args!("picked task {}, which may not run there", task.0));
        }
        (known.state, known.prev) = (State::Running(cpu), id);
        self.picks += 1;
        let on = &mut self.cpus[cpu];
        (on.task, on.since, on.left) = (Some(task.0), self.now, slice);
        Ok(())
    }

    fn plug(&mut self, cpu: usize) -> Outcome {
        let online = !self.cpus[cpu].online;
        if !online {
            for task in 0..self.scope.tasks {
                let known = &self.tasks[task as usize];
                if known.state != State::Gone && !self.has_cpu(&known.params.affinity, cpu) {
                    let params = TaskParams { affinity: CpuSet::All, ..known.params.clone() };
                    self.update(task, params)?;
                }
            }
        }
        self.cpus[cpu].online = online;
        self.call(Call::SetOnline { cpu: CpuId(cpu as u16), online })?;
        self.put(cpu, Off::Preempted)
    }

    /// Lets up to `most` kicked CPUs pick, the lowest first.
    fn answer(&mut self, most: usize) -> Outcome {
        for _ in 0..most {
            let Some(cpu) = self.kicks.take_lowest() else { break };
            let cpu = cpu.index();
            if self.cpus[cpu].online {
                self.put(cpu, Off::Preempted)?;
                self.pick(cpu)?;
            }
        }
        Ok(())
    }
}

/// Few distinct values, so that keys are equal now and then.
fn nice(number: u64) -> i8 {
    match number % 5 {
        0..3 => 0,
        3 => 5,
        _ => (number >> 24) as i8 % 20,
    }
}
