//! Machines read from sysfs trees, from hwloc's XML and from lscpu's JSON.

use anysched_core::machine::{Cpu, Level};
use anysched_core::{CpuId, Machine};
use anysched_lab::Experiment;
use anysched_topology::{self as topology, Topology};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A CPU in a tree: where it is, and which of the operating system's CPUs share what with it.
#[derive(Clone)]
struct Linux {
    number: u32,
    threads: String,
    core: u32,
    package: i32,
    /// Level, type and the CPUs that share it.
    caches: Vec<(u32, &'static str, String)>,
    capacity: Option<u32>,
}

/// Files as under `/sys`.
struct Tree(TempDir);

impl Tree {
    fn new(online: &str, cpus: &[Linux], nodes: &[&str]) -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        tree.write("cpu/online", online);
        for cpu in cpus {
            let file = |name: &str| format!("cpu/cpu{}/{name}", cpu.number);
            tree.write(&file("topology/core_cpus_list"), &cpu.threads);
            tree.write(&file("topology/thread_siblings_list"), &cpu.threads);
            tree.write(&file("topology/core_id"), &cpu.core.to_string());
            tree.write(&file("topology/physical_package_id"), &cpu.package.to_string());
            for (index, (level, kind, shared)) in cpu.caches.iter().enumerate() {
                let file = |name: &str| file(&format!("cache/index{index}/{name}"));
                tree.write(&file("level"), &level.to_string());
                tree.write(&file("type"), kind);
                tree.write(&file("shared_cpu_list"), shared);
            }
            if let Some(capacity) = cpu.capacity {
                tree.write(&file("cpu_capacity"), &capacity.to_string());
            }
        }
        for (node, cpus) in nodes.iter().enumerate() {
            tree.write(&format!("node/node{node}/cpulist"), cpus);
        }
        tree
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join("devices/system").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn remove(&self, name: &str) {
        let path = self.path(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    fn read(&self) -> Topology {
        topology::sysfs(self.0.path()).unwrap()
    }

    /// The error, without the folder's name.
    fn refused(&self) -> String {
        let error = topology::sysfs(self.0.path()).unwrap_err().to_string();
        error.replace(&self.0.path().display().to_string(), "/sys")
    }
}

/// CPUs of a package whose `cores` cores have the CPUs `c` and, with two threads, `c + second`.
fn package(package: i32, first: u32, cores: u32, second: Option<u32>, l3: &str) -> Vec<Linux> {
    let mut cpus = Vec::new();
    for number in first..first + cores {
        let siblings = second.map(|second| [number, number + second]);
        let threads = siblings.map_or(number.to_string(), |[a, b]| format!("{a},{b}"));
        for number in siblings.map_or(vec![number], Vec::from) {
            cpus.push(Linux {
                number,
                threads: threads.clone(),
                core: (number - first) % cores,
                package,
                caches: vec![
                    (1, "Data", threads.clone()),
                    (1, "Instruction", threads.clone()),
                    (2, "Unified", threads.clone()),
                    (3, "Unified", l3.to_string()),
                ],
                capacity: None,
            });
        }
    }
    cpus
}

/// The groups of each level as lists of CPUs, and the counts.
fn groups(machine: &Machine, level: Level) -> Vec<Vec<u16>> {
    let members = |group| machine.members(level, group as u16).iter().map(|cpu| cpu.0).collect();
    (0..machine.groups(level)).map(members).collect()
}

fn counts(machine: &Machine) -> [usize; 5] {
    Level::ALL.map(|level| machine.groups(level))
}

/// An i7-3770: four cores of two threads; the second threads are numbered after all first ones.
fn i7_3770() -> Tree {
    Tree::new("0-7", &package(0, 0, 4, Some(4), "0-7"), &["0-7"])
}

/// The same machine, built by hand.
fn i7_3770_by_hand() -> Machine {
    let cpu = |n: u16| Cpu { core: n % 4, llc: 0, package: 0, node: 0, capacity: 1024 };
    Machine::new((0..8).map(cpu).collect()).unwrap()
}

/// Two packages of four cores of two threads, with a node each.
fn two_sockets() -> Tree {
    let cpus = [package(0, 0, 4, Some(8), "0-3,8-11"), package(1, 4, 4, Some(8), "4-7,12-15")];
    Tree::new("0-15", &cpus.concat(), &["0-3,8-11", "4-7,12-15"])
}

fn two_sockets_by_hand() -> Machine {
    let cpu = |n: u16| {
        let package = n / 4 % 2;
        Cpu { core: n % 8, llc: package, package, node: package, capacity: 1024 }
    };
    Machine::new((0..16).map(cpu).collect()).unwrap()
}

/// A package of four CCXs, each with two cores of two threads; `nodes` are its NUMA nodes.
fn epyc(nodes: &[&str]) -> Tree {
    let mut cpus = Vec::new();
    for ccx in 0..4 {
        let first = 2 * ccx;
        let l3 = format!("{}-{},{}-{}", first, first + 1, first + 8, first + 9);
        let mut here = package(0, first, 2, Some(8), &l3);
        for cpu in &mut here {
            cpu.core = cpu.number % 8;
        }
        cpus.extend(here);
    }
    Tree::new("0-15", &cpus, nodes)
}

fn epyc_by_hand(nodes: u16) -> Machine {
    let cpu = |n: u16| {
        let (core, node) = (n % 8, n % 8 * nodes / 8);
        Cpu { core, llc: core / 2, package: node, node, capacity: 1024 }
    };
    Machine::new((0..16).map(cpu).collect()).unwrap()
}

#[test]
fn smt_siblings_need_not_be_adjacent() {
    let found = i7_3770().read();
    assert_eq!(found.machine, i7_3770_by_hand());
    assert_eq!(groups(&found.machine, Level::Core), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    assert_eq!(found.warnings, [""; 0]);
    assert_eq!(topology::in_words(&found.machine).as_deref(), Some("4 cores x 2 threads"));
    assert_eq!(two_sockets().read().machine, two_sockets_by_hand());
}

#[test]
fn old_kernels_name_siblings_otherwise_or_number_cores() {
    let tree = i7_3770();
    for cpu in 0..8 {
        tree.remove(&format!("cpu/cpu{cpu}/topology/core_cpus_list"));
    }
    assert_eq!(tree.read().machine, i7_3770_by_hand());
    let tree = two_sockets();
    for cpu in 0..16 {
        tree.remove(&format!("cpu/cpu{cpu}/topology/core_cpus_list"));
        tree.remove(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
    }
    assert_eq!(tree.read().machine, two_sockets_by_hand(), "core 0 is in both packages");
}

#[test]
fn packages_have_several_caches() {
    let found = epyc(&["0-15"]).read();
    assert_eq!(found.machine, epyc_by_hand(1));
    assert_eq!(groups(&found.machine, Level::Llc)[1], [2, 3, 10, 11]);
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn nodes_inside_a_package_split_it() {
    let found = epyc(&["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]).read();
    assert_eq!(found.machine, epyc_by_hand(4));
    assert_eq!(found.warnings.len(), 1);
    assert!(found.warnings[0].starts_with("a package has several NUMA nodes inside"));
    // Intel's sub-NUMA clusters also divide the CPUs behind the package's single cache.
    let tree = Tree::new("0-3", &package(0, 0, 4, None, "0-3"), &["0-1", "2-3"]);
    let found = tree.read();
    assert_eq!(found.machine, Machine::parse("2 nodes x 2 cores").unwrap());
    assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
}

#[test]
fn what_is_offline_leaves_no_hole() {
    // The kernel omits offline CPUs from all lists: here 2, 3 and 5.
    let mut cpus = package(0, 0, 4, Some(4), "0-1,4,6-7");
    cpus.retain(|cpu| ![2, 3, 5].contains(&cpu.number));
    for cpu in &mut cpus {
        cpu.threads = if cpu.number % 4 == 0 { "0,4".into() } else { cpu.number.to_string() };
        cpu.caches = vec![(3, "Unified", "0-1,4,6-7".to_string())];
    }
    let tree = Tree::new("0-1,4,6-7", &cpus, &["0-1,4,6-7"]);
    let found = tree.read();
    assert_eq!(found.numbers, [0, 1, 4, 6, 7]);
    assert_eq!(groups(&found.machine, Level::Core), [vec![0, 2], vec![1], vec![3], vec![4]]);
    assert_eq!(counts(&found.machine), [4, 1, 1, 1, 1]);
    assert_eq!(topology::in_words(&found.machine), None);
    // Without the list, each CPU's own file counts.
    tree.remove("cpu/online");
    tree.write("cpu/cpu7/online", "0");
    tree.write("cpu/cpu6/online", "1");
    assert_eq!(tree.read().numbers, [0, 1, 4, 6]);
}

#[test]
fn cpus_differ_in_capacity() {
    let mut cpus = package(0, 0, 8, None, "0-7");
    for cpu in &mut cpus {
        let cluster = if cpu.number < 4 { "0-3" } else { "4-7" };
        cpu.caches = vec![
            (1, "Instruction", cpu.number.to_string()),
            (1, "Data", cpu.number.to_string()),
            (2, "Unified", cluster.to_string()),
        ];
        cpu.capacity = Some(if cpu.number < 4 { 231 } else { 512 });
    }
    let found = Tree::new("0-7", &cpus, &[]).read();
    assert_eq!(groups(&found.machine, Level::Llc), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    let capacity = |cpu| found.machine.cpu(CpuId(cpu)).capacity;
    assert_eq!([0, 3, 4, 7].map(capacity), [462, 462, 1024, 1024]);
    assert_eq!(topology::in_words(&found.machine), None);
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn kernels_may_say_little() {
    let tree = Tree::new("0-3", &[], &[]);
    let found = tree.read();
    assert_eq!(found.machine, Machine::flat(4).unwrap());
    assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    // Packages unknown to the kernel are numbered -1.
    let cpus = package(-1, 0, 4, None, "0-3");
    assert_eq!(Tree::new("0-3", &cpus, &["0-3"]).read().machine, Machine::flat(4).unwrap());
}

/// The tree in which Linux would describe a machine.
fn tree_of(machine: &Machine) -> Tree {
    let list = |level, cpu| {
        let members = machine.sharing(level, cpu).iter().map(|cpu| cpu.0.to_string());
        members.collect::<Vec<_>>().join(",")
    };
    let cpu = |id: CpuId| {
        let Cpu { core, package, .. } = *machine.cpu(id);
        let first = machine.cpu(machine.sharing(Level::Package, id)[0]).core;
        let threads = list(Level::Core, id);
        Linux {
            number: u32::from(id.0),
            threads: threads.clone(),
            core: u32::from(core - first),
            package: i32::from(package),
            caches: vec![(1, "Data", threads), (3, "Unified", list(Level::Llc, id))],
            capacity: None,
        }
    };
    let cpus: Vec<Linux> = machine.cpu_ids().map(cpu).collect();
    let node = |node| list(Level::Node, machine.members(Level::Node, node as u16)[0]);
    let nodes: Vec<String> = (0..machine.groups(Level::Node)).map(node).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    Tree::new(&format!("0-{}", machine.cpus() - 1), &cpus, &nodes)
}

#[test]
fn every_machine_in_words_comes_back_from_its_tree() {
    let mut read = 0;
    let counts = (0..3u32.pow(5)).map(|n| [1, 3, 9, 27, 81].map(|power| n / power % 3 + 1));
    let shapes = counts.filter(|counts| counts.iter().product::<u32>() <= 8);
    for [nodes, packages, llcs, cores, threads] in shapes.chain([[2, 2, 2, 4, 2]]) {
        let words = format!(
            "{nodes} nodes x {packages} packages x {llcs} llcs x {cores} cores x {threads} threads"
        );
        let machine = Machine::parse(&words).unwrap();
        let found = tree_of(&machine).read();
        assert_eq!(found.machine, machine, "{words}");
        assert_eq!(found.warnings, [""; 0], "{words}");
        let words = topology::in_words(&machine).unwrap();
        assert_eq!(Machine::parse(&words).as_ref(), Ok(&machine), "{words}");
        read += 1;
    }
    assert_eq!(read, 52);
}

/// Output in JSON is valid input.
#[test]
fn machines_come_back_from_their_json() {
    for tree in [i7_3770(), two_sockets(), epyc(&["0-3,8-11", "4-7,12-15"])] {
        let found = tree.read();
        let text = format!("{{\"cpus\":{}}}", topology::cpus_in_json(&found));
        let again = topology::parse("x.json", text.as_bytes()).unwrap();
        assert_eq!((again.machine, again.numbers), (found.machine, found.numbers));
    }
}

fn xml(inner: &str) -> Topology {
    topology::parse("x.xml", wrapped(inner).as_bytes()).unwrap()
}

fn wrapped(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n\
         <topology version=\"2.0\">\n{inner}</topology>\n"
    )
}

/// An hwloc object with a set of CPUs.
fn object(kind: &str, index: u32, cpus: u64, inner: &str) -> String {
    let set = match cpus >> 32 {
        0 => format!("0x{cpus:08x}"),
        high => format!("0x{high:08x},0x{:08x}", cpus & 0xffff_ffff),
    };
    format!(
        "<object type=\"{kind}\" os_index=\"{index}\" cpuset=\"{set}\" complete_cpuset=\"{set}\">\n\
         {inner}</object>\n"
    )
}

fn core(index: u32, cpus: &[u32]) -> String {
    let set = cpus.iter().fold(0, |set, cpu| set | 1 << cpu);
    let units: String = cpus.iter().map(|&cpu| object("PU", cpu, 1 << cpu, "")).collect();
    let core = object("Core", index, set, &units);
    object("L2Cache", 0, set, &object("L1Cache", 0, set, &object("L1iCache", 0, set, &core)))
}

#[test]
fn hwloc_2_has_nodes_beside_what_they_hold() {
    let cores: String = (0..4).map(|n| core(n, &[n, n + 4])).collect();
    let node = object("NUMANode", 0, 0xff, "<page_type size=\"4096\" count=\"1\"/>");
    let l3 = node + &object("L3Cache", 0, 0xff, &cores);
    let found = xml(&object("Machine", 0, 0xff, &object("Package", 0, 0xff, &l3)));
    assert_eq!(found.machine, i7_3770_by_hand());
    assert_eq!(found.warnings, [""; 0]);

    let half = |package: u32, set| {
        let cores: String =
            (0..4).map(|n| core(n, &[4 * package + n, 4 * package + n + 8])).collect();
        let node = object("NUMANode", package, set, "");
        object("Package", package, set, &(node + &object("L3Cache", 0, set, &cores)))
    };
    let found = xml(&object("Machine", 0, 0xffff, &(half(0, 0x0f0f) + &half(1, 0xf0f0))));
    assert_eq!(found.machine, two_sockets_by_hand());
}

#[test]
fn hwloc_2_groups_the_nodes_of_a_package() {
    let ccx = |n: u32| {
        let set = 0b11 << (2 * n) | 0b11 << (2 * n + 8);
        let cores: String = (2 * n..2 * n + 2).map(|n| core(n, &[n, n + 8])).collect();
        let node = object("NUMANode", n, set, "");
        object("Group", 0, set, &(node + &object("L3Cache", n, set, &cores)))
    };
    let groups: String = (0..4).map(ccx).collect();
    let found = xml(&object("Machine", 0, 0xffff, &object("Package", 0, 0xffff, &groups)));
    assert_eq!(found.machine, epyc_by_hand(4));
    assert_eq!(found.warnings.len(), 1);
}

/// An i7-3770 as version 1 writes it, with CPUs 3 and 7 offline but listed.
const VERSION_1: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc.dtd">
<topology>
  <object type="Machine" os_level="-1" os_index="0" cpuset="0x000000ff" complete_cpuset="0x000000ff" online_cpuset="0x00000077" allowed_cpuset="0x000000ff" local_memory="8253472768">
    <page_type size="4096" count="2014998"/>
    <info name="Backend" value="Linux"/>
    <object type="NUMANode" os_index="0" cpuset="0x000000ff" nodeset="0x00000001">
      <object type="Socket" os_level="-1" os_index="0" cpuset="0x000000ff">
        <object type="Cache" os_level="-1" cpuset="0x000000ff" cache_size="8388608" depth="3" cache_linesize="64" cache_associativity="16" cache_type="0">
          <object type="Core" os_index="0" cpuset="0x00000011">
            <object type="Cache" cpuset="0x00000011" depth="1" cache_type="1"/>
            <object type="PU" os_index="0" cpuset="0x00000001"/>
            <object type="PU" os_index="4" cpuset="0x00000010"/>
          </object>
          <object type="Core" os_index="1" cpuset="0x00000022">
            <object type="PU" os_index="1" cpuset="0x00000002"/>
            <object type="PU" os_index="5" cpuset="0x00000020"/>
          </object>
          <object type="Core" os_index="2" cpuset="0x00000044">
            <object type="PU" os_index="2" cpuset="0x00000004"/>
            <object type="PU" os_index="6" cpuset="0x00000040"/>
          </object>
          <object type="Core" os_index="3" cpuset="0x00000088">
            <object type="PU" os_index="3" cpuset="0x00000008" online_cpuset="0x0"/>
            <object type="PU" os_index="7" cpuset="0x00000080" online_cpuset="0x0"/>
          </object>
        </object>
      </object>
    </object>
  </object>
</topology>
"#;

#[test]
fn hwloc_1_has_nodes_around_what_they_hold() {
    let found = topology::parse("x.xml", VERSION_1.as_bytes()).unwrap();
    assert_eq!(found.numbers, [0, 1, 2, 4, 5, 6]);
    assert_eq!(groups(&found.machine, Level::Core), [[0, 3], [1, 4], [2, 5]]);
    assert_eq!(counts(&found.machine), [3, 1, 1, 1, 1]);
    let all = VERSION_1.replace("0x00000077", "0x000000ff").replace("online_cpuset=\"0x0\"", "");
    assert_eq!(topology::parse("x.xml", all.as_bytes()).unwrap().machine, i7_3770_by_hand());
}

#[test]
fn hwloc_has_high_numbers_memory_and_kinds() {
    // CPUs 3 and 33, with one memory node for both and one without CPUs.
    let cpu = |n: u32| {
        let set = 1 << n;
        object("NUMANode", n, set, "") + &object("Package", n, set, &core(n, &[n]))
    };
    let memory = object("NUMANode", 90, 0, "") + &object("NUMANode", 91, 1 << 3 | 1 << 33, "");
    let kind = |set: &str, capacity: &str| {
        format!(
            "<cpukind cpuset=\"{set}\"><info name=\"LinuxCapacity\" value=\"{capacity}\"/></cpukind>"
        )
    };
    let machine = object("Machine", 0, 1 << 3 | 1 << 33, &(memory + &cpu(3) + &cpu(33)));
    let kinds = kind("0x00000002,0x0", "800") + &kind("0x00000008", "400");
    let found = xml(&(machine.clone() + &kinds));
    assert_eq!(found.numbers, [3, 33]);
    assert_eq!(counts(&found.machine), [2, 2, 2, 2, 1]);
    let capacity = |cpu| found.machine.cpu(CpuId(cpu)).capacity;
    assert_eq!([0, 1].map(capacity), [512, 1024]);
    assert_eq!(found.warnings, ["ignoring a NUMA node without CPUs of its own"]);
    let unknown = xml(&(machine + &kinds.replace("LinuxCapacity", "CoreType")));
    assert!(unknown.warnings[1].starts_with("there are 2 kinds of CPUs"));
}

/// `lscpu -J -e` of a machine; if `old`, numbers are strings, as before version 2.37.
fn lscpu_list(machine: &Machine, old: bool) -> String {
    let mut rows = Vec::new();
    for id in machine.cpu_ids() {
        let Cpu { core, llc, package, node, .. } = *machine.cpu(id);
        let caches = format!("\"l1d:l1i:l2:l3\":\"{core}:{core}:{core}:{llc}\"");
        let cpu = id.0;
        rows.push(match old {
            true => format!(
                "{{\"cpu\": \"{cpu}\", \"node\": \"{node}\", \"socket\": \"{package}\", \
                 \"core\": \"{core}\", {caches}, \"online\": \"yes\", \"maxmhz\": \"3900,0000\"}}"
            ),
            false => format!(
                "{{\"cpu\": {cpu}, \"node\": {node}, \"socket\": {package}, \"core\": {core}, \
                 {caches}, \"online\": true, \"maxmhz\": 3900.0, \"mhz\": \"-\"}}"
            ),
        });
    }
    format!("{{\"cpus\": [{}]}}", rows.join(","))
}

fn json(text: &str) -> Topology {
    topology::parse("x.json", text.as_bytes()).unwrap()
}

#[test]
fn lscpu_lists_cpus() {
    for machine in [i7_3770_by_hand(), two_sockets_by_hand(), epyc_by_hand(1)] {
        for old in [false, true] {
            let found = json(&lscpu_list(&machine, old));
            assert_eq!(found.machine, machine);
            assert_eq!(found.warnings, [""; 0]);
        }
    }
}

#[test]
fn lscpu_lists_cpus_that_are_offline_or_of_other_kinds() {
    // Core ids restart in each kind, and the last CPU has no level 3 cache.
    let text = r#"{"cpus": [
        {"cpu":0, "node":"-", "socket":0, "core":0, "l1d:l1i:l2:l3":"0:0:0:0", "online":true},
        {"cpu":1, "node":"-", "socket":0, "core":1, "l1d:l1i:l2:l3":"1:1:0:0", "online":true},
        {"cpu":2, "node":"-", "socket":"-", "core":"-", "l1d:l1i:l2:l3":"-", "online":false},
        {"cpu":5, "node":"-", "socket":0, "core":0, "l1d:l1i:l2:l3":"2:2:2:0", "online":true},
        {"cpu":6, "node":"-", "socket":0, "core":1, "l1d:l1i:l2:l3":"3:3:3", "online":true}]}"#;
    let found = json(text);
    assert_eq!(found.numbers, [0, 1, 5, 6]);
    assert_eq!(groups(&found.machine, Level::Core), [[0], [1], [2], [3]]);
    assert_eq!(groups(&found.machine, Level::Llc), [vec![0, 1, 2], vec![3]]);
}

/// Fields of `lscpu -J` for an EPYC with two sockets of four nodes each.
const FIELDS: [(&str, &str); 20] = [
    ("Architecture:", "x86_64"),
    ("CPU(s):", "96"),
    ("On-line CPU(s) list:", "0-95"),
    ("Model name:", "AMD EPYC 7451 24-Core Processor"),
    ("Thread(s) per core:", "2"),
    ("Core(s) per socket:", "24"),
    ("Socket(s):", "2"),
    ("L1d cache:", "1.5 MiB (48 instances)"),
    ("L1i cache:", "3 MiB (48 instances)"),
    ("L2 cache:", "24 MiB (48 instances)"),
    ("L3 cache:", "128 MiB (16 instances)"),
    ("NUMA node(s):", "8"),
    ("NUMA node0 CPU(s):", "0-5,48-53"),
    ("NUMA node1 CPU(s):", "6-11,54-59"),
    ("NUMA node2 CPU(s):", "12-17,60-65"),
    ("NUMA node3 CPU(s):", "18-23,66-71"),
    ("NUMA node4 CPU(s):", "24-29,72-77"),
    ("NUMA node5 CPU(s):", "30-35,78-83"),
    ("NUMA node6 CPU(s):", "36-41,84-89"),
    ("NUMA node7 CPU(s):", "42-47,90-95"),
];

fn flat(fields: &[(&str, &str)]) -> String {
    let field = |(key, data): &(&str, &str)| format!("{{\"field\":\"{key}\",\"data\":\"{data}\"}}");
    let fields: Vec<String> = fields.iter().map(field).collect();
    format!("{{\"lscpu\":[{}]}}", fields.join(","))
}

#[test]
fn lscpu_counts_in_its_summary() {
    let found = json(&flat(&FIELDS));
    assert_eq!(counts(&found.machine), [48, 16, 8, 8, 1]);
    assert_eq!(groups(&found.machine, Level::Core)[47], [47, 95]);
    assert_eq!(groups(&found.machine, Level::Llc)[1], [3, 4, 5, 51, 52, 53]);
    assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    // The same fields, nested in others.
    let fields = flat(&FIELDS).replace("{\"lscpu\":[", "").replace("]}", "");
    let nested = format!(
        "{{\"lscpu\":[{{\"field\":\"CPU\",\"data\":null,\"children\":[{{\"field\":\"x\",\
         \"data\":\"\",\"children\":[{fields}]}}]}}]}}"
    );
    assert_eq!(json(&nested), found);
}

#[test]
fn lscpu_counts_threads_that_are_adjacent_or_not() {
    let power = [
        ("Architecture:", "ppc64le"),
        ("On-line CPU(s) list:", "0-7"),
        ("Thread(s) per core:", "4"),
        ("Core(s) per socket:", "1"),
        ("Socket(s):", "2"),
        ("L3 cache:", "8 MiB (2 instances)"),
    ];
    let found = json(&flat(&power));
    assert_eq!(found.machine, Machine::parse("2 packages x 1 core x 4 threads").unwrap());
    let intel =
        power.map(|(key, data)| (key, if key == "Architecture:" { "x86_64" } else { data }));
    let found = json(&flat(&intel));
    assert_eq!(groups(&found.machine, Level::Core), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    // Before version 2.34 the number of caches was not reported.
    let old = [
        ("On-line CPU(s) list:", "0-3"),
        ("Thread(s) per core:", "1"),
        ("Core(s) per socket:", "2"),
        ("Socket(s):", "2"),
        ("L3 cache:", "8192K"),
        ("NUMA node0 CPU(s):", "0,1"),
        ("NUMA node1 CPU(s):", "2,3"),
    ];
    let found = json(&flat(&old));
    assert_eq!(found.machine, Machine::parse("2 nodes x 2 cores").unwrap());
    assert_eq!(found.warnings.len(), 1);
}

/// Messages about files that are not topologies, and about unsupported topologies.
#[test]
fn messages() {
    let mut said = String::new();
    let mut note = |title: &str, error: String| writeln!(said, "{title}\n  {error}").unwrap();
    let change = |title: &str, name: &str, text: &str| {
        let tree = i7_3770();
        tree.write(name, text);
        (title.to_string(), tree.refused())
    };
    for (title, error) in [
        change("no list", "cpu/online", "0-x"),
        change("a list downwards", "cpu/online", "4-0"),
        change("nothing online", "cpu/online", ""),
        change("too many online", "cpu/online", "0-1024"),
        change("number of a CPU", "cpu/online", "70000"),
        change("package", "cpu/cpu1/topology/physical_package_id", "one"),
        change("level", "cpu/cpu1/cache/index3/level", "L3"),
        change("capacity", "cpu/cpu1/cpu_capacity", "0"),
        change("capacity of one", "cpu/cpu1/cpu_capacity", "512"),
        change("siblings that lack the CPU", "cpu/cpu1/topology/core_cpus_list", "5"),
        change("siblings that overlap", "cpu/cpu1/topology/core_cpus_list", "0-1,5"),
        change("siblings in a circle", "cpu/cpu4/topology/core_cpus_list", "1,4"),
        change("caches that overlap", "cpu/cpu7/cache/index3/shared_cpu_list", "4-7"),
        change("a core in two packages", "cpu/cpu4/topology/physical_package_id", "1"),
        change("two nodes of a CPU", "node/node1/cpulist", "7"),
        change("a CPU without a node", "node/node0/cpulist", "0-6"),
    ] {
        note(&title, error);
    }
    note("no Linux", topology::sysfs("/nonexistent".as_ref()).unwrap_err().to_string());
    let mut parse = |title: &str, name: &str, text: &str| {
        note(title, topology::parse(name, text.as_bytes()).unwrap_err().to_string());
    };
    let pu = |index: u32, set: u64| object("PU", index, set, "");
    let machine = |inner: &str| wrapped(&object("Machine", 0, 0xff, inner));
    parse("no XML", "x.xml", "{}");
    parse("XML cut off", "x.xml", &VERSION_1[..VERSION_1.len() - 20]);
    parse("other XML", "x.xml", "<svg/>");
    parse("no objects", "x.xml", "<topology/>");
    parse("no type", "x.xml", &wrapped("<object os_index=\"0\"/>"));
    parse("no number", "x.xml", &machine("<object type=\"PU\"/>"));
    parse("a high number", "x.xml", &machine("<object type=\"PU\" os_index=\"65536\"/>"));
    parse("a set", "x.xml", &machine("<object type=\"PU\" os_index=\"0\" cpuset=\"1-2\"/>"));
    parse("another set", "x.xml", &machine(&pu(0, 2)));
    parse("a CPU twice", "x.xml", &machine(&(pu(0, 1) + &pu(0, 1))));
    let nodes = object("NUMANode", 0, 3, "") + &object("NUMANode", 1, 6, "");
    parse("nodes that overlap", "x.xml", &machine(&(nodes + &pu(0, 1) + &pu(1, 2) + &pu(2, 4))));
    let many: String =
        (0..1025).map(|n| format!("<object type=\"PU\" os_index=\"{n}\"/>")).collect();
    parse("too many", "x.xml", &wrapped(&many));
    let kind = "<cpukind cpuset=\"0x1\"><info name=\"LinuxCapacity\" value=\"fast\"/></cpukind>";
    parse("capacity", "x.xml", &wrapped(&(object("Machine", 0, 1, &pu(0, 1)) + kind)));
    parse("no JSON", "x.json", "{\"cpus\": [\n}");
    parse("other JSON", "x.json", "[1]");
    parse("no CPUs", "x.json", "{\"cpus\": []}");
    parse("no table", "x.json", "{\"cpus\": [0]}");
    parse("no number", "x.json", "{\"cpus\": [{\"core\": 0}]}");
    parse("a negative number", "x.json", "{\"cpus\": [{\"cpu\": 0, \"core\": -1}]}");
    parse("a CPU twice", "x.json", "{\"cpus\": [{\"cpu\": 3}, {\"cpu\": 3}]}");
    parse("online", "x.json", "{\"cpus\": [{\"cpu\": 0, \"online\": 1}]}");
    parse("caches", "x.json", "{\"cpus\": [{\"cpu\": 0, \"l1d:l2\": \"0:x\"}]}");
    parse("capacity", "x.json", "{\"cpus\": [{\"cpu\": 0, \"capacity\": 0}]}");
    let list = "{\"cpus\": [{\"cpu\":0,\"socket\":0,\"l3\":0},{\"cpu\":1,\"socket\":1,\"l3\":0}]}";
    parse("a cache in two packages", "x.json", list);
    let with = |key: &str, data: &'static str| {
        flat(&FIELDS.map(|(other, old)| (other, if other == key { data } else { old })))
    };
    parse("no field", "x.json", "{\"lscpu\": []}");
    parse("hexadecimal", "x.json", &with("On-line CPU(s) list:", "0xff"));
    parse("no threads", "x.json", &with("Thread(s) per core:", "-"));
    parse("another number of threads", "x.json", &with("Thread(s) per core:", "4"));
    parse("no number of sockets", "x.json", &with("Socket(s):", "two"));
    parse("caches that do not fit", "x.json", &with("L3 cache:", "1 MiB (5 instances)"));
    parse("no number of caches", "x.json", &with("L3 cache:", "1 MiB (some)"));
    parse("nodes that lack CPUs", "x.json", &with("NUMA node7 CPU(s):", "42-47"));
    let two = [&FIELDS[..], &[("Thread(s) per core:", "1")]].concat();
    parse("several kinds", "x.json", &flat(&two));
    let latin = topology::parse("x.json", b"{\n\"caf\xe9\":0}").unwrap_err().to_string();
    writeln!(said, "no UTF-8\n  {latin}").unwrap();
    insta::assert_snapshot!(said);
}

fn experiment(folder: &Path, topology: &str) -> Experiment {
    let text = format!(
        "question = \"?\"\npolicy = [\"fcfs\", \"rr\"]\n[machine]\ntopology = \"{topology}\"\n\
         [[workload]]\nkind = \"batch\"\ntasks = 3\nservice = \"1ms\"\n"
    );
    Experiment::parse(&text, &folder.join("x.toml")).unwrap()
}

#[test]
fn experiments_name_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("i7.json");
    fs::write(&file, lscpu_list(&i7_3770_by_hand(), false)).unwrap();
    let plan = experiment(folder.path(), "i7.json").plan().unwrap();
    assert_eq!(plan.setup(0, 0).machine, i7_3770_by_hand());
    assert_eq!(plan.groups().next().unwrap().machine, "4 cores x 2 threads");
    assert_eq!(plan.warnings(), [""; 0]);
    // A different machine in the same file is a different experiment.
    fs::write(&file, flat(&FIELDS)).unwrap();
    let other = experiment(folder.path(), "i7.json").plan().unwrap();
    assert_ne!(other.spec_hash(), plan.spec_hash());
    assert!(
        other.warnings()[0].starts_with("i7.json: the summary counts"),
        "{:?}",
        other.warnings()
    );
    assert_eq!(other.groups().next().unwrap().machine, "8 nodes x 2 llcs x 3 cores x 2 threads");

    fs::write(&file, "{\"cpus\": [{\"cpu\": \"x\"}]}").unwrap();
    let error = experiment(folder.path(), "i7.json").plan().unwrap_err().to_plain();
    assert!(
        error.contains("x.toml:4:12: i7.json: cpus[0]: `cpu` is \"x\"; it must be a"),
        "{error}"
    );
    let error = experiment(folder.path(), "none.xml").plan().unwrap_err().to_plain();
    assert!(error.contains("\"none.xml\" cannot be read"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn experiments_name_this_machine() {
    // Tests may run where the machine's levels do not nest.
    let Ok(host) = topology::host() else { return };
    let folder = tempfile::tempdir().unwrap();
    let plan = experiment(folder.path(), "host").plan().unwrap();
    assert_eq!(plan.setup(0, 0).machine, host.machine);
    assert_ne!(plan.spec_hash(), experiment(folder.path(), "1 core").plan().unwrap().spec_hash());
}

#[test]
fn irregular_machines_are_described_by_totals() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{\"cpus\": [{\"cpu\":0,\"core\":0},{\"cpu\":1,\"core\":0},{\"cpu\":2,\"core\":1}]}";
    fs::write(folder.path().join("x.json"), text).unwrap();
    let plan = experiment(folder.path(), "x.json").plan().unwrap();
    let described = &plan.groups().next().unwrap().machine;
    assert_eq!(described, "1 node, 1 package, 1 llc, 2 cores, 3 CPUs");
}
