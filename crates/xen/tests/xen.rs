//! Real boots of Xen: that every policy decides there as it does here, and that what goes wrong is
//! said. `cargo xtask hosts xen` runs these; with ANYSCHED_LONG set, every program under every
//! policy, twice.

use anysched_core::registry::PolicyInfo;
use anysched_core::{Machine, Span};
use anysched_host::Clock;
use anysched_oracle::kernel::{each, replayed};
use anysched_policies::{POLICIES, policy};
use anysched_qemu::Outcome;
use anysched_xen::{Boot, BootError, Image, Sources};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The programs, small.
const PROGRAMS: [(&str, &[(&str, &str)]); 4] = [
    ("hog", &[("domains", "3"), ("duration_ns", "200000000"), ("weights", "256,512")]),
    ("ep", &[("domains", "3"), ("log2_pairs", "16")]),
    ("echo", &[("count", "30"), ("hogs", "2")]),
    ("cyclictest", &[("l", "100"), ("hogs", "2"), ("work_ns", "50000")]),
];

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut say = |line: &str| println!("xen: {line}");
        let image = Sources::find(&mut say).and_then(|sources| Image::build(&sources, &mut say));
        image.unwrap_or_else(|error| panic!("{error}"))
    })
}

fn boot(policy: &str, program: &str, arguments: &[(&str, &str)]) -> Boot {
    let mut boot = Boot::new(policy, program);
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    boot.orders.arguments = arguments.iter().map(owned).collect();
    boot
}

fn run(boot: &Boot) -> Result<Outcome, BootError> {
    boot.run(image(), &mut |_| ())
}

fn is_long() -> bool {
    std::env::var_os("ANYSCHED_LONG").is_some()
}

/// Every policy runs programs to their end under the contract's checks, and decides in the
/// hypervisor what it decides here. In the long form every program, twice alike to the byte.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn every_policy_decides_in_the_hypervisor_as_it_does_here() {
    // What learns in an earlier run needs one, with tasks that it knows again.
    let learns = |info: &&PolicyInfo| !matches!((info.rehearsal)(&[]), Ok(None));
    let policies = || POLICIES.iter().filter(move |info| !learns(info));
    let jobs: Vec<_> = if is_long() {
        let all = |program| policies().map(move |info| (info, program));
        PROGRAMS.iter().flat_map(all).collect()
    } else {
        policies().zip(PROGRAMS.iter().cycle()).collect()
    };
    let wrong = each(&jobs, |(info, (program, arguments))| {
        let mut boot = boot(info.name, program, arguments);
        (boot.orders.record, boot.checked) = (true, true);
        let fault = |error: BootError| format!("{} {program}: {error}", info.name);
        let outcome = run(&boot).map_err(fault)?;
        if is_long() && outcome != run(&boot).map_err(fault)? {
            return Err(format!("{} {program}: two boots differ", info.name));
        }
        let picks = replayed(&outcome.logs[0], policy);
        let picks = picks.map_err(|why| format!("{} {program}: {why}", info.name))?;
        // dom0 is one of them.
        if picks <= outcome.tasks.len() as u64 {
            return Err(format!("{} {program}: {picks} picks", info.name));
        }
        Ok(())
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
}

/// What each domain has of the CPU time of all, in thousandths.
fn shares(boot: &Boot) -> Vec<u64> {
    let outcome = run(boot).unwrap();
    let used: Vec<Span> = outcome.tasks.iter().filter_map(|task| task.service).collect();
    let all: u64 = used.iter().map(|span| span.0).sum();
    used.iter().map(|span| span.0 * 1_000 / all).collect()
}

/// Weights reach Xen's own schedulers and ours by the same calls.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn weights_count_as_in_xens_own_schedulers() {
    let arguments = [("domains", "3"), ("duration_ns", "2000000000"), ("weights", "256,512,1024")];
    for (ours, own) in [("credit", "stock-credit"), ("credit2", "stock-credit2")] {
        let [ours, own] = [ours, own].map(|name| shares(&boot(name, "hog", &arguments)));
        let near = |(one, other): (&u64, &u64)| one.abs_diff(*other) <= 20;
        assert!(ours.iter().zip(&own).all(near), "{ours:?} and {own:?} of 1000");
    }
}

/// A domain's vCPUs are tasks of their own, which compute at the same time where there are pCPUs,
/// and only on those that they are bound to.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn domains_have_several_vcpus() {
    let arguments = [("domains", "2"), ("vcpus", "4,1"), ("log2_pairs", "14")];
    let mut wrong = Vec::new();
    for name in ["rr", "credit", "credit2", "cfs", "stock-credit2"] {
        let outcome = match run(&boot(name, "ep", &arguments)) {
            Ok(outcome) => outcome,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let names: BTreeSet<&str> = outcome.tasks.iter().map(|task| task.name.as_str()).collect();
        let expected = BTreeSet::from(["ep1.0", "ep1.1", "ep1.2", "ep1.3", "ep2"]);
        let pairs = ["ep1.gaussian_pairs", "ep2.gaussian_pairs"].map(|name| outcome.value(name));
        if names != expected || pairs[0] != pairs[1] || pairs[0].is_none() {
            wrong.push(format!("{name}: {names:?} made {pairs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut bound = boot("rr", "hog", &[("domains", "1"), ("vcpus", "3"), ("cpus", "2")]);
    bound.machine = Machine::flat(2).unwrap();
    let outcome = run(&bound).unwrap();
    let used = outcome.tasks.iter().filter_map(|task| task.service).map(|span| span.0);
    let longest = outcome.tasks.iter().map(|task| task.finish.since(task.arrival).0).max();
    let (used, longest) = (used.sum::<u64>(), longest.unwrap());
    assert!(used <= longest, "three vCPUs used {used} ns of one pCPU in {longest} ns");
    let refused = run(&boot("rr", "echo", &[("vcpus", "2")])).unwrap_err().to_string();
    assert!(refused.contains("`vcpus` = \"2\": domain server runs `echo-server`"), "{refused}");
}

/// Floating point is the domain's own: Xen switches its registers.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn sums_of_ep_are_the_published_ones() {
    if !is_long() {
        return;
    }
    let outcome = run(&boot("credit", "ep", &[("domains", "2"), ("class", "S")])).unwrap();
    for name in ["ep1.verified", "ep2.verified"] {
        assert_eq!(outcome.value(name), Some(1));
    }
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn what_goes_wrong_is_said() {
    let hog = |policy: &str| boot(policy, "hog", &[("duration_ns", "50000000")]);
    let error = |boot: &Boot| run(boot).unwrap_err().to_string();
    let unknown = error(&hog("nonesuch"));
    assert!(unknown.contains("there is no policy \"nonesuch\" in this build"), "{unknown}");
    let mut wrong = hog("rr");
    wrong.orders.settings = vec![("quantum".into(), "soon".into())];
    let wrong = error(&wrong);
    assert!(wrong.contains("policy rr: ") && wrong.contains("soon"), "{wrong}");
    let mut panics = hog("rr");
    panics.fault = Some(("panic".into(), 5));
    let panics = error(&panics);
    assert!(panics.contains("asked to panic"), "{panics}");
    let refused = error(&boot("rr", "hog", &[("weights", "many")]));
    assert!(refused.contains("`weights` = \"many\": whole numbers and commas"), "{refused}");
}

/// Several pCPUs at the same time: all domains come to their end, whoever schedules them.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn several_pcpus_run_domains_to_their_end() {
    let jobs = ["rr", "credit", "credit2", "rtds", "gfs", "cfs", "eevdf", "osv"];
    let wrong = each(&jobs, |name| {
        let mut boot = boot(name, "hog", &[("domains", "9"), ("duration_ns", "100000000")]);
        boot.machine = Machine::flat(4).unwrap();
        (boot.clock, boot.checked) = (Clock::Parallel, true);
        let outcome = run(&boot).map_err(|error| format!("{name}: {error}"))?;
        match outcome.tasks.len() {
            9 => Ok(()),
            other => Err(format!("{name}: {other} of 9")),
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
