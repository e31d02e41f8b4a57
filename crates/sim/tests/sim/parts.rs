//! What is measured of some of the tasks adds up to what is measured of all.

use crate::support::random::{self, costs, pick, sometimes};
use crate::support::{run, task};
use anysched_core::Time;
use anysched_host::Setup;
use anysched_measure::{Apart, Metrics, PART_TASKS, Part};
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_workload::Load;
use anysched_workload::mix::Mix;
use anysched_workload::model::Model;
use anysched_workload::rng::Rng;

fn load(rng: &mut Rng, cpus: u64) -> Box<dyn Load> {
    let loads = (0..3).map(|_| random::model(rng, cpus).into_load().unwrap());
    Box::new(Mix::new(loads.map(|load| Box::new(load) as Box<dyn Load>).collect()))
}

/// What can be added up, of all tasks or of some.
fn counted(metrics: &Metrics) -> Vec<(&'static str, u64)> {
    let totals = [
        ("tasks", metrics.tasks),
        ("completed", metrics.completed),
        ("unfinished", metrics.unfinished),
        ("dispatches", metrics.dispatches),
        ("context switches", metrics.context_switches),
        ("preemptions", metrics.preemptions),
        ("migrations", metrics.migrations),
        ("migrations between LLCs", metrics.migrations_llc),
        ("deadline misses", metrics.deadline_misses),
    ];
    let spans = [("busy", metrics.busy), ("spun", metrics.spun)];
    let samples = [
        ("turnarounds", &metrics.turnaround),
        ("waits", &metrics.runqueue_wait),
        ("wake-ups", &metrics.wakeup_latency),
        ("jobs", &metrics.job_response_time),
    ];
    let totals = totals.map(|(name, total)| (name, total.get().unwrap()));
    let spans = spans.map(|(name, total)| (name, total.get().unwrap().0));
    let samples = samples.map(|(name, all)| (name, all.sum() as u64 + all.count()));
    totals.into_iter().chain(spans).chain(samples).collect()
}

#[test]
fn parts_add_up_to_the_whole() {
    for seed in 0..400 {
        let rng = &mut Rng::stream(seed, "parts");
        let machine = ["1", "2", "2 llcs x 2 cores"];
        let mut setup =
            Setup::new(anysched_core::Machine::parse(pick::<&str>(rng, &machine)).unwrap());
        setup.until = Time(400_000_000);
        if sometimes(rng, 2) {
            setup.costs = costs(rng);
        }
        let info = &POLICIES[rng.below(POLICIES.len() as u64) as usize];
        let cpus = setup.machine.cpus() as u64;
        let build = || (info.build)(&setup.machine, &[]).unwrap();
        let mut again = rng.clone();
        let apart = Apart { loads: true, tasks: true };
        let sim = Sim::new(setup.clone(), build(), load(rng, cpus)).measured_apart(apart);
        let (all, ..) = sim.run().unwrap();
        let (alone, ..) = Sim::new(setup.clone(), build(), load(&mut again, cpus)).run().unwrap();
        assert_eq!(counted(&all), counted(&alone), "{seed}: measuring changes nothing");
        for loads in [true, false] {
            let of = all.parts.iter().filter(|it| matches!(it.part, Part::Load(_)) == loads);
            let mut sums = counted(&Metrics::from_zero());
            for part in of {
                let more = counted(&part.inside);
                sums.iter_mut().zip(more).for_each(|(sum, (_, more))| sum.1 += more);
                assert_eq!(part.inside.overhead.get(), None, "{seed}: of CPUs, nothing is known");
            }
            assert_eq!(sums, counted(&all), "{seed}, {}, loads {loads}", info.name);
        }
    }
}

#[test]
fn the_first_tasks_are_measured_apart() {
    let tasks = vec![task(0, vec![run(1)]); PART_TASKS + 1];
    let load = Model { tasks, ..Model::default() }.into_load().unwrap();
    let setup = Setup::new(anysched_core::Machine::flat(1).unwrap());
    let policy = (POLICIES[0].build)(&setup.machine, &[]).unwrap();
    let apart = Apart { loads: false, tasks: true };
    let (all, ..) = Sim::new(setup, policy, load).measured_apart(apart).run().unwrap();
    assert_eq!(all.tasks, PART_TASKS as u64 + 1);
    assert_eq!(all.parts.len(), PART_TASKS);
}
