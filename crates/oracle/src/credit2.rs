//! Credit2 as Xen has it, for CPUs that are always in use: vectors that are searched, and the
//! clock.
//!
//! Domains must be set before the first vCPU is attached.

use crate::Oracle;
use anysched_core::{
    Arrival, CpuId, CpuSet, Cx, DomainId, DomainParams, Off, Pick, Scheduler, Span, TaskId,
    TaskParams, Time,
};

const US: i64 = 1_000;
const MS: i64 = 1_000 * US;

/// Which CPUs there are, and settings of `credit2`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Per CPU, its runqueue, numbered by their first CPUs.
    pub queues: Vec<usize>,
    /// Per CPU, its core.
    pub cores: Vec<usize>,
    /// In ns.
    pub ratelimit: i64,
    /// `smt_power_savings`.
    pub saves: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Asleep,
    Queued,
    Parked,
    /// On a CPU, or taken off until that CPU picks.
    Current,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    No,
    Anywhere,
    To(usize),
}

#[derive(Clone)]
struct Vcpu {
    domain: usize,
    affinity: CpuSet,
    preferred: CpuSet,
    credit: i64,
    residual: i64,
    budget: Option<i64>,
    place: Place,
    queue: usize,
    cpu: usize,
    moves: Move,
    tickled: Option<usize>,
    /// The last pick has paid it for coming from another CPU.
    paid: bool,
    /// When its turn began.
    entered: i64,
    /// Since when it has not been charged.
    since: i64,
    average: i64,
    averaged: i64,
}

#[derive(Clone, Default)]
struct Queue {
    waiting: Vec<usize>,
    members: Vec<usize>,
    average: i64,
    expected: i64,
    averaged: i64,
    active: i64,
    last_choice: usize,
}

#[derive(Clone, Default)]
struct Cpu {
    busy: bool,
    tickled: bool,
    current: Option<usize>,
    /// Why its vCPU has been taken off.
    put: Option<Off>,
}

#[derive(Clone)]
struct Domain {
    weight: i64,
    vcpus: i64,
    cap: Option<Cap>,
    parked: Vec<usize>,
}

#[derive(Clone)]
struct Cap {
    total: i64,
    pool: i64,
    next: i64,
}

/// See the [module documentation](self). Counts resets, moves between runqueues and vCPUs parked.
pub struct Credit2 {
    options: Options,
    vcpus: Vec<Option<Vcpu>>,
    queues: Vec<Queue>,
    cpus: Vec<Cpu>,
    domains: Vec<Domain>,
    kicks: Vec<usize>,
    now: i64,
    resets: u64,
    moves: u64,
    parked: u64,
}

/// An average after `passed` units of time at `load`, in windows of 2^20 units.
fn averaged(average: i64, load: i64, passed: i64) -> i64 {
    let target = load << 18;
    if passed > 1 << 20 {
        return target;
    }
    average + ((passed * target) >> 20) - ((passed * average) >> 20)
}

impl Credit2 {
    /// With these settings and the others at their defaults.
    pub fn new(options: Options) -> Credit2 {
        let count = options.queues.iter().max().map_or(0, |last| last + 1);
        let first = |queue| options.queues.iter().position(|&other| other == queue).unwrap();
        let queue = |queue| Queue { last_choice: first(queue), ..Queue::default() };
        let domain = Domain { weight: 256, vcpus: 0, cap: None, parked: Vec::new() };
        Credit2 {
            vcpus: Vec::new(),
            queues: (0..count).map(queue).collect(),
            cpus: vec![Cpu::default(); options.queues.len()],
            domains: vec![domain; 16],
            kicks: Vec::new(),
            now: 0,
            resets: 0,
            moves: 0,
            parked: 0,
            options,
        }
    }

    fn v(&self, vcpu: usize) -> &Vcpu {
        self.vcpus[vcpu].as_ref().unwrap()
    }

    fn v_mut(&mut self, vcpu: usize) -> &mut Vcpu {
        self.vcpus[vcpu].as_mut().unwrap()
    }

    fn may(&self, vcpu: usize, cpu: usize) -> bool {
        self.v(vcpu).affinity.contains(CpuId(cpu as u16))
    }

    fn likes(&self, vcpu: usize, cpu: usize) -> bool {
        self.v(vcpu).preferred.contains(CpuId(cpu as u16))
    }

    /// The CPUs that it may use and prefers, if that makes a difference.
    fn soft(&self, vcpu: usize) -> Option<Vec<usize>> {
        let all = 0..self.cpus.len();
        let allowed: Vec<usize> = all.clone().filter(|&cpu| self.may(vcpu, cpu)).collect();
        let soft: Vec<usize> =
            allowed.iter().copied().filter(|&cpu| self.likes(vcpu, cpu)).collect();
        let matters = !soft.is_empty() && soft != allowed;
        (matters && all.into_iter().any(|cpu| !self.likes(vcpu, cpu))).then_some(soft)
    }

    fn weight(&self, vcpu: usize) -> i64 {
        self.domains[self.v(vcpu).domain].weight
    }

    fn most_weight(&self, queue: usize) -> i64 {
        self.queues[queue].members.iter().map(|&vcpu| self.weight(vcpu)).max().unwrap_or(1)
    }

    /// The CPUs of `queue`, beginning with this one or the next.
    fn cpus_from(&self, queue: usize, cpu: usize) -> Vec<usize> {
        let count = self.cpus.len();
        let all = (0..count).map(|nth| (cpu + nth) % count);
        all.filter(|&cpu| self.options.queues[cpu] == queue).collect()
    }

    /// Whether `vcpu` is on its CPU and has not been taken off.
    fn runs(&self, vcpu: usize) -> bool {
        let on = &self.cpus[self.v(vcpu).cpu];
        on.current == Some(vcpu) && on.put.is_none()
    }

    fn burn(&mut self, vcpu: usize) {
        let (weight, most) = (self.weight(vcpu), self.most_weight(self.v(vcpu).queue));
        let now = self.now;
        let v = self.v_mut(vcpu);
        let ran = now - v.since;
        v.since = now;
        let used = ran * most + v.residual;
        v.residual = used % weight;
        v.credit = (v.credit - used / weight).max(-10 * MS);
        v.budget = v.budget.map(|budget| budget - ran);
    }

    fn decay_queue(&mut self, queue: usize) {
        let now = self.now >> 10;
        let queue = &mut self.queues[queue];
        let passed = now - queue.averaged;
        queue.average = averaged(queue.average, queue.active, passed);
        queue.expected = averaged(queue.expected, queue.active, passed);
        queue.averaged = now;
    }

    /// `was`: how much load it has been.
    fn decay_vcpu(&mut self, vcpu: usize, was: i64) {
        let now = self.now >> 10;
        let v = self.v_mut(vcpu);
        v.average = averaged(v.average, was, now - v.averaged);
        v.averaged = now;
    }

    fn load_of(&self, vcpu: usize) -> i64 {
        let v = self.v(vcpu);
        i64::from(v.moves == Move::No && matches!(v.place, Place::Queued | Place::Current))
    }

    fn change_active(&mut self, queue: usize, change: i64) {
        self.decay_queue(queue);
        self.queues[queue].active += change;
    }

    fn arrives(&mut self, vcpu: usize) {
        self.change_active(self.v(vcpu).queue, 1);
        self.decay_vcpu(vcpu, 0);
    }

    fn departs(&mut self, vcpu: usize) {
        self.change_active(self.v(vcpu).queue, -1);
        self.decay_vcpu(vcpu, 1);
    }

    fn insert(&mut self, vcpu: usize) {
        self.v_mut(vcpu).place = Place::Queued;
        let (queue, credit) = (self.v(vcpu).queue, self.v(vcpu).credit);
        let waiting = &self.queues[queue].waiting;
        let place = waiting.iter().position(|&other| self.v(other).credit < credit);
        let place = place.unwrap_or(waiting.len());
        self.queues[queue].waiting.insert(place, vcpu);
    }

    fn remove(&mut self, vcpu: usize) {
        let queue = self.v(vcpu).queue;
        self.queues[queue].waiting.retain(|&other| other != vcpu);
    }

    fn wake(&mut self, vcpu: usize) {
        self.arrives(vcpu);
        self.insert(vcpu);
        self.tickle(vcpu);
    }

    fn raise(&mut self, cpu: usize) {
        self.cpus[cpu].tickled = true;
        self.kicks.push(cpu);
    }

    fn is_idle_core(&self, cpu: usize) -> bool {
        (0..self.cpus.len()).all(|other| {
            let same = |of: &[usize]| of[other] == of[cpu];
            let sibling = same(&self.options.cores) && same(&self.options.queues);
            !sibling || !self.cpus[other].busy && !self.cpus[other].tickled
        })
    }

    fn tickle(&mut self, vcpu: usize) {
        let (own, queue) = (self.v(vcpu).cpu, self.v(vcpu).queue);
        let cpus: Vec<usize> =
            self.cpus_from(queue, own).into_iter().filter(|&cpu| self.may(vcpu, cpu)).collect();
        let idle = |cpu: usize| !self.cpus[cpu].busy;
        let by_core = |&&cpu: &&usize| idle(cpu) && self.is_idle_core(cpu) != self.options.saves;
        let any = |&&cpu: &&usize| idle(cpu) && !self.cpus[cpu].tickled;
        if let Some(soft) = self.soft(vcpu) {
            let liked: Vec<usize> = cpus.iter().copied().filter(|cpu| soft.contains(cpu)).collect();
            if let Some(&cpu) = liked.iter().find(by_core).or_else(|| liked.iter().find(any)) {
                return self.tickle_for(vcpu, cpu);
            }
        }
        if let Some(&cpu) = cpus.iter().find(by_core).or_else(|| cpus.iter().find(any)) {
            return self.tickle_for(vcpu, cpu);
        }
        let mut best = (0, None);
        if cpus.contains(&own) {
            let score = self.score(vcpu, own);
            if score > 0 {
                if self.likes(vcpu, own) {
                    return self.tickle_for(vcpu, own);
                }
                best = (score, Some(own));
            }
        }
        for cpu in self.cpus_from(queue, 0) {
            let score = if cpu != own && cpus.contains(&cpu) { self.score(vcpu, cpu) } else { 0 };
            if score > best.0 {
                best = (score, Some(cpu));
            }
        }
        if let Some(cpu) = best.1 {
            self.tickle_for(vcpu, cpu);
        }
    }

    fn tickle_for(&mut self, vcpu: usize, cpu: usize) {
        self.raise(cpu);
        self.v_mut(vcpu).tickled = Some(cpu);
    }

    fn score(&mut self, vcpu: usize, cpu: usize) -> i64 {
        let on = &self.cpus[cpu];
        let Some(current) = on.current.filter(|_| on.busy && !on.tickled) else { return 0 };
        let least = self.options.ratelimit - 50 * US;
        if least > 0 && self.now - self.v(current).entered <= least {
            return 0;
        }
        if self.runs(current) {
            self.burn(current);
        }
        let resist = if self.v(vcpu).cpu == cpu { 0 } else { 500 * US };
        let mut score = self.v(vcpu).credit - self.v(current).credit - resist;
        if score > 0 {
            score += i64::from(self.likes(vcpu, cpu)) * 10 * MS;
            score += i64::from(!self.likes(current, cpu)) * 10 * MS;
        }
        score
    }

    fn next_cpu(&mut self, vcpu: usize, queue: usize) -> Option<usize> {
        let cpus = self.cpus_from(queue, self.queues[queue].last_choice + 1);
        let cpu = cpus.into_iter().find(|&cpu| self.may(vcpu, cpu))?;
        self.queues[queue].last_choice = cpu;
        Some(cpu)
    }

    fn choose_cpu(&mut self, vcpu: usize) -> usize {
        if let Move::To(queue) = std::mem::replace(&mut self.v_mut(vcpu).moves, Move::No)
            && let Some(cpu) = self.next_cpu(vcpu, queue)
        {
            return cpu;
        }
        let least = self.least(vcpu, &|cpu| self.may(vcpu, cpu)).unwrap();
        let Some(soft) = self.soft(vcpu) else { return self.next_cpu(vcpu, least).unwrap() };
        // The last choice that counts is not that of the queue that is chosen.
        let of = self.least(vcpu, &|cpu| soft.contains(&cpu)).unwrap();
        let mut cpus = self.cpus_from(of, self.queues[least].last_choice + 1).into_iter();
        let cpu = cpus.find(|cpu| soft.contains(cpu)).unwrap();
        self.queues[least].last_choice = cpu;
        cpu
    }

    fn least(&self, vcpu: usize, fits: &dyn Fn(usize) -> bool) -> Option<usize> {
        let v = self.v(vcpu);
        let load = |queue: usize| match v.queue == queue {
            true => (self.queues[queue].expected - v.average).max(0),
            false => self.queues[queue].expected,
        };
        let mut least: Option<usize> = None;
        for queue in 0..self.queues.len() {
            let usable = self.cpus_from(queue, 0).into_iter().any(fits);
            if usable && least.is_none_or(|least| load(queue) < load(least)) {
                least = Some(queue);
            }
        }
        least
    }

    fn join(&mut self, vcpu: usize, queue: usize) {
        self.v_mut(vcpu).queue = queue;
        self.queues[queue].members.push(vcpu);
        self.queues[queue].expected += self.v(vcpu).average;
    }

    fn quit(&mut self, vcpu: usize) {
        let average = self.v(vcpu).average;
        let queue = &mut self.queues[self.vcpus[vcpu].as_ref().unwrap().queue];
        queue.members.retain(|&other| other != vcpu);
        queue.expected = (queue.expected - average).max(0);
    }

    fn move_to(&mut self, vcpu: usize, queue: usize) {
        self.moves += 1;
        self.quit(vcpu);
        if let Some(cpu) = self.next_cpu(vcpu, queue) {
            self.v_mut(vcpu).cpu = cpu;
        }
        self.join(vcpu, queue);
    }

    fn relocate(&mut self, vcpu: usize) {
        let cpu = self.choose_cpu(vcpu);
        let queue = self.options.queues[cpu];
        if queue == self.v(vcpu).queue {
            self.v_mut(vcpu).cpu = cpu;
        } else {
            self.move_to(vcpu, queue);
        }
    }

    fn must_move(&self, vcpu: usize) -> bool {
        self.v(vcpu).moves != Move::No || !self.may(vcpu, self.v(vcpu).cpu)
    }

    /// Whether `vcpu` may run; otherwise it is parked.
    fn grab_budget(&mut self, vcpu: usize) -> bool {
        let Some(budget) = self.v(vcpu).budget.filter(|&budget| budget <= 0) else { return true };
        let domain = &mut self.domains[self.vcpus[vcpu].as_ref().unwrap().domain];
        let cap = domain.cap.as_mut().unwrap();
        cap.pool += budget;
        let part = (cap.total / domain.vcpus).max(500 * US).min(cap.pool).max(0);
        cap.pool -= part;
        self.v_mut(vcpu).budget = Some(part);
        if part > 0 {
            return true;
        }
        self.parked += 1;
        if self.v(vcpu).place == Place::Queued {
            self.remove(vcpu);
            self.departs(vcpu);
        }
        self.v_mut(vcpu).place = Place::Parked;
        let domain = self.v(vcpu).domain;
        self.domains[domain].parked.insert(0, vcpu);
        false
    }

    fn unpark(&mut self, domain: usize) {
        for vcpu in std::mem::take(&mut self.domains[domain].parked) {
            self.wake(vcpu);
        }
    }

    fn candidate(&mut self, cpu: usize, own: Option<usize>, yields: bool) -> Option<usize> {
        let credit = own.map_or(-10 * MS - 1, |own| self.v(own).credit);
        for vcpu in self.queues[self.options.queues[cpu]].waiting.clone() {
            let v = self.v(vcpu);
            if !yields && v.credit <= credit {
                break;
            }
            let awaited = v.tickled.is_some_and(|by| {
                let serves = self.options.queues[by] == v.queue && self.may(vcpu, by);
                by != cpu && serves && self.cpus[by].tickled
            });
            let resists = own.is_some() && v.cpu != cpu && v.credit < credit + 500 * US;
            if self.may(vcpu, cpu) && !awaited && !resists && self.grab_budget(vcpu) {
                return Some(vcpu);
            }
        }
        own
    }

    fn choose(&mut self, cpu: usize) -> Option<Pick> {
        self.cpus[cpu].tickled = false;
        let queue = self.options.queues[cpu];
        let old = self.cpus[cpu].current;
        let yields = self.cpus[cpu].put == Some(Off::Yielded);
        if let Some(old) = old {
            self.grab_budget(old);
        }
        let own = old.filter(|&old| self.v(old).place == Place::Current && !self.must_move(old));
        let young = |own: usize| self.now - self.v(own).entered < self.options.ratelimit;
        let next = match own {
            Some(own) if !yields && young(own) => Some(own),
            own => self.candidate(cpu, own.filter(|&own| !self.is_called_away(own, cpu)), yields),
        };
        let Some(next) = next else {
            self.decay_queue(queue);
            (self.cpus[cpu].busy, self.cpus[cpu].current, self.cpus[cpu].put) = (false, None, None);
            if let Some(old) = old {
                self.leave(old, true);
            }
            return None;
        };
        if old == Some(next) {
            self.decay_queue(queue);
            self.decay_vcpu(next, self.load_of(next));
        } else {
            self.remove(next);
            self.v_mut(next).place = Place::Current;
        }
        self.cpus[cpu].busy = true;
        self.reset(queue, next);
        let now = self.now;
        let v = self.v_mut(next);
        (v.since, v.tickled, v.paid) = (now, None, v.cpu != cpu);
        if v.paid {
            v.credit += 50 * US;
            v.cpu = cpu;
        }
        if old != Some(next) {
            v.entered = now;
        }
        (self.cpus[cpu].current, self.cpus[cpu].put) = (Some(next), None);
        let slice = self.slice(next, own.filter(|&own| own != next));
        if let Some(old) = old.filter(|&old| old != next) {
            self.leave(old, true);
        }
        Some(Pick { task: TaskId(next as u32), slice: Span(slice as u64) })
    }

    /// Whether one of the CPUs that `vcpu` likes better than `cpu` has nothing to do.
    fn is_called_away(&self, vcpu: usize, cpu: usize) -> bool {
        let queue = &self.options.queues;
        self.soft(vcpu).is_some_and(|soft| {
            let mut others = soft.iter().filter(|&&other| queue[other] == queue[cpu]);
            let idle = |&other: &usize| !self.cpus[other].busy && !self.cpus[other].tickled;
            !soft.contains(&cpu) && others.any(idle)
        })
    }

    fn slice(&self, vcpu: usize, displaced: Option<usize>) -> i64 {
        let (v, queue) = (self.v(vcpu), self.v(vcpu).queue);
        let first = self.queues[queue].waiting.first().copied();
        let rivals = displaced.into_iter().chain(first).map(|rival| self.v(rival).credit);
        let ahead = (v.credit - rivals.fold(0, i64::max)).max(0);
        let mut time = ahead * self.weight(vcpu) / self.most_weight(queue);
        if let Some(budget) = v.budget {
            time = time.min(budget);
        }
        let least = (v.entered + self.options.ratelimit - self.now).max(500 * US);
        if time < least { least } else { time.min(10 * MS) }
    }

    fn reset(&mut self, queue: usize, next: usize) {
        let first = self.queues[queue].waiting.first().map(|&first| self.v(first).credit);
        if self.v(next).credit.max(first.unwrap_or(i64::MIN)) > 0 {
            return;
        }
        self.resets += 1;
        let gain = if self.v(next).credit == -10 * MS { 20 * MS } else { 10 * MS };
        for vcpu in self.queues[queue].members.clone() {
            if self.runs(vcpu) {
                self.burn(vcpu);
                if self.v(vcpu).budget.is_some_and(|budget| budget <= 0) {
                    self.raise(self.v(vcpu).cpu);
                }
            }
            let v = self.v_mut(vcpu);
            v.credit = (v.credit + gain).min(10 * MS + 500 * US);
        }
        self.balance(queue);
    }

    fn balance(&mut self, here: usize) {
        self.decay_queue(here);
        let mine = self.queues[here].expected;
        let (mut difference, mut other) = (0, None);
        for queue in (0..self.queues.len()).filter(|&queue| queue != here) {
            self.decay_queue(queue);
            let found = (mine - self.queues[queue].expected).abs();
            if found > difference {
                (difference, other) = (found, Some(queue));
            }
        }
        let Some(there) = other else { return };
        let last = self.queues.len() - 1;
        let most = mine.max(self.queues[last].expected);
        let cpus = self.cpus_from(here, 0).len().max(self.cpus_from(last, 0).len()) as i64;
        let least = if most < cpus << 18 { 1 << 18 } else { 1 << 15 };
        if difference < least {
            return;
        }
        let (push, pull) = self.best_exchange(here, there, difference);
        if let Some(push) = push {
            self.migrate(push, there);
        }
        if let Some(pull) = pull {
            self.migrate(pull, here);
        }
    }

    fn best_exchange(
        &mut self,
        here: usize,
        there: usize,
        difference: i64,
    ) -> (Option<usize>, Option<usize>) {
        let (mine, theirs) =
            (self.queues[here].members.clone(), self.queues[there].members.clone());
        let movable = |all: &Credit2, vcpu: usize, to: usize| {
            let usable = all.cpus_from(to, 0).into_iter().any(|cpu| all.may(vcpu, cpu));
            usable && !matches!(all.v(vcpu).moves, Move::To(_))
        };
        let mut best = (difference, None, None);
        let mut consider = |all: &Credit2, push: Option<usize>, pull: Option<usize>| {
            let load = |vcpu: Option<usize>| vcpu.map_or(0, |vcpu| all.v(vcpu).average);
            let (a, b) = (all.queues[here].expected, all.queues[there].expected);
            let left = (a - load(push) + load(pull) - (b + load(push) - load(pull))).abs();
            if left < best.0 {
                best = (left, push, pull);
            }
        };
        let mut averages_of_theirs_are_old = true;
        for &push in &mine {
            self.decay_vcpu(push, self.load_of(push));
            if !movable(self, push, there) {
                continue;
            }
            for &pull in &theirs {
                if averages_of_theirs_are_old {
                    self.decay_vcpu(pull, self.load_of(pull));
                }
                if movable(self, pull, here) {
                    consider(self, Some(push), Some(pull));
                }
            }
            averages_of_theirs_are_old = false;
            consider(self, Some(push), None);
        }
        for &pull in theirs.iter().filter(|&&pull| movable(self, pull, here)) {
            consider(self, None, Some(pull));
        }
        (best.1, best.2)
    }

    fn migrate(&mut self, vcpu: usize, queue: usize) {
        let cpu = self.v(vcpu).cpu;
        let from = self.v(vcpu).queue;
        if self.v(vcpu).place == Place::Current || self.cpus[cpu].current == Some(vcpu) {
            self.v_mut(vcpu).moves = Move::To(queue);
            self.raise(cpu);
        } else if self.v(vcpu).place == Place::Queued {
            self.remove(vcpu);
            self.change_active(from, -1);
            self.move_to(vcpu, queue);
            self.change_active(queue, 1);
            self.insert(vcpu);
            self.tickle(vcpu);
        } else {
            self.move_to(vcpu, queue);
        }
    }

    /// `vcpu` is off its CPU; it goes on waiting if it is ready.
    fn leave(&mut self, vcpu: usize, ready: bool) {
        let domain = self.v(vcpu).domain;
        let mut refilled = false;
        if let Some(budget) = self.v(vcpu).budget {
            let cap = self.domains[domain].cap.as_mut().unwrap();
            cap.pool += budget;
            refilled = budget != 0 && cap.pool > 0;
            self.v_mut(vcpu).budget = Some(0);
        }
        let goes_on = ready && self.v(vcpu).place == Place::Current;
        if goes_on && !self.must_move(vcpu) {
            self.insert(vcpu);
            self.tickle(vcpu);
        } else {
            self.departs(vcpu);
            if self.v(vcpu).place == Place::Current {
                self.v_mut(vcpu).place = Place::Asleep;
            }
        }
        if refilled {
            self.unpark(domain);
        }
        if self.must_move(vcpu) {
            self.relocate(vcpu);
            if goes_on {
                self.wake(vcpu);
            }
        }
    }

    /// `cpu` is left without a vCPU.
    fn empty(&mut self, cpu: usize) {
        let on = &mut self.cpus[cpu];
        (on.busy, on.current, on.put) = (false, None, None);
    }

    /// Follows a call at the time of `cx`, and makes the kicks that it causes.
    fn at<R>(&mut self, cx: &mut Cx<'_>, call: impl FnOnce(&mut Credit2) -> R) -> R {
        self.now = cx.now.0 as i64;
        let answer = call(self);
        for cpu in self.kicks.drain(..) {
            cx.kick(CpuId(cpu as u16));
        }
        answer
    }

    fn waiting(&self, queue: usize) -> u32 {
        self.queues[queue].waiting.len() as u32
    }
}

impl Scheduler for Credit2 {
    fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let (vcpu, domain) = (task.index(), usize::from(params.domain.0));
        self.domains[domain].vcpus += 1;
        self.vcpus.resize(self.vcpus.len().max(vcpu + 1), None);
        self.vcpus[vcpu] = Some(Vcpu {
            domain,
            affinity: params.affinity.clone(),
            preferred: params.preferred.clone(),
            credit: 10 * MS,
            residual: 0,
            budget: self.domains[domain].cap.as_ref().map(|_| 0),
            place: Place::Asleep,
            queue: usize::MAX,
            cpu: 0,
            moves: Move::No,
            tickled: None,
            paid: false,
            entered: 0,
            since: 0,
            average: 1 << 17,
            averaged: cx.now.0 as i64 >> 10,
        });
        let cpu = self.choose_cpu(vcpu);
        self.v_mut(vcpu).cpu = cpu;
        self.join(vcpu, self.options.queues[cpu]);
    }

    fn detach(&mut self, _: &mut Cx<'_>, task: TaskId) {
        self.quit(task.index());
        let domain = self.v(task.index()).domain;
        self.domains[domain].vcpus -= 1;
        self.vcpus[task.index()] = None;
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let vcpu = task.index();
        let v = self.v_mut(vcpu);
        if (&v.affinity, &v.preferred) == (&params.affinity, &params.preferred) {
            return;
        }
        v.affinity = params.affinity.clone();
        v.preferred = params.preferred.clone();
        self.at(cx, |credit2| match credit2.v(vcpu).place {
            Place::Current => {
                credit2.v_mut(vcpu).moves = Move::Anywhere;
                credit2.raise(credit2.v(vcpu).cpu);
            }
            Place::Queued => {
                credit2.remove(vcpu);
                credit2.departs(vcpu);
                credit2.relocate(vcpu);
                credit2.wake(vcpu);
            }
            Place::Asleep | Place::Parked => credit2.relocate(vcpu),
        });
    }

    fn set_domain(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        let total = i64::from(params.cap_percent) * 10 * MS / 100;
        let domain = &mut self.domains[usize::from(domain.0)];
        domain.weight = i64::from(params.weight);
        let cap = Cap { total, pool: total, next: cx.now.0 as i64 + 10 * MS };
        domain.cap = (params.cap_percent > 0).then_some(cap);
    }

    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, _: Arrival) {
        self.at(cx, |credit2| credit2.wake(task.index()));
        cx.work.queued = self.waiting(self.v(task.index()).queue);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let vcpu = task.index();
        let Vcpu { cpu, domain, queue, .. } = *self.v(vcpu);
        self.at(cx, |credit2| {
            match credit2.v(vcpu).place {
                Place::Queued => {
                    credit2.remove(vcpu);
                    credit2.departs(vcpu);
                }
                Place::Parked => credit2.domains[domain].parked.retain(|&other| other != vcpu),
                Place::Current => {
                    credit2.empty(cpu);
                    credit2.leave(vcpu, false);
                }
                Place::Asleep => {}
            }
            credit2.v_mut(vcpu).place = Place::Asleep;
        });
        cx.work.queued = self.waiting(queue);
    }

    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let pick = self.at(cx, |credit2| credit2.choose(cpu.index()));
        cx.work.queued = self.waiting(self.options.queues[cpu.index()]);
        pick
    }

    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, _: Span, why: Off) {
        let (cpu, vcpu) = (cpu.index(), task.index());
        self.at(cx, |credit2| {
            credit2.burn(vcpu);
            if why.runnable() && why != Off::NotRun {
                credit2.cpus[cpu].put = Some(why);
                return;
            }
            let v = credit2.v_mut(vcpu);
            if why == Off::NotRun && v.paid {
                v.credit = (v.credit - 50 * US).max(-10 * MS);
            }
            credit2.empty(cpu);
            credit2.leave(vcpu, why.runnable());
        });
    }

    fn next_timer(&self) -> Option<Time> {
        let caps = self.domains.iter().filter_map(|domain| domain.cap.as_ref());
        caps.map(|cap| Time(cap.next as u64)).min()
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.at(cx, |credit2| {
            for domain in 0..credit2.domains.len() {
                let now = credit2.now;
                let Some(cap) = &mut credit2.domains[domain].cap else { continue };
                if cap.next > now {
                    continue;
                }
                while cap.next <= now {
                    cap.next += 10 * MS;
                    cap.pool += cap.total;
                }
                cap.pool = cap.pool.min(cap.total);
                if cap.pool > 0 {
                    credit2.unpark(domain);
                }
            }
        });
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let v = self.v(task.index());
        sink("runqueue", v.queue as i64);
        sink("credit_ns", v.credit);
        if let Some(budget) = v.budget {
            sink("budget_ns", budget);
        }
        sink("load_percent", (v.average * 100) >> 18);
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("resets", self.resets);
        sink("moves", self.moves);
        sink("parked", self.parked);
    }
}

impl Oracle for Credit2 {
    const QUEUED: bool = true;
}
