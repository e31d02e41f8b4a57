//! M-RSF with one list of tasks that is searched from end to end.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams, Time,
};

/// How many tasks there are.
pub const TASKS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Gone,
    Blocked,
    Ready,
    Running(usize),
}

#[derive(Clone, Debug)]
struct Guest {
    state: State,
    level: usize,
    /// Absent until it is dealt one.
    part: Option<usize>,
    need: u64,
    used: u64,
    slice: Option<u64>,
    number: usize,
    since: u64,
    /// How many tasks had been queued before it.
    before: usize,
    /// By CPU.
    allowed: Vec<bool>,
}

/// Parameters of `m-rsf`: times in ns, `slices` and `sorted` by level.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named as the parameters")]
pub struct Rules {
    pub layout: &'static str,
    pub cpus: usize,
    pub slices: [Option<u64>; 3],
    pub sorted: [bool; 3],
    pub thirds: bool,
    pub batch: bool,
    pub spill: bool,
    pub aging: Option<u64>,
}

impl Rules {
    /// The settings of the policy.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let span = |ns: Option<u64>| ns.map_or("none".into(), |ns| Span(ns).to_string());
        [
            ("layout", self.layout.into()),
            ("q1", span(self.slices[0])),
            ("q2", span(self.slices[1])),
            ("sort_q1", self.sorted[0].to_string()),
            ("sort_q2", self.sorted[1].to_string()),
            ("deal", if self.thirds { "contiguous-thirds" } else { "cyclic" }.into()),
            ("batch", self.batch.to_string()),
            ("spill", self.spill.to_string()),
            ("aging", span(self.aging)),
        ]
        .into()
    }

    fn is_role(&self, cpu: usize, level: usize, part: usize) -> bool {
        match self.layout {
            "bound3" => level > 0 || part == cpu,
            "pipe3" => level == cpu,
            "pipe5" => cpu == if level == 0 { part } else { level + 2 },
            _ => true,
        }
    }
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct MRsf {
    rules: Rules,
    tasks: Vec<Guest>,
    online: Vec<bool>,
    now: u64,
    entered: u64,
    turn: usize,
    next_part: usize,
    queued: usize,
}

impl MRsf {
    /// With no task yet.
    pub fn new(rules: Rules) -> MRsf {
        let task = Guest {
            state: State::Gone,
            level: 0,
            part: None,
            need: 0,
            used: 0,
            slice: None,
            number: 0,
            since: 0,
            before: 0,
            allowed: vec![true; rules.cpus],
        };
        let online = vec![true; rules.cpus];
        let tasks = vec![task; TASKS];
        MRsf { rules, tasks, online, now: 0, entered: 0, turn: 0, next_part: 0, queued: 0 }
    }

    fn left(&self, task: usize) -> u64 {
        self.tasks[task].need.saturating_sub(self.tasks[task].used)
    }

    fn of(&self, state: State) -> Vec<usize> {
        (0..TASKS).filter(|&task| self.tasks[task].state == state).collect()
    }

    fn deal(&mut self) {
        let mut batch = self.of(State::Ready);
        batch.retain(|&task| self.tasks[task].part.is_none());
        if self.rules.sorted[0] {
            batch.sort_by_key(|&task| self.left(task));
        }
        let size = batch.len();
        for (place, task) in batch.into_iter().enumerate() {
            self.tasks[task].part = Some(if self.rules.thirds && size >= 3 {
                (0..3).find(|part| place * 3 < (part + 1) * size).unwrap()
            } else {
                self.next_part += 1;
                (self.next_part - 1) % 3
            });
            self.queue(task, true);
        }
    }

    /// The task waits from now on, behind what was queued before if it is `last`.
    fn queue(&mut self, task: usize, last: bool) {
        self.queued += 1;
        let guest = &mut self.tasks[task];
        guest.state = State::Ready;
        (guest.since, guest.before) = (self.now, self.queued);
        if last {
            guest.number = self.queued;
        }
    }

    fn go_to(&mut self, task: usize, level: usize) {
        self.tasks[task].level = level;
        self.tasks[task].slice = self.rules.slices[level];
        self.queue(task, true);
    }

    /// A task enters that is not being put back.
    fn enter(&mut self, task: usize, burst: Option<u64>) {
        if self.now > self.entered {
            self.deal();
        }
        self.entered = self.now;
        if let Some(burst) = burst {
            (self.tasks[task].need, self.tasks[task].used) = (burst, 0);
        }
        if self.tasks[task].slice == Some(0) {
            self.go_to(task, self.tasks[task].level + 1);
        } else {
            self.queue(task, burst.is_some());
        }
    }

    fn put(&mut self, task: usize, ran: u64, why: Off) {
        let guest = &mut self.tasks[task];
        guest.used += ran;
        guest.slice = guest.slice.map(|left| left - ran);
        if !why.runnable() {
            guest.state = State::Blocked;
            return;
        }
        if self.now > self.entered {
            self.deal();
        }
        self.entered = self.now;
        let Guest { level, part, slice, .. } = self.tasks[task];
        if level < 2 && (why == Off::Expired || slice == Some(0)) {
            self.go_to(task, level + 1);
            if level == 0 && self.rules.spill {
                self.spill(part);
            }
            return;
        }
        if why == Off::NotRun && level == 0 && self.turn == (part.unwrap() + 1) % 3 {
            self.turn = part.unwrap();
        }
        self.queue(task, !matches!(why, Off::NotRun | Off::Preempted));
    }

    fn spill(&mut self, part: Option<usize>) {
        self.deal();
        let mut there = self.of(State::Ready);
        there.retain(|&task| self.tasks[task].level == 0 && self.tasks[task].part == part);
        let sorted = self.rules.sorted[0];
        there.sort_by_key(|&task| {
            (if sorted { self.left(task) } else { 0 }, self.tasks[task].number)
        });
        there.into_iter().for_each(|task| self.go_to(task, 1));
    }

    fn age(&mut self) {
        let Some(aging) = self.rules.aging else { return };
        for level in [1, 2] {
            let mut due = self.of(State::Ready);
            due.retain(|&task| self.tasks[task].level == level);
            due.retain(|&task| self.tasks[task].since + aging <= self.now);
            due.sort_by_key(|&task| self.tasks[task].before);
            due.into_iter().for_each(|task| self.go_to(task, level - 1));
        }
    }

    fn next_aging(&self) -> Option<u64> {
        let aging = self.rules.aging?;
        let low = self.tasks.iter().filter(|task| task.state == State::Ready && task.level > 0);
        low.map(|task| task.since + aging).min()
    }

    /// The task that `cpu` must pick.
    fn choose(&self, cpu: usize) -> Option<usize> {
        let alive = |task: &&Guest| matches!(task.state, State::Ready | State::Running(_));
        let served = |&task: &usize| {
            let Guest { level, part, ref allowed, .. } = self.tasks[task];
            let mut higher = self.tasks.iter().filter(alive).map(|task| task.level);
            let is_open = !self.rules.batch || !higher.any(|higher| higher < level);
            let role = |cpu| self.rules.is_role(cpu, level, part.unwrap());
            let usable = |cpu: usize| self.online[cpu] && allowed[cpu];
            let nobody = !(0..self.rules.cpus).any(|cpu| role(cpu) && usable(cpu));
            is_open && usable(cpu) && (role(cpu) || nobody)
        };
        self.of(State::Ready).into_iter().filter(served).min_by_key(|&task| {
            let Guest { level, part, number, .. } = self.tasks[task];
            let turn = if level == 0 { (part.unwrap() + 3 - self.turn) % 3 } else { 0 };
            let left = if self.rules.sorted[level] { self.left(task) } else { 0 };
            (level, turn, left, number)
        })
    }

    fn pick(&mut self, cpu: usize) -> Option<Pick> {
        self.deal();
        let task = self.choose(cpu)?;
        let guest = &mut self.tasks[task];
        guest.state = State::Running(cpu);
        if guest.level == 0 {
            self.turn = (guest.part.unwrap() + 1) % 3;
        }
        let slice = guest.slice.map_or(Span::MAX, Span);
        Some(Pick { task: TaskId(task as u32), slice })
    }

    fn allow(&mut self, task: usize, affinity: &CpuSet) {
        for (cpu, allowed) in self.tasks[task].allowed.iter_mut().enumerate() {
            *allowed = affinity.contains(CpuId(cpu as u16));
        }
    }

    fn note(&mut self, cx: &mut Cx<'_>) {
        cx.work.queued = self.of(State::Ready).len() as u32;
    }
}

impl Scheduler for MRsf {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let slice = self.rules.slices[0];
        let task = task.index();
        let guest = &mut self.tasks[task];
        (guest.state, guest.level, guest.part, guest.slice) = (State::Blocked, 0, None, slice);
        self.allow(task, &params.affinity);
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.tasks[task.index()].state = State::Gone;
    }

    fn update(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.allow(task.index(), &params.affinity);
    }

    fn set_online(&mut self, _: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.online[cpu.index()] = online;
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.now = cx.now.0;
        let resumes = matches!(arrival.why, Enqueue::Resumed { .. });
        let burst = arrival.burst.map(|burst| burst.0).filter(|_| !resumes);
        self.enter(task.index(), burst);
        self.note(cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.tasks[task.index()].state = State::Blocked;
        self.note(cx);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        self.now = cx.now.0;
        let pick = self.pick(cpu.index());
        self.note(cx);
        pick
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, ran: Span, why: Off) {
        self.now = cx.now.0;
        self.put(task.index(), ran.0, why);
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_aging().map(Time)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.now = cx.now.0;
        self.age();
    }
}

impl Oracle for MRsf {
    const KICKS: bool = false;
    const QUEUED: bool = true;
}
