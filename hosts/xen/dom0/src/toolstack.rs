//! dom0: starts the toolstack, has it build what the orders say, and says what came of it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anysched_wire::boot::Boot;
use anysched_wire::dom0::{
    ANYSCHED, ANYSCHED_NAME, ORDERS, SCHEDULER, TakenFor, own, require_scheduler,
};
use anysched_wire::result::Message;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::command::{run, run_all};
use crate::domains::{DOM0, PORT, Plan, of_period, plans};
use crate::machine::{self, line, say};

/// Where xenstored listens.
const STORE: &str = "/run/xenstored/socket";

/// Where xenconsoled writes what domains print.
const CONSOLES: &str = "/var/log/xen/console";

/// How long a daemon may take to come up, and domains to say the next thing, by dom0's clock.
const PATIENCE: Duration = Duration::from_secs(300);

/// What dom0 gets where there are periods, in microseconds: all of a short one, since it forwards
/// what domains send.
const OWN: u64 = 1_000;

/// Performs the orders, and ends the machine.
pub fn perform() -> ! {
    match attempt() {
        Ok(()) => say(&Message::End),
        Err(why) => machine::refuse(why),
    }
    machine::end()
}

fn attempt() -> Result<(), String> {
    let orders = fs::read(ORDERS).map_err(|error| format!("{ORDERS}: {error}"))?;
    let boot = Boot::read(&orders).map_err(|error| error.to_string())?;
    let scheduler =
        fs::read_to_string(SCHEDULER).map_err(|error| format!("{SCHEDULER}: {error}"))?;
    let scheduler = TakenFor::find(scheduler.trim())
        .ok_or_else(|| format!("{SCHEDULER}: \"{scheduler}\" is no scheduler of Xen's"))?;
    let plans = plans(&boot)?;
    say(&Message::Started(boot.program.clone()));
    line(format_args!("dom0 runs Linux {}", kernel()));
    start_toolstack()?;
    if let Some(own) = own_scheduler(&boot.policy)? {
        let (pcpus, domains) = (info("nr_cpus")?, plans.len() as u64);
        own.require_pcpus(pcpus.parse().map_err(|_| no_number(&pcpus))?, OWN_VCPUS + domains)?;
    }
    let listener = open_bridge()?;
    if scheduler == TakenFor::Rtds {
        run(&of_period("0", OWN, OWN))?;
    }
    for plan in &plans {
        build(plan)?;
    }
    let mut domains = wait_for(&plans, &listener)?;
    for plan in &plans {
        for command in plan.shares(scheduler) {
            run(&command)?;
            line(command);
        }
    }
    // Those that compute come first, so that they are there when the client begins.
    for domain in domains.iter_mut().rev() {
        let gone = |error| format!("domain {} has gone: {error}", domain.plan.name);
        domain.stream.get_mut().write_all(b"go\n").map_err(gone)?;
    }
    // The server has nothing to say.
    for domain in domains.iter_mut().skip(1) {
        domain.hear_out()?;
    }
    Ok(())
}

/// vCPUs of dom0. Domains have one each.
const OWN_VCPUS: u64 = 1;

/// Which of Xen's own schedulers runs; `None`: one of the policies.
///
/// Errors: not the one that was asked for.
fn own_scheduler(policy: &str) -> Result<Option<TakenFor>, String> {
    let runs = info("xen_scheduler")?;
    let number = match TakenFor::find(&runs) {
        Some(own) => own.number(),
        None if runs == ANYSCHED_NAME => ANYSCHED,
        None => return Err(format!("`xl info`: \"{runs}\" is no scheduler of Xen's")),
    };
    require_scheduler(policy, number)?;
    own(policy)
}

/// What `xl` knows by this name of the machine.
fn info(name: &str) -> Result<String, String> {
    let said = run("xl info")?;
    let mut pairs = said.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(known, _)| known.trim() == name);
    let (_, value) = found.ok_or_else(|| format!("`xl info` has no `{name}`: \"{said}\""))?;
    Ok(value.trim().to_string())
}

fn no_number(text: &str) -> String {
    format!("`xl info`: `nr_cpus` is \"{text}\", no whole number")
}

/// Which Linux this is.
fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn start_toolstack() -> Result<(), String> {
    machine::load_modules()?;
    machine::mount_one("xenfs", "/proc/xen");
    for directory in ["/run/xen", "/run/xenstored", "/var/lib/xen", "/var/lib/xenstored", CONSOLES]
    {
        fs::create_dir_all(directory).map_err(|error| format!("{directory}: {error}"))?;
    }
    run("xenstored")?;
    let begin = Instant::now();
    while !Path::new(STORE).exists() {
        if begin.elapsed() > PATIENCE {
            return Err(format!("xenstored has made no {STORE} in {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(10));
    }
    run("xen-init-dom0")?;
    run(&format!("xenconsoled --log=guest --log-dir={CONSOLES}")).map(drop)
}

/// A bridge for the domains' interfaces, on which dom0 listens.
fn open_bridge() -> Result<TcpListener, String> {
    run_all(&[
        "/bin/busybox ip link add xenbr0 type bridge",
        &format!("/bin/busybox ip addr add {DOM0}/24 dev xenbr0"),
        "/bin/busybox ip link set xenbr0 up",
    ])?;
    let fault = |error: std::io::Error| format!("dom0 cannot listen: {error}");
    let listener = TcpListener::bind((DOM0, PORT)).map_err(fault)?;
    let timeout = set_socket_timeout(&listener, Timeout::Recv, Some(PATIENCE));
    timeout.map_err(|error| fault(error.into()))?;
    Ok(listener)
}

/// Has a domain built, and its interface on the bridge.
fn build(plan: &Plan) -> Result<(), String> {
    let Plan { name, .. } = plan;
    let path = format!("/tmp/{name}.cfg");
    fs::write(&path, plan.configuration()).map_err(|error| format!("{path}: {error}"))?;
    // Nobody waits in the background for its end.
    run(&format!("xl create -q -e {path}"))?;
    let domain = run(&format!("xl domid {name}"))?;
    run_all(&[
        &format!("/bin/busybox ip link set vif{domain}.0 master xenbr0"),
        &format!("/bin/busybox ip link set vif{domain}.0 up"),
    ])?;
    line(format_args!("xl has built {name}"));
    Ok(())
}

/// A domain that is up.
struct Domain<'a> {
    plan: &'a Plan,
    stream: BufReader<TcpStream>,
}

/// Waits until all domains have said that they are up. They come in the order of the plans.
fn wait_for<'a>(plans: &'a [Plan], listener: &TcpListener) -> Result<Vec<Domain<'a>>, String> {
    let mut domains: Vec<Domain<'a>> = Vec::new();
    while domains.len() < plans.len() {
        let up = |plan: &&Plan| domains.iter().any(|domain| domain.plan == *plan);
        let missing = || plans.iter().find(|plan| !up(plan));
        let (stream, _) = listener.accept().map_err(|error| {
            let name = missing().map_or("", |plan| plan.name.as_str());
            format!("domain {name} is not up ({error}); its console: \"{}\"", console(name))
        })?;
        let timeout = stream.set_read_timeout(Some(PATIENCE));
        timeout.map_err(|error| format!("dom0 cannot listen: {error}"))?;
        let mut stream = BufReader::new(stream);
        match hear(&mut stream)? {
            Message::Started(name) => {
                let plan = plans.iter().find(|plan| plan.name == name);
                let plan = plan.ok_or_else(|| format!("there is no domain {name}"))?;
                domains.push(Domain { plan, stream });
            }
            other => return Err(format!("a domain begins with {other}")),
        }
    }
    let place = |domain: &Domain<'_>| plans.iter().position(|plan| plan == domain.plan);
    domains.sort_by_key(place);
    Ok(domains)
}

impl Domain<'_> {
    /// Passes on what the domain says until it says no more.
    fn hear_out(&mut self) -> Result<(), String> {
        let name = &self.plan.name;
        loop {
            let heard = hear(&mut self.stream).map_err(|why| {
                format!("domain {name} is silent ({why}); its console: \"{}\"", console(name))
            })?;
            match heard {
                Message::End => return Ok(()),
                Message::Value { name: own, number } => {
                    say(&Message::Value { name: format!("{name}.{own}"), number });
                }
                sample @ Message::Sample { .. } => say(&sample),
                other => return Err(format!("domain {name} says {other}")),
            }
        }
    }
}

/// The next message of a domain.
fn hear(stream: &mut BufReader<TcpStream>) -> Result<Message, String> {
    let mut text = String::new();
    stream.read_line(&mut text).map_err(|error| error.to_string())?;
    let message = text.strip_suffix('\n').ok_or("it has gone")?;
    let message = Message::read(message).map_err(|error| error.to_string())?;
    message.ok_or_else(|| format!("\"{text}\" is no message"))
}

/// What a domain has printed last.
fn console(name: &str) -> String {
    const SHOWN: usize = 10;
    let text = fs::read(format!("{CONSOLES}/guest-{name}.log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}
