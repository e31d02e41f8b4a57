//! A toy host, added to the command with one line: it shows what a new host gets, and that it
//! shows only what it measured.
//!
//! This is a program of its own: called with [`COMMAND`] set, it is the command `anysched` with one
//! more host; otherwise it calls itself so and looks at what is printed.

use anysched_core::registry::learned;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_host::{
    By, Calibration, Capabilities, Host, HostError, HostInfo, MeasuredCosts, Order, Outcome, Setup,
    Subject, Work,
};
use anysched_measure::Metrics;
use anysched_workload::kinds::Needs;
use anysched_workload::{Load, Op, Outside};
use std::process::{Command, ExitCode};

/// The list of hosts of the real command, and one line more.
static HOSTS: &[&HostInfo] = &[&anysched_sim::HOST, &anysched_arceos::HOST, &TOY];

static TOY: HostInfo = HostInfo {
    name: "toy",
    title: "Toy",
    summary: "A loop over one CPU that looks at its policy between slices",
    capabilities: Capabilities {
        cpus: 1,
        vms: false,
        duration: false,
        hotplug: false,
        changes: false,
        unequal_cpus: false,
        logs: false,
        traces: false,
        parts: false,
        observed: false,
        running_machine: false,
        agents: false,
        dom0s: false,
        kernel_options: false,
        tasks: Needs::NOTHING,
    },
    costs: Some("none at all"),
    schedulers: &[],
    programs: &[],
    server: None,
    open: |_| Box::new(Toy),
};

struct Toy;

impl Host for Toy {
    fn info(&self) -> &'static HostInfo {
        &TOY
    }

    fn build(&self, _: &By<'_>, setup: &Setup) -> Result<(), HostError> {
        match setup.machine.tick() {
            Some(_) => Err(TOY.cannot("be built with a tick")),
            None => Ok(()),
        }
    }

    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        let (By::Policy(info, settings), Work::Load(load)) = (order.by, order.work) else {
            return Err(TOY.cannot("run that"));
        };
        let built = (info.build)(&order.setup.machine, &settings);
        let policy = built.map_err(|error| HostError(error.to_string()))?;
        play(policy, load)
    }

    fn calibrate(&self, subjects: &[Subject]) -> Result<Calibration, HostError> {
        let free = |subject: &Subject| MeasuredCosts {
            label: subject.label.clone(),
            ..MeasuredCosts::default()
        };
        let costs = subjects.iter().map(free).collect();
        Ok(Calibration { costs, ..Calibration::default() })
    }
}

const CPU: CpuId = CpuId(0);

/// A task: when it came, and what is left of its run.
struct Task {
    id: TaskId,
    arrival: Time,
    left: Span,
}

/// Plays tasks that run once.
fn play(mut policy: Box<dyn Scheduler>, mut load: Box<dyn Load>) -> Result<Outcome, HostError> {
    let (mut now, mut kicks, mut metrics) = (Time::ZERO, CpuMask::EMPTY, Metrics::default());
    let mut tasks: Vec<Task> = Vec::new();
    loop {
        while load.peek() <= now {
            let Outside::Arrival(new) = load.outside() else {
                return Err(TOY.cannot("be signalled"));
            };
            let id = TaskId(tasks.len() as u32);
            load.start(id, now);
            let Op::Run(left) = load.step(id, now) else { return Err(TOY.cannot("do that")) };
            let params = TaskParams { priority: new.priority, ..TaskParams::default() };
            let cx = &mut Cx::new(now, &mut kicks);
            policy.attach(cx, id, &params);
            policy.enqueue(cx, id, Arrival { burst: Some(left), ..Arrival::because(Enqueue::New) });
            tasks.push(Task { id, arrival: now, left });
        }
        let pick = policy.pick_next(&mut Cx::new(now, &mut kicks), CPU);
        let Some(pick) = pick else {
            match load.peek() {
                Time::NEVER => break,
                next => now = next,
            }
            continue;
        };
        let task = &mut tasks[pick.task.index()];
        let ran = task.left.min(pick.slice);
        now += ran;
        task.left = Span(task.left.0 - ran.0);
        let why = if task.left == Span::ZERO { Off::Exited } else { Off::Expired };
        if why == Off::Exited {
            metrics.turnaround.record(now.since(task.arrival).0);
        }
        policy.put_prev(&mut Cx::new(now, &mut kicks), CPU, task.id, ran, why);
    }
    Ok(Outcome { metrics, learned: learned(&*policy), ..Outcome::default() })
}

/// Set for the process that is the command.
const COMMAND: &str = "ANYSCHED_TOY_COMMAND";

/// What the command prints: standard output, standard error, and whether it succeeded.
fn anysched(args: &[&str]) -> (String, String, bool) {
    let program = std::env::current_exe().expect("a running program has a file");
    let output = Command::new(program)
        .args(args)
        .env(COMMAND, "1")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.success())
}

const EXPERIMENT: &str = "\
question = \"How long do three tasks take?\"
[machine]
cpus = 1
costs = \"toy.costs\"
[[workload]]
kind = \"batch\"
tasks = 3
service = \"10ms\"
[sweep]
policy = [\"fcfs\", { name = \"rr\", label = \"rr\", quantum = \"1ms\" }]
[report]
columns = [\"turnaround_ns_mean\", \"utilisation\", \"preemptions\", \"dispatches\"]
[[claim]]
id = \"toy\"
text = \"Round robin is slower on equal tasks.\"
expect = \"rr.turnaround_ns_mean > fcfs.turnaround_ns_mean\"
";

fn main() -> ExitCode {
    if std::env::var_os(COMMAND).is_some() {
        return anysched_cli::main(HOSTS);
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let papers = folder.path().join("paper/toy");
    std::fs::create_dir_all(&papers).expect("a folder");
    let file = papers.join("three.toml");
    std::fs::write(&file, EXPERIMENT).expect("a file");
    let costs = "[fcfs]\npick = \"0ns\"\n[rr]\npick = \"0ns\"\n";
    std::fs::write(papers.join("toy.costs"), costs).expect("a file");
    let file = file.to_str().expect("a path that is text");
    runs_show_what_was_measured(file);
    other_commands_know_it(file, folder.path().to_str().expect("a path that is text"));
    what_it_cannot_do_is_said(file);
    println!("a toy host: 3 passed, 0 failed");
    ExitCode::SUCCESS
}

fn runs_show_what_was_measured(file: &str) {
    let (table, error, ok) = anysched(&["run", file, "--host", "toy"]);
    assert!(ok, "{error}");
    // Three tasks of 10 ms one after another, and in turns of 1 ms.
    let mean = |policy: &str| {
        let row = table.lines().find(|line| line.split_whitespace().next() == Some(policy));
        row.and_then(|row| row.split_whitespace().nth(1)).unwrap_or_default().to_string()
    };
    assert_eq!([mean("fcfs"), mean("rr")], ["20", "29"], "{table}");
    assert!(table.contains("costs: none at all"), "{table}");
    let row = table.lines().find(|line| line.starts_with("fcfs")).expect("a row");
    assert!(!row.contains("100") && row.matches(" -").count() == 3, "invented: {row:?}");
    let (json, ..) = anysched(&["run", file, "--host", "toy", "--format", "json"]);
    assert!(json.contains("\"host\": \"toy\"") && json.contains("turnaround_ns"), "{json}");
    for absent in ["utilisation", "preemptions", "migrations", "overhead_ns", "context_switches"] {
        assert!(!json.contains(absent), "{absent} was not measured: {json}");
    }
}

fn other_commands_know_it(file: &str, experiments: &str) {
    let (claims, error, ok) =
        anysched(&["reproduce", "paper", "--host", "toy", "--experiments", experiments]);
    assert!(ok && claims.contains("holds"), "{claims}{error}");
    let (predicted, error, ok) = anysched(&["predict", "--host", "toy", file]);
    assert!(ok && predicted.contains("off, %") && predicted.contains("+0.0"), "{predicted}{error}");
    let (costs, error, ok) = anysched(&["calibrate", "toy"]);
    assert!(ok && costs.contains("What scheduling costs in Toy"), "{costs}{error}");
    // No policy has a rule of this host, so that all are measured.
    assert!(["fcfs", "vfair"].iter().all(|name| costs.lines().any(|l| l == *name)), "{costs}");
    let (hosts, ..) = anysched(&["hosts"]);
    assert!(hosts.contains("toy: A loop over one CPU"), "{hosts}");
    let (help, ..) = anysched(&["run", "--help"]);
    assert!(help.contains("toy") && help.contains("A loop over one CPU"), "{help}");
}

fn what_it_cannot_do_is_said(file: &str) {
    for (args, said) in [
        (&["run", file, "--host", "tyo"][..], "[possible values: sim, arceos, toy]"),
        (&["run", file, "--host", "toy", "--set", "duration=1s"], "toy cannot end a run"),
        (&["run", file, "--host", "toy", "--set", "machine.tick=1ms"], "toy cannot be built"),
        (
            &["check", file, "--host", "toy", "--set", "machine.cpus=2"],
            "toy has at most 1 CPU, not 2",
        ),
        (&["boot", "toy", "--policy", "fcfs", "--app", "x"], "toy has no programs"),
        (&["gantt", file, "--host", "toy"], "toy cannot trace"),
        (&["boot", "sim", "--policy", "fcfs", "--app", "x"], "sim has no programs"),
        (&["calibrate", "sim"], "sim cannot measure"),
    ] {
        let (_, error, ok) = anysched(args);
        assert!(!ok && error.contains(said), "{args:?}: {error}");
    }
}
