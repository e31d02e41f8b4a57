//! SEDF_DM: Xen's SEDF that counts how many of the vCPUs it comes upon have missed their deadline,
//! changes to deadline-monotonic order when too many of 256 have, and back when none has.
//!
//! Source: Tseng and Huang, SEDF_DM for Xen 4.2.1.
//! The paper has three rules: more than 6 % in its text, 6 % or more in its figure, and more than
//! the count shifted right by 4 in its code, which is 17 of 256 (6.6 %). The last is the default;
//! `rule = percent` is the first.
//! Its text restarts both counts after every decision, which its code omits; here they restart. A
//! vCPU is counted each time a scan of the runqueue comes upon it, so what is compared is neither
//! vCPUs nor deadlines; `count = per-job` counts each slice once, when it has been used up, its
//! deadline has been missed, or the vCPU blocks.
//! A scan covers the whole runqueue. Xen's ends at the first vCPU that is on time: behind it none
//! is late if the order is EDF, but some may be if it is DM.
//! Order key: as `sedf` or as `dm-xen`, equals as they were when it changes.
//! Cost: O(n) with n vCPUs in the runqueue; O(n log n) for a change.

use super::{DmKey, Joint, Order, Sedf};
use anysched_core::registry::Policy;
use anysched_core::{Canon, Machine, ParamError, canon_fields, choice, params};

choice! {
    /// When too many deadlines have been missed.
    pub enum Overload {
        /// More than a 16th of the count, rounded down.
        Shift4 = "shift4",
        /// More than a percentage of it.
        Percent = "percent",
    }
}

choice! {
    /// What is counted.
    pub enum Count {
        /// A vCPU each time a scan comes upon it.
        PerScan = "per-scan",
        /// Each slice once.
        PerJob = "per-job",
    }
}

params! {
    /// Parameters of `sedf-dm` alone.
    pub struct SedfDmParams {
        /// How many are counted before each decision.
        window: u32 = 256,
        /// Which share of misses leads to DM: above count >> 4, or above percent.
        rule: Overload = Overload::Shift4,
        /// The percentage above which rule = percent leads to DM.
        percent: u32 = 6,
        /// The percentage up to which misses lead back to EDF.
        back_percent: u32 = 0,
        /// What is counted: vCPUs that a scan comes upon, or slices.
        count: Count = Count::PerScan,
        /// Whether a scan continues past the first vCPU that is on time.
        full_scan: bool = true,
        /// The key while in DM.
        dm_key: DmKey = DmKey::Slice,
    }
}

/// The order by the share of missed deadlines.
#[derive(Clone, Debug)]
pub struct ByShare {
    params: SedfDmParams,
    dm: bool,
    total: u64,
    misses: u64,
}

impl ByShare {
    fn is_overload(&self) -> bool {
        match self.params.rule {
            Overload::Shift4 => self.misses > self.total >> 4,
            Overload::Percent => self.misses * 100 > u64::from(self.params.percent) * self.total,
        }
    }

    fn is_underload(&self) -> bool {
        self.misses * 100 <= u64::from(self.params.back_percent) * self.total
    }

    fn count(&mut self, missed: bool) {
        self.total += 1;
        self.misses += u64::from(missed);
    }
}

impl Order for ByShare {
    fn is_dm(&self) -> bool {
        self.dm
    }

    fn scans_all(&self) -> bool {
        self.params.full_scan
    }

    fn saw(&mut self, missed: bool) {
        if missed || self.params.count == Count::PerScan {
            self.count(missed);
        }
    }

    fn done(&mut self, on_time: bool, _: bool) {
        if self.params.count == Count::PerJob {
            self.count(!on_time);
        }
    }

    fn decide(&mut self) -> bool {
        if self.total < u64::from(self.params.window) {
            return false;
        }
        let changes = if self.dm { self.is_underload() } else { self.is_overload() };
        self.dm ^= changes;
        (self.total, self.misses) = (0, 0);
        changes
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(self, to, ByShare { params: fixed, dm, total, misses });
    }
}

/// See the [module documentation](self).
pub type SedfDm = Sedf<ByShare>;

impl Policy for SedfDm {
    type Params = Joint<SedfDmParams>;
    const SOURCE: &'static str = "Tseng and Huang, SEDF_DM for Xen 4.2.1";
    const STARVES: bool = true;

    fn is_work_conserving(_: &Self::Params) -> bool {
        false
    }

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        let own = &params.own;
        if own.window == 0 {
            return Err(ParamError::Invalid { name: "window", why: "must be above 0" });
        }
        let order = ByShare { params: own.clone(), dm: false, total: 0, misses: 0 };
        Sedf::with_order(queues, &params.shared, own.dm_key, order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Params;

    fn order(settings: &[(&str, &str)]) -> ByShare {
        let mut params = SedfDmParams::default();
        settings.iter().for_each(|(name, text)| params.set(name, text).unwrap());
        ByShare { params, dm: false, total: 0, misses: 0 }
    }

    /// Whether the order changes after this many misses out of `total`.
    fn changes(order: &mut ByShare, misses: u32, total: u32) -> bool {
        (0..total).for_each(|nth| order.saw(nth < misses));
        order.decide()
    }

    #[test]
    fn the_two_rules_differ_at_16_of_256() {
        for (misses, shift4, percent) in [(15, false, false), (16, false, true), (17, true, true)] {
            let by = |rule| changes(&mut order(&[("rule", rule)]), misses, 256);
            assert_eq!((by("shift4"), by("percent")), (shift4, percent), "{misses}");
        }
    }

    #[test]
    fn a_window_ends_at_256_and_both_counts_restart() {
        let mut order = order(&[]);
        assert!(!changes(&mut order, 255, 255));
        assert!(changes(&mut order, 0, 1), "the 256th");
        assert!(order.is_dm());
        assert!(!changes(&mut order, 0, 255), "no misses, but not enough seen");
        assert!(changes(&mut order, 0, 1));
        assert!(!order.is_dm());
        // A scan may overshoot.
        assert!(!changes(&mut order, 16, 270));
        assert!(changes(&mut order, 17, 270));
    }

    #[test]
    fn one_miss_keeps_dm_unless_some_are_allowed() {
        for (back, misses, changed) in [("0", 1, false), ("1", 2, true), ("1", 3, false)] {
            let mut order = order(&[("back_percent", back)]);
            assert!(changes(&mut order, 256, 256));
            assert_eq!(changes(&mut order, misses, 256), changed, "{back} {misses}");
        }
    }

    #[test]
    fn jobs_count_once() {
        let mut order = order(&[("count", "per-job"), ("window", "3")]);
        (0..100).for_each(|_| order.saw(false));
        order.done(true, true);
        order.done(true, false);
        assert!(!order.decide());
        order.saw(true);
        assert!(order.decide(), "one miss of three");
    }
}
