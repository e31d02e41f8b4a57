//! Tasks as rt-app had them before it had phases.

use super::{Event, Kind, Member, Phase, Reader, Rounds, Task, Value, error_at, excerpt};
use crate::import::ImportError;
use crate::{Lock, Op};
use anysched_core::Span;

/// What to do about a file that is only a part.
pub(super) const FRAGMENT: &str = "if this is a part of a load, put its parts together first, as \
                                   rt-app's merge.py does: `global`, `resources` and `tasks` in \
                                   one file";

/// What a task may name in `lock_order`.
#[derive(Clone, Debug)]
pub(super) enum Resource {
    Mutex,
    Wait,
    /// Wakes one task, or all, that wait for the resource of this name.
    Signal(String),
    Broadcast(String),
}

impl Reader<'_> {
    /// Reads `resources` of the file.
    pub(super) fn declare(&mut self, value: &Value) -> Result<(), ImportError> {
        for member in self.map(value, "`resources`")? {
            // Newer files declare more kinds, and their tasks do not need the declarations.
            let Kind::Map(fields) = &member.value.kind else { continue };
            let text = |key: &str| {
                let field = fields.iter().find(|field| field.key == key)?;
                match &field.value.kind {
                    Kind::Text(text) => Some(text.clone()),
                    _ => None,
                }
            };
            let target = || text("target").unwrap_or_default();
            let resource = match text("type").as_deref() {
                Some("mutex") => Resource::Mutex,
                Some("wait") => Resource::Wait,
                Some("signal") => Resource::Signal(target()),
                Some("broadcast" | "broad") => Resource::Broadcast(target()),
                _ => continue,
            };
            self.resources.insert(member.key.clone(), resource);
        }
        Ok(())
    }

    /// One job of a task, as a phase.
    pub(super) fn old_job(
        &mut self,
        at: usize,
        members: &[Member],
        task: &Task,
    ) -> Result<Phase, ImportError> {
        let find = |key: &str| members.iter().find(|member| member.key == key);
        let mut left = find("exec").map_or(Ok(Span::ZERO), |exec| self.span(exec))?;
        let used = match find("resources") {
            Some(used) => self.map(&used.value, "`resources`")?,
            None => &[],
        };
        let order: Vec<(usize, &str)> = match find("lock_order") {
            Some(order) => self.names(order)?,
            None => used.iter().map(|resource| (resource.at, resource.key.as_str())).collect(),
        };
        let mut events = Vec::new();
        for (at, name) in order {
            let Some(resource) = self.resources.get(name).cloned() else {
                let name = excerpt(name);
                let what = format!("`resources` of the file does not have `{name}`; {FRAGMENT}");
                return self.error(at, what);
            };
            let (mut duration, mut access) = (Span::ZERO, Vec::new());
            if let Some(used) = used.iter().find(|resource| resource.key == name) {
                for field in self.map(&used.value, "the use of a resource")? {
                    match field.key.as_str() {
                        "duration" => duration = self.span(field)?,
                        "access" => access = self.names(field)?,
                        _ => {
                            let known = ["duration", "access"];
                            return self.unknown(field, "the use of a resource", &known);
                        }
                    }
                }
            }
            let mut locks: Vec<Lock> =
                access.iter().map(|(_, name)| Lock(self.locks.of(name))).collect();
            let inside = match resource {
                Resource::Mutex => {
                    locks.push(Lock(self.locks.of(name)));
                    vec![]
                }
                Resource::Wait => {
                    let wait = Op::Wait(self.waited(name));
                    // Whoever waits gives the mutexes back meanwhile.
                    let unlocks = locks.iter().rev().map(|&lock| Op::Unlock(lock));
                    let locks = locks.iter().map(|&lock| Op::Lock(lock));
                    unlocks.chain([wait]).chain(locks).collect()
                }
                Resource::Signal(target) => vec![Op::Notify(self.signalled(&target))],
                Resource::Broadcast(target) => vec![Op::Broadcast(self.signalled(&target))],
            };
            events.extend(locks.iter().map(|&lock| Event::Do(Op::Lock(lock))));
            events.extend(inside.into_iter().map(Event::Do));
            if duration > Span::ZERO {
                events.push(Event::Do(Op::Run(duration)));
                left = Span(left.0.saturating_sub(duration.0));
            }
            events.extend(locks.iter().rev().map(|&lock| Event::Do(Op::Unlock(lock))));
        }
        if left > Span::ZERO {
            events.push(Event::Do(Op::Run(left)));
        }
        if let Some(period) = task.period.filter(|&period| period > Span::ZERO) {
            let reference = "unique".to_string();
            events.push(Event::Timer { reference, period, absolute: true });
        }
        if events.is_empty() {
            return self.error(at, "this task neither runs nor waits");
        }
        Ok(Phase { rounds: Rounds::Some(1), cpus: None, nice: None, events })
    }

    /// A list of names, each with its place.
    fn names<'v>(&self, member: &'v Member) -> Result<Vec<(usize, &'v str)>, ImportError> {
        let wrong = |at: usize, found: String| {
            let key = excerpt(&member.key);
            error_at(self.text, at, format!("`{key}` takes a list of names, not {found}"))
        };
        let Kind::List(items) = &member.value.kind else {
            return Err(wrong(member.value.at, member.value.describe()));
        };
        let name = |item: &'v Value| match &item.kind {
            Kind::Text(name) => Ok((item.at, name.as_str())),
            _ => Err(wrong(item.at, item.describe())),
        };
        items.iter().map(name).collect()
    }
}
