//! Linux as a host: what it is asked to run, and what is read off it.

use crate::boot::Boot;
use crate::calibrate;
use crate::{BootError, Image, Purpose, StockKernel, Suite, events};
#[cfg(target_os = "linux")]
use crate::{attach, record};
#[cfg(target_os = "linux")]
use anysched_host::{Attach, Attached, Attachment, Built, Recorded, Recording, Sample};
use anysched_host::{
    By, Calibration, Capabilities, Clock, Demands, Host, HostError, HostInfo, Options, Order,
    Outcome, Place, Setup, Subject,
};
use anysched_qemu::{CALIBRATE, Job, Outcome as Said};
use anysched_trace::Sink;
use anysched_wire::program::named;
use anysched_workload::kinds::Needs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// Linux's entry in the list of hosts.
pub static HOST: HostInfo = HostInfo {
    name: "linux",
    title: "Linux",
    summary: "A stock Debian kernel under sched_ext, booted in QEMU for each run",
    capabilities: Capabilities {
        cpus: MAX_CPUS,
        vms: false,
        duration: false,
        hotplug: false,
        changes: false,
        unequal_cpus: false,
        logs: true,
        traces: true,
        parts: false,
        observed: false,
        running_machine: cfg!(target_os = "linux"),
        agents: true,
        dom0s: false,
        kernel_options: true,
        tasks: Needs {
            wakeups_between_tasks: true,
            locks: true,
            barriers: true,
            niceness: true,
            affinity: true,
            ..Needs::NOTHING
        },
    },
    costs: Some("the kernel's own"),
    schedulers: &[NEWEST, OLDER[0].0, OLDER[1].0],
    programs: &[
        named("equal"),
        named("unequal"),
        named("yield"),
        named("realtime"),
        named("occupy"),
        named("interbench"),
        named(CALIBRATE),
        named("latency"),
        named("cost"),
        named("storm"),
        named("cyclictest"),
        named("hackbench"),
        named("rt-app"),
        named("stress-ng"),
        named("sysbench"),
        named("faults"),
        named("shell"),
        named("exec"),
    ],
    server: None,
    open,
};

/// The kernel's own scheduler, as it is in the kernel that runs the policies.
const NEWEST: &str = "stock-eevdf";
/// Those of older kernels, and the series of each.
const OLDER: [(&str, &str); 2] = [("stock-cfs", "6.1"), ("stock-eevdf-6.12", "6.12")];

/// Programs that start policies themselves, under whichever scheduler they run.
const STARTERS: [&str; 1] = ["faults"];

/// CPUs of a machine, at most: so many can be told apart by QEMU, and by the logs of a boot.
const MAX_CPUS: usize = 255;

/// How long a kernel may print nothing: programs print when they are done.
const SILENCE: Duration = Duration::from_secs(600);

fn open(options: &Options) -> Box<dyn Host> {
    Box::new(Linux::new(options))
}

/// Linux in QEMU.
pub struct Linux {
    silence: Duration,
    clock: Option<Clock>,
    kernel: Option<PathBuf>,
    checked: bool,
    place: Place,
    /// Of a suite that was found to build.
    image: OnceLock<Result<Image, BootError>>,
    /// Of one that was found to boot.
    plain: OnceLock<Result<Image, BootError>>,
}

impl Linux {
    /// With these options.
    pub fn new(options: &Options) -> Linux {
        let silence = options.silence.map_or(SILENCE, |span| Duration::from_nanos(span.0));
        let Options { clock, kernel, checked, place, .. } = options.clone();
        let place = place.unwrap_or_default();
        let (image, plain) = (OnceLock::new(), OnceLock::new());
        Linux { silence, clock, kernel, checked, place, image, plain }
    }

    /// Fetches and builds what is booted, once.
    fn image(&self, boot: &Boot) -> Result<&Image, HostError> {
        let (image, purpose) = match boot.loaders || self.image.get().is_some() {
            true => (&self.image, Purpose::Build),
            false => (&self.plain, Purpose::Boot),
        };
        let make = || Image::build(&Suite::find(purpose, &mut say)?, &mut say);
        image.get_or_init(make).as_ref().map_err(|error| HostError(error.to_string()))
    }

    /// The boot of a scheduler on a machine, without a program.
    fn boot_of(&self, by: &By<'_>, setup: &Setup) -> Result<Boot, HostError> {
        let older = match by {
            By::Own(own) => OLDER.iter().find(|(name, _)| name == own),
            By::Policy(..) => None,
        };
        let kernel = match older {
            Some((_, series)) => Some(StockKernel::find(series, &mut say).map_err(failed)?.vmlinuz),
            None => self.kernel.clone(),
        };
        let mut boot = Boot::new(by.name(), "");
        boot.orders.settings = by.owned_settings();
        if let Some(tick) = setup.machine.tick() {
            boot.orders.tick = Some(tick.0);
        }
        Ok(Boot {
            loaders: matches!(by, By::Policy(..)),
            checked: self.checked,
            place: self.place,
            machine: setup.machine.clone(),
            options: setup.kernel_options.clone(),
            clock: Clock::or_usual(self.clock, &setup.machine),
            kernel,
            patience: self.silence,
            ..boot
        })
    }
}

impl Host for Linux {
    fn info(&self) -> &'static HostInfo {
        &HOST
    }

    fn machine(&self, setup: &Setup) -> String {
        let machine = anysched_qemu::in_words(setup, self.clock, "take turns");
        let place = match self.place {
            Place::Kernel => "",
            Place::Agent => "; policies run in an agent",
        };
        format!("{machine}{place}")
    }

    fn build(&self, by: &By<'_>, setup: &Setup) -> Result<(), HostError> {
        HOST.require(&Demands { setup, vms: false, needs: Needs::NOTHING })?;
        let boot = self.boot_of(by, setup)?;
        boot.build(self.image(&boot)?, &mut say).map_err(failed)
    }

    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        let Order { by, setup, work, vms, mut watch } = order;
        HOST.require(&Demands { setup, vms: !vms.is_empty(), needs: Needs::NOTHING })?;
        let mut boot = self.boot_of(&by, setup)?;
        let job = Job::of(work, &HOST, setup.machine.cpus())?;
        let Job { program, arguments, tasks, reading } = job;
        (boot.orders.program, boot.orders.arguments, boot.tasks) = (program, arguments, tasks);
        boot.loaders |= STARTERS.contains(&boot.orders.program.as_str());
        boot.provide().map_err(failed)?;
        boot.orders.events = watch.trace.is_some();
        if watch.record {
            by.require_recordable()?;
        }
        // Of the kernel's own schedulers there are only the kernel's events.
        let has_log = matches!(by, By::Policy(..));
        boot.orders.record = watch.record || (boot.orders.events && has_log);
        let image = self.image(&boot)?;
        let said = boot.run(image, &mut |line| watch.say(line)).map_err(failed)?;
        if let Some(trace) = &mut watch.trace {
            tell(&said, has_log, &mut **trace)?;
        }
        Ok(reading.outcome(said, watch.record))
    }

    fn calibrate(&self, subjects: &[Subject]) -> Result<Calibration, HostError> {
        calibrate::calibrate(self, subjects)
    }

    #[cfg(target_os = "linux")]
    fn attach(
        &self,
        order: &Attach<'_>,
        say: &mut dyn FnMut(&str),
        show: &mut dyn FnMut(&Sample),
    ) -> Result<Attached, HostError> {
        Ok(attach::attach(order, say, show)?)
    }

    #[cfg(target_os = "linux")]
    fn build_attached(
        &self,
        place: Place,
        checked: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Built, HostError> {
        Ok(attach::build(&attach::Machine::here(), place, checked, say)?)
    }

    #[cfg(target_os = "linux")]
    fn attached(&self) -> Result<Option<Attachment>, HostError> {
        Ok(attach::attached()?)
    }

    #[cfg(target_os = "linux")]
    fn change(&self, name: &str, value: &str) -> Result<(), HostError> {
        Ok(attach::change(name, value)?)
    }

    #[cfg(target_os = "linux")]
    fn detach(&self) -> Result<(), HostError> {
        Ok(attach::detach()?)
    }

    #[cfg(target_os = "linux")]
    fn record(&self, order: &Recording<'_>) -> Result<Recorded, HostError> {
        Ok(record::record(order)?)
    }
}

/// Runs that measure what scheduling costs.
impl Linux {
    /// Boots the program that measures under a scheduler.
    pub(crate) fn boot_calibration(&self, by: &By<'_>, setup: &Setup) -> Result<Said, HostError> {
        let mut boot = self.boot_of(by, setup)?;
        boot.orders.program = CALIBRATE.into();
        boot.run(self.image(&boot)?, &mut |_| ()).map_err(failed)
    }
}

/// Tells what the policy has decided, if there is a log of that, and what the kernel has made of
/// it.
fn tell(said: &Said, has_log: bool, sink: &mut dyn Sink) -> Result<(), HostError> {
    let log = said.logs.first().filter(|_| has_log).map(Vec::as_slice);
    if has_log && log.is_none() {
        return Err(HostError("the guest has sent no log".into()));
    }
    Ok(events::tell(&said.events, log, sink)?)
}

/// Says what is done before anything runs.
fn say(line: &str) {
    eprintln!("linux: {line}");
}

fn failed(error: BootError) -> HostError {
    HostError(error.to_string())
}
