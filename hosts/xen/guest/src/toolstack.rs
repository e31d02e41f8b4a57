//! dom0: builds what its orders say, waits for it, and says what came of it.

use core::fmt::Write;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_wire::boot::Boot;
use anysched_wire::result::{Message, Task};

use crate::control::{Failed, press};
use crate::domain::{Domain, Needs};
use crate::events::Port;
use crate::hypercall::{Shutdown, poll};
use crate::programs::{Plan, plans};
use crate::{Console, shared};

/// A domain, and what it was built for.
struct Running<'a> {
    plan: Plan<'a>,
    domain: Domain,
    /// When it was let go.
    arrival: u64,
}

/// Performs the orders in `module`.
pub fn run(module: &[u8]) {
    if let Err(why) = perform(module) {
        say(&Message::Refused(why));
    }
}

fn say(message: &Message) {
    let _ = Console.write_str(&format!("{message}\n"));
}

fn perform(module: &[u8]) -> Result<(), String> {
    // Xen pads the file to whole pages.
    let length = module.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let boot = Boot::read(&module[..length]).map_err(|error| error.to_string())?;
    let plans = plans(&boot)?;
    say(&Message::Started(boot.program.clone()));
    let deaths = Port::of_deaths().map_err(|error| format!("dom0 hears nothing: {error:?}"))?;
    let mut running = build(plans)?;
    begin(&mut running, deaths)?;
    wait(&running, deaths, Shutdown::PowerOff)?;
    for one in &running {
        tell(one)?;
    }
    if boot.record {
        // Schedulers tell their state, and ours sends what it has recorded.
        let _ = press("r");
    }
    for one in running {
        one.domain.destroy().map_err(|error| failed(&one.plan, error))?;
    }
    say(&Message::End);
    Ok(())
}

/// Lets domains go as soon as all of them are ready. Schedulers are told what to give them then:
/// what they do until then does not count.
fn begin(running: &mut [Running<'_>], deaths: Port) -> Result<(), String> {
    for one in &*running {
        one.domain.unpause().map_err(|error| failed(&one.plan, error))?;
    }
    wait(running, deaths, Shutdown::Suspend)?;
    for Running { plan, domain, .. } in &*running {
        domain.tell(&plan.share).map_err(|error| failed(plan, error))?;
    }
    for one in running {
        one.arrival = shared::now();
        one.domain.resume().map_err(|error| failed(&one.plan, error))?;
    }
    Ok(())
}

fn failed(plan: &Plan<'_>, Failed(what, errno): Failed) -> String {
    format!("domain {}: Xen refused to {what}: error {}", plan.name, errno.0)
}

fn build(plans: Vec<Plan<'_>>) -> Result<Vec<Running<'_>>, String> {
    let mut running: Vec<Running<'_>> = Vec::new();
    for plan in plans {
        let number = |name: &str| {
            let found = running.iter().find(|one| one.plan.name == name);
            found.map_or(0, |one| one.domain.number)
        };
        // Whom a program talks to is known by name; it is told the number.
        let peer = plan.peer.map_or(String::new(), |peer| format!(" peer={}", number(peer)));
        let command_line = format!("{} {}{peer}", plan.name, plan.command);
        let Plan { module, vcpus, heap, report, .. } = plan;
        let needs = Needs { command_line: &command_line, module, vcpus, heap, report };
        let domain =
            Domain::build(&needs, plan.share.pool).map_err(|error| failed(&plan, error))?;
        running.push(Running { plan, domain, arrival: 0 });
    }
    Ok(running)
}

/// Waits until all domains have stopped for this reason. Errors: one has for another.
fn wait(running: &[Running<'_>], deaths: Port, wanted: Shutdown) -> Result<(), String> {
    loop {
        // What happens from here on is not missed.
        deaths.take();
        let mut left = 0;
        for one in running {
            match one.domain.shut_down().map_err(|error| failed(&one.plan, error))? {
                None => left += 1,
                Some(why) if why == wanted as u32 => {}
                Some(why) => {
                    return Err(format!("domain {} has crashed (reason {why})", one.plan.name));
                }
            }
        }
        if left == 0 {
            return Ok(());
        }
        poll(&mut [deaths.0], 0);
    }
}

/// Passes on what a domain has reported.
fn tell(one: &Running<'_>) -> Result<(), String> {
    let domain = one.plan.name.as_str();
    let mut pass = |line: &str| {
        let message = Message::read(line).map_err(|error| error.to_string())?;
        match message {
            Some(Message::Task(task)) => {
                // Its name tells it from others of the domain, if there are any.
                let name = match task.name.as_str() {
                    "-" => domain.into(),
                    part => format!("{domain}.{part}"),
                };
                say(&Message::Task(Task { name, arrival: one.arrival, ..task }));
            }
            Some(Message::Value { name, number }) => {
                say(&Message::Value { name: format!("{domain}.{name}"), number });
            }
            Some(message) => say(&message),
            None => {}
        }
        Ok(())
    };
    one.domain.report(&mut pass).map_err(|why| format!("domain {domain}: {why}"))
}
