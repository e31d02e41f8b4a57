//! `anysched boot` of a server: in a real kernel, under a load from this computer.

use crate::args::{BootArgs, ClientArgs, Format};
use crate::boot;
use crate::output::{self, Failure, short_time};
use anysched_clients::{Class, Cost, Load, Report, Spread};
use anysched_core::Span;
use anysched_host::{HostInfo, Order, Outcome, Served, Watch, Work};
use anysched_lab::output::{align, csv_lines};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// What a load is if the command does not say.
const CLIENTS: u16 = 40;
const REQUESTS: u32 = 100;
const COSTS: [(u64, u16); 2] = [(1, 4), (20, 1)];
const SEED: u64 = 1;
const SIZE: u16 = 64;
const LOST_AFTER: Span = Span::from_ms(5000);

/// The server under a scheduler.
struct ServedRow {
    policy: String,
    /// It goes by what requests cost, which the server knows and declares.
    told: bool,
    report: Report,
    outcome: Outcome,
}

pub fn serve(args: &BootArgs) -> Result<(), Failure> {
    let app = &args.app;
    for (given, option) in [
        (args.icount.is_some(), "--icount: clients live in real time"),
        (args.smp.cpus() > 1, "--smp: the server is measured on one CPU"),
        (args.files.trace.is_some(), "--trace: a trace is of programs that end by themselves"),
        (args.files.record.is_some(), "--record: a record is of programs that end by themselves"),
        (args.files.learned.is_some(), "--learned: nothing is learned of a server"),
    ] {
        if given {
            return Err(Failure::from(format!("{option}; leave it out for --app {app}")));
        }
    }
    let program = boot::program(args)?;
    args.host.require_program(&program)?;
    let load = load(&args.clients)?;
    let setup = boot::setup(args)?;
    let rows = boot::rows(args, &setup)?;
    let host = boot::open(args, boot::places(args)[0]);
    let mut served = Vec::new();
    for row in &rows {
        let mut say = |line: &str| eprintln!("{}: {line}", row.name);
        let work = Work::Program(program.clone());
        let watch = Watch { say: Some(&mut say), ..Watch::default() };
        let (by, vms) = (row.by(&row.settings), Vec::new());
        let Served { report, outcome } =
            host.serve(Order { by, setup: &setup, work, vms, watch }, &load)?;
        let told = row.used().nature.clairvoyant;
        served.push(ServedRow { policy: row.name.into(), told, report, outcome });
    }
    output::print(&match args.format {
        Format::Table => table(args.host, app, &load, &served),
        Format::Json => format!("{:#}\n", as_json(args.host, app, &load, &served)),
        Format::Csv => csv(&served),
    })
}

/// Refuses options of a load where there is no server.
pub fn require_no_load(args: &BootArgs) -> Result<(), Failure> {
    let ClientArgs { clients, requests, costs, rounds, seed, size, lost_after } = &args.clients;
    let given = [
        ("clients", clients.is_some()),
        ("requests", requests.is_some()),
        ("costs", !costs.is_empty()),
        ("rounds", *rounds),
        ("seed", seed.is_some()),
        ("size", size.is_some()),
        ("lost-after", lost_after.is_some()),
    ];
    match (given.iter().find(|(_, given)| *given), args.host.server) {
        (None, _) => Ok(()),
        (Some((option, _)), Some(server)) => {
            Err(format!("--{option} is for --app {server}, the only server").into())
        }
        (Some((option, _)), None) => {
            Err(format!("--{option} is for servers, and {} has none", args.host.name).into())
        }
    }
}

fn load(args: &ClientArgs) -> Result<Load, Failure> {
    let known = COSTS.map(|(work, weight)| Cost { work: Span::from_ms(work), weight });
    let costs = if args.costs.is_empty() { known.to_vec() } else { args.costs.clone() };
    for (number, cost) in costs.iter().enumerate() {
        if costs[..number].iter().any(|other| other.work == cost.work) {
            return Err(format!("--costs: {} is there twice; add the weights", cost.work).into());
        }
    }
    Ok(Load {
        clients: args.clients.unwrap_or(CLIENTS),
        requests: args.requests.unwrap_or(REQUESTS),
        costs,
        seed: args.seed.unwrap_or(SEED),
        size: args.size.unwrap_or(SIZE),
        timeout: Duration::from_nanos(args.lost_after.unwrap_or(LOST_AFTER).0),
        rounds: args.rounds,
    })
}

/// The rows of a report: its classes, and all together if there are several.
fn classes(report: &Report) -> impl Iterator<Item = &Class> {
    let several = report.classes.len() > 1;
    report.classes.iter().chain(several.then_some(&report.all))
}

fn cost(class: &Class) -> String {
    class.work.map_or("all".into(), |work| work.to_string())
}

fn table(host: &HostInfo, app: &str, load: &Load, served: &[ServedRow]) -> String {
    let mut text = format!("{}: {app}\n", host.title);
    let mix: Vec<String> =
        load.costs.iter().map(|cost| format!("{} × {}", cost.weight, cost.work)).collect();
    let rounds = if load.rounds { " in rounds" } else { "" };
    let (clients, requests, mix) = (load.clients, load.requests, mix.join(", "));
    let _ = writeln!(text, "{clients} clients, {requests} requests each{rounds}: {mix}\n");
    let head = [
        ["", "", "requests/s", "", "round trip", "", "", "in queue", "served in", ""],
        ["policy", "cost", "here", "there", "mean", "p50", "p99", "p50", "p50", "lost"],
    ];
    let mut lines = head.map(|line| line.map(String::from)).to_vec();
    for ServedRow { policy, told, report, .. } in served {
        let name = format!("{policy}{}", if *told { " *" } else { "" });
        for class in classes(report) {
            let time = |spread: &Option<Spread>, of: fn(&Spread) -> f64| {
                spread.as_ref().map_or("-".into(), |spread| short_time(of(spread)))
            };
            let Class { per_s, per_server_s, lost, round_trip, queued, served, .. } = class;
            lines.push([
                name.clone(),
                cost(class),
                format!("{per_s:.1}"),
                per_server_s.map_or("-".into(), |per_s| format!("{per_s:.1}")),
                time(round_trip, |spread| spread.mean),
                time(round_trip, |spread| spread.p50 as f64),
                time(round_trip, |spread| spread.p99 as f64),
                time(queued, |spread| spread.p50 as f64),
                time(served, |spread| spread.p50 as f64),
                lost.to_string(),
            ]);
        }
    }
    text.push_str(&align::rows(&lines, 2));
    text += "\nRound trips and \"here\" are by the clock of this computer, the others by the \
             server's.\n";
    if served.iter().any(|served| served.told) {
        text += "* is told what a request costs, which this server knows.\n";
    }
    for ServedRow { policy, report, outcome, .. } in served {
        write_oddities(&mut text, policy, report, outcome);
    }
    text
}

/// What should not happen, and how far the two clocks are from each other.
fn write_oddities(text: &mut String, policy: &str, report: &Report, outcome: &Outcome) {
    for (count, what) in [
        (report.strays, "datagrams came that were no answer, or one that was too late"),
        (outcome.value("refused").unwrap_or(0), "datagrams were refused by the server"),
        (outcome.value("unsent").unwrap_or(0), "answers could not be sent"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "{policy}: {count} {what}.");
        }
    }
    if let Some(clock) = report.clock {
        let _ = writeln!(text, "{policy}: a second here was {clock:.2} s of the server's clock.");
    }
}

fn as_json(host: &HostInfo, app: &str, load: &Load, served: &[ServedRow]) -> Value {
    let spread = |spread: &Option<Spread>| {
        spread.map(|Spread { mean, p50, p95, p99, max }| {
            json!({ "mean": mean, "p50": p50, "p95": p95, "p99": p99, "max": max })
        })
    };
    let class = |class: &Class| {
        json!({
            "cost_ns": class.work.map(|work| work.0),
            "sent": class.sent,
            "lost": class.lost,
            "requests_per_s": class.per_s,
            "requests_per_server_s": class.per_server_s,
            "round_trip_ns": spread(&class.round_trip),
            "queued_ns": spread(&class.queued),
            "served_ns": spread(&class.served),
        })
    };
    let policies: Vec<Value> = served
        .iter()
        .map(|ServedRow { policy, told, report, outcome }| {
            json!({
                "policy": policy,
                "clairvoyant": told,
                "elapsed_ns": report.elapsed.0,
                "server_clock": report.clock,
                "strays": report.strays,
                "refused": outcome.value("refused"),
                "unsent": outcome.value("unsent"),
                "all": class(&report.all),
                "classes": report.classes.iter().map(class).collect::<Vec<_>>(),
            })
        })
        .collect();
    let costs: Vec<Value> = load
        .costs
        .iter()
        .map(|cost| json!({ "cost_ns": cost.work.0, "weight": cost.weight }))
        .collect();
    json!({
        "host": host.name,
        "program": app,
        "clients": load.clients,
        "requests": load.requests,
        "rounds": load.rounds,
        "costs": costs,
        "seed": load.seed,
        "size": load.size,
        "policies": policies,
    })
}

fn csv(served: &[ServedRow]) -> String {
    let head = "policy,clairvoyant,cost,sent,lost,requests_per_s,requests_per_server_s";
    let mut head: Vec<String> = head.split(',').map(str::to_string).collect();
    for time in ["round_trip_ns", "queued_ns", "served_ns"] {
        head.extend(["mean", "p50", "p95", "p99", "max"].map(|stat| format!("{time}_{stat}")));
    }
    let mut lines = vec![head];
    for ServedRow { policy, told, report, .. } in served {
        for class in classes(report) {
            let Class { sent, lost, per_s, per_server_s, .. } = class;
            let there = per_server_s.map_or(String::new(), |n| n.to_string());
            let (policy, told, cost) = (policy.clone(), told.to_string(), cost(class));
            let [sent, lost] = [sent, lost].map(u64::to_string);
            let mut line = vec![policy, told, cost, sent, lost, per_s.to_string(), there];
            for spread in [&class.round_trip, &class.queued, &class.served] {
                line.extend(match spread {
                    Some(Spread { mean, p50, p95, p99, max }) => {
                        let [p50, p95, p99, max] = [p50, p95, p99, max].map(u64::to_string);
                        [mean.to_string(), p50, p95, p99, max]
                    }
                    None => Default::default(),
                });
            }
            lines.push(line);
        }
    }
    csv_lines(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(work: Option<Span>, per_s: f64, lost: u64) -> Class {
        let spread = |mean: f64| {
            let p50 = mean as u64;
            Some(Spread { mean, p50, p95: 2 * p50, p99: 3 * p50, max: 4 * p50 })
        };
        let (round_trip, queued, served) = (spread(4.5e6), spread(2000.0), spread(1e6));
        let per_server_s = Some(per_s / 2.0);
        Class { work, sent: 10, lost, per_s, per_server_s, round_trip, queued, served }
    }

    fn served(classes: Vec<Class>) -> ServedRow {
        let all = Class { queued: None, ..class(None, 30.0, 1) };
        let elapsed = Span::from_ms(1000);
        let report = Report { all, classes, elapsed, strays: 2, clock: Some(2.0) };
        let outcome = Outcome { values: vec![("refused".into(), 3)], ..Outcome::default() };
        ServedRow { policy: "sjf".into(), told: true, report, outcome }
    }

    fn load() -> Load {
        load_of(&ClientArgs {
            clients: Some(2),
            requests: None,
            costs: Vec::new(),
            rounds: true,
            seed: None,
            size: None,
            lost_after: None,
        })
    }

    fn load_of(args: &ClientArgs) -> Load {
        super::load(args).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    #[test]
    fn a_table_has_a_line_for_each_cost_and_one_for_all() {
        let [short, long] = [1, 20].map(|ms| class(Some(Span::from_ms(ms)), 10.0, 0));
        let expected = "\
ArceOS: udp
2 clients, 100 requests each in rounds: 4 × 1ms, 1 × 20ms

              requests/s         round trip                 in queue  served in
policy  cost        here  there        mean    p50     p99       p50        p50  lost
sjf *   1ms         10.0    5.0       4.5ms  4.5ms  13.5ms       2us        1ms     0
sjf *   20ms        10.0    5.0       4.5ms  4.5ms  13.5ms       2us        1ms     0
sjf *   all         30.0   15.0       4.5ms  4.5ms  13.5ms         -        1ms     1

Round trips and \"here\" are by the clock of this computer, the others by the server's.
* is told what a request costs, which this server knows.
sjf: 2 datagrams came that were no answer, or one that was too late.
sjf: 3 datagrams were refused by the server.
sjf: a second here was 2.00 s of the server's clock.
";
        assert_eq!(
            table(&anysched_arceos::HOST, "udp", &load(), &[served(vec![short, long])]),
            expected
        );
    }

    #[test]
    fn one_cost_is_all() {
        let only = served(vec![class(Some(Span::from_ms(1)), 10.0, 0)]);
        let lines = csv(&[only]);
        let lines: Vec<Vec<&str>> = lines.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1][..7], ["sjf", "true", "1ms", "10", "0", "10", "5"]);
        assert_eq!(lines[0].len(), lines[1].len());
        let at = lines[0].iter().position(|name| *name == "served_ns_max").unwrap();
        assert_eq!(lines[1][at], "4000000");
    }

    #[test]
    fn what_there_is_no_data_for_is_empty_or_null() {
        let nothing = served(Vec::new());
        let json = as_json(&anysched_arceos::HOST, "udp", &load(), &[nothing]);
        assert_eq!(json["policies"][0]["all"]["queued_ns"], Value::Null);
        assert_eq!(json["policies"][0]["all"]["round_trip_ns"]["p99"], 13_500_000);
        assert_eq!(json["costs"][1], json!({ "cost_ns": 20_000_000, "weight": 1 }));
        let [short, mut long] = [1, 20].map(|ms| class(Some(Span::from_ms(ms)), 10.0, 0));
        (long.round_trip, long.per_server_s) = (None, None);
        let text = csv(&[served(vec![short, long])]);
        let line = text.lines().nth(2).unwrap();
        assert_eq!(line.split(',').collect::<Vec<_>>()[5..12], ["10", "", "", "", "", "", ""]);
    }
}
