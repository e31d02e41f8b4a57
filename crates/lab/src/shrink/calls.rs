//! Calls of a policy, from a log or a run: the fewest after which it still breaks the contract, or
//! still answers otherwise than was recorded.

use crate::shrink::Limits;
use crate::shrink::fails::{Failure, said, way};
use crate::shrink::held::Echo;
use crate::shrink::search::{Budget, Search, Smaller};
use crate::spec::known::known;
use anysched_core::call::{Call, Cow};
use anysched_core::checked::{Fault, HostFault, OnViolation, Rules};
use anysched_core::recorder::{Answer, LogReader, Recorder, ReplayError, replay};
use anysched_core::registry::{PolicyInfo, Settings};
use anysched_core::{
    Checked, CpuId, CpuMask, CpuSet, Cx, Enqueue, Machine, Span, TaskId, TaskParams, Time,
};
use anysched_host::as_text;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;

/// Calls with their times.
pub(crate) type Calls = Vec<(Time, Call<'static>)>;

/// What a log is said to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFails {
    /// The policy breaks the contract, or panics.
    Contract,
    /// The policy, as it is here, answers otherwise than was recorded.
    Differs,
}

/// Calls of a policy that was built with settings for a machine.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// The policy.
    pub policy: &'static PolicyInfo,
    /// What it is built with.
    pub settings: Settings,
    /// The machine that it is built for.
    pub machine: Machine,
    /// The calls, with their times.
    pub calls: Vec<(Time, Call<'static>)>,
    /// What was recorded as their answers, if that matters.
    pub(crate) answers: Option<Vec<Answer>>,
}

/// The shortest sequence that was found to fail.
#[derive(Clone, Debug)]
pub struct ShortLog {
    /// The calls.
    pub sequence: Sequence,
    /// How they fail.
    pub failure: Failure,
    /// How many tasks, CPUs and calls there were.
    pub before: [usize; 3],
    /// How many there are.
    pub after: [usize; 3],
    /// How many sequences were tried.
    pub tried: u64,
    /// Whether there was nothing more to try.
    pub complete: bool,
}

/// Makes a log as short as can be.
///
/// Errors: it cannot be read, its policy is not here, or it does not fail.
pub fn shrink_log(log: &[u8], fails: LogFails, limits: Limits<'_>) -> Result<ShortLog, String> {
    let mut start = Sequence::read(log)?;
    if fails == LogFails::Contract {
        start.answers = None;
    }
    let before = start.extent();
    let (start, failure) = start.cut(fails).ok_or_else(|| match fails {
        LogFails::Contract => {
            "nothing fails: the policy keeps the contract in all of it".to_string()
        }
        LogFails::Differs => "nothing fails: no decision differs".to_string(),
    })?;
    // That it now differs in its last call.
    let failure = start.failure(fails).map_or(failure, |(_, failure)| failure);
    Ok(shortened(start, failure, fails, limits, before))
}

/// As [`shrink_log`], of calls in which the contract is broken in this way.
pub(crate) fn shrink_calls(start: Sequence, limits: Limits<'_>) -> Option<ShortLog> {
    let before = start.extent();
    let (start, failure) = start.cut(LogFails::Contract)?;
    Some(shortened(start, failure, LogFails::Contract, limits, before))
}

fn shortened(
    start: Sequence,
    failure: Failure,
    fails: LogFails,
    limits: Limits<'_>,
    before: [usize; 3],
) -> ShortLog {
    let mut budget = Budget::new(limits);
    let mut same = |sequence: &Sequence| {
        let found = sequence.failure(fails).map(|(_, found)| found);
        found.is_some_and(|found| match fails {
            LogFails::Contract => found.way == failure.way,
            LogFails::Differs => found == failure,
        })
    };
    let mut search = Search::new(start, &mut budget, &mut same);
    loop {
        let legal = |sequence: Sequence| sequence.legal(fails);
        let mut any =
            search.take_list(|s| s.tasks().len(), |s, range| legal(s.without_tasks(range)));
        if fails == LogFails::Contract {
            let both = |s: &Sequence| s.without_tasks_and_picks().into_iter().map(legal).collect();
            any |= search.take_all(both);
            any |= search.take_all(|s| s.fewer_cpus().into_iter().map(legal).collect());
        }
        any |= search.take_list(|s| s.calls.len(), |s, range| legal(s.without_calls(range)));
        if fails == LogFails::Contract {
            any |= search.take_list(
                |s| s.settings.len(),
                |s, range| {
                    let mut fewer = s.clone();
                    fewer.settings.drain(range);
                    legal(fewer)
                },
            );
            any |= search.take_all(|s| s.simpler().into_iter().map(legal).collect());
        }
        if !any || search.is_over() {
            break;
        }
    }
    let sequence = search.best;
    let failure = sequence.failure(fails).map_or(failure, |(_, failure)| failure);
    let after = sequence.extent();
    let (tried, complete) = (budget.tried(), !budget.is_over());
    ShortLog { sequence, failure, before, after, tried, complete }
}

impl Sequence {
    /// Calls of a policy that keeps no answers.
    pub(crate) fn new(
        policy: &'static PolicyInfo,
        settings: Settings,
        machine: Machine,
        calls: Calls,
    ) -> Sequence {
        Sequence { policy, settings, machine, calls, answers: None }
    }

    /// The calls of a log, with their answers.
    ///
    /// Errors: it cannot be read, or there is no such policy.
    pub(crate) fn read(log: &[u8]) -> Result<Sequence, String> {
        let reader = LogReader::new(log).map_err(|error| error.to_string())?;
        let header = reader.header().clone();
        let policy = known(header.policy)
            .ok_or_else(|| format!("there is no policy `{}` here", header.policy))?;
        let owned = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        let settings: Settings = header.settings.iter().map(owned).collect();
        (policy.build)(&header.machine, &header.settings)
            .map_err(|error| format!("`{}` cannot be built: {error}", header.policy))?;
        let (mut calls, mut answers) = (Vec::new(), Vec::new());
        for record in reader {
            let record = record.map_err(|error| error.to_string())?;
            calls.push((record.now, record.call));
            // The last may have none: the policy did not return.
            answers.extend(record.answer);
        }
        Ok(Sequence { policy, settings, machine: header.machine, calls, answers: Some(answers) })
    }

    /// Tasks, CPUs and calls.
    fn extent(&self) -> [usize; 3] {
        [self.tasks().len(), self.machine.cpus(), self.calls.len()]
    }

    /// The tasks, in the order in which they first appear.
    fn tasks(&self) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        for (_, call) in &self.calls {
            if let Some(task) = call.task()
                && !tasks.contains(&task)
            {
                tasks.push(task);
            }
        }
        tasks
    }

    fn build(&self) -> Option<Box<dyn anysched_core::Scheduler>> {
        (self.policy.build)(&self.machine, &as_text(&self.settings)).ok()
    }

    /// The calls up to that which fails, and how it does.
    fn cut(&self, fails: LogFails) -> Option<(Sequence, Failure)> {
        let (calls, failure) = self.failure(fails)?;
        let answers = self.answers.clone().map(|answers| answers[..calls.len()].to_vec());
        Some((Sequence { calls, answers, ..self.clone() }, failure))
    }

    /// The calls that the contract lets a host make, with times that have passed.
    fn legal(self, fails: LogFails) -> Sequence {
        match fails {
            LogFails::Contract => {
                let (calls, _) = self.played();
                Sequence { calls, ..self }
            }
            LogFails::Differs => self,
        }
    }

    fn failure(&self, fails: LogFails) -> Option<(Calls, Failure)> {
        match fails {
            LogFails::Contract => {
                let (calls, failure) = self.played();
                Some((calls, failure?))
            }
            LogFails::Differs => {
                let mut policy = self.build()?;
                match replay(&self.recorded()?, &mut *policy) {
                    Err(ReplayError::Difference(difference)) => {
                        let number = difference.record.number as usize;
                        let what = Answered(&difference.record.call, &difference.got).to_string();
                        let calls = self.calls[..number].to_vec();
                        let is_last = number == self.calls.len();
                        // Only the whole of it is a candidate.
                        let way = if is_last { "differs" } else { "differs before" };
                        Some((calls, Failure { way: way.into(), what }))
                    }
                    _ => None,
                }
            }
        }
    }

    /// Makes the calls, as far as the contract lets a host make them, up to that in which the
    /// policy breaks it: those that were made, and how it was broken.
    fn played(&self) -> (Calls, Option<Failure>) {
        let made = RefCell::new(Calls::new());
        let Some(policy) = self.build() else { return (Calls::new(), None) };
        let nature = (self.policy.nature)(&as_text(&self.settings));
        let rules = Rules {
            work_conserving: nature.is_ok_and(|nature| nature.work_conserving),
            on_violation: OnViolation::Collect,
            ..Rules::default()
        };
        let mut checked = Checked::new(policy, &self.machine, rules);
        let broken = panic::catch_unwind(AssertUnwindSafe(|| {
            for (now, call) in &self.calls {
                let mut call = call.clone().into_owned();
                loop {
                    made.borrow_mut().push((*now, call.clone()));
                    let mut kicks = CpuMask::EMPTY;
                    call.make(&mut checked, &mut Cx::new(*now, &mut kicks));
                    let Some(violation) = checked.take_violations().into_iter().next() else {
                        break;
                    };
                    match violation.fault {
                        Fault::Policy(_) => return Some(violation),
                        Fault::Host(fault) => {
                            made.borrow_mut().pop();
                            if !shortened_run(&mut call, &fault) {
                                break;
                            }
                        }
                    }
                }
            }
            None
        }));
        let failure = match broken {
            Ok(violation) => violation.map(|violation| Failure {
                way: way(&violation.fault),
                what: violation.fault.to_string(),
            }),
            Err(panic) => Some(Failure { way: "panic".into(), what: said(&*panic) }),
        };
        (made.into_inner(), failure)
    }

    /// A log of the calls with the answers that were recorded.
    fn recorded(&self) -> Option<Vec<u8>> {
        let answers = self.answers.as_ref()?;
        let none = Answer { pick: None, kicks: CpuMask::EMPTY, next_timer: None };
        let answer = Rc::new(RefCell::new(none));
        let (mut log, settings) = (Vec::new(), as_text(&self.settings));
        let echo = Echo(Rc::clone(&answer));
        let mut recorder =
            Recorder::new(echo, &self.machine, self.policy.name, &settings, &mut log);
        for ((now, call), given) in self.calls.iter().zip(answers) {
            *answer.borrow_mut() = given.clone();
            call.make(&mut recorder, &mut Cx::new(*now, &mut CpuMask::EMPTY.clone()));
        }
        drop(recorder);
        Some(log)
    }

    /// The log of the calls: with the recorded answers, or with those that the policy gives, as
    /// long as it does not panic.
    pub fn log(&self) -> Vec<u8> {
        if let Some(log) = self.recorded() {
            return log;
        }
        let (mut log, settings) = (Vec::new(), as_text(&self.settings));
        let Some(policy) = self.build() else { return log };
        let _ = panic::catch_unwind(AssertUnwindSafe(|| {
            let (machine, name) = (&self.machine, self.policy.name);
            let mut recorder = Recorder::new(policy, machine, name, &settings, &mut log);
            for (now, call) in &self.calls {
                call.make(&mut recorder, &mut Cx::new(*now, &mut CpuMask::EMPTY.clone()));
            }
        }));
        log
    }

    fn keeping(&self, keeps: impl Fn(usize, &Call<'static>) -> bool) -> Sequence {
        let kept = self.calls.iter().enumerate().map(|(at, (_, call))| keeps(at, call));
        let mut kept = kept.collect::<Vec<_>>().into_iter();
        let mut fewer = self.clone();
        let mut same = kept.clone();
        fewer.calls.retain(|_| kept.next().unwrap_or_default());
        if let Some(answers) = &mut fewer.answers {
            answers.retain(|_| same.next().unwrap_or_default());
        }
        fewer
    }

    fn without_calls(&self, range: Range<usize>) -> Sequence {
        self.keeping(|at, _| !range.contains(&at))
    }

    fn without_tasks(&self, range: Range<usize>) -> Sequence {
        let gone = &self.tasks()[range];
        self.keeping(|_, call| call.task().is_none_or(|task| !gone.contains(&task)))
    }

    /// The same without one of the tasks and one of the picks, in which it may have been picked:
    /// another would be now.
    fn without_tasks_and_picks(&self) -> Vec<Sequence> {
        /// Of more pairs than so many, none is tried.
        const MOST: usize = 400;
        let tasks = self.tasks().len();
        let mut found = Vec::new();
        for task in 0..tasks {
            let fewer = self.without_tasks(task..task + 1);
            let picks = fewer.calls.iter().enumerate();
            let picks = picks.filter(|(_, (_, call))| matches!(call, Call::PickNext { .. }));
            let picks: Vec<usize> = picks.map(|(at, _)| at).collect();
            if tasks * picks.len() <= MOST {
                found.extend(picks.into_iter().map(|at| fewer.without_calls(at..at + 1)));
            }
        }
        found
    }

    /// The same without one CPU, alone or with one of the tasks, in place of CPUs that share
    /// something or not.
    fn fewer_cpus(&self) -> Vec<Sequence> {
        /// Of more pairs of CPUs and tasks than so many, none is tried.
        const MOST: usize = 400;
        let (cpus, tasks) = (self.machine.cpus(), self.tasks().len());
        let gone = (0..cpus).rev().map(|cpu| CpuId(cpu as u16));
        let mut fewer: Vec<Sequence> = gone.filter_map(|cpu| self.without_cpu(cpu)).collect();
        if cpus * tasks <= MOST {
            let both: Vec<Sequence> = fewer
                .iter()
                .flat_map(|fewer| {
                    let tasks = fewer.tasks().len();
                    (0..tasks).map(|task| fewer.without_tasks(task..task + 1))
                })
                .collect();
            fewer.extend(both);
        }
        fewer
    }

    /// The same without a CPU; those above it are one lower.
    fn without_cpu(&self, gone: CpuId) -> Option<Sequence> {
        let machine = Machine::flat(self.machine.cpus().checked_sub(1)?).ok()?;
        let moved = |cpu: CpuId| match cpu.cmp(&gone) {
            Ordering::Less => Some(cpu),
            Ordering::Equal => None,
            Ordering::Greater => Some(CpuId(cpu.0 - 1)),
        };
        let set = |set: &CpuSet| match set {
            CpuSet::All => CpuSet::All,
            set => match CpuSet::of(set.iter().filter_map(moved)) {
                none if none.iter().next().is_none() => CpuSet::All,
                set => set,
            },
        };
        let mut fewer = self.keeping(|_, call| call.cpu() != Some(gone));
        for (_, call) in &mut fewer.calls {
            if let Some(cpu) = call.cpu_mut() {
                *cpu = moved(*cpu)?;
            }
            match call {
                Call::Attach { params, .. } | Call::Update { params, .. } => {
                    let params = params.to_mut();
                    params.affinity = set(&params.affinity);
                    params.preferred = set(&params.preferred);
                }
                Call::Enqueue { arrival, .. } => {
                    arrival.from = arrival.from.and_then(moved);
                    match &mut arrival.why {
                        Enqueue::Wakeup { prev, .. } | Enqueue::Resumed { prev } => {
                            *prev = moved(*prev).unwrap_or(CpuId(0));
                        }
                        Enqueue::New => {}
                    }
                }
                _ => {}
            }
        }
        Some(Sequence { machine: machine.with_tick(self.machine.tick()), ..fewer })
    }

    /// The same with fewer things to read.
    fn simpler(&self) -> Vec<Sequence> {
        let mut found = Vec::new();
        let mut changed = |change: &mut dyn FnMut(&mut Sequence)| {
            let mut sequence = self.clone();
            change(&mut sequence);
            found.push(sequence);
        };
        let tasks = self.tasks();
        changed(&mut |sequence| {
            for (_, call) in &mut sequence.calls {
                if let Some(task) = call.task_mut() {
                    let place = tasks.iter().position(|known| known == task);
                    *task = TaskId(place.unwrap_or_default() as u32);
                }
            }
        });
        changed(&mut |sequence| sequence.machine = sequence.machine.clone().with_tick(None));
        changed(&mut |sequence| sequence.calls.iter_mut().for_each(|(now, _)| *now = Time::ZERO));
        changed(&mut |sequence| {
            sequence.calls.iter_mut().for_each(|(_, call)| set_usual(call));
        });
        for at in 0..self.calls.len() {
            changed(&mut |sequence| set_usual(&mut sequence.calls[at].1));
            // No time passes before it, or a round one.
            let before = at.checked_sub(1).map_or(Time::ZERO, |before| self.calls[before].0);
            let gap = self.calls[at].0.since(before);
            for round in [Span::ZERO, Span::from_ms(1), Span::from_ms(10)] {
                if round < gap {
                    changed(&mut |sequence| {
                        let later = gap - round;
                        for (now, _) in &mut sequence.calls[at..] {
                            *now = Time(now.0 - later.0);
                        }
                    });
                }
            }
        }
        found
    }
}

/// Lets a task have run for as long as has passed, if a host says that it ran for longer.
fn shortened_run(call: &mut Call<'static>, fault: &HostFault) -> bool {
    let HostFault::RanTooLong { passed, .. } = fault else { return false };
    match call {
        Call::PutPrev { ran, .. } | Call::Tick { ran, .. } => {
            *ran = *passed;
            true
        }
        _ => false,
    }
}

/// The parameters of a task as they usually are.
fn set_usual(call: &mut Call<'static>) {
    match call {
        Call::Attach { params, .. } | Call::Update { params, .. } => {
            *params = Cow::Owned(TaskParams::default());
        }
        Call::Enqueue { arrival, .. } => {
            arrival.from = None;
            arrival.deadline = None;
        }
        _ => {}
    }
}

impl Smaller for Sequence {
    /// Tasks, CPUs, calls, settings, what is unusual of tasks, times.
    fn weight(&self) -> Vec<u64> {
        let usual = TaskParams::default();
        let unusual = self.calls.iter().map(|(_, call)| match call {
            Call::Attach { params, .. } | Call::Update { params, .. } => {
                u64::from(**params != usual)
            }
            Call::Enqueue { arrival, .. } => {
                u64::from(arrival.from.is_some()) + u64::from(arrival.deadline.is_some())
            }
            _ => 0,
        });
        let numbers = self.tasks().iter().map(|task| u64::from(task.0)).sum();
        let times = self.calls.iter().fold(0, |sum: u64, (now, _)| sum.saturating_add(now.0));
        let ticks = u64::from(self.machine.tick().is_some());
        let [tasks, cpus, calls] = self.extent().map(|extent| extent as u64);
        let settings = self.settings.len() as u64 + ticks;
        vec![tasks, cpus, calls, settings, unusual.sum(), numbers, times]
    }

    fn text(&self) -> String {
        format!("{:?} {:?} {:?}", self.settings, self.machine, self.calls)
    }
}

/// What a policy answers, in words.
struct Answered<'a>(&'a Call<'static>, &'a Answer);

impl std::fmt::Display for Answered<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Answered(call, Answer { pick, kicks, next_timer }) = self;
        write!(f, "the policy answers otherwise to \"{call}\":")?;
        match pick {
            Some(pick) => write!(f, " task {} for at most {}", pick.task.0, pick.slice)?,
            None => write!(f, " no task")?,
        }
        for cpu in kicks.iter() {
            write!(f, ", kicks CPU {}", cpu.0)?;
        }
        match next_timer {
            Some(time) => write!(f, ", timer at {}", time.since(Time::ZERO)),
            None => Ok(()),
        }
    }
}
