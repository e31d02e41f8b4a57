//! Values in text form: times, CPU lists, profiles, topologies, distributions, policy parameters.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_core::{CpuSet, Machine, Span};
use anysched_policies::POLICIES;
use anysched_policies::arceos::pbg::Profile;
use anysched_workload::dist::Dist;

fuzz_target!(|text: &str| {
    if let Ok(span) = Span::parse(text) {
        assert_eq!(Span::parse(&span.to_string()), Ok(span));
    }
    if let Ok(set) = CpuSet::parse(text)
        && set != CpuSet::Few(0)
    {
        assert_eq!(CpuSet::parse(&set.to_string()), Ok(set));
    }
    if let Ok(profile) = Profile::parse(text) {
        assert_eq!(Profile::parse(&profile.to_string()), Ok(profile));
    }
    let _ = Machine::parse(text);
    let _ = Dist::parse(text, "/nonexistent".as_ref());
    let machine = Machine::flat(2).unwrap();
    for policy in POLICIES {
        for param in (policy.params)() {
            let _ = (policy.build)(&machine, &[(param.name, text)]);
        }
    }
});
