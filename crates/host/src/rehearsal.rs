//! Runs of policies that use what an earlier run of the same program has shown.

use crate::HostError;
use anysched_core::registry::{PolicyInfo, Settings, changed};

/// Which of two runs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The run in which the policy learns.
    Rehearsal,
    /// The run that counts.
    Run,
}

/// Makes a run under a policy, after a rehearsal if it needs one with these settings. Returns what
/// came of the run, and what the rehearsal taught if there was one.
///
/// Errors: the settings are wrong, or a run fails.
pub fn rehearsed<T, E: From<HostError>>(
    info: &PolicyInfo,
    settings: &Settings,
    mut run: impl FnMut(Stage, &Settings) -> Result<T, E>,
    learned: impl FnOnce(T) -> Settings,
) -> Result<(T, Option<Settings>), E> {
    let first = (info.rehearsal)(&as_text(settings));
    let first = first.map_err(|error| HostError(format!("{}: {error}", info.name)))?;
    let Some(first) = first else { return Ok((run(Stage::Run, settings)?, None)) };
    let learned = learned(run(Stage::Rehearsal, &first)?);
    let settings = changed(&as_text(settings), &as_text(&learned));
    Ok((run(Stage::Run, &settings)?, Some(learned)))
}

/// Settings in the form from which policies are built.
pub fn as_text(settings: &Settings) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}
