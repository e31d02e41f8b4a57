//! One run, and the rehearsal that comes before it where a policy needs one: the same load, with
//! the same seed, in which the policies learn what they go by afterwards.

use crate::plan::{Cell, PlannedGroup};
use anysched_core::ParamError;
use anysched_core::registry::{PolicyInfo, Settings, changed};
use anysched_host::{By, Host, HostError, Outcome, Watch, as_text};
use anysched_workload::rng;

/// A run to be made.
#[derive(Clone, Copy)]
pub(crate) struct OneRun<'a> {
    pub host: &'a dyn Host,
    pub planned: &'a PlannedGroup,
    pub cell: &'a Cell,
    pub seed: u64,
}

/// The settings of the policies of a run: of the one that is compared, then of each virtual
/// machine's own.
type AllSettings = Vec<Settings>;

impl OneRun<'_> {
    /// Makes the run, after a rehearsal if one of its policies needs one.
    pub fn make(self, mut watch: Watch<'_>) -> Result<Outcome, HostError> {
        let (settings, rehearsal) = self.rehearsal()?;
        let Some(first) = rehearsal else {
            return self.make_with(&settings, watch);
        };
        watch.say("rehearsal");
        let taught = self.learned(&first)?;
        let settings: AllSettings =
            settings.iter().zip(&taught).map(|(all, new)| with(all, new)).collect();
        watch.say("run with what was learned");
        self.make_with(&settings, watch)
    }

    /// What the policy that is compared has learned once the run is over, in its rehearsal or in
    /// the run itself.
    pub fn lesson(self) -> Result<Settings, HostError> {
        let (settings, rehearsal) = self.rehearsal()?;
        let mut all = self.learned(rehearsal.as_ref().unwrap_or(&settings))?;
        Ok(all.swap_remove(0))
    }

    /// The settings of the run before any rehearsal, and those of the rehearsal if one of the
    /// policies needs one.
    fn rehearsal(self) -> Result<(AllSettings, Option<AllSettings>), HostError> {
        let entry = &self.cell.policy;
        let mut settings = vec![seeded(entry.info, &entry.settings(), self.seed)];
        let mut infos = vec![entry.info];
        for (info, own) in of_guests(self.planned, self.seed) {
            settings.push(own);
            infos.push(info);
        }
        let firsts = infos.iter().zip(&settings).map(|(info, of)| (info.rehearsal)(&as_text(of)));
        let firsts = firsts.collect::<Result<Vec<_>, ParamError>>().map_err(|e| e.to_string())?;
        let needed = firsts.iter().any(Option::is_some);
        let first = firsts.into_iter().zip(&settings);
        let first = first.map(|(first, own)| first.unwrap_or_else(|| own.clone())).collect();
        Ok((settings, needed.then_some(first)))
    }

    /// What each policy learns in a run with these settings.
    fn learned(self, settings: &AllSettings) -> Result<AllSettings, HostError> {
        let Outcome { learned, metrics, .. } = self.make_with(settings, Watch::default())?;
        let guests = metrics.vms.into_iter().map(|vm| vm.learned);
        Ok(std::iter::once(learned).chain(guests).collect())
    }

    /// Makes the run with these settings.
    fn make_with(self, settings: &AllSettings, mut watch: Watch<'_>) -> Result<Outcome, HostError> {
        let by = By::Policy(self.cell.policy.info, as_text(&settings[0]));
        self.planned.run(
            self.host,
            &self.cell.setup,
            by,
            self.seed,
            &settings[1..],
            watch.reborrow(),
        )
    }
}

/// `settings` and what has been learned since.
fn with(settings: &Settings, learned: &Settings) -> Settings {
    changed(&as_text(settings), &as_text(learned))
}

/// The schedulers of the virtual machines, with their settings in a run with this seed.
pub(crate) fn of_guests(
    planned: &PlannedGroup,
    seed: u64,
) -> impl Iterator<Item = (&'static PolicyInfo, Settings)> + '_ {
    planned.vms.policies().map(move |(name, entry)| {
        let seed = rng::derive(seed, &format!("vm.{name}.policy"));
        (entry.info, seeded(entry.info, &entry.settings(), seed))
    })
}

/// `settings`, with the run's seed for a policy that draws random numbers unless it has its own.
pub(crate) fn seeded(info: &PolicyInfo, settings: &[(&str, &str)], seed: u64) -> Settings {
    let seed = seed.to_string();
    let missing = |name: &&str| settings.iter().all(|(given, _)| given != name);
    let own: Vec<(&str, &str)> =
        info.seed.filter(missing).map(|name| (name, seed.as_str())).into_iter().collect();
    changed(settings, &own)
}
