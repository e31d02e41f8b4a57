//! The generator against the test's own servers.

use super::*;
use std::thread::JoinHandle;

const MS: Duration = Duration::from_millis(1);

fn load(clients: u16, requests: u32, costs: &[&str]) -> Load {
    let costs = costs.iter().map(|cost| cost.parse().unwrap()).collect();
    Load { clients, requests, costs, seed: 7, size: 64, timeout: 2000 * MS, rounds: false }
}

/// A server that replies with `answer` until told to quit; it returns everything it was sent.
struct Server {
    address: SocketAddr,
    thread: JoinHandle<Vec<(Request, usize)>>,
}

impl Server {
    fn start(mut answer: impl FnMut(&Request, &mut dyn FnMut(&[u8])) + Send + 'static) -> Server {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut asked = Vec::new();
            let mut bytes = [0; LONGEST];
            loop {
                let (length, from) = socket.recv_from(&mut bytes).unwrap();
                let mut send = |bytes: &[u8]| _ = socket.send_to(bytes, from).unwrap();
                match Datagram::decode(&bytes[..length]) {
                    Some(Datagram::Request(request)) => {
                        asked.push((request, length));
                        answer(&request, &mut send);
                    }
                    Some(Datagram::Hello) => send(&bytes[..length]),
                    Some(Datagram::Quit) => return asked,
                    other => panic!("{other:?}"),
                }
            }
        });
        Server { address, thread }
    }

    fn load(self, load: &Load) -> (Report, Vec<(Request, usize)>) {
        let (answered, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let report = load.run(&[self.address], &answered, &stop).unwrap();
        assert_eq!(answered.into_inner(), report.all.sent - report.all.lost);
        quit(self.address).unwrap();
        (report, self.thread.join().unwrap())
    }
}

/// The answer to `request`, with times as if it had waited for 3 ns and then taken its cost.
fn answer(request: &Request) -> ([u8; LONGEST], usize) {
    let Request { number, sent, cost } = *request;
    let mut bytes = [0; LONGEST];
    let answer = Answer { number, sent, arrival: 100, start: 103, end: 103 + cost };
    let length = Datagram::Answer(answer).encode(&mut bytes);
    (bytes, length)
}

#[test]
fn everybody_is_answered() {
    let server = Server::start(|request, send| {
        let (bytes, length) = answer(request);
        send(&bytes[..length]);
    });
    let load = load(4, 25, &["1us*4", "20us"]);
    let (report, asked) = server.load(&load);
    assert_eq!((report.all.sent, report.all.lost, report.strays), (100, 0, 0));
    assert_eq!(report.all.queued.unwrap().max, 3);
    let [short, long] = &report.classes[..] else { panic!("two classes") };
    assert_eq!((short.sent, long.sent), (80, 20), "decks of five");
    assert_eq!((short.served.unwrap().p50, long.served.unwrap().p50), (1_000, 20_000));
    assert!(asked.iter().all(|(_, length)| *length == 64));
    let costs = |cost| asked.iter().filter(|(request, _)| request.cost == cost).count();
    assert_eq!((costs(1_000), costs(20_000)), (80, 20));
    let round_trip = report.all.round_trip.unwrap();
    assert!(round_trip.p50 > 0 && round_trip.p50 <= round_trip.p95);
    assert!(round_trip.p99 <= round_trip.max);
}

#[test]
fn what_is_not_answered_is_lost_and_not_sent_again() {
    let server = Server::start(|request, send| {
        if request.number % 5 != 2 {
            let (bytes, length) = answer(request);
            send(&bytes[..length]);
        }
    });
    let load = Load { timeout: 300 * MS, ..load(2, 10, &["1ms"]) };
    let (report, asked) = server.load(&load);
    assert_eq!((report.all.sent, report.all.lost), (20, 4));
    assert_eq!(asked.len(), 20);
    let slow = u64::try_from(load.timeout.as_nanos()).unwrap();
    assert!(report.all.round_trip.unwrap().max < slow, "what is lost has no round trip");
}

#[test]
fn a_late_answer_and_garbage_are_not_taken_for_the_next_answer() {
    let mut late: Option<Request> = None;
    let server = Server::start(move |request, send| {
        if request.number == 1 {
            late = Some(*request);
            return;
        }
        send(b"any1");
        for request in late.take().iter().chain([request]) {
            let (bytes, length) = answer(request);
            send(&bytes[..length]);
        }
    });
    let load = Load { timeout: 300 * MS, ..load(1, 4, &["1ms"]) };
    let (report, _) = server.load(&load);
    assert_eq!((report.all.sent, report.all.lost), (4, 1));
    assert_eq!(report.strays, 4, "three times garbage, one answer that was too late");
}

#[test]
fn round_trips_are_by_the_clock_of_this_computer() {
    let server = Server::start(|request, send| {
        std::thread::sleep(20 * MS);
        let (bytes, length) = answer(request);
        send(&bytes[..length]);
    });
    let (report, _) = server.load(&load(1, 5, &["1us"]));
    assert!(report.all.round_trip.unwrap().p50 >= 20_000_000);
    assert!(report.all.per_s <= 50.0);
    assert_eq!(report.all.served.unwrap().max, 1_000);
}

#[test]
fn in_rounds_nobody_is_ahead() {
    let mut numbers = Vec::new();
    let server = Server::start(move |request, send| {
        numbers.push(request.number);
        assert_eq!(request.number, (numbers.len() as u64 - 1) / 6);
        let (bytes, length) = answer(request);
        send(&bytes[..length]);
    });
    let load = Load { rounds: true, ..load(6, 20, &["1us*4", "20us*2"]) };
    let (report, asked) = server.load(&load);
    assert_eq!(report.all.lost, 0);
    for round in asked.chunks(6) {
        let long = round.iter().filter(|(request, _)| request.cost == 20_000).count();
        assert_eq!(long, 2, "each round is a deck");
    }
}

#[test]
fn nothing_is_sent_after_a_stop() {
    let stop = AtomicBool::new(true);
    let server = Server::start(|_, _| panic!("it was stopped"));
    let load = Load { rounds: true, ..load(3, 10, &["1us"]) };
    let report = load.run(&[server.address], &AtomicU64::new(0), &stop).unwrap();
    assert_eq!((report.all.sent, report.elapsed), (0, Span::ZERO));
    quit(server.address).unwrap();
    assert!(server.thread.join().unwrap().is_empty());
}

#[test]
fn a_server_that_is_not_there_loses_everything() {
    // Kept, or another test could be given its port; connected, it refuses what others send.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    socket.connect(address).unwrap();
    let load = Load { timeout: 50 * MS, ..load(2, 3, &["1us"]) };
    let report = load.run(&[address], &AtomicU64::new(0), &AtomicBool::new(false)).unwrap();
    assert_eq!((report.all.sent, report.all.lost), (6, 6));
    assert!(!greet(&[address], 150 * MS).unwrap());
}

#[test]
fn servers_are_greeted() {
    let servers = [0, 1].map(|_| Server::start(|_, _| panic!("nothing was asked")));
    let addresses = [servers[0].address, servers[1].address];
    assert!(greet(&addresses, 2000 * MS).unwrap());
    for server in servers {
        quit(server.address).unwrap();
        server.thread.join().unwrap();
    }
}

#[test]
fn costs_are_read_and_faults_named() {
    let cost = |text: &str| text.parse::<Cost>().map_err(|why| why.to_string());
    assert_eq!(cost("1ms*9").unwrap(), Cost { work: Span(1_000_000), weight: 9 });
    assert_eq!(cost("20ms").unwrap(), Cost { work: Span(20_000_000), weight: 1 });
    assert_eq!(cost("0 * 2").unwrap(), Cost { work: Span::ZERO, weight: 2 });
    assert_eq!(cost("61s").unwrap_err(), "a request costs at most 60s");
    for text in ["1ms*0", "1ms*x", "1ms*1001", "1ms*"] {
        assert!(cost(text).unwrap_err().contains("weight"), "{text}");
    }
    assert!(cost("1").unwrap_err().contains("unit"));
}

#[test]
fn the_same_seed_deals_the_same() {
    let load = load(3, 100, &["1ms*4", "20ms*2", "7ms"]);
    assert_eq!(load.deal(), load.deal());
    assert_ne!(load.deal(), Load { seed: 8, ..load.clone() }.deal());
    for deck in load.deal().chunks_exact(7) {
        let count = |class| deck.iter().filter(|dealt| **dealt == class).count();
        assert_eq!([0, 1, 2].map(count), [4, 2, 1]);
    }
}
