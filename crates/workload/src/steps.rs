//! Loads as [scripts](anysched_wire::script), for hosts that cannot ask a [`Load`] while its tasks
//! run.
//!
//! None of what can be listed depends on when it is done, or on what other tasks have done. What
//! comes to a machine as a message does: a task that waits for one gets as many as are sent to it
//! until the run ends, and what it does about one from outside is listed with that message,
//! whichever task takes it.

use crate::{Channel, Load, NewTask, Op, Outside, Sizes};
use anysched_core::{CpuId, CpuSet, Span, TaskId, Time};
use anysched_wire::mail::Message;
use anysched_wire::script::{Script, Step, Task};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// The most tasks, messages, and steps of a task, that are listed.
const MOST: usize = 1 << 20;

/// The most steps that are looked at for being repeated.
const LONGEST_ROUND: usize = 16;

/// Why a load cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepsError {
    /// A task does what no list says.
    Unlisted {
        /// The task.
        task: String,
        /// The operation.
        op: String,
    },
    /// Something other than tasks comes from outside.
    Signals,
    /// It has too many tasks, messages or steps, perhaps endlessly many.
    TooMany,
}

impl fmt::Display for StepsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepsError::Unlisted { task, op } => write!(
                f,
                "task \"{task}\": {op} cannot be done there; leave it out, or take another host"
            ),
            StepsError::Signals => f.write_str("signals from devices cannot be made there"),
            StepsError::TooMany => write!(
                f,
                "there are more than {MOST} tasks, messages or steps of a task; give the load an \
                 end"
            ),
        }
    }
}

impl std::error::Error for StepsError {}

/// What `load` does on a machine of `cpus` CPUs, as a script. Tasks that are bound to none of them
/// may run on all, as elsewhere.
///
/// Errors: it does something that cannot be listed, or too much.
pub fn script(load: Box<dyn Load>, cpus: usize) -> Result<Script, StepsError> {
    let machine = Machine { sizes: load.sizes(), cpus, until: None };
    let mut lister = Lister::new(load, machine);
    lister.see_what_comes(&mut Sent::default())?;
    Ok(lister.end().script)
}

/// One of several machines that send messages to each other.
pub struct Part {
    /// What runs in it.
    pub load: Box<dyn Load>,
    /// How many CPUs it has.
    pub cpus: usize,
    /// When it ends; [`Time::NEVER`]: when all is done.
    pub until: Time,
    /// Where its ports lead: to which part, to which channel of it, and how long messages take.
    /// Others are lost.
    pub ports: Vec<(usize, Channel, Span)>,
}

/// What a machine does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its tasks.
    pub script: Script,
    /// What comes to it from outside.
    pub mail: Vec<Message>,
}

/// What machines do that end at some time, on a host that knows deadlines and messages: what no
/// task can come to by then is left out, so that endless loads can be listed, too.
///
/// Errors: as [`script`], with the number of the part.
pub fn listed(parts: Vec<Part>) -> Result<Vec<Listed>, (usize, StepsError)> {
    let mut ports = Vec::with_capacity(parts.len());
    let mut listers = Vec::with_capacity(parts.len());
    for Part { load, cpus, until, ports: own } in parts {
        let machine = Machine { sizes: load.sizes(), cpus, until: Some(until) };
        listers.push(Lister::new(load, machine));
        ports.push(own);
    }
    for (to, channel, _) in ports.iter().flatten() {
        if let Some(lister) = listers.get_mut(*to) {
            lister.fed.insert(*channel);
        }
    }
    let mut queue = VecDeque::new();
    let pass_on = |from: usize, sent: &mut Sent, queue: &mut VecDeque<_>| {
        for (port, at) in sent.drain(..) {
            if let Some(&(to, channel, delay)) = ports[from].get(port as usize) {
                queue.push_back((to, channel, at + delay));
            }
        }
    };
    let mut sent = Sent::default();
    for (number, lister) in listers.iter_mut().enumerate() {
        lister.see_what_comes(&mut sent).map_err(|error| (number, error))?;
        pass_on(number, &mut sent, &mut queue);
    }
    while let Some((to, channel, at)) = queue.pop_front() {
        let Some(lister) = listers.get_mut(to) else { continue };
        lister.receive(channel, at, &mut sent).map_err(|error| (to, error))?;
        pass_on(to, &mut sent, &mut queue);
    }
    Ok(listers.into_iter().map(Lister::end).collect())
}

/// Messages that were sent, by port, and when.
type Sent = Vec<(u32, Time)>;

/// What machines are about besides tasks.
struct Machine {
    sizes: Sizes,
    cpus: usize,
    /// When the run ends, on hosts that know deadlines and messages.
    until: Option<Time>,
}

/// Why steps cannot be listed.
enum Unlisted {
    Op(Op),
    TooMany,
}

impl Unlisted {
    /// Those of the task of this name.
    fn by(self, task: &str) -> StepsError {
        match self {
            Unlisted::Op(op) => StepsError::Unlisted { task: task.into(), op: format!("{op:?}") },
            Unlisted::TooMany => StepsError::TooMany,
        }
    }
}

impl Machine {
    fn end(&self) -> Time {
        self.until.unwrap_or(Time::NEVER)
    }

    /// How a task is created, as its first steps.
    fn created(&self, new: &NewTask) -> Vec<Step> {
        let nice = (new.nice != 0).then_some(Step::Nice(new.nice));
        let deadline = new.relative_deadline.filter(|_| self.until.is_some());
        let deadline = deadline.map(|deadline| Step::Deadline(deadline.0));
        let cpus = Some(self.bound(&new.affinity)).filter(|step| *step != Step::Cpus(Vec::new()));
        nice.into_iter().chain(deadline).chain(cpus).collect()
    }

    fn bound(&self, affinity: &CpuSet) -> Step {
        let contained = |cpu: &u32| affinity.contains(CpuId(*cpu as u16));
        let cpus: Vec<u32> = (0..self.cpus as u32).filter(contained).collect();
        Step::Cpus(if cpus.len() == self.cpus { Vec::new() } else { cpus })
    }

    /// A step that takes no time of its own; none, for what is not performed.
    fn step(&self, op: Op) -> Result<Option<Step>, Unlisted> {
        Ok(Some(match op {
            Op::Yield => Step::Yield,
            Op::Wait(channel) => Step::Wait(channel.0),
            Op::Signal(channel) | Op::Write(channel) => Step::Post(channel.0),
            Op::Notify(channel) => Step::Notify(channel.0),
            Op::Broadcast(channel) => Step::Broadcast(channel.0),
            Op::Lock(lock) => Step::Lock(lock.0),
            Op::Spin(lock) => Step::Spin(lock.0),
            Op::Unlock(lock) => Step::Unlock(lock.0),
            Op::Meet(barrier) => {
                let tasks = self.sizes.barriers.get(barrier.0 as usize).copied();
                Step::Meet { barrier: barrier.0, tasks: tasks.unwrap_or(1) }
            }
            Op::SetNice(nice) => Step::Nice(nice),
            Op::SetAffinity(affinity) => self.bound(&affinity),
            Op::Reply(way) if self.until.is_some() => Step::Reply(way.0),
            Op::Measure(_) => return Ok(None),
            other => return Err(Unlisted::Op(other)),
        }))
    }
}

/// A machine that is being listed.
struct Lister {
    load: Box<dyn Load>,
    machine: Machine,
    tasks: Vec<Listing>,
    mail: Vec<Message>,
    /// Channels to which messages come from outside.
    inboxes: BTreeSet<Channel>,
    /// Channels to which messages come from other machines.
    fed: BTreeSet<Channel>,
    /// By channel: tasks that wait for a message.
    waiting: BTreeMap<Channel, VecDeque<usize>>,
    /// By channel: messages that nobody has taken, and when they came.
    kept: BTreeMap<Channel, VecDeque<Time>>,
}

/// A task that is being listed.
struct Listing {
    arrival: Time,
    name: String,
    created: Vec<Step>,
    steps: Vec<Step>,
    /// When it can have come so far, with a CPU of its own.
    now: Time,
}

/// Why a task does no more steps.
enum Rest {
    /// It has come to its end, or the run has.
    Ended,
    /// It waits for a message.
    Waits(Channel),
}

impl Lister {
    fn new(load: Box<dyn Load>, machine: Machine) -> Lister {
        Lister {
            inboxes: load.inboxes().into_iter().collect(),
            load,
            machine,
            tasks: Vec::new(),
            mail: Vec::new(),
            fed: BTreeSet::new(),
            waiting: BTreeMap::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Lists what comes by itself.
    fn see_what_comes(&mut self, sent: &mut Sent) -> Result<(), StepsError> {
        loop {
            let at = self.load.peek();
            if at == Time::NEVER || at > self.machine.end() {
                return Ok(());
            }
            if self.tasks.len() == MOST || self.mail.len() == MOST {
                return Err(StepsError::TooMany);
            }
            match self.load.outside() {
                Outside::Arrival(new) => self.create(&new, at, sent)?,
                Outside::Message { channel, sent: since } if self.machine.until.is_some() => {
                    self.answer(channel, since, at, sent)?;
                }
                Outside::Message { .. } | Outside::Signal(_) => return Err(StepsError::Signals),
            }
        }
    }

    fn create(&mut self, new: &NewTask, arrival: Time, sent: &mut Sent) -> Result<(), StepsError> {
        let serial = self.tasks.len();
        let name = format!("{}-{serial}", new.name.as_deref().unwrap_or("task"));
        let (created, steps) = (self.machine.created(new), Vec::new());
        self.load.start(TaskId(serial as u32), arrival);
        self.tasks.push(Listing { arrival, name, created, steps, now: arrival });
        self.go_on(serial, sent)
    }

    /// A task goes on until it waits for a message that has not come.
    fn go_on(&mut self, task: usize, sent: &mut Sent) -> Result<(), StepsError> {
        loop {
            let mut steps = std::mem::take(&mut self.tasks[task].steps);
            let rest = self.steps_of(task, &mut steps, sent);
            self.tasks[task].steps = steps;
            let channel = match rest.map_err(|unlisted| unlisted.by(&self.tasks[task].name))? {
                Rest::Ended => {
                    let Listing { arrival, .. } = self.tasks[task];
                    self.load.exited(TaskId(task as u32), arrival);
                    return Ok(());
                }
                Rest::Waits(channel) => channel,
            };
            let steps = &mut self.tasks[task].steps;
            if self.inboxes.contains(&channel) {
                steps.push(Step::Repeat(u64::MAX, vec![Step::Wait(channel.0)]));
            } else {
                steps.push(Step::Wait(channel.0));
                if let Some(at) = self.kept.get_mut(&channel).and_then(VecDeque::pop_front) {
                    self.tasks[task].now = self.tasks[task].now.max(at);
                    continue;
                }
            }
            self.waiting.entry(channel).or_default().push_back(task);
            return Ok(());
        }
    }

    /// A message comes from another machine.
    fn receive(&mut self, channel: Channel, at: Time, sent: &mut Sent) -> Result<(), StepsError> {
        if at > self.machine.end() {
            return Ok(());
        }
        let Some(task) = self.waiting.get_mut(&channel).and_then(VecDeque::pop_front) else {
            self.kept.entry(channel).or_default().push_back(at);
            return Ok(());
        };
        self.tasks[task].now = self.tasks[task].now.max(at);
        self.go_on(task, sent)
    }

    /// A message comes from outside: lists what one of the tasks that wait for it does about it.
    fn answer(
        &mut self,
        channel: Channel,
        since: Time,
        arrives: Time,
        sent: &mut Sent,
    ) -> Result<(), StepsError> {
        let mut steps = Vec::new();
        if let Some(task) = self.waiting.get_mut(&channel).and_then(VecDeque::pop_front) {
            self.tasks[task].now = arrives;
            let by = |unlisted: Unlisted, lister: &Lister| unlisted.by(&lister.tasks[task].name);
            match self.steps_of(task, &mut steps, sent).map_err(|error| by(error, self))? {
                Rest::Waits(next) if next == channel => {}
                Rest::Waits(next) => return Err(by(Unlisted::Op(Op::Wait(next)), self)),
                // Later than the run.
                Rest::Ended if self.tasks[task].now > self.machine.end() => {}
                Rest::Ended => return Err(by(Unlisted::Op(Op::Exit), self)),
            }
            self.waiting.entry(channel).or_default().push_back(task);
        }
        let (arrives, since, channel) = (arrives.0, since.0, channel.0);
        self.mail.push(Message { arrives, sent: since, channel, steps: folded(&steps) });
        Ok(())
    }

    /// What a task does until it waits for a message, as if it had a CPU of its own and nothing
    /// else to wait for.
    fn steps_of(
        &mut self,
        number: usize,
        steps: &mut Vec<Step>,
        sent: &mut Sent,
    ) -> Result<Rest, Unlisted> {
        let (load, machine, task) = (&mut self.load, &self.machine, TaskId(number as u32));
        let now = &mut self.tasks[number].now;
        while steps.len() < MOST {
            if *now > machine.end() {
                return Ok(Rest::Ended);
            }
            // More than it has until the end.
            let most = Span(machine.end().since(*now).0.saturating_add(1));
            match load.step(task, *now) {
                Op::Run(span) => {
                    let span = span.min(most);
                    *now += span;
                    steps.push(Step::Compute(span.0));
                }
                Op::Sleep(span) => {
                    let span = span.min(most);
                    *now += span;
                    steps.push(Step::Sleep(span.0));
                }
                // Alone, a task comes to it earlier than among others.
                Op::Release { at, .. } if load.rests(task) => {
                    steps.push(Step::Sleep(at.since(*now).0));
                    *now = (*now).max(at);
                }
                Op::Release { at, .. } => {
                    *now = (*now).max(at);
                    steps.push(Step::Until(at.0));
                }
                Op::Wait(channel)
                    if self.inboxes.contains(&channel) || self.fed.contains(&channel) =>
                {
                    return Ok(Rest::Waits(channel));
                }
                Op::Send(port) if machine.until.is_some() => {
                    sent.push((port.0, *now));
                    steps.push(Step::Send(port.0));
                }
                Op::Exit => return Ok(Rest::Ended),
                other => steps.extend(machine.step(other)?),
            }
        }
        Err(Unlisted::TooMany)
    }

    /// What was listed.
    fn end(self) -> Listed {
        let task = |Listing { arrival, name, created, steps, .. }: Listing| Task {
            arrival: arrival.0,
            name,
            steps: [created, folded(&steps)].concat(),
        };
        let script = Script { tasks: self.tasks.into_iter().map(task).collect() };
        Listed { script, mail: self.mail }
    }
}

/// `steps`, with repeated ones only once.
fn folded(steps: &[Step]) -> Vec<Step> {
    let mut folded = Vec::new();
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let times = |period: usize| {
            let (block, after) = rest.split_at_checked(period).unwrap_or((rest, &[]));
            1 + after.chunks_exact(period).take_while(|next| *next == block).count()
        };
        let found = (1..=LONGEST_ROUND).map(|period| (period, times(period)));
        let Some((period, times)) = found.into_iter().find(|(_, times)| *times > 1) else {
            folded.push(first.clone());
            rest = &rest[1..];
            continue;
        };
        folded.push(Step::Repeat(times as u64, rest[..period].to_vec()));
        rest = &rest[period * times..];
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Dist;
    use crate::generate::{Echo, Generator, Ping, Service, Settings};
    use crate::model::{self, Model, ModelTask};
    use crate::{Barrier, Lock, Port};
    use std::path::Path;
    use std::sync::Arc;

    fn model(ops: &[Op], rounds: u64) -> Box<dyn Load> {
        let ops = ops.to_vec();
        let script = Arc::new(model::Script { ops, rounds, ..model::Script::default() });
        let task = |name: &str, arrives| ModelTask {
            new: NewTask { name: Some(name.into()), ..NewTask::default() },
            arrives: Some(Time(arrives)),
            script: script.clone(),
        };
        let tasks = vec![task("a", 0), task("b c", 7)];
        let sizes = Sizes { channels: 1, ..Sizes::default() };
        Box::new(Model { tasks, sizes, ..Model::default() }.into_load().unwrap())
    }

    fn part(load: Box<dyn Load>, until: Time) -> Part {
        Part { load, cpus: 1, until, ports: Vec::new() }
    }

    fn alone(load: Box<dyn Load>, until: Time) -> Script {
        listed(vec![part(load, until)]).unwrap().swap_remove(0).script
    }

    #[test]
    fn what_tasks_do_is_listed_and_repetitions_are_short() {
        let (run, sleep) = (Op::Run(Span(5)), Op::Sleep(Span(3)));
        let text = |ops: &[Op], rounds| script(model(ops, rounds), 1).unwrap().write().unwrap();
        assert_eq!(
            text(&[run.clone(), sleep], 1),
            "anysched-script 1\n0 a-0 c5 s3\n7 b\\sc-1 c5 s3\n"
        );
        let listed = text(&[run.clone(), Op::Yield], 1000);
        assert_eq!(listed.lines().nth(1), Some("0 a-0 r1000 c5 y e"));
        let listed = text(&[run, Op::Yield, Op::Yield], 2);
        assert_eq!(listed.lines().nth(1), Some("0 a-0 r2 c5 y y e"));
    }

    #[test]
    fn tasks_among_others_are_listed() {
        let cpus = |list| Op::SetAffinity(CpuSet::parse(list).unwrap());
        let ops = [
            Op::SetNice(-3),
            cpus("1-2"),
            cpus("0-3"),
            Op::Wait(Channel(1)),
            Op::Signal(Channel(0)),
            Op::Write(Channel(0)),
            Op::Notify(Channel(0)),
            Op::Broadcast(Channel(0)),
            Op::Lock(Lock(0)),
            Op::Spin(Lock(1)),
            Op::Unlock(Lock(0)),
            Op::Meet(Barrier(0)),
            cpus("7"),
        ];
        let sizes = Sizes { channels: 2, locks: 2, barriers: vec![2] };
        let ops = Arc::new(model::Script::once(ops.to_vec()));
        let new = NewTask { nice: 5, affinity: CpuSet::parse("3").unwrap(), ..NewTask::default() };
        let task = ModelTask { new, arrives: Some(Time(0)), script: ops };
        let load = Model { tasks: vec![task], sizes, ..Model::default() }.into_load().unwrap();
        let listed = script(Box::new(load), 4).unwrap().write().unwrap();
        let expected = "0 task-0 i5 a3 i-3 a1,2 a w1 r2 p0 e n0 b0 l0 x1 o0 m0:2 a";
        assert_eq!(listed.lines().nth(1), Some(expected));
    }

    #[test]
    fn an_endless_load_is_listed_up_to_the_end_of_a_run() {
        let ops = [Op::Run(Span(5)), Op::Sleep(Span(4))];
        let text = |until, rounds| alone(model(&ops, rounds), Time(until)).write().unwrap();
        // The second task arrives at 7. At 10 the first is in its second round, and goes on by a
        // nanosecond more than it can.
        assert_eq!(text(10, u64::MAX), "anysched-script 1\n0 a-0 c5 s4 c2\n7 b\\sc-1 c4\n");
        assert_eq!(text(6, u64::MAX), "anysched-script 1\n0 a-0 c5 s2\n");
        assert_eq!(text(1000, 1), script(model(&ops, 1), 1).unwrap().write().unwrap());
    }

    #[test]
    fn deadlines_are_listed_where_they_are_known() {
        let script_of = Arc::new(model::Script::once(vec![Op::Run(Span(5))]));
        let new = NewTask { relative_deadline: Some(Span(9)), ..NewTask::default() };
        let task = ModelTask { new, arrives: Some(Time(0)), script: script_of };
        let model = Model { tasks: vec![task], ..Model::default() };
        let load = || Box::new(model.clone().into_load().unwrap());
        let line = |script: Script| script.write().unwrap().lines().nth(1).map(String::from);
        assert_eq!(line(alone(load(), Time::NEVER)).as_deref(), Some("0 task-0 d9 c5"));
        assert_eq!(line(script(load(), 1).unwrap()).as_deref(), Some("0 task-0 c5"));
    }

    #[test]
    fn machines_get_as_many_messages_as_are_sent_to_them() {
        let run = |span: u64| Dist::constant(Span(span));
        let ping = |pings| Ping {
            settings: Settings::default(),
            every: Span(100),
            offset: run(20),
            work: run(5),
            pings,
            port: Port(0),
        };
        let echo = Echo { settings: Settings::default(), work: run(7), port: Port(0) };
        let lines = |pings, until| {
            let mut asker = part(ping(pings).build(1, 1).unwrap(), Time(until));
            asker.ports = vec![(1, Channel(0), Span(10))];
            let mut asked = part(echo.build(1, 1).unwrap(), Time(until));
            asked.ports = vec![(0, Channel(0), Span(10))];
            let machines = listed(vec![asker, asked]).unwrap();
            let line =
                |machine: &Listed| machine.script.write().unwrap().lines().nth(1).map(String::from);
            [line(&machines[0]).unwrap(), line(&machines[1]).unwrap()]
        };
        // After the answer to the second, which comes at 152, the third is later than the end.
        let [asker, asked] = lines(None, 200);
        assert_eq!(asker, "0 task-0 u20 c5 t0 w0 c5 q0 u120 c5 t0 w0 c5 q0 u220");
        assert_eq!(asked, "0 task-0 r2 w0 c7 t0 e w0");
        let [asker, asked] = lines(Some(1), u64::MAX);
        assert_eq!(asker, "0 task-0 u20 c5 t0 w0 c5 q0");
        assert_eq!(asked, "0 task-0 w0 c7 t0 w0");
        // The answer to the second is not sent by 140.
        assert_eq!(lines(None, 140)[1], "0 task-0 w0 c7 t0 w0 c6");
    }

    #[test]
    fn messages_from_outside_bring_what_is_done_about_them() {
        let service = Service {
            settings: Settings::default(),
            servers: 2,
            gaps: Dist::constant(Span(100)),
            service: Dist::parse("uniform(1ns, 50ns)", Path::new("")).unwrap(),
            hop: Span(10),
            requests: Some(3),
            until: None,
        };
        let load = service.build(7, 1).unwrap();
        assert_eq!(load.inboxes(), [Channel(0)]);
        let listed = listed(vec![part(load, Time(320))]).unwrap().swap_remove(0);
        let script = listed.script.write().unwrap();
        let server = format!("r{} w0 e", u64::MAX);
        assert_eq!(script, format!("anysched-script 1\n0 task-0 {server}\n0 task-1 {server}\n"));
        // The same as if it were asked in that order.
        let mut load = service.build(7, 1).unwrap();
        load.outside();
        load.start(TaskId(0), Time::ZERO);
        for (number, message) in listed.mail.iter().enumerate() {
            let sent = (number as u64 + 1) * 100;
            assert_eq!((message.sent, message.arrives, message.channel), (sent, sent + 10, 0));
            load.step(TaskId(0), Time::ZERO);
            let Op::Run(work) = load.step(TaskId(0), Time::ZERO) else { panic!("it works") };
            // The last is cut off at the end.
            let work = if number == 2 { work.0.min(11) } else { work.0 };
            let mut steps = vec![Step::Compute(work)];
            if number < 2 || work < 11 {
                steps.push(Step::Reply(10));
            }
            assert_eq!(message.steps, steps);
            load.step(TaskId(0), Time::ZERO);
        }
        assert_eq!(listed.mail.len(), 3);
    }

    #[test]
    fn what_cannot_be_listed_is_refused() {
        let spawns =
            script(model(&[Op::Run(Span(1)), Op::Spawn(1)], 1), 1).unwrap_err().to_string();
        assert_eq!(
            spawns,
            "task \"a-0\": Spawn(1) cannot be done there; leave it out, or take another host"
        );
        let endless = script(model(&[Op::Run(Span(1))], u64::MAX), 1);
        assert_eq!(endless, Err(StepsError::TooMany));
    }
}
