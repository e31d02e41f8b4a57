//! A domain: it says to dom0 that it is up, waits to be let go, does its part and says what came of
//! it. What it says are [messages](anysched_wire::result), in a connection to dom0.

use std::env;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anysched_wire::result::Message;

use crate::command::run_all;
use crate::domains::{DOM0, PORT};
use crate::icmp::Echo;
use crate::machine;

/// How long the interface may take to come, and dom0 to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a domain has to do.
pub struct Part {
    /// Its name.
    name: String,
}

impl Part {
    /// What the kernel was told; nothing, of dom0's.
    pub fn own() -> Option<Part> {
        env::var("part").ok().map(|name| Part { name })
    }
}

/// Does it, and ends the machine.
pub fn perform(part: Part) -> ! {
    match attempt(&part) {
        Ok(()) => machine::end(),
        Err(why) => machine::refuse(why),
    }
}

fn attempt(Part { name }: &Part) -> Result<(), String> {
    machine::load_modules()?;
    let mut dom0 = connect()?;
    let fault = |error: io::Error| format!("dom0 does not listen: {error}");
    tell(&mut dom0, &Message::Started(name.clone())).map_err(fault)?;
    let mut answers = BufReader::new(dom0.try_clone().map_err(fault)?);
    let mut go = String::new();
    answers.read_line(&mut go).map_err(fault)?;
    let said = match name.as_str() {
        // Its kernel answers. Until dom0 has gone, it sleeps.
        "server" => {
            let _ = answers.read_line(&mut go);
            return Ok(());
        }
        "client" => ping()?,
        _ => compute()?,
    };
    for message in said.iter().chain([&Message::End]) {
        tell(&mut dom0, message).map_err(fault)?;
    }
    let _ = answers.read_line(&mut go);
    Ok(())
}

fn tell(dom0: &mut TcpStream, message: &Message) -> io::Result<()> {
    dom0.write_all(format!("{message}\n").as_bytes())
}

/// Brings the interface up and connects to dom0.
fn connect() -> Result<TcpStream, String> {
    let begin = Instant::now();
    while !std::path::Path::new("/sys/class/net/eth0").exists() {
        if begin.elapsed() > PATIENCE {
            return Err(format!("there is no interface after {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    let address = text("address")?;
    run_all(&[
        &format!("/bin/busybox ip addr add {address}/24 dev eth0"),
        "/bin/busybox ip link set eth0 up",
    ])?;
    loop {
        match TcpStream::connect((DOM0, PORT)) {
            Ok(stream) => return Ok(stream),
            // dom0 may still have to add its end to the bridge.
            Err(error) if begin.elapsed() > PATIENCE => {
                return Err(format!("dom0 is not there: {error}"));
            }
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Pings the server, again and again.
fn ping() -> Result<Vec<Message>, String> {
    let (count, interval) = (number("count")?, Duration::from_micros(number("interval_us")?));
    let server: Ipv4Addr = text("server")?.parse().map_err(|_| "`server` is no address")?;
    let fault = |error: io::Error| format!("ping {server}: {error}");
    let mut echo = Echo::to(server).map_err(fault)?;
    // The first asks who has the address. It does not count.
    echo.ping().map_err(fault)?;
    let mut trips = Vec::with_capacity(count as usize);
    let mut next = Instant::now();
    for _ in 0..count {
        next += interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        trips.extend(echo.ping().map_err(fault)?.map(|trip| trip.as_nanos() as u64));
    }
    Ok(summary(count, trips))
}

/// What is said of round trips, in nanoseconds, of which `sent` were begun.
fn summary(sent: u64, mut trips: Vec<u64>) -> Vec<Message> {
    let value = |name: &str, number| Message::Value { name: name.into(), number };
    let sample = |trip: &u64| Message::Sample { name: "round_trip_ns".into(), number: *trip };
    let mut said: Vec<Message> = trips.iter().map(sample).collect();
    let count = trips.len();
    trips.sort_unstable();
    if let (Some(min), Some(max)) = (trips.first(), trips.last()) {
        let percentile = |percent: usize| trips[(count * percent).div_ceil(100).max(1) - 1];
        said.push(value("round_trip_min_ns", *min));
        for percent in [50, 90, 99] {
            said.push(value(&format!("round_trip_p{percent}_ns"), percentile(percent)));
        }
        said.push(value("round_trip_max_ns", *max));
        said.push(value("round_trip_mean_ns", trips.iter().sum::<u64>() / count as u64));
    }
    said.push(value("round_trip_count", count as u64));
    said.push(value("lost", sent - count as u64));
    said
}

/// Computes. How much of a pCPU it got is what it has done at its usual pace: Debian's kernels
/// count time that Xen gives to others as a process's own.
fn compute() -> Result<Vec<Message>, String> {
    let duration = Duration::from_micros(number("duration_us")?);
    let begin = Instant::now();
    let (mut turns, mut last, mut parts) = (0_u64, begin, Vec::new());
    while last - begin < duration {
        for _ in 0..10_000 {
            turns = black_box(turns + 1);
        }
        let now = Instant::now();
        parts.push((now - last).as_nanos() as u64);
        last = now;
    }
    let all = (last - begin).as_nanos() as u64;
    let number = share(&mut parts, all);
    Ok(vec![Message::Value { name: "cpu_millionths".into(), number }])
}

/// How much of a time equal parts of work took, in millionths, of which few were interrupted: as
/// many times the one in the middle as there are.
fn share(parts: &mut [u64], all: u64) -> u64 {
    parts.sort_unstable();
    let usual = parts.get(parts.len() / 2).copied().unwrap_or_default();
    let used = u128::from(usual) * parts.len() as u128;
    (used * 1_000_000 / u128::from(all.max(1))) as u64
}

/// What the kernel was told.
fn text(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("the kernel was not told `{name}`"))
}

fn number(name: &str) -> Result<u64, String> {
    let text = text(name)?;
    text.parse().map_err(|_| format!("`{name}` = \"{text}\" is no whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(sent: u64, trips: &[u64]) -> Vec<String> {
        summary(sent, trips.to_vec()).iter().map(Message::to_string).collect()
    }

    #[test]
    fn trips_are_summed_up() {
        let said = lines(4, &[30, 10, 50]);
        assert_eq!(
            said[..3],
            ["@sample round_trip_ns 30", "@sample round_trip_ns 10", "@sample round_trip_ns 50"]
        );
        let values = [
            "@value round_trip_min_ns 10",
            "@value round_trip_p50_ns 30",
            "@value round_trip_p90_ns 50",
            "@value round_trip_p99_ns 50",
            "@value round_trip_max_ns 50",
            "@value round_trip_mean_ns 30",
            "@value round_trip_count 3",
            "@value lost 1",
        ];
        assert_eq!(said[3..], values);
    }

    #[test]
    fn a_share_is_what_was_done_at_the_usual_pace() {
        // Of 200 ns, three parts were interrupted and one came out short: 10 of 10 ns are used.
        let mut parts = [10, 10, 10, 40, 10, 10, 4, 50, 46, 10];
        assert_eq!(share(&mut parts, 200), 500_000);
        assert_eq!(share(&mut [], 0), 0);
    }

    #[test]
    fn without_answers_nothing_was_measured() {
        assert_eq!(lines(2, &[]), ["@value round_trip_count 0", "@value lost 2"]);
    }
}
