//! What may be left out of a case, or said more simply.

use crate::shrink::case::{Case, digits, text_node, whole_node};
use crate::shrink::search::Search;
use crate::spec::error::NOWHERE;
use crate::spec::tree::{Entry, Node, Table, Value};
use anysched_core::{CpuId, CpuSet, DomainId, Span, Time};
use anysched_workload::dist::Dist;
use anysched_workload::model::{Model, ModelTask};
use anysched_workload::{NewTask, Op};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Makes the best case of `search` as small as can be, or until the budget is used up.
pub(crate) fn shrink(search: &mut Search<'_, '_, Case>) {
    // What is cheap and leaves much out first.
    search.take_all(simple);
    loop {
        let mut any = search.take_list(tasks, without_tasks);
        any |= search.take_all(fewer_cpus);
        any |= search.take_list(
            |case| case.list("workload").len(),
            |case, range| without_items(case, "workload", range),
        );
        any |= search.take_list(
            |case| case.list("vm").len(),
            |case, range| without_items(case, "vm", range),
        );
        any |= search.take_all(removals);
        any |= search.take_list(signals, without_signals);
        let mut task = 0;
        while task < tasks(&search.best) {
            any |= search
                .take_list(|case| ops(case, task), |case, range| without_ops(case, task, range));
            task += 1;
        }
        any |= search.take_all(merged);
        any |= search.take_all(joined);
        any |= search.take_all(hoisted);
        any |= search.take_all(uniform);
        any |= search.take_all(usual_attributes);
        any |= search.take_all(simple);
        any |= take_values(search);
        if !any || search.is_over() {
            return;
        }
    }
}

fn tasks(case: &Case) -> usize {
    case.model.as_ref().map_or(0, |model| model.tasks.len())
}

fn signals(case: &Case) -> usize {
    case.model.as_ref().map_or(0, |model| model.signals.len())
}

fn ops(case: &Case, task: usize) -> usize {
    let task = case.model.as_ref().and_then(|model| model.tasks.get(task));
    task.map_or(0, |task| task.script.ops.len())
}

/// `case` with its model changed.
fn with_model(case: &Case, change: impl FnOnce(&mut Model)) -> Case {
    let mut case = case.clone();
    if let Some(model) = &mut case.model {
        change(model);
    }
    case
}

/// Changes the operations of a task, of which other tasks may have the same list.
fn change_ops(task: &mut ModelTask, change: impl FnOnce(&mut Vec<Op>)) {
    let mut script = (*task.script).clone();
    change(&mut script.ops);
    task.script = Arc::new(script);
}

fn without_tasks(case: &Case, range: Range<usize>) -> Case {
    with_model(case, |model| drop_tasks(model, range))
}

fn drop_tasks(model: &mut Model, range: Range<usize>) {
    let place = |task: usize| match task {
        task if range.contains(&task) => None,
        task if task >= range.end => Some(task - range.len()),
        task => Some(task),
    };
    for task in &mut model.tasks {
        let spawns = task.script.ops.iter().any(|op| matches!(op, Op::Spawn(_)));
        if spawns {
            change_ops(task, |ops| {
                let moved = ops.iter().filter_map(|op| match op {
                    Op::Spawn(what) => Some(Op::Spawn(place(*what as usize)? as u32)),
                    op => Some(op.clone()),
                });
                *ops = moved.collect();
            });
        }
    }
    model.tasks.drain(range);
}

fn without_items(case: &Case, key: &'static str, range: Range<usize>) -> Case {
    let mut case = case.clone();
    let mut items = case.list(key).to_vec();
    items.drain(range);
    match items.is_empty() {
        true => case.remove(key),
        false => case.set(key, Node { value: Value::List(items), at: NOWHERE }),
    }
    case
}

fn without_signals(case: &Case, range: Range<usize>) -> Case {
    with_model(case, |model| drop(model.signals.drain(range)))
}

fn without_ops(case: &Case, task: usize, range: Range<usize>) -> Case {
    with_model(case, |model| {
        change_ops(&mut model.tasks[task], |ops| drop(ops.drain(range)));
    })
}

/// Everything at once that may be simple.
fn simple(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    let mut bare = case.clone();
    let machine = case.get("machine").and_then(Node::as_table);
    let cpus = machine.map(|machine| {
        let keeps = |entry: &&Entry| ["cpus", "topology"].contains(&entry.key.as_str());
        machine.0.iter().filter(keeps).cloned().collect()
    });
    if let Some(cpus) = cpus {
        bare.set("machine", Node { value: Value::Table(Table(cpus)), at: NOWHERE });
        found.push(bare);
    }
    if case.model.is_some() {
        found.push(with_model(case, |model| {
            model.tasks.iter_mut().for_each(|task| task.new = NewTask::default());
        }));
        found.push(with_model(case, |model| {
            let arrivals = model.tasks.iter_mut().filter_map(|task| task.arrives.as_mut());
            arrivals.for_each(|at| *at = Time::ZERO);
        }));
        found.push(with_model(case, |model| each_time(model, |span| *span = rounded(*span))));
        found.push(with_model(case, |model| {
            each_time(model, |span| *span = Span::from_ms(span.0.min(1)));
        }));
    }
    found
}

/// Lets `change` see all times of a model.
fn each_time(model: &mut Model, mut change: impl FnMut(&mut Span)) {
    for task in &mut model.tasks {
        if let Some(at) = &mut task.arrives {
            change_time(at, &mut change);
        }
        change_ops(task, |ops| {
            for op in ops {
                match op {
                    Op::Run(span) | Op::Sleep(span) => change(span),
                    Op::Release { at, deadline } => {
                        change_time(at, &mut change);
                        if let Some(deadline) = deadline {
                            change_time(deadline, &mut change);
                        }
                    }
                    _ => {}
                }
            }
        });
        let NewTask { period, budget, relative_deadline, .. } = &mut task.new;
        [period, budget, relative_deadline].into_iter().flatten().for_each(&mut change);
    }
    for (at, _) in &mut model.signals {
        change_time(at, &mut change);
    }
    model.signals.sort();
}

fn change_time(at: &mut Time, change: &mut impl FnMut(&mut Span)) {
    let mut span = at.since(Time::ZERO);
    change(&mut span);
    *at = Time::ZERO + span;
}

/// To one digit, away from 0.
fn rounded(span: Span) -> Span {
    let unit = 10_u64.pow(span.0.max(1).ilog10());
    Span(((span.0 + unit / 2) / unit).max(u64::from(span.0 > 0)) * unit)
}

/// Fewer CPUs, the fewest first; what is about others is left out, or about the last one.
fn fewer_cpus(case: &Case) -> Vec<Case> {
    let fewer = |(cpus, folds): (usize, bool)| {
        let last = cpus as i64 - 1;
        let mut fewer = case.clone();
        if let Value::Table(root) = &mut fewer.root.value
            && let Some(machine) = root.0.iter_mut().find(|entry| entry.key == "machine")
            && let Value::Table(machine) = &mut machine.node.value
        {
            let keeps = |key: &str| !["cpus", "topology", "capacity", "hotplug"].contains(&key);
            let hotplug = machine.get("hotplug").and_then(Node::as_list).unwrap_or_default();
            let there = |node: &Node| {
                let mut node = node.clone();
                let Value::Table(table) = &mut node.value else { return None };
                let Value::Integer(cpu) = table.get("cpu")?.value else { return None };
                table.set("cpu", &NOWHERE, whole_node(cpu.min(last)));
                (folds || cpu <= last).then_some(node)
            };
            let hotplug: Vec<Node> = hotplug.iter().filter_map(there).collect();
            machine.0.retain(|entry| keeps(&entry.key));
            machine.set("cpus", &NOWHERE, whole_node(cpus as i64));
            machine.0.rotate_right(1);
            if !hotplug.is_empty() {
                let hotplug = Node { value: Value::List(hotplug), at: NOWHERE };
                machine.set("hotplug", &NOWHERE, hotplug);
            }
        }
        if let Some(model) = &mut fewer.model {
            bind(model, cpus, folds);
        }
        fewer
    };
    let most = case.cpus();
    let flat =
        case.get("machine").and_then(Node::as_table).is_some_and(|m| m.get("cpus").is_some());
    // As many CPUs that share nothing are simpler, too.
    let last = if flat { most.saturating_sub(1) } else { most.min(64) };
    let steps = (1..=last).filter(|cpus| *cpus <= 8 || cpus.is_power_of_two() || *cpus == last);
    steps.flat_map(|cpus| [(cpus, false), (cpus, true)]).map(fewer).collect()
}

/// Takes CPUs from `cpus` on out of all affinities, or has them be the last one.
fn bind(model: &mut Model, cpus: usize, folds: bool) {
    let within = |set: &CpuSet| {
        if set.is_all() {
            return CpuSet::All;
        }
        let last = CpuId(cpus as u16 - 1);
        let kept = set.iter().filter(|cpu| folds || *cpu <= last).map(|cpu| cpu.min(last));
        let set = CpuSet::of(kept);
        if set.iter().count() == 0 || set.iter().count() == cpus { CpuSet::All } else { set }
    };
    for task in &mut model.tasks {
        task.new.affinity = within(&task.new.affinity);
        change_ops(task, |ops| {
            for op in ops {
                if let Op::SetAffinity(set) = op {
                    *set = within(set);
                }
            }
        });
    }
}

/// The work of one task done by another, so that there is one less.
fn merged(case: &Case) -> Vec<Case> {
    /// Of more tasks than so many, not all pairs are tried.
    const MOST: usize = 16;
    let Some(model) = &case.model else { return Vec::new() };
    let work = |task: &ModelTask| {
        let runs = task.script.ops.iter().filter_map(|op| match op {
            Op::Run(span) => Some(*span),
            _ => None,
        });
        runs.fold(Span::ZERO, |sum, span| sum + span)
    };
    let count = model.tasks.len().min(MOST);
    let pairs = (0..count).flat_map(|to| (0..count).map(move |from| (to, from)));
    let pairs = pairs.filter(|(to, from)| to != from);
    let join = |(to, from): (usize, usize)| {
        let more = work(&model.tasks[from]);
        with_model(case, |model| {
            change_ops(&mut model.tasks[to], |ops| {
                if let Some(Op::Run(span)) = ops.iter_mut().find(|op| matches!(op, Op::Run(_))) {
                    *span += more;
                }
            });
            drop_tasks(model, from..from + 1);
        })
    };
    pairs.map(join).collect()
}

/// What a task does as turns of one length, as `interactive` has them.
fn uniform(case: &Case) -> Vec<Case> {
    let Some(model) = &case.model else { return Vec::new() };
    let first = |ops: &[Op], of: fn(&Op) -> Option<Span>| {
        ops.iter().filter_map(of).find(|span| *span > Span::ZERO).unwrap_or(Span::from_ms(1))
    };
    let run = |op: &Op| if let Op::Run(span) = op { Some(*span) } else { None };
    let sleep = |op: &Op| if let Op::Sleep(span) = op { Some(*span) } else { None };
    let mut found = Vec::new();
    for (number, task) in model.tasks.iter().enumerate() {
        let ops = &task.script.ops;
        let most = ops.iter().filter(|op| sleep(op).is_some()).count();
        let mut turns = vec![0, 1, 2, most];
        turns.retain(|turns| *turns <= most.max(1));
        for turns in turns {
            let (run, sleep) = (Op::Run(first(ops, run)), Op::Sleep(first(ops, sleep)));
            let begin = [run.clone(), sleep].into_iter().cycle().take(2 * turns);
            let steps: Vec<Op> = begin.chain([run]).collect();
            found.push(with_model(case, |model| {
                change_ops(&mut model.tasks[number], |ops| *ops = steps);
            }));
        }
    }
    found
}

/// Runs of a task that follow each other, as one.
fn joined(case: &Case) -> Vec<Case> {
    let join = |task: usize| {
        with_model(case, |model| {
            change_ops(&mut model.tasks[task], |ops| {
                ops.dedup_by(|next, run| match (run, next) {
                    (Op::Run(run), Op::Run(next)) => {
                        *run += *next;
                        true
                    }
                    _ => false,
                });
            });
        })
    };
    (0..tasks(case)).map(join).collect()
}

/// What a task sets about itself, as it is from the start.
fn hoisted(case: &Case) -> Vec<Case> {
    let Some(model) = &case.model else { return Vec::new() };
    let mut found = Vec::new();
    for (number, task) in model.tasks.iter().enumerate() {
        for (at, op) in task.script.ops.iter().enumerate() {
            let set: &dyn Fn(&mut NewTask) = match op {
                Op::SetAffinity(set) => &|new| new.affinity = set.clone(),
                Op::SetNice(nice) => &|new| new.nice = *nice,
                _ => continue,
            };
            found.push(with_model(case, |model| {
                let task = &mut model.tasks[number];
                set(&mut task.new);
                change_ops(task, |ops| drop(ops.remove(at)));
            }));
        }
    }
    found
}

/// One parameter of a task as it usually is.
fn usual_attributes(case: &Case) -> Vec<Case> {
    let changes: [fn(&mut NewTask); 11] = [
        |new| new.name = None,
        |new| new.nice = 0,
        |new| new.affinity = CpuSet::All,
        |new| new.domain = DomainId::default(),
        |new| new.priority = 0,
        |new| new.period = None,
        |new| new.budget = None,
        |new| new.relative_deadline = None,
        |new| new.deadline = None,
        |new| new.key = None,
        |new| new.intensity = 0,
    ];
    let tasks = 0..tasks(case);
    let all = tasks.flat_map(|task| changes.iter().map(move |change| (task, change)));
    all.map(|(task, change)| with_model(case, |model| change(&mut model.tasks[task].new))).collect()
}

/// The case without one of the things that are said in it.
fn removals(case: &Case) -> Vec<Case> {
    let mut paths = Vec::new();
    walk(&case.root, &mut Vec::new(), &mut |path, _| paths.push(path.to_vec()));
    let is_whole = |path: &[usize]| {
        let key = case.root.as_table().and_then(|table| table.0.get(path[0]));
        let fixed = ["question", "seed", "claim"];
        key.is_none_or(|entry| fixed.contains(&entry.key.as_str()))
    };
    paths.retain(|path| !path.is_empty() && !is_whole(path));
    let without = |path: &Vec<usize>| {
        let mut case = case.clone();
        let (last, parents) = path.split_last()?;
        match &mut at(&mut case.root, parents)?.value {
            Value::Table(table) => drop(table.0.remove(*last)),
            Value::List(items) => drop(items.remove(*last)),
            _ => return None,
        }
        Some(case)
    };
    paths.iter().filter_map(without).collect()
}

/// Calls `visit` with all values below `node`, by position.
fn walk(node: &Node, path: &mut Vec<usize>, visit: &mut impl FnMut(&[usize], &Node)) {
    visit(path, node);
    let inner: Vec<&Node> = match &node.value {
        Value::Table(table) => table.0.iter().map(|entry| &entry.node).collect(),
        Value::List(items) => items.iter().collect(),
        _ => return,
    };
    for (number, node) in inner.into_iter().enumerate() {
        path.push(number);
        walk(node, path, visit);
        path.pop();
    }
}

fn at<'a>(node: &'a mut Node, path: &[usize]) -> Option<&'a mut Node> {
    let Some((first, rest)) = path.split_first() else { return Some(node) };
    match &mut node.value {
        Value::Table(table) => at(&mut table.0.get_mut(*first)?.node, rest),
        Value::List(items) => at(items.get_mut(*first)?, rest),
        _ => None,
    }
}

/// Simpler values in place of each.
fn take_values(search: &mut Search<'_, '_, Case>) -> bool {
    let mut any = search.take_all(simpler_values);
    // By position, since there are many: a model may have thousands of times.
    let mut place = 0;
    while place < times(&search.best) && !search.is_over() {
        any |= search.take_all(|case| {
            let of = time(case, place);
            simpler(of).into_iter().map(|to| with_time(case, place, to)).collect()
        });
        place += 1;
    }
    any
}

fn times(case: &Case) -> usize {
    let mut times = 0;
    with_model(case, |model| each_time(model, |_| times += 1));
    times
}

fn time(case: &Case, place: usize) -> Span {
    let (mut number, mut found) = (0, Span::ZERO);
    with_model(case, |model| {
        each_time(model, |span| {
            if number == place {
                found = *span;
            }
            number += 1;
        });
    });
    found
}

fn with_time(case: &Case, place: usize, to: Span) -> Case {
    let mut number = 0;
    with_model(case, |model| {
        each_time(model, |span| {
            if number == place {
                *span = to;
            }
            number += 1;
        });
    })
}

/// Times that are simpler or shorter.
fn simpler(span: Span) -> Vec<Span> {
    let round = rounded(span);
    let unit = 10_u64.pow(round.0.max(1).ilog10());
    let down = |span: Span| Span(span.0 / unit * unit);
    let all = [
        Span::ZERO,
        Span::from_ms(1),
        rounded(Span(span.0 / 10)),
        rounded(Span(span.0 / 2)),
        down(span),
        round,
        Span(round.0 + unit),
        Span(round.0.saturating_sub(unit)),
        // To two digits.
        Span(span.0 / (unit / 10).max(1) * (unit / 10).max(1)),
    ];
    let is_simpler = |to: &Span| (digits(*to), to.0) < (digits(span), span.0);
    let mut simpler: Vec<Span> = all.into_iter().filter(is_simpler).collect();
    simpler.dedup();
    simpler
}

/// Simpler values in place of one that is written.
fn simpler_values(case: &Case) -> Vec<Case> {
    let mut changes: Vec<(Vec<usize>, Node)> = Vec::new();
    walk(&case.root, &mut Vec::new(), &mut |path, node| {
        let fixed = ["question", "seed", "claim"];
        let key = path.first().and_then(|first| case.root.as_table()?.0.get(*first));
        if key.is_none_or(|entry| fixed.contains(&entry.key.as_str())) {
            return;
        }
        let mut change = |to: Node| changes.push((path.to_vec(), to));
        match &node.value {
            Value::Integer(number) if *number > 1 => {
                let mut fewer = vec![1, number / 2, number - 1];
                fewer.dedup();
                fewer.into_iter().for_each(|number| change(whole_node(number)));
            }
            Value::Text(text) => match (Span::parse(text), Dist::parse(text, Path::new(""))) {
                (Ok(span), _) => {
                    simpler(span).into_iter().for_each(|span| change(text_node(span.to_string())))
                }
                (_, Ok(dist)) => {
                    let mean = Span(dist.mean() as u64);
                    let spans = [mean].into_iter().chain(simpler(mean));
                    spans.for_each(|span| change(text_node(span.to_string())));
                }
                _ => {}
            },
            _ => {}
        }
    });
    let changed = |(path, to): (Vec<usize>, Node)| {
        let mut case = case.clone();
        *at(&mut case.root, &path)? = to;
        Some(case)
    };
    changes.into_iter().filter_map(changed).collect()
}
