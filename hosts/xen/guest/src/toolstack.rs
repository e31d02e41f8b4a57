//! dom0: builds what its orders say, waits for it, and says what came of it.

use core::fmt::Write;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_wire::boot::Boot;
use anysched_wire::result::{Message, Task};

use crate::domain::{Domain, Failed, Share, press};
use crate::hypercall::poll;
use crate::programs::{Plan, plans};
use crate::{Console, shared};

/// A domain, and what it was built for.
struct Running {
    plan: Plan,
    domain: Domain,
    /// When it was let go.
    arrival: u64,
}

/// How often dom0 looks whether domains have ended.
const INTERVAL: u64 = 10_000_000;

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
    let mut running = build(plans)?;
    for one in &mut running {
        one.arrival = shared::now();
        one.domain.unpause().map_err(|error| failed(&one.plan, error))?;
    }
    wait(&running)?;
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

fn failed(plan: &Plan, Failed(what, errno): Failed) -> String {
    format!("domain {}: Xen refused to {what}: error {}", plan.name, errno.0)
}

fn build(plans: Vec<Plan>) -> Result<Vec<Running>, String> {
    let mut running: Vec<Running> = Vec::new();
    for plan in plans {
        let number = |name: &str| {
            let found = running.iter().find(|one| one.plan.name == name);
            found.map_or(0, |one| one.domain.number)
        };
        // Whom a program talks to is known by name; it is told the number.
        let peer = plan.peer.map_or(String::new(), |peer| format!(" peer={}", number(peer)));
        let command_line = format!("{} {}{peer}", plan.name, plan.command);
        let share: &Share = &plan.share;
        let domain = Domain::build(&command_line, share).map_err(|error| failed(&plan, error))?;
        running.push(Running { plan, domain, arrival: 0 });
    }
    Ok(running)
}

/// Waits until all domains have shut down.
fn wait(running: &[Running]) -> Result<(), String> {
    loop {
        let mut left = 0;
        for one in running {
            match one.domain.state().map_err(|error| failed(&one.plan, error))?.0 {
                None => left += 1,
                Some(0) => {}
                Some(why) => {
                    return Err(format!("domain {} has crashed (reason {why})", one.plan.name));
                }
            }
        }
        if left == 0 {
            return Ok(());
        }
        poll(&mut [], shared::now() + INTERVAL);
    }
}

/// Passes on what a domain has reported.
fn tell(one: &Running) -> Result<(), String> {
    let Plan { name, .. } = &one.plan;
    let report = one.domain.report().map_err(|why| format!("domain {name}: {why}"))?;
    for line in report.lines() {
        let message = Message::read(line).map_err(|error| error.to_string())?;
        match message {
            Some(Message::Task(task)) => {
                let (name, arrival) = (name.clone(), one.arrival);
                say(&Message::Task(Task { name, arrival, ..task }));
            }
            Some(Message::Value { name: value, number }) => {
                say(&Message::Value { name: format!("{name}.{value}"), number });
            }
            Some(message) => say(&message),
            None => {}
        }
    }
    Ok(())
}
