//! Runqueues and tasks: what is queued where, and the load that follows each of them.

use anysched_core::CpuSet;

use super::pelt::Avg;
use super::{Fair, Rule};

/// Whom it wakes, and how often it was another than the last time.
#[derive(Clone, Debug, Default)]
pub struct Waker {
    pub flips: u64,
    pub last: Option<usize>,
    /// In jiffies.
    pub decayed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Gone,
    /// Attached and never made ready.
    New,
    Blocked,
    /// It sleeps, but is still queued.
    Delayed,
    Waiting,
    Running,
}

#[derive(Clone, Debug, Default)]
pub struct Task {
    pub state: State,
    pub weight: u64,
    pub allowed: CpuSet,
    /// The runqueue that it is in, or was last in.
    pub cpu: usize,
    pub avg: Avg,
    /// Its load is part of that of `cpu`.
    pub attached: bool,
    pub util_est: u64,
    /// Its utilization has not changed since `util_est` was set.
    pub unchanged: bool,
    /// Since when it runs or waits, in ns; 0 after it has come from another CPU.
    pub exec_start: u64,
    pub waker: Waker,
    pub recent: usize,
    /// Where it goes if it may not stay.
    pub bound_to: usize,
}

impl Task {
    pub fn load_weight(&self) -> u64 {
        self.weight.max(2)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Cpu {
    pub running: Option<usize>,
    /// Since when the running task was not charged, in ns.
    pub since: u64,
    /// It has found nothing to run, and not picked since.
    pub idle: bool,
    /// All that is ready here, running included, who was queued or picked last first.
    pub tasks: Vec<usize>,
    pub avg: Avg,
    pub util_est: u64,
    /// Load, utilization and runnable of those that have gone while blocked.
    pub removed: Option<(u64, u64, u64)>,
    /// The task that has ended here, until it has switched from it.
    pub dead: Option<Task>,
    /// Load and when it was noted, in jiffies.
    pub h_load: (u64, u64),
    /// In jiffies.
    pub next_balance: u64,
    /// Where its running task is to go.
    pub push_to: Option<usize>,
    /// When it last found nothing to run, in ns; 0 if it was woken since.
    pub idle_stamp: u64,
    /// In ns.
    pub avg_idle: u64,
    /// In ns.
    pub max_idle_balance_cost: u64,
    /// In the mask of idle CPUs.
    pub tickless: bool,
    pub has_blocked_load: bool,
    /// In jiffies.
    pub last_blocked_update: u64,
    /// Of its idle task.
    pub idle_waker: Waker,
    /// The CPU that was the last to be given a task whose affinity changed.
    pub distributed: usize,
}

impl Cpu {
    /// idle_cpu
    pub fn is_idle(&self) -> bool {
        self.idle && self.tasks.is_empty()
    }

    pub fn nr_running(&self) -> u64 {
        self.tasks.len() as u64
    }
}

impl<R: Rule> Fair<R> {
    /// How many tasks of `cpu` do not sleep.
    pub(super) fn nr_awake(&self, cpu: usize) -> u64 {
        let tasks = self.cpus[cpu].tasks.iter();
        tasks.filter(|&&task| self.tasks[task].state != State::Delayed).count() as u64
    }

    /// The same, if the kernel counts so; else, all.
    pub(super) fn nr_movable(&self, cpu: usize) -> u64 {
        if self.options.balances_eligible {
            self.nr_awake(cpu)
        } else {
            self.cpus[cpu].nr_running()
        }
    }

    /// update_cfs_rq_load_avg
    pub(super) fn update_queue(&mut self, cpu: usize) {
        let weight: u64 = self.cpus[cpu].tasks.iter().map(|&task| self.tasks[task].weight).sum();
        let weight = if weight > 0 { weight.max(2) } else { 0 };
        let ready = self.nr_awake(cpu);
        let on = &mut self.cpus[cpu];
        if let Some((load, util, runnable)) = on.removed.take() {
            let divider = on.avg.divider();
            on.avg.take_load(load, load * divider);
            on.avg.take_util(util, util * divider);
            on.avg.take_runnable(runnable, runnable * divider);
        }
        let running = on.running.is_some();
        if on.avg.go_on(self.now, weight, ready, running) {
            on.avg.average(1);
        }
    }

    /// __update_load_avg_se, __update_load_avg_blocked_se: whether the averages have changed.
    fn age(&mut self, id: usize, until: u64, ready: bool, running: bool) -> bool {
        let task = &mut self.tasks[id];
        let runnable = ready && task.state != State::Delayed;
        let changes = task.avg.go_on(until, ready.into(), runnable.into(), running);
        if changes {
            let weight = task.load_weight();
            task.avg.average(weight);
        }
        changes
    }

    /// update_load_avg
    pub(super) fn update_load(&mut self, id: usize) {
        let cpu = self.tasks[id].cpu;
        if self.tasks[id].attached {
            let ready = self.cpus[cpu].tasks.contains(&id);
            let running = self.cpus[cpu].running == Some(id);
            if self.age(id, self.now, ready, running) {
                self.tasks[id].unchanged = false;
            }
        }
        self.update_queue(cpu);
    }

    /// attach_entity_load_avg
    fn attach_load(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        let queue = &mut self.cpus[task.cpu].avg;
        let (weight, divider) = (task.load_weight(), queue.divider());
        let avg = &mut task.avg;
        (avg.updated, avg.contrib) = (queue.updated, queue.contrib);
        avg.util_sum = avg.util * divider;
        avg.runnable_sum = avg.runnable * divider;
        let sum = avg.load * divider;
        avg.load_sum = if weight < sum { sum / weight } else { 1 };
        queue.load += avg.load;
        queue.load_sum += weight * avg.load_sum;
        queue.util += avg.util;
        queue.util_sum += avg.util_sum;
        queue.runnable += avg.runnable;
        queue.runnable_sum += avg.runnable_sum;
        task.attached = true;
    }

    /// detach_entity_load_avg
    fn detach_load(&mut self, id: usize) {
        let task = &self.tasks[id];
        let avg = &task.avg;
        let queue = &mut self.cpus[task.cpu].avg;
        queue.take_load(avg.load, task.load_weight() * avg.load_sum);
        queue.take_util(avg.util, avg.util_sum);
        queue.take_runnable(avg.runnable, avg.runnable_sum);
    }

    /// remove_entity_load_avg: a blocked task goes from its CPU.
    pub(super) fn remove_load(&mut self, id: usize) {
        let cpu = self.tasks[id].cpu;
        self.sync_load(id);
        self.forget(cpu, &self.tasks[id].avg.clone());
    }

    fn forget(&mut self, cpu: usize, avg: &Avg) {
        let (load, util, runnable) = self.cpus[cpu].removed.unwrap_or_default();
        self.cpus[cpu].removed = Some((load + avg.load, util + avg.util, runnable + avg.runnable));
    }

    /// finish_task_switch: the task that ran on `cpu` may be dead (task_dead_fair).
    pub(super) fn finish_switch(&mut self, cpu: usize) {
        if let Some(mut dead) = self.cpus[cpu].dead.take() {
            if dead.avg.go_on(self.cpus[cpu].avg.updated, 0, 0, false) {
                dead.avg.average(dead.load_weight());
            }
            self.forget(cpu, &dead.avg);
        }
    }

    /// sync_entity_load_avg
    fn sync_load(&mut self, id: usize) {
        let until = self.cpus[self.tasks[id].cpu].avg.updated;
        self.age(id, until, false, false);
    }

    /// A blocked task is going to wake on `cpu`, not where it ran (migrate_task_rq_fair).
    pub(super) fn leave_blocked(&mut self, id: usize, cpu: usize) {
        self.remove_load(id);
        // The clock of an idle runqueue stands still; of a busy one, it counts as recent enough.
        let from = self.tasks[id].cpu;
        if !self.tasks[id].avg.is_decayed() && self.cpus[from].idle {
            self.age(id, self.now, false, false);
        }
        self.tasks[id].attached = false;
        self.tasks[id].cpu = cpu;
    }

    /// The utilization that a new task is given on its CPU (post_init_entity_util_avg).
    pub(super) fn init_util(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        let queue = &self.cpus[task.cpu].avg;
        let spare = (1024 - queue.util as i64) / 2;
        if spare > 0 {
            let spare = spare as u64;
            task.avg.util = match queue.util {
                0 => spare,
                util => (util * task.load_weight() / (queue.load + 1)).min(spare),
            };
        }
        task.avg.runnable = task.avg.util;
    }

    /// update_curr, as far as it shows when the running task last ran.
    fn note_running(&mut self, cpu: usize) {
        if let Some(running) = self.cpus[cpu].running {
            self.tasks[running].exec_start = self.now;
        }
    }

    /// activate_task: `id` becomes ready on its CPU, having `migrated` or not.
    pub(super) fn activate(&mut self, id: usize, migrated: bool) {
        let cpu = self.tasks[id].cpu;
        if self.tasks[id].state != State::Delayed {
            self.cpus[cpu].util_est += self.tasks[id].util_est;
        }
        self.note_running(cpu);
        self.update_load(id);
        if !self.tasks[id].attached {
            self.attach_load(id);
        }
        if migrated {
            self.tasks[id].exec_start = 0;
        }
        self.cpus[cpu].tasks.insert(0, id);
        self.overloaded |= self.cpus[cpu].nr_running() == 2;
    }

    /// deactivate_task: `id`, which is ready, `sleeps`, or `migrates`, or neither.
    pub(super) fn deactivate(&mut self, id: usize, sleeps: bool, migrates: bool) {
        let cpu = self.tasks[id].cpu;
        if self.tasks[id].state != State::Delayed {
            let est = self.tasks[id].util_est;
            self.cpus[cpu].util_est -= est.min(self.cpus[cpu].util_est);
        }
        if sleeps {
            self.estimate(id);
        }
        self.note_running(cpu);
        self.update_load(id);
        if migrates {
            self.detach_load(id);
            self.tasks[id].attached = false;
        }
        self.cpus[cpu].tasks.retain(|&other| other != id);
    }

    /// `id`, which ran, sleeps, but stays queued (dequeue_task_fair, set_delayed).
    pub(super) fn sleep_queued(&mut self, id: usize) {
        let cpu = self.tasks[id].cpu;
        let est = self.tasks[id].util_est;
        self.cpus[cpu].util_est -= est.min(self.cpus[cpu].util_est);
        self.estimate(id);
        self.note_running(cpu);
        self.update_load(id);
    }

    /// util_est_update
    fn estimate(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        if task.unchanged {
            return;
        }
        let (old, util) = (task.util_est, task.avg.util);
        let margin = 1024 / 100;
        if old <= util {
            task.util_est = util;
        } else if old - util < margin {
            // Near enough.
        } else if util > 1024 {
            return;
        } else if util + margin >= task.avg.runnable {
            task.util_est = (4 * old - (old - util)) / 4;
        }
        task.unchanged = true;
    }

    /// Another weight (reweight_entity of a task that was taken out for it).
    pub(super) fn set_weight(&mut self, id: usize, weight: u64) {
        let task = &mut self.tasks[id];
        let queue = &mut self.cpus[task.cpu].avg;
        queue.take_load(task.avg.load, task.load_weight() * task.avg.load_sum);
        task.weight = weight;
        task.avg.load = task.load_weight() * task.avg.load_sum / task.avg.divider();
        queue.load += task.avg.load;
        queue.load_sum += task.load_weight() * task.avg.load_sum;
    }

    /// task_h_load
    pub(super) fn h_load(&mut self, id: usize) -> u64 {
        let load = self.tasks[id].avg.load;
        if !self.options.groups {
            return load;
        }
        let jiffies = self.jiffies();
        let on = &mut self.cpus[self.tasks[id].cpu];
        if on.h_load.1 != jiffies || !self.options.caches_h_load {
            on.h_load = (on.avg.load, jiffies);
        }
        load * on.h_load.0 / (on.avg.load + 1)
    }

    /// cpu_util_cfs, or with `boost` cpu_util_cfs_boost.
    pub(super) fn util(&self, cpu: usize, boost: bool) -> u64 {
        let on = &self.cpus[cpu];
        let util = if boost { on.avg.util.max(on.avg.runnable) } else { on.avg.util };
        util.max(on.util_est).min(1024)
    }

    /// sched_balance_update_blocked_averages
    pub(super) fn update_blocked(&mut self, cpu: usize) {
        self.cpus[cpu].last_blocked_update = self.jiffies();
        self.update_queue(cpu);
        let on = &mut self.cpus[cpu];
        if on.avg.load == 0 && on.avg.util == 0 {
            on.has_blocked_load = false;
        }
    }
}
