//! Real boots of the server `udp`. `cargo xtask hosts` runs these.

use anysched_arceos::{Boot, Outcome};
use anysched_clients::{Load, Report};
use anysched_policies::POLICIES;
use std::net::UdpSocket;
use std::time::Duration;

/// Four requests of 1 ms to two of 20 ms, of six clients who send at once.
fn load() -> Load {
    Load {
        clients: 6,
        requests: 20,
        costs: ["1ms*4", "20ms*2"].map(|cost| cost.parse().unwrap()).to_vec(),
        seed: 1,
        size: 64,
        timeout: Duration::from_secs(30),
        rounds: true,
    }
}

fn serve(boot: &Boot, load: &Load) -> (Report, Outcome) {
    let kernel = boot.image.build().unwrap();
    let served = boot.serve(&kernel, load, &mut |_| ());
    let (report, outcome) = served.unwrap_or_else(|why| panic!("{}: {why}", boot.policy));
    assert_eq!((report.all.lost, report.strays), (0, 0), "{}", boot.policy);
    assert_eq!(outcome.value("requests"), Some(report.all.sent), "{}", boot.policy);
    for nothing in ["refused", "unsent"] {
        assert_eq!(outcome.value(nothing), Some(0), "{}: {nothing}", boot.policy);
    }
    (report, outcome)
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn a_policy_that_goes_by_size_answers_short_requests_sooner() {
    // In time of the server, which this computer may be slow to run.
    let p50 = |policy| {
        let (report, _) = serve(&Boot::server(policy), &load());
        report.classes[0].round_trip.unwrap().p50 as f64 * report.clock.unwrap()
    };
    let (fcfs, sjf) = (p50("fcfs"), p50("sjf"));
    assert!(fcfs > 2.0 * sjf, "fcfs {fcfs} ns, sjf {sjf} ns");
}

/// 16 clients have two sockets.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn every_scheduler_serves() {
    let load = Load { clients: 16, requests: 3, rounds: false, ..load() };
    let policies = POLICIES.iter().map(|policy| policy.name);
    // One of ArceOS's own: each of them is another image, and would serve in the same way.
    let all: Vec<&str> = policies.chain(["stock-rr"]).collect();
    let check = |policy: &str| {
        let (report, _) = serve(&Boot::server(policy), &load);
        assert_eq!(report.all.sent, 48, "{policy}");
        let least = report.classes[1].served.unwrap().p50;
        assert!(least > 19_000_000, "{policy}: 20 ms of work in {least} ns");
    };
    // Two servers at a time; a thread that panics makes the test panic.
    std::thread::scope(|scope| {
        all.chunks(all.len().div_ceil(2)).for_each(|half| {
            drop(scope.spawn(move || half.iter().for_each(|policy| check(policy))))
        });
    });
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn the_receiver_can_do_the_work_itself() {
    let mut boot = Boot::server("fcfs");
    boot.arguments.push(("handler".into(), "inline".into()));
    let (report, _) = serve(&boot, &load());
    assert_eq!(report.all.queued.unwrap().max / 1_000_000, 0, "it is taken when it can be served");
}

/// Each of six clients has one task, whatever the number of its requests. What a request costs is
/// declared when its task is woken, so that short ones are answered sooner by size.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn a_task_can_stay_for_its_client() {
    let p50 = |policy| {
        let mut boot = Boot::server(policy);
        boot.arguments.push(("handler".into(), "client".into()));
        let (report, outcome) = serve(&boot, &load());
        assert_eq!((report.all.sent, outcome.value("clients")), (120, Some(6)), "{policy}");
        report.classes[0].round_trip.unwrap().p50 as f64 * report.clock.unwrap()
    };
    let (fcfs, sjf) = (p50("fcfs"), p50("sjf"));
    assert!(fcfs > 2.0 * sjf, "fcfs {fcfs} ns, sjf {sjf} ns");
}

/// Thousands of tasks have 16 KiB of stack each, which would not fit if they were kept.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn memory_of_requests_that_are_done_is_freed() {
    let costs = vec!["1us".parse().unwrap()];
    let load = Load { clients: 8, requests: 1500, costs, rounds: false, ..load() };
    assert_eq!(serve(&Boot::server("rr"), &load).0.all.sent, 12_000);
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn garbage_is_refused_and_counted() {
    let boot = Boot::server("rr");
    let kernel = boot.image.build().unwrap();
    let load = Load { requests: 3, rounds: false, ..load() };
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let boot = Boot { udp_ports: vec![port], ..boot };
    let mut say = |line: &str| {
        if line.starts_with("serving") {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            for garbage in [&b""[..], b"any1", b"any1r", b"anyone", &[b'q'; 1000]] {
                socket.send_to(garbage, ("127.0.0.1", port)).unwrap();
            }
        }
    };
    let (report, outcome) = boot.serve(&kernel, &load, &mut say).unwrap();
    assert_eq!((report.all.lost, outcome.value("refused")), (0, Some(5)));
}
