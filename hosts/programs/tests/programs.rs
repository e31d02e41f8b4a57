//! The programs on threads of this computer, whose scheduler is not looked at: that they do what they
//! are asked to, and say what they have done.

use std::fmt::Display;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anysched_programs::{Guarded, Kernel, Signal, Task, Usage, run};
use anysched_wire::boot::Boot;
use anysched_wire::result::{Message, Task as Outcome};

/// Threads that are asked for, with what they ask for.
struct Here;

/// What the kernel is told, and what it is said.
struct Orders {
    boot: &'static Boot,
    script: &'static str,
    said: Vec<Message>,
    started: Vec<Task>,
    /// What tasks have become meanwhile, by niceness and by CPUs.
    changed: Vec<(Option<i32>, Vec<u32>)>,
    /// What tasks say that they use after their sleeps.
    bursts: Vec<u64>,
    /// Calls of the policy, and how many tasks had been started before.
    calls: Vec<String>,
}

static ORDERS: Mutex<Option<Orders>> = Mutex::new(None);

fn orders<T>(look: impl FnOnce(&mut Orders) -> T) -> T {
    let mut orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner);
    look(orders.as_mut().expect("a program runs"))
}

#[derive(Default)]
struct Wakes {
    lock: Mutex<()>,
    woken: Condvar,
}

impl Signal for Wakes {
    fn wait_until(&self, is_done: impl Fn() -> bool) {
        let mut guard = self.lock.lock().unwrap();
        while !is_done() {
            guard = self.woken.wait(guard).unwrap();
        }
    }

    fn wake(&self) {
        drop(self.lock.lock().unwrap());
        self.woken.notify_all();
    }
}

struct Alone<T>(Mutex<T>);

impl<T: Send + 'static> Guarded<T> for Alone<T> {
    fn new(guarded: T) -> Alone<T> {
        Alone(Mutex::new(guarded))
    }

    fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.0.lock().unwrap())
    }
}

/// A thread, of which it is told when it has ended.
struct Handle {
    ended: Receiver<()>,
    _thread: JoinHandle<()>,
}

impl Kernel for Here {
    type Handle = Handle;
    type Signal = Wakes;
    type Guarded<T: Send + 'static> = Alone<T>;
    type Together = ();

    const COUNTS: bool = true;
    const HAS_NICENESS: bool = true;

    fn boot() -> &'static Boot {
        orders(|orders| orders.boot)
    }

    fn script() -> Vec<u8> {
        orders(|orders| orders.script.into())
    }

    fn say(message: &Message) {
        orders(|orders| orders.said.push(message.clone()));
    }

    fn refuse(why: impl Display) -> ! {
        panic!("refused: {why}")
    }

    fn now() -> u64 {
        static BOOTED: OnceLock<Instant> = OnceLock::new();
        BOOTED.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }

    fn tick() -> u64 {
        1_000_000
    }

    fn yield_now() {
        std::thread::yield_now();
    }

    fn sleep_until(time: u64) {
        sleep(Duration::from_nanos(time.saturating_sub(Here::now())));
    }

    fn sleep_before(time: u64, burst: u64) {
        orders(|orders| orders.bursts.push(burst));
        Here::sleep_until(time);
    }

    fn set_nice(nice: i32) {
        orders(|orders| orders.changed.push((Some(nice), Vec::new())));
    }

    fn set_cpus(cpus: &[u32]) {
        orders(|orders| orders.changed.push((None, cpus.to_vec())));
    }

    fn set_param(name: &str, value: &str) {
        let started = |orders: &mut Orders| orders.started.len();
        let call = format!("{name} {value} after {} tasks", orders(started));
        orders(|orders| orders.calls.push(call));
    }

    fn spawn(task: &Task, body: Box<dyn FnOnce() + Send>) -> Handle {
        orders(|orders| orders.started.push(task.clone()));
        let (tell, ended): (SyncSender<()>, _) = sync_channel(1);
        let body = move || {
            body();
            let _ = tell.send(());
        };
        Handle { ended, _thread: std::thread::spawn(body) }
    }

    fn join(task: &Handle) {
        let _ = task.ended.recv();
    }

    fn usage(_: &Handle) -> Option<Usage> {
        Some(Usage { service: 7, dispatches: None })
    }

    fn together() {}

    fn switches() -> Option<u64> {
        None
    }
}

/// Runs a program to its end; one at a time, as a kernel does.
fn perform(program: &str, arguments: &[(&str, &str)], script: &'static str) -> Orders {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let arguments = arguments.iter().map(owned).collect();
    let boot = Boot { program: program.into(), arguments, ..Boot::default() };
    let boot: &'static Boot = Box::leak(Box::new(boot));
    let fresh = Orders {
        boot,
        script,
        said: Vec::new(),
        started: Vec::new(),
        changed: Vec::new(),
        bursts: Vec::new(),
        calls: Vec::new(),
    };
    *ORDERS.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh);
    assert!(run::<Here>(program), "there is a program {program}");
    ORDERS.lock().unwrap().take().unwrap()
}

fn outcomes(orders: &Orders) -> Vec<&Outcome> {
    fn task(message: &Message) -> Option<&Outcome> {
        match message {
            Message::Task(task) => Some(task),
            _ => None,
        }
    }
    orders.said.iter().filter_map(task).collect()
}

#[test]
fn a_task_says_what_it_does_after_a_sleep() {
    let script = "anysched-script 1\n0 a c1 r2 c10 y c7 s1000 e c5 s1000 u1\n";
    let orders = perform("batch", &[], script);
    assert_eq!(orders.started[0].work, Some(18));
    assert_eq!(orders.bursts, [17, 5, 0]);
}

#[test]
fn a_batch_does_what_the_script_says() {
    let script = "anysched-script 1\n0 a r3 c1000 y e s2000000\n0 b c500\n5000000 c u9000000 c1\n";
    let orders = perform("batch", &[], script);
    let work: Vec<_> = orders.started.iter().map(|task| task.work).collect();
    // The last blocks at once.
    assert_eq!(work, [Some(3000), Some(500), Some(0)]);
    let outcomes = outcomes(&orders);
    let names: Vec<_> = outcomes.iter().map(|task| (task.name.as_str(), task.groups)).collect();
    assert_eq!(names, [("a", 3), ("b", 1), ("c", 1)]);
    let [a, b, c] = outcomes[..] else { panic!("three tasks") };
    assert!(a.arrival == b.arrival && c.arrival >= a.arrival + 5_000_000, "{outcomes:?}");
    assert!(a.slept == 2_000_000 && a.finish >= a.first + 2_000_000, "{a:?}");
    assert!(c.slept <= 4_000_000 && c.finish >= a.arrival + 9_000_000, "{c:?}");
    assert_eq!((a.service, a.dispatches), (Some(7), None));
}

#[test]
fn tasks_are_created_as_their_first_steps_say_and_change_later() {
    let script = "anysched-script 1\n0 a i3 a0,2 c1 i-2 a1 a\n0 b c1 i4\n";
    let orders = perform("batch", &[], script);
    let created: Vec<_> =
        orders.started.iter().map(|task| (task.nice, task.cpus.clone())).collect();
    assert_eq!(created, [(3, vec![0, 2]), (0, vec![])]);
    let of_b = (Some(4), vec![]);
    let of_a: Vec<_> = orders.changed.iter().filter(|change| **change != of_b).cloned().collect();
    assert_eq!(of_a, [(Some(-2), vec![]), (None, vec![1]), (None, vec![])]);
    assert_eq!(orders.changed.len(), 4);
}

/// The order in which tasks finish, which is that in which they were let go.
fn finished(script: &'static str) -> Vec<(String, u64)> {
    let orders = perform("batch", &[], script);
    let mut outcomes = outcomes(&orders);
    outcomes.sort_by_key(|task| task.finish);
    outcomes.iter().map(|task| (task.name.clone(), task.slept)).collect()
}

#[test]
fn signals_are_stored_or_lost_and_wake_in_order() {
    // `a` takes the stored signal, `b` and `c` wait in this order; what is notified before that is
    // lost.
    let script = "anysched-script 1\n0 z n0 p0\n100000000 a w0\n200000000 b w0 s20000000\n\
                  300000000 c w0 s20000000\n400000000 d p0 s200000000 n0\n";
    let finished = finished(script);
    let names: Vec<&str> = finished.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["z", "a", "b", "d", "c"]);
    assert_eq!((finished[0].1, finished[1].1), (0, 0));
    // Blocked for 200 or 300 ms, up to the signal, and 20 ms asleep. How much longer, and when each
    // begins, is this computer's business; steps of 100 ms bear much of that.
    let [b, c] = [&finished[2], &finished[4]].map(|(_, slept)| *slept / 1_000_000);
    assert!(b >= 150 && c >= 250, "{b} ms, {c} ms");
}

#[test]
fn broadcasts_wake_all_that_wait() {
    let script = "anysched-script 1\n0 a w7 s1\n0 b w7 s1\n200000000 c b7 p7\n200000000 d w7\n";
    let finished = finished(script);
    assert_eq!(finished.len(), 4);
    let waited = finished.iter().filter(|(_, slept)| *slept > 100_000_000).count();
    assert_eq!(waited, 2, "{finished:?}");
}

#[test]
fn locks_are_handed_over_and_given_by_their_holders_only() {
    // `b` does not hold the lock that it gives; `c` spins meanwhile and is before `d`, which sleeps
    // because it may otherwise end before `c`, whose CPU it gets.
    let script = "anysched-script 1\n0 a l0 s800000000 o0\n200000000 b o0\n\
                  400000000 c x0 s10000000 o0\n600000000 d l0 s200000000 o0\n";
    let finished = finished(script);
    let names: Vec<&str> = finished.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names == ["b", "a", "c", "d"], "{finished:?}");
    assert_eq!(finished[2].1, 10_000_000, "spinning is not being blocked");
    assert!(finished[3].1 > 300_000_000, "{finished:?}");
}

#[test]
fn tasks_meet_round_by_round() {
    let script = "anysched-script 1\n0 a r50 m0:3 e\n0 b r50 m0:3 e\n0 c r50 s200000 m0:3 e\n";
    let finished = finished(script);
    for (name, slept) in finished {
        assert!(slept >= if name == "c" { 10_000_000 } else { 5_000_000 }, "{name}: {slept} ns");
    }
}

#[test]
fn cases_follow_their_arguments() {
    let arguments =
        [("groups", "2,3"), ("iterations", "10"), ("nice", "0,-5"), ("cpus", "1"), ("scale", "1")];
    let orders = perform("equal", &arguments, "");
    let asked: Vec<_> = orders.started.iter().map(|task| (task.nice, task.cpus.clone())).collect();
    assert_eq!(asked, [(0, vec![1]), (-5, vec![1])]);
    let outcomes = outcomes(&orders);
    let done: Vec<_> = outcomes.iter().map(|task| (task.name.as_str(), task.groups)).collect();
    assert_eq!(done, [("equal-0", 2), ("equal-1", 3)]);
}

/// Runs at 1 and 6 ms, a call before each and one behind.
#[test]
fn cases_run_again_and_call_the_policy_between() {
    let calls = "0 mode profile\n5000000 profile 0=1ms/1, 1=2ms/1\n6000000 mode plan\n\
                 6000001 mode off";
    let arguments = [("groups", "1,2"), ("iterations", "10"), ("at", "1000000"), ("runs", "2")];
    let arguments = [&arguments[..], &[("every", "5000000"), ("calls", calls)]].concat();
    let orders = perform("equal", &arguments, "");
    assert_eq!(
        orders.calls,
        [
            "mode profile after 0 tasks",
            "profile 0=1ms/1, 1=2ms/1 after 2 tasks",
            "mode plan after 2 tasks",
            "mode off after 4 tasks",
        ]
    );
    let outcomes = outcomes(&orders);
    let names: Vec<&str> = outcomes.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["equal-0", "equal-1", "equal-0", "equal-1"]);
    assert!(outcomes[2].arrival >= outcomes[0].arrival + 4_000_000, "{outcomes:?}");
}

#[test]
#[should_panic = "refused: `calls`: \"1 mode\": nanoseconds, a parameter and its value are wanted"]
fn calls_without_a_value_are_refused() {
    perform("equal", &[("calls", "0 mode off\n1 mode")], "");
}

#[test]
#[should_panic = "refused: several `runs` need `every`, and no `duration`"]
fn runs_without_an_interval_are_refused() {
    perform("equal", &[("runs", "2")], "");
}

#[test]
fn a_case_that_lasts_is_counted_when_it_is_over() {
    let arguments = [("groups", "1000000000"), ("iterations", "1000"), ("duration", "20000000")];
    let orders = perform("unequal", &arguments, "");
    let outcomes = outcomes(&orders);
    assert_eq!(outcomes.len(), 4);
    for task in outcomes {
        assert!(task.groups > 0 && task.groups < 1_000_000_000, "{task:?}");
    }
}

#[test]
fn calibration_measures_what_its_host_reads() {
    let arguments = [("yields", "640"), ("wakeups", "20")];
    let orders = perform("calibrate", &arguments, "");
    let name = |message: &Message| match message {
        Message::Value { name, .. } => Some(name.clone()),
        _ => None,
    };
    let names: Vec<_> = orders.said.iter().filter_map(name).collect();
    assert_eq!(
        names,
        [
            "divide_ps",
            "shift_ps",
            "interrupt_ps",
            "start_ps",
            "end_ps",
            "wakeup_ps",
            "yield_ps_1",
            "yield_ps_4",
            "yield_ps_64",
            "idle_ps",
            "wake_ps",
            "preempt_ps",
        ]
    );
}

#[test]
fn interbench_measures_x_beside_its_burners() {
    let arguments =
        [("burners", "2"), ("load_nice", "5"), ("pause_ns", "0"), ("duration_ns", "450000000")];
    let orders = perform("interbench", &arguments, "");
    let started: Vec<_> =
        orders.started.iter().map(|task| (task.name.as_str(), task.nice)).collect();
    assert_eq!(started, [("burn-0", 5), ("burn-1", 5), ("x", 0)]);
    let value = |wanted: &str| {
        let value = |message: &Message| match message {
            Message::Value { name, number } if name == wanted => Some(*number),
            _ => None,
        };
        orders.said.iter().find_map(value).unwrap_or_else(|| panic!("{wanted} is missing"))
    };
    // A frame begins every 100 ms, or some are missed.
    assert!((1..=6).contains(&value("latency_count")), "{:?}", orders.said);
    assert!(value("wakeup_count") <= value("latency_count"));
    assert!(value("wakeup_p50_ns") <= value("wakeup_max_ns"));
    assert!(value("latency_sd_ns") <= value("latency_tool_sd_ns"), "{:?}", orders.said);
    let samples = |wanted: &str| {
        let is_wanted =
            |message: &&Message| matches!(message, Message::Sample { name, .. } if name == wanted);
        orders.said.iter().filter(is_wanted).count() as u64
    };
    assert_eq!(samples("latency_ns"), value("latency_count"));
    assert_eq!(samples("wakeup_ns"), value("wakeup_count"));
    assert!(value("work_done") + value("work_missed") > 0, "{:?}", orders.said);
    for share in ["desired_cpu_millionths", "deadlines_met_millionths"] {
        assert!(value(share) <= 1_000_000, "{share}");
    }
}

#[test]
#[should_panic = "refused: `groups` = \"2,x\": whole numbers with commas are wanted"]
fn arguments_that_are_no_numbers_are_refused() {
    perform("equal", &[("groups", "2,x")], "");
}

#[test]
fn no_program_has_another_name() {
    perform("equal", &[("groups", "1"), ("iterations", "1")], "");
    assert!(!run::<Here>("equals"));
}
