//! A boot: what hypervisor and dom0 are given, and what they say.

use crate::host::HOST;
use crate::{BootError, Image, LinuxDom0, dom0};
use anysched_core::{Machine, Span};
use anysched_debian::emulator;
use anysched_host::{By, Clock};
use anysched_qemu::{self as qemu, Console, Emulator, Outcome, Running};
use anysched_wire::dom0::{STOCK, TakenFor};
use anysched_wire::start::{LARGEST_LOG, Start};
use anysched_wire::{boot, option, vcpus};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A boot.
#[derive(Clone, Debug)]
pub struct Boot {
    /// What dom0 is to do, and under which scheduler.
    pub orders: boot::Boot,
    /// The virtual machines of an experiment, as [`domains`](anysched_wire::domains) has them;
    /// empty: there are none.
    pub domains: String,
    /// Linux as dom0 and in its domains, and how its tools speak to the scheduler; `None`: the
    /// image's small guests.
    pub linux: Option<(LinuxDom0, TakenFor)>,
    /// Memory of the machine beyond what programs need, in bytes.
    pub memory: u64,
    /// Whether policy and host are held to their contract.
    pub checked: bool,
    /// How the policy goes wrong, and at which pick; for tests.
    pub fault: Option<(String, u64)>,
    /// Seconds after which a vCPU that is ready has to run under a policy that does not let vCPUs
    /// starve; 0: whenever. `None`: the scheduler's own limit, 30 s.
    pub watchdog: Option<u32>,
    /// Pages of the buffer into which Xen records what happens on a pCPU, if events are wanted;
    /// `None`: as many as usual.
    pub trace_pages: Option<usize>,
    /// The machine.
    pub machine: Machine,
    /// More of Xen's options, before those that it needs here.
    pub options: String,
    /// How time passes.
    pub clock: Clock,
    /// How long the machine may be silent.
    pub patience: Duration,
}

/// Xen's own schedulers, by the names under which they can be booted: Xen's names of them, after
/// [`STOCK`].
pub(crate) const OWN: [&str; 4] = ["stock-credit", "stock-credit2", "stock-rtds", "stock-null"];

/// What tools take a scheduler for: of Xen's own, itself; of policies, the one of Xen's with the
/// same rule, or else one that has what the program's arguments set.
pub(crate) fn taken_for(by: &By<'_>, orders: &boot::Boot) -> TakenFor {
    let own = |name: &str| name.strip_prefix(STOCK).and_then(TakenFor::find);
    let same = match by {
        By::Own(name) => own(name),
        By::Policy(info, _) => {
            let native = info.native.iter().find(|native| native.host == HOST.name);
            native.and_then(|native| native.scheduler).and_then(own)
        }
    };
    let periods = orders.argument("periods_us").map(|_| TakenFor::Rtds);
    same.or(periods).unwrap_or(TakenFor::Credit)
}

/// The files that logs and what Xen has recorded are sent to, dom0's kernel and its orders.
const LOG: &str = "log";
const RECORDS: &str = "records";
const GUEST: &str = "guest";
const ORDERS: &str = "orders";

/// Memory of the machine, in bytes. There is room for some 200 domains in it.
const MEMORY: u64 = 512 << 20;

/// What is said to Xen of all boots.
const OPTIONS: &str = "console=com1 com1=115200,8n1 loglvl=warning guest_loglvl=warning";
const MORE_OPTIONS: &str = "dom0_max_vcpus=1 bootscrub=0";

/// A small dom0 is as small as the domains that it builds.
const SMALL: &str = "dom0_mem=32M,max:32M";

/// What is said to Linux as dom0. What its kernel says besides is in the way of results.
const LINUX: &str = "console=hvc0 loglevel=2 panic=1";

/// Pages of the buffer into which Xen records what happens on a pCPU: there is room in it for some
/// 80,000 switches. The buffers of all pCPUs have so many at most (Xen, common/trace.c: the place
/// of a page in their list is a number of 16 bits).
const TRACE_PAGES: usize = 4096;
const ALL_TRACE_PAGES: usize = 60_000;

/// What of it is recorded (public/trace.h): changes of runstates, what happens in schedulers, and
/// what vCPUs ask of them.
const TRACED: u32 = 0x2f000;

/// Logs of so many pools, as in hosts/xen/policies: Xen's own until the first pool is there, that
/// pool's, and those of others.
const LOGS: usize = 16;

impl Boot {
    /// A boot of `program` under `policy` on one pCPU, its instructions counted.
    pub fn new(policy: &str, program: &str) -> Boot {
        Boot {
            orders: boot::Boot {
                policy: policy.into(),
                program: program.into(),
                ..boot::Boot::default()
            },
            domains: String::new(),
            linux: None,
            memory: 0,
            checked: false,
            fault: None,
            watchdog: None,
            trace_pages: None,
            machine: Machine::flat(1).unwrap_or_else(|error| unreachable!("{error}")),
            options: String::new(),
            clock: Clock::COUNTED,
            patience: Duration::from_secs(600),
        }
    }

    /// Boots and waits for the program to end. What is said for people goes to `say` as it comes.
    ///
    /// Errors: Xen panicked, something hung or ended too soon; dom0 refused its orders.
    pub fn run(&self, image: &Image, say: &mut dyn FnMut(&str)) -> Result<Outcome, BootError> {
        let directory = qemu::directory()?;
        let directory = directory.path();
        let emulator = emulator(self.clock, self.machine.cpus(), say)?;
        let mut running = Running::start(self.qemu(emulator, image, directory)?)?;
        let mut console = Console::default();
        console.listen(&mut running, self.patience, say)?;
        let mut outcome = console.outcome;
        if self.orders.record {
            let mut logs = qemu::read_logs(&directory.join(LOG), LOGS)?;
            // The first pool's. The one before it had no pCPU.
            outcome.logs = vec![logs.swap_remove(1)];
        }
        if self.orders.events {
            outcome.events = qemu::read_logs(&directory.join(RECORDS), self.machine.cpus())?;
        }
        Ok(outcome)
    }

    fn qemu(
        &self,
        emulator: &Emulator,
        image: &Image,
        directory: &Path,
    ) -> Result<Command, BootError> {
        let buffers = if self.orders.events { self.trace_pages() * self.machine.cpus() } else { 0 };
        let memory = match &self.linux {
            Some(_) => dom0::memory(&self.orders),
            None => MEMORY + self.memory + (buffers as u64) * 4096,
        };
        let memory = memory.next_multiple_of(64 << 20);
        let mut machine = emulator.machine(image.hypervisor(), &format!("{}M", memory >> 20));
        let modules = self.write_modules(image, directory)?;
        machine.current_dir(directory).arg("-initrd").arg(modules);
        // With XSAVE, in QEMU 7.2, `xl` found 4 of 7 kernels damaged that it decompressed while
        // other domains ran, under Debian's own Xen, too; without it, none.
        let less = if self.linux.is_some() { ",-xsave" } else { "" };
        // Xen would have to be built with SMAP's alternatives for every page that dom0 maps. A
        // write to an x2APIC ends QEMU 10 where it counts instructions ("Bad icount read").
        machine.arg("-cpu").arg(format!("max,-smap,-x2apic{less}"));
        machine.args(["-append", &self.command_line()?]);
        machine.args(qemu::cpus(&self.machine, memory)?);
        if self.orders.record {
            qemu::send_logs(&mut machine, &directory.join(LOG));
        }
        if self.orders.events {
            qemu::send_from(&mut machine, RECORDS, vcpus::PORT, &directory.join(RECORDS));
        }
        qemu::set_clock(&mut machine, self.clock);
        Ok(machine)
    }

    /// Writes the files that Xen hands to dom0. Returns them as QEMU wants them: in a list with
    /// commas, by names that have none.
    fn write_modules(&self, image: &Image, directory: &Path) -> Result<String, BootError> {
        let fault = |what: &Path, error| BootError::files(what.display(), error);
        let (guest, orders) = (directory.join(GUEST), directory.join(ORDERS));
        let kernel = self.linux.as_ref().map_or(image.guest(), |(linux, _)| linux.kernel());
        let bytes = std::fs::read(kernel).map_err(|error| fault(kernel, error))?;
        std::fs::write(&guest, bytes).map_err(|error| fault(&guest, error))?;
        if let Some((linux, scheduler)) = &self.linux {
            linux.write_initrd(&orders, &self.orders()?, *scheduler)?;
            return Ok(format!("{GUEST} {LINUX},{ORDERS}"));
        }
        std::fs::write(&orders, self.orders()?).map_err(|error| fault(&orders, error))?;
        Ok(format!("{GUEST},{ORDERS}"))
    }

    /// What Xen is told.
    fn command_line(&self) -> Result<String, BootError> {
        let dom0 = self.linux.as_ref().map_or_else(|| SMALL.into(), |_| dom0::options());
        let more = if self.options.is_empty() { "" } else { " " };
        let line = format!(
            "{}{more}{OPTIONS} {dom0} {MORE_OPTIONS} {}",
            self.options,
            self.own_options()?
        );
        Ok(match &self.linux {
            Some((_, scheduler)) if !self.is_own() => {
                format!("{line} anysched_as={}", scheduler.name())
            }
            _ => line,
        })
    }

    /// Whether the scheduler is one of Xen's own.
    fn is_own(&self) -> bool {
        self.orders.policy.starts_with(STOCK)
    }

    /// What is said to dom0: behind a zero byte, what there is of virtual machines.
    fn orders(&self) -> Result<String, BootError> {
        let mut orders = self.orders.write()?;
        if !self.domains.is_empty() {
            orders.push('\0');
            orders.push_str(&self.domains);
        }
        Ok(orders)
    }

    /// Pages of the buffer of each pCPU.
    fn trace_pages(&self) -> usize {
        let usual = TRACE_PAGES.min(ALL_TRACE_PAGES / self.machine.cpus());
        self.trace_pages.unwrap_or(usual)
    }

    /// What is said to Xen of this boot.
    fn own_options(&self) -> Result<String, BootError> {
        let scheduler = self.scheduler()?;
        if !self.orders.events {
            return Ok(scheduler);
        }
        Ok(format!("{scheduler} tbuf_size={} tevt_mask={TRACED:#x}", self.trace_pages()))
    }

    fn scheduler(&self) -> Result<String, BootError> {
        if let Some(own) = self.orders.policy.strip_prefix(STOCK) {
            return Ok(format!("sched={own}"));
        }
        let start = Start {
            policy: self.orders.policy.clone(),
            settings: self.orders.settings.clone(),
            tick: self.orders.tick,
            checked: self.checked,
            record: self.orders.record.then_some(LARGEST_LOG),
            fault: self.fault.clone(),
            cpus: Vec::new(),
        };
        let watchdog =
            self.watchdog.map_or(String::new(), |limit| format!(" anysched_watchdog={limit}"));
        Ok(format!("sched=anysched anysched={}{watchdog}", option::write(&start)?))
    }

    /// The machine's tick, for policies that have none of their own.
    pub fn set_tick(&mut self, tick: Option<Span>) {
        self.orders.tick = tick.map(|tick| tick.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xen_is_told_what_the_boot_says() {
        let mut boot = Boot::new("credit", "hog");
        boot.orders.settings = vec![("boost".into(), "false".into())];
        boot.orders.record = true;
        boot.checked = true;
        boot.set_tick(Some(Span::from_ms(1)));
        let options = "sched=anysched anysched=credit,boost=false,tick:1000000,checked,record";
        assert_eq!(boot.own_options().unwrap(), options);
        boot.watchdog = Some(2);
        assert_eq!(boot.own_options().unwrap(), format!("{options} anysched_watchdog=2"));
        let mut own = Boot::new("stock-credit2", "hog");
        assert_eq!(own.own_options().unwrap(), "sched=credit2");
        own.orders.events = true;
        assert_eq!(own.own_options().unwrap(), "sched=credit2 tbuf_size=4096 tevt_mask=0x2f000");
        own.machine = Machine::flat(60).unwrap();
        assert!(own.own_options().unwrap().contains("tbuf_size=1000 "));
    }

    #[test]
    fn tools_take_a_policy_for_the_scheduler_of_its_rule() {
        let policy = |name| By::Policy(anysched_policies::policy(name).unwrap(), Vec::new());
        let mut orders = boot::Boot::default();
        for (by, expected) in [
            (policy("credit2"), TakenFor::Credit2),
            (policy("rtds"), TakenFor::Rtds),
            (policy("cfs"), TakenFor::Credit),
            (By::Own("stock-credit2"), TakenFor::Credit2),
            (By::Own("stock-null"), TakenFor::Null),
        ] {
            assert_eq!(taken_for(&by, &orders), expected, "{}", by.name());
        }
        orders.arguments = vec![("periods_us".into(), "10000".into())];
        assert_eq!(taken_for(&policy("sedf"), &orders), TakenFor::Rtds);
        assert_eq!(taken_for(&policy("credit2"), &orders), TakenFor::Credit2);
    }
}
