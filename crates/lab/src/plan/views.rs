//! What of a run has rows of its own: the whole machine, each kind of virtual machine, and the
//! workloads and tasks of each of them.

use crate::plan::{Plan, PlannedGroup};
use crate::results::{Group, Run};
use crate::spec::columns;
use crate::spec::parts::{ALL, TASK, VM, WORKLOAD};
use crate::spec::sweep::AxisValue;
use anysched_measure::{Metrics, Part, PartMetrics};
use std::collections::HashSet;

/// One of the views of a group: its values of the axes of [`Plan::view_axes`].
pub(crate) type View = Vec<String>;

impl Plan {
    /// The axes by which views are told apart.
    pub(crate) fn view_axes(&self) -> Vec<&'static str> {
        let has_vms = self.groups.iter().any(|group| !group.vms.is_empty());
        let axes = [(has_vms, VM), (self.apart.loads, WORKLOAD), (self.apart.tasks, TASK)];
        axes.into_iter().filter(|(there, _)| *there).map(|(_, axis)| axis).collect()
    }

    /// The views that every run of a group has. Its tasks are known when it has been made.
    pub(crate) fn views(&self, group: usize) -> Vec<View> {
        let PlannedGroup { loads, vms, .. } = &self.groups[group];
        let axes = self.view_axes();
        let machines = [(ALL, &loads.names[..])].into_iter().chain(vms.kinds());
        let mut views = Vec::new();
        for (name, loads) in machines.filter(|(name, _)| *name == ALL || axes.contains(&VM)) {
            views.push(view(&axes, name, None));
            if self.apart.loads {
                let of_load = |load: &String| view(&axes, name, Some((WORKLOAD, load)));
                views.extend(loads.iter().map(of_load));
            }
        }
        views
    }

    /// A group as one of its views describes it.
    pub(crate) fn viewed(&self, group: usize, view: &View) -> Group {
        let mut viewed = self.groups[group].described.clone();
        let values = view.iter().cloned().map(AxisValue::Text);
        viewed.axes.extend(self.view_axes().into_iter().map(String::from).zip(values));
        viewed
    }

    /// What a run shows of each of the views of its group, those that every run has first.
    pub(crate) fn views_of(&self, metrics: &Metrics, group: usize, index: u32) -> Vec<(View, Run)> {
        let (axes, seed) = (self.view_axes(), self.seed(group, index));
        let run = |metrics: &Metrics| Run { index, seed, values: columns::measure(metrics) };
        let PlannedGroup { loads, vms, .. } = &self.groups[group];
        let mut shown = Vec::new();
        let mut show = |name: &str, names: &[String], metrics: &Metrics| {
            shown.push((view(&axes, name, None), run(metrics)));
            let mut tasks = TaskNames::default();
            for PartMetrics { part, inside } in &metrics.parts {
                let part = match part {
                    Part::Load(number) => (WORKLOAD, names[*number].clone()),
                    Part::Task { serial, name } => (TASK, tasks.name(*serial, name.as_deref())),
                };
                shown.push((view(&axes, name, Some((part.0, &part.1))), run(inside)));
            }
        };
        show(ALL, &loads.names, metrics);
        if axes.contains(&VM) {
            for (kind, (name, names)) in vms.kinds().enumerate() {
                let mut of_kind = Metrics::from_zero();
                let machines = metrics.vms.iter().enumerate();
                machines
                    .filter(|&(number, _)| vms.kind_of(number) == kind)
                    .for_each(|(_, vm)| of_kind.merge(&vm.inside));
                show(name, names, &of_kind);
            }
        }
        shown
    }
}

fn view(axes: &[&str], vm: &str, part: Option<(&str, &str)>) -> View {
    let value = |axis: &&str| match part {
        _ if *axis == VM => vm,
        Some((of, name)) if of == *axis => name,
        _ => ALL,
    };
    axes.iter().map(|axis| value(axis).to_string()).collect()
}

/// What tasks are called: by their names, and by their numbers where they have none or share one.
#[derive(Default)]
struct TaskNames(HashSet<String>);

impl TaskNames {
    fn name(&mut self, serial: u64, name: Option<&str>) -> String {
        let Some(name) = name else { return serial.to_string() };
        let is_first = self.0.insert(name.to_string());
        if is_first { name.to_string() } else { format!("{name}-{serial}") }
    }
}
