//! One run, and the rehearsal that comes before it where a policy needs one: the same load, with
//! the same seed, in which the policies learn what they go by afterwards.

use crate::host::{By, Host, Hosted, Order};
use crate::plan::{Cell, PlannedGroup};
use anysched_core::registry::{PolicyInfo, Settings, changed, learned};
use anysched_core::{ParamError, Scheduler};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_sim::Sim;
use anysched_trace::{NoTrace, Sink};
use anysched_workload::rng;

/// A run to be made.
#[derive(Clone, Copy)]
pub(crate) struct OneRun<'a> {
    pub planned: &'a PlannedGroup,
    pub cell: &'a Cell,
    pub seed: u64,
    /// Who makes it, if not the simulator.
    pub host: Option<&'a dyn Host>,
}

/// The settings of the policies of a run: of the one that is compared, then of each virtual
/// machine's own.
pub(crate) type AllSettings = Vec<Settings>;

type Ran<T> = Result<(Metrics, Box<dyn Scheduler>, T), String>;

impl OneRun<'_> {
    /// The settings with what the run itself gives: its seed, and what a rehearsal teaches.
    pub fn settings(self) -> Result<AllSettings, String> {
        let (settings, rehearsal) = self.rehearsal()?;
        match rehearsal {
            Some(first) => {
                let taught = self.learned(&first)?;
                Ok(settings.iter().zip(&taught).map(|(all, new)| with(all, new)).collect())
            }
            None => Ok(settings),
        }
    }

    /// What the policy that is compared has learned once the run is over, in its rehearsal or in
    /// the run itself.
    pub fn lesson(self) -> Result<Settings, String> {
        let (settings, rehearsal) = self.rehearsal()?;
        let mut all = self.learned(rehearsal.as_ref().unwrap_or(&settings))?;
        Ok(all.swap_remove(0))
    }

    /// The settings of the run before any rehearsal, and those of the rehearsal if one of the
    /// policies needs one.
    fn rehearsal(self) -> Result<(AllSettings, Option<AllSettings>), String> {
        let entry = &self.cell.policy;
        let mut settings = vec![seeded(entry.info, &entry.settings(), self.seed)];
        let mut infos = vec![entry.info];
        for (name, entry) in self.planned.vms.policies() {
            let seed = rng::derive(self.seed, &format!("vm.{name}.policy"));
            settings.push(seeded(entry.info, &entry.settings(), seed));
            infos.push(entry.info);
        }
        let firsts = infos.iter().zip(&settings).map(|(info, of)| (info.rehearsal)(&text(of)));
        let firsts = firsts.collect::<Result<Vec<_>, ParamError>>().map_err(|e| e.to_string())?;
        let needed = firsts.iter().any(Option::is_some);
        let first = firsts.into_iter().zip(&settings);
        let first = first.map(|(first, own)| first.unwrap_or_else(|| own.clone())).collect();
        Ok((settings, needed.then_some(first)))
    }

    /// What each policy learns in a run with these settings.
    fn learned(self, settings: &AllSettings) -> Result<AllSettings, String> {
        if let Some(host) = self.host {
            return Ok(vec![self.make_on(host, &settings[0])?.learned]);
        }
        let (metrics, policy, _) = self.make(settings, NoTrace, |policy, _| policy)?;
        let guests = metrics.vms.into_iter().map(|vm| vm.learned);
        Ok(std::iter::once(learned(&*policy)).chain(guests).collect())
    }

    /// Has another host make the run with these settings.
    pub fn make_on(self, host: &dyn Host, settings: &Settings) -> Result<Hosted, String> {
        if !self.planned.vms.is_empty() {
            return Err("virtual machines exist in the simulator only".into());
        }
        let Cell { policy, setup } = self.cell;
        let load = self.planned.loads.build(self.seed)?;
        host.run(Order { by: By::Policy(policy.info, text(settings)), setup, load })
    }

    /// Makes the run with these settings.
    pub fn make<T: Sink>(
        self,
        settings: &AllSettings,
        sink: T,
        wrap: impl FnOnce(Box<dyn Scheduler>, &[(&str, &str)]) -> Box<dyn Scheduler>,
    ) -> Ran<T> {
        let Cell { policy, setup } = self.cell;
        let own = text(&settings[0]);
        let built = (policy.info.build)(&setup.machine, &own).map_err(|error| error.to_string())?;
        let scheduler = wrap(built, &own);
        let load = self.planned.loads.build(self.seed)?;
        let vms = self.planned.vms.build(self.seed, &settings[1..])?;
        let sim = Sim::with_sink(Setup::clone(setup), scheduler, load, sink).with_vms(vms);
        sim.run().map_err(|error| error.to_string())
    }
}

/// `settings`, as policies are built from them.
pub(crate) fn text(settings: &Settings) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

/// `settings` and what has been learned since.
pub(crate) fn with(settings: &Settings, learned: &Settings) -> Settings {
    changed(&text(settings), &text(learned))
}

/// `settings`, with the run's seed for a policy that draws random numbers unless it has its own.
pub(crate) fn seeded(info: &PolicyInfo, settings: &[(&str, &str)], seed: u64) -> Settings {
    let seed = seed.to_string();
    let missing = |name: &&str| settings.iter().all(|(given, _)| given != name);
    let own: Vec<(&str, &str)> =
        info.seed.filter(missing).map(|name| (name, seed.as_str())).into_iter().collect();
    changed(settings, &own)
}
