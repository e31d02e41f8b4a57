//! ArceOS: a unikernel whose scheduler is a policy of anysched, or one of its own.
//!
//! The policy, its parameters and the program are named when the image is booted, not when it is
//! built. QEMU counts instructions instead of time unless told otherwise, so that a boot takes
//! the same time to the nanosecond whenever it is repeated.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod calibrate;
mod host;
mod image;
mod made;
mod serve;

pub use host::{ArceOs, HOST};
pub use image::{Image, Kernel};

pub use anysched_qemu::{BootError, Outcome, TaskOutcome};

use anysched_core::Span;
use anysched_debian::emulator;
pub use anysched_host::Clock;
use anysched_qemu::{self as qemu, Console, Emulator, Running};
use anysched_wire::script::{self, Script};
use anysched_wire::{boot, datagram};
use std::path::Path;
use std::time::Duration;

/// One boot.
#[derive(Clone, Debug)]
pub struct Boot {
    /// The image.
    pub image: Image,
    /// The policy; ArceOS's own schedulers have none.
    pub policy: String,
    /// Its parameters.
    pub settings: Vec<(String, String)>,
    /// The machine's tick, for policies that have none of their own.
    pub tick: Option<Span>,
    /// The program.
    pub app: String,
    /// Its arguments.
    pub arguments: Vec<(String, String)>,
    /// The tasks of the program `batch`.
    pub tasks: Option<Script>,
    /// Whether the policy's calls and answers are recorded.
    pub record: bool,
    /// Whether the time that the policy's calls take is measured.
    pub timed: bool,
    /// How time passes.
    pub clock: Clock,
    /// Ports of this computer: datagrams to them reach the program's ports from
    /// [`datagram::PORT`] on.
    pub udp_ports: Vec<u16>,
    /// How long the kernel may be silent.
    pub patience: Duration,
}

impl Boot {
    /// A boot of `app` under `policy` on one CPU, its instructions counted.
    pub fn new(policy: &str, app: &str) -> Boot {
        let stock = Kernel::STOCK.iter().find(|(name, _)| *name == policy);
        let kernel = stock.map_or(Kernel::Anysched, |(_, kernel)| *kernel);
        Boot {
            image: Image { kernel, cpus: 1, net: false },
            policy: policy.into(),
            settings: Vec::new(),
            tick: None,
            app: app.into(),
            arguments: Vec::new(),
            tasks: None,
            record: false,
            timed: false,
            clock: Clock::COUNTED,
            udp_ports: Vec::new(),
            patience: Duration::from_secs(120),
        }
    }

    /// What the kernel reads when it boots.
    fn text(&self) -> Result<String, BootError> {
        let mut arguments = self.arguments.clone();
        if self.image.cpus > 1 && matches!(self.clock, Clock::Instructions(_)) {
            // A CPU that halts leaves its turns to the others, which then are faster.
            arguments.push(("idle".into(), "spin".into()));
        }
        let boot = boot::Boot {
            policy: self.policy.clone(),
            settings: self.settings.clone(),
            tick: self.tick.map(|tick| tick.0),
            record: self.record,
            events: false,
            timed: self.timed,
            program: self.app.clone(),
            arguments,
        };
        Ok(boot.write()?)
    }

    /// Builds the image if need be, boots it and waits for the program to end. What the program
    /// says for people goes to `say` as it comes.
    ///
    /// Errors: the image could not be built, the kernel panicked, hung, or ended too soon.
    pub fn run(&self, say: &mut dyn FnMut(&str)) -> Result<Outcome, BootError> {
        let kernel = self.image.build()?;
        self.run_image(&kernel, say)
    }

    /// As [`Boot::run`], with an image that has been built.
    ///
    /// Errors: as [`Boot::run`].
    pub fn run_image(
        &self,
        kernel: &Path,
        say: &mut dyn FnMut(&str),
    ) -> Result<Outcome, BootError> {
        let emulator = self.emulator(say)?;
        let listen = |running: &mut Running, console: &mut Console| {
            console.listen(running, self.patience, say)
        };
        self.run_beside(emulator, kernel, listen).map(|((), outcome)| outcome)
    }

    /// The QEMU for this machine.
    fn emulator(&self, say: &mut dyn FnMut(&str)) -> Result<&'static Emulator, BootError> {
        emulator(self.clock, self.image.cpus.into(), say)
    }

    /// Boots an image and has `listen` hear it to its end.
    fn run_beside<R>(
        &self,
        emulator: &Emulator,
        kernel: &Path,
        listen: impl FnOnce(&mut Running, &mut Console) -> Result<R, BootError>,
    ) -> Result<(R, Outcome), BootError> {
        let directory = qemu::directory()?;
        let mut running = self.start(emulator, kernel, directory.path())?;
        let mut console = Console::default();
        let heard = listen(&mut running, &mut console)?;
        let mut outcome = console.outcome;
        if self.record {
            let path = directory.path().join(LOG);
            // All CPUs share a policy, which sends its log as that of the first.
            outcome.logs = qemu::read_logs(&path, 1)?;
        }
        Ok((heard, outcome))
    }

    /// Starts QEMU with `directory` for its files.
    fn start(
        &self,
        emulator: &Emulator,
        kernel: &Path,
        directory: &Path,
    ) -> Result<Running, BootError> {
        // The kernel is built for just so much.
        let mut machine = emulator.machine(kernel, "128M");
        qemu::give(&mut machine, boot::ITEM, directory, &self.text()?)?;
        if let Some(tasks) = &self.tasks {
            qemu::give(&mut machine, script::ITEM, directory, &tasks.write()?)?;
        }
        qemu::set_clock(&mut machine, self.clock);
        machine.args(["-smp", &self.image.cpus.to_string()]);
        if self.record {
            qemu::send_logs(&mut machine, &directory.join(LOG));
        }
        if !self.image.net {
            emulator.boot_quickly(&mut machine);
        }
        if !self.udp_ports.is_empty() {
            let forward = |(inside, outside)| format!(",hostfwd=udp:127.0.0.1:{outside}-:{inside}");
            let forward: String = (datagram::PORT..).zip(&self.udp_ports).map(forward).collect();
            machine.args(["-netdev", &format!("user,id=net{forward}")]);
            machine.args(["-device", "virtio-net-pci,netdev=net"]);
        }
        Running::start(machine)
    }
}

/// The file that the log is sent to.
const LOG: &str = "log";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_told_what_the_boot_says() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let mut boot = Boot::new("rr", "yield");
        boot.settings = vec![pair("quantum", "10ms")];
        boot.arguments = vec![pair("groups", "1, 2")];
        boot.tick = Some(Span::from_ms(1));
        boot.record = true;
        assert_eq!(
            boot.text().unwrap(),
            "anysched-boot 1\npolicy rr\nset quantum 10ms\ntick 1000000\nrecord\nprogram yield\n\
             with groups 1, 2\n"
        );
    }

    #[test]
    fn what_the_kernel_cannot_be_told_is_an_error() {
        let error = Boot::new("rr", "two words").text().unwrap_err();
        assert!(error.to_string().starts_with("boot text, program: \"two words\""), "{error}");
    }
}
