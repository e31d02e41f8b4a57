//! A server for datagrams: a request says how much CPU time it costs, the server uses that time
//! and answers. `anysched_wire::datagram` says what the datagrams look like.
//!
//! The server learns from a request what it costs, and declares that to the scheduler when it
//! starts the request's task: size-based policies can use it, others need not look.
//!
//! The program's own task receives. ArceOS waits for its network by polling in a yield loop, in
//! which a policy that picks the yielder again would stay forever; so this task polls without
//! waiting, takes all there is and sleeps for a short time. ArceOS's own schedulers notice sleepers
//! only at their ticks, and are given the yield loop that is usual there.
//!
//! Arguments:
//! - `sockets`: how many there are, on ports from [`PORT`] on; each is enough for
//!   [`CLIENTS_PER_SOCKET`](anysched_wire::datagram::CLIENTS_PER_SOCKET) clients.
//! - `handler`: `task` (a task for each request) or `inline` (the receiver itself does the work).
//! - `wait`: `sleep` or `yield`; `poll`: for how many nanoseconds it sleeps.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anysched_arceos_qemu::refuse;
use anysched_programs::{Burner, Kernel, Task, argument, text};
use anysched_wire::datagram::{Answer, Datagram, LONGEST, PORT, Request};
use anysched_wire::result::Message;
use std::os::arceos::api::{AxError, net};

/// Time between two looks at the network, in nanoseconds. A look takes 6 to 7 µs, sleep and wake-up
/// included: 3 % of the CPU under policies that let the receiver preempt, 12 % if it looked every
/// 50 µs.
const POLL: u64 = 200_000;

/// Whether an argument that is one of two words is the second. The first is the default.
fn is_second<K: Kernel>(name: &str, [first, second]: [&str; 2]) -> bool {
    match text::<K>(name) {
        None => false,
        Some(word) if word == first => false,
        Some(word) if word == second => true,
        Some(other) => {
            refuse(format_args!("`{name}` = \"{other}\": {first} or {second} is wanted"))
        }
    }
}

/// What the receiver and the tasks share.
struct Server {
    sockets: Vec<net::AxUdpSocketHandle>,
    burner: Burner,
    /// Answers that could not be sent.
    unsent: AtomicU64,
}

/// A request that has arrived.
struct Job {
    request: Request,
    arrival: u64,
    from: SocketAddr,
    /// The socket that it came by.
    socket: usize,
    /// How long the request was, in bytes.
    length: usize,
}

impl Server {
    fn open<K: Kernel>() -> Server {
        let socket = |number: u64| {
            let socket = net::ax_udp_socket();
            let port = PORT + number as u16;
            let bound = net::ax_udp_bind(&socket, (Ipv4Addr::UNSPECIFIED, port).into());
            let bound = bound.and_then(|()| net::ax_udp_set_nonblocking(&socket, true));
            if let Err(error) = bound {
                panic!("port {port} cannot be served: {error}");
            }
            socket
        };
        let sockets = (0..argument::<K>("sockets", 1).clamp(1, 64)).map(socket).collect();
        Server { sockets, burner: Burner::calibrated::<K>(), unsent: AtomicU64::new(0) }
    }

    /// Does the work and answers.
    fn perform<K: Kernel>(&self, job: &Job) {
        let Job { request, arrival, .. } = *job;
        let start = K::now();
        self.burner.burn(request.cost);
        let Request { number, sent, .. } = request;
        self.send(Datagram::Answer(Answer { number, sent, arrival, start, end: K::now() }), job);
    }

    /// Sends an answer to `job`, no shorter than the request was.
    fn send(&self, answer: Datagram, job: &Job) {
        let mut bytes = [0; LONGEST];
        let length = answer.encode(&mut bytes).max(job.length.min(LONGEST));
        let sent = loop {
            let socket = &self.sockets[job.socket];
            match net::ax_udp_send_to(socket, &bytes[..length], job.from) {
                // The socket is full until the network has taken what it holds.
                Err(AxError::WouldBlock) => flush(),
                sent => break sent,
            }
        };
        if sent.is_err() {
            self.unsent.fetch_add(1, Relaxed);
        }
        flush();
    }
}

/// Lets the network take what is to be sent, and deliver what has arrived.
fn flush() {
    // It cannot fail: the interface is there as long as the kernel.
    let _ = net::ax_poll_interfaces();
}

/// What has been received.
#[derive(Default)]
struct Received {
    requests: u64,
    refused: u64,
    quit: bool,
}

/// Takes all datagrams that have arrived.
fn receive<K: Kernel>(server: &Server, received: &mut Received, perform: &mut dyn FnMut(Job)) {
    let mut bytes = [0; LONGEST];
    flush();
    for socket in 0..server.sockets.len() {
        while let Ok((length, from)) = net::ax_udp_recv_from(&server.sockets[socket], &mut bytes) {
            let arrival = K::now();
            let job = |request| Job { request, arrival, from, socket, length };
            match Datagram::decode(&bytes[..length.min(LONGEST)]) {
                Some(Datagram::Request(request)) => {
                    received.requests += 1;
                    perform(job(request));
                }
                Some(Datagram::Hello) => {
                    let nothing = Request { number: 0, sent: 0, cost: 0 };
                    server.send(Datagram::Hello, &job(nothing));
                }
                Some(Datagram::Quit) => received.quit = true,
                Some(Datagram::Answer(_)) | None => received.refused += 1,
            }
        }
    }
}

/// Serves until it is told to quit.
pub fn udp<K: Kernel>() {
    let (inline, yields) =
        (is_second::<K>("handler", ["task", "inline"]), is_second::<K>("wait", ["sleep", "yield"]));
    let period = argument::<K>("poll", POLL);
    let server = Arc::new(Server::open::<K>());
    K::say(&Message::Serving(server.sockets.len() as u64));
    let mut received = Received::default();
    while !received.quit {
        receive::<K>(&server, &mut received, &mut |job| {
            if inline {
                return server.perform::<K>(&job);
            }
            let task = Task { work: Some(job.request.cost), ..Task::default() };
            let server = server.clone();
            // No task joins it: its memory is freed when it ends.
            drop(K::spawn(&task, Box::new(move || server.perform::<K>(&job))));
        });
        if yields {
            K::yield_now();
        } else {
            K::sleep_until(K::now() + period);
        }
    }
    for (name, number) in [
        ("requests", received.requests),
        ("refused", received.refused),
        ("unsent", server.unsent.load(Relaxed)),
    ] {
        K::say(&Message::Value { name: name.into(), number });
    }
}
