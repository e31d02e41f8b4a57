//! Virtual machines of experiments: what dom0 is told of them, and what they have measured.

use crate::host::HOST;
use anysched_core::machine::Level;
use anysched_core::registry::Settings;
use anysched_core::{CpuId, CpuSet, DomainId, Machine, Span, TaskParams, Time};
use anysched_host::{By, HostError, Outcome, Setup, Vm, Wire};
use anysched_measure::{Metrics, Total, VmMetrics};
use anysched_qemu::{Outcome as Said, measured};
use anysched_wire::domains::{self, Described, Domain, Way};
use anysched_wire::start::Start;
use anysched_wire::{WireError, mail};
use anysched_workload::steps::{self, Listed, Part};

/// The program of dom0 that builds them.
pub(crate) const PROGRAM: &str = "vms";

/// vCPUs of a domain, at most: so many have a place in the page that Xen shares.
const MAX_VCPUS: usize = 32;

/// Memory of a domain in bytes, besides what its tasks take, and what a byte of their text takes.
const MEMORY: u64 = 16 << 20;
const MEMORY_OF_A_BYTE: u64 = 40;

/// The machines of a run: what is said to dom0, and by what they are known here.
pub(crate) struct Machines {
    /// The text for dom0.
    pub(crate) text: String,
    /// Memory that they take, in bytes.
    pub(crate) memory: u64,
    known: Vec<(String, DomainId)>,
}

impl Machines {
    /// Errors: names what Xen, or a domain there, cannot do, and what to do about it.
    pub(crate) fn of(vms: Vec<Vm>, until: Time) -> Result<Machines, HostError> {
        let known: Vec<_> = vms.iter().map(|vm| (vm.name.clone(), vm.domain)).collect();
        let of_name =
            |number: usize, why: String| HostError(format!("vm \"{}\": {why}", known[number].0));
        let mut described = Vec::new();
        let mut parts = Vec::new();
        let are_ends = ends(&vms);
        for (number, vm) in vms.into_iter().enumerate() {
            let (text, part) = describe(vm, until, are_ends[number])
                .map_err(|HostError(why)| of_name(number, why))?;
            described.push(text);
            parts.push(part);
        }
        let listed = steps::listed(parts);
        let listed = listed.map_err(|(number, error)| of_name(number, error.to_string()))?;
        for (number, (text, Listed { script, mail })) in
            described.iter_mut().zip(listed).enumerate()
        {
            let refused = |error: WireError| of_name(number, error.to_string());
            if !script.tasks.is_empty() {
                text.script = script.write().map_err(refused)?;
            }
            text.mail = mail::write(&mail).map_err(refused)?;
        }
        let text = domains::write(&described).map_err(|error| HostError(error.to_string()))?;
        let memory = known.len() as u64 * MEMORY + text.len() as u64 * MEMORY_OF_A_BYTE;
        Ok(Machines { text, memory, known })
    }

    /// The name of the machine that dom0 knows by this number.
    pub(crate) fn name(&self, number: &str) -> Option<String> {
        let number: usize = number.parse().ok()?;
        self.known.get(number).map(|(name, _)| name.clone())
    }

    /// What they have said, as what was measured of them and of the machine that they run on.
    pub(crate) fn measured(
        &self,
        mut said: Said,
        by: &By<'_>,
        setup: &Setup,
        with_logs: bool,
    ) -> Outcome {
        let logs = if with_logs { std::mem::take(&mut said.logs) } else { Vec::new() };
        let counted = Counted::of(&said.values);
        let mut metrics = Metrics {
            tasks: Total::of(0),
            completed: Total::of(0),
            unfinished: Total::of(0),
            deadline_misses: Total::of(0),
            stolen: Total::of(Span::ZERO),
            dispatches: counted.total("dispatches"),
            context_switches: counted.total("switches"),
            migrations: counted.total("migrations"),
            policy: counted.policy(by, &setup.machine),
            ..Metrics::default()
        };
        let mut ran = Total::of(Span::ZERO);
        for (number, (name, domain)) in self.known.iter().enumerate() {
            let own = of_domain(&said, number);
            let value = |name: &str| own.value(name).map_or_else(Total::default, Total::of);
            ran.merge(&own.value("ran_ns").map_or_else(Total::default, |ns| Total::of(Span(ns))));
            let (tasks, unfinished) = (value("tasks"), value("unfinished"));
            let (name, domain, inside) = (name.clone(), *domain, inside(&own));
            let inside = Metrics { tasks, unfinished, ..inside };
            metrics.vms.push(VmMetrics { name, domain, inside, learned: Settings::new() });
        }
        metrics.busy = ran;
        metrics.add_vms();
        Outcome { metrics, logs, ..Outcome::default() }
    }
}

/// Whether a value is one that the hypervisor counts.
pub(crate) fn is_counter(name: &str) -> bool {
    name.starts_with("pool")
}

/// Which machines get or send messages.
fn ends(vms: &[Vm]) -> Vec<bool> {
    let own = |vm: &Vm| !vm.ports.is_empty() || !vm.load.inboxes().is_empty();
    let mut ends: Vec<bool> = vms.iter().map(own).collect();
    for wire in vms.iter().flat_map(|vm| &vm.ports) {
        if let Some(end) = ends.get_mut(wire.vm) {
            *end = true;
        }
    }
    ends
}

/// What dom0 is told of a machine, except for its tasks, and what these are listed from.
fn describe(vm: Vm, until: Time, is_end: bool) -> Result<(Described, Part), HostError> {
    require(&vm)?;
    let (policy, settings) = vm.named.clone().ok_or_else(|| {
        HOST.cannot("build a scheduler in a virtual machine of which only the policy is known")
    })?;
    let stop = vm.stop.min(until);
    let machine = &vm.setup.machine;
    let start = Start {
        policy: policy.into(),
        settings,
        tick: machine.tick().map(|tick| tick.0),
        cpus: places(machine),
        ..Start::default()
    };
    let start = start.write().map_err(|error| HostError(error.to_string()))?;
    let within = match stop {
        Time::NEVER => Time::NEVER,
        stop => Time(stop.since(vm.start).0),
    };
    if is_end && stop == Time::NEVER {
        return Err(HOST.cannot(
            "tell when machines have no more messages for each other: give the experiment a \
             `duration`, or each of them a `stop`",
        ));
    }
    let way = |wire: &Wire| (wire.vm, wire.channel, wire.delay);
    let ports: Vec<_> = vm.ports.iter().map(way).collect();
    let way =
        |wire: &Wire| Way { machine: wire.vm as u32, channel: wire.channel.0, delay: wire.delay.0 };
    let ways = vm.ports.iter().map(way).collect();
    let part = Part { load: vm.load, cpus: machine.cpus(), until: within, ports };
    let params = vm.vcpus.first().cloned().unwrap_or_default();
    let domain = Domain {
        name: vm.name,
        vcpus: machine.cpus() as u32,
        weight: u16::try_from(vm.share.weight).unwrap_or(u16::MAX),
        cap: u16::try_from(vm.share.cap_percent).unwrap_or(u16::MAX),
        period: params.period.zip(params.budget).map(|(period, budget)| (period.0, budget.0)),
        cpus: masks(&vm.vcpus, |vcpu| &vcpu.affinity),
        preferred: masks(&vm.vcpus, |vcpu| &vcpu.preferred),
        begin: vm.start.0,
        stop: Some(stop.0).filter(|_| stop != Time::NEVER),
        ports: ways,
    };
    Ok((Described { domain, start, ..Described::default() }, part))
}

/// Errors: names what cannot be done, and what to do about it.
fn require(vm: &Vm) -> Result<(), HostError> {
    let cpus = vm.setup.machine.cpus();
    let params = vm.vcpus.first().cloned().unwrap_or_default();
    let other_deadline = params.relative_deadline.is_some_and(|due| Some(due) != params.period);
    let whole = |span: Option<Span>| span.is_none_or(|span| span.0 % 1_000 == 0 && span.0 > 0);
    for (is_wrong, what) in [
        (!vm.vms.is_empty(), "run machines in virtual machines: leave out the inner [[vm]]".into()),
        (cpus > MAX_VCPUS, format!("give a domain {cpus} vCPUs: `vcpus` is {MAX_VCPUS} at most")),
        (
            vm.setup.is_unequal(),
            "have vCPUs of different speeds: leave out `smt`, `capacity`".into(),
        ),
        (
            params.period.is_some() != params.budget.is_some(),
            "give a period without a budget, or the other way round: say both".into(),
        ),
        (
            other_deadline,
            "tell a scheduler of deadlines of domains, which are the ends of their periods: leave \
             `deadline` out"
                .into(),
        ),
        (
            !(whole(params.period) && whole(params.budget)),
            "have parts of microseconds: give `period` and `budget` whole ones".into(),
        ),
        (vm.share.weight > u16::MAX.into(), "have weights above 65535: give less".into()),
        (vm.share.cap_percent > u16::MAX.into(), "have caps above 65535 %: give less".into()),
    ] {
        if is_wrong {
            return Err(HOST.cannot(&what));
        }
    }
    Ok(())
}

/// Masks of pCPUs of each vCPU; none, if these are all pCPUs for all of them.
fn masks(vcpus: &[TaskParams], of: impl Fn(&TaskParams) -> &CpuSet) -> Vec<u64> {
    if vcpus.iter().all(|vcpu| of(vcpu).is_all()) {
        return Vec::new();
    }
    let mask = |set: &CpuSet| {
        let has = |cpu: &u16| set.contains(CpuId(*cpu));
        (0..64).filter(has).fold(0, |mask, cpu| mask | 1 << cpu)
    };
    vcpus.iter().map(|vcpu| mask(of(vcpu))).collect()
}

/// Core, last-level cache, package, node and capacity of each CPU.
fn places(machine: &Machine) -> Vec<[u16; 5]> {
    let place = |cpu: CpuId| {
        let of = |level: Level| machine.cpu(cpu).group(level);
        let [core, llc, package, node] =
            [Level::Core, Level::Llc, Level::Package, Level::Node].map(of);
        [core, llc, package, node, machine.cpu(cpu).capacity]
    };
    machine.cpu_ids().map(place).collect()
}

/// What a domain has said; dom0 puts its number before each name.
fn of_domain(said: &Said, number: usize) -> Said {
    let before = format!("{number}.");
    let own = |named: &[(String, u64)]| {
        let own = named
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(&before)?.to_string(), *value)));
        own.collect::<Vec<_>>()
    };
    let mut tasks = said.tasks.clone();
    tasks.retain(|task| task.name.starts_with(&before));
    Said { tasks, values: own(&said.values), samples: own(&said.samples), ..Said::default() }
}

/// What was measured in a machine.
fn inside(own: &Said) -> Metrics {
    let count = |name: &str| own.value(name).map_or_else(Total::default, Total::of);
    let span = |names: &[&str]| {
        let parts: Option<u64> = names.iter().map(|name| own.value(name)).sum();
        parts.map_or_else(Total::default, |sum| Total::of(Span(sum)))
    };
    let overhead = own.value("ran_ns").zip(own.value("work_ns"));
    let overhead = overhead.map(|(ran, work)| Span(ran.saturating_sub(work)));
    let mut metrics = Metrics {
        busy: span(&["work_ns"]),
        overhead: overhead.map_or_else(Total::default, Total::of),
        stolen: span(&["stolen_ns"]),
        idle: span(&["blocked_ns", "offline_ns"]),
        dispatches: count("dispatches"),
        preemptions: count("preemptions"),
        migrations: count("migrations"),
        deadline_misses: count("deadline_misses"),
        benchmark: anysched_measure::Benchmark::default(),
        ..measured(own.clone()).metrics
    };
    for (_, late) in own.samples.iter().filter(|(name, _)| name == "tardiness_ns") {
        metrics.tardiness.record(*late);
    }
    metrics
}

/// What the hypervisor has counted from the start of the run to its end, by name, in the order in
/// which it said it.
struct Counted(Vec<(String, u64)>);

impl Counted {
    /// The pool in which all runs is the first; the one before it has no pCPU.
    const POOL: &'static str = "pool1.";

    /// It has said everything twice.
    fn of(values: &[(String, u64)]) -> Counted {
        let own = values.iter().filter_map(|(name, value)| {
            Some((name.strip_prefix(Counted::POOL)?.to_string(), *value))
        });
        let both: Vec<(String, u64)> = own.collect();
        let (before, after) = both.split_at(both.len() / 2);
        let since = before.iter().zip(after);
        Counted(
            since.map(|(one, other)| (other.0.clone(), other.1.saturating_sub(one.1))).collect(),
        )
    }

    fn total(&self, name: &str) -> Total<u64> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or_else(Total::default, |(_, number)| Total::of(*number))
    }

    /// The policy's own counters, under the names that the policy has for them here.
    fn policy(&self, by: &By<'_>, machine: &Machine) -> Vec<(&'static str, u64)> {
        let By::Policy(info, settings) = by else { return Vec::new() };
        let Ok(policy) = (info.build)(machine, settings) else { return Vec::new() };
        let mut names = Vec::new();
        policy.tally(&mut |name, _| names.push(name));
        let said = self.0.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("policy.")?;
            Some((*names.iter().find(|known| **known == name)?, *value))
        });
        said.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_host::Vm;
    use anysched_workload::dist::Dist;
    use anysched_workload::generate::{Echo, Generator, Ping, Service, Settings};
    use anysched_workload::mix::Mix;
    use anysched_workload::model::{Model, ModelTask, Script};
    use anysched_workload::{Channel, NewTask, Op, Port};
    use std::sync::Arc;

    fn vm(cpus: usize, spans: &[u64]) -> Vm {
        let machine = Machine::flat(cpus).unwrap();
        let info = anysched_policies::policy("rr").unwrap();
        let policy = (info.build)(&machine, &[]).unwrap();
        let task = |span: &u64| ModelTask {
            new: NewTask { name: Some("t".into()), ..NewTask::default() },
            arrives: Some(Time(0)),
            script: Arc::new(Script::once(vec![Op::Run(Span(*span))])),
        };
        let model = Model { tasks: spans.iter().map(task).collect(), ..Model::default() };
        let load = Box::new(model.into_load().unwrap());
        let vm = Vm::new("a b", DomainId(1), Setup::new(machine), policy, load);
        Vm { named: Some(("rr", vec![("quantum".into(), "1ms".into())])), ..vm }
    }

    #[test]
    fn dom0_is_told_what_a_machine_is() {
        let mut vm = vm(2, &[5, 7]);
        vm.vcpus[1].affinity = CpuSet::of([CpuId(3)]);
        for vcpu in &mut vm.vcpus {
            (vcpu.period, vcpu.budget) = (Some(Span(100_000)), Some(Span(20_000)));
        }
        vm.start = Time(10);
        let text = Machines::of(vec![vm], Time(12)).unwrap().text;
        let (line, rest) = text.split_once('\n').unwrap().1.split_once('\n').unwrap();
        let masks = format!("cpus={},8", u64::MAX);
        let expected = "a\\sb vcpus=2 weight=256 cap=0 period=100000:20000 ";
        assert!(line.starts_with(&format!("{expected}{masks} begin=10 stop=12 ")), "{line}");
        assert!(rest.contains("policy rr\nset quantum 1ms\n"), "{rest}");
        // No task comes further than the end, 2 ns after the beginning.
        assert!(rest.ends_with("anysched-script 1\n0 t-0 c3\n0 t-1 c3\n"), "{rest}");
    }

    /// A machine that asks another every 100 ns, which answers; the second also has requests from
    /// outside.
    fn talking() -> Vec<Vm> {
        let fixed = |span| Dist::constant(Span(span));
        let ping = Ping {
            settings: Settings::default(),
            every: Span(100),
            offset: fixed(20),
            work: fixed(5),
            pings: None,
            port: Port(0),
        };
        let echo = Echo { settings: Settings::default(), work: fixed(7), port: Port(0) };
        let service = Service {
            settings: Settings::default(),
            servers: 1,
            gaps: fixed(60),
            service: fixed(9),
            hop: Span(10),
            requests: None,
            until: None,
        };
        let mix = Mix::new(vec![service.build(1, 1).unwrap(), echo.build(1, 1).unwrap()]);
        let wire = |vm, channel| Wire { vm, channel: Channel(channel), delay: Span(10) };
        let mut asker = vm(1, &[]);
        (asker.load, asker.ports) = (ping.build(1, 1).unwrap(), vec![wire(1, 1)]);
        let mut asked = vm(1, &[]);
        (asked.load, asked.ports) = (Box::new(mix), vec![wire(0, 0)]);
        vec![asker, asked]
    }

    #[test]
    fn dom0_is_told_of_messages() {
        let machines = Machines::of(talking(), Time(130)).unwrap();
        let read = domains::read(machines.text.as_bytes()).unwrap();
        let way = |machine, channel| Way { machine, channel, delay: 10 };
        assert_eq!(read[0].domain.ports, [way(1, 1)]);
        assert_eq!(read[1].domain.ports, [way(0, 0)]);
        assert_eq!(read[0].mail(), "");
        assert_eq!(read[1].mail(), "anysched-mail 1\n70 60 0 c9 q10\n130 120 0 c1\n");
        let tasks = &read[1].texts[read[1].start..read[1].start + read[1].script];
        assert!(tasks.ends_with("0 task-1 w1 c7 t0 w1\n"), "{tasks}");
    }

    #[test]
    fn messages_want_an_end() {
        let why = Machines::of(talking(), Time::NEVER).map(|_| ()).unwrap_err().0;
        assert!(why.starts_with("vm \"a b\": xen cannot tell when machines have no more"), "{why}");
        assert!(why.contains("give the experiment a `duration`"), "{why}");
        // It is enough that each of them has one.
        let mut vms = talking();
        vms.iter_mut().for_each(|vm| vm.stop = Time(100));
        assert!(Machines::of(vms, Time::NEVER).is_ok());
    }

    #[test]
    fn what_xen_cannot_do_is_refused_with_a_remedy() {
        let error = |vm: Vm| Machines::of(vec![vm], Time::NEVER).map(|_| ()).unwrap_err().0;
        let why = error(vm(33, &[1]));
        assert_eq!(why, "vm \"a b\": xen cannot give a domain 33 vCPUs: `vcpus` is 32 at most");
        let mut due = vm(1, &[1]);
        due.vcpus[0].relative_deadline = Some(Span(5));
        assert!(error(due).ends_with("leave `deadline` out"));
        let mut fine = vm(1, &[1]);
        (fine.vcpus[0].period, fine.vcpus[0].budget) = (Some(Span(1_500)), Some(Span(1_000)));
        assert!(error(fine).contains("whole ones"));
    }

    #[test]
    fn what_is_said_belongs_to_machines_by_number() {
        let text = |name: &str, number: u64| (name.to_string(), number);
        let vms = vec![vm(1, &[1]), vm(1, &[1])];
        let machines = Machines::of(vms, Time::NEVER).unwrap();
        let before = [("pool1.dispatches", 3), ("pool1.switches", 2), ("pool1.policy.x", 1)];
        let after = [("pool1.dispatches", 9), ("pool1.switches", 4), ("pool1.policy.x", 1)];
        let own = [("0.ran_ns", 50), ("0.work_ns", 40), ("0.tasks", 1), ("0.unfinished", 0)];
        let other = [("1.ran_ns", 30), ("1.work_ns", 30), ("1.tasks", 2), ("1.unfinished", 2)];
        let all = [&before[..], &own, &other, &after].concat();
        let said = Said {
            values: all.iter().map(|(name, number)| text(name, *number)).collect(),
            samples: vec![
                text("1.tardiness_ns", 5),
                text("0.wakeup_latency_ns", 7),
                text("1.round_trip_ns", 9),
            ],
            ..Said::default()
        };
        let setup = Setup::new(Machine::flat(1).unwrap());
        let outcome = machines.measured(said, &By::Own("stock-credit"), &setup, false);
        let metrics = outcome.metrics;
        assert_eq!((metrics.dispatches.get(), metrics.context_switches.get()), (Some(6), Some(2)));
        assert_eq!(metrics.busy.get(), Some(Span(80)));
        assert_eq!((metrics.tasks.get(), metrics.unfinished.get()), (Some(3), Some(2)));
        assert_eq!(metrics.vms[0].inside.overhead.get(), Some(Span(10)));
        assert_eq!(metrics.vms[0].inside.wakeup_latency.count(), 1);
        assert_eq!(metrics.vms[1].inside.tardiness.count(), 1);
        assert_eq!(metrics.vms[1].inside.round_trip.mean(), 9.0);
        assert_eq!(metrics.round_trip.count(), 1);
        assert_eq!(metrics.vms[1].inside.stolen.get(), None, "it did not say");
    }
}
