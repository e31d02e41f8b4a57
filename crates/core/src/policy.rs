//! What every policy declares about itself.

use crate::Machine;
use crate::params::{ParamError, Params};

/// What every policy declares about itself, and how it is built.
pub trait Policy: Sized {
    /// Its parameters.
    type Params: Params;
    /// The rule's origin: paper and section, or kernel file and version.
    const SOURCE: &'static str;
    /// Whether it reads [`Arrival::burst`](crate::Arrival::burst), which no kernel knows;
    /// parameters may override this.
    const CLAIRVOYANT: bool = false;
    /// See [`PolicyInfo::seed`](crate::registry::PolicyInfo::seed).
    const SEED: Option<&'static str> = None;

    /// Whether it reads [`Arrival::burst`](crate::Arrival::burst) with these parameters.
    fn is_clairvoyant(_: &Self::Params) -> bool {
        Self::CLAIRVOYANT
    }

    /// Whether, with these parameters, no CPU that picks is left idle while its runqueue holds a
    /// task allowed there.
    fn is_work_conserving(_: &Self::Params) -> bool {
        true
    }

    /// Whether, with these parameters, it uses what it learned in an earlier run of the same load.
    fn is_rehearsed(_: &Self::Params) -> bool {
        false
    }

    /// If these parameters lack what a run of the same load would teach: the names and values to
    /// change for that run. See [`PolicyInfo::rehearsal`](crate::registry::PolicyInfo::rehearsal).
    fn rehearsal(_: &Self::Params) -> Option<&'static [(&'static str, &'static str)]> {
        None
    }

    /// The policy with `queues` runqueues on `machine`.
    ///
    /// Errors: an unusable parameter.
    fn build(machine: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError>;
}
