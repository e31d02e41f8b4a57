//! A call of [`Scheduler`] as a value, for wrappers that treat all calls alike.

#[doc(hidden)]
pub use alloc::borrow::Cow;
use core::fmt;

use crate::ids::{CpuId, DomainId, TaskId};
use crate::params::{DomainParams, TaskParams};
use crate::time::Span;
use crate::{Arrival, Cx, Enqueue, Off, Pick, Scheduler};

/// A call of one of [`Scheduler`]'s mutating methods, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are the arguments")]
pub enum Call<'a> {
    /// [`Scheduler::attach`]
    Attach { task: TaskId, params: Cow<'a, TaskParams> },
    /// [`Scheduler::detach`]
    Detach { task: TaskId },
    /// [`Scheduler::update`]
    Update { task: TaskId, params: Cow<'a, TaskParams> },
    /// [`Scheduler::set_domain`]
    SetDomain { domain: DomainId, params: DomainParams },
    /// [`Scheduler::set_param`]
    SetParam { name: Cow<'a, str>, text: Cow<'a, str> },
    /// [`Scheduler::set_online`]
    SetOnline { cpu: CpuId, online: bool },
    /// [`Scheduler::enqueue`]
    Enqueue { task: TaskId, arrival: Arrival },
    /// [`Scheduler::dequeue`]
    Dequeue { task: TaskId },
    /// [`Scheduler::pick_next`]
    PickNext { cpu: CpuId },
    /// [`Scheduler::put_prev`]
    PutPrev { cpu: CpuId, task: TaskId, ran: Span, why: Off },
    /// [`Scheduler::tick`]
    Tick { cpu: CpuId, task: TaskId, ran: Span },
    /// [`Scheduler::timer`]
    Timer,
}

impl Call<'_> {
    /// The task that it is about, if it is about one.
    pub fn task(&self) -> Option<TaskId> {
        match *self {
            Call::Attach { task, .. }
            | Call::Detach { task }
            | Call::Update { task, .. }
            | Call::Enqueue { task, .. }
            | Call::Dequeue { task }
            | Call::PutPrev { task, .. }
            | Call::Tick { task, .. } => Some(task),
            _ => None,
        }
    }

    /// As [`Call::task`], to be changed.
    pub fn task_mut(&mut self) -> Option<&mut TaskId> {
        match self {
            Call::Attach { task, .. }
            | Call::Detach { task }
            | Call::Update { task, .. }
            | Call::Enqueue { task, .. }
            | Call::Dequeue { task }
            | Call::PutPrev { task, .. }
            | Call::Tick { task, .. } => Some(task),
            _ => None,
        }
    }

    /// The CPU that it is about, if it is about one.
    pub fn cpu(&self) -> Option<CpuId> {
        match *self {
            Call::SetOnline { cpu, .. }
            | Call::PickNext { cpu }
            | Call::PutPrev { cpu, .. }
            | Call::Tick { cpu, .. } => Some(cpu),
            _ => None,
        }
    }

    /// As [`Call::cpu`], to be changed.
    pub fn cpu_mut(&mut self) -> Option<&mut CpuId> {
        match self {
            Call::SetOnline { cpu, .. }
            | Call::PickNext { cpu }
            | Call::PutPrev { cpu, .. }
            | Call::Tick { cpu, .. } => Some(cpu),
            _ => None,
        }
    }

    /// The same with all that it refers to.
    pub fn into_owned(self) -> Call<'static> {
        let owned = |params: Cow<'_, TaskParams>| Cow::Owned(params.into_owned());
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Call::Attach { task, params } => Call::Attach { task, params: owned(params) },
            Call::Detach { task } => Call::Detach { task },
            Call::Update { task, params } => Call::Update { task, params: owned(params) },
            Call::SetDomain { domain, params } => Call::SetDomain { domain, params },
            Call::SetParam { name, text: to } => {
                Call::SetParam { name: text(name), text: text(to) }
            }
            Call::SetOnline { cpu, online } => Call::SetOnline { cpu, online },
            Call::Enqueue { task, arrival } => Call::Enqueue { task, arrival },
            Call::Dequeue { task } => Call::Dequeue { task },
            Call::PickNext { cpu } => Call::PickNext { cpu },
            Call::PutPrev { cpu, task, ran, why } => Call::PutPrev { cpu, task, ran, why },
            Call::Tick { cpu, task, ran } => Call::Tick { cpu, task, ran },
            Call::Timer => Call::Timer,
        }
    }

    /// Makes this call; only `pick_next` returns a pick.
    #[inline]
    pub fn make(&self, policy: &mut (impl Scheduler + ?Sized), cx: &mut Cx<'_>) -> Option<Pick> {
        match *self {
            Call::Attach { task, ref params } => policy.attach(cx, task, params),
            Call::Detach { task } => policy.detach(cx, task),
            Call::Update { task, ref params } => policy.update(cx, task, params),
            Call::SetDomain { domain, ref params } => policy.set_domain(cx, domain, params),
            Call::SetParam { ref name, ref text } => policy.set_param(cx, name, text),
            Call::SetOnline { cpu, online } => policy.set_online(cx, cpu, online),
            Call::Enqueue { task, arrival } => policy.enqueue(cx, task, arrival),
            Call::Dequeue { task } => policy.dequeue(cx, task),
            Call::PickNext { cpu } => return policy.pick_next(cx, cpu),
            Call::PutPrev { cpu, task, ran, why } => policy.put_prev(cx, cpu, task, ran, why),
            Call::Tick { cpu, task, ran } => policy.tick(cx, cpu, task, ran),
            Call::Timer => policy.timer(cx),
        }
        None
    }
}

impl fmt::Display for Call<'_> {
    /// The call in words: `put_prev CPU 1, task 3, ran 2ms, Expired`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Attach { task, params } => {
                write!(f, "attach task {}", task.0)?;
                show_params(f, params)
            }
            Call::Detach { task } => write!(f, "detach task {}", task.0),
            Call::Update { task, params } => {
                write!(f, "update task {}", task.0)?;
                show_params(f, params)
            }
            Call::SetDomain { domain, params } => {
                let DomainParams { weight, cap_percent } = params;
                write!(f, "set_domain {}, weight {weight}, cap {cap_percent} %", domain.0)
            }
            Call::SetParam { name, text } => write!(f, "set_param {name} to {text}"),
            Call::SetOnline { cpu, online } => {
                write!(f, "set_online CPU {}, {online}", cpu.0)
            }
            Call::Enqueue { task, arrival } => {
                write!(f, "enqueue task {}", task.0)?;
                show_arrival(f, arrival)
            }
            Call::Dequeue { task } => write!(f, "dequeue task {}", task.0),
            Call::PickNext { cpu } => write!(f, "pick_next CPU {}", cpu.0),
            Call::PutPrev { cpu, task, ran, why } => {
                write!(f, "put_prev CPU {}, task {}, ran {ran}, {why:?}", cpu.0, task.0)
            }
            Call::Tick { cpu, task, ran } => {
                write!(f, "tick CPU {}, task {}, ran {ran}", cpu.0, task.0)
            }
            Call::Timer => f.write_str("timer"),
        }
    }
}

fn show_params(f: &mut fmt::Formatter<'_>, params: &TaskParams) -> fmt::Result {
    let TaskParams { weight, priority, affinity, preferred, domain, key, intensity, .. } = params;
    write!(f, ", weight {weight}, priority {priority}, CPUs {affinity}, domain {}", domain.0)?;
    if !preferred.is_all() {
        write!(f, ", prefers CPUs {preferred}")?;
    }
    let spans = [
        ("period", params.period),
        ("budget", params.budget),
        ("relative deadline", params.relative_deadline),
    ];
    for (name, span) in spans {
        if let Some(span) = span {
            write!(f, ", {name} {span}")?;
        }
    }
    if let Some(key) = key {
        write!(f, ", key {key}")?;
    }
    if *intensity > 0 {
        write!(f, ", intensity {intensity} %")?;
    }
    Ok(())
}

fn show_arrival(f: &mut fmt::Formatter<'_>, arrival: &Arrival) -> fmt::Result {
    match arrival.why {
        Enqueue::New => f.write_str(", new")?,
        Enqueue::Wakeup { prev, sync } => {
            write!(f, ", woken{}, was on CPU {}", if sync { " in sync" } else { "" }, prev.0)?;
        }
        Enqueue::Resumed { prev } => write!(f, ", resumed, was on CPU {}", prev.0)?,
    }
    if let Some(from) = arrival.from {
        write!(f, ", by CPU {}", from.0)?;
    }
    if let Some(burst) = arrival.burst {
        write!(f, ", burst {burst}")?;
    }
    if let Some(deadline) = arrival.deadline {
        write!(f, ", deadline {}", Span(deadline.0))?;
    }
    Ok(())
}

/// Implements [`Scheduler`](crate::Scheduler) for a wrapper that has a field `policy` and passes
/// every [`Call`](crate::call::Call) through a method `call(&mut self, &mut Cx, Call) ->
/// Option<Pick>`. Takes the generic parameters of the implementation in brackets, then the type.
#[macro_export]
macro_rules! scheduler_by_call {
    ([$($generics:tt)*] $type:ty) => {
        const _: () = {
            use $crate::call::{Call, Cow};
            use $crate::{
                Arrival, Canon, CpuId, Cx, DomainId, DomainParams, Off, ParamError, Pick,
                Scheduler, Span, TaskId, TaskParams, Time,
            };
            impl<$($generics)*> Scheduler for $type {
                #[inline]
                fn attach(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
                    let params = Cow::Borrowed(params);
                    self.call(cx, Call::Attach { task, params });
                }
                #[inline]
                fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
                    self.call(cx, Call::Detach { task });
                }
                #[inline]
                fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
                    let params = Cow::Borrowed(params);
                    self.call(cx, Call::Update { task, params });
                }
                #[inline]
                fn set_domain(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
                    self.call(cx, Call::SetDomain { domain, params: *params });
                }
                fn check_param(&self, name: &str, text: &str) -> Result<(), ParamError> {
                    self.policy.check_param(name, text)
                }
                fn set_param(&mut self, cx: &mut Cx<'_>, name: &str, text: &str) {
                    let (name, text) = (Cow::Borrowed(name), Cow::Borrowed(text));
                    self.call(cx, Call::SetParam { name, text });
                }
                #[inline]
                fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
                    self.call(cx, Call::SetOnline { cpu, online });
                }
                #[inline]
                fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
                    self.call(cx, Call::Enqueue { task, arrival });
                }
                #[inline]
                fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
                    self.call(cx, Call::Dequeue { task });
                }
                #[inline]
                fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
                    self.call(cx, Call::PickNext { cpu })
                }
                #[inline]
                fn put_prev(
                    &mut self,
                    cx: &mut Cx<'_>,
                    cpu: CpuId,
                    task: TaskId,
                    ran: Span,
                    why: Off,
                ) {
                    self.call(cx, Call::PutPrev { cpu, task, ran, why });
                }
                #[inline]
                fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
                    self.call(cx, Call::Tick { cpu, task, ran });
                }
                #[inline]
                fn tick_period(&self) -> Option<Span> {
                    self.policy.tick_period()
                }
                #[inline]
                fn has_timers(&self) -> bool {
                    self.policy.has_timers()
                }
                #[inline]
                fn next_timer(&self) -> Option<Time> {
                    self.policy.next_timer()
                }
                #[inline]
                fn timer(&mut self, cx: &mut Cx<'_>) {
                    self.call(cx, Call::Timer);
                }
                #[inline]
                fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
                    self.policy.probe(task, sink);
                }
                #[inline]
                fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
                    self.policy.tally(sink);
                }
                fn learned(&self, sink: &mut dyn FnMut(&'static str, &str)) {
                    self.policy.learned(sink);
                }
                fn canon(&self, to: &mut Canon) {
                    self.policy.canon(to);
                }
            }
        };
    };
}
