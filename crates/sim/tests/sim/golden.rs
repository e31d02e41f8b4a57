//! Small cases that can be checked by hand: the golden vectors of the specification, to the ns.

use anysched_core::{Machine, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_policies::policy;
use anysched_sim::{Sim, TaskResult};
use anysched_workload::{Load, NewTask, Op, Outside};
use std::cell::RefCell;
use std::rc::Rc;

const MS: u64 = 1_000_000;

/// Tasks with one burst each, in order of arrival.
struct Bursts {
    tasks: Vec<(u64, u64)>,
    next: usize,
    /// Per number, the burst that its task still has to do.
    burst: Vec<Option<u64>>,
}

impl Load for Bursts {
    fn peek(&self) -> Time {
        self.tasks.get(self.next).map_or(Time::NEVER, |task| Time(task.0 * MS))
    }
    fn outside(&mut self) -> Outside {
        self.next += 1;
        Outside::Arrival(NewTask::default())
    }
    fn start(&mut self, task: TaskId, _: Time) {
        self.burst.resize(self.burst.len().max(task.index() + 1), None);
        self.burst[task.index()] = Some(self.tasks[self.next - 1].1);
    }
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        match self.burst[task.index()].take() {
            Some(burst) => Op::Run(Span(burst * MS)),
            None => Op::Exit,
        }
    }
}

/// Finish and first dispatch of each task, in ms.
fn play(
    cpus: usize,
    name: &str,
    settings: &[(&str, &str)],
    tasks: &[(u64, u64)],
) -> (Vec<u64>, Vec<u64>) {
    let machine = Machine::flat(cpus).unwrap();
    let scheduler = (policy(name).unwrap().build)(&machine, settings).unwrap();
    let results = Rc::new(RefCell::new(Vec::<TaskResult>::new()));
    let take = Rc::clone(&results);
    let load = Bursts { tasks: tasks.to_vec(), next: 0, burst: Vec::new() };
    let sim = Sim::new(Setup::new(machine), scheduler, load);
    sim.on_exit(move |result| take.borrow_mut().push(*result)).run().unwrap();
    let mut results = results.borrow().clone();
    results.sort_by_key(|result| result.serial);
    let ms = |time: Time| {
        assert_eq!(time.0 % MS, 0, "whole milliseconds");
        time.0 / MS
    };
    results.iter().map(|result| (ms(result.completion), ms(result.first_run))).unzip()
}

const A: [(u64, u64); 6] = [(0, 7), (0, 2), (0, 5), (0, 1), (0, 9), (0, 3)];

const B: [(u64, u64); 5] = [(0, 6), (1, 3), (2, 8), (5, 1), (6, 2)];

const QUANTUM: &[(&str, &str)] = &[("quantum", "2ms")];
const MLFQ: &[(&str, &str)] =
    &[("slices", "2ms,2ms,none"), ("boost", "0"), ("preemptive", "false"), ("levels", "3")];

const M_RSF: &[(&str, &str)] = &[("q1", "2ms"), ("q2", "2ms")];

#[test]
fn closed_batch_on_one_cpu() {
    for (name, settings, finish, first) in [
        ("fcfs", &[][..], [7, 9, 14, 15, 24, 27], [0, 7, 9, 14, 15, 24]),
        ("sjf", &[], [18, 3, 11, 1, 27, 6], [11, 1, 6, 0, 18, 3]),
        ("srpt", &[], [18, 3, 11, 1, 27, 6], [11, 1, 6, 0, 18, 3]),
        ("rr", QUANTUM, [24, 4, 21, 7, 27, 18], [0, 2, 4, 6, 7, 9]),
        ("mlfq", MLFQ, [21, 4, 22, 7, 27, 18], [0, 2, 4, 6, 7, 9]),
        ("m-rsf", M_RSF, [22, 3, 19, 1, 27, 12], [7, 1, 5, 0, 9, 3]),
    ] {
        assert_eq!(play(1, name, settings, &A), (finish.into(), first.into()), "{name}");
    }
}

#[test]
fn open_arrivals_on_one_cpu() {
    for (name, settings, finish) in [
        ("fcfs", &[][..], [6, 9, 17, 18, 20]),
        ("sjf", &[], [6, 12, 20, 7, 9]),
        ("srpt", &[], [12, 4, 20, 6, 8]),
        ("rr", QUANTUM, [16, 9, 20, 10, 12]),
        ("mlfq", MLFQ, [16, 12, 20, 7, 9]),
        ("m-rsf", M_RSF, [16, 10, 20, 7, 9]),
    ] {
        assert_eq!(play(1, name, settings, &B).0, finish, "{name}");
    }
}

#[test]
fn closed_batch_in_the_layouts_of_m_rsf() {
    let fifo = [("sort_q1", "false"), ("sort_q2", "false")];
    for (cpus, layout, more, finish, first) in [
        (1, "shared", &[("spill", "true")][..], [20, 3, 17, 1, 27, 10], [7, 1, 5, 0, 14, 3]),
        (3, "shared", &[], [9, 2, 7, 1, 11, 4], [2, 0, 1, 0, 2, 0]),
        (3, "bound3", &[], [9, 2, 7, 1, 11, 4], [2, 0, 1, 0, 2, 0]),
        (3, "pipe3", &[], [14, 3, 10, 1, 19, 6], [7, 1, 5, 0, 9, 3]),
        (5, "pipe5", &[], [10, 2, 6, 1, 15, 3], [2, 0, 1, 0, 2, 0]),
        (5, "pipe5", &[("batch", "true")], [15, 2, 12, 1, 20, 5], [2, 0, 1, 0, 2, 0]),
        (5, "pipe5", &fifo, [7, 2, 8, 3, 13, 9], [0, 0, 0, 2, 2, 2]),
    ] {
        let settings = [M_RSF, &[("layout", layout)], more].concat();
        assert_eq!(
            play(cpus, "m-rsf", &settings, &A),
            (finish.into(), first.into()),
            "{settings:?}"
        );
    }
}
