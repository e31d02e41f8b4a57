//! The data plane allocates nothing: no policy, in no layout, once its tasks are attached.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use anysched_core::checked::Rules;
use anysched_core::recorder::LogSink;
use anysched_core::registry::PolicyInfo;
use anysched_core::{
    Arrival, Checked, CpuId, Cx, DomainId, DomainParams, Machine, Off, ParamError, Pick, Recorder,
    Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_oracle::random::{Host, Load};
use anysched_oracle::rehearsal::{rehearsed, text};
use anysched_policies::POLICIES;

thread_local! {
    /// How often this thread has asked the allocator for memory. `const` and without a destructor,
    /// so that reading it allocates nothing itself.
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every request is passed on to the system's allocator as it is, which keeps the
// contract of `GlobalAlloc`; counting touches neither the memory nor the layout.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTS.with(|requests| requests.set(requests.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `System` with this layout, as all memory does.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        REQUESTS.with(|requests| requests.set(requests.get() + 1));
        // SAFETY: as for `dealloc`; the caller vouches for `size`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `call` asks for memory.
fn requests<R>(call: impl FnOnce() -> R) -> (R, u64) {
    let before = REQUESTS.with(Cell::get);
    let result = call();
    (result, REQUESTS.with(Cell::get) - before)
}

/// Counts what the calls of the data plane allocate.
struct Watched<S> {
    policy: S,
    calls: Cell<u64>,
    found: Cell<u64>,
    /// The first call that allocated.
    first: Cell<Option<&'static str>>,
}

impl<S: Scheduler> Watched<S> {
    fn new(policy: S) -> Watched<S> {
        Watched { policy, calls: Cell::default(), found: Cell::default(), first: Cell::default() }
    }

    fn watch<R>(&mut self, name: &'static str, call: impl FnOnce(&mut S) -> R) -> R {
        let (result, found) = requests(|| call(&mut self.policy));
        self.note(name, found);
        result
    }

    fn note(&self, name: &'static str, found: u64) {
        self.calls.set(self.calls.get() + 1);
        self.found.set(self.found.get() + found);
        if found > 0 && self.first.get().is_none() {
            self.first.set(Some(name));
        }
    }
}

impl<S: Scheduler> Scheduler for Watched<S> {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.policy.attach(cx, task, params);
    }
    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.policy.detach(cx, task);
    }
    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.policy.update(cx, task, params);
    }
    fn set_domain(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        self.policy.set_domain(cx, domain, params);
    }
    fn check_param(&self, name: &str, text: &str) -> Result<(), ParamError> {
        self.policy.check_param(name, text)
    }
    fn set_param(&mut self, cx: &mut Cx<'_>, name: &str, text: &str) {
        self.policy.set_param(cx, name, text);
    }
    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.policy.set_online(cx, cpu, online);
    }
    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.watch("enqueue", |policy| policy.enqueue(cx, task, arrival));
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.watch("dequeue", |policy| policy.dequeue(cx, task));
    }
    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        self.watch("pick_next", |policy| policy.pick_next(cx, cpu))
    }
    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        self.watch("put_prev", |policy| policy.put_prev(cx, cpu, task, ran, why));
    }
    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        self.watch("tick", |policy| policy.tick(cx, cpu, task, ran));
    }
    fn tick_period(&self) -> Option<Span> {
        self.policy.tick_period()
    }
    fn next_timer(&self) -> Option<Time> {
        let (due, found) = requests(|| self.policy.next_timer());
        self.note("next_timer", found);
        due
    }
    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.watch("timer", |policy| policy.timer(cx));
    }
}

const LOAD: Load = Load {
    tasks: 64,
    burst: Span::from_us(300),
    pause: Span::from_us(5_000),
    pinned: true,
    hotplug: true,
};

/// Plays a policy; returns what is wrong, if anything is.
fn play<S: Scheduler>(policy: S, machine: &Machine) -> Option<String> {
    let mut host = Host::new(Watched::new(policy), machine, LOAD, 7);
    while host.picks < 3_000 {
        host.step();
    }
    host.drain();
    let Watched { calls, found, first, .. } = host.policy;
    let (calls, found) = (calls.get(), found.get());
    assert!(calls > 10_000, "{calls} calls are too few to show anything");
    let first = first.get()?;
    Some(format!("{found} allocations in {calls} calls, the first in {first}"))
}

/// Each layout that `machine` has the CPUs for, without and with balancing in the background.
fn layouts(policy: &PolicyInfo, machine: &Machine) -> Vec<Vec<(&'static str, &'static str)>> {
    let params = (policy.params)();
    let places = params.iter().any(|param| param.name == "place");
    let mut all = vec![vec![]];
    if let Some(layout) = params.iter().find(|param| param.name == "layout") {
        for layout in layout.kind.split(" | ") {
            all.push(vec![("layout", layout)]);
            if places {
                all.push(vec![("layout", layout), ("place", "linux"), ("balance", "linux")]);
            }
        }
    }
    all.retain(|settings| (policy.build)(machine, settings).is_ok());
    all
}

#[test]
fn the_data_plane_of_no_policy_allocates() {
    let mut found = Vec::new();
    for machine in ["2 nodes x 2 cores", "1 cpu", "3 cpus", "5 cpus"] {
        let machine = Machine::parse(machine).unwrap();
        for policy in POLICIES {
            for settings in layouts(policy, &machine) {
                let settings = rehearsed(policy, &settings, &machine, LOAD, 7);
                let built = (policy.build)(&machine, &text(&settings)).unwrap();
                if let Some(wrong) = play(built, &machine) {
                    found.push(format!("{} {settings:?}: {wrong}", policy.name));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Takes a log as a kernel's buffer would.
struct Discard;

impl LogSink for Discard {
    fn write(&mut self, bytes: &[u8]) {
        std::hint::black_box(bytes);
    }
}

#[test]
fn recording_and_checking_allocate_nothing_either() {
    let machine = Machine::parse("2 nodes x 2 cores").unwrap();
    let fcfs = || (POLICIES[0].build)(&machine, &[("layout", "per-cpu")]).unwrap();
    let recorder = Recorder::new(fcfs(), &machine, "fcfs", &[], Discard);
    assert_eq!(play(recorder, &machine), None);
    let checked = Checked::new(fcfs(), &machine, Rules::default());
    assert_eq!(play(checked, &machine), None);
}

/// Runs the last task that became ready, and allocates for each.
struct Stack(Vec<Vec<TaskId>>);

impl Scheduler for Stack {
    fn attach(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}
    fn detach(&mut self, _: &mut Cx<'_>, _: TaskId) {}
    fn update(&mut self, _: &mut Cx<'_>, _: TaskId, _: &TaskParams) {}
    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, _: Arrival) {
        self.0.push(vec![task]);
        cx.kick(CpuId(0));
    }
    fn dequeue(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.0.retain(|other| other[0] != task);
    }
    fn pick_next(&mut self, _: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        self.0.pop().map(|tasks| Pick { task: tasks[0], slice: Span::MAX })
    }
    fn put_prev(&mut self, _: &mut Cx<'_>, _: CpuId, task: TaskId, _: Span, why: Off) {
        if why.runnable() {
            self.0.push(vec![task]);
        }
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(requests(|| std::hint::black_box(1 + 1)).1, 0);
    assert_eq!(requests(|| std::hint::black_box(Box::new(1))).1, 1);
    assert_eq!(requests(|| std::hint::black_box(vec![0u8; 100].into_boxed_slice())).1, 1);
    let wrong = play(Stack(Vec::new()), &Machine::flat(1).unwrap()).expect("it allocates");
    assert!(wrong.ends_with("the first in enqueue"), "{wrong}");
}
