//! The rules once more, with one list of tasks that is searched from end to end, and a random host
//! that compares every pick.

use super::*;
use alloc::string::String;
use proptest::prelude::*;
use proptest::sample::select;

const TASKS: usize = 12;

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
    /// Not dealt yet if there is none.
    part: Option<usize>,
    need: u64,
    used: u64,
    slice: Option<u64>,
    number: usize,
    since: u64,
    /// How many tasks had been queued before it was.
    before: usize,
    /// By CPU.
    allowed: Vec<bool>,
}

/// Parameters as the model reads them.
#[derive(Clone, Debug)]
struct Rules {
    layout: &'static str,
    cpus: usize,
    slices: [Option<u64>; 3],
    sorted: [bool; 3],
    thirds: bool,
    batch: bool,
    spill: bool,
    aging: Option<u64>,
}

impl Rules {
    fn settings(&self) -> Vec<(&'static str, String)> {
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

#[derive(Clone, Debug)]
struct Model {
    rules: Rules,
    tasks: Vec<Guest>,
    online: Vec<bool>,
    now: u64,
    entered: u64,
    turn: usize,
    next_part: usize,
    queued: usize,
}

impl Model {
    fn new(rules: Rules) -> Model {
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
            allowed: alloc::vec![true; rules.cpus],
        };
        let online = alloc::vec![true; rules.cpus];
        let tasks = alloc::vec![task; TASKS];
        Model { rules, tasks, online, now: 0, entered: 0, turn: 0, next_part: 0, queued: 0 }
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

    /// The task waits now, behind what has been queued before if it is `last`.
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

    /// A task enters that is not put back.
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

    fn next_timer(&self) -> Option<u64> {
        let aging = self.rules.aging?;
        let low = self.tasks.iter().filter(|task| task.state == State::Ready && task.level > 0);
        low.map(|task| task.since + aging).min()
    }

    /// The task that `cpu` has to pick.
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

    fn pick(&mut self, cpu: usize) -> Option<(u32, Span)> {
        self.deal();
        let task = self.choose(cpu)?;
        let guest = &mut self.tasks[task];
        guest.state = State::Running(cpu);
        if guest.level == 0 {
            self.turn = (guest.part.unwrap() + 1) % 3;
        }
        Some((task as u32, guest.slice.map_or(Span::MAX, Span)))
    }
}

/// The rule and the model side by side.
struct Both {
    drive: Drive<MRsf>,
    model: Model,
    /// CPUs that run nothing and will pick.
    picking: Vec<bool>,
}

impl Both {
    fn new(rules: Rules) -> Both {
        let settings = rules.settings();
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let drive = Drive::new(&rules.cpus.to_string(), &settings);
        Both { drive, picking: alloc::vec![false; rules.cpus], model: Model::new(rules) }
    }

    /// What runs on `cpu`.
    fn running(&self, cpu: usize) -> Option<usize> {
        self.model.of(State::Running(cpu)).first().copied()
    }

    fn pick(&mut self, cpu: usize) {
        self.picking[cpu] = false;
        if self.running(cpu).is_none() && self.model.online[cpu] {
            let picked = self.drive.pick(cpu as u16);
            assert_eq!(picked, self.model.pick(cpu), "CPU {cpu} of {:#?}", self.model);
        }
    }

    fn put(&mut self, cpu: usize, share: u64, why: Off) {
        let Some(task) = self.running(cpu) else { return };
        let guest = &self.model.tasks[task];
        let slice = guest.slice.unwrap_or(9);
        let ran = match why {
            Off::NotRun => 0,
            Off::Expired => slice,
            _ => share % (slice + 1),
        };
        self.advance(ran);
        self.drive.put(cpu as u16, task as u32, Span(ran), why);
        self.model.put(task, ran, why);
        self.picking[cpu] = true;
    }

    fn advance(&mut self, by: u64) {
        let until = self.model.now + by;
        loop {
            let due = self.drive.smp.next_timer().map(|due| due.0);
            assert_eq!(due, self.model.next_timer());
            let now = due.filter(|&due| due <= until).unwrap_or(until);
            self.model.now = now;
            self.drive.now = Time(now);
            if due != Some(now) {
                return;
            }
            self.drive.call(|smp, cx| smp.timer(cx));
            self.model.age();
        }
    }

    fn enter(&mut self, task: usize, burst: u64, allowed: u64) {
        match self.model.tasks[task].state {
            State::Gone => {
                let slice = self.model.rules.slices[0];
                self.model.tasks[task] =
                    Guest { level: 0, part: None, slice, ..self.model.tasks[task].clone() };
                self.drive.create_with(task as u32, Some(Span(burst)), &on(&[0]));
                self.model.tasks[task].allowed.fill(false);
                self.model.tasks[task].allowed[0] = true;
                self.model.enter(task, Some(burst));
                self.allow(task, allowed);
            }
            State::Blocked => {
                self.drive.wake(task as u32, Some(Span(burst)));
                self.model.enter(task, Some(burst));
            }
            _ => {}
        }
    }

    /// CPU 0 is allowed always, and in use always.
    fn allow(&mut self, task: usize, bits: u64) {
        if self.model.tasks[task].state == State::Gone {
            return;
        }
        let bits = bits | 1;
        for (cpu, allowed) in self.model.tasks[task].allowed.iter_mut().enumerate() {
            *allowed = bits >> cpu & 1 != 0;
        }
        let all = self.model.tasks[task].allowed.iter().all(|&allowed| allowed);
        let affinity = if all { CpuSet::All } else { CpuSet::Few(bits) };
        let params = TaskParams { affinity, ..TaskParams::default() };
        self.drive.call(|smp, cx| smp.update(cx, TaskId(task as u32), &params));
    }

    fn plug(&mut self, cpu: usize) {
        if cpu == 0 {
            return;
        }
        let online = !self.model.online[cpu];
        self.model.online[cpu] = online;
        self.drive.call(|smp, cx| smp.set_online(cx, CpuId(cpu as u16), online));
        self.put(cpu, 1, Off::Preempted);
        self.picking[cpu] = online;
    }

    fn take_out(&mut self, task: usize, resume: bool) {
        if self.model.tasks[task].state != State::Ready {
            return;
        }
        if resume {
            self.drive.take_out_and_resume(task as u32);
            self.model.tasks[task].state = State::Blocked;
            self.model.enter(task, None);
        } else {
            self.drive.call(|smp, cx| smp.dequeue(cx, TaskId(task as u32)));
            self.model.tasks[task].state = State::Blocked;
        }
    }

    /// All CPUs that will pick do so; then none is idle for which there is something.
    fn settle(&mut self) {
        loop {
            for cpu in self.drive.kicked() {
                let cpu = usize::from(cpu);
                if self.running(cpu).is_some() {
                    self.put(cpu, 0, Off::Preempted);
                }
                self.picking[cpu] = true;
            }
            let Some(cpu) = self.picking.iter().position(|&picks| picks) else { break };
            self.pick(cpu);
        }
        let mut model = self.model.clone();
        model.deal();
        for cpu in (0..self.picking.len()).filter(|&cpu| self.model.online[cpu]) {
            let idle = self.running(cpu).is_none() && model.choose(cpu).is_some();
            assert!(!idle, "CPU {cpu} idles in {:#?}", self.model);
        }
    }

    fn step(&mut self, (what, which, number): (u8, usize, u64)) {
        let (task, cpu) = (which % TASKS, which % self.picking.len());
        match what {
            0..6 => self.enter(task, number % 16, u64::MAX),
            6 => self.enter(task, number % 16, number),
            7..10 => self.advance(number % 5),
            10..15 => self.pick(cpu),
            15..18 => self.put(cpu, 0, Off::Expired),
            18..20 => self.put(cpu, number, Off::Blocked),
            20 => self.put(cpu, number, Off::Yielded),
            21 => self.put(cpu, number, Off::Preempted),
            22 => self.put(cpu, 0, Off::NotRun),
            23 => self.take_out(task, number % 2 == 0),
            24 => self.allow(task, number),
            25 => self.plug(cpu),
            26 if self.model.tasks[task].state == State::Blocked => {
                self.drive.call(|smp, cx| smp.detach(cx, TaskId(task as u32)));
                self.model.tasks[task].state = State::Gone;
            }
            _ => self.settle(),
        }
        let waiting = self.model.of(State::Ready).len();
        assert_eq!(self.drive.smp.rule().len(0), waiting);
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    let layouts = [("shared", 1), ("shared", 4), ("bound3", 3), ("pipe3", 3), ("pipe5", 5)];
    let slice = || select([Some(3), Some(5), None].as_slice());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let aging = select([None, Some(4), Some(9)].as_slice());
    let all = (select(layouts.to_vec()), slice(), slice(), flags, aging);
    all.prop_map(|((layout, cpus), q1, q2, (sort_q1, sort_q2, thirds, batch, spill), aging)| {
        Rules {
            layout,
            cpus,
            slices: [q1, q2, None],
            sorted: [sort_q1, sort_q2, false],
            thirds,
            batch,
            spill,
            aging,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_policy_picks_what_the_model_picks(
        rules in rules(),
        steps in prop::collection::vec((0..30u8, 0..60usize, 0..64u64), 0..200),
    ) {
        let mut both = Both::new(rules);
        steps.into_iter().for_each(|step| both.step(step));
        both.settle();
    }
}
