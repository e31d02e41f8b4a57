//! The log of a run's decisions tells the same story as the run itself.

use crate::support::random::{model, pick};
use crate::support::{Events, rehearsed, text};
use anysched_core::recorder::{LogSink, Recorder};
use anysched_core::{Machine, Scheduler, Time};
use anysched_host::Setup;
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_trace::{Event, Kind, decisions};
use anysched_workload::rng::Rng;
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<u8>>>);

impl LogSink for Log {
    fn write(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}

/// What both know: a log does not have the waker's CPU where no CPU's task woke, nor the counters
/// at other times than its own calls.
fn story(events: &[Event]) -> Vec<Event> {
    let told = |event: &&Event| !matches!(event.kind, Kind::Sample { .. } | Kind::Kick { .. });
    let plain = |event: &Event| match event.kind {
        Kind::Wake { task, by, .. } => Event { kind: Kind::Wake { task, by, cpu: None }, ..*event },
        _ => *event,
    };
    events.iter().filter(told).map(plain).collect()
}

/// Random loads under every policy: events straight from the simulator, and from the log.
#[test]
fn logs_tell_what_runs_told() {
    for seed in 0..3_000 {
        let rng = &mut Rng::stream(seed, "decisions");
        let machine = Machine::parse(pick::<&str>(rng, &["1", "1", "2", "2 cores x 2 threads"]));
        let mut setup = Setup::new(machine.unwrap());
        setup.until = Time(200_000_000);
        let info = &POLICIES[seed as usize % POLICIES.len()];
        let model = model(rng, setup.machine.cpus() as u64);
        let settings = rehearsed(info, &[], &setup, &model);
        let settings = text(&settings);
        let policy: Box<dyn Scheduler> = (info.build)(&setup.machine, &settings).unwrap();
        let log = Log::default();
        let recorder = Recorder::new(policy, &setup.machine, info.name, &settings, log.clone());
        let load = model.into_load().unwrap();
        let sim = Sim::with_sink(setup, recorder, load, Events::default());
        let (_, _, seen) = sim.run().unwrap();
        let log = log.0.borrow();
        let (end, told) = decisions::tell(&log, |_| None, Events::default()).unwrap();
        let (seen, told) = (story(&seen.0), story(&told.0));
        let differs = seen.iter().zip(&told).position(|(seen, told)| seen != told);
        if let Some(at) = differs {
            let from = at.saturating_sub(3);
            panic!(
                "seed {seed}, {}, event {at}:\n{:#?}\nthe log tells\n{:#?}",
                info.name,
                &seen[from..(at + 2).min(seen.len())],
                &told[from..(at + 2).min(told.len())]
            );
        }
        assert_eq!(seen.len(), told.len(), "seed {seed}, {}", info.name);
        assert!(end <= Time(200_000_000));
    }
}
