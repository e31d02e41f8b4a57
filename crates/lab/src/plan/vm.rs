//! `[[vm]]`: virtual machines.

use crate::plan::load::{Loads, Pinged};
use crate::plan::machine;
use crate::spec::error::{Fault, Faults};
use crate::spec::fields::{self, Fields, read_all};
use crate::spec::files::Files;
use crate::spec::keys;
use crate::spec::parts::ALL;
use crate::spec::sweep::{self, PolicyEntry};
use crate::spec::tree::{Entry, Node, Table, Value};
use anysched_core::params::weight_of_vcpu;
use anysched_core::registry;
use anysched_core::{CpuId, CpuSet, DomainId, DomainParams, MAX_CPUS, Span, TaskParams, Time};
use anysched_host::{Setup, Vm, Wire, as_text};
use anysched_policies::POLICIES;
use anysched_workload::kinds::Needs;
use anysched_workload::rng;
use anysched_workload::{Channel, Port};
use std::ops::Range;
use std::sync::Arc;

/// The virtual machines of a group of rows, checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vms {
    /// What is alike, by `[[vm]]`.
    kinds: Vec<Kind>,
    /// All of them.
    machines: Vec<Machine>,
}

/// One `[[vm]]`.
#[derive(Clone, Debug)]
struct Kind {
    name: String,
    count: usize,
    share: DomainParams,
    vcpus: Vec<TaskParams>,
    setup: Arc<Setup>,
    policy: PolicyEntry,
    start: Time,
    stop: Time,
    words: String,
}

#[derive(Clone, Debug)]
struct Machine {
    kind: usize,
    number: usize,
    loads: Loads,
    /// Where its ports lead: a machine, a load there, and how long it takes.
    ports: Vec<(usize, usize, Span)>,
}

impl Vms {
    /// Reads the list of virtual machines on a host of `cpus` CPUs.
    pub(crate) fn read(list: &Node, cpus: usize, files: &mut Files) -> Result<Vms, Fault> {
        let nodes = list.as_list().filter(|list| !list.is_empty()).ok_or_else(|| {
            Fault::at(&list.at, format!("`vm` is a list of tables, not {}", list.shown()))
                .help("each begins with a line `[[vm]]`")
        })?;
        let mut vms = Vms::default();
        let mut pinged = Vec::new();
        let mut faults = Faults::default();
        for node in nodes {
            let read = read_all(node, |node| read_kind(node, cpus, files));
            let Some((kind, loads)) = faults.take(read) else { continue };
            if kind.name == ALL || vms.kinds.iter().any(|other| other.name == kind.name) {
                return Err(Fault::at(&node.at, format!("the name \"{}\" is taken", kind.name))
                    .help(
                        "each [[vm]] has a name of its own; \"all\" is the host with all of them",
                    ));
            }
            for number in 0..kind.count {
                let (kind, loads, ports) = (vms.kinds.len(), loads.clone(), Vec::new());
                for ping in &loads.pinged {
                    pinged.push((vms.machines.len(), ping.clone()));
                }
                vms.machines.push(Machine { kind, number, loads, ports });
            }
            vms.kinds.push(kind);
        }
        faults.result()?;
        for (from, ping) in pinged {
            vms.connect(from, &ping)?;
        }
        if vms.machines.len() > MAX_VMS {
            let message = format!("{} virtual machines; at most {MAX_VMS}", vms.machines.len());
            return Err(Fault::at(&list.at, message).help("give them smaller values of `count`"));
        }
        Ok(vms)
    }

    /// Gives a machine that pings the way to another one, that a task that answers, and one between
    /// them tasks that hand messages on.
    fn connect(&mut self, from: usize, pinged: &Pinged) -> Result<(), Fault> {
        let to = self.partner(from, &pinged.pings.to, &pinged.to_at)?;
        let via = pinged.pings.via.as_ref().map(|(vm, _)| self.partner(from, vm, &pinged.via_at));
        let via = via.transpose()?;
        // Who asks a kind of which there are none gets no answer.
        let (Some(to), false) = (to, via == Some(None)) else {
            self.machines[from].loads.connect(pinged, NOWHERE);
            return Ok(());
        };
        let via = via.flatten();
        let answer = self.way(via, pinged, from, pinged.part);
        let back = self.next_port(to);
        self.machines[to].ports.push(answer);
        let answering = self.machines[to].loads.add("echo", pinged.pings.echo(back));
        let question = self.way(via, pinged, to, answering);
        let there = self.next_port(from);
        self.machines[from].ports.push(question);
        self.machines[from].loads.connect(pinged, there);
        Ok(())
    }

    /// The way to a load of the machine `to`: straight, or to a task between them that hands
    /// messages on.
    fn way(
        &mut self,
        via: Option<usize>,
        pinged: &Pinged,
        to: usize,
        part: usize,
    ) -> (usize, usize, Span) {
        let straight = (to, part, pinged.pings.hop);
        let Some(via) = via else { return straight };
        let port = self.next_port(via);
        let Some(forwarder) = pinged.pings.forwarder(port) else { return straight };
        self.machines[via].ports.push(straight);
        (via, self.machines[via].loads.add("forward", forwarder), pinged.pings.hop)
    }

    /// The port that a machine gets next.
    fn next_port(&self, machine: usize) -> Port {
        Port(self.machines[machine].ports.len() as u32)
    }

    /// The machine of a kind that goes with this one, if there are any of that kind.
    fn partner(
        &self,
        machine: usize,
        kind: &str,
        named_at: &Range<usize>,
    ) -> Result<Option<usize>, Fault> {
        let Some(number) = self.kinds.iter().position(|known| known.name == kind) else {
            let names = self.kinds.iter().map(|kind| kind.name.as_str());
            return Err(Fault::at(named_at, format!("no [[vm]] is called \"{kind}\""))
                .help(fields::hint(kind, names)));
        };
        let count = self.kinds[number].count;
        if count == 0 {
            return Ok(None);
        }
        let partner = self.machines[machine].number % count;
        let is_it = |vm: &Machine| vm.kind == number && vm.number == partner;
        Ok(self.machines.iter().position(is_it))
    }

    /// What their loads need from a host.
    pub(crate) fn needs(&self) -> Needs {
        self.machines.iter().map(|vm| vm.loads.needs()).fold(Needs::NOTHING, Needs::or)
    }

    /// Whether there is no `[[vm]]`. There may be one and no machine, if its `count` is 0.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// CPUs of all machines together.
    pub(crate) fn vcpus(&self) -> usize {
        self.machines.iter().map(|machine| self.kinds[machine.kind].vcpus.len()).sum()
    }

    /// The names of the kinds, and what their loads are called.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.kinds.iter().enumerate().map(|(number, kind)| {
            // Those that answer for others may have more.
            let machines = self.machines.iter().filter(|machine| machine.kind == number);
            let names = machines.map(|machine| &machine.loads.names[..]);
            (kind.name.as_str(), names.max_by_key(|names| names.len()).unwrap_or_default())
        })
    }

    /// In words, one each.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.words.as_str())
    }

    /// The kind of the machine with this number.
    pub(crate) fn kind_of(&self, number: usize) -> usize {
        self.machines[number].kind
    }

    /// The loads of each machine.
    pub(crate) fn loads(&self) -> impl Iterator<Item = &Loads> {
        self.machines.iter().map(|machine| &machine.loads)
    }

    /// Where the first load is written that never ends.
    pub(crate) fn endless(&self) -> Option<&Range<usize>> {
        self.machines.iter().find_map(|vm| vm.loads.endless.as_ref())
    }

    /// The name and the scheduler of each machine.
    pub(crate) fn policies(&self) -> impl Iterator<Item = (String, &PolicyEntry)> {
        self.machines.iter().map(|machine| {
            let kind = &self.kinds[machine.kind];
            (kind.full_name(machine.number), &kind.policy)
        })
    }

    /// The virtual machines as the run with this seed has them, their schedulers with these
    /// settings.
    ///
    /// Errors: a policy or a load is refused after all.
    pub(crate) fn build(
        &self,
        seed: u64,
        settings: &[registry::Settings],
    ) -> Result<Vec<Vm>, String> {
        let mut channels = Vec::with_capacity(self.machines.len());
        let mut vms = Vec::with_capacity(self.machines.len());
        for (domain, machine) in self.machines.iter().enumerate() {
            let kind = &self.kinds[machine.kind];
            let seed = rng::derive(seed, &format!("vm.{}.{}", kind.name, machine.number));
            let (load, first_channels) = machine.loads.build_with_channels(seed)?;
            channels.push(first_channels);
            let own = &settings[domain];
            let policy = (kind.policy.info.build)(&kind.setup.machine, &as_text(own));
            let policy = policy.map_err(|error| error.to_string())?;
            let setup = Setup::clone(&kind.setup);
            // Domain 0 is that of tasks outside.
            let mut vm = Vm::new(
                &kind.full_name(machine.number),
                DomainId(domain as u16 + 1),
                setup,
                policy,
                load,
            );
            vm.named = Some((kind.policy.info.name, own.clone()));
            vm.share = kind.share;
            vm.vcpus.clone_from(&kind.vcpus);
            (vm.start, vm.stop) = (kind.start, kind.stop);
            vms.push(vm);
        }
        for (vm, machine) in vms.iter_mut().zip(&self.machines) {
            let wire = |&(to, part, delay): &(usize, usize, Span)| Wire {
                vm: to,
                channel: Channel(channels[to][part]),
                delay,
            };
            vm.ports = machine.ports.iter().map(wire).collect();
        }
        Ok(vms)
    }
}

/// Domains are numbered with 16 bits.
const MAX_VMS: usize = 10_000;

/// A port that leads to no machine.
const NOWHERE: Port = Port(u32::MAX);

impl Kind {
    fn full_name(&self, number: usize) -> String {
        if self.count == 1 { self.name.clone() } else { format!("{}-{number}", self.name) }
    }
}

fn read_kind(node: &Node, cpus: usize, files: &mut Files) -> Result<(Kind, Loads), Fault> {
    let fields = Fields::of(node, &keys::VM)?;
    let name_node = fields.need("name", "\"web\"")?;
    let name = fields::name(name_node, "name")?.to_string();
    if name.trim().is_empty() {
        return Err(Fault::at(&name_node.at, "a virtual machine without a name")
            .help("rows and claims call it by its name: `name = \"web\"`"));
    }
    let setup = read_machine(&fields, files)?;
    let default = POLICIES.iter().find(|info| info.is_default_guest);
    let policy = match (fields.get("policy"), default) {
        (None, Some(default)) => sweep::read_policies(&Node::of_text(default.name, &node.at))?,
        _ => sweep::read_policies(fields.need("policy", "\"NAME\"")?)?,
    };
    let [mut policy] = <[PolicyEntry; 1]>::try_from(policy).map_err(|policies| {
        let message = format!("a virtual machine has one scheduler, not {}", policies.len());
        Fault::at(fields.get("policy").map_or(&node.at, |policy| &policy.at), message)
            .help("to compare several, make them an axis: `\"vm.0.policy\" = [\"cfs\", \"rr\"]`")
    })?;
    policy.refuse_changes("the scheduler of a virtual machine")?;
    policy.read_files(files)?;
    policy.build(&setup.machine)?;
    let vcpus = setup.machine.cpus();
    let count = fields.whole("count", 0..=MAX_VMS)?.unwrap_or(1);
    let share = DomainParams {
        weight: fields.whole("weight", 1..=65535)?.unwrap_or(256),
        cap_percent: fields.whole("cap", 0..=102_400)?.unwrap_or(0),
    };
    let vcpus = read_vcpus(&fields, &share, vcpus, cpus)?;
    let start = Time::ZERO + fields.span("start")?.unwrap_or_default();
    let stop = fields.span("stop")?.map_or(Time::NEVER, |span| Time::ZERO + span);
    if stop <= start {
        let at = fields.get("stop").map_or(&node.at, |stop| &stop.at);
        return Err(Fault::at(at, format!("\"{name}\" stops before it has started"))
            .help("`stop` is later than `start`; both count from the beginning of the run"));
    }
    let loads = match fields.get("workload") {
        Some(list) if list.as_list().is_none_or(<[Node]>::is_empty) => {
            let message = format!("`workload` is a list of tables, not {}", list.shown());
            return Err(Fault::at(&list.at, message)
                .help("each begins with a line `[[vm.workload]]`; without any, it is idle"));
        }
        Some(list) => Loads::read(list, setup.machine.cpus(), files)?,
        None => Loads::none(setup.machine.cpus()),
    };
    let words = describe(&name, count, &share, &setup, &policy, &loads);
    let kind =
        Kind { name, count, share, vcpus, setup: Arc::new(setup), policy, start, stop, words };
    Ok((kind, loads))
}

fn read_machine(fields: &Fields<'_>, files: &mut Files) -> Result<Setup, Fault> {
    fields.whole("vcpus", 1..=MAX_CPUS)?;
    match (fields.get("vcpus"), fields.get("machine")) {
        (Some(vcpus), Some(machine))
            if machine.as_table().is_some_and(|table| {
                table.get("cpus").is_some() || table.get("topology").is_some()
            }) =>
        {
            Err(Fault::at(&vcpus.at, "the CPUs of the virtual machine are given twice")
                .help("keep `vcpus`, or `cpus` or `topology` in its `machine`"))
        }
        (vcpus, machine) => {
            let mut table = machine.map_or(Ok(Table::default()), |node| {
                node.as_table().cloned().ok_or_else(|| {
                    Fault::at(&node.at, format!("`machine` is a table, not {}", node.shown()))
                })
            })?;
            let at = machine.or(vcpus).map_or(fields.at().clone(), |node| node.at.clone());
            if table.get("cpus").is_none() && table.get("topology").is_none() {
                let value = vcpus.map_or(Value::Integer(1), |node| node.value.clone());
                let at = vcpus.map_or(at.clone(), |node| node.at.clone());
                let node = Node { value, at: at.clone() };
                table.0.push(Entry { key: "cpus".to_string(), key_at: at, node });
            }
            if let Some(entry) = table.entry("hotplug") {
                return Err(Fault::at(
                    &entry.key_at,
                    "the CPUs of a virtual machine do not come and go",
                )
                .help("leave `hotplug` out; the machine itself has `start` and `stop`"));
            }
            if let Some(entry) = table.entry("kernel_options") {
                return Err(Fault::at(&entry.key_at, "no kernel boots in a virtual machine")
                    .help("leave `kernel_options` out; [machine] has those of the kernel below"));
            }
            machine::setup(&Node { value: Value::Table(table), at }, files)
        }
    }
}

/// What the host's policy may know of each vCPU.
fn read_vcpus(
    fields: &Fields<'_>,
    share: &DomainParams,
    vcpus: usize,
    cpus: usize,
) -> Result<Vec<TaskParams>, Fault> {
    let all = TaskParams {
        weight: weight_of_vcpu(share.weight),
        period: fields.span("period")?,
        budget: fields.span("budget")?,
        relative_deadline: fields.span("deadline")?,
        ..TaskParams::default()
    };
    let affinities = read_sets(fields, "affinity", vcpus, cpus)?;
    let preferred = read_sets(fields, "preferred", vcpus, cpus)?;
    let both = affinities.into_iter().zip(preferred);
    let params = |(affinity, preferred)| TaskParams { affinity, preferred, ..all.clone() };
    Ok(both.map(params).collect())
}

/// Sets of the host's CPUs, one for each vCPU.
fn read_sets(
    fields: &Fields<'_>,
    key: &str,
    vcpus: usize,
    cpus: usize,
) -> Result<Vec<CpuSet>, Fault> {
    let Some(node) = fields.get(key) else { return Ok(vec![CpuSet::All; vcpus]) };
    match &node.value {
        Value::List(list) if list.len() != vcpus => {
            let count = list.len();
            let message =
                format!("`{key}` has {count} entries, and the virtual machine has {vcpus} CPUs");
            Err(Fault::at(&node.at, message).help("give one for all, or a list with one each"))
        }
        Value::List(list) => list.iter().map(|node| read_set(node, key, cpus)).collect(),
        _ => Ok(vec![read_set(node, key, cpus)?; vcpus]),
    }
}

fn read_set(node: &Node, key: &str, cpus: usize) -> Result<CpuSet, Fault> {
    let set = fields::cpus(node, key)?;
    if (0..cpus).any(|cpu| set.contains(CpuId(cpu as u16))) {
        return Ok(set);
    }
    let message = format!("`{key}` = {node}: none of these is a CPU of the host");
    Err(Fault::at(&node.at, message).help(format!("it has {cpus}, numbered from 0")))
}

fn describe(
    name: &str,
    count: usize,
    share: &DomainParams,
    setup: &Setup,
    policy: &PolicyEntry,
    loads: &Loads,
) -> String {
    let mut text = if count == 1 { format!("vm {name}") } else { format!("{count} vm {name}") };
    text += &format!(": {}, {}", machine::describe(setup), policy.label);
    if share.weight != 256 {
        text += &format!(", weight {}", share.weight);
    }
    if share.cap_percent > 0 {
        text += &format!(", cap {} %", share.cap_percent);
    }
    for words in &loads.words {
        text += &format!(", {words}");
    }
    text
}
