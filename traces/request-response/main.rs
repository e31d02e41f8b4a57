//! A request/response server under an open-loop load, over loopback TCP, with
//! a batch job at nice 5 beside it: the workload of `request-response.txt.gz`.
//!
//!     rustc --edition 2024 -O -o request-response main.rs && ./request-response
//!
//! Three processes. The server has a reader thread per connection and a pool of
//! workers behind one queue. The batch job computes and pauses in turn. The
//! load sends on every connection at times drawn beforehand (a Poisson process),
//! whether or not earlier replies have come, and prints the latencies. All
//! random draws come from fixed seeds.

use std::collections::VecDeque;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

const CONNECTIONS: u64 = 8;
const WORKERS: usize = 6;
/// Mean time between two requests of one connection.
const GAP_US: f64 = 4000.0;
const LOAD: Duration = Duration::from_millis(2500);
/// Mean computing time of most requests, and of one in twelve.
const SHORT_US: f64 = 260.0;
const LONG_US: f64 = 1500.0;
/// One request in five also waits this long, as if for a disk.
const WAIT: Duration = Duration::from_millis(1);
const BATCH_RUN_US: f64 = 20_000.0;
const BATCH_PAUSE: Duration = Duration::from_millis(8);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Uniform in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }
}

/// A fixed amount of computing, about `us` microseconds of CPU time.
fn compute(us: f64) {
    let mut random = Random(1);
    for _ in 0..(us * 430.0) as u64 {
        black_box(random.next());
    }
}

/// A request: when it was due (echoed in the reply) and what it costs.
#[derive(Clone, Copy)]
struct Request {
    due_us: u64,
    compute_us: u32,
    wait: bool,
}

impl Request {
    fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.due_us.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.compute_us.to_le_bytes());
        bytes[12] = u8::from(self.wait);
        bytes
    }

    fn decode(bytes: [u8; 16]) -> Self {
        let (due, rest) = bytes.split_first_chunk().expect("16 > 8");
        let (compute, rest) = rest.split_first_chunk().expect("8 > 4");
        Request {
            due_us: u64::from_le_bytes(*due),
            compute_us: u32::from_le_bytes(*compute),
            wait: rest[0] != 0,
        }
    }
}

/// The requests read and not yet taken by a worker.
#[derive(Default)]
struct Queue {
    jobs: Mutex<VecDeque<(Request, Arc<TcpStream>)>>,
    more: Condvar,
}

fn read_requests(stream: TcpStream, queue: &Queue) {
    let stream = Arc::new(stream);
    let mut bytes = [0; 16];
    while (&*stream).read_exact(&mut bytes).is_ok() {
        let job = (Request::decode(bytes), Arc::clone(&stream));
        queue.jobs.lock().unwrap().push_back(job);
        queue.more.notify_one();
    }
}

fn work(queue: &Queue) {
    loop {
        let jobs = queue.jobs.lock().unwrap();
        let mut jobs = queue.more.wait_while(jobs, |jobs| jobs.is_empty()).unwrap();
        let (request, stream) = jobs.pop_front().expect("not empty");
        drop(jobs);
        let us = f64::from(request.compute_us);
        compute(us / 2.0);
        if request.wait {
            sleep(WAIT);
        }
        compute(us / 2.0);
        // The client may be gone; the next request may be another's.
        let _ = (&*stream).write_all(&request.due_us.to_le_bytes());
    }
}

/// Prints its port and serves until it is killed.
fn server() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let queue = Arc::new(Queue::default());
    for i in 0..WORKERS {
        let queue = Arc::clone(&queue);
        Builder::new().name(format!("worker-{i}")).spawn(move || work(&queue))?;
    }
    println!("{}", listener.local_addr()?.port());
    for i in 0.. {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let queue = Arc::clone(&queue);
        Builder::new().name(format!("reader-{i}")).spawn(move || read_requests(stream, &queue))?;
    }
    Ok(())
}

fn batch() -> Result<()> {
    loop {
        compute(BATCH_RUN_US);
        sleep(BATCH_PAUSE);
    }
}

fn send(mut stream: &TcpStream, start: Instant, seed: u64) -> io::Result<()> {
    let mut random = Random(seed);
    let mut due_us = 0.0;
    loop {
        due_us += random.exponential(GAP_US);
        let due = Duration::from_micros(due_us as u64);
        if due > LOAD {
            return stream.shutdown(std::net::Shutdown::Write);
        }
        let mean = if random.next() >> 32 < u64::from(u32::MAX / 12) { LONG_US } else { SHORT_US };
        let request = Request {
            due_us: due_us as u64,
            compute_us: random.exponential(mean) as u32,
            wait: random.next() >> 32 < u64::from(u32::MAX / 5),
        };
        sleep(due.saturating_sub(start.elapsed()));
        stream.write_all(&request.encode())?;
    }
}

/// Reads the replies to the end and returns their latencies in microseconds.
fn receive(mut stream: &TcpStream, start: Instant) -> Vec<u64> {
    let mut latencies = Vec::new();
    let mut due = [0; 8];
    while stream.read_exact(&mut due).is_ok() {
        latencies.push(start.elapsed().as_micros() as u64 - u64::from_le_bytes(due));
    }
    latencies
}

fn load(port: u16) -> Result<()> {
    let start = Instant::now();
    let mut receivers = Vec::new();
    for i in 0..CONNECTIONS {
        let stream = Arc::new(TcpStream::connect(("127.0.0.1", port))?);
        stream.set_nodelay(true)?;
        let sender = Arc::clone(&stream);
        Builder::new().name(format!("send-{i}")).spawn(move || send(&sender, start, i + 1))?;
        let receive = move || receive(&stream, start);
        receivers.push(Builder::new().name(format!("receive-{i}")).spawn(receive)?);
    }
    let mut latencies = Vec::new();
    for receiver in receivers {
        latencies.extend(receiver.join().expect("the receiver does not panic"));
    }
    latencies.sort_unstable();
    let quantile = |q: f64| latencies[(q * (latencies.len() - 1) as f64) as usize];
    println!(
        "{} replies; latency in us: median {}, 90 % {}, 99 % {}, most {}",
        latencies.len(),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(1.0)
    );
    Ok(())
}

/// Killed when dropped, so that nothing outlives the load.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("server") => return server(),
        Some("batch") => return batch(),
        _ => (),
    }
    let this = std::env::current_exe()?;
    let mut server = Process(Command::new(&this).arg("server").stdout(Stdio::piped()).spawn()?);
    let mut port = String::new();
    BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut port)?;
    let _batch = Process(Command::new("nice").args(["-n", "5"]).arg(&this).arg("batch").spawn()?);
    load(port.trim().parse()?)
}
