//! Deadline-monotonic order in Xen's SEDF: among the vCPUs that have some of their slice left, the
//! one with the smallest fixed key runs, by default the one with the smallest slice.
//!
//! Source: the DM that SEDF_DM changes to (Tseng and Huang, for Xen 4.2.1), on its own. The
//! textbook's rule, without slices, is [`dm`](crate::textbook::dm).
//! Order key: `dm_key`, behind equals. The paper calls the slice the relative deadline. In SEDF
//! the relative deadline is the period, which is the same for all in the paper's experiments.
//! Everything else is as in `sedf`, except that a scan for missed deadlines covers the whole
//! runqueue.
//! Cost: O(n) with n vCPUs in the runqueue.

use super::{DmKey, Joint, Order, Sedf};
use anysched_core::registry::Policy;
use anysched_core::{Machine, ParamError, params};

params! {
    /// Parameters of `dm-xen` alone.
    pub struct DmXenParams {
        /// The fixed key; the smallest runs first.
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
pub type DmXen = Sedf<Fixed>;

impl Policy for DmXen {
    type Params = Joint<DmXenParams>;
    const SOURCE: &'static str = "Tseng and Huang, SEDF_DM for Xen 4.2.1";
    const STARVES: bool = true;

    fn is_work_conserving(_: &Self::Params) -> bool {
        false
    }

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        Sedf::with_order(queues, &params.shared, params.own.dm_key, Fixed)
    }
}
