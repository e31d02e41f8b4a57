//! Xen as a host: what it is asked to run, and what is read off it.

use crate::boot::{Boot, OWN, taken_for};
use crate::calibrate;
use crate::package::package;
use crate::vms::{self, Machines};
use crate::{BootError, Image, LinuxDom0, Sources, events};
use anysched_core::Time;
use anysched_host::{
    By, Calibration, Capabilities, Clock, Demands, Dom0, Host, HostError, HostInfo, Options, Order,
    Outcome, Program, Setup, Subject, Watch, Work,
};
use anysched_qemu::{CALIBRATE, Job, Outcome as Said};
use anysched_wire::dom0;
use anysched_wire::program::domains;
use anysched_workload::kinds::Needs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Xen's entry in the list of hosts.
pub static HOST: HostInfo = HostInfo {
    name: "xen",
    title: "Xen",
    summary: "The hypervisor Xen, booted in QEMU for each run, with small guests of ours",
    capabilities: Capabilities {
        cpus: MAX_CPUS,
        vms: true,
        duration: true,
        hotplug: false,
        changes: false,
        unequal_cpus: false,
        logs: true,
        traces: true,
        parts: false,
        observed: false,
        running_machine: false,
        agents: false,
        dom0s: true,
        kernel_options: true,
        tasks: Needs {
            wakeups_between_tasks: true,
            locks: true,
            barriers: true,
            niceness: true,
            affinity: true,
            deadlines: true,
            messages_between_vms: true,
            messages_from_outside: true,
            ..Needs::NOTHING
        },
    },
    costs: Some("the hypervisor's own"),
    schedulers: &OWN,
    programs: &[
        domains("hog"),
        domains("ep"),
        domains("echo"),
        domains("cyclictest"),
        domains("search"),
        domains("zip"),
        domains("yield"),
        domains("ping"),
        domains("calibrate"),
        domains("storm"),
    ],
    server: None,
    open,
};

/// The program of a dom0 with Linux, and of no other.
const OF_LINUX: &str = "ping";

/// pCPUs of a machine, at most.
const MAX_CPUS: usize = 64;

/// vCPUs of dom0.
const DOM0_VCPUS: u64 = 1;

/// How long it may print nothing: dom0 prints when all is done.
const SILENCE: Duration = Duration::from_secs(600);

fn open(options: &Options) -> Box<dyn Host> {
    Box::new(Xen::new(options))
}

/// Xen in QEMU.
pub struct Xen {
    silence: Duration,
    clock: Option<Clock>,
    checked: bool,
    kernel: Option<PathBuf>,
    dom0: Dom0,
    image: OnceLock<Result<Image, BootError>>,
    linux: OnceLock<Result<LinuxDom0, BootError>>,
}

impl Xen {
    /// With these options.
    pub fn new(options: &Options) -> Xen {
        let silence = options.silence.map_or(SILENCE, |span| Duration::from_nanos(span.0));
        let Options { clock, checked, kernel, dom0, .. } = options.clone();
        let dom0 = dom0.unwrap_or_default();
        let (image, linux) = (OnceLock::new(), OnceLock::new());
        Xen { silence, clock, checked, kernel, dom0, image, linux }
    }

    /// Fetches and builds what is booted, once.
    fn image(&self) -> Result<&Image, HostError> {
        let make = || {
            let image = Image::build(&Sources::find(&mut say)?, false, &mut say)?;
            Ok(match &self.kernel {
                Some(kernel) => image.with_hypervisor(kernel.clone()),
                None => image,
            })
        };
        self.image.get_or_init(make).as_ref().map_err(|error| HostError(error.to_string()))
    }

    /// Fetches and builds a dom0 with Linux, once.
    fn linux(&self) -> Result<&LinuxDom0, HostError> {
        let make = || LinuxDom0::build(&Sources::find(&mut say)?, &mut say);
        self.linux.get_or_init(make).as_ref().map_err(|error| HostError(error.to_string()))
    }

    /// The boot of a scheduler on a machine, without a program.
    fn boot_of(&self, by: &By<'_>, setup: &Setup) -> Boot {
        let mut boot = Boot::new(by.name(), "");
        boot.orders.settings = by.owned_settings();
        boot.set_tick(setup.machine.tick());
        Boot {
            checked: self.checked,
            machine: setup.machine.clone(),
            options: setup.kernel_options.clone(),
            clock: Clock::or_usual(self.clock, &setup.machine),
            patience: self.silence,
            ..boot
        }
    }
}

impl Host for Xen {
    fn info(&self) -> &'static HostInfo {
        &HOST
    }

    fn machine(&self, setup: &Setup) -> String {
        let machine = anysched_qemu::in_words(setup, self.clock, "run at the same time");
        match self.dom0 {
            Dom0::Small => machine,
            Dom0::Linux => format!("{machine}; dom0 and domains are Linux"),
        }
    }

    fn require_own(&self, scheduler: &str, setup: &Setup, vcpus: usize) -> Result<(), HostError> {
        let Some(own) = dom0::own(scheduler)? else { return Ok(()) };
        let (pcpus, vcpus) = (setup.machine.cpus() as u64, vcpus as u64);
        Ok(own.require_pcpus(pcpus, DOM0_VCPUS + vcpus)?)
    }

    fn require_program(&self, program: &Program) -> Result<(), HostError> {
        HOST.require_program(program)?;
        let why = match (self.dom0, program.name == OF_LINUX) {
            (Dom0::Small, false) | (Dom0::Linux, true) => return Ok(()),
            (Dom0::Small, true) => "is for domains with Linux: add `--dom0 linux`".into(),
            (Dom0::Linux, false) => {
                format!("is for small guests: leave `--dom0 linux` out, or take `{OF_LINUX}`")
            }
        };
        Err(HostError(format!("`{}` {why}", program.name)))
    }

    fn build(&self, _by: &By<'_>, setup: &Setup) -> Result<(), HostError> {
        HOST.require(&Demands { setup, vms: true, needs: Needs::NOTHING })?;
        self.image()?;
        match self.dom0 {
            Dom0::Small => Ok(()),
            Dom0::Linux => self.linux().map(drop),
        }
    }

    fn package(
        &self,
        directory: &Path,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, HostError> {
        package(&Sources::find(say).map_err(failed)?, directory, say).map_err(failed)
    }

    fn calibrate(&self, subjects: &[Subject]) -> Result<Calibration, HostError> {
        calibrate::calibrate(self, subjects)
    }

    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        let Order { by, setup, work, vms, mut watch } = order;
        HOST.require(&Demands { setup, vms: !vms.is_empty(), needs: Needs::NOTHING })?;
        let vcpus = vms.iter().map(|vm| vm.setup.machine.cpus()).sum();
        if let By::Own(own) = by {
            self.require_own(own, setup, vcpus)?;
        }
        let mut boot = self.boot_of(&by, setup);
        if watch.record {
            by.require_recordable()?;
        }
        boot.orders.events = watch.trace.is_some();
        // Of Xen's own schedulers there is only what Xen records.
        boot.orders.record = watch.record || (boot.orders.events && matches!(by, By::Policy(..)));
        let load = match work {
            Work::Program(_) => return self.run_program(boot, &by, work, setup, &mut watch),
            Work::Load(load) => load,
        };
        if self.dom0 == Dom0::Linux {
            return Err(HOST.cannot("run experiments under a dom0 with Linux"));
        }
        if load.peek() != Time::NEVER || vms.is_empty() {
            return Err(HOST.cannot(OUTSIDE));
        }
        // What happens to machines is compared, whatever this computer does meanwhile.
        boot.clock = self.clock.unwrap_or(Clock::COUNTED);
        let machines = Machines::of(vms, setup.until)?;
        boot.orders.program = vms::PROGRAM.into();
        (boot.domains, boot.memory) = (machines.text.clone(), machines.memory);
        let said = boot.run(self.image()?, &mut |line| watch.say(line)).map_err(failed)?;
        tell(&said, &|name| machines.name(name), &mut watch)?;
        Ok(machines.measured(said, &by, setup, watch.record))
    }
}

/// What only virtual machines do.
const OUTSIDE: &str =
    "run tasks outside of virtual machines: put each [[workload]] into a [[vm]] as [[vm.workload]]";

impl Xen {
    /// Runs the program that measures what scheduling costs; its values are called as in other
    /// kernels, without the domain that has said them.
    pub(crate) fn boot_calibration(&self, by: &By<'_>, setup: &Setup) -> Result<Said, HostError> {
        let mut boot = self.boot_of(by, setup);
        boot.orders.program = CALIBRATE.into();
        let mut said = boot.run(self.image()?, &mut |_| ()).map_err(failed)?;
        for (name, _) in &mut said.values {
            if let Some((_, own)) = name.split_once('.') {
                *name = own.to_string();
            }
        }
        Ok(said)
    }

    fn run_program(
        &self,
        mut boot: Boot,
        by: &By<'_>,
        work: Work,
        setup: &Setup,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, HostError> {
        if let Work::Program(program) = &work {
            self.require_program(program)?;
        }
        let Job { program, arguments, reading, .. } = Job::of(work, &HOST, setup.machine.cpus())?;
        (boot.orders.program, boot.orders.arguments) = (program, arguments);
        if self.dom0 == Dom0::Linux {
            if boot.orders.events {
                return Err(HOST.cannot("trace under a dom0 with Linux"));
            }
            boot.linux = Some((self.linux()?.clone(), taken_for(by, &boot.orders)));
        }
        let mut said = boot.run(self.image()?, &mut |line| watch.say(line)).map_err(failed)?;
        tell(&said, &|_| None, watch)?;
        // What the hypervisor counts since it has booted is nothing that the program measures.
        said.values.retain(|(name, _)| !vms::is_counter(name));
        Ok(reading.outcome(said, watch.record))
    }
}

/// Tells what Xen has recorded, and the policy's decisions if there are any, whoever wants it.
fn tell(
    said: &Said,
    name: &dyn Fn(&str) -> Option<String>,
    watch: &mut Watch<'_>,
) -> Result<(), HostError> {
    let Some(sink) = &mut watch.trace else { return Ok(()) };
    let log = said.logs.first().map(Vec::as_slice);
    Ok(events::tell(&said.events, log, name, &mut **sink)?)
}

/// Says what is done before anything runs.
fn say(line: &str) {
    eprintln!("xen: {line}");
}

fn failed(error: BootError) -> HostError {
    HostError(error.to_string())
}
