//! Which domains there are to be, and how `xl` is told of them.

use std::fmt::Write;

use anysched_wire::boot::Boot;
use anysched_wire::dom0::{HOGS, TakenFor};

/// The address of the network in which dom0 and all domains are, up to its last number.
const NETWORK: &str = "10.0.0.";

/// dom0's address there.
pub const DOM0: &str = "10.0.0.1";

/// Where dom0 waits for domains to say that they are up.
pub const PORT: u16 = 1;

/// Memory of a domain, in MiB: Debian's kernel takes half of it.
const MEMORY: u32 = 96;

/// A domain that is to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What its kernel is told besides.
    part: String,
    /// Its place in the order in which they are built, from 0.
    number: usize,
    share: Share,
}

/// What schedulers are told of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Share {
    weight: Option<u64>,
    cap: Option<u64>,
    period: Option<(u64, u64)>,
    /// pCPUs, a bit each.
    cpus: Option<u64>,
    /// Likewise those that it prefers.
    preferred: Option<u64>,
}

/// The domains of `ping`: a server, the client that pings it, and those that compute.
///
/// Errors: there is no such program here, or an argument of it means nothing.
pub fn plans(boot: &Boot) -> Result<Vec<Plan>, String> {
    if boot.program != "ping" {
        return Err(format!("there is no program `{}` under a dom0 with Linux", boot.program));
    }
    let count = number(boot, "count", 100)?;
    let interval = number(boot, "interval_us", 10_000)?;
    let hogs = number(boot, "hogs", HOGS)?;
    if count == 0 || hogs > 64 {
        return Err(format!(
            "`count` = {count}, `hogs` = {hogs}: 1 ping at least, 64 hogs at most"
        ));
    }
    // Until the last ping is answered, and a little more.
    let duration = (count + 20) * interval;
    let server = address(0);
    let mut parts = vec![
        ("server".to_string(), String::new()),
        ("client".into(), format!(" count={count} interval_us={interval} server={server}")),
    ];
    parts.extend((1..=hogs).map(|hog| (format!("hog{hog}"), format!(" duration_us={duration}"))));
    let [weights, caps, periods, budgets, cpus, preferred] =
        ["weights", "caps", "periods_us", "budgets_us", "cpus", "preferred"]
            .map(|name| list(boot, name));
    let (weights, caps, periods, budgets) = (weights?, caps?, periods?, budgets?);
    let (cpus, preferred) = (cpus?, preferred?);
    if periods.is_empty() != budgets.is_empty() {
        return Err("`periods_us` and `budgets_us` come together".into());
    }
    let plan = |(number, (name, more)): (usize, (String, String))| {
        let of = |list: &[u64]| list.get(number).or(list.last()).copied();
        let period = of(&periods).zip(of(&budgets));
        let share = Share {
            weight: of(&weights),
            cap: of(&caps),
            period,
            cpus: of(&cpus),
            preferred: of(&preferred),
        };
        let part = format!("part={name}{more} address={}", address(number));
        Plan { name, part, number, share }
    };
    Ok(parts.into_iter().enumerate().map(plan).collect())
}

/// The address of a domain.
fn address(number: usize) -> String {
    format!("{NETWORK}{}", number + 2)
}

impl Plan {
    /// What `xl create` is told.
    pub fn configuration(&self) -> String {
        let Plan { name, part, number, .. } = self;
        let mut text = String::new();
        let _ = writeln!(text, "name=\"{name}\"\ntype=\"pv\"\nmemory={MEMORY}\nvcpus=1");
        let _ = writeln!(text, "kernel=\"/boot/vmlinuz\"\nramdisk=\"/boot/domain.cpio\"");
        let _ = writeln!(text, "extra=\"console=hvc0 loglevel=4 panic=1 {part}\"");
        // dom0 adds the interface to its bridge itself.
        let mac = format!("00:16:3e:00:00:{:02x}", number + 2);
        let _ = writeln!(text, "vif=[\"mac={mac},script=/bin/true\"]");
        text
    }

    /// Commands that tell the scheduler what to give to the domain: of `share`, what the scheduler
    /// that `xl` takes it for has.
    pub fn shares(&self, scheduler: TakenFor) -> Vec<String> {
        let Plan { name, share, .. } = self;
        let mut commands = Vec::new();
        if share.cpus.or(share.preferred).is_some() {
            // `-`: as it is.
            let list = |mask: Option<u64>| {
                mask.map_or("-".into(), |mask| {
                    let cpus = (0..64).filter(|cpu| mask >> cpu & 1 == 1);
                    cpus.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
                })
            };
            let (hard, soft) = (list(share.cpus), list(share.preferred));
            commands.push(format!("xl vcpu-pin {name} all {hard} {soft}"));
        }
        let number = |option: &str, number: Option<u64>| {
            number.map_or(String::new(), |number| format!(" {option} {number}"))
        };
        match scheduler {
            TakenFor::Credit | TakenFor::Credit2 => {
                let shares = number("-w", share.weight) + &number("-c", share.cap);
                if !shares.is_empty() {
                    commands.push(format!("xl sched-{} -d {name}{shares}", scheduler.name()));
                }
            }
            TakenFor::Rtds => commands
                .extend(share.period.map(|(period, budget)| of_period(name, period, budget))),
            TakenFor::Null => {}
        }
        commands
    }
}

/// The command that gives all vCPUs of a domain a period and a budget, in microseconds, and no time
/// beyond that.
pub fn of_period(domain: &str, period: u64, budget: u64) -> String {
    format!("xl sched-rtds -d {domain} -v all -p {period} -b {budget} -e 0")
}

fn number(boot: &Boot, name: &str, default: u64) -> Result<u64, String> {
    boot.argument(name).map_or(Ok(default), |text| parsed(name, text))
}

/// Numbers with commas between; none if the argument is not there.
fn list(boot: &Boot, name: &str) -> Result<Vec<u64>, String> {
    let Some(text) = boot.argument(name) else { return Ok(Vec::new()) };
    text.split(',').map(|part| parsed(name, part.trim())).collect()
}

/// A number that is small enough to be multiplied.
fn parsed(name: &str, text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= 1 << 31);
    number.ok_or_else(|| format!("`{name}` = \"{text}\" is no whole number up to 2^31"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(arguments: &[(&str, &str)]) -> Result<Vec<Plan>, String> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let arguments = arguments.iter().map(owned).collect();
        plans(&Boot { program: "ping".into(), arguments, ..Boot::default() })
    }

    #[test]
    fn the_last_of_a_list_is_that_of_all_others() {
        let plans = ping(&[("hogs", "2"), ("weights", "512,256,64"), ("caps", "0,0,50")]).unwrap();
        let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        assert_eq!(names, ["server", "client", "hog1", "hog2"]);
        let shares: Vec<_> = plans.iter().flat_map(|plan| plan.shares(TakenFor::Credit2)).collect();
        assert_eq!(shares[0], "xl sched-credit2 -d server -w 512 -c 0");
        assert_eq!(shares[3], "xl sched-credit2 -d hog2 -w 64 -c 50");
        assert!(plans.iter().all(|plan| plan.shares(TakenFor::Rtds).is_empty()));
        let client = plans[1].configuration();
        assert!(client.contains("count=100 interval_us=10000 server=10.0.0.2 address=10.0.0.3\""));
    }

    #[test]
    fn a_scheduler_is_told_what_it_has() {
        let given = [("hogs", "0"), ("weights", "9"), ("periods_us", "20"), ("budgets_us", "5")];
        let plans = ping(&[&given[..], &[("cpus", "5")]].concat()).unwrap();
        let pinned = "xl vcpu-pin server all 0,2 -";
        let period = "xl sched-rtds -d server -v all -p 20 -b 5 -e 0";
        assert_eq!(plans[0].shares(TakenFor::Rtds), [pinned, period]);
        assert_eq!(plans[0].shares(TakenFor::Null), [pinned]);
        assert_eq!(plans[0].shares(TakenFor::Credit)[1], "xl sched-credit -d server -w 9");
        let preferring = ping(&[("hogs", "0"), ("preferred", "6")]).unwrap();
        assert_eq!(preferring[0].shares(TakenFor::Credit2), ["xl vcpu-pin server all - 1,2"]);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (name, value) in
            [("count", "0"), ("count", "many"), ("hogs", "65"), ("weights", "x"), ("caps", "-1")]
        {
            assert!(ping(&[(name, value)]).unwrap_err().contains(value), "{name}={value}");
        }
        assert!(ping(&[("periods_us", "1")]).is_err());
    }
}
