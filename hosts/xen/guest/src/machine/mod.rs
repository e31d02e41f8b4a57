//! A virtual machine of an experiment: tasks of a script, which one of the policies schedules on
//! the vCPUs of this domain.
//!
//! Nothing interrupts a vCPU. One that computes looks every few microseconds whether another has
//! called it or something is due; one that has nothing to do polls the hypervisor until then.
//! Slices, ticks and what policies are told of CPU time go by work that was done: time that was
//! stolen counts for nobody.

mod among;
mod burner;
mod kernel;
mod steps;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::iter;

use anysched_wire::mail;
use anysched_wire::result::{Message, Task};
use anysched_wire::script::Script;
use anysched_wire::start::Start;

use crate::driver::PORT;
use crate::events::Port;
use crate::hypercall::{poll_until, ready, runstates};
use crate::mailbox::{Letter, Mailbox};
use crate::shared::now;
use crate::smp::Lock;
use crate::{report, smp};
use burner::Burner;
use kernel::{Kernel, Then};

/// When a machine begins and ends, from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When it begins; everything in it counts from there.
    pub begin: u64,
    /// When it ends, whatever is left to do; `u64::MAX`: when all is done.
    pub stop: u64,
}

/// What the machine is told.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// Its scheduler.
    pub start: &'a [u8],
    /// Its tasks.
    pub script: &'a [u8],
    /// What comes to it from outside.
    pub mail: &'a [u8],
}

/// How messages leave the machine and come to it.
#[derive(Clone, Copy)]
struct Post {
    mailbox: &'static Mailbox,
    /// Dom0 calls the first vCPU by it, and is called.
    port: Port,
}

/// What vCPUs share.
struct Machine {
    kernel: Lock<Kernel>,
    burner: Burner,
    /// If it has messages.
    post: Option<Post>,
    /// By which vCPUs call each other.
    ports: Vec<Port>,
    /// What each has used before the run.
    before: Vec<[u64; 4]>,
}

/// Runs the machine that these texts describe, whose run starts when `epoch` says.
pub fn run(
    texts: &Texts<'_>,
    mailbox: Option<&'static Mailbox>,
    times: Times,
    epoch: impl FnOnce() -> u64,
) -> ! {
    // Dom0 expects it to be the first port.
    let post = mailbox.map(|mailbox| match Port::for_domain(0) {
        Ok(port) if port.0 == PORT => Post { mailbox, port },
        other => panic!("there is no first port for dom0: {other:?}"),
    });
    let kernel = match prepare(texts) {
        Ok(kernel) => kernel,
        Err(why) => panic!("{why}"),
    };
    let vcpus = 0..smp::count();
    let ports: Result<Vec<Port>, _> = vcpus.clone().map(Port::of_vcpu).collect();
    let ports = ports.unwrap_or_else(|error| panic!("vCPUs cannot call each other: {error:?}"));
    let burner = Burner::calibrated();
    ready();
    let before = vcpus.map(runstates).collect();
    let mut kernel = kernel;
    let start = epoch();
    kernel.begin(start + times.begin, start.saturating_add(times.stop));
    let kernel = Lock::new(kernel);
    let machine: &'static Machine =
        Box::leak(Box::new(Machine { kernel, burner, post, ports, before }));
    smp::run(Box::new(move |vcpu| machine.run_vcpu(vcpu)), Box::new(move || machine.tell()))
}

fn prepare(texts: &Texts<'_>) -> Result<Kernel, String> {
    let start = Start::read(texts.start).map_err(|error| error.to_string())?;
    let mail = mail::read(texts.mail).map_err(|error| error.to_string())?;
    let tasks = match texts.script {
        [] => Vec::new(),
        script => Script::read(script).map_err(|error| error.to_string())?.tasks,
    };
    Kernel::new(&start, tasks, mail, smp::count())
}

impl Machine {
    fn run_vcpu(&self, vcpu: usize) {
        // Messages interrupt the first.
        let post = self.post.filter(|_| vcpu == 0);
        let ports: Vec<Port> =
            iter::once(self.ports[vcpu]).chain(post.map(|post| post.port)).collect();
        let mut numbers: Vec<u32> = ports.iter().map(|port| port.0).collect();
        let mut burned = 0;
        loop {
            // A call that comes from here on is seen after this turn.
            for port in &ports {
                port.take();
            }
            let (then, calls) = self.kernel.with(|kernel| {
                if let Some(Post { mailbox, .. }) = post {
                    while let Some(letter) = mailbox.come.take() {
                        kernel.receive(now(), letter);
                    }
                }
                let then = kernel.turn(vcpu, now(), burned);
                self.send(kernel);
                (then, kernel.calls(vcpu))
            });
            for other in calls {
                let _ = self.ports[other].send();
            }
            burned = match then {
                Then::Compute { work, until } => self.burner.burn(work, &ports, until),
                Then::Idle { until } => {
                    poll_until(&mut numbers, until);
                    0
                }
                Then::End => return,
            };
        }
    }

    /// Hands dom0 what the machine has sent.
    fn send(&self, kernel: &mut Kernel) {
        let Some(Post { mailbox, port }) = self.post else { return };
        let mut any = false;
        for (whither, sent) in kernel.sent() {
            any = true;
            if !mailbox.out.put(Letter { sent, at: now(), whither, number: None }) {
                panic!("dom0 has not taken what the machine has sent, and there is no room");
            }
        }
        if any {
            let _ = port.send();
        }
    }

    /// Reports what came of it.
    fn tell(&self) {
        self.kernel.with(|kernel| {
            kernel.close();
            for task in kernel.ended() {
                report::say(&Message::Task(task));
            }
            for (name, samples) in kernel.samples() {
                samples.iter().for_each(|sample| report::sample(name, *sample));
            }
            for (name, number) in kernel.counts() {
                report::value(name, number);
            }
        });
        let mut used = [0; 4];
        for (vcpu, before) in self.before.iter().enumerate() {
            for ((sum, after), before) in used.iter_mut().zip(runstates(vcpu)).zip(before) {
                *sum += after - before;
            }
        }
        for (name, span) in ["ran_ns", "stolen_ns", "blocked_ns", "offline_ns"].iter().zip(used) {
            report::value(name, span);
        }
    }
}

/// The name of a task, as the script has it.
fn named(task: Task, serial: usize) -> Task {
    if task.name.is_empty() { Task { name: format!("task-{serial}"), ..task } } else { task }
}
