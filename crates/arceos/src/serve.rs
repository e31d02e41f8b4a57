//! The program `udp` under a load.

use super::{Boot, Clock, Kernel, Outcome};
use crate::BootError;
use anysched_clients::{self as clients, Load, Report};
use anysched_qemu::{Console, Event, Running};
use anysched_wire::datagram::CLIENTS_PER_SOCKET;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often the kernel is listened to while the clients are at work.
const GLANCE: Duration = Duration::from_millis(100);

/// How long a kernel may take to answer the first datagram: some are lost until each side knows
/// the other's address.
const GREETING: Duration = Duration::from_secs(20);

impl Boot {
    /// A boot of the server `udp` under `policy`.
    pub fn server(policy: &str) -> Boot {
        let mut boot = Boot::new(policy, "udp");
        boot.image.net = true;
        boot.clock = Clock::Real;
        if boot.image.kernel != Kernel::Anysched {
            // ArceOS's own schedulers see only at a tick, of which a second has 100, that a sleep
            // is over: their programs wait for the network in a loop that yields.
            boot.arguments.push(("wait".into(), "yield".into()));
        }
        boot
    }

    /// Boots a [server](Boot::server) from an image that has been built, puts `load` on it and
    /// tells it to quit. Its ports on this computer are the boot's, one for every
    /// [`CLIENTS_PER_SOCKET`] clients, or free ones if it has none.
    ///
    /// Errors: as [`Boot::run`]; no answer came for as long as the kernel may be silent; the
    /// network of this computer fails.
    pub fn serve(
        &self,
        kernel: &Path,
        load: &Load,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Report, Outcome), BootError> {
        let sockets = usize::from(load.clients).div_ceil(CLIENTS_PER_SOCKET);
        let given = self.udp_ports.clone();
        let ports = if given.is_empty() { free_ports(sockets)? } else { given };
        let mut boot = self.clone();
        boot.arguments.push(("sockets".into(), ports.len().to_string()));
        let servers: Vec<SocketAddr> =
            ports.iter().map(|&port| (Ipv4Addr::LOCALHOST, port).into()).collect();
        boot.udp_ports = ports;
        let emulator = boot.emulator(say)?;
        boot.run_beside(emulator, kernel, |running, console| {
            let mut session = Session { running, console, patience: self.patience, say };
            session.wait_until_ready()?;
            if !clients::greet(&servers, GREETING).map_err(network)? {
                return Err(session.console.hung(GREETING));
            }
            let report = session.load(load, &servers)?;
            session.quit(servers[0])?;
            Ok(report)
        })
    }
}

/// Ports of this computer that nobody uses.
fn free_ports(count: usize) -> Result<Vec<u16>, BootError> {
    // All are held until all are known, so that they differ. QEMU takes them right afterwards.
    let sockets: Result<Vec<UdpSocket>, _> =
        (0..count).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect();
    let ports = sockets.and_then(|sockets| {
        sockets.iter().map(|socket| socket.local_addr().map(|address| address.port())).collect()
    });
    ports.map_err(network)
}

fn network(error: std::io::Error) -> BootError {
    BootError::files("the network of this computer", error)
}

/// A server that runs.
struct Session<'a> {
    running: &'a mut Running,
    console: &'a mut Console,
    patience: Duration,
    say: &'a mut dyn FnMut(&str),
}

impl Session<'_> {
    fn hear(&mut self, patience: Duration) -> Result<Event, BootError> {
        self.console.hear(self.running, patience, self.say)
    }

    fn wait_until_ready(&mut self) -> Result<(), BootError> {
        while !self.console.is_serving() {
            match self.hear(self.patience)? {
                Event::Line => {}
                Event::Silence => return Err(self.console.hung(self.patience)),
                Event::End => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// It has ended, and nobody has told it to.
    fn ended(&self) -> BootError {
        let last = self.console.last().to_string();
        BootError::Unfinished { last, status: "before it was told to quit".into() }
    }

    /// Puts `load` on the server while it is listened to.
    fn load(&mut self, load: &Load, servers: &[SocketAddr]) -> Result<Report, BootError> {
        let (answered, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let (report, fault) = std::thread::scope(|scope| {
            let clients = scope.spawn(|| load.run(servers, &answered, &stop));
            let mut fault = None;
            let (mut known, mut since) = (0, Instant::now());
            while !clients.is_finished() && fault.is_none() {
                fault = match self.hear(GLANCE) {
                    Err(error) => Some(error),
                    Ok(Event::End) => Some(self.ended()),
                    Ok(_) => None,
                };
                let now = answered.load(Relaxed);
                if now != known {
                    (known, since) = (now, Instant::now());
                } else if since.elapsed() > self.patience {
                    fault = Some(self.console.hung(self.patience));
                }
            }
            stop.store(true, Relaxed);
            (clients.join(), fault)
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        report.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(network)
    }

    fn quit(&mut self, server: SocketAddr) -> Result<(), BootError> {
        // Said once a second, because datagrams can be lost.
        const AGAIN: Duration = Duration::from_secs(1);
        let told = Instant::now();
        let mut at = None;
        while told.elapsed() < self.patience {
            if at.is_none_or(|at: Instant| at.elapsed() >= AGAIN) {
                clients::quit(server).map_err(network)?;
                at = Some(Instant::now());
            }
            if self.hear(AGAIN)? == Event::End {
                return Ok(());
            }
        }
        Err(self.console.hung(self.patience))
    }
}
