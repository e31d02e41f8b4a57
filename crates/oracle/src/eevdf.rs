//! Linux's EEVDF on one CPU, with plain lists that are walked: entities, those that wait in order
//! of arrival, the one that runs. Sums and means are computed from all entities whenever they are
//! asked for. The CPU must pick as soon as what ran there has left, and answer kicks at once.

use crate::Oracle;
use anysched_core::{Arrival, CpuId, Cx, Enqueue, Off, Pick, Scheduler, Span, TaskId, TaskParams};

/// Which wake-ups limit the protection of what runs, if they do not preempt it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// None.
    Never,
    /// Those of shorter slices.
    Short,
    /// All but those of new tasks.
    Woken,
    /// All, counted from V if that is less.
    All,
}

/// What differs between kernels. Times are in ns.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the parameters of the policy")]
pub struct Rules {
    pub base_slice: i128,
    pub tick: i128,
    pub hrtick: bool,
    pub lazy: bool,
    pub place_lag: bool,
    pub place_deadline_initial: bool,
    pub place_rel_deadline: bool,
    pub scale_deadline: bool,
    pub longest_slice_limits_lag: bool,
    pub run_to_parity: bool,
    pub shortest_slice_limits: bool,
    pub protect_to_parity: bool,
    pub wakeup_limits: Limits,
    pub protect_at_nice: bool,
    pub running_wins_ties: bool,
    pub wakeup_preemption: bool,
    pub fork_preemption: bool,
    pub preempt_short: bool,
    pub short_ends_protection: bool,
    pub short_runs_next: bool,
    pub delay_dequeue: bool,
    pub delay_zero: bool,
    pub delay_keeps_debt: bool,
    pub custom_slice: bool,
    pub yield_forfeits: bool,
    pub floor_reciprocals: bool,
}

impl Rules {
    /// Those of a kernel, by major and minor version (6.6, 6.12, 6.18, 7.2 or 7.3), on a machine
    /// with this tick.
    pub fn of(version: (u8, u8), tick: u64) -> Rules {
        let since = |major, minor| version >= (major, minor);
        let mut limits = Limits::Never;
        for (first, which) in
            [((6, 18), Limits::Short), ((7, 2), Limits::Woken), ((7, 3), Limits::All)]
        {
            if version >= first {
                limits = which;
            }
        }
        Rules {
            base_slice: if since(6, 12) { 700_000 } else { 750_000 },
            tick: i128::from(tick),
            hrtick: since(7, 2),
            lazy: since(7, 2),
            place_lag: true,
            place_deadline_initial: since(6, 12),
            place_rel_deadline: since(6, 12),
            scale_deadline: since(6, 18),
            longest_slice_limits_lag: since(7, 2),
            run_to_parity: true,
            shortest_slice_limits: since(6, 18),
            protect_to_parity: since(7, 3),
            wakeup_limits: limits,
            protect_at_nice: !since(7, 2),
            running_wins_ties: !since(6, 12),
            wakeup_preemption: true,
            fork_preemption: !since(7, 2),
            preempt_short: since(6, 12),
            short_ends_protection: !since(6, 18),
            short_runs_next: since(7, 3),
            delay_dequeue: since(6, 12),
            delay_zero: since(6, 12),
            delay_keeps_debt: since(7, 2),
            custom_slice: since(6, 12),
            yield_forfeits: since(6, 12),
            floor_reciprocals: since(7, 3),
        }
    }
}

/// A task.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entity {
    weight: i128,
    slice: i128,
    v: i128,
    d: i128,
    /// Where its protection ends, or the deadline that it was picked with.
    protection: i128,
    lag: i128,
    /// Waits, is delayed or runs.
    pub(crate) counts: bool,
    pub(crate) delayed: bool,
}

/// See the [module documentation](self).
pub struct Eevdf {
    on: Rules,
    pub(crate) now: i128,
    pub(crate) all: Vec<Entity>,
    /// Those in the tree, in order of arrival.
    waits: Vec<usize>,
    /// What runs or, between putting and picking, has just run.
    pub(crate) current: Option<usize>,
    exec_start: i128,
    pub(crate) next: Option<usize>,
    /// Where an empty runqueue goes on.
    zero: i128,
    pub(crate) wants_resched: bool,
    /// The wish is one that a second wake-up sees.
    is_certain: bool,
    /// The host must learn of a timer.
    wants_timer: bool,
    timer: Option<i128>,
    /// Something runs; if not, the CPU is idle or about to pick.
    pub(crate) runs: bool,
    was_preempted: bool,
    /// Who was delayed and is not any more.
    pub(crate) dropped: Vec<usize>,
    switches: u64,
    delays: u64,
    preemptions: u64,
    buddies: u64,
}

impl Eevdf {
    /// A CPU with nothing to do.
    pub fn new(on: Rules) -> Eevdf {
        Eevdf {
            on,
            now: 0,
            all: Vec::new(),
            waits: Vec::new(),
            current: None,
            exec_start: 0,
            next: None,
            zero: 0,
            wants_resched: false,
            is_certain: false,
            wants_timer: false,
            timer: None,
            runs: false,
            was_preempted: false,
            dropped: Vec::new(),
            switches: 0,
            delays: 0,
            preemptions: 0,
            buddies: 0,
        }
    }

    /// CPU time in virtual time: multiplied by a reciprocal of 32 bits, of which as many are
    /// dropped as the factor is too long.
    fn virtually(&self, time: i128, weight: i128) -> i128 {
        if weight == 1024 {
            return time;
        }
        let inverse = match self.on.floor_reciprocals {
            true => ((1 << 32) - 1) / weight,
            false => (((2i128 << 32) + weight) / (2 * weight)).min((1 << 32) - 1),
        };
        let (mut factor, mut shift) = (1024 * inverse, 32);
        while factor >= 1 << 32 {
            factor >>= 1;
            shift -= 1;
        }
        (time * factor) >> shift
    }

    /// The least time that is worth `distance`.
    fn really(&self, distance: i128, weight: i128) -> i128 {
        let (mut low, mut high) = (0, 1 << 50);
        while low < high {
            let middle = (low + high) / 2;
            if self.virtually(middle, weight) >= distance {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn request(&self, task: usize) -> i128 {
        let Entity { slice, weight, .. } = self.all[task];
        self.virtually(slice, weight).max(1)
    }

    fn slice_of(&self, params: &TaskParams) -> i128 {
        match params.budget {
            Some(own) if self.on.custom_slice && params.period.is_none() => {
                i128::from(own.0).clamp(100_000, 100_000_000)
            }
            _ => self.on.base_slice,
        }
    }

    fn members(&self) -> impl Iterator<Item = &Entity> {
        self.all.iter().filter(|one| one.counts)
    }

    /// Σ w·v and Σ w, of all but one.
    fn sums(&self, but: Option<usize>) -> (i128, i128) {
        let counted = self.all.iter().enumerate();
        let counted = counted.filter(|(task, one)| one.counts && Some(*task) != but);
        counted
            .fold((0, 0), |(sum, weight), (_, one)| (sum + one.weight * one.v, weight + one.weight))
    }

    /// V, rounded down.
    fn mean(&self) -> i128 {
        match self.sums(None) {
            (_, 0) => self.zero,
            (sum, weight) => sum.div_euclid(weight),
        }
    }

    pub(crate) fn is_eligible(&self, task: usize) -> bool {
        let (sum, weight) = self.sums(None);
        sum >= self.all[task].v * weight
    }

    fn is_protected(&self, task: usize) -> bool {
        let one = &self.all[task];
        if self.on.shortest_slice_limits { one.v < one.protection } else { one.protection == one.d }
    }

    fn end_protection(&mut self, task: usize) {
        if self.is_protected(task) {
            let one = &mut self.all[task];
            one.protection = if self.on.shortest_slice_limits { one.v } else { one.d + 1 };
        }
    }

    fn resched(&mut self, certainly: bool) {
        self.wants_resched = true;
        self.is_certain |= certainly || !self.on.lazy;
    }

    /// Charges what runs; it may have to give way then.
    pub(crate) fn update_curr(&mut self) {
        let Some(task) = self.current.filter(|_| self.runs) else { return };
        let ran = self.now - self.exec_start;
        self.exec_start = self.now;
        if ran == 0 {
            return;
        }
        self.all[task].v += self.virtually(ran, self.all[task].weight);
        let ended = self.all[task].v >= self.all[task].d;
        if ended {
            self.all[task].d = self.all[task].v + self.request(task);
        }
        if self.members().count() == 1 {
            return;
        }
        let lost = !self.is_protected(task);
        let short_won = self.on.preempt_short && lost && !self.is_eligible(task);
        let gives_way = if self.on.shortest_slice_limits { lost } else { short_won };
        if ended || gives_way {
            self.resched(false);
        }
    }

    /// What a task that counts is owed, within limits.
    fn lag(&self, task: usize) -> i128 {
        let one = &self.all[task];
        let time = if self.on.longest_slice_limits_lag {
            self.members().map(|one| one.slice).max().unwrap() + self.on.tick
        } else {
            (2 * one.slice).max(self.on.tick)
        };
        let limit = self.virtually(time, one.weight);
        let mut lag = (self.mean() - one.v).clamp(-limit, limit);
        if one.delayed && self.on.delay_keeps_debt {
            lag = lag.max(one.lag);
            if self.on.delay_zero {
                lag = lag.min(0);
            }
        }
        lag
    }

    /// Gives a task that does not count a place; `ahead` is how far its deadline lies off.
    fn place(&mut self, task: usize, ahead: i128) {
        let (_, weight) = self.sums(None);
        let mut lag = 0;
        if self.on.place_lag && weight > 0 {
            lag = self.all[task].lag * (weight + self.all[task].weight) / weight;
        }
        let v = self.mean() - lag;
        let one = &mut self.all[task];
        (one.v, one.d) = (v, v + ahead);
    }

    /// A task stops counting.
    fn depart(&mut self, task: usize) {
        self.waits.retain(|&other| other != task);
        self.all[task].counts = false;
        if self.members().next().is_none() {
            self.zero = self.all[task].v;
        }
        if self.next == Some(task) {
            self.next = None;
        }
    }

    /// A delayed task leaves for good.
    fn drop_delayed(&mut self, task: usize) {
        let lag = self.lag(task);
        self.all[task].lag = if self.on.delay_zero { lag.min(0) } else { lag };
        self.depart(task);
        self.all[task].delayed = false;
        self.dropped.push(task);
        if self.current == Some(task) {
            self.current = None;
        }
    }

    /// Who is first; what runs is not among those that wait.
    fn first(&self, protect: bool) -> Option<usize> {
        if let Some(next) = self.next.filter(|&next| protect && self.is_eligible(next)) {
            return Some(next);
        }
        let runs = self.current.filter(|&task| self.is_eligible(task));
        let heeds = self.on.run_to_parity || self.on.shortest_slice_limits;
        if let Some(task) = runs.filter(|&task| protect && heeds && self.is_protected(task)) {
            return Some(task);
        }
        let owed = self.waits.iter().copied().filter(|&task| self.is_eligible(task));
        let waits = owed.min_by_key(|&task| self.all[task].d);
        match (runs, waits) {
            (Some(runs), Some(waits)) => {
                let (own, other) = (self.all[runs].d, self.all[waits].d);
                let stays = own < other || own == other && self.on.running_wins_ties;
                Some(if stays { runs } else { waits })
            }
            (runs, waits) => runs.or(waits),
        }
    }

    fn limit_protection(&mut self, current: usize) {
        if !self.on.run_to_parity {
            return;
        }
        let least = self.members().map(|one| one.slice).min().unwrap();
        let one = self.all[current];
        let from =
            if self.on.wakeup_limits == Limits::All { one.v.min(self.mean()) } else { one.v };
        let end = from + self.virtually(least, one.weight);
        self.all[current].protection = one.protection.min(end);
    }

    /// A task has been queued while another runs.
    pub(crate) fn wakeup_preempt(&mut self, task: usize, forked: bool) {
        let newest = self.on.short_runs_next && self.on.preempt_short;
        if !self.runs || self.is_certain && !newest || !self.on.wakeup_preemption {
            return;
        }
        let Some(current) = self.current else { return };
        self.update_curr();
        let short = self.on.preempt_short && self.all[task].slice < self.all[current].slice;
        if self.on.short_ends_protection {
            let earlier = self.all[task].d < self.all[current].d;
            if short && self.is_eligible(task) && (earlier || !self.is_eligible(current)) {
                self.end_protection(current);
            }
            if self.first(true) == Some(task) {
                self.preempt();
            }
            return;
        }
        let all = self.on.wakeup_limits == Limits::All;
        let delayed = self.all[task].delayed && self.on.delay_keeps_debt;
        if delayed && (all || !short) || forked && !short && !self.on.fork_preemption {
            if all {
                self.limit_protection(current);
            }
            return;
        }
        let short_next = short && self.on.short_runs_next && !self.all[task].delayed;
        let mut first = self.first(!short);
        while let Some(gone) = first.filter(|&task| self.all[task].delayed)
            && self.on.delay_keeps_debt
        {
            self.drop_delayed(gone);
            first = self.first(!short);
        }
        if first == Some(task) || short_next && self.is_eligible(task) {
            if short || self.on.short_runs_next {
                self.end_protection(current);
            }
            let slice = |task: usize| self.all[task].slice;
            let stays = self.next.is_some_and(|next| slice(next) < slice(task));
            if short_next && !stays {
                self.next = Some(task);
                self.buddies += 1;
            }
            return self.preempt();
        }
        let limits = match self.on.wakeup_limits {
            Limits::Never => false,
            Limits::Short => short,
            Limits::Woken | Limits::All => true,
        };
        if limits {
            self.limit_protection(current);
        }
    }

    fn preempt(&mut self) {
        self.preemptions += 1;
        self.resched(false);
    }

    /// Sets the timer to the end of the request of what runs, if others wait.
    fn start_timer(&mut self) {
        let Some(task) = self.current else { return };
        if self.waits.is_empty() {
            return;
        }
        let one = &self.all[task];
        let due = self.now + self.really(one.d - one.v, one.weight).max(10_000);
        if self.timer.is_none_or(|old| (due - old).abs() > 5_000) {
            self.timer = Some(due);
        }
    }

    /// A task has come; what runs has company.
    fn update_timer(&mut self) {
        if self.on.hrtick && self.runs && self.timer.is_none() {
            self.start_timer();
            self.wants_timer |= self.timer.is_some();
        }
    }

    /// `task` begins to run.
    fn protect(&mut self, task: usize) {
        let one = self.all[task];
        let mut end = one.d;
        if self.on.shortest_slice_limits {
            let others = self.waits.iter().filter(|&&other| other != task);
            let least = match self.on.run_to_parity {
                true => others.map(|&other| self.all[other].slice).min(),
                false => Some(self.on.base_slice),
            };
            if let Some(least) = least.filter(|&least| least < one.slice) {
                end = end.min(if self.on.protect_to_parity && self.on.preempt_short {
                    let (sum, weight) = self.sums(Some(task));
                    match weight {
                        0 => one.v + 1,
                        _ => sum.div_euclid(weight) + 1,
                    }
                } else {
                    one.v + self.virtually(least, one.weight)
                });
            }
        }
        self.all[task].protection = end;
    }

    fn kick(&self, cx: &mut Cx<'_>) {
        let idle = !self.runs;
        if idle && !self.waits.is_empty() || !idle && (self.wants_resched || self.wants_timer) {
            cx.kick(CpuId(0));
        }
    }

    fn sees(&mut self, cx: &Cx<'_>) {
        self.now = i128::from(cx.now.0);
    }

    /// The task that yields gives up the rest of its request, or waits for one more.
    fn yields(&mut self, task: usize) {
        if self.members().count() == 1 {
            return;
        }
        if !self.on.yield_forfeits {
            self.all[task].d += self.request(task);
        } else if self.is_eligible(task) {
            self.all[task].v = self.all[task].d;
            self.all[task].d += self.request(task);
        }
    }
}

/// What happens to a runqueue.
impl Eevdf {
    /// A new task.
    pub(crate) fn add(&mut self, task: usize, params: &TaskParams) {
        self.all.resize(self.all.len().max(task + 1), Entity::default());
        let (weight, slice) = (i128::from(params.weight), self.slice_of(params));
        self.all[task] = Entity { weight, slice, ..Entity::default() };
    }

    /// `task` has other parameters.
    pub(crate) fn set_params(&mut self, task: usize, params: &TaskParams) {
        let (weight, slice) = (i128::from(params.weight), self.slice_of(params));
        let old = self.all[task];
        if (weight, slice) == (old.weight, old.slice) {
            return;
        }
        if !old.counts {
            let one = &mut self.all[task];
            one.lag = one.lag * old.weight / weight;
            one.d = one.v + (one.d - one.v) * old.weight / weight;
            (one.weight, one.slice) = (weight, slice);
            return;
        }
        self.update_curr();
        let queued = self.replace(task, weight, slice);
        if !queued && weight < old.weight && !self.waits.is_empty() {
            self.resched(true);
        } else if queued && weight != old.weight {
            self.wakeup_preempt(task, false);
        }
    }

    /// `task`, which counts, leaves and is placed anew. Whether it is one that waits.
    fn replace(&mut self, task: usize, weight: i128, slice: i128) -> bool {
        let old = self.all[task];
        let (lag, mut ahead) = (self.lag(task), self.all[task].d - self.all[task].v);
        let (queued, buddy) = (self.waits.contains(&task), self.next);
        self.depart(task);
        self.next = buddy.filter(|&next| next != task);
        let one = &mut self.all[task];
        (one.weight, one.slice, one.lag) = (weight, slice, lag * old.weight / weight);
        if !self.on.place_rel_deadline {
            ahead = self.request(task);
        } else if self.on.scale_deadline {
            ahead = ahead * old.weight / weight;
        }
        self.place(task, ahead);
        self.all[task].counts = true;
        if queued {
            self.waits.push(task);
        } else if self.on.protect_at_nice {
            self.protect(task);
        }
        self.update_timer();
        queued
    }

    /// `task`, which counts, is taken out for a moment in which nothing else happens.
    pub(crate) fn requeue(&mut self, task: usize) {
        self.update_curr();
        let Entity { weight, slice, .. } = self.all[task];
        self.replace(task, weight, slice);
    }

    /// `task`, which was delayed, has woken up.
    pub(crate) fn revive(&mut self, task: usize) {
        if self.on.delay_keeps_debt {
            self.update_curr();
        }
        let one = self.all[task];
        let mut lag = self.lag(task);
        let moves = if self.on.delay_keeps_debt {
            self.all[task].lag = lag;
            self.mean() - lag != one.v
        } else {
            lag = 0;
            self.on.delay_zero && self.mean() > one.v
        };
        if moves {
            self.all[task].lag = lag;
            let buddy = self.next;
            self.depart(task);
            self.next = buddy;
            self.place(task, self.request(task));
            self.all[task].counts = true;
            self.waits.push(task);
        }
        self.all[task].delayed = false;
    }

    /// `task` comes.
    pub(crate) fn enter(&mut self, task: usize, keeps_request: bool, is_new: bool) {
        self.update_curr();
        let one = self.all[task];
        let ahead = match keeps_request {
            true => one.d - one.v,
            false if is_new && self.on.place_deadline_initial => self.request(task) / 2,
            false => self.request(task),
        };
        self.place(task, ahead);
        self.all[task].counts = true;
        self.waits.push(task);
        self.update_timer();
    }

    /// `task`, which waits, goes away.
    pub(crate) fn take_out(&mut self, task: usize) {
        self.update_curr();
        self.all[task].lag = self.lag(task);
        self.depart(task);
    }

    /// `task`, if it is delayed, is not kept any longer.
    pub(crate) fn end_delay(&mut self, task: usize) {
        if self.all[task].delayed {
            self.update_curr();
            self.drop_delayed(task);
        }
    }

    /// Who runs next.
    pub(crate) fn schedule(&mut self) -> Option<usize> {
        let goes_on = self.wants_timer && !self.wants_resched && self.was_preempted;
        (self.wants_timer, self.wants_resched, self.is_certain) = (false, false, false);
        let last = self.current;
        let task = loop {
            let first = self.current.filter(|_| goes_on).or_else(|| self.first(true));
            let Some(first) = first else {
                self.timer = None;
                return None;
            };
            if !self.all[first].delayed {
                break first;
            }
            self.drop_delayed(first);
        };
        if last != Some(task) {
            if let Some(last) = self.current {
                self.waits.push(last);
            }
            self.waits.retain(|&other| other != task);
            if self.next == Some(task) {
                self.next = None;
            }
            self.current = Some(task);
            self.switches += 1;
            self.protect(task);
            if self.on.hrtick {
                self.start_timer();
            }
        }
        (self.runs, self.exec_start) = (true, self.now);
        Some(task)
    }

    /// How long what runs may go on.
    pub(crate) fn slice_left(&self) -> Span {
        self.timer.map_or(Span::MAX, |due| Span((due - self.now).max(1) as u64))
    }

    /// What runs stops.
    pub(crate) fn stop(&mut self, task: usize, why: Off) {
        let end = self.all[task].d;
        self.update_curr();
        self.runs = false;
        self.was_preempted = why == Off::Preempted;
        match why {
            Off::Expired => {
                self.timer = None;
                // The interrupt makes up for what rounding took.
                let one = self.all[task];
                if one.d == end && one.d - one.v <= self.virtually(1_000, one.weight) {
                    self.all[task].v = one.d;
                    self.all[task].d += self.request(task);
                }
            }
            Off::Yielded => self.yields(task),
            Off::Blocked | Off::Exited => {
                self.all[task].lag = self.lag(task);
                if self.on.delay_dequeue && why == Off::Blocked && !self.is_eligible(task) {
                    self.all[task].delayed = true;
                    self.delays += 1;
                } else {
                    self.depart(task);
                    self.current = None;
                }
            }
            Off::Preempted | Off::NotRun => {}
        }
    }

    /// Whether what runs should be taken off, or may have to be once the CPU is interrupted.
    pub(crate) fn wants_pick(&self, is_interrupted: bool) -> bool {
        let resched = self.wants_resched && (self.is_certain || is_interrupted);
        self.runs && (resched || self.wants_timer)
    }

    /// What is shown of `task`.
    pub(crate) fn show(&self, task: usize, sink: &mut dyn FnMut(&'static str, i64)) {
        let Some(one) = self.all.get(task) else { return };
        if one.counts {
            sink("vruntime_ns", one.v as i64);
            sink("deadline_ns", one.d as i64);
        } else {
            sink("lag_ns", one.lag as i64);
        }
        sink("delayed", i64::from(one.delayed));
    }
}

impl Scheduler for Eevdf {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.add(task.index(), params);
    }

    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.sees(cx);
        let was_delayed = self.all[task.index()].delayed;
        self.end_delay(task.index());
        if was_delayed && self.runs {
            self.kick(cx);
        }
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.sees(cx);
        self.set_params(task.index(), params);
        if self.runs {
            self.kick(cx);
        }
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        self.sees(cx);
        let task = task.index();
        let is_new = arrival.why == Enqueue::New;
        if self.all[task].delayed {
            self.revive(task);
        } else {
            let keeps_request = matches!(arrival.why, Enqueue::Resumed { .. });
            self.enter(task, keeps_request, is_new);
        }
        self.wakeup_preempt(task, is_new);
        self.kick(cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.sees(cx);
        self.take_out(task.index());
        if self.runs {
            self.kick(cx);
        }
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, _: CpuId) -> Option<Pick> {
        self.sees(cx);
        let task = self.schedule()?;
        Some(Pick { task: TaskId(task as u32), slice: self.slice_left() })
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, _: CpuId, task: TaskId, _: Span, why: Off) {
        self.sees(cx);
        self.stop(task.index(), why);
    }

    fn tick(&mut self, cx: &mut Cx<'_>, _: CpuId, _: TaskId, _: Span) {
        self.sees(cx);
        self.update_curr();
        self.kick(cx);
    }

    fn tick_period(&self) -> Option<Span> {
        Some(Span(self.on.tick as u64))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        self.show(task.index(), sink);
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("switches", self.switches);
        sink("delays", self.delays);
        sink("preemptions", self.preemptions);
        sink("buddies", self.buddies);
    }
}

impl Oracle for Eevdf {}
