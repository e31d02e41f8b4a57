//! Against a model without trees, sums or search, and against what the theory promises.

use super::*;
use proptest::prelude::*;

/// EEVDF word by word: every quantity is recomputed from all tasks whenever it is asked for.
struct Model {
    on: Switches,
    slice: u64,
    tick: u64,
    now: u64,
    arrivals: u64,
    /// Where an empty runqueue continues.
    rest_at: i128,
    tasks: Vec<One>,
    cpus: Vec<Cpu>,
}

#[derive(Clone, Copy, Default)]
struct Cpu {
    running: Option<usize>,
    since: u64,
    /// What it ran last, while that has not run or been taken out since.
    last: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Away,
    Ready,
    Delayed,
    Running,
}

#[derive(Clone, Copy)]
struct One {
    state: State,
    weight: i128,
    slice: u64,
    /// v = start + 1024 · used / weight
    start: i128,
    used: i128,
    deadline: i128,
    lag: i128,
    ahead: i128,
    arrival: u64,
    prepaid: u64,
    protected: bool,
    renewed: bool,
}

impl One {
    fn new(slice: u64) -> One {
        One {
            state: State::Away,
            weight: 1024,
            slice,
            start: 0,
            used: 0,
            deadline: 0,
            lag: 0,
            ahead: 0,
            arrival: 0,
            prepaid: 0,
            protected: false,
            renewed: false,
        }
    }

    fn vruntime(&self) -> i128 {
        self.start + 1024 * self.used / self.weight
    }

    fn request(&self) -> i128 {
        i128::from(self.slice) * 1024 / self.weight
    }

    fn run(&mut self, ran: u64) {
        self.used += i128::from(ran);
        if self.vruntime() >= self.deadline {
            self.deadline = self.vruntime() + self.request();
            self.protected = false;
            self.renewed = true;
        }
    }
}

impl Model {
    fn of(rule: &Eevdf, cpus: usize) -> Model {
        Model {
            on: rule.on,
            slice: rule.slice.0,
            tick: rule.tick.0,
            now: 0,
            arrivals: 0,
            rest_at: 0,
            tasks: Vec::new(),
            cpus: alloc::vec![Cpu::default(); cpus],
        }
    }

    fn members(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(|&task| self.tasks[task].state != State::Away)
    }

    fn queued(&self) -> impl Iterator<Item = usize> + '_ {
        self.members().filter(|&task| self.tasks[task].state != State::Running)
    }

    fn uncharged(&self, cpu: usize) -> u64 {
        let Cpu { running, since, .. } = self.cpus[cpu];
        running.map_or(0, |task| (self.now - since).saturating_sub(self.tasks[task].prepaid))
    }

    /// Σ w·v, with fractions and with the time that has not been charged, and Σ w.
    fn sums(&self) -> (i128, i128) {
        let term = |task: &usize| {
            let one = &self.tasks[*task];
            one.weight * one.start + 1024 * one.used
        };
        let charged: i128 = self.members().map(|task| term(&task)).sum();
        let uncharged: u64 = (0..self.cpus.len()).map(|cpu| self.uncharged(cpu)).sum();
        let weight = self.members().map(|task| self.tasks[task].weight).sum();
        (charged + 1024 * i128::from(uncharged), weight)
    }

    fn mean(&self) -> i128 {
        match self.sums() {
            (_, 0) => self.rest_at,
            (sum, weight) => sum.div_euclid(weight),
        }
    }

    fn eligible(&self, vruntime: i128) -> bool {
        let (sum, weight) = self.sums();
        sum >= vruntime * weight
    }

    fn first(&self) -> Option<usize> {
        let eligible = self.queued().filter(|&task| self.eligible(self.tasks[task].vruntime()));
        eligible.min_by_key(|&task| (self.tasks[task].deadline, self.tasks[task].arrival))
    }

    fn place(&mut self, task: usize, ahead: i128) {
        let (_, there) = self.sums();
        let mean = self.mean();
        let one = &mut self.tasks[task];
        let lag = match self.on.place_lag && there > 0 {
            true => one.lag * (there + one.weight) / there,
            false => 0,
        };
        (one.start, one.used) = (mean - lag, 0);
        one.deadline = one.start + ahead.max(1);
    }

    fn line_up(&mut self, task: usize, state: State) {
        self.tasks[task].state = state;
        self.tasks[task].arrival = self.arrivals;
        self.arrivals += 1;
    }

    fn depart(&mut self, task: usize) {
        let mean = self.mean();
        let one = self.tasks[task];
        let limit = i128::from((2 * one.slice).max(self.tick)) * 1024 / one.weight;
        let mut lag = (mean - one.vruntime()).clamp(-limit, limit);
        if one.state == State::Delayed && self.on.delay_zero {
            lag = lag.min(0);
        }
        self.tasks[task].lag = lag;
        self.tasks[task].ahead = one.deadline - one.vruntime();
        self.tasks[task].state = State::Away;
        if self.members().next().is_none() {
            self.rest_at = one.vruntime();
        }
        self.cpus.iter_mut().filter(|cpu| cpu.last == Some(task)).for_each(|cpu| cpu.last = None);
    }

    /// Returns the CPU that is to be interrupted.
    fn enter(&mut self, task: usize, why: Why) -> Option<usize> {
        let one = self.tasks[task];
        if one.state == State::Delayed {
            self.tasks[task].state = State::Ready;
            if self.on.delay_zero && self.mean() > one.vruntime() {
                self.tasks[task].state = State::Away;
                self.tasks[task].lag = 0;
                self.place(task, one.request());
                self.line_up(task, State::Ready);
            }
        } else {
            let ahead = match why {
                Why::New if self.on.place_deadline_initial => one.request() / 2,
                Why::Resumed => one.ahead,
                _ => one.request(),
            };
            self.place(task, ahead);
            self.line_up(task, State::Ready);
        }
        let busy = self.cpus.iter().all(|cpu| cpu.running.is_some());
        if busy && self.on.wakeup_preemption { self.victim(task) } else { None }
    }

    fn victim(&mut self, wakee: usize) -> Option<usize> {
        let mut victim: Option<(bool, i128, usize)> = None;
        for cpu in 0..self.cpus.len() {
            let current = self.cpus[cpu].running.unwrap();
            let mut runs = self.tasks[current];
            runs.run(self.uncharged(cpu));
            let one = self.tasks[wakee];
            let eligible = self.eligible(runs.vruntime());
            let short = self.on.preempt_short && one.slice < runs.slice;
            if short && self.eligible(one.vruntime()) && (one.deadline < runs.deadline || !eligible)
            {
                runs.protected = false;
                self.tasks[current].protected = false;
            }
            let stays = self.on.run_to_parity && runs.protected || runs.deadline < one.deadline;
            if eligible && stays || self.first() != Some(wakee) {
                continue;
            }
            let better = (!eligible, (runs.deadline - one.deadline).max(0));
            if victim.is_none_or(|(class, behind, _)| better > (class, behind)) {
                victim = Some((better.0, better.1, cpu));
            }
        }
        victim.map(|(_, _, cpu)| cpu)
    }

    fn pick(&mut self, cpu: usize) -> Option<(usize, u64)> {
        loop {
            let last = self.cpus[cpu].last;
            let stays = last.filter(|&task| {
                let one = &self.tasks[task];
                self.on.run_to_parity && one.protected && self.eligible(one.vruntime())
            });
            let least = |task: &usize| {
                let one = &self.tasks[*task];
                (one.vruntime(), one.deadline, one.arrival)
            };
            let next = stays.or_else(|| self.first()).or_else(|| self.queued().min_by_key(least));
            let task = next?;
            if self.tasks[task].state == State::Delayed {
                self.depart(task);
                continue;
            }
            self.cpus
                .iter_mut()
                .filter(|cpu| cpu.last == Some(task))
                .for_each(|cpu| cpu.last = None);
            self.cpus[cpu] = Cpu { running: Some(task), since: self.now, last: None };
            let one = &mut self.tasks[task];
            one.state = State::Running;
            one.protected |= last != Some(task);
            one.renewed = false;
            let mut slice = 0;
            if self.tick == 0 {
                // 1024 · (used + slice) ≥ (deadline − start) · weight
                let goal = (one.deadline - one.start) * one.weight - 1024 * one.used;
                slice = (goal + 1023) / 1024;
            }
            return Some((task, if self.tick == 0 { slice as u64 } else { u64::MAX }));
        }
    }

    fn charge(&mut self, cpu: usize) -> usize {
        let ran = self.uncharged(cpu);
        let task = self.cpus[cpu].running.unwrap();
        let one = &mut self.tasks[task];
        one.prepaid = one.prepaid.saturating_sub(self.now - self.cpus[cpu].since);
        self.cpus[cpu].since = self.now;
        one.run(ran);
        task
    }

    fn put(&mut self, cpu: usize, why: Off) {
        let task = self.charge(cpu);
        self.cpus[cpu].running = None;
        let alone = self.queued().next().is_none();
        let eligible = self.eligible(self.tasks[task].vruntime());
        let one = &mut self.tasks[task];
        match why {
            Off::Blocked if self.on.delay_dequeue && !eligible => {
                return self.line_up(task, State::Delayed);
            }
            Off::Blocked | Off::Exited => return self.depart(task),
            Off::Yielded if !alone && !self.on.yield_forfeits => {
                one.deadline += one.request();
                one.protected = false;
            }
            Off::Yielded if !alone && eligible => {
                (one.start, one.used) = (one.deadline, 0);
                one.deadline += one.request();
                one.protected = false;
            }
            _ => {}
        }
        self.line_up(task, State::Ready);
        self.cpus[cpu].last = (why != Off::NotRun).then_some(task);
    }

    fn tick(&mut self, cpu: usize) -> bool {
        let task = self.charge(cpu);
        if self.tick == 0 {
            return false;
        }
        let renewed = core::mem::take(&mut self.tasks[task].renewed);
        let one = self.tasks[task];
        let idle_talk = self.on.preempt_short && !one.protected && !self.eligible(one.vruntime());
        self.queued().next().is_some() && (renewed || idle_talk)
    }

    fn reweigh(&mut self, task: usize, params: &TaskParams) {
        let (weight, before) = (i128::from(params.weight), self.tasks[task].weight);
        let own = params.budget.filter(|_| self.on.custom_slice);
        let slice = own.map_or(self.slice, |own| own.0.clamp(100_000, 100_000_000));
        self.tasks[task].slice = slice;
        if weight == before {
            return;
        }
        if let Some(cpu) = (0..self.cpus.len()).find(|&cpu| self.cpus[cpu].running == Some(task)) {
            let ran = self.uncharged(cpu);
            self.tasks[task].run(ran);
            self.tasks[task].prepaid += ran;
        }
        let mean = self.mean();
        let one = &mut self.tasks[task];
        let (v, d) = (one.vruntime(), one.deadline);
        one.weight = weight;
        match one.state {
            State::Away => {
                one.lag = one.lag * before / weight;
                one.ahead = one.ahead * before / weight;
            }
            state => {
                (one.start, one.used) = (mean - (mean - v) * before / weight, 0);
                one.deadline = one.start + ((d - v) * before / weight).max(1);
                if state != State::Running {
                    self.line_up(task, state);
                }
            }
        }
    }
}

/// What happens next; which step is meant depends on what the task or the CPU is doing.
#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Put(usize, Off),
    Tick(usize),
    Wake(usize),
    Remove(usize),
    Renice(usize, i8, Option<u64>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let off = prop_oneof![
        2 => Just(Off::Expired),
        2 => Just(Off::Preempted),
        2 => Just(Off::Yielded),
        1 => Just(Off::NotRun),
        5 => Just(Off::Blocked),
        1 => Just(Off::Exited),
    ];
    let own = prop::option::of(50..3_000u64);
    let step = prop_oneof![
        6 => (0..2_000_000u64).prop_map(Step::Pass),
        6 => (0..2usize, off).prop_map(|(cpu, off)| Step::Put(cpu, off)),
        3 => (0..2usize).prop_map(Step::Tick),
        8 => (0..TASKS).prop_map(Step::Wake),
        1 => (0..TASKS).prop_map(Step::Remove),
        2 => (0..TASKS, -20..20i8, own).prop_map(|(task, nice, own)| Step::Renice(task, nice, own)),
    ];
    prop::collection::vec(step, 1..400)
}

const TASKS: usize = 12;

const SWITCHES: [&str; 10] = [
    "place_lag",
    "place_deadline_initial",
    "place_rel_deadline",
    "run_to_parity",
    "wakeup_preemption",
    "preempt_short",
    "delay_dequeue",
    "delay_zero",
    "custom_slice",
    "yield_forfeits",
];

fn params(nice: i8, own: Option<u64>) -> TaskParams {
    TaskParams { budget: own.map(Span::from_us), ..TaskParams::nice(nice) }
}

/// Both sides do the same; every answer is compared.
struct Pair {
    host: Host,
    model: Model,
    new: [bool; TASKS],
    /// Taken out, and to come back as if nothing had been.
    taken: [bool; TASKS],
}

impl Pair {
    fn new(cpus: usize, switches: u16, tick: bool) -> Pair {
        let mut settings =
            alloc::vec![("base_slice", "1ms"), ("tick", if tick { "1ms" } else { "0" })];
        for (bit, name) in SWITCHES.into_iter().enumerate() {
            settings.push((name, if switches >> bit & 1 == 1 { "true" } else { "false" }));
        }
        let mut host = Host::new(cpus, &settings);
        let mut model = Model::of(&host.rule, cpus);
        for task in 0..TASKS {
            host.attach(task as u32, &TaskParams::default());
            model.tasks.push(One::new(model.slice));
        }
        Pair { host, model, new: [true; TASKS], taken: [false; TASKS] }
    }

    fn step(&mut self, step: Step) {
        let cpus = self.host.cpus.len();
        let runs = |host: &Host, cpu: usize| cpu < cpus && host.cpus[cpu].task().is_some();
        match step {
            Step::Pass(ns) => {
                self.host.now += ns;
                self.model.now += ns;
            }
            Step::Put(cpu, why) if runs(&self.host, cpu) => {
                self.host.put_on(cpu, why);
                self.model.put(cpu, why);
            }
            Step::Tick(cpu) if runs(&self.host, cpu) => {
                let picks = self.host.tick_on(cpu);
                assert_eq!(picks, self.model.tick(cpu), "tick on {cpu} at {}", self.model.now);
                if picks {
                    self.repick(cpu);
                }
            }
            Step::Wake(task) => self.wake(task),
            Step::Remove(task) if self.model.tasks[task].state == State::Ready => {
                self.host.remove(task as u32, Removal::Dequeue);
                self.model.depart(task);
                self.taken[task] = task % 2 == 0;
            }
            Step::Renice(task, nice, own) => {
                let params = params(nice, own);
                self.host.update(task as u32, &params);
                self.model.reweigh(task, &params);
            }
            _ => {}
        }
        for cpu in 0..cpus {
            if self.host.cpus[cpu].task().is_none() {
                self.pick(cpu);
            }
        }
    }

    fn pick(&mut self, cpu: usize) {
        let got = self.host.pick_on(cpu);
        let expected = self.model.pick(cpu).map(|(task, slice)| (task as u32, slice));
        assert_eq!(got, expected, "pick on CPU {cpu} at {}", self.model.now);
    }

    fn repick(&mut self, cpu: usize) {
        self.host.put_on(cpu, Off::Preempted);
        self.model.put(cpu, Off::Preempted);
        self.pick(cpu);
    }

    fn wake(&mut self, task: usize) {
        if matches!(self.model.tasks[task].state, State::Ready | State::Running) {
            return;
        }
        let why = if core::mem::take(&mut self.taken[task]) {
            Why::Resumed
        } else if core::mem::take(&mut self.new[task]) {
            Why::New
        } else {
            Why::Woken
        };
        let victim = self.host.enter(task as u32, why);
        let expected = self.model.enter(task, why);
        assert_eq!(victim, expected, "wake-up of {task} at {}", self.model.now);
        if let Some(cpu) = victim {
            self.repick(cpu);
        }
    }

    /// The sums that are kept agree with the tasks.
    fn check(&self) {
        let rule = &self.host.rule;
        let (queue, mean) = (&rule.queues[0], self.host.mean());
        let ready = self.model.queued().filter(|&t| self.model.tasks[t].state == State::Ready);
        assert_eq!(queue.tree.len() - queue.delayed as usize, ready.count());
        let mut load = 0;
        let mut weighted_lag = 0;
        let mut fractions = 0;
        for task in self.model.members() {
            let (one, known) = (&self.model.tasks[task], &rule.tasks[TaskId(task as u32)]);
            assert_eq!(i128::from(known.vruntime().0 as i64), one.vruntime());
            assert_eq!(i128::from(known.deadline.0 as i64), one.deadline);
            load += if one.state == State::Delayed { 0 } else { u64::from(known.weight) };
            let lag = i128::from(mean.value().minus(known.vruntime()));
            weighted_lag += lag * i128::from(known.weight);
            fractions += i128::from(known.service.rest);
        }
        assert_eq!(queue.load, load);
        // Σ w·lag = 0, but for V's fraction (less than 1 for each unit of weight) and the v's.
        let rounding = fractions - weighted_lag;
        assert!((0..i128::from(mean.weight()).max(1)).contains(&rounding), "{rounding}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_answer_is_that_of_a_linear_scan(
        cpus in 1..3usize, switches in 0..1024u16, tick: bool, steps in steps(),
    ) {
        let mut pair = Pair::new(cpus, switches, tick);
        for step in steps {
            pair.step(step);
            pair.check();
        }
    }
}

/// All tasks want the CPU all the time; returns after each pick by how much each has fallen
/// behind the CPU time that a perfect division by weight would have given it, in ns.
fn lags(
    settings: &[(&str, &str)],
    tasks: &[TaskParams],
    picks: usize,
    mut seen: impl FnMut(&[i128]),
) {
    let mut host = Host::new(1, settings);
    let tick = host.rule.tick_period();
    for (task, params) in tasks.iter().enumerate() {
        host.spawn(task as u32, params);
    }
    let total: i128 = tasks.iter().map(|task| i128::from(task.weight)).sum();
    let mut had = alloc::vec![0i128; tasks.len()];
    for _ in 0..picks {
        let start = host.now;
        let (task, slice) = host.pick_on(0).unwrap();
        match tick {
            None => host.run(slice, Off::Expired),
            Some(period) => {
                while !host.tick(period.0) && tasks.len() > 1 {}
                host.run(0, Off::Preempted);
            }
        }
        had[task as usize] += i128::from(host.now - start);
        let due = |task: &TaskParams| i128::from(host.now) * i128::from(task.weight) / total;
        let behind: Vec<i128> = tasks.iter().zip(&had).map(|(task, had)| due(task) - had).collect();
        seen(&behind);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Stoica's theorem: −r < lag < r for requests of r that end exactly. If they end at ticks,
    /// a task may be a tick more ahead, and behind by a tick for each task that is ahead so.
    #[test]
    fn lag_stays_within_a_slice(
        nice in prop::collection::vec((-20..20i8, prop::option::of(100..5_000u64)), 2..20),
        tick: bool,
    ) {
        let tick_ns = if tick { 700_000 } else { 0 };
        let text = if tick { "700us" } else { "0" };
        let settings = [("base_slice", "3ms"), ("tick", text), ("custom_slice", "true")];
        let tasks: Vec<TaskParams> = nice.iter().map(|&(nice, own)| params(nice, own)).collect();
        let own = |task: &TaskParams| task.budget.map_or(3_000_000, |own| own.0);
        let longest = i128::from(tasks.iter().map(own).max().unwrap());
        lags(&settings, &tasks, 2_000, |behind| {
            for (&behind, task) in behind.iter().zip(&tasks) {
                let own = i128::from(own(task));
                let most = longest + tick_ns * tasks.len() as i128 + 2;
                assert!(behind <= most, "{behind} behind, slice {longest}");
                assert!(-behind <= own + tick_ns + 2, "{} ahead, slice {own}", -behind);
            }
        });
    }
}

#[test]
fn shares_follow_weights() {
    for (tick, most) in [("0", 3 * MS), ("1ms", 4 * MS)] {
        let settings = [("base_slice", "3ms"), ("tick", tick)];
        // A minute and more, of which nice 0 gets 1024 / 1359, nice 5 the rest.
        let tasks = [TaskParams::nice(0), TaskParams::nice(5)];
        let mut last = Vec::new();
        lags(&settings, &tasks, 20_000, |behind| last = behind.to_vec());
        assert!(last.iter().all(|behind| behind.unsigned_abs() <= u128::from(most)), "{last:?}");
    }
}

/// Two CPUs share a runqueue; no weight is worth more than one CPU.
#[test]
fn shares_follow_weights_on_two_cpus() {
    let mut host = Host::new(2, &[("base_slice", "1ms"), ("tick", "0")]);
    let nice = [0, 0, 0, 5, 5, -3];
    for (task, nice) in nice.into_iter().enumerate() {
        host.spawn(task as u32, &TaskParams::nice(nice));
    }
    let mut had = [0; 6];
    let mut ends = [0; 2];
    for _ in 0..20_000 {
        let cpu = usize::from(ends[1] < ends[0]);
        host.now = ends[cpu];
        if let Some(task) = host.cpus[cpu].task() {
            had[task.index()] += host.now - host.cpus[cpu].since().0;
            host.put_on(cpu, Off::Expired);
        }
        ends[cpu] = host.now + host.pick_on(cpu).unwrap().1;
    }
    let total: u64 = had.iter().sum();
    let weights = nice.map(|nice| u64::from(anysched_core::params::weight_of_nice(nice)));
    for (task, weight) in weights.into_iter().enumerate() {
        let share = had[task] * 10_000 / total;
        let due = weight * 10_000 / weights.iter().sum::<u64>();
        assert!(share.abs_diff(due) <= 5, "task {task}: {share} of {due} per 10000, {had:?}");
    }
}
