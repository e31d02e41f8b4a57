//! D_EDF: Xen's SEDF that changes to deadline-monotonic order after two missed deadlines in a row
//! and back after ten slices in a row that were used up in time.
//!
//! Source: G. Thakor and A. Shah, "D_EDF: an efficient scheduling algorithm for real-time
//! multiprocessor system", WICT 2011, as described by Tseng and Huang, who compare SEDF_DM with it.
//! Misses are counted where a scan of the runqueue finds a deadline past, and slices where they
//! end, since a vCPU whose slice has ended is in no runqueue. Both are counted per CPU, over all
//! its vCPUs.
//! Order key: as `sedf` or as `dm-xen`, equals as they were when it changes.
//! Cost: as `sedf` or `dm-xen`; O(n log n) for a change.

use super::{DmKey, Joint, Order, Sedf};
use anysched_core::registry::Policy;
use anysched_core::{Canon, Machine, ParamError, canon_fields, params};

params! {
    /// Parameters of `d-edf` alone.
    pub struct DEdfParams {
        /// Missed deadlines in a row that lead to DM.
        misses_to_dm: u32 = 2,
        /// Slices in a row, used up in time, that lead back to EDF.
        mets_to_edf: u32 = 10,
        /// The key while in DM.
        dm_key: DmKey = DmKey::Slice,
    }
}

/// The order by how many deadlines in a row were missed or met.
#[derive(Clone, Debug)]
pub struct InARow {
    params: DEdfParams,
    dm: bool,
    misses: u32,
    mets: u32,
}

impl Order for InARow {
    fn is_dm(&self) -> bool {
        self.dm
    }

    fn saw(&mut self, missed: bool) {
        if missed {
            self.misses = self.misses.saturating_add(1);
            self.mets = 0;
        }
    }

    fn done(&mut self, on_time: bool, whole: bool) {
        if on_time && whole {
            self.mets = self.mets.saturating_add(1);
            self.misses = 0;
        }
    }

    fn decide(&mut self) -> bool {
        let changes = match self.dm {
            false => self.misses >= self.params.misses_to_dm,
            true => self.mets >= self.params.mets_to_edf,
        };
        if changes {
            let count = if self.dm { &mut self.mets } else { &mut self.misses };
            *count = 0;
            self.dm = !self.dm;
        }
        changes
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(self, to, InARow { params: fixed, dm, misses, mets });
    }
}

/// See the [module documentation](self).
pub type DEdf = Sedf<InARow>;

impl Policy for DEdf {
    type Params = Joint<DEdfParams>;
    const SOURCE: &'static str = "Thakor and Shah 2011, as Tseng and Huang describe it";
    const STARVES: bool = true;

    fn is_work_conserving(_: &Self::Params) -> bool {
        false
    }

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        let own = &params.own;
        for (name, value) in [("misses_to_dm", own.misses_to_dm), ("mets_to_edf", own.mets_to_edf)]
        {
            if value == 0 {
                return Err(ParamError::Invalid { name, why: "must be above 0" });
            }
        }
        let order = InARow { params: own.clone(), dm: false, misses: 0, mets: 0 };
        Sedf::with_order(queues, &params.shared, own.dm_key, order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> InARow {
        InARow { params: DEdfParams::default(), dm: false, misses: 0, mets: 0 }
    }

    #[test]
    fn two_misses_in_a_row_lead_to_dm() {
        let mut order = order();
        order.saw(true);
        order.saw(false);
        assert!(!order.decide());
        // A slice that is late or not used up interrupts no row; one in time does.
        order.done(true, false);
        order.done(false, true);
        order.done(true, true);
        order.saw(true);
        assert!(!order.decide() && !order.is_dm());
        order.saw(true);
        assert!(order.decide() && order.is_dm() && order.scans_all());
        assert!(!order.decide(), "the count begins anew");
    }

    #[test]
    fn ten_slices_in_a_row_lead_back() {
        let mut order = InARow { dm: true, ..order() };
        (0..9).for_each(|_| order.done(true, true));
        order.saw(true);
        assert!(!order.decide());
        (0..9).for_each(|_| order.done(true, true));
        order.saw(false);
        assert!(!order.decide());
        order.done(true, true);
        assert!(order.decide() && !order.is_dm() && !order.decide());
    }
}
