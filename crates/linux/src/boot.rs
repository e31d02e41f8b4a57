//! A boot of the guest: what it is given, and what it says.

use crate::machine::Ready;
use crate::{Archive, BootError, Image, packaged};
use anysched_core::{Machine, Span};
use anysched_debian::emulator;
use anysched_host::{Clock, Place};
use anysched_qemu::{self as qemu, Console, Emulator, Outcome};
use anysched_wire::script::{self, Script};
use anysched_wire::{boot, start};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A boot.
#[derive(Clone, Debug)]
pub struct Boot {
    /// What the guest is to run, and under which scheduler.
    pub orders: boot::Boot,
    /// The tasks of the program `batch`.
    pub tasks: Option<Script>,
    /// Whether policy and host are held to their contract.
    pub checked: bool,
    /// Where in the guest the policy runs.
    pub place: Place,
    /// Whether the guest has what policies come into the kernel by. What boots under the kernel's
    /// own scheduler may do without.
    pub loaders: bool,
    /// How the policy goes wrong, and at which pick; for tests.
    pub fault: Option<(String, u64)>,
    /// The machine.
    pub machine: Machine,
    /// More of the kernel's command line, after what it is told here.
    pub options: String,
    /// How time passes.
    pub clock: Clock,
    /// The image of another kernel.
    pub kernel: Option<PathBuf>,
    /// Programs of the suite that the guest needs.
    pub programs: Vec<String>,
    /// Files of this computer that the guest gets, and where. Programs among them have to be
    /// static, or come with the libraries that the guest lacks.
    pub files: Vec<(String, PathBuf)>,
    /// How long the kernel may be silent.
    pub patience: Duration,
    /// Room for the log of decisions, in bytes, if one is recorded; at most 256 MiB.
    pub log_bytes: u64,
}

/// The kernel's console, which is not that of the guest.
const CONSOLE: &str = "console";
const LOG: &str = "log";

/// Room for the log of decisions, in bytes.
const LOG_BYTES: u64 = 256 << 20;

/// Memory without the log's. There is room for the kernel's own events and their text in it.
const MEMORY: u64 = 1 << 30;

/// The kernel's tick: Debian's kernels have 250 a second.
pub(crate) const TICK: Span = Span::from_ms(4);

/// What the kernel is told. Its own timer checks and ciphers' tests would take longer than a short
/// program. A kernel thread that watches memory (from 6.17 on) would run every 10 ms and keep tasks
/// from their usual turns.
const COMMAND_LINE: &str = "console=ttyS1 quiet panic=-1 rdinit=/init tsc=reliable no_timer_check \
                            cryptomgr.notests nokaslr mitigations=auto damon_stat.enabled=N";

impl Boot {
    /// A boot of `program` under `policy` on one CPU, its instructions counted.
    pub fn new(policy: &str, program: &str) -> Boot {
        Boot {
            orders: boot::Boot {
                policy: policy.into(),
                tick: Some(TICK.0),
                program: program.into(),
                ..boot::Boot::default()
            },
            tasks: None,
            checked: false,
            place: Place::default(),
            loaders: true,
            fault: None,
            machine: Machine::flat(1).unwrap_or_else(|error| unreachable!("{error}")),
            options: String::new(),
            clock: Clock::COUNTED,
            kernel: None,
            programs: Vec::new(),
            files: Vec::new(),
            patience: Duration::from_secs(600),
            log_bytes: LOG_BYTES,
        }
    }

    /// Adds what the program needs, if that is one of Debian's packages. Call it when program and
    /// arguments are known.
    ///
    /// Errors: the file that an argument names is not there.
    pub fn provide(&mut self) -> Result<(), BootError> {
        packaged::provide(self)
    }

    /// Builds what this boot needs besides the image. What happens meanwhile goes to `say`.
    ///
    /// Errors: as [`Image::build`].
    pub fn build(&self, image: &Image, say: &mut dyn FnMut(&str)) -> Result<(), BootError> {
        self.archives(image, say).map(drop)
    }

    /// The archives of the guest's first file system.
    fn archives(
        &self,
        image: &Image,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, BootError> {
        let mut archives = vec![image.initramfs().to_path_buf()];
        if self.loaders {
            archives.push(image.loaders(say)?);
        }
        if self.loaders && self.place == Place::Kernel {
            archives.push(image.module(self.checked, say)?);
        }
        let mut programs = Vec::new();
        for program in &self.programs {
            programs.push(image.program(program, say)?);
        }
        // Of a library that several have, the last is taken. It has to be the newest.
        programs.sort_by_key(|archive| archive.metadata().and_then(|data| data.modified()).ok());
        archives.extend(programs);
        Ok(archives)
    }

    /// Boots the image, or goes on from where an earlier boot of the same machine was ready, and
    /// waits for the program to end. What the program says for people goes to `say` as it comes.
    ///
    /// Errors: the kernel panicked, hung, or ended too soon; the guest refused its orders.
    pub fn run(&self, image: &Image, say: &mut dyn FnMut(&str)) -> Result<Outcome, BootError> {
        let directory = qemu::directory()?;
        let directory = directory.path();
        let emulator = emulator(self.clock, self.machine.cpus(), say)?;
        let machine = self.ready(emulator, image, say)?;
        let mut qemu = self.qemu(emulator, image, &machine.initrd, directory)?;
        self.give_orders(&mut qemu, directory)?;
        let mut running = qemu::go_on(qemu, &machine.state)?;
        let mut console = Console::of_programs();
        let heard = console.listen(&mut running, self.patience, say);
        drop(running);
        heard.map_err(|error| with_console(error, &directory.join(CONSOLE)))?;
        let mut outcome = console.outcome;
        if self.orders.record || self.orders.events {
            let mut logs = qemu::read_logs(&directory.join(LOG), 1 + self.machine.cpus())?;
            outcome.events = logs.split_off(1);
            outcome.logs = logs;
        }
        Ok(outcome)
    }

    /// The machine of this boot, ready for its orders.
    fn ready(
        &self,
        emulator: &Emulator,
        image: &Image,
        say: &mut dyn FnMut(&str),
    ) -> Result<Ready, BootError> {
        let archives = self.archives(image, say)?;
        let mut inputs = archives.clone();
        inputs.push(self.kernel(image).into());
        inputs.extend(self.files.iter().map(|(_, path)| path.clone()));
        // Where its console and its log go changes with each boot, and says nothing of the machine.
        let nowhere = Path::new("");
        let qemu = self.qemu(emulator, image, nowhere, nowhere)?;
        let places: Vec<_> = self.files.iter().map(|(place, _)| place).collect();
        let description = format!("{} {qemu:?} {places:?}", emulator.version());
        image.ready(&description, &inputs, &mut |initrd, state| {
            self.write_initrd(&archives, initrd)?;
            let directory = qemu::directory()?;
            let qemu = self.qemu(emulator, image, initrd, directory.path())?;
            qemu::save(qemu, state, self.patience, say)
                .map_err(|error| with_console(error, &directory.path().join(CONSOLE)))
        })
    }

    /// What the module is to start; the guest adds its CPUs.
    fn start(&self) -> start::Start {
        start::Start {
            policy: self.orders.policy.clone(),
            settings: in_kernel(&self.orders.policy, &self.orders.settings),
            tick: self.orders.tick,
            checked: self.checked,
            record: self.orders.record.then_some(self.log_bytes),
            fault: self.fault.clone(),
            cpus: Vec::new(),
        }
    }

    /// Tells the guest what to run.
    fn give_orders(&self, qemu: &mut Command, directory: &Path) -> Result<(), BootError> {
        qemu::give(qemu, boot::ITEM, directory, &self.orders.write()?)?;
        qemu::give(qemu, boot::PLACE, directory, self.place.name())?;
        qemu::give(qemu, start::ITEM, directory, &self.start().write()?)?;
        if let Some(script) = &self.tasks {
            qemu::give(qemu, script::ITEM, directory, &script.write()?)?;
        }
        Ok(())
    }

    /// Writes the guest's first file system: the archives, one after the other, and files.
    fn write_initrd(&self, archives: &[PathBuf], path: &Path) -> Result<(), BootError> {
        let fault = |error: io::Error| BootError::files(path.display(), error);
        let mut file = File::create(path).map_err(fault)?;
        for archive in archives {
            let mut archive = File::open(archive).map_err(fault)?;
            io::copy(&mut archive, &mut file).map_err(fault)?;
        }
        let mut own = Archive::default();
        for (place, program) in &self.files {
            let contents = fs::read(program);
            own.add_program(
                place,
                contents.map_err(|error| BootError::files(program.display(), error))?,
            );
        }
        let own = own.bytes()?;
        io::copy(&mut own.as_slice(), &mut file).map(drop).map_err(fault)
    }

    fn kernel<'a>(&'a self, image: &'a Image) -> &'a Path {
        self.kernel.as_deref().unwrap_or(image.vmlinuz())
    }

    /// The machine, with its first file system and where the files go that it writes.
    fn qemu(
        &self,
        emulator: &Emulator,
        image: &Image,
        initrd: &Path,
        out: &Path,
    ) -> Result<Command, BootError> {
        // With room for a log, whether there is one or not: one machine does for both.
        let memory = MEMORY + LOG_BYTES;
        let mut machine = emulator.machine(self.kernel(image), &format!("{}M", memory >> 20));
        let command_line = format!("{COMMAND_LINE} {}", self.options);
        machine.args(["-cpu", "max", "-append", command_line.trim_end()]);
        machine.arg("-initrd").arg(initrd);
        machine.arg("-serial").arg(format!("file:{}", out.join(CONSOLE).display()));
        qemu::send_logs(&mut machine, &out.join(LOG));
        qemu::set_clock(&mut machine, self.clock);
        if self.clock == Clock::Parallel {
            // QEMU's CPUs at the same time oops in the kernel's patching of its own code.
            machine.args(["-accel", "tcg,thread=single"]);
        }
        machine.args(qemu::cpus(&self.machine, memory)?);
        emulator.boot_quickly(&mut machine);
        Ok(machine)
    }
}

/// The settings of a policy in the kernel. There, idle CPUs are told of tasks that wait elsewhere
/// unless settings say otherwise: under `steal = linux` a task may wait beside an idle CPU for as
/// long as Linux lets it, which under CFS can be seconds after it was in SCHED_IDLE.
pub(crate) fn in_kernel(name: &str, settings: &[(String, String)]) -> Vec<(String, String)> {
    let mut settings = settings.to_vec();
    let params = anysched_policies::policy(name).map(|info| (info.params)()).unwrap_or_default();
    let pulls_as_linux =
        params.iter().any(|param| param.name == "steal" && param.default == "linux");
    if pulls_as_linux && settings.iter().all(|(name, _)| name != "steal") {
        settings.push(("steal".into(), "machine".into()));
    }
    settings
}

/// Lines of the kernel's console that say why it went wrong.
fn with_console(error: BootError, console: &Path) -> BootError {
    let text = fs::read(console).map(|text| String::from_utf8_lossy(&text).into_owned());
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    match error {
        BootError::Hung { silence, last: said } => {
            BootError::Hung { silence, last: format!("{said}\"; its console: \"{last}") }
        }
        BootError::Unfinished { last: said, status } => {
            BootError::Unfinished { last: format!("{said}\"; its console: \"{last}"), status }
        }
        other => other,
    }
}

/// Lines of the console that errors show.
const SHOWN: usize = 20;
