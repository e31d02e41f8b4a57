//! The report's three calls: measuring starts and stops, and PBG is enabled, in one run.

use super::*;
use anysched_core::call::Call;
use anysched_core::checked::Rules;
use anysched_core::recorder::{LogReader, replay};
use anysched_core::{Checked, Recorder};
use anysched_oracle::random::{Host, Load};

/// The call that is `mode` set to this.
fn call(drive: &mut Drive<Smp<Pbg>>, mode: &str) {
    assert_eq!(anysched_core::Scheduler::check_param(&drive.policy, "mode", mode), Ok(()));
    drive.call(|smp, cx| anysched_core::Scheduler::set_param(smp, cx, "mode", mode));
}

fn off() -> Drive<Smp<Pbg>> {
    Drive::rule("1", &[("mode", "off")])
}

/// Runs tasks from `first` on, which work for so many ms in one dispatch each.
fn run_program(drive: &mut Drive<Smp<Pbg>>, first: u32, work: &[u64]) -> Vec<u32> {
    (0..work.len() as u32).for_each(|task| drive.create(first + task, None));
    let mut order = Vec::new();
    for _ in work {
        let (task, _) = drive.pick(0).unwrap();
        drive.put(0, task, ms(work[(task - first) as usize]), Off::Exited);
        drive.call(|smp, cx| anysched_core::Scheduler::detach(smp, cx, TaskId(task)));
        order.push(task - first);
    }
    order
}

/// The task that makes the calls is there before the first of them, and is in no profile.
#[test]
fn a_run_measures_and_a_later_one_goes_by_it() {
    let mut drive = off();
    drive.create(0, None);
    drive.run(ms(1), Off::Blocked);
    call(&mut drive, "profile");
    assert_eq!(run_program(&mut drive, 1, &[3, 1, 2]), [0, 1, 2]);
    drive.wake(0);
    assert_eq!(drive.run(ms(9), Off::Blocked), 0);
    call(&mut drive, "off");
    assert_eq!(learned(&drive), "0=3ms/1,1=1ms/1,2=2ms/1");
    assert_eq!(run_program(&mut drive, 4, &[9, 1, 1]), [0, 1, 2], "nothing is measured or planned");
    call(&mut drive, "plan");
    assert_eq!(run_program(&mut drive, 7, &[3, 1, 2]), [1, 2, 0]);
    // Enabled once more, it knows the tasks of one more run; otherwise they are not the first.
    assert_eq!(run_program(&mut drive, 10, &[3, 1, 2]), [0, 1, 2]);
    call(&mut drive, "plan");
    assert_eq!(run_program(&mut drive, 13, &[3, 1, 2]), [1, 2, 0]);
    assert_eq!(learned(&drive), "0=3ms/1,1=1ms/1,2=2ms/1");
}

/// Without a profile, the default learns until it is told to go by what it has learned.
#[test]
fn enabling_ends_the_measuring() {
    let mut drive = Drive::<Smp<Pbg>>::rule("1", &[]);
    assert_eq!(run_program(&mut drive, 0, &[3, 1, 2]), [0, 1, 2]);
    call(&mut drive, "plan");
    assert_eq!(run_program(&mut drive, 3, &[7, 7, 7]), [1, 2, 0]);
    assert_eq!(learned(&drive), "0=3ms/1,1=1ms/1,2=2ms/1");
}

#[test]
fn what_is_measured_again_replaces_what_was_known() {
    let mut drive = Drive::<Smp<Pbg>>::rule("1", &[("profile", "0=1ms/1,1=2ms/1,k7=5ms/1")]);
    call(&mut drive, "profile");
    run_program(&mut drive, 0, &[4, 3, 2]);
    drive.create_with(3, None, &with_key(8));
    assert_eq!(drive.run(ms(6), Off::Blocked), 3);
    call(&mut drive, "off");
    assert_eq!(learned(&drive), "0=4ms/1,1=3ms/1,2=2ms/1,k7=5ms/1,k8=6ms/1");
    // Off, the profile that was given is not looked at, as from the start.
    let mut never =
        Drive::<Smp<Pbg>>::rule("1", &[("mode", "off"), ("profile", "0=2ms/1,1=1ms/1")]);
    call(&mut never, "plan");
    assert_eq!(run_program(&mut never, 0, &[2, 1]), [0, 1]);
}

/// Tasks that were measured and go on to live are planned, wherever they are; those of a program
/// before are not measured, unless they have a key.
#[test]
fn tasks_that_are_there_are_planned_at_once() {
    let mut drive = off();
    drive.create(9, None);
    drive.create_with(8, None, &with_key(1));
    call(&mut drive, "profile");
    (0..4).for_each(|task| drive.create(task, None));
    for (expected, ran) in [(9, 1), (8, 9), (0, 7), (1, 5), (2, 3), (3, 1)] {
        assert_eq!(drive.run(ms(ran), Off::Yielded), expected);
    }
    assert_eq!(drive.run(ms(1), Off::Blocked), 9);
    assert_eq!(drive.run(ms(1), Off::Blocked), 8);
    assert_eq!(drive.run(ms(1), Off::Yielded), 0);
    let (running, _) = drive.pick(0).unwrap();
    assert_eq!(running, 1, "it runs, tasks 2, 3 and 0 wait in this order, 8 and 9 are blocked");
    call(&mut drive, "plan");
    // In the middle of its dispatch task 1 has not been told to have used anything of it.
    assert_eq!(learned(&drive), "0=8ms/2,1=5ms/1,2=3ms/1,3=1ms/1,k1=10ms/2");
    assert_eq!(
        [0, 1, 2, 3, 8, 9].map(|task| drive.probe(task, "dispatches_left")),
        [2, 1, 1, 1, 2, 0]
    );
    drive.put(0, 1, ms(1), Off::Yielded);
    drive.wake(9);
    drive.wake(8);
    let order: Vec<u32> = (0..6).map(|_| drive.run(ms(1), Off::Blocked)).collect();
    assert_eq!(order, [3, 2, 0, 8, 1, 9]);
    (0..4).for_each(|task| drive.wake(task));
    drive.wake(8);
    call(&mut drive, "plan");
    assert_eq!([0; 3].map(|_| drive.run(ms(1), Off::Blocked)), [3, 2, 1], "it begins anew");
    drive.wake(9);
    // Off, all are in the fallback queue, planned ones first: 0, which its CPU keeps, and 8.
    assert_eq!(drive.run(ms(1), Off::Yielded), 0);
    call(&mut drive, "off");
    let order: Vec<u32> = (0..4).map(|_| drive.run(ms(1), Off::Yielded)).collect();
    assert_eq!(order, [0, 8, 9, 0]);
}

#[test]
fn only_the_mode_changes() {
    let rule = off();
    let refused = |name, text| {
        let error = anysched_core::Scheduler::check_param(&rule.policy, name, text).unwrap_err();
        error.to_string()
    };
    let fixed = "`order` cannot be changed while the policy runs; these can: mode";
    assert_eq!(refused("order", "mean_time"), fixed);
    let wrong = refused("mode", "on");
    assert!(wrong.starts_with("`mode` = \"on\": not one of off"), "{wrong}");
    let mut drive = drive(&[("profile", FOUR)], 4);
    for (name, text) in [("mode", "on"), ("order", "mean_time")] {
        drive.call(|smp, cx| anysched_core::Scheduler::set_param(smp, cx, name, text));
    }
    assert_eq!(drive.run(ms(10), Off::Exited), 3, "it goes by the same plan");
}

/// Under a host where everything happens, with calls now and then: the contract is kept, nobody is
/// lost, and the log replays.
#[test]
fn whatever_happens_calls_can_be_made() {
    const SETTINGS: [&[(&str, &str)]; 6] = [
        &[("mode", "off")],
        &[("priorities", "true"), ("latest", "true")],
        &[("layout", "per-cpu")],
        &[],
        &[("on_yield", "last"), ("fallback", "lifo")],
        &[("on_yield", "next"), ("order", "mean_time")],
    ];
    let (mut changes, mut replayed) = (0, 0);
    for seed in 0..120u64 {
        let settings = SETTINGS[seed as usize % SETTINGS.len()];
        let machine = Machine::flat(1 + seed as usize / SETTINGS.len() % 3).unwrap();
        let load = Load {
            tasks: 10,
            burst: Span::from_us(300),
            pause: Span::from_us(700),
            pinned: seed % 2 == 0,
            hotplug: seed % 5 < 3,
        };
        let pbg = (info().build)(&machine, settings).unwrap();
        let log = Recorder::new(pbg, &machine, "pbg", settings, Vec::new());
        let mut host =
            Host::new(Checked::new(log, &machine, Rules::default()), &machine, load, seed);
        for step in 0..1_000 {
            host.step();
            if (step + seed) % 23 == 0 {
                let mode =
                    ["profile", "off", "plan", "profile", "plan"][(step + seed) as usize % 5];
                host.set_param("mode", mode);
            }
        }
        assert_eq!(host.drain(), 0, "case {seed}");
        let (_, log) = host.policy.into_policy().into_parts();
        let records = LogReader::new(&log).unwrap().map(Result::unwrap);
        changes += records.filter(|record| matches!(record.call, Call::SetParam { .. })).count();
        let mut again = (info().build)(&machine, settings).unwrap();
        replayed += replay(&log, &mut *again).unwrap().picks;
    }
    assert!(changes > 4_000 && replayed > 20_000, "{changes} and {replayed} are no test");
}
