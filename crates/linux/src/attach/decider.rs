//! Who decides for the kernel: the module, or an agent.

use super::drain::{self, Drain};
use super::watch::Status;
use super::{note::Note, start};
use anysched_host::{Attach, Built, Place};
use anysched_loader::{Agent, AgentFiles, Module, SchedExt};
use std::path::{Path, PathBuf};

/// A policy that has been started. When this is dropped, the kernel's own scheduler is back.
pub struct Decider {
    kernel: SchedExt,
    kind: Kind,
    /// The machine has been given back, and may be another's by now.
    is_over: bool,
}

enum Kind {
    Module(Option<Drain>),
    /// With the names of its log, until it is whole and from then on.
    Agent(Agent, Option<[PathBuf; 2]>),
}

/// What has become of one.
#[derive(Debug)]
pub struct Ended {
    /// Why it has died, if it has.
    pub dead: Option<String>,
    /// Bytes of its log, if one was recorded.
    pub recorded: Option<u64>,
}

impl Decider {
    /// Starts what is ordered.
    ///
    /// Errors: why it cannot be started.
    pub fn start(order: &Attach<'_>, built: &Built, kernel: SchedExt) -> Result<Decider, String> {
        match order.place {
            Place::Kernel => Decider::module(order, built, kernel),
            Place::Agent => Decider::agent(order, built, kernel),
        }
    }

    fn module(order: &Attach<'_>, built: &Built, kernel: SchedExt) -> Result<Decider, String> {
        // One that is left over may be another, and has another heap.
        Module.unload()?;
        let mut decider = Decider { kernel, kind: Kind::Module(None), is_over: false };
        Module.load(&built.decider, Some(order.heap))?;
        Module.configure(start(order))?;
        if let Err(why) = decider.kernel.register(&built.program) {
            // The module knows why better than who has tried to register the program.
            return Err(decider.status().ok().and_then(|status| status.dead).unwrap_or(why));
        }
        if let Some(path) = order.record {
            decider.kind = Kind::Module(Some(Drain::begin(path)?));
        }
        Ok(decider)
    }

    fn agent(order: &Attach<'_>, built: &Built, kernel: SchedExt) -> Result<Decider, String> {
        let log = order.record.map(|path| [drain::partial(path), path.into()]);
        let files = AgentFiles {
            program: &built.decider,
            object: &built.program,
            log: log.as_ref().map_or(Path::new("/dev/null"), |[partial, _]| partial),
        };
        match Agent::start(&files, Some(order.heap), start(order)) {
            Ok(agent) => Ok(Decider { kernel, kind: Kind::Agent(agent, log), is_over: false }),
            Err(why) => {
                Agent::clean();
                Err(why)
            }
        }
    }

    /// Whether it still schedules.
    pub fn is_enabled(&self) -> bool {
        self.kernel.state().as_deref() == Some("enabled")
    }

    /// What it says of itself.
    ///
    /// Errors: it does not answer.
    pub fn status(&self) -> Result<Status, String> {
        let (text, who) = match self.kind {
            Kind::Module(_) => (Module.status(), "the module anysched is not loaded"),
            Kind::Agent(..) => (Agent::status(), "the agent does not answer"),
        };
        Status::read(&text.ok_or(who)?).map_err(|error| error.to_string())
    }

    /// Gives the machine back.
    ///
    /// Errors: the kernel does not, or the log is not whole.
    pub fn end(&mut self) -> Result<Ended, String> {
        match &mut self.kind {
            Kind::Module(_) => self.kernel.unregister()?,
            Kind::Agent(agent, _) => agent.end()?,
        }
        let status = self.status();
        let lost = status.as_ref().ok().and_then(Status::log).map_or(0, |log| log.lost);
        let ended = match &mut self.kind {
            Kind::Module(drain) => {
                let recorded = drain.take().map(|drain| drain.end(lost)).transpose();
                Module.unload()?;
                Ended { dead: status?.dead, recorded: recorded? }
            }
            Kind::Agent(agent, log) => {
                // One that was killed has left nothing.
                let dead = status.map_or_else(|_| Some(agent.last_words()), |status| status.dead);
                let recorded = log.take().filter(|[partial, _]| partial.exists());
                let recorded = recorded.map(|[partial, path]| drain::keep(&partial, &path, lost));
                Ended { dead, recorded: recorded.transpose()? }
            }
        };
        self.clean();
        self.is_over = true;
        Ok(ended)
    }

    fn clean(&self) {
        if matches!(self.kind, Kind::Agent(..)) {
            Agent::clean();
        }
        Note::remove(Path::new("/"));
    }
}

impl Drop for Decider {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        match &mut self.kind {
            Kind::Module(drain) => {
                let _ = self.kernel.unregister();
                let _ = drain.take().map(|drain| drain.end(0));
                let _ = Module.unload();
            }
            Kind::Agent(agent, _) => drop(agent.end()),
        }
        self.clean();
    }
}
