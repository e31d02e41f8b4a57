//! For hosts whose CPUs come and go: what policies are told of tasks that are bound to them.

use alloc::vec::Vec;

use crate::ids::{CpuId, CpuMask, CpuSet, TaskId};
use crate::machine::Machine;
use crate::params::TaskParams;

/// The parameters of a host's tasks, and the CPUs in use. The contract wants a CPU in use for each
/// task: one that has none may run anywhere, as kernels decide, too, as soon as they have to, and
/// where it was as soon as it can.
#[derive(Debug)]
pub struct Affinities {
    /// By task, as the host has said them; `None`: there is no task of this number.
    params: Vec<Option<TaskParams>>,
    online: CpuMask,
}

crate::canonical!(Affinities { params, online });

impl Affinities {
    /// Without tasks; all CPUs of `machine` are in use.
    pub fn new(machine: &Machine) -> Affinities {
        Affinities { params: Vec::new(), online: CpuMask::first(machine.cpus()) }
    }

    /// The CPUs in use.
    pub fn online(&self) -> &CpuMask {
        &self.online
    }

    /// The parameters of `task` as the host has said them; `None`: there is no such task.
    pub fn params(&self, task: TaskId) -> Option<&TaskParams> {
        self.params.get(task.index())?.as_ref()
    }

    /// `task` is there and has these parameters. Returns those that the policy is to be told.
    pub fn set(&mut self, task: TaskId, params: TaskParams) -> TaskParams {
        if self.params.len() <= task.index() {
            self.params.resize_with(task.index() + 1, || None);
        }
        let known = usable(&params, &self.online);
        self.params[task.index()] = Some(params);
        known
    }

    /// `task` has gone. Does not allocate.
    pub fn remove(&mut self, task: TaskId) {
        self.params[task.index()] = None;
    }

    /// `cpu` comes into use or goes out of it. Returns the CPUs that were in use before; `None`: it
    /// changes nothing. The policy is to be told of [tasks](Affinities::next_changed) before that
    /// `cpu` goes, and after that it has come.
    pub fn set_online(&mut self, cpu: CpuId, online: bool) -> Option<CpuMask> {
        if self.online.contains(cpu) == online {
            return None;
        }
        let before = self.online.clone();
        if online {
            self.online.insert(cpu);
        } else {
            self.online.remove(cpu);
        }
        Some(before)
    }

    /// Of the tasks from `first` on, the first that has lost its last CPU since those of `before`
    /// were in use, or has one again, and what the policy is to be told of it.
    pub fn next_changed(&self, before: &CpuMask, first: TaskId) -> Option<(TaskId, TaskParams)> {
        let known = self.params.iter().enumerate().skip(first.index());
        let mut tasks = known.filter_map(|(index, params)| Some((index, params.as_ref()?)));
        let (index, params) = tasks.find(|(_, params)| {
            is_stranded(&params.affinity, before) != is_stranded(&params.affinity, &self.online)
        })?;
        Some((TaskId(index as u32), usable(params, &self.online)))
    }
}

/// Whether none of the CPUs in use is allowed.
fn is_stranded(affinity: &CpuSet, online: &CpuMask) -> bool {
    !affinity.is_all() && !online.meets(affinity)
}

fn usable(params: &TaskParams, online: &CpuMask) -> TaskParams {
    let mut params = params.clone();
    if is_stranded(&params.affinity, online) {
        params.affinity = CpuSet::All;
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_without_a_cpu_may_run_anywhere_until_they_have_one() {
        let mut affinities = Affinities::new(&Machine::flat(3).unwrap());
        let bound = |cpus: &[u16]| TaskParams {
            affinity: CpuSet::of(cpus.iter().map(|cpu| CpuId(*cpu))),
            ..TaskParams::default()
        };
        let anywhere = TaskParams::default();
        for (task, cpus) in [(0, &[0, 1][..]), (1, &[1]), (2, &[2]), (3, &[1])] {
            assert_eq!(affinities.set(TaskId(task), bound(cpus)), bound(cpus));
        }
        affinities.remove(TaskId(3));
        assert_eq!(affinities.set_online(CpuId(1), true), None);
        let all = affinities.set_online(CpuId(1), false).unwrap();
        let changed = affinities.next_changed(&all, TaskId(0));
        assert_eq!(changed, Some((TaskId(1), anywhere.clone())));
        assert_eq!(affinities.next_changed(&all, TaskId(2)), None);
        assert_eq!(affinities.set(TaskId(4), bound(&[1])), anywhere);
        assert_eq!(affinities.params(TaskId(4)), Some(&bound(&[1])));
        let few = affinities.set_online(CpuId(1), true).unwrap();
        let changed = affinities.next_changed(&few, TaskId(2));
        assert_eq!(changed, Some((TaskId(4), bound(&[1]))));
        assert_eq!((affinities.params(TaskId(3)), affinities.params(TaskId(9))), (None, None));
    }
}
