//! One pass of balancing: a CPU pulls to itself what its group of a domain lacks (Linux
//! `sched_balance_rq`, before 6.10 `load_balance`).

use alloc::vec::Vec;

use super::super::rule::Rule;
use super::super::{Entry, Smp, State, Why};
use super::domains::{Domain, Group};
use super::select::{Busyness, classify, mean_load, numa_imbalance};
use super::sums::Sum;
use crate::Cx;
use crate::ids::{CpuId, CpuMask, TaskId};

/// The most tasks that a pass looks at (`sched_nr_migrate`).
pub(super) const MOST_LOOKED_AT: u64 = 32;

/// Intervals of passes that fail because of tasks bound to CPUs grow up to this, in ms.
const LONGEST_PINNED: u64 = 512;

/// What the CPU is doing that balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// It runs a task.
    Busy,
    /// It has been idle for some time.
    Long,
    /// It has just run out of work.
    Newly,
}

/// In what an imbalance is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Load,
    Util,
    Tasks,
}

/// A pass.
struct Pass {
    domain: u16,
    depth: usize,
    /// Who balances.
    by: CpuId,
    /// To which CPU of its group tasks are pulled; at first itself.
    to: CpuId,
    idle: Idle,
    /// See [`Balancing`](super::super::Balancing).
    by_core: bool,
    /// CPUs that are not looked at any more, because all of their tasks are bound elsewhere, or
    /// because this pass has pulled to them already.
    without: CpuMask,
    unit: Unit,
    imbalance: i64,
    /// Some task that was looked at may not run where it was to go.
    some_pinned: bool,
    /// All of them.
    all_pinned: bool,
    /// Another CPU of the group to which such a task may go.
    other: Option<CpuId>,
}

/// What has become of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub moved: u64,
    /// Wider domains are to be balanced, too.
    pub goes_on: bool,
}

/// A group and how busy it is.
#[derive(Clone, Copy, Debug)]
struct Side {
    busyness: Busyness,
    sum: Sum,
    group: usize,
    /// Its CPUs are threads of one core.
    is_core: bool,
    cores: u64,
}

impl Side {
    fn size(&self, domain: &Domain) -> usize {
        domain.groups[self.group].cpus.len()
    }
}

impl Smp<dyn Rule> {
    /// Brings the sums of all domains up to date.
    pub(super) fn refresh(&mut self) {
        while let Some(cpu) = self.fair.sums.next_stale() {
            let sum = self.sum_of_cpu(cpu);
            self.fair.sums.set(&self.fair.domains, cpu, sum);
        }
    }

    /// What `cpu` does.
    #[inline]
    pub(super) fn sum_of_cpu(&self, cpu: CpuId) -> Sum {
        let queue = &self.fair.queues[cpu.index()];
        if !queue.is_online {
            return Sum::default();
        }
        let tasks = self.tasks_of(cpu);
        Sum {
            cpus: 1,
            idle: u64::from(queue.is_idle()),
            crowded: u64::from(tasks > 1),
            tasks,
            to_move: self.tasks_to_move(cpu),
            load: queue.average.load,
            runnable: queue.average.runnable,
            util: queue.average.util.max(queue.util_est).min(1024),
        }
    }

    /// What the CPUs of a group do but those `without`; its capacity is that of all. Sums of
    /// domains are up to date.
    #[inline]
    pub(super) fn sum_of_group(&self, group: &Group, without: &CpuMask) -> Sum {
        if let Some(domain) = group.domain {
            return self.fair.sums.of_domain(domain, group, without);
        }
        let (cpu, sum) = (group.cpus[0], self.sum_of_cpu(group.cpus[0]));
        if without.contains(cpu) { Sum { cpus: sum.cpus, ..Sum::default() } } else { sum }
    }

    /// `cpu` balances the domain at `depth` around it.
    pub(super) fn pass(&mut self, cx: &mut Cx<'_>, cpu: CpuId, depth: usize, idle: Idle) -> Passed {
        self.fair.looks += 1;
        let domain = self.fair.domains.around[cpu.index()][depth];
        if idle == Idle::Newly && depth == 0 && self.fair.crowded == 0 {
            return self.pass_in_vain(cpu, domain);
        }
        let mut pass = Pass {
            domain,
            depth,
            by: cpu,
            to: cpu,
            idle,
            by_core: self.fair.balancing.by_core,
            without: CpuMask::EMPTY,
            unit: Unit::Load,
            imbalance: 0,
            some_pinned: false,
            all_pinned: false,
            other: None,
        };
        let mut moved = 0;
        let from = loop {
            if !self.is_to_balance(&pass) {
                self.note_balanced(&pass, cpu);
                return Passed { moved: 0, goes_on: false };
            }
            let Some(from) = self.find_busiest(&mut pass) else {
                self.note_balanced(&pass, cpu);
                return Passed { moved: 0, goes_on: true };
            };
            pass.all_pinned = true;
            if self.tasks_of(from) > 1 {
                moved = self.pull_from(cx, &mut pass, from);
                self.note_pinned(&pass);
                if pass.all_pinned {
                    pass.without.insert(from);
                    if self.has_others(&pass) {
                        continue;
                    }
                    self.give_up(&pass, cpu, true);
                    return Passed { moved: 0, goes_on: true };
                }
            }
            break from;
        };
        let mut pushes = false;
        if moved == 0 {
            if idle != Idle::Newly {
                self.turn(cpu, depth).failures += 1;
            }
            if self.needs_push(&pass, cpu) {
                let running = self.fair.queues[from.index()].running;
                let fits = running.is_some_and(|task| self.tasks[task].affinity.contains(cpu));
                if !fits {
                    self.give_up(&pass, cpu, false);
                    return Passed { moved: 0, goes_on: true };
                }
                if self.fair.queues[from.index()].push_to.is_none() {
                    self.fair.queues[from.index()].push_to = Some(cpu);
                    pushes = true;
                    self.tell(cx, from);
                }
            }
        } else {
            self.fair.pulled += moved;
            self.turn(cpu, depth).failures = 0;
        }
        if !pushes || self.needs_push(&pass, cpu) {
            let size = self.fair.domains[domain].cpus.len() as u64;
            self.turn(cpu, depth).interval = size;
        }
        Passed { moved, goes_on: true }
    }

    /// The same where CPUs are compared with each other, none of which has a task to spare.
    fn pass_in_vain(&mut self, cpu: CpuId, domain: u16) -> Passed {
        match self.fair.domains[domain].parent {
            Some(_) => self.fair.out_of_balance[usize::from(domain)] = false,
            None => self.fair.is_overloaded = false,
        }
        self.turn(cpu, 0).failures = 0;
        Passed { moved: 0, goes_on: true }
    }

    fn turn(&mut self, cpu: CpuId, depth: usize) -> &mut super::Turn {
        &mut self.fair.queues[cpu.index()].turns[depth]
    }

    /// There is nothing to do: the interval grows.
    fn note_balanced(&mut self, pass: &Pass, cpu: CpuId) {
        if !pass.all_pinned && self.fair.domains[pass.domain].parent.is_some() {
            self.fair.out_of_balance[usize::from(pass.domain)] = false;
        }
        self.turn(cpu, pass.depth).failures = 0;
        self.lengthen(pass, cpu);
    }

    /// Nothing can be done, as all tasks are bound; with `forgets`, failures count from 0 again.
    fn give_up(&mut self, pass: &Pass, cpu: CpuId, forgets: bool) {
        if forgets {
            self.turn(cpu, pass.depth).failures = 0;
        }
        self.lengthen(pass, cpu);
    }

    fn lengthen(&mut self, pass: &Pass, cpu: CpuId) {
        if pass.idle == Idle::Newly {
            return;
        }
        let longest = 2 * self.fair.domains[pass.domain].cpus.len() as u64;
        let turn = self.turn(cpu, pass.depth);
        if pass.all_pinned && turn.interval < LONGEST_PINNED || turn.interval < longest {
            turn.interval *= 2;
        }
    }

    /// The wider domain learns that averages mislead, because tasks are bound.
    fn note_pinned(&mut self, pass: &Pass) {
        let has_parent = self.fair.domains[pass.domain].parent.is_some();
        if has_parent && pass.some_pinned && pass.imbalance > 0 {
            self.fair.out_of_balance[usize::from(pass.domain)] = true;
        }
    }

    /// The CPUs of the group for which the pass is.
    fn own_cpus(&self, pass: &Pass) -> &[CpuId] {
        let own = self.fair.domains.own_group(pass.by, pass.depth);
        &self.fair.domains[pass.domain].groups[own].cpus
    }

    /// Whether CPUs are left that can be pulled from.
    fn has_others(&self, pass: &Pass) -> bool {
        let domain = &self.fair.domains[pass.domain];
        let own = self.own_cpus(pass);
        let usable = |cpu: &&CpuId| self.online.contains(**cpu) && !pass.without.contains(**cpu);
        domain.cpus.iter().filter(usable).any(|cpu| !own.contains(cpu))
    }

    /// Whether it is for this CPU to balance for its group (`should_we_balance`): if it is idle and
    /// the first one, on an idle core if there is one; if none is, the first CPU.
    fn is_to_balance(&self, pass: &Pass) -> bool {
        if !self.online.contains(pass.to) || pass.without.contains(pass.to) {
            return false;
        }
        if pass.idle == Idle::Newly {
            return self.tasks_of(pass.to) == 0;
        }
        let domain = &self.fair.domains[pass.domain];
        let cpus = self.own_cpus(pass);
        let mut thread = None;
        for &cpu in cpus {
            if !self.is_idle(cpu) || pass.without.contains(cpu) {
                continue;
            }
            if domain.shares_capacity || !pass.by_core || self.is_core_of_idle(cpu, None) {
                return cpu == pass.to;
            }
            thread = thread.or(Some(cpu));
        }
        let first = cpus.iter().copied().find(|&cpu| self.online.contains(cpu));
        thread.or(first) == Some(pass.to)
    }

    /// The CPU to pull from, if any, with the imbalance (`find_busiest_group` and `_queue`).
    fn find_busiest(&mut self, pass: &mut Pass) -> Option<CpuId> {
        if self.fair.domains[pass.domain].has_domains {
            self.refresh();
        }
        let domain = &self.fair.domains[pass.domain];
        let (mut local, mut busiest): (Option<Side>, Option<Side>) = (None, None);
        let mut total = Sum::default();
        for (place, number) in self.fair.domains.ring(pass.by, pass.depth).enumerate() {
            let side = self.side(pass, domain, number, place == 0);
            total += side.sum;
            if place == 0 {
                local = Some(side);
            } else if side.sum.to_move > 0
                && busiest.as_ref().is_none_or(|busiest| is_busier(pass, &side, busiest))
            {
                busiest = Some(side);
            }
        }
        let shown = if pass.by_core { busiest } else { local };
        let prefers_sibling = shown.is_some_and(|side| {
            let group = domain.groups[side.group].domain;
            group.is_some_and(|it| !self.fair.domains[it].is_numa)
        });
        let found = local.zip(busiest).and_then(|(local, busiest)| {
            let (unit, imbalance) =
                imbalance(pass, domain, &local, &busiest, &total, prefers_sibling)?;
            Some((busiest.group, unit, imbalance))
        });
        if domain.parent.is_none() {
            self.fair.is_overloaded = total.crowded > 0;
        }
        self.limit_scans(pass, total.util);
        let (group, unit, imbalance) = found?;
        (pass.unit, pass.imbalance) = (unit, imbalance);
        self.find_busiest_cpu(pass, group)
    }

    #[inline]
    fn side(&self, pass: &Pass, domain: &Domain, number: usize, is_local: bool) -> Side {
        let group = &domain.groups[number];
        let sum = self.sum_of_group(group, &pass.without);
        if group.domain.is_none() {
            let busyness = classify(&sum, domain.imbalance_percent, false);
            return Side { busyness, sum, group: number, is_core: false, cores: group.cores };
        }
        let is_core = pass.by_core
            && (is_local || !domain.is_numa)
            && group.domain.is_some_and(|it| self.fair.domains[it].shares_capacity);
        let out = self.fair.is_out_of_balance(group);
        let mut busyness = classify(&sum, domain.imbalance_percent, out);
        let is_shared = is_core && pass.idle != Idle::Busy && sum.to_move > 1;
        if !is_local && is_shared && busyness < Busyness::SmtBalance {
            busyness = Busyness::SmtBalance;
        }
        Side { busyness, sum, group: number, is_core, cores: group.cores }
    }

    /// How many CPUs of a cache are looked at for an idle one: the fewer, the busier they are
    /// (`SIS_UTIL`).
    fn limit_scans(&mut self, pass: &Pass, util: u64) {
        let domain = &self.fair.domains[pass.domain];
        if pass.idle == Idle::Newly || self.fair.domains.cache[pass.to.index()] != Some(pass.domain)
        {
            return;
        }
        let size = domain.cpus.len() as u64;
        let (each, percent) = (util / size, domain.imbalance_percent);
        let busy = (each * each * percent * percent / (10_000 * 1024)).min(1024);
        self.fair.caches[usize::from(pass.domain)].scan = (1024 - busy) * size / 1024;
    }

    fn find_busiest_cpu(&self, pass: &Pass, group: usize) -> Option<CpuId> {
        let domain = &self.fair.domains[pass.domain];
        let mut busiest: Option<(u64, CpuId)> = None;
        for &cpu in &domain.groups[group].cpus {
            let tasks = self.tasks_to_move(cpu);
            if tasks == 0 || pass.without.contains(cpu) || !self.online.contains(cpu) {
                continue;
            }
            let load = self.fair.queues[cpu.index()].average.load;
            let value = match pass.unit {
                Unit::Load if tasks == 1 && load as i64 > pass.imbalance => continue,
                Unit::Load => load,
                Unit::Util if tasks <= 1 => continue,
                Unit::Util => self.boosted_util(cpu),
                Unit::Tasks => tasks,
            };
            if busiest.map_or(0, |(most, _)| most) < value {
                busiest = Some((value, cpu));
            }
        }
        busiest.map(|(_, cpu)| cpu)
    }

    /// The utilisation of `cpu`, or what it would be if nobody had to wait (`cpu_util_cfs_boost`).
    fn boosted_util(&self, cpu: CpuId) -> u64 {
        let queue = &self.fair.queues[cpu.index()];
        queue.average.util.max(queue.average.runnable).max(queue.util_est).min(1024)
    }

    /// Pulls from `from` until the imbalance is gone, to other CPUs of the group, too, where tasks
    /// may go there only. Returns how many tasks have moved.
    fn pull_from(&mut self, cx: &mut Cx<'_>, pass: &mut Pass, from: CpuId) -> u64 {
        let mut moved = 0;
        let most = MOST_LOOKED_AT.min(self.tasks_of(from));
        loop {
            let mut tasks = core::mem::take(&mut self.fair.detached);
            self.detach_tasks(cx, pass, from, most, &mut tasks);
            moved += tasks.len() as u64;
            while let Some(task) = tasks.pop() {
                self.attach_task(cx, pass, task);
            }
            self.fair.detached = tasks;
            match pass.other.filter(|_| pass.imbalance > 0) {
                None => return moved,
                Some(other) => {
                    pass.other = None;
                    pass.without.insert(pass.to);
                    pass.to = other;
                }
            }
        }
    }

    /// Takes tasks out of the runqueue of `from`, the one first that has not run for longest.
    fn detach_tasks(
        &mut self,
        cx: &mut Cx<'_>,
        pass: &mut Pass,
        from: CpuId,
        most: u64,
        detached: &mut Vec<TaskId>,
    ) {
        if self.tasks_of(from) <= 1 {
            pass.all_pinned = false;
            return;
        }
        let mut looked_at = 0;
        while pass.imbalance > 0 {
            if pass.idle != Idle::Busy && self.tasks_of(from) <= 1 {
                break;
            }
            looked_at += 1;
            let first = self.fair.queues[from.index()].tasks.front();
            let Some(task) = first.filter(|_| looked_at <= most) else { break };
            cx.work.scanned += 1;
            let cost =
                if self.may_move(cx, pass, task) { self.cost(pass, from, task) } else { None };
            let Some(cost) = cost else {
                let queue = &mut self.fair.queues[from.index()];
                self.fair.links.remove(&mut queue.tasks, task);
                self.fair.links.push_back(&mut queue.tasks, task);
                continue;
            };
            pass.imbalance -= cost as i64;
            self.take_out(cx, task);
            detached.push(task);
            if pass.idle == Idle::Newly {
                break;
            }
        }
    }

    /// How much of the imbalance `task` is; `None`: more than all of it, by far.
    fn cost(&self, pass: &Pass, from: CpuId, task: TaskId) -> Option<u64> {
        let failures = self.fair.queues[pass.by.index()].turns[pass.depth].failures.min(63);
        let entity = &self.fair.entities[task];
        let cost = match pass.unit {
            Unit::Tasks => return Some(1),
            Unit::Load => self.fair.task_load(from, task).max(1),
            Unit::Util => entity.average.util.max(entity.util_est),
        };
        ((cost >> failures) as i64 <= pass.imbalance).then_some(cost)
    }

    /// Whether `task`, which waits, may go where the pass is for (`can_migrate_task`).
    fn may_move(&self, cx: &Cx<'_>, pass: &mut Pass, task: TaskId) -> bool {
        let slot = &self.tasks[task];
        if self.fair.balancing.eligible && !self.is_free_to_go(pass, task) {
            return false;
        }
        if !slot.affinity.contains(pass.to) {
            pass.some_pinned = true;
            if pass.idle != Idle::Newly && pass.other.is_none() {
                let usable = |cpu: &CpuId| {
                    self.online.contains(*cpu)
                        && !pass.without.contains(*cpu)
                        && slot.affinity.contains(*cpu)
                };
                pass.other = self.own_cpus(pass).iter().copied().find(usable);
            }
            return false;
        }
        pass.all_pinned = false;
        if slot.state == State::Running {
            return false;
        }
        let domain = &self.fair.domains[pass.domain];
        let queue = usize::from(slot.queue);
        let is_warm = cx.now < slot.hot_until
            || self.rule.is_buddy(queue, task) && self.tasks_of(pass.to) > 0;
        let is_hot = is_warm && !domain.shares_capacity && !self.rule.is_cold(task);
        let failures = self.fair.queues[pass.by.index()].turns[pass.depth].failures;
        !is_hot || failures > domain.cache_nice_tries
    }

    /// Whether `task` is awake and is owed CPU time, or may move nevertheless.
    fn is_free_to_go(&self, pass: &Pass, task: TaskId) -> bool {
        let slot = &self.tasks[task];
        let is_asleep = slot.state == State::Delayed && pass.unit != Unit::Load;
        let has_failed = self.fair.queues[pass.by.index()].turns[pass.depth].failures > 0;
        let stays = self.tasks_of(pass.to) > 0 && !self.rule.is_owed(slot.queue.into(), task);
        !is_asleep && (has_failed || !stays)
    }

    fn attach_task(&mut self, cx: &mut Cx<'_>, pass: &Pass, task: TaskId) {
        if pass.idle == Idle::Newly {
            self.push_moved(cx, task, pass.to.index());
        } else {
            self.enter(cx, task, pass.to.index(), pass.to, &Entry::because(Why::Moved));
        }
    }

    /// Whether the running task is to be pushed, as those that wait cannot be moved
    /// (`need_active_balance`).
    fn needs_push(&self, pass: &Pass, cpu: CpuId) -> bool {
        let tries = self.fair.domains[pass.domain].cache_nice_tries;
        let failures = self.fair.queues[cpu.index()].turns[pass.depth].failures;
        pass.unit == Unit::Tasks && failures > tries + 2
    }

    /// `cpu` has put back what it ran: pushes a task to the CPU that wanted one
    /// (`active_load_balance_cpu_stop`).
    #[cold]
    pub(super) fn push_to(&mut self, cx: &mut Cx<'_>, cpu: CpuId, to: CpuId) {
        if !self.online.contains(cpu) || !self.online.contains(to) {
            return;
        }
        let Some(depth) = self.fair.domains.meeting(to, cpu) else { return };
        let has_failed = self.fair.queues[to.index()].turns[depth].failures > 0;
        let takes_all = has_failed || !self.fair.balancing.eligible || self.tasks_of(to) == 0;
        let fits = |task: &TaskId| {
            let slot = &self.tasks[*task];
            let may_go = takes_all || self.rule.is_owed(cpu.index(), *task);
            may_go && slot.affinity.contains(to) && slot.state != State::Running
        };
        let task = self.fair.links.iter(&self.fair.queues[cpu.index()].tasks).find(fits);
        let Some(task) = task else { return };
        self.turn(to, depth).failures = 0;
        self.take_out(cx, task);
        self.enter(cx, task, to.index(), to, &Entry::because(Why::Moved));
    }
}

/// Whether `side` is busier than the busiest group so far (`update_sd_pick_busiest`).
fn is_busier(pass: &Pass, side: &Side, busiest: &Side) -> bool {
    if side.busyness != busiest.busyness {
        return side.busyness > busiest.busyness;
    }
    let has_fewer_idle = |side: &Side, busiest: &Side| {
        side.sum.idle < busiest.sum.idle
            || side.sum.idle == busiest.sum.idle && side.sum.tasks > busiest.sum.tasks
    };
    match side.busyness {
        Busyness::Overloaded => mean_load(&side.sum) > mean_load(&busiest.sum),
        Busyness::OutOfBalance => false,
        Busyness::FullyBusy if !pass.by_core => false,
        Busyness::SmtBalance if side.sum.idle != 0 || busiest.sum.idle != 0 => {
            has_fewer_idle(side, busiest)
        }
        // Loads of groups that are not overloaded count as equal: cores whose threads share a
        // capacity need help most.
        Busyness::SmtBalance | Busyness::FullyBusy => !busiest.is_core,
        Busyness::HasSpare if side.is_core != busiest.is_core => {
            !(side.is_core && side.sum.to_move <= 1)
        }
        Busyness::HasSpare => has_fewer_idle(side, busiest),
    }
}

/// By how many tasks more than this group the busiest one has, relative to their cores.
fn sibling_imbalance(pass: &Pass, local: &Side, busiest: &Side) -> u64 {
    let more = busiest.sum.tasks.saturating_sub(local.sum.tasks);
    if !pass.by_core {
        return more;
    }
    if pass.idle == Idle::Busy || busiest.sum.tasks == 0 {
        return 0;
    }
    let (theirs, ours) = (busiest.cores, local.cores);
    if theirs == ours {
        return more;
    }
    let more = (ours * busiest.sum.tasks).saturating_sub(theirs * local.sum.tasks);
    let rounded = (2 * more + ours + theirs) / (ours + theirs);
    if rounded <= 1 && local.sum.tasks == 0 && busiest.sum.tasks > 1 { 2 } else { rounded }
}

/// What is to be moved, if anything (`sched_balance_find_src_group` and `calculate_imbalance`).
fn imbalance(
    pass: &Pass,
    domain: &Domain,
    local: &Side,
    busiest: &Side,
    total: &Sum,
    prefers_sibling: bool,
) -> Option<(Unit, i64)> {
    let mean = mean_load(total);
    if busiest.busyness != Busyness::OutOfBalance {
        if local.busyness > busiest.busyness {
            return None;
        }
        if local.busyness == Busyness::Overloaded {
            let (here, there) = (mean_load(&local.sum), mean_load(&busiest.sum));
            if here >= there || here >= mean || 100 * there <= domain.imbalance_percent * here {
                return None;
            }
        }
        let spreads = prefers_sibling
            && local.busyness == Busyness::HasSpare
            && sibling_imbalance(pass, local, busiest) > 1;
        if !spreads && busiest.busyness != Busyness::Overloaded {
            if pass.idle == Idle::Busy {
                return None;
            }
            let frees =
                busiest.busyness == Busyness::SmtBalance && local.is_core != busiest.is_core;
            let even = busiest.size(domain) > 1 && local.sum.idle <= busiest.sum.idle + 1;
            if !frees && (even || busiest.sum.to_move == 1) {
                return None;
            }
        }
    }
    let (unit, amount) = amount(pass, domain, local, busiest, mean, prefers_sibling);
    (amount > 0).then_some((unit, amount as i64))
}

fn amount(
    pass: &Pass,
    domain: &Domain,
    local: &Side,
    busiest: &Side,
    mean: u64,
    prefers_sibling: bool,
) -> (Unit, u64) {
    if matches!(busiest.busyness, Busyness::SmtBalance | Busyness::OutOfBalance) {
        return (Unit::Tasks, 1);
    }
    if local.busyness == Busyness::HasSpare {
        if busiest.busyness > Busyness::FullyBusy && !domain.shares_cache {
            let spare = (1024 * local.sum.cpus).saturating_sub(local.sum.util);
            return match (pass.idle, spare) {
                (Idle::Long | Idle::Newly, 0) => (Unit::Tasks, 1),
                _ => (Unit::Util, spare),
            };
        }
        let mut tasks = if busiest.size(domain) == 1 || prefers_sibling {
            sibling_imbalance(pass, local, busiest)
        } else {
            local.sum.idle.saturating_sub(busiest.sum.idle)
        };
        if domain.is_numa {
            tasks = numa_imbalance(tasks, local.sum.tasks + 1, domain.numa_imbalance);
        }
        return (Unit::Tasks, tasks >> 1);
    }
    let here = mean_load(&local.sum);
    let there = if busiest.busyness == Busyness::Overloaded { mean_load(&busiest.sum) } else { 0 };
    if local.busyness < Busyness::Overloaded && (here >= there || here >= mean) {
        return (Unit::Load, 0);
    }
    let surplus = there.wrapping_sub(mean).wrapping_mul(1024 * busiest.sum.cpus);
    let deficit = mean.wrapping_sub(here).wrapping_mul(1024 * local.sum.cpus);
    (Unit::Load, surplus.min(deficit) / 1024)
}
