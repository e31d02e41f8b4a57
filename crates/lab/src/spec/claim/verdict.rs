//! What may become of a claim.

use std::fmt;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does as it stands.
    Holds,
    /// It does if it is read as the claim's `reading` says.
    HoldsUnderReading,
    /// What was found is within what the seeds can tell, so that more of them are needed.
    Undecided,
    /// It does not: the 95 % confidence interval excludes it.
    DoesNotHold,
    /// No run can tell.
    NotTestable,
    /// It contradicts itself or another claim of the same source.
    Inconsistent,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 6] = [
        Verdict::Holds,
        Verdict::HoldsUnderReading,
        Verdict::Undecided,
        Verdict::DoesNotHold,
        Verdict::NotTestable,
        Verdict::Inconsistent,
    ];

    /// How it is written in files and reports.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsUnderReading => "holds under the stated reading",
            Verdict::Undecided => "undecided",
            Verdict::DoesNotHold => "does not hold",
            Verdict::NotTestable => "not testable",
            Verdict::Inconsistent => "inconsistent",
        }
    }

    /// Whether it is found by measuring; the others are stated in the file.
    pub fn is_measured(self) -> bool {
        !matches!(self, Verdict::NotTestable | Verdict::Inconsistent)
    }

    /// Whether both are decided, and one says what the other denies. Fewer seeds than a file was
    /// written for may leave a claim undecided, which contradicts nothing.
    pub fn contradicts(self, other: Verdict) -> bool {
        let holds = |verdict| match verdict {
            Verdict::Holds | Verdict::HoldsUnderReading => Some(true),
            Verdict::DoesNotHold => Some(false),
            Verdict::Undecided | Verdict::NotTestable | Verdict::Inconsistent => None,
        };
        holds(self).zip(holds(other)).is_some_and(|(this, other)| this != other)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
