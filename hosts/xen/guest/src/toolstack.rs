//! dom0: builds what its orders say, waits for it, and says what came of it.

use core::fmt::Write;
use core::hint::spin_loop;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_wire::boot::Boot;
use anysched_wire::dom0::{TakenFor, own, require_scheduler};
use anysched_wire::mail;
use anysched_wire::result::{Message, Task};

use crate::control::{Failed, press};
use crate::domain::{Domain, Needs};
use crate::driver::{self, Driver, End};
use crate::events::Port;
use crate::hypercall::{Shutdown, poll, poll_until};
use crate::pools::Pool;
use crate::programs::{Plan, VMS, plans};
use crate::records::Records;
use crate::share::Share;
use crate::{Console, shared, storm};

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

/// Says something to whoever listens to the console.
pub fn say(message: &Message) {
    let _ = Console.write_str(&format!("{message}\n"));
}

fn perform(module: &[u8]) -> Result<(), String> {
    // Behind a zero byte there may be more. Xen pads the file to whole pages with such bytes.
    let zero = module.iter().position(|byte| *byte == 0).unwrap_or(module.len());
    let (orders, more) = module.split_at(zero);
    let more = more.strip_prefix(&[0]).unwrap_or_default();
    let length = more.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let boot = Boot::read(orders).map_err(|error| error.to_string())?;
    let scheduler = own_scheduler(&boot.policy)?;
    have_own_way()?;
    let mut records = Records::of(boot.events)?;
    if boot.program == storm::NAME {
        if let Some(own) = scheduler.filter(|own| own.gives_whole_pcpus()) {
            let name = own.name();
            return Err(format!(
                "`{}` has more vCPUs than pCPUs, which `{name}` cannot",
                storm::NAME
            ));
        }
        say(&Message::Started(boot.program.clone()));
        storm::run(&boot, &mut records)?;
        if boot.record {
            dump();
        }
        records.finish()?;
        say(&Message::End);
        return Ok(());
    }
    let plans = plans(&boot, &more[..length])?;
    if let Some(own) = scheduler {
        let vcpus: u64 = plans.iter().map(|plan| u64::from(plan.vcpus)).sum();
        own.require_pcpus(Pool::default().pcpus().map_err(of_dom0)?.into(), OWN_VCPUS + vcpus)?;
    }
    let counts = boot.program == VMS;
    say(&Message::Started(boot.program.clone()));
    let deaths = Port::of_deaths().map_err(|error| format!("dom0 hears nothing: {error:?}"))?;
    let mut running = build(plans)?;
    for Running { plan, domain, .. } in &running {
        records.name(domain.number, &plan.name);
    }
    let mut driver = begin(&mut running, deaths, counts, &mut records)?;
    wait(&running, deaths, Shutdown::PowerOff, &mut driver, &mut records)?;
    if boot.record || counts {
        dump();
    }
    records.finish()?;
    for one in &running {
        tell(one, counts)?;
    }
    for one in running {
        one.domain.destroy().map_err(|error| failed(&one.plan, error))?;
    }
    say(&Message::End);
    Ok(())
}

/// vCPUs of dom0.
const OWN_VCPUS: u64 = 1;

/// What Xen refused of dom0.
fn of_dom0(Failed(what, errno): Failed) -> String {
    format!("dom0: Xen refused to {what}: error {}", errno.0)
}

/// Which of Xen's own schedulers runs; `None`: one of the policies. Errors: not the one that was
/// asked for.
fn own_scheduler(policy: &str) -> Result<Option<TakenFor>, String> {
    let scheduler = Pool::default().scheduler().map_err(of_dom0)?;
    require_scheduler(policy, scheduler.0)?;
    own(policy)
}

/// Where there are periods, dom0 gets all of a short one: it does little, and domains that it lets
/// go one after another should not wait for its next period.
fn have_own_way() -> Result<(), String> {
    let own = Share { period: Some((1_000, 1_000)), ..Share::default() };
    own.tell(0, OWN_VCPUS as u32).map_err(of_dom0)
}

/// Lets domains go as soon as all of them are ready. Schedulers are told what to give them then:
/// what they do until then does not count.
fn begin(
    running: &mut [Running<'_>],
    deaths: Port,
    counts: bool,
    records: &mut Records,
) -> Result<Driver, String> {
    for one in &*running {
        one.domain.unpause().map_err(|error| failed(&one.plan, error))?;
    }
    wait(running, deaths, Shutdown::Suspend, &mut Driver::default(), records)?;
    for Running { plan, domain, .. } in &*running {
        domain.tell(&plan.share).map_err(|error| failed(plan, error))?;
    }
    if counts {
        dump();
    }
    let mut ends = running.iter().map(end).collect::<Result<Vec<_>, _>>()?;
    let epoch = next_start(running.len());
    for (end, Running { plan, .. }) in ends.iter_mut().zip(&*running) {
        let messages = end.iter_mut().flat_map(|end| &mut end.outside);
        for mail::Message { arrives, sent, .. } in messages {
            (*arrives, *sent) = (*arrives + epoch + plan.begin, *sent + epoch + plan.begin);
        }
    }
    let mut driver = Driver::new(ends);
    let mut ports: Vec<u32> = driver.ports().collect();
    let mut order: Vec<&mut Running<'_>> = running.iter_mut().collect();
    order.sort_by_key(|one| one.plan.begin);
    for one in &order {
        one.domain.set_epoch(epoch).map_err(|error| failed(&one.plan, error))?;
    }
    await_start(epoch);
    for one in order {
        let begin = epoch + one.plan.begin;
        while one.plan.begin > 0 && shared::now() < begin {
            let next = driver.forward().min(begin);
            poll(&mut ports, next);
        }
        one.arrival = begin;
        one.domain.resume().map_err(|error| failed(&one.plan, error))?;
    }
    Ok(driver)
}

/// Runs start at multiples of this time since Xen's boot, in ns: of most periods of ticks, of
/// policies' timers and of vCPUs. These are at multiples of theirs, and so they are in simulations,
/// which start at 0.
const STARTS: u64 = 600_000_000;

/// What dom0 does of each domain until the start takes less, in ns.
const PREPARATION: u64 = 1_000_000;

/// When a run of so many domains starts.
fn next_start(domains: usize) -> u64 {
    let ready = shared::now() + PREPARATION * (domains as u64 + 1);
    ready.next_multiple_of(STARTS)
}

/// Waits for the start. Xen's timers are late by up to 50 us.
fn await_start(start: u64) {
    poll(&mut [], start.saturating_sub(PREPARATION / 2));
    while shared::now() < start {
        spin_loop();
    }
}

/// What dom0 needs to pass on messages of a domain, which is ready; none, if it has none.
fn end(one: &Running<'_>) -> Result<Option<End>, String> {
    let Some(post) = &one.plan.post else { return Ok(None) };
    let mailbox = one.domain.mailbox().map_err(|error| failed(&one.plan, error))?;
    let port = Port::bound_to(one.domain.number, driver::PORT);
    let port = port.map_err(|errno| failed(&one.plan, Failed("bind to its port", errno)))?;
    let mut outside = Vec::new();
    mail::read_envelopes(post.mail.as_bytes(), &mut |message| outside.push(message))
        .map_err(|error| format!("domain {}: {error}", one.plan.name))?;
    Ok(Some(End { mailbox, port, ways: post.ways.clone(), outside }))
}

/// Schedulers tell their state, and ours what it has counted; it also sends what it has recorded.
fn dump() {
    let _ = press("r");
}

/// What Xen refused of a domain.
pub fn failed(plan: &Plan<'_>, Failed(what, errno): Failed) -> String {
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
        let domain = build_one(&plan, &peer)?;
        running.push(Running { plan, domain, arrival: 0 });
    }
    Ok(running)
}

/// Builds a domain, paused; `more` is what its program is told besides.
pub fn build_one(plan: &Plan<'_>, more: &str) -> Result<Domain, String> {
    let command_line = format!("{} {}{more}", plan.name, plan.command);
    let &Plan { module, vcpus, heap, report, .. } = plan;
    let needs = Needs { command_line: &command_line, module, vcpus, heap, report };
    Domain::build(&needs, plan.share.pool).map_err(|error| failed(plan, error))
}

/// Says how `domain` came to its end, for the reason `why` of Xen's, and with its last words, if it
/// had any.
pub fn crashed(plan: &Plan<'_>, domain: &Domain, why: u32) -> String {
    let mut said = format!("domain {} has crashed (reason {why})", plan.name);
    let _ = domain.report(&mut |line| {
        if let Ok(None) = Message::read(line) {
            said.push_str(": ");
            said.push_str(line);
        }
        Ok(())
    });
    said
}

/// Waits until all domains have stopped for this reason, and passes on messages and records
/// meanwhile. Errors: one has for another.
fn wait(
    running: &[Running<'_>],
    deaths: Port,
    wanted: Shutdown,
    driver: &mut Driver,
    records: &mut Records,
) -> Result<(), String> {
    let mut ports: Vec<u32> = driver.ports().chain(records.port()).collect();
    ports.push(deaths.0);
    loop {
        // What happens from here on is not missed.
        deaths.take();
        let mut left = 0;
        for (number, one) in running.iter().enumerate() {
            match one.domain.shut_down().map_err(|error| failed(&one.plan, error))? {
                None => left += 1,
                Some(why) if why == wanted as u32 => driver.forget(number),
                Some(why) => return Err(crashed(&one.plan, &one.domain, why)),
            }
        }
        if left == 0 {
            return Ok(());
        }
        while !deaths.is_pending() {
            records.look()?;
            let next = driver.forward();
            poll_until(&mut ports, next);
        }
    }
}

/// Passes on what a domain has reported; samples by its name, too, if that is `wanted`.
fn tell(one: &Running<'_>, wanted: bool) -> Result<(), String> {
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
                // Tasks of a machine know when they came.
                let arrival = if task.arrival == 0 { one.arrival } else { task.arrival };
                say(&Message::Task(Task { name, arrival, ..task }));
            }
            Some(Message::Value { name, number }) => {
                say(&Message::Value { name: format!("{domain}.{name}"), number });
            }
            Some(Message::Sample { name, number }) if wanted => {
                say(&Message::Sample { name: format!("{domain}.{name}"), number });
            }
            Some(message) => say(&message),
            None => {}
        }
        Ok(())
    };
    one.domain.report(&mut pass).map_err(|why| format!("domain {domain}: {why}"))
}
