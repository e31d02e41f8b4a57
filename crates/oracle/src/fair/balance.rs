//! Moving tasks between CPUs.

use super::domains::{Flags, SHARE_CPUCAPACITY};
use super::load::State;
use super::rule::Enter;
use super::{Fair, Rule};

/// Whether the CPU that balances is idle, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// CPU_IDLE
    Idle,
    /// CPU_NEWLY_IDLE
    Newly,
}

/// What is counted when tasks move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrate {
    Load,
    Util,
    Tasks,
}

/// One attempt to balance (struct lb_env).
#[derive(Clone, Debug)]
pub struct Env {
    /// The domain is that of this CPU.
    pub owner: usize,
    /// Its place among those of the CPU.
    pub index: usize,
    pub flags: Flags,
    pub pct: u64,
    pub imb_numa_nr: u64,
    pub dst: usize,
    pub src: usize,
    /// `None`: it is busy.
    pub idle: Option<Idle>,
    pub imbalance: i64,
    pub migrate: Migrate,
    /// The CPUs that are looked at.
    pub cpus: Vec<usize>,
    /// The group of the CPU that balances.
    own: Vec<usize>,
    looked_at: u64,
    break_at: u64,
    most: u64,
    all_pinned: bool,
    some_pinned: bool,
    /// A task could go to that CPU instead.
    other_dst: Option<usize>,
    needs_break: bool,
    /// Active balancing.
    active: bool,
}

impl Env {
    pub fn is_newly_idle(&self) -> bool {
        self.idle == Some(Idle::Newly)
    }
}

impl<R: Rule> Fair<R> {
    fn env(&self, cpu: usize, index: usize, idle: Option<Idle>) -> Env {
        let domain = &self.domains.of[cpu][index];
        Env {
            owner: cpu,
            index,
            flags: domain.flags,
            pct: domain.imbalance_pct,
            imb_numa_nr: domain.imb_numa_nr,
            dst: cpu,
            src: cpu,
            idle,
            imbalance: 0,
            migrate: Migrate::Load,
            cpus: domain.span.clone(),
            own: self.domains.groups[domain.groups[0]].span.clone(),
            looked_at: 0,
            break_at: self.options.batch,
            most: 0,
            all_pinned: false,
            some_pinned: false,
            other_dst: None,
            needs_break: false,
            active: false,
        }
    }

    /// should_we_balance
    fn should_balance(&self, env: &Env) -> bool {
        if !env.cpus.contains(&env.dst) {
            return false;
        }
        if env.is_newly_idle() {
            return self.cpus[env.dst].nr_running() == 0;
        }
        let mut left = env.own.clone();
        let mut idle_sibling = None;
        for &cpu in env.own.iter().filter(|cpu| env.cpus.contains(cpu)) {
            if !left.contains(&cpu) || !self.cpus[cpu].is_idle() {
                continue;
            }
            let siblings = &self.domains.smt[cpu];
            let is_core_idle = siblings.iter().all(|&other| self.cpus[other].is_idle());
            let looks_at_cores = self.options.balances_cores && env.flags & SHARE_CPUCAPACITY == 0;
            if looks_at_cores && !is_core_idle {
                idle_sibling = idle_sibling.or(Some(cpu));
                left.retain(|other| !siblings.contains(other));
                continue;
            }
            return cpu == env.dst;
        }
        idle_sibling.unwrap_or(env.own[0]) == env.dst
    }

    /// sched_balance_find_src_rq
    fn busiest_queue(&self, env: &Env, group: usize) -> Option<usize> {
        let (mut most, mut busiest) = (0, None);
        for &cpu in self.domains.groups[group].span.iter().filter(|cpu| env.cpus.contains(cpu)) {
            let ready = self.nr_movable(cpu);
            let load = self.cpus[cpu].avg.load;
            let value = match env.migrate {
                _ if ready == 0 => continue,
                Migrate::Load if ready == 1 && load > env.imbalance as u64 => continue,
                Migrate::Load => load,
                Migrate::Util if ready == 1 => continue,
                Migrate::Util => self.util(cpu, true),
                Migrate::Tasks => ready,
            };
            if value > most {
                (most, busiest) = (value, Some(cpu));
            }
        }
        busiest
    }

    /// can_migrate_task
    fn can_migrate(&self, env: &mut Env, id: usize) -> bool {
        if self.options.balances_eligible {
            let sleeps = self.tasks[id].state == State::Delayed;
            let has_failed = self.domains.of[env.owner][env.index].failed > 0;
            // task_is_ineligible_on_dst_cpu
            let waits =
                self.cpus[env.dst].nr_running() > 0 && !self.rule.is_owed(self.tasks[id].cpu, id);
            if sleeps && env.migrate != Migrate::Load || waits && !has_failed {
                return false;
            }
        }
        if !self.is_allowed(id, env.dst) {
            env.some_pinned = true;
            if !env.is_newly_idle() && env.other_dst.is_none() && !env.active {
                let mut others = env.own.iter().copied().filter(|cpu| env.cpus.contains(cpu));
                env.other_dst = others.find(|&cpu| self.is_allowed(id, cpu));
            }
            return false;
        }
        env.all_pinned = false;
        if self.tasks[id].state == State::Running {
            return false;
        }
        if env.active {
            return true;
        }
        let domain = &self.domains.of[env.owner][env.index];
        let ran = self.now - self.tasks[id].exec_start;
        let shares_cache = env.flags & SHARE_CPUCAPACITY != 0 || self.rule.is_cold(id);
        let is_buddy =
            self.cpus[env.dst].nr_running() > 0 && self.rule.is_buddy(self.tasks[id].cpu, id);
        let is_hot = !shares_cache && (is_buddy || ran < self.options.migration_cost.0);
        !is_hot || domain.failed > domain.cache_nice_tries
    }

    /// Whether `id` is little enough to be moved; if so, the imbalance is smaller by it.
    fn fits(&mut self, env: &mut Env, id: usize) -> bool {
        let failed = self.domains.of[env.owner][env.index].failed.min(63);
        let part = match env.migrate {
            Migrate::Tasks => {
                env.imbalance -= 1;
                return true;
            }
            Migrate::Load => self.h_load(id).max(1),
            Migrate::Util => self.tasks[id].avg.util.max(self.tasks[id].util_est),
        };
        if part >> failed > env.imbalance as u64 {
            return false;
        }
        env.imbalance -= part as i64;
        true
    }

    /// detach_tasks: those that leave, the last first.
    fn detach_tasks(&mut self, env: &mut Env) -> Vec<usize> {
        let mut detached = Vec::new();
        if self.cpus[env.src].nr_running() <= 1 {
            env.all_pinned = false;
            return detached;
        }
        if env.imbalance <= 0 {
            return detached;
        }
        while let Some(&id) = self.cpus[env.src].tasks.last() {
            if env.idle.is_some() && self.cpus[env.src].nr_running() <= 1 {
                break;
            }
            env.looked_at += 1;
            if env.looked_at > env.most {
                break;
            }
            if env.looked_at > env.break_at {
                env.break_at += self.options.batch;
                env.needs_break = true;
                break;
            }
            if !self.can_migrate(env, id) || !self.fits(env, id) {
                self.cpus[env.src].tasks.pop();
                self.cpus[env.src].tasks.insert(0, id);
                continue;
            }
            self.detach_task(id, env.dst);
            detached.insert(0, id);
            if self.options.preemption && env.is_newly_idle() || env.imbalance <= 0 {
                break;
            }
        }
        detached
    }

    /// `id` leaves its runqueue for that of `cpu`.
    fn detach_task(&mut self, id: usize, cpu: usize) {
        let from = self.tasks[id].cpu;
        self.rule.remove(self.at(from), id, true);
        self.deactivate(id, false, true);
        self.tasks[id].cpu = cpu;
    }

    fn attach_task(&mut self, id: usize) {
        self.activate(id, true);
        let at = self.at(self.tasks[id].cpu);
        self.rule.enter(at, id, Enter::Moved, None);
        self.check_preempt(id);
        self.moves += 1;
    }

    /// move_queued_task
    pub(super) fn move_task(&mut self, id: usize, cpu: usize) {
        self.detach_task(id, cpu);
        self.attach_task(id);
    }

    /// One round over the tasks of `env.src`, and over those that could only go to another CPU of
    /// the group. Returns how many have moved.
    fn pull(&mut self, env: &mut Env) -> usize {
        env.most = self.options.nr_migrate.min(self.cpus[env.src].nr_running());
        let mut moved = 0;
        loop {
            let detached = self.detach_tasks(env);
            moved += detached.len();
            detached.into_iter().for_each(|id| self.attach_task(id));
            if std::mem::take(&mut env.needs_break) {
                continue;
            }
            match env.other_dst.filter(|_| env.imbalance > 0) {
                Some(other) => {
                    env.cpus.retain(|&cpu| cpu != env.dst);
                    (env.dst, env.other_dst) = (other, None);
                    (env.looked_at, env.break_at) = (0, self.options.batch);
                }
                None => return moved,
            }
        }
    }

    /// What groups of the domain above `env` share of the own one.
    fn above(&mut self, env: &Env) -> Option<&mut bool> {
        let parent = self.domains.of[env.owner].get(env.index + 1)?;
        let shared = self.domains.groups[parent.groups[0]].shared;
        Some(&mut self.domains.imbalance[shared])
    }

    /// sched_balance_rq: how many tasks have moved, and whether this CPU goes on with the next
    /// domain.
    pub(super) fn balance(
        &mut self,
        cpu: usize,
        index: usize,
        idle: Option<Idle>,
    ) -> (usize, bool) {
        let mut env = self.env(cpu, index, idle);
        let mut goes_on = true;
        let mut moved = 0;
        let found = loop {
            if !self.should_balance(&env) {
                goes_on = false;
                break false;
            }
            let Some(group) = self.busiest_group(&mut env) else { break false };
            let Some(busiest) = self.busiest_queue(&env, group) else { break false };
            env.src = busiest;
            env.all_pinned = true;
            if self.cpus[busiest].nr_running() <= 1 {
                break true;
            }
            moved += self.pull(&mut env);
            let is_pinned = env.some_pinned && env.imbalance > 0;
            if let Some(above) = self.above(&env).filter(|_| is_pinned) {
                *above = true;
            }
            if !env.all_pinned {
                break true;
            }
            env.cpus.retain(|&other| other != busiest);
            if env.cpus.iter().all(|other| env.own.contains(other)) {
                self.balanced(&env);
                return (0, goes_on);
            }
            (env.looked_at, env.break_at, moved) = (0, self.options.batch, 0);
        };
        if !found {
            if let Some(above) = self.above(&env).filter(|_| !env.all_pinned) {
                *above = false;
            }
            self.balanced(&env);
            return (0, goes_on);
        }
        (self.unbalanced(&mut env, moved), goes_on)
    }

    /// Tasks have moved, or have not though they should.
    fn unbalanced(&mut self, env: &mut Env, moved: usize) -> usize {
        let cpu = env.owner;
        let mut starts_active = false;
        if moved > 0 {
            self.domains.of[cpu][env.index].failed = 0;
        } else {
            if !env.is_newly_idle() {
                self.domains.of[cpu][env.index].failed += 1;
            }
            if self.needs_active(env) {
                let current = self.cpus[env.src].running;
                if !current.is_some_and(|id| self.is_allowed(id, cpu)) {
                    self.lengthen(env);
                    return 0;
                }
                env.all_pinned = false;
                if self.cpus[env.src].push_to.is_none() {
                    self.cpus[env.src].push_to = Some(cpu);
                    self.tell(env.src);
                    starts_active = true;
                }
            }
        }
        if !starts_active || self.needs_active(env) {
            let domain = &mut self.domains.of[cpu][env.index];
            domain.interval = domain.min_interval;
        }
        moved
    }

    /// imbalanced_active_balance
    fn needs_active(&self, env: &Env) -> bool {
        let domain = &self.domains.of[env.owner][env.index];
        env.migrate == Migrate::Tasks && domain.failed > domain.cache_nice_tries + 2
    }

    fn balanced(&mut self, env: &Env) {
        self.domains.of[env.owner][env.index].failed = 0;
        self.lengthen(env);
    }

    /// The interval doubles.
    fn lengthen(&mut self, env: &Env) {
        let domain = &mut self.domains.of[env.owner][env.index];
        let is_short = env.all_pinned && domain.interval < 512;
        if !env.is_newly_idle() && (is_short || domain.interval < domain.max_interval) {
            domain.interval *= 2;
        }
    }

    /// active_load_balance_cpu_stop, on `cpu` between two tasks
    pub(super) fn push(&mut self, cpu: usize) {
        let Some(target) = self.cpus[cpu].push_to.take() else { return };
        self.finish_switch(cpu);
        let mut domains = self.domains.of[target].iter();
        let Some(index) = domains.position(|domain| domain.span.contains(&cpu)) else { return };
        let mut env = self.env(target, index, Some(Idle::Idle));
        (env.src, env.active) = (cpu, true);
        let queued = self.cpus[cpu].tasks.clone();
        let goes = queued.into_iter().rev().find(|&id| self.can_migrate(&mut env, id));
        if let Some(id) = goes {
            self.detach_task(id, target);
            self.domains.of[target][index].failed = 0;
            self.attach_task(id);
        }
    }
}
