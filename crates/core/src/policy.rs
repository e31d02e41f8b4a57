//! What every policy states about itself.

use crate::Machine;
use crate::params::{ParamError, Params};

/// What every policy states about itself, and how it is built.
pub trait Policy: Sized {
    /// Its parameters.
    type Params: Params;
    /// Where the rule comes from: paper section, or kernel file and version.
    const SOURCE: &'static str;
    /// Whether it reads [`Arrival::burst`](crate::Arrival::burst), which no kernel knows, unless
    /// parameters say otherwise.
    const CLAIRVOYANT: bool = false;
    /// See [`PolicyInfo::seed`](crate::registry::PolicyInfo::seed).
    const SEED: Option<&'static str> = None;

    /// Whether it reads [`Arrival::burst`](crate::Arrival::burst) with these parameters.
    fn is_clairvoyant(_: &Self::Params) -> bool {
        Self::CLAIRVOYANT
    }

    /// Whether with these parameters no CPU that asks for a task is left idle while one waits in
    /// its runqueue that is allowed there.
    fn is_work_conserving(_: &Self::Params) -> bool {
        true
    }

    /// Whether with these parameters it goes by what an earlier run of the same load has shown.
    fn is_rehearsed(_: &Self::Params) -> bool {
        false
    }

    /// If these parameters lack what a run of the same load would teach: which of them, names and
    /// values, differ in that run. See [`PolicyInfo::rehearsal`](crate::registry::PolicyInfo::rehearsal).
    fn rehearsal(_: &Self::Params) -> Option<&'static [(&'static str, &'static str)]> {
        None
    }

    /// The policy with `queues` runqueues on `machine`.
    ///
    /// Errors: a parameter is not usable.
    fn build(machine: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError>;
}
