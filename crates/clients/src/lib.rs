//! Requests for a server that runs in a kernel. Each client on this computer sends a request, waits
//! for the answer and sends the next at once. `anysched_wire::datagram` defines both formats.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod report;

use anysched_core::Span;
use anysched_wire::datagram::{Answer, DEAREST, Datagram, LONGEST, Request};
use anysched_workload::rng::Rng;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use report::{Answered, Sample};
pub use report::{Class, Report, Spread};

/// What the clients do.
#[derive(Clone, Debug)]
pub struct Load {
    /// How many clients there are, at least 1.
    pub clients: u16,
    /// Requests per client.
    pub requests: u32,
    /// What requests cost; not empty.
    pub costs: Vec<Cost>,
    /// Seed for the order of the costs.
    pub seed: u64,
    /// Size of a request and of its answer in bytes, [`anysched_wire::datagram::SHORTEST`] to
    /// [`LONGEST`].
    pub size: u16,
    /// A request not answered within this time is lost. It is not sent again.
    pub timeout: Duration,
    /// Whether clients wait for each other, so that all requests of a round are sent at once, in
    /// the order of the clients.
    pub rounds: bool,
}

/// What some of the requests cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// CPU time that each of them needs.
    pub work: Span,
    /// How many of them there are, in proportion to the others.
    pub weight: u16,
}

impl FromStr for Cost {
    type Err = String;

    /// Reads `1ms*9`, or `1ms` with weight 1.
    fn from_str(text: &str) -> Result<Cost, String> {
        let (work, weight) = text.split_once('*').unwrap_or((text, "1"));
        let work = Span::parse(work)?;
        if work.0 > DEAREST {
            return Err(format!("a request costs at most {}", Span(DEAREST)));
        }
        let weight = weight.trim().parse().ok().filter(|weight| (1..=1000).contains(weight));
        let weight = weight.ok_or("a weight is a whole number from 1 to 1000, as in 1ms*9")?;
        Ok(Cost { work, weight })
    }
}

/// State that all clients share.
struct Shared<'a> {
    load: &'a Load,
    /// As [`Load::deal`] returns them.
    classes: Vec<u16>,
    /// Of each client.
    sockets: Vec<UdpSocket>,
    start: Instant,
    round: Barrier,
    /// What the client that began this round sent for each client.
    sent: Vec<Mutex<Option<Sent>>>,
    stop: &'a AtomicBool,
    /// The network failed for a client, so that the others need not go on.
    failed: AtomicBool,
    answered: &'a AtomicU64,
    strays: AtomicU64,
}

/// When a request was sent, and how that went.
struct Sent(Instant, io::Result<()>);

impl Load {
    /// What each request costs, as an index into `costs`: the entry for request `r` of client `c`
    /// is at `r · clients + c`. They are dealt from shuffled decks that hold each cost as often as
    /// its weight: every deck has the exact mix.
    fn deal(&self) -> Vec<u16> {
        let weights = (0u16..).zip(&self.costs);
        let deck: Vec<u16> = weights
            .flat_map(|(class, cost)| std::iter::repeat_n(class, usize::from(cost.weight)))
            .collect();
        let wanted = usize::from(self.clients) * self.requests as usize;
        let mut rng = Rng::stream(self.seed, "costs of requests");
        let mut dealt = Vec::with_capacity(wanted + deck.len());
        while dealt.len() < wanted {
            let first = dealt.len();
            dealt.extend_from_slice(&deck);
            for left in (1..deck.len()).rev() {
                dealt.swap(first + left, first + rng.below(left as u64 + 1) as usize);
            }
        }
        dealt.truncate(wanted);
        dealt
    }

    /// Sends all requests, those of client `c` to `servers[c % servers.len()]`, and waits for the
    /// answers. `answered` counts them as they arrive; once `stop` is set, no more are sent, and
    /// what was not sent is not in the report.
    ///
    /// Errors: the network of this computer fails.
    pub fn run(
        &self,
        servers: &[SocketAddr],
        answered: &AtomicU64,
        stop: &AtomicBool,
    ) -> io::Result<Report> {
        let sockets: io::Result<Vec<UdpSocket>> = (0..usize::from(self.clients))
            .map(|client| connected(servers[client % servers.len()]))
            .collect();
        let sockets = sockets?;
        let shared = Shared {
            load: self,
            classes: self.deal(),
            start: Instant::now(),
            round: Barrier::new(sockets.len()),
            sent: sockets.iter().map(|_| Mutex::default()).collect(),
            sockets,
            stop,
            failed: AtomicBool::new(false),
            answered,
            strays: AtomicU64::new(0),
        };
        let samples: io::Result<Vec<Vec<Sample>>> = std::thread::scope(|scope| {
            let shared = &shared;
            let run = |client| scope.spawn(move || shared.client(client));
            let clients: Vec<_> = (0..shared.sockets.len()).map(run).collect();
            let ends = clients.into_iter().map(|client| client.join());
            ends.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        Ok(Report::new(&self.costs, &samples?.concat(), shared.strays.into_inner()))
    }
}

/// A local socket that talks only to `server`.
fn connected(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(server)?;
    Ok(socket)
}

impl Shared<'_> {
    fn client(&self, client: usize) -> io::Result<Vec<Sample>> {
        let mut samples = Vec::with_capacity(self.load.requests as usize);
        let mut fault = None;
        for number in 0..self.load.requests {
            // Nobody leaves while others may wait for him at the start of a round.
            let sent = if self.load.rounds {
                self.send_round(client, number)
            } else {
                self.send(client, number)
            };
            match sent.map(|sent| self.hear(client, number, sent)) {
                Some(Ok(sample)) => samples.push(sample),
                Some(Err(error)) => {
                    self.failed.store(true, Relaxed);
                    fault = Some(error);
                }
                None => {}
            }
        }
        fault.map_or(Ok(samples), Err)
    }

    /// Sends request `number` of `client`; `None`: no more are sent.
    fn send(&self, client: usize, number: u32) -> Option<Sent> {
        if self.stop.load(Relaxed) || self.failed.load(Relaxed) {
            return None;
        }
        let cost = self.load.costs[usize::from(self.class(client, number))].work.0;
        let mut bytes = [0; LONGEST];
        let at = Instant::now();
        let sent = nanoseconds(at - self.start);
        let request = Request { number: number.into(), sent, cost };
        let length = Datagram::Request(request).encode(&mut bytes);
        let length = length.max(usize::from(self.load.size).min(LONGEST));
        Some(Sent(at, self.sockets[client].send(&bytes[..length]).map(|_| ())))
    }

    /// Sends request `number` of every client, then returns that of `client`. One thread sends them
    /// all: threads that wake on a busy computer would send theirs long after each other.
    fn send_round(&self, client: usize, number: u32) -> Option<Sent> {
        if self.round.wait().is_leader() {
            for (client, sent) in self.sent.iter().enumerate() {
                *lock(sent) = self.send(client, number);
            }
        }
        self.round.wait();
        lock(&self.sent[client]).take()
    }

    fn class(&self, client: usize, number: u32) -> u16 {
        self.classes[number as usize * self.sockets.len() + client]
    }

    /// Waits for the answer to request `number` of `client`.
    fn hear(&self, client: usize, number: u32, sent: Sent) -> io::Result<Sample> {
        let Sent(at, asked) = sent;
        let sent = nanoseconds(at - self.start);
        let (socket, deadline) = (&self.sockets[client], at + self.load.timeout);
        let answered = match asked.and_then(|()| self.answer(socket, number.into(), deadline)) {
            Ok(answer) => answer.map(|answer| {
                let at = nanoseconds(self.start.elapsed());
                self.answered.fetch_add(1, Relaxed);
                Answered::new(at, at - sent, &answer)
            }),
            // Nobody is listening there any more.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => None,
            Err(error) => return Err(error),
        };
        Ok(Sample { class: self.class(client, number), sent, answered })
    }

    /// Waits for the answer to request `number`; `None`: none arrived by `deadline`.
    fn answer(
        &self,
        socket: &UdpSocket,
        number: u64,
        deadline: Instant,
    ) -> io::Result<Option<Answer>> {
        let mut bytes = [0; LONGEST];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            socket.set_read_timeout(Some(left))?;
            match socket.recv(&mut bytes) {
                Ok(length) => match Datagram::decode(&bytes[..length]) {
                    Some(Datagram::Answer(answer)) if answer.number == number => {
                        return Ok(Some(answer));
                    }
                    // Garbage, or a late answer to a request already given up.
                    _ => _ = self.strays.fetch_add(1, Relaxed),
                },
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

/// Waits up to `patience` for all of `servers` to answer a hello. Returns whether they did.
///
/// Errors: the network of this computer fails.
pub fn greet(servers: &[SocketAddr], patience: Duration) -> io::Result<bool> {
    const BETWEEN: Duration = Duration::from_millis(100);
    let deadline = Instant::now() + patience;
    let mut bytes = [0; LONGEST];
    for &server in servers {
        let socket = connected(server)?;
        socket.set_read_timeout(Some(BETWEEN))?;
        loop {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            let length = Datagram::Hello.encode(&mut bytes);
            // Until the server listens, this or the next call may be refused.
            let heard = socket.send(&bytes[..length]).and_then(|_| socket.recv(&mut bytes));
            match heard {
                Ok(length) if Datagram::decode(&bytes[..length]) == Some(Datagram::Hello) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    std::thread::sleep(BETWEEN);
                }
                _ => {}
            }
        }
    }
    Ok(true)
}

/// Tells `server` that it is no longer needed.
///
/// Errors: the network of this computer fails.
pub fn quit(server: SocketAddr) -> io::Result<()> {
    let mut bytes = [0; LONGEST];
    let length = Datagram::Quit.encode(&mut bytes);
    connected(server)?.send(&bytes[..length]).map(|_| ())
}

/// What the mutex holds. No thread panics while it holds one of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
