//! The programs of kernels under test and their arguments: hosts refuse any other argument before
//! they boot, and programs ask for none that is not here.

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its arguments.
    pub arguments: &'static [Argument],
}

/// An argument of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it says, in a few words.
    pub summary: &'static str,
}

impl ProgramInfo {
    /// Whether the program has an argument called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.name == name)
    }
}

/// The program called `name`, if there is one.
pub fn find(name: &str) -> Option<&'static ProgramInfo> {
    PROGRAMS.iter().find(|program| program.name == name)
}

/// As [`find`], for lists of hosts: a name that no program has is an error of the compiler.
pub const fn named(name: &str) -> &'static ProgramInfo {
    one_of(&PROGRAMS, name)
}

/// As [`named`], of the programs of virtual machines.
pub const fn domains(name: &str) -> &'static ProgramInfo {
    one_of(&DOMAINS, name)
}

const fn one_of(all: &'static [ProgramInfo], name: &str) -> &'static ProgramInfo {
    let mut at = 0;
    while at < all.len() {
        if is_same(all[at].name.as_bytes(), name.as_bytes()) {
            return &all[at];
        }
        at += 1;
    }
    panic!("there is no program of this name")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn argument(name: &'static str, summary: &'static str) -> Argument {
    Argument { name, summary }
}

const HOLD: Argument = argument("hold", "1: handles of tasks are held until all have ended");
const DURATION: Argument = argument("duration_ns", "how long it runs");
const SEED: Argument = argument("seed", "what chance begins with");

/// The argument that has a program call the policy; see the list.
pub const CALLS: &str = "calls";

/// Of programs whose tasks compute in groups. What is given for each task has commas between.
const GROUPS: &[Argument] = &[
    argument("groups", "how many groups each task has"),
    argument("iterations", "how many iterations a group has, of each task"),
    argument("nice", "niceness of each task"),
    argument("cpus", "the CPU of each task"),
    argument("scale", "everything is done so many times less"),
    argument("duration", "nanoseconds after which tasks are counted"),
    argument("at", "nanoseconds after the start when the first run begins"),
    argument("runs", "how often it is run, with tasks of its own each time"),
    argument("every", "nanoseconds from the beginning of a run to that of the next"),
    argument(CALLS, "calls of the policy, a line each: nanoseconds, parameter, value"),
    HOLD,
];

/// Of programs of Debian's packages.
const ARGS: Argument = argument("args", "what it is called with, quoted as in a shell");
const BURNERS: Argument = argument("burners", "how many processes compute beside it");
const PACKAGED: &[Argument] = &[ARGS, BURNERS];

/// Of programs that perform a command.
const COMMAND: &[Argument] = &[
    argument("command", "what is performed"),
    argument("programs", "programs of Debian's packages to add, with commas between"),
];

/// Of programs in which policies go wrong.
const FAULTS: &[Argument] = &[
    argument("kinds", "in which ways, with commas between"),
    argument("policy", "which one goes wrong"),
];

/// Of programs of virtual machines. What is given for each domain has commas between; the last is
/// that of all others.
macro_rules! of_domains {
    ($($argument:expr),*) => {
        &[
            $($argument,)*
            argument("vcpus", "how many vCPUs each domain has; only `hog` and `ep` use several"),
            WEIGHTS,
            CAPS,
            PERIODS,
            BUDGETS,
            PCPUS,
            PREFERRED,
        ]
    };
}

const WEIGHTS: Argument = argument("weights", "weight of each domain, of 256");
const CAPS: Argument = argument("caps", "cap of each domain, in percent of a pCPU");
const PERIODS: Argument = argument("periods_us", "period of each domain");
const BUDGETS: Argument = argument("budgets_us", "how much of its period each domain gets");
const PCPUS: Argument = argument("cpus", "pCPUs of each domain, as a mask");
const PREFERRED: Argument = argument(
    "preferred",
    "those of them that it prefers, as a mask; not all schedulers look at it",
);

const COMPUTING: Argument = argument("hogs", "how many other domains compute");

/// Programs of virtual machines.
pub static DOMAINS: [ProgramInfo; 10] = [
    ProgramInfo {
        name: "calibrate",
        summary: "What scheduling costs, for simulations; by `anysched calibrate`",
        arguments: &[],
    },
    ProgramInfo {
        name: "hog",
        summary: "Domains that only compute",
        arguments: of_domains![argument("domains", "how many there are"), DURATION],
    },
    ProgramInfo {
        name: "ep",
        summary: "NAS EP in each domain: pairs of Gaussian deviates",
        arguments: of_domains![
            argument("domains", "how many there are"),
            argument("class", "S, W or A, with sums that are verified"),
            argument("log2_pairs", "the logarithm of how many pairs there are, without a class")
        ],
    },
    ProgramInfo {
        name: "echo",
        summary: "A domain asks another for answers, as ping does",
        arguments: of_domains![
            argument("count", "how often it asks"),
            argument("interval_us", "the time between two questions"),
            argument("work_ns", "what an answer takes"),
            argument("busy", "1: the server computes while nobody asks"),
            COMPUTING
        ],
    },
    ProgramInfo {
        name: "cyclictest",
        summary: "A domain that sleeps and wakes, as cyclictest does",
        arguments: of_domains![
            argument("l", "how often it wakes"),
            argument("i", "the time between two wake-ups, in microseconds"),
            argument("work_ns", "for how long it computes each time"),
            COMPUTING
        ],
    },
    ProgramInfo {
        name: "search",
        summary: "A domain asks another to search documents by an inverted index",
        arguments: of_domains![
            argument("count", "how often it asks"),
            argument("interval_us", "the time between two questions"),
            argument("documents", "how many documents there are"),
            argument("busy", "1: the server computes while nobody asks"),
            COMPUTING
        ],
    },
    ProgramInfo {
        name: "zip",
        summary: "Domains compress and decompress a text",
        arguments: of_domains![
            argument("domains", "how many there are"),
            argument("kib", "how long the text is"),
            argument("rounds", "how often each does it")
        ],
    },
    ProgramInfo {
        name: "yield",
        summary: "Domains yield again and again: what a switch takes",
        arguments: of_domains![
            argument("domains", "how many there are"),
            argument("count", "how often each yields")
        ],
    },
    ProgramInfo {
        name: "ping",
        summary: "A domain pings another through dom0, by ICMP; all are Linux: `--dom0 linux`",
        arguments: &[
            argument("count", "how often it pings"),
            argument("interval_us", "the time between two pings"),
            COMPUTING,
            WEIGHTS,
            CAPS,
            PERIODS,
            BUDGETS,
            PCPUS,
        ],
    },
    ProgramInfo {
        name: "storm",
        summary: "Domains are created, paused, changed, moved and destroyed, and pCPUs come and go",
        arguments: &[
            DURATION,
            argument("domains", "how many there are at most"),
            argument("gap_ns", "the longest time between two changes"),
            argument("pcpus", "how many pCPUs the machine has"),
            SEED,
        ],
    },
];

/// All programs of kernels.
pub static PROGRAMS: [ProgramInfo; 21] = [
    ProgramInfo {
        name: "equal",
        summary: "Tasks of the same length compute in groups and yield between them",
        arguments: GROUPS,
    },
    ProgramInfo {
        name: "unequal",
        summary: "Tasks of different length compute in groups until they are counted",
        arguments: GROUPS,
    },
    ProgramInfo { name: "yield", summary: "Tasks yield after each short group", arguments: GROUPS },
    ProgramInfo {
        name: "realtime",
        summary: "One task with long groups beside four with short ones",
        arguments: GROUPS,
    },
    ProgramInfo {
        name: "occupy",
        summary: "One task seldom yields; two others yield all the time",
        arguments: GROUPS,
    },
    ProgramInfo {
        name: "batch",
        summary: "Tasks of an experiment, step by step",
        arguments: &[HOLD],
    },
    ProgramInfo {
        name: "interbench",
        summary: "Interbench's X beside tasks that only compute",
        arguments: &[
            argument("burners", "how many tasks only compute"),
            argument("load_nice", "their niceness"),
            argument("pause_ns", "for how long all else rests before X begins"),
            DURATION,
            HOLD,
        ],
    },
    ProgramInfo {
        name: "calibrate",
        summary: "What scheduling costs under the policy",
        arguments: &[
            argument("yields", "how often tasks yield"),
            argument("wakeups", "how often each of two tasks wakes the other"),
            HOLD,
        ],
    },
    ProgramInfo {
        name: "udp",
        summary: "A server whose requests come from clients on this computer",
        arguments: &[
            argument("sockets", "how many there are"),
            argument("handler", "who answers: `task`, `client` (a task for each) or `inline`"),
            argument("wait", "how it waits for requests: `sleep` or `yield`"),
            argument("poll", "for how many nanoseconds it sleeps"),
            HOLD,
        ],
    },
    ProgramInfo {
        name: "latency",
        summary: "A task that sleeps and wakes beside others that only compute",
        arguments: &[
            argument("spinners", "how many processes compute"),
            argument("period_ns", "the time between two wake-ups"),
            argument("work_ns", "for how long the task computes"),
            DURATION,
        ],
    },
    ProgramInfo {
        name: "cost",
        summary: "What a round trip through pipes and a yield take",
        arguments: &[argument("n", "how often each is done")],
    },
    ProgramInfo {
        name: "storm",
        summary: "CPUs, niceness and classes of tasks change all the time",
        arguments: &[
            DURATION,
            argument("calm_ns", "how much of it, at the end, is calm"),
            argument("spinners", "how many tasks compute"),
            argument("forkers", "how many tasks fork"),
            argument("hotplug", "1: CPUs come and go"),
            argument("gap_ns", "the longest time between two changes of a kind"),
            SEED,
        ],
    },
    ProgramInfo {
        name: "cyclictest",
        summary: "rt-tests' cyclictest: how late threads wake up",
        arguments: PACKAGED,
    },
    ProgramInfo {
        name: "hackbench",
        summary: "rt-tests' hackbench: processes send each other messages",
        arguments: PACKAGED,
    },
    ProgramInfo {
        name: "rt-app",
        summary: "rt-app: the tasks of a JSON file",
        arguments: &[argument("file", "the JSON file, on this computer"), ARGS, BURNERS],
    },
    ProgramInfo {
        name: "stress-ng",
        summary: "stress-ng: stressors do as much as they can",
        arguments: PACKAGED,
    },
    ProgramInfo {
        name: "sysbench",
        summary: "sysbench: threads do as many events as they can",
        arguments: PACKAGED,
    },
    ProgramInfo {
        name: "faults",
        summary: "Policies go wrong, and the machine goes on",
        arguments: FAULTS,
    },
    ProgramInfo {
        name: "agent-fault",
        summary: "Agents go wrong, and the machine goes on",
        arguments: FAULTS,
    },
    ProgramInfo { name: "shell", summary: "A command of BusyBox's shell", arguments: COMMAND },
    ProgramInfo {
        name: "exec",
        summary: "A program of the guest, with arguments",
        arguments: COMMAND,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_their_names() {
        for program in &PROGRAMS {
            assert_eq!(find(program.name), Some(program), "names are given once");
            assert_eq!(named(program.name), program);
            for (at, argument) in program.arguments.iter().enumerate() {
                let first = program.arguments.iter().position(|one| one.name == argument.name);
                assert_eq!(first, Some(at), "{}: `{}` is there twice", program.name, argument.name);
            }
        }
        assert_eq!(find("yie"), None);
        assert!(named("yield").has("scale") && !named("cost").has("scale"));
    }
}
