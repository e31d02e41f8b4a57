//! Sets of periodic tasks, and analyses of those that take little time.

#![no_main]

use anysched_theory::realtime::edf::{self, Verdict};
use anysched_theory::realtime::{bounds, fixed, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(set) = read(data, "fuzz.csv") else { return };
    let (fits, dense_enough) = (bounds::fits(&set), bounds::dense_enough(&set));
    let (liu_layland, hyperbolic) = (bounds::liu_layland(&set), bounds::hyperbolic(&set));
    assert!(liu_layland != Some(true) || hyperbolic == Some(true));
    let short = set.horizon().is_some_and(|horizon| {
        let few = |span: u64, period: u64| u128::from(span) < 1000 * u128::from(period);
        set.tasks().iter().all(|task| {
            let period = task.period.0;
            horizon < 1000 * u128::from(period) && few(task.jitter.0, period)
        })
    });
    if set.tasks().len() > 20 || !short {
        return;
    }
    let Ok(verdict) = edf::verdict(&set) else { return };
    let schedulable = verdict == Verdict::Schedulable;
    assert!((schedulable || !dense_enough) && (fits || !schedulable));
    if let Ok(responses) = fixed::responses(&set) {
        assert!(schedulable || !fixed::meets(&set, &responses));
    }
});
