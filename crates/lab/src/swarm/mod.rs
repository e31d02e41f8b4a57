//! Random machines, loads and policies, each from a number: what tests of the simulator run under
//! [`Checked`](anysched_core::Checked), and `anysched shrink --swarm` makes smaller.

pub mod random;

use crate::spec::overrides::quoted;
use anysched_core::params::ParamInfo;
use anysched_core::registry::PolicyInfo;
use anysched_core::{CpuId, Machine, Span, Time};
use anysched_host::{Contention, Costs, ParamChange, Setup};
use anysched_policies::POLICIES;
use anysched_workload::model::Model;
use anysched_workload::rng::Rng;
use random::{costs, pick, sometimes};
use std::fmt::Write;

/// A parameter and its value.
pub type Setting = (&'static str, &'static str);

/// One case, from its seed alone.
pub struct Case {
    /// The seed.
    pub seed: u64,
    /// The machine in words.
    topology: &'static str,
    /// The machine, its costs, and what changes during the run.
    pub setup: Setup,
    /// The policy.
    pub policy: &'static PolicyInfo,
    /// Its settings.
    pub settings: Vec<Setting>,
    /// What runs.
    pub model: Model,
}

const TOPOLOGIES: [&str; 9] = [
    "1",
    "2",
    "3",
    "5",
    "2 cores x 2 threads",
    "2 llcs x 2 cores",
    "2 nodes x 2 cores x 2 threads",
    "2 nodes x 2 packages x 2 llcs x 2 cores",
    "12",
];

impl Case {
    /// The case of a seed.
    pub fn new(seed: u64) -> Case {
        Case::of(seed, None)
    }

    /// The same machine and load under another policy, with random settings of its own.
    pub fn with_policy(seed: u64, policy: &'static PolicyInfo) -> Case {
        Case::of(seed, Some(policy))
    }

    fn of(seed: u64, wanted: Option<&'static PolicyInfo>) -> Case {
        let rng = &mut Rng::stream(seed, "swarm");
        let topology: &'static str = pick::<&str>(rng, &TOPOLOGIES);
        let machine =
            Machine::parse(topology).unwrap_or_else(|error| panic!("{topology}: {error}"));
        let tick = sometimes(rng, 2).then_some(Span::from_ms(1));
        let mut setup = Setup::new(machine.with_tick(tick));
        setup.until = Time(400_000_000);
        if sometimes(rng, 2) {
            setup.costs = costs(rng);
        }
        if sometimes(rng, 2) {
            setup.smt_speed = 600;
        }
        let cpus = setup.machine.cpus() as u64;
        if cpus > 1 && sometimes(rng, 2) {
            for _ in 0..rng.below(6) {
                // CPU 0 stays, so that there is always one.
                let cpu = CpuId(1 + rng.below(cpus - 1) as u16);
                let time = Time(rng.below(300_000) * 1000);
                setup.hotplug.push((time, cpu, sometimes(rng, 2)));
            }
            setup.hotplug.sort();
        }
        let mut model = random::model(rng, cpus);
        let heavy = &mut Rng::stream(seed, "contention");
        if sometimes(heavy, 3) {
            setup.contention = Contention { core: 700, llc: 300 };
            let tasks = model.tasks.iter_mut();
            tasks.for_each(|task| task.new.intensity = heavy.below(101) as u8);
        }
        let drawn = pick(rng, POLICIES);
        let policy = wanted.unwrap_or(drawn);
        let settings = settings(rng, policy, &setup.machine);
        setup.changes = changes(&mut Rng::stream(seed, "changes"), policy, &setup.machine);
        Case { seed, topology, setup, policy, settings, model }
    }
}

/// Settings of `policy` with which it can be built for `machine`.
pub fn settings(rng: &mut Rng, policy: &PolicyInfo, machine: &Machine) -> Vec<Setting> {
    let params = (policy.params)();
    if !params.iter().any(|param| param.name == "place") {
        return own_settings(rng, policy, &params, machine);
    }
    let mut settings = vec![
        ("layout", *pick(rng, &["global", "per-cpu", "per-llc", "per-node"])),
        ("place", *pick(rng, &["creator", "round-robin", "least-loaded", "linux"])),
        ("steal", *pick(rng, &["never", "llc", "node", "machine", "machine", "linux", "linux"])),
    ];
    settings.push(("balance", *pick(rng, &["never", "linux"])));
    settings
}

/// Settings of a policy that has no layouts, drawn from all that it has.
fn own_settings(
    rng: &mut Rng,
    policy: &PolicyInfo,
    params: &[ParamInfo],
    machine: &Machine,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    for param in params {
        if sometimes(rng, 2) {
            continue;
        }
        let words: Vec<&str> = match param.kind {
            "time" => vec!["300us", "2ms", "10ms"],
            "number" => vec!["1", "3"],
            kind if kind.contains(" | ") => kind.split(" | ").collect(),
            _ => continue,
        };
        settings.push((param.name, *pick(rng, &words)));
        if (policy.build)(machine, &settings).is_err() {
            // A layout for another number of CPUs, or a time that does not fit the others.
            settings.pop();
        }
    }
    settings
}

/// Parameters that the policy can change while it runs, changed a few times.
fn changes(rng: &mut Rng, policy: &PolicyInfo, machine: &Machine) -> Vec<ParamChange> {
    let Ok(built) = (policy.build)(machine, &[]) else { return Vec::new() };
    let mut changes = Vec::new();
    for param in (policy.params)() {
        let words: Vec<&str> = param.kind.split(" | ").collect();
        for _ in 0..rng.below(8) {
            let (name, text) = (param.name.to_string(), pick(rng, &words).to_string());
            let at = Time(rng.below(300_000) * 1000);
            if built.check_param(&name, &text).is_ok() {
                changes.push(ParamChange { at, name, text });
            }
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}

impl Case {
    /// The case as an experiment called `name`, which names a model `NAME.model`, and the model.
    ///
    /// Errors: the model cannot be written; none that is drawn is like that.
    pub fn experiment(&self, name: &str) -> std::io::Result<(String, Vec<u8>)> {
        let mut text = format!(
            "# Case {} of the swarm.\n\nquestion = \"Is the contract of policies kept?\"\n\
             policy = {}\nduration = \"{}\"\n\n[machine]\ntopology = {}\n",
            self.seed,
            self.policy_in_toml(),
            self.setup.until.since(Time::ZERO),
            quoted(self.topology),
        );
        let mut say = |key: &str, value: &str| {
            let _ = writeln!(text, "{key} = {value}");
        };
        let Setup { machine, smt_speed, contention, hotplug, costs, .. } = &self.setup;
        if let Some(tick) = machine.tick() {
            say("tick", &quoted(&tick.to_string()));
        }
        if *smt_speed != 1024 {
            say("smt", &(f64::from(*smt_speed) / 1024.0).to_string());
        }
        if !contention.is_none() {
            let part = |part: u32| format!("{:?}", f64::from(part) / 1024.0);
            let (core, llc) = (part(contention.core), part(contention.llc));
            say("contention", &format!("{{ core = {core}, llc = {llc} }}"));
        }
        for (key, cost) in costs_by_key(costs) {
            if cost != Span::ZERO {
                say(key, &quoted(&cost.to_string()));
            }
        }
        if costs.charged {
            say("charged", "true");
        }
        for (at, cpu, online) in hotplug {
            let (at, cpu) = (at.since(Time::ZERO), cpu.0);
            let _ = write!(
                text,
                "\n[[machine.hotplug]]\nat = \"{at}\"\ncpu = {cpu}\nonline = {online}\n"
            );
        }
        let _ = write!(text, "\n[[workload]]\nkind = \"model\"\nfile = \"{name}.model\"\n");
        let mut model = Vec::new();
        self.model.write(&mut model)?;
        Ok((text, model))
    }

    fn policy_in_toml(&self) -> String {
        let mut text = format!("{{ name = {}", quoted(self.policy.name));
        for (name, value) in &self.settings {
            let _ = write!(text, ", {name} = {}", quoted(value));
        }
        if !self.setup.changes.is_empty() {
            let change = |change: &ParamChange| {
                let (at, value) = (change.at.since(Time::ZERO), quoted(&change.text));
                format!("{{ at = \"{at}\", {} = {value} }}", change.name)
            };
            let changes: Vec<String> = self.setup.changes.iter().map(change).collect();
            let _ = write!(text, ", changes = [{}]", changes.join(", "));
        }
        text + " }"
    }
}

/// Costs by their keys in `[machine]`.
fn costs_by_key(costs: &Costs) -> [(&'static str, Span); 18] {
    [
        ("context_switch", costs.context_switch),
        ("migration.thread", costs.migrate_thread),
        ("migration.core", costs.migrate_core),
        ("migration.llc", costs.migrate_llc),
        ("migration.node", costs.migrate_node),
        ("pick", costs.pick_base),
        ("pick_per_item", costs.pick_per_item),
        ("enqueue", costs.enqueue_base),
        ("enqueue_log", costs.enqueue_log),
        ("lock_hold", costs.lock_hold),
        ("ipi", costs.ipi),
        ("timer_irq", costs.timer_irq),
        ("wake_irq", costs.wake_irq),
        ("idle_exit", costs.idle_exit),
        ("timer_late", costs.timer_late),
        ("create", costs.create),
        ("exit", costs.exit),
        ("after_wake", costs.after_wake),
    ]
}
