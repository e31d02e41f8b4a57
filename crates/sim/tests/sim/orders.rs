//! What policies say of their order (`PolicyInfo::order`) is what they pick by.

use crate::support::random::model;
use crate::support::{rehearsed, text};
use anysched_core::call::Call;
use anysched_core::{CpuMask, Machine, Observed, Observer, Pick, Scheduler, Span, Time};
use anysched_host::Setup;
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_trace::follow::{Change, Doing, Follow};
use anysched_trace::why::{Reason, Values, reason};
use anysched_workload::rng::Rng;

/// Policies of which another rule decides now and then, and what it is.
const OTHER_RULES: &[(&str, &str)] = &[
    ("cfs", "what has just been woken may be next"),
    ("eevdf", "what runs is protected, and what has just been woken may be next"),
    ("osv", "what runs counts as if it had run less"),
    ("credit", "runqueues are sorted anew only now and then"),
    ("credit2", "what runs goes on for a while"),
    ("rtds", "what has no budget left waits for its deadline"),
    ("gittins", "ranks are those of when a task was queued, whatever is learned since"),
];

/// Counts picks by what follows from the order.
#[derive(Default)]
struct Picks {
    order: &'static [anysched_core::registry::First],
    follow: Follow,
    waiting: Vec<(anysched_core::TaskId, Values, Time)>,
    despite: Vec<String>,
    by: u64,
}

impl Observer for Picks {
    fn before(&mut self, now: Time, call: &Call<'_>, policy: &dyn Scheduler) {
        let _ = now;
        self.waiting.clear();
        if !matches!(call, Call::PickNext { .. }) {
            return;
        }
        for (id, task) in self.follow.tasks() {
            if let Doing::Waits(on) = task.doing {
                let mut values = Values::new();
                policy.probe(id, &mut |name, value| values.push((name, value)));
                self.waiting.push((id, values, on.since));
            }
        }
    }

    fn after(
        &mut self,
        now: Time,
        call: &Call<'_>,
        pick: Option<Pick>,
        _: &CpuMask,
        _: &dyn Scheduler,
    ) {
        let Change::Picked(_, task, ..) = self.follow.take(now, call, pick) else { return };
        let Some((_, chosen, since)) = self.waiting.iter().find(|(id, ..)| *id == task) else {
            panic!("a pick of what does not wait");
        };
        for (other, values, other_since) in &self.waiting {
            if *other == task {
                continue;
            }
            match reason(self.order, (chosen, *since), (values, *other_since)) {
                Reason::By { .. } | Reason::Earlier { .. } => self.by += 1,
                Reason::Despite { name, chosen, other: value } => self.despite.push(format!(
                    "at {}: task {} with {name} {chosen} before task {} with {value}",
                    now.0, task.0, other.0
                )),
                _ => {}
            }
        }
    }
}

/// Random loads on one CPU under every policy that says by what it orders.
#[test]
fn picks_follow_the_order_that_policies_name() {
    let mut wrong = Vec::new();
    for info in POLICIES.iter().filter(|info| !info.order.is_empty()) {
        let (mut by, mut despite) = (0, Vec::new());
        for seed in 0..60 {
            let rng = &mut Rng::stream(seed, "orders");
            let mut setup = Setup::new(Machine::flat(1).unwrap());
            setup.until = Time(200_000_000);
            let mut model = model(rng, 1);
            // Rules of which plain tasks tell nothing.
            for task in &mut model.tasks {
                task.new.priority = rng.below(4) as i32;
                task.new.relative_deadline = Some(Span::from_ms(1 + rng.below(50)));
                task.new.period = Some(Span::from_ms(1 + rng.below(50)));
            }
            let settings = rehearsed(info, &[], &setup, &model);
            let policy = (info.build)(&setup.machine, &text(&settings)).unwrap();
            let mut picks = Picks { order: info.order, ..Picks::default() };
            let load = model.into_load().unwrap();
            Sim::new(setup, Observed::new(policy, &mut picks), load).run().unwrap();
            by += picks.by;
            despite.extend(picks.despite.into_iter().map(|line| format!("seed {seed}, {line}")));
        }
        let has_other = OTHER_RULES.iter().any(|(name, _)| *name == info.name);
        if by < 100 || despite.is_empty() == has_other || despite.len() as u64 * 4 > by {
            let (count, first) = (despite.len(), despite.first());
            wrong.push(format!("{}: {by} by its order, {count} despite: {first:?}", info.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
