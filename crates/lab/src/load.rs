//! `[[workload]]`: what tasks there are.

mod benchmark;

use crate::error::Fault;
use crate::fields::{self, Fields, hint};
use crate::files::Files;
use crate::tree::{Node, Value};
use crate::vm::Pinged;
use anysched_core::{CpuId, CpuSet, DomainId, Span, Time};
use anysched_workload::dist::Dist;
use anysched_workload::generate::{
    Arrivals, Batch, Closed, Echo, Generator, Hog, Interactive, Open, Parallel, Periodic, Ping,
    Service, SettingError, Settings, TaskSet,
};
use anysched_workload::import::{ftrace, rtapp, swf};
use anysched_workload::mix::Mix;
use anysched_workload::model::Model;
use anysched_workload::rng;
use anysched_workload::tasks_csv::TaskList;
use anysched_workload::{Load, Op, Port};
use std::sync::Arc;

/// The loads of a group of rows, checked. What they read from files is shared by all runs.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    parts: Vec<Part>,
    cpus: usize,
    /// In words, one each.
    pub(crate) words: Vec<String>,
    /// The latest end that one of the files states.
    pub(crate) until: Option<Time>,
    /// Where the first load is written that never ends.
    pub(crate) endless: Option<std::ops::Range<usize>>,
    /// What other virtual machines have to answer.
    pub(crate) pinged: Vec<Pinged>,
}

#[derive(Clone, Debug)]
enum Part {
    Generated(Arc<dyn Generator>),
    Ping(Ping),
    Tasks(Arc<TaskList>),
    Model(Arc<Model>),
}

/// A kind of load.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadKind {
    /// What `kind` is.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    own: &'static [&'static str],
    /// Whether it is generated, and so has the keys of [`COMMON`] too.
    generated: bool,
}

impl WorkloadKind {
    /// The keys that it takes besides `kind`.
    pub fn keys(&self) -> Vec<&'static str> {
        [self.own, if self.generated { &COMMON } else { &[] }].concat()
    }
}

const COMMON: [&str; 7] = ["name", "nice", "priority", "affinity", "domain", "deadline", "key"];

/// All kinds of load that an experiment can have.
pub fn workload_kinds() -> &'static [WorkloadKind] {
    &KINDS
}

static KINDS: [WorkloadKind; 20] = [
    WorkloadKind {
        name: "batch",
        summary: "Tasks that are all there at once",
        own: &["tasks", "service", "at"],
        generated: true,
    },
    WorkloadKind {
        name: "open",
        summary: "Tasks that arrive one after another, whatever has become of those before",
        own: &["tasks", "service", "load", "rate", "interarrival", "start", "until"],
        generated: true,
    },
    WorkloadKind {
        name: "closed-loop",
        summary: "Clients that wait for the answer before they ask again",
        own: &["clients", "requests", "service", "think", "until"],
        generated: true,
    },
    WorkloadKind {
        name: "periodic",
        summary: "Tasks that are released once per period",
        own: &["tasks", "period", "run", "budget", "offset", "jitter", "jobs", "until"],
        generated: true,
    },
    WorkloadKind {
        name: "task-set",
        summary: "Periodic tasks with random periods and utilisations of a given sum",
        own: &["tasks", "load", "periods", "period_step", "offset", "jitter", "jobs", "until"],
        generated: true,
    },
    WorkloadKind {
        name: "interactive",
        summary: "Tasks that run and sleep in turn",
        own: &["tasks", "run", "sleep", "offset", "until"],
        generated: true,
    },
    WorkloadKind {
        name: "hog",
        summary: "Tasks that use all the CPU time they get",
        own: &["tasks", "offset", "until", "check"],
        generated: true,
    },
    WorkloadKind {
        name: "service",
        summary: "Requests from elsewhere, and tasks that answer them",
        own: &["servers", "rate", "interarrival", "service", "hop", "requests", "until"],
        generated: true,
    },
    WorkloadKind {
        name: "ping",
        summary: "A task that asks another virtual machine at fixed times",
        own: &["to", "every", "offset", "work", "answer", "hop", "pings"],
        generated: true,
    },
    WorkloadKind {
        name: "parallel",
        summary: "Tasks that compute and meet at a barrier, perhaps with a lock that they need",
        own: &["tasks", "run", "rounds", "locked", "spin"],
        generated: true,
    },
    WorkloadKind {
        name: "interbench",
        summary: "Interbench: is a task of a desktop on time beside a background load?",
        own: &[
            "task",
            "against",
            "burners",
            "load_nice",
            "custom_run",
            "custom_interval",
            "pause",
            "duration",
        ],
        generated: true,
    },
    WorkloadKind {
        name: "cyclictest",
        summary: "cyclictest: how late do threads wake up that sleep until fixed times?",
        own: &["threads", "interval", "distance", "loops", "duration"],
        generated: true,
    },
    WorkloadKind {
        name: "schbench",
        summary: "schbench: how long do workers wait that are woken in batches?",
        own: &["message_threads", "workers", "sleep", "work", "duration"],
        generated: true,
    },
    WorkloadKind {
        name: "hackbench",
        summary: "hackbench: how long do many tasks take to send each other messages?",
        own: &["groups", "fds", "loops", "send", "receive", "buffer"],
        generated: true,
    },
    WorkloadKind {
        name: "arceos-test",
        summary: "The scheduler tests of ArceOS: tasks compute, yield, and do it again",
        own: &["case", "threads", "groups", "iterations", "iteration", "duration"],
        generated: true,
    },
    WorkloadKind {
        name: "tasks",
        summary: "A list of tasks as CSV: when each arrives and how long it runs",
        own: &["file"],
        generated: false,
    },
    WorkloadKind {
        name: "trace",
        summary: "A recording of the Linux scheduler: ftrace, trace-cmd or perf script",
        own: &["file", "softirqs"],
        generated: false,
    },
    WorkloadKind { name: "rt-app", summary: "A file of rt-app", own: &["file"], generated: false },
    WorkloadKind {
        name: "swf",
        summary: "A job log in the Standard Workload Format",
        own: &["file", "processors"],
        generated: false,
    },
    WorkloadKind {
        name: "model",
        summary: "An explicit model as JSON: every task with what it does",
        own: &["file"],
        generated: false,
    },
];

impl Loads {
    /// Reads the list of loads for a machine of `cpus` CPUs.
    pub(crate) fn read(list: &Node, cpus: usize, files: &mut Files) -> Result<Loads, Fault> {
        let nodes = list.as_list().filter(|list| !list.is_empty()).ok_or_else(|| {
            Fault::at(&list.at, format!("`workload` is a list of tables, not {}", list.shown()))
                .help("each begins with a line `[[workload]]`")
        })?;
        let mut loads = Loads::none(cpus);
        for node in nodes {
            let part = read_part(node, cpus, files, &mut loads)?;
            let goes_on = match &part {
                Part::Generated(generator) => generator.endless(),
                Part::Ping(ping) => ping.endless(),
                Part::Tasks(_) => false,
                Part::Model(model) => {
                    loads.until = loads.until.max(model.until);
                    model.until.is_none() && is_endless(model)
                }
            };
            if goes_on && loads.endless.is_none() {
                loads.endless = Some(node.at.clone());
            }
            loads.parts.push(part);
            loads.words.push(in_words(node));
        }
        Ok(loads)
    }

    /// No load on a machine of `cpus` CPUs.
    pub(crate) fn none(cpus: usize) -> Loads {
        let (parts, words, pinged) = Default::default();
        Loads { parts, cpus, words, until: None, endless: None, pinged }
    }

    /// Adds a load that no file has, and returns its position.
    pub(crate) fn add(&mut self, generator: Arc<dyn Generator>) -> usize {
        self.parts.push(Part::Generated(generator));
        self.parts.len() - 1
    }

    /// Says through which port the load at position `part` pings.
    pub(crate) fn set_port(&mut self, part: usize, port: Port) {
        if let Part::Ping(ping) = &mut self.parts[part] {
            ping.port = port;
        }
    }

    /// The load as the run with this seed has it.
    ///
    /// Errors: one of the loads is refused after all.
    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Load>, String> {
        self.build_with_channels(seed).map(|(load, _)| load)
    }

    /// The same, and what is added to the numbers of the channels of each of the loads.
    ///
    /// Errors: as [`Loads::build`].
    pub(crate) fn build_with_channels(
        &self,
        seed: u64,
    ) -> Result<(Box<dyn Load>, Vec<u32>), String> {
        let build = |(number, part): (usize, &Part)| -> Result<Box<dyn Load>, String> {
            let seed = rng::derive(seed, &format!("workload.{number}"));
            Ok(match part {
                Part::Generated(generator) => {
                    generator.build(seed, self.cpus).map_err(|error| error.to_string())?
                }
                Part::Ping(ping) => {
                    ping.build(seed, self.cpus).map_err(|error| error.to_string())?
                }
                Part::Tasks(tasks) => Box::new(TaskList::clone(tasks).into_load()),
                Part::Model(model) => {
                    let load = Model::clone(model).into_load();
                    Box::new(load.map_err(|error| error.to_string())?)
                }
            })
        };
        let mut loads: Vec<Box<dyn Load>> =
            self.parts.iter().enumerate().map(build).collect::<Result<_, _>>()?;
        if loads.len() == 1 {
            return Ok((loads.remove(0), vec![0]));
        }
        let mix = Mix::new(loads);
        let channels = mix.first_channels();
        Ok((Box::new(mix), channels))
    }
}

fn is_endless(model: &Model) -> bool {
    let scripts = model.tasks.iter().map(|task| &task.script);
    scripts.into_iter().any(|s| s.rounds == u64::MAX && s.repeat_from < s.ops.len())
}

/// `batch: tasks 500, service exp(10ms)`.
fn in_words(node: &Node) -> String {
    let entries = node.as_table().map_or(&[][..], |table| &table.0);
    let word = |value: &Node| match &value.value {
        Value::Text(text) => text.clone(),
        _ => value.to_string(),
    };
    let kind = entries.iter().find(|entry| entry.key == "kind");
    let others: Vec<String> = entries
        .iter()
        .filter(|entry| entry.key != "kind")
        .map(|entry| format!("{} {}", entry.key, word(&entry.node)))
        .collect();
    format!("{}: {}", kind.map_or(String::new(), |kind| word(&kind.node)), others.join(", "))
}

/// The name in [`KINDS`] that `text` means.
fn canonical_kind(text: &str) -> String {
    let kind = text.trim().to_lowercase().replace([' ', '_'], "-");
    match kind.as_str() {
        "closed-batch" => "batch".to_string(),
        "closed" => "closed-loop".to_string(),
        "poisson" => "open".to_string(),
        "rtapp" => "rt-app".to_string(),
        _ => kind,
    }
}

fn read_part(
    node: &Node,
    cpus: usize,
    files: &mut Files,
    loads: &mut Loads,
) -> Result<Part, Fault> {
    let Some(table) = node.as_table() else {
        return Err(Fault::at(&node.at, format!("a load is a table, not {}", node.shown())));
    };
    let Some(kind_node) = table.get("kind") else {
        return Err(Fault::at(&node.at, "a load has no `kind`")
            .help(hint("", KINDS.iter().map(|kind| kind.name))));
    };
    let text = fields::text(kind_node, "kind")?;
    let kind = canonical_kind(text);
    let Some(known) = KINDS.iter().find(|known| known.name == kind) else {
        return Err(Fault::at(&kind_node.at, format!("no kind of load is called \"{text}\""))
            .label("unknown kind")
            .help(hint(&kind, KINDS.iter().map(|kind| kind.name))));
    };
    let mut keys = known.keys();
    keys.push("kind");
    let what = format!("a load of kind \"{kind}\"");
    let reader = Reader { fields: Fields::of(node, &what, &keys)?, node, files };
    match kind.as_str() {
        "batch" => reader.batch(cpus),
        "open" => reader.open(cpus),
        "closed-loop" => reader.closed_loop(cpus),
        "periodic" => reader.periodic(cpus),
        "task-set" => reader.task_set(cpus),
        "interactive" => reader.interactive(cpus),
        "hog" => reader.hog(cpus),
        "service" => reader.service(cpus),
        "ping" => reader.ping(cpus, loads),
        "parallel" => reader.parallel(cpus),
        "interbench" => reader.interbench(cpus),
        "cyclictest" => reader.cyclictest(cpus),
        "schbench" => reader.schbench(cpus),
        "hackbench" => reader.hackbench(cpus),
        "arceos-test" => reader.arceos_test(cpus),
        "tasks" => reader.tasks(cpus),
        _ => reader.model(&kind, cpus),
    }
}

/// Whether a machine of `cpus` CPUs has none of these.
fn is_elsewhere(affinity: &CpuSet, cpus: usize) -> bool {
    !(0..cpus).any(|cpu| affinity.contains(CpuId(cpu as u16)))
}

struct Reader<'a> {
    fields: Fields<'a>,
    node: &'a Node,
    files: &'a mut Files,
}

impl Reader<'_> {
    fn generated(&self, generator: impl Generator + 'static, cpus: usize) -> Result<Part, Fault> {
        generator.validate(cpus).map_err(|error| self.fault(&error))?;
        Ok(Part::Generated(Arc::new(generator)))
    }

    fn fault(&self, error: &SettingError) -> Fault {
        let at = self.fields.get(error.key).map_or(&self.node.at, |node| &node.at);
        Fault::at(at, format!("`{}` = {} is not possible", error.key, error.value)).help(&error.why)
    }

    fn settings(&self) -> Result<Settings, Fault> {
        let affinity = match self.fields.get("affinity") {
            None => CpuSet::All,
            Some(node) => fields::cpus(node, "affinity")?,
        };
        Ok(Settings {
            name: self.fields.text("name")?.map(str::to_string),
            nice: self.fields.whole("nice", -20..=19)?.unwrap_or(0),
            priority: self.fields.whole("priority", i32::MIN..=i32::MAX)?.unwrap_or(0),
            affinity,
            domain: DomainId(self.fields.whole("domain", 0..=u16::MAX)?.unwrap_or(0)),
            deadline: self.fields.span("deadline")?,
            key: self.fields.whole("key", 0..=u32::MAX)?,
        })
    }

    fn batch(mut self, cpus: usize) -> Result<Part, Fault> {
        self.fields.need("tasks", "100")?;
        let load = Batch {
            settings: self.settings()?,
            tasks: self.fields.whole("tasks", 0..=MAX_BATCH)?.unwrap_or(1),
            service: self.dist_needed("service")?,
            at: self.time("at")?.unwrap_or(Time::ZERO),
        };
        self.generated(load, cpus)
    }

    fn open(mut self, cpus: usize) -> Result<Part, Fault> {
        let given = |key: &&str| self.fields.get(key).is_some();
        let mut ways = ["load", "rate", "interarrival"].into_iter().filter(given);
        let (first, second) = (ways.next(), ways.next());
        if let (Some(first), Some(second)) = (first, second) {
            let at = &self.fields.need(second, "")?.at;
            return Err(Fault::at(at, format!("`{first}` and `{second}` say the same thing"))
                .help("keep one of them"));
        }
        let arrivals = match first {
            Some("load") => Arrivals::Load(self.fields.real("load")?.unwrap_or(0.0)),
            Some("rate") => Arrivals::Rate(self.fields.real("rate")?.unwrap_or(0.0)),
            Some(_) => Arrivals::Gaps(self.dist_needed("interarrival")?),
            None => {
                return Err(Fault::at(&self.node.at, "it is not said how often tasks arrive")
                    .help(
                        "`load = 0.9` keeps this part of the CPUs busy, `rate = 100` is tasks \
                         per second, `interarrival = \"exp(1ms)\"` is the time between them",
                    ));
            }
        };
        let load = Open {
            settings: self.settings()?,
            arrivals,
            service: self.dist_needed("service")?,
            tasks: self.count("tasks")?,
            start: self.time("start")?.unwrap_or(Time::ZERO),
            until: self.time("until")?,
        };
        self.generated(load, cpus)
    }

    fn closed_loop(mut self, cpus: usize) -> Result<Part, Fault> {
        self.fields.need("clients", "40")?;
        let load = Closed {
            settings: self.settings()?,
            clients: self.fields.whole("clients", 0..=MAX_SOURCES)?.unwrap_or(1),
            requests: self.count("requests")?,
            service: self.dist_needed("service")?,
            think: self.dist("think")?.unwrap_or(Dist::constant(Span::ZERO)),
            until: self.time("until")?,
        };
        self.generated(load, cpus)
    }

    fn periodic(mut self, cpus: usize) -> Result<Part, Fault> {
        let period = fields::span(self.fields.need("period", "\"10ms\"")?, "period")?;
        let load = Periodic {
            settings: self.settings()?,
            tasks: self.sources()?,
            period,
            run: self.dist_needed("run")?,
            budget: self.fields.span("budget")?,
            offset: self.offset()?,
            jitter: self.fields.span("jitter")?.unwrap_or(Span::ZERO),
            jobs: self.count("jobs")?,
            until: self.time("until")?,
        };
        self.generated(load, cpus)
    }

    fn task_set(mut self, cpus: usize) -> Result<Part, Fault> {
        self.fields.need("tasks", "20")?;
        let load = fields::real(self.fields.need("load", "0.8")?, "load")?;
        let node = self.fields.need("periods", "[\"1ms\", \"100ms\"]")?;
        let periods = match node.as_list() {
            Some([low, high]) => (fields::span(low, "periods")?, fields::span(high, "periods")?),
            _ => {
                let message = format!("`periods` is a list of two times, not {}", node.shown());
                return Err(Fault::at(&node.at, message)
                    .help("the shortest and the longest: `periods = [\"1ms\", \"100ms\"]`"));
            }
        };
        let load = TaskSet {
            settings: self.settings()?,
            tasks: self.sources()?,
            load,
            periods,
            period_step: self.fields.span("period_step")?.unwrap_or(Span(1)),
            offset: self.offset()?,
            jitter: self.fields.span("jitter")?.unwrap_or(Span::ZERO),
            jobs: self.count("jobs")?,
            until: self.time("until")?,
        };
        self.generated(load, cpus)
    }

    fn interactive(mut self, cpus: usize) -> Result<Part, Fault> {
        let load = Interactive {
            settings: self.settings()?,
            tasks: self.sources()?,
            run: self.dist_needed("run")?,
            sleep: self.dist_needed("sleep")?,
            offset: self.offset()?,
            until: self.time("until")?,
        };
        self.generated(load, cpus)
    }

    fn hog(mut self, cpus: usize) -> Result<Part, Fault> {
        let load = Hog {
            settings: self.settings()?,
            tasks: self.sources()?,
            offset: self.offset()?,
            until: self.time("until")?,
            check: self.fields.span("check")?.unwrap_or(Span::from_ms(1)),
        };
        self.generated(load, cpus)
    }

    fn service(mut self, cpus: usize) -> Result<Part, Fault> {
        let gaps = match (self.fields.get("rate"), self.fields.get("interarrival")) {
            (Some(_), Some(node)) => {
                return Err(Fault::at(&node.at, "`rate` and `interarrival` say the same thing")
                    .help("keep one of them"));
            }
            (Some(node), None) => {
                let rate = fields::real(node, "rate")?;
                if !(1e-6..=1e9).contains(&rate) {
                    return Err(Fault::at(&node.at, format!("`rate` = {rate} is out of range"))
                        .help("it is requests per second, from 0.000001 to 1000000000"));
                }
                self.files.dist(node, &format!("exp({}ns)", libm::round(1e9 / rate)))?
            }
            (None, Some(_)) => self.dist_needed("interarrival")?,
            (None, None) => {
                let message = "it is not said how often requests are sent";
                return Err(Fault::at(&self.node.at, message).help(
                    "`rate` = 100 is requests per second, `interarrival` = \"exp(10ms)\" is the \
                     time between them",
                ));
            }
        };
        let load = Service {
            settings: self.settings()?,
            servers: self.fields.whole("servers", 1..=MAX_SOURCES)?.unwrap_or(1),
            gaps,
            service: self.dist_needed("service")?,
            hop: self.hop()?,
            requests: self.count("requests")?,
            until: self.time("until")?,
        };
        self.generated(load, cpus)
    }

    /// Messages that pass through a driver domain need 50 us for it, either way, unless it is said
    /// otherwise.
    fn hop(&self) -> Result<Span, Fault> {
        Ok(self.fields.span("hop")?.unwrap_or(Span::from_us(50)))
    }

    fn ping(mut self, cpus: usize, loads: &mut Loads) -> Result<Part, Fault> {
        let to = self.fields.need("to", "\"web\"")?;
        let work = self.dist("work")?.unwrap_or(Dist::constant(Span::from_us(20)));
        let ping = Ping {
            settings: self.settings()?,
            every: self.fields.span("every")?.unwrap_or(Span::from_ms(1000)),
            offset: self.offset()?,
            work,
            pings: self.count("pings")?,
            port: Port(0),
        };
        ping.validate(cpus).map_err(|error| self.fault(&error))?;
        let answer = self.dist("answer")?.unwrap_or_else(|| ping.work.clone());
        let echo = Echo { settings: Settings::default(), work: answer.clone(), port: Port(0) };
        echo.validate(cpus)
            .map_err(|error| self.fault(&SettingError { key: "answer", ..error }))?;
        let (hop, part) = (self.hop()?, loads.parts.len());
        let (to, to_at) = (fields::text(to, "to")?.to_string(), to.at.clone());
        loads.pinged.push(Pinged { part, to, to_at, answer, hop });
        Ok(Part::Ping(ping))
    }

    fn parallel(mut self, cpus: usize) -> Result<Part, Fault> {
        let load = Parallel {
            settings: self.settings()?,
            tasks: self.sources()?,
            run: self.dist_needed("run")?,
            rounds: self.fields.whole("rounds", 1..=MAX_TASKS)?.unwrap_or(1),
            locked: self.fields.span("locked")?.unwrap_or_default(),
            spin: self.fields.flag("spin")?.unwrap_or_default(),
        };
        self.generated(load, cpus)
    }

    fn tasks(self, cpus: usize) -> Result<Part, Fault> {
        let node = self.fields.need("file", "\"tasks.csv\"")?;
        let list = self.files.tasks(node, |bytes, name| {
            TaskList::read(bytes, name).map_err(|error| error.to_string())
        })?;
        let bound_elsewhere = list.rows().iter().filter(|row| is_elsewhere(&row.affinity, cpus));
        self.files.warn_of_affinities(node, bound_elsewhere.count(), cpus);
        Ok(Part::Tasks(list))
    }

    /// `trace`, `rt-app`, `swf` or `model`.
    fn model(self, kind: &str, cpus: usize) -> Result<Part, Fault> {
        let example = match kind {
            "trace" => "\"recording.txt.gz\"",
            "swf" => "\"jobs.swf\"",
            _ => "\"load.json\"",
        };
        let node = self.fields.need("file", example)?;
        const SOFTIRQS: [(&str, ftrace::Softirqs); 3] = [
            ("by-evidence", ftrace::Softirqs::ByEvidence),
            ("task", ftrace::Softirqs::Task),
            ("outside", ftrace::Softirqs::Outside),
        ];
        const PROCESSORS: [(&str, swf::Processors); 2] =
            [("task-each", swf::Processors::TaskEach), ("one-task", swf::Processors::OneTask)];
        let softirqs = self.choice("softirqs", &SOFTIRQS)?;
        let processors = self.choice("processors", &PROCESSORS)?;
        let options = format!("{kind} {softirqs:?} {processors:?}");
        let model = self.files.model(node, &options, |bytes| match kind {
            "trace" => ftrace::Recording::read(bytes).map(|read| read.replay(softirqs).model),
            "rt-app" => rtapp::read(bytes),
            "swf" => swf::read(bytes, processors),
            _ => Model::read(bytes),
        })?;
        let bound_elsewhere = model.tasks.iter().filter(|task| {
            let later = task.script.ops.iter().filter_map(|op| match op {
                Op::SetAffinity(affinity) => Some(affinity),
                _ => None,
            });
            later.chain([&task.new.affinity]).any(|affinity| is_elsewhere(affinity, cpus))
        });
        self.files.warn_of_affinities(node, bound_elsewhere.count(), cpus);
        Ok(Part::Model(model))
    }

    /// One of a few words; the first if the key is absent.
    fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<T, Fault> {
        let Some(node) = self.fields.get(key) else { return Ok(words[0].1) };
        let text = fields::text(node, key)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|&(_, value)| value).ok_or_else(|| {
            Fault::at(&node.at, format!("`{key}` = \"{text}\" is not one of its values"))
                .help(hint(text, words.iter().map(|&(word, _)| word)))
        })
    }

    fn sources(&self) -> Result<u32, Fault> {
        Ok(self.fields.whole("tasks", 0..=MAX_SOURCES)?.unwrap_or(1))
    }

    fn count(&self, key: &str) -> Result<Option<u64>, Fault> {
        self.fields.whole(key, 0..=MAX_TASKS)
    }

    fn offset(&mut self) -> Result<Dist, Fault> {
        Ok(self.dist("offset")?.unwrap_or(Dist::constant(Span::ZERO)))
    }

    fn time(&self, key: &str) -> Result<Option<Time>, Fault> {
        Ok(self.fields.span(key)?.map(|span| Time::ZERO + span))
    }

    fn dist_needed(&mut self, key: &str) -> Result<Dist, Fault> {
        self.fields.need(key, "\"exp(10ms)\"")?;
        Ok(self.dist(key)?.unwrap_or(Dist::constant(Span::ZERO)))
    }

    fn dist(&mut self, key: &str) -> Result<Option<Dist>, Fault> {
        let Some(node) = self.fields.get(key) else { return Ok(None) };
        let Some(text) = node.as_text() else {
            return Ok(Some(Dist::constant(fields::span(node, key)?)));
        };
        self.files.dist(node, text).map(Some)
    }
}

/// Sources of tasks cost memory for the whole run.
const MAX_SOURCES: u32 = 1 << 20;
/// Tasks of a batch are all there at once, at some 150 bytes each.
const MAX_BATCH: u64 = 1 << 24;
/// More would take years.
const MAX_TASKS: u64 = 1 << 40;
