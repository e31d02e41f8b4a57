//! What a host of scheduling policies is asked, and what it answers.
//!
//! A host runs tasks under a policy: a simulator, or a real kernel. It consists of one crate that
//! implements [`Host`], its kernel's end if it has one, and one line in the command's list of
//! hosts. Everything else follows from its [`HostInfo`]: command lines, help, what experiments may
//! ask of it and which errors say that it cannot.
//!
//! An answer holds only what the host measured. What it does not know is absent: never 0, never
//! 100 %.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attach;
mod calibration;
mod capabilities;
mod clock;
mod order;
mod rehearsal;
mod setup;
mod vm;

pub use attach::{
    Attach, Attached, Attachment, Built, During, End, Recorded, Recording, RunningTask, Sample,
    SampledCpu, SampledLog,
};
pub use calibration::{Calibration, Figure, MeasuredCosts, Subject};
pub use capabilities::{Capabilities, Demands};
pub use clock::{Clock, InstructionTime};
pub use order::{Beat, By, Order, Outcome, Program, Served, Watch, Work};
pub use rehearsal::{Stage, as_text, rehearsed};
pub use setup::{Contention, Costs, LONGEST, ParamChange, Setup};
pub use vm::{Vm, Wire};

use anysched_clients::Load as ClientLoad;
use anysched_core::Span;
use anysched_core::registry::PolicyInfo;
pub use anysched_wire::program::{self, ProgramInfo};
use std::fmt;
use std::path::{Path, PathBuf};

/// An entry of the list of hosts.
pub struct HostInfo {
    /// Its name on command lines, in results and in folders of experiments.
    pub name: &'static str,
    /// Its name in headings.
    pub title: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What experiments may ask of it.
    pub capabilities: Capabilities,
    /// What scheduling costs there, in words; `None`: whatever the experiment says.
    pub costs: Option<&'static str>,
    /// Schedulers that it has besides our policies; each becomes a row of every table.
    pub schedulers: &'static [&'static str],
    /// The programs that it can boot.
    pub programs: &'static [&'static ProgramInfo],
    /// The program that serves requests of clients, one of `programs`, if there is one.
    pub server: Option<&'static str>,
    /// Opens it.
    pub open: fn(&Options) -> Box<dyn Host>,
}

impl fmt::Debug for HostInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How to run a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How long a kernel may print nothing before it counts as hung; `None`: the host's default.
    pub silence: Option<Span>,
    /// How the time of an emulated machine passes; `None`: as suits the number of its CPUs.
    pub clock: Option<Clock>,
    /// The image of a kernel to boot instead of the host's own.
    pub kernel: Option<PathBuf>,
    /// Whether policy and host are held to their contract in a kernel, too.
    pub checked: bool,
    /// Where policies run, on hosts that have a choice; `None`: the host's default.
    pub place: Option<Place>,
    /// What runs as dom0, on hypervisors that have a choice; `None`: the host's default.
    pub dom0: Option<Dom0>,
}

/// What runs beside a hypervisor and builds its domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dom0 {
    /// A kernel of this project's, with domains of the same.
    #[default]
    Small,
    /// Linux with the hypervisor's own tools, and domains with Linux.
    Linux,
}

/// Where policies run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the kernel.
    #[default]
    Kernel,
    /// In a process that decides for the kernel.
    Agent,
}

impl Place {
    /// In a word, as it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Place::Kernel => "module",
            Place::Agent => "agent",
        }
    }
}

/// Runs tasks under policies.
///
/// Only [`run`](Host::run) has to be implemented. By default, everything else is refused in words
/// that name it.
pub trait Host: Sync {
    /// Its entry in the list.
    fn info(&self) -> &'static HostInfo;

    /// Makes a run.
    ///
    /// Errors: the host cannot do what the order asks for, or the run could not be finished.
    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError>;

    /// Checks, before anything is booted, that one of its own schedulers can run virtual machines
    /// of so many CPUs in all on the machine of `setup`.
    ///
    /// Errors: it cannot; how many it can, and what to do about it.
    fn require_own(&self, scheduler: &str, setup: &Setup, vcpus: usize) -> Result<(), HostError> {
        let _ = (scheduler, setup, vcpus);
        Ok(())
    }

    /// The machine that runs of `setup` have, in words.
    fn machine(&self, setup: &Setup) -> String {
        cpus_in_words(setup.machine.cpus())
    }

    /// Checks, before anything is built, that it can boot a program as it was opened.
    ///
    /// Errors: as [`HostInfo::require_program`], or its options do not fit the program.
    fn require_program(&self, program: &Program) -> Result<(), HostError> {
        self.info().require_program(program)
    }

    /// Builds what runs on this machine under this scheduler need, such as a kernel's image, so
    /// that build errors show before the first run.
    ///
    /// Errors: it cannot be built.
    fn build(&self, by: &By<'_>, setup: &Setup) -> Result<(), HostError> {
        let _ = (by, setup);
        Ok(())
    }

    /// Measures what scheduling costs under each of `subjects`, for simulations of this host.
    ///
    /// Errors: a measurement failed, or this host does not measure costs.
    fn calibrate(&self, subjects: &[Subject]) -> Result<Calibration, HostError> {
        let _ = subjects;
        Err(self.info().cannot("measure what scheduling costs"))
    }

    /// Builds a package with which other machines become this host, and writes it and what belongs
    /// to it to `directory`; returns the paths.
    ///
    /// Errors: one of the files is there already, it cannot be built, or this host has no package.
    fn package(
        &self,
        directory: &Path,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, HostError> {
        let _ = (directory, say);
        Err(self.info().cannot("be packaged"))
    }

    /// Runs a server and puts `load` on it.
    ///
    /// Errors: as [`Host::run`], or this host has no server.
    fn serve(&self, order: Order<'_>, load: &ClientLoad) -> Result<Served, HostError> {
        let _ = (order, load);
        Err(self.info().cannot("serve requests"))
    }

    /// Has a policy schedule the machine that this program runs on. What it does goes to `show`
    /// after each interval, what happens besides to `say`. However this ends, the machine has its
    /// own scheduler back.
    ///
    /// Errors: what is missing on this machine, and what to do about it; the policy has died.
    fn attach(
        &self,
        order: &Attach<'_>,
        say: &mut dyn FnMut(&str),
        show: &mut dyn FnMut(&Sample),
    ) -> Result<Attached, HostError> {
        let _ = (order, say, show);
        Err(self.info().cannot(ATTACH))
    }

    /// Builds what [`attach`](Host::attach) needs on this machine, as a user without privileges;
    /// with `checked`, for an order that is.
    ///
    /// Errors: what is missing, or what a compiler says.
    fn build_attached(
        &self,
        place: Place,
        checked: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Built, HostError> {
        let _ = (place, checked, say);
        Err(self.info().cannot(ATTACH))
    }

    /// Who schedules the machine that this program runs on; `None`: its own scheduler.
    ///
    /// Errors: this cannot be found out.
    fn attached(&self) -> Result<Option<Attachment>, HostError> {
        Err(self.info().cannot(ATTACH))
    }

    /// Changes a parameter of the policy that [`attach`](Host::attach) has attached while it runs,
    /// in this process or another.
    ///
    /// Errors: nothing is attached, or the policy does not change that
    /// ([`check_param`](anysched_core::Scheduler::check_param)).
    fn change(&self, name: &str, value: &str) -> Result<(), HostError> {
        let _ = (name, value);
        Err(self.info().cannot(ATTACH))
    }

    /// Ends what [`attach`](Host::attach) has begun, in this process or another.
    ///
    /// Errors: nothing is attached, or it is somebody else's.
    fn detach(&self) -> Result<(), HostError> {
        Err(self.info().cannot(ATTACH))
    }

    /// Records what the scheduler of the machine does that this program runs on.
    ///
    /// Errors: what is missing on this machine, and what to do about it; events were lost.
    fn record(&self, order: &Recording<'_>) -> Result<Recorded, HostError> {
        let _ = order;
        Err(self.info().cannot("record the running machine"))
    }
}

const ATTACH: &str = "attach policies to the running machine";

impl HostInfo {
    /// The policies whose rule this host has itself ([`PolicyInfo::native`]): in the order of
    /// [`schedulers`](HostInfo::schedulers) those that correspond to one, then the others in the
    /// order of `list`.
    pub fn native(&self, list: &'static [PolicyInfo]) -> Vec<&'static PolicyInfo> {
        let place = |info: &'static PolicyInfo| {
            let native = info.native.iter().find(|native| native.host == self.name)?;
            let own = self.schedulers.iter().position(|own| native.scheduler == Some(*own));
            Some((own.unwrap_or(usize::MAX), info))
        };
        let mut found: Vec<(usize, &PolicyInfo)> = list.iter().filter_map(place).collect();
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, info)| info).collect()
    }

    /// The error that the host cannot do what `what` says.
    pub fn cannot(&self, what: &str) -> HostError {
        HostError(format!("{} cannot {what}", self.name))
    }

    /// The error that the host has no scheduler called `name`, with those that it has.
    pub fn no_scheduler(&self, name: &str) -> HostError {
        HostError(match self.schedulers {
            [] => format!("{} has no scheduler `{name}`, nor any other of its own", self.name),
            own => format!("{} has no scheduler `{name}`, but {}", self.name, own.join(", ")),
        })
    }

    /// Checks that the host can boot a program, and that the program takes these arguments.
    ///
    /// Errors: it cannot, or the program does not; those that there are.
    pub fn require_program(&self, program: &Program) -> Result<(), HostError> {
        let Program { name, arguments } = program;
        let known = self.programs.iter().find(|known| known.name == name);
        let known = known.ok_or_else(|| self.no_program(name))?;
        let Some((wrong, value)) = arguments.iter().find(|(argument, _)| !known.has(argument))
        else {
            return Ok(());
        };
        let names: Vec<&str> = known.arguments.iter().map(|argument| argument.name).collect();
        let all = match names[..] {
            [] => "it takes none".into(),
            _ => format!("it takes {}", names.join(", ")),
        };
        Err(HostError(format!("`{name}` has no argument `{wrong}` (= \"{value}\"); {all}")))
    }

    /// The error that the host has no program called `name`, with those that it has.
    pub fn no_program(&self, name: &str) -> HostError {
        let programs: Vec<&str> = self.programs.iter().map(|program| program.name).collect();
        HostError(match programs[..] {
            [] => format!("{} has no programs: it runs the loads of experiments", self.name),
            _ => format!("{} has no program `{name}`, but {}", self.name, programs.join(", ")),
        })
    }
}

/// `1 CPU`, `2 CPUs`.
pub fn cpus_in_words(cpus: usize) -> String {
    format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" })
}

/// Why there is no answer, in words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError(pub String);

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HostError {}

impl From<String> for HostError {
    fn from(why: String) -> HostError {
        HostError(why)
    }
}
