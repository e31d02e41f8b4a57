//! A server for datagrams: a request says how much CPU time it costs, the server uses that time
//! and answers. `anysched_wire::datagram` says what the datagrams look like.
//!
//! The server learns from a request what it costs, and declares that to the scheduler when it
//! starts or wakes the request's task: size-based policies can use it, others need not look.
//!
//! The program's own task receives. ArceOS waits for its network by polling in a yield loop, in
//! which a policy that picks the yielder again would stay forever; so this task polls without
//! waiting, takes all there is and sleeps for a short time. ArceOS's own schedulers notice sleepers
//! only at their ticks, and are given the yield loop that is usual there.
//!
//! Arguments:
//! - `sockets`: how many there are, on ports from [`PORT`] on; each is enough for
//!   [`CLIENTS_PER_SOCKET`](anysched_wire::datagram::CLIENTS_PER_SOCKET) clients.
//! - `handler`: `task` (a task for each request), `client` (a task for each client, which stays and
//!   waits for its requests) or `inline` (the receiver itself does the work).
//! - `wait`: `sleep` or `yield`; `poll`: for how many nanoseconds it sleeps.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anysched_arceos_qemu::refuse;
use anysched_programs::{Burner, Guarded, Kernel, Signal, Task, argument, text};
use anysched_wire::datagram::{Answer, Datagram, LONGEST, PORT, Request};
use anysched_wire::result::Message;
use std::os::arceos::api::{AxError, net};

/// Time between two looks at the network, in nanoseconds. A look takes 6 to 7 µs, sleep and wake-up
/// included: 3 % of the CPU under policies that let the receiver preempt, 12 % if it looked every
/// 50 µs.
const POLL: u64 = 200_000;

/// The position of an argument among the words that it may be. The first is the default.
fn choice<K: Kernel>(name: &str, words: &[&str]) -> usize {
    let Some(given) = text::<K>(name) else { return 0 };
    words.iter().position(|word| *word == given).unwrap_or_else(|| {
        refuse(format_args!("`{name}` = \"{given}\": {} is wanted", words.join(" or ")))
    })
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

/// A client, and the task that stays for it.
struct Client<K: Kernel> {
    inbox: Arc<Inbox<K>>,
    task: K::Handle,
}

/// What a client's task waits for.
struct Inbox<K: Kernel> {
    /// `None`: there will be no more.
    jobs: K::Guarded<VecDeque<Option<Job>>>,
    has_some: K::Signal,
}

impl<K: Kernel> Inbox<K> {
    fn put(&self, job: Option<Job>) {
        self.jobs.with(|jobs| jobs.push_back(job));
        self.has_some.wake();
    }

    fn take(&self) -> Option<Job> {
        self.has_some.wait_until(|| self.jobs.with(|jobs| !jobs.is_empty()));
        self.jobs.with(|jobs| jobs.pop_front())?
    }
}

/// Clients by where they are and the socket that they use.
type Clients<K> = BTreeMap<(SocketAddr, usize), Client<K>>;

/// Hands a job to the task of its client, which is started for the first.
fn hand_over<K: Kernel>(server: &Arc<Server>, clients: &mut Clients<K>, job: Job) {
    let (key, cost) = ((job.from, job.socket), job.request.cost);
    if let Some(client) = clients.get(&key) {
        K::expect(&client.task, cost);
        return client.inbox.put(Some(job));
    }
    let (jobs, has_some) = (Guarded::new(VecDeque::from([Some(job)])), K::Signal::default());
    let inbox = Arc::new(Inbox { jobs, has_some });
    let (own, server) = (inbox.clone(), server.clone());
    let body = move || {
        while let Some(job) = own.take() {
            server.perform::<K>(&job);
        }
    };
    let task = K::spawn(&Task { work: Some(cost), ..Task::default() }, Box::new(body));
    clients.insert(key, Client { inbox, task });
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
    let handler = choice::<K>("handler", &["task", "client", "inline"]);
    let yields = choice::<K>("wait", &["sleep", "yield"]) == 1;
    let period = argument::<K>("poll", POLL);
    let server = Arc::new(Server::open::<K>());
    K::say(&Message::Serving(server.sockets.len() as u64));
    let (mut received, mut clients) = (Received::default(), Clients::<K>::new());
    while !received.quit {
        receive::<K>(&server, &mut received, &mut |job| match handler {
            0 => {
                let task = Task { work: Some(job.request.cost), ..Task::default() };
                let server = server.clone();
                // No task joins it: its memory is freed when it ends.
                drop(K::spawn(&task, Box::new(move || server.perform::<K>(&job))));
            }
            1 => hand_over::<K>(&server, &mut clients, job),
            _ => server.perform::<K>(&job),
        });
        if yields {
            K::yield_now();
        } else {
            K::sleep_until(K::now() + period);
        }
    }
    for client in clients.values() {
        client.inbox.put(None);
        K::join(&client.task);
    }
    for (name, number) in [
        ("clients", clients.len() as u64),
        ("requests", received.requests),
        ("refused", received.refused),
        ("unsent", server.unsent.load(Relaxed)),
    ] {
        K::say(&Message::Value { name: name.into(), number });
    }
}
