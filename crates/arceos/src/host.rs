//! ArceOS as a host: what it is asked to run, and what is read off it.

use crate::calibrate;
use crate::{Boot, BootError, Outcome as Said};
use anysched_clients::Load as ClientLoad;
use anysched_host::{
    By, Calibration, Capabilities, Clock, Demands, Host, HostError, HostInfo, Options, Order,
    Outcome, ParamChange, Served, Setup, Subject, Work,
};
use anysched_qemu::{CALIBRATE, Job, measured};
use anysched_trace::{Sink, decisions};
use anysched_wire::program::{self, CALLS, named};
use anysched_workload::kinds::Needs;
use std::time::Duration;

/// ArceOS's entry in the list of hosts.
pub static HOST: HostInfo = HostInfo {
    name: "arceos",
    title: "ArceOS",
    summary: "The unikernel ArceOS, booted in QEMU for each run; an instruction takes a nanosecond",
    capabilities: Capabilities {
        cpus: MAX_CPUS,
        vms: false,
        duration: false,
        hotplug: false,
        changes: true,
        unequal_cpus: false,
        logs: true,
        traces: true,
        parts: false,
        observed: false,
        running_machine: false,
        agents: false,
        dom0s: false,
        kernel_options: false,
        tasks: Needs::NOTHING,
    },
    costs: Some("the kernel's own"),
    schedulers: &["stock-fifo", "stock-rr", "stock-cfs"],
    programs: &[
        named("equal"),
        named("unequal"),
        named("yield"),
        named("realtime"),
        named("occupy"),
        named(CALIBRATE),
        named(SERVER),
    ],
    server: Some(SERVER),
    open,
};

/// CPUs of a machine, at most: images are built for a number of them.
const MAX_CPUS: usize = 16;

/// The program that serves requests.
pub(crate) const SERVER: &str = "udp";

/// How long a kernel may print nothing: programs print when they are done.
const SILENCE: Duration = Duration::from_secs(600);

fn open(options: &Options) -> Box<dyn Host> {
    Box::new(ArceOs::new(options))
}

/// ArceOS in QEMU.
pub struct ArceOs {
    silence: Duration,
    clock: Option<Clock>,
}

impl ArceOs {
    /// With these options.
    pub fn new(options: &Options) -> ArceOs {
        let silence = options.silence.map_or(SILENCE, |span| Duration::from_nanos(span.0));
        ArceOs { silence, clock: options.clock }
    }

    /// The boot of a scheduler on a machine, without a program.
    fn boot_of(&self, name: &str, settings: &[(&str, &str)], setup: &Setup) -> Boot {
        let mut boot = Boot::new(name, "");
        let owned = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        boot.settings = settings.iter().map(owned).collect();
        boot.patience = self.silence;
        boot.tick = setup.machine.tick();
        boot.image.cpus = setup.machine.cpus() as u16;
        boot.clock = Clock::or_usual(self.clock, &setup.machine);
        boot
    }
}

impl Host for ArceOs {
    fn info(&self) -> &'static HostInfo {
        &HOST
    }

    fn machine(&self, setup: &Setup) -> String {
        anysched_qemu::in_words(setup, self.clock, "run at once")
    }

    fn build(&self, by: &By<'_>, setup: &Setup) -> Result<(), HostError> {
        HOST.require(&Demands { setup, vms: false, needs: Needs::NOTHING })?;
        let boot = self.boot_of(by.name(), &[], setup);
        boot.image.build().map(drop).map_err(failed)
    }

    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        let Order { by, setup, work, vms, mut watch } = order;
        HOST.require(&Demands { setup, vms: !vms.is_empty(), needs: Needs::NOTHING })?;
        let mut boot = self.boot_of(by.name(), by.settings(), setup);
        let job = Job::of(work, &HOST, setup.machine.cpus())?;
        let Job { program, arguments, tasks, reading } = job;
        (boot.app, boot.arguments, boot.tasks) = (program, arguments, tasks);
        if boot.app == SERVER {
            return Err(HostError(format!("{SERVER} waits for requests: put a load on it")));
        }
        if !setup.changes.is_empty() {
            let calls = calls(&boot.app, setup)?;
            boot.arguments.push((CALLS.into(), calls));
        }
        boot.record = watch.record || watch.trace.is_some();
        if boot.record {
            by.require_recordable()?;
        }
        let said = boot.run(&mut |line| watch.say(line)).map_err(failed)?;
        if let Some(trace) = &mut watch.trace {
            tell(&said, &mut **trace)?;
        }
        Ok(reading.outcome(said, watch.record))
    }

    fn calibrate(&self, subjects: &[Subject]) -> Result<Calibration, HostError> {
        calibrate::calibrate(self, subjects)
    }

    fn serve(&self, order: Order<'_>, load: &ClientLoad) -> Result<Served, HostError> {
        let Order { by, setup, work, mut watch, .. } = order;
        if setup.machine.cpus() > 1 {
            return Err(HostError("the server is measured on one CPU".into()));
        }
        if matches!(self.clock, Some(Clock::Instructions(_))) {
            return Err(HostError("clients live in real time: instructions alone do not".into()));
        }
        let mut boot = Boot::server(by.name());
        let common = self.boot_of(by.name(), by.settings(), setup);
        (boot.settings, boot.patience, boot.tick) = (common.settings, common.patience, common.tick);
        if let Work::Program(program) = work {
            boot.arguments.extend(program.arguments);
        }
        let kernel = boot.image.build().map_err(failed)?;
        let served = boot.serve(&kernel, load, &mut |line| watch.say(line)).map_err(failed)?;
        let (report, said) = served;
        Ok(Served { report, outcome: measured(said) })
    }
}

/// The changes of the policy's parameters as calls that the program `name` makes.
///
/// Errors: the program makes none, or there are several CPUs.
fn calls(name: &str, setup: &Setup) -> Result<String, HostError> {
    if !program::find(name).is_some_and(|program| program.has(CALLS)) {
        let why = format!(
            "in arceos the program changes parameters of its policy, and `{name}` does not: take a \
             load of kind arceos-test, or leave `changes` out"
        );
        return Err(HostError(why));
    }
    if setup.machine.cpus() > 1 {
        let why = "each CPU of arceos has a policy of its own, and a program changes that of its \
                   CPU: take one CPU, or leave `changes` out";
        return Err(HostError(why.into()));
    }
    let line = |change: &ParamChange| format!("{} {} {}", change.at.0, change.name, change.text);
    Ok(setup.changes.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Tells the events of a run from its log.
fn tell(said: &Said, sink: &mut dyn Sink) -> Result<(), HostError> {
    let log = said.logs.first().map_or(&[][..], |log| log);
    // The program's own task is the first that the policy knows, and starts the others.
    let name = |serial: u64| match serial.checked_sub(1) {
        None => Some("main".to_string()),
        Some(task) => said.tasks.get(task as usize).map(|task| task.name.clone()),
    };
    decisions::tell(log, name, sink).map(drop).map_err(|error| HostError(error.to_string()))
}

pub(crate) fn failed(error: BootError) -> HostError {
    HostError(error.to_string())
}

/// Runs that measure what scheduling costs.
impl ArceOs {
    /// Boots the program that measures under a scheduler, with a clock around the policy's calls
    /// if `timed`.
    pub(crate) fn boot_calibration(
        &self,
        by: &By<'_>,
        setup: &Setup,
        timed: bool,
    ) -> Result<Said, HostError> {
        let mut boot = self.boot_of(by.name(), by.settings(), setup);
        boot.app = CALIBRATE.into();
        boot.timed = timed;
        boot.run(&mut |_| ()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_policies::POLICIES;

    #[test]
    fn changes_are_calls_of_the_program() {
        let change = |at, text: &str| ParamChange {
            at: anysched_core::Time(at),
            name: "mode".into(),
            text: text.into(),
        };
        let machine = anysched_core::Machine::flat;
        let mut setup = Setup::new(machine(1).unwrap());
        setup.changes = vec![change(0, "profile"), change(7, "plan")];
        assert_eq!(calls("realtime", &setup).unwrap(), "0 mode profile\n7 mode plan");
        let why = calls("batch", &setup).unwrap_err().to_string();
        assert!(why.contains("`batch` does not: take a load of kind arceos-test"), "{why}");
        setup.machine = machine(2).unwrap();
        assert!(calls("realtime", &setup).unwrap_err().to_string().contains("take one CPU"));
    }

    /// First those that stand for its own schedulers, then those of its branches.
    #[test]
    fn policies_with_rules_of_the_kernel_are_in_its_order() {
        let names: Vec<&str> = HOST.native(POLICIES).iter().map(|info| info.name).collect();
        assert_eq!(names, ["fcfs", "rr", "cfs-arceos", "sjf-ewma", "mlfq-arceos", "pbg"]);
    }
}
