//! Calls of a policy told as an experiment: what tasks came when, for how long each ran, when it
//! slept. The simulator is a host that serves a kick at once and ticks where the machine says so;
//! what another host did beyond that has no words in an experiment, and is listed.

use crate::shrink::calls::Sequence;
use crate::shrink::case::{Case, list_node, table_node, text_node, whole_node};
use crate::shrink::fails::{Fails, Failure};
use crate::spec::experiment::Experiment;
use crate::spec::tree::{Node, Value};
use anysched_core::call::Call;
use anysched_core::params::NICE_WEIGHTS;
use anysched_core::recorder::LogReader;
use anysched_core::{CpuId, Enqueue, Machine, Off, Span, TaskId, TaskParams, Time};
use anysched_host::Host;
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Channel, NewTask, Op};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// An experiment that tells what calls tell.
#[derive(Clone, Debug)]
pub struct Told {
    /// The experiment, in TOML.
    pub toml: String,
    /// The model that it names, if it names one: the file's name, and what is in it.
    pub model: Option<(String, String)>,
    /// What has no words in an experiment, each once.
    pub unsaid: Vec<String>,
    /// How it breaks the contract when it is run, if it does.
    pub failure: Option<Failure>,
}

/// So long a task runs that has not stopped at the end.
const ON: Span = Span::from_ms(10);

/// Tells a log as an experiment called `name`, and runs that on `host`.
///
/// Errors: the log cannot be read, or its policy is not here.
pub fn told(log: &[u8], name: &str, host: &dyn Host) -> Result<Told, String> {
    LogReader::new(log).map_err(|error| error.to_string())?;
    let sequence = Sequence::read(log)?;
    let mut teller = Teller::default();
    teller.tell(&sequence);
    let case = teller.case(&sequence, name);
    let (toml, model) = case.written();
    let mut unsaid = teller.unsaid;
    if sequence.machine != flat(&sequence.machine) {
        unsaid.push("CPUs that share caches, or differ in speed".into());
    }
    let file = PathBuf::from(format!("{name}.toml"));
    let mut experiment = Experiment::parse(&toml, &file).map_err(|error| error.to_plain())?;
    if let Some(bytes) = &model {
        experiment = experiment.with_file(&case.model_name(), bytes);
    }
    let failure = super::failure(&experiment, host, &Fails::Contract);
    let model =
        model.map(|bytes| (case.model_name(), String::from_utf8_lossy(&bytes).into_owned()));
    let failure = failure.map_err(|error| error.to_string())?;
    let toml = match (&failure, unsaid.is_empty()) {
        (Some(failure), true) => format!("# In the simulator: {}.\n\n{toml}", failure.what),
        (Some(failure), false) => format!(
            "# In the simulator: {}.\n# Left out: {}.\n\n{toml}",
            failure.what,
            unsaid.join("; ")
        ),
        (None, true) => format!("# In the simulator the contract is not broken.\n\n{toml}"),
        (None, false) => format!(
            "# In the simulator the contract is not broken. What an experiment has no words for:\n\
             # {}.\n\n{toml}",
            unsaid.join(";\n# ")
        ),
    };
    Ok(Told { toml, model, unsaid, failure })
}

/// As many CPUs that share nothing.
fn flat(machine: &Machine) -> Machine {
    let flat = Machine::flat(machine.cpus()).unwrap_or_else(|_| machine.clone());
    flat.with_tick(machine.tick())
}

/// A task as it has been told so far.
struct Telling {
    /// Its place in the model.
    place: usize,
    params: TaskParams,
    /// CPU time since it last did something else.
    run: Span,
    /// When it was last charged, if it runs.
    charged: Option<Time>,
    /// CPU time that has been told and will be charged.
    ahead: Span,
    /// When it blocked, if it is blocked.
    slept: Option<Time>,
}

#[derive(Default)]
struct Teller {
    model: Model,
    tasks: BTreeMap<TaskId, Telling>,
    /// What each task of the model does.
    ops: Vec<Vec<Op>>,
    hotplug: Vec<(Time, CpuId, bool)>,
    unsaid: Vec<String>,
    /// CPUs whose task was put back, and when: they are to pick.
    owed: BTreeMap<CpuId, Time>,
    /// CPUs out of use.
    out: Vec<CpuId>,
    now: Time,
}

impl Teller {
    fn tell(&mut self, sequence: &Sequence) {
        let answers = sequence.answers.iter().flatten().map(Some).chain(std::iter::repeat(None));
        for ((now, call), answer) in sequence.calls.iter().zip(answers) {
            self.now = *now;
            let late: Vec<CpuId> = self
                .owed
                .iter()
                .filter(|(cpu, since)| **since < *now && !self.out.contains(cpu))
                .map(|(cpu, _)| *cpu)
                .collect();
            for cpu in late {
                self.owed.remove(&cpu);
                self.leave_out(format!("CPU {} picks later than its task was put back", cpu.0));
            }
            self.call(call);
            let picked = answer.and_then(|answer| answer.pick);
            if let Some(telling) = picked.and_then(|pick| self.tasks.get_mut(&pick.task)) {
                telling.charged = Some(*now);
            }
        }
        let tasks: Vec<TaskId> = self.tasks.keys().copied().collect();
        for task in tasks {
            self.end(task);
        }
    }

    fn leave_out(&mut self, what: String) {
        if !self.unsaid.contains(&what) {
            self.unsaid.push(what);
        }
    }

    fn call(&mut self, call: &Call<'static>) {
        match call {
            Call::Attach { task, params } => self.create(*task, params),
            Call::Detach { task } => drop(self.tasks.remove(task)),
            Call::Update { task, params } => self.update(*task, params),
            Call::SetDomain { domain, .. } => {
                self.leave_out(format!("the weight or cap of domain {}", domain.0));
            }
            Call::SetParam { name, .. } => self.leave_out(format!("parameter {name} changes")),
            Call::SetOnline { cpu, online } => {
                self.hotplug.push((self.now, *cpu, *online));
                self.out.retain(|out| out != cpu);
                if !online {
                    self.out.push(*cpu);
                }
            }
            Call::Enqueue { task, arrival } => self.enqueue(*task, arrival.why, arrival.from),
            Call::Dequeue { task } => {
                self.leave_out(format!("task {} is taken out for a moment", task.0));
            }
            Call::PickNext { cpu } => drop(self.owed.remove(cpu)),
            Call::PutPrev { cpu, task, ran, why } => {
                self.charge(*task, *ran);
                self.owed.insert(*cpu, self.now);
                self.leave(*task, *why);
            }
            Call::Tick { cpu, task, ran } => {
                self.charge(*task, *ran);
                if let Some(telling) = self.tasks.get_mut(task) {
                    telling.charged = Some(self.now);
                }
                self.leave_out(format!("a tick on CPU {} at {}", cpu.0, Span(self.now.0)));
            }
            Call::Timer => {}
        }
    }

    fn create(&mut self, task: TaskId, params: &TaskParams) {
        let nice = NICE_WEIGHTS.iter().position(|weight| *weight == params.weight);
        if nice.is_none() {
            self.leave_out(format!("weight {} of task {}", params.weight, task.0));
        }
        let new = NewTask {
            nice: nice.map_or(0, |place| place as i8 - 20),
            affinity: params.affinity.clone(),
            domain: params.domain,
            priority: params.priority,
            period: params.period,
            budget: params.budget,
            relative_deadline: params.relative_deadline,
            key: params.key,
            intensity: params.intensity,
            ..NewTask::default()
        };
        let place = self.model.tasks.len();
        let arrives = Some(self.now);
        self.model.tasks.push(ModelTask { new, arrives, script: Arc::default() });
        self.ops.push(Vec::new());
        let params = params.clone();
        let (run, ahead) = (Span::ZERO, Span::ZERO);
        let telling = Telling { place, params, run, charged: None, ahead, slept: None };
        self.tasks.insert(task, telling);
    }

    fn enqueue(&mut self, task: TaskId, why: Enqueue, from: Option<CpuId>) {
        let (now, mut by) = (self.now, None);
        let Some(telling) = self.tasks.get_mut(&task) else { return };
        let place = telling.place;
        match why {
            Enqueue::New => by = Some("created"),
            Enqueue::Wakeup { sync, .. } => {
                by = Some(if sync { "woken in sync" } else { "woken" });
                if let Some(since) = telling.slept.take() {
                    self.ops[place].push(Op::Sleep(now.since(since)));
                }
            }
            Enqueue::Resumed { .. } => {}
        }
        if let (Some(by), Some(cpu)) = (by, from) {
            self.leave_out(format!("task {} is {by} by the task on CPU {}", task.0, cpu.0));
        }
    }

    fn charge(&mut self, task: TaskId, ran: Span) {
        if let Some(telling) = self.tasks.get_mut(&task) {
            let new = ran.saturating_sub(telling.ahead);
            telling.ahead = telling.ahead.saturating_sub(ran);
            telling.run += new;
        }
    }

    /// Tells the CPU time that a task has used.
    fn run(&mut self, task: TaskId) {
        if let Some(telling) = self.tasks.get_mut(&task) {
            let run = std::mem::take(&mut telling.run);
            if run > Span::ZERO {
                self.ops[telling.place].push(Op::Run(run));
            }
        }
    }

    fn leave(&mut self, task: TaskId, why: Off) {
        match why {
            Off::Expired | Off::Preempted => {}
            Off::NotRun => self.leave_out(format!("task {} is picked and not started", task.0)),
            Off::Yielded => {
                self.run(task);
                if let Some(telling) = self.tasks.get(&task) {
                    self.ops[telling.place].push(Op::Yield);
                }
            }
            Off::Blocked => {
                self.run(task);
                if let Some(telling) = self.tasks.get_mut(&task) {
                    telling.slept = Some(self.now);
                }
            }
            Off::Exited => {
                self.run(task);
                self.finish(task);
            }
        }
        if let Some(telling) = self.tasks.get_mut(&task) {
            telling.charged = None;
        }
    }

    fn update(&mut self, task: TaskId, params: &TaskParams) {
        let now = self.now;
        let Some(telling) = self.tasks.get_mut(&task) else { return };
        let before = std::mem::replace(&mut telling.params, params.clone());
        let (place, charged) = (telling.place, telling.charged);
        let Some(since) = charged else {
            let what = if before.affinity != params.affinity { "affinity" } else { "weight" };
            return self.leave_out(format!("the {what} of task {} changes while it waits", task.0));
        };
        // Until now it ran, which it will be charged for.
        let passed = now.since(since).saturating_sub(telling.ahead);
        telling.run += passed;
        telling.ahead += passed;
        self.run(task);
        if before.affinity != params.affinity {
            self.ops[place].push(Op::SetAffinity(params.affinity.clone()));
        }
        if before.weight != params.weight
            && let Some(nice) = NICE_WEIGHTS.iter().position(|weight| *weight == params.weight)
        {
            self.ops[place].push(Op::SetNice(nice as i8 - 20));
        }
    }

    /// What a task is still about to do.
    fn end(&mut self, task: TaskId) {
        let Some(telling) = self.tasks.get_mut(&task) else { return };
        match telling.slept {
            Some(_) => {
                self.model.sizes.channels = 1;
                self.ops[telling.place].push(Op::Wait(Channel(0)));
            }
            None => {
                telling.run += ON;
                self.run(task);
            }
        }
        self.finish(task);
    }

    fn finish(&mut self, task: TaskId) {
        if let Some(telling) = self.tasks.get(&task) {
            let ops = std::mem::take(&mut self.ops[telling.place]);
            self.model.tasks[telling.place].script = Arc::new(Script::once(ops));
        }
    }

    fn case(&self, sequence: &Sequence, name: &str) -> Case {
        let text = |text: String| text_node(text);
        let mut policy = table_node([("name", text_node(sequence.policy.name))]);
        if let Value::Table(table) = &mut policy.value {
            for (name, value) in &sequence.settings {
                table.set(name, &(0..0), text_node(value.as_str()));
            }
        }
        let cpus = sequence.machine.cpus() as i64;
        let mut machine = vec![("cpus", whole_node(cpus))];
        if let Some(tick) = sequence.machine.tick() {
            machine.push(("tick", text(tick.to_string())));
        }
        let moment = |(at, cpu, online): &(Time, CpuId, bool)| {
            table_node([
                ("at", text(at.since(Time::ZERO).to_string())),
                ("cpu", whole_node(cpu.0.into())),
                ("online", Node { value: Value::Flag(*online), at: 0..0 }),
            ])
        };
        if !self.hotplug.is_empty() {
            machine.push(("hotplug", list_node(self.hotplug.iter().map(moment).collect())));
        }
        let root = table_node([
            ("question", text_node("Is the contract of policies kept?")),
            ("policy", list_node(vec![policy])),
            ("duration", text_node("1s")),
            ("machine", table_node(machine)),
        ]);
        Case { name: name.into(), root, model: Some(self.model.clone()) }
    }
}
