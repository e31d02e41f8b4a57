//! `[machine]`: CPUs, what scheduling costs on them, and when they come and go.

use crate::plan::like;
use crate::spec::error::{Fault, Faults};
use crate::spec::fields::{self, Fields};
use crate::spec::files::Files;
use crate::spec::keys;
use crate::spec::tree::Node;
use anysched_core::machine::{Cpu, Level};
use anysched_core::{CpuId, MAX_CPUS, Machine, Span, Time};
use anysched_host::{Contention, Costs, Setup};
use anysched_topology as topology;

/// The setup that `[machine]` describes, without an end; the topology may be in `files`.
pub(crate) fn setup(node: &Node, files: &mut Files) -> Result<Setup, Fault> {
    let node = &like::written_out(node)?;
    let fields = Fields::of(node, &keys::MACHINE)?;
    let mut faults = Faults::default();
    let read = cpus(&fields, node, files).and_then(|machine| with_capacities(&fields, machine));
    let machine = faults.take(read);
    let tick = faults.take(fields.span("tick"));
    let costs = faults.take(costs(&fields));
    let speed = faults.take(smt_speed(&fields));
    let contention = faults.take(contention(&fields));
    let cpus = machine.as_ref().map_or(MAX_CPUS, Machine::cpus);
    let hotplug = faults.take(hotplug(&fields, cpus));
    let kernel_options = faults.take(kernel_options(&fields));
    faults.result()?;
    let machine = machine.map(|machine| machine.with_tick(tick.flatten()));
    let Some(mut setup) = machine.map(Setup::new) else {
        return Err(Fault::at(&node.at, "[machine] says nothing about its CPUs"));
    };
    setup.costs = costs.unwrap_or_default();
    setup.smt_speed = speed.unwrap_or(setup.smt_speed);
    setup.contention = contention.unwrap_or_default();
    setup.hotplug = hotplug.unwrap_or_default();
    setup.kernel_options = kernel_options.unwrap_or_default();
    Ok(setup)
}

fn kernel_options(fields: &Fields<'_>) -> Result<String, Fault> {
    let Some(node) = fields.get("kernel_options") else { return Ok(String::new()) };
    fields::name(node, "kernel_options").map(str::to_string)
}

/// In 1/1024.
fn smt_speed(fields: &Fields<'_>) -> Result<u32, Fault> {
    let speed = fields.real("smt")?.unwrap_or(1.0);
    if !(speed > 0.0 && speed <= 1.0) {
        let at = &fields.need("smt", "0.6")?.at;
        return Err(Fault::at(at, format!("`smt` = {speed} is out of range")).help(
            "it is the speed of a thread whose sibling is busy, relative to its speed alone: \
             above 0, up to 1",
        ));
    }
    Ok((libm::round(speed * 1024.0) as u32).max(1))
}

fn contention(fields: &Fields<'_>) -> Result<Contention, Fault> {
    let Some(node) = fields.get("contention") else { return Ok(Contention::default()) };
    let fields = Fields::of(node, &keys::CONTENTION)?;
    let factor = |key| {
        let Some(factor) = fields.real(key)? else { return Ok(0) };
        let most = f64::from(Contention::MOST / 1024);
        if !(0.0..=most).contains(&factor) {
            let at = &fields.need(key, "0.5")?.at;
            let help = format!(
                "it is how much longer a task of intensity 100 takes beside another such task, \
                 relative to its time alone: 0 to {most}"
            );
            return Err(Fault::at(at, format!("`{key}` = {factor} is out of range")).help(help));
        }
        Ok(libm::round(factor * 1024.0) as u32)
    };
    Ok(Contention { core: factor("core")?, llc: factor("llc")? })
}

fn cpus(fields: &Fields<'_>, node: &Node, files: &mut Files) -> Result<Machine, Fault> {
    match (fields.get("cpus"), fields.get("topology")) {
        (Some(_), Some(topology)) => {
            Err(Fault::at(&topology.at, "[machine] has `cpus` and `topology`")
                .help("`cpus = 8` is short for `topology = \"8 cores\"`; keep one of them"))
        }
        (Some(count), None) => {
            let count = fields::whole(count, "cpus", 1..=MAX_CPUS)?;
            Machine::flat(count).map_err(|error| Fault::at(&node.at, error.to_string()))
        }
        (None, Some(topology)) => files.machine(topology),
        (None, None) => Err(Fault::at(&node.at, "[machine] says nothing about its CPUs")
            .help("for example `cpus = 4` or `topology = \"2 nodes x 4 cores x 2 threads\"`")),
    }
}

fn with_capacities(fields: &Fields<'_>, machine: Machine) -> Result<Machine, Fault> {
    let Some(node) = fields.get("capacity") else { return Ok(machine) };
    let Some(list) = node.as_list() else {
        return Err(Fault::at(&node.at, format!("`capacity` is a list, not {}", node.shown()))
            .help("one number from 1 to 1024 per CPU; 1024 is the fastest"));
    };
    if list.len() != machine.cpus() {
        let (given, cpus) = (list.len(), machine.cpus());
        let message = format!("`capacity` has {given} entries, and the machine has {cpus} CPUs");
        return Err(Fault::at(&node.at, message).help("give one number from 1 to 1024 per CPU"));
    }
    let capacities = list.iter().map(|item| fields::whole(item, "capacity", 1..=1024u16));
    let cpus: Vec<Cpu> = machine
        .cpu_ids()
        .zip(capacities)
        .map(|(cpu, capacity)| Ok(Cpu { capacity: capacity?, ..*machine.cpu(cpu) }))
        .collect::<Result<_, Fault>>()?;
    Machine::new(cpus).map_err(|error| Fault::at(&node.at, error.to_string()))
}

fn costs(fields: &Fields<'_>) -> Result<Costs, Fault> {
    let cost = |key| fields.span(key).map(Option::unwrap_or_default);
    let mut costs = Costs {
        context_switch: cost("context_switch")?,
        pick_base: cost("pick")?,
        pick_per_item: cost("pick_per_item")?,
        enqueue_base: cost("enqueue")?,
        enqueue_log: cost("enqueue_log")?,
        lock_hold: cost("lock_hold")?,
        ipi: cost("ipi")?,
        timer_irq: cost("timer_irq")?,
        wake_irq: cost("wake_irq")?,
        idle_exit: cost("idle_exit")?,
        timer_late: cost("timer_late")?,
        create: cost("create")?,
        exit: cost("exit")?,
        after_wake: cost("after_wake")?,
        charged: fields.flag("charged")?.unwrap_or_default(),
        ..Costs::default()
    };
    if let Some(node) = fields.get("migration") {
        let migration = Fields::of(node, &keys::MIGRATION)?;
        let cost = |key| migration.span(key).map(Option::unwrap_or_default);
        costs.migrate_thread = cost("thread")?;
        costs.migrate_core = cost("core")?;
        costs.migrate_llc = cost("llc")?;
        costs.migrate_node = cost("node")?;
    }
    Ok(costs)
}

/// In time order; those of the same time in the order of the file.
fn hotplug(fields: &Fields<'_>, cpus: usize) -> Result<Vec<(Time, CpuId, bool)>, Fault> {
    let mut moments = Vec::new();
    let mut faults = Faults::default();
    for node in fields.tables("hotplug")? {
        let Some(fields) = faults.take(Fields::of(node, &keys::HOTPLUG)) else { continue };
        let at = fields.need("at", "\"1s\"").and_then(|node| fields::span(node, "at"));
        let cpu = fields.need("cpu", "1");
        let cpu = cpu.and_then(|node| fields::whole(node, "cpu", 0..=(cpus - 1) as u16));
        let online = fields.need("online", "false").and_then(|_| fields.flag("online"));
        let (at, cpu, online) = (faults.take(at), faults.take(cpu), faults.take(online));
        if let (Some(at), Some(cpu), Some(online)) = (at, cpu, online) {
            moments.push((Time::ZERO + at, CpuId(cpu), online.unwrap_or_default()));
        }
    }
    moments.sort_by_key(|&(at, ..)| at);
    faults.result().map(|()| moments)
}

/// One line about a machine, for headings: its CPUs and what on it is not free.
pub(crate) fn describe(setup: &Setup) -> String {
    let machine = &setup.machine;
    let mut text = match topology::shape_in_words(machine) {
        Some(words) => match words.strip_suffix(" cores").filter(|count| !count.contains(' ')) {
            Some(cores) => format!("{cores} CPUs"),
            None if machine.cpus() == 1 => "1 CPU".to_string(),
            None => words,
        },
        None => topology::totals(machine),
    };
    if machine.cpu_ids().any(|cpu| machine.cpu(cpu).capacity != 1024) {
        text += " of unequal capacity";
    }
    if setup.smt_speed != 1024 && machine.groups(Level::Core) != machine.cpus() {
        text += &format!(", smt {:.2}", f64::from(setup.smt_speed) / 1024.0);
    }
    for (name, factor) in [("core", setup.contention.core), ("LLC", setup.contention.llc)] {
        if factor > 0 {
            text += &format!(", contention in a {name} {:.2}", f64::from(factor) / 1024.0);
        }
    }
    if let Some(tick) = machine.tick() {
        text += &format!(", tick {tick}");
    }
    if !setup.hotplug.is_empty() {
        text += ", hotplug";
    }
    if !setup.kernel_options.is_empty() {
        text += &format!(", kernel options {}", setup.kernel_options);
    }
    text
}

/// One line about the costs, for headings.
pub(crate) fn describe_costs(costs: &Costs) -> String {
    let list: Vec<String> = [
        ("context switch", costs.context_switch),
        ("migration to a sibling", costs.migrate_thread),
        ("migration to a core", costs.migrate_core),
        ("to an LLC", costs.migrate_llc),
        ("to a node", costs.migrate_node),
        ("pick", costs.pick_base),
        ("per task looked at", costs.pick_per_item),
        ("enqueue", costs.enqueue_base),
        ("times log2 of the queue", costs.enqueue_log),
        ("lock", costs.lock_hold),
        ("IPI", costs.ipi),
        ("tick", costs.timer_irq),
        ("interrupt", costs.wake_irq),
        ("leaving idle", costs.idle_exit),
        ("timers late by up to", costs.timer_late),
        ("create", costs.create),
        ("exit", costs.exit),
        ("after a wake-up", costs.after_wake),
    ]
    .into_iter()
    .filter(|&(_, cost)| cost > Span::ZERO)
    .map(|(name, cost)| format!("{name} {cost}"))
    .collect();
    match list.is_empty() {
        true => "none".to_string(),
        false if costs.charged => format!("{}, charged", list.join(", ")),
        false => list.join(", "),
    }
}
