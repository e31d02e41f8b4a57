//! What may become of a claim.

use std::fmt;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does as it stands.
    Holds,
    /// It does if it is read as the claim's `reading` says.
    HoldsUnderReading,
    /// It does not, or the evidence is not enough.
    DoesNotHold,
    /// A simulation cannot tell.
    NotTestable,
    /// It contradicts itself or another claim of the same source.
    Inconsistent,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 5] = [
        Verdict::Holds,
        Verdict::HoldsUnderReading,
        Verdict::DoesNotHold,
        Verdict::NotTestable,
        Verdict::Inconsistent,
    ];

    /// How it is written in files and reports.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsUnderReading => "holds only under the stated reading",
            Verdict::DoesNotHold => "does not hold",
            Verdict::NotTestable => "not testable in simulation",
            Verdict::Inconsistent => "internally inconsistent",
        }
    }

    /// Whether it is found by measuring; the others are stated in the file.
    pub fn is_measured(self) -> bool {
        !matches!(self, Verdict::NotTestable | Verdict::Inconsistent)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
