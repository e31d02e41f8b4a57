//! The policies in a small scope.

use anysched_core::Machine;
use anysched_policies::POLICIES;
use anysched_verify::{Demands, Limits, Property, Scope, search};
use std::time::{Duration, Instant};

#[test]
fn look() {
    let only = std::env::var("ONLY").ok();
    let depth: u32 = std::env::var("DEPTH").ok().map_or(4, |d| d.parse().unwrap());
    for info in POLICIES.iter().filter(|info| only.as_deref().is_none_or(|o| o == info.name)) {
        let machine = Machine::parse("2").unwrap();
        let mut scope = Scope::new(machine.clone(), 3);
        let nature = (info.nature)(&[]).unwrap();
        scope.tells_bursts = nature.clairvoyant;
        let build = || (info.build)(&machine, &[]).unwrap();
        let limits =
            Limits { depth, time: Some(Duration::from_secs(20)), states: 5_000_000, threads: 2 };
        let began = Instant::now();
        let report =
            search(&scope, &build, Demands::from(nature), &Property::ALL, &limits, &mut |_, _| {});
        println!(
            "{:18} merges {:5} depth {} states {:8} trans {:9} {:?} {:.1?} wait {:?}",
            info.name,
            report.merges,
            report.depth,
            report.states,
            report.transitions,
            report.end,
            began.elapsed(),
            report.longest.as_ref().map(|(w, _)| w.time)
        );
        for finding in &report.findings {
            println!("   {} {}", finding.property, finding.what);
            finding.history.iter().for_each(|event| println!("        {event}"));
        }
    }
}
