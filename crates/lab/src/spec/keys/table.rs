//! The tables themselves.

use super::{Default, Key, Section, Takes};
use crate::spec::claim::Verdict;
use crate::spec::parts::PARTS;
use Default::{Needed, Value, Words};
use anysched_core::MAX_CPUS;
use anysched_workload::kinds::KeyType;

const TEXT: Takes = Takes::Value(KeyType::Text);
const FILE: Takes = Takes::Value(KeyType::File);
const TIME: Takes = Takes::Value(KeyType::Time);
const FLAG: Takes = Takes::Value(KeyType::Flag);
const CPUS: i64 = MAX_CPUS as i64;

const fn whole(least: i64, most: i64) -> Takes {
    Takes::Value(KeyType::Whole { least, most })
}

const fn key(
    name: &'static str,
    takes: Takes,
    default: Default,
    example: &'static str,
    what: &'static str,
) -> Key {
    Key { name, takes, default, example, what }
}

/// All tables of an experiment file.
pub static SECTIONS: &[&Section] = &[
    &EXPERIMENT,
    &MACHINE,
    &MIGRATION,
    &CONTENTION,
    &HOTPLUG,
    &VM,
    &SCENARIO,
    &SWEEP,
    &POLICY,
    &CLAIM,
    &REPORT,
    &QUICK,
];

pub(crate) static EXPERIMENT: Section = Section {
    name: "an experiment",
    path: "",
    what: "The file: what is to be found out, on which machine, under which load and policies.",
    keys: &[
        key(
            "question",
            TEXT,
            Needed,
            "question = \"Does round robin wake the editor sooner?\"",
            "What the experiment is to find out. Heads every output.",
        ),
        key(
            "title",
            TEXT,
            Words("the file's name"),
            "title = \"An editor beside a build\"",
            "The title of tables and plots.",
        ),
        key(
            "seed",
            whole(0, i64::MAX),
            Value("1"),
            "seed = 7",
            "What the seeds of all runs derive from, with the file's name and the axis values.",
        ),
        key(
            "policy",
            Takes::Policies,
            Words("that of [sweep], or --policy"),
            "policy = \"rr\"",
            "The policies that are compared. `\"all\"` are all registered ones.",
        ),
        key(
            "duration",
            TIME,
            Words("until all tasks are done"),
            "duration = \"10s\"",
            "When runs end at the latest. Needed if a load never ends.",
        ),
        key(
            "machine",
            Takes::Table("machine"),
            Needed,
            "[machine]\ncpus = 4",
            "CPUs, and what scheduling costs on them.",
        ),
        key(
            "workload",
            Takes::Loads,
            Words("[[vm]] or [[scenario]] may have the load"),
            "[[workload]]\nkind = \"batch\"\ntasks = 100\nservice = \"exp(10ms)\"",
            "A load: each has a `kind` with keys of its own, and may have a `name`, by which rows, \
             claims and columns call it.",
        ),
        key(
            "vm",
            Takes::Tables("vm"),
            Words("none"),
            "[[vm]]\nname = \"web\"\n[[vm.workload]]\nkind = \"batch\"\ntasks = 4\nservice = \
             \"5ms\"",
            "Virtual machines, whose CPUs are tasks of the machine.",
        ),
        key(
            "scenario",
            Takes::Tables("scenario"),
            Words("the file is one"),
            "[[scenario]]\nname = \"idle\"\n[[scenario.workload]]\nkind = \"hog\"\ntasks = 1",
            "Loads and machines that are compared side by side, an axis called `scenario`.",
        ),
        key(
            "sweep",
            Takes::Table("sweep"),
            Words("one policy, one seed"),
            "[sweep]\npolicy = [\"rr\", \"cfs\"]\nseeds = 20",
            "What is varied: policies, axes, seeds.",
        ),
        key(
            "claim",
            Takes::Tables("claim"),
            Words("none"),
            "[[claim]]\nid = \"1\"\ntext = \"Round robin answers sooner\"\nexpect = \
             \"rr.response_time_ns_mean < 1s\"",
            "What the results are expected to show, and is judged.",
        ),
        key(
            "report",
            Takes::Table("report"),
            Words("what there is data for"),
            "[report]\ncolumns = [\"waiting_time_ns_mean\"]",
            "What the table shows. Files of results have everything.",
        ),
        key(
            "quick",
            Takes::Table("quick"),
            Words("the same experiment"),
            "[quick]\nseeds = 2",
            "A smaller version, for `reproduce --quick`.",
        ),
    ],
    others: "",
};

pub(crate) static MACHINE: Section = Section {
    name: "[machine]",
    path: "machine",
    what: "CPUs, and what scheduling costs on them. Costs are CPU time of the CPU that does the \
           work, and no task's service; without any, scheduling is free.",
    keys: &[
        key(
            "cpus",
            whole(1, CPUS),
            Words("or `topology`"),
            "cpus = 8",
            "So many CPUs, each a core of its own behind one last-level cache.",
        ),
        key(
            "topology",
            TEXT,
            Words("or `cpus`"),
            "topology = \"2 nodes x 4 cores x 2 threads\"",
            "What CPUs share: levels `nodes`, `packages`, `llcs`, `cores`, `threads` (or `cpus`), \
             or the name of a file that `lstopo --of xml` or `lscpu -J` wrote, or of a copy of \
             `/sys/devices/system`.",
        ),
        key(
            "like",
            TEXT,
            Words("nothing of a distribution"),
            "like = \"debian-13\"",
            "Tick, costs and settings of policies as a Linux distribution has them.",
        ),
        key(
            "costs",
            FILE,
            Words("those of `like`, or free"),
            "costs = \"linux-6.12\"",
            "Costs measured in a kernel: a name that comes with the program, a file that \
             `anysched calibrate` wrote, or `free`. Costs that are set here go before.",
        ),
        key(
            "tick",
            TIME,
            Words("none, or that of `like`"),
            "tick = \"4ms\"",
            "The time between two timer ticks of a busy CPU.",
        ),
        key(
            "context_switch",
            TIME,
            Value("\"0\""),
            "context_switch = \"1.5us\"",
            "A CPU switches to another task than it ran last.",
        ),
        key(
            "migration",
            Takes::Table("machine.migration"),
            Words("free"),
            "migration = { core = \"1us\", node = \"30us\" }",
            "A task runs on another CPU than before, by how far that is.",
        ),
        key("pick", TIME, Value("\"0\""), "pick = \"200ns\"", "Every pick."),
        key(
            "pick_per_item",
            TIME,
            Value("\"0\""),
            "pick_per_item = \"5ns\"",
            "Every task that a pick looks at one by one, with the runqueue locked.",
        ),
        key(
            "enqueue",
            TIME,
            Value("\"0\""),
            "enqueue = \"200ns\"",
            "Every enqueue, on the waker's CPU; for a timer or a device, on the CPU that the task \
             ran on last.",
        ),
        key(
            "enqueue_log",
            TIME,
            Value("\"0\""),
            "enqueue_log = \"50ns\"",
            "Every enqueue, times log2(tasks queued + 1).",
        ),
        key(
            "lock_hold",
            TIME,
            Value("\"0\""),
            "lock_hold = \"100ns\"",
            "How long an enqueue or a pick holds the runqueue's lock. CPUs wait for it in order.",
        ),
        key(
            "ipi",
            TIME,
            Value("\"0\""),
            "ipi = \"1us\"",
            "A CPU is kicked by a task on another that wakes or creates one.",
        ),
        key("timer_irq", TIME, Value("\"0\""), "timer_irq = \"1us\"", "A tick."),
        key(
            "wake_irq",
            TIME,
            Value("\"0\""),
            "wake_irq = \"2us\"",
            "An interrupt that wakes a task: a timer or a device.",
        ),
        key(
            "idle_exit",
            TIME,
            Value("\"0\""),
            "idle_exit = \"5us\"",
            "A CPU that was idle picks a task.",
        ),
        key(
            "timer_late",
            TIME,
            Value("\"0\""),
            "timer_late = \"10us\"",
            "The timer that ends a slice is late by up to this, by chance. The task goes on \
             meanwhile, so that it is no cost.",
        ),
        key(
            "create",
            TIME,
            Value("\"0\""),
            "create = \"20us\"",
            "Creating a task, as CPU time of its creator; of one from outside, as its own.",
        ),
        key("exit", TIME, Value("\"0\""), "exit = \"20us\"", "Ending a task, as its own CPU time."),
        key(
            "after_wake",
            TIME,
            Value("\"0\""),
            "after_wake = \"1us\"",
            "What a task does behind a wake-up by it, until it is in its program again.",
        ),
        key(
            "charged",
            FLAG,
            Value("false"),
            "charged = true",
            "Policies are told that a task also ran for what it cost to switch to it and to \
             interrupt it, as kernels do.",
        ),
        key(
            "smt",
            Takes::Between(0.0, 1.0),
            Value("1.0"),
            "smt = 0.6",
            "The speed of a hardware thread whose sibling is busy, relative to its speed alone.",
        ),
        key(
            "contention",
            Takes::Table("machine.contention"),
            Words("none"),
            "contention = { llc = 0.5 }",
            "How much tasks with an `intensity` slow each other down through caches.",
        ),
        key(
            "capacity",
            Takes::WholeEach(1, 1024),
            Words("1024 each"),
            "capacity = [1024, 1024, 512, 512]",
            "The speed of each CPU; 1024 is the fastest.",
        ),
        key(
            "hotplug",
            Takes::Tables("machine.hotplug"),
            Words("none"),
            "[[machine.hotplug]]\nat = \"1s\"\ncpu = 1\nonline = false",
            "When CPUs are taken out of use, and put into it.",
        ),
        key(
            "kernel_options",
            TEXT,
            Words("none"),
            "kernel_options = \"timer_slop=0\"",
            "More of the command line of the kernel that a host boots, Xen's for example. The \
             simulator has none.",
        ),
    ],
    others: "",
};

pub(crate) static MIGRATION: Section = Section {
    name: "`migration`",
    path: "machine.migration",
    what: "What it costs that a task runs on another CPU than before.",
    keys: &[
        key("thread", TIME, Value("\"0\""), "thread = \"500ns\"", "On a sibling of its core."),
        key("core", TIME, Value("\"0\""), "core = \"1us\"", "Behind the same last-level cache."),
        key("llc", TIME, Value("\"0\""), "llc = \"10us\"", "In the same node."),
        key("node", TIME, Value("\"0\""), "node = \"30us\"", "On another NUMA node."),
    ],
    others: "",
};

pub(crate) static CONTENTION: Section = Section {
    name: "`contention`",
    path: "machine.contention",
    what: "How much longer a task of intensity 100 takes beside another such task, relative to its \
           time alone.",
    keys: &[
        key(
            "core",
            Takes::Between(0.0, 1024.0),
            Value("0.0"),
            "core = 0.5",
            "On a sibling of its core, through the core's caches.",
        ),
        key(
            "llc",
            Takes::Between(0.0, 1024.0),
            Value("0.0"),
            "llc = 0.3",
            "On a CPU of its last-level cache, through that.",
        ),
    ],
    others: "",
};

pub(crate) static HOTPLUG: Section = Section {
    name: "[[machine.hotplug]]",
    path: "machine.hotplug",
    what: "A CPU is put into use or taken out of it.",
    keys: &[
        key("at", TIME, Needed, "at = \"1s\"", "When, from the beginning of the run."),
        key("cpu", whole(0, CPUS - 1), Needed, "cpu = 1", "Which CPU, from 0."),
        key("online", FLAG, Needed, "online = false", "Whether it is in use from then on."),
    ],
    others: "",
};

pub(crate) static VM: Section = Section {
    name: "[[vm]]",
    path: "vm",
    what: "A virtual machine, or several that are alike. Its CPUs are tasks of the machine.",
    keys: &[
        key("name", TEXT, Needed, "name = \"web\"", "What rows and claims call it."),
        key(
            "count",
            whole(0, 10_000),
            Value("1"),
            "count = 3",
            "How many there are; at most 10,000 in all.",
        ),
        key(
            "vcpus",
            whole(1, CPUS),
            Value("1"),
            "vcpus = 2",
            "How many CPUs it sees, unless its `machine` says so.",
        ),
        key(
            "machine",
            Takes::Table("machine"),
            Words("`vcpus` CPUs, free"),
            "machine = { cpus = 2, context_switch = \"1us\" }",
            "The machine that it sees, as [machine] without `hotplug` and `kernel_options`.",
        ),
        key(
            "weight",
            whole(1, 65_535),
            Value("256"),
            "weight = 512",
            "Its share of CPU time beside others.",
        ),
        key(
            "cap",
            whole(0, 102_400),
            Value("0"),
            "cap = 50",
            "The most CPU time that it gets, in percent of a CPU; 0: no limit.",
        ),
        key(
            "affinity",
            Takes::CpusEach,
            Words("all"),
            "affinity = \"0-1\"",
            "The CPUs that its virtual CPUs may run on.",
        ),
        key(
            "preferred",
            Takes::CpusEach,
            Words("all"),
            "preferred = \"0\"",
            "The CPUs that they should run on (Xen's soft affinity), for policies that know it.",
        ),
        key(
            "period",
            TIME,
            Words("the policy's"),
            "period = \"10ms\"",
            "Of each virtual CPU, for policies with reservations.",
        ),
        key(
            "budget",
            TIME,
            Words("the policy's"),
            "budget = \"4ms\"",
            "CPU time of each virtual CPU in a period.",
        ),
        key(
            "deadline",
            TIME,
            Words("the period"),
            "deadline = \"8ms\"",
            "From the beginning of a period to the deadline.",
        ),
        key("policy", Takes::Policy, Words("`cfs`"), "policy = \"eevdf\"", "The scheduler in it."),
        key("start", TIME, Value("\"0\""), "start = \"1s\"", "When it is created."),
        key(
            "stop",
            TIME,
            Words("the end of the run"),
            "stop = \"5s\"",
            "When it is destroyed, with all that runs in it.",
        ),
        key(
            "workload",
            Takes::Loads,
            Words("idle"),
            "[[vm.workload]]\nkind = \"batch\"\ntasks = 4\nservice = \"5ms\"",
            "What runs in it; times count from its start.",
        ),
    ],
    others: "",
};

pub(crate) static SCENARIO: Section = Section {
    name: "[[scenario]]",
    path: "scenario",
    what: "A load and a machine. What it does not say is as the file says.",
    keys: &[
        key("name", TEXT, Needed, "name = \"interactive\"", "What rows and claims call it."),
        key(
            "machine",
            Takes::Table("machine"),
            Words("the file's"),
            "machine = { cpus = 2 }",
            "What is different about the machine.",
        ),
        key(
            "workload",
            Takes::Loads,
            Words("the file's"),
            "[[scenario.workload]]\nkind = \"batch\"\ntasks = 100\nservice = \"exp(10ms)\"",
            "Its loads, in place of the file's.",
        ),
        key(
            "vm",
            Takes::Tables("vm"),
            Words("the file's"),
            "[[scenario.vm]]\nname = \"web\"",
            "Its virtual machines, in place of the file's.",
        ),
        key(
            "duration",
            TIME,
            Words("the file's"),
            "duration = \"5s\"",
            "When its runs end at the latest.",
        ),
        key(
            "policy",
            Takes::Table("scenario.policy"),
            Words("nothing is different"),
            "policy = { rr = { quantum = \"1ms\" } }",
            "What is different for policies, by label: parameters, `machine`.",
        ),
    ],
    others: "",
};

pub(crate) static SWEEP: Section = Section {
    name: "[sweep]",
    path: "sweep",
    what: "What is varied. There is a row for each policy and each combination of axis values.",
    keys: &[
        key(
            "policy",
            Takes::Policies,
            Words("that of the file, or --policy"),
            "policy = [\"rr\", { name = \"cfs\", profile = \"6.1\", label = \"old\" }]",
            "The policies that are compared.",
        ),
        key(
            "seeds",
            whole(1, 1_000_000),
            Value("1"),
            "seeds = 20",
            "How many runs there are of each row, which differ in the seed.",
        ),
        key(
            "of_host",
            Takes::Texts,
            Words("those that it has"),
            "of_host = [\"stock-rr\"]",
            "Schedulers that the host is expected to have of its own, so that claims can be about \
             them.",
        ),
    ],
    others: "axes: a path of a value and a list of values, `\"machine.cpus\" = [1, 2, 4]`",
};

pub(crate) static POLICY: Section = Section {
    name: "a policy",
    path: "policy",
    what: "A policy with parameters, where a list or a key has more than its name.",
    keys: &[
        key("name", TEXT, Needed, "name = \"rr\"", "Which: one of `anysched policies`."),
        key("label", TEXT, Words("its name"), "label = \"short\"", "What rows and claims call it."),
        key(
            "machine",
            Takes::Table("machine"),
            Words("everybody's"),
            "machine = { cpus = 5 }",
            "What is different about its machine. Needs a `label`, which says so.",
        ),
        key(
            "changes",
            Takes::Tables("policy.changes"),
            Words("none"),
            "changes = [{ at = \"1s\", grouping = \"single\" }]",
            "Parameters that change during a run.",
        ),
    ],
    others: "the policy's parameters: `anysched policies NAME`",
};

pub(crate) static CLAIM: Section = Section {
    name: "[[claim]]",
    path: "claim",
    what: "What the results are expected to show, computed for each seed and judged by the 95 % \
           confidence interval.",
    keys: &[
        key("id", TEXT, Needed, "id = \"000-E4-1\"", "What it is called; each once."),
        key("text", TEXT, Needed, "text = \"A waits less than B\"", "What is claimed."),
        key(
            "paper",
            TEXT,
            Words("nobody's but the file's"),
            "paper = \"reduces waiting by 9.9 to 15.7 %\"",
            "What a paper says, in its words or numbers.",
        ),
        key(
            "expect",
            TEXT,
            Words("needed, if it is measured"),
            "expect = \"rr.waiting_time_ns_mean < fcfs.waiting_time_ns_mean\"",
            "The comparison: sums, products and numbers of `label.column`, or \
             `label{axis=value}.column`, or `label.workload.NAME.column`.",
        ),
        key(
            "measure",
            TEXT,
            Words("none"),
            "measure = \"100 * (1 - rr.makespan_ns / fcfs.makespan_ns)\"",
            "An expression whose value is shown with the claim.",
        ),
        key("unit", TEXT, Words("none"), "unit = \"%\"", "What is written behind the value."),
        key(
            "size",
            Takes::Range,
            Words("any"),
            "size = [9.9, 15.7]",
            "What the value is claimed to be, in the unit of `measure`; judged apart.",
        ),
        key(
            "size_verdict",
            Takes::Value(KeyType::Choice(&["holds", "undecided", "does not hold"])),
            Value("\"holds\""),
            "size_verdict = \"does not hold\"",
            "What is expected to become of the size.",
        ),
        key(
            "reading",
            TEXT,
            Words("as it stands"),
            "reading = \"waiting counts until the first run\"",
            "The reading under which it is judged, if the words allow several.",
        ),
        key(
            "where",
            Takes::Rows,
            Words("all rows"),
            "where = { \"machine.cpus\" = 4 }",
            "The rows that it is about: values of axes, of `vm`, `workload` and `task`; a list \
             stands for any of its values.",
        ),
        key(
            "verdict",
            Takes::Value(KeyType::Choice(&VERDICTS)),
            Words("holds, under a `reading` if there is one"),
            "verdict = \"does not hold\"",
            "What is expected to become of it.",
        ),
        key(
            "because",
            TEXT,
            Words("nothing"),
            "because = \"the paper does not say on which hardware\"",
            "Why, in a phrase. Needed for what is not measured.",
        ),
        key(
            "details",
            TEXT,
            Words("nothing"),
            "details = \"With costs of 0 both are equal.\"",
            "What there is to say beyond a phrase.",
        ),
    ],
    others: "",
};

/// The words of verdicts.
const VERDICTS: [&str; Verdict::ALL.len()] = {
    let mut words = [""; Verdict::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = Verdict::ALL[at].words();
        at += 1;
    }
    words
};

pub(crate) static REPORT: Section = Section {
    name: "[report]",
    path: "report",
    what: "What the table shows.",
    keys: &[
        key(
            "columns",
            Takes::Texts,
            Words("what there is data for"),
            "columns = [\"waiting_time_ns_mean\", \"makespan_ns\"]",
            "Columns by name: `anysched metrics`. Of some of the tasks: \
             `workload.NAME.wakeup_latency_ns_p99`, `task.NAME.busy_ns`.",
        ),
        key(
            "by",
            Takes::Words(&PARTS),
            Words("all tasks together"),
            "by = [\"workload\"]",
            "Rows for each workload or task besides those of all.",
        ),
        key(
            "vms",
            Takes::Texts,
            Words("all"),
            "vms = [\"all\", \"web\"]",
            "Of which virtual machines rows are shown; `all` are those of the whole machine.",
        ),
    ],
    others: "",
};

pub(crate) static QUICK: Section = Section {
    name: "[quick]",
    path: "quick",
    what: "What a quick version has different.",
    keys: &[key("seeds", whole(1, 100_000), Words("as many"), "seeds = 3", "How many seeds.")],
    others: "settings as `--set` takes them: `\"workload.0.tasks\" = 20`",
};
