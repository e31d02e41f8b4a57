//! Deadline-monotonic order in Xen's SEDF: among the vCPUs that have some of their slice left, the
//! one with the smallest fixed key runs, by default the one with the smallest slice.
//!
//! Source: the DM that SEDF_DM changes to (Tseng and Huang, for Xen 4.2.1), by itself; as a
//! textbook policy, J. Leung and J. Whitehead, Performance Evaluation 2(4), 1982.
//! Order key: `dm_key`, behind equals. The paper calls the slice the relative deadline. In SEDF
//! the relative deadline is the period, which is the same for all in the paper's experiments.
//! Everything else is `sedf`, but that a scan for missed deadlines looks at the whole runqueue.
//! Cost: O(n) with n vCPUs in the runqueue.

use crate::xen::sedf::{DmKey, Joint, Mode, Order, Sedf};
use anysched_core::registry::Policy;
use anysched_core::{Machine, ParamError, params};

params! {
    /// Parameters of `dm` alone.
    pub struct DmParams {
        /// Xen's rules, or DM as in textbooks: no slices, by relative deadline, preemption at once.
        mode: Mode = Mode::Xen,
        /// The key by Xen's rules.
        dm_key: DmKey = DmKey::Slice,
    }
}

/// By the fixed key at all times.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

impl Order for Fixed {
    fn is_dm(&self) -> bool {
        true
    }
}

/// See the [module documentation](self).
pub type Dm = Sedf<Fixed>;

impl Policy for Dm {
    type Params = Joint<DmParams>;
    const SOURCE: &'static str = "Tseng and Huang, SEDF_DM for Xen; Leung and Whitehead 1982";

    fn is_work_conserving(_: &Self::Params) -> bool {
        false
    }

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        let DmParams { mode, dm_key } = params.own;
        Sedf::with_order(queues, &params.shared, mode == Mode::Textbook, dm_key, Fixed)
    }
}
