//! From what a file says to its model.

use super::{Event, MAX_OPS, MAX_TASKS, Phase, Reader, Rounds, Task};
use crate::import::{ImportError, excerpt};
use crate::model::{Model, ModelTask, Script};
use crate::nearest::nearest;
use crate::{Barrier, NewTask, Op, Sizes};
use anysched_core::{CpuSet, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Reader<'_> {
    pub(super) fn build(mut self) -> Result<Model, ImportError> {
        let tasks = std::mem::take(&mut self.tasks);
        let mut names = BTreeMap::new();
        for (index, task) in tasks.iter().enumerate() {
            names.entry(task.name.as_str()).or_insert(index);
        }
        let forks = self.forks(&tasks, &names)?;
        let party = self.parties(&tasks);
        self.warn_of_timers(&tasks);
        let mut model = Model { until: self.duration.map(|d| Time::ZERO + d), ..Model::default() };
        // Forked tasks come first, so that tasks that fork them know their numbers.
        model.tasks.resize_with(forks.len(), ModelTask::default);
        let mut ops = 0;
        for (index, task) in tasks.iter().enumerate() {
            let script = Arc::new(self.script(task, &names, &forks, &mut ops)?);
            if task.instances.saturating_add(model.tasks.len() as u64) > MAX_TASKS {
                return self
                    .error(task.at, format!("with this there are more than {MAX_TASKS} tasks"));
            }
            for instance in 0..task.instances {
                let name = match task.instances {
                    1 => task.name.clone(),
                    _ => format!("{}-{instance}", task.name),
                };
                let (new, arrives) = (task.new_task(name), Some(Time::ZERO + task.delay));
                model.tasks.push(ModelTask { new, arrives, script: script.clone() });
            }
            if let Some(&number) = forks.get(&index) {
                if task.delay > Span::ZERO {
                    self.warn("`delay` has no effect on a task that is forked");
                }
                let mut new = task.new_task(task.name.clone());
                new.deadline = None;
                model.tasks[number as usize] = ModelTask { new, arrives: None, script };
            }
        }
        for name in self.signalled.difference(&self.waited).cloned().collect::<Vec<_>>() {
            self.warn(format!("nobody waits for `{}`, which is signalled", excerpt(&name)));
        }
        model.sizes = Sizes {
            channels: self.channels.0.len() as u32,
            locks: self.locks.0.len() as u32,
            barriers: party,
        };
        let mut warnings: Vec<_> = self.warnings.into_iter().collect();
        warnings.sort_by_key(|&(_, (place, _))| place);
        let times = |(what, (_, count))| match count {
            1 => what,
            _ => format!("{what} ({count} times)"),
        };
        model.warnings = warnings.into_iter().map(times).collect();
        Ok(model)
    }

    /// The tasks that are forked, by index in the file, and their numbers.
    fn forks(
        &self,
        tasks: &[Task],
        names: &BTreeMap<&str, usize>,
    ) -> Result<BTreeMap<usize, u32>, ImportError> {
        let mut forks = BTreeMap::new();
        for event in tasks.iter().flat_map(Task::events) {
            let Event::Fork { at, name } = event else { continue };
            let Some(&index) = names.get(name.as_str()) else {
                let near = nearest(name, names.keys().copied());
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                return self.error(*at, format!("there is no task `{}`{hint}", excerpt(name)));
            };
            let next = forks.len() as u32;
            forks.entry(index).or_insert(next);
        }
        Ok(forks)
    }

    /// How many meet at each barrier: as rt-app counts, every mention by every instance.
    fn parties(&mut self, tasks: &[Task]) -> Vec<u32> {
        let mut parties: Vec<u32> = Vec::new();
        for task in tasks {
            for event in task.events() {
                let Event::Barrier(name) = event else { continue };
                let number = self.barriers.of(name) as usize;
                parties.resize(parties.len().max(number + 1), 0);
                let instances = task.instances.min(u64::from(u32::MAX)) as u32;
                parties[number] = parties[number].saturating_add(instances);
            }
        }
        // No task comes to a barrier of tasks without instances, unless they are forked.
        parties.into_iter().map(|party| party.max(1)).collect()
    }

    fn warn_of_timers(&mut self, tasks: &[Task]) {
        let mut users: BTreeMap<&str, u64> = BTreeMap::new();
        for task in tasks {
            let references = task.timers();
            if references.len() > 1 {
                let name = excerpt(&task.name);
                self.warn(format!("the timers of `{name}` are taken as one, firing in turn"));
            }
            for reference in references {
                let count = users.entry(reference).or_default();
                *count = count.saturating_add(task.instances.max(1));
            }
        }
        for (reference, users) in users {
            if users > 1 && !reference.starts_with("unique") {
                let name = excerpt(reference);
                self.warn(format!("timer `{name}` has {users} users; each has its own here"));
            }
        }
    }

    fn script(
        &mut self,
        task: &Task,
        names: &BTreeMap<&str, usize>,
        forks: &BTreeMap<usize, u32>,
        total: &mut u64,
    ) -> Result<Script, ImportError> {
        let mut phases = Vec::new();
        let affinities = task.affinities();
        let moves = affinities.windows(2).any(|pair| pair[0] != pair[1]);
        for (phase, affinity) in task.phases.iter().zip(affinities) {
            let mut head = Vec::new();
            head.extend(moves.then_some(Op::SetAffinity(affinity)));
            head.extend(phase.nice.map(Op::SetNice));
            let mut body = Vec::new();
            for event in &phase.events {
                body.push(self.op(event, task, names, forks));
            }
            phases.push((phase.rounds, head, body));
        }
        let mut rounds = task.rounds;
        if rounds == Rounds::Some(0) {
            return Ok(Script::default());
        }
        if let [(inner, head, _)] = &mut phases[..]
            && head.is_empty()
        {
            // A single phase needs no unrolling.
            *inner = inner.times(std::mem::replace(&mut rounds, Rounds::Some(1)));
        }
        let endless = phases.iter().position(|(rounds, ..)| *rounds == Rounds::Endless);
        if let Some(endless) = endless {
            if endless + 1 < phases.len() {
                let name = excerpt(&task.name);
                self.warn(format!("`{name}` never leaves phase {}", endless + 1));
            }
            phases.truncate(endless + 1);
        }
        let last_repeats = endless.is_some() || rounds == Rounds::Some(1);
        *total = phases.iter().enumerate().fold(*total, |total, (index, (rounds, head, body))| {
            let rounds = match rounds {
                Rounds::Some(rounds) if !(last_repeats && index + 1 == phases.len()) => *rounds,
                _ => 1,
            };
            let body = rounds.saturating_mul(body.len() as u64);
            total.saturating_add(body).saturating_add(head.len() as u64)
        });
        if *total > MAX_OPS {
            return self.error(task.at, format!("with this there are more than {MAX_OPS} events"));
        }
        let mut script = unrolled(phases, rounds, last_repeats);
        script.slips = task.slips();
        if script.repeat_from == script.ops.len() {
            script.rounds = 1;
        }
        self.bound(&mut script);
        Ok(script)
    }

    /// Bounds what is repeated forever by how often it fits into the duration at best.
    fn bound(&self, script: &mut Script) {
        let (Some(duration), u64::MAX) = (self.duration, script.rounds) else { return };
        let (mut busy, mut grid) = (Span::ZERO, Span::ZERO);
        for op in &script.ops[script.repeat_from..] {
            match op {
                Op::Run(span) | Op::Sleep(span) => busy += *span,
                Op::Release { at, .. } => grid += Span(at.0),
                _ => {}
            }
        }
        let round = busy.max(grid);
        if round > Span::ZERO {
            script.rounds = duration.0.div_ceil(round.0);
        }
    }

    fn op(
        &mut self,
        event: &Event,
        task: &Task,
        names: &BTreeMap<&str, usize>,
        forks: &BTreeMap<usize, u32>,
    ) -> Op {
        match event {
            Event::Do(op) => op.clone(),
            Event::Timer { period, .. } => {
                let deadline = task.implicit_period().map(|period| {
                    let deadline = task.relative_deadline.unwrap_or(period);
                    Time::ZERO + Span(period.0.saturating_add(deadline.0).min(u64::MAX - 1))
                });
                Op::Release { at: Time::ZERO + *period, deadline }
            }
            Event::Barrier(name) => Op::Meet(Barrier(self.barriers.of(name))),
            Event::Fork { name, .. } => {
                let number = names.get(name.as_str()).and_then(|index| forks.get(index));
                Op::Spawn(number.copied().unwrap_or_default())
            }
            Event::Suspend { named } => {
                let old = named
                    .as_deref()
                    .filter(|name| !names.contains_key(name) && self.signalled.contains(*name));
                match (old, named) {
                    (Some(_), _) => self.warn(
                        "`suspend` waits on a name that is no task's, as in \
                                               files for old versions",
                    ),
                    (None, Some(_)) => self.warn("the value of `suspend` has no effect"),
                    (None, None) => {}
                }
                Op::Wait(self.waited(old.unwrap_or(&task.name)))
            }
        }
    }
}

/// The script of phases of (rounds, what is done once, what is done in every round).
fn unrolled(
    mut phases: Vec<(Rounds, Vec<Op>, Vec<Op>)>,
    rounds: Rounds,
    last_repeats: bool,
) -> Script {
    let mut script = Script::default();
    let last = if last_repeats { phases.pop() } else { None };
    for (rounds, head, body) in phases {
        script.ops.extend(head);
        for _ in 0..rounds.count() {
            script.ops.extend_from_slice(&body);
        }
    }
    match last {
        Some((rounds, head, body)) => {
            script.ops.extend(head);
            script.repeat_from = script.ops.len();
            script.ops.extend(body);
            script.rounds = rounds.count();
        }
        None => script.rounds = rounds.count(),
    }
    script
}

impl Task {
    fn events(&self) -> impl Iterator<Item = &Event> {
        self.phases.iter().flat_map(|phase| &phase.events)
    }

    /// The timers it uses.
    fn timers(&self) -> BTreeSet<&str> {
        self.events()
            .filter_map(|event| match event {
                Event::Timer { reference, .. } => Some(reference.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The period of its only timer, if it has one phase and uses the timer once in it.
    fn implicit_period(&self) -> Option<Span> {
        let mut timers = self.events().filter_map(|event| match event {
            Event::Timer { period, .. } => Some(*period),
            _ => None,
        });
        let period = timers.next().filter(|&period| period > Span::ZERO);
        period.filter(|_| timers.next().is_none() && self.phases.len() == 1)
    }

    /// Whether it has timers, all of them in relative mode.
    fn slips(&self) -> bool {
        let timer = |event: &Event| matches!(event, Event::Timer { .. });
        let absolute = |event: &Event| matches!(event, Event::Timer { absolute: true, .. });
        self.events().any(timer) && !self.events().any(absolute)
    }

    /// The CPUs that each phase may use.
    fn affinities(&self) -> Vec<CpuSet> {
        let of = |phase: &Phase| phase.cpus.clone().or(self.cpus.clone()).unwrap_or_default();
        self.phases.iter().map(of).collect()
    }

    fn new_task(&self, name: String) -> NewTask {
        let implicit = self.implicit_period();
        NewTask {
            name: Some(name.into()),
            nice: self.nice,
            affinity: self.affinities().swap_remove(0),
            priority: self.priority,
            period: self.period.or(implicit),
            budget: self.budget,
            relative_deadline: self.relative_deadline.or(implicit),
            deadline: implicit
                .map(|period| Time::ZERO + self.delay + self.relative_deadline.unwrap_or(period)),
            ..NewTask::default()
        }
    }
}
